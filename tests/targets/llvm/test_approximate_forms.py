"""Approximate forms of functions: their largest errors are as declared, and they stand only where these do no harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cpu_runs import to_cpu
from llvm_loops import HERE, Array, Loops, padded

from tessera import bf16, f32, kernel, knobs, tile
from tessera.ir.common.elementwise import TABLE
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import compile_kernel, options_for
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.llvm.emitter_attributes import APPROXIMATE
from tessera.targets.llvm.exponentials import APPROXIMATE_FORMS, FLUSHED, ApproximateForm
from tessera.targets.llvm.floats import Floats, Sixteen
from tessera.targets.llvm.text import Function, Value

HALF_A_UNIT = 2.0**-24
sixteens = pytest.mark.skipif("avx512" not in HERE, reason="sixteen lanes are AVX-512's")


def run(form: ApproximateForm, x: Array, *, flushes: bool = False) -> Array:
    def body(f: Function, operands: list[Value]) -> Value:
        return form.work(Sixteen(f, "avx512", flushes=flushes), operands[0])

    loops = Loops("avx512")
    loops.add("approximate", [f32], f32, 16, body)
    return loops.run("approximate", x)


def exact(name: str, x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(TABLE[name].numpy(x.astype(np.float64)), np.float64)


@sixteens
@pytest.mark.parametrize("name", APPROXIMATE_FORMS)
def test_errors_are_those_declared(name: str) -> None:
    x = padded(np.concatenate([np.linspace(-20, 20, 400_001), np.linspace(-1, 1, 100_001)]).astype(np.float32))
    form, got, true = APPROXIMATE_FORMS[name], run(APPROXIMATE_FORMS[name], x).astype(np.float64), exact(name, x)
    error = np.abs(got - true)
    some = true != 0
    assert (error[some] / np.abs(true[some])).max() <= form.relative
    assert (got[~some] == 0).all()
    assert error.max() <= form.absolute
    if form.beside_one < math.inf:
        missing = 1 - np.abs(true)
        far = missing > 1e-6
        assert (np.maximum(error - HALF_A_UNIT, 0)[far] / missing[far]).max() <= form.beside_one
        # The bounds are near what is so: a wrong coefficient would be seen.
        assert error.max() >= form.absolute / 2


@sixteens
@pytest.mark.parametrize("name", APPROXIMATE_FORMS)
def test_special_values(name: str) -> None:
    x = padded(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3.4028235e38, -3.4028235e38], np.float32))
    got, true = run(APPROXIMATE_FORMS[name], x), exact(name, x)
    np.testing.assert_allclose(got, true, rtol=APPROXIMATE_FORMS[name].relative, atol=0)
    if name in ("tanh", "erf"):
        np.testing.assert_array_equal(np.signbit(got), np.signbit(true))
        assert set(np.abs(got[np.abs(x) > 10])) == {1.0}


@sixteens
def test_results_too_small_for_the_format_are_zeros() -> None:
    x = padded(np.linspace(-110, -80, 3000).astype(np.float32))
    got, true = run(APPROXIMATE_FORMS["exp"], x), exact("exp", x)
    assert (got[x < -87.1] == 0).all()
    np.testing.assert_allclose(got[x > -86.9], true[x > -86.9], rtol=APPROXIMATE_FORMS["exp"].relative)


EVERYWHERE = [("neon", 4), ("avx2", 8)]
"""Levels, and lanes, of vectors that have no steps of AVX-512."""


def run_plainly(level: str, lanes: int, work: Callable[[Floats, Value], Value], x: Array) -> Array:
    def body(f: Function, operands: list[Value]) -> Value:
        return work(Floats(f, operands[0].type, level), operands[0])

    loops = Loops(level)
    loops.add("plain", [f32], f32, lanes, body)
    return loops.run("plain", x)


# Where results are normal numbers, what lies beyond on either side, and errors of the approximate form and the other.
POWERS = {
    "exp": ((-87.33, 88.72283), (-87.4, 88.8), (APPROXIMATE_FORMS["exp"].relative, 2 * HALF_A_UNIT)),
    "exp2": ((-124.99, 127.99999), (-125.1, 128.1), (APPROXIMATE_FORMS["exp2"].relative, 2 * HALF_A_UNIT)),
}


@pytest.mark.parametrize(("level", "lanes"), [one for one in EVERYWHERE if one[0] in HERE])
@pytest.mark.parametrize("form", ["approximate", "flushed"])
@pytest.mark.parametrize("name", POWERS)
def test_powers_whose_exponents_are_added_to(level: str, lanes: int, form: str, name: str) -> None:
    inside, (below, above), bounds = POWERS[name]
    work, bound = (APPROXIMATE_FORMS[name].work, bounds[0]) if form == "approximate" else (FLUSHED[name], bounds[1])
    x = padded(np.linspace(*inside, 1_000_001).astype(np.float32))
    got, true = run_plainly(level, lanes, work, x).astype(np.float64), exact(name, x)
    assert (np.abs(got - true) / true).max() <= bound
    payload = np.array([0x7FC00001, 0xFFC001FF, 0x7FABCDEF], np.uint32).view(np.float32)
    far = padded(np.array([below, -1e30, -np.inf, above, 1e30, np.inf, np.nan, -0.0, *payload], np.float32))
    expected = np.array([0, 0, 0, np.inf, np.inf, np.inf, np.nan, 1, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(run_plainly(level, lanes, work, far)[: len(expected)], expected, rtol=bound)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tile.erf(x * 0.7071067811865476))


def soft_cap(x: Any) -> Any:
    return 30.0 * tile.tanh(x * (1 / 30))


def wild_cap(x: Any) -> Any:
    return 3000.0 * tile.tanh(x * (1 / 3000))


def silu(x: Any) -> Any:
    return x * tile.sigmoid(x)


def exp_less_one(x: Any) -> Any:
    return tile.exp(x) - 1.0


def tanh_less_half(x: Any) -> Any:
    return tile.tanh(x) - 0.5


def inverse_tanh(x: Any) -> Any:
    return 1 / tile.tanh(x)


def weights_of(score: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def weights(rows: Any) -> Any:
        scores = score(rows)
        return tile.exp(scores - tile.max(scores, keepdims=True))

    return weights


@kernel
def rounded(x: Any, *, fn: Callable[[Any], Any]):
    return tile.cast(fn(tile.load(x)), bf16)


@kernel
def kept(x: Any, *, fn: Callable[[Any], Any]):
    return fn(tile.load(x))


@kernel
def both_ways(x: Any, *, fn: Callable[[Any], Any]):
    found = fn(tile.load(x))
    return tile.cast(found, bf16), found


@kernel
def summed(x: Any, *, fn: Callable[[Any], Any]):
    return tile.sum(fn(tile.load(x)))


def approximate_ops(run: Any, fn: Callable[[Any], Any]) -> list[str]:
    """The functions that a kernel computes in their approximate form."""
    instance = run.lower(np.zeros((64, 64), np.float32), fn=fn)
    module = instance.module.clone()
    to_cpu(module, TileToCpu("avx512"))
    return sorted({op.properties["fn"].data for op in module.walk() if APPROXIMATE in op.attributes})  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (tile.exp, ["exp"]),
        (tile.tanh, ["tanh"]),
        (gelu, ["erf"]),
        (tile.sigmoid, ["sigmoid"]),
        (silu, ["sigmoid"]),
        (weights_of(soft_cap), ["exp2", "tanh"]),
        # An error of the cap's size in the exponent would show.
        (weights_of(wild_cap), ["exp2"]),
        # Adding to it may leave the error alone.
        (exp_less_one, []),
        (tanh_less_half, []),
        # Errors in parts of a value are those of its quotients.
        (inverse_tanh, ["tanh"]),
    ],
)
def test_where_approximate_forms_stand(fn: Callable[[Any], Any], expected: list[str]) -> None:
    assert approximate_ops(rounded, fn) == expected


@pytest.mark.parametrize(("times", "expected"), [(1, ["exp"]), (3, ["exp"]), (4, []), (60, [])])
def test_errors_that_add_up_are_counted(times: int, expected: list[str]) -> None:
    def squared(x: Any) -> Any:
        found = tile.exp(x)
        for _ in range(times):
            found = found * found
        return found

    assert approximate_ops(rounded, squared) == expected


@pytest.mark.parametrize("run", [kept, both_ways, summed])
@pytest.mark.parametrize("fn", [tile.exp, tile.tanh, gelu, weights_of(soft_cap)])
def test_what_is_kept_as_it_is_has_no_approximate_form(run: Any, fn: Callable[[Any], Any]) -> None:
    assert approximate_ops(run, fn) == []


@pytest.mark.parametrize("fn", [tile.exp, tile.tanh, tile.erf, tile.sigmoid, gelu, weights_of(soft_cap)])
def test_approximate_forms_change_the_last_bit_at_most(fn: Callable[[Any], Any]) -> None:
    # Below, f32 itself has nothing left of 1 + erf(x).
    x = np.random.default_rng(3).uniform(-3, 6, (64, 64)).astype(np.float32)
    instance = rounded.lower(x, fn=fn)
    if features.level() in ("avx512", "amx"):
        exactly = compile_kernel(instance.module, instance.name, options_for(optimization=1))
        assert compile_kernel(instance.module, instance.name).image != exactly.image
    got = rounded(x, fn=fn).numpy().view(np.uint16).astype(np.int32)
    with knobs.backend.using("interpreter"):
        meant = rounded(x, fn=fn).numpy().view(np.uint16).astype(np.int32)
    assert np.abs(got - meant).max() <= 1
    assert (got == meant).mean() > 0.7
