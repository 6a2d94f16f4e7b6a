"""The meaning of the nv level: shared memory, copies that land when somebody waits, and what threads may not do."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from nv_layouts import Array

from tessera.errors import EffectError, RaceError, ShapeError
from tessera.targets import text
from tessera.targets.cuda.interpreter.nv import run_nv_kernel

LAYOUT = "#nv.layout<[32:_], [64:1*1]>"
TILE = f"tensor<1x64xf32, {LAYOUT}>"
ROW = "!nv.shared<1x64xf32, 128>"
RING = "!nv.shared<3x1x64xf32, 128>"
VIEW = "!tile.view<2, f32, global>"


def run(body: str, *values: Any, seed: int | None = None, grid: str = "1") -> None:
    """Runs a function with this body; its arrays are %x and %y, `%c7` is the number 7."""
    known = sorted(set(re.findall(r"%c(\d+)\b", body)))
    constants = "\n".join(f"%c{name} = arith.constant {name} : index" for name in known)
    head = f"nv.func @f(%x: {VIEW}, %y: {VIEW}) outputs 1 shapes [[M, N], [K, L]] grid [{grid}] threads 32"
    run_nv_kernel(text.read(f"{head} {{\n{constants}\n{body}\nnv.return\n}}"), "f", list(values), seed=seed)


def array(rows: int, columns: int = 64) -> Array:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)


COPY = f"nv.copy_async %x[%c0, %c0], %s : {VIEW}, {ROW}"
READ = f"%t = nv.read %s[0, 0] : {ROW} -> {TILE}\ntile.store %t, %y[%c0, %c0] : {TILE}, {VIEW}"
ALLOC = f"%s = nv.alloc : {ROW}"


def test_copies_land_when_they_are_waited_for() -> None:
    x, y = array(1), np.zeros((1, 64), np.float32)
    run("\n".join([ALLOC, COPY, "nv.commit", "nv.wait 0", READ]), x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("between", ["nv.commit\nnv.barrier", "nv.commit\nnv.wait 1", "nv.wait 0"])
def test_a_copy_that_nobody_waited_for_is_not_there(between: str) -> None:
    x, y = array(1), np.zeros((1, 64), np.float32)
    run("\n".join([ALLOC, COPY, between, READ]), x, y)
    assert np.isnan(y).all()
    # With a seed what is not there is random, and different every time.
    run("\n".join([ALLOC, COPY, between, READ]), x, y, seed=1)
    assert np.isfinite(y).all()
    assert (y != x).any()


def test_fresh_memory_holds_nothing() -> None:
    y = np.zeros((1, 64), np.float32)
    run(f"{ALLOC}\n{READ}", array(1), y)
    assert np.isnan(y).all()


def test_groups_land_in_order() -> None:
    """Three slots, two of them under way while the third is read."""
    body = f"""
%r = nv.alloc : {RING}
%c64f = arith.constant 64 : index
scf.for %i = %c0 to %c2 step %c1 {{
  %s = nv.slot %r[%i] : {RING} -> {ROW}
  %at = arith.addi %i, %c0 : index
  nv.copy_async %x[%at, %c0], %s : {VIEW}, {ROW}
  nv.commit
}}
scf.for %i = %c0 to %c5 step %c1 {{
  nv.wait 1
  %n = arith.remsi %i, %c3 : index
  %s = nv.slot %r[%n] : {RING} -> {ROW}
  %t = nv.read %s[0, 0] : {ROW} -> {TILE}
  tile.store %t, %y[%i, %c0] : {TILE}, {VIEW}
  %next = arith.addi %i, %c2 : index
  %m = arith.remsi %next, %c3 : index
  %free = nv.slot %r[%m] : {RING} -> {ROW}
  nv.copy_async %x[%next, %c0], %free : {VIEW}, {ROW}
  nv.commit
}}"""
    x, y = array(5), np.zeros((5, 64), np.float32)
    for seed in (None, 0):
        run(body, x, y, seed=seed)
        np.testing.assert_array_equal(y, x)


def test_copies_are_padded_with_zeros_and_may_turn() -> None:
    body = f"""
