"""cpu level → LLVM text: right operands of dots copied into panels.

A matrix whose rows lie side by side is copied a vector at a time, and one whose columns do in squares that are
transposed; under masks at the edges of its view where the processor has such. Other strides, and edges elsewhere, go
element by element. For the matrix unit, neighbours in a column are made neighbours in memory, 4 bytes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tessera.targets.cpu.emit.emitter import Emitter, emits
from tessera.targets.cpu.emit.memory import INSIDE
from tessera.targets.cpu.emit.tiles import square
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import PanelsType, rounded_up
from tessera.targets.llvm import casts, elements
from tessera.targets.llvm.elements import reaches
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import literal
from tessera.targets.llvm.text import Value, number, numbers, vector


@emits(cpu.PackOp)
def _pack(emitter: Emitter, op: cpu.PackOp) -> None:
    f = emitter.f
    view, memory = emitter.view(op.view), emitter.memory(op.panels)
    type_ = memory.type
    assert isinstance(type_, PanelsType)
    first = f.at(memory.pointer, f.times(emitter.number(op.number), type_.size))
    offsets = [emitter.number(offset) for offset in op.offsets]
    transposed = op.transposed is not None

    def straight() -> None:
        _fill(_Packer(emitter, view, offsets, type_, first, transposed), inside=INSIDE in op.attributes)

    def from_columns() -> None:
        """A view whose columns lie side by side is one of rows, transposed."""
        other = ViewDescriptor(view.pointer, view.sizes[::-1], view.strides[::-1], view.dtype)
        _fill(_Packer(emitter, other, offsets[::-1], type_, first, not transposed), inside=False)

    rows, cols = view.strides
    # Short code has one way only: a view whose columns lie side by side goes element by element.
    if emitter.machine.small or INSIDE in op.attributes or literal(cols) == 1 or literal(rows) not in (None, 1):
        straight()
    elif literal(rows) == 1 and literal(cols) is not None:
        from_columns()
    else:
        f.branch(f.compare("eq", cols, 1), straight, from_columns)


def _fill(packer: _Packer, *, inside: bool) -> None:
    """Whole vectors where the view's rows lie side by side, single elements elsewhere."""
    f, view, offsets, type_ = packer.f, packer.view, packer.offsets, packer.type
    transposed = packer.cols_axis == 0
    if type_.depth.data > 1:
        fast = packer.deep_squares if transposed else packer.deep_rows
    else:
        fast = packer.squares if transposed else packer.rows
    down, across = reversed(type_.shape) if transposed else type_.shape
    padded = rounded_up(type_.shape[1], type_.width.data) if transposed else type_.padded_rows
    zero, end = number(0, "i64"), number(padded, "i64")
    if inside:
        left = fast(zero, number(down, "i64"))
        if literal(left) == padded:
            return
        dense = number(1, "i1")
    else:
        # Along its rows the view must hold all of the matrix; of its rows, some may be missing at the end.
        dense = f.compare("eq", view.strides[1], 1)
        for offset in offsets:
            dense = f.binary("and", dense, f.compare("sge", offset, zero))
        whole = f.binary("and", dense, f.compare("sle", f.add(offsets[1], across), view.sizes[1]))
        left = fast(zero, f.select(whole, packer.live(0, down), zero))
    if reaches(packer.emitter.machine.level, "avx512"):
        packer.limits = packer.live(0, down), packer.live(1, across)
        left = fast(left, f.select(dense, end, left))
    if transposed:
        packer.elements(zero, left)
    else:
        packer.elements(left, zero)


