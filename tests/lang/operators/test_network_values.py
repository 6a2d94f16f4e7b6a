"""The deep-learning set against NumPy in float64: norms, attention, losses, convolutions, and their numerics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compared import array, closely, exactly, tensor, traced

import tessera as ts
from tessera.dtypes.types import DType

BOUNDS = {ts.f64: 1e-12, ts.f32: 2e-6, ts.f16: 5e-4, ts.bf16: 4e-3, ts.f8e4m3: 6e-2}


def near(found: Any, expected: Any, dtype: DType) -> None:
    """Within the policy's bound: relative error in norm."""
    assert found.dtype.base is dtype
    got = found.numpy().astype(np.float64)
    assert got.shape == np.shape(expected)
    norm = np.linalg.norm(np.asarray(expected).reshape(-1))
    assert np.linalg.norm((got - expected).reshape(-1)) <= BOUNDS[dtype] * max(float(norm), 1e-30)


def drawn(dtype: DType, *shape: int, seed: int = 0) -> tuple[ts.Tensor, Any]:
    values = array(dtype, shape, seed + sum(shape), odd=False, low=-2, high=2)
    return tensor(values, dtype), values.astype(np.float64)


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f16, ts.f64], ids=str)
def test_shares_and_norms(dtype: DType) -> None:
    x, wide = drawn(dtype, 3, 5, 16)
    weight, w = drawn(dtype, 16, seed=1)
    bias, b = drawn(dtype, 16, seed=2)
    for axis in (-1, 1):
        near(ts.softmax_safe(x, axis=axis), softmax(wide, axis), dtype)
        near(ts.softmax(x, axis=axis), softmax(wide, axis), dtype)
        near(ts.log_softmax(x, axis=axis), np.log(softmax(wide, axis)), dtype)
        near(ts.logsumexp_safe(x, axis=axis), np.log(np.exp(wide).sum(axis)), dtype)
    apart = wide - wide.mean(-1, keepdims=True)
    normed = apart / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    near(ts.layernorm_safe(x), normed, dtype)
    near(ts.layernorm_safe(x, weight, bias), normed * w + b, dtype)
    rooted = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    near(ts.rmsnorm_safe(x), rooted, dtype)
    near(ts.rmsnorm_safe(x, weight), rooted * w, dtype)


def test_safe_functions_give_no_nan() -> None:
    x = ts.asarray([[-np.inf, -np.inf], [0.0, -np.inf], [1e30, -1e30]])
    assert ts.softmax_safe(x).tolist() == [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    assert ts.logsumexp_safe(x).tolist() == [-math.inf, 0.0, float(np.float32(1e30))]
    assert math.isnan(ts.softmax(x).tolist()[0][0])
    zeros = ts.zeros((2, 4))
    assert ts.rmsnorm_safe(zeros).tolist() == ts.layernorm_safe(zeros).tolist() == [[0.0] * 4] * 2


def test_norms_of_channels() -> None:
    x, wide = drawn(ts.f32, 2, 6, 4, 3)
    weight, w = drawn(ts.f32, 6, seed=1)
    bias, b = drawn(ts.f32, 6, seed=2)
    laid = wide.reshape(2, 3, -1)
    normed = (laid - laid.mean(-1, keepdims=True)) / np.sqrt(laid.var(-1, keepdims=True) + 1e-5)
    expected = normed.reshape(wide.shape) * w[:, None, None] + b[:, None, None]
    near(ts.groupnorm(x, 3, weight, bias), expected, ts.f32)
    mean, variance = drawn(ts.f32, 6, seed=3)[1], np.abs(drawn(ts.f32, 6, seed=4)[1]) + 0.1
    expected = (wide - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]
    found = ts.batchnorm(x, mean.astype(np.float32), variance.astype(np.float32), weight, bias)
    near(found, expected * w[:, None, None] + b[:, None, None], ts.f32)
    with pytest.raises(ts.ShapeError, match="6 channels do not split into 4 groups"):
        ts.groupnorm(x, 4)


def attention(q: Any, k: Any, v: Any, seen: Any = None, bias: Any = 0.0, cap: float | None = None) -> tuple[Any, Any]:
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    scores = scores + bias
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(all="ignore"):
        highest = np.maximum(scores.max(-1, keepdims=True), -1e300)
        powers = np.exp(scores - highest)
        total = powers.sum(-1, keepdims=True)
        found = np.where(total > 0, powers / np.where(total > 0, total, 1), 0.0) @ v
        return found, np.where(total > 0, np.log(total) + highest, -np.inf)[..., 0]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16], ids=str)
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_attention_in_all_its_forms(dtype: DType, heads: int) -> None:
    (q, wq), (k, wk), (v, wv) = (
        drawn(dtype, 2, count, length, 8, seed=at)
        for at, (count, length) in enumerate(((4, 5), (heads, 7), (heads, 7)))
    )
    rows, columns = np.arange(5)[:, None], np.arange(7)[None]
    causal, window = rows + 2 >= columns, (rows + 2 - columns < 3) & (rows + 2 >= columns)
    near(ts.scaled_dot_product_attention(q, k, v), attention(wq, wk, wv)[0], dtype)
    near(ts.flash_attention(q, (k, v), causal=True), attention(wq, wk, wv, causal)[0], dtype)
    near(ts.flash_attention(q, k, v, causal=True, window=3), attention(wq, wk, wv, window)[0], dtype)
    near(ts.flash_attention(q, k, v, causal=True, offset=0), attention(wq, wk, wv, rows >= columns)[0], dtype)
    if heads == 2:
        bias, wide_bias = drawn(dtype, 2, 1, 5, 7, seed=9)
        near(ts.flash_attention(q, k, v, bias=bias), attention(wq, wk, wv, bias=wide_bias)[0], dtype)
        near(ts.flash_attention(q, k, v, soft_cap=0.5), attention(wq, wk, wv, cap=0.5)[0], dtype)
        lengths = np.array([3, 0])
        seen = columns < lengths[:, None, None, None]
        found, lse = ts.flash_attention(q, k, v, key_lengths=lengths, return_lse=True)
        expected, wanted = attention(wq, wk, wv, seen)
        near(found, expected, dtype)
        exactly(lse[1], np.full((4, 5), -np.inf, np.float32))
        closely(lse[0], wanted[0], ts.f32, least=1e-5 if dtype is ts.f32 else 1e-2)
        mask = tensor(np.broadcast_to(causal, (5, 7)).copy(), ts.bool_)
        near(ts.flash_attention(q, k, v, mask=mask), attention(wq, wk, wv, causal)[0], dtype)


