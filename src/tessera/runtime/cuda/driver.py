"""NVIDIA's driver: the library and its Python bindings, loaded when first needed, and its complaints as our errors.

Rare calls go through `cuda.bindings.driver`, which knows all structures. Calls that are made for every launch, copy or
allocation go through ctypes, at a third of the time.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from tessera.errors import DeviceError, ResourceError, TesseraError
from tessera.runtime.device.threads import BEFORE_WORK

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
# The context of another device, or none at all, is current on the calling thread.
CONTEXT_STATUSES = frozenset({201, 400})
PENDING = 600
_RELAXED = 2
"""The mode of a thread whose calls are no part of captures."""

_RESOURCE_STATUSES = frozenset({OUT_OF_MEMORY, 701})
# After these the driver refuses everything until the process ends.
_FATAL_STATUSES = frozenset({220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 720})
_RESTART = (
    "a kernel has failed and the driver takes no more work from this process: start it anew. Kernels say which access "
    "it was with TESSERA_CHECKS=bounds, and compute-sanitizer finds the rest"
)
_HINTS = {
    OUT_OF_MEMORY: "free tensors, use smaller shapes or narrower dtypes; nvidia-smi shows who else holds memory",
    3: "a process forked after CUDA was started cannot use it: start processes with the method 'spawn'",
    34: "the libcuda.so.1 found is the toolkit's stub: let the driver's own come first in LD_LIBRARY_PATH",
    100: "see what nvidia-smi shows, and whether CUDA_VISIBLE_DEVICES hides the GPU",
    101: "see what nvidia-smi shows, and whether CUDA_VISIBLE_DEVICES hides the GPU",
    209: "the code was made for another GPU: compile it for this one",
    218: "the driver does not understand this PTX: a newer driver may",
    222: "the PTX is newer than the driver: install a newer driver",
    701: "use fewer threads or registers, or less shared memory: a smaller block",
    802: "the driver is not ready: on machines with NVSwitch, see that nvidia-fabricmanager runs",
    803: "the driver's library and its kernel module differ: reboot, or reinstall the driver",
    804: "this GPU does not work with the compatibility library: install a newer driver",
}

_HANDLE, _INT, _UINT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_OUT = ctypes.c_void_p  # the address of what is filled in
_LATER = frozenset({"add_edges"})
"""Functions that drivers of the oldest supported CUDA do not have."""


class Calls:
    """The driver's functions for what is done often: each takes numbers and returns a status. They let go of the
    interpreter lock while they run.

    The class has the name and the kinds of arguments of each, an instance the function itself.
    """

    launch: Any = "cuLaunchKernel", (_HANDLE, *[_UINT] * 7, _HANDLE, _OUT, _OUT)
    push_context: Any = "cuCtxPushCurrent_v2", (_HANDLE,)
    pop_context: Any = "cuCtxPopCurrent_v2", (_OUT,)
    current_context: Any = "cuCtxGetCurrent", (_OUT,)
    set_context: Any = "cuCtxSetCurrent", (_HANDLE,)
    synchronize_context: Any = "cuCtxSynchronize", ()
    allocate: Any = "cuMemAllocFromPoolAsync", (_OUT, _SIZE, _HANDLE, _HANDLE)
    free: Any = "cuMemFreeAsync", (_HANDLE, _HANDLE)
    allocate_host: Any = "cuMemHostAlloc", (_OUT, _SIZE, _UINT)
    to_device: Any = "cuMemcpyHtoDAsync_v2", (_HANDLE, _HANDLE, _SIZE, _HANDLE)
    to_host: Any = "cuMemcpyDtoHAsync_v2", (_HANDLE, _HANDLE, _SIZE, _HANDLE)
    on_device: Any = "cuMemcpyDtoDAsync_v2", (_HANDLE, _HANDLE, _SIZE, _HANDLE)
    to_peer: Any = "cuMemcpyPeerAsync", (_HANDLE, _HANDLE, _HANDLE, _HANDLE, _SIZE, _HANDLE)
    fill_bytes: Any = "cuMemsetD8Async", (_HANDLE, ctypes.c_ubyte, _SIZE, _HANDLE)
    create_stream: Any = "cuStreamCreateWithPriority", (_OUT, _UINT, _INT)
    destroy_stream: Any = "cuStreamDestroy_v2", (_HANDLE,)
    synchronize_stream: Any = "cuStreamSynchronize", (_HANDLE,)
    query_stream: Any = "cuStreamQuery", (_HANDLE,)
    wait_event: Any = "cuStreamWaitEvent", (_HANDLE, _HANDLE, _UINT)
    create_event: Any = "cuEventCreate", (_OUT, _UINT)
    destroy_event: Any = "cuEventDestroy_v2", (_HANDLE,)
    record_event: Any = "cuEventRecord", (_HANDLE, _HANDLE)
    query_event: Any = "cuEventQuery", (_HANDLE,)
    synchronize_event: Any = "cuEventSynchronize", (_HANDLE,)
    elapsed_time: Any = "cuEventElapsedTime", (_OUT, _HANDLE, _HANDLE)
    launch_graph: Any = "cuGraphLaunch", (_HANDLE, _HANDLE)
    create_graph: Any = "cuGraphCreate", (_OUT, _UINT)
    add_node: Any = "cuGraphAddKernelNode_v2", (_OUT, _HANDLE, _OUT, _SIZE, _OUT)
    add_edges: Any = "cuGraphAddDependencies_v2", (_HANDLE, _OUT, _OUT, _OUT, _SIZE)
    """None where the driver is older than CUDA 12.3."""
    set_node: Any = "cuGraphExecKernelNodeSetParams_v2", (_HANDLE, _HANDLE, _OUT)
    instantiate_graph: Any = "cuGraphInstantiateWithFlags", (_OUT, _HANDLE, ctypes.c_uint64)
    destroy_graph: Any = "cuGraphDestroy", (_HANDLE,)
    destroy_instance: Any = "cuGraphExecDestroy", (_HANDLE,)
    exchange_capture_mode: Any = "cuThreadExchangeStreamCaptureMode", (_OUT,)
    encode_map: Any = "cuTensorMapEncodeTiled", (_OUT, _INT, _UINT, _HANDLE, *[_OUT] * 4, *[_INT] * 4)

    def __init__(self, library: Any) -> None:
        for name, declared in vars(Calls).items():
            if name.startswith("_"):
                continue
            symbol, arguments = declared
            function = getattr(library, symbol, None) if name in _LATER else getattr(library, symbol)
            if function is not None:
                function.argtypes, function.restype = arguments, _INT
            setattr(self, name, function)


@cache
def library() -> Any:
    """The driver's library."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceError(
            f"there is no NVIDIA driver on this machine: {error}",
            hint="install NVIDIA's driver, or stay on device='cpu'",
        ) from None


