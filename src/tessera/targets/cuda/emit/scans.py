"""nv level → LLVM text: running reductions. Registers one by one, lanes by shuffles, warps through shared memory.

Digits of a layout along the axis are levels, from those whose steps are the smallest up. On each level a group of
elements gets what the groups before it come to, and all of them together are a group of the next level. An element is
combined once with what is before its own run of registers, however many levels there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.reductions import (
    Combine,
    Part,
    combining,
    moved_by_words,
    number_in,
    read_parts,
    write_parts,
)
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ptx.inline import barrier, shuffle_from, shuffle_up
from tessera.targets.llvm import elementwise
from tessera.targets.llvm.text import Value, bits_of

Key = tuple[int, ...]
"""The values of the digits of a register's number; 0 for those that are behind."""


@dataclass(frozen=True)
class Level:
    """A digit along the axis: of registers, of lanes of a warp, or of warps."""

    step: int
    size: int
    register: int | None = None
    """Which digit of the register's number it is."""
    part: Part | None = None
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
            found.append(Level(digit.step, lanes, part=Part(below, lanes), lanes=True))
        if digit.size > lanes:
            rest = digit.size // lanes
            found.append(Level(digit.step * lanes, rest, part=Part(below * lanes, rest)))
    return sorted(found, key=lambda level: level.step)


def _others(layout: Layout, levels: Sequence[Level], number_: int) -> list[Part]:
    """Parts of the thread's number that tell apart groups of a level besides its own."""
    axes = {level.part for level in levels}
    plain = [Part(below, digit.size) for digit, below in layout.positions if digit.axis >= 0 and digit.size > 1]
    along = [level.part for level in levels[number_ + 1 :] if level.part is not None]
    apart = [part for part in plain if not any(_holds(part, one) for one in axes if one is not None)]
    return [*apart, *along]


def _holds(digit: Part, part: Part) -> bool:
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
