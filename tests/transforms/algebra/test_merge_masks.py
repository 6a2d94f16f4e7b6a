"""Checks that choices which follow each other become one: same bits, fewer choices."""

from __future__ import annotations

import numpy as np
import pytest
from partitioned_programs import STAGES, prepared
from rewritten_programs import check_same, count, rewritten

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.merge_masks import merge_masks


def choices(function: tile.FuncOp) -> int:
    return sum(isinstance(op, tile.EwOp) and op.fn.data == "select" for op in function.body.walk())


@pytest.mark.parametrize("name", ["causal", "window", "prefix", "full"])
def test_kernels_give_the_same_bits(name: str) -> None:
    for length in (0, 1, 41):
        module, given = STAGES[name](length)
        module, before, _ = rewritten(module, prepared)
        after = check_same(module, merge_masks, given)
        assert choices(after) == choices(before) - (name != "full")
        assert count(after, tile.DotOp) == 2


def kernel(inner: str, outer: str, *, used: bool = False) -> str:
    """Numbers are chosen twice; `used` is whether another op reads what is in between."""
    kind, truth, view = "tensor<8x16xf32>", "tensor<8x16xi1>", "!tile.view<2, f32, global>"
    shapes = "outputs 2 shapes [[8, 16], [8, 16], [8, 16]] grid [1]"
    stored = "%first" if used else "%x"
    return f"""
tile.func @k(%a: {view}, %y: {view}, %z: {view}) {shapes} {{
  %zero = arith.constant 0 : index
  %x = tile.load %a[%zero, %zero] : {view} -> {kind}
  %one = arith.constant {inner} : f32
  %other = arith.constant {outer} : f32
  %ones = tile.full %one : {kind}
  %others = tile.full %other : {kind}
  %m = tile.ew<lt> %x, %ones : {kind}, {kind} -> {truth}
  %n = tile.ew<gt> %x, %others : {kind}, {kind} -> {truth}
  %first = tile.ew<select> %m, %x, %ones : {truth}, {kind}, {kind} -> {kind}
  %second = tile.ew<select> %n, %first, %others : {truth}, {kind}, {kind} -> {kind}
  tile.store %second, %y[%zero, %zero] : {kind}, {view}
  tile.store {stored}, %z[%zero, %zero] : {kind}, {view}
  tile.return
}}"""


@pytest.mark.parametrize(
    ("source", "left"), [(kernel("0.5", "0.5"), 1), (kernel("0.5", "-0.5"), 2), (kernel("0.5", "0.5", used=True), 2)]
)
def test_only_equal_numbers_without_other_uses_are_put_in_at_once(source: str, left: int) -> None:
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    assert choices(check_same(source, merge_masks, [x, np.zeros_like(x), np.zeros_like(x)])) == left
