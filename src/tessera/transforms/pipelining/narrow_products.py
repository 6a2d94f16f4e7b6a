"""`narrow-products`: products that prepared operands are made of are computed in the type that they are rounded to.

Weights of few bits are opened to f32, multiplied by a scale and rounded to the type of the dot. Where that type holds
both factors exactly, and f32 their product, a product of the narrow type is the same number, rounded once: half of the
work, since two of them go into one instruction.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tessera.dtypes.types import NO_POLICY, DType, bf16, f16, f32
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.pipelining.prepared_operands import prepared_operands

_DIGITS = {bf16: 8, f16: 11}
"""Bits of the numbers that a type holds exactly."""


def narrow_products(function: tile.FuncOp) -> int:
    """Narrows the products of all prepared operands, and returns how many."""
    dots = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    makers = [op for operand in prepared_operands(dots).values() for op in operand.ops]
    return sum(_narrow(op) for op in makers if isinstance(op, tile.EwOp) and op.parent is not None)


NarrowProducts = function_pass("narrow-products", narrow_products)


def _narrow(cast: tile.EwOp) -> bool:
    """Rewrites a cast of a product, if it can be."""
    dtype = cast.result_dtype
    if cast.fn.data != "cast" or dtype not in _DIGITS or cast.seed is not None or dtype.policy != NO_POLICY:
        return False
    product = cast.operands_[0].owner
    if not isinstance(product, tile.EwOp) or product.fn.data != "mul" or product.result_dtype != f32:
        return False
    if not product.result.has_one_use():
        return False
    sources = [_opened(factor) for factor in product.operands_]
    types = [None if source is None else tile_dtype(source) for source in sources]
    if not all(one is not None and _is_held(one, dtype) for one in types):
        return False
    # Products of whole numbers with others are no smaller than those: f32 holds them however small.
    if dtype is bf16 and not any(one is not None and one.is_integer for one in types):
        return False
    made: list[Operation] = []
    factors = [_as(factor, dtype, made) for factor in product.operands_]
    block = cast.parent_block()
    assert block is not None
    narrow = tile.EwOp("mul", factors)
    replace(cast, [*made, narrow])
    sweep(block)
    return True


def _opened(value: SSAValue) -> SSAValue | None:
    """The tile whose elements, repeated perhaps, a tile of f32 has."""
    owner = value.owner
    if isinstance(owner, tile.BroadcastOp | tile.ExpandOp):
        return _opened(owner.operand)
    if isinstance(owner, tile.EwOp) and owner.fn.data == "cast" and owner.seed is None:
        return owner.operands_[0]
    return None


def _is_held(dtype: DType, by: DType) -> bool:
    """Whether a type has no numbers but those that another one holds."""
    return dtype == by or (dtype.is_integer and dtype.bits <= _DIGITS[by])


def _as(value: SSAValue, dtype: DType, made: list[Operation]) -> SSAValue:
    """A factor in another type, by ops that go to `made`."""
    owner = value.owner
    assert isinstance(owner, Operation)
    if isinstance(owner, tile.BroadcastOp | tile.ExpandOp):
        clone = owner.clone({owner.operand: _as(owner.operand, dtype, made)})
        wide = TensorType(element_of(dtype), tile_type(value).get_shape())
        Rewriter.replace_value_with_new_type(clone.results[0], wide)
        made.append(clone)
        return clone.results[0]
    assert isinstance(owner, tile.EwOp)
    source = owner.operands_[0]
    if tile_dtype(source) == dtype:
        return source
    cast = tile.EwOp("cast", [source], to=dtype)
    made.append(cast)
    return cast.result
