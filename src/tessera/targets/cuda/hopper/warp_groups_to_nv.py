"""Pipe dialect → nv level for sm_90a: partitions become warp groups, rings mbarriers and shared memory, dots wgmma.

A CTA has one producer warp group, of which one thread issues copies, perhaps one that transposes tiles, and one warp
group for each consumer. CTAs are persistent, and share the program instances of the grid. A pipeline state is a stage
and the parity of its phase; the producer begins in the phase before the first, which has ended. A consumer's tiles lie
over its 128 threads, as accumulators of wgmma do. Numbers of program instances are fetched from a counter of the
launch, which the last CTA to leave resets.

CTAs of a cluster share rings: a part of each tile is copied by each of them, into all; a stage is empty when the
consumers of all have released it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.attributes import integer
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import pingpong, prepare, tile_scheduler, transpose, warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.hopper.consumer_layouts import accumulator_layout, is_taken, left_layout
from tessera.targets.cuda.hopper.deferred_row_reduce import defer_row_reductions
from tessera.targets.cuda.hopper.epilogue_subtiling import subtile_epilogues
from tessera.targets.cuda.hopper.kernel_setup import (
    FAR_OUTSIDE,
    FETCHES,
    FIRST_PINGPONG,
    LEAVES,
    THREADS,
    TRANSPOSER_REGISTERS,
    WARPS,
    KernelSetup,
    Ring,
)
from tessera.targets.cuda.hopper.pipeline_state import share_pipeline_states
from tessera.targets.cuda.hopper.prefetch_small_loads import prefetch_small_loads
from tessera.targets.cuda.hopper.preparer_subtiling import subtile_preparers
from tessera.targets.cuda.hopper.shared_memory import BUFFERS, WARP_ROWS, fill_box, fill_boxes, store_columns, store_map
from tessera.targets.cuda.hopper.sink_wgmma_operands import sink_wgmma_operands
from tessera.targets.cuda.hopper.supported import check_alone
from tessera.targets.cuda.hopper.tma_boxes import box_of
from tessera.targets.cuda.hopper.warp_vote_max import vote_before_max
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper, hopper_copies, hopper_transpose, wgmma
from tessera.targets.cuda.ir.types import SharedType, laid_out
from tessera.targets.cuda.lower.division_narrowing import can_narrow_division
from tessera.targets.cuda.lower.layout_analysis import is_tile
from tessera.targets.cuda.lower.multiprocessor_model import first_registers
from tessera.targets.cuda.lower.tile_to_nv import replace_function
from tessera.targets.llvm.emitter_attributes import BITWISE
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.pipelining.promote_accumulators import is_zero


def lower_warp_groups(
    module: ModuleOp, name: str, *, registers: tuple[int, int] | None = None, row_aligned: Collection[int] | None = None
) -> None:
    """Replaces a tile function with partitions by an nv function.

    `registers` are those of a thread of the producer and of a consumer; by default all of a multiprocessor are shared
    out. Rows of the arguments `row_aligned`, by default of all, are contiguous and begin at multiples of 16 bytes: the
    others have no tensor maps.
    """
    function = symbol_in(module, name, tile.FuncOp)
    share_pipeline_states(function)
    replace_function(function, _finished(function, registers, row_aligned))


@dataclass(frozen=True)
class WarpGroupsToNv(FunctionPass):
    """Writes nv functions of tile functions with partitions, whose rows of some arguments are aligned."""

    name = "warp-groups-to-nv"
    row_aligned: tuple[int, ...] | None = None

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        replace_function(function, WarpGroupLowering(function, None, self.row_aligned).run())


def _finished(
    function: tile.FuncOp, registers: tuple[int, int] | None, row_aligned: Collection[int] | None
) -> nv.FuncOp:
    """The nv function, after the rewrites that follow."""
    made = WarpGroupLowering(function, registers, row_aligned).run()
    subtile_preparers(made)
    prefetch_small_loads(made)
    vote_before_max(made)
    partitions = [op for op in function.body.block.ops if isinstance(op, warp_groups.WarpSpecializeOp)]
    if any(op.consumers.value.data > 1 for op in partitions):
        defer_row_reductions(made)
    sink_wgmma_operands(made)
    subtile_epilogues(made)
    check_alone(made)
    return made


def can_lower(function: tile.FuncOp, row_aligned: Collection[int] | None = None) -> str | None:
    """The reason why a function with partitions has no form for sm_90a; None where it has one."""
    try:
        _finished(function, None, row_aligned)
    except CompileError as error:
        return error.message
    return None


class WarpGroupLowering(KernelSetup):
    """Writes the nv function of one tile function with partitions."""

    def run(self) -> nv.FuncOp:
        made = self.header(THREADS * (self.helpers + self.count))
        made.attributes |= {"persistent": integer(1), "blocks": integer(1)}
        self.entry = self.out
        self._begin()
        for op in self.source.body.block.ops:
            match op:
                case warp_groups.WarpSpecializeOp():
                    self._write_partitions(op)
                case pipe.RingOp() | tile_scheduler.WorkQueueOp() | tile.ReturnOp():
                    pass
                case _:
                    self.lower(op)
        if self.work_queues:
            made.attributes["counters"] = integer(4 * len((FETCHES, LEAVES)))
        if self._is_cluster:
            made.attributes["cluster"] = integer(self.cluster)
            # No block leaves while another one may still copy into it or arrive at its barriers.
            self.out.add_op(hopper.ClusterSyncOp(aligned=False))
        self.out.add_op(nv.ReturnOp())
        sweep(made.body.block)
        return made

    # Partitions

    def _write_partitions(self, op: warp_groups.WarpSpecializeOp) -> None:
        copying = Block()
        outside = self.out
        self.out, self.first_phase = Block(), 1
        self._run(op.producer.block)
        if self.work_queues:
            self._leave(op)
        self.out.add_op(scf.YieldOp())
        begins = Region(self.out)
        self.out = copying
        if self.registers is not None:
            self.add(hopper.SetmaxnregOp("dec", self.registers[0]), op)
        self.add(scf.IfOp(self.is_first, [], begins, Region()), op)
        copying.add_op(scf.YieldOp())

        self.first_phase = 0
        self.out = others = Block()
        computing = self._computes(op)
        if op.preparer is not None and self.preparers:
            preparing = self._prepares(op, op.preparer)
            self.out = others
            prepares = self.put(arith.CmpiOp(self.warpgroup, self.number(self.helpers), "ult"))
            self.add(scf.IfOp(prepares, [], Region(preparing), Region(computing)), op)
            others.add_op(scf.YieldOp())
        elif op.preparer is None:
            others = computing
        else:
            transposing = self._transposes(op, op.preparer)
            self.out = others
            transposes = self.put(arith.CmpiOp(self.warpgroup, self.number(1), "eq"))
            self.add(scf.IfOp(transposes, [], Region(transposing), Region(computing)), op)
            others.add_op(scf.YieldOp())
        self.out = outside
        produces = self.put(arith.CmpiOp(self.warpgroup, self.number(0), "eq"))
        self.add(scf.IfOp(produces, [], Region(copying), Region(others)), op)

    def _computes(self, op: warp_groups.WarpSpecializeOp) -> Block:
        self.out = computing = Block()
        if self.registers is not None:
            self.add(hopper.SetmaxnregOp("inc", self.registers[1]), op)
        self.consumer = self.put(arith.SubiOp(self.warpgroup, self.number(self.helpers)))
        self._lead()
        if self._is_cluster:
            self._begin_releases()
        if self.rooms:
            self._begin_stores()
        if any(isinstance(inner, pingpong.PingpongWaitOp) for inner in op.consumer.walk()):
            self._begin_pingpong(op)
        self._run(op.consumer.block)
        if self.rooms:
            self.add(hopper_copies.TmaWaitOp(0), op)
        computing.add_op(scf.YieldOp())
        return computing

    def _transposes(self, op: warp_groups.WarpSpecializeOp, partition: Region) -> Block:
        self.out = transposing = Block()
        if self.registers is not None:
            self.add(hopper.SetmaxnregOp("dec", TRANSPOSER_REGISTERS), op)
        self._lead()
        self._run(partition.block)
        transposing.add_op(scf.YieldOp())
        return transposing

    def _prepares(self, op: warp_groups.WarpSpecializeOp, partition: Region) -> Block:
        self.out = preparing = Block()
        less = self.preparer_registers <= first_registers(self.helpers + self.count)
        self.add(hopper.SetmaxnregOp("dec" if less else "inc", self.preparer_registers), op)
        self._lead()
        self.is_preparing = True
        self._run(partition.block)
        self.is_preparing = False
        preparing.add_op(scf.YieldOp())
        for inner in preparing.walk():
            # A warp has a scheduler nearly to itself: it would wait for each number that is converted.
            if isinstance(inner, tile.EwOp) and inner.fn.data in ("cast", "mul"):
                inner.attributes[BITWISE] = UnitAttr()
        return preparing

    def _lead(self) -> None:
        """Makes the condition that holds for one lane of each warp, which arrives for all of it."""
        self.leads = self.put(arith.CmpiOp(self.put(hopper.IdOp("lane")), self.number(0), "eq"))

    def _run(self, block: Block) -> None:
        for op in block.ops:
            self.lower(op)

    def _op(self, op: Operation) -> None:
        match op:
            case warp_groups.ConsumerIdOp():
                self.values[op.result] = self.wide(self.consumer)
            case warp_groups.CtaIdOp():
                self.values[op.result] = self.wide(self.put(hopper.IdOp("block")))
            case warp_groups.CtaCountOp():
                self.values[op.result] = self.wide(self.put(hopper.IdOp("blocks")))
            case warp_groups.GridExtentOp():
                self.values[op.result] = self.wide(self.put(hopper.ExtentOp(op.axis.value.data)))
            case warp_groups.PipelineStateOp():
                self.states[op.result] = self.number(0), self.number(self.first_phase)
            case warp_groups.AdvanceOp():
                slot, phase = self.states[op.state]
                made = self.add(hopper.AdvanceOp(slot, phase, warp_groups.state_depth(op.state)), op)
                self.states[op.result] = made.results[0], made.results[1]
            case warp_groups.ProducerCopyOp():
                self._fill(op)
            case warp_groups.ProducerCopyBoxesOp():
                self._fill_boxes(op)
            case transpose.TransposeSmemOp():
                self._transpose(op)
            case warp_groups.ConsumerWaitOp() if self.is_preparing:
                self._read_ring(op)
            case prepare.ProducerWriteOp():
                self._write_ring(op)
            case warp_groups.ConsumerWaitOp():
                self._take(op)
            case warp_groups.ConsumerReleaseOp():
                self._release(op)
            case tile_scheduler.SchedulerFetchOp():
                self._fetch(op)
            case tile_scheduler.SchedulerReadOp():
                self._read(op)
            case pingpong.PingpongWaitOp():
                self.add(hopper.BarrierSyncOp(self.own_pingpong, 2 * THREADS), op)
            case pingpong.PingpongArriveOp():
                self.add(hopper.BarrierArriveOp(self.next_pingpong, 2 * THREADS), op)
            case warp_groups.DotStartOp():
                self._start(op)
            case warp_groups.DotWaitOp():
                self._await(op)
            case warp_groups.DotsWaitOp():
                self.add(wgmma.WgmmaWaitOp(op.younger.value.data), op)
            case tile.AnyOp():
                asked = self.tile(op.operand, self._known(op.operand))
                self.values[op.result] = self.add(wgmma.AnyOp(asked), op).results[0]
            case tile.StoreOp() if self._goes_out(op):
                self._send(op)
            case scf.IfOp() if (store := _only_store(op)) is not None and self._goes_out(store):
                # Dots may be in flight: there is no branch, and only copies depend on the condition.
                self._send(store, self.values[op.cond])
            case arith.DivSIOp() | arith.RemSIOp() | arith.FloorDivSIOp() if can_narrow_division(op, self.mapped):
                self._divide(op)
            case _:
                super()._op(op)

    def _parts(self, value: SSAValue, carrier: SSAValue) -> Sequence[SSAValue]:
        return self.states[value] if value in self.states else super()._parts(value, carrier)

    def _bind_one(self, value: SSAValue, parts: Iterator[SSAValue], op: Operation) -> None:
        if not isinstance(value.type, warp_groups.PipelineStateType):
            super()._bind_one(value, parts, op)
            return
        slot, phase = self.states[value] = next(parts), next(parts)
        slot.name_hint, phase.name_hint = f"{value.name_hint or 'state'}_slot", f"{value.name_hint or 'state'}_phase"

    # Rings

    def _fill(self, op: warp_groups.ProducerCopyOp) -> None:
        ring, (slot, _) = self.rings[op.ring], self.states[op.state]
        box = fill_box(op)
        found = ring.plan.copies(box)
        map_ = self._map(box.argument, found.axes, found.map)
        whole = self._acquire(op, found.memory)
        shift = found.shift
        blocks = None if shift is None else self.number((1 << self.cluster) - 1)
        for piece in found.pieces:
            target = whole
            for index, number in enumerate(piece.path):
                tile_ = self.number(number)
                if shift is not None and index == shift.index:
                    tile_ = self._moved(tile_, shift.tiles)
                target = self.put(nv.SlotOp(target, tile_))
            offsets = [self.narrow(start, more) for start, more in found.offsets(box, piece)]
            if shift is not None:
                offsets[:2] = self._moved(offsets[0], shift.columns), self._moved(offsets[1], shift.rows)
            self.add(hopper_copies.TmaLoadOp(map_, offsets, target, ring.full, slot, multicast=blocks), op)

    def _acquire(self, op: warp_groups.ProducerCopies, seen: Sequence[SharedType]) -> SSAValue:
        """Waits for an empty slot, says how many bytes will come, and gives the slot, as the last type sees it."""
        ring, (slot, phase) = self.rings[op.ring], self.states[op.state]
        if ring.bytes:
            self.add(hopper.MbarrierWaitOp(ring.empty, slot, phase), op)
            self.add(hopper.MbarrierExpectOp(ring.full, slot, ring.bytes), op)
        memory = ring.memory
        for type_ in seen[1:]:
            memory = self.add(hopper_copies.RecastOp(memory, type_), op).results[0]
        return self.put(nv.SlotOp(memory, slot))

    def _fill_boxes(self, op: warp_groups.ProducerCopyBoxesOp) -> None:
        ring, (slot, _) = self.rings[op.ring], self.states[op.state]
        boxes = fill_boxes(op)
        found = ring.plan.box_copies(boxes, cut=op.until is not None)
        (down, across), rows = boxes[0].axes, found.rows
        starts = [{axis: self.narrow(start) for axis, start in enumerate(box.starts)} for box in boxes]
        maps = {size: self._map(boxes[0].argument, found.axes, type_) for size, type_ in found.maps.items()}
        whole, panels = self._acquire(op, found.memory), ring.plan.panels
        targets = [whole if panels == 1 else self.put(nv.SlotOp(whole, self.number(one))) for one in range(panels)]

        def copy(box: int, size: int, below: SSAValue, begins: SSAValue | None = None) -> None:
            """Copies so many rows of a box to their place, from a row `below` its first on; zeros if they are none."""
            coordinate = self.put(arith.AddiOp(starts[box][down], below))
            if begins is not None:
                coordinate = self.put(arith.SelectOp(begins, coordinate, self.number(FAR_OUTSIDE)))
            row = self.put(arith.AddiOp(self.number(box * rows), below))
            for panel, target in enumerate(targets):
                column = starts[box][across]
                if panel:
                    column = self.put(arith.AddiOp(column, self.number(panel * ring.plan.panel)))
                offsets = [column, coordinate, *(starts[box][axis] for axis in boxes[box].others)]
                self.add(hopper_copies.TmaLoadOp(maps[size], offsets, target, ring.full, slot, row=row), op)

        def copy_until(until: SSAValue, box: int, sizes: Sequence[int], below: SSAValue) -> None:
            """Copies what comes before an end: all of the first of the sizes, or, where they are cut, smaller ones."""
            size, *smaller = sizes
            row = self.put(arith.AddiOp(self.number(box * rows), below))
            begins = self.put(arith.CmpiOp(row, until, "slt"))
            if not smaller:
                copy(box, size, below, begins)
                return
            ends = self.put(arith.CmpiOp(until, self.put(arith.AddiOp(row, self.number(size))), "slt"))

            def copy_parts() -> None:
                body = Block(arg_types=[i32])
                outside, self.out = self.out, body
                copy_until(until, box, smaller, self.put(arith.AddiOp(below, body.args[0])))
                body.add_op(scf.YieldOp())
                self.out = outside
                bounds = self.number(0), self.number(size), self.number(smaller[0])
                self.add(scf.ForOp(*bounds, [], Region(body)), op)

            is_cut = self.put(arith.AndIOp(begins, ends))
            self._choose(op, is_cut, copy_parts, partial(copy, box, size, below, begins))

        def copy_all() -> None:
            for box in range(len(boxes)):
                copy(box, rows, self.number(0))

        def copy_some(until: SSAValue) -> None:
            for box in range(len(boxes)):
                copy_until(until, box, list(maps), self.number(0))

        if op.until is None:
            copy_all()
            return
        most = self.number(len(boxes) * rows)
        held = arith.MinSIOp(self.put(arith.MaxSIOp(self.values[op.until], self.wide(self.number(0)))), self.wide(most))
        until = self.put(arith.IndexCastOp(self.put(held), i32))
        self._choose(op, self.put(arith.CmpiOp(until, most, "eq")), copy_all, partial(copy_some, until))

    def _choose(self, op: Operation, condition: SSAValue, yes: Callable[[], None], no: Callable[[], None]) -> None:
        """Writes a branch."""
        outside, regions = self.out, list[Region]()
        for write in (yes, no):
            self.out = Block()
            write()
            self.out.add_op(scf.YieldOp())
            regions.append(Region(self.out))
        self.out = outside
        self.add(scf.IfOp(condition, [], regions[0], regions[1]), op)

    def _moved(self, number: SSAValue, by_rank: int) -> SSAValue:
        """A number plus so many for each block before this one in its cluster."""
        return self.put(arith.AddiOp(number, self.by_rank[by_rank])) if by_rank else number

    def _begin_releases(self) -> None:
        """Makes what releases in a cluster need: each of a warp's first lanes arrives at the barriers of one block."""
        lane = self.put(hopper.IdOp("lane"))
        self.frees = self.put(arith.CmpiOp(lane, self.number(self.cluster), "ult"))
        other = self.put(arith.AndIOp(lane, self.number(self.cluster - 1)))
        for ring in self.rings.values():
            if ring.bytes and ring.shared:
                ring.freed = self.put(hopper.MapaOp(ring.empty, other))

    def _release(self, op: warp_groups.ConsumerReleaseOp) -> None:
        ring, (slot, _) = self.rings[op.ring], self.states[op.state]
        if self.is_preparing:
            # The lane that arrives does so for all of its warp, which has read the tile.
            self.add(hopper.WarpSyncOp(), op)
        if ring.freed is not None:
            self.add(hopper.MbarrierArriveOp(ring.freed, slot, condition=self.frees), op)
        elif ring.bytes:
            self.add(hopper.MbarrierArriveOp(ring.empty, slot, condition=self.leads), op)

    def _transpose(self, op: transpose.TransposeSmemOp) -> None:
        ring, transposed, (slot, phase) = self.rings[op.ring], self.rings[op.transposed], self.states[op.state]
        other = self.put(arith.XOrIOp(phase, self.number(1)))
        self.add(hopper.MbarrierWaitOp(transposed.empty, slot, other), op)
        self.add(hopper.MbarrierWaitOp(ring.full, slot, phase), op)
        self.add(hopper_transpose.TransposeSmemOp(self._slot(ring, slot), self._slot(transposed, slot)), op)
        self.add(hopper.FenceOp("async"), op)
        # The lane that arrives does so for all of its warp.
        self.add(hopper.WarpSyncOp(), op)
        self.add(hopper.MbarrierArriveOp(ring.empty, slot, condition=self.leads), op)
        self.add(hopper.MbarrierArriveOp(transposed.full, slot, condition=self.leads), op)

    def _read_ring(self, op: warp_groups.ConsumerWaitOp) -> None:
        """Waits for a tile, and reads it into registers, in the layouts in which it is needed."""
        ring, (slot, phase) = self.rings[op.ring], self.states[op.state]
        self.add(hopper.MbarrierWaitOp(ring.full, slot, phase), op)
        shared = self._slot(ring, slot)
        for layout in self.analysis.made(op.result):
            read = self.add(nv.ReadOp(shared, laid_out(tile_type(op.result), layout)), op)
            self._hold(op.result, layout, read.results[0], op)

    def _write_ring(self, op: prepare.ProducerWriteOp) -> None:
        ring, (slot, phase) = self.rings[op.ring], self.states[op.state]
        other = self.put(arith.XOrIOp(phase, self.number(1)))
        self.add(hopper.MbarrierWaitOp(ring.empty, slot, other), op)
        value = self.tile(op.value, self.layouts.for_write(op.value))
        self.add(nv.WriteOp(value, self._slot(ring, slot)), op)
        self.add(hopper.FenceOp("async"), op)
        # The lane that arrives does so for all of its warp.
        self.add(hopper.WarpSyncOp(), op)
        self.add(hopper.MbarrierArriveOp(ring.full, slot, condition=self.leads), op)

    def _slot(self, ring: Ring, slot: SSAValue) -> SSAValue:
        """A slot as the preparer and the consumers see it."""
        memory = ring.memory
        if ring.plan.taken != ring.plan.memory:
            memory = self.put(hopper_copies.RecastOp(memory, ring.plan.taken))
        return self.put(nv.SlotOp(memory, slot))

    def _take(self, op: warp_groups.ConsumerWaitOp) -> None:
        ring, (slot, phase) = self.rings[op.ring], self.states[op.state]
        if ring.bytes:
            self.add(hopper.MbarrierWaitOp(ring.full, slot, phase), op)
        found = self._slot(ring, slot)
        if ring.plan.parts > 1:
            found = self.put(nv.SlotOp(found, self.consumer))
        self.staged[op.result] = found

    # Tile scheduler

    def _fetch(self, op: tile_scheduler.SchedulerFetchOp) -> None:
        work_queue, (slot, phase) = self.work_queues[op.work_queue], self.states[op.state]
        fetched = self.add(hopper.CountOp(FETCHES, self.number(1)), op).results[0]
        number = self.put(arith.AddiOp(fetched, self.put(hopper.IdOp("blocks"))))
        self.add(hopper.MbarrierWaitOp(work_queue.empty, slot, phase), op)
        self.add(hopper.PutOp(number, work_queue.words, slot), op)
        self.add(hopper.MbarrierArriveOp(work_queue.full, slot), op)
        self.values[op.result] = self.wide(number)

    def _read(self, op: tile_scheduler.SchedulerReadOp) -> None:
        work_queue, (slot, phase) = self.work_queues[op.work_queue], self.states[op.state]
        self.add(hopper.MbarrierWaitOp(work_queue.full, slot, phase), op)
        number = self.add(hopper.GetOp(work_queue.words, slot), op).results[0]
        # The lane that arrives does so for all of its warp.
        self.add(hopper.WarpSyncOp(), op)
        self.add(hopper.MbarrierArriveOp(work_queue.empty, slot, condition=self.leads), op)
        self.values[op.result] = self.wide(number)

    def _leave(self, op: warp_groups.WarpSpecializeOp) -> None:
        """Lets the last block reset the counters for the next launch."""
        left = self.put(hopper.CountOp(LEAVES, self.number(1)))
        last = self.put(arith.SubiOp(self.put(hopper.IdOp("blocks")), self.number(1)))
        is_last = self.put(arith.CmpiOp(left, last, "eq"))
        resets = Block([hopper.ResetOp(FETCHES), hopper.ResetOp(LEAVES), scf.YieldOp()])
        self.add(scf.IfOp(is_last, [], Region(resets), Region()), op)

    # Ping-pong

    def _begin_pingpong(self, op: warp_groups.WarpSpecializeOp) -> None:
        """Makes the ping-pong barriers: a consumer waits at its own, at which the one before it arrives; the last one
        arrives at the first."""
        last, first = self.number(self.count - 1), self.number(FIRST_PINGPONG)
        is_last = self.put(arith.CmpiOp(self.consumer, last, "eq"))
        self.own_pingpong = self.put(arith.AddiOp(self.consumer, first))
        after = self.put(arith.AddiOp(self.own_pingpong, self.number(1)))
        self.next_pingpong = self.put(arith.SelectOp(is_last, first, after))
        begins = Block([hopper.BarrierArriveOp(first, 2 * THREADS), scf.YieldOp()])
        self.add(scf.IfOp(is_last, [], Region(begins), Region()), op)

    # Dots

    def _start(self, op: warp_groups.DotStartOp) -> None:
        a, is_across = self._staged(op.a) if is_taken(op.a) else (self.tile(op.a, left_layout(op)), False)
        b, is_transposed = self._staged(op.b)
        accumulator = None if is_zero(op.c) else self._accumulator(op.c)
        type_ = laid_out(warp_groups.accumulator_type(op.result), accumulator_layout(op.result))
        made = wgmma.WgmmaOp(a, b, type_, across=is_across, transposed=is_transposed, sum=accumulator)
        self.values[op.result] = self.add(made, op).results[0]

    def _staged(self, value: SSAValue) -> tuple[SSAValue, bool]:
        """A tile in shared memory, and whether dots read its transpose."""
        owner = value.owner
        return (self.staged[owner.operand], True) if isinstance(owner, tile.TransOp) else (self.staged[value], False)

    def _accumulator(self, value: SSAValue) -> SSAValue:
        return self.tile(value, accumulator_layout(value)) if is_tile(value) else self.values[value]

    def _await(self, op: warp_groups.DotWaitOp) -> None:
        kept = [self.tile(start.a, left_layout(start)) for start in _reads_registers(op.pending)]
        made = self.add(wgmma.WgmmaWaitOp(op.younger.value.data, [self.values[op.pending]], kept), op)
        self._hold(op.result, accumulator_layout(op.result), made.results[0], op)

    # Stores

    def _begin_stores(self) -> None:
        """Makes the shared memory of each warp, and its first row among those of the consumer."""
        warp = self.put(hopper.IdOp("warp"))
        cta = self.put(arith.SubiOp(warp, self.number(WARPS * self.helpers)))
        self.buffers = {
            element: [
                self.put(nv.SlotOp(self.put(nv.SlotOp(room, cta)), self.number(index))) for index in range(BUFFERS)
            ]
            for element, room in self.rooms.items()
        }
        inside = self.put(arith.AndIOp(cta, self.number(WARPS - 1)))
        self.warp_row = self.put(arith.MuliOp(inside, self.number(WARP_ROWS)))

    def _send(self, op: tile.StoreOp, condition: SSAValue | None = None) -> None:
        """Each warp puts a panel of its rows into shared memory, from where a copy takes them, and goes on."""
        box = box_of(op.view, op.offsets)
        assert box is not None
        type_ = tile_type(op.value)
        value, element = self.tile(op.value, self.analysis.for_store(op)), type_.element_type
        map_ = self._map(box.argument, *store_map(box, element))
        down, across = box.axes
        row = self.put(arith.AddiOp(self.narrow(box.starts[down], stored=True), self.warp_row))
        others = [self.narrow(box.starts[axis], stored=True) for axis in box.others]
        sends = self.leads if condition is None else self.put(arith.AndIOp(self.leads, condition))
        for index, column in enumerate(store_columns(type_.get_shape()[1], element)):
            buffer = self.buffers[element][index % BUFFERS]
            if index not in range(1, BUFFERS):
                # The first one waits for all that went before: that was long ago.
                self.add(hopper_copies.TmaWaitOp(BUFFERS - 1 if index else 0, read=True), op)
                self.add(hopper.WarpSyncOp(), op)
            self.add(wgmma.StmatrixOp(value, column, buffer), op)
            self.add(hopper.FenceOp("async"), op)
            self.add(hopper.WarpSyncOp(), op)
            offsets = [self.narrow(box.starts[across], column, stored=True), row, *others]
            self.add(hopper_copies.TmaStoreOp(buffer, map_, offsets, condition=sends), op)
            self.add(hopper_copies.TmaCommitOp(), op)


def _only_store(op: scf.IfOp) -> tile.StoreOp | None:
    """The store under a condition, if there is nothing else."""
    inside = [inner for region in op.regions for block in region.blocks for inner in block.ops]
    stores = [inner for inner in inside if isinstance(inner, tile.StoreOp)]
    others = [inner for inner in inside if not isinstance(inner, tile.StoreOp | scf.YieldOp)]
    return stores[0] if len(stores) == 1 and not others and not op.results else None


def _reads_registers(pending: SSAValue) -> Iterator[warp_groups.DotStartOp]:
    """Dots that may still read tiles in registers, among those that a chain of accumulators shows."""
    owner = pending.owner
    if isinstance(owner, warp_groups.DotStartOp):
        if not is_taken(owner.a):
            yield owner
        yield from _reads_registers(owner.c)
