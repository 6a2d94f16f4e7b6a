"""The plots of the page: latency, rates, speedups, the roofline, compile times, samples in order, and the history."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera.bench.reporting import drawing, wording
from tessera.bench.reporting.drawing import INK, MUTED, Drawing
from tessera.bench.reporting.history import History
from tessera.bench.reporting.layout import (
    axis_of,
    dress,
    grouped,
    lines_of,
    short_names,
    short_rate,
    size_of,
    time_axis,
    whiskers,
)
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult

MOST = 12
"""Cases that get a plot of their own."""


@dataclass(frozen=True)
class Plot:
    """A picture with what it shows in words; `legend` where it has colours of its own."""

    title: str
    svg: str
    caption: str = ""
    legend: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(frozen=True)
class Section:
    """Plots of one kind, or why there are none."""

    name: str
    title: str
    meaning: str
    plots: list[Plot]
    missing: str


class Palette:
    """Which colour an implementation has, in every plot: ours is the first."""

    def __init__(self, suite: BenchmarkSuiteResult) -> None:
        names = dict.fromkeys(row.implementation for row in suite.results.values())
        self.names = sorted(names, key=lambda name: name != "tessera")

    def index(self, implementation: str) -> int:
        return self.names.index(implementation)


def sections(suite: BenchmarkSuiteResult, history: History | None = None) -> list[Section]:
    palette = Palette(suite)
    rows = [row for row in suite.get_successful_results().values() if row.latency_ms and math.isfinite(row.latency_ms)]
    return [
        Section(
            "latency",
            "Latency by size",
            "The median time of one call with its 95 % interval; both axes are logarithmic. Lower is better.",
            _latency_plots(rows, palette),
            "no row has a latency",
        ),
        Section(
            "speed",
            "Speed by case",
            "Speedup over the baseline on a logarithmic axis, and floating-point operations per second.",
            [*_speedup_plots(rows, palette), *_rate_plots(rows, palette)],
            "no row has a speedup or a rate",
        ),
        Section(
            "roofline",
            "Roofline",
            "What each row reaches, below what this machine was measured to reach at most.",
            _roofline_plots(rows, suite, palette),
            "no row has both operations and bytes",
        ),
        Section(
            "compile",
            "Compile time by stage",
            "How long each stage of the compile took.",
            _stage_plots(rows),
            "no row was compiled, or the stages were not timed",
        ),
        Section(
            "samples",
            "Samples in order",
            "Every sample by the median of its row, in the order of measurement: a slope is drift, a step is another "
            "state of the machine. Triangles at the edge lie beyond it.",
            _sample_plots(rows, palette),
            "no row has several samples",
        ),
        Section(
            "history",
            "History",
            "Latency over the runs of the history, with intervals.",
            _history_plots(rows, history, palette),
            "no history was given, or it has fewer than two runs of these rows",
        ),
    ]


def _plots(
    kind: str,
    label: str,
    groups: Mapping[str, list[BenchmarkResult]],
    paint: Callable[[Any, list[BenchmarkResult], Drawing], str],
    height: float,
    title: str = "",
) -> list[Plot]:
    """One plot for each group, under its name; `paint` draws the rows of one, and gives what is to be said below it."""
    plots: list[Plot] = []
    for name, rows in groups.items():
        draw, said = Drawing(f"{kind}-{len(plots)}", f"{label}{name}"), list[str]()
        svg = draw.svg(lambda figure, rows=rows, draw=draw, said=said: said.append(paint(figure, rows, draw)), height)
        plots.append(Plot(f"{title}{name}", svg, said[0]))
    return plots


def _by_benchmark(rows: Sequence[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    return grouped(rows, lambda row: f"{row.benchmark_name}, {row.precision}")


def _by_case(rows: Sequence[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    return grouped(rows, lambda row: f"{row.benchmark_name}, {row.case}")


# Latency, rates and speedups


def _latency_plots(rows: Sequence[BenchmarkResult], palette: Palette) -> list[Plot]:
    def paint(figure: Any, chosen: list[BenchmarkResult], draw: Drawing) -> str:
        axes, axis = figure.add_subplot(), axis_of(chosen)
        for name, line in lines_of(chosen).items():
            line.sort(key=lambda row: axis.positions[size_of(row)])
            index = palette.index(line[0].implementation)
            at = [axis.positions[size_of(row)] for row in line]
            times = [row.latency_ms or 0.0 for row in line]
            style = {"color": drawing.color(index), "marker": drawing.marker(index)}
            bars = axes.errorbar(at, times, yerr=whiskers(line), capsize=2.5, **style)
            draw.mark([bars.lines[0], *bars.lines[1], *bars.lines[2]], index, name)
        time_axis(axes, _ends(chosen))
        if axis.by_size:
            axes.set_xscale("log")
        dress(axes, axis, "latency")
        return axis.legend

    return _plots("latency", "latency by size: ", _by_benchmark(rows), paint, 3.2)


def _ends(rows: Sequence[BenchmarkResult]) -> list[float]:
    """The largest value that an axis of these rows' times has to reach."""
    ends = (end for row in rows for end in (row.latency_ms, *(row.confidence_interval_95 or ())))
    return [end for end in ends if end and 0 < end < math.inf]


