"""Folds ops whose operands are known in part: one table for canonicalising and for applying facts.

Every answer says which operands' values it relied on, so that facts about them can become guards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tessera.dtypes.types import NO_POLICY
from tessera.errors import TesseraError
from tessera.interpreters.core.engine import RULES, Frame
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.scalars import COMPARE, SCALAR_OPS, scalar, wrap
from tessera.ir.common.elements import dtype_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.tile import dialect as tile


@dataclass(frozen=True)
class FoldedConstant:
    """The result is this number, given the values of operands `because`."""

    value: Any
    because: tuple[int, ...] = ()


@dataclass(frozen=True)
class FoldedValue:
    """The result is another value, given the values of operands `because`."""

    value: SSAValue
    because: tuple[int, ...] = ()


Fold = FoldedConstant | FoldedValue
OpT = TypeVar("OpT", bound=Operation)
Rule = Callable[[OpT, Sequence[Any]], Fold | None]
_RULES: dict[type[Operation], Rule[Any]] = {}
_NOWHERE = Frame(Machine())


def _rule(*kinds: type[Operation]) -> Callable[[Rule[Any]], Rule[Any]]:
    def register(rule: Rule[Any]) -> Rule[Any]:
        _RULES.update(dict.fromkeys(kinds, rule))
        return rule

    return register


def can_fold(kind: type[Operation]) -> bool:
    """Whether ops of a kind may amount to something simpler."""
    return kind in _RULES or (kind in SCALAR_OPS and kind is not arith.ConstantOp)


def fold(op: Operation, known: Sequence[Any]) -> Fold | None:
    """The folded result of `op`; `known` has the value of each operand, or None."""
    rule = _RULES.get(type(op))
    # Identities first: they rely on fewer operands than evaluating does.
    if rule is not None and (found := rule(op, known)) is not None:
        return found
    if type(op) not in SCALAR_OPS or op.regions or not op.operands or None in known:
        return None
    try:
        found_values = RULES[type(op)](_NOWHERE, op, known)
    except TesseraError:
        return None  # a division by zero stays where it is, to fail when and if it runs
    assert found_values is not None
    return FoldedConstant(found_values[0], tuple(range(len(known))))


def literal(value: SSAValue) -> Any | None:
    """The number an `arith.constant` holds, or None."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    held: Attribute = owner.value
    if not isinstance(held, IntegerAttr | FloatAttr):
        return None
    return scalar(held.value.data, value.type)


def materialize(value: Any, type_: Attribute) -> arith.ConstantOp:
    """An op that gives a scalar."""
    if dtype_of(type_).is_float:
        return arith.ConstantOp(FloatAttr(float(value), cast("AnyFloat", type_)))
    return arith.ConstantOp(IntegerAttr(int(value), cast("IntegerType | IndexType", type_)))


def _neutral(op: Operation, known: Sequence[Any], element: int, *, right_only: bool = False) -> FoldedValue | None:
    """x∘e and, unless the op does not commute, e∘x are x."""
    for position in (1,) if right_only else (1, 0):
        if known[position] == element:
            return FoldedValue(op.operands[1 - position], (position,))
    return None


def _absorbing(known: Sequence[Any], element: int) -> FoldedConstant | None:
    for position in (0, 1):
        if known[position] == element:
            return FoldedConstant(element, (position,))
    return None


def _twice(op: Operation) -> bool:
    return op.operands[0] is op.operands[1]


@_rule(arith.AddiOp)
def _add(op: arith.AddiOp, known: Sequence[Any]) -> Fold | None:
    return _neutral(op, known, 0)


@_rule(arith.SubiOp)
def _subtract(op: arith.SubiOp, known: Sequence[Any]) -> Fold | None:
    return FoldedConstant(0) if _twice(op) else _neutral(op, known, 0, right_only=True)


@_rule(arith.MuliOp)
def _multiply(op: arith.MuliOp, known: Sequence[Any]) -> Fold | None:
    return _absorbing(known, 0) or _neutral(op, known, 1)


@_rule(arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)
def _divide(op: Operation, known: Sequence[Any]) -> Fold | None:
    return _neutral(op, known, 1, right_only=True)


@_rule(arith.RemSIOp)
def _remainder(op: arith.RemSIOp, known: Sequence[Any]) -> Fold | None:
    return FoldedConstant(0, (1,)) if known[1] == 1 else None


