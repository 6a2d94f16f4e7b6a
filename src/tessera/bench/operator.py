"""`OperatorBenchmark`: an operator in several implementations, as one short class."""

from __future__ import annotations

import math
from typing import Any

from tessera.bench.measuring.definition import Implementation, OperatorDefinition
from tessera.bench.measuring.precision import precision as read_precision
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, ProblemSize
from tessera.bench.results.results import BenchmarkError, BenchmarkResult


class OperatorBenchmark(OperatorDefinition):
    """A benchmark of an operator. A subclass names sizes, inputs, the truth and the operations, and implementations."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {made.name: made for made in vars(cls).values() if isinstance(made, Implementation)}
        if taken := [name for name, made in vars(cls).items() if isinstance(made, Implementation) and name in _TAKEN]:
            raise BenchError(
                f"{cls.__name__}: {', '.join(taken)} means something else in a benchmark",
                hint='call the method otherwise: @implementation("numpy", name="quick")',
            )
        cls.implementations = {**cls.implementations, **own}

    def get_name(self) -> str:
        return self.name

    def get_description(self) -> str:
        return self.description

    def get_supported_precisions(self) -> list[str]:
        return list(self.precisions)

    def get_problem_sizes(self) -> list[dict[str, Any]]:
        return [dict(size) for size in self.sizes]

    def setup(self, config: BenchmarkConfig) -> None:
        """Takes the configuration that `run_single` follows."""
        self.config = config

    def run_single(self, problem_size: ProblemSize) -> BenchmarkResult:
        """The first implementation alone, in the configuration's first precision."""
        # Measuring loads the compiler, which declaring a benchmark does not need.
        from tessera.bench.measuring.cases import run_case

        config = getattr(self, "config", None) or BenchmarkConfig()
        first = (config.implementations or list(self.implementations))[0]
        found = run_case(self, problem_size, read_precision(config.precision_policies[0]), config, only=[first])
        row = found[-1]
        if isinstance(row, BenchmarkError):
            raise BenchError(f"{self.name} by {first}: {row.error_message}", hint="run the implementation by itself")
        return row

    def cleanup(self) -> None:
        """Nothing is kept between cases."""

    def validate_result(self, result: BenchmarkResult) -> bool:
        """Whether the figures can be: there is a time, and the result was accurate."""
        if result.latency_ms is None or not 0 < result.latency_ms < math.inf:
            return False
        return result.is_valid()


_TAKEN = {
    name
    for declared in (OperatorDefinition, OperatorBenchmark)
    for name in (*vars(declared), *declared.__annotations__)
    if not name.startswith("_")
}
