"""Layouts: which thread holds which element of a tile, and in which register.

A thread's number and a register's number are written in digits, fastest first, each with a size of its own. A digit of
axis `a` with step `s` moves `s` elements along that axis; digits of no axis are replicas, threads that hold the same.
So the coordinate of a register is a base, which depends on the thread, plus a constant, which depends on the register:
positions, masks and addresses cost one addition each.

A layout may cover more than a tile has. Elements beyond the tile are ghosts: they hold anything, and whatever looks
at more than one element leaves them out. No size has to be a power of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from tessera.cached_property import cached_property

WARP = 32
REPLICA = -1


class Digit(NamedTuple):
    """One digit: how many values it has, and how far along which axis each moves."""

    size: int
    axis: int
    step: int

    def __str__(self) -> str:
        return f"{self.size}:_" if self.axis == REPLICA else f"{self.size}:{self.axis}*{self.step}"


def replicas(size: int) -> Digit:
    return Digit(size, REPLICA, 0)


class Bits(NamedTuple):
    """A digit of the thread number, and how many threads lie between its values."""

    digit: Digit
    below: int


@dataclass(frozen=True)
class Layout:
    """Digits of the thread's number (taken modulo their product) and of the register's, fastest first."""

    threads: tuple[Digit, ...]
    registers: tuple[Digit, ...]

    @staticmethod
    def of(threads: Iterable[Digit], registers: Iterable[Digit]) -> Layout:
        """A layout in its plainest spelling: no digits of size 1, neighbours that continue each other made one."""
        return Layout(_merged(threads), _merged(registers))

    @cached_property
    def thread_count(self) -> int:
        return prod(digit.size for digit in self.threads)

    @cached_property
    def count(self) -> int:
        """How many registers a thread has of a tile."""
        return prod(digit.size for digit in self.registers)

    @cached_property
    def positions(self) -> tuple[Bits, ...]:
        """The digits of the thread's number with the threads below each."""
        found: list[Bits] = []
        below = 1
        for digit in self.threads:
            found.append(Bits(digit, below))
            below *= digit.size
        return tuple(found)

    def offset(self, register: int, axis: int) -> int:
        """The constant part of a register's coordinate."""
        total = 0
        for digit in self.registers:
            register, value = divmod(register, digit.size)
            if digit.axis == axis:
                total += value * digit.step
        return total

    def offsets(self, axis: int) -> list[int]:
        """The constant parts of all registers' coordinates along an axis."""
        found = [0]
        for digit in self.registers:
            steps = [value * digit.step if digit.axis == axis else 0 for value in range(digit.size)]
            found = [low + high for high, low in product(steps, found)]
        return found

    def base(self, thread: int, axis: int) -> int:
        """The part of coordinates that depends on the thread."""
        return sum(thread // below % digit.size * digit.step for digit, below in self.positions if digit.axis == axis)

    def coverage(self, axis: int) -> int:
        """How many elements it reaches along an axis."""
        digits = (*self.threads, *self.registers)
        return 1 + sum((digit.size - 1) * digit.step for digit in digits if digit.axis == axis)

    def reach(self, axis: int) -> int:
        """The largest base of a thread along an axis."""
        return sum((digit.size - 1) * digit.step for digit in self.threads if digit.axis == axis)

    def has_ghosts(self, shape: Sequence[int]) -> bool:
        return any(self.coverage(axis) > size for axis, size in enumerate(shape))

    @cached_property
    def has_replicas(self) -> bool:
        return any(digit.axis == REPLICA for digit in self.threads)

    # Layouts of other tiles

    def without(self, axis: int) -> Layout:
        """Of the tile that is left when an axis is folded away: its threads become replicas."""
        threads = [replicas(digit.size) if digit.axis == axis else _moved(digit, axis, -1) for digit in self.threads]
        return Layout.of(threads, [_moved(digit, axis, -1) for digit in self.registers if digit.axis != axis])

    def with_axis(self, axis: int) -> Layout:
        """Of the tile with an axis of size 1 put in."""
        return Layout.of(
            [_moved(digit, axis - 1, 1) for digit in self.threads],
            [_moved(digit, axis - 1, 1) for digit in self.registers],
        )

    def narrowed(self, shape: Sequence[int]) -> Layout:
        """Of a tile that this one's repeats along the axes where `shape` is 1."""
        ones = {axis for axis, size in enumerate(shape) if size == 1}
        threads = [replicas(digit.size) if digit.axis in ones else digit for digit in self.threads]
        return Layout.of(threads, [digit for digit in self.registers if digit.axis not in ones])

    def permuted(self, permutation: Sequence[int]) -> Layout:
        """Of a transposed tile: its axis `i` is this one's `permutation[i]`."""
        axis_of = {axis: number for number, axis in enumerate(permutation)} | {REPLICA: REPLICA}
        return Layout.of(
            [Digit(size, axis_of[axis], step) for size, axis, step in self.threads],
            [Digit(size, axis_of[axis], step) for size, axis, step in self.registers],
        )

    def doubled(self, axis: int) -> Layout:
        """Of a tile that has two elements where this one's has one, along an axis: a thread holds both of them.

        In its registers they are neighbours, unless those run along another axis first.
        """
        registers = [_stretched(digit, axis) for digit in self.registers]
        first = 1 if registers and registers[0].axis != axis else 0
        registers.insert(first, Digit(2, axis, 1))
        return Layout.of([_stretched(digit, axis) for digit in self.threads], registers)

    def halved(self, axis: int) -> Layout | None:
        """Of a tile that has one element where this one's has two: threads that hold either hold it.

        None where the two are not the halves of one digit.
        """
        threads = _without_pairs(self.threads, axis, replicas(2))
        registers = _without_pairs(self.registers, axis, Digit(1, axis, 1))
        return None if threads is None or registers is None else Layout.of(threads, registers)

    def has_pairs(self, axis: int) -> bool:
        """Whether a thread has in its registers both of two neighbours along an axis, the first at an even place."""
        return any(digit.axis == axis and digit.step == 1 and digit.size % 2 == 0 for digit in self.registers)

    def run(self, axis: int) -> int:
        """How many neighbours along an axis follow each other in a thread's registers, from the first on."""
        if self.registers and self.registers[0].axis == axis and self.registers[0].step == 1:
            return self.registers[0].size
        return 1

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.threads))}], [{', '.join(map(str, self.registers))}]"


