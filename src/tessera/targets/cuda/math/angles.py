"""sin, cos and tan in f32 on GPUs, of any angle.

An angle is split as x = n · π/2 + r with |r| ≤ π/4. Below 2^17 three products with parts of π/2 do that. Beyond, x is
m · 2^e with 24 bits in m, and of 2/π only the bits count that give parts of a period: those above give whole periods,
and those 96 bits below give nothing that f32 could show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tessera.targets.cuda.math.machine_floats import MachineFloats
from tessera.targets.llvm import angles
from tessera.targets.llvm.text import Value, number

# 2/π, 32 bits at a time, behind 32 zeros.
_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)


def sin(k: MachineFloats, x: Value) -> Value:
    return angles.sine(k, x, *_split(k, x))


def cos(k: MachineFloats, x: Value) -> Value:
    return angles.cosine(k, *_split(k, x))


def tan(k: MachineFloats, x: Value) -> Value:
    return angles.tangent(k, x, *_split(k, x))


def _split(k: MachineFloats, x: Value) -> tuple[Value, Value]:
    """The lowest bits of n, and r."""
    # NaN and infinities go this way too, and come out as NaN.
    large = k.compare("uge", k.absolute(x), angles.LARGE)
    quarter, r = k.f.branch(large, lambda: _reduced(k, x), lambda: angles.split(k, x), rare=True)
    return quarter, r


def _reduced(k: MachineFloats, x: Value) -> Sequence[Value]:
    """A large angle's quarter of a period and what is left of it."""
    f, words = k.f, k.bits(k.absolute(x))
    exponent = k.on_bits("sub", k.on_bits("lshr", words, 23), 127)
    mantissa = f.convert("zext", k.on_bits("or", k.on_bits("and", words, 0x7FFFFF), 0x800000), "i64")
    # The first bit that counts has the weight 2 with the mantissa: bit e − 24 behind the point, 8 further in the table.
    first_bit = k.on_bits("add", exponent, 7)
    word, bit = k.on_bits("lshr", first_bit, 5), k.on_bits("and", first_bit, 31)
    window = [_window(k, word, bit, step) for step in range(3)]
    low = f.binary("mul", mantissa, window[2])
    middle = f.binary("add", f.binary("mul", mantissa, window[1]), f.binary("lshr", low, 32))
    high = f.binary("add", f.binary("mul", mantissa, window[0]), f.binary("lshr", middle, 32))
    periods = f.binary("or", f.binary("shl", high, 32), _lowest(k, middle))
    # The upper two bits are the quarter, those below it a part of one: rounded to the nearest, it has a sign.
    quarter = f.convert("trunc", f.binary("lshr", f.binary("add", periods, 1 << 61), 62), "i32")
    part = f.convert("sitofp", f.binary("shl", periods, 2), "double")
    r = f.binary("fmul", part, math.pi / 2 * 2.0**-64)
    r = f.convert("fptrunc", r, "float")
    negative = k.compare("olt", x, 0.0)
    r = k.select(negative, k.neg(r), r)
    quarter = f.select(negative, f.binary("sub", number(0, "i32"), quarter), quarter)
    # What is not finite less itself is NaN.
    endless = k.compare("ueq", k.absolute(x), math.inf)
    return [quarter, k.select(endless, k.sub(x, x), r)]


def _lowest(k: MachineFloats, value: Value) -> Value:
    return k.f.binary("and", value, 0xFFFFFFFF)


def _window(k: MachineFloats, word: Value, bit: Value, step: int) -> Value:
    """32 bits of the table from a bit on, `step` words further, in 64 bits."""
    f = k.f
    upper, lower = (_entry(k, word, step + more) for more in (0, 1))
    both = f.binary("or", f.binary("shl", upper, 32), lower)
    moved = f.binary("lshr", both, f.binary("sub", number(32, "i64"), f.convert("zext", bit, "i64")))
    return _lowest(k, moved)


def _entry(k: MachineFloats, word: Value, more: int) -> Value:
    """A word of the table; angles of f32 begin in one of the first five."""
    found = number(_TWO_OVER_PI[more], "i64")
    for index in range(1, 5):
        here = k.f.compare("eq", word, index)
        entry = _TWO_OVER_PI[index + more] if index + more < len(_TWO_OVER_PI) else 0
        found = k.f.select(here, number(entry, "i64"), found)
    return found
