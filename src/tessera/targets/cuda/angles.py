"""sin, cos and tan in f32 on GPUs, of any angle.

An angle is split as x = n · π/2 + r with |r| ≤ π/4. Below 2^17 three products with parts of π/2 do that. Beyond, x is
m · 2^e with 24 bits in m, and of 2/π only the bits count that give parts of a turn: those above give whole turns, and
those 96 bits below give nothing that f32 could show. Coefficients are minimax fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tessera.targets.cuda.machine_floats import MachineFloats
from tessera.targets.llvm.text import Value, number

_LARGE = 2.0**17
_TWO_OVER_PI = 0.6366197723675814
_WHOLE = 1.5 * 2.0**23
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)

# (sin r − r) / r³ and (cos r − 1 + r²/2) / r⁴ in r² for |r| ≤ π/4: 0.07 and 0.002 · 2^-24
_SIN = (-0.166666552, 0.00833218731, -0.000195179033)
_COS = (0.0416666456, -0.00138873095, 2.44323273e-05)

# 2/π, 32 bits at a time, behind 32 zeros.
_TURNS = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)


def sin(k: MachineFloats, x: Value) -> Value:
    quarter, r = _split(k, x)
    found = k.select(_odd(k, quarter), _cosine(k, r), _sine(k, r))
    # The sign of sin(−0); r has lost it where n is −0.
    return _turned(k, k.select(k.compare("oeq", x, 0.0), x, found), quarter)


def cos(k: MachineFloats, x: Value) -> Value:
    quarter, r = _split(k, x)
    found = k.select(_odd(k, quarter), _sine(k, r), _cosine(k, r))
    return _turned(k, found, k.on_bits("add", quarter, 1))


def tan(k: MachineFloats, x: Value) -> Value:
    quarter, r = _split(k, x)
    odd = _odd(k, quarter)
    sine, cosine = _sine(k, r), _cosine(k, r)
    found = k.div(k.select(odd, cosine, sine), k.select(odd, k.neg(sine), cosine))
    return k.select(k.compare("oeq", x, 0.0), x, found)


def _split(k: MachineFloats, x: Value) -> tuple[Value, Value]:
    """The lowest bits of n, and r."""

    def small() -> Sequence[Value]:
        shifted = k.fma(x, _TWO_OVER_PI, _WHOLE)
        n, r = k.sub(shifted, _WHOLE), x
        for part in _HALF_PI:
            r = k.fma(n, -part, r)
        return [k.bits(shifted), r]

    # NaN and infinities go this way too, and come out as NaN.
    large = k.compare("uge", k.absolute(x), _LARGE)
    quarter, r = k.f.branch(large, lambda: _reduced(k, x), small, rare=True)
    return quarter, r


def _reduced(k: MachineFloats, x: Value) -> Sequence[Value]:
    """A large angle's quarter of a turn and what is left of it."""
    f, words = k.f, k.bits(k.absolute(x))
    exponent = k.on_bits("sub", k.on_bits("lshr", words, 23), 127)
    mantissa = f.convert("zext", k.on_bits("or", k.on_bits("and", words, 0x7FFFFF), 0x800000), "i64")
    # The first bit that counts has the weight 2 with the mantissa: bit e − 24 behind the point, 8 further in the table.
    place = k.on_bits("add", exponent, 7)
    word, bit = k.on_bits("lshr", place, 5), k.on_bits("and", place, 31)
    window = [_window(k, word, bit, step) for step in range(3)]
    low = f.binary("mul", mantissa, window[2])
    middle = f.binary("add", f.binary("mul", mantissa, window[1]), f.binary("lshr", low, number(32, "i64")))
    high = f.binary("add", f.binary("mul", mantissa, window[0]), f.binary("lshr", middle, number(32, "i64")))
    turns = f.binary("or", f.binary("shl", high, number(32, "i64")), _lowest(k, middle))
    # The upper two bits are the quarter, those below it a part of one: rounded to the nearest, it has a sign.
    quarter = f.convert(
        "trunc", f.binary("lshr", f.binary("add", turns, number(1 << 61, "i64")), number(62, "i64")), "i32"
    )
    part = f.convert("sitofp", f.binary("shl", turns, number(2, "i64")), "double")
    r = f.binary("fmul", part, number(math.pi / 2 * 2.0**-64, "double"))
    r = f.convert("fptrunc", r, "float")
    negative = k.compare("olt", x, 0.0)
    r = k.select(negative, k.neg(r), r)
    quarter = f.select(negative, f.binary("sub", number(0, "i32"), quarter), quarter)
    # What is not finite less itself is NaN.
    endless = k.compare("ueq", k.absolute(x), math.inf)
    return [quarter, k.select(endless, k.sub(x, x), r)]


def _lowest(k: MachineFloats, value: Value) -> Value:
    return k.f.binary("and", value, number(0xFFFFFFFF, "i64"))


def _window(k: MachineFloats, word: Value, bit: Value, step: int) -> Value:
    """32 bits of the table from a place on, `step` words further, in 64 bits."""
    f = k.f
    upper, lower = (_entry(k, word, step + more) for more in (0, 1))
    both = f.binary("or", f.binary("shl", upper, number(32, "i64")), lower)
    moved = f.binary("lshr", both, f.binary("sub", number(32, "i64"), f.convert("zext", bit, "i64")))
    return _lowest(k, moved)


def _entry(k: MachineFloats, word: Value, more: int) -> Value:
    """A word of the table; angles of f32 begin in one of the first five."""
    found = number(_TURNS[more], "i64")
    for place in range(1, 5):
        here = k.f.compare("eq", word, number(place, "i32"))
        entry = _TURNS[place + more] if place + more < len(_TURNS) else 0
        found = k.f.select(here, number(entry, "i64"), found)
    return found


def _odd(k: MachineFloats, quarter: Value) -> Value:
    return k.f.compare("ne", k.on_bits("and", quarter, 1), k.word(0))


def _turned(k: MachineFloats, found: Value, quarter: Value) -> Value:
    """The other sign in every other half of a turn."""
    sign = k.on_bits("shl", k.on_bits("and", quarter, 2), 30)
    return k.of_bits(k.on_bits("xor", k.bits(found), sign))


def _sine(k: MachineFloats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, r), k.polynomial(square, _SIN), r)


def _cosine(k: MachineFloats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, square), k.polynomial(square, _COS), k.fma(square, -0.5, 1.0))
