"""`form-box-loads`: elements read at computed places become boxes, where groups of rows lie side by side in memory.

Rows of a sequence in pages are such: the number of its page is the same for all rows of a group, and their places in
the page follow each other. Copies by tensor maps bring boxes to shared memory, from where dots read right operands:
only those are looked at. What the mask of a read asks of rows is that they come before an end; boxes are cut there.
So is a loaded tile whose rows from an end on become zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import i64
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import Ops
from tessera.transforms.pipelining.make_async import is_only_multiplied, is_transposed, why_not_copied

MOST_BOXES = 16
"""Boxes of a tile: each is a copy of its own, and one thread begins all of them."""
Number = SSAValue | int


def form_box_loads(function: tile.FuncOp) -> None:
    """Replaces reads, and loads whose last rows are cut off, by loads of boxes where dots only read their tiles."""
    written = tile.written_memory(function)
    known: dict[Block | None, dict[tuple[SSAValue, int], Number]] = {}
    for op in [op for op in function.body.walk() if isinstance(op, tile.ReadOp)]:
        if len(tile_type(op.result).get_shape()) != 2 or not is_right_operand(op.result):
            continue
        if tile.memory_of(op.view) in written or (found := _boxes(op, written)) is None:
            continue
        writer = Ops()
        # Blocks of keys and of values have one page: its number is read once.
        starts, until = found.write(writer, known.setdefault(op.parent_block(), {}))
        made = tile.LoadBoxesOp(op.view, starts, found.axes, op.result.type, until=until)
        made.attributes.update(op.attributes)
        replace(op, [*writer.ops, made])
    cut = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and _cut_load(op, written)]
    for op in cut:
        writer, load = Ops(), op.operands_[1].owner
        assert isinstance(load, tile.LoadOp)
        until = _until(tuple(_conditions(op.operands_[0])), _Numbers(writer, {}))
        made = tile.LoadBoxesOp(load.view, load.offsets, (0, 1), op.result.type, until=until)
        made.attributes.update(load.attributes)
        replace(op, [*writer.ops, made])
    if known or cut:
        sweep(function.body.block)


def is_right_operand(value: SSAValue) -> bool:
    """Whether a tile is the right operand of dots, as it is or transposed, and nothing else.

    Left ones may be in registers: consumers look up, and mask, the rows that they have.
    """
    users = [use.operation for use in value.uses]
    exchanged = [op.result for op in users if isinstance(op, tile.TransOp) and is_transposed(op)]
    uses = [use for one in (value, *exchanged) for use in one.uses if isinstance(use.operation, tile.DotOp)]
    return is_only_multiplied(value) and all(use.index == 1 for use in uses)


def has_box_loads(function: tile.FuncOp) -> bool:
    """Whether there may be such reads, or such loads."""
    return any(
        isinstance(op, tile.ReadOp)
        or (isinstance(op, tile.EwOp) and op.fn.data == "select" and isinstance(op.operands_[1].owner, tile.LoadOp))
        for op in function.body.walk()
    )


def _cut_load(op: tile.EwOp, written: AbstractSet[SSAValue]) -> bool:
    """Whether an op puts zeros into the last rows of a loaded tile, which then goes into dots only."""
    if op.fn.data != "select" or not isinstance(load := op.operands_[1].owner, tile.LoadOp):
        return False
    slopes = _Slopes(tile_type(op.result).get_shape()[0], written, frozenset())
    return (
        why_not_copied(load) is None
        and is_right_operand(op.result)
        and constant_of(op.operands_[2]) == 0
        and tile.memory_of(load.view) not in written
        and all(_is_end(end, slopes) for end in _conditions(op.operands_[0]))
    )


FormBoxLoads = function_pass("form-box-loads", form_box_loads)


@dataclass(frozen=True)
class _Boxes:
    """The boxes that the places of a read are."""

    read: tile.ReadOp
    rows: int
    axes: tuple[int, int]
    """The axes of the view along which the tile's rows and columns go."""
    ends: tuple[SSAValue, ...]
    """Conditions that positions come before an end, one of which is the last row that there is."""

    def write(self, ops: Ops, known: dict[tuple[SSAValue, int], Number]) -> tuple[list[SSAValue], SSAValue | None]:
        """Writes where each box starts, and the end. What is `known` of others in the block is not written again."""
        numbers, made = _Numbers(ops, known), list[SSAValue]()
        count = tile_type(self.read.result).get_shape()[0]
        for first in range(0, count, self.rows):
            for axis, index in enumerate(self.read.indices):
                start = _column_start(index) if axis == self.axes[1] else numbers.at(index, first)
                assert start is not None
                made.append(numbers.value(start))
        return made, _until(self.ends, numbers)


