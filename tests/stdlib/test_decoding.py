"""Attention as one decodes: keys split among program instances, parts combined, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera.stdlib.decoding import Decoding, Split, split


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("length", "programs"), [(1, 1), (1, 3), (40, 1), (40, 2), (129, 4), (129, 9), (300, 19)])
def test_parts_make_the_whole(length: int, programs: int, dtype: ts.DType) -> None:
    """Some of them may have no keys."""
    shared = Split(programs, -(-length // (programs * 16)) * 16)
    random = np.random.default_rng(length)
    q = ts.asarray(random.standard_normal((2, 3, 4, 32)).astype(np.float32)).to(dtype)
    k, v = (ts.asarray(random.standard_normal((2, 3, length, 32)).astype(np.float32)).to(dtype) for _ in range(2))
    found = Decoding(q, k, v, shared, (16, 16))().to(ts.f32).numpy().astype(np.float64)
    queries, keys, values = (x.to(ts.f32).numpy().astype(np.float64) for x in (q, k, v))
    scores = queries @ keys.swapaxes(-1, -2) / 32**0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ values
    assert np.abs(found - expected).max() <= (2e-6 if dtype is ts.f32 else 2e-2)


def test_keys_are_split_where_program_instances_are_few() -> None:
    assert split(512, 8192, 132, 128) == (1, 8192)
    assert split(64, 32768, 132, 128) == (2, 16384)
    assert split(8, 32768, 132, 128) == (16, 2048)
    assert split(8, 100, 132, 128) == (1, 128)
    assert split(1, 0, 132, 128) == (1, 128)


@given(st.integers(1, 700), st.integers(0, 70000), st.integers(1, 140), st.sampled_from([16, 64, 128]))
def test_all_keys_are_assigned(groups: int, keys: int, machine: int, block: int) -> None:
    instances, span = split(groups, keys, machine, block)
    assert instances * span >= keys
    assert (instances - 1) * span < max(1, keys)
    assert span % block == 0
