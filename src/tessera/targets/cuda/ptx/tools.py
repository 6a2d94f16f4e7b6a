"""Commands of the CUDA toolkit, where they are installed. Looking for them loads nothing."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from tessera.subprocesses import executable, is_executable

_WHEEL = "cu13/bin"
"""Where the wheel `nvidia-cuda-nvcc` keeps its commands, in the namespace `nvidia`."""

BRIEFLY = "// is not kept for long"
"""The first line of PTX that is assembled by the driver, whose assembler is there already: starting one takes longer
than what it could do better."""


def find_ptxas() -> Path | None:
    """On the path, in CUDA_HOME, or in the wheel `nvidia-cuda-nvcc`, in this order; None where there is none."""
    return find_tool("ptxas")


def find_tool(name: str) -> Path | None:
    """A command of the CUDA toolkit, looked for as ptxas is."""
    if (on_path := executable(name)) is not None:
        return Path(on_path)
    home = os.environ.get("CUDA_HOME", "")
    folders = [Path(home) / "bin"] if os.path.isabs(home) else []
    namespace = find_spec("nvidia")
    folders += [Path(folder) / _WHEEL for folder in (namespace and namespace.submodule_search_locations) or ()]
    return next((found for folder in folders if is_executable(found := folder / name)), None)
