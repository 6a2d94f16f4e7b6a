"""Tiles of three axes and more: the interpreter against NumPy, and machine code against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_axes import CASES, FOUR, SHAPE, Array, attention, changed, changed_in_place, decayed, heads, product, products
from odd_arrays import LAYOUTS

from tessera import CompileError, DtypeError, ShapeError, kernel, knobs, tile
from tessera.dtypes import types as dtypes
from tessera.errors import TesseraError
from tessera.interpreters.sanitizers.checks import Checks, NumericChecks, checking
from tessera.targets.cpu.lower import legalize
from tessera.transforms.core.function_pass import FunctionPass

EVERY = {**CASES, **FOUR}
PLACES = [name for name in LAYOUTS if name != "unaligned"]
"""What is written is no copy: arrays that are not aligned are copied at a call."""
NUMBERS = (dtypes.f32, dtypes.f64, dtypes.bf16, dtypes.f16, dtypes.i32, dtypes.i64, dtypes.i8)


def whole(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Small whole numbers: sums of products of them are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype.storage)


def run(kernel_: Any, backend: str, *arguments: Array, **static: Any) -> list[Array]:
    """Copies of the arguments after a call, which nothing but machine code, or the interpreter, has run."""
    given_ = [one.copy() for one in arguments]
    with knobs.backend.using(backend):
        kernel_(*given_, **static)
    return given_


@pytest.mark.parametrize("name", EVERY)
def test_both_give_what_numpy_gives(name: str) -> None:
    how, reference = EVERY[name]
    x = whole(SHAPE, dtypes.f32)
    expected = np.asarray(reference(x))
    nothing = np.full(expected.shape, 77, expected.dtype)
    for backend in ("interpreter", "cpu"):
        _, found = run(changed[1], backend, x, nothing, shape=SHAPE, how=how)
        np.testing.assert_array_equal(found, expected, err_msg=backend)


@given(data=st.data())
@settings(max_examples=4)
def test_odd_arrays_give_the_same_as_in_the_interpreter(data: st.DataObject) -> None:
    how, reference = EVERY[data.draw(st.sampled_from([*EVERY]))]
    dtype, layout = data.draw(st.sampled_from(NUMBERS)), LAYOUTS[data.draw(st.sampled_from([*LAYOUTS]))]
    x = whole(tuple(data.draw(st.integers(0, size + 1)) for size in SHAPE), dtype, data.draw(st.integers(0, 9)))
    made = np.asarray(reference(np.ones(SHAPE, dtype.storage))).shape
    out = np.full([max(0, size - data.draw(st.integers(0, 1))) for size in made], 77, dtype.storage)
    static = {"shape": SHAPE, "how": how, "pad": float(data.draw(st.integers(-1, 1)))}
    given_, wanted = layout(x), out.copy()
    place = LAYOUTS[data.draw(st.sampled_from(PLACES))]
    with knobs.backend.using("interpreter"):
        changed[1](given_, wanted, **static)
    found = place(out)
    with knobs.backend.using("cpu"):
        changed[1](given_, found, **static)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize(
    "name", ["elementwise", "max beside", "turned 021", "running 1", "back", "product of products"]
)
def test_what_is_written_was_read_as_a_whole(name: str) -> None:
    how = CASES[name][0]
    for to in (0, 1):
        x = whole((5, 7, 16), dtypes.f32)
        static = {"shape": (4, 8, 16) if name != "turned 021" else (4, 8, 8), "how": how, "to": to}
        (wanted,), (found,) = (run(changed_in_place[1], each, x, **static) for each in ("interpreter", "cpu"))
        np.testing.assert_array_equal(found, wanted)


def test_loops_carry_tiles_of_three_axes() -> None:
    x, out = whole((9, 7, 13), dtypes.f32), np.zeros((3, 7, 13), np.float32)
    expected = np.zeros((4, 7, 13), np.float32)
    for at in range(5):
        expected = expected * np.float32(0.5) + x[at : at + 4]
    for backend in ("interpreter", "cpu"):
        _, found = run(decayed[1], backend, x, out, shape=SHAPE, turns=5)
        np.testing.assert_array_equal(found, expected[:3])


SUMS = {
    dtypes.f32: np.float32,
    dtypes.f64: np.float64,
    dtypes.bf16: np.float32,
    dtypes.f16: np.float32,
    dtypes.i8: np.int32,
}


@given(data=st.data())
@settings(max_examples=3)
def test_products_of_odd_arrays(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*SUMS]))
    b, m, k, n = (data.draw(st.integers(1, most)) for most in (5, 20, 30, 40))
    layout = LAYOUTS[data.draw(st.sampled_from(PLACES))]
    x, w = whole((b, m, k), dtype), whole((b, k, n), dtype, 1)
    batch, block = data.draw(st.integers(1, 4)), data.draw(st.sampled_from((1, 8, 16)))
    static = {"batch": batch, "m": data.draw(st.integers(1, 20)), "k": block, "n": data.draw(st.integers(1, 40))}
    expected = np.zeros((b, m, n), SUMS[dtype])
    full = x.astype(np.float64) @ w.astype(np.float64)
    expected[:, : static["m"], : static["n"]] = full[:, : static["m"], : static["n"]]
    for backend in ("interpreter", "cpu"):
        found = layout(np.zeros((b, m, n), SUMS[dtype]))
        with knobs.backend.using(backend):
            products[-(-b // batch)](layout(x), layout(w), found, **static)
        np.testing.assert_array_equal(found, expected, err_msg=backend)


@kernel
def branched(x: Any, out: Any, n: int):
    found: Any = tile.load(x, at=(0, 0, 0), shape=(4, 8, 16))
    found = tile.transpose(tile.reshape(found, (4, 16, 8))) if n > 2 else found * 2
    left = n
    while left > 0:
        found, left = found + 1, left // 2
    if n > 5:
        found = tile.dot(tile.sum(tile.dot(found, tile.transpose(found)), 2)[:, :, None], tile.ones((4, 1, 16)))
    tile.store(out, found, at=(0, 0, 0))


@kernel
def looked_up(x: Any, rows: Any, sums: Any, out: Any):
    found, columns = tile.load(x, at=(0, 0, 0), shape=(2, 8, 16)), tile.iota((2, 8, 16), 2)
    places = tile.broadcast(tile.load(rows, at=(0, 0), shape=(2, 8))[:, :, None], (2, 8, 16))
    tile.assert_(found < 100.0, "too large")  # noqa: PT009  (a kernel's)
    tile.scatter_add(sums, (places, columns), found)
    tile.store(out, tile.gather(x[0], (places, columns)), at=(0, 0, 0))


@kernel
def combined(x: Any, out: Any, rows: Any, tops: Any):
    found = tile.load(x, at=(0, 0, 0), shape=(4, 8, 16))
    tile.atomic_add(out, found, at=(0, 0, 0))
    tile.atomic_max(out, tile.flip(found, 0), at=(0, 0, 0))
    tile.store(rows, tile.sum(found, 2), at=(0, 0))
    tile.store(tops, tile.max(tile.max(found, 2), 1), at=(0,))


def agree(kernel_: Any, *arguments: Any) -> None:
    """Machine code leaves in all arrays what the interpreter does."""
    made: list[list[Any]] = []
    for backend in ("interpreter", "cpu"):
        made.append([one.copy() if isinstance(one, np.ndarray) else one for one in arguments])
        with knobs.backend.using(backend):
            kernel_[1](*made[-1])
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.quick(n=[9])
@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_branches_and_loops_that_ask_carry_tiles_of_three_axes(n: int) -> None:
    agree(branched, whole((3, 7, 13), dtypes.f32), np.zeros(SHAPE, np.float32), n)


def test_places_that_memory_decides_and_updates() -> None:
    x, rows = whole((2, 7, 13), dtypes.f32), np.random.default_rng(5).integers(-1, 9, (2, 8))
    agree(looked_up, x, rows, np.zeros((7, 13), np.float32), np.zeros((2, 8, 16), np.float32))
    for size in (3, 0):
        x = whole((size, 7, 13), dtypes.f32)
        agree(combined, x, np.ones((3, 8, 13), np.float32), np.zeros((3, 8), np.float32), np.zeros(3, np.float32))
    with knobs.backend.using("cpu"), pytest.raises(CompileError, match="too large"):
        looked_up[1](
            np.full((2, 7, 13), 100, np.float32), rows, np.zeros((7, 13), np.float32), np.zeros((2, 8, 16), np.float32)
        )


FRONTS = [
    ((3, 4, 8), (8, 5)),
    ((4, 8), (3, 8, 5)),
    ((3, 4, 8), (1, 8, 5)),
    ((1, 4, 8), (3, 8, 5)),
    ((2, 1, 4, 8), (3, 8, 5)),
]


@pytest.mark.parametrize(("left", "right"), FRONTS, ids=str)
def test_an_operand_goes_with_all_of_the_other(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, w = whole(left, dtypes.f32), whole(right, dtypes.f32, 1)
    for backend in ("interpreter", "cpu"):
        _, _, found = run(product[1], backend, x, w, np.zeros((x @ w).shape, np.float32), left=left, right=right)
        np.testing.assert_array_equal(found, x @ w)


def test_attention_of_several_heads() -> None:
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 4), (2, 11, 4), (2, 11, 4)))
    for backend in ("interpreter", "cpu"):
        *_, found = run(heads[1], backend, q, k, v, np.zeros_like(q), h=2, m=8, n=8, d=4)
        np.testing.assert_allclose(found, attention(q, k, v), rtol=1e-4, atol=1e-5)


def test_checks_look_at_all_products() -> None:
    x, w = np.ones((3, 4, 8), np.float32), np.ones((3, 8, 5), np.float32)
    x[1, 2] = np.inf
    w[1, 3, 3] = 0
    static = {"left": x.shape, "right": w.shape}
    for checked in (checking(Checks.all()), knobs.checks.using("nan")):
        with checked, pytest.raises(DtypeError, match=r"dot (makes nan at \[1, 2, 3\]|made NaN of operands)"):
            product[1](x, w, np.zeros((3, 4, 5), np.float32), **static)
    tiny = np.full((3, 4, 8), 1e-30, np.float32)
    with checking(NumericChecks(underflow=True)), pytest.raises(DtypeError, match="underflow"):
        product[1](tiny, np.full((3, 8, 5), 1e-30, np.float32), np.zeros((3, 4, 5), np.float32), **static)


def test_made_up_rows_are_told_apart_in_each_product() -> None:
    """Beyond the array there are zeros, which add nothing; other numbers there are a mistake."""
    x, w = np.ones((3, 4, 6), np.float32), np.ones((3, 8, 5), np.float32)
    static = {"left": (3, 4, 8), "right": (3, 8, 5)}
    with checking(Checks.all()):
        product[1](x, w, (out := np.zeros((3, 4, 5), np.float32)), **static)
    assert (out == 6).all()


MISUSE: dict[str, tuple[Any, Any, type[TesseraError], str]] = {
    "an axis": ((8,), (8, 5), ShapeError, "dot takes tiles of two axes or more, got a tile of"),
    "inner sizes": ((3, 4, 8), (3, 7, 5), ShapeError, "8 columns of the left tile do not meet 7 rows of the right one"),
    "fronts": (
        (3, 4, 8),
        (2, 8, 5),
        ShapeError,
        "3 products of the left tile and 2 of the right one do not go together",
    ),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_told(name: str) -> None:
    left, right, error, message = MISUSE[name]
    with pytest.raises(error, match=message) as caught:
        product[1](
            np.ones(left, np.float32),
            np.ones(right, np.float32),
            np.ones((3, 4, 5), np.float32),
            left=left,
            right=right,
        )
    assert caught.value.hint


def turned(v: Any) -> Any:
    return v.T


def with_a_sum(v: Any) -> Any:
    return tile.dot(v, tile.transpose(v), tile.zeros((8, 8)))


def with_itself(v: Any) -> Any:
    return tile.dot(v, v)


@pytest.mark.parametrize(
    ("how", "message", "hint"),
    [
        (turned, r"\.T is for tiles of two axes, this one has 3", "tile.transpose(x) exchanges the last two axes"),
        (with_a_sum, r"the sum has shape \[8, 8\], the product \[4, 8, 8\]", "give a sum of the product's shape"),
        (with_itself, "16 columns of the left tile do not meet 8 rows", "exchange the last two axes of the right tile"),
    ],
)
def test_other_mistakes_are_told(how: Any, message: str, hint: str) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        changed[1](np.ones(SHAPE, np.float32), np.zeros((4, 8, 8), np.float32), shape=SHAPE, how=how)
    assert hint in (caught.value.hint or "")


def test_nothing_of_three_axes_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tile of three axes needs and has no rule would be a refusal that names the op."""
    stages = legalize.legalize_stages

    def without(level: str, *, contract: bool = True) -> dict[str, FunctionPass]:
        return {name: one for name, one in stages(level, contract=contract).items() if "axes" not in name}

    monkeypatch.setattr("tessera.targets.cpu.compile.legalize_stages", without)
    how = CASES["elementwise"][0]
    out = np.zeros((3, 8, 16), np.float32)
    with (
        knobs.backend.using("cpu"),
        pytest.raises(CompileError, match=r"tile\.load works on tensor<3x8x16xf32>: tiles on CPUs"),
    ):
        changed[1](np.ones((3, 8, 16), np.float32), out, shape=(3, 8, 16), how=how)
