"""`warp-specialize`: a kernel becomes a producer, which copies the operands of dots, and consumers, which compute.

Both partitions are slices of the kernel and keep its order. Loads that feed dots become rings: the producer fills
them, as far ahead as there are stages; a consumer waits for the stage it needs, and releases it behind its last use.
Consumers share the rows of a program instance, which must be independent of each other. CTAs are persistent: they go
through several instances, and copies for the next one begin while this one is being finished. Right operands that are
computed of what all rows share are made by warp groups of their own (`prepared_operands.py`), between both. Where some
instances have more iterations than others, CTAs fetch them from a tile scheduler, so that all are busy to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.errors import CompileError
from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.common.attributes import integer
from tessera.ir.common.checking import enclosing
from tessera.ir.common.elements import TileType
from tessera.ir.common.locations import span_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import prepare, tile_scheduler, warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_type
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import adopt_location, inherit_locations
from tessera.transforms.core.slices import Slice, end_of, operand_source
from tessera.transforms.pipelining.make_async import feeds_dots
from tessera.transforms.pipelining.partition_rows import Narrowing, Rows, row_stores, rows_of
from tessera.transforms.pipelining.prepared_operands import PreparedOperand, prepared_operands
from tessera.transforms.pipelining.tile_order import TileOrder, can_form_clusters

PERSISTENT, CLUSTER = "persistent", "cluster"
_MOST_AXES = 3
PREPARED_DEPTH = 3
"""Slots of a ring of computed operands at most: one that is multiplied, one that is full, and one that is made."""
_index = IndexType()


@dataclass(frozen=True)
class WarpSpecialize(FunctionPass):
    """The pass, for every tile function in which rows are independent and loads feed dots.

    Where it is `demanded`, others are refused.
    """

    name = "warp-specialize"
    consumers: int = 2
    depth: int = 2
    ahead: int = 2
    bands: bool = False
    cluster: int = 1
    demanded: bool = False

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        refusal = self.partition(function)
        if refusal is not None and self.demanded:
            raise refusal

    def partition(self, function: tile.FuncOp) -> CompileError | None:
        """Partitions a function; gives the reason where it cannot be, and leaves it as it is."""
        count = rows_of(function, at_places=True)
        axes = len(function.grid.data)
        if not 1 <= axes <= _MOST_AXES:
            return _refusal(
                function,
                f"its grid has {axes} axes, and warps are specialized with one to {_MOST_AXES}",
                "merge axes of the grid",
            )
        if count is None:
            return _refusal(
                function,
                "its stores do not have one number of rows that consumers could share",
                "store tiles of one number of rows",
            )
        if count % self.consumers:
            return _refusal(
                function,
                f"{self.consumers} consumers cannot share its {count} rows",
                "give it a block of a multiple of 64 rows",
            )
        stores = row_stores(function)
        needed = Slice(stores)
        rows = Rows(function, count, needed)
        if not rows.find():
            op, reason = rows.refused
            return _refusal(
                op or function, reason, "compute rows independently of each other, and store them outside of loops"
            )
        loads = [op for op in function.body.walk() if op in needed.ops and isinstance(op, tile.BoxLoad)]
        operands = [op for op in loads if feeds_dots(op)]
        dots = [op for op in needed.ops if isinstance(op, tile.DotOp)]
        prepared = prepared_operands(dots)
        brought = list(dict.fromkeys(load for one in prepared.values() for load in one.loads))
        loads = [op for op in loads if op in {*operands, *brought}]
        waited = [*operands, *prepared]
        produced, consumed = Slice(loads), Slice([*stores, *waited], blind=waited)
        # The producer has no tiles to compute with. Shares of a tile are rows of it.
        scalar = all(op in loads or isinstance(op, scf.ForOp | scf.IfOp) or not _makes_tile(op) for op in produced.ops)
        if not operands:
            return _refusal(
                function,
                "no tile that is loaded is an operand of a dot only",
                "load operands of dots once for the dot, and once more for other uses",
            )
        if not scalar:
            return _refusal(
                function,
                "where a tile is loaded depends on other tiles: the producer computes none",
                "compute places from program_id, loop counters and sizes",
            )
        # Tiles that all rows share come out of rings; every consumer would compute all of them otherwise.
        if (op := next((op for op in dots if op.result not in rows.axes), None)) is not None:
            return _refusal(
                op,
                "all rows need this dot: every consumer would compute all of it",
                "compute what all rows need in a kernel before",
            )
        if (op := next((op for op in dots if operand_source(op.b) not in waited), None)) is not None:
            return _refusal(
                op,
                "the right operand of a dot rests on dots or on what loops carry: wgmma reads it from shared memory",
                "compute it in a kernel before, or compute the left operand instead",
            )
        numbers = {op: number for number, op in enumerate(function.body.walk())}
        depths = self.depth, self.ahead
        preparing = Slice([*prepared, *brought], blind=brought) if prepared else None
        users = [(operands, consumed), (brought, preparing)]
        rings = [
            *(ring for some, user in users if user is not None for ring in _rings(some, rows, user, depths, numbers)),
            *_prepared_rings(prepared, depths),
        ]
        alone = bool(prepared) or not can_form_clusters(function, self.cluster, bands=self.bands)
        cluster = 1 if alone else self.cluster
        order = TileOrder(function, bands=self.bands, cluster=cluster)
        _Writer(function, rows, rings, self.consumers, self.ahead).run(produced, consumed, order, preparing)
        return None


def warp_specialize(
    function: tile.FuncOp, *, consumers: int, depth: int, ahead: int = 2, bands: bool = False, cluster: int = 1
) -> bool:
    """Partitions a function; whether it could. It is left as it is otherwise.

    Rings that are filled in loops have `depth` slots; others, and the work queue, which are filled once for each
    program instance, `ahead`. With `bands`, instances are numbered in bands along the first axis of the grid. The CTAs
    of a `cluster` have instances side by side along that axis, if its extent is known to be a multiple of it, and all
    instances have as many iterations.
    """
    return WarpSpecialize(consumers, depth, ahead, bands, cluster).partition(function) is None


def _refusal(op: Operation, reason: str, hint: str) -> CompileError:
    return CompileError(reason, span=span_of(op.location), hint=hint)


def _makes_tile(op: Operation) -> bool:
    return any(isinstance(result.type, TensorType) for result in op.results)


# Rings


@dataclass(eq=False)
class _Ring:
    """Loads that share slots: while the tile of one is needed, none of the others runs. Or the op that makes a tile."""

    depth: int
    held: TileType
    axis: int | None
    """The axis along which consumers share its tiles; None where each needs all of them."""
    loads: list[Operation] = field(default_factory=list[Operation])
    end: int = -1
    """The number of the op up to which its last tile is needed."""


def _rings(
    loads: Sequence[tile.BoxLoad],
    rows: Rows,
    consumed: Slice,
    depths: tuple[int, int],
    numbers: Mapping[Operation, int],
) -> list[_Ring]:
    """Loads of tiles of one type from one argument share a ring where they follow each other."""
    rings: dict[object, list[_Ring]] = {}
    for load in loads:
        axis = rows.axes.get(load.result)
        alike = rings.setdefault((tile.base_of(load.view), load.result.type, axis), [])
        start, end = numbers[load], max(numbers[op] for op in _last_user(load, consumed).walk())
        ring = next((ring for ring in alike if ring.end < start), None)
        if ring is None:
            ring = _Ring(depths[1], tile_type(load.result), axis)
            alike.append(ring)
        ring.loads.append(load)
        ring.end = end
        if is_repeated(load):
            ring.depth = depths[0]
    return [ring for found in rings.values() for ring in found]


def _prepared_rings(prepared: Mapping[Operation, PreparedOperand], depths: tuple[int, int]) -> Iterator[_Ring]:
    """A ring for each computed operand: while consumers read one tile, the next is made."""
    for maker in prepared:
        depth = min(depths[0], PREPARED_DEPTH) if is_repeated(maker) else depths[1]
        yield _Ring(depth, tile_type(maker.results[0]), axis=None, loads=[maker])


def is_repeated(op: Operation) -> bool:
    """Whether there is a loop around an op."""
    return enclosing(op, scf.ForOp) is not None


def _last_user(load: Operation, needed: Slice) -> Operation:
    """Of the ops in the block of a load, the last that uses its tile, or has another inside that does."""
    last = load
    pending = list(load.results[0].uses)
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
    """Replaces a function's ops by partitions."""

    def __init__(self, function: tile.FuncOp, rows: Rows, rings: Sequence[_Ring], consumers: int, ahead: int) -> None:
        self.function = function
        self.rows = rows
        self.rings = rings
        self.consumers = consumers
        self.ahead = ahead
        self.memory: dict[_Ring, SSAValue] = {}
        self.work_queue: SSAValue | None = None
        """The queue of program instances, if they are fetched from the tile scheduler."""

    def run(self, produced: Slice, consumed: Slice, order: TileOrder, preparing: Slice | None = None) -> None:
        block = self.function.body.block
        old = list(block.ops)
        front = _front(block)
        made: list[Operation] = []
        for ring in self.rings:
            op = pipe.RingOp(ring.depth, ring.held)
            op.location = ring.loads[0].location
            self.memory[ring] = op.result
            first = ring.loads[0]
            if isinstance(first, tile.LoadOp) and (name := tile.base_of(first.view).name_hint) is not None:
                op.result.name_hint = f"{name}_ring"
            elif not isinstance(first, tile.LoadOp):
                op.result.name_hint = "prepared_ring"
            made.append(op)
        if order.fetches:
            queue = tile_scheduler.WorkQueueOp(self.ahead)
            self.work_queue, queue.result.name_hint = queue.result, "programs"
            made.append(queue)
        made += order.ops
        producer, consumer = Block(), Block()
        _Producer(self, produced, front).walk(producer, order)
        preparer = None
        if preparing is not None:
            preparer = Block()
            _Preparer(self, preparing, front).walk(preparer, order)
        self._consume(consumer, consumed, front, order)
        between = None if preparer is None else Region(preparer)
        regions = Region(producer), Region(consumer)
        made.append(warp_groups.WarpSpecializeOp(self.consumers, *regions, preparer=between))
        made[-1].location = self.function.location
        block.insert_ops_before(made, old[-1])
        for op in reversed(old[:-1]):
            if op not in front or not any(result.first_use for result in op.results):
                op.detach()
                op.erase()
        inherit_locations(self.function)
        self.function.attributes[PERSISTENT] = UnitAttr()
        if order.cluster is not None and (cluster := integer_of(order.cluster)) is not None:
            self.function.attributes[CLUSTER] = integer(cluster)

    def _consume(self, block: Block, needed: Slice, front: set[Operation], order: TileOrder) -> None:
        group = self.rows.count // self.consumers
        consumer, share = warp_groups.ConsumerIdOp(), arith.ConstantOp(IntegerAttr(group, _index))
        first = arith.MuliOp(consumer.result, share.result)
        block.add_ops([consumer, share, first])
        partition = _Consumer(self, needed, front)
        partition.walk(block, order)
        axes = self.rows.axes
        axes.update({new: axes[value] for value, new in partition.values.items() if value in axes})
        narrowing = Narrowing(self.rows, group, first.result)
        for op in list(block.walk()):
            narrowing.narrow(op)


