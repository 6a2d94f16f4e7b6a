"""What kernels print in machine code of the CPU: the interpreter's text, in its order, whatever the threads do."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import printing_kernels as shown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from printing_kernels import small_numbers, text_of

import tessera as ts
from tessera import CompileError, Schedule, bf16, f32, i64, kernel, knobs, tile
from tessera.compiler.launch_plan import Plan
from tessera.dtypes.types import ALL, DType, bool_, i4
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.runtime.native import pool
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import settings as settings_now


def both(call: Any, *args: Any) -> tuple[str, str]:
    """The text of the interpreter and that of machine code, which give the same results."""
    (expected, one), (found, other) = (text_of(call, *args, backend=name) for name in ("interpreter", "cpu"))
    if one is not None:
        assert np.array_equal(one.numpy(), other.numpy(), equal_nan=True)
    return expected, found


@pytest.mark.acceptance
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(ALL),
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.integers(0, 3),
    st.sampled_from([0.5, -0.1, float("inf"), float("nan")]),
    st.booleans(),
    st.sampled_from([(1,), (3,), (4,), (5, 2)]),
)
def test_machine_code_prints_what_the_interpreter_prints(
    dtype: DType, shape: list[int], n: int, scale: float, flag: bool, block: tuple[int, ...]
) -> None:
    x = small_numbers(tuple(shape), dtype)
    expected, found = both(shown.everything.with_schedule(Schedule(block=block)), x, n, scale, flag)
    assert found == expected
    assert found.startswith("[0] rows " if len(shape) < 3 else "[0, 0] rows ")


@pytest.mark.parametrize(("optimization", "dtype"), list(enumerate([f32, bf16, i4, bool_])))
def test_printing_does_not_depend_on_how_code_is_optimized(optimization: int, dtype: DType) -> None:
    x = small_numbers((7, 5), dtype)
    with knobs.optimization.using(optimization):
        expected, found = both(shown.everything, x, 2, 0.1, True)
    assert found == expected


@kernel
def one_row(x: Any):
    row = tile.load(x)
    tile.debug_print("row", row, tile.sum(row))
    return row


def test_rows_without_other_axes_are_printed() -> None:
    expected, found = both(one_row.with_schedule(Schedule(block=(5,))), small_numbers((13,), f32))
    assert found == expected


def test_threads_print_in_the_order_of_program_instances() -> None:
    assert pool.threads() > 1
    x = small_numbers((4, 40, 40), f32)  # enough for all threads
    expected, found = both(shown.halves, x)
    assert found == expected
    for _ in range(3):
        assert text_of(shown.halves, x, backend="cpu")[0] == expected


def test_loops_print_as_often_as_they_run() -> None:
    for limit in (0, 1, 5, 64):
        x = np.ones(8, np.float32)
        expected, _ = text_of(shown.until, x.copy(), limit, backend="interpreter")
        found, _ = text_of(shown.until, x, limit, backend="cpu")
        assert found == expected
        assert len(found.splitlines()) == max(0, limit - 1).bit_length()


def test_products_print_their_sums() -> None:
    a, b = small_numbers((100, 70), f32), small_numbers((70, 50), f32, seed=1)
    texts: list[str] = []
    for backend in ("interpreter", "cpu"):
        c = np.zeros((100, 50), np.float32)
        texts.append(text_of(shown.products[2, 2], a, b, c, backend=backend)[0])
        assert np.array_equal(c, a.numpy() @ b.numpy())
    assert texts[0] == texts[1]


# Buffers


def records_of(text: str) -> list[str]:
    """The records of `halves`, whole."""
    return [f"[{part}" for part in text.split("\n[") if part]


def test_a_full_buffer_says_how_much_is_missing() -> None:
    x = small_numbers((4, 40, 40), f32)
    expected, whole = text_of(shown.halves, x, backend="cpu")
    all_of_them = expected.splitlines()
    count = len(records_of(expected))
    for size in (0, 31, 32, 700, 10_000, 20_000):
        found, result = text_of(shown.halves, x, backend="cpu", print_buffer=size)
        *lines, last = found.splitlines()
        lost = int(last.split()[1].replace(",", ""))
        assert last == f"… {lost:,} more records of halves in {size:,} bytes: raise TESSERA_PRINT_BUFFER"
        assert np.array_equal(result.numpy(), whole.numpy())  # nothing is written but records
        kept = [line for line in lines if line.endswith("even") or " rows " in line]
        assert len(kept) == count - lost
        # Those that are there are whole, and in order.
        left = iter(all_of_them)
        assert all(line in left for line in lines)


def test_a_buffer_that_is_large_enough_says_nothing() -> None:
    x = small_numbers((4, 40, 40), f32)
    expected, _ = text_of(shown.halves, x, backend="interpreter")
    found, _ = text_of(shown.halves, x, backend="cpu", print_buffer="64MiB")
    assert found == expected


def test_the_buffer_is_that_of_the_call() -> None:
    x = small_numbers((4, 4), f32)
    for size, lines in ((0, 1), (1 << 16, 5), (0, 1)):
        with knobs.print_buffer.using(size):
            assert len(text_of(shown.halves, x, backend="cpu")[0].splitlines()) == lines


# What is around


def test_what_was_printed_comes_before_what_went_wrong() -> None:
    x = small_numbers((12, 3), f32)

    def fails() -> str:
        with pytest.raises(CompileError, match="too far"):
            shown.bounded(x, 2)
        return "told"

    text, told = text_of(fails, backend="cpu")
    assert (text, told) == ("[0] before 0\n[1] before 1\n[2] before 2\n", "told")


def test_kernels_that_print_run_in_machine_code(compiles: list[str], caplog: pytest.LogCaptureFixture) -> None:
    x, form = small_numbers((9, 4), f32), shown.halves.with_schedule(Schedule(block=(6,)))
    with knobs.logs.using("fallbacks"):
        first, _ = text_of(form, x)
        assert text_of(form, x)[0] == first
    assert compiles == ["halves"]
    assert not caplog.records


def plan_of(kernel: Kernel) -> Plan:
    """The plan of a kernel that is compiled for rows of four numbers."""
    with knobs.backend.using("cpu"):
        here = settings_now()
        assert here is not None
        program, _ = kernel.program_for([small_numbers((9, 4), f32)], {}, here)
    assert program.executable is not None
    return program.executable.plan


def test_plans_on_the_disk_know_what_is_printed() -> None:
    plan = plan_of(shown.halves)
    assert [one.label for one in plan.prints] == ["even", "rows"]
    assert [[dtype for dtype, _ in one.values] for one in plan.prints] == [[], [i64, f32]]
    assert Plan.decoded(json.loads(json.dumps(plan.encoded()))) == plan


def test_kernels_that_print_nothing_have_no_buffer() -> None:
    plan = plan_of(shown.silent)
    assert (plan.prints, plan.prints_word) == ((), -1)


def test_python_threads_that_print_have_buffers_of_their_own() -> None:
    x = small_numbers((4, 40, 40), f32)
    expected, _ = text_of(shown.halves, x, backend="interpreter")

    def calls() -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(shown.halves, [x] * 8))

    text, _ = text_of(calls)
    assert sorted(text.splitlines()) == sorted(expected.splitlines() * 8)


@kernel
def moved(x: Any, y: Any):
    rows = tile.load(x)
    tile.debug_print("rows", rows)
    tile.store(y, rows + 1.0)


def test_arrays_that_overlap_print_once() -> None:
    x = np.arange(8, dtype=np.float32)
    for _ in range(2):
        expected, _ = text_of(moved, x.copy(), np.zeros_like(x), backend="interpreter")
        assert text_of(moved, x, x, backend="cpu")[0] == expected


# Functions and tiers


def test_jitted_functions_print_what_their_kernels_print() -> None:
    """Every call prints, in order: also where two are alike, and where nobody uses the result."""
    x = small_numbers((9, 4), f32)

    @ts.jit
    def layer(x: Any) -> Any:
        ts.debug_print("before", x[0, 0])
        shown.halves(x)
        y = shown.halves(x)
        for _ in range(2):
            y = shown.halves(y)
        ts.debug_print("after", y[0, 0])
        return y - 1.0

    expected, found = both(layer, x)
    assert found == expected
    alone, _ = text_of(shown.halves, x, backend="interpreter")
    assert found.splitlines()[0].startswith("before ")
    assert found.splitlines()[-1].startswith("after ")
    assert len(found.splitlines()) == 2 + 4 * len(alone.splitlines())
    assert text_of(layer, x, backend="cpu")[0] == expected


def test_loops_of_functions_print_in_each_iteration() -> None:
    @ts.jit
    def repeated(x: Any, count: Any) -> Any:
        _, found = ts.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, shown.halves(s[1])), (count, x))
        return found

    x = small_numbers((9, 4), f32)
    for count in (0, 1, 3):
        expected, found = both(repeated, x, ts.asarray(np.array(count)))
        assert found == expected
        assert found.count("[0] rows") == count


def test_functions_tell_of_full_buffers() -> None:
    @ts.jit
    def doubled(x: Any) -> Any:
        return shown.halves(x)

    found, _ = text_of(doubled, small_numbers((8, 4), f32), backend="cpu", print_buffer=0)
    assert found.startswith("… 3 more records of halves")


@pytest.mark.parametrize("is_jitted", [False, True], ids=["kernel", "function"])
def test_tiers_print_each_call_once(is_jitted: bool) -> None:
    """In every tier: in the interpreter, compiled, and specialized, while others compile and are compared."""
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False))
    x = small_numbers((9, 4), f32)
    expected, _ = text_of(shown.halves, x, backend="interpreter")

    @ts.jit(tiers=runtime)
    def function(x: Any) -> Any:
        return shown.halves(x)

    tiered = function if is_jitted else runtime.tiered(shown.halves)

    def calls() -> None:
        for _ in range(40):
            tiered(x)

    assert text_of(calls)[0] == expected * 40
    runtime.close()


# What stays with the interpreter


@kernel
def stopping(x: Any):
    tile.debug_print("x", tile.load(x))
    tile.breakpoint(tile.load(x))
    return tile.load(x)


def test_breakpoints_stay_with_the_interpreter() -> None:
    with knobs.backend.using("cpu"), pytest.raises(CompileError, match="stops in a debugger") as caught:
        stopping(np.ones(3, np.float32))
    assert caught.value.span is not None
    assert "TESSERA_INTERPRET=1" in (caught.value.hint or "")
