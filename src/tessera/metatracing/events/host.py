"""Events of programs that run on a processor: lines of its caches that tiles touch, and registers of the emitted code.

A processor's programs have no lanes: vectors go along the rows of tiles, so a request is a row of a tile here.
Addresses follow from the view's sizes and strides and the tile's offsets, one program instance and one iteration after
the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tessera import knobs
from tessera.cached_property import cached_property
from tessera.device_names import is_host
from tessera.errors import DeviceError
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.metatracing.events.counting import distinct
from tessera.metatracing.events.kinds import LINE, AccessType, MemoryAccessEvent
from tessera.metatracing.events.tile_work import Amounts, Geometry, TileWorkCounter, laid_out, spread, unravelled
from tessera.metatracing.events.tracers import COALESCED, MemoryAccessTrace, RegisterPressurePoint
from tessera.runtime.device.memory import ALIGNMENT
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.client import described
from tessera.tiers.records import Described
from tessera.tile.calls.settings import Settings, settings
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from tessera.tile.calls.function import Kernel
    from tessera.tile.calls.instance import Instance

Array = NDArray[Any]
SAMPLED_PROGRAMS = 64
"""Program instances that are sampled: those of large grids are much alike, but for edges and masks."""


@dataclass(frozen=True)
class HostResources:
    """The vector registers of the emitted code, and the bytes of vectors that did not fit into them."""

    vector_registers: int
    spilled_bytes: int


@dataclass
class HostSite:
    """One load or store of the tile IR, in all its sampled executions."""

    name: str
    argument: int
    stores: bool
    first: int
    requests: int = 0
    asked: int = 0
    lines: int = 0
    hits: int = 0
    touched: set[int] = field(default_factory=set[int])


class _Lines(TileWorkCounter):
    """Goes through a function, and notes the lines that its loads and stores touch."""

    def __init__(self, function: tile.FuncOp, geometry: Sequence[Geometry | None], arguments: Described) -> None:
        super().__init__(function, geometry, arguments)
        self.sites: dict[Operation, HostSite] = {}
        self.is_complete = True
        self._begins: dict[SSAValue, int | None] = {}
        self._seen: dict[int, set[int]] = {}
        self._starts: list[int] = []
        for argument, given in zip(function.arguments, [*arguments, *[None] * len(geometry)], strict=False):
            self._begins[argument] = 0
            # Memory begins at a line, unless it is known not to.
            aligned = given.alignment if isinstance(given, Meta) else ALIGNMENT
            self._starts.append(aligned if aligned < LINE else 0)

    def _op(self, op: Operation, found: Amounts) -> None:
        super()._op(op, found)
        if isinstance(op, tile.ViewOp):
            base, offset = self._begins.get(op.base), self._number(op.offset)
            self._begins[op.result] = None if base is None or offset is None else base + offset
        elif isinstance(op, scf.IfOp) and any(isinstance(one, tile.LoadOp | tile.StoreOp) for one in op.walk()):
            self.is_complete = False  # both branches were counted

    def _loop(self, op: scf.ForOp, found: Amounts) -> None:
        low, high, step = (self._number(one) for one in (op.lb, op.ub, op.step))
        if low is None or high is None or not step:
            self.is_complete = False
            self._block(op.body.block)
            return
        for value in range(low, high, step):
            self._known[op.body.block.args[0]] = value
            self._block(op.body.block)

    def moved(
        self, op: Operation, view: SSAValue, offsets: Sequence[SSAValue], value: SSAValue, found: Amounts
    ) -> list[int]:
        argument = self._function.arguments.index(tile.base_of(view))  # pyright: ignore[reportArgumentType]
        steps = self._steps(view, offsets, tile_type(value).get_shape())
        if steps is None:
            self.is_complete = False
            return list(tile_type(value).get_shape())
        _, *axes = steps
        *outer, last = steps
        rows = np.zeros(1, np.int64)
        for along in outer:
            rows = (rows[:, None] + along).ravel()
        if not len(rows) or not len(last):
            return [len(along) for along in axes]
        itemsize = tile_dtype(value).storage.itemsize
        begins: Array = self._starts[argument] + itemsize * (rows[:, None] + last)
        lines: Array = np.sort(np.concatenate([begins // LINE, (begins + itemsize - 1) // LINE], axis=1), axis=1)
        stores = not isinstance(op, tile.LoadOp)
        site = self.sites.setdefault(op, HostSite(op.name, argument, stores, int(begins.min())))
        before, now = self._seen.setdefault(argument, set[int]()), set[int](np.unique(lines).tolist())
        count = int(distinct(lines).sum())
        site.requests += len(rows)
        site.asked += itemsize * begins.size
        site.lines += count
        site.hits += count - len(now - before)
        site.touched |= now
        before |= now
        return [len(along) for along in axes]

    def _steps(self, view: SSAValue, offsets: Sequence[SSAValue], shape: Sequence[int]) -> list[Array] | None:
        """Offsets in elements from the start of the argument, by axes, of the part of a tile inside of its view."""
        sizes, strides = self._views.get(view, ([], []))
        found = [*sizes, *strides, *(self._number(one) for one in offsets), self._begins.get(view)]
        known, rank = [one for one in found if one is not None], len(shape)
        if len(known) != 3 * rank + 1:
            return None
        made: list[Array] = [np.array([known[-1]], np.int64)]
        for axis, extent in enumerate(shape):
            size, stride, offset = known[axis], known[rank + axis], known[2 * rank + axis]
            made.append(np.arange(max(0, offset), min(size, offset + extent), dtype=np.int64) * stride)
        return made


@dataclass(frozen=True)
class HostExecution:
    """A kernel as a processor runs it on some arguments."""

    instance: Instance
    arguments: Described
    chosen: Settings

    @staticmethod
    def of(kernel: Kernel, *args: Any, **kwargs: Any) -> HostExecution:
        """A kernel on such arguments; it is lowered, and not run."""
        chosen = settings()
        if chosen is None or not is_host(chosen.target):
            raise DeviceError(
                f"{kernel.__name__}: nothing is compiled for a processor here",
                hint="leave TESSERA_INTERPRET and TESSERA_BACKEND as they are; for a GPU take KernelExecution",
            )
        bound = kernel.bound(args, kwargs)
        values = tuple(bound.given.values())
        return HostExecution(kernel.lower(*values, **bound.static), described(values), chosen)

    @cached_property
    def _laid_out(self) -> tuple[tile.FuncOp, tuple[int, ...], list[Geometry | None]]:
        return laid_out(self.instance, self.arguments)

    @property
    def grid(self) -> tuple[int, ...]:
        return self._laid_out[1]

    @property
    def programs(self) -> int:
        return prod(self.grid)

    @cached_property
    def _sample(self) -> list[int]:
        return spread(self.programs, SAMPLED_PROGRAMS)

    @property
    def scale(self) -> float:
        """How many program instances each sampled one stands for."""
        return self.programs / len(self._sample) if self._sample else 0.0

    @cached_property
    def walked(self) -> tuple[tuple[HostSite, ...], bool]:
        """Loads and stores of some program instances, and whether all their addresses were known."""
        function, grid, geometry = self._laid_out
        reader = _Lines(function, geometry, self.arguments)
        for number in self._sample:
            reader.program(unravelled(number, grid))
        return tuple(reader.sites.values()), reader.is_complete

    def nbytes(self, argument: int) -> int | None:
        given = self.arguments[argument] if argument < len(self.arguments) else None
        return given.nbytes if isinstance(given, Meta) else None

    @cached_property
    def assembly(self) -> str:
        """The instructions that calls run, as LLVM writes them."""
        from tessera.tile.calls.compiling import lowered, source_of

        return lowered(source_of(self.instance), self.chosen, Facts()).assembly()

    @cached_property
    def resources(self) -> HostResources:
        from tessera.targets.cpu import instructions

        body = instructions.functions_of(self.assembly)[self.instance.name]
        return HostResources(instructions.registers(body)["vector_registers"], instructions.spilled_bytes(body))

    @property
    def registers_and_shared(self) -> tuple[int | None, int | None]:
        """The vectors of its code; a processor has no shared memory."""
        return self.resources.vector_registers, 0


class HostMemoryPatternTracer:
    """Traces the memory accesses of a processor's programs. There is no shared memory: nothing has banks."""

    def trace_memory_patterns(self, execution: HostExecution) -> MemoryAccessTrace:
        now = time.perf_counter_ns()
        sites, complete = execution.walked
        accesses = tuple(_event(execution, site, now) for site in sites)
        used = execution.resources
        spills = ()
        if used.spilled_bytes:
            spills = (MemoryAccessEvent(AccessType.REGISTER_SPILL, 0, used.spilled_bytes, True, timestamp_ns=now),)
        threads = max(1, knobs.num_threads.value)
        busy = min(1.0, execution.programs / threads)
        pressure = RegisterPressurePoint(used.vector_registers, used.spilled_bytes, busy)
        return MemoryAccessTrace(accesses, (), (pressure,), spills, complete)


def _event(execution: HostExecution, site: HostSite, now: int) -> MemoryAccessEvent:
    """A load or store, for the whole call."""
    scale = execution.scale
    whole = round(scale * LINE * len(site.touched))
    size = execution.nbytes(site.argument)
    efficiency = min(1.0, site.asked / (LINE * site.lines)) if site.lines else 1.0
    return MemoryAccessEvent(
        AccessType.of("global", site.stores),
        site.first,
        round(scale * site.asked),
        efficiency >= COALESCED,
        cache_hit_ratio=site.hits / site.lines if site.lines else 0.0,
        timestamp_ns=now,
        requests=round(scale * site.requests),
        sectors=round(scale * site.lines),
        distinct_bytes=max(1, whole if size is None else min(whole, size)),
        argument=site.argument,
        instruction=site.name,
        unit_bytes=LINE,
    )
