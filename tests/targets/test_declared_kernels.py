"""Kernels whose speed is kept: each compiles without a GPU to PTX that assembles clean, and always to the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ptx_checks import check_clean

from tessera.bench.cuda import declarations, records
from tessera.targets.cuda.compile import FEW_SPILLS

ROOT = Path(__file__).parents[2]


def texts_of_rows() -> dict[str, Callable[[], str]]:
    """The kernels of rows by name. Golden texts, which have no rows, have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declarations, "ROWS", {})
        patch.setattr(declarations, "KERNELS", {})
        declarations.load(ROOT / "benchmarks/gpu_rows")
        return {name: declarations.KERNELS[name] for row in declarations.ROWS.values() for name in row.kernels}


TEXTS = texts_of_rows()


@pytest.mark.parametrize("name", TEXTS)
def test_a_kernel_of_a_row_assembles_clean(name: str) -> None:
    text = TEXTS[name]()
    check_clean(text, "sm_90a", stack=FEW_SPILLS if "mma.sync" in text else 0)


def test_a_kernel_compiles_to_the_same_text_again() -> None:
    make = next(iter(TEXTS.values()))
    assert records.hash_of(make()) == records.hash_of(make())
