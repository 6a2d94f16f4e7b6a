"""Multiples that may be rounded together with a sum, and the mark that they have until targets round the others."""

from __future__ import annotations

from collections.abc import Iterable
from math import frexp, isfinite

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.function_pass import function_pass

MULTIPLE = "multiple"
"""Marks ops whose results need no rounding before they are added, until `round-multiples`."""


def mark(values: Iterable[SSAValue]) -> None:
    """Marks the ops that compute some values."""
    for value in values:
        if isinstance(value.owner, Operation):
            value.owner.attributes[MULTIPLE] = UnitAttr()


def mark_multiples(function: tile.FuncOp) -> None:
    """Marks multiples that one op alone uses, or that need no rounding: a sum of them may be rounded once."""
    mark(single_multiples(function))


MarkMultiples = function_pass("mark-multiples", mark_multiples)


def single_multiples(function: tile.FuncOp) -> frozenset[SSAValue]:
    """Multiples that one op alone uses, or that need no rounding: a sum of them may be rounded once.

    One that others use too must be the same for all: x·a − max(x·a) is never above 0.
    """
    return frozenset(
        op.result
        for op in function.body.walk()
        if isinstance(op, tile.EwOp)
        and op.fn.data == "mul"
        and (_has_one_user(op.result) or any(_is_power_of_two(operand) for operand in op.operands_))
    )


def _has_one_user(value: SSAValue) -> bool:
    """Whether one op uses a value. What a mask chooses counts as the value itself: the mask may be left out."""
    users = [use.operation for use in value.uses]
    if len(users) != 1:
        return False
    (user,) = users
    chooses = isinstance(user, tile.EwOp) and user.fn.data == "select"
    return _has_one_user(user.results[0]) if chooses else True


def _is_power_of_two(value: SSAValue) -> bool:
    number = constant_of(value)
    return number is not None and isfinite(number) and abs(frexp(number)[0]) == 0.5
