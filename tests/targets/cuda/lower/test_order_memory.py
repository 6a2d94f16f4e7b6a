"""Where threads of a block wait for each other because of memory that a program both reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from gpu_options import gpu
from ptx_checks import check_clean

from tessera import kernel, tile
from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cuda.compile import compile_lowered, lower_kernel
from tessera.targets.cuda.ir import dialect as nv

if TYPE_CHECKING:
    Filled = Any
else:
    from tessera import Out as Filled


@kernel
def twice_in_place(x: Filled):
    rows = tile.load(x, at=(0, 0), shape=(64, 64))
    tile.store(x, rows * 2.0, at=(0, 0))


@kernel
def turned_in_place(x: Filled):
    tile.store(x, tile.load(x, at=(0, 0), shape=(64, 64)).T, at=(0, 0))


@kernel
def moved_in_place(x: Filled):
    tile.store(x, tile.load(x, at=(0, 0), shape=(64, 64)), at=(1, 0))


@kernel
def pushed_in_place(x: Filled):
    for place in tile.range(4):
        tile.store(x, tile.load(x, at=(place, 0), shape=(64, 64)), at=(place + 1, 0))


@pytest.mark.parametrize(
    ("program", "barriers"), [(twice_in_place, 0), (turned_in_place, 0), (moved_in_place, 1), (pushed_in_place, 2)]
)
def test_threads_of_a_gpu_wait_where_others_may_touch_the_same_elements(program: Any, barriers: int) -> None:
    """Not where threads store only to places that they loaded; between a load and a store; in a loop, before both."""
    instance = program[1].lower(np.zeros((128, 64), np.float32))
    lowered = lower_kernel(instance.module, instance.name, gpu(warps=4))[0]
    function = symbol_in(lowered, instance.name, nv.FuncOp)
    assert sum(isinstance(op, nv.BarrierOp) for op in function.walk()) == barriers
    ptx = compile_lowered(lowered, instance.name).ptx
    check_clean(ptx, "sm_90a")
