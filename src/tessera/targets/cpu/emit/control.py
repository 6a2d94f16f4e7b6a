"""cpu level → LLVM text: the work that threads share, their own memory, and what they print."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.emit.emitter import FIRST_ARGUMENT, QUEUES, Emitter, Memory, emits
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import BufferType, PanelsType, buffer_type, panels_type
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.prints import RecordWriter
from tessera.targets.llvm.text import Value, number


@emits(cpu.GridOp)
def _grid(emitter: Emitter, op: cpu.GridOp) -> None:
    word = FIRST_ARGUMENT + 8 * (emitter.layout.grid + op.axis.value.data)
    emitter.values[op.result] = emitter.f.load("i64", emitter.f.at(emitter.args, word), align=8)


SHARE = 32
"""Pieces of work per thread: enough that one which is late delays the others little."""


@emits(cpu.ParallelOp)
def _parallel(emitter: Emitter, op: cpu.ParallelOp) -> None:
    """Queues of pieces: each piece is a run of inner indices for one outer index.

    Every thread has a queue of neighbouring pieces, so that `once` serves many of them; with its own done, it helps
    the others. Beyond eight threads several share a queue.
    """
    f = emitter.f
    outer, inner = emitter.number(op.outer), emitter.number(op.inner)
    once, body = op.once.block, op.body.block
    wanted = f.times(emitter.threads, SHARE)
    least = f.intrinsic("smax", outer, 1)
    cuts = f.binary("sdiv", f.subtract(f.add(wanted, least), 1), least)
    cuts = f.intrinsic("smax", f.intrinsic("smin", cuts, inner), 1)
    alone = f.compare("eq", emitter.threads, 1)
    cuts = f.select(alone, number(1, "i64"), cuts)
    length = f.binary("sdiv", f.subtract(f.add(inner, cuts), 1), cuts)
    pieces = f.binary("mul", outer, cuts)
    # What `once` yields is kept in memory between pieces.
    end = once.last_op
    assert isinstance(end, cpu.YieldOp)
    kept = f.stack(8 * max(1, len(end.values)), 8)
    last = f.stack(8, 8)
    f.store(number(-1, "i64"), last, align=8)
    queues = f.intrinsic("smin", emitter.threads, QUEUES)

    def visit(offset: Value, _: list[Value]) -> None:
        number_ = f.binary("urem", f.binary("add", emitter.thread, offset), queues)
        first, end_ = (f.binary("sdiv", f.binary("mul", pieces, at), queues) for at in (number_, f.add(number_, 1)))
        counter = f.at(emitter.args, f.add(f.times(number_, 8), FIRST_ARGUMENT + 8 * emitter.layout.queues))
        empty(counter, first, end_)

    def empty(counter: Value, first: Value, stop: Value) -> None:
        top, work, out = (f"{name}{len(emitter.values)}" for name in ("queue", "work", "done"))
        f.jump(top)
        f.label(top)
        piece = f.binary("add", first, f.op("i64", f"atomicrmw add {counter}, i64 1 monotonic"))
        f.do(f"br {f.compare('slt', piece, stop)}, label %{work}, label %{out}")
        f.label(work)
        do(piece)
        f.jump(top)
        f.label(out)

    def do(piece: Value) -> None:
        here = f.binary("sdiv", piece, cuts)
        cut = f.subtract(piece, f.binary("mul", here, cuts))

        def prepare() -> None:
            f.store(here, last, align=8)
            emitter.values[once.args[0]] = here
            emitter.cursor = f.at(emitter.workspace, emitter.static_size)
            emitter.block(once)
            for position, value in enumerate(end.values):
                found = emitter.values[value]
                word = found.pointer if isinstance(found, Memory) else found
                f.store(word, f.at(kept, 8 * position), align=8)
            emitter.cursor = None

        if list(once.ops) != [end]:
            f.branch(f.compare("ne", f.load("i64", last, align=8), here), prepare)
        emitter.values[body.args[0]] = here
        for position, (argument, value) in enumerate(zip(body.args[2:], end.values, strict=True)):
            where = f.at(kept, 8 * position)
            if isinstance(value.type, BufferType | PanelsType):
                emitter.values[argument] = Memory(f.load("ptr", where, align=8), value.type)
            else:
                emitter.values[argument] = f.load("i64", where, align=8)
        start = f.binary("mul", cut, length)
        stop = f.intrinsic("smin", f.add(start, length), inner)

        def run(index: Value, _: list[Value]) -> None:
            emitter.values[body.args[1]] = index
            emitter.block(body)

        f.loop(start, stop, 1, [], run)

    f.loop(0, queues, 1, [], visit)


@emits(tile.PrintRecordOp)
def _print_record(emitter: Emitter, op: tile.PrintRecordOp) -> None:
    buffer = emitter.f.load("ptr", emitter.f.at(emitter.args, FIRST_ARGUMENT + 8 * emitter.layout.prints), align=8)
    writer = RecordWriter(emitter, op, buffer)
    writer.bind(writer.take())


@emits(cpu.BufferOp)
def _buffer(emitter: Emitter, op: cpu.BufferOp) -> None:
    emitter.values[op.result] = Memory(
        emitter.f.at(emitter.workspace, emitter.workspace_offsets[op]), buffer_type(op.result)
    )


@emits(cpu.BorrowOp)
def _borrow(emitter: Emitter, op: cpu.BorrowOp) -> None:
    f, view, type_ = emitter.f, emitter.view(op.view), buffer_type(op.result)
    item = view.dtype.storage.itemsize
    row, col = (emitter.number(offset) for offset in op.offsets)
    start = f.add(f.binary("mul", row, view.strides[0]), col)
    there = f.at(view.pointer, f.times(start, item))
    element = f"i{8 * item}"

    def copied() -> Sequence[Value]:
        copy = f.at(emitter.workspace, emitter.workspace_offsets[op])

        def one(index: Value, _: list[Value]) -> None:
            f.store(f.load(element, f.at(there, index), align=item), f.at(copy, index), align=item)

        f.loop(0, type_.size, item, [], one)
        return [copy]

    pointer = there
    if op.written:
        overlap = number(0, "i1")
        end = f.at(there, type_.size)
        for one in op.written:
            low, high = _ends(emitter, emitter.view(one))
            both = f.binary("and", f.compare("ult", there, high), f.compare("ult", low, end))
            overlap = f.binary("or", overlap, both)
        (pointer,) = f.branch(overlap, copied, lambda: [there])
    emitter.values[op.result] = Memory(pointer, type_)


def _ends(emitter: Emitter, view: ViewDescriptor) -> tuple[Value, Value]:
    """Where the memory of a view begins and ends, whatever the signs of its strides."""
    f, item, zero = emitter.f, view.dtype.storage.itemsize, number(0, "i64")
    low, high = zero, number(1, "i64")
    for size, stride in zip(view.sizes, view.strides, strict=True):
        last = f.binary("mul", f.binary("sub", size, 1), stride)
        low = f.binary("add", low, f.intrinsic("smin", last, zero))
        high = f.binary("add", high, f.intrinsic("smax", last, zero))
    return f.at(view.pointer, f.times(low, item)), f.at(view.pointer, f.times(high, item))


@emits(cpu.ReserveOp)
def _reserve(emitter: Emitter, op: cpu.ReserveOp) -> None:
    type_ = panels_type(op.result)
    if op in emitter.workspace_offsets:
        emitter.values[op.result] = Memory(emitter.f.at(emitter.workspace, emitter.workspace_offsets[op]), type_)
        return
    assert emitter.cursor is not None
    emitter.values[op.result] = Memory(emitter.cursor, type_)
    emitter.cursor = emitter.f.at(emitter.cursor, emitter.f.times(emitter.number(op.count), type_.size))
