"""Tracebacks of errors: a user's frames and the message, without frames of the package, unless they are asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.errors import InternalError, TesseraWarning
from tessera.lang.jit import Jitted
from tessera.lang.tracing import primitives

PACKAGE = str(Path(ts.__file__).parent)


@pytest.fixture(autouse=True)
def _as_users_see_it() -> Generator[None]:
    with knobs.full_tracebacks.using(False), knobs.interpret.using(True):
        yield


def frames_of(error: BaseException) -> list[str]:
    """The lines of a traceback, but for that of the call below."""
    return [str(frame.line) for frame in traceback.extract_tb(error.__traceback__)][1:]


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@ts.jit
def added(x: Any) -> Any:
    return inner(x)


def inner(x: Any) -> Any:
    return x + ts.zeros((3, 3))


@ts.jit
def looked_up(x: Any) -> Any:
    names: dict[str, int] = {}
    return x * names["lost"]


@ts.jit
def negated(x: Any) -> Any:
    return -x


@ts.jit
def mapped(x: Any) -> Any:
    return ts.tree_map(grown, [x])


def grown(leaf: Any) -> Any:
    return leaf + ts.zeros((3, 3))


@kernel
def doubled(x: Any) -> Any:
    return tile.load(x) + tile.nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


X = ts.zeros((2, 2))
by_habit: Any = ts  # type checkers know which arguments there are
LONG = ts.zeros((3,))
CASES: dict[str, tuple[Callable[[], object], list[str]]] = {
    "jit": (lambda: added(X), ["added(X)", "return inner(x)", "return x + ts.zeros((3, 3))"]),
    "operator": (lambda: ts.sum(X, axis=7), ["ts.sum(X, axis=7)"]),
    "method": (lambda: X.sum(7), ["X.sum(7)"]),
    "own method": (lambda: X.reshape(7), ["X.reshape(7)"]),
    "Python's operator": (lambda: X + LONG, ["X + LONG"]),
    "maker": (lambda: ts.zeros(-1), ["ts.zeros(-1)"]),
    "conversion": (lambda: ts.asarray("x"), ['ts.asarray("x")']),
    "argument": (lambda: by_habit.sum(X, axs=7), ["by_habit.sum(X, axs=7)"]),
    "through a library": (lambda: mapped(X), ["mapped(X)", "return ts.tree_map(grown, [x])", "leaf + ts"]),
    "of the user's own": (lambda: looked_up(X), ["looked_up(X)", 'return x * names["lost"]']),
    "lowering": (lambda: added.lower(X), ["added.lower(X)", "return inner(x)", "return x + ts.zeros((3, 3))"]),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_show_the_user_s_frames(name: str) -> None:
    call, expected = CASES[name]
    error = raised(call)
    shown = frames_of(error)
    assert len(shown) == len(expected)
    assert all(part in line for part, line in zip(expected, shown, strict=True))
    assert PACKAGE not in "".join(traceback.format_exception(error))


def test_errors_of_kernels_show_the_user_s_frames() -> None:
    error = raised(lambda: doubled(X))
    assert PACKAGE not in "".join(traceback.format_tb(error.__traceback__))


def test_the_knob_shows_all_frames() -> None:
    with knobs.full_tracebacks.using(True):
        error = raised(lambda: added(X))
    assert PACKAGE in "".join(traceback.format_exception(error))


def test_calls_that_are_known_are_as_short() -> None:
    """Also where the code that was written for calls is the first to see an error."""
    assert added(ts.zeros((3, 3))).shape == (3, 3)
    for _ in range(2):
        assert len(frames_of(raised(lambda: added(X)))) == 3


def test_what_led_to_an_error_is_short_too() -> None:
    """What was raised and handled inside of the package is not shown, and what a user handled is."""

    def while_handling() -> None:
        try:
            _ = dict[str, int]()["lost"]
        except KeyError:
            X.reshape(7)

    error = raised(while_handling)
    written = "".join(traceback.format_exception(error))
    assert "KeyError: 'lost'" in written
    assert PACKAGE not in written


def test_a_fault_while_tracing_has_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "tessera.lang.tracing.planted"}
    exec("def ew(*given, **options):\n    return {}['lost']", namespace)
    monkeypatch.setattr(primitives, "ew", namespace["ew"])
    with knobs.cache_dir.using(tmp_path), pytest.raises(InternalError, match="failed in tracing: KeyError") as caught:
        negated(X)
    assert "stage: tracing" in caught.value.report
    assert "tessera/lang/jit.py" in caught.value.report  # the report has the frames that the traceback leaves out
    assert PACKAGE not in "".join(traceback.format_exception(caught.value))


def test_a_fault_of_the_code_of_calls_is_told_and_the_result_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: Any) -> None:
        raise SyntaxError("invalid syntax")

    def tripled(x: Any) -> Any:
        return x * 3.0

    monkeypatch.setattr(Jitted, "_write", broken)
    with pytest.warns(TesseraWarning, match="calls of tripled are slow: .*SyntaxError"):
        assert ts.jit(tripled)(ts.ones((2,))).tolist() == [3.0, 3.0]


def test_an_error_says_once_how_to_see_all() -> None:
    error = raised(lambda: added(X))
    assert [note for note in error.__notes__ if "TESSERA_FULL_TRACEBACKS=1" in note] == error.__notes__
    assert len(error.__notes__) == 1
    assert "TESSERA_FULL_TRACEBACKS" not in str(error)
