"""What further instructions of PTX do: numbers of all types, functions, casts of pairs, and atomics.

Approximations of the hardware are exact here: how exact they really are is measured on GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from ptx_rules import RULES, Array, PtxError, rule

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, bf16, f8e4m3, f8e5m2, f16, f32, f64, saturate
from tessera.targets.cuda.ptx.reading import Instruction

if TYPE_CHECKING:
    from ptx_machine import Machine

__all__ = ["RULES"]

_FLOATS: Mapping[str, Any] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_DTYPES: Mapping[str, DType] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "e4m3": f8e4m3, "e5m2": f8e5m2}


def bits_of(type_: str) -> int:
    return int("".join(letter for letter in type_.removesuffix("x2") if letter.isdigit()))


def read(machine: Machine, operand: str, type_: str) -> Array:
    """An operand as numbers of any type; a minus sign in front of it counts."""
    negative = operand.startswith("-") and not operand[1:2].isdigit()
    found = machine.get(operand.removeprefix("-") if negative else operand, f"b{bits_of(type_)}")
    if type_ in _FLOATS:
        found = found.view(_FLOATS[type_])
    elif type_[0] == "s":
        found = found.view(f"i{found.itemsize}")
    return -found if negative else found


def _flush(op: Instruction, values: Array) -> Array:
    """Subnormal numbers as zeros, and what is beyond [0, 1] as its ends, if the instruction says so."""
    if "ftz" in op.parts:
        values = np.where(np.abs(values) < 2.0**-126, np.copysign(values.dtype.type(0), values), values)
    if "sat" in op.parts:
        values = np.where(values > 0, np.minimum(values, 1), 0).astype(values.dtype)
    return values


def _rounded(op: Instruction, exact: Array, type_: str) -> Array:
    """An exact result, or one of more digits, in a type: to nearest, or down."""
    dtype = _FLOATS[type_]
    if exact.dtype == dtype:
        return exact
    near = cast(exact.astype(np.float64), f64, _DTYPES[type_])
    if "rm" in op.parts:
        near = np.where(near.astype(np.float64) > exact, np.nextafter(near, dtype.type(-np.inf)), near)
    return near.astype(dtype)


def _odd(values: Array, rest: Array) -> Array:
    """f64 values that something is missing from, so that rounding them again does not round twice."""
    words = values.view(np.int64)
    even = (words & 1 == 0) & (rest != 0) & np.isfinite(values)
    away = (rest > 0) == (values > 0)
    return np.where(even, np.where(away, words + 1, words - 1), words).view(np.float64)


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a·b + c of floats narrower than f64, in f64, rounded to odd."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    return _odd(total, (product - (total - part)) + (addend - part))


# Numbers


def _extreme(op: Instruction, a: Array, b: Array) -> Array:
    largest, propagates = op.parts[0] == "max", "NaN" in op.parts
    if a.dtype.kind in "iu":
        found = np.maximum(a, b) if largest else np.minimum(a, b)
        return np.maximum(found, 0) if "relu" in op.parts else found
    first = (a > b) | ((a == b) & ~np.signbit(a)) if largest else (a < b) | ((a == b) & np.signbit(a))
    found = np.where(np.isnan(a), a if propagates else b, np.where(first, a, b))
    return np.where(np.isnan(b), b if propagates else a, found)


def _divided(a: Array, b: Array, *, rest: bool) -> Array:
    wide = [(int(x), int(y) or 1) for x, y in zip(a, b, strict=True)]
    found = [
        abs(x) % abs(y) * (-1 if x < 0 else 1) if rest else abs(x) // abs(y) * (1 if x * y >= 0 else -1)
        for x, y in wide
    ]
    limit = 1 << (8 * a.itemsize)
    return np.array([value % limit for value in found], np.uint64).astype(f"u{a.itemsize}").view(a.dtype)


_PLAIN: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@rule("add", "sub", "mul", "and", "or", "xor", "min", "max", "div", "rem")
def _binary(machine: Machine, op: Instruction) -> None:
    kind, type_ = op.parts[0], op.parts[-1]
    if type_ == "pred":
        machine.put(op.operands[0], _PLAIN[kind](*(machine.get(operand, type_) for operand in op.operands[1:])))
        return
    if type_.endswith("x2"):
        # Two floats of 16 bits in each word, whose sums and products f32 holds.
        element = _FLOATS[type_[:-2]]
        halves = [machine.get(operand, "b32").view(element).astype(np.float32) for operand in op.operands[1:]]
        machine.put(op.operands[0], _PLAIN[kind](*halves).astype(element).view(np.uint32))
        return
    a, b = (read(machine, operand, type_) for operand in op.operands[1:])
    with np.errstate(all="ignore"):
        if kind in ("min", "max"):
            found = _extreme(op, a, b)
        elif type_ in _FLOATS:
            found = a / b if kind == "div" else _PLAIN[kind](a, b)
            found = _flush(op, _rounded(op, found, type_))
        elif kind in ("div", "rem"):
            found = _divided(a, b, rest=kind == "rem")
        elif "sat" in op.parts:
            exact = _PLAIN[kind](a.astype(np.int64), b.astype(np.int64))
            found = np.clip(exact, np.iinfo(a.dtype).min, np.iinfo(a.dtype).max).astype(a.dtype)
        else:
            found = _product(op, a, b) if kind == "mul" else _PLAIN[kind](a, b)
    machine.put(op.operands[0], np.ascontiguousarray(found))


def _product(op: Instruction, a: Array, b: Array) -> Array:
    if "wide" in op.parts:
        double = f"{a.dtype.kind}{2 * a.itemsize}"
        return a.astype(double) * b.astype(double)
    if "hi" in op.parts:
        limit, bits = 1 << (8 * a.itemsize), 8 * a.itemsize
        upper = [(int(x) * int(y) >> bits) % limit for x, y in zip(a, b, strict=True)]
        return np.array(upper, np.uint64).astype(f"u{a.itemsize}").view(a.dtype)
    return a * b


@rule("mad", "fma")
def _multiply_add(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    if type_.endswith("x2"):
        halves = [machine.get(operand, "b32").view(_FLOATS[type_[:-2]]) for operand in op.operands[1:]]
        with np.errstate(all="ignore"):
            machine.put(op.operands[0], cast(_fused(*halves), f64, _DTYPES[type_[:-2]]).view(np.uint32))
        return
    a, b = (read(machine, operand, type_) for operand in op.operands[1:3])
    with np.errstate(all="ignore"):
        if type_ in _FLOATS:
            c = read(machine, op.operands[3], type_)
            exact = _wide_fused(a, b, c) if type_ == "f64" else _fused(a, b, c)
            found = _flush(op, _rounded(op, exact, type_))
        else:
            wide = f"{type_[0]}{2 * bits_of(type_)}" if "wide" in op.parts else type_
            found = _product(op, a, b) + read(machine, op.operands[3], wide)
    machine.put(op.operands[0], np.ascontiguousarray(found))


def _wide_fused(a: Array, b: Array, c: Array) -> Array:
    """The same of f64, in fractions."""

    def one(x: float, y: float, z: float) -> float:
        if np.isinf(z) and np.isfinite([x, y]).all():
            return z
        if not np.isfinite([x, y, z]).all() or 0 in (x, y):
            return x * y + z
        total = Fraction(x) * Fraction(y) + Fraction(z)
        try:
            return float(total) if total else 0.0
        except OverflowError:
            return float(np.copysign(np.inf, float(total.numerator > 0) - 0.5))

    return np.array([one(*numbers) for numbers in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)])


@rule("neg", "abs", "not", "cvta", "clz", "popc", "brev")
def _unary(machine: Machine, op: Instruction) -> None:
    kind, type_ = op.parts[0], op.parts[-1]
    if type_ == "pred":
        machine.put(op.operands[0], ~machine.get(op.operands[1], type_))
        return
    a = read(machine, op.operands[1], type_)
    if kind == "clz":
        found: Array = np.array([8 * a.itemsize - int(word).bit_length() for word in a], np.uint32)
    else:
        found = {"neg": np.negative, "abs": np.abs, "not": np.invert, "cvta": np.copy}[kind](a)
    machine.put(op.operands[0], np.ascontiguousarray(found))


@rule("bfe")
def _field(machine: Machine, op: Instruction) -> None:
    """Bits of a number, with or without a sign."""
    a, type_ = read(machine, op.operands[1], op.parts[-1]), op.parts[-1]
    first, count = (machine.get(operand, "u32").astype(a.dtype) for operand in op.operands[2:])
    above = a.dtype.type(8 * a.itemsize) - count
    found = np.where(count == 0, 0, (a >> first << above) >> above)
    machine.put(op.operands[0], found.astype(f"{'i' if type_[0] == 's' else 'u'}{a.itemsize}"))


@rule("copysign")
def _copysign(machine: Machine, op: Instruction) -> None:
    sign, size = (read(machine, operand, op.parts[-1]) for operand in op.operands[1:])
    machine.put(op.operands[0], np.copysign(size, sign))


_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "rcp": lambda value: 1 / value,
    "sqrt": np.sqrt,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "lg2": np.log2,
    "tanh": np.tanh,
}


@rule(*_FUNCTIONS)
def _function(machine: Machine, op: Instruction) -> None:
    type_ = op.parts[-1]
    with np.errstate(all="ignore"):
        value = (
            _flush(op, read(machine, op.operands[1], type_))
            if "ftz" in op.parts
            else read(machine, op.operands[1], type_)
        )
        exact = _FUNCTIONS[op.parts[0]](value.astype(np.float64))
        machine.put(op.operands[0], _flush(op, _rounded(op, exact, type_)))


# Casts


def _to_whole(values: Array, source: str, type_: str) -> Array:
    """Clamped to the type's range; NaN is 0, or the highest bit where 64 bits come in or go out."""
    bits = bits_of(type_)
    nan = 1 << (bits - 1) if 64 in (bits_of(source), bits) else 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    whole = [
        nan if np.isnan(x) else (high if x > 0 else low) if np.isinf(x) else min(max(int(x), low), high) for x in values
    ]
    return np.array([value % (1 << bits) for value in whole], np.uint64).astype(f"u{bits // 8}")


