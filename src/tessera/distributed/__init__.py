"""Ranks that compute together: one process each, started by an MPI launcher, and collectives over their tensors."""

from __future__ import annotations

from tessera.distributed.collectives import all_gather, all_reduce, all_to_all, barrier, broadcast, reduce_scatter
from tessera.distributed.group import (
    ProcessGroup,
    destroy_process_group,
    get_rank,
    get_world_size,
    initialize_process_group,
    is_initialized,
)
from tessera.metatracing.ranks import (
    CollectiveEvent,
    DistributedExecutionTracer,
    DistributedTrace,
    enable_distributed_tracing,
)

__all__ = [
    "CollectiveEvent",
    "DistributedExecutionTracer",
    "DistributedTrace",
    "ProcessGroup",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "enable_distributed_tracing",
    "get_rank",
    "get_world_size",
    "initialize_process_group",
    "is_initialized",
    "reduce_scatter",
]


def __dir__() -> list[str]:
    return sorted(__all__)
