"""Graph programs as text, arrays for them, and what the reference interpreter makes of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tessera as ts
from tessera import DType, Tensor, f32
from tessera.dialects import text
from tessera.interpreters.graph import run_function
from tessera.interpreters.machine import Machine
from tessera.lang.programs import Program, compile_graph

BOUNDS = {"f64": 1e-13, "f32": 2e-6, "f16": 5e-4, "bf16": 4e-3}

CHAIN = """
graph.func @main(%a: !graph.tensor<[B, S], f32>, %b: !graph.tensor<[B, S], f32>, %c: !graph.tensor<[S], f32>)
    -> (!graph.tensor<[B, S], f32>, !graph.tensor<[S], f32>) {
  %w = graph.broadcast %c : !graph.tensor<[S], f32> -> !graph.tensor<[B, S], f32>
  %s = graph.ew<add> %a, %b : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %m = graph.reduce<sum> %s, [0] : !graph.tensor<[B, S], f32> -> !graph.tensor<[S], f32>
  %e = graph.ew<tanh> %m : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %x = graph.broadcast %e : !graph.tensor<[S], f32> -> !graph.tensor<[B, S], f32>
  %t = graph.ew<mul> %x, %w : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %u = graph.ew<sub> %t, %s : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  %d = graph.reduce<max> %u, [0] : !graph.tensor<[B, S], f32> -> !graph.tensor<[S], f32>
  %y = graph.broadcast %d : !graph.tensor<[S], f32> -> !graph.tensor<[B, S], f32>
  %z = graph.ew<add> %y, %u : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, S], f32>
  graph.return %z, %e : !graph.tensor<[B, S], f32>, !graph.tensor<[S], f32>
}
"""
"""Sums along rows that others need, so that there are several kernels, with arrays between them."""


def tensor(shape: Sequence[int] | str, dtype: str = "f32") -> str:
    """The text of a type."""
    sizes = shape if isinstance(shape, str) else ", ".join(map(str, shape))
    return f"!graph.tensor<[{sizes}], {dtype}>"


def program_of(source: str, device: str = "cpu", **more: Any) -> Program:
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
