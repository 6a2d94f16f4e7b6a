"""Safety checks in machine code: what they catch, where they say it was, and that they change nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import library as lib
import numpy as np
import pytest

import tessera as ts
from tessera import CompileError, DtypeError, Schedule, ShapeError, TesseraError, bf16, kernel, knobs, tile
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.targets.cpu import features

Array = np.ndarray[Any, np.dtype[Any]]
LEVELS = features.up_to(features.level())
pytestmark = pytest.mark.usefixtures("compiles")


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def failure(call: Callable[[], object], checks: str = "bounds,nan") -> TesseraError:
    """The error of a call under checks. Without them there is none, and the interpreter's is of the same class."""
    call()
    with knobs.checks.using(checks), pytest.raises(TesseraError) as caught:
        call()
    both = Checks(bounds="bounds" in checks, nonfinite="nan" if "nan" in checks else False)
    with checking(both), pytest.raises(type(caught.value)) as expected:
        call()
    with knobs.checks.using(checks), knobs.interpret.using(True), pytest.raises(type(caught.value)) as again:
        call()
    assert again.value.message == expected.value.message
    assert caught.value.span == expected.value.span
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert caught.value.hint
    return caught.value


def marked(error: TesseraError) -> str:
    """The source that an error points at."""
    assert error.span is not None
    return error.span.excerpt().splitlines()[0][error.span.column + 7 : (error.span.end_column or 0) + 7]


@kernel.schedule(Schedule(block=(8,)))
def loaded_at(x: Any, y: Any, place: int):
    tile.store(y, tile.load(x, at=(place,), shape=(8,)), at=(tile.program_id(0) * 8,))


@kernel.schedule(Schedule(block=(8,)))
def stored_at(x: Any, y: Any, place: int):
    tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(place,))


@kernel.schedule(Schedule(block=(8,)))
def added_at(x: Any, y: Any, place: int):
    tile.atomic_add(y, tile.load(x, at=(0,), shape=(8,)), at=(place,))


@pytest.mark.parametrize(
    ("made", "op", "source"),
    [
        (loaded_at, "load", "tile.load(x, at=(place,), shape=(8,))"),
        (stored_at, "store", "tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(place,))"),
        (added_at, "atomic_add", "tile.atomic_add(y, tile.load(x, at=(0,), shape=(8,)), at=(place,))"),
    ],
)
@pytest.mark.parametrize("place", [20, 21, -1])
def test_accesses_out_of_bounds_are_caught(made: Any, op: str, source: str, place: int) -> None:
    x, y = numbers(20), np.zeros(20, np.float32)
    error = failure(lambda: made[2](x, y, place), "bounds")
    assert isinstance(error, ShapeError)
    assert error.message == f"tile.{op} starts outside its view, along axis 0"
    assert marked(error) == source
    # Reaching over the end is legal, and so is anything in an empty array.
    with knobs.checks.using("bounds"):
        made[2](x, y, 19)
        made[2](x[:0], y[:0], place)
    with knobs.checks.using("nan"):
        made[2](x, y, place)


def test_every_axis_is_checked_and_the_grid_too() -> None:
    @kernel.schedule(Schedule(block=(8, 8)))
    def copied(x: Any, y: Any):
        row, col = tile.program_id(0) * 8, tile.program_id(1) * 8
        tile.store(y, tile.load(x, at=(row, col), shape=(8, 8)), at=(row, col))

    x, y = numbers(20, 30), np.zeros((20, 30), np.float32)
    with knobs.checks.using("bounds"):
        copied[3, 4](x, y)
    assert np.array_equal(x, y)
    assert failure(lambda: copied[3, 5](x, y)).message == "tile.load starts outside its view, along axis 1"
    assert failure(lambda: copied[4, 4](x, y)).message == "tile.load starts outside its view, along axis 0"


@kernel
def quotients(x: Any, y: Any):
    return tile.load(x) / tile.load(y)


@kernel
def differences(x: Any):
    rows = tile.load(x)
    return rows - tile.max(rows)[:, None]


@kernel
def sums(x: Any):
    return tile.sum(tile.load(x))


@kernel
def products(x: Any, y: Any):
    return tile.dot(tile.load(x), tile.load(y, at=(0, 0), shape=(8, 8)))


@kernel
def by_number(x: Any, a: float, b: float):
    return tile.load(x) * (a / b)


def _with(shape: Sequence[int], value: float, other: float | None = None) -> Array:
    array = np.ones(shape, np.float32)
    array[2] = value
    array.reshape(-1)[-1] = array.reshape(-1)[-1] if other is None else other
    return array


