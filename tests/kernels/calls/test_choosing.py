"""Blocks that are chosen for kernels on sm_90a: which, for which arguments, and how few programs that makes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tessera as ts
from tessera import Schedule, knobs, stdlib
from tessera.tile.calls import block_selection, compiling, function
from tessera.tile.calls.block_selection import Candidate, Choice, constants_of
from tessera.tile.calls.function import Kernel, kernel
from tessera.tile.calls.grids import GridFunction
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.settings import Settings
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True

HOPPER = Settings("cuda", "sm_90a", 3, frozenset(), deterministic=False, demanded=True)
DEFAULT = (64, 64)


def arrays(*shape: int, dtype: Any = ts.bf16) -> list[Any]:
    return [ts.empty(shape, dtype)] * 3


def block_of(given: Kernel, *args: Any, chosen: Settings = HOPPER, **static: Any) -> tuple[int, ...] | None:
    return given.form_for(args, static, chosen).schedule.block


def fresh(given: Kernel) -> Kernel:
    """The same kernel, of which nothing is known."""
    return kernel(given.function)


@pytest.fixture(name="compiled")
def _compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Schedule]]:
    """The schedules of what is compiled; nothing is found on the disk."""
    found: list[Schedule] = []
    real = compiling.compiled

    def noted(instance: Any, *rest: Any) -> Any:
        found.append(instance.schedule)
        return real(instance, *rest)

    monkeypatch.setattr(compiling, "compiled", noted)
    with knobs.cache_dir.using(tmp_path):
        yield found


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((16, 32, 2048, 128), (192, 80)),
        ((4, 16, 4096, 64), (192, 128)),
        ((4, 16, 2048, 64), (256, 64)),
        ((132, 1, 1024, 64), (256, 64)),
        ((1, 8, 512, 64), (64, 128)),
        ((2, 8, 512, 64), (64, 128)),
        ((4, 8, 512, 64), (128, 128)),
        ((4, 16, 4096, 256), (128, 64)),
        ((4, 16, 4096, 192), (128, 64)),
        ((4, 16, 4096, 512), DEFAULT),
    ],
)
def test_attention_gets_a_block_for_its_width_and_its_programs(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert block_of(stdlib.attention, *arrays(*shape)) == expected


def test_kernels_that_cannot_be_warp_specialized_keep_the_default() -> None:
    assert block_of(stdlib.attention, *arrays(4, 16, 4096, 64, dtype=ts.f32)) == DEFAULT
    assert block_of(stdlib.softmax, ts.empty((4096, 64), ts.bf16)) == DEFAULT
    # Rows that do not lie at multiples of 16 bytes have no tensor maps.
    odd = ts.empty((64, 4096, 72), ts.bf16)[:, :, 4:68]
    assert block_of(stdlib.attention, odd, odd, odd) == DEFAULT


@pytest.mark.parametrize(
    "chosen",
    [
        Settings("cpu", "avx512", 3, frozenset(), deterministic=False, demanded=False),
        Settings("cuda", "sm_80", 3, frozenset(), deterministic=False, demanded=True),
        Settings("cuda", "sm_90a", 3, frozenset({"bounds"}), deterministic=False, demanded=True),
    ],
    ids=["cpu", "sm_80", "checked"],
)
def test_elsewhere_nothing_is_chosen(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_selection.Choices, "find", None)  # not called
    assert block_of(stdlib.attention, *arrays(4, 16, 4096, 64), chosen=chosen) == DEFAULT


def test_the_default_is_a_block_like_any_other_where_it_was_given() -> None:
    many = arrays(4, 16, 4096, 64)
    assert block_of(stdlib.attention.with_schedule(Schedule(block=DEFAULT)), *many) == DEFAULT
    assert block_of(kernel(schedule=Schedule(block=DEFAULT))(stdlib.attention.function), *many) == DEFAULT
    assert block_of(stdlib.attention.with_schedule(Schedule(stages=2)), *many) == DEFAULT
    assert block_of(stdlib.attention.with_schedule(Schedule(d=64)), *many) == (192, 128)
    assert block_of(kernel.auto(stdlib.attention.function), *many) == (192, 128)
    assert block_of(kernel.schedule(Schedule(vector=1))(stdlib.attention.function), *many) == (192, 128)


def test_what_was_chosen_keeps_the_rest_of_the_schedule() -> None:
    form = stdlib.attention.with_schedule(Schedule(d=64)).form_for(arrays(4, 16, 4096, 64), {}, HOPPER)
    assert form.schedule == Schedule(block=(192, 128), d=64)
    assert repr(form) == "<kernel attention Schedule(block=(192, 128), d=64)>"


def test_under_a_grid_only_the_depth_is_chosen() -> None:
    matrices = arrays(4096, 4096)
    assert block_of(stdlib.gemm[64, 64], *matrices) == DEFAULT
    assert block_of(stdlib.gemm.with_schedule(Schedule(block=(128, 256)))[32, 16], *matrices) == (128, 256, 64)
    assert block_of(stdlib.gemm.with_schedule(Schedule(block=(128, 256, 32)))[32, 16], *matrices) == (128, 256, 32)
    assert block_of(stdlib.gemm.with_schedule(Schedule(block=(100, 64)))[41, 64], *matrices) == (100, 64)


def test_a_call_compiles_what_was_chosen_and_only_that(compiled: list[Schedule]) -> None:
    given = fresh(stdlib.attention)
    program, _ = given.program_for(arrays(4, 16, 4096, 64), {}, HOPPER)
    assert program.schedule == Schedule(block=(192, 128))
    assert compiled == [Schedule(block=(192, 128))]
    again, _ = given.program_for(arrays(8, 16, 4096, 64), {}, HOPPER)
    assert again is program


def test_choices_and_programs_are_kept_for_other_processes(
    compiled: list[Schedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [arrays(4, 16, 4096, 64), arrays(1, 8, 512, 64), arrays(4, 16, 4096, 128)]
    assert fresh(stdlib.softmax).program_for([cases[0][0]], {}, HOPPER)[0].schedule.block == DEFAULT
    blocks = [fresh(stdlib.attention).program_for(case, {}, HOPPER)[0].schedule for case in cases]
    count = len(compiled)
    assert count == len(cases) + 1
    monkeypatch.setattr(Kernel, "traced", None)  # not traced again
    assert [fresh(stdlib.attention).program_for(case, {}, HOPPER)[0].schedule for case in cases] == blocks
    assert fresh(stdlib.softmax).program_for([cases[0][0]], {}, HOPPER)[0].schedule.block == DEFAULT
    assert len(compiled) == count


@pytest.mark.acceptance
def test_refused_blocks_are_not_tried_by_other_processes(
    compiled: list[Schedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    def came_out(program: GuardedKernel) -> bool:
        return program.schedule.block != (192, 128)

    monkeypatch.setattr(function, "came_out", came_out)
    many = arrays(4, 16, 4096, 64)
    block = fresh(stdlib.attention).program_for(many, {}, HOPPER)[0].schedule
    assert block != Schedule(block=(192, 128))
    assert block_of(fresh(stdlib.attention), *many) == block.block


@pytest.mark.parametrize("kept", [b"", b"[", b"{}", b'{"driver": "q", "candidates": [1]}'])
def test_damaged_choices_are_made_again(kept: bytes, compiled: list[Schedule], monkeypatch: pytest.MonkeyPatch) -> None:
    many = arrays(4, 16, 4096, 64)
    expected = block_of(fresh(stdlib.attention), *many)

    def behind(_data: bytes) -> bytes:
        return kept

    monkeypatch.setattr(GuardedKernel, "behind", staticmethod(behind))
    assert block_of(fresh(stdlib.attention), *many) == expected
    assert not compiled


@pytest.mark.acceptance
def test_a_thousand_lengths_make_four_programs(compiled: list[Schedule]) -> None:
    given, random = fresh(stdlib.attention), Random(7)
    for _ in range(1000):
        shape = (random.randint(1, 8), random.randint(1, 16), random.randint(1, 8192), 64)
        given.program_for(arrays(*shape), {}, HOPPER)
    assert 2 <= len(compiled) <= 4
    assert len(compiled) == len(set(compiled))


@kernel
def picky(q: Any, k: Any, v: Any):
    """Takes no block but the default."""
    here = tile.context()
    if (here.m, here.n) != DEFAULT:
        raise ValueError("no such block")
    return tile.load(q)


def test_a_kernel_that_refuses_other_blocks_keeps_its_own(compiled: list[Schedule]) -> None:
    program, _ = picky.program_for(arrays(4, 4096, 64), {}, HOPPER)
    assert program.schedule.block == DEFAULT
    assert len(compiled) == 1


@pytest.mark.acceptance
def test_a_block_that_does_not_come_out_is_given_up(compiled: list[Schedule], monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {(192, 128)}

    def came_out(program: GuardedKernel) -> bool:
        return program.schedule.block not in refused

    monkeypatch.setattr(function, "came_out", came_out)
    given = fresh(stdlib.attention)
    program, _ = given.program_for(arrays(4, 16, 4096, 64), {}, HOPPER)
    assert program.schedule.block == (256, 64)
    assert [one.block for one in compiled] == [(192, 128), (256, 64)]
    assert given.program_for(arrays(4, 16, 4096, 64), {}, HOPPER)[0] is program
    refused |= {(256, 64), (128, 128), (64, 128)}
    program, _ = fresh(stdlib.attention).program_for(arrays(4, 16, 4096, 64), {}, HOPPER)
    assert program.schedule.block == DEFAULT


def test_other_widths_are_other_choices() -> None:
    given = fresh(stdlib.attention)
    widths = {width: block_of(given, *arrays(16, 32, 2048, width)) for width in (64, 128, 64)}
    assert widths == {64: (192, 128), 128: (192, 80)}


def test_calls_on_the_host_are_as_they_were() -> None:
    q = ts.zeros((1, 70, 16), ts.f32)
    assert stdlib.softmax.lower(q).schedule.block == DEFAULT
    assert stdlib.attention.lower(q, q, q).schedule.block == DEFAULT


def test_instances_are_counted_where_a_function_gives_the_grid() -> None:
    """Blocks of few columns are taken only then: rows alone do not tell how many instances there are."""
    wide, narrow = Candidate((192, 128, 64), 1000.0), Candidate((64, 64, 64), 300.0, counted=True)
    looked_at: Any = None
    choice = Choice(looked_at, "x", [wide, narrow])
    given = {"x": ts.empty((16, 64), ts.bf16), "out": ts.empty((16, 6144), ts.bf16)}
    assert choice.block_for(given, 132) == wide.block
    assert choice.ranked(given, 132) == [wide.block]

    def by_blocks(out: Any, block: Any) -> Any:
        return tile.cdiv(out.shape[0], block.m), tile.cdiv(out.shape[1], block.n)

    grid = GridFunction.of("k", by_blocks, inspect.signature(by_blocks))
    counts = [grid.count(given, one.block) for one in (wide, narrow)]
    assert counts == [48, 96]
    assert choice.block_for(given, 132, lambda block: grid.count(given, block)) == narrow.block
    # On a small machine they take more rounds: 96 on 24 are four, and 48 are two.
    assert choice.block_for(given, 24, lambda block: grid.count(given, block)) == narrow.block
    assert choice.block_for(given, 132, lambda block: None) == wide.block
    choice.refuse(wide.block)
    assert choice.block_for(given, 132) is None


_GROUP = 128


def test_constants_of_a_kernel_are_no_sizes_of_its_block() -> None:
    """What a kernel is looked at with is told from them, and from half of them: two elements may be in a byte."""

    def kernel_of_groups(x: Any) -> Any:
        return tile.load(x, at=(_GROUP, 96), shape=(_GROUP // 2, 96))

    assert set(constants_of(kernel_of_groups).values()) >= {_GROUP, _GROUP // 2, 96, 48}
