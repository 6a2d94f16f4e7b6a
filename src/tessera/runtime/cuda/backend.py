"""CUDA devices: memory from the pool, copies in the order of the current stream, exchange with other libraries."""

from __future__ import annotations

from functools import partial

from tessera.dtypes.types import DType
from tessera.errors import DeviceError, EffectError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.exchange import described, taken
from tessera.runtime.cuda.pool import Pool, note_use
from tessera.runtime.cuda.staging import Staging
from tessera.runtime.cuda.streams import LEGACY, PER_THREAD, Stream, StreamHandle, current_stream, order
from tessera.runtime.device.device import Buffer, Device, DeviceBackend
from tessera.runtime.device.memory import ALIGNMENT, Array
from tessera.runtime.device.ownership import owner_of
from tessera.runtime.tensor.dlpack import Lender

_MOST_ALIGNMENT = 256
_NO_STREAM = -1


class CudaBackend(DeviceBackend):
    """One GPU of NVIDIA's."""

    dlpack_type = 2

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.context = Context.of(device.index)
        self.pool = Pool.of(self.context)
        self.staging = Staging.of(self.context)

    @property
    def name(self) -> str:
        return self.context.properties.name

    def is_available(self) -> bool:
        return True  # or making the context would have said why not

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Buffer:
        if _MOST_ALIGNMENT % alignment:
            raise DeviceError(
                f"memory of {self.device} is aligned to {_MOST_ALIGNMENT} bytes, {alignment} were asked for",
                hint=f"ask for a power of two up to {_MOST_ALIGNMENT}",
            )
        memory = self.pool.allocate(current_stream(self.device), nbytes)
        return Buffer(memory.address, nbytes, self.device, memory)

    def copy_from_host(self, target: int, source: int, nbytes: int) -> None:
        self.staging.to_device(target, source, nbytes, current_stream(self.device))

    def copy_to_host(self, target: int, source: int, nbytes: int) -> None:
        self.staging.to_host(target, source, nbytes, self._running_stream("a copy to the host"))

    def copy_from_device(self, target: int, origin: Device, source: int, nbytes: int) -> None:
        stream = self._running_stream("a copy")
        doing = f"copying {nbytes:,} bytes from {origin} to {self.device}"
        if origin is self.device:
            with self.context as context:
                status = context.calls.on_device(target, source, nbytes, stream.handle)
            driver.check_status(status, doing)
            return
        far, theirs = Context.of(origin.index), current_stream(origin)
        stream.wait(theirs.record())
        with self.context as context:
            status = context.calls.to_peer(target, context.handle, source, far.handle, nbytes, stream.handle)
        driver.check_status(status, doing)
        # Its memory may serve again on that stream, which therefore waits.
        theirs.wait(stream.record())

    def gather(self, array: Array) -> Buffer | None:
        from tessera.runtime.cuda.gather import gather

        stream = self._running_stream("a copy")
        buffer = self.allocate(array.nbytes)
        gather(self.device.index, buffer.pointer, array, stream.handle)
        note_array(array, stream)
        return buffer

    def fill_zeros(self, target: int, nbytes: int) -> None:
        """Zeros, in the order of the current stream."""
        with self.context as context:
            status = context.calls.fill_bytes(target, 0, nbytes, current_stream(self.device).handle)
        driver.check_status(status, f"filling {nbytes:,} bytes of {self.device}")

    def _running_stream(self, what: str) -> Stream:
        stream = current_stream(self.device)
        if stream.graph is not None:
            raise EffectError(
                f"{what} of {self.device} cannot be recorded in a graph", hint="copy before the recording or after it"
            )
        return stream

    def synchronize(self) -> None:
        self.context.synchronize()

    def note_use(self, array: Array) -> None:
        note_array(array, current_stream(self.device))

    def export_to_stream(self, stream: int | None) -> None:
        wanted = LEGACY if stream is None else int(stream)
        if wanted == 0 or wanted < _NO_STREAM:
            raise DeviceError(
                f"expected a stream in DLPack's numbering, got {wanted}",
                hint="1 is the legacy default stream, 2 that of the thread, -1 asks for no order; others are handles",
            )
        if wanted != _NO_STREAM:
            order(self.context, current_stream(self.device).handle, wanted)

    def lend(self, array: Array, stream: int | None) -> None:
        wanted = LEGACY if stream is None else int(stream)
        # Which stream the default one of a thread is, another thread cannot say.
        known = wanted not in (_NO_STREAM, PER_THREAD)
        note_use(owner_of(array), StreamHandle(self.context, wanted, owned=False) if known else None)

    def import_stream(self) -> int | None:
        return current_stream(self.device).handle

    def export_array(self, array: Array) -> dict[str, object]:
        return described(array, self.device)

    @classmethod
    def import_array(cls, given: object) -> tuple[Array, DType, Buffer]:
        return taken(given)


def note_array(array: Array, stream: Stream) -> None:
    """The memory of an array is used on a stream, and must not serve others before that is done."""
    owner = owner_of(array)
    if isinstance(owner, Lender):
        # Its owner knows nothing of our streams, and most work on the default stream.
        if stream.handle != LEGACY:
            owner.before[stream.handle] = partial(order, stream.context, stream.handle, LEGACY)
    else:
        note_use(owner, stream.owner)
