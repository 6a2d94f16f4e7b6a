"""Products of few rows on warp groups: copies bring the rows that are there, and what lies in others harms nothing."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_options import gpu
from ptx_checks import check_clean

from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.targets.choose_blocks import ChooseBlocks, stages_for
from tessera.targets.cuda.compile import CompiledPtx, compile_lowered, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir.hopper_copies import TensorMapOp
from tessera.targets.cuda.ir.hopper_types import map_type
from tessera.transforms.facts.limit_sizes import LimitSizes
from tessera.transforms.pipeline import Stage, compile_module

Array = np.ndarray[Any, np.dtype[Any]]
bfloat16 = np.dtype(ml_dtypes.bfloat16)
LAYER = """
graph.func @layer(%x: X, %w: W) -> (Y) {
  %p = graph.matmul %x, %w : X, W -> Y
  %q = graph.ew<tanh> %p : Y -> Y
  graph.return %q : Y
}
"""


def layer(rows: int | str) -> str:
    found, shapes = LAYER, {"X": (rows, 160), "W": (160, 96), "Y": (rows, 96)}
    for name, shape in shapes.items():
        found = re.sub(rf"\b{name}\b", f"!graph.tensor<[{', '.join(map(str, shape))}], bf16>", found)
    return found


def lowered(rows: int | str, block: tuple[int, int, int], most: tuple[str, ...] = ()) -> tuple[Any, str]:
    stages = stages_for("cuda", "sm_90a")
    names = list(stages)
    before = {name: stages[name] for name in names[: names.index(ChooseBlocks.name)]}
    made = compile_module(text.read(layer(rows)), stages=before).module
    for region in made.walk():
        if isinstance(region, schedule.RegionOp):
            region.properties["config"] = ConfigAttr(Config(block=block))
    after = {name: stages[name] for name in names[names.index(ChooseBlocks.name) + 1 :]}
    after[LimitSizes.name] = Stage(LimitSizes(most), "tile")
    module = compile_module(made, stages=after).module
    (name,) = (op.sym_name.data for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    count = len(symbol_in(module, name, tile.FuncOp).arguments)
    return lower_kernel(module, name, gpu(row_aligned=range(count))).module, name


@pytest.mark.parametrize(("rows", "copied"), [(1, 8), (5, 8), (9, 16), (17, 32), (33, 64), (64, 64), (70, 64)])
@pytest.mark.parametrize("block", [(64, 32, 64), (64, 96, 128)])
def test_rows_that_are_there_are_copied(rows: int, copied: int, block: tuple[int, int, int]) -> None:
    module, name = lowered(rows, block)
    first = next(op for op in module.walk() if isinstance(op, TensorMapOp))
    assert map_type(first.result).box[1] == copied
    chance = np.random.default_rng(rows)
    x, w = (chance.standard_normal(shape).astype(bfloat16) for shape in ((rows, 160), (160, 96)))
    expected = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
    for seed in (0, 1):
        found = np.full((rows, 96), np.nan, bfloat16)
        run_warpgroups(module, name, [x, w, found], blocks=2, seed=seed)
        assert np.allclose(found.astype(np.float64), expected, atol=2e-2)


@pytest.mark.parametrize(("most", "copied"), [((), 64), (("M=8",), 8), (("M=32", "K=4"), 32), (("N=8",), 64)])
def test_limits_of_symbols_are_known(most: tuple[str, ...], copied: int) -> None:
    module, name = lowered("M", (64, 96, 64), most)
    first = next(op for op in module.walk() if isinstance(op, TensorMapOp))
    assert map_type(first.result).box[1] == copied
    chance = np.random.default_rng(5)
    x, w = (chance.standard_normal(shape).astype(bfloat16) for shape in ((5, 160), (160, 96)))
    found = np.full((5, 96), np.nan, bfloat16)
    run_warpgroups(module, name, [x, w, found], blocks=2, seed=0)
    assert np.allclose(found.astype(np.float64), np.tanh(x.astype(np.float64) @ w.astype(np.float64)), atol=2e-2)


def test_fewer_rows_assemble_clean() -> None:
    module, name = lowered(5, (64, 96, 64))
    program: CompiledPtx = compile_lowered(module, name)
    check_clean(program.ptx, "sm_90a")


def test_two_consumers_copy_all_rows() -> None:
    module, _ = lowered(70, (128, 96, 64))
    first = next(op for op in module.walk() if isinstance(op, TensorMapOp))
    assert map_type(first.result).box[1] == 128
