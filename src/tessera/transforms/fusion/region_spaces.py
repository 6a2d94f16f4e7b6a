"""The iteration space of a region: its variables, where its results lie in it, and what it reads where.

The results of a region are made from one space. Its variables are the axes of the largest result, cut finer where a
reshape inside asks for that, and the axes that reductions fold away, which are the same for all reductions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from tessera.errors import SourceSpan
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import known_sizes
from tessera.ir.graph.types import graph_type
from tessera.shapes.bounds import Interval, at_least
from tessera.shapes.expr import Size, dim, exact_quotient, size
from tessera.transforms.core.index_maps import (
    RULES,
    Coordinates,
    Index,
    Looked,
    SplitError,
    Var,
    pulled,
    pushed,
    substituted,
)

SOURCES = (graph.ConstantOp, graph.IotaOp)
FOLDS = (graph.ReduceOp,)
_SAME_AXES = "reduce the same axes in both, where that means the same"


class UnfitError(Exception):
    """These ops have no common iteration space; the message says why, at an op.

    `is_limit` says that there is one, which is not found.
    """

    def __init__(
        self, message: str, op: Operation | None = None, *, hint: str | None = None, is_limit: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.is_limit = is_limit
        self.span: SourceSpan | None = None if op is None else span_of(op.location)


@dataclass
class Space:
    """Variables of results, variables of reductions (some may be both), and the coordinates of each value in them."""

    kept: list[Var]
    rows: list[Var]
    coordinates: dict[SSAValue, Coordinates]
    reads: list[tuple[SSAValue, Coordinates]] = field(default_factory=list[tuple[SSAValue, Coordinates]])
    """The values read from outside, and at which coordinates."""

    @property
    def variables(self) -> list[Var]:
        """All variables, those of reductions last."""
        return [*(var for var in self.kept if var not in self.rows), *self.rows]


def space_of(ops: Collection[Operation], results: Sequence[SSAValue]) -> Space:
    """The space of a group of ops that gives these results; raises UnfitError where there is none."""
    if not results:
        raise UnfitError("a region without results has nothing to iterate over")
    anchor = max(results, key=lambda value: _breadth(graph_type(value).shape))
    kept = [Var(f"i{axis}", extent) for axis, extent in enumerate(graph_type(anchor).shape)]
    at: Coordinates = tuple(Index.of(0) if var.extent == 1 else Index.of(var) for var in kept)
    whole: set[Var] = set()
    for _ in range(16):
        search = _Search(ops, kept, whole)
        try:
            return search.run(anchor, at, results)
        except SplitError as asked:
            if asked.var not in kept or asked.var in search.rows:
                # What is folded stays one variable, so that rows can be held whole: its parts are computed.
                whole.add(asked.var)
                continue
            outer_extent = exact_quotient(dim(asked.var.extent), asked.inner)
            assert outer_extent is not None
            outer = Var(f"{asked.var.name}o", size(outer_extent))
            inner = Var(f"{asked.var.name}i", size(asked.inner))
            position = kept.index(asked.var)
            kept[position : position + 1] = [outer, inner]
            both = Index.of(outer).times(asked.inner) + Index.of(inner)
            at = tuple(substituted(index, asked.var, both) for index in at)
    raise UnfitError("reshapes cut the axes of these ops too often", hint="reshape once, in front", is_limit=True)


def _breadth(shape: Sequence[Size]) -> tuple[int, int, int]:
    """How many elements a shape has, as far as that can be compared."""
    large = [extent for extent in shape if extent != 1]
    known = 1
    for extent in large:
        known *= extent if isinstance(extent, int) else 64
    return known, len(large), len(shape)


class _Search:
    """One attempt to give every value coordinates; a variable that has to become two ends it."""

    def __init__(self, ops: Collection[Operation], kept: list[Var], whole: set[Var]) -> None:
        self.ops = ops if isinstance(ops, set | frozenset) else set(ops)
        self.kept = kept
        self.whole = whole
        self.rows: list[Var] = []
        self.has_rows = False
        self.coordinates: dict[SSAValue, Coordinates] = {}
        self.folds: dict[Operation, None] = {}
        self.space = Space(kept, self.rows, self.coordinates)
        self.looked_up = deque[tuple[SSAValue, Coordinates]]()
        self.seen: set[tuple[SSAValue, Coordinates]] = set()

    def splits(self, var: Var) -> bool:
        return var not in self.whole

    def run(self, anchor: SSAValue, at: Coordinates, results: Sequence[SSAValue]) -> Space:
        for op in self.ops:
            if type(op) not in RULES and not isinstance(op, SOURCES + FOLDS):
                raise UnfitError(f"{op.name} has no tile function yet", op, hint="use a @kernel", is_limit=True)
        self.assign(anchor, at)
        self.settle()
        for value in results:
            # What has nothing to do with the others, but is as large, goes along with them.
            if value not in self.coordinates and graph_type(value).shape == graph_type(anchor).shape:
                self.assign(value, at)
                self.settle()
        for value in results:
            if value not in self.coordinates:
                raise UnfitError(
                    "the results of a region come from one iteration space; this one does not", _owner(value)
                )
            if any(index.open for index in self.coordinates[value]):
                # It was reached through what is read of it, as a part of something longer.
                raise UnfitError("a result lies at places of which some are outside of it", _owner(value))
            if not self.is_covered(value):
                raise UnfitError(
                    "a region makes all of its results, and goes through a part of this one", _owner(value)
                )
            if self.may_be_left_out(value):
                raise UnfitError(
                    "a region makes all of its results, and this one would not be made where others have no elements",
                    _owner(value),
                )
        for value in results:
            self.visit(value, self.coordinates[value])
        return self.space

    def is_covered(self, value: SSAValue) -> bool:
        """Whether there are as many positions of a result's variables as it has elements."""
        used = {var for index in self.coordinates[value] for var in index.variables()}
        positions, elements = dim(1), dim(1)
        for var in used:
            positions *= var.extent
        for extent in graph_type(value).shape:
            elements *= extent
        return positions == elements

    def may_be_left_out(self, value: SSAValue) -> bool:
        """Whether program instances run along an axis that the result does not have and that may be empty."""
        used = {var for index in self.coordinates[value] for var in index.variables()}
        owner = _owner(value)
        known: Mapping[str, Interval] = {} if owner is None else known_sizes(owner)
        others = (var for var in self.kept if var not in used and var not in self.rows)
        return not all(at_least(var.extent, 1, known) for var in others)

    def settle(self) -> None:
        """Gives coordinates to all values that hang together with those that have them."""
        while True:
            # Reductions whose operands have coordinates say which variables are folded; others take the same ones.
            folds = sorted(self.folds, key=lambda op: op.operands[0] not in self.coordinates)
            if any(self.fold(op) for op in folds):
                continue
            if not self.looked_up:
                return
            # What is read at places that are looked up has its own coordinates, if any, by other ways.
            self.assign(*self.looked_up.popleft())

    def assign(self, value: SSAValue, at: Coordinates) -> None:
        """Gives coordinates to a value and to all that is reached from it without a reduction."""
        queue = deque([(value, at)])
        while queue:
            current, where = queue.popleft()
            if current in self.coordinates:
                continue
            self.coordinates[current] = where
            owner = _owner(current)
            if owner is not None and owner in self.ops:
                if isinstance(owner, FOLDS):
                    self.folds[owner] = None
                elif type(owner) in RULES:
                    for number, operand in enumerate(owner.operands):
                        there = pulled(owner, number, where, splits=self.splits)
                        (self.looked_up if _is_looked_up(there) else queue).append((operand, there))
            if _is_looked_up(where):
                continue  # what else is made of it is not made there
            for use in current.uses:
                user = use.operation
                if user not in self.ops:
                    continue
                if isinstance(user, FOLDS):
                    self.folds[user] = None
                elif (pushed_to := pushed(user, where, splits=self.splits)) is not None:
                    queue.append((user.results[0], pushed_to))

    def fold(self, op: Operation) -> bool:
        """Gives coordinates to what a reduction reads or gives; False where nothing is new."""
        assert isinstance(op, graph.ReduceOp)
        axes = set(op.axes.iter_values())
        extents = folded_extents(op)
        if op.operand in self.coordinates:
            if op.result in self.coordinates and (self.has_rows or not extents):
                return False
            at, shape = self.coordinates[op.operand], graph_type(op.operand).shape
            variables = [var for axis in sorted(axes) if (var := _whole_axis(at[axis], shape[axis])) is not None]
            if len(variables) != len(extents):
                return self.fold_apart(op)
            if extents:
                self.take_rows(variables, op)
            if op.result in self.coordinates:
                return False
            keeps = op.keepdims is not None
            kept = [
                Index.of(0) if axis in axes else index for axis, index in enumerate(at) if keeps or axis not in axes
            ]
            self.assign(op.result, tuple(kept))
            return True
        if op.result not in self.coordinates:
            return False
        if extents and not self.has_rows:
            self.take_rows(self.variables_for(extents, self.coordinates[op.result]), op)
        self.assign(op.operand, operand_of(op, self.coordinates[op.result], self.rows))
        return True

    def fold_apart(self, op: graph.ReduceOp) -> bool:
        """A reduction of what is also read at single places: it goes through rows of its own, where its result is."""
        if op.result not in self.coordinates or self.has_rows:
            return False
        self.take_rows(self.variables_for(folded_extents(op), self.coordinates[op.result]), op)
        return True

    def variables_for(self, extents: Sequence[Size], at: Coordinates) -> list[Var]:
        """Variables to fold: those of results that go along such axes, where the result does not depend on them."""
        used = {var for index in at for var in index.variables()}
        free, found = [var for var in self.kept if var not in used], list[Var]()
        for extent in extents:
            var = next((var for var in free if var.extent == extent and var not in found), None)
            if var is not None:
                found.append(var)
        if len(found) == len(extents):
            return found
        return [Var(f"r{axis}", extent) for axis, extent in enumerate(extents)]

    def take_rows(self, variables: list[Var], op: Operation) -> None:
        if not self.has_rows:
            self.rows += variables
            self.has_rows = True
        elif self.rows != variables:
            raise UnfitError("the reductions of a region fold the same axes", op, hint=_SAME_AXES)

    def visit(self, value: SSAValue, at: Coordinates) -> None:
        """Goes through everything that is computed for a value, as the writer of the tile function will."""
        if (value, at) in self.seen:
            return
        self.seen.add((value, at))
        owner = _owner(value)
        if owner not in self.ops:
            self.space.reads.append((value, at))
            for index in at:
                for atom, _ in index.terms:
                    if isinstance(atom, Looked):
                        self.visit(atom.value, atom.at)
            return
        assert owner is not None
        if isinstance(owner, graph.ReduceOp):
            if folded_extents(owner):
                if self.coordinates.get(value) != at:
                    raise UnfitError("the result of a reduction is used at other places of the iteration space", owner)
                if any(var in self.rows for index in at for var in index.variables()):
                    raise UnfitError("a reduction is folded along its own result", owner)
            self.visit(owner.operand, operand_of(owner, at, self.rows))
        elif type(owner) in RULES:
            for number, operand in enumerate(owner.operands):
                self.visit(operand, pulled(owner, number, at, splits=self.splits))


