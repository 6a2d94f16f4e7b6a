"""Tile level → nv level: every tile gets a layout, operands of dots go through shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, TensorType, UnitAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tessera.ir.common.attributes import integer
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.hints import IN_ORDER
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import SharedType, laid_out, panel_for
from tessera.targets.cuda.lower.division_narrowing import Division, can_narrow_division
from tessera.targets.cuda.lower.layout_analysis import (
    LayoutAnalysis,
    Operand,
    Shape,
    at_places,
    is_tile,
    needs,
    operand_of,
)
from tessera.targets.cuda.lower.plain_dots import has_instruction
from tessera.targets.llvm.emitter_attributes import SHORT
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import adopt_location, inherit_locations
from tessera.transforms.pipelining.make_async import feeds_dots, goes_through_shared_memory
from tessera.transforms.pipelining.tile_order import axes_of, follow_apart

GROUP = 8
"""Rows of the grid that blocks go through together where operands follow different axes."""


@dataclass(frozen=True)
class TileToNv(FunctionPass):
    """The pass, for every tile function of a module, as blocks of so many warps; `small` ones have little code."""

    name = "tile-to-nv"
    warps: int = 4
    small: bool = False

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        analysis = LayoutAnalysis(function, Shape(self.warps))
        replace_function(function, Lowering(function, analysis, small=self.small).run())


def replace_function(function: tile.FuncOp, made: nv.FuncOp) -> None:
    """Replaces a tile function."""
    block = function.parent_block()
    assert block is not None
    made.location = function.location
    inherit_locations(made)
    block.insert_op_before(made, function)
    function.detach()
    function.erase()


def is_banded(function: tile.FuncOp) -> bool:
    """Whether operands of dots follow the first two axes of the grid apart: their order then counts."""
    axes: set[frozenset[int]] = set()
    for op in function.body.walk():
        if isinstance(op, pipe.CopyOp) or (isinstance(op, tile.LoadOp) and feeds_dots(op)):
            axes.add(axes_of(op))
    return follow_apart(axes, 0, 1)


class Lowering:
    """Writes the nv function of one tile function."""

    def __init__(self, function: tile.FuncOp, analysis: LayoutAnalysis, *, small: bool = False) -> None:
        self.source = function
        self.small = small
        self.in_order = hints_of(function).swizzle == IN_ORDER
        self.analysis = analysis
        self.values: dict[SSAValue, SSAValue] = {}
        """Scalars and views of the source, and rings, in the new function."""
        self.tiles: dict[tuple[SSAValue, Layout], SSAValue] = {}
        self.staged: dict[SSAValue, SSAValue] = {}
        """Tiles of the source that are in shared memory."""
        self.out: Block
        self.at: Operation = function
        """The op that is being lowered: ops that are put take its location."""

    def run(self) -> nv.FuncOp:
        source = self.source
        made = self.header(self.analysis.shape.threads)
        if self.small:
            made.attributes[SHORT] = UnitAttr()
        if is_banded(source):
            made.attributes["group"] = integer(GROUP)
        if self.analysis.grids:
            # Without a minimum of blocks, the assembler spills to let more blocks in.
            made.attributes["blocks"] = integer(1)
        self._block(source.body.block)
        self.out.add_op(nv.ReturnOp())
        return made

    def header(self, threads: int) -> nv.FuncOp:
        """A function with the arguments of the source, into which ops go from here on."""
        source = self.source
        made = nv.FuncOp(
            source.sym_name.data,
            list(source.function_type.inputs),
            source.outputs.value.data,
            [list(shape.data) for shape in source.shapes],
            list(source.grid.data),
            threads,
        )
        self.out = made.body.block
        for old, new in zip(source.arguments, self.out.args, strict=True):
            self.values[old] = new
            new.name_hint = old.name_hint
        tile.copy_overlapping(source, made)
        return made

    def add(self, op: Operation, source: Operation) -> Operation:
        adopt_location([op], source)
        self.out.add_op(op)
        return op

    def tile(self, value: SSAValue, layout: Layout) -> SSAValue:
        return self.tiles[value, layout]

    def _hold(self, value: SSAValue, layout: Layout, made: SSAValue, source: Operation) -> None:
        """Notes a value in one layout, and makes it in all others that are asked for."""
        self.tiles[value, layout] = made
        made.name_hint = value.name_hint
        for other in self.analysis.converted(value):
            if (value, other) not in self.tiles:
                converted = self.add(nv.ConvertOp(made, laid_out(tile_type(value), other)), source)
                self.tiles[value, other] = converted.results[0]

    def _block(self, block: Block) -> Operation:
        for op in block.ops:
            if op is block.last_op:
                return op
            self.lower(op)
        raise AssertionError("a block without a terminator")

    def lower(self, op: Operation) -> None:
        """Lowers an op and what is in it."""
        outside, self.at = self.at, op
        self._op(op)
        self.at = outside

    def _op(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case scf.WhileOp():
                self._while(op)
            case tile.LoadOp() if op.result in self.analysis.staged or goes_through_shared_memory(op):
                self._stage(op)
            case tile.LoadOp():
                for layout in self.analysis.made(op.result):
                    made = op.clone({**self.values})
                    self._typed(made, op.result, layout)
                    self._hold(op.result, layout, self.add(made, op).results[0], op)
            case tile.StoreOp():
                self._store(op)
            case tile.AtomicOp():
                value = self.tile(op.value, self._known(op.value))
                self.add(self._clone(op, {op.value: value}), op)
            case tile.WriteOp() | tile.AtomicAtOp():
                layout = self.analysis.for_places(op)
                self.add(self._clone(op, {one: self.tile(one, layout) for one in at_places(op)}), op)
            case tile.AssertOp() if is_tile(op.condition):
                self.add(self._clone(op, {op.condition: self.tile(op.condition, self._known(op.condition))}), op)
            case tile.DotOp():
                self._dot(op)
            case arith.DivSIOp() | arith.RemSIOp() | arith.FloorDivSIOp() if self._divides_little(op):
                self._divide(op)
            case pipe.RingOp() | pipe.CopyOp() | pipe.CommitOp() | pipe.WaitOp() | pipe.GetOp():
                self._pipe(op)
            case _ if op.results and is_tile(op.results[0]):
                self._compute(op)
            case _:
                made = self.add(self._clone(op, {}), op)
                self.values.update(zip(op.results, made.results, strict=True))

    def _divides_little(self, op: Division) -> bool:
        """Whether a division is written in 32 bits: dividing 64 is a long sequence of instructions."""
        return self.small and can_narrow_division(op, set(self.source.arguments))

    def _divide(self, op: Division) -> None:
        a, b = (self.add(arith.IndexCastOp(self.values[one], i32), op).results[0] for one in op.operands)
        kind = arith.RemUIOp if isinstance(op, arith.RemSIOp) else arith.DivUIOp
        quotient = self.add(kind(a, b), op).results[0]
        self.values[op.result] = self.add(arith.IndexCastOp(quotient, IndexType()), op).results[0]

    def _clone(self, op: Operation, tiles: dict[SSAValue, SSAValue]) -> Operation:
        return op.clone({**self.values, **tiles})

    def _typed(self, op: Operation, value: SSAValue, layout: Layout) -> None:
        """Gives a cloned op's result its layout."""
        Rewriter.replace_value_with_new_type(op.results[0], laid_out(tile_type(value), layout))

    def _known(self, value: SSAValue) -> Layout:
        """A layout in which a value is there."""
        return self.analysis.made(value)[0]

    def _compute(self, op: Operation) -> None:
        result = op.results[0]
        if result in self.analysis.staged:
            return
        for layout in self.analysis.made(result):
            operands = {value: self.tile(value, needed) for value, needed in needs(op, layout, self.analysis)}
            made = self._clone(op, operands)
            self._typed(made, result, layout)
            self._hold(result, layout, self.add(made, op).results[0], op)

    def _store(self, op: tile.StoreOp) -> None:
        layout = self.analysis.for_store(op)
        self.add(self._clone(op, {op.value: self.tile(op.value, layout)}), op)

    # Shared memory

    def _shared(self, type_: tuple[int, ...], op: Operation, value: SSAValue) -> SSAValue:
        """Shared memory for a tile, or several."""
        element, itemsize = tile_type(value).element_type, tile_dtype(value).storage.itemsize
        return self.add(nv.AllocOp(SharedType(type_, element, self._panel(type_[-1], itemsize))), op).results[0]

    def _panel(self, columns: int, itemsize: int) -> int:
        return panel_for(columns, itemsize, in_order=self.in_order)

    def _stage(self, op: tile.LoadOp) -> None:
        """A load that only dots read, or whose hint asks for it: straight into shared memory."""
        shared = self._shared(tile_type(op.result).get_shape(), op, op.result)
        self.add(nv.BarrierOp(), op)
        offsets = [self.values[offset] for offset in op.offsets]
        self.add(nv.CopyAsyncOp(self.values[op.view], offsets, shared), op)
        self.add(nv.CommitOp(), op)
        self.add(nv.WaitOp(0), op)
        self.staged[op.result] = shared
        self._read_shared(op, shared)

    def _read_shared(self, op: tile.LoadOp | pipe.GetOp, shared: SSAValue) -> None:
        """Reads a tile that is in shared memory into the layouts that are asked for."""
        for layout in self.analysis.made(op.result) if op.result not in self.analysis.staged else ():
            read = self.add(nv.ReadOp(shared, laid_out(tile_type(op.result), layout)), op)
            self._hold(op.result, layout, read.results[0], op)

    def _pipe(self, op: Operation) -> None:
        match op:
            case pipe.RingOp():
                ring = pipe.ring_type(op.result)
                type_ = pipe.slot_type(op.result)
                itemsize = SharedType(type_.get_shape(), type_.element_type, 16).itemsize
                panel = self._panel(type_.get_shape()[-1], itemsize)
                shared = SharedType((ring.depth.data, *type_.get_shape()), type_.element_type, panel)
                self.values[op.result] = self.add(nv.AllocOp(shared), op).results[0]
            case pipe.CopyOp():
                slot = self.add(nv.SlotOp(self.values[op.ring], self.values[op.slot]), op).results[0]
                offsets = [self.values[offset] for offset in op.offsets]
                self.add(nv.CopyAsyncOp(self.values[op.view], offsets, slot), op)
            case pipe.CommitOp():
                self.add(nv.CommitOp(), op)
            case pipe.WaitOp():
                self.add(nv.WaitOp(op.pending.value.data), op)
            case pipe.GetOp():
                slot = self.add(nv.SlotOp(self.values[op.ring], self.values[op.slot]), op).results[0]
                self.staged[op.result] = slot
                self._read_shared(op, slot)
            case _:
                raise AssertionError(op)

    # Dots

    def _dot(self, op: tile.DotOp) -> None:
        if not has_instruction(op):
            self._dot_by_columns(op)
            return
        layout = self.analysis.anchors[op.result].layout
        left, right = operand_of(op.a), operand_of(op.b)
        (shared,) = self._in_shared(op, [right])
        if left.staged:
            type_ = laid_out(tile_type(op.a), self.analysis.left(op))
            a = self.add(nv.ReadOp(self.staged[left.value], type_, transposed=left.transposed), op).results[0]
        else:
            a = self.tile(op.a, self.analysis.left(op))
        type_ = laid_out(tile_type(op.b), self.analysis.right(op))
        b = self.add(nv.ReadOp(shared, type_, transposed=right.transposed), op).results[0]
        made = self.add(nv.MmaOp(a, b, self.tile(op.c, layout)), op)
        self._hold(op.result, layout, made.results[0], op)

    def _in_shared(self, op: tile.DotOp, operands: Sequence[Operand]) -> list[SSAValue]:
        """The shared memory of the operands of a dot; those that were computed are written to it."""
        found = [self.staged[one.value] if one.staged else self._room(op, one.value) for one in operands]
        computed = [(one.value, shared) for one, shared in zip(operands, found, strict=True) if not one.staged]
        if computed:
            self.add(nv.BarrierOp(), op)
            for value, shared in computed:
                self.add(nv.WriteOp(self.tile(value, self._known(value)), shared), op)
            self.add(nv.BarrierOp(), op)
        return found

    def _room(self, op: tile.DotOp, value: SSAValue) -> SSAValue:
        return self._shared(tile_type(value).get_shape(), op, value)

    def _dot_by_columns(self, op: tile.DotOp) -> None:
        """A dot that the tensor cores do not have: every column of one operand with every row of the other."""
        layout, total = self.analysis.anchors[op.result].layout, tile_dtype(op.c)
        (rows, depth), (_, columns) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
        left, right = operand_of(op.a), operand_of(op.b)
        a, b = self._in_shared(op, [left, right])

        def spread(shared: SSAValue, shape: tuple[int, int], at: tuple[int, int], operand: Operand) -> SSAValue:
            row, column = reversed(at) if operand.transposed else at
            narrow = layout.narrowed(shape)
            type_ = laid_out(TensorType(tile_type(operand.value).element_type, shape), narrow)
            found = self.add(
                nv.ReadOp(shared, type_, row=row, column=column, transposed=operand.transposed), op
            ).results[0]
            if tile_dtype(operand.value) is not total:
                found = self._laid(tile.EwOp("cast", [found], to=total), narrow, op)
            return self._laid(tile.BroadcastOp(found, (rows, columns)), layout, op)

        accumulator = self.tile(op.c, layout)
        for step in range(depth):
            sides = spread(a, (rows, 1), (0, step), left), spread(b, (1, columns), (step, 0), right)
            product = self._laid(tile.EwOp("mul", sides), layout, op)
            accumulator = self._laid(tile.EwOp("add", [accumulator, product]), layout, op)
        self._hold(op.result, layout, accumulator, op)

    def _laid(self, made: Operation, layout: Layout, op: Operation) -> SSAValue:
        """Adds an op whose result gets a layout."""
        self._typed(made, made.results[0], layout)
        return self.add(made, op).results[0]

    # Control

    def _carried(self, values: Sequence[SSAValue], like: Sequence[SSAValue]) -> list[SSAValue]:
        """Values in the layouts of those that carry them."""
        return [part for value, other in zip(values, like, strict=True) for part in self._parts(value, other)]

    def _parts(self, value: SSAValue, carrier: SSAValue) -> Sequence[SSAValue]:
        """What a value becomes where another one carries it."""
        return [self.tile(value, self.analysis.anchors[carrier].layout) if is_tile(value) else self.values[value]]

    def _bind(self, old: Sequence[SSAValue], new: Sequence[SSAValue], op: Operation) -> None:
        """The other way round."""
        rest = iter(new)
        for value in old:
            self._bind_one(value, rest, op)

    def _bind_one(self, value: SSAValue, parts: Iterator[SSAValue], op: Operation) -> None:
        made = next(parts)
        if is_tile(value):
            self._hold(value, self.analysis.anchors[value].layout, made, op)
        else:
            self.values[value] = made
            made.name_hint = value.name_hint

    def _for(self, op: scf.ForOp) -> None:
        inner = op.body.block
        initial = self._carried(op.iter_args, inner.args[1:])
        body = Block(arg_types=[op.lb.type, *(value.type for value in initial)])
        outside, self.out = self.out, body
        self.values[inner.args[0]] = body.args[0]
        self._bind(inner.args[1:], body.args[1:], op)
        end = self._block(inner)
        body.add_op(scf.YieldOp(*self._carried(end.operands, inner.args[1:])))
        self.out = outside
        bounds = [self.values[value] for value in (op.lb, op.ub, op.step)]
        made = scf.ForOp(bounds[0], bounds[1], bounds[2], initial, Region(body))
        made.attributes.update(op.attributes)
        self.add(made, op)
        self._bind(op.results, made.results, op)

    def _if(self, op: scf.IfOp) -> None:
        regions: list[Region] = []
        outside = self.out
        types: list[SSAValue] = []
        for region in op.regions:
            if not region.blocks:
                regions.append(Region())
                continue
            self.out = Block()
            end = self._block(region.block)
            types = self._carried(end.operands, op.results)
            self.out.add_op(scf.YieldOp(*types))
            regions.append(Region(self.out))
        self.out = outside
        made = scf.IfOp(self.values[op.cond], [value.type for value in types], regions[0], regions[1])
        self.add(made, op)
        self._bind(op.results, made.results, op)

    def _while(self, op: scf.WhileOp) -> None:
        test, inner = op.before_region.block, op.after_region.block
        initial = self._carried(op.arguments, test.args)
        outside = self.out
        before = self.out = Block(arg_types=[value.type for value in initial])
        self._bind(test.args, before.args, op)
        condition = self._block(test)
        handed = self._carried(condition.operands[1:], inner.args)
        before.add_op(scf.ConditionOp(self.values[condition.operands[0]], *handed))
        after = self.out = Block(arg_types=[value.type for value in handed])
        self._bind(inner.args, after.args, op)
        end = self._block(inner)
        after.add_op(scf.YieldOp(*self._carried(end.operands, test.args)))
        self.out = outside
        made = scf.WhileOp(initial, [value.type for value in handed], Region(before), Region(after))
        self.add(made, op)
        self._bind(op.results, made.results, op)
