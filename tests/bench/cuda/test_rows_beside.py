"""Rows beside the tables: truths, our calls and peers agree at small sizes, on the CPU; Triton's are really tuned."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tessera.bench.cuda import declarations, device

FOLDER = Path(__file__).parents[3] / "benchmarks" / "gpu_rows"
PEERS = FOLDER / "triton_peers"


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS", "MEANS", "KERNELS"):
        monkeypatch.setattr(declarations, name, {})


def test_every_kind_of_work_has_rows_and_all_have_bars() -> None:
    declarations.load(FOLDER)
    beside = {name: row for name, row in declarations.ROWS.items() if name.startswith("beside")}
    kinds = {name.split()[1]: 0 for name in beside}
    for name, row in beside.items():
        kinds[name.split()[1]] += 1
        assert row.bars, name
        assert row.kernels, name
    assert kinds == {
        "varlen": 6,
        "sparse": 2,
        "differential": 2,
        "decode": 12,
        "gemm": 120,
        "dw": 5,
        "fp8": 5,
        "amax": 2,
        "loss": 7,
        "experts": 2,
        "int8": 20,
        "int4": 20,
        "rows": 6,
        "states": 2,
    }
    assert {name for name in declarations.MEANS if name.startswith("beside")} == {
        f"beside gemm {way} {layout}" for way in ("eager", "jit") for layout in ("w", "w.T")
    }


# On the CPU, at small sizes


class NoPeer(ModuleType):
    """A module of Triton's, where there is none: what is asked of it fails when it is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refused(*_: Any) -> Any:
            raise RuntimeError("no Triton here")

        # Classes are made when a row is, functions called when it is measured.
        return partial(partial, refused) if name[0].isupper() else refused


def uncompiled(function: Any, **_: Any) -> Any:
    return function


def two_copies(_: float) -> int:
    return 2


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """A file of rows as a module whose sizes are others, and which declares nothing yet."""
    torch: Any = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", uncompiled)
    monkeypatch.setattr(device, "copies_beyond_cache", two_copies)
    for path in PEERS.glob("*.py"):
        monkeypatch.setitem(sys.modules, f"triton_peers.{path.stem}", NoPeer(path.stem))

    def read(name: str, **sizes: Any) -> dict[str, Any]:
        found = runpy.run_path(str(FOLDER / f"{name}.py"), run_name=name)
        mine = next(one for one in found.values() if isinstance(one, FunctionType) and one.__module__ == name)
        module = mine.__globals__

        module.update(sizes)
        for declared in (declarations.ROWS, declarations.MEANS, declarations.KERNELS):
            declared.clear()
        return module

    return read


ELSEWHERE = (NotImplementedError, RuntimeError, AttributeError, ImportError)
"""What peers raise that run on GPUs only."""


def check_rows(count: int) -> None:
    """Results of ours and of those peers that run on a CPU are near the truth, also after new numbers."""
    import torch

    assert len(declarations.ROWS) == count
    for row in declarations.ROWS.values():
        make = device.TorchInputs(row.dtype, 7, "cpu")
        contest = row.build(make)
        assert set(contest.ptx) == set(row.kernels)
        assert contest.ours is not None
        assert not set(row.bars) - {*contest.peers, *contest.yardsticks, declarations.BEST, declarations.COPY}
        for _ in range(2):
            truth = contest.truth()
            for name, call in {declarations.OURS: contest.ours, **contest.peers}.items():
                try:
                    result = call()
                    found = contest.part(result if isinstance(result, torch.Tensor) else torch.from_dlpack(result))
                except ELSEWHERE:
                    if name == declarations.OURS:
                        raise
                    continue
                assert found.shape == truth.shape
                error = float((found.double() - truth).norm() / truth.norm())
                assert error <= row.bound, f"{row.name}, {name}: {error:.1e}"
            make.refill()


def gemms(small: Callable[..., dict[str, Any]]) -> None:
    module = small("beside_gemm", TOKENS=512, LOOKED_AT=16, ROWS=(1, 3, 5))
    for way in ("eager", "jit"):
        for layout in ("w", "w.T"):
            module["declare"](3, 64, 96, way, layout)
    module["declare_gradient"](64, 96)
    module["declare_narrow"](64, 96)
    check_rows(6)


