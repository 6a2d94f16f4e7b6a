"""floordiv and rem on GPUs, exact for any quotient.

In f64, quotients of up to 29 bits of f32 numbers and their products are exact. Longer ones, and those of f64, are taken
in steps: multiples of the divisor by powers of two are taken away, the largest first. What a step leaves is a number of
the format, so that a fused product gives it exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessera.targets.cuda.math.machine_floats import MachineFloats
from tessera.targets.llvm.floats import floored_quotient, floored_rest
from tessera.targets.llvm.text import Value, number

_FEW = 2.0**29
_STEPS = 10
"""So many times 29 bits lie between the largest and the smallest number of f32."""
_BITS = 50
"""How many bits of a quotient of f64 numbers are found in one step; those are nearly all that f64 has."""
_MOST_STEPS = 44
_LEAST_NORMAL, _UP = 2.0**-1022, 64


def floordiv(k: MachineFloats, a: Value, b: Value) -> Value:
    return _narrowed(k, floored_quotient(*_division(k, a, b)))


def rem(k: MachineFloats, a: Value, b: Value) -> Value:
    wide, _, b, rest = _division(k, a, b)
    return _narrowed(k, floored_rest(wide, b, rest))


def _narrowed(k: MachineFloats, found: Value) -> Value:
    return k.f.convert("fptrunc", found, "float") if k.type == "float" else found


def _division(k: MachineFloats, a: Value, b: Value) -> tuple[MachineFloats, Value, Value, Value]:
    """Both operands in f64, and the remainder with the sign of a."""
    f, wide = k.f, MachineFloats(k.f, "double")
    if k.type == "float":
        a, b = (f.convert("fpext", operand, "double") for operand in (a, b))
        rest, size = _step(wide, a, b)
        many = wide.both(wide.compare("oge", size, _FEW), wide.compare("olt", size, float("inf")))
        (rest,) = f.branch(many, lambda: [_slowly(wide, a, b)], lambda: [rest], rare=True)
    else:
        rest = wide.with_sign(_wide_rest(wide, wide.absolute(a), wide.absolute(b)), a)
    return wide, a, b, rest


# Of numbers of f32


def _step(k: MachineFloats, a: Value, b: Value) -> tuple[Value, Value]:
    """The remainder of a by b, and the quotient."""
    quotient = k.f.intrinsic("trunc", k.div(a, b))
    rest = k.sub(a, k.mul(quotient, b))
    return k.select(k.compare("olt", k.absolute(a), k.absolute(b)), a, rest), k.absolute(quotient)


def _slowly(k: MachineFloats, a: Value, b: Value) -> Value:
    """The same for any quotient."""
    largest = k.mul(b, _FEW ** (_STEPS - 1))

    def iteration(_: Value, carried: list[Value]) -> Sequence[Value]:
        rest, multiple = carried
        return [_step(k, rest, multiple)[0], k.mul(multiple, 1 / _FEW)]

    return k.f.loop(number(0, "i32"), number(_STEPS, "i32"), 1, [a, largest], iteration, runs=True)[0]


# Of numbers of f64


def _wide_rest(k: MachineFloats, a: Value, b: Value) -> Value:
    """The remainder of a by b; neither is negative."""
    f = k.f
    apart = f.binary("sub", _exponent(k, a), _exponent(k, b))
    steps = f.binary("add", f.binary("sdiv", apart, _BITS), 2)
    steps = f.intrinsic("smax", f.intrinsic("smin", steps, _MOST_STEPS), 1)

    def iteration(_: Value, carried: list[Value]) -> Sequence[Value]:
        (rest,) = carried
        between = f.binary("sub", _exponent(k, rest), _exponent(k, b))
        shift = f.binary("sub", between, _BITS)
        shift = f.intrinsic("smin", f.intrinsic("smax", shift, 0), 2 * 1023)
        first = f.binary("lshr", shift, 1)
        multiple = k.mul(k.mul(b, _power(k, first)), _power(k, f.binary("sub", shift, first)))
        quotient = f.intrinsic("trunc", k.div(rest, multiple))
        left = k.fma(k.neg(quotient), multiple, rest)
        # The quotient was rounded, and may be one too many.
        left = k.select(k.compare("olt", left, 0.0), k.add(left, multiple), left)
        return [k.select(k.compare("olt", rest, multiple), rest, left)]

    return f.loop(number(0, "i64"), steps, 1, [a], iteration, runs=True)[0]


def _exponent(k: MachineFloats, x: Value) -> Value:
    """⌊log2 x⌋ + 1023, of subnormal numbers too; of 0 something less."""
    f = k.f
    small = k.compare("olt", x, _LEAST_NORMAL)
    words = k.bits(k.select(small, k.mul(x, 2.0**_UP), x))
    return f.binary("sub", k.on_bits("lshr", words, 52), f.select(small, k.word(_UP), k.word(0)))


def _power(k: MachineFloats, exponent: Value) -> Value:
    """2^exponent, for exponents from 0 to 1023."""
    return k.of_bits(k.on_bits("shl", k.on_bits("add", exponent, 1023), 52))
