"""Checks attention whose scale is known: powers of two in place of exponentials, masks that are certain left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_runs import at_tile_level

import tessera as ts
from tessera.ir.tile import dialect as tile
from tessera.stdlib import flash_attention
from tessera.targets import text
from tessera.targets.cpu.lower.certain_masks import drop_certain_masks
from tessera.targets.cpu.lower.extents import Extents
from tessera.tile.language.schedule import Schedule
from tessera.transforms.core.facts import Recorder

FACTS = ("scale", "q.size[2]", "k.size[2]", "v.size[2]", "o.size[2]")


def attention(q: Any, k: Any, v: Any, scale: float, *, causal: bool) -> Any:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)


@pytest.mark.parametrize(
    ("keys", "block", "causal"),
    [
        pytest.param(96, (24, 32), True),
        pytest.param(83, (16, 48), False, marks=pytest.mark.acceptance),
        pytest.param(83, (16, 48), True, marks=pytest.mark.acceptance),
        pytest.param(64, (64, 64), False, marks=pytest.mark.acceptance),
    ],
)
def test_a_known_scale_is_as_exact(keys: int, block: tuple[int, int], causal: bool) -> None:
    generator = np.random.default_rng(keys)
    kernel = flash_attention.with_schedule(Schedule(block=block)).assume(*FACTS)
    for scale in (0.25, 4.0):  # scores up to about 10, and up to about 200
        q, k, v = (generator.standard_normal((1, 2, keys, 16)).astype(np.float32) for _ in range(3))
        o = np.zeros_like(q)
        kernel(*map(ts.asarray, (q, k, v)), ts.asarray(o), scale, causal=causal)
        true = attention(q, k, v, scale, causal=causal)
        assert np.linalg.norm(o - true) / np.linalg.norm(true) <= 2e-6
        plain = np.zeros_like(q)
        flash_attention.with_schedule(Schedule(block=block))(q, k, v, plain, scale, causal=causal)
        assert np.linalg.norm(o - plain) / np.linalg.norm(true) <= 4e-6


@pytest.mark.parametrize("scale", [0.25, 0.3])
def test_scores_of_any_size(scale: float) -> None:
    """So large that units in the last place are beyond all exponents."""
    generator = np.random.default_rng(9)
    kernel = flash_attention.with_schedule(Schedule(block=(16, 32))).assume(*FACTS)
    q, k = (generator.integers(-4, 5, (1, 2, 64, 16)).astype(np.float32) for _ in range(2))
    v = generator.standard_normal((1, 2, 64, 16)).astype(np.float32)
    for size in (2.0**20, 2.0**30, 2.0**98):
        o = np.zeros_like(q)
        kernel(*map(ts.asarray, (q * np.float32(size), k, v)), ts.asarray(o), scale, causal=True)
        true = attention(q * size, k, v, scale, causal=True)
        assert np.linalg.norm(o - true) / np.linalg.norm(true) <= 2e-6


MASKED = """
tile.func @k(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[8, N], [8, N]] grid [1] {{
  %zero = arith.constant 0 : index
  %step = arith.constant 32 : index
  %last = arith.constant {keys} : index
  scf.for %at = %zero to %last step %step {{
    %a = tile.load %x[%zero, %at] : !tile.view<2, f32, global> -> tensor<8x32xf32>
    %col = tile.iota %at, 1 : tensor<8x32xi64>
    %end = arith.constant {keys} : i64
    %ends = tile.full %end : tensor<8x32xi64>
    %inside = tile.ew<lt> %col, %ends : tensor<8x32xi64>, tensor<8x32xi64> -> tensor<8x32xi1>
    %least = arith.constant 0xFF800000 : f32
    %nothing = tile.full %least : tensor<8x32xf32>
    %b = tile.ew<select> %inside, %a, %nothing : tensor<8x32xi1>, tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x32xf32>
    tile.store %b, %y[%zero, %at] : tensor<8x32xf32>, !tile.view<2, f32, global>
  }}
  tile.return
}}
"""


@pytest.mark.parametrize(("keys", "masks"), [(96, 0), (95, 1), (97, 1), (32, 0)])
def test_masks_that_are_true_all_over(keys: int, masks: int) -> None:
    """Blocks that end where the array does need none."""
    module = text.read(MASKED.format(keys=keys))
    function = module.body.block.first_op
    assert isinstance(function, tile.FuncOp)
    drop_certain_masks(function, Extents(function, Recorder()))
    text.verify(module)
    left = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "select"]
    assert len(left) == masks
    x = np.arange(8.0 * 100, dtype=np.float32).reshape(8, 100)
    before, after = (
        at_tile_level(one, "k", [x, np.zeros_like(x)]) for one in (text.read(MASKED.format(keys=keys)), module)
    )
    np.testing.assert_array_equal(after[1], before[1])
