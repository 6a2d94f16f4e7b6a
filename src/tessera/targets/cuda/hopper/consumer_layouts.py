"""The layout of each tile of a consumer: accumulators of dots anchor theirs, and loads follow.

A consumer is one of several warp groups, and cannot ask the others to meet at a barrier: no conversion goes through
shared memory. So loads have no layout of their own, and tiles are stored as they lie. A tile that would have to change
its layout all the same is found later, and refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from tessera.ir.pipe import prepare, warp_groups
from tessera.ir.pipe.transpose import is_transposed_into
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import layouts, wgmma
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import CHUNK
from tessera.targets.cuda.ir.wgmma import left_operand_layout
from tessera.targets.cuda.lower.layout_analysis import DOT, Anchor, LayoutAnalysis, Shape, is_tile
from tessera.transforms.pipelining.make_async import is_transposed

OPERAND = DOT + 1
"""How strongly the layout of a left operand holds: a tile made of an accumulator has it by renaming registers."""


def accumulator_layout(value: SSAValue) -> Layout:
    """The layout of an accumulator."""
    rows, columns = warp_groups.accumulator_type(value).get_shape()
    return layouts.accumulator(rows, columns)


def left_layout(op: warp_groups.DotStartOp) -> Layout:
    """The layout of a dot's left operand in registers."""
    return left_operand_layout(tile_type(op.a).get_shape()[1], tile_dtype(op.a), paired=is_paired(op))


def is_paired(op: warp_groups.DotStartOp) -> bool:
    """Whether the depth of a dot is paired: its right operand is transposed into the order that its left one has."""
    ring = ring_of(op.b)
    return not is_taken(op.a) and ring is not None and is_transposed_into(ring)


def ring_of(value: SSAValue) -> SSAValue | None:
    """The ring that a tile is in, as it is or transposed."""
    owner = value.owner
    if isinstance(owner, tile.TransOp) and is_transposed(owner):
        owner = owner.operand.owner
    return owner.ring if isinstance(owner, warp_groups.ConsumerWaitOp) else None


def is_taken(value: SSAValue) -> bool:
    """Whether a tile is in a ring."""
    return ring_of(value) is not None


