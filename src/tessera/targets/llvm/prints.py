"""Records of prints as LLVM text: taking room in the buffer of a launch, and views of that room."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from tessera.compiler.print_records import LOST, NEXT, SIZE, WORD, WRITTEN, RecordLayout
from tessera.errors import CompileError
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.llvm.emitter import KernelEmitter, ViewDescriptor
from tessera.targets.llvm.text import Value, number


class RecordWriter(NamedTuple):
    """Writes the code of one record, in a buffer; `scope` is that of atomics among those that write there."""

    emitter: KernelEmitter
    op: tile.PrintRecordOp
    buffer: Value
    scope: str = ""

    @property
    def layout(self) -> RecordLayout:
        op = self.op
        values = [(dtype_of(one.element_type), one.get_shape()) for one in op.types]
        return RecordLayout.of(len(op.program), values)

    def take(self) -> Value:
        """Takes room, and says there who prints: the byte at which the record begins, 0 where there is no room."""
        f, op, size = self.emitter.f, self.op, self.layout.size
        start = self._counted(number(NEXT, "i64"), size)
        limit = f.load("i64", f.at(self.buffer, SIZE), align=WORD)
        fits = f.compare("ule", f.add(start, size), limit)
        self._counted(f.select(fits, number(WRITTEN, "i64"), LOST), 1)

        def write() -> None:
            record = f.at(self.buffer, start)
            words = [number(op.site.value.data, "i64"), *(self.emitter.number(one) for one in op.program)]
            for index, word in enumerate(words):
                f.store(word, f.at(record, WORD * index), align=WORD)

        self.emitter.branch(fits, write)
        return f.select(fits, start, 0)

    def _counted(self, at: Value, by: int) -> Value:
        """Adds to a word of the buffer, and gives what it was."""
        f = self.emitter.f
        return f.op("i64", f"atomicrmw add {f.at(self.buffer, at)}, i64 {by} {self.scope}monotonic")

    def bind(self, start: Value) -> None:
        """Makes the views of the room that was taken: without elements where it is none."""
        f = self.emitter.f
        has_room = f.compare("ne", start, 0)
        for view, type_, offset in zip(self.op.views, self.op.types, self.layout.offsets, strict=True):
            shape = type_.get_shape() or (1,)
            sizes = tuple(f.select(has_room, number(size, "i64"), 0) for size in shape)
            strides = [*accumulate(reversed(shape[1:]), int.__mul__, initial=1)][::-1]
            pointer = f.at(self.buffer, f.add(start, offset))
            self.emitter.values[view] = ViewDescriptor(
                pointer, sizes, tuple(number(stride, "i64") for stride in strides), dtype_of(type_.element_type)
            )


def unrecorded(op: tile.DebugPrintOp) -> CompileError:
    """The refusal of a print that is no record: it stops in a debugger, or record-prints was left out."""
    if tile.BREAKPOINT in op.attributes:
        words, hint = "a kernel that stops in a debugger runs", "TESSERA_INTERPRET=1 sends every kernel there"
        return CompileError(f"{words} in the interpreter only", span=span_of(op.location), hint=hint)
    words, hint = "machine code prints by records", "run record-prints in front, which writes them"
    return CompileError(f"{op.name} has no machine code: {words}", span=span_of(op.location), hint=hint)
