"""Tile functions of regions with two matmuls and exponentials between them: one loop over blocks of keys.

A program instance has a block of queries of one head. For each block of keys it computes scores, exponents, and
weights under the highest exponent so far; sums of weights and of weighted values that were made under a lower one are
scaled down. What the region does to weights by numbers of their row is done to the sums, behind the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import Operation, SSAValue

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, f32, f64, i64
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import known_sizes
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.bounds import at_least
from tessera.shapes.expr import Size, ceil_div, dim, size
from tessera.transforms.fusion.emit_tile_matmuls import (
    BATCH,
    COLUMN,
    ROW,
    finish,
    given_block,
    narrow_accumulator,
    operand,
    positions_after,
)
from tessera.transforms.fusion.kernel_numbers import Scalar
from tessera.transforms.fusion.online_algebra import INNER, KEY, Online, Read, find_online, is_row, reads_through
from tessera.transforms.fusion.region_tiles import Axis, RegionTiles, Value

DEFAULT_BLOCK = (64, 64)


def online_of(region: schedule.RegionOp) -> Online:
    """The loop that a region is."""
    block = region.body.block
    for op in block.ops:
        if isinstance(op, graph.MatmulOp) and isinstance(found := find_online(op, block), Online):
            return found
    raise CompileError(
        "an online region has two matmuls with exponentials of the first as weights of the second; here are none",
        span=span_of(region.location),
        hint="give other algebra another kind of region",
    )


def emit_online(name: str, region: schedule.RegionOp) -> tile.FuncOp:
    """The tile function of an online region under its config."""
    online = online_of(region)
    m, n = block_of(region)
    tiles = RegionTiles(name, region, partial(grid_of, online, m))
    place_rows(tiles, online, m)
    loop = OnlineLoop(tiles, online, n)
    loop.conclude(*loop.write())
    loop.finish()
    return tiles.function


def block_of(region: schedule.RegionOp) -> tuple[int, int]:
    """The queries and keys of a block."""
    m, n = given_block(region, DEFAULT_BLOCK, "an online region", "two", "queries and keys")
    return m, n


def grid_of(online: Online, m: int, spell: Callable[[Size], Size]) -> list[Size]:
    """Blocks of so many rows, and matrices."""
    rows = size(ceil_div(spell(online.spaces.rows), m))
    return [rows] if online.spaces.batch == 1 else [rows, spell(online.spaces.batch)]


def place_rows(tiles: RegionTiles, online: Online, m: int) -> None:
    """Says which rows and columns a program instance of that grid has."""
    spaces = online.spaces
    tiles.source = online.values
    row = 0 if spaces.rows == 1 else tiles.times(tiles.scalar(tile.ProgramIdOp, 0), m)
    inner, columns = graph_type(online.scores.a).shape[-1], spaces.columns
    assert isinstance(inner, int)
    assert isinstance(columns, int)
    tiles.axes[BATCH] = Axis(spaces.batch, 0 if spaces.batch == 1 else tiles.scalar(tile.ProgramIdOp, 1))
    tiles.axes[ROW] = Axis(spaces.rows, row, m)
    tiles.axes[INNER] = Axis(inner, 0, inner)
    tiles.axes[COLUMN] = Axis(columns, 0, columns)


def made_results(region: schedule.RegionOp, online: Online) -> dict[int, Read]:
    """Results of a region that are its keys or values, by their numbers, and where the loop has them."""
    end = region.body.block.last_op
    assert end is not None
    read = (online.scores.b, online.right), (online.values.b, online.spaces.right)
    known = {value: (value, where) for one in read for value, where in reads_through(one)}
    return {number: known[value] for number, value in enumerate(end.operands) if value in known}


class OnlineLoop:
    """Writes the loop over keys and what follows from it."""

    def __init__(self, tiles: RegionTiles, online: Online, keys: int) -> None:
        self.tiles = tiles
        self.online = online
        self.keys = keys
        self.dtype = self.dtype_of(online)
        self.made = made_results(tiles.region, online)

    @staticmethod
    def dtype_of(online: Online) -> DType:
        """The type of what the loop carries."""
        return f64 if graph_type(online.weights[0]).dtype.base is f64 else f32

    def write(self, keys: tuple[Scalar, Scalar, int] | None = None) -> tuple[Value, Value, Value]:
        """The loop over keys, all of them unless told a start, an end and a step: sum of values, top and total."""
        tiles, online = self.tiles, self.online
        zero, lowest = tiles.full(0.0, self.dtype), tiles.full(-math.inf, self.dtype)
        queries = tiles.fit(operand(tiles, online.scores.a, online.left), (ROW, INNER))
        begin = [tiles.fit(zero, (ROW, COLUMN)), tiles.fit(lowest, (ROW,)), tiles.fit(zero, (ROW,))]

        def body(position: SSAValue, acc: SSAValue, top: SSAValue, total: SSAValue) -> Sequence[SSAValue]:
            tiles.axes[KEY] = Axis(online.spaces.depth, position, self.keys)
            return self.iteration(queries, Value(acc, (ROW, COLUMN)), Value(top, (ROW,)), Value(total, (ROW,)))

        count, first = online.spaces.depth, [one.ssa for one in begin]
        if keys is None and isinstance(count, int) and 0 < count <= self.keys:
            found = body(tiles.number(0), *first)
        else:
            start, stop, step = (0, tiles.size(count), self.keys) if keys is None else keys
            found = tiles.loop(stop, step, first, body, start)
        acc, top, total = found
        return Value(acc, (ROW, COLUMN)), Value(top, (ROW,)), Value(total, (ROW,))

    def iteration(self, queries: Value, acc: Value, top: Value, total: Value) -> Sequence[SSAValue]:
        """One block of keys."""
        tiles, online = self.tiles, self.online
        zero, one, lowest = (tiles.full(number, self.dtype) for number in (0.0, 1.0, -math.inf))
        exponents = self.exponents(queries)
        block_top = Value(tiles.add(tile.ReduceOp("top", exponents.ssa, 1)), (ROW,))
        # Weights behind the last key are 0, which does not undo an infinity.
        read = operand(tiles, online.values.b, online.spaces.right)
        values = tiles.fit(tiles.ended(online.values.b, read, KEY), (KEY, COLUMN))
        for number, made in self.made.items():
            tiles.store(tiles.evaluate(*made), number, made[1])
        higher = tiles.ew("max", top, block_top)
        # While everything is -inf the exponents are taken from 0, so that weights are 0 and not NaN.
        safe = tiles.ew("select", tiles.ew("eq", higher, lowest), zero, higher)
        lower = tiles.ew(online.base, tiles.ew("sub", top, safe))
        scale = tiles.ew("select", tiles.ew("le", block_top, top), one, lower)
        weights = tiles.ew(online.base, tiles.ew("sub", exponents, safe))
        dtype = graph_type(online.values.a).dtype
        rounded = tiles.rounded(weights, dtype)
        scaled = tiles.ew("mul", acc, scale)
        accumulator = tiles.add(
            tile.DotOp(rounded.ssa, values.ssa, scaled.ssa, accum=narrow_accumulator(online.values, self.dtype))
        )
        block_total = Value(tiles.add(tile.ReduceOp("sum", weights.ssa, 1)), (ROW,))
        totals = tiles.ew("add", tiles.ew("mul", total, scale), block_total)
        return [accumulator, higher.ssa, totals.ssa]

    def exponents(self, queries: Value) -> Value:
        """The exponents of a block of keys; -inf beyond the last."""
        tiles, online = self.tiles, self.online
        keys = tiles.fit(operand(tiles, online.scores.b, online.right), (INNER, KEY))
        carrier = accumulator(graph_type(online.scores.a).dtype).base
        carrier = carrier if carrier.bits >= f32.bits else f32
        zeros = tiles.fit(tiles.full(0.0, carrier), (ROW, KEY))
        scores = tiles.add(
            tile.DotOp(queries.ssa, keys.ssa, zeros.ssa, accum=narrow_accumulator(online.scores, carrier))
        )
        tiles.know(online.scores.result, online.score_map, Value(scores, (ROW, KEY)))
        found = tiles.fit(tiles.rounded(tiles.evaluate(*online.exponent), self.dtype), (ROW, KEY))
        inside = tiles.inside(KEY)
        return found if inside is None else tiles.ew("select", inside, found, tiles.full(-math.inf, self.dtype))

    def conclude(self, acc: Value, top: Value, total: Value) -> None:
        """Applies the region's ops on weights to the accumulator, and corrects the numbers of rows."""
        tiles, online = self.tiles, self.online
        for read in online.tops:
            tiles.know(*read, top)
        for read in online.totals:
            tiles.know(*read, total)
        before = dict(tiles.known)
        if not online.shift_cancels:
            correction = self.correction(top)
            acc = tiles.ew("mul", acc, correction)
            total = tiles.ew("mul", total, correction)
            for read in online.totals:
                tiles.know(*read, total)
        for op, where in online.chain:
            if isinstance(op, graph.EwOp) and op.fn.data != "cast":
                operands = [
                    tiles.carried(tiles.evaluate(one, where)) if is_row(one, where) else acc for one in op.operands_
                ]
                acc = tiles.ew(op.fn.data, *operands)
        if (empty := self._is_empty()) is not None:
            acc = tiles.ew("select", empty, tiles.full(0.0, self.dtype), acc)
        if online.shift_cancels and self._needs_totals():
            tiles.known = before
            total = tiles.ew("mul", total, self.correction(top))
            for read in online.totals:
                tiles.know(*read, total)
        tiles.know(online.values.result, online.spaces.result, acc)

    def finish(self) -> None:
        """Stores the results of the region, and ends the function."""
        rows = dict((*self.online.tops, *self.online.totals))
        ops = self.tiles.region.body.block.ops
        positions = positions_after({**rows, self.online.values.result: self.online.spaces.result}, ops)
        finish(self.tiles, positions, self.made)

    def correction(self, top: Value) -> Value:
        """By how much the region's shift makes weights larger than those of the loop."""
        tiles, online = self.tiles, self.online
        zero, lowest = tiles.full(0.0, self.dtype), tiles.full(-math.inf, self.dtype)
        own = tiles.ew("select", tiles.ew("eq", top, lowest), zero, top)
        if online.shift is None:
            return tiles.ew(online.base, own)
        shift = tiles.rounded(tiles.evaluate(online.shift, online.exponent[1]), self.dtype)
        found = tiles.ew(online.base, tiles.ew("sub", own, shift))
        empty = self._is_empty()
        return found if empty is None else tiles.ew("select", empty, tiles.full(1.0, self.dtype), found)

    def _is_empty(self) -> Value | None:
        """Whether there are no keys: then the result is 0. None where there are always some.

        That is where there are some, or at least as many as there are queries.
        """
        tiles, count, known = self.tiles, self.online.spaces.depth, known_sizes(self.tiles.region)
        if at_least(count, 1, known) or at_least(dim(count) - self.online.spaces.rows, 0, known):
            return None
        return tiles.ew("eq", tiles.counted(count), tiles.full(0, i64))

    def _needs_totals(self) -> bool:
        """Whether a result is made of sums of weights other than by the weighted mean."""
        end = self.tiles.region.body.block.last_op
        assert end is not None
        queue, totals = list(end.operands), {value for value, _ in self.online.totals}
        seen: set[SSAValue] = set()
        while queue:
            value = queue.pop()
            if value in seen or value is self.online.values.result:
                continue
            if value in totals:
                return True
            seen.add(value)
            owner = value.owner
            queue += owner.operands if isinstance(owner, Operation) else ()
        return False
