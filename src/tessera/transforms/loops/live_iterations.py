"""Loops and masks: iterations whose mask is empty are not run, and iterations whose mask is full have no mask.

`clip_ranges` shortens loops to the iterations that change something. `split_ranges` divides the rest: iterations in
which all masks are true run in a loop of their own, between those in which they are not. The split follows from the
positions that masks compare, as affine expressions of scalars (see `masks`). Splitting comes last: copies that run
ahead of their iterations have to run on from one part to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Operation, SSAValue

from tessera.ir.common.attributes import integer
from tessera.ir.pipe.warp_groups import ConsumerIdOp
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.algebra.masks import (
    Edge,
    Linear,
    Window,
    dead_before,
    dead_from,
    is_skippable,
    masks_in,
    true_if,
)
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import Ops
from tessera.transforms.loops.consumer_values import differ_between_consumers

_index = IndexType()
_Combine = Callable[[SSAValue, SSAValue], Operation]


def clip_ranges(function: tile.FuncOp) -> None:
    """Shortens the loops of a function to the iterations that masks leave."""
    for loop in _loops(function):
        body = loop.body.block
        counter = body.args[0]
        for mask in list(masks_in(body)):
            if not is_skippable(loop, mask):
                continue
            shape = tile_type(mask).get_shape()
            window = Window.whole(shape)
            fewer = Window.whole((shape[0] - 1, *shape[1:]))
            for edges, others in zip(dead_from(mask, counter, window), dead_from(mask, counter, fewer), strict=True):
                _shorten(loop, edges, others)
            later = Window((Linear(number=1), *window.start[1:]), fewer.size)
            for edges, others in zip(
                dead_before(mask, counter, window), dead_before(mask, counter, later), strict=True
            ):
                _begin_later(loop, edges, others)


ClipRanges = function_pass("clip-ranges", clip_ranges)


def split_ranges(function: tile.FuncOp, common: Callable[[scf.ForOp], bool] = lambda _: False) -> None:
    """Peels the iterations of loops with dots in which all masks are true into a loop without masks.

    Where it is to be `common`, that loop has the iterations in which masks are true for the rows of all consumers.
    """
    # Inner loops first: those around them are written several times.
    for loop in reversed(_loops(function)):
        if any(isinstance(op, tile.DotOp) for op in loop.body.block.ops):
            _split(loop, common=common(loop) and not differ_between_consumers([loop.lb]))


SplitRanges = function_pass("split-ranges", split_ranges)


def _loops(function: tile.FuncOp) -> list[scf.ForOp]:
    """All loops, those around others first."""
    ops = function.body.walk()
    return [op for op in ops if isinstance(op, scf.ForOp) and isinstance(op.lb.type, IndexType)]


class Scalars(Ops):
    """Whole numbers, written in front of an op."""

    def sum(self, found: Linear) -> SSAValue | None:
        """A sum of scalars; None where one of them is not known here."""
        total: SSAValue | None = None
        for scalar, factor in found.terms:
            if not self._is_known(scalar):
                return None
            given = scalar if isinstance(scalar.type, IndexType) else self.add(arith.IndexCastOp(scalar, _index))
            part = given if factor == 1 else self.add(arith.MuliOp(given, self.index(factor)))
            total = part if total is None else self.add(arith.AddiOp(total, part))
        if total is None:
            return self.index(found.number)
        return total if found.number == 0 else self.add(arith.AddiOp(total, self.index(found.number)))

    def _is_known(self, scalar: SSAValue) -> bool:
        """Whether a scalar is computed in front of the op: in a block around it, before."""
        owner = scalar.owner
        block = owner if not isinstance(owner, Operation) else owner.parent_block()
        around: Operation | None = self.before
        while around is not None and around.parent_block() is not block:
            around = around.parent_op()
        if around is None:
            return False
        return not isinstance(owner, Operation) or owner.is_before_in_block(around)

    def quotient(self, found: Linear, factor: int) -> SSAValue | None:
        """A sum divided by a factor, rounded up."""
        total = self.sum(found)
        if total is None or factor == 1:
            return total
        return self.add(arith.CeilDivSIOp(total, self.index(factor)))

    def combined(self, values: Sequence[SSAValue | None], combine: _Combine) -> SSAValue | None:
        """All values as one; None where one is not known."""
        total: SSAValue | None = None
        for value in values:
            if value is None:
                return None
            total = value if total is None else self.add(combine(total, value))
        return total


ROWS_END = "tile.rows_end"
"""Marks a number that ends a loop where no row needs more iterations: by how much less it would be without the last
row."""
ALL_ROWS = "tile.all_rows"
"""Marks a loop all iterations of which every row needs."""
ROWS_BEGIN = "tile.rows_begin"
"""Marks a number that begins a loop where the first row needs it: by how much more it would be without that row."""


_SCALARS = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.CeilDivSIOp,
    arith.FloorDivSIOp,
    arith.MaxSIOp,
    arith.MinSIOp,
)


def is_marked(value: SSAValue, mark: str) -> bool:
    """Whether a number has a mark, or is made of one that has."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if mark in owner.attributes:
        return True
    return isinstance(owner, _SCALARS) and any(is_marked(operand, mark) for operand in owner.operands)


