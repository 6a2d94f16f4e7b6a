"""Schedules as values: defaults, inheritance, equality, validity, spaces, and their form in Schedule IR."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Operation

import tessera as ts
from tessera import Schedule, TesseraWarning, kernel, tile, verify
from tessera.errors import AutotuneError, CompileError, ResourceError
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile.dialect import FuncOp
from tessera.tile import Space, space
from tessera.tile.calls.levels import calling_module, config_of, lower_through, schedule_of

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
    assert BASE.with_d(64) == Schedule(block=(128, 128), warps=8, stages=3, d=64)
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
        ({"d": 0}, "positive integer"),
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
    assert asdict(config_of(chosen)) == {**asdict(chosen), "split": None}


# The width of rows.


@kernel
def normalised(x: Any):
    """Three ways in which a kernel depends on the width of its rows: T.d, whole rows, and what it computes with T.d."""
    here = tile.context()
    rows = tile.load(x)
    return tile.load(x, cols=here.d) * tile.rsqrt(float(here.d)) + rows


@given(st.integers(1, 40), st.integers(1, 40) | st.none(), st.integers(1, 9))
def test_the_schedule_limits_the_width_of_rows_and_changes_nothing_else(width: int, d: int | None, m: int) -> None:
    chosen, x = Schedule(block=(m, m), d=d), ts.randn((7, width), seed=width)
    assert chosen.serves(width) == (d is None or width <= d)
    if not chosen.serves(width):
        with pytest.raises(ResourceError, match=f"rows of x are {width} wide, and under d={d} "):
            normalised.with_schedule(chosen)(x)
        return
    exact = x.numpy() * np.float32(1 / np.sqrt(np.float64(width))) + x.numpy()
    np.testing.assert_allclose(normalised.with_schedule(chosen)(x).numpy(), exact, rtol=1e-6, atol=1e-6)
    assert str(normalised.with_schedule(chosen).lower(x).module) == str(
        normalised.with_schedule(Schedule(block=(m, m))).lower(x).module
    ), "the program does not depend on d"


def test_the_limit_is_for_rows_of_the_driving_argument_that_are_held_whole() -> None:
    @kernel.schedule(Schedule(block=(4, 4), d=8))
    def columns(x: Any, y: Any):
        """Reads blocks of x, never its rows, and other rows of y."""
        here = tile.context()
        total = tile.zeros((here.m,))
        for col in tile.range(0, x.shape[1], here.n):
            total = total + tile.sum(tile.load(x, at=(here.row_start, col), shape=(here.m, here.n)))
        return total + tile.sum(tile.load(y))

    x, y = ts.ones((6, 100)), ts.ones((6, 50))
    assert columns(x, y).tolist() == [150.0] * 6
    assert columns.lower(x, y).row_width is None


@kernel.autotune(space={"BM": [4, 8], "BN": [16], "BD": [16, 64, 32]})
def tuned_rows(x: Any):
    return tile.load(x) * float(tile.context().d)


@pytest.mark.parametrize(("width", "d", "valid"), [(3, 16, 6), (16, 16, 6), (17, 64, 4), (32, 64, 4), (33, 64, 2)])
def test_the_first_point_that_serves_the_rows_is_taken(width: int, d: int, valid: int) -> None:
    x = ts.ones((5, width))
    assert (tuned_rows(x).numpy() == width).all()
    instance = tuned_rows.lower(x)
    assert instance is tuned_rows.lower(ts.ones((9, width))), "found again by its guard"
    assert instance.schedule == Schedule(block=(4, 16), d=d)
    assert instance.row_width == width
    assert tuned_rows.space is not None
    assert tuned_rows.space.count(width) == valid
    assert find(lower_through(instance, instance.schedule).module, schedule.LaunchOp).config.data.d == d


def test_a_space_without_a_point_for_the_rows_is_refused() -> None:
    with pytest.raises(AutotuneError, match="no schedule in the space of tuned_rows serves these arguments") as caught:
        tuned_rows(ts.ones((5, 65)))
    assert [line.partition(", and under ")[2].partition(" ")[0] for line in caught.value.story] == [
        "d=16",
        "d=64",
        "d=32",
    ]


def test_a_schedule_given_by_hand_leaves_the_rest_of_the_space_open() -> None:
    by_hand = tuned_rows.with_schedule(Schedule(block=(2, 2)))
    assert by_hand.schedule == Schedule(block=(2, 2), d=16)
    assert by_hand.lower(ts.ones((5, 40))).schedule == Schedule(block=(2, 2), d=64)
    assert by_hand.space == space().block(d=[16, 64, 32], m=[2], n=[2])
    fixed = by_hand.with_schedule(Schedule(d=32, warps=2))
    assert list(fixed.space or ()) == [Schedule(block=(2, 2), d=32, warps=2)]
    with pytest.raises(AutotuneError, match="serves these arguments"):
        fixed(ts.ones((5, 40)))


@given(schedules)
def test_narrowing_a_space_fixes_what_a_schedule_says(fixed: Schedule) -> None:
    wide = space().block(m=[16, 32], n=[16], k=[16, 8]).warps([4, 8]).swizzle(["none", "xor"])
    narrow = wide.narrowed(fixed)
    assert set(narrow) == {fixed.over(point) for point in wide}
    assert len(narrow) == len(set(narrow))
    assert wide.narrowed(Schedule()) == wide


# What was not tuned says so.


def warnings_of(run: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return caught


def test_a_kernel_that_was_not_tuned_says_so_once() -> None:
    @kernel.autotune(space={"BM": [4, 8], "BD": [8, 16]})
    def fresh(x: Any):
        return tile.load(x) * 2.0

    assert repr(fresh) == "<kernel fresh Schedule(block=(4,), d=8), not tuned: first of 4 valid schedules>"
    narrow, wide = ts.ones((5, 8)), ts.ones((5, 9))
    assert warnings_of(lambda: (repr(fresh), fresh.lower(wide))) == [], "nothing has run"
    (caught,) = warnings_of(lambda: [form(x) for x in (wide, narrow, wide) for form in (fresh, fresh[2], fresh)])
    assert caught.category is TesseraWarning
    assert str(caught.message) == (
        "kernel fresh Schedule(block=(4,), d=16), not tuned: first of 2 valid schedules; there is no tuner yet"
    )
    assert (caught.filename, linecache.getline(caught.filename, caught.lineno).strip().startswith("(caught,) =")) == (
        __file__,
        True,
    )


def test_every_kernel_says_so_for_itself() -> None:
    for _ in range(2):
        made = kernel.autotune(space={"BM": [4, 8]})(double.function)
        assert len(warnings_of(lambda made=made: [made(ts.ones((5, 3))) for _ in range(2)])) == 1


def test_a_verified_kernel_says_so_too() -> None:
    made = verify.numerics(kernel.autotune(space={"BM": [4, 8]})(double.function))
    assert "not tuned: first of 2 valid schedules, verified" in repr(made)
    assert len(warnings_of(lambda: [made(ts.ones((5, 3))) for _ in range(2)])) == 1


@pytest.mark.parametrize(
    "made",
    [
        double,
        kernel.auto(double.function),
        kernel.schedule(BASE)(double.function),
        kernel.autotune(space={"BM": [4]})(double.function),
        kernel.autotune(space={"BM": [4, 8]})(double.function).with_schedule(Schedule(block=(2,))),
    ],
    ids=["bare", "auto", "scheduled", "one point", "by hand"],
)
def test_where_nothing_is_left_to_tune_nothing_is_said(made: Any) -> None:
    assert "tuned" not in repr(made)
    assert warnings_of(lambda: made(ts.ones((5, 3)))) == []


def test_the_warning_can_be_an_error_and_silenced() -> None:
    made = kernel.autotune(space={"BM": [4, 8]})(double.function)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TesseraWarning)
        with pytest.raises(TesseraWarning, match="not tuned"):
            made(ts.ones((5, 3)))
        made(ts.ones((5, 3)))
    other = kernel.autotune(space={"BM": [4, 8]})(double.function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", TesseraWarning)
        other(ts.ones((5, 3)))
    assert caught == []


@pytest.mark.parametrize(
    ("name", "value"), [("warps", 8), ("stages", 3), ("vector", 4), ("swizzle", "xor"), ("d", 128)]
)
def test_choices_are_changed_by_position_and_by_name(name: str, value: Any) -> None:
    change = getattr(Schedule(block=(64, 64)), f"with_{name}")
    assert change(value) == change(**{name: value}) == Schedule(block=(64, 64), **{name: value})
