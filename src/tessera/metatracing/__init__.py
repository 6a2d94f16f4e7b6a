"""Meta-tracing: kernels in tiers, compiled with the facts that their own calls show."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.metatracing.analysis.hotspots import HotspotCandidate, HotspotCriteria, HotspotDetector
from tessera.metatracing.attention import BASELINE, AttentionParams, flash_attention
from tessera.metatracing.ranks import (
    CollectiveEvent,
    DistributedExecutionTracer,
    DistributedTrace,
    enable_distributed_tracing,
)
from tessera.metatracing.runtime import MetaTracingRuntime, RuntimeResult, execute_flash_attention, shared_runtime
from tessera.tiers.client import Call, Client, Compiled, GuardType, RuntimeGuard, TierLevel
from tessera.tiers.config import MOST_BRIDGES, RuntimeConfig
from tessera.tiers.manager import KernelManager, SpecializationContext, SpecializedKernel
from tessera.tiers.records import (
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    InputProfile,
    OptimizationOpportunities,
    PerformanceSample,
)
from tessera.tiers.reports import RuntimeStats
from tessera.tiers.risks import PerformanceRisk, RiskMitigationFramework, RiskType
from tessera.tiers.sites.hotness import ManualClock
from tessera.tiers.tiered import Tiered

if TYPE_CHECKING:
    from tessera.metatracing.analysis.analyzer import (
        AnalysisResult,
        FusionOptimizer,
        OptimizationCandidate,
        OptimizationType,
        PatternAnalyzer,
        PerformanceProfile,
    )
    from tessera.metatracing.analysis.matchers import (
        ComputePatternMatcher,
        MemoryPatternMatcher,
        SequencePattern,
        SequencePatternMatcher,
        ShapePattern,
        ShapePatternMatcher,
        ShapeType,
    )
    from tessera.metatracing.analysis.recommendations import Recommender
    from tessera.metatracing.analysis.specializations import RecommendationType, SpecializationRecommendation
    from tessera.metatracing.analysis.trends import PerformanceTrend, analyze_performance_trends
    from tessera.metatracing.analysis.trials import Trial
    from tessera.metatracing.events.execution import KernelExecution
    from tessera.metatracing.events.host import HostExecution, HostMemoryPatternTracer, HostResources
    from tessera.metatracing.events.kinds import AccessType, ComputeEvent, ComputeType, MemoryAccessEvent
    from tessera.metatracing.events.monitor import PerformanceMetrics, PerformanceMonitor
    from tessera.metatracing.events.tracers import (
        ComputeTrace,
        GPUComputePatternTracer,
        GPUMemoryPatternTracer,
        MemoryAccessTrace,
        MemoryTracer,
    )
    from tessera.metatracing.first_tier import (
        ExecutionTrace,
        FlashAttentionInterpreter,
        InterpreterConfig,
        KernelLaunchInfo,
        MemoryTransferInfo,
        TesseraInterpreter,
    )
    from tessera.metatracing.models.attention import (
        FlashAttentionPerformanceModel,
        ModelParameters,
        PerformancePrediction,
    )
    from tessera.metatracing.models.kernel_times import KernelTimes
    from tessera.metatracing.models.situation import Situation
    from tessera.metatracing.models.tiers import (
        DetailedBreakdown,
        OptimizationImpact,
        OptimizationImpactPredictor,
        TierPerformancePrediction,
        TierPrediction,
        TileConfiguration,
        TileConfigurationOptimizer,
    )
    from tessera.metatracing.models.work_features import H200, Machine
    from tessera.metatracing.reference import ReferenceFlashAttention
    from tessera.metatracing.upper_tiers import (
        CompilationOptions,
        CompilationResult,
        EnhancedTesseraCompiler,
        MemoryLayoutOptimizer,
        SpecializedKernelGenerator,
        TraceContext,
        TraceSpecializationEngine,
    )

# These are loaded when they are asked for: calls need none of them.
_LATER: dict[str, tuple[str, ...]] = {
    "analysis.analyzer": (
        "AnalysisResult",
        "FusionOptimizer",
        "OptimizationCandidate",
        "OptimizationType",
        "PatternAnalyzer",
        "PerformanceProfile",
    ),
    "analysis.matchers": (
        "ComputePatternMatcher",
        "MemoryPatternMatcher",
        "SequencePattern",
        "SequencePatternMatcher",
        "ShapePattern",
        "ShapePatternMatcher",
        "ShapeType",
    ),
    "analysis.recommendations": ("Recommender",),
    "analysis.specializations": ("RecommendationType", "SpecializationRecommendation"),
    "analysis.trends": ("PerformanceTrend", "analyze_performance_trends"),
    "analysis.trials": ("Trial",),
    "upper_tiers": (
        "CompilationOptions",
        "CompilationResult",
        "EnhancedTesseraCompiler",
        "MemoryLayoutOptimizer",
        "SpecializedKernelGenerator",
        "TraceContext",
        "TraceSpecializationEngine",
    ),
    "events.execution": ("KernelExecution",),
    "events.host": ("HostExecution", "HostMemoryPatternTracer", "HostResources"),
    "events.kinds": ("AccessType", "ComputeEvent", "ComputeType", "MemoryAccessEvent"),
    "events.monitor": ("PerformanceMetrics", "PerformanceMonitor"),
    "events.tracers": (
        "ComputeTrace",
        "GPUComputePatternTracer",
        "GPUMemoryPatternTracer",
        "MemoryAccessTrace",
        "MemoryTracer",
    ),
    "first_tier": (
        "ExecutionTrace",
        "FlashAttentionInterpreter",
        "InterpreterConfig",
        "KernelLaunchInfo",
        "MemoryTransferInfo",
        "TesseraInterpreter",
    ),
    "models.work_features": ("H200", "Machine"),
    "models.attention": ("FlashAttentionPerformanceModel", "ModelParameters", "PerformancePrediction"),
    "models.kernel_times": ("KernelTimes",),
    "models.situation": ("Situation",),
    "models.tiers": (
        "DetailedBreakdown",
        "OptimizationImpact",
        "OptimizationImpactPredictor",
        "TileConfiguration",
        "TileConfigurationOptimizer",
        "TierPerformancePrediction",
        "TierPrediction",
    ),
    "reference": ("ReferenceFlashAttention",),
}
# Who validates tiers looks for this here, too; it measures, so that it lives above, and nothing here uses it.
_VALIDATION = ("ValidationFramework", "ValidationIssue", "ValidationReport", "ValidationSuite")
_MODULES = {name: f"{__name__}.{module}" for module, names in _LATER.items() for name in names} | dict.fromkeys(
    _VALIDATION, "tessera.bench.validation"
)


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


__all__ = [
    "BASELINE",
    "H200",
    "MOST_BRIDGES",
    "AccessType",
    "AnalysisResult",
    "AttentionParams",
    "AttentionTrace",
    "Call",
    "Client",
    "CollectiveEvent",
    "CompilationOptions",
    "CompilationResult",
    "Compiled",
    "ComputeEvent",
    "ComputePatternMatcher",
    "ComputeTrace",
    "ComputeType",
    "DetailedBreakdown",
    "DistributedExecutionTracer",
    "DistributedTrace",
    "EnhancedTesseraCompiler",
    "ExecutionPattern",
    "ExecutionTier",
    "ExecutionTrace",
    "FlashAttentionInterpreter",
    "FlashAttentionPerformanceModel",
    "FusionOptimizer",
    "GPUComputePatternTracer",
    "GPUMemoryPatternTracer",
    "GuardType",
    "HostExecution",
    "HostMemoryPatternTracer",
    "HostResources",
    "HotspotCandidate",
    "HotspotCriteria",
    "HotspotDetector",
    "InputProfile",
    "InterpreterConfig",
    "KernelExecution",
    "KernelLaunchInfo",
    "KernelManager",
    "KernelTimes",
    "Machine",
    "ManualClock",
    "MemoryAccessEvent",
    "MemoryAccessTrace",
    "MemoryLayoutOptimizer",
    "MemoryPatternMatcher",
    "MemoryTracer",
    "MemoryTransferInfo",
    "MetaTracingRuntime",
    "ModelParameters",
    "OptimizationCandidate",
    "OptimizationImpact",
    "OptimizationImpactPredictor",
    "OptimizationOpportunities",
    "OptimizationType",
    "PatternAnalyzer",
    "PerformanceMetrics",
    "PerformanceMonitor",
    "PerformancePrediction",
    "PerformanceProfile",
    "PerformanceRisk",
    "PerformanceSample",
    "PerformanceTrend",
    "RecommendationType",
    "Recommender",
    "ReferenceFlashAttention",
    "RiskMitigationFramework",
    "RiskType",
    "RuntimeConfig",
    "RuntimeGuard",
    "RuntimeResult",
    "RuntimeStats",
    "SequencePattern",
    "SequencePatternMatcher",
    "ShapePattern",
    "ShapePatternMatcher",
    "ShapeType",
    "Situation",
    "SpecializationContext",
    "SpecializationRecommendation",
    "SpecializedKernel",
    "SpecializedKernelGenerator",
    "TesseraInterpreter",
    "TierLevel",
    "TierPerformancePrediction",
    "TierPrediction",
    "Tiered",
    "TileConfiguration",
    "TileConfigurationOptimizer",
    "TraceContext",
    "TraceSpecializationEngine",
    "Trial",
    "analyze_performance_trends",
    "enable_distributed_tracing",
    "execute_flash_attention",
    "flash_attention",
    "shared_runtime",
]


def __dir__() -> list[str]:
    return sorted(__all__)
