"""The tile scheduler: each program instance is fetched once, in every order; and wrong kernels raise an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera.errors import RaceError
from tessera.interpreters.core.engine import RULES
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels import pipe_warp_groups as meanings
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks
from tessera.ir.pipe import tile_scheduler
from tessera.targets import text

MEANINGS = (meanings,)  # importing the interpreters fills RULES
Array = np.ndarray[Any, Any]

COUNTS = """
!numbers = !tile.view<2, i32, global>
!queue = !pipe.work_queue<2>
!state = !pipe.pipeline_state<2>

tile.func @k(%y: !numbers) outputs 0 shapes [[2, N]] grid [N] attributes {persistent} {
  %first = pipe.cta_id
  %ctas = pipe.cta_count
  %instances = pipe.grid_extent 0
  %queue = pipe.work_queue : !queue
  pipe.warp_specialize 2 producer {
    %t0 = pipe.pipeline_state %queue : !queue -> !state
    %sent:2 = scf.while (%n = %first, %t = %t0) : (index, !state) -> (index, !state) {
      %some = arith.cmpi slt, %n, %instances : index
      scf.condition(%some) %n, %t : index, !state
    } do {
    ^bb0(%n: index, %t: !state):
      %next = pipe.scheduler_fetch %queue[%t] : !queue, !state
      %u = pipe.advance %t : !state
      scf.yield %next, %u : index, !state
    }
    // behind the fetches
  } consumer {
    %consumer = pipe.consumer_id
    %one = arith.constant 1 : i32
    %mine = tile.full %one : tensor<1x1xi32>
    %t0 = pipe.pipeline_state %queue : !queue -> !state
    %done:2 = scf.while (%n = %first, %t = %t0) : (index, !state) -> (index, !state) {
      %some = arith.cmpi slt, %n, %instances : index
      scf.condition(%some) %n, %t : index, !state
    } do {
    ^bb0(%n: index, %t: !state):
      %old = tile.load %y[%consumer, %n] : !numbers -> tensor<1x1xi32>
      %new = tile.ew<add> %old, %mine : tensor<1x1xi32>, tensor<1x1xi32> -> tensor<1x1xi32>
      tile.store %new, %y[%consumer, %n] : tensor<1x1xi32>, !numbers
      %next = pipe.scheduler_read %queue[%t] : !queue, !state
      %u = pipe.advance %t : !state
      scf.yield %next, %u : index, !state
    }
    // behind the reads
  }
  tile.return
}
"""
FETCH, READ = "pipe.scheduler_fetch %queue[%t] : !queue, !state", "pipe.scheduler_read %queue[%t] : !queue, !state"


def counted(source: str, instances: int, ctas: int = 3, seed: int | None = None, **options: Any) -> Array:
    """How often each consumer has come to each program instance."""
    found = np.zeros((2, instances), np.int32)
    chance = None if seed is None else np.random.default_rng(seed)
    run_kernel(text.read(source), "k", [found], machine=Machine(ctas=ctas, chance=chance), **options)
    return found


def test_every_op_has_a_meaning() -> None:
    assert [op.name for op in tile_scheduler.OPS if op not in RULES] == []


@pytest.mark.quick
@pytest.mark.parametrize("instances", [0, 1, 3, 17])
@pytest.mark.parametrize("ctas", [1, 3, 20])
def test_every_program_instance_is_fetched_once(instances: int, ctas: int) -> None:
    for seed in (None, *range(6)):
        assert (counted(COUNTS, instances, ctas, seed) == 1).all()


def test_watching_changes_nothing() -> None:
    assert (counted(COUNTS, 9, checks=Checks.all()) == 1).all()


def test_chance_decides_which_cta_fetches_an_instance() -> None:
    """Each consumer stores the number of the CTA that has an instance."""
    who = COUNTS.replace("%one = arith.constant 1 : i32", "%one = arith.index_cast %first : index to i32")
    found = {counted(who, 12, 3, seed).tobytes() for seed in range(8)}
    assert len(found) > 3
    # Without chance, the first CTA is as quick as it can be.
    assert counted(who, 6)[0].tolist() == [0, 1, 2, 0, 0, 0]


MORE = """%a = pipe.scheduler_fetch %queue[%sent#1] : !queue, !state
    %v = pipe.advance %sent#1 : !state
    %b = pipe.scheduler_fetch %queue[%v] : !queue, !state
    %w = pipe.advance %v : !state
    %c = pipe.scheduler_fetch %queue[%w] : !queue, !state"""
BROKEN = {
    "fetched twice": (
        FETCH,
        f"{FETCH}\n%again = {FETCH}",
        "entry 0 of %queue cannot be fetched: fetched already",
        "check which pipeline state is used",
    ),
    "read twice": (READ, f"{READ}\n%again = {READ}", "entry 0 of %queue cannot be read: read already", "each once"),
    "not all read": (
        "// behind the fetches",
        FETCH.replace("%t]", "%sent#1]"),
        "entries of %queue were filled, and consumer 0 has waited for",
        "every consumer waits for",
    ),
    "not fetched": (
        "// behind the reads",
        READ.replace("%t]", "%done#1]"),
        "deadlock: consumer 0 waits for entry 3 of %queue to be fetched; consumer 1 waits for entry 3",
        "every tile that is copied",
    ),
    "not read": (
        "// behind the fetches",
        MORE,
        "deadlock: the producer waits for all to read entry 3 of %queue",
        "there are slots for those in flight",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors(name: str) -> None:
    old, new, message, hint = BROKEN[name]
    assert COUNTS.count(old) == 1
    for seed in (None, 0):
        with pytest.raises(RaceError) as caught:
            counted(COUNTS.replace(old, new), 3, 1, seed)
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")
