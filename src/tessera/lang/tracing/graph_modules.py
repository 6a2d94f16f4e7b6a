"""The modules of the graph dialect, as names that load them when the first op is written: programs that come from the
disk need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class Deferred:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from tessera.ir.common import locations
    from tessera.ir.graph import control, dialect, effects, indexing, slices, types
else:
    locations = Deferred("tessera.ir.common.locations")
    control, dialect, effects, indexing, slices, types = (
        Deferred(f"tessera.ir.graph.{name}")
        for name in ("control", "dialect", "effects", "indexing", "slices", "types")
    )

__all__ = ["Deferred", "control", "dialect", "effects", "indexing", "locations", "slices", "types"]
