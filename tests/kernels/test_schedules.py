"""Schedules as values: defaults, inheritance, equality, validity, spaces, and their place in Schedule IR."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Operation

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.dialects import graph, schedule, text
from tessera.dialects.tile import FuncOp
from tessera.errors import AutotuneError, CompileError, ResourceError
from tessera.kernels import Space, space
from tessera.kernels.levels import calling_module, config_of, lower_through, schedule_of

BASE = Schedule(block=(128, 128), warps=8, stages=3)

schedules = st.builds(
    Schedule,
    block=st.none() | st.lists(st.integers(1, 128), min_size=1, max_size=3).map(tuple),
    warps=st.sampled_from([None, 1, 4, 8]),
    stages=st.none() | st.integers(1, 4),
    vector=st.sampled_from([None, 1, 2, 8]),
    swizzle=st.sampled_from([None, "none", "xor"]),
    d=st.none() | st.integers(1, 256),
)


@kernel
def double(x: Any):
    return tile.load(x) * 2.0


def find(module: Operation, kind: type[Any]) -> Any:
    return next(op for op in module.walk() if isinstance(op, kind))


def test_variations_inherit_and_override() -> None:
    assert BASE.with_block(64, 64) == Schedule(block=(64, 64), warps=8, stages=3)
    assert BASE.with_warps(4).with_stages(2).with_vector(8).with_swizzle("xor") == Schedule(
        block=(128, 128), warps=4, stages=2, vector=8, swizzle="xor"
    )
    assert Schedule(block=(128, 128), warps=8, stages=3) == BASE, "the base has not changed"
    assert (BASE.m, BASE.n, BASE.k) == (128, 128, None)
    assert Schedule(warps=2).over(BASE) == BASE.with_warps(2)


@given(schedules, schedules)
def test_equality_hash_and_printing_agree(one: Schedule, other: Schedule) -> None:
    assert (one == other) == (str(one) == str(other))
    if one == other:
        assert hash(one) == hash(other)
    assert eval(str(one), {"Schedule": Schedule}) == one


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"block": (0, 64)}, "positive sizes"),
        ({"block": (1, 2, 3, 4)}, "one to three"),
        ({"warps": 3}, "power of two"),
        ({"vector": 6}, "power of two"),
        ({"stages": 0}, "positive integer"),
        ({"swizzle": "spiral"}, "none or xor"),
        ({"block": (1024, 1024)}, "fits no target"),
    ],
)
def test_impossible_schedules_are_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ResourceError, match=message):
        Schedule(**choices)


def test_spaces_list_their_valid_points_first_choices_first() -> None:
    found = space().block(m=[64, 128], n=[64, 128], k=[64]).warps([3, 4]).stages([2, 3]).vector([4, 8])
    points = list(found)
    assert len(points) == len(found) == 2 * 2 * 1 * 1 * 2 * 2
    assert points[0] == found.first() == Schedule(block=(64, 64, 64), warps=4, stages=2, vector=4)
    assert len(set(points)) == len(points)
    assert Space.of({"BM": [64, 128], "BN": [32], "warps": [4]}) == space().block(m=[64, 128], n=[32]).warps([4])


def test_spaces_without_a_point_or_with_unknown_choices_are_refused() -> None:
    with pytest.raises(AutotuneError, match="no valid point"):
        space().warps([3, 5]).first()
    with pytest.raises(AutotuneError, match="unknown choice 'BX'"):
        Space.of({"BX": [1]})
    with pytest.raises(AutotuneError, match="no values for warps"):
        space().warps([])


def test_schedules_are_attached_by_decorator_or_at_the_call() -> None:
    x = ts.ones((5, 3))
    scheduled = kernel.schedule(BASE.with_block(2, 2))(double.function)
    other = double.with_schedule(Schedule(block=(4, 4)))
    assert scheduled.schedule.block == (2, 2)
    grids = [find(chosen.lower(x).module, FuncOp).grid.data for chosen in (scheduled, other)]
    assert [str(grid[0]) for grid in grids] == ["(x_0 + 1)//2", "(x_0 + 3)//4"]
    assert (scheduled(x).numpy() == other(x).numpy()).all()
    with pytest.raises(CompileError, match="takes a Schedule"):
        kernel.schedule({"block": (2, 2)})  # pyright: ignore[reportArgumentType]  (the mistake)


@given(schedules)
def test_schedule_ir_carries_them_and_reads_them_back(chosen: Schedule) -> None:
    assert schedule_of(config_of(chosen)) == chosen
    instance = double.lower(ts.ones((5, 3)))
    module = text.read(text.write(calling_module(instance, chosen)))
    assert schedule_of(find(module, graph.CallKernelOp).config.data) == chosen
    launched = lower_through(instance, chosen).module
    assert schedule_of(find(text.read(text.write(launched)), schedule.LaunchOp).config.data) == chosen
    assert asdict(config_of(chosen)) == asdict(chosen)
