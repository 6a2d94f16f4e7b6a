"""Effects, keys and dials: what is refused, what repeats, what a sentinel names, and what fast_math may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, jit, knobs
from tessera.errors import DtypeError, EffectError, ShapeError
from tessera.lang.operator import operator
from tessera.lang.tracing import primitives
from tessera.lang.tracing.effects import pure


@operator
def careless(x: Tensor) -> Any:
    return ts.add(x, primitives.random("uniform", x.shape))


@pytest.mark.usefixtures("interpreted")
def test_an_operator_has_no_effects() -> None:
    def f(x: Any) -> Any:
        return careless(x)

    for call in (f, jit(f)):
        with pytest.raises(EffectError, match="the operator careless is pure") as caught:
            call(ts.ones((2,)))
        assert "random" in caught.value.message


@pytest.mark.usefixtures("interpreted")
def test_a_pure_context_refuses_every_effect() -> None:
    slot = ts.State(np.zeros(2, np.float32))

    def draws(x: Any) -> Any:
        return x + ts.random.uniform(None, x.shape)

    def writes(x: Any) -> Any:
        slot.write(x)
        return x

    def prints(x: Any) -> Any:
        ts.debug_print("x", x)
        return x

    for function, effect in ((draws, "random"), (writes, "state"), (prints, "io")):

        def guarded(x: Any, function: Any = function) -> Any:
            with pure("a test says so"):
                return function(x)

        with pytest.raises(EffectError, match=f"effect {effect}.*a test says so") as caught:
            ts.check(guarded, Tensor[2])
        assert caught.value.span is not None
        assert caught.value.span.file == __file__
        assert ts.check(function, Tensor[2]).effects[0].startswith(effect)


@pytest.mark.usefixtures("interpreted")
def test_state_keeps_its_type_and_outlives_calls() -> None:
    total = ts.State(np.zeros(2, np.float32))

    @jit
    def add(x: Any) -> Any:
        before = total.read()
        total.write(before + x)
        return total.read() - before

    x = ts.asarray(np.array([1.0, 2.0], np.float32))
    for iteration in range(1, 4):
        assert np.array_equal(np.asarray(add(x)), x.numpy())
        assert np.array_equal(np.asarray(total.read()), x.numpy() * iteration)
    with pytest.raises(ShapeError, match="state of shape"):
        total.write(ts.zeros((3,)))
    with pytest.raises(DtypeError, match="state of f32 is given f64"):
        jit(total.write)(ts.zeros((2,), ts.f64))


@pytest.mark.usefixtures("interpreted")
def test_keys_decide_what_is_drawn() -> None:
    key = ts.random.key(7)
    assert np.array_equal(np.asarray(ts.random.uniform(key, (3, 5))), ts.rand((3, 5), seed=7).numpy())
    assert np.array_equal(np.asarray(ts.random.uniform(key, (9,), ts.bf16)), ts.rand((9,), ts.bf16, seed=7).numpy())
    assert np.allclose(ts.random.normal(key, (3, 7)), ts.randn((3, 7), seed=7).numpy(), atol=1e-6)
    assert np.array_equal(np.asarray(ts.random.randint(key, (11,), -5, 6)), ts.randint(-5, 6, (11,), seed=7).numpy())
    keys = ts.random.split(key, 4)
    assert len({int(one) for one in keys} | {int(key), int(ts.random.fold_in(key, 3))}) == 6
    flags = ts.random.bernoulli(key, 0.25, (2000,))
    assert abs(np.asarray(flags).mean() - 0.25) < 0.04
    low = np.asarray(ts.random.uniform(key, (100,), low=-2.0, high=2.0))
    assert low.min() >= -2
    assert low.max() < 2
    with pytest.raises(ShapeError, match="a key is a u64 without axes"):
        ts.random.uniform(keys, (2,))
    with pytest.raises(DtypeError, match="a key is a u64 without axes"):
        ts.random.normal(ts.arange(1)[0], (2,))


def test_the_same_key_gives_the_same_numbers_in_machine_code() -> None:
    def drawn(key: Any) -> Any:
        return (ts.random.uniform(key, (5, 3)),)

    key = ts.random.key(11)
    with knobs.interpret.using(True):
        wanted = jit(drawn)(key)
    with knobs.interpret.using(False):
        found = jit(drawn)(key)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


def quotients(x: Any, y: Any) -> Any:
    return x / y


def test_results_are_the_same_bits_unless_fast_math_is_allowed() -> None:
    x, y = ts.randn((64, 33), seed=0), ts.randn((64, 33), seed=1)
    exact = x.numpy() / y.numpy()
    plain = jit(quotients)
    for _ in range(3):
        assert np.array_equal(np.asarray(plain(x, y)), exact)
    fast = jit(quotients, fast_math=True)
    assert np.allclose(np.asarray(fast(x, y)), exact, rtol=1e-6)
    assert "graph.ew<div>" in plain.lower(x, y).graph_ir.text
    assert "graph.ew<div>" not in fast.lower(x, y).graph_ir.text
    assert not np.array_equal(np.asarray(fast(x, y)), exact)
    with knobs.fast_math.using(True):
        assert np.array_equal(np.asarray(plain(x, y)), np.asarray(fast(x, y)))
        assert np.array_equal(np.asarray(jit(quotients, fast_math=False)(x, y)), exact)
    assert np.array_equal(np.asarray(plain(x, y)), exact)


def logarithms(x: Any) -> Any:
    scaled = x * 2.0
    bad = ts.log(scaled)  # the line that the sentinel names
    return bad + 1.0


def test_a_sentinel_names_the_first_bad_op_and_its_line() -> None:
    f = jit(logarithms)
    x = ts.asarray(np.array([1.0, -1.0, 2.0], np.float32))
    assert np.isnan(np.asarray(f(x))[1])
    with knobs.checks.using("nan"):
        with pytest.raises(DtypeError, match="log made NaN") as caught:
            f(x)
        span = caught.value.span
        assert span is not None
        assert span.file == __file__
        assert "# the line that the sentinel names" in span.excerpt()
        fine = ts.asarray(np.array([1.0, 2.0], np.float32))
        assert np.allclose(f(fine), np.log(2.0 * fine.numpy()) + 1)
