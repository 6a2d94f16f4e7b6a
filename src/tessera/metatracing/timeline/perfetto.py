"""The timeline as trace events, which Perfetto and chrome://tracing read.

A track for each site and shape with its recorded calls, one for compiles, one for events at a moment, one
for collectives, and counters for memory and for the tier of each site.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tessera.metatracing.timeline.figures import Timeline, end_to_end_spans

Event = dict[str, Any]
_PROCESS = 1
_COMPILES, _MOMENTS, _COLLECTIVES, _FIRST_LANE = 1, 2, 3, 10


def trace_events(timeline: Timeline) -> dict[str, Any]:
    """The whole trace, ready to be written as JSON. Times are microseconds since the first event."""
    start = timeline.span[0]
    events = list(_events(timeline, start))
    names = [event for event in events if event["ph"] == "M"]
    timed = sorted((event for event in events if event["ph"] != "M"), key=lambda event: event["ts"])
    return {"displayTimeUnit": "ms", "otherData": {"writer": "tessera.metatracing"}, "traceEvents": names + timed}


def _events(timeline: Timeline, start: int) -> Iterator[Event]:
    yield _named("process_name", 0, "tessera")
    lanes = [(_COMPILES, "compiling"), (_MOMENTS, "what happened"), (_COLLECTIVES, "collectives")]
    used = {
        _COMPILES: any(one.kind == "compile" for one in timeline.logged),
        _MOMENTS: any(one.kind != "compile" for one in timeline.logged),
        _COLLECTIVES: bool(timeline.collectives),
    }
    for track, name in lanes:
        if used[track]:
            yield _named("thread_name", track, name)
    compiles = [one for one in timeline.logged if one.kind == "compile"]
    for one, (began, ended) in zip(
        compiles, end_to_end_spans([(one.timestamp, one.duration) for one in compiles]), strict=True
    ):
        yield _slice(f"{one.site}: {one.what}", "compile", _COMPILES, began - start, ended - began, {})
    for one in timeline.logged:
        if one.kind != "compile":
            arguments = {"region": one.site, "what": one.what, "count": one.amount}
            yield _event("i", one.kind, _MOMENTS, arguments, cat="event", s="t", ts=(one.timestamp - start) / 1e3)
    spans = end_to_end_spans([(one.timestamp, one.took) for one in timeline.collectives])
    for one, (began, ended) in zip(timeline.collectives, spans, strict=True):
        arguments = {"rank": one.rank, "shape": list(one.shape), "dtype": one.dtype, "waited_us": one.waited / 1e3}
        yield _slice(one.kind, "collective", _COLLECTIVES, began - start, ended - began, arguments)
    for time, nbytes in timeline.memory:
        yield _counter("programs above tier 1", "bytes", time - start, nbytes)
    for index, lane in enumerate(timeline.lanes):
        track = _FIRST_LANE + index
        yield _named("thread_name", track, f"{lane.name} {lane.arguments}")
        before = 0
        for one in lane.slices:
            arguments = {"stands for calls": one.calls, "tier": one.tier}
            yield _slice(f"tier {one.tier}", "call", track, one.began - start, one.nanoseconds, arguments)
            if one.tier != before:
                yield _counter(f"tier of {lane.name} {lane.arguments}", "tier", one.began - start, one.tier)
                before = one.tier


def _event(phase: str, name: str, track: int, arguments: dict[str, Any], **more: Any) -> Event:
    return {"name": name, "ph": phase, "pid": _PROCESS, "tid": track, **more, "args": arguments}


def _named(what: str, track: int, name: str) -> Event:
    return _event("M", what, track, {"name": name})


def _slice(name: str, category: str, track: int, began: int, took: int, arguments: dict[str, Any]) -> Event:
    return _event("X", name, track, arguments, cat=category, ts=began / 1e3, dur=took / 1e3)


def _counter(name: str, unit: str, time: int, value: int) -> Event:
    return _event("C", name, 0, {unit: value}, cat="counter", ts=time / 1e3)
