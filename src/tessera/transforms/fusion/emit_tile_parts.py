"""Tile functions of online regions whose keys are split: parts, and what combines them.

Where program instances are few, each set of rows is given to several, which take blocks of keys alternately. A part
leaves what its loop carries, as it is: sums of weighted values, the highest exponent, and the sum of weights. The
second function brings them to the highest exponent of all, adds them up in order, and goes on with what follows the
loop. Parts without keys weigh nothing: their highest exponent is -inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Size
from tessera.transforms.core.index_digits import Map, whole
from tessera.transforms.fusion.emit_tile_matmuls import BATCH, COLUMN, ROW
from tessera.transforms.fusion.emit_tile_online import OnlineLoop, block_of, grid_of, online_of, place_rows
from tessera.transforms.fusion.kernel_numbers import Signature
from tessera.transforms.fusion.online_algebra import INNER, Online
from tessera.transforms.fusion.region_tiles import Axis, RegionTiles, Value

PART = INNER + 1
"""The axis of the parts."""
COMBINED = 4096
"""Elements of all parts that a program instance combines at once."""
NAMES = ("sums", "tops", "totals")


@dataclass(frozen=True)
class PartKernels:
    """The two functions of a region, and the tensors between them.

    The second is called with those, and with the arguments of the region that it `takes`, by number.
    """

    parts: tile.FuncOp
    combine: tile.FuncOp
    between: Sequence[GraphTensorType]
    takes: Sequence[int]


def emit_online_parts(name: str, region: schedule.RegionOp) -> PartKernels:
    """The tile functions of an online region whose config splits its keys."""
    online, count = online_of(region), region.config.data.split
    assert count is not None
    between = _between(region, online, count)
    parts = _emit_parts(f"{name}_parts", region, online, between)
    # Written twice: the first time, with all arguments of the region, tells which of them are needed.
    whole_signature = [*region.body.block.args]
    trial = _emit_combine(name, region, online, between, whole_signature)
    inputs = trial.arguments[len(between) : trial.input_count]
    takes = [number for number, view in enumerate(inputs) if view.first_use is not None]
    if len(takes) == len(inputs):
        return PartKernels(parts, trial, between, takes)
    trial.erase()
    values = [region.body.block.args[number] for number in takes]
    return PartKernels(parts, _emit_combine(name, region, online, between, values), between, takes)


def _between(region: schedule.RegionOp, online: Online, count: int) -> list[GraphTensorType]:
    spaces, loop = online.spaces, OnlineLoop.dtype_of(online)
    rows = count, spaces.batch, spaces.rows
    return [GraphTensorType.of(sizes, loop) for sizes in ((*rows, spaces.columns), rows, rows)]


def _places(online: Online, count: int) -> tuple[Map, Map]:
    """Where the elements of the tensors between the functions lie: sums of values, and numbers of rows."""
    spaces = online.spaces
    rows = whole(PART, count), whole(BATCH, spaces.batch), whole(ROW, spaces.rows)
    return (*rows, whole(COLUMN, spaces.columns)), rows


def _emit_parts(
    name: str, region: schedule.RegionOp, online: Online, between: Sequence[GraphTensorType]
) -> tile.FuncOp:
    (m, n), count = block_of(region), region.config.data.split
    assert count is not None

    def grid(spell: Callable[[Size], Size]) -> list[Size]:
        return [*grid_of(online, m, spell), count]

    tiles = RegionTiles(name, region, grid, Signature((), region.body.block.args, between, NAMES))
    place_rows(tiles, online, m)
    part = tiles.scalar(tile.ProgramIdOp, 1 if online.spaces.batch == 1 else 2)
    tiles.axes[PART] = Axis(count, part)
    loop = OnlineLoop(tiles, online, n)
    if loop.made:
        raise CompileError(
            "keys that are computed on the way are stored for all rows, which parts have not",
            span=span_of(region.location),
            hint="leave out the split",
        )
    # Each takes every so many blocks: where masks leave keys out, at the end or in front, all parts have fewer.
    keys = tiles.times(part, n), tiles.size(online.spaces.depth), n * count
    sums, rows = _places(online, count)
    for number, (value, where) in enumerate(zip(loop.write(keys), (sums, rows, rows), strict=True)):
        tiles.store(value, number, where)
    tiles.add(tile.ReturnOp())
    return tiles.function


def _emit_combine(
    name: str, region: schedule.RegionOp, online: Online, between: Sequence[GraphTensorType], values: Sequence[SSAValue]
) -> tile.FuncOp:
    spaces, count = online.spaces, region.config.data.split
    assert count is not None
    columns = spaces.columns
    assert isinstance(columns, int)
    results = [graph_type(value) for value in region.results_]
    padded = 1 << (count - 1).bit_length()
    # Program instances for pieces of the columns would each store numbers of rows.
    width = _width(columns, COMBINED // padded) if len(results) == 1 else columns

    def grid(spell: Callable[[Size], Size]) -> list[Size]:
        return [spell(spaces.rows), spell(spaces.batch), columns // width]

    names = [*NAMES, *(value.name_hint for value in region.results_)]
    tiles = RegionTiles(name, region, grid, Signature(between, values, results, names))
    tiles.source = online.values
    row, matrix, piece = (tiles.scalar(tile.ProgramIdOp, axis) for axis in range(3))
    tiles.axes[ROW] = Axis(spaces.rows, row)
    tiles.axes[BATCH] = Axis(spaces.batch, matrix)
    tiles.axes[COLUMN] = Axis(columns, tiles.times(piece, width), width)
    tiles.axes[PART] = Axis(count, 0, padded)
    loop = OnlineLoop(tiles, online, 1)
    loop.conclude(*_combined(tiles, loop, online, count))
    loop.finish()
    return tiles.function


def _width(columns: int, most: int) -> int:
    """Columns of a piece: all, or halves of them as long as they are more than `most`."""
    while columns > most and columns % 2 == 0:
        columns //= 2
    return columns


def _combined(tiles: RegionTiles, loop: OnlineLoop, online: Online, count: int) -> tuple[Value, Value, Value]:
    """What the loop over all keys would have left for a row."""
    lowest, zero = tiles.full(-math.inf, loop.dtype), tiles.full(0.0, loop.dtype)
    places, rows = _places(online, count)
    where = places, rows, rows
    sums, tops, totals = (tiles.load_given(number, one) for number, one in enumerate(where))
    inside = tiles.inside(PART)
    if inside is not None:
        tops = tiles.ew("select", inside, tops, lowest)
    top = _folded(tiles, "top", tops)
    safe = tiles.ew("select", tiles.ew("eq", top, lowest), zero, top)
    weights = tiles.ew(online.base, tiles.ew("sub", tops, safe))
    total = _folded(tiles, "sum", tiles.ew("mul", weights, totals))
    parts = tiles.fit(tiles.ew("mul", sums, weights), (PART, COLUMN))
    return Value(tiles.add(tile.ReduceOp("sum", parts.ssa, 0)), (COLUMN,)), top, total


def _folded(tiles: RegionTiles, kind: str, value: Value) -> Value:
    """All parts' numbers as one."""
    row = tiles.add(tile.ExpandOp(tiles.fit(value, (PART,)).ssa, 0))
    return Value(tiles.add(tile.ReduceOp(kind, row, 1)))
