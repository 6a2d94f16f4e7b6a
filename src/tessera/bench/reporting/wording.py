"""A suite's figures in words: the groups, cells and units that tables, Markdown and the page share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tessera.bench.results.comparison import Change, Comparison, Verdict
from tessera.bench.results.results import SKIPPED, BenchmarkError, BenchmarkResult, BenchmarkSuiteResult, Row

NONE = "–"


@dataclass(frozen=True)
class Unit:
    """A unit and how many of the base unit it is."""

    name: str
    size: float


_TIMES = (Unit("ns", 1e-6), Unit("µs", 1e-3), Unit("ms", 1.0), Unit("s", 1e3))
_RATES = (Unit("MFLOP/s", 1e6), Unit("GFLOP/s", 1e9), Unit("TFLOP/s", 1e12), Unit("PFLOP/s", 1e15))


def time_unit(milliseconds: Iterable[float | None]) -> Unit:
    """The unit in which the times, by their geometric mean, are numbers above 1."""
    return _unit(milliseconds, _TIMES)


def rate_unit(operations_per_second: Iterable[float | None]) -> Unit:
    return _unit(operations_per_second, _RATES)


def _unit(values: Iterable[float | None], units: tuple[Unit, ...]) -> Unit:
    logarithms = [math.log(value) for value in values if value and 0 < value < math.inf]
    # A little more, so that what rounding made of exactly 1 is still 1.
    middle = math.exp(sum(logarithms) / len(logarithms)) * (1 + 1e-9) if logarithms else 1.0
    return next((unit for unit in reversed(units) if middle >= unit.size), units[0])


def number(value: float, digits: int = 4) -> str:
    """With so many significant digits, without an exponent where that is readable."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def duration(milliseconds: float) -> str:
    unit = time_unit([milliseconds])
    return f"{number(milliseconds / unit.size)} {unit.name}"


def seconds(value: float) -> str:
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes else f"{value:.1f} s"


def moment(timestamp: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(timestamp)) if timestamp else "unknown"
    except (ArithmeticError, OSError, ValueError):  # no calendar has it
        return "unknown"


def status(row: Row) -> str:
    """`ok`, `failed` or `skipped`."""
    if isinstance(row, BenchmarkError):
        return "skipped" if row.error_type == SKIPPED else "failed"
    return "ok" if row.is_valid() else "failed"


def reason(row: Row) -> str:
    """Why a row has no figures that count; empty when it has."""
    if isinstance(row, BenchmarkResult):
        return "; ".join(row.errors)
    return row.error_message if row.error_type in (SKIPPED, "unknown") else f"{row.error_type}: {row.error_message}"


