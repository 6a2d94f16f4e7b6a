"""The specification's transformer block, forward: parameters passed in, the cache as two arrays; and it in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

import tessera as ts
from tessera import DType, Tensor, jit
from tessera.lang.operators import (
    cast_like,
    concat,
    flash_attention,
    gelu,
    matmul,
    merge_heads,
    residual,
    rmsnorm_safe,
    split_qkv,
)

Array = np.ndarray[Any, np.dtype[np.float64]]
F = TypeVar("F", bound=Callable[..., Any])
EPS = 1e-6


def typed(**types: Any) -> Callable[[F], F]:
    """Annotates parameters with types that hold names; written in place, tools would take those for variables."""

    def annotate(function: F) -> F:
        function.__annotations__.update(types)
        return function

    return annotate


_CACHED = Tensor["B", "H", "T", "D_h"]


@typed(x=Tensor["B", "S", "D"], cache=tuple[_CACHED, _CACHED])
def transformer_block(
    x: Any, params: dict[str, Any], cache: tuple[Any, Any], *, heads: int
) -> tuple[Any, tuple[Any, Any]]:
    """One block: attention over what is cached and what comes, then the multilayer perceptron."""
    normal = rmsnorm_safe(x)
    q, k, v = split_qkv(matmul(normal, params["Wqkv"]), heads=heads)
    cache = (concat([cache[0], k], axis=2), concat([cache[1], v], axis=2))
    y = merge_heads(flash_attention(q, cache, causal=True))
    y = residual(x, matmul(y, params["Wo"]))
    y = residual(y, gelu(matmul(rmsnorm_safe(y), params["Wmlp_in"])) @ params["Wmlp_out"])
    return cast_like(y, x), cache


block = jit(transformer_block)


def arguments(
    dtype: DType, *, batch: int = 2, length: int = 24, past: int = 8, width: int = 32, heads: int = 4, seed: int = 0
) -> tuple[Tensor, dict[str, Tensor], tuple[Tensor, Tensor]]:
    """Numbers of about 1, and weights that keep them so."""
    shapes = {
        "Wqkv": (width, 3 * width),
        "Wo": (width, width),
        "Wmlp_in": (width, 4 * width),
        "Wmlp_out": (4 * width, width),
    }
    params = {
        name: (ts.randn(shape, seed=seed + number) * float(shape[0] ** -0.5)).to(dtype)
        for number, (name, shape) in enumerate(shapes.items(), 1)
    }
    held = (batch, heads, past, width // heads)
    cache = ts.randn(held, dtype, seed=seed + 10), ts.randn(held, dtype, seed=seed + 11)
    return ts.randn((batch, length, width), dtype, seed=seed), params, cache


def in_float64(
    x: Tensor, params: Mapping[str, Tensor], cache: tuple[Tensor, Tensor], *, heads: int
) -> tuple[Array, tuple[Array, Array]]:
    """The same by NumPy, nothing rounded on the way."""
    weights = {name: _wide(value) for name, value in params.items()}
    given = _wide(x)
    batch, length, width = given.shape

    def normal(values: Array) -> Array:
        return values / np.sqrt((values**2).mean(-1, keepdims=True) + EPS)

    qkv = normal(given) @ weights["Wqkv"]
    q, k, v = (part.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for part in np.split(qkv, 3, axis=-1))
    k, v = (np.concatenate([_wide(held), new], axis=2) for held, new in zip(cache, (k, v), strict=True))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    past = k.shape[2] - length
    seen = np.tri(length, k.shape[2], past, dtype=np.bool_)
    scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    attended = (powers / powers.sum(-1, keepdims=True)) @ v
    y = given + attended.transpose(0, 2, 1, 3).reshape(batch, length, width) @ weights["Wo"]
    inner = normal(y) @ weights["Wmlp_in"]
    return y + _gelu(inner) @ weights["Wmlp_out"], (k, v)


def _gelu(x: Array) -> Array:
    from math import erf

    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def _wide(value: Tensor) -> Array:
    return value.cpu().values().astype(np.float64)


def error(found: Tensor, wanted: Array) -> float:
    """Relative, in norm."""
    return float(np.linalg.norm(_wide(found) - wanted) / np.linalg.norm(wanted))
