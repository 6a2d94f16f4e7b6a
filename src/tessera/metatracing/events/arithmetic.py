"""The integer arithmetic of addresses and branches, for all threads at once, as bits of words.

A register that depends on data is unknown, and so are values computed from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Rule: TypeAlias = Callable[[tuple[str, ...], list[Array]], Array]
"""Computes an instruction's result from the parts of its name and its operands as numbers of its type."""

RULES: dict[str, Rule] = {}
_TYPE = re.compile(r"[subf]\d+|pred|bf16")


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def type_of(parts: tuple[str, ...]) -> str:
    """The type that an instruction's operands have."""
    return next((part for part in reversed(parts) if _TYPE.fullmatch(part)), "b64")


def width_of(type_: str) -> int:
    return 1 if type_ == "pred" else int(type_[1:])


def numbers(bits: Array, type_: str) -> Array:
    """The low bits of words as numbers of a type: signed ones are negative where their highest bit is set."""
    wide = width_of(type_)
    if type_ == "pred":
        return bits != 0
    if wide == 64:
        return bits.view(np.int64) if type_[0] == "s" else bits
    low = bits & np.uint64((1 << wide) - 1)
    if type_[0] != "s":
        return low
    shift = np.uint64(64 - wide)
    return (low << shift).view(np.int64) >> np.int64(64 - wide)


def bits_of(values: Array, wide: int) -> Array:
    """Numbers as the bits of a register of so many."""
    raw = values.astype(np.uint64) if values.dtype == np.bool_ else values.astype(np.int64, copy=False).view(np.uint64)
    return raw if wide >= 64 else raw & np.uint64((1 << wide) - 1)


def _plain(apply: Callable[[Array, Array], Array]) -> Rule:
    return lambda parts, given: apply(given[0], given[1])


_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
for _name, _apply in _BINARY.items():
    RULES[_name] = _plain(_apply)


@rule("mul", "mul24")
def _multiply(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, b = given
    if "hi" not in parts:
        return a * b
    wide = width_of(type_of(parts))
    if wide == 32:
        return (a * b) >> a.dtype.type(32)
    return np.array([(int(x) * int(y)) >> 64 for x, y in zip(a, b, strict=True)], dtype=object).astype(a.dtype)


@rule("mad")
def _multiply_and_add(parts: tuple[str, ...], given: list[Array]) -> Array:
    product = _multiply(parts, given[:2])
    return product + given[2].astype(product.dtype)


@rule("div", "rem")
def _divide(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, b = given
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    if a.dtype == np.uint64:
        return a // safe if parts[0] == "div" else a % safe
    quotient = np.abs(a) // np.abs(safe) * (np.sign(a) * np.sign(safe))
    return quotient if parts[0] == "div" else a - quotient * safe


@rule("not")
def _invert(parts: tuple[str, ...], given: list[Array]) -> Array:
    return ~given[0]


@rule("neg")
def _negate(parts: tuple[str, ...], given: list[Array]) -> Array:
    return np.zeros_like(given[0]) - given[0]


@rule("abs")
def _absolute(parts: tuple[str, ...], given: list[Array]) -> Array:
    return np.abs(given[0])


@rule("popc")
def _ones(parts: tuple[str, ...], given: list[Array]) -> Array:
    found = np.zeros_like(given[0])
    for bit in range(width_of(type_of(parts))):
        found += (given[0] >> given[0].dtype.type(bit)) & given[0].dtype.type(1)
    return found


@rule("shl", "shr")
def _shift(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, by = given
    wide = width_of(type_of(parts))
    steps = np.minimum(by.astype(np.uint64) & np.uint64(0xFFFFFFFF), np.uint64(wide)).astype(np.int64)
    inside = np.minimum(steps, 63).astype(a.dtype)
    if parts[0] == "shl":
        return np.where(steps >= wide, 0, a << inside).astype(a.dtype)
    signed = a.dtype == np.int64
    last = a >> np.minimum(inside, a.dtype.type(wide - 1)) if signed else a >> inside
    return last if signed else np.where(steps >= wide, 0, last).astype(a.dtype)


@rule("shf")
def _funnel(parts: tuple[str, ...], given: list[Array]) -> Array:
    low, high, by = given
    steps = by % np.uint64(32) if "wrap" in parts else np.minimum(by, np.uint64(32))
    both = low | high << np.uint64(32)
    return both >> steps if parts[1] == "r" else (both << steps) >> np.uint64(32)


@rule("bfe")
def _field(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, first, count = given
    bits = a.view(np.uint64) if a.dtype == np.int64 else a
    found = (bits >> first.astype(np.uint64)) & ((np.uint64(1) << count.astype(np.uint64)) - np.uint64(1))
    if a.dtype == np.uint64:
        return found
    top = (np.uint64(1) << (count.astype(np.uint64) - np.uint64(1))) & found
    return found.view(np.int64) - 2 * top.view(np.int64)


@rule("bfi")
def _insert(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, b, first, count = (one.astype(np.uint64) for one in given)
    mask = ((np.uint64(1) << count) - np.uint64(1)) << first
    return (b & ~mask) | ((a << first) & mask)


@rule("prmt")
def _permute(parts: tuple[str, ...], given: list[Array]) -> Array:
    a, b, pick = (one.astype(np.uint64) for one in given)
    both = a | b << np.uint64(32)
    found = np.zeros_like(a)
    for index in range(4):
        which = (pick >> np.uint64(4 * index)) & np.uint64(15)
        byte = (both >> (np.uint64(8) * (which & np.uint64(7)))) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        found |= np.where(which & np.uint64(8), sign, byte) << np.uint64(8 * index)
    return found


COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


@rule("setp")
def _compare(parts: tuple[str, ...], given: list[Array]) -> Array:
    return COMPARISONS[parts[1]](given[0], given[1])


@rule("selp")
def _select(parts: tuple[str, ...], given: list[Array]) -> Array:
    return np.where(given[2].astype(bool), given[0], given[1])


@rule("mov", "cvta")
def _move(parts: tuple[str, ...], given: list[Array]) -> Array:
    return given[0]


def converted(parts: tuple[str, ...], bits: Array) -> Array | None:
    """`cvt` between whole numbers; None where floats are involved."""
    to, source = (part for part in parts[1:] if _TYPE.fullmatch(part))
    if "f" in to or "f" in source:
        return None
    values = numbers(bits, source)
    if "sat" in parts:
        wide, signed = width_of(to), to[0] == "s"
        low, high = (-(1 << (wide - 1)), (1 << (wide - 1)) - 1) if signed else (0, (1 << wide) - 1)
        if values.dtype == np.uint64:
            return np.minimum(values, np.uint64(high))
        return np.clip(values, low, min(high, (1 << 63) - 1))
    # A register may be wider than the type: then signs go on.
    return numbers(bits_of(values, 64), to)
