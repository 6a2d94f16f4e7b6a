"""Memory plans: where temporary arrays lie in one arena, so that those that are not needed at once share bytes.

The memory of a result is there from the beginning of a call, and it is not needed before it is first written: temporary
arrays that are gone by then may lie in it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from tessera.programs.buffer_assignment import (
    ARGUMENT,
    RESULT,
    TEMPORARY,
    Act,
    BufferAssignment,
    BufferSlice,
    Repeat,
    inner_of,
    reads_of,
    writes_of,
)
from tessera.shapes.tracked import Again, Made, Trail

ALIGNMENT = 256


class Slot(NamedTuple):
    """A part of the arena that a piece of memory has from one act to another, both included.

    With `home`, it is a part of that piece of memory instead, which a result is written to later.
    """

    piece: int
    offset: int
    nbytes: int
    first: int
    last: int
    home: int | None = None


@dataclass(frozen=True)
class Plan:
    """The arena of a program for given sizes. `least` is what of it is alive at once at the worst moment.

    Pieces that iterations of a loop swap have two slots.
    """

    nbytes: int
    least: int
    slots: tuple[Slot, ...]
    donors: Mapping[int, int] = field(default_factory=dict[int, int])
    """Results that may lie in the memory of arguments that are given away: the piece, and the argument's number."""

    def offsets(self) -> Mapping[int, list[int]]:
        """The offset of each piece in the arena; two for those that are swapped."""
        found: dict[int, list[int]] = {}
        for slot in self.slots:
            found.setdefault(slot.piece, []).append(slot.offset)
        return found

    def homes(self) -> Mapping[int, int]:
        """The pieces that lie in the memory of a result, and in which."""
        return {slot.piece: slot.home for slot in self.slots if slot.home is not None}


@dataclass
class _Life:
    piece: int
    nbytes: int
    first: int
    last: int


_TRIES = 40
_MOST_CODES = 8


def plan(buffers: BufferAssignment, *, lend: bool = True, donors: Mapping[int, int] = MappingProxyType({})) -> Plan:
    """The plan of a program's buffers, as `Planner` makes it. Results with `donors` have no memory to lend before."""
    planner = Planner(buffers, lend=lend, without=donors)
    return replace(planner.plan(*[buffers.pieces[piece].nbytes for piece in planner.pieces]), donors=donors)


class Planner:
    """Makes the plans of buffers that differ in sizes alone: what is alive when does not depend on them.

    `pieces` are those whose bytes a plan depends on. No piece of memory that has some may have none for other sizes.
    """

    def __init__(self, buffers: BufferAssignment, *, lend: bool = True, without: Collection[int] = ()) -> None:
        found = lives_of(buffers)
        self._lives = found.temporary
        self._written = {piece: first for piece, first in found.written.items() if piece not in without}
        self._lend = lend
        self.pieces = tuple(dict.fromkeys([*(life.piece for life in self._lives), *self._written]))
        self._again = Again(_MOST_CODES)

    def plan(self, *nbytes: int) -> Plan:
        """The plan for pieces of so many bytes, in the order of `pieces`."""
        return self._again.found(nbytes) or self._again.tracked(nbytes, self._tracked) or self._planned(nbytes)

    def _planned(self, nbytes: Sequence[int]) -> Plan:
        sizes = dict(zip(self.pieces, nbytes, strict=True))
        lives = [_Life(one.piece, _rounded(sizes[one.piece]), one.first, one.last) for one in self._lives]
        return _planned(lives, self._written if self._lend else {}, sizes)

    def _tracked(self, trail: Trail, nbytes: Sequence[Any]) -> Made:
        plan = self._planned(nbytes)
        return trail.made(Plan, plan.nbytes, plan.least, tuple([trail.made(Slot, *slot) for slot in plan.slots]))


def _planned(lives: list[_Life], written: Mapping[int, int], sizes: Mapping[int, int]) -> Plan:
    """Puts one array after the other into the gap that fits best, the largest first.

    Where that takes more than is alive at once, other orders are tried: the array that ends last comes first then.
    Results that are `written` lend their memory to arrays that would be alive at the worst moment otherwise.
    """
    lent = _lent(lives, written, sizes) if written else []
    least = _worst(lives)[0]
    order = sorted(lives, key=lambda one: (-one.nbytes, one.first, one.piece))
    best = found = _packed(order)
    for _ in range(_TRIES):
        if _end(best) == least:
            break
        last = max(range(len(found)), key=lambda index: found[index].offset + found[index].nbytes)
        order.insert(0, order.pop(last))
        found = _packed(order)
        if _end(found) < _end(best):
            best = found
    slots = sorted([*best, *lent], key=lambda slot: (slot.first, slot.offset))
    return Plan(_end(best), least, tuple(slots))


def _worst(lives: Sequence[_Life]) -> tuple[int, int]:
    """The most bytes that are alive at once, and when."""
    most = moment = alive = 0
    ending = sorted(lives, key=lambda one: one.last)
    gone = 0
    for life in sorted(lives, key=lambda one: one.first):
        while ending[gone].last < life.first:
            alive -= ending[gone].nbytes
            gone += 1
        alive += life.nbytes
        # Those that begin at one moment are counted together: the sum of all of them is the largest.
        if alive > most:
            most, moment = alive, life.first
    return most, moment


