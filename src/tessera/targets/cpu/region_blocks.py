"""Blocks for regions around matmuls on CPUs, where Schedule IR leaves them open.

Along the depth a block is as deep as a panel of the right operand stays in the second cache; so many columns go with
it. Program instances one below the other share packed panels, so that a block needs no more rows than fill register
tiles and the matrix unit, and rows that are not there cost as much as others: few rows get a block of their own size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tessera.dtypes.types import DType
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.expr import Size, hinted
from tessera.transforms.fusion.emit_tile_matmuls import matmul_of, spaces_of
from tessera.transforms.fusion.emit_tile_online import online_of

DEEPEST = 1024
"""The largest block along the depth."""
UNKNOWN_DEPTH = 512
LANES = 16
"""Columns come in as many as the widest vectors have lanes."""
_NOTHING: Mapping[str, int] = MappingProxyType({})


def blocks_for(region: schedule.RegionOp, level: str, hints: Mapping[str, int] = _NOTHING) -> list[Config]:
    """The blocks of a matmul or of a loop over keys that are worth trying, the best first.

    `hints` say about how large symbols are.
    """
    return _of_matmul(region, level, hints) if region.kind.data == "matmul" else _of_loop(region, level, hints)


def _of_matmul(region: schedule.RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
    op = matmul_of(region)
    spaces, dtype = spaces_of(op), graph_type(op.a).dtype
    height, width = (hinted(size, hints) for size in (spaces.rows, spaces.columns))
    if _by_matrix_unit(dtype, level):
        rows, columns = 32, 512
    elif isinstance(height, int) and height >= DEEPEST:
        rows, columns = 256, 256
    else:
        rows, columns = 128, 256
    if dtype.bits > 32:
        columns //= 2
    tried = [(rows, columns), (rows // 2, columns // 2), (rows // 2, 2 * columns)]
    return _different(
        (_fitting(tall, height, 8), _fitting(wide, width, LANES), _depth(spaces.depth)) for tall, wide in tried
    )


def _of_loop(region: schedule.RegionOp, level: str, hints: Mapping[str, int]) -> list[Config]:
    online = online_of(region)
    height, keys = (hinted(size, hints) for size in (online.spaces.rows, online.spaces.depth))
    rows, columns = (64, 512) if _by_matrix_unit(graph_type(online.values.a).dtype, level) else (24, 256)
    tried = [(rows, columns), (2 * rows, columns // 2), (rows, columns // 2)]
    return _different((_fitting(tall, height, 8), _fitting(wide, keys, LANES)) for tall, wide in tried)


def _different(blocks: Iterable[tuple[int, ...]]) -> list[Config]:
    return [Config(block=block) for block in dict.fromkeys(blocks)]


def _by_matrix_unit(dtype: DType, level: str) -> bool:
    return level == "amx" and dtype.bits <= 16


def _fitting(wanted: int, size: Size, step: int) -> int:
    """No more than there are, in whole steps."""
    return min(wanted, max(step, -(-size // step) * step)) if isinstance(size, int) else wanted


def _depth(size: Size) -> int:
    """Parts of the depth of about equal size."""
    if not isinstance(size, int):
        return UNKNOWN_DEPTH
    parts = max(1, -(-size // DEEPEST))
    return max(1, min(size, -(-size // (parts * LANES)) * LANES))
