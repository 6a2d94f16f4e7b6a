"""Tensors of a GPU, indexed and assigned to by arrays that lie there or on the host; the GPU is an imitation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from imitated_gpu import Imitation

import tessera as ts
from tessera import knobs
from tessera.errors import DeviceError, DtypeError

X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES = np.array([2, 0, -1])


@pytest.fixture(autouse=True)
def _compiled(gpu: Imitation) -> Iterator[None]:
    with knobs.backend.using("auto"):
        yield


def same(found: Any, expected: Any) -> None:
    assert found.device.kind == "cuda"
    np.testing.assert_array_equal(found.cpu().numpy(), expected)


def test_arrays_as_indices(gpu: Imitation) -> None:
    x, indices = ts.asarray(X).cuda(), ts.asarray(INDICES).cuda()
    same(x[indices], X[INDICES])
    assert gpu.launched
    same(x[1:, INDICES], X[1:, INDICES])
    same(x[[2, 0]], X[[2, 0]])
    same(x[x > 5], X[X > 5])
    launched = len(gpu.launched)
    same(x[ts.asarray(1).cuda(), 1:], X[1, 1:])  # a single number gives a view
    assert len(gpu.launched) == launched


def test_indices_lie_where_the_tensor_does() -> None:
    x, indices = ts.asarray(X), ts.asarray(INDICES)
    with pytest.raises(DeviceError, match="indexed with one of cuda:0"):
        x[indices.cuda()]
    with pytest.raises(DeviceError, match="on different devices"):
        x.cuda()[indices]


def test_assignment() -> None:
    mine, x = X.copy(), ts.asarray(X).cuda()
    beside = x[1]
    for key, value in (((slice(None), 1), 7.0), ((1, slice(None, None, 2)), np.array([5, 6], np.float32)), ([0, 2], 3)):
        mine[key], x[key] = value, value
    mine[mine > 5.5], x[x > 5.5] = 0, 0
    same(x, mine)
    same(beside, mine[1])  # a view of the same memory


def test_assignment_that_is_refused() -> None:
    x = ts.asarray(X).cuda()
    with pytest.raises(DeviceError, match="a view with gaps is assigned to on cuda:0"):
        x[:, 1][0] = 3.0
    with pytest.raises(DtypeError, match="storing f64 in a f32 tensor"):
        x[0] = np.zeros(4)


def test_arrays_of_the_host_in_compiled_functions() -> None:
    """They lie on no device: they are brought to where the function runs, and what is written to them is seen."""
    indices = INDICES.copy()

    @ts.jit
    def taken(x: Any) -> Any:
        return ts.take(x, indices, axis=1) + ts.take(x, np.array([1, 1, 1]), axis=1)

    x = ts.asarray(X).cuda()
    for _ in range(2):
        same(taken(x), X[:, indices] + X[:, [1, 1, 1]])
    assert taken.explain().compilations == 1
    indices[0] = 1
    same(taken(x), X[:, indices] + X[:, [1, 1, 1]])
    held = ts.asarray(INDICES)

    def elsewhere(x: Any) -> Any:
        return ts.take(x, held, axis=1)

    with pytest.raises(DeviceError, match="uses an array of cpu"):
        ts.jit(elsewhere)(x)
