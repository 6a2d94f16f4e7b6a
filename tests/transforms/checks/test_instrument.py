"""Safety checks written into programs: they catch what the interpreter's own checks catch, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tessera.errors import TesseraError
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir import text
from tessera.ir.tile import dialect as tile
from tessera.transforms.checks.instrument import Instrument

_PROGRAM = """
builtin.module {{
  tile.func @f(%x: !tile.view<2, f32, global>, %at: index, %y: !tile.view<2, f32, global>) outputs 1
      shapes [[N, 8], [], [N, 8]] grid [1] {{
    %0 = arith.constant 0 : index
    %1 = tile.load %x[%at, %0] : !tile.view<2, f32, global> -> tensor<4x8xf32>
{body}
    tile.store %2, %y[%0, %0] : tensor<4x8xf32>, !tile.view<2, f32, global>
    tile.return
  }}
}}
"""
_BODIES = {
    "sub": "    %2 = tile.ew<sub> %1, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>",
    "sqrt": "    %2 = tile.ew<sqrt> %1 : tensor<4x8xf32> -> tensor<4x8xf32>",
    "sum": """    %3 = tile.reduce<sum> %1, 1 : tensor<4x8xf32> -> tensor<4xf32>
    %4 = tile.expand %3, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %2 = tile.broadcast %4 : tensor<4x1xf32> -> tensor<4x8xf32>""",
    "dot": """    %3 = tile.load %x[%at, %0] : !tile.view<2, f32, global> -> tensor<8x8xf32>
    %2 = tile.dot %1, %3, %1 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>""",
}
_BAD = {"sub": np.inf, "sqrt": -1.0, "sum": np.inf, "dot": np.inf}


def instrumented(body: str, **options: bool) -> ModuleOp:
    module = text.read(_PROGRAM.format(body=_BODIES[body]))
    Instrument(**options).apply(text.new_context(), module)
    text.verify(module)
    return module


def run(module: ModuleOp, x: np.ndarray[Any, np.dtype[Any]], at: int = 0) -> None:
    run_kernel(module, "f", [x, at, np.zeros_like(x)])


@pytest.mark.parametrize("body", _BODIES)
def test_a_nan_made_of_numbers_is_named(body: str) -> None:
    x = np.ones((8, 8), np.float32)
    run(instrumented(body), x)
    x[1, 2], x[1, 3] = _BAD[body], -_BAD[body]
    if body == "dot":
        x[2, 0] = 0.0
    with pytest.raises(TesseraError, match=f"{body} made NaN"):
        run(instrumented(body), x)
    run(instrumented(body, nan=False), x)


@pytest.mark.parametrize("body", _BODIES)
def test_a_nan_that_came_in_is_not_reported(body: str) -> None:
    x = np.ones((8, 8), np.float32)
    x[1, 2] = np.nan
    run(instrumented(body), x)


@pytest.mark.parametrize(("at", "fine"), [(0, True), (7, True), (8, False), (-1, False)])
def test_an_access_starts_inside_its_view(at: int, fine: bool) -> None:
    x = np.ones((8, 8), np.float32)
    if fine:
        run(instrumented("sub"), x, at)
        return
    with pytest.raises(TesseraError, match="starts outside its view, along axis 0"):
        run(instrumented("sub"), x, at)


def test_nothing_is_outside_an_empty_view() -> None:
    run(instrumented("sub"), np.ones((0, 8), np.float32))


def test_programs_without_checks_stay_as_they_are() -> None:
    module = text.read(_PROGRAM.format(body=_BODIES["sub"]))
    before = text.write(module)
    Instrument(bounds=False, nan=False).apply(text.new_context(), module)
    assert text.write(module) == before
    assert not any(isinstance(op, tile.AssertOp) for op in module.walk())