def _speedup_plots(rows: Sequence[BenchmarkResult], palette: Palette) -> list[Plot]:
    chosen = [row for row in rows if row.speedup and math.isfinite(row.speedup) and row.baseline != row.implementation]

    def caption(some: list[BenchmarkResult]) -> str:
        return f"Bars above 1× are faster than {', '.join(sorted({row.baseline or 'the baseline' for row in some}))}."

    def finish(axes: Any, some: list[BenchmarkResult]) -> None:
        ends = [row.speedup or 1.0 for row in some]
        low, high = min(*ends, 0.9), max(*ends, 1.1)
        axes.set_yscale("log")
        axes.set_ylim(low / 1.25, high * 1.25)
        drawing.log_axis(axes.yaxis, lambda value: f"{value:g}×", low / 1.25, high * 1.25)
        axes.axhline(1.0, color=MUTED, linewidth=1)

    return _bar_plots("speedup", chosen, palette, lambda row: row.speedup, 1.0, "speedup", finish, caption)


def _rate_plots(rows: Sequence[BenchmarkResult], palette: Palette) -> list[Plot]:
    chosen = [row for row in rows if row.throughput_ops_per_sec and math.isfinite(row.throughput_ops_per_sec)]
    unit = wording.rate_unit([max((row.throughput_ops_per_sec or 0.0 for row in chosen), default=1.0)])

    def finish(axes: Any, some: list[BenchmarkResult]) -> None:
        drawing.plain_axis(axes.yaxis, lambda value: f"{value:g}")

    def value(row: BenchmarkResult) -> float | None:
        return (row.throughput_ops_per_sec or 0.0) / unit.size

    return _bar_plots("rate", chosen, palette, value, 0.0, unit.name, finish, lambda _: "Higher is better.")


def _bar_plots(
    kind: str,
    rows: Sequence[BenchmarkResult],
    palette: Palette,
    value: Callable[[BenchmarkResult], float | None],
    bottom: float,
    label: str,
    finish: Callable[[Any, list[BenchmarkResult]], None],
    caption: Callable[[list[BenchmarkResult]], str],
) -> list[Plot]:
    """One plot per benchmark and precision, with a cluster of bars per case."""

    def paint(figure: Any, chosen: list[BenchmarkResult], draw: Drawing) -> str:
        axes, axis, lines = figure.add_subplot(), axis_of(chosen, by_size=False), lines_of(chosen)
        width = 0.8 / len(lines)
        for number, (name, line) in enumerate(lines.items()):
            index = palette.index(line[0].implementation)
            for row in line:
                height = value(row) or 0.0
                at = axis.positions[size_of(row)] + (number - (len(lines) - 1) / 2) * width
                bars = axes.bar(at, height - bottom, width * 0.9, bottom, color=drawing.color(index))
                shown = f"{name}, {row.case}: {wording.number(height, 3)} {label if label != 'speedup' else '×'}"
                draw.mark(list(bars), index, shown)
        finish(axes, chosen)
        dress(axes, axis, label)
        return " ".join(filter(None, (caption(chosen), axis.legend)))

    title = f"{kind.capitalize()}: "
    return _plots(kind, title, _by_benchmark(rows), paint, 2.9, title)


# The roofline


