"""Operands of several types and kinds: one rule for arrays and one for numbers, eagerly, compiled and in traces."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from lambdas import binary, unary

import tessera as ts
from tessera import knobs
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError

DTYPES = [dtype for dtype in ALL if dtype.bits >= 8 or dtype is ts.bool_]
# What the table of docs/numerics.md says of `x ∘ number`, by the kinds of both.
NUMBERS: dict[type, dict[str, ts.DType | None]] = {
    bool: {"bool": None, "integer": None, "float": None},
    int: {"bool": ts.i64, "integer": None, "float": None},
    float: {"bool": ts.f32, "integer": ts.f32, "float": None},
}
Function = Callable[..., Any]


def _called(function: Function) -> Function:
    """A function of tensors alone that calls another."""

    def call(*xs: Any) -> Any:
        return function(*xs)

    return call


def binding(function: Function, *more: Any) -> Function:
    """A function of one tensor, with numbers behind it."""

    def call(x: Any) -> Any:
        return function(x, *more)

    return call


def kind(dtype: ts.DType) -> str:
    return "float" if dtype.is_float else "integer" if dtype.is_integer else "bool"


def ways(function: Function, *given: Any) -> list[Any]:
    """What a function gives at once, as programs of its operators, and as one program."""

    def traced(*xs: Any) -> Any:
        return function(*xs)

    with knobs.eager_elements.using(0):
        programs = function(*given)
    return [function(*given), programs, ts.jit(traced)(*given)]


def agree(function: Function, *given: Any) -> ts.Tensor:
    """The one result of all ways."""
    first, *others = ways(function, *given)
    for other in others:
        assert other.dtype is first.dtype
        np.testing.assert_array_equal(other.values(), first.values())
    return first


def value(dtype: ts.DType) -> ts.Tensor:
    return ts.asarray([0, 1, 1]).to(dtype)


@pytest.mark.quick(12)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [True, 1, 0.5])
def test_numbers_beside_arrays(dtype: ts.DType, number: Any) -> None:
    x = value(dtype)
    expected = NUMBERS[type(number)][kind(dtype)] or dtype
    assert ts.result_type(x, number) is ts.result_type(number, dtype) is expected
    for function in (unary(lambda x: x * number), unary(lambda x: number * x), unary(lambda x: ts.maximum(x, number))):
        assert agree(function, x).dtype is expected
    assert agree(ts.multiply, x, number).dtype is expected
    assert agree(unary(lambda x: x * number), x).tolist() == [0, number, number]
    chosen = agree(unary(lambda x: ts.where(x >= 0, x, number)), x)
    assert (chosen.dtype, chosen.tolist()) == (expected, [0, 1, 1])
    assert agree(unary(lambda x: x > number), x).tolist() == [False, number < 1, number < 1]
    quotient = agree(unary(lambda x: x / number), x)
    assert quotient.dtype is (dtype if dtype.is_float else ts.f32)
    assert quotient.tolist() == [0, 1 / number, 1 / number]


@pytest.mark.quick(20)
@pytest.mark.parametrize("left", DTYPES, ids=str)
@pytest.mark.parametrize("right", DTYPES, ids=str)
def test_arrays_beside_arrays(left: ts.DType, right: ts.DType) -> None:
    x, y = value(left), value(right)
    try:
        expected = ts.promote(left, right)
    except DtypeError:
        for function in (operator.mul, ts.add, binary(lambda a, b: ts.concat((a, b)))):
            for call in (function, ts.jit(_called(function))):
                with pytest.raises(DtypeError, match="do not promote implicitly"):
                    call(x, y)
        return
    assert ts.result_type(x, y) is expected
    found = agree(binary(lambda x, y: x * y), x, y)
    assert (found.dtype, found.tolist()) == (expected, [0, 1, 1])
    assert agree(binary(lambda x, y: ts.concat([x, y])), x, y).dtype is expected
    assert agree(binary(lambda x, y: x / y), x, y).dtype is (expected if expected.is_float else ts.f32)
    assert agree(operator.lt, x, y).tolist() == [False] * 3


@pytest.mark.parametrize("row", [operator.add, operator.mul, operator.lt, operator.ge, ts.maximum, ts.minimum])
def test_bools_add_and_compare_as_in_numpy(row: Function) -> None:
    a, b = np.asarray([False, False, True, True]), np.asarray([False, True, False, True])
    expected = {ts.maximum: np.maximum, ts.minimum: np.minimum}.get(row, row)(a, b)
    found = agree(row, ts.asarray(a), ts.asarray(b))
    assert found.dtype is ts.bool_
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("row", [operator.sub, binary(lambda a, b: a**b), binary(lambda a, b: a // b)])
def test_what_bools_have_not(row: Function) -> None:
    mask = ts.asarray([True, False])
    for call in (row, ts.jit(lambda *xs: row(xs[0], xs[1]))):
        with pytest.raises(DtypeError, match="expects 2 operands of one type, integer or float; got bool, bool"):
            call(mask, mask)


@pytest.mark.parametrize("dtype", [ts.bool_, ts.i8, ts.u32, ts.i64], ids=str)
@pytest.mark.parametrize("name", ["exp", "sqrt", "sigmoid", "reciprocal", "tanh", "gelu", "log1p", "asinh"])
def test_functions_of_floats_take_integers_in_f32(name: str, dtype: ts.DType) -> None:
    function, x = getattr(ts, name), value(dtype)
    found = agree(function, x)
    assert found.dtype is ts.f32
    assert found.tolist() == function(x.to(ts.f32)).tolist()


def test_functions_of_numbers() -> None:
    assert (ts.sqrt(4).dtype, ts.sqrt(4).item()) == (ts.f32, 2.0)
    assert (ts.divide(1, 2).dtype, ts.divide(1, 2).item()) == (ts.f32, 0.5)
    assert agree(unary(lambda x: ts.atan2(x, 2)), ts.asarray([0, 2])).dtype is ts.f32


@pytest.mark.parametrize("dtype", [ts.bool_, ts.i8, ts.u8, ts.i32, ts.u64], ids=str)
def test_means_of_integers(dtype: ts.DType) -> None:
    x = ts.asarray(np.random.default_rng(0).integers(0, 2 if dtype is ts.bool_ else 100, (5, 7))).to(dtype)
    wide = x.numpy().astype(np.float64)
    for name, function in (("mean", np.mean), ("std", np.std), ("var", np.var)):
        found = agree(partial(getattr(ts, name), axis=1), x)
        assert found.dtype is ts.f32
        np.testing.assert_allclose(found.numpy(), function(wide, axis=1), rtol=1e-5)
    assert agree(ts.mean, x).item() == pytest.approx(wide.mean(), rel=1e-6)
    assert np.isnan(agree(ts.mean, x[:0]).item())


def test_means_of_integers_are_exact_sums() -> None:
    """2²⁴ ones and as many twos: a sum in f32 alone would end at 2²⁴."""
    x = ts.asarray([2**24 + 1, 1, 2**24 + 1, 1])
    assert agree(ts.mean, x).item() == 2**23 + 1
    assert ts.sum(ts.asarray([True, False, True])).dtype is ts.i64


def test_numbers_alone_have_default_types() -> None:
    condition = ts.asarray([True, False])
    for numbers, dtype in (((1.0, 0.0), ts.f32), ((1, 0), ts.i64), ((1, 0.5), ts.f32), ((True, False), ts.bool_)):
        assert agree(binding(ts.where, *numbers), condition).dtype is dtype
    assert (ts.asarray(1.0).dtype, ts.full(2, 1.0).dtype, ts.result_type(1.0, 2)) == (ts.f32, ts.f32, ts.f32)
    for given, dtype in ((2.0, ts.f32), (2, ts.i64), (True, ts.i64)):
        assert ts.jit(unary(lambda n: n + n))(given).dtype is dtype
    assert ts.jit(unary(lambda n: n / 2))(3).tolist() == 1.5
    assert ts.jit(unary(lambda n: n / 2))(3).dtype is ts.f32


def test_floats_of_numpy_are_floats() -> None:
    """`np.sqrt(d)` is a Python float; numbers of NumPy's other types have those."""
    x = ts.ones(3, ts.bf16)
    for number in (np.float64(2.0), np.sqrt(4)):
        assert agree(binding(binary(lambda a, b: a / b), number), x).dtype is ts.bf16
        assert (number * x).dtype is ts.bf16
        assert agree(ts.multiply, x, number).dtype is ts.bf16
        assert ts.result_type(x, number) is ts.bf16
    assert agree(unary(lambda x: x * np.float32(2)), x).dtype is ts.f32
    assert (np.int64(2) * ts.ones(3)).dtype is ts.f32
    assert ts.asarray(np.float64(2.0)).dtype is ts.f64


