"""nv level → LLVM text: tiles that change their layout, in a thread's own registers or through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.conversion_plans import ConversionPlan, Order, Side, plan
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, packed, per_word, unpacked
from tessera.targets.cuda.emit.values import registers_of, reseen
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.ptx.inline import asm
from tessera.targets.llvm import elements
from tessera.targets.llvm.text import Value, number


@emits(nv.ConvertOp)
def _convert(emitter: Emitter, op: nv.ConvertOp) -> None:
    source, layout = emitter.tile(op.operand), layout_of(op.result)
    shape = tile_type(op.result).get_shape()
    axes = range(len(shape))
    if registers_of(source.layout, layout, shape, axes) is not None:
        reseen(emitter, op, source, op.result, axes)
        return
    threads = emitter.cooperating
    chosen = plan(source.layout, layout, shape, source.dtype.storage.itemsize, threads)
    memory = ConversionBuffer(emitter, chosen.order)

    emitter.meet()
    mine = emitter.first_replica(source.layout)
    emitter.where(mine, lambda: _write(emitter, memory, chosen.writes, source))
    if chosen.within_warps:
        asm(emitter.f, "bar.warp.sync -1;", effects=True, convergent=True)
    else:
        emitter.meet()
    _read(emitter, memory, chosen, op.result)


@emits(tile.TakeOp)
def _take(emitter: Emitter, op: tile.TakeOp) -> None:
    """Through shared memory, where the tile lies as it is, one row behind the other."""
    f, source, layout = emitter.f, emitter.tile(op.operand), layout_of(op.result)
    item, type_ = source.dtype.storage.itemsize, elements.memory_type(source.dtype)
    steps = [prod(source.shape[axis + 1 :]) for axis, _ in enumerate(source.shape)]
    memory = emitter.shared_pointer(max(1, prod(source.shape)) * item)
    ghosts = emitter.inside(source.layout, source.shape)

    def put() -> None:
        for register in range(source.count):
            at = number(0, "i32")
            for axis, step in enumerate(steps):
                position = f.add(emitter.base(source.layout, axis), source.layout.offset(register, axis))
                at = f.add(at, f.times(position, step))
            stored = elements.to_memory(f, source.element(register), source.dtype)
            pointer = f.at(memory, f.times(at, item))
            emitter.where(ghosts[register], partial(f.store, stored, pointer, align=item))

    emitter.meet()
    emitter.where(emitter.first_replica(source.layout), put)
    emitter.meet()
    indices, found = [emitter.tile(index) for index in op.indices], list[Value]()
    for register in range(layout.count):
        inside, at = number(1, "i1"), number(0, "i32")
        for index, size, step in zip(indices, source.shape, steps, strict=True):
            position = index.element(register)
            inside = f.binary("and", inside, f.compare("ult", position, number(size, "i64")))
            at = f.add(at, f.times(f.convert("trunc", position, "i32"), step))
        loaded = f.load(type_, f.at(memory, f.times(f.select(inside, at, number(0, "i32")), item)), align=item)
        found.append(f.select(inside, loaded, elements.nothing(source.dtype)))
    emitter.bind(op.result, [elements.to_register(f, value, source.dtype) for value in found])


class ConversionBuffer:
    """Addresses of atoms in the shared memory of one conversion."""

    def __init__(self, emitter: Emitter, order: Order) -> None:
        self.order = order
        self._emitter, self._f = emitter, emitter.f
        self._memory = emitter.shared_pointer(order.bytes)
        self._starts: dict[Layout, tuple[Value, Value]] = {}

    def _start(self, layout: Layout) -> tuple[Value, Value]:
        """The row and the column of a thread's first atom."""
        if layout not in self._starts:
            f, order = self._f, self.order
            row = column = number(0, "i32")
            for axis, step in enumerate(order.steps):
                base = self._emitter.base(layout, axis)
                if base.name == "0":
                    continue
                if axis == order.atom_axis and order.atom > 1:
                    base = f.binary("udiv", base, order.atom)
                if axis == order.fast:
                    column = base
                else:
                    part = f.times(base, step)
                    row = part if row.name == "0" else f.binary("add", row, part)
            self._starts[layout] = row, column
        return self._starts[layout]

    def pointer(self, layout: Layout, register: int, where: Value | None = None) -> Value:
        """Where an atom lies, by its first register; the start of the memory where a condition does not hold."""
        f, order = self._f, self.order
        row, column = self._start(layout)
        rows = columns = 0
        for axis, step in enumerate(order.steps):
            offset = layout.offset(register, axis) // (order.atom if axis == order.atom_axis else 1)
            if axis == order.fast:
                columns = offset
            else:
                rows += step * offset
        if order.mask:
            row, column = f.add(row, rows), f.add(column, columns)
            swizzle = f.binary("lshr", row, order.shift) if order.shift else row
            swizzle = f.times(f.binary("and", swizzle, order.mask), order.group)
            column = f.binary("xor", column, swizzle)
            rows = columns = 0
        offset = f.times(f.binary("add", f.times(row, order.pitch), column), order.atom_bytes)
        constant = (rows * order.pitch + columns) * order.atom_bytes
        if where is not None:
            offset = f.select(where, f.add(offset, constant), 0)
            constant = 0
        pointer = f.at(self._memory, offset)
        return pointer if constant == 0 else f.at(pointer, number(constant, "i32"))


