"""Conditions on the sizes and strides of arguments, as numbers in nested tuples: `("floordivsi", ("dim", 0, 1), 64)`.

Programs check them before they run. As JSON they are lists; evaluating them needs no IR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

Condition: TypeAlias = int | tuple[Any, ...]
Geometry: TypeAlias = tuple[Sequence[int], Sequence[int]] | None
"""Sizes and strides of an argument, in elements; None for a number."""


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


FUNCTIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "addi": lambda a, b: a + b,
        "subi": lambda a, b: a - b,
        "muli": lambda a, b: a * b,
        "floordivsi": lambda a, b: a // b,
        "ceildivsi": lambda a, b: -(-a // b),
        "divsi": _truncated,
        "remsi": lambda a, b: a - b * _truncated(a, b),
        "minsi": min,
        "maxsi": max,
        "andi": lambda a, b: a & b,
        "ori": lambda a, b: a | b,
        "eq": lambda a, b: int(a == b),
        "ne": lambda a, b: int(a != b),
        "slt": lambda a, b: int(a < b),
        "sle": lambda a, b: int(a <= b),
        "sgt": lambda a, b: int(a > b),
        "sge": lambda a, b: int(a >= b),
        "select": lambda condition, a, b: a if condition else b,
    }
)


def evaluate(condition: Any, geometry: Sequence[Geometry]) -> int:
    """What a condition comes to; ZeroDivisionError where it divides by zero."""
    if isinstance(condition, int):
        return condition
    name, *operands = condition
    if name in ("dim", "stride"):
        found = geometry[operands[0]]
        assert found is not None
        return found[name == "stride"][operands[1]]
    return FUNCTIONS[name](*(evaluate(operand, geometry) for operand in operands))


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
