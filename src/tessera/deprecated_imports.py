"""Import hook for modules that moved: importing one under its old, documented name gives it, with a warning.

docs/renames.md has all moves; here are those that were public.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object  # importing `importlib.abc` takes a fifth of the time the package does

MOVED = {
    "tessera.bench.compiler.levels": "tessera.compile",
    "tessera.bench.kernels": "tessera.stdlib",
    "tessera.bench.operators.decoding": "tessera.stdlib.decoding",
    "tessera.dialects": "tessera.ir",
    "tessera.dialects.elements": "tessera.ir.common.elements",
    "tessera.dialects.elementwise": "tessera.ir.common.elementwise",
    "tessera.dialects.graph": "tessera.ir.graph.dialect",
    "tessera.dialects.graph_types": "tessera.ir.graph.types",
    "tessera.dialects.intervals": "tessera.ir.common.intervals",
    "tessera.dialects.pipes": "tessera.ir.pipe.dialect",
    "tessera.dialects.schedule": "tessera.ir.schedule.dialect",
    "tessera.dialects.structural_hash": "tessera.ir.structural_hash",
    "tessera.dialects.text": "tessera.ir.text",
    "tessera.dialects.tile": "tessera.ir.tile.dialect",
    "tessera.interpreters.access_trace": "tessera.interpreters.sanitizers.access_trace",
    "tessera.interpreters.checks": "tessera.interpreters.sanitizers.checks",
    "tessera.interpreters.graph": "tessera.interpreters.levels.graph",
    "tessera.interpreters.machine": "tessera.interpreters.core.machine",
    "tessera.interpreters.pipe": "tessera.interpreters.levels.pipe",
    "tessera.interpreters.pipe_agents": "tessera.interpreters.levels.pipe_warp_groups",
    "tessera.interpreters.tile": "tessera.interpreters.levels.tile",
    "tessera.kernels": "tessera.tile",
    "tessera.kernels.schedule": "tessera.tile.language.schedule",
    "tessera.lang.programs": "tessera.programs",
    "tessera.targets.cuda.assembler": "tessera.targets.cuda.ptx.assembler",
    "tessera.targets.cuda.layouts": "tessera.targets.cuda.ir.layouts",
    "tessera.targets.cuda.nv_types": "tessera.targets.cuda.ir.types",
}


class _AlreadyLoaded(Loader):
    """Gives a module that has been loaded under its own name, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importing has set the one of the old name


class _Finder(MetaPathFinder):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = MOVED.get(fullname)
        if new is None:
            return None
        warnings.warn(f"{fullname} is {new} now", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _AlreadyLoaded(import_module(new)))


def install() -> None:
    """Lets old names be imported; before other finders, which would look for them in the folders of the new ones."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
