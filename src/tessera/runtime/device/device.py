"""Devices: names such as "cuda:0", their buffers, the default device of a `with` block, and the backends of devices."""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from tessera.device_names import DLPACK_KINDS, HOST, is_accelerator, is_host
from tessera.dtypes.types import DType
from tessera.errors import DeviceError
from tessera.runtime.device.memory import ALIGNMENT, Array, aligned_empty
from tessera.runtime.native.device_array import device_array


class Buffer:
    """A range of bytes on a device, alive as long as `keepalive` is; every view on it holds the buffer."""

    __slots__ = ("__weakref__", "device", "keepalive", "nbytes", "pointer", "writable")

    def __init__(self, pointer: int, nbytes: int, device: Device, keepalive: object, *, writable: bool = True) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        self.device = device
        self.keepalive = keepalive
        self.writable = writable

    def __repr__(self) -> str:
        return f"Buffer({self.nbytes} bytes at {self.pointer:#x}, device={self.device})"

    def array(self, storage: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
        """An array at `offset` bytes, with `strides` in bytes; NumPy's where the host can reach the memory."""
        if not self.device.is_near:
            return device_array(self.pointer + offset, shape, storage, self, strides, writeable=self.writable)
        view = BufferView(self, shape, strides, storage.itemsize, offset)
        return np.asarray(view).view(storage)


class BufferView:
    """An array in a buffer as NumPy takes it; the array that NumPy makes of it keeps it, and so the buffer, alive."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, offset: int
    ) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            # Plain integers of the right width: NumPy has no type strings for bf16 and its like.
            "typestr": f"=u{itemsize}",
            "data": (buffer.pointer + offset, not buffer.writable),
        }


class DeviceBackend(ABC):
    """The operations of a device; one instance serves one device, and is made on its first use."""

    dlpack_type: ClassVar[int]
    host_addressable: ClassVar[bool] = False

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    @abstractmethod
    def name(self) -> str:
        """The hardware, in words."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether this very device exists and can be used."""

    @abstractmethod
    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Buffer:
        """Uninitialised memory, freed when the buffer is no longer referenced."""

    @abstractmethod
    def copy_from_host(self, target: int, source: int, nbytes: int) -> None:
        """Bytes from host address `source` to address `target` here; the source may change on return."""

    @abstractmethod
    def copy_to_host(self, target: int, source: int, nbytes: int) -> None:
        """Bytes from address `source` here to host address `target`, complete on return."""

    @abstractmethod
    def copy_from_device(self, target: int, origin: Device, source: int, nbytes: int) -> None:
        """Bytes from address `source` of `origin`, a device of the same kind, to address `target` here."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything asked of the device is done."""

    @abstractmethod
    def export_to_stream(self, stream: int | None) -> None:
        """Order the work done so far before what a DLPack consumer runs on `stream`, in DLPack's numbering."""

    def gather(self, array: Array) -> Buffer | None:
        """Fresh memory with the elements of `array`, which lies here with any strides, in C order.

        None where the device cannot pick them out itself.
        """
        return None

    def note_use(self, array: Array) -> None:  # noqa: B027  (devices without streams have nothing to note)
        """Told that what was asked of the device just now uses `array`."""

    def lend(self, array: Array, stream: int | None) -> None:  # noqa: B027  (the same)
        """Told that a DLPack consumer may use `array` on `stream` for as long as it likes."""

    @abstractmethod
    def import_stream(self) -> int | None:
        """The stream on which this side will use what a DLPack producer hands over."""

    def export_array(self, array: Array) -> dict[str, object]:
        """The device's array interface of `array`, such as `__cuda_array_interface__`."""
        raise AttributeError(f"no array interface describes memory of {self.device}")

    @classmethod
    def import_array(cls, given: object) -> tuple[Array, DType, Buffer]:
        """The memory of an object that has the array interface of such devices."""
        raise DeviceError(
            f"{cls.__name__} takes no memory by an array interface", hint=f"share a {type(given).__name__} by DLPack"
        )


@final
class Device:
    """One device; equal devices are the same object. In a `with` statement it becomes the default device."""

    __slots__ = ("_backend", "index", "is_accelerator", "is_host", "kind")

    _interned: ClassVar[dict[tuple[str, int], Device]] = {}

    kind: str
    index: int
    is_host: bool
    """Whether it is the processor that runs this process."""
    is_accelerator: bool
    """Whether programs are compiled for it that run on its streams, on memory that only they reach."""
    _backend: DeviceBackend | None

    def __new__(cls, kind: str, index: int = 0) -> Device:
        found = cls._interned.get((kind, index))
        if found is None:
            fresh = object.__new__(cls)
            fresh.kind, fresh.index, fresh._backend = kind, index, None
            fresh.is_host, fresh.is_accelerator = is_host(kind), is_accelerator(kind)
            found = cls._interned.setdefault((kind, index), fresh)
        return found

    @property
    def backend(self) -> DeviceBackend:
        """The backend of this device; raises a DeviceError where there is none."""
        if self._backend is None:
            self._backend = _connect(self)
        return self._backend

    @property
    def is_near(self) -> bool:
        """Whether the host can reach its memory, as far as that is known: an unused backend is not asked."""
        return self.is_host or (self._backend is not None and self._backend.host_addressable)

    @property
    def has_programs(self) -> bool:
        """Whether functions and kernels are compiled for it."""
        return self.is_host or self.is_accelerator

    def __enter__(self) -> Device:
        _ = self.backend
        _defaults.set((*_defaults.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _defaults.set(_defaults.get()[:-1])

    def __eq__(self, other: object) -> bool:
        """Devices are equal where they are the same; its name equals a device, too."""
        if isinstance(other, str):
            return other in (str(self), f"{self.kind}:{self.index}") or (other == self.kind and not self.index)
        return self is other if isinstance(other, Device) else NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return self.kind if self.is_host else f"{self.kind}:{self.index}"

    def __reduce__(self) -> tuple[object, ...]:
        return Device, (self.kind, self.index)


BackendFactory: TypeAlias = Callable[[Device], DeviceBackend]

CPU = Device(HOST)

_factories: dict[str, BackendFactory] = {}
_provided: dict[str, Callable[[], type[DeviceBackend]]] = {}
_defaults: ContextVar[tuple[Device, ...]] = ContextVar("tessera_default_devices", default=(CPU,))
_SPECIFICATION = re.compile(r"([a-z][a-z0-9_]*)(?::(\d+))?")


def default_device() -> Device:
    """The device of the innermost `with device(...)` block; the CPU outside of all."""
    return _defaults.get()[-1]


def device(specification: str | Device) -> Device:
    """The device called "cpu", "cuda" or "cuda:1". `with device("cuda:0"):` makes it the default."""
    if isinstance(specification, Device):
        return specification
    match = _SPECIFICATION.fullmatch(specification) if isinstance(specification, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be wrong)
    if match is None:
        raise DeviceError(
            f"expected a device such as 'cpu' or 'cuda:0', got {specification!r}",
            hint="write the kind of device, and its number after a colon",
        )
    kind, index = match[1], int(match[2] or 0)
    # Kinds that come with the package can be named where no such device can be used.
    if kind not in _provided and _find_factory(kind) is None:
        raise DeviceError(
            f"there is no kind of device called {kind!r}; known are {', '.join(_known_kinds())}",
            hint="use a known kind, or add one with register_backend",
        )
    return Device(kind, index)


def is_device_name(text: str) -> bool:
    """Whether `text` names a device rather than something else, such as a dtype."""
    return text.partition(":")[0] in _known_kinds()


def register_backend(kind: str, backend: BackendFactory) -> None:
    """Serve devices of `kind` by `backend`: a DeviceBackend class, or a function from device to backend.

    A package does the same with an entry point called `kind` in the group "tessera.devices".
    """
    if _factories.setdefault(kind, backend) is not backend:
        raise DeviceError(
            f"devices of kind {kind!r} are served by {_factories[kind]!r} already",
            hint="register each kind once; a second backend needs another name",
        )


def provide_backend(kind: str, load: Callable[[], type[DeviceBackend]]) -> None:
    """Serve devices of `kind` by the class that `load` gives, unless another backend is registered for them.

    It is called once a device of the kind is used: backends that come with the package load no sooner.
    """
    _provided[kind] = load


def provided_backend(kind: str) -> type[DeviceBackend]:
    """The backend that comes with the package for devices of `kind`."""
    return _provided[kind]()


def device_of_dlpack(dlpack_type: int, index: int) -> Device:
    """The device that DLPack calls (dlpack_type, index)."""
    kind = DLPACK_KINDS.get(dlpack_type)
    if kind is None:
        for candidate, factory in _factories.items():
            if getattr(factory, "dlpack_type", None) == dlpack_type:
                kind = candidate
    if kind is None:
        raise DeviceError(
            f"memory on a device of DLPack type {dlpack_type}, for which no backend is registered",
            hint="copy it to the CPU on the other side first",
        )
    return CPU if is_host(kind) else Device(kind, index)


def _known_kinds() -> list[str]:
    return sorted({*_factories, *_entry_points(), *_provided})


@functools.cache
def _entry_points() -> dict[str, Callable[[], BackendFactory]]:
    from importlib.metadata import entry_points  # 30 ms, paid only when a kind is not registered

    return {point.name: point.load for point in entry_points(group="tessera.devices")}


def _find_factory(kind: str) -> BackendFactory | None:
    found = _factories.get(kind)
    if found is None and (load := _entry_points().get(kind)) is not None:
        found = _factories.setdefault(kind, load())
    if found is None and kind in _provided:
        found = _factories.setdefault(kind, provided_backend(kind))
    return found


def _connect(wanted: Device) -> DeviceBackend:
    factory = _find_factory(wanted.kind)
    if factory is None:
        raise DeviceError(
            f"device {wanted}: no backend serves devices of kind {wanted.kind!r}",
            hint=f"install a package with an entry point {wanted.kind!r} in the group 'tessera.devices', call "
            "register_backend, or stay on device='cpu'",
        )
    backend = factory(wanted)
    if not backend.is_available():
        raise DeviceError(
            f"device {wanted} is not available on this machine", hint="use a device that exists; 'cpu' always does"
        )
    return backend


class CpuBackend(DeviceBackend):
    """The host itself; all of its memory is one device."""

    dlpack_type = 1
    host_addressable = True

    @property
    def name(self) -> str:
        return platform.processor() or platform.machine()

    def is_available(self) -> bool:
        return self.device.index == 0

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Buffer:
        if ALIGNMENT % alignment:
            raise DeviceError(
                f"host memory is aligned to {ALIGNMENT} bytes, {alignment} were asked for",
                hint=f"ask for a power of two up to {ALIGNMENT}",
            )
        owner = aligned_empty((nbytes,), np.dtype(np.uint8))
        return Buffer(owner.ctypes.data, nbytes, self.device, owner)

    def copy_from_host(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def copy_to_host(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def copy_from_device(self, target: int, origin: Device, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def synchronize(self) -> None:
        """Host work is done when its call returns."""

    def export_to_stream(self, stream: int | None) -> None:
        if stream is not None:
            raise DeviceError(f"host memory has no streams, stream {stream} was asked for", hint="pass stream=None")

    def import_stream(self) -> int | None:
        return None


register_backend(HOST, CpuBackend)
