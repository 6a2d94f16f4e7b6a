"""Bytes taken apart into elements of four bits, and put together: in the interpreter and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_runs import MACHINES, at_cpu_level, lowered
from hypothesis import given, settings
from hypothesis import strategies as st
from packing_kernels import (
    Array,
    apart,
    apart_and_together,
    check_product,
    codes,
    packed_left,
    packed_product,
    packed_right,
    scaled,
    scaled_rows,
    together,
)

import tessera as ts
from tessera import bf16, f16, f32, i4, kernel, knobs, tile, u4
from tessera.dtypes.types import BYTES, FOURS, DType
from tessera.errors import DtypeError, ShapeError
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir.common.intervals import Interval
from tessera.ir.tile import dialect as tile_ir
from tessera.metatracing.events.tile_work import tile_work
from tessera.transforms.facts.value_bounds import value_bounds

BACKENDS = ("interpreter", "cpu")


@st.composite
def strided(draw: st.DrawFn, most: int = 37) -> Array:
    """Bytes in an array of one to three axes: whole, every other one, or the other way round."""
    small = st.integers(1, 5)
    sizes = [
        st.tuples(st.integers(1, most)),
        st.tuples(st.integers(1, 11), st.integers(1, most)),
        st.tuples(*[small] * 3),
    ]
    shape = draw(st.one_of(sizes))
    steps = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
    large = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, 256, [a * b for a, b in zip(shape, steps, strict=True)]
    )
    found = large.astype(np.uint8)[tuple(slice(None, None, step) for step in steps)]
    return found.T if draw(st.booleans()) else found


@given(x=strided(), data=st.data())
@settings(max_examples=10)
def test_bytes_taken_apart_are_those_that_are_put_together(x: Array, data: st.DataObject) -> None:
    axis, dtype = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.sampled_from(FOURS))
    given_ = x.view(data.draw(st.sampled_from(BYTES)).storage)
    expected = apart(x, axis, dtype)
    for backend in BACKENDS:
        halves, back = np.zeros(expected.shape, expected.dtype), np.zeros(x.shape, given_.dtype)
        with knobs.backend.using(backend):
            apart_and_together[1](given_, halves, back, shape=x.shape, axis=axis, dtype=dtype)
        assert np.array_equal(codes(halves), codes(expected)), backend
        assert np.array_equal(back, given_), backend


@given(x=strided(24), data=st.data())
@settings(max_examples=8)
def test_computed_elements_are_put_together(x: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) % x.ndim
    x = np.repeat(x, 2, axis).astype(np.int32) - 128
    doubled = 2 * x & 15
    even, odd = (doubled[(*[slice(None)] * axis, slice(first, None, 2))] for first in (0, 1))
    for backend in BACKENDS:
        for storage in (np.uint8, np.int8):
            out = np.zeros(even.shape, storage)
            with knobs.backend.using(backend):
                together[1](x, out, shape=x.shape, axis=axis)
            assert np.array_equal(codes(out), even | odd << 4)


SIZES = [(1, 1, 32), (5, 9, 64), (33, 70, 96), (17, 40, 160)]


@pytest.mark.parametrize("dtype", [f32, *(pytest.param(one, marks=pytest.mark.acceptance) for one in (bf16, f16))])
def test_products_with_packed_weights(dtype: DType) -> None:
    for left, run in ((False, packed_right), (True, packed_left)):
        for m, n, k in SIZES:
            arguments, expected = packed_product(0, dtype, (m, n, k), 32, left=left)
            rows, columns = (n, m) if left else (m, n)
            for backend in BACKENDS:
                arguments[3][...] = 7
                with knobs.backend.using(backend):
                    run[-(-rows // 16), -(-columns // 16)](*arguments, m=16, n=16, k=32, group=32)
                check_product(arguments[3], expected, dtype)


@pytest.mark.parametrize("optimization", [0, 1, 2, 3])
def test_machine_code_of_any_effort_takes_bytes_apart(optimization: int) -> None:
    arguments, expected = packed_product(1, f32, (19, 23, 64), 32)
    with knobs.optimization.using(optimization), knobs.backend.using("cpu"):
        packed_right[2, 2](*arguments, m=16, n=16, k=32, group=32)
    check_product(arguments[3], expected, f32)


@given(st.integers(1, 15), st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=5)
def test_values_of_rows_are_taken_apart_beside_rows(pairs: int, columns: int, seed: int) -> None:
    for backend in BACKENDS:
        arguments, expected = scaled(seed, 2 * pairs, columns)
        with knobs.backend.using(backend):
            scaled_rows[1](*arguments, rows=2 * pairs, columns=columns)
        for found, wanted in zip(arguments[3:], expected, strict=True):
            assert np.array_equal(found, wanted), backend


@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("fuse", [False, True])
def test_every_processor_has_nests_that_take_bytes_apart(level: str, fuse: bool) -> None:
    for pairs, columns in ((1, 1), (3, 17), (7, 40), (14, 2)):
        arguments, expected = scaled(0, 2 * pairs, columns)
        made = scaled_rows[1].lower(*arguments, rows=2 * pairs, columns=columns)
        found = at_cpu_level(lowered(made.module, level, fuse=fuse), made.name, arguments, seed=1)
        for one, wanted in zip(found[3:], expected, strict=True):
            assert np.array_equal(one, wanted)


@kernel
def weights_of(packed: Any, out: Any, totals: Any, *, columns: int):
    scores = tile.cast(tile.unpack(tile.load(packed, at=(0, 0), shape=(4, columns)), i4), f32)
    weights, _, total = tile.softmax_online(scores)
    tile.store(out, weights / total[:, None], at=(0, 0))
    tile.store(totals, total, at=(0,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_halves_lie_where_their_bytes_do(backend: str) -> None:
    """Columns beyond the array count for nothing, twice as far away as bytes are."""
    x = np.random.default_rng(0).integers(0, 256, (4, 5)).astype(np.uint8)
    out, totals = np.zeros((4, 10), np.float32), np.zeros(4, np.float32)
    with knobs.backend.using(backend):
        weights_of[1](x, out, totals, columns=8)
    powers = np.exp(apart(x, 1, i4).astype(np.float64))
    assert np.allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    assert np.allclose(totals, (powers / powers.max(1, keepdims=True)).sum(1), rtol=1e-5)


@kernel
def beyond(x: Any, halves: Any, back: Any):
    found = tile.unpack(tile.load(x, at=(0, 0), shape=(8, 4)), u4, 0)
    tile.store(halves, found, at=(0, 0))
    tile.store(back, tile.pack(tile.where(tile.iota((16, 1)) < 9, tile.cast(found, f32), 1.0).to(u4), 0), at=(0, 0))


def test_halves_of_what_lies_beyond_an_array_are_made_up() -> None:
    def run(rows: int, halves: int, back: int) -> None:
        x = np.ones((rows, 4), np.uint8)
        with checking(Checks(padding=True)):
            beyond[1](x, np.zeros((halves, 4), u4.storage), np.zeros((back, 4), np.uint8))

    run(8, 16, 8)
    run(5, 10, 8)  # of the nine rows of halves that are not replaced, all are there
    with pytest.raises(ShapeError, match=r"from beyond the array reaches a store at \[10, 0\]"):
        run(5, 11, 4)
    with pytest.raises(ShapeError, match=r"from beyond the array reaches a store at \[4, 0\]"):
        run(4, 8, 5)  # row 4 of bytes has one half that is made up, and one that is not


@kernel
def quotients(x: Any, out: Any, *, packs: bool):
    found = tile.unpack(tile.load(x, at=(0, 0), shape=(4, 8)), u4)
    if packs:
        found = tile.unpack(tile.pack(found), u4)
    wide = tile.cast(found, f32)
    tile.store(out, wide / wide, at=(0, 0))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("packs", [False, True])
def test_checks_for_nan_look_at_no_halves_beyond_an_array(backend: str, packs: bool) -> None:
    with knobs.checks.using("nan"), knobs.backend.using(backend):
        x = np.full((3, 5), 0x21, np.uint8)
        out = np.zeros((3, 10), np.float32)
        quotients[1](x, out, packs=packs)
        assert (out == 1).all()
        x[2, 4] = 0x20
        with pytest.raises(DtypeError, match=r"div ma(de NaN|kes nan)"):
            quotients[1](x, out, packs=packs)


def test_what_is_known_of_halves() -> None:
    x = np.zeros((16, 8), np.uint8)
    halves, back = np.zeros((16, 16), i4.storage), np.zeros((16, 8), np.uint8)
    made = apart_and_together[1].lower(x, halves, back, shape=(16, 8), axis=1, dtype=i4)
    function = made.module.body.block.first_op
    assert isinstance(function, tile_ir.FuncOp)
    bounds = value_bounds(function, {})
    found = {
        type(op): bounds[op.result] for op in function.body.walk() if isinstance(op, tile_ir.UnpackOp | tile_ir.PackOp)
    }
    assert found == {tile_ir.UnpackOp: Interval(-8, 7), tile_ir.PackOp: Interval(0, 255)}
    work = tile_work(made, tuple(ts.asarray(one).meta for one in (x, halves, back)))
    assert work.total("elements") == 2 * 16 * 16
