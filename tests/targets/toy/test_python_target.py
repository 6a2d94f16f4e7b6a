"""A third target, in a folder of its own: kernels run on it as they do on the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from python_target import PythonTarget

import tessera as ts
from tessera import Schedule, f32, kernel, knobs, tile
from tessera.compiler.target import register, target_names
from tessera.errors import CompileError

if TYPE_CHECKING:
    Out = Any
else:
    from tessera import Out


@pytest.fixture(name="python", autouse=True)
def _python() -> Iterator[None]:
    """Kernels are written in Python meanwhile."""
    register(PythonTarget())
    with knobs.backend.using("python"):
        yield


@kernel
def saxpy(x: Any, y: Any, a: float) -> Any:
    return a * tile.load(x) + tile.load(y)


@kernel
def softmax(x: Any) -> Any:
    rows = tile.load(x).to(f32)
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return tile.cast(weights / tile.sum(weights, keepdims=True), x.dtype)


@kernel.schedule(Schedule(block=(32, 32, 16)))
def gemm(a: Any, b: Any, c: Out) -> None:
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


def test_saxpy_runs_in_python() -> None:
    x, y = ts.randn((100,), seed=1), ts.randn((100,), seed=2)
    assert np.allclose(saxpy(x, y, 2.0).numpy(), 2 * x.numpy() + y.numpy())
    assert "by python" in saxpy.explain()


def test_softmax_runs_in_python() -> None:
    x = ts.randn((37, 60), seed=3)
    weights = np.exp(x.numpy() - x.numpy().max(1, keepdims=True))
    assert np.allclose(softmax(x).numpy(), weights / weights.sum(1, keepdims=True), rtol=1e-6)


def test_a_gemm_runs_in_python() -> None:
    a, b, c = ts.randn((50, 40), seed=4), ts.randn((40, 70), seed=5), ts.zeros((50, 70))
    gemm[2, 3](a, b, c)
    assert np.allclose(c.numpy(), a.numpy() @ b.numpy(), atol=1e-5)


def test_what_it_does_not_know_is_refused_where_it_stands() -> None:
    @kernel
    def sorted_sums(x: Any) -> Any:
        return tile.erf(tile.load(x))

    with pytest.raises(CompileError, match=r"Python has no line for tile\.ew"):
        sorted_sums(ts.ones((3,)))


def test_the_target_is_known_by_name_and_knows_no_other() -> None:
    assert "python" in target_names()
    (path,) = Path(__file__).parent.glob("python_target.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules
    assert not [module for module in modules if module.startswith("tessera.targets")]