def _lent(lives: list[_Life], written: Mapping[int, int], sizes: Mapping[int, int]) -> list[Slot]:
    """Takes arrays out of `lives` that may lie in results, as long as that makes the worst moment better."""
    slots: list[Slot] = []
    swapped = {one.piece for index, one in enumerate(lives) if one in lives[:index]}
    while True:
        most, moment = _worst(lives)
        around = [one for one in lives if one.first <= moment <= one.last and one.piece not in swapped]
        found: Slot | None = None
        for life in sorted(around, key=lambda one: (-one.nbytes, one.piece)):
            found = next(_homes(life, slots, written, sizes), None)
            if found is not None:
                lives.remove(life)
                slots.append(found)
                break
        if found is None or not most:
            return slots


def _homes(life: _Life, slots: Sequence[Slot], written: Mapping[int, int], sizes: Mapping[int, int]) -> Iterator[Slot]:
    """Where an array fits into results that are written when it is gone, the smallest of them first."""
    for home, first in sorted(written.items(), key=lambda item: sizes[item[0]]):
        room, needed = sizes[home], sizes[life.piece]
        if life.last >= first or needed > room:
            continue
        others = sorted(
            (slot.offset, slot.offset + slot.nbytes)
            for slot in slots
            if slot.home == home and slot.first <= life.last and life.first <= slot.last
        )
        offset = _gap(others, life.nbytes)
        if offset + needed <= room:
            yield Slot(life.piece, offset, life.nbytes, life.first, life.last, home)


def _end(slots: Sequence[Slot]) -> int:
    return max((slot.offset + slot.nbytes for slot in slots), default=0)


def _packed(order: Sequence[_Life]) -> list[Slot]:
    """Gives each array, in this order, the best gap that is free during all its life."""
    slots: list[Slot] = []
    for life in order:
        others = sorted(
            (slot.offset, slot.offset + slot.nbytes)
            for slot in slots
            if slot.first <= life.last and life.first <= slot.last
        )
        slots.append(Slot(life.piece, _gap(others, life.nbytes), life.nbytes, life.first, life.last))
    return slots


def _gap(taken: Sequence[tuple[int, int]], nbytes: int) -> int:
    """The smallest gap that so many bytes fit in; the first of such; behind all others where there is none."""
    best: tuple[int, int] | None = None
    end = 0
    for start, stop in taken:
        room = start - end
        if room >= nbytes and (best is None or room < best[0]):
            best = room, end
        end = max(end, stop)
    return end if best is None else best[1]


class Lives(NamedTuple):
    """From which act to which each temporary piece is needed, which act first touches each result, and last each
    argument; acts by their numbers."""

    temporary: list[_Life]
    written: dict[int, int]
    read: dict[int, int]
    acts: dict[int, Act]


def lives_of(buffers: BufferAssignment) -> Lives:
    """When each piece of memory is needed."""
    # Arguments are there from the beginning.
    known = {number: _Life(number, 0, 0, 0) for number, piece in enumerate(buffers.pieces) if piece.kind == ARGUMENT}
    numbered: dict[int, Act] = {}
    swapped: set[int] = set()
    behind = _reached(buffers)

    def touch(piece: int, moment: int) -> None:
        for each in (piece, *behind.get(piece, ())):
            if buffers.pieces[each].kind not in (TEMPORARY, RESULT, ARGUMENT):
                continue
            life = known.get(each)
            if life is None:
                known[each] = _Life(each, _rounded(buffers.pieces[each].nbytes), moment, moment)
            else:
                life.first, life.last = min(life.first, moment), max(life.last, moment)

    def walk(acts: Sequence[Act], moment: int) -> int:
        for act in acts:
            moment += 1
            start = moment
            numbered[moment] = act
            for buffer in (*reads_of(act), *writes_of(act)):
                touch(buffer.piece, moment)
            for inner in inner_of(act):
                moment = walk(inner, moment)
            if isinstance(act, Repeat):
                moment += 1
                # What a loop reads, it reads in every iteration, and what it carries on is needed all the time.
                for piece in {buffer.piece for buffer in _touched(act)}:
                    life = known.get(piece)
                    if piece in act.swapped or piece in behind or (life is not None and life.first < start):
                        touch(piece, start)
                        touch(piece, moment)
                swapped.update(act.swapped)
        return moment

    end = walk(buffers.acts, 0)
    for buffer in buffers.results:
        touch(buffer.piece, end + 1)
    lives: list[_Life] = []
    for life in known.values():
        if life.nbytes and buffers.pieces[life.piece].kind == TEMPORARY:
            lives += [life, life] if life.piece in swapped else [life]
    written = {one: life.first for one, life in known.items() if buffers.pieces[one].kind == RESULT}
    read = {one: life.last for one, life in known.items() if buffers.pieces[one].kind == ARGUMENT}
    return Lives(lives, written, read, numbered)


def _touched(act: Act) -> Iterator[BufferSlice]:
    if isinstance(act, Repeat):
        yield from (one.array for one in act.along)
        if act.test is not None:
            yield act.test
    for inner in inner_of(act):
        for one in inner:
            yield from reads_of(one)
            yield from writes_of(one)
            yield from _touched(one)


def _reached(buffers: BufferAssignment) -> dict[int, set[int]]:
    """The pieces that variables may lead to, at however many steps."""
    found = {number: set(piece.behind) for number, piece in enumerate(buffers.pieces) if piece.behind}
    changed = True
    while changed:
        changed = False
        for reached in found.values():
            more = set[int]().union(*(found.get(one, ()) for one in reached)) - reached
            reached.update(more)
            changed = changed or bool(more)
    return found


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
