"""Checks that consumers issue the dots of an iteration one after the other: same bits in every order, which loops."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from partitioned_programs import MATMULS, STAGES, check_partitions, prepared
from rewritten_programs import at_length, rewritten

from tessera.interpreters.core.engine import RULES, Frame, Values
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.pipe_warp_groups import WarpGroup
from tessera.ir.pipe.pingpong import PingpongArriveOp, PingpongWaitOp
from tessera.ir.pipe.warp_groups import DotStartOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.loops.live_iterations import split_ranges
from tessera.transforms.pipelining.early_exit_consumers import exit_early
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.late_start_consumers import start_late
from tessera.transforms.pipelining.pingpong_consumers import pingpong
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

OWN_ITERATIONS = {"causal", "grouped queries", "window", "prefix", "alibi", "soft cap"}
"""Kernels in which the last rows need iterations that the first ones do not."""
OWN_STARTS = {"window"}
"""Those in which the first rows need iterations that the last ones do not."""


def rewrite(function: tile.FuncOp, consumers: int = 3, *, common: bool = False) -> None:
    pipeline_dots(function)
    assert warp_specialize(function, consumers=consumers, depth=2)
    start_late(function)
    split_ranges(function, common=lambda _: common)
    insert_waits(function)
    sink_into_branches(function)
    exit_early(function)
    pingpong(function)


def barriers(function: tile.FuncOp) -> list[int]:
    return [sum(isinstance(op, kind) for op in function.body.walk()) for kind in (PingpongWaitOp, PingpongArriveOp)]


@pytest.mark.quick(name=["causal"])
@pytest.mark.parametrize("name", at_length(STAGES, "full", "sigmoid", "causal"))
def test_kernels_give_the_same_bits(name: str) -> None:
    for length in (0, 1, 41):
        module, given = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(ctas=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        found = barriers(check_partitions(module, rewrite, given, [Machine(), *worlds]))
        assert found[0] == found[1]
        assert (found[0] > 0) == (name not in OWN_ITERATIONS)


@pytest.mark.acceptance
@pytest.mark.quick(name=["causal"])
@pytest.mark.parametrize("name", at_length(sorted(OWN_ITERATIONS), "causal", "window"))
def test_iterations_that_all_rows_need_are_ordered(name: str) -> None:
    """Each consumer goes on by itself behind them."""
    for length in (0, 1, 41):
        module, given = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(ctas=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        found = barriers(check_partitions(module, partial(rewrite, common=True), given, [Machine(), *worlds]))
        assert found[0] == found[1] == (0 if name in OWN_STARTS else 1)


def test_consumers_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two dots of a consumer, in different iterations, every other one begins its own."""
    module, given = STAGES["full"](41)
    module, _, _ = rewritten(module, prepared)
    order: list[int] = []
    rule = RULES[PingpongArriveOp]

    def noted(frame: Frame, op: PingpongArriveOp, operands: Values) -> Values | None:
        order.append(frame.kept[WarpGroup].number)
        return rule(frame, op, operands)

    monkeypatch.setitem(RULES, PingpongArriveOp, noted)
    check_partitions(module, rewrite, given, [Machine(chance=np.random.default_rng(3))])
    assert len(order) > 30
    assert order == [number % 3 for number in range(len(order))]


def test_what_only_multiplies_needs_no_order() -> None:
    for make in MATMULS.values():
        module, given = make(41)
        module, _, _ = rewritten(module, prepared)
        function = check_partitions(module, rewrite, given, [Machine()])
        assert any(isinstance(op, DotStartOp) for op in function.body.walk())
        assert barriers(function) == [0, 0]


def test_one_consumer_has_no_barrier() -> None:
    module, given = STAGES["full"](41)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(module, lambda function: rewrite(function, consumers=1), given, [Machine()])
    assert barriers(function) == [0, 0]
