"""The tile scheduler on sm_90a: the producer fetches the next program instance, consumers read it, and counters are
left at zero."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_checks import check_clean
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import tessera
from tessera import Schedule, stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import launch_of
from tessera.targets.cuda.hopper.choose_warp_groups import WarpGroupPlan
from tessera.targets.cuda.hopper.pipeline_state import share_pipeline_states
from tessera.targets.cuda.hopper.warp_specialized_chain import warp_specialized_stages
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper
from tessera.targets.cuda.levels import LEVELS
from tessera.targets.cuda.lower.legalize import legalize
from tessera.transforms.checks.host_checks import take_host_checks
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.stages import StageRunner
from tessera.transforms.loops.live_iterations import clip_ranges
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

Array = np.ndarray[Any, Any]
bf16 = np.dtype(ml_dtypes.bfloat16)
Sizes = tuple[int, int, int, int]
"""Heads, heads of keys, rows, and columns of a head."""


def attention(block: tuple[int, int], size: int) -> tuple[ModuleOp, tile.FuncOp]:
    """Causal attention, prepared for warp specialization."""
    given = [tessera.empty((1, 8, size), tessera.bf16) for _ in range(3)]
    kernel = stdlib.attention.with_schedule(Schedule(block=block))
    module = kernel.lower(*given, mask=stdlib.causal).module.clone()
    (function,) = (op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    take_host_checks(function)
    legalize(function, contract=True, arch="sm_90a")
    return module, function


def lowered(block: tuple[int, int], size: int, ahead: int = 2) -> tuple[ModuleOp, nv.FuncOp]:
    module, function = attention(block, size)
    name = function.sym_name.data
    plan = WarpGroupPlan(block[0] // 64, 2, ahead)
    runner = StageRunner(f"@{name}", CompileContext.with_facts(), levels=LEVELS)
    made = runner.run(module.clone(), warp_specialized_stages(function, plan, range(4), fixed=False))
    written = text.write(made)
    assert text.write(text.read(written)) == written
    return made, symbol_in(made, name, nv.FuncOp)


def attend(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    k, v = (np.repeat(array, len(q) // len(k), 0) for array in (k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[1:], np.bool_), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.quick(1, ahead=[1, 2], seed=[0, 2, 3])
@pytest.mark.parametrize(
    ("sizes", "blocks", "seed", "ahead"),
    [
        ((1, 1, 1, 64), 1, None, 2),
        ((2, 1, 200, 64), 1, 0, 2),
        ((3, 3, 300, 64), 2, 1, 2),
        ((2, 2, 389, 64), 4, 2, 1),
        ((1, 1, 70, 64), 3, 3, 2),
    ],
)
def test_causal_attention(sizes: Sizes, blocks: int, seed: int | None, ahead: int) -> None:
    """With one block and with several, also with more than there are programs."""
    heads, key_heads, rows, size = sizes
    chance = np.random.default_rng(rows)
    q = chance.standard_normal((heads, rows, size)).astype(bf16)
    k, v = (chance.standard_normal((key_heads, rows, size)).astype(bf16) for _ in range(2))
    out = np.full(q.shape, np.nan, bf16)
    module, function = lowered((128, 64), size, ahead)
    run_warpgroups(module, function.sym_name.data, [q, k, v, out], blocks=blocks, seed=seed)
    truth = attend(q, k, v)
    assert np.linalg.norm(out.astype(np.float64) - truth) < 8e-3 * np.linalg.norm(truth)


@pytest.mark.acceptance
@pytest.mark.quick(block=[(192, 80)])
@pytest.mark.parametrize(("block", "size"), [((256, 64), 64), ((192, 128), 64), ((192, 80), 128), ((128, 128), 128)])
def test_machine_code(block: tuple[int, int], size: int) -> None:
    """Nothing spills, products are left to run, and a launch brings counters."""
    module, function = lowered(block, size)
    made = compile_lowered(module, function.sym_name.data)
    assembly = check_clean(made.ptx, "sm_90a")
    assert not assembly.warnings
    assert made.ptx.count("atom.global") == 2
    # Numbers of programs are divided in 32 bits, all of them: the front has one division, once for a launch.
    assert len([line for line in made.ptx.splitlines() if ".s64" in line and line.split()[0][:3] in ("div", "rem")]) < 2
    launch = launch_of(function, made)
    assert launch.counters == 8
    assert launch.counters_word >= 0
    assert launch.persistent == 1


def test_counters_are_reset_once() -> None:
    _, function = lowered((128, 64), 64)
    counts = [op.counter.value.data for op in function.walk() if isinstance(op, hopper.CountOp)]
    resets = [op.counter.value.data for op in function.walk() if isinstance(op, hopper.ResetOp)]
    assert (counts, resets) == ([0, 1], [0, 1])
    (words,) = (op for op in function.walk() if isinstance(op, hopper.WordsOp))
    assert words.shared_bytes == 8


def test_the_work_queue_has_the_pipeline_state_of_the_queries() -> None:
    _, function = attention((128, 64), 64)
    clip_ranges(function)
    pipeline_dots(function)
    assert warp_specialize(function, consumers=2, depth=2)
    assert carried(function) == [4, 4]
    share_pipeline_states(function)
    function.verify()
    assert carried(function) == [2, 2]


def test_a_test_that_looks_at_pipeline_states_is_left_alone() -> None:
    _, function = attention((128, 64), 64)
    assert warp_specialize(function, consumers=2, depth=2)
    for loop in [op for op in function.walk() if isinstance(op, scf.WhileOp)]:
        end = loop.before_region.block.last_op
        assert end is not None
        further = warp_groups.AdvanceOp(loop.before_region.block.args[1])
        loop.before_region.block.insert_op_before(further, end)
        end.operands[2] = further.result
    function.verify()
    before = carried(function)
    share_pipeline_states(function)
    function.verify()
    assert carried(function) == before


def carried(function: tile.FuncOp) -> list[int]:
    """The number of pipeline states that each loop over program instances carries."""
    loops = [op for op in function.walk() if isinstance(op, scf.WhileOp)]
    return [sum(isinstance(value.type, warp_groups.PipelineStateType) for value in loop.arguments) for loop in loops]
