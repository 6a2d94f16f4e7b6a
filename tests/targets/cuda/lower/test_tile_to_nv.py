"""Checks that tile programs mean the same at the nv level: the library's kernels, odd and random ones, masked loops."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import test_cpu_corners as corners
from cpu_runs import copies
from emitted_runs import run as run_emitted
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nv_runs import Array, at_nv_level, at_tile_level, lowered
from random_tile_programs import arguments, program
from test_cpu_lowering import BOUNDS, CASES, instance
from test_cpu_masks import LARGE, SMALL, Size, loop_program
from test_cpu_masks import arguments as mask_arguments

from tessera import Schedule, f32, i8, kernel, tile
from tessera.errors import CompileError
from tessera.ir.tile import dialect as tile_dialect
from tessera.targets import text
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.tile_to_nv import TileToNv

masks: Any = import_module("test_live_iterations")

bf16 = ml_dtypes.bfloat16
WARPS = (1, 2, 4, 8)
EXACT = 1
"""The optimization at which nothing is rounded otherwise than at the tile level."""


def compare(
    module: Any,
    name: str,
    values: list[Any],
    *,
    tolerance: float = 0.0,
    seeds: tuple[int | None, ...] = (None, 3),
    **how: Any,
) -> None:
    """The same at both levels, bit by bit, or up to an error relative to the norm."""
    expected = at_tile_level(module, name, values)
    made = lowered(module, name, **how)
    assert not any(isinstance(op, tile_dialect.FuncOp) for op in made.body.block.ops)
    for seed in seeds:
        found = at_nv_level(made, name, values, seed)
        for one, other in zip(found, expected, strict=True):
            if not tolerance or not one.dtype.name.startswith(("float", "bfloat")):
                np.testing.assert_array_equal(one.view(f"u{one.itemsize}"), other.view(f"u{one.itemsize}"), f"{how}")
                continue
            wide = other.astype(np.float64)
            error = np.linalg.norm(one.astype(np.float64) - wide)
            assert error <= tolerance * np.linalg.norm(wide), f"{how}, seed {seed}"


# The library's kernels


def check(name: str, dtype: Any, m: int, n: int, block: tuple[int, int, int], seed: int, **how: Any) -> None:
    generator = np.random.default_rng(seed)

    def make(*shape: int) -> Array:
        return generator.standard_normal(shape).astype(dtype)

    program_, given_, static = CASES[name](make, m, n, block)
    module, function, values = instance(program_.with_schedule(Schedule(block=block)), given_, static)
    compare(module, function, values, **how)


@pytest.mark.quick
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_means_the_same_at_the_nv_level(name: str, warps: int) -> None:
    stages = {1: 1, 2: 2, 4: None, 8: 4}[warps]
    if warps in (1, 4):
        check(name, np.float32, 37, 29, (16, 8, 8), 1, warps=warps, stages=stages)
    else:
        check(name, bf16, 37, 50, (32, 16, 16), 1, warps=warps, stages=stages, optimization=EXACT)


@pytest.mark.parametrize("name", CASES)
def test_short_code_means_the_same(name: str) -> None:
    check(name, bf16, 37, 50, (32, 16, 16), 1, warps=2, stages=1, optimization=0, tolerance=BOUNDS[np.dtype(bf16)])


@pytest.mark.parametrize("name", CASES)
def test_brief_forms_change_no_more_than_they_may(name: str) -> None:
    for dtype in (bf16, np.float16) if name in ("softmax", "causal_attention") else (bf16,):
        check(name, dtype, 40, 33, (16, 16, 16), 2, warps=2, tolerance=BOUNDS[np.dtype(dtype)])


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=2)
@given(
    st.sampled_from([np.float32, np.float16, bf16]),
    st.integers(0, 40),
    st.integers(1, 40),
    st.tuples(*[st.sampled_from([1, 8, 16, 17, 32, 33])] * 3),
    st.sampled_from(WARPS),
    st.sampled_from([None, 1, 2, 3, 4]),
)
def test_kernels_mean_the_same_for_all_sizes(
    name: str, dtype: Any, m: int, n: int, block: tuple[int, int, int], warps: int, stages: int | None
) -> None:
    check(name, dtype, m, n, block, m, warps=warps, stages=stages, tolerance=BOUNDS[np.dtype(dtype)])


def test_the_compiler_chooses_what_the_schedule_leaves_open() -> None:
    for name in ("softmax", "gemm", "causal_attention", "saxpy"):
        check(name, np.float32, 70, 200, (64, 64, 32), 0, tolerance=BOUNDS[np.dtype(np.float32)])


# Random programs


def check_random(seed: int, warps: int, stages: int) -> None:
    compare(program(seed), "k", arguments(seed), seeds=(None, seed), warps=warps, stages=stages)


@pytest.mark.parametrize("warps", WARPS)
@settings(max_examples=5)
@example(155571, 2)  # loops that follow each other and carry a transposed product
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_random_programs_give_the_same_bits(warps: int, seed: int, stages: int) -> None:
    check_random(seed, warps, stages)


@pytest.mark.acceptance
@pytest.mark.parametrize("warps", WARPS)
@settings(max_examples=500)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_many_random_programs_give_the_same_bits(warps: int, seed: int, stages: int) -> None:
    check_random(seed, warps, stages)


# As PTX


def check_as_ptx(seed: int, warps: int, stages: int) -> None:
    module, given_ = program(seed), arguments(seed)
    values = copies(given_)
    finished = run_emitted(lowered(module, warps=warps, stages=stages), "k", values)
    assert finished.message is None
    found: list[Any] = [value for value in values if isinstance(value, np.ndarray)]
    assert all(np.array_equal(*pair) for pair in zip(found, at_tile_level(module, "k", given_), strict=True))


@settings(max_examples=8)
@example(19596, 1, 1)  # `max.relu.s32`
@given(st.integers(0, 300), st.sampled_from([1, 2]), st.integers(1, 3))
def test_random_programs_give_the_same_bits_as_ptx(seed: int, warps: int, stages: int) -> None:
    check_as_ptx(seed, warps, stages)


@pytest.mark.acceptance
@settings(max_examples=300)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_many_random_programs_give_the_same_bits_as_ptx(seed: int, warps: int, stages: int) -> None:
    check_as_ptx(seed, warps, stages)


# Masks in loops


@pytest.mark.quick
@pytest.mark.parametrize("name", masks.MASKS)
@pytest.mark.parametrize("stages", [3])
def test_masked_loops_with_one_product(name: str, stages: int) -> None:
    """Loops that masks divide go on with the ring where the one before ended."""
    source = text.read(masks.CAUSAL.format(mask=masks.MASKS[name][0]))
    for row, keys in ((0, 30), (17, 70), (40, 70)):
        values = [corners.array(4, 4), corners.array(keys, 4), row, np.zeros((4, 8), np.float32)]
        compare(source, "k", values, seeds=(None,), warps=1, stages=stages)


def check_masks(seed: int, size: Size, warps: int, stages: int) -> None:
    # Small whole numbers: every order of sums gives the same bits. Large tiles fit no single warp.
    warps = max(warps, 4) if size is LARGE else warps
    compare(loop_program(seed, size), "k", mask_arguments(seed, size), seeds=(seed,), warps=warps, stages=stages)


@settings(max_examples=16)
@given(st.integers(0, 10**9), st.sampled_from(WARPS), st.integers(1, 4), st.sampled_from([SMALL, SMALL, LARGE]))
def test_masks_leave_out_nothing_live(seed: int, warps: int, stages: int, size: Size) -> None:
    check_masks(seed, size, warps, stages)


@pytest.mark.acceptance
@settings(max_examples=2000)
@given(st.integers(0, 10**9), st.sampled_from(WARPS), st.integers(1, 4), st.sampled_from([SMALL, SMALL, LARGE]))
def test_masks_leave_out_nothing_live_of_thousands(seed: int, warps: int, stages: int, size: Size) -> None:
    check_masks(seed, size, warps, stages)


# Odd kernels


def run(program_: Any, values: list[Any], static: dict[str, Any] | None = None, *, grid: int = 1, **how: Any) -> None:
    made = program_[grid].lower(*values, **(static or {}))
    compare(made.module, made.name, values, **how)


@kernel
def multiplied(x: Any, w: Any, y: Any, *, m: int, n: int, k: int):
    left, right = tile.load(x, at=(0, 0), shape=(m, k)), tile.load(w, at=(0, 0), shape=(k, n))
    start = tile.load(y, at=(0, 0), shape=(m, n))
    tile.store(y, tile.dot(left, right, start), at=(0, 0))


SUMS = [
    (np.float64, np.float64),
    (np.float32, np.float64),
    (bf16, np.float64),
    (np.float16, np.float16),
    (bf16, np.float32),
    (ml_dtypes.float8_e4m3fn, np.float32),
    (ml_dtypes.float8_e5m2, np.float16),
    (ml_dtypes.float4_e2m1fn, np.float32),
    (np.int8, np.int32),
    (np.int8, np.int8),
    (np.int8, np.int64),
    (np.uint8, np.uint32),
    (np.uint8, np.uint64),
    (np.int16, np.int16),
    (np.int16, np.int64),
    (np.int32, np.int32),
    (np.uint32, np.uint64),
    (np.int64, np.int64),
]


@pytest.mark.parametrize(("dtype", "total"), SUMS, ids=lambda one: np.dtype(one).name)
def test_products_of_all_types(dtype: Any, total: Any) -> None:
    generator = np.random.default_rng(0)
    whole = np.issubdtype(np.dtype(total), np.integer)

    def numbers(*shape: int, dtype: Any = dtype) -> Array:
        if whole:
            info = np.iinfo(dtype)
            return generator.integers(info.min, info.max, shape, dtype, endpoint=True)
        return generator.integers(-2, 3, shape).astype(dtype)

    for m, n, k in ((1, 2, 3), (9, 17, 33), (4, 1, 6), (5, 3, 1)):
        values = [numbers(m, k), numbers(k, n), numbers(m, n, dtype=total)]
        for warps, arch in ((1, "sm_90a"), (4, "sm_80")):
            run(multiplied, values, {"m": m, "n": n, "k": k}, warps=warps, arch=arch)


# The kernels of the cpu level's corners: one row, one column, no axes, operands in place.


@pytest.mark.quick(1)
@pytest.mark.parametrize("warps", [1, 4])
def test_corners(warps: int) -> None:
    array = corners.array
    for m, n in corners.SHAPES:
        static = {"m": m, "n": n}
        x, y, z = array(m, n), np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
        for dtype in (np.float32, bf16):
            run(corners.chained, [array(m, n, dtype=dtype), y], static, warps=warps)
        run(corners.carried, [x, y, z], static, warps=warps)
        run(corners.transposed, [array(n, n), np.zeros((n, n), np.float32)], {"n": n}, warps=warps)
        run(corners.folded, [x, np.zeros(n, np.float32), np.zeros(n, np.float32)], static, warps=warps)
        run(corners.columns, [x, np.zeros((n, m), np.float32), np.zeros(n, np.float32)], static, warps=warps)
        run(corners.outer, [x, y], static, warps=warps)
        run(corners.of_sums, [x, np.zeros(m, np.float32)], static, warps=warps)
        run(corners.rewritten, [x, y], static, warps=warps)
        for which in (1, 5):
            run(corners.branches, [x, y, which], static, warps=warps)
    for n in (1, 5, 16):
        run(corners.numbers, [array(23), np.zeros((), np.float32), np.zeros(1, np.float32)], {"n": n}, warps=warps)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(("m", "k"), [(1, 24), (5, 8), (17, 33)])
def test_a_left_operand_that_a_loop_carries(stages: int, m: int, k: int) -> None:
    given_ = [corners.array(m, k), corners.array(k, k), np.zeros((m, k), np.float32)]
    run(corners.powers, given_, {"m": m, "k": k}, warps=2, stages=stages)


# Loops and branches


@kernel
def nested(x: Any, w: Any, y: Any, turns: int, *, m: int, n: int, k: int):
    """Products in a loop within a loop: copies of the inner one begin anew in every turn of the outer one."""
    total = tile.zeros((m, n), f32)
    for turn in tile.range(0, turns, 1):
        rows = tile.load(x, at=(turn * m, 0), shape=(m, k))
        total = total + tile.sum(rows, keepdims=True)
        for at in tile.range(0, x.shape[1], k):
            total = tile.dot(
                tile.load(x, at=(turn * m, at), shape=(m, k)), tile.load(w, at=(at, 0), shape=(k, n)), total
            )
    tile.store(y, total, at=(0, 0))


@pytest.mark.quick
@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize(("width", "k"), [(1, 8), (8, 8), (9, 8), (30, 8), (60, 24), (150, 24)])
def test_loops_within_loops(stages: int, width: int, k: int) -> None:
    given_ = [corners.array(24, width), corners.array(width, 6), np.zeros((8, 6), np.float32)]
    for turns in (0, 3):
        made = nested[1].lower(*given_, turns, m=8, n=6, k=k)
        compare(made.module, made.name, [*given_, turns], warps=1, stages=stages)


@kernel
def bounded(x: Any, w: Any, y: Any, start: int, stop: int, step: int, *, m: int, k: int):
    """A loop about whose bounds nothing is known, with operands at places that follow from its counter."""
    total = tile.zeros((m, m), f32)
    for at in tile.range(start, stop, step):
        offset = at * 2 - start
        part = tile.load(x, at=(0, offset), shape=(m, k))
        total = tile.dot(part, tile.load(w, at=(offset, 1), shape=(k, m)), total)
    tile.store(y, total, at=(0, 0))


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_loops_of_any_length(stages: int) -> None:
    given_ = [corners.array(9, 40), corners.array(40, 9), np.zeros((9, 9), np.float32)]
    for start, stop, step in ((0, 0, 1), (0, 1, 1), (0, 2, 1), (3, 10, 3), (-7, 30, 5), (9, 2, 4), (0, 100, 7)):
        run(bounded, [*given_, start, stop, step], {"m": 9, "k": 5}, warps=1, stages=stages)


@pytest.mark.quick
@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize(("dtype", "k"), [(np.float32, 24), (bf16, 64), (np.int8, 96), (np.float16, 40)])
def test_deep_products(dtype: Any, k: int, stages: int) -> None:
    """Copies, reads and products of several turns are mixed; the last turn is cut short, or there is none at all."""
    for turns in (0, 1, 3, 8):
        depth = max(1, k * turns - 3)
        given_ = [corners.array(17, depth, dtype=dtype), corners.array(depth, 18, dtype=dtype)]
        total = np.zeros((17, 17), np.int32 if dtype is np.int8 else np.float32)
        made = multiplied_in_turns[1].lower(*given_, total, k * turns, m=17, k=k)
        compare(made.module, made.name, [*given_, total, k * turns], warps=2, stages=stages)


@kernel
def multiplied_in_turns(x: Any, w: Any, y: Any, stop: int, *, m: int, k: int):
    total = tile.load(y, at=(0, 0), shape=(m, m))
    for at in tile.range(0, stop, k):
        left, right = tile.load(x, at=(0, at), shape=(m, k)), tile.load(w, at=(at, 1), shape=(k, m))
        total = tile.dot(left, right, total)
    tile.store(y, total, at=(0, 0))


@kernel
def conditional(x: Any, w: Any, y: Any, which: int, *, m: int, k: int):
    """Products in branches, and loads that only some turns make."""
    total, rows = tile.zeros((m, m), f32), tile.load(x, at=(0, 0), shape=(m, k))
    for at in tile.range(0, w.shape[0], k):
        if at < which:
            total = tile.dot(rows, tile.load(w, at=(at, 0), shape=(k, m)), total)
        else:
            total = total * 2.0 + tile.sum(tile.load(w, at=(at, 0), shape=(k, m)), 0)
    if which > 10:
        tile.store(y, total, at=(0, 0))
    else:
        tile.store(y, total + tile.dot(rows, rows.T), at=(0, 0))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("which", [0, 8, 50])
def test_products_in_branches(stages: int, which: int) -> None:
    given_ = [corners.array(6, 4), corners.array(15, 6), np.zeros((6, 6), np.float32), which]
    run(conditional, given_, {"m": 6, "k": 4}, warps=2, stages=stages)


WHILE = """
tile.func @k(%x: !tile.view<2, f32, global>, %n: index, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[12, 8], [], [12, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %start = tile.full %two : tensor<12x8xf32>
  %sums = tile.reduce<sum> %start, 1 : tensor<12x8xf32> -> tensor<12xf32>
  %a, %b, %c = scf.while (%i = %zero, %p = %start, %q = %sums)
      : (index, tensor<12x8xf32>, tensor<12xf32>) -> (tensor<12x8xf32>, index, tensor<12xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    %r = tile.reduce<max> %p, 1 : tensor<12x8xf32> -> tensor<12xf32>
    scf.condition(%more) %p, %i, %r : tensor<12x8xf32>, index, tensor<12xf32>
  } do {
  ^bb0(%u: tensor<12x8xf32>, %j: index, %v: tensor<12xf32>):
    %next = arith.addi %j, %one : index
    %from = tile.load %x[%j, %zero] : !tile.view<2, f32, global> -> tensor<12x8xf32>
    %column = tile.expand %v, 1 : tensor<12xf32> -> tensor<12x1xf32>
    %all = tile.broadcast %column : tensor<12x1xf32> -> tensor<12x8xf32>
    %w = tile.ew<add> %all, %from : tensor<12x8xf32>, tensor<12x8xf32> -> tensor<12x8xf32>
    scf.yield %next, %w, %v : index, tensor<12x8xf32>, tensor<12xf32>
  }
  %column = tile.expand %c, 1 : tensor<12xf32> -> tensor<12x1xf32>
  %all = tile.broadcast %column : tensor<12x1xf32> -> tensor<12x8xf32>
  %sum = tile.ew<add> %a, %all : tensor<12x8xf32>, tensor<12x8xf32> -> tensor<12x8xf32>
  tile.store %sum, %y[%zero, %zero] : tensor<12x8xf32>, !tile.view<2, f32, global>
  tile.return
}
"""


@pytest.mark.parametrize("warps", WARPS)
def test_loops_that_end_when_a_condition_fails(warps: int) -> None:
    for turns in (0, 1, 4):
        compare(text.read(WHILE), "k", [corners.array(12, 8), turns, np.zeros((12, 8), np.float32)], warps=warps)


VIEWS = """
tile.func @k(%x: !tile.view<3, f32, global>, %w: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[N, 6, 5], [W], [6, 7]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %six = arith.constant 6 : index
  %seven = arith.constant 7 : index
  %n = tile.dim %x, 0 : !tile.view<3, f32, global>
  %s0 = tile.stride %x, 0 : !tile.view<3, f32, global>
  %s1 = tile.stride %x, 1 : !tile.view<3, f32, global>
  %s2 = tile.stride %x, 2 : !tile.view<3, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<6x7xf32>
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %start) -> (tensor<6x7xf32>) {
    %at = arith.muli %i, %s0 : index
    %matrix = tile.view %x offset %at sizes[%six, %five] strides[%s1, %s2]
        : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %left = tile.load %matrix[%zero, %zero] : !tile.view<2, f32, global> -> tensor<6x5xf32>
    %turned = tile.view %w offset %i sizes[%five, %seven] strides[%one, %five]
        : !tile.view<1, f32, global> -> !tile.view<2, f32, global>
    %right = tile.load %turned[%zero, %one] : !tile.view<2, f32, global> -> tensor<5x7xf32>
    %next = tile.dot %left, %right, %acc : tensor<6x5xf32>, tensor<5x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    scf.yield %next : tensor<6x7xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<6x7xf32>, !tile.view<2, f32, global>
  tile.return
}
"""


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_views_that_are_made_in_the_loop(stages: int) -> None:
    for turns in (0, 1, 5):
        values = [corners.array(turns, 6, 5), corners.array(35 + turns), np.zeros((6, 7), np.float32)]
        compare(text.read(VIEWS), "k", values, warps=2, stages=stages)


# Operands


@kernel
def padded(x: Any, y: Any, *, m: int):
    """Products see what a load pads with."""
    ones, twos = tile.load(x, at=(0, 0), shape=(m, m), pad=1.0), tile.load(x, at=(1, 0), shape=(m, m), pad=2.0)
    total = tile.dot(ones, twos.T)
    for at in tile.range(0, 8, 4):
        left = tile.load(x, at=(0, at), shape=(m, m), pad=-1.0)
        total = tile.dot(left, tile.load(x, at=(at, 0), shape=(m, m)), total)
    tile.store(y, total, at=(0, 0))


@kernel
def used_twice(x: Any, w: Any, y: Any, z: Any, *, m: int, k: int):
    """Operands that others use, too: of one product, of several, and of what is no product."""
    total = tile.zeros((m, m), f32)
    for at in tile.range(0, x.shape[1], k):
        left, right = tile.load(x, at=(0, at), shape=(m, k)), tile.load(w, at=(at, 0), shape=(k, m))
        total = tile.dot(left, right, total) + tile.sum(left, keepdims=True)
        both = tile.load(x, at=(0, at), shape=(m, k))
        total = tile.dot(both, both.T, tile.dot(both, right, total))
    transposed = total.T
    tile.store(y, tile.dot(transposed, total) + transposed, at=(0, 0))
    tile.store(z, tile.dot(total, transposed), at=(0, 0))


@pytest.mark.quick
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("warps", WARPS)
def test_operands_that_are_padded_or_used_elsewhere(stages: int, warps: int) -> None:
    run(padded, [corners.array(5, 5), np.zeros((8, 8), np.float32)], {"m": 8}, warps=warps, stages=stages)
    for m, k in ((3, 5), (17, 8)):
        outputs = [np.zeros((m, m), np.float32), np.zeros((m, m), np.float32)]
        given_ = [corners.array(m, 21), corners.array(21, m), *outputs]
        run(used_twice, given_, {"m": m, "k": k}, warps=warps, stages=stages)


# Memory


@kernel
def in_place(x: Any, w: Any, *, m: int, k: int):
    """Operands in memory that the kernel writes, before and after."""
    rows = tile.load(x, at=(0, 0), shape=(m, k))
    total = tile.dot(rows, tile.load(w, at=(0, 0), shape=(k, k)))
    for at in tile.range(0, k, 2):
        tile.store(x, tile.load(x, at=(0, at), shape=(m, 2)) + 1.0, at=(0, at))
        total = tile.dot(tile.load(x, at=(0, 0), shape=(m, k)), tile.load(w, at=(0, 0), shape=(k, k)), total)
    tile.store(x, total, at=(0, 1))
    tile.atomic_max(x, tile.load(x, at=(0, 0), shape=(m, k)) * 2.0, at=(1, 0))


@kernel
def volumes(x: Any, y: Any, z: Any, *, shape: Any):
    """Tiles of three axes."""
    here = tile.load(x, at=(0, 1, 0), shape=shape)
    across = tile.sum(here, 1)
    tile.store(y, tile.transpose(here * across[:, None], 2, 0, 1), at=(0, 0, 1))
    tile.store(z, across + tile.max(tile.sum(here, 2))[:, None], at=(0, 0))


@kernel
def truths(x: Any, y: Any, z: Any, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    mask = (rows > 0) & (rows < 3)
    tile.store(y, mask.T, at=(0, 0))
    tile.store(z, tile.where(mask.T, rows.T, rows.T * 2).to(i8), at=(0, 0))


@pytest.mark.parametrize("warps", WARPS)
def test_memory_of_all_kinds(warps: int) -> None:
    run(in_place, [corners.array(6, 8), corners.array(8, 8)], {"m": 5, "k": 8}, warps=warps, stages=3)
    for shape in ((1, 1, 1), (2, 3, 5), (4, 1, 9)):
        a, b, c = shape
        outputs = [np.zeros((c, a, b + 1), np.float32), np.zeros((a, c), np.float32)]
        run(volumes, [corners.array(a, b, c), *outputs], {"shape": shape}, warps=warps)
    for dtype in (np.int8, np.int32, np.int64, np.uint16):
        x = corners.array(9, 7).astype(np.int64).astype(dtype)
        run(truths, [x, np.zeros((7, 9), np.bool_), np.zeros((7, 9), np.int8)], {"m": 9, "n": 7}, warps=warps)


@kernel
def moved(x: Any, y: Any, *, m: int, n: int):
    tile.store(y, tile.load(x, at=(0, 0), shape=(m, n)).T, at=(0, 0))


MOVED = [np.float64, np.float32, bf16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64, np.int16, np.bool_]


@pytest.mark.parametrize("dtype", MOVED, ids=lambda one: np.dtype(one).name)
def test_every_type_moves(dtype: Any) -> None:
    for m, n in ((1, 1), (5, 7), (32, 16)):
        given_ = (corners.array(m, n) > 0).astype(dtype)
        for x in (given_, np.asfortranarray(given_), given_[::-1, ::-1], np.broadcast_to(given_[:1], (m, n))):
            run(moved, [x, np.zeros((n, m), dtype)], {"m": m, "n": n}, warps=2)


def test_empty_arrays_are_not_touched() -> None:
    for shape in ((0, 0), (0, 5), (5, 0)):
        run(moved, [np.zeros(shape, np.float32), np.zeros(shape[::-1], np.float32)], {"m": 8, "n": 8}, warps=1)
    check("gemm", np.float32, 0, 8, (8, 8, 8), 0, warps=1)


# Asserts


@kernel
def asserted(x: Any, y: Any, least: float, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    tile.assert_(rows * 2 > least, "rows are large")  # noqa: PT009  (a kernel's)
    tile.store(y, rows, at=(0, 0))


def test_asserts_fail_in_the_same_place() -> None:
    values = [corners.array(6, 5), np.zeros((6, 5), np.float32)]
    run(asserted, [*values, -9.0], {"m": 6, "n": 5}, warps=2)
    made = asserted[1].lower(*values, 0.0, m=6, n=5)
    module = lowered(made.module, made.name, warps=2)
    with pytest.raises(CompileError) as expected:
        at_tile_level(made.module, made.name, [*values, 0.0])
    with pytest.raises(CompileError) as found:
        at_nv_level(module, made.name, [*values, 0.0])
    assert str(found.value) == str(expected.value)


# The pass


def test_the_pass_lowers_every_function_of_a_module() -> None:
    module = text.read(VIEWS + VIEWS.replace("@k", "@again"))
    TileToNv(warps=2).apply(text.new_context(), module)
    functions = list(module.body.block.ops)
    assert all(isinstance(function, nv.FuncOp) and function.thread_count == 64 for function in functions)
    assert text.write(text.read(text.write(module))) == text.write(module)


def test_nothing_is_lowered_that_has_no_machine_code() -> None:
    module = text.read(
        """
        tile.func @k(%x: f32) outputs 0 shapes [[]] grid [1] {
          %a = tile.full %x : tensor<4x4xf32>
          tile.debug_print "a", %a {tile.breakpoint} : tensor<4x4xf32>
          tile.return
        }
        """
    )
    before = text.write(module)
    with pytest.raises(CompileError, match="runs in the interpreter only"):
        lowered(module, warps=1)
    assert text.write(module) == before
