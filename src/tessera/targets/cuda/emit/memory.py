"""nv level → LLVM text: views of global memory, and tiles that are read from them and written to them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.emitter import PROLOGUES, RULES, Emitter, emits
from tessera.targets.cuda.emit.global_access import Access, Path, Pieces, is_aligned, read, write
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, packed, per_word, unpacked
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.llvm import elements
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import folded
from tessera.targets.llvm.rules import emit_view
from tessera.targets.llvm.text import Value, number

INSIDE = "inside"
"""Marks a load or store whose whole tile is known to be inside the view."""


@RULES.overrides(tile.ViewOp)
def _view(emitter: Emitter, op: tile.ViewOp) -> None:
    emit_view(emitter, op)
    _test_once(emitter, op.result)


def _test_once(emitter: Emitter, view: SSAValue) -> None:
    """Tests what later accesses need to know of a view where it is made, and not in the loops around them."""
    for use in view.uses:
        user = use.operation
        if isinstance(user, tile.LoadOp | tile.StoreOp):
            moved = user.result if isinstance(user, tile.LoadOp) else user.value
            layout, shape = layout_of(moved), tile_type(moved).get_shape()
            is_aligned(emitter, view, Pieces.of(layout, shape, tile_dtype(moved), hints_of(user).vector))


def _test_arguments(emitter: Emitter) -> None:
    for argument in emitter.source.arguments:
        if isinstance(argument.type, tile.ViewType):
            _test_once(emitter, argument)


PROLOGUES.append(_test_arguments)


def _is_constant(emitter: Emitter, view: SSAValue) -> bool:
    """Whether the memory of a view is not written while the kernel runs, as far as the kernel knows."""
    if emitter.follows:
        # The kernel begins while others still write what it will read. Nor of memory that stands still: assemblers move
        # such loads behind the wait, which is no barrier to them, and weights would be read when it is over.
        return False
    memory = tile.memory_of(view)
    seen: list[SSAValue] = [one for one in emitter.source.arguments if tile.memory_of(one) is memory]
    while seen:
        for use in seen.pop().uses:
            user = use.operation
            if isinstance(user, tile.ViewOp):
                seen.append(user.result)
            elif not isinstance(user, tile.LoadOp | tile.ReadOp | tile.ItemOp | tile.DimOp | tile.StrideOp):
                return False
    return True


@emits(tile.LoadOp)
def _load(emitter: Emitter, op: tile.LoadOp) -> None:
    f, layout, dtype = emitter.f, layout_of(op.result), tile_dtype(op.result)
    shape, vector = tile_type(op.result).get_shape(), hints_of(op).vector
    access = Access(emitter, op.view, list(op.offsets), layout, shape, vector)
    pieces, unchanging = access.pieces, _is_constant(emitter, op.view)
    ways, type_ = max(1, 4 // access.item), elements.memory_type(dtype)
    pad = _padding(op.pad_value, access)

    def move(path: Path) -> Sequence[Value]:
        found: list[Value] = []
        in_words = pieces.in_words and path.count > 1
        unit, units = ("i32", pieces.units) if in_words else (type_, path.count)
        fill = _repeated(pad, access.item) if in_words else pad
        for register in range(0, layout.count, path.count):
            where = path.inside(register)
            found += read(emitter, unit, units, path.address(register), where, [fill] * units, constant=unchanging)
        if pieces.in_words and not in_words:
            return [packed(f, found[first : first + ways]) for first in range(0, len(found), ways)]
        return found

    found = access.by_paths(move, inside=INSIDE in op.attributes)
    if pieces.in_words and per_word(dtype):
        emitter.bind(op.result, words=found)
        return
    if pieces.in_words:
        found = [part for word in found for part in unpacked(f, word, ways)]
    emitter.bind(op.result, [elements.to_register(f, value, dtype) for value in found])


def _address(emitter: Emitter, view: ViewDescriptor, positions: Sequence[Value]) -> tuple[Value, Value]:
    """The address of an element, and whether it is inside of its view."""
    f, inside, offset = emitter.f, number(1, "i1"), number(0, "i64")
    for position, size, stride in zip(positions, view.sizes, view.strides, strict=True):
        inside = f.binary("and", inside, f.compare("ult", position, size))
        offset = folded(f, "add", offset, folded(f, "mul", position, stride))
    offset = folded(f, "mul", offset, view.dtype.storage.itemsize)
    return f.at(view.pointer, offset), inside


class Places:
    """An access at computed places: the address of each register's element, and whether it is asked for and inside."""

    def __init__(self, emitter: Emitter, op: tile.AtPlaces, layout: Layout, shape: Sequence[int]) -> None:
        self._emitter = emitter
        self.view = emitter.view(op.view)
        self._indices = [emitter.tile(index) for index in op.indices]
        self._asked = None if op.mask is None else emitter.tile(op.mask)
        self._ghosts = emitter.inside(layout, shape)

    def of(self, register: int) -> tuple[Value, Value]:
        f = self._emitter.f
        pointer, inside = _address(self._emitter, self.view, [index.element(register) for index in self._indices])
        for condition in (self._ghosts[register], self._asked.element(register) if self._asked else None):
            inside = inside if condition is None else f.binary("and", inside, condition)
        return pointer, inside