def decoding(small: Callable[..., dict[str, Any]]) -> None:
    module = small("beside_decode")
    module["declare"](2, 64)
    module["declare_paged"](2, 64)
    check_rows(2)


def quantized(small: Callable[..., dict[str, Any]]) -> None:
    module = small("beside_quantized", LOOKED_AT=64)
    for bits in (8, 4):
        for rows in (3, 130):
            module["declare"](bits, rows, 256, 128)
    check_rows(4)


def states(small: Callable[..., dict[str, Any]]) -> None:
    module = small("beside_states", SHAPE=(4, 128, 32), WIDTH=32, HEADS=2, BATCH=2, CHUNK=32, LENGTH=128)
    for name in ("retention", "gated"):
        module["declare"](name)
    check_rows(2)


def attention(small: Callable[..., dict[str, Any]]) -> None:
    sizes = {"TOKENS": 256, "HEADS": 2, "LENGTH": 512, "SPARSE_HEADS": 2, "BATCH": 1, "SEVERAL": 2}
    module = small("beside_attention", **sizes)
    module["declare_varlen"](3, 32)
    module["declare_sparse"](32)
    module["declare_differential"](128, 32)
    check_rows(3)


def products(small: Callable[..., dict[str, Any]]) -> None:
    sizes = {"TOKENS": 4096, "WIDTH": 64, "WORDS": 300, "EXPERT_TOKENS": 256, "DEPTH": 64, "COLUMNS": 64}
    module = small("beside_products", LOOKED_AT=32, **sizes)
    module["declare_amax"](256, 256, 64)
    module["declare_loss"](None)
    module["declare_loss"]((64, 128))
    module["declare_experts"](3)
    check_rows(4)


def operators(small: Callable[..., dict[str, Any]]) -> None:
    module = small("beside_rows")
    shapes: Iterator[tuple[int, int]] = iter([(8, 64), (4, 128), (16, 64), (16, 128), (8, 32), (4, 300)])
    for one in module["operators"]():
        module["declare"](replace(one, shape=next(shapes)))
    check_rows(6)


@pytest.mark.acceptance
@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("kind", [gemms, decoding, quantized, states, attention, products, operators])
def test_truths_and_calls_agree_at_small_sizes(
    small: Callable[..., dict[str, Any]], kind: Callable[[Callable[..., dict[str, Any]]], None]
) -> None:
    kind(small)


# Peers in Triton

LEAST_CONFIGURATIONS = 12


class StandIn(ModuleType):
    """Stands for Triton and torch, and notes what is tuned over which configurations."""

    def __init__(self, name: str, tuned: dict[str, list[Any]]) -> None:
        super().__init__(name)
        self.tuned = tuned

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return {"jit": self.jit, "autotune": self.autotune, "Config": dict}.get(name, self.nothing)

    @staticmethod
    def nothing(*_: Any, **__: Any) -> Any:
        return None

    @staticmethod
    def jit(function: Any) -> Any:
        return function

    def autotune(self, configs: list[Any], **_: Any) -> Callable[[Any], Any]:
        def note(function: Any) -> Any:
            self.tuned[function.__name__] = configs
            return function

        return note


def test_triton_is_tuned_over_a_dozen_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    tuned: dict[str, list[Any]] = {}
    for name in ("torch", "triton", "triton.language", "triton.testing"):
        monkeypatch.setitem(sys.modules, name, StandIn(name, tuned))
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for name in [name for name in sys.modules if name.startswith("triton_peers")]:
        monkeypatch.delitem(sys.modules, name)
    for path in sorted(PEERS.glob("*.py")):
        namespace = runpy.run_path(str(path))
        assert namespace["__doc__"]
    for name in [name for name in sys.modules if name.startswith("triton_peers")]:
        monkeypatch.delitem(sys.modules, name)
    assert len(tuned) >= 10
    assert {name: len(configs) for name, configs in tuned.items() if len(configs) < LEAST_CONFIGURATIONS} == {}
