"""Legalizes dots for the tensor cores: operands are cast to a type that they multiply, where that is exact.

Accumulators of integers wrap, so that narrow ones may be made of wide ones. Dots of integers of more than 8 bits are
left: those are written without tensor cores (see `tile_to_nv`).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation

from tessera.dtypes.types import DType, Kind, f8e4m3, f8e5m2, f16, f32, f64, i8, i32, u8, u32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir.tensor_cores import INSTRUCTIONS
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps

_i32 = IntegerType(32)
_BYTES = {Kind.INT: (i8, i32), Kind.UINT: (u8, u32), Kind.BOOL: (u8, u32)}
_DEEPEST = 1 << 14
"""So many products of two bytes add up within 32 bits."""


def has_instruction(op: tile.DotOp) -> bool:
    """Whether the tensor cores have an instruction for a dot."""
    return tuple(tile_dtype(value).base for value in (op.a, op.b, op.c)) in INSTRUCTIONS


def make_dots_plain(function: tile.FuncOp, arch: str) -> None:
    """Rewrites the dots of a function; accumulators of narrow floats are wide by now."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.DotOp):
            operand, total = _carriers(op, arch)
            if (operand, total) != (tile_dtype(op.a).base, tile_dtype(op.c).base):
                replace(op, _rewritten(op, operand, total))


def _carriers(op: tile.DotOp, arch: str) -> tuple[DType, DType]:
    """The types of operands and accumulators in which a dot is computed."""
    operand, total = tile_dtype(op.a).base, tile_dtype(op.c).base
    if operand.is_float:
        if total is f64:
            return f64, f64
        eight = operand in (f8e4m3, f8e5m2)
        return (f16, f32) if (eight and arch == "sm_80") or operand.bits < 8 else (operand, total)
    byte, word = _BYTES[operand.kind]
    deep = tile_type(op.a).get_shape()[1] > _DEEPEST
    return (byte, word) if operand.bits <= byte.bits and not deep else (operand, total)


def _rewritten(op: tile.DotOp, operand: DType, total: DType) -> list[Operation]:
    ops = TileOps()
    add, cast = ops.add, ops.cast
    a, b = cast(op.a, operand), cast(op.b, operand)
    wanted = tile_dtype(op.c)
    if wanted.bits > total.bits:
        zero = add(arith.ConstantOp(IntegerAttr(0, _i32)))
        nothing = add(tile.FullOp(zero, tile_type(op.c).get_shape()))
        result = cast(add(tile.DotOp(a, b, cast(nothing, total))), wanted)
        ops.ew("add", op.c, result)
    else:
        cast(add(tile.DotOp(a, b, cast(op.c, total))), wanted)
    return ops.ops
