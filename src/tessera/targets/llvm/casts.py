"""Casts between all element types, as docs/numerics.md defines them: one rounding, whatever the way."""

from __future__ import annotations

import math
from functools import cache

from tessera.dtypes.types import DType, Kind, Specials, bf16, f32, f64, u8
from tessera.errors import CompileError
from tessera.targets.llvm.elements import bits, clamp, decode, encode, extend, not_a_number, reaches, register_type
from tessera.targets.llvm.text import Function, Value, bits_of, element_of, lanes_of, number


def cast(f: Function, value: Value, source: DType, target: DType, level: str, *, dot_only: bool = False) -> Value:
    """`value` of type `source` as a value of type `target`, both as registers hold them.

    `dot_only` says that the result goes into matmuls of bf16 and nowhere else; see `fast_bf16`.
    """
    if source is target:
        return value
    _refuse_what_needs_more(source, target)
    if source.kind is Kind.BOOL:
        value, source = f.convert("zext", value, "i8"), u8
    if target.kind is Kind.BOOL:
        wide = decode(f, value, source, level)
        return f.compare("une" if source.is_float else "ne", wide, 0)
    if target.is_float:
        return _to_float(f, value, source, target, level, dot_only)
    if source.is_float:
        return _float_to_integer(f, value, source, target, level)
    return _integer_to_integer(f, value, source, target)


def _refuse_what_needs_more(source: DType, target: DType) -> None:
    if target.policy.stochastic:
        raise CompileError(
            f"a cast to {target} rounds at random and needs a seed and the element's index",
            hint="cast to the type without stochastic_round, or use the stochastic cast",
        )
    for dtype in (source, target):
        if dtype.policy.scale_axis is not None:
            raise CompileError(
                f"a cast from {source} to {target} needs the scales of the whole array",
                hint="use quantize and dequantize",
            )


@cache
def _exponent_shift(source: DType, target: DType) -> int:
    """log2 of what a cast multiplies by: out of the source's loss scale, into the target's."""
    return sum(
        sign * (math.frexp(dtype.policy.loss_scale)[1] - 1)
        for sign, dtype in ((1, target), (-1, source))
        if dtype.policy.loss_scale is not None
    )


# To integers


def _integer_to_integer(f: Function, value: Value, source: DType, target: DType) -> Value:
    if target.policy.saturate:
        if target.min_value > source.min_value:
            value = _bounded(f, "max", value, source, int(target.min_value))
        if target.max_value < source.max_value:
            value = _bounded(f, "min", value, source, int(target.max_value))
    have, want = bits_of(value.type), bits_of(register_type(target))
    if want < have:
        value = f.convert("trunc", value, f"i{want}")
    elif want > have:
        value = f.convert("sext" if source.kind is Kind.INT else "zext", value, f"i{want}")
    holds = target.min_value <= source.min_value and source.max_value <= target.max_value
    return extend(f, value, target) if target.bits < 8 and not holds else value


def _bounded(f: Function, side: str, value: Value, dtype: DType, limit: int) -> Value:
    return f.intrinsic(f"{'s' if dtype.kind is Kind.INT else 'u'}{side}", value, limit)


def _float_to_integer(f: Function, value: Value, source: DType, target: DType, level: str) -> Value:
    """Toward zero, clamped to the target's range; NaN becomes 0.

    LLVM's own saturating conversion does the same, but takes vectors apart.
    """
    wide = decode(f, value, source, level)
    shift = _exponent_shift(source, target)
    if shift:
        # Where this rounds, it does so far outside the integers' range or below 1.
        wide = _scaled(f, _widened(f, wide), shift)
    work = max(target.bits, 32)
    limit = int(target.max_value)
    digits = 24 if element_of(wide.type) == "float" else 53
    # The largest number of the float's format that does not exceed the limit.
    highest = limit if limit.bit_length() <= digits else limit - ((1 << (limit.bit_length() - digits)) - 1)
    number_ = f.select(not_a_number(f, wide), number(0.0, wide.type), wide)
    inside = clamp(f, number_, float(target.min_value), float(highest))
    opcode = "fptoui" if int(target.max_value) >= 1 << (work - 1) else "fptosi"
    found = f.convert(opcode, inside, f"i{work}")
    if highest != limit:
        above = f.compare("ogt", number_, float(highest))
        found = f.select(above, number(limit, found.type), found)
    return f.convert("trunc", found, element_of(register_type(target)))


# To floats


