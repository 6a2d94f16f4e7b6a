"""Calls of jitted functions like earlier ones: they find their program, and nothing else does."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from long_ways import slow_calls

import tessera as ts
from tessera import Tensor, jit, knobs
from tessera.errors import EffectError, TesseraError
from tessera.lang.jit import Jitted

SCALE = 2.0


def plain(first: Any, second: Any) -> Any:
    return first + second * 2.0


def seen_from_outside(first: Any, second: Any) -> Any:
    return first + second * SCALE


def several(first: Any, second: Any) -> Any:
    return {"sum": first + second, "pair": (first - second, 3)}


def both(first: Any, second: Any) -> Any:
    return first + second, first * second


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [ts.randn(shape, seed=seed) for seed, shape in enumerate(shapes)]


def warm(function: Any) -> tuple[Jitted, Tensor, Tensor]:
    """The function jitted, after a call with arrays of a kind."""
    made = jit(function)
    x, y = drawn((3, 5), (3, 5))
    made(x, y)
    return made, x, y


def test_calls_give_what_they_give_in_python() -> None:
    f, x, y = warm(plain)
    wanted = x.numpy() + y.numpy() * np.float32(2)
    calls = slow_calls(f)
    for _ in range(3):
        assert np.allclose(f(x, y), wanted)
        assert np.allclose(f(*[x, y]), wanted)
        assert np.allclose(f(y, x), y.numpy() + x.numpy() * np.float32(2))
        assert np.allclose(f(x, second=y), wanted)
        assert np.allclose(f(second=y, first=x), wanted)
    assert not calls
    assert np.allclose(f(x.numpy(), y), wanted)
    shapes = [(size, 2) for size in range(2, 9)]
    for shape in (*shapes, *shapes):
        a, b = drawn(shape, shape)
        assert np.allclose(f(a, b), a.numpy() + b.numpy() * np.float32(2))


def test_results_of_all_structures() -> None:
    f, x, y = warm(several)
    found = f(x, y)
    assert list(found) == ["sum", "pair"]
    assert np.allclose(found["sum"], x.numpy() + y.numpy())
    assert np.allclose(found["pair"][0], x.numpy() - y.numpy())
    assert found["pair"][1] == 3
    g, x, y = warm(both)
    total, product = g(x, y)
    assert np.allclose(total, x.numpy() + y.numpy())
    assert np.allclose(product, x.numpy() * y.numpy())


def test_wrong_arguments_are_told_as_ever() -> None:
    f, x, y = warm(plain)
    with pytest.raises(TesseraError, match="missing a required argument: 'second'"):
        f(x)
    with pytest.raises(TesseraError, match="too many positional"):
        f(x, y, x)
    with pytest.raises(TesseraError, match="unexpected keyword"):
        f(x, y, third=y)
    with pytest.raises(TesseraError, match="neither an array nor a number"):
        f(x, [{1}])


def test_what_a_function_sees_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x, y = warm(seen_from_outside)
    assert np.allclose(f(x, y), x.numpy() + y.numpy() * np.float32(2))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert np.allclose(f(x, y), x.numpy() + y.numpy() * np.float32(3))
    monkeypatch.delitem(globals(), "SCALE")
    with pytest.raises(NameError, match="SCALE"):
        f(x, y)


def test_settings_and_traces_count() -> None:
    f, x, y = warm(plain)
    wanted = f(x, y).numpy()
    with knobs.interpret.using(True):
        assert np.allclose(f(x, y), wanted)
    assert len(f.explain().families) == 2

    def twice(first: Any, second: Any) -> Any:
        return f(first, second) * 2.0

    outer = jit(twice)
    assert np.allclose(outer(x, y), wanted * np.float32(2))


def test_tensors_whose_meta_was_not_asked_for_find_the_program_too() -> None:
    f, x, y = warm(plain)
    calls = slow_calls(f)
    for _ in range(2):
        fresh = ts.asarray(x.numpy()), ts.asarray(y.numpy())
        assert [one.known_meta for one in fresh] == [None, None]
        assert np.allclose(f(*fresh), x.numpy() + y.numpy() * np.float32(2))
    assert not calls


def test_calls_in_traces_are_part_of_them_after_calls_outside() -> None:
    """And calls with arrays that a trace has nothing to do with run at once, in it or not."""
    f, x, y = warm(plain)
    seen: list[Any] = []

    def outer(first: Any) -> Any:
        seen.append(f(first, first))
        return f(first, y)

    made = jit(outer)
    assert np.allclose(made(x), x.numpy() + y.numpy() * np.float32(2))
    assert not isinstance(seen[0], Tensor)
    assert np.allclose(f(x, y), x.numpy() + y.numpy() * np.float32(2))


def test_donated_tensors_are_gone() -> None:
    f, x, y = warm(plain)
    g = jit(plain, donate_argnums=0)
    g(x, y)
    with pytest.raises(EffectError, match="donated"):
        f(x, y)


def test_nothing_is_lost() -> None:
    held: list[Any] = []
    for function in (plain, several, both, seen_from_outside):
        f, x, y = warm(function)
        gc.collect()
        before = sys.getrefcount(x), sys.getrefcount(x.meta), sys.getrefcount(f.__call__)
        for _ in range(300):
            held = [f(x, y)]
        held.clear()
        after = sys.getrefcount(x), sys.getrefcount(x.meta), sys.getrefcount(f.__call__)
        assert all(abs(one - other) < 20 for one, other in zip(before, after, strict=True))
