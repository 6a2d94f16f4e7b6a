"""Running sums, orders, and the largest of rows."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from triton_peers.tuning import tuned

WHOLE = [
    triton.Config({"ROWS": rows}, num_warps=warps)
    for rows, most in ((1, (2, 4, 8, 16, 32)), (2, (4, 8, 16, 32)), (4, (8, 16, 32)))
    for warps in most
]
ORDERS = [
    triton.Config({"ROWS": rows}, num_warps=warps, maxnreg=registers)
    for rows, warps, registers in (
        *((1, 2, None), (1, 4, None), (1, 8, None), (1, 16, None), (1, 32, None)),
        *((1, 4, 128), (1, 8, 64), (1, 8, 128), (1, 16, 64), (2, 8, None), (2, 16, None), (2, 32, None)),
    )
]
"""Of fewer rows: such kernels take many seconds to compile."""
PIECES = [
    triton.Config({"BLOCK": block}, num_warps=warps)
    for block in (1024, 2048, 4096, 8192, 16384)
    for warps in (4, 8, 16)
]


@tuned(WHOLE, key=["M"])
@triton.jit
def _cumsum(x, out, M, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1))


def cumsum(x: Any) -> Any:
    """Of rows that fit into a program."""
    out = torch.empty_like(x)
    _cumsum[lambda one: (x.shape[0] // one["ROWS"],)](x, out, x.shape[0], WIDTH=x.shape[1])
    return out


@tuned(PIECES, key=["N"])
@triton.jit
def _sums(x, sums, N, BLOCK: tl.constexpr):
    row, piece = tl.program_id(1).to(tl.int64), tl.program_id(0)
    at = row * N + piece * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + row * (N // 1024) + piece, tl.sum(tl.load(x + at)))


@tuned(PIECES, key=["N"])
@triton.jit
def _sums_behind(x, sums, out, N, PIECE, PIECES: tl.constexpr, BLOCK: tl.constexpr):
    row, piece = tl.program_id(1).to(tl.int64), tl.program_id(0)
    before = tl.arange(0, PIECES)
    held = tl.load(sums + row * (N // 1024) + before, mask=before < piece * BLOCK // PIECE, other=0.0)
    at = row * N + piece * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    inside = (piece * BLOCK) % PIECE
    start = tl.sum(held)
    for first in range(0, inside, BLOCK):
        start += tl.sum(tl.load(x + row * N + piece * BLOCK - inside + first + tl.arange(0, BLOCK)))
    tl.store(out + at, start + tl.cumsum(values))


class LongCumsum:
    """Of long rows: the sums of pieces, then each piece with what is before it."""

    def __init__(self, x: Any) -> None:
        self.sums = torch.empty((x.shape[0], x.shape[1] // 1024), device=x.device)
        self.out = torch.empty_like(x)

    def __call__(self, x: Any) -> Any:
        rows, width = x.shape
        _sums[lambda one: (width // one["BLOCK"], rows)](x, self.sums, width)
        piece = _sums.best_config.kwargs["BLOCK"]
        _sums_behind[lambda one: (width // one["BLOCK"], rows)](
            x, self.sums, self.out, width, piece, PIECES=triton.next_power_of_2(width // piece)
        )
        return self.out


@tuned(ORDERS, key=["M"])
@triton.jit
def _sort(x, out, M, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), 1))


def sort(x: Any) -> Any:
    """Without indices."""
    out = torch.empty_like(x)
    _sort[lambda one: (x.shape[0] // one["ROWS"],)](x, out, x.shape[0], WIDTH=x.shape[1])
    return out


@tuned(ORDERS, key=["M", "K"])
@triton.jit
def _topk(x, indices, M, K, WIDTH: tl.constexpr, MOST: tl.constexpr, ROWS: tl.constexpr):
    """Numbers in the order of their bits, in front of indices that grow as they get less."""
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    bits = tl.load(x + rows[:, None] * WIDTH + columns[None, :]).to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.to(tl.int64) << 32) | (WIDTH - 1 - columns)[None, :].to(tl.int64)
    best = tl.topk(keys, MOST, 1)
    which = tl.arange(0, MOST)
    found = WIDTH - 1 - (best & 0xFFFFFFFF)
    tl.store(indices + rows[:, None] * K + which[None, :], found, mask=which[None, :] < K)


def topk(x: Any, count: int) -> Any:
    """Indices."""
    found = torch.empty((x.shape[0], count), dtype=torch.int64, device=x.device)
    most = max(16, triton.next_power_of_2(count))
    _topk[lambda one: (x.shape[0] // one["ROWS"],)](x, found, x.shape[0], count, WIDTH=x.shape[1], MOST=most)
    return found


@tuned(PIECES, key=["N"])
@triton.jit
def _argmax(x, out, N, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, N, BLOCK):
        at = first + columns
        values = tl.load(x + row * N + at, mask=at < N, other=-float("inf")).to(tl.float32)
        where = tl.where(values > best, at, where)
        best = tl.maximum(best, values)
    top = tl.max(best, 0)
    tl.store(out + row, tl.min(tl.where(best == top, where, N), 0).to(tl.int64))


def argmax(x: Any) -> Any:
    found = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    _argmax[x.shape[0],](x, found, x.shape[1])
    return found
