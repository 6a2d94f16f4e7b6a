"""Reductions and dots of narrow floats: accumulated in f32 and rounded once, before nests are looked for."""

from __future__ import annotations

from xdsl.ir import Operation

from tessera.dtypes.types import DType, f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.transforms.core.rewriting import replace


def widen_accumulation(function: tile.FuncOp) -> None:
    """Rewrites every reduction and every dot that accumulates in fewer bits than f32 has."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.ReduceOp) and op.kind.data in ("sum", "prod") and _is_narrow(tile_dtype(op.operand)):
            made: list[Operation] = [tile.EwOp("cast", [op.operand], to=f32)]
            made.append(tile.ReduceOp(op.kind.data, made[-1].results[0], op.axis.value.data))
            made.append(tile.EwOp("cast", [made[-1].results[0]], to=tile_dtype(op.result)))
            replace(op, made)
        elif isinstance(op, tile.DotOp) and _is_narrow(tile_dtype(op.c)):
            made = [tile.EwOp("cast", [op.c], to=f32)]
            made.append(tile.DotOp(op.a, op.b, made[-1].results[0]))
            made.append(tile.EwOp("cast", [made[-1].results[0]], to=tile_dtype(op.c)))
            replace(op, made)


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < f32.bits
