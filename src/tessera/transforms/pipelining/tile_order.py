"""The order in which persistent CTAs go through the program instances of a grid.

Instances that read the same memory run at the same time, because caches are small. Where some instances have more
iterations than others, the longest come first: CTAs fetch them one by one from the tile scheduler, and the last ones
are short. Where memory decides how many iterations there are, they are fetched, too, in the order of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import ceil, log2, prod
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.checks.host_checks import CHECKED
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.slices import rests_on_memory
from tessera.transforms.pipelining.make_async import feeds_dots

ABREAST = 128
"""About so many program instances run at the same time."""
BAND = 8
"""Program instances along the first axis that follow each other where both axes of a grid share as much memory."""
CACHED = 16 << 20
"""Bytes of memory that instances side by side may share and still find in the cache."""
_index = IndexType()


@dataclass(frozen=True)
class Uneven:
    """How iterations are spread: along the first axis of the grid there are more and more of them, or fewer and fewer.

    All instances along it read the same memory: `bytes` in each iteration, by steps of `step` up to `size`, which is a
    number, or an argument and an axis of it.
    """

    rising: bool
    size: int | tuple[int, int]
    step: int
    bytes: int


def unevenness(function: tile.FuncOp) -> Uneven | None:
    """How the iterations of a function's loops depend on the first axis of its grid; None where they do not, or it is
    not known how."""
    for op in function.body.walk():
        if not isinstance(op, scf.ForOp) or not isinstance(op.lb.type, IndexType):
            continue
        loads = [load for load in op.body.block.ops if isinstance(load, tile.BoxLoad) and feeds_dots(load)]
        ends, starts = _trend(op.ub, 0), _trend(op.lb, 0)
        step, size = integer_of(op.step), _size_in(function, op.ub)
        if not loads or ends is None or starts is None or ends == starts or step is None or size is None:
            continue
        if 0 not in (ends, starts) or ends - starts not in (-1, 1):
            continue
        moved = sum(_bytes(load.result) for load in loads)
        return Uneven(ends - starts > 0, size, step, moved)
    return None


def _bytes(value: SSAValue) -> int:
    return prod(tile_type(value).get_shape()) * tile_dtype(value).storage.itemsize


def _size_in(function: tile.FuncOp, value: SSAValue) -> int | tuple[int, int] | None:
    """The number, or the size of an argument, that bounds a number from above."""
    owner = value.owner
    if isinstance(owner, tile.DimOp):
        known = isinstance(owner.view.owner, Block)
        return (function.arguments.index(owner.view), owner.axis.value.data) if known else None  # pyright: ignore[reportArgumentType]
    if isinstance(owner, arith.MinSIOp):
        one, other = _size_in(function, owner.lhs), _size_in(function, owner.rhs)
        return other if one is None else one
    return integer_of(value)


def _trend(value: SSAValue, axis: int) -> int | None:
    """Whether a number grows (1), falls (−1) or stays (0) along an axis of the grid; None where that is not known."""
    owner = value.owner
    if isinstance(owner, Block):
        return 0 if isinstance(owner.parent_op(), tile.FuncOp) else None
    rule = _TRENDS.get(type(owner))
    if rule is not None:
        return rule(owner, axis)
    return 0 if not owner.operands and not isinstance(owner, tile.ProgramIdOp) else None


def _together(op: Any, axis: int) -> int | None:
    """The trend of a number that grows with both operands."""
    return _joined(_trend(op.lhs, axis), _trend(op.rhs, axis))


def _joined(one: int | None, other: int | None) -> int | None:
    if one is None or other is None or one * other < 0:
        return None
    return one or other


def _apart(op: Any, axis: int) -> int | None:
    other = _trend(op.rhs, axis)
    return None if other is None else _joined(_trend(op.lhs, axis), -other)


def _scaled(op: Any, axis: int) -> int | None:
    """The trend of a number times, or divided by, a constant."""
    for given, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        number = integer_of(factor)
        if number is not None and number > 0 and (given is op.lhs or isinstance(op, arith.MuliOp)):
            return _trend(given, axis)
    return 0 if _trend(op.lhs, axis) == 0 and _trend(op.rhs, axis) == 0 else None


_TRENDS: Mapping[type[Operation], Callable[[Any, int], int | None]] = {
    tile.ProgramIdOp: lambda op, axis: int(op.axis.value.data == axis),
    tile.DimOp: lambda op, axis: 0,
    tile.StrideOp: lambda op, axis: 0,
    arith.AddiOp: _together,
    arith.MinSIOp: _together,
    arith.MaxSIOp: _together,
    arith.SubiOp: _apart,
    arith.MuliOp: _scaled,
    arith.DivSIOp: _scaled,
    arith.FloorDivSIOp: _scaled,
    arith.CeilDivSIOp: _scaled,
    arith.IndexCastOp: lambda op, axis: _trend(op.input, axis),
}


def run_at_once(function: tile.FuncOp) -> bool:
    """Whether the grid is known to be so small that all program instances run at once, and none is fetched."""
    extents = [extent for extent in function.grid.data if isinstance(extent, int)]
    return len(extents) == len(function.grid.data) and prod(extents) <= ABREAST


def can_form_clusters(function: tile.FuncOp, cluster: int, *, bands: bool) -> bool:
    """Whether the first axis is a multiple of a cluster, and all program instances have as many iterations."""
    first = function.grid.data[0]
    even = bands or unevenness(function) is None
    in_order = not bands or axis_order(function)[0] == 0
    return isinstance(first, int) and first % cluster == 0 and even and in_order and not is_decided_by_memory(function)


def axis_order(function: tile.FuncOp) -> tuple[int, ...]:
    """The axes of the grid, the fastest first: those along which all operands of dots change come last.

    Instances that differ along them share nothing.
    """
    axes, found = range(len(function.grid.data)), _operand_axes(function)
    shared = {axis for axis in axes if found and all(axis in one for one in found)}
    return tuple(sorted(axes, key=lambda axis: axis in shared))


def crosses(function: tile.FuncOp) -> bool:
    """Whether operands of dots follow different axes of the grid, the fastest two: then the order counts."""
    first, second, *_ = (*axis_order(function), -1)
    return follow_apart(_operand_axes(function), first, second)


def follow_apart(operands: Collection[frozenset[int]], first: int, second: int) -> bool:
    """Whether of operands, given by the axes that they follow, some follow one axis alone and some the other."""
    return any(first in one and second not in one for one in operands) and any(
        second in one and first not in one for one in operands
    )


def _operand_axes(function: tile.FuncOp) -> list[frozenset[int]]:
    """The axes of the grid that each loaded operand of a dot depends on."""
    return [axes_of(op) for op in function.body.walk() if isinstance(op, tile.BoxLoad) and feeds_dots(op)]


def is_decided_by_memory(function: tile.FuncOp) -> bool:
    """Whether a number out of memory says how often operands of dots are loaded."""
    decides: list[SSAValue] = []
    for load in (op for op in function.body.walk() if isinstance(op, tile.BoxLoad) and feeds_dots(op)):
        around = load.parent_op()
        while isinstance(around, scf.ForOp | scf.IfOp):
            decides += around.operands[:3]
            around = around.parent_op()
    return rests_on_memory(decides)


def band_height(function: tile.FuncOp) -> int:
    """How many instances along the first axis follow each other, so that those that run at once read the least.

    Of `h` rows and `ABREAST / h` columns of instances, each row reads a left operand and each column a right one.
    """
    loads = [op for op in function.body.walk() if isinstance(op, tile.BoxLoad) and feeds_dots(op)]
    along = [(axes_of(op), _bytes(op.result)) for op in loads]
    row, column, *_ = axis_order(function)
    by_row = sum(moved for axes, moved in along if row in axes and column not in axes)
    by_column = sum(moved for axes, moved in along if column in axes and row not in axes)
    if not by_row or not by_column:
        return BAND
    # The power of two next to where both are read equally often; the lower one of two.
    return 2 ** ceil(log2(ABREAST * by_column / by_row) / 2 - 0.5)


def axes_of(op: Operation) -> frozenset[int]:
    """The axes of the grid that an op's operands depend on."""
    found: set[int] = set()
    pending, seen = list(op.operands), set[SSAValue]()
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in seen or not isinstance(owner, Operation):
            continue
        seen.add(value)
        if isinstance(owner, tile.ProgramIdOp):
            found.add(owner.axis.value.data)
        elif not isinstance(owner, pipe.RingOp) and not owner.regions:
            pending += owner.operands
    return frozenset(found)