def _roofline_plots(rows: Sequence[BenchmarkResult], suite: BenchmarkSuiteResult, palette: Palette) -> list[Plot]:
    chosen = [row for row in rows if row.flops and row.bytes_moved and row.latency_ms]
    memory = suite.ceilings.get("memory_gbps")
    bandwidth = memory * 1e9 if isinstance(memory, int | float) and memory > 0 else None
    rates = wording.ceiling_rates(suite)
    without = [name for name, there in (("memory", bandwidth), ("compute", rates)) if not there]
    caption = f"No measured ceiling for {' and '.join(without)}." if without else ""

    def paint(figure: Any, some: list[BenchmarkResult], draw: Drawing) -> str:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        points = [(_intensity(row), _reached(row)) for row in some]
        wanted = {
            precision: rate for precision, rate in rates.items() if any(row.precision == precision for row in some)
        }
        left, right = min(x for x, _ in points) / 4, max(x for x, _ in points) * 8
        heights = [y for _, y in points] + list((wanted or rates).values())
        if bandwidth:
            right = max(right, *(3 * rate / bandwidth for rate in (wanted or rates).values()), right)
            left = min(left, *(rate / bandwidth / 8 for rate in (wanted or rates).values()), left)
        axes.set_xlim(left, right)
        axes.set_ylim(min(heights) / 3, max(heights) * 2.2)
        _ceilings(axes, wanted or rates, bandwidth, left, right)
        for row in some:
            index = palette.index(row.implementation)
            shown = f"{row.implementation}, {row.case}: {short_rate(_reached(row))}"
            style = {"marker": drawing.marker(index), "color": drawing.color(index), "alpha": 0.9}
            dots = axes.plot(_intensity(row), _reached(row), markeredgewidth=0, linestyle="none", **style)
            draw.mark(dots, index, shown)
        axes.grid(visible=True, axis="both")
        drawing.log_axis(axes.xaxis, lambda value: f"{value:g}", left, right * 50)
        drawing.log_axis(axes.yaxis, short_rate, min(heights), max(heights) * 50)
        axes.set_xlabel("operations per byte moved")
        axes.set_ylabel("operations per second")
        return caption

    return _plots("roofline", "roofline: ", grouped(chosen, lambda row: row.benchmark_name), paint, 3.6)


def _ceilings(axes: Any, rates: dict[str, float], bandwidth: float | None, left: float, right: float) -> None:
    """The slope of the memory, and a level per precision; each says what it is."""
    top = max(rates.values(), default=None)
    if bandwidth:
        end = min(right, top / bandwidth) if top else right
        axes.plot([left, end], [left * bandwidth, end * bandwidth], color=MUTED, linewidth=1.6)
        # A third of what is seen of the slope, on its lower side.
        start = max(left, axes.get_ylim()[0] / bandwidth)
        between = start * (end / start) ** (1 / 3)
        text = f"{wording.number(bandwidth / 1e9, 3)} GB/s"
        drawing.caption(axes, text, (between, between * bandwidth), (7, -2), ha="left", va="top")
    for precision, rate in rates.items():
        start = rate / bandwidth if bandwidth else left
        axes.plot([start, right], [rate, rate], color=MUTED, linewidth=1.6)
        drawing.caption(axes, f"{precision} {short_rate(rate)}", (right, rate), (-2, 3), ha="right", va="bottom")


def _intensity(row: BenchmarkResult) -> float:
    return (row.flops or 0.0) / (row.bytes_moved or 1.0)


def _reached(row: BenchmarkResult) -> float:
    return (row.flops or 0.0) / ((row.latency_ms or 1.0) * 1e-3)


# Compile times


def _stage_plots(rows: Sequence[BenchmarkResult]) -> list[Plot]:
    chosen = [row for row in rows if row.stages_ms]
    if not chosen:
        return []
    slowest = sorted(chosen, key=lambda row: -sum(row.stages_ms.values()))[:MOST]
    kept = [row for row in chosen if row in slowest]
    stages = list(dict.fromkeys(name for row in kept for name in row.stages_ms))
    unit = wording.time_unit([max(sum(row.stages_ms.values()) for row in kept)])
    names = short_names(kept)
    draw = Drawing("compile-0", "compile time by stage")

    def paint(figure: Any) -> None:
        axes = figure.add_subplot()
        lefts = [0.0] * len(kept)
        for number, stage in enumerate(stages):
            for index, row in enumerate(kept):
                width = row.stages_ms.get(stage, 0.0)
                bar = axes.barh(
                    index, width / unit.size, 0.68, lefts[index] / unit.size, color=drawing.stage_color(number)
                )
                draw.mark(list(bar), -1, f"{names[index]}, {stage}: {wording.duration(width)}")
                lefts[index] += width
        for index, total in enumerate(lefts):
            axes.annotate(
                wording.duration(total),
                (total / unit.size, index),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=INK,
            )
        axes.set_xlim(0, max(lefts) / unit.size * 1.22 or 1)
        axes.set_ylim(len(kept) - 0.4, -0.6)
        drawing.named_ticks(axes.yaxis, dict(enumerate(names)), across=10_000)
        drawing.plain_axis(axes.xaxis, lambda value: f"{value:g}")
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.spines.bottom.set_visible(False)
        axes.set_xlabel(unit.name)

    caption = f"The {len(kept)} slowest of {len(chosen)} compiles." if len(kept) < len(chosen) else ""
    legend = [(stage, drawing.variable(drawing.stage_color(number))) for number, stage in enumerate(stages)]
    return [Plot("All stages", draw.svg(paint, 1.4 + 0.26 * len(kept)), caption, legend)]


