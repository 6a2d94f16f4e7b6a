"""The meaning of the pipe dialect: a copy lands when its group is waited for, and not before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tessera.errors import RaceError, ShapeError
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.interpreters.core.views import Array, tile_at
from tessera.ir.pipe import copies as pipe


@dataclass(eq=False)
class Ring:
    """Slots: one with a copy in flight cannot be read, one whose tile may still be read cannot be filled."""

    slots: list[Array | None]
    arriving: set[int] = field(default_factory=set[int])
    used: set[int] = field(default_factory=set[int])
    """Slots whose tiles may still be read."""

    def check(self, slot: int) -> None:
        if not 0 <= slot < len(self.slots):
            raise ShapeError(f"slot {slot} of a ring of {len(self.slots)}", hint="count modulo the ring's depth")


@dataclass(eq=False)
class Traffic:
    """The rings of one program instance, its copies that are not committed yet, and groups in flight, oldest first."""

    rings: dict[pipe.RingOp, Ring] = field(default_factory=dict[pipe.RingOp, Ring])
    begun: list[tuple[Ring, int, Array]] = field(default_factory=list[tuple[Ring, int, Any]])
    groups: list[list[tuple[Ring, int, Array]]] = field(default_factory=list[list[tuple[Ring, int, Any]]])


def _of(frame: Frame) -> Traffic:
    return frame.kept.setdefault(Traffic, Traffic())


@meaning(pipe.RingOp)
def _ring(frame: Frame, op: pipe.RingOp, operands: Values) -> Values:
    # A ring has the same memory whenever its op runs again; nothing is left in it.
    ring = _of(frame).rings.setdefault(op, Ring([]))
    ring.slots = [None] * pipe.ring_type(op.result).depth.data
    return [ring]


@meaning(pipe.CopyOp)
def _copy(frame: Frame, op: pipe.CopyOp, operands: Values) -> Values:
    view, *offsets, ring, slot = operands
    ring.check(slot)
    if slot in ring.arriving or slot in ring.used:
        why = "another copy into it is in flight" if slot in ring.arriving else "the tile in it may still be read"
        raise RaceError(f"a copy into slot {slot}: {why}", hint="put pipe.wait in front of the copy")
    ring.arriving.add(slot)
    _of(frame).begun.append((ring, slot, tile_at(view, offsets, pipe.slot_type(op.ring))))
    return []


@meaning(pipe.CommitOp)
def _commit(frame: Frame, op: pipe.CommitOp, operands: Values) -> Values:
    traffic = _of(frame)
    traffic.groups.append(traffic.begun)
    traffic.begun = []
    return []


@meaning(pipe.WaitOp)
def _wait(frame: Frame, op: pipe.WaitOp, operands: Values) -> Values:
    traffic = _of(frame)
    while len(traffic.groups) > op.pending.value.data:
        for ring, slot, found in traffic.groups.pop(0):
            ring.slots[slot] = found
            ring.arriving.discard(slot)
    for ring in traffic.rings.values():
        ring.used.clear()
    return []


@meaning(pipe.GetOp)
def _get(frame: Frame, op: pipe.GetOp, operands: Values) -> Values:
    ring, slot = operands
    ring.check(slot)
    found = ring.slots[slot]
    if slot in ring.arriving or found is None:
        raise RaceError(
            f"slot {slot} is read before its copy has arrived", hint="put pipe.wait between pipe.copy and pipe.get"
        )
    ring.used.add(slot)
    return [found.copy()]
