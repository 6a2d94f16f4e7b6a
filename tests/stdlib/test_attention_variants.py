"""Attention with logarithms of its sums, and with a bias for each pair, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, stdlib

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = Schedule(block=(16, 32))


def scores_of(q: Array, k: Array) -> Array:
    return q.astype(np.float64) @ k.swapaxes(-1, -2).astype(np.float64) / q.shape[-1] ** 0.5


def weighed(scores: Array, v: Array) -> tuple[Array, Array]:
    """The result, and the logarithm of each row's sum of exponentials."""
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return weights / total @ v.astype(np.float64), (top + np.log(total))[..., 0]


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(len(shapes))
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.quick
@pytest.mark.parametrize("mask", [None, stdlib.causal])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (17, 65), (40, 32)])
def test_logarithms_of_sums(queries: int, keys: int, mask: Any) -> None:
    q, k, v = arrays((2, queries, 32), (2, keys, 32), (2, keys, 32))
    found, logs = stdlib.attention_lse.with_schedule(BLOCK)(*map(ts.asarray, (q, k, v)), mask=mask)
    scores = scores_of(q, k)
    if mask is not None:
        scores = np.where(np.tri(queries, keys, dtype=np.bool_), scores, -np.inf)
    expected, sums = weighed(scores, v)
    assert np.abs(found.numpy() - expected).max() <= 2e-6
    assert logs.shape == (2, queries)
    assert np.abs(logs.numpy() - sums).max() <= 2e-6


@pytest.mark.quick(2)
@pytest.mark.parametrize("leading", [(), (1, 3), (2, 1), (2, 3)], ids=str)
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (17, 65), (40, 32)])
def test_a_bias_for_each_pair(queries: int, keys: int, leading: tuple[int, ...]) -> None:
    """For all alike, for each head, for each batch, or for each of both."""
    q, k, v, bias = arrays((2, 3, queries, 32), (2, 3, keys, 32), (2, 3, keys, 32), (*leading, queries, keys))
    found = stdlib.bias_attention.with_schedule(BLOCK)(*map(ts.asarray, (q, k, v, bias)))
    expected, _ = weighed(scores_of(q, k) + bias, v)
    assert np.abs(found.numpy() - expected).max() <= 2e-6
