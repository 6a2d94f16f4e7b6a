"""Records of runs: traces with their profiles and patterns, samples of performance, and the ring that holds them.

On the call path a trace is a tuple in a ring; the classes of the specification are made of it on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from tessera.dtypes.types import DType
from tessera.runtime.tensor.meta import Meta

Number = bool | int | float
Described = tuple["Meta | Number", ...]
"""A call's arguments without their memory: the metas of tensors, and numbers."""


class ExecutionTier(IntEnum):
    """How far a program is specialized: for kinds alone; with a schedule from traces; for facts that traces show."""

    TIER1_INTERPRETER = 1
    TIER2_STANDARD = 2
    TIER3_SPECIALIZED = 3


@dataclass(frozen=True, slots=True)
class InputProfile:
    """The input of a call. The named sizes are those of the first array, as [batch, heads, rows, width] from the end.

    `arguments` has everything, for sites whose arguments are not shaped so.
    """

    batch_size: int = 1
    num_heads: int = 1
    seq_len: int = 1
    head_dim: int = 1
    input_dtype: DType | None = None
    is_causal: bool = False
    softmax_scale: float | None = None
    site: str = ""
    arguments: Described = ()

    @staticmethod
    def of(site: str, arguments: Described, *, is_causal: bool = False, scale: float | None = None) -> InputProfile:
        """The profile of a call."""
        first = next((one for one in arguments if isinstance(one, Meta)), None)
        shape = () if first is None else first.shape
        batch, heads, rows, width = (1, 1, 1, 1, *shape)[-4:]
        dtype = None if first is None else first.dtype
        return InputProfile(batch, heads, rows, width, dtype, is_causal, scale, site, arguments)


@dataclass(frozen=True, slots=True)
class ExecutionPattern:
    """How a run went. Rates are None where their amounts are not counted; launch facts are the program's own.

    On the CPU blocks are program instances, and there are neither threads of a block nor shared memory. The two
    sequences of events are filled by tracers that look inside of kernels.
    """

    execution_time_ms: float
    memory_bandwidth_gbps: float | None = None
    blocks_launched: int | None = None
    threads_per_block: int | None = None
    occupancy_achieved: float | None = None
    shared_memory_used: int | None = None
    registers_per_thread: int | None = None
    memory_accesses: tuple[Any, ...] = ()
    compute_events: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class OptimizationOpportunities:
    """The findings of analyses of a trace; empty until one has run."""

    tile_recommendations: tuple[Any, ...] = ()
    layout_optimizations: tuple[Any, ...] = ()
    fusion_opportunities: tuple[Any, ...] = ()
    specialization_candidates: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class AttentionTrace:
    """One recorded run of a site. `execution_count` is how many calls it stands for: not every call is recorded."""

    input_profile: InputProfile
    execution_pattern: ExecutionPattern
    tier: ExecutionTier
    timestamp: int
    execution_count: int = 1
    opportunities: OptimizationOpportunities = field(default_factory=OptimizationOpportunities)

    @property
    def total_ms(self) -> float:
        """The time of all calls that it stands for."""
        return self.execution_count * self.execution_pattern.execution_time_ms


def by_input(traces: Iterable[AttentionTrace]) -> dict[InputProfile, list[AttentionTrace]]:
    """Traces by their inputs."""
    found: dict[InputProfile, list[AttentionTrace]] = {}
    for trace in traces:
        found.setdefault(trace.input_profile, []).append(trace)
    return found


@dataclass(frozen=True, slots=True)
class PerformanceSample:
    """How fast a recorded run was, and how many calls it stands for. Rates are None where a site's work is not known.

    The two overheads are what the recorded call before this one cost beside its program: recording it, and finding what
    to run and what to compile.
    """

    tier_used: ExecutionTier
    input_profile: InputProfile
    execution_time_ms: float
    tflops_achieved: float | None
    memory_bandwidth_gbps: float | None
    timestamp: int
    calls: int = 1
    tracing_overhead_ms: float = 0.0
    runtime_overhead_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """The time of all calls that it stands for."""
        return self.execution_time_ms * self.calls


class LaunchFacts(NamedTuple):
    """The driver's facts about a bound program, as a pattern lists them; None where there is no such thing."""

    blocks: int | None = None
    threads: int | None = None
    occupancy: float | None = None
    shared: int | None = None
    registers: int | None = None


class Record(NamedTuple):
    """A recorded run as the ring holds it, and how many calls it stands for.

    `recording` and `deciding` are the nanoseconds that the recorded call before took beside its program.
    """

    timestamp: int
    tier: ExecutionTier
    arguments: Described
    nanoseconds: int
    stands_for: int
    facts: LaunchFacts
    recording: int = 0
    deciding: int = 0


class RecentRecords:
    """The last so many records. Adding one is appending to a list, or replacing the oldest."""

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self._items: list[Record] = []
        self._next = 0
        self.total = 0

    def add(self, record: Record) -> None:
        self.total += 1
        if len(self._items) < self._size:
            self._items.append(record)
            return
        self._items[self._next % self._size] = record
        self._next += 1

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Record]:
        """Oldest first."""
        items, start = list(self._items), self._next % self._size
        return iter(items[start:] + items[:start])


def bytes_of(arguments: Sequence[Meta | Number]) -> int:
    """The bytes of all arrays among arguments, each element once: the least that a run has to move."""
    return sum(one.nbytes for one in arguments if isinstance(one, Meta))
