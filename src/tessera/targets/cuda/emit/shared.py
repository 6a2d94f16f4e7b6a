"""nv level → LLVM text: tiles in shared memory, and their ways to and from registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessera.cached_property import cached_property
from tessera.dtypes.types import DType
from tessera.targets.cuda.emit.emitter import Emitter, Shared, emits
from tessera.targets.cuda.emit.shared_addresses import Addresses
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, joined, part_of, per_word
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Digit, Layout, replicas
from tessera.targets.cuda.ir.types import CHUNK, layout_of, shared_type
from tessera.targets.cuda.ptx.inline import asm, predicated
from tessera.targets.llvm import elements
from tessera.targets.llvm.literals import folded
from tessera.targets.llvm.text import Value, number

LANE_ROWS = 8
"""Rows of a matrix that one instruction moves; each row is one chunk."""


@emits(nv.AllocOp)
def _alloc(emitter: Emitter, op: nv.AllocOp) -> None:
    emitter.values[op.result] = Shared(emitter.shared(emitter.shared_offset(op)), shared_type(op.result))


@emits(nv.SlotOp)
def _slot(emitter: Emitter, op: nv.SlotOp) -> None:
    f, ring, type_ = emitter.f, emitter.memory(op.ring), shared_type(op.result)
    slot = emitter.number(op.number)
    slot = f.convert("trunc", slot, "i32") if slot.name.startswith("%") else number(int(slot.name), "i32")
    further = folded(f, "mul", slot, type_.size)
    emitter.values[op.result] = Shared(folded(f, "add", ring.address, further), type_)


# Matrices: 8 rows of 16 bytes, each lane with a word of them


@dataclass(frozen=True)
class Load:
    """One instruction: the words that it fills, and where the first of its matrices begins."""

    words: tuple[int, ...]
    row: int
    column: int


@dataclass(frozen=True)
class Matrices:
    """How a layout is read or written as matrices.

    Axis 0 are rows of shared memory, axis 1 its columns. A matrix gives each lane of a warp one word: lane 4·i + j has
    word j of row i. If it is transposed on the way (16-bit elements only), lane 4·i + j has elements 2·j and 2·j + 1 of
    column i.
    """

    transposed: bool
    warps: tuple[Digit, ...]
    """Digits of the thread's number above the lane."""
    words: tuple[Digit, ...]
    """Digits of the number of a word."""

    @cached_property
    def pairs(self) -> tuple[int, ...]:
        """The indices of digits that halve into two matrices of one instruction: the first, then its neighbour."""
        found: list[int] = []
        for index, digit in enumerate(self.words):
            if digit.size % 2 == 0 and len(found) < 2:
                found.append(index)
        if len(found) == 1 and self.words[found[0]].size % 4 == 0:
            found.append(found[0])
        return tuple(found)

    @cached_property
    def steps(self) -> tuple[Digit, ...]:
        """How far the matrices of one instruction lie apart."""
        first, *rest = (Digit(2, *self.words[index][1:]) for index in self.pairs) if self.pairs else (None,)
        if first is None:
            return ()
        if len(rest) == 1 and self.pairs[0] == self.pairs[1]:
            return first, rest[0]._replace(step=2 * rest[0].step)
        return first, *rest

    @property
    def digits(self) -> tuple[Digit, ...]:
        """Which row each lane names, and of which matrix."""
        idle = 2 - len(self.steps)
        return (Digit(LANE_ROWS, 0, 1), *self.steps, *([replicas(1 << idle)] if idle else []), *self.warps)

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """All instructions that a tile takes."""
        layout = Layout((), self.words)
        rows, columns = layout.offsets(0), layout.offsets(1)
        ahead = [0]
        for step in self.steps:
            far = next(
                word
                for word in range(layout.count)
                if (rows[word], columns[word]) == (step.step * (step.axis == 0), step.step * (step.axis == 1))
            )
            ahead += [word + far for word in ahead]
        found: list[Load] = []
        taken: set[int] = set()
        for word in range(layout.count):
            if word not in taken:
                words = tuple(word + more for more in ahead)
                taken.update(words)
                found.append(Load(words, rows[word], columns[word]))
        assert len(taken) == layout.count
        return tuple(found)


def matrices_of(layout: Layout, itemsize: int, column: int = 0) -> Matrices | None:
    """How a layout, with rows and columns of shared memory for axes, is made of matrices; None if it is not."""
    if itemsize > 4 or column * itemsize % CHUNK:
        return None
    side = 4 // itemsize
    for transposed in (False, True):
        along, down = (0, 1) if transposed else (1, 0)
        if transposed and itemsize != 2:
            continue
        threads = _stripped(layout.threads, (Digit(4, along, side), Digit(8, down, 1)))
        words = _stripped(layout.registers, (Digit(side, along, 1),) if side > 1 else ())
        if threads is None or words is None:
            continue
        if all(digit.axis != 1 or digit.step * itemsize % CHUNK == 0 for digit in (*threads, *words)):
            return Matrices(transposed, threads, words)
    return None