def quantile(ordered: list[float], share: float) -> float:
    """By linear interpolation, of values in order."""
    rank = share * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def spread_percent(row: BenchmarkResult) -> float | None:
    """The middle half of the samples, in percent of their median."""
    if len(row.samples_ms) < 4:
        return None
    ordered = sorted(row.samples_ms)
    middle = quantile(ordered, 0.5)
    return (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / middle * 100 if middle else None


@dataclass(frozen=True)
class Cell:
    """A figure, what belongs to it (its interval), and the number that it is sorted by."""

    figure: str
    extra: str = ""
    value: float | None = None
    good: bool | None = None

    @property
    def text(self) -> str:
        return f"{self.figure} {self.extra}".strip()


_EMPTY = Cell(NONE)


@dataclass(frozen=True)
class Group:
    """The rows of one case, which are comparable, in the order of measurement."""

    benchmark: str
    case: str
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        return f"{self.benchmark}  {self.case}"

    @property
    def results(self) -> list[BenchmarkResult]:
        return [row for row in self.rows if isinstance(row, BenchmarkResult)]

    @property
    def baselines(self) -> set[str]:
        return {row.baseline for row in self.results if row.baseline is not None}

    @property
    def times(self) -> Unit:
        return time_unit(row.latency_ms for row in self.results)

    @property
    def rates(self) -> Unit:
        return rate_unit(row.throughput_ops_per_sec for row in self.results)

    def name(self, row: Row) -> str:
        """The implementation, with its threads where the group has several counts of them."""
        several = len({other.threads for other in self.rows}) > 1
        return f"{row.implementation} ({row.threads} threads)" if several else row.implementation


def groups(suite: BenchmarkSuiteResult) -> list[Group]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in suite.results.values():
        found.setdefault((row.benchmark_name, row.case), []).append(row)
    return [Group(benchmark, case.strip(), tuple(rows)) for (benchmark, case), rows in found.items()]


@dataclass(frozen=True)
class Column:
    """A column of figures: its heading, its unit in a group, what it means, and a row's cell in it."""

    heading: str
    unit: Callable[[Group], str]
    meaning: str
    cell: Callable[[BenchmarkResult, Group], Cell]


def _latency(row: BenchmarkResult, group: Group) -> Cell:
    if row.latency_ms is None:
        return _EMPTY
    extra = ""
    if row.confidence_interval_95 is not None and row.latency_ms:
        low, high = row.confidence_interval_95
        extra = f"±{number(max(high - row.latency_ms, row.latency_ms - low) / row.latency_ms * 100, 2)} %"
    return Cell(number(row.latency_ms / group.times.size), extra, row.latency_ms)


def _spread(row: BenchmarkResult, group: Group) -> Cell:
    spread = spread_percent(row)
    return _EMPTY if spread is None else Cell(number(spread, 2), value=spread)


def _rate(row: BenchmarkResult, group: Group) -> Cell:
    rate = row.throughput_ops_per_sec
    return _EMPTY if rate is None else Cell(number(rate / group.rates.size), value=rate)


def _bandwidth(row: BenchmarkResult, group: Group) -> Cell:
    rate = row.memory_bandwidth_gbps
    return _EMPTY if rate is None else Cell(number(rate, 3), value=rate)


def _peak(row: BenchmarkResult, group: Group) -> Cell:
    percent = row.compute_utilization_percent
    return _EMPTY if percent is None else Cell(number(percent, 3), value=percent)


def _accuracy(row: BenchmarkResult, group: Group) -> Cell:
    compared = row.reference_comparison or {}
    error, bound = compared.get("error", row.numerical_accuracy), compared.get("bound")
    if error is None:
        return _EMPTY
    if bound is None:
        return Cell(f"{error:.1e}", value=error)
    good = error <= bound
    return Cell(f"{error:.1e}", f"{'≤' if good else '>'} {bound:.0e}", error, good)


def _speedup(row: BenchmarkResult, group: Group) -> Cell:
    if row.implementation in group.baselines and row.baseline in (None, row.implementation):
        return Cell("baseline", value=1.0)
    if row.speedup is None:
        return _EMPTY
    extra, good = "", None
    if row.speedup_interval is not None:
        low, high = row.speedup_interval
        extra = f"{number(low, 3)}–{number(high, 3)}"
        good = True if low > 1 else False if high < 1 else None
    return Cell(f"{number(row.speedup, 3)}×", extra, row.speedup, good)


def _samples(row: BenchmarkResult, group: Group) -> Cell:
    return Cell(str(row.measurements_count), value=row.measurements_count)


def _no_unit(group: Group) -> str:
    return ""


def _percent(group: Group) -> str:
    return "%"


COLUMNS = (
    Column(
        "latency",
        lambda group: group.times.name,
        "the median of the samples, per call; ± the wider side of its 95 % confidence interval",
        _latency,
    ),
    Column("spread", _percent, "the middle half of the samples (interquartile range), by their median", _spread),
    Column("rate", lambda group: group.rates.name, "floating-point operations of all samples over their time", _rate),
    Column("memory", lambda group: "GB/s", "the bytes that must be moved at least, by the latency", _bandwidth),
    Column("of peak", _percent, "operations per second, of those that the machine was measured to reach", _peak),
    Column("error", _no_unit, "relative error in norm against float64, and the bound it is held against", _accuracy),
    Column(
        "speedup",
        _no_unit,
        "the baseline's time over this one's, by pairs of samples, with its confidence interval",
        _speedup,
    ),
    Column("samples", _no_unit, "how many samples the figures come from", _samples),
)


def columns(suite: BenchmarkSuiteResult) -> list[Column]:
    """Those that some row has a figure for."""
    found = groups(suite)
    return [
        column
        for column in COLUMNS
        if any(column.cell(row, group) is not _EMPTY for group in found for row in group.results)
    ]


def notes(suite: BenchmarkSuiteResult) -> list[str]:
    """Sentences about the run as a whole."""
    found = ["the run was interrupted; these are the rows so far"] if suite.interrupted else []
    warnings = suite.ceilings.get("warnings")
    if isinstance(warnings, list | tuple):
        found += [f"ceilings: {warning}" for warning in cast(Iterable[Any], warnings)]
    return found


def all_notes(suite: BenchmarkSuiteResult) -> list[str]:
    """With the warnings of every row, and what could not be had, each reason once."""
    found = notes(suite)
    for row in suite.results.values():
        if isinstance(row, BenchmarkResult):
            found += [f"{row.benchmark_name} {row.case} {row.implementation}: {warning}" for warning in row.warnings]
    return found + [f"{name}: unavailable ({why})" for name, why in unavailable(suite)]


def unavailable(suite: BenchmarkSuiteResult) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for prefix, facts in (("", suite.environment), ("ceiling of ", suite.ceilings)):
        missing = facts.get("unavailable")
        if isinstance(missing, Mapping):
            found |= {(f"{prefix}{name}", str(why)): None for name, why in cast(Mapping[Any, Any], missing).items()}
    for row in suite.results.values():
        if isinstance(row, BenchmarkResult):
            found |= dict.fromkeys(row.unavailable.items())
    return list(found)


def ceilings_text(suite: BenchmarkSuiteResult) -> str:
    """`memory 21.3 GB/s, f32 310.2 GFLOP/s`; empty when nothing was measured."""
    parts: list[str] = []
    memory = suite.ceilings.get("memory_gbps")
    if isinstance(memory, int | float):
        parts.append(f"memory {number(memory)} GB/s")
    for precision, rate in ceiling_rates(suite).items():
        unit = rate_unit([rate])
        parts.append(f"{precision} {number(rate / unit.size)} {unit.name}")
    return ", ".join(parts)


def ceiling_rates(suite: BenchmarkSuiteResult) -> dict[str, float]:
    rates = suite.ceilings.get("flops_per_second")
    if not isinstance(rates, Mapping):
        return {}
    found = cast(Mapping[Any, Any], rates)
    return {str(name): float(rate) for name, rate in found.items() if isinstance(rate, int | float) and rate > 0}


def counts_text(suite: BenchmarkSuiteResult) -> str:
    """`22 measured, 1 failed, 1 skipped`."""
    others = ("failed", suite.get_failed_results()), ("skipped", suite.get_skipped_results())
    parts = [f"{len(rows)} {word}" for word, rows in others if rows]
    return ", ".join([f"{len(suite.get_successful_results())} measured", *parts])


def environment_facts(suite: BenchmarkSuiteResult) -> list[tuple[str, str]]:
    """The environment as names and texts; what holds several values is joined."""
    facts: list[tuple[str, str]] = []
    for name, value in suite.environment.items():
        if name == "unavailable":
            continue
        if name.endswith("_bytes") and isinstance(value, int | float):
            facts.append((name.removesuffix("_bytes"), f"{value / 2**30:.1f} GiB"))
        else:
            facts.append((name, _fact(value)))
    return [(name, text) for name, text in facts if text]


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(inner)}" for name, inner in cast(Mapping[Any, Any], value).items())
    if isinstance(value, list | tuple):
        parts = [_fact(inner) for inner in cast(Iterable[Any], value)]
        return ("; " if any(", " in part for part in parts) else ", ").join(parts)
    if isinstance(value, float):
        return number(value)
    return "" if value is None else str(value)


