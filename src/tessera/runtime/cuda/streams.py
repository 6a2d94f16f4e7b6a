"""Streams and events: in which order a GPU does things.

Work goes to the current stream: the default one, unless a `with stream:` is around it. The default stream is CUDA's
legacy default stream, which is also torch's, so the two libraries see each other's work in the order of their calls.
Streams made here run beside it; events order them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Protocol, final

from tessera.errors import DeviceError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.device.device import Device, default_device, device

LEGACY, PER_THREAD = 1, 2
_NON_BLOCKING, _TIMING_OFF = 1, 2
_BEFORE = -1

# True once there is a stream besides the default ones: until then uses of memory need not be noted.
SEVERAL: list[bool] = []
# The current stream of each GPU, by number; under _BEFORE, the mapping that a `with` statement has replaced.
_current: ContextVar[Mapping[int, Any]] = ContextVar("current streams", default=MappingProxyType({}))
current_streams = _current.get
# Spare events: one that has been recorded and waited for serves again at once.
_spare: dict[int, list[int]] = {}
_defaults: dict[int, Stream] = {}


@final
class StreamHandle:
    """The driver's handle of a stream, destroyed with the last that needs it: a stream, or memory from it."""

    __slots__ = ("context", "is_gone", "owned", "value")

    def __init__(self, context: Context, value: int, *, owned: bool) -> None:
        self.context = context
        self.value = value
        self.owned = owned
        self.is_gone = False
        """Whether it is destroyed; the collector may end it before lists that lead to it."""

    def __del__(self) -> None:
        if self.owned:
            self.context.at_end(self._destroy)

    def _destroy(self) -> None:
        self.is_gone = True
        self.context.calls.destroy_stream(self.value)

    def wait_for(self, other: int) -> None:
        """Makes later work on the stream wait for the work so far on `other`, a stream of the same GPU."""
        order(self.context, other, self.value)


class FreeList(list[int]):
    """Addresses of memory of one size that its stream may use again."""

    __slots__ = ("__weakref__", "nbytes", "owner")

    def __init__(self, nbytes: int, owner: StreamHandle) -> None:
        super().__init__()
        self.nbytes = nbytes
        self.owner = owner

    def give_back(self) -> None:
        """Hands all of it to the driver, in the order of the stream."""
        with self.owner.context:
            self._free()

    def _free(self) -> None:
        context, stream = self.owner.context, self.owner.value
        free = context.calls.free
        if self.owner.is_gone:  # its work need not be done, and other streams do not wait for it
            context.calls.synchronize_context()
            stream = LEGACY
        while self:
            try:
                pointer = self.pop()
            except IndexError:  # another thread took the last one
                return
            free(pointer, stream)

    def __del__(self) -> None:
        if self:
            self.owner.context.at_end(self._free)


class Recorder(Protocol):
    """Takes launches of kernels instead of running them: a `Graph`, while it is recorded."""

    @property
    def device(self) -> Device: ...


@final
class Stream:
    """A queue of work on a GPU. `with stream:` makes it the current one of its GPU, in this thread or task.

    `free` is memory that has been used on this stream and serves again on it. `counters` are addresses of zeroed memory
    by size, for kernels that need some; `workspaces` keeps that memory. `arenas` are memory that programs take while
    they are launched and put back: address, bytes, and what keeps it.
    """

    __slots__ = ("__weakref__", "arenas", "counters", "device", "free", "graph", "handle", "owner", "workspaces")

    owner: StreamHandle
    handle: int
    device: Device
    free: dict[int, FreeList]
    counters: dict[int, int]
    workspaces: list[object]
    arenas: list[tuple[int, int, object]]
    graph: Recorder | None

    def __init__(self, device: str | Device | None = None, *, priority: int = 0) -> None:
        where = cuda_device(device)
        context = Context.of(where.index)
        found = ctypes.c_void_p()
        with context:
            status = context.calls.create_stream(ctypes.addressof(found), _NON_BLOCKING, priority)
        driver.check_status(status, f"making a stream of {where}")
        self._set(StreamHandle(context, found.value or 0, owned=True), where)

    def _set(self, owner: StreamHandle, where: Device) -> None:
        self.owner, self.handle, self.device = owner, owner.value, where
        self.free, self.counters, self.workspaces, self.arenas, self.graph = {}, {}, [], [], None
        if owner.value != LEGACY and not SEVERAL:
            SEVERAL.append(True)

    @classmethod
    def wrap(cls, handle: int, device: str | Device | None = None) -> Stream:
        """A stream that another library made, such as `torch.cuda.current_stream().cuda_stream`. It must live on."""
        where = cuda_device(device)
        number = int(handle) or LEGACY
        if number == LEGACY and (found := _defaults.get(where.index)) is not None:
            return found
        self = cls.__new__(cls)
        self._set(StreamHandle(Context.of(where.index), number, owned=False), where)
        return self if number != LEGACY else _defaults.setdefault(where.index, self)

    def recording(self, graph: Recorder) -> Stream:
        """The same stream, where kernels are put into a graph instead of being run."""
        other = Stream.__new__(Stream)
        other.owner, other.handle, other.device = self.owner, self.handle, self.device
        other.free, other.counters, other.workspaces, other.arenas, other.graph = self.free, {}, [], [], graph
        return other

    @property
    def context(self) -> Context:
        return self.owner.context

    def synchronize(self) -> None:
        """Waits until all work on this stream is done."""
        with self.context as context:
            status = context.calls.synchronize_stream(self.handle)
        driver.check_status(status, f"waiting for a stream of {self.device}")

    def is_done(self) -> bool:
        """Whether all work on this stream is done."""
        with self.context as context:
            status = context.calls.query_stream(self.handle)
        if status not in (0, driver.PENDING):
            driver.refuse(status, f"asking a stream of {self.device}")
        return status == 0

    def record(self, event: Event | None = None) -> Event:
        """An event that happens when the work so far is done."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Makes later work on the stream wait for an event."""
        with self.context as context:
            status = context.calls.wait_event(self.handle, event.handle, 0)
        driver.check_status(status, f"ordering a stream of {self.device}")

    def wait_for(self, other: Stream) -> None:
        """Makes later work on the stream wait for the work so far on another stream."""
        if other.device is self.device:
            self.owner.wait_for(other.handle)
        else:
            self.wait(other.record())

    def __enter__(self) -> Stream:
        before = _current.get()
        _current.set({**before, self.device.index: self, _BEFORE: before})
        return self

    def __exit__(self, *exc: object) -> None:
        _current.set(_current.get()[_BEFORE])

    def __repr__(self) -> str:
        name = {LEGACY: "default", PER_THREAD: "per-thread default"}.get(self.handle, hex(self.handle))
        return f"Stream({name}, device={self.device})"


