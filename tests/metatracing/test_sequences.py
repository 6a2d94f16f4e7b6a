"""Random sequences of calls: whatever the tiers do, results are the reference's and no program serves whom it must not."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import MILLISECOND, Made

import tessera as ts
from tessera import Tensor
from tessera.metatracing import Call, Level

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 3))
LAYOUTS = st.sampled_from(["plain", "turned", "every other", "backwards"])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, 3, -1, True, False, float("inf")])
CALLS = st.tuples(SHAPES, LAYOUTS, LAYOUTS, NUMBERS, st.booleans(), st.integers(1, 12), st.integers(0, 3))


def laid_out(shape: tuple[int, int], layout: str) -> Tensor:
    """An array of a shape, whose elements lie otherwise than one expects."""
    rows, columns = shape
    if layout == "turned":
        return ts.arange(rows * columns, dtype=ts.f32).reshape(columns, rows).T
    if layout == "every other":
        return ts.arange(2 * rows * columns, dtype=ts.f32).reshape(rows, 2 * columns)[:, ::2]
    if layout == "backwards":
        return ts.arange(rows * columns, dtype=ts.f32).reshape(rows, columns)[::-1]
    return ts.arange(rows * columns, dtype=ts.f32).reshape(rows, columns)


def costs(level: Level, call: Call) -> int:
    """Some programs are slower than what they replace, so that tiers go down, too."""
    width = call.values[0].shape[-1]
    return MILLISECOND * (10 if level.tier == 1 else 8 if level.tier == 2 else 4 * width)


def play(calls: list[tuple[Any, ...]]) -> Made:
    """Makes calls; `checked` compares each with the reference, and counts programs that ran for others."""
    made = Made(costs, max_specialized_kernels=4, most_bridges=2, contest_rounds=2, bridge_calls=2)
    with np.errstate(invalid="ignore"):
        for shape, first, second, number, flag, times, change in calls:
            if change == 3:
                made.client.settings = f"settings {number}"
            elif change == 2:
                made.client.captured += 1
            x, y = laid_out(shape, first), laid_out(shape, second)
            for _ in range(times):
                made.checked(x, y, number, flag)
            assert len(made.runtime.manager) <= 4
    assert made.runtime.get_runtime_stats().total_executions <= sum(call[5] for call in calls)
    return made


@settings(max_examples=50)
@given(st.lists(CALLS, min_size=1, max_size=12))
def test_sequences(calls: list[tuple[Any, ...]]) -> None:
    play(calls)


@pytest.mark.acceptance
@settings(max_examples=10_000)
@given(st.lists(CALLS, min_size=1, max_size=12))
def test_many_sequences(calls: list[tuple[Any, ...]]) -> None:
    play(calls)


def test_threads() -> None:
    made = Made(costs, max_specialized_kernels=4, most_bridges=2, contest_rounds=2, bridge_calls=2, sample_period=3)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(150):
                shape = (int(random.integers(1, 4)), int(random.integers(1, 3)))
                x, y = laid_out(shape, "plain"), laid_out(shape, "turned")
                made.checked(x, y, float(random.integers(0, 3)), bool(random.integers(0, 2)))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(made.runtime.manager) <= 4
    assert made["deopts"] > 0
