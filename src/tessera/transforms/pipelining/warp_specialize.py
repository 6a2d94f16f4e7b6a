"""`warp-specialize`: a program becomes a producer, which copies the operands of dots, and consumers, which compute.

Both partitions are slices of the program and keep its order. Loads that feed dots become rings: the producer fills
them, as far ahead as there are stages; a consumer waits for the stage it needs, and releases it behind its last use.
Consumers share the rows of a program, which must be independent of each other. All walk through the programs of the
grid by themselves (persistent CTAs), so that copies for the next program begin while this one is being finished. Where
some programs have more iterations than others, CTAs fetch them from a tile scheduler, so that all are busy to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.common.attributes import integer
from tessera.ir.common.elements import TileType
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import tile_scheduler, warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_type
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.slices import Slice, end_of, operand_source
from tessera.transforms.pipelining.make_async import feeds_dots
from tessera.transforms.pipelining.partition_rows import Narrowing, Rows, rows_of
from tessera.transforms.pipelining.tile_order import Programs, can_form_teams

PERSISTENT, CLUSTER = "persistent", "cluster"
_MOST_AXES = 3
_index = IndexType()


@dataclass(frozen=True)
class WarpSpecialize(ModulePass):
    """The pass, for every tile function in which rows are apart and loads feed products."""

    name = "warp-specialize"
    consumers: int = 2
    depth: int = 2
    ahead: int = 2
    bands: bool = False
    cluster: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            warp_specialize(
                function,
                consumers=self.consumers,
                depth=self.depth,
                ahead=self.ahead,
                bands=self.bands,
                cluster=self.cluster,
            )


def warp_specialize(
    function: tile.FuncOp, *, consumers: int, depth: int, ahead: int = 2, bands: bool = False, cluster: int = 1
) -> bool:
    """Gives a function roles; whether it could. It is left as it is otherwise.

    Rings that are filled in loops have `depth` slots, others, and the mailbox, which are filled once for each program,
    `ahead`. With `bands`, programs are numbered in bands along the first axis of the grid. So many workers as a `team`
    has have programs side by side along that axis, if its extent is known to be a multiple of it, and all programs have
    as many turns.
    """
    count = rows_of(function)
    if count is None or count % consumers or not 1 <= len(function.grid.data) <= _MOST_AXES:
        return False
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    needed = Slice(stores)
    rows = Rows(function, count, needed)
    if not rows.find():
        return False
    loads = [op for op in function.body.walk() if op in needed.ops and isinstance(op, tile.LoadOp)]
    loads = [op for op in loads if feeds_dots(op)]
    copies, computes = Slice(loads), Slice([*stores, *loads], blind=loads)
    # The agent that copies has no tiles to look at. Shares of a tile are rows of it.
    told = all(op in loads or isinstance(op, scf.ForOp | scf.IfOp) or not _makes_tile(op) for op in copies.ops)
    if not loads or not told or any(rows.axes.get(load.result, 0) for load in loads):
        return False
    # What all rows share comes out of rings; every agent would multiply, or compute, all of it otherwise.
    products = [op for op in needed.ops if isinstance(op, tile.DotOp)]
    if any(op.result not in rows.axes or operand_source(op.b) not in loads for op in products):
        return False
    rings = _rings(function, loads, rows, computes, (depth, ahead))
    programs = Programs(function, bands=bands, cluster=cluster if can_form_teams(function, cluster, bands=bands) else 1)
    _Writer(function, rows, rings, consumers, ahead).run(copies, computes, programs)
    return True


def _makes_tile(op: Operation) -> bool:
    return any(isinstance(result.type, TensorType) for result in op.results)


# Rings


@dataclass(eq=False)
class _Ring:
    """Loads that share slots: while the tile of one is needed, none of the others runs."""

    depth: int
    held: TileType
    is_part: bool
    loads: list[tile.LoadOp] = field(default_factory=list[tile.LoadOp])
    end: int = -1
    """The place in the program up to which its last tile is needed."""


def _rings(
    function: tile.FuncOp, loads: Sequence[tile.LoadOp], rows: Rows, computes: Slice, depths: tuple[int, int]
) -> list[_Ring]:
    """Loads of tiles of one type from one argument share a ring where they follow each other."""
    numbers = {op: number for number, op in enumerate(function.body.walk())}
    rings: dict[object, list[_Ring]] = {}
    for load in loads:
        is_part = load.result in rows.axes
        alike = rings.setdefault((tile.base_of(load.view), load.result.type, is_part), [])
        start, end = numbers[load], max(numbers[op] for op in _last_user(load, computes).walk())
        ring = next((ring for ring in alike if ring.end < start), None)
        if ring is None:
            ring = _Ring(depths[1], tile_type(load.result), is_part)
            alike.append(ring)
        ring.loads.append(load)
        ring.end = end
        if _is_repeated(load):
            ring.depth = depths[0]
    return [ring for found in rings.values() for ring in found]


def _is_repeated(op: Operation) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is not None


def _last_user(load: tile.LoadOp, needed: Slice) -> Operation:
    """Of the ops in the block of a load, the last that uses its tile, or has another inside that does."""
    last: Operation = load
    pending = list(load.result.uses)
    while pending:
        user: Operation | None = pending.pop().operation
        if user not in needed.ops:
            continue
        if isinstance(user, tile.TransOp):
            pending += user.result.uses
        while user is not None and user.parent_block() is not load.parent_block():
            user = user.parent_op()
        assert user is not None
        if last.is_before_in_block(user):
            last = user
    return last


# Writing


class _Writer:
    """Puts roles in the place of a function's ops."""

    def __init__(self, function: tile.FuncOp, rows: Rows, rings: Sequence[_Ring], consumers: int, ahead: int) -> None:
        self.function = function
        self.rows = rows
        self.rings = rings
        self.consumers = consumers
        self.ahead = ahead
        self.memory: dict[_Ring, SSAValue] = {}
        self.work_queue: SSAValue | None = None
        """Where numbers of programs come from, if they are drawn."""

    def run(self, copies: Slice, computes: Slice, programs: Programs) -> None:
        block = self.function.body.block
        old = list(block.ops)
        front = _front(block)
        made: list[Operation] = []
        for ring in self.rings:
            op = pipe.RingOp(ring.depth, ring.held)
            op.location = ring.loads[0].location
            self.memory[ring] = op.result
            if (name := tile.base_of(ring.loads[0].view).name_hint) is not None:
                op.result.name_hint = f"{name}_ring"
            made.append(op)
        if programs.uneven is not None:
            box = tile_scheduler.WorkQueueOp(self.ahead)
            self.work_queue, box.result.name_hint = box.result, "programs"
            made.append(box)
        made += programs.ops
        copying, computing = Block(), Block()
        _Copies(self, copies, front).walk(copying, programs)
        self._compute(computing, computes, front, programs)
        made.append(warp_groups.WarpSpecializeOp(self.consumers, Region(copying), Region(computing)))
        adopt_location(made, self.function)
        block.insert_ops_before(made, old[-1])
        for op in reversed(old[:-1]):
            if op not in front or not any(result.first_use for result in op.results):
                op.detach()
                op.erase()
        self.function.attributes[PERSISTENT] = UnitAttr()
        if programs.cluster is not None and (cluster := integer_of(programs.cluster)) is not None:
            self.function.attributes[CLUSTER] = integer(cluster)

    def _compute(self, block: Block, needed: Slice, front: set[Operation], programs: Programs) -> None:
        group = self.rows.count // self.consumers
        agent, share = warp_groups.ConsumerIdOp(), arith.ConstantOp(IntegerAttr(group, _index))
        first = arith.MuliOp(agent.result, share.result)
        block.add_ops([agent, share, first])
        partition = _Computes(self, needed, front)
        partition.walk(block, programs)
        axes = self.rows.axes
        axes.update({new: axes[value] for value, new in partition.values.items() if value in axes})
        narrowing = Narrowing(self.rows, group, first.result)
        for op in list(block.walk()):
            narrowing.narrow(op)