@cache
def bindings() -> Any:
    """The module `cuda.bindings.driver`, with the driver started."""
    library()
    try:
        driver: Any = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(
            f"CUDA devices need the package cuda-bindings, which cannot be imported: {error}",
            hint="pip install 'tessera-lang[cuda]'",
        ) from None
    _check_started(driver)
    return driver


def _check_started(driver: Any) -> None:
    (status,) = driver.cuInit(0)
    if int(status) == 100:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = "" if hidden is None else f", CUDA_VISIBLE_DEVICES is {hidden!r}"
        raise DeviceError(
            f"the NVIDIA driver finds no GPU (CUDA_ERROR_NO_DEVICE){seen}",
            hint="see what nvidia-smi shows, or stay on device='cpu'",
        )
    if int(status):
        refuse(int(status), "starting the NVIDIA driver", driver)


@cache
def calls() -> Calls:
    """The quick functions, with the driver started."""
    bindings()
    found = Calls(library())
    BEFORE_WORK.append(stay_beside_captures)
    return found


@contextmanager
def beside_captures() -> Generator[None]:
    """Keeps this thread's calls of the driver out of a capture by another library.

    While a stream is captured the driver refuses to free memory, to look whether an event has happened, and more, and
    breaks the capture off, since a capture might mean it to be repeated. What is done behind callers' backs is not.
    """
    exchange, mode = calls().exchange_capture_mode, ctypes.c_int(_RELAXED)
    exchange(ctypes.addressof(mode))
    try:
        yield
    finally:
        exchange(ctypes.addressof(mode))


def stay_beside_captures() -> None:
    """The same from now on: for threads of ours, which no caller runs on."""
    mode = ctypes.c_int(_RELAXED)  # the driver writes there what it was
    calls().exchange_capture_mode(ctypes.addressof(mode))


@cache
def device_count() -> int:
    """How many GPUs this process sees."""
    return check(bindings().cuDeviceGetCount(), "counting GPUs")


@cache
def driver_version() -> int:
    """The newest CUDA that the driver knows: 13000 for 13.0."""
    return check(bindings().cuDriverGetVersion(), "asking for the driver's version")


def check(result: tuple[Any, ...], doing: str) -> Any:
    """The results of a call of the bindings besides its status; raises the error that the status means.

    `doing` says what was being done, such as "loading the kernel @softmax".
    """
    status = result[0]
    if status:
        refuse(int(status), doing)
    return None if len(result) == 1 else result[1] if len(result) == 2 else result[1:]


def check_status(status: int, doing: str) -> None:
    """The same for the quick calls."""
    if status:
        refuse(status, doing)


def refuse(status: int, doing: str, driver: Any = None) -> NoReturn:
    """Raises the error that a status means."""
    raise error_of(status, doing, driver)


def error_of(status: int, doing: str, driver: Any = None) -> TesseraError:
    """The error that a status means, with the driver's name for it."""
    name, meaning = _words_of(status, bindings() if driver is None else driver)
    kind = ResourceError if status in _RESOURCE_STATUSES else DeviceError
    hint = _RESTART if status in _FATAL_STATUSES else _HINTS.get(status)
    return kind(
        f"{doing}: the driver says {name}{f' ({meaning})' if meaning else ''}",
        hint=hint or "NVIDIA's documentation of the driver API explains the name",
    )


def _words_of(status: int, driver: Any) -> tuple[str, str]:
    words: list[str] = []
    for ask in (driver.cuGetErrorName, driver.cuGetErrorString):
        try:
            failed, found = ask(driver.CUresult(status))
        except ValueError:  # a status that is newer than the bindings
            failed, found = 1, None
        words.append("" if failed or found is None else found.decode())
    return words[0] or f"error {status}", words[1]
