"""Tile functions of regions around one matmul: a loop over the depth, then its epilogue.

A program instance owns a block of rows by columns of one matrix of the result. Operands are loaded block by block along
the depth, in the order in which they lie in memory, and transposed where the dot wants them the other way round. Where
rows are folded before they are multiplied, a program instance holds them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue, TypeAttribute

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, f32
from tessera.errors import CompileError
from tessera.ir.common.elements import element_of
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Shape, Size, ceil_div, element_count, size
from tessera.transforms.core.index_digits import Map, index_of, push, regroup, whole
from tessera.transforms.fusion.kernel_numbers import Scalar
from tessera.transforms.fusion.region_tiles import Axis, RegionTiles, Value, is_carried, is_count

BATCH, ROW, DEPTH, COLUMN = range(4)
"""The axes of the iteration space: all matrices one after the other, and those of one matmul."""


@dataclass(frozen=True)
class Spaces:
    """The index maps of a matmul's result and operands, from coordinates of the iteration space.

    Of one in parts, these are the matrices of the result.
    """

    batch: Size
    rows: Size
    depth: Size
    columns: Size
    left: Map
    right: Map
    result: Map


def spaces_of(op: graph.MatmulOp) -> Spaces:
    left, right, result = (graph_type(value).shape for value in (op.a, op.b, op.result))
    rows, depth, columns = left[-2], left[-1], right[-1]
    if (parts := op.part_count) is not None:
        row, inner, column = whole(ROW, rows), whole(DEPTH, depth), whole(COLUMN, columns)
        return Spaces(parts, rows, depth, columns, (row, inner), (inner, column), (whole(BATCH, parts), row, column))
    outer = result[:-2]
    batch = element_count(outer) if outer else 1
    # An empty batch has no program instances: any coordinates do.
    coordinates = (index_of(()),) * len(outer) if batch == 0 else regroup((whole(BATCH, batch),), (batch,), outer)
    assert coordinates is not None

    def leading(shape: Shape) -> Map:
        kept = coordinates[len(outer) - (len(shape) - 2) :]
        return tuple(index if extent != 1 else index_of(()) for index, extent in zip(kept, shape[:-2], strict=True))

    row, inner, column = whole(ROW, rows), whole(DEPTH, depth), whole(COLUMN, columns)
    return Spaces(
        batch,
        rows,
        depth,
        columns,
        (*leading(left), row, inner),
        (*leading(right), inner, column),
        (*coordinates, row, column),
    )


def matmul_of(region: schedule.RegionOp) -> graph.MatmulOp:
    """The matmul that a region is around."""
    found = [op for op in region.body.block.ops if isinstance(op, graph.MatmulOp)]
    if len(found) != 1:
        raise CompileError(
            f"a matmul region has one graph.matmul, here are {len(found)}",
            span=span_of(region.location),
            hint="put each matmul into a region of its own",
        )
    return found[0]


def folds(region: schedule.RegionOp) -> bool:
    """Whether a region folds rows of its left operand: then its program instances hold them whole."""
    return any(isinstance(op, graph.ReduceOp) and not is_count(op) for op in region.body.block.ops)


def positions_after(start: Mapping[SSAValue, Map], ops: Iterable[Operation]) -> dict[SSAValue, Map]:
    """Where the elements of all that is made of some values lie, as far as ops keep all of them."""
    found = dict(start)
    for op in ops:
        source = next((operand for operand in op.operands if operand in found), None)
        if source is None or len(op.results) != 1 or op.results[0] in found:
            continue
        after = found[source] if isinstance(op, graph.EwOp) else push(op, found[source])
        if after is not None:
            found[op.results[0]] = after
    return found


def emit_matmul(name: str, region: schedule.RegionOp) -> tile.FuncOp:
    """The tile function of a `matmul` region under its config."""
    op = matmul_of(region)
    spaces = spaces_of(op)
    m, n, k = block_of(region, spaces)
    if op.step is not None:
        # A step beyond the end of a part would add what the next part adds.
        k = gcd(k, op.step.value.data)

    def grid(spell: Callable[[Size], Size]) -> list[Size]:
        found = [size(ceil_div(spell(spaces.rows), m)), size(ceil_div(spell(spaces.columns), n))]
        return found if spaces.batch == 1 else [*found, spell(spaces.batch)]

    tiles = RegionTiles(name, region, grid)
    tiles.source = op
    row = 0 if spaces.rows == 1 else tiles.times(tiles.scalar(tile.ProgramIdOp, 0), m)
    column = tiles.times(tiles.scalar(tile.ProgramIdOp, 1), n)
    matrix = 0 if spaces.batch == 1 else tiles.scalar(tile.ProgramIdOp, 2)
    tiles.axes[BATCH] = Axis(spaces.batch, matrix)
    tiles.axes[ROW] = Axis(spaces.rows, row, m)
    tiles.axes[COLUMN] = Axis(spaces.columns, column, n)
    tiles.folded = DEPTH if folds(region) else None
    accumulator = multiply(tiles, op, spaces, k)
    tiles.know(op.result, spaces.result, accumulator)
    finish(tiles, positions_after({op.result: spaces.result}, region.body.block.ops))
    return tiles.function


def multiply(tiles: RegionTiles, op: graph.MatmulOp, spaces: Spaces, k: int) -> Value:
    """The accumulator of a block, as the epilogue takes it."""
    carrier = sum_type(op)
    zeros = tiles.fit(tiles.full(0, carrier), (ROW, COLUMN))

    first, stop = (0, tiles.size(spaces.depth)) if op.part_count is None else _part(tiles, op, spaces)

    def iteration(counted: SSAValue, total: SSAValue) -> list[SSAValue]:
        position = tiles.plus(first, counted)
        tiles.axes[DEPTH] = Axis(spaces.depth, position, k)
        a = tiles.fit(tiles.ended(op.a, operand(tiles, op.a, spaces.left), DEPTH), (ROW, DEPTH))
        b = tiles.fit(tiles.ended(op.b, operand(tiles, op.b, spaces.right), DEPTH), (DEPTH, COLUMN))
        return [tiles.add(tile.DotOp(a.ssa, b.ssa, total, accum=narrow_accumulator(op, carrier)))]

    if isinstance(stop, int) and 0 < stop <= k:
        (total,) = iteration(tiles.number(0), zeros.ssa)
    else:
        (total,) = tiles.loop(stop, k, [zeros.ssa], iteration)
    value = Value(total, (ROW, COLUMN))
    wanted = graph_type(op.result).dtype
    if carrier is f32 and is_carried(wanted):
        return value
    return tiles.rounded(value, wanted)


def _part(tiles: RegionTiles, op: graph.MatmulOp, spaces: Spaces) -> tuple[Scalar, Scalar]:
    """Where the part of the depth of a program instance begins, and how long it is."""
    length = op.part_length
    first = tiles.times(tiles.axes[BATCH].start, tiles.size(length))
    if isinstance(length, int) and op.part_count is not None and spaces.depth == length * op.part_count:
        return first, length
    left = tiles.minus(tiles.size(spaces.depth), first)
    return first, tiles.scalar(arith.MinSIOp, tiles.number(left), tiles.number(tiles.size(length)))


def operand(tiles: RegionTiles, value: SSAValue, where: Map) -> Value:
    """An operand of a matmul, in the type that is multiplied."""
    return tiles.rounded(tiles.evaluate(value, where), graph_type(value).dtype)


def sum_type(op: graph.MatmulOp) -> DType:
    """The type of accumulators: as the policy says, but no narrower than a loop can carry them."""
    dtype = graph_type(op.a).dtype
    carrier = accumulator(dtype)
    return f32 if carrier.is_float and carrier.bits < f32.bits else carrier.base


def narrow_accumulator(op: graph.MatmulOp, carrier: DType) -> TypeAttribute | None:
    """A narrower type that is enough for accumulators, where the policy says so."""
    accum = graph_type(op.a).dtype.policy.accum
    return element_of(accum) if accum is not None and accum.bits < carrier.bits else None


def finish(tiles: RegionTiles, positions: dict[SSAValue, Map], stored: Collection[int] = ()) -> None:
    """Stores the results of a region that are not `stored`, at their positions, and ends the function."""
    end = tiles.region.body.block.last_op
    assert isinstance(end, schedule.YieldOp)
    for number, value in enumerate(end.values):
        if number in stored:
            continue
        if value not in positions:
            raise CompileError(
                f"a result of a {tiles.region.kind.data} region is not made of its matmul, or not all of it",
                span=span_of(tiles.region.location),
                shapes=[str(value.type)],
                hint="put it into a region of its own",
            )
        tiles.store(tiles.evaluate(value, positions[value]), number, positions[value])
    tiles.source = end
    tiles.add(tile.ReturnOp())


def given_block(
    region: schedule.RegionOp, default: tuple[int, ...], what: str, count: str, axes: str
) -> tuple[int, ...]:
    """The block of a region's config, as many sizes as the default has, which is taken where there is none."""
    given = region.config.data.block
    if given is not None and len(given) != len(default):
        raise CompileError(
            f"{what} has a block of {count} sizes, {axes}, got {list(given)}",
            span=span_of(region.location),
            hint=f"give {count}, or none",
        )
    return default if given is None else given


def block_of(region: schedule.RegionOp, spaces: Spaces) -> tuple[int, int, int]:
    """Rows, columns and depth of a block: those of the config, or some that every target takes."""
    given = given_block(region, DEFAULT_BLOCK, "a matmul region", "three", "rows, columns and depth")
    # A depth of less than a block is all there is; beyond it a repeated element would be counted twice.
    depth = spaces.depth
    if isinstance(depth, int) and folds(region):
        return given[0], given[1], depth
    return given[0], given[1], min(given[2], depth) if isinstance(depth, int) and depth > 0 else given[2]


DEFAULT_BLOCK = (64, 64, 64)
