"""One row on the GPU: entrants checked, timed in rounds as graphs, checked again on new numbers, and written down.

Each entrant is recorded once, as a graph of as many calls as take about a millisecond, each with a result of its own.
Programs of several kernels cannot be: their calls are queued behind a GPU that is kept busy until all are there, and
so are those of the row's other entrants.
A sample is one launch of that graph between two events, after the L2 cache was written over. In a round every entrant
gives one sample, in an order drawn anew, so all see the same clocks and the same power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tessera.bench.cuda.declarations import BEST, COPY, OURS, Call, Contest, Inputs, Row
from tessera.bench.instruments.timers import Event
from tessera.bench.measuring.honesty import PEER_LIMIT
from tessera.bench.results import statistics
from tessera.bench.results.definitions import BenchError
from tessera.errors import EffectError, TesseraError

_WARM_CALLS = 3
_SAMPLE_MS = 1.0
_MOST_CALLS = 64
_RESULT_BYTES = 4 << 30
"""All results of a graph together."""
_SLACK = 1.1
"""Of a peer's error, or of rounding the truth."""


class Replay(Protocol):
    """Calls recorded as a graph. The results stay where they are: every launch writes them again."""

    @property
    def results(self) -> Sequence[Any]: ...

    def hold(self) -> None:
        """Keeps the GPU busy for as long as the host takes to replay."""
        ...

    def replay(self) -> None: ...


class Gpu(Protocol):
    """The operations of a GPU that a contest needs. Everything is on one stream."""

    def event(self) -> Event: ...

    def synchronize(self) -> None: ...

    def flush(self) -> None:
        """Starts to write over the L2 cache."""
        ...

    def capture(self, call: Call, calls: int, *, ours: bool) -> Replay:
        """Records calls as a graph."""
        ...

    def queue(self, call: Call, calls: int) -> Replay:
        """Calls that are started one by one, while the GPU is kept busy."""
        ...

    def copying(self, moved: float) -> Call:
        """A call that moves so many bytes: half of them read, half written; one behind it finds none in a cache."""
        ...

    def size(self, result: Any) -> int:
        """Bytes of a result."""
        ...

    def poison(self, result: Any) -> None:
        """Overwrites a result with what no kernel would write."""
        ...

    def error(self, result: Any, truth: Any, part: Callable[[Any], Any]) -> float:
        """The relative error in norm; infinite where anything is not finite, or the shape is another."""
        ...

    def rounding(self, truth: Any, dtype: str) -> float:
        """The error of the truth itself, rounded to a type."""
        ...

    def same(self, result: Any, kept: Any) -> bool:
        """Whether a result has the bits of a copy."""
        ...

    def kept(self, result: Any) -> Any:
        """A copy of a result."""
        ...

    def conditions(self) -> dict[str, Any]:
        """Clocks, power and temperature at this moment."""
        ...


class FilledInputs(Inputs, Protocol):
    """Inputs that remember what they made."""

    def refill(self) -> None:
        """New numbers into all of them."""
        ...


@dataclass
class Entrant:
    """One way to compute a row, and what was seen of it."""

    name: str
    call: Call
    ours: bool = False
    """Whether it launches by our runtime."""
    checked: bool = True
    """Copies and yardsticks are not: their results are not the row's."""
    moves: float | None = None
    flops: float | None = None
    calls: int = 1
    queued: bool = False
    """Whether its calls are started one by one, since no graph can hold them."""
    graph: Replay | None = None
    samples: list[float] = field(default_factory=list[float])
    """Milliseconds per call."""
    error: float | None = None
    bound: float | None = None
    repeatable: bool | None = None
    failure: str | None = None
    """Why it is out."""

    def guarded(self, action: Callable[[], None]) -> None:
        """Whatever an entrant raises takes it out, and only it."""
        if self.failure is not None:
            return
        try:
            action()
        except TesseraError as error:
            self.failure = error.message
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"


