"""nv level → LLVM text: views of global memory, and tiles that are read from them and written to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.types import tile_dtype, tile_type, view_type
from tessera.targets.cuda.emit.divisors import has_aligned_rows
from tessera.targets.cuda.emit.emitter import PROLOGUES, RULES, Emitter, emits
from tessera.targets.cuda.emit.global_access import Access, Path, Pieces, both, is_aligned, read, write
from tessera.targets.cuda.emit.thread_tiles import Affine, ThreadTile, packed, per_word, unpacked
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.llvm import elements
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import folded
from tessera.targets.llvm.rules import emit_view
from tessera.targets.llvm.text import Value, number

WORD = 4
"""Bytes of a register."""
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


@dataclass(frozen=True)
class _Neighbours:
    """Registers in groups of `count` whose places follow each other along `axis` of a view, and share the rest."""

    axis: int
    count: int


def _neighbours(emitter: Emitter, op: tile.AtPlaces, layout: Layout, shape: Sequence[int]) -> _Neighbours | None:
    """The largest groups of registers that may be moved at once; None where each element has a place of its own."""
    most = Pieces.of(layout, shape, view_type(op.view).dtype).count
    count, itemsize = most, view_type(op.view).dtype.storage.itemsize
    indices = [emitter.tile(index) for index in op.indices]
    asked = [] if op.mask is None else [emitter.tile(op.mask)]
    while count > 1 and count * itemsize >= WORD:
        groups = [range(first, first + count) for first in range(0, layout.count, count)]
        for axis, index in enumerate(indices):
            others = [other for other in (*indices, *asked) if other is not index]
            if all(_counts_up(index, group) and all(_is_one(other, group) for other in others) for group in groups):
                return _Neighbours(axis, count)
        count //= 2
    return None


def _counts_up(index: ThreadTile, group: range) -> bool:
    """Whether positions in some registers are known to be one number after the other."""
    if index.affine is None:
        return False
    first = index.affine.offsets[group[0]]
    if (first - index.affine.offsets[0]) % len(group):
        return False
    return all(index.affine.offsets[register] == first + more for more, register in enumerate(group))


def _is_one(other: ThreadTile, group: range) -> bool:
    """Whether a tile is known to have one value in some registers."""
    if other.affine is not None:
        return len({other.affine.offsets[register] for register in group}) == 1
    if other.questions is not None:
        return all(len({asked.offsets[register] for register in group}) == 1 for asked in other.questions)
    return len({other.element(register) for register in group}) == 1


@dataclass
class _Row:
    """Elements of a thread that share their places along all axes but one: the address of one of them."""

    pointer: Value
    is_there: Value
    """Whether the view has such a row."""
    at: int = 0
    """How far from the thread's first position the address is."""