# Samples in order


def _sample_plots(rows: Sequence[BenchmarkResult], palette: Palette) -> list[Plot]:
    chosen = [row for row in rows if len(row.samples_ms) > 1 and (row.latency_ms or 0) > 0]
    cases = _by_case(chosen)
    kept = _widest(cases)
    captions = [f"The {len(kept)} of {len(cases)} cases with the widest spread."] if len(kept) < len(cases) else []

    def paint(figure: Any, some: list[BenchmarkResult], draw: Drawing) -> str:
        axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=(5, 1))
        values = {row.key: _relative(row) for row in some}
        ordered = sorted(value for line in values.values() for value in line)
        middle = wording.quantile(ordered, 0.95)
        edge = max(100.5, min(ordered[-1], 100 + 3 * (middle - 100)))
        floor = max(ordered[0], 100 - 3 * max(edge - 100, 1.0))
        for row in some:
            index = palette.index(row.implementation)
            style: dict[str, Any] = {"color": drawing.color(index), "alpha": 0.9}
            inside = [(sample, value) for sample, value in enumerate(values[row.key], 1) if floor <= value <= edge]
            beyond = [
                (sample, edge if value > edge else floor)
                for sample, value in enumerate(values[row.key], 1)
                if not floor <= value <= edge
            ]
            dots = axes.plot(*_columns(inside), marker=".", markersize=4, linewidth=0.7, **style)
            late = axes.plot(*_columns(beyond), marker="^", markersize=5, linestyle="none", **style)
            across: dict[str, Any] = {"range": (floor, edge), "orientation": "horizontal", "histtype": "step"}
            steps = beside.hist([value for _, value in inside], 16, **across, **style)
            draw.mark([*dots, *late, *steps[2]], index, row.implementation)
        axes.set_ylabel("% of the row's median")
        axes.set_xlabel("sample")
        beside.set_xlabel("count")
        drawing.plain_axis(axes.yaxis, lambda value: f"{value:g}")
        drawing.named_ticks(beside.xaxis, {})
        drawing.plain_axis(axes.xaxis, lambda value: f"{value:g}", whole=True)
        axes.margins(x=0.02, y=0.06)
        return captions.pop() if captions else ""  # said once, below the first

    return _plots("samples", "samples in order: ", kept, paint, 2.6)


def _relative(row: BenchmarkResult) -> list[float]:
    middle = wording.quantile(sorted(row.samples_ms), 0.5)
    return [sample / middle * 100 for sample in row.samples_ms if math.isfinite(sample)] if middle else []


def _widest(cases: dict[Any, list[BenchmarkResult]]) -> dict[Any, list[BenchmarkResult]]:
    """At most so many cases, in their order."""
    spreads = {case: max(wording.spread_percent(row) or 0.0 for row in rows) for case, rows in cases.items()}
    kept = set(sorted(cases, key=lambda case: -spreads[case])[:MOST])
    return {case: rows for case, rows in cases.items() if case in kept}


# The history


def _history_plots(rows: Sequence[BenchmarkResult], history: History | None, palette: Palette) -> list[Plot]:
    if history is None:
        return []
    series = {row.key: history.series(row.key) for row in rows}
    chosen = [row for row in rows if len(series[row.key]) > 1]

    def paint(figure: Any, some: list[BenchmarkResult], draw: Drawing) -> str:
        axes = figure.add_subplot()
        names: dict[int, str] = {}
        for row in some:
            points = series[row.key]
            names |= {point.run: point.commit[:7] if point.commit else f"#{point.run}" for point in points}
            index, runs = palette.index(row.implementation), [point.run for point in points]
            color = drawing.color(index)
            line = axes.plot(runs, [point.value for point in points], color=color, marker=drawing.marker(index))
            lows = [point.value if point.low is None else point.low for point in points]
            highs = [point.value if point.high is None else point.high for point in points]
            band = axes.fill_between(runs, lows, highs, color=color, alpha=0.2, linewidth=0)
            draw.mark([*line, band], index, row.implementation)
        ends = [end for row in some for point in series[row.key] for end in (point.value, point.low, point.high)]
        time_axis(axes, [end for end in ends if end and 0 < end < math.inf])
        drawing.named_ticks(axes.xaxis, dict(sorted(names.items())))
        axes.set_xlabel("run")
        axes.set_ylabel("latency")
        return ""

    return _plots("history", "history: ", dict(list(_by_case(chosen).items())[:MOST]), paint, 2.8)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
