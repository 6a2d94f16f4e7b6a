"""Two implementations against each other until it is clear which is faster; and how far that can be trusted here.

A duel stops when its verdict is certain, so clear cases are quick. `calibrate` fights duels whose outcome is known, a
kernel against itself and against itself made slower, and counts the verdicts.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera.bench.instruments import clock
from tessera.bench.measuring.cases import Case, NoObserver
from tessera.bench.measuring.definition import Built, Implementation, Setting
from tessera.bench.measuring.precision import Precision
from tessera.bench.measuring.sampling import Side
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.comparison import Change, Sequential, Verdict
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.results.results import BenchmarkError

BUDGET = BenchmarkConfig(
    "duel",
    mode=BenchmarkMode.REGRESSION,
    measurements=(MeasurementType.LATENCY,),
    timing_iterations=2000,
    seconds_per_case=20.0,
)
"""The default time limit of a duel."""


def duel(
    benchmark: OperatorBenchmark,
    size: ProblemSize,
    precision: Precision,
    baseline: Implementation,
    current: Implementation,
    config: BenchmarkConfig = BUDGET,
    *,
    threshold: float | None = None,
) -> Change:
    """Whether `current` is slower or faster than `baseline`: samples in pairs of neighbours, looked at now and then."""
    first = dataclasses.replace(baseline, name="baseline")
    second = dataclasses.replace(current, name="current")
    sequential = Sequential(threshold=threshold)
    benchmark.check(size)
    case = Case(Setting(benchmark, size, precision, config), NoObserver())

    def decided(sides: Sequence[Side]) -> bool:
        if len(sides) < 2:
            return True
        taken = [side.samples[sequential.count :] for side in sides]
        sequential.add(*taken)
        return sequential.done(config.timing_iterations)

    case.decided = decided
    for row in case.run([first, second]):
        if isinstance(row, BenchmarkError):
            raise BenchError(f"{benchmark.name}, {row.implementation}: {row.error_message}", hint="run it by itself")
    decided([entry.side for entry in case.entries])  # the last round, when time ended it
    return sequential.result()


def slowed(implementation: Implementation, percent: float) -> Implementation:
    """The same, but each call takes so many percent longer, whatever it takes: for tests of the instrument itself."""

    def build(benchmark: Any, size: ProblemSize, precision: Precision) -> Built:
        call, now = implementation.built(benchmark, size, precision).call, clock.now

        def slower(*arguments: Any) -> Any:
            began = now()
            result = call(*arguments)
            until = now()
            until += round((until - began) * percent / 100)
            while now() < until:
                pass
            return result

        return Built(slower)

    return dataclasses.replace(implementation, name=f"{implementation.name} slowed", build=build)


@dataclass
class Calibration:
    """How often duels with a known outcome ended how."""

    percent: float
    """How much slower the second side was; 0 for a kernel against itself."""
    verdicts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.verdicts.total()

    def share(self, *verdicts: Verdict) -> float:
        return sum(self.verdicts[verdict] for verdict in verdicts) / max(1, self.count)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.verdicts[verdict]} {verdict.value}" for verdict in Verdict)
        return f"{self.percent:g} % slower: {self.count} duels in {self.seconds:.0f} s: {counts}"


def calibrate(
    benchmark: OperatorBenchmark,
    size: ProblemSize,
    precision: Precision,
    percent: float,
    count: int,
    config: BenchmarkConfig = BUDGET,
    told: Callable[[Change], None] | None = None,
) -> Calibration:
    """Fights duels of the benchmark's first implementation against itself, so much slower."""
    own = next(iter(benchmark.implementations.values()))
    other = slowed(own, percent) if percent else own
    found = Calibration(percent)
    began = clock.now()
    for _ in range(count):
        change = duel(benchmark, size, precision, own, other, config)
        found.verdicts[change.verdict] += 1
        if told is not None:
            told(change)
    found.seconds = (clock.now() - began) / 1e9
    return found
