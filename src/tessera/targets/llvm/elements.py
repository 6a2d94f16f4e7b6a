"""How an element of each type lives in registers and in memory, and how narrow floats become f32 and come back.

In registers f32 and tf32 are `float`, f64 is `double`, bool is `i1`; integers are integers of their width and narrower
floats their codes as integers of their storage's width. i4 and u4 are `i8`, extended by their sign or by zeros. Memory
differs in two things: bool is a byte, and the upper half of a 4-bit integer's byte is 0.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tessera import knobs
from tessera.device_names import CPU_FAMILIES
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, FloatFormat, Kind, Specials, bf16, bool_, f16, f32, f64, i64, tf32, u64
from tessera.errors import CompileError
from tessera.targets.llvm.text import Function, Value, bits_of, lanes_of, like, number, vector

# What a processor can do; each level has all of those before it in its family. `avx2` comes with FMA and F16C,
# `avx512` with the F, VL, BW, DQ and CD parts, `amx` with BF16, FP16 and VNNI. `neon`, of AArch64, comes with fused
# products and conversions of f16.
LEVELS = knobs.CPU_LEVELS

NAN = float("nan")


def reaches(level: str, needed: str) -> bool:
    """Whether `level` has everything that `needed` has; one of another family has not."""
    if level not in LEVELS:
        raise CompileError(f"expected a level of the processor, got {level!r}", hint=f"levels are {', '.join(LEVELS)}")
    family = next(levels for levels in CPU_FAMILIES.values() if needed in levels)
    return level in family[family.index(needed) :]


def is_arm(level: str) -> bool:
    """Whether a level is one of AArch64."""
    return level in CPU_FAMILIES["aarch64"]


def fuses(level: str) -> bool:
    """Whether a product and a sum are one instruction, which rounds once."""
    return is_arm(level) or reaches(level, "avx2")


def converts_halves(level: str) -> bool:
    """Whether there are instructions that convert f16 into f32 and back."""
    return is_arm(level) or reaches(level, "avx2")


@cache
def register_type(dtype: DType, lanes: int = 0) -> str:
    """The LLVM type of one element, or of a vector of `lanes`."""
    if dtype.base in (f32, tf32):
        element = "float"
    elif dtype.base is f64:
        element = "double"
    else:
        element = "i1" if dtype.kind is Kind.BOOL else f"i{8 * dtype.storage.itemsize}"
    return vector(lanes, element)


@cache
def memory_type(dtype: DType, lanes: int = 0) -> str:
    return vector(lanes, "i8") if dtype.kind is Kind.BOOL else register_type(dtype, lanes)


def to_register(f: Function, value: Value, dtype: DType) -> Value:
    """A value as it was loaded, as computations want it."""
    if dtype.kind is Kind.BOOL:
        return f.convert("trunc", value, "i1")
    if dtype.is_integer and dtype.bits < 8:
        return extend(f, value, dtype)
    return value


def nothing(dtype: DType) -> Value:
    """Zero, as memory has it."""
    type_ = memory_type(dtype)
    return number(0 if type_.startswith("i") else 0.0, type_)


def scalar(f: Function, value: Value, dtype: DType) -> Value:
    """A value as it was loaded, as a scalar of a program: one without a sign is an index there."""
    found = to_register(f, value, dtype)
    return f.convert("zext", found, "i64") if dtype.kind is Kind.UINT and dtype.bits < 64 else found


def to_memory(f: Function, value: Value, dtype: DType) -> Value:
    """The inverse of `to_register`."""
    if dtype.kind is Kind.BOOL:
        return f.convert("zext", value, "i8")
    if dtype.is_integer and dtype.bits < 8:
        return f.binary("and", value, (1 << dtype.bits) - 1)
    return value


def extend(f: Function, value: Value, dtype: DType) -> Value:
    """The low bits of a register as a value of a 4-bit integer; the bits above them do not matter."""
    low = f.binary("and", value, (1 << dtype.bits) - 1)
    if dtype.kind is Kind.UINT:
        return low
    sign = number(1 << (dtype.bits - 1), value.type)
    return f.binary("sub", f.binary("xor", low, sign), sign)


def constant(value: float, dtype: DType, lanes: int = 0) -> Value:
    """A constant of any type, rounded into it as a cast would."""
    wide = f64 if isinstance(value, float) else (bool_ if isinstance(value, bool) else (u64 if value > 0 else i64))
    held = cast(np.array([value], wide.storage), wide, dtype)
    type_ = register_type(dtype, lanes)
    if dtype.is_float and dtype.base not in (f32, f64, tf32):
        return number(int(held.view(f"u{dtype.storage.itemsize}")[0]), type_)
    return number(float(held[0]) if dtype.is_float else int(held[0]), type_)


def bits(f: Function, value: Value) -> Value:
    """A float's bits."""
    return f.convert("bitcast", value, f"i{bits_of(value.type)}")


def word(value: int, like_: Value) -> Value:
    """A 32-bit constant, as many lanes as `like_`."""
    return number(value, like(like_.type, "i32"))


