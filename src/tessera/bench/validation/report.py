"""The report: every acceptance criterion with what was found, as an object, JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tessera.bench.configs import InputConfiguration
from tessera.bench.reporting.exchange import write_atomically
from tessera.bench.validation.benchmark_suite import TierBenchmarkResult
from tessera.bench.validation.framework import ValidationIssue, ValidationResult
from tessera.bench.validation.opportunities import Planted
from tessera.bench.validation.progress import plain
from tessera.bench.validation.robustness import RobustnessValidation
from tessera.errors import TesseraError

FORM = 1
LEVELS = {"must": "must have", "should": "should have", "nice": "nice to have", "metric": "metrics of section 10.1"}


@dataclass(frozen=True)
class Criterion:
    """One criterion: what is wanted and what was found. `holds` is None where it could not be tried."""

    level: str
    name: str
    wanted: str
    found: str
    holds: bool | None
    note: str = ""


@dataclass(frozen=True)
class PerformanceValidation:
    """Speeds against the frozen baseline, in the geometric mean: 0.15 is 15 % faster."""

    tier2_improvement_achieved: bool
    tier3_improvement_achieved: bool
    tier1_least: float
    tier2_average_improvement: float
    tier3_average_improvement: float
    configurations_tested: int
    tracing_overhead: float | None
    orchestration_overhead: float | None
    orchestration_us: float | None
    tracing_of: str = ""
    """The overhead of tracing, of the shortest configuration and of one of middle length; the larger one counts."""


@dataclass(frozen=True)
class ValidationReport:
    """Everything that a validation found."""

    overall_success: bool
    performance: PerformanceValidation
    correctness: ValidationResult
    robustness: RobustnessValidation
    individual_results: tuple[TierBenchmarkResult, ...]
    planted: tuple[Planted, ...]
    criteria: tuple[Criterion, ...]
    environment: Mapping[str, Any]
    device: str
    quick: bool
    seconds: float
    failures: tuple[str, ...] = ()
    issues: tuple[ValidationIssue, ...] = field(default_factory=tuple)
    runs: int = 1
    """That it took: a run that was stopped is gone on with by the next."""

    def write(self, path: Path) -> tuple[Path, Path]:
        """PATH.json and PATH.md."""
        data, text = path.with_suffix(".json"), path.with_suffix(".md")
        data.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(data, json.dumps({**plain(self), "form": FORM}, indent=1, default=str) + "\n")
        write_atomically(text, self.markdown())
        return data, text

    def markdown(self) -> str:
        about = self.environment
        where = about.get("gpu") or about.get("processor")
        kind = "quick validation" if self.quick else "validation"
        commit, success = about.get("commit"), "All" if self.overall_success else "NOT all"
        when = f"{about.get('date')}{f', commit {commit[:12]}' if commit else ''}, in {self.seconds:.0f} s"
        when += f", in {self.runs} runs" if self.runs > 1 else ""
        told = f"A {kind} on {where} ({self.device}), {when}. {success} of what must hold holds."
        lines = ["# Validation of tiers", "", told, ""]
        for level, title in LEVELS.items():
            rows = [one for one in self.criteria if one.level == level]
            lines += [f"## {title[0].upper()}{title[1:]}", "", "| criterion | wanted | found | |", "|---|---|---|---|"]
            lines += [
                f"| {one.name} | {one.wanted} | {one.found}{f' ({one.note})' if one.note else ''} | {verdict(one)} |"
                for one in rows
            ]
            lines.append("")
        lines += _speeds(self.individual_results)
        lines += ["## Opportunities that were planted", "", "| what | found | |", "|---|---|---|"]
        lines += [f"| {one.name} | {'yes' if one.found else 'NO'} | {one.told} |" for one in self.planted]
        issues = [f"{one.severity.value}: {one.description}. {one.suggested_fix}" for one in self.issues]
        issues += [*self.failures, *self.robustness.told]
        if issues:
            lines += ["", "## Issues", "", *(f"- {one}" for one in issues)]
        return "\n".join(lines) + "\n"


def verdict(one: Criterion) -> str:
    return "not tried" if one.holds is None else "holds" if one.holds else "MISSED"


def _speeds(results: Sequence[TierBenchmarkResult]) -> list[str]:
    columns = ("configuration", "baseline", "tier 1", "tier 2", "tier 3", "interval", "over tier 1, p", "TFLOP/s")
    lines = ["## Speeds", "", "Times faster than the frozen baseline; the interval is that of Tier 3.", ""]
    lines += [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    for one in results:
        third = one.against_baseline[3]
        cells = [named(one.input_config), f"{1e3 * one.baseline_metrics.median_time_ms:.1f} µs"]
        cells += [f"{one.against_baseline[tier][0]:.3f}" for tier in (1, 2, 3)]
        cells += [f"{third[1]:.3f}–{third[2]:.3f}", f"{one.tier3_vs_tier1_speedup:.2f}, {one.p_value_tier3:.1e}"]
        lines.append(f"| {' | '.join([*cells, f'{one.tier3_metrics.tflops_achieved:.3g}'])} |")
    return [*lines, ""]


def named(config: InputConfiguration) -> str:
    size = f"{config.batch_size}x{config.num_heads}x{config.seq_len}x{config.head_dim}"
    return f"{size} {config.dtype}{' causal' if config.is_causal else ''}"


def samples_of(results: Iterable[TierBenchmarkResult]) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by configuration, then by tier."""
    return {named(one.input_config): one.samples for one in results}


def earlier_samples(path: Path) -> dict[str, dict[str, list[float]]]:
    """The same of a report that was written."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        if found["form"] != FORM:
            raise ValueError(f"its form is {found['form']}, {FORM} was expected")
        return {named(InputConfiguration(**one["input_config"])): one["samples"] for one in found["individual_results"]}
    except (OSError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise TesseraError(
            f"{path} is not the JSON of a validation: {error}", hint="give the .json that `tessera validate` wrote"
        ) from None
