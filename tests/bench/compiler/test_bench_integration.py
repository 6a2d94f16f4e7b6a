"""Tests compiling with timing and launching with a profile: real stages, right results, the same code as a call's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import f32, kernel, knobs, tile
from tessera.bench.compiler import integration
from tessera.bench.compiler.integration import TesseraIntegration, host_overhead, stages
from tessera.bench.instruments.hardware import detect
from tessera.bench.results.definitions import BenchError
from tessera.compile import TargetIR, to_executable, to_graph_ir, to_schedule_ir, to_target_ir, to_tile_ir
from tessera.compile.sources import load, name_of
from tessera.compiler.target import target_named
from tessera.errors import CompileError, DeviceError, DtypeError, ShapeError
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import compile_kernel
from tessera.targets.cpu.lower.legalize import legalize_stages

A, B = (np.random.default_rng(seed).standard_normal((96, 96), np.float32) for seed in (0, 1))
LEVELS = ("graph_ir_ms", "schedule_ir_ms", "tile_ir_ms", "target_ir_ms", "autotuning_ms", "final_compilation_ms")
TEXT = '''
@tessera.kernel
def scaled(x, factor: float):
    """A kernel of a text."""
    return tile.load(x) * factor
'''


@kernel
def shifted(x: Any, by: float):
    return tile.exp(tile.load(x) - by)


@kernel
def row_max(x: Any):
    return tile.max(tile.load(x), axis=1)


# The array that is filled stands between the others.
product: Any = load(
    """
