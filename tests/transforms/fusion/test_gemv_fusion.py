"""Matmuls of one row are fused with the ops that compute the row, and give the same; so do their kernels for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu_options import gpu
from graph_programs import BOUNDS, Array, Builder, Value, build, check, error, normal, softmax
from xdsl.dialects.builtin import ModuleOp

from tessera import Tensor, bf16, f16, f32, f64, i64
from tessera.dtypes.types import DType
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir import text
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import view_type
from tessera.programs import compile_graph
from tessera.runtime.device.memory import aligned
from tessera.targets.choose_blocks import stages_for
from tessera.targets.cuda.compile import compile_lowered, lower_kernel
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ir import dialect as nv
from tessera.transforms.facts.mark_readonly import readonly_arguments
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.pipeline import Compiled, Stage, compile_module

Types = Sequence[tuple[Sequence[Any], DType]]
GPU = "cuda", "sm_90a"


def rms(x: Value) -> Value:
    wide = x.cast(f32)
    return (wide * ((wide * wide).reduce("sum") / float(x.shape[-1]) + 1e-6).ew("rsqrt")).cast(x.dtype)


def normed(g: Builder, x: Value, w: Value, gain: Value) -> Value:
    return (rms(x) * gain) @ w


def deep(g: Builder, x: Value, w: Value, gain: Value) -> Value:
    """Rows of one array with three axes."""
    return (softmax(x.reshape(1, 1, x.shape[-1]) * gain) @ w).reshape(1, w.shape[-1])


def transposed(g: Builder, x: Value, w: Value, gain: Value) -> Value:
    return (x - x.reduce("max") + gain) @ w.T


def layer(g: Builder, x: Value, w: Value, gain: Value) -> Value:
    hidden = rms(x) @ w
    return x + (hidden * hidden.ew("sigmoid")) @ w.T + gain


def cached(g: Builder, x: Value, place: Value, keys: Value, values: Value) -> tuple[Value, Value, Value]:
    """A new row is put into keys and values at a place, and attends to all rows up to it."""
    heads, length, width = keys.shape
    parts = x.reshape(2, heads, 1, width)
    rows = g.iota(0, (length,)).cast(i64)
    here = rows.ew("eq", place.broadcast((length,))).reshape(1, length, 1)
    new, query = (parts.slice(0, number, number + 1).reshape(heads, 1, width) for number in range(2))
    keys, values = g.where(here, new, keys), g.where(here, new, values)
    scores = query @ keys.T
    seen = rows.ew("le", place.broadcast((length,)))
    return softmax(g.where(seen, scores.cast(f32), -np.inf)).cast(x.dtype) @ values, keys, values


Case = tuple[Callable[..., Any], Types, int]
"""What is computed of which arrays, and how many kernels it is."""


def rows(make: Callable[..., Any], dtype: DType, depth: int, columns: int, count: int = 1) -> Case:
    weights = (columns, depth) if make is transposed else (depth, columns)
    return make, [((1, depth), dtype), (weights, dtype), ((depth,), dtype)], count


def cache(dtype: DType, heads: int, length: int, width: int) -> Case:
    held = (heads, length, width)
    return cached, [((1, 2 * heads * width), dtype), ((), i64), (held, dtype), (held, dtype)], 1


CASES: dict[str, Case] = {
    "a norm": rows(normed, bf16, 64, 48),
    "a norm of an odd length": rows(normed, f32, 70, 33),
    "a softmax with three axes": rows(deep, f32, 96, 40),
    "transposed weights": rows(transposed, f16, 128, 24),
    "two products": rows(layer, bf16, 128, 256, 2),
    "a cache": cache(bf16, 4, 64, 32),
    "a long cache": cache(f32, 2, 600, 16),
    "a cache of an odd length": cache(f32, 3, 37, 8),
}


def drawn(types: Types) -> list[Array]:
    found = [normal(shape, dtype, seed) for seed, (shape, dtype) in enumerate(types) if dtype is not i64]
    indices = [index for index, (_, dtype) in enumerate(types) if dtype is i64]
    for index in indices:
        found.insert(index, np.array(5, np.int64))
    return found


def joined(make: Callable[..., Any], types: Types) -> Compiled:
    return compile_module(build(make, *types), stages=stages_for(*GPU))


def kernels(made: Compiled) -> list[tile.FuncOp]:
    return [op for op in made.module.body.block.ops if isinstance(op, tile.FuncOp)]


@pytest.mark.parametrize("name", CASES)
def test_they_are_few_kernels_and_compute_the_same(name: str) -> None:
    make, types, count = CASES[name]
    made = check(build(make, *types), drawn(types), joined(make, types))
    assert len([op for op in made.module.walk() if isinstance(op, schedule.LaunchOp)]) == count


@pytest.mark.parametrize(
    "name", ["a norm", "a norm of an odd length", "transposed weights", "a cache", "a cache of an odd length"]
)
def test_their_kernels_on_a_gpu(name: str) -> None:
    make, types, _ = CASES[name]
    (kernel,) = kernels(joined(make, types))
    alone = ModuleOp([kernel.clone()])
    row_aligned = range(len(kernel.arguments)) if "odd" not in name else ()
    lowered, *_ = lower_kernel(alone, kernel.sym_name.data, gpu(warps=4, row_aligned=row_aligned, follows=True))
    function = symbol_in(lowered, kernel.sym_name.data, nv.FuncOp)
    given = drawn([(tuple(shape.data), dtype_of(kernel, index)) for index, shape in enumerate(kernel.shapes)])
    arrays, results = given[: kernel.input_count], given[kernel.input_count :]
    others = [array.copy() for array in results]
    run_kernel(alone, kernel.sym_name.data, [*arrays, *results])
    for seed in (None, 1):
        run_nv_kernel(lowered, kernel.sym_name.data, [*arrays, *others], seed=seed)
        for one, other in zip(results, others, strict=True):
            a, b = one.astype(np.float64), other.astype(np.float64)
            assert np.linalg.norm(a - b) <= 2e-3 * np.linalg.norm(a)
    assert len([op for op in function.body.block.ops if isinstance(op, nv.GriddepcontrolWaitOp)]) == 1
    ptx = compile_lowered(lowered, kernel.sym_name.data).ptx
    assert "mma" not in ptx
    before, _, behind = ptx.partition("griddepcontrol.wait")
    assert ("ld.global.v" in before or "ld.global.b" in before) == bool(readonly_arguments(kernel))
    assert "ld.global.b" in behind or "ld.global.v" in behind
    assert "ld.global.nc" not in ptx


def dtype_of(kernel: tile.FuncOp, index: int) -> DType:
    return view_type(kernel.arguments[index]).dtype


@pytest.mark.parametrize("name", ["a norm", "a long cache", "a cache of an odd length"])
def test_in_loops_over_blocks(name: str) -> None:
    """On other targets blocks are smaller, and keys are stored block by block."""
    make, types, _ = CASES[name]
    stages = stages_for("cpu", "avx2")
    stages[GraphToSchedule.name] = Stage(GraphToSchedule(1), "schedule")
    made = check(build(make, *types), drawn(types), compile_module(build(make, *types), stages=stages))
    (kernel,) = kernels(made)
    assert ("scf.for" in text.write(kernel)) == (name == "a long cache")


@pytest.mark.parametrize("way", ["a part", "repeated", "a part, repeated"])
def test_keys_of_which_each_is_not_read_once_are_made_apart(way: str) -> None:
    """There are as many as are read in "a part, repeated": half of them by two program instances each."""

    def made_keys(g: Builder, q: Value, k: Value, v: Value) -> tuple[Value, Value]:
        keys = k.ew("exp")
        used = keys.slice(0, 0, 32) if "part" in way else keys
        return softmax(q @ used.T) @ v, keys

    many = 32 if way == "repeated" else 64
    batch = 1 if way == "a part" else 2
    types: Types = [((batch, 1, 64), f32), ((many, 64), f32), ((32, 64), f32)]
    check(build(made_keys, *types), drawn(types), joined(made_keys, types))


def test_too_much_to_hold_stays_apart() -> None:
    make, types, _ = cache(bf16, 2, 2048, 64)
    assert len(kernels(joined(make, types))) > 1
    make, types, _ = rows(normed, bf16, 4096, 2048)
    assert len(kernels(joined(make, types))) == 2


def test_without_being_told_they_stay_apart() -> None:
    make, types, _ = CASES["a norm"]
    made = compile_module(build(make, *types), stages=stages_for(*GPU, joined=False))
    assert len(kernels(made)) == 2
    assert "graph.reduce" not in text.write(made.module)


def test_rows_that_are_too_long_stay_apart() -> None:
    make, types, _ = rows(normed, bf16, 8192, 16)
    norm, *product = kernels(joined(make, types))
    assert not any(isinstance(op, tile.DotOp) for op in norm.walk())
    # Of so few columns the product is done in parts of its depth, which a kernel behind adds up.
    assert [any(isinstance(op, tile.DotOp) for op in one.walk()) for one in product] == [True, False]


LARGER: dict[str, Case] = {
    **CASES,
    "wide": rows(normed, bf16, 512, 1536),
    "tall": rows(layer, bf16, 512, 2048, 2),
    "transposed and tall": rows(transposed, bf16, 2048, 512),
    "more than is held": rows(layer, f32, 256, 8192, 2),
    "a cache of heads": cache(bf16, 8, 128, 64),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", LARGER)
def test_on_a_gpu(name: str) -> None:
    make, types, _ = LARGER[name]
    module, arrays = build(make, *types), drawn(types)
    tensors = [Tensor.wrap(aligned(array), dtype).to("cuda") for array, (_, dtype) in zip(arrays, types, strict=True)]
    program = compile_graph(module, "cuda")
    expected = run_function(module, "main", arrays)
    for graph in (False, True):
        bound = program.bind(tensors, graph=graph)
        for _ in range(3):
            for one, other in zip(bound(*tensors), expected, strict=True):
                found = one.cpu().values()
                assert error(found.astype(np.float64), f64, other.astype(np.float64)) <= 2 * BOUNDS[one.dtype.name]
