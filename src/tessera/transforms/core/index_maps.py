"""Index maps: where in a value the elements lie that a position of an iteration space needs.

An iteration space has variables, each from 0 up to its extent. An index is a sum of atoms times sizes. Atoms are the
variables, quotients and remainders of indices (reshapes that do not come out even), and numbers that are looked up
(gathers, starts of dynamic slices). Maps are pulled back through ops, from the coordinates of a result to those of an
operand; the table at the end has a rule for every op that only moves elements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from xdsl.ir import Operation, SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Dim, DimLike, Size, constant_part, dim, exact_quotient, size


class Var:
    """A variable of an iteration space; each is itself alone."""

    __slots__ = ("extent", "name")

    def __init__(self, name: str, extent: Size) -> None:
        self.name = name
        self.extent = extent

    def __repr__(self) -> str:
        return f"{self.name}<{self.extent}>"


@dataclass(frozen=True)
class Part:
    """The quotient of an index by a size, or what remains."""

    of: Index
    by: Dim
    rest: bool


@dataclass(frozen=True)
class Looked:
    """The number at some coordinates of a value, brought into [0, limit) where a limit is given."""

    value: SSAValue
    at: tuple[Index, ...]
    limit: Dim | None = None

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.at))}]"


Atom = Var | Part | Looked


@dataclass(frozen=True)
class Index:
    """A sum of atoms times sizes and a size. One that is `open` may lie outside of what it counts."""

    terms: frozenset[tuple[Atom, Dim]]
    constant: Dim
    open: bool = False

    def __repr__(self) -> str:
        # Sorted: what is written in this order must not change from process to process.
        return " + ".join([*sorted(f"{factor}*{atom!r}" for atom, factor in self.terms), str(self.constant)])

    @staticmethod
    def of(value: Atom | DimLike) -> Index:
        if isinstance(value, Var | Part | Looked):
            return Index(frozenset({(value, dim(1))}), dim(0))
        return Index(frozenset(), dim(value))

    def __add__(self, other: Index) -> Index:
        total = dict(self.terms)
        for atom, factor in other.terms:
            total[atom] = total[atom] + factor if atom in total else factor
        kept = frozenset((atom, factor) for atom, factor in total.items() if factor.terms)
        return Index(kept, self.constant + other.constant, self.open or other.open)

    def times(self, factor: DimLike) -> Index:
        by = dim(factor)
        if not by.terms:
            return Index(frozenset(), dim(0), self.open)
        return Index(frozenset((atom, old * by) for atom, old in self.terms), self.constant * by, self.open)

    def plus(self, number: DimLike) -> Index:
        return Index(self.terms, self.constant + dim(number), self.open)

    def opened(self) -> Index:
        return Index(self.terms, self.constant, open=True)

    @property
    def lone(self) -> Var | None:
        """The variable that this is, if it is one."""
        if len(self.terms) != 1 or self.constant.terms:
            return None
        ((atom, factor),) = self.terms
        return atom if isinstance(atom, Var) and factor == dim(1) else None

    def factor(self, var: Var) -> Dim:
        """The factor of a variable."""
        return next((factor for atom, factor in self.terms if atom is var), dim(0))

    def variables(self) -> Iterator[Var]:
        """All variables that this depends on, in atoms too."""
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                yield atom
            elif isinstance(atom, Part):
                yield from atom.of.variables()
            else:
                for at in atom.at:
                    yield from at.variables()

    def is_affine_in(self, variables: Sequence[Var]) -> bool:
        """Whether those variables stand in no quotient, remainder or look-up."""
        return not any(
            not isinstance(atom, Var) and any(var in variables for var in Index.of(atom).variables())
            for atom, _ in self.terms
        )


Coordinates = tuple[Index, ...]


class SplitError(Exception):
    """A variable would have to be two, the second with this extent, for an index to be plain."""

    def __init__(self, var: Var, inner: Dim) -> None:
        super().__init__(str(var))
        self.var = var
        self.inner = inner


Splits = Callable[[Var], bool]
"""Says whether a variable may be split into two."""


def never(var: Var) -> bool:
    return False


def is_nonnegative(value: Dim) -> bool:
    """Whether a size is surely not negative: no term is, and symbols are not."""
    return all(coefficient >= 0 for _, coefficient in value.terms)


def divided(index: Index, by: DimLike, splits: Splits) -> tuple[Index, Index]:
    """The quotient and the rest of an index by a size; both plain where that is certain."""
    n = dim(by)
    if not n.terms:
        # There are no elements along such an axis.
        return Index.of(0), Index.of(0)
    if n == dim(1):
        return index, Index.of(0)
    outer = inner = Index(frozenset(), dim(0), index.open)
    for atom, factor in index.terms:
        whole = exact_quotient(factor, n)
        if whole is not None:
            outer += Index.of(atom).times(whole)
        else:
            inner += Index.of(atom).times(factor)
    whole = exact_quotient(index.constant, n)
    number, divisor = index.constant.constant, n.constant
    if whole is not None:
        outer = outer.plus(whole)
    elif number is not None and divisor is not None:
        outer, inner = outer.plus(number // divisor), inner.plus(number % divisor)
    else:
        inner = inner.plus(index.constant)
    if not inner.terms and not inner.constant.terms:
        return outer, inner
    if not index.open and _is_below(inner, n):
        return outer, inner
    var = inner.lone
    if var is not None and splits(var) and exact_quotient(dim(var.extent), n) is not None:
        raise SplitError(var, n)
    quotient, rest = (Index.of(Part(inner, n, rest=rest)) for rest in (False, True))
    if index.open:
        quotient, rest = quotient.opened(), rest.opened()
    return outer + quotient, rest


def _is_below(index: Index, limit: Dim) -> bool:
    """Whether an index surely lies in [0, limit)."""
    most = index.constant
    for atom, factor in index.terms:
        if not isinstance(atom, Var) or not is_nonnegative(factor):
            return False
        most += factor * (dim(atom.extent) - 1)
    return is_nonnegative(index.constant) and is_nonnegative(limit - 1 - most)


def substituted(index: Index, old: Var, new: Index) -> Index:
    """An index with a variable replaced."""
    found = Index(frozenset(), index.constant, index.open)
    for atom, factor in index.terms:
        if atom is old:
            found += new.times(factor)
        elif isinstance(atom, Part):
            found += Index.of(Part(substituted(atom.of, old, new), atom.by, atom.rest)).times(factor)
        elif isinstance(atom, Looked):
            at = tuple(substituted(each, old, new) for each in atom.at)
            found += Index.of(Looked(atom.value, at, atom.limit)).times(factor)
        else:
            found += Index.of(atom).times(factor)
    return found


def reshaped(given: Coordinates, source: Sequence[Size], target: Sequence[Size], *, splits: Splits) -> Coordinates:
    """Coordinates of an array of sizes `target` that hold the elements of `given` ones of `source`."""
    found: list[Index] = []
    for first, second in _groups(source, target):
        coordinates = given[first.start : first.stop]
        if tuple(source[first.start : first.stop]) == tuple(target[second.start : second.stop]):
            found += coordinates
            continue
        flat = Index.of(0)
        for index, extent in zip(coordinates, source[first.start : first.stop], strict=True):
            flat = flat.times(extent) + index
        rest: list[Index] = []
        # The outermost digit takes what is left: it needs no remainder.
        inner = target[second.start : second.stop]
        for extent in reversed(inner[1:]):
            flat, digit = divided(flat, extent, splits)
            rest.append(digit)
        found += [flat, *reversed(rest)] if inner else []
    return tuple(found)


def _groups(source: Sequence[Size], target: Sequence[Size]) -> Iterator[tuple[range, range]]:
    """The shortest runs of axes of both that hold equally many elements."""
    first = second = 0
    while first < len(source) or second < len(target):
        starts = first, second
        left, right = dim(1), dim(1)
        if first < len(source):
            left, first = left * source[first], first + 1
        if second < len(target):
            right, second = right * target[second], second + 1
        while left != right:
            # The side that surely is the smaller one takes the next axis; where that is not known, the shorter.
            more = exact_quotient(left, right) is not None or is_nonnegative(left - right)
            if (more or first == len(source)) and second < len(target):
                right, second = right * target[second], second + 1
            elif first < len(source):
                left, first = left * source[first], first + 1
            else:
                break
        yield range(starts[0], first), range(starts[1], second)


def solution(name: str, sizes: Collection[Dim]) -> tuple[Dim, int, int] | None:
    """A size that tells a symbol, what it is multiplied with there, and what is added."""
    for known in sorted(sizes, key=lambda known: (len(known.terms), str(known))):
        if known.is_affine and known.symbols == frozenset((name,)):
            return known, next(factor for monomial, factor in known.terms if monomial), constant_part(known)
    return None


def is_told(extent: Size, sizes: Collection[Dim]) -> bool:
    """Whether sizes of arguments say what another one is: by its symbols, or as a multiple."""
    asked = dim(extent)
    if all(solution(name, sizes) is not None for name in asked.symbols):
        return True
    factors = [exact_quotient(asked, known) for known in sizes]
    return any(factor is not None and factor.constant is not None for factor in factors)


def slice_start(start: int, step: int, extent: Size) -> Dim:
    """Where a slice begins, as Python reads its start."""
    if isinstance(extent, int):
        return dim(slice(start, None, step).indices(extent)[0])
    if step < 0 and start >= 2**62:
        return extent - 1
    return extent + start if start < 0 else dim(start)


# The table: the coordinates of an operand, from those of the result.

Rule = Callable[[Any, int, Coordinates, Splits], Coordinates]


def _same(op: Operation, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    return given


def _broadcast(op: graph.BroadcastOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    source, target = graph_type(op.operand).shape, graph_type(op.result).shape
    lead = len(target) - len(source)
    return tuple(
        given[lead + axis] if extent == target[lead + axis] else Index.of(0) for axis, extent in enumerate(source)
    )


def _reshape(op: graph.ReshapeOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    return reshaped(given, graph_type(op.result).shape, graph_type(op.operand).shape, splits=splits)


def _transpose(op: graph.TransposeOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    found = [Index.of(0)] * len(given)
    for index, axis in zip(given, op.permutation.iter_values(), strict=True):
        found[axis] = index
    return tuple(found)


def _slice(op: graph.SliceOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    shape = graph_type(op.operand).shape
    bounds = zip(given, shape, op.starts.iter_values(), op.steps.iter_values(), strict=True)
    return tuple(index.times(step).plus(slice_start(start, step, extent)) for index, extent, start, step in bounds)


def _concatenate(op: graph.ConcatenateOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    axis = op.axis.value.data
    before = concatenated_before(op, number)
    return (*given[:axis], given[axis].plus(-dim(before)).opened(), *given[axis + 1 :])


def concatenated_before(op: graph.ConcatenateOp, number: int) -> Size:
    """Where along the axis an operand begins."""
    axis, total = op.axis.value.data, dim(0)
    for operand in list(op.operands_)[:number]:
        total += graph_type(operand).shape[axis]
    return size(total)


def _gather(op: graph.GatherOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    axes, count = list(op.axes.iter_values()), len(graph_type(op.indices[0]).shape)
    where = given[axes[0] : axes[0] + count]
    if number:
        return where
    found = dict(zip(axes, op.indices, strict=True))
    kept = iter((*given[: axes[0]], *given[axes[0] + count :]))
    shape = graph_type(op.operand).shape
    return tuple(
        looked_up(found[axis], where, extent) if axis in found else next(kept) for axis, extent in enumerate(shape)
    )


def looked_up(value: SSAValue, at: Coordinates, extent: Size) -> Index:
    """The index that is at some coordinates of a value, along an axis that is so long; one of what counts is known."""
    if isinstance(value.owner, graph.IotaOp):
        axis = value.owner.axis.value.data
        return at[axis] if graph_type(value).shape[axis] == extent else at[axis].opened()
    # An index may be outside of the operand: it reads as 0 then.
    return Index.of(Looked(value, at)).opened()


def _start(op: Operation, start: SSAValue, whole: Size, part: Size) -> Index:
    """A start that is looked up, and moved so that all of a part is inside."""
    return Index.of(Looked(start, (), dim(whole) - dim(part) + 1))


def _dynamic_slice(op: graph_indexing.DynamicSliceOp, number: int, given: Coordinates, splits: Splits) -> Coordinates:
    if number:
        return ()
    sizes = zip(given, op.starts, graph_type(op.operand).shape, graph_type(op.result).shape, strict=True)
    return tuple(
        index if whole == part else index + _start(op, start, whole, part) for index, start, whole, part in sizes
    )


def _dynamic_update(
    op: graph_indexing.DynamicUpdateSliceOp, number: int, given: Coordinates, splits: Splits
) -> Coordinates:
    if number != 1:
        return () if number else given
    return tuple(
        index if start is None else (index + start.times(-1)).opened()
        for index, start in zip(given, update_starts(op), strict=True)
    )


def update_starts(op: graph_indexing.DynamicUpdateSliceOp) -> list[Index | None]:
    """Where an update begins along each axis; None where it has all of the axis."""
    sizes = zip(op.starts, graph_type(op.operand).shape, graph_type(op.update).shape, strict=True)
    return [None if whole == part else _start(op, start, whole, part) for start, whole, part in sizes]


RULES: Mapping[type[Operation], Rule] = MappingProxyType(
    {
        graph.EwOp: _same,
        graph.BroadcastOp: _broadcast,
        graph.ReshapeOp: _reshape,
        graph.TransposeOp: _transpose,
        graph.SliceOp: _slice,
        graph.ConcatenateOp: _concatenate,
        graph.GatherOp: _gather,
        graph_indexing.DynamicSliceOp: _dynamic_slice,
        graph_indexing.DynamicUpdateSliceOp: _dynamic_update,
    }
)


def pulled(op: Operation, number: int, given: Coordinates, *, splits: Splits = never) -> Coordinates:
    """The coordinates of an operand that an op reads for given ones of its result."""
    return RULES[type(op)](op, number, given, splits)


def pushed(op: Operation, given: Coordinates, *, splits: Splits = never) -> Coordinates | None:
    """The coordinates in an op's result of the elements at given coordinates of its operand, if each is there once."""
    match op:
        case graph.EwOp():
            return given
        case graph.TransposeOp():
            return tuple(given[axis] for axis in op.permutation.iter_values())
        case graph.ReshapeOp():
            return reshaped(given, graph_type(op.operand).shape, graph_type(op.result).shape, splits=splits)
        case graph.BroadcastOp() if graph_type(op.operand).shape == graph_type(op.result).shape:
            return given
        case _:
            return None
