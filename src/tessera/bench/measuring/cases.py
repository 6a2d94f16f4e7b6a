"""One case, a size and a precision: its implementations built, checked, timed in rounds, and written down as rows."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from tessera import knobs
from tessera.bench.instruments import clock
from tessera.bench.instruments.hardware import available_memory_bytes, conditions
from tessera.bench.measuring import figures
from tessera.bench.measuring.definition import Built, Implementation, OperatorDefinition, Setting
from tessera.bench.measuring.extras import Extras
from tessera.bench.measuring.frameworks import Array, Framework, adapted, calm
from tessera.bench.measuring.honesty import Auditor
from tessera.bench.measuring.precision import Precision
from tessera.bench.measuring.sampling import (
    Evictor,
    Inputs,
    RefusedError,
    Side,
    Yardstick,
    calls_for,
    settle,
    timed,
    timed_on_gpu,
)
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.results.results import SKIPPED, BenchmarkError, Row
from tessera.bench.results.statistics import median_interval
from tessera.errors import TesseraError

_FEWEST = 8
"""Samples before a rule may stop a case, unless time is up."""
_FEWEST_OF_SLOW = 3
"""Samples of an implementation that uses up its share of the time."""
_LONG_SECONDS = 0.01
"""In a call as long as this, what waking threads takes is nothing."""
_LONGEST_SAMPLE = 5e-3
"""Seconds; of several calls."""
_WARM_SHARE = 0.1
"""Of the time of a case: warming up longer than this wakes nothing that still sleeps."""
_AUDITS = 0.1
"""The smallest share of samples that are checked; where checks are quick, all of them are."""
_AUDIT_TIME = 0.5
"""The share of the samples' time that checks may take before only some samples are checked."""
_SAMPLED = {
    MeasurementType.LATENCY,
    MeasurementType.THROUGHPUT,
    MeasurementType.MEMORY_BANDWIDTH,
    MeasurementType.COMPUTE_UTILIZATION,
}
DEFAULT_LEVEL = "O3"
_LEVELS = {f"O{level}": level for level in knobs.OPTIMIZATIONS}
_ONLY_OURS = (BenchmarkMode.SINGLE_GPU, BenchmarkMode.REGRESSION, BenchmarkMode.PROFILING)


class CaseObserver(Protocol):
    """Observes a case while it runs: `entering` gets the implementation at work, `stopping` says whether to stop."""

    def entering(self, implementation: str) -> None: ...

    def stopping(self) -> bool: ...


class NoObserver:
    """Observes nothing, and never asks to stop."""

    def entering(self, implementation: str) -> None:
        pass

    def stopping(self) -> bool:
        return False


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the rows that there are."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.rows = list(rows)


@dataclass
class CaseEntry:
    """An implementation in a case, from its building to its row."""

    side: Side
    built: Built
    implementation: Implementation
    first_seconds: float = 0.0
    quickest: float = 0.0
    """The seconds of a call when it was warmed up."""
    seconds: float = 0.0
    """Spent on its samples."""
    audits: int = 0
    audit_seconds: float = 0.0
    out_of_time: bool = False
    found: dict[str, Any] = field(default_factory=dict[str, Any])


def implementations_of(
    benchmark: OperatorDefinition, config: BenchmarkConfig, only: Sequence[str] | None
) -> list[Implementation]:
    """The implementations that a configuration asks for, in its order."""
    names = list(only or config.implementations or benchmark.implementations)
    if unknown := [name for name in names if name not in benchmark.implementations]:
        raise BenchError(
            f"{benchmark.name} has no implementation {', '.join(unknown)}",
            hint=f"it has {', '.join(benchmark.implementations)}",
        )
    if config.mode in _ONLY_OURS:
        names = names[:1]
    return [benchmark.implementations[name] for name in names]


def run_case(
    benchmark: OperatorDefinition,
    size: ProblemSize,
    precision: Precision,
    config: BenchmarkConfig,
    *,
    only: Sequence[str] | None = None,
    ceilings: Mapping[str, Any] | None = None,
    watch: CaseObserver | None = None,
) -> list[Row]:
    """Every implementation of a benchmark at one size and precision. What fails is a row too."""
    benchmark.check(size)
    rows: list[Row] = []
    for index, level in enumerate(config.ir_optimization_levels):
        case = Case(Setting(benchmark, size, precision, config, ceilings or {}), watch or NoObserver())
        wanted = implementations_of(benchmark, config, only)
        if index:  # the levels are of our compiler: peers run once
            wanted = [one for one in wanted if one.framework.ours]
        with knobs.optimization.using(_level(level)):
            try:
                rows += case.run([_at_level(one, level) for one in wanted])
            except Interrupted as interrupt:
                raise Interrupted([*rows, *interrupt.rows]) from None
    return rows


