"""Runs of one tile program at both levels: by the tile interpreter, and lowered by the cpu interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.levels.tile import run_kernel
from tessera.targets import text
from tessera.targets.cpu.features import LEVELS, lanes
from tessera.targets.cpu.interpreter import run_cpu_kernel
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu

Array = np.ndarray[Any, np.dtype[Any]]
MACHINES = {level: lanes(level, 32) for level in LEVELS}


def lowered(module: ModuleOp, level: str, *, fuse: bool = True) -> ModuleOp:
    """A copy of a module at the cpu level."""
    made = module.clone()
    TileToCpu(level, fuse=fuse).apply(text.new_context(), made)
    text.verify(made)
    return made


def copies(arguments: Sequence[Any]) -> list[Any]:
    """Arrays of their own; those with other strides, which a copy would lose, are only read and stay."""
    return [
        value.copy() if isinstance(value, np.ndarray) and value.flags.c_contiguous else value for value in arguments
    ]


def at_tile_level(module: ModuleOp, name: str, arguments: Sequence[Any]) -> list[Array]:
    """The arrays after a run."""
    given = copies(arguments)
    run_kernel(module, name, given)
    return [value for value in given if isinstance(value, np.ndarray)]


def at_cpu_level(module: ModuleOp, name: str, arguments: Sequence[Any], seed: int | None = None) -> list[Array]:
    """The arrays after a run of a lowered module."""
    given = copies(arguments)
    run_cpu_kernel(module, name, given, seed=seed)
    return [value for value in given if isinstance(value, np.ndarray)]
