"""cpu level → LLVM text: products by the matrix unit (AMX), which has eight registers of 16 lines of 64 bytes.

Four of them hold a block of 32 by 32 sums, two the rows of `a`, two the columns of `b`. They are named by number:
LLVM's allocator has no part in it. A thread sets their shape when it enters the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessera.dtypes.types import Kind
from tessera.targets.cpu import dialect as cpu
from tessera.targets.cpu.cpu_types import LINE, TILE_ROWS, BufferType, PanelsType, buffer_type
from tessera.targets.cpu.emitter import Emitter, emits
from tessera.targets.cpu.literals import folded, literal
from tessera.targets.llvm.text import Function, Value, number

_SUMS, _ROWS, _COLS = 0, 4, 6
"""The first register of each group."""


class _Unit:
    """Instructions on registers by number."""

    def __init__(self, emitter: Emitter, product: str) -> None:
        self._emitter, self._product = emitter, product
        self._f: Function = emitter.f

    def load(self, register: int, pointer: Value, stride: Value | int) -> None:
        step = number(stride, "i64") if isinstance(stride, int) else stride
        self._f.module.declare("declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)")
        self._f.do(f"call void @llvm.x86.tileloadd64(i8 {register}, {pointer}, {step})")

    def store(self, register: int, pointer: Value, stride: int) -> None:
        self._f.module.declare("declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)")
        self._f.do(f"call void @llvm.x86.tilestored64(i8 {register}, {pointer}, i64 {stride})")

    def clear(self, register: int) -> None:
        """Reads the same zeros into every row: quicker than the instruction made for it."""
        zeros = self._emitter.module.constant("zero_line", "private constant [64 x i8] zeroinitializer, align 64")
        self.load(register, zeros, 0)

    def multiply(self, total: int, a: int, b: int) -> None:
        name = f"llvm.x86.{self._product}"
        self._f.module.declare(f"declare void @{name}(i8 immarg, i8 immarg, i8 immarg)")
        self._f.do(f"call void @{name}(i8 {total}, i8 {a}, i8 {b})")


_PRODUCTS = {Kind.FLOAT: "tdpbf16ps", Kind.INT: "tdpbssd", Kind.UINT: "tdpbuud"}


@emits(cpu.MatmulOp)
def _matmul(emitter: Emitter, op: cpu.MatmulOp) -> None:
    f = emitter.f
    left, right, out = (emitter.memory(operand) for operand in (op.a, op.b, op.out))
    a, b, c = left.type, right.type, out.type
    assert isinstance(a, BufferType)
    assert isinstance(b, PanelsType)
    assert isinstance(c, BufferType)
    rows, cols = (size // TILE_ROWS for size in op.size.iter_values())
    unit = _Unit(emitter, _PRODUCTS[a.dtype.kind])
    row, col = emitter.number(op.row), emitter.number(op.col)
    from_a = f.at(left.pointer, folded(f, "mul", row, number(a.stride, "i64")))
    panel = f.binary("udiv", col, number(TILE_ROWS, "i64")) if literal(col) != 0 else col
    from_b = f.at(right.pointer, folded(f, "mul", emitter.number(op.number), number(b.size, "i64")))
    from_b = f.at(from_b, folded(f, "mul", panel, number(b.panel_size, "i64")))
    to = f.at(out.pointer, folded(f, "mul", row, number(c.stride, "i64")))
    to = f.at(to, folded(f, "mul", col, number(4, "i64")))

    def place(i: int, j: int) -> Value:
        return f.at(to, i * TILE_ROWS * c.stride + j * LINE)

    blocks = [(i, j) for i in range(rows) for j in range(cols)]
    for i, j in blocks:
        if op.added is not None:
            unit.load(_SUMS + 2 * i + j, place(i, j), c.stride)
        else:
            unit.clear(_SUMS + 2 * i + j)

    def step(index: Value, _: list[Value]) -> Sequence[Value]:
        """One step takes 64 bytes of every row of `a`, and 16 lines of each panel of `b`."""
        rows_at = f.at(from_a, f.times(index, LINE))
        cols_at = f.at(from_b, f.times(index, TILE_ROWS * LINE))
        for i in range(rows):
            unit.load(_ROWS + i, f.at(rows_at, i * TILE_ROWS * a.stride), a.stride)
            for j in range(cols):
                if i == 0:
                    unit.load(_COLS + j, f.at(cols_at, j * b.panel_size), LINE)
                unit.multiply(_SUMS + 2 * i + j, _ROWS + i, _COLS + j)
        return []

    per_step = LINE // a.dtype.storage.itemsize
    steps = b.padded_rows // per_step
    if op.depth is not None:
        depth = f.add(emitter.number(op.depth), per_step - 1)
        f.loop(0, f.binary("sdiv", depth, number(per_step, "i64")), 1, [], step)
    elif steps == 1:
        step(number(0, "i64"), [])
    elif steps:
        f.loop(0, steps, 1, [], step, runs=True)
    for i, j in blocks:
        unit.store(_SUMS + 2 * i + j, place(i, j), c.stride)


@emits(cpu.ClearOp)
def _clear(emitter: Emitter, op: cpu.ClearOp) -> None:
    f, memory, type_ = emitter.f, emitter.memory(op.buffer), buffer_type(op.buffer)
    line = number(0, f"<{LINE} x i8>")

    def one(index: Value, _: list[Value]) -> Sequence[Value]:
        f.store(line, f.at(memory.pointer, index), align=LINE)
        return []

    f.loop(0, type_.size, LINE, [], one)
