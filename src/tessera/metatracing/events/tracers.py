"""Tracers: a launch as events of memory and of the machine's units, and accesses that are recorded one by one."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tessera.errors import TesseraError
from tessera.metatracing.events.counting import sectors, wavefronts
from tessera.metatracing.events.execution import ARGUMENT_BITS, KernelExecution
from tessera.metatracing.events.kinds import SECTOR, WARP, AccessType, ComputeEvent, ComputeType, MemoryAccessEvent
from tessera.metatracing.events.walk import InstructionSite
from tessera.targets.cuda.ptx.reading import Instruction
from tessera.tiers.records import AttentionTrace

COALESCED = 0.75
"""The part of moved bytes that lanes asked for, from which on an access counts as coalesced."""


# Memory


@dataclass(frozen=True, slots=True)
class RegisterPressurePoint:
    """Registers of a thread, and bytes that did not fit into them."""

    registers: int
    spilled_bytes: int
    occupancy: float


@dataclass(frozen=True)
class MemoryAccessTrace:
    """The memory accesses of a launch; bank conflicts and coalescing issues list those that are slow."""

    global_accesses: tuple[MemoryAccessEvent, ...]
    shared_accesses: tuple[MemoryAccessEvent, ...]
    register_pressure: tuple[RegisterPressurePoint, ...]
    spills: tuple[MemoryAccessEvent, ...] = ()
    is_complete: bool = True

    @property
    def bank_conflicts(self) -> tuple[MemoryAccessEvent, ...]:
        return tuple(one for one in self.shared_accesses if one.bank_conflicts)

    @property
    def coalescing_issues(self) -> tuple[MemoryAccessEvent, ...]:
        return tuple(one for one in self.global_accesses if not one.is_coalesced)

    @property
    def events(self) -> tuple[MemoryAccessEvent, ...]:
        return self.global_accesses + self.shared_accesses + self.spills

    def _of(self, argument: int | None) -> list[MemoryAccessEvent]:
        return [one for one in self.global_accesses if argument is None or one.argument == argument]

    def moved(self, argument: int | None = None) -> int:
        """Bytes that memory moves for the threads, for one argument or all."""
        return sum(one.moved_bytes for one in self._of(argument))

    def efficiency(self, argument: int | None = None) -> float:
        """Bytes asked for over bytes moved, of one argument or all."""
        moved = self.moved(argument)
        return min(1.0, sum(one.size_bytes for one in self._of(argument)) / moved) if moved else 1.0


class GPUMemoryPatternTracer:
    """Traces the memory accesses of a launch, from the addresses of its threads."""

    def trace_memory_patterns(self, execution: KernelExecution) -> MemoryAccessTrace:
        now = time.perf_counter_ns()
        everywhere, shared = list[MemoryAccessEvent](), list[MemoryAccessEvent]()
        for site in execution.walked.sites:
            if site.requests:
                made = _bulk(execution, site, now) if site.space == "bulk" else _event(execution, site, now)
                (shared if site.space == "shared" else everywhere).append(made)
        resources = execution.resources
        pressure, spills = list[RegisterPressurePoint](), list[MemoryAccessEvent]()
        if resources.registers is not None:
            spilled = resources.spilled_bytes or 0
            pressure.append(RegisterPressurePoint(resources.registers, spilled, execution.occupancy or 0.0))
            if spilled:
                size = spilled * execution.blocks * resources.threads
                spills.append(MemoryAccessEvent(AccessType.REGISTER_SPILL, 0, size, True, timestamp_ns=now))
        complete = execution.walked.is_complete
        return MemoryAccessTrace(tuple(everywhere), tuple(shared), tuple(pressure), tuple(spills), complete)


def _event(execution: KernelExecution, site: InstructionSite, now: int) -> MemoryAccessEvent:
    """An access of threads, for the whole call."""
    total = execution.total
    asked = site.lanes * site.size
    first = site.first or 0
    made = partial(
        MemoryAccessEvent,
        AccessType.of(site.space, site.stores),
        size_bytes=total(asked),
        timestamp_ns=now,
        requests=total(site.requests),
        instruction=site.text,
    )
    if site.space == "shared":
        return made(
            address=first,
            is_coalesced=True,
            bank_conflicts=total(site.wavefronts - site.least),
            wavefronts=total(site.wavefronts),
            distinct_bytes=total(asked),
        )
    argument = (first >> ARGUMENT_BITS) - 1
    known = 0 <= argument < len(execution.plan.arguments)
    moved = SECTOR * site.sectors
    whole = total(SECTOR * site.distinct)
    distinct = min(whole, execution.nbytes(argument)) if known else whole
    efficiency = min(1.0, asked / moved) if moved else 1.0
    return made(
        address=first - ((argument + 1) << ARGUMENT_BITS) if known else first,
        is_coalesced=not site.unknown and efficiency >= COALESCED,
        cache_hit_ratio=max(0.0, 1 - distinct / total(moved)) if moved else 0.0,
        sectors=None if site.unknown else total(site.sectors),
        distinct_bytes=max(1, distinct),
        argument=argument if known else None,
    )


def _bulk(execution: KernelExecution, site: InstructionSite, now: int) -> MemoryAccessEvent:
    """A copy by a tensor map: whole boxes, which another unit than the threads moves."""
    recipe = next((one for one in execution.device.maps if one.offset == site.map_offset), None)
    size, argument = 0, None
    if recipe is not None:
        argument = recipe.argument
        how: Any = execution.plan.arguments[argument]
        size = int(np.prod(recipe.box)) * how.dtype.storage.itemsize * execution.total(site.requests)
    distinct = min(size, execution.nbytes(argument)) if argument is not None else size
    return MemoryAccessEvent(
        AccessType.of("global", site.stores),
        0,
        size,
        True,
        cache_hit_ratio=1 - distinct / size if size else 0.0,
        timestamp_ns=now,
        requests=execution.total(site.requests),
        sectors=size // SECTOR,
        distinct_bytes=max(1, distinct),
        argument=argument,
        instruction=site.text,
    )


# Compute

_SPECIAL = frozenset({"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"})
_REDUCING = frozenset({"redux", "red", "atom", "vote", "match"})
_MATH = frozenset({"add", "sub", "mul", "fma", "mad", "min", "max", "neg", "abs", "div", "rem", "selp", "setp", "cvt"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
CLOCK_HZ = 1.755e9
_FLOPS = {8: 8192, 16: 4096, 19: 2048, 32: 2048, 64: 128}
"""Operations of dots in a clock of one multiprocessor, by the bits of their operands."""
_CLOCKS: Mapping[ComputeType, float] = {
    ComputeType.CUDA_CORE_MATH: 0.25,
    ComputeType.SPECIAL_FUNCTION: 2.0,
    ComputeType.SHUFFLE: 1.0,
    ComputeType.REDUCTION: 2.0,
}
"""Clocks of a warp's instruction: a multiprocessor has 128 lanes for arithmetic, 16 for functions, 32 to shuffle."""
_DOTS = (ComputeType.TENSOR_CORE_WMMA, ComputeType.TENSOR_CORE_WGMMA)
_BITS = {"bf16": 16, "f16": 16, "tf32": 19, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "f32": 32, "f64": 64}


