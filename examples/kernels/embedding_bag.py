"""Sums of rows of a table, and the gradient of the table: rows that are looked up often are added to often.

Bag b has the entries tokens[starts[b]:starts[b + 1]].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def embedding_bag(table: Any, tokens: Any, starts: Any, out: Any, *, block: int, width: int):
    bag = tile.program_id(0)
    end, total = tile.item(starts, bag + 1), tile.zeros((block, width))
    for at in tile.range(tile.item(starts, bag), end, block):
        rows = tile.load(tokens, at=(at,), shape=(block,))
        total = total + tile.gather(table, rows, shape=(width,), mask=tile.iota(block) + at < end).to(f32)
    tile.store(out, tile.cast(tile.sum(total, 0)[None], out.dtype), at=(bag, 0))


@kernel
def embedding_bag_backward(gradient: Any, tokens: Any, starts: Any, table: Any, *, block: int, width: int):
    bag = tile.program_id(0)
    end, row = tile.item(starts, bag + 1), tile.load(gradient, at=(bag, 0), shape=(1, width))
    for at in tile.range(tile.item(starts, bag), end, block):
        rows = tile.load(tokens, at=(at,), shape=(block,))
        shared = tile.broadcast(tile.cast(row, table.dtype), (block, width))
        tile.scatter_add(table, rows, shared, mask=tile.iota(block) + at < end)


def look_up(table: Any, tokens: Any, starts: Any, out: Any) -> None:
    """Fills `out` with the sum of each bag."""
    width = 1 << (out.shape[1] - 1).bit_length()
    embedding_bag[out.shape[0]](table, tokens, starts, out, block=16, width=width)


def add_gradient(gradient: Any, tokens: Any, starts: Any, table: Any) -> None:
    """Adds to `table` the gradient of its rows."""
    width = 1 << (table.shape[1] - 1).bit_length()
    embedding_bag_backward[gradient.shape[0]](gradient, tokens, starts, table, block=16, width=width)
