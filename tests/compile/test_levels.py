"""Tests `tessera.compile`: kernels and jitted functions through the levels for every target, run where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_checks import check_clean, count
from python_target import PythonTarget, lines_of

import tessera as ts
from tessera import Tensor, bf16, f32, jit, kernel, tile
from tessera.bench.cuda.kernel_texts import text_for
from tessera.compile import (
    CompiledKernel,
    TargetIR,
    to_executable,
    to_graph_ir,
    to_schedule_ir,
    to_target_ir,
    to_tile_ir,
)
from tessera.compile.sources import load
from tessera.compiler.target import register, target_named
from tessera.errors import CompileError, DeviceError
from tessera.targets.cpu import features

CPU_LEVELS = features.up_to(features.host_level())
GPU_LEVELS = ("sm_80", "sm_90a")
X, Y = (ts.randn((96, 64), seed=seed) for seed in (1, 2))
A, B = (ts.randn((256, 256), bf16, seed=seed) for seed in (3, 4))


@kernel
def softmax(x: Any) -> Any:
    rows = tile.load(x).to(f32)
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return weights / tile.sum(weights, keepdims=True)


gemm: Any = load(
    """
@kernel.schedule(ts.Schedule(block=(64, 64, 32)))
def gemm(a: ts.KTile["M", "K"], b: ts.KTile["K", "N"], c: ts.Out[ts.KTile["M", "N"]]):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), ts.f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))
"""
)


@jit
def layers(x: Any, w: Any) -> Any:
    hidden = ts.relu(x @ w)
    return {"hidden": hidden, "shares": hidden / ts.sum(hidden, axis=1, keepdims=True), "rows": x.shape[0]}


def target(source: Any, *args: Any, **options: Any) -> TargetIR:
    return to_target_ir(to_tile_ir(to_schedule_ir(to_graph_ir(source, args, options=options))))


def compiled(source: Any, *args: Any, **options: Any) -> CompiledKernel:
    return to_executable(target(source, *args, **options))


@pytest.fixture(name="python")
def _python() -> None:
    register(PythonTarget())


# Kernels


@pytest.mark.parametrize("level", CPU_LEVELS)
def test_a_kernel_for_each_level_of_this_processor(level: str) -> None:
    made = target(softmax, X, level=level)
    assert (made.chosen.target, made.chosen.level) == ("cpu", level)
    assert "define" in made.text
    assert "softmax" in made.assembly
    assert made.report["softmax"].way == f"for {level}"
    assert {"trace", "tile-to-cpu", "emit"} <= made.stages_ms.keys()
    run = to_executable(made)
    assert {"llvm", "image", "load"} <= run.stages_ms.keys() - made.stages_ms.keys()
    np.testing.assert_allclose(run(X).numpy(), softmax(X).numpy(), rtol=1e-5, atol=1e-7)
    # Any number of rows is served.
    np.testing.assert_allclose(run(X[:7]).numpy().sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("level", GPU_LEVELS)
def test_a_kernel_for_a_gpu_that_need_not_be_there(level: str) -> None:
    made = target(softmax, X, level=level)
    assert (made.chosen.target, made.chosen.level) == ("cuda", level)
    assert "define" in made.text
    assert f".target {level}" in made.assembly
    check_clean(made.assembly, level)
    assert {"tile-to-nv", "emit", "llvm"} <= made.stages_ms.keys()
    assert made.report["softmax"].way.startswith("portable")


@pytest.mark.parametrize("level", GPU_LEVELS)
def test_its_ptx_is_what_calls_run(level: str) -> None:
    assert target(softmax, X, level=level).assembly == text_for(softmax, X, arch=level)


def test_what_was_refused_is_in_the_report() -> None:
    c = ts.zeros((256, 256), bf16)
    fast = target(gemm[4, 4], A, B, c, level="sm_90a")
    assert fast.report["gemm"].way.startswith("warp-specialized")
    assert count(fast.assembly, "wgmma.mma_async") > 0
    wide = [Tensor.to(one, f32) for one in (A, B, c)]
    slow = target(gemm[4, 4], *wide, level="sm_90a")
    assert slow.report["gemm"].way.startswith("portable")
    (refusal,) = slow.report["gemm"].fallbacks
    assert refusal.way == "warp-specialized"
    assert "wgmma has no dot of f32" in refusal.reason


def test_without_arguments_they_are_made_of_annotations() -> None:
    ir = to_graph_ir(gemm[2, 1], sizes={"M": 128, "K": 32})
    assert {name: ir.subject.sizes[name] for name in "MKN"} == {"M": 128, "K": 32, "N": 64}
    with pytest.raises(CompileError, match="argument x of softmax has no annotation to make an array from"):
        to_graph_ir(softmax)


def test_a_target_by_name_is_taken_with_its_default_level() -> None:
    assert target(softmax, X, target="cuda").chosen.level == target_named("cuda").default_level()
    assert target(softmax, X, target="cpu").chosen.level == features.level()
    assert target(softmax, X).chosen.level == features.level()


def test_tiles_can_go_on_to_another_target() -> None:
    tiles = to_tile_ir(to_schedule_ir(to_graph_ir(softmax, (X,))))
    texts = [to_target_ir(tiles, {"level": level}).assembly for level in (features.level(), *GPU_LEVELS)]
    assert len(set(texts)) == 3
    assert [".target sm_" in one for one in texts] == [False, True, True]


@pytest.mark.usefixtures("python")
def test_a_target_of_ones_own_goes_through_the_same_levels() -> None:
    made = target(softmax, X, target="python")
    assert made.chosen.level == "numpy"
    assert made.text == made.assembly
    assert "def program(ids" in made.text
    assert {"trace", "graph-to-schedule", "canonicalize", "clip-ranges"} <= made.stages_ms.keys()
    run = to_executable(made)
    assert any("np.exp" in line for line in lines_of(run.artifacts[0]))
    np.testing.assert_allclose(run(X).numpy(), softmax(X).numpy(), rtol=1e-5)
    counts = made.chosen.compiler.counts(made.parts[0].part.source, made.parts[0].made, made.chosen.options())
    assert counts.instruction_count is None
    assert counts.unavailable["instruction_count"] == "the target python does not count what its code has"


def test_the_functions_have_the_names_of_the_documents() -> None:
    graph_ir = ts.compile.to_graph_ir(softmax, (X,))
    tile_ir = ts.compile.to_tile_ir(ts.compile.to_schedule_ir(graph_ir))
    run = ts.compile.to_executable(ts.compile.to_target_ir(tile_ir))
    np.testing.assert_array_equal(run(X).numpy(), softmax(X).numpy())


# Jitted functions


def check_layers(run: Any, x: Any, w: Any) -> None:
    found, expected = run(x, w), layers(x, w)
    assert found.keys() == expected.keys()
    assert found["rows"] == x.shape[0]
    for name in ("hidden", "shares"):
        np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.quick(1)
@pytest.mark.parametrize("level", CPU_LEVELS)
def test_a_function_of_two_kernels_for_each_level_of_this_processor(level: str) -> None:
    w = ts.randn((64, 64), seed=5)
    made = target(layers, X, w, level=level)
    assert [one.launches for one in made.parts] == [1, 1]
    assert set(made.report) == {one.name for one in made.parts}
    check_layers(to_executable(made), X, w)


def test_fusions_that_a_function_refuses_are_told_at_each_level_and_by_its_program() -> None:
    @ts.jit
    def mixed(x: Any, w: Any) -> Any:
        return ts.softmax(x @ w, axis=-1)

    given = [ts.randn((8, 16), seed=1), ts.randn((16, 24), seed=2)]
    schedule_ir = to_schedule_ir(to_graph_ir(mixed, given, options={"target": "cpu"}))
    reasons = [refusal.reason for refusal in schedule_ir.refusals]
    assert any("a reduction needs elements of the result" in reason for reason in reasons)
    target_ir = to_target_ir(to_tile_ir(schedule_ir))
    assert [refusal.reason for refusal in target_ir.refusals] == reasons
    made = to_executable(target_ir)
    assert made.program is not None
    assert made.program.report.refusals == list(target_ir.refusals)
    np.testing.assert_allclose(made(*given).numpy(), mixed(*given).numpy(), rtol=1e-5)


def test_times_of_a_function_are_summed_by_stage() -> None:
    made = target(layers, A, B, level="sm_90a")
    parts = [one.made.seconds for one in made.parts]
    assert len(parts) == 2
    for stage in ("tile-to-nv", "emit", "llvm"):
        spent = [1e3 * one[stage] for one in parts if stage in one]
        assert made.stages_ms[stage] == pytest.approx(sum(spent))


@pytest.mark.parametrize("level", GPU_LEVELS)
def test_a_function_for_a_gpu_that_need_not_be_there(level: str) -> None:
    made = target(layers, A, B, level=level)
    assert made.assembly.count(f".target {level}") == 2
    for one in made.parts:
        check_clean(one.made.assembly(), level)
    assert count(made.assembly, "mma.sync" if level == "sm_80" else "wgmma.mma_async") > 0
    assert set(made.texts) == {"graph", "schedule", "tile"}
    assert "graph.matmul" in made.texts["graph"]
    assert "schedule.region" in made.texts["schedule"]


@pytest.mark.usefixtures("python")
def test_a_function_for_a_target_of_ones_own() -> None:
    w = ts.randn((64, 64), seed=5)
    made = target(layers, X, w, target="python")
    assert made.text.count("def program(ids") == 2


def test_a_function_that_calls_a_kernel() -> None:
    @jit
    def twice(x: Any) -> Any:
        return softmax(softmax(x) * 2.0)

    made = target(twice, X)
    assert sum(one.launches for one in made.parts if "softmax" in one.name) == 2
    np.testing.assert_allclose(to_executable(made)(X).numpy(), twice(X).numpy(), rtol=1e-5, atol=1e-7)


def test_a_kernel_for_rows_that_lie_otherwise_is_another_part_on_a_gpu() -> None:
    @jit
    def both(x: Any, y: Any) -> Any:
        return softmax(x) + softmax(y)

    y = ts.randn((96, 128), seed=7)[:, 1:65]
    parts = [one for one in target(both, X, y, level="sm_80").parts if "softmax" in one.name]
    assert [one.part.lines for one in parts] == [{0: True, 1: True}, {0: False, 1: True}]
    assert len({one.made.assembly() for one in parts}) == 2
    (whole,) = [one for one in target(both, X, y).parts if "softmax" in one.name]
    assert whole.launches == 2


def test_a_function_without_kernels_has_no_code() -> None:
    @jit
    def same(x: Any) -> Any:
        return x

    made = target(same, X)
    assert made.parts == ()
    np.testing.assert_array_equal(to_executable(made)(X).numpy(), X.numpy())


def test_arrays_that_a_function_captures_are_taken_along() -> None:
    shift = ts.randn((64,), seed=6)

    @jit
    def shifted(x: Any, by: float) -> Any:
        return x + shift * by

    run = compiled(shifted, X, 2.0)
    np.testing.assert_allclose(run(X, 3.0).numpy(), X.numpy() + 3 * shift.numpy(), rtol=1e-5, atol=1e-6)


def test_other_arguments_than_those_it_was_compiled_for_are_refused() -> None:
    w = ts.randn((64, 64), seed=5)
    run = compiled(layers, X, w)
    for others in ((ts.zeros((32, 64)), w), (X.to(bf16), w)):
        with pytest.raises(DeviceError, match="layers was compiled for arguments of other kinds or sizes"):
            run(*others)


def test_a_function_has_no_schedule_to_give() -> None:
    graph_ir = to_graph_ir(layers, (X, ts.zeros((64, 64))))
    with pytest.raises(CompileError, match="a schedule is of one kernel, and layers becomes several: got block"):
        to_schedule_ir(graph_ir, {"block": (32, 32)})


def test_results_may_be_rounded_otherwise_where_the_function_says_so() -> None:
    def shares(x: Any) -> Any:
        return ts.exp(x) / ts.sum(ts.exp(x), axis=1, keepdims=True)

    exact, fast = (target(jit(shares, fast_math=fast), X) for fast in (False, True))
    assert exact.texts["graph"] != fast.texts["graph"]


# Machines


def test_an_instruction_set_that_no_target_has_is_refused() -> None:
    with pytest.raises(DeviceError, match="no target has the instruction set 'sm_70'") as caught:
        to_graph_ir(softmax, (X,), options={"level": "sm_70"})
    assert "sm_80, sm_89, sm_90, sm_90a of cuda" in (caught.value.hint or "")


@pytest.mark.gpu
@pytest.mark.parametrize("level", GPU_LEVELS)
def test_kernels_and_functions_run_on_a_gpu(level: str) -> None:
    c = ts.zeros((256, 256), bf16)
    run = compiled(gemm[4, 4], A, B, c, level=level)
    on_gpu = [one.cuda() for one in (A, B, c)]
    assert run(*on_gpu) is None
    expected = A.to(f32).numpy() @ B.to(f32).numpy()
    np.testing.assert_allclose(on_gpu[2].cpu().to(f32).numpy(), expected, rtol=2e-2, atol=0.5)
    assert "load" in run.stages_ms
    function = compiled(layers, *on_gpu[:2], level=level)
    assert function.target_ir.chosen.level == level
    found = function(*on_gpu[:2])["hidden"]
    np.testing.assert_allclose(found.cpu().to(f32).numpy(), np.maximum(expected, 0), rtol=2e-2, atol=0.5)


@pytest.mark.gpu
def test_the_occupancy_is_that_of_the_driver() -> None:
    from tessera.bench.compiler.inspector import IRInspector
    from tessera.bench.cuda.occupancy import occupancy

    c = ts.zeros((256, 256), bf16)
    for source, args in ((softmax, (X,)), (gemm[4, 4], (A, B, c))):
        run = compiled(source, *args, level="sm_90a")
        found = IRInspector().inspect_target_ir(run.target_ir)
        driver = occupancy(run.program.executable)
        assert found["registers"]["per_thread"] == driver["registers_per_thread"]
        assert found["occupancy_estimate"]["blocks_per_multiprocessor"] == driver["blocks_per_multiprocessor"]
        assert found["occupancy_estimate"]["occupancy_percent"] == pytest.approx(driver["occupancy_percent"])


def test_code_for_another_machine_is_an_error_that_says_what_can_be_done() -> None:
    class Elsewhere(PythonTarget):
        """A target whose machine is never this one."""

        name = "elsewhere"
        levels = ("far",)

        def default_level(self) -> str:
            return "far"

        def why_not_here(self, level: str) -> str | None:
            return "it is far away"

    register(Elsewhere())
    made = target(softmax, X, level="far")
    assert "def program" in made.text
    with pytest.raises(DeviceError) as caught:
        to_executable(made)
    assert caught.value.message == "softmax is compiled for far of elsewhere, and cannot run here: it is far away"
    assert caught.value.hint is not None
    assert "read it as text, assembly and report" in caught.value.hint
    unloaded = to_executable(made, must_run=False)
    assert unloaded.code.startswith(b"import numpy")
    with pytest.raises(DeviceError, match="cannot run here: it is far away"):
        unloaded(X)
