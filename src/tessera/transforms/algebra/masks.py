"""Iterations and columns that masks make needless: an analysis of tile functions.

A mask is a tile of truths that chooses between a value and a constant. Where it is false all over, much of what
follows is known, and often nothing changes at all: the maximum of −∞ and x is x, a dot with zeros adds nothing.
Such work may be left out. Where a mask is false follows from the positions it compares.

Leaving work out supposes that what is masked out is finite (0 · ∞ is not 0), that a row which is NaN may stay so, and
that −∞ less something is −∞ (it is NaN for −∞ itself). Where that does not hold, a NaN may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, bool_, f64
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type

T = TypeVar("T")


@dataclass(frozen=True)
class Splat:
    """A value known to be one number everywhere."""

    number: float


Known = Splat | SSAValue
"""A constant, or the value that something is equal to."""


def known_where_false(ops: Iterable[Operation], mask: SSAValue) -> dict[SSAValue, Known]:
    """The known values of straight-line ops where `mask` is false everywhere."""
    found: dict[SSAValue, Known] = {mask: Splat(False)}

    def look(value: SSAValue) -> Known:
        if value not in found:
            found[value] = _source(value)
        return found[value]

    for op in ops:
        rule = _RULES.get(type(op))
        if rule is not None and op.results[0] is not mask:
            found[op.results[0]] = rule(op, look)
    return found


def _source(value: SSAValue) -> Known:
    """A tile made of one constant, wherever it stands; anything else is itself."""
    op = value.owner
    if isinstance(op, tile.FullOp):
        scalar = op.value.owner
        if isinstance(scalar, arith.ConstantOp) and isinstance(scalar.value, FloatAttr | IntegerAttr):
            return Splat(scalar.value.value.data)
    return value


def constant_of(value: SSAValue) -> float | None:
    """The number that a tile is made of, if it is one."""
    found = _source(repeated(value))
    return found.number if isinstance(found, Splat) else None


_Look = Callable[[SSAValue], Known]


def _of_structure(op: Any, look: _Look) -> Known:
    operand = look(op.operand)
    return operand if isinstance(operand, Splat) else op.result


def _of_reduce(op: tile.ReduceOp, look: _Look) -> Known:
    operand = look(op.operand)
    if isinstance(operand, Splat):
        steady = op.kind.data in ("max", "min", "top", "and", "or")
        if steady or operand.number == reductions.TABLE[op.kind.data].identity(tile_dtype(op.operand)):
            return operand
    return op.result


def _of_dot(op: tile.DotOp, look: _Look) -> Known:
    return look(op.c) if look(op.a) == Splat(0) else op.result


_INFINITE = float("inf")
# An operand that leaves the other as it is: by operand index, then by number.
_NEUTRAL: Mapping[str, Mapping[int, float]] = {
    "add": {0: 0.0, 1: 0.0},
    "sub": {1: 0.0},
    "mul": {0: 1.0, 1: 1.0},
    "div": {1: 1.0},
    "max": {0: -_INFINITE, 1: -_INFINITE},
    "min": {0: _INFINITE, 1: _INFINITE},
}
# Operands, counted from the first, of which one that is −∞ makes the result −∞, for all others but the opposite one.
_LEAST_STAYS: Mapping[str, int] = {"sub": 1, "add": 2}
# Comparisons that hold for every other operand that is a number.
_CERTAIN: Mapping[str, tuple[int, float]] = {"le": (0, -_INFINITE), "ge": (1, -_INFINITE)}


def _of_elementwise(op: tile.EwOp, look: _Look) -> Known:
    name, operands = op.fn.data, [look(operand) for operand in op.operands_]
    if name == "select" and isinstance(operands[0], Splat):
        return operands[1] if operands[0].number else operands[2]
    if name == "select" and operands[1] == operands[2]:
        return operands[1]
    if name == "cast" and not isinstance(operands[0], Splat):
        return op.result
    numbers = [operand.number for operand in operands if isinstance(operand, Splat)]
    if name != "cast" and op.result_dtype != tile_dtype(op.result):
        return op.result
    if len(numbers) == len(operands) and op.seed is None:
        return Splat(_computed(op, numbers))
    for index, neutral in _NEUTRAL.get(name, {}).items():
        if operands[index] == Splat(neutral):
            return operands[1 - index]
    if name in _LEAST_STAYS and Splat(-_INFINITE) in operands[: _LEAST_STAYS[name]]:
        return Splat(-_INFINITE)
    if name in _CERTAIN:
        index, least = _CERTAIN[name]
        if operands[index] == Splat(least):
            return Splat(True)
    return op.result


def _computed(op: tile.EwOp, numbers: Sequence[float]) -> float:
    dtypes = [tile_dtype(operand) for operand in op.operands_]
    arrays = [_array(number, dtype) for number, dtype in zip(numbers, dtypes, strict=True)]
    to = op.result_dtype if op.fn.data == "cast" else None
    result = elementwise.apply(op.fn.data, arrays, dtypes, to=to)
    dtype = tile_dtype(op.result)
    if dtype is bool_:
        return bool(result)
    return float(cast(result, dtype, f64)) if dtype.is_float else int(result)


def _array(number: float, dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    if dtype.is_float:
        return cast(np.asarray(number, np.float64), f64, dtype)
    return np.asarray(number, dtype.storage)


_RULES: Mapping[type[Operation], Callable[[Any, _Look], Known]] = {
    tile.ExpandOp: _of_structure,
    tile.BroadcastOp: _of_structure,
    tile.TransOp: _of_structure,
    tile.ReduceOp: _of_reduce,
    tile.DotOp: _of_dot,
    tile.EwOp: _of_elementwise,
    tile.FullOp: lambda op, look: _source(op.result),
}


def masks_in(block: Block) -> Iterator[SSAValue]:
    """The masks that choose between a value and a constant in a block."""
    seen: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, tile.EwOp) and op.fn.data == "select":
            mask, _, otherwise = op.operands_
            if mask not in seen and isinstance(_source(repeated(otherwise)), Splat):
                seen.add(mask)
                yield mask


def repeated(value: SSAValue) -> SSAValue:
    """The tile that is repeated along other axes."""
    while isinstance(op := value.owner, tile.ExpandOp | tile.BroadcastOp):
        value = op.operand
    return value


def is_skippable(loop: scf.ForOp, mask: SSAValue) -> bool:
    """Whether an iteration of a loop in which `mask` is false everywhere changes nothing."""
    block = loop.body.block
    end = block.last_op
    assert end is not None
    for op in block.ops:
        if op.regions or isinstance(op, tile.Writer | tile.AssertOp | tile.DebugPrintOp | tile.PrintRecordOp):
            return False
    known = known_where_false(block.ops, mask)
    pairs = zip(block.args[1:], end.operands, strict=True)
    return all(known.get(value, value) is argument for argument, value in pairs)


# Where a mask is false


@dataclass(frozen=True)
class Linear:
    """A sum of scalars, each times a whole number, and a number."""

    terms: tuple[tuple[SSAValue, int], ...] = ()
    number: int = 0

    def __add__(self, other: Linear) -> Linear:
        total = dict(self.terms)
        for scalar, factor in other.terms:
            total[scalar] = total.get(scalar, 0) + factor
        return Linear(tuple(term for term in total.items() if term[1]), self.number + other.number)

    def __mul__(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(tuple((scalar, factor * times) for scalar, times in self.terms), factor * self.number)

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def factor_of(self, scalar: SSAValue) -> int:
        return dict(self.terms).get(scalar, 0)

    def without(self, scalar: SSAValue) -> Linear:
        return Linear(tuple(term for term in self.terms if term[0] is not scalar), self.number)


@dataclass(frozen=True)
class Window:
    """The part of a tile that is looked at: along each axis, where it starts and how long it is."""

    start: tuple[Linear, ...]
    size: tuple[int, ...]

    @staticmethod
    def whole(shape: Sequence[int]) -> Window:
        return Window((Linear(),) * len(shape), tuple(shape))


Range = tuple[Linear, Linear]
"""The least and the greatest."""


def linear(value: SSAValue) -> Linear:
    """A scalar as a sum of scalars. Narrow ones are not taken apart: their sums may wrap."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return Linear(number=op.value.value.data)
    if dtype_of(value.type).bits < 64:
        return Linear(((value, 1),))
    if isinstance(op, arith.AddiOp):
        return linear(op.lhs) + linear(op.rhs)
    if isinstance(op, arith.SubiOp):
        return linear(op.lhs) - linear(op.rhs)
    if isinstance(op, arith.MuliOp):
        left, right = linear(op.lhs), linear(op.rhs)
        if not right.terms:
            return left * right.number
        if not left.terms:
            return right * left.number
    if isinstance(op, arith.IndexCastOp):
        return linear(op.input)
    return Linear(((value, 1),))