def kind_of(one: Instruction) -> ComputeType | None:
    """Which unit an instruction is for; None for those that only move, wait or branch."""
    if one.kind in ("mma", "wmma"):
        return ComputeType.TENSOR_CORE_WMMA
    if one.kind == "wgmma":
        return ComputeType.TENSOR_CORE_WGMMA if one.parts[1] == "mma_async" else None
    if one.kind in _SPECIAL:
        return ComputeType.SPECIAL_FUNCTION
    if one.kind == "shfl":
        return ComputeType.SHUFFLE
    if one.kind in _REDUCING:
        return ComputeType.REDUCTION
    return ComputeType.CUDA_CORE_MATH if one.kind in _MATH else None


def _dot(one: Instruction) -> tuple[str, float]:
    """The shape of a dot, and the operations of a warp's instruction: those of a warp group have four."""
    found = _SHAPE.search(one.text)
    assert found is not None
    m, n, k = map(int, found.groups())
    return f"{one.kind} {found[0]}", 2.0 * m * n * k / (4 if one.kind == "wgmma" else 1)


def _clocks(one: Instruction, kind: ComputeType) -> float:
    """Clocks that a warp's instruction keeps its unit busy."""
    if kind not in _DOTS:
        return _CLOCKS[kind]
    return _dot(one)[1] / _FLOPS[next((_BITS[part] for part in reversed(one.parts[:-1]) if part in _BITS), 16)]


