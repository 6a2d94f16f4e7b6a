"""What is typed in a notebook: dtypes by NumPy's names, NumPy's functions, lists, rounding, tables."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import re
from array import array as packed
from collections.abc import Callable, Generator
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera import knobs
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError, EffectError, ShapeError
from tessera.runtime.device.memory import Array

PLAIN = [dtype for dtype in ALL if dtype is not ts.tf32]


# Types


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_dtypes_are_those_of_numpy(dtype: ts.DType) -> None:
    named: Any = dtype
    assert np.dtype(named) == dtype.storage
    assert np.zeros(2, named).dtype == dtype.storage
    assert dtype.itemsize == dtype.storage.itemsize
    for other in (dtype.storage, dtype.storage.type, dtype.name):
        assert dtype == other
        assert other == dtype
        assert not dtype != other  # noqa: SIM202  (the other operator)
    assert [one for one in PLAIN if one == dtype.storage] == [dtype]
    assert [one for one in ALL if one == dtype.storage.type] == [dtype]


def test_dtypes_equal_what_means_them_and_nothing_else() -> None:
    x = ts.ones(3)
    assert x.dtype == np.float32 == x.dtype
    assert x.dtype == "float32"
    assert x.dtype != np.float64
    assert x.dtype in (np.float16, np.float32)
    for kind, dtype in ((float, ts.f32), (int, ts.i64), (bool, ts.bool_)):
        assert [one for one in ALL if one == kind] == [dtype]
    assert ts.bf16 == ml_dtypes.bfloat16
    for other in (None, 3, "f33", "", object(), ts.Tensor, np.floating, np.generic, object, ts.f64, [ts.f32]):
        assert x.dtype != other
        assert not x.dtype == other  # noqa: SIM201  (the other operator)
    assert {ts.f32: 1, ts.f64: 2}[ts.as_dtype("float32")] == 1
    assert f"{ts.f32:>5}|{ts.bf16 @ ts.saturate}" == "  f32|bf16 @ saturate"


def test_policies_that_change_no_stored_value_are_numpys_type_all_the_same() -> None:
    rounded: Any = ts.bf16 @ ts.accum(ts.f32)
    assert np.dtype(rounded) == ts.bf16.storage == rounded
    assert rounded != ts.bf16
    for hidden in (ts.tf32, ts.f16 @ ts.loss_scale(4.0), ts.i8 @ ts.scaled(0)):
        assert hidden != hidden.storage
        assert hidden != hidden.storage.type
        with pytest.raises(TypeError):
            np.dtype(cast("Any", hidden))


def test_numpy_asks_dtypes() -> None:
    kinds: Any = np
    assert kinds.issubdtype(ts.f32, np.floating)
    assert kinds.result_type(ts.f32, np.float64) == np.float64
    assert np.asarray(ts.ones(2), dtype=cast("Any", ts.f64)).dtype == np.float64


def test_devices_equal_their_names() -> None:
    x = ts.ones(1)
    assert x.device == "cpu" == x.device
    assert x.device != "cuda"
    assert x.device != 0
    assert len({x.device, ts.device("cpu")}) == 1


# NumPy's functions


@pytest.fixture
def _interpreter() -> Generator[None]:
    """What operators mean does not depend on what runs them, and this starts at once."""
    with knobs.backend.using("interpreter"):
        yield


X = ts.asarray([[1.0, -2.0, 3.5], [0.25, 5.0, -6.0]])
W = ts.asarray([[4.0, 0.5, -1.0], [2.0, 8.0, 0.5]])

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "np.exp": lambda x, _: np.exp(x),
    "np.add": np.add,
    "np.maximum": lambda x, _: np.maximum(x, 0),
    "np.arctan2": np.arctan2,
    "np.absolute": lambda x, _: np.absolute(x),
    "np.square": lambda x, _: np.square(x),
    "np.hypot": np.hypot,
    "np.less": np.less,
    "np.isnan": lambda x, _: np.isnan(x),
    "np.sum": lambda x, _: np.sum(x),
    "np.sum along": lambda x, _: np.sum(x, 0, keepdims=True),
    "np.mean": lambda x, _: np.mean(x, axis=1),
    "np.std": lambda x, _: np.std(x, axis=1, ddof=1),
    "np.max": lambda x, _: np.max(x, axis=-1),
    "np.any": lambda x, w: np.any(x > w),
    "np.argmax": lambda x, _: np.argmax(x, axis=1),
    "np.cumsum": lambda x, _: np.cumsum(x),
    "np.sort": lambda x, _: np.sort(x),
    "np.where": lambda x, w: cast(object, np.where(x > w, x, w)),
    "np.clip": lambda x, _: np.clip(x, -1, 1),
    "np.round": lambda x, _: cast(object, np.round(x * 0.37, 1)),
    "np.concatenate": lambda x, w: np.concatenate([x, w]),
    "np.stack": lambda x, w: np.stack((x, w), axis=1),
    "np.reshape": lambda x, _: np.reshape(x, (3, 2)),
    "np.transpose": lambda x, _: np.transpose(x),
    "np.swapaxes": lambda x, _: np.swapaxes(x, 0, 1),
    "np.expand_dims": lambda x, _: np.expand_dims(x, 1),
    "np.broadcast_to": lambda x, _: np.broadcast_to(x, (2, 2, 3)),
    "np.take": lambda x, _: np.take(x, np.asarray([2, 0]), axis=1),
    "np.tril": lambda x, _: np.tril(x),
    "np.dot": lambda x, w: np.dot(x, w.T),
    "np.matmul": lambda x, w: np.matmul(x, w.T),
    "np.einsum": lambda x, w: np.einsum("ij,ij->i", x, w),
    "np.outer": lambda x, w: np.outer(x[0], w[1]),
    "np.zeros_like": lambda x, _: np.zeros_like(x),
    "np.full_like": lambda x, _: np.full_like(x, 2.0),
}


@pytest.mark.usefixtures("_interpreter")
@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy_that_are_operators_give_tensors(name: str) -> None:
    call = CALLS[name]
    expected = call(X.numpy(), W.numpy())
    for found in (call(X, W), ts.jit(lambda *xs: call(xs[0], xs[1]))(X, W)):
        assert isinstance(found, ts.Tensor)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("_interpreter")
def test_other_functions_of_numpy_take_arrays_and_give_them() -> None:
    x = X.numpy()
    calls: list[Callable[[Any], Any]] = [
        np.linalg.norm,
        lambda a: np.add.reduce(a, axis=1),
        lambda a: np.sum(a, where=a > 0),
        lambda a: np.logical_and(a, 1),
        lambda a: np.diff(a, axis=0),
        np.copy,
    ]
    for call in calls:
        assert not isinstance(call(X), ts.Tensor)
        np.testing.assert_array_equal(call(X), call(x))
    assert np.allclose(X, x)
    assert (np.shape(X), np.ndim(X), np.size(X)) == ((2, 3), 2, 6)
    with pytest.raises(EffectError, match=r"np\.diff needs the elements"):
        ts.jit(lambda *given: np.diff(given[0]))(X)
    with pytest.raises(EffectError, match=r"np\.add needs the elements"):
        ts.jit(lambda *given: np.add.reduce(given[0]))(X)


def test_results_of_numpy_go_where_they_are_told() -> None:
    out, here = np.zeros((2, 3), np.float32), ts.zeros((2, 3))
    assert np.add(X, 1, out=out) is out
    assert cast("Any", np.add)(X, 1, out=here) is here
    np.testing.assert_array_equal(out, here.numpy())
    np.testing.assert_array_equal(out, X.numpy() + 1)
    total: Any = np.ones((2, 3), np.float32)
    before = total
    total += X
    assert total is before
    np.testing.assert_array_equal(total, X.numpy() + 1)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "lt", "eq"])
def test_operators_with_arrays_on_either_side_give_tensors(name: str) -> None:
    row: Callable[[Any, Any], Any] = getattr(operator, name)
    array = W.numpy()
    for left, right in ((X, array), (array, X), (np.float32(2), X), (X, np.float32(2)), (2.0, X)):
        found = row(left, right)
        assert isinstance(found, ts.Tensor)
        expected = row(np.asarray(left, np.float32), np.asarray(right, np.float32))
        np.testing.assert_array_equal(found.numpy(), expected)


# Numbers out of tensors


@given(hnp.arrays(np.float32, 7, elements=st.floats(-1000, 1000, width=32)), st.integers(-2, 3))
def test_rounding_is_that_of_numpy(values: Array, digits: int) -> None:
    x = ts.asarray(values)
    np.testing.assert_array_equal(round(x).numpy(), np.round(values))
    np.testing.assert_allclose(round(x, digits).numpy(), np.round(values, digits), rtol=1e-6)


@pytest.mark.usefixtures("_interpreter")
def test_rounding_keeps_types() -> None:
    assert f"{round(ts.asarray(1.268), 2)}".startswith("Tensor(1.27")
    counts = ts.asarray([12, 25, -37])
    assert round(counts, -1).tolist() == [10, 20, -40]
    assert round(counts, 2).tolist() == [12, 25, -37]
    assert round(ts.ones(2, ts.bf16), 1).dtype is ts.bf16
    jitted = ts.jit(lambda *x: round(x[0], 1))(ts.asarray([0.25, 1.26]))
    assert jitted.tolist() == round(ts.asarray([0.25, 1.26]), 1).tolist()
    x: Any = ts.asarray(-2.5)
    assert (math.floor(x), math.ceil(x), math.trunc(x), math.sqrt(-x)) == (-3, -2, -2, math.sqrt(2.5))


@pytest.mark.usefixtures("_interpreter")
def test_quotient_and_remainder() -> None:
    def halves(given: ts.Tensor) -> tuple[ts.Tensor, ts.Tensor]:
        return divmod(given, 2)

    x: ts.Tensor = ts.asarray([7, -7, 3])
    for found, expected in (
        (divmod(x, 2), divmod(x.numpy(), 2)),
        (divmod(20, x), divmod(20, x.numpy())),
        (ts.jit(halves)(x), divmod(x.numpy(), 2)),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.usefixtures("_interpreter")
def test_membership() -> None:
    x = ts.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert 3.0 in x
    assert 5 not in x
    assert None not in x
    assert "text" not in x
    assert ts.asarray([1.0, 9.0]) in x
    assert 1.0 not in ts.zeros(0)
    with pytest.raises(EffectError, match="a Python condition"):
        ts.jit(lambda *given: 1.0 in given[0])(x)


def test_a_condition_says_what_to_write() -> None:
    for wrong in (ts.ones(3), ts.ones(0)):
        with pytest.raises(ShapeError, match="a condition takes one element") as caught:
            bool(wrong)
        assert ".any() or .all()" in str(caught.value.hint)
    assert ts.ones((1, 1))
    assert not ts.zeros(())


def test_numbers() -> None:
    x: Any = ts.asarray(3)
    assert (int(x), float(x), complex(x), operator.index(x), "abc"[ts.asarray(1)]) == (3, 3.0, 3 + 0j, 3, "b")
    assert list(range(x)) == [0, 1, 2]
    assert "%.2f|%d" % (ts.asarray(0.126), x) == "0.13|3"  # noqa: UP031  (the format is what is tested)
    assert [len(ts.ones((2, 3))), *map(float, ts.arange(3))] == [2, 0.0, 1.0, 2.0]
    assert [float(one) for one in reversed(ts.arange(3))] == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_copies_and_pickles_of_every_type(dtype: ts.DType) -> None:
    x = ts.asarray([[0, 1, 1], [1, 0, 1]]).to(dtype)
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy({"x": [x]})["x"][0]):
        assert twin.dtype is dtype
        assert twin.tolist() == x.tolist()
        assert not ts.share_memory(twin, x)


def test_tensors_are_no_keys() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {ts.ones(1): 1}  # pyright: ignore[reportUnhashable, reportUnusedExpression]


@pytest.mark.parametrize("other", [[1.0, 2.0], (1.0, 2.0), []])
def test_a_list_beside_a_tensor_is_told_what_to_become(other: Any) -> None:
    x = ts.ones(2)
    for attempt in (lambda: x + other, lambda: other + x, lambda: x == other, lambda: x < other, lambda: other * x):
        with pytest.raises(DtypeError, match=r"expected a tensor or a number, got a (list|tuple) of") as caught:
            attempt()
        assert "ts.asarray" in str(caught.value.hint)


# Storing


@given(st.data(), st.sampled_from((ts.f32, ts.f64, ts.bf16, ts.i64, ts.i8, ts.bool_)))
def test_lists_are_stored_as_their_numbers_are(data: st.DataObject, dtype: ts.DType) -> None:
    numbers = st.booleans() if dtype is ts.bool_ else st.integers(-100, 100)
    values = data.draw(st.lists(numbers, min_size=3, max_size=3))
    x, one_by_one = ts.zeros((2, 3), dtype), ts.zeros((2, 3), dtype)
    x[1] = tuple(values) if data.draw(st.booleans()) else values
    for at, value in enumerate(values):
        one_by_one[1, at] = value
    assert x.numpy().tobytes() == one_by_one.numpy().tobytes()


def test_lists_that_are_stored() -> None:
    x = ts.zeros((2, 3))
    x[:, 0] = [1, 2]
    x[0, 1:] = (0.5, 0.1)
    x[1, 1:] = range(2)
    assert x.tolist() == [[1.0, 0.5, float(np.float32(0.1))], [2.0, 0.0, 1.0]]
    x[:] = [[1, 2, 3], [4, 5, 6]]
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    precise = ts.zeros(2, ts.f64)
    precise[:] = [0.1, np.float64(0.2)]
    assert precise.tolist() == [0.1, 0.2]
    counts, flags = ts.zeros(2, ts.i8), ts.zeros(2, ts.bool_)
    for tensor, wrong, said in (
        (counts, [1.5, 2.0], "a list of f32 does not go into a tensor of i8"),
        (flags, [1, 0], "a list of i64 does not go into a tensor of bool"),
        (counts, [1, 300], "out of range for i8"),
        (counts, ["a", "b"], "expected bools, floats and integers"),
    ):
        with pytest.raises(DtypeError, match=said):
            tensor[:] = wrong
    with pytest.raises(ShapeError, match="does not fit"):
        counts[:] = [1, 2, 3]
    assert (counts.tolist(), flags.tolist()) == ([0, 0], [False, False])


# Making


def test_more_things_make_tensors() -> None:
    assert ts.asarray(range(3)).tolist() == [0, 1, 2]
    assert ts.asarray(range(3)).dtype is ts.i64
    shared = packed("f", [1.0, 2.0])
    assert ts.asarray(shared).dtype is ts.f32
    assert ts.asarray(shared).tolist() == [1.0, 2.0]
    sizes: list[Any] = [(2, 3), [2, 3], np.asarray([2, 3]), ts.asarray([2, 3]), (np.int64(2), ts.asarray(3))]
    assert {ts.zeros(one).shape for one in sizes} == {(2, 3)}
    assert ts.zeros(ts.asarray(3)).shape == (3,)
    assert ts.full(2, ts.asarray(3.0, ts.bf16)).dtype is ts.bf16
    assert ts.full(2, ts.asarray(3), ts.f32).tolist() == [3.0, 3.0]
    for bound in (np.int64(3), ts.asarray(3)):
        made = ts.arange(cast("Any", bound))
        assert (made.dtype, made.tolist()) == (ts.i64, [0, 1, 2])
    assert ts.zeros(2, 3).shape == (2, 3)


# In notebooks


@pytest.mark.parametrize(
    ("x", "cells"),
    [
        (ts.asarray([1.5, 2.0]), ["1.5", "2"]),
        (ts.asarray([[1, 2], [3, 4]]), ["1", "2", "3", "4"]),
        (ts.asarray([True, False]), ["True", "False"]),
        (ts.ones(2, ts.f16 @ ts.loss_scale(1024.0)), ["1", "1"]),
        (ts.ones((2, 2, 2)), []),
        (ts.asarray(3.0), []),
        (ts.zeros((0, 3)), []),
    ],
    ids=str,
)
def test_tables(x: ts.Tensor, cells: list[str]) -> None:
    text = x._repr_html_()  # pyright: ignore[reportPrivateUsage]  (notebooks ask for it)
    assert re.findall("<td>(.*?)</td>", text) == cells
    assert f"{x.shape} {x.dtype} on cpu, {x.nbytes} bytes" in text
    assert text.startswith("<div>")
    assert text.endswith("</div>")


def test_long_tables_show_their_ends() -> None:
    text = ts.arange(10_000_000).reshape(100_000, 100)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    rows = text.split("<tr>")[1:]
    assert len(rows) == 9
    assert {row.count("<td>") for row in rows} == {13}
    assert re.findall("<td>(.*?)</td>", rows[0])[5:8] == ["5", "…", "94"]
    assert "9999999" in rows[-1]
