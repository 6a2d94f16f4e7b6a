"""Conditions on the sizes and strides of arguments, as numbers in nested tuples: `("floordivsi", ("dim", 0, 1), 64)`.

Programs check them before they run. As JSON they are lists; evaluating them needs no IR.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

Condition: TypeAlias = int | tuple[Any, ...]
Geometry: TypeAlias = tuple[Sequence[int], Sequence[int]] | None
"""Sizes and strides of an argument, in elements; None for a number."""


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _down(a: int, b: int) -> int:
    return a // b


def _both(a: int, b: int) -> int:
    return a & b


def _either(a: int, b: int) -> int:
    return a | b


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _rest(a: int, b: int) -> int:
    return a - b * _truncated(a, b)


def _chosen(condition: int, a: int, b: int) -> int:
    return a if condition else b


FUNCTIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "addi": operator.add,
        "subi": operator.sub,
        "muli": operator.mul,
        "floordivsi": _down,
        "ceildivsi": _up,
        "divsi": _truncated,
        "remsi": _rest,
        "minsi": min,
        "maxsi": max,
        "andi": _both,
        "ori": _either,
        "eq": operator.eq,
        "ne": operator.ne,
        "slt": operator.lt,
        "sle": operator.le,
        "sgt": operator.gt,
        "sge": operator.ge,
        "select": _chosen,
    }
)


def evaluate(condition: Any, geometry: Sequence[Geometry]) -> int:
    """The value of a condition; raises ZeroDivisionError where it divides by zero."""
    if isinstance(condition, int):
        return condition
    name, *operands = cast("tuple[Any, ...]", condition)
    if name in ("dim", "stride"):
        found: Geometry = geometry[int(operands[0])]
        assert found is not None
        sizes, strides = found
        return (strides if name == "stride" else sizes)[int(operands[1])]
    return +FUNCTIONS[name](*(evaluate(operand, geometry) for operand in operands))  # truths become numbers


def frozen(found: Any) -> Condition:
    """A condition as JSON has it, as tuples; ValueError where it is none."""
    if isinstance(found, int):
        return found
    name, *operands = found
    if name in ("dim", "stride"):
        return (name, int(operands[0]), int(operands[1]))
    if name not in FUNCTIONS:
        raise ValueError(name)
    return (name, *(frozen(operand) for operand in operands))
