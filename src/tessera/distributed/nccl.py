"""NCCL through ctypes: collectives from GPU to GPU, in the order of the current stream.

MPI brings the ranks together; NCCL carries what lies on GPUs. It adds in an order of its own, so sums of narrow floats
may differ in the last digit from those of the host. Types that it does not know, and several ranks on one GPU, go over
the host; arrays with gaps are copied first.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tessera.dtypes.types import BY_NAME, DType
from tessera.errors import DeviceError, TesseraError
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import Array, contiguous_strides
from tessera.runtime.tensor.tensor import Tensor
from tessera.subprocesses import search_path

LIBRARY = "libnccl.so.2"
_TYPES = {"i8": 0, "u8": 1, "i32": 2, "u32": 3, "i64": 4, "u64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
_BYTES = 1
_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "mean": 4}
_BUS_BYTES = 256


class _UniqueId(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 128),)


_HANDLE, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "ncclGetVersion": (ctypes.POINTER(_INT),),
    "ncclGetUniqueId": (ctypes.POINTER(_UniqueId),),
    "ncclCommInitRank": (ctypes.POINTER(_HANDLE), _INT, _UniqueId, _INT),
    "ncclCommDestroy": (_HANDLE,),
    "ncclAllReduce": (_HANDLE, _HANDLE, _SIZE, _INT, _INT, _HANDLE, _HANDLE),
    "ncclReduceScatter": (_HANDLE, _HANDLE, _SIZE, _INT, _INT, _HANDLE, _HANDLE),
    "ncclAllGather": (_HANDLE, _HANDLE, _SIZE, _INT, _HANDLE, _HANDLE),
    "ncclBroadcast": (_HANDLE, _HANDLE, _SIZE, _INT, _INT, _HANDLE, _HANDLE),
    "ncclSend": (_HANDLE, _SIZE, _INT, _INT, _HANDLE, _HANDLE),
    "ncclRecv": (_HANDLE, _SIZE, _INT, _INT, _HANDLE, _HANDLE),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
}


def candidates() -> list[str]:
    """Where NCCL may lie: where the system finds it, in NVIDIA's own wheel, and with torch."""
    found = [LIBRARY]
    for package, inside in (("nvidia", "nccl/lib"), ("torch", "lib")):
        spec = find_spec(package)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        found += [str(Path(folder) / inside / LIBRARY) for folder in folders]
    return found + [str(Path(folder) / "nvidia/nccl/lib" / LIBRARY) for folder in search_path()]


@cache
def library() -> Any:
    """The library; None where there is none."""
    for name in candidates():
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        for function, arguments in _PROTOTYPES.items():
            getattr(found, function).argtypes = arguments
        found.ncclGetErrorString.restype = ctypes.c_char_p
        return found
    return None


class Ranks(Protocol):
    """The ranks that NCCL connects, and their messages over the host; see `group.ProcessGroup`."""

    rank: int
    size: int

    def gather_bytes(self, own: Array, doing: str) -> Array: ...

    def broadcast_bytes(self, own: Array, root: int, doing: str) -> None: ...


