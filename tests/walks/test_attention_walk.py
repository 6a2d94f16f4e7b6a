"""The page that walks attention through the passes: it is as the code is, and shows what it promises."""

from __future__ import annotations

import attention_walk
import pytest

import tessera
from tessera import Schedule, stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.hopper.choose_warp_groups import warp_group_plans
from tessera.targets.cuda.hopper.warp_specialized_chain import warp_specialized_stages
from tessera.targets.cuda.lower.legalize import legalize_stages
from tessera.targets.cuda.lower.mark_row_aligned import MarkRowAligned
from tessera.transforms.checks.host_checks import TakeHostChecks
from tessera.transforms.facts.fix_sizes import FixSizes


@pytest.fixture(scope="module")
def page() -> str:
    return attention_walk.page()


def test_the_page_is_up_to_date(page: str) -> None:
    assert attention_walk.PAGE.read_text(encoding="utf-8") == page, "run `make docs`"


def test_every_stage_of_the_way_has_a_part_in_order(page: str) -> None:
    parts = list(_parts(page))
    given = [tessera.empty(attention_walk.SHAPE, tessera.bf16) for _ in range(3)]
    kernel = stdlib.attention.with_schedule(Schedule(block=attention_walk.BLOCK))
    made = kernel.lower(*given, mask=stdlib.causal)
    function, aligned = symbol_in(made.module, made.name, tile.FuncOp), range(len(given) + 1)
    plan = next(iter(warp_group_plans(function, None, None, tuple(aligned))))
    assert parts[:2] == ["The kernel", "trace"]
    assert parts[-2:] == [MarkRowAligned.name, "PTX"]
    assert parts[2:-2] == [
        TakeHostChecks.name,
        *legalize_stages(contract=True, arch="sm_90a"),
        FixSizes.name,
        *warp_specialized_stages(function, plan, aligned, fixed=False),
    ]


def test_stages_that_change_attention_say_what_they_did_to_it(page: str) -> None:
    parts = _parts(page)
    changing = [name for name, said in parts.items() if attention_walk.UNCHANGED not in said]
    assert [name for name in changing if name not in ("The kernel", "PTX")] == list(attention_walk.WORDS)
    assert all(said in parts[name] for name, said in attention_walk.WORDS.items())


def _parts(page: str) -> dict[str, str]:
    """The text below each heading, by the heading and in order."""
    return dict(part.split("\n", 1) for part in page.split("\n## ")[1:])


def test_what_is_as_before_is_left_out_and_what_changed_is_shown() -> None:
    before = "\n".join(f"  %{number} = tile.load %x{number} : t{number}" for number in range(20))
    after = before.replace("%9 = tile.load", "%9 = tile.trans").replace("%3 ", "%other ")
    assert attention_walk.shown(after, before).splitlines() == [
        "  // 6 lines as before",
        *(f"  %{number} = tile.load %x{number} : t{number}" for number in (6, 7, 8)),
        "  %9 = tile.trans %x9 : t9",
        *(f"  %{number} = tile.load %x{number} : t{number}" for number in (10, 11, 12)),
        "  // 7 lines as before",
    ]


def test_scalars_are_shown_where_nothing_else_changed() -> None:
    before, after = (
        "%0 = arith.constant 1 : index\n%1 = tile.load %0 : t",
        "%0 = arith.addi %x, %y : index\n%1 = tile.load %0 : t",
    )
    assert attention_walk.shown(after, before) == after
    assert "arith" not in attention_walk.shown(after, "")
