"""Risks: where running in tiers costs more than it gains, found in samples of calls, and settings that cost less.

Recording may take too much of the time, programs of the last tier may be hardly faster than those before, and deciding
what to run may take too long. Each is measured as a part of the time that programs ran.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median
from typing import Any, Protocol

from tessera.tiers.config import RuntimeConfig
from tessera.tiers.logs import warn
from tessera.tiers.records import ExecutionTier, InputProfile, PerformanceSample
from tessera.tiers.sites.counts import Counts

_FIRST = 5
"""The first runs of an input at a tier, which count only where there are no others."""


class RiskType(Enum):
    """The kinds of risk."""

    HIGH_TRACING_OVERHEAD = "recording takes too much of the time"
    POOR_SPECIALIZATION_GAIN = "specialised programs are hardly faster"
    RUNTIME_OVERHEAD = "deciding what to run takes too much of the time"


@dataclass(frozen=True)
class PerformanceRisk:
    """A risk that was seen. The score goes from 0, at the limit, to 1; `measured` and `limit` are parts of 1."""

    Type = RiskType

    risk_type: RiskType
    severity_score: float
    description: str
    mitigation_actions: tuple[str, ...]
    measured: float
    limit: float
    changes: dict[str, Any] = field(default_factory=dict)
    """The settings that the actions stand for."""


@dataclass(frozen=True)
class RiskMitigationFramework:
    """Finds risks in samples, and adapts settings to them. Limits are parts of the time that programs ran.

    `max_tracing_overhead`: of recording. `min_specialization_gain`: how much faster Tier 3 has to be. For
    `max_runtime_overhead` everything counts that recorded calls do beside their programs and recording: finding and
    binding programs, and compiling where callers wait for that. `min_samples`: below so many nothing is said.
    """

    max_tracing_overhead: float = 0.5
    min_specialization_gain: float = 0.1
    max_runtime_overhead: float = 0.05
    min_samples: int = 16

    def detect_performance_risks(
        self, samples: Sequence[PerformanceSample], config: RuntimeConfig | None = None
    ) -> list[PerformanceRisk]:
        """The risks in samples that were taken under a configuration, the gravest first."""
        if len(samples) < self.min_samples:
            return []
        settings = RuntimeConfig() if config is None else config
        found = (self._tracing(samples), self._gain(samples, settings), self._runtime(samples, settings))
        return sorted((one for one in found if one is not None), key=lambda one: -one.severity_score)

    def adapt_configuration_for_risks(
        self, base_config: RuntimeConfig, risks: Iterable[PerformanceRisk]
    ) -> RuntimeConfig:
        """The configuration with what the risks' actions change; where two change the same, the graver decides."""
        changes: dict[str, Any] = {}
        for risk in sorted(risks, key=lambda one: one.severity_score):
            changes |= risk.changes
        return replace(base_config, **changes)

    def _tracing(self, samples: Sequence[PerformanceSample]) -> PerformanceRisk | None:
        spent, running, calls = _spent(samples)
        part = spent["tracing"] / running if running else 0.0
        if part <= self.max_tracing_overhead:
            return None
        # Recording costs by the record: so many calls for one bring it to a tenth of the limit.
        each = calls / len(samples)
        period = math.ceil(each * part / (0.1 * self.max_tracing_overhead)) - 1
        return PerformanceRisk(
            RiskType.HIGH_TRACING_OVERHEAD,
            _severity(part, self.max_tracing_overhead),
            f"recording takes {part:.0%} of the time that programs run, at one record for {each:.0f} calls",
            (f"record one call of {period + 1}",),
            part,
            self.max_tracing_overhead,
            {"sample_period": period},
        )

    def _gain(self, samples: Sequence[PerformanceSample], config: RuntimeConfig) -> PerformanceRisk | None:
        gains = specialization_gains(samples)
        if not gains:
            return None
        whole = sum(weight for _, weight in gains)
        gain = sum(one * weight for one, weight in gains) / whole
        if gain >= self.min_specialization_gain:
            return None
        description = f"programs of Tier 3 are {gain:.1%} faster than what they replaced, over {len(gains)} inputs"
        if gain <= 0:
            actions, changes = ("do not specialise",), {"enable_tier3_specialization": False}
        else:
            later = config.tier3_specialization_threshold_ms * self.min_specialization_gain / gain
            most = config.most_bridges // 2
            actions = (f"specialise after {later:.0f} ms", f"at most {most} bridges", "one schedule at a time")
            changes = {"tier3_specialization_threshold_ms": later, "most_bridges": most, "candidates": 1}
        score = min(1.0, 1 - gain / self.min_specialization_gain)
        limit = self.min_specialization_gain
        return PerformanceRisk(RiskType.POOR_SPECIALIZATION_GAIN, score, description, actions, gain, limit, changes)

    def _runtime(self, samples: Sequence[PerformanceSample], config: RuntimeConfig) -> PerformanceRisk | None:
        spent, running, _ = _spent(samples)
        part = spent["runtime"] / running if running else 0.0
        if part <= self.max_runtime_overhead:
            return None
        factor = min(16.0, part / self.max_runtime_overhead)
        changes: dict[str, Any] = {
            "tier2_compilation_threshold_ms": config.tier2_compilation_threshold_ms * factor,
            "tier3_specialization_threshold_ms": config.tier3_specialization_threshold_ms * factor,
            "bridge_calls": max(1, round(config.bridge_calls * factor)),
            "most_bridges": config.most_bridges // 2,
            "candidates": 1,
            "contest_rounds": max(1, config.contest_rounds // 2),
        }
        actions = [f"tier up {factor:.1f} times later", "fewer bridges", "shorter A/B tests", "one schedule at a time"]
        if part > 1:  # more than the programs themselves: inputs change too much to specialise for
            changes["enable_tier3_specialization"] = False
            actions.append("do not specialise")
        return PerformanceRisk(
            RiskType.RUNTIME_OVERHEAD,
            _severity(part, self.max_runtime_overhead),
            f"deciding what to run takes {part:.0%} of the time that programs run",
            tuple(actions),
            part,
            self.max_runtime_overhead,
            changes,
        )


def _spent(samples: Sequence[PerformanceSample]) -> tuple[dict[str, float], float, int]:
    """Milliseconds beside programs, milliseconds in them, and how many calls there were."""
    beside = {
        "tracing": sum(one.tracing_overhead_ms for one in samples),
        "runtime": sum(one.runtime_overhead_ms for one in samples),
    }
    return beside, sum(one.total_ms for one in samples), sum(one.calls for one in samples)


def specialization_gains(samples: Iterable[PerformanceSample]) -> list[tuple[float, float]]:
    """How much faster Tier 3 is for each input that also ran below it, and the time that such calls took."""
    groups: dict[InputProfile, dict[ExecutionTier, list[PerformanceSample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        groups[sample.input_profile][sample.tier_used].append(sample)
    found: list[tuple[float, float]] = []
    for tiers in groups.values():
        top = tiers.get(ExecutionTier.TIER3_SPECIALIZED)
        below = tiers.get(ExecutionTier.TIER2_STANDARD) or tiers.get(ExecutionTier.TIER1_INTERPRETER)
        if top and below and (now := _typical(top)) > 0:
            found.append((_typical(below) / now - 1, sum(one.total_ms for one in top)))
    return found


def _typical(samples: Sequence[PerformanceSample]) -> float:
    steady = samples[_FIRST:] or samples
    return median(one.execution_time_ms for one in steady)


def _severity(part: float, limit: float) -> float:
    """0 at the limit, a half at twice as much, towards 1."""
    return 1 - limit / part


class WatchedRuntime(Protocol):
    """A runtime as the watch on risks sees it."""

    config: RuntimeConfig
    counts: Counts

    def get_performance_history(self) -> list[PerformanceSample]: ...

    def reconfigure(self, config: RuntimeConfig) -> None: ...


class RiskWatch:
    """Watches a runtime: every so many recorded calls it looks for risks, and adapts the settings to those that stay.

    Moving to a higher tier has a cost that is paid once; so only risks that are seen in two windows in a row count.
    Settings are not taken back: without specialisation, its gain cannot be seen.
    """

    window = 256

    def __init__(self, runtime: WatchedRuntime) -> None:
        self._runtime, self.framework = runtime, RiskMitigationFramework()
        self._count, self._before, self._seen = 0, 0, set[RiskType]()
        self.risks: list[PerformanceRisk] = []
        """The risks that settings were changed for, oldest first."""

    def recorded(self) -> None:
        """A call was recorded."""
        self._count += 1
        if self._count >= self.window:
            self._count = 0
            self.look()

    def look(self) -> None:
        """Looks for risks in the samples since the last time."""
        runtime = self._runtime
        history = runtime.get_performance_history()
        recent = [one for one in history if one.timestamp > self._before]
        self._before = recent[-1].timestamp if recent else self._before
        # The gain of a tier shows only beside the tiers before it, which may have run long ago.
        gain = RiskType.POOR_SPECIALIZATION_GAIN
        detect, config = self.framework.detect_performance_risks, runtime.config
        found = [one for one in detect(recent, config) if one.risk_type is not gain]
        if config.enable_tier3_specialization:
            found += [one for one in detect(history, config) if one.risk_type is gain]
        stay = [risk for risk in found if risk.risk_type in self._seen]
        self._seen = {risk.risk_type for risk in found if risk not in stay}
        if not stay:
            return
        self.risks += stay
        for risk in stay:
            warn(f"{risk.description}: from now on {', '.join(risk.mitigation_actions)}")
            runtime.counts.event_log.add("risk", "", f"{risk.description}: {', '.join(risk.mitigation_actions)}")
        runtime.reconfigure(self.framework.adapt_configuration_for_risks(runtime.config, stay))
