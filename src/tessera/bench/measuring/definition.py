"""The definition of an operator that is measured: sizes, truth and operations; and `@implementation`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tessera import knobs
from tessera.bench.measuring.frameworks import FRAMEWORKS, Array, Framework
from tessera.bench.measuring.precision import Precision
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, ProblemSize
from tessera.bench.results.results import BenchmarkError

if TYPE_CHECKING:
    from tessera.tile.calls.function import Kernel

Call = Callable[..., Any]


@dataclass(frozen=True)
class Built:
    """An implementation that is built: its call, and the kernel behind it where there is one."""

    call: Call
    kernel: Kernel | None = None
    keywords: Mapping[str, Any] | None = None
    """Keyword arguments of the kernel, besides the inputs."""
    output: Callable[[], Any] | None = None
    """Makes the array that the kernel fills, where it does not return one: its last argument."""


@dataclass(frozen=True)
class Implementation:
    """One way to compute an operator: how it is built for a size and a precision."""

    name: str
    framework: Framework
    build: Callable[[Any, ProblemSize, Precision], Call | Built]
    slow_to_build: bool = False
    """Left out of quick runs."""

    def built(self, benchmark: OperatorDefinition, size: ProblemSize, precision: Precision) -> Built:
        from tessera.tile.calls.function import Kernel

        made = self.build(benchmark, size, precision)
        if isinstance(made, Kernel):
            return Built(made, made)
        return made if isinstance(made, Built) else Built(made)


def implementation(
    framework: str, *, name: str | None = None, slow_to_build: bool = False
) -> Callable[[Callable[[Any, ProblemSize, Precision], Call | Built]], Implementation]:
    """Declares a method that builds an implementation: it returns a function of the inputs, as the framework's arrays.

    The first one of a class is the one that others are compared with.
    """
    if framework not in FRAMEWORKS:
        raise BenchError(f"unknown framework {framework!r}", hint=f"one of {', '.join(FRAMEWORKS)}")

    def declare(build: Callable[[Any, ProblemSize, Precision], Call | Built]) -> Implementation:
        return Implementation(name or build.__name__, FRAMEWORKS[framework], build, slow_to_build)

    return declare


class OperatorDefinition:
    """An operator to be measured: its sizes, inputs, true results and operations, and its implementations.

    Results are arrays whose second-to-last axis are rows that can be checked each on its own.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    precisions: ClassVar[Sequence[str]] = ("f32", "bf16")
    sizes: ClassVar[Sequence[ProblemSize]] = ()
    quick: ClassVar[Sequence[ProblemSize]] = ()
    """A few small sizes that say most of what there is to say."""
    cpu: ClassVar[Sequence[ProblemSize]] = ()
    """Sizes that a processor computes in milliseconds, where `sizes` are for larger machines."""
    gpu: ClassVar[Sequence[ProblemSize]] = ()
    """Sizes that fill a GPU, where `sizes` are for smaller machines."""
    implementations: ClassVar[Mapping[str, Implementation]] = {}

    def _undefined(self, method: str) -> BenchError:
        return BenchError(f"{type(self).__name__} does not say its {method}", hint=f"define the method {method}")

    def shapes(self, size: ProblemSize) -> Sequence[tuple[int, ...]]:
        """The shapes of the inputs."""
        raise self._undefined("shapes")

    def output_shape(self, size: ProblemSize) -> tuple[int, ...]:
        """The shape of the result; the first input's where nothing else is said."""
        return self.shapes(size)[0]

    def truth(self, size: ProblemSize, rows: Array, *inputs: Array) -> Array:
        """Those rows of the result, from inputs in float64."""
        raise self._undefined("truth")

    def row_cost(self, size: ProblemSize) -> int:
        """How many elements the truth of one row touches."""
        shape = self.output_shape(size)
        return math.prod(shape) // max(1, shape[-2]) if len(shape) > 1 else math.prod(shape)

    def flops(self, size: ProblemSize) -> float:
        """Floating-point operations that the result takes, by its definition."""
        raise self._undefined("flops")

    def fill(self, index: int, array: Array, noise: Array) -> None:
        """Writes fresh numbers into an input; `noise` are as many normal ones, in the array's type and shape."""
        np.copyto(array, noise)

    def smallest(self, size: ProblemSize) -> ProblemSize | None:
        """A size of the same kind with next to no work, to see what a call costs; None where there is none."""
        return None

    def check(self, size: ProblemSize) -> None:
        """Refuses sizes that make no sense; by default those that lack what other sizes have, or are not positive."""
        known = {name for one in (*self.sizes, *self.cpu, *self.gpu, *self.quick) for name in one}
        if known and set(size) != known:
            raise BenchError(
                f"{self.name}: a size has {', '.join(sorted(known))}; got {', '.join(sorted(size)) or 'nothing'}",
                hint="write --size name=value,name=value",
            )
        for name, value in size.items():
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise BenchError(f"{self.name}: {name} must be at least 1, got {value}", hint="give a size above 0")

    def bytes_moved(self, size: ProblemSize, precision: Precision) -> float:
        """The least that a call moves: each input once, each result once."""
        elements = sum(math.prod(shape) for shape in (*self.shapes(size), self.output_shape(size)))
        return float(elements * precision.storage.itemsize)


@dataclass(frozen=True)
class Setting:
    """One case: an operator at a size and a precision, and how it is measured."""

    benchmark: OperatorDefinition
    size: ProblemSize
    precision: Precision
    config: BenchmarkConfig
    ceilings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def problem(self) -> tuple[OperatorDefinition, ProblemSize, Precision]:
        return self.benchmark, self.size, self.precision

    @property
    def threads(self) -> int:
        return self.config.threads or knobs.num_threads.value

    def failure(self, implementation: str, kind: str, message: str, trace: str | None = None) -> BenchmarkError:
        """The row of an implementation that has no figures."""
        return BenchmarkError(
            message,
            kind,
            trace,
            benchmark_name=self.benchmark.name,
            problem_size=dict(self.size),
            precision=self.precision.name,
            implementation=implementation,
            threads=self.threads,
        )
