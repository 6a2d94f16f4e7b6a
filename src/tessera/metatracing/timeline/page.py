"""The timeline as one HTML file: no scripts, nothing from elsewhere, light and dark, wide and narrow.

Texts are HTML and only lines and dots are drawings, stretched to the width that there is: so letters stay as large as
they are on a telephone, too. Details are in the titles of things, where browsers show them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from tessera.metatracing.live import Timed
from tessera.metatracing.timeline.figures import Lane, Timeline
from tessera.tiers.sites.counts import LoggedEvent

_TITLE = "Calls in tiers"
_MOST_LANES = 24
_MOST_DOTS = 600
_MOST_LINES = 400
_NAMES = {1: "tier 1, at once", 2: "tier 2, sizes open", 3: "tier 3, what calls show"}
_MOMENTS = {
    "guard": "a guard refused new arguments",
    "contests": "programs competed on calls",
    "bridges": "a bridge was asked for",
    "generalisations": "less is assumed from now on",
    "switch_backs": "more facts were not faster",
    "aborts": "something was given up",
    "evictions": "a program made room",
    "invalidations": "what was captured changed",
    "loads": "started where another process ended",
}
_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --card: #f6f7f9; --text: #1a1d21; --quiet: #565d66; --line: #c9ced6;
  --tier1: #b45309; --tier2: #1d4ed8; --tier3: #047857; --bad: #b91c1c; --plain: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --page: #121417; --card: #1c2025; --text: #e9ebee; --quiet: #a6adb7;
  --line: #3a414b; --tier1: #f59e0b; --tier2: #60a5fa; --tier3: #34d399; --bad: #f87171; --plain: #9ca3af; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem; max-width: 72rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0; overflow-wrap: anywhere; } p { margin: .25rem 0; } .quiet { color: var(--quiet); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.tile b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.card { margin: .6rem 0; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .4rem 0; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .35rem; }
svg { display: block; width: 100%; }
.strip { height: 36px; margin: .4rem 0; } .dots { height: 96px; border-bottom: 1px solid var(--line); }
.lane { display: grid; grid-template-columns: 7rem 1fr; gap: .5rem; align-items: center; margin: .3rem 0; }
.lane svg { height: 20px; background: var(--card); border: 1px solid var(--line); border-radius: 3px; }
.lane svg.memory { height: 56px; }
.axis { display: flex; justify-content: space-between; color: var(--quiet); font-size: .8rem; }
.plot { display: grid; grid-template-columns: 4.2rem 1fr; gap: .4rem; }
.plot .scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right;
  color: var(--quiet); font-size: .8rem; }
.figures { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details { margin-top: 1.5rem; } summary { cursor: pointer; }
.bar { height: .6rem; background: var(--plain); border-radius: 2px; min-width: 2px; }
.t1 { fill: var(--tier1); background: var(--tier1); } .t2 { fill: var(--tier2); background: var(--tier2); }
.t3 { fill: var(--tier3); background: var(--tier3); } .compile { fill: var(--plain); } .moment { fill: var(--text); }
.guard, .aborts { fill: var(--bad); } .area { fill: var(--tier2); opacity: .35; }
@media (max-width: 600px) { body { padding: .75rem; } .lane { grid-template-columns: 1fr; gap: .1rem; } }
"""


