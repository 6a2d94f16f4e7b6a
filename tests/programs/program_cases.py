"""Graph programs as text, arrays for them, and what the reference interpreter makes of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tessera as ts
from tessera import DType, Tensor, f32
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.programs import Program, compile_graph
from tessera.tile.calls.settings import Settings

BOUNDS = {"f64": 1e-13, "f32": 2e-6, "f16": 5e-4, "bf16": 4e-3}

KERNELS = """
tile.func @halve(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>)
    outputs 1 shapes [[M, N], [M, N]] grid ["(M + 15)//16", "(N + 63)//64"] {
  %row = tile.program_id 0
  %height = arith.constant 16 : index
  %top = arith.muli %row, %height : index
  %column = tile.program_id 1
  %width = arith.constant 64 : index
  %left = arith.muli %column, %width : index
  %loaded = tile.load %x[%top, %left] : !tile.view<2, f32, global> -> tensor<16x64xf32>
  %half = arith.constant 5.000000e-01 : f32
  %halves = tile.full %half : tensor<16x64xf32>
  %made = tile.ew<mul> %loaded, %halves : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
  tile.store %made, %y[%top, %left] : tensor<16x64xf32>, !tile.view<2, f32, global>
  tile.return
}
tile.func @shift(%x: !tile.view<1, f32, global>, %by: f32, %y: !tile.view<1, f32, global>)
    outputs 1 shapes [[N], [], [N]] grid ["(N + 63)//64"] {
  %column = tile.program_id 0
  %width = arith.constant 64 : index
  %left = arith.muli %column, %width : index
  %loaded = tile.load %x[%left] : !tile.view<1, f32, global> -> tensor<64xf32>
  %shifts = tile.full %by : tensor<64xf32>
  %made = tile.ew<add> %loaded, %shifts : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  tile.store %made, %y[%left] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}
"""
"""Kernels that programs call: what stands on either side of a call stays there, however well the rest is fused."""

CHAIN = (
    KERNELS
    + """
graph.func @main(%a: !graph.tensor<[B, S], f32>, %b: !graph.tensor<[B, S], f32>, %c: !graph.tensor<[S], f32>)
    -> (!graph.tensor<[B, S], f32>, !graph.tensor<[S], f32>) {
  %w = graph.broadcast %c : !graph.tensor<[S], f32> -> !graph.tensor<[B, S], f32>
  %s = graph.ew<add> %a, %b : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %h = graph.call_kernel @halve(%s) : (!graph.tensor<[B, S], f32>) -> !graph.tensor<[B, S], f32>
  %t = graph.ew<mul> %h, %w : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %q = graph.call_kernel @halve(%t) : (!graph.tensor<[B, S], f32>) -> !graph.tensor<[B, S], f32>
  %z = graph.ew<sub> %q, %a : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %n = arith.constant 2.500000e-01 : f32
  %d = graph.call_kernel @shift(%c, %n) : (!graph.tensor<[S], f32>, f32) -> !graph.tensor<[S], f32>
  graph.return %z, %d : !graph.tensor<[B, S], f32>, !graph.tensor<[S], f32>
}
"""
)
"""Several kernels, with arrays between them; one kernel is launched twice, one takes a number."""


def tensor(shape: Sequence[int] | str, dtype: str = "f32") -> str:
    """The text of a type."""
    sizes = shape if isinstance(shape, str) else ", ".join(map(str, shape))
    return f"!graph.tensor<[{sizes}], {dtype}>"


def program_of(source: str, device: str | Settings = "cpu", **more: Any) -> Program:
    return compile_graph(text.read(source), device, **more)


def drawn(shape: tuple[int, ...], dtype: DType = f32, *, seed: int = 0) -> Tensor:
    """Numbers of about 1, or small whole ones."""
    if dtype.is_float:
        return ts.randn(shape, dtype, seed=seed)
    if dtype.is_integer:
        low = 0 if dtype.name.startswith("u") else -4
        return ts.randint(low, 5, shape, dtype, seed=seed)
    return ts.asarray(ts.randint(0, 2, shape, ts.u8, seed=seed).numpy().astype(bool))


def expected(source: str, values: Sequence[Any], machine: Machine | None = None) -> tuple[Any, ...]:
    """What the interpreter gives."""
    given = [value.cpu().numpy() if isinstance(value, Tensor) else value for value in values]
    return run_function(text.read(source), "main", given, machine=machine)


def check_close(found: Sequence[Tensor], wanted: Sequence[Any]) -> None:
    assert len(found) == len(wanted)
    for tensor_, array in zip(found, wanted, strict=True):
        assert tensor_.shape == array.shape
        assert tensor_.dtype.storage == array.dtype
        values = tensor_.cpu()
        assert values.meta.is_contiguous
        if not tensor_.dtype.is_float:
            assert np.array_equal(values.numpy(), array)
            continue
        exact = array.astype(np.float64)
        error = values.numpy().astype(np.float64) - exact
        finite = np.isfinite(exact)
        assert np.array_equal(np.isfinite(values.numpy().astype(np.float64)), finite)
        bound = BOUNDS[tensor_.dtype.name] * max(float(np.linalg.norm(exact[finite])), 1e-30)
        assert float(np.linalg.norm(error[finite])) <= bound


def check(source: str, values: Sequence[Any], device: str = "cpu") -> Program:
    """Compiles, binds, runs twice, and compares."""
    program = program_of(source, device)
    given = [value.to(device) if isinstance(value, Tensor) else value for value in values]
    bound = program.bind(given)
    wanted = expected(source, values)
    for _ in range(2):
        check_close(bound(*given), wanted)
    return program
