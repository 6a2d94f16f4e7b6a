"""nv level → LLVM text: running reductions and sorts, in which elements go along an axis.

Digits of a layout along the axis are levels, from those whose steps are the smallest up: registers, lanes, which meet
by shuffles, and warps, through shared memory. On each level of a running reduction a group of elements gets what groups
before it come to, and all of them together are a group of the next level; an element is combined once with what is
before its own run of registers, however many levels there are.

Sorts are networks of compares. Runs of sorted elements are merged in pairs: each element meets the one that lies
opposite in the pair, and then those at half that distance, a quarter and so on; the smaller one goes to the lower
position. Which element that is, is written in a position's bits: those of registers cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod

from tessera.dtypes.types import DType, Kind
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.reductions import (
    Combine,
    ThreadPart,
    combining,
    moved_by_words,
    number_in,
    read_parts,
    write_parts,
)
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ptx.inline import barrier, shuffle, shuffle_from, shuffle_up
from tessera.targets.llvm import elementwise
from tessera.targets.llvm.elements import constant
from tessera.targets.llvm.text import Value, bits_of, number

Key = tuple[int, ...]
"""The values of the digits of a register's number; 0 for those that are behind."""


@dataclass(frozen=True)
class Level:
    """A digit along the axis: of registers, of lanes of a warp, or of warps."""

    step: int
    size: int
    register: int | None = None
    """Which digit of the register's number it is."""
    part: ThreadPart | None = None
    """Which part of the thread's number it is."""
    lanes: bool = False


