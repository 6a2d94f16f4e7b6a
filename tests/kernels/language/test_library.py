"""Checks every kernel of `library.py` against NumPy in float64: ragged shapes, strides, element types, block sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import library as lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import DType, Schedule, bf16, f16, f32, tile

Array = np.ndarray[Any, np.dtype[Any]]

# Relative error in norm against float64.
BOUNDS = {f32: 2e-6, f16: 5e-4, bf16: 4e-3}
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "plain": lambda a: a.copy(),
    "sliced": lambda a: np.stack([a, -a], -1)[..., 0],
    "transposed": lambda a: a.T.copy().T,
    "reversed": lambda a: a[(slice(None, None, -1),) * a.ndim].copy()[(slice(None, None, -1),) * a.ndim],
}
erf = np.vectorize(math.erf, otypes=[float])
SIZES = st.one_of(st.integers(1, 100), st.sampled_from([2, 3, 5, 7, 13, 31, 61, 97]))
BLOCKS = st.sampled_from([1, 3, 8, 16, 17, 32, 64])
FEW = st.integers(1, 3)


@dataclass
class Inputs:
    """Arrays of one type in one layout."""

    dtype: DType
    layout: str
    seed: int

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def laid_out(self, values: Array) -> Array:
        return LAYOUTS[self.layout](values)

    def array(self, *shape: int) -> Array:
        return self.laid_out(self.random.standard_normal(shape).astype(self.dtype.storage))

    def zeros(self, *shape: int) -> Array:
        return self.laid_out(np.zeros(shape, self.dtype.storage))


INPUTS = st.builds(Inputs, st.sampled_from(list(BOUNDS)), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 1000))
few = settings(max_examples=8)


def wide(*arrays: Array) -> list[Array]:
    return [array.astype(np.float64) for array in arrays]


def check(found: Any, expected: Array, dtype: DType, terms: Array | None = None) -> None:
    """Within the bound of the type, relative to the result or to the absolute terms that are summed in it."""
    actual = np.asarray(found.numpy() if hasattr(found, "numpy") else found)
    assert actual.dtype == dtype.storage
    assert actual.shape == expected.shape
    scale = max(np.linalg.norm(expected), 0.0 if terms is None else np.linalg.norm(terms))
    assert np.linalg.norm(actual.astype(np.float64) - expected) <= BOUNDS[dtype] * scale


def softmax(x: Array) -> Array:
    """Along the last axis; rows of −∞ give 0."""
    top = x.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(x - np.where(np.isinf(top), 0, top))
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


@few
@given(INPUTS, SIZES, BLOCKS)
def test_saxpy(inputs: Inputs, n: int, block: int) -> None:
    x, y = inputs.array(n), inputs.array(n)
    found = lib.saxpy.with_schedule(Schedule(block=(block,)))(x, y, 1.5)
    a, b = wide(x, y)
    check(found, 1.5 * a + b, inputs.dtype, np.abs(a) + np.abs(b))


@few
@given(INPUTS, SIZES, SIZES, BLOCKS)
def test_softmax(inputs: Inputs, rows: int, columns: int, block: int) -> None:
    x = inputs.array(rows, columns)
    check(lib.softmax.with_schedule(Schedule(block=(block,)))(x), softmax(wide(x)[0]), inputs.dtype)


@few
@given(INPUTS, FEW, SIZES, SIZES, BLOCKS)
def test_layernorm(inputs: Inputs, batch: int, rows: int, columns: int, block: int) -> None:
    x, weight, bias = inputs.array(batch, rows, columns), inputs.array(columns), inputs.array(columns)
    found = lib.layernorm.with_schedule(Schedule(block=(block,)))(x, weight, bias, eps=1e-3)
    x, weight, bias = wide(x, weight, bias)
    x = x - x.mean(-1, keepdims=True)
    normal = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
    check(found, normal * weight + bias, inputs.dtype, np.abs(normal * weight) + np.abs(bias))


@few
@given(INPUTS, SIZES, SIZES, BLOCKS)
def test_rmsnorm(inputs: Inputs, rows: int, columns: int, block: int) -> None:
    x, weight = inputs.array(rows, columns), inputs.array(columns)
    found = lib.rmsnorm.with_schedule(Schedule(block=(block,)))(x, weight)
    x, weight = wide(x, weight)
    check(found, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight, inputs.dtype)


EPILOGUES: list[tuple[Callable[[Any], Any], Callable[[Array], Array]]] = [
    (lib.identity, lambda x: x),
    (lambda x: tile.maximum(x, 0), lambda x: np.maximum(x, 0)),
    (lib.gelu, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
]


@few
@given(INPUTS, SIZES, SIZES, SIZES, st.tuples(BLOCKS, BLOCKS, BLOCKS), st.sampled_from(EPILOGUES))
def test_gemm_with_epilogue(
    inputs: Inputs, m: int, n: int, k: int, block: tuple[int, int, int], epilogue: tuple[Any, Any]
) -> None:
    block = (max(block[0], 16), max(block[1], 16), max(block[2], 16))
    a, b, bias, c = inputs.array(m, k), inputs.array(k, n), inputs.array(n), inputs.zeros(m, n)
    grid = -(-m // block[0]), -(-n // block[1])
    lib.gemm.with_schedule(Schedule(block=block))[grid](a, b, bias, c, epilogue=epilogue[0])
    a, b, bias = wide(a, b, bias)
    check(c, epilogue[1](a @ b + bias), inputs.dtype, np.abs(a) @ np.abs(b) + np.abs(bias))


@few
@given(INPUTS, SIZES, SIZES, st.tuples(BLOCKS, BLOCKS))
def test_transpose(inputs: Inputs, rows: int, columns: int, block: tuple[int, int]) -> None:
    block = (max(block[0], 8), max(block[1], 8))
    x, y = inputs.array(rows, columns), inputs.zeros(columns, rows)
    lib.transpose.with_schedule(Schedule(block=block))[-(-rows // block[0]), -(-columns // block[1])](x, y)
    assert np.array_equal(y, x.T)


@dataclass
class Heads:
    """q, k and v, and the scores and positions that attention starts from."""

    inputs: Inputs
    leading: tuple[int, ...]
    s: int
    t: int
    d: int
    block: tuple[int, int]

    def __post_init__(self) -> None:
        array = self.inputs.array
        self.q = array(*self.leading, self.s, self.d)
        self.k, self.v = (array(*self.leading, self.t, self.d) for _ in range(2))
        self.rows, self.columns = np.arange(self.s)[:, None], np.arange(self.t)

    def run(self, kernel: Any, *args: Any, **static: Any) -> Any:
        return kernel.with_schedule(Schedule(block=self.block))(self.q, self.k, self.v, *args, **static)

    @property
    def scores(self) -> Array:
        q, k = wide(self.q, self.k)
        return q @ np.swapaxes(k, -1, -2) / math.sqrt(self.d)

    @property
    def causal(self) -> Array:
        return self.rows >= self.columns

    def check(self, found: Any, weights: Array) -> None:
        (v,) = wide(self.v)
        check(found, weights @ v, self.inputs.dtype, weights @ np.abs(v))


HEADS = st.builds(
    Heads,
    INPUTS,
    st.sampled_from([(), (2,), (3,), (1, 2), (2, 3)]),
    SIZES,
    SIZES,
    st.sampled_from([1, 8, 16, 17, 40]),
    st.tuples(st.sampled_from([7, 16, 32, 64]), st.sampled_from([7, 16, 32, 64])),
)


@few
@given(HEADS)
def test_attention(heads: Heads) -> None:
    heads.check(heads.run(lib.attention), softmax(heads.scores))


@pytest.mark.acceptance
@few
@given(HEADS, st.integers(1, 40))
def test_window_attention(heads: Heads, window: int) -> None:
    inside = heads.causal & (heads.rows - heads.columns < window)
    heads.check(heads.run(lib.window_attention, window), softmax(np.where(inside, heads.scores, -np.inf)))


@pytest.mark.acceptance
@few
@given(HEADS, st.sampled_from([1.0, 5.0, 30.0]))
def test_softcap_attention(heads: Heads, cap: float) -> None:
    scores = np.where(heads.causal, cap * np.tanh(heads.scores / cap), -np.inf)
    heads.check(heads.run(lib.softcap_attention, cap=cap), softmax(scores))


@pytest.mark.acceptance
@few
@given(HEADS)
def test_alibi_attention(heads: Heads) -> None:
    count = math.prod(heads.leading)
    slopes = (2.0 ** -np.arange(1, count + 1)).astype(np.float32)
    bias = slopes.astype(np.float64).reshape(*heads.leading, 1, 1) * (heads.rows - heads.columns)
    scores = np.where(heads.causal, heads.scores - bias, -np.inf)
    heads.check(heads.run(lib.alibi_attention, slopes), softmax(scores))


@pytest.mark.acceptance
@few
@given(HEADS)
def test_sigmoid_attention(heads: Heads) -> None:
    heads.check(heads.run(lib.sigmoid_attention, -1.0), 1 / (1 + np.exp(1 - heads.scores)))


@few
@given(INPUTS, SIZES, st.integers(1, 40), SIZES, st.tuples(BLOCKS, st.sampled_from([16, 17, 64])))
def test_dot_gelu_dot(inputs: Inputs, rows: int, width: int, hidden: int, block: tuple[int, int]) -> None:
    x, up, down = inputs.array(rows, width), inputs.array(width, hidden), inputs.array(hidden, width)
    found = lib.mlp.with_schedule(Schedule(block=block))(x, up, down)
    x, up, down = wide(x, up, down)
    hidden_units = EPILOGUES[2][1](x @ up)
    check(found, hidden_units @ down, inputs.dtype, (np.abs(x) @ np.abs(up)) @ np.abs(down))


@few
@given(INPUTS, SIZES, st.integers(1, 20), BLOCKS)
def test_histogram(inputs: Inputs, n: int, bins: int, block: int) -> None:
    x = inputs.laid_out(inputs.random.integers(0, bins, n).astype(np.int32))
    counts = np.zeros(bins, np.int32)
    lib.histogram.with_schedule(Schedule(block=(block,)))(x, counts, bins=bins)
    assert np.array_equal(counts, np.bincount(x, minlength=bins))


@few
@given(INPUTS, SIZES, SIZES, st.tuples(BLOCKS, BLOCKS))
def test_online_logsumexp(inputs: Inputs, rows: int, columns: int, block: tuple[int, int]) -> None:
    x = inputs.array(rows, columns)
    found = lib.logsumexp.with_schedule(Schedule(block=block))(x)
    (x,) = wide(x)
    top = x.max(-1)
    rest = np.log(np.exp(x - top[:, None]).sum(-1))
    check(found, top + rest, f32, np.abs(top) + rest)


@few
@given(INPUTS, FEW, SIZES, st.sampled_from([2, 6, 16, 40]), BLOCKS)
def test_rope(inputs: Inputs, batch: int, rows: int, width: int, block: int) -> None:
    x, y = inputs.array(batch, rows, width), inputs.zeros(batch, rows, width)
    lib.rope.with_schedule(Schedule(block=(block,)))(x, y)
    first, second = np.split(wide(x)[0], 2, -1)
    angle = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    rotated = first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)
    check(y, np.concatenate(rotated, -1), inputs.dtype, np.concatenate([first, second], -1))
