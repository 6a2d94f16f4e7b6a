"""Trials behind recommendations, the work that CPUs leave out, and the schedule that models choose for tiers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule
from tessera.metatracing import (
    Machine,
    MetaTracingRuntime,
    RecommendationType,
    Recommender,
    RuntimeConfig,
    Situation,
    SpecializationRecommendation,
    Trial,
)
from tessera.metatracing.analysis import trials
from tessera.metatracing.analysis.specializations import LayoutParams, Params, ShapeParams, TileParams
from tessera.metatracing.analysis.trials import InterleavedRuns, Run, Timed, copy_of, measured_gain
from tessera.metatracing.clients import advice as models_choice
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.events.tile_work import tile_work
from tessera.metatracing.models.kernel_times import Gain, shipped
from tessera.stdlib import flash_attention, gemm, layernorm, softmax
from tessera.tiers.client import Choice, TierLevel
from tessera.tiers.records import ExecutionTier

TIER2 = ExecutionTier.TIER2_STANDARD
TILE, LAYOUT = RecommendationType.TILE_SIZE_SPECIALIZATION, RecommendationType.MEMORY_LAYOUT_SPECIALIZATION


def recommended(params: Params, kind: RecommendationType = TILE) -> SpecializationRecommendation:
    return SpecializationRecommendation(kind, "", 0.1, 1, params)


def block(size: int) -> SpecializationRecommendation:
    return recommended(TileParams(Schedule(block=(size, size)), size, size))


# Trials


def test_a_gain_is_the_middle_of_the_rounds_and_its_ends_are_where_noise_could_have_put_it():
    found = measured_gain([2.0] * 9, [1.0] * 9)
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    chance = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        now, then = (np.exp(0.05 * chance.standard_normal(9)) * mean for mean in (1.2, 1.0))
        found = measured_gain(now.tolist(), then.tolist())
        inside += found.low <= 1.2 <= found.high
    assert 0.85 <= inside / 300 <= 0.99
    assert measured_gain([1.2], [1.0]).low == 0.0  # one round shows nothing
    disturbed = measured_gain([1.2] * 9, [1.0] * 8 + [5.0])  # other load was there once
    assert disturbed.low > 1.19


def test_runs_that_are_slower_in_the_first_rounds_are_dropped():
    spent: dict[str, int] = {}

    def run(name: str) -> Any:
        return lambda: name

    def timed(run: Any, count: int) -> float:
        spent[run()] = spent.get(run(), 0) + 1
        return {"now": 1.0, "slow": 1.5, "fast": 0.5}[run()]

    now, slow, fast = InterleavedRuns(timed).measure([run("now"), run("slow"), run("fast")], 9, drop_slower=True)
    assert (len(now), len(slow), len(fast)) == (9, 2, 9)
    assert spent["slow"] == 2 + 3
    assert measured_gain(now[:2], slow).low < 1
    assert all(len(one) == 9 for one in InterleavedRuns(timed).measure([run("now"), run("slow")], 9))


def test_only_what_gains_beyond_noise_is_confirmed():
    several = [block(16), block(32), block(64), block(128)]
    gains = [Gain(1.3, 0.9, 1.8, 0.8), Gain(1.1, 1.05, 1.2, 0.9), None, Gain(1.06, 1.04, 1.1, 0.9)]
    (made,) = Recommender.confirmed(zip(several, gains, strict=True))
    assert (made.params, made.tried) == (several[1].params, True)
    assert (made.expected_improvement, made.interval) == (pytest.approx(0.1), pytest.approx((0.05, 0.2)))


def test_models_say_what_is_worth_a_trial():
    times = shipped("cpu-aarch64")
    assert times is not None
    copied = recommended(LayoutParams((0,)), LAYOUT)
    ratios = ((block(16), 0.5, 0.8), (block(32), 1.0, 1.2), (block(64), 1.1, 1.2), (block(128), 1.3, 1.4))
    candidates = [(made, Gain(ratio, 0.0, high, 0.5)) for made, ratio, high in (*ratios, (copied, 0.4, 0.6))]
    assert Recommender(times).shortlist(candidates) == [block(128), block(64), copied]
    assert Recommender(times).pick(candidates) == []  # alone, it is sure of none of them


def test_a_trial_leaves_the_callers_arrays_alone(monkeypatch: pytest.MonkeyPatch):
    """The kernel is run, and what it fills is not the caller's; clocks are made up."""

    def timed(run: Run, count: int) -> float:
        run()
        return 1.0

    def timed_on(device: object) -> Timed:
        return timed

    monkeypatch.setattr(trials, "timed_on", timed_on)
    a, b, c = ts.randn((16, 16), seed=1), ts.randn((16, 16), seed=2), ts.full((16, 16), 7.0)
    form = gemm.with_schedule(Schedule(block=(8, 8, 8)))[2, 2]

    def under(schedule: Schedule) -> Any:
        assert schedule.block is not None
        return gemm.with_schedule(schedule)[16 // schedule.block[0], 16 // schedule.block[1]]

    here = Situation(form, (a, b, c), {}, Machine("cpu", 2), under=under)
    larger = recommended(TileParams(Schedule(block=(16, 16, 8)), 16, 16, 8))
    refused = recommended(ShapeParams(("nothing",)), RecommendationType.SHAPE_SPECIALIZATION)
    gain, nothing = Trial(rounds=4)(here, [larger, refused])
    assert nothing is None
    assert gain is not None
    assert gain.ratio == 1.0
    assert (c.numpy() == 7.0).all()


def test_a_runtime_tries_what_it_recommends(monkeypatch: pytest.MonkeyPatch):
    """On arrays that lie as those of the calls did. By a made-up clock whatever copies its argument first is faster."""

    def timed(run: Run, count: int) -> float:
        run()
        return 1.0 if "InRows" in repr(run.__closure__) else 2.0

    def timed_on(device: object) -> Timed:
        return timed

    monkeypatch.setattr(trials, "timed_on", timed_on)
    times = shipped("cpu-aarch64")
    assert times is not None
    config = RuntimeConfig(background_compilation=False, enable_tier3_specialization=False, sample_period=1)
    runtime = MetaTracingRuntime(config)
    tiered, x = runtime.tiered(softmax), ts.randn((24, 40), seed=1).T
    for _ in range(500):  # inputs are hot from a millisecond on
        tiered(x)
    (hot,) = runtime.analyze(times, trial=Trial(rounds=4)).hotspots
    (made,) = hot.recommendations
    assert (made.recommendation_type, made.tried) == (LAYOUT, True)
    assert made.expected_improvement == pytest.approx(1.0)


def test_arrays_of_a_trial_lie_as_the_callers_do():
    x = ts.randn((3, 4, 5), seed=1)
    for one in (x, x.mT, x.permute(2, 0, 1), ts.zeros((0, 3))):
        made = copy_of(one)
        assert made is not None
        assert (made.shape, made.strides) == (one.shape, one.strides)
        assert np.array_equal(made.numpy(), one.numpy())
    assert copy_of(x[:, ::2]) is None


# What CPUs leave out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("cut", [(32, 32), (64, 256), (128, 128)])
def test_work_without_what_masks_leave_out_is_that_of_an_enumeration(causal: bool, cut: tuple[int, int]):
    """Groups of 8 rows, of which those beyond the array are left out, and columns in steps of 16 for each iteration."""
    length, heads = 100, [ts.empty((3, 5, 100, 64)) for _ in range(4)]
    form = flash_attention.with_schedule(Schedule(block=cut)).lower(*heads, 0.125, causal=causal)
    work = tile_work(form, (*(one.meta for one in heads), 0.125), clipped=True)
    expected = 0.0
    for first in range(0, length, cut[0]):
        rows = min(cut[0], length - first)
        end = min(length, first + cut[0]) if causal else length
        for start in range(0, end, cut[1]):
            live = 0
            for group in range(0, rows, 8):
                last = min(length, first + group + 8) if causal else length
                live += min(cut[1], max(0, -(-(last - start) // 16) * 16))
            expected += live / -(-rows // 8) * rows
    assert work.total("products") == pytest.approx(15 * expected * 4 * 64)


# The schedule that models choose


def test_tiers_try_what_models_choose(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    """It is chosen where a program is compiled; others find it on the disk."""
    monkeypatch.setattr(models_choice, "model_name", lambda _: "cpu-aarch64")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with ts.knobs.cache_dir.using(tmp_path):
        client = KernelClient(layernorm)
        arrays = ts.randn((300, 250), seed=1), ts.ones((250,)), ts.zeros((250,))
        call = client.call(arrays, {})
        assert call is not None
        chosen = client.schedules(call)[1]
        assert isinstance(chosen, Choice)
        here, level = call.context.settings, TierLevel(TIER2, (), chosen)
        assert client.resolved(call, level, here, make=False) is None
        assert client.find(call, level) is None
        client.compile(call, level)
        resolved = KernelClient(layernorm).resolved(call, level, here, make=False)
        assert resolved is not None
        assert resolved.schedule is not None
        assert resolved.schedule.block in {(1, 64), (8, 64)}  # tiles that reach beyond the array, and stay near
        assert KernelClient(layernorm).find(call, level) is not None
        assert client.resolved(call, TierLevel(TIER2), here) == TierLevel(TIER2)


def test_without_a_model_the_order_is_the_targets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(models_choice, "model_name", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    client = KernelClient(layernorm)
    call = client.call((ts.empty((300, 250)), ts.empty((250,)), ts.empty((250,))), {})
    assert call is not None
    assert not any(isinstance(one, Choice) for one in client.schedules(call))
    times = shipped("cpu-aarch64")
    assert times is not None
    assert models_choice.advised(layernorm, call.values, {}, replace(times, fits={})) is None
