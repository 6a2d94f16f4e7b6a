"""floordiv and rem of f32 on GPUs, by way of f64, where quotients of up to 29 bits and their products are exact."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.targets.cuda.machine_floats import MachineFloats
from tessera.targets.llvm.text import Value, number

_FEW = 2.0**29
_STEPS = 10
"""So many times 29 bits lie between the largest and the smallest float."""


def floordiv(k: MachineFloats, a: Value, b: Value) -> Value:
    wide, a, b, rest, lower = _division(k, a, b)
    quotient = wide.div(wide.sub(a, rest), b)
    quotient = wide.select(lower, wide.sub(quotient, 1.0), quotient)
    floor = k.f.intrinsic("floor", quotient)
    whole = wide.select(wide.compare("ogt", wide.sub(quotient, floor), 0.5), wide.add(floor, 1.0), floor)
    ratio = wide.div(a, b)
    whole = wide.select(wide.compare("oeq", quotient, 0.0), wide.with_sign(0.0, ratio), whole)
    return k.f.convert("fptrunc", wide.select(wide.compare("oeq", b, 0.0), ratio, whole), "float")


def rem(k: MachineFloats, a: Value, b: Value) -> Value:
    wide, _, b, rest, lower = _division(k, a, b)
    zero = wide.compare("oeq", rest, 0.0)
    found = wide.select(zero, wide.with_sign(0.0, b), wide.select(lower, wide.add(rest, b), rest))
    return k.f.convert("fptrunc", found, "float")


def _division(k: MachineFloats, a: Value, b: Value) -> tuple[MachineFloats, Value, Value, Value, Value]:
    """Both operands in f64, the remainder with the sign of a, and where the quotient is one less than it was cut to."""
    f, wide = k.f, MachineFloats(k.f, "double")
    a, b = (f.convert("fpext", operand, "double") for operand in (a, b))
    rest, size = _step(wide, a, b)
    many = wide.both(wide.compare("oge", size, _FEW), wide.compare("olt", size, float("inf")))
    (rest,) = f.branch(many, lambda: [_slowly(wide, a, b)], lambda: [rest], rare=True)
    other_sign = f.binary("xor", wide.compare("olt", b, 0.0), wide.compare("olt", rest, 0.0))
    return wide, a, b, rest, wide.both(other_sign, wide.compare("une", rest, 0.0))


def _step(k: MachineFloats, a: Value, b: Value) -> tuple[Value, Value]:
    """What is left of a when b is taken away as often as it fits in, and how often that is."""
    quotient = k.f.intrinsic("trunc", k.div(a, b))
    rest = k.sub(a, k.mul(quotient, b))
    return k.select(k.compare("olt", k.absolute(a), k.absolute(b)), a, rest), k.absolute(quotient)


def _slowly(k: MachineFloats, a: Value, b: Value) -> Value:
    """The same for any quotient: multiples of b are taken away first, the largest of them first."""
    largest = k.mul(b, _FEW ** (_STEPS - 1))

    def turn(_: Value, carried: list[Value]) -> Sequence[Value]:
        rest, multiple = carried
        return [_step(k, rest, multiple)[0], k.mul(multiple, 1 / _FEW)]

    return k.f.loop(number(0, "i32"), number(_STEPS, "i32"), 1, [a, largest], turn, runs=True)[0]