def test_integers_have_no_negative_powers() -> None:
    x = ts.asarray([1, 2])
    for call in (unary(lambda x: x**-1), ts.jit(unary(lambda x: x**-1))):
        with pytest.raises(DtypeError, match="integers have no power of -1") as caught:
            call(x)
        assert "x ** -1.0" in str(caught.value.hint)
    assert agree(unary(lambda x: x**-1.0), x).tolist() == [1.0, 0.5]
    assert agree(unary(lambda x: x**0.5), ts.asarray([4, 9])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("number", [0.5, True, 3])
def test_what_is_put_into_a_tensor_takes_its_type(number: Any) -> None:
    mask = ts.asarray([True, False])
    for dtype in (ts.f32, ts.bf16, ts.i32, ts.bool_):
        x = ts.asarray([1, 0]).to(dtype)
        calls: list[Function] = [
            unary(lambda x: ts.masked_fill(x, mask, number)),
            unary(lambda x: x.at[0].set(number)),
            unary(lambda x: x.at[mask].set(number)),
        ]
        fits = NUMBERS[type(number)][kind(dtype)] is None
        for call in calls:
            if fits:
                assert agree(call, x).dtype is dtype
                assert agree(call, x).tolist() == [number, 0]
            else:
                for one in (call, ts.jit(_called(call))):
                    with pytest.raises(DtypeError, match="does not go into a tensor of"):
                        one(x)


def test_tensors_of_higher_kinds_are_not_put_into_others() -> None:
    x = ts.asarray([1, 2])
    for wrong in (ts.asarray([0.5, 1.5]), ts.asarray([0.5, 1.5], ts.f64)):
        with pytest.raises(DtypeError, match=r"a value of f(32|64) does not go into a tensor of i64"):
            x.at[:].set(wrong)
    assert x.at[:].set(ts.asarray([True, False])).tolist() == [1, 0]


def test_bounds_of_integers() -> None:
    x = ts.asarray([1, 5, 9])
    assert agree(unary(lambda x: ts.clip(x, 2, 6)), x).tolist() == [2, 5, 6]
    found = agree(unary(lambda x: ts.clip(x, 2.5, 6)), x)
    assert (found.dtype, found.tolist()) == (ts.f32, [2.5, 5.0, 6.0])
    found = agree(ts.clip, x, ts.asarray(2.5))
    assert (found.dtype, found.tolist()) == (ts.f32, [2.5, 5.0, 9.0])
    narrow = ts.asarray([1, 5], ts.i8)
    assert agree(ts.clip, narrow, ts.asarray(2)).dtype is ts.i8


def test_products_of_kinds() -> None:
    a, b = ts.asarray([[1, 2], [3, 4]]), ts.asarray([[0.5, 0.0], [0.0, 2.0]])
    found = agree(binary(lambda a, b: a @ b), a, b)
    assert (found.dtype, found.tolist()) == (ts.f32, [[0.5, 4.0], [1.5, 8.0]])


def test_pairs_that_numpy_torch_and_jax_agree_about() -> None:
    """The floats of NumPy's results are f64 where they come of default floats alone."""
    for left, right in product(DTYPES, repeat=2):
        if left.storage.isbuiltin != 1 or right.storage.isbuiltin != 1:
            continue
        try:
            found = ts.promote(left, right)
        except DtypeError:
            continue
        theirs = np.promote_types(left.storage, right.storage)
        assert found.storage.kind == theirs.kind
        wide_whole = {left.kind.value, right.kind.value} & {"int", "uint"} and max(
            one.bits for one in (left, right) if not one.is_float
        ) > 16
        if not (found is ts.f32 and wide_whole) and ts.tf32 not in (left, right):
            assert found.storage == theirs
