"""Underflow: products, quotients and casts of numbers other than 0 that come out as 0.

A result has underflowed where the exact one is finite and not 0, and the rounded one is 0: all of its value is lost. A
subnormal result has lost digits only, and sums and differences lose nothing near 0. Three kinds of vanishing are meant:

- exponentials decay: what `exp`, `exp2` or `sigmoid` makes may be 0, and so may what is made by scaling, casting,
  choosing or moving it (the weights of a softmax above all);
- a type that rounds at random keeps small numbers on average;
- values that pad an array are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import can_cast
from tessera.dtypes.types import DType, f64
from tessera.errors import DtypeError
from tessera.interpreters.core import scalars
from tessera.interpreters.sanitizers.sentinels import Mark, Program, sources, title, whereabouts, wide
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype

Array = np.ndarray[Any, np.dtype[Any]]


def _counts(value: Array) -> Array:
    """Where a number is finite and not 0."""
    return np.isfinite(value) & (value != 0)


def _both_count(a: Array, b: Array) -> Array:
    return _counts(a) & _counts(b)


def _first_counts(a: Array, b: Array) -> Array:
    """Of a quotient or power by something finite."""
    return _counts(a) & np.isfinite(b)


def _product_counts(a: Array, b: Array, c: Array) -> Array:
    return _both_count(a, b) & (c == 0)


# Where the exact result is finite and not 0, given that the rounded one is 0.
_EXACTLY_NOT_ZERO: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "mul": _both_count,
        "div": _first_counts,
        "pow": _first_counts,
        "fma": _product_counts,
        "reciprocal": np.isfinite,
        "rsqrt": np.isfinite,
        "cast": _counts,
    }
)
_SCALARS: Mapping[type[Operation], str] = MappingProxyType(
    {arith.MulfOp: "mul", arith.DivfOp: "div", **dict.fromkeys(scalars.CASTS, "cast")}
)
_DECAYING = frozenset({"exp", "exp2", "sigmoid"})
# Which operands of a row hand decay on to its result.
_HANDED_ON: Mapping[str, slice] = MappingProxyType(
    {
        **dict.fromkeys(("mul", "neg", "abs", "cast", "max", "min"), slice(None)),
        "div": slice(0, 1),
        "select": slice(1, None),
    }
)


def decaying(kernel: tile.FuncOp) -> frozenset[SSAValue]:
    """The values that may vanish because an exponential does."""
    found: set[SSAValue] = set()
    for op in kernel.body.walk():
        match op:
            case tile.EwOp():
                handed_on = op.operands_[_HANDED_ON.get(op.fn.data, slice(0))]
                decays = op.fn.data in _DECAYING or any(value in found for value in handed_on)
            case tile.ExpandOp() | tile.BroadcastOp() | tile.TransOp():
                decays = op.operand in found
            case _:
                decays = False
        if decays:
            found.update(op.results)
    return frozenset(found)


def may_underflow(op: Operation, decays: frozenset[SSAValue]) -> bool:
    """Whether underflow of this op would be a fault."""
    if type(op) not in _RULES or op.results[0] in decays:
        return False
    result = _result_dtype(op)
    if not result.is_float or result.policy.stochastic:
        return False
    match op:
        case tile.EwOp() if op.fn.data == "cast":
            return not can_cast(tile_dtype(op.operands_[0]), result.base)
        case tile.EwOp():
            return op.fn.data in _EXACTLY_NOT_ZERO
        case tile.ReduceOp() | tile.ScanOp():
            return op.kind.data == "prod"
        case _:
            return type(op) is not arith.ExtFOp


def check_underflow(
    op: Operation,
    operands: Sequence[Any],
    results: Sequence[Any],
    mark: Mark,
    program: Program,
    decays: frozenset[SSAValue],
) -> None:
    """Refuses the first result that has lost all its value."""
    if not may_underflow(op, decays):
        return
    lost = np.asarray(results[0]) == 0
    if mark is not None:
        lost = lost & (mark == 0)
    if not lost.any():
        return
    lost = lost & _RULES[type(op)](op, operands)
    if not lost.any():
        return
    index = tuple(int(at) for at in np.argwhere(lost)[0])
    dtype = _result_dtype(op)
    assert dtype.float_format is not None
    raise DtypeError(
        f"{title(op)} underflows {whereabouts(index, program)}: of {sources(op, operands, index)} nothing is left, "
        f"{dtype.base} starts at {dtype.float_format.smallest_subnormal:.2g}",
        hint="scale the operands up before this op, or keep them in a type with more range",
    )


def _result_dtype(op: Operation) -> DType:
    if isinstance(op, tile.EwOp):
        return op.result_dtype
    result = op.results[0]
    return tile_dtype(result) if isinstance(result.type, TensorType) else dtype_of(result.type)


def _elementwise(op: tile.EwOp, operands: Sequence[Any]) -> Array:
    return _EXACTLY_NOT_ZERO[op.fn.data](*map(wide, operands))


def _scalar(op: Operation, operands: Sequence[Any]) -> Array:
    return _EXACTLY_NOT_ZERO[_SCALARS[type(op)]](*map(wide, operands))


def _product(op: tile.ReduceOp, operands: Sequence[Any]) -> Array:
    return np.asarray(_counts(wide(operands[0])).all(axis=op.axis.value.data))


def _dot(op: tile.DotOp, operands: Sequence[Any]) -> Array:
    """Where even the magnitudes of all products together round to 0; anything else that is 0 has cancelled."""
    a, b, c = (wide(operand) for operand in operands)
    met = np.matmul(_counts(a).astype(np.float32), _counts(b).astype(np.float32)) > 0
    with np.errstate(all="ignore"):
        magnitude = np.asarray(np.matmul(np.abs(a), np.abs(b)))
    return met & (c == 0) & (np.asarray(cast(magnitude, f64, tile_dtype(op.result))) == 0)


_RULES: Mapping[type[Operation], Callable[[Any, Sequence[Any]], Array]] = MappingProxyType(
    {tile.EwOp: _elementwise, tile.ReduceOp: _product, tile.DotOp: _dot, **dict.fromkeys(_SCALARS, _scalar)}
)
