"""Rows of decoding through the public operator, and with pages in random order: names begin with `beside decode`.

Calls take one of several caches after the other, more than twice the L2 cache together: keys come from memory.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, Yardstick, kernel_text, row
from tessera.bench.cuda.kernel_texts import program_text_for, text_of_calls, text_of_program, ways_of
from tessera.bench.instruments.libraries import library

sys.path.append(str(Path(__file__).parents[2] / "examples" / "kernels"))
import paged_decode

HEADS, GROUP, WIDTH = 8, 4, 128
"""Heads of keys, query heads that share one, and columns of each."""
PAGE = 16
BACKENDS = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}
SIZES = [(batch, keys) for batch in (1, 8, 64) for keys in (4096, 32768)]
MEMORY_BOUND = 262_144
"""So many keys of all sequences are bound by memory alone."""


def sizes_of(batch: int, keys: int) -> tuple[float, float, tuple[int, ...], tuple[int, ...]]:
    """Bytes, operations, and the shapes of queries and keys."""
    queries, cached = (batch, HEADS * GROUP, 1, WIDTH), (batch, HEADS, keys, WIDTH)
    return 2.0 * (2 * math.prod(cached) + 2 * math.prod(queries)), 4.0 * math.prod(queries) * keys, queries, cached


def attend(given: tuple[Any, ...], way: str) -> Any:
    functional, ways = library("torch.nn.functional"), library("torch.nn.attention")
    with ways.sdpa_kernel(getattr(ways.SDPBackend, way)):
        return functional.scaled_dot_product_attention(*given, enable_gqa=True)


def truth(q: Any, k: Any, v: Any) -> Any:
    """A batch at a time: keys in float64 are large."""
    torch = library("torch")
    batch = q.shape[0]
    found = torch.empty((batch, HEADS, GROUP, WIDTH), dtype=torch.float64, device=q.device)
    for index in range(batch):
        each = q[index].reshape(HEADS, GROUP, WIDTH).double(), k[index].double(), v[index].double()
        found[index] = (each[0] @ each[1].mT / WIDTH**0.5).softmax(-1) @ each[2]
    return found


def part(result: Any) -> Any:
    return result.reshape(-1, HEADS, GROUP, WIDTH)


def contiguous(batch: int, keys: int) -> str:
    """The name of a row."""
    return f"beside decode B {batch} T {keys} bf16"


def declare(batch: int, keys: int) -> None:
    moves, flops, queries, cached = sizes_of(batch, keys)
    bars = {"cudnn": 0.95, **({"copy": 0.9} if batch * keys >= MEMORY_BOUND else {})}

    called = contiguous(batch, keys)

    @kernel_text(called)
    def text() -> str:
        shapes = queries, cached, cached
        return program_text_for(ts.flash_attention.eager, [ts.empty(shape, ts.bf16) for shape in shapes])

    @row(called, "bf16", moves=moves, flops=flops, bars=bars, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.device import copies_beyond_cache, in_rotation

        copies = copies_beyond_cache(moves)
        q = make.normal(*queries)
        k, v = (make.normal(*cached, copies=copies) for _ in range(2))
        ours = [[ts.from_dlpack(x) for x in (q, k[i], v[i])] for i in range(copies)]
        return Contest(
            truth=lambda: truth(q, k[0], v[0]),
            ours=in_rotation([partial(ts.flash_attention, *each) for each in ours]),
            ptx={called: lambda: text_of_program(ts.flash_attention.eager, *ours[0])},
            peers={
                name: in_rotation([partial(attend, (q, k[i], v[i]), way) for i in range(copies)])
                for name, way in BACKENDS.items()
            },
            part=part,
            ways=lambda: ways_of(ts.flash_attention.eager, *ours[0]),
        )


def declare_paged(batch: int, keys: int) -> None:
    """The bar is on the operator with keys that lie one behind the other."""
    moves, flops, queries, cached = sizes_of(batch, keys)

    called = f"beside decode paged B {batch} T {keys} bf16"

    @kernel_text(called)
    def text() -> str:
        rows, pages = (batch, HEADS, GROUP, WIDTH), (batch * keys // PAGE, HEADS, PAGE, WIDTH)
        given = [ts.empty(shape, ts.bf16) for shape in (rows, pages, pages)]
        where = ts.empty((batch, keys // PAGE), ts.i32), ts.empty((batch,), ts.i32)
        return text_of_calls(paged_decode.attend, *given, *where, ts.empty(rows, ts.bf16))

    # What the bar is on runs the other row's kernel.
    @row(called, "bf16", moves=moves, flops=flops, bars={"contiguous": 0.95}, kernels=[called, contiguous(batch, keys)])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.device import copies_beyond_cache, in_rotation

        torch = library("torch")
        copies, pages = copies_beyond_cache(moves), keys // PAGE
        q = make.normal(*queries)
        k, v = (make.normal(*cached, copies=copies) for _ in range(2))
        table = torch.randperm(batch * pages, device=make.device).view(batch, pages)

        def paged(x: Any) -> Any:
            """The same keys in pages, each where the table says."""
            found = torch.empty((batch * pages, HEADS, PAGE, WIDTH), dtype=x.dtype, device=x.device)
            found[table.flatten()] = x.unflatten(2, (pages, PAGE)).transpose(1, 2).flatten(0, 1)
            return found

        shuffled = [[make.derived(lambda i=i, x=x: paged(x[i])) for x in (k, v)] for i in range(copies)]
        lengths = torch.full((batch,), keys, dtype=torch.int32, device=make.device)
        out = torch.empty((batch, HEADS, GROUP, WIDTH), dtype=q.dtype, device=q.device)
        rows, where = ts.from_dlpack(q.view(batch, HEADS, GROUP, WIDTH)), ts.from_dlpack(table.int())
        counts, filled = ts.from_dlpack(lengths), ts.from_dlpack(out)

        def call(held: list[Any]) -> Any:
            paged_decode.attend(rows, *held, where, counts, filled)
            return out

        lying = [[ts.from_dlpack(x) for x in (q, k[i], v[i])] for i in range(copies)]
        held = [ts.from_dlpack(x) for x in shuffled[0]]
        return Contest(
            truth=lambda: truth(q, k[0], v[0]),
            ours=in_rotation([partial(call, [ts.from_dlpack(x) for x in held]) for held in shuffled]),
            yardsticks={
                "contiguous": Yardstick(in_rotation([partial(ts.flash_attention, *each) for each in lying]), flops)
            },
            part=part,
            ptx={
                called: partial(text_of_calls, paged_decode.attend, rows, *held, where, counts, filled),
                contiguous(batch, keys): lambda: text_of_program(ts.flash_attention.eager, *lying[0]),
            },
            ways=lambda: ways_of(paged_decode.attend, rows, *held, where, counts, filled),
        )


for _size in SIZES:
    declare(*_size)
    declare_paged(*_size)
