"""A decoder's step: one new row through all layers, over a cache of fixed length; and the same in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tessera as ts
from tessera import DType, Tensor

Array = np.ndarray[Any, np.dtype[np.float64]]
EPS = 1e-6


def decode_step(x: Any, position: Any, layers: Sequence[dict[str, Any]], cache: Sequence[Any]) -> tuple[Any, Any, Any]:
    """x [B, D] at a position, an array without axes; the caches of layers are pairs of [B, H, T, D/H].

    Gives what comes out, the next position, and the caches with this row in them.
    """
    kept: list[Any] = []
    for params, (old_keys, old_values) in zip(layers, cache, strict=True):
        batch, heads, length, width = old_keys.shape
        rows = ts.arange(length)
        here = (rows == position)[None, None, :, None]
        qkv = (ts.ops.rmsnorm_safe(x) @ params["Wqkv"]).reshape(batch, 3, heads, width)
        q, k, v = (qkv[:, part, :, None, :] for part in range(3))
        keys, values = ts.where(here, k, old_keys), ts.where(here, v, old_values)
        scores = (q @ keys.mT) * float(width) ** -0.5
        scores = ts.where((rows <= position)[None, None, None, :], scores, float("-inf"))
        attended = ts.softmax(scores, axis=-1) @ values
        x = x + attended.reshape(batch, heads * width) @ params["Wo"]
        x = x + ts.gelu(ts.ops.rmsnorm_safe(x) @ params["Wmlp_in"]) @ params["Wmlp_out"]
        kept.append((keys, values))
    return x, position + 1, kept


def arguments(
    dtype: DType, *, layers: int = 4, batch: int = 1, width: int = 512, heads: int = 8, length: int = 128, seed: int = 0
) -> tuple[Tensor, Tensor, list[dict[str, Tensor]], list[tuple[Tensor, Tensor]]]:
    """Numbers of about 1, weights that keep them so, and empty caches."""
    shapes = {
        "Wqkv": (width, 3 * width),
        "Wo": (width, width),
        "Wmlp_in": (width, 4 * width),
        "Wmlp_out": (4 * width, width),
    }
    made = [
        {
            name: (ts.randn(shape, seed=seed + 10 * layer + number) * float(shape[0] ** -0.5)).to(dtype)
            for number, (name, shape) in enumerate(shapes.items(), 1)
        }
        for layer in range(layers)
    ]
    held = (batch, heads, length, width // heads)
    cache = [(ts.zeros(held, dtype), ts.zeros(held, dtype)) for _ in range(layers)]
    return ts.randn((batch, width), dtype, seed=seed), ts.asarray(0, dtype=ts.i64), made, cache


def in_float64(x: Array, layers: Sequence[dict[str, Tensor]], steps: int, heads: int) -> Array:
    """So many steps, each fed with what the one before gave, by NumPy."""
    weights = [{name: _wide(value) for name, value in params.items()} for params in layers]
    seen: list[tuple[list[Array], list[Array]]] = [([], []) for _ in layers]
    for _ in range(steps):
        for params, (keys, values) in zip(weights, seen, strict=True):
            batch, width = x.shape
            qkv = (_normal(x) @ params["Wqkv"]).reshape(batch, 3, heads, width // heads)
            keys.append(qkv[:, 1])
            values.append(qkv[:, 2])
            scores = np.einsum("bhd,tbhd->bht", qkv[:, 0], np.stack(keys)) / np.sqrt(width // heads)
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            powers /= powers.sum(-1, keepdims=True)
            x = x + np.einsum("bht,tbhd->bhd", powers, np.stack(values)).reshape(batch, width) @ params["Wo"]
            x = x + _gelu(_normal(x) @ params["Wmlp_in"]) @ params["Wmlp_out"]
    return x


def _normal(values: Array) -> Array:
    return values / np.sqrt((values**2).mean(-1, keepdims=True) + EPS)


def _gelu(x: Array) -> Array:
    from math import erf

    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def _wide(value: Tensor) -> Array:
    return value.cpu().values().astype(np.float64)
