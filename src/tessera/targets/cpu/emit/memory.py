"""cpu level → LLVM text: views, loads and stores of register tiles, packing, and dots.

Positions outside a view are masked lane by lane, unless the op carries `inside`: then someone has shown that the
whole tile lies within and its lanes are neighbours. Lanes that are not neighbours are gathered and scattered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tessera.dtypes.types import DType, Kind
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cpu.emit.emitter import Emitter, Memory, emits
from tessera.targets.cpu.emit.registers import RegisterTile, is_column
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, BufferType, buffer_type
from tessera.targets.llvm import casts, elements, elementwise
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number, numbers, suffix_of, vector

INSIDE = "inside"
_NOWHERE = -(1 << 63)


def mark_inside(op: Operation) -> None:
    """Notes that an access needs no tests: all of it lies within the view, and the lanes are neighbours."""
    op.attributes[INSIDE] = UnitAttr()


@dataclass
class _Access:
    """One load or store of a register tile: where each vector lies, and which of its lanes are inside the view."""

    emitter: Emitter
    view: ViewDescriptor
    offsets: Sequence[Value]
    tile: RegisterTile
    inside: bool

    @property
    def _axis(self) -> int:
        """The view's axis along which the lanes run."""
        return 0 if len(self.offsets) == 1 or is_column(self.tile.shape) else 1

    @property
    def neighbours(self) -> bool:
        """Whether the elements of a vector lie side by side."""
        return bool(self.offsets) and (self.inside or literal(self.view.strides[self._axis]) == 1)

    def either(
        self, together: Callable[[], Sequence[Value] | None], apart: Callable[[], Sequence[Value] | None]
    ) -> Sequence[Value]:
        """Emits one code for vectors whose elements lie side by side, another for those whose elements are apart."""
        if self.neighbours or not self.offsets:
            return (together() if self.neighbours else apart()) or ()
        f = self.emitter.f
        return f.branch(f.compare("eq", self.view.strides[self._axis], 1), together, apart)

    @property
    def align(self) -> int:
        return self.view.dtype.storage.itemsize

    def _position(self, row: int, vector_number: int) -> list[Value]:
        """The first lane's position along each axis of the view."""
        lanes, found = self.emitter.machine.lanes, list(self.offsets)
        if not found:
            return found
        f = self.emitter.f
        found[self._axis] = f.add(found[self._axis], vector_number * lanes)
        if len(found) == 2 and not is_column(self.tile.shape):
            found[0] = f.add(found[0], row)
        return found

    def pointer(self, row: int, vector_number: int) -> Value:
        f, item = self.emitter.f, self.align
        offset = number(0, "i64")
        for position, stride in zip(self._position(row, vector_number), self.view.strides, strict=True):
            offset = folded(f, "add", offset, folded(f, "mul", position, stride))
        return f.at(self.view.pointer, folded(f, "mul", offset, item))

    def pointers(self, row: int, vector_number: int) -> Value:
        """One pointer per lane."""
        f, lanes = self.emitter.f, self.emitter.machine.lanes
        first = self.pointer(row, vector_number)
        if not self.offsets:
            return f.splat(first, lanes)
        step = folded(f, "mul", self.view.strides[self._axis], self.align)
        steps = f.binary("mul", f.splat(step, lanes), numbers(range(lanes), "i64"))
        return f.op(vector(lanes, "ptr"), f"getelementptr i8, {first}, {steps}")

    def mask(self, row: int, vector_number: int) -> Value | None:
        """The lanes to touch, or None for all of them."""
        f, lanes = self.emitter.f, self.emitter.machine.lanes
        live = self.tile.elements - vector_number * lanes
        fixed = None if live >= lanes else numbers([lane < live for lane in range(lanes)], "i1")
        if self.inside or not self.offsets:
            return fixed
        mask = fixed
        for axis, position in enumerate(self._position(row, vector_number)):
            if axis == self._axis:
                counted = f.binary("add", f.splat(position, lanes), numbers(range(lanes), "i64"))
                within = f.compare("ult", counted, f.splat(self.view.sizes[axis], lanes))
            else:
                within = f.splat(f.compare("ult", position, self.view.sizes[axis]), lanes)
            mask = within if mask is None else f.binary("and", mask, within)
        return mask


