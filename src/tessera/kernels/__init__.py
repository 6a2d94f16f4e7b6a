"""The tile DSL: kernels, schedules, and what kernels may do with tiles."""

from __future__ import annotations

from tessera.kernels.function import Kernel, kernel
from tessera.kernels.schedule import Schedule, Space, space

__all__ = ["Kernel", "Schedule", "Space", "kernel", "space"]
