"""Checks that stores which wait for the next program instance, and loads that do not wait for dots, change no bits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import (
    DEPTH,
    LENGTHS,
    MATMULS,
    STAGES,
    check_partitions,
    lib,
    machines,
    numbers,
    prepared,
    traced,
)
from rewritten_programs import count, rewritten
from xdsl.dialects import scf

from tessera.ir.pipe.warp_groups import DotStartOp, DotWaitOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.pipelining.defer_epilogue_store import defer_epilogue_stores
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.prefetch_epilogue import prefetch_epilogues
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize


def ready(function: tile.FuncOp, consumers: int = 2, depth: int = 2) -> None:
    """Everything up to where stores wait."""
    pipeline_dots(function)
    assert warp_specialize(function, consumers=consumers, depth=depth, bands=True)
    insert_waits(function)
    sink_into_branches(function)


def both(function: tile.FuncOp, consumers: int = 2, depth: int = 2) -> None:
    ready(function, consumers, depth)
    prefetch_epilogues(function)
    assert defer_epilogue_stores(function)


def stores_of(function: tile.FuncOp) -> list[tile.StoreOp]:
    return [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]


@pytest.mark.quick
@pytest.mark.parametrize("name", MATMULS)
@pytest.mark.parametrize("depth", LENGTHS)
def test_matmuls_give_the_same_bits(name: str, depth: int) -> None:
    module, given_ = MATMULS[name](depth)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(module, both, given_)
    # Behind the first dot, where there are no iterations, and behind all instances.
    late, own, last = stores_of(function)
    around = late.parent_op()
    assert isinstance(around, scf.IfOp)
    before = around.prev_op
    assert isinstance(before, DotStartOp)
    assert not isinstance(own.parent_op(), WarpSpecializeOp)
    end = last.parent_op()
    assert isinstance(end, scf.IfOp)
    assert isinstance(end.parent_op(), WarpSpecializeOp)
    assert isinstance(end.prev_op, scf.ForOp)


@pytest.mark.parametrize("name", STAGES)
def test_accumulators_that_are_looked_at_leave_no_room(name: str) -> None:
    """Between the first dot and the next ones other ops compute: a deferred tile would be in their way."""
    module, _, _ = rewritten(STAGES[name](20)[0], prepared)
    _, function, _ = rewritten(module, ready)
    held = count(function, tile.StoreOp)
    assert not defer_epilogue_stores(function)
    assert count(function, tile.StoreOp) == held


def test_what_may_not_wait_does_not() -> None:
    module, _, _ = rewritten(MATMULS["gemm"](DEPTH)[0], prepared)
    _, function, _ = rewritten(module, ready)
    asked: list[tile.StoreOp] = []

    def refuse(store: tile.StoreOp) -> bool:
        asked.append(store)
        return False

    assert not defer_epilogue_stores(function, refuse)
    assert asked == stores_of(function)[:1]
    assert not prefetch_epilogues(function)


def test_an_instance_that_reads_what_others_store_stores_at_once() -> None:
    module, _, _ = rewritten(MATMULS["gemm and more"](DEPTH)[0], prepared)
    _, function, _ = rewritten(module, ready)
    loads = [op for op in function.body.walk() if isinstance(op, tile.LoadOp)]
    assert loads
    view = stores_of(function)[0].view
    for load in loads:
        read = tile.LoadOp(view, [load.offsets[0], load.offsets[0]], (1, 1))
        block = load.parent_block()
        assert block is not None
        block.insert_op_before(read, load)
    assert not defer_epilogue_stores(function)


def loads_before_waits(function: tile.FuncOp) -> list[bool]:
    """Of the waits for accumulators of loops, whether a load stands right in front."""
    waits = [op for op in function.body.walk() if isinstance(op, DotWaitOp) and isinstance(op.pending.owner, scf.ForOp)]
    return [isinstance(op.prev_op, tile.LoadOp) for op in waits]


@pytest.mark.parametrize("depth", LENGTHS)
def test_a_bias_is_loaded_before_accumulators_are_waited_for(depth: int) -> None:
    module, given_ = MATMULS["gemm and more"](depth)
    module, _, _ = rewritten(module, prepared)

    def give(function: tile.FuncOp) -> None:
        ready(function)
        assert loads_before_waits(function) == [False]
        assert prefetch_epilogues(function, lambda load: False) == 0
        assert prefetch_epilogues(function) == 1
        assert prefetch_epilogues(function) == 0

    assert loads_before_waits(check_partitions(module, give, given_)) == [True]


def test_a_load_does_not_overtake_a_store() -> None:
    module, _, _ = rewritten(MATMULS["gemm and more"](DEPTH)[0], prepared)
    _, function, _ = rewritten(module, ready)
    (load, *_) = (op for op in function.body.walk() if isinstance(op, tile.LoadOp))
    store = stores_of(function)[0]
    block = load.parent_block()
    assert block is not None
    assert store.parent_block() is block
    store.detach()
    store.operands[0] = next(op.result for op in block.ops if isinstance(op, DotWaitOp))
    block.insert_op_before(store, load)
    assert prefetch_epilogues(function) == 0


@settings(max_examples=12)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 40), st.sampled_from([1, 2, 3]), st.integers(1, 3))
def test_grids_of_many_sizes(rows: int, columns: int, depth: int, consumers: int, slots: int) -> None:
    given_: list[Any] = [numbers(53, depth), numbers(depth, 21), numbers(21), numbers(53, 21)]
    module, given_ = traced(lib.gemm[rows, columns], given_, epilogue=lib.gelu)
    module, _, _ = rewritten(module, prepared)
    if slots == 1:
        # Without a second slot, accumulators do not stay in flight.
        _, function, _ = rewritten(module, lambda function: ready(function, consumers, slots))
        assert not defer_epilogue_stores(function)
        return
    check_partitions(module, lambda function: both(function, consumers, slots), given_, machines(1))
