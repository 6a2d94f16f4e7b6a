"""Checks that a manager puts generated programs to use, and that what it cannot load changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.errors import TesseraError
from tessera.metatracing import (
    ExecutionTier,
    MetaTracingRuntime,
    RecommendationType,
    RuntimeConfig,
    SpecializationRecommendation,
    SpecializedKernel,
    SpecializedKernelGenerator,
)
from tessera.metatracing.analysis.specializations import DtypeParams, Params, ShapeParams, TileParams

TIER1, TIER2, TIER3 = ExecutionTier


@kernel
def doubled(x: Any) -> Any:
    return tile.load(x) * 2.0


@kernel
def tripled(x: Any) -> Any:
    return tile.load(x) * 3.0


@pytest.fixture
def runtime() -> Iterator[MetaTracingRuntime]:
    # It never compiles for a higher tier within a test: what runs above Tier 1 was loaded.
    config = RuntimeConfig(
        persist=False,
        background_compilation=False,
        sample_period=0,
        tier2_compilation_threshold_ms=1e9,
        tier3_specialization_threshold_ms=1e9,
    )
    with MetaTracingRuntime(config) as one:
        yield one


def generated(runtime: MetaTracingRuntime, params: Params) -> SpecializedKernel:
    kinds: dict[type[Any], RecommendationType] = {
        ShapeParams: RecommendationType.SHAPE_SPECIALIZATION,
        TileParams: RecommendationType.TILE_SIZE_SPECIALIZATION,
        DtypeParams: RecommendationType.DTYPE_SPECIALIZATION,
    }
    advice = SpecializationRecommendation(kinds[type(params)], "made up", 0.3, 1, params)
    traces = runtime.get_traces()
    return SpecializedKernelGenerator().generate_specialized_kernel(traces, advice, doubled)


def tier_of(runtime: MetaTracingRuntime, x: ts.Tensor) -> int:
    """The tier that a call ran at, whose result is right."""
    before = runtime.get_runtime_stats()
    result = runtime.tiered(doubled)(x)
    assert np.array_equal(result.numpy(), x.numpy() * 2)
    after = runtime.get_runtime_stats()
    names = [f"tier{tier}_executions" for tier in (1, 2, 3)]
    (ran,) = [tier for tier, name in enumerate(names, 1) if getattr(after, name) > getattr(before, name)]
    return ran


def test_a_generated_program_runs_from_then_on_where_its_guards_hold(runtime: MetaTracingRuntime) -> None:
    x, other = ts.randn((12, 20), seed=0), ts.randn((12, 24), seed=1)
    assert tier_of(runtime, x) == 1
    loaded = runtime.manager.load_specialized_kernel(generated(runtime, ShapeParams(("sizes",))))
    assert (loaded.kernel_name, loaded.level.tier) == ("doubled", TIER3)
    assert len(runtime.manager) == 1
    assert tier_of(runtime, x) == 3
    assert tier_of(runtime, other) == 1  # a guard refuses it
    assert runtime.counts["loads"] == 1
    runtime.manager.unload_specialized_kernel("doubled")
    assert (len(runtime.manager), tier_of(runtime, x)) == (0, 1)


def test_programs_of_several_tiers_are_loaded_and_one_that_rests_on_the_same_is_replaced(
    runtime: MetaTracingRuntime,
) -> None:
    x, other = ts.randn((12, 20), seed=0), ts.randn((9, 20), seed=1)
    tier_of(runtime, x)
    manager = runtime.manager
    manager.load_specialized_kernel(generated(runtime, TileParams(Schedule(block=(4,)), 4, 0)))
    assert (tier_of(runtime, x), tier_of(runtime, other)) == (2, 2)
    manager.load_specialized_kernel(generated(runtime, ShapeParams(("sizes",))))
    manager.load_specialized_kernel(generated(runtime, TileParams(Schedule(block=(8,)), 8, 0)))
    assert {one.level.schedule for one in manager.specialized_kernels()} == {None, Schedule(block=(8,))}
    assert sorted(int(one.level.tier) for one in manager.specialized_kernels()) == [2, 3]
    assert tier_of(runtime, other) == 3  # what was compiled asks for no number of rows


def refused(runtime: MetaTracingRuntime) -> dict[str, tuple[Any, str]]:
    """What cannot be loaded, and what is said of it."""
    x = ts.randn((12, 20), seed=0)
    tier_of(runtime, x)
    runtime.tiered(tripled)(x)
    made = generated(runtime, ShapeParams(("sizes",)))
    call = made.call
    assert call is not None
    elsewhere = replace(call.context.settings, target="cuda", level="sm_90a")
    return {
        "no kernel": (doubled, "a manager loads a SpecializedKernel, got"),
        "none": (None, "a manager loads a SpecializedKernel, got NoneType"),
        "described": (replace(made, compiled=None), "only describes a program"),
        "type": (generated(runtime, DtypeParams(ts.bf16)), "has not run doubled with arguments of such types"),
        "target": (
            replace(made, call=call._replace(context=call.context._replace(settings=elsewhere))),
            "was generated for cuda sm_90a",
        ),
        "tier": (replace(made, level=replace(made.level, tier=TIER1)), "made when calls need them"),
    }


def test_what_cannot_be_loaded_is_refused_and_changes_nothing(runtime: MetaTracingRuntime) -> None:
    for given, said in refused(runtime).values():
        with pytest.raises(TesseraError, match=said):
            runtime.manager.load_specialized_kernel(given)
    assert (len(runtime.manager), runtime.manager.nbytes, runtime.manager.specialized_kernels()) == (0, 0, [])
    assert tier_of(runtime, ts.randn((12, 20), seed=0)) == 1


def test_what_is_no_program_of_a_site_is_not_admitted(runtime: MetaTracingRuntime) -> None:
    tier_of(runtime, ts.randn((12, 20), seed=0))
    made: Any = generated(runtime, ShapeParams(("sizes",)))
    with pytest.raises(TesseraError, match="load_specialized_kernel takes one"):
        runtime.manager.admit(made)
    assert (len(runtime.manager), runtime.manager.nbytes) == (0, 0)
    assert runtime.manager.find_best_specialized_kernel((ts.randn((12, 20), seed=0),)) is None


def test_a_program_that_another_runtime_has_not_called_is_refused(runtime: MetaTracingRuntime) -> None:
    tier_of(runtime, ts.randn((12, 20), seed=0))
    made = generated(runtime, ShapeParams(("sizes",)))
    with MetaTracingRuntime(RuntimeConfig(persist=False, background_compilation=False)) as fresh:
        with pytest.raises(TesseraError, match="has not run doubled"):
            fresh.manager.load_specialized_kernel(made)
        fresh.tiered(doubled)(ts.randn((3, 4), seed=0))
        fresh.manager.load_specialized_kernel(made)
        assert tier_of(fresh, ts.randn((12, 20), seed=0)) == 3
