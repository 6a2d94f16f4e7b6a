"""Python's operators on tensors of the CPU: large ones are compiled programs, and give what the reference gives."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.lang.operators.elementwise import ROW_PROGRAMS
from tessera.lang.operators.methods import METHODS, PROPERTIES

ROWS = 130
LARGE = (ROWS, 131)  # above the knob's default
draw = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _machine_code() -> Generator[None]:
    with knobs.backend.using("cpu"):
        yield


def floats(shape: tuple[int, ...], dtype: ts.DType = ts.f32) -> ts.Tensor:
    return ts.asarray(draw.uniform(-9, 9, shape).astype(np.float32)).to(dtype)


def whole(shape: tuple[int, ...]) -> ts.Tensor:
    return ts.asarray(draw.integers(1, 30, shape).astype(np.int32))


def programs() -> int:
    """How many programs operators on tensors have become."""
    rows: list[Any] = [*ROW_PROGRAMS.values(), METHODS["__cast__"]]
    eager: list[Any] = [vars(one)["eager"] for one in rows]
    return sum(one.explain().compilations for one in eager)


def check(call: Callable[[], ts.Tensor]) -> None:
    before = programs()
    found = call()
    assert programs() == before + 1
    with knobs.eager_elements.using(1 << 40):
        expected = call()
    assert programs() == before + 1
    assert found.meta is expected.meta
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


X, Y = floats(LARGE), floats(LARGE)
M, N = whole(LARGE), whole(LARGE)
BYTES, SHIFTS = ts.asarray(N.numpy().astype(np.uint8)), ts.asarray(N.numpy() % 5)
CASES: dict[str, Callable[[], ts.Tensor]] = {
    "add": lambda: X + Y,
    "row": lambda: X * Y[:1],
    "outer": lambda: X[:, :1] - Y[:1],
    "number": lambda: X / 3,
    "reflected": lambda: 2.5 - X,
    "numpy": lambda: X + np.ones((1, 131), np.float32),
    "compare": lambda: X < Y,
    "negative": lambda: -X,
    "strided": lambda: X.T + Y.T,
    "integers": lambda: M // N,
    "remainder": lambda: M % 7,
    "shift": lambda: M << SHIFTS,
    "unsigned": lambda: BYTES + 200,
    "mixed": lambda: BYTES * M,
    "cast": lambda: X.to(ts.bf16),
}
QUICK = ("add", "number", "cast")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.acceptance) for name in CASES]
)
def test_large_tensors_compute_in_machine_code(name: str) -> None:
    check(CASES[name])


def test_every_size_does_where_it_is_asked_for() -> None:
    x, y = floats((2, 3), ts.f64), floats((2, 3), ts.f64)
    before = programs()
    small = x + y
    assert programs() == before
    with knobs.eager_elements.using(0):
        np.testing.assert_array_equal((x + y).numpy(), small.numpy())
    assert programs() == before + 1


@pytest.mark.parametrize(
    ("left", "function", "right"),
    [
        (X, python.add, ts.zeros((3, 131))),
        (X, ts.Tensor.__and__, Y),
        (M, python.add, 1 << 40),
        (X.to(ts.bf16), python.add, M),
    ],
    ids=["shapes", "bits of floats", "a number too large", "types"],
)
def test_what_does_not_fit_is_refused_as_ever(left: ts.Tensor, function: Callable[..., Any], right: Any) -> None:
    texts: list[str] = []
    for least in (0, 1 << 40):
        with knobs.eager_elements.using(least), pytest.raises(ts.TesseraError) as caught:
            function(left, right)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_numbers_of_more_than_63_bits_have_no_program() -> None:
    high = 1 << 63
    found = ts.full(LARGE, 1, dtype=ts.u64) + high
    assert int(found[0, 0]) == high + 1


def test_tensors_from_outside_are_computed_while_a_function_is_traced() -> None:
    kinds: list[type] = []

    @ts.jit
    def f(x: Any) -> Any:
        twice = X + X
        kinds.append(type(twice))
        return x + twice

    np.testing.assert_array_equal(f(Y).numpy(), Y.numpy() + 2 * X.numpy())
    assert kinds == [ts.Tensor]


def test_checks_look_at_every_size() -> None:
    zeros = ts.zeros((3,))
    assert np.isnan((zeros / zeros).numpy()).all()
    with knobs.checks.using("nan"), pytest.raises(ts.TesseraError, match="NaN") as caught:
        _ = zeros / zeros
    assert "zeros / zeros" in str(caught.value)


def test_operators_are_methods_and_properties_of_tensors() -> None:
    hooks = {name for name in METHODS if name in ("__elementwise__", "__cast__", "__has_machine_code__")}
    names = {*METHODS, *PROPERTIES} - hooks
    assert sorted(name for name in names if name not in vars(ts.Tensor)) == []
    x = floats((3, 4))
    assert np.allclose(x.sum(axis=1).numpy(), x.numpy().sum(axis=1), atol=1e-4)
    assert np.array_equal(x.at[0].set(0.0).numpy()[0], np.zeros(4, np.float32))
    assert not hasattr(x, "call_kernel")
    name = "summed"
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'summed'"):
        getattr(x, name)
