"""Benchmarks by name: those that ship, those of installed packages (entry points), and those of the user's files."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkProtocol
from tessera.errors import SourceSpan, TesseraError

GROUP = "tessera.benchmarks"
# Loaded when they are asked for: kernels need the compiler.
_OURS = {
    "flash_attention": "tessera.bench.operators.flash_attention:FlashAttentionBenchmark",
    "gelu": "tessera.bench.operators.rowwise:GeluBenchmark",
    "gemm": "tessera.bench.operators.gemm:GemmBenchmark",
    "layernorm": "tessera.bench.operators.rowwise:LayerNormBenchmark",
    "rmsnorm": "tessera.bench.operators.rowwise:RmsNormBenchmark",
    "softmax": "tessera.bench.operators.rowwise:SoftmaxBenchmark",
}
_registered: dict[str, Callable[[], BenchmarkProtocol]] = {}
loaded: list[Path] = []
"""The user's files, in their order: another process loads them again."""
T = TypeVar("T", bound=type)


def register(benchmark: T) -> T:
    """Decorates a benchmark class: it can be run by its name."""
    made = benchmark()
    if not isinstance(made, BenchmarkProtocol):
        missing = [name for name in _asked() if not hasattr(made, name)]
        raise BenchError(
            f"{benchmark.__name__} is no benchmark: it lacks {', '.join(missing)}", hint="derive from OperatorBenchmark"
        )
    name = made.get_name()
    if name in _OURS or name in _registered:
        raise BenchError(f"benchmark {name} is registered already", hint="give it another name")
    _registered[name] = benchmark
    return benchmark


def _asked() -> Iterator[str]:
    return (name for name in vars(BenchmarkProtocol) if not name.startswith("_"))


def names() -> list[str]:
    """All that can be asked for."""
    return sorted({*_OURS, *_registered, *(point.name for point in entry_points(group=GROUP))})


def get(name: str) -> BenchmarkProtocol:
    """A new benchmark of that name."""
    if name in _registered:
        return _registered[name]()
    if name in _OURS:
        module, _, kind = _OURS[name].partition(":")
        return getattr(import_module(module), kind)()
    for point in entry_points(group=GROUP, name=name):
        try:
            made: Any = point.load()()
        except Exception as error:
            raise BenchError(
                f"entry point {point.value} cannot be loaded: {type(error).__name__}: {error}",
                hint="the package that offers it is broken",
            ) from error
        if not isinstance(made, BenchmarkProtocol):
            raise BenchError(
                f"entry point {point.value} is no benchmark", hint="it must name a BenchmarkProtocol class"
            )
        return made
    raise BenchError(f"unknown benchmark {name!r}", hint=f"one of {', '.join(names())}; or --file with your own")


def load(path: Path) -> list[str]:
    """Runs a user's file, which registers benchmarks; their names."""
    if not path.is_file():
        raise BenchError(f"cannot read {path}", hint="give a Python file with @register classes")
    before = set(_registered)
    try:
        runpy.run_path(str(path), run_name=f"tessera_benchmarks_{path.stem}")
    except TesseraError:
        raise
    except Exception as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = own[-1].lineno if own else getattr(error, "lineno", None)
        raise BenchError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}",
            span=SourceSpan(str(path), line or 1),
            hint="it has to run before its benchmarks can",
        ) from error
    loaded.append(path)
    made = sorted(set(_registered) - before)
    if not made:
        raise BenchError(f"{path} registers no benchmark", hint="decorate the class with tessera.bench.register")
    return made