def levels_of(layout: Layout, axis: int) -> list[Level]:
    """The digits along an axis, those with small steps first."""
    found = [
        Level(digit.step, digit.size, register=index)
        for index, digit in enumerate(layout.registers)
        if digit.axis == axis and digit.size > 1
    ]
    for digit, below in layout.positions:
        if digit.axis != axis or digit.size == 1:
            continue
        lanes = gcd(digit.size, max(1, WARP // below)) if below & (below - 1) == 0 else 1
        if lanes > 1:
            found.append(Level(digit.step, lanes, part=ThreadPart(below, lanes), lanes=True))
        if digit.size > lanes:
            rest = digit.size // lanes
            found.append(Level(digit.step * lanes, rest, part=ThreadPart(below * lanes, rest)))
    return sorted(found, key=lambda level: level.step)


def _others(layout: Layout, levels: Sequence[Level], number_: int) -> list[ThreadPart]:
    """Parts of the thread's number that tell apart groups of a level besides its own."""
    axes = {level.part for level in levels}
    plain = [ThreadPart(below, digit.size) for digit, below in layout.positions if digit.axis >= 0 and digit.size > 1]
    along = [level.part for level in levels[number_ + 1 :] if level.part is not None]
    apart = [part for part in plain if not any(_holds(part, one) for one in axes if one is not None)]
    return [*apart, *along]


def _holds(digit: ThreadPart, part: ThreadPart) -> bool:
    """Whether a part of the thread's number is one of a digit of it."""
    return digit.below <= part.below < digit.below * digit.size


def _groups(layout: Layout, levels: Sequence[Level], number_: int) -> int:
    """How many groups a thread has on a level."""
    behind = {level.register for level in levels[:number_]}
    return prod(digit.size for index, digit in enumerate(layout.registers) if index not in behind)


def scan_slots(layout: Layout, axis: int) -> int:
    """Elements that a scan puts into shared memory at once."""
    levels = levels_of(layout, axis)
    return max(
        (
            _groups(layout, levels, index) * prod(part.size for part in _others(layout, levels, index)) * level.size
            for index, level in enumerate(levels)
            if level.part is not None and not level.lanes
        ),
        default=0,
    )


@emits(tile.ScanOp)
def _scan(emitter: Emitter, op: tile.ScanOp) -> None:
    operand, kind, axis = emitter.tile(op.operand), op.kind.data, op.axis.value.data
    layout, levels = operand.layout, levels_of(operand.layout, axis)
    if any(above.step < level.step * level.size for level, above in pairwise(levels)):
        raise CompileError(
            f"{op.name} along axis {axis} of layout {layout}: its digits overlap", span=span_of(op.location)
        )
    combine, neutral = combining(emitter, kind, operand.dtype), elementwise.identity(kind, operand.dtype)
    scan = _Scan(emitter, layout, levels, combine, neutral)
    emitter.bind(op.result, scan.run([operand.element(register) for register in range(operand.count)]))


class _Scan:
    """A scan that is being written."""

    def __init__(
        self, emitter: Emitter, layout: Layout, levels: Sequence[Level], combine: Combine, neutral: Value
    ) -> None:
        self.emitter, self.layout, self.levels = emitter, layout, levels
        self.combine, self.neutral = combine, neutral
        self.before: list[dict[Key, Value | None]] = []
        """For each level what comes before each group of it, within a group of the next level; None is nothing."""
        self._whole: dict[tuple[int, Key], Value | None] = {}

    def run(self, elements: Sequence[Value]) -> list[Value]:
        keys = [self._key(register) for register in range(self.layout.count)]
        totals = dict(zip(keys, elements, strict=True))
        for number_, level in enumerate(self.levels):
            is_last = number_ == len(self.levels) - 1
            if level.register is not None:
                before, totals = self._registers(level.register, level.size, totals)
            elif level.lanes:
                before, totals = self._lanes(level, totals, is_last=is_last)
            else:
                before, totals = self._warps(number_, level, totals)
            self.before.append(before)
        return [self._element(key, value) for key, value in zip(keys, elements, strict=True)]

    def _key(self, register: int) -> Key:
        found: list[int] = []
        for digit in self.layout.registers:
            register, value = divmod(register, digit.size)
            found.append(value)
        return tuple(found)

    def _joined(self, first: Value | None, second: Value | None) -> Value | None:
        if first is None or second is None:
            return second if first is None else first
        return self.combine(first, second)

    def _above(self, number_: int, key: Key) -> Key:
        """The group of the next level that a group of a level is in."""
        register = self.levels[number_].register
        return key if register is None else (*key[:register], 0, *key[register + 1 :])

    def _element(self, key: Key, value: Value) -> Value:
        if not self.levels:
            return value
        own = self._joined(self.before[0][key], value)
        found = self._joined(self._before(1, self._above(0, key)), own)
        assert found is not None
        return found

    def _before(self, number_: int, key: Key) -> Value | None:
        """All that comes before a group of a level."""
        if number_ >= len(self.levels):
            return None
        if (number_, key) not in self._whole:
            above = self._before(number_ + 1, self._above(number_, key))
            self._whole[number_, key] = self._joined(above, self.before[number_][key])
        return self._whole[number_, key]

    # Levels: what comes before each group, and the totals of groups of the next level

    def _registers(
        self, register: int, size: int, totals: dict[Key, Value]
    ) -> tuple[dict[Key, Value | None], dict[Key, Value]]:
        before: dict[Key, Value | None] = {}
        after: dict[Key, Value] = {}
        for first in [key for key in totals if key[register] == 0]:
            total: Value | None = None
            for value in range(size):
                key = (*first[:register], value, *first[register + 1 :])
                before[key] = total
                total = self._joined(total, totals[key])
            assert total is not None
            after[first] = total
        return before, after

    def _lanes(
        self, level: Level, totals: dict[Key, Value], *, is_last: bool
    ) -> tuple[dict[Key, Value | None], dict[Key, Value]]:
        f, part = self.emitter.f, level.part
        assert part is not None
        mine = part.value(self.emitter)
        reached = {1 << bit: f.compare("uge", mine, 1 << bit) for bit in range(level.size.bit_length() - 1)}
        last = f.binary("or", self.emitter.thread, part.below * (part.size - 1))
        before: dict[Key, Value | None] = {}
        after: dict[Key, Value] = {}
        for key, total in totals.items():
            upto = total
            for apart, is_reached in reached.items():
                other = self._up(upto, apart * part.below)
                upto = f.select(is_reached, self.combine(other, upto), upto)
            before[key] = f.select(reached[1], self._up(upto, part.below), self.neutral)
            after[key] = upto if is_last else self._from(upto, last)
        return before, after

    def _up(self, value: Value, below: int) -> Value:
        return moved_by_words(self.emitter.f, value, lambda word: shuffle_up(self.emitter.f, word, below))

    def _from(self, value: Value, lane: Value) -> Value:
        return moved_by_words(self.emitter.f, value, lambda word: shuffle_from(self.emitter.f, word, lane))

    def _warps(
        self, number_: int, level: Level, totals: dict[Key, Value]
    ) -> tuple[dict[Key, Value | None], dict[Key, Value]]:
        """All warps write down their totals, and each reads those of all: every thread makes the same sums."""
        emitter, f, part = self.emitter, self.emitter.f, level.part
        assert part is not None
        others = _others(self.layout, self.levels, number_)
        count, type_ = prod(one.size for one in others), self.neutral.type
        slot = "i32" if bits_of(type_) < 32 else type_
        item, side = bits_of(slot) // 8, gcd(level.size, 128 // bits_of(slot))
        base = emitter.shared_pointer(len(totals) * count * level.size * item)
        mine, line = part.value(emitter), f.times(number_in(emitter, others), level.size)

        def at(group: int, place: Value | int) -> Value:
            where = f.add(line, group * count * level.size) if group else line
            if isinstance(place, int):
                where = f.add(where, place) if place else where
            else:
                where = f.binary("add", where, place)
            return f.at(base, f.times(where, item))

        barrier(f)
        for group, total in enumerate(totals.values()):
            write_parts(emitter, [f.convert("zext", total, slot)], at(group, mine), item)
        barrier(f)
        is_behind = [f.compare("ugt", mine, warp) for warp in range(level.size - 1)]
        before: dict[Key, Value | None] = {}
        after: dict[Key, Value] = {}
        for group, key in enumerate(totals):
            parts: list[Value] = []
            for first in range(0, level.size, side):
                parts += read_parts(emitter, slot, at(group, first), side, item)
            parts = [f.convert("trunc", one, type_) for one in parts]
            upto, found = parts[0], f.select(is_behind[0], parts[0], self.neutral)
            for warp, one in enumerate(parts[1:], 1):
                upto = self.combine(upto, one)
                if warp < level.size - 1:
                    found = f.select(is_behind[warp], upto, found)
            before[key], after[key] = found, upto
        return before, after


# Sorts


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
