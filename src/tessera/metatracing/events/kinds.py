"""Kinds of events inside of a kernel: memory accesses and work of the machine's units, by the specification's names.

An event is one instruction of the emitted code in all its executions during a call: how often, by how many lanes, and
its use of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SECTOR = 32
"""Bytes that a GPU's caches move at a time."""
LINE = 64
"""Bytes that a processor's caches move at a time."""
BANKS, BANK_BYTES = 32, 4
WARP = 32


class AccessType(Enum):
    """The memory that is accessed, and how."""

    GLOBAL_LOAD = "global load"
    GLOBAL_STORE = "global store"
    SHARED_LOAD = "shared load"
    SHARED_STORE = "shared store"
    REGISTER_SPILL = "register spill"

    @staticmethod
    def of(space: str, stores: bool) -> AccessType:
        """The type of a load or store in `global` or `shared` memory."""
        return AccessType(f"{space} {'store' if stores else 'load'}")


class ComputeType(Enum):
    """The unit of the machine that works."""

    TENSOR_CORE_WMMA = "products of a warp"
    TENSOR_CORE_WGMMA = "products of a warpgroup"
    CUDA_CORE_MATH = "arithmetic"
    SPECIAL_FUNCTION = "special functions"
    REDUCTION = "reductions"
    SHUFFLE = "shuffles"


@dataclass(frozen=True, slots=True)
class MemoryAccessEvent:
    """One instruction that accesses memory, in all its executions during a call.

    `address` counts from the start of the argument, or of shared memory, where the first execution began. `size_bytes`
    are those that lanes asked for. `requests` are instructions of warps, or rows of tiles on a processor.
    `sectors` are the parts of memory that each of them touched, None where addresses depend on data; they have
    `unit_bytes`: 32 on a GPU, a line of 64 on a processor. `bank_conflicts` are wavefronts of shared memory beyond
    those that the bytes need. `cache_hit_ratio` is the part of sectors that were touched before: the hits of a cache
    without limits. `instruction` is that of the code, `argument` the index of the array among the arguments.
    """

    access_type: AccessType
    address: int
    size_bytes: int
    is_coalesced: bool
    bank_conflicts: int = 0
    cache_hit_ratio: float = 0.0
    timestamp_ns: int = 0
    requests: int = 0
    sectors: int | None = 0
    wavefronts: int = 0
    distinct_bytes: int = 0
    argument: int | None = None
    instruction: str = ""
    unit_bytes: int = SECTOR

    @property
    def moved_bytes(self) -> int:
        """Bytes that were moved for the lanes: whole sectors; 0 where addresses depend on data."""
        return self.unit_bytes * (self.sectors or 0)

    @property
    def coalescing_efficiency(self) -> float:
        """Bytes that lanes asked for, over bytes that were moved for them; at most 1."""
        return min(1.0, self.size_bytes / self.moved_bytes) if self.sectors else 1.0

    @property
    def sectors_per_request(self) -> float:
        return (self.sectors or 0) / self.requests if self.requests else 0.0

    @property
    def reuse(self) -> float:
        """How often each byte is asked for."""
        return self.size_bytes / self.distinct_bytes if self.distinct_bytes else 1.0


@dataclass(frozen=True, slots=True)
class ComputeEvent:
    """The work of a unit of the machine during a call: instructions of warps.

    `utilization_percent` is the time that they take on the unit, over that of the call where it is known, otherwise
    over that of the busiest unit.
    """

    compute_type: ComputeType
    instruction_count: int
    utilization_percent: float = 0.0
    timestamp_ns: int = 0
