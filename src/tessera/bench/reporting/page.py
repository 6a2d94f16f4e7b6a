"""Results as one HTML page that needs nothing else: no network, no fonts, no other file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from tessera.bench.reporting import drawing, plots, wording
from tessera.bench.reporting.exchange import from_text, to_dict, write_atomically
from tessera.bench.reporting.history import History
from tessera.bench.results.comparison import Comparison, Verdict
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult, Row, size_text


@dataclass(frozen=True)
class _Card:
    title: str
    figure: str
    lines: list[str]
    tone: str = ""


@dataclass(frozen=True)
class _Line:
    """A row of the table: its cells, or why it has none."""

    benchmark: str
    size: str
    precision: str
    implementation: str
    series: int
    status: str
    reason: str
    cells: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def write_page(
    suite: BenchmarkSuiteResult,
    path: str | os.PathLike[str],
    *,
    history: History | None = None,
    comparison: Comparison | None = None,
) -> None:
    write_atomically(path, page(suite, history=history, comparison=comparison))


def page(suite: BenchmarkSuiteResult, *, history: History | None = None, comparison: Comparison | None = None) -> str:
    """The page as text; equal results give equal pages."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise BenchError(
            f"the page needs jinja2, which cannot be imported: {error}",
            hint="install it with `pip install 'tessera-lang[bench]'`",
        ) from None
    suite = _showable(suite)
    palette = plots.Palette(suite)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = resources.files("tessera.bench.reporting").joinpath("page.html.jinja").read_text("utf-8")
    columns = wording.columns(suite)
    text = environment.from_string(source).render(
        title=_title(suite),
        when=wording.moment(suite.suite_start_time),
        cards=_cards(suite, comparison),
        sections=plots.sections(suite, history),
        legend=[
            {"name": name, "series": number, "color": drawing.variable(drawing.color(number))}
            for number, name in enumerate(palette.names)
        ],
        columns=columns,
        several=len({row.benchmark_name for row in suite.results.values()}) > 1,
        lines=[_line(row, group, columns, palette) for group in wording.groups(suite) for row in group.rows],
        headings=wording.CHANGE_HEADINGS,
        changes=[
            {
                "tone": _TONES[change.verdict],
                "same": change.verdict is Verdict.SAME,
                "cells": wording.change_cells(change),
            }
            for change in (wording.ordered_changes(comparison) if comparison else ())
        ],
        remarks=wording.comparison_notes(comparison) if comparison else [],
        notes=wording.all_notes(suite),
        facts=wording.environment_facts(suite),
    )
    return "".join(letter if letter >= " " or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _showable(suite: BenchmarkSuiteResult) -> BenchmarkSuiteResult:
    """The same, with question marks for halves of surrogate pairs, which neither pages nor plots can show."""
    text = json.dumps(to_dict(suite), ensure_ascii=False)
    shown = text.encode("utf-8", "replace").decode()
    return suite if shown == text else from_text(shown, "the results")


_LIBRARIES = ("tessera", "python", "numpy", "llvmlite", "torch", "jax", "triton")
_TONES = {Verdict.REGRESSION: "bad", Verdict.IMPROVEMENT: "good", Verdict.SAME: "", Verdict.UNDECIDED: "unsure"}


def _title(suite: BenchmarkSuiteResult) -> str:
    names = list(dict.fromkeys(row.benchmark_name for row in suite.results.values()))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else "No results"


def _cards(suite: BenchmarkSuiteResult, comparison: Comparison | None) -> list[_Card]:
    failed, skipped = len(suite.get_failed_results()), len(suite.get_skipped_results())
    facts = dict(wording.environment_facts(suite))
    lasted = suite.suite_end_time - suite.suite_start_time
    outcome = [f"{failed} failed", f"{skipped} skipped"]
    if lasted > 0:
        outcome.append(f"in {wording.seconds(lasted)}")
    tone = "bad" if failed else "unsure" if suite.interrupted else "good"
    if suite.interrupted:
        outcome.append("the run was interrupted")
    cards = [_Card("Rows measured", str(len(suite.get_successful_results())), outcome, tone if suite.results else "")]
    if comparison is not None:
        lines = [f"{count} {wording.verdict_text(verdict)}" for verdict, count in wording.verdict_counts(comparison)]
        worst = wording.verdict_text(comparison.worst)
        cards.append(_Card("Against the baseline", worst, lines or ["nothing to compare"], _TONES[comparison.worst]))
    if (best := _best_speedup(suite)) is not None:
        cards.append(best)
    cards.append(_machine(facts))
    if suite.ceilings:
        parts = wording.ceilings_text(suite).split(", ")
        cards.append(_Card("Measured ceilings", parts[0] or "unavailable", parts[1:]))
    named = [f"{name} {facts[name]}" for name in _LIBRARIES if name in facts]
    if named:
        cards.append(_Card("Versions", named[0], named[1:]))
    return cards


def _best_speedup(suite: BenchmarkSuiteResult) -> _Card | None:
    """The median over the cases; the best alone would flatter."""
    speedups = sorted(
        row.speedup
        for row in suite.get_successful_results().values()
        if row.speedup is not None and row.implementation == "tessera" and row.baseline not in (None, "tessera")
    )
    if not speedups:
        return None
    middle = wording.quantile(speedups, 0.5)
    bases = {
        row.baseline
        for row in suite.get_successful_results().values()
        if row.baseline and row.implementation == "tessera"
    }
    extent = f"{wording.number(speedups[0], 3)}× to {wording.number(speedups[-1], 3)}× in {len(speedups)} cases"
    return _Card(
        "tessera, median speedup",
        f"{wording.number(middle, 3)}×",
        [f"over {', '.join(sorted(bases))}", extent if len(speedups) > 1 else "in one case"],
        "good" if middle > 1 else "bad" if middle < 1 else "",
    )


def _machine(facts: dict[str, str]) -> _Card:
    words = (("cores", "{} cores"), ("threads", "{} threads used"), ("level", "{}"), ("commit", "commit {:.9}"))
    return _Card(
        "Machine", facts.get("processor", "unknown"), [form.format(facts[key]) for key, form in words if key in facts]
    )


def _line(row: Row, group: wording.Group, columns: list[wording.Column], palette: plots.Palette) -> _Line:
    cells: list[dict[str, Any]] = []
    if isinstance(row, BenchmarkResult):
        for column in columns:
            cell = column.cell(row, group)
            unit = column.unit(group) if cell.value is not None else ""
            tone = {True: "good", False: "bad", None: ""}[cell.good]
            cells.append({"figure": cell.figure, "unit": unit, "extra": cell.extra, "value": cell.value, "tone": tone})
    return _Line(
        row.benchmark_name,
        size_text(row.problem_size),
        row.precision,
        group.name(row),
        palette.index(row.implementation),
        wording.status(row),
        wording.reason(row),
        cells,
    )
