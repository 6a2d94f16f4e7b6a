"""Checks that consumers release queries before an instance ends: same bits, and never while a dot may read."""

from __future__ import annotations

import numpy as np
import pytest
from partitioned_programs import STAGES, check_partitions, prepared
from rewritten_programs import at_length, rewritten
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe import warp_groups
from tessera.ir.pipe.warp_groups import ConsumerReleaseOp, ConsumerWaitOp, DotStartOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.release_early import release_early
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize


def rewrite(function: tile.FuncOp) -> None:
    pipeline_dots(function)
    assert warp_specialize(function, consumers=3, depth=2, ahead=1)
    insert_waits(function)
    sink_into_branches(function)
    release_early(function)


def released(function: tile.FuncOp) -> dict[SSAValue, list[ConsumerReleaseOp]]:
    """The releases of consumers, by ring."""
    (partitions,) = (op for op in function.body.walk() if isinstance(op, WarpSpecializeOp))
    found: dict[SSAValue, list[ConsumerReleaseOp]] = {}
    for op in partitions.consumer.walk():
        if isinstance(op, ConsumerReleaseOp):
            found.setdefault(op.ring, []).append(op)
    return found


@pytest.mark.acceptance
@pytest.mark.quick(name=["window"])
@pytest.mark.parametrize("name", at_length(STAGES, "causal", "window"))
def test_kernels_give_the_same_bits(name: str) -> None:
    for length in (0, 1, 8, 41):
        module, given = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(ctas=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        check_partitions(module, rewrite, given, [Machine(), *worlds])


def test_queries_go_back_before_the_last_dot_and_the_store() -> None:
    module, given = STAGES["causal"](41)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(module, rewrite, given, [Machine()])
    (queries,) = (ring for ring in released(function) if ring.name_hint == "q_ring")
    first, second = released(function)[queries]
    whole = first.parent_op()
    assert isinstance(whole, scf.IfOp)
    assert second.parent_op() is whole
    assert isinstance(first.prev_op, scf.ForOp)
    behind: list[type[object]] = []
    op = first.next_op
    while op is not None:
        behind.append(type(op))
        op = op.next_op
    assert DotStartOp in behind
    assert tile.StoreOp in behind


def test_what_a_branch_does_not_use_stays() -> None:
    """Tiles of the loop are released where they were."""
    module, _ = STAGES["full"](41)
    module, _, _ = rewritten(module, prepared)

    def before(function: tile.FuncOp) -> None:
        pipeline_dots(function)
        assert warp_specialize(function, consumers=3, depth=2)
        insert_waits(function)
        sink_into_branches(function)

    module, function, _ = rewritten(module, before)
    others = {ring.name_hint: len(ops) for ring, ops in released(function).items() if ring.name_hint != "q_ring"}
    release_early(function)
    assert others == {
        ring.name_hint: len(ops) for ring, ops in released(function).items() if ring.name_hint != "q_ring"
    }
    takes = [op for op in function.body.walk() if isinstance(op, ConsumerWaitOp) and op.ring.name_hint == "q_ring"]
    assert len(takes) == 1
    assert warp_groups.ring_depth(takes[0].ring) == 2