class TensorCoreUsage(NamedTuple):
    """Dots of one shape: instructions of warps, and the multiplications and additions in them."""

    shape: str
    instructions: int
    operations: float


class WarpDivergenceEvent(NamedTuple):
    """Branches of warps, those whose lanes went apart, and those that data decide."""

    branches: int
    divergent: int
    by_data: int


class OccupancyMeasurement(NamedTuple):
    """The part of a multiprocessor's threads that are resident, and their resources."""

    occupancy: float
    registers: int | None
    shared: int
    threads: int


class PipelineStall(NamedTuple):
    """Where warps wait for each other or for copies, and how often."""

    kind: str
    times: int


@dataclass(frozen=True)
class ComputeTrace:
    """The computation of a launch."""

    tensor_core_ops: tuple[TensorCoreUsage, ...]
    divergence_events: tuple[WarpDivergenceEvent, ...]
    occupancy_data: tuple[OccupancyMeasurement, ...]
    pipeline_stalls: tuple[PipelineStall, ...]
    events: tuple[ComputeEvent, ...]
    clocks: Mapping[ComputeType, float]
    """Clocks for which each unit is busy, on a multiprocessor if all have the same work."""
    is_complete: bool = True

    def count(self, kind: ComputeType) -> int:
        return sum(one.instruction_count for one in self.events if one.compute_type is kind)


class GPUComputePatternTracer:
    """Traces the computation of a launch, from how often threads execute each part of its code."""

    def trace_compute_patterns(self, execution: KernelExecution) -> ComputeTrace:
        now = time.perf_counter_ns()
        walked = execution.walked
        counts: Counter[ComputeType] = Counter()
        busy: dict[ComputeType, float] = defaultdict(float)
        shapes: Counter[tuple[str, float]] = Counter()
        waits: Counter[str] = Counter()
        for at, warps in walked.executed.items():
            one = walked.code.instructions[at]
            if (kind := kind_of(one)) is not None:
                counts[kind] += warps
                busy[kind] += warps * _clocks(one, kind)
                if kind in _DOTS:
                    shapes[_dot(one)] += warps
            elif (wait := _wait_of(one)) is not None:
                waits[wait] += warps
        total = execution.total
        used = min(execution.limits.multiprocessors, max(1, execution.blocks))
        clocks = {kind: execution.scale * spent / used for kind, spent in busy.items()}
        whole = max(clocks.values(), default=1.0)
        if execution.seconds is not None:
            whole = execution.seconds * CLOCK_HZ
        events = [
            ComputeEvent(kind, total(counts[kind]), 100 * clocks[kind] / whole, now)
            for kind in ComputeType
            if counts[kind]
        ]
        tensor = [
            TensorCoreUsage(shape, total(count), operations * total(count))
            for (shape, operations), count in shapes.items()
        ]
        divergence = WarpDivergenceEvent(total(walked.branches), total(walked.divergent), total(walked.by_data))
        resources = execution.resources
        room = OccupancyMeasurement(
            execution.occupancy or 0.0, resources.registers, resources.shared, resources.threads
        )
        return ComputeTrace(
            tuple(tensor),
            (divergence,),
            (room,) if execution.occupancy is not None else (),
            tuple(PipelineStall(kind, total(count)) for kind, count in sorted(waits.items())),
            tuple(events),
            clocks,
            walked.is_complete,
        )


