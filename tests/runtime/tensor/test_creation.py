"""Making tensors: default dtypes, what is shared and what is copied, constants, ranges, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError, ResourceError, ShapeError


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (1, ts.i64),
        (1.0, ts.f32),
        (True, ts.bool_),
        ([1, 2], ts.i64),
        ([1, 2.0], ts.f32),
        ([[True], [False]], ts.bool_),
        ([], ts.f32),
        ((1, (2)), ts.i64),
        ([2**63], ts.u64),
        ([np.float64(1.0)], ts.f64),
        ([1.0, np.float64(1.0)], ts.f64),
        ([np.float16(1.0)], ts.f16),
        ([[1.0, 2.0], np.zeros(2)], ts.f64),
        (np.float32(1), ts.f32),
        (np.asarray([1], np.uint16), ts.u16),
        (np.asarray([1.0]), ts.f64),
    ],
)
def test_default_dtypes(values: Any, dtype: ts.DType) -> None:
    x = ts.asarray(values)
    assert x.dtype is dtype
    np.testing.assert_array_equal(x.numpy(), np.asarray(values))


@given(st.recursive(st.floats(width=64), lambda inner: st.lists(inner, min_size=2, max_size=2), max_leaves=4))
def test_python_floats_are_rounded_once(values: Any) -> None:
    try:
        expected = np.asarray(values)
    except ValueError:
        with pytest.raises(ShapeError, match="rectangle"):
            ts.asarray(values)
        return
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ts.asarray(values).numpy(), expected.astype(np.float32))


def test_lists_of_tensors() -> None:
    rows = [ts.ones(2, ts.bf16), ts.zeros(2, ts.bf16)]
    assert ts.asarray(rows).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert ts.asarray(rows).dtype is ts.bf16


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_explicit_dtypes(dtype: ts.DType) -> None:
    for made in (
        ts.asarray([1, 0, 1], dtype),
        ts.asarray([1.0, 0.0, 1.0], dtype),
        ts.array((True, False, True), dtype),
    ):
        assert made.dtype is dtype
        assert made.tolist() == [1, 0, 1]
        assert made.meta.alignment == 64
    assert ts.asarray([1, 2], dtype.name).dtype is dtype


def test_numbers_out_of_range() -> None:
    for values, dtype in (([300], ts.u8), ([[1], [-1]], ts.u64), ([8], ts.i4), (2**40, ts.i32)):
        with pytest.raises(DtypeError, match="out of range"):
            ts.asarray(values, dtype)
    for values in ([2**64], ["a"], [None], [1j], [object()]):
        with pytest.raises(DtypeError, match="expected bools, floats and integers"):
            ts.asarray(values)
    for value in ("text", {1: 2}, None, object()):
        with pytest.raises(DtypeError, match="cannot make a tensor"):
            ts.asarray(value)
    with pytest.raises(ShapeError, match="rectangle"):
        ts.asarray([[1, 2], [3]])


def test_arrays_that_numpy_knows_and_we_do_not() -> None:
    for array in (np.zeros(2, np.complex64), np.zeros(2, "U3"), np.zeros(2, object), np.zeros(2, [("a", "i4")])):
        with pytest.raises(DtypeError, match="not an element type"):
            ts.asarray(array)


@given(st.data(), st.sampled_from([dtype for dtype in ALL if dtype is not ts.tf32]))
def test_numpy_arrays_are_shared(data: st.DataObject, dtype: ts.DType) -> None:
    array = np.zeros(data.draw(hnp.array_shapes(max_dims=3, max_side=4)), dtype.storage)
    array = array[data.draw(hnp.basic_indices(array.shape))]
    if not isinstance(array, np.ndarray):
        return
    for made in (ts.asarray(array), ts.asarray(array, copy=False), ts.from_numpy(array), ts.asarray(array, dtype)):
        assert made.dtype is dtype
        assert made.numpy() is array
    copied = ts.asarray(array, copy=True)
    assert not np.shares_memory(copied.numpy(), array)
    assert copied.meta.is_contiguous


def test_copy_false_says_why_not() -> None:
    packed = np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"]
    structured = np.zeros(3, [("a", "<f4"), ("b", "<f8")])["b"]
    cases: list[tuple[str, Any, Any]] = [
        ("a Python list has no memory", [1.0], None),
        ("byte order", np.zeros(3, ">f4"), None),
        ("strides are not multiples", packed, None),
        ("strides are not multiples", structured, None),
        ("address is not a multiple", np.zeros(33, np.uint8)[1:].view(np.float64), None),
        ("f32 on cpu cannot be bf16 on cpu", np.zeros(3, np.float32), ts.bf16),
        ("f32 on cpu cannot be i8 on cpu", ts.ones(3), ts.i8),
    ]
    for message, source, dtype in cases:
        with pytest.raises(ResourceError, match=message):
            ts.asarray(source, dtype, copy=False)
        assert ts.asarray(source, dtype).tolist() == np.asarray(source).tolist()


def test_copies_are_made_once_and_only_on_demand() -> None:
    x = ts.ones((2, 3))
    assert ts.asarray(x) is x
    assert ts.asarray(x, ts.f32, device="cpu", copy=False) is x
    assert ts.array(x).pointer != x.pointer
    assert ts.asarray(x, ts.bf16, copy=True).dtype is ts.bf16
    assert ts.asarray(np.zeros(3, ">f4")).dtype is ts.f32


class Interface:
    """Has nothing but NumPy's array interface."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = array.__array_interface__
        self.keep = array


