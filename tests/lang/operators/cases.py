"""Operators as cases: what is called, what NumPy makes of the same arrays in f64, and the arrays for a size.

Each is called eagerly, and as one jitted function for several sizes: from the second on its sizes are symbols, or
numbers where it needs numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from compared import Array, array, tensor

import tessera as ts
from tessera.dtypes.types import DType

SIZES = (3, 4, 7)
BOUNDS = {ts.f64: 1e-12, ts.f32: 4e-6, ts.f16: 1e-3, ts.bf16: 8e-3}


@dataclass(frozen=True)
class Case:
    """`run` and `expected` take the same arrays, as tensors and as those of NumPy in f64; `arguments` makes these."""

    run: Callable[..., Any]
    expected: Callable[..., Any]
    arguments: Callable[[int], Any]


def floats(*shape: int, low: float = -3.0, high: float = 3.0, seed: int = 0) -> Array:
    """Numbers with equal ones among them."""
    return array(ts.f64, shape, seed + sum(shape), low=low, high=high, odd=False)


def whole(*shape: int, below: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).integers(0, below, shape)


def where(condition: Array, a: Array, b: Array) -> Any:
    """NumPy's, typed for lambdas, whose arguments may be anything."""
    return np.where(condition, a, b)


def compare(found: Any, expected: Any, dtype: DType) -> None:
    """Shapes and kinds alike; floats within the bound of their type, all else equal."""
    leaves = ts.tree_leaves(found)
    several = isinstance(expected, tuple | list)
    wanted: list[Any] = [np.asarray(one) for one in (cast("list[Any]", expected) if several else (expected,))]
    assert len(leaves) == len(wanted)
    for got, want in zip(leaves, wanted, strict=True):
        values = got.numpy()
        assert got.shape == want.shape
        if not got.dtype.is_float:
            np.testing.assert_array_equal(values, want)
            continue
        assert want.dtype.kind == "f"
        bound = BOUNDS[dtype if got.dtype.bits <= dtype.bits else got.dtype]
        np.testing.assert_allclose(values.astype(np.float64), want, rtol=bound, atol=bound)


def given(values: Array, dtype: DType) -> tuple[ts.Tensor, Array]:
    """An array as a tensor, floats rounded to a type, and what it is then in f64."""
    if values.dtype.kind != "f":
        return ts.asarray(values), values
    rounded = ts.asarray(values).to(dtype)
    return rounded, np.asarray(rounded.to(ts.f64).numpy())


def check(case: Case, dtype: DType = ts.f32, sizes: tuple[int, ...] = SIZES) -> None:
    """Eagerly and jitted, for several sizes."""
    jitted = ts.jit(case.run)
    for size in sizes:
        both = [given(values, dtype) for values in case.arguments(size)]
        tensors = [one for one, _ in both]
        with np.errstate(all="ignore"):
            expected = case.expected(*(values for _, values in both))
        compare(case.run(*tensors), expected, dtype)
        compare(jitted(*tensors), expected, dtype)


def sample(cases: Mapping[str, Case], quick: tuple[str, ...]) -> list[Any]:
    """Names of cases for machine code: a few of them always, all at full length."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.acceptance) for name in cases]


__all__ = ["SIZES", "Case", "check", "compare", "floats", "given", "sample", "tensor", "where", "whole"]
