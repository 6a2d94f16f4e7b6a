"""Meta-tracing: kernels in tiers, compiled with the facts that their own calls show. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for tools that read sources
    from tessera.metatracing.analysis.analyzer import *
    from tessera.metatracing.analysis.hotspots import *
    from tessera.metatracing.analysis.matchers import *
    from tessera.metatracing.analysis.recommendations import *
    from tessera.metatracing.analysis.specializations import *
    from tessera.metatracing.analysis.trends import *
    from tessera.metatracing.analysis.trials import *
    from tessera.metatracing.attention import *
    from tessera.metatracing.events.execution import *
    from tessera.metatracing.events.host import *
    from tessera.metatracing.events.kinds import *
    from tessera.metatracing.events.monitor import *
    from tessera.metatracing.events.tracers import *
    from tessera.metatracing.first_tier import *
    from tessera.metatracing.models.attention import *
    from tessera.metatracing.models.kernel_times import *
    from tessera.metatracing.models.situation import *
    from tessera.metatracing.models.tiers import *
    from tessera.metatracing.models.work_features import *
    from tessera.metatracing.ranks import *
    from tessera.metatracing.reference import *
    from tessera.metatracing.runtime import *
    from tessera.metatracing.upper_tiers import *
    from tessera.tiers.client import *
    from tessera.tiers.config import *
    from tessera.tiers.manager import *
    from tessera.tiers.records import *
    from tessera.tiers.reports import *
    from tessera.tiers.risks import *
    from tessera.tiers.sites.hotness import *
    from tessera.tiers.tiered import *

_HOMES = {
    "metatracing.analysis.analyzer": (
        *("AnalysisResult", "FusionOptimizer", "OptimizationCandidate", "OptimizationType"),
        *("PatternAnalyzer", "PerformanceProfile"),
    ),
    "metatracing.analysis.hotspots": ("HotspotCandidate", "HotspotCriteria", "HotspotDetector"),
    "metatracing.analysis.matchers": (
        *("ComputePatternMatcher", "MemoryPatternMatcher", "SequencePattern", "SequencePatternMatcher"),
        *("ShapePattern", "ShapePatternMatcher", "ShapeType"),
    ),
    "metatracing.analysis.recommendations": ("Recommender",),
    "metatracing.analysis.specializations": ("RecommendationType", "SpecializationRecommendation"),
    "metatracing.analysis.trends": ("PerformanceTrend", "analyze_performance_trends"),
    "metatracing.analysis.trials": ("Trial",),
    "metatracing.attention": ("AttentionParams", "BASELINE", "flash_attention"),
    "metatracing.events.execution": ("KernelExecution",),
    "metatracing.events.host": ("HostExecution", "HostMemoryPatternTracer", "HostResources"),
    "metatracing.events.kinds": ("AccessType", "ComputeEvent", "ComputeType", "MemoryAccessEvent"),
    "metatracing.events.monitor": ("PerformanceMetrics", "PerformanceMonitor"),
    "metatracing.events.tracers": (
        *("ComputeTrace", "GPUComputePatternTracer", "GPUMemoryPatternTracer", "MemoryAccessTrace", "MemoryTracer"),
    ),
    "metatracing.first_tier": (
        *("ExecutionTrace", "FlashAttentionInterpreter", "InterpreterConfig", "KernelLaunchInfo"),
        *("MemoryTransferInfo", "TesseraInterpreter"),
    ),
    "metatracing.models.attention": ("FlashAttentionPerformanceModel", "ModelParameters", "PerformancePrediction"),
    "metatracing.models.kernel_times": ("KernelTimes",),
    "metatracing.models.situation": ("Situation",),
    "metatracing.models.tiers": (
        *("DetailedBreakdown", "OptimizationImpact", "OptimizationImpactPredictor", "TierPerformancePrediction"),
        *("TierPrediction", "TileConfiguration", "TileConfigurationOptimizer"),
    ),
    "metatracing.models.work_features": ("H200", "Machine"),
    "metatracing.ranks": (
        *("CollectiveEvent", "DistributedExecutionTracer", "DistributedTrace", "enable_distributed_tracing"),
    ),
    "metatracing.reference": ("ReferenceFlashAttention",),
    "metatracing.runtime": ("MetaTracingRuntime", "RuntimeResult", "execute_flash_attention", "shared_runtime"),
    "metatracing.upper_tiers": (
        *("CompilationOptions", "CompilationResult", "EnhancedTesseraCompiler", "MemoryLayoutOptimizer"),
        *("SpecializedKernelGenerator", "TraceContext", "TraceSpecializationEngine"),
    ),
    "tiers.client": ("Call", "Client", "Compiled", "GuardType", "RuntimeGuard", "TierLevel"),
    "tiers.config": ("MOST_BRIDGES", "RuntimeConfig"),
    "tiers.manager": ("KernelManager", "SpecializationContext", "SpecializedKernel"),
    "tiers.records": (
        *("AttentionTrace", "ExecutionPattern", "ExecutionTier", "InputProfile"),
        *("OptimizationOpportunities", "PerformanceSample"),
    ),
    "tiers.reports": ("RuntimeStats",),
    "tiers.risks": ("PerformanceRisk", "RiskMitigationFramework", "RiskType"),
    "tiers.sites.hotness": ("ManualClock",),
    "tiers.tiered": ("Tiered",),
}
"""The public names by the module that defines them."""
# Who validates tiers looks for these here, too; they measure, so that they live above, and nothing here uses them.
_VALIDATION = ("ValidationFramework", "ValidationIssue", "ValidationReport", "ValidationSuite")
_MODULES = {name: f"tessera.{module}" for module, names in _HOMES.items() for name in names} | dict.fromkeys(
    _VALIDATION, "tessera.bench.validation"
)
globals()["__all__"] = sorted({*_MODULES} - {*_VALIDATION})


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return globals()["__all__"]