def folded_extents(op: graph.ReduceOp) -> list[Size]:
    """How long the axes are that a reduction folds, without those of one element: where none is left, it only moves."""
    shape = graph_type(op.operand).shape
    return [shape[axis] for axis in sorted(op.axes.iter_values()) if shape[axis] != 1]


def operand_of(op: graph.ReduceOp, at: Coordinates, rows: Sequence[Var]) -> Coordinates:
    """The coordinates that a reduction reads for given ones of its result: all of `rows`, unless it folds nothing."""
    extents = folded_extents(op)
    if extents and [var.extent for var in rows] != extents:
        raise UnfitError("the reductions of a region fold the same axes", op, hint=_SAME_AXES)
    axes, shape = set(op.axes.iter_values()), graph_type(op.operand).shape
    along, kept = iter(rows), iter(at)
    found: list[Index] = []
    for axis, extent in enumerate(shape):
        index = next(kept) if axis not in axes or op.keepdims is not None else Index.of(0)
        if axis in axes:
            index = Index.of(0) if extent == 1 else Index.of(next(along))
        found.append(index)
    return tuple(found)


def _whole_axis(index: Index, extent: Size) -> Var | None:
    """The variable that goes along all of an axis, and no further: not one of something longer that it is a part of."""
    var = index.lone
    return var if var is not None and not index.open and extent != 1 and var.extent == extent else None


def _is_looked_up(at: Coordinates) -> bool:
    return any(isinstance(atom, Looked) for index in at for atom, _ in index.terms)


def _owner(value: SSAValue) -> Operation | None:
    return value.owner if isinstance(value.owner, Operation) else None