def _to_float(f: Function, value: Value, source: DType, target: DType, level: str, dot_only: bool) -> Value:
    shift = _exponent_shift(source, target)
    direct = shift == 0 and target.base in (f32, f64)
    if source.is_float:
        wide = decode(f, value, source, level)
    elif source.bits == 64 and not direct:
        wide = _from_long(f, value, source, shift, odd=target.base is not f64)
        shift = 0
    else:
        # f32 holds integers of 16 bits, f64 those of 32; what goes straight to its target is rounded there.
        narrow = target.base is not f64 if direct else source.bits <= 16
        wide = f.convert("sitofp" if source.kind is Kind.INT else "uitofp", value, "float" if narrow else "double")
        if direct:
            return wide
    if shift:
        wide = _scaled(f, _widened(f, wide), shift)
    fmt = source.float_format
    clean = fmt is None or fmt.specials is not Specials.IEEE
    if target.base is f64:
        return encode(f, _widened(f, wide), target, level, clean=clean)
    if element_of(wide.type) == "double":
        wide = f.convert("fptrunc", wide, "float") if target.base is f32 else _rounded_to_odd(f, wide)
    quick = dot_only and target.base is bf16 and not target.policy.saturate and reaches(level, "amx")
    if quick and lanes_of(wide.type) in (16, 32):
        return _for_matmuls(f, wide, level)
    return encode(f, wide, target, level, clean=clean)


def _widened(f: Function, wide: Value) -> Value:
    return wide if element_of(wide.type) == "double" else f.convert("fpext", wide, "double")


def _scaled(f: Function, wide: Value, shift: int) -> Value:
    """A `double` times 2^shift, rounded at most once.

    Only the last factor may lead among the subnormal numbers: what an earlier one leads there ends up as 0.
    """
    while shift > 1022:
        wide = f.binary("fmul", wide, 2.0**1022)
        shift -= 1022
    last = max(shift, -1022)
    shift -= last
    while shift:
        step = max(shift, -1022)
        wide = f.binary("fmul", wide, 2.0**step)
        shift -= step
    return f.binary("fmul", wide, 2.0**last)


def _rounded_to_odd(f: Function, wide: Value) -> Value:
    """A `double` as one of its two neighbours among `float`s, the one with an odd last bit unless it is exact.

    Rounding that to a narrower format gives what rounding the `double` itself gives.
    """
    near = f.convert("fptrunc", wide, "float")
    back = f.convert("fpext", near, "double")
    words = bits(f, near)
    even = f.compare("eq", f.binary("and", words, 1), 0)
    size, reached = (f.intrinsic("fabs", number_) for number_ in (wide, back))
    one = number(1, words.type)
    up = f.binary("and", even, f.compare("ogt", size, reached))
    down = f.binary("and", even, f.compare("olt", size, reached))
    words = f.select(up, f.binary("add", words, one), words)
    words = f.select(down, f.binary("sub", words, one), words)
    return f.convert("bitcast", words, "float")


def _from_long(f: Function, value: Value, source: DType, shift: int, *, odd: bool) -> Value:
    """A 64-bit integer times 2^shift as a `double`, rounded once: to nearest even, or to odd for another rounding."""

    def constant(word: int) -> Value:
        return number(word, value.type)

    negative = f.compare("slt", value, constant(0)) if source.kind is Kind.INT else None
    size = value if negative is None else f.select(negative, f.binary("sub", constant(0), value), value)
    if odd:
        # 53 bits are enough for a size without its last 11; the last of those left says whether any were lost.
        lost = f.compare("ne", f.binary("and", size, constant(0x7FF)), constant(0))
        shorter = f.binary("and", size, constant(-0x800))
        shorter = f.binary("or", shorter, f.select(lost, constant(0x800), constant(0)))
        size = f.select(f.compare("ult", size, constant(1 << 53)), size, shorter)
    upper = f.convert("trunc", f.binary("lshr", size, constant(32)), "i32")
    lower = f.convert("trunc", size, "i32")
    # Both halves are exact, so that their sum is rounded once; a loss scale is at least f64's smallest number.
    high = _scaled(f, f.convert("uitofp", upper, "double"), 32 + shift)
    low = _scaled(f, f.convert("uitofp", lower, "double"), shift)
    found = f.binary("fadd", high, low)
    return found if negative is None else f.select(negative, f.op(found.type, f"fneg {found}"), found)


# For matmuls


def fast_bf16(f: Function, low: Value, high: Value | None, level: str) -> Value:
    """Sixteen or, with `high`, thirty-two numbers as bf16 by the processor's own instruction.

    It rounds to nearest even but takes subnormal numbers for zeros. So do the matmuls of bf16 on the same
    processors, and this is good for their operands and for nothing else.
    """
    if not reaches(level, "amx") or lanes_of(low.type) != 16:
        raise CompileError(f"expected vectors of 16 and level amx, got {low.type} and {level}")
    if high is None:
        found = f.call("llvm.x86.avx512bf16.cvtneps2bf16.512", "<16 x bfloat>", [low])
    else:
        # The instruction puts its second operand first.
        found = f.call("llvm.x86.avx512bf16.cvtne2ps2bf16.512", "<32 x bfloat>", [high, low])
    return f.convert("bitcast", found, "i16")


def _for_matmuls(f: Function, wide: Value, level: str) -> Value:
    if lanes_of(wide.type) == 16:
        return fast_bf16(f, wide, None, level)
    low, high = (f.shuffle(wide, None, range(start, start + 16)) for start in (0, 16))
    return fast_bf16(f, low, high, level)
