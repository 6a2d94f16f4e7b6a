"""Positions in a value as digits of the coordinates of an iteration space: how index maps are followed.

A region's kernel goes through a space of axes. At each point of it, every value of the region is asked for one element;
along each axis of the value its position is a sum of digits of coordinates times factors, plus a number. A digit is
`coordinate // divisor % size`: the whole coordinate, or what a reshape made of it. Splitting heads off a row, repeating
keys for groups of heads, transposing: all of it only changes which digits stand where.

`pull` goes from the result of an op to its operand, `push` the other way for the ops that keep all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from xdsl.ir import Operation

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Shape, Size, dim, exact_quotient, size

FIXED = -1
"""The axis of digits that do not follow the iteration: their `divisor` is the number that they always are."""


@dataclass(frozen=True, slots=True)
class Digit:
    """`coordinate // divisor % size` of one axis of the iteration space."""

    axis: int
    size: Size
    divisor: Size = 1


@dataclass(frozen=True, slots=True)
class Index:
    """A position along one axis: digits times factors, the most significant first, plus a number."""

    terms: tuple[tuple[Digit, Size], ...] = ()
    constant: Size = 0

    @property
    def axes(self) -> frozenset[int]:
        return frozenset(digit.axis for digit, _ in self.terms)

    def scaled(self, factor: int, offset: int) -> Index:
        terms = tuple((digit, size(dim(by) * factor)) for digit, by in self.terms)
        return Index(terms, size(dim(self.constant) * factor + offset))


Map = tuple[Index, ...]
"""A position in a value, axis by axis."""

NOWHERE = Index()
"""The only position along an axis of size 1."""


def whole(axis: int, extent: Size) -> Index:
    """The coordinate itself, as a position along an axis of that size."""
    return Index(((Digit(axis, extent), 1),))


def plain(where: Map) -> Map:
    """A position without digits that are always 0: what two spellings of it have in common."""
    return tuple(replace(index, terms=tuple(one for one in index.terms if one[0].size != 1)) for index in where)


def index_of(digits: Sequence[Digit]) -> Index:
    """Digits as one number, neighbours of one coordinate joined."""
    joined: list[Digit] = []
    for digit in digits:
        last = joined[-1] if joined else None
        follows = last is not None and last.axis == digit.axis != FIXED
        if follows and last is not None and last.divisor == size(dim(digit.divisor) * digit.size):
            joined[-1] = Digit(digit.axis, size(dim(last.size) * digit.size), digit.divisor)
        else:
            joined.append(digit)
    terms: list[tuple[Digit, Size]] = []
    factor, constant = dim(1), dim(0)
    for digit in reversed(joined):
        if digit.axis == FIXED:
            constant += factor * digit.divisor
        else:
            terms.append((digit, size(factor)))
        factor *= digit.size
    return Index(tuple(reversed(terms)), size(constant))


def _digits(index: Index, extent: Size) -> list[Digit] | None:
    """The digits of a position below `extent`, those that are always the same among them; None for others."""
    if not index.terms and extent != 1:
        return [Digit(FIXED, extent, index.constant)]
    found = [digit for digit, _ in index.terms]
    total: Size = 1
    for digit in found:
        total = size(dim(total) * digit.size)
    if total == extent and index_of(found) == index:
        return found
    return _with_fixed(index, extent)


def _with_fixed(index: Index, extent: Size) -> list[Digit] | None:
    """The same where some digits between others, or beside them, do not follow the iteration."""
    if not isinstance(index.constant, int):
        return None
    found: list[Digit] = []
    factor: Size = 1
    for digit, by in (*reversed(index.terms), (None, extent)):
        gap = exact_quotient(by, factor)
        if gap is None or not isinstance(count := size(gap), int):
            return None
        if count != 1:
            if not isinstance(factor, int):
                return None
            found.insert(0, Digit(FIXED, count, index.constant // factor % count))
            factor = size(dim(factor) * count)
        if digit is not None:
            found.insert(0, digit)
            factor = size(dim(factor) * digit.size)
    return found if index_of(found) == index else None


def _split(digit: Digit, outer: Size, inner: Size) -> tuple[Digit, Digit] | None:
    """A digit as two, the more significant one first."""
    if digit.axis != FIXED:
        divisor = size(dim(inner) * digit.divisor)
        return Digit(digit.axis, outer, divisor), Digit(digit.axis, inner, digit.divisor)
    if not isinstance(inner, int) or not isinstance(digit.divisor, int):
        return None
    return Digit(FIXED, outer, digit.divisor // inner), Digit(FIXED, inner, digit.divisor % inner)


def regroup(where: Map, shape: Sequence[Size], target: Sequence[Size]) -> Map | None:
    """The same elements, row by row, under other sizes; None where digits do not come apart so."""
    queue: list[Digit] = []
    for index, extent in zip(where, shape, strict=True):
        found = _digits(index, extent)
        if found is None:
            return None
        queue += [digit for digit in found if digit.size != 1]
    result: list[Index] = []
    for extent in target:
        taken: list[Digit] = []
        rest: Size = extent
        while rest != 1:
            if not queue:
                return None
            digit = queue.pop(0)
            if (quotient := exact_quotient(rest, digit.size)) is not None:
                taken.append(digit)
                rest = size(quotient)
            elif (inner := exact_quotient(digit.size, rest)) is not None:
                parts = _split(digit, rest, size(inner))
                if parts is None:
                    return None
                taken.append(parts[0])
                queue.insert(0, parts[1])
                rest = 1
            else:
                return None
        result.append(index_of(taken))
    return None if queue else tuple(result)


def _shapes(op: Any) -> tuple[Shape, Shape]:
    return graph_type(op.operand).shape, graph_type(op.result).shape


def _pull_reshape(op: graph.ReshapeOp, where: Map) -> Map | None:
    before, after = _shapes(op)
    return regroup(where, after, before)


def _push_reshape(op: graph.ReshapeOp, where: Map) -> Map | None:
    before, after = _shapes(op)
    return regroup(where, before, after)


def _pull_transpose(op: graph.TransposeOp, where: Map) -> Map | None:
    permutation = list(op.permutation.iter_values())
    return tuple(where[permutation.index(axis)] for axis in range(len(where)))


def _push_transpose(op: graph.TransposeOp, where: Map) -> Map | None:
    return tuple(where[axis] for axis in op.permutation.iter_values())


def _pull_broadcast(op: graph.BroadcastOp, where: Map) -> Map | None:
    before, after = _shapes(op)
    kept = where[len(after) - len(before) :]
    sizes = zip(before, after[len(after) - len(before) :], kept, strict=True)
    return tuple(NOWHERE if extent == 1 != wide else index for extent, wide, index in sizes)


def _pull_slice(op: graph.SliceOp, where: Map) -> Map | None:
    starts, steps = list(op.starts.iter_values()), list(op.steps.iter_values())
    before, _ = _shapes(op)
    found: list[Index] = []
    for index, extent, start, step in zip(where, before, starts, steps, strict=True):
        first = slice(start, None, step).indices(extent)[0] if isinstance(extent, int) else start
        if step < 0 or first < 0:
            return None
        found.append(index.scaled(step, first))
    return tuple(found)


Rule = Callable[[Any, Map], Map | None]
PULL: Mapping[type[Operation], Rule] = MappingProxyType(
    {
        graph.ReshapeOp: _pull_reshape,
        graph.TransposeOp: _pull_transpose,
        graph.BroadcastOp: _pull_broadcast,
        graph.SliceOp: _pull_slice,
    }
)
"""From the position in an op's result to that in its operand."""
PUSH: Mapping[type[Operation], Rule] = MappingProxyType(
    {graph.ReshapeOp: _push_reshape, graph.TransposeOp: _push_transpose}
)
"""From the position in an op's operand to that in its result, for ops that keep every element once."""


def pull(op: Operation, where: Map) -> Map | None:
    """The position in the operand of an index map; None where it is none, or has no such form."""
    rule = PULL.get(type(op))
    return None if rule is None else rule(op, where)


def push(op: Operation, where: Map) -> Map | None:
    """The position in the result of an index map that keeps every element."""
    rule = PUSH.get(type(op))
    return None if rule is None else rule(op, where)
