"""The page that walks attention through the passes: it is as the code is, and shows what it promises."""

from __future__ import annotations

import pytest

import attention_walk


@pytest.fixture(scope="module")
def page() -> str:
    return attention_walk.page()


def test_the_page_is_up_to_date(page: str) -> None:
    assert attention_walk.PAGE.read_text(encoding="utf-8") == page, "run `make docs`"


def test_every_pass_of_the_chain_has_a_part(page: str) -> None:
    parts = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    named = [name.replace("_", "-") for name, _ in attention_walk.passes()]
    assert parts[:3] == ["The kernel", "trace", "legalize"]
    assert parts[-2:] == ["lower-warp-groups", "PTX"]
    assert sorted(parts[3:-1]) == sorted(named)


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
