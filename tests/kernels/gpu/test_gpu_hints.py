"""Hints of loads, stores and loops on a GPU: results are those without them, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hinted_kernels import blocks_multiplied, product, rows_added, scaled

import tessera as ts
from tessera import Schedule, bf16, f16, f32
from tessera.dtypes.types import DType

pytestmark = pytest.mark.gpu

SCHEDULES = [Schedule(), Schedule(swizzle="none"), Schedule(vector=1), Schedule(vector=8, swizzle="xor")]


def results(function: Any, inputs: list[Any], shape: tuple[int, ...], dtype: DType, hints: dict[str, Any]) -> Any:
    """What a kernel stores, as bits."""
    out = ts.zeros(shape, dtype, device="cuda")
    function(*inputs, out, **hints)
    return out.cpu().numpy().tobytes()


@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
@pytest.mark.parametrize("hints", [{}, {"memory": "smem"}, {"vector": 1}, {"vector": 16}, {"stored": 2}], ids=str)
def test_tiles_that_are_scaled(dtype: DType, hints: dict[str, Any]) -> None:
    for rows in (1, 30, 4096):
        x = ts.randn((rows, 64), dtype, seed=rows).cuda()
        of_all = scaled[-(-rows // 16)]
        expected = (2 * x.cpu().numpy().astype(np.float32)).astype(dtype.storage).tobytes()
        for schedule in SCHEDULES:
            assert results(of_all.with_schedule(schedule), [x], (rows, 64), dtype, hints) == expected


MEMORY: list[dict[str, Any]] = [{"memory": "smem"}, {"memory": "registers"}]
AHEAD: list[dict[str, Any]] = [{"prefetch": 1}, {"prefetch": 4}]


@pytest.mark.parametrize("hints", [*AHEAD, *MEMORY, {"ahead": 2}], ids=str)
def test_sums_of_rows_that_are_loaded_ahead(hints: dict[str, Any]) -> None:
    for rows, columns in ((8, 32), (30, 777), (4000, 1000), (9, 5)):
        x = ts.randn((rows, columns), seed=columns).cuda()
        of_all = rows_added[-(-rows // 8)]
        expected = results(of_all, [x], (rows, 32), f32, {})
        assert results(of_all, [x], (rows, 32), f32, hints) == expected


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("hints", [{}, *AHEAD, *MEMORY], ids=str)
def test_products(schedule: Schedule, hints: dict[str, Any]) -> None:
    for depth in (5, 64, 1000):
        a, b = ts.randn((16, depth), f16, seed=1).cuda(), ts.randn((depth, 16), f16, seed=2).cuda()
        expected = results(product[1], [a, b], (16, 16), f32, {})
        assert results(product[1].with_schedule(schedule), [a, b], (16, 16), f32, hints) == expected


@pytest.mark.parametrize("hints", [*AHEAD, *MEMORY], ids=str)
def test_products_of_specialized_warps(hints: dict[str, Any]) -> None:
    for rows, depth, columns in (
        (64, 640, 64),
        (64, 64, 64),
        (64, 128, 8),
        (40, 1000, 56),
        (8, 5, 64),
        (64, 16384, 64),
    ):
        a, b = ts.randn((rows, depth), bf16, seed=1).cuda(), ts.randn((depth, columns), bf16, seed=2).cuda()
        out = results(blocks_multiplied[1], [a, b], (rows, columns), bf16, hints)
        assert out == results(blocks_multiplied[1], [a, b], (rows, columns), bf16, {})
        found = np.frombuffer(out, bf16.storage).reshape(rows, columns).astype(np.float32)
        expected = a.cpu().numpy().astype(np.float32) @ b.cpu().numpy().astype(np.float32)
        assert np.abs(found - expected).max() < 0.01 * np.abs(expected).max()
