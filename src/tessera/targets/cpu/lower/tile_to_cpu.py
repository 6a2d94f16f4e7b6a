"""tile-to-cpu: a tile function becomes what one thread does, nest by nest, with tiles cut to the size of registers.

Ops that compute tiles: `PIECES` in subtile_writer.py, a subtile at a time. Here are functions, loops and branches.
Values that a nest hands on live in buffers; so do values that loops carry, each in one buffer that every iteration
rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tessera.dtypes.types import DType
from tessera.errors import CompileError
from tessera.ir.common.elements import element_of
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu import features
from tessera.targets.cpu.emit.emitter import TargetMachine
from tessera.targets.cpu.emit.memory import mark_inside
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import TILE_ROWS, BufferType, PanelsType
from tessera.targets.cpu.lower.clipping import STEP, block_clipping
from tessera.targets.cpu.lower.hoisting import Slice, axes_of, by_depth
from tessera.targets.cpu.lower.in_bounds import is_inside
from tessera.targets.cpu.lower.live_rows import LiveRows
from tessera.targets.cpu.lower.lowering import Lowering
from tessera.targets.cpu.lower.matrix_nests import write_matrix
from tessera.targets.cpu.lower.nest_writer import NestWriter
from tessera.targets.cpu.lower.nests import Nest, shape_of
from tessera.targets.cpu.lower.slots import slots_of
from tessera.transforms.algebra.masks import Window, dead_before, dead_from, is_skippable, masks_in
from tessera.transforms.core.context import recorder_of
from tessera.transforms.core.rewriting import inherit_locations

_index = IndexType()


@dataclass(frozen=True)
class TileToCpu(ModulePass):
    """Replaces every tile function by a cpu function of the same name.

    `level` is one of the instruction sets of `features.py`; `lanes`, how many 32-bit elements fill a vector, follows
    from it unless it is given. Without `fuse`, every op gets a nest of its own. Without `contract`, nothing is rounded
    otherwise than the interpreter does. With `small`, code is short: it is compiled sooner and runs longer.
    """

    name = "tile-to-cpu"
    level: str = "avx2"
    lanes: int | None = None
    fuse: bool = True
    contract: bool = True
    small: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = self._machine()
        for function in list(op.body.block.ops):
            if isinstance(function, tile.FuncOp):
                made = FunctionWriter(function, machine, self.fuse, recorder_of(ctx), small=self.small).run()
                made.location = function.location
                inherit_locations(made)
                op.body.block.insert_op_before(made, function)
                function.detach()
                function.erase()

    def _machine(self) -> TargetMachine:
        if self.level not in features.LEVELS:
            raise CompileError(
                f"tile-to-cpu has no level {self.level}", hint=f"levels are {', '.join(features.LEVELS)}"
            )
        lanes = features.lanes(self.level, 32) if self.lanes is None else self.lanes
        if lanes < 2 or lanes & (lanes - 1):
            raise CompileError(f"vectors of {lanes} lanes: expected a power of two from 2 on", hint="leave lanes out")
        return TargetMachine(self.level, lanes, self.contract, self.small)


class FunctionWriter(Lowering):
    """Writes the cpu function of one tile function."""

    def run(self) -> cpu.FuncOp:
        source = self.source
        shapes = [list(shape.data) for shape in source.shapes]
        made = cpu.FuncOp(source.sym_name.data, list(source.function_type.inputs), shapes, list(source.grid.data))
        tile.copy_overlapping(source, made)
        entry = made.body.block
        self.values.update(zip(source.arguments, entry.args, strict=True))
        for old, new in zip(source.arguments, entry.args, strict=True):
            new.name_hint = old.name_hint
        self.out = entry
        extents = [self.add(cpu.GridOp(axis)).results[0] for axis in range(len(source.grid.data))]
        slow, fast = self.sharing.outer, axes_of(source, self.sharing.outer)
        outer, inner = (self._product([extents[axis] for axis in axes]) for axes in (slow, fast))
        once = self._once(slow, extents)
        end = once.last_op
        assert isinstance(end, cpu.YieldOp)
        body = Block(arg_types=[_index, _index, *(value.type for value in end.values)])
        for op, panels in zip(self.sharing.slices, body.args[2:], strict=True):
            self.shared[op] = panels
        self.out = self.top = body
        self._program_ids(body.args[0], slow, extents)
        self._program_ids(body.args[1], fast, extents)
        if self.rows is not None:
            self.row_count = self._count(self.rows)
        self.block(source.body.block)
        body.add_op(cpu.YieldOp())
        entry.add_op(cpu.ParallelOp(outer, inner, Region(once), Region(body)))
        entry.add_op(cpu.ReturnOp())
        return made

    def _count(self, rows: LiveRows) -> SSAValue:
        """How many of the live rows there are."""
        for op in rows.scalars:
            self.copy(op)
        most: SSAValue | None = None
        for store in rows.stores:
            view, offset = self.values[store.view], self.values[store.offsets[0]]
            size = self.add(tile.DimOp(view, 0)).results[0]
            left = self.add(arith.SubiOp(size, offset)).results[0]
            most = left if most is None else self.add(arith.MaxSIOp(most, left)).results[0]
        assert most is not None
        return self.add(arith.MinSIOp(most, self.constant(rows.rows))).results[0]

    def _product(self, factors: Sequence[SSAValue]) -> SSAValue:
        total: SSAValue | None = None
        for factor in factors:
            total = factor if total is None else self.add(arith.MuliOp(total, factor)).results[0]
        return self.constant(1) if total is None else total

    def _program_ids(self, number: SSAValue, axes: Sequence[int], extents: Sequence[SSAValue]) -> None:
        """The coordinates along some axes, of which the last changes fastest."""
        rest, found = number, dict[int, SSAValue]()
        for axis in reversed(axes[1:]):
            quotient = self.add(arith.FloorDivSIOp(rest, extents[axis])).results[0]
            whole = self.add(arith.MuliOp(quotient, extents[axis])).results[0]
            found[axis] = self.add(arith.SubiOp(rest, whole)).results[0]
            rest = quotient
        found.update(dict.fromkeys(axes[:1], rest))
        for op in self.source.body.walk():
            if isinstance(op, tile.ProgramIdOp) and op.axis.value.data in found:
                self.values[op.result] = found[op.axis.value.data]

    def _once(self, slow: Sequence[int], extents: Sequence[SSAValue]) -> Block:
        """Packs what all program instances with the same outer coordinates share."""
        block = Block(arg_types=[_index])
        before = dict(self.values)

        def write() -> None:
            self._program_ids(block.args[0], slow, extents)
            reserved: list[SSAValue] = []
            for op, part in self.sharing.slices.items():
                with self.located(op):
                    reserved.append(self._pack_all(op, part))
            self.add(cpu.YieldOp(*reserved))

        self.within(block, write)
        self.values = before
        return block

    def _pack_all(self, op: tile.DotOp, part: Slice) -> SSAValue:
        """The loops around a load again, with nothing in them but packing."""
        levels = by_depth(part)
        for inner in levels[0]:
            self.copy(inner)
        reserve = cpu.ReserveOp(self._product([self._iterations(loop) for loop in part.loops]), self._panels(op))

        def nest(depth: int) -> None:
            if depth == len(part.loops):
                self._pack_into(op, reserve.result, self._iteration_number(part.loops))
                return
            loop = part.loops[depth]
            body = Block(arg_types=[_index])
            self.values[loop.body.block.args[0]] = body.args[0]

            def write() -> None:
                for inner in levels[depth + 1]:
                    self.copy(inner)
                nest(depth + 1)
                self.add(scf.YieldOp())

            first, last, step = (self.values[bound] for bound in (loop.lb, loop.ub, loop.step))
            self.within(body, write)
            self.add(scf.ForOp(first, last, step, [], Region(body)))

        self.add(reserve)
        nest(0)
        return reserve.result

    def _iterations(self, loop: scf.ForOp) -> SSAValue:
        """How often a loop runs."""
        first, last, step = (self.values[bound] for bound in (loop.lb, loop.ub, loop.step))
        distance = self.add(arith.SubiOp(last, first)).results[0]
        iterations = self.add(arith.CeilDivSIOp(distance, step)).results[0]
        return self.add(arith.MaxSIOp(iterations, self.constant(0))).results[0]

    def _iteration_number(self, loops: Sequence[scf.ForOp]) -> SSAValue:
        """The number of this iteration among those of all loops around it."""
        number: SSAValue | None = None
        for loop in loops:
            counter, first, step = (self.values[value] for value in (loop.body.block.args[0], loop.lb, loop.step))
            here = self.add(arith.DivSIOp(self.add(arith.SubiOp(counter, first)).results[0], step)).results[0]
            if number is not None:
                before = self.add(arith.MuliOp(number, self._iterations(loop))).results[0]
                here = self.add(arith.AddiOp(before, here)).results[0]
            number = here
        return self.constant(0) if number is None else number

    # Blocks

    def block(self, source: Block) -> None:
        """Everything of a block but its terminator."""
        run: list[Operation] = []
        for op in source.ops:
            if op is source.last_op:
                break
            if isinstance(op, tile.ProgramIdOp):
                continue
            if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
                self.flush(run)
                run = []
                with self.located(op):
                    _CONTROL[type(op)](self, op)
            elif _is_tile_work(op):
                run.append(op)
            elif self.rows is None or op not in self.rows.scalars:
                self.copy(op)
        self.flush(run)

    def flush(self, run: Sequence[Operation]) -> None:
        """Nests for a run of tile ops."""
        for op in run:
            if isinstance(op, tile.LoadOp) and op.result in self.analysis.borrowed:
                self._borrow(op)
        nests = self.analysis.nests(run)
        slots = slots_of(self, run, nests)
        self.clipping = block_clipping(self.analysis, nests)
        self.live = None
        if self.clipping is not None:
            last = self.live_columns(self.clipping.cols, self.clipping.edges(), STEP)
            self.live = self.first_column(self.clipping.starts(), STEP, last), last
        for nest in nests:
            with self.located(nest.folds or next(nest.ops, self.at)):
                self._prepare(nest)
                writer = NestWriter(self, nest, slots)
                if nest.matrix:
                    write_matrix(writer)
                else:
                    writer.write()
        self.clipping = self.live = None

    def _prepare(self, nest: Nest) -> None:
        """Packs the right operands of a nest's dots."""
        for op in nest.ops:
            if not isinstance(op, tile.DotOp):
                continue
            if op in self.analysis.packs:
                self.packed[op] = self._pack(op)
            if op in self.analysis.matrix:
                continue
            for operand in (op.a, op.b):
                self._widen(nest, operand, tile_dtype(op.c))

    def _borrow(self, load: tile.LoadOp) -> None:
        rows, cols = shape_of(load.result)
        type_ = BufferType(rows, cols, element_of(tile_dtype(load.result)), dense=1)
        written = [self.values[one] for one in self.source.arguments if one in self.analysis.stored]
        made = cpu.BorrowOp(self.values[load.view], [self.values[offset] for offset in load.offsets], written, type_)
        made.location = load.location
        self.held[load.result] = self.add(made).results[0]

    def _widen(self, nest: Nest, operand: SSAValue, dtype: DType) -> None:
        """A buffer of an operand in the type of the sum, where the operand is there already in its own."""
        if dtype is tile_dtype(operand) or operand in nest.phase_of or operand not in self.held:
            return
        buffer = self.wide.get((operand, dtype))
        if buffer is None:
            buffer = self.wide[operand, dtype] = self.buffer(shape_of(operand), dtype)
        self.copy_to(operand, buffer)

    def _panels(self, op: tile.DotOp) -> PanelsType:
        rows, cols = shape_of(op.b)
        if op in self.analysis.matrix:
            dtype = tile_dtype(op.b)
            return PanelsType(rows, cols, element_of(dtype), TILE_ROWS, 4 // dtype.storage.itemsize)
        accumulator = tile_dtype(op.c)
        return PanelsType(rows, cols, element_of(accumulator), self.blocking.panel(cols, accumulator))

    def _pack(self, op: tile.DotOp) -> tuple[SSAValue, SSAValue]:
        """The packed right operand of a dot, and its number among those that were packed at once."""
        if op in self.shared:
            return self.shared[op], self._iteration_number(self.sharing.slices[op].loops)
        reserve = cpu.ReserveOp(self.constant(1), self._panels(op))
        self.add(reserve)
        number = self.constant(0)
        self._pack_into(op, reserve.result, number)
        return reserve.result, number

    def _pack_into(self, op: tile.DotOp, panels: SSAValue, number: SSAValue) -> None:
        load, transposed = self.analysis.packs[op]
        offsets = [self.values[offset] for offset in load.offsets]
        packing = cpu.PackOp(self.values[load.view], offsets, panels, number, transposed=transposed)
        if is_inside(self.extents, load):
            mark_inside(packing)
        packing.location = load.location
        self.add(packing)

    # Control

    def loop(self, op: scf.ForOp) -> None:
        tiles = [argument for argument in op.body.block.args[1:] if isinstance(argument.type, TensorType)]
        scalars = [argument for argument in op.body.block.args[1:] if argument not in tiles]
        initial = dict(zip(op.body.block.args[1:], op.iter_args, strict=True))
        results = dict(zip(op.body.block.args[1:], op.results, strict=True))
        for argument in tiles:
            slot = self.buffer(shape_of(argument), tile_dtype(argument))
            self.held[argument] = self.held[results[argument]] = slot
            self.clear_gaps(argument, slot)
            self.clear_gaps(results[argument], slot)
            self.copy_to(initial[argument], slot)
        bounds = self._live(op)
        body = Block(arg_types=[_index, *(argument.type for argument in scalars)])
        self.values[op.body.block.args[0]] = body.args[0]
        self.values.update(zip(scalars, body.args[1:], strict=True))
        end = op.body.block.last_op
        assert end is not None
        yielded = dict(zip(op.body.block.args[1:], end.operands, strict=True))

        def write() -> None:
            self.block(op.body.block)
            self._assign([(yielded[argument], self.held[argument]) for argument in tiles])
            self.add(scf.YieldOp(*(self.values[yielded[argument]] for argument in scalars)))

        self.within(body, write)
        made = scf.ForOp(
            *bounds, self.values[op.step], [self.values[initial[argument]] for argument in scalars], Region(body)
        )
        self.add(made)
        self.values.update(zip((results[argument] for argument in scalars), made.results, strict=True))

    def while_(self, op: scf.WhileOp) -> None:
        """A loop that tests: its block that does, and what it hands on, have no tiles of their own."""
        test, body = op.before_region.block, op.after_region.block
        asked, end = test.last_op, body.last_op
        assert isinstance(asked, scf.ConditionOp)
        assert end is not None
        if len(list(test.ops)) > 1 or tuple(asked.args) != tuple(test.args[1:]) or asked.condition is not test.args[0]:
            message = "scf.while tests a flag that it carries first, and hands all else on"
            raise CompileError(message, span=span_of(op.location), hint="work the condition out in the loop's body")
        state, initial, yielded = test.args[1:], op.arguments[1:], end.operands[1:]
        tiles = [index for index, argument in enumerate(state) if isinstance(argument.type, TensorType)]
        scalars = [index for index, _ in enumerate(state) if index not in tiles]
        for index in tiles:
            slot = self.buffer(shape_of(state[index]), tile_dtype(state[index]))
            for value in (body.args[index], op.results[index]):
                self.held[value] = slot
                self.clear_gaps(value, slot)
            self.copy_to(initial[index], slot)
        types = [state[index].type for index in scalars]
        first, inner = Block(arg_types=[test.args[0].type, *types]), Block(arg_types=types)
        first.add_op(scf.ConditionOp(*first.args))
        self.values.update(zip((body.args[index] for index in scalars), inner.args, strict=True))

        def write() -> None:
            self.block(body)
            self._assign([(yielded[index], self.held[body.args[index]]) for index in tiles])
            self.add(scf.YieldOp(self.values[end.operands[0]], *(self.values[yielded[index]] for index in scalars)))

        self.within(inner, write)
        given = [self.values[op.arguments[0]], *(self.values[initial[index]] for index in scalars)]
        made = scf.WhileOp(given, types, Region(first), Region(inner))
        self.add(made)
        self.values.update(zip((op.results[index] for index in scalars), made.results, strict=True))

    def _live(self, op: scf.ForOp) -> tuple[SSAValue, SSAValue]:
        """The bounds of a loop, without iterations in which a mask leaves nothing to do."""
        first, last = self.values[op.lb], self.values[op.ub]
        for mask in masks_in(op.body.block):
            if not is_skippable(op, mask):
                continue
            counter, window = op.body.block.args[0], Window.whole(shape_of(mask))
            for edges in dead_from(mask, counter, window):
                if (end := self.bound(edges, arith.MaxSIOp)) is not None:
                    last = self.add(arith.MinSIOp(last, end)).results[0]
            for edges in dead_before(mask, counter, window):
                if (start := self.bound(edges, arith.MinSIOp, below=True)) is not None:
                    ahead = self.add(arith.SubiOp(start, self.values[op.lb])).results[0]
                    iterations = self.add(arith.CeilDivSIOp(ahead, self.values[op.step])).results[0]
                    steps = self.add(arith.MuliOp(iterations, self.values[op.step])).results[0]
                    first = self.add(arith.MaxSIOp(first, self.sum(self.values[op.lb], steps))).results[0]
        return first, last

    def branch(self, op: scf.IfOp) -> None:
        tiles = [result for result in op.results if isinstance(result.type, TensorType)]
        scalars = [result for result in op.results if result not in tiles]
        for result in tiles:
            self.held[result] = self.buffer(shape_of(result), tile_dtype(result))
            self.clear_gaps(result, self.held[result])

        def side(region: Region) -> Region:
            block = Block()

            def write() -> None:
                if not region.blocks:
                    self.add(scf.YieldOp())
                    return
                self.block(region.block)
                end = region.block.last_op
                assert end is not None
                yielded = dict(zip(op.results, end.operands, strict=True))
                self._assign([(yielded[result], self.held[result]) for result in tiles])
                self.add(scf.YieldOp(*(self.values[yielded[result]] for result in scalars)))

            return Region(self.within(block, write))

        made = scf.IfOp(
            self.values[op.cond], [result.type for result in scalars], side(op.true_region), side(op.false_region)
        )
        self.add(made)
        self.values.update(zip(scalars, made.results, strict=True))

    def _assign(self, pairs: Sequence[tuple[SSAValue, SSAValue]]) -> None:
        """Puts values into buffers, all at once: one that is read by another assignment is copied aside first."""
        waiting = [(value, slot) for value, slot in pairs if self.held.get(value) is not slot]
        slots = {slot for _, slot in pairs}
        for index, (value, slot) in enumerate(waiting):
            leaves = [self.held.get(leaf) for leaf, _ in self.analysis.leaves(value, 1)]
            if any(leaf in slots for leaf in leaves):
                aside = self.buffer(shape_of(value), tile_dtype(value))
                self.copy_to(value, aside)
                waiting[index] = aside, slot
        for value, slot in waiting:
            self.copy_to(value, slot)

    def copy_to(self, value: SSAValue, slot: SSAValue) -> None:
        """A nest that only puts a value into a buffer; `value` is a tile of the source, or a buffer."""
        NestWriter.copy(self, value, slot)


_CONTROL: dict[type[Operation], Callable[[FunctionWriter, Any], None]] = {
    scf.ForOp: FunctionWriter.loop,
    scf.IfOp: FunctionWriter.branch,
    scf.WhileOp: FunctionWriter.while_,
}


def _is_tile_work(op: Operation) -> bool:
    """Whether an op makes or uses tiles."""
    return any(isinstance(value.type, TensorType) for value in (*op.results, *op.operands))
