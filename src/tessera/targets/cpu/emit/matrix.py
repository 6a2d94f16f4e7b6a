"""cpu level → LLVM text: matmuls by the matrix unit (AMX), which has eight registers of 16 lines of 64 bytes.

Four of them hold a block of 32 by 32 accumulators, two the rows of `a`, two the columns of `b`. They are named by
number: LLVM's allocator has no part in it. A thread sets their shape when it enters the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tessera.dtypes.types import Kind
from tessera.targets.cpu.emit.emitter import Emitter, emits
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, TILE_ROWS, BufferType, PanelsType, buffer_type
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Function, Value, number, of_type

_ACCUMULATORS, _ROWS, _COLS = 0, 4, 6
"""The first register of each group."""


class _Unit:
    """Instructions on registers by number."""

    def __init__(self, emitter: Emitter, instruction: str) -> None:
        self._dot_instruction = instruction
        self._f: Function = emitter.f

    def load(self, register: int, pointer: Value, stride: Value | int) -> None:
        self._do("tileloadd64", register, pointer, of_type("i64", stride))

    def store(self, register: int, pointer: Value, stride: int) -> None:
        self._do("tilestored64", register, pointer, number(stride, "i64"))

    def clear(self, register: int) -> None:
        self._do("tilezero", register)

    def multiply(self, total: int, a: int, b: int) -> None:
        self._do(self._dot_instruction, total, a, b)

    def _do(self, name: str, *arguments: Value | int) -> None:
        """An instruction; numbers are those of registers."""
        self._f.call(f"llvm.x86.{name}", "void", [of_type("i8", argument) for argument in arguments])


_PRODUCTS = {Kind.FLOAT: "tdpbf16ps", Kind.INT: "tdpbssd", Kind.UINT: "tdpbuud"}


class _Strip:
    """Rows of a matmul: 16 or 32 of them, and a few columns or many."""

    def __init__(self, emitter: Emitter, op: cpu.MatmulOp) -> None:
        f = self.f = emitter.f
        left, right, out = (emitter.memory(operand) for operand in (op.a, op.b, op.out))
        a, b, c = left.type, right.type, out.type
        assert isinstance(a, BufferType)
        assert isinstance(b, PanelsType)
        assert isinstance(c, BufferType)
        self.unit = _Unit(emitter, _PRODUCTS[a.dtype.kind])
        self.a, self.b, self.c, self.added = a, b, c, op.added is not None
        self.rows, self.panels = (size // TILE_ROWS for size in op.size.iter_values())
        row, col = emitter.number(op.row), emitter.number(op.col)
        panel = f.binary("udiv", col, TILE_ROWS) if literal(col) != 0 else col
        self.from_a = f.at(left.pointer, folded(f, "mul", row, a.stride))
        from_b = f.at(right.pointer, folded(f, "mul", emitter.number(op.number), b.size))
        self.from_b = f.at(from_b, folded(f, "mul", panel, b.panel_size))
        to = f.at(out.pointer, folded(f, "mul", row, c.stride))
        self.to = f.at(to, folded(f, "mul", col, 4))
        self.per_step = LINE // a.dtype.storage.itemsize
        self.steps = b.padded_rows // self.per_step
        self.depth = [emitter.number(bound) for bound in op.depth]

    def load_rows(self, register: int, row: int, at: Value) -> None:
        """64 bytes of 16 rows of `a`."""
        self.unit.load(register, self.f.at(at, row * TILE_ROWS * self.a.stride), self.a.stride)

    def load_cols(self, register: int, col: int, at: Value) -> None:
        """16 lines of a panel of `b`."""
        self.unit.load(register, self.f.at(at, col * self.b.panel_size), LINE)

    def accumulator(self, to: Value, row: int, col: int) -> Value:
        return self.f.at(to, row * TILE_ROWS * self.c.stride + col * LINE)

    def start(self, register: int, pointer: Value) -> None:
        if self.added:
            self.unit.load(register, pointer, self.c.stride)
        else:
            self.unit.clear(register)

    def over_panels(self, count: int, body: Callable[[Value, Value, int], None]) -> None:
        """So many panels of `b` at a time, and the columns of the result that they make."""
        f, whole = self.f, self.panels // count * count

        def iteration(index: Value, _: list[Value]) -> None:
            body(f.at(self.from_b, f.times(index, self.b.panel_size)), f.at(self.to, f.times(index, LINE)), count)

        if whole == count:
            body(self.from_b, self.to, count)
        elif whole:
            f.loop(0, whole, count, [], iteration, runs=True)
        if rest := self.panels - whole:
            body(f.at(self.from_b, whole * self.b.panel_size), f.at(self.to, whole * LINE), rest)


@emits(cpu.MatmulOp)
def _matmul(emitter: Emitter, op: cpu.MatmulOp) -> None:
    strip = _Strip(emitter, op)
    if not strip.depth and 0 < strip.steps <= 2:
        _with_resting_rows(strip)
    else:
        strip.over_panels(2, partial(_block, strip))


def _with_resting_rows(strip: _Strip) -> None:
    """Rows that four registers hold stay there while all columns go by: two of accumulators, two of columns."""
    unit, rows, steps = strip.unit, range(strip.rows), range(strip.steps)
    for row in rows:
        for step in steps:
            strip.load_rows(_ROWS + 2 * row + step, row, strip.f.at(strip.from_a, step * LINE))

    def panel(from_b: Value, to: Value, _: int) -> None:
        for step in steps:
            strip.load_cols(2 + step, 0, strip.f.at(from_b, step * TILE_ROWS * LINE))
        for row in rows:
            strip.start(row, strip.accumulator(to, row, 0))
        for step in steps:
            for row in rows:
                unit.multiply(row, _ROWS + 2 * row + step, 2 + step)
        for row in rows:
            unit.store(row, strip.accumulator(to, row, 0), strip.c.stride)

    strip.over_panels(1, panel)


def _block(strip: _Strip, from_b: Value, to: Value, cols: int) -> None:
    """Up to 32 rows by 32 columns: four registers for accumulators, two for rows, two for columns."""
    f, unit, rows = strip.f, strip.unit, strip.rows
    blocks = [(i, j) for i in range(rows) for j in range(cols)]
    for i, j in blocks:
        strip.start(_ACCUMULATORS + 2 * i + j, strip.accumulator(to, i, j))

    def step(index: Value, _: list[Value]) -> None:
        """One step takes 64 bytes of every row of `a`, and 16 lines of each panel of `b`."""
        rows_at = f.at(strip.from_a, f.times(index, LINE))
        cols_at = f.at(from_b, f.times(index, TILE_ROWS * LINE))
        for i in range(rows):
            strip.load_rows(_ROWS + i, i, rows_at)
            for j in range(cols):
                if i == 0:
                    strip.load_cols(_COLS + j, j, cols_at)
                unit.multiply(_ACCUMULATORS + 2 * i + j, _ROWS + i, _COLS + j)

    if strip.depth:
        # Both are whole steps.
        first, last = (f.binary("sdiv", bound, strip.per_step) for bound in strip.depth)
        f.loop(first, last, 1, [], step)
    elif strip.steps == 1:
        step(number(0, "i64"), [])
    elif strip.steps:
        f.loop(0, strip.steps, 1, [], step, runs=True)
    for i, j in blocks:
        unit.store(_ACCUMULATORS + 2 * i + j, strip.accumulator(to, i, j), strip.c.stride)


@emits(cpu.ClearOp)
def _clear(emitter: Emitter, op: cpu.ClearOp) -> None:
    f, memory, type_ = emitter.f, emitter.memory(op.buffer), buffer_type(op.buffer)
    line = number(0, f"<{LINE} x i8>")

    def one(index: Value, _: list[Value]) -> None:
        f.store(line, f.at(memory.pointer, index), align=LINE)

    f.loop(0, type_.size, LINE, [], one)
