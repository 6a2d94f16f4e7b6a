"""An analysis of tile functions: which values are multiples of others by positive numbers."""

from __future__ import annotations

import math

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.masks import constant_of

_NEAR = 1e-6


def is_near(a: float, b: float) -> bool:
    """Whether two numbers are the same but for the rounding of constants."""
    return abs(a - b) <= _NEAR * max(abs(a), abs(b))


def multiplied(value: SSAValue) -> tuple[SSAValue, float]:
    """A value as another one times a positive number."""
    factor = 1.0
    while (found := factor_of(value)) is not None:
        value, number = found
        factor *= number
    return value, factor


def factor_of(value: SSAValue) -> tuple[SSAValue, float] | None:
    """The operand and the number of the last multiplication of a value."""
    op = value.owner
    if not isinstance(op, tile.EwOp) or op.fn.data != "mul" or op.policy is not None:
        return None
    for other, factor in (op.operands_, op.operands_[::-1]):
        number = constant_of(factor)
        if number is not None and 0 < number < math.inf:
            return other, number
    return None


_ANY = 0.0
"""The ratio of nothing to nothing: whatever is asked for."""


class Ratios:
    """How often one value is another: the same computation, but for positive factors."""

    def __init__(self) -> None:
        self._known: dict[tuple[SSAValue, SSAValue], float | None] = {}

    def of(self, a: SSAValue, b: SSAValue) -> float | None:
        """The number that b times is a; None where there is none that is known."""
        if (a, b) not in self._known:
            self._known[a, b] = self._found(a, b)
        return self._known[a, b]

    def _found(self, a: SSAValue, b: SSAValue) -> float | None:
        if a.type != b.type:
            return None
        first, second = constant_of(a), constant_of(b)
        if first is not None and second is not None:
            if first == second and (first == 0 or math.isinf(first)):
                return _ANY
            finite = math.isfinite(first) and math.isfinite(second)
            return first / second if finite and first * second > 0 else None
        (one, p), (other, q) = multiplied(a), multiplied(b)
        ratio = 1.0 if one is other else self._of_ops(one, other)
        return None if ratio is None else ratio * p / q

    def _of_ops(self, a: SSAValue, b: SSAValue) -> float | None:
        one, other = a.owner, b.owner
        if not isinstance(one, Operation) or not isinstance(other, Operation) or type(one) is not type(other):
            return None
        alike = one.properties == other.properties and len(one.operands) == len(other.operands)
        if not alike or one.regions or not is_side_effect_free(one):
            return None
        found = [self.of(x, y) for x, y in zip(one.operands, other.operands, strict=True)]
        ratios = [ratio for ratio in found if ratio is not None]
        if len(ratios) < len(found):
            return None
        name = one.fn.data if isinstance(one, tile.EwOp) else one.name
        if name in ("add", "sub", "max", "min"):
            return _joint(*ratios)
        if name == "select" and ratios[0] in (_ANY, 1.0):
            return _joint(*ratios[1:])
        if name in ("neg", tile.ExpandOp.name, tile.BroadcastOp.name, tile.TransOp.name):
            return ratios[0]
        return 1.0 if all(ratio in (_ANY, 1.0) for ratio in ratios) else None


def _joint(one: float, other: float) -> float | None:
    if _ANY in (one, other):
        return one or other
    return one if is_near(one, other) else None