class Nccl:
    """NCCL's side of a group: a communicator for each GPU that this rank uses."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._made: dict[int, ctypes.c_void_p | None] = {}
        version = _INT()
        self._check(calls.ncclGetVersion(ctypes.byref(version)), "asking for its version")
        self.version = version.value

    @staticmethod
    def found(*, required: bool) -> Nccl | None:
        """NCCL, where there are a GPU and the library; None, or an error if it is required, where not."""
        try:
            from tessera.runtime.cuda import driver

            count = driver.device_count()
        except TesseraError:
            if required:
                raise
            return None
        calls = library() if count else None
        if calls is None and required:
            raise DeviceError(
                f"the backend nccl needs {LIBRARY}, which was not found",
                hint="pip install nvidia-nccl-cu13 (or cu12), or use the backend mpi: it stages through the host",
            )
        return None if calls is None else Nccl(calls)

    def takes(self, tensor: Tensor, group: Ranks) -> bool:
        """Whether a tensor goes by NCCL: all ranks answer alike. Makes the communicator the first time."""
        if not tensor.device.is_accelerator or tensor.dtype.name not in _TYPES or tensor.dtype.policy.saturate:
            return False
        index = tensor.device.index
        if index not in self._made:
            self._made[index] = self._join(index, group)
        return self._made[index] is not None

    def _join(self, index: int, group: Ranks) -> ctypes.c_void_p | None:
        """A communicator of all ranks; None where two ranks have the same GPU, which NCCL does not do."""
        import platform

        from tessera.runtime.cuda.context import Context

        where = f"{platform.node()} {Context.of(index).properties.pci_bus}".encode()[:_BUS_BYTES].ljust(_BUS_BYTES)
        devices = group.gather_bytes(np.frombuffer(where, np.uint8), "comparing GPUs")
        if len({row.tobytes() for row in devices}) < group.size:
            return None
        unique = _UniqueId()
        if group.rank == 0:
            self._check(self._calls.ncclGetUniqueId(ctypes.byref(unique)), "making an id")
        shared = np.frombuffer(bytes(unique), np.uint8).copy()
        group.broadcast_bytes(shared, 0, "sharing NCCL's id")
        ctypes.memmove(ctypes.byref(unique), shared.ctypes.data, shared.nbytes)
        made = ctypes.c_void_p()
        with Context.of(index):
            status = self._calls.ncclCommInitRank(ctypes.byref(made), group.size, unique, group.rank)
        self._check(status, f"joining {group.size} ranks")
        self._ranks = group.size
        return made

    def all_reduce(self, tensor: Tensor, op: str) -> None:
        self._run("ncclAllReduce", tensor.device, tensor, tensor, tensor.size, _TYPES[tensor.dtype.name], _OPS[op])

    def reduce_scatter(self, tensor: Tensor, op: str) -> Tensor:
        whole = _dense(tensor)
        part = _empty((tensor.shape[0] // self._ranks, *tensor.shape[1:]), tensor.dtype, tensor.device)
        self._run("ncclReduceScatter", tensor.device, whole, part, part.size, _TYPES[tensor.dtype.name], _OPS[op])
        return part

    def all_gather(self, tensor: Tensor) -> Tensor:
        own = _dense(tensor)
        whole = _empty((tensor.shape[0] * self._ranks, *tensor.shape[1:]), tensor.dtype, tensor.device)
        self._run("ncclAllGather", tensor.device, own, whole, own.nbytes, _BYTES)
        return whole

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._run("ncclBroadcast", tensor.device, tensor, tensor, tensor.nbytes, _BYTES, root)

    def all_to_all(self, tensor: Tensor) -> Tensor:
        own = _dense(tensor)
        found = _empty(tensor.shape, tensor.dtype, tensor.device)
        each, made, calls = own.nbytes // self._ranks, self._made[tensor.device.index], self._calls
        context, stream = _current(tensor.device)
        with context:
            self._check(calls.ncclGroupStart(), "all_to_all")
            for rank in range(self._ranks):
                for name, base in (("ncclSend", own.pointer), ("ncclRecv", found.pointer)):
                    status = getattr(calls, name)(base + rank * each, each, _BYTES, rank, made, stream)
                    self._check(status, "all_to_all")
            self._check(calls.ncclGroupEnd(), "all_to_all")
        return found

    def _run(self, name: str, device: Device, source: Tensor, target: Tensor, *rest: int) -> None:
        context, stream = _current(device)
        with context:
            status = getattr(self._calls, name)(source.pointer, target.pointer, *rest, self._made[device.index], stream)
        self._check(status, name)
        device.backend.note_use(source.geometry)

    def synchronize(self) -> None:
        """Waits for what was queued on the GPUs that were used."""
        from tessera.runtime.cuda.context import Context

        for index in self._made:
            Context.of(index).synchronize()

    def close(self) -> None:
        from tessera.runtime.cuda.context import Context

        for index, made in self._made.items():
            if made is not None:
                with Context.of(index):
                    self._check(self._calls.ncclCommDestroy(made), "leaving")
        self._made.clear()

    def _check(self, status: int, doing: str) -> None:
        if status:
            said = self._calls.ncclGetErrorString(status)
            raise DeviceError(
                f"NCCL: {doing} failed: {said.decode() if said else status}", hint="NCCL_DEBUG=WARN makes it say more"
            )


def _current(device: Device) -> tuple[Any, int]:
    from tessera.runtime.cuda.context import Context
    from tessera.runtime.cuda.streams import current_stream

    return Context.of(device.index), current_stream(device).handle


def _dense(tensor: Tensor) -> Tensor:
    return tensor if tensor.geometry.flags.c_contiguous else tensor.copy()


def _empty(shape: tuple[int, ...], dtype: DType, device: Device) -> Tensor:
    storage = BY_NAME[dtype.name].storage
    nbytes = storage.itemsize * int(np.prod(shape))
    buffer = device.backend.allocate(nbytes)
    return Tensor.wrap(buffer.array(storage, shape, contiguous_strides(shape, storage.itemsize)), dtype, device, buffer)
