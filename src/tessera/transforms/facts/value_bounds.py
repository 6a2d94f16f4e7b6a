"""Bounds on every value of a tile function, from bounds on its arguments, by interval arithmetic.

Bounds hold for the reference meaning, in every program instance and every iteration. What a loop carries is widened
until it no longer grows. Memory that the function itself writes may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import DType
from tessera.interpreters.core import scalars
from tessera.ir.common import elementwise, intervals
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.intervals import EITHER, INFINITY, Interval, all_values, hull
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type, view_type
from tessera.shapes.expr import Size
from tessera.transforms.core.folding import literal

Intervals = Sequence[Interval]
# Joins before a bound that still grows is given up.
_PATIENCE = 2
# From here on a float64 has no digits to spare for the rounding of long sums.
_WIDE_MANTISSA = 50


def value_bounds(kernel: tile.FuncOp, arguments: Mapping[int, Interval]) -> dict[SSAValue, Interval]:
    """The bounds of every number and tile; `arguments` bounds those of the kernel, by index, and what arrays hold."""
    work = _Analysis(kernel, arguments)
    work.run(kernel.body.block)
    return work.values


def written(kernel: tile.FuncOp) -> frozenset[SSAValue]:
    """The arguments whose memory the function writes."""
    return _touched(kernel, tile.written_memory(kernel))


def read(kernel: tile.FuncOp) -> frozenset[SSAValue]:
    """The arguments whose memory the function reads."""
    return _touched(kernel, {tile.memory_of(op.view) for op in kernel.body.walk() if isinstance(op, tile.Reader)})


def _touched(kernel: tile.FuncOp, found: AbstractSet[SSAValue]) -> frozenset[SSAValue]:
    # A view that a loop carries may be of any argument.
    known = found <= set(kernel.arguments)
    return frozenset(one for one in kernel.arguments if not known or tile.memory_of(one) in found)


def dtype_at(value: SSAValue) -> DType:
    """The element type of a tile or scalar."""
    return tile_dtype(value) if isinstance(value.type, TensorType) else dtype_of(value.type)


class _Analysis:
    """One pass over a function: blocks in order, loops until their bounds hold."""

    def __init__(self, kernel: tile.FuncOp, arguments: Mapping[int, Interval]) -> None:
        self.values: dict[SSAValue, Interval] = {}
        self.memory: dict[SSAValue, Interval] = {}
        self.shapes: dict[SSAValue, Sequence[Size]] = dict(
            zip(kernel.arguments, (shape.data for shape in kernel.shapes), strict=True)
        )
        changing = written(kernel)
        for index, argument in enumerate(kernel.arguments):
            view = argument.type if isinstance(argument.type, ViewType) else None
            dtype = dtype_at(argument) if view is None else view.dtype
            known = all_values(dtype) if argument in changing else arguments.get(index, all_values(dtype))
            (self.values if view is None else self.memory)[argument] = known

    def run(self, block: Block) -> Intervals:
        """The bounds of what a block ends with."""
        for op in block.ops:
            if op is block.last_op:
                return [self.values[operand] for operand in _numbers(op.operands)]
            rule = _RULES.get(type(op), _unknown)
            operands = [self.values[operand] for operand in _numbers(op.operands)]
            self.values.update(zip(_numbers(op.results), rule(self, op, operands), strict=True))
        raise AssertionError("a block without a terminator")

    def size(self, view: SSAValue, axis: int) -> Interval:
        """A view's size along an axis."""
        if isinstance(view.owner, tile.ViewOp):
            return self.values[view.owner.sizes[axis]]
        known = self.shapes[view][axis] if view in self.shapes else None
        return Interval(known, known) if isinstance(known, int) else Interval(0, INFINITY)


