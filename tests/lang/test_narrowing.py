"""What a function does for sizes as numbers, it does in tiers and for sizes that change: the same result or error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.errors import ShapeError
from tessera.metatracing import MetaTracingRuntime

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[[Any, Any], Any]


@kernel
def _added(a: Any, b: Any):
    return tile.load(a) + tile.load(b)


def _loop(x: Any, y: Any) -> Any:
    total = x * 0.0
    for place in range(x.shape[0]):
        total = total + y[place]
    return total


def _halves(x: Any, y: Any) -> Any:
    first, second = ts.split(x, 2, axis=0)
    return first + second


def _with_an_int(x: Any, y: Any) -> Any:
    if not isinstance(x.shape[0], int):
        raise TypeError("a size is an int")
    return x * y


def _asserting(x: Any, y: Any) -> Any:
    assert x.shape[0] == y.shape[0], "rows"
    return x + y


def _asked_before(x: Any, y: Any) -> Any:
    rows = x.shape[0]
    scale = 2.0 if rows > 3 else 3.0
    return ts.concat([x, x], axis=0)[rows:] * scale


def _counted(x: Any, y: Any) -> Any:
    rows: Array = np.arange(x.shape[0], dtype=np.float32)
    return x * rows[:, None]


_LISTED: Any = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
_FACTORS = {4: 2.0, 6: 3.0}

FUNCTIONS: dict[str, Function] = {
    "a slice that begins at another's size": lambda x, y: ts.concat([x, y], axis=0)[x.shape[0] :],
    "a slice after a question": _asked_before,
    "a slice from both ends": lambda x, y: x[1 : x.shape[0] - 1] * y[1:-1],
    "the last rows": lambda x, y: x[-3:],
    "every other row": lambda x, y: x[::2] + 1.0,
    "backwards": lambda x, y: x[::-1],
    "rows of another": lambda x, y: x[: y.shape[0]] + 0.0,
    "fewer of both": lambda x, y: x[: min(x.shape[0], y.shape[0])] + y[: min(x.shape[0], y.shape[0])],
    "at least one": lambda x, y: x[: max(1, x.shape[0] - 3)] + 0.0,
    "one row": lambda x, y: x[4] + 0.0,
    "the last row": lambda x, y: x[x.shape[0] - 1] + 0.0,
    "pairs": lambda x, y: ts.reshape(x, (2, -1)),
    "half as many": lambda x, y: ts.reshape(x, (x.shape[0] // 2, 2, x.shape[1])),
    "in threes": lambda x, y: ts.sum(ts.reshape(x, (-1, 3)), axis=0),
    "turned": lambda x, y: ts.reshape(x.T, (x.shape[1] * 2, -1)),
    "in halves": _halves,
    "odd or even": lambda x, y: x[: x.shape[0] // 2] if x.shape[0] % 2 == 0 else x[1:],
    "one beside the other": lambda x, y: x + y,
    "stacked": lambda x, y: ts.stack([x, y], axis=0),
    "padded": lambda x, y: ts.pad(x, ((1, 2), (0, 0))),
    "rolled": lambda x, y: ts.concat([x[2:], x[:2]], axis=0),
    "repeated": lambda x, y: ts.concat([x] * x.shape[0], axis=0),
    "a product": lambda x, y: x.T @ y,
    "a loop": _loop,
    "a number": lambda x, y: x * float(int(x.shape[0])),
    "a root": lambda x, y: x / x.shape[0] ** 0.5,
    "in a dictionary": lambda x, y: x * _FACTORS.get(x.shape[0], 1.0),
    "in a set": lambda x, y: x * (2.0 if x.shape[0] in {4, 6} else 1.0),
    "in a list": lambda x, y: x * _LISTED[x.shape[0] - 1],
    "as text": lambda x, y: x * float(f"{x.shape[0]}"),
    "an array of NumPy": _counted,
    "an int": _with_an_int,
    "an assertion": _asserting,
    "a kernel": _added,
}
SHAPES = [((5, 3), (5, 3)), ((6, 3), (6, 3)), ((6, 3), (4, 3)), ((4, 3), (4, 3)), ((1, 3), (5, 3)), ((0, 3), (0, 3))]


def _outcome(called: Function, arrays: Sequence[Any]) -> tuple[type | None, Any]:
    try:
        return None, called(*arrays).numpy()
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


def _check(name: str, tiers: Any, shapes: Sequence[Any]) -> None:
    function, random = FUNCTIONS[name], np.random.default_rng(0)
    jitted = ts.jit(function, tiers=tiers)
    for shape in shapes:
        given: list[Array] = [random.standard_normal(one, np.float32) for one in shape]
        arrays = [ts.asarray(one) for one in given]
        kind, expected = _outcome(ts.jit(function), arrays)
        found_kind, found = _outcome(jitted, arrays)
        assert found_kind is kind, (shape, found)
        if kind is None:
            assert found.shape == expected.shape
            assert np.allclose(found, expected, atol=1e-5, equal_nan=True)
        else:
            assert found == expected


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_as_for_numbers(name: str) -> None:
    """Sizes that change from call to call, and tiers, where they are open from the first call on."""
    with knobs.interpret.using(True):
        for tiers in ("off", "auto"):
            _check(name, tiers, SHAPES)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_for_numbers_in_machine_code(name: str) -> None:
    runtime = MetaTracingRuntime()
    for tiers in ("off", "auto", runtime):
        _check(name, tiers, SHAPES)


def test_in_machine_code() -> None:
    _check("a slice that begins at another's size", "auto", SHAPES[:3])
    _check("a slice after a question", MetaTracingRuntime(), SHAPES[:3])


def test_only_the_sizes_become_numbers_that_have_to(caplog: pytest.LogCaptureFixture) -> None:
    def cut(x: Any, y: Any) -> Any:
        return _asked_before(x, y) + ts.sum(y, axis=0)

    with knobs.interpret.using(True), knobs.logs.using("recompiles"):
        jitted = ts.jit(cut, tiers="auto")
        jitted(ts.ones((5, 3)), ts.ones((7, 3)))
        assert "cut is traced with _0_0 as numbers: for sizes in general, slice" in caplog.text
        for rows in (8, 9, 10):
            jitted(ts.ones((5, 3)), ts.ones((rows, 3)))
        explained = jitted.explain()
        assert explained.compilations == 1  # of any number of rows of the second
        assert "with _0_0 as numbers: for sizes in general, slice" in str(explained)
        assert jitted(ts.ones((6, 3)), ts.ones((7, 3))).shape == (6, 3)
        assert jitted.explain().compilations == 2


def test_a_mistake_is_told_as_without_tiers() -> None:
    def wrong(x: Any, y: Any) -> Any:
        return ts.reshape(x, (x.shape[0] + 1, -1)) + y

    x, y = ts.ones((5, 3)), ts.ones((5, 3))
    messages: list[str] = []
    for tiers in ("off", "auto"):
        with pytest.raises(ShapeError) as found:
            ts.jit(wrong, tiers=tiers)(x, y)
        messages.append(found.value.message)
        assert found.value.span is not None
        assert found.value.span.file == __file__
    assert messages[0] == messages[1]
    assert "_0_0" not in messages[0]
