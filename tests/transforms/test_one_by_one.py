"""Checks that agents begin their products one after the other: same bits, and only where all go equally far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rewritten_programs import count, rewritten
from role_programs import PRODUCTS, STAGES, check_roles, prepared

from tessera.dialects import tile
from tessera.dialects.pipe_agents import DotStartOp
from tessera.dialects.pipe_order import EnterOp, LeaveOp
from tessera.errors import RaceError
from tessera.interpreters.engine import RULES, Frame, Values
from tessera.interpreters.machine import Machine
from tessera.interpreters.pipe_agents import Member
from tessera.interpreters.tile import run_kernel
from tessera.targets import text
from tessera.transforms.finish_in_branches import finish_in_branches
from tessera.transforms.live_ranges import split_ranges
from tessera.transforms.one_by_one import one_by_one
from tessera.transforms.place_waits import place_waits
from tessera.transforms.skew_dots import skew_dots
from tessera.transforms.skip_turns import skip_turns
from tessera.transforms.specialize_roles import specialize_roles

APART = {"causal", "grouped queries", "window", "prefix", "alibi", "soft cap"}
"""Kernels in which some agents leave loops earlier than others."""


def ordered(agents: int) -> Callable[[tile.FuncOp], None]:
    def rewrite(function: tile.FuncOp) -> None:
        skew_dots(function)
        assert specialize_roles(function, agents=agents, depth=2)
        split_ranges(function)
        place_waits(function)
        finish_in_branches(function)
        skip_turns(function)
        one_by_one(function)

    return rewrite


@pytest.mark.parametrize("name", STAGES)
def test_kernels_give_the_same_bits(name: str) -> None:
    for length, agents in ((0, 2), (1, 3), (41, 3)):
        module, given = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        worlds = [Machine(workers=2, chance=np.random.default_rng(seed)) for seed in (length, 7)]
        function = check_roles(module, ordered(agents), given, [Machine(), *worlds])
        assert bool(count(function, EnterOp)) == (name not in APART)
        assert count(function, EnterOp) == count(function, LeaveOp)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_alone_need_no_order(name: str) -> None:
    module, given = PRODUCTS[name](41)
    module, _, _ = rewritten(module, prepared)
    assert not count(check_roles(module, ordered(3), given, [Machine()]), EnterOp)


def test_one_agent_is_always_next() -> None:
    module, given = STAGES["full"](41)
    module, _, _ = rewritten(module, prepared)
    assert not count(check_roles(module, ordered(1), given, [Machine()]), EnterOp)


def test_products_begin_in_the_order_of_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the loop, each agent begins both of its products before the next one does."""
    begun: list[int] = []
    rule = RULES[DotStartOp]

    def noted(frame: Frame, op: DotStartOp, operands: Values) -> Values:
        member = frame.kept[Member]
        if member.stage.inside == member.number:
            begun.append(member.number)
        return rule(frame, op, operands)

    monkeypatch.setitem(RULES, DotStartOp, noted)
    module, given = STAGES["mlp"](41)
    module, _, _ = rewritten(module, prepared)
    for seed in range(3):
        begun.clear()
        check_roles(module, ordered(3), given, [Machine(workers=1, chance=np.random.default_rng(seed))])
        assert begun == [place // 2 % 3 for place in range(len(begun))]
        assert begun


ORDER = """
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[M]] grid [1] attributes {workers} {
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %agent = pipe.agent
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %agent, %zero : index
    BODY
  }
  tile.return
}
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pipe.enter", "nobody can go on: agent 1 waits for agent 0 to leave"),
        ("pipe.leave", "an agent leaves that has not entered"),
        ("pipe.enter\n    pipe.enter", "an agent enters that has not left"),
        ("scf.if %first {\n      pipe.enter\n      pipe.leave\n    }", "agents have entered 1 times in all"),
    ],
)
def test_agents_out_of_order_are_told(body: str, said: str) -> None:
    module = text.read(ORDER.replace("BODY", body))
    with pytest.raises(RaceError, match=said):
        run_kernel(module, "k", [np.zeros(4, np.float32)], machine=Machine(workers=1))
