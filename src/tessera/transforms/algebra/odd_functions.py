"""Odd functions by what is cheaper: tanh by a sigmoid, and x · (1 + erf(b·x)) by the tail of erf alone.

For x > 0, 1 + erf(b·x) is 2 less a tail, for x < 0 it is the tail, so that x · (1 + erf(b·x)) is
2·max(x, 0) − |x| · tail(b·|x|), without any sign to restore. The tail is a power of two of a polynomial.
tanh(x) = 2·sigmoid(2x) − 1, and what is added to it or multiplied with it goes into the same two numbers (see
`factoring`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log2

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.factoring import is_plain, remove_unused
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps

TAIL_ERROR = 3e-4
"""The relative error of the tail of erf."""
TANH_ERROR = 1e-6
"""The error of tanh by a sigmoid; the relative error of 1 + tanh is that of sigmoids."""
# log2(1 − erf(z)) for 0 ≤ z ≤ 4
_TAIL = (-0.000408534427, -1.62028259, -0.941244056, -0.124586485, 0.018962581, -0.00126047756)
_FAR = 4.0

Tolerance = Callable[[SSAValue], float]
"""Gives the error of a value that does no harm."""


def use_tails(function: tile.FuncOp, mark: str, relative: Tolerance) -> None:
    """Rewrites products with 1 + erf; functions in them get a mark that they need not be exact."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.EwOp) and op.fn.data == "mul" and is_plain(op) and relative(op.result) >= TAIL_ERROR:
            found = _of_tail(op)
            if found is not None:
                replace(op, _Writer(mark).product(*found))
    remove_unused(function)


def use_sigmoids(function: tile.FuncOp, mark: str, loose: str, absolute: Tolerance) -> None:
    """Rewrites hyperbolic tangents that have no mark yet; their sigmoids get it, and one that small ones may be off."""
    for op in list(function.body.walk()):
        known = isinstance(op, tile.EwOp) and op.fn.data == "tanh" and is_plain(op) and mark not in op.attributes
        if known and isinstance(op, tile.EwOp) and absolute(op.result) >= TANH_ERROR:
            replace(op, _Writer(mark, loose).tanh(op.operands_[0]))


class _Writer(TileOps):
    """New ops on tiles of one shape."""

    def __init__(self, *marks: str) -> None:
        super().__init__()
        self.marks = marks

    def approximate(self, name: str, operand: SSAValue) -> SSAValue:
        op = tile.EwOp(name, [operand])
        op.attributes.update({mark: UnitAttr() for mark in self.marks})
        return self.add(op)

    def product(self, x: SSAValue, a: float, b: float, others: Sequence[SSAValue]) -> list[Operation]:
        """a · x · (1 + erf(b·x)) · others."""
        size = self.ew("min", self.ew("abs", x), self.filled(_FAR / b, x))
        *lower, highest = (c * b**power + (log2(a) if power == 0 else 0.0) for power, c in enumerate(_TAIL))
        power = self.filled(highest, x)
        for c in reversed(lower):
            power = self.ew("fma", power, size, self.filled(c, x))
        above = self.multiple(self.ew("max", x, self.filled(0.0, x)), 2.0 * a)
        found = self.ew("fma", self.ew("neg", size), self.approximate("exp2", power), above)
        for other in others:
            found = self.ew("mul", found, other)
        return self.ops

    def tanh(self, x: SSAValue) -> list[Operation]:
        twice = self.multiple(self.approximate("sigmoid", self.multiple(x, 2.0)), 2.0)
        self.ew("add", twice, self.filled(-1.0, x))
        return self.ops


def _of_tail(op: tile.EwOp) -> tuple[SSAValue, float, float, list[SSAValue]] | None:
    """x, a, b and what else there is, of a · x · (1 + erf(b·x)) · …, for positive a and b."""
    factors = list(_factors(op.result))
    a = 1.0
    for number in map(constant_of, factors):
        a *= 1.0 if number is None else number
    others = [factor for factor in factors if constant_of(factor) is None]
    for beside in others:
        argument = _beside_one(beside)
        if argument is None:
            continue
        b, parts = 1.0, list[SSAValue]()
        for part in _factors(argument):
            number = constant_of(part)
            if number is None:
                parts.append(part)
            else:
                b *= number
        if len(parts) == 1 and parts[0] in others and a > 0 and b > 0:
            others.remove(beside)
            others.remove(parts[0])
            return parts[0], a, b, others
    return None


def _factors(value: SSAValue) -> Iterator[SSAValue]:
    """The factors of a value."""
    op = value.owner
    if isinstance(op, tile.EwOp) and op.fn.data == "mul" and is_plain(op):
        for operand in op.operands_:
            yield from _factors(operand)
    else:
        yield value


def _beside_one(value: SSAValue) -> SSAValue | None:
    """The argument of an erf that one was added to."""
    op = value.owner
    if not isinstance(op, tile.EwOp) or op.fn.data != "add" or not is_plain(op):
        return None
    for one, other in (op.operands_, op.operands_[::-1]):
        inner = other.owner
        if constant_of(one) == 1.0 and isinstance(inner, tile.EwOp) and inner.fn.data == "erf" and is_plain(inner):
            return inner.operands_[0]
    return None
