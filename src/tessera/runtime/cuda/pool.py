"""The memory of a GPU: taken from a pool of the driver in the order of streams, and kept for the next allocation.

Memory belongs to the stream that was current when it was allocated. When the last tensor on it goes, it comes back onto
a list of that stream, though work on it may still be under way: the next use of it comes later on the same
stream. Where other streams have used it, the stream waits for them first. What lies on the lists goes back to the
driver when a size is asked for that is not there and much is kept, and all of it when memory runs out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from threading import Lock
from typing import ClassVar, NamedTuple, final
from weakref import ref

from tessera.errors import ResourceError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.streams import FreeList, Stream, StreamHandle, order
from tessera.runtime.device.memory import DeviceMemory, PlainMemory

GRAIN = 512
_STEPS = 16
# Of a GPU's memory, the part that lists may keep while the driver is asked for other sizes.
_KEPT_PART = 8
_LOOKS = 16
# How many of the next sizes may serve instead of one.
_NEIGHBOURS = 4


@final
class SharedHome:
    """Where memory goes that other streams have used, too: back to its own stream, once that waits for them."""

    __slots__ = ("home", "users")

    def __init__(self, home: FreeList) -> None:
        self.home = home
        # By handle; None is an unknown stream.
        self.users: dict[int | None, StreamHandle | None] = {}

    @property
    def nbytes(self) -> int:
        return self.home.nbytes

    @property
    def owner(self) -> StreamHandle:
        return self.home.owner

    def append(self, pointer: int) -> None:
        self.home.owner.context.at_end(self._wait)
        self.home.append(pointer)

    def _wait(self) -> None:
        owner = self.home.owner
        if None in self.users or owner.is_gone:
            owner.context.synchronize()
            return
        for user in self.users:
            if user is not None:
                order(owner.context, user, owner.value)


def note_use(memory: object, stream: StreamHandle | None) -> None:
    """Memory is used on a stream, None for an unknown one: it is not used again before that is done."""
    if not isinstance(memory, DeviceMemory):
        return
    home = memory.home
    if isinstance(home, FreeList):
        if stream is not None and stream.value == home.owner.value:
            return
        home = SharedHome(home)
        memory.home = home
    if isinstance(home, SharedHome) and (stream is None or stream.value != home.owner.value):
        home.users[None if stream is None else stream.value] = stream


class Statistics(NamedTuple):
    """Bytes of one GPU: in tensors, kept for the next, held by the pool, and the most that the first two ever were."""

    used: int
    kept: int
    reserved: int
    peak: int


class Pool:
    """The memory of one GPU."""

    _made: ClassVar[dict[int, Pool]] = {}
    _lock: ClassVar[Lock] = Lock()
    _asked = 0  # bytes, of the driver, since the lists were last counted

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lists: list[ref[FreeList]] = []
        self._guard = Lock()
        self._cap = context.properties.memory // _KEPT_PART
        cu = driver.bindings()
        wanted = cu.CUmemPoolProps()
        wanted.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.handleTypes = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
        wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = context.index
        with context:
            self._pool = driver.check(cu.cuMemPoolCreate(wanted), f"making a pool of memory on cuda:{context.index}")
            # Kept until `trim` says otherwise: giving pages back costs far more than using them again.
            keep = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            every = cu.cuuint64_t((1 << 64) - 1)
            driver.check(cu.cuMemPoolSetAttribute(self._pool, keep, every), "setting up a pool of memory")
        self.handle = int(self._pool)

    @staticmethod
    def of(context: Context) -> Pool:
        found = Pool._made.get(context.index)
        if found is None:
            with Pool._lock:
                found = Pool._made.get(context.index)
                if found is None:
                    found = Pool._made[context.index] = Pool(context)
        return found

    def allocate(self, stream: Stream, nbytes: int) -> DeviceMemory:
        """Uninitialised memory for use on a stream, of so many bytes or a few more."""
        size = rounded(nbytes)
        try:
            home = stream.free[size]
            return PlainMemory(home.pop(), home)
        except (KeyError, IndexError):
            return self.take(stream, size)

    def take(self, stream: Stream, size: int) -> DeviceMemory:
        """Memory of a size that is rounded, where its list has none.

        It may be of a size a little larger, which has no other use: asking the driver takes far longer.
        """
        for larger in larger_sizes(size):
            kept = stream.free.get(larger)
            if kept:
                try:
                    return PlainMemory(kept.pop(), kept)
                except IndexError:  # another thread took the last one
                    continue
        home = stream.free.get(size)
        if home is None:
            with self._guard:
                home = stream.free.get(size)
                if home is None:
                    home = stream.free[size] = FreeList(size, stream.owner)
                    self._lists.append(ref(home))
        self._asked += size
        if self._asked > self._cap // _LOOKS:  # looking takes a while where there are many sizes
            self._asked = 0
            if self.kept() > self._cap:
                self._give_back()
        pointer, status = self._ask(stream, size)
        if status == driver.OUT_OF_MEMORY:
            self.trim()
            pointer, status = self._ask(stream, size)
            if status == driver.OUT_OF_MEMORY:
                self._refuse(size)
        driver.check_status(status, f"allocating {size:,} bytes on {stream.device}")
        return PlainMemory(pointer, home)

    def _ask(self, stream: Stream, size: int) -> tuple[int, int]:
        found = ctypes.c_uint64()
        with self.context as context:
            status = context.calls.allocate(ctypes.addressof(found), size, self.handle, stream.handle)
        return found.value, status

    def _refuse(self, size: int) -> None:
        free, total = self.context.free_memory()
        known = self.statistics()
        raise ResourceError(
            f"{size:,} bytes of memory on cuda:{self.context.index} cannot be had: tensors hold {known.used:,} bytes, "
            f"{free:,} of {total:,} are free",
            hint="free tensors, use smaller shapes or narrower dtypes; nvidia-smi shows who else holds memory",
        ) from None

    def kept(self) -> int:
        """The bytes on the lists."""
        return sum(len(one) * one.nbytes for one in self._known())

    def _known(self) -> list[FreeList]:
        with self._guard:
            found = [(one, one()) for one in self._lists]
            self._lists = [one for one, alive in found if alive is not None]
        return [alive for _, alive in found if alive is not None]

    def _give_back(self) -> None:
        for one in self._known():
            one.give_back()

    def trim(self) -> None:
        """Gives all that is not in use back to the GPU; waits for its work."""
        self._give_back()
        self.context.synchronize()
        with self.context:
            driver.check(driver.bindings().cuMemPoolTrimTo(self._pool, 0), "giving memory back")

    def statistics(self) -> Statistics:
        """How much is in use, kept and reserved."""
        kept, taken = self.kept(), self._attribute("USED_MEM_CURRENT")
        reserved, peak = self._attribute("RESERVED_MEM_CURRENT"), self._attribute("USED_MEM_HIGH")
        return Statistics(max(taken - kept, 0), kept, reserved, peak)

    def reset_peak(self) -> None:
        """From now on the peak is that of what follows."""
        cu = driver.bindings()
        which = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH
        driver.check(cu.cuMemPoolSetAttribute(self._pool, which, cu.cuuint64_t(0)), "resetting the peak of memory")

    def _attribute(self, name: str) -> int:
        cu = driver.bindings()
        which = getattr(cu.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")
        return int(driver.check(cu.cuMemPoolGetAttribute(self._pool, which), "asking a pool of memory"))


def larger_sizes(size: int) -> Iterator[int]:
    """The next sizes above one: up to a quarter more."""
    for _ in range(_NEIGHBOURS):
        size = rounded(size + 1)
        yield size


def rounded(nbytes: int) -> int:
    """The size that is allocated for so many bytes: one of 16 between powers of two.

    So tensors of many lengths share what few lists keep, and do not ask the driver each; for a sixteenth more at most.
    """
    grain = max(GRAIN, (1 << max(nbytes - 1, 1).bit_length() - 1) // _STEPS)
    return max(-(-nbytes // grain), 1) * grain
