"""Loops that the program ends: `while` on its values, `break` and `continue`, against Python and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from deciding_kernels import collatz, powers, sums_until
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import CompileError, DtypeError, f32, kernel, knobs, tile

Array = np.ndarray[Any, np.dtype[Any]]


def everywhere(function: Any, *arrays: Array, grid: int, **options: Any) -> list[Array]:
    """What a kernel makes of its last array, by the interpreter and by machine code."""
    found: list[Array] = []
    for interpreted in (True, False):
        out = arrays[-1].copy()
        with knobs.interpret.using(interpreted):
            function[grid](*arrays[:-1], out, **options)
        found.append(out)
    return found


def steps_of(n: int) -> int:
    return 0 if n == 1 else 1 + steps_of(n // 2 if n % 2 == 0 else 3 * n + 1)


def test_a_while_ends_when_its_condition_fails() -> None:
    x = np.arange(1, 30)
    for out in everywhere(collatz, x, np.zeros(29, np.int64), grid=29):
        assert out.tolist() == [steps_of(n) for n in range(1, 30)]


def expected_sums(x: Array, limits: Array, least: Array) -> Array:
    out = np.zeros((len(x), 8), np.float32)
    for row, limit, made in zip(x, limits, out, strict=True):
        taken = 0
        for at in range(0, len(row), 8):
            if at >= limit:
                break
            if row[at] < least[0]:
                continue
            if taken == 3:
                made += 100  # noqa: PLW2901  (in place)
                break
            part = row[at : at + 8]
            made[: len(part)] += part
            taken += 1
    return out


@given(data=st.data())
@settings(max_examples=12)
def test_a_tile_loop_may_be_left_and_its_iterations_cut_short(data: st.DataObject) -> None:
    width, seed = data.draw(st.integers(0, 70)), data.draw(st.integers(0, 99))
    limits = np.array(data.draw(st.lists(st.integers(0, 80), min_size=1, max_size=4)))
    least = np.array([data.draw(st.sampled_from((-9.0, 0.0, 0.5, 9.0)))], np.float32)
    x = np.random.default_rng(seed).standard_normal((len(limits), width)).astype(np.float32)
    for out in everywhere(sums_until, x, limits, least, np.zeros((len(x), 8), np.float32), grid=len(x)):
        assert np.allclose(out, expected_sums(x, limits, least), atol=1e-5)


@kernel
def pythons(x: Any, out: Any, *, n: int):
    i, total = 0, tile.load(x, at=(0,), shape=(8,))
    while i < n:
        i += 1
        if i == 2:
            continue
        total = total + i
        if i > 4:
            break
    tile.store(out, total, at=(0,))


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (3, 4), (9, 13)])
def test_a_while_that_python_can_decide_is_pythons(n: int, expected: int) -> None:
    x = np.zeros(8, np.float32)
    for out in everywhere(pythons, x, x, grid=1, n=n):
        assert out.tolist() == [expected] * 8


@pytest.mark.parametrize("times", [0, 3, 8])
def test_loops_carry_tiles_and_lie_within_each_other(times: int) -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    expected, left = x.astype(np.float64), times
    while left > 0:
        expected, left = expected @ w, left - 1
        expected, left = expected * 0.5 ** max(0, left - 5), min(left, 5)
    for out in everywhere(powers, x, w, np.array([times]), np.zeros_like(x), grid=1):
        assert np.allclose(out, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@kernel
def shares(x: Any, times: Any, out: Any):
    rows, left = tile.load(x, at=(tile.program_id(0) * 8, 0), shape=(8, 16)), tile.item(times, 0)
    while left > 0:
        rows, left = rows / tile.sum(rows, keepdims=True), left - 1
    tile.store(out, rows, at=(tile.program_id(0) * 8, 0))


def test_checks_look_into_loops_that_test() -> None:
    x = np.random.default_rng(0).random((13, 16)).astype(np.float32) + 0.1
    out = np.zeros_like(x)
    for checks in ("nan", "bounds", "bounds,nan"):  # rows beyond the array are NaN, and do no harm
        with knobs.checks.using(checks):
            shares[2](x, np.array([3]), out)
        assert np.allclose(out, x / x.sum(1, keepdims=True), atol=1e-5)
    x[3] = 0
    with knobs.checks.using("nan"), pytest.raises(DtypeError, match="div made NaN"):
        shares[2](x, np.array([3]), out)


@kernel
def returning(x: Any):
    y: Any = tile.load(x)
    for i in tile.range(3):
        return y + i
    return y


@kernel
def left_in_a_with(x: Any):
    y: Any = tile.load(x)
    for _ in tile.range(3):
        with knobs.optimization.using(1):
            break
    return y


@kernel
def unassigned_behind(x: Any, n: int):
    for i in tile.range(n):
        if i > 2:
            break
        y = tile.load(x).to(f32)
    return y  # pyright: ignore[reportPossiblyUnboundVariable]  (the mistake)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (returning, (), "return inside a tile loop: a kernel has one end"),
        (left_in_a_with, (), "a tile loop is left inside of with"),
        (unassigned_behind, (3,), "y has no value here: it is assigned only inside the loop"),
    ],
)
def test_what_a_loop_cannot_do_is_told(function: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        function(np.ones(8, np.float32), *arguments)
    assert caught.value.hint
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
