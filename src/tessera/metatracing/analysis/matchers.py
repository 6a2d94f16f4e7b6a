"""Matchers of patterns in traces: sequences of inputs, shapes of arrays, accesses to memory, work of the units."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import mean
from typing import Any, TypeVar

from tessera.metatracing.events.kinds import AccessType, ComputeType
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import AttentionTrace, InputProfile

T = TypeVar("T", bound=Hashable)
HELD_OUT = 0.3
"""The part of the calls, the last ones, on which predictions are tried."""
_LONGEST_REPEAT = 32


# Sequences


@dataclass(frozen=True)
class SequencePattern:
    """Inputs that come one after the other again and again.

    `frequency` is how often, `performance_impact` the part of all time that these calls took.
    """

    input_sequence: tuple[InputProfile, ...]
    frequency: float
    performance_impact: float


class SequencePatternMatcher:
    """Finds sequences of inputs that recur."""

    def find_sequence_patterns(self, traces: Sequence[AttentionTrace]) -> list[SequencePattern]:
        """The cycle that calls go through, if they do, and shorter runs that recur; those with most time first."""
        profiles = [one.input_profile for one in traces]
        spent = [one.total_ms for one in traces]
        whole = sum(spent) or 1.0
        found: list[SequencePattern] = []
        for run, starts in repeats(profiles).items():
            time = sum(sum(spent[start : start + len(run)]) for start in starts)
            found.append(SequencePattern(run, float(len(starts)), time / whole))
        return sorted(found, key=lambda one: (-one.performance_impact, -len(one.input_sequence)))

    def find_lcs(self, first: Sequence[InputProfile], second: Sequence[InputProfile]) -> list[InputProfile]:
        return longest_common_subsequence(first, second)


def longest_common_subsequence(first: Sequence[T], second: Sequence[T]) -> list[T]:
    """The longest sequence that two have in common, with anything between its elements."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            equal = one == other
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if equal else max(lengths[i][j + 1], lengths[i + 1][j])
    found: list[T] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            found.append(first[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] >= lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]


