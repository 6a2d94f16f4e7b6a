"""Checks exponentials below a maximum: one factor for the difference, in loops too, and nothing lost at any size."""

from __future__ import annotations

import numpy as np
import pytest
from rewritten_programs import rewritten, run
from test_powers_of_two import BODIES, LESS_TOP, PAIR, SCALED, SOFTMAX

from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.algebra.scaled_differences import use_scaled_differences

OTHER_ROWS = """
  %t = tile.reduce<REDUCED> %a, 1 : tensor<4x8xf32> -> tensor<4xf32>
  %u = tile.expand %t, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %w = tile.broadcast %u : tensor<4x1xf32> -> tensor<4x8xf32>"""
ALL = {
    **{name: body for name, (body, _) in BODIES.items()},
    "multiples less other maxima": SCALED + OTHER_ROWS.replace("REDUCED", "max") + LESS_TOP[LESS_TOP.index("\n  %d") :],
    "multiples less sums": SCALED + OTHER_ROWS.replace("REDUCED", "sum") + LESS_TOP[LESS_TOP.index("\n  %d") :],
}
# What a loop of one iteration leaves: the greater of the maximum of its block and of −∞, which it began with.
ONE_TURN = """
  %start = arith.constant NUMBER : f32
  %low = tile.full %start : tensor<4xf32>
  %t0 = tile.reduce<max> %s, 1 : tensor<4x8xf32> -> tensor<4xf32>
  %t = tile.ew<max> %low, %t0 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>"""
ALL["multiples less maxima of one iteration"] = (
    SCALED + ONE_TURN.replace("NUMBER", "0xFF800000") + LESS_TOP[LESS_TOP.index("\n  %u") :]
)
ALL["multiples less maxima with a number"] = (
    SCALED + ONE_TURN.replace("NUMBER", "0.5") + LESS_TOP[LESS_TOP.index("\n  %u") :]
)
REWRITTEN = {"softmax of multiples", "softmax of masked multiples", "multiples less maxima of one iteration"}


def applied(function: tile.FuncOp) -> None:
    use_scaled_differences(function)


@pytest.mark.parametrize("name", ALL)
def test_only_multiples_less_their_own_maxima(name: str) -> None:
    source = SOFTMAX.format(body=ALL[name])
    x = (5 * np.random.default_rng(1).standard_normal((4, 8))).astype(np.float32)
    module, function, _ = rewritten(source, applied)
    ops = [op for op in function.body.walk() if isinstance(op, tile.EwOp)]
    powers = [op for op in ops if op.fn.data == "exp2"]
    assert len(powers) == (name in REWRITTEN)
    wide = [op for op in ops if op.fn.data == "mul" and op.result.type in [one.result.type for one in powers]]
    assert len(wide) == (name in REWRITTEN)
    given = [x, -1.0, np.zeros((4, 8), np.float32)]
    np.testing.assert_allclose(run(module, given)[1], run(text.read(source), given)[1], rtol=2e-6)


# The sum of e^(s - m) over three blocks of columns, each multiplied by its number, and in the end e^m.
ONLINE = f"""
  %c = arith.constant 0.3 : f32
  %f = tile.full %c : tensor<4x8xf32>
  %n = arith.constant 0xFF800000 : f32
  %low = tile.full %n : tensor<4xf32>
  %nothing = tile.full %n : tensor<4x8xf32>
  %o = arith.constant 0.0 : f32
  %none = tile.full %o : tensor<4xf32>
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %row = tile.iota %zero, 0 : tensor<4x8xi64>
  %rows = tile.ew<cast> %row : tensor<4x8xi64> -> tensor<4x8xf32>
  %top, %total = scf.for %i = %zero to %three step %one iter_args(%m = %low, %sum = %none)
      -> (tensor<4xf32>, tensor<4xf32>) {{{{
    %across = tile.iota %i, 1 : tensor<4x8xi64>
    %inside = tile.ew<ge> %across, %row : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
    %k = tile.ew<cast> %across : tensor<4x8xi64> -> tensor<4x8xf32>
    %b = tile.ew<mul> %a, %k : {PAIR}
    %p = tile.ew<mul> %b, %f : {PAIR}
    %s = tile.ew<select> %inside, %p, %nothing : tensor<4x8xi1>, {PAIR}
    %r = tile.reduce<top> %s, 1 : tensor<4x8xf32> -> tensor<4xf32>
    %next = tile.ew<max> %m, %r : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %q = tile.ew<eq> %next, %low : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
    %safe = tile.ew<select> %q, %none, %next : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %back = tile.ew<sub> %m, %safe : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %less = tile.ew<exp> %back : tensor<4xf32> -> tensor<4xf32>
    %u = tile.expand %safe, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %w = tile.broadcast %u : tensor<4x1xf32> -> tensor<4x8xf32>
    %d = tile.ew<sub> %s, %w : {PAIR}
    %g = tile.ew<exp> %d : tensor<4x8xf32> -> tensor<4x8xf32>
    %h = tile.reduce<sum> %g, 1 : tensor<4x8xf32> -> tensor<4xf32>
    %older = tile.ew<mul> %sum, %less : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %newer = tile.ew<add> %older, %h : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    scf.yield %next, %newer : tensor<4xf32>, tensor<4xf32>
  }}}}
  %v1 = tile.expand %total, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %v2 = tile.expand %top, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %v3 = tile.broadcast %v1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %v4 = tile.broadcast %v2 : tensor<4x1xf32> -> tensor<4x8xf32>
  %even = tile.ew<ge> %a, %rows : {PAIR.replace("-> tensor<4x8xf32>", "-> tensor<4x8xi1>")}
  %e = tile.ew<select> %even, %v3, %v4 : tensor<4x8xi1>, {PAIR}"""


@pytest.mark.parametrize("size", [1.0, 1e3, 2.0**40, 2.0**110])
def test_maxima_that_loops_carry(size: float) -> None:
    """Both the sums and the maxima behind the loop are what they were, however large the numbers are."""
    source = SOFTMAX.format(body=ONLINE.format())
    module, function, _ = rewritten(source, applied)
    powers = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data in ("exp", "exp2")]
    assert [op.fn.data for op in powers] == ["exp2", "exp2"]
    x = (np.random.default_rng(2).integers(-40, 40, (4, 8)) / 8 * size).astype(np.float32)
    x[2] = -np.inf
    given = [x, 0.0, np.zeros((4, 8), np.float32)]
    before, after = run(text.read(source), given)[1], run(module, given)[1]
    np.testing.assert_allclose(after, before, rtol=2e-6 * min(size, 100))
