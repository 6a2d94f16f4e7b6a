"""The prologue of a warp-specialized nv function: rings, barriers, tensor maps and register budgets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import tile_scheduler, warp_groups
from tessera.ir.pipe.prepare import ProducerWriteOp, feeds_preparer, is_prepared
from tessera.ir.pipe.transpose import is_transposed_from, is_transposed_into
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import rests_on_memory
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.emit.divisors import is_natural
from tessera.targets.cuda.hopper.barrier_sharing import leaders
from tessera.targets.cuda.hopper.consumer_layouts import ConsumerLayouts, is_accumulator
from tessera.targets.cuda.hopper.shared_memory import MapAxes, RingPlan, Shift, fill_box, fill_boxes, staging, store_map
from tessera.targets.cuda.hopper.supported import check_warp_groups, refusal
from tessera.targets.cuda.hopper.tma_boxes import Box, Start, box_of, is_mapped
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper, hopper_copies
from tessera.targets.cuda.ir.hopper_types import BarriersType, MapType
from tessera.targets.cuda.lower.division_narrowing import Division, is_of_instances
from tessera.targets.cuda.lower.layout_analysis import Shape
from tessera.targets.cuda.lower.multiprocessor_model import preparer_groups, preparing_registers
from tessera.targets.cuda.lower.tile_to_nv import Lowering
from tessera.transforms.core.constants import integer_of

WARPS, THREADS = 4, 128
"""Of a warpgroup."""
ALL_REGISTERS = 65536
"""Of a multiprocessor."""
FAR_OUTSIDE = 2**31 - 2**16
"""A coordinate behind every array. Copies to memory fault at negative ones, those from there do not."""
LEAST_REGISTERS, MOST_REGISTERS = 24, 232
"""Of a thread of the producer, and of a consumer: with a few more, too few would be left for four coordinates."""
TRANSPOSER_REGISTERS, COPY_REGISTERS = 40, 32
"""Of a thread of a preparer that transposes, and the least of the producer beside it."""
BOX_REGISTERS = 56
"""The least of a producer that copies several boxes at a time: it keeps where each of them begins."""
FIRST_PINGPONG = 1
"""The ping-pong barrier of consumer 0, a named one; those of other consumers follow. 0 is for all threads."""
FETCHES, LEAVES = 0, 1
"""Counters of a launch: program instances that were fetched, and blocks that have left. Each has four bytes."""


def share_registers(count: int, *, transposes: bool = False, boxes: bool = False) -> tuple[int, int] | None:
    """The registers of a thread of the producer and of a consumer; None where all have enough without `setmaxnreg`.

    Where a warp group `transposes` tiles, its threads have registers, too; and the producer has more for `boxes`.
    """
    if count == 1 and not transposes:
        return None
    groups = count + (2 if transposes else 1)
    first = ALL_REGISTERS // (THREADS * groups) // 8 * 8
    # The sum over one thread of each warp group.
    pool = first * groups - (TRANSPOSER_REGISTERS if transposes else 0)
    least = BOX_REGISTERS if boxes else COPY_REGISTERS if transposes else LEAST_REGISTERS
    more = min(MOST_REGISTERS, (pool - least) // count // 8 * 8)
    return min(first, (pool - more * count) // 8 * 8), more


@dataclass
class Ring:
    """A ring of the nv function."""

    plan: RingPlan
    memory: SSAValue
    full: SSAValue
    empty: SSAValue
    bytes: int
    """Bytes of an iteration that its barriers count: 0 where it shares those of another ring."""
    fillers: int
    """Arrivals that make a slot full: of one thread, or of a lane of each warp of the preparer."""
    readers: int
    """Arrivals that make it empty: of a lane of each warp, of all blocks that share it."""
    shared: bool = False
    """Whether blocks of a cluster arrive at its barriers."""
    freed: SSAValue | None = None
    """The barriers of another block of the cluster, at which a lane releases a slot."""


@dataclass
class WorkQueue:
    """The work queue of a tile scheduler in the nv function: a word for each slot."""

    words: SSAValue
    full: SSAValue
    empty: SSAValue
    readers: int
    fillers: int = 1


class KernelSetup(Lowering):
    """Writes the prologue of the nv function of one tile function with partitions."""

    def __init__(
        self, function: tile.FuncOp, registers: tuple[int, int] | None, row_aligned: Collection[int] | None
    ) -> None:
        check_warp_groups(function)
        (self.partitions,) = (op for op in function.body.block.ops if isinstance(op, warp_groups.WarpSpecializeOp))
        self.count = self.partitions.consumers.value.data
        self.preparers = preparer_groups(self.count, _widest(self.partitions)) if _computes(self.partitions) else 0
        """Warp groups of a preparer that computes operands."""
        prepares = Shape(WARPS * max(1, self.preparers))
        self.layouts = ConsumerLayouts(function, Shape(WARPS), preparing=prepares)
        super().__init__(function, self.layouts)
        self.cluster = pipe.cluster_of(function)
        transposes = self.partitions.preparer is not None and not self.preparers
        self.helpers = 2 if transposes else 1 + self.preparers
        """Warp groups in front of the consumers."""
        boxes = any(isinstance(op, warp_groups.ProducerCopyBoxesOp) for op in self.partitions.producer.walk())
        shared = share_registers(self.count, transposes=transposes, boxes=boxes)
        self.registers = shared if registers is None else registers
        self.preparer_registers = 0
        if self.preparers:
            least, self.preparer_registers, most = preparing_registers(self.count, self.preparers)
            self.registers = least, most
        self.row_aligned = range(len(function.arguments)) if row_aligned is None else row_aligned
        self.states: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
        self.rings: dict[SSAValue, Ring] = {}
        self.work_queues: dict[SSAValue, WorkQueue] = {}
        self.maps: dict[tuple[SSAValue, MapAxes, MapType], SSAValue] = {}
        self.mapped: set[SSAValue] = set()
        """Arguments that have maps."""
        self.rooms: dict[Attribute, SSAValue] = {}
        """Shared memory that stores go through, by element type."""
        self.numbers: dict[int, SSAValue] = {}
        self.by_rank: dict[int, SSAValue] = {}
        """Multiples of the block's number in its cluster."""
        self.entry: Block
        self.first_phase = 0
        self.is_preparing = False
        """Whether the ops that are lowered are those of the preparer."""

    @property
    def _is_cluster(self) -> bool:
        return any(ring.plan.blocks > 1 for ring in self.rings.values())

    # Numbers

    def put(self, op: Operation) -> SSAValue:
        """Adds an op to the current partition, at the location of the op that is being lowered."""
        return self.add(op, self.at).results[0]

    def number(self, value: int) -> SSAValue:
        if value not in self.numbers:
            made = arith.ConstantOp(IntegerAttr(value, i32))
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(made)
            else:
                self.entry.insert_op_before(made, first)
            self.numbers[value] = made.result
        return self.numbers[value]

    def narrow(self, start: Start, more: int = 0, *, stored: bool = False) -> SSAValue:
        """A coordinate plus a constant, in the 32 bits that copies take; numbers that they do not, lie far outside."""
        if isinstance(start, int):
            return self.number(start + more)
        known = integer_of(start)
        if known is not None and not (stored and known < 0):
            return self.number(known + more)
        found = self.put(arith.IndexCastOp(self.values[start], i32))
        if stored and not is_natural(start, is_of_instances):
            held = self.put(arith.CmpiOp(self.values[start], self.wide(self.number(FAR_OUTSIDE)), "ult"))
            found = self.put(arith.SelectOp(held, found, self.number(FAR_OUTSIDE)))
        elif not stored and rests_on_memory(start):
            held = self.put(arith.CmpiOp(self.wide(found), self.values[start], "eq"))
            found = self.put(arith.SelectOp(held, found, self.number(FAR_OUTSIDE)))
        return self.put(arith.AddiOp(found, self.number(more))) if more else found

    def _divide(self, op: Division) -> None:
        a, b = (self.put(arith.IndexCastOp(self.values[operand], i32)) for operand in op.operands)
        kind = arith.RemUIOp if isinstance(op, arith.RemSIOp) else arith.DivUIOp
        self.values[op.result] = self.wide(self.put(kind(a, b)))

    def wide(self, value: SSAValue) -> SSAValue:
        return self.put(arith.IndexCastOp(value, IndexType()))

    # In front of the partitions

    def _begin(self) -> None:
        self._make_rings()
        self._make_work_queues()
        for op in self.source.body.walk():
            self.at = op
            if isinstance(op, warp_groups.ProducerCopyOp):
                box = fill_box(op)
                self._check_aligned(op, box)
                found = self.rings[op.ring].plan.copies(box)
                self._map(box.argument, found.axes, found.map)
                if found.shift is not None:
                    self._shift(found.shift)
            elif isinstance(op, warp_groups.ProducerCopyBoxesOp):
                boxes = fill_boxes(op)
                self._check_aligned(op, boxes[0])
                copies = self.rings[op.ring].plan.box_copies(boxes, cut=op.until is not None)
                for map_ in copies.maps.values():
                    self._map(boxes[0].argument, copies.axes, map_)
            elif isinstance(op, tile.StoreOp) and self._goes_out(op):
                box = box_of(op.view, op.offsets)
                assert box is not None
                element = tile_type(op.value).element_type
                self._map(box.argument, *store_map(box, element))
                if element not in self.rooms:
                    self.rooms[element] = self.put(nv.AllocOp(staging(self.count, element)))
        self.at = self.partitions
        self.thread = self.put(hopper.IdOp("thread"))
        self.warpgroup = self.put(hopper.IdOp("warpgroup"))
        self.is_first = self.put(arith.CmpiOp(self.thread, self.number(0), "eq"))
        with_first = Block()
        outside, self.out = self.out, with_first
        for map_ in self.maps.values():
            self.add(hopper_copies.PrefetchOp(map_), _owner(map_))
        for ring in (*(ring for ring in self.rings.values() if ring.bytes), *self.work_queues.values()):
            self.add(hopper.MbarrierInitOp(ring.full, ring.fillers), _owner(ring.full))
            blocks = self.cluster if isinstance(ring, Ring) and ring.shared else 1
            self.add(hopper.MbarrierInitOp(ring.empty, ring.readers * blocks), _owner(ring.empty))
        self.add(hopper.FenceOp("init"), self.partitions)
        self.add(hopper.FenceOp("async"), self.partitions)
        with_first.add_op(scf.YieldOp())
        self.out = outside
        self.add(scf.IfOp(self.is_first, [], Region(with_first), Region()), self.partitions)
        self.add(nv.BarrierOp(), self.partitions)
        if self._is_cluster:
            self.add(hopper.ClusterSyncOp(aligned=True), self.partitions)

    def _check_aligned(self, op: Operation, box: Box) -> None:
        if box.argument.index not in self.row_aligned:
            raise refusal(op, "a tile is copied out of an argument whose rows are not aligned to 16 bytes")

    def _shift(self, shift: Shift) -> None:
        """Makes the numbers by which the pieces of this block are shifted."""
        for number in (shift.tiles, shift.rows, shift.columns):
            if number and number not in self.by_rank:
                rank = self.put(hopper.IdOp("rank"))
                self.by_rank[number] = self.put(arith.MuliOp(rank, self.number(number)))

    def _make_rings(self) -> None:
        first = leaders(self.source)
        rings = [op for op in self.source.body.block.ops if isinstance(op, pipe.RingOp)]
        for op in sorted(rings, key=lambda op: first[op.result] is not op.result):
            self.at = op
            plan, name = RingPlan.of(op, self.count, self.cluster), op.result.name_hint or "ring"
            memory = self.put(nv.AllocOp(plan.memory))
            memory.name_hint = name
            leader = first[op.result]
            if leader is op.result:
                full, empty = (self.put(hopper.MbarriersOp(plan.barriers)) for _ in range(2))
                full.name_hint, empty.name_hint = f"{name}_full", f"{name}_empty"
                fillers, readers = self._arrivals(op.result)
                self.rings[op.result] = Ring(plan, memory, full, empty, plan.slot_bytes, fillers, readers)
            else:
                known = self.rings[leader]
                known.bytes += plan.slot_bytes
                self.rings[op.result] = Ring(plan, memory, known.full, known.empty, 0, 0, 0)
            self.rings[leader].shared |= plan.blocks > 1

    def _arrivals(self, ring: SSAValue) -> tuple[int, int]:
        """The arrivals that make a slot of a ring full, and those that make it empty."""
        fillers, readers = 1, WARPS * self.count
        if is_transposed_from(ring):
            readers = WARPS
        elif feeds_preparer(ring):
            readers = WARPS * self.preparers
        if is_transposed_into(ring):
            fillers = WARPS
        elif is_prepared(ring):
            fillers = WARPS * self.preparers
        return fillers, readers

    def _make_work_queues(self) -> None:
        for op in (op for op in self.source.body.block.ops if isinstance(op, tile_scheduler.WorkQueueOp)):
            self.at = op
            depth, name = warp_groups.ring_depth(op.result), op.result.name_hint or "work_queue"
            words = self.put(hopper.WordsOp(depth))
            full, empty = (self.put(hopper.MbarriersOp(BarriersType(depth))) for _ in range(2))
            words.name_hint, full.name_hint, empty.name_hint = name, f"{name}_full", f"{name}_empty"
            self.work_queues[op.result] = WorkQueue(words, full, empty, WARPS * (self.count + self.helpers - 1))

    def _map(self, argument: SSAValue, axes: MapAxes, type_: MapType) -> SSAValue:
        key = (argument, axes, type_)
        if key not in self.maps:
            self.maps[key] = self.put(hopper_copies.TensorMapOp(self.values[argument], axes, type_))
            self.mapped.add(argument)
            self.maps[key].name_hint = f"{argument.name_hint or 'argument'}_map"
        return self.maps[key]

    def _goes_out(self, op: tile.StoreOp) -> bool:
        """Whether a tile is stored by a TMA copy: it has the layout of an accumulator, and a tensor map."""
        box = box_of(op.view, op.offsets) if is_mapped(op) else None
        return (
            box is not None
            and box.argument.index in self.row_aligned
            and is_accumulator(self.analysis.for_store(op), op.value)
        )


def _computes(partitions: warp_groups.WarpSpecializeOp) -> bool:
    """Whether there is a preparer that computes operands."""
    preparer = partitions.preparer
    return preparer is not None and any(isinstance(op, ProducerWriteOp) for op in preparer.walk())


def _widest(partitions: warp_groups.WarpSpecializeOp) -> int:
    """The columns of the widest dot."""
    dots = [op for op in partitions.consumer.walk() if isinstance(op, warp_groups.DotStartOp)]
    return max((warp_groups.accumulator_type(op.c).get_shape()[1] for op in dots), default=0)


def _owner(value: SSAValue) -> Operation:
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner
