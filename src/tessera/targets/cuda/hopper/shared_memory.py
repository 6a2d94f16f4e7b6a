"""Shared memory of warp-specialized kernels: rings with their barriers, copies into a stage, and room for stores.

Stages are cut into panels of 128 bytes, as wgmma wants them; the last one may be padded with columns that are never
read. Where consumers have their own rows, each has a tile of its own in a stage. One copy brings all panels of a tile
where the argument's rows are whole panels, and one panel otherwise. Where CTAs of a cluster share a ring, each copies
some pieces of a tile, into all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from xdsl.ir import Attribute

from tessera.errors import CompileError
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import warp_groups
from tessera.ir.pipe.prepare import feeds_preparer
from tessera.ir.pipe.transpose import is_transposed_into
from tessera.targets.cuda.emit.divisors import is_natural
from tessera.targets.cuda.hopper.consumer_layouts import is_paired
from tessera.targets.cuda.hopper.tma_boxes import ROWS, Box, Start, box_of, boxes_of, fits, panel_columns, rows_at_once
from tessera.targets.cuda.ir.hopper_types import WIDEST_BOX, BarriersType, MapType
from tessera.targets.cuda.ir.types import CHUNK, PAIRED, PLAIN, SharedType
from tessera.targets.cuda.lower.division_narrowing import is_of_instances
from tessera.transforms.facts.limit_sizes import most_of

SWIZZLE = 128
_PANEL_AXIS, _ROW_AXIS = 1, 2
"""Axes of the pieces of a tile; axis 0 counts groups of rows."""
MapAxes = tuple[tuple[int, str, int], ...]


@dataclass(frozen=True)
class Piece:
    """The part of a tile that one copy brings: the tile of a slot that it fills, and its first row and column."""

    path: tuple[int, ...]
    row: int
    column: int


@dataclass(frozen=True)
class Shift:
    """The distance between the pieces of one block of a cluster and those of the next: tiles at one index of the path,
    rows and columns."""

    index: int
    tiles: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Copies:
    """How a slot is filled: through a map with these axes and this box, in pieces, with memory seen as `memory`."""

    axes: MapAxes
    map: MapType
    memory: tuple[SharedType, ...]
    """The last is that of the pieces; the others are steps on the way there."""
    pieces: tuple[Piece, ...]
    splits: bool
    shift: Shift | None = None
    """Where the pieces are those of a cluster's first block."""

    def offsets(self, box: Box, piece: Piece) -> Iterator[tuple[Start, int]]:
        """The start of a piece along each axis of the map: a coordinate, and a constant to add."""
        down, across = box.axes
        if self.splits:
            # Only tiles that begin with the first column are split.
            yield 0, 0
            yield box.starts[down], piece.row
            yield 0, 0
        else:
            yield box.starts[across], piece.column
            yield box.starts[down], piece.row
        for axis in box.others:
            yield box.starts[axis], 0


@dataclass(frozen=True)
class BoxCopies:
    """How a slot is filled with boxes of `rows` rows: through maps with these axes, by how many rows a copy brings."""

    axes: MapAxes
    maps: Mapping[int, MapType]
    """The most rows first: those of a box."""
    memory: tuple[SharedType, ...]
    """As of `Copies`: the last has a tile for each panel."""
    rows: int


@dataclass(frozen=True)
class RingPlan:
    """The shared memory of a ring: `parts` consumers have `rows` by `columns` of each tile, one below the other or,
    `across`, beside each other; and `blocks` of a cluster fill it."""

    ring: pipe.RingOp
    depth: int
    parts: int
    rows: int
    columns: int
    element: Attribute
    order: str = PLAIN
    blocks: int = 1
    across: bool = False
    filled: int | None = None
    """The rows of a tile that are copied, where the argument is known to have no more: a row that is not there takes a
    copy about nine clocks. What lies in others is never looked at, for rows of results are computed of their own."""

    @staticmethod
    def of(op: pipe.RingOp, count: int, cluster: int = 1) -> RingPlan:
        type_ = pipe.slot_type(op.result)
        is_row = type_.get_shape()[:1] == (1,) and feeds_preparer(op.result)
        if not fits(type_) and not is_row:
            raise _refused(op, f"a ring of {type_}: wgmma takes 8·n rows, and columns of 32·n bytes")
        takes = [use.operation for use in op.result.uses if isinstance(use.operation, warp_groups.ConsumerWaitOp)]
        parted = {take.shared_axis for take in takes}
        if len(parted) > 1:
            raise _refused(op, "some consumers read a part of a ring's tiles, some all of it")
        rows, columns = type_.get_shape()
        parts, across = (1, False) if parted <= {None} else (count, parted == {1})
        if across:
            columns //= parts
            if columns % panel_columns(dtype_of(type_.element_type)):
                raise _refused(op, f"{parts} consumers share its columns: each needs whole panels of {SWIZZLE} bytes")
        else:
            rows //= parts
        if rows % 8 and not is_row:
            raise _refused(op, f"{parts} consumers share {type_.get_shape()[0]} rows: each needs 8·n of them")
        depth, element = pipe.ring_type(op.result).depth.data, type_.element_type
        found = RingPlan(op, depth, parts, rows, columns, element, _order(op), across=across)
        if parted == {0} and parts == 1:
            found = replace(found, filled=_filled(op, rows))
        # Where pieces cannot be shared evenly, every block copies all of them for itself.
        shares = op.multicast is not None and found.shared_axis(cluster) is not None
        return replace(found, blocks=cluster) if shares else found

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return panel_columns(dtype_of(self.element))

    @property
    def is_row(self) -> bool:
        """Whether tiles are one row, which lies as it is."""
        return self.rows == 1

    @property
    def panels(self) -> int:
        return -(-self.columns // self.panel)

    def _seen(self, *sizes: int) -> SharedType:
        """The ring's memory with other sizes of its slots; leading sizes of 1 are left out."""
        *many, rows, columns = sizes
        if self.is_row:
            return SharedType((self.depth, rows, columns), self.element, CHUNK)
        all_sizes = (self.depth, *(size for size in many if size > 1), rows, columns)
        return SharedType(all_sizes, self.element, SWIZZLE, self.order)

    @property
    def memory(self) -> SharedType:
        return self._seen(self.parts, self.rows, self.columns if self.is_row else self.panels * self.panel)

    @property
    def taken(self) -> SharedType:
        """The same memory as dots see it."""
        return self._seen(self.parts, self.rows, self.columns)

    @property
    def barriers(self) -> BarriersType:
        return BarriersType(self.depth)

    @property
    def slot_bytes(self) -> int:
        """The bytes that copies bring into a slot."""
        if self.is_row:
            return self.columns * self.memory.itemsize
        return self.memory.size // self.depth * (self.rows if self.filled is None else self.filled) // self.rows

    def copies(self, box: Box) -> Copies:
        """How copies fill a slot with a box of an argument."""
        (down, across), panel = box.axes, self.panel
        ones = [1] * len(box.others)
        others = [(axis, "whole", 1) for axis in box.others]
        row_axis = (down, "whole", 1)
        if self.is_row:
            plain = MapType((self.columns, 1, *ones), self.element, 0)
            axes = ((across, "whole", 1), row_axis, *others)
            return Copies(axes, plain, (self.memory,), (Piece((), 0, 0),), splits=False)
        if (
            self.blocks == 1
            and not self.across
            and self.filled is None
            and box.splits(self.columns, panel)
            and self.rows <= WIDEST_BOX
        ):
            axes = ((across, "inner", panel), row_axis, (across, "outer", panel), *others)
            map_ = self._map(panel, self.rows, self.panels, *ones)
            pieces = [Piece(_path((part, self.parts)), part * self.rows, 0) for part in range(self.parts)]
            return Copies(tuple(axes), map_, (self.memory,), tuple(pieces), splits=True)
        parts, rows, shared = *self._groups, self.shared_axis(self.blocks)
        at_once = self.filled or rows_at_once(rows // self.blocks if shared == _ROW_AXIS else rows)
        counts = (parts, self.panels, rows // at_once)
        mine = [count // (self.blocks if axis == shared else 1) for axis, count in enumerate(counts)]
        if self.filled is not None:
            mine[_ROW_AXIS] = 1
        pieces = [
            Piece(_path(*zip(index, counts, strict=True)), *self._start(index, at_once))
            for index in product(*map(range, mine))
        ]
        panels, all_pieces = self._seen(parts, self.panels, rows, panel), self._seen(*counts, at_once, panel)
        map_ = self._map(panel, at_once, *ones)
        steps = (self.memory, panels, all_pieces)
        axes = ((across, "whole", 1), row_axis, *others)
        shift = None
        if self.blocks > 1 and shared is not None:
            index = sum(count > 1 for count in counts[:shared])
            moved = self._start(tuple(mine[shared] if axis == shared else 0 for axis in range(3)), at_once)
            shift = Shift(index, mine[shared], *moved)
        return Copies(axes, map_, _apart(steps), tuple(pieces), splits=False, shift=shift)

    def _start(self, index: tuple[int, ...], at_once: int) -> tuple[int, int]:
        """The first row and column of a piece of so many rows, by its group, its panel, and its number in them."""
        group, panel, below = index
        down, along = (0, group * self.columns) if self.across else (group * self._groups[1], 0)
        return down + below * at_once, along + panel * self.panel

    def box_copies(self, boxes: Sequence[Box], *, cut: bool) -> BoxCopies:
        """How copies fill a slot with boxes of an argument, one behind the other, panel by panel.

        Boxes that may be `cut` are also copied in groups of rows, and row by row.
        """
        if self.parts > 1 or self.blocks > 1:
            raise _refused(self.ring, "boxes are copied into tiles that all consumers read")
        first, rows = boxes[0], self.rows // len(boxes)
        if rows > WIDEST_BOX:
            raise _refused(self.ring, f"a box has {rows} rows, and a copy brings at most {WIDEST_BOX}")
        (down, across), ones = first.axes, [1] * len(first.others)
        axes = ((across, "whole", 1), (down, "whole", 1), *((axis, "whole", 1) for axis in first.others))
        sizes = [rows, *([ROWS] if rows % ROWS == 0 else []), 1] if cut else [rows]
        memory = _apart((self.memory, self._seen(self.panels, self.rows, self.panel)))
        return BoxCopies(axes, {size: self._map(self.panel, size, *ones) for size in sizes}, memory, rows)

    @property
    def _groups(self) -> tuple[int, int]:
        """Groups of rows, and rows of each: those of one panel lie behind each other, also of several consumers."""
        together = self.panels == 1 and not self.across
        return (1, self.parts * self.rows) if together else (self.parts, self.rows)

    def shared_axis(self, blocks: int) -> int | None:
        """The axis along which blocks of a cluster share the copies of a tile evenly; None where there is none."""
        if blocks & (blocks - 1):
            # Clusters have a power of two of them.
            return None
        parts, rows = self._groups
        even = (parts % blocks == 0, self.panels % blocks == 0, rows % (blocks * ROWS) == 0)
        return even.index(True) if any(even) else None

    def _map(self, *sizes: int) -> MapType:
        return MapType(sizes, self.element, SWIZZLE)


def _order(op: pipe.RingOp) -> str:
    """The order of columns in a ring: paired only where tiles are transposed, so that columns are the depth of dots."""
    if not is_transposed_into(op.result):
        return PLAIN
    takes = [use.operation for use in op.result.uses if isinstance(use.operation, warp_groups.ConsumerWaitOp)]
    transposed = [use.operation for take in takes for use in take.result.uses]
    starts = [use.operation for back in transposed for result in back.results for use in result.uses]
    found = {is_paired(start) for start in starts if isinstance(start, warp_groups.DotStartOp)}
    if len(found) > 1:
        raise _refused(op, "some left operands of dots with a transposed ring are in registers, some in shared memory")
    return PAIRED if found == {True} else PLAIN


def _apart(types: Sequence[SharedType]) -> tuple[SharedType, ...]:
    return tuple(type_ for index, type_ in enumerate(types) if index == 0 or type_ != types[index - 1])


def _path(*indices: tuple[int, int]) -> tuple[int, ...]:
    """Indices of tiles, without those along axes that have only one."""
    return tuple(index for index, count in indices if count > 1)


def _filled(op: pipe.RingOp, rows: int) -> int | None:
    """The rows that copies into a ring bring, of `rows` that a slot has, if all arguments have fewer."""
    boxes = [
        box_of(use.operation.view, use.operation.offsets)
        for use in op.result.uses
        if isinstance(use.operation, warp_groups.ProducerCopyOp)
    ]
    most = ROWS
    for box in boxes:
        size = None if box is None else most_of(box.argument, box.sizes[box.axes[0]])
        if box is None or size is None or not _is_natural(box.starts[box.axes[0]]):
            return None
        while most < size:
            most *= 2
    return most if most < rows and rows % most == 0 else None


def _is_natural(start: Start) -> bool:
    return start >= 0 if isinstance(start, int) else is_natural(start, is_of_instances)


def fill_box(op: warp_groups.ProducerCopyOp) -> Box:
    found = box_of(op.view, op.offsets)
    if found is None:
        raise _refused(op, "a tile is copied that is not a box of an argument")
    return found


def fill_boxes(op: warp_groups.ProducerCopyBoxesOp) -> list[Box]:
    found = boxes_of(op.view, op.boxes, tuple(op.axes.iter_values()))
    if found is None:
        raise _refused(op, "a tile is copied that is not made of boxes of an argument")
    return found


def _refused(op: pipe.RingOp | warp_groups.ProducerCopies, message: str) -> CompileError:
    return CompileError(message, span=span_of(op.location), hint="the portable path copies it")


# Stores

WARP_ROWS, BUFFERS = 16, 2


def staging(consumers: int, element: Attribute) -> SharedType:
    """Shared memory for the stores of consumers: each warp has its own, for 16 rows of a panel, twice."""
    return SharedType((4 * consumers, BUFFERS, WARP_ROWS, stored_columns(element)), element, SWIZZLE)


def stored_columns(element: Attribute) -> int:
    """The columns that go out at a time: a panel of them."""
    return panel_columns(dtype_of(element))


def store_map(box: Box, element: Attribute) -> tuple[MapAxes, MapType]:
    """The map through which a warp's rows go out, a panel at a time."""
    down, across = box.axes
    axes = ((across, "whole", 1), (down, "whole", 1), *((axis, "whole", 1) for axis in box.others))
    return axes, MapType((stored_columns(element), WARP_ROWS, *[1] * len(box.others)), element, SWIZZLE)


def store_columns(columns: int, element: Attribute) -> list[int]:
    """First columns of the pieces; the last piece may overlap the one before."""
    piece = stored_columns(element)
    return [min(first, columns - piece) for first in range(0, columns, piece)]
