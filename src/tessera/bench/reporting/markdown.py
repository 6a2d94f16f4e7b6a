"""Results as GitHub Markdown: where they were measured, a table per case, and what the reader has to know."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from tessera.bench.reporting import wording
from tessera.bench.reporting.exchange import write_atomically
from tessera.bench.results.results import BenchmarkSuiteResult


def write_markdown(suite: BenchmarkSuiteResult, path: str | os.PathLike[str]) -> None:
    write_atomically(path, suite_markdown(suite))


def suite_markdown(suite: BenchmarkSuiteResult) -> str:
    columns = wording.columns(suite)
    parts = ["# Benchmark results", f"{wording.counts_text(suite)}, {wording.moment(suite.suite_start_time)}"]
    facts = wording.environment_facts(suite)
    if ceilings := wording.ceilings_text(suite):
        facts.append(("measured ceilings", ceilings))
    if facts:
        parts.append(table(("environment", ""), facts))
    for group in wording.groups(suite):
        parts.append(f"## {escaped(group.benchmark)}: {escaped(group.case)}")
        if group.results:
            headings = [_heading(column, group) for column in columns]
            rows = [[group.name(row), *(column.cell(row, group).text for column in columns)] for row in group.results]
            parts.append(table(["implementation", *headings], rows))
        without = [row for row in group.rows if wording.reason(row)]
        parts.append(_list(f"{group.name(row)} {wording.status(row)}: {wording.reason(row)}" for row in without))
    parts.append(_list(f"note: {note}" for note in wording.all_notes(suite)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(column: wording.Column, group: wording.Group) -> str:
    unit = column.unit(group)
    return f"{column.heading}, {unit}" if unit else column.heading


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, figures to the right."""
    rule = [":--", *("--:" for _ in headings[1:])]
    if len(headings) == 2:
        rule[1] = ":--"
    lines = [[escaped(text) for text in headings], rule, *([escaped(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(item)}" for item in items)


def escaped(text: str) -> str:
    """As plain text within one line, whatever it holds."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|`*\[\]])", r"\\\1", text)
