"""What a function does for sizes as numbers, it does in tiers and for sizes that change: the same result or error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
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
    for index in range(x.shape[0]):
        total = total + y[index]
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
    "fewer rows": lambda x, y: ts.reshape(x, (x.shape[0] - 5, -1)),
    "less than nothing": lambda x, y: ts.reshape(x, (-1, 3 - x.shape[0])),
    "transposed": lambda x, y: ts.reshape(x.T, (x.shape[1] * 2, -1)),
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


@pytest.mark.quick
@pytest.mark.parametrize("tiers", ["off", "auto"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_as_for_numbers(name: str, tiers: str) -> None:
    """Sizes that change from call to call, and tiers, where they are open from the first call on."""
    with knobs.interpret.using(True):
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


def test_sizes_that_stand_for_others_that_are_numbers() -> None:
    """Rows that were always those of the other array, and then a width that both are added to."""

    def met(x: Any, y: Any) -> Any:
        return (x + (y.T @ y))[x.shape[0] : x.shape[0]]

    with knobs.interpret.using(True):
        for tiers in ("off", "auto"):
            jitted = ts.jit(met, tiers=tiers)
            for count in (4, 3, 5, 6):
                assert jitted(ts.ones((count, count)), ts.ones((count, count))).shape == (0, count)


# Random functions of sizes


def _size(random: Random, depth: int = 0) -> str:
    kind = random.randrange(10 if depth < 2 else 5)
    if kind < 5:
        return ["x.shape[0]", "x.shape[0]", "y.shape[0]", "x.shape[1]", str(random.randrange(5))][kind]
    first, second = _size(random, depth + 1), _size(random, depth + 1)
    if kind >= 8:
        return f"{random.choice(['min', 'max'])}({first}, {second})"
    return f"({first} {random.choice(['+', '-', '*', '//', '%'])} {second})"


_FORMS = (
    "({a} + {b})",
    "{a}[{n}:]",
    "{a}[:{n}]",
    "{a}[{n}:{m}]",
    "ts.concat([{a}, {b}], axis=0)",
    "ts.reshape({a}, (-1, {n}))",
    "({a} * float({n}))",
    "({a} if {n} > {m} else {b})",
    "ts.sum({a}, axis=0, keepdims=True)",
    "ts.pad({a}, ((0, {n}), (0, 0)))",
    "({a} * {{3: 2.0, 5: 4.0}}.get({n}, 1.0))",
    "({a}.T @ {b})",
    "{a}[::2]",
)


def _value(random: Random, depth: int = 0) -> str:
    if depth >= 3 or random.random() < 0.15:
        return random.choice("xy")
    a, b = _value(random, depth + 1), _value(random, depth + 1)
    return random.choice(_FORMS).format(a=a, b=b, n=_size(random), m=_size(random))


def _check_random(seed: int) -> None:
    """A function of sizes, called with some: each call as by a function that is jitted for it alone."""
    random = Random(seed)
    text = _value(random)
    function: Function = eval(f"lambda x, y: {text} + 0.0", {"ts": ts})
    jitted = ts.jit(function, tiers=("auto", "off")[seed % 2])
    for _ in range(4):
        rows, width = random.choice([0, 1, 2, 3, 4, 5, 6, 8]), random.choice([2, 3, 3, 4])
        others = random.choice([rows, rows, 1, 2, 3, 5])
        arrays = [ts.ones((count, width)) for count in (rows, others)]
        kind, expected = _outcome(ts.jit(function), arrays)
        found_kind, found = _outcome(jitted, arrays)
        assert found_kind is kind, (text, rows, others, width, found, expected)
        same = found == expected if kind is not None else np.array_equal(found, expected, equal_nan=True)
        assert same, (text, rows, others, width, found, expected)


@pytest.mark.filterwarnings("ignore")
def test_random_functions_of_sizes() -> None:
    with knobs.interpret.using(True):
        for seed in range(12):
            _check_random(seed)


@pytest.mark.acceptance
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hundred", range(20))
def test_many_random_functions_of_sizes(hundred: int) -> None:
    with knobs.interpret.using(True):
        for seed in range(100 * hundred, 100 * hundred + 100):
            _check_random(seed)
