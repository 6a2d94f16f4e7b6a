"""Checks factors that are drawn out of sums and masks: values stay, and elements are multiplied less often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import Array, rewritten, run

from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.algebra.factoring import gather_factors
from tessera.transforms.algebra.powers_of_two import use_powers_of_two

MARK = "approximate"
TILE = "tensor<4x8xf32>"
PAIR = f"{TILE}, {TILE} -> {TILE}"
PROGRAM = f"""
tile.func @k(%x: !tile.view<2, f32, global>, %v: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[4, 8], [1], [4, 8]] grid [1] {{{{
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> {TILE}
  %given = tile.load %v[%zero] : !tile.view<1, f32, global> -> tensor<1xf32>
  %slope = tile.expand %given, 0 : tensor<1xf32> -> tensor<1x1xf32>
  %slopes = tile.broadcast %slope : tensor<1x1xf32> -> {TILE}
  %down = tile.iota %zero, 0 : tensor<4x8xi64>
  %across = tile.iota %zero, 1 : tensor<4x8xi64>
  %n = arith.constant 0.0 : f32
  %nothing = tile.full %n : {TILE}
  %l = arith.constant 0xFF800000 : f32
  %least = tile.full %l : {TILE}
  %c = arith.constant 0.125 : f32
  %cs = tile.full %c : {TILE}
  %d = arith.constant 0.9 : f32
  %ds = tile.full %d : {TILE}
  %p = tile.ew<mul> %a, %cs : {PAIR}
{{body}}
  %t = tile.reduce<top> %s, 1 : {TILE} -> tensor<4xf32>
  %u = tile.expand %t, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %w = tile.broadcast %u : tensor<4x1xf32> -> {TILE}
  %o = tile.ew<sub> %s, %w : {PAIR}
  %e = tile.ew<exp> %o {{{{{MARK}}}}} : {TILE} -> {TILE}
  tile.store %e, %y[%zero, %zero] : {TILE}, !tile.view<2, f32, global>
  tile.return
}}}}
"""
# Scores, and how many multiplications of whole tiles are left: one is in the exponent.
BODIES = {
    "a multiple of a multiple": (f"%s = tile.ew<mul> %p, %ds : {PAIR}", 1),
    "a leaking maximum": (
        f"""
  %q = tile.ew<mul> %p, %ds : {PAIR}
  %r = tile.ew<max> %p, %nothing : {PAIR}
  %f = tile.ew<mul> %r, %cs : {PAIR}
  %s = tile.ew<add> %q, %f : {PAIR}""",
        2,
    ),
    "a bias by distance": (
        f"""
  %g = tile.ew<sub> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
  %h = tile.ew<cast> %g : tensor<4x8xi64> -> {TILE}
  %i = tile.ew<abs> %h : {TILE} -> {TILE}
  %j = tile.ew<mul> %slopes, %i : {PAIR}
  %s = tile.ew<sub> %p, %j : {PAIR}""",
        2,
    ),
    "a mask": (
        f"""
  %q = tile.ew<mul> %p, %ds : {PAIR}
  %m = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
  %s = tile.ew<select> %m, %q, %least : tensor<4x8xi1>, {PAIR}""",
        1,
    ),
    "shifts that cancel": (
        f"""
  %q = tile.ew<add> %p, %ds : {PAIR}
  %r = tile.ew<mul> %q, %cs : {PAIR}
  %b = tile.ew<neg> %r : {TILE} -> {TILE}
  %f = tile.ew<sub> %ds, %b : {PAIR}
  %s = tile.ew<min> %f, %ds : {PAIR}""",
        1,
    ),
}


def prepared(function: tile.FuncOp) -> None:
    gather_factors(function, MARK)
    use_powers_of_two(function, MARK)


def products(function: tile.FuncOp) -> int:
    ops = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "mul"]
    return sum(np.prod(op.result.type.get_shape()) == 32 for op in ops)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(1e-3, 100))
def test_values_stay(name: str, seed: int, size: float) -> None:
    generator = np.random.default_rng(seed)
    x: Array = (size * generator.standard_normal((4, 8))).astype(np.float32)
    source = PROGRAM.format(body=BODIES[name][0])
    given_ = [x, np.asarray([0.25], np.float32), np.zeros((4, 8), np.float32)]
    before, after = run(text.read(source), given_)[2], run(rewritten(source, prepared)[0], given_)[2]
    np.testing.assert_allclose(after, before, rtol=float(1e-6 * (1 + size)), atol=1e-40)


@pytest.mark.parametrize("name", BODIES)
def test_little_is_multiplied(name: str) -> None:
    body, expected = BODIES[name]
    assert products(rewritten(PROGRAM.format(body=body), prepared)[1]) == expected


def test_what_has_to_be_exact_stays() -> None:
    source = PROGRAM.format(body=BODIES["a multiple of a multiple"][0]).replace(f" {{{MARK}}}", "")
    before = text.read(source)
    after, function, _ = rewritten(source, lambda function: gather_factors(function, MARK))
    assert products(function) == 2
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    given_ = [x, np.zeros(1, np.float32), np.zeros((4, 8), np.float32)]
    assert np.array_equal(run(before, given_)[2], run(after, given_)[2])
