"""Kernels of sm_90a in the interpreter: warpgroups that run on their own, each on whole tiles, and their memory.

A warpgroup's threads go on together. A number that is not the same for all of them is one for each (`Lanes`), and a
branch on it is taken by some. Copies land, and dots are done, when they are waited for: a tile that is read too early
is NaN, and one that is overwritten too early is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from tessera.errors import CompileError, RaceError
from tessera.interpreters.core.concurrency import CooperativeThreads
from tessera.interpreters.core.engine import Frame, Values
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import Array
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.interpreter.nv import NvFrame, Tiles
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import SharedType, layout_of, shared_type

THREADS = 128
WARPS = THREADS // 32


@dataclass(frozen=True)
class Lanes:
    """A value for each thread of a warpgroup."""

    values: tuple[Any, ...]

    def __bool__(self) -> bool:
        # Threads part at branches; the other ops that ask are loops.
        return same(self, "the condition of a loop")

    @staticmethod
    def of(values: Sequence[Any]) -> Any:
        """One value where all are the same."""
        first = values[0]
        same = all(value is first or (isinstance(value, int) and value == first) for value in values)
        return first if same else Lanes(tuple(values))


def at(value: Any, thread: int) -> Any:
    """The value of one thread."""
    return value.values[thread] if isinstance(value, Lanes) else value


def same(value: Any, what: str) -> Any:
    """A value that all threads share."""
    if isinstance(value, Lanes):
        raise CompileError(f"{what} is not the same for all threads of a warpgroup")
    return value


@lru_cache(maxsize=64)
def owners(layout: Layout, shape: tuple[int, ...]) -> Array:
    """For each element of a tile the first thread of a warpgroup that holds it."""
    found = np.full(shape, -1)
    for thread in reversed(range(min(THREADS, layout.thread_count))):
        bases = [layout.base(thread, axis) for axis in range(len(shape))]
        for register in range(layout.count):
            element = tuple(base + layout.offset(register, axis) for axis, base in enumerate(bases))
            if all(one < size for one, size in zip(element, shape, strict=True)):
                found[element] = thread
    return found


@dataclass
class Barrier:
    """An mbarrier: arrivals and bytes that its phase still lacks, and copies whose bytes are on their way."""

    arrivals: int = 0
    missing: int = 0
    bytes: int = 0
    phases: int = 0
    inbound: list[Callable[[], int]] = field(default_factory=list[Callable[[], int]])

    def arrive(self, count: int, nbytes: int = 0) -> None:
        if not self.arrivals:
            raise RaceError(
                "an mbarrier is used before it was initialised", hint="put a barrier behind nv.mbarrier_init"
            )
        self.missing -= count
        self.bytes += nbytes
        if self.missing < 0:
            raise RaceError(
                f"more than the {self.arrivals} arrivals of an mbarrier", hint="count the threads that arrive"
            )
        self._end()

    def _end(self) -> None:
        if self.missing == 0 and self.bytes == 0:
            self.phases += 1
            self.missing = self.arrivals

    def ended(self, parity: int) -> bool:
        """Whether the phase of a parity has ended; copies land now, since a warp group waits for them."""
        landing, self.inbound = self.inbound, []
        for copy in landing:
            self.bytes -= copy()
            self._end()
        return self.phases % 2 != parity % 2


@dataclass
class Meeting:
    """A named barrier: how many threads have come, and how often it opened."""

    come: int = 0
    opened: int = 0

    def arrive(self, threads: int, wanted: int) -> None:
        self.come += threads
        if self.come > wanted:
            raise RaceError(
                f"{self.come} threads came to a barrier of {wanted}", hint="give the barriers other numbers"
            )
        if self.come == wanted:
            self.come, self.opened = 0, self.opened + 1


@dataclass
class SharedTiles(Tiles):
    """Tiles with the op and the steps that lead to them, by which the same tiles of another block are found."""

    origin: Operation
    steps: tuple[int | SharedType, ...] = ()

    def slot(self, number: int) -> SharedTiles:
        part = super().slot(number)
        return SharedTiles(part.type, part.array, part.written, part.read, self.origin, (*self.steps, number))

    def recast(self, type_: SharedType) -> SharedTiles:
        """The same memory as tiles of other sizes."""
        before, sizes = self.type, type_.shape
        if type_.rows != before.rows:
            array = self.array.reshape(sizes)
        elif sizes[:-1] == before.shape[:-1] and type_.columns <= before.columns:
            array = self.array[..., : type_.columns]
        else:
            wide, across = before.shape[-1] // before.panels, type_.panels
            apart = self.array.reshape(*before.shape[:-1], before.panels, wide)
            outer = np.moveaxis(apart, -2, -3).reshape(*sizes[:-2], across, type_.rows, wide)
            array = np.moveaxis(outer, -3, -2)
            array = array.reshape(sizes) if across == 1 else array
        if not np.shares_memory(array, self.array):
            raise CompileError(f"{before} is not seen as {type_} in place")
        never = np.full(sizes[:-2], -1)
        return SharedTiles(type_, array, never, never.copy(), self.origin, (*self.steps, type_))

    def there(self, block: Block) -> SharedTiles:
        """The same tiles in another block."""
        found = block.alloc(self.origin)
        for step in self.steps:
            found = found.slot(step) if isinstance(step, int) else found.recast(step)
        return found


@dataclass
class Block:
    """One block of threads: its shared memory, its barriers, and what was written there and not fenced."""

    number: int
    rank: int
    threads: int
    launch: Launch
    cluster: list[Block] = field(default_factory=list)
    held: dict[Operation, Any] = field(default_factory=dict[Operation, Any])
    named: dict[int, Meeting] = field(default_factory=dict[int, Meeting])
    unfenced: list[tuple[int, Array]] = field(default_factory=list[tuple[int, Array]])

    def alloc(self, op: Operation) -> SharedTiles:
        if op not in self.held:
            assert isinstance(op, nv.AllocOp)
            type_ = shared_type(op.result)
            never = np.full(type_.shape[:-2], -1)
            fresh = NvFrame(self.launch.machine, chance=self.launch.chance).fresh(type_.shape, type_.dtype)
            self.held[op] = SharedTiles(type_, fresh, never, never.copy(), op)
        return self.held[op]

    def once(self, op: Operation, make: Callable[[], Any]) -> Any:
        """The result of an op that all warp groups of the block share."""
        if op not in self.held:
            self.held[op] = make()
        return self.held[op]

    def check_fenced(self, memory: Array) -> None:
        """Raises a RaceError where memory was written by threads and not fenced: copies and dots may not see it."""
        if any(np.shares_memory(memory, written) for _, written in self.unfenced):
            raise RaceError(
                "a copy or dot reads memory that a thread wrote, without a fence", hint="put nv.fence<async> behind it"
            )


@dataclass
class Launch:
    """All blocks of a kernel, and the counters they share."""

    machine: Machine
    chance: np.random.Generator | None
    threads: CooperativeThreads
    blocks: int
    grid: tuple[int, ...]
    counters: list[int] = field(default_factory=lambda: [0] * hopper.MOST_COUNTERS)


@dataclass
class Pending:
    """The accumulator of a dot in flight: it has a value when the dot is done."""

    finish: Callable[[], Array]
    value: Array | None = None


@dataclass
class WarpgroupFrame(NvFrame):
    """One warp group: its running threads, and its dots and stores in flight."""

    block: Block = field(kw_only=True)
    group: int = 0
    active: tuple[bool, ...] = (True,) * THREADS
    dots: list[Pending] = field(default_factory=list[Pending])
    stores: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    sent: list[list[Callable[[], None]]] = field(default_factory=list[list[Callable[[], None]]])

    @property
    def running(self) -> list[int]:
        """The threads that run."""
        return [thread for thread in range(THREADS) if self.active[thread]]

    def wait(self, ready: Callable[[], bool], waits_for: str) -> None:
        self.block.launch.threads.wait(ready, waits_for)

    def meet(self, number: int, wanted: int, *, stay: bool) -> None:
        """Comes to a named barrier."""
        meeting = self.block.named.setdefault(number, Meeting())
        opened = meeting.opened
        meeting.arrive(len(self.running), wanted)
        if stay:
            self.wait(lambda: meeting.opened > opened, f"barrier {number}")

    def perform(self, op: Operation, operands: Values) -> Values:
        if isinstance(op, nv.AllocOp):
            return [self.block.alloc(op)]
        if isinstance(op, nv.BarrierOp):
            self.meet(0, self.block.threads, stay=True)
        if isinstance(op, scf.IfOp) and isinstance(operands[0], Lanes):
            return self._diverge(op, operands[0])
        if any(isinstance(value, Pending) for value in operands) and type(op) not in PASSING:
            raise RaceError(
                f"{op.name} reads an accumulator whose dot may still run", hint="put nv.wgmma_wait before it"
            )
        if any(isinstance(value, Lanes) for value in operands) and type(op) not in BY_THREAD:
            return self._each(op, operands)
        found = super().perform(op, operands)
        if isinstance(op, nv.WriteOp):
            self.block.unfenced.append((self.group, operands[1].array))
        return found

    def _each(self, op: Operation, operands: Values) -> Values:
        """An op on numbers, thread by thread."""
        if not op.has_trait(Pure):
            raise CompileError(f"operands of {op.name} are not the same for all threads of a warpgroup")
        each = [
            super(WarpgroupFrame, self).perform(op, [at(value, thread) for value in operands])
            for thread in range(THREADS)
        ]
        return [Lanes.of(values) for values in zip(*each, strict=True)]

    def _diverge(self, op: scf.IfOp, condition: Lanes) -> Values:
        """Some threads take one branch, some the other."""
        before, found = self.active, list[Values]()
        for region, wanted in ((op.true_region, True), (op.false_region, False)):
            self.active = tuple(
                runs and bool(flag) is wanted for runs, flag in zip(before, condition.values, strict=True)
            )
            if any(self.active) and region.blocks:
                found.append(self.run(region.block, []))
        self.active = before
        if not op.results:
            return []
        if len(found) == 1:
            return found[0]
        yes, no = found
        flags = np.array([bool(flag) for flag in condition.values])
        return [_merged(result, flags, a, b) for result, a, b in zip(op.results, yes, no, strict=True)]


def _merged(result: SSAValue, flags: Array, yes: Any, no: Any) -> Any:
    """Merges the values of both branches, thread by thread."""
    if isinstance(result.type, TensorType):
        held = owners(layout_of(result), tile_type(result).get_shape())
        merged: Array = np.array(no)
        merged[flags[held]] = yes[flags[held]]
        return merged
    return Lanes.of([at(yes if flag else no, thread) for thread, flag in enumerate(flags)])


PASSING: set[type[Operation]] = {scf.ForOp, scf.IfOp, scf.WhileOp}
"""Ops that hand on accumulators of dots in flight."""
BY_THREAD: set[type[Operation]] = set()
"""Ops that take a value for each thread."""


def warpgroup(frame: Frame) -> WarpgroupFrame:
    """The frame of an op for sm_90a: such ops run in warp groups alone."""
    assert isinstance(frame, WarpgroupFrame), "ops for sm_90a run in warpgroups"
    return frame
