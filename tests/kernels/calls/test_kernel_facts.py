"""Kernels compiled for what their arguments are: right answers for all others, exact guards, and the disk."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import library as lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import CompileError, Tile, f32, kernel, knobs, tile, verify
from tessera.targets.cpu.compile import compile_kernel
from tessera.tile.calls import compiling
from tessera.tile.calls import settings as kernel_settings
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.guards import Ask, Guard
from tessera.tile.calls.program_cache import MOST_SPECIAL
from tessera.transforms.core.facts import Facts

Array = np.ndarray[Any, np.dtype[Any]]
pytestmark = pytest.mark.usefixtures("compiles")


def guards(made: Any, *args: Any, **kwargs: Any) -> list[str]:
    """What the program for these arguments depends on."""
    chosen = kernel_settings.settings()
    assert chosen is not None
    program, _ = made.program_for(args, kwargs, chosen)
    found = list(map(str, program.guards))
    # Machine code may depend on more than the tile program does: what is known to lie inside needs no tests.
    assert set(asked(made, *args, **kwargs)) <= set(found)
    return found


def asked(made: Any, *args: Any, **kwargs: Any) -> list[str]:
    """What the tile program for these arguments depends on."""
    return list(map(str, made.lower(*args, **kwargs).guards))


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def fresh(made: Any) -> Any:
    """The same kernel, without the programs that other tests have made."""
    return kernel(made.function)


@kernel
def row_sums(x: Any, scale: float):
    """The sums of rows, a block of columns at a time: it needs the number of columns, and nothing of the rows."""
    here = tile.context()
    total = tile.zeros((here.m,))
    for col in tile.range(0, x.shape[1], here.n):
        total = total + tile.sum(tile.load(x, at=(here.row_start, col), shape=(here.m, here.n)))
    return total * scale


def check_sums(made: Any, x: Array, scale: float) -> None:
    assert np.allclose(made(x, scale).numpy(), x.sum(1) * np.float32(scale), rtol=1e-5, atol=1e-5)


def test_answers_are_right_for_arguments_that_changed(compiles: list[str]) -> None:
    made = fresh(row_sums).assume("x.size[1]", "scale")
    x = numbers(70, 100)
    check_sums(made, x, 2.0)
    assert guards(made, x, 2.0) == ["arg0.size[1] = 100", "arg1 = 2.0"]
    # Rows and strides may change; what is guarded makes another program each.
    check_sums(made, x[:33], 2.0)
    check_sums(made, np.asfortranarray(x), 2.0)
    check_sums(made, x[::-2], 2.0)
    assert len(compiles) == 1
    check_sums(made, x, 3.0)
    check_sums(made, x[:, ::2], 2.0)
    check_sums(made, x[:, :0], 2.0)
    check_sums(made, numbers(70, 64), -1.0)
    assert len(compiles) == 5
    everything = made.assume("sizes", "strides", "values")
    for array, scale in itertools.product((x, x[:64, ::2], x[:, :0], np.asfortranarray(x)), (2.0, 3.0, -1.0)):
        check_sums(made, array, scale)
        check_sums(everything, array, scale)


@kernel
def batched(x: Any, y: Any, a: float):
    here = tile.context()
    tile.store(here.matrix(y), tile.load(x) * a, at=(here.row_start, 0))


def test_strides_are_guarded_where_they_are_asked_for(compiles: list[str]) -> None:
    made = fresh(batched).assume("x.stride[1]", "x.stride[2]")
    x = numbers(3, 20, 8)

    def check(given: Array) -> None:
        y = np.zeros(given.shape, np.float32)
        made(given, y, 2.0)
        assert np.array_equal(y, given * 2)

    check(x)
    assert guards(made, x, x, 2.0) == ["arg0.size[2] = 8", "arg0.stride[1] = 8", "arg0.stride[2] = 1"]
    check(numbers(6, 20, 8)[::2])
    check(numbers(2, 5, 8))
    assert len(compiles) == 1
    check(numbers(3, 20, 16)[:, :, ::2])
    check(x[:, :, ::-1])
    check(numbers(3, 8, 20).swapaxes(1, 2))
    check(np.broadcast_to(x[:, :1], x.shape))
    assert len(compiles) == 5
    assert guards(made, x[:, :, ::-1], x, 2.0) == ["arg0.size[2] = 8", "arg0.stride[1] = 8", "arg0.stride[2] = -1"]


def test_results_are_contiguous_and_need_no_guards() -> None:
    @kernel
    def doubled(x: Any):
        return tile.load(x) * 2

    x = numbers(2, 3, 5, 4)
    # Only the strides that depend on sizes are left.
    assert str(doubled.assume("strides").lower(x).module).count("tile.stride") == 2
    assert guards(doubled.assume("strides"), x) == [
        "arg0.size[3] = 4",
        *[f"arg0.stride[{axis}] = {stride}" for axis, stride in enumerate((60, 20, 4, 1))],
    ]
    assert np.array_equal(doubled.assume("strides")(x).numpy(), x * 2)


def test_a_fact_that_is_not_asked_is_no_guard() -> None:
    x = numbers(70, 100)
    assert asked(row_sums.assume(), x, 2.0) == ["arg0.size[1] = 100"]
    assert asked(row_sums.assume("x.size[0]", "strides"), x, 2.0) == []
    assert guards(row_sums.assume("scale"), x, 2.0) == ["arg1 = 2.0"]
    assert asked(lib.saxpy.assume("sizes", "strides"), x[0], x[0], 2.0) == []

    @kernel
    def chosen(x: Any, flag: bool, a: float, b: float, unused: Any):
        return tile.load(x) * (a if flag else b)

    made = chosen.assume("values", "unused.size[0]", "unused.stride[1]")
    assert guards(made, x[0], True, 2.0, 3.0, x) == ["arg1 = true", "arg2 = 2.0"]
    assert guards(made, x[0], False, 2.0, 3.0, x) == ["arg1 = false", "arg3 = 3.0"]
    for flag, a, b in itertools.product((True, False), (2.0, 4.0), (3.0, 5.0)):
        assert np.array_equal(made(x[0], flag, a, b, x).numpy(), x[0] * (a if flag else b))


def test_the_facts_given_to_the_compiler_come_back_as_guards() -> None:
    instance = row_sums.lower(numbers(5, 6), 2.0)
    given_ = Facts.parse("arg0.size[0] = 5", "arg0.size[1] = 6", "arg0.stride[1] = 1", "arg1 = 2.0")
    program = compile_kernel(instance.module, instance.name, facts=given_)
    assert Facts.parse("arg0.size[1] = 6", "arg1 = 2.0") <= program.guards <= given_
    assert "apply-facts" in program.seconds
    # The guards are all that it took: with them alone the code is the same.
    again = compile_kernel(instance.module, instance.name, facts=program.guards)
    assert (again.image, again.guards) == (program.image, program.guards)
    general = compile_kernel(instance.module, instance.name)
    assert general.guards == Facts()
    assert general.image != program.image


@kernel
def divided(x: Any, by: float):
    return tile.load(x) / by


def test_numbers_are_told_apart_exactly(compiles: list[str]) -> None:
    made = fresh(divided).assume("by")
    one = ts.ones(3)
    for _ in range(2):
        for by, expected in [(0.0, np.inf), (-0.0, -np.inf), (2.0, 0.5), (np.inf, 0.0), (float("nan"), np.nan)]:
            assert np.array_equal(made(one, by).numpy(), np.full(3, expected, np.float32), equal_nan=True), by
    # There is none for NaN alone, and what serves it serves others.
    assert len(compiles) == 5
    assert guards(made, one, float("nan")) == []
    assert guards(made, one, -0.0) == ["arg1 = -0.0"]
    assert made(one, 8.0).tolist() == [0.125] * 3
    assert len(compiles) == 5


def test_types_of_numbers_are_told_apart() -> None:
    @kernel
    def plus(x: Any, n: Any):
        return tile.load(x) + tile.cast(n, f32)

    made = plus.assume("values")
    for _ in range(2):
        for n in (1, 1.0, True, 0, False, 0.0, 1 << 40):
            assert made(ts.zeros(2), n).tolist() == [float(n)] * 2
    with pytest.raises(ts.DtypeError, match="expected a number of i64"):
        made(ts.zeros(2), 1 << 64)
    with pytest.raises(ts.DtypeError, match="expected a number of i64"):
        made(ts.zeros(2), 1 << 2000)


@pytest.mark.acceptance
def test_after_eight_programs_the_general_one_serves_the_rest(compiles: list[str], slow_calls: list[Any]) -> None:
    general = fresh(divided)
    made, x = general.assume("values"), ts.ones(3)
    for by in range(1, 20):
        assert made(x, float(by)).numpy()[0] == np.float32(1) / np.float32(by)
    assert MOST_SPECIAL == 8
    assert len(compiles) == MOST_SPECIAL + 1
    assert guards(made, x, 8.0) == ["arg1 = 8.0"]
    assert made.program_for((x, 9.0), {}, kernel_settings.settings())[0].guards == ()
    # The first eight, and the first of the others; from then on all numbers are served quickly.
    assert len(slow_calls) == MOST_SPECIAL + 1
    assert general(x, 30.0).numpy()[0] == np.float32(1) / np.float32(30)
    assert len(compiles) == MOST_SPECIAL + 1
    sized = fresh(row_sums).assume("sizes")
    for width in range(1, 12):
        check_sums(sized, numbers(4, width), 1.0)
    assert len(compiles) == 2 * (MOST_SPECIAL + 1)


def test_calls_stay_quick(slow_calls: list[Any]) -> None:
    made, x = fresh(row_sums).assume("sizes", "strides", "values"), ts.asarray(numbers(9, 4))
    for _ in range(3):
        for scale in (1.0, 2.0):
            check_sums(made, x.numpy(), scale)
            made(x, scale)
            made(x=x, scale=scale)
    assert len(slow_calls) == 4


def test_what_objects_hold() -> None:
    @kernel
    def joined(x: Any, pair: Any):
        here = tile.context()
        total = tile.zeros((here.m,))
        for _ in tile.range(0, pair.other.shape[0], here.n):
            total = total + tile.load(x) * pair.factor
        return total

    x, made = ts.ones(4), joined.assume("pair.factor", "pair.other.size[0]")

    def pair(count: int, factor: float) -> Any:
        return SimpleNamespace(other=ts.ones(count), factor=factor)

    assert guards(made, x, pair(65, 3.0)) == ["arg1.size[0] = 65", "arg2 = 3.0"]
    for _ in range(2):
        for count, factor in ((65, 3.0), (64, 3.0), (65, 2.0), (0, 1.0), (200, 2.0)):
            assert made(x, pair(count, factor)).tolist() == [-(-count // 64) * factor] * 4
    with pytest.raises(CompileError, match=r"joined cannot assume 'pair.factor': pair.factor is neither an array"):
        made(x, SimpleNamespace(other=x))


def test_threads_with_different_arguments(compiles: list[str]) -> None:
    made, wrong = fresh(row_sums).assume("sizes", "values"), list[str]()

    def call(number: int) -> None:
        for iteration in range(40):
            x, scale = np.full((3, 1 + (number + iteration) % 3), 2.0, np.float32), float(iteration % 2)
            if made(x, scale).tolist() != [2.0 * x.shape[1] * scale] * 3:
                wrong.append(f"{x.shape}, {scale}")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(compiles) == 6


def test_other_forms_of_a_kernel_and_other_ways_to_run_it(compiles: list[str]) -> None:
    made = lib.gemm.assume("sizes")
    assert repr(made) == "<kernel gemm Schedule(block=(32, 32, 32)), assuming sizes>"
    assert repr(made.assume("bias.stride[0]", "sizes")).endswith(", assuming bias.stride[0], sizes>")
    a, b, bias, c = numbers(40, 20), numbers(20, 50), numbers(50), np.zeros((40, 50), np.float32)
    made[2, 2](a, b, bias, c)
    assert np.allclose(c, a @ b + bias, atol=1e-4)
    assert asked(made[2, 2], a, b, bias, c) == ["arg0.size[1] = 20"]
    c[:] = 0
    with knobs.interpret.using(True):
        made[2, 2](a, b, bias, c)
    assert np.allclose(c, a @ b + bias, atol=1e-4)

    @verify.numerics(stable=False, bounded=[-1e6, 1e6], inputs=[-100, 100])
    @kernel
    def bounded(x: Tile, scale: float) -> Tile:
        return x * scale

    compiles.clear()
    assured = bounded.assume("values")
    for scale in (1.0, 2.0, 1.0, 2.0):
        assert np.allclose(assured(a, scale).numpy(), a * scale)
    assert compiles == ["bounded", "bounded"]
    for scale in range(3, 20):
        assert np.allclose(assured(a, float(scale)).numpy(), a * scale)
    assert len(compiles) == MOST_SPECIAL + 1


def test_kernels_without_machine_code_may_assume() -> None:
    @kernel
    def cubed(x: Any, a: float):
        return tile.sum(tile.sum(tile.broadcast((tile.load(x) * a)[:, None, None], (64, 2, 3)), 1), 1)

    made = cubed.assume("sizes", "values")
    with knobs.backend.using("auto"):
        for a in (1.0, 2.0, 1.0):
            assert made(ts.ones(3), a).tolist() == [6 * a] * 3


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("size", "row_sums cannot assume 'size'"),
        ("y.size[0]", r"row_sums cannot assume 'y.size\[0\]'"),
        ("x.sizes[0]", r"row_sums cannot assume 'x.sizes\[0\]'"),
        ("x.size[-1]", r"row_sums cannot assume 'x.size\[-1\]'"),
        ("", "row_sums cannot assume ''"),
        (3, "row_sums cannot assume 3"),
    ],
)
def test_words_that_mean_nothing_are_refused(what: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        row_sums.assume("sizes", what)
    each = "and of x, scale as of x: x.size[0], x.stride[0], or x where it is a number"
    assert caught.value.hint == f"it can assume sizes, strides, values; {each}"
    assert caught.value.span is not None
    assert "row_sums.assume" in caught.value.span.excerpt()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("x.size[2]", r"row_sums cannot assume 'x.size\[2\]': x is an array of rank 2"),
        ("x", "row_sums cannot assume 'x': x is an array of rank 2"),
        ("scale.stride[0]", r"row_sums cannot assume 'scale.stride\[0\]': scale is a number"),
        ("x.y", "row_sums cannot assume 'x.y': x.y is neither an array nor a number, but None"),
    ],
)
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_words_that_do_not_fit_the_arguments_are_refused(what: str, message: str, backend: str) -> None:
    made = row_sums.assume(what)
    with knobs.backend.using(backend), pytest.raises(CompileError, match=message) as caught:
        made(numbers(3, 4), 2.0)
    assert caught.value.hint == (
        "it can assume sizes, strides, values, x.size[0], x.size[1], x.stride[0], x.stride[1], scale"
    )
    assert caught.value.span is not None
    assert "made(numbers(3, 4), 2.0)" in caught.value.span.excerpt()


def test_static_arguments_are_known_anyway() -> None:
    with pytest.raises(CompileError, match="softcap_attention cannot assume 'cap'"):
        lib.softcap_attention.assume("cap")


# Any subset of facts.


def _attended(rows: int, size: int, layout: Layout) -> list[Any]:
    return [numbers(2, 4, rows, 16), layout(numbers(2, 2, size, 16)), layout(numbers(2, 2, size, 16)), 5 + rows % 7]


def _multiplied(rows: int, size: int, layout: Layout) -> list[Any]:
    return [layout(numbers(rows, size)), layout(numbers(size, 64)), numbers(64), np.zeros((rows, 64), np.float32)]


def _normalized(rows: int, size: int, layout: Layout) -> list[Any]:
    return [layout(numbers(3, rows, size)), numbers(size), 0.5 if rows > size else 0.25]


def _spread(array: Array) -> Array:
    """The same numbers, every other of its memory along the last axis."""
    memory = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), np.float32)
    memory[..., ::2] = array
    return memory[..., ::2]


Layout = Callable[[Array], Array]
LAYOUTS: Sequence[Layout] = (np.ascontiguousarray, np.asfortranarray, _spread)
CASES: dict[str, tuple[Any, Callable[[int, int, Layout], list[Any]], Sequence[str]]] = {
    "window_attention": (lib.window_attention, _attended, ("q", "k", "v", "window")),
    "gemm": (lib.gemm[4, 2], _multiplied, ("a", "b", "bias", "c")),
    "rmsnorm": (lib.rmsnorm, _normalized, ("x", "weight", "eps")),
}


def _words(arguments: Sequence[Any], names: Sequence[str]) -> list[str]:
    found = ["sizes", "strides", "values"]
    for name, value in zip(names, arguments, strict=True):
        if isinstance(value, np.ndarray):
            found += [f"{name}.{what}[{axis}]" for what in ("size", "stride") for axis in range(value.ndim)]
        else:
            found.append(name)
    return found


def _result(call: Any, arguments: Sequence[Any]) -> Array:
    found = call(*arguments)
    return arguments[-1] if found is None else found.numpy()


def check_subset(name: str, data: st.DataObject) -> None:
    """One kernel with a subset of facts, called with arguments of several sizes, strides and values."""
    call, make, names = CASES[name]
    words = data.draw(st.sets(st.sampled_from(_words(make(9, 9, LAYOUTS[0]), names)), min_size=1, max_size=12))
    # Some sizes fill blocks, and some do not.
    sizes = st.tuples(st.sampled_from([37, 64, 128]), st.sampled_from([21, 32, 64]), st.sampled_from(LAYOUTS))
    assumed = call.assume(*sorted(words))
    for drawn in data.draw(st.lists(sizes, min_size=2, max_size=2)):
        expected, found = _result(call, make(*drawn)), _result(assumed, make(*drawn))
        assert np.abs(found - expected).max() <= 4e-6 * np.abs(expected).max()


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", CASES)
def test_any_subset_of_facts_gives_the_same_result(name: str) -> None:
    @settings(max_examples=2)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        check_subset(name, data)

    check()


@pytest.mark.acceptance
@pytest.mark.parametrize("name", CASES)
def test_many_subsets_of_facts_give_the_same_result(name: str) -> None:
    @settings(max_examples=100)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        check_subset(name, data)

    check()


# The disk.


SCRIPT = """
import json, sys
import numpy as np
import tessera as ts
from tessera import kernel, tile