@_rule(arith.AndIOp)
def _and(op: arith.AndIOp, known: Sequence[Any]) -> Fold | None:
    if _twice(op):
        return FoldedValue(op.lhs)
    return _absorbing(known, 0) or _neutral(op, known, wrap(-1, op.result.type))


@_rule(arith.OrIOp)
def _or(op: arith.OrIOp, known: Sequence[Any]) -> Fold | None:
    if _twice(op):
        return FoldedValue(op.lhs)
    return _absorbing(known, wrap(-1, op.result.type)) or _neutral(op, known, 0)


@_rule(arith.XOrIOp)
def _xor(op: arith.XOrIOp, known: Sequence[Any]) -> Fold | None:
    return FoldedConstant(0) if _twice(op) else _neutral(op, known, 0)


@_rule(arith.MinSIOp, arith.MaxSIOp)
def _extreme(op: Operation, known: Sequence[Any]) -> Fold | None:
    return FoldedValue(op.operands[0]) if _twice(op) else None


@_rule(arith.CmpiOp)
def _compare(op: arith.CmpiOp, known: Sequence[Any]) -> Fold | None:
    return FoldedConstant(int(COMPARE[op.predicate.value.data](0, 0))) if _twice(op) else None


@_rule(arith.SelectOp)
def _select(op: arith.SelectOp, known: Sequence[Any]) -> Fold | None:
    if op.lhs is op.rhs:
        return FoldedValue(op.lhs)
    if isinstance(known[1], int) and known[1] == known[2]:  # not floats: zeros of both signs are equal
        return FoldedConstant(known[1], (1, 2))
    return None if known[0] is None else FoldedValue(op.lhs if known[0] else op.rhs, (0,))


@_rule(tile.DimOp)
def _dim(op: tile.DimOp, known: Sequence[Any]) -> Fold | None:
    axis, owner = op.axis.value.data, op.view.owner
    if isinstance(owner, tile.ViewOp):
        return FoldedValue(owner.sizes[axis])
    # A constant in the signature is checked on every call: it needs no guard of its own.
    size = signature_size(op.view, axis)
    return FoldedConstant(size) if isinstance(size, int) else None


@_rule(tile.StrideOp)
def _stride(op: tile.StrideOp, known: Sequence[Any]) -> Fold | None:
    owner = op.view.owner
    return FoldedValue(owner.strides[op.axis.value.data]) if isinstance(owner, tile.ViewOp) else None


def signature_size(view: SSAValue, axis: int) -> Any:
    """An argument's size according to the signature of its tile function."""
    if isinstance(view, BlockArgument) and isinstance(function := view.block.parent_op(), tile.FuncOp):
        return function.shapes.data[view.index].data[axis]
    return None


@_rule(tile.TransOp, graph.TransposeOp)
def _transpose(op: tile.TransOp | graph.TransposeOp, known: Sequence[Any]) -> Fold | None:
    permutation = list(op.permutation.iter_values())
    return FoldedValue(op.operand) if permutation == list(range(len(permutation))) else None


@_rule(tile.BroadcastOp, graph.BroadcastOp, graph.ReshapeOp)
def _unchanged(op: Operation, known: Sequence[Any]) -> Fold | None:
    return FoldedValue(op.operands[0]) if op.operands[0].type == op.results[0].type else None


@_rule(tile.EwOp, graph.EwOp)
def _elementwise(op: tile.EwOp | graph.EwOp, known: Sequence[Any]) -> Fold | None:
    if op.fn.data == "cast" and op.operands_[0].type == op.result.type and op.properties.get("policy") is None:
        # A cast to the same type changes nothing: every value is already one of the type's. But a tile's policy is
        # not part of its type, and may scale or clamp.
        return FoldedValue(op.operands_[0])
    if op.fn.data == "select" and op.operands_[1] is op.operands_[2] and _is_plain(op):
        return FoldedValue(op.operands_[1])
    return None


def _is_plain(op: tile.EwOp | graph.EwOp) -> bool:
    """Whether no policy changes values on their way into the result: a saturating type clamps even what it is given."""
    return op.policy is None if isinstance(op, tile.EwOp) else graph_type(op.result).dtype.policy == NO_POLICY
