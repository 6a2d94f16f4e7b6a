"""Products that end in more than a store: rows that are scaled into 8 bits, and losses of a last layer."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from triton_peers.tuning import tuned

COLUMNS = 128
"""Those of a block that have a scale in common."""


@triton.jit
def _place(M, N, BM: tl.constexpr, BN: tl.constexpr, BAND: tl.constexpr):
    """Blocks in bands of rows, which share what is in the L2 cache."""
    number, down, across = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    band = number // (BAND * across)
    first = band * BAND
    rows = min(down - first, BAND)
    return first + (number % (BAND * across)) % rows, (number % (BAND * across)) // rows


@tuned(
    [
        triton.Config({"BM": m, "BK": k, "BAND": 8}, num_warps=warps, num_stages=stages)
        for m, warps in ((64, 4), (128, 4), (128, 8), (256, 8))
        for k in (64, 128)
        for stages in (3, 4)
    ],
    key=["M", "N", "K"],
)
@triton.jit
def _quantizing(
    a, b, out, scales, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    i, j = _place(M, N, BM, BN, BAND)
    rows, columns, depth = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + depth[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        acc = tl.dot(left, right, acc)
    scale = tl.maximum(tl.max(tl.abs(acc), 1), 1e-30) / 448.0
    tl.store(out + rows[:, None] * N + columns[None, :], (acc / scale[:, None]).to(out.dtype.element_ty))
    tl.store(scales + rows * (N // BN) + j, scale)


def quantizing_gemm(a: Any, b: Any, out: Any, scales: Any) -> None:
    """Fills `out` and `scales`."""
    (m, k), n = a.shape, b.shape[1]
    _quantizing[lambda one: (triton.cdiv(m, one["BM"]) * (n // COLUMNS),)](a, b, out, scales, m, n, k, BN=COLUMNS)


@tuned(
    [
        triton.Config({"BM": m, "BN": n, "BK": 64, "BAND": 8}, num_warps=warps, num_stages=stages)
        for m, n, warps in ((64, 128, 4), (64, 256, 8), (128, 128, 4), (128, 128, 8), (128, 256, 8))
        for stages in (2, 3, 4)
    ],
    key=["M", "N", "K"],
)
@triton.jit
def _losses_of_blocks(
    x, weights, targets, logs, chosen, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    i, j = _place(M, N, BM, BN, BAND)
    rows, columns, depth = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + k + depth[None, :])
        right = tl.load(weights + columns[:, None] * K + k + depth[None, :])
        acc = tl.dot(left, tl.trans(right), acc)
    top = tl.max(acc, 1)
    tl.store(logs + j * M + rows, top + tl.log(tl.sum(tl.exp(acc - top[:, None]), 1)))
    target = tl.load(targets + rows)
    here = (target >= j * BN) & (target < j * BN + BN)
    found = tl.sum(tl.where(columns[None, :] == target[:, None], acc, 0.0), 1)
    tl.store(chosen + rows, found, mask=here)


@triton.jit
def _combined(logs, chosen, losses, M, BLOCKS, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows, blocks = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    found = tl.load(logs + blocks[:, None] * M + rows[None, :], mask=blocks[:, None] < BLOCKS, other=-float("inf"))
    top = tl.max(found, 0)
    total = top + tl.log(tl.sum(tl.exp(found - top[None, :]), 0))
    tl.store(losses + rows, total - tl.load(chosen + rows))


class LinearCrossEntropy:
    """Losses by blocks of logits, each a program, which are then combined."""

    def __init__(self, x: Any, weights: Any) -> None:
        self.m, self.k, self.n = *x.shape, weights.shape[0]
        self.logs = torch.empty((self.n // 128, self.m), device=x.device)
        self.chosen, self.losses = (torch.empty(self.m, device=x.device) for _ in range(2))

    def __call__(self, x: Any, weights: Any, targets: Any) -> Any:
        m, n, k = self.m, self.n, self.k
        _losses_of_blocks[lambda one: (triton.cdiv(m, one["BM"]) * (n // one["BN"]),)](
            x, weights, targets, self.logs, self.chosen, m, n, k
        )
        blocks = n // _losses_of_blocks.best_config.kwargs["BN"]
        width = triton.next_power_of_2(blocks)
        _combined[m // 32,](self.logs, self.chosen, self.losses, m, blocks, WIDTH=width, ROWS=32, num_warps=8)
        return self.losses
