"""Agents → nv level for sm_90a: roles become warpgroups, rings shared memory and barriers, products `nv.wgmma`.

A block has a warpgroup that copies, of which one thread does so, and one warpgroup for each agent that computes. Blocks
stay, and share the programs of the grid. A cursor is a slot and the parity of its turns; the agent that copies begins
in the phase before the first, which has ended. An agent's tiles lie over its 128 threads, as sums of products do.
Numbers of programs are drawn from a counter of the launch, which the last block to leave sets back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tessera.dialects import pipe, pipe_draws, pipe_order, tile
from tessera.dialects import pipe_agents as agents
from tessera.dialects.attributes import integer
from tessera.dialects.tile_types import tile_type
from tessera.errors import CompileError
from tessera.interpreters.engine import symbol_in
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda import hopper
from tessera.targets.cuda import hopper_copies as copies
from tessera.targets.cuda import hopper_products as products
from tessera.targets.cuda.agent_checks import check_agents, check_alone, refusal
from tessera.targets.cuda.agent_layouts import AgentLayouts, is_sums, is_taken, sums_layout
from tessera.targets.cuda.agent_memory import (
    BUFFERS,
    WARP_ROWS,
    MapAxes,
    RingPlan,
    fill_box,
    staging,
    store_columns,
    store_map,
)
from tessera.targets.cuda.boxes import Start, box_of, is_mapped
from tessera.targets.cuda.cursors import share_cursors
from tessera.targets.cuda.early_votes import vote_early
from tessera.targets.cuda.held_waits import hold_waits
from tessera.targets.cuda.hopper_types import BarriersType, MapType
from tessera.targets.cuda.late_operands import compute_operands_late
from tessera.targets.cuda.late_sums import finish_sums_late
from tessera.targets.cuda.layout_analysis import Shape, is_tile
from tessera.targets.cuda.nv_types import laid_out
from tessera.targets.cuda.ring_groups import leaders
from tessera.targets.cuda.small_numbers import Division, is_small_division
from tessera.targets.cuda.tile_to_nv import Lowering, put_in_place
from tessera.transforms.dead_code import sweep

WARPS, THREADS = 4, 128
"""Of a warpgroup."""
ALL_REGISTERS = 65536
"""Of a multiprocessor."""
LEAST_REGISTERS, MOST_REGISTERS = 24, 232
"""Of a thread that copies, and of one that computes: with a few more it would leave too few for four indices."""
DRAWS, LEAVES = 0, 1
"""Counters of a launch: programs that were drawn, and blocks that have left. Each has four bytes."""


def lower_agents(
    module: ModuleOp, name: str, *, registers: tuple[int, int] | None = None, lined: Collection[int] | None = None
) -> None:
    """Puts an nv function in the place of a tile function with roles.

    `registers` are those of a thread that copies, and of one that computes; without them all there are are shared out.
    Of the arguments `lined`, by default of all, rows lie at multiples of 16 bytes, their elements side by side: the
    others have no tensor maps.
    """
    function = symbol_in(module, name, tile.FuncOp)
    share_cursors(function)
    put_in_place(function, AgentLowering(function, registers, lined).run())


def can_lower(function: tile.FuncOp, lined: Collection[int] | None = None) -> str | None:
    """Why a function with roles has no form for sm_90a; None where it has one."""
    try:
        AgentLowering(function, None, lined).run()
    except CompileError as error:
        return error.message
    return None


def share_registers(count: int) -> tuple[int, int] | None:
    """The registers of a thread that copies and of one that computes; None where all have enough as it is."""
    if count == 1:
        return None
    threads = THREADS * (1 + count)
    pool = ALL_REGISTERS // threads // 8 * 8 * threads
    more = min(MOST_REGISTERS, (pool - LEAST_REGISTERS * THREADS) // (THREADS * count) // 8 * 8)
    return (pool - more * THREADS * count) // THREADS // 8 * 8, more


@dataclass
class Ring:
    """A ring of the new function."""

    plan: RingPlan
    memory: SSAValue
    full: SSAValue
    empty: SSAValue
    bytes: int
    """What a turn brings that others wait for: 0 where another ring's barriers stand for this one's."""


@dataclass
class Mailbox:
    """A mailbox of the new function: a word for each slot."""

    words: SSAValue
    full: SSAValue
    empty: SSAValue


class AgentLowering(Lowering):
    """Writes the nv function of one tile function with roles."""

    def __init__(self, function: tile.FuncOp, registers: tuple[int, int] | None, lined: Collection[int] | None) -> None:
        check_agents(function)
        super().__init__(function, AgentLayouts(function, Shape(WARPS)))
        (self.roles,) = (op for op in function.body.block.ops if isinstance(op, agents.RolesOp))
        self.count = self.roles.agents.value.data
        self.registers = share_registers(self.count) if registers is None else registers
        self.lined = range(len(function.arguments)) if lined is None else lined
        self.cursors: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
        self.rings: dict[SSAValue, Ring] = {}
        self.mailboxes: dict[SSAValue, Mailbox] = {}
        self.maps: dict[tuple[SSAValue, MapAxes, MapType], SSAValue] = {}
        self.mapped: set[SSAValue] = set()
        """Arguments that have maps."""
        self.rooms: dict[Attribute, SSAValue] = {}
        """For each type that is stored, where a warp puts it."""
        self.numbers: dict[int, SSAValue] = {}
        self.entry: Block
        self.first_phase = 0
        self.mine: SSAValue
        self.other: SSAValue
        """The named barriers of this agent and of the next."""

    def run(self) -> nv.FuncOp:
        made = self.header(THREADS * (1 + self.count))
        made.attributes |= {"persistent": integer(1), "blocks": integer(1)}
        self.entry = self.out
        self._begin()
        for op in self.source.body.block.ops:
            match op:
                case agents.RolesOp():
                    self._give_roles(op)
                case pipe.RingOp() | pipe_draws.MailboxOp() | tile.ReturnOp():
                    pass
                case _:
                    self._op(op)
        if self.mailboxes:
            made.attributes["counters"] = integer(4 * len((DRAWS, LEAVES)))
        self.out.add_op(nv.ReturnOp())
        sweep(made.body.block)
        vote_early(made)
        finish_sums_late(made)
        compute_operands_late(made)
        hold_waits(made)
        check_alone(made)
        return made

    # Numbers

    def put(self, op: Operation) -> SSAValue:
        """Adds an op of the current role."""
        return self.add(op, self.roles).results[0]

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

    def narrow(self, start: Start, more: int = 0) -> SSAValue:
        """A number of the program, plus a constant, as copies take it."""
        if isinstance(start, int):
            return self.number(start + more)
        owner = start.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            return self.number(owner.value.value.data + more)
        found = self.put(arith.IndexCastOp(self.values[start], i32))
        return self.put(arith.AddiOp(found, self.number(more))) if more else found

    def _divide(self, op: Division) -> None:
        a, b = (self.put(arith.IndexCastOp(self.values[operand], i32)) for operand in op.operands)
        kind = arith.RemUIOp if isinstance(op, arith.RemSIOp) else arith.DivUIOp
        self.values[op.result] = self.wide(self.put(kind(a, b)))

    def wide(self, value: SSAValue) -> SSAValue:
        return self.put(arith.IndexCastOp(value, IndexType()))

    # In front of the roles

    def _begin(self) -> None:
        self._make_rings()
        self._make_mailboxes()
        for op in self.source.body.walk():
            if isinstance(op, agents.FillOp):
                box = fill_box(op)
                if box.argument.index not in self.lined:
                    raise refusal(op, "a tile is copied out of an argument whose rows do not lie at 16 bytes")
                found = self.rings[op.ring].plan.copies(box)
                self._map(box.argument, found.axes, found.map)
            elif isinstance(op, tile.StoreOp) and self._goes_out(op):
                box = box_of(op.view, op.offsets)
                assert box is not None
                element = tile_type(op.value).element_type
                self._map(box.argument, *store_map(box, element))
                if element not in self.rooms:
                    self.rooms[element] = self.put(nv.AllocOp(staging(self.count, element)))
        self.thread = self.put(hopper.IdOp("thread"))
        self.warpgroup = self.put(hopper.IdOp("warpgroup"))
        self.is_first = self.put(arith.CmpiOp(self.thread, self.number(0), "eq"))
        with_first = Block()
        outside, self.out = self.out, with_first
        for map_ in self.maps.values():
            self.add(copies.PrefetchOp(map_), self.roles)
        for ring in (*(ring for ring in self.rings.values() if ring.bytes), *self.mailboxes.values()):
            self.add(hopper.InitBarriersOp(ring.full, 1), self.roles)
            self.add(hopper.InitBarriersOp(ring.empty, WARPS * self.count), self.roles)
        self.add(hopper.FenceOp("init"), self.roles)
        self.add(hopper.FenceOp("async"), self.roles)
        with_first.add_op(scf.YieldOp())
        self.out = outside
        self.add(scf.IfOp(self.is_first, [], Region(with_first), Region()), self.roles)
        self.add(nv.BarrierOp(), self.roles)

    def _make_rings(self) -> None:
        first = leaders(self.source)
        rings = [op for op in self.source.body.block.ops if isinstance(op, pipe.RingOp)]
        for op in sorted(rings, key=lambda op: first[op.result] is not op.result):
            plan, name = RingPlan.of(op, self.count), op.result.name_hint or "ring"
            memory = self.put(nv.AllocOp(plan.memory))
            memory.name_hint = name
            leader = first[op.result]
            if leader is op.result:
                full, empty = (self.put(hopper.BarriersOp(plan.barriers)) for _ in range(2))
                full.name_hint, empty.name_hint = f"{name}_full", f"{name}_empty"
                self.rings[op.result] = Ring(plan, memory, full, empty, plan.slot_bytes)
            else:
                known = self.rings[leader]
                known.bytes += plan.slot_bytes
                self.rings[op.result] = Ring(plan, memory, known.full, known.empty, 0)

    def _make_mailboxes(self) -> None:
        for op in (op for op in self.source.body.block.ops if isinstance(op, pipe_draws.MailboxOp)):
            depth, name = agents.ring_depth(op.result), op.result.name_hint or "mailbox"
            words = self.put(hopper.WordsOp(depth))
            full, empty = (self.put(hopper.BarriersOp(BarriersType(depth))) for _ in range(2))
            words.name_hint, full.name_hint, empty.name_hint = name, f"{name}_full", f"{name}_empty"
            self.mailboxes[op.result] = Mailbox(words, full, empty)

    def _map(self, argument: SSAValue, axes: MapAxes, type_: MapType) -> SSAValue:
        key = (argument, axes, type_)
        if key not in self.maps:
            self.maps[key] = self.put(copies.TensorMapOp(self.values[argument], axes, type_))
            self.mapped.add(argument)
            self.maps[key].name_hint = f"{argument.name_hint or 'argument'}_map"
        return self.maps[key]

    def _goes_out(self, op: tile.StoreOp) -> bool:
        """Whether a tile is stored by a copy: as it lies, it can be put into shared memory in one go."""
        box = box_of(op.view, op.offsets) if is_mapped(op) else None
        return box is not None and box.argument.index in self.lined and is_sums(self.analysis.for_store(op), op.value)

    # Roles

    def _give_roles(self, op: agents.RolesOp) -> None:
        copying, computing = Block(), Block()
        outside = self.out
        self.out, self.first_phase = Block(), 1
        self._run(op.copies.block)
        if self.mailboxes:
            self._leave(op)
        self.out.add_op(scf.YieldOp())
        begins = Region(self.out)
        self.out = copying
        if self.registers is not None:
            self.add(hopper.SetRegistersOp("dec", self.registers[0]), op)
        self.add(scf.IfOp(self.is_first, [], begins, Region()), op)
        copying.add_op(scf.YieldOp())

        self.out, self.first_phase = computing, 0
        if self.registers is not None:
            self.add(hopper.SetRegistersOp("inc", self.registers[1]), op)
        self.agent = self.put(arith.SubiOp(self.warpgroup, self.number(1)))
        self.leads = self.put(arith.CmpiOp(self.put(hopper.IdOp("lane")), self.number(0), "eq"))
        if self.rooms:
            self._begin_stores()
        ordered = any(isinstance(inner, pipe_order.EnterOp) for inner in op.computes.walk())
        if ordered:
            self._begin_order(op)
        self._run(op.computes.block)
        if ordered:
            # What the last agent announced behind its last products is left over.
            self._if_agent(0, hopper.SyncOp(self.mine, 2 * THREADS), op)
        if self.rooms:
            self.add(copies.WaitCopiesOp(0), op)
        computing.add_op(scf.YieldOp())
        self.out = outside
        produces = self.put(arith.CmpiOp(self.warpgroup, self.number(0), "eq"))
        self.add(scf.IfOp(produces, [], Region(copying), Region(computing)), op)

    def _run(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case agents.AgentOp():
                self.values[op.result] = self.wide(self.agent)
            case agents.WorkerOp():
                self.values[op.result] = self.wide(self.put(hopper.IdOp("block")))
            case agents.WorkersOp():
                self.values[op.result] = self.wide(self.put(hopper.IdOp("blocks")))
            case agents.ExtentOp():
                self.values[op.result] = self.wide(self.put(hopper.ExtentOp(op.axis.value.data)))
            case agents.CursorOp():
                self.cursors[op.result] = self.number(0), self.number(self.first_phase)
            case agents.NextOp():
                slot, phase = self.cursors[op.cursor]
                made = self.add(hopper.AdvanceOp(slot, phase, agents.cursor_depth(op.cursor)), op)
                self.cursors[op.result] = made.results[0], made.results[1]
            case agents.FillOp():
                self._fill(op)
            case agents.TakeOp():
                self._take(op)
            case agents.ReleaseOp():
                if self.rings[op.ring].bytes:
                    slot, _ = self.cursors[op.cursor]
                    self.add(hopper.ArriveOp(self.rings[op.ring].empty, slot, self.leads), op)
            case pipe_order.EnterOp():
                self.add(hopper.SyncOp(self.mine, 2 * THREADS), op)
            case pipe_order.LeaveOp():
                self.add(hopper.AnnounceOp(self.other, 2 * THREADS), op)
            case pipe_draws.DrawOp():
                self._draw(op)
            case pipe_draws.DrawnOp():
                self._read(op)
            case agents.DotStartOp():
                self._start(op)
            case agents.DotAwaitOp():
                self._await(op)
            case agents.DotsBehindOp():
                self.add(products.WgmmaWaitOp(op.younger.value.data), op)
            case tile.AnyOp():
                asked = self.tile(op.operand, self._known(op.operand))
                self.values[op.result] = self.add(products.AnyOp(asked), op).results[0]
            case tile.StoreOp() if self._goes_out(op):
                self._send(op)
            case arith.DivSIOp() | arith.RemSIOp() | arith.FloorDivSIOp() if is_small_division(op, self.mapped):
                self._divide(op)
            case _:
                super()._op(op)

    def _parts(self, value: SSAValue, carrier: SSAValue) -> Sequence[SSAValue]:
        return self.cursors[value] if value in self.cursors else super()._parts(value, carrier)

    def _bind_one(self, value: SSAValue, parts: Iterator[SSAValue], op: Operation) -> None:
        if not isinstance(value.type, agents.CursorType):
            super()._bind_one(value, parts, op)
            return
        slot, phase = self.cursors[value] = next(parts), next(parts)
        slot.name_hint, phase.name_hint = f"{value.name_hint or 'cursor'}_slot", f"{value.name_hint or 'cursor'}_phase"

    # One by one

    def _begin_order(self, op: agents.RolesOp) -> None:
        """A named barrier for each agent, at which it meets the one before it; the whole block has number 0."""
        last = self.number(self.count - 1)
        self.mine = self.warpgroup
        is_last = self.put(arith.CmpiOp(self.agent, last, "eq"))
        following = self.put(arith.AddiOp(self.warpgroup, self.number(1)))
        self.other = self.put(arith.SelectOp(is_last, self.number(1), following))
        self._if_agent(self.count - 1, hopper.AnnounceOp(self.other, 2 * THREADS), op)

    def _if_agent(self, agent: int, inner: Operation, op: Operation) -> None:
        asked = self.put(arith.CmpiOp(self.agent, self.number(agent), "eq"))
        self.add(scf.IfOp(asked, [], Region(Block([inner, scf.YieldOp()])), Region()), op)

    # Rings

    def _fill(self, op: agents.FillOp) -> None:
        ring, (slot, phase) = self.rings[op.ring], self.cursors[op.cursor]
        box = fill_box(op)
        found = ring.plan.copies(box)
        map_ = self._map(box.argument, found.axes, found.map)
        if ring.bytes:
            self.add(hopper.WaitBarrierOp(ring.empty, slot, phase), op)
            self.add(hopper.ExpectOp(ring.full, slot, ring.bytes), op)
        memory = ring.memory
        for type_ in found.memory[1:]:
            memory = self.add(copies.RecastOp(memory, type_), op).results[0]
        whole = self.put(nv.SlotOp(memory, slot))
        for piece in found.pieces:
            target = whole
            for place in piece.path:
                target = self.put(nv.SlotOp(target, self.number(place)))
            offsets = [self.narrow(start, more) for start, more in found.offsets(box, piece)]
            self.add(copies.CopyInOp(map_, offsets, target, ring.full, slot), op)

    def _take(self, op: agents.TakeOp) -> None:
        ring, (slot, phase) = self.rings[op.ring], self.cursors[op.cursor]
        if ring.bytes:
            self.add(hopper.WaitBarrierOp(ring.full, slot, phase), op)
        memory = ring.memory
        if ring.plan.taken != ring.plan.memory:
            memory = self.put(copies.RecastOp(memory, ring.plan.taken))
        found = self.put(nv.SlotOp(memory, slot))
        if ring.plan.parts > 1:
            found = self.put(nv.SlotOp(found, self.agent))
        self.staged[op.result] = found

    # Numbers of programs

    def _draw(self, op: pipe_draws.DrawOp) -> None:
        mailbox, (slot, phase) = self.mailboxes[op.mailbox], self.cursors[op.cursor]
        drawn = self.add(hopper.CountOp(DRAWS, self.number(1)), op).results[0]
        number = self.put(arith.AddiOp(drawn, self.put(hopper.IdOp("blocks"))))
        self.add(hopper.WaitBarrierOp(mailbox.empty, slot, phase), op)
        self.add(hopper.PutOp(number, mailbox.words, slot), op)
        self.add(hopper.ArriveOp(mailbox.full, slot), op)
        self.values[op.result] = self.wide(number)

    def _read(self, op: pipe_draws.DrawnOp) -> None:
        mailbox, (slot, phase) = self.mailboxes[op.mailbox], self.cursors[op.cursor]
        self.add(hopper.WaitBarrierOp(mailbox.full, slot, phase), op)
        number = self.add(hopper.GetOp(mailbox.words, slot), op).results[0]
        # The lane that arrives does so for all of its warp.
        self.add(hopper.WarpSyncOp(), op)
        self.add(hopper.ArriveOp(mailbox.empty, slot, self.leads), op)
        self.values[op.result] = self.wide(number)

    def _leave(self, op: agents.RolesOp) -> None:
        """The last block sets the counters back: the next launch finds them as this one did."""
        left = self.put(hopper.CountOp(LEAVES, self.number(1)))
        last = self.put(arith.SubiOp(self.put(hopper.IdOp("blocks")), self.number(1)))
        is_last = self.put(arith.CmpiOp(left, last, "eq"))
        resets = Block([hopper.ResetOp(DRAWS), hopper.ResetOp(LEAVES), scf.YieldOp()])
        self.add(scf.IfOp(is_last, [], Region(resets), Region()), op)

    # Products

    def _start(self, op: agents.DotStartOp) -> None:
        a = self.staged[op.a] if is_taken(op.a) else self.tile(op.a, sums_layout(op.a))
        turned = isinstance(owner := op.b.owner, tile.TransOp)
        b = self.staged[owner.operand if isinstance(owner, tile.TransOp) else op.b]
        sums = None if _is_zero(op.c) else self._sums(op.c)
        type_ = laid_out(agents.sums_type(op.result), sums_layout(op.result))
        made = self.add(products.WgmmaOp(a, b, type_, transposed=turned, sum_=sums), op)
        self.values[op.result] = made.results[0]

    def _sums(self, value: SSAValue) -> SSAValue:
        return self.tile(value, sums_layout(value)) if is_tile(value) else self.values[value]

    def _await(self, op: agents.DotAwaitOp) -> None:
        kept = [self.tile(value, sums_layout(value)) for value in _register_operands(op.pending)]
        made = self.add(products.WgmmaWaitOp(op.younger.value.data, [self.values[op.pending]], kept), op)
        self._hold(op.result, sums_layout(op.result), made.results[0], op)

    # Stores

    def _begin_stores(self) -> None:
        """Where each warp's room is, and its rows among those of the agent."""
        warp = self.put(hopper.IdOp("warp"))
        worker = self.put(arith.SubiOp(warp, self.number(WARPS)))
        self.buffers = {
            element: [
                self.put(nv.SlotOp(self.put(nv.SlotOp(room, worker)), self.number(place))) for place in range(BUFFERS)
            ]
            for element, room in self.rooms.items()
        }
        inside = self.put(arith.AndIOp(worker, self.number(WARPS - 1)))
        self.warp_row = self.put(arith.MuliOp(inside, self.number(WARP_ROWS)))

    def _send(self, op: tile.StoreOp) -> None:
        """Each warp puts 64 columns of its rows into shared memory, from where a copy takes them, and goes on."""
        box = box_of(op.view, op.offsets)
        assert box is not None
        type_ = tile_type(op.value)
        value, element = self.tile(op.value, self.analysis.for_store(op)), type_.element_type
        map_ = self._map(box.argument, *store_map(box, element))
        down, across = box.axes
        row = self.put(arith.AddiOp(self.narrow(box.starts[down]), self.warp_row))
        others = [self.narrow(box.starts[axis]) for axis in box.others]
        for place, column in enumerate(store_columns(type_.get_shape()[1])):
            buffer = self.buffers[element][place % BUFFERS]
            if place not in range(1, BUFFERS):
                # The first one waits for all that went before: that was long ago.
                self.add(copies.WaitCopiesOp(BUFFERS - 1 if place else 0, read=True), op)
                self.add(hopper.WarpSyncOp(), op)
            self.add(products.StoreMatrixOp(value, column, buffer), op)
            self.add(hopper.FenceOp("async"), op)
            self.add(hopper.WarpSyncOp(), op)
            offsets = [self.narrow(box.starts[across], column), row, *others]
            self.add(copies.CopyOutOp(buffer, map_, offsets, self.leads), op)
            self.add(copies.CommitCopiesOp(), op)


def _is_zero(value: SSAValue) -> bool:
    """Whether sums start from nothing."""
    owner = value.owner
    number = owner.value.owner if isinstance(owner, tile.FullOp) else None
    known = number.value if isinstance(number, arith.ConstantOp) else None
    return isinstance(known, FloatAttr) and known.value.data == 0


def _register_operands(pending: SSAValue) -> Iterator[SSAValue]:
    """Tiles in registers that a product may still read, as far as it was begun in sight."""
    owner = pending.owner
    if isinstance(owner, agents.DotStartOp):
        if not is_taken(owner.a):
            yield owner.a
        yield from _register_operands(owner.c)
