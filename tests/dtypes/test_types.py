"""Element types: interning, policies attached by `@`, limits, pickling and the names the package hands on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tessera as ts
from tessera.dtypes import types
from tessera.dtypes.types import (
    ALL,
    BY_NAME,
    NO_POLICY,
    DType,
    Policy,
    accum,
    bf16,
    bool_,
    f4e2m1,
    f8e4m3,
    f16,
    f32,
    f64,
    i4,
    i8,
    i32,
    loss_scale,
    saturate,
    scaled,
    stochastic_round,
    tf32,
    u4,
    u32,
)
from tessera.errors import DtypeError


def test_equal_types_are_one_object() -> None:
    assert bf16 @ accum(f32) @ saturate is bf16 @ saturate @ accum(f32)
    assert bf16 @ (accum(f32) @ saturate) is bf16 @ accum(f32) @ saturate
    assert (bf16 @ accum(f32)).base is bf16
    assert bf16 @ NO_POLICY is bf16
    assert bf16 @ saturate is not bf16


@pytest.mark.parametrize("dtype", [*ALL, bf16 @ accum(f32) @ stochastic_round @ loss_scale(64)], ids=str)
def test_copies_and_pickles_are_the_same_object(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype


def test_text() -> None:
    assert str(bf16) == "bf16"
    everything = bf16 @ accum(f32) @ stochastic_round @ loss_scale(1024) @ saturate
    assert str(everything) == "bf16 @ accum(f32) @ stochastic_round @ loss_scale(1024) @ saturate"
    assert repr(i8 @ scaled(0)) == "i8 @ scaled(0)"


def test_limits() -> None:
    assert (i4.min_value, i4.max_value, u4.max_value) == (-8, 7, 15)
    assert (i32.min_value, u32.max_value) == (-(2**31), 2**32 - 1)
    assert (bool_.min_value, bool_.max_value) == (0, 1)
    assert (f8e4m3.max_value, f4e2m1.max_value, f16.max_value) == (448, 6, 65504)
    assert f32.max_value == np.finfo(np.float32).max
    assert tf32.storage == np.float32


@pytest.mark.parametrize(
    ("dtype", "policy", "message"),
    [
        (bf16, accum(f16), "cannot hold every bf16 value"),
        (f16, accum(bf16), "cannot hold every f16 value"),
        (f32, accum(tf32), "cannot hold every f32 value"),
        (f64, accum(f32), "cannot hold every f64 value"),
        (i32, accum(i8), "cannot hold every i32 value"),
        (bf16, accum(i32), "a float type cannot accumulate in i32"),
        (bf16, accum(f32 @ saturate), "has a policy"),
        (i8, stochastic_round, "defined for float types"),
        (i8, loss_scale(2), "defined for float types"),
        (f16, loss_scale(1000), "must be a power of two"),
        (f16, loss_scale(0), "must be a power of two"),
        (f16, loss_scale(-2), "must be a power of two"),
        (f16, loss_scale(float("inf")), "must be a power of two"),
        (f16, loss_scale(float("nan")), "must be a power of two"),
        (f32, scaled(0), "defined for integer types"),
        (i8 @ scaled(0), scaled(1), "given twice"),
        (bf16 @ accum(f32), accum(f64), "given twice"),
    ],
    ids=str,
)
def test_policies_that_do_not_fit(dtype: DType, policy: Policy, message: str) -> None:
    with pytest.raises(DtypeError, match=message) as caught:
        _ = dtype @ policy
    assert caught.value.hint


def test_every_accumulator_that_holds_the_type_is_allowed() -> None:
    for dtype, wide in ((bf16, bf16), (bf16, tf32), (f16, tf32), (tf32, f32), (f8e4m3, f16), (f4e2m1, f8e4m3)):
        assert (dtype @ accum(wide)).policy.accum is wide


def test_only_policies_attach() -> None:
    with pytest.raises(DtypeError, match="expected a numerics policy, got float"):
        bf16.__matmul__(2.0)  # pyright: ignore[reportArgumentType]  # the wrong call is what is tested


def test_a_name_is_defined_once() -> None:
    with pytest.raises(ValueError, match="defined already"):
        DType("bf16", bf16.kind, 16, bf16.storage)


def test_the_package_offers_every_type_and_policy() -> None:
    public = {name for name, value in vars(types).items() if not name.startswith("_") and _is_ours(value)}
    assert {name for name in public if isinstance(getattr(types, name), DType)} <= set(ts.__all__)
    assert {"accum", "loss_scale", "saturate", "scaled", "stochastic_round"} <= public & set(ts.__all__)
    assert {dtype.name: dtype for dtype in ALL} == BY_NAME


def _is_ours(value: object) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(value, (DType, Policy, tuple, dict)) or module == types.__name__
