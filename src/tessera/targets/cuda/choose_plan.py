"""`choose-plan`: how many warps a block has, how many rows it takes at a time, and how far ahead copies are."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.targets.cuda.layouts import WARP
from tessera.transforms.make_async import feeds_products
from tessera.transforms.partition_rows import rows_of

SHARED = 227 * 1024
"""Bytes of shared memory that a block may have; on sm_80, 163 KB."""
WORDS = 48
"""Words of 32 bits of its widest tile that a thread holds comfortably."""
SUMS = 160
"""Sums of products that a thread holds at most."""


@dataclass(frozen=True)
class Plan:
    """What is decided for a whole program."""

    warps: int
    depth: int
    rows: int | None = None
    """How many rows it takes at a time, if fewer than it has."""


def choose(function: tile.FuncOp, warps: int | None, depth: int | None, rung: int = 0) -> Plan:
    """A plan for a function; what the schedule decides stays as it is. On higher rungs, threads hold less."""
    products = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    if not products:
        return _row_by_row(function, warps, WORDS >> rung)
    if warps is None:
        sums = max(prod(tile_type(op.result).get_shape()) for op in products)
        rows = max(tile_type(op.result).get_shape()[0] for op in products)
        warps = 4
        while warps < 8 and sums / (warps * WARP) > SUMS >> rung:
            warps *= 2
        while warps > 1 and rows < 16 * warps and sums <= 1024 * warps // 2:
            warps //= 2
    return Plan(warps, _depth(function, depth))


def _depth(function: tile.FuncOp, wanted: int | None) -> int:
    """As many turns ahead as shared memory has room for: two blocks are to share a multiprocessor."""
    turns = 0
    others = 0
    for op in function.body.walk():
        if isinstance(op, tile.LoadOp) and feeds_products(op):
            size = prod(tile_type(op.result).get_shape()) * tile_dtype(op.result).storage.itemsize
            if isinstance(op.parent_op(), scf.ForOp):
                turns += size
            else:
                others += size
    if not turns:
        return 1
    depth = 4 if wanted is None else wanted
    room = SHARED // 2 if wanted is None else SHARED
    while depth > 2 and depth * turns + others > room:
        depth -= 1
    return depth


def _row_by_row(function: tile.FuncOp, warps: int | None, most: int) -> Plan:
    """Without products: as few rows at a time as keep a thread's part of the widest tile in its registers."""
    widest = 1
    for op in function.body.walk():
        for value in op.results:
            if isinstance(value.type, TensorType):
                words = max(1, tile_dtype(value).storage.itemsize / 4)
                widest = max(widest, int(prod(tile_type(value).get_shape()) * words))
    chosen = 4 if warps is None else warps
    rows = rows_of(function)
    if rows is None or widest <= most * chosen * WARP:
        return Plan(chosen, 1)
    width = -(-widest // rows)
    if warps is None:
        while chosen < 16 and width > most * chosen * WARP:
            chosen *= 2
    group = rows
    while group % 2 == 0 and group * width > most * chosen * WARP:
        group //= 2
    return Plan(chosen, 1, group)
