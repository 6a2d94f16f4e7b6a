"""Whole-number arithmetic that folds constants on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tessera.targets.llvm.text import Function, Operand, Value, number, of_type

_FOLDS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def folded(f: Function, opcode: str, a: Value, b: Operand) -> Value:
    """Whole-number arithmetic; on constants, the constant."""
    b = of_type(a.type, b)
    left, right = literal(a), literal(b)
    if opcode in _FOLDS:
        if left is not None and right is not None:
            return number(_FOLDS[opcode](left, right), a.type)
        if right == 0 and opcode in ("add", "sub"):
            return a
        if left == 0 and opcode == "add":
            return b
        if (right == 1 or left == 0) and opcode == "mul":
            return a
        if (left == 1 or right == 0) and opcode == "mul":
            return b
    return f.binary(opcode, a, b)


def literal(value: Value) -> int | None:
    """The number a value is known to be."""
    return int(value.name) if value.name.lstrip("-").isdecimal() else None
