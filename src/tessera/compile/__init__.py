"""`tessera.compile`: kernels and jitted functions brought down through the levels one by one, for any target.

graph_ir = to_graph_ir(kernel, (x,), options={"level": "sm_90a"})
target_ir = to_target_ir(to_tile_ir(to_schedule_ir(graph_ir)))
target_ir.text, target_ir.assembly, target_ir.stages_ms, target_ir.report
to_executable(target_ir)(x)
"""

from __future__ import annotations

from tessera.compile.executables import CompiledKernel, to_executable
from tessera.compile.levels import (
    GraphIR,
    LevelIR,
    LoweredPart,
    ScheduleIR,
    TargetIR,
    TileIR,
    to_graph_ir,
    to_schedule_ir,
    to_target_ir,
    to_tile_ir,
)

__all__ = [
    "CompiledKernel",
    "GraphIR",
    "LevelIR",
    "LoweredPart",
    "ScheduleIR",
    "TargetIR",
    "TileIR",
    "to_executable",
    "to_graph_ir",
    "to_schedule_ir",
    "to_target_ir",
    "to_tile_ir",
]


def __dir__() -> list[str]:
    return sorted(__all__)
