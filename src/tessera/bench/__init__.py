"""TesseraBench: benchmarks that are calibrated and hard to fool. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessera.bench.compiler.inspector import IRInspector
    from tessera.bench.compiler.integration import CompilationProfiler, TesseraIntegration
    from tessera.bench.configs import InputConfiguration, StandardBenchmarkConfigs
    from tessera.bench.core import TesseraBench
    from tessera.bench.duels import calibrate, duel, slowed
    from tessera.bench.engine import MeasurementEngine
    from tessera.bench.instruments.hardware import HardwareProfiler, ProfilingHandle
    from tessera.bench.measuring.definition import Built, Implementation, implementation
    from tessera.bench.operator import OperatorBenchmark
    from tessera.bench.operators.flash_attention import FlashAttentionBenchmark
    from tessera.bench.processes.distributed import DistributedCoordinator
    from tessera.bench.registry import register
    from tessera.bench.results.analysis import AnalysisEngine
    from tessera.bench.results.comparison import Change, Verdict, compare_runs, compare_samples
    from tessera.bench.results.definitions import (
        BenchError,
        BenchmarkConfig,
        BenchmarkMode,
        HardwareConfig,
        MeasurementType,
    )
    from tessera.bench.results.results import BenchmarkError, BenchmarkProtocol, BenchmarkResult, BenchmarkSuiteResult

_HOMES = {
    "results.analysis": ("AnalysisEngine",),
    "results.comparison": ("Change", "Verdict", "compare_runs", "compare_samples"),
    "configs": ("InputConfiguration", "StandardBenchmarkConfigs"),
    "core": ("TesseraBench",),
    "results.definitions": ("BenchError", "BenchmarkConfig", "BenchmarkMode", "HardwareConfig", "MeasurementType"),
    "processes.distributed": ("DistributedCoordinator",),
    "duels": ("calibrate", "duel", "slowed"),
    "instruments.hardware": ("HardwareProfiler", "ProfilingHandle"),
    "compiler.inspector": ("IRInspector",),
    "compiler.integration": ("CompilationProfiler", "TesseraIntegration"),
    "engine": ("MeasurementEngine",),
    "measuring.definition": ("Built", "Implementation", "implementation"),
    "operator": ("OperatorBenchmark",),
    "operators.flash_attention": ("FlashAttentionBenchmark",),
    "registry": ("register",),
    "results.results": ("BenchmarkError", "BenchmarkProtocol", "BenchmarkResult", "BenchmarkSuiteResult"),
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


def __dir__() -> list[str]:
    return sorted(__all__)