def _until(ends: Sequence[SSAValue], numbers: _Numbers) -> SSAValue | None:
    """Writes the first row that does not come before all ends."""
    found: Number | None = None
    for end in ends:
        position, bound = _compared(end)
        left = numbers.combined("sub", numbers.at(bound, 0), numbers.at(position, 0))
        found = left if found is None else numbers.combined("min", found, left)
    return None if found is None else numbers.value(found)


def _boxes(op: tile.ReadOp, written: AbstractSet[SSAValue]) -> _Boxes | None:
    count = tile_type(op.result).get_shape()[0]
    columns = [axis for axis, index in enumerate(op.indices) if _column_start(index) is not None]
    ends = () if op.mask is None else tuple(_conditions(op.mask))
    whole, asked = _Slopes(count, written, frozenset()), {_spread(end) for end in ends}
    if columns != [len(op.indices) - 1] or not all(_is_end(end, whole) for end in ends):
        return None
    others = op.indices[:-1]
    for rows in sorted({count, *_steps(others)}, reverse=True):
        if rows < 1 or count % rows or count // rows > MOST_BOXES:
            continue
        slopes = [_Slopes(rows, written, asked).of(index) for index in others]
        if None not in slopes and sum(slope == 1 for slope in slopes) == 1:
            return _Boxes(op, rows, (slopes.index(1), columns[0]), ends)
    return None


def _is_end(condition: SSAValue, slopes: _Slopes) -> bool:
    """Whether a condition says that the position of a row comes before a number."""
    owner = _spread(condition).owner
    if not isinstance(owner, tile.EwOp) or owner.fn.data != "lt":
        return False
    position, bound = owner.operands_
    return slopes.of(position) == 1 and slopes.of(bound) == 0


def _compared(condition: SSAValue) -> Sequence[SSAValue]:
    owner = _spread(condition).owner
    assert isinstance(owner, tile.EwOp)
    return owner.operands_


def _conditions(mask: SSAValue) -> Iterator[SSAValue]:
    """The conditions that a mask is the conjunction of."""
    owner = _spread(mask).owner
    if isinstance(owner, tile.EwOp) and owner.fn.data == "and":
        for operand in owner.operands_:
            yield from _conditions(operand)
    else:
        yield mask


def _spread(value: SSAValue) -> SSAValue:
    """A tile before it was repeated along axes of size 1."""
    while isinstance(owner := value.owner, tile.BroadcastOp):
        value = owner.operand
    return value


def _column_start(index: SSAValue) -> SSAValue | None:
    """The first of positions that count up along the columns, and are the same for all rows."""
    owner = _spread(index).owner
    return owner.base if isinstance(owner, tile.IotaOp) and owner.axis.value.data == 1 else None


def _steps(indices: Sequence[SSAValue]) -> Iterator[int]:
    """The numbers by which positions are divided on the way to some indices."""
    pending, seen = list(indices), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen or not isinstance(owner := value.owner, Operation):
            continue
        seen.add(value)
        if isinstance(owner, tile.EwOp) and owner.fn.data in _DIVIDES:
            number = _constant(owner.operands_[1])
            if number is not None:
                yield number
        if isinstance(owner, tile.EwOp | tile.BroadcastOp | tile.ReadOp):
            pending += owner.operands


_DIVIDES = ("floordiv", "rem")


def _constant(value: SSAValue) -> int | None:
    owner = _spread(value).owner
    return integer_of(owner.value) if isinstance(owner, tile.FullOp) else None


class _Slopes:
    """How tiles of numbers change from row to row within each group of so many rows: by 1, or (0) not at all.

    They are the same in all columns. None where that is not so, or not known.
    """

    def __init__(self, rows: int, written: AbstractSet[SSAValue], asked: AbstractSet[SSAValue]) -> None:
        self.rows = rows
        self.written = written
        self.asked = asked
        """Conditions that hold in the rows that count."""

    def of(self, value: SSAValue) -> int | None:
        if not isinstance(value.owner, Operation):
            return None
        rule = _SLOPES.get(type(value.owner))
        return None if rule is None else rule(self, value.owner)


def _slope_of_iota(slopes: _Slopes, op: tile.IotaOp) -> int | None:
    if op.axis.value.data != 0:
        return None
    return 0 if tile_type(op.result).get_shape()[0] == 1 else 1


def _slope_of_read(slopes: _Slopes, op: tile.ReadOp) -> int | None:
    """What is read at one place, and never written, is one number, except where rows are left out that do not count."""
    is_asked = op.mask is None or {_spread(one) for one in _conditions(op.mask)} <= slopes.asked
    is_still = is_asked and tile.memory_of(op.view) not in slopes.written
    return 0 if is_still and all(slopes.of(index) == 0 for index in op.indices) else None


