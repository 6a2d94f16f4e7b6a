"""nv level → LLVM text: whole numbers sorted along an axis, by a network of compares.

Runs of sorted elements are merged in pairs: each element meets the one that lies opposite in the pair, and then those at
half that distance, a quarter and so on; the smaller one always goes to the lower position. Which element that is, is
written in a position's bits: those of registers cost nothing, those of lanes a shuffle, those of warps a way through
shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessera.dtypes.types import DType, Kind
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.reductions import moved_by_words
from tessera.targets.cuda.emit.scans import levels_of
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ptx.inline import barrier, shuffle
from tessera.targets.llvm.elements import constant
from tessera.targets.llvm.text import Value, bits_of, number


@dataclass(frozen=True)
class _Bit:
    """One bit of positions along the axis: what it adds to the register's number, and to the thread's."""

    register: int
    thread: int
    across: bool = False
    """Whether threads that differ in it are in other warps."""


def _bits(layout: Layout, axis: int) -> list[_Bit] | None:
    """The bits of positions, the lowest first; None where positions are not written in bits."""
    found: list[_Bit] = []
    below = [1]
    for digit in layout.registers:
        below.append(below[-1] * digit.size)
    for level in levels_of(layout, axis):
        if level.step != 1 << len(found) or level.size & (level.size - 1):
            return None
        for value in range(level.size.bit_length() - 1):
            if level.register is not None:
                found.append(_Bit(below[level.register] << value, 0))
            elif level.part is None or level.part.below & (level.part.below - 1):
                return None
            else:
                found.append(_Bit(0, level.part.below << value, across=not level.lanes))
    return found


def sort_bytes(layout: Layout, axis: int, dtype: DType, threads: int) -> int:
    """Shared memory through which warps exchange elements."""
    bits = _bits(layout, axis)
    return layout.count * threads * dtype.storage.itemsize if bits and any(bit.across for bit in bits) else 0


@emits(tile.SortOp)
def _sort(emitter: Emitter, op: tile.SortOp) -> None:
    operand, axis = emitter.tile(op.operand), op.axis.value.data
    layout, bits = operand.layout, _bits(operand.layout, axis)
    if bits is None or operand.shape[axis] > 1 << len(bits):
        raise CompileError(f"{op.name} along axis {axis} of layout {layout}", span=span_of(op.location))
    values = _filled_up(emitter, operand.elements(), layout, axis, operand.shape[axis], operand.dtype)
    network = _Network(emitter, bits, values, signed=operand.dtype.kind is Kind.INT)
    for run in range(len(bits)):
        network.step((2 << run) - 1)
        for bit in reversed(range(run)):
            network.step(1 << bit)
    emitter.bind(op.result, network.values)


def _filled_up(
    emitter: Emitter, values: Sequence[Value], layout: Layout, axis: int, size: int, dtype: DType
) -> list[Value]:
    """What lies behind the end of the axis is as large as can be, so that it stays there."""
    f, reach, offsets = emitter.f, layout.reach(axis), layout.offsets(axis)
    last = constant(int(dtype.max_value), dtype)
    found: list[Value] = []
    for value, offset in zip(values, offsets, strict=True):
        if reach + offset < size:
            found.append(value)
        elif offset >= size:
            found.append(last)
        else:
            found.append(f.select(f.compare("slt", emitter.base(layout, axis), size - offset), value, last))
    return found


class _Network:
    """Elements of a thread on their way through the network."""

    def __init__(self, emitter: Emitter, bits: Sequence[_Bit], values: list[Value], *, signed: bool) -> None:
        self.emitter, self.bits, self.values = emitter, bits, values
        self.less = "slt" if signed else "ult"
        self._upper: dict[int, Value] = {}

    def step(self, mask: int) -> None:
        """Each element meets the one whose position differs in these bits; the highest of them says which is lower."""
        met = [bit for place, bit in enumerate(self.bits) if mask >> place & 1]
        register, thread, top = sum(bit.register for bit in met), sum(bit.thread for bit in met), met[-1]
        f = self.emitter.f
        if not thread:
            for low in range(len(self.values)):
                if not low & top.register:
                    high = low ^ register
                    a, b = self.values[low], self.values[high]
                    is_less = f.compare(self.less, b, a)
                    self.values[low], self.values[high] = f.select(is_less, b, a), f.select(is_less, a, b)
            return
        others = self._across(register, thread) if any(bit.across for bit in met) else self._lanes(register, thread)
        found: list[Value] = []
        for number_, (mine, other) in enumerate(zip(self.values, others, strict=True)):
            is_less = f.compare(self.less, other, mine)
            if top.register:
                takes = is_less if not number_ & top.register else f.binary("xor", is_less, 1)
            else:
                takes = f.binary("xor", is_less, self._is_upper(top.thread))
            found.append(f.select(takes, other, mine))
        self.values = found

    def _is_upper(self, thread: int) -> Value:
        """Whether this thread has the bit that its partner has not."""
        f = self.emitter.f
        if thread not in self._upper:
            self._upper[thread] = f.compare("ne", f.binary("and", self.emitter.thread, thread), 0)
        return self._upper[thread]

    def _lanes(self, register: int, thread: int) -> list[Value]:
        f = self.emitter.f
        return [
            moved_by_words(f, self.values[one ^ register], lambda word: shuffle(f, word, thread))
            for one in range(len(self.values))
        ]

    def _across(self, register: int, thread: int) -> list[Value]:
        """Through shared memory, the same register of all threads side by side."""
        emitter, f = self.emitter, self.emitter.f
        type_, threads = self.values[0].type, emitter.source.thread_count
        item = bits_of(type_) // 8
        base = emitter.shared_pointer(len(self.values) * threads * item)
        mine = f.at(base, f.times(emitter.thread, item))
        other = f.at(base, f.times(f.binary("xor", emitter.thread, thread), item))
        barrier(f)
        for one, value in enumerate(self.values):
            f.store(value, f.at(mine, number(one * threads * item, "i32")), align=item)
        barrier(f)
        return [
            f.load(type_, f.at(other, number((one ^ register) * threads * item, "i32")), align=item)
            for one in range(len(self.values))
        ]
