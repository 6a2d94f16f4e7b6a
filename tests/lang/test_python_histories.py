"""Whatever happens in a Python program, jitted functions, kernels and tiers give what the plain functions give."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from python_histories import History

from tessera import knobs
from tessera.metatracing import MetaTracingRuntime


@pytest.fixture(name="no_bytecode")
def _no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are written again within a second, which bytecode on the disk would not notice."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def run(seeds: range, folder: Path, *, compiled: bool = False, tiers: bool = False, steps: int = 10) -> int:
    calls = 0
    for seed in seeds:
        runtime = MetaTracingRuntime() if tiers else None
        history = History(seed, folder, runtime)
        try:
            with knobs.interpret.using(not compiled):
                calls += history.run(steps)
        finally:
            history.close()
            if runtime is not None:
                runtime.close()
    return calls


@pytest.mark.usefixtures("no_bytecode")
def test_histories_give_what_python_gives(tmp_path: Path) -> None:
    assert run(range(6), tmp_path, steps=6) >= 36


@pytest.mark.usefixtures("no_bytecode")
def test_a_history_in_tiers_gives_what_python_gives(tmp_path: Path) -> None:
    assert run(range(10_000, 10_002), tmp_path, tiers=True, steps=6) >= 12


@pytest.mark.acceptance
@pytest.mark.usefixtures("no_bytecode")
@pytest.mark.parametrize("part", range(20))
def test_many_histories_give_what_python_gives(tmp_path: Path, part: int) -> None:
    first = int(os.environ.get("TESSERA_HISTORIES", "0")) + 100 * part
    run(range(first, first + 70), tmp_path)
    run(range(first + 70, first + 90), tmp_path, tiers=True)
    run(range(first + 90, first + 100), tmp_path, compiled=True, steps=5)
