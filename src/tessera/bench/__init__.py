"""TesseraBench: benchmarks that are calibrated and hard to fool. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for tools that read sources
    from tessera.bench.compiler.inspector import *
    from tessera.bench.compiler.integration import *
    from tessera.bench.configs import *
    from tessera.bench.core import *
    from tessera.bench.duels import *
    from tessera.bench.engine import *
    from tessera.bench.instruments.hardware import *
    from tessera.bench.measuring.definition import *
    from tessera.bench.operator import *
    from tessera.bench.operators.flash_attention import *
    from tessera.bench.processes.distributed import *
    from tessera.bench.registry import *
    from tessera.bench.results.analysis import *
    from tessera.bench.results.comparison import *
    from tessera.bench.results.definitions import *
    from tessera.bench.results.results import *

_HOMES = {
    "compiler.inspector": ("IRInspector",),
    "compiler.integration": ("CompilationProfiler", "TesseraIntegration"),
    "configs": ("InputConfiguration", "StandardBenchmarkConfigs"),
    "core": ("TesseraBench",),
    "duels": ("calibrate", "duel", "slowed"),
    "engine": ("MeasurementEngine",),
    "instruments.hardware": ("HardwareProfiler", "ProfilingHandle"),
    "measuring.definition": ("Built", "Implementation", "implementation"),
    "operator": ("OperatorBenchmark",),
    "operators.flash_attention": ("FlashAttentionBenchmark",),
    "processes.distributed": ("DistributedCoordinator",),
    "registry": ("register",),
    "results.analysis": ("AnalysisEngine",),
    "results.comparison": ("Change", "Verdict", "compare_runs", "compare_samples"),
    "results.definitions": ("BenchError", "BenchmarkConfig", "BenchmarkMode", "HardwareConfig", "MeasurementType"),
    "results.results": ("BenchmarkError", "BenchmarkProtocol", "BenchmarkResult", "BenchmarkSuiteResult"),
}
"""The public names by the module that defines them."""
_MODULES = {name: f"tessera.bench.{module}" for module, names in _HOMES.items() for name in names}
globals()["__all__"] = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return globals()["__all__"]