def period_of(values: Sequence[Hashable]) -> int | None:
    """The shortest number of calls after which all comes again, twice at least; None where there is none."""
    count = len(values)
    for period in range(1, count // 2 + 1):
        if all(values[at] == values[at - period] for at in range(period, count)):
            return period
    return None


def repeats(values: Sequence[T]) -> dict[tuple[T, ...], list[int]]:
    """Runs that occur at least twice without overlapping, and where; a run inside of one as frequent is left out."""
    found: dict[tuple[T, ...], list[int]] = {}
    for length in range(min(_LONGEST_REPEAT, len(values) // 2), 0, -1):
        starts: dict[tuple[T, ...], list[int]] = defaultdict(list)
        for start in range(len(values) - length + 1):
            run = tuple(values[start : start + length])
            if not starts[run] or start >= starts[run][-1] + length:
                starts[run].append(start)
        for run, found_at in starts.items():
            if len(found_at) < 2 or _is_repetition(run):
                continue
            inside = any(
                len(found_at) <= len(others) * max(1, _count_in(run, other))
                for other, others in found.items()
                if len(other) > length and _count_in(run, other)
            )
            if not inside:
                found[run] = found_at
    return found


def _is_repetition(run: tuple[Any, ...]) -> bool:
    """Whether a run is a shorter one several times over."""
    return any(len(run) % part == 0 and run == run[:part] * (len(run) // part) for part in range(1, len(run) // 2 + 1))


def _count_in(run: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    return sum(other[start : start + len(run)] == run for start in range(len(other) - len(run) + 1))


# Shapes


class ShapeType(Enum):
    """Properties that sizes along an axis have in common."""

    POWER_OF_TWO = "powers of two"
    MULTIPLE_OF_64 = "multiples of 64"
    FIXED_RATIO = "each a fixed multiple of the one before"
    VARIABLE = "anything"


@dataclass(frozen=True)
class ShapePattern:
    """The sizes along one axis.

    `prediction_accuracy` is the part of the last calls whose size was predicted from those before, each from all before
    it. `ratio` is that of a FIXED_RATIO.
    """

    pattern_type: ShapeType
    common_values: tuple[int, ...]
    prediction_accuracy: float
    ratio: float | None = None


class ShapePatternMatcher:
    """Finds what sizes have in common, and whether the next one can be predicted."""

    def analyze_shape_patterns(self, traces: Sequence[AttentionTrace]) -> dict[str, ShapePattern]:
        """The patterns by axis: the specification's four names, and `argument.size[axis]` for those of all arrays."""
        series: dict[str, list[int]] = defaultdict(list)
        for trace in traces:
            profile = trace.input_profile
            for name in ("batch_size", "num_heads", "seq_len", "head_dim"):
                series[name].append(getattr(profile, name))
            for argument, one in enumerate(profile.arguments):
                if isinstance(one, Meta):
                    for axis, size in enumerate(one.shape):
                        series[f"{argument}.size[{axis}]"].append(size)
        return {name: self.pattern_of(values) for name, values in series.items() if len(values) == len(traces)}

    def pattern_of(self, values: Sequence[int]) -> ShapePattern:
        common = tuple(value for value, _ in Counter(values).most_common(8))
        kind, ratio = classify(values)
        return ShapePattern(kind, common, prediction_accuracy(values), ratio)


def classify(values: Sequence[int]) -> tuple[ShapeType, float | None]:
    """The property that all have in common; the ratio where each is the same multiple of the one before."""
    ratios = {after / before for before, after in itertools.pairwise(values) if before}
    if len(values) > 2 and len(ratios) == 1 and ratios != {1.0}:
        return ShapeType.FIXED_RATIO, ratios.pop()
    if all(value > 0 and value & (value - 1) == 0 for value in values):
        return ShapeType.POWER_OF_TWO, None
    if all(value > 0 and value % 64 == 0 for value in values):
        return ShapeType.MULTIPLE_OF_64, None
    return ShapeType.VARIABLE, None


def predicted(history: Sequence[int]) -> int:
    """The next size: the same step of a cycle, the same multiple, or the most frequent one."""
    period = period_of(history)
    if period is not None:
        return history[-period]
    kind, ratio = classify(history)
    if kind is ShapeType.FIXED_RATIO and ratio is not None:
        return round(history[-1] * ratio)
    # The size that followed such a size most often, where that has been seen.
    after = Counter(later for before, later in itertools.pairwise(history) if before == history[-1])
    return (after or Counter(history)).most_common(1)[0][0]


def prediction_accuracy(values: Sequence[int]) -> float:
    """How many of the last values were predicted, each from those before it."""
    first = max(1, len(values) - max(1, round(HELD_OUT * len(values))))
    tried = range(first, len(values))
    window = 64
    hits = [predicted(values[max(0, at - window) : at]) == values[at] for at in tried]
    return sum(hits) / len(hits) if hits else 0.0


# Memory and compute


@dataclass(frozen=True)
class Finding:
    """A finding about memory or the units: its kind, its severity (0 to 1), words, and the argument it is about."""

    kind: str
    severity: float
    description: str
    argument: int | None = None


def _low(value: float, bar: float) -> float:
    return max(0.0, min(1.0, (bar - value) / bar))


class MemoryPatternMatcher:
    """Finds accesses that cost more than they have to."""

    coalesced = 0.75
    reused = 4.0
    conflicts = 0.05
    steady = 0.1

    def find_memory_patterns(self, traces: Sequence[AttentionTrace]) -> list[Finding]:
        """The worst first. Traces without events only say how steady the bandwidth was."""
        found: list[Finding] = []
        events = [one for trace in traces for one in trace.execution_pattern.memory_accesses]
        moved: dict[int | None, list[Any]] = defaultdict(list)
        for one in events:
            if one.access_type in (AccessType.GLOBAL_LOAD, AccessType.GLOBAL_STORE):
                moved[one.argument].append(one)
        for argument, several in moved.items():
            asked = sum(one.size_bytes for one in several)
            distinct = sum(one.distinct_bytes for one in several)
            moves = sum(one.moved_bytes for one in several)
            efficiency = min(1.0, asked / moves) if moves else 1.0
            if efficiency < self.coalesced:
                words = f"argument {argument}: {efficiency:.0%} of the bytes that are moved are asked for"
                found.append(Finding("uncoalesced", _low(efficiency, 1.0), words, argument))
            if distinct and asked / distinct >= self.reused:
                words = f"argument {argument}: every byte is asked for {asked / distinct:.1f} times"
                found.append(Finding("reused", 0.0, words, argument))  # an observation, not a fault
        shared = [one for one in events if one.access_type in (AccessType.SHARED_LOAD, AccessType.SHARED_STORE)]
        wavefronts, conflicts = (sum(getattr(one, name) for one in shared) for name in ("wavefronts", "bank_conflicts"))
        if wavefronts and conflicts / wavefronts > self.conflicts:
            words = f"{conflicts / wavefronts:.0%} of the wavefronts of shared memory are bank conflicts"
            found.append(Finding("bank conflicts", conflicts / wavefronts, words))
        if any(one.access_type is AccessType.REGISTER_SPILL for one in events):
            found.append(Finding("spills", 1.0, "threads have more values than registers"))
        found += self._bandwidth(traces)
        return sorted(found, key=lambda one: -one.severity)

    def _bandwidth(self, traces: Sequence[AttentionTrace]) -> list[Finding]:
        rates = [one for trace in traces if (one := trace.execution_pattern.memory_bandwidth_gbps) is not None]
        if len(rates) < 2:
            return []
        spread = (max(rates) - min(rates)) / mean(rates)
        if spread < self.steady:
            return [Finding("steady bandwidth", 0.0, "the bandwidth hardly changes from call to call")]
        return [Finding("variable bandwidth", min(1.0, spread), f"the bandwidth varies by {spread:.0%} of its mean")]


class ComputePatternMatcher:
    """Finds units that are busy or idle, and low occupancy."""

    busy = 80.0
    roomy = 0.7

    def find_compute_patterns(self, traces: Sequence[AttentionTrace]) -> list[Finding]:
        found: list[Finding] = []
        events = [one for trace in traces for one in trace.execution_pattern.compute_events]
        use: dict[ComputeType, float] = {}
        for kind in ComputeType:
            several = [one.utilization_percent for one in events if one.compute_type is kind]
            if several:
                use[kind] = mean(several)
        for kind, percent in use.items():
            if percent >= self.busy:
                words = f"{kind.value} keep their unit busy for {percent:.0f} % of the time"
                found.append(Finding(f"bound by {kind.name}", min(1.0, percent / 100), words))
        warps, groups = use.get(ComputeType.TENSOR_CORE_WMMA), use.get(ComputeType.TENSOR_CORE_WGMMA)
        if warps and not groups:
            found.append(Finding("products of single warps", 0.5, "dots are those of single warps"))
        rooms = [one for trace in traces if (one := trace.execution_pattern.occupancy_achieved) is not None]
        if rooms and mean(rooms) < self.roomy:
            words = f"{mean(rooms):.0%} of a multiprocessor's threads are there at once"
            found.append(Finding("low occupancy", _low(mean(rooms), 1.0), words))
        return sorted(found, key=lambda one: -one.severity)