@dataclass
class ConsumerLayouts(LayoutAnalysis):
    """The layouts of the tiles of consumers, each of which has the threads of `shape`, and of those of the preparer."""

    preparing: Shape = field(default_factory=lambda: Shape(4))

    def __post_init__(self) -> None:
        self.written = set[SSAValue]()
        self.grids = {}
        partitions = [op for op in self.function.body.block.ops if isinstance(op, warp_groups.WarpSpecializeOp)]
        preparers = [one.preparer for one in partitions if one.preparer is not None]
        self.prepares = {op for region in preparers for op in region.walk()}
        """The ops of the preparer: its threads read tiles, and are as many as `preparing` says."""
        self.staged = {
            value
            for op in self.function.body.walk()
            if op not in self.prepares
            for value in op.results
            if is_taken(value)
        }
        starts = [op for op in self.function.body.walk() if isinstance(op, warp_groups.DotStartOp)]
        self.paired = {tile_type(op.a): left_layout(op) for op in starts if is_paired(op)}
        """Types of left operands with layouts of their own: they are best made in them."""
        self._anchor()
        self._demand(self.function.body.block)

    def _settle_op(self, op: Operation) -> bool:
        if isinstance(op, warp_groups.WarpSpecializeOp):
            # All regions are walked, also behind the first change.
            changes = [self._settle(region.block) for region in op.regions]
            return any(changes)
        return super()._settle_op(op)

    def _own(self, op: Operation) -> Anchor | None:
        match op:
            case warp_groups.DotWaitOp():
                return Anchor(accumulator_layout(op.result), DOT)
            case tile.LoadOp():
                return None
            case tile.UnpackOp() | tile.PackOp() if op.operand not in self.anchors:
                return None
            case tile.EwOp() if tile_type(op.result) in self.paired:
                return Anchor(self.paired[tile_type(op.result)], OPERAND)
            case _:
                return super()._own(op)

    def _demand_op(self, op: Operation) -> None:
        match op:
            case warp_groups.WarpSpecializeOp():
                for region in op.regions:
                    self._demand(region.block)
            case tile.AnyOp():
                self._want(op.operand, self._any(op.operand))
            case prepare.ProducerWriteOp():
                self._want(op.value, self.for_write(op.value))
            case warp_groups.DotStartOp():
                if not is_taken(op.a):
                    self._want(op.a, left_layout(op))
                if is_tile(op.c):
                    self._want(op.c, accumulator_layout(op.c))
            case _:
                super()._demand_op(op)

    def for_store(self, op: tile.StoreOp) -> Layout:
        known, owner = self.anchors.get(op.value), op.value.owner
        if known is None and isinstance(owner, tile.ExpandOp) and owner.operand in self.anchors:
            # A column is stored in the layout of the rows that it is made of.
            return self.anchors[owner.operand].layout.with_axis(owner.axis.value.data)
        if known is None and self._rests_on_rows(op.value):
            return accumulator_like(op.value)
        return self.spread(op.value) if known is None else known.layout

    def for_write(self, value: SSAValue) -> Layout:
        """The layout in which the preparer writes a tile to shared memory: a chunk of it in each thread.

        What is unpacked is so in one thread: both halves of its bytes.
        """
        if (known := self.anchors.get(value)) is not None:
            return known.layout
        shape, chunk = list(tile_type(value).get_shape()), CHUNK // tile_dtype(value).storage.itemsize
        halves = _unpacked_along(value)
        if halves is None:
            return layouts.blocked(shape, self.preparing.threads, chunk)
        shape[halves] //= 2
        vector = chunk // 2 if halves == len(shape) - 1 else chunk
        return layouts.blocked(shape, self.preparing.threads, vector).doubled(halves)

    def to_fold(self, value: SSAValue) -> Layout:
        """The layout in which a free value is folded: that of accumulators, whose rows no two warps share.

        Such a value is what an accumulator would have been in a loop without iterations.
        """
        return accumulator_like(value) if _is_foldable(value) else super().to_fold(value)

    def _rests_on_rows(self, value: SSAValue) -> bool:
        """Whether a free tile is made of rows that have a layout, which accumulators fit without a conversion."""
        if not _is_foldable(value):
            return False
        pending, seen = [value], set[SSAValue]()
        while pending:
            one = pending.pop()
            if one in seen or not is_tile(one):
                continue
            seen.add(one)
            known = self.anchors.get(one)
            if known is not None:
                if known.layout == accumulator_like(value).without(1):
                    return True
            elif isinstance(one.owner, tile.EwOp | tile.ExpandOp | tile.BroadcastOp):
                pending += one.owner.operands
        return False


def _unpacked_along(value: SSAValue) -> int | None:
    """The axis along which an elementwise tile is made of halves of bytes, if it is."""
    owner = value.owner
    if isinstance(owner, tile.UnpackOp):
        return owner.axis.value.data
    found = map(_unpacked_along, owner.operands_) if isinstance(owner, tile.EwOp) else ()
    return next((axis for axis in found if axis is not None), None)


def accumulator_like(value: SSAValue) -> Layout:
    """The layout that a tile would have as an accumulator."""
    rows, columns = tile_type(value).get_shape()
    return layouts.accumulator(rows, columns)


def _is_foldable(value: SSAValue) -> bool:
    """Whether a tile has whole instructions of an accumulator."""
    shape = tile_type(value).get_shape()
    return len(shape) == 2 and shape[0] % wgmma.ROWS == 0 and shape[1] % wgmma.COLUMN_STEP == 0


def is_accumulator(layout: Layout, value: SSAValue) -> bool:
    """Whether a layout is that of an accumulator."""
    shape = tile_type(value).get_shape()
    return len(shape) == 2 and layout == layouts.accumulator(*shape)