# Comparisons

CHANGE_HEADINGS = ("row", "metric", "baseline", "current", "change", "interval", "verdict", "why")
_ORDER = (Verdict.REGRESSION, Verdict.UNDECIDED, Verdict.IMPROVEMENT, Verdict.SAME)


def ordered_changes(comparison: Comparison) -> list[Change]:
    """Changes ordered by urgency; equal verdicts stay in the order of the rows."""
    return sorted(comparison.changes, key=lambda change: _ORDER.index(change.verdict))


def change_cells(change: Change) -> tuple[str, ...]:
    """A change as texts, one per heading."""
    interval = change.interval_percent
    return (
        change.key or NONE,
        change.metric,
        NONE if change.baseline is None else number(change.baseline),
        NONE if change.current is None else number(change.current),
        NONE if change.change_percent is None else f"{change.change_percent:+.1f} %",
        NONE if interval is None else f"{interval[0]:+.1f} … {interval[1]:+.1f} %",
        verdict_text(change.verdict),
        change.reason,
    )


def verdict_text(verdict: Verdict) -> str:
    return verdict.name.lower()


def verdict_counts(comparison: Comparison) -> list[tuple[Verdict, int]]:
    counts = ((verdict, sum(change.verdict is verdict for change in comparison.changes)) for verdict in _ORDER)
    return [(verdict, count) for verdict, count in counts if count]


def comparison_text(comparison: Comparison) -> str:
    """`1 regression, 5 same`."""
    counts = [f"{count} {verdict_text(verdict)}" for verdict, count in verdict_counts(comparison)]
    return ", ".join(counts) or "nothing to compare"


def comparison_notes(comparison: Comparison) -> list[str]:
    return [
        *(f"missing in the current run: {key}" for key in comparison.missing),
        *(f"not in the baseline: {key}" for key in comparison.new),
        *comparison.notes,
    ]
