"""Exponentials by powers of two: e^x = 2^(x · log2 e), with the factor folded into what x is made of.

Machines have an instruction for powers of two. In x = s · c − m, with m the same along a row, the factor goes into the
constant c and into m, and nothing is left to multiply for each element.
"""

from __future__ import annotations

from math import inf, isinf, log2

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.dtypes.types import f32
from tessera.transforms.masks import constant_of
from tessera.transforms.rewriting import adopt_location, replace

LOG2_E = log2(2.718281828459045235360287)


def use_powers_of_two(function: tile.FuncOp, mark: str) -> None:
    """Rewrites the exponentials that carry a mark: those that need not be exact to the last bits."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.EwOp) and op.fn.data == "exp" and mark in op.attributes:
            if tile_dtype(op.result) is not f32:
                continue
            made = tile.EwOp("exp2", [_Scaler(op).scaled(op.operands_[0])])
            made.attributes.update(op.attributes)
            replace(op, [made])
    _remove_unused(function)


class _Scaler:
    """Writes values times log2 e in front of an op."""

    def __init__(self, before: Operation) -> None:
        self.before = before
        self.known: dict[SSAValue, SSAValue] = {}

    def add(self, op: Operation) -> SSAValue:
        adopt_location([op], self.before)
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        return op.results[0]

    def scaled(self, value: SSAValue) -> SSAValue:
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: SSAValue) -> SSAValue:
        shape = tile_type(value).get_shape()
        number = constant_of(value)
        if number is not None:
            return self._constant(number * LOG2_E, shape)
        op = value.owner
        # Values that others use, too, are there anyway: only what is cheap to write again is taken apart.
        match op:
            case tile.EwOp() if op.fn.data == "sub":
                return self.add(tile.EwOp("sub", [self.scaled(operand) for operand in op.operands_]))
            case tile.EwOp() if (found := self._factored(value)) is not None:
                return self.add(tile.EwOp("mul", [found[0], self._constant(found[1] * LOG2_E, shape)]))
            case tile.BroadcastOp():
                return self.add(tile.BroadcastOp(self.scaled(op.operand), shape))
            case tile.ExpandOp():
                return self.add(tile.ExpandOp(self.scaled(op.operand), op.axis.value.data))
            case _:
                pass
        return self.add(tile.EwOp("mul", [value, self._constant(LOG2_E, shape)]))

    def _factored(self, value: SSAValue) -> tuple[SSAValue, float] | None:
        """A value as something times a positive number; masks that choose infinities stand in front of it as well."""
        op = value.owner
        if not isinstance(op, tile.EwOp) or op.policy is not None:
            return None
        if op.fn.data == "mul":
            for factor, other in (op.operands_, tuple(reversed(op.operands_))):
                number = constant_of(factor)
                if number is not None and 0 < number < inf:
                    return other, number
        if op.fn.data == "select":
            mask, chosen, otherwise = op.operands_
            found = self._factored(chosen) if isinf(constant_of(otherwise) or 0.0) else None
            if found is not None:
                return self.add(tile.EwOp("select", [mask, found[0], otherwise])), found[1]
        return None

    def _constant(self, number: float, shape: tuple[int, ...]) -> SSAValue:
        scalar = self.add(arith.ConstantOp(FloatAttr(number, Float32Type())))
        return self.add(tile.FullOp(scalar, shape))


def _remove_unused(function: tile.FuncOp) -> None:
    """Ops on tiles that nothing uses any more, last ones first."""
    for op in reversed(list(function.body.walk())):
        if isinstance(op, tile.EwOp | tile.BroadcastOp | tile.ExpandOp | tile.FullOp) and not any(op.results[0].uses):
            op.detach()
            op.erase()
