"""The tile DSL, `tessera.tile`: the functions that kernels call on tiles, and `@kernel`, schedules and spaces.

The functions are written in `language/intrinsics.py`; a call of a kernel goes through `calls/`, and `identity/` says
whether the kernel is still the one that was compiled.
"""

from __future__ import annotations

from tessera.tile.calls.function import Kernel, kernel
from tessera.tile.language import intrinsics
from tessera.tile.language.intrinsics import *  # noqa: F403
from tessera.tile.language.schedule import Schedule, Space, space

__all__ = ["Kernel", "Schedule", "Space", "kernel", "space"]
__all__ += intrinsics.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