def not_a_number(f: Function, value: Value) -> Value:
    return f.compare("uno", value, 0.0)


def canonical(f: Function, value: Value) -> Value:
    """A float in which every NaN is the one that casts write."""
    return f.select(not_a_number(f, value), number(NAN, value.type), value)


def clamp(f: Function, value: Value, low: float, high: float) -> Value:
    """A float within limits; NaN stays NaN. In this order each step is one machine instruction."""
    for predicate, limit in (("olt", high), ("ogt", low)):
        bound = number(limit, value.type)
        value = f.select(f.compare(predicate, bound, value), bound, value)
    return value


# From narrow floats to f32


def decode(f: Function, value: Value, dtype: DType, level: str) -> Value:
    """The number that a register holds, as `float`, `double` or an integer. Exact; NaN keeps sign and payload.

    A loss scale is not undone here: that can round.
    """
    fmt = dtype.float_format
    if fmt is None or dtype.base in (f32, f64, tf32):
        return value
    if dtype.base is bf16:
        wide = f.convert("zext", value, "i32")
        return f.convert("bitcast", f.binary("shl", wide, word(16, wide)), "float")
    if not converts_halves(level):
        return _widen_by_integers(f, value, fmt)
    half = value if dtype.base is f16 else _as_half(f, value, fmt)
    wide = f.convert("fpext", f.convert("bitcast", half, "half"), "float")
    if fmt.bias != 15:
        wide = f.binary("fmul", wide, 2.0 ** (15 - fmt.bias))
    return _with_nan(f, wide, value, fmt)


def _as_half(f: Function, value: Value, fmt: FloatFormat) -> Value:
    """A code's fields, at the bits that they have in f16; its bias is still the format's own."""
    moved = 10 - fmt.mantissa_bits
    wide = f.convert("sext", value, "i16")
    shifted = f.binary("shl", wide, moved)
    sign_at = fmt.exponent_bits + fmt.mantissa_bits
    magnitude = ((1 << sign_at) - 1) << moved
    if sign_at == 7:
        # The sign was copied upwards by `sext`.
        return f.binary("and", shifted, (0x8000 | magnitude) - 0x10000)
    sign = f.binary("shl", wide, 15 - sign_at)
    return f.binary("or", f.binary("and", shifted, magnitude), f.binary("and", sign, -0x8000))


def _with_nan(f: Function, wide: Value, code: Value, fmt: FloatFormat) -> Value:
    if fmt.specials is not Specials.NAN_ONLY:
        return wide
    largest = (1 << (fmt.exponent_bits + fmt.mantissa_bits)) - 1
    magnitude = f.binary("and", code, largest)
    return f.select(f.compare("eq", magnitude, largest), number(NAN, wide.type), wide)


def _widen_by_integers(f: Function, value: Value, fmt: FloatFormat) -> Value:
    """For processors without conversions of f16."""
    wide = f.convert("zext", value, "i32")
    sign_at, moved = fmt.exponent_bits + fmt.mantissa_bits, 23 - fmt.mantissa_bits
    magnitude = f.binary("and", wide, word((1 << sign_at) - 1, wide))
    moved_magnitude = f.binary("shl", magnitude, word(moved, wide))
    normal = f.binary("add", moved_magnitude, word((127 - fmt.bias) << 23, wide))
    if fmt.specials is Specials.IEEE:
        top = word(((1 << fmt.exponent_bits) - 1) << fmt.mantissa_bits, wide)
        special = f.binary("or", moved_magnitude, word(0xFF << 23, wide))
        normal = f.select(f.compare("uge", magnitude, top), special, normal)
    # A subnormal number is put behind a leading 1, which is then subtracted.
    lifted = f.convert("bitcast", f.binary("add", moved_magnitude, word((128 - fmt.bias) << 23, wide)), "float")
    subnormal = f.binary("fsub", lifted, 2.0 ** (1 - fmt.bias))
    small = f.compare("ult", magnitude, word(1 << fmt.mantissa_bits, wide))
    found = f.select(small, f.convert("bitcast", subnormal, "i32"), normal)
    sign = f.binary("and", f.binary("shl", wide, word(31 - sign_at, wide)), word(-(1 << 31), wide))
    return _with_nan(f, f.convert("bitcast", f.binary("or", found, sign), "float"), value, fmt)


# From f32 to narrow floats


def encode(f: Function, value: Value, dtype: DType, level: str, *, exact: bool = False, clean: bool = False) -> Value:
    """A `float` (or, for f64, a `double`) rounded to nearest even into a float type, under its overflow rule.

    `exact` promises a value of the type, infinities and NaN included. Then NaN keeps sign and payload. `clean` promises
    that there are no NaN, or only those that casts write.
    """
    fmt = dtype.float_format
    if fmt is None:
        raise CompileError(f"expected a float type to encode into, got {dtype}")
    if exact and not dtype.policy.saturate:
        return _pack(f, value, dtype, fmt, level)
    if dtype.base in (f32, f64, tf32, bf16, f16):
        if dtype.policy.saturate:
            value = clamp(f, value, float(dtype.min_value), float(dtype.max_value))
        if dtype.base in (tf32, bf16):
            return _round_bits(f, value, dtype, level)
        value = value if clean else canonical(f, value)
        if dtype.base is not f16:
            return value
        if converts_halves(level):
            return _pack(f, value, dtype, fmt, level)
    return _round_small(f, value, dtype, fmt)


