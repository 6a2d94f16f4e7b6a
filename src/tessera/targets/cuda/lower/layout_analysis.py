"""Analysis that finds a layout for each tile of a function, before anything is written.

Some ops anchor layouts: accumulators of dots have that of the tensor cores, loads one in which neighbouring threads
read neighbouring addresses. From there layouts go along with values: through elementwise ops, reductions and loops,
where that of dots wins. What is left is *free*: constants, positions, rows and columns that are repeated. A free value
is made wherever it is needed, once for each layout in which it is needed. Only where two anchored layouts meet, a
conversion is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import layouts
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ir.tensor_cores import Grid, operand_layouts
from tessera.targets.cuda.ir.types import CHUNK
from tessera.targets.cuda.lower.memory_hints import why_not_vector
from tessera.targets.cuda.lower.plain_dots import has_instruction
from tessera.transforms.pipelining.make_async import feeds_dots, is_only_multiplied, is_transposed


class Anchor(NamedTuple):
    """A layout, and how strongly it holds: that of dots is kept, that of memory gives way."""

    layout: Layout
    strength: int


MEMORY, DOT = 1, 2
SHORT = 1024
"""Elements of a row that a warp reduces by itself."""
VECTOR = 8
"""Elements of such a row that a lane has side by side."""


@dataclass(frozen=True)
class Shape:
    """The threads of a block."""

    warps: int

    @property
    def threads(self) -> int:
        return self.warps * WARP


@dataclass
class Operand:
    """An operand of a dot on its way to the tensor cores: a tile in shared memory, perhaps transposed, or registers."""

    value: SSAValue
    transposed: bool = False
    staged: bool = False


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def operand_of(value: SSAValue) -> Operand:
    """Follows a transpose to the tile that is, or will be, in shared memory."""
    found = Operand(value)
    if isinstance(owner := value.owner, tile.TransOp) and is_transposed(owner):
        found = Operand(owner.operand, transposed=True)
    source = found.value.owner
    if isinstance(source, pipe.GetOp):
        found.staged = is_only_multiplied(source.result)
    elif isinstance(source, tile.LoadOp):
        found.staged = feeds_dots(source)
    return found if found.staged else Operand(value)


@dataclass
class LayoutAnalysis:
    """The layouts of a function's tiles for a block of threads."""

    function: tile.FuncOp
    shape: Shape
    anchors: dict[SSAValue, Anchor] = field(default_factory=dict[SSAValue, Anchor])
    wanted: dict[SSAValue, dict[Layout, None]] = field(default_factory=dict[SSAValue, dict[Layout, None]])
    """The layouts in which values are asked for, besides their own."""

    def __post_init__(self) -> None:
        self.written = tile.written_memory(self.function)
        self.staged = {
            value
            for op in self.function.body.walk()
            if isinstance(op, tile.DotOp)
            for operand in (operand_of(op.a), operand_of(op.b))
            if operand.staged
            for value in self._chain(operand, op)
        }
        tiles = [value for op in self.function.body.walk() for value in op.results if is_tile(value)]
        self._largest = max((prod(tile_type(value).get_shape()) for value in tiles), default=1)
        self.grids = {op: self._warp_grid(op) for op in self.function.body.walk() if isinstance(op, tile.DotOp)}
        self._anchor()
        self._demand(self.function.body.block)

    def _chain(self, operand: Operand, op: tile.DotOp) -> Iterator[SSAValue]:
        """The values between memory and a dot: they have no layout."""
        yield operand.value
        for side in (op.a, op.b):
            owner = side.owner
            if isinstance(owner, tile.TransOp) and owner.operand is operand.value:
                yield side

    # Anchors

    def _anchor(self) -> None:
        self._settle_all()
        # Free values that loops and branches carry have layouts, too, and so have reductions of free values.
        # Narrow elements say first how many neighbours a thread has: the others then go along with them.
        carried = [value for op in self.function.body.walk() for value in self._boundary(op)]
        for itemsize in sorted({tile_dtype(value).storage.itemsize for value in carried}):
            for value in carried:
                if value not in self.anchors and tile_dtype(value).storage.itemsize == itemsize:
                    self._set(value, Anchor(self.spread(value), MEMORY))
            self._settle_all()
        for op in self.function.body.walk():
            if isinstance(op, tile.ReduceOp) and op.result not in self.anchors:
                layout = self.to_fold(op.operand).without(op.axis.value.data)
                self._set(op.result, Anchor(layout, MEMORY))
                self._settle_all()

    def _settle_all(self) -> None:
        while self._settle(self.function.body.block):
            pass

    @staticmethod
    def _boundary(op: Operation) -> list[SSAValue]:
        """Tiles that a loop or a branch carries."""
        if isinstance(op, scf.ForOp | scf.WhileOp):
            arguments = [argument for region in op.regions for argument in region.block.args]
            return [value for value in (*op.results, *arguments) if is_tile(value)]
        return [value for value in op.results if is_tile(value)] if isinstance(op, scf.IfOp) else []

    def _set(self, value: SSAValue, anchor: Anchor | None) -> bool:
        if anchor is None:
            return False
        known = self.anchors.get(value)
        if known is not None and known.strength >= anchor.strength:
            return False
        self.anchors[value] = anchor
        return True

    def _settle(self, block: Block) -> bool:
        """Goes through a block once; whether anything changed."""
        changed = False
        for op in block.ops:
            changed |= self._settle_op(op)
        return changed

    def _settle_op(self, op: Operation) -> bool:
        match op:
            case scf.ForOp():
                end = op.body.block.last_op
                assert end is not None
                changed = self._settle(op.body.block)
                for first, argument, last, result in zip(
                    op.iter_args, op.body.block.args[1:], end.operands, op.results, strict=True
                ):
                    changed |= self._unify((argument, result), (first, last))
                return changed
            case scf.WhileOp():
                return self._settle_while(op)
            case scf.IfOp():
                changed = False
                for region in op.regions:
                    changed |= any(self._settle(block) for block in region.blocks)
                for index, result in enumerate(op.results):
                    ends = [region.block.last_op for region in op.regions if region.blocks]
                    changed |= self._unify([result], [end.operands[index] for end in ends if end is not None])
                return changed
            case _:
                pass
        if not op.results or not is_tile(op.results[0]) or op.results[0] in self.staged:
            return False
        return self._set(op.results[0], self._own(op))

    def _settle_while(self, op: scf.WhileOp) -> bool:
        before, after = op.before_region.block, op.after_region.block
        changed = self._settle(before) | self._settle(after)
        condition, end = before.last_op, after.last_op
        assert condition is not None
        assert end is not None
        for first, argument, last in zip(op.arguments, before.args, end.operands, strict=True):
            changed |= self._unify([argument], [first, last])
        for handed, argument, result in zip(condition.operands[1:], after.args, op.results, strict=True):
            changed |= self._unify([argument, result], [handed])
        return changed

    def _unify(self, carriers: Sequence[SSAValue], inputs: Sequence[SSAValue]) -> bool:
        """What carries a value has one layout; what goes in may be converted, so only it may differ.

        What goes in and is carried by another loop or branch follows, unless its own layout holds as strongly.
        """
        if not is_tile(carriers[0]) or (best := self._best([*carriers, *inputs])) is None:
            return False
        others = [value for value in carriers if self.anchors.get(value) != best]
        self.anchors.update(dict.fromkeys(others, best))
        followed = [self._set(value, best) for value in inputs if not self._is_plain(value)]
        return bool(others) or any(followed)

    @staticmethod
    def _is_plain(value: SSAValue) -> bool:
        """Whether a value is an op's own result, and not what a loop or branch carries."""
        return isinstance(value.owner, Operation) and not isinstance(value.owner, scf.ForOp | scf.IfOp | scf.WhileOp)

    def _best(self, values: Sequence[SSAValue]) -> Anchor | None:
        known = [self.anchors[value] for value in values if value in self.anchors]
        return max(known, key=lambda anchor: anchor.strength, default=None)

    def _own(self, op: Operation) -> Anchor | None:
        """The anchored layout of an op's result, if it has one by now."""
        match op:
            case tile.DotOp() if not has_instruction(op):
                return Anchor(self.spread(op.result), MEMORY)
            case tile.DotOp():
                rows, columns = tile_type(op.result).get_shape()
                return Anchor(layouts.accumulator(rows, columns, self.grids[op]), DOT)
            case tile.LoadOp():
                asked = self.as_asked(op, op.result)
                return None if asked is None and self.is_small(op) else Anchor(asked or self.spread(op.result), MEMORY)
            case pipe.GetOp():
                return Anchor(self.spread(op.result), MEMORY)
            case tile.ReadOp():
                # Gathered elements have the layout of their indices; neighbours in the tile may be so in memory.
                return self._best(at_places(op)) or Anchor(self.spread(op.result), MEMORY)
            case tile.TakeOp():
                return self._best(op.indices) or Anchor(self.spread(op.result), MEMORY)
            case tile.UnpackOp():
                known = self.anchors.get(op.operand, Anchor(self.spread(op.operand), MEMORY))
                return Anchor(known.layout.doubled(op.axis.value.data), known.strength)
            case tile.PackOp():
                known, axis = self.anchors.get(op.operand), op.axis.value.data
                halved = None if known is None else known.layout.halved(axis)
                if known is None or halved is None or not known.layout.has_pairs(axis):
                    return Anchor(self.spread(op.result), MEMORY)
                return Anchor(halved, known.strength)
            case tile.EwOp():
                return self._best(op.operands_)
            case tile.ScanOp():
                return self.anchors.get(op.operand)
            case tile.SortOp():
                return Anchor(self.to_sort(op), MEMORY)
            case tile.ReduceOp():
                known = self.anchors.get(op.operand)
                return None if known is None else Anchor(known.layout.without(op.axis.value.data), known.strength)
            case tile.TransOp():
                known = self.anchors.get(op.operand)
                permutation = tuple(op.permutation.iter_values())
                return None if known is None else Anchor(known.layout.permuted(permutation), known.strength)
            case _:
                return None

    def is_small(self, op: tile.LoadOp) -> bool:
        """Whether a load is cheap enough to be done in any layout: a row or a column, of memory that is not written."""
        shape = tile_type(op.result).get_shape()
        return prod(shape) == max((1, *shape)) and tile.memory_of(op.view) not in self.written

    def spread(self, value: SSAValue) -> Layout:
        """A layout for memory: neighbouring threads at neighbouring addresses, 16 bytes each if there are enough."""
        shape, itemsize = tile_type(value).get_shape(), tile_dtype(value).storage.itemsize
        share = max(1, prod(shape) // self.shape.threads)
        vector = 1
        while vector * 2 <= min(CHUNK // itemsize, share) and (not shape or shape[-1] % (vector * 2) == 0):
            vector *= 2
        return layouts.blocked(shape, self.shape.threads, vector)

    def to_sort(self, op: tile.SortOp) -> Layout:
        """Neighbours along the axis in one thread, then in one warp: most exchanges are between those."""
        shape, axis = tile_type(op.operand).get_shape(), op.axis.value.data
        share, others = 1, prod(shape[:axis] + shape[axis + 1 :])
        while share * self.shape.threads < shape[axis] * others and share < shape[axis]:
            share *= 2
        order = [axis, *(one for one in reversed(range(len(shape))) if one != axis)]
        return layouts.blocked(shape, self.shape.threads, share, order=order)

    def as_asked(self, op: Operation, value: SSAValue) -> Layout | None:
        """The layout in which a thread has as many neighbours as the hint of a load or store says."""
        vector = hints_of(op).vector
        if vector is None or why_not_vector(vector, value) is not None:
            return None
        return layouts.blocked(tile_type(value).get_shape(), self.shape.threads, vector)

    def to_fold(self, value: SSAValue) -> Layout:
        """A layout for a free value that is reduced: every warp has a short row for itself, beside larger tiles.

        Then no warp waits for others.
        """
        shape = tile_type(value).get_shape()
        if prod(shape) != max((1, *shape)) or not WARP <= prod(shape) <= SHORT or prod(shape) * 4 > self._largest:
            return self.spread(value)
        vector = 1
        while vector * 2 <= prod(shape) // WARP and shape[-1] % (vector * 2) == 0 and vector < VECTOR:
            vector *= 2
        alone = layouts.blocked(shape, WARP, vector)
        return Layout.of([*alone.threads, layouts.replicas(self.shape.warps)], alone.registers)

    # Dots

    def _warp_grid(self, op: tile.DotOp) -> tuple[int, int]:
        """The grid of warps over the accumulator of a dot: all along rows where rows are used as a whole afterwards."""
        rows, columns = tile_type(op.result).get_shape()
        if self._chained():
            return self.shape.warps, 1
        best, fewest = (self.shape.warps, 1), float("inf")
        down = 1
        while down <= self.shape.warps:
            across = self.shape.warps // down
            if down * across == self.shape.warps:
                # Rows and columns of both operands that each warp reads; incomplete pieces count as whole ones.
                cost = -(-rows // (16 * down)) * 16 + -(-columns // (8 * across)) * 8
                if cost < fewest:
                    best, fewest = (down, across), cost
            down *= 2
        return best

    def _chained(self) -> bool:
        """Whether an accumulator is an operand of another dot, or its rows are reduced."""
        for op in self.function.body.walk():
            if isinstance(op, tile.DotOp) and not operand_of(op.a).staged:
                return True
            if isinstance(op, tile.ReduceOp) and tile_type(op.operand).get_num_dims() == 2:
                return True
        return False

    def left(self, op: tile.DotOp) -> Layout:
        return self._operands(op)[0]

    def right(self, op: tile.DotOp) -> Layout:
        return self._operands(op)[1]

    def _operands(self, op: tile.DotOp) -> tuple[Layout, Layout]:
        (rows, depth), (_, columns) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
        left, right = (tile_dtype(operand) for operand in (op.a, op.b))
        return operand_layouts(Grid(*self.grids[op]), rows, depth, columns, left, right)

    # Demands

    def _want(self, value: SSAValue, layout: Layout) -> None:
        known = self.anchors.get(value)
        if known is None or known.layout != layout:
            self.wanted.setdefault(value, {})[layout] = None

    def made(self, value: SSAValue) -> list[Layout]:
        """The layouts in which a value is computed: its own, or all that are asked for."""
        known = self.anchors.get(value)
        return [known.layout] if known is not None else list(self.wanted.get(value, {}))

    def converted(self, value: SSAValue) -> list[Layout]:
        """The layouts that an anchored value is converted into."""
        return list(self.wanted.get(value, {})) if value in self.anchors else []

    def _demand(self, block: Block) -> None:
        """Goes backwards, so that all layouts that are needed of a value are known when its op is met."""
        for op in reversed(list(block.ops)):
            self._demand_op(op)

    def _demand_op(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                end = op.body.block.last_op
                assert end is not None
                for argument, first, last in zip(op.body.block.args[1:], op.iter_args, end.operands, strict=True):
                    if is_tile(argument):
                        self._want(first, self.anchors[argument].layout)
                        self._want(last, self.anchors[argument].layout)
                self._demand(op.body.block)
            case scf.WhileOp():
                self._demand_while(op)
            case scf.IfOp():
                for region in op.regions:
                    for inner in region.blocks:
                        assert inner.last_op is not None
                        for result, value in zip(op.results, inner.last_op.operands, strict=True):
                            if is_tile(result):
                                self._want(value, self.anchors[result].layout)
                        self._demand(inner)
            case tile.StoreOp():
                self._want(op.value, self.for_store(op))
            case tile.AtomicOp():
                self._want(op.value, self._any(op.value))
            case tile.WriteOp() | tile.AtomicAtOp():
                for operand in at_places(op):
                    self._want(operand, self.for_places(op))
            case tile.AssertOp():
                if is_tile(op.condition):
                    self._want(op.condition, self._any(op.condition))
            case tile.DotOp():
                self._demand_dot(op)
            case _:
                if op.results and is_tile(op.results[0]) and op.results[0] not in self.staged:
                    for layout in self.made(op.results[0]):
                        for operand, needed in needs(op, layout, self):
                            self._want(operand, needed)

    def _demand_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        condition, end = before.last_op, after.last_op
        assert condition is not None
        assert end is not None
        for argument, first, last in zip(before.args, op.arguments, end.operands, strict=True):
            if is_tile(argument):
                self._want(first, self.anchors[argument].layout)
                self._want(last, self.anchors[argument].layout)
        for argument, value in zip(after.args, condition.operands[1:], strict=True):
            if is_tile(argument):
                self._want(value, self.anchors[argument].layout)
        self._demand(after)
        self._demand(before)

    def _demand_dot(self, op: tile.DotOp) -> None:
        self._want(op.c, self.anchors[op.result].layout)
        if not operand_of(op.a).staged:
            self._want(op.a, self.left(op) if has_instruction(op) else self._any(op.a))
        if not operand_of(op.b).staged:
            # It goes through shared memory: any layout will do.
            self._want(op.b, self._any(op.b))

    def _any(self, value: SSAValue) -> Layout:
        known = self.anchors.get(value)
        if known is not None:
            return known.layout
        return next(iter(self.wanted.get(value, {})), self.spread(value))

    def for_places(self, op: tile.WriteOp | tile.AtomicAtOp) -> Layout:
        """The layout in which elements go to computed places: that of what is there already."""
        known = self._best(at_places(op))
        return self._any(op.value) if known is None else known.layout

    def for_store(self, op: tile.StoreOp) -> Layout:
        """The layout in which a tile is stored: its own where threads write enough side by side."""
        known, asked = self.anchors.get(op.value), self.as_asked(op, op.value)
        wide = asked or self.spread(op.value)
        if known is None:
            return wide
        last = tile_type(op.value).get_num_dims() - 1
        enough = wide.run(last)
        if asked is None:
            enough = min(enough, CHUNK // 2 // tile_dtype(op.value).storage.itemsize)
        return known.layout if known.layout.run(last) >= enough else wide


def at_places(op: tile.AtPlaces) -> list[SSAValue]:
    """The tiles that an access at computed places takes, element by element."""
    value = () if isinstance(op, tile.ReadOp) else (op.value,)
    return [*value, *op.indices, *(() if op.mask is None else (op.mask,))]


def needs(op: Operation, layout: Layout, analysis: LayoutAnalysis) -> list[tuple[SSAValue, Layout]]:
    """The layouts that an op needs its operands in, to give its result in one."""
    match op:
        case tile.EwOp():
            return [(operand, layout) for operand in op.operands_]
        case tile.ScanOp() | tile.SortOp():
            return [(op.operand, layout)]
        case tile.ReadOp():
            return [(operand, layout) for operand in at_places(op)]
        case tile.TakeOp():
            # It goes through shared memory: any layout of what is taken from will do.
            known = analysis.anchors.get(op.operand)
            source = analysis.spread(op.operand) if known is None else known.layout
            return [(op.operand, source), *((index, layout) for index in op.indices)]
        case tile.UnpackOp():
            halved = layout.halved(op.axis.value.data)
            if halved is None:
                raise CompileError(
                    f"the halves of bytes are needed in layout {layout}, which does not count them in pairs",
                    span=span_of(op.location),
                )
            return [(op.operand, halved)]
        case tile.PackOp():
            return [(op.operand, layout.doubled(op.axis.value.data))]
        case tile.ExpandOp():
            return [(op.operand, layout.without(op.axis.value.data))]
        case tile.BroadcastOp():
            return [(op.operand, layout.narrowed(tile_type(op.operand).get_shape()))]
        case tile.TransOp():
            permutation = list(op.permutation.iter_values())
            inverse = [permutation.index(axis) for axis in range(len(permutation))]
            return [(op.operand, layout.permuted(inverse))]
        case tile.ReduceOp():
            known = analysis.anchors.get(op.operand)
            return [(op.operand, analysis.to_fold(op.operand) if known is None else known.layout)]
        case _:
            return []