_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {"rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil, "rni": np.rint}


@rule("cvt")
def _convert(machine: Machine, op: Instruction) -> None:
    known = (*_DTYPES, *(f"{sign}{bits}" for sign in "su" for bits in (8, 16, 32, 64)))
    to, source = (part for part in op.parts[1:] if part.removesuffix("x2") in known)
    if source.endswith("x2"):
        pair = machine.get(op.operands[1], "b16").reshape(-1, 1).view(np.uint8)
        wide = cast(pair.view(_DTYPES[source[:-2]].storage), _DTYPES[source[:-2]], f16)
        machine.put(op.operands[0], np.ascontiguousarray(wide).view(np.uint32).reshape(-1))
    elif to.endswith("x2"):
        dtype = _DTYPES[to[:-2]] @ saturate if "satfinite" in op.parts else _DTYPES[to[:-2]]
        high, low = (cast(machine.get(operand, "f32"), f32, dtype) for operand in op.operands[1:])
        pairs = np.stack([low, high], 1).view(f"u{low.itemsize}")
        machine.put(op.operands[0], np.ascontiguousarray(pairs).view(f"u{2 * low.itemsize}").reshape(-1))
    else:
        machine.put(op.operands[0], _converted(machine, op, to, source))


def _converted(machine: Machine, op: Instruction, to: str, source: str) -> Array:
    values = read(machine, op.operands[1], source)
    with np.errstate(all="ignore"):
        if source in _FLOATS:
            wide = cast(np.ascontiguousarray(values), _DTYPES[source], f64)
            rounding = next((work for part, work in _ROUNDINGS.items() if part in op.parts), None)
            wide = wide if rounding is None else rounding(wide)
            found = cast(wide, f64, _DTYPES[to]) if to in _FLOATS else _to_whole(wide, source, to)
        elif to in _FLOATS:
            found = np.array([_FLOATS[to].type(int(value)) for value in values])
        else:
            # A register may be wider than the type: then signs go on.
            held = max(machine.held(op.operands[0]).itemsize, bits_of(to) // 8)
            whole = np.dtype(f"{'i' if to[0] == 's' else 'u'}{bits_of(to) // 8}")
            if "sat" in op.parts:
                ends = np.iinfo(whole)
                values = np.array([min(max(int(value), ends.min), ends.max) for value in values])
            cut = values.astype(whole)
            found = cut.astype(f"{cut.dtype.kind}{held}")
    return np.ascontiguousarray(found)


# Atomics


@rule("atom", "red")
def _atomic(machine: Machine, op: Instruction) -> None:
    """One thread after the other."""
    loads = op.parts[0] == "atom"
    names = ("add", "min", "max", "and", "or", "xor", "exch", "cas")
    kind, type_ = next(part for part in op.parts if part in names), op.parts[-1]
    given = op.operands[1:] if loads else op.operands
    _, addresses = machine.address(given[0])
    assert not isinstance(addresses, int)
    if "shared" in op.parts:
        raise PtxError("atomics on shared memory")
    if type_.endswith("x2"):
        size, halves = 4, _FLOATS[type_[:-2]]
        values = [machine.get(operand, "b32")[machine.mask].reshape(-1, 1).view(halves) for operand in given[1:]]
    else:
        size = bits_of(type_) // 8
        values = [read(machine, operand, type_)[machine.mask].reshape(-1, 1) for operand in given[1:]]
    olds = np.zeros(machine.threads, f"u{size}")
    for number, (thread, address) in enumerate(zip(np.flatnonzero(machine.mask), addresses, strict=True)):
        place = machine.memory.places(np.array([address]), size, "global memory is changed")[0]
        old = machine.memory.data[place].view(values[0].dtype)
        olds[thread] = old.view(f"u{size}")[0]
        new = _combined(kind, old, [value[number] for value in values])
        machine.memory.data[place] = np.ascontiguousarray(new.astype(old.dtype)).view(np.uint8)
    if loads:
        machine.put(op.operands[0], olds)


def _combined(kind: str, old: Array, values: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        if kind == "cas":
            return values[1] if (old == values[0]).all() else old
        if kind == "exch":
            return values[0]
        if kind in ("min", "max"):
            return (np.maximum if kind == "max" else np.minimum)(old, values[0])
        return _PLAIN[kind](old, values[0])
