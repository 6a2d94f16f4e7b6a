"""cpu level → LLVM text: what is computed in registers. Each rule says how one vector of the result is made."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.dtypes.types import f32, i64
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.emit.emitter import Emitter, emits
from tessera.targets.cpu.emit.registers import RegisterTile, is_column
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.llvm import casts, elements, elementwise, exponentials
from tessera.targets.llvm.emitter_attributes import APPROXIMATE, ROUNDED
from tessera.targets.llvm.floats import Floats, Sixteen, fits_sixteens, in_sixteens
from tessera.targets.llvm.literals import literal
from tessera.targets.llvm.text import Value, number, numbers

FOR_DOTS = "for_dots"
"""Marks a cast in which zeros may stand for subnormal numbers."""


@emits(tile.FullOp)
def _full(emitter: Emitter, op: tile.FullOp) -> None:
    scalar = emitter.number(op.value)
    splat = emitter.f.splat(scalar, emitter.machine.lanes)
    emitter.make(op.result, lambda row, vector_number: splat)


@emits(tile.IotaOp)
def _iota(emitter: Emitter, op: tile.IotaOp) -> None:
    """Positions run along the lanes, or are the same in all of them."""
    f, lanes, dtype = emitter.f, emitter.machine.lanes, tile_dtype(op.result)
    axis, narrow = op.axis.value.data, dtype.bits in (8, 16, 32)
    # Whole numbers wrap the same way whether they are cut before or after they are counted.
    base = emitter.number(op.base)
    known = literal(base)
    if narrow and known is None:
        base = f.convert("trunc", base, f"i{dtype.bits}")

    def make(row: int, vector_number: int) -> Value:
        shape = made.shape
        along = len(shape) == 1 or (axis == 0 if is_column(shape) else axis == 1)
        if known is not None and narrow:
            first = known + (vector_number * lanes if along else 0 if is_column(shape) else row)
            return numbers([first + (lane if along else 0) for lane in range(lanes)], f"i{dtype.bits}")
        if along:
            steps = numbers(range(vector_number * lanes, (vector_number + 1) * lanes), base.type)
            counted = f.binary("add", f.splat(base, lanes), steps)
        else:
            counted = f.splat(f.add(base, 0 if is_column(shape) else row), lanes)
        return counted if narrow else casts.cast(f, counted, i64, dtype, emitter.machine.level)

    made = emitter.make(op.result, make)


@emits(tile.EwOp)
def _elementwise(emitter: Emitter, op: tile.EwOp) -> None:
    operands = [emitter.tile(operand) for operand in op.operands_]
    dtypes = [operand.dtype for operand in operands]
    machine = emitter.machine
    contract = machine.contract and ROUNDED not in op.attributes
    pairs: dict[tuple[int, int], Value] = {}

    form = exponentials.APPROXIMATE_FORMS[op.fn.data] if APPROXIMATE in op.attributes else None
    flushed = exponentials.FLUSHED.get(op.fn.data) if emitter.flushes and op.result_dtype is f32 else None

    def approximate(x: Value) -> Value:
        assert form is not None
        return form.work(Sixteen(emitter.f, machine.level, flushes=emitter.flushes), x)

    def rounded(row: int, vector_number: int) -> Value:
        """Two vectors at once where there are two: one instruction rounds them."""
        f, (operand,), lanes = emitter.f, operands, machine.lanes
        first = vector_number - vector_number % 2
        if operand.count < first + 2 or dtypes[0] is not f32:
            return casts.cast(
                f, operand.vector(row, vector_number), dtypes[0], op.result_dtype, machine.level, dot_only=True
            )
        if (row, first) not in pairs:
            both = f.shuffle(operand.vector(row, first), operand.vector(row, first + 1), range(2 * lanes))
            pairs[row, first] = casts.cast(f, both, f32, op.result_dtype, machine.level, dot_only=True)
        start = vector_number % 2 * lanes
        return f.shuffle(pairs[row, first], None, range(start, start + lanes))

    def make(row: int, vector_number: int) -> Value:
        if FOR_DOTS in op.attributes:
            return rounded(row, vector_number)
        vectors = [operand.vector(row, vector_number) for operand in operands]
        if not fits_sixteens(vectors[0].type, machine.level):
            if form is not None and form.everywhere:
                return form.work(Floats(emitter.f, vectors[0].type, machine.level), vectors[0])
            if flushed is not None:
                return flushed(Floats(emitter.f, vectors[0].type, machine.level), vectors[0])
        elif form is not None:
            return in_sixteens(emitter.f, vectors, approximate)
        return elementwise.apply(
            emitter.f, op.fn.data, vectors, dtypes, op.result_dtype, machine.level, contract=contract
        )

    emitter.make(op.result, make)


@emits(tile.ExpandOp)
def _expand(emitter: Emitter, op: tile.ExpandOp) -> None:
    """The same vectors, seen with one more axis."""
    operand = emitter.tile(op.operand)
    emitter.make(op.result, operand.vector)


@emits(tile.BroadcastOp)
def _broadcast(emitter: Emitter, op: tile.BroadcastOp) -> None:
    f, lanes, operand = emitter.f, emitter.machine.lanes, emitter.tile(op.operand)
    source = operand.shape

    def make(row: int, vector_number: int) -> Value:
        if source == made.shape:
            return operand.vector(row, vector_number)
        if is_column(made.shape) or len(source) == 1:
            return lane(0)
        if is_column(source):
            return lane(row)
        return lane(0 if source[0] == 1 else row) if source[1] == 1 else operand.vector(0, vector_number)

    def lane(row: int) -> Value:
        """One element, in every lane."""
        if row not in repeated:
            vector = operand.vector(0, row // lanes)
            repeated[row] = f.shuffle(vector, None, [row % lanes] * lanes)
        return repeated[row]

    repeated: dict[int, Value] = {}
    made = emitter.make(op.result, make)


@emits(tile.TransOp)
def _transpose(emitter: Emitter, op: tile.TransOp) -> None:
    operand = emitter.tile(op.operand)
    if tuple(op.permutation.iter_values()) != (1, 0) or 1 in operand.shape:
        # One row becomes one column: the lanes hold the same elements.
        emitter.make(op.result, operand.vector)
        return
    transposed_vectors: dict[tuple[int, int], Value] = {}

    def make(row: int, vector_number: int) -> Value:
        if not transposed_vectors:
            transposed_vectors.update(transposed(emitter, operand))
        return transposed_vectors[row, vector_number]

    emitter.make(op.result, make)


def transposed(emitter: Emitter, operand: RegisterTile) -> dict[tuple[int, int], Value]:
    """The vectors of a transposed tile, a square of lanes at a time."""
    lanes = emitter.machine.lanes
    nothing = number(0, elements.register_type(operand.dtype, lanes))
    found: dict[tuple[int, int], Value] = {}
    for above in range(0, operand.rows, lanes):
        for index in range(operand.count):
            rows = [
                operand.vector(above + row, index) if above + row < operand.rows else nothing for row in range(lanes)
            ]
            for col, vector in enumerate(square(emitter, rows)):
                if index * lanes + col < operand.elements:
                    found[index * lanes + col, above // lanes] = vector
    return found


def square(emitter: Emitter, rows: Sequence[Value]) -> list[Value]:
    """Rows of a square of lanes → its columns: each step swaps one bit of the row number with that of the lane."""
    f, lanes = emitter.f, len(rows)
    current, bit = list(rows), 1
    while bit < lanes:
        following = list(current)
        for first in range(lanes):
            if first & bit:
                continue
            second = first | bit
            low = [lane if not lane & bit else lanes + (lane ^ bit) for lane in range(lanes)]
            high = [lane ^ bit if not lane & bit else lanes + lane for lane in range(lanes)]
            following[first] = f.shuffle(current[first], current[second], low)
            following[second] = f.shuffle(current[first], current[second], high)
        current, bit = following, bit * 2
    return current


def _only(emitter: Emitter, vector: Value, live: int, otherwise: Value) -> Value:
    """The first `live` lanes of a vector, the rest replaced."""
    lanes = emitter.machine.lanes
    if live >= lanes:
        return vector
    mask = numbers([lane < live for lane in range(lanes)], "i1")
    return emitter.f.select(mask, vector, otherwise)


@emits(cpu.PartialOp)
def _partial(emitter: Emitter, op: cpu.PartialOp) -> None:
    """Each vector of the result takes every so-many-th vector of the operand."""
    f, lanes, level = emitter.f, emitter.machine.lanes, emitter.machine.level
    acc, x, kind = emitter.tile(op.acc), emitter.tile(op.x), op.kind.data
    neutral = elementwise.identity(kind, x.dtype, lanes)

    def combine(a: Value, b: Value) -> Value:
        return elementwise.combine(f, kind, a, b, x.dtype, level, nnan=kind == "top")

    def make(row: int, vector_number: int) -> Value:
        total = acc.vector(row, vector_number)
        vectors = [
            _only(emitter, x.vector(row, number_), x.elements - number_ * lanes, neutral)
            for number_ in range(vector_number, x.count, acc.count)
        ]
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=False)
            rest: list[Value] = vectors[-1:] if len(vectors) % 2 else []
            vectors = [*(combine(a, b) for a, b in pairs), *rest]
        return combine(total, vectors[0]) if vectors else total

    emitter.make(op.result, make)


@emits(tile.ReduceOp)
def _reduce(emitter: Emitter, op: tile.ReduceOp) -> None:
    f, lanes, level = emitter.f, emitter.machine.lanes, emitter.machine.level
    operand, kind, axis = emitter.tile(op.operand), op.kind.data, op.axis.value.data
    dtype = operand.dtype
    neutral = elementwise.identity(kind, dtype, lanes)
    across = len(operand.shape) == 1 or (axis == 0 if is_column(operand.shape) else axis == 1)

    def combine(a: Value, b: Value) -> Value:
        return elementwise.combine(f, kind, a, b, dtype, level, nnan=kind == "top")

    def folded(row: int) -> Value:
        """All lanes of one row of vectors, as a scalar."""
        total: Value | None = None
        for vector_number in range(operand.count):
            vector = _only(
                emitter, operand.vector(row, vector_number), operand.elements - vector_number * lanes, neutral
            )
            total = vector if total is None else combine(total, vector)
        assert total is not None
        return elementwise.fold(f, kind, total, dtype, level, nnan=kind == "top")

    def make(row: int, vector_number: int) -> Value:
        if not across:
            if operand.rows == 1:
                return operand.vector(0, vector_number)
            total = operand.vector(0, vector_number)
            for other in range(1, operand.rows):
                total = combine(total, operand.vector(other, vector_number))
            return total
        vector = neutral
        first = vector_number * lanes
        for at in range(first, min(first + lanes, operand.rows)):
            vector = f.insert(vector, folded(at), at - first)
        return vector

    if operand.elements == 0:
        emitter.make(op.result, lambda row, vector_number: neutral)
        return
    emitter.make(op.result, make)