def _numbers(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Without views, which have no bounds of their own."""
    return [value for value in values if not isinstance(value.type, ViewType)]


def _unknown(work: _Analysis, op: Operation, operands: Intervals) -> Intervals:
    """Anything that the types can hold."""
    return [all_values(dtype_at(result)) for result in _numbers(op.results)]


def _constant(work: _Analysis, op: arith.ConstantOp, operands: Intervals) -> Intervals:
    value = literal(op.result)
    if value is None or math.isnan(value):
        return _unknown(work, op, operands)
    return [Interval(float(value), float(value))]


def _program_id(work: _Analysis, op: tile.ProgramIdOp, operands: Intervals) -> Intervals:
    return [Interval(0, all_values(dtype_at(op.result)).hi)]


def _dim(work: _Analysis, op: tile.DimOp, operands: Intervals) -> Intervals:
    found = work.size(op.view, op.axis.value.data)
    return [Interval(found.lo, min(found.hi, all_values(dtype_at(op.result)).hi))]


def _load(work: _Analysis, op: tile.LoadOp, operands: Intervals) -> Intervals:
    held = work.memory.get(tile.base_of(op.view), all_values(tile_dtype(op.result)))
    if _lies_inside(work, op, operands):
        return [held]
    if math.isnan(op.pad_value):
        return [held.with_nan()]
    return [hull((held, intervals.rounded(Interval(op.pad_value, op.pad_value), tile_dtype(op.result))))]


def _looked_up(work: _Analysis, op: tile.ReadOp | tile.ItemOp, operands: Intervals) -> Intervals:
    held = work.memory.get(tile.base_of(op.view), all_values(view_type(op.view).dtype))
    return [hull((held, Interval(0, 0)))]


def _take(work: _Analysis, op: tile.TakeOp, operands: Intervals) -> Intervals:
    return [hull((operands[0], Interval(0, 0)))]


def _lies_inside(work: _Analysis, op: tile.LoadOp, offsets: Intervals) -> bool:
    extents = tile_type(op.result).get_shape()
    return all(
        offset.lo >= 0 and offset.hi + extent <= work.size(op.view, axis).lo
        for axis, (offset, extent) in enumerate(zip(offsets, extents, strict=True))
    )


def _same(work: _Analysis, op: Operation, operands: Intervals) -> Intervals:
    return operands


def _iota(work: _Analysis, op: tile.IotaOp, operands: Intervals) -> Intervals:
    dtype, extent = tile_dtype(op.result), tile_type(op.result).get_shape()[op.axis.value.data]
    last = Interval(0, max(0, extent - 1))
    return [intervals.rounded(intervals.add(dtype, operands[0], last), dtype)]


def _elementwise(work: _Analysis, op: tile.EwOp, operands: Intervals) -> Intervals:
    dtypes, result = [tile_dtype(operand) for operand in op.operands_], op.result_dtype
    if op.fn.data == "cast":
        return [elementwise.interval("cast", operands, dtypes, to=result)]
    # As in the interpreter: tiles have no policy of their own, so they take the op's.
    governed = [result if dtype.base is result.base else dtype for dtype in dtypes]
    return [elementwise.interval(op.fn.data, operands, governed)]


def _sum(dtype: DType, term: Interval, count: int) -> Interval:
    """A sum of `count` terms, carried in float64 or in integers that wrap."""
    if count == 0:
        return Interval(0, 0)
    # Infinities of both signs may meet, and sums that overflow on the way do.
    opposite = count > 1 and term.lo == -INFINITY and term.hi == INFINITY
    total = intervals.mul(dtype, term, Interval(count, count)).with_nan(opposite)
    if total.lo == -INFINITY and total.hi == INFINITY:
        total = total.with_nan()
    if dtype.float_format is not None and dtype.float_format.mantissa_bits > _WIDE_MANTISSA:
        slack = count * 2.0**-52
        return Interval(total.lo - abs(total.lo) * slack, total.hi + abs(total.hi) * slack, total.may_nan)
    return total


def _product(dtype: DType, factor: Interval, count: int) -> Interval:
    largest = max(abs(factor.lo), abs(factor.hi))
    reach = intervals.power(dtype, Interval(largest, largest), Interval(count, count)).hi
    # On the way to the end an infinity may meet a 0.
    lost = factor.may_nan or max(reach, largest) == INFINITY
    return Interval(0 if factor.lo >= 0 else -reach, reach, lost)


def _reduce(work: _Analysis, op: tile.ReduceOp, operands: Intervals) -> Intervals:
    dtype, kind = tile_dtype(op.operand), op.kind.data
    count = tile_type(op.operand).get_shape()[op.axis.value.data]
    if kind in ("max", "min") and count > 0:
        return operands
    if kind == "sum":
        return [intervals.rounded(_sum(dtype, operands[0], count), dtype)]
    if kind == "prod" and dtype.is_float and count > 0:
        return [intervals.rounded(_product(dtype, operands[0], count), dtype)]
    return _unknown(work, op, operands)


def _dot(work: _Analysis, op: tile.DotOp, operands: Intervals) -> Intervals:
    a, b, c = operands
    dtype, count = tile_dtype(op.c), tile_type(op.a).get_shape()[-1]
    total = _sum(dtype, intervals.mul(dtype, a, b), count)
    return [intervals.rounded(intervals.add(dtype, total, c), dtype)]


def _arithmetic(name: str) -> Callable[[_Analysis, Operation, Intervals], Intervals]:
    def rule(work: _Analysis, op: Operation, operands: Intervals) -> Intervals:
        return [elementwise.interval(name, operands, [dtype_at(operand) for operand in op.operands])]

    return rule


def _cast(work: _Analysis, op: Operation, operands: Intervals) -> Intervals:
    return [elementwise.interval("cast", operands, [dtype_at(op.operands[0])], to=dtype_at(op.results[0]))]


def _compare(work: _Analysis, op: Operation, operands: Intervals) -> Intervals:
    return [EITHER]


def _select(work: _Analysis, op: arith.SelectOp, operands: Intervals) -> Intervals:
    return [intervals.select(dtype_at(op.result), *operands)]


def _for(work: _Analysis, op: scf.ForOp, operands: Intervals) -> Intervals:
    start, stop, _, *carried = operands
    position, *inner = _numbers(op.body.block.args)
    work.values[position] = Interval(start.lo, max(start.lo, stop.hi - 1))
    passes = 0
    while True:
        work.values.update(zip(inner, carried, strict=True))
        left = work.run(op.body.block)
        joined = [hull(pair) for pair in zip(carried, left, strict=True)]
        if joined == carried:
            return carried
        passes += 1
        if passes > _PATIENCE:
            joined = [_widened(*each) for each in zip(carried, joined, map(dtype_at, inner), strict=True)]
        carried = joined


def _widened(before: Interval, after: Interval, dtype: DType) -> Interval:
    """Every end that still moves, moved to the end of the type."""
    every = all_values(dtype)
    return Interval(
        before.lo if after.lo == before.lo else every.lo,
        before.hi if after.hi == before.hi else every.hi,
        after.may_nan,
    )


def _if(work: _Analysis, op: scf.IfOp, operands: Intervals) -> Intervals:
    branches = [work.run(region.block) for region in (op.true_region, op.false_region) if region.blocks]
    return [hull(each) for each in zip(*branches, strict=True)] if op.results else []


_INTEGER: Mapping[type[Operation], str] = MappingProxyType(
    {arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul", arith.MinSIOp: "min", arith.MaxSIOp: "max"}
)
_RULES: Mapping[type[Operation], Callable[[_Analysis, Any, Intervals], Intervals]] = MappingProxyType(
    {
        arith.ConstantOp: _constant,
        arith.CmpiOp: _compare,
        arith.CmpfOp: _compare,
        arith.SelectOp: _select,
        scf.ForOp: _for,
        scf.IfOp: _if,
        tile.ProgramIdOp: _program_id,
        tile.DimOp: _dim,
        tile.LoadOp: _load,
        **dict.fromkeys((tile.ReadOp, tile.ItemOp), _looked_up),
        tile.TakeOp: _take,
        tile.IotaOp: _iota,
        tile.EwOp: _elementwise,
        tile.ReduceOp: _reduce,
        tile.DotOp: _dot,
        **dict.fromkeys((tile.FullOp, tile.ExpandOp, tile.BroadcastOp, tile.TransOp, tile.SortOp), _same),
        **dict.fromkeys((*scalars.CASTS, *scalars.INTEGER_CASTS), _cast),
        **{kind: _arithmetic(name) for kind, name in (*scalars.FLOAT.items(), *_INTEGER.items())},
    }
)
