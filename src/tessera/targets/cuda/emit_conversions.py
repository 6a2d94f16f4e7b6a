"""nv level → LLVM text: a tile in another layout, by renaming registers where threads keep their elements, or through
shared memory.

There the tile lies row after row, with room for ghosts. Rows of whole 128 bytes are swizzled: chunks of 16 bytes change
places with the row and with every eighth row, so that columns and rows both meet every bank. Others are padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.dtypes.types import DType
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda.assembly import barrier
from tessera.targets.cuda.emitter import SHARED, Emitter, emits
from tessera.targets.cuda.layouts import Layout
from tessera.targets.cuda.nv_types import CHUNK, layout_of
from tessera.targets.cuda.thread_tiles import ThreadTile, per_word
from tessera.targets.llvm import elements
from tessera.targets.llvm.text import Value, number

_LINE = 128


@emits(nv.ConvertOp)
def _convert(emitter: Emitter, op: nv.ConvertOp) -> None:
    source, target = emitter.tile(op.operand), layout_of(op.result)
    places = renamed(source.layout, target, len(source.shape))
    if places is not None:
        emitter.bind(op.result, [source.element(place) for place in places])
        return
    table = Table.of(source.shape, source.layout, target, source.dtype)
    start = emitter.scratch(table.size)
    barrier(emitter.f)
    _put(emitter, source, table, start)
    barrier(emitter.f)
    shape, dtype = tile_type(op.result).get_shape(), tile_dtype(op.result)
    emitter.values[op.result] = _get(emitter, shape, dtype, target, table, start)


def renamed(source: Layout, target: Layout, rank: int) -> list[int] | None:
    """For each register of the target, the register of the source that has its element, if every thread keeps its own.

    Elements that several threads hold may be taken from any: here each thread takes its own.
    """
    if source.threads != target.threads:
        return None
    axes = range(rank)
    held = {places: register for register, places in enumerate(zip(*(source.offsets(a) for a in axes), strict=True))}
    wanted = list(zip(*(target.offsets(axis) for axis in axes), strict=True)) if rank else [()] * target.count
    if rank == 0:
        return [0] * target.count
    return [held[places] for places in wanted] if all(places in held for places in wanted) else None


@dataclass(frozen=True)
class Table:
    """Rows and columns of a tile in shared memory."""

    strides: tuple[int, ...]
    """Of all axes but the last, in rows."""
    pitch: int
    swizzled: bool
    size: int
    itemsize: int

    @staticmethod
    def of(shape: tuple[int, ...], source: Layout, target: Layout, dtype: DType) -> Table:
        covers = [max(source.coverage(axis), target.coverage(axis)) for axis in range(len(shape))]
        itemsize = dtype.storage.itemsize
        width = covers[-1] * itemsize
        strides = tuple(prod(covers[axis + 1 : -1]) for axis in range(len(covers) - 1))
        swizzled = width % _LINE == 0
        pitch = width if swizzled else -(-width // CHUNK) * CHUNK
        if not swizzled and pitch // CHUNK % 2 == 0:
            pitch += CHUNK
        return Table(strides, pitch, swizzled, prod(covers[:-1]) * pitch, itemsize)

    def piece(self, layout: Layout) -> int:
        """How many registers, one after the other, may be moved at once."""
        last = len(self.strides)
        run = layout.run(last)
        steps = [digit.step for digit in (*layout.threads, *layout.registers[1:]) if digit.axis == last]
        count = 1
        while count * 2 * self.itemsize <= CHUNK and run % (count * 2) == 0 and all(s % (count * 2) == 0 for s in steps):
            count *= 2
        return count

    def address(self, emitter: Emitter, layout: Layout, register: int, start: Value) -> Value:
        """Where a register's element lies."""
        f, last = emitter.f, len(self.strides)
        row: Value = number(0, "i32")
        for axis, stride in enumerate(self.strides):
            along = f.add(emitter.base(layout, axis), layout.offset(register, axis))
            row = _sum(emitter, row, f.times(along, stride))
        column = f.times(f.add(emitter.base(layout, last), layout.offset(register, last)), self.itemsize)
        if self.swizzled:
            turned = f.binary("xor", row, f.binary("lshr", row, number(3, "i32")))
            turn = f.binary("shl", f.binary("and", turned, number(7, "i32")), number(4, "i32"))
            column = f.binary("xor", column, turn)
        return _sum(emitter, start, _sum(emitter, f.times(row, self.pitch), column))


def _sum(emitter: Emitter, a: Value, b: Value) -> Value:
    return b if a.name == "0" else a if b.name == "0" else emitter.f.binary("add", a, b)


def _pointer(emitter: Emitter, address: Value) -> Value:
    return emitter.f.op(SHARED, f"inttoptr {address} to {SHARED}")


def _unit(dtype: DType, piece: int) -> tuple[int, int]:
    """How a piece is moved: bytes of each number, and how many numbers. Small elements go in words if they fill some."""
    itemsize = dtype.storage.itemsize
    ways = per_word(dtype)
    return (4, piece // ways) if ways and piece % ways == 0 else (itemsize, piece)


def _put(emitter: Emitter, source: ThreadTile, table: Table, start: Value) -> None:
    f, layout, dtype = emitter.f, source.layout, source.dtype
    piece = table.piece(layout)
    size, count = _unit(dtype, piece)
    packed = size == 4 and count < piece
    for register in range(0, source.count, piece):
        pointer = _pointer(emitter, table.address(emitter, layout, register, start))
        if packed:
            first = register // per_word(dtype)
            parts = [source.word(first + place) for place in range(count)]
        else:
            parts = [elements.to_memory(f, source.element(register + place), dtype) for place in range(count)]
        type_ = parts[0].type
        if count == 1:
            f.store(parts[0], pointer, align=size)
            continue
        vector = Value("poison", f"<{count} x {type_}>")
        for place, part in enumerate(parts):
            vector = f.op(vector.type, f"insertelement {vector}, {part}, i32 {place}")
        f.store(vector, pointer, align=size * count)


def _get(
    emitter: Emitter, shape: tuple[int, ...], dtype: DType, layout: Layout, table: Table, start: Value
) -> ThreadTile:
    f = emitter.f
    piece = table.piece(layout)
    size, count = _unit(dtype, piece)
    packed = size == 4 and count < piece
    type_ = "i32" if packed else elements.memory_type(dtype)
    found: list[Value] = []
    for register in range(0, layout.count, piece):
        pointer = _pointer(emitter, table.address(emitter, layout, register, start))
        if count == 1:
            found.append(f.load(type_, pointer, align=size))
        else:
            vector = f.load(f"<{count} x {type_}>", pointer, align=size * count)
            found += [f.op(type_, f"extractelement {vector}, i32 {place}") for place in range(count)]
    if packed:
        return ThreadTile(emitter, shape, dtype, layout, words=found)
    return ThreadTile(emitter, shape, dtype, layout, elements=[elements.to_register(f, one, dtype) for one in found])
