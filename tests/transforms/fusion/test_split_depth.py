"""Products in parts of their depth mean what they mean as a whole, at every level, whatever sizes and parts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_options import gpu
from graph_programs import Builder, Value, build
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tessera import bf16, f32
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import dim
from tessera.targets.choose_blocks import ChooseBlocks, stages_for
from tessera.targets.cuda.compile import compile_kernel
from tessera.transforms.pipeline import Compiled, compile_module


def plain(g: Builder, x: Value, w: Value, b: Value) -> Value:
    return x @ w


def turned(g: Builder, x: Value, w: Value, b: Value) -> Value:
    """The weight lies along the depth, and so does what is computed of the product."""
    return ((x @ w.T) + b).ew("tanh")


def gated(g: Builder, x: Value, w: Value, b: Value) -> tuple[Value, Value]:
    """Two results, one of which is read from the product twice."""
    made = x @ w
    return made * made.ew("sigmoid"), made + b


def split(module: ModuleOp, config: Config) -> Compiled:
    """A module compiled with this config for its matmuls."""
    stages = stages_for("cuda", "sm_90a")
    names = list(stages)
    before = {name: stages[name] for name in names[: names.index(ChooseBlocks.name)]}
    made = compile_module(module, stages=before).module
    for region in made.walk():
        if isinstance(region, schedule.RegionOp) and region.kind.data == "matmul":
            region.properties["config"] = ConfigAttr(config)
    return compile_module(made, stages={name: stages[name] for name in names[names.index(ChooseBlocks.name) + 1 :]})


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_parts_mean_the_same(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from([plain, turned, gated]))
    rows, depth, columns = (data.draw(st.integers(1, most)) for most in (20, 150, 24))
    sizes: list[Any] = [rows, depth, columns]
    if data.draw(st.booleans()):
        sizes = [dim("M"), dim("K"), dim("N")]
    weight = [sizes[2], sizes[1]] if made is turned else [sizes[1], sizes[2]]
    module = build(made, (sizes[:2], f32), (weight, f32), ([sizes[2]], f32))
    parts = data.draw(st.integers(2, 7))
    compiled = split(module, Config(block=(16, 16, data.draw(st.sampled_from([16, 32]))), split=parts))
    chance = np.random.default_rng(rows)
    given_ = [
        chance.standard_normal(shape).astype(np.float32)
        for shape in ((rows, depth), (columns, depth) if made is turned else (depth, columns), (columns,))
    ]
    expected = run_function(module, "main", given_)
    assert compiled.levels["schedule"].count("schedule.region<") == 2
    for level in (text.read(compiled.levels["schedule"]), compiled.module):
        for found, wanted in zip(run_function(level, "main", given_), expected, strict=True):
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_empty_parts_are_zeros() -> None:
    module = build(plain, ([3, 40], f32), ([40, 8], f32), ([8], f32))
    compiled = split(module, Config(block=(16, 16, 32), split=6))
    x, w = np.ones((3, 40), np.float32), np.ones((40, 8), np.float32)
    (found,) = run_function(compiled.module, "main", [x, w, np.zeros(8, np.float32)])
    assert np.array_equal(found, x @ w)


def test_no_depth_is_no_sum() -> None:
    module = build(plain, ([3, dim("K")], f32), ([dim("K"), 8], f32), ([8], f32))
    compiled = split(module, Config(block=(16, 16, 32), split=2))
    (found,) = run_function(
        compiled.module, "main", [np.ones((3, 0), np.float32), np.ones((0, 8), np.float32), np.zeros(8, np.float32)]
    )
    assert np.array_equal(found, np.zeros((3, 8)))


@pytest.mark.parametrize("depth", [0, 1, 40])
@pytest.mark.parametrize("target", [("cuda", "sm_90a"), ("cpu", "avx2")])
def test_graphs_may_ask_for_parts(depth: int, target: tuple[str, str]) -> None:
    def parts(g: Builder, x: Value, w: Value) -> Value:
        return g.add(graph.MatmulOp(x.ssa, w.ssa, parts=2, step=16))

    module = build(parts, ([3, depth], f32), ([depth, 4], f32))
    arrays = [np.ones((3, depth), np.float32), np.ones((depth, 4), np.float32)]
    made = compile_module(module, stages=stages_for(*target)).module
    (found,), (expected,) = run_function(made, "main", arrays), run_function(module, "main", arrays)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("depth", [4096, 4104, dim("K")], ids=str)
def test_parts_are_multiplied_by_warp_groups(depth: Any) -> None:
    module = build(plain, ([64, depth], bf16), ([depth, 1024], bf16), ([1024], bf16))
    compiled = split(module, Config(block=(64, 128, 64), split=4))
    (first, second) = (op.sym_name.data for op in compiled.module.body.block.ops if isinstance(op, tile.FuncOp))
    function = symbol_in(compiled.module, first, tile.FuncOp)
    made = compile_kernel(compiled.module, first, gpu(row_aligned=range(len(function.arguments)), follows=True))
    assert made.report.way.startswith("warp-specialized")
    assert made.grid == (1, 8, 4)
    assert "wgmma" not in compile_kernel(compiled.module, second, gpu(row_aligned=range(2), follows=True)).ptx


def test_several_matrices_stay_whole() -> None:
    module = build(plain, ([2, 64, 96], f32), ([2, 96, 32], f32), ([32], f32))
    compiled = split(module, Config(block=(16, 16, 32), split=4))
    assert compiled.levels["schedule"].count("schedule.region<") == 1
    (refused,) = (one for one in compiled.report.refusals if one.way == "parts of the depth")
    assert "several matrices" in refused.reason
