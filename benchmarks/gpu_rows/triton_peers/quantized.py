"""Products with weights of 8 and 4 bits and a scale for each group of 128 along the depth; the depth may be split."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from triton_peers.tuning import tuned

SPLITS = 8


FEW = [
    triton.Config({"BM": 16, "BN": n, "SPLIT": split}, num_warps=warps, num_stages=4)
    for n, warps in ((32, 4), (64, 4), (128, 4), (128, 8))
    for split in (1, 4, SPLITS)
]
MANY = [
    triton.Config({"BM": m, "BN": n, "SPLIT": 1}, num_warps=warps, num_stages=stages)
    for m, n, warps in ((64, 128, 4), (128, 64, 4), (128, 128, 4), (128, 128, 8), (128, 256, 8), (64, 256, 8))
    for stages in (2, 3)
]


def _fitting(configs: list[triton.Config], named: dict[str, Any], **_: Any) -> list[triton.Config]:
    """Few rows take few, and split the depth; many rows do not."""
    few = named["M"] <= 16
    return [one for one in configs if (one.kwargs["BM"] == 16) == few]


@tuned([*FEW, *MANY], key=["M", "N", "K"], prune_configs_by={"early_config_prune": _fitting})
@triton.jit
def _int8(
    x, weights, scales, out, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, GROUP)
    each = tl.cdiv(K // GROUP, SPLIT)
    first = tl.program_id(2) * each
    acc = tl.zeros((BM, BN), tl.float32)
    for group in range(first, min(first + each, K // GROUP)):
        k = group * GROUP + depth
        left = tl.load(x + rows[:, None] * K + k[None, :], mask=rows[:, None] < M, other=0.0)
        held = tl.load(weights + k[:, None].to(tl.int64) * N + columns[None, :])
        scale = tl.load(scales + group * N + columns)
        acc = tl.dot(left, (held.to(tl.float32) * scale.to(tl.float32)[None, :]).to(tl.bfloat16), acc)
    at = (tl.program_id(2) * M + rows[:, None]) * N + columns[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=rows[:, None] < M)


@tuned([*FEW, *MANY], key=["M", "N", "K"], prune_configs_by={"early_config_prune": _fitting})
@triton.jit
def _int4(
    x, packed, scales, out, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Even rows of the weights lie in the low halves of bytes, odd ones in the high ones: two products."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    half = tl.arange(0, GROUP // 2)
    each = tl.cdiv(K // GROUP, SPLIT)
    first = tl.program_id(2) * each
    acc = tl.zeros((BM, BN), tl.float32)
    for group in range(first, min(first + each, K // GROUP)):
        k = group * GROUP + 2 * half
        seen = rows[:, None] < M
        even = tl.load(x + rows[:, None] * K + k[None, :], mask=seen, other=0.0)
        odd = tl.load(x + rows[:, None] * K + k[None, :] + 1, mask=seen, other=0.0)
        held = tl.load(packed + (group * (GROUP // 2) + half)[:, None].to(tl.int64) * N + columns[None, :])
        held = held.to(tl.int8, bitcast=True)
        low, high = (held << 4) >> 4, held >> 4
        scale = tl.load(scales + group * N + columns).to(tl.float32)[None, :]
        acc = tl.dot(even, (low.to(tl.float32) * scale).to(tl.bfloat16), acc)
        acc = tl.dot(odd, (high.to(tl.float32) * scale).to(tl.bfloat16), acc)
    at = (tl.program_id(2) * M + rows[:, None]) * N + columns[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=rows[:, None] < M)


@triton.jit
def _added(parts, out, COUNT, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * COUNT + at, mask=at < COUNT, other=0.0)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=at < COUNT)


class Product:
    """x times weights, into an array that is made once."""

    def __init__(self, x: Any, bits: int, width: int) -> None:
        self.kernel = _int8 if bits == 8 else _int4
        (self.m, self.k), self.n = x.shape, width
        self.out = torch.empty((self.m, width), dtype=x.dtype, device=x.device)
        # Few rows are computed in parts; all of them are added up, in one order.
        few = self.m <= 16
        self.parts = torch.empty((SPLITS, self.m, width), device=x.device) if few else self.out

    def __call__(self, x: Any, weights: Any, scales: Any) -> Any:
        m, n, k = self.m, self.n, self.k
        self.kernel[lambda one: (triton.cdiv(m, one["BM"]), n // one["BN"], one["SPLIT"])](
            x, weights, scales, self.parts, m, n, k, GROUP=128
        )
        if self.parts is not self.out:
            split = self.kernel.best_config.kwargs["SPLIT"]
            _added[triton.cdiv(m * n, 1024),](self.parts, self.out, m * n, SPLIT=split, BLOCK=1024)
        return self.out
