"""Kernels that load blocks of several pages, warp-specialized: right where sequences end anywhere, and clean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu_runs import copies
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_kernels import Array, attended, attention, sequences
from ptx_checks import check_clean, count
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import kernel, tile
from tessera.errors import ShapeError
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks
from tessera.ir.tile import dialect as tile_ir
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.transforms.algebra.implied_masks import drop_implied_masks
from tessera.transforms.pipelining.form_box_loads import form_box_loads


class Traced(NamedTuple):
    module: ModuleOp
    name: str
    arguments: list[Any]
    expected: Array

    @property
    def function(self) -> tile_ir.FuncOp:
        return symbol_in(self.module, self.name, tile_ir.FuncOp)

    @property
    def aligned(self) -> range:
        return range(len(self.arguments))


def traced(page: int, lengths: list[int], n: int, d: int, seed: int = 1, kernel_: Any = attended) -> Traced:
    """The kernel, its arguments, and what it is to give; unused parts of pages, and unused pages, hold NaN."""
    (pages, table, keys), (values, _, kept) = (sequences(seed, page, lengths, d=d) for _ in range(2))
    values, kept = -values, [-one for one in kept]
    half, q = ts.bf16.storage, np.random.default_rng(seed).standard_normal((len(lengths), 2, 64, d))
    held = [one.astype(half) for one in (q, pages, values)]
    arguments = [*held, table, np.array(lengths), np.full(q.shape, np.nan, np.float32)]
    made = kernel_[len(lengths), 2].lower(*arguments, g=64, n=n, d=d)
    rounded = [[one.astype(half).astype(np.float32) for one in part] for part in (keys, kept)]
    expected = np.zeros(q.shape, np.float32)
    some = [b for b, length in enumerate(lengths) if length]
    if some:
        expected[some] = attention(held[0][some].astype(np.float32), *([part[b] for b in some] for part in rounded))
    return Traced(made.module, made.name, arguments, expected)


def run(page: int, lengths: list[int], n: int, d: int, blocks: int, seed: int) -> None:
    found = traced(page, lengths, n, d, seed)
    lowered = lower_kernel(found.module, found.name, gpu(row_aligned=found.aligned))[0]
    assert "nv.wgmma" in text.write(lowered)
    arguments = copies(found.arguments)
    run_warpgroups(lowered, found.name, arguments, blocks=blocks, seed=seed)
    np.testing.assert_allclose(arguments[-1], found.expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("page", "d"), [(16, 64), (8, 128), (64, 64), (128, 80)])
def test_they_mean_the_same(page: int, d: int) -> None:
    run(page, [37, 64, 0, 83], 64, d, blocks=2, seed=3)


@pytest.mark.acceptance
@settings(max_examples=15)
@given(
    st.sampled_from([(4, 64), (8, 64), (16, 64), (16, 128), (32, 64), (64, 64), (128, 64)]),
    st.lists(st.integers(0, 150), min_size=1, max_size=3),
    st.sampled_from([32, 64, 80, 128]),
    st.integers(0, 99),
)
def test_any_lengths_mean_the_same(sizes: tuple[int, int], lengths: list[int], d: int, seed: int) -> None:
    run(sizes[0], lengths, sizes[1], d, blocks=2, seed=seed)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([4, 8, 16, 32]), st.lists(st.integers(0, 70), min_size=1, max_size=3), st.integers(0, 99))
def test_boxes_are_what_is_read(page: int, lengths: list[int], seed: int) -> None:
    """In the interpreter, whose checks see the same elements."""
    found = traced(page, lengths, 32, 16, seed)
    read, boxes = copies(found.arguments), copies(found.arguments)
    checks, traces = Checks(bounds=True, races=True, padding=True), (Trace(), Trace())
    run_kernel(found.module, found.name, read, checks=checks, trace=traces[0])
    drop_implied_masks(found.function)
    form_box_loads(found.function)
    formed = [op for op in found.function.body.walk() if isinstance(op, tile_ir.LoadBoxesOp)]
    assert [len(op.boxes) for op in formed] == [32 // page, 32 // page]
    run_kernel(found.module, found.name, boxes, checks=checks, trace=traces[1])
    np.testing.assert_array_equal(read[-1], boxes[-1])
    of_pages = [
        [(one.program, one.argument, *one.offsets) for one in trace if one.argument in (1, 2)] for trace in traces
    ]
    # A block of one page is loaded, and cut off behind that.
    assert all(
        set(seen) <= set(loaded) if page == 32 else seen == loaded for loaded, seen in zip(*of_pages, strict=True)
    )


def test_a_page_that_is_none_is_told() -> None:
    found = traced(8, [40], 32, 16)
    found.arguments[3][0, 2] = 99
    drop_implied_masks(found.function)
    form_box_loads(found.function)
    with pytest.raises(ShapeError, match="index 99 of axis 0 is out of range"):
        run_kernel(found.module, found.name, found.arguments, checks=Checks(bounds=True))


@pytest.mark.parametrize(("page", "d"), [(16, 128), (8, 64)])
def test_ptx_of_them_is_clean(page: int, d: int) -> None:
    found = traced(page, [256, 37], 128, d)
    made = compile_kernel(found.module, found.name, gpu(row_aligned=found.aligned))
    assert count(made.ptx, "wgmma.mma_async") > 0
    assert not made.report.fallbacks
    check_clean(made.ptx, "sm_90a")


@kernel
def shuffled(q: Any, pages: Any, values: Any, table: Any, lengths: Any, out: Any, *, g: int, n: int, d: int):
    """Each row has a page of its own."""
    b, h = tile.program_id(0), tile.program_id(1)
    acc = tile.zeros((g, n))
    for first in tile.range(0, tile.item(lengths, b), d):
        rows = tile.gather(pages, tile.load(table[b], at=(0,), shape=(n,)), at=(h, 0, first), shape=(1, 1, d))
        acc = tile.dot(tile.load(q[b, h], at=(0, first), shape=(g, d)), tile.reshape(rows, (n, d)).T, acc)
    tile.store(out[b, h], acc, at=(0, 0))


def test_places_that_are_no_boxes_stay() -> None:
    found = traced(16, [20, 40], 16, 64, kernel_=shuffled)
    before = str(found.function)
    form_box_loads(found.function)
    assert str(found.function) == before


def test_many_small_pages_are_refused_with_a_reason() -> None:
    found = traced(4, [80], 128, 64)
    report = lower_kernel(found.module, found.name, gpu(row_aligned=found.aligned)).report
    (refused,) = report.fallbacks
    assert "looked up one by one" in refused.reason
    assert "16 groups" in (refused.hint or "")
