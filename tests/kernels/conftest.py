"""Fixtures of several files of kernel tests: which kernels are compiled, and which calls go the long way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessera import knobs
from tessera.targets.cpu import compile as cpu_compiler
from tessera.targets.cuda.target import architecture_of
from tessera.tile.calls.dispatch import Calls


@pytest.fixture(name="warp_specialization_here")
def _warp_specialization_here() -> None:
    """Leaves out what only some GPUs have: warp-specialized kernels are for sm_90a."""
    from tessera.runtime.cuda.context import Context

    if architecture_of(Context.of(0).properties.capability) != "sm_90a":
        pytest.skip("this GPU has no dots of warp groups")


@pytest.fixture(name="compiles")
def _compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The names of the kernels that are compiled; nothing is found on the disk."""
    names: list[str] = []
    emit_kernel = cpu_compiler.emit_kernel

    def noted(module: Any, name: str, *how: Any) -> Any:
        names.append(name)
        return emit_kernel(module, name, *how)

    monkeypatch.setattr(cpu_compiler, "emit_kernel", noted)
    # For the process: threads of tests do not see what `using` holds, and would find what an earlier run has kept.
    knobs.cache_dir.set(tmp_path)
    knobs.backend.set("cpu")
    yield names
    knobs.cache_dir.reset()
    knobs.backend.reset()


@pytest.fixture(name="slow_calls")
def _slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of calls that went the long way."""
    calls: list[tuple[Any, ...]] = []
    slowly = Calls.slowly

    def noted(self: Calls, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return slowly(self, *args, **kwargs)

    monkeypatch.setattr(Calls, "slowly", noted)
    return calls
