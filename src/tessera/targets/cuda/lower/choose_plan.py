"""`choose-plan`: how many warps a block has, how many rows it takes at a time, and how far ahead copies are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir.layouts import WARP
from tessera.transforms.pipelining.make_async import goes_through_shared_memory
from tessera.transforms.pipelining.partition_rows import rows_of

SHARED: Mapping[str, int] = {"sm_80": 163 * 1024, "sm_89": 99 * 1024, "sm_90": 227 * 1024, "sm_90a": 227 * 1024}
"""Bytes of shared memory that a block may have."""
PLANS = 4
"""Plans that are tried by estimate, each with less in registers than the one before."""
WORDS = 48
"""Words of 32 bits of its widest tile that a thread holds comfortably."""
_TOTALS = 1024
"""Elements from which on what a loop carries is no row of numbers, but a total for each element."""
ACCUMULATORS = 160
"""Elements of accumulators that a thread holds at most."""


@dataclass(frozen=True)
class BlockPlan:
    """The choices for a whole kernel."""

    warps: int
    depth: int
    rows: int | None = None
    """Rows that it computes at a time, if fewer than it has."""


def plans(
    function: tile.FuncOp, warps: int | None, depth: int | None, spill_retry: int = 0, arch: str = "sm_90a"
) -> Iterator[BlockPlan]:
    """Plans for a function, the best first, and then smaller ones; what the schedule decides stays as it is."""
    is_decided = warps is not None and depth is not None and _dots(function)
    chosen = [choose(function, warps, depth, spill_retry + above, arch) for above in range(1 if is_decided else PLANS)]
    if warps is None:
        chosen += [replace(chosen[-1], warps=more) for more in (8, 16, 32) if more > chosen[-1].warps]
    if depth is None:
        # Without copies that run ahead, only one iteration's operands are in shared memory.
        chosen += [replace(plan, depth=1) for plan in chosen]
    yield from dict.fromkeys(chosen)


def choose(
    function: tile.FuncOp, warps: int | None, depth: int | None, spill_retry: int = 0, arch: str = "sm_90a"
) -> BlockPlan:
    """A plan for a function; what the schedule decides stays as it is. With each spill retry, threads hold less."""
    dots = _dots(function)
    if not dots:
        return _row_by_row(function, warps, WORDS >> spill_retry)
    if warps is None:
        accumulators = max(prod(tile_type(op.result).get_shape()) for op in dots)
        rows = max(tile_type(op.result).get_shape()[0] for op in dots)
        warps = 4
        while warps < 8 and accumulators / (warps * WARP) > ACCUMULATORS >> spill_retry:
            warps *= 2
        while warps > 1 and rows < 16 * warps and accumulators <= 1024 * warps // 2:
            warps //= 2
    return BlockPlan(warps, _depth(function, depth, SHARED[arch]))


def _dots(function: tile.FuncOp) -> list[tile.DotOp]:
    return [op for op in function.body.walk() if isinstance(op, tile.DotOp)]


def _depth(function: tile.FuncOp, wanted: int | None, room: int) -> int:
    """As many iterations ahead as shared memory has room for: two blocks are to share a multiprocessor."""
    repeated = 0
    others = 0
    for op in function.body.walk():
        if isinstance(op, tile.LoadOp) and goes_through_shared_memory(op):
            size = prod(tile_type(op.result).get_shape()) * tile_dtype(op.result).storage.itemsize
            if isinstance(op.parent_op(), scf.ForOp):
                repeated += size
            else:
                others += size
    if not repeated or wanted is not None:
        return wanted if repeated and wanted is not None else 1
    depth = 4
    while depth > 2 and depth * repeated + others > room // 2:
        depth -= 1
    return depth


def _carried(loop: scf.ForOp) -> int:
    """Words of the totals that a loop carries for each element of a tile: threads hold them beside what they load."""
    found = [value for value in loop.results if isinstance(value.type, TensorType)]
    sizes = {value: prod(tile_type(value).get_shape()) for value in found}
    return sum(size * tile_dtype(value).storage.itemsize // 4 for value, size in sizes.items() if size > _TOTALS)


def _row_by_row(function: tile.FuncOp, warps: int | None, most: int) -> BlockPlan:
    """A plan without dots: as few rows at a time as keep a thread's part of the widest tile in its registers."""
    widest = 1
    for op in function.body.walk():
        for value in op.results:
            if isinstance(value.type, TensorType):
                words = max(1, tile_dtype(value).storage.itemsize / 4)
                widest = max(widest, int(prod(tile_type(value).get_shape()) * words))
    widest += max((_carried(op) for op in function.body.walk() if isinstance(op, scf.ForOp)), default=0)
    chosen = 4 if warps is None else warps
    rows = rows_of(function)
    if rows is None or widest <= most * chosen * WARP:
        return BlockPlan(chosen, 1)
    width = -(-widest // rows)
    if warps is None:
        while chosen < 16 and width > most * chosen * WARP:
            chosen *= 2
    group = rows
    while group > 1 and group * width > most * chosen * WARP:
        group //= next(factor for factor in range(2, group + 1) if group % factor == 0)
    return BlockPlan(chosen, 1, group)