def _moved(digit: Digit, axis: int, by: int) -> Digit:
    return digit._replace(axis=digit.axis + by) if digit.axis > axis and digit.axis != REPLICA else digit


def _stretched(digit: Digit, axis: int) -> Digit:
    return digit._replace(step=2 * digit.step) if digit.axis == axis else digit


def _without_pairs(digits: Iterable[Digit], axis: int, instead: Digit) -> list[Digit] | None:
    """Digits that count pairs along an axis, with another one where a digit counted the two of a pair."""
    found: list[Digit] = []
    for digit in digits:
        size, step = digit.size, digit.step
        if digit.axis != axis or size == 1:
            found.append(digit)
        elif step % 2 == 0:
            found.append(digit._replace(step=step // 2))
        elif step == 1 and size % 2 == 0:
            found += [instead, Digit(size // 2, axis, 1)]
        else:
            return None
    return found


def _merged(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    found: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        last = found[-1] if found else None
        follows = last is not None and last.axis == digit.axis and digit.step == last.size * last.step
        if last is not None and follows:
            found[-1] = last._replace(size=last.size * digit.size)
        else:
            found.append(digit)
    return tuple(found)


# Layouts that hardware or memory asks for


def accumulator(rows: int, columns: int, warps: tuple[int, int] = (4, 1)) -> Layout:
    """Of an accumulator of a dot: a warp has 16 rows by 8 columns of each instruction.

    `warps` lie along rows and columns, rows first; what they do not cover at once, registers do.
    """
    down, across = warps
    threads = [Digit(4, 1, 2), Digit(8, 0, 1), Digit(down, 0, 16), Digit(across, 1, _span(columns, 8, across))]
    registers = [Digit(2, 1, 1), Digit(2, 0, 8), Digit(_pieces(columns, 8, across), 1, 8)]
    registers.append(Digit(_pieces(rows, 16, down), 0, 16 * down))
    return Layout.of(threads, registers)


def _pieces(size: int, unit: int, ways: int) -> int:
    return -(-size // (unit * ways))


def _span(size: int, unit: int, ways: int) -> int:
    return unit * _pieces(size, unit, ways)


def left_operand(rows: int, depth: int, warps: tuple[int, int], bits: int) -> Layout:
    """Of the left operand of a dot whose accumulator has the layout `accumulator(rows, …, warps)`.

    A thread holds 4 bytes of a row side by side, of two rows, twice along the depth.
    """
    down, across = warps
    side = 32 // bits
    threads = [Digit(4, 1, side), Digit(8, 0, 1), Digit(down, 0, 16), replicas(across)]
    registers = [
        Digit(side, 1, 1),
        Digit(2, 0, 8),
        Digit(2, 1, 4 * side),
        Digit(_pieces(depth, 8 * side, 1), 1, 8 * side),
    ]
    registers.append(Digit(_pieces(rows, 16, down), 0, 16 * down))
    return Layout.of(threads, registers)


def paired_operand(rows: int, depth: int) -> Layout:
    """Of a left operand of 8 bits whose depth is paired: each thread holds the columns that it holds of an accumulator.

    Where `left_operand` has 4 neighbours of a row, it has two, and the two that are 8 further.
    """
    threads = [Digit(4, 1, 2), Digit(8, 0, 1), Digit(4, 0, 16)]
    registers = [Digit(2, 1, 1), Digit(2, 1, 8), Digit(2, 0, 8), Digit(_pieces(depth, 16, 1), 1, 16)]
    registers.append(Digit(_pieces(rows, 64, 1), 0, 64))
    return Layout.of(threads, registers)


def right_operand(depth: int, columns: int, warps: tuple[int, int], bits: int) -> Layout:
    """Of the right operand: 4 bytes of a column, twice along the depth."""
    down, across = warps
    side = 32 // bits
    threads = [Digit(4, 0, side), Digit(8, 1, 1), replicas(down), Digit(across, 1, _span(columns, 8, across))]
    registers = [Digit(side, 0, 1), Digit(2, 0, 4 * side), Digit(_pieces(depth, 8 * side, 1), 0, 8 * side)]
    registers.append(Digit(_pieces(columns, 8, across), 1, 8))
    return Layout.of(threads, registers)


def blocked(shape: Sequence[int], threads: int, vector: int, *, order: Sequence[int] | None = None) -> Layout:
    """Neighbouring threads hold neighbouring pieces of `vector` elements along the fastest axis, then of the next.

    `order` has the fastest axis first; without it, that is the last. What all threads do not cover at once, registers
    do. Threads that find nothing left are replicas.
    """
    order = list(reversed(range(len(shape)))) if order is None else list(order)
    held: list[Digit] = []
    repeats: list[Digit] = []
    left, first = threads, True
    digits: list[Digit] = []
    for axis in order:
        unit = min(vector, _ceiling_power(shape[axis])) if first else 1
        if first and unit > 1:
            held.append(Digit(unit, axis, 1))
        first = False
        wide = min(left, _ceiling_power(-(-shape[axis] // unit)))
        digits.append(Digit(wide, axis, unit))
        left //= wide
        repeats.append(Digit(-(-shape[axis] // (unit * wide)), axis, unit * wide))
    digits.append(replicas(left))
    return Layout.of(digits, [*held, *repeats])


def _ceiling_power(size: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(0, size - 1).bit_length()
