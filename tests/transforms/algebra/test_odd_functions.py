"""Checks products with 1 + erf by its tail, and tanh by a sigmoid: how exact they are, and where they stand."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from rewritten_programs import Array, rewritten, run

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.odd_functions import TAIL_ERROR, TANH_ERROR, use_sigmoids, use_tails

MARK = "approximate"
TILE = "tensor<64x64xf32>"
PAIR = f"{TILE}, {TILE} -> {TILE}"
PROGRAM = f"""
tile.func @k(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[64, 64], [64, 64]] grid [1] {{{{
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> {TILE}
  %h = arith.constant {{half}} : f32
  %halves = tile.full %h : {TILE}
  %r = arith.constant 0.7071067811865476 : f32
  %roots = tile.full %r : {TILE}
  %o = arith.constant 1.0 : f32
  %ones = tile.full %o : {TILE}
{{body}}
  tile.store %e, %y[%zero, %zero] : {TILE}, !tile.view<2, f32, global>
  tile.return
}}}}
"""
GELU = f"""
  %b = tile.ew<mul> %a, %halves : {PAIR}
  %z = tile.ew<mul> %a, %roots : {PAIR}
  %f = tile.ew<erf> %z : {TILE} -> {TILE}
  %g = tile.ew<add> %f, %ones : {PAIR}
  %e = tile.ew<mul> %b, %g : {PAIR}"""
TANH = f"%e = tile.ew<tanh> %a : {TILE} -> {TILE}"
X = np.concatenate([np.linspace(-12, 12, 4092), [np.inf, np.nan, 0.0, -0.0]]).astype(np.float32).reshape(64, 64)


def after(source: str, allowed: float) -> tuple[Array, set[str]]:
    """What a program gives after both passes, and the functions that it computes."""

    def rewrite(function: tile.FuncOp) -> None:
        use_tails(function, MARK, lambda _: allowed)
        use_sigmoids(function, MARK, "loose", lambda _: allowed)

    module, function, _ = rewritten(source, rewrite)
    names = {op.fn.data for op in function.body.walk() if isinstance(op, tile.EwOp)}
    return run(module, [X, np.zeros((64, 64), np.float32)])[1], names


@pytest.mark.parametrize("half", [0.5, 1.0, 3.0])
def test_products_by_tails(half: float) -> None:
    found, names = after(PROGRAM.format(body=GELU, half=half), TAIL_ERROR)
    assert "erf" not in names
    x, results = X.reshape(-1).astype(np.float64)[:-4], found.reshape(-1)
    true = half * x * (1 + np.vectorize(erf)(x * 0.7071067811865476))
    error, inside = np.abs(results[:-4] - true), np.abs(x) <= 5.6
    assert (error[inside] <= TAIL_ERROR * np.abs(true[inside])).all()
    assert (error[~inside] <= half * 2.0**-22 * np.abs(x[~inside])).all()
    special = results[-4:]
    assert special[0] == np.inf
    assert np.isnan(special[1])
    assert (special[2:] == 0).all()


@pytest.mark.parametrize(
    "body",
    [
        GELU.replace("%b = tile.ew<mul> %a", "%b = tile.ew<mul> %ones"),
        GELU.replace("%f, %ones", "%f, %halves"),
        GELU.replace("tile.ew<add>", "tile.ew<sub>"),
    ],
)
def test_other_products_stay(body: str) -> None:
    assert "erf" in after(PROGRAM.format(body=body, half=0.5), 1.0)[1]


def test_nothing_is_rewritten_that_has_to_be_exact() -> None:
    assert "erf" in after(PROGRAM.format(body=GELU, half=0.5), TAIL_ERROR / 2)[1]
    assert "erf" in after(PROGRAM.format(body=GELU, half=-0.5), 1.0)[1]
    assert "tanh" in after(PROGRAM.format(body=TANH, half=0.5), TANH_ERROR / 2)[1]


def test_tanh_by_a_sigmoid() -> None:
    found, names = after(PROGRAM.format(body=TANH, half=0.5), TANH_ERROR)
    assert "tanh" not in names
    known = np.isfinite(X)
    assert (np.abs(found[known] - np.tanh(X[known].astype(np.float64))) <= TANH_ERROR).all()
