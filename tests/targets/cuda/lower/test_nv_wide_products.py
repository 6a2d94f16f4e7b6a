"""Products of f64 in loops: lowered, run by the nv interpreter and as PTX, they are those of the tile level."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from cpu_runs import copies
from emitted_runs import run as run_emitted
from nv_runs import Array, at_nv_level, at_tile_level, lowered
from test_cpu_lowering import instance
from test_tile_to_nv import multiplied_in_turns

from tessera import Schedule
from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cuda.ir import dialect as nv

odd: Any = import_module("test_native_odd_cases")

CLOSE = 1e-14
"""An error relative to the norm: sums are those of another order."""


def check(module: Any, name: str, values: list[Any], *, products: int, **how: Any) -> None:
    """The same at all levels; a product that goes along with copies is cut into several."""
    expected, made = at_tile_level(module, name, values), lowered(module, name, **how)
    found = [op for op in symbol_in(made, name, nv.FuncOp).walk() if isinstance(op, nv.MmaOp)]
    assert len(found) >= products
    emitted = copies(values)
    assert run_emitted(made, name, emitted).message is None
    arrays: list[Array] = [value for value in emitted if isinstance(value, np.ndarray)]
    for results in (at_nv_level(made, name, values, None), at_nv_level(made, name, values, 3), arrays):
        for one, other in zip(results, expected, strict=True):
            assert np.linalg.norm(one - other) <= CLOSE * np.linalg.norm(other)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape)


@pytest.mark.quick(3)
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("k", [4, 8, 12, 16, 20, 24, 32])
def test_the_depth_is_cut_where_layouts_may_be(k: int, stages: int) -> None:
    for turns in (0, 1, 4):
        depth, stop = max(1, k * turns - 3), k * turns
        values = [numbers(17, depth), numbers(depth, 18), numbers(17, 17), stop]
        made = multiplied_in_turns[1].lower(*values, m=17, k=k)
        several = 1 if k % 8 or k == 8 or stages == 1 else 2
        check(made.module, made.name, values, products=several, warps=2, stages=stages)


@pytest.mark.quick(1, d=[16, 17])
@pytest.mark.parametrize(("s", "t", "d", "block"), [(9, 40, 16, 16), (33, 65, 40, 32), (5, 7, 17, 32)])
def test_attention(s: int, t: int, d: int, block: int) -> None:
    given = [numbers(2, s, d), numbers(1, t, d), numbers(1, t, d)]
    program = odd.wide_attention.with_schedule(Schedule(block=(block, block, block)))
    module, name, values = instance(program, given, {})
    check(module, name, values, products=2 if d % 8 else 3)
