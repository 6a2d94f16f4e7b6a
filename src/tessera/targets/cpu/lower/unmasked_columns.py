"""Columns for which masks are true in all rows: loops over them do without the masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.lower.clipping import COLUMN, one_column
from tessera.targets.cpu.lower.lowering import Lowering
from tessera.targets.cpu.lower.nests import Analysis, Nest, shape_of
from tessera.transforms.algebra.masks import Linear, true_if

Bounds: TypeAlias = tuple[SSAValue, SSAValue]
"""The first of some columns, and the first behind them."""
NO_MASKS: frozenset[SSAValue] = frozenset()


@dataclass(frozen=True)
class UnmaskedColumns:
    """Masks, and the columns from one to another in which all of them are true; None stands for the first of all."""

    masks: frozenset[SSAValue]
    first: SSAValue | None
    last: SSAValue


def unmasked_columns(lowering: Lowering, nest: Nest) -> UnmaskedColumns | None:
    """The columns in which a nest's masks are true.

    Nests with dots are left alone: beside these a mask costs little, and twice the code costs much.
    """
    if nest.rows == 1 or nest.folds is not None or any(phase.dot is not None for phase in nest.phases):
        return None
    masks, first, last = set[SSAValue](), None, None
    for op in nest.ops:
        for mask in masks_behind(lowering.analysis, op):
            if mask in masks or (found := _range(lowering, mask)) is None:
                continue
            masks.add(mask)
            first = _chosen(lowering, arith.MaxSIOp, [first, found[0]])
            last = _chosen(lowering, arith.MinSIOp, [last, found[1]])
    return None if last is None else UnmaskedColumns(frozenset(masks), first, last)


def masks_behind(analysis: Analysis, op: Operation) -> Iterator[SSAValue]:
    """The masks of an op and of free ones behind it."""
    if isinstance(op, tile.EwOp) and op.fn.data == "select" and len(shape_of(op.result)) == 2:
        yield op.operands_[0]
    for operand in op.operands:
        owner = operand.owner
        # Behind a transposition, a mask's columns are others.
        if not isinstance(operand.type, TensorType) or isinstance(owner, Block | tile.TransOp):
            continue
        if analysis.is_free(operand):
            yield from masks_behind(analysis, owner)


def _range(lowering: Lowering, mask: SSAValue) -> tuple[SSAValue | None, SSAValue] | None:
    """The columns of a mask that are true in all rows, if numbers that are there tell."""
    rows, cols = shape_of(mask)
    cases = [_bounds(lowering, bounds, cols) for bounds in true_if(mask, one_column(mask, Linear(), rows))]
    known = [case for case in cases if case is not None]
    if not known:
        return None
    # Of cases that begin with the first column, the one that goes farthest has all the others in it.
    ends = [last for first, last in known if first is None]
    end = _chosen(lowering, arith.MaxSIOp, ends)
    return known[0] if end is None else (None, end)


def _bounds(lowering: Lowering, bounds: Sequence[Linear], cols: int) -> tuple[SSAValue | None, SSAValue] | None:
    """From which column to which all of some linear forms are above 0."""
    first, last = list[SSAValue](), [lowering.constant(cols)]
    for one in bounds:
        factor, rest = one.factor_of(COLUMN), lowering.linear(one.without(COLUMN))
        if rest is None:
            return None
        if factor < 0:
            last.append(lowering.add(arith.CeilDivSIOp(rest, lowering.constant(-factor))).results[0])
        elif factor > 0:
            below = lowering.add(arith.SubiOp(lowering.constant(0), rest)).results[0]
            whole = lowering.add(arith.FloorDivSIOp(below, lowering.constant(factor))).results[0]
            first.append(lowering.sum(whole, lowering.constant(1)))
        else:
            above = lowering.add(arith.CmpiOp(rest, lowering.constant(0), 4)).results[0]
            choice = arith.SelectOp(above, lowering.constant(cols), lowering.constant(0))
            last.append(lowering.add(choice).results[0])
    end = _chosen(lowering, arith.MinSIOp, last)
    assert end is not None
    return _chosen(lowering, arith.MaxSIOp, first), end


def _chosen(
    lowering: Lowering, choose: type[arith.MaxSIOp | arith.MinSIOp], values: Sequence[SSAValue | None]
) -> SSAValue | None:
    found: SSAValue | None = None
    for value in values:
        if value is not None:
            found = value if found is None else lowering.add(choose(found, value)).results[0]
    return found