def _access(emitter: Emitter, op: tile.LoadOp | tile.StoreOp, made: RegisterTile) -> _Access:
    offsets = [emitter.number(offset) for offset in op.offsets]
    return _Access(emitter, emitter.view(op.view), offsets, made, INSIDE in op.attributes)


@emits(tile.LoadOp)
def _load(emitter: Emitter, op: tile.LoadOp) -> None:
    f, lanes = emitter.f, emitter.machine.lanes
    dtype = emitter.view(op.view).dtype
    memory = elements.memory_type(dtype, lanes)

    def make(row: int, vector_number: int) -> Value:
        mask = access.mask(row, vector_number)
        if access.neighbours and mask is None:
            read = f.load(memory, access.pointer(row, vector_number), align=access.align)
        else:
            pad = elements.to_memory(f, elements.constant(op.pad_value, dtype, lanes), dtype)
            every = number(1, vector(lanes, "i1")) if mask is None else mask

            def together() -> Sequence[Value]:
                return [f.masked_load(memory, access.pointer(row, vector_number), every, pad, align=access.align)]

            def apart() -> Sequence[Value]:
                return [gather(emitter, access.pointers(row, vector_number), every, pad, access.align)]

            (read,) = access.either(together, apart)
        return elements.to_register(f, read, dtype)

    made = emitter.make(op.result, make)
    access = _access(emitter, op, made)
    emitter.loaded(tile.memory_of(op.view), made)


@dataclass
class _Places:
    """An access at computed places: a pointer to each lane, and which lanes are asked for and inside the view."""

    emitter: Emitter
    op: tile.AtPlaces
    elements: int

    def __post_init__(self) -> None:
        self.view = self.emitter.view(self.op.view)
        self.indices = [self.emitter.tile(index) for index in self.op.indices]
        self.asked = None if self.op.mask is None else self.emitter.tile(self.op.mask)

    @property
    def item(self) -> int:
        return self.view.dtype.storage.itemsize

    def offsets(self, row: int, vector_number: int) -> tuple[Value, Value]:
        """How far from the start of the view, in elements, and the mask."""
        f, lanes = self.emitter.f, self.emitter.machine.lanes
        live = self.elements - vector_number * lanes
        mask = numbers([lane < live for lane in range(lanes)], "i1")
        if self.asked is not None:
            mask = f.binary("and", mask, self.asked.vector(row, vector_number))
        offset = number(0, vector(lanes, "i64"))
        for index, size, stride in zip(self.indices, self.view.sizes, self.view.strides, strict=True):
            position = index.vector(row, vector_number)
            mask = f.binary("and", mask, f.compare("ult", position, f.splat(size, lanes)))
            offset = f.binary("add", offset, f.binary("mul", position, f.splat(stride, lanes)))
        return offset, mask

    def lanes(self, row: int, vector_number: int) -> tuple[Value, Value]:
        """The pointers, and the mask."""
        f, lanes = self.emitter.f, self.emitter.machine.lanes
        offset, mask = self.offsets(row, vector_number)
        offset = f.binary("mul", offset, f.splat(number(self.item, "i64"), lanes))
        return f.op(vector(lanes, "ptr"), f"getelementptr i8, {self.view.pointer}, {offset}"), mask


@emits(tile.ReadOp)
def _read(emitter: Emitter, op: tile.ReadOp) -> None:
    f, lanes = emitter.f, emitter.machine.lanes

    def make(row: int, vector_number: int) -> Value:
        places = _Places(emitter, op, made.elements)
        pointers, mask = places.lanes(row, vector_number)
        dtype = places.view.dtype
        pad = elements.to_memory(f, elements.constant(0, dtype, lanes), dtype)
        return elements.to_register(f, gather(emitter, pointers, mask, pad, places.item), dtype)

    made = emitter.make(op.result, make)
    emitter.loaded(tile.memory_of(op.view), made)


@emits(tile.WriteOp)
def _write(emitter: Emitter, op: tile.WriteOp) -> None:
    value = emitter.tile(op.value)
    emitter.writing(tile.memory_of(op.view))
    places = _Places(emitter, op, value.elements)
    for row, vector_number in value.positions:
        pointers, mask = places.lanes(row, vector_number)
        written = elements.to_memory(emitter.f, value.vector(row, vector_number), value.dtype)
        _scatter(emitter, written, pointers, mask, places.item)


