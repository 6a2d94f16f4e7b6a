"""Kernels that load blocks of several pages, warp-specialized: right where sequences end anywhere, and clean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_runs import copies
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_kernels import attended, attention, gathered, sequences
from ptx_checks import check_clean, count

import tessera as ts
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups


def traced(page: int, lengths: list[int], n: int, d: int, seed: int = 1) -> tuple[Any, str, list[Any], Any, range]:
    """The kernel, its arguments, and what it is to give."""
    (pages, table, keys), (values, _, kept) = (sequences(one, page, lengths, d=d) for one in (seed, seed))
    q = np.random.default_rng(seed).standard_normal((len(lengths), 2, 64, d)).astype(np.float32)
    half = ts.bf16.storage
    held = [one.astype(half) for one in (q, pages, values)]
    out = np.full(q.shape, np.nan, np.float32)
    arguments = [*held, table, np.array(lengths), out]
    made = attended[len(lengths), 2].lower(*arguments, g=64, n=n, d=d)
    rounded = [[one.astype(half).astype(np.float32) for one in part] for part in (keys, kept)]
    expected = attention(held[0].astype(np.float32), *rounded)
    aligned = range(len(symbol_in(made.module, made.name, tile.FuncOp).arguments))
    return made.module, made.name, arguments, expected, aligned


def run(page: int, lengths: list[int], n: int, d: int, blocks: int, seed: int) -> None:
    module, name, arguments, expected, aligned = traced(page, lengths, n, d, seed)
    lowered = lower_kernel(module, name, gpu(row_aligned=aligned))[0]
    assert "nv.wgmma" in text.write(lowered)
    given_ = copies(arguments)
    run_warpgroups(lowered, name, given_, blocks=blocks, seed=seed)
    np.testing.assert_allclose(given_[-1], expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("page", "d"), [(16, 64), (8, 128)])
def test_they_mean_the_same(page: int, d: int) -> None:
    run(page, [37, 64, 1], 64, d, blocks=2, seed=3)
