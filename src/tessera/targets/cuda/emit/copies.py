"""nv level → LLVM text: copies from global to shared memory that run beside the threads.

Neighbouring threads copy neighbouring chunks of a row: global memory is read in whole lines, and no two threads of a
group meet in a bank. Memory whose rows do not begin on multiples of 16 bytes is copied in words of 4 bytes, or, where
that fails too, element by element; which it is, the view's address and strides decide when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tessera.ir.tile.types import view_type
from tessera.targets.cuda.emit.divisors import divisor_of, has_aligned_rows
from tessera.targets.cuda.emit.emitter import GLOBAL, Emitter, Shared, emits
from tessera.targets.cuda.emit.shared_addresses import Addresses, swizzled_address
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Digit, Layout, replicas
from tessera.targets.cuda.ir.types import CHUNK
from tessera.targets.cuda.ptx.inline import asm, barrier, one, predicated
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number

ALIGNED = "aligned"
"""Marks a copy of which it is known that columns of the view lie side by side, and that chunks of them begin on
multiples of 16 bytes and end with the view."""
INSIDE = "inside"
"""Marks a copy of which it is known that no part of it leaves the view."""
WORD = 4


class Source(NamedTuple):
    """The tile in global memory: where it begins, and how rows and columns go on."""

    address: Value
    """Of the first element of the tile, as i64."""
    row: Value
    column: Value
    """Where the tile begins along the axes that are rows and columns of shared memory, as i32."""
    rows: Value
    columns: Value
    """How much the view has along them, as i32; no rows where the tile is outside along another axis."""
    down: Value
    across: Value
    """From row to row and from column to column, in bytes."""


@emits(nv.CopyAsyncOp)
def _copy(emitter: Emitter, op: nv.CopyAsyncOp) -> None:
    shared = emitter.memory(op.shared)
    source = _source(emitter, op, emitter.view(op.view))

    chunks = partial(_copy_chunks, emitter, source, shared, inside=INSIDE in op.attributes)
    words, single = (partial(copy, emitter, source, shared) for copy in (_copy_words, _copy_elements))

    def others() -> None:
        if shared.type.itemsize > WORD:
            single()
        else:
            emitter.where(_whole(emitter, op, WORD), words, single)

    emitter.where(_whole(emitter, op, CHUNK), chunks, others)


def _whole(emitter: Emitter, op: nv.CopyAsyncOp, size: int) -> Value | None:
    """Whether pieces of so many bytes begin where the hardware can copy them, and none crosses the view's end.

    None where the kernel's ops show that they do.
    """
    f, item = emitter.f, view_type(op.view).dtype.storage.itemsize
    axis = len(op.offsets) - (1 if op.transposed is None else 2)
    aligned_start = divisor_of(op.offsets[axis]) * item % size == 0
    if ALIGNED in op.attributes or (aligned_start and op.transposed is None and has_aligned_rows(op.view)):
        return None

    def test() -> Value:
        view = emitter.view(op.view)
        bits = f.op("i64", f"ptrtoint {view.pointer} to i64")
        for other, stride in enumerate(view.strides):
            if other != axis:
                bits = f.binary("or", bits, f.times(stride, item))
        bits = f.binary("or", bits, f.times(view.sizes[axis], item))
        return f.binary("and", f.divides(size, bits), f.compare("eq", view.strides[axis], 1))

    found = emitter.once(("whole", op.view, axis, size), test)
    if aligned_start:
        return found
    return f.binary("and", found, f.divides(size, f.times(emitter.number(op.offsets[axis]), item)))


def _source(emitter: Emitter, op: nv.CopyAsyncOp, view: ViewDescriptor) -> Source:
    f, item = emitter.f, number(view.dtype.storage.itemsize, "i64")
    rank = view_type(op.view).rank.data
    offsets = [emitter.number(offset) for offset in op.offsets]
    row, column = (rank - 1, rank - 2) if op.transposed is not None else (rank - 2, rank - 1)
    further = number(0, "i64")
    for offset, stride in zip(offsets, view.strides, strict=True):
        further = folded(f, "add", further, folded(f, "mul", offset, stride))
    address = f.op("i64", f"ptrtoint {view.pointer} to i64")
    rows = _narrow(emitter, view.sizes[row])
    if INSIDE not in op.attributes:
        for axis in range(rank - 2):
            within = f.compare("ult", offsets[axis], view.sizes[axis])
            rows = f.select(within, rows, 0)
    return Source(
        folded(f, "add", address, folded(f, "mul", further, item)),
        _narrow(emitter, offsets[row]),
        _narrow(emitter, offsets[column]),
        rows,
        _narrow(emitter, view.sizes[column]),
        folded(f, "mul", view.strides[row], item),
        folded(f, "mul", view.strides[column], item),
    )


def _narrow(emitter: Emitter, value: Value) -> Value:
    """A size or a position as i32: views of more elements along an axis are refused at launch."""
    known = literal(value)
    return number(known, "i32") if known is not None else emitter.f.convert("trunc", value, "i32")


# 16 bytes at a time


def spread(rows: int, panel: int, threads: int) -> tuple[Digit, Digit, Digit]:
    """How threads lie over the chunks of a panel: chunks of a row, rows, and threads with nothing to do.

    A panel at a time: eight threads in a row write to all banks once, whether a panel's row has all of them or not.
    """
    wide, tall = panel // CHUNK, 1
    while tall < rows and 2 * wide * tall <= threads:
        tall *= 2
    if tall < rows:
        tall = threads // wide
    return Digit(wide, 1, 1), Digit(tall, 0, 1), replicas(-(-threads // (wide * tall)))


def _copy_chunks(emitter: Emitter, source: Source, shared: Shared, *, inside: bool) -> None:
    f, type_ = emitter.f, shared.type
    per_chunk = CHUNK // type_.itemsize
    chunks = -(-type_.columns * type_.itemsize // CHUNK)
    across, down, idle = spread(type_.rows, type_.panel.data, emitter.source.thread_count)
    digits = (across._replace(step=per_chunk), down, idle)
    row, column = (emitter.thread_part(Layout(digits, ()), axis) for axis in (0, 1))
    addresses = Addresses(emitter, shared, digits, CHUNK)
    first = _moved(emitter, source.address, row, source.down)
    first = _moved(emitter, first, column, number(type_.itemsize, "i64"))
    at_row, at_column = folded(f, "add", source.row, row), folded(f, "add", source.column, column)
    busy = None
    if idle.size > 1:
        busy = f.compare("ult", emitter.thread, across.size * down.size)
    for left in range(0, chunks, across.size):
        start = folded(f, "add", first, left * CHUNK)
        limit = source.rows
        if not inside:
            within = f.compare("ult", f.add(at_column, left * per_chunk), source.columns)
            limit = f.select(within, source.rows, 0)
        some = busy
        if left + across.size > chunks:
            some = f.all_of((some, f.compare("ult", column, (chunks - left) * per_chunk)))
        for further in range(0, type_.rows, down.size):
            here = folded(f, "add", start, folded(f, "mul", source.down, further))
            mine = some
            if further + down.size > type_.rows:
                mine = f.all_of((mine, f.compare("ult", row, type_.rows - further)))
            size = None
            if not inside:
                within = f.compare("ult", f.add(at_row, further), limit)
                size = f.select(within, number(CHUNK, "i32"), 0)
            _begin(emitter, addresses.at(further, left * per_chunk), here, CHUNK, size, mine)


def _moved(emitter: Emitter, address: Value, count: Value, step: Value) -> Value:
    """An address some elements further on.

    One instruction, which cannot be split: a product of its own would be kept in registers throughout a loop.
    """
    wide = emitter.f.convert("zext", count, "i64")
    return one(emitter.f, "mad.lo.s64 $0, $1, $2, $3;", "i64", wide, step, address)


def _begin(
    emitter: Emitter, to: tuple[Value, int], source: Value, width: int, size: Value | None, condition: Value | None
) -> None:
    """One copy of `width` bytes, the first `size` of them from memory and zeros behind; not without its condition."""
    f, (address, further) = emitter.f, to
    arguments = [address, source]
    kind = "cg.shared.global.L2::128B" if width == CHUNK else "ca.shared.global"
    text = f"cp.async.{kind} [$0+{further}], [$1], {width}"
    if size is not None:
        text += f", ${len(arguments)}"
        arguments.append(size)
    text, arguments = predicated(f, f"{text};", arguments, condition)
    asm(f, text, arguments=arguments, effects=True)


# 4 bytes at a time, and one element at a time: a loop, for it is short and seldom runs


def _copy_words(emitter: Emitter, source: Source, shared: Shared) -> None:
    f, item = emitter.f, shared.type.itemsize

    def copy(row: Value, column: Value, address: Value) -> None:
        within, found = _found(emitter, source, row, column)
        size = f.select(within, number(WORD, "i32"), 0)
        _begin(emitter, (address, 0), found, WORD, size, None)

    _for_each(emitter, shared, WORD // item, copy)


def _copy_elements(emitter: Emitter, source: Source, shared: Shared) -> None:
    f, item = emitter.f, shared.type.itemsize
    held = f"i{max(16, 8 * item)}"

    def copy(row: Value, column: Value, address: Value) -> None:
        within, found = _found(emitter, source, row, column)
        pointer = f.op(GLOBAL, f"inttoptr {found} to {GLOBAL}")
        zero = number(0, f"i{8 * item}")
        (read,) = f.branch(within, lambda: [f.load(zero.type, pointer, align=item)], lambda: [zero])
        stored = [address, f.convert("zext", read, held)]
        asm(f, f"st.shared.b{8 * item} [$0], $1;", arguments=stored, effects=True)

    _for_each(emitter, shared, 1, copy)


def _found(emitter: Emitter, source: Source, row: Value, column: Value) -> tuple[Value, Value]:
    """Whether an element of the tile is inside the view, and its address."""
    f = emitter.f
    down = f.compare("ult", folded(f, "add", source.row, row), source.rows)
    across = f.compare("ult", folded(f, "add", source.column, column), source.columns)
    further = f.binary("mul", f.convert("zext", row, "i64"), source.down)
    aside = folded(f, "mul", f.convert("zext", column, "i64"), source.across)
    return f.binary("and", down, across), f.binary("add", f.binary("add", source.address, further), aside)


def _for_each(emitter: Emitter, shared: Shared, width: int, copy: Callable[[Value, Value, Value], None]) -> None:
    """Runs for pieces of `width` elements, shared among the threads: given row, column and address."""
    f, type_ = emitter.f, shared.type
    to_row = -(-type_.columns // width)

    def iteration(index: Value, carried: list[Value]) -> Sequence[Value]:
        row = f.binary("udiv", index, to_row)
        column = f.times(f.binary("urem", index, to_row), width)
        left = f.times(column, type_.itemsize)
        copy(row, column, swizzled_address(emitter, shared, row, left, type_.columns * type_.itemsize))
        return carried

    f.loop(
        emitter.thread, number(to_row * type_.rows, "i32"), number(emitter.source.thread_count, "i32"), [], iteration
    )


@emits(nv.CommitOp)
def _commit(emitter: Emitter, op: nv.CommitOp) -> None:
    asm(emitter.f, "cp.async.commit_group;", effects=True)


@emits(nv.WaitOp)
def _wait(emitter: Emitter, op: nv.WaitOp) -> None:
    asm(emitter.f, f"cp.async.wait_group {op.pending.value.data};", effects=True)
    barrier(emitter.f)
