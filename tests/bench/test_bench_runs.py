"""Runs: what configurations, modes and measurements change; failures are rows; results survive interruption."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cheats
import numpy as np
import pytest
from brief_runs import QUICK, TINY, only, run_softmax

from tessera.bench import registry
from tessera.bench.compiler.inspector import IRInspector
from tessera.bench.compiler.integration import CompilationProfiler, LocalRuntime, TesseraIntegration
from tessera.bench.core import TesseraBench
from tessera.bench.engine import MeasurementEngine
from tessera.bench.measuring import frameworks
from tessera.bench.measuring.cases import Case, Interrupted, NoObserver, run_case
from tessera.bench.measuring.definition import Setting, implementation
from tessera.bench.measuring.precision import precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.operators.flash_attention import FlashAttentionBenchmark
from tessera.bench.processes.distributed import DistributedCoordinator
from tessera.bench.processes.worker import REGRESSION_PROCESSES, Isolated
from tessera.bench.results.analysis import AnalysisEngine
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType
from tessera.bench.results.results import BenchmarkError, BenchmarkResult

CHEATS = Path(__file__).with_name("cheats.py")

# What a configuration changes


def test_a_row_says_what_was_measured() -> None:
    row = only(run_softmax(QUICK))
    assert row.latency_ms is not None
    assert row.confidence_interval_95 is not None
    assert row.confidence_interval_95[0] <= row.latency_ms <= row.confidence_interval_95[1]
    assert row.measurements_count == len(row.samples_ms) == len(row.yardstick_ms) > 0
    assert row.latency_ms == float(np.median(row.samples_ms))
    assert row.numerical_accuracy is not None
    assert row.numerical_accuracy < 2e-6
    assert row.flops == 5 * 64 * 64
    assert row.bytes_moved == 2 * 64 * 64 * 4
    assert row.stages_ms["llvm"] > 0
    assert row.compilation_time_ms == pytest.approx(sum(row.stages_ms.values()))
    assert row.host_overhead_us is not None
    assert 0 < row.host_overhead_us < 10_000
    assert row.unavailable["autotuning_time_ms"]
    assert row.conditions


def test_the_most_samples_are_not_exceeded() -> None:
    config = dataclasses.replace(QUICK, timing_iterations=5, max_variance_percent=0.0, seconds_per_case=30.0)
    assert only(run_softmax(config)).measurements_count == 5


def test_time_stops_a_case() -> None:
    config = dataclasses.replace(QUICK, timing_iterations=10**6, max_variance_percent=0.0, seconds_per_case=0.1)
    assert 3 <= only(run_softmax(config)).measurements_count < 10**4


def test_precise_enough_stops_a_case() -> None:
    config = dataclasses.replace(QUICK, timing_iterations=10**6, max_variance_percent=1e6, seconds_per_case=60.0)
    assert only(run_softmax(config)).measurements_count == 8


def test_a_seed_makes_the_same_inputs() -> None:
    def first_inputs(seed: int) -> bytes:
        config = dataclasses.replace(QUICK, seed=seed)
        case = Case(Setting(cheats.HonestBenchmark(), TINY, precision("f32"), config), NoObserver())
        return case.inputs.make(case.inputs.draw(1)[0])[0].tobytes()

    assert first_inputs(7) == first_inputs(7)
    assert first_inputs(7) != first_inputs(8)


@pytest.mark.acceptance
def test_cold_caches_are_slower_to_read() -> None:
    class Reading(OperatorBenchmark):
        """Reads a megabyte, which fits into a cache and is quick to find there."""

        name = "reading"

        def shapes(self, size: Any) -> list[tuple[int, ...]]:
            return [(1, 1 << 18)]

        def output_shape(self, size: Any) -> tuple[int, ...]:
            return (1, 1)

        def truth(self, size: Any, rows: Any, *inputs: Any) -> Any:
            return inputs[0].max(keepdims=True)

        def flops(self, size: Any) -> float:
            return float(1 << 18)

        @implementation("numpy")
        def numpy(self, size: Any, precision: Any) -> Any:
            def largest(x: Any) -> Any:
                return x.max(keepdims=True)

            return largest

    config = dataclasses.replace(
        QUICK, timing_iterations=10, seconds_per_case=20.0, max_variance_percent=0.0, sample_seconds=1e-6
    )
    quickest = {False: float("inf"), True: float("inf")}
    for cold in (False, True) * 3:  # alternating, for the machine may be busy with other things now and then
        row = only(run_case(Reading(), {}, precision("f32"), dataclasses.replace(config, cold=cold)))
        quickest[cold] = min(quickest[cold], *row.samples_ms)
        if cold and quickest[True] > quickest[False]:
            break
    assert quickest[True] > quickest[False]


MADE = {
    MeasurementType.THROUGHPUT: "throughput_ops_per_sec",
    MeasurementType.ACCURACY: "numerical_accuracy",
    MeasurementType.MEMORY_BANDWIDTH: "memory_bandwidth_gbps",
    MeasurementType.COMPUTE_UTILIZATION: "compute_utilization_percent",
    MeasurementType.LATENCY: "latency_ms",
}
COUNTED = {MeasurementType.ENERGY: "energy_joules", MeasurementType.OCCUPANCY: "occupancy_percent"}


def measured(*kinds: MeasurementType) -> BenchmarkResult:
    config = dataclasses.replace(QUICK, measurements=kinds)
    case: Any = registry.get("softmax")
    ceilings = {"flops_per_second": {"f32": 1e12}}
    return only(run_case(case, TINY, precision("f32"), config, only=["tessera"], ceilings=ceilings))


def test_measurements_are_made_when_they_are_asked_for() -> None:
    everything, latency = measured(*MADE, *COUNTED), measured(MeasurementType.LATENCY)
    assert [name for name in MADE.values() if getattr(everything, name) is None] == []
    assert [name for name in MADE.values() if getattr(latency, name) is not None] == ["latency_ms"]
    assert measured(MeasurementType.ACCURACY).latency_ms is None
    # A counter that is not there says why, to those who asked.
    missing = {name for name in COUNTED.values() if getattr(everything, name) is None}
    assert missing <= everything.unavailable.keys()
    assert not set(COUNTED.values()) & latency.unavailable.keys()


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", [*MADE, *COUNTED])
def test_a_measurement_by_itself(kind: MeasurementType) -> None:
    row = measured(*dict.fromkeys((MeasurementType.LATENCY, kind)))
    name = (MADE | COUNTED)[kind]
    assert getattr(row, name) is not None or row.unavailable[name]
    others = {*MADE.values(), *COUNTED.values()} - {name, "latency_ms"}
    assert [other for other in others if getattr(row, other) is not None or other in row.unavailable] == []


@pytest.mark.acceptance
def test_utilisation_is_of_the_measured_peak() -> None:
    config = dataclasses.replace(QUICK, measurements=(MeasurementType.LATENCY, MeasurementType.COMPUTE_UTILIZATION))
    found = TesseraBench().run_benchmark("softmax", dataclasses.replace(config, implementations=["tessera"]))
    row = only(list(found.results.values()))
    peak = found.ceilings["flops_per_second"]["f32"]
    assert row.latency_ms is not None
    assert row.flops is not None
    assert row.compute_utilization_percent == pytest.approx(100 * row.flops / (row.latency_ms / 1e3) / peak)


@pytest.mark.acceptance
def test_every_optimisation_level_is_a_row_of_ours() -> None:
    config = dataclasses.replace(QUICK, ir_optimization_levels=["O3", "O0"], autotuning_enabled=False)
    rows = run_softmax(config, "tessera", "numpy")
    assert [row.implementation for row in rows] == ["tessera", "numpy", "tessera O0"]
    assert all(isinstance(row, BenchmarkResult) for row in rows)
    # One compile optimises and fuses; the other takes each op as a loop of its own.
    config = dataclasses.replace(config, mode=BenchmarkMode.PROFILING)
    counts = [row.inspection["target_ir"]["instruction_count"] for row in run_softmax(config, "tessera")]
    assert counts[0] != counts[1]
    assert "off" in rows[0].unavailable["autotuning_time_ms"]
    with pytest.raises(BenchError, match="O9"):
        run_softmax(dataclasses.replace(QUICK, ir_optimization_levels=["O9"]))


def test_warming_up_calls_as_often_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(OperatorBenchmark):
        name = "counted"
        calls = 0

        def shapes(self, size: Any) -> list[tuple[int, ...]]:
            return [(4, 4)]

        def truth(self, size: Any, rows: Any, *inputs: Any) -> Any:
            return inputs[0][rows]

        def flops(self, size: Any) -> float:
            return 16.0

        @implementation("numpy")
        def numpy(self, size: Any, precision: Any) -> Any:
            def call(x: Any) -> Any:
                Counted.calls += 1
                return x.copy()

            return call

    warm_up, counts = Case._warm_up, list[int]()  # pyright: ignore[reportPrivateUsage]

    def counting(case: Case) -> None:  # of a disturbed machine samples are taken again: those calls do not count
        before = Counted.calls
        warm_up(case)
        counts.append(Counted.calls - before)

    monkeypatch.setattr(Case, "_warm_up", counting)
    for warmup in (1, 31):
        config = dataclasses.replace(
            QUICK, warmup_iterations=warmup, timing_iterations=1, sample_seconds=1e-9, seconds_per_case=60.0
        )
        row = only(run_case(Counted(), {}, precision("f32"), config))
        assert row.measurements_count == 1
    assert counts[1] - counts[0] == 30


def test_more_confidence_takes_more_samples() -> None:
    rule = Case(Setting(cheats.HonestBenchmark(), TINY, precision("f32"), QUICK), NoObserver())
    samples = [1.0 + 0.001 * index for index in range(40)]
    for confidence, enough in ((0.5, True), (0.9999, False)):
        rule.config = dataclasses.replace(QUICK, statistical_significance=confidence, max_variance_percent=0.8)
        assert rule.precise(samples) is enough


def test_a_row_has_its_spread_and_its_error() -> None:
    row = only(run_softmax(dataclasses.replace(QUICK, timing_iterations=8)))
    assert row.standard_deviation == pytest.approx(float(np.std(row.samples_ms, ddof=1)))
    assert row.reference_comparison is not None
    assert row.reference_comparison["error"] <= row.reference_comparison["bound"] == 2e-6
    assert row.reference_comparison["max_abs_error"] < 1e-6


def test_the_engine_is_made_of_its_parts() -> None:
    runtime = object()
    engine = TesseraBench(runtime)
    assert engine.runtime is runtime
    assert isinstance(engine.measurement_engine, MeasurementEngine)
    assert isinstance(engine.analysis_engine, AnalysisEngine)
    assert engine.registered_benchmarks == {}
    engine.register_benchmark(cheats.HonestBenchmark())
    assert list(engine.registered_benchmarks) == ["product_honest"]
    assert engine.measurement_engine.hardware_profiler.get_memory_counters()["rss_bytes"] > 0
    coordinator = engine.measurement_engine.distributed_coordinator
    assert isinstance(coordinator, DistributedCoordinator)
    mesh = coordinator.setup_benchmark_mesh([0, 1], {"axes": ["dp"], "shape": [2]})
    assert coordinator.mesh_configs[mesh]["device_ids"] == [0, 1]


def test_the_integration_layer_is_made_of_its_parts() -> None:
    runtime = LocalRuntime()
    layer = TesseraIntegration(runtime)
    assert layer.runtime is runtime
    assert isinstance(layer.ir_inspector, IRInspector)
    assert isinstance(layer.compilation_profiler, CompilationProfiler)


# Modes


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (BenchmarkMode.COMPARISON, {"tessera", "numpy"}),
        (BenchmarkMode.SINGLE_GPU, {"tessera"}),
        (BenchmarkMode.REGRESSION, {"tessera"}),
        (BenchmarkMode.PROFILING, {"tessera"}),
    ],
)
def test_a_mode_decides_who_runs(mode: BenchmarkMode, names: set[str]) -> None:
    config = dataclasses.replace(QUICK, mode=mode, implementations=["tessera", "numpy"])
    found = TesseraBench().run_benchmark("softmax", config).get_successful_results().values()
    assert {row.implementation for row in found} == names
    compared = {row.implementation for row in found if row.baseline is not None}
    assert compared == ({"numpy"} if mode is BenchmarkMode.COMPARISON else set())
    assert {bool(row.inspection) for row in found} == {mode is BenchmarkMode.PROFILING}


def test_a_comparison_is_by_pairs() -> None:
    config = dataclasses.replace(QUICK, implementations=["numpy", "tessera"])
    found = TesseraBench().run_benchmark("softmax", config).get_successful_results()
    row = next(row for row in found.values() if row.implementation == "tessera")
    assert row.baseline == "numpy"
    assert row.speedup is not None
    assert row.speedup_interval is not None
    assert row.speedup_interval[0] <= row.speedup <= row.speedup_interval[1]


@pytest.mark.acceptance
def test_a_regression_run_takes_samples_in_several_processes() -> None:
    config = dataclasses.replace(QUICK, mode=BenchmarkMode.REGRESSION, implementations=["tessera"])
    with Isolated() as runner:
        found = TesseraBench(runner=runner).run_benchmark("softmax", config)
    row = only(list(found.results.values()))
    assert len(row.conditions["process_medians_ms"]) == REGRESSION_PROCESSES
    assert row.measurements_count == len(row.samples_ms) == len(row.yardstick_ms) >= 3 * REGRESSION_PROCESSES


# Failures


def test_a_failure_is_a_row_and_the_others_run() -> None:
    config = dataclasses.replace(QUICK, implementations=["honest", "raises", "eats_memory"], sizes=[cheats.ROWS])
    engine = TesseraBench()
    engine.register_benchmark(cheats.FailingBenchmark())
    suite = engine.run_benchmark("product_failing", config)
    kinds = {row.implementation: row.error_type for row in suite.results.values() if isinstance(row, BenchmarkError)}
    assert kinds == {"raises": "exception", "eats_memory": "out_of_memory"}
    (honest,) = suite.get_successful_results().values()
    assert honest.implementation == "honest"
    raised = next(row for row in suite.get_failed_results().values() if row.implementation == "raises")
    assert isinstance(raised, BenchmarkError)
    assert "no such luck" in raised.error_message
    assert "RuntimeError" in (raised.stack_trace or "")


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "ends", [["crashes"], pytest.param(["exits", "eats_memory_slowly"], marks=pytest.mark.acceptance)]
)
def test_a_crash_has_a_name_and_the_others_run(ends: list[str]) -> None:
    names = ["honest", *ends]
    config = dataclasses.replace(
        QUICK, implementations=names, sizes=[cheats.ROWS], timing_iterations=30, seconds_per_case=20.0
    )
    engine = TesseraBench(runner=(runner := Isolated([CHEATS])))
    with runner:
        suite = engine.run_benchmark("product_failing", config)
    failed = {row.implementation: row for row in suite.results.values() if isinstance(row, BenchmarkError)}
    kinds = {"crashes": "crash", "exits": "crash", "eats_memory_slowly": "out_of_memory"}
    said = {name: f"{row.error_message}\n{row.stack_trace}" for name, row in failed.items()}
    assert {name: row.error_type for name, row in failed.items()} == {name: kinds[name] for name in ends}, said
    expected = {"crashes": ("SIGSEGV", "Segmentation fault"), "exits": ("status 7",)}
    assert all(part in said[name] for name in ends for part in expected.get(name, ()))
    assert [row.implementation for row in suite.get_successful_results().values()] == ["honest"]


@pytest.mark.acceptance
def test_who_hangs_is_ended() -> None:
    config = dataclasses.replace(QUICK, implementations=["honest", "hangs"], sizes=[cheats.ROWS])
    with Isolated([CHEATS], hang_seconds=8.0) as runner:
        suite = TesseraBench(runner=runner).run_benchmark("product_hanging", config)
    (failed,) = suite.get_failed_results().values()
    assert isinstance(failed, BenchmarkError)
    assert (failed.implementation, failed.error_type) == ("hangs", "hung")
    assert [row.implementation for row in suite.get_successful_results().values()] == ["honest"]


def test_no_implementation_is_blamed_for_a_mistake_of_the_benchmark() -> None:
    config = dataclasses.replace(QUICK, implementations=["honest"], sizes=[cheats.ROWS], ir_optimization_levels=["O9"])
    with Isolated([CHEATS]) as runner:
        suite = TesseraBench(runner=runner).run_benchmark("product_honest", config)
    (row,) = suite.results.values()
    assert isinstance(row, BenchmarkError)
    assert (row.implementation, row.error_type) == ("", "exception")
    assert "O9" in row.error_message


def test_rows_from_a_worker_have_their_configuration() -> None:
    config = dataclasses.replace(QUICK, implementations=["tessera"], seed=7, timing_iterations=3)
    with Isolated() as runner:
        (row,) = TesseraBench(runner=runner).run_benchmark("softmax", config).results.values()
    assert isinstance(row, BenchmarkResult)
    assert row.config == config


@pytest.mark.acceptance
def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(
        "import os, signal, sys\nfrom tessera.bench.processes.worker import Isolated\n"
        "from tessera.bench.results.definitions import BenchmarkConfig\n"
        "runner = Isolated()\npage, child = runner._started(BenchmarkConfig(threads=1))\n"
        "child.connection.recv()\nprint(child.process.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    worker = int(found.stdout)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _is_alive(worker):
        time.sleep(0.05)
    assert not _is_alive(worker)


def _is_alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_an_extra_that_fails_does_not_cost_the_row() -> None:
    class NoSmall(cheats.HonestBenchmark):
        name = "no_small"

        def smallest(self, size: Any) -> Any:
            raise ValueError("there is none")

    row = only(run_case(NoSmall(), cheats.ROWS, precision("f32"), QUICK, only=["honest"]))
    assert row.latency_ms is not None
    assert "there is none" in row.unavailable["host_overhead_us"]


def test_a_suite_survives_a_setup_that_fails() -> None:
    class BadSetup(cheats.HonestBenchmark):
        name = "bad_setup"

        def setup(self, config: BenchmarkConfig) -> None:
            raise ValueError("not today")

    engine = TesseraBench()
    engine.register_benchmark(BadSetup())
    suite = engine.run_benchmark_suite(
        ["softmax", "bad_setup"], dataclasses.replace(QUICK, implementations=["tessera"])
    )
    assert len(suite.get_successful_results()) == 1
    (failed,) = suite.get_failed_results().values()
    assert isinstance(failed, BenchmarkError)
    assert "not today" in failed.error_message


def test_a_name_that_means_something_else_is_refused() -> None:
    with pytest.raises(BenchError, match="quick means something else"):
        type("Taken", (OperatorBenchmark,), {"quick": cheats.HonestBenchmark.honest})


def test_peak_memory_is_seen_whatever_ran_before() -> None:
    class Hungry(cheats.HonestBenchmark):
        name = "hungry"

        @implementation("numpy")
        def hungry(self, size: Any, precision: Any) -> Any:
            def call(a: Any, b: Any) -> Any:
                wasted = np.ones(8 << 20)  # 64 MB
                return a @ b + np.float32(0 * wasted[0])

            return call

    rows = run_case(Hungry(), cheats.ROWS, precision("f32"), QUICK, only=["hungry", "honest"])
    peaks = {row.implementation: row.peak_memory_mb for row in rows if isinstance(row, BenchmarkResult)}
    assert peaks["hungry"] is not None
    assert peaks["honest"] is not None
    assert 60 < peaks["hungry"] < 80
    assert peaks["honest"] < 16


def test_a_missing_peer_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "has_gpu", lambda: False)
    config = dataclasses.replace(QUICK, implementations=["tessera", "torch_sdpa_cudnn"])
    config = dataclasses.replace(
        config, sizes=[{"batch_size": 1, "num_heads": 1, "seq_len": 32, "head_dim": 16, "causal": True}]
    )
    suite = TesseraBench().run_benchmark("flash_attention", config)
    (skipped,) = suite.get_skipped_results().values()
    assert skipped.implementation == "torch_sdpa_cudnn"
    assert "GPU" in skipped.error_message or "torch" in skipped.error_message
    assert suite.get_failed_results() == {}


def test_an_interrupted_case_keeps_its_samples() -> None:
    class After:
        def __init__(self) -> None:
            self.left = 60

        def entering(self, implementation: str) -> None:
            self.left -= 1

        def stopping(self) -> bool:
            return self.left <= 0

    config = dataclasses.replace(QUICK, timing_iterations=10**6, max_variance_percent=0.0, seconds_per_case=60.0)
    with pytest.raises(Interrupted) as caught:
        run_case(cheats.HonestBenchmark(), cheats.ROWS, precision("f32"), config, watch=After())
    rows = caught.value.rows
    assert {row.implementation for row in rows} == {"honest", "again"}
    assert all(isinstance(row, BenchmarkResult) and "interrupted" in row.warnings[-1] for row in rows)


def test_ctrl_c_in_an_implementation_ends_the_run_and_keeps_the_rows_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressed(cheats.HonestBenchmark):
        name = "pressed"

        @implementation("numpy")
        def presses(self, size: Any, precision: Any) -> Any:
            def call(a: Any, b: Any) -> Any:
                if size["rows"] == 32:
                    raise KeyboardInterrupt
                return a @ b

            return call

    engine = TesseraBench()
    engine.register_benchmark(Pressed())
    sizes = [{"rows": 64, "cols": 64}, {"rows": 32, "cols": 64}, {"rows": 16, "cols": 64}]
    suite = engine.run_benchmark("pressed", dataclasses.replace(QUICK, sizes=sizes))
    assert suite.interrupted
    assert {row.problem_size["rows"] for row in suite.get_successful_results().values()} == {64}
    kinds = {row.error_type for row in suite.results.values() if isinstance(row, BenchmarkError)}
    assert kinds == {"interrupted"}


def test_a_problem_too_large_for_memory_is_a_row() -> None:
    size = {"rows": 1 << 24, "cols": 1 << 18}
    rows = run_case(registry.get("softmax"), size, precision("f32"), QUICK, only=["tessera"])  # pyright: ignore[reportArgumentType]
    (row,) = rows
    assert isinstance(row, BenchmarkError)
    assert row.error_type == "out_of_memory"
    assert "GB" in row.error_message


# Peers


@pytest.mark.peers
def test_torch_and_jax_are_measured_beside_the_others() -> None:
    pytest.importorskip("torch")
    jax = pytest.importorskip("jax")

    class Peers(cheats.HonestBenchmark):
        name = "peers"

        @implementation("torch")
        def torch(self, size: Any, precision: Any) -> Any:
            return cheats.product

        @implementation("jax")
        def jax(self, size: Any, precision: Any) -> Any:
            return jax.jit(cheats.product)

    config = dataclasses.replace(QUICK, seconds_per_case=3.0)
    for policy in ("f32", "bf16"):
        chosen = ["torch"] if policy == "bf16" else ["honest", "torch", "jax"]
        rows = run_case(Peers(), {"rows": 64, "cols": 64}, precision(policy), config, only=chosen)
        assert all(isinstance(row, BenchmarkResult) and row.is_valid() for row in rows), rows


@pytest.mark.acceptance
@pytest.mark.peers
def test_attention_against_torch() -> None:
    pytest.importorskip("torch")
    size = {"batch_size": 1, "num_heads": 2, "seq_len": 64, "head_dim": 32, "causal": True}
    for policy in ("f32", "bf16"):
        rows = run_case(
            FlashAttentionBenchmark(), size, precision(policy), QUICK, only=["tessera", "torch_sdpa", "numpy"]
        )
        assert [getattr(row, "baseline", "") for row in rows] == [None, "tessera", "tessera"], rows