@pytest.mark.parametrize(
    ("call", "title", "source"),
    [
        (lambda: quotients(_with((100,), 0.0), _with((100,), 0.0)), "div", "tile.load(x) / tile.load(y)"),
        (lambda: differences(_with((70, 5), -np.inf)), "sub", "rows - tile.max(rows)[:, None]"),
        (lambda: sums(_with((3, 5), np.inf, -np.inf)), "sum", "tile.sum(tile.load(x))"),
        (
            lambda: products(_with((70, 8), np.inf), np.zeros((8, 8), np.float32)),
            "dot",
            "tile.dot(tile.load(x), tile.load(y, at=(0, 0), shape=(8, 8)))",
        ),
        (lambda: by_number(np.ones(5, np.float32), 0.0, 0.0), "divf", "a / b"),
    ],
)
def test_a_nan_that_is_made_is_caught(call: Callable[[], Any], title: str, source: str) -> None:
    error = failure(call, "nan")
    assert isinstance(error, DtypeError)
    assert error.message == f"{title} made NaN of operands that are none"
    assert marked(error) == source
    with knobs.checks.using("bounds"):
        call()


@pytest.mark.quick(1)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_catches_both(level: str) -> None:
    with knobs.cpu_level.using(level):
        x = _with((70, 8), np.inf)
        assert failure(lambda: products(x, np.zeros((8, 8), np.float32))).message.startswith("dot made NaN")
        narrow = [ts.asarray(array).to(bf16) for array in (x, np.zeros((8, 8), np.float32))]
        assert failure(lambda: products(*narrow)).message.startswith("dot made NaN")
        y = np.zeros(20, np.float32)
        assert failure(lambda: stored_at[1](numbers(20), y, 20)).message.startswith("tile.store starts outside")


def test_a_nan_that_came_in_or_was_made_beyond_the_array_is_nobodys_fault() -> None:
    x, y = _with((100,), np.nan), np.ones(100, np.float32)

    @kernel
    def likeness(x: Any, y: Any):
        """Quotients of sums: rows beyond the array have nothing but zeros."""
        here = tile.context()
        both, first = tile.zeros((here.m,)), tile.zeros((here.m,))
        for col in tile.range(0, x.shape[1], here.n):
            place = (here.row_start, col)
            a, b = (tile.load(array, at=place, shape=(here.m, here.n)) for array in (x, y))
            both, first = both + tile.sum(a * b), first + tile.sum(a * a)
        return both / first

    with knobs.checks.using("bounds,nan"):
        assert np.array_equal(quotients(x, y).numpy(), x, equal_nan=True)
        # Beyond the last of the hundred, 0 is divided by 0.
        assert np.array_equal(quotients(y, y).numpy(), y)
        square = np.abs(numbers(50, 70)) + 1
        assert np.allclose(likeness(square, square).numpy(), 1)
        square[3] = 0
        with pytest.raises(DtypeError, match="div made NaN"):
            likeness(square, square)


@kernel
def in_order(x: Any, y: Any):
    tile.store(y, tile.sort(tile.load(x, at=(0,), shape=(20,))), at=(0,))


@pytest.mark.parametrize("interpreted", [False, True])
def test_a_nan_that_is_sorted_came_in(interpreted: bool) -> None:
    x, y = numbers(20), np.zeros(20, np.float32)
    x[2:4] = np.nan, np.inf
    with knobs.checks.using("bounds,nan"), knobs.interpret.using(interpreted):
        in_order[1](x, y)
    assert np.array_equal(y, np.sort(x), equal_nan=True)


LIBRARY: dict[str, Callable[[], Any]] = {
    "softmax": lambda: lib.softmax(numbers(67, 13)),
    "layernorm": lambda: lib.layernorm(numbers(3, 67, 13), numbers(13), numbers(13)),
    "attention": lambda: lib.attention(numbers(2, 4, 67, 13), *[numbers(2, 2, 37, 13)] * 2, mask=lib.causal),
    "alibi_attention": lambda: lib.alibi_attention(numbers(2, 4, 67, 13), *[numbers(2, 2, 37, 13)] * 2, numbers(8)),
    "mlp": lambda: lib.mlp(numbers(67, 13), numbers(13, 50), numbers(50, 13)),
    "logsumexp": lambda: lib.logsumexp(numbers(67, 100)),
}