@emits(tile.ReadOp)
def _read(emitter: Emitter, op: tile.ReadOp) -> None:
    layout, dtype, found = layout_of(op.result), tile_dtype(op.result), list[Value]()
    places = Places(emitter, op, layout, tile_type(op.result).get_shape())
    unchanging, type_, nothing = _is_constant(emitter, op.view), elements.memory_type(dtype), elements.nothing(dtype)
    for register in range(layout.count):
        pointer, inside = places.of(register)
        found += read(emitter, type_, 1, (pointer, 0), inside, [nothing], constant=unchanging)
    emitter.bind(op.result, [elements.to_register(emitter.f, value, dtype) for value in found])


@emits(tile.WriteOp)
def _write(emitter: Emitter, op: tile.WriteOp) -> None:
    value = emitter.tile(op.value)

    def put() -> None:
        places = Places(emitter, op, value.layout, value.shape)
        for register in range(value.count):
            pointer, inside = places.of(register)
            write(emitter, [_in_memory(emitter, value, register)], (pointer, 0), inside)

    emitter.where(emitter.first_replica(value.layout), put)


@emits(tile.ItemOp)
def _item(emitter: Emitter, op: tile.ItemOp) -> None:
    view = emitter.view(op.view)
    type_ = elements.memory_type(view.dtype)
    pointer, inside = _address(emitter, view, [emitter.number(offset) for offset in op.offsets])
    unchanging = _is_constant(emitter, op.view)
    (found,) = read(emitter, type_, 1, (pointer, 0), inside, [elements.nothing(view.dtype)], constant=unchanging)
    emitter.values[op.result] = elements.scalar(emitter.f, found, view.dtype)


def _padding(value: float, access: Access) -> Value:
    """The value for elements outside, as in memory."""
    dtype = access.view.dtype
    found = elements.constant(value, dtype)
    if dtype.is_integer and dtype.bits < 8:
        return number(int(found.name) % (1 << dtype.bits), found.type)
    return number(int(value), "i8") if elements.memory_type(dtype) != found.type else found


def _repeated(value: Value, itemsize: int) -> Value:
    """An element of 8 or 16 bits in every part of a word."""
    bits = int(value.name) % (1 << (8 * itemsize))
    return number(sum(bits << (8 * index) for index in range(0, 4, itemsize)), "i32")


@emits(tile.StoreOp)
def _store(emitter: Emitter, op: tile.StoreOp) -> None:
    value = emitter.tile(op.value)

    def put() -> Sequence[Value]:
        access = Access(emitter, op.view, list(op.offsets), value.layout, value.shape, hints_of(op).vector)
        return access.by_paths(lambda path: _put(emitter, path, value), inside=INSIDE in op.attributes)

    emitter.where(emitter.first_replica(value.layout), put)


def _put(emitter: Emitter, path: Path, value: ThreadTile) -> None:
    in_words = path.access.pieces.in_words and path.count > 1
    for register in range(0, value.count, path.count):
        registers = range(register, register + path.count)
        given = _words(emitter, value, registers) if in_words else [_in_memory(emitter, value, at) for at in registers]
        write(emitter, given, path.address(register), path.inside(register))


def _in_memory(emitter: Emitter, value: ThreadTile, register: int) -> Value:
    return elements.to_memory(emitter.f, value.element(register), value.dtype)


def _words(emitter: Emitter, value: ThreadTile, registers: range) -> list[Value]:
    """Some of a tile's elements as words of memory."""
    ways = 4 // value.dtype.storage.itemsize
    firsts = registers[::ways]
    if per_word(value.dtype):
        return [value.word(first // ways) for first in firsts]
    return [packed(emitter.f, [_in_memory(emitter, value, first + part) for part in range(ways)]) for first in firsts]