def _front(block: Block) -> set[Operation]:
    """Scalars that are the same in all programs. What may fail is left to programs: there may be none."""
    front: set[Operation] = set()
    for op in block.ops:
        scalar = op.results and not any(isinstance(result.type, TensorType | ViewType) for result in op.results)
        if not scalar or op.regions or not is_side_effect_free(op) or isinstance(op, tile.ProgramIdOp):
            continue
        fails = isinstance(op, DIVISIONS) and not isinstance(op.operands[1].owner, arith.ConstantOp)
        known = all(isinstance(value.owner, Block) or value.owner in front for value in op.operands)
        if known and not fails:
            front.add(op)
    return front


class _Role:
    """Writes a slice of a program, with a cursor for each ring, which loops and branches carry on."""

    draws: ClassVar[type[tile_scheduler.SchedulerFetchOp | tile_scheduler.SchedulerReadOp]]
    """What gives the number of the next program."""

    def __init__(self, writer: _Writer, needed: Slice, front: set[Operation]) -> None:
        self.function = writer.function
        self.memory = writer.memory
        self.work_queue = writer.work_queue
        self.needed = needed
        self.front = front
        self.rings = {load: ring for ring in writer.rings for load in ring.loads}
        self.values: dict[SSAValue, SSAValue] = {}
        self.states: dict[_Ring, SSAValue] = {}

    def load(self, op: tile.LoadOp, ring: _Ring, block: Block) -> None:
        """What becomes of a load."""

    def behind(self, op: Operation, block: Block) -> None:
        """What follows an op."""

    def walk(self, block: Block, programs: Programs) -> None:
        """A loop over the programs of a worker."""
        boxes = [] if self.work_queue is None else [self.work_queue]
        firsts = [warp_groups.PipelineStateOp(memory) for memory in (*self.memory.values(), *boxes)]
        block.add_ops(firsts)
        starts = [first.result for first in firsts]
        body = Block(arg_types=[_index, *(start.type for start in starts)])
        number, *states = body.args
        self.states = dict(zip(self.memory, states, strict=False))
        self._write_program(number, body, programs)
        ends = list(self.states.values())
        if self.work_queue is None:
            body.add_op(scf.YieldOp(*ends))
            block.add_op(scf.ForOp(programs.cta, programs.counts[-1], programs.ctas, starts, Region(body)))
        else:
            drawn, following = self.draws(self.work_queue, states[-1]), warp_groups.AdvanceOp(states[-1])
            body.add_ops([drawn, following, scf.YieldOp(drawn.result, *ends, following.result)])
            block.add_op(_until_the_last(programs, starts, body))
        adopt_location(list(block.ops), self.function)

    def _write_program(self, number: SSAValue, body: Block, programs: Programs) -> None:
        """All that a role does for one program."""
        places = programs.places(number, body)
        numbering = list(body.ops)
        for op in self.function.body.walk():
            if isinstance(op, tile.ProgramIdOp):
                self.values[op.result] = places[op.axis.value.data]
        self.write(self.function.body.block, body)
        for op in reversed(numbering):
            if not any(result.first_use for result in op.results):
                op.detach()
                op.erase()

    def write(self, old: Block, block: Block) -> None:
        """The ops of a block, at the end of another."""
        for op in old.ops:
            if op not in self.needed.ops or op in self.front or isinstance(op, tile.ProgramIdOp):
                continue
            if isinstance(op, scf.ForOp):
                self._loop(op, block)
            elif isinstance(op, scf.IfOp):
                self._branch(op, block)
            elif isinstance(op, tile.LoadOp) and op in self.rings:
                self.load(op, self.rings[op], block)
            else:
                block.add_op(op.clone(self.values))
            self.behind(op, block)

    def get(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    def _used_in(self, op: Operation) -> list[_Ring]:
        inside = {self.rings[load] for load in op.walk() if isinstance(load, tile.LoadOp) and load in self.rings}
        return [ring for ring in self.memory if ring in inside]

    def _close(self, old: Block, block: Block, places: Sequence[int], rings: Sequence[_Ring]) -> None:
        """Writes a nested block and what it yields: the values of some places, and cursors."""
        self.write(old, block)
        given = [self.get(end_of(old).operands[place]) for place in places]
        end = scf.YieldOp(*given, *(self.states[ring] for ring in rings))
        end.location = end_of(old).location
        block.add_op(end)

    def _finish(self, op: Operation, made: Operation, places: Sequence[int], rings: Sequence[_Ring]) -> None:
        made.attributes.update(op.attributes)
        made.location = op.location
        for place, result in zip(places, made.results, strict=False):
            self.values[op.results[place]] = result
            result.name_hint = op.results[place].name_hint
        self.states.update(zip(rings, made.results[len(places) :], strict=True))

    def _loop(self, op: scf.ForOp, block: Block) -> None:
        places, rings, old = self.needed.indices_of(op), self._used_in(op), op.body.block
        starts = [*(self.get(op.iter_args[place]) for place in places), *(self.states[ring] for ring in rings)]
        body = Block(arg_types=[old.args[0].type, *(start.type for start in starts)])
        for place, argument in zip([-1, *places], body.args, strict=False):
            self.values[old.args[place + 1]] = argument
            argument.name_hint = old.args[place + 1].name_hint
        self.states.update(zip(rings, body.args[1 + len(places) :], strict=True))
        self._close(old, body, places, rings)
        bounds = [self.get(bound) for bound in (op.lb, op.ub, op.step)]
        made = scf.ForOp(bounds[0], bounds[1], bounds[2], starts, Region(body))
        block.add_op(made)
        self._finish(op, made, places, rings)

    def _branch(self, op: scf.IfOp, block: Block) -> None:
        places, rings = self.needed.indices_of(op), self._used_in(op)
        before = dict(self.states)
        types = [*(op.results[place].type for place in places), *(before[ring].type for ring in rings)]
        regions: list[Region] = []
        for region in op.regions:
            inner = Block()
            self.states = dict(before)
            if region.blocks:
                self._close(region.block, inner, places, rings)
            else:
                inner.add_op(scf.YieldOp(*(before[ring] for ring in rings)))
            regions.append(Region(inner))
        self.states = before
        made = scf.IfOp(self.get(op.cond), types, regions[0], regions[1])
        block.add_op(made)
        self._finish(op, made, places, rings)


def _until_the_last(programs: Programs, starts: Sequence[SSAValue], body: Block) -> scf.WhileOp:
    """A loop whose turns say themselves which program is next; the first is that of the worker's own number."""
    types = [argument.type for argument in body.args]
    test = Block(arg_types=types)
    some = arith.CmpiOp(test.args[0], programs.counts[-1], "slt")
    test.add_ops([some, scf.ConditionOp(some.result, *test.args)])
    return scf.WhileOp([programs.cta, *starts], types, Region(test), Region(body))


class _Copies(_Role):
    """Fills rings where tiles were loaded."""

    draws = tile_scheduler.SchedulerFetchOp

    def load(self, op: tile.LoadOp, ring: _Ring, block: Block) -> None:
        offsets = [self.get(offset) for offset in op.offsets]
        fill = warp_groups.ProducerCopyOp(self.get(op.view), offsets, self.memory[ring], self.states[ring])
        following = warp_groups.AdvanceOp(self.states[ring])
        adopt_location([fill, following], op)
        block.add_ops([fill, following])
        self.states[ring] = following.result


class _Computes(_Role):
    """Takes tiles where they were loaded, and releases them behind their last use.

    All agents come to rings in the same order: whoever waits for a turn then holds no other that is in its way.
    """

    draws = tile_scheduler.SchedulerReadOp

    def __init__(self, writer: _Writer, needed: Slice, front: set[Operation]) -> None:
        super().__init__(writer, needed, front)
        self.consumers = writer.consumers
        self.ends: dict[Operation, list[_Ring]] = {}
        for load, ring in self.rings.items():
            self.ends.setdefault(_last_user(load, needed), []).append(ring)

    def load(self, op: tile.LoadOp, ring: _Ring, block: Block) -> None:
        take = warp_groups.ConsumerWaitOp(
            self.memory[ring], self.states[ring], self.consumers if ring.is_part else None
        )
        take.location, take.result.name_hint = op.location, op.result.name_hint
        block.add_op(take)
        self.values[op.result] = take.result

    def behind(self, op: Operation, block: Block) -> None:
        for ring in self.ends.get(op, ()):
            release = warp_groups.ConsumerReleaseOp(self.memory[ring], self.states[ring])
            following = warp_groups.AdvanceOp(self.states[ring])
            adopt_location([release, following], op)
            block.add_ops([release, following])
            self.states[ring] = following.result
