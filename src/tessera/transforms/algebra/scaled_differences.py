"""Exponentials below a maximum: e^(x · c − max(x · c)) = 2^((x − max x) · c · log2 e) for a number c > 0 that is known.

The difference comes first, so that it is exact for what is near the maximum, however large the numbers are; one factor
replaces two, and powers of two are quicker than those of e. What is above a maximum would lose bits here:
only differences that cannot be are rewritten. The maxima of blocks that a loop carries on are carried without c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.factoring import remove_unused
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.algebra.powers_of_two import LOG2_E
from tessera.transforms.algebra.ratios import factor_of
from tessera.transforms.algebra.scaled_maxima import scale_maxima
from tessera.transforms.core.common_subexpressions import merge_equal
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import adopt_location, insert_before, replace
from tessera.transforms.core.tile_ops import TileOps

_MAXIMA = ("max", "top")


@dataclass(frozen=True)
class ScaledDifferences(FunctionPass):
    """Writes exponentials below a maximum as powers of two of a scaled difference, with the maxima that they need.

    A function that has none gets its maxima scaled: those `of_dots`, too, if that pays.
    """

    name = "scaled-differences"
    of_dots: bool = True

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        if use_scaled_differences(function):
            merge_equal(function.body.block)
            remove_unused(function)
        else:
            scale_maxima(function, of_dots=self.of_dots)


def use_scaled_differences(function: tile.FuncOp) -> bool:
    """Rewrites what it can, the maxima that it needs included; gives whether there was something."""
    exponentials = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and _is_below_maximum(op)]
    factors = {number for op in exponentials if (number := _factor(_parts(op)[0])) is not None}
    if not factors:
        return False
    scale_maxima(function)
    for loop in [op for op in function.body.walk() if isinstance(op, scf.ForOp)]:
        for index in range(len(loop.iter_args)):
            _carry_unscaled(loop, index, factors)
    unscaled = _Unscaled()
    for op in exponentials:
        for factor in factors:
            more, less = (unscaled.of(part, factor) for part in _parts(op))
            if more is not None and less is not None:
                difference = tile.EwOp("sub", [more, less])
                power = _multiple(difference.result, factor * LOG2_E)
                replace(op, [difference, *power, tile.EwOp("exp2", power[-1].results)])
                break
    remove_unused(function)
    return True


def _parts(op: tile.EwOp) -> Sequence[SSAValue]:
    """The operands of the difference that an exponential is of."""
    difference = op.operands_[0].owner
    assert isinstance(difference, tile.EwOp)
    return difference.operands_


def _is_below_maximum(op: tile.EwOp) -> bool:
    """Whether an op is the exponential of a difference that is never above 0."""
    if (op.fn.data, op.policy) != ("exp", None) or tile_dtype(op.result) is not f32:
        return False
    less = op.operands_[0].owner
    if not isinstance(less, tile.EwOp) or (less.fn.data, less.policy) != ("sub", None):
        return False
    return _is_above(less.operands_[1], less.operands_[0])


def _is_above(top: SSAValue, value: SSAValue) -> bool:
    """Whether a value is a maximum that another is part of. It may be replaced by 0 where it is not a number."""
    if top is value:
        return True
    match top.owner:
        case tile.BroadcastOp() | tile.ExpandOp() as op:
            return _is_above(op.operand, value)
        case tile.ReduceOp() as op:
            return op.kind.data in _MAXIMA and op.operand is value
        case tile.EwOp() as op if op.fn.data == "max":
            return any(_is_above(part, value) for part in op.operands_)
        case tile.EwOp() as op if op.fn.data == "select" and constant_of(op.operands_[1]) == 0:
            return _is_nothing(op.operands_[0], op.operands_[2]) and _is_above(op.operands_[2], value)
        case _:
            return False


def _is_nothing(condition: SSAValue, value: SSAValue) -> bool:
    """Whether a condition asks if a value is −∞."""
    op = condition.owner
    if not isinstance(op, tile.EwOp) or op.fn.data != "eq":
        return False
    return any(one is value and constant_of(other) == -inf for one, other in (op.operands_, op.operands_[::-1]))


def _product(value: SSAValue) -> tuple[SSAValue, float] | None:
    """A value as another one times a positive number."""
    return factor_of(value) if tile_dtype(value) is f32 else None


def _factor(value: SSAValue) -> float | None:
    """The number that a value is a multiple of, but for masks that choose −∞."""
    op = value.owner
    if isinstance(op, tile.EwOp) and op.fn.data == "select" and constant_of(op.operands_[2]) == -inf:
        return _factor(op.operands_[1])
    found = _product(value)
    return None if found is None else found[1]


def _multiple(value: SSAValue, factor: float) -> list[Operation]:
    ops = TileOps()
    ops.ew("mul", value, ops.filled(factor, value))
    return ops.ops


def _carry_unscaled(loop: scf.ForOp, index: int, factors: set[float]) -> None:
    """Carries the maximum of what comes before its multiple, if a loop begins with −∞ and carries max(m, x · c) on.

    Rounding keeps order: c · max(m, x) is the same number.
    """
    body = loop.body.block
    end, carried = body.last_op, body.args[index + 1]
    assert end is not None
    top = end.operands[index].owner
    if constant_of(loop.iter_args[index]) != -inf or not isinstance(top, tile.EwOp) or top.parent is not body:
        return
    others = [one for one in top.operands_ if one is not carried]
    if (top.fn.data, top.policy) != ("max", None) or len(others) != 1:
        return
    found = _product(others[0])
    if found is None or found[1] not in factors:
        return
    maximum = tile.EwOp("max", [found[0] if one is others[0] else one for one in top.operands_])
    replace(top, [maximum, *_multiple(maximum.result, found[1])])
    end.operands[index] = maximum.result
    _use_multiple(carried, found[1], InsertPoint.at_start(body), loop, [maximum])
    _use_multiple(loop.results[index], found[1], InsertPoint.after(loop), loop, [])


def _use_multiple(
    value: SSAValue, factor: float, at: InsertPoint, source: Operation, but_in: Sequence[Operation]
) -> None:
    """Replaces a value by a multiple of it, but in some ops."""
    users = [use for use in value.uses if use.operation not in but_in]
    if users:
        made = _multiple(value, factor)
        adopt_location(made, source)
        Rewriter.insert_op(made, at)
        for use in users:
            use.operation.operands[use.index] = made[-1].results[0]


@dataclass
class _Unscaled:
    """Values without a factor, written once behind what they are made of."""

    made: dict[tuple[SSAValue, float], SSAValue | None] = field(
        default_factory=dict[tuple[SSAValue, float], "SSAValue | None"]
    )

    def of(self, value: SSAValue, factor: float) -> SSAValue | None:
        key = value, factor
        if key not in self.made:
            self.made[key] = self._found(value, factor)
        return self.made[key]

    def _found(self, value: SSAValue, factor: float) -> SSAValue | None:
        found = _product(value)
        if found is not None:
            return found[0] if found[1] == factor else None
        match value.owner:
            case tile.BroadcastOp() as op:
                inner = self.of(op.operand, factor)
                return inner and self._add(tile.BroadcastOp(inner, tile_type(value).get_shape()), op)
            case tile.ExpandOp() as op:
                inner = self.of(op.operand, factor)
                return inner and self._add(tile.ExpandOp(inner, op.axis.value.data), op)
            case tile.EwOp() as op if op.fn.data == "select":
                condition, *chosen = op.operands_
                parts = self._parts(chosen, factor)
                return self._add(tile.EwOp("select", [condition, *parts]), op) if parts else None
            case tile.EwOp() as op if (op.fn.data, op.policy) == ("max", None):
                # A loop of one iteration leaves the maximum of its block and of −∞, which it began with.
                parts = self._parts(op.operands_, factor)
                return self._add(tile.EwOp("max", parts), op) if parts else None
            case _:
                return None

    def _parts(self, values: Sequence[SSAValue], factor: float) -> list[SSAValue] | None:
        """All of some values without a factor; nothing and infinities are what they are, multiplied or not."""
        parts = [one if constant_of(one) in (0, inf, -inf) else self.of(one, factor) for one in values]
        known = [part for part in parts if part is not None]
        return known if len(known) == len(parts) else None

    def _add(self, op: Operation, source: Operation) -> SSAValue:
        insert_before(source, [op])
        return op.results[0]
