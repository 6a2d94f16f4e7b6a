"""Kernels whose speed is kept: each compiles without a GPU to PTX that assembles clean, and always to the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from ptx_checks import check_clean, count

from tessera.bench.cuda import declarations, records
from tessera.errors import ResourceError
from tessera.targets.cuda.compile import FEW_SPILLS
from tessera.targets.cuda.ptx.assembler import assemble

ROOT = Path(__file__).parents[3]


BESIDE = "beside"
"""Kernels of rows that say how far speed falls off beside the tables: of them is asked that they assemble."""


def texts_of_rows() -> dict[str, Callable[[], str]]:
    """The kernels of rows by name. Golden texts, which have no rows, have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS", "MEANS", "KERNELS"):
            patch.setattr(declarations, name, {})
        declarations.load(ROOT / "benchmarks/gpu_rows")
        return {name: declarations.KERNELS[name] for row in declarations.ROWS.values() for name in row.kernels}


ALL_TEXTS = texts_of_rows()
TEXTS = {name: text for name, text in ALL_TEXTS.items() if not name.startswith(BESIDE)}


@cache
def assembles(text: str) -> bool:
    return bool(assemble(text, "sm_90a").kernels)


@cache
def found_clean(text: str) -> None:
    """Rows of other sizes have the same text: each is assembled once."""
    check_clean(text, "sm_90a", stack=FEW_SPILLS if "mma.sync" in text else 0)


SIMILAR = (
    "agents alibi",
    "agents prefix",
    "agents soft cap",
    "agents attention 4×16×4096×128 bf16 causal, sequence first",
    "agents attention 4×16×4096×96 bf16 causal",
    "agents attention 16×32×2048×128 bf16",
    "agents attention 16×32×4096×64 bf16",
    "agents attention 4×16×2048×64 bf16",
    "agents attention 1×8×1024×64 bf16 causal",
    "agents attention 1×8×512×64 bf16",
    "agents attention 4×16×4096×192 bf16",
    "agents attention 4×16×4096×256 bf16 causal",
    "agents attention 4×16×8192×128 f8e4m3 causal",
    "agents attention 4×16×8192×128 f8e4m3, fast sums",
    "agents attention 8×16×1000×128 bf16 causal",
    "agents gemm 8192×8192×8192",
    "agents gemm 8192×14336×4096 f8e4m3",
    "agents linear gelu 8192×14336×4096",
    "lse attention 4×16×4096×128 bf16 causal",
    "portable attention 4×16×4096×64",
    "portable attention 4×16×4096×128 bf16 causal",
    "portable gemm 4096³ bf16, 256×128×64, 4 stages",
)
"""How names begin whose kernels have sisters: of other sizes, with another mask or score, or with more of the same."""


def quick(name: str) -> bool:
    """Kernels of f16 differ from those of bf16 by a letter."""
    return not (name.startswith("agents") and " f16" in name) and not name.startswith(SIMILAR)


def test_kernels_that_are_left_out_have_sisters() -> None:
    assert [start for start in SIMILAR if not any(name.startswith(start) for name in TEXTS)] == []


@pytest.mark.quick(4, name=[name for name in TEXTS if quick(name)][::4])
@pytest.mark.parametrize("name", TEXTS)
def test_a_kernel_of_a_row_assembles_clean(name: str) -> None:
    text = TEXTS[name]()
    if name.startswith("agents"):
        for which in ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait"):
            assert count(text, which) > 0, which
    found_clean(text)


MAY_NOT_FIT = ("beside loss 49152×1024×32000 block 192×256 bf16",)
"""Kernels that are refused as long as the compiler does not find a plan for them: then the row says so."""


@pytest.mark.acceptance
@pytest.mark.parametrize("name", [name for name in ALL_TEXTS if name.startswith(BESIDE)])
def test_a_kernel_beside_assembles(name: str) -> None:
    with suppress(*[ResourceError] if name in MAY_NOT_FIT else []):
        # A program has several kernels, each a text of its own.
        for text in ALL_TEXTS[name]().split(".version")[1:]:
            assert assembles(f".version{text}")


def test_a_kernel_compiles_to_the_same_text_again() -> None:
    make = TEXTS["softmax 16384×4096 bf16"]
    assert records.hash_of(make()) == records.hash_of(make())
