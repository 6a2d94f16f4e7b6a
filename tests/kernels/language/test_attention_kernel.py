"""The specification's attention kernel, as written there, against attention in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from specified import KVCache, flash_attention

import tessera as ts
from tessera import Schedule, bf16
from tessera.dtypes.philox import Stream, philox4x32

Array = np.ndarray[Any, np.dtype[Any]]
_BOUND = 4e-3


def dropout_mask(heads: int, rows: int, columns: int, probability: float) -> Array:
    """The factors 0 or 1/(1 − p) by which the kernel multiplies, from each element's position alone."""
    index = np.arange(heads * rows * columns, dtype=np.uint64).reshape(heads, rows, columns)
    counter = np.zeros((*index.shape, 4), np.uint32)
    counter[..., 0], counter[..., 1], counter[..., 2] = index & 0xFFFFFFFF, index >> 32, Stream.DROPOUT
    word = philox4x32(counter, (0, 0))[..., 0].astype(np.uint64)
    return np.where(word >= int(probability * 2**32), 1 / (1 - probability), 0.0)


def attention(q: Array, k: Array, v: Array, *, causal: bool, mask: Array | None = None) -> Array:
    q, k, v = q.astype(np.float64), k.astype(np.float64), v.astype(np.float64)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], k.shape[1], dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    shares = weights / weights.sum(-1, keepdims=True)
    return (shares if mask is None else shares * mask) @ v


@pytest.mark.quick(3)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize(("s", "t"), [(1, 1), (17, 17), (64, 64), (200, 200), (17, 200), (200, 17)])
@pytest.mark.parametrize("d", [16, 64, 80])
def test_equals_attention_in_float64(s: int, t: int, d: int, dropout: float, causal: bool) -> None:
    q, k, v = (ts.randn((2, rows, d), bf16, seed=seed) for seed, rows in enumerate((s, t, t)))
    mask = dropout_mask(2, s, t, dropout) if dropout else None
    expected = attention(q.numpy(), k.numpy(), v.numpy(), causal=causal, mask=mask)
    found = flash_attention(q, KVCache(k, v), dropout=dropout, causal=causal)
    assert found.dtype is bf16
    assert found.shape == (2, s, d)
    error = np.linalg.norm(found.numpy().astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < _BOUND


@pytest.mark.parametrize("block", [(16, 16), (64, 96), (128, 32), (33, 7)])
def test_every_block_size_gives_the_same_attention(block: tuple[int, int]) -> None:
    q, k, v = (ts.randn((1, 50, 16), bf16, seed=seed) for seed in range(3))
    expected = attention(q.numpy(), k.numpy(), v.numpy(), causal=True)
    found = flash_attention.with_schedule(Schedule(block=block))(q, KVCache(k, v), dropout=0.0, causal=True)
    assert np.linalg.norm(found.numpy().astype(np.float64) - expected) / np.linalg.norm(expected) < _BOUND


def test_rows_with_everything_masked_are_zero() -> None:
    q = ts.randn((1, 8, 16), bf16, seed=1)
    nothing = ts.full((1, 5, 16), -np.inf, bf16)
    ones = ts.ones((1, 8, 16), bf16)
    found = flash_attention(ones, KVCache(nothing, q[:, :5]), dropout=0.0, causal=False)
    assert (found.numpy() == 0).all()
    empty = flash_attention(q, KVCache(q[:, :0], q[:, :0]), dropout=0.0, causal=False)
    assert (empty.numpy() == 0).all()


def test_the_schedule_is_the_first_valid_point_and_says_so() -> None:
    assert flash_attention.schedule == Schedule(block=(64, 64), d=64, warps=4, stages=2, vector=4)
    assert flash_attention.space is not None
    assert len(flash_attention.space) == 2 * 3 * 2 * 2 * 2 * 2
    assert flash_attention.tuning == {"metric": "latency_ms", "budget_ms": 180, "cache": "~/.sched", "tuned": False}


def test_one_instance_serves_all_sizes_of_one_width() -> None:
    def lowered(s: int, d: int) -> Any:
        q = ts.zeros((2, s, d), bf16)
        return flash_attention.lower(q, KVCache(q, q), dropout=0.0, causal=False)

    assert lowered(3, 16) is lowered(70, 16)
    assert lowered(3, 16) is not lowered(3, 64)
    assert [str(guard) for guard in lowered(3, 16).guards] == ["arg0.size[2] = 16"]
