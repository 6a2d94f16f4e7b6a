"""Products on a GPU: any order in memory, odd sizes, few rows, parts of a depth; the same as NumPy's, each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import bf16, f32, jit

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]


def product(x: ts.Tensor, w: ts.Tensor) -> ts.Tensor:
    return x @ w


def gated(x: ts.Tensor, w: ts.Tensor) -> ts.Tensor:
    made = x @ w
    return ts.astype(made * ts.sigmoid(made), f32)


def both(shape: tuple[int, int], chance: np.random.Generator, turned: bool) -> tuple[Any, Array]:
    """An array on the GPU, whose axes may be exchanged in memory, and the same on the host, in f64."""
    made = ts.asarray(chance.standard_normal(shape[::-1] if turned else shape).astype(np.float32)).astype(bf16)
    there = made.cuda()
    wide = made.astype(f32).numpy().astype(np.float64)
    return (there.T, wide.T) if turned else (there, wide)


def check(function: Any, x: Any, w: Any, expected: Array) -> None:
    found = [function(x, w).cpu().astype(f32).numpy() for _ in range(2)]
    assert np.array_equal(found[0], found[1]), "results are the same each time"
    assert np.allclose(found[0], expected, rtol=2e-2, atol=2e-2 * max(1.0, np.abs(expected).max()))


SIZES = st.sampled_from([1, 2, 7, 8, 16, 33, 64, 65, 96, 128, 200, 256, 257])
DEPTHS = st.sampled_from([8, 64, 100, 136, 1000, 2048, 4096, 4104])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_products_of_any_order_and_size(data: st.DataObject) -> None:
    rows, depth, columns = data.draw(SIZES), data.draw(DEPTHS), data.draw(SIZES)
    chance = np.random.default_rng(rows + depth + columns)
    (x, left), (w, right) = (
        both((rows, depth), chance, data.draw(st.booleans())),
        both((depth, columns), chance, data.draw(st.booleans())),
    )
    expected = left @ right
    check(product, x, w, expected)
    check(jit(product), x, w, expected)
    check(jit(gated), x, w, expected / (1 + np.exp(-expected)))


def test_deep_products_of_few_rows_are_divided() -> None:
    chance = np.random.default_rng(0)
    (x, left), (w, right) = both((256, 14336), chance, False), both((14336, 1024), chance, True)
    deep = jit(product)
    check(deep, x, w, left @ right)
    assert "multiplies its depth in" in "\n".join(str(one.program.explain()) for one in deep.explain().variants)


def test_sizes_that_change_have_blocks_of_their_own() -> None:
    chance = np.random.default_rng(1)
    w, right = both((2048, 1024), chance, False)
    function = jit(product)
    for rows in (64, 128, 5, 300, 17, 2048, 64):
        x, left = both((rows, 2048), chance, False)
        check(function, x, w, left @ right)
    assert function.explain().compilations <= 2


def test_large_numbers_of_one_row_stay_in_it() -> None:
    chance = np.random.default_rng(2)
    _, left = both((3, 512), chance, False)
    w, right = both((512, 256), chance, False)
    left[1] = np.inf
    huge = ts.asarray(left.astype(np.float32)).astype(bf16).cuda()
    found = jit(product)(huge, w).cpu().astype(f32).numpy()
    assert not np.isfinite(found[1]).any()
    assert np.allclose(found[[0, 2]], left[[0, 2]] @ right, rtol=2e-2, atol=1.0)
