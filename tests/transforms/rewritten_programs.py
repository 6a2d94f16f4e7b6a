"""Kernels before and after a pass: both are run, and must give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels import pipe_warp_groups as pipe_interpreter
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile
from tessera.targets import text

MEANINGS = (pipe_interpreter,)  # it registers itself
Array = np.ndarray[Any, np.dtype[Any]]
Rewrite = Callable[[tile.FuncOp], object]


read = lru_cache(maxsize=64)(text.read)
"""Kernels are read once, and run and rewritten many times: the module that was read is not changed."""


def rewritten(source: str | ModuleOp, rewrite: Rewrite) -> tuple[ModuleOp, tile.FuncOp, object]:
    """A copy of a kernel after a pass, verified; its function @k, and the result of the pass."""
    module = (read(source) if isinstance(source, str) else source).clone()
    function = symbol_in(module, "k", tile.FuncOp)
    said = rewrite(function)
    text.verify(module)
    return module, function, said


def run(module: ModuleOp, arguments: Sequence[Any]) -> list[Array]:
    """The arrays after a run; those given stay as they are."""
    given = [cast("Array", value).copy() if isinstance(value, np.ndarray) else value for value in arguments]
    run_kernel(module, "k", given)
    return [value for value in given if isinstance(value, np.ndarray)]


def check_same(source: str | ModuleOp, rewrite: Rewrite, arguments: Sequence[Any]) -> tile.FuncOp:
    """Compares the bits that a kernel gives before and after a pass."""
    before = read(source) if isinstance(source, str) else source
    after, function, _ = rewritten(before, rewrite)
    for one, other in zip(run(after, arguments), run(before, arguments), strict=True):
        assert one.tobytes() == other.tobytes(), text.write(after)
    return function


def count(function: tile.FuncOp, kind: type[Any]) -> int:
    """How many ops of a kind a function has."""
    return sum(isinstance(op, kind) for op in function.body.walk())


def at_length(names: Iterable[Any], *kept: Any) -> list[Any]:
    """All of these for `make acceptance`, the `kept` ones for every test."""
    return [name if name in kept else pytest.param(name, marks=pytest.mark.acceptance) for name in names]