def _pack(f: Function, value: Value, dtype: DType, fmt: FloatFormat, level: str) -> Value:
    if dtype.base in (f32, f64, tf32):
        return value
    if dtype.base is bf16:
        return _upper_halves(f, bits(f, value), level)
    if dtype.base is f16 and converts_halves(level):
        return f.convert("bitcast", f.convert("fptrunc", value, "half"), "i16")
    return _round_small(f, value, dtype, fmt)


def _upper_halves(f: Function, words: Value, level: str) -> Value:
    lower = f.binary("lshr", words, word(16, words))
    if lanes_of(words.type) != 32 or not reaches(level, "avx512"):
        return f.convert("trunc", lower, "i16")
    # Packing two registers and sorting their quarters takes fewer steps than shortening each.
    first, second = (f.shuffle(lower, None, range(start, start + 16)) for start in (0, 16))
    packed = f.call("llvm.x86.avx512.packusdw.512", "<32 x i16>", [first, second])
    pairs = f.op("<8 x i64>", f"bitcast {packed} to <8 x i64>")
    sorted_ = f.shuffle(pairs, None, (0, 2, 4, 6, 1, 3, 5, 7))
    return f.op("<32 x i16>", f"bitcast {sorted_} to <32 x i16>")


def _round_bits(f: Function, value: Value, dtype: DType, level: str) -> Value:
    """bf16 and tf32, which are f32 with fewer bits: a carry runs on into the exponent, up to infinity."""
    dropped = 16 if dtype.base is bf16 else 13
    words = bits(f, value)
    odd = f.compare("ne", f.binary("and", words, word(1 << dropped, words)), word(0, words))
    # Half a unit above an odd last place, and a little less above an even one.
    half = f.select(odd, word(1 << (dropped - 1), words), word((1 << (dropped - 1)) - 1, words))
    rounded = f.binary("add", words, half)
    rounded = f.select(not_a_number(f, value), word(0x7FC00000, words), rounded)
    if dtype.base is bf16:
        return _upper_halves(f, rounded, level)
    return f.convert("bitcast", f.binary("and", rounded, word(-(1 << dropped), words)), "float")


def _round_small(f: Function, value: Value, dtype: DType, fmt: FloatFormat) -> Value:
    """Formats with small exponents: adding a large enough power of two leaves the adder to round.

    The sum's last place is then the target's, for normal and subnormal results alike, and the difference of the bits
    counts units in it. The hidden bit and a carry add themselves to the exponent field.
    """
    words = bits(f, value)
    codes = 1 << (fmt.exponent_bits + fmt.mantissa_bits)
    top = codes - (1 << fmt.mantissa_bits)
    largest = {Specials.IEEE: top - 1, Specials.NAN_ONLY: codes - 2, Specials.FINITE: codes - 1}[fmt.specials]
    # Without infinity, the code above the largest number is NaN's; a finite format has none.
    overflow = min(largest + 1, codes - 1) if not dtype.policy.saturate else largest
    magnitude = f.binary("and", words, word(0x7FFFFFFF, words))
    enough = word((127 + fmt.bias + 2) << 23, words)
    magnitude = f.intrinsic("umin", magnitude, enough)
    lowest = word((127 + fmt.min_exponent) << 23, words)
    exponent = f.intrinsic("umax", f.binary("and", magnitude, word(0xFF << 23, words)), lowest)
    large = f.binary("add", exponent, word((23 - fmt.mantissa_bits) << 23, words))
    total = f.binary("fadd", f.convert("bitcast", magnitude, "float"), f.convert("bitcast", large, "float"))
    units = f.binary("sub", bits(f, total), large)
    field = f.binary("lshr", f.binary("sub", exponent, lowest), word(23 - fmt.mantissa_bits, words))
    rounded = f.binary("add", field, units)
    code = f.intrinsic("umin", rounded, word(overflow, words))
    signed = f.binary("lshr", words, word(31 - fmt.exponent_bits - fmt.mantissa_bits, words))
    code = f.binary("or", code, f.binary("and", signed, word(codes, words)))
    if fmt.specials is Specials.NAN_ONLY and overflow > largest:
        code = f.select(f.compare("ugt", rounded, word(largest, words)), word(overflow, words), code)
    nan = top + (1 << (fmt.mantissa_bits - 1)) if fmt.specials is Specials.IEEE else codes - 1
    code = f.select(not_a_number(f, value), word(nan, words), code)
    return f.convert("trunc", code, f"i{8 * dtype.storage.itemsize}")
