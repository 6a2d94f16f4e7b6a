"""The timeline: its figures, the page in a real browser, and the trace as Perfetto reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up_client import MILLISECOND, Later, Made

from browser import Browser
from perfetto_engine import engine, missing
from tessera.metatracing import ExecutionTier
from tessera.metatracing.ranks import LISTENERS, CollectiveEvent
from tessera.metatracing.timeline.figures import end_to_end, timeline_of
from tessera.metatracing.timeline.page import page
from tessera.metatracing.timeline.perfetto import trace_events
from tessera.tiers.records import LaunchFacts, Record

ODD = "a<b>&\"'</script><img src=x onerror=console.error(1)> 文字"


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    """Calls at all tiers, a guard that refuses, a bridge, something that cannot be compiled, and a collective."""
    lived = Made(enable_distributed_tracing=True, distributed_world_size=2)
    lived.client.name = ODD
    lived.call(4, 8, times=200)
    lived.call(5, 8, times=150)
    lived.client.failing = lambda level: True
    lived.call(6, 8, times=150)
    now = lived.clock()
    event = CollectiveEvent("all_reduce", "bf16", (4, 8), 64, 64, now, MILLISECOND, 3 * MILLISECOND, 0, 2, (5, 9))
    for listener in LISTENERS:
        listener(event)
    yield lived
    lived.runtime.close()


def record(timestamp: int, nanoseconds: int) -> Record:
    return Record(timestamp, ExecutionTier.TIER1_INTERPRETER, (), nanoseconds, 1, LaunchFacts())


def test_recorded_calls_do_not_overlap() -> None:
    slices = end_to_end([record(10, 4), record(11, 5), record(30, 3), record(30, 2)])
    assert [(one.began, one.ended) for one in slices] == [(2, 6), (6, 11), (25, 28), (28, 30)]


def test_figures(made: Made) -> None:
    timeline = timeline_of(made.runtime)
    assert [lane.calls for lane in timeline.lanes] == [200, 150, 150]
    assert (timeline.lanes[0].line[0], timeline.lanes[0].tier) == (1, 3)
    assert timeline.lanes[0].speedup == pytest.approx(1000 / 600)
    kinds = [one.kind for one in timeline.logged]
    for kind, count in made.runtime.get_runtime_stats().events.items():
        if kind not in ("traces", "deopts"):
            assert sum(one.amount for one in timeline.logged if one.kind == kind) == count
    assert "guard" in kinds
    assert "compile" in kinds
    assert timeline.memory[-1][1] == timeline.nbytes == made.runtime.manager.nbytes > 0
    assert sum(timeline.calls.values()) == 500
    assert timeline.span[1] == made.clock()


def test_compiles_take_the_time_that_they_took() -> None:
    later = Later()
    lived = Made(compiling=later)
    lived.call(4, 8, times=12)
    lived.clock.advance(7 * MILLISECOND)
    later.finish()
    (compiled,) = [one for one in timeline_of(lived.runtime).logged if one.kind == "compile"]
    assert compiled.duration >= 7 * MILLISECOND
    assert compiled.what == "tier 2"


def test_a_runtime_that_did_nothing_has_a_page_too() -> None:
    assert "Nothing was recorded" in page(timeline_of(Made().runtime))


def test_the_page_in_a_browser(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "timeline.html"
    made.runtime.write_timeline(file)
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<img", text)
    with Browser() as browser:
        for width, dark in ((1280, False), (400, True)):
            browser.open(file, width, dark=dark)
            assert browser.messages == []
            assert browser.requests == [file.as_uri()]
            seen: dict[str, Any] = browser.evaluate(VISIBLE)
            assert seen["wide"] <= width
            assert seen["small"] == []
            assert min(seen["boxes"].values()) > 0, seen["boxes"]
            assert seen["contrast"] > 4.5
            assert seen["lanes"] == 3
            assert {"t1", "t2", "t3", "guard", "aborts"} <= set(seen["kinds"])


VISIBLE = """(() => {
    const boxes = {}, small = [];
    for (const selector of ["#tiles", "#legend", "#beside", "#lanes", "#guards", "#events", "svg.memory", "svg.strip",
                            "svg.dots", "svg.compiles", "svg.guard", "svg.collectives"]) {
        const box = document.querySelector(selector).getBoundingClientRect();
        boxes[selector] = Math.min(box.width, box.height);
    }
    for (const element of document.querySelectorAll("span, td, b, p, h1, h2, h3, summary"))
        if (parseFloat(getComputedStyle(element).fontSize) < 11) small.push(element.textContent);
    const light = colour => {
        const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(one => one / 255)
            .map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05;
    };
    const quiet = light(getComputedStyle(document.querySelector(".quiet")).color);
    const behind = light(getComputedStyle(document.body).backgroundColor);
    return {
        wide: document.documentElement.scrollWidth, small, boxes,
        contrast: Math.max(quiet, behind) / Math.min(quiet, behind),
        lanes: document.querySelectorAll("article").length,
        kinds: [...new Set([...document.querySelectorAll("rect")].map(one => one.getAttribute("class")))],
    };
})()"""


# What a trace has to be for Perfetto to load it without errors.


def faults(trace: dict[str, Any]) -> list[str]:
    """What breaks the format: fields that are missing or of the wrong kind, slices of a track that cross each other."""
    found: list[str] = []
    needed = {"X": ("ts", "dur", "cat"), "i": ("ts", "s"), "C": ("ts",), "M": ()}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        kind = event.get("ph")
        if kind not in needed or not isinstance(event.get("name"), str):
            found.append(f"kind or name: {event}")
            continue
        if not isinstance(event.get("pid"), int) or not isinstance(event.get("tid"), int):
            found.append(f"process or thread: {event}")
        missing = [name for name in needed[kind] if name not in event]
        if missing or any(event[name] < 0 for name in ("ts", "dur") if name in event):
            found.append(f"{missing or 'negative'}: {event}")
        if kind == "C" and not all(isinstance(value, int | float) for value in event["args"].values()):
            found.append(f"counter: {event}")
        if kind == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for track, spans in tracks.items():
        for (_, before), (began, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            if began < before - 1e-6:
                found.append(f"track {track} has slices that cross at {began}")
    return found


def test_a_trace_is_what_perfetto_reads(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    made.runtime.write_trace(file)
    trace: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert faults(trace) == []
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in slices} == {"call", "compile", "collective"}
    calls = [event for event in slices if event["cat"] == "call"]
    assert len(calls) == made.runtime.get_runtime_stats().events["traces"]
    assert {event["name"] for event in calls} == {"tier 1", "tier 2", "tier 3"}
    named = {event["tid"] for event in events if event["ph"] == "M"}
    assert {event["tid"] for event in events} <= named
    assert {event["name"] for event in events if event["ph"] == "i"} >= {"guard", "contests", "bridges", "aborts"}
    assert [event["args"]["bytes"] for event in events if event["ph"] == "C" and "bytes" in event["args"]]
    times = [event["ts"] for event in events if "ts" in event]
    assert (times, min(times)) == (sorted(times), 0)


def test_the_check_of_traces_sees_planted_faults(made: Made) -> None:
    def broken(**changes: Any) -> list[str]:
        trace = trace_events(timeline_of(made.runtime))
        event = next(one for one in trace["traceEvents"] if one["ph"] == "X" and one["cat"] == "call")
        event.update(changes)
        return faults(trace)

    assert broken() == []
    assert broken(ph="Q")
    assert broken(ts=-1)
    assert broken(tid="one")
    assert broken(dur=1e9)
    assert broken(name=None)


@pytest.mark.acceptance
@pytest.mark.skipif(missing() is not None, reason=f"{missing()} is not installed: pip install 'tessera-lang[perfetto]'")
def test_perfettos_own_parser_loads_a_trace(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    made.runtime.write_trace(file)
    with engine() as perfetto:
        assert perfetto.load(file.read_bytes()) == ""
        assert perfetto.query("select name from stats where severity = 'error' and value > 0") == []
        rows = perfetto.query("select name, count(*) as count from slice group by name")
        counted = {row["name"]: row["count"] for row in rows}
        assert sum(counted[f"tier {tier}"] for tier in (1, 2, 3)) == made.runtime.get_runtime_stats().events["traces"]
        assert counted["all_reduce"] == 1
        assert min(row["dur"] for row in perfetto.query("select min(dur) as dur from slice")) >= 0
        lanes = perfetto.query("select distinct thread.name as name from thread join thread_track using (utid)")
        assert sum(str(row["name"]).startswith(ODD) for row in lanes) == len(timeline_of(made.runtime).lanes)
        (memory,) = perfetto.query(
            "select max(value) as most from counter join counter_track on counter.track_id = counter_track.id "
            "where counter_track.name like 'programs above tier 1%'"
        )
        assert memory["most"] == max(nbytes for _, nbytes in timeline_of(made.runtime).memory)
    with engine() as perfetto:  # and it does not take everything
        assert "incomplete" in perfetto.load(file.read_bytes()[:-40])
