"""Programs of the CUDA toolkit, where they are installed. Looking for them loads nothing."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_WHEEL = "cu13/bin"
"""Where the wheel `nvidia-cuda-nvcc` keeps its programs, in the namespace `nvidia`."""

BRIEFLY = "// is not kept for long"
"""The first line of PTX that is assembled by the driver, whose assembler is there already: starting one takes longer
than what it could do better."""


def find_ptxas() -> Path | None:
    """On the path, in CUDA_HOME, or in the wheel `nvidia-cuda-nvcc`, in this order; None where there is none."""
    return find_tool("ptxas")


def find_tool(name: str) -> Path | None:
    """A program of the CUDA toolkit, looked for as ptxas is."""
    folders = [Path(place) for place in os.get_exec_path() if place]
    if home := os.environ.get("CUDA_HOME"):
        folders.append(Path(home) / "bin")
    namespace = find_spec("nvidia")
    folders += [Path(place) / _WHEEL for place in (namespace and namespace.submodule_search_locations) or ()]
    return next((found for folder in folders if _runs(found := folder / name)), None)


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)
