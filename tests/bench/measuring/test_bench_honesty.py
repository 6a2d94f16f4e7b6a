"""Cheats fail, for the reason that they are; honest implementations beside them do not."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import cheats
import numpy as np
import pytest

from tessera.bench.instruments import clock
from tessera.bench.measuring import figures
from tessera.bench.measuring.cases import run_case
from tessera.bench.measuring.frameworks import FRAMEWORKS
from tessera.bench.measuring.honesty import Auditor
from tessera.bench.measuring.precision import precision
from tessera.bench.measuring.sampling import Inputs, Side, timed
from tessera.bench.operators.flash_attention import FlashAttentionBenchmark
from tessera.bench.results.definitions import BenchmarkConfig, MeasurementType
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, Row

CONFIG = BenchmarkConfig(
    measurements=(MeasurementType.LATENCY, MeasurementType.ACCURACY), seconds_per_case=0.5, timing_iterations=40, seed=5
)


def rows_of(benchmark: Any, *names: str, config: BenchmarkConfig = CONFIG) -> dict[str, Row]:
    found = run_case(benchmark, cheats.ROWS, precision("f32"), config, only=list(names) or None)
    return {row.implementation: row for row in found}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("cached", "wrong"),
        ("skips_repeats", "wrong"),
        ("finishes_later", "wrong"),
        ("finishes_soon", "wrong"),
        ("promises", "a finished result is a ndarray"),
        ("lower_precision", "wrong"),
        ("returns_half", "float32 was declared"),
        ("skips_the_last_rows", "wrong"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cheat_is_refused_and_the_honest_one_beside_it_is_not(name: str, why: str, seed: int) -> None:
    config = BenchmarkConfig(measurements=CONFIG.measurements, seconds_per_case=0.3, timing_iterations=20, seed=seed)
    found = rows_of(cheats.CheatsBenchmark(), "honest", name, config=config)
    honest, cheat = found["honest"], found[name]
    assert isinstance(honest, BenchmarkResult)
    assert honest.is_valid()
    assert honest.measurements_count > 0
    assert isinstance(cheat, BenchmarkError)
    assert cheat.error_type == "refused"
    assert why in cheat.error_message


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "why"), [("changes_inputs", "changed its input 1"), ("computes_now_and_then", "wrong")]
)
@pytest.mark.parametrize("sample", [1e-6, 3e-3])
def test_cleverer_cheats_are_refused(name: str, why: str, sample: float) -> None:
    config = dataclasses.replace(CONFIG, sample_seconds=sample, seconds_per_case=2.0, max_variance_percent=0.0)
    found = rows_of(cheats.ClevererBenchmark(), "honest", name, config=config)
    assert isinstance(found["honest"], BenchmarkResult)
    cheat = found[name]
    assert isinstance(cheat, BenchmarkError)
    assert why in cheat.error_message


@pytest.mark.acceptance
def test_nothing_can_be_computed_ahead() -> None:
    """The inputs of a sample are made after the last call that is not timed."""
    config = dataclasses.replace(
        CONFIG, sample_seconds=1e-6, max_variance_percent=0.0, seconds_per_case=60.0, timing_iterations=24
    )
    found = rows_of(cheats.ClevererBenchmark(), "honest", "works_ahead", config=config)
    assert all(isinstance(row, BenchmarkResult) for row in found.values())  # slow and right
    assert cheats.CHEATED["calls"] > 20
    assert cheats.CHEATED["hits"] == 0


@pytest.mark.acceptance
def test_contents_do_not_come_again() -> None:
    config = dataclasses.replace(CONFIG, timing_iterations=100, seconds_per_case=60.0, max_variance_percent=0.0)
    found = run_case(
        cheats.ClevererBenchmark(),
        {"rows": 16, "cols": 16},
        precision("f32"),
        config,
        only=["remembers_contents", "honest"],
    )
    assert all(isinstance(row, BenchmarkResult) for row in found)
    assert cheats.CHEATED["calls"] > 100
    assert cheats.CHEATED["hits"] <= 2


def test_a_peer_that_is_far_off_excuses_no_other() -> None:
    auditor = Auditor(cheats.HonestBenchmark(), cheats.ROWS, precision("f32"), np.random.default_rng(1))
    assert auditor.widened([]) == 2e-6
    assert auditor.widened([1e-7]) == 2e-6
    assert auditor.widened([4e-6]) == pytest.approx(4.4e-6)
    assert auditor.widened([4e-6, 1e6]) == pytest.approx(4.4e-6)
    assert auditor.widened([1e6, 1e-3]) == 2e-6


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", [MeasurementType.THROUGHPUT, MeasurementType.MEMORY_BANDWIDTH])
def test_a_cheat_has_no_throughput_either(kind: MeasurementType) -> None:
    config = dataclasses.replace(CONFIG, measurements=(kind,))
    found = rows_of(cheats.CheatsBenchmark(), "honest", "cached", "skips_repeats", config=config)
    assert isinstance(found["honest"], BenchmarkResult)
    assert isinstance(found["cached"], BenchmarkError)
    assert isinstance(found["skips_repeats"], BenchmarkError)


@pytest.mark.parametrize(
    ("busy", "threads", "told"), [(1.0, 1, False), (1.9, 1, True), (1.9, 2, False), (3.5, 2, True)]
)
def test_more_processors_than_asked_for_are_told(busy: float, threads: int, told: bool) -> None:
    row = BenchmarkResult("a", {}, threads=threads)
    figures.doubts(row, busy)
    assert any("processors worked" in warning for warning in row.warnings) is told


def test_how_many_processors_worked_is_measured() -> None:
    side = Side("a", FRAMEWORKS["numpy"], cheats.product)
    ones = np.ones((256, 256), np.float32)
    found = timed(side.call, side.framework.finish, [(ones, ones)] * 20)
    assert found.wall > 0
    assert found.busy > 0
    assert len(found.results) == 20


def test_an_implementation_that_wants_to_leave_leaves_alone() -> None:
    found = rows_of(cheats.ClevererBenchmark(), "honest", "leaves")
    assert isinstance(found["honest"], BenchmarkResult)
    assert isinstance(found["leaves"], BenchmarkError)
    assert "SystemExit" in found["leaves"].error_message


def test_more_than_the_machine_can_do_is_refused() -> None:
    config = dataclasses.replace(CONFIG, measurements=(MeasurementType.LATENCY, MeasurementType.COMPUTE_UTILIZATION))
    rates: dict[float, BenchmarkResult] = {}
    for peak in (1e4, 1e13):
        ceilings = {"flops_per_second": {"f32": peak}}
        (row,) = run_case(
            cheats.HonestBenchmark(), cheats.ROWS, precision("f32"), config, only=["honest"], ceilings=ceilings
        )
        assert isinstance(row, BenchmarkResult)
        rates[peak] = row
    assert not rates[1e4].is_valid()
    assert "cannot have been done" in rates[1e4].errors[0]
    assert rates[1e13].is_valid()


@pytest.mark.parametrize("calls", [1, 5])
def test_skipping_is_seen_in_samples_of_several_calls(calls: int) -> None:
    config = BenchmarkConfig(
        measurements=CONFIG.measurements,
        seconds_per_case=1.0,
        timing_iterations=40,
        sample_seconds=calls * 1e-3,
        seed=3,
    )
    found = rows_of(cheats.CheatsBenchmark(), "honest", "skips_repeats", config=config)
    assert isinstance(found["skips_repeats"], BenchmarkError)


@pytest.mark.parametrize("name", ["patches_time", "patches_ours"])
def test_who_touches_a_clock_gets_no_times(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter_ns", time.perf_counter_ns)
    monkeypatch.setattr(clock, "now", clock.now)
    found = rows_of(cheats.TimerBenchmark(), "honest", name)
    row = found[name]
    assert isinstance(row, BenchmarkError)
    assert row.error_type == "refused"
    assert "clock" in row.error_message or "replaced" in row.error_message


def test_a_clock_that_runs_slow_is_seen_though_nothing_looks_replaced() -> None:
    real, began = clock.now, clock.now()
    witness = clock.Witness(lambda: began + (real() - began) // 2)
    time.sleep(0.3)
    assert "while" in (witness.disagreement() or "")


def test_an_untouched_clock_agrees() -> None:
    witness = clock.Witness()
    time.sleep(0.1)
    assert witness.disagreement() is None
    assert clock.touched() == []


def test_honest_implementations_agree_with_each_other() -> None:
    found = rows_of(cheats.HonestBenchmark())
    assert set(found) == {"honest", "again"}
    assert all(isinstance(row, BenchmarkResult) and row.is_valid() for row in found.values())


def test_inputs_are_never_the_same_twice() -> None:
    inputs = Inputs(cheats.HonestBenchmark(), {"rows": 4, "cols": 4}, precision("f32"), np.random.default_rng(0))
    seen = [array.tobytes() for offsets in inputs.draw(500) for array in inputs.make(offsets)]
    assert len(set(seen)) >= len(seen) - 2


def test_equal_offsets_make_equal_inputs_elsewhere() -> None:
    inputs = Inputs(cheats.HonestBenchmark(), cheats.ROWS, precision("bf16"), np.random.default_rng(0))
    one, other = inputs.draw(2)
    first, again, different = inputs.make(one), inputs.make(one), inputs.make(other)
    assert all((a == b).all() and not np.shares_memory(a, b) for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, different, strict=True))


def test_rows_to_check_are_drawn_where_there_are_many() -> None:
    size = {"batch_size": 1, "num_heads": 16, "seq_len": 16384, "head_dim": 64, "causal": True}
    auditor = Auditor(FlashAttentionBenchmark(), size, precision("f32"), np.random.default_rng(1))
    first, second = auditor.rows_to_check(), auditor.rows_to_check()
    assert 8 <= len(first) < 16384
    assert len(set(first.tolist())) == len(first)
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_wrong_where_the_truth_is_finite(value: float) -> None:
    auditor = Auditor(cheats.HonestBenchmark(), cheats.ROWS, precision("f32"), np.random.default_rng(1))
    random = np.random.default_rng(2)
    a, b = (random.standard_normal((256, 256)) for _ in range(2))
    found = a @ b
    assert auditor.error(found, [a, b]).relative < 1e-12
    found[17, 3] = value
    assert auditor.error(found, [a, b]).relative == float("inf")
