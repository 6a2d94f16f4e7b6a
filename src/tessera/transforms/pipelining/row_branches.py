"""Branches that are taken if any row needs them, and in which all other rows keep their values.

Whether other rows need the branch makes no difference to a row: kernels can still be divided by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.masks import repeated
from tessera.transforms.core.slices import end_of


def decides_row_by_row(question: tile.AnyOp, indices: Callable[[Operation], Iterable[int]]) -> bool:
    """Whether all that a question decides is branches whose results, at `indices`, are those of each row by itself.

    What branches write is written for all rows.
    """
    return all(
        isinstance(branch := use.operation, scf.IfOp)
        and not any(isinstance(op, tile.Writer) for op in branch.walk())
        and all(_keeps(branch, index, question.operand) for index in indices(branch))
        for use in question.result.uses
    )


def _keeps(branch: scf.IfOp, index: int, asks: SSAValue) -> bool:
    """Whether rows that do not ask get the same on both sides."""
    taken, other = (_unasked(end_of(region.block).operands[index], asks) for region in branch.regions)
    return taken is other


def _unasked(value: SSAValue, asks: SSAValue) -> SSAValue:
    """The value of a tile in rows that do not ask."""
    op = value.owner
    match op:
        case tile.EwOp() if op.fn.data == "select" and repeated(op.operands_[0]) is asks:
            return _unasked(op.operands_[2], asks)
        case tile.EwOp() if op.fn.data == "mul" and _is_one(op.operands_[1], asks):
            return _unasked(op.operands_[0], asks)
        case scf.IfOp() if isinstance(op.cond.owner, tile.AnyOp) and op.cond.owner.operand is asks:
            index = list(op.results).index(value)  # pyright: ignore[reportArgumentType]
            return _unasked(end_of(op.false_region.block).operands[index], asks) if _keeps(op, index, asks) else value
        case _:
            return value


def _is_one(value: SSAValue, asks: SSAValue) -> bool:
    """Whether a factor is 1 in rows that do not ask."""
    op = _unasked(repeated(value), asks).owner
    number = op.value.owner if isinstance(op, tile.FullOp) else None
    return isinstance(number, arith.ConstantOp) and isinstance(number.value, FloatAttr) and number.value.value.data == 1
