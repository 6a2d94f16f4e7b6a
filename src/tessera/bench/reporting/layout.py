"""Where rows stand in a plot: groups, lines, axes of sizes, and names short enough for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tessera.bench.reporting import drawing, wording
from tessera.bench.reporting.drawing import GRID
from tessera.bench.results.results import BenchmarkResult, size_text

_LISTED = 12
"""Cases that a caption lists by their numbers."""


@dataclass(frozen=True)
class Axis:
    """Where cases stand on an axis: at their size when only one number varies, else one after another."""

    label: str
    positions: dict[str, float]
    names: dict[float, str]
    by_size: bool
    legend: str = ""
    """The meaning of the numbers, where cases are numbered."""


def grouped(rows: Sequence[BenchmarkResult], key: Callable[[BenchmarkResult], Any]) -> dict[Any, list[BenchmarkResult]]:
    found: dict[Any, list[BenchmarkResult]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def lines_of(rows: list[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    """By implementation, and by threads where there are several counts of them."""
    several = len({row.threads for row in rows}) > 1
    return grouped(rows, lambda row: f"{row.implementation} ({row.threads} threads)" if several else row.implementation)


def size_of(row: BenchmarkResult) -> str:
    return size_text(row.problem_size)


def _varying(rows: Sequence[BenchmarkResult]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row.problem_size)
    return [name for name in names if len({str(row.problem_size.get(name)) for row in rows}) > 1]


def axis_of(rows: list[BenchmarkResult], by_size: bool = True) -> Axis:
    """The axis of these rows' sizes; of bars, always one case after another."""
    varying = _varying(rows)
    sizes = {size_of(row): row for row in rows}
    if len(varying) == 1:
        values = {size: row.problem_size.get(varying[0]) for size, row in sizes.items()}
        numbers = {
            size: float(value)
            for size, value in values.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
        }
        if len(numbers) == len(sizes):
            positions = dict(sorted(numbers.items(), key=lambda item: item[1]))
            if not by_size:
                named = {float(number): f"{value:g}" for number, value in enumerate(positions.values())}
                return Axis(varying[0], dict(zip(positions, named, strict=True)), named, by_size=False)
            named = {value: f"{value:g}" if value < 100_000 else f"{value:.2g}" for value in positions.values()}
            return Axis(varying[0], positions, named, by_size=True)
    ordered = sorted(sizes, key=lambda size: sizes[size].flops or 0.0)
    positions = {size: float(number) for number, size in enumerate(ordered)}
    words = {size: [f"{name}={sizes[size].problem_size.get(name)}" for name in varying] or [size] for size in ordered}
    letters = sum(max(len(word) for word in words[size]) + 1.5 for size in ordered)
    if len(ordered) > 1 and letters > drawing.ACROSS:
        numbers = {number: f"{number + 1:.0f}" for number in positions.values()}
        listed = "; ".join(f"{positions[size] + 1:.0f}: {' '.join(words[size])}" for size in ordered)
        legend = "Cases are numbered by their operations, fewest first."
        return Axis("case", positions, numbers, by_size=False, legend=listed if len(ordered) <= _LISTED else legend)
    if not varying:
        return Axis(
            "size", positions, {number: size.replace(" ", "\n") for size, number in positions.items()}, by_size=False
        )
    return Axis("", positions, {positions[size]: "\n".join(words[size]) for size in ordered}, by_size=False)


def dress(axes: Any, axis: Axis, label: str) -> None:
    drawing.named_ticks(axes.xaxis, axis.names, log=axis.by_size)
    if not axis.by_size:
        # A single case does not fill the plot.
        margin = max(0.6, 1.4 - 0.4 * len(axis.names))
        axes.set_xlim(min(axis.names) - margin, max(axis.names) + margin)
    axes.set_xlabel(shortened(axis.label))
    axes.set_ylabel(label)
    axes.tick_params(axis="x", color=GRID)


def time_axis(axes: Any, times: Sequence[float]) -> None:
    """A logarithmic axis of times that does not make much of small differences."""
    low, high = min(times) / 1.25, max(times) * 1.25
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    drawing.log_axis(axes.yaxis, short_time, low, high)


def short_names(rows: list[BenchmarkResult]) -> list[str]:
    """Names that tell these rows apart and say no more."""
    several = {
        "benchmark_name": len({row.benchmark_name for row in rows}) > 1,
        "precision": len({row.precision for row in rows}) > 1,
        "implementation": len({row.implementation for row in rows}) > 1,
    }
    varying = _varying(rows)
    names: list[str] = []
    for row in rows:
        parts = [f"{name}={row.problem_size.get(name)}" for name in varying]
        parts += [getattr(row, name) for name, there in several.items() if there]
        names.append(" ".join(parts) or row.benchmark_name)
    return [shortened(name) for name in names]


def shortened(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"


def whiskers(line: list[BenchmarkResult]) -> list[list[float]]:
    """How far the interval reaches below and above each point."""
    lows: list[float] = []
    highs: list[float] = []
    for row in line:
        middle = row.latency_ms or 0.0
        low, high = row.confidence_interval_95 or (middle, middle)
        lows.append(max(0.0, min(middle - low, middle * 0.999)))
        highs.append(max(0.0, high - middle) if math.isfinite(high) else 0.0)
    return [lows, highs]


def short_time(milliseconds: float) -> str:
    unit = wording.time_unit([milliseconds])
    return f"{milliseconds / unit.size:.3g} {unit.name}"


def short_rate(rate: float) -> str:
    unit = wording.rate_unit([rate])
    return f"{rate / unit.size:.3g} {unit.name}"
