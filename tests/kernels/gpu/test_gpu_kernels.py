"""Every kernel of the DSL's tests on a GPU, against the interpreter: sizes, strides, masks, infinities, no elements."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import test_native_odd_cases as cases
import test_native_odd_products as products
from gpu_arrays import on_device
from odd_arrays import SPECIAL, Odd, bounds, expect_close, expect_equal, interpreted

import tessera as ts
from tessera import DType, Schedule, bf16, f16, f32, f64

pytestmark = pytest.mark.gpu

# Sums of f32 products go through the tensor cores in three parts, and exponentials are good to two units.
_BEYOND = 4e-6
DTYPES = [f32, bf16, f16]
PLAIN: dict[str, Any] = {"ordinary": "normal", "special": "normal", "which": 0, "layouts": ("plain",)}


def check(name: str, arrays: Odd, n: Any) -> None:
    def call(new: Odd) -> Any:
        return cases.CASES[name](new, n)

    expected, found = interpreted(call, arrays), on_device(call, arrays)
    if name in ("histogram", "transpose"):
        expect_equal(found, expected)
        return
    terms = interpreted(call, arrays.positive())
    if name == "logsumexp":
        terms = np.fmax(terms, 1.0)
    beyond = _BEYOND + (n.s * 2.0**-23 if name in ("rope", "alibi_attention") else 0.0)
    if arrays.repeats:
        beyond += n.t * 2.0**-24
    work = f32 if name in cases.ANY_FLOAT and arrays.dtype is f64 else arrays.dtype
    overflow, has_products = arrays.special == "huge", name not in cases.ANY_FLOAT
    allowed = bounds(work, terms, expected, beyond=beyond, products=has_products, overflow=overflow)
    expect_close(found, expected, allowed, nans_may_be_missing=name in cases.MASKED)


def dtype_for(name: str, dtype: DType) -> DType:
    return dtype if dtype in cases.dtypes_of(name) else f64


LAYOUTS = [("plain",), ("late", "sparse"), ("transposed", "backwards"), ("sparse rows", "plain"), ("one row", "late")]
SIZES = [(1, 1, 16), (33, 65, 17), (128, 128, 64), (257, 130, 33)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", cases.CASES)
def test_kernels_give_what_the_interpreter_gives(name: str, dtype: DType) -> None:
    for index, (s, t, d) in enumerate(SIZES):
        arrays = Odd(dtype_for(name, dtype), "normal", "normal", 0, LAYOUTS[index % len(LAYOUTS)], seed=index)
        check(name, arrays, cases.Sizes(s, t, d, 5, (32, 32, 32) if index % 2 else (64, 64, 64)))


@pytest.mark.parametrize("name", cases.CASES)
def test_odd_layouts(name: str) -> None:
    for index, layouts in enumerate(LAYOUTS):
        arrays = Odd(dtype_for(name, bf16), "whole", "whole", 0, layouts, seed=index)
        check(name, arrays, cases.Sizes(70, 90, 40, 3, (32, 64, 32)))


@pytest.mark.parametrize("name", cases.CASES)
def test_special_values(name: str) -> None:
    for special, which in product(SPECIAL, range(2)):
        arrays = Odd(dtype_for(name, f32), "normal", special, which, ("plain",), 3)
        check(name, arrays, cases.Sizes(19, 70, 33, 5, (32, 64, 64)))


@pytest.mark.parametrize("name", cases.CASES)
def test_of_no_rows_and_no_keys_all_agree(name: str) -> None:
    for s, t in ((0, 5), (5, 0), (0, 0)):
        check(name, Odd(dtype_for(name, f32), **PLAIN, seed=1), cases.Sizes(s, t, 33, 3, (32, 64, 64)))


@pytest.mark.parametrize("types", products.WHOLE + products.FLOATS, ids=products.named)
def test_exact_products_have_the_same_bits(types: tuple[DType, DType]) -> None:
    for index, (m, n, k) in enumerate([(1, 1, 1), (33, 65, 17), (130, 70, 100), (64, 64, 64)]):
        new = products.numbers(LAYOUTS[index], 2 * index + index % 2)

        def call(new: Odd, m: int = m, n: int = n, k: int = k) -> Any:
            return products.multiplied(new, types, m, n, k, (64, 64, 64) if m != 33 else (33, 17, 31))

        expect_equal(on_device(call, new), interpreted(call, new))


@pytest.mark.parametrize("dtype", [ts.f16, ts.bf16, ts.f8e4m3, ts.f8e5m2], ids=str)
def test_rounded_products_are_close(dtype: DType) -> None:
    for seed, kind in enumerate(("normal", "infinite", "nan")):
        new = products.numbers(("plain", "late"), 2 * seed, dtype, kind)

        def call(new: Odd) -> Any:
            a, b, c = new(70, 130, summed=True), new(130, 50, summed=True), new.target(70, 50, dtype=ts.f32)
            products.product.with_schedule(Schedule(block=(64, 64, 64)))[5, 5](a, b, c, transposed=False)
            return c

        expected = interpreted(call, new)
        allowed = bounds(f32, interpreted(call, new.positive()), expected, products=True, beyond=_BEYOND)
        expect_close(on_device(call, new), expected, allowed)


def test_the_interpreter_takes_arrays_of_a_gpu() -> None:
    """They come over, strides and shared memory included, and what was written goes back."""
    x = ts.asarray(np.arange(48, dtype=np.float32).reshape(6, 8))
    near, far = x.copy(), x.cuda()
    with ts.knobs.interpret.using(True):
        found = cases.lib.softmax(far[1:, ::2])
        cases.lib.transpose[1, 1](far[:2, :3], far[3:6, 4:6])
        cases.lib.transpose[1, 1](near[:2, :3], near[3:6, 4:6])
        expected = cases.lib.softmax(x[1:, ::2])
    assert str(found.device) == "cuda:0"
    assert np.array_equal(found.cpu().numpy(), expected.numpy())
    assert np.array_equal(far.cpu().numpy(), near.numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_debug_build_names_the_line(dtype: DType) -> None:
    """Bounds and NaN, noticed on the GPU, are told at the line of the kernel; the next call works."""
    good = ts.asarray(np.ones((5, 40), np.float32)).to(dtype).cuda()
    bad = ts.asarray(np.full((5, 40), np.inf, np.float32)).to(dtype).cuda()
    with ts.knobs.checks.using(frozenset({"bounds", "nan"})):
        fine = cases.lib.softmax(good)
        with pytest.raises(ts.TesseraError, match=r"NaN|nan") as caught:
            cases.lib.softmax(bad)
        assert caught.value.span is not None
        assert caught.value.span.file.endswith("library.py")
        assert np.array_equal(cases.lib.softmax(good).cpu().numpy(), fine.cpu().numpy())
