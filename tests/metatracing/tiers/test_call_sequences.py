"""Random sequences of calls: results are the reference's, and no program serves whom it must not."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from forked_children import in_a_child
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_client import MILLISECOND, Made

import tessera as ts
from tessera import Tensor
from tessera.metatracing import Call, TierLevel

SHAPES = st.tuples(st.integers(2, 4), st.integers(2, 3))
LAYOUTS = st.sampled_from(["plain", "plain", "transposed", "every other", "backwards"])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, 3, -1, True, False, float("inf")])
KINDS = st.tuples(SHAPES, LAYOUTS, LAYOUTS, NUMBERS, st.sampled_from([False, False, True]))


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Some kind of call and others that differ from it in one thing, each made several times, in any order.

    Now and then the settings change, or what was captured.
    """
    first = draw(KINDS)
    indices = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    kinds = [first, *((*first[:index], draw(KINDS)[index], *first[index + 1 :]) for index in indices)]
    steps = st.tuples(st.sampled_from(kinds), st.integers(1, 15), st.sampled_from([0] * 12 + [1, 2]))
    return [(*kind, times, change) for kind, times, change in draw(st.lists(steps, min_size=2, max_size=12))]


CAPS: dict[str, Any] = {"max_specialized_kernels": 4, "most_bridges": 2, "contest_rounds": 1, "bridge_calls": 2}


def laid_out(shape: tuple[int, int], layout: str) -> Tensor:
    """An array of a shape, whose elements lie otherwise than one expects."""
    rows, columns = shape
    if layout == "transposed":
        return ts.arange(rows * columns, dtype=ts.f32).reshape(columns, rows).T
    if layout == "every other":
        return ts.arange(2 * rows * columns, dtype=ts.f32).reshape(rows, 2 * columns)[:, ::2]
    if layout == "backwards":
        return ts.arange(rows * columns, dtype=ts.f32).reshape(rows, columns)[::-1]
    return ts.arange(rows * columns, dtype=ts.f32).reshape(rows, columns)


def costs(level: TierLevel, call: Call) -> int:
    """Some programs are slower than what they replace, so that tiers go down, too."""
    special = 9 if call.context["flag"] else 6
    return MILLISECOND * (10 if level.tier == 1 else 8 if level.tier == 2 else special)


def play(calls: list[tuple[Any, ...]], period: int = 0, threads: int = 1) -> Made:
    """Makes calls; `checked` compares each with the reference, and counts programs that ran for others."""
    made = Made(costs, tier3_specialization_threshold_ms=20, sample_period=period, **CAPS)
    if threads > 1:
        # Settings and captures are one for all threads: they change before any of them begins.
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(make, made, [(*call[:-1], 0) for call in calls]) for _ in range(threads)]:
                done.result()
        assert len(made.runtime.manager) <= 4
        return made
    make(made, calls)
    assert made.runtime.get_runtime_stats().total_executions == sum(call[5] for call in calls)
    return made


def make(made: Made, calls: list[tuple[Any, ...]]) -> None:
    with np.errstate(invalid="ignore"):
        for shape, first, second, number, flag, times, change in calls:
            if change == 1:
                made.client.settings = f"settings {number}"
            elif change == 2:
                made.client.captured += 1
            x, y = laid_out(shape, first), laid_out(shape, second)
            for _ in range(times):
                made.checked(x, y, number, flag)
            assert len(made.runtime.manager) <= 4


PERIODS = st.sampled_from([0, 0, 1, 5])
THREADS = st.sampled_from([1, 1, 1, 2])


@settings(max_examples=50)
@given(sequences(), PERIODS, THREADS)
def test_sequences(calls: list[tuple[Any, ...]], period: int, threads: int) -> None:
    play(calls, period, threads)


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(20))
@settings(max_examples=500, derandomize=False)
@given(sequences(), PERIODS, THREADS)
def test_many_sequences(part: int, calls: list[tuple[Any, ...]], period: int, threads: int) -> None:
    """10,000 in all; each part draws others, and processes may share them out."""
    play(calls, period, threads)


@pytest.mark.acceptance
@pytest.mark.parametrize("calls", [2_000, pytest.param(100_000, marks=pytest.mark.acceptance)])
def test_memory_does_not_grow(calls: int) -> None:
    made = Made(lambda level, call: 1000, sample_period=7, max_trace_history=50)
    made.client.ran = deque(maxlen=10)
    arrays = [laid_out((rows, 3), "plain") for rows in range(2, 8)]

    def work() -> int:
        for number in range(calls):
            x = arrays[number % len(arrays)]
            made.tiered(x, x, float(number % 5))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        work()
        before = work()
        assert work() - before < 100_000
    finally:
        tracemalloc.stop()
    assert len(made.runtime.manager) <= 16


def test_a_child_of_a_fork_goes_on_alone() -> None:
    made = Made(costs)
    made.call(4, 8, times=60)
    (site,) = made.runtime.sites()

    def work() -> None:
        assert made.call(4, 8) == [3]
        assert made.call(5, 8) == [3]

    assert in_a_child(work, [site.lock]) == 0


def test_threads() -> None:
    made = Made(costs, sample_period=3, **CAPS)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(150):
                shape = (int(random.integers(1, 4)), int(random.integers(1, 3)))
                x, y = laid_out(shape, "plain"), laid_out(shape, "transposed")
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
