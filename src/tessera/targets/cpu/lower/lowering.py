"""The part that the writers of a cpu function share: analyses of the tile function, its values, building of ops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import DType
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.emit.emitter import TargetMachine
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, TILE_ROWS, BufferType, rounded_up
from tessera.targets.cpu.lower.blocking import Blocking
from tessera.targets.cpu.lower.clipping import BlockClipping
from tessera.targets.cpu.lower.extents import Extents
from tessera.targets.cpu.lower.hoisting import sharing
from tessera.targets.cpu.lower.legalize import check_supported
from tessera.targets.cpu.lower.live_rows import live_rows
from tessera.targets.cpu.lower.nests import Analysis, domain, shape_of
from tessera.targets.cpu.lower.zero_copy_operands import can_borrow
from tessera.targets.llvm.tolerances import Tolerances
from tessera.transforms.algebra.masks import Edge, Linear
from tessera.transforms.core.facts import Recorder

_index = IndexType()
_FAR = 1 << 60
"""Farther than any position, and near enough that sums with it do not wrap."""


class Lowering:
    """The cpu function that is being written, and where values of the tile function are in it."""

    def __init__(
        self, function: tile.FuncOp, machine: TargetMachine, fuse: bool, recorder: Recorder, *, small: bool = False
    ) -> None:
        self.source = function
        self.extents = Extents(function, recorder)
        check_supported(function)
        self.machine = machine
        dots = any(isinstance(op, tile.DotOp) for op in function.body.walk())
        self.flushes = dots and machine.contract
        """Whether subnormal numbers are taken as zeros; see `flush_subnormals`."""
        self.blocking = Blocking(machine, small)
        borrows = partial(can_borrow, self.extents, self.blocking)
        self.analysis = Analysis(function, fuse=fuse, matrix=self.blocking.has_matrix_unit, borrows=borrows)
        self.tolerances = Tolerances(self.reads)
        self.values: dict[SSAValue, SSAValue] = {}
        """Scalars and views of the source, in the new function."""
        self.held: dict[SSAValue, SSAValue] = {}
        """Tiles of the source that are in a buffer."""
        self.wide: dict[tuple[SSAValue, DType], SSAValue] = {}
        """Operands of dots, in the type that the dots accumulate in."""
        self.sharing = sharing(function, self.analysis)
        self.rows = live_rows(function, self.extents)
        self.row_count: SSAValue | None = None
        """How many rows of the tiles in `rows` count."""
        self.shared: dict[tile.DotOp, SSAValue] = {}
        self.packed: dict[tile.DotOp, tuple[SSAValue, SSAValue]] = {}
        self.clipping: BlockClipping | None = None
        self.live: tuple[SSAValue, SSAValue] | None = None
        """The columns of this run of nests that count, from one to another, if others are left out."""
        self.own: set[SSAValue] = set()
        """Values of the new function that an analysis was told of."""
        self._constants: dict[tuple[Block, int], SSAValue] = {}
        self._around: list[Block] = []
        """The blocks around the one that is written."""
        self.out: Block
        self.top: Block
        self.at: Operation = function
        """The op that is being lowered: what is written for it takes its location."""

    def add(self, op: Operation) -> Operation:
        if isinstance(op.location, UnknownLoc):
            op.location = self.at.location
        self.out.add_op(op)
        return op

    @contextmanager
    def located(self, op: Operation) -> Generator[None]:
        """Writes ops at the location of one that is being lowered; behind it, at that of the one before again."""
        outside, self.at = self.at, op
        yield
        self.at = outside

    def constant(self, value: int) -> SSAValue:
        """A whole number; one that was written before, here or around, serves again."""
        for block in (self.out, *reversed(self._around)):
            if (found := self._constants.get((block, value))) is not None:
                return found
        made = self.add(arith.ConstantOp(IntegerAttr(value, _index))).results[0]
        self._constants[self.out, value] = made
        return made

    def within(self, block: Block, write: Callable[[], None]) -> Block:
        """Writes into another block, which will stand behind what is written so far."""
        self._around.append(self.out)
        self.out = block
        write()
        self.out = self._around.pop()
        return block

    def buffer(self, shape: Sequence[int], dtype: DType) -> SSAValue:
        """Memory for a tile; one of one axis or one column takes a row."""
        rows, cols = domain(shape)
        if cols == 1:
            rows, cols = cols, rows
        if self.analysis.matrix and rows > 1:
            rows = rounded_up(rows, TILE_ROWS)
        op = cpu.BufferOp(BufferType(rows, cols, element_of(dtype)))
        op.location = self.at.location
        self.top.insert_op_before(op, first) if (first := self.top.first_op) is not None else self.top.add_op(op)
        return op.result

    def clear_gaps(self, value: SSAValue, buffer: SSAValue) -> None:
        """Zeros where the matrix unit reads beyond the columns of a left operand."""
        used = any(
            isinstance(use.operation, tile.DotOp) and use.index == 0 and use.operation in self.analysis.matrix
            for use in value.uses
        )
        whole = used and shape_of(value)[1] % (LINE // tile_dtype(value).storage.itemsize) == 0
        op = buffer.owner
        assert isinstance(op, Operation)
        if used and not whole and not isinstance(op.next_op, cpu.ClearOp):
            self.top.insert_op_after(cpu.ClearOp(buffer), op)

    def hold(self, value: SSAValue, dtype: DType, buffer: SSAValue) -> None:
        if dtype is tile_dtype(value):
            self.held[value] = buffer
        else:
            self.wide[value, dtype] = buffer

    def buffer_of(self, value: SSAValue, dtype: DType) -> SSAValue:
        """Where a tile of the source is, as elements of a type."""
        return self.held[value] if dtype is tile_dtype(value) else self.wide[value, dtype]

    def reads(self, value: SSAValue) -> Iterator[tuple[Operation, DType]]:
        """Every op that rests on a value, looking through free ones, and the element type it wants it in."""
        for use in value.uses:
            user = use.operation
            tiles = user.results and isinstance(user.results[0].type, TensorType) and not user.regions
            if tiles and self.analysis.is_free(user.results[0]):
                yield from self.reads(user.results[0])
            elif isinstance(user, tile.DotOp) and use.index < 2 and user not in self.analysis.matrix:
                yield user, tile_dtype(user.c)
            else:
                yield user, tile_dtype(value)

    def copy(self, op: Operation) -> None:
        """A scalar op as it is."""
        made = op.clone({**self.values})
        self.add(made)
        self.values.update(zip(op.results, made.results, strict=True))

    # Bounds

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.AddiOp(a, b)).results[0]

    def bound(
        self, edges: Sequence[Edge], choose: type[arith.MaxSIOp | arith.MinSIOp], *, below: bool = False
    ) -> SSAValue | None:
        """A bound of the analysis as a value, if all it rests on is there."""
        found: SSAValue | None = None
        for edge in edges:
            at = edge.at * -1 if below else edge.at
            value = self.linear(at)
            if value is None:
                return None
            if edge.factor != 1:
                divide = arith.FloorDivSIOp if below else arith.CeilDivSIOp
                value = self.add(divide(value, self.constant(edge.factor))).results[0]
            if below:
                value = self.sum(value, self.constant(1))
            found = value if found is None else self.add(choose(found, value)).results[0]
        return found

    def linear(self, given: Linear) -> SSAValue | None:
        """A sum of scalars, of the source or of the new function.

        It is compared with 0 or with positions. A number of a user's is cut off where it is far beyond all of these,
        because a sum with it could wrap.
        """
        total = self.constant(max(-_FAR, min(given.number, _FAR)))
        free = [scalar for scalar, _ in given.terms if scalar not in self.own and not counts(scalar)]
        for scalar, factor in given.terms:
            value = self.values.get(scalar, scalar if scalar in self.own else None)
            if value is None:
                return None
            if value.type != _index:
                value = self.add(arith.IndexCastOp(value, _index)).results[0]
            if free == [scalar] and abs(factor) == 1:
                value = self.add(arith.MaxSIOp(value, self.constant(-_FAR))).results[0]
                value = self.add(arith.MinSIOp(value, self.constant(_FAR))).results[0]
            if factor != 1:
                value = self.add(arith.MuliOp(value, self.constant(factor))).results[0]
            total = self.sum(total, value)
        return total

    def live_columns(self, cols: int, found: Sequence[Sequence[Edge]], step: int) -> SSAValue:
        """The first column from which on nothing counts, rounded up to a step."""
        live = self.constant(cols)
        for edges in found:
            if (end := self.bound(edges, arith.MaxSIOp)) is not None:
                live = self.add(arith.MinSIOp(live, end)).results[0]
        live = self.add(arith.MaxSIOp(live, self.constant(0))).results[0]
        every = self.constant(step)
        return self.add(arith.MuliOp(self.add(arith.CeilDivSIOp(live, every)).results[0], every)).results[0]

    def first_column(self, found: Sequence[Sequence[Edge]], step: int, last: SSAValue) -> SSAValue:
        """The first column that counts, rounded down to a step; `last`, if none before does."""
        first = self.constant(0)
        for edges in found:
            if (start := self.bound(edges, arith.MinSIOp, below=True)) is not None:
                first = self.add(arith.MaxSIOp(first, start)).results[0]
        if not found:
            return first
        every = self.constant(step)
        whole = self.add(arith.MuliOp(self.add(arith.DivSIOp(first, every)).results[0], every)).results[0]
        return self.add(arith.MinSIOp(whole, last)).results[0]


def counts(scalar: SSAValue) -> bool:
    """Whether a scalar counts program instances, iterations or elements, which memory bounds."""
    owner = scalar.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), scf.ForOp) and owner.args[0] is scalar
    return isinstance(owner, tile.ProgramIdOp | tile.DimOp)
