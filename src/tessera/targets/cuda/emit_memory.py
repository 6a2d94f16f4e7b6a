"""nv level → LLVM text: global memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_type
from tessera.targets.cuda.emitter import GLOBAL, Emitter, View, emits
from tessera.targets.cuda.layouts import Layout
from tessera.targets.cuda.nv_types import layout_of
from tessera.targets.llvm import elements
from tessera.targets.llvm.literals import constant, folded
from tessera.targets.llvm.text import Value, number


@emits(tile.DimOp)
def _dim(emitter: Emitter, op: tile.DimOp) -> None:
    emitter.values[op.result] = emitter.view(op.view).sizes[op.axis.value.data]


@emits(tile.StrideOp)
def _stride(emitter: Emitter, op: tile.StrideOp) -> None:
    emitter.values[op.result] = emitter.view(op.view).strides[op.axis.value.data]


def moved(emitter: Emitter, pointer: Value, by: Value) -> Value:
    """The pointer some bytes further on."""
    return emitter.f.op(pointer.type, f"getelementptr i8, {pointer}, {by}")


@emits(tile.ViewOp)
def _view(emitter: Emitter, op: tile.ViewOp) -> None:
    base, f = emitter.view(op.base), emitter.f
    item = number(base.dtype.storage.itemsize, "i64")
    pointer = moved(emitter, base.pointer, folded(f, "mul", emitter.number(op.offset), item))
    sizes = tuple(emitter.number(size) for size in op.sizes)
    strides = tuple(emitter.number(stride) for stride in op.strides)
    emitter.values[op.result] = View(pointer, sizes, strides, base.dtype)


class _Access:
    """Where each register of a tile lies in a view, and whether it does at all."""

    def __init__(
        self, emitter: Emitter, view: View, offsets: Sequence[SSAValue], layout: Layout, shape: Sequence[int]
    ) -> None:
        f = emitter.f
        self.emitter, self.view, self.layout = emitter, view, layout
        self.firsts = [
            f.binary("add", emitter.number(offset), f.convert("zext", emitter.base(layout, axis), "i64"))
            for axis, offset in enumerate(offsets)
        ]
        self.ghosts = emitter.inside(layout, shape)

    def place(self, register: int) -> tuple[Value, Value]:
        """The address of an element, and whether it is inside the view and the tile."""
        f, view = self.emitter.f, self.view
        within = self.ghosts[register] or number(1, "i1")
        place = number(0, "i64")
        for axis, first in enumerate(self.firsts):
            position = f.add(first, self.layout.offset(register, axis))
            within = f.binary("and", within, f.compare("ult", position, view.sizes[axis]))
            place = folded(f, "add", place, folded(f, "mul", position, view.strides[axis]))
        item = number(view.dtype.storage.itemsize, "i64")
        return moved(self.emitter, view.pointer, folded(f, "mul", place, item)), within


@emits(tile.LoadOp)
def _load(emitter: Emitter, op: tile.LoadOp) -> None:
    f, view, layout = emitter.f, emitter.view(op.view), layout_of(op.result)
    access = _Access(emitter, view, op.offsets, layout, tile_type(op.result).get_shape())
    memory, item = elements.memory_type(view.dtype), view.dtype.storage.itemsize
    pad = elements.to_memory(f, constant(op.pad_value, view.dtype), view.dtype)
    found: list[Value] = []
    for register in range(layout.count):
        pointer, within = access.place(register)
        (read,) = f.branch(within, lambda: [f.load(memory, pointer, align=item)], lambda: [pad])
        found.append(elements.to_register(f, read, view.dtype))
    emitter.bind(op.result, found)


@emits(tile.StoreOp)
def _store(emitter: Emitter, op: tile.StoreOp) -> None:
    f, view, value = emitter.f, emitter.view(op.view), emitter.tile(op.value)
    access = _Access(emitter, view, op.offsets, value.layout, value.shape)
    item = view.dtype.storage.itemsize
    mine = emitter.first_replica(value.layout)
    for register in range(value.count):
        pointer, within = access.place(register)
        within = within if mine is None else f.binary("and", within, mine)
        written = elements.to_memory(f, value.element(register), view.dtype)

        def put() -> Sequence[Value]:
            f.store(written, pointer, align=item)
            return []

        f.branch(within, put)
