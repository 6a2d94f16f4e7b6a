"""Checks that `tessera.tile` has every intrinsic, that the page names them, and the small ones against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tessera import CompileError, TesseraError, f32, i32, kernel, tile
from tessera.tile.calls.function import Kernel

# The kernels' row of the public surface.
SURFACE = (
    "context",
    "load",
    "store",
    "dot",
    "mma",
    "transpose",
    "broadcast",
    "zeros",
    "full",
    "range_n",
    "row_index",
    "col_index",
    "mask_causal",
    "softmax_online",
    "softmax_accumulate",
    "cast",
    "rsqrt",
    "exp2",
    "max",
    "sum",
    "where",
    "dropout",
    "atomic_add",
)
Array = np.ndarray[Any, np.dtype[Any]]
UNARY: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "reciprocal")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "tanh", "floor", "ceil", "round", "trunc", "abs")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
X = np.linspace(0.25, 4, 31, dtype=np.float32)


def intrinsics() -> list[str]:
    own = [name for name, value in vars(tile).items() if callable(value) and not name.startswith("_")]
    modules = {f"tessera.tile.language.{name}" for name in ("intrinsics", "packing", "rearrange")}
    return [name for name in own if getattr(tile, name).__module__ in modules]


def test_the_public_surface_is_there() -> None:
    assert [name for name in SURFACE if name not in intrinsics()] == []
    assert tile.mma is tile.dot


def test_the_page_names_every_intrinsic() -> None:
    page = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text(encoding="utf-8")
    words = set(page.replace("`", " ").replace(",", " ").split())
    assert [name for name in intrinsics() if name not in words] == []


@kernel
def applying(x: Any, *, name: str):
    return getattr(tile, name)(tile.load(x))


@pytest.mark.parametrize("name", UNARY)
def test_elementwise_functions(name: str) -> None:
    np.testing.assert_allclose(applying(X, name=name).numpy(), UNARY[name](X.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_questions(name: str) -> None:
    x = np.array([1.0, np.inf, -np.inf, np.nan], np.float32)
    assert np.array_equal(applying(x, name=name).numpy(), getattr(np, name)(x))


@kernel
def merging(x: Any, out: Any, *, name: str):
    getattr(tile, name)(out, tile.load(x, at=(0,), shape=(4,)), at=(0,))


@pytest.mark.parametrize(
    ("name", "combine"), [("atomic_add", np.add), ("atomic_max", np.maximum), ("atomic_min", np.minimum)]
)
def test_atomics(name: str, combine: Any) -> None:
    x, out = np.array([3, -1, 4, 2], np.int32), np.array([1, 1, 5, 5], np.int32)
    expected = combine(out, x)
    merging[1](x, out, name=name)
    assert np.array_equal(out, expected)


def test_making_tiles() -> None:
    @kernel
    def made(x: Any):
        here = tile.context()
        column = tile.iota((here.m, 1), 0, dtype=i32)
        return (
            tile.broadcast(column, (here.m, 3)),
            tile.transpose(tile.full((3, here.m), 2.5)),
            tile.ones((here.m,), f32),
        )

    counted, filled, ones = (result.numpy() for result in made(np.zeros((5, 1), np.float32)))
    assert np.array_equal(counted, np.repeat(np.arange(5)[:, None], 3, 1))
    assert (filled == 2.5).all()
    assert filled.shape == (5, 3)
    assert (ones == 1).all()


def test_assertions_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @kernel
    def checked(x: Any, limit: float):
        tile.debug_print("limit", limit)
        tile.assert_(tile.load(x) < limit, "all are below the limit")  # noqa: PT009  (a kernel's)
        return tile.load(x)

    checked(X, 5.0)
    assert "limit" in capsys.readouterr().out
    with pytest.raises(CompileError, match="all are below the limit"):
        checked(X, 1.0)


def test_operators_on_numbers_work_from_both_sides() -> None:
    @kernel
    def powers(x: Any, n: int):
        y = tile.load(x)
        return 2**y + y**2 + (7 - y) + 3 / y + (5.5 % y) + (-y) + abs(-y) + (9 // y) + (n ^ 3) + (3 ^ n)

    x = X.astype(np.float64)
    expected = 2**x + x**2 + (7 - x) + 3 / x + (5.5 % x) + (9 // x) + (5 ^ 3) * 2
    np.testing.assert_allclose(powers(X, 5).numpy(), expected, rtol=1e-5)


def test_intrinsics_outside_a_kernel_are_refused() -> None:
    with pytest.raises(CompileError, match="no kernel is being traced"):
        tile.zeros((3,))


def test_objects_bring_their_arrays_and_numbers() -> None:
    @kernel
    def held(x: Any, cache: Any):
        return tile.load(x) + tile.load(cache.bias) * cache.scale

    x = np.ones((3, 4), np.float32)

    def cache(dtype: Any, scale: float) -> SimpleNamespace:
        return SimpleNamespace(bias=np.full((3, 4), 2, dtype), scale=scale)

    assert (held(x, cache(np.float32, 3.0)).numpy() == 7).all()
    # Another element type or kind of number behind the same attribute is another program.
    assert (held(x, cache(np.float16, 5)).numpy() == 11).all()
    first = held.lower(x, cache(np.float32, 3.0))
    assert held.lower(x, cache(np.float32, 9.0)) is first
    assert held.lower(x, cache(np.float16, 5)) is not first
    with pytest.raises(TesseraError, match="cache has no attribute bias"):
        held(x, SimpleNamespace(scale=1.0))


def test_every_form_of_the_decorator_makes_a_kernel() -> None:
    def body(x: Any):
        return tile.load(x)

    for decorate in (kernel, kernel(), kernel.auto, kernel.autotune(space={"BM": [8, 16]})):
        made = decorate(body)
        assert isinstance(made, Kernel)
        assert np.array_equal(made(X).numpy(), X)
