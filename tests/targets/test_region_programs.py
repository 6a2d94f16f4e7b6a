"""Regions around products below the tile level: what targets make of them, beside kernels written by hand."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from cpu_runs import at_cpu_level, lowered
from gpu_options import gpu
from ptx_checks import check_clean, count
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import Schedule, bf16, f32, stdlib
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f64
from tessera.interpreters.levels.graph import run_function
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import dim
from tessera.targets import text
from tessera.targets.choose_blocks import candidates, stages_for
from tessera.targets.cuda.compile import compile_kernel
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.pipeline import Compiled, compile_module

programs: Any = import_module("graph_programs")
build, error, normal = programs.build, programs.error, programs.normal
attended, block, block_types, multiplied = programs.attended, programs.block, programs.block_types, programs.multiplied


def functions(made: Compiled) -> list[ModuleOp]:
    """Each tile function of a module, alone."""
    return [ModuleOp([op.clone()]) for op in made.module.body.block.ops if isinstance(op, tile.FuncOp)]


def function_of(module: ModuleOp) -> tile.FuncOp:
    (op,) = module.body.block.ops
    assert isinstance(op, tile.FuncOp)
    return op


# GPUs.


def _check_ptx(heads: int, width: int) -> None:
    made = compile_module(
        build(block(heads, width), *block_types(heads, width, bf16)), stages=stages_for("cuda", "sm_90a")
    )
    alone = functions(made)
    assert len(alone) == 5
    for module in alone:
        function = function_of(module)
        name = function.sym_name.data
        program = compile_kernel(module, name, gpu(row_aligned=range(len(function.arguments))))
        assert count(program.ptx, "wgmma.mma_async") > 0, f"{name} is not warp-specialized"
        assert "cp.async.bulk.tensor" in program.ptx
        check_clean(program.ptx, "sm_90a")


def test_products_of_a_block_are_given_to_agents() -> None:
    """Warpgroups multiply, boxes are copied, and nothing spills; the number of rows is not known."""
    _check_ptx(16, 64)


@pytest.mark.acceptance
def test_products_of_a_large_block_are_given_to_agents() -> None:
    _check_ptx(32, 128)


@pytest.mark.acceptance
@pytest.mark.parametrize(("dtype", "arch"), [(f32, "sm_90a"), (bf16, "sm_80")])
def test_other_types_and_architectures_assemble(dtype: DType, arch: str) -> None:
    made = compile_module(build(block(2, 32), *block_types(2, 32, dtype)), stages=stages_for("cuda", arch))
    for module in functions(made):
        function = function_of(module)
        program = compile_kernel(module, function.sym_name.data, gpu(arch, row_aligned=range(len(function.arguments))))
        assert count(program.ptx, "mma.sync") > 0
        check_clean(program.ptx, arch, stack=program.local)


@pytest.mark.parametrize(("heads", "rows", "keys"), [(32, 1, "T"), (32, 4, 8192)])
def test_parts_of_few_queries_are_given_to_warp_groups(heads: int, rows: int, keys: Any) -> None:
    """Heads that share keys are rows of a tile, and what combines parts reads nothing else."""

    def decoded(g: Any, q: Any, k: Any, v: Any) -> Any:
        batch, groups, length, width = k.shape
        wide = (batch, groups, heads // groups, length, width)
        laid = [x.reshape(batch, groups, 1, length, width).broadcast(wide) for x in (k, v)]
        k, v = (x.reshape(batch, heads, length, width) for x in laid)
        return attended(g, q, k, v, causal=rows > 1)

    types = [((2, heads, rows, 128), bf16), *[((2, 8, keys, 128), bf16)] * 2]
    made = compile_module(build(decoded, *types), stages=stages_for("cuda", "sm_90a"))
    parts, combine = functions(made)
    assert function_of(combine).input_count == 3 + (keys == "T")
    for module, is_parts in ((parts, True), (combine, False)):
        function = function_of(module)
        name, aligned = function.sym_name.data, range(len(function.arguments))
        program = compile_kernel(module, name, gpu(row_aligned=aligned))
        assert (count(program.ptx, "wgmma.mma_async") > 0) is is_parts
        check_clean(program.ptx, "sm_90a")


def test_candidates_begin_with_what_is_chosen() -> None:
    made = compile_module(build(block(16, 64), *block_types(16, 64, bf16)), stages=stages_for("cuda", "sm_90a"))
    chosen = re.findall(r"schedule\.region<(\w+)> <block = \[([\d, ]+)\]>", made.levels["schedule"])
    assert [kind for kind, _ in chosen] == ["matmul", "online", "matmul", "matmul", "matmul"]
    regions = text.read(made.levels["schedule"])
    for region in regions.walk():
        if isinstance(region, schedule.RegionOp):
            found = candidates(region, "cuda", "sm_90a")
            assert found[0] == region.config.data
            assert len(found) > 1


@pytest.mark.parametrize(("target", "level"), [("cpu", "avx512"), ("cuda", "sm_90a"), ("cuda", "sm_80")])
def test_hints_choose_blocks_and_leave_sizes_open(target: str, level: str) -> None:
    module = build(multiplied, ([dim("M"), 512], bf16), ([512, dim("N")], bf16))

    def blocks(*hints: str, rank: int = 0) -> tuple[int, ...]:
        made = compile_module(module, stages=stages_for(target, level, hints, rank))
        (found,) = re.findall(r"schedule\.region<matmul> <block = \[([\d, ]+)\][^>]*>", made.levels["schedule"])
        assert "!graph.tensor<[M, 512]" in made.levels["schedule"]
        return tuple(map(int, found.split(", ")))

    usual = blocks()
    few = blocks("M=8", "N=64")
    assert few[0] * few[1] < usual[0] * usual[1]
    assert blocks("M=8192", "N=8192", rank=99) != few
    if level != "sm_80":  # there is one block for all there
        assert blocks("M=4096", "N=4096", rank=1) != blocks("M=4096", "N=4096")


# CPUs.


def _counts(module: ModuleOp, level: str) -> Counter[str]:
    return Counter(op.name for op in lowered(module, level).walk())


def _by_hand(kernel: Any, sizes: dict[str, int], *arrays: Any, **static: Any) -> ModuleOp:
    """A kernel of the tile language with sizes put in."""
    written = text.write(kernel.lower(*arrays, **static).module)
    for name, size in sizes.items():
        written = re.sub(rf"\b{name}\b", str(size), written)
    module = text.read(written)
    for run in (Canonicalize(), CommonSubexpressions()):
        run.apply(text.new_context(), module)
    return module


@pytest.mark.parametrize(
    ("dtype", "level", "block"), [(f32, "avx512", (256, 256, 1024)), (bf16, "amx", (32, 512, 1024))]
)
def test_a_product_is_what_one_writes_by_hand(dtype: DType, level: str, block: tuple[int, int, int]) -> None:
    size = 1024
    module = build(multiplied, ([size, size], dtype), ([size, size], dtype))
    (ours,) = functions(compile_module(module, stages=stages_for("cpu", level)))
    array = ts.empty((size, size), dtype)
    kernel = stdlib.gemm.with_schedule(Schedule(block=block))[size // block[0], size // block[1]]
    names = {f"{name}_{axis}": size for name in "abc" for axis in (0, 1)}
    assert _counts(ours, level) == _counts(_by_hand(kernel, names, array, array, array), level)


@pytest.mark.parametrize(("dtype", "level", "block"), [(f32, "avx512", (24, 256)), (bf16, "amx", (64, 512))])
def test_a_loop_over_keys_takes_no_more_than_one_written_by_hand(
    dtype: DType, level: str, block: tuple[int, int]
) -> None:
    shape = (8, 1024, 64)
    module = build(attended, *[(shape, dtype)] * 3)
    (ours,) = functions(compile_module(module, stages=stages_for("cpu", level)))
    array = ts.empty(shape, dtype)
    kernel = stdlib.attention.with_schedule(Schedule(block=block))
    names = {f"{name}_{axis}": shape[axis] for name in "qkv" for axis in (0, 1)}
    hand = _counts(_by_hand(kernel, names, array, array, array, mask=stdlib.causal), level)
    found = _counts(ours, level)
    for name in ("cpu.matmul", "cpu.dot", "cpu.pack", "cpu.buffer", "cpu.parallel", "cpu.load", "cpu.store"):
        assert found[name] == hand[name]
    for name in ("tile.ew", "scf.for", "scf.if", "cpu.partial"):
        assert found[name] <= hand[name]


@pytest.mark.parametrize(("dtype", "level"), [(f32, "avx2"), (f32, "avx512"), (bf16, "amx")])
def test_cpu_programs_compute_the_same(dtype: DType, level: str) -> None:
    """Every kernel of a block, lowered, in the cpu interpreter, on odd sizes."""
    heads, width, batch, length = 2, 8, 2, 19
    module = build(block(heads, width), *block_types(heads, width, dtype))
    made = compile_module(module, stages=stages_for("cpu", level))
    numbers = {"B": batch, "S": length}
    types = block_types(heads, width, dtype)
    shapes = [programs.sized_by(numbers, shape) for shape, _ in types]
    values: dict[Any, Any] = {}
    main = next(op for op in made.module.body.block.ops if isinstance(op, graph.FuncOp))
    arrays = [normal(shape, dtype, seed, 0.5 if seed else 1.0) for seed, shape in enumerate(shapes)]
    values |= zip(main.arguments, arrays, strict=True)

    def sized(value: Any) -> tuple[int, ...]:
        return tuple(dim(size).evaluate(numbers) for size in value.type.shape)

    found: Any = None
    for op in main.body.block.ops:
        if isinstance(op, graph.ReshapeOp):
            values[op.result] = values[op.operand].reshape(sized(op.result))
        elif isinstance(op, schedule.LaunchOp):
            name = op.callee.string_value()
            alone = next(one for one in functions(made) if function_of(one).sym_name.data == name)
            given = [values[value] for value in op.arguments]
            results = [np.zeros(sized(value), dtype.storage) for value in op.results_]
            after = at_cpu_level(lowered(alone, level), name, [*given, *results], seed=1)
            values |= zip(op.results_, after[len(given) :], strict=True)
        elif isinstance(op, graph.ReturnOp):
            found = values[op.values[0]]
    exact = build(block(heads, width), *[(shape, f64) for shape, _ in types])
    (expected,) = run_function(exact, "main", [cast(x, dtype, f64) for x in arrays])
    assert error(found, dtype, expected) < (4e-6 if dtype is f32 else 8e-3)


# For real.


@pytest.mark.gpu
def test_a_block_on_a_gpu() -> None:
    from tessera.programs import compile_graph

    types = block_types(4, 64, bf16)
    module = build(block(4, 64), *types)
    shapes = [programs.sized_by({"B": 2, "S": 200}, shape) for shape, _ in types]
    arrays = [normal(shape, bf16, seed, shape[0] ** -0.5 if seed else 1.0) for seed, shape in enumerate(shapes)]
    tensors = [ts.asarray(x, dtype=bf16).cuda() for x in arrays]
    (found,) = compile_graph(module, "cuda").bind(tensors)(*tensors)
    exact = build(block(4, 64), *[(shape, f64) for shape, _ in types])
    (expected,) = run_function(exact, "main", [cast(x, bf16, f64) for x in arrays])
    assert error(found.cpu().numpy(), bf16, expected) < 8e-3