@emits(tile.AtomicAtOp)
def _atomic_at(emitter: Emitter, op: tile.AtomicAtOp) -> None:
    """Vectors in memory, of values and of offsets, and a loop over their lanes."""
    f, lanes, value = emitter.f, emitter.machine.lanes, emitter.tile(op.value)
    emitter.writing(tile.memory_of(op.view))
    places = _Places(emitter, op, value.elements)
    item, dtype = places.item, value.dtype
    given, where = f.stack(max(1, lanes * item)), f.stack(lanes * 8, 8)
    for row, vector_number in value.positions:
        offset, mask = places.offsets(row, vector_number)
        f.store(elements.to_memory(f, value.vector(row, vector_number), dtype), given, align=item)
        f.store(f.select(mask, offset, number(_NOWHERE, offset.type)), where, align=8)

        def visit(lane: Value, _: list[Value]) -> None:
            flat = f.load("i64", f.at(where, f.times(lane, 8)), align=8)

            def combine() -> None:
                held = f.load(elements.memory_type(dtype, 0), f.at(given, f.times(lane, item)), align=item)
                _atomic_step(emitter, op.kind.data, f.at(places.view.pointer, f.times(flat, item)), held, dtype)

            f.branch(f.compare("ne", flat, _NOWHERE), combine)

        f.loop(0, lanes, 1, [], visit)


@emits(tile.ItemOp)
def _item(emitter: Emitter, op: tile.ItemOp) -> None:
    f, view = emitter.f, emitter.view(op.view)
    item, type_ = view.dtype.storage.itemsize, elements.memory_type(view.dtype)
    inside, offset = number(1, "i1"), number(0, "i64")
    for start, size, stride in zip(op.offsets, view.sizes, view.strides, strict=True):
        position = emitter.number(start)
        inside = f.binary("and", inside, f.compare("ult", position, size))
        offset = f.binary("add", offset, f.binary("mul", position, stride))

    def there() -> Sequence[Value]:
        return [f.load(type_, f.at(view.pointer, f.times(offset, item)), align=item)]

    (found,) = f.branch(inside, there, lambda: [elements.nothing(view.dtype)])
    emitter.values[op.result] = elements.scalar(f, found, view.dtype)


def gather(emitter: Emitter, pointers: Value, mask: Value, pad: Value, align: int) -> Value:
    name = f"llvm.masked.gather.{suffix_of(pad.type)}.v{emitter.machine.lanes}p0"
    emitter.module.declare(f"declare {pad.type} @{name}({pointers.type}, {mask.type}, {pad.type})")
    aligned = f"{pointers.type} align {align} {pointers.name}"
    return emitter.f.op(pad.type, f"call {pad.type} @{name}({aligned}, {mask}, {pad})")


def _scatter(emitter: Emitter, value: Value, pointers: Value, mask: Value, align: int) -> None:
    name = f"llvm.masked.scatter.{suffix_of(value.type)}.v{emitter.machine.lanes}p0"
    emitter.module.declare(f"declare void @{name}({value.type}, {pointers.type}, {mask.type})")
    aligned = f"{pointers.type} align {align} {pointers.name}"
    emitter.f.do(f"call void @{name}({value}, {aligned}, {mask})")


def store_first(emitter: Emitter, value: Value, pointer: Value, live: int, align: int) -> None:
    """Writes the first lanes of a vector."""
    f, lanes = emitter.f, emitter.machine.lanes
    if live == 1:
        # LLVM 22 writes 32 bits when one 8- or 16-bit lane of a truncated vector is stored under a constant mask.
        f.store(f.lane(value, 0), pointer, align=align)
        return
    f.masked_store(value, pointer, numbers([lane < live for lane in range(lanes)], "i1"), align=align)


