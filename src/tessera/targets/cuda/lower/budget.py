"""Registers and shared memory that a kernel takes, estimated before machine code is made.

Registers follow from which tiles a thread holds at the same time. What only counts, repeats or moves elements (`full`,
`iota`, `expand`, `broadcast`, `trans`) takes none, and what a single op asks for is made when it is asked for. Operands
of dots come out of shared memory step by step; how many steps ahead is the assembler's choice.

The numbers below were found by comparing with ptxas, over kernels of all kinds; a test compares again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import Kind, bf16
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.along_axes import scan_slots, sort_bytes
from tessera.targets.cuda.emit.conversion_plans import plan
from tessera.targets.cuda.emit.emitter import SCRATCH_ALIGN, WORD, cooperating_threads
from tessera.targets.cuda.emit.thread_tiles import ThreadTile
from tessera.targets.cuda.emit.values import registers_of
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import MbarriersOp, WordsOp
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ir.tensor_cores import INSTRUCTIONS
from tessera.targets.cuda.ir.types import SharedType, layout_of, shared_type

REGISTERS = 255
"""The most of a thread."""
OVERHEAD = 16
"""Registers for the numbers of a thread, and for addresses."""
LOOP = 8
COPY = 8
UNROLLED = 24
"""Of a loop, of each copy in one, and of a loop that goes through its rings once in each iteration."""
AHEAD = 52
"""Of operands that are read ahead of dots, where there are so many."""
EXPONENT = 6
"""Of exponentials."""
ANGLE = 8
"""Of each element whose sine or cosine is computed."""
_FREE = (tile.FullOp, tile.IotaOp)
_MOVES = (tile.ExpandOp, tile.BroadcastOp, tile.TransOp)
_REPEATS = (scf.ForOp, scf.WhileOp)


@dataclass(frozen=True)
class Budget:
    """Registers that a thread will have, the least that it needs, and bytes of shared memory of a block.

    With fewer registers than the least, values lie in local memory.
    """

    registers: int
    least: int
    shared: int


def estimate(function: nv.FuncOp) -> Budget:
    """The budget of a function."""
    found = _Registers()
    found.block(function.body.block, {})
    more = OVERHEAD + _loops(function)
    least = more + found.least
    # Operands are read ahead only into registers that there are.
    return Budget(max(least, min(REGISTERS, more + found.most)), least, shared_bytes(function))


def words_of(value: SSAValue) -> int:
    """The registers that a thread has of a value, each of 32 bits."""
    if not isinstance(value.type, TensorType):
        return 0
    dtype, layout = tile_dtype(value), layout_of(value)
    if dtype.kind is Kind.BOOL:
        # There are few registers for truths.
        return -(-layout.count // 4)
    flat = ThreadTile.flat_count(dtype, layout)
    return 2 * flat if dtype.storage.itemsize == 8 else flat


Live = dict[SSAValue, int]


@dataclass
class _Registers:
    """Goes backwards through blocks, with what is live behind each op; notes the most there ever is."""

    most: int = 0
    least: int = 0
    """The same, if operands of dots are read as late as they can be."""
    _known: dict[SSAValue, frozenset[SSAValue]] = field(default_factory=dict[SSAValue, frozenset[SSAValue]])

    def _held(self, value: SSAValue) -> frozenset[SSAValue]:
        """The values whose registers hold another one, or what it is made of when it is asked for."""
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: SSAValue) -> frozenset[SSAValue]:
        owner = value.owner
        if isinstance(owner, _MOVES):
            return self._held(owner.operand)
        if isinstance(owner, _FREE):
            return frozenset()
        if isinstance(owner, tile.EwOp | tile.UnpackOp):
            parts = frozenset[SSAValue]().union(*(self._held(operand) for operand in owner.operands))
            # The upper half of an f32 is one instruction away: in loops it is made wherever it is wanted.
            casts = isinstance(owner, tile.EwOp) and owner.fn.data == "cast"
            opened = casts and tile_dtype(owner.operands[0]) is bf16
            if opened and isinstance(owner.parent_op(), _REPEATS):
                return parts
            if tile_dtype(value).kind is Kind.BOOL and not any(_words(part) for part in parts):
                # Masks of coordinates: comparing again is cheaper than keeping the result.
                return parts
            user = _only_user(value)
            if user is not None and user.parent is owner.parent:
                # An element at a time is made where it is used, if what it is made of takes no more registers.
                dying = sum(_words(part) for part in parts if _only_user(part) is not None)
                return parts if dying <= _words(value) else frozenset({value})
        return frozenset({value})

    def _use(self, live: Live, values: Iterable[SSAValue]) -> None:
        for value in values:
            for part in self._held(value):
                if part not in live and (words := _words(part)):
                    live[part] = words

    def _note(self, live: Live, op: Operation | None = None) -> None:
        late, ahead = (0, 0) if op is None else _room(op)
        held = sum(live.values())
        self.least = max(self.least, held + late)
        self.most = max(self.most, held + ahead)

    def block(self, block: Block, live: Live) -> None:
        """Makes of what is live behind a block what is live in front of it."""
        for op in reversed(list(block.ops)):
            self._note(live)
            for result in op.results:
                live.pop(result, None)
            if op.regions:
                self._regions(op, live)
            # What is made later is not made here.
            elif not op.results or op.results[0] in self._held(op.results[0]) or isinstance(op, _FREE):
                self._use(live, op.operands)
            self._note(live, op)

    def _regions(self, op: Operation, live: Live) -> None:
        if isinstance(op, _REPEATS):
            # What a loop uses of the outside lives as long as the loop.
            inner = [one for region in op.regions for one in region.walk()]
            blocks = [block for one in (op, *inner) for region in one.regions for block in region.blocks]
            inside = {value for one in inner for value in one.results}.union(*(block.args for block in blocks))
            self._use(live, (value for one in inner for value in one.operands if value not in inside))
        before = dict(live)
        for block in (block for region in op.regions for block in region.blocks):
            within = dict(live)
            self.block(block, within)
            for argument in block.args:
                within.pop(argument, None)
            before |= within
        live |= before
        self._use(live, op.operands)


def _only_user(value: SSAValue) -> Operation | None:
    """The one op that asks for a value; what moves its elements only hands it on."""
    uses = [use.operation for use in value.uses]
    if len(uses) != 1:
        return None
    (user,) = uses
    return _only_user(user.results[0]) if isinstance(user, _MOVES) else user


def _words(value: SSAValue) -> int:
    return 0 if _is_operand(value) else words_of(value)


def _is_operand(value: SSAValue) -> bool:
    """Whether a tile is read out of shared memory for dots alone, which do it step by step."""
    return isinstance(value.owner, nv.ReadOp) and all(isinstance(use.operation, nv.MmaOp) for use in value.uses)


def _room(op: Operation) -> tuple[int, int]:
    """Registers that an op needs besides its operands and results: at least, and if they can be had."""
    room = 0
    if isinstance(op, nv.MmaOp):
        return _dot_room(op)
    if isinstance(op, nv.ConvertOp) and tile_dtype(op.operand).storage.itemsize < 4:
        # Neighbours become others: elements leave the words that they share.
        room = words_of(op.operand)
    elif isinstance(op, tile.EwOp) and op.fn.data in ("sin", "cos"):
        room = ANGLE * layout_of(op.result).count
    elif isinstance(op, tile.EwOp) and op.fn.data in ("exp", "exp2"):
        room = EXPONENT
    return room, room


def _dot_room(op: nv.MmaOp) -> tuple[int, int]:
    """Registers of a dot's operands that come out of shared memory: of one step, and of those read ahead."""
    left, right, total = (tile_dtype(value).base for value in (op.a, op.b, op.c))
    instruction = INSTRUCTIONS[left, right, total]
    whole = sum(words_of(value) for value in (op.a, op.b) if _is_operand(value))
    steps = max(1, -(-tile_type(op.a).get_shape()[1] // instruction.depth))
    step = -(-whole // steps)
    if instruction.splits:
        # Both parts of each number, of this step and the next; and the accumulators of every step apart.
        return min(4 * step, 2 * whole), 2 * whole + steps * words_of(op.c)
    return step, min(whole, max(2 * step, AHEAD))


def _loops(function: nv.FuncOp) -> int:
    """Registers of loops besides tiles, with the copies in them."""
    most = 0
    for loop in function.body.walk():
        if isinstance(loop, _REPEATS):
            copies = [op.shared for op in loop.walk() if isinstance(op, nv.CopyAsyncOp)]
            rings = {shared.owner.ring if isinstance(shared.owner, nv.SlotOp) else shared for shared in copies}
            most = max(most, LOOP + COPY * len(rings) + UNROLLED * (len(copies) > len(rings)))
    return most


# Shared memory


def shared_bytes(function: nv.FuncOp) -> int:
    """Bytes of shared memory, as the emitter lays it out: tiles, barriers and words, and scratch of ops that use it."""
    ops = list(function.body.walk())
    small = [op for op in ops if isinstance(op, MbarriersOp | WordsOp)]
    end = sum(shared_type(op.result).size for op in ops if isinstance(op, nv.AllocOp))
    for op in small:
        end = -(-end // op.shared_align) * op.shared_align + op.shared_bytes
    end = -(-end // 16) * 16
    # Behind the last op that uses tiles their memory is free, unless warp groups share it otherwise.
    tops, threads = list(function.body.block.ops), cooperating_threads(function)
    last = -1 if small else max((index for index, op in enumerate(tops) if _uses_tiles(op)), default=-1)
    early, late = (
        max((_scratch(inner, threads) for op in part for inner in op.walk()), default=0)
        for part in (tops[: last + 1], tops[last + 1 :])
    )
    if threads < function.thread_count:
        # Each warp group has its own.
        late = -(-late // SCRATCH_ALIGN) * SCRATCH_ALIGN * (function.thread_count // threads)
    return end + late if last < 0 else max(end + early, late)


def _uses_tiles(op: Operation) -> bool:
    return any(isinstance(value.type, SharedType) for inner in op.walk() for value in (*inner.operands, *inner.results))


def _scratch(op: Operation, threads: int) -> int:
    """Bytes through which an op moves elements from thread to thread."""
    if isinstance(op, nv.ConvertOp):
        source, layout, shape = layout_of(op.operand), layout_of(op.result), tile_type(op.result).get_shape()
        if registers_of(source, layout, shape, range(len(shape))) is not None:
            return 0
        return plan(source, layout, shape, tile_dtype(op.operand).storage.itemsize, threads).order.bytes
    if isinstance(op, tile.PrintRecordOp):
        return WORD
    if isinstance(op, tile.TakeOp):
        return prod(tile_type(op.operand).get_shape()) * tile_dtype(op.operand).storage.itemsize
    if isinstance(op, tile.SortOp):
        return sort_bytes(layout_of(op.operand), op.axis.value.data, tile_dtype(op.operand), threads)
    if isinstance(op, tile.ScanOp):
        return scan_slots(layout_of(op.operand), op.axis.value.data) * max(4, tile_dtype(op.operand).storage.itemsize)
    if isinstance(op, tile.ReduceOp):
        layout, axis = layout_of(op.operand), op.axis.value.data
        item = max(4, tile_dtype(op.operand).storage.itemsize)
        return partial_sums(layout, axis) * layout.without(axis).count * item
    return 0


def partial_sums(layout: Layout, axis: int) -> int:
    """Parts of a register's reduction that threads write to shared memory: shuffles leave one of each warp, or all."""
    left = others = 1
    for digit, below in layout.positions:
        if digit.axis == axis:
            lanes = gcd(digit.size, max(1, WARP // below)) if below & (below - 1) == 0 else 1
            left *= digit.size // lanes
        elif digit.axis >= 0:
            others *= digit.size
    return others * left if left > 1 else 0
