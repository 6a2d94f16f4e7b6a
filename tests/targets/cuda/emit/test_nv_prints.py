"""What kernels print on GPUs: their PTX assembles, and writes records that are the interpreter's text."""

from __future__ import annotations

import numpy as np
import printing_kernels as shown
import ptx_values
import pytest
from emulated_prints import compiled, emulated
from printing_kernels import small_numbers, text_of
from ptx_checks import check_clean, count

import tessera as ts
from tessera import DType, Schedule, bf16, f16, f32, f64, i8, knobs
from tessera.dtypes.types import bool_, f4e2m1, f8e4m3, i4
from tessera.tile.calls.function import Kernel

assert ptx_values.RULES  # what the machine can do besides products


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
@pytest.mark.parametrize(
    "dtype",
    [bf16, i8, *(pytest.param(one, marks=pytest.mark.acceptance) for one in (f32, f64, f16, bool_, i4))],
    ids=str,
)
def test_gpus_print_what_the_interpreter_prints(dtype: DType, arch: str) -> None:
    given = (small_numbers((7, 5), dtype), 2, 0.1, True)
    expected, result = text_of(shown.everything, *given, backend="interpreter")
    found = emulated(shown.everything, *given, arch=arch)
    assert found.text == expected
    assert np.array_equal(found.results[0], result.numpy())
    check_clean(found.made.code.decode(), arch)


@pytest.mark.acceptance
@pytest.mark.parametrize("dtype", [f8e4m3, f4e2m1], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3, 130), (2, 2, 9, 33)])
def test_shapes_of_all_kinds_are_printed(dtype: DType, shape: tuple[int, ...]) -> None:
    given = (small_numbers(shape, dtype), 1, 2.0, False)
    expected, _ = text_of(shown.everything, *given, backend="interpreter")
    assert emulated(shown.everything, *given).text == expected


@pytest.mark.acceptance
@pytest.mark.parametrize("kernel", [shown.products, shown.sums], ids=["operands", "sums"])
@pytest.mark.parametrize(("shape", "aligned"), [((128, 128, 64), True), ((100, 70, 50), False)])
def test_pipelined_products_print_their_sums(kernel: Kernel, shape: tuple[int, int, int], aligned: bool) -> None:
    """Copies are under way while records are written, and iterations of the loop are unrolled."""
    rows, depth, columns = shape
    a, b = small_numbers((rows, depth), bf16), small_numbers((depth, columns), bf16, seed=1)
    form = kernel[2, 2]
    expected, _ = text_of(form, a, b, np.zeros((rows, columns), np.float32), backend="interpreter")
    target = ts.asarray(np.zeros((rows, columns), np.float32))
    found = emulated(form, a, b, target, aligned=aligned)
    assert found.text == expected
    check_clean(found.made.code.decode(), "sm_90a")


def test_printing_kernels_take_the_portable_path_and_say_so() -> None:
    a, b = ts.empty((128, 256), bf16), ts.empty((256, 64), bf16)
    made = compiled(shown.products[2, 2], a, b, ts.empty((128, 64), f32), aligned=True)
    assert made.report.way.startswith("portable")
    (refusal,) = made.report.refusals
    assert refusal.way == "warp-specialized"
    assert refusal.reason == "it prints, which a program instance does once, with all of its rows"
    assert refusal.is_slower
    assert "debug_print" in (refusal.span.excerpt() if refusal.span is not None else "")


def test_a_full_buffer_says_how_much_is_missing() -> None:
    x = small_numbers((9, 4), f32)
    whole = emulated(shown.halves, x)
    assert whole.text == text_of(shown.halves, x, backend="interpreter")[0]
    lines = whole.text.splitlines()
    for size, lost in ((0, 5), (15, 5), (16, 4), (207, 3), (208, 2)):
        with knobs.print_buffer.using(size):
            found = emulated(shown.halves, x)
        *kept, last = found.text.splitlines()
        assert last == f"… {lost} more records of halves in {size} bytes: raise TESSERA_PRINT_BUFFER"
        left = iter(lines)
        assert all(line in left for line in kept)
        # Nothing is written but records.
        assert np.array_equal(found.results[0], whole.results[0])


def test_what_was_printed_comes_with_what_went_wrong() -> None:
    x = small_numbers((12, 3), f32)
    found = emulated(shown.bounded, x, 2)
    assert found.text == "[0] before 0\n[1] before 1\n[2] before 2\n"
    assert found.failures == ["assertion failed: too far"]
    assert emulated(shown.bounded, x, 3).failures == []


def test_checks_are_not_about_records() -> None:
    """With a buffer that is full, the views of records have no elements: nothing starts outside of an array."""
    x = small_numbers((9, 4), f32)
    with knobs.print_buffer.using(0):
        found = emulated(shown.halves, x, checks=frozenset({"bounds", "nan"}))
    assert found.failures == []
    assert "5 more records" in found.text


def test_kernels_that_print_nothing_have_no_record() -> None:
    x = small_numbers((12, 3), f32)
    form = shown.silent.with_schedule(Schedule(block=(4,)))
    made = compiled(form, x)
    assert made.plan.device is not None
    assert (made.plan.prints, made.plan.prints_word, made.plan.device.report_word) == ((), -1, -1)
    ptx = made.code.decode()
    assert count(ptx, "atom") == count(ptx, "bar.sync") == 0
    printing = compiled(shown.halves, x)
    assert printing.plan.prints_word == getattr(printing.plan.device, "report_word", None)
    assert count(printing.code.decode(), "atom.global.add.u64") == 4
