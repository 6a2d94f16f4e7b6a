"""Checks that consumers begin loops where their own rows need them to: same bits, fewer dots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import STAGES, attention, check_partitions, prepared
from rewritten_programs import at_length, rewritten
from xdsl.dialects import scf

from tessera import stdlib
from tessera.interpreters.core.engine import RULES, Frame, Values
from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe.warp_groups import ConsumerWaitOp, DotStartOp
from tessera.ir.tile import dialect as tile
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics
from tessera.transforms.algebra.lazy_rescale import rescale_lazily
from tessera.transforms.algebra.merge_masks import merge_masks
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.loops.live_iterations import ROWS_BEGIN, split_ranges
from tessera.transforms.pipelining.early_exit_consumers import exit_early
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.late_start_consumers import start_late
from tessera.transforms.pipelining.release_early import release_early
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

Rewrite = Callable[[tile.FuncOp], None]


@kernel
def coming(q: Any, k: Any, v: Any, window: int):
    """Each query sees itself and the keys behind it, from `window` before it on."""
    here = intrinsics.context()
    queries = intrinsics.load(q)
    acc = intrinsics.zeros((here.m, here.d))
    for block in intrinsics.range_n(k.shape, here.n):
        rows, cols = intrinsics.row_index(), intrinsics.col_index(block)
        scores = intrinsics.dot(queries, intrinsics.load(k, block).T)
        scores = intrinsics.where(rows - cols < window, scores, 0.0)
        acc = intrinsics.dot(intrinsics.cast(scores, v.dtype), intrinsics.load(v, block), acc)
    return intrinsics.cast(acc, q.dtype)


def with_skips(consumers: int, depth: int, *, skew: bool, lazy: bool = False, begins: bool = True) -> Rewrite:
    def rewrite(function: tile.FuncOp) -> None:
        if lazy:
            rescale_lazily(function)
        if skew:
            pipeline_dots(function)
        assert warp_specialize(function, consumers=consumers, depth=depth)
        if begins:
            start_late(function)
        split_ranges(function)
        merge_masks(function)
        insert_waits(function)
        sink_into_branches(function)
        release_early(function)
        exit_early(function)

    return rewrite


def handed_on(function: tile.FuncOp) -> int:
    """Loops in front of dots that wait for tiles and compute nothing."""
    found = 0
    for loop in [op for op in function.body.walk() if isinstance(op, scf.ForOp)]:
        inside = {type(op) for op in loop.body.walk()}
        behind = loop.next_op
        while behind is not None and not behind.regions:
            behind = behind.next_op
        before_dots = behind is not None and any(isinstance(op, DotStartOp) for op in behind.walk())
        found += ConsumerWaitOp in inside and DotStartOp not in inside and before_dots
    return found


@pytest.mark.quick(window=[7])
@pytest.mark.parametrize("skew", at_length([True, False], True))
@pytest.mark.parametrize("window", at_length([1, 7, 11, 30, 100], 7, 100))
def test_windows_give_the_same_bits(window: int, skew: bool) -> None:
    for length, consumers, depth in ((0, 2, 2), (1, 3, 1), (41, 3, 2), (53, 2, 3), (90, 3, 2)):
        module, given = attention(stdlib.window_attention, window)(length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(ctas=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        function = check_partitions(module, with_skips(consumers, depth, skew=skew), given, [Machine(), *worlds])
        assert handed_on(function)


@pytest.mark.acceptance
@settings(max_examples=8, deadline=None)
@given(
    window=st.integers(-20, 80),
    length=st.integers(0, 70),
    consumers=st.sampled_from([2, 3]),
    skew=st.booleans(),
    lazy=st.booleans(),
)
def test_any_window(window: int, length: int, consumers: int, skew: bool, lazy: bool) -> None:
    for made in (stdlib.window_attention, coming):
        module, given = attention(made, window)(length)
        module, _, _ = rewritten(module, prepared)
        # Lazy maxima change last bits: what they make is compared with itself.
        if lazy:
            module, _, _ = rewritten(module, rescale_lazily)
        check_partitions(
            module, with_skips(consumers, 2, skew=skew), given, [Machine(chance=np.random.default_rng(length))]
        )


def test_rows_that_see_later_keys_compute_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a window of 11 over 24 rows and 3 consumers, each needs three blocks of 8, where the instance has five."""
    started: list[object] = []
    rule = RULES[DotStartOp]

    def counted(frame: Frame, op: DotStartOp, operands: Values) -> Values | None:
        started.append(op)
        return rule(frame, op, operands)

    monkeypatch.setitem(RULES, DotStartOp, counted)
    module, given = attention(stdlib.window_attention, 11)(53)
    module, _, _ = rewritten(module, prepared)
    found: list[int] = []
    for begins in (True, False):
        started.clear()
        check_partitions(module, with_skips(3, 2, skew=True, begins=begins), given, [Machine()])
        found.append(len(started))
    assert found == [84, 108]


def test_one_consumer_has_all_rows() -> None:
    module, given = STAGES["window"](41)
    module, _, _ = rewritten(module, prepared)
    assert not handed_on(check_partitions(module, with_skips(1, 2, skew=True), given, [Machine()]))


def test_beginnings_of_loops_are_marked() -> None:
    for name, make in STAGES.items():
        _, function, _ = rewritten(make(41)[0], prepared)
        marks = [op for op in function.body.walk() if ROWS_BEGIN in op.attributes]
        assert bool(marks) == (name == "window")
