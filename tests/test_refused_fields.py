"""Gives every field of every configuration values that it cannot mean: each is refused, and says what it is of."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any

import pytest

from tessera.bench.results.definitions import BenchmarkConfig, HardwareConfig
from tessera.bench.validation.benchmark_suite import TierBenchmarkConfig
from tessera.bench.validation.framework import ValidationConfig
from tessera.errors import TesseraError
from tessera.metatracing.analysis.hotspots import HotspotCriteria
from tessera.metatracing.first_tier import InterpreterConfig
from tessera.metatracing.upper_tiers import CompilationOptions
from tessera.tiers.config import RuntimeConfig

CONFIGURATIONS: dict[type[Any], dict[str, Any]] = {
    RuntimeConfig: {},
    InterpreterConfig: {},
    CompilationOptions: {},
    HotspotCriteria: {},
    ValidationConfig: {},
    TierBenchmarkConfig: {"input_configs": ()},
    BenchmarkConfig: {},
    HardwareConfig: {"gpu_arch": "sm_90"},
}
# By what annotations say.
BAD: dict[str, list[Any]] = {
    "bool": [0, 1, "yes", None, 1.0, []],
    "int": [-1, True, 1.5, math.nan, math.inf, "3", None, [1]],
    "float": [-1, -0.5, True, math.nan, -math.inf, "3", None, [1.0], 1j],
    "str": [0, True, None, b"sm_90", 1.5],
}
# Figures that only describe.
FREE = {"nvlink_bandwidth_gbps", "nvswitch_bandwidth_gbps"}
CASES = [
    (owner, one.name, value)
    for owner in CONFIGURATIONS
    for one in fields(owner)
    for value in BAD.get(str(one.type).removesuffix(" | None"), [])
    if not (value is None and str(one.type).endswith("| None"))
    and not (one.name in FREE and isinstance(value, float | int) and not isinstance(value, bool) and value < 0)
]


def test_nothing_that_makes_no_sense_is_accepted() -> None:
    accepted: list[str] = []
    for owner, name, value in CASES:
        try:
            owner(**{**CONFIGURATIONS[owner], name: value})
        except TesseraError:
            continue
        accepted.append(f"{owner.__name__}.{name} = {value!r}")
    assert len(CASES) > 300
    assert accepted == []


@pytest.mark.parametrize("owner", CONFIGURATIONS)
def test_defaults_are_accepted_and_refusals_are_at_the_line_of_the_user(owner: type[Any]) -> None:
    made = owner(**CONFIGURATIONS[owner])
    name = next(one.name for one in fields(owner) if str(one.type) in BAD and one.default is not MISSING)
    with pytest.raises(TesseraError, match=rf"{owner.__name__}\.{name} .*, got \[") as caught:
        owner(**{**CONFIGURATIONS[owner], name: [made]})
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (RuntimeConfig, "invariance", 0.5),
        (RuntimeConfig, "distributed_rank", 1),
        (RuntimeConfig, "half_life_s", 0),
        (CompilationOptions, "optimization_level", 4),
        (BenchmarkConfig, "statistical_significance", 1.0),
        (BenchmarkConfig, "statistical_significance", 95),
        (BenchmarkConfig, "timing_iterations", 0),
        (TierBenchmarkConfig, "confidence_interval", 0.0),
        (TierBenchmarkConfig, "enable_statistical_analysis", False),
    ],
)
def test_ends_of_ranges(owner: type[Any], name: str, value: Any) -> None:
    with pytest.raises(TesseraError, match=name):
        owner(**{**CONFIGURATIONS[owner], name: value})