def _write(emitter: Emitter, memory: ConversionBuffer, side: Side, source: ThreadTile) -> None:
    inside = emitter.inside(source.layout, source.shape)
    for vector in side.vectors:
        atoms = [_atom(emitter, source, registers) for registers in vector]
        _put(emitter, atoms, memory.pointer(source.layout, vector[0][0]), inside[vector[0][0]], memory.order.atom_bytes)


def _put(emitter: Emitter, atoms: Sequence[Value], pointer: Value, where: Value | None, size: int) -> None:
    """Atoms that are neighbours in memory, where a condition holds."""
    f = emitter.f
    emitter.where(where, lambda: f.store(f.together(atoms), pointer, align=len(atoms) * size))


def _atom(emitter: Emitter, source: ThreadTile, registers: Sequence[int]) -> Value:
    ways, first = len(registers), registers[0]
    in_a_word = first % ways == 0 and list(registers) == list(range(first, first + ways))
    if ways > 1 and in_a_word and per_word(source.dtype) == ways:
        return source.word(first // ways)
    values = [elements.to_memory(emitter.f, source.element(register), source.dtype) for register in registers]
    return packed(emitter.f, values) if ways > 1 else values[0]


def _read(emitter: Emitter, memory: ConversionBuffer, chosen: ConversionPlan, result: SSAValue) -> None:
    f, order, layout = emitter.f, memory.order, layout_of(result)
    type_ = tile_type(result)
    dtype = tile_dtype(result)
    element = elements.memory_type(dtype)
    held = "i32" if order.atom > 1 else element
    inside = emitter.inside(layout, type_.get_shape())
    found: dict[tuple[int, ...], Value] = {}
    for vector in chosen.reads.vectors:
        first, count = vector[0][0], len(vector)
        pointer = memory.pointer(layout, first, inside[first])
        align = count * order.atom_bytes
        if count == 1:
            found[vector[0]] = f.load(held, pointer, align=align)
            continue
        loaded = f.load(f"<{count} x {held}>", pointer, align=align)
        for index, registers in enumerate(vector):
            found[registers] = f.lane(loaded, index)
    _bind(emitter, result, found, order.atom)


def _bind(emitter: Emitter, result: SSAValue, found: dict[tuple[int, ...], Value], ways: int) -> None:
    f, dtype, count = emitter.f, tile_dtype(result), layout_of(result).count
    words = [found.get(tuple(range(first, first + ways))) for first in range(0, count, ways)]
    if ways > 1 and per_word(dtype) == ways and all(word is not None for word in words):
        emitter.bind(result, words=[word for word in words if word is not None])
        return
    by_register: dict[int, Value] = {}
    for registers, value in found.items():
        parts = unpacked(f, value, ways) if ways > 1 else [value]
        by_register.update(zip(registers, parts, strict=True))
    values = [by_register[register] for register in range(count)]
    emitter.bind(result, [elements.to_register(f, value, dtype) for value in values])