@emits(tile.StoreOp)
def _store(emitter: Emitter, op: tile.StoreOp) -> None:
    f, lanes, value = emitter.f, emitter.machine.lanes, emitter.tile(op.value)
    emitter.writing(tile.memory_of(op.view))
    access = _access(emitter, op, value)

    def put(row: int, vector_number: int) -> None:
        mask = access.mask(row, vector_number)
        written = elements.to_memory(f, value.vector(row, vector_number), value.dtype)

        def together() -> None:
            pointer = access.pointer(row, vector_number)
            if mask is None:
                f.store(written, pointer, align=access.align)
            elif access.inside:
                store_first(emitter, written, pointer, value.elements - vector_number * lanes, access.align)
            else:
                f.masked_store(written, pointer, mask, align=access.align)

        def apart() -> None:
            every = number(1, vector(lanes, "i1")) if mask is None else mask
            _scatter(emitter, written, access.pointers(row, vector_number), every, access.align)

        access.either(together, apart)

    for row, vector_number in value.positions:
        put(row, vector_number)


@emits(tile.AtomicOp)
def _atomic(emitter: Emitter, op: tile.AtomicOp) -> None:
    """Element by element: a tile in memory, a loop over it, an indivisible step for each."""
    f, lanes, value = emitter.f, emitter.machine.lanes, emitter.tile(op.value)
    view, kind, dtype = emitter.view(op.view), op.kind.data, value.dtype
    emitter.writing(tile.memory_of(op.view))
    item = dtype.storage.itemsize
    row_size = value.count * lanes * item
    scratch = f.stack(max(1, value.rows * row_size))
    for row, vector_number in value.positions:
        written = elements.to_memory(f, value.vector(row, vector_number), dtype)
        f.store(written, f.at(scratch, row * row_size + vector_number * lanes * item), align=item)
    offsets = [emitter.number(offset) for offset in op.offsets]
    column = is_column(value.shape)

    def visit(row: Value, col: Value) -> None:
        by_axis = {0: [], 1: [col], 2: [col, number(0, "i64")] if column else [row, col]}[len(offsets)]
        within, flat = number(1, "i1"), number(0, "i64")
        for offset, step, size, stride in zip(offsets, by_axis, view.sizes, view.strides, strict=True):
            position = f.binary("add", offset, step)
            within = f.binary("and", within, f.compare("ult", position, size))
            flat = f.binary("add", flat, f.binary("mul", position, stride))

        def combine() -> None:
            where = f.binary("add", f.times(row, row_size), f.times(col, item))
            given = f.load(elements.memory_type(dtype, 0), f.at(scratch, where), align=item)
            _atomic_step(emitter, kind, f.at(view.pointer, f.times(flat, item)), given, dtype)

        f.branch(within, combine)

    def over_rows(row: Value, _: list[Value]) -> None:
        def over_cols(col: Value, _: list[Value]) -> None:
            visit(row, col)

        f.loop(0, value.elements, 1, [], over_cols)

    f.loop(0, value.rows, 1, [], over_rows)


_DIRECT = {"sum": "add", "and": "and", "or": "or", "xor": "xor"}


def _atomic_step(emitter: Emitter, kind: str, pointer: Value, given: Value, dtype: DType) -> None:
    f = emitter.f
    if not dtype.is_float and dtype.bits >= 8 and kind in _DIRECT:
        f.op(given.type, f"atomicrmw {_DIRECT[kind]} {pointer}, {given} monotonic")
        return
    bits = f"i{8 * dtype.storage.itemsize}"
    scratch = f.stack(8, 8)
    f.store(f.load(bits, pointer, align=dtype.storage.itemsize), scratch, align=8)
    number_ = f.stack(0, 1).name[1:]
    top, out = f"again{number_}", f"settled{number_}"
    f.jump(top)
    f.label(top)
    seen = f.load(bits, scratch, align=8)
    old = elements.to_register(f, f.convert("bitcast", seen, given.type), dtype)
    new = elementwise.combine(f, kind, old, elements.to_register(f, given, dtype), dtype, emitter.machine.level)
    stored = f.convert("bitcast", elements.to_memory(f, new, dtype), bits)
    pair = f.op(f"{{ {bits}, i1 }}", f"cmpxchg {pointer}, {seen}, {stored} monotonic monotonic")
    f.store(f.op(bits, f"extractvalue {{ {bits}, i1 }} {pair.name}, 0"), scratch, align=8)
    done = f.op("i1", f"extractvalue {{ {bits}, i1 }} {pair.name}, 1")
    f.do(f"br {done}, label %{out}, label %{top}")
    f.label(out)


