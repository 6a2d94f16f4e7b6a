"""Definitions: benchmarks and their names, sizes and precisions; results; and the engine around any code."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brief_runs import QUICK, TINY, only, run_softmax

from tessera import knobs
from tessera.bench import registry
from tessera.bench.configs import SETS, StandardBenchmarkConfigs
from tessera.bench.core import TesseraBench
from tessera.bench.engine import MeasurementEngine, register_timer, timer_for
from tessera.bench.instruments.timers import EventTimer
from tessera.bench.measuring.cases import run_case
from tessera.bench.measuring.precision import BOUNDS, precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.operators.flash_attention import FlashAttentionBenchmark
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, HardwareConfig, MeasurementType
from tessera.bench.results.results import BenchmarkError, BenchmarkProtocol, BenchmarkResult, BenchmarkSuiteResult

# Names, sizes, precisions


@pytest.mark.acceptance
def test_every_benchmark_that_ships_runs_accurately() -> None:
    small: dict[str, dict[str, Any]] = {
        "gemm": {"m": 48, "n": 40, "k": 24},
        "flash_attention": {"batch_size": 1, "num_heads": 2, "seq_len": 48, "head_dim": 16, "causal": True},
    }
    for name in ("flash_attention", "gelu", "gemm", "layernorm", "rmsnorm", "softmax"):
        assert name in registry.names()
        config = dataclasses.replace(
            QUICK,
            sizes=[small.get(name, TINY)],
            precision_policies=["f32", "bf16"],
            implementations=["tessera"],
            timing_iterations=4,
        )
        suite = TesseraBench().run_benchmark(name, config)
        assert len(suite.get_successful_results()) == 2, suite.results


def test_the_example_benchmark_follows_the_protocol() -> None:
    benchmark = FlashAttentionBenchmark()
    assert isinstance(benchmark, BenchmarkProtocol)
    assert benchmark.get_name() == "flash_attention"
    assert "online softmax" in benchmark.get_description()
    assert {"fp16", "bf16", "fp8_e4m3@accum(fp32)", "fp8_e5m2@accum(fp32)"} <= set(benchmark.get_supported_precisions())
    sizes = benchmark.get_problem_sizes()
    assert len(sizes) == 4 * 3 * 5 * 2 + 3
    assert {"batch_size": 1, "num_heads": 16, "seq_len": 65536, "head_dim": 64, "causal": True} in sizes
    benchmark.setup(dataclasses.replace(QUICK, precision_policies=["bf16@accum(fp32)"]))
    try:
        size = {"batch_size": 2, "num_heads": 2, "seq_len": 96, "head_dim": 32, "causal": True}
        result = benchmark.run_single(size)
        assert benchmark.validate_result(result)
        assert result.precision == "bf16"
        assert result.flops == 4 * 2 * 2 * 96**2 * 32 / 2
        assert result.compilation_time_ms is not None
        result.latency_ms = None
        assert not benchmark.validate_result(result)
    finally:
        benchmark.cleanup()


@pytest.mark.quick(policy=["fp8_e4m3@accum(fp32)"])
@pytest.mark.parametrize("policy", ["fp16", "fp8_e4m3@accum(fp32)", "fp8_e5m2@accum(fp32)"])
def test_the_example_benchmark_runs_in_its_other_precisions(policy: str) -> None:
    size = {"batch_size": 1, "num_heads": 2, "seq_len": 512, "head_dim": 64, "causal": True}
    row = only(run_case(FlashAttentionBenchmark(), size, precision(policy), QUICK, only=["tessera"]))
    assert row.precision == precision(policy).name


def test_a_plain_protocol_benchmark_runs() -> None:
    class Plain:
        cleaned = 0

        def get_name(self) -> str:
            return "plain"

        def get_description(self) -> str:
            return "nothing much"

        def get_supported_precisions(self) -> list[str]:
            return ["f32"]

        def get_problem_sizes(self) -> list[dict[str, Any]]:
            return [{"n": 1}, {"n": 2}, {"n": 3}]

        def setup(self, config: BenchmarkConfig) -> None:
            self.config = config

        def run_single(self, problem_size: Any) -> BenchmarkResult:
            if problem_size["n"] == 2:
                raise ValueError("two is not allowed")
            return BenchmarkResult("plain", dict(problem_size), self.config, latency_ms=float(problem_size["n"]))

        def cleanup(self) -> None:
            Plain.cleaned += 1

        def validate_result(self, result: BenchmarkResult) -> bool:
            return result.latency_ms == 1.0

    engine = TesseraBench()
    engine.register_benchmark(Plain())
    with pytest.raises(BenchError, match="already"):
        engine.register_benchmark(Plain())
    suite = engine.run_benchmark("plain", dataclasses.replace(QUICK, sizes=None))
    assert len(suite.results) == 3
    assert len(suite.get_successful_results()) == 1
    assert len(suite.get_failed_results()) == 2
    assert suite.calculate_suite_statistics()["failed_benchmarks"] == 2
    assert Plain.cleaned == 1
    both = engine.run_benchmark_suite(["plain", "softmax"], dataclasses.replace(QUICK, implementations=["tessera"]))
    assert {row.benchmark_name for row in both.results.values()} == {"plain", "softmax"}


def test_unknown_names_are_told_with_those_that_exist() -> None:
    with pytest.raises(BenchError, match="unknown benchmark") as caught:
        TesseraBench().run_benchmark("sofmax")
    assert "softmax" in (caught.value.hint or "")
    with pytest.raises(BenchError, match="no implementation tessra") as caught:
        run_softmax(QUICK, "tessra")
    assert "tessera" in (caught.value.hint or "")


@pytest.mark.parametrize("size", [{"rows": 0, "cols": 64}, {"rows": -1, "cols": 64}, {"rows": 64}, {"rows": 1, "x": 2}])
def test_sizes_that_make_no_sense_are_refused(size: dict[str, int]) -> None:
    with pytest.raises(BenchError):
        run_case(registry.get("softmax"), size, precision("f32"), QUICK, only=["tessera"])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("fp32", "f32"),
        ("bf16@accum(fp32)", "bf16"),
        ("FP16", "f16"),
        ("fp8_e4m3@accum(fp32)", "f8e4m3"),
        ("f64", "f64"),
    ],
)
def test_precisions_have_two_spellings(policy: str, name: str) -> None:
    assert precision(policy).name == name
    assert precision(policy).bound == BOUNDS[name]


@pytest.mark.parametrize("policy", ["f33", "", "bf16@accum(bf16)", "bf16@", "int3"])
def test_unknown_precisions_are_refused(policy: str) -> None:
    with pytest.raises(BenchError):
        precision(policy)


def test_standard_configurations_are_the_specified_ones() -> None:
    assert [one.description for one in StandardBenchmarkConfigs.get_small_configs()] == [
        "Small: 1x8x512x64",
        "Small: 1x8x1024x64",
        "Small: 2x8x512x64",
    ]
    assert [one.size["seq_len"] for one in StandardBenchmarkConfigs.get_variable_length_configs()] == [
        1024,
        2048,
        4096,
        8192,
    ]
    assert [one.dtype for one in StandardBenchmarkConfigs.get_mixed_precision_configs()] == ["f16", "bf16", "f8e4m3"]
    assert StandardBenchmarkConfigs.get_large_configs()[-1].head_dim == 128
    assert StandardBenchmarkConfigs.get_medium_configs()[0].batch_size == 4
    benchmark = FlashAttentionBenchmark()
    for make in SETS.values():
        for one in make():
            benchmark.check(one.size)
            precision(one.dtype)
    most = max(benchmark.flops(one.size) for one in StandardBenchmarkConfigs.get_cpu_configs())
    assert most < 10e9  # a fraction of a second on any processor


def test_causal_attention_counts_half_the_operations() -> None:
    size = {"batch_size": 2, "num_heads": 3, "seq_len": 128, "head_dim": 64, "causal": False}
    full = FlashAttentionBenchmark().flops(size)
    assert full == 4 * 2 * 3 * 128**2 * 64
    assert FlashAttentionBenchmark().flops({**size, "causal": True}) == full / 2


def test_threads_are_the_same_for_all() -> None:
    with knobs.num_threads.using(2):
        assert only(run_softmax(dataclasses.replace(QUICK, threads=None))).threads == 2
    assert only(run_softmax(dataclasses.replace(QUICK, threads=1))).threads == 1


def test_registering_twice_or_something_else_is_refused() -> None:
    class Nothing:
        pass

    with pytest.raises(BenchError, match="lacks"):
        registry.register(Nothing)

    class Again(OperatorBenchmark):
        name = "softmax"

    with pytest.raises(BenchError, match="already"):
        registry.register(Again)


def test_installed_packages_offer_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_benchmarks.py").write_text(
        "from cheats import HonestBenchmark\n\n\nclass Theirs(HonestBenchmark):\n    name = 'theirs'\n"
        "\n\nclass Nothing:\n    pass\n"
    )
    folder = tmp_path / "theirs-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[tessera.benchmarks]\ntheirs = their_benchmarks:Theirs\nnothing = their_benchmarks:Nothing\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert {"theirs", "nothing"} <= set(registry.names())
    assert registry.get("theirs").get_name() == "theirs"
    with pytest.raises(BenchError, match="is no benchmark"):
        registry.get("nothing")


def test_files_that_register_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("x = 1\n")
    with pytest.raises(BenchError, match="registers no benchmark"):
        registry.load(tmp_path / "nothing.py")
    with pytest.raises(BenchError, match="cannot read"):
        registry.load(tmp_path / "absent.py")


def test_hardware_defaults_are_the_specified_ones() -> None:
    hardware = HardwareConfig("sm_90")
    assert (hardware.gpu_count, hardware.memory_size_gb, hardware.memory_bandwidth_gbps) == (1, 80, 3352.0)
    assert (hardware.compute_capability, hardware.tensor_cores) == ("9.0", True)
    assert (hardware.nvlink_bandwidth_gbps, hardware.nvswitch_bandwidth_gbps) == (900.0, 1800.0)


# Results


def test_a_suite_tells_success_failure_and_what_was_skipped() -> None:
    suite = BenchmarkSuiteResult()
    good = BenchmarkResult("a", {"n": 1}, latency_ms=2.0, throughput_ops_per_sec=4.0)
    bad = BenchmarkResult("b", {"n": 1}, latency_ms=2.0)
    bad.add_error("wrong")
    suite.extend([good, bad, BenchmarkError("gone", "crash", benchmark_name="c")])
    suite.add(BenchmarkError("absent", "skipped", benchmark_name="d"))
    assert set(suite.get_successful_results()) == {good.key}
    assert len(suite.get_failed_results()) == 2
    assert len(suite.get_skipped_results()) == 1
    found = suite.calculate_suite_statistics()
    assert (found["total_benchmarks"], found["successful_benchmarks"], found["failed_benchmarks"]) == (4, 1, 2)
    assert (found["average_latency_ms"], found["average_throughput"]) == (2.0, 4.0)
    good.compute_utilization_percent = 30.0
    assert suite.calculate_suite_statistics()["average_efficiency"] == 30.0
    assert all(row.timestamp > 0 for row in suite.results.values() if isinstance(row, BenchmarkError))
    assert BenchmarkSuiteResult().calculate_suite_statistics() == {}
    assert good.calculate_efficiency(8.0) == 50.0
    assert bad.calculate_efficiency(8.0) == 0.0
    good.add_warning("slow")
    assert good.warnings == ["slow"]
    assert good.is_valid()
    assert not bad.is_valid()


# The engine around any code


def test_the_engine_measures_what_is_asked_for() -> None:
    engine = MeasurementEngine()
    kinds = list(MeasurementType)
    values = np.arange(4.0)
    context = {
        "flops": 1e6,
        "bytes": 1e6,
        "peak_flops_per_second": 1e12,
        "result": lambda: values * (1 + 1e-3),
        "reference": lambda: values,
    }
    with engine.measure_execution(kinds, context) as found:
        np.linalg.norm(np.ones((200, 200)) @ np.ones((200, 200)))
    milliseconds = found[MeasurementType.LATENCY]["latency_ms"]
    assert milliseconds > 0
    assert found[MeasurementType.LATENCY]["method"] == "wall_clock"
    assert found[MeasurementType.THROUGHPUT]["throughput_ops_per_sec"] == pytest.approx(1e9 / milliseconds)
    assert found[MeasurementType.MEMORY_BANDWIDTH]["memory_bytes_per_second"] == pytest.approx(1e9 / milliseconds)
    assert found[MeasurementType.ACCURACY]["relative_error"] == pytest.approx(1e-3)
    assert found[MeasurementType.COMPUTE_UTILIZATION]["compute_utilization_percent"] > 0
    assert found[MeasurementType.OCCUPANCY]["unavailable"]
    assert set(found[MeasurementType.ENERGY]) & {"energy_joules", "unavailable"}
    assert list(engine.active_measurements.values()) == [found]


def test_the_engine_says_what_the_context_lacks() -> None:
    kinds = [MeasurementType.THROUGHPUT, MeasurementType.ACCURACY]
    with MeasurementEngine().measure_execution(kinds) as found:
        pass
    assert set(found) == set(kinds)
    assert all("unavailable" in figures for figures in found.values())


def test_an_exception_in_the_code_is_passed_on_and_the_time_kept() -> None:
    engine = MeasurementEngine()
    with pytest.raises(ValueError, match="mine"), engine.measure_execution([MeasurementType.LATENCY]):
        raise ValueError("mine")
    (kept,) = engine.active_measurements.values()
    assert kept[MeasurementType.LATENCY]["latency_ms"] >= 0


def test_devices_are_timed_by_their_own_clock() -> None:
    class Mark:
        """A device whose clock goes on by 3 ms with every mark."""

        clock = 0.0

        def record(self) -> None:
            Mark.clock += 3.0
            self.at, self.waited = Mark.clock, False

        def synchronize(self) -> None:
            self.waited = True

        def milliseconds_until(self, end: Mark) -> float:
            assert end.waited
            return end.at - self.at

    register_timer("pretend", lambda: EventTimer(Mark))
    with MeasurementEngine().measure_execution([MeasurementType.LATENCY], {"device": "pretend"}) as found:
        pass
    assert found[MeasurementType.LATENCY] == {"latency_ms": 3.0, "method": "device_events"}
    with pytest.raises(BenchError, match="no timer"):
        timer_for("abacus")
