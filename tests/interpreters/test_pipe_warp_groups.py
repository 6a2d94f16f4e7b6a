"""Warp groups that share rings: right kernels give the same in every order, and wrong ones raise an error."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import golden_kernels
from tessera.errors import RaceError
from tessera.interpreters.core.engine import RULES
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels import pipe_warp_groups as meanings
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks
from tessera.ir.pipe import pingpong, warp_groups
from tessera.targets import text

MEANINGS = (meanings,)  # importing the interpreters fills RULES
Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
GEMM = (golden_kernels.FOLDER / "pipe" / "gemm.pipe").read_text(encoding="utf-8")

ATTENTION = """
!view = !tile.view<2, f32, global>
!queries = !pipe.ring<2, 16x6xf32>
!left = !pipe.ring<2, 5x6xf32>
!right = !pipe.ring<3, 5x6xf32>
!of2 = !pipe.pipeline_state<2>
!of3 = !pipe.pipeline_state<3>
!keys = tensor<5x6xf32>
!transposed = tensor<6x5xf32>
!scores = tensor<8x5xf32>
!acc = tensor<8x6xf32>

tile.func @k(%q: !view, %k: !view, %v: !view, %y: !view)
    outputs 1 shapes [[M, 6], [N, 6], [N, 6], [M, 6]] grid [3] attributes {persistent} {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %keys = tile.dim %k, 0 : !view
  %any = arith.cmpi slt, %c0, %keys : index
  %queries = pipe.ring : !queries
  %left = pipe.ring : !left
  %right = pipe.ring : !right
  %first = pipe.cta_id
  %ctas = pipe.cta_count
  %instances = pipe.grid_extent 0
  pipe.warp_specialize 2 producer {
    %q0 = pipe.pipeline_state %queries : !queries -> !of2
    %l0 = pipe.pipeline_state %left : !left -> !of2
    %r0 = pipe.pipeline_state %right : !right -> !of3
    %all:3 = scf.for %instance = %first to %instances step %ctas iter_args(%q1 = %q0, %l1 = %l0, %r1 = %r0)
        -> (!of2, !of2, !of3) {
      %row = arith.muli %instance, %c16 : index
      pipe.producer_copy %q[%row, %c0], %queries[%q1] : !view, !queries, !of2
      %q2 = pipe.advance %q1 : !of2
      %sent:2 = scf.for %j = %c0 to %keys step %c5 iter_args(%l2 = %l1, %r2 = %r1) -> (!of2, !of3) {
        pipe.producer_copy %k[%j, %c0], %left[%l2] : !view, !left, !of2
        pipe.producer_copy %v[%j, %c0], %right[%r2] : !view, !right, !of3
        %l3 = pipe.advance %l2 : !of2
        %r3 = pipe.advance %r2 : !of3
        scf.yield %l3, %r3 : !of2, !of3
      }
      scf.yield %q2, %sent#0, %sent#1 : !of2, !of2, !of3
    }
  } consumer {
    %consumer = pipe.consumer_id
    %mine = arith.muli %consumer, %c8 : index
    %zero = arith.constant 0.0 : f32
    %no_scores = tile.full %zero : !scores
    %no_acc = tile.full %zero : !acc
    %q0 = pipe.pipeline_state %queries : !queries -> !of2
    %l0 = pipe.pipeline_state %left : !left -> !of2
    %r0 = pipe.pipeline_state %right : !right -> !of3
    %all:3 = scf.for %instance = %first to %instances step %ctas iter_args(%q1 = %q0, %l1 = %l0, %r1 = %r0)
        -> (!of2, !of2, !of3) {
      %top = arith.muli %instance, %c16 : index
      %row = arith.addi %top, %mine : index
      %rows = pipe.consumer_wait part %queries[%q1] : !queries, !of2 -> !acc
      %total:3 = scf.if %any -> (!of2, !of3, !acc) {
        %k0 = pipe.consumer_wait %left[%l1] : !left, !of2 -> !keys
        %t0 = tile.trans %k0, [1, 0] : !keys -> !transposed
        %s0 = pipe.dot_start %rows, %t0, %no_scores : !acc, !transposed, !scores -> !pipe.pending<8x5xf32>
        %scores0 = pipe.dot_wait %s0 younger 0 : !pipe.pending<8x5xf32> -> !scores
        pipe.consumer_release %left[%l1] : !left, !of2
        %p0 = tile.ew<exp> %scores0 : !scores -> !scores
        %l2 = pipe.advance %l1 : !of2
        %run:4 = scf.for %j = %c5 to %keys step %c5 iter_args(%l3 = %l2, %r2 = %r1, %p = %p0, %acc = %no_acc)
            -> (!of2, !of3, !scores, !acc) {
          %kj = pipe.consumer_wait %left[%l3] : !left, !of2 -> !keys
          %tj = tile.trans %kj, [1, 0] : !keys -> !transposed
          %s = pipe.dot_start %rows, %tj, %no_scores : !acc, !transposed, !scores -> !pipe.pending<8x5xf32>
          %vj = pipe.consumer_wait %right[%r2] : !right, !of3 -> !keys
          %o = pipe.dot_start %p, %vj, %acc : !scores, !keys, !acc -> !pipe.pending<8x6xf32>
          %scores = pipe.dot_wait %s younger 1 : !pipe.pending<8x5xf32> -> !scores
          pipe.consumer_release %left[%l3] : !left, !of2
          %weights = tile.ew<exp> %scores : !scores -> !scores
          %more = pipe.dot_wait %o younger 0 : !pipe.pending<8x6xf32> -> !acc
          pipe.consumer_release %right[%r2] : !right, !of3
          %l4 = pipe.advance %l3 : !of2
          %r3 = pipe.advance %r2 : !of3
          scf.yield %l4, %r3, %weights, %more : !of2, !of3, !scores, !acc
        }
        %last = pipe.consumer_wait %right[%run#1] : !right, !of3 -> !keys
        %end = pipe.dot_start %run#2, %last, %run#3 : !scores, !keys, !acc -> !pipe.pending<8x6xf32>
        %done = pipe.dot_wait %end younger 0 : !pipe.pending<8x6xf32> -> !acc
        pipe.consumer_release %right[%run#1] : !right, !of3
        %r4 = pipe.advance %run#1 : !of3
        scf.yield %run#0, %r4, %done : !of2, !of3, !acc
      } else {
        scf.yield %l1, %r1, %no_acc : !of2, !of3, !acc
      }
      pipe.consumer_release %queries[%q1] : !queries, !of2
      %q2 = pipe.advance %q1 : !of2
      tile.store %total#2, %y[%row, %c0] : !acc, !view
      scf.yield %q2, %total#0, %total#1 : !of2, !of2, !of3
    }
  }
  tile.return
}
"""


def test_every_op_has_a_meaning() -> None:
    assert [op.name for op in (*warp_groups.OPS, *pingpong.OPS) if op not in RULES] == []


def machine(ctas: int = 3, seed: int | None = None) -> Machine:
    return Machine(ctas=ctas, chance=None if seed is None else np.random.default_rng(seed))


def multiplied(source: str, m: int, n: int, k: int, **options: Any) -> tuple[Array, Array]:
    """The result of a text for a matmul, NaN where nothing was written; and the truth."""
    chance = np.random.default_rng(1)
    a, b = (chance.standard_normal(shape).astype(BF16) for shape in ((m, k), (k, n)))
    out = np.full((m, n), np.nan, BF16)
    module = text.read(source.replace("grid [32, 16]", f"grid [{-(-m // 128)}, {-(-n // 256)}]"))
    run_kernel(module, "gemm", [a, b, out], **options)
    return out, a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize(
    ("shape", "ctas", "seed"),
    [
        ((1, 1, 1), 1, None),
        ((130, 257, 200), 1, None),
        ((130, 257, 200), 3, 0),
        ((260, 300, 330), 2, 1),
        ((260, 300, 64), 9, 2),
        ((7, 300, 0), 3, 3),
        ((129, 5, 449), 1, 4),
    ],
)
def test_a_matmul(shape: tuple[int, int, int], ctas: int, seed: int | None) -> None:
    found, truth = multiplied(GEMM, *shape, machine=machine(ctas, seed))
    # Accumulators are rounded to f32 once an iteration, and to bf16 at the end.
    assert np.allclose(found.astype(np.float64), truth, rtol=2**-8, atol=1e-4)


def test_a_grid_without_program_instances_has_no_ctas() -> None:
    assert multiplied(GEMM, 0, 8, 8)[0].shape == (0, 8)


def test_watching_changes_nothing() -> None:
    plain = multiplied(GEMM, 200, 40, 100)[0]
    assert np.array_equal(multiplied(GEMM, 200, 40, 100, checks=Checks.all())[0], plain)


def attended(n: int, **options: Any) -> tuple[Array, Array]:
    chance = np.random.default_rng(2)
    q, k, v = (chance.standard_normal((rows, 6)).astype(np.float32) for rows in (37, n, n))
    out = np.full((37, 6), np.nan, np.float32)
    run_kernel(text.read(ATTENTION), "k", [q, k, v, out], **options)
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    return out, np.exp(q @ k.T) @ v


@pytest.mark.parametrize("n", [0, 1, 5, 13, 40])
def test_a_dot_of_a_dot(n: int) -> None:
    found, truth = attended(n)
    assert np.allclose(found, truth, rtol=1e-4, atol=1e-4 * np.abs(truth).max(initial=0))
    for ctas, seed in ((1, 0), (2, 1), (3, 2), (5, 3)):
        again, _ = attended(n, machine=machine(ctas, seed))
        assert again.tobytes() == found.tobytes()


# Small kernels: two consumers accumulate dots of 4 rows each, in 4 iterations.

SMALL = """
tile.func @k(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>)
    outputs 1 shapes [[R, 4], [8, 4]] grid [1] {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %ring = pipe.ring : !pipe.ring<3, 4x4xf32>
  %other = pipe.ring : !pipe.ring<3, 4x4xf32>
  pipe.warp_specialize 2 producer {
    %t0 = pipe.pipeline_state %ring : !pipe.ring<3, 4x4xf32> -> !pipe.pipeline_state<3>
    %t1 = pipe.advance %t0 : !pipe.pipeline_state<3>
    // before the copies
    %end = scf.for %i = %c0 to %c16 step %c4 iter_args(%t = %t0) -> (!pipe.pipeline_state<3>) {
      pipe.producer_copy %x[%i, %c0], %ring[%t] : !tile.view<2, f32, global>, !pipe.ring<3, 4x4xf32>,
        !pipe.pipeline_state<3>
      %u = pipe.advance %t : !pipe.pipeline_state<3>
      scf.yield %u : !pipe.pipeline_state<3>
    }
    // behind the copies
  } consumer {
    %consumer = pipe.consumer_id
    %mine = arith.muli %consumer, %c4 : index
    %zero = arith.constant 0.0 : f32
    %none = tile.full %zero : tensor<4x4xf32>
    %one = arith.constant 1.0 : f32
    %ones = tile.full %one : tensor<4x4xf32>
    %t0 = pipe.pipeline_state %ring : !pipe.ring<3, 4x4xf32> -> !pipe.pipeline_state<3>
    %t1 = pipe.advance %t0 : !pipe.pipeline_state<3>
    %end:2 = scf.for %i = %c0 to %c16 step %c4 iter_args(%t = %t0, %acc = %none)
        -> (!pipe.pipeline_state<3>, tensor<4x4xf32>) {
      %a = pipe.consumer_wait %ring[%t] : !pipe.ring<3, 4x4xf32>, !pipe.pipeline_state<3> -> tensor<4x4xf32>
      %b = tile.trans %a, [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
      %p = pipe.dot_start %ones, %b, %acc : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> !pipe.pending<4x4xf32>
      // behind the start
      %d = pipe.dot_wait %p younger 0 : !pipe.pending<4x4xf32> -> tensor<4x4xf32>
      pipe.consumer_release %ring[%t] : !pipe.ring<3, 4x4xf32>, !pipe.pipeline_state<3>
      // behind the release
      %u = pipe.advance %t : !pipe.pipeline_state<3>
      scf.yield %u, %d : !pipe.pipeline_state<3>, tensor<4x4xf32>
    }
    tile.store %end#1, %y[%mine, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
    // at the end
  }
  tile.return
}
"""
COPY = """pipe.producer_copy %x[%i, %c0], %ring[%t] : !tile.view<2, f32, global>, !pipe.ring<3, 4x4xf32>,
        !pipe.pipeline_state<3>"""
WAIT = "%a = pipe.consumer_wait %ring[%t] : !pipe.ring<3, 4x4xf32>, !pipe.pipeline_state<3> -> tensor<4x4xf32>"
START = "pipe.dot_start %ones, %b, %acc : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> !pipe.pending<4x4xf32>"
CHAIN = START.replace("%b, %acc", "%ones, %p").replace("tensor<4x4xf32> ->", "!pipe.pending<4x4xf32> ->")
RELEASE = "pipe.consumer_release %ring[%t] : !pipe.ring<3, 4x4xf32>, !pipe.pipeline_state<3>"
BEFORE, COPIED, STARTED, RELEASED, END = (
    f"// {mark}"
    for mark in ("before the copies", "behind the copies", "behind the start", "behind the release", "at the end")
)


def run_small(source: str | ModuleOp, seed: int | None = None) -> Array:
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    y = np.full((8, 4), np.nan, np.float32)
    run_kernel(text.read(source) if isinstance(source, str) else source, "k", [x, y], machine=machine(seed=seed))
    return y


def test_a_small_kernel_is_right_in_every_order() -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 4, 4)
    want = np.tile((np.ones((4, 4)) @ x.swapaxes(1, 2)).sum(0), (2, 1))
    module = text.read(SMALL)
    for seed in (None, *range(20)):
        assert np.array_equal(run_small(module, seed), want)


# The text that is replaced, its replacement, the message and the hint.
BROKEN = {
    "filled twice": (
        COPY,
        f"{COPY}\n{COPY}",
        "entry 0 of %ring cannot be filled: filled already",
        "check which pipeline state is used",
    ),
    "filled out of order": (
        "iter_args(%t = %t0) ->",
        "iter_args(%t = %t1) ->",
        "entry 1 of %ring cannot be filled: entry 0 was not filled yet",
        "entries come in order",
    ),
    "waited for twice": (
        STARTED,
        WAIT.replace("%a", "%again"),
        "entry 0 of %ring cannot be waited for: waited for already",
        "each once",
    ),
    "waited for after its release": (
        RELEASED,
        WAIT.replace("%a", "%again"),
        "entry 0 of %ring is waited for again after its release",
        "put pipe.advance in front",
    ),
    "waited for out of order": (
        "iter_args(%t = %t0, %acc",
        "iter_args(%t = %t1, %acc",
        "entry 1 of %ring cannot be waited for: entry 0 was not waited for yet",
        "entries come in order",
    ),
    "released without a wait": (
        RELEASE,
        RELEASE.replace("%t]", "%t1]"),
        "entry 1 of %ring is released, and was not waited for",
        "put pipe.consumer_wait in front",
    ),
    "released twice": (
        RELEASE,
        f"{RELEASE}\n{RELEASE}",
        "entry 0 of %ring cannot be released: released already",
        "each once",
    ),
    "read after its release": (
        RELEASED,
        "%late = tile.ew<neg> %a : tensor<4x4xf32> -> tensor<4x4xf32>",
        "tile.ew reads entry 0 of %ring, which this consumer has released",
        "behind the last op that reads the tile",
    ),
    "read after its release, transposed": (
        RELEASED,
        f"%late = {START}",
        "pipe.dot_start reads entry 0 of %ring, which this consumer has released",
        "behind the last op that reads the tile",
    ),
    "released under a dot": (
        STARTED,
        RELEASE,
        "entry 0 of %ring is released while a dot that reads it may run",
        "with 0 younger dots",
    ),
    "released under a dot that is not the youngest": (
        STARTED,
        f"%q = {CHAIN}\npipe.dots_wait 2\n{RELEASE}",
        "entry 0 of %ring is released while a dot that reads it may run",
        "with 1 younger dots",
    ),
    "an accumulator used twice": (
        STARTED,
        f"%q = {CHAIN}\n%r = {CHAIN}",
        "the accumulator of a dot is used that was passed on to another dot",
        "use the result of",
    ),
    "an accumulator waited for that was passed on": (
        STARTED,
        f"%q = {CHAIN}",
        "the accumulator of a dot is used that was passed on to another dot",
        "use the result of",
    ),
    "an accumulator used that was waited for": (
        RELEASED,
        f"%q = {CHAIN}",
        "the accumulator of a dot is used that was waited for",
        "use the result of",
    ),
    "too many younger ones": (
        "younger 0",
        "younger 1",
        "a dot is waited for with 1 younger ones, and 0 were begun after it",
        "say younger 0",
    ),
    "not all waited for": (
        COPIED,
        COPY.replace("%t]", "%end]").replace("%i", "%c0"),
        "5 entries of %ring were filled, and consumer 0 has waited for 4",
        "every consumer waits for",
    ),
    "not all released": (
        RELEASE,
        "",
        "producer waits for all to release entry 0 of %ring; consumer 0 waits for entry 3 of %ring to be filled",
        "every consumer waits for and releases every tile",
    ),
    "a dot left behind": (
        END,
        f"%q = {START.replace('%b, %acc', '%ones, %none')}",
        "a consumer ends while its dots run",
        "pipe.dots_wait 0",
    ),
    "not filled": (
        END,
        WAIT.replace("%t]", "%end#0]"),
        "deadlock: consumer 0 waits for entry 4 of %ring to be filled; consumer 1 waits for entry 4",
        "every tile that is copied",
    ),
    "rings that wait for each other": (
        BEFORE,
        """%o0 = pipe.pipeline_state %other : !pipe.ring<3, 4x4xf32> -> !pipe.pipeline_state<3>
        %full = scf.for %i = %c0 to %c16 step %c4 iter_args(%t = %o0) -> (!pipe.pipeline_state<3>) {
          pipe.producer_copy %x[%i, %c0], %other[%t] : !tile.view<2, f32, global>, !pipe.ring<3, 4x4xf32>,
            !pipe.pipeline_state<3>
          %u = pipe.advance %t : !pipe.pipeline_state<3>
          scf.yield %u : !pipe.pipeline_state<3>
        }""",
        "waits for all to release entry 0 of %other; consumer 0 waits for entry 0 of %ring to be filled; consumer 1",
        "there are slots for those in flight",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors(name: str) -> None:
    old, new, message, hint = BROKEN[name]
    assert SMALL.count(old) == 1
    module = text.read(SMALL.replace(old, new))
    for seed in (None, 0, 1):
        with pytest.raises(RaceError) as caught:
            run_small(module, seed)
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")
        assert caught.value.is_located


def test_a_tile_that_is_not_released_at_the_end_is_an_error() -> None:
    with pytest.raises(RaceError, match="2 entries of %ring were filled, and consumer 0 has released 0"):
        run_small(SMALL.replace(RELEASE, "").replace("%c16 = arith.constant 16", "%c16 = arith.constant 8"))


def test_a_tile_that_a_loop_carries_is_still_the_one_of_the_ring() -> None:
    carried = SMALL.replace(
        RELEASED,
        """%kept = scf.for %j = %c0 to %c4 step %c4 iter_args(%same = %b) -> (tensor<4x4xf32>) {
          scf.yield %same : tensor<4x4xf32>
        }""",
    )
    assert np.array_equal(run_small(carried), run_small(SMALL))
    read = carried.replace(
        "%u = pipe.advance %t : !pipe.pipeline_state<3>\n      scf.yield %u, %d",
        "%late = tile.ew<neg> %kept : tensor<4x4xf32> -> tensor<4x4xf32>\n"
        "      %u = pipe.advance %t : !pipe.pipeline_state<3>\n      scf.yield %u, %d",
    )
    with pytest.raises(RaceError, match=r"tile.ew reads entry 0 of %ring, which this consumer has released"):
        run_small(read)


def test_copies_land_late_or_at_once() -> None:
    # The producer writes over memory that it has begun to copy: which values arrive is up to chance.
    late = SMALL.replace(
        COPIED,
        """%seven = arith.constant 7.0 : f32
        %sevens = tile.full %seven : tensor<16x4xf32>
        tile.store %sevens, %x[%c0, %c0] : tensor<16x4xf32>, !tile.view<2, f32, global>""",
    )
    module = text.read(late)
    right = run_small(SMALL)
    found = [run_small(module, seed) for seed in range(12)]
    assert not all(np.array_equal(one, right) for one in found)
    assert len({one.tobytes() for one in found}) > 2


# Ping-pong barriers

PINGPONG = SMALL.replace(WAIT, WAIT + "\n      pipe.pingpong_wait").replace(STARTED, "pipe.pingpong_arrive")


def test_consumers_with_a_pingpong_barrier_are_right_in_every_order() -> None:
    want = run_small(SMALL)
    for seed in (None, *range(4)):
        assert np.array_equal(run_small(PINGPONG, seed), want)


def test_arriving_without_a_wait_is_an_error() -> None:
    with pytest.raises(RaceError, match=r"consumer . arrives at the ping-pong barrier, and has not waited for it"):
        run_small(SMALL.replace(STARTED, "pipe.pingpong_arrive"))


def test_waiting_for_no_arrival_is_a_deadlock() -> None:
    with pytest.raises(RaceError, match=r"deadlock: .*consumer 1 waits for the ping-pong barrier"):
        run_small(PINGPONG.replace("pipe.pingpong_arrive", ""))