@kernel
def scaled(x, y, a: float):
    here = tile.context()
    for col in tile.range(0, x.shape[2], 16):
        block = tile.load(here.matrix(x), at=(here.row_start, col), shape=(here.m, 16))
        tile.store(here.matrix(y), block / a, at=(here.row_start, col))

words, shape, transposed, a = json.loads(sys.argv[1])
x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
x = x.swapaxes(1, 2) if transposed else x
y = np.zeros(x.shape, np.float32)
(scaled.assume(*words) if words else scaled)(x, y, a)
assert np.array_equal(y, x / np.float32(a)), (x, y)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})))
"""


Compiles = Callable[..., bool]


@pytest.fixture(name="compiles_next")
def _compiles_next(tmp_path: Path) -> Compiles:
    (tmp_path / "script.py").write_text(SCRIPT)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TESSERA_", "PYTHON"))}
    kept |= {"TESSERA_CACHE_DIR": str(tmp_path / "cache"), "OPENBLAS_NUM_THREADS": "1"}

    def compiles(words: Sequence[str], shape: Sequence[int], *, transposed: bool = False, a: float = 2.0) -> bool:
        """Whether a process must compile; the process checks its result."""
        command = [sys.executable, str(tmp_path / "script.py"), json.dumps([words, shape, transposed, a])]
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=kept).stdout
        return json.loads(output) == ["llvmlite", "xdsl"]

    return compiles


def test_the_next_process_finds_programs_with_facts(compiles_next: Compiles) -> None:
    everything, shape = ["sizes", "strides", "values"], (3, 20, 40)
    assert compiles_next(everything, shape)
    assert not compiles_next(everything, shape)
    assert compiles_next(everything, shape, a=-0.0)


@pytest.mark.acceptance
def test_the_next_process_finds_programs_with_facts_and_only_for_what_they_serve(compiles_next: Compiles) -> None:
    compiles = compiles_next
    everything, shape = ["sizes", "strides", "values"], (3, 20, 40)
    assert compiles(everything, shape)
    assert not compiles(everything, shape)
    assert compiles(everything, (5, 20, 40))
    assert compiles(everything, shape, a=0.0)
    assert compiles(everything, shape, a=-0.0)
    assert compiles(everything, (3, 40, 20), transposed=True)
    assert compiles(everything, (3, 20, 41))
    for again in (0.0, -0.0, 2.0):
        assert not compiles(everything, shape, a=again)
    assert not compiles(everything, (3, 40, 20), transposed=True)
    # What is assumed is part of the first key.
    assert compiles([], shape)
    assert compiles(["values"], shape)
    assert not compiles(["values"], (3, 7, 9))
    assert compiles(["x.size[2]"], shape)
    assert not compiles(["x.size[2]"], (5, 7, 40), a=3.0)
    assert not compiles([], (3, 7, 9), a=5.0)


def test_guards_are_kept_exactly() -> None:
    chosen = kernel_settings.settings()
    assert chosen is not None
    program, code = compiling.compiled(divided.lower(ts.ones(3), 1.0), chosen, Facts.parse("arg1 = -0.0"))
    found = GuardedKernel.decoded(program.encoded(code))
    assert found is not None
    assert found.guards == program.guards == (Guard(Ask(1, "value", 0), -0.0),)
    assert found.serves([ts.ones(3), -0.0])
    assert not found.serves([ts.ones(3), 0.0])
    assert not found.serves([ts.ones(3), 1.0])
    assert GuardedKernel.decoded(program.encoded(code).replace(b'"value"', b'"price"')) is None
