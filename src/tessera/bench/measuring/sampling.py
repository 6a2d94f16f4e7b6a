"""Taking samples: implementations in rounds, fresh inputs for every call, results kept for unannounced checks.

A sample is a number of calls, each on inputs of its own, and the wait for their results. Before it, untimed: other
implementations' threads get the time to fall asleep, one call on other inputs warms up what the implementation needs,
then the sample's inputs are made, so that nothing can be computed ahead, and a little work of ours wakes the threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tessera.bench.instruments import clock
from tessera.bench.measuring.definition import Call, OperatorDefinition
from tessera.bench.measuring.frameworks import Array, Framework
from tessera.bench.measuring.precision import Precision
from tessera.cached_property import cached_property

_MOST_CALLS = 256
_INPUT_BYTES = 256 << 20
"""All sets of inputs together."""
_SETTLE_SECONDS = 0.5
_LOOK_SECONDS = 0.004
_IDLE_SHARE = 0.15
_FEWEST_NUMBERS = 1 << 22
"""Of the noise that inputs are cut from: small inputs must not come again."""
_EVICT_BYTES = 512 << 20


class Inputs:
    """Makes the inputs of a case: each a stretch of one long noise, from an offset drawn anew each time.

    That is as quick as copying memory. Equal offsets make equal inputs.
    """

    def __init__(
        self, benchmark: OperatorDefinition, size: Any, precision: Precision, random: np.random.Generator
    ) -> None:
        self._benchmark, self._random = benchmark, random
        self._shapes = [tuple(shape) for shape in benchmark.shapes(size)]
        self._storage = precision.storage
        self._longest = max(math.prod(shape) for shape in self._shapes)

    @cached_property
    def _noise(self) -> Array:
        count = max(_FEWEST_NUMBERS, 2 * self._longest + 4093)
        return self._random.standard_normal(count, dtype=np.float32).astype(self._storage)

    @property
    def elements(self) -> int:
        """Of the inputs of one call."""
        return sum(math.prod(shape) for shape in self._shapes)

    @property
    def bytes(self) -> int:
        return self.elements * self._storage.itemsize

    def draw(self, count: int) -> Array:
        """Where in the noise the inputs of so many calls begin."""
        return self._random.integers(0, len(self._noise) - self._longest, (count, len(self._shapes)))

    def make(self, row: Array) -> list[Array]:
        """The inputs of one call, in memory of their own."""
        arrays = [np.empty(shape, self._storage) for shape in self._shapes]
        for index, (array, begin) in enumerate(zip(arrays, row, strict=True)):
            self._benchmark.fill(index, array, self._noise[begin : begin + array.size].reshape(array.shape))
        return arrays


@dataclass
class Side:
    """One implementation in a case, and what was seen of it."""

    name: str
    framework: Framework
    call: Call
    samples: list[float] = field(default_factory=list[float])
    """Seconds per call."""
    wall: float = 0.0
    """Seconds of all samples, and how many processor seconds the whole process used meanwhile."""
    busy: float = 0.0
    starting: list[float] = field(default_factory=list[float])
    """Seconds that it took to start a call of each sample, where calls return before their work is done."""
    worst_error: float = 0.0
    largest_difference: float = 0.0
    error: str | None = None
    """Why it is out of the race."""
    error_type: str = "exception"

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
    """The nanoseconds of a few calls, by the clock and of processor time, and all their results."""

    wall: int
    busy: int
    results: list[Any]
    starting: int | None = None
    """Nanoseconds until the work was started, where calls return before it is done."""


def timed(call: Call, finish: Callable[[Any], None], arguments: Sequence[tuple[Any, ...]]) -> Timing:
    """One call per set of arguments, waited for. All results are held: which of them will be checked is not known."""
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


def timed_on_gpu(call: Call, arguments: Sequence[tuple[Any, ...]]) -> Timing:
    """The same for work on a GPU, by the GPU's clock."""
    from tessera.bench.instruments import gpu_timing as timing

    milliseconds, starting, results = timing.timed(call, arguments)
    return Timing(round(1e6 * milliseconds), 0, results, starting)


def settle(
    most_seconds: float = _SETTLE_SECONDS, now: Callable[[], int] = clock.now, busy: Callable[[], int] = clock.busy
) -> bool:
    """Waits until no thread of this process works any more, such as those that spin while they wait for more work.

    False: something kept working for as long as this waits.
    """
    deadline = now() + round(most_seconds * 1e9)
    while now() < deadline:
        before = busy()
        clock.pause(_LOOK_SECONDS)
        if busy() - before < _IDLE_SHARE * _LOOK_SECONDS * 1e9:
            return True
    return False


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
