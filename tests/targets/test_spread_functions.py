"""Reciprocals by arithmetic: how exact they are, and in which loops half of them are computed so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_checks import check_clean

import tessera
from tessera.bench.operators import kernels
from tessera.dialects import tile
from tessera.kernels.schedule import Schedule
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.preparing import prepare
from tessera.targets.cuda.spread_functions import spread_functions
from tessera.targets.llvm.marks import SPREAD
from tessera.transforms.host_checks import take_host_checks


def reciprocal(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `functions.computed_reciprocal` computes; products and sums are rounded once, as there."""
    x = np.minimum(x, np.float32(2.0**125)).astype(np.float32)
    rough = (np.int64(0x7EF30000) - x.view(np.int32)).astype(np.int32).view(np.float32)
    wide = x.astype(np.float64), rough.astype(np.float64)
    error = (1.0 - wide[0] * wide[1]).astype(np.float32).astype(np.float64)
    once = (wide[1] * error + wide[1]).astype(np.float32).astype(np.float64)
    return (once * (error * error).astype(np.float32) + once).astype(np.float32)


def test_how_exact_it_is() -> None:
    fractions = np.arange(1 << 23, dtype=np.int64)
    for exponent in (127, 128, 150, 250):
        x = ((exponent << 23) + fractions).astype(np.int32).view(np.float32)
        assert np.abs(reciprocal(x).astype(np.float64) * x - 1).max() < 7e-6
    np.testing.assert_allclose(reciprocal(np.array([np.inf, 2.0**126], np.float32)), 2.0**-125, rtol=7e-6)
    assert np.isnan(reciprocal(np.array([np.nan], np.float32))).all()


def marked(kernel: Any, width: int, *others: Any, dtype: Any = tessera.bf16, **static: Any) -> list[bool]:
    """Which reciprocals of tiles are spread."""
    given = [tessera.empty((2, 256, width), dtype) for _ in range(3)]
    lowered = kernel.with_schedule(Schedule(block=(128, 64))).lower(*given, *others, **static)
    module = lowered.module.clone()
    function = next(op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    take_host_checks(function)
    prepare(function, contract=True)
    spread_functions(function)
    found = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "reciprocal"]
    return [SPREAD in op.attributes for op in found]


def test_loops_whose_functions_take_longer_than_products() -> None:
    assert marked(kernels.sigmoid_attention, 128, -3.0) == [True]
    assert marked(kernels.sigmoid_attention, 256, -3.0) == [False]
    assert marked(kernels.attention, 128, score=kernels.soft_cap) == [True]
    assert marked(kernels.attention, 256, score=kernels.soft_cap) == [False]
    # The digits of f16 take more: 30 times the error of tanh is in an exponent.
    assert marked(kernels.attention, 128, score=kernels.soft_cap, dtype=tessera.f16) == [False]


PROGRAM = """
#row = #nv.layout<[128:0*2], [2:0*1, 4:0*256]>
nv.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1
    shapes [[M], [M]] grid [1] threads 128 {
  %0 = arith.constant 0 : index
  %a = tile.load %x[%0] : !tile.view<1, f32, global> -> tensor<1024xf32, #row>
  %b = tile.ew<reciprocal> %a {brief, loose, spread} : tensor<1024xf32, #row> -> tensor<1024xf32, #row>
  tile.store %b, %y[%0] : tensor<1024xf32, #row>, !tile.view<1, f32, global>
  nv.return
}
"""


@pytest.mark.parametrize(("marks", "functions"), [("{brief, loose, spread}", 4), ("{brief, loose}", 8)])
def test_half_of_the_elements(marks: str, functions: int) -> None:
    module = text.read(PROGRAM.replace("{brief, loose, spread}", marks))
    ptx = compile_lowered(module, "f").ptx
    assert ptx.count("rcp.approx.ftz.f32") == functions
    check_clean(ptx, "sm_90a")
