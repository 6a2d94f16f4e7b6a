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
from tessera.targets.cpu.lower.legalize import legalize_stages
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.transforms.core.context import CompileContext

Array = np.ndarray[Any, np.dtype[Any]]
MACHINES = {level: lanes(level, 32) for level in LEVELS}


def to_cpu(module: ModuleOp, lowering: TileToCpu) -> None:
    """Legalizes the tile functions of a module, and lowers them."""
    context = CompileContext.with_facts()
    for one in (*legalize_stages(lowering.level, contract=lowering.contract).values(), lowering):
        one.apply(context, module)


def lowered(module: ModuleOp, level: str, *, fuse: bool = True) -> ModuleOp:
    """A copy of a module at the cpu level."""
    made = module.clone()
    to_cpu(made, TileToCpu(level, fuse=fuse))
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
