"""Sums along rows that are finished behind loops on sm_90a."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_options import gpu
from ptx_checks import check_clean
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import golden_kernels
import tessera as ts
from tessera import Schedule, stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered, lower_kernel
from tessera.targets.cuda.hopper.deferred_row_reduce import defer_row_reductions
from tessera.targets.cuda.hopper.warp_groups_to_nv import lower_warp_groups
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma

FOLDER = golden_kernels.FOLDER / "pipe"


def lowered(name: str) -> tuple[ModuleOp, nv.FuncOp]:
    module = text.read(FOLDER.joinpath(f"{name}.pipe").read_text("utf-8"))
    lower_warp_groups(module, name)
    return module, symbol_in(module, name, nv.FuncOp)


def in_loops(function: nv.FuncOp, kind: type[Any]) -> list[Any]:
    loops = [op for op in function.walk() if isinstance(op, scf.ForOp)]
    inner = [loop for loop in loops if not any(isinstance(op, scf.ForOp) for op in loop.body.walk())]
    return [op for loop in inner for op in loop.body.walk() if isinstance(op, kind)]


# Sums along rows

SUMS = """
#sums = #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>
#row = #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>
!tile = tensor<64x16xf32, #sums>
!row = tensor<64xf32, #row>
!matrix = !tile.view<2, f32, global>
!vector = !tile.view<1, f32, global>

nv.func @f(%x: !matrix, %y: !vector, %z: !vector) outputs 0 shapes [[M, N], [M], [M]] grid [1] threads 128 {
  %0 = arith.constant 0 : index
  %16 = arith.constant 16 : index
  %n = tile.dim %x, 1 : !matrix
  %nothing = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %zeros = tile.full %nothing : !row
  %ones = tile.full %one : !row
  %y0 = tile.load %y[%0] : !vector -> !row
  %many = arith.cmpi sgt, %n, %16 : index
  %first = BEGIN
  %sum = scf.for %i = %0 to %n step %16 iter_args(%s = %first) -> (!row) {
    %t = tile.load %x[%0, %i] : !matrix -> !tile
    %less = scf.if %many -> (!row) {
      %product = tile.ew<mul> FACTORS : !row, !row -> !row
      scf.yield %product : !row
    } else {
      scf.yield %s : !row
    }
    %here = tile.reduce<sum> %t, 1 : !tile -> !row
    %next = tile.ew<add> ADDED : !row, !row -> !row
    scf.yield %next : !row
  }
  tile.store %sum, %z[%0] : !row, !vector
  nv.return
}
"""


def sums(begin: str = "tile.ew<mul> %zeros, %y0 : !row, !row -> !row", **changes: str) -> ModuleOp:
    given = {"FACTORS": "%s, %y0", "ADDED": "%less, %here"} | changes
    source = SUMS.replace("BEGIN", begin)
    for name, value in given.items():
        source = source.replace(name, value)
    return text.read(source)


def folded(module: ModuleOp, columns: int) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(columns)
    # Few digits, so that sums are the same in every order.
    x = (chance.integers(-8, 9, (64, columns)) / 8).astype(np.float32)
    y = (chance.integers(1, 3, 64) / 2).astype(np.float32)
    z = np.full(64, np.nan, np.float32)
    run_warpgroups(module, "f", [x, y, z], blocks=1)
    return z


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"FACTORS": "%y0, %s", "ADDED": "%here, %less"},
        {"begin": "tile.ew<add> %zeros, %zeros : !row, !row -> !row", "FACTORS": "%s, %ones"},
    ],
)
def test_sums_are_finished_behind_loops(changes: dict[str, str]) -> None:
    begin = changes.get("begin", "tile.ew<mul> %zeros, %y0 : !row, !row -> !row")
    others = {name: value for name, value in changes.items() if name != "begin"}
    before, after = sums(begin, **others), sums(begin, **others)
    function = symbol_in(after, "f", nv.FuncOp)
    defer_row_reductions(function)
    text.verify(after)
    late = "add" not in begin
    assert bool(in_loops(function, tile.ReduceOp)) == (not late)
    assert sum(isinstance(op, tile.ReduceOp) for op in function.walk()) == 1
    assert len(in_loops(function, wgmma.PartialOp)) == late
    for columns in (0, 16, 48):
        np.testing.assert_array_equal(folded(after, columns), folded(before, columns))
    check_clean(compile_lowered(after, "f").ptx, "sm_90a")


def test_a_loop_may_begin_with_the_sum_of_a_tile() -> None:
    begin = """tile.reduce<sum> %t0, 1 : !tile -> !row"""
    source = SUMS.replace("%first = BEGIN", f"%t0 = tile.load %x[%0, %0] : !matrix -> !tile\n  %first = {begin}")
    source = source.replace("FACTORS", "%s, %y0").replace("ADDED", "%less, %here")
    before, after = text.read(source), text.read(source)
    function = symbol_in(after, "f", nv.FuncOp)
    defer_row_reductions(function)
    text.verify(after)
    assert sum(isinstance(op, wgmma.PartialOp) for op in function.walk()) == 2
    np.testing.assert_array_equal(folded(after, 48), folded(before, 48))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tile.ew<mul> FACTORS", "tile.ew<max> FACTORS"),
        ("FACTORS", "%s, %s"),
        ("scf.yield %next : !row", "tile.store %next, %z[%0] : !row, !vector\n    scf.yield %next : !row"),
        (
            "scf.yield %next : !row",
            "%more = tile.ew<add> %next, %here : !row, !row -> !row\n    scf.yield %more : !row",
        ),
        ("BEGIN", "tile.load %y[%0] : !vector -> !row"),
    ],
)
def test_sums_that_are_looked_at_stay(old: str, new: str) -> None:
    source = SUMS.replace(old, new).replace("BEGIN", "tile.ew<mul> %zeros, %y0 : !row, !row -> !row")
    module = text.read(source.replace("FACTORS", "%s, %y0").replace("ADDED", "%less, %here"))
    before = text.write(module)
    defer_row_reductions(symbol_in(module, "f", nv.FuncOp))
    assert text.write(module) == before


def test_attention_adds_up_its_weights_without_meeting() -> None:
    _, function = lowered("attention")
    assert not [op for op in in_loops(function, tile.ReduceOp) if op.kind.data == "sum"]
    assert [op.kind.data for op in in_loops(function, wgmma.PartialOp)] == ["sum"]


def test_one_agent_alone_finishes_them_in_every_turn() -> None:
    for rows, late in ((64, False), (128, True)):
        given = [ts.empty((2, 512, 64), ts.bf16)] * 3
        made = stdlib.attention.with_schedule(Schedule(block=(rows, 64))).lower(*given)
        module = lower_kernel(made.module, made.name, gpu(row_aligned=range(4)))[0]
        function = symbol_in(module, made.name, nv.FuncOp)
        sums = [op for op in in_loops(function, tile.ReduceOp) if op.kind.data == "sum"]
        assert (not sums) == late