@final
class Event:
    """A point in the work of a stream. With `timing`, the time between two such points can be told."""

    __slots__ = ("context", "device", "handle")

    def __init__(self, device: str | Device | None = None, *, timing: bool = False) -> None:
        self.device = cuda_device(device)
        self.context = Context.of(self.device.index)
        self.handle = _new_event(self.context, 0 if timing else _TIMING_OFF)

    def record(self, stream: Stream | None = None) -> None:
        """Happens when the work so far on a stream is done, the current one unless another is named."""
        chosen = current_stream(self.device) if stream is None else stream
        with self.context as context:
            status = context.calls.record_event(self.handle, chosen.handle)
        driver.check_status(status, f"recording an event on {self.device}")

    def is_done(self) -> bool:
        """Whether it has happened; an event that was never recorded has."""
        with self.context as context:
            status = context.calls.query_event(self.handle)
        if status not in (0, driver.PENDING):
            driver.refuse(status, f"asking an event of {self.device}")
        return status == 0

    def synchronize(self) -> None:
        """Waits until it has happened."""
        with self.context as context:
            status = context.calls.synchronize_event(self.handle)
        driver.check_status(status, f"waiting for an event of {self.device}")

    def milliseconds_until(self, end: Event) -> float:
        """The time on the GPU from this event to another; both were made with timing, and have happened."""
        found = ctypes.c_float()
        with self.context as context:
            status = context.calls.elapsed_time(ctypes.addressof(found), self.handle, end.handle)
        driver.check_status(status, "telling the time between two events")
        return found.value

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.context.at_end(lambda: self.context.calls.destroy_event(self.handle))


def _new_event(context: Context, flags: int) -> int:
    found = ctypes.c_void_p()
    with context:
        status = context.calls.create_event(ctypes.addressof(found), flags)
    driver.check_status(status, f"making an event of cuda:{context.index}")
    return found.value or 0


def order(context: Context, before: int, after: int) -> None:
    """Makes later work on the stream `after` wait for the work so far on `before`; handles of one GPU."""
    if before == after:
        return
    spare = _spare.setdefault(context.index, [])
    try:
        event = spare.pop()
    except IndexError:
        event = _new_event(context, _TIMING_OFF)
    with context:
        status = context.calls.record_event(event, before) or context.calls.wait_event(after, event, 0)
    spare.append(event)
    driver.check_status(status, f"ordering two streams of cuda:{context.index}")


def cuda_device(given: str | Device | None) -> Device:
    """A CUDA device: the one named, else the default device where that is one, else cuda:0."""
    found = default_device() if given is None else device(given)
    if found.kind == "cuda":
        return found
    if given is None:
        return Device("cuda", 0)
    raise DeviceError(f"expected a CUDA device, got {found}", hint="name one, such as 'cuda:0'")


def default_stream(device: str | Device | None = None) -> Stream:
    """The legacy default stream of a GPU."""
    return Stream.wrap(LEGACY, device)


def current_stream(device: str | Device | None = None) -> Stream:
    """The stream of a GPU that work goes to here and now."""
    where = cuda_device(device)
    return _current.get().get(where.index) or default_stream(where)


def synchronize(device: str | Device | None = None) -> None:
    """Waits until a GPU has done all that this process asked of it."""
    Context.of(cuda_device(device).index).synchronize()
