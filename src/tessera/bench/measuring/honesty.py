"""Whether a result counts: accurate for the inputs of that very call, finished, of the declared type, fairly timed.

What is checked cannot be foreseen: which samples, which of their calls and which rows are drawn after the calls. The
truth is computed from inputs made again, not from arrays that the implementation could write to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera.bench.measuring.definition import OperatorDefinition
from tessera.bench.measuring.frameworks import Array
from tessera.bench.measuring.precision import Precision
from tessera.bench.measuring.sampling import RefusedError, Side
from tessera.bench.results.definitions import ProblemSize

_WORK = 1 << 23
"""About how many elements the first check may touch, and the many that follow."""
_WORK_LATER = 1 << 20
PEER_LIMIT = 4.0
"""A peer that is further off than so many bounds makes the bound of others no wider."""


@dataclass(frozen=True)
class Error:
    """How far a result is from the truth."""

    relative: float
    """In norm."""
    absolute: float
    """The largest one."""
    rounding: float = 0.0
    """The error of the exact result when it is rounded to the declared type: no result can be closer."""


class Auditor:
    """Compares results of one case with the truth."""

    def __init__(
        self, benchmark: OperatorDefinition, size: ProblemSize, precision: Precision, random: np.random.Generator
    ) -> None:
        self._benchmark, self._size, self._precision, self._random = benchmark, size, precision, random
        self._shape = tuple(benchmark.output_shape(size))
        self.bound = precision.bound

    def widened(self, peers: Sequence[float]) -> float:
        """The bound, or 1.1 times the error of the best peer if that is more, and not out of all proportion."""
        near = [error for error in peers if error <= PEER_LIMIT * self._precision.bound]
        return max(self._precision.bound, 1.1 * min(near, default=0.0))

    def draws(self, share: float) -> bool:
        """Whether a sample is checked, drawn when it is over."""
        return bool(self._random.random() < share)

    def choose(self, count: int) -> int:
        """Which call of a sample is checked."""
        return int(self._random.integers(count))

    def snapshot(self, side: Side, result: Any) -> Array:
        """The result as it is at this moment: what arrives later does not count."""
        return side.array(result, self._precision.storage, self._shape)

    def error(self, found: Array, inputs: Sequence[Array], *, first: bool = False) -> Error:
        """Of some rows of a result, against the truth for its inputs."""
        rows = self.rows_to_check(_WORK if first else _WORK_LATER)
        truth = self._benchmark.truth(self._size, rows, *(array.astype(np.float64) for array in inputs))
        seen = found[..., rows, :] if found.ndim > 1 else found  # a result of one axis is one row
        difference = np.where(seen == truth, 0.0, seen - truth)  # equal infinities are no difference
        norm = float(np.linalg.norm(truth))
        away = float(np.linalg.norm(difference))
        relative = away / norm if norm > 0 else away
        absolute = float(np.abs(difference).max(initial=0.0))
        lost = float(np.linalg.norm(truth.astype(self._precision.storage).astype(np.float64) - truth))
        return Error(relative if np.isfinite(relative) else float("inf"), absolute, lost / norm if norm > 0 else 0.0)

    def unchanged(self, given: Sequence[Array], inputs: Sequence[Array]) -> None:
        """Refuses an implementation that wrote into its inputs."""
        for index, (array, made) in enumerate(zip(given, inputs, strict=True)):
            if array.tobytes() != made.tobytes():
                raise RefusedError(f"it changed its input {index}: so its result cannot be checked")

    def judge(self, side: Side, error: Error) -> None:
        """Takes a side out of the race whose result is too far off."""
        side.worst_error = max(side.worst_error, error.relative)
        side.largest_difference = max(side.largest_difference, error.absolute)
        bound = max(self.bound, 1.1 * error.rounding)
        if not error.relative <= bound:
            raise RefusedError(
                f"the result for fresh inputs is wrong: relative error {error.relative:.2e}, "
                f"{self._precision.name} allows {bound:.2e}"
            )

    def rows_to_check(self, work: int = _WORK) -> Array:
        """All rows where there are few, otherwise some, drawn anew each time."""
        count = self._shape[-2] if len(self._shape) > 1 else 1
        allowed = max(8, work // max(1, self._benchmark.row_cost(self._size)))
        if count <= allowed:
            return np.arange(count)
        return np.sort(self._random.choice(count, allowed, replace=False))
