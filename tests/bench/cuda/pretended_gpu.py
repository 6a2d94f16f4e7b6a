"""A GPU that is pretended: its clock counts what calls say they take, its memory is NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Mark:
    """An event: knows when it was recorded."""

    def __init__(self, gpu: PretendedGpu) -> None:
        self.gpu, self.at = gpu, float("nan")

    def record(self) -> None:
        self.at = self.gpu.clock

    def synchronize(self) -> None:
        """The pretended GPU is never behind."""

    def milliseconds_until(self, end: Mark) -> float:
        return end.at - self.at


@dataclass
class Work:
    """What a call does: computes into a result, and takes its time."""

    gpu: PretendedGpu
    compute: Callable[[Array], Array]
    milliseconds: float
    result: Array | None = None

    def __call__(self) -> Array:
        out = np.empty_like(self.gpu.inputs[0])
        self.run(out)
        return out

    def run(self, out: Array) -> None:
        self.gpu.clock += self.milliseconds
        self.gpu.log.append("call")
        out[...] = self.compute(self.gpu.inputs[0])


class Recorded:
    """A graph of calls."""

    def __init__(self, work: Any, calls: int) -> None:
        self.work = work
        self.results = [work() for _ in range(calls)]

    def hold(self) -> None:
        """The pretended host takes no time."""

    def replay(self) -> None:
        for result in self.results:
            self.work.run(result)


@dataclass
class PretendedGpu:
    """The whole of it. Inputs are one array."""

    inputs: list[Array] = field(default_factory=list[Array])
    clock: float = 0.0
    log: list[str] = field(default_factory=list[str])
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    # What makes inputs.

    device = "none"

    def derived(self, compute: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def normal(self, *shape: int, dtype: str | None = None, scale: float = 1.0, copies: int = 0) -> Array:
        self.inputs.append(self.random.normal(0.0, scale, shape))
        return self.inputs[-1]

    def integers(self, low: int, high: int, *shape: int, dtype: str = "i8", copies: int = 0) -> Array:
        raise NotImplementedError

    def refill(self) -> None:
        self.log.append("refill")
        for array in self.inputs:
            array[...] = self.random.normal(size=array.shape)

    # What a contest asks of a GPU.

    def event(self) -> Mark:
        return Mark(self)

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def flush(self) -> None:
        self.log.append("flush")
        self.clock += 0.02

    def capture(self, call: Any, calls: int, *, ours: bool) -> Recorded:
        return Recorded(call, calls)

    def queue(self, call: Any, calls: int) -> Recorded:
        raise NotImplementedError

    def copying(self, moved: float) -> Work:
        return Work(self, lambda x: x, moved / 4e9)

    def size(self, result: Array) -> int:
        return result.nbytes

    def poison(self, result: Array) -> None:
        result[...] = np.nan

    def error(self, result: Array, truth: Array, part: Callable[[Any], Any]) -> float:
        found = float(np.linalg.norm(part(result) - truth) / np.linalg.norm(truth))
        return found if np.isfinite(found) else float("inf")

    def rounding(self, truth: Array, dtype: str) -> float:
        return 1e-9

    def same(self, result: Array, kept: Array) -> bool:
        return bool(np.array_equal(result, kept))

    def kept(self, result: Array) -> Array:
        return result.copy()

    def conditions(self) -> dict[str, Any]:
        return {"sm_mhz": 1980}
