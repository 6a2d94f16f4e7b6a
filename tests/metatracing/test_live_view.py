"""The live view: figures of a runtime, drawn as text."""

from __future__ import annotations

import io

from made_up_client import Made, usual_costs
from rich.console import Console

from tessera.metatracing import ExecutionTier
from tessera.metatracing.live import Case, Timed, line_of, text_of, view_of
from tessera.tiers.records import LaunchFacts, Record

TIER1, TIER2, TIER3 = ExecutionTier


def record(tier: ExecutionTier, stands_for: int = 1) -> Record:
    return Record(0, tier, (), 1, stands_for, LaunchFacts())


def test_a_line_has_the_tier_of_each_stretch_of_calls() -> None:
    records = [record(TIER1), record(TIER1), record(TIER2, 2), record(TIER3, 4)]
    assert line_of(records, 8) == (1, 1, 2, 2, 3, 3, 3, 3)
    assert line_of(records, 4) == (1, 2, 3, 3)
    assert line_of(records, 100) == (1, 1, 2, 2, 3, 3, 3, 3)
    assert line_of([record(TIER2, 1000)], 3) == (2, 2, 2)
    assert line_of([], 5) == ()


def test_speed_is_that_of_the_tier_that_calls_are_at() -> None:
    timed = Timed(1, 100.0, 5), Timed(2, 40.0, 5), Timed(3, 50.0, 5)
    assert Case("f", "", 15, (), timed, 2).speedup == 2.5  # more facts were not faster
    assert Case("f", "", 15, (), timed[:1], 1).speedup is None


def test_the_view_shows_what_happened() -> None:
    made = Made()
    made.call(4, 8, times=200)
    made.call(5, 8, times=7)
    view = view_of(made.runtime)
    first, second = view.cases
    assert (first.name, first.calls, second.calls) == ("scaled", 200, 7)
    assert (first.line[0], first.line[-1], first.tier) == (1, 3, 3)
    assert [one.tier for one in first.timed] == [1, 2, 3]
    assert first.speedup is not None
    assert round(first.speedup, 2) == 1.67
    assert (view.programs, view.nbytes) == (2, 2000)
    shown = text_of(view, width=80)
    assert "▁" in shown
    assert "3: 600.0 µs" in shown
    assert "×1.7" in shown
    assert "guards that refused calls: x.size[0] 7 times" in shown
    assert "programs above tier 1: 2, 2 KiB of code" in shown
    assert "207 traces, 3 compiles, 7 deopts" in shown
    assert "compiling nothing now" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_what_is_being_compiled_is_shown() -> None:
    from made_up_client import Later

    made = Made(compiling=Later())
    made.call(4, 8, times=12)
    assert view_of(made.runtime).compiling == ("scaled: 1 of tier 2",)
    assert "compiling scaled: 1 of tier 2" in text_of(view_of(made.runtime))


def test_it_is_kept_up_to_date_in_a_terminal() -> None:
    made = Made(usual_costs)
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with made.runtime.live(console) as shown:
        made.call(4, 8, times=60)
        shown.refresh()
    assert "scaled" in written.getvalue()
    assert "60" in written.getvalue()
