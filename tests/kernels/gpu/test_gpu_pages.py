"""Tiles that are loaded from pages on a GPU, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from paged_kernels import Array, attended, attention, gathered, sequences

import tessera as ts

pytestmark = pytest.mark.gpu


def on_gpu(array: Array) -> ts.Tensor:
    return ts.asarray(array).cuda()


@pytest.mark.parametrize("page", [1, 4, 16, 64])
def test_blocks_are_the_rows_of_their_pages(page: int) -> None:
    for seed, lengths in enumerate(([0], [5, 0, 40], [16, 33, 1, 48])):
        pages, table, expected = sequences(seed, page, lengths)
        out = on_gpu(np.full((len(lengths), 2, 48, 5), 9, np.float32))
        gathered[len(lengths), 2](*map(on_gpu, (pages, table, np.array(lengths))), out, n=16, d=5)
        found = out.cpu().numpy()
        for b, rows in enumerate(expected):
            assert np.array_equal(found[b, :, : lengths[b]], rows)
            assert (found[b, :, lengths[b] : -(-lengths[b] // 16) * 16] == 0).all()


@pytest.mark.parametrize("page", [4, 16, 32])
def test_attention_over_several_pages_at_a_time(page: int) -> None:
    lengths = [37, 1, 16, 64]
    (pages, table, keys), (values, _, kept) = (sequences(seed, page, lengths, d=64) for seed in (1, 1))
    q = np.random.default_rng(0).standard_normal((4, 2, 16, 64)).astype(np.float32)
    out = on_gpu(np.zeros_like(q))
    attended[4, 2](*map(on_gpu, (q, pages, values, table, np.array(lengths))), out, g=16, n=32, d=64)
    np.testing.assert_allclose(out.cpu().numpy(), attention(q, keys, kept), rtol=1e-3, atol=1e-4)
