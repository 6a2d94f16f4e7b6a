"""Writes docs/evaluation.md and its plots from what lies in benchmarks/results: `python benchmarks/evaluation.py`.

Nothing is measured here. What a result file says of where and when it was measured is said in the page, and bars that
were missed are listed like those that were held.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "evaluation.md"
PLOTS = ROOT / "docs" / "plots"
_FONT = 'font-family="sans-serif" font-size="12"'
WRITTEN_BY = """Written by `python benchmarks/evaluation.py` from the files in `benchmarks/results`; do not edit.
How rows are measured: [TesseraBench](bench.md)."""


class Bar(NamedTuple):
    """A bar of a plot: its value, and the interval where there is one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def loaded(name: str) -> Any:
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def where(environment: dict[str, Any]) -> str:
    device = environment.get("gpu") or environment.get("processor")
    when = environment.get("date")
    return f"{device}{f', {when}' if when else ''}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def plot(title: str, bars: Sequence[Bar], one: str = "1") -> str:
    """Bars beside each other's names, with a line at 1, as an SVG that is readable on light and dark pages."""
    height, left, width = 22, 330, 860
    top = max(1.0, *(bar.high or bar.value for bar in bars))
    scale = (width - left - 60) / top
    tall = 34 + height * len(bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" {_FONT}>',
        f'<rect width="{width}" height="{tall}" fill="#ffffff"/>',
        f'<text x="8" y="18" font-size="14" font-weight="bold" fill="#1a1d21">{escape(title)}</text>',
    ]
    for index, bar in enumerate(bars):
        y = 30 + height * index
        colour = "#047857" if bar.value >= 1 else "#b45309"
        lines.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end" fill="#1a1d21">{escape(bar.name)}</text>')
        lines.append(f'<rect x="{left}" y="{y + 3}" width="{scale * bar.value:.1f}" height="15" fill="{colour}"/>')
        end = scale * (bar.high or bar.value)
        if bar.low is not None and bar.high is not None:
            x1, x2 = left + scale * bar.low, left + scale * bar.high
            lines.append(f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y + 10.5}" y2="{y + 10.5}" stroke="#1a1d21"/>')
        lines.append(f'<text x="{left + end + 6:.1f}" y="{y + 14}" fill="#1a1d21">{bar.value:.2f}</text>')
    x = left + scale
    lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="26" y2="{tall - 4}" stroke="#565d66" stroke-dasharray="4 3"/>')
    lines.append(f'<text x="{x:.1f}" y="24" text-anchor="middle" font-size="10" fill="#565d66">{escape(one)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


class Page:
    """The page while it is written: lines, and plots by their names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.plots: dict[str, str] = {}

    def add(self, *parts: str) -> None:
        """Paragraphs, each with an empty line behind it."""
        for part in parts:
            self.lines += [part, ""]

    def show(self, name: str, title: str, bars: Sequence[Bar], one: str) -> None:
        self.plots[name] = plot(title, bars, one)
        self.add(f"![{title}](plots/{name}.svg)")

    def rows(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self.lines += table(columns, rows)


# GPU


def against(row: dict[str, Any], peer: str) -> Bar | None:
    """How many times faster ours is than a peer, with the interval."""
    ratio = row.get("ratios", {}).get(peer)
    if ratio is None:
        return None
    interval = ratio.get("interval") or [None, None]
    return Bar(row["name"].removeprefix("agents "), ratio["ratio"], *interval)


def attention_on_gpu(page: Page) -> None:
    record = loaded("h200-agents.json")
    if record is None:
        return
    page.add("## Attention on a GPU", f"{where(record['environment'])}, against cuDNN: `h200-agents.json`.")
    found = [(row, against(row, "cudnn")) for row in record["rows"]]
    bars = [bar for row, bar in found if bar is not None and row["name"].startswith("agents attention")]
    if bars:
        page.show("attention-h200", "attention on an H200: times faster than cuDNN", bars, "cuDNN")
    rows = [
        (one["name"], one["peer"], f"{one['ratio']:.3f}", f"{one['bar']:g}", "held" if one["held"] else "MISSED")
        for one in record["means"]
    ]
    page.rows(("geometric mean of", "peer", "ours is", "bar", ""), rows)
    page.add("\n".join(barred(record["rows"])))


def barred(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many bars were held, and which were not."""
    bars = [(row["name"], peer, bar) for row in rows for peer, bar in row.get("bars", {}).items()]
    missed = [
        f"- {name}: {bar['ratio']:.3f} of {peer}, {bar['bar']:g} was wanted"
        for name, peer, bar in bars
        if not bar["held"]
    ]
    told = f"{len(bars) - len(missed)} of {len(bars)} bars on single rows were held"
    return [f"{told}. Missed:", "", *missed] if missed else [f"{told}."]


def rows_on_gpu(page: Page) -> None:
    record = loaded("h200-rows.json")
    if record is None:
        return
    page.add("## Other rows on a GPU", f"{where(record['environment'])}: `h200-rows.json`.")
    bars = [
        bar._replace(name=f"{bar.name}, {peer}")
        for row in record["rows"]
        for peer in row.get("ratios", {})
        if (bar := against(row, peer)) is not None
    ]
    if bars:
        page.show("rows-h200", "rows on an H200: times faster than a peer", bars, "the peer")


# CPU


def on_cpu(page: Page) -> None:
    record = loaded("cpu.json")
    if record is None:
        return
    page.add("## Kernels on the CPU", f"{where(record['environment'])}, against torch: `cpu.json`.")
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault(" ".join(row["name"].split()[:2]), []).append(row)
    bars = [Bar(name, mean([row["ratio"] for row in rows])) for name, rows in groups.items()]
    page.show("cpu", "kernels on the CPU: times faster than torch, geometric means", bars, "torch")
    told = [
        (
            name,
            str(len(rows)),
            f"{mean([row['ratio'] for row in rows]):.2f}",
            f"{min(row['ratio'] for row in rows):.2f}",
            held(rows),
            "yes" if all(row["accurate"] for row in rows) else "NO",
        )
        for name, rows in groups.items()
    ]
    page.rows(("kernels", "rows", "mean", "least", "bars held", "accurate"), told)


def held(rows: Sequence[dict[str, Any]]) -> str:
    barred_rows = [row for row in rows if row["bar"]]
    return f"{sum(row['ratio'] >= row['bar'] for row in barred_rows)} of {len(barred_rows)}" if barred_rows else ""


# Tiers


def tiers(page: Page) -> None:
    for path in sorted(RESULTS.glob("*-tiers.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        link = f"[the table](../benchmarks/results/{path.stem}.md)"
        page.add(f"## Tiers: {path.stem}", f"{where(record['environment'])}: `{path.name}`, {link}. {record['note']}")
        rows = [
            (name, f"{one['found']:.4g}", f"{one['bar']:.4g}", "holds" if one["holds"] else "MISSED")
            for name, one in record["bars"].items()
        ]
        page.rows(("bar", "found", "wanted", ""), rows)
        bars = [
            Bar(f"{one['name']}, {tier}", found["ratio"], *found["interval"])
            for one in record["speeds"]
            for tier in ("tier2", "tier3")
            if (found := one["against baseline"].get(tier)) is not None
        ]
        page.show(path.stem, "tiers: times faster than the frozen baseline", bars, "baseline")


def validations(page: Page) -> None:
    for path in sorted(RESULTS.glob("*validation*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        kind = "A quick validation" if record["quick"] else "The whole validation"
        link = f"[the report](../benchmarks/results/{path.stem}.md)"
        page.add(f"## Tiers: {path.stem}", f"{kind} on {where(record['environment'])}: `{path.name}`, {link}.")
        rows = [
            (
                {"must": "must", "should": "should", "nice": "nice"}.get(one["level"], "metric"),
                one["name"],
                one["wanted"],
                one["found"],
                "not tried" if one["holds"] is None else "holds" if one["holds"] else "MISSED",
            )
            for one in record["criteria"]
        ]
        page.rows(("", "criterion", "wanted", "found", ""), rows)
        bars = [
            Bar(f"{named(one['input_config'])}, tier {tier}", *one["against_baseline"][str(tier)])
            for one in record["individual_results"]
            for tier in (1, 2, 3)
        ]
        if bars:
            page.show(path.stem, "tiers: times faster than the frozen baseline", bars, "baseline")


def named(config: dict[str, Any]) -> str:
    return f"{config['batch_size']}x{config['num_heads']}x{config['seq_len']}x{config['head_dim']} {config['dtype']}"


# What traces teach


def recommendations(page: Page) -> None:
    """How many recommendations helped, and how many opportunities were found; how far off models are."""
    rows: list[tuple[str, ...]] = []
    for path in sorted(RESULTS.glob("recommendations-*.md")):
        text, link = path.read_text(encoding="utf-8"), f"[{path.stem}](../benchmarks/results/{path.name})"
        planted = r"Of (\d+) recommendations (.+?) (\d+) made .+? Of (\d+) planted opportunities.+?, (\d+) were found"
        swept = r"Recommended (.+?):\n(?s:.*?)\| all \| (\d+) \| (\d+) \| \S+ \| (\d+) \| (\d+) \|"
        found = [(way, made, *more) for made, way, *more in re.findall(planted, text)] + re.findall(swept, text)
        for way, made, helped, there, hits in found:
            shares = [f"{int(part) / max(1, int(whole)):.0%}" for part, whole in ((helped, made), (hits, there))]
            rows.append((link, way, made, f"{helped}, {shares[0]}", there, f"{hits}, {shares[1]}"))
    if rows:
        page.add(
            "## Recommendations",
            "Of those made with trials at least 90 % have to help, and 80 % of the opportunities to be found. Models "
            "had not seen the problems, and whether something helps was judged by other runs than those of trials.",
        )
        page.rows(("measured", "recommended", "made", "helped", "opportunities", "found"), rows)
    errors = [
        (f"[{path.stem}](../benchmarks/results/{path.name})", *found.groups())
        for path in sorted(RESULTS.glob("model-error-*.md"))
        if (found := re.search(r"\| all \| (\d+) \| (\S+) \| \S+ \| (\S+) \|", path.read_text(encoding="utf-8")))
    ]
    if errors:
        page.add(
            "## Models of running times", "Bars: a median error of 15 %, and 90 % inside of the intervals of 95 %."
        )
        page.rows(("problems that a model had not seen", "rows", "median error", "inside"), errors)


def other_results(page: Page) -> None:
    page.add("## Everything else that was measured")
    alone = [path for path in RESULTS.glob("*.md") if not path.with_suffix(".json").exists()]
    alone = [path for path in alone if not path.stem.startswith(("recommendations-", "model-error-"))]
    for path in sorted([*RESULTS.glob("*.txt"), *alone]):
        first = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
        told = first.strip().lstrip("# ").rstrip(".")[:140]
        page.lines.append(f"- [`{path.name}`](../benchmarks/results/{path.name}): {told}")


def written() -> tuple[str, dict[str, str]]:
    """The page, and its plots by their names."""
    page = Page()
    page.add("# Performance evaluation", WRITTEN_BY)
    attention_on_gpu(page)
    rows_on_gpu(page)
    on_cpu(page)
    tiers(page)
    validations(page)
    recommendations(page)
    other_results(page)
    return "\n".join(page.lines).rstrip() + "\n", page.plots


def main() -> None:
    text, plots = written()
    PAGE.write_text(text, encoding="utf-8")
    PLOTS.mkdir(exist_ok=True)
    for path in PLOTS.glob("*.svg"):
        if path.stem not in plots:
            path.unlink()
    for name, drawn in plots.items():
        (PLOTS / f"{name}.svg").write_text(drawn, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(text.splitlines())} lines, {len(plots)} plots")


if __name__ == "__main__":
    main()
