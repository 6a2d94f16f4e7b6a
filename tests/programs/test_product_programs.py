"""Products and loops over keys as machine code: against exact numbers, for sizes that are not known when compiling."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import bf16, f32
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f64
from tessera.interpreters.levels.graph import run_function
from tessera.programs import compile_graph

programs: Any = import_module("graph_programs")
build, error, normal = programs.build, programs.error, programs.normal

BOUNDS = {f32: 4e-6, bf16: 8e-3}
LONG = pytest.mark.acceptance
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def layer(g: Any, x: Any, w: Any, bias: Any) -> Any:
    return (x @ w.T + bias).ew("tanh")


def scores(g: Any, q: Any, k: Any) -> Any:
    """Batches, an operand that is transposed, and a result that is stored with its axes changed."""
    return ((q @ k.T) * 0.5).transpose(1, 0, 2, 3)


CASES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "layer": (layer, [("B", "S", 40), (70, 40), (70,)]),
    "scores": (scores, [("B", 3, "S", 20), ("B", 3, "T", 20)]),
    "loop": (programs.attended, [("B", 3, "S", 16), ("B", 3, "T", 16), ("B", 3, "T", 24)]),
    "block": (programs.block(2, 16), [shape for shape, _ in programs.block_types(2, 16, f32)]),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
@pytest.mark.parametrize("name", [pytest.param(one, marks=LONG if one == "block" else ()) for one in CASES])
def test_programs_are_right_for_all_sizes(name: str, dtype: DType, device: str) -> None:
    make, types = CASES[name]
    program = compile_graph(build(make, *((shape, dtype) for shape in types)), device)
    exact = build(make, *((shape, f64) for shape in types))
    for numbers in ({"B": 2, "S": 37, "T": 70}, {"B": 1, "S": 1, "T": 300}, {"B": 3, "S": 130, "T": 5}):
        shapes = [programs.sized_by(numbers, shape) for shape in types]
        arrays = [normal(shape, dtype, seed, 0.4 if seed else 1.0) for seed, shape in enumerate(shapes)]
        tensors = [ts.asarray(x).to(device) for x in arrays]
        (found,) = program.bind(tensors)(*tensors)
        (expected,) = run_function(exact, "main", [cast(x, dtype, f64) for x in arrays])
        assert error(np.asarray(found.cpu().numpy()), dtype, expected) < BOUNDS[dtype]


def test_rows_of_other_strides() -> None:
    module = build(layer, (("B", "S", 40), f32), ((70, 40), f32), ((70,), f32))
    program = compile_graph(module, "cpu")
    arrays = [normal((2, 30, 80), f32, 0)[:, ::2, ::2], normal((40, 70), f32, 1).T, normal((140,), f32, 2)[::2]]
    tensors = [ts.asarray(x) for x in arrays]
    (found,) = program.bind(tensors)(*tensors)
    (expected,) = run_function(module, "main", arrays)
    assert error(found.numpy(), f32, expected) < BOUNDS[f32]


def by_rows(g: Any, x: Any) -> Any:
    return x.ew("tanh") @ x.ew("tanh").T


def by_columns(g: Any, x: Any) -> Any:
    return x.T @ x


def by_keys(g: Any, x: Any) -> Any:
    return programs.attended(g, x, x, x)


SELF: dict[str, Any] = {"rows": by_rows, "columns": by_columns, "loop": by_keys}


@pytest.mark.parametrize("name", SELF)
def test_axes_of_size_1_of_a_value_that_meets_itself(name: str) -> None:
    """Where it stands is spelled alike on both sides, and its tiles go along other axes."""
    for shape in ((2, 4, 1, 2), (1, 1, 3, 1)):
        module = build(SELF[name], (shape, f32))
        x = normal(shape, f32, 3)
        given = ts.asarray(x)
        (found,) = compile_graph(module, "cpu").bind([given])(given)
        (expected,) = run_function(module, "main", [x])
        assert error(found.numpy(), f32, expected) < BOUNDS[f32]
