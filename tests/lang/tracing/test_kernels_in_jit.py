"""Kernels called in jitted functions: calls in the graph, shapes from annotations, and guards on what kernels ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transformer_block import typed

import tessera as ts
from tessera import KTile, Out, f32, jit, kernel, tile
from tessera.errors import DtypeError, EffectError, ShapeError

pytestmark = pytest.mark.usefixtures("interpreted")


@kernel
@typed(x=KTile["M", "N", f32])
def softmax(x: Any) -> Any:
    here = tile.context()
    block = tile.load(x, rows=here.m, cols=here.d)
    powers = tile.exp(block - tile.max(block, axis=1)[:, None])
    return powers / tile.sum(powers, axis=1)[:, None]


@kernel
@typed(x=KTile["M", "N", f32], out=Out[KTile["M", "N", f32]])
def scaled(x: Any, factor: float, out: Any, *, twice: bool = False) -> None:
    here = tile.context()
    block = tile.load(x, rows=here.m, cols=here.d) * factor
    tile.store(out, block + block if twice else block)


def expected(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def test_a_kernel_is_an_operator() -> None:
    @jit
    def f(x: Any) -> Any:
        return softmax(x * 2.0) + softmax(x)

    for rows in (5, 6, 70):
        x = ts.randn((rows, 8), seed=rows)
        assert np.allclose(f(x), expected(x.numpy() * 2) + expected(x.numpy()), atol=1e-6)
    assert f.explain().compilations == 2
    text = f.lower(x).graph_ir.text
    assert text.count("graph.call_kernel @softmax(") == 2
    assert text.count("tile.func @softmax(") == 1


def test_what_a_kernel_fills_is_what_its_call_gives() -> None:
    @jit
    def f(x: Any) -> Any:
        return scaled(x, 3.0) + scaled(x, 3.0, twice=True)

    x = ts.randn((4, 8), seed=0)
    assert np.allclose(f(x), x.numpy() * 9, atol=1e-5)


def test_calls_that_mean_nothing_are_refused() -> None:
    x = ts.ones((4, 8))

    def fills(x: Any) -> Any:
        return scaled(x, 3.0, x)

    def passes_a_number(x: Any, factor: Any) -> Any:
        return scaled(x, factor)

    with pytest.raises(EffectError, match="fills 'out'"):
        jit(fills)(x)
    with pytest.raises(DtypeError, match="cannot be passed to a kernel as a number"):
        jit(passes_a_number)(x, 2.0)
    with pytest.raises(ShapeError, match="expected 2 axes, got 1"):
        jit(_softmax)(x[0])


def _softmax(x: Any) -> Any:
    return softmax(x)


def test_kernels_are_refused_by_derivatives_and_run_one_by_one_in_batches() -> None:
    x = np.random.default_rng(0).standard_normal((2, 4, 8)).astype(np.float32)

    def loss(x: Any) -> Any:
        return ts.sum(softmax(x) * x)

    with pytest.raises(EffectError, match="kernels have no derivatives yet"):
        ts.grad(loss)(ts.asarray(x[0]))
    found = np.asarray(ts.vmap(softmax)(ts.asarray(x)))
    assert np.allclose(found, np.stack([expected(one) for one in x]), rtol=1e-5)
