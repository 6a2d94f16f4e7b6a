"""What lies behind the end of an axis in the last block of it counts for nothing, whatever is computed of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.interpreters.levels.graph import run_function
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.pipeline import Stage, compile_module, default_stages

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEPTH = 70
"""More than a block of a product has, and no multiple of it."""
draw = np.random.default_rng(0)
INFINITY = float("inf")


def above(*shape: int) -> Any:
    """Numbers above 1/2."""
    return draw.uniform(0.5, 2, shape).astype(np.float32)


def number(x: float, *shape: int) -> Any:
    return np.full(shape, x, np.float32)


A, B, COLUMN, ROW = above(3, DEPTH), above(DEPTH, 2), above(3, 1), above(1, 2)
Q, K, V = above(3, 8), above(DEPTH, 8), above(DEPTH, 4)
Case = tuple[Callable[[Any], Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "ones": (lambda xs: ts.ones((3, DEPTH)) @ ts.ones((DEPTH, 2)) + xs[0], (COLUMN,)),
    "integers": (
        lambda xs: ts.full((3, DEPTH), 2, dtype=ts.i32) @ ts.full((DEPTH, 2), 3, dtype=ts.i32) + xs[0],
        (np.ones((3, 1), np.int32),),
    ),
    "indices": (lambda xs: ts.astype(ts.arange(DEPTH), ts.f32)[None, :] @ ts.ones((DEPTH, 2)) + xs[0], (COLUMN,)),
    "repeated": (lambda xs: ts.broadcast_to(xs[0], (3, DEPTH)) @ ts.broadcast_to(xs[1], (DEPTH, 2)), (COLUMN, ROW)),
    "infinities": (lambda xs: ts.full((3, DEPTH), INFINITY) @ xs[0], (B,)),
    "infinities on the right": (lambda xs: xs[0] @ ts.full((DEPTH, 2), INFINITY), (A,)),
    "repeated infinities": (lambda xs: ts.broadcast_to(xs[0], (3, DEPTH)) @ xs[1], (number(INFINITY, 3, 1), B)),
    "divided": (lambda xs: (1 / xs[0]) @ xs[1], (A, B)),
    "both divided": (lambda xs: (1 / xs[0]) @ ts.log(xs[1]), (A, B)),
    "values divided": (lambda xs: ts.softmax_safe(xs[0] @ xs[1].mT) @ (1 / xs[2]), (Q, K, V)),
    "keys divided": (lambda xs: ts.softmax_safe(xs[0] @ (1 / xs[1]).mT) @ xs[2], (Q, K, V)),
    "infinite values": (
        lambda xs: ts.softmax_safe(xs[0] @ xs[1].mT) @ ts.broadcast_to(xs[2], (DEPTH, 4)),
        (Q, K, number(INFINITY, 1, 4)),
    ),
    "equal infinite values": (lambda xs: ts.softmax_safe(xs[0] @ xs[1].mT) @ ts.full((DEPTH, 4), INFINITY), (Q, K)),
}


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("name", CASES)
def test_behind_the_end(name: str, few: int) -> None:
    function, arguments = CASES[name]
    jitted = ts.jit(function)
    jitted(arguments)
    (variant,) = [one for family in jitted.families.values() for one in family.variants]
    stages = {**default_stages(), "graph-to-schedule": Stage(GraphToSchedule(few), "schedule")}
    with knobs.verify.using(True):
        compiled = compile_module(variant.traced.module, stages=stages)
    (expected,) = run_function(variant.traced.module, "main", list(arguments))
    (found,) = run_function(compiled.module, "main", list(arguments))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_behind_the_end_on_a_gpu(name: str) -> None:
    function, arguments = CASES[name]
    expected: Any = ts.jit(function)(arguments)
    with knobs.backend.using("auto"):
        found: Any = ts.jit(function)(tuple(ts.asarray(one).cuda() for one in arguments))
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-3)
