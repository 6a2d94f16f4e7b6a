"""Events inside of kernels, from the addresses and instructions of the emitted code."""

from __future__ import annotations

from tessera.metatracing.events.execution import KernelExecution
from tessera.metatracing.events.host import HostExecution, HostMemoryPatternTracer, HostResources
from tessera.metatracing.events.kinds import AccessType, ComputeEvent, ComputeType, MemoryAccessEvent
from tessera.metatracing.events.tracers import (
    ComputeTrace,
    GPUComputePatternTracer,
    GPUMemoryPatternTracer,
    MemoryAccessTrace,
    MemoryTracer,
)

__all__ = [
    "AccessType",
    "ComputeEvent",
    "ComputeTrace",
    "ComputeType",
    "GPUComputePatternTracer",
    "GPUMemoryPatternTracer",
    "HostExecution",
    "HostMemoryPatternTracer",
    "HostResources",
    "KernelExecution",
    "MemoryAccessEvent",
    "MemoryAccessTrace",
    "MemoryTracer",
]