@pytest.mark.quick(1, name=["softmax", "layernorm", "attention"])
@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize(("optimization", "bound"), [(1, 0.0), (3, 4e-6)])
def test_clean_kernels_are_as_they_were(name: str, optimization: int, bound: float, compiles: list[str]) -> None:
    """Products and sums that contract are not looked at in between; without that, every bit is the same."""
    call = LIBRARY[name]
    with knobs.optimization.using(optimization):
        expected = call().numpy()
        with knobs.checks.using("bounds,nan"):
            found = call().numpy()
            again = call().numpy()
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()
    assert np.array_equal(found, again)
    # The checked program is another one; that without checks may be there already.
    assert set(compiles) == {name}
    assert 1 <= len(compiles) <= 2


def test_what_other_program_instances_stored_stays() -> None:
    @kernel.schedule(Schedule(block=(4,)))
    def roots(x: Any, y: Any):
        place = tile.program_id(0) * 4
        tile.store(y, tile.sqrt(tile.load(x, at=(place,), shape=(4,))), at=(place,))

    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    x[5] = -1
    with knobs.checks.using("nan"), pytest.raises(DtypeError, match="sqrt made NaN"):
        roots[3](x, y)
    assert np.array_equal(y[:4], np.sqrt(x[:4]))


def test_assertions_are_told_apart_from_checks() -> None:
    @kernel
    def limited(x: Any):
        rows = tile.load(x)
        tile.assert_(rows < 5, "load starts outside its view, along axis 0")  # noqa: PT009  (a kernel's)
        return tile.sqrt(rows)

    with knobs.checks.using("bounds,nan"):
        with pytest.raises(CompileError, match="assertion failed: load starts outside its view, along axis 0"):
            limited(np.full(3, 7, np.float32))
        with pytest.raises(DtypeError, match="sqrt made NaN"):
            limited(np.full(3, -7, np.float32))


def test_checks_go_with_assumptions(compiles: list[str]) -> None:
    made = loaded_at[1].assume("sizes", "values")
    x, y = numbers(20), np.zeros(8, np.float32)
    with knobs.checks.using("bounds"):
        made(x, y, 3)
        assert np.array_equal(y, x[3:11])
        with pytest.raises(ShapeError, match="load starts outside its view"):
            made(x, y, 20)
    made(x, y, 20)
    assert compiles == ["loaded_at"] * 3


def test_words_that_are_no_checks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TesseraError, match="the knob checks expects names among bounds, nan, unwritten, separated"):
        knobs.checks.using("bounds,races")
    monkeypatch.setattr(knobs.checks, "text", "bound")
    knobs.checks.reset()
    with pytest.raises(TesseraError, match="the variable TESSERA_CHECKS expects names among bounds, nan"):
        sums(numbers(3, 4))
    monkeypatch.undo()
    knobs.checks.set("nan")
    try:
        with pytest.raises(DtypeError, match="sum made NaN"):
            sums(_with((3, 5), np.inf, -np.inf))
    finally:
        knobs.checks.reset()


def test_kernels_without_machine_code_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)

    @kernel
    def told(x: Any):
        rows = tile.load(x)
        tile.breakpoint(rows)
        return tile.sqrt(rows)

    with knobs.backend.using("auto"):
        told(-np.ones(3, np.float32))
        with knobs.checks.using("nan"), pytest.raises(DtypeError, match="sqrt makes nan"):
            told(-np.ones(3, np.float32))


SCRIPT = """
import json, sys
import numpy as np
from tessera import TesseraError, kernel, tile

@kernel
def roots(x):
    return tile.sqrt(tile.load(x))

found = None
try:
    roots(np.full(3, -1, np.float32))
except TesseraError as error:
    found = [type(error).__name__, error.message, error.span.line]
compiler = sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})
print(json.dumps([found, compiler]))
"""


def test_the_next_process_finds_checks_and_never_those_of_others(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(checks: str) -> Any:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("TESSERA_", "PYTHON"))}
        given |= {"TESSERA_CACHE_DIR": str(tmp_path / "cache"), "TESSERA_CHECKS": checks, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(tmp_path / "script.py")]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=given).stdout)

    error = ["DtypeError", "sqrt made NaN of operands that are none", 8]
    assert run("") == [None, ["llvmlite", "xdsl"]]
    assert run("nan") == [error, ["llvmlite", "xdsl"]]
    assert run("bounds") == [None, ["llvmlite", "xdsl"]]
    assert run("nan") == [error, []]
    assert run("") == [None, []]
