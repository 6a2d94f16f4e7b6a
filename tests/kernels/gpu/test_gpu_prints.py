"""What kernels print on a GPU: the interpreter's text, from launches, graphs and programs, before what went wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import printing_kernels as shown
import pytest
from printing_kernels import small_numbers, text_of

import tessera as ts
from tessera import CompileError, DType, bf16, f16, f32, knobs
from tessera.dtypes.types import ALL
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.runtime.cuda import Graph, Stream, synchronize
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import settings, settings_on

pytestmark = pytest.mark.gpu

MANY = (4, 40, 40)
"""An array of 40 program instances of `halves`, and the records of it."""
RECORDS = 60


def on_gpu(*given: Any) -> list[Any]:
    return [one.cuda() if isinstance(one, ts.Tensor) else one for one in given]


def both(call: Any, *given: Any) -> tuple[str, str]:
    """The text of the interpreter and that of the GPU, which give the same results."""
    # They may be changed in place.
    there = on_gpu(*given)
    expected, one = text_of(call, *given, backend="interpreter")
    found, other = text_of(call, *there)
    if one is not None:
        assert np.array_equal(one.numpy(), other.cpu().numpy(), equal_nan=True)
    return expected, found


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gpus_print_what_the_interpreter_prints(dtype: DType) -> None:
    for shape in ((7, 5), (1, 1), (2, 9, 33)):
        expected, found = both(shown.everything, small_numbers(shape, dtype), 2, 0.1, True)
        assert found == expected


def test_blocks_print_in_the_order_of_program_instances() -> None:
    x = small_numbers(MANY, f32)
    expected, found = both(shown.halves, x)
    assert found == expected
    given = x.cuda()
    for _ in range(20):
        assert text_of(shown.halves, given)[0] == expected
    # More program instances than run at a time.
    x = small_numbers((5000, 4, 8), f32)
    expected, found = both(shown.halves, x)
    assert found == expected


@pytest.mark.parametrize("dtype", [bf16, f16, f32], ids=str)
@pytest.mark.parametrize("kernel", [shown.products, shown.sums], ids=["operands", "sums"])
@pytest.mark.parametrize("shape", [(128, 128, 64), (100, 70, 50)])
def test_pipelined_products_print_their_sums(kernel: Kernel, shape: tuple[int, int, int], dtype: DType) -> None:
    """With rows that are aligned, which would be warp-specialized without the prints, and others."""
    rows, depth, columns = shape
    a, b = small_numbers((rows, depth), dtype), small_numbers((depth, columns), dtype, seed=1)
    form = kernel[2, 2]
    expected, _ = text_of(form, a, b, ts.zeros((rows, columns)), backend="interpreter")
    c = ts.zeros((rows, columns), device="cuda")
    found, _ = text_of(form, *on_gpu(a, b), c)
    assert found == expected
    product = a.numpy().astype(np.float32) @ b.numpy().astype(np.float32)
    assert np.array_equal(c.cpu().numpy(), product)
    if shape == (128, 128, 64) and dtype is not f32:
        assert "it prints" in form.explain()


def test_loops_print_as_often_as_they_run() -> None:
    for limit in (0, 1, 5, 64):
        expected, found = both(shown.until, ts.ones((8,)), limit)
        assert found == expected


def test_a_full_buffer_says_how_much_is_missing() -> None:
    x = small_numbers(MANY, f32)
    expected, whole = text_of(shown.halves, x, backend="interpreter")
    given = x.cuda()
    for size in (0, 15, 16, 700, 10_000, 20_000):
        found, result = text_of(shown.halves, given, print_buffer=size)
        *lines, last = found.splitlines()
        lost = int(last.split()[1].replace(",", ""))
        assert last == f"… {lost:,} more records of halves in {size:,} bytes: raise TESSERA_PRINT_BUFFER"
        assert np.array_equal(result.cpu().numpy(), whole.numpy())
        kept = [line for line in lines if line.endswith("even") or " rows " in line]
        assert len(kept) == RECORDS - lost
        left = iter(expected.splitlines())
        assert all(line in left for line in lines)
    assert text_of(shown.halves, given)[0] == expected


def test_what_was_printed_comes_before_what_went_wrong() -> None:
    x = small_numbers((12, 3), f32).cuda()

    def fails() -> None:
        with pytest.raises(CompileError, match="too far"):
            shown.bounded(x, 2)

    for _ in range(2):
        assert text_of(fails)[0] == "[0] before 0\n[1] before 1\n[2] before 2\n"
    assert text_of(shown.bounded, x, 3)[0] == "[0] before 0\n[1] before 1\n[2] before 2\n"


def test_checks_are_not_about_records() -> None:
    x = small_numbers((9, 4), f32).cuda()
    with knobs.checks.using("bounds,nan"):
        found, _ = text_of(shown.halves, x, print_buffer=0)
    assert "5 more records of halves" in found


def test_launches_on_streams_and_threads_have_buffers_of_their_own() -> None:
    x = small_numbers(MANY, f32)
    expected, _ = text_of(shown.halves, x, backend="interpreter")
    given = x.cuda()
    synchronize()

    def call(_: int) -> None:
        with Stream():
            shown.halves(given)

    def calls() -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(call, range(8)))

    text, _ = text_of(calls)
    assert sorted(text.splitlines()) == sorted(expected.splitlines() * 8)


def test_graphs_print_at_each_replay() -> None:
    x, other = small_numbers((9, 4), f32), small_numbers((9, 4), f32, seed=1)
    texts = [text_of(shown.halves, one, backend="interpreter")[0] for one in (x, other)]
    given, changed = on_gpu(x, other)
    shown.halves(given)

    def record() -> Graph:
        with Graph() as graph:
            shown.halves(given)
        return graph

    text, graph = text_of(record)
    assert text == ""
    for _ in range(3):
        assert text_of(graph.replay)[0] == texts[0]
    graph.update((given, changed))
    assert text_of(graph.replay)[0] == texts[1]


def test_jitted_functions_print_what_their_kernels_print() -> None:
    """Every call prints, in order: also where two are alike, and where nobody uses the result."""

    @ts.jit
    def layer(x: Any) -> Any:
        ts.debug_print("before", x[0, 0])
        shown.halves(x)
        y = shown.halves(x * 2.0)
        y = shown.halves(y)
        ts.debug_print("after", y[0, 0])
        return y - 1.0

    x = small_numbers((9, 4), f32)
    expected, found = both(layer, x)
    assert found == expected
    assert found.count("[0] rows") == 3
    given = x.cuda()
    for _ in range(3):
        assert text_of(layer, given)[0] == expected


def test_loops_of_functions_print_in_each_iteration() -> None:
    @ts.jit
    def repeated(x: Any, count: Any) -> Any:
        _, found = ts.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, shown.halves(s[1])), (count, x))
        return found

    for count in (0, 1, 3):
        expected, found = both(repeated, small_numbers((9, 4), f32), ts.asarray(np.array(count)))
        assert found == expected


def test_tiers_print_each_call_once() -> None:
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False))
    x = small_numbers((9, 4), f32)
    expected, _ = text_of(shown.halves, x, backend="interpreter")
    tiered, given = runtime.tiered(shown.halves), x.cuda()

    def calls() -> None:
        for _ in range(40):
            tiered(given)

    assert text_of(calls)[0] == expected * 40
    runtime.close()


def test_kernels_that_print_nothing_are_not_waited_for() -> None:
    x = small_numbers((9, 4), f32).cuda()
    text, found = text_of(shown.silent, x)
    assert text == ""
    assert np.array_equal(found.cpu().numpy(), 2 * x.cpu().numpy())
    here = settings()
    assert here is not None
    words: list[int] = []
    for one in (shown.silent, shown.halves):
        program, _ = one.program_for([x], {}, settings_on(x.device, here))
        assert program.executable is not None
        assert program.executable.plan.device is not None
        words.append(program.executable.plan.device.report_word)
    assert words[0] == -1
    assert words[1] >= 0
