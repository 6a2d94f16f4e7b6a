"""`CodeCounts`: what the code of a kernel has, counted: instructions, registers, memory, matrix units, barriers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class CodeCounts:
    """The counts of one kernel, in words of its target. What cannot be known is None, and `unavailable` says why."""

    instruction_count: int | None = None
    instruction_mix: Figures | None = None
    memory_access_patterns: Figures | None = None
    """Instructions that touch memory, by space and direction."""
    registers: Figures | None = None
    functions: Figures | None = None
    """Instructions of each function: of the kernel, and of others beside it."""
    occupancy_estimate: Figures | None = None
    shared_memory_usage: Figures | None = None
    register_pressure: Figures | None = None
    tensor_core_utilization: Figures | None = None
    async_copy_patterns: Figures | None = None
    synchronization_overhead: Figures | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why figures are None, by their names; `memory.shared` is a figure among others."""

    @staticmethod
    def unknown(reason: str) -> CodeCounts:
        """Nothing, for one reason."""
        return CodeCounts(unavailable=dict.fromkeys(FIGURES, reason))


FIGURES = tuple(one.name for one in fields(CodeCounts) if one.name != "unavailable")
"""The names of the figures."""
