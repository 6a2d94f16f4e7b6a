"""Attention of few queries to many keys against float64: masks, lengths in memory, groups of heads, strides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tessera as ts
from tessera.runtime.tensor.tensor import Tensor


class Decode(NamedTuple):
    """A call: batch, heads, those of keys, queries, keys, width; its type, options, and how arrays lie."""

    sizes: tuple[int, int, int, int, int, int]
    dtype: str = "bf16"
    options: tuple[str, ...] = ()
    heads_last: bool = False

    def __str__(self) -> str:
        return "-".join([*map(str, self.sizes), self.dtype, *self.options, *(("strided",) if self.heads_last else ())])


CASES = (
    Decode((1, 32, 8, 1, 4096, 128)),
    Decode((3, 8, 2, 1, 700, 64), "f16", heads_last=True),
    Decode((2, 16, 1, 1, 3001, 128), options=("lengths",)),
    Decode((2, 16, 16, 1, 1030, 96), options=("lengths", "soft_cap")),
    Decode((2, 8, 2, 4, 2050, 128), options=("causal",)),
    Decode((2, 8, 4, 3, 2050, 64), "f16", ("causal", "window")),
    Decode((1, 32, 4, 16, 1500, 128), options=("causal", "lengths")),
    Decode((2, 8, 2, 1, 2000, 256), options=("window",), heads_last=True),
    Decode((2, 8, 2, 1, 2000, 128), options=("offset", "causal")),
    Decode((2, 8, 2, 1, 1999, 128), options=("bias",)),
    Decode((2, 8, 2, 5, 1999, 128), options=("bias", "mask")),
    Decode((2, 4, 4, 2, 640, 128), options=("lse", "lengths")),
    Decode((2, 8, 2, 1, 1000, 32), "f32", ("causal", "lse")),
)
BOUNDS = {"bf16": 8e-3, "f16": 1e-3, "f32": 2e-3}
"""Of a GPU, whose products of f32 are those of tf32 in three parts."""


def made(case: Decode, seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
    random = np.random.default_rng(seed)
    batch, heads, groups, rows, keys, width = case.sizes
    shapes = (batch, heads, rows, width), (batch, groups, keys, width), (batch, groups, keys, width)
    arrays: list[Any] = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    drawn: dict[str, Any] = {
        "key_lengths": random.integers(0, keys + 9, batch).astype(np.int32),
        "bias": random.standard_normal((rows, keys)).astype(np.float32),
        "mask": random.random((batch, 1, rows, keys)) < 0.7,
        "offset": np.array(keys // 2, np.int32),
    }
    names = {"lengths": "key_lengths"}
    options: dict[str, Any] = {"window": 300, "soft_cap": 3.0, "causal": True}
    found = {names.get(one, one): drawn.get(names.get(one, one), options.get(one, True)) for one in case.options}
    if found.pop("lse", False):
        found["return_lse"] = True
    return arrays, found


def attended(arrays: list[Any], options: dict[str, Any]) -> tuple[Any, Any]:
    q, k, v = (np.asarray(x, np.float64) for x in arrays)
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores: Any
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    if "soft_cap" in options:
        scores = np.tanh(scores / options["soft_cap"]) * options["soft_cap"]
    scores = scores + options.get("bias", 0)
    count, length = int(scores.shape[-2]), int(scores.shape[-1])
    last: Any = np.arange(count)[:, None] + options.get("offset", length - count)
    keys: Any = np.arange(length)
    hidden: list[Any] = [~options["mask"]] if "mask" in options else []
    if "causal" in options:
        hidden.append(keys > last)
    if "window" in options:
        hidden.append(last - keys >= options["window"])
    if "key_lengths" in options:
        hidden.append(keys >= options["key_lengths"][:, None, None, None])
    for one in hidden:
        scores = np.where(one, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(total) + np.where(np.isinf(top), 0, top)
    return weights / np.where(total == 0, 1, total) @ v, logs[..., 0]


def check(case: Decode, device: str, seed: int = 0) -> None:
    arrays, options = made(case, seed)
    dtype = getattr(ts, case.dtype)

    def given(array: Any) -> Tensor:
        if not case.heads_last:
            return ts.asarray(array).to(dtype).to(device)
        return ts.asarray(np.ascontiguousarray(array.transpose(0, 2, 1, 3))).to(dtype).to(device).transpose(1, 2)

    tensors = [given(array) for array in arrays]
    rounded = [x.cpu().to(ts.f32).numpy() for x in tensors]
    moved = {name: ts.asarray(x).to(device) if hasattr(x, "shape") else x for name, x in options.items()}
    found: list[Any] = [ts.flash_attention(*tensors, **moved) for _ in range(2)]
    results, again = ([x] if isinstance(x, Tensor) else [*x] for x in found)
    for one, same, other in zip(results, again, attended(rounded, options), strict=False):
        mine = one.cpu().to(ts.f32).numpy().astype(np.float64)
        finite = np.isfinite(other)
        assert np.array_equal(mine[~finite], other[~finite])
        error = np.linalg.norm(mine[finite] - other[finite]) / max(np.linalg.norm(other[finite]), 1e-30)
        assert error <= BOUNDS[case.dtype], error
        assert np.array_equal(mine, same.cpu().to(ts.f32).numpy(), equal_nan=True)


@pytest.mark.acceptance
@pytest.mark.parametrize("case", CASES, ids=str)
def test_few_queries(case: Decode) -> None:
    check(case, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_few_queries_on_a_gpu(case: Decode) -> None:
    check(case, "cuda")
