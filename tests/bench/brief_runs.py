"""Runs that are over in no time, for tests of what a run does."""

from __future__ import annotations

from typing import Any

from tessera.bench import registry
from tessera.bench.measuring.cases import run_case
from tessera.bench.measuring.precision import precision
from tessera.bench.results.definitions import BenchmarkConfig, MeasurementType
from tessera.bench.results.results import BenchmarkResult

TINY: dict[str, Any] = {"rows": 64, "cols": 64}
QUICK = BenchmarkConfig(
    seconds_per_case=0.2,
    timing_iterations=12,
    sizes=[TINY],
    precision_policies=["f32"],
    measurements=(MeasurementType.LATENCY, MeasurementType.ACCURACY),
    threads=1,
    seed=1,
)


def only(rows: list[Any]) -> BenchmarkResult:
    (row,) = rows
    assert isinstance(row, BenchmarkResult), row
    return row


def run_softmax(config: BenchmarkConfig, *names: str) -> list[Any]:
    chosen = list(names) or ["tessera"]
    return run_case(registry.get("softmax"), TINY, precision("f32"), config, only=chosen)  # pyright: ignore[reportArgumentType]
