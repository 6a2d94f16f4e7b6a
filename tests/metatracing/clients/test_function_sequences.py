"""Random sequences of calls of jitted functions in tiers: always the interpreter's answer, at every tier."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_call_sequences import laid_out
from test_tiered_functions import eager_runtime

import tessera as ts
from tessera import jit, knobs
from tessera.metatracing import MetaTracingRuntime

COLUMNS = 4
BOUNDS = {"f32": 2e-6, "bf16": 8e-3}
"""Relative errors in norm; results of bf16 are rounded by the interpreter, too."""
KINDS = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["f32", "f32", "f32", "bf16"]),
    st.sampled_from(["plain", "plain", "transposed", "every other", "backwards"]),
    st.sampled_from([0.0, -0.0, 1.5, 2, True, float("inf"), float("nan")]),
    st.sampled_from([False, False, True]),
)

FEW_KINDS = st.tuples(
    st.sampled_from([1, 3, 4]),
    st.just("f32"),
    st.sampled_from(["plain", "transposed", "backwards"]),
    st.sampled_from([0.5, 2.0, float("nan")]),
    st.sampled_from([False, False, True]),
)
"""Each program takes its while to compile: these need few."""


class Model:
    """A function that sees weights from outside, gets others as arguments, and takes a number and a flag."""

    def __init__(self, tiers: Any = "off") -> None:
        self.held: dict[str, Any] = {"w": weights(0)}
        held = self.held

        def model(x: Any, params: dict[str, Any], rate: float, *, flag: bool) -> dict[str, Any]:
            y = (x + params["b"].to(x.dtype)) * held["w"].to(x.dtype)
            y = ts.sum(y, axis=-1) if flag else y @ params["m"].to(x.dtype)
            return {"y": y * rate, "rows": x.shape[0]}

        self.call = jit(tiers=tiers)(model)


def weights(seed: int) -> ts.Tensor:
    return ts.randn((COLUMNS,), seed=seed)


REFERENCE = Model()
PARAMS = [{"b": weights(seed), "m": ts.randn((COLUMNS, 3), seed=seed + 5)} for seed in (1, 2)]


@st.composite
def sequences(draw: st.DrawFn, of: st.SearchStrategy[tuple[Any, ...]] = KINDS) -> list[tuple[Any, ...]]:
    """Some kind of call and others that differ from it in one thing, each made several times, in any order.

    Now and then arguments are other arrays, and weights that the function sees are replaced or written to.
    """
    first = draw(of)
    indices = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    kinds = [first, *((*first[:index], draw(of)[index], *first[index + 1 :]) for index in indices)]
    steps = st.tuples(st.sampled_from(kinds), st.integers(1, 4), st.integers(0, 1), st.sampled_from("        rw"))
    more = draw(st.lists(steps, min_size=2, max_size=4))
    # The first kind comes often enough to reach the last tier.
    return [(*kind, *rest) for kind, *rest in [(first, 18, 0, " "), *more]]


def play(model: Model, calls: list[tuple[Any, ...]], changes: bool = True) -> None:
    """Makes calls and compares each with the interpreter."""
    for number, (rows, dtype, layout, rate, flag, times, which, change) in enumerate(calls):
        if changes and change == "r":
            model.held["w"] = weights(10 + number % 3)
        elif changes and change == "w":
            model.held["w"][:] = weights(20 + number % 3)
        x = (
            laid_out((rows, COLUMNS), layout).to(getattr(ts, dtype))
            if layout == "plain"
            else laid_out((rows, COLUMNS), layout)
        )
        REFERENCE.held["w"] = model.held["w"]
        with knobs.interpret.using(True):
            wanted = REFERENCE.call(x, PARAMS[which], rate, flag=flag)
        expected = wanted["y"].values().astype(np.float64)
        for _ in range(times):
            found = model.call(x, PARAMS[which], rate, flag=flag)
            assert found["rows"] == rows
            assert found["y"].dtype == wanted["y"].dtype
            close(found["y"].values().astype(np.float64), expected, BOUNDS[str(wanted["y"].dtype)])


def close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], bound: float) -> None:
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    error = np.linalg.norm(found[finite] - expected[finite])
    assert error <= bound * np.linalg.norm(expected[finite]) + 1e-12


def under(runtime: MetaTracingRuntime) -> MetaTracingRuntime:
    """What holds of a runtime, whatever came."""
    assert len(runtime.manager) <= 4
    assert runtime.counts["aborts"] == 0
    return runtime


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs are shared by all sequences, and nothing else is found."""
    with knobs.cache_dir.using(str(tmp_path_factory.mktemp("sequences"))):
        yield


def check(calls: list[tuple[Any, ...]]) -> None:
    runtime = eager_runtime(persist=False, max_specialized_kernels=4, most_bridges=2)
    play(Model(runtime), calls)
    under(runtime)


CALM: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@pytest.mark.acceptance
@settings(max_examples=16, **CALM)
@given(sequences(FEW_KINDS))
def test_sequences(calls: list[tuple[Any, ...]]) -> None:
    check(calls)


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(10))
@settings(max_examples=200, derandomize=False, **CALM)
@given(sequences())
def test_many_sequences(part: int, calls: list[tuple[Any, ...]]) -> None:
    check(calls)


@pytest.mark.acceptance
def test_threads_make_sequences_at_once() -> None:
    runtime = eager_runtime(persist=False, max_specialized_kernels=4, most_bridges=2, sample_period=2)
    model = Model(runtime)
    problems: list[BaseException] = []
    steps = [(rows, "f32", "plain", rate, False, 3, 0, " ") for rows in (2, 3) for rate in (1.5, 2.0)]
    lock = threading.Lock()
    expected: dict[Any, Any] = {}
    for rows, _, layout, rate, flag, *_ in steps:
        x = laid_out((rows, COLUMNS), layout)
        with knobs.interpret.using(True):
            REFERENCE.held["w"] = model.held["w"]
            expected[rows, rate] = REFERENCE.call(x, PARAMS[0], rate, flag=flag)["y"].numpy().astype(np.float64)

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(40):
                rows, _, layout, rate, flag, *_ = steps[int(random.integers(len(steps)))]
                found = model.call(laid_out((rows, COLUMNS), layout), PARAMS[0], rate, flag=flag)
                close(found["y"].numpy().astype(np.float64), expected[rows, rate], BOUNDS["f32"])
        except BaseException as problem:
            with lock:
                problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    under(runtime)