def _level(name: str) -> int:
    if name not in _LEVELS:
        raise BenchError(f"unknown optimisation level {name!r}", hint=f"one of {', '.join(_LEVELS)}")
    return _LEVELS[name]


def _at_level(implementation: Implementation, level: str) -> Implementation:
    """Ours has the level in its name, unless it is the default level."""
    named = implementation.framework.ours and level != DEFAULT_LEVEL
    return replace(implementation, name=f"{implementation.name} {level}") if named else implementation


class Case:
    """A case while it runs. `decided` is a rule of the caller's own: asked between rounds, with all samples so far."""

    def __init__(self, setting: Setting, watch: CaseObserver) -> None:
        self.setting, self.config, self.threads, self.watch = setting, setting.config, setting.threads, watch
        seeds = np.random.SeedSequence(setting.config.seed).spawn(2)
        self.random = np.random.default_rng(seeds[0])
        # Drawn from another stream than the inputs, so that nothing about a check follows from them.
        self.auditor = Auditor(*setting.problem, np.random.default_rng())
        self.inputs = Inputs(*setting.problem, np.random.default_rng(seeds[1]))
        self.entries: list[CaseEntry] = []
        self.failures: list[Row] = []
        self.yardstick: list[float] = []
        self.interrupted = False
        self.decided: Callable[[Sequence[Side]], bool] | None = None
        self.restless = 0
        """How often something still worked when a sample was due."""
        self.calls = 1
        """In a sample, of every implementation."""
        self._ran_before: Framework | None = None
        self._evictors: dict[str, Callable[[], None]] = {}

    @property
    def running(self) -> list[CaseEntry]:
        return [entry for entry in self.entries if entry.side.error is None]

    def run(self, implementations: Sequence[Implementation]) -> list[Row]:
        # Inputs, the noise they come from and results in their own type, and what the truth needs in float64.
        needed = 6 * self.inputs.bytes + 16 * self.inputs.elements
        if needed > available_memory_bytes():
            message = f"needs {needed / 1e9:.1f} GB, {available_memory_bytes() / 1e9:.1f} GB are free"
            return [self.setting.failure(one.name, "out_of_memory", message) for one in implementations]
        conditions()  # so that the shares of the next reading are of this case
        witness = clock.Witness()
        collecting = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            for one in implementations:
                self._build(one)
            self._check_all()
            if self.running and _SAMPLED & set(self.config.measurements):
                self._warm_up()
                self._sample()
            if self.decided is None and not self.watch.stopping():
                for entry in self.running:
                    if not self.watch.stopping():
                        self._guarded(entry, partial(self._measure, entry))
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            if collecting:
                gc.enable()
        self.interrupted = self.interrupted or self.watch.stopping()
        wrong = witness.disagreement()
        state = conditions()
        rows = list(self.failures)
        for entry in self.entries:
            if wrong is not None and entry.side.error is None:
                entry.side.error, entry.side.error_type = f"{wrong}: no time of this case counts", "refused"
            if self.interrupted and not entry.side.samples and entry.side.error is None:
                entry.side.error, entry.side.error_type = "interrupted before its first sample", "interrupted"
            rows.append(self._row(entry, state))
        figures.compare([row for row in rows if not isinstance(row, BenchmarkError)], self.config)
        rows.sort(key=lambda row: [one.name for one in implementations].index(row.implementation))
        if self.interrupted:
            raise Interrupted(rows)
        return rows

    def _build(self, implementation: Implementation) -> None:
        if (missing := implementation.framework.missing()) is not None:
            self.failures.append(self.setting.failure(implementation.name, SKIPPED, missing))
            return
        side = Side(implementation.name, implementation.framework, _not_built)
        entry = CaseEntry(side, Built(_not_built), implementation)
        self.entries.append(entry)

        def build() -> None:
            implementation.framework.set_threads(self.threads)
            entry.built = implementation.built(*self.setting.problem)
            side.call = entry.built.call

        self._guarded(entry, build)

    def _guarded(self, entry: CaseEntry, action: Callable[[], None]) -> None:
        """Does something with an implementation; whatever it raises takes it out of the race, and only it."""
        self.watch.entering(entry.side.name)
        side = entry.side
        try:
            action()
        except RefusedError as error:
            side.error, side.error_type = str(error), "refused"
        except MemoryError as error:
            side.error, side.error_type = f"out of memory: {error}" if str(error) else "out of memory", "out_of_memory"
        except TesseraError as error:
            side.error, side.error_type = error.message, "exception"
            entry.found["trace"] = str(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: it is the implementation that ends, not the run
            short = _is_out_of_memory(error)
            side.error = f"{type(error).__name__}: {error}"
            side.error_type = "out_of_memory" if short else "exception"
            entry.found["trace"] = traceback.format_exc()
        finally:
            self.watch.entering("")
        if side.error_type == "out_of_memory":  # what it holds is wanted by those that go on
            side.call, entry.built = _not_built, Built(_not_built)

    def _call_once(self, entry: CaseEntry, inputs: Sequence[Array]) -> tuple[float, Any]:
        """A call that does not count; its seconds and its result."""
        side = entry.side
        side.framework.set_threads(self.threads)
        found = timed(side.call, side.framework.finish, [adapted(side.framework, inputs)])
        return found.wall / 1e9, found.results[0]

    def _check_all(self) -> None:
        """The first results, all on equal inputs. A peer that is less exact than the bound makes it wider."""
        (offsets,) = self.inputs.draw(1)
        errors: dict[str, Any] = {}

        def first(entry: CaseEntry) -> None:
            given = self.inputs.make(offsets)
            entry.first_seconds, result = self._call_once(entry, given)
            snapshot = self.auditor.snapshot(entry.side, result)
            calm()
            inputs = self.inputs.make(offsets)
            self.auditor.unchanged(given, inputs)
            errors[entry.side.name] = self.auditor.error(snapshot, inputs, first=True)

        for entry in self.running:
            self._guarded(entry, partial(first, entry))
        racing = self.running
        for entry in racing:
            others = [one.side for one in racing if one.side.framework.name != entry.side.framework.name]
            entry.found["bound"] = self.auditor.widened([errors[side.name].relative for side in others])
            self._guarded(entry, partial(self._judge, entry, errors[entry.side.name]))

    def _judge(self, entry: CaseEntry, error: Any) -> None:
        self.auditor.bound = entry.found["bound"]
        self.auditor.judge(entry.side, error)

    def _warm_up(self) -> None:
        def warm(entry: CaseEntry) -> None:
            quickest, spent = float("inf"), 0.0
            for _ in range(max(1, self.config.warmup_iterations)):
                seconds = self._call_once(entry, self.inputs.make(self.inputs.draw(1)[0]))[0]
                quickest, spent = min(quickest, seconds), spent + seconds
                if spent > _WARM_SHARE * self.config.seconds_per_case:
                    break
            entry.quickest = quickest

        for entry in self.running:
            self._guarded(entry, partial(warm, entry))
        # As many calls for all: how much memory a sample goes through is the same for all. The quickest one says how
        # many, unless that takes the slowest one very long.
        seconds = [entry.quickest for entry in self.running] or [1.0]
        calls = calls_for(min(seconds), self.config.sample_seconds, self.inputs)
        self.calls = min(calls, max(1, round(_LONGEST_SAMPLE / max(seconds))))

    def _sample(self) -> None:
        """Rounds, each with one sample of every implementation in an order drawn anew, until a rule says stop."""
        evict = self._evict if self.config.cold else None
        yardstick = Yardstick()
        deadline = clock.now() + round(self.config.seconds_per_case * 1e9)
        rounds = 0
        while self.running and not self._enough(rounds, deadline):
            draws = self.inputs.draw(self.calls)
            self.yardstick.append(yardstick())
            racing = [entry for entry in self.running if self._has_time(entry)]
            for index in map(int, self.random.permutation(len(racing))):
                entry = racing[index]
                self._guarded(entry, partial(self._one_sample, entry, draws, evict))
            rounds += 1
            if self.config.pause_seconds:
                clock.pause(self.config.pause_seconds)
        # One more of each, for the check alone.
        draws = self.inputs.draw(self.calls)
        for entry in self.running:
            self._guarded(entry, partial(self._one_sample, entry, draws, evict, last=True))

    def _has_time(self, entry: CaseEntry) -> bool:
        """Whether an implementation still takes part: a slow one must not use up the time of the others.

        An entry that is out stays out, so that equal indices in two lists of samples are from the same round.
        """
        if self.decided is None and len(entry.side.samples) >= _FEWEST_OF_SLOW:
            entry.out_of_time |= entry.seconds > self.config.seconds_per_case / len(self.running)
        return not entry.out_of_time

    def _evict(self, framework: Framework) -> None:
        """Empties the caches of what a framework runs on."""
        kind = "gpu" if framework.needs_gpu else "cpu"
        if kind not in self._evictors:
            self._evictors[kind] = _gpu_evictor() if framework.needs_gpu else Evictor()
        self._evictors[kind]()

    def _one_sample(
        self, entry: CaseEntry, draws: Any, evict: Callable[[Framework], None] | None, last: bool = False
    ) -> None:
        side, began = entry.side, clock.now()
        # Threads that spin while they wait would take the processors from this one's.
        if self.threads > 1 and self._ran_before is not side.framework and not settle():
            self.restless += 1
        self._ran_before = side.framework
        if entry.quickest < _LONG_SECONDS:
            self._call_once(entry, self.inputs.make(self.inputs.draw(1)[0]))
        # Made after the last call that is not timed. The implementation's own arrays of before may lie here again.
        given = [self.inputs.make(begins) for begins in draws]
        arguments = [adapted(side.framework, arrays) for arrays in given]
        if evict is not None:
            evict(side.framework)
        side.framework.set_threads(self.threads)  # another implementation may have changed it
        if self.threads > 1:
            side.framework.wake()
        if side.framework.needs_gpu:
            found = timed_on_gpu(side.call, arguments)
        else:
            found = timed(side.call, side.framework.finish, arguments)
        if last or self._is_checked(entry):
            self._audit(entry, found.results, given, draws)
        else:
            calm()
        if last:
            return
        side.samples.append(found.wall / 1e9 / self.calls)
        if found.starting is not None:
            side.starting.append(found.starting / 1e9 / self.calls)
        side.wall, side.busy = side.wall + found.wall / 1e9, side.busy + found.busy / 1e9
        entry.seconds += (clock.now() - began) / 1e9

    def _is_checked(self, entry: CaseEntry) -> bool:
        """The first sample always; later ones as often as the time for it allows, drawn when they are over."""
        if not entry.side.samples:
            return True
        sampling = (entry.seconds - entry.audit_seconds) / len(entry.side.samples)
        share = _AUDIT_TIME * sampling / max(1e-9, entry.audit_seconds / max(1, entry.audits))
        return self.auditor.draws(max(_AUDITS, share))

    def _audit(self, entry: CaseEntry, results: Sequence[Any], given: Sequence[Sequence[Array]], draws: Any) -> None:
        # The last call is where work could be left undone, the others where it could be left out.
        began = clock.now()
        ends = not entry.side.samples or self.auditor.draws(0.5)
        kept = len(results) - 1 if ends else self.auditor.choose(len(results))
        snapshot = self.auditor.snapshot(entry.side, results[kept])
        calm()
        inputs = self.inputs.make(draws[kept])
        self.auditor.unchanged(given[kept], inputs)
        self._judge(entry, self.auditor.error(snapshot, inputs))
        entry.audits += 1
        entry.audit_seconds += (clock.now() - began) / 1e9

    def _enough(self, rounds: int, deadline: int) -> bool:
        if self.watch.stopping() or rounds >= self.config.timing_iterations:
            return True
        if rounds < _FEWEST:
            return rounds >= _FEWEST_OF_SLOW and clock.now() > deadline
        if clock.now() > deadline:
            return True
        if self.decided is not None:
            return self.decided([entry.side for entry in self.running])
        if rounds % 4:
            return False
        return all(self.precise(entry.side.samples) or not self._has_time(entry) for entry in self.running)

    def precise(self, samples: Sequence[float]) -> bool:
        """Whether the median is known as well as the configuration asks for."""
        found = median_interval(samples, self.config.statistical_significance)
        middle = float(np.median(samples))
        return max(found.high - middle, middle - found.low) <= self.config.max_variance_percent / 100 * middle

    def _measure(self, entry: CaseEntry) -> None:
        """All that is asked for besides the latency."""
        framework = entry.side.framework
        arguments = [adapted(framework, self.inputs.make(begins)) for begins in self.inputs.draw(self.calls)]
        framework.set_threads(self.threads)
        extras = Extras(self.setting, entry.implementation, entry.built, entry.side, arguments)
        entry.found.update(extras.measure())
        calm()

    def _row(self, entry: CaseEntry, state: Mapping[str, Any]) -> Row:
        side = entry.side
        if side.error is not None:
            return self.setting.failure(side.name, side.error_type, side.error, entry.found.get("trace"))
        seen = figures.CaseOutcome(
            self.setting,
            side,
            self.yardstick,
            dict(state),
            entry.found,
            entry.first_seconds if entry.implementation.slow_to_build else None,
            interrupted=self.interrupted,
            restless=self.restless,
        )
        return figures.row(seen)


def _gpu_evictor() -> Callable[[], None]:
    from tessera.bench.instruments.gpu_timing import Flush

    return Flush()


def _not_built(*_: Any) -> Any:
    raise AssertionError("called before it was built")


def _is_out_of_memory(error: BaseException) -> bool:
    return "out of memory" in str(error).lower() or "can't allocate memory" in str(error).lower()