def _front(block: Block) -> set[Operation]:
    """Scalars that are the same for all program instances, without ops that may fail: there may be no instance."""
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


class _Partition:
    """Writes a slice of a kernel, with a pipeline state for each ring, which loops and branches carry."""

    next_instance: ClassVar[type[tile_scheduler.SchedulerFetchOp | tile_scheduler.SchedulerReadOp]]
    """The op that gives the number of the next program instance."""

    def __init__(self, writer: _Writer, needed: Slice, front: set[Operation]) -> None:
        self.function = writer.function
        self.work_queue = writer.work_queue
        self.needed = needed
        self.front = front
        self.rings = {load: ring for ring in writer.rings for load in ring.loads if load in needed.ops}
        self.memory = {ring: memory for ring, memory in writer.memory.items() if ring in self.rings.values()}
        self.values: dict[SSAValue, SSAValue] = {}
        self.states: dict[_Ring, SSAValue] = {}

    def load(self, op: Operation, ring: _Ring, block: Block) -> None:
        """Writes the ops that replace a load, or the op that makes an operand."""

    def behind(self, op: Operation, block: Block) -> None:
        """Writes the ops that follow an op."""

    def walk(self, block: Block, order: TileOrder) -> None:
        """Writes the loop over the program instances of a persistent CTA."""
        queues = [] if self.work_queue is None else [self.work_queue]
        firsts = [warp_groups.PipelineStateOp(memory) for memory in (*self.memory.values(), *queues)]
        block.add_ops(firsts)
        starts = [first.result for first in firsts]
        body = Block(arg_types=[_index, *(start.type for start in starts)])
        number, *states = body.args
        self.states = dict(zip(self.memory, states, strict=False))
        self._write_instance(number, body, order)
        ends = list(self.states.values())
        loop: scf.ForOp | scf.WhileOp
        if self.work_queue is None:
            body.add_op(scf.YieldOp(*ends))
            loop = scf.ForOp(order.cta, order.counts[-1], order.ctas, starts, Region(body))
        else:
            fetched, following = self.next_instance(self.work_queue, states[-1]), warp_groups.AdvanceOp(states[-1])
            body.add_ops([fetched, following, scf.YieldOp(fetched.result, *ends, following.result)])
            loop = _until_the_last(order, starts, body)
        loop.location = self.function.location
        block.add_op(loop)

    def _write_instance(self, number: SSAValue, body: Block, order: TileOrder) -> None:
        """Writes the work of this partition for one program instance."""
        coordinates = order.coordinates(number, body)
        numbering = list(body.ops)
        for op in self.function.body.walk():
            if isinstance(op, tile.ProgramIdOp):
                self.values[op.result] = coordinates[op.axis.value.data]
        self.write(self.function.body.block, body)
        for op in reversed(numbering):
            if not any(result.first_use for result in op.results):
                op.detach()
                op.erase()

    def write(self, old: Block, block: Block) -> None:
        """Writes the ops of a block at the end of another."""
        for op in old.ops:
            if op not in self.needed.ops or op in self.front or isinstance(op, tile.ProgramIdOp):
                continue
            if isinstance(op, scf.ForOp):
                self._loop(op, block)
            elif isinstance(op, scf.IfOp):
                self._branch(op, block)
            elif op in self.rings:
                self.load(op, self.rings[op], block)
            else:
                block.add_op(op.clone(self.values))
            self.behind(op, block)

    def get(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    def _used_in(self, op: Operation) -> list[_Ring]:
        inside = {self.rings[load] for load in op.walk() if load in self.rings}
        return [ring for ring in self.memory if ring in inside]

    def _close(self, old: Block, block: Block, indices: Sequence[int], rings: Sequence[_Ring]) -> None:
        """Writes a nested block and its yield: the values at some indices, and pipeline states."""
        self.write(old, block)
        given = [self.get(end_of(old).operands[index]) for index in indices]
        end = scf.YieldOp(*given, *(self.states[ring] for ring in rings))
        end.location = end_of(old).location
        block.add_op(end)

    def _finish(self, op: Operation, made: Operation, indices: Sequence[int], rings: Sequence[_Ring]) -> None:
        made.attributes.update(op.attributes)
        made.location = op.location
        for index, result in zip(indices, made.results, strict=False):
            self.values[op.results[index]] = result
            result.name_hint = op.results[index].name_hint
        self.states.update(zip(rings, made.results[len(indices) :], strict=True))

    def _loop(self, op: scf.ForOp, block: Block) -> None:
        indices, rings, old = self.needed.indices_of(op), self._used_in(op), op.body.block
        starts = [*(self.get(op.iter_args[index]) for index in indices), *(self.states[ring] for ring in rings)]
        body = Block(arg_types=[old.args[0].type, *(start.type for start in starts)])
        for index, argument in zip([-1, *indices], body.args, strict=False):
            self.values[old.args[index + 1]] = argument
            argument.name_hint = old.args[index + 1].name_hint
        self.states.update(zip(rings, body.args[1 + len(indices) :], strict=True))
        self._close(old, body, indices, rings)
        bounds = [self.get(bound) for bound in (op.lb, op.ub, op.step)]
        made = scf.ForOp(bounds[0], bounds[1], bounds[2], starts, Region(body))
        block.add_op(made)
        self._finish(op, made, indices, rings)

    def _branch(self, op: scf.IfOp, block: Block) -> None:
        indices, rings = self.needed.indices_of(op), self._used_in(op)
        before = dict(self.states)
        types = [*(op.results[index].type for index in indices), *(before[ring].type for ring in rings)]
        regions: list[Region] = []
        for region in op.regions:
            inner = Block()
            self.states = dict(before)
            if region.blocks:
                self._close(region.block, inner, indices, rings)
            else:
                inner.add_op(scf.YieldOp(*(before[ring] for ring in rings)))
            regions.append(Region(inner))
        self.states = before
        made = scf.IfOp(self.get(op.cond), types, regions[0], regions[1])
        block.add_op(made)
        self._finish(op, made, indices, rings)


def _until_the_last(order: TileOrder, starts: Sequence[SSAValue], body: Block) -> scf.WhileOp:
    """A loop whose iterations yield the number of the next program instance; the first is the number of the CTA."""
    types = [argument.type for argument in body.args]
    test = Block(arg_types=types)
    some = arith.CmpiOp(test.args[0], order.counts[-1], "slt")
    test.add_ops([some, scf.ConditionOp(some.result, *test.args)])
    return scf.WhileOp([order.cta, *starts], types, Region(test), Region(body))


class _Producer(_Partition):
    """The producer: copies tiles into rings where they were loaded."""

    next_instance = tile_scheduler.SchedulerFetchOp

    def load(self, op: Operation, ring: _Ring, block: Block) -> None:
        assert isinstance(op, tile.BoxLoad)
        view, memory, state = self.get(op.view), self.memory[ring], self.states[ring]
        copy: Operation
        if isinstance(op, tile.LoadBoxesOp):
            starts = [self.get(start) for start in op.starts]
            until = None if op.until is None else self.get(op.until)
            copy = warp_groups.ProducerCopyBoxesOp(view, starts, op.axes.get_values(), memory, state, until=until)
        else:
            copy = warp_groups.ProducerCopyOp(view, [self.get(offset) for offset in op.offsets], memory, state)
        following = warp_groups.AdvanceOp(self.states[ring])
        adopt_location([copy, following], op)
        block.add_ops([copy, following])
        self.states[ring] = following.result


class _Consumer(_Partition):
    """A consumer: waits for tiles where they were loaded, and releases them behind their last use.

    All warp groups use rings in the same order: one that waits for a slot then holds none that another waits for first.
    """

    next_instance = tile_scheduler.SchedulerReadOp

    def __init__(self, writer: _Writer, needed: Slice, front: set[Operation]) -> None:
        super().__init__(writer, needed, front)
        self.consumers = writer.consumers
        self.ends: dict[Operation, list[_Ring]] = {}
        for load, ring in self.rings.items():
            if self.waits_for(load):
                self.ends.setdefault(self.last_user(load), []).append(ring)

    def last_user(self, load: Operation) -> Operation:
        """The op behind which the tile of a load is released."""
        return _last_user(load, self.needed)

    def waits_for(self, op: Operation) -> bool:
        """Whether this partition reads the tile of an op from a ring."""
        return True

    def load(self, op: Operation, ring: _Ring, block: Block) -> None:
        shared = (None, 0) if ring.axis is None else (self.consumers, ring.axis)
        wait = warp_groups.ConsumerWaitOp(self.memory[ring], self.states[ring], *shared)
        result = op.results[0]
        wait.location, wait.result.name_hint = op.location, result.name_hint
        block.add_op(wait)
        self.values[result] = wait.result

    def behind(self, op: Operation, block: Block) -> None:
        for ring in self.ends.get(op, ()):
            release = warp_groups.ConsumerReleaseOp(self.memory[ring], self.states[ring])
            following = warp_groups.AdvanceOp(self.states[ring])
            adopt_location([release, following], op)
            block.add_ops([release, following])
            self.states[ring] = following.result


class _Preparer(_Consumer):
    """The preparer: waits for tiles as a consumer does, computes operands, and puts them into their rings."""

    def waits_for(self, op: Operation) -> bool:
        return isinstance(op, tile.LoadOp)

    def last_user(self, load: Operation) -> Operation:
        """The op that makes an operand of it: a tile is read in pieces, while it is computed."""
        found = super().last_user(load)
        for maker in self.rings:
            if (
                not self.waits_for(maker)
                and maker.parent_block() is load.parent_block()
                and found.is_before_in_block(maker)
            ):
                found = maker
        return found

    def load(self, op: Operation, ring: _Ring, block: Block) -> None:
        if self.waits_for(op):
            super().load(op, ring, block)
            return
        made = op.clone(self.values)
        write = prepare.ProducerWriteOp(made.results[0], self.memory[ring], self.states[ring])
        following = warp_groups.AdvanceOp(self.states[ring])
        adopt_location([write, following], op)
        block.add_ops([made, write, following])
        self.states[ring] = following.result