%s = nv.alloc : !nv.shared<4x64xf32, 128>
nv.copy_async %x[%c1, %c0], %s transposed : {VIEW}, !nv.shared<4x64xf32, 128>
nv.commit
nv.wait 0
%t = nv.read %s[1, 2] transposed : !nv.shared<4x64xf32, 128> -> tensor<4x3xf32, #nv.layout<[32:_], [12:0*1]>>
tile.store %t, %y[%c0, %c0] : tensor<4x3xf32, #nv.layout<[32:_], [12:0*1]>>, {VIEW}"""
    x, y = array(5, 3), np.full((4, 3), np.nan, np.float32)
    run(body, x, y)
    whole = np.zeros((4, 64), np.float32)
    whole[:3, :4] = x[1:].T
    np.testing.assert_array_equal(y, whole[1:4, 2:6].T)


WRITE = f"%v = tile.load %x[%c0, %c0] : {VIEW} -> {TILE}\nnv.write %v, %s : {TILE}, {ROW}"


def test_what_was_written_is_read_after_a_barrier() -> None:
    x, y = array(1), np.zeros((1, 64), np.float32)
    run("\n".join([ALLOC, WRITE, "nv.barrier", READ]), x, y)
    np.testing.assert_array_equal(y, x)
    with pytest.raises(RaceError, match="read that was written since the last barrier") as caught:
        run("\n".join([ALLOC, WRITE, READ]), x, y)
    assert caught.value.span is not None


@pytest.mark.parametrize("writer", [WRITE, COPY])
def test_what_others_read_is_not_overwritten(writer: str) -> None:
    x, y = array(1), np.zeros((1, 64), np.float32)
    with pytest.raises(RaceError, match="written that was read since the last barrier"):
        run("\n".join([ALLOC, READ, writer]), x, y)
    run("\n".join([ALLOC, READ, "nv.barrier", writer]), x, y)


def test_slots_are_counted() -> None:
    with pytest.raises(ShapeError, match="tile 3 of 3"):
        run(f"%r = nv.alloc : {RING}\n%s = nv.slot %r[%c3] : {RING} -> {ROW}", array(1), array(1))


def test_programs_do_not_share_memory() -> None:
    """Each block has shared memory of its own, in any order."""
    body = f"""
%i = tile.program_id 0
{ALLOC}
%v = tile.load %x[%i, %c0] : {VIEW} -> {TILE}
nv.write %v, %s : {TILE}, {ROW}
nv.barrier
%t = nv.read %s[0, 0] : {ROW} -> {TILE}
tile.store %t, %y[%i, %c0] : {TILE}, {VIEW}"""
    x, y = array(6), np.zeros((6, 64), np.float32)
    run(body, x, y, grid="M", seed=3)
    np.testing.assert_array_equal(y, x)


def test_products_round_once() -> None:
    source = """
!a = tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
!b = tensor<16x8xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8]>>
!c = tensor<16x8xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8]>>
nv.func @f(%x: !tile.view<2, bf16, global>, %w: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>)
    outputs 0 shapes [[16, 16], [16, 8], [16, 8]] grid [1] threads 32 {
  %z = arith.constant 0 : index
  %a = tile.load %x[%z, %z] : !tile.view<2, bf16, global> -> !a
  %b = tile.load %w[%z, %z] : !tile.view<2, bf16, global> -> !b
  %c = tile.load %y[%z, %z] : !tile.view<2, f32, global> -> !c
  %d = nv.mma %a, %b, %c : !a, !b, !c -> !c
  tile.store %d, %y[%z, %z] : !c, !tile.view<2, f32, global>
  nv.return
}"""
    chance = np.random.default_rng(0)
    x, w = (chance.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((16, 16), (16, 8)))
    y = chance.standard_normal((16, 8)).astype(np.float32)
    wanted = (x.astype(np.float64) @ w.astype(np.float64) + y).astype(np.float32)
    run_nv_kernel(text.read(source), "f", [x, w, y])
    np.testing.assert_array_equal(y, wanted)


def test_arrays_that_are_written_must_be_writable() -> None:
    y = np.zeros((1, 64), np.float32)
    y.flags.writeable = False
    with pytest.raises(EffectError, match="argument 1 of @f"):
        run(f"{ALLOC}\n{READ}", array(1), y)