@emits(cpu.AnyOp)
def _any(emitter: Emitter, op: cpu.AnyOp) -> None:
    emitter.values[op.result] = emitter.joined(emitter.tile(op.operand), "or")


# Buffers


def _address_in(emitter: Emitter, memory: Memory, row: Value, col: Value) -> Value:
    type_ = memory.type
    assert isinstance(type_, BufferType)
    f, item = emitter.f, type_.dtype.storage.itemsize
    offset = folded(f, "mul", row, type_.stride)
    offset = folded(f, "add", offset, folded(f, "mul", col, item))
    return f.at(memory.pointer, offset)


def _buffer_offset(type_: BufferType, made: RegisterTile, lanes: int, row: int, vector_number: int) -> int:
    return row * type_.stride + vector_number * lanes * type_.dtype.storage.itemsize


@emits(cpu.LoadOp)
def _load_buffer(emitter: Emitter, op: cpu.LoadOp) -> None:
    f, lanes, memory = emitter.f, emitter.machine.lanes, emitter.memory(op.buffer)
    type_ = buffer_type(op.buffer)
    item = type_.dtype.storage.itemsize
    first = _address_in(emitter, memory, emitter.number(op.row), emitter.number(op.col))

    def make(row: int, vector_number: int) -> Value:
        memory = elements.memory_type(type_.dtype, lanes)
        if op.column is not None:
            steps = numbers([(vector_number * lanes + lane) * type_.stride for lane in range(lanes)], "i64")
            pointers = f.op(vector(lanes, "ptr"), f"getelementptr i8, {first}, {steps}")
            live = numbers([vector_number * lanes + lane < made.elements for lane in range(lanes)], "i1")
            return elements.to_register(f, gather(emitter, pointers, live, number(0, memory), item), type_.dtype)
        where = f.at(first, _buffer_offset(type_, made, lanes, row, vector_number))
        return elements.to_register(f, f.load(memory, where, align=item), type_.dtype)

    made = emitter.make(op.result, make)
    emitter.loaded(op.buffer, made)


@emits(cpu.TakeOp)
def _take(emitter: Emitter, op: cpu.TakeOp) -> None:
    """A pointer to each lane, and lanes outside of the tile left out."""
    f, lanes, memory = emitter.f, emitter.machine.lanes, emitter.memory(op.buffer)
    type_, shape = buffer_type(op.buffer), tuple(op.shape.iter_values())
    item = type_.dtype.storage.itemsize
    along_row = len(shape) == 1 or shape[1] == 1
    steps = (item,) if len(shape) == 1 else (item, 0) if along_row else (type_.stride, item)
    indices = [emitter.tile(index) for index in op.indices]

    def make(row: int, vector_number: int) -> Value:
        live = made.elements - vector_number * lanes
        mask, offset = numbers([lane < live for lane in range(lanes)], "i1"), number(0, vector(lanes, "i64"))
        for index, size, step in zip(indices, shape, steps, strict=True):
            position = index.vector(row, vector_number)
            mask = f.binary("and", mask, f.compare("ult", position, number(size, position.type)))
            offset = f.binary("add", offset, f.binary("mul", position, number(step, position.type)))
        pointers = f.op(vector(lanes, "ptr"), f"getelementptr i8, {memory.pointer}, {offset}")
        nothing = elements.to_memory(f, elements.constant(0, type_.dtype, lanes), type_.dtype)
        return elements.to_register(f, gather(emitter, pointers, mask, nothing, item), type_.dtype)

    made = emitter.make(op.result, make)
    emitter.loaded(op.buffer, made)


@emits(cpu.StoreOp)
def _store_buffer(emitter: Emitter, op: cpu.StoreOp) -> None:
    f, lanes, memory = emitter.f, emitter.machine.lanes, emitter.memory(op.buffer)
    value, type_ = emitter.tile(op.value), buffer_type(op.buffer)
    emitter.writing(op.buffer)
    item = type_.dtype.storage.itemsize
    first = _address_in(emitter, memory, emitter.number(op.row), emitter.number(op.col))
    for row, vector_number in value.positions:
        where = f.at(first, _buffer_offset(type_, value, lanes, row, vector_number))
        written = elements.to_memory(f, value.vector(row, vector_number), type_.dtype)
        live = value.elements - vector_number * lanes
        if live >= lanes:
            f.store(written, where, align=item)
        else:
            # A tile of one axis may have neighbours behind it in its row.
            store_first(emitter, written, where, live, item)


