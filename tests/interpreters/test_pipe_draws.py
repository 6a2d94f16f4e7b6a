"""Programs by the draw: every program is somebody's, once, in every order; and every way to be wrong is told."""

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
!box = !pipe.work_queue<2>
!turn = !pipe.pipeline_state<2>

tile.func @k(%y: !numbers) outputs 0 shapes [[2, N]] grid [N] attributes {persistent} {
  %first = pipe.cta_id
  %workers = pipe.cta_count
  %programs = pipe.grid_extent 0
  %box = pipe.work_queue : !box
  pipe.warp_specialize 2 producer {
    %t0 = pipe.pipeline_state %box : !box -> !turn
    %sent:2 = scf.while (%n = %first, %t = %t0) : (index, !turn) -> (index, !turn) {
      %some = arith.cmpi slt, %n, %programs : index
      scf.condition(%some) %n, %t : index, !turn
    } do {
    ^bb0(%n: index, %t: !turn):
      %next = pipe.scheduler_fetch %box[%t] : !box, !turn
      %u = pipe.advance %t : !turn
      scf.yield %next, %u : index, !turn
    }
    // behind the draws
  } consumer {
    %agent = pipe.consumer_id
    %one = arith.constant 1 : i32
    %mine = tile.full %one : tensor<1x1xi32>
    %t0 = pipe.pipeline_state %box : !box -> !turn
    %done:2 = scf.while (%n = %first, %t = %t0) : (index, !turn) -> (index, !turn) {
      %some = arith.cmpi slt, %n, %programs : index
      scf.condition(%some) %n, %t : index, !turn
    } do {
    ^bb0(%n: index, %t: !turn):
      %old = tile.load %y[%agent, %n] : !numbers -> tensor<1x1xi32>
      %new = tile.ew<add> %old, %mine : tensor<1x1xi32>, tensor<1x1xi32> -> tensor<1x1xi32>
      tile.store %new, %y[%agent, %n] : tensor<1x1xi32>, !numbers
      %next = pipe.scheduler_read %box[%t] : !box, !turn
      %u = pipe.advance %t : !turn
      scf.yield %next, %u : index, !turn
    }
    // behind the reads
  }
  tile.return
}
"""
DRAW, READ = "pipe.scheduler_fetch %box[%t] : !box, !turn", "pipe.scheduler_read %box[%t] : !box, !turn"


def counted(source: str, programs: int, ctas: int = 3, seed: int | None = None, **options: Any) -> Array:
    """How often each agent has come to each program."""
    found = np.zeros((2, programs), np.int32)
    chance = None if seed is None else np.random.default_rng(seed)
    run_kernel(text.read(source), "k", [found], machine=Machine(ctas=ctas, chance=chance), **options)
    return found


def test_every_op_has_a_meaning() -> None:
    assert [op.name for op in tile_scheduler.OPS if op not in RULES] == []


@pytest.mark.quick
@pytest.mark.parametrize("programs", [0, 1, 3, 17])
@pytest.mark.parametrize("ctas", [1, 3, 20])
def test_every_program_is_drawn_once(programs: int, ctas: int) -> None:
    for seed in (None, *range(6)):
        assert (counted(COUNTS, programs, ctas, seed) == 1).all()


def test_watching_changes_nothing() -> None:
    assert (counted(COUNTS, 9, checks=Checks.all()) == 1).all()


def test_who_draws_what_is_up_to_chance() -> None:
    """Each agent says which worker has a program."""
    who = COUNTS.replace("%one = arith.constant 1 : i32", "%one = arith.index_cast %first : index to i32")
    found = {counted(who, 12, 3, seed).tobytes() for seed in range(8)}
    assert len(found) > 3
    # In turn, the first worker is as quick as it can be.
    assert counted(who, 6)[0].tolist() == [0, 1, 2, 0, 0, 0]


MORE = """%a = pipe.scheduler_fetch %box[%sent#1] : !box, !turn
    %v = pipe.advance %sent#1 : !turn
    %b = pipe.scheduler_fetch %box[%v] : !box, !turn
    %w = pipe.advance %v : !turn
    %c = pipe.scheduler_fetch %box[%w] : !box, !turn"""
BROKEN = {
    "drawn twice": (
        DRAW,
        f"{DRAW}\n%again = {DRAW}",
        "turn 0 of %box cannot be drawn: drawn already",
        "check which cursor is used",
    ),
    "read twice": (READ, f"{READ}\n%again = {READ}", "turn 0 of %box cannot be read: read already", "each once"),
    "not all read": (
        "// behind the draws",
        DRAW.replace("%t]", "%sent#1]"),
        "turns of %box were filled, and agent 0 has taken",
        "every agent takes",
    ),
    "not drawn": (
        "// behind the reads",
        READ.replace("%t]", "%done#1]"),
        "deadlock: agent 0 waits for turn 3 of %box to be drawn; agent 1 waits for turn 3",
        "every turn that is filled",
    ),
    "not read": (
        "// behind the draws",
        MORE,
        "deadlock: the agent that copies waits for all to read turn 3 of %box",
        "there are slots for those under way",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told(name: str) -> None:
    old, new, message, hint = BROKEN[name]
    assert COUNTS.count(old) == 1
    for seed in (None, 0):
        with pytest.raises(RaceError) as caught:
            counted(COUNTS.replace(old, new), 3, 1, seed)
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")
