"""Frames that watch a kernel as it runs, as `Checks` asks, and record its accesses to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.interpreters.core.engine import Frame, Values
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.places import Placed, placed
from tessera.interpreters.core.views import Array, ArrayView
from tessera.interpreters.sanitizers.access_trace import Access, AccessKind, Trace
from tessera.interpreters.sanitizers.bounds import MemoryOp, check_bounds, check_index, check_places
from tessera.interpreters.sanitizers.checks import Checks, NumericChecks
from tessera.interpreters.sanitizers.padding import Mark, Padding
from tessera.interpreters.sanitizers.sentinels import check_nonfinite, check_overflow
from tessera.interpreters.sanitizers.shadow import Shadow
from tessera.interpreters.sanitizers.stored_values import check_stored
from tessera.interpreters.sanitizers.underflow import check_underflow, decaying
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import indices_of
from tessera.ir.tile.types import tile_type

_KINDS: Mapping[type[Operation], AccessKind] = MappingProxyType(
    {
        **dict.fromkeys((tile.LoadOp, tile.LoadBoxesOp, tile.ReadOp, tile.ItemOp), "read"),
        **dict.fromkeys((tile.StoreOp, tile.WriteOp), "write"),
        **dict.fromkeys((tile.AtomicOp, tile.AtomicAtOp), "atomic"),
    }
)


class SanitizedRun:
    """State that the program instances of one run share: checks, the shadow of the memory, the trace."""

    def __init__(self, kernel: tile.FuncOp, values: Sequence[Any], checks: Checks, trace: Trace | None) -> None:
        self.checks = checks
        self.trace = trace
        # Made-up values may be NaN without harm, so that check needs their marks too.
        demands = checks if isinstance(checks, NumericChecks) else NumericChecks()
        marked = checks.padding or checks.nonfinite or demands.underflow
        self.padding = Padding(strict=checks.padding) if marked else None
        self.bounded = demands.bounded
        # None where underflow is not looked for.
        self.decays = decaying(kernel) if demands.underflow else None
        self._positions: dict[SSAValue, int] = {argument: index for index, argument in enumerate(kernel.arguments)}
        self._values = values
        watched = checks.races or checks.uninitialised or checks.unwritten
        self._shadow = Shadow(_names(kernel), values, kernel.blank) if watched else None

    def access(self, frame: WatchedFrame, op: MemoryOp, view: ArrayView, reached: Array, inside: Array) -> None:
        """Records and checks the elements that an op touches."""
        if self._shadow is None and self.trace is None:
            return
        offsets, span = reached[inside], span_of(op.location)
        access = Access(frame.program, span, _KINDS[type(op)], self._position(op, view), offsets, frame.step)
        if self._shadow is not None:
            checks, apart = self.checks, isinstance(op, tile.WriteOp)
            self._shadow.record(access, races=checks.races, uninitialised=checks.uninitialised, apart=apart)
        if self.trace is not None:
            self.trace.append(access)

    def frame(self, machine: Machine, symbols: dict[str, int], program: tuple[int, ...]) -> WatchedFrame:
        """A frame that this watches."""
        return WatchedFrame(self, machine, symbols, program)

    def finish(self, kernel: str, grid: Sequence[int]) -> None:
        """Checks at the end of a run, after all program instances."""
        if self._shadow is not None and self.checks.unwritten:
            self._shadow.check_filled(kernel, grid)

    def _position(self, op: MemoryOp, view: ArrayView) -> int:
        base = tile.base_of(op.view)
        if base in self._positions:
            return self._positions[base]
        # A view that a loop carries: any argument of that memory will do.
        holders = (index for index, value in enumerate(self._values) if isinstance(value, ArrayView))
        return next(index for index in holders if self._values[index].argument is view.argument)


def _names(kernel: tile.FuncOp) -> list[str]:
    return [argument.name_hint or f"argument {index}" for index, argument in enumerate(kernel.arguments)]


class WatchedFrame(Frame):
    """A frame that looks at every op before and after it runs."""

    def __init__(
        self, watch: SanitizedRun, machine: Machine, symbols: dict[str, int], program: tuple[int, ...]
    ) -> None:
        super().__init__(machine, symbols, program)
        self.watch = watch
        self.step = 0
        self.marks: dict[SSAValue, Mark] = {}
        # Marks on their way into a block or out of one.
        self._passed: list[Mark] = []

    def run(self, block: Block, arguments: Values) -> Values:
        carried = self._passed
        self.marks.update(zip(block.args[len(block.args) - len(carried) :], carried, strict=True))
        results = super().run(block, arguments)
        end = block.last_op
        assert end is not None
        self._passed = self._marks_of(end.args if isinstance(end, scf.ConditionOp) else end.operands)
        return results

    def fork(self) -> WatchedFrame:
        apart = WatchedFrame(self.watch, self.machine, self.symbols, self.program)
        apart.values, apart.kept, apart.marks = dict(self.values), dict(self.kept), dict(self.marks)
        apart.step = self.step
        return apart

    def perform(self, op: Operation, operands: Values) -> Values:
        self.step += 1
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            # What follows the bounds of a loop that counts goes into its body; a branch takes nothing.
            self._passed = self._marks_of(op.operands)[0 if isinstance(op, scf.WhileOp) else 3 :]
            results = super().perform(op, operands)
            self.marks.update(zip(op.results, self._passed, strict=True))
            return results
        mark = self._touch(op, operands) if isinstance(op, MemoryOp) else None
        if isinstance(op, tile.ViewOp) and self.watch.checks.bounds and tile.OPEN not in op.attributes:
            self._check_part(op)
        bounded = self.watch.bounded
        if bounded is not None and isinstance(op, tile.StoreOp | tile.WriteOp):
            check_stored(op, operands, bounded, self.program)
        results = super().perform(op, operands)
        if bounded is not None and isinstance(op, tile.Atomic):
            check_stored(op, operands, bounded, self.program)
        checks, padding = self.watch.checks, self.watch.padding
        if padding is not None and not isinstance(op, MemoryOp):
            mark = padding.spread(op, operands, self._marks_of(op.operands), self.program)
        for result in op.results:
            self.marks[result] = mark
        if checks.nonfinite:
            infinities = checks.nonfinite == "all"
            check_nonfinite(op, operands, results, mark, self.program, infinities=infinities)
        if checks.overflow:
            check_overflow(op, operands, results, mark, self.program)
        if self.watch.decays is not None:
            check_underflow(op, operands, results, mark, self.program, self.watch.decays)
        return results

    def _check_part(self, op: tile.ViewOp) -> None:
        """Refuses indices of a part that are out of range."""
        for axis, at in (indices_of(op.offset, op.base) or {}).items():
            index, extent = at if isinstance(at, int) else self.values[at], self.values[op.base].sizes[axis]
            check_index(index, axis, extent, self.program)

    def _marks_of(self, values: Sequence[SSAValue]) -> list[Mark]:
        return [self.marks.get(value) for value in values]

    def _touch(self, op: MemoryOp, operands: Values) -> Mark:
        """Checks an access before it happens; gives the mark of what it loads."""
        watched, padding = self.watch.checks.bounds and tile.OPEN not in op.attributes, self.watch.padding
        view = operands[1 if isinstance(op, tile.Writer) else 0]
        if isinstance(op, tile.AtPlaces):
            at = placed(op, operands)
            if watched:
                check_places(op, view, at, self.program)
            reached, inside = _elements_at(view, at), at.taken
        elif isinstance(op, tile.LoadBoxesOp):
            reached, inside = self._boxes(op, operands, watched=watched)
        else:
            shape, offsets = _box(op), operands[2 if isinstance(op, tile.Writer) else 1 :]
            if watched:
                check_bounds(op, view, offsets, shape, self.program)
            reached, inside = _elements(view, offsets, shape)
        mark = None
        if padding is not None and not isinstance(op, tile.ItemOp):
            places = self._marks_of(op.indices) if isinstance(op, tile.AtPlaces) else []
            if isinstance(op, tile.LoadOp):
                mark = padding.load(op, inside)
            elif isinstance(op, tile.LoadBoxesOp):
                pass  # What is not there is 0 on purpose.
            elif isinstance(op, tile.ReadOp):
                mark = padding.looked_up(places, inside)
            else:
                for one in (self.marks.get(op.value), *places):
                    padding.store(op, operands[0], one, inside, self.program)
        self.watch.access(self, op, view, reached, inside)
        return mark

    def _boxes(self, op: tile.LoadBoxesOp, operands: Values, *, watched: bool) -> tuple[Array, Array]:
        """As `_elements`, for boxes one behind the other; those that begin behind the last row are not looked at."""
        view, *starts = operands
        rows, *others = tile_type(op.result).get_shape()
        until, rank, count = rows if op.until is None else starts.pop(), len(view.sizes), len(op.boxes)
        part, extents = (rows // count, *others), [1] * rank
        for axis, extent in zip(op.axes.iter_values(), part, strict=True):
            extents[axis] = extent
        found: list[tuple[Array, Array]] = []
        for box in range(count):
            offsets = starts[box * rank : (box + 1) * rank]
            if watched and box * part[0] < until:
                check_bounds(op, view, offsets, extents, self.program)
            found.append(_elements(view, offsets, extents))
        reached, inside = (np.concatenate([one.reshape(part) for one in each]) for each in zip(*found, strict=True))
        inside[max(0, until) :] = False
        return reached, inside


def _box(op: tile.LoadOp | tile.StoreOp | tile.AtomicOp | tile.ItemOp) -> tuple[int, ...]:
    """The extents of an access at offsets."""
    if isinstance(op, tile.ItemOp):
        return (1,) * len(op.offsets)
    return tile_type(op.result if isinstance(op, tile.LoadOp) else op.value).get_shape()


def _elements_at(view: ArrayView, at: Placed) -> Array:
    """For each place, the element of the argument under it."""
    reached = np.full(at.inside.shape, view.first, np.int64)
    for index, stride in zip(at.indices, view.strides, strict=True):
        reached += stride * np.where(at.inside, index, 0)
    return reached


def _elements(view: ArrayView, offsets: Sequence[int], shape: Sequence[int]) -> tuple[Array, Array]:
    """For each place of a tile: the element of the argument under it, and whether it is inside the view."""
    reached, inside = np.full((), view.first, np.int64), np.ones((), np.bool_)
    for size, stride, offset, extent in zip(view.sizes, view.strides, offsets, shape, strict=True):
        # Far outside is outside; clipping keeps the products small.
        position = np.clip(np.arange(extent) + max(min(offset, size), -extent), -1, size)
        reached = reached[..., np.newaxis] + stride * position
        inside = inside[..., np.newaxis] & (position >= 0) & (position < size)
    return reached, inside
