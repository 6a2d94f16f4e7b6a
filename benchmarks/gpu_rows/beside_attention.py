"""Rows of attention that memory directs, and of two in one kernel: `beside varlen`, `sparse`, `differential`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tessera as ts
from tessera import stdlib
from tessera.bench.cuda.declarations import Contest, Inputs, Yardstick, kernel_text, row
from tessera.bench.cuda.kernel_texts import text_for, text_of, ways_of
from tessera.bench.instruments.libraries import library

sys.path.append(str(Path(__file__).parents[2] / "examples" / "kernels"))
import block_sparse_attention
import differential_attention
import varlen_attention

TOKENS, HEADS = 8192, 32
VARLEN_ROWS = 128
"""Of a program instance: two consumers have 64 each."""
LOOKED_AT = 64
"""Rows of each head that are compared with the truth."""


# Documents one behind the other


def lengths_of(documents: int) -> list[int]:
    """Uneven ones: the longest is several times the shortest; no boundary is a multiple of a block."""
    shares = np.random.default_rng(documents).gamma(2.0, size=documents) + 0.3
    ends = np.round(np.cumsum(shares) / shares.sum() * TOKENS).astype(int)
    return [int(length) for length in np.diff(ends, prepend=0)]


def documents_of(starts: Any) -> Any:
    """The document of each token."""
    torch = library("torch")
    return torch.searchsorted(starts[1:], torch.arange(TOKENS, device=starts.device), right=True)


def varlen_truth(q: Any, k: Any, v: Any, starts: Any) -> Any:
    torch = library("torch")
    rows = torch.arange(0, TOKENS, TOKENS // LOOKED_AT, device=q.device)
    number = documents_of(starts)
    every = torch.arange(TOKENS, device=q.device)
    seen = (number[rows][:, None] == number) & (rows[:, None] >= every)
    q, k, v = (x.transpose(0, 1).double() for x in (q, k, v))
    scores = (q[:, rows] @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, -math.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1)


def flash_varlen(q: Any, k: Any, v: Any, starts: Any, longest: int) -> Any:
    forward = library("torch").ops.aten._flash_attention_forward  # noqa: SLF001  (it has no other name)
    return forward(q, k, v, starts, starts, longest, longest, 0.0, True, False)[0]


def cudnn_varlen(q: Any, k: Any, v: Any, starts: Any, longest: int) -> Any:
    forward = library("torch").ops.aten._cudnn_attention_forward  # noqa: SLF001  (it has no other name)
    return forward(q, k, v, None, starts, starts, longest, longest, False, 0.0, True, False)[0]


def torch_varlen(q: Any, k: Any, v: Any, starts: Any, longest: int) -> Any:
    attend = library("torch.nn.attention.varlen").varlen_attn
    try:
        return attend(q, k, v, starts, starts, longest, longest, True)
    except TypeError:  # newer ones say it by a window
        return attend(q, k, v, starts, starts, longest, longest, window_size=(-1, 0))


def flex(q: Any, k: Any, v: Any, number: Any) -> Callable[[], Any]:
    torch, module = library("torch"), library("torch.nn.attention.flex_attention")

    def same_document(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return (number[query] == number[key]) & (query >= key)

    blocks = module.create_block_mask(same_document, None, None, TOKENS, TOKENS)
    torch.compiler.reset()
    compiled = torch.compile(module.flex_attention, dynamic=False)
    lying = [x.transpose(0, 1)[None] for x in (q, k, v)]
    return lambda: compiled(*lying, block_mask=blocks)[0].transpose(0, 1)


def declare_varlen(documents: int, width: int) -> None:
    lengths = lengths_of(documents)
    flops = 4.0 * HEADS * width * sum(length * (length + 1) / 2 for length in lengths)

    called = f"beside varlen {documents} documents D {width} bf16"
    grid = documents, HEADS, -(-max(lengths) // VARLEN_ROWS)
    kernel, static = varlen_attention.varlen_attention[grid], {"rows": VARLEN_ROWS, "d": width, "causal": True}

    @kernel_text(called)
    def text() -> str:
        *given, out = (ts.empty((TOKENS, HEADS, width), ts.bf16) for _ in range(4))
        return text_for(kernel, *given, ts.empty((documents + 1,), ts.i32), out, **static)

    @row(called, "bf16", flops=flops, bars={"best": 1.1}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.device import made_late

        torch = library("torch")
        q, k, v = (make.normal(TOKENS, HEADS, width) for _ in range(3))
        starts = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32, device=make.device)
        out, longest = torch.empty_like(q), max(lengths)
        ours = [ts.from_dlpack(x) for x in (q, k, v, starts, out)]

        def call() -> Any:
            kernel(*ours, **static)
            return out

        return Contest(
            truth=lambda: varlen_truth(q, k, v, starts),
            ours=call,
            peers={
                "flex": made_late(lambda: flex(q, k, v, documents_of(starts))),
                "flash": partial(flash_varlen, q, k, v, starts, longest),
                "cudnn": partial(cudnn_varlen, q, k, v, starts, longest),
                "varlen_attn": partial(torch_varlen, q, k, v, starts, longest),
            },
            part=lambda result: result.reshape(TOKENS, HEADS, width)[:: TOKENS // LOOKED_AT],
            ptx={called: partial(text_of, kernel, *ours, **static)},
            ways=lambda: ways_of(kernel, *ours, **static),
        )


for _documents in (2, 8, 32):
    for _width in (64, 128):
        declare_varlen(_documents, _width)


# Blocks from lists

SPARSE_HEADS, LENGTH, BLOCK, SHARE = 32, 8192, 128, 0.25


def declare_sparse(width: int) -> None:
    """Each block of queries sees a quarter of the blocks of keys, drawn anew for each."""
    blocks = LENGTH // BLOCK
    each = round(blocks * SHARE)
    flops = 4.0 * SPARSE_HEADS * width * LENGTH * each * BLOCK

    called = f"beside sparse {SPARSE_HEADS}×{LENGTH}×{width} a quarter bf16"
    plain_text = f"beside plain attention {SPARSE_HEADS}×{LENGTH}×{width} bf16"
    kernel, static = block_sparse_attention.block_sparse_attention[blocks, SPARSE_HEADS], {"rows": BLOCK, "d": width}

    def unmade() -> list[Any]:
        return [ts.empty((SPARSE_HEADS, LENGTH, width), ts.bf16) for _ in range(3)]

    @kernel_text(called)
    def text() -> str:
        lists = ts.empty((blocks + 1,), ts.i32), ts.empty((blocks * each,), ts.i32)
        return text_for(kernel, *unmade(), *lists, unmade()[0], **static)

    @kernel_text(plain_text)
    def text_of_plain() -> str:
        return text_for(stdlib.attention, *unmade())

    @row(called, "bf16", flops=flops, bars={"plain": 0.85}, kernels=[called, plain_text])
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        q, k, v = (make.normal(SPARSE_HEADS, LENGTH, width) for _ in range(3))
        columns = torch.rand(blocks, blocks, device=make.device).argsort(1)[:, :each].sort(1).values
        starts = torch.arange(0, blocks * each + 1, each, dtype=torch.int32, device=make.device)
        out = torch.empty_like(q)
        listed = columns.flatten().int()
        ours = [ts.from_dlpack(x) for x in (q, k, v, starts, listed, out)]
        rows = torch.arange(0, LENGTH, LENGTH // LOOKED_AT, device=make.device)

        def call() -> Any:
            kernel(*ours, **static)
            return out

        def expected() -> Any:
            seen = torch.zeros(blocks, blocks, dtype=torch.bool, device=make.device).scatter_(1, columns, True)
            seen = seen[rows // BLOCK].repeat_interleave(BLOCK, 1)
            scores = q[:, rows].double() @ k.double().mT / width**0.5
            return scores.masked_fill(~seen, -math.inf).softmax(-1) @ v.double()

        plain = Yardstick(partial(stdlib.attention, *ours[:3]), 4.0 * SPARSE_HEADS * width * LENGTH * LENGTH)
        return Contest(
            truth=expected,
            ours=call,
            yardsticks={"plain": plain},
            part=lambda result: result[:, rows],
            ptx={
                called: partial(text_of, kernel, *ours, **static),
                plain_text: partial(text_of, stdlib.attention, *ours[:3]),
            },
            ways=lambda: ways_of(kernel, *ours, **static),
        )


for _width in (64, 128):
    declare_sparse(_width)


# The difference of two

BATCH, SEVERAL, TIMES = 4, 16, 0.3


def declare_differential(length: int, width: int) -> None:
    shape = BATCH * SEVERAL, length, width
    flops = 2 * 4.0 * math.prod(shape) * length

    called = f"beside differential {BATCH}×{SEVERAL}×{length}×{width} bf16"
    kernel = differential_attention.differential_attention.grid(differential_attention.by_rows)
    static: dict[str, Any] = {"d": width, "share": TIMES}

    @kernel_text(called)
    def text() -> str:
        return text_for(kernel, *(ts.empty(shape, ts.bf16) for _ in range(6)), **static)

    # A difference has the errors of both, and less of a norm.
    @row(called, "bf16", flops=flops, bars={"cudnn twice": 1.2}, kernels=[called], bound=8e-3)
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        functional, ways = library("torch.nn.functional"), library("torch.nn.attention")
        q1, k1, q2, k2, v = given = [make.normal(*shape) for _ in range(5)]
        out = torch.empty_like(v)
        ours = [ts.from_dlpack(x) for x in (*given, out)]
        rows = torch.arange(0, length, length // LOOKED_AT, device=make.device)
        heads = [x.unflatten(0, (BATCH, SEVERAL)) for x in given]

        def softmax(q: Any, k: Any) -> Any:
            return (q[:, rows].double() @ k.double().mT / width**0.5).softmax(-1) @ v.double()

        def call() -> Any:
            kernel(*ours, **static)
            return out

        def twice() -> Any:
            with ways.sdpa_kernel(ways.SDPBackend.CUDNN_ATTENTION):
                first = functional.scaled_dot_product_attention(heads[0], heads[1], heads[4])
                second = functional.scaled_dot_product_attention(heads[2], heads[3], heads[4])
            return torch.sub(first, second, alpha=TIMES).flatten(0, 1)

        return Contest(
            truth=lambda: softmax(q1, k1) - TIMES * softmax(q2, k2),
            ours=call,
            peers={"cudnn twice": twice},
            part=lambda result: result[:, rows],
            ptx={called: partial(text_of, kernel, *ours, **static)},
            ways=lambda: ways_of(kernel, *ours, **static),
        )


for _width in (64, 128):
    declare_differential(4096, _width)
