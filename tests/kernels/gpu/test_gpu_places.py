"""Kernels in which memory decides, on a GPU, against the interpreter; sums of one order whatever is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import deciding_kernels as kernels
import numpy as np
import pytest
from gpu_arrays import on_gpu
from hinted_kernels import scaled

import tessera as ts
from tessera import RangeError, ShapeError, knobs
from tessera.dtypes import types as dtypes

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]
Case = tuple[Any, int, list[Array], dict[str, Any]]


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def whole(high: int, *shape: int, low: int = 0, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(1).integers(low, high, shape).astype(dtype)


def scatter(how: str, dtype: Any) -> Callable[[], Case]:
    def case() -> Case:
        rows = np.random.default_rng(2).permutation(40)[:33] - 3 if how == "scatter" else whole(24, 33, low=-2)
        value, out = whole(9, 33, 8).astype(dtype), whole(9, 22, 7).astype(dtype)
        return kernels.scattered, 9, [rows.astype(np.int64), value, out], {"how": how}

    return case


def pages_of(count: int) -> Array:
    """A table of five pages, and of some that are not there."""
    return np.array([0, 4, 5, -1, 2**32, 1, 2**32 + 2, -(2**62), 3, 2, 2**31, 7][:count], np.int64)


CASES: dict[str, Callable[[], Case]] = {
    "items": lambda: (kernels.item_of, 4, [numbers(4, dtype=dtypes.bf16.storage), np.zeros(4, np.float32)], {}),
    "flags": lambda: (kernels.item_of, 4, [numbers(4) > 0, np.zeros(4, np.float32)], {}),
    "places": lambda: (kernels.place_of, 5, [np.diag(np.array([255, 0, 7, 200], np.uint8)), np.zeros(5, np.int64)], {}),
    "segments": lambda: (
        kernels.summed_segments,
        5,
        [
            numbers(90),
            np.array([0, 0, 3, 30, 31, 90], np.int32),
            np.array([1, 1, 0, 1, 1], bool),
            np.zeros(5, np.float32),
        ],
        {},
    ),
    "rows": lambda: (
        kernels.gathered_rows,
        9,
        [numbers(21, 7), whole(24, 33, low=-3), np.zeros((33, 8), np.float32)],
        {"pad": 1},
    ),
    "rows far away": lambda: (
        kernels.gathered_rows,
        1,
        [numbers(5, 11), np.array([2**43, 1, 2**32 + 1, -(2**62)]), np.zeros((4, 8), np.float32)],
        {"pad": 3},
    ),
    "columns": lambda: (
        kernels.gathered_columns,
        9,
        [numbers(7, 21), whole(24, 33, low=-3, dtype=np.int8), np.zeros((8, 33), np.float32)],
        {},
    ),
    "a masked store": lambda: (kernels.stored_where, 1, [numbers(8, 16), numbers(7, 12, seed=3)], {}),
    "a column": lambda: (kernels.a_column, 5, [numbers(4, 5, 8), np.zeros((5, 4, 8), np.float32)], {}),
    "a while": lambda: (kernels.collatz, 50, [np.arange(1, 51), np.zeros(50, np.int64)], {}),
    "a loop that is left": lambda: (
        kernels.sums_until,
        4,
        [numbers(4, 90), np.array([0, 20, 50, 99]), np.array([-0.5], np.float32), np.zeros((4, 8), np.float32)],
        {},
    ),
    "products": lambda: (
        kernels.powers,
        1,
        [numbers(16, 16), numbers(16, 16, seed=2), np.array([7]), np.zeros((16, 16), np.float32)],
        {},
    ),
    "pages": lambda: (kernels.paged, 9, [numbers(5, 3, 7), pages_of(9), np.zeros((9, 4, 8), np.float32)], {"pad": 1}),
    "rows of pages": lambda: (
        kernels.paged_twice,
        8,
        [numbers(5, 7, 9), pages_of(9), np.zeros((8, 8), np.float32)],
        {},
    ),
    "columns of pages": lambda: (
        kernels.paged_columns,
        9,
        [numbers(8, 5, 7), pages_of(9), np.zeros((9, 8, 8), np.float32)],
        {},
    ),
    **{
        f"{how} pages": lambda how=how: (
            kernels.paged_out,
            9,
            [numbers(9, 4, 8), pages_of(9), numbers(5, 3, 9, seed=2)],
            {"how": how},
        )
        for how in ("store", "atomic", "scatter")
    },
    **{
        f"{how} of {np.dtype(dtype)}": scatter(how, dtype)
        for how in ("scatter", "scatter_add", "scatter_max", "scatter_min")
        for dtype in (np.float32, np.float16, dtypes.bf16.storage, np.int32, np.int8, np.uint16)
    },
}


def run(case: Case, *, backwards: bool = False) -> Array:
    """What a kernel makes of its last array on the GPU; `backwards`, of arrays with gaps that run backwards."""
    function, grid, arrays, options = case
    if backwards:
        arrays = [np.repeat(array[..., ::-1], 2, -1)[..., ::-2] for array in arrays]
    given = [on_gpu(array, ts.asarray(array).dtype)[0] for array in arrays]
    function[grid](*given, **options)
    return given[-1].cpu().numpy()


@pytest.mark.parametrize("backwards", [False, True], ids=["plain", "backwards"])
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_gives_what_the_interpreter_gives(name: str, backwards: bool) -> None:
    function, grid, arrays, options = CASES[name]()
    with knobs.interpret.using(True):
        function[grid](*arrays, **options)
    found = run(CASES[name](), backwards=backwards)
    error = np.abs(found.astype(np.float64) - arrays[-1].astype(np.float64)).max()
    assert error <= (1e-3 if name == "products" else 1e-5) * max(1, np.abs(arrays[-1].astype(np.float64)).max())


def test_sums_are_the_same_each_time_where_that_is_asked() -> None:
    rows, value, out = whole(5, 999), numbers(999, 8), np.zeros((5, 9), np.float32)
    case: Case = (kernels.scattered, 250, [rows.astype(np.int64), value, out], {"how": "scatter_add"})
    with knobs.deterministic.using(True):
        found = {run(case).tobytes() for _ in range(8)}
    assert len(found) == 1
    expected = np.zeros((5, 8))
    np.add.at(expected, rows, value.astype(np.float64))
    assert np.allclose(np.frombuffer(found.pop(), np.float32).reshape(5, 9)[:, 1:], expected, atol=1e-3)


def test_checks_find_what_lies_outside_and_nothing_faults() -> None:
    rows = np.array([0, 1, 1 << 40, -(1 << 40), 4], np.int64)
    case: Case = (kernels.gathered_rows, 2, [numbers(5, 11), rows, np.zeros((5, 8), np.float32)], {})
    assert run(case)[2:4].tolist() == np.zeros((2, 8)).tolist()
    with knobs.checks.using("bounds"):
        with pytest.raises(RangeError, match="gather has an index outside its view, along axis 0"):
            run(case)
        with pytest.raises(RangeError, match=r"tile\.item has an index outside its view, along axis 0"):
            run((kernels.item_of, 4, [numbers(3), np.zeros(4, np.float32)], {}))


def test_a_check_that_the_host_makes_is_the_error_of_the_check() -> None:
    x, out = ts.ones((30, 64), device="cuda"), ts.zeros((30, 64), device="cuda")
    with knobs.checks.using("bounds"):
        scaled[2](x, out)
        with pytest.raises(ShapeError, match=r"tile\.load starts outside its view, along axis 0"):
            scaled[3](x, out)
    assert (out.cpu().numpy() == 2).all()


def test_copies_by_tensor_maps_bring_nothing_where_a_page_is_not_there() -> None:
    pages, w = numbers(5, 128, 256).astype(np.float16), numbers(256, 64, seed=2).astype(np.float16)
    out, table = np.full((6, 128, 64), 7, np.float16), np.array([0, 3, 2**32 + 1, 0, 1, -1, 4, 2**32, 9, 1, 3, 5])
    case: Case = (kernels.multiplied_pages, 6, [pages, w, table, out], {"steps": 4})
    found, expected = run(case), out.copy()
    for source, target in table.reshape(6, 2).tolist():
        if 0 <= target < 6:
            left = pages[source] if 0 <= source < 5 else np.zeros_like(pages[0])
            expected[target] = (left.astype(np.float32) @ w.astype(np.float32)).astype(np.float16)
    assert np.abs(found.astype(np.float32) - expected.astype(np.float32)).max() < 0.1
    assert (found[[0, 1, 2, 4]] == np.array([0, 0, 7, 7])[:, None, None]).all()
    assert "compiled: warp-specialized, " in kernels.multiplied_pages.explain()


def test_copies_by_tensor_maps_may_begin_in_front_of_an_array() -> None:
    x, w = numbers(256, 256).astype(np.float16), numbers(256, 64, seed=2).astype(np.float16)
    case: Case = (kernels.before_and_behind, 8, [x, w, np.full((512, 64), 7, np.float16)], {"steps": 4})
    found, product = run(case), x.astype(np.float32) @ w.astype(np.float32)
    # Instance 2 has rows before x, 3 to 6 those of x, and 7 those behind it; 0 and 1 store in front of the result.
    expected = np.concatenate([np.zeros((128, 64)), product[:128], product[:128], product[128:]])
    assert np.abs(found.astype(np.float32) - expected).max() < 0.1
    assert "compiled: warp-specialized, " in kernels.before_and_behind.explain()