class Race:
    """A row while it is measured."""

    def __init__(self, row: Row, contest: Contest, gpu: Gpu, inputs: FilledInputs, random: np.random.Generator) -> None:
        self.row, self.contest, self.gpu, self.inputs, self.random = row, contest, gpu, inputs, random
        if unnamed := set(contest.ptx) ^ set(row.kernels):
            raise BenchError(
                f"row {row.name!r} declares other kernels than it ran: {', '.join(sorted(unnamed))}",
                hint="give the PTX of each kernel of the row in `ptx`",
            )
        calls = {**({OURS: contest.ours} if contest.ours else {}), **contest.peers}
        self.entrants = [
            Entrant(name, call, ours=name == OURS, moves=row.moves, flops=row.flops) for name, call in calls.items()
        ]
        if contest.yardsticks and not row.flops:
            raise BenchError(f"row {row.name!r} has yardsticks, but not how many operations", hint="say flops=…")
        for name, yardstick in contest.yardsticks.items():
            self.entrants.append(Entrant(name, yardstick.call, ours=True, checked=False, flops=yardstick.flops))
        if row.moves:
            self.entrants.append(Entrant(COPY, gpu.copying(row.moves), checked=False, moves=row.moves))
        taking_part = [entrant.name for entrant in self.entrants] + ([BEST] if contest.peers else [])
        if absent := [name for name in row.bars if name not in taking_part]:
            raise BenchError(f"row {row.name!r} has a bar on {', '.join(absent)}, which does not take part")

    @property
    def running(self) -> list[Entrant]:
        return [entrant for entrant in self.entrants if entrant.failure is None]

    def measure(self, rounds: int) -> dict[str, Any]:
        """Everything; what was found, for a result file."""
        for entrant in self.entrants:
            entrant.guarded(lambda entrant=entrant: self._prepare(entrant))
        self._check()
        before = self.gpu.conditions()
        for _ in range(rounds):
            self._round()
        after = self.gpu.conditions()
        # Numbers that no entrant has seen, in the memory that graphs read.
        self.inputs.refill()
        self._check()
        for entrant in self.running:
            if entrant.name == OURS:
                entrant.guarded(lambda entrant=entrant: self._repeat(entrant))
        return {**self._figures(), "conditions": {"before": before, "after": after}}

    def _prepare(self, entrant: Entrant) -> None:
        """Warms up, and records as many calls as make a sample long enough."""
        for _ in range(_WARM_CALLS):
            entrant.call()
        self.gpu.synchronize()
        first, last = self.gpu.event(), self.gpu.event()
        first.record()
        results = [entrant.call() for _ in range(_WARM_CALLS)]
        last.record()
        last.synchronize()
        milliseconds = first.milliseconds_until(last) / _WARM_CALLS
        room = max(1, _RESULT_BYTES // max(1, self.gpu.size(results[0])))
        entrant.calls = max(1, min(math.ceil(_SAMPLE_MS / max(milliseconds, 1e-6)), _MOST_CALLS, room))
        # Ours is the first, and others are started as it is: launches in a queue are further apart than in a graph.
        entrant.queued = self.entrants[0].queued
        if not entrant.queued:
            try:
                entrant.graph = self.gpu.capture(entrant.call, entrant.calls, ours=entrant.ours)
            except (EffectError, RuntimeError):  # a program of ours, or a peer that waits for the GPU
                entrant.queued = True
        if entrant.graph is None:
            entrant.graph = self.gpu.queue(entrant.call, entrant.calls)
        entrant.graph.replay()
        self.gpu.synchronize()

    def _round(self) -> None:
        marks: list[tuple[Entrant, Event, Event]] = []

        def sample(entrant: Entrant) -> None:
            assert entrant.graph is not None
            first, last = self.gpu.event(), self.gpu.event()
            self.gpu.flush()
            entrant.graph.hold()
            first.record()
            entrant.graph.replay()
            last.record()
            marks.append((entrant, first, last))

        racing = self.running
        for index in map(int, self.random.permutation(len(racing))):
            racing[index].guarded(lambda entrant=racing[index]: sample(entrant))
        self.gpu.synchronize()
        for entrant, first, last in marks:
            entrant.samples.append(first.milliseconds_until(last) / entrant.calls)

    def _check(self) -> None:
        """Poisons all results, launches, and compares one of them, drawn afterwards, and the last with the truth."""
        truth = self.contest.truth()
        rounding = self.gpu.rounding(truth, self.row.dtype)
        errors: dict[str, float] = {}

        def look(entrant: Entrant) -> None:
            assert entrant.graph is not None
            for result in entrant.graph.results:
                self.gpu.poison(result)
            entrant.graph.replay()
            self.gpu.synchronize()
            drawn = int(self.random.integers(len(entrant.graph.results)))
            looked_at = [entrant.graph.results[index] for index in {drawn, len(entrant.graph.results) - 1}]
            errors[entrant.name] = max(self.gpu.error(each, truth, self.contest.part) for each in looked_at)

        for entrant in self.running:
            if entrant.checked:
                entrant.guarded(lambda entrant=entrant: look(entrant))
        for entrant in self.running:
            if entrant.checked:
                others = [error for name, error in errors.items() if name != entrant.name]
                self._judge(entrant, errors[entrant.name], others, rounding)

    def _judge(self, entrant: Entrant, error: float, others: Sequence[float], rounding: float) -> None:
        near = [each for each in others if each <= PEER_LIMIT * self.row.bound]
        entrant.bound = max(self.row.bound, _SLACK * min(near, default=0.0), _SLACK * rounding)
        # An infinite error is no number in a file; the failure says it.
        entrant.error = max(entrant.error or 0.0, error) if math.isfinite(error) else None
        if not error <= entrant.bound:
            entrant.failure = f"the result is wrong: relative error {error:.2e}, {entrant.bound:.2e} is allowed"

    def _repeat(self, entrant: Entrant) -> None:
        """Whether another launch writes the same bits."""
        assert entrant.graph is not None
        kept = self.gpu.kept(entrant.graph.results[-1])
        self.gpu.poison(entrant.graph.results[-1])
        entrant.graph.replay()
        self.gpu.synchronize()
        entrant.repeatable = self.gpu.same(entrant.graph.results[-1], kept)

    def _figures(self) -> dict[str, Any]:
        row = self.row
        named = {entrant.name: entrant for entrant in self.entrants}
        found: dict[str, Any] = {
            "name": row.name,
            "dtype": row.dtype,
            "moves": row.moves,
            "flops": row.flops,
            "kernels": list(row.kernels),
            **({"ways": self._ways(self.contest.ways)} if self.contest.ways else {}),
            "entrants": {entrant.name: self._seen(entrant) for entrant in self.entrants},
        }
        ours = named.get(OURS)
        if ours is not None:
            found["ratios"] = {
                entrant.name: _ratio(ours, entrant)
                for entrant in self.running
                if entrant is not ours and _both(ours, entrant)
            }
            reached = {name: ratio["ratio"] for name, ratio in found["ratios"].items()}
            if against := [reached[name] for name in self.contest.peers if name in reached]:
                reached[BEST] = min(against)
            found["bars"] = {name: _bar(bar, reached.get(name)) for name, bar in row.bars.items()}
        return found

    def _ways(self, asked: Callable[[], Sequence[str]]) -> list[str]:
        try:
            return list(asked())
        except TesseraError as error:  # of a kernel that was not compiled, say
            return [error.message]
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]

    def _seen(self, entrant: Entrant) -> dict[str, Any]:
        seen: dict[str, Any] = {"calls_per_sample": entrant.calls, "error": entrant.error, "bound": entrant.bound}
        if entrant.repeatable is not None:
            seen["repeatable"] = entrant.repeatable
        if entrant.queued:
            seen["queued"] = True
        if entrant.failure is not None or not entrant.samples:
            return {**seen, "failure": entrant.failure or "it was not timed"}
        middle = float(np.median(entrant.samples))
        interval = statistics.median_interval(entrant.samples)
        seen |= {"us": 1e3 * middle, "us_interval": [1e3 * interval.low, 1e3 * interval.high]}
        seen["samples_us"] = [round(1e3 * sample, 4) for sample in entrant.samples]
        if entrant.moves:
            seen["gbps"] = entrant.moves / middle / 1e6
        if entrant.flops:
            seen["tflops"] = entrant.flops / middle / 1e9
        return seen


def _both(ours: Entrant, other: Entrant) -> bool:
    return ours.failure is None and other.failure is None and bool(ours.samples) and bool(other.samples)


def _ratio(ours: Entrant, other: Entrant) -> dict[str, Any]:
    """The other's time over ours, by pairs of neighbours. Of the copy, that is ours in units of its bandwidth; of
    who has another number of operations to do, in units of its rate."""
    found = statistics.ratio(ours.samples, other.samples)
    work = ours.flops / other.flops if ours.flops and other.flops else 1.0
    return {"ratio": work * found.estimate, "interval": [work * found.interval.low, work * found.interval.high]}


def _bar(bar: float, ratio: float | None) -> dict[str, Any]:
    return {"bar": bar, "ratio": ratio, "held": ratio is not None and ratio >= bar}
