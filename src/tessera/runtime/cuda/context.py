"""Contexts: one for each GPU, shared with other libraries in the process, current on whichever thread needs it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Self

from tessera.cached_property import cached_property
from tessera.errors import DeviceError, TesseraError
from tessera.runtime.cuda import driver


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a GPU. Memory is in bytes; shared memory and threads are what a block may have at most."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    l2_cache: int
    shared_per_block: int
    threads_per_block: int
    threads_per_multiprocessor: int
    warp: int
    pci_bus: str

    @property
    def architecture(self) -> str:
        """As compilers call it: sm_90."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "l2_cache": "L2_CACHE_SIZE",
    "shared_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "threads_per_block": "MAX_THREADS_PER_BLOCK",
    "threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "warp": "WARP_SIZE",
}
_PCI_BUS_LETTERS = 32
_popped = ctypes.c_void_p()
# The driver writes there which context it took away. It has to live: the interpreter lock is open meanwhile.
_POPPED_AT = ctypes.addressof(_popped)


class Context:
    """The primary context of a GPU: the one that torch and the CUDA runtime use, too.

    `with context:` makes it current on this thread for a while; what was current before is so again afterwards. It is
    opened when something is done there: asking for a GPU's properties, to compile for it, takes nothing of it.
    """

    _made: ClassVar[dict[int, Context]] = {}
    _lock: ClassVar[Lock] = Lock()

    def __init__(self, index: int) -> None:
        cu = driver.bindings()
        self.index = index
        self.device = int(driver.check(cu.cuDeviceGet(index), f"opening cuda:{index}"))
        self.calls = driver.calls()

    @cached_property
    def handle(self) -> int:
        cu = driver.bindings()
        return int(driver.check(cu.cuDevicePrimaryCtxRetain(self.device), f"opening cuda:{self.index}"))

    @property
    def is_open(self) -> bool:
        """Whether something was done there already, in this process."""
        return "handle" in vars(self)

    @staticmethod
    def of(index: int) -> Context:
        """The context of `cuda:index`."""
        found = Context._made.get(index)
        if found is None:
            count = driver.device_count()
            if not 0 <= index < count:
                seen = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
                raise DeviceError(
                    f"there is no device cuda:{index}: this process sees {seen}",
                    hint="use one of these; CUDA_VISIBLE_DEVICES may hide others",
                )
            with Context._lock:
                found = Context._made.get(index)
                if found is None:
                    found = Context._made[index] = Context(index)
        return found

    def __enter__(self) -> Self:
        status = self.calls.push_context(self.handle)
        if status:
            driver.refuse(status, f"using cuda:{self.index}")
        return self

    def __exit__(self, *exc: object) -> None:
        self.calls.pop_context(_POPPED_AT)

    def settle(self) -> None:
        """Makes it current on this thread for good, where none is: launches then need not ask."""
        found = ctypes.c_void_p()
        if not self.calls.current_context(ctypes.addressof(found)) and not found.value:
            self.calls.set_context(self.handle)

    def at_end(self, action: Callable[[], object], is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Does what an object that goes has to do; nothing where the interpreter goes, or the driver takes no calls."""
        if is_finalizing() or self.calls.push_context(self.handle):
            return
        try:
            # There is no caller to raise for. Objects may go at any time, also while another library captures.
            with suppress(TesseraError), driver.beside_captures():
                action()
        finally:
            self.calls.pop_context(_POPPED_AT)

    def be_current(self) -> None:
        """Makes this context current on this thread for good, where none is: launches need not ask for it then."""
        cu = driver.bindings()
        doing = f"using cuda:{self.index}"
        if not int(driver.check(cu.cuCtxGetCurrent(), doing)):
            driver.check(cu.cuCtxSetCurrent(self.handle), doing)

    def synchronize(self) -> None:
        """Waits for all work of the GPU that this process has asked for."""
        with self:
            driver.check_status(self.calls.synchronize_context(), f"waiting for cuda:{self.index}")

    def free_memory(self) -> tuple[int, int]:
        """The bytes that the GPU has left, and those that it has."""
        with self:
            free, total = driver.check(driver.bindings().cuMemGetInfo(), f"asking cuda:{self.index} for its memory")
        return free, total

    @cached_property
    def properties(self) -> Properties:
        cu = driver.bindings()
        doing = f"asking cuda:{self.index} what it is"

        def attribute(name: str) -> int:
            which = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(driver.check(cu.cuDeviceGetAttribute(which, self.device), doing))

        def text(result: Any) -> str:
            return bytes(driver.check(result, doing)).split(b"\0")[0].decode()

        return Properties(
            name=text(cu.cuDeviceGetName(256, self.device)),
            capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
            memory=int(driver.check(cu.cuDeviceTotalMem(self.device), doing)),
            pci_bus=text(cu.cuDeviceGetPCIBusId(_PCI_BUS_LETTERS, self.device)),
            **{field: attribute(name) for field, name in _ATTRIBUTES.items()},
        )

    def __repr__(self) -> str:
        return f"Context(cuda:{self.index})"


def capability_of(index: int) -> tuple[int, int]:
    """The compute capability of `cuda:index`: to compile for it, nothing is opened there."""
    return Context.of(index).properties.capability
