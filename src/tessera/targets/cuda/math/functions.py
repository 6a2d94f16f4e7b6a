"""Functions of f32 on GPUs: the machine's approximations, corrected where they are not exact enough.

`F32` are for any use: their errors are a few units in the last place, all floats are taken, subnormal results are
right. `APPROXIMATE` are for what is rounded to 8 or 11 bits later. `FAST` are single instructions. What is in none of
the tables, `targets.llvm.mathematics` computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tessera.targets.cuda.math import angles, remainders
from tessera.targets.cuda.math.machine_floats import MachineFloats
from tessera.targets.llvm.text import Value

Recipe = Callable[..., Value]

_LOG2_E, _LOG2_E_REST = 1.4426950216293335, 1.925963033500011e-08


def exp(k: MachineFloats, x: Value) -> Value:
    """e^x = 2^n · 2^r with n in [−126, 126] and r in [0, 1) or, at the ends, beyond: 2^r is exact enough anywhere.

    Cutting to [0, 1] finds n without a branch; what is infinite or NaN stays so in r.
    """
    cut = k.instruction("fma.rn.sat.f32", x, _LOG2_E / 252, 0.5)
    # Rounding down leaves n + 127 in the lowest bits.
    shifted = k.instruction("fma.rm.f32", cut, 252.0, 12582913.0)
    n = k.sub(shifted, 12583039.0)
    r = k.fma(x, _LOG2_E_REST, k.fma(x, _LOG2_E, k.neg(n)))
    return k.mul(k.instruction("ex2.approx.ftz.f32", r), k.of_bits(k.on_bits("shl", k.bits(shifted), 23)))


def exp2(k: MachineFloats, x: Value) -> Value:
    return k.instruction("ex2.approx.f32", x)


def sigmoid(k: MachineFloats, x: Value) -> Value:
    """1 / (1 + e^−x), without overflow on either side."""
    decay = exp(k, k.neg(k.absolute(x)))
    above = k.select(k.compare("oge", x, 0.0), 1.0, decay)
    return k.mul(above, k.instruction("rcp.approx.ftz.f32", k.add(decay, 1.0)))


# (tanh(x) / x − 1) / x² in x² for |x| ≤ 0.6: 0.05 · 2^-24
_TANH = (-0.333332986, 0.133319244, -0.0537838303, 0.0207959693, -0.00589515455)


def tanh(k: MachineFloats, x: Value) -> Value:
    """1 − 2 / (e^(2|x|) + 1), or near 0 a polynomial."""
    size, square = k.absolute(x), k.mul(x, x)
    power = k.instruction("ex2.approx.ftz.f32", k.mul(size, 2 * (_LOG2_E + _LOG2_E_REST)))
    far = k.fma(k.instruction("rcp.approx.ftz.f32", k.add(power, 1.0)), -2.0, 1.0)
    near = k.fma(k.mul(k.polynomial(square, _TANH), square), size, size)
    return k.with_sign(k.select(k.compare("olt", size, 0.6), near, far), x)


def rsqrt(k: MachineFloats, x: Value) -> Value:
    return k.instruction("rsqrt.approx.f32", x)


def wide_rsqrt(k: MachineFloats, x: Value) -> Value:
    """In f64, where the machine approximates f32 at most."""
    return k.div(1.0, k.sqrt(x))


def _wide_extreme(name: str) -> Recipe:
    """In f64 the machine has +0 above −0, but leaves NaN out."""

    def recipe(k: MachineFloats, a: Value, b: Value) -> Value:
        return k.select(k.compare("uno", a, b), math.nan, k.instruction(name, a, b))

    return recipe


def approximate_exp(k: MachineFloats, x: Value) -> Value:
    return k.instruction("ex2.approx.ftz.f32", k.mul(x, _LOG2_E + _LOG2_E_REST))


def approximate_sigmoid(k: MachineFloats, x: Value) -> Value:
    decay = k.instruction("ex2.approx.ftz.f32", k.mul(x, -_LOG2_E - _LOG2_E_REST))
    return k.instruction("rcp.approx.ftz.f32", k.add(decay, 1.0))


def inverses(k: MachineFloats, values: Sequence[Value]) -> list[Value]:
    """1 / x of several numbers whose product is in range, with one reciprocal for all: that of the product.

    What is then added to one of them is a part of its last multiplication.
    """
    levels = [list(values)]
    while len(last := levels[-1]) > 1:
        pairs = [last[at : at + 2] for at in range(0, len(last), 2)]
        levels.append([k.mul(*pair) if len(pair) == 2 else pair[0] for pair in pairs])
    found = [k.instruction("rcp.approx.ftz.f32", *levels.pop())]
    for level in reversed(levels):
        beside = [level[at ^ 1] if at ^ 1 < len(level) else None for at in range(len(level))]
        found = [found[at // 2] if b is None else k.open_mul(found[at // 2], b) for at, b in enumerate(beside)]
    return found


def _instruction(name: str) -> Recipe:
    def recipe(k: MachineFloats, *operands: Value) -> Value:
        return k.instruction(name, *operands)

    return recipe


def _intrinsic(name: str) -> Recipe:
    def recipe(k: MachineFloats, *operands: Value) -> Value:
        return k.f.intrinsic(name, *operands)

    return recipe


# log2(1 − erf(x)) / x for 0 ≤ x ≤ 4: 5e-7 of erf(x), 5e-4 of 1 − erf(x)
_ERF = (-1.62793756, -0.918016791, -0.150228113, 0.0316582844, -0.00412982143, 0.000241094545)


def approximate_erf(k: MachineFloats, x: Value) -> Value:
    """1 − 2^p(|x|)."""
    size = k.instruction("min.NaN.f32", k.absolute(x), 4.0)
    tail = k.instruction("ex2.approx.ftz.f32", k.mul(k.polynomial(size, _ERF), size))
    return k.with_sign(k.sub(1.0, tail), x)


F32: Mapping[str, Recipe] = MappingProxyType(
    {
        "exp": exp,
        "exp2": exp2,
        "sigmoid": sigmoid,
        "tanh": tanh,
        "rsqrt": rsqrt,
        "sin": angles.sin,
        "cos": angles.cos,
        "tan": angles.tan,
        "floordiv": remainders.floordiv,
        "rem": remainders.rem,
    }
)

WIDE: Mapping[str, Recipe] = MappingProxyType(
    {
        "rsqrt": wide_rsqrt,
        "floordiv": remainders.floordiv,
        "rem": remainders.rem,
        "max": _wide_extreme("max.f64"),
        "min": _wide_extreme("min.f64"),
    }
)
"""Of f64; the other functions are those of `targets.llvm.f64_functions`."""

APPROXIMATE: Mapping[str, Recipe] = MappingProxyType(
    {
        "exp": approximate_exp,
        "exp2": _instruction("ex2.approx.ftz.f32"),
        "reciprocal": _instruction("rcp.approx.ftz.f32"),
        "sigmoid": approximate_sigmoid,
        "tanh": _instruction("tanh.approx.f32"),
        "erf": approximate_erf,
    }
)

FAST: Mapping[str, Recipe] = MappingProxyType(
    {
        "exp2": _instruction("ex2.approx.ftz.f32"),
        "log2": _instruction("lg2.approx.ftz.f32"),
        "reciprocal": _instruction("rcp.approx.ftz.f32"),
        "rsqrt": _instruction("rsqrt.approx.ftz.f32"),
        "tanh": _instruction("tanh.approx.f32"),
        "max": _intrinsic("maxnum"),
        "min": _intrinsic("minnum"),
    }
)
