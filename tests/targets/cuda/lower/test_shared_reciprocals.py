"""Reciprocals that are computed together: what they give, and in which loops they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_checks import check_clean

import tessera
from tessera import stdlib
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.lower.legalize import legalize
from tessera.targets.cuda.math.functions import inverses
from tessera.targets.llvm.emitter_attributes import TOGETHER
from tessera.tile.language.schedule import Schedule
from tessera.transforms.checks.host_checks import take_host_checks


class Numbers:
    """What recipes ask for, on numbers of f32."""

    def __init__(self) -> None:
        self.functions = 0

    def mul(self, a: Any, b: Any) -> Any:
        return np.float32(a * b)

    open_mul = mul

    def instruction(self, name: str, value: Any) -> Any:
        assert name == "rcp.approx.ftz.f32"
        self.functions += 1
        return np.float32(1) / value


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_one_reciprocal_for_several(count: int) -> None:
    chance = np.random.default_rng(count)
    for _ in range(100):
        values = np.exp2(chance.uniform(0, 31, count)).astype(np.float32)
        machine: Any = Numbers()
        given: Any = list(values)
        found: Any = inverses(machine, given)
        assert machine.functions == 1
        np.testing.assert_allclose(found, 1 / values.astype(np.float64), rtol=4e-7)


def test_the_largest_of_them() -> None:
    machine: Any = Numbers()
    most: Any = [np.float32(2.0**30 + 1)] * 4
    found: Any = inverses(machine, most)
    np.testing.assert_allclose(found, 2.0**-30, rtol=1e-6)


def marked(kernel: Any, width: int, *others: Any, arch: str = "sm_90a", **static: Any) -> list[bool]:
    """Which reciprocals of tiles are computed together."""
    given = [tessera.empty((2, 256, width), tessera.bf16) for _ in range(3)]
    lowered = kernel.with_schedule(Schedule(block=(128, 64))).lower(*given, *others, **static)
    module = lowered.module.clone()
    function = next(op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    take_host_checks(function)
    legalize(function, contract=True, arch=arch)
    found = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "reciprocal"]
    return [TOGETHER in op.attributes for op in found]


def test_loops_whose_functions_take_longer_than_products() -> None:
    assert marked(stdlib.attention, 128, score=stdlib.soft_cap) == [True]
    assert marked(stdlib.attention, 256, score=stdlib.soft_cap) == [False]
    # Two functions take as long as two products that are 128 deep.
    assert marked(stdlib.sigmoid_attention, 128, -3.0) == [False]
    assert marked(stdlib.sigmoid_attention, 64, -3.0) == [True]
    # Other GPUs have other proportions.
    assert marked(stdlib.attention, 128, arch="sm_80", score=stdlib.soft_cap) == [False]


PROGRAM = """
#row = #nv.layout<[128:0*2], [2:0*1, 5:0*256]>
nv.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1
    shapes [[M], [M]] grid [1] threads 128 {
  %0 = arith.constant 0 : index
  %a = tile.load %x[%0] : !tile.view<1, f32, global> -> tensor<1280xf32, #row>
  %b = tile.ew<reciprocal> %a {approximate, together} : tensor<1280xf32, #row> -> tensor<1280xf32, #row>
  tile.store %b, %y[%0] : tensor<1280xf32, #row>, !tile.view<1, f32, global>
  nv.return
}
"""


@pytest.mark.parametrize(("marks", "functions"), [("{approximate, together}", 3), ("{approximate}", 10)])
def test_four_elements_share_one(marks: str, functions: int) -> None:
    ptx = compile_lowered(text.read(PROGRAM.replace("{approximate, together}", marks)), "f").ptx
    assert ptx.count("rcp.approx.ftz.f32") == functions
    check_clean(ptx, "sm_90a")


def test_what_is_added_is_a_part_of_the_last_multiplication() -> None:
    added = """%half = arith.constant -0.5 : f32
  %less = tile.full %half : tensor<1280xf32, #row>
  %c = tile.ew<add> %b, %less : tensor<1280xf32, #row>, tensor<1280xf32, #row> -> tensor<1280xf32, #row>
  tile.store %c"""
    ptx = compile_lowered(text.read(PROGRAM.replace("tile.store %b", added)), "f").ptx
    fused = [line for line in ptx.splitlines() if "fma.rn.f32" in line and "0fBF000000" in line]
    # Ten elements, in groups of four, four and two.
    assert len(fused) == 10
    assert "add.f32" not in ptx
    assert "add.rn.f32" not in ptx
