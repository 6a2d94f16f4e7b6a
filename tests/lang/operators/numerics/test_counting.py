"""Counts, histograms and segments against NumPy: with and without lengths, weights, nothing, numbers out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, check, compare, floats, sample, whole
from compared import seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from lambdas import binary, unary

import tessera as ts
from tessera import knobs
from tessera.dtypes.types import DType

few = settings(max_examples=6)


def segments(kind: str, x: Any, which: Any, count: int) -> Any:
    rows = [x[which == at] for at in range(count)]
    if kind == "sum":
        return np.stack([row.sum(0) for row in rows])
    if kind == "mean":
        return np.stack([row.mean(0) if len(row) else np.full(x.shape[1:], np.nan) for row in rows])
    worst = -np.inf if kind == "max" else np.inf
    return np.stack([getattr(np, kind)(row, axis=0, initial=worst) for row in rows])


def of_segments(kind: str) -> Case:
    run = getattr(ts, f"segment_{kind}")
    return Case(
        binary(lambda x, which: run(x, which, 5)),
        binary(lambda x, which: segments(kind, x, which, 5)),
        lambda size: (floats(size, 3), whole(size, below=4)),
    )


EDGES = np.array([-2.0, -1.0, 0.25, 2.0])
CASES: dict[str, Case] = {
    "bincount": Case(
        unary(lambda x: ts.bincount(x, length=7)),
        unary(lambda x: np.bincount(x, minlength=7)),
        lambda n: (whole(n, below=7),),
    ),
    "bincount, weighted": Case(
        binary(lambda x, w: ts.bincount(x, w, length=5)),
        binary(lambda x, w: np.bincount(x, w, minlength=5)),
        lambda size: (whole(size, below=5), floats(size)),
    ),
    "histogram": Case(unary(lambda x: ts.histogram(x, 10)), np.histogram, lambda size: (floats(size, 5),)),
    "histogram, bins": Case(
        unary(lambda x: ts.histogram(x, 3, density=True)),
        unary(lambda x: np.histogram(x, 3, density=True)),
        lambda size: (floats(size, 5),),
    ),
    "histogram, range": Case(
        binary(lambda x, w: ts.histogram(x, 4, range=(-1, 2), weights=w)),
        binary(lambda x, w: np.histogram(x, 4, range=(-1, 2), weights=w)),
        lambda size: (np.round(floats(size, 5)), floats(size, 5)),
    ),
    "histogram, edges": Case(
        binary(lambda x, edges: ts.histogram(x, edges, density=False)),
        np.histogram,
        lambda size: (np.round(floats(size, 5)), EDGES),
    ),
    **{f"segment_{kind}": of_segments(kind) for kind in ("sum", "mean", "max", "min")},
}


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [ts.f64, ts.f32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    if dtype is ts.f32 and name.startswith("histogram"):
        pytest.skip("elements at the edges of bins round")
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("bincount", "segment_sum")))
def test_native_values(name: str) -> None:
    check(CASES[name], ts.f64)


@few
@given(count=st.sampled_from((0, 1, 5, 40)), seed=seeds)
def test_lengths_are_those_of_numpy(count: int, seed: int) -> None:
    x = whole(count, below=6, seed=seed)
    for most in (0, 3, 9):
        compare(ts.bincount(x, minlength=most), np.bincount(x, minlength=most), ts.f64)
    values = np.random.default_rng(seed).uniform(-3, 3, count)
    if count:
        compare(ts.segment_sum(values, x), segments("sum", values, x, int(x.max()) + 1), ts.f64)
    counts, edges = ts.histogram(values, 6)
    compare([counts, edges], np.histogram(values, 6), ts.f64)
    assert int(ts.sum(counts)) == count


def test_types_of_results() -> None:
    x = ts.asarray([1, 0, 3, 1]).to(ts.i8)
    assert ts.bincount(x).dtype is ts.i64
    assert ts.bincount(x, ts.ones(4, ts.bf16)).dtype is ts.bf16
    assert ts.bincount(x, ts.ones(4, ts.i32)).dtype is ts.i64
    assert ts.segment_sum(ts.full((4,), 100, dtype=ts.i8), x).tolist() == [100, 200, 0, 100]
    assert ts.segment_max(ts.asarray([5, 2, 7, 1]), x, 4).tolist() == [2, 5, -(2**63), 7]
    assert ts.segment_min(ts.asarray([5.0, 2.0, 7.0, 1.0]), x, 4).tolist() == [2.0, 1.0, float("inf"), 7.0]


def test_edges_of_bins() -> None:
    for values in ([], [2.0], [2.0, 2.0], [np.nan]):
        x = np.array(values)
        if values != [np.nan]:
            compare(list(ts.histogram(x, 3)), np.histogram(x, 3), ts.f64)
    inside = ts.histogram(np.array([np.nan, 0.0, 1.0, 2.0, -1.0, 5.0]), 2, range=(0.0, 2.0))
    assert inside[0].tolist() == [1, 2]
    whole_numbers = ts.histogram(ts.asarray([1, 2, 2, 4]), 3)
    compare(list(whole_numbers), np.histogram([1, 2, 2, 4], 3), ts.f64)


def test_numbers_out_of_range() -> None:
    with pytest.raises(ts.RangeError, match="bincount: index 5 is out of range for the counts of size 3"):
        ts.bincount(ts.asarray([0, 5]), length=3)
    with pytest.raises(ts.RangeError, match="bincount: index -1 is out of range"):
        ts.bincount(ts.asarray([0, -1]))
    with pytest.raises(ts.RangeError, match="segment_sum: index 2 is out of range for the segments of size 2"):
        ts.segment_sum(ts.zeros((2, 3)), ts.asarray([0, 2]), 2)

    def counted(x: Any) -> Any:
        return ts.bincount(x, length=3)

    with knobs.checks.using("bounds"), pytest.raises(ts.RangeError, match="out of range"):
        ts.jit(counted)(ts.asarray([0, 5]))


def test_what_does_not_fit_is_refused() -> None:
    for refused in (ts.bincount, unary(lambda x: ts.segment_sum(ts.zeros(3), x))):
        with pytest.raises(ts.ShapeError, match="the size of the result depends on elements"):
            ts.jit(refused)(ts.asarray([1, 2, 0]))
        with pytest.raises(ts.DtypeError, match="expects whole numbers, got f32"):
            refused(ts.zeros(3))
    with pytest.raises(ts.ShapeError, match="bincount: expected one row"):
        ts.bincount(ts.zeros((2, 2), ts.i64))
    with pytest.raises(ts.ShapeError, match=r"segment_max: expected an operand of shape \[4\]"):
        ts.segment_max(ts.zeros((4, 2)), ts.zeros(3, ts.i64), 2)
    with pytest.raises(ts.DtypeError, match="segment_mean expects floats"):
        ts.segment_mean(ts.asarray([1, 2]), ts.asarray([0, 1]), 2)
    with pytest.raises(ts.ShapeError, match="at least one bin"):
        ts.histogram(ts.zeros(3), 0)
    with pytest.raises(ts.ShapeError, match="two edges or more"):
        ts.histogram(ts.zeros(3), ts.zeros(1))
    with pytest.raises(ts.TesseraError, match="no range of numbers"):
        ts.histogram(ts.zeros(3), 2, range=(1.0, 0.0))
    with pytest.raises(ts.TesseraError, match="a range is for a number of bins"):
        ts.histogram(ts.zeros(3), (0.0, 1.0), range=(0.0, 1.0))
