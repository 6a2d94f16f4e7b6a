"""Reductions, scans and dots of narrow floats: accumulated in f32 and rounded once, before nests are looked for."""

from __future__ import annotations

from tessera.dtypes.types import DType, f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps


def widen_accumulation(function: tile.FuncOp) -> None:
    """Rewrites every reduction and every dot that accumulates in fewer bits than f32 has."""
    for op in list(function.body.walk()):
        ops = TileOps()
        if isinstance(op, tile.ReduceOp | tile.ScanOp) and _adds(op) and _is_narrow(tile_dtype(op.operand)):
            total = ops.add(type(op)(op.kind.data, ops.cast(op.operand, f32), op.axis.value.data))
        elif isinstance(op, tile.DotOp) and _is_narrow(tile_dtype(op.c)):
            total = ops.add(tile.DotOp(op.a, op.b, ops.cast(op.c, f32)))
        else:
            continue
        ops.cast(total, tile_dtype(op.result))
        replace(op, ops.ops)


WidenAccumulation = function_pass("widen-accumulation", widen_accumulation)


def _adds(op: tile.ReduceOp | tile.ScanOp) -> bool:
    return op.kind.data in ("sum", "prod")


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < f32.bits