def test_attention_says_what_does_not_fit() -> None:
    q, k = ts.zeros((1, 4, 2, 8)), ts.zeros((1, 3, 2, 8))
    with pytest.raises(ts.ShapeError, match="4 heads of q do not split into groups for 3"):
        ts.flash_attention(q, k, k)
    with pytest.raises(ts.ShapeError, match=r"expected q as \[batch, heads, length, width\], got 3 axes"):
        ts.flash_attention(ts.zeros((4, 2, 8)), k, k)
    with pytest.raises(ts.DtypeError, match="a mask is bool, got f32"):
        ts.flash_attention(q, q, q, mask=ts.zeros((2, 2)))
    with pytest.raises(ts.EffectError, match="needs a random key"):
        ts.residual(q, q, dropout=0.1)


def test_heads_apart_and_together() -> None:
    x, wide = drawn(ts.f32, 2, 3, 24)
    q, k, v = ts.split_qkv(x, heads=2, kv_heads=1)
    exactly(q, wide[..., :12].reshape(2, 3, 2, 6).transpose(0, 2, 1, 3).astype(np.float32))
    exactly(k, wide[..., 12:18].reshape(2, 3, 1, 6).transpose(0, 2, 1, 3).astype(np.float32))
    exactly(v, wide[..., 18:].reshape(2, 3, 1, 6).transpose(0, 2, 1, 3).astype(np.float32))
    exactly(ts.merge_heads(q), wide[..., :12].astype(np.float32))
    with pytest.raises(ts.ShapeError, match="split_qkv: expected"):
        ts.split_qkv(x, heads=5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope(interleaved: bool) -> None:
    x, wide = drawn(ts.f32, 2, 2, 5, 8)
    angles = np.arange(5)[:, None] * 10000.0 ** (-2 * np.arange(4) / 8)
    pairs = wide.reshape(2, 2, 5, 4, 2) if interleaved else np.swapaxes(wide.reshape(2, 2, 5, 2, 4), -1, -2)
    complex_ = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
    rotated = np.stack([complex_.real, complex_.imag], -1)
    expected = (rotated if interleaved else np.swapaxes(rotated, -1, -2)).reshape(wide.shape)
    near(ts.rope(x, interleaved=interleaved), expected, ts.f32)
    positions = np.broadcast_to(np.arange(5), (2, 5))
    near(ts.rope(x, positions, interleaved=interleaved), expected, ts.f32)
    near(ts.rope(x[:, :, 1:], offset=1, interleaved=interleaved), expected[:, :, 1:], ts.f32)


def test_losses() -> None:
    x, wide = drawn(ts.f32, 6, 10)
    labels = np.array([1, 2, -100, 9, 0, 3])
    logs = np.log(softmax(wide))
    used = labels != -100
    own = np.where(used, -logs[np.arange(6), np.where(used, labels, 0)], 0.0)
    near(ts.cross_entropy(x, labels), own.sum() / used.sum(), ts.f32)
    near(ts.cross_entropy(x, labels, reduction="none"), own, ts.f32)
    smooth = np.where(used, 0.9 * own - 0.1 * logs.mean(-1), 0.0)
    near(ts.cross_entropy(x, labels, label_smoothing=0.1, reduction="sum"), smooth.sum(), ts.f32)
    y, other = drawn(ts.f32, 6, 10, seed=1)
    near(ts.mse_loss(x, y), ((wide - other) ** 2).mean(), ts.f32)
    with pytest.raises(ts.ShapeError, match="reduction is mean, sum or none"):
        ts.mse_loss(x, y, reduction="most")  # pyright: ignore[reportArgumentType]  # that it is wrong is the point


def windows(x: Any, size: tuple[int, ...], stride: int, padding: Any, dilation: int, fill: float = 0.0) -> Any:
    """[batch, channels, windows…, indices in a window…]."""
    edges = (padding,) * len(size) if isinstance(padding, int) else padding
    x = np.pad(x, ((0, 0), (0, 0), *((edge, edge) for edge in edges)), constant_values=fill)
    reach = tuple(dilation * (width - 1) + 1 for width in size)
    axes = tuple(range(2, x.ndim))
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    every, apart = (slice(None, None, stride),) * len(size), (slice(None, None, dilation),) * len(size)
    return found[(slice(None), slice(None), *every, *apart)]


def convolved(x: Any, w: Any, options: dict[str, Any]) -> Any:
    groups = options.get("groups", 1)
    laid = windows(x, w.shape[2:], options.get("stride", 1), options.get("padding", 0), options.get("dilation", 1))
    parts = zip(np.split(laid, groups, 1), np.split(w, groups, 0), strict=True)
    positions = tuple(range(-(w.ndim - 2), 0))
    found = [np.tensordot(part, filters, ((1, *positions), (1, *positions))) for part, filters in parts]
    return np.moveaxis(np.concatenate(found, -1), -1, 1)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": (2, 1)}, {"groups": 2}], ids=str
)
def test_convolutions_and_pools(options: dict[str, Any]) -> None:
    x, wide = drawn(ts.f32, 2, 4, 9, 8)
    w, filters = drawn(ts.f32, 6, 4 // options.get("groups", 1), 3, 2, seed=1)
    b, shift = drawn(ts.f32, 6, seed=2)
    near(ts.conv2d(x, w, b, **options), convolved(wide, filters, options) + shift[:, None, None], ts.f32)
    if "dilation" not in options:
        near(ts.conv1d(x[:, :, 0], w[:, :, 0], **options), convolved(wide[:, :, 0], filters[:, :, 0], options), ts.f32)
    if not options:
        near(ts.max_pool(x, 2), windows(wide, (2, 2), 2, 0, 1).max((-1, -2)), ts.f32)
        mean = windows(wide, (3, 2), 1, 1, 1).mean((-1, -2))
        near(ts.avg_pool(x, (3, 2), stride=1, padding=1), mean, ts.f32)
        with pytest.raises(ts.ShapeError, match="a window of 12 does not fit"):
            ts.max_pool(x, 12)
        with pytest.raises(ts.ShapeError, match="conv2d: a window of"):
            ts.conv2d(x[:, :, :2], w)


def test_rows_of_a_table() -> None:
    table, wide = drawn(ts.f32, 5, 3)
    exactly(ts.embedding(np.array([[4, 0], [1, 1]]), table), wide.astype(np.float32)[[[4, 0], [1, 1]]])
    exactly(ts.residual(table, table), (wide * 2).astype(np.float32))


def test_dropout_by_key() -> None:
    x = ts.ones((64, 64))
    key = ts.random.key(3)
    found = ts.dropout(x, 0.25, key=key).numpy()
    assert np.unique(found).tolist() == [0.0, float(np.float32(1 / 0.75))]
    assert abs((found == 0).mean() - 0.25) < 0.03
    exactly(traced(lambda xs: ts.dropout(xs[0], 0.25, key=xs[1]))((x, key)), found)
    exactly(ts.residual(x, x, dropout=0.25, key=key), found + 1)
    exactly(ts.dropout(x, 0.0), x.numpy())
    assert not (ts.dropout(x, 0.25, key=ts.random.key(4)).numpy() == found).all()
    with pytest.raises(ts.TesseraError, match="a probability from 0 up to 1"):
        ts.dropout(x, 1.0)
    q = ts.ones((1, 2, 4, 8))
    assert ts.flash_attention(q, q, q, dropout=0.5, key=key).shape == q.shape