class Places:
    """An access at computed places: the address of each register's element, and whether it is asked for and inside."""

    def __init__(self, emitter: Emitter, op: tile.AtPlaces, layout: Layout, shape: Sequence[int]) -> None:
        self._emitter = emitter
        self._source = op.view
        self.view = emitter.view(op.view)
        self._indices = [emitter.tile(index) for index in op.indices]
        self._asked = None if op.mask is None else emitter.tile(op.mask)
        self._ghosts = emitter.inside(layout, shape)
        self.neighbours = _neighbours(emitter, op, layout, shape)
        self._rows: dict[tuple[Value, ...], _Row] = {}
        self._scope = emitter.scopes[-1]

    def of(self, register: int) -> tuple[Value, Value]:
        if self.neighbours is not None:
            return self._stepped(register)
        pointer, inside = _address(self._emitter, self.view, [index.element(register) for index in self._indices])
        return pointer, self._asked_for(register, inside)

    def _asked_for(self, register: int, inside: Value) -> Value:
        for condition in (self._ghosts[register], self._asked.element(register) if self._asked else None):
            inside = inside if condition is None else self._emitter.f.binary("and", inside, condition)
        return inside

    # Neighbours

    def by_groups(
        self, move: Callable[[_Neighbours], Sequence[Value] | None], each: Callable[[], Sequence[Value] | None]
    ) -> Sequence[Value]:
        """Moves neighbours at once where memory allows it, which is tested; each element by itself otherwise."""
        found = self.neighbours
        if found is None:
            return each() or ()
        f, emitter = self._emitter.f, self._emitter
        pieces, size = Pieces(found.axis, found.count, self._itemsize), self.view.sizes[found.axis]
        whole = is_aligned(emitter, self._source, pieces)
        if not (found.axis == len(self._indices) - 1 and has_aligned_rows(self._source)):
            whole = both(emitter, whole, f.divides(found.count, size))
        starts = f.divides(found.count, f.add(self._affine(found.axis).base, self._offset(0)))
        together = both(emitter, whole, starts)
        assert together is not None
        return emitter.branch(together, lambda: move(found), each)

    def group(self, register: int) -> tuple[tuple[Value, int], Value]:
        """The address of a group that begins with a register, and whether it is asked for and inside as a whole."""
        row, offset = self._row(register, number(1, "i64")), self._offset(register)
        return (row.pointer, offset * self._itemsize), self._inside(register, row)

    def _stepped(self, register: int) -> tuple[Value, Value]:
        """The address of an element, by one step from that of the register before it in its row: few are held."""
        assert self.neighbours is not None
        f, stride, offset = self._emitter.f, self.view.strides[self.neighbours.axis], self._offset(register)
        row = self._row(register, stride)
        if offset != row.at:
            step = folded(f, "mul", stride, (offset - row.at) * self._itemsize)
            row.pointer, row.at = f.at(row.pointer, step), offset
        return row.pointer, self._inside(register, row)

    def _inside(self, register: int, row: _Row) -> Value:
        assert self.neighbours is not None
        f, axis = self._emitter.f, self.neighbours.axis
        position = f.add(self._affine(axis).base, self._offset(register))
        inside = f.binary("and", f.compare("ult", position, self.view.sizes[axis]), row.is_there)
        return self._asked_for(register, inside)

    def _row(self, register: int, stride: Value) -> _Row:
        """The row of a register, where the axis of neighbours has a stride."""
        assert self.neighbours is not None
        emitter, axis = self._emitter, self.neighbours.axis
        if self._scope != emitter.scopes[-1]:
            self._rows, self._scope = {}, emitter.scopes[-1]
        others = tuple(index.element(register) for at, index in enumerate(self._indices) if at != axis)
        if others not in self._rows:
            f, inside = emitter.f, number(1, "i1")
            offset = folded(f, "mul", self._affine(axis).base, stride)
            rest = [at for at in range(len(self._indices)) if at != axis]
            for position, at in zip(others, rest, strict=True):
                inside = f.binary("and", inside, f.compare("ult", position, self.view.sizes[at]))
                offset = folded(f, "add", offset, folded(f, "mul", position, self.view.strides[at]))
            pointer = f.at(self.view.pointer, folded(f, "mul", offset, self._itemsize))
            self._rows[others] = _Row(pointer, inside)
        return self._rows[others]

    def _offset(self, register: int) -> int:
        assert self.neighbours is not None
        return self._affine(self.neighbours.axis).offsets[register]

    def _affine(self, axis: int) -> Affine:
        found = self._indices[axis].affine
        assert found is not None
        return found

    @property
    def _itemsize(self) -> int:
        return self.view.dtype.storage.itemsize


@emits(tile.ReadOp)
def _read(emitter: Emitter, op: tile.ReadOp) -> None:
    f, layout, dtype = emitter.f, layout_of(op.result), tile_dtype(op.result)
    places = Places(emitter, op, layout, tile_type(op.result).get_shape())
    unchanging, type_, nothing = _is_constant(emitter, op.view), elements.memory_type(dtype), elements.nothing(dtype)

    def each() -> Sequence[Value]:
        found: list[Value] = []
        for register in range(layout.count):
            pointer, inside = places.of(register)
            found += read(emitter, type_, 1, (pointer, 0), inside, [nothing], constant=unchanging)
        return found

    def together(groups: _Neighbours) -> Sequence[Value]:
        found: list[Value] = []
        ways = WORD // dtype.storage.itemsize
        for register in range(0, layout.count, groups.count):
            address, inside = places.group(register)
            if ways > 1:
                zeros = [number(0, "i32")] * (groups.count // ways)
                words = read(emitter, "i32", len(zeros), address, inside, zeros, constant=unchanging)
                found += [part for word in words for part in unpacked(f, word, ways)]
            else:
                found += read(
                    emitter, type_, groups.count, address, inside, [nothing] * groups.count, constant=unchanging
                )
        return found

    read_ = places.by_groups(together, each)
    emitter.bind(op.result, [elements.to_register(f, value, dtype) for value in read_])


@emits(tile.WriteOp)
def _write(emitter: Emitter, op: tile.WriteOp) -> None:
    value = emitter.tile(op.value)

    def put() -> None:
        places = Places(emitter, op, value.layout, value.shape)

        def each() -> None:
            for register in range(value.count):
                pointer, inside = places.of(register)
                write(emitter, [_in_memory(emitter, value, register)], (pointer, 0), inside)

        def together(groups: _Neighbours) -> None:
            for register in range(0, value.count, groups.count):
                address, inside = places.group(register)
                registers = range(register, register + groups.count)
                small = value.dtype.storage.itemsize < WORD
                held = (
                    _words(emitter, value, registers) if small else [_in_memory(emitter, value, at) for at in registers]
                )
                write(emitter, held, address, inside)

        places.by_groups(together, each)

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
