"""Meta-tracing: kernels in tiers, compiled with the facts that their own calls show."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tessera.metatracing.attention import BASELINE, AttentionParams, flash_attention
from tessera.metatracing.client import Call, Client, Compiled, GuardType, Level, RuntimeGuard
from tessera.metatracing.config import MOST_BRIDGES, RuntimeConfig
from tessera.metatracing.heat import ManualClock
from tessera.metatracing.hotspots import HotspotCandidate, HotspotCriteria, HotspotDetector
from tessera.metatracing.manager import KernelManager, SpecializationContext, SpecializedKernel
from tessera.metatracing.ranks import (
    CollectiveEvent,
    DistributedExecutionTracer,
    DistributedTrace,
    enable_distributed_tracing,
)
from tessera.metatracing.records import (
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    InputProfile,
    OptimizationOpportunities,
    PerformanceSample,
)
from tessera.metatracing.risks import PerformanceRisk, RiskMitigationFramework, RiskType
from tessera.metatracing.runtime import (
    MetaTracingRuntime,
    RuntimeResult,
    RuntimeStats,
    execute_flash_attention,
    shared_runtime,
)
from tessera.metatracing.tiered import Tiered

__all__ = [
    "BASELINE",
    "MOST_BRIDGES",
    "AttentionParams",
    "AttentionTrace",
    "Call",
    "Client",
    "CollectiveEvent",
    "Compiled",
    "DistributedExecutionTracer",
    "DistributedTrace",
    "ExecutionPattern",
    "ExecutionTier",
    "GuardType",
    "HotspotCandidate",
    "HotspotCriteria",
    "HotspotDetector",
    "InputProfile",
    "KernelManager",
    "Level",
    "ManualClock",
    "MetaTracingRuntime",
    "OptimizationOpportunities",
    "PerformanceRisk",
    "PerformanceSample",
    "RiskMitigationFramework",
    "RiskType",
    "RuntimeConfig",
    "RuntimeGuard",
    "RuntimeResult",
    "RuntimeStats",
    "SpecializationContext",
    "SpecializedKernel",
    "Tiered",
    "enable_distributed_tracing",
    "execute_flash_attention",
    "flash_attention",
    "shared_runtime",
]

# What validates tiers measures them, too, and so lives with the benchmarks; it is loaded when first used.
_VALIDATION = (
    "BenchmarkSuite",
    "ReferenceFlashAttention",
    "TierBenchmarkConfig",
    "TierBenchmarkResult",
    "TierMetrics",
    "ValidationConfig",
    "ValidationFramework",
    "ValidationIssue",
    "ValidationReport",
    "ValidationResult",
    "ValidationSuite",
)


def __getattr__(name: str) -> Any:
    if name not in _VALIDATION:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tessera.bench.validation"), name)
