"""Which tile ops share a loop nest: an analysis of straight runs of tile ops, before anything is lowered.

A nest runs over rows. For each row it takes *phases*, each of which runs over columns; values of one row (maxima,
sums) are worked on between phases. An op joins a nest, the last as a rule, if for each row it needs nothing but that
row of what the nest computes. Within the nest it joins the first phase that has its columns and before which all it
needs is there.

Ops that cost next to nothing (constants, positions, loads, shapes, and cheap work on those) are *free*: they belong to
no nest and are done again wherever they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.common import elementwise
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type

STRUCTURE = (tile.ExpandOp, tile.BroadcastOp, tile.TransOp)
SOURCES = (tile.FullOp, tile.IotaOp)
ELSEWHERE = (tile.TakeOp, tile.UnpackOp, tile.PackOp)
"""Ops whose elements come from other places of their first operand, which is in memory therefore."""
Borrows: TypeAlias = Callable[[tile.LoadOp, tile.DotOp, int, bool], bool]
"""Whether a dot can use its operand of this index where it lies; the flag says that the dot is one of `matrix`."""
_CHEAP = 3
"""Elementwise steps that are sooner done twice than kept."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tile_type(value).get_shape()


def domain(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a tile; one axis is one row."""
    match tuple(shape):
        case ():
            return 1, 1
        case (cols,):
            return 1, cols
        case (rows, cols):
            return rows, cols
        case _:
            raise AssertionError(f"tiles on CPUs have at most two axes, not {list(shape)}")


@dataclass
class Phase:
    """One run over columns; at most one dot, which comes first."""

    cols: int
    ops: list[Operation] = field(default_factory=list[Operation])
    dot: tile.DotOp | None = None


@dataclass
class Nest:
    """`between[p]` is the work on values of one row before phase `p`; the last entry is that behind all phases."""

    rows: int
    phases: list[Phase] = field(default_factory=list[Phase])
    between: list[list[Operation]] = field(default_factory=lambda: [[]])
    phase_of: dict[SSAValue, tuple[int, bool]] = field(default_factory=dict[SSAValue, tuple[int, bool]])
    """For each value made here: its phase (or the entry of `between`), and whether it is a value of one row."""
    folds: tile.ReduceOp | None = None
    """A nest of its own kind: folds the rows of a tile into one."""
    matrix: bool = False
    """A nest of its own kind: one dot, by the matrix unit."""

    @property
    def ops(self) -> Iterator[Operation]:
        for number, ops in enumerate(self.between):
            yield from ops
            if number < len(self.phases):
                yield from self.phases[number].ops

    def is_row_value(self, shape: Sequence[int]) -> bool:
        """Whether a tile has one element for each row of this nest."""
        if self.rows == 1:
            return all(size == 1 for size in shape)
        return tuple(shape) in ((self.rows,), (self.rows, 1))


class Analysis:
    """The ops of a function that cost nothing to repeat, and the nests that the other tile ops form."""

    def __init__(
        self,
        function: tile.FuncOp,
        *,
        fuse: bool = True,
        matrix: Callable[[tile.DotOp], bool] = lambda _: False,
        borrows: Borrows | None = None,
    ) -> None:
        self._fuse = fuse
        self.stored = tile.written_memory(function)
        """The arguments that are written."""
        self._pinned: set[SSAValue] = set()
        self._weight: dict[SSAValue, int | None] = {}
        self.packs: dict[tile.DotOp, tuple[tile.LoadOp, bool]] = {}
        """Dots whose right operand comes straight from memory that is not written, and whether transposed."""
        dots = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
        for op in dots:
            found = _packed_load(op.b)
            if found is not None and tile.memory_of(found[0].view) not in self.stored:
                self.packs[op] = found
        self.matrix = frozenset(op for op in self.packs if matrix(op))
        """Dots that the matrix unit does."""
        left = {op for op in dots if borrows is not None and self._lies(op, 0, borrows)}
        right = {op for op in dots if borrows is not None and self._lies(op, 1, borrows)}
        for op in dots:
            if op not in left:
                self._pinned.add(op.a)
            if op not in right and op not in self.packs:
                self._pinned.add(op.b)
        self._pinned |= {op.operand for op in function.body.walk() if isinstance(op, ELSEWHERE)}
        wanted = {op.a for op in left} | {op.b for op in right}
        self.borrowed = frozenset(wanted - self._pinned)
        """Operands of dots that are used where they lie, in memory that is not written."""
        for op in right:
            if op.b in self.borrowed:
                self.packs.pop(op, None)

    def _lies(self, op: tile.DotOp, index: int, borrows: Borrows) -> bool:
        load = op.operands[index].owner
        if not isinstance(load, tile.LoadOp) or tile.memory_of(load.view) in self.stored:
            return False
        return borrows(load, op, index, op in self.matrix)

    def is_free(self, value: SSAValue) -> bool:
        return self._cost(value) is not None

    def _cost(self, value: SSAValue) -> int | None:
        """Steps to make a free value again; None for others."""
        if value not in self._weight:
            self._weight[value] = self._find_cost(value)
        return self._weight[value]

    def _find_cost(self, value: SSAValue) -> int | None:
        op = value.owner
        if isinstance(op, Block) or value in self._pinned:
            return None
        if isinstance(op, SOURCES):
            return 0
        if isinstance(op, tile.LoadOp):
            return None if tile.memory_of(op.view) in self.stored else 0
        if isinstance(op, STRUCTURE):
            # A shape of something that is not free is looked through, not done again.
            below = self._cost(op.operand)
            return 0 if below is None else below
        if isinstance(op, tile.EwOp):
            costs = [self._cost(operand) for operand in op.operands_]
            row = elementwise.TABLE[op.fn.data].cost
            if any(self._leaf(operand) for operand in op.operands_) or row.special or row.divide:
                return None
            total = sum(cost for cost in costs if cost is not None) + row.simple + row.convert
            return total if total <= _CHEAP else None
        return None

    def _leaf(self, value: SSAValue) -> bool:
        """Whether a value rests on one that is not free."""
        return any(True for _ in self.leaves(value, 1))

    def leaves(self, value: SSAValue, rows: int, near: bool = True) -> Iterator[tuple[SSAValue, bool]]:
        """The values that are not free and on which one rests; with each, whether row r needs just row r of it."""
        if not self.is_free(value):
            yield value, near
            return
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, STRUCTURE):
            yield from self.leaves(op.operand, rows, near and _keeps_rows(op, rows))
        elif isinstance(op, tile.EwOp):
            for operand in op.operands_:
                yield from self.leaves(operand, rows, near)

    def nests(self, run: Iterable[Operation]) -> list[Nest]:
        """The nests of a run of tile ops, in the order to do them."""
        found: list[Nest] = []
        deferred = self._deferred(list(run))
        waiting: dict[SSAValue, Operation] = {}
        for op in run:
            if op.results and self.is_free(op.results[0]):
                continue
            if op in deferred:
                waiting[op.results[0]] = op
                continue
            if isinstance(op, tile.DotOp):
                for early in self._collect(op.c, waiting):
                    self._assign(found, early, like=op)
            self._assign(found, op)
        return found

    def _deferred(self, run: Sequence[Operation]) -> set[Operation]:
        """Work that only prepares the accumulator of a dot: it is done with the dot."""
        found: set[Operation] = set()
        for op in reversed(run):
            if not isinstance(op, tile.EwOp) or self.is_free(op.result):
                continue
            users = list(_users(op.result, self))
            if len(users) != 1 or users[0] not in run:
                continue
            (user,) = users
            prepares = isinstance(user, tile.DotOp) and user not in self.matrix and _rests_on(user.c, op.result)
            if user in found or prepares:
                found.add(op)
        return found

    def _collect(self, value: SSAValue, waiting: dict[SSAValue, Operation]) -> list[Operation]:
        """Deferred ops that a value rests on, in order."""
        found: list[Operation] = []
        for leaf, _ in self.leaves(value, 1):
            op = waiting.pop(leaf, None)
            if op is not None:
                for operand in op.operands:
                    found += self._collect(operand, waiting)
                found.append(op)
        return found

    def _assign(self, nests: list[Nest], op: Operation, like: tile.DotOp | None = None) -> None:
        if isinstance(op, tile.ReduceOp) and _folds_rows(op):
            nests.append(Nest(1, folds=op, phase_of={op.result: (0, False)}))
            return
        if op in self.matrix:
            assert isinstance(op, tile.DotOp)
            rows, cols = shape_of(op.result)
            phase = Phase(cols, [op], op)
            nests.append(Nest(rows, [phase], [[], []], {op.result: (0, False)}, matrix=True))
            return
        earlier = self._earlier(nests, op) if like is None else None
        if earlier is not None:
            self._join(earlier, op, None)
            return
        last = nests[-1] if nests else None
        if last is None or not self._fits(last, op, like):
            rows, _ = domain(_leading(op))
            last = Nest(rows)
            nests.append(last)
        self._join(last, op, like)

    def _earlier(self, nests: Sequence[Nest], op: Operation) -> Nest | None:
        """A nest before the last that makes what an op needs, and has room for it."""
        if not isinstance(op, tile.EwOp | tile.ReduceOp):
            return None
        made = {value: nest for nest in nests for value in nest.phase_of}
        needed = [made[leaf] for leaf, _ in self.needs(op, 1) if leaf in made]
        if not needed:
            return None
        latest = max(needed, key=nests.index)
        return latest if latest is not nests[-1] and self._fits(latest, op, None) else None

    def _fits(self, nest: Nest, op: Operation, like: tile.DotOp | None) -> bool:
        shape = _leading(op)
        if nest.folds is not None or nest.matrix or not self._fuse:
            return False
        folds_all = isinstance(op, tile.ReduceOp) and len(shape) == 1
        if domain(shape)[0] != nest.rows and (folds_all or not nest.is_row_value(shape)):
            return False
        if _touches(op) and any(base in _touched(nest) for base in _touches(op)):
            return False
        near = list(self.needs(op, nest.rows))
        if like is not None:
            near += self.needs(like, nest.rows)
        return all(is_near or value not in nest.phase_of for value, is_near in near)

    def needs(self, op: Operation, rows: int) -> Iterator[tuple[SSAValue, bool]]:
        """The values that are not free and that an op rests on; with each, whether row r needs just row r of it."""
        for number, operand in enumerate(op.operands):
            if not _is_tile(operand):
                continue
            right = isinstance(op, tile.DotOp) and number == 1
            moves = isinstance(op, STRUCTURE) and not _keeps_rows(op, rows)
            taken = isinstance(op, ELSEWHERE) and number == 0
            yield from self.leaves(operand, rows, near=not (right or moves or taken))

    def _join(self, nest: Nest, op: Operation, like: tile.DotOp | None) -> None:
        ready = self._ready(nest, op)
        if like is not None:
            ready = max(ready, self._ready(nest, like))
        shape = _leading(op)
        if nest.is_row_value(shape) and not isinstance(op, tile.DotOp | tile.ReduceOp):
            while len(nest.between) <= ready:
                nest.between.append([])
            nest.between[ready].append(op)
            for result in op.results:
                nest.phase_of[result] = ready, True
            return
        cols = domain(shape)[1] if nest.rows > 1 or len(shape) != 2 else shape[1]
        for number in range(ready, len(nest.phases)):
            phase = nest.phases[number]
            if phase.cols == cols and not (isinstance(op, tile.DotOp) and phase.dot is not None):
                break
        else:
            nest.phases.append(Phase(cols))
            nest.between += [[] for _ in range(len(nest.phases) + 1 - len(nest.between))]
            number = len(nest.phases) - 1
            phase = nest.phases[number]
        phase.ops.append(op)
        if isinstance(op, tile.DotOp):
            phase.dot = op
        for result in op.results:
            nest.phase_of[result] = (number + 1, True) if isinstance(op, tile.ReduceOp) else (number, False)

    def _ready(self, nest: Nest, op: Operation) -> int:
        """The first phase before which everything is there that an op needs."""
        ready = 0
        for number, operand in enumerate(op.operands):
            if not _is_tile(operand):
                continue
            for leaf, _ in self.leaves(operand, nest.rows):
                if leaf in nest.phase_of:
                    at, is_row = nest.phase_of[leaf]
                    whole = isinstance(op, tile.DotOp) and number == 0 and not is_row
                    ready = max(ready, at + 1 if whole else at)
        return ready


def _is_tile(value: SSAValue) -> bool:
    return value.type.name == "tensor"


def _keeps_rows(op: Operation, rows: int) -> bool:
    """Whether row r of the result comes from row r of the operand alone."""
    if rows == 1:
        return True
    if isinstance(op, tile.ExpandOp):
        return op.axis.value.data != 0
    if isinstance(op, tile.BroadcastOp):
        return shape_of(op.operand)[:1] == shape_of(op.result)[:1]
    return not isinstance(op, tile.TransOp)


def _leading(op: Operation) -> tuple[int, ...]:
    """The shape over which an op works."""
    if isinstance(op, tile.Writer):
        return shape_of(op.value)
    if isinstance(op, tile.AssertOp):
        return shape_of(op.condition)
    if isinstance(op, tile.ReduceOp):
        return shape_of(op.operand)
    return shape_of(op.results[0])


def _folds_rows(op: tile.ReduceOp) -> bool:
    shape = shape_of(op.operand)
    return len(shape) == 2 and op.axis.value.data == 0


def _touches(op: Operation) -> list[SSAValue]:
    if isinstance(op, tile.LoadOp | tile.ReadOp | tile.Writer):
        return [tile.memory_of(op.view)]
    return []


def _touched(nest: Nest) -> set[SSAValue]:
    """Arguments that a nest's own ops read or write; free loads read memory that is not written."""
    return {base for op in nest.ops for base in _touches(op)}


def _users(value: SSAValue, analysis: Analysis) -> Iterator[Operation]:
    """The ops that are not free and rest on a value."""
    for use in value.uses:
        user = use.operation
        if user.results and _is_tile(user.results[0]) and analysis.is_free(user.results[0]):
            yield from _users(user.results[0], analysis)
        else:
            yield user


def _rests_on(value: SSAValue, leaf: SSAValue) -> bool:
    while value is not leaf:
        op = value.owner
        if not isinstance(op, STRUCTURE):
            return False
        value = op.operand
    return True


def _packed_load(value: SSAValue) -> tuple[tile.LoadOp, bool] | None:
    """The load behind the right operand of a dot, and whether it is transposed on the way."""
    op, transposed = value.owner, False
    if isinstance(op, tile.TransOp) and tuple(op.permutation.iter_values()) == (1, 0):
        op, transposed = op.operand.owner, True
    if isinstance(op, tile.LoadOp) and op.pad_value == 0 and len(op.offsets) == 2:
        return op, transposed
    return None