def _shorten(loop: scf.ForOp, edges: Sequence[Edge], fewer: Sequence[Edge]) -> None:
    """Ends a loop where the last row has its edge; `fewer` are the edges with a row less."""
    scalars = Scalars(loop)
    ends: list[SSAValue | None] = []
    for edge, other in zip(edges, fewer, strict=True):
        end, less = scalars.quotient(edge.at, edge.factor), edge.at - other.at
        # A sum of scalars with a number in it is an op of its own.
        own = bool(edge.at.terms and edge.at.number) and edge.factor == 1
        if end is not None and own and not less.terms and less.number > 0:
            assert isinstance(end.owner, arith.AddiOp)
            end.owner.attributes[ROWS_END] = integer(less.number)
        ends.append(end)
    end = scalars.combined(ends, arith.MaxSIOp)
    if end is not None:
        loop.operands[1] = scalars.add(arith.MinSIOp(loop.ub, end))


def _begin_later(loop: scf.ForOp, edges: Sequence[Edge], fewer: Sequence[Edge]) -> None:
    """A later start, still a whole number of steps behind the old one; `fewer` are the edges without the first row."""
    scalars = Scalars(loop)
    starts: list[SSAValue | None] = []
    for edge, other in zip(edges, fewer, strict=True):
        # Rounded down and one more: −at / factor.
        start, more = scalars.sum(edge.at * -1), edge.at - other.at
        if start is not None and edge.factor != 1:
            start = scalars.add(arith.FloorDivSIOp(start, scalars.index(edge.factor)))
        if start is not None:
            start = scalars.add(arith.AddiOp(start, scalars.index(1)))
            if edge.factor == 1 and not more.terms and more.number > 0:
                assert isinstance(start.owner, arith.AddiOp)
                start.owner.attributes[ROWS_BEGIN] = integer(more.number)
        starts.append(start)
    first = scalars.combined(starts, arith.MinSIOp)
    if first is not None:
        # No later than the end, however far off: so it is known to be small wherever positions are.
        first = scalars.add(arith.MinSIOp(first, loop.ub))
        loop.operands[0] = _next(scalars, loop, loop.lb, first)


# Splitting


def _split(loop: scf.ForOp, *, common: bool) -> None:
    scalars, counter = Scalars(loop), loop.body.block.args[0]
    starts, stops, full = list[SSAValue](), list[SSAValue](), set[SSAValue]()
    for mask in masks_in(loop.body.block):
        found = _full_iterations(scalars, mask, counter, common=common)
        if found is not None:
            full.add(mask)
            starts += found[0]
            stops += found[1]
    if not full:
        return
    stop = scalars.combined([loop.ub, *stops], arith.MinSIOp)
    start = scalars.combined([loop.lb, *starts], arith.MaxSIOp)
    assert stop is not None
    assert start is not None
    parts: list[tuple[SSAValue, SSAValue, bool]] = []
    at = loop.lb
    if starts:
        begin = scalars.add(arith.MinSIOp(start, loop.ub))
        parts.append((at, begin, False))
        at = _next(scalars, loop, at, begin)
    parts.append((at, stop, True))
    if stops:
        parts.append((_next(scalars, loop, at, stop), loop.ub, False))
    _write(loop, parts, full, common=common)