@kernel.schedule(ts.Schedule(block=(32, 32, 16)))
def product(a: ts.KTile["M", "K", ts.f32], c: ts.Out[ts.KTile["M", "N", ts.f32]], b: ts.KTile["K", "N", ts.f32]):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), ts.f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, acc, at=(row, col))
"""
)


def test_stages_of_a_call_are_those_that_a_call_has() -> None:
    found = stages(shifted, (A, 0.5))
    assert list(found) == [
        "trace",
        *legalize_stages("avx2"),
        "tile-to-cpu",
        "verify",
        "emit",
        "llvm",
        "image",
        "load",
        "bind",
    ]
    assert all(value > 0 for value in found.values())
    assert "apply-facts" in stages(shifted.assume(), (A, 0.5))


def test_stages_are_timed_again_though_the_kernel_has_run() -> None:
    shifted(A, 0.5)
    first, second = stages(shifted, (A, 0.5)), stages(shifted, (A, 0.5))
    assert second["llvm"] > 0.1 * first["llvm"]
    assert second["trace"] > 0.1 * first["trace"]


def test_stages_by_the_interpreter_are_only_a_trace() -> None:
    with knobs.interpret.using(True):
        assert list(stages(shifted, (A, 0.5))) == ["trace"]


def test_stages_with_keyword_arguments() -> None:
    @kernel
    def chosen(x: Any, *, twice: bool):
        loaded = tile.load(x)
        return loaded * 2 if twice else loaded

    assert "llvm" in stages(chosen, (A,), {"twice": True})


def test_a_kernel_is_compiled_level_by_level() -> None:
    compiled, timing = TesseraIntegration().compile_with_timing(shifted, {}, (A, 0.5))
    assert all(timing[name] > 0 for name in LEVELS if name != "autotuning_ms")
    assert timing["autotuning_ms"] is None
    assert timing["total_ms"] == pytest.approx(sum(timing[name] for name in LEVELS if name != "autotuning_ms"))
    named = timing["stages"]
    assert {"trace", "graph-to-schedule", "schedule-to-tile", "tile-to-cpu", "emit", "llvm", "load"} <= named.keys()
    assert sum(named.values()) <= timing["total_ms"]
    assert timing["unavailable"] == {"autotuning_ms": "autotuning was not asked for"}
    np.testing.assert_allclose(compiled(A, 0.5).numpy(), np.exp(A - np.float32(0.5)), rtol=1e-5)
    larger = np.ones((200, 96), np.float32)
    np.testing.assert_allclose(compiled(larger, 1.0).numpy(), larger, rtol=1e-6)


def test_a_tuner_that_is_asked_for_is_said_to_be_missing() -> None:
    _, timing = TesseraIntegration().compile_with_timing(row_max, {"autotuning_enabled": True}, (A,))
    assert timing["autotuning_ms"] is None
    assert "no tuner" in timing["unavailable"]["autotuning_ms"]


@pytest.mark.parametrize(("made", "args"), [(shifted, (A, 0.5)), (row_max, (A,)), (shifted.assume("values"), (A, 0.5))])
def test_the_code_is_what_compile_kernel_makes(made: Any, args: tuple[Any, ...]) -> None:
    """Between levels nothing is lost: no byte may differ."""
    target = _target(made, *args)
    found = to_executable(target)
    (one,) = target.parts
    direct = compile_kernel(one.part.source.module, one.name, facts=one.part.facts)
    assert direct.image == found.code
    assert direct.guards == one.made.guards


def _target(made: Any, *args: Any, **options: Any) -> TargetIR:
    return to_target_ir(to_tile_ir(to_schedule_ir(to_graph_ir(made, args))), options)


def test_arrays_that_a_kernel_fills_keep_their_index() -> None:
    compiled, _ = TesseraIntegration().compile_with_timing(product[3, 3], {}, (A, np.zeros_like(A), B))
    out = np.zeros_like(A)
    assert compiled(A, out, B) is None
    np.testing.assert_allclose(out, A @ B, rtol=2e-5, atol=1e-4)
    out = np.zeros_like(A)
    assert compiled(A, b=B, c=out) is None
    np.testing.assert_allclose(out, A @ B, rtol=2e-5, atol=1e-4)


def test_assumed_arguments_are_guarded() -> None:
    compiled, _ = TesseraIntegration().compile_with_timing(shifted.assume("values", "sizes"), {}, (A, 0.5))
    np.testing.assert_allclose(compiled(A, 0.5).numpy(), np.exp(A - np.float32(0.5)), rtol=1e-5)
    with pytest.raises(DeviceError, match="other kinds or sizes"):
        compiled(A, 0.25)
    with pytest.raises(DeviceError, match="other kinds or sizes"):
        compiled(A.astype(np.float64), 0.5)


def test_filled_arrays_and_assumptions_together() -> None:
    """Guards follow their arguments to other indices."""
    chosen = product[3, 3].assume("b.size[1]", "b.stride[1]", "c.stride[1]")
    compiled, _ = TesseraIntegration().compile_with_timing(chosen, {}, (A, np.zeros_like(A), B))
    assert compiled.program.paths == ("a", "b", "c")
    assert {str(guard) for guard in compiled.program.guards} == {"arg1.size[1] = 96", "arg2.stride[1] = 1"}
    out = np.zeros_like(A)
    compiled(A, out, B)
    np.testing.assert_allclose(out, A @ B, rtol=2e-5, atol=1e-4)
    with pytest.raises(DeviceError, match="other kinds or sizes"):
        compiled(A, out, np.zeros((96, 64), np.float32))
    with pytest.raises(DeviceError, match="other kinds or sizes"):
        compiled(A, np.zeros((96, 192), np.float32)[:, ::2], B)
    spread = np.zeros((96, 192), np.float32)[:, ::2]
    spread[...] = A
    compiled(spread, out, B)
    np.testing.assert_allclose(out, A @ B, rtol=2e-5, atol=1e-4)


def test_a_schedule_from_the_configuration() -> None:
    config = {"schedule_opts": {"block": (16, 16)}}
    compiled, timing = TesseraIntegration().compile_with_timing(shifted, config, (A, 0.5))
    assert compiled.program.schedule.block == (16, 16)
    assert "retrace" in timing["stages"]
    np.testing.assert_allclose(compiled(A, 0.5).numpy(), np.exp(A - np.float32(0.5)), rtol=1e-5)


def test_options_of_the_target() -> None:
    slow, fast = _target(shifted, A, 0.5, optimization=0), _target(shifted, A, 0.5, optimization=3)
    assert slow.text != fast.text
    least = _target(shifted, A, 0.5, level=features.up_to(features.host_level())[0])
    assert "zmm" not in least.assembly
    assert "ymm" not in least.assembly
    assert "instrument-checks" in _target(shifted, A, 0.5, checks=["bounds"]).stages_ms


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"target_opts": {"speed": 3}}, "no options speed"),
        ({"tile_opts": {"speed": 3}}, "no options, got speed"),
        ({"schedule_opts": {"speed": 3}}, "not options of a schedule"),
    ],
)
def test_unknown_options_are_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(CompileError, match=words):
        TesseraIntegration().compile_with_timing(shifted, config, (A, 0.5))


def test_the_interpreter_compiles_nothing() -> None:
    with knobs.interpret.using(True), pytest.raises(CompileError, match="interpreter"):
        TesseraIntegration().compile_with_timing(shifted, {}, (A, 0.5))


def test_another_architecture_is_compiled_as_far_as_it_can_be_here() -> None:
    config = {"target_arch": "sm_80", "optimization_level": "O2", "precision_policy": "f32"}
    compiled, timing = TesseraIntegration().compile_with_timing(shifted, config, (A, 0.5))
    assert compiled.target_ir.chosen.level == "sm_80"
    assert compiled.target_ir.chosen.optimization == 2
    assert ".target sm_80" in compiled.code.decode()
    assert {"tile-to-nv", "emit", "llvm"} <= timing["stages"].keys()
    assert "arguments' types" in timing["unavailable"]["precision_policy"]
    measured = [timing[name] for name in LEVELS if timing[name] is not None]
    assert timing["total_ms"] == pytest.approx(sum(measured))
    if (why := target_named("cuda").why_not_here("sm_80")) is None:
        assert timing["final_compilation_ms"] > 0
        return
    assert timing["final_compilation_ms"] is None
    assert why in timing["unavailable"]["final_compilation_ms"]
    with pytest.raises(DeviceError, match="is compiled for sm_80 of cuda, and cannot run here"):
        compiled(A, 0.5)


def test_a_source_alone_is_compiled_for_what_its_annotations_say() -> None:
    """The form that the document has: a text and a configuration."""
    text = """
