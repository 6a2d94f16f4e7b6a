"""What a kernel takes of a multiprocessor, estimated before machine code is made: registers and shared memory.

Registers follow from which tiles a thread holds at the same time. What only counts, repeats or moves elements (`full`,
`iota`, `expand`, `broadcast`, `trans`) takes none. Operands of products come out of shared memory step by step: how many
steps ahead is the assembler's choice, and it takes what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.dialects import tile
from tessera.dialects.elements import dtype_of
from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.dtypes.types import Kind, bf16
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda.conversion_plans import plan
from tessera.targets.cuda.emit_values import registers_of
from tessera.targets.cuda.hopper import BarriersOp, WordsOp
from tessera.targets.cuda.layouts import WARP, Layout
from tessera.targets.cuda.nv_types import SharedType, layout_of, shared_type
from tessera.targets.cuda.products import INSTRUCTIONS
from tessera.targets.cuda.thread_tiles import ThreadTile

REGISTERS = 255
"""What a thread can have."""
OVERHEAD = 16
"""For where a thread is, and for addresses."""
LOOP = 8
COPY = 8
UNROLLED = 24
"""Of a loop, of each copy in one, and of a loop that knows its slots."""
AHEAD = 52
"""Registers of operands that the assembler reads ahead of products, if it has them."""
EXPONENT = 6
"""Of exponentials."""
ANGLE = 8
"""Of each element whose sine or cosine is computed."""
_FREE = (tile.FullOp, tile.IotaOp)
_MOVES = (tile.ExpandOp, tile.BroadcastOp, tile.TransOp)


@dataclass(frozen=True)
class Budget:
    """Registers that a thread will have, the least it needs not to spill, and bytes of shared memory of a block."""

    registers: int
    least: int
    shared: int


def estimate(function: nv.FuncOp) -> Budget:
    """What a function will take."""
    return Budget(_Registers(ahead=True).of(function), _Registers(ahead=False).of(function), shared_bytes(function))


def words_of(value: SSAValue) -> int:
    """The registers that a thread has of a value, each of 32 bits."""
    if isinstance(value.type, TensorType):
        dtype, layout = tile_dtype(value), layout_of(value)
        if dtype.kind is Kind.BOOL:
            # There are few registers for truths, and none for many of them.
            return -(-layout.count // 4)
        flat = ThreadTile.flat_count(dtype, layout)
        return 2 * flat if dtype.storage.itemsize == 8 else flat
    return 0


@dataclass
class _Registers:
    """Goes backwards through a function, with what is live behind each op."""

    ahead: bool
    """Whether operands are read as far ahead as they will be, or as late as they can be."""
    most: int = 0
    _roots: dict[SSAValue, frozenset[SSAValue]] = field(default_factory=dict[SSAValue, frozenset[SSAValue]])

    def of(self, function: nv.FuncOp) -> int:
        self._block(function.body.block, {})
        return OVERHEAD + _loops(function) + self.most

    def _held(self, value: SSAValue) -> frozenset[SSAValue]:
        """The values whose registers hold another one, or what it is made of when it is asked for."""
        if value not in self._roots:
            self._roots[value] = self._found(value)
        return self._roots[value]

    def _found(self, value: SSAValue) -> frozenset[SSAValue]:
        owner = value.owner
        if isinstance(owner, _MOVES):
            return self._held(owner.operand)
        if isinstance(owner, _FREE):
            return frozenset()
        if isinstance(owner, tile.EwOp) and owner.fn.data == "cast" and tile_dtype(owner.operands_[0]) is bf16:
            # The upper half of an f32 is one instruction away: in loops it is made wherever it is wanted.
            if isinstance(owner.parent_op(), scf.ForOp | scf.WhileOp):
                return self._held(owner.operands_[0])
        if isinstance(owner, tile.EwOp) and (user := _only_user(value)) is not None and user.parent is owner.parent:
            # One op alone asks for it, an element at a time: if that saves registers, it is made then.
            parts = frozenset[SSAValue]().union(*(self._held(operand) for operand in owner.operands_))
            dying = [part for part in parts if _only_user(part) is not None]
            if sum(self._words(part) for part in dying) <= self._words(value):
                return parts
        return frozenset({value})

    def _use(self, live: dict[SSAValue, int], values: Iterable[SSAValue]) -> None:
        for value in values:
            for root in self._held(value):
                if root not in live and (words := self._words(root)):
                    live[root] = words

    @staticmethod
    def _words(value: SSAValue) -> int:
        return 0 if _is_operand(value) else words_of(value)

    def _note(self, live: dict[SSAValue, int], more: int = 0) -> None:
        self.most = max(self.most, sum(live.values()) + more)

    def _block(self, block: Block, live: dict[SSAValue, int]) -> None:
        """What is live in front of a block, from what is behind it."""
        for op in reversed(list(block.ops)):
            self._op(op, live)

    def _op(self, op: Operation, live: dict[SSAValue, int]) -> None:
        self._note(live)
        if isinstance(op, scf.ForOp | scf.WhileOp | scf.IfOp):
            self._regions(op, live)
            return
        for result in op.results:
            live.pop(result, None)
        if not isinstance(op, _MOVES) and not (op.results and op.results[0] not in self._held(op.results[0])):
            self._use(live, op.operands)
        self._note(live, self._room(op))

    def _room(self, op: Operation) -> int:
        """Registers that an op needs besides its operands and results."""
        if isinstance(op, nv.MmaOp):
            return _product_room(op, self.ahead)
        if isinstance(op, tile.EwOp) and op.fn.data in ("sin", "cos"):
            return ANGLE * layout_of(op.result).count
        if isinstance(op, nv.ConvertOp) and tile_dtype(op.operand).storage.itemsize < 4:
            # Neighbours become others: elements leave the words that they share.
            return words_of(op.operand)
        return EXPONENT if isinstance(op, tile.EwOp) and op.fn.data in ("exp", "exp2") else 0

    def _regions(self, op: Operation, live: dict[SSAValue, int]) -> None:
        for result in op.results:
            live.pop(result, None)
        repeats = not isinstance(op, scf.IfOp)
        inner = [one for region in op.regions for block in region.blocks for one in block.walk()]
        if repeats:
            # What a loop uses of the outside lives as long as the loop.
            inside = {result for one in inner for result in one.results}
            inside |= {argument for one in (op, *inner) for region in one.regions for b in region.blocks for argument in b.args}
            self._use(live, (value for one in inner for value in one.operands if value not in inside))
        before = dict(live)
        for region in op.regions:
            for block in region.blocks:
                within = dict(live)
                self._block(block, within)
                for argument in block.args:
                    within.pop(argument, None)
                before |= within
        live |= before
        self._use(live, op.operands)
        self._note(live)


def _only_user(value: SSAValue) -> Operation | None:
    """The one op that asks for a value; what moves its elements only hands it on."""
    uses = [use.operation for use in value.uses]
    if len(uses) != 1:
        return None
    (user,) = uses
    return _only_user(user.results[0]) if isinstance(user, _MOVES) else user


def _is_operand(value: SSAValue) -> bool:
    """Whether a tile is read out of shared memory for products alone."""
    return isinstance(value.owner, nv.ReadOp) and all(isinstance(use.operation, nv.MmaOp) for use in value.uses)


def _loops(function: nv.FuncOp) -> int:
    """What loops take besides tiles, and the copies in them."""
    most = 0
    for loop in function.body.walk():
        if isinstance(loop, scf.ForOp | scf.WhileOp):
            copies = [op.shared for op in loop.walk() if isinstance(op, nv.CopyAsyncOp)]
            rings = {shared.owner.ring if isinstance(shared.owner, nv.SlotOp) else shared for shared in copies}
            most = max(most, LOOP + COPY * len(rings) + UNROLLED * (len(copies) > len(rings)))
    return most


def _product_room(op: nv.MmaOp, ahead: bool) -> int:
    """Registers of operands that come out of shared memory for a product: of one step, or of those that are ahead."""
    left, right, total = (tile_dtype(value).base for value in (op.a, op.b, op.c))
    instruction = INSTRUCTIONS[left, right, total]
    whole = sum(words_of(value) for value in (op.a, op.b) if _is_operand(value))
    steps = max(1, -(-tile_type(op.a).get_shape()[1] // instruction.depth))
    step = -(-whole // steps)
    if instruction.splits:
        # Both parts of each number, and the sums of every step apart.
        return 2 * whole + steps * words_of(op.c) if ahead else 2 * step
    return min(whole, max(2 * step, AHEAD)) if ahead else step


# Shared memory


def shared_bytes(function: nv.FuncOp) -> int:
    """Bytes of shared memory: tiles, what is small behind them, and scratch of conversions and reductions."""
    end = sum(op.result.type.size for op in function.body.walk() if isinstance(op, nv.AllocOp) and isinstance(op.result.type, SharedType))
    small = [op for op in function.body.walk() if isinstance(op, BarriersOp | WordsOp)]
    for op in small:
        end = -(-end // op.shared_align) * op.shared_align + op.shared_bytes
    end = -(-end // 16) * 16
    # Behind the last op that uses tiles their room is free.
    tops = list(function.body.block.ops)
    last = max((place for place, op in enumerate(tops) if _uses_tiles(op)), default=-1)
    early, late = (
        max((_scratch(inner, function.thread_count) for op in part for inner in op.walk()), default=0)
        for part in (tops[: last + 1], tops[last + 1 :])
    )
    return max(end + early, late) if end and not small else end + max(early, late)


def _uses_tiles(op: Operation) -> bool:
    return any(
        isinstance(value.type, SharedType) for inner in op.walk() for value in (*inner.operands, *inner.results)
    )


def _scratch(op: Operation, threads: int) -> int:
    """Bytes through which an op moves elements from thread to thread."""
    if isinstance(op, nv.ConvertOp):
        source, layout, shape = layout_of(op.operand), layout_of(op.result), tile_type(op.result).get_shape()
        if registers_of(source, layout, shape, range(len(shape))) is not None:
            return 0
        return plan(source, layout, shape, tile_dtype(op.operand).storage.itemsize, threads).order.bytes
    if isinstance(op, tile.ReduceOp):
        layout, axis = layout_of(op.operand), op.axis.value.data
        item = max(4, tile_dtype(op.operand).storage.itemsize)
        return _partial_sums(layout, axis) * layout.without(axis).count * item
    return 0


def _partial_sums(layout: Layout, axis: int) -> int:
    """How many parts of each sum threads write down: those that shuffles leave."""
    left = others = 1
    for digit, below in layout.positions:
        if digit.axis == axis:
            lanes = gcd(digit.size, max(1, WARP // below)) if below & (below - 1) == 0 else 1
            left *= digit.size // lanes
        elif digit.axis >= 0:
            others *= digit.size
    return others * left if left > 1 else 0