def _stripped(digits: Sequence[Digit], first: Sequence[Digit]) -> tuple[Digit, ...] | None:
    """The rest of a number's digits behind some; None if it does not begin with them."""
    rest = list(digits)
    for digit in first:
        if not rest or rest[0][1:] != digit[1:] or rest[0].size % digit.size:
            return None
        size, axis, step = rest.pop(0)
        if size > digit.size:
            rest.insert(0, Digit(size // digit.size, axis, step * digit.size))
    return tuple(rest)


class MatrixReader:
    """Loads the matrices of one tile when they are first asked for."""

    def __init__(self, emitter: Emitter, shared: Shared, matrices: Matrices, row: int, column: int) -> None:
        self.emitter, self.matrices, self.row, self.column = emitter, matrices, row, column
        self._addresses = Addresses(emitter, shared, matrices.digits, CHUNK)
        self._load_of = {word: load for load in matrices.loads for word in load.words}
        self._words: dict[int, Value] = {}

    def word(self, index: int) -> Value:
        """A lane's word of one matrix."""
        if index not in self._words:
            load = self._load_of[index]
            self._words.update(zip(load.words, self._read(load), strict=True))
        return self._words[index]

    def _read(self, load: Load) -> list[Value]:
        address, further = self._addresses.at(self.row + load.row, self.column + load.column)
        ways = len(load.words)
        results = ", ".join(f"${index}" for index in range(ways))
        transposed = ".trans" if self.matrices.transposed else ""
        return asm(
            self.emitter.f,
            f"ldmatrix.sync.aligned.m8n8.x{ways}{transposed}.shared.b16 {{{results}}}, [${ways}+{further}];",
            returns=["i32"] * ways,
            arguments=[address],
            effects=True,
            convergent=True,
        )


# Runs: neighbours along a row, which one access moves


@dataclass(frozen=True)
class Runs:
    """How a layout is read or written in pieces of `width` elements."""

    width: int
    threads: tuple[Digit, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    """Where each piece begins, relative to the thread's own."""


def runs_of(layout: Layout, itemsize: int, column: int = 0) -> Runs:
    """The widest pieces that the layout's neighbours, the threads' positions and chunks allow; axes as for matrices."""
    width = 1
    steps = [digit.step for digit in (*layout.threads, *layout.registers[1:]) if digit.axis == 1]
    run = layout.run(1)
    while (
        2 * width * itemsize <= CHUNK
        and run % (2 * width) == 0
        and all(step % (2 * width) == 0 for step in (*steps, column))
    ):
        width *= 2
    return Runs(width, layout.threads, tuple(layout.offsets(0)[::width]), tuple(layout.offsets(1)[::width]))


def _pieces(size: int) -> tuple[int, str]:
    """The registers that an access of so many bytes fills, and their type."""
    if size >= 4:
        return size // 4, "i32"
    return 1, f"i{8 * size}"


def _spelled(count: int, bits: int, first: int) -> tuple[str, str]:
    """An access's type, and its registers."""
    names = ", ".join(f"${first + index}" for index in range(count))
    return (f".v{count}.b{bits}", f"{{{names}}}") if count > 1 else (f".b{bits}", names)


def _read_run(emitter: Emitter, address: Value, further: int, size: int) -> list[Value]:
    """So many bytes, as words, or as one smaller number."""
    count, type_ = _pieces(size)
    bits = int(type_[1:])
    kind, results = _spelled(count, bits, 0)
    held = "i16" if bits == 8 else type_
    text = f"ld.shared{kind} {results}, [${count}+{further}];"
    found = asm(emitter.f, text, returns=[held] * count, arguments=[address], effects=True)
    return [emitter.f.convert("trunc", found[0], type_)] if bits == 8 else found


def _write_run(
    emitter: Emitter, address: Value, further: int, values: Sequence[Value], condition: Value | None
) -> None:
    f = emitter.f
    bits = int(values[0].type[1:])
    held = [f.convert("zext", value, "i16") if bits == 8 else value for value in values]
    kind, operands = _spelled(len(values), bits, 1)
    text = f"st.shared{kind} [$0+{further}], {operands};"
    arguments = [address, *held]
    text, arguments = predicated(f, text, arguments, condition)
    asm(f, text, arguments=arguments, effects=True)


def _elements_of(emitter: Emitter, words: Sequence[Value], dtype: DType, count: int) -> list[Value]:
    """The elements that a run of bytes holds."""
    f, memory = emitter.f, elements.memory_type(dtype, 0)
    bits = 8 * dtype.storage.itemsize
    found: list[Value] = []
    for index in range(count):
        if bits == 64:
            low, high = (f.convert("zext", words[2 * index + part], "i64") for part in (0, 1))
            raw = f.binary("or", low, f.binary("shl", high, 32))
        else:
            per = 32 // bits
            raw = part_of(f, words[index // per], index % per, bits)
        found.append(elements.to_register(f, f.convert("bitcast", raw, memory), dtype))
    return found


def _bytes_of(emitter: Emitter, values: Sequence[Value], dtype: DType) -> list[Value]:
    """Elements as words, or as one smaller number: the other way round."""
    f, bits = emitter.f, 8 * dtype.storage.itemsize
    raw = [f.convert("bitcast", elements.to_memory(f, value, dtype), f"i{bits}") for value in values]
    if bits == 64:
        halves = [(f.convert("trunc", value, "i32"), f.binary("lshr", value, 32)) for value in raw]
        return [word for low, high in halves for word in (low, f.convert("trunc", high, "i32"))]
    if bits == 32 or len(raw) * bits < 32:
        return raw if len(raw) == 1 or bits == 32 else [joined(f, raw, f"i{bits * len(raw)}")]
    ways = 32 // bits
    return [joined(f, raw[first : first + ways], "i32") for first in range(0, len(raw), ways)]


# The ops


def seen(op: nv.ReadOp) -> Layout:
    """The result's layout, with rows and columns of shared memory for axes."""
    layout = layout_of(op.result)
    return layout if op.transposed is None else layout.permuted((1, 0))


def reader(emitter: Emitter, op: nv.ReadOp) -> MatrixReader | None:
    """The reader of a tile by matrices; None where it is not made of them."""
    shared = emitter.memory(op.shared)
    matrices = matrices_of(seen(op), shared.type.itemsize, op.column.value.data)
    if matrices is None:
        return None
    return MatrixReader(emitter, shared, matrices, op.row.value.data, op.column.value.data)


def read_now(emitter: Emitter, op: nv.ReadOp) -> None:
    """Binds all registers of a tile."""
    shared = emitter.memory(op.shared)
    dtype, layout = shared.type.dtype, seen(op)
    found = reader(emitter, op)
    if found is not None:
        words = [found.word(index) for index in range(layout.count * dtype.storage.itemsize // 4)]
        if per_word(dtype):
            emitter.bind(op.result, words=words)
        else:
            emitter.bind(op.result, [_elements_of(emitter, [word], dtype, 1)[0] for word in words])
        return
    row, column = op.row.value.data, op.column.value.data
    runs = runs_of(layout, shared.type.itemsize, column)
    size = runs.width * shared.type.itemsize
    addresses = Addresses(emitter, shared, runs.threads, size)
    read = [
        _read_run(emitter, *addresses.at(row + further_row, column + further_column), size)
        for further_row, further_column in zip(runs.rows, runs.columns, strict=True)
    ]
    if size >= 4 and per_word(dtype):
        emitter.bind(op.result, words=[word for words in read for word in words])
    else:
        emitter.bind(op.result, [value for words in read for value in _elements_of(emitter, words, dtype, runs.width)])


@emits(nv.WriteOp)
def _write(emitter: Emitter, op: nv.WriteOp) -> None:
    shared, value = emitter.memory(op.shared), emitter.tile(op.value)
    item = shared.type.itemsize
    runs = runs_of(value.layout, item)
    addresses = Addresses(emitter, shared, runs.threads, runs.width * item)
    inside = emitter.inside(value.layout, value.shape)
    mine = emitter.first_replica(value.layout)
    # Where the tile ends between two runs, all of a run is in it or none.
    width = runs.width if value.shape[1] % runs.width == 0 else 1
    for index, (row, column) in enumerate(zip(runs.rows, runs.columns, strict=True)):
        address, further = addresses.at(op.first_row + row, column)
        for skip in range(0, runs.width, width):
            first = index * runs.width + skip
            condition = emitter.f.all_of((inside[first], mine))
            _write_run(emitter, address, further + skip * item, _raw(emitter, value, first, width), condition)


def _raw(emitter: Emitter, value: ThreadTile, first: int, count: int) -> list[Value]:
    """Some registers as words, or as one smaller number."""
    ways = per_word(value.dtype)
    if ways and count % ways == 0 and first % ways == 0:
        return [value.word((first + more) // ways) for more in range(0, count, ways)]
    return _bytes_of(emitter, [value.element(first + more) for more in range(count)], value.dtype)
