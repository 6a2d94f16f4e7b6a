"""Models of running times: fits that find what data were made of, intervals that hold, and predictions of tiers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tessera as ts
from tessera import TesseraError
from tessera.metatracing import (
    H200,
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    FlashAttentionPerformanceModel,
    InputProfile,
    KernelTimes,
    Machine,
    ModelParameters,
    OptimizationImpactPredictor,
    TierPerformancePrediction,
    TileConfiguration,
    TileConfigurationOptimizer,
)
from tessera.metatracing.events.tile_work import tile_work
from tessera.metatracing.models.fitting import Fitted, fit
from tessera.metatracing.models.kernel_times import shipped

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
TIER1, TIER2, TIER3 = ExecutionTier
START = {"always": 1e-6, "work": 1e-9, "bytes": 1e-9}


def made_up(count: int, seed: int, noise: float) -> tuple[list[dict[str, float]], list[float]]:
    chance = np.random.default_rng(seed)
    rows = [
        {"always": 1.0, "work": float(work), "bytes": float(size)}
        for work, size in 10 ** chance.uniform(1, 7, (count, 2))
    ]
    times = [5e-6 + 3e-9 * row["work"] + 8e-10 * row["bytes"] for row in rows]
    return rows, [float(time * np.exp(noise * chance.standard_normal())) for time in times]


def test_a_fit_finds_what_times_were_made_of():
    found = fit(*made_up(200, 0, 0.02), START)
    assert found.power == 1.0
    assert np.exp(found.logs) == pytest.approx([5e-6, 3e-9, 8e-10], rel=0.1)
    assert found.median_error < 0.03
    assert sum(found.parts({"always": 1.0, "work": 1e6, "bytes": 1e6}).values()) == pytest.approx(
        5e-6 + 3.8e-3, rel=0.1
    )
    assert Fitted.read(json.loads(json.dumps(found.written()))) == found


def test_intervals_hold_for_what_was_not_seen():
    found = fit(*made_up(600, 1, 0.2), START)
    rows, times = made_up(400, 2, 0.2)
    inside = [
        low <= time <= high
        for row, time in zip(rows, times, strict=True)
        for low, high in [found.interval(found.seconds(row))]
    ]
    assert 0.9 <= np.mean(inside) <= 0.99


def test_too_little_is_refused():
    with pytest.raises(TesseraError, match="at least 8 measured rows"):
        fit(*made_up(5, 0, 0.1), START)


# Attention


def test_operations_are_four_for_each_term():
    params = ModelParameters(2, 4, 512, 64)
    assert params.flops == 4 * 2 * 4 * 512 * 512 * 64
    assert replace(params, is_causal=True).flops == params.flops / 2
    assert params.memory_bytes == 4 * 2 * 4 * 512 * 64 * 2


def test_work_is_that_of_the_tile_program():
    from tessera.stdlib import flash_attention

    heads = [ts.empty((2, 4, 512, 64)) for _ in range(4)]
    described = (*(one.meta for one in heads), 0.125)
    whole = tile_work(flash_attention.lower(*heads, 0.125), described)
    causal = tile_work(flash_attention.lower(*heads, 0.125, causal=True), described)
    assert whole.total("products") == 4 * 2 * 4 * 512 * 512 * 64
    assert whole.total("products") / 2 < causal.total("products") < 0.6 * whole.total("products")
    assert whole.total("far") == 0
    assert whole.busiest("products", 1) == pytest.approx(whole.total("products"))
    assert whole.busiest("products", 10**6) == pytest.approx(whole.total("products") / whole.programs)


def test_predictions_are_near_what_was_measured():
    """Some of the rows that the model was fitted to; `benchmarks/model_error.py` has those that it was not."""
    rows = json.loads((RESULTS / "sweep-h200.json").read_text())["rows"]
    chosen = [row for row in rows if row["kernel"] == "attention" and row["layout"] == "rows" and not row["assumed"]]
    model = FlashAttentionPerformanceModel()
    errors: list[float] = []
    for row in [row for row in chosen if row["dtype"] == "bf16"][::80]:
        block = None if row["block"] is None else tuple(row["block"])
        batch, heads, length, width = row["sizes"]
        found = model.predict_performance(
            ModelParameters(batch, heads, length, width, row["causal"], block=block, warps=row["warps"])
        )
        errors.append(abs(found.predicted_time_ms / 1e3 / row["seconds"] - 1))
        low, high = found.time_confidence_interval
        assert low < found.predicted_time_ms < high
        ratios = found.compute_bound_ratio + found.memory_bound_ratio + found.overhead_ratio
        assert ratios == pytest.approx(1)
    assert np.median(errors) < 0.15


def trace(rows: int, ms: float, *, tier: ExecutionTier = TIER1, dtype: ts.DType = ts.bf16) -> AttentionTrace:
    profile = InputProfile(4, 16, rows, 64, dtype)
    return AttentionTrace(profile, ExecutionPattern(ms), tier, 0)


def test_tiers_are_predicted_from_what_the_first_one_took():
    params = ModelParameters(4, 16, 2048, 64, block=(64, 64))
    predictor = TierPerformancePrediction()
    plain = predictor.predict_tier_performance(params)
    assert plain.tier1_time_ms > plain.tier2_time_ms > plain.tier3_time_ms
    assert plain.tier3_speedup == pytest.approx(plain.tier1_time_ms / plain.tier3_time_ms)
    assert plain.tier3_confidence > 0.9
    # Measured times replace predicted ones.
    seen = predictor.predict_tier_performance(params, [trace(2048, 2 * plain.tier1_time_ms)])
    assert seen.tier1_time_ms == pytest.approx(2 * plain.tier1_time_ms)
    assert seen.tier3_speedup == pytest.approx(plain.tier3_speedup)


def test_optimisations_are_worth_what_the_model_says():
    predictor = OptimizationImpactPredictor()
    traces = [trace(2048, 0.1) for _ in range(4)]
    better = predictor.predict_tile_size_optimization(
        TileConfiguration(64, 64, 64, 2, 4), TileConfiguration(128, 128, 64, 2, 8), traces
    )
    worse = predictor.predict_tile_size_optimization(
        TileConfiguration(128, 128, 64, 2, 8), TileConfiguration(64, 64, 64, 2, 4), traces
    )
    assert better.expected_speedup > 1.1
    assert worse.expected_speedup < 1
    assert better.confidence_score > 0.9
    assert worse.confidence_score < 0.1
    assert better.risk_factor == pytest.approx(1 - better.confidence_score)
    assert better.breakdown.compute_improvement > 0
    once = predictor.predict_shape_specialization([trace(2048, 0.1)])
    assert once.expected_speedup == pytest.approx(1)  # an input that comes once is not specialised for
    assert predictor.predict_shape_specialization(traces).expected_speedup > 1.03
    wide = [trace(2048, 1.0, dtype=ts.f32)]
    assert predictor.predict_data_type_specialization(wide).expected_speedup > 2
    with pytest.raises(TesseraError, match="got none"):
        predictor.predict_shape_specialization([])


def test_schedules_are_ranked():
    optimizer = TileConfigurationOptimizer()
    ranked = optimizer.ranked(ModelParameters(4, 16, 2048, 64))
    assert [seconds for _, seconds in ranked] == sorted(seconds for _, seconds in ranked)
    best = optimizer.optimize_tile_size([trace(2048, 0.1)])
    assert (best.block_m, best.block_n) == ranked[0][0]
    assert optimizer.optimize_tile_size([]) == TileConfiguration()
    with pytest.raises(TesseraError, match="not of"):
        optimizer.optimize_tile_size([trace(2048, 0.1)], Machine("cpu", 4, "another"))


def test_a_model_is_calibrated_on_traces_and_kept(tmp_path: Path):
    """Made-up times of attention on a made-up CPU; what is read back predicts the same."""
    machine = Machine("cpu", 4, "made up")
    truth = shipped("cpu-aarch64")
    assert truth is not None
    source = FlashAttentionPerformanceModel(replace(truth, machine=machine))
    traces: list[AttentionTrace] = []
    for rows in (64, 96, 128, 200, 256, 384, 512, 640, 768, 1024):
        profile = InputProfile(2, 4, rows, 64, ts.f32)
        params = ModelParameters(2, 4, rows, 64, dtype=ts.f32)
        time = 2 * source.predict_performance(params).predicted_time_ms
        traces.append(AttentionTrace(profile, ExecutionPattern(time), TIER1, 0))
    model = FlashAttentionPerformanceModel.calibrated(machine, traces)
    for one in traces[2:-2]:
        params = ModelParameters(2, 4, one.input_profile.seq_len, 64, dtype=ts.f32)
        found = model.predict_performance(params).predicted_time_ms
        assert found == pytest.approx(one.execution_pattern.execution_time_ms, rel=0.15)
    path = tmp_path / "model.json"
    path.write_text(model.times.written())
    assert KernelTimes.read(path.read_text()) == model.times
    with pytest.raises(ValueError, match="not a model"):
        KernelTimes.read("{}")


def test_there_is_a_model_of_the_h200():
    found = shipped(H200.name)
    assert found is not None
    assert found.machine == H200
    assert shipped("nowhere") is None
    assert {"cuda warp groups", "cuda warp groups with functions", "cuda products", "cuda rows"} <= set(found.fits)


def test_models_of_earlier_versions_are_read():
    found = shipped(H200.name)
    assert found is not None
    older = found.written().replace('"iterations"', '"turns"').replace("cuda warp groups", "cuda agents")
    assert older != found.written()
    assert KernelTimes.read(older) == found