def _wait_of(one: Instruction) -> str | None:
    if one.kind in ("bar", "barrier"):
        return "barrier"
    if one.kind == "mbarrier" and one.parts[1] == "try_wait":
        return "wait for copies"
    if one.parts[:3] == ("cp", "async", "wait_group") or one.parts[:2] == ("wgmma", "wait_group"):
        return "wait for copies" if one.kind == "cp" else "wait for products"
    return None


# Accesses that are recorded one by one


class AccessRecord(NamedTuple):
    """Lanes of one warp, and the bytes of each."""

    addresses: tuple[int, ...]
    size: int
    is_write: bool
    is_shared: bool
    timestamp: int


class MemoryTracer:
    """Collects accesses that are recorded one by one, and makes events of them.

    A program that runs a kernel thread by thread, an interpreter say, records the addresses of a warp's lanes and the
    bytes of each; one address is a warp with one lane.
    """

    def __init__(self) -> None:
        self._records: list[AccessRecord] = []
        self._tracing = False
        self._trace: AttentionTrace | None = None

    def begin_tracing(self, trace: AttentionTrace | None = None) -> None:
        """Drops earlier records. New ones belong to this trace, if one is given."""
        self._records, self._tracing, self._trace = [], True, trace

    def end_tracing(self) -> None:
        self._tracing = False

    def record_global_memory_access(self, address: int | Sequence[int], size: int, is_write: bool) -> None:
        self._record(address, size, is_write, is_shared=False)

    def record_shared_memory_access(self, offset: int | Sequence[int], size: int, is_write: bool) -> None:
        self._record(offset, size, is_write, is_shared=True)

    def _record(self, address: int | Sequence[int], size: int, is_write: bool, *, is_shared: bool) -> None:
        if self._tracing:
            lanes = (address,) if isinstance(address, int) else tuple(address)
            self._records.append(AccessRecord(lanes, size, is_write, is_shared, time.perf_counter_ns()))

    @property
    def records(self) -> tuple[AccessRecord, ...]:
        """The records in their order."""
        return tuple(self._records)

    def events(self) -> tuple[MemoryAccessEvent, ...]:
        """An event for each recorded access."""
        seen: set[int] = set()
        return tuple(self._one(record, seen) for record in self._records)

    def analyze_access_patterns(self, trace: AttentionTrace | None = None) -> AttentionTrace:
        """The trace, this one or the one that tracing began with, with the recorded accesses in it."""
        trace = self._trace if trace is None else trace
        if trace is None:
            raise TesseraError("there is no trace to add accesses to", hint="give one, here or to begin_tracing")
        return replace(trace, execution_pattern=replace(trace.execution_pattern, memory_accesses=self.events()))

    @staticmethod
    def _one(record: AccessRecord, seen: set[int]) -> MemoryAccessEvent:
        rows = -(-len(record.addresses) // WARP)
        addresses, active = np.zeros((rows, WARP), np.int64), np.zeros((rows, WARP), bool)
        addresses.ravel()[: len(record.addresses)] = record.addresses
        active.ravel()[: len(record.addresses)] = True
        size = record.size * len(record.addresses)
        kind = AccessType.of("shared" if record.is_shared else "global", record.is_write)
        made = partial(
            MemoryAccessEvent, kind, min(record.addresses), size, timestamp_ns=record.timestamp, requests=rows
        )
        if record.is_shared:
            taken, least = wavefronts(addresses, active, record.size)
            conflicts, wave = int((taken - least).sum()), int(taken.sum())
            return made(is_coalesced=True, bank_conflicts=conflicts, wavefronts=wave, distinct_bytes=size)
        moved = int(sectors(addresses, active, record.size).sum())
        touched = {
            sector
            for address in record.addresses
            for sector in range(address // SECTOR, (address + record.size - 1) // SECTOR + 1)
        }
        hits = len(touched & seen) / len(touched)
        fresh = len(touched - seen)
        seen |= touched
        coalesced = size >= COALESCED * SECTOR * moved
        return made(is_coalesced=coalesced, cache_hit_ratio=hits, sectors=moved, distinct_bytes=SECTOR * fresh)