def positions(value: SSAValue) -> tuple[Linear, int, int] | None:
    """Whole numbers of a tile of two axes as a sum: scalars, and the row and the column so many times."""
    op = value.owner
    if not _is_signed(value) or tile_dtype(value).bits != 64:
        return None
    if isinstance(op, tile.IotaOp):
        rank, axis = len(tile_type(value).get_shape()), op.axis.value.data
        return (linear(op.base), int(axis == 0), int(axis == 1)) if rank == 2 else None
    if isinstance(op, tile.FullOp):
        return linear(op.value), 0, 0
    if isinstance(op, tile.BroadcastOp):
        found, shape = positions(op.operand), tile_type(op.operand).get_shape()
        if found is None or len(shape) != 2:
            return None
        # Along an axis that is repeated nothing counts up.
        return found[0], found[1] if shape[0] != 1 else 0, found[2] if shape[1] != 1 else 0
    if isinstance(op, tile.EwOp) and op.fn.data in ("add", "sub"):
        a, b = (positions(operand) for operand in op.operands_)
        if a is not None and b is not None:
            sign = 1 if op.fn.data == "add" else -1
            return a[0] + b[0] * sign, a[1] + sign * b[1], a[2] + sign * b[2]
    return None


def _is_signed(value: SSAValue) -> bool:
    return tile_dtype(value).kind is Kind.INT


