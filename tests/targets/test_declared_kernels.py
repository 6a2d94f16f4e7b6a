"""Kernels whose speed is kept: each compiles without a GPU to PTX that assembles clean, and always to the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ptx_checks import check_clean, count

from tessera.bench.cuda import declarations, records
from tessera.targets.cuda.compile import FEW_SPILLS

ROOT = Path(__file__).parents[2]


def texts_of_rows() -> dict[str, Callable[[], str]]:
    """The kernels of rows by name. Golden texts, which have no rows, have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS", "MEANS", "KERNELS"):
            patch.setattr(declarations, name, {})
        declarations.load(ROOT / "benchmarks/gpu_rows")
        return {name: declarations.KERNELS[name] for row in declarations.ROWS.values() for name in row.kernels}


TEXTS = texts_of_rows()


@cache
def found_clean(text: str) -> None:
    """Rows of other sizes have the same text: each is assembled once."""
    check_clean(text, "sm_90a", stack=FEW_SPILLS if "mma.sync" in text else 0)


def declared() -> Iterator[Any]:
    for name in TEXTS:
        marks: list[pytest.MarkDecorator] = []
        if name.startswith("agents") and " f16" in name:
            # They differ from those of bf16 by a letter.
            marks.append(pytest.mark.acceptance)
        yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", list(declared()))
def test_a_kernel_of_a_row_assembles_clean(name: str) -> None:
    text = TEXTS[name]()
    if name.startswith("agents"):
        for which in ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait"):
            assert count(text, which) > 0, which
    found_clean(text)


def test_a_kernel_compiles_to_the_same_text_again() -> None:
    make = TEXTS["softmax 16384×4096 bf16"]
    assert records.hash_of(make()) == records.hash_of(make())
