"""`promote-sums`: sums that a machine's products of narrow floats would carry in too few bits are added up outside.

Tensor cores add products of 8-bit floats with about 14 bits, whatever the type of the sums. So each block of the depth
has sums of its own, which begin with nothing, and they are added to the whole in f32. A product whose factors were
declared to be summed in a narrower type (`accum`) goes on from the sums as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tessera.dialects import tile
from tessera.dialects.elements import dtype_of
from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.dtypes.types import f8e4m3, f8e5m2, f32
from tessera.transforms.rewriting import replace

KEPT_BITS = 13
"""Mantissa bits of the sums that tensor cores carry for 8-bit floats."""


@dataclass(frozen=True)
class PromoteSums(ModulePass):
    """The pass, for every tile function."""

    name = "promote-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            promote_sums(function)


def promote_sums(function: tile.FuncOp) -> None:
    """Lets products of 8-bit floats begin with nothing, and adds them to their sums."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.DotOp) and _loses_bits(op) and not is_nothing(op.c):
            zero = arith.ConstantOp(FloatAttr(0.0, Float32Type()))
            nothing = tile.FullOp(zero.result, tile_type(op.c).get_shape())
            product = tile.DotOp(op.a, op.b, nothing.result)
            product.location = op.location
            replace(op, [zero, nothing, product, tile.EwOp("add", [op.c, product.result])])


def _loses_bits(op: tile.DotOp) -> bool:
    if tile_dtype(op.a) not in (f8e4m3, f8e5m2) or tile_dtype(op.c) is not f32:
        return False
    declared = f32 if op.accum is None else dtype_of(op.accum)
    assert declared.float_format is not None
    return declared.float_format.mantissa_bits > KEPT_BITS


def is_nothing(value: SSAValue) -> bool:
    """Whether a tile is zeros."""
    owner = value.owner
    number = owner.value.owner if isinstance(owner, tile.FullOp) else None
    known = number.value if isinstance(number, arith.ConstantOp) else None
    return isinstance(known, FloatAttr) and known.value.data == 0
