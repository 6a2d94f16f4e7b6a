"""Kernels that normalize rows: softmax, LayerNorm, RMSNorm."""

from __future__ import annotations

from typing import Any

from tessera.dtypes.types import f32
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file


@kernel
def softmax(x: Any):
    rows = tile.load(x).to(f32)
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return tile.cast(weights / tile.sum(weights, keepdims=True), x.dtype)


@kernel
def layernorm(x: Any, weight: Any, bias: Any):
    here = tile.context()
    scale, shift = (tile.load(vector, at=(0,), shape=(here.d,)) for vector in (weight, bias))
    rows = tile.load(x).to(f32)
    rows = rows - tile.sum(rows, keepdims=True) / here.d
    rows = rows * tile.rsqrt(tile.sum(rows * rows, keepdims=True) / here.d + 1e-5)
    return tile.cast(rows * scale + shift, x.dtype)


@kernel
def rmsnorm(x: Any, weight: Any):
    here = tile.context()
    rows = tile.load(x).to(f32)
    scale = tile.rsqrt(tile.sum(rows * rows) / here.d + 1e-6)
    return tile.cast(rows * scale[:, None] * tile.load(weight, at=(0,), shape=(here.d,)), x.dtype)
