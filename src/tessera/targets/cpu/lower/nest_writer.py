"""Writes one nest at the cpu level: a loop over groups of rows, and within it a loop over columns for each phase.

Every access to an argument is tested once for the whole nest: if all of it lies inside, the loops run without tests;
otherwise a second, careful version of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.dtypes.types import DType, i8, i16, i32, i64, u8, u16, u32, u64
from tessera.ir.common import reductions
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cpu.emit.memory import UNROLL, mark_inside
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import BufferType, buffer_type
from tessera.targets.cpu.lower.clipping import STEP, Clipping, clipping
from tessera.targets.cpu.lower.in_bounds_conditions import inside
from tessera.targets.cpu.lower.lowering import Lowering
from tessera.targets.cpu.lower.nests import Nest, Phase, domain, shape_of
from tessera.targets.cpu.lower.subtile_writer import Axes, SubtileWriter
from tessera.targets.cpu.lower.unmasked_columns import NO_MASKS, Bounds, UnmaskedColumns, masks_behind, unmasked_columns
from tessera.transforms.algebra.masks import Linear
from tessera.transforms.core.folding import materialize

_index = IndexType()

_SIGNED = {u8: i8, u16: i16, u32: i32, u64: i64}


class NestWriter(SubtileWriter):
    """Writes one nest; `slots` are buffers that some of its values must go to."""

    def __init__(self, lowering: Lowering, nest: Nest, slots: dict[SSAValue, SSAValue]) -> None:
        super().__init__(lowering, nest)
        self.kept: list[tuple[SSAValue, DType, SSAValue]] = []
        """Values that go into buffers of all rows."""
        self._plan(slots)
        found = clipping(lowering.analysis, nest, {value for value, _, _ in self.kept})
        self.clipping = found if found is not None and self._ends_agree(found) else None
        self.open: UnmaskedColumns | None = None

    @staticmethod
    def copy(lowering: Lowering, value: SSAValue, slot: SSAValue) -> None:
        """Puts a tile of the source, or the contents of a buffer, into another buffer."""
        if isinstance(value.type, BufferType):
            shape: tuple[int, ...] = value.type.shape
        else:
            shape = shape_of(value)
        rows, cols = domain(shape)
        if cols == 1:
            rows, cols = 1, rows
        nest = Nest(rows, [Phase(cols)], [[], []])
        writer = NestWriter(lowering, nest, {})
        writer.copied = (value, slot, shape)
        made = value.owner if isinstance(value.owner, Operation) else lowering.at
        with lowering.located(made):
            writer.write()

    copied: tuple[SSAValue, SSAValue, tuple[int, ...]] | None = None

    def copy_to(self, value: SSAValue, slot: SSAValue) -> None:
        """A nest of its own that only puts a value into a buffer."""
        NestWriter.copy(self.lowering, value, slot)

    # What goes where

    def _plan(self, slots: dict[SSAValue, SSAValue]) -> None:
        lowering, nest = self.lowering, self.nest
        for value, (at, is_row) in nest.phase_of.items():
            dtypes = self._dtypes(value, at, is_row)
            for dtype, everywhere in dtypes.items():
                if everywhere:
                    plain = dtype is tile_dtype(value)
                    slot = slots.get(value) if plain else None
                    buffer = slot if slot is not None else lowering.buffer(shape_of(value), dtype)
                    lowering.hold(value, dtype, buffer)
                    if plain:
                        lowering.clear_gaps(value, buffer)
                    self.kept.append((value, dtype, buffer))
                elif (value, dtype) not in self.local:
                    rows = max(1, lowering.blocking.rows(nest, careful=False))
                    shape = (rows, domain(shape_of(value))[1])
                    self.local[value, dtype] = lowering.buffer(shape, dtype)

    def _dtypes(self, value: SSAValue, at: int, is_row: bool) -> dict[DType, bool]:
        """The element types in which a value is kept in memory, and whether all rows of it are."""
        found: dict[DType, bool] = {}
        here = set(self.nest.ops)
        if self.nest.folds is not None:
            here.add(self.nest.folds)
        for user, dtype in self.lowering.reads(value):
            outside = user not in here
            if outside:
                found[dtype] = True
            elif is_row:
                continue
            elif (isinstance(user, tile.DotOp) and user.a is value) or (
                self._is_later(user, at) and not self.is_easy(value)
            ):
                found.setdefault(dtype, False)
        return found

    def _is_later(self, user: Operation, at: int) -> bool:
        return any(user in phase.ops for phase in self.nest.phases[at + 1 :])

    # What masks leave out

    def _ends_agree(self, found: Clipping) -> bool:
        """Whether phases that stop early never go beyond where those before them have stopped, in both versions."""
        phases = [self.nest.phases[number] for number in sorted(found.phases)]
        for careful in (False, True):
            steps = [self.lowering.blocking.cols(self.nest, phase, careful=careful) for phase in phases]
            if any(before % after for before, after in pairwise(steps)):
                return False
        return True

    def _live_columns(self) -> SSAValue | None:
        """The first column from which on nothing counts for this group of rows."""
        if self.clipping is None:
            return None
        lowering, (start, size) = self.lowering, self.group
        lowering.own.add(start)
        row = Linear() if start is self.zero else Linear(((start, 1),))
        return lowering.live_columns(self.clipping.cols, self.clipping.edges(row, size), UNROLL)

    # Loops

    def write(self) -> None:
        if self.nest.folds is not None:
            self._fold_rows(self.nest.folds)
            return
        self.open = unmasked_columns(self.lowering, self.nest)
        condition = inside(self.lowering, self.nest, None if self.copied is None else self.copied[0])
        if condition is None:
            self._version()
        else:
            self._either(condition)

    def _either(self, condition: SSAValue) -> None:
        """Two versions: the first needs no tests."""

        def version(*, careful: bool) -> Region:
            def write() -> None:
                self.careful = careful
                self._version()
                self.careful = False
                self.lowering.add(scf.YieldOp())

            return Region(self.lowering.within(Block(), write))

        self.lowering.add(scf.IfOp(condition, [], version(careful=False), version(careful=True)))

    def _version(self) -> None:
        lowering, nest = self.lowering, self.nest
        self.zero = lowering.constant(0)
        step = min(lowering.blocking.rows(nest, careful=self.careful), max(1, nest.rows))
        whole = nest.rows // step * step

        def run(start: SSAValue, size: int) -> None:
            self.group = start, size
            self._group()

        covered = lowering.rows is not None and lowering.rows.covers(nest, careful=self.careful)
        rows = lowering.row_count if covered else None
        if rows is None or nest.rows <= step:
            self.steps(whole, step, run)
            if whole < nest.rows:
                run(lowering.constant(whole), nest.rows - whole)
            return
        end = lowering.add(arith.MinSIOp(lowering.constant(whole), rows)).results[0]
        self.steps(whole, step, run, (self.zero, end))
        if whole < nest.rows:
            start = lowering.constant(whole)

            def rest() -> None:
                run(start, nest.rows - whole)
                lowering.add(scf.YieldOp())

            some = lowering.add(arith.CmpiOp(start, rows, "slt")).results[0]
            lowering.add(scf.IfOp(some, [], Region(lowering.within(Block(), rest))))

    def steps(self, whole: int, step: int, body: Callable[[SSAValue, int], None], bounds: Bounds | None = None) -> None:
        """A loop without carried values over whole steps, or within bounds; a single one is written out."""
        lowering = self.lowering
        if whole <= 0:
            return
        if whole == step and bounds is None:
            body(self.zero, step)
            return
        start, stop = (self.zero, lowering.constant(whole)) if bounds is None else bounds
        block = Block(arg_types=[_index])

        def write() -> None:
            body(block.args[0], step)
            lowering.add(scf.YieldOp())

        every = lowering.constant(step)
        lowering.within(block, write)
        lowering.add(scf.ForOp(start, stop, every, [], Region(block)))

    def _group(self) -> None:
        """All phases for one group of rows."""
        self.rows, nest = {}, self.nest
        self.live = self._live_columns()
        for number, ops in enumerate(nest.between):
            self.pieces = {}
            for op in ops:
                self._row_op(op)
            if number < len(nest.phases):
                phase = nest.phases[number]
                with self.lowering.located(phase.ops[0] if phase.ops else self.lowering.at):
                    self._unless_needless(phase, self._bounds_of(number))
        self.pieces = {}
        for value, dtype, buffer in self.kept:
            if value in self.rows:
                start, _ = self.group
                piece = self._converted(self.rows[value], dtype)
                row, col = (self.zero, start) if nest.rows > 1 else (self.zero, self.zero)
                self.lowering.add(cpu.StoreOp(piece, buffer, row, col))

    def _row_op(self, op: Operation) -> None:
        axes = self._row_axes(shape_of_op(op))
        if op.results:
            self.rows[op.results[0]] = self._make(op, axes)
        else:
            with self.lowering.located(op):
                self._effect(op, axes)

    def _row_axes(self, shape: Sequence[int]) -> Axes:
        group = self.group if self.nest.rows > 1 else (self.zero, 1)
        return tuple(group if axis == 0 else (self.zero, 1) for axis in range(len(shape)))

    def _full_axes(self, shape: Sequence[int], col: SSAValue, size: int) -> Axes:
        match len(shape):
            case 0:
                return ()
            case 1:
                return ((col, size),)
            case _:
                return (self.group if self.nest.rows > 1 else (self.zero, 1), (col, size))

    def _unless_needless(self, phase: Phase, bounds: Bounds | None) -> None:
        """A phase that does nothing but scale rows where they are is left out if every factor is 1."""
        lowering, factor = self.lowering, self._factor(phase)
        if factor is None or self.nest.rows == 1:
            self._phase(phase, bounds)
            return
        shape = shape_of(self.rows[factor])
        one = self._full(1, shape, tile_dtype(factor))
        changed = lowering.add(tile.EwOp("ne", [self.rows[factor], one])).results[0]
        condition = lowering.add(cpu.AnyOp(changed)).results[0]

        def write() -> None:
            self._phase(phase, bounds)
            lowering.add(scf.YieldOp())

        block = lowering.within(Block(), write)
        lowering.add(scf.IfOp(condition, [], Region(block)))

    def _factor(self, phase: Phase) -> SSAValue | None:
        """The value of each row by which a phase multiplies a tile in its buffer."""
        if len(phase.ops) != 1 or not isinstance(op := phase.ops[0], tile.EwOp) or op.fn.data != "mul":
            return None
        buffers = [buffer for value, _, buffer in self.kept if value is op.result]
        scaled, factor = op.operands_
        if self.lowering.held.get(scaled) not in buffers or len(buffers) != 1 or (op.result, _dtype(op)) in self.local:
            return None
        while isinstance(owner := factor.owner, tile.BroadcastOp | tile.ExpandOp):
            factor = owner.operand
        return factor if factor in self.rows else None

    def _bounds_of(self, number: int) -> Bounds | None:
        """Where a phase may begin behind its first column, and stop before its last."""
        lowering, phase = self.lowering, self.nest.phases[number]
        if self.clipping is not None and self.live is not None and number in self.clipping.phases:
            return self.zero, self.live
        if lowering.clipping is not None and phase.cols == lowering.clipping.cols and lowering.clipping.covers(phase):
            return lowering.live
        return None

    def _phase(self, phase: Phase, bounds: Bounds | None) -> None:
        lowering = self.lowering
        step = lowering.blocking.cols(self.nest, phase, careful=self.careful)
        whole = phase.cols // step * step
        reduces = [op for op in phase.ops if isinstance(op, tile.ReduceOp)]
        if phase.cols == 0:
            for op in reduces:
                self.rows[op.result] = self._neutral(op, self._row_axes(shape_of(op.result)))
            return
        if phase.cols == step:
            self._chunk(phase, self.zero, step, None)
            return
        partial: Sequence[SSAValue] = [self._start(op) for op in reduces]
        if whole == step:
            partial = self._chunk(phase, self.zero, step, partial)
        elif whole:
            start, stop = self.zero, lowering.constant(whole)
            if bounds is not None:
                first, end = bounds
                start = first if STEP % step == 0 else start
                stop = lowering.add(arith.MinSIOp(stop, self.rounded_up(end, step))).results[0]
            partial = self._over_columns(phase, step, (start, stop), partial)
        if whole < phase.cols:
            partial = self._chunk(phase, lowering.constant(whole), phase.cols - whole, partial)
        for op, value in zip(reduces, partial, strict=True):
            axis = len(tile_type(value).get_shape()) - 1
            with lowering.located(op):
                finished = lowering.add(tile.ReduceOp(op.kind.data, value, axis))
                self.rows[op.result] = self._shaped(finished.results[0], shape_of(op.result))

    def _over_columns(self, phase: Phase, step: int, bounds: Bounds, partial: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Whole steps of a phase: one loop, or others around one whose columns need no masks."""
        if self.open is None or self.careful or not self._meets(phase, self.open.masks):
            return self.loop(phase, step, bounds, partial)
        (start, stop), lowering = bounds, self.lowering

        def within(value: SSAValue, least: SSAValue) -> SSAValue:
            above = lowering.add(arith.MaxSIOp(value, least)).results[0]
            return lowering.add(arith.MinSIOp(above, stop)).results[0]

        first = start
        if self.open.first is not None:
            first = self.rounded_up(within(self.open.first, start), step)
            partial = self.loop(phase, step, (start, first), partial)
        every = lowering.constant(step)
        last = lowering.add(arith.DivSIOp(within(self.open.last, first), every)).results[0]
        last = lowering.add(arith.MuliOp(last, every)).results[0]
        self.masks = self.open.masks
        partial = self.loop(phase, step, (first, last), partial)
        self.masks = NO_MASKS
        return self.loop(phase, step, (last, stop), partial)

    def _meets(self, phase: Phase, masks: frozenset[SSAValue]) -> bool:
        """Whether a phase works with masks, in its own ops or in values that it makes again."""
        waiting: list[Operation] = list(phase.ops)
        while waiting:
            op = waiting.pop()
            if not masks.isdisjoint(masks_behind(self.lowering.analysis, op)):
                return True
            for operand in op.operands:
                if isinstance(operand.type, TensorType):
                    leaves = (leaf for leaf, _ in self.lowering.analysis.leaves(operand, self.nest.rows))
                    made = [leaf.owner for leaf in leaves if leaf in self.nest.phase_of and self.is_easy(leaf)]
                    waiting += [owner for owner in made if isinstance(owner, Operation)]
        return False

    def loop(self, phase: Phase, step: int, bounds: Bounds, partial: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Whole steps of a phase, from one column to another."""
        lowering = self.lowering
        block = Block(arg_types=[_index, *(value.type for value in partial)])

        def write() -> None:
            found = self._chunk(phase, block.args[0], step, list(block.args[1:]))
            lowering.add(scf.YieldOp(*found))

        every = lowering.constant(step)
        lowering.within(block, write)
        loop = scf.ForOp(*bounds, every, partial, Region(block))
        lowering.add(loop)
        return loop.results

    def _shaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value of one row, with as many axes as the op it stands for gives."""
        found = value
        while len(shape_of(found)) < len(shape):
            expanded = tile.ExpandOp(found, len(shape_of(found)))
            self.lowering.add(expanded)
            found = expanded.result
        return found

    def _start(self, op: tile.ReduceOp) -> SSAValue:
        """A partial result with nothing in it: one vector to a row, or a few when there is one row only."""
        rows = self.group[1] if self.nest.rows > 1 else 1
        lanes = self.lowering.machine.lanes
        cols = lanes if rows > 1 else 4 * lanes
        shape = (cols,) if len(shape_of(op.operand)) == 1 else (rows, cols)
        return self._full(
            reductions.TABLE[op.kind.data].identity(tile_dtype(op.operand)), shape, tile_dtype(op.operand)
        )

    def _neutral(self, op: tile.ReduceOp, axes: Axes) -> SSAValue:
        dtype = tile_dtype(op.operand)
        return self._full(reductions.TABLE[op.kind.data].identity(dtype), [size for _, size in axes], dtype)

    def _full(self, value: float, shape: Sequence[int], dtype: DType) -> SSAValue:
        # Constants have no unsigned types; a cast keeps the bits of whole numbers.
        plain = _SIGNED.get(dtype, dtype)
        number = value - 2**dtype.bits if plain is not dtype and value >= 2 ** (dtype.bits - 1) else value
        scalar = self.lowering.add(materialize(number, element_of(plain)))
        full = self.lowering.add(tile.FullOp(scalar.results[0], list(shape))).results[0]
        return self._converted(full, dtype)

    def _chunk(self, phase: Phase, col: SSAValue, size: int, partial: Sequence[SSAValue] | None) -> list[SSAValue]:
        """One step over columns. Reductions go into partial results, or are finished if this is the only step."""
        lowering, found = self.lowering, list[SSAValue]()
        self.pieces = {}
        if self.copied is not None:
            self._copy_piece(col, size)
        for op in phase.ops:
            axes = self._full_axes(shape_of_op(op), col, size)
            with lowering.located(op):
                if isinstance(op, tile.ReduceOp):
                    piece = self.piece(op.operand, axes)
                    if partial is None:
                        finished = lowering.add(tile.ReduceOp(op.kind.data, piece, len(axes) - 1))
                        self.rows[op.result] = self._shaped(finished.results[0], shape_of(op.result))
                    else:
                        step = lowering.add(cpu.PartialOp(op.kind.data, partial[len(found)], piece))
                        found.append(step.results[0])
                elif op.results:
                    piece = self._make(op, axes)
                    self.pieces[op.results[0], axes] = piece
                    self._keep(op.results[0], piece, col)
                else:
                    self._effect(op, axes)
        return found

    def _keep(self, value: SSAValue, piece: SSAValue, col: SSAValue) -> None:
        """Puts a piece into every buffer that wants it."""
        start = self.group[0] if self.nest.rows > 1 else self.zero
        for kept, dtype, buffer in self.kept:
            if kept is value:
                self.lowering.add(cpu.StoreOp(self._converted(piece, dtype), buffer, start, col))
        for (kept, dtype), buffer in self.local.items():
            if kept is value:
                self.lowering.add(cpu.StoreOp(self._converted(piece, dtype), buffer, self.zero, col))

    def _copy_piece(self, col: SSAValue, size: int) -> None:
        assert self.copied is not None
        value, slot, shape = self.copied
        flat = domain(shape)[1] == 1
        axes: Axes
        if flat:
            axes = tuple((col, size) if axis == 0 else (self.zero, 1) for axis in range(len(shape)))
        else:
            axes = self._full_axes(shape, col, size)
        start = self.group[0] if self.nest.rows > 1 else self.zero
        if isinstance(value.type, BufferType):
            piece_type = TensorType(value.type.element, [one for _, one in axes])
            place = self._buffer_place(shape, axes)
            loaded = self.lowering.add(cpu.LoadOp(value, *place, piece_type)).results[0]
        else:
            loaded = self.piece(value, axes)
        self.lowering.add(cpu.StoreOp(self._converted(loaded, buffer_type(slot).dtype), slot, start, col))

    def _converted(self, piece: SSAValue, dtype: DType) -> SSAValue:
        if tile_dtype(piece) is dtype:
            return piece
        return self.lowering.add(tile.EwOp("cast", [piece], to=dtype)).results[0]

    def _effect(self, op: Operation, axes: Axes) -> None:
        lowering = self.lowering
        made: Operation
        if isinstance(op, tile.StoreOp):
            piece = self.piece(op.value, axes)
            made = tile.StoreOp(piece, lowering.values[op.view], self.offsets(op.offsets, axes))
            if not self.careful and self.is_straight(op, axes):
                mark_inside(made)
        elif isinstance(op, tile.AtomicOp):
            piece = self.piece(op.value, axes)
            offsets = self.offsets(op.offsets, axes)
            made = tile.AtomicOp(op.kind.data, piece, lowering.values[op.view], offsets)
        elif isinstance(op, tile.WriteOp | tile.AtomicAtOp):
            piece, view = self.piece(op.value, axes), lowering.values[op.view]
            indices, mask = self.places(op, axes)
            if isinstance(op, tile.WriteOp):
                made = tile.WriteOp(piece, view, indices, mask=mask)
            else:
                made = tile.AtomicAtOp(op.kind.data, piece, view, indices, mask=mask)
        else:
            assert isinstance(op, tile.AssertOp)
            made = tile.AssertOp(self.piece(op.condition, axes), op.message.data)
        lowering.add(made)

    # Rows folded away

    def _fold_rows(self, op: tile.ReduceOp) -> None:
        """For each group of columns, a loop down the rows."""
        lowering, lanes = self.lowering, self.lowering.machine.lanes
        rows, cols = shape_of(op.operand)
        dtype, kind = tile_dtype(op.operand), op.kind.data
        self.zero, self.careful = lowering.constant(0), True
        combine = reductions.TABLE[kind].combine

        def strip(col: SSAValue, size: int) -> None:
            start = self._full(reductions.TABLE[kind].identity(dtype), (1, size), dtype)
            block = Block(arg_types=[_index, start.type])

            def write() -> None:
                self.pieces = {}
                piece = self.piece(op.operand, ((block.args[0], 1), (col, size)))
                total = lowering.add(tile.EwOp(combine, [block.args[1], piece])).results[0]
                lowering.add(scf.YieldOp(total))

            stop, every = lowering.constant(rows), lowering.constant(1)
            lowering.within(block, write)
            loop = scf.ForOp(self.zero, stop, every, [start], Region(block))
            lowering.add(loop)
            total = lowering.add(tile.ReduceOp(kind, loop.results[0], 0)).results[0]
            for _, kept, buffer in self.kept:
                lowering.add(cpu.StoreOp(self._converted(total, kept), buffer, self.zero, col))

        whole = cols // lanes * lanes
        self.steps(whole, lanes, strip)
        if whole < cols:
            strip(lowering.constant(whole), cols - whole)


def _dtype(op: tile.EwOp) -> DType:
    return tile_dtype(op.result)


def shape_of_op(op: Operation) -> tuple[int, ...]:
    """The shape over which an op works."""
    if isinstance(op, tile.Writer):
        return shape_of(op.value)
    if isinstance(op, tile.AssertOp):
        return shape_of(op.condition)
    return shape_of(op.operand if isinstance(op, tile.ReduceOp) else op.results[0])
