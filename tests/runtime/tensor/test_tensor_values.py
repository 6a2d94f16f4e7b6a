"""Values: casts, reading out, storing, NumPy's protocols, pickling, and what is printed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.dtypes.casting import cast
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError, EffectError, ResourceError, ShapeError

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@given(st.data(), SHAPES, st.sampled_from(ALL), st.sampled_from(ALL))
def test_to_is_the_reference_cast(
    data: st.DataObject, shape: tuple[int, ...], source: ts.DType, target: ts.DType
) -> None:
    values = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(-300, 300, width=32)))
    x = ts.asarray(values).to(source).permute(*data.draw(st.permutations(range(len(shape)))))
    y = x.to(target)
    assert y.dtype is target
    assert y.numpy().tobytes() == cast(x.numpy(), source, target).tobytes()
    assert (y is x) == (source is target)
    if source is not target:
        assert y.meta.is_contiguous
        assert not ts.share_memory(x, y)


@given(hnp.arrays(np.float32, 5), st.sampled_from((ts.f64, ts.f32, ts.f16, ts.i32, ts.u8)))
def test_to_agrees_with_numpy_where_numpy_is_defined(values: Any, target: ts.DType) -> None:
    if target.is_integer:
        values = np.where(np.abs(values) < 100, np.abs(values), np.float32(0))
    with np.errstate(all="ignore"):
        expected = values.astype(target.storage)
    np.testing.assert_array_equal(ts.asarray(values).to(target).numpy(), expected)


def test_policies_change_without_copies() -> None:
    x = ts.ones(3, ts.bf16)
    for policy in (ts.accum(ts.f32), ts.saturate, ts.stochastic_round):
        y = x.to(ts.bf16 @ policy)
        assert y.dtype is ts.bf16 @ policy
        assert y.pointer == x.pointer
        assert y.to(ts.bf16).pointer == x.pointer
        assert x.to(ts.bf16 @ policy, copy=True).pointer != x.pointer
    assert x.to(ts.bf16) is x
    assert x.to("cpu") is x
    assert x.to("bf16") is x
    assert x.to("float32").dtype is ts.f32
    scaled = x.to(ts.bf16 @ ts.loss_scale(4.0))
    assert scaled.numpy().tolist() == [4.0, 4.0, 4.0]
    assert scaled.tolist() == [1.0, 1.0, 1.0]
    assert scaled.to(ts.bf16).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(DtypeError, match="quantize"):
        ts.ones(3, ts.i8).to(ts.i8 @ ts.scaled(0))


def test_stochastic_rounding_takes_a_seed() -> None:
    x = ts.full(10_000, 1.0 + 2.0**-9)
    with pytest.raises(DtypeError, match="needs a seed"):
        x.to(ts.bf16 @ ts.stochastic_round)
    y = x.to(ts.bf16 @ ts.stochastic_round, seed=1)
    assert y.numpy().tobytes() == x.to(ts.bf16 @ ts.stochastic_round, seed=1).numpy().tobytes()
    assert abs(float(y.values().mean()) - (1.0 + 2.0**-9)) < 2.0**-12


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_reading_out(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0], [0, 1]]).to(dtype)
    python = float if dtype.is_float else bool if dtype is ts.bool_ else int
    assert x.tolist() == [[1, 0], [0, 1]]
    assert type(x[0, 0].item()) is python
    assert type(x.tolist()[0][0]) is python
    assert bool(x[0, 0])
    assert not x[0, 1]
    assert int(x[1, 1]) == float(x[1, 1]) == 1


def test_reading_out_what_is_not_one_value() -> None:
    for attempt in (int, float, ts.Tensor.item):
        with pytest.raises(ShapeError, match="one element"):
            attempt(ts.zeros((2, 3)))
    assert ts.asarray([[3]]).item() == 3
    assert [10, 20, 30][ts.asarray(1)] == 20
    wrong: ts.Tensor
    for wrong in (ts.asarray(1.0), ts.asarray([1])):
        with pytest.raises(DtypeError, match="expected an integer tensor"):
            _ = [10, 20][wrong]


def test_storing_keeps_values() -> None:
    x = ts.zeros(3, ts.bf16)
    x[0] = 1.5
    x[1] = ts.asarray(2.0, ts.bf16)
    x[2] = ts.asarray(3, ts.u8)
    assert x.tolist() == [1.5, 2.0, 3.0]
    with pytest.raises(DtypeError, match="could change values"):
        x[0] = ts.asarray(1.5)
    with pytest.raises(DtypeError, match="could change values"):
        x[:] = np.full(3, 1.5)
    with pytest.raises(DtypeError, match="expected a tensor"):
        x[0] = "text"
    assert x.tolist() == [1.5, 2.0, 3.0]
    x[...] = x[::-1]
    assert x.tolist() == [3.0, 2.0, 1.5]
    wide = ts.zeros(3, ts.f32)
    wide[:] = x
    assert wide.tolist() == [3.0, 2.0, 1.5]


def test_storing_is_all_or_nothing() -> None:
    x = ts.zeros((2, 3), ts.i64)
    wrong: list[tuple[Any, Any]] = [
        ([0, 5], 1),
        ((0, 7), 1),
        (slice(None), ts.ones((2, 2), ts.i64)),
        (np.asarray([True]), 1),
        ((0, 0, 0), 1),
        ((..., ...), 1),
        (slice(None, None, 0), 1),
    ]
    for key, value in wrong:
        with pytest.raises(ShapeError, match="does not fit"):
            x[key] = value
    with pytest.raises(DtypeError):
        x["a"] = 1
    with pytest.raises(DtypeError):
        x[ts.asarray([0.5])] = 1
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    x[[0, 1], [2, 0]] = ts.asarray([7, 8])
    x[x == 8] = 9
    x[[]] = 5
    assert x.tolist() == [[0, 0, 7], [9, 0, 0]]


def test_read_only_memory_stays_so() -> None:
    frozen = np.arange(4)
    frozen.flags.writeable = False
    x = ts.asarray(frozen)
    for view in (x, x[1:], x.reshape(2, 2).T, x.expand_dims(0), ts.asarray(x), x.to(ts.i64 @ ts.saturate)):
        assert not view.writable
        with pytest.raises(ResourceError, match="read-only") as caught:
            view[0] = 1
        assert caught.value.hint == "write to a copy: .copy()"
    assert not x.numpy().flags.writeable
    assert x.copy().writable
    assert frozen.tolist() == [0, 1, 2, 3]
    assert not ts.asarray(memoryview(b"abc")).writable
    assert ts.asarray(memoryview(b"abc")).dtype is ts.u8
    assert ts.asarray(bytearray(b"abc")).writable


def test_numpy_takes_tensors() -> None:
    x = ts.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.shares_memory(np.asarray(x.T, copy=False), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    bits = ts.ones(2, ts.bf16)
    assert np.shares_memory(np.asarray(bits), bits.numpy())
    assert np.asarray(bits).dtype == ts.bf16.storage
    assert not hasattr(bits, "__array_interface__")
    assert x.__array_interface__["data"] == (x.pointer, False)
    with pytest.raises(BufferError, match="cannot share"):
        np.asarray(bits, dtype=np.float32, copy=False)
    assert np.asarray(bits, dtype=np.float32).tolist() == [1.0, 1.0]
    assert not np.shares_memory(np.array(bits, copy=True), bits.numpy())


def test_functions_of_numpy_take_tensors() -> None:
    x = ts.asarray([[1.0, 2.0], [3.0, 4.0]])
    found: list[Any] = [
        np.sum(x, axis=0),  # pyright: ignore[reportCallIssue, reportArgumentType]  (any array-like)
        np.add(x, x),
        np.exp(x),
        np.concatenate([x, x]),  # pyright: ignore[reportCallIssue, reportArgumentType]  (any array-like)
        np.where(x > 2, x, 0.0),  # pyright: ignore[reportCallIssue, reportArgumentType]  (any array-like)
        np.linalg.norm(x),  # pyright: ignore[reportArgumentType]  (any array-like)
        np.maximum.reduce(x, axis=1),
    ]
    array = x.numpy()
    expected: list[Any] = [
        array.sum(0),
        array + array,
        np.exp(array),
        np.concatenate([array, array]),
        np.where(array > 2, array, 0.0),
        np.linalg.norm(array),
        array.max(1),
    ]
    # Those that are operators give tensors.
    assert [isinstance(one, ts.Tensor) for one in found] == [True, True, True, True, True, False, False]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_operators_between_arrays_and_tensors_give_tensors() -> None:
    x, array = ts.asarray([1.0, 2.0]), np.asarray([3, 4], np.float32)
    for found in (array + x, x + array, array < x, array @ x, np.float32(2) * x):
        assert isinstance(found, ts.Tensor)
    assert (array - x).tolist() == [2.0, 2.0]


def test_a_format_is_one_of_numbers() -> None:
    x = ts.asarray([0.5, 0.25])
    assert f"{ts.sum(x):.3f}" == "0.750"
    assert f"{ts.asarray(7):4d}|{x[1]:>8.1e}|{ts.asarray(1.5, ts.bf16):g}" == "   7| 2.5e-01|1.5"
    assert f"{x}" == str(x)
    with pytest.raises(ShapeError, match=r"format '.3f' is one of numbers"):
        f"{x:.3f}"
    with pytest.raises(EffectError, match=r"format '.2f' needs the elements"):
        ts.jit(lambda *y: f"{y[0]:.2f}")(x)


def test_scalars_of_numpy_are_stored_as_numbers() -> None:
    x, counts = ts.zeros(3), ts.zeros(2, ts.i8)
    x[0], x[1], x[2] = np.float64(0.1), np.int64(3), np.float16(0.5)
    assert x.tolist() == [float(np.float32(0.1)), 3.0, 0.5]
    counts[0], counts[1] = np.int64(-7), np.bool_(True)
    assert counts.tolist() == [-7, 1]
    with pytest.raises(DtypeError, match="out of range for i8"):
        counts[0] = np.int64(500)
    with pytest.raises(DtypeError, match="does not go with a tensor of i8"):
        counts[0] = np.float64(1.5)
    assert counts.tolist() == [-7, 1]


def test_numpy_arrays_share_both_ways() -> None:
    array = np.zeros((2, 3), np.float32)
    x = ts.from_numpy(array)
    x[0, 1] = 5.0
    assert array[0, 1] == 5
    array[1, 2] = 7
    assert x[1, 2].item() == 7.0
    assert x.numpy() is array


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16 @ ts.accum(ts.f32), ts.i4, ts.f8e4m3, ts.f16 @ ts.loss_scale(2.0)])
def test_pickling_and_copying(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 2], [3, 4]]).to(dtype).T
    for twin in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), x.copy(), ts.Tensor(x)):
        assert twin.dtype is dtype
        assert twin.tolist() == x.tolist()
        assert twin.meta.is_contiguous
        assert not ts.share_memory(twin, x)


def test_the_constructor_copies() -> None:
    array = np.ones(2)
    x = ts.Tensor(array, ts.f32)
    assert x.dtype is ts.f32
    array[0] = 7
    assert x.tolist() == [1.0, 1.0]
    assert ts.Tensor([1, 2]).dtype is ts.i64


def test_annotations() -> None:
    assert str(ts.Tensor["B", "S", 64, ts.bf16 @ ts.accum(ts.f32)]) == 'Tensor["B", "S", 64, bf16 @ accum(f32)]'
    assert str(ts.KTile["B*H", ts.f32]) == 'KTile["B*H", f32]'
    assert str(ts.Tile["M"]) == 'Tile["M"]'


PRINTED = {
    "scalar": (lambda: ts.asarray(2.5), "Tensor(2.5, shape=(), dtype=f32, device=cpu)"),
    "integers": (lambda: ts.asarray([1, 2, 3]), "Tensor([1, 2, 3], shape=(3,), dtype=i64, device=cpu)"),
    "empty": (lambda: ts.zeros((0, 3)), "Tensor([], shape=(0, 3), dtype=f32, device=cpu)"),
    "bools": (lambda: ts.asarray([True, False]), "Tensor([ True, False], shape=(2,), dtype=bool, device=cpu)"),
    "policy": (
        lambda: ts.ones(2, ts.bf16 @ ts.accum(ts.f32)),
        "Tensor([1., 1.], shape=(2,), dtype=bf16 @ accum(f32), device=cpu)",
    ),
    "scaled values": (
        lambda: ts.ones(1, ts.f16 @ ts.loss_scale(1024.0)),
        "Tensor([1.], shape=(1,), dtype=f16 @ loss_scale(1024), device=cpu)",
    ),
    "four bits": (lambda: ts.asarray([-8, 7], ts.i4), "Tensor([-8,  7], shape=(2,), dtype=i4, device=cpu)"),
    "matrix": (
        lambda: ts.asarray([[1.0, 2.0], [3.0, 4.25]]),
        "Tensor([[1.  , 2.  ],\n        [3.  , 4.25]],\n       shape=(2, 2), dtype=f32, device=cpu)",
    ),
    "long": (
        lambda: ts.arange(1000),
        "Tensor([  0,   1,   2, ..., 997, 998, 999], shape=(1000,), dtype=i64, device=cpu)",
    ),
    "wide": (
        lambda: ts.arange(2000).reshape(2, 1000),
        (
            "Tensor([[   0,    1,    2, ...,  997,  998,  999],\n"
            "        [1000, 1001, 1002, ..., 1997, 1998, 1999]],\n"
            "       shape=(2, 1000), dtype=i64, device=cpu)"
        ),
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printing(name: str) -> None:
    make, expected = PRINTED[name]
    assert repr(make()) == str(make()) == expected


def test_printing_reads_only_the_edges() -> None:
    """A tensor of 4 TB, which repeats one element, prints at once."""
    text = repr(ts.ones((), ts.bf16).broadcast_to(1 << 21, 1 << 20))
    assert text.count("1.") == 36
    assert "shape=(2097152, 1048576)" in text


def test_unknown_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'numel'"):
        getattr(ts.ones(1), "numel")  # noqa: B009  (the type checker knows that there is none)
