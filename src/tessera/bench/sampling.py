"""Taking samples: implementations in turns, fresh inputs for every call, results kept for a check nobody can foresee.

A sample is a number of calls, each on inputs of its own, and the wait for their results. Before it, untimed: other
implementations' threads get the time to fall asleep, one call on other inputs wakes its own, and then, last of all, the
inputs of the sample are written: nothing can be computed ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tessera.bench import clock
from tessera.bench.frameworks import Array, Framework, adapted
from tessera.bench.operator import Call, OperatorBenchmark
from tessera.bench.precision import Precision

_MOST_CALLS = 256
_INPUT_BYTES = 256 << 20
"""All sets of inputs together."""
_FEWEST_NUMBERS = 1 << 22
"""Of the noise that inputs are cut from: small inputs must not come again."""
_SETTLE_SECONDS = 0.02
"""What threads that wait for work by turning round need to fall asleep, and a little more."""
_EVICT_BYTES = 512 << 20


class Inputs:
    """Sets of inputs in our own memory, written anew before each sample. The first is for calls that do not count."""

    def __init__(
        self, benchmark: OperatorBenchmark, size: Any, precision: Precision, random: np.random.Generator
    ) -> None:
        self._benchmark, self._random = benchmark, random
        self._shapes = [tuple(shape) for shape in benchmark.shapes(size)]
        self._storage = precision.storage
        self.sets: list[list[Array]] = []

    @cached_property
    def _noise(self) -> Array:
        """Each input is a stretch of this, from a place drawn anew each time: as quick as copying memory."""
        longest = max(math.prod(shape) for shape in self._shapes)
        count = max(_FEWEST_NUMBERS, 2 * longest + 4093)
        return self._random.standard_normal(count, dtype=np.float32).astype(self._storage)

    @property
    def bytes(self) -> int:
        """Of one set."""
        return sum(math.prod(shape) for shape in self._shapes) * self._storage.itemsize

    def have(self, count: int) -> None:
        """At least so many sets, if memory allows."""
        allowed = max(2, min(count, _INPUT_BYTES // max(1, self.bytes)))
        while len(self.sets) < allowed:
            self.sets.append(self._empty())

    def _empty(self) -> list[Array]:
        return [np.zeros(shape, self._storage) for shape in self._shapes]

    def draw(self, count: int) -> Array:
        """Where in the noise the inputs of so many sets begin. Equal places make equal inputs."""
        longest = max(math.prod(shape) for shape in self._shapes)
        return self._random.integers(0, len(self._noise) - longest, (count, len(self._shapes)))

    def write(self, places: Array, first: int = 0) -> None:
        """Fills sets, from one on."""
        for arrays, row in zip(self.sets[first:], places, strict=False):
            self._fill(arrays, row)

    def _fill(self, arrays: Sequence[Array], row: Array) -> None:
        for place, (array, begin) in enumerate(zip(arrays, row, strict=True)):
            self._benchmark.fill(place, array, self._noise[begin : begin + array.size].reshape(array.shape))

    def again(self, row: Array) -> list[Array]:
        """The inputs that places make, in memory that no implementation has seen: what the truth is computed from."""
        arrays = self._empty()
        self._fill(arrays, row)
        return arrays


@dataclass
class Side:
    """One implementation in a case, and what was seen of it."""

    name: str
    framework: Framework
    call: Call
    calls: int = 1
    """In a sample."""
    samples: list[float] = field(default_factory=list[float])
    """Seconds per call."""
    wall: float = 0.0
    """Seconds of all samples, and how many processor seconds the whole process used meanwhile."""
    busy: float = 0.0
    worst_error: float = 0.0
    largest_difference: float = 0.0
    error: str | None = None
    """Why it is out of the race."""
    error_type: str = "exception"
    _views: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def arguments(self, inputs: Inputs, first: int, last: int) -> list[tuple[Any, ...]]:
        """Some of the sets as this side's framework sees them."""
        if not self.framework.shares:
            return [adapted(self.framework, arrays) for arrays in inputs.sets[first:last]]
        while len(self._views) < last:
            self._views.append(adapted(self.framework, inputs.sets[len(self._views)]))
        return self._views[first:last]

    def array(self, result: Any, storage: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A result in float64, copied at once; refuses what is no finished result of the declared type."""
        if type(result) not in self.framework.finished():
            names = " or ".join(kind.__name__ for kind in self.framework.finished())
            raise RefusedError(f"returned a {type(result).__name__}; a finished result is a {names}")
        found = str(result.dtype).removeprefix("torch.")
        copied = np.array(self.framework.to_numpy(result), dtype=np.float64, copy=True)
        if found not in (storage.name, _OUR_NAMES.get(storage.name)):
            raise RefusedError(f"returned {found}; {storage.name} was declared")
        if copied.shape != shape:
            raise RefusedError(f"returned the shape {copied.shape}; expected {shape}")
        return copied


_OUR_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}


class RefusedError(Exception):
    """A result that does not count."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a few calls took in nanoseconds, by the clock and of processor time; and their results, all of them."""

    wall: int
    busy: int
    results: list[Any]


def timed(call: Call, finish: Callable[[Any], None], arguments: Sequence[tuple[Any, ...]]) -> Timing:
    """One call per set of arguments, waited for. All results are held, so that nobody knows which will be looked at."""
    return _timed(call, finish, arguments)


def _make_timed(now: Callable[[], int], busy: Callable[[], int]) -> Callable[..., Timing]:
    """The clocks are bound when the module is loaded: replacing them later changes nothing here."""

    def run(call: Call, finish: Callable[[Any], None], arguments: Sequence[tuple[Any, ...]]) -> Timing:
        worked = busy()
        began = now()
        results = [call(*one) for one in arguments]
        finish(results[-1])
        ended = now()
        return Timing(ended - began, busy() - worked, results)

    return run


_timed = _make_timed(clock.now, clock.busy)


def settle(threads: int, sides: Sequence[Side]) -> None:
    """Lets the threads of other frameworks fall asleep."""
    if threads > 1 and len({side.framework.name for side in sides}) > 1:
        clock.pause(_SETTLE_SECONDS)


class Evictor:
    """Empties the caches by writing more than fits into them."""

    def __init__(self) -> None:
        self._buffer = np.zeros(_EVICT_BYTES // 8)

    def __call__(self) -> None:
        self._buffer += 1.0


def calls_for(seconds_per_call: float, sample_seconds: float, inputs: Inputs) -> int:
    """How many calls make a sample, given how many sets of inputs there is memory for."""
    wanted = math.ceil(sample_seconds / max(seconds_per_call, 1e-9))
    return max(1, min(wanted, _MOST_CALLS, _INPUT_BYTES // max(1, inputs.bytes)))


YARDSTICK = f"square roots and small products, NumPy {np.__version__}"
"""Runs are compared by it only where it was the same."""


class Yardstick:
    """A short piece of work that never changes, timed beside the samples: how fast the machine is just then."""

    def __init__(self) -> None:
        self._values = np.linspace(0.5, 1.5, 1 << 14)
        self._matrix = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)

    def __call__(self) -> float:
        """Milliseconds: a little arithmetic, a small product, a little Python."""
        began = clock.now()
        for _ in range(8):
            np.sqrt(self._values).sum()
            _ = self._matrix @ self._matrix
        return (clock.now() - began) / 1e6