def _slope_of_elementwise(slopes: _Slopes, op: tile.EwOp) -> int | None:
    name, found = op.fn.data, [slopes.of(operand) for operand in op.operands_]
    if None in found or (name not in _SCALAR and name != "cast"):
        return None
    if name == "cast":
        return found[0] if tile_dtype(op.result) is i64 and tile_dtype(op.operands_[0]).is_integer else None
    if tile_dtype(op.result) is not i64:
        return None
    by = _constant(op.operands_[1]) if name in _DIVIDES else 1
    if by is None or by < 1:
        return None
    if found == [0, 0]:
        return 0
    if found == [1, 0] and name in _DIVIDES:
        # Groups of rows do not reach over multiples of what they are divided by.
        first = _first(op.operands_[0])
        is_whole = first is not None and by % slopes.rows == 0 and first % slopes.rows == 0
        return (1 if name == "rem" else 0) if is_whole else None
    return 1 if (name, found) in (("add", [1, 0]), ("add", [0, 1]), ("sub", [1, 0])) else None


def _first(value: SSAValue) -> int | None:
    """The constant that a tile of positions, one in each row, begins with."""
    owner = _spread(value).owner
    return integer_of(owner.base) if isinstance(owner, tile.IotaOp) else None


_SLOPES: Mapping[type[Operation], Callable[[_Slopes, Any], int | None]] = {
    tile.FullOp: lambda slopes, op: 0,
    tile.IotaOp: _slope_of_iota,
    tile.BroadcastOp: lambda slopes, op: slopes.of(op.operand),
    tile.ReadOp: _slope_of_read,
    tile.EwOp: _slope_of_elementwise,
}
_SCALAR: Mapping[str, tuple[Callable[[SSAValue, SSAValue], Operation], Callable[[int, int], int]]] = {
    "add": (arith.AddiOp, lambda a, b: a + b),
    "sub": (arith.SubiOp, lambda a, b: a - b),
    "mul": (arith.MuliOp, lambda a, b: a * b),
    "min": (arith.MinSIOp, min),
    "max": (arith.MaxSIOp, max),
    "floordiv": (arith.FloorDivSIOp, lambda a, b: a // b),
    "rem": (arith.RemSIOp, lambda a, b: a % b),
}
"""Scalars and numbers of elementwise functions of tiles."""


class _Numbers:
    """Writes elements of tiles of numbers as scalars."""

    def __init__(self, ops: Ops, known: dict[tuple[SSAValue, int], Number]) -> None:
        self.ops = ops
        self.known = known
        self.constants: dict[int, SSAValue] = {}

    def value(self, number: Number) -> SSAValue:
        if not isinstance(number, int):
            return number
        if number not in self.constants:
            self.constants[number] = self.ops.index(number)
        return self.constants[number]

    def at(self, value: SSAValue, row: int) -> Number:
        """The number in a row of a tile, in every column."""
        value = _spread(value)
        row = row if tile_type(value).get_shape()[0] > 1 else 0
        if (value, row) not in self.known:
            self.known[value, row] = self._made(value, row)
        return self.known[value, row]

    def _made(self, value: SSAValue, row: int) -> Number:
        match value.owner:
            case tile.FullOp() as op:
                return self._scalar(op.value)
            case tile.IotaOp() as op:
                return self.combined("add", self._scalar(op.base), row)
            case tile.ReadOp() as op:
                places = [self.value(self.at(index, row)) for index in op.indices]
                item = tile.ItemOp(op.view, places)
                if op.mask is not None:
                    # The mask has left out what is not used here.
                    item.attributes[tile.OPEN] = UnitAttr()
                return self._index(self.ops.add(item))
            case tile.EwOp() as op if op.fn.data == "cast":
                return self.at(op.operands_[0], row)
            case tile.EwOp() as op:
                return self.combined(op.fn.data, *(self.at(operand, row) for operand in op.operands_))
            case owner:
                raise AssertionError(f"no slope was found for {owner}")

    def _scalar(self, value: SSAValue) -> Number:
        number = integer_of(value)
        if number is not None:
            return number
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp) and isinstance(owner.input.type, IndexType):
            return owner.input
        return self._index(value)

    def _index(self, value: SSAValue) -> SSAValue:
        return value if isinstance(value.type, IndexType) else self.ops.add(arith.IndexCastOp(value, IndexType()))

    def combined(self, name: str, one: Number, other: Number) -> Number:
        """An elementwise function of two numbers."""
        kind, compute = _SCALAR[name]
        if isinstance(one, int) and isinstance(other, int):
            return compute(one, other)
        if 0 in (one, other) and (name == "add" or (name == "sub" and other == 0)):
            return one if other == 0 else other
        if name == "rem":
            # With the sign of the divisor, as tiles have it.
            return self.combined("sub", one, self.combined("mul", self.combined("floordiv", one, other), other))
        return self.ops.add(kind(self.value(one), self.value(other)))
