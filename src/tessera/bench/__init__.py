"""TesseraBench: benchmarks that are calibrated and hard to fool. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessera.bench.analysis import AnalysisEngine
    from tessera.bench.comparison import Change, Verdict, compare_runs, compare_samples
    from tessera.bench.configs import InputConfiguration, StandardBenchmarkConfigs
    from tessera.bench.core import TesseraBench
    from tessera.bench.definitions import (
        BenchError,
        BenchmarkConfig,
        BenchmarkMode,
        BenchmarkProtocol,
        HardwareConfig,
        MeasurementType,
    )
    from tessera.bench.distributed import DistributedCoordinator
    from tessera.bench.duel import calibrate, duel, slowed
    from tessera.bench.hardware import HardwareProfiler, ProfilingHandle
    from tessera.bench.inspector import IRInspector
    from tessera.bench.integration import CompilationProfiler, TesseraIntegration
    from tessera.bench.measurement import MeasurementEngine
    from tessera.bench.operator import Built, Implementation, OperatorBenchmark, implementation
    from tessera.bench.operators.flash_attention import FlashAttentionBenchmark
    from tessera.bench.registry import register
    from tessera.bench.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult

_HOMES = {
    "analysis": ("AnalysisEngine",),
    "comparison": ("Change", "Verdict", "compare_runs", "compare_samples"),
    "configs": ("InputConfiguration", "StandardBenchmarkConfigs"),
    "core": ("TesseraBench",),
    "definitions": (
        "BenchError",
        "BenchmarkConfig",
        "BenchmarkMode",
        "BenchmarkProtocol",
        "HardwareConfig",
        "MeasurementType",
    ),
    "distributed": ("DistributedCoordinator",),
    "duel": ("calibrate", "duel", "slowed"),
    "hardware": ("HardwareProfiler", "ProfilingHandle"),
    "inspector": ("IRInspector",),
    "integration": ("CompilationProfiler", "TesseraIntegration"),
    "measurement": ("MeasurementEngine",),
    "operator": ("Built", "Implementation", "OperatorBenchmark", "implementation"),
    "operators.flash_attention": ("FlashAttentionBenchmark",),
    "registry": ("register",),
    "results": ("BenchmarkError", "BenchmarkResult", "BenchmarkSuiteResult"),
}
_MODULES = {name: f"tessera.bench.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "AnalysisEngine",
    "BenchError",
    "BenchmarkConfig",
    "BenchmarkError",
    "BenchmarkMode",
    "BenchmarkProtocol",
    "BenchmarkResult",
    "BenchmarkSuiteResult",
    "Built",
    "Change",
    "CompilationProfiler",
    "DistributedCoordinator",
    "FlashAttentionBenchmark",
    "HardwareConfig",
    "HardwareProfiler",
    "IRInspector",
    "Implementation",
    "InputConfiguration",
    "MeasurementEngine",
    "MeasurementType",
    "OperatorBenchmark",
    "ProfilingHandle",
    "StandardBenchmarkConfigs",
    "TesseraBench",
    "TesseraIntegration",
    "Verdict",
    "calibrate",
    "compare_runs",
    "compare_samples",
    "duel",
    "implementation",
    "register",
    "slowed",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tessera.bench' has no attribute {name!r}")
    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found
