"""Programs written by hand at the cpu level: right at every level of the machine, and in the interpreter."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera.targets import text
from tessera.targets.cpu import features
from tessera.targets.cpu.interpreter import run_cpu_kernel

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
LEVELS = features.up_to(features.level())


def handwritten() -> Any:
    """The module beside the texts."""
    name = "handwritten"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def gemm() -> tuple[list[Any], Any]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((512, 64), (64, 512)))
    return [a, b, np.full((512, 512), np.nan, np.float32)], a.astype(np.float64) @ b


def attention() -> tuple[list[Any], Any]:
    random = np.random.default_rng(1)
    q, k, v = (random.standard_normal((8, 768, 64)).astype(np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ np.swapaxes(k, 1, 2) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    meant = weights / weights.sum(-1, keepdims=True) @ v
    return [q, k, v, np.full((8, 768, 64), np.nan, np.float32)], meant


CASES = {"gemm": gemm, "attention": attention}


@pytest.mark.quick
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_machine_code_of_a_text(name: str, level: str) -> None:
    arrays, meant = CASES[name]()
    handwritten().executable(name, level).bind(arrays)(*arrays)
    error = np.linalg.norm(arrays[-1] - meant) / np.linalg.norm(meant)
    assert error < 1e-6


def test_the_interpreter_agrees() -> None:
    arrays, meant = gemm()
    module = text.read((BENCHMARKS / "texts" / "gemm.cpu").read_text(encoding="utf-8"))
    run_cpu_kernel(module, "gemm", arrays)
    np.testing.assert_allclose(arrays[-1], meant, rtol=1e-5, atol=1e-5)