@tessera.kernel
def scaled(x: tessera.KTile["M", "N", tessera.bf16], factor: float = 2.0):
    return tile.load(x) * factor
"""
    config = {"target_arch": "sm_90a", "precision_policy": "bf16", "sizes": {"M": 96}, "autotuning_enabled": False}
    compiled, timing = TesseraIntegration().compile_with_timing(text, config)
    assert ".target sm_90a" in compiled.target_ir.assembly
    assert compiled.target_ir.subject.sizes["M"] == 96
    assert timing["target_ir_ms"] > 0
    assert timing["stages"]["load-source"] > 0


def test_this_machine_as_it_describes_itself_is_an_architecture() -> None:
    config = {"target_arch": detect().gpu_arch, "target_opts": {"checks": ["bounds"]}}
    compiled, timing = TesseraIntegration().compile_with_timing(shifted, config, (A, 0.5))
    assert timing["final_compilation_ms"] > 0
    assert compiled.target_ir.chosen.checks == {"bounds"}


def test_a_jitted_function_is_compiled_level_by_level() -> None:
    @ts.jit
    def layers(x: Any, w: Any) -> Any:
        hidden = ts.relu(x @ w)
        return hidden, hidden / ts.sum(hidden, axis=1, keepdims=True)

    compiled, timing = TesseraIntegration().compile_with_timing(layers, {}, (A, B))
    assert all(timing[name] > 0 for name in LEVELS if name != "autotuning_ms")
    assert {"trace", "choose-blocks", "tile-to-cpu", "emit", "llvm", "load"} <= timing["stages"].keys()
    for found, expected in zip(compiled(A, B), layers(A, B), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize(
    ("config", "words"),
    [({"target_archs": "sm_80"}, "no configuration target_archs"), ({"optimization_level": "O9"}, "unknown optim")],
)
def test_unknown_configurations_are_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(BenchError, match=words):
        TesseraIntegration().compile_with_timing(shifted, config, (A, 0.5))


# Sources


def test_a_kernel_from_a_text_and_from_a_file(tmp_path: Path) -> None:
    bench = TesseraIntegration()
    compiled, timing = bench.compile_with_timing(TEXT, {}, (A, 3.0))
    np.testing.assert_allclose(compiled(A, 3.0).numpy(), 3 * A)
    assert "load-source" in timing["stages"]
    path = tmp_path / "kernels.py"
    path.write_text("from tessera import kernel, tile\n" + TEXT.replace("tessera.kernel", "kernel"), encoding="utf-8")
    for given in (path, str(path)):
        compiled, _ = bench.compile_with_timing(given, {}, (A, 3.0))
        np.testing.assert_allclose(compiled(A, 3.0).numpy(), 3 * A)


def test_errors_in_a_text_show_its_lines() -> None:
    with pytest.raises(DtypeError) as caught:
        TesseraIntegration().compile_with_timing(TEXT.replace("* factor", "+ tile.load(factor)"), {}, (A, 3.0))
    assert caught.value.span is not None
    assert caught.value.span.file.startswith("<kernel ")
    assert "tile.load(factor)" in str(caught.value)


def test_a_text_with_several_kernels_needs_a_name() -> None:
    text = TEXT + TEXT.replace("scaled", "other")
    with pytest.raises(CompileError, match=r"expected one kernel or jitted function in <kernel .*>, got scaled, other"):
        load(text)
    assert name_of(load(text, "other")) == "other"
    with pytest.raises(CompileError, match="expected a kernel or jitted function third"):
        load(text, "third")
    with pytest.raises(CompileError, match="got none"):
        load("x = 1")
    with pytest.raises(CompileError, match="cannot read"):
        load("no_such_file.py")


# Launches


def test_a_launch_with_its_profile() -> None:
    found = TesseraIntegration().launch_kernel_with_profiling(shifted, [A, 0.5])
    np.testing.assert_allclose(found["launch_result"].numpy(), np.exp(A - np.float32(0.5)), rtol=1e-5)
    profile = found["profiling_results"]
    assert profile["wall_seconds"] > 0
    assert isinstance(profile["memory_delta_mb"], float)
    assert "unavailable" in profile


def test_a_launch_over_a_grid_in_blocks() -> None:
    bench, out = TesseraIntegration(), np.zeros_like(A)
    block, asked = (16, 16, 16), {"metrics": ["wall_seconds"]}
    bench.launch_kernel_with_profiling(product, [A, out, B], grid_dim=(6, 6), block_dim=block, profiling_config=asked)
    np.testing.assert_allclose(out, A @ B, rtol=2e-5, atol=1e-4)
    with pytest.raises(ShapeError, match=r"no program instance of product writes c\[32:\]"):
        bench.launch_kernel_with_profiling(product, [A, out, B], grid_dim=(2, 6), block_dim=block)
    compiled, _ = bench.compile_with_timing(shifted, {}, (A, 0.5))
    with pytest.raises(BenchError, match="grid"):
        bench.launch_kernel_with_profiling(compiled, [A, 0.5], grid_dim=(1,))


def test_a_runtime_of_ones_own() -> None:
    class Runtime:
        launched: tuple[Any, ...] = ()

        def get_memory_usage(self) -> int:
            return (3 << 20) if self.launched else 0

        @contextmanager
        def profiling_context(self, config: Any) -> Generator[integration.Profile]:
            yield integration.Profile({"config": config})

        def launch_kernel(self, *given: Any) -> str:
            self.launched = given
            return "done"

    found = TesseraIntegration(Runtime()).launch_kernel_with_profiling(shifted, [A], (1,), (2,), {"metrics": []})
    assert found == {"launch_result": "done", "profiling_results": {"config": {"metrics": []}, "memory_delta_mb": 3.0}}


def test_host_overhead_is_of_one_call() -> None:
    import time

    def wait() -> None:
        until = time.perf_counter() + 200e-6
        while time.perf_counter() < until:
            pass

    assert 200 <= host_overhead(wait, seconds=0.02) < 2000
    small = ts.zeros((1, 1), f32)
    assert 0 < host_overhead(lambda: shifted(small, 0.5), seconds=0.02) < 1000