# Dots

AHEAD, NEAR = 16, 24 * 1024
"""Steps ahead that a panel is fetched from farther away, and the bytes from which on it is."""
UNROLL = 4
"""Steps of a dot's inner loop that are written out."""


@emits(cpu.DotOp)
def _dot(emitter: Emitter, op: cpu.DotOp) -> None:
    """Accumulators stay in registers; each step takes one row of the panel and one element of every row of `a`."""
    f, lanes = emitter.f, emitter.machine.lanes
    left, right = emitter.memory(op.a), emitter.memory(op.b)
    a, b = left.type, right.type
    assert isinstance(a, BufferType)
    start = emitter.tile(op.c)
    depth, rows, count = a.cols.data, start.rows, start.count
    item, accumulator = a.dtype.storage.itemsize, start.dtype
    from_a = _address_in(emitter, left, emitter.number(op.row), number(0, "i64"))
    col = emitter.number(op.col)
    if isinstance(b, BufferType):
        from_b, row_size = _address_in(emitter, right, number(0, "i64"), col), b.stride
    else:
        offset = folded(f, "mul", emitter.number(op.number), b.size)
        panel = f.binary("udiv", col, b.width.data) if literal(col) != 0 else col
        row_size = b.row_size
        from_b = f.at(f.at(right.pointer, offset), folded(f, "mul", panel, b.panel_size))
    fetched = 0 if depth * row_size <= NEAR else min(rows, -(-count * lanes * item // LINE))
    madd = _multiply_add(emitter, a.dtype, accumulator)

    def step(pointer_a: Value, pointer_b: Value, ahead: int, totals: list[Value]) -> list[Value]:
        across = [
            _operand(
                emitter,
                f.load(
                    elements.memory_type(b.dtype, lanes),
                    f.at(pointer_b, ahead * row_size + v * lanes * item),
                    align=item,
                ),
                b.dtype,
                accumulator,
            )
            for v in range(count)
        ]
        found = list(totals)
        for row in range(rows):
            if row < fetched:
                f.prefetch(f.at(pointer_b, (ahead + AHEAD) * row_size + row * LINE))
            scalar = f.load(
                elements.memory_type(a.dtype, 0), f.at(pointer_a, row * a.stride + ahead * item), align=item
            )
            every = f.splat(_operand(emitter, scalar, a.dtype, accumulator), lanes)
            for v in range(count):
                found[row * count + v] = madd(every, across[v], found[row * count + v])
        return found

    def body(index: Value, totals: list[Value]) -> Sequence[Value]:
        pointer_a = f.at(from_a, f.times(index, item))
        pointer_b = f.at(from_b, f.times(index, row_size))
        for ahead in range(UNROLL):
            totals = step(pointer_a, pointer_b, ahead, totals)
        return totals

    totals = start.all()
    whole = depth // UNROLL * UNROLL
    if op.depth is not None:
        # The pass that shortens a dot leaves whole steps of columns.
        totals = f.loop(0, emitter.number(op.depth), UNROLL, totals, body)
    else:
        if whole:
            totals = f.loop(0, whole, UNROLL, totals, body, runs=True)
        for rest in range(whole, depth):
            totals = step(from_a, from_b, rest, totals)
    shape = tile_type(op.result).get_shape()
    emitter.values[op.result] = RegisterTile.of(shape, accumulator, lanes, totals)


def _operand(emitter: Emitter, read: Value, dtype: DType, accumulator: DType) -> Value:
    value = elements.to_register(emitter.f, read, dtype)
    return casts.cast(emitter.f, value, dtype, accumulator, emitter.machine.level)


def _multiply_add(emitter: Emitter, dtype: DType, accumulator: DType) -> Callable[[Value, Value, Value], Value]:
    f = emitter.f
    if accumulator.kind is not Kind.FLOAT:
        return lambda a, b, c: f.binary("add", f.binary("mul", a, b), c)
    if emitter.machine.level == "base":
        return lambda a, b, c: f.binary("fadd", f.binary("fmul", a, b), c)
    return lambda a, b, c: f.intrinsic("fma", a, b, c)
