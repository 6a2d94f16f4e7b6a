"""Checks that CTAs of a cluster multicast tiles that are the same for all of them, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import (
    DEPTH,
    LENGTHS,
    MATMULS,
    attention,
    check_partitions,
    lib,
    machines,
    numbers,
    prepared,
    traced,
)
from rewritten_programs import rewritten
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from tessera import stdlib
from tessera.errors import RaceError
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.common.attributes import SizesAttr
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.multicast_loads import multicast_loads
from tessera.transforms.pipelining.warp_specialize import warp_specialize


def shared_of(function: tile.FuncOp) -> list[str | None]:
    """The names of rings that are shared."""
    rings = [op for op in function.body.block.ops if isinstance(op, pipe.RingOp)]
    return [op.result.name_hint for op in rings if op.multicast is not None]


def give(function: tile.FuncOp, consumers: int = 2, depth: int = 2, cluster: int = 2, bands: bool = True) -> int:
    assert warp_specialize(function, consumers=consumers, depth=depth, bands=bands, cluster=cluster)
    found = multicast_loads(function)
    insert_waits(function)
    return found


def gemm(depth: int, rows: int = 4, columns: int = 3) -> tuple[ModuleOp, list[object]]:
    """One with a bias, on a grid that may have program instances without rows."""
    return traced(
        lib.gemm[rows, columns],
        [numbers(53, depth), numbers(depth, 21), numbers(21), numbers(53, 21)],
        epilogue=lib.gelu,
    )


@pytest.mark.quick
@pytest.mark.parametrize("depth", LENGTHS)
@pytest.mark.parametrize(("cluster", "consumers", "slots"), [(2, 2, 2), (2, 3, 3), (4, 1, 2)])
def test_matmuls_give_the_same_bits(depth: int, cluster: int, consumers: int, slots: int) -> None:
    module, given_ = gemm(depth)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(module, lambda function: give(function, consumers, slots, cluster), given_)
    assert shared_of(function) == ["b_ring"]
    assert pipe.cluster_of(function) == cluster


@pytest.mark.quick(1)
@pytest.mark.parametrize("keys", [0, 41])
def test_instances_side_by_side_share_keys_and_values(keys: int) -> None:
    """Queries are an instance's own; there are three blocks of them, for three CTAs."""
    module, given_ = attention(stdlib.attention)(keys)
    module, function, _ = rewritten(module, prepared)
    function.properties["grid"] = SizesAttr((3, 2))
    function = check_partitions(module, lambda function: give(function, cluster=3, bands=False), given_)
    assert shared_of(function) == ["k_ring", "v_ring"]


def test_instances_of_different_lengths_form_no_clusters() -> None:
    module, _ = attention(stdlib.attention, mask=stdlib.causal)(41)
    module, _, _ = rewritten(module, prepared)
    _, function, said = rewritten(module, lambda function: give(function, cluster=3, bands=False))
    assert (said, pipe.cluster_of(function), shared_of(function)) == (0, 1, [])


def test_clusters_that_do_not_come_out_even_are_not_formed() -> None:
    module, _ = MATMULS["gemm"](DEPTH)
    module, _, _ = rewritten(module, prepared)
    _, function, said = rewritten(module, give)
    assert (said, pipe.cluster_of(function)) == (0, 1)


def test_a_cta_alone_shares_nothing() -> None:
    module, _, _ = rewritten(gemm(DEPTH)[0], prepared)
    _, function, said = rewritten(module, lambda function: give(function, cluster=1))
    assert (said, "cluster" in function.attributes) == (0, False)


def test_what_is_not_the_same_cannot_be_shared() -> None:
    """The interpreter refuses tiles that the first CTA of the cluster has not copied."""

    def share_all(function: tile.FuncOp) -> None:
        give(function)
        for op in function.body.block.ops:
            if isinstance(op, pipe.RingOp):
                op.properties["multicast"] = UnitAttr()

    module, given_ = gemm(DEPTH)
    module, _, _ = rewritten(module, prepared)
    module, _, _ = rewritten(module, share_all)
    for machine in machines():
        with pytest.raises(RaceError, match="CTA 1 of a cluster copies another tile than CTA 0"):
            run_kernel(module, "k", given_, machine=machine)


UNEVEN = """
!view = !tile.view<2, f32, global>
tile.func @k(%x: !view, %y: !view) outputs 1 shapes [[8, 4], [8, 4]] grid [2]
  attributes {persistent, cluster = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cta = pipe.cta_id
  %iterations = arith.ITERATIONS
  %ring = pipe.ring multicast : !pipe.ring<2, 8x4xf32>
  pipe.warp_specialize 1 producer {
    %t0 = pipe.pipeline_state %ring : !pipe.ring<2, 8x4xf32> -> !pipe.pipeline_state<2>
    %end = scf.for %i = %c0 to %iterations step %c1 iter_args(%t = %t0) -> (!pipe.pipeline_state<2>) {
      pipe.producer_copy %x[%c0, %c0], %ring[%t] : !view, !pipe.ring<2, 8x4xf32>, !pipe.pipeline_state<2>
      %next = pipe.advance %t : !pipe.pipeline_state<2>
      scf.yield %next : !pipe.pipeline_state<2>
    }
  } consumer {
    %t0 = pipe.pipeline_state %ring : !pipe.ring<2, 8x4xf32> -> !pipe.pipeline_state<2>
    %end = scf.for %i = %c0 to %iterations step %c1 iter_args(%t = %t0) -> (!pipe.pipeline_state<2>) {
      %tile = pipe.consumer_wait %ring[%t] : !pipe.ring<2, 8x4xf32>, !pipe.pipeline_state<2> -> tensor<8x4xf32>
      pipe.consumer_release %ring[%t] : !pipe.ring<2, 8x4xf32>, !pipe.pipeline_state<2>
      %next = pipe.advance %t : !pipe.pipeline_state<2>
      scf.yield %next : !pipe.pipeline_state<2>
    }
  }
  tile.return
}
"""


@pytest.mark.parametrize(
    ("iterations", "said"),
    [
        ("subi %c1, %cta : index", "CTA 0 of a cluster fills a multicast ring 1 times, CTA 1 of it 0"),
        ("addi %c1, %cta : index", "entry 1 of %ring is multicast, and CTA 1 of a cluster copies another tile"),
    ],
)
def test_ctas_of_a_cluster_fill_a_ring_equally(iterations: str, said: str) -> None:
    x = numbers(8, 4).astype("f4")
    with pytest.raises(RaceError, match=said):
        run_kernel(text.read(UNEVEN.replace("ITERATIONS", iterations)), "k", [x, x.copy()])
    # A ring that depends on the CTA is not made multicast.
    plain = UNEVEN.replace("ITERATIONS", iterations).replace("ring multicast", "ring")
    assert rewritten(plain, multicast_loads)[2] == 0
    assert rewritten(plain.replace(iterations, "constant 2 : index"), multicast_loads)[2] == 1


@settings(max_examples=12)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 40), st.integers(1, 3), st.booleans())
def test_grids_of_many_sizes(clusters: int, columns: int, depth: int, slots: int, bands: bool) -> None:
    module, given_ = gemm(depth, 2 * clusters, columns)
    module, _, _ = rewritten(module, prepared)
    check_partitions(module, lambda function: give(function, 2, slots, 2, bands), given_, machines(1))
