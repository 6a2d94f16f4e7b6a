"""Results in the terminal: tables by case, comparisons with a baseline, and progress while a run lasts."""

from __future__ import annotations

from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from tessera.bench.reporting import wording
from tessera.bench.results.comparison import Change, Comparison, Verdict
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult, Row

_STYLES = {"failed": "red", "skipped": "dim"}
_VERDICT_STYLES = {
    Verdict.REGRESSION: "red",
    Verdict.IMPROVEMENT: "green",
    Verdict.SAME: "",
    Verdict.UNDECIDED: "yellow",
}
_WIDE = 118
"""Columns of a terminal in which a figure and its interval fit side by side."""


def print_suite(suite: BenchmarkSuiteResult, console: Console) -> None:
    console.print(suite_tables(suite))


def suite_tables(suite: BenchmarkSuiteResult) -> RenderableType:
    """One table per case, then what the reader has to know about them."""
    columns = wording.columns(suite)
    parts: list[RenderableType] = [_GroupTable(group, columns) for group in wording.groups(suite)]
    if not parts:
        parts.append(Text("no rows"))
    if ceilings := wording.ceilings_text(suite):
        parts.append(Text(f"measured ceilings: {ceilings}"))
    parts += [Text(f"note: {note}", style="yellow") for note in wording.notes(suite)]
    if missing := wording.unavailable(suite):
        parts.append(Text(f"unavailable: {'; '.join(f'{name} ({why})' for name, why in missing)}", style="dim"))
    parts.append(Text(wording.counts_text(suite), style="bold"))
    return Group(*parts)


class _GroupTable:
    """The table of one case. In a narrow terminal, intervals and bounds go below their wording."""

    def __init__(self, group: wording.Group, columns: list[wording.Column]) -> None:
        self._group = group
        self._columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.max_width < _WIDE
        group = self._group
        yield Text(group.title, style="bold")
        if group.results:
            table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0 if narrow else 1))
            table.add_column("" if narrow else "implementation", overflow="fold")
            for column in self._columns:
                table.add_column(f"{column.heading}\n[dim]{column.unit(group)}[/dim]", justify="right")
            for row in group.results:
                cells = [_styled(column.cell(row, group), narrow) for column in self._columns]
                table.add_row(Text(group.name(row)), *cells, style=_STYLES.get(wording.status(row), ""))
            yield table
        yield from (_without_figures(group, row) for row in group.rows if wording.reason(row))
        for row in group.results:
            yield from (Text(f"  {group.name(row)}: {warning}", style="yellow") for warning in row.warnings)
        yield Text("")


def _without_figures(group: wording.Group, row: Row) -> Text:
    status = wording.status(row)
    return Text(f"  {group.name(row)} {status}: {wording.reason(row)}", style=_STYLES[status])


def _styled(cell: wording.Cell, narrow: bool) -> Text:
    text = f"{cell.figure}\n{cell.extra}" if narrow and cell.extra else cell.text
    return Text(text, style={True: "green", False: "red", None: ""}[cell.good])


def print_comparison(comparison: Comparison, console: Console) -> None:
    console.print(comparison_table(comparison))


def comparison_table(comparison: Comparison) -> RenderableType:
    """A row and what became of its figures, what asks for attention first; then what could not be compared."""
    by_row: dict[str, list[Change]] = {}
    for change in wording.ordered_changes(comparison):
        by_row.setdefault(change.key, []).append(change)
    parts: list[RenderableType] = []
    for key, changes in by_row.items():
        parts += [Text(key, style="bold"), _change_table(changes)]
        for change in changes:
            if style := _VERDICT_STYLES[change.verdict]:
                parts.append(Text(f"  {change.metric}: {change.reason}", style=style))
        parts.append(Text(""))
    parts += [Text(f"note: {note}", style="yellow") for note in wording.comparison_notes(comparison)]
    parts.append(Text(wording.comparison_text(comparison), style="bold"))
    return Group(*parts)


def _change_table(changes: list[Change]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    # Widths of their own would not line up from row to row.
    for heading, width in zip(wording.CHANGE_HEADINGS[1:-1], (22, 9, 9, 8, 16, 11), strict=True):
        words = heading in ("metric", "verdict")
        table.add_column(heading, justify="left" if words else "right", width=width, overflow="fold")
    for change in changes:
        table.add_row(*map(Text, wording.change_cells(change)[1:-1]), style=_VERDICT_STYLES[change.verdict])
    return table


class Progress:
    """Shows the progress of a run. A terminal gets a bar; anything else gets one line per finished row."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._done = 0
        self._bar: RichProgress | None = None
        if console.is_terminal:
            self._bar = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[detail]}", style="dim"),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=total, detail="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, what: str) -> None:
        """Names the case that is measured now."""
        if self._bar is not None:
            self._bar.update(self._task, description=escape(what), detail="")

    def detail(self, text: str) -> None:
        """How far the case is: samples so far, the width of the interval."""
        if self._bar is not None:
            self._bar.update(self._task, detail=escape(text))

    def finish(self, row: Row) -> None:
        self._done += 1
        self._console.print(self._line(row), soft_wrap=True)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _line(self, row: Row) -> Text:
        status = wording.status(row)
        line = Text(f"[{self._done}/{self._total}] {row.benchmark_name} {row.case} {row.implementation}: ")
        if isinstance(row, BenchmarkResult) and status == "ok":
            latency = "no latency" if row.latency_ms is None else wording.duration(row.latency_ms)
            line.append(f"{latency}, {row.measurements_count} samples")
        else:
            line.append(f"{status}: {wording.reason(row)}", style=_STYLES[status])
        return line