def page(timeline: Timeline) -> str:
    """The whole page."""
    first, last = timeline.span
    about = f"{_count(sum(timeline.calls.values()), 'call')} in {_time(last - first)}, as the runtime remembers them"
    parts = [
        f"<h1>{_TITLE}</h1>",
        f'<p class="quiet">{about}: not every call is recorded, and the oldest are forgotten.</p>',
        _tiles(timeline),
        _legend(),
        _beside(timeline, first, last),
        _lanes(timeline),
        _guards(timeline.refused),
        _event_table(timeline.logged, first),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{_TITLE}</title><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _tiles(timeline: Timeline) -> str:
    figures = [(f"calls at tier {tier}", f"{count:,}") for tier, count in timeline.calls.items()]
    figures += [
        ("programs above tier 1", f"{timeline.programs}, {_bytes(timeline.nbytes)}"),
        ("spent compiling", _time(round(timeline.compile_ms * 1e6))),
        ("calls that guards refused", f"{sum(timeline.refused.values()):,}"),
    ]
    cells = "".join(f'<div class="tile"><b>{escape(value)}</b>{escape(name)}</div>' for name, value in figures)
    return f'<div class="tiles" id="tiles">{cells}</div>'


def _legend() -> str:
    marks = "".join(f'<span><i class="t{tier}"></i>{name}</span>' for tier, name in _NAMES.items())
    return f'<div class="legend" id="legend">{marks}</div>'


# Events beside calls, over time.


def _beside(timeline: Timeline, first: int, last: int) -> str:
    if not timeline.logged and not timeline.collectives:
        return ""
    rows: list[str] = []
    width = max(1, last - first)

    def bar(ended: int, took: int, what: str, more: str = "") -> str:
        begins = 1000 * (ended - took - first) / width
        return _box(begins, 1000 * took / width, "compile", f"{what}, {_time(took)}{more}")

    compiles = [one for one in timeline.logged if one.kind == "compile"]
    if compiles:
        bars = "".join(bar(one.timestamp, one.duration, f"{one.site}: {one.what}") for one in compiles)
        rows.append(_row("compiling", _drawing(bars, "compiles")))
    for kind, words in _MOMENTS.items():
        some = [one for one in timeline.logged if one.kind == kind]
        if some:
            marks = "".join(_mark(one, first, width) for one in some[-_MOST_DOTS:])
            rows.append(_row(kind.replace("_", " "), _drawing(marks, kind), words))
    if timeline.collectives:
        bars = "".join(
            bar(
                one.timestamp, one.took, f"{one.kind} of {one.dtype} {list(one.shape)}", f", waited {_time(one.waited)}"
            )
            for one in timeline.collectives[-_MOST_DOTS:]
        )
        rows.append(_row("collectives", _drawing(bars, "collectives")))
    if timeline.memory:
        rows.append(_row("memory", _memory(timeline.memory, first, width), "bytes of programs above tier 1"))
    axis = f'<div class="axis"><span>0</span><span>{_time(width // 2)}</span><span>{_time(width)}</span></div>'
    return f'<h2>Events beside calls</h2><section id="beside">{"".join(rows)}{_row("", axis)}</section>'


def _row(name: str, drawn: str, words: str = "") -> str:
    return f'<div class="lane"><span title="{escape(words)}">{escape(name)}</span><div>{drawn}</div></div>'


def _drawing(inside: str, kind: str, height: int = 20) -> str:
    return f'<svg class="{kind}" viewBox="0 0 1000 {height}" preserveAspectRatio="none" role="img">{inside}</svg>'


def _box(left: float, width: float, kind: str, title: str) -> str:
    return (
        f'<rect class="{kind}" x="{left:.2f}" y="3" width="{max(width, 2):.2f}" height="14">'
        f"<title>{escape(title)}</title></rect>"
    )


def _mark(one: LoggedEvent, first: int, width: int) -> str:
    kind = one.kind if one.kind in ("guard", "aborts") else "moment"
    return _box(996 * (one.timestamp - first) / width, 4, kind, f"{one.site} {one.what}".strip())


def _memory(memory: Sequence[tuple[int, int]], first: int, width: int) -> str:
    most = max(nbytes for _, nbytes in memory) or 1
    points, height = ["0,56"], 0.0
    for time, nbytes in memory:
        x, before = 1000 * (time - first) / width, height
        height = 50 * nbytes / most
        points += [f"{x:.2f},{56 - before:.2f}", f"{x:.2f},{56 - height:.2f}"]
    points += [f"1000,{56 - height:.2f}", "1000,56"]
    title = f"<title>at most {_bytes(most)}</title>"
    shape = f'<polygon class="area" points="{" ".join(points)}">{title}</polygon>'
    return f'{_drawing(shape, "memory", 56)}<div class="axis"><span>at most {_bytes(most)}</span></div>'


# Sites.


def _lanes(timeline: Timeline) -> str:
    shown = sorted(timeline.lanes, key=lambda lane: -sum(one.nanoseconds * one.calls for one in lane.slices))
    cards = [_lane(lane) for lane in shown[:_MOST_LANES]]
    left = len(shown) - len(cards)
    more = f'<p class="quiet">and {_count(left, "case")} that took less time</p>' if left > 0 else ""
    if not cards:
        return '<p id="lanes">Nothing was recorded.</p>'
    return f'<h2>Sites and shapes</h2><section id="lanes">{"".join(cards)}{more}</section>'


def _lane(lane: Lane) -> str:
    faster = "" if lane.speedup is None else f"<b>×{lane.speedup:.2f}</b> against the first tier seen"
    figures = [_count(lane.calls, "call"), *(_figure(one) for one in lane.timed), faster]
    spans = "".join(f"<span>{figure}</span>" for figure in figures if figure)
    return (
        f'<article class="card"><h3>{escape(lane.name)} <span class="quiet">{escape(lane.arguments)}</span></h3>'
        f'<div class="figures">{spans}</div>{_strip(lane)}{_dots(lane)}</article>'
    )


def _figure(one: Timed) -> str:
    return f"tier {one.tier}: {_time(round(one.nanoseconds))}"


def _strip(lane: Lane) -> str:
    """Tiers over calls, from the first to the last; the higher the tier, the higher the bar."""
    each, begin, bars = 1000 / len(lane.line), 0, ""
    for tier, group in groupby(lane.line):
        count = len(list(group))
        height = 12 * tier
        bars += (
            f'<rect class="t{tier}" x="{begin * each:.2f}" y="{36 - height}" width="{count * each:.2f}" '
            f'height="{height}"><title>{_NAMES[tier]}</title></rect>'
        )
        begin += count
    drawn, last = _drawing(bars, "strip", 36), f"call {lane.calls:,}"
    return f'{drawn}<div class="axis"><span>call 1</span><span>tiers over calls</span><span>{last}</span></div>'


def _dots(lane: Lane) -> str:
    """How long recorded calls took, in their order; times by their logarithms."""
    step = max(1, math.ceil(len(lane.slices) / _MOST_DOTS))
    chosen = lane.slices[::step]
    times = [max(1, one.nanoseconds) for one in chosen]
    low, high = math.log(min(times)), math.log(max(times))
    reach = max(high - low, 1e-9)
    marks = ""
    for index, one in enumerate(chosen):
        x = 1000 * index / len(chosen)
        y = 88 * (1 - (math.log(max(1, one.nanoseconds)) - low) / reach) if high > low else 44.0
        marks += (
            f'<rect class="t{one.tier}" x="{x:.2f}" y="{y:.2f}" width="{max(2.5, 1000 / len(chosen) - 0.5):.2f}" '
            f'height="6"><title>tier {one.tier}, {_time(one.nanoseconds)}</title></rect>'
        )
    drawn = _drawing(marks, "dots", 96)
    scale = f'<div class="scale"><span>{_time(max(times))}</span><span>{_time(min(times))}</span></div>'
    note = f"{_count(len(lane.slices), 'recorded call')}, how long each took"
    return (
        f'<div class="plot">{scale}{drawn}</div><div class="axis"><span></span><span>{note}</span><span></span></div>'
    )


# Tables.


def _guards(refused: dict[str, int]) -> str:
    if not refused:
        return ""
    most = max(refused.values())
    rows = "".join(
        f'<tr><td><code>{escape(word)}</code></td><td class="number">{count:,}</td>'
        f'<td style="width:40%"><div class="bar" style="width:{100 * count / most:.0f}%"></div></td></tr>'
        for word, count in sorted(refused.items(), key=lambda item: -item[1])[:20]
    )
    head = '<tr><th>fact</th><th class="number">calls</th><th></th></tr>'
    return f'<h2>Guards that refused calls</h2><div class="wide"><table id="guards">{head}{rows}</table></div>'


def _event_table(logged: Iterable[LoggedEvent], first: int) -> str:
    listed = list(logged)[-_MOST_LINES:]
    if not listed:
        return ""
    rows = "".join(
        f'<tr><td class="number">{_time(one.timestamp - first)}</td><td>{escape(one.kind.replace("_", " "))}</td>'
        f"<td>{escape(one.site)}</td><td>{escape(one.what)}</td></tr>"
        for one in listed
    )
    head = '<tr><th class="number">at</th><th>what</th><th>site</th><th></th></tr>'
    return (
        f'<details id="events"><summary><b>Everything that happened</b> ({len(listed)})</summary>'
        f'<div class="wide"><table>{head}{rows}</table></div></details>'
    )


def _time(nanoseconds: int) -> str:
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds} ns"


def _bytes(count: int) -> str:
    return f"{count / 1048576:.1f} MiB" if count >= 1048576 else f"{count / 1024:.0f} KiB"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
