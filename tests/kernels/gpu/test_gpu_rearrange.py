"""Tiles whose elements change places, on a GPU, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import kernel, tile
from tessera.dtypes import types as dtypes

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]
Change = Callable[[Any], Any]


@kernel
def rearranged(x: Any, out: Any, *, shape: Any, how: Any):
    found: Any = how(tile.load(x, at=(0,) * len(shape), shape=shape))
    tile.store(out, tile.cast(found, out.dtype), at=(0,) * found.ndim)


def stable(x: Array) -> Array:
    return np.argsort(x.astype(np.float64), -1, kind="stable")


CASES: dict[str, tuple[Change, Callable[[Array], Array]]] = {
    "reshape": (lambda v: tile.reshape(v, (-1, 8)), lambda x: x.reshape(-1, 8)),
    "flat": (lambda v: tile.reshape(v, -1), lambda x: x.reshape(-1)),
    "part": (lambda v: v[3:17:2, 1:], lambda x: x[3:17:2, 1:]),
    "flip": (lambda v: tile.flip(v, 0), lambda x: x[::-1]),
    "concat": (lambda v: tile.concat((v, v[:, :5]), 1), lambda x: np.concatenate([x, x[:, :5]], 1)),
    "cumsum": (tile.cumsum, lambda x: np.cumsum(x, -1, dtype=x.dtype)),
    "cumsum of columns": (
        lambda v: tile.cumsum(v, 0, reverse=True),
        lambda x: np.cumsum(x[::-1], 0, dtype=x.dtype)[::-1],
    ),
    "sort": (tile.sort, lambda x: np.sort(x, -1)),
    "sort of columns": (lambda v: tile.sort(v, 0, descending=True), lambda x: np.sort(x, 0)[::-1]),
    "argsort": (tile.argsort, stable),
    "topk": (lambda v: tile.topk(v, 7)[0], lambda x: np.sort(x, -1)[:, ::-1][:, :7]),
    "topk's indices": (lambda v: tile.topk(v, 7, largest=False)[1], lambda x: stable(x)[:, :7]),
    "argmax": (lambda v: tile.argmax(v, keepdims=True), lambda x: x.astype(np.float64).argmax(-1)[:, None]),
    "argmin": (lambda v: tile.argmin(v, 0, keepdims=True), lambda x: x.astype(np.float64).argmin(0)[None]),
    "take": (
        lambda v: tile.take(v, tile.iota((v.shape[0], 5), 1) * 3 - 1, 1),
        lambda x: np.pad(x, ((0, 0), (1, 3)))[:, :15:3],
    ),
}


@pytest.mark.parametrize("shape", [(24, 13), (32, 64), (8, 200)], ids=str)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.bf16, dtypes.f64, dtypes.i32, dtypes.i8, dtypes.i64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_gives_what_numpy_gives(name: str, dtype: Any, shape: tuple[int, int]) -> None:
    change, reference = CASES[name]
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(dtype.storage)
    expected = np.ascontiguousarray(reference(x))
    out = ts.asarray(np.zeros(expected.shape, expected.dtype)).cuda()
    rearranged[1](ts.asarray(x).cuda(), out, shape=shape, how=change)
    found = out.cpu().numpy()
    tolerance = 0.05 if name.startswith("cumsum") and dtype is dtypes.bf16 else 0
    assert np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() <= tolerance * 40
