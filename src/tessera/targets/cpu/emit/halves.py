"""cpu level → LLVM text: bytes in buffers taken apart into elements of 4 bits, and put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cpu.emit.emitter import Emitter, emits
from tessera.targets.cpu.emit.memory import gather
from tessera.targets.cpu.emit.registers import is_column
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import buffer_type
from tessera.targets.llvm import elements
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number, numbers, vector


@dataclass
class _Codes:
    """Codes of bytes or of their halves as a buffer has them, and where a part of what is made of them lies."""

    emitter: Emitter
    op: cpu.LoadHalvesOp | cpu.LoadPairsOp

    def __post_init__(self) -> None:
        emitter, op = self.emitter, self.op
        self.memory, self.shape = emitter.memory(op.buffer), tuple(op.shape.iter_values())
        self.axis, self.starts = op.axis.value.data, [emitter.number(start) for start in op.starts]
        across = is_column(self.shape) or len(self.shape) == 1
        self.steps = (1,) if len(self.shape) == 1 else (1, 0) if across else (buffer_type(op.buffer).stride, 1)
        """Bytes from a code to the next one along each axis of the tile."""
        sizes = tile_type(op.result).get_shape()
        self.lane_axis = 0 if is_column(sizes) or len(sizes) == 1 else 1
        known = literal(self.starts[self.lane_axis])
        self.is_even = (sizes[self.lane_axis] if known is None else known) % 2 == 0
        """Whether lanes begin at an even place: pieces of an even size begin at multiples of it, or at a number."""

    @property
    def is_along(self) -> bool:
        """Whether lanes run along the axis of the halves."""
        return self.lane_axis == self.axis

    @property
    def is_dense(self) -> bool:
        """Whether codes that follow each other along the lanes do so in memory."""
        return self.steps[self.lane_axis] == 1 and self.shape[self.lane_axis] > 1

    def place(self, axis: int, row: int) -> Value:
        """Where a row of vectors is along an axis, counted in elements of the result; its first lane, along theirs."""
        return self.emitter.f.add(self.starts[axis], 0 if axis == self.lane_axis else row)

    def lanes(self, row: int, first: int) -> list[Value]:
        """For each axis the places of all lanes of a vector."""
        f, count = self.emitter.f, self.emitter.machine.lanes
        found = [f.splat(self.place(axis, row), count) for axis in range(len(self.shape))]
        own = found[self.lane_axis]
        found[self.lane_axis] = f.binary("add", own, numbers(range(first, first + count), "i64"))
        return found

    def at(self, places: Sequence[Value]) -> Value:
        """The codes, one to a byte, from places of the buffer's tile on."""
        f, offset = self.emitter.f, number(0, "i64")
        for place, step in zip(places, self.steps, strict=True):
            offset = folded(f, "add", offset, folded(f, "mul", place, step))
        return f.at(self.memory.pointer, offset)

    def gathered(self, places: Sequence[Value], live: int) -> Value:
        """Codes at places of each lane's own, as far as lanes are live."""
        f, count = self.emitter.f, self.emitter.machine.lanes
        offset = number(0, vector(count, "i64"))
        for place, step in zip(places, self.steps, strict=True):
            offset = f.binary("add", offset, f.binary("mul", place, number(step, place.type)))
        pointers = f.op(vector(count, "ptr"), f"getelementptr i8, {self.memory.pointer}, {offset}")
        mask = numbers([lane < live for lane in range(count)], "i1")
        return gather(self.emitter, pointers, mask, number(0, vector(count, "i8")), 1)


@emits(cpu.LoadHalvesOp)
def _load_halves(emitter: Emitter, op: cpu.LoadHalvesOp) -> None:
    """A row of bytes has all low halves, or all high ones, or lanes go two and two to a byte."""
    f, lanes, codes, dtype = emitter.f, emitter.machine.lanes, _Codes(emitter, op), tile_dtype(op.result)
    axis = codes.axis

    def make(row: int, vector_number: int) -> Value:
        first = vector_number * lanes
        places = [codes.place(one, row) for one in range(len(codes.shape))]
        if codes.is_dense and codes.is_along and codes.is_even:
            places[axis] = f.binary("lshr", f.add(places[axis], first), 1)
            loaded = f.load(vector(lanes // 2, "i8"), codes.at(places), align=1)
            found = f.shuffle(loaded, None, [lane // 2 for lane in range(lanes)])
            moved = numbers([lane % 2 * 4 for lane in range(lanes)], "i8")
        elif codes.is_dense and not codes.is_along:
            place, places[codes.lane_axis] = places[axis], f.add(places[codes.lane_axis], first)
            places[axis] = f.binary("lshr", place, 1)
            found = f.load(vector(lanes, "i8"), codes.at(places), align=1)
            moved = f.splat(f.convert("trunc", f.binary("shl", f.binary("and", place, 1), 2), "i8"), lanes)
        else:
            each = codes.lanes(row, first)
            place, each[axis] = each[axis], f.binary("lshr", each[axis], 1)
            found = codes.gathered(each, made.elements - first)
            moved = f.convert("trunc", f.binary("shl", f.binary("and", place, 1), 2), "i8")
        return elements.to_register(f, f.binary("and", f.binary("lshr", found, moved), 15), dtype)

    made = emitter.make(op.result, make)
    emitter.loaded(op.buffer, made)


@emits(cpu.LoadPairsOp)
def _load_pairs(emitter: Emitter, op: cpu.LoadPairsOp) -> None:
    f, lanes, codes = emitter.f, emitter.machine.lanes, _Codes(emitter, op)
    axis = codes.axis

    def halves(row: int, first: int) -> Iterator[Value]:
        """The low halves of a vector's bytes, and the high ones."""
        places = [codes.place(one, row) for one in range(len(codes.shape))]
        if codes.is_dense and codes.is_along:
            places[axis] = f.binary("shl", f.add(places[axis], first), 1)
            both = f.load(vector(2 * lanes, "i8"), codes.at(places), align=1)
            yield from (f.shuffle(both, None, range(half, 2 * lanes, 2)) for half in (0, 1))
        elif codes.is_dense:
            places[codes.lane_axis] = f.add(places[codes.lane_axis], first)
            place = f.binary("shl", places[axis], 1)
            for half in (0, 1):
                places[axis] = f.add(place, half)
                yield f.load(vector(lanes, "i8"), codes.at(places), align=1)
        else:
            each = codes.lanes(row, first)
            place = f.binary("shl", each[axis], 1)
            for half in (0, 1):
                each[axis] = f.binary("or", place, half)
                yield codes.gathered(each, made.elements - first)

    def make(row: int, vector_number: int) -> Value:
        low, high = halves(row, vector_number * lanes)
        return f.binary("or", low, f.binary("shl", high, 4))

    made = emitter.make(op.result, make)
    emitter.loaded(op.buffer, made)
