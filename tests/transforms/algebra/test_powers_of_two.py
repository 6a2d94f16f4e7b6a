"""Checks exponentials by powers of two: the same values, infinities and NaN included, and nothing left to multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import Array, rewritten, run

from tessera.dtypes.types import f32
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.algebra.powers_of_two import use_powers_of_two
from tessera.transforms.algebra.scaled_maxima import scale_maxima

MARK = "approximate"
SOFTMAX = """
tile.func @k(%x: !tile.view<2, f32, global>, %v: f32, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[4, 8], [], [4, 8]] grid [1] {{
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<4x8xf32>
{body}
  tile.store %e, %y[%zero, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}}
"""
PAIR = "tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>"
LESS_TOP = f"""
  %t = tile.reduce<max> %s, 1 : tensor<4x8xf32> -> tensor<4xf32>
  %u = tile.expand %t, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %w = tile.broadcast %u : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = tile.ew<sub> %s, %w : {PAIR}
  %e = tile.ew<exp> %d {{{MARK}}} : tensor<4x8xf32> -> tensor<4x8xf32>"""
SCALED = f"""
  %c = arith.constant 0.125 : f32
  %f = tile.full %c : tensor<4x8xf32>
  %s = tile.ew<mul> %a, %f : {PAIR}"""


def masked(value: str, nothing: str) -> str:
    return f"""
  %n = arith.constant {nothing} : f32
  %nothing = tile.full %n : tensor<4x8xf32>
  %down = tile.iota %zero, 0 : tensor<4x8xi64>
  %one = arith.constant 1 : index
  %across = tile.iota %one, 1 : tensor<4x8xi64>
  %m = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
  %s = tile.ew<select> %m, {value}, %nothing : tensor<4x8xi1>, {PAIR}"""


# Bodies, and how many multiplications of whole tiles are left.
BODIES = {
    "plain": (f"%e = tile.ew<exp> %a {{{MARK}}} : tensor<4x8xf32> -> tensor<4x8xf32>", 1),
    "a multiple": (SCALED + f"\n  %e = tile.ew<exp> %s {{{MARK}}} : tensor<4x8xf32> -> tensor<4x8xf32>", 1),
    "softmax": (LESS_TOP.replace("%s", "%a"), 1),
    "softmax of multiples": (SCALED + LESS_TOP, 1),
    "softmax of masked multiples": (SCALED.replace("%s", "%p") + masked("%p", "0xFF800000") + LESS_TOP, 1),
    "softmax with the least number": (SCALED.replace("%s", "%p") + masked("%p", "-3.40282347e+38") + LESS_TOP, 2),
    "softmax with a number that is given": (
        SCALED.replace("%s", "%p") + masked("%p", "0.0").replace("tile.full %n", "tile.full %v") + LESS_TOP,
        2,
    ),
    "softmax with the least number added": (
        masked("%a", "0.0").replace("%s =", "%p =")
        + f"""
  %least = arith.constant -3.40282347e+38 : f32
  %l = tile.full %least : tensor<4x8xf32>
  %g = tile.ew<cast> %m : tensor<4x8xi1> -> tensor<4x8xf32>
  %h = tile.ew<mul> %g, %l : {PAIR}
  %s = tile.ew<add> %p, %h : {PAIR}"""
        + LESS_TOP,
        2,
    ),
    "multiples of factors that are below 0": (
        SCALED.replace("0.125", "-0.5") + f"\n  %e = tile.ew<exp> %s {{{MARK}}} : tensor<4x8xf32> -> tensor<4x8xf32>",
        2,
    ),
    "a constant": (
        f"""
  %c = arith.constant 1.5 : f32
  %f = tile.full %c : tensor<4x8xf32>
  %d = tile.ew<sub> %f, %f : {PAIR}
  %e = tile.ew<exp> %d {{{MARK}}} : tensor<4x8xf32> -> tensor<4x8xf32>""",
        0,
    ),
}
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-40, 88.0, -104.0, np.finfo(np.float32).min]


def prepared(function: tile.FuncOp) -> None:
    scale_maxima(function)
    use_powers_of_two(function, MARK)


def values(body: str, x: Array) -> tuple[Array, Array]:
    """What a program gives before and after."""
    source = SOFTMAX.format(body=body)
    given_ = [x, float(np.finfo(np.float32).min), np.zeros((4, 8), np.float32)]
    return run(text.read(source), given_)[1], run(rewritten(source, prepared)[0], given_)[1]


def check(body: str, x: Array) -> None:
    before, after = values(body, x)
    # As many bits as numbers of the size of x leave.
    size = np.max(np.abs(x), where=np.isfinite(x) & (np.abs(x) < 1e30), initial=1.0)
    np.testing.assert_allclose(after, before, rtol=float(4e-7 * (1 + size)), atol=1e-44)


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(1e-3, 300), st.lists(st.sampled_from(SPECIAL), max_size=4))
def test_values_stay(name: str, seed: int, size: float, special: list[float]) -> None:
    generator = np.random.default_rng(seed)
    x = (size * generator.standard_normal((4, 8))).astype(np.float32)
    x.flat[generator.integers(0, 32, len(special))] = special
    # Products of data are supposed not to be the largest numbers there are.
    if name.startswith("softmax of"):
        x = np.clip(x, -1e38, 1e38, where=np.isfinite(x), out=x)
    check(BODIES[name][0], x)


@pytest.mark.parametrize("name", BODIES)
def test_nothing_is_multiplied_twice(name: str) -> None:
    body, multiplications = BODIES[name]
    _, function, _ = rewritten(SOFTMAX.format(body=body), prepared)
    ops = [op for op in function.body.walk() if isinstance(op, tile.EwOp)]
    assert not any(op.fn.data == "exp" for op in ops)
    (power,) = (op for op in ops if op.fn.data == "exp2")
    assert MARK in power.attributes
    wide = [op for op in ops if op.fn.data == "mul" and op.result.type == power.result.type]
    assert len(wide) == multiplications


def test_rows_that_are_masked_out_are_what_they_were() -> None:
    """With the least number instead of −∞ all weights of such a row are 1."""
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    for name in ("softmax with the least number", "softmax with a number that is given"):
        before, after = values(BODIES[name][0], x)
        assert (before[0] == 1).all()
        assert (after[0] == 1).all()
    before, after = values(BODIES["softmax"][0], np.full((4, 8), np.finfo(np.float32).min, np.float32))
    assert (before == 1).all()
    assert (after == 1).all()
    before, after = values(BODIES["softmax of masked multiples"][0], x)
    assert np.isnan(before[0]).all()
    assert np.isnan(after[0]).all()


LOOP = f"""
  %low = arith.constant {{start}} : f32
  %start = tile.full %low : tensor<4x8xf32>
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  %top = scf.for %i = %zero to %two step %one iter_args(%b = %start) -> (tensor<4x8xf32>) {{{{
    %p = tile.ew<mul> %a, %a : {PAIR}
    %next = tile.ew<max> %b, %p : {PAIR}
    scf.yield %next : tensor<4x8xf32>
  }}}}
  %d = tile.ew<sub> %top, %top : {PAIR}
  %e = tile.ew<exp> %d {{{{{MARK}}}}} : tensor<4x8xf32> -> tensor<4x8xf32>"""


@pytest.mark.parametrize(("start", "apart"), [("0xFF800000", True), ("-3.40282347e+38", False)])
def test_what_a_loop_carries_is_looked_at(start: str, apart: bool) -> None:
    """Its first value, and what it becomes."""
    body = LOOP.format(start=start)
    _, function, _ = rewritten(SOFTMAX.format(body=body), prepared)
    (power,) = (op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "exp2")
    source: Any = power.operands_[0].owner
    assert source.fn.data == ("sub" if apart else "mul")
    check(body, np.ones((4, 8), np.float32))


def test_only_marked_ones_of_f32_are_rewritten() -> None:
    source = SOFTMAX.format(body="%e = tile.ew<exp> %a : tensor<4x8xf32> -> tensor<4x8xf32>")
    assert text.write(rewritten(source, prepared)[0]) == text.write(text.read(source))
    double = SOFTMAX.format(body=BODIES["softmax"][0]).replace("f32", "f64")
    assert text.write(rewritten(double, prepared)[0]) == text.write(text.read(double))
    assert f32.max_value == np.finfo(np.float32).max


# Sigmoids whose reciprocals are computed together


@pytest.mark.parametrize("marks", ["together", "loose, together"])
def test_divisors_of_sigmoids_have_bounds(marks: str) -> None:
    """Four of them can be multiplied; what is far from 0 is nothing, or next to it, or one."""
    source = SOFTMAX.format(body=f"%e = tile.ew<sigmoid> %a {{{MARK}, {marks}}} : tensor<4x8xf32> -> tensor<4x8xf32>")
    module, function, _ = rewritten(source, lambda made: use_powers_of_two(made, MARK, "loose", "together"))
    (inverse,) = (op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "reciprocal")
    assert "together" in inverse.attributes
    x = np.concatenate([np.linspace(-100, 40, 28), [np.inf, -np.inf, np.nan, -3e38]]).astype(np.float32).reshape(4, 8)
    found = run(module, [x, 0.0, np.zeros((4, 8), np.float32)])[1].astype(np.float64)
    with np.errstate(over="ignore"):
        truth = 1 / (1 + np.exp(-x.astype(np.float64)))
    if "loose" in marks:
        np.testing.assert_allclose(found, truth, rtol=2e-6, atol=2e-9)
    else:
        np.testing.assert_allclose(found, truth, rtol=2e-5, atol=1e-37)
        assert found.flat[29] == 0


# Maxima of multiples

MAXIMUM = f"""
  %c = arith.constant 4.0 : f32
  %f = tile.full %c : tensor<4x8xf32>
  %s = tile.ew<mul> %a, %f {{policy}}: {PAIR}
  %t = tile.reduce<max> %s, 1 : tensor<4x8xf32> -> tensor<4xf32>
  %u = tile.expand %t, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %e = tile.broadcast %u : tensor<4x1xf32> -> tensor<4x8xf32>"""


@pytest.mark.parametrize("policy", ["", "policy <saturate> "])
def test_maxima_of_multiples_keep_their_policy(policy: str) -> None:
    """What is clamped to the largest number is clamped after, too."""
    x = np.full((4, 8), 2e38, np.float32)
    source = SOFTMAX.format(body=MAXIMUM.format(policy=policy))
    given_ = [x, 0.0, np.zeros((4, 8), np.float32)]
    before = run(text.read(source), given_)[1]
    assert np.array_equal(run(rewritten(source, scale_maxima)[0], given_)[1], before)
    assert np.isfinite(before).all() == bool(policy)