def test_other_protocols() -> None:
    array = np.arange(3.0)
    assert ts.asarray(Interface(array)).pointer == array.ctypes.data
    assert ts.asarray(memoryview(array.data)).pointer == array.ctypes.data


@pytest.mark.parametrize("dtype", [*ALL, ts.bf16 @ ts.accum(ts.f32), ts.f16 @ ts.loss_scale(8.0)], ids=str)
def test_constants(dtype: ts.DType) -> None:
    assert ts.zeros((2, 2), dtype).tolist() == [[0, 0], [0, 0]]
    assert ts.ones(3, dtype).tolist() == [1, 1, 1]
    assert ts.full((1, 2), True, dtype).tolist() == [[1, 1]]
    assert ts.empty((2, 0, 3), dtype).shape == (2, 0, 3)
    assert ts.eye(2, dtype=dtype).tolist() == [[1, 0], [0, 1]]
    x = ts.zeros((3, 2), dtype).T
    for like, value in ((ts.zeros_like(x), 0), (ts.ones_like(x), 1), (ts.full_like(x, True), 1)):
        assert (like.shape, like.dtype, like.tolist()) == ((2, 3), dtype, [[value] * 3] * 2)
        assert like.meta.is_contiguous
    assert ts.empty_like(x).shape == (2, 3)
    assert ts.zeros_like(x, ts.i8).dtype is ts.i8


def test_full_takes_the_type_of_its_value() -> None:
    assert ts.full(2, 1.5).dtype is ts.f32
    assert ts.full(2, 7).dtype is ts.i64
    assert ts.full(2, False).dtype is ts.bool_
    with pytest.raises(DtypeError):
        ts.full(2, 1.5, ts.i32)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_arange_of_integers(start: int, stop: int, step: int) -> None:
    assert ts.arange(start, stop, step).tolist() == list(range(start, stop, step))
    assert ts.arange(start, stop, step, ts.f64).tolist() == list(range(start, stop, step))


def test_ranges() -> None:
    assert ts.arange(3).tolist() == [0, 1, 2]
    assert ts.arange(0.0, 1.0, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert ts.arange(2.0).dtype is ts.f32
    assert ts.arange(300, dtype=ts.bf16).dtype is ts.bf16
    assert ts.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert ts.linspace(0, 1, 4, endpoint=False).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert ts.eye(2, 3, k=1).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    for start, stop, step in ((0, 5, 0), (0, math.inf, 1), (math.nan, 1, 1)):
        with pytest.raises(ShapeError, match="no length"):
            ts.arange(start, stop, step)


def test_shapes() -> None:
    assert ts.zeros(3).shape == (3,)
    assert ts.zeros(()).shape == ()
    assert ts.zeros([2, 3]).shape == (2, 3)
    assert ts.zeros((np.int64(2),)).shape == (2,)
    wrong: list[Any] = [-1, (2, -3), "ab", (1.5,), 2.0]
    for shape in wrong:
        with pytest.raises(ShapeError, match="expected a shape"):
            ts.zeros(shape)
    with pytest.raises(ResourceError, match="cannot be had"):
        ts.empty((1 << 40, 1 << 20))
    with pytest.raises(DtypeError):
        ts.zeros(2, "f31")
