"""The work of a tile function that the model of a multiprocessor asks for: loops around dots, loads and vector ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import Kind
from tessera.ir.common.checking import enclosing
from tessera.ir.common.elementwise import TABLE
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.hopper.choose_warp_groups import needs_transpose, warp_group_plans
from tessera.targets.cuda.hopper.tma_boxes import is_mapped
from tessera.targets.cuda.lower.legalize import legalize
from tessera.targets.cuda.lower.multiprocessor_model import (
    FUNCTION_CLOCKS,
    Axis,
    Extent,
    ModelledDot,
    ModelledIteration,
    ModelledRing,
    Traced,
    Work,
)
from tessera.transforms.algebra.lazy_rescale import rescale_lazily
from tessera.transforms.checks.host_checks import take_host_checks
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.slices import Slice, end_of, operand_source
from tessera.transforms.loops.live_iterations import ROWS_BEGIN, ROWS_END, clip_ranges, is_marked
from tessera.transforms.pipelining.make_async import feeds_dots
from tessera.transforms.pipelining.partition_rows import Rows, row_stores, rows_of
from tessera.transforms.pipelining.prepared_operands import PreparedOperand, prepared_operands
from tessera.transforms.pipelining.promote_accumulators import promote_accumulators

PREPARED = 2.0
"""Instructions for each element of a computed operand besides those of its ops: to read, unpack and write it."""
CONVERSION, FUNCTION, DIVISION, LOADING = 0.5, 1, 8, 1
"""Instructions for one element. Conversions are done two at a time, and loads, which test for the end of an array."""


def work_of(function: tile.FuncOp, axes: Mapping[int, Axis], row_aligned: Collection[int]) -> Traced | None:
    """The work of a traced function, which is rewritten for it; None where its warps are not specialized.

    `axes` says which sizes follow the block; nothing else has such a size. Rows of arguments `row_aligned` are aligned.
    """
    rows = rows_of(function, at_places=True)
    if rows is None or axes.get(rows) != "m":
        return None
    take_host_checks(function)
    legalize(function, contract=True, arch="sm_90a")
    if next(warp_group_plans(function, None, None, row_aligned), None) is None or not _is_apart(function, rows):
        return None
    clip_ranges(function)
    rescale_lazily(function)
    # Iterations are not merged, so that their sizes can be read.
    promote_accumulators(function, depth=0)
    reading = _Reading(function, axes)
    iterations = tuple(reading.iterations())
    if not iterations or any(axes.get(one, "m") != "m" for one in reading.dot_rows()):
        return None
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    return Traced(iterations, tuple(reading.rings()), any(map(is_mapped, stores)))


def _is_apart(function: tile.FuncOp, rows: int) -> bool:
    """Whether rows do not depend on each other: consumers share them."""
    atomic = any(isinstance(op, tile.Atomic) for op in function.body.walk())
    return not atomic and Rows(function, rows, Slice(row_stores(function))).find()


class _Reading:
    """The loops, dots and rings of one function."""

    def __init__(self, function: tile.FuncOp, axes: Mapping[int, Axis]) -> None:
        self.function = function
        self.axes = axes
        self.dots = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
        self.prepared = prepared_operands(self.dots)
        self.elsewhere = {op for operand in self.prepared.values() for op in operand.ops}
        """Ops that a preparer does."""

    def extent(self, size: int) -> Extent:
        return self.axes.get(size, size)

    def dot_rows(self) -> set[int]:
        return {tile_type(op.result).get_shape()[0] for op in self.dots}

    def iterations(self) -> Iterator[ModelledIteration]:
        loops = dict.fromkeys(loop for op in self.dots if (loop := enclosing(op, scf.ForOp)) is not None)
        for loop in loops:
            inside = [op for op in self.dots if enclosing(op, scf.ForOp) is loop]
            steps: list[Extent] = []
            around: scf.ForOp | None = loop
            while around is not None:
                steps.extend(map(self.extent, _constants(around.step)))
                around = enclosing(around, scf.ForOp)
            computed, kept = tuple(_work(loop, self.extent, self.elsewhere)), tuple(self._kept(loop))
            reductions = [op for op in loop.body.block.ops if isinstance(op, tile.ReduceOp) and _is_tile(op.operand)]
            dots, banded = tuple(map(self._dot, inside)), is_marked(loop.lb, ROWS_BEGIN)
            ordered, clipped = bool(computed) and not banded, is_marked(loop.ub, ROWS_END)
            yield ModelledIteration(tuple(steps), dots, computed, len(reductions), kept, banded, ordered, clipped)

    def _kept(self, loop: scf.ForOp) -> Iterator[Extent]:
        """Columns of the tiles that a loop carries, and that are not accumulators of its dots."""
        for value in end_of(loop.body.block).operands:
            if isinstance(value.type, TensorType) and _is_tile(value) and not isinstance(value.owner, tile.DotOp):
                yield self.extent(tile_type(value).get_shape()[1])

    def _dot(self, op: tile.DotOp) -> ModelledDot:
        depth, columns = tile_type(op.b).get_shape()
        loaded = isinstance(operand_source(op.a), tile.BoxLoad)
        return ModelledDot(self.extent(columns), self.extent(depth), loaded, tile_dtype(op.a).storage.itemsize)

    def rings(self) -> Iterator[ModelledRing]:
        loads = [op for op in self.function.body.walk() if isinstance(op, tile.BoxLoad) and feeds_dots(op)]
        loads += [load for operand in self.prepared.values() for load in operand.loads]
        found: dict[object, tile.BoxLoad] = {}
        for op in loads:
            found.setdefault((tile.base_of(op.view), op.result.type), op)
        for op in found.values():
            rows, columns = tile_type(op.result).get_shape()
            itemsize = tile_dtype(op.result).storage.itemsize
            repeated = enclosing(op, scf.ForOp) is not None
            yield ModelledRing(self.extent(rows), self.extent(columns), repeated, itemsize, needs_transpose(op))
        for maker, operand in self.prepared.items():
            rows, columns = tile_type(maker.results[0]).get_shape()
            repeated, itemsize = enclosing(maker, scf.ForOp) is not None, tile_dtype(maker.results[0]).storage.itemsize
            sizes = self.extent(rows), self.extent(columns)
            yield ModelledRing(*sizes, repeated, itemsize, prepared=_instructions(operand))


def issues_most(loop: scf.ForOp) -> bool:
    """Whether an iteration of a loop keeps the schedulers longer than the unit for functions."""
    works = list(_work(loop, lambda size: size))
    functions = sum(one.functions * _sized(one) for one in works)
    return sum(one.instructions * _sized(one) for one in works) > FUNCTION_CLOCKS * functions


def _sized(work: Work) -> int:
    assert isinstance(work.columns, int)
    return work.columns


def _work(loop: scf.ForOp, extent: Callable[[int], Extent], elsewhere: Collection[Operation] = ()) -> Iterator[Work]:
    """Work on whole tiles in every iteration; branches and masks are left out: few iterations have them.

    What is done `elsewhere` is no work of consumers.
    """
    masks = _masks(loop)
    for op in loop.body.block.ops:
        if op in elsewhere:
            continue
        if isinstance(op, tile.ReduceOp) and _is_tile(op.operand):
            yield Work(extent(tile_type(op.operand).get_shape()[1]), 1)
        elif isinstance(op, tile.LoadOp) and _is_tile(op.result) and not feeds_dots(op):
            columns, itemsize = tile_type(op.result).get_shape()[1], tile_dtype(op.result).storage.itemsize
            yield Work(extent(columns), LOADING, loaded=itemsize)
        elif isinstance(op, tile.EwOp) and _is_tile(op.result) and op not in masks and not _is_fused(op):
            cost, columns = TABLE[op.fn.data].cost, tile_type(op.result).get_shape()[1]
            functions = cost.special + cost.divide
            issued = cost.simple + CONVERSION * cost.convert + FUNCTION * cost.special + DIVISION * cost.divide
            yield Work(extent(columns), issued, functions)


def _instructions(operand: PreparedOperand) -> float:
    """Instructions for each element of a computed operand."""
    ops = [op for op in operand.ops if isinstance(op, tile.EwOp) and _is_tile(op.result)]
    costs = [TABLE[op.fn.data].cost for op in ops]
    return PREPARED + sum(one.simple + CONVERSION * one.convert + FUNCTION * one.special for one in costs)


def _constants(value: SSAValue) -> Iterator[int]:
    if (number := integer_of(value)) is not None:
        yield number


def _is_tile(value: SSAValue) -> bool:
    shape = tile_type(value).get_shape()
    return len(shape) == 2 and min(shape) > 1


def _masks(loop: scf.ForOp) -> set[Operation]:
    """Ops that compare positions or select by such comparisons, and ops that only those use."""
    questions: set[SSAValue] = set()
    found: set[Operation] = set()
    for op in loop.body.block.ops:
        if isinstance(op, tile.BroadcastOp | tile.ExpandOp) and op.operand in questions:
            questions.add(op.result)
        if not isinstance(op, tile.EwOp):
            continue
        if op.fn.data == "select" and op.operands_[0] in questions:
            found.add(op)
        elif tile_dtype(op.result).kind is Kind.BOOL and all(
            value in questions or tile_dtype(value).kind in (Kind.INT, Kind.UINT) for value in op.operands_
        ):
            questions.add(op.result)
            found.add(op)
    for op in reversed(list(loop.body.block.ops)):
        is_position = isinstance(op, tile.EwOp) and tile_dtype(op.result).kind in (Kind.INT, Kind.UINT)
        if is_position and all(use.operation in found for use in op.results[0].uses):
            found.add(op)
    return found


def _is_fused(op: tile.EwOp) -> bool:
    """Whether a multiplication is fused with the additions that it goes into."""
    users = [use.operation for use in op.result.uses]
    return op.fn.data == "mul" and all(isinstance(user, tile.EwOp) and user.fn.data in ("add", "sub") for user in users)
