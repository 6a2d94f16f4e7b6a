"""Keys that sort as floats do: in the interpreter, in machine code of CPUs and in PTX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.dtypes.types import DType

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 3.1, -2.5, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan]


@kernel
def keys(x: Any) -> Any:
    return tile.sort_key(tile.load(x))


def check(values: list[float], dtype: DType) -> None:
    x = np.array([values], np.float64).astype(dtype.storage)
    found = keys(ts.array(x, dtype)).numpy()[0]
    with knobs.interpret.using(True):
        assert np.array_equal(keys(ts.array(x, dtype)).numpy()[0], found)
    wide = x[0].astype(np.float64)
    for one, key in zip(wide, found, strict=True):
        greater = (wide > one) | (np.isnan(wide) & ~np.isnan(one))
        assert np.array_equal(found > key, greater)
        assert np.array_equal(found == key, (wide == one) | (np.isnan(wide) & np.isnan(one)))


@pytest.mark.parametrize("dtype", [ts.f32, ts.f64, ts.bf16, ts.f16])
def test_special_numbers(dtype: DType) -> None:
    with np.errstate(over="ignore"):
        check([*SPECIAL, *np.random.default_rng(0).standard_normal(50)], dtype)


@given(st.lists(st.floats(width=32), min_size=8, max_size=8))
def test_any_numbers(values: list[float]) -> None:
    check(values, ts.f32)