def _full_iterations(
    scalars: Scalars, mask: SSAValue, counter: SSAValue, *, common: bool
) -> tuple[list[SSAValue], list[SSAValue]] | None:
    """A mask is true all over from the greatest of the first numbers on, and below the least of the second ones."""
    ways = true_if(mask, Window.whole(tile_type(mask).get_shape()))
    decided = [way for way in ways if all(_counter_decides(total, counter) for total in way)]
    known = [
        iterations
        for way in decided
        if (iterations := _iterations_of(scalars, way, counter, common=common)) is not None
    ]
    if not known:
        return None
    first, *others = known
    # Ranges with the same open end are one range: the largest of them.
    if others and not any(starts for starts, _ in known):
        ends = [scalars.combined(stops, arith.MinSIOp) for _, stops in known]
        last = scalars.combined(ends, arith.MaxSIOp)
        return first if last is None else ([], [last])
    return first


def _iterations_of(
    scalars: Scalars, way: Sequence[Linear], counter: SSAValue, *, common: bool
) -> tuple[list[SSAValue], list[SSAValue]] | None:
    """From where on, and up to where, all sums are above 0; None where that is not known in front of the loop."""
    starts, stops = list[SSAValue](), list[SSAValue]()
    for total in way:
        factor, rest = total.factor_of(counter), total.without(counter)
        if factor == 0:
            continue
        if common and factor < 0:
            rest = _least_of_consumers(rest)
        # Above 0 below rest / −factor, rounded up; or from (1 − rest) / factor on.
        found = scalars.quotient(rest, -factor) if factor < 0 else scalars.quotient(Linear(number=1) - rest, factor)
        if found is None:
            return None
        (stops if factor < 0 else starts).append(found)
    return starts, stops


def _least_of_consumers(total: Linear) -> Linear:
    """A lower bound of a sum over all consumers: none has a number below 0."""
    for scalar, times in total.terms:
        if times > 0 and isinstance(scalar.owner, ConsumerIdOp):
            total = total.without(scalar)
    return total


def _counter_decides(total: Linear, counter: SSAValue) -> bool:
    """Whether a sum is above 0 from some iteration on, up to some iteration, or always."""
    return total.factor_of(counter) != 0 or (not total.terms and total.number > 0)


def _next(scalars: Scalars, loop: scf.ForOp, start: SSAValue, stop: SSAValue) -> SSAValue:
    """The counter with which a loop from `start` to `stop` would go on."""
    ahead = scalars.add(arith.MaxSIOp(scalars.add(arith.SubiOp(stop, start)), scalars.index(0)))
    iterations = scalars.add(arith.CeilDivSIOp(ahead, loop.step))
    return scalars.add(arith.AddiOp(start, scalars.add(arith.MuliOp(iterations, loop.step))))


def _write(
    loop: scf.ForOp, parts: Sequence[tuple[SSAValue, SSAValue, bool]], full: set[SSAValue], *, common: bool
) -> None:
    """Loops in a row, each going on with what the one before carries; those where masks are true do without them."""
    masks = [op for op in loop.body.block.ops if isinstance(op, tile.EwOp) and op.fn.data == "select"]
    indices = {list(loop.body.block.ops).index(op) for op in masks if op.operands_[0] in full}
    carried: Sequence[SSAValue] = loop.iter_args
    made: list[Operation] = []
    for start, stop, is_full in parts:
        region = loop.body.clone()
        part = scf.ForOp(start, stop, loop.step, list(carried), region)
        part.attributes.update(loop.attributes)
        if is_full:
            for index, op in enumerate(list(region.block.ops)):
                if index in indices and isinstance(op, tile.EwOp):
                    _unmask(op)
            if common:
                part.attributes[ALL_ROWS] = UnitAttr()
        carried = part.results
        made.append(part)
    replace(loop, made, list(carried))


def _unmask(op: tile.EwOp) -> None:
    op.result.replace_all_uses_with(op.operands_[1])
    op.detach()
    op.erase()
