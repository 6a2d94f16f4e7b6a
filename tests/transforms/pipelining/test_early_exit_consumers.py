"""Checks that consumers leave loops when their own rows need no more iterations: same bits, fewer dots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from partitioned_programs import STAGES, check_partitions, prepared
from rewritten_programs import at_length, rewritten
from xdsl.dialects import scf

from tessera.interpreters.core.engine import RULES, Frame, Values
from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe.warp_groups import ConsumerWaitOp, DotStartOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.lazy_rescale import rescale_lazily
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.loops.live_iterations import ROWS_END, split_ranges
from tessera.transforms.pipelining.early_exit_consumers import exit_early
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.late_start_consumers import start_late
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

SHORTENED = {"causal", "grouped queries", "window", "prefix", "alibi", "soft cap"}
"""Kernels in which the last rows need iterations that the first ones do not."""


def with_skips(consumers: int, depth: int, *, skew: bool, lazy: bool = False) -> Callable[[tile.FuncOp], None]:
    def rewrite(function: tile.FuncOp) -> None:
        if lazy:
            rescale_lazily(function)
        if skew:
            pipeline_dots(function)
        assert warp_specialize(function, consumers=consumers, depth=depth)
        start_late(function)
        split_ranges(function)
        insert_waits(function)
        sink_into_branches(function)
        exit_early(function)

    return rewrite


def handed_on(function: tile.FuncOp) -> list[scf.ForOp]:
    """Loops that take tiles and compute nothing."""
    loops = [op for op in function.body.walk() if isinstance(op, scf.ForOp)]
    kinds = {loop: {type(op) for op in loop.body.walk()} for loop in loops}
    return [loop for loop in loops if ConsumerWaitOp in kinds[loop] and DotStartOp not in kinds[loop]]


@pytest.mark.quick(name=["window"])
@pytest.mark.parametrize("name", at_length(STAGES, "causal", "window", "full"))
def test_kernels_give_the_same_bits(name: str) -> None:
    for length, consumers, depth, skew in ((0, 2, 2, True), (1, 3, 1, True), (41, 3, 2, True), (41, 2, 2, False)):
        module, given = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(ctas=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        function = check_partitions(module, with_skips(consumers, depth, skew=skew), given, [Machine(), *worlds])
        assert bool(handed_on(function)) == (name in SHORTENED)


def test_rows_that_see_less_compute_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a causal mask over 24 rows and 3 consumers, the first needs one block of 8 where the last needs three.

    Program instances have 3, 6 and 6 blocks for each consumer; their own rows need 1, 2, 3; 4, 5, 6; and 6, 6, 6.
    """
    started: list[object] = []
    rule = RULES[DotStartOp]

    def counted(frame: Frame, op: DotStartOp, operands: Values) -> Values | None:
        started.append(op)
        return rule(frame, op, operands)

    monkeypatch.setitem(RULES, DotStartOp, counted)
    module, given = STAGES["causal"](41)
    module, _, _ = rewritten(module, prepared)
    found: list[int] = []
    for rewrite in (with_skips(3, 2, skew=True), without_skips):
        started.clear()
        check_partitions(module, rewrite, given, [Machine()])
        found.append(len(started))
    assert found == [156, 180]


def without_skips(function: tile.FuncOp) -> None:
    pipeline_dots(function)
    assert warp_specialize(function, consumers=3, depth=2)
    split_ranges(function)
    insert_waits(function)


def test_one_consumer_has_all_rows() -> None:
    module, given = STAGES["causal"](41)
    module, _, _ = rewritten(module, prepared)
    assert not handed_on(check_partitions(module, with_skips(1, 2, skew=True), given, [Machine()]))


def test_ends_of_loops_are_marked() -> None:
    for name, make in STAGES.items():
        _, function, _ = rewritten(make(41)[0], prepared)
        marks = [op for op in function.body.walk() if ROWS_END in op.attributes]
        assert bool(marks) == (name in SHORTENED)
