"""Rings that share barriers: those that are filled, waited for and released together, iteration by iteration.

A wait for the first of two such rings is a wait for the second. Together means side by side, with the same pipeline
state, no wait and no change of memory in between, and always the same one first.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import warp_groups
from tessera.ir.pipe.prepare import is_prepared
from tessera.ir.pipe.transpose import is_transposed_from, is_transposed_into
from tessera.ir.tile import dialect as tile

RingUse = warp_groups.ProducerCopies | warp_groups.ConsumerWaitOp | warp_groups.ConsumerReleaseOp


def leaders(function: tile.FuncOp) -> dict[SSAValue, SSAValue]:
    """For each ring the one whose barriers it uses, itself or an earlier one."""
    rings: list[SSAValue] = [op.result for op in function.body.walk() if isinstance(op, pipe.RingOp)]
    found = {ring: ring for ring in rings}
    for ring in rings:
        following = _companion(ring)
        if following is not None and found[following] is following:
            found[following] = ring
    for ring in rings:
        while found[ring] is not found[found[ring]]:
            found[ring] = found[found[ring]]
    return found


def _uses(ring: SSAValue) -> list[RingUse]:
    return [use.operation for use in ring.uses if isinstance(use.operation, RingUse)]


def _companion(ring: SSAValue) -> SSAValue | None:
    """The ring that always follows another one."""
    followers = [_follower(op) for op in _uses(ring)]
    rings = {op.ring if op is not None else None for op in followers}
    if len(rings) != 1:
        return None
    (other,) = rings
    if other is None or other is ring or _is_between(ring) or _is_between(other):
        return None
    if pipe.ring_type(other).depth != pipe.ring_type(ring).depth:
        return None
    return other if set(followers) == set(_uses(other)) else None


def _is_between(ring: SSAValue) -> bool:
    """Whether the preparer writes a ring, or transposes its tiles: it waits for each of those by itself."""
    return is_transposed_into(ring) or is_prepared(ring) or is_transposed_from(ring)


def _follower(op: RingUse) -> RingUse | None:
    """The same use of another ring right behind an op, in the same iteration."""
    following: Operation | None = op.next_op
    while following is not None and is_side_effect_free(following):
        following = following.next_op
    if isinstance(following, RingUse) and type(following) is type(op) and following.state is op.state:
        return following
    return None
