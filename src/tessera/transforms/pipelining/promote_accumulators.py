"""`promote-accumulators`: accumulates in f32, outside of the tensor cores, where these would keep too few bits.

Tensor cores add products of 8-bit floats with about 14 bits, whatever the type of the accumulator. So every 256
products or so have an accumulator of their own, which starts at zero and is added to the whole in f32. Where an
iteration has fewer products, several iterations are unrolled into one. A dot whose operands were declared to be
accumulated in a narrower type (`accum`) goes on from its accumulator as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, IntegerAttr
from xdsl.ir import SSAValue

from tessera.dtypes.types import f8e4m3, f8e5m2, f32
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import insert_before
from tessera.transforms.core.slices import end_of
from tessera.transforms.loops.unroll_loop import unroll

KEPT_BITS = 13
"""Mantissa bits of the accumulators of tensor cores for 8-bit floats."""
DEPTH = 256
"""So many products are added with those: fewer cost time, more cost digits."""


@dataclass(frozen=True)
class PromoteAccumulators(FunctionPass):
    """The pass, for every tile function."""

    name = "promote-accumulators"
    depth: int = DEPTH

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        promote_accumulators(function, self.depth)


def promote_accumulators(function: tile.FuncOp, depth: int = DEPTH) -> None:
    """Starts dots of 8-bit floats at zero, and adds at most `depth` products at a time to their accumulators."""
    for op in list(function.body.walk()):
        if isinstance(op, scf.ForOp) and (times := _times(op, depth)) > 1:
            unroll(op, times)
    for chain in _chains(function, depth):
        _promote(chain)


Chain = list[tile.DotOp]
"""Dots of a block that pass an accumulator on, one to the next."""


def _promote(chain: Chain) -> None:
    first, last = chain[0], chain[-1]
    accumulator = first.c
    if is_zero(accumulator):
        return
    zero = arith.ConstantOp(FloatAttr(0.0, Float32Type()))
    nothing = tile.FullOp(zero.result, tile_type(accumulator).get_shape())
    insert_before(first, [zero, nothing])
    first.operands[2] = nothing.result
    block = last.parent_block()
    assert block is not None
    total = tile.EwOp("add", [accumulator, last.result])
    total.location = last.location
    block.insert_op_after(total, last)
    last.result.replace_uses_with_if(total.result, lambda use: use.operation is not total)
    total.result.name_hint = last.result.name_hint


def _chains(function: tile.FuncOp, depth: int) -> list[Chain]:
    """All dots that lose bits, in chains that are no deeper than `depth`."""
    found: list[Chain] = []
    ends: dict[SSAValue, Chain] = {}
    for op in function.body.walk():
        if not isinstance(op, tile.DotOp) or not loses_bits(op):
            continue
        chain = ends.pop(op.c, None)
        if chain is None or not op.c.has_one_use() or not _goes_on(chain, op, depth):
            chain = list[tile.DotOp]()
            found.append(chain)
        chain.append(op)
        ends[op.result] = chain
    return found


def _goes_on(chain: Chain, op: tile.DotOp, depth: int) -> bool:
    return chain[-1].parent_block() is op.parent_block() and sum(map(_depth, (*chain, op))) <= depth


def _depth(op: tile.DotOp) -> int:
    return tile_type(op.a).get_shape()[1]


def _times(loop: scf.ForOp, depth: int) -> int:
    """How many iterations of a loop share an accumulator, if the loop carries accumulators from dot to dot."""
    body = loop.body.block
    dots = [op for op in body.ops if isinstance(op, tile.DotOp) and loses_bits(op)]
    nested = any(isinstance(inner, tile.DotOp) for op in body.ops if op.regions for inner in op.walk())
    if not dots or nested or loop.attributes or not isinstance(loop.lb.type, IndexType):
        return 1
    carried = dict(zip(end_of(body).operands, body.args[1:], strict=True))
    if any(carried.get(op.result) is not op.c or not op.result.has_one_use() for op in dots):
        return 1
    return depth // max(map(_depth, dots))


def loses_bits(op: tile.DotOp) -> bool:
    """Whether the accumulator of the tensor cores is too narrow for a dot."""
    if tile_dtype(op.a) not in (f8e4m3, f8e5m2) or tile_dtype(op.c) is not f32:
        return False
    declared = f32 if op.accum is None else dtype_of(op.accum)
    assert declared.float_format is not None
    return declared.float_format.mantissa_bits > KEPT_BITS


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is zeros."""
    owner = value.owner
    number = owner.value.owner if isinstance(owner, tile.FullOp) else None
    known = number.value if isinstance(number, arith.ConstantOp) else None
    return isinstance(known, FloatAttr | IntegerAttr) and known.value.data == 0
