"""Checks kernels whose right operands are transposed in shared memory: they give the same bits in every order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import KERNELS, LENGTHS, MATMULS, STAGES, check_partitions, prepared
from random_matmuls import arguments as random_arguments
from random_matmuls import random_program
from rewritten_programs import at_length, count, rewritten

from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe.tile_scheduler import SchedulerFetchOp, SchedulerReadOp
from tessera.ir.pipe.transpose import TransposeSmemOp
from tessera.ir.pipe.warp_groups import ConsumerWaitOp, ProducerCopyOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.pipelining.early_exit_consumers import exit_early
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.transpose_operands import transpose_operands
from tessera.transforms.pipelining.warp_specialize import warp_specialize


def transposed(function: tile.FuncOp, *, consumers: int = 3, depth: int = 2, skews: bool = False) -> None:
    """The passes of warp specialization, with operands of 16 bits and more transposed."""
    if skews:
        pipeline_dots(function)
    assert warp_specialize(function, consumers=consumers, depth=depth)
    transpose_operands(function, bits=(16, 32))
    insert_waits(function)
    exit_early(function)


@pytest.mark.quick(name=["causal"])
@pytest.mark.parametrize("skews", at_length([False, True], True))
@pytest.mark.parametrize("name", at_length(KERNELS, "causal", "soft cap", "sigmoid"))
def test_kernels_give_the_same_bits(name: str, skews: bool) -> None:
    for length in LENGTHS:
        module, arguments = KERNELS[name](length)
        module, _, _ = rewritten(module, prepared)
        function = check_partitions(module, partial(transposed, skews=skews), arguments)
        # What is multiplied from the right as memory has it; keys of attention lie along the depth as they are.
        assert count(function, TransposeSmemOp) > 0


@pytest.mark.quick(1)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("consumers", [1, 2])
def test_other_numbers_of_consumers_and_slots(consumers: int, depth: int) -> None:
    module, arguments = STAGES["causal"](41)
    module, _, _ = rewritten(module, prepared)
    check_partitions(module, partial(transposed, consumers=consumers, depth=depth, skews=depth > 1), arguments)


def test_what_is_transposed() -> None:
    module, _, _ = rewritten(STAGES["causal"](41)[0], prepared)
    _, function, _ = rewritten(module, transposed)
    (partitions,) = (op for op in function.body.block.ops if isinstance(op, WarpSpecializeOp))
    assert partitions.preparer is not None
    # The producer fetches program instances, all others read them; only values are transposed, by the preparer.
    assert [
        type(op)
        for op in partitions.preparer.walk()
        if isinstance(op, SchedulerFetchOp | SchedulerReadOp | ProducerCopyOp | TransposeSmemOp)
    ] == [TransposeSmemOp, SchedulerReadOp]
    rings = {op.result.name_hint: op.result for op in function.body.block.ops if isinstance(op, pipe.RingOp)}
    assert list(rings) == ["q_ring", "k_ring", "v_ring", "v_ring_transposed"]
    assert not [use for use in rings["v_ring"].uses if isinstance(use.operation, ConsumerWaitOp)]


def test_nothing_to_transpose() -> None:
    """Dots of 16 bits read both ways."""

    def rewrite(function: tile.FuncOp) -> bool:
        prepared(function)
        assert not transpose_operands(function, bits=(16,)), "it has no partitions yet"
        assert warp_specialize(function, consumers=3, depth=2)
        return transpose_operands(function)

    for name in MATMULS:
        _, function, said = rewritten(MATMULS[name](41)[0], rewrite)
        assert said is False
        assert count(function, TransposeSmemOp) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_no_bit_of_random_kernels_changes(seed: int, n: int, m: int, consumers: int, depth: int) -> None:
    def rewrite(function: tile.FuncOp) -> None:
        warp_specialize(function, consumers=consumers, depth=depth)
        transpose_operands(function, bits=(32,))

    worlds = [Machine(ctas=2), Machine(ctas=3, chance=np.random.default_rng(seed))]
    check_partitions(random_program(seed), rewrite, random_arguments(n, m), worlds)
