"""The model of agents: it orders blocks as an H200 did, keeps to what fits, and reads programs as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tessera as ts
from tessera import Schedule, stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.hopper.modelled_work import work_of
from tessera.targets.cuda.lower.multiprocessor_model import (
    ALL_REGISTERS,
    PREPARED_SLOTS,
    PREPARER_REGISTERS,
    THREADS,
    BlockShape,
    ModelledDot,
    ModelledIteration,
    ModelledRing,
    Traced,
    Work,
    best_by_consumers,
    blocks,
    fits,
    instance_clocks,
    iteration_clocks,
    preparer_groups,
    preparing_registers,
    ranked,
    registers,
    slots,
    waves,
    widest_dot,
)
from tessera.transforms.pipelining.warp_specialize import PREPARED_DEPTH

MULTIPROCESSORS = 132
SOFTMAX = (Work("n", 1), Work("n", 1), Work("n", 1, 1), Work("n", 1), Work("n", 0.5))
PROBE = (128, 112, 48)
GEMM = Traced(
    (ModelledIteration(("k",), (ModelledDot("n", "k", loaded=True),)),),
    (ModelledRing("m", "k", True), ModelledRing("k", "n", True)),
)


OF_BYTES = Traced(
    GEMM.iterations,
    (ModelledRing("m", "k", True), ModelledRing("k", "n", True, 1), ModelledRing("k", "n", True, prepared=4.0)),
)
"""A product whose right operand is computed of bytes."""


def attention(width: int, *more: Work) -> Traced:
    dots = (ModelledDot("n", width, loaded=True), ModelledDot(width, "n", loaded=False))
    rings = (ModelledRing("m", width, False), ModelledRing("n", width, True), ModelledRing("n", width, True))
    return Traced((ModelledIteration(("n",), dots, SOFTMAX + more, 2),), rings)


def clocks(traced: Traced, block: tuple[int, ...], instances: int) -> float:
    whole = BlockShape(*block, *(64,) * (3 - len(block)))
    assert fits(traced, whole)
    return waves(instances, MULTIPROCESSORS) * instance_clocks(traced, whole)


def rows(batch: int, length: int, block: tuple[int, ...]) -> int:
    return batch * -(-length // block[0])


def gemm_programs(m: int, n: int, block: tuple[int, ...]) -> int:
    return -(-m // block[0]) * -(-n // block[1])


@pytest.mark.parametrize(
    ("width", "batch", "length", "faster", "slower"),
    [
        (128, 64, 2048, (128, 128), (192, 80)),
        (128, 132, 1024, (128, 128), (192, 64)),
        (128, 132, 4096, (128, 128), (128, 64)),
        (128, 512, 2048, (192, 80), (192, 48)),
        (64, 132, 4096, (192, 128), (128, 128)),
        (64, 132, 4096, (256, 64), (192, 96)),
        (64, 132, 1024, (256, 64), (192, 128)),
        (64, 64, 2048, (256, 64), (192, 128)),
        (64, 64, 2048, (192, 128), (128, 128)),
        (64, 64, 2048, (128, 128), (64, 128)),
    ],
)
def test_attention_is_ordered_as_it_was_measured(
    width: int, batch: int, length: int, faster: tuple[int, ...], slower: tuple[int, ...]
) -> None:
    traced = attention(width)
    assert clocks(traced, faster, rows(batch, length, faster)) < clocks(traced, slower, rows(batch, length, slower))


def test_tiles_that_threads_load_take_registers() -> None:
    bias = attention(64, Work("n", 1, loaded=2))
    assert fits(attention(64), BlockShape(192, 128, 64))
    assert not fits(bias, BlockShape(192, 128, 64))
    assert fits(bias, BlockShape(192, 96, 64))
    assert clocks(bias, (192, 96), 132) > clocks(attention(64), (192, 96), 132)


@pytest.mark.parametrize(
    ("m", "n", "faster", "slower"),
    [(4096, 4096, (128, 256, 64), (256, 128, 64)), (512, 4096, (128, 128, 64), (128, 256, 64))],
)
def test_products_are_ordered_as_they_were_measured(
    m: int, n: int, faster: tuple[int, ...], slower: tuple[int, ...]
) -> None:
    assert clocks(GEMM, faster, gemm_programs(m, n, faster)) < clocks(GEMM, slower, gemm_programs(m, n, slower))


@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [(4096, 4096, (128, 256, 64)), (512, 4096, (128, 128, 64)), (16384, 64, (128, 64, 64)), (64, 16384, (64, 128, 64))],
)
def test_products_get_blocks_that_fill_the_machine(m: int, n: int, expected: tuple[int, ...]) -> None:
    assert ranked(GEMM, lambda block: gemm_programs(m, n, block), MULTIPROCESSORS)[0] == expected


def test_a_large_product_gets_a_large_block() -> None:
    best = ranked(GEMM, lambda block: gemm_programs(8192, 14336, block), MULTIPROCESSORS)[0]
    assert best.m * best.n >= 128 * 256
    assert best.k == 64


def test_instances_that_share_columns_have_many_of_them() -> None:
    """Not only rows count: narrow blocks take few clocks, and are many."""
    for traced in (GEMM, OF_BYTES):
        first = next(iter(best_by_consumers(traced).values()))
        assert first.m * first.n >= 128 * 128


@pytest.mark.parametrize("consumers", [1, 2, 3, 4])
def test_preparers_have_registers_beside_consumers(consumers: int) -> None:
    for columns in (64, 128, 200):
        groups = preparer_groups(consumers, columns)
        copies, prepares, multiplies = preparing_registers(consumers, groups)
        assert THREADS * (copies + groups * prepares + consumers * multiplies) <= ALL_REGISTERS
        assert prepares >= PREPARER_REGISTERS
        assert all(registers % 8 == 0 for registers in (copies, prepares, multiplies))


def test_operands_that_are_computed_take_shared_memory_and_time() -> None:
    assert PREPARED_SLOTS == PREPARED_DEPTH
    block = BlockShape(128, 128, 64)
    assert fits(OF_BYTES, block)
    (iteration,) = OF_BYTES.iterations
    assert iteration_clocks(GEMM, iteration, block) < iteration_clocks(OF_BYTES, iteration, block)
    assert not fits(OF_BYTES, BlockShape(256, 128, 64)), "a dot of four consumers beside a preparer is narrower"


@pytest.mark.parametrize("width", [16, 32, 64, 80, 96, 128, 160, 192, 256])
def test_every_width_up_to_256_has_blocks(width: int) -> None:
    traced = attention(width)
    best = best_by_consumers(traced)
    first = next(iter(best.values()))
    assert first.m >= 128
    assert first.n >= 64
    assert 1 in best
    assert registers(traced, first) <= 240


def test_wider_rows_than_registers_have_none() -> None:
    assert not list(blocks(attention(512)))


def test_what_fits_is_what_was_seen_to_fit() -> None:
    # 192 × 240 and 192 × 224 are refused by the assembler: one instruction needs more than all threads have at first.
    assert fits(GEMM, BlockShape(192, 192, 64))
    assert not fits(GEMM, BlockShape(192, 224, 64))
    assert [widest_dot(consumers) for consumers in (1, 2, 3, 4)] == [256, 256, 200, 136]
    assert fits(attention(128), BlockShape(192, 80, 64))
    assert not fits(attention(128), BlockShape(192, 96, 64))
    assert fits(attention(64), BlockShape(256, 64, 64))
    assert not fits(attention(64), BlockShape(256, 80, 64))


def test_rings_are_as_deep_as_there_is_room() -> None:
    assert slots(attention(64), BlockShape(192, 128, 64)) == (2, 4)
    assert slots(attention(128), BlockShape(128, 128, 64)) == (2, 2)
    assert slots(attention(256), BlockShape(128, 64, 64)) == (1, 2)
    assert slots(attention(256), BlockShape(128, 96, 64)) is None


# Reading programs


def read(kernel: Any, *shapes: tuple[int, ...] | int, dtype: Any = ts.bf16, **static: Any) -> Traced | None:
    arrays = [shape if isinstance(shape, int) else ts.empty(shape, dtype) for shape in shapes]
    made = kernel.with_schedule(Schedule(block=PROBE)).lower(*arrays, **static)
    function = symbol_in(made.module.clone(), made.name, tile.FuncOp)
    return work_of(function, {PROBE[0]: "m", PROBE[1]: "n", PROBE[2]: "k"}, range(len(function.arguments)))


def test_attention_is_read_as_two_products_and_a_softmax() -> None:
    traced = read(stdlib.attention, *[(2, 256, 64)] * 3)
    assert traced is not None
    (iteration,) = traced.iterations
    assert iteration.steps == ("n",)
    assert iteration.dots == (ModelledDot("n", 64, loaded=True), ModelledDot(64, "n", loaded=False))
    assert sum(one.instructions for one in iteration.work) == 4.5
    assert sum(one.functions for one in iteration.work) == 1
    assert iteration.reductions == 2
    assert traced.rings == (ModelledRing("m", 64, False), ModelledRing("n", 64, True), ModelledRing("n", 64, True))
    assert traced.axes == {"m", "n"}


def test_masks_are_for_few_turns_and_functions_for_all() -> None:
    plain, masked, capped = (
        read(stdlib.attention, *[(2, 256, 64)] * 3, **more)
        for more in ({}, {"mask": stdlib.causal}, {"score": stdlib.soft_cap})
    )
    assert plain is not None
    assert masked is not None
    assert capped is not None
    # A mask lets agents leave loops by themselves; but most turns all of them need.
    assert [iteration.ordered for iteration in (*plain.iterations, *masked.iterations, *capped.iterations)] == [
        True,
        True,
        True,
    ]
    assert masked.iterations == tuple(replace(iteration, clipped=True) for iteration in plain.iterations)
    more, fewer = (
        [sum(getattr(one, name) for one in traced.iterations[0].work) for name in ("instructions", "functions")]
        for traced in (capped, plain)
    )
    assert more[0] > fewer[0]
    assert more[1] > fewer[1]


def test_windows_are_read_as_bands() -> None:
    plain, banded = (
        read(kernel, *[(2, 256, 64)] * 3, *more)
        for kernel, more in ((stdlib.attention, ()), (stdlib.window_attention, (11,)))
    )
    assert plain is not None
    assert banded is not None
    assert [iteration.banded for iteration in (*plain.iterations, *banded.iterations)] == [False, True]
    assert plain.iterations == tuple(
        replace(iteration, banded=False, ordered=True, clipped=False) for iteration in banded.iterations
    )


def test_three_agents_hide_more_where_they_begin_one_after_the_other() -> None:
    plain = attention(128)
    ordered = replace(plain, iterations=tuple(replace(iteration, ordered=True) for iteration in plain.iterations))
    for block, faster in (BlockShape(192, 80, 64), True), (BlockShape(128, 128, 64), False):
        clocks = [iteration_clocks(traced, traced.iterations[0], block) for traced in (plain, ordered)]
        assert (clocks[1] < clocks[0]) == faster
    assert next(iter(best_by_consumers(ordered).values()))[:2] == (192, 80)
    # With more instructions than functions, two hide more, too.
    busy = replace(
        ordered,
        iterations=tuple(replace(iteration, work=(*iteration.work, Work("n", 6))) for iteration in ordered.iterations),
    )
    alone = replace(busy, iterations=tuple(replace(iteration, ordered=False) for iteration in busy.iterations))
    clocks = [iteration_clocks(traced, traced.iterations[0], BlockShape(128, 128, 64)) for traced in (busy, alone)]
    assert clocks[0] < clocks[1]


def test_bands_get_blocks_that_waste_little_at_their_ends() -> None:
    plain = attention(128)
    banded = replace(plain, iterations=tuple(replace(iteration, banded=True) for iteration in plain.iterations))
    best = [next(iter(best_by_consumers(traced).values())) for traced in (plain, banded)]
    assert [block[:2] for block in best] == [(128, 128), (192, 64)]


def test_loops_that_end_with_rows_waste_little_there() -> None:
    """On an H200, causal attention of 2048 to 16384 keys was fastest so."""
    plain = attention(128)
    causal = replace(
        plain, iterations=tuple(replace(iteration, ordered=True, clipped=True) for iteration in plain.iterations)
    )
    best = best_by_consumers(causal)
    assert next(iter(best.values()))[:2] == (192, 64)
    assert best[2][:2] == (128, 128)


def test_a_product_of_two_matrices_is_read_with_its_depth() -> None:
    assert read(stdlib.gemm[2, 2], *[(256, 256)] * 3) == GEMM


def test_products_of_wide_numbers_are_not_for_agents() -> None:
    assert read(stdlib.gemm[2, 2], *[(256, 256)] * 3, dtype=ts.f32) is None


def test_a_bias_is_read_as_what_threads_load() -> None:
    traced = read(stdlib.bias_attention, *[(2, 256, 64)] * 3, (2, 256, 256))
    assert traced is not None
    assert [one for one in traced.iterations[0].work if one.loaded] == [Work("n", 1, loaded=2)]
    assert len(traced.rings) == 3


def test_without_products_there_is_nothing_to_choose() -> None:
    assert read(stdlib.softmax, (256, 64)) is None
