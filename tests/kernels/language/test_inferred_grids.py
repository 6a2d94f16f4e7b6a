"""Grids that stores tell, and grids that are worked out of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_grids import BACKENDS, Filling, batched, by_blocks, in_a_branch, ones_and_zeros, without_a_context

from tessera import Schedule, kernel, knobs, tile
from tessera.errors import ShapeError, TesseraError
from tessera.ir.tile.dialect import FuncOp
from tessera.metatracing.clients.shipping import pack, unpack

Of = Callable[[Any], Any]


def of_x(function: Of) -> Of:
    """A function whose parameter may be anything, as checkers of types need to be told."""
    return function


# Grids that stores tell


@kernel
def halves(x: Any, y: Filling):
    """Two stores to a program instance; the grid has an axis that nothing uses."""
    row, column = tile.program_id(2) * 16, tile.program_id(0) * 8
    for part in (0, 8):
        at = (row + part, column)
        tile.store(y, tile.load(x, at=at, shape=(8, 8)) + 1.0, at=at)


@kernel
def heads(x: Any, y: Filling):
    here = (tile.program_id(0) * 16, 0)
    head = tile.program_id(1)
    tile.store(y[head], tile.load(x[head], at=here, shape=(16, 8)) + 1.0, at=here)


@kernel
def in_a_loop_of_stores(x: Any, y: Filling):
    for i in tile.range(0, 32, 8):
        at = (tile.program_id(0) * 32 + i, tile.program_id(1) * 16)
        tile.store(y, tile.load(x, at=at, shape=(8, 16)) + 1.0, at=at)


@kernel
def context_and_blocks(x: Any, y: Filling):
    here = tile.context()
    at = (here.row_start, tile.program_id(1) * here.n)
    tile.store(y, tile.load(x, at=at, shape=(here.m, here.n)) + 1.0, at=at)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("used", [without_a_context, halves, in_a_loop_of_stores, context_and_blocks])
@pytest.mark.parametrize("shape", [(130, 200), (1, 1), (64, 64), (65, 0)])
def test_stores_tell_the_grid(backend: str, used: Any, shape: tuple[int, int]) -> None:
    x, y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    with knobs.backend.using(backend):
        used(x, y)
    assert (y == 2).all()


def _grid_of(instance: Any) -> list[str]:
    (function,) = (op for op in instance.module.ops if isinstance(op, FuncOp))
    return [str(one) for one in function.grid.data]


def test_indices_tell_the_grid() -> None:
    x, y = np.ones((5, 40, 8), np.float32), np.zeros((5, 40, 8), np.float32)
    heads(x, y)
    assert (y == 2).all()
    assert _grid_of(heads.lower(x, y)) == ["(y_1 + 15)//16", "y_0"]


@kernel
def with_a_gap(x: Any, y: Filling):
    tile.store(y, tile.load(x, at=(tile.program_id(0) * 64,), shape=(32,)), at=(tile.program_id(0) * 64,))


@kernel
def backwards(x: Any, y: Filling):
    at = (256 - tile.program_id(0) * 64,)
    tile.store(y, tile.load(x, at=at, shape=(64,)), at=at)


@kernel
def of_two_lengths(x: Filling, y: Filling):
    at = (tile.program_id(0) * 64,)
    tile.store(x, tile.ones((64,)), at=at)
    tile.store(y, tile.ones((64,)), at=at)


@kernel
def of_two_axes(x: Any, y: Filling):
    at = (tile.program_id(0) * 64 + tile.program_id(1) * 8,)
    tile.store(y, tile.load(x, at=at, shape=(8,)), at=at)


@kernel
def from_a_number(x: Any, y: Filling, start: int):
    at = (tile.program_id(0) * 64 + start,)
    tile.store(y, tile.load(x, at=at, shape=(64,)), at=at)


@kernel
def added(x: Any, y: Filling):
    at = (tile.program_id(0) * 64,)
    tile.atomic_add(y, tile.load(x, at=at, shape=(64,)), at=at)


@kernel
def in_a_long_loop(x: Any, y: Filling, *, steps: int):
    for i in tile.range(steps):
        at = (tile.program_id(0) * 8 * steps + i * 8,)
        tile.store(y, tile.load(x, at=at, shape=(8,)), at=at)


UNCLEAR: list[tuple[Any, dict[str, Any], str]] = [
    (with_a_gap, {}, "a program instance fills not all of the 64 elements along axis 0 of y"),
    (backwards, {}, "stores along axis 0 of y lie in several steps, or follow other axes as well"),
    (of_two_lengths, {}, r"outputs ask for \(x_0 \+ 63\)//64 and for \(y_0 \+ 63\)//64 program instances"),
    (of_two_axes, {}, "stores along axis 0 of y lie in several steps, or follow other axes as well"),
    (from_a_number, {"start": 3}, "no store to an output lies at a multiple of it"),
    (added, {}, "no store to an output lies at a multiple of it"),
    (in_a_long_loop, {"steps": 5000}, "a program instance fills not all of the 40000 elements"),
    (in_a_branch, {"flag": True}, "no store to an output lies at a multiple of it"),
    (by_blocks, {}, "no parameter is annotated Out"),
]


@pytest.mark.parametrize(("used", "more", "reason"), UNCLEAR, ids=lambda value: getattr(value, "__name__", ""))
def test_why_stores_do_not_tell(used: Any, more: dict[str, Any], reason: str) -> None:
    x, y = ones_and_zeros()
    if used not in (in_a_branch, by_blocks):
        x, y = x[0].copy(), y[0].copy()
    with pytest.raises(TesseraError) as found:
        used(x, y, **more)
    assert re.search(reason, "\n".join(found.value.story))
    assert f"{used.__name__}.grid(lambda" in (found.value.hint or "")
    assert (y == 0).all()


# Grids that are worked out of sizes


def test_a_grid_of_sizes_serves_all_of_them() -> None:
    fresh = kernel(by_blocks.function)

    def blocks(x: Any, block: Any) -> Any:
        return tile.cdiv(x.shape[0], block.m), tile.cdiv(x.shape[1], block.n)

    work = fresh.grid(blocks)
    for shape in ((130, 200), (1, 1), (64, 65), (300, 3), (0, 4)):
        x, y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
        work(x, y)
        assert (y == 2).all()
    assert work.explain().startswith("by_blocks: 1 programs")
    small = work.with_schedule(Schedule(block=(16, 32)))
    assert _grid_of(small.lower(*ones_and_zeros())) == ["(x_0 + 15)//16", "(x_1 + 31)//32"]
    x, y = ones_and_zeros()
    small(x, y)
    assert (y == 2).all()


def test_a_grid_of_the_same_code_is_the_same_grid() -> None:
    fresh = kernel(without_a_context.function)

    def form(block: int) -> Any:
        return fresh.grid(of_x(lambda y: [tile.cdiv(y.shape[0], block), tile.cdiv(y.shape[1], 64)]))

    for block in (64, 64, 32, 64, 32):
        x, y = ones_and_zeros()
        form(block)(x, y)
        assert (y == 2).all()
    assert fresh.explain().startswith("without_a_context: 2 programs")


def test_a_grid_of_sizes_goes_to_another_process() -> None:
    """As kernels do that are compiled there: functions by their code."""
    width = 64

    def blocks(x: Any, block: Any) -> Any:
        return tile.cdiv(x.shape[0], block.m), tile.cdiv(x.shape[1], width)

    given_grid = by_blocks.grid(blocks).given_grid
    sent = unpack(pack(given_grid))
    assert sent == given_grid
    assert (sent.names, sent.takes_blocks, sent.function.__defaults__) == (("x", "block"), True, None)


def test_a_grid_of_static_values_and_attributes() -> None:
    @kernel
    def shifted(held: Any, y: Any, *, block: int):
        at = (tile.program_id(0) * block,)
        tile.store(y, tile.load(held.x, at=at, shape=(block,)) + 1.0, at=at)

    def blocks(held: Any, block: Any) -> Any:
        return tile.cdiv(held.x.shape[0], block)

    work = shifted.grid(blocks)
    for count in (100, 7):
        held, y = SimpleNamespace(x=np.ones(count, np.float32)), np.zeros(count, np.float32)
        for block in (16, 32):
            y[:] = 0
            work(held, y, block=block)
            assert (y == 2).all()


def test_a_grid_of_sizes_is_checked() -> None:
    x, y = ones_and_zeros()
    with pytest.raises(ShapeError, match=r"no program instance of without_a_context writes y\[:, 64:\]"):
        without_a_context.grid(of_x(lambda x: (tile.cdiv(x.shape[0], 64), 1)))(x, y)
    with pytest.raises(ShapeError, match=r"uses 2 axes of a grid, and the one worked out, \[x_0\], has 1"):
        by_blocks.grid(of_x(lambda x: x.shape[0]))(x, y)
    stack = np.ones((2, 3, 70, 8), np.float32)
    assert (batched.grid(of_x(lambda x: (2, x.shape[0] * x.shape[1])))(stack).numpy() == 2).all()
    with pytest.raises(ShapeError, match=r"has x_0 program instances along axis 1, and x has x_0\*x_1 points"):
        batched.grid(of_x(lambda x: (2, x.shape[0])))(stack)


NO_GRIDS: list[tuple[Any, str | None]] = [
    (3, "takes a function that gives the grid, got 3"),
    (of_x(lambda z: z), "asks for z, which is no parameter of the kernel"),
    (of_x(lambda x: x.shape[0] / 64), "TypeError: unsupported operand"),
    (of_x(lambda x: max(x.shape[0], 1)), "TypeError: '>' not supported"),
    (of_x(lambda x: x.shape[7]), "IndexError: tuple index out of range"),
    (of_x(lambda x: ()), r"the grid of in_a_branch is \(\), and a grid is one to three sizes"),
    (lambda: (1, 2, 3, 4), "a grid is one to three sizes"),
    (lambda: (1, -2), r"is \(1, -2\), and a grid"),
    (lambda: 1.5, r"is \(1.5,\), and a grid"),
    (lambda: True, r"is \(True,\), and a grid"),
    (of_x(lambda x: x.shape), None),
    (of_x(lambda flag: 2 if flag else 1), "asks for flag, a number that each call gives anew"),
    (of_x(lambda x: tile.cdiv(x.shape[0], 0)), "cdiv by 0"),
    (of_x(lambda x: tile.cdiv(x.shape[0], 2.0)), "cdiv divides whole numbers, sizes and positions, got 2.0"),
]


@pytest.mark.parametrize(("function", "message"), NO_GRIDS)
def test_what_is_no_grid_of_sizes(function: Any, message: str | None) -> None:
    x, y = ones_and_zeros()
    if message is None:
        in_a_branch.grid(function)(x, y, True)
        return
    with pytest.raises(TesseraError, match=message) as found:
        in_a_branch.grid(function)(x, y, True)
    assert found.value.span is not None
    assert found.value.span.file == __file__


@settings(max_examples=12)
@given(
    st.tuples(st.integers(0, 40), st.integers(0, 40)), st.tuples(st.integers(1, 16), st.integers(1, 16)), st.booleans()
)
def test_inferred_grids_fill_all(shape: tuple[int, int], block: tuple[int, int], turned: bool) -> None:
    y = np.zeros(shape, np.float32)
    blocks_of_any_size(y.T if turned else y, m=block[0], n=block[1])
    assert (y == 1).all()


@kernel
def blocks_of_any_size(y: Filling, *, m: int, n: int):
    tile.store(y, tile.ones((m, n)), at=(tile.program_id(0) * m, tile.program_id(1) * n))


# Grids of numbers


def row_blocks(x: Any, y: Any, factor: float):
    here = (tile.program_id(0) * 16, tile.program_id(1) * 8)
    tile.store(y, tile.load(x, at=here, shape=(16, 8)) * factor, at=here)


def summed(x: Any, y: Any, factor: float):
    here = (tile.program_id(0) * 16, 0)
    tile.atomic_add(y, tile.load(x, at=here, shape=(16, 8)) * factor, at=(0, 0))


def _scaled(used: Any, shape: tuple[int, int], grid: tuple[int, ...]) -> Any:
    x, y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    with knobs.backend.using("cpu"):
        used[grid](x, y, 3.0)
    return y


def test_after_eight_grids_of_numbers_one_program_serves_all_that_stores_ask_for() -> None:
    used = kernel(row_blocks)
    for blocks in range(1, 9):
        assert (_scaled(used, (16 * blocks, 8), (blocks, 1)) == 3).all()
    assert used.explain().startswith("row_blocks: 8 programs")
    for rows, columns in ((130, 200), (1, 70), (64, 65), (65, 17), (300, 3)):
        assert (_scaled(used, (rows, columns), (-(-rows // 16), -(-columns // 8))) == 3).all()
    assert used.explain().startswith("row_blocks: 9 programs")
    # Fewer program instances fill less, whichever program there is.
    for rows in (48, 80, 160):
        filled = _scaled(used, (rows, 16), (2, 2))
        assert np.array_equal(filled[:, 9], np.where(np.arange(rows) < 32, 3, 0))
    assert used.explain().startswith("row_blocks: 10 programs")


def test_why_a_grid_of_numbers_has_a_program_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    used = kernel(summed)
    with knobs.logs.using("recompiles"), caplog.at_level("WARNING"):
        for blocks in range(1, 10):
            assert _scaled(used, (16 * blocks, 8), (blocks,))[0, 0] == 3 * blocks
    assert used.explain().startswith("summed: 9 programs")
    assert "summed is compiled for the grid (9,) alone: " in caplog.text
    assert "(8,) alone" not in caplog.text


@settings(max_examples=20)
@given(st.integers(0, 70), st.integers(0, 40), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_grids_of_numbers_are_kept_to(rows: int, columns: int, down: int, along: int, fitting: bool) -> None:
    down, along = (-(-rows // 16), -(-columns // 8)) if fitting else (down, along)
    y = _scaled(_SHARED, (rows, columns), (down, along))
    expected = np.zeros((rows, columns), np.float32)
    expected[: down * 16, : along * 8] = 3
    assert np.array_equal(y, expected)


_SHARED = kernel(row_blocks)
