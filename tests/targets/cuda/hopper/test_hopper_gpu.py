"""Golden texts on a GPU, through the runtime: right, every element written, the same bits each time."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import golden_kernels as golden
import tessera as ts
from tessera.errors import ShapeError
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import plan_of_function

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, Any]
ATTENTION = [(name, int(name.split("_")[2]), "causal" in name) for name in golden.names() if "attention" in name]


@cache
def executable(name: str, element: str) -> CudaExecutable:
    module = golden.module(name, element)
    function = golden.function_of(module)
    made = compile_lowered(module, function.sym_name.data)
    return CudaExecutable(plan_of_function(function, made), made.ptx.encode())


def run_twice(name: str, element: str, values: list[Any]) -> Array:
    """The result as float64; it must be the same twice, in memory that others used before."""
    given = [value.geometry if isinstance(value, ts.Tensor) else value for value in values]
    run = executable(name, element).bind(given)
    first = run(*given).cpu().numpy()
    again = run(*given).cpu().numpy()
    np.testing.assert_array_equal(first.view(np.uint16), again.view(np.uint16))
    return first.astype(np.float64)


def on_gpu(array: Array) -> ts.Tensor:
    return ts.asarray(array).cuda()


def attention_truth(q: Array, k: Array, v: Array, causal: bool) -> Array:
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], np.bool_)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def off_by(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize(("name", "size", "causal"), ATTENTION)
@pytest.mark.parametrize("shape", [(2, 3, 1), (1, 2, 65), (2, 5, 777), (1, 150, 129)])
def test_attention(name: str, size: int, causal: bool, shape: tuple[int, int, int]) -> None:
    b, h, s = shape
    chance = np.random.default_rng(0)
    # Heads lie between rows, as a projection leaves them.
    near = [chance.standard_normal((b, s, h, size)).astype(np.float16) for _ in range(3)]
    q, k, v = (on_gpu(array).transpose(1, 2) for array in near)
    scale = math.log2(math.e) / math.sqrt(size)
    found = run_twice(name, "f16", [q, k, v, scale])
    wide_q, wide_k, wide_v = (array.swapaxes(1, 2) for array in near)
    assert off_by(found, attention_truth(wide_q, wide_k, wide_v, causal)) < 1e-3


@pytest.mark.parametrize("name", ["gemm", "gemm_kn"])
@pytest.mark.parametrize("shape", [(1, 8, 16), (129, 264, 64), (300, 520, 72), (1000, 1040, 1000)])
def test_product(name: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    chance = np.random.default_rng(1)
    a, b = (chance.standard_normal(sizes).astype(np.float32) for sizes in ((m, k), (k, n)))
    left, right = (ts.asarray(array).to(ts.float16) for array in (a, b if name == "gemm_kn" else b.T.copy()))
    found = run_twice(name, "f16", [left.cuda(), right.cuda()])
    truth = left.numpy().astype(np.float64) @ b.astype(np.float16).astype(np.float64)
    assert off_by(found, truth) < 1e-3


def test_arrays_that_the_copy_engine_cannot_read_are_refused() -> None:
    a, b = (on_gpu(np.zeros((8, 20), np.float16))[:, 1:17] for _ in range(2))
    with pytest.raises(ShapeError, match="argument 0"):
        run_twice("gemm", "f16", [a, b])
