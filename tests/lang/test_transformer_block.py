"""The specification's transformer block: right to float64, few kernels, one program for all lengths."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import pytest
from transformer_block import arguments, block, error, in_float64, transformer_block

import tessera as ts
from tessera import DType, Tensor, jit, knobs
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.runtime.tensor.pytree import tree_map

FILECHECK = Path(__file__).parents[1] / "filecheck"
BOUNDS = {ts.f32: 2e-6, ts.bf16: 4e-3}


def check(dtype: DType, **sizes: int) -> None:
    given = arguments(dtype, **sizes)
    y, cache = block(*given, heads=4)
    wanted, held = in_float64(*given, heads=4)
    assert y.dtype is dtype
    assert error(y, wanted) < BOUNDS[dtype]
    for found, expected in zip(cache, held, strict=True):
        assert error(found, expected) < BOUNDS[dtype]


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16], ids=str)
def test_the_block_is_right_in_the_interpreter(dtype: DType) -> None:
    with knobs.interpret.using(True):
        check(dtype, length=6, past=3)


def test_the_block_is_right_in_machine_code_for_all_lengths() -> None:
    before = block.explain().compilations
    for length, past in ((24, 8), (5, 33), (1, 64)):
        check(ts.f32, length=length, past=past)
    assert block.explain().compilations <= before + 1


@pytest.mark.acceptance
def test_the_block_in_bf16_is_right_in_machine_code() -> None:
    for length, past in ((24, 8), (64, 1), (7, 57)):
        check(ts.bf16, length=length, past=past)


def test_the_block_is_few_kernels_of_known_kinds() -> None:
    given = arguments(ts.f32)
    lowered = block.lower(*given, heads=4)
    graph, schedule = lowered.graph_ir.text, lowered.schedule_ir.text
    assert graph.count("graph.matmul") == 6
    assert "!graph.tensor<[B, S, 32], f32>" in graph
    kinds = re.findall(r"schedule\.region<(\w+)>", schedule)
    assert kinds.count("online") == 1
    assert kinds.count("matmul") == 4
    assert kinds.count("rows") == 2
    assert len(lowered.kernels) == len(kinds) == 8


def test_the_block_has_no_more_memory_than_it_needs_at_its_worst_moment() -> None:
    x, params, cache = arguments(ts.f32, batch=1, length=64, past=0, width=64)
    program = block.lower(x, params, cache, heads=4).program
    memory = program.bind([x, *(params[name] for name in sorted(params)), *cache]).memory
    # When the perceptron's inner array of four is written: it, the two caches, what goes around it, and what it reads.
    assert memory.peak == 8 * x.nbytes


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("device", "graphs"),
    [
        ("cpu", False),
        pytest.param("cuda", False, marks=pytest.mark.gpu),
        pytest.param("cuda", True, marks=pytest.mark.gpu),
    ],
)
def test_ten_thousand_calls_of_the_block_leave_nothing_behind(device: str, graphs: bool) -> None:
    def moved(one: Tensor) -> Tensor:
        return one.to(device)

    given = tree_map(moved, arguments(ts.f32, batch=1, length=4, past=4, width=32))
    called = jit(transformer_block, graphs=graphs)

    def call(count: int) -> tuple[int, int, int]:
        for _ in range(count):
            called(*given, heads=4)
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return len(gc.get_objects()), resident, used(device)

    objects, resident, held = call(100)
    objects_after, resident_after, held_after = call(10_000)
    assert objects_after - objects < 50
    assert resident_after - resident < 8 << 20
    assert held_after == held


def used(device: str) -> int:
    """Bytes of a GPU that tensors, arenas and graphs have."""
    if device == "cpu":
        return 0
    from tessera.runtime.cuda.context import Context
    from tessera.runtime.cuda.pool import Pool

    return Pool.of(Context.of(0)).statistics().used


def test_the_text_of_the_block_is_what_is_traced(tmp_path: Path) -> None:
    """What tests/filecheck says of its Graph and Schedule IR is said of this model."""
    fresh = jit(transformer_block)
    with knobs.cache_dir.using(tmp_path):  # of what another process has kept, one sees what became of it
        fresh.lower(*arguments(ts.f32), heads=4)
    traced = [one.traced for family in fresh.families.values() for one in family.variants]
    written = text.read((FILECHECK / "passes" / "graph-to-schedule-transformer-block.mlir").read_text(encoding="utf-8"))
    assert structural_hash(written) in {structural_hash(one.module) for one in traced}