def reach(value: SSAValue, window: Window) -> Range | None:
    """Between what numbers the whole numbers of a tile lie, within a window of it."""
    op = value.owner
    if not _is_signed(value):
        return None
    if isinstance(op, tile.IotaOp) and tile_dtype(value).bits >= 32:
        axis = op.axis.value.data
        least = linear(op.base) + window.start[axis]
        return least, least + Linear(number=window.size[axis] - 1)
    if isinstance(op, tile.FullOp):
        scalar = linear(op.value)
        return scalar, scalar
    if isinstance(op, tile.BroadcastOp | tile.ExpandOp):
        return reach(op.operand, _before(op, window))
    if isinstance(op, tile.EwOp) and op.fn.data in ("add", "sub") and tile_dtype(op.result).bits == 64:
        a, b = (reach(operand, window) for operand in op.operands_)
        if a is not None and b is not None:
            return (a[0] + b[0], a[1] + b[1]) if op.fn.data == "add" else (a[0] - b[1], a[1] - b[0])
    return None


def _shown(mask: SSAValue, window: Window) -> tuple[tile.EwOp, Window] | None:
    """The elementwise op whose result a mask repeats, and the part of that result which a window of the mask shows."""
    while isinstance(op := mask.owner, tile.BroadcastOp | tile.ExpandOp):
        mask, window = op.operand, _before(op, window)
    return (op, window) if isinstance(op, tile.EwOp) else None


