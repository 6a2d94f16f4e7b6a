"""Warp-specialized kernels that store under masks, in branches and at computed places, on a GPU against NumPy."""

from __future__ import annotations

import pytest
from placed_kernels import NAMES, check, placed

import tessera as ts

pytestmark = pytest.mark.gpu
SIZES = [(64, 64, 32), (128, 128, 64), (192, 32, 16), (64, 256, 64)]
SHAPES = [(1, 8, 8), (200, 72, 80), (1000, 264, 136), (513, 520, 1024), (300, 8, 0)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_they_are_right(name: str, sizes: tuple[int, int, int]) -> None:
    for seed, shape in enumerate(SHAPES):
        call = placed(name, seed, sizes, *shape)
        given = [ts.asarray(array).cuda() for array in call.given]
        call.kernel(*given, **call.static)
        check(call, [array.cpu().numpy() for array in given[-call.written :]])
        assert "compiled: warp-specialized" in call.kernel.explain()


@pytest.mark.parametrize("rows", [1, 7, 8])
def test_rows_that_are_not_aligned(rows: int) -> None:
    """The result begins at an odd element, and its rows are not next to each other: elements go one by one."""
    call = placed("masked", 1, (64, 64, 32), 130, 72, 80)
    a, b, _ = (ts.asarray(array).cuda() for array in call.given)
    out = ts.full((130, 72 + rows), 7, ts.bf16, device="cuda")
    part = out[:, rows:]
    call.kernel(a, b, part, **call.static)
    check(call, [part.cpu().numpy()])
    assert (out[:, :rows].cpu().numpy() == 7).all()
