"""Operands whose last axis is not the contiguous one come through tensor maps, as those that are do."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_checks import check_clean, count

import tessera as ts
from tessera import Schedule, bf16, f8e4m3
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.tile.calls.arguments import aligned_axis, row_axis
from tessera.transforms.pipelining.exchange_axes import exchanged_axes

kernels: Any = import_module("exchanged_kernels")
Array = np.ndarray[Any, np.dtype[Any]]
bfloat16 = np.dtype(ml_dtypes.bfloat16)
BLOCKS = [(64, 64, 64), (128, 128, 32), (128, 64, 64), (192, 80, 32), (256, 32, 64)]


def options(made: Any, *arguments: ts.Tensor) -> Any:
    """Those that a call with these arguments has."""
    lines = {index: row_axis(one) for index, one in enumerate(arguments)}
    assert all(lines.values())
    exchanged = exchanged_axes(symbol_in(made.module, made.name, tile.FuncOp), lines)
    return gpu(row_aligned=[index for index, axis in lines.items() if axis == 1], exchanged=exchanged)


def given_arrays(rows: int, depth: int, columns: int, *, left: bool, right: bool) -> tuple[ts.Tensor, ts.Tensor]:
    a = ts.empty((depth, rows), bf16).T if left else ts.empty((rows, depth), bf16)
    b = ts.empty((columns, depth), bf16).T if right else ts.empty((depth, columns), bf16)
    return a, b


@pytest.mark.quick(3)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize(("left", "right"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", ["product", "linear", "gradient"])
def test_either_order_is_multiplied_by_warp_groups(
    name: str, left: bool, right: bool, block: tuple[int, int, int]
) -> None:
    a, b = given_arrays(512, 256, 480, left=left, right=right)
    if name == "linear":
        b = b.T
    if name == "gradient":
        a = a.T
    c = ts.empty((512, 480), bf16)
    call = getattr(kernels, name).with_schedule(Schedule(block=block))[-(-512 // block[0]), -(-480 // block[1])]
    made = call.lower(a, b, c)
    program = compile_kernel(made.module, made.name, options(made, a, b, c))
    assert count(program.ptx, "wgmma.mma_async") > 0, program.report.lines()
    check_clean(program.ptx, "sm_90a")
    dots = [line.rstrip(" ;}").split(", ") for line in program.ptx.splitlines() if "wgmma.mma_async" in line]
    # What lies across the depth is marked as such, the left operand and the right one.
    assert {tuple(dot[-2:]) for dot in dots} == {(str(int(left)), str(int(not right)))}


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_they_mean_the_same(data: st.DataObject) -> None:
    block = data.draw(st.sampled_from(BLOCKS))
    rows, depth, columns = (8 * data.draw(st.integers(1, most)) for most in (30, 24, 20))
    left, right = data.draw(st.sampled_from([(False, True), (True, False), (True, True)]))
    a, b = given_arrays(rows, depth, columns, left=left, right=right)
    c = ts.empty((rows, columns), bf16)
    made = kernels.product.with_schedule(Schedule(block=block))[-(-rows // block[0]), -(-columns // block[1])].lower(
        a, b, c
    )
    module = lower_kernel(made.module, made.name, options(made, a, b, c))[0]
    chance = np.random.default_rng(rows + depth)
    x, y = (
        chance.standard_normal(shape[::-1] if turned else shape).astype(bfloat16)
        for shape, turned in (((rows, depth), left), ((depth, columns), right))
    )
    x, y = x.T if left else x, y.T if right else y
    found = np.full((rows, columns), np.nan, bfloat16)
    run_warpgroups(module, made.name, [x, y, found], blocks=2, seed=rows)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    assert np.allclose(found.astype(np.float64), expected, rtol=1e-2, atol=1e-2 * np.sqrt(depth))


def test_matrices_of_a_stack_lie_either_way_too() -> None:
    a, b = ts.empty((3, 128, 64), bf16), ts.empty((3, 96, 64), bf16).mT
    c = ts.empty((3, 128, 96), bf16)
    made = kernels.products.with_schedule(Schedule(block=(64, 96, 32)))[2, 1, 3].lower(a, b, c)
    module = lower_kernel(made.module, made.name, options(made, a, b, c))[0]
    chance = np.random.default_rng(0)
    x, y = (chance.standard_normal(shape).astype(bfloat16) for shape in ((3, 128, 64), (3, 96, 64)))
    found = np.full((3, 128, 96), np.nan, bfloat16)
    run_warpgroups(module, made.name, [x, y.swapaxes(1, 2), found], blocks=4, seed=1)
    expected = x.astype(np.float64) @ y.astype(np.float64).swapaxes(1, 2)
    assert np.allclose(found.astype(np.float64), expected, rtol=1e-2, atol=0.1)


def test_narrow_left_operands_lie_along_the_depth() -> None:
    a, b = ts.empty((128, 64), f8e4m3).T, ts.empty((128, 128), f8e4m3).T
    made = kernels.product.with_schedule(Schedule(block=(64, 64, 64)))[1, 2].lower(a, b, ts.empty((64, 128), bf16))
    program = compile_kernel(made.module, made.name, options(made, a, b, ts.empty((64, 128), bf16)))
    assert count(program.ptx, "wgmma.mma_async") == 0
    assert any("lies across the depth" in line for line in program.report.lines())


@pytest.mark.parametrize(
    ("made", "axis"),
    [
        (lambda: ts.empty((16, 64), bf16), 1),
        (lambda: ts.empty((16, 64), bf16).T, 2),
        (lambda: ts.empty((4, 16, 64), bf16).mT, 2),
        (lambda: ts.empty((16, 60), bf16).T, 0),
        (lambda: ts.empty((16, 60), bf16), 0),
        (lambda: ts.empty((16, 64), bf16)[:, 1:], 0),
        (lambda: ts.empty((16, 64), bf16)[:, ::2].T, 0),
        (lambda: ts.empty((), bf16), 0),
    ],
)
def test_the_axis_of_rows(made: Any, axis: int) -> None:
    assert row_axis(made()) == axis


def test_rows_may_lie_along_the_first_axis() -> None:
    assert aligned_axis((8, 64, 16), (1, 128, 8), 2) == 3
    assert aligned_axis((8, 64, 16), (1, 128, 6), 2) == 0


def test_programs_serve_one_order() -> None:
    settings_ = import_module("tessera.tile.calls.settings").Settings("cuda", "sm_90a", 3, frozenset(), False, True)
    a, c = ts.empty((128, 128), bf16), ts.empty((128, 128), bf16)
    call = kernels.product.with_schedule(Schedule(block=(64, 64, 64)))[2, 2]
    programs = [call.program_for((a, b, c), {}, settings_)[0] for b in (a, a.T, a[:, :100])]
    assert len({id(program) for program in programs}) == 3
    guards: list[Mapping[str, None]] = [dict.fromkeys(map(str, program.guards)) for program in programs]
    assert "arg1 row_aligned = true" in guards[0]
    assert "arg1 row_aligned along axis -2 = true" in guards[1]
    assert "arg1 row_aligned = false" in guards[2]
    assert call.program_for((a, a.T, c), {}, settings_)[0] is programs[1]
