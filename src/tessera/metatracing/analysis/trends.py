"""Trends and correlations: how strongly two quantities change together, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, erf, sqrt

import numpy as np

from tessera.tiers.records import AttentionTrace, by_input

STRONG = 0.5


@dataclass(frozen=True)
class PerformanceTrend:
    """A correlation: Pearson's coefficient, words for it, and how sure it is that it is not chance."""

    correlation_coefficient: float
    trend_description: str
    confidence_level: float


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's; 0 where one of them does not change."""
    if len(x) != len(y) or len(x) < 2:
        return 0.0
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    a, b = a - a.mean(), b - b.mean()
    below = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / below if below > 0 else 0.0


def sureness(coefficient: float, count: int) -> float:
    """How unlikely chance is to give such a coefficient, by Fisher's transformation."""
    if count < 4:
        return 0.0
    if abs(coefficient) >= 1:
        return 1.0
    return erf(abs(atanh(coefficient)) * sqrt(count - 3) / sqrt(2))


def trend(x: Sequence[float], y: Sequence[float], *, rising: str, falling: str) -> PerformanceTrend:
    """How y changes with x."""
    found = correlation(x, y)
    words = rising if found > STRONG else falling if found < -STRONG else "no clear correlation"
    return PerformanceTrend(found, words, sureness(found, len(x)))


def analyze_performance_trends(traces: Sequence[AttentionTrace]) -> dict[str, PerformanceTrend]:
    """Correlations of bandwidth with sizes, and of times with the number of earlier calls.

    Times are compared within inputs: each over the median of its own.
    """
    sizes = [float(_elements(one)) for one in traces]
    known = [
        (size, rate)
        for size, one in zip(sizes, traces, strict=True)
        if (rate := one.execution_pattern.memory_bandwidth_gbps) is not None
    ]
    found = {
        "bandwidth over size": trend(
            [one[0] for one in known],
            [one[1] for one in known],
            rising="larger inputs have a higher bandwidth: small ones do not fill the machine",
            falling="larger inputs have a lower bandwidth: they leave the caches",
        )
    }
    usual = {
        profile: float(np.median([one.execution_pattern.execution_time_ms for one in group]))
        for profile, group in by_input(traces).items()
    }
    relative = [
        one.execution_pattern.execution_time_ms / usual[one.input_profile] if usual[one.input_profile] else 1.0
        for one in traces
    ]
    found["time over calls"] = trend(
        [float(index) for index in range(len(traces))],
        relative,
        rising="calls take longer and longer",
        falling="calls become faster",
    )
    return found


def _elements(trace: AttentionTrace) -> int:
    profile = trace.input_profile
    return profile.batch_size * profile.num_heads * profile.seq_len * profile.head_dim