def _before(op: tile.BroadcastOp | tile.ExpandOp, window: Window) -> Window:
    """The part of an operand that a window of the result shows."""
    if isinstance(op, tile.ExpandOp):
        axis = op.axis.value.data
        return Window(
            (*window.start[:axis], *window.start[axis + 1 :]), (*window.size[:axis], *window.size[axis + 1 :])
        )
    shape = tile_type(op.operand).get_shape()
    start = tuple(Linear() if size == 1 else at for size, at in zip(shape, window.start, strict=True))
    return Window(start, tuple(1 if size == 1 else long for size, long in zip(shape, window.size, strict=True)))


@dataclass(frozen=True)
class Edge:
    """A bound in a variable: every point from `at` on, divided by `factor` and rounded up."""

    at: Linear
    factor: int


def dead_from(mask: SSAValue, variable: SSAValue, window: Window) -> Sequence[Sequence[Edge]]:
    """The values of a variable from which on a mask is false all over a window: the least of the lists' greatest.

    An empty outer list says that nothing is known.
    """
    return _dead(mask, variable, window, -1)


def dead_before(mask: SSAValue, variable: SSAValue, window: Window) -> Sequence[Sequence[Edge]]:
    """Below what, in a variable, a mask is false all over a window: the greatest, over each inner list the least.

    The bound itself is not below: an edge (at, factor) says −at / factor, rounded down, plus 1.
    """
    return _dead(mask, variable, window, 1)


def _dead(mask: SSAValue, variable: SSAValue, window: Window, sign: int) -> Sequence[Sequence[Edge]]:
    """The edges where the room of comparisons, which is 0 or less there, grows (1) or falls (-1) with a variable."""
    if (shown := _shown(mask, window)) is None:
        return []
    op, window = shown
    if op.fn.data == "and":
        return [edges for operand in op.operands_ for edges in _dead(operand, variable, window, sign)]
    if op.fn.data == "or":
        return _both(*(_dead(operand, variable, window, sign) for operand in op.operands_))
    room = _room(op, window)
    if room is None or (factor := sign * room.factor_of(variable)) <= 0:
        return []
    return [[Edge(room.without(variable), factor)]]


def _both(first: Sequence[Sequence[T]], second: Sequence[Sequence[T]]) -> list[list[T]]:
    """Each of the first lists joined with each of the second."""
    return [[*a, *b] for a in first for b in second]


def true_if(mask: SSAValue, window: Window) -> Sequence[Sequence[Linear]]:
    """When a mask is true all over a window: if for any of the inner lists all sums are above 0.

    An empty outer list says that nothing is known.
    """
    if (shown := _shown(mask, window)) is None:
        return []
    op, window = shown
    if op.fn.data == "and":
        return _both(*(true_if(operand, window) for operand in op.operands_))
    if op.fn.data == "or":
        return [bounds for operand in op.operands_ for bounds in true_if(operand, window)]
    sides = _sides(op, window)
    if sides is None:
        return []
    large, small, least = sides
    return [[large[0] - small[1] + least]]


def _room(op: tile.EwOp, window: Window) -> Linear | None:
    """A sum that is 0 or less exactly if a comparison is false all over a window."""
    sides = _sides(op, window)
    if sides is None:
        return None
    large, small, least = sides
    return large[1] - small[0] + least


def _sides(op: tile.EwOp, window: Window) -> tuple[Range, Range, Linear] | None:
    """The sides of a comparison: the larger, the smaller, and 1 if they may be equal."""
    name = op.fn.data
    if name not in ("lt", "le", "gt", "ge"):
        return None
    a, b = (reach(operand, window) for operand in op.operands_)
    if a is None or b is None:
        return None
    if name in ("lt", "le"):
        a, b = b, a
    return a, b, Linear(number=1 if name in ("ge", "le") else 0)
