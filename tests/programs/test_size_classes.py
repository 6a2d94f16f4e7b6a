"""Functions whose sizes are symbols have programs for classes of them: as many as the model makes differences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera import knobs
from tessera.errors import CompileError, FallbackError
from tessera.ir import text
from tessera.programs import size_classes
from tessera.programs.compile import compile_graph
from tessera.programs.program import Program
from tessera.programs.size_classes import FEWEST, SMALLEST, STEPS, size_class
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
    assert number <= 1 or found >= FEWEST
    assert found <= FEWEST or found < number * (1 + 2 / STEPS) or (found <= SMALLEST and found < 2 * number)
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
    assert few.size_classes is None
    assert "{M = 16 : i64}" in few.levels.tile_ir.text
    more = product.program_for({"M": 17, "K": 4096, "N": 4096})
    assert config(more) == config(few)
    assert "{M = 32 : i64}" in more.levels.tile_ir.text
    assert "tile.most" not in product.program_for({"M": 64, "K": 4096, "N": 4096}).levels.tile_ir.text


def test_keys_of_few_queries_are_split_for_the_sizes_that_come() -> None:
    """Few matrices with many keys have parts, many have none; programs are few, as splits are powers of two."""
    types = "!graph.tensor<[B, 4, 128], bf16>", "!graph.tensor<[B, T, 128], bf16>"
    scores, transposed = "!graph.tensor<[B, 4, T], bf16>", "!graph.tensor<[B, 128, T], bf16>"
    source = f"""
graph.func @main(%q: {types[0]}, %k: {types[1]}, %v: {types[1]}) -> ({types[0]}) {{
  %t = graph.transpose %k, [0, 2, 1] : {types[1]} -> {transposed}
  %s = graph.matmul %q, %t : {types[0]}, {transposed} -> {scores}
  %w = graph.ew<exp> %s : {scores} -> {scores}
  %y = graph.matmul %w, %v : {scores}, {types[1]} -> {types[0]}
  graph.return %y : {types[0]}
}}
"""
    program = compile_graph(text.read(source), GPU)
    cases = {(b, t): program.program_for({"B": b, "T": t}) for b in (1, 3, 8, 11, 64, 512) for t in (100, 4096, 32768)}
    splits = {sizes: re.findall(r"split = (\d+)", one.levels.schedule_ir.text) for sizes, one in cases.items()}
    assert any("are split in 16 parts" in line for line in program.explain())
    assert splits[8, 4096] == ["16"]
    assert splits[512, 4096] == splits[8, 100] == []
    assert len({id(one) for one in cases.values()}) <= 8


def test_parts_are_explained(product: Program) -> None:
    deep = product.program_for({"M": 256, "K": 14336, "N": 4096})
    assert any("multiplies its depth in" in line for line in deep.explain())
    assert any("multiplies its depth in" in line for line in product.explain())


def test_what_cannot_be_compiled_for_sizes_runs_as_for_all_of_them() -> None:
    product, calls = compile_graph(text.read(PRODUCT), GPU), list[tuple[str, ...]]()

    def fails(general: Program, hints: tuple[str, ...], most: tuple[str, ...]) -> Program:
        calls.append(hints)
        raise CompileError("too many registers", hint="fewer")

    classes = product.size_classes = size_classes.SizeClasses(product, GPU, fails)
    sizes = {"M": 16, "K": 4096, "N": 4096}
    for _ in range(2):
        assert product.program_for(sizes) is product
    assert calls == [("M=16", "K=4096", "N=4096")]
    assert classes.programs == []
    (told,) = (line for line in product.explain() if line.startswith("@main: slower than "))
    assert told.endswith("blocks for M=16, K=4096, N=4096: too many registers (fewer)")
    with knobs.no_fallbacks.using(True), pytest.raises(FallbackError, match="too many registers"):
        product.program_for({**sizes, "M": 8})


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
