"""Checks the checks on memory: bounds, uninitialised reads, missing masks; how to ask for them; and access traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera import Schedule, bf16, f32, kernel, knobs, tile
from tessera.errors import CompileError, EffectError, RaceError, ShapeError, TesseraError
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, asked, checking
from tessera.ir import text

specified: Any = import_module("specified")

Array = np.ndarray[Any, np.dtype[Any]]
BOUNDS, PADDING = Checks(bounds=True), Checks(padding=True)
VIEW = "!tile.view<1, f32, global>"
INF = float("inf")


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def caught(kind: type[TesseraError], checks: Checks, run: Callable[[], object]) -> TesseraError:
    with pytest.raises(kind) as found, checking(checks):
        run()
    return found.value


def line_of(error: TesseraError) -> str:
    """The source that the carets of an error point at."""
    assert error.span is not None
    assert error.span.end_column is not None
    line = Path(error.span.file).read_text().splitlines()[error.span.line - 1]
    return line[error.span.column : error.span.end_column]


# Bounds.


@kernel
def copy_blocks(x: Any, y: Any, step: int) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * step], shape=[4]), at=[p * 4])


@given(st.integers(1, 20))
def test_ragged_edges_are_in_bounds(n: int) -> None:
    x, y = floats(n), zeros(n)
    with checking(BOUNDS):
        copy_blocks[-(-n // 4)](x, y, 4)
    assert (x == y).all()


def test_a_load_that_starts_beyond_the_end_is_out_of_bounds() -> None:
    error = caught(ShapeError, BOUNDS, lambda: copy_blocks[3](floats(10), zeros(12), 5))
    assert error.message == "load at [10] in program instance [2]: index 10 of axis 0 is out of range, the size is 10"
    assert error.shapes == ("a block of [4] in a view of [10]",)
    assert (
        error.hint == "a block may reach over the end, but starts inside: check the grid, the block size and the offset"
    )
    assert line_of(error) == "tile.load(x, at=[p * step], shape=[4])"


def test_a_load_that_starts_before_the_array_is_out_of_bounds() -> None:
    error = caught(ShapeError, BOUNDS, lambda: copy_blocks[2](floats(10), zeros(8), -1))
    assert error.message == "load at [-1] in program instance [1]: index -1 of axis 0 is out of range, the size is 10"


def test_a_store_beyond_the_end_is_out_of_bounds() -> None:
    y = zeros(4)
    error = caught(ShapeError, BOUNDS, lambda: copy_blocks[2](floats(10), y, 4))
    assert error.message == "store at [4] in program instance [1]: index 4 of axis 0 is out of range, the size is 4"
    # Without the check, what lies outside is left out.
    copy_blocks[2](floats(10), y, 4)
    assert (y == floats(10)[:4]).all()


@kernel
def add_corner(x: Any, y: Any, row: int, column: int) -> None:
    tile.atomic_add(y, tile.load(x, at=[0, 0], shape=[2, 2]), at=[row, column])


def test_an_atomic_beyond_the_end_is_out_of_bounds() -> None:
    with checking(BOUNDS):
        add_corner[1](floats(2, 2), zeros(3, 3), 2, 2)
    error = caught(ShapeError, BOUNDS, lambda: add_corner[1](floats(2, 2), zeros(3, 3), 1, 3))
    said = "atomic_add at [1, 3] in program instance [0]: index 3 of axis 1 is out of range, the size is 3"
    assert error.message == said
    assert error.shapes == ("a block of [2, 2] in a view of [3, 3]",)


def test_nothing_is_out_of_bounds_in_an_empty_array() -> None:
    with checking(Checks.all()):
        copy_blocks[2](floats(0), zeros(0), 4)


def test_offsets_that_are_huge_are_out_of_bounds_without_overflow() -> None:
    with checking(Checks(races=True, padding=True), trace=(trace := Trace())):
        copy_blocks[1](floats(10), zeros(8), 4)
        copy_blocks[2](floats(10), zeros(4), 2**61)
    assert [access.offsets.tolist() for access in trace][-2:] == [[], []]


# Uninitialised reads.


def program(body: str, outputs: int = 1, grid: str = "[1]") -> Any:
    return text.read(
        f"tile.func @k(%x: {VIEW}, %y: {VIEW}) outputs {outputs} shapes [[N], [M]] grid {grid} {{\n"
        f"%zero = arith.constant 0 : index\n%two = arith.constant 2 : index\n%p = tile.program_id 0\n"
        f"{body}\ntile.return\n}}"
    )


def load(name: str, view: str, at: str, size: int = 2) -> str:
    return f"%{name} = tile.load %{view}[%{at}] : {VIEW} -> tensor<{size}xf32>\n"


def store(name: str, view: str, at: str, size: int = 2) -> str:
    return f"tile.store %{name}, %{view}[%{at}] : tensor<{size}xf32>, {VIEW}\n"


def test_an_output_holds_nothing_before_it_is_written() -> None:
    module = program(load("t", "x", "zero") + store("t", "y", "zero") + load("u", "y", "zero", 4))
    with pytest.raises(EffectError) as found:
        run_kernel(module, "k", [floats(2), zeros(4)], checks=Checks.all())
    assert found.value.message == "program instance [0] reads y[2], which nothing has written"
    assert found.value.hint == "store to y first, or make it an input: outputs hold nothing at first"
    assert str(found.value.span) == "<text>:7:1"
    # The same argument as an input, or fully written.
    inputs = program(load("u", "y", "zero", 4), outputs=0)
    run_kernel(inputs, "k", [floats(2), zeros(4)], checks=Checks.all())
    run_kernel(module, "k", [floats(2), zeros(2)], checks=Checks.all())
    run_kernel(module, "k", [floats(2), zeros(4)], checks=replace(Checks.all(), uninitialised=False, unwritten=False))


def test_an_atomic_reads_what_it_updates() -> None:
    atomic = f"tile.atomic<sum> %t, %y[%two] : tensor<2xf32>, {VIEW}\n"
    module = program(load("t", "x", "zero") + store("t", "y", "zero") + atomic)
    with pytest.raises(EffectError) as found:
        run_kernel(module, "k", [floats(2), zeros(4)], checks=Checks(uninitialised=True))
    assert found.value.message == "program instance [0] updates atomically y[2], which nothing has written"
    written = program(load("t", "x", "zero") + store("t", "y", "two") + atomic)
    run_kernel(written, "k", [floats(2), zeros(4)], checks=Checks(uninitialised=True))


def test_an_output_that_shares_memory_with_an_input_holds_its_values() -> None:
    line = floats(4)
    run_kernel(program(load("u", "y", "zero", 4)), "k", [line, line[::-1]], checks=Checks(uninitialised=True))
    with pytest.raises(EffectError, match=r"reads y\[2\]"):
        run_kernel(program(load("u", "y", "zero", 4)), "k", [line[:2], line], checks=Checks(uninitialised=True))


def test_what_another_program_wrote_is_a_race_rather_than_uninitialised() -> None:
    module = program(load("t", "x", "zero") + store("t", "y", "zero") + load("u", "y", "zero"), grid="[2]")
    with pytest.raises(RaceError):
        run_kernel(module, "k", [floats(2), zeros(2)], checks=Checks.all())


# Missing masks.


@kernel
def softmax(x: Any, y: Any, *, width: int, pad: float, masked: bool) -> None:
    p = tile.program_id(0) * 4
    block = tile.load(x, at=[p, 0], shape=[4, width], pad=pad)
    if masked:
        block = tile.where(tile.iota((1, width), 1) < x.shape[1], block, -INF)
    weights = tile.exp(block - tile.max(block, 1)[:, None])
    tile.store(y, weights / tile.sum(weights, 1)[:, None], at=[p, 0])


def softmax_of(x: Array) -> Array:
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


@given(st.integers(1, 9), st.integers(1, 8))
def test_a_masked_softmax_is_clean(m: int, n: int) -> None:
    x, y = floats(m, n), zeros(m, n)
    with checking(Checks.all()):
        softmax[-(-m // 4)](x, y, width=8, pad=0.0, masked=True)
    np.testing.assert_allclose(y, softmax_of(x), rtol=1e-5)


def test_a_softmax_padded_with_minus_infinity_needs_no_mask() -> None:
    # In rows beyond the array −∞ − −∞ is NaN, and it is not stored.
    x, y = floats(3, 5), zeros(3, 5)
    with checking(Checks.all()):
        softmax[1](x, y, width=8, pad=-INF, masked=False)
    np.testing.assert_allclose(y, softmax_of(x), rtol=1e-5)


@pytest.mark.parametrize("shape", [(4, 7), (3, 7), (1, 1)])
def test_a_softmax_without_its_mask_is_caught(shape: tuple[int, int]) -> None:
    error = caught(
        ShapeError, PADDING, lambda: softmax[1](floats(*shape), zeros(*shape), width=8, pad=0.0, masked=False)
    )
    assert error.message == "a value from beyond the array reaches reduce max at [0] in program instance [0]"
    lines, start = inspect.getsourcelines(softmax.function)
    loaded = start + next(at for at, line in enumerate(lines) if "tile.load" in line)
    assert error.story == (f"the load of [4, 8] with pad 0 at {__file__}:{loaded}:13 made it up",)
    assert error.hint == (
        "mask before this op: tile.where(positions < size, x, fill) with positions from tile.row_index or "
        "tile.col_index, or load with pad= a value that changes nothing here"
    )
    assert line_of(error) == "tile.max(block, 1)"


@kernel
def variance(x: Any, y: Any, *, masked: bool) -> None:
    block = tile.load(x, at=[0, 0], shape=[4, 8])
    count = tile.sum(tile.where(tile.iota((4, 8), 1) < x.shape[1], 1.0, tile.zeros((4, 8), f32)), 1)
    centred = block - (tile.sum(block, 1) / count)[:, None]
    if masked:
        centred = tile.where(tile.iota((1, 8), 1) < x.shape[1], centred, 0.0)
    tile.store(y, tile.sum(centred * centred, 1) / count, at=[0])


def test_a_sum_of_zeros_is_clean_and_what_becomes_of_them_is_not() -> None:
    x, y = floats(3, 5), zeros(3)
    with checking(Checks.all()):
        variance[1](x, y, masked=True)
    np.testing.assert_allclose(y, x.var(1), rtol=1e-5)
    error = caught(ShapeError, PADDING, lambda: variance[1](x, y, masked=False))
    assert error.message == "a value from beyond the array reaches reduce sum at [0] in program instance [0]"
    assert line_of(error) == "tile.sum(centred * centred, 1)"
    with checking(PADDING):
        variance[1](floats(3, 8), y, masked=False)


@kernel
def weighted(x: Any, v: Any, y: Any, *, pad: float, shift: float) -> None:
    total = tile.zeros((4, 4), f32)
    for k in tile.range(0, x.shape[1], 4):
        block = tile.load(x, at=[0, k], shape=[4, 4]) + shift
        total = tile.dot(block, tile.load(v, at=[k, 0], shape=[4, 4], pad=pad), total)
    tile.store(y, total, at=[0, 0])


def test_products_with_zero_are_clean_and_others_are_not() -> None:
    def run(k: int, pad: float, shift: float, m: int = 3) -> Array:
        y = zeros(m, 3)
        weighted[1](floats(m, k), floats(k, 3), y, pad=pad, shift=shift)
        return y

    with checking(Checks.all()):
        np.testing.assert_allclose(run(6, 0.0, 0.0), floats(3, 6) @ floats(6, 3), rtol=1e-4, atol=1e-5)
        run(6, 7.0, 0.0)  # against zeros
        run(6, 0.0, 1.0)  # zeros against the others
        run(8, 7.0, 1.0)  # no edge along the sum; rows and columns beyond the end are not stored
    error = caught(ShapeError, PADDING, lambda: run(6, 7.0, 1.0))
    assert error.message == "a value from beyond the array reaches dot at [0, 0] in program instance [0]"


@kernel
def shifted(x: Any, y: Any, *, fill: bool) -> None:
    block = tile.load(x, at=[1], shape=[4])
    if fill:
        block = tile.where(tile.iota((4,), 0, 1) < x.shape[0], block, -1.0)
    tile.store(y, block * 2.0, at=[0])


def test_values_from_beyond_are_not_stored() -> None:
    y = zeros(4)
    error = caught(ShapeError, PADDING, lambda: shifted[1](floats(4), y, fill=False))
    assert error.message == "a value from beyond the array reaches a store at [3] in program instance [0]"
    assert line_of(error) == "tile.store(y, block * 2.0, at=[0])"
    assert (y == 0).all()
    with checking(PADDING):
        shifted[1](floats(4), y, fill=True)
        shifted[1](floats(4), y[:3], fill=False)
    assert y[3] == -2


@kernel
def accumulate(x: Any, y: Any, *, pad: float) -> None:
    tile.atomic_add(y, tile.load(x, at=[0], shape=[4], pad=pad), at=[0])


def test_an_atomic_may_add_zeros_from_beyond() -> None:
    y = zeros(4)
    with checking(PADDING):
        accumulate[1](floats(3), y, pad=0)
    error = caught(ShapeError, PADDING, lambda: accumulate[1](floats(3), y, pad=1))
    assert error.message == "a value from beyond the array reaches an atomic at [3] in program instance [0]"


@kernel
def carried(x: Any, y: Any, rounds: int) -> None:
    last = tile.zeros((4,), f32)
    for i in tile.range(rounds):
        last = last + 1.0
        if i == 1:
            last = tile.load(x, at=[0], shape=[4])
    tile.store(y, last, at=[0])


def test_marks_go_through_loops_and_branches() -> None:
    with checking(PADDING):
        carried[1](floats(3), zeros(4), 0)
        carried[1](floats(3), zeros(4), 1)
        carried[1](floats(4), zeros(4), 5)
    for rounds in (2, 3):
        caught(ShapeError, PADDING, lambda: carried[1](floats(3), zeros(4), rounds))  # noqa: B023  (called at once)


@pytest.mark.quick
@pytest.mark.parametrize("nonfinite", ["nan", "all"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("s", "t"), [(1, 1), (17, 17), (64, 64), (33, 70), (70, 33)])
def test_the_specified_attention_is_clean(s: int, t: int, causal: bool, nonfinite: Any) -> None:
    q, k, v = (ts.randn((2, rows, 16), bf16, seed=seed) for seed, rows in enumerate((s, t, t)))
    attention = specified.flash_attention.with_schedule(Schedule(block=(16, 32)))
    with knobs.backend.using("interpreter"):
        expected = attention(q, specified.KVCache(k, v), dropout=0.25, causal=causal)
    with checking(replace(Checks.all(), nonfinite=nonfinite)):
        found = attention(q, specified.KVCache(k, v), dropout=0.25, causal=causal)
    assert (found.numpy() == expected.numpy()).all()


# Asking.


def test_nothing_is_checked_unless_asked() -> None:
    assert not Checks()
    assert asked() == (Checks(), None)
    assert all(vars(Checks.all()).values())
    with checking(Checks.all()):
        with checking(Checks()):
            assert not asked().checks
        assert asked().checks == Checks.all()
    with pytest.raises(CompileError) as found:
        Checks(nonfinite="inf")  # pyright: ignore[reportArgumentType]  (the mistake)
    assert found.value.message == "nonfinite='inf' is not a check"


def test_what_the_call_says_goes_before_what_holds_around_it() -> None:
    module = program(load("u", "y", "zero"))
    with checking(Checks.all()):
        run_kernel(module, "k", [floats(2), zeros(2)], checks=Checks())
        with pytest.raises(EffectError):
            run_kernel(module, "k", [floats(2), zeros(2)])
        with pytest.raises(EffectError):
            run_kernel(module, "k", [floats(2), zeros(2)], trace=Trace())


# Traces.


def test_a_trace_tells_who_touched_what_and_when() -> None:
    trace, x, y = Trace(), floats(6)[::-1], zeros(6, 2)[:, 1]
    with checking(Checks(), trace=trace):
        copy_blocks[2](x, y, 4)
    told = [(access.program, access.kind, access.argument, access.offsets.tolist()) for access in trace]
    assert told == [
        ((0,), "read", 0, [0, -1, -2, -3]),
        ((0,), "write", 1, [0, 2, 4, 6]),
        ((1,), "read", 0, [-4, -5]),
        ((1,), "write", 1, [8, 10]),
    ]
    steps = [access.step for access in trace]
    assert steps[:2] == steps[2:]
    assert 0 < steps[0] < steps[1]
    lines, start = inspect.getsourcelines(copy_blocks.function)
    assert {access.span.line for access in trace if access.span} == {start + len(lines) - 1}


def test_the_trace_of_a_failed_run_ends_before_the_fault() -> None:
    trace = Trace()
    with pytest.raises(ShapeError), checking(BOUNDS, trace=trace):
        copy_blocks[3](floats(10), zeros(12), 5)
    assert [(access.program, access.kind) for access in trace] == [
        ((0,), "read"),
        ((0,), "write"),
        ((1,), "read"),
        ((1,), "write"),
    ]
