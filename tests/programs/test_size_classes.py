"""Functions whose sizes are symbols have programs for classes of them: as many as the model makes differences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.ir import text
from tessera.programs import size_classes
from tessera.programs.compile import compile_graph
from tessera.programs.program import Program
from tessera.programs.size_classes import SMALLEST, STEPS, size_class
from tessera.tile.calls.settings import Settings

GPU = Settings("cuda", "sm_90a", 3, frozenset(), False, True)
PRODUCT = """
graph.func @main(%x: !graph.tensor<[M, K], bf16>, %w: !graph.tensor<[K, N], bf16>) -> (!graph.tensor<[M, N], bf16>) {
  %p = graph.matmul %x, %w : !graph.tensor<[M, K], bf16>, !graph.tensor<[K, N], bf16> -> !graph.tensor<[M, N], bf16>
  graph.return %p : !graph.tensor<[M, N], bf16>
}
"""


@pytest.fixture(scope="module")
def product() -> Program:
    return compile_graph(text.read(PRODUCT), GPU)


def config(program: Program) -> str:
    return re.findall(r"region<matmul> <([^>]*)>", program.levels.schedule_ir.text)[0]


@given(st.integers(0, 1 << 20))
def test_classes_are_few_and_hold_what_is_in_them(number: int) -> None:
    found = size_class(number)
    assert found >= number
    assert number <= 1 or found >= SMALLEST
    assert found <= SMALLEST or found < number * (1 + 2 / STEPS)
    assert size_class(found) == found


def test_classes_grow_with_sizes() -> None:
    classes = [size_class(number) for number in range(5000)]
    assert classes == sorted(classes)
    assert len({one for one in classes if 1024 < one <= 2048}) == STEPS


def test_few_rows_have_a_program_of_their_own(product: Program) -> None:
    few = product.program_for({"M": 16, "K": 4096, "N": 4096})
    assert few is not product
    assert config(few) != config(product)
    assert product.program_for({"M": 9, "K": 4096, "N": 4096}) is few
    assert product.program_for({"M": 8192, "K": 4096, "N": 4096}) is product
    assert few.program_for({"M": 8192, "K": 4096, "N": 4096}) is few


def test_parts_are_explained(product: Program) -> None:
    deep = product.program_for({"M": 128, "K": 14336, "N": 4096})
    assert any("multiplies its depth in" in line for line in deep.explain())
    assert any("multiplies its depth in" in line for line in product.explain())


def test_programs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_classes, "MOST_PROGRAMS", 2)
    product = compile_graph(text.read(PRODUCT), GPU)
    found = {
        id(product.program_for({"M": rows, "K": depth, "N": 4096}))
        for rows in (1, 64, 128, 256)
        for depth in (4096, 14336)
    }
    assert len(found - {id(product)}) == 2


@pytest.mark.parametrize("target", ["cpu", "a known size", "no product", "stages"])
def test_others_have_one_program(target: str) -> None:
    source, chosen = PRODUCT, GPU
    if target == "cpu":
        chosen = Settings("cpu", "avx2", 3, frozenset(), False, True)
    if target == "a known size":
        source = re.sub(r"\b([MKN])\b(?=[],])", "512", source)
    if target == "no product":
        source = re.sub(
            r"%p = .*", "%p = graph.ew<exp> %x : !graph.tensor<[M, K], bf16> -> !graph.tensor<[M, K], bf16>", source
        )
        source = source.replace("[M, N]", "[M, K]")
    if target == "stages":
        from tessera.targets.choose_blocks import stages_for

        program = compile_graph(text.read(source), chosen, stages=stages_for("cuda", "sm_90a", ("M=64",)))
    else:
        program = compile_graph(text.read(source), chosen)
    assert program.program_for({"M": 16, "K": 4096, "N": 4096}) is program
