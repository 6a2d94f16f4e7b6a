"""Attention as one decodes: keys split among programs, parts combined, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule
from tessera.bench.operators.decoding import combine, decode_parts


def decoded(q: ts.Tensor, k: ts.Tensor, v: ts.Tensor, splits: int, block: tuple[int, int]) -> ts.Tensor:
    *leading, heads, width = q.shape
    span = -(-k.shape[-2] // (splits * block[1])) * block[1]
    parts = ts.empty((*leading, splits, heads, width), dtype=ts.f32)
    logs = ts.empty((*leading, splits, heads, 1), dtype=ts.f32)
    decode_parts.with_schedule(Schedule(block=block))(parts, logs, q, k, v, span)
    rows = (*leading, splits * heads)
    return combine.with_schedule(Schedule(block=(16, 16)))(
        q, parts.reshape((*rows, width)), logs.reshape((*rows, 1)), splits
    )


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("length", "splits"), [(1, 1), (1, 3), (40, 2), (129, 4)])
def test_parts_make_the_whole(length: int, splits: int, dtype: ts.DType) -> None:
    random = np.random.default_rng(length)
    q = ts.asarray(random.standard_normal((2, 3, 4, 32)).astype(np.float32)).to(dtype)
    k, v = (ts.asarray(random.standard_normal((2, 3, length, 32)).astype(np.float32)).to(dtype) for _ in range(2))
    found = decoded(q, k, v, splits, (16, 16)).to(ts.f32).numpy().astype(np.float64)
    queries, keys, values = (x.to(ts.f32).numpy().astype(np.float64) for x in (q, k, v))
    scores = queries @ keys.swapaxes(-1, -2) / 32**0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ values
    assert np.abs(found - expected).max() <= (2e-6 if dtype is ts.f32 else 2e-2)
