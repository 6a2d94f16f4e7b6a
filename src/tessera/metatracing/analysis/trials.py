"""Trials: the gain of a specialisation, measured by interleaved runs with and without it.

Interleaved, all of them see the same changes of clocks and of other load. Outputs of a kernel are arrays of the
trial's own, so that none of the user's change; arguments that are only read are those of the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import median
from typing import Any

from tessera.errors import TesseraError
from tessera.lang.creation import zeros
from tessera.metatracing.analysis.specializations import SpecializationRecommendation, written_arguments
from tessera.metatracing.models.kernel_times import HELPS, Gain
from tessera.metatracing.models.situation import Situation
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import contiguous_strides
from tessera.runtime.tensor.creation import empty
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.random import randn
from tessera.runtime.tensor.tensor import Tensor

Run = Callable[[], Any]
Timed = Callable[[Run, int], float]
"""Seconds of a run, from so many of them one after the other."""
ROUNDS = 9
_LOST = 3
"""Rounds after which runs that were slower in all of them are dropped."""
_DEVIATIONS = 1.4826
"""A standard deviation in median distances from the median, for what is spread normally."""
_MEDIAN = 1.2533
"""How much wider a median is spread than a mean."""
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Student's t for 95 %, both sides, by degrees of freedom from 1 on."""


def measured_gain(now: Sequence[float], then: Sequence[float]) -> Gain:
    """The gain between interleaved runs: the median of the ratios, and between which ratios it is with 95 %.

    `confidence` is the part of the rounds in which it helped; with one more for, and one against.
    """
    ratios = [log(one / other) for one, other in zip(now, then, strict=True)]
    count, middle = len(ratios), median(ratios)
    if count < 2:
        return Gain(exp(middle), 0.0, float("inf"), 0.5)
    apart = _DEVIATIONS * median(abs(one - middle) for one in ratios)
    student = _STUDENT[min(count - 1, len(_STUDENT)) - 1]
    width = student * _MEDIAN * apart / sqrt(count)
    helped = sum(one >= log(HELPS) for one in ratios)
    return Gain(exp(middle), exp(middle - width), exp(middle + width), (helped + 1) / (count + 2))


# Clocks


def host_timed(run: Run, count: int) -> float:
    """The fastest of some runs: others may be at work on a host, and never make anything faster."""
    best = float("inf")
    for _ in range(count):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


def cuda_timed(device: Device) -> Timed:
    """A clock of runs by two events around them, on the stream in use."""
    from tessera.runtime.cuda import streams, synchronize

    def timed(run: Run, count: int) -> float:
        stream = streams.current_stream(device)
        began, ended = (streams.Event(device, timing=True) for _ in range(2))
        stream.record(began)
        for _ in range(count):
            run()
        stream.record(ended)
        synchronize()
        return began.milliseconds_until(ended) / 1e3 / count

    return timed


def timed_on(device: Device | None) -> Timed:
    return host_timed if device is None or not device.is_accelerator else cuda_timed(device)


class InterleavedRuns:
    """Interleaved runs; each is repeated in a round for about `seconds`, at least twice."""

    def __init__(self, timed: Timed, seconds: float = 1e-3, most: int = 100) -> None:
        self.timed, self.seconds, self.most = timed, seconds, most

    def count(self, run: Run) -> int:
        """After a first run, which finds code and memory cold."""
        self.timed(run, 1)
        return max(2, min(self.most, int(self.seconds / max(1e-9, self.timed(run, 2)))))

    def measure(self, runs: Sequence[Run], rounds: int, *, drop_slower: bool = False) -> list[list[float]]:
        """The seconds of each run in every round. With `drop_slower`, runs slower than the first are dropped early."""
        counts = [self.count(run) for run in runs]
        taken: list[list[float]] = [[] for _ in runs]
        for done in range(rounds):
            for run, count, mine in zip(runs, counts, taken, strict=True):
                if len(mine) == done:
                    mine.append(self.timed(run, count))
            if drop_slower and done + 1 == _LOST:
                for mine in taken[1:]:
                    if all(other >= one for one, other in zip(taken[0], mine, strict=True)):
                        mine.pop()  # no further rounds: it has too few times
        return taken


# Trials


@dataclass(frozen=True)
class Trial:
    """Runs specialisations interleaved with the current form, `rounds` times."""

    rounds: int = ROUNDS
    seconds: float = 1e-3
    """About the time of one of them in a round."""

    def __call__(self, here: Situation, several: Sequence[SpecializationRecommendation]) -> list[Gain | None]:
        """The gain of each; None for those that cannot be run, and for all where outputs cannot be replaced."""
        args = private_arguments(here)
        if args is None:
            return [None] * len(several)

        form = here.form()

        def as_it_is() -> Any:
            return form(*args, **here.static)

        runs: list[Run | None] = [_run(one, here, args) for one in several]
        alive = [run for run in runs if run is not None]
        first = next((one for one in args if isinstance(one, Tensor)), None)
        interleaved = InterleavedRuns(timed_on(None if first is None else first.device), self.seconds)
        now, *others = interleaved.measure([as_it_is, *alive], self.rounds, drop_slower=True)
        found = iter([measured_gain(now[: len(one)], one) for one in others])
        return [None if run is None else next(found) for run in runs]


def _run(one: SpecializationRecommendation, here: Situation, args: Sequence[Any]) -> Run | None:
    """A function that runs a specialisation; None where it does not run."""
    try:
        special = one.specialized(here.kernel, here.under)
        special(*args, **here.static)
    except TesseraError:
        return None
    return lambda: special(*args, **here.static)


def private_arguments(here: Situation) -> tuple[Any, ...] | None:
    """The arguments, with new arrays instead of outputs of the kernel; None where some cannot be made."""
    written = written_arguments(here.kernel, here.args, here.static)
    made = [copy_of(one) if index in written else one for index, one in enumerate(here.args)]
    return None if any(one is None for one in made) else tuple(made)


def copy_of(value: Tensor) -> Tensor | None:
    """A copy of a tensor with the same strides; None for one with gaps."""
    made = _empty_like(value.meta)
    if made is not None:
        made[...] = value
    return made


def random_like(meta: Meta) -> Tensor | None:
    """A tensor of a meta with numbers in it: random ones, and zeros where they are not floats, which may be indices."""
    made = _empty_like(meta)
    if made is None:
        return None
    if meta.dtype.is_float:
        made[...] = randn(meta.shape, seed=0).to(meta.dtype).to(meta.device)
    else:
        made[...] = zeros(meta.shape, meta.dtype, meta.device)
    return made


def _empty_like(meta: Meta) -> Tensor | None:
    """A tensor without numbers of a shape and strides; None where there are gaps between its elements."""
    rank = len(meta.shape)
    order = sorted(range(rank), key=lambda axis: (-meta.strides[axis], axis))
    shape = tuple([meta.shape[axis] for axis in order])
    if tuple([meta.strides[axis] for axis in order]) != contiguous_strides(shape, 1) and meta.size:
        return None
    made = empty(shape, meta.dtype, meta.device)
    return made.permute(*[order.index(axis) for axis in range(rank)]) if rank > 1 else made