def _certain(op: Operation) -> Operation:
    """Marks divisions and differences: where there is an instance, no extent is 0, and none begins behind an end."""
    if isinstance(op, (*DIVISIONS, arith.SubiOp)):
        op.attributes[CHECKED] = UnitAttr()
    return op


class TileOrder:
    """The program instances of a grid by numbers, and how a persistent CTA goes through them. `ops` go in front.

    The CTAs of a `cluster` have instances side by side along the first axis, whose extent is a multiple of it: they
    have one number, and each adds its rank to the first coordinate.
    """

    def __init__(self, function: tile.FuncOp, *, bands: bool, cluster: int = 1) -> None:
        rank = len(function.grid.data)
        self.axes = axis_order(function) if bands else tuple(range(rank))
        self.ops: list[Operation] = []
        self.cta, self.ctas = self._add(warp_groups.CtaIdOp()), self._add(warp_groups.CtaCountOp())
        self.extents = [self._add(warp_groups.GridExtentOp(axis)) for axis in self.axes]
        self.cluster: SSAValue | None = None
        if cluster > 1:
            self._form_clusters(cluster)
        self.counts = self.extents[:1]
        """How many there are along the first axes: along one, two and so on."""
        for extent in self.extents[1:]:
            self.counts.append(self._add(arith.MuliOp(self.counts[-1], extent)))
        self.uneven = None if bands or run_at_once(function) else unevenness(function)
        self.fetches = self.uneven is not None or (is_decided_by_memory(function) and not run_at_once(function))
        """Whether CTAs fetch the numbers of instances from the tile scheduler."""
        self.band: SSAValue | None = None
        if self.uneven is not None:
            self._one = self._constant(1)
            self._group(self.uneven, function)
        elif bands and rank > 1:
            self.band = self._constant(max(1, band_height(function) // cluster))
            self.in_band = self._add(arith.MuliOp(self.band, self.extents[1]))

    def _add(self, op: Operation) -> SSAValue:
        self.ops.append(_certain(op))
        return op.results[0]

    def _constant(self, number: int) -> SSAValue:
        return self._add(arith.ConstantOp(IntegerAttr(number, _index)))

    def _form_clusters(self, cluster: int) -> None:
        """Replaces numbers of CTAs, and the first extent, by those of clusters."""
        self.cluster = self._constant(cluster)
        self.rank = self._add(arith.RemSIOp(self.cta, self.cluster))
        self.cta, self.ctas = (self._add(arith.DivSIOp(number, self.cluster)) for number in (self.cta, self.ctas))
        self.extents[0] = self._add(arith.DivSIOp(self.extents[0], self.cluster))

    def _group(self, uneven: Uneven, function: tile.FuncOp) -> None:
        """Computes how many columns of instances run beside each other: as many as share the cache."""
        if isinstance(uneven.size, int):
            size = self._constant(uneven.size)
        else:
            argument, axis = uneven.size
            size = self._add(tile.DimOp(function.arguments[argument], axis))
        iterations = self._add(arith.CeilDivSIOp(size, self._constant(uneven.step)))
        moved = self._add(arith.MaxSIOp(self._add(arith.MuliOp(iterations, self._constant(uneven.bytes))), self._one))
        fitting = self._add(arith.MaxSIOp(self._add(arith.DivSIOp(self._constant(CACHED), moved)), self._one))
        self.columns = self._one
        for extent in self.extents[1:]:
            self.columns = self._add(arith.MuliOp(self.columns, extent))
        self.group = self._add(arith.MinSIOp(fitting, self._add(arith.MaxSIOp(self.columns, self._one))))
        self.in_group = self._add(arith.MuliOp(self.group, self.extents[0]))
        self.last = self._add(arith.SubiOp(self.extents[0], self._one))

    def coordinates(self, number: SSAValue, block: Block) -> list[SSAValue]:
        """The coordinates of an instance in the grid, by ops at the end of a block."""

        def add(op: Operation) -> SSAValue:
            block.add_op(_certain(op))
            return op.results[0]

        coordinates = self._coordinates(number, add)
        coordinates = [coordinates[self.axes.index(axis)] for axis in range(len(coordinates))]
        if self.cluster is not None:
            coordinates[0] = add(arith.AddiOp(add(arith.MuliOp(coordinates[0], self.cluster)), self.rank))
        return coordinates

    def _coordinates(self, number: SSAValue, add: Callable[[Operation], SSAValue]) -> list[SSAValue]:
        if self.uneven is not None:
            return self._longest_first(number, self.uneven, add)
        rest, beyond = number, list[SSAValue]()
        if len(self.extents) > 2:
            beyond.append(add(arith.DivSIOp(rest, self.counts[1])))
            rest = add(arith.RemSIOp(rest, self.counts[1]))
        if len(self.extents) == 1:
            return [rest]
        if self.band is None:
            return [add(arith.RemSIOp(rest, self.extents[0])), add(arith.DivSIOp(rest, self.extents[0])), *beyond]
        top = add(arith.MuliOp(add(arith.DivSIOp(rest, self.in_band)), self.band))
        inside = add(arith.RemSIOp(rest, self.in_band))
        # The last band may have fewer rows.
        height = add(arith.MinSIOp(add(arith.SubiOp(self.extents[0], top)), self.band))
        down = add(arith.AddiOp(top, add(arith.RemSIOp(inside, height))))
        return [down, add(arith.DivSIOp(inside, height)), *beyond]

    def _longest_first(self, number: SSAValue, uneven: Uneven, add: Callable[[Operation], SSAValue]) -> list[SSAValue]:
        """Coordinates by groups of columns; in a group, the instances with most iterations first, column by column."""
        first = add(arith.MuliOp(add(arith.DivSIOp(number, self.in_group)), self.group))
        inside = add(arith.RemSIOp(number, self.in_group))
        # The last group may have fewer columns.
        here = add(arith.MinSIOp(add(arith.SubiOp(self.columns, first)), self.group))
        down = add(arith.DivSIOp(inside, here))
        if uneven.rising:
            down = add(arith.SubiOp(self.last, down))
        column = add(arith.AddiOp(first, add(arith.RemSIOp(inside, here))))
        coordinates = [down]
        for extent in self.extents[1:-1]:
            coordinates.append(add(arith.RemSIOp(column, extent)))
            column = add(arith.DivSIOp(column, extent))
        return [*coordinates, column] if len(self.extents) > 1 else coordinates