class _Packer:
    """Fills the panels of one matrix."""

    def __init__(
        self,
        emitter: Emitter,
        view: ViewDescriptor,
        offsets: Sequence[Value],
        type_: PanelsType,
        first: Value,
        transposed: bool,
    ) -> None:
        self.emitter, self.view, self.offsets, self.type, self.first = emitter, view, offsets, type_, first
        self.rows_axis, self.cols_axis = (1, 0) if transposed else (0, 1)
        self.f, self.lanes = emitter.f, emitter.machine.lanes
        self.item = view.dtype.storage.itemsize
        self.row_count, self.col_count = type_.shape
        self.width, self.depth = type_.width.data, type_.depth.data
        self.limits: tuple[Value, Value] | None = None
        """How many of the view's rows and columns are there, if vectors are to be read under masks."""

    def live(self, axis: int, most: int) -> Value:
        """How many of so many elements the view has along an axis, from the matrix's first on."""
        f = self.f
        there = f.intrinsic("smin", f.binary("sub", self.view.sizes[axis], self.offsets[axis]), most)
        return f.intrinsic("smax", there, 0)

    def _source(self, row: Value, col: Value) -> Value:
        """The address of an element of the matrix."""
        f, view = self.f, self.view
        down = f.binary("mul", f.binary("add", self.offsets[self.rows_axis], row), view.strides[self.rows_axis])
        across = f.binary("mul", f.binary("add", self.offsets[self.cols_axis], col), view.strides[self.cols_axis])
        return f.at(view.pointer, f.times(f.binary("add", down, across), self.item))

    def _panel(self, panel: Value, line: Value) -> Value:
        """The address of a line of a panel: of `depth` rows."""
        f = self.f
        return f.at(f.at(self.first, f.times(panel, self.type.panel_size)), f.times(line, self.type.row_size))

    def _converted(self, read: Value) -> Value:
        f, level = self.emitter.f, self.emitter.machine.level
        value = elements.to_register(f, read, self.view.dtype)
        value = casts.cast(f, value, self.view.dtype, self.type.dtype, level)
        return elements.to_memory(f, value, self.type.dtype)

    def _read(self, row: Value, col: Value, ahead: int, live: int, lanes: int) -> Value:
        """Neighbouring elements as they are, `ahead` elements along the view's other axis; zeros beyond the matrix."""
        f = self.f
        memory = elements.memory_type(self.view.dtype, lanes)
        if live <= 0:
            return number(0, memory)
        start, stride = self._source(row, col), self.view.strides[0]
        pointer = f.at(start, f.times(f.times(stride, self.item), ahead)) if ahead else start
        if self.limits is not None:
            down, across = (col, row) if self.cols_axis == 0 else (row, col)
            there, width = self.limits
            width = f.select(f.compare("slt", f.add(down, ahead), there), width, 0)
            count = f.convert("trunc", f.binary("sub", width, across), "i32")
            mask = f.compare("slt", numbers(range(lanes), "i32"), f.splat(count, lanes))
            return f.masked_load(memory, pointer, mask, number(0, memory), align=self.item)
        if live >= lanes:
            return f.load(memory, pointer, align=self.item)
        mask = numbers([lane < live for lane in range(lanes)], "i1")
        return f.masked_load(memory, pointer, mask, number(0, memory), align=self.item)

    def _over(self, stop: int, step: int, body: Callable[[Value, int], None]) -> None:
        """Whole steps in a loop, then what is left; the body gets how many are live."""
        f = self.f
        whole = stop // step * step

        def iteration(index: Value, _: list[Value]) -> None:
            body(index, step)

        if whole:
            f.loop(0, whole, step, [], iteration, runs=True)
        if whole < stop:
            body(number(whole, "i64"), stop - whole)

    def _steps(self, start: Value, stop: Value, step: int, body: Callable[[Value], None]) -> Value:
        """Whole steps up to a bound; gives where they end."""
        f = self.f
        known = literal(stop)
        if known is not None:
            end = number(known // step * step, "i64")
        else:
            end = f.binary("and", stop, -step) if step > 1 else stop

        def iteration(index: Value, _: list[Value]) -> None:
            body(index)

        f.loop(start, end, step, [], iteration)
        return end

    def rows(self, start: Value, stop: Value) -> Value:
        """Row after row, vector by vector."""
        f, lanes = self.f, self.lanes
        panels = -(-self.col_count // self.width)

        def short_code(row: Value) -> None:
            def store_vector(col: Value, live_cols: int) -> None:
                line = self._panel(f.binary("udiv", col, lanes), row)
                f.store(self._converted(self._read(row, col, 0, live_cols, lanes)), line, align=self.item)

            self._over(self.col_count, lanes, store_vector)

        def one(row: Value) -> None:
            for col in range(0, panels * self.width, lanes):
                read = self._read(row, number(col, "i64"), 0, self.col_count - col, lanes)
                line = self._panel(number(col // self.width, "i64"), row)
                pointer = f.at(line, col % self.width * self.type.dtype.storage.itemsize)
                f.store(self._converted(read), pointer, align=self.item)

        short = self.emitter.machine.small and self.width == lanes
        return self._steps(start, stop, 1, short_code if short else one)

    def squares(self, start: Value, stop: Value) -> Value:
        """The view's rows are the panel's columns: squares of lanes are read, transposed and written."""
        f, lanes = self.f, self.lanes

        def strip(col: Value) -> None:
            panel = f.binary("udiv", col, self.width)
            within = f.times(f.subtract(col, f.times(panel, self.width)), self.type.dtype.storage.itemsize)

            def store_square(row: Value, live_rows: int) -> None:
                vectors = [self._converted(self._read(row, col, lane, live_rows, lanes)) for lane in range(lanes)]
                base = f.at(self._panel(panel, row), within)
                for lane, column in enumerate(square(self.emitter, vectors)[:live_rows]):
                    f.store(column, f.at(base, lane * self.type.row_size), align=self.item)

            self._over(self.row_count, lanes, store_square)

        return self._steps(start, stop, lanes, strip)

    def deep_rows(self, start: Value, stop: Value) -> Value:
        """Rows that go together are interleaved, element by element."""
        f, width = self.f, self.width

        def line(row: Value) -> None:
            def panel(col: Value, live_cols: int) -> None:
                rows = [self._read(row, col, ahead, live_cols, width) for ahead in range(self.depth)]
                number_ = f.binary("udiv", col, width)
                to = self._panel(number_, f.binary("udiv", row, self.depth))
                f.store(_interleaved(self.emitter, rows), to, align=self.item)

            self._over(self.col_count, width, panel)

        return self._steps(start, stop, self.depth, line)

    def deep_squares(self, start: Value, stop: Value) -> Value:
        """Neighbours in the view's rows stay together: squares of 4-byte words are transposed."""
        f, width, depth = self.f, self.width, self.depth
        word = vector(width, "i32")

        def panel(col: Value) -> None:
            number_ = f.binary("udiv", col, width)

            def store_square(row: Value, live_rows: int) -> None:
                words: list[Value] = []
                for lane in range(width):
                    read = self._read(row, col, lane, live_rows, width * depth)
                    words.append(f.op(word, f"bitcast {read} to {word}"))
                to = self._panel(number_, f.binary("udiv", row, depth))
                for lane, column in enumerate(square(self.emitter, words)):
                    f.store(column, f.at(to, lane * self.type.row_size), align=self.item)

            self._over(self.row_count, width * depth, store_square)

        return self._steps(start, stop, width, panel)

    def elements(self, first_row: Value, first_col: Value) -> None:
        """One element at a time, zeros outside the view: the edges, and strides that are not 1."""
        f, view, item = self.f, self.view, self.type.dtype.storage.itemsize
        padded = -(-self.col_count // self.width) * self.width
        memory, target = elements.memory_type(view.dtype, 0), elements.memory_type(self.type.dtype, 0)

        def one(row: Value, col: Value) -> None:
            within = f.compare("slt", col, self.col_count)
            within = f.binary("and", within, f.compare("slt", row, self.row_count))
            for axis, step in ((self.rows_axis, row), (self.cols_axis, col)):
                position = f.binary("add", self.offsets[axis], step)
                within = f.binary("and", within, f.compare("ult", position, view.sizes[axis]))

            def read() -> Sequence[Value]:
                return [self._converted(f.load(memory, self._source(row, col), align=self.item))]

            (value,) = f.branch(within, read, lambda: [number(0, target)])
            panel = f.binary("udiv", col, self.width)
            line = f.binary("udiv", row, self.depth)
            position = f.times(f.subtract(col, f.times(panel, self.width)), self.depth)
            position = f.binary("add", position, f.subtract(row, f.times(line, self.depth)))
            f.store(value, f.at(self._panel(panel, line), f.times(position, item)), align=item)

        def down(row: Value, _: list[Value]) -> None:
            def across(col: Value, _: list[Value]) -> None:
                one(row, col)

            f.loop(first_col, padded, 1, [], across)

        f.loop(first_row, self.type.padded_rows, 1, [], down)


def _interleaved(emitter: Emitter, rows: Sequence[Value]) -> Value:
    """The first elements of all rows, then the second ones, and so on."""
    if len(rows) == 1:
        return rows[0]
    if len(rows) == 4:
        # Of pairs of pairs: first and third, second and fourth.
        even, odd = _interleaved(emitter, rows[::2]), _interleaved(emitter, rows[1::2])
        return _interleaved(emitter, [even, odd])
    count = int(rows[0].type[1:].split(" ")[0])
    indices = [lane + count * other for lane in range(count) for other in (0, 1)]
    return emitter.f.shuffle(rows[0], rows[1], indices)
