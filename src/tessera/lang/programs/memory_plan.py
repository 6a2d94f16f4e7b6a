"""Memory plans: where temporary arrays lie in one arena, so that those that are not needed at once share bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tessera.lang.programs.layout import TEMPORARY, Act, Layout, Place, Repeat, inner_of, reads_of, writes_of

ALIGNMENT = 256


@dataclass(frozen=True)
class Slot:
    """A part of the arena that a piece of memory has from one act to another, both included."""

    piece: int
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """The arena of a program for given sizes. `least` is what is alive at once at the worst moment: no plan needs less.

    Pieces that turns of a loop swap have two slots.
    """

    nbytes: int
    least: int
    slots: tuple[Slot, ...]

    def offsets(self) -> Mapping[int, list[int]]:
        """Where each piece begins; two places for those that are swapped."""
        found: dict[int, list[int]] = {}
        for slot in self.slots:
            found.setdefault(slot.piece, []).append(slot.offset)
        return found


@dataclass
class _Life:
    piece: int
    nbytes: int
    first: int
    last: int


_TRIES = 40


def plan(layout: Layout) -> Plan:
    """Puts one array after the other where it fits best, the largest first.

    Where that takes more than is alive at once, other orders are tried: whatever ends last comes first then.
    """
    lives = list(_lives(layout))
    moments = {life.first for life in lives}
    alive = [sum(life.nbytes for life in lives if life.first <= moment <= life.last) for moment in moments]
    least = max(alive, default=0)
    order = sorted(lives, key=lambda one: (-one.nbytes, one.first, one.piece))
    best = found = _placed(order)
    for _ in range(_TRIES):
        if _end(best) == least:
            break
        last = max(range(len(found)), key=lambda place: found[place].offset + found[place].nbytes)
        order.insert(0, order.pop(last))
        found = _placed(order)
        if _end(found) < _end(best):
            best = found
    return Plan(_end(best), least, tuple(sorted(best, key=lambda slot: (slot.first, slot.offset))))


def _end(slots: Sequence[Slot]) -> int:
    return max((slot.offset + slot.nbytes for slot in slots), default=0)


def _placed(order: Sequence[_Life]) -> list[Slot]:
    """Each array at the best place that is free all its life, in this order."""
    placed: list[Slot] = []
    for life in order:
        others = sorted(
            (slot.offset, slot.offset + slot.nbytes)
            for slot in placed
            if slot.first <= life.last and life.first <= slot.last
        )
        placed.append(Slot(life.piece, _gap(others, life.nbytes), life.nbytes, life.first, life.last))
    return placed


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


def _lives(layout: Layout) -> Iterator[_Life]:
    """From which act to which each temporary piece is needed."""
    known: dict[int, _Life] = {}
    swapped: set[int] = set()
    behind = _reached(layout)

    def touch(piece: int, moment: int) -> None:
        for each in (piece, *behind.get(piece, ())):
            if layout.pieces[each].kind != TEMPORARY:
                continue
            life = known.get(each)
            if life is None:
                known[each] = _Life(each, _rounded(layout.pieces[each].nbytes), moment, moment)
            else:
                life.first, life.last = min(life.first, moment), max(life.last, moment)

    def walk(acts: Sequence[Act], moment: int) -> int:
        for act in acts:
            moment += 1
            start = moment
            for place in (*reads_of(act), *writes_of(act)):
                touch(place.piece, moment)
            for inner in inner_of(act):
                moment = walk(inner, moment)
            if isinstance(act, Repeat):
                moment += 1
                # What a loop looks at, it looks at in every turn, and what it carries on is needed all the time.
                for piece in {place.piece for place in _touched(act)}:
                    life = known.get(piece)
                    if piece in act.swapped or piece in behind or (life is not None and life.first < start):
                        touch(piece, start)
                        touch(piece, moment)
                swapped.update(act.swapped)
        return moment

    end = walk(layout.acts, 0)
    for place in layout.results:
        touch(place.piece, end + 1)
    for life in known.values():
        if life.nbytes:
            yield life
            if life.piece in swapped:
                yield life


def _touched(act: Act) -> Iterator[Place]:
    if isinstance(act, Repeat):
        yield from (one.array for one in act.along)
        if act.test is not None:
            yield act.test
    for inner in inner_of(act):
        for one in inner:
            yield from reads_of(one)
            yield from writes_of(one)
            yield from _touched(one)


def _reached(layout: Layout) -> dict[int, set[int]]:
    """The pieces that variables may lead to, at however many steps."""
    found = {number: set(piece.behind) for number, piece in enumerate(layout.pieces) if piece.behind}
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
