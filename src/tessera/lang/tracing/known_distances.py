"""How far two traced numbers are apart, where their difference is a size: so `i : i + n` is known to be n long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tessera.lang.tracing.graph_modules import dialect, types
from tessera.lang.tracing.values import Traced
from tessera.shapes.expr import Dim, Size, dim, size

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


def apart(first: Traced, second: Traced) -> Size | None:
    """The size that is added to one number to give another; None where it is not known, or below 0."""
    (base, low), (other, high) = _sum(first.value), _sum(second.value)
    if base is not other:
        return None
    found = size(high - low)
    return None if isinstance(found, int) and found < 0 else found


def _sum(value: SSAValue) -> tuple[SSAValue | None, Dim]:
    """A whole number as another one and a size that is added; None where it is a size by itself."""
    op = value.owner
    if isinstance(op, dialect.ConstantOp):
        return None, dim(int(np.frombuffer(op.value.data, types.graph_type(value).dtype.storage)[0]))
    if isinstance(op, dialect.ReshapeOp | dialect.BroadcastOp):
        known = _count(op.operand)
        if known is not None:
            return None, known
        return (value, dim(0)) if types.graph_type(op.operand).shape else _sum(op.operand)
    if not isinstance(op, dialect.EwOp) or op.fn.data not in ("cast", "add", "sub"):
        return value, dim(0)
    parts = [_sum(operand) for operand in op.operands_]
    if op.fn.data == "cast":
        return parts[0] if types.graph_type(op.operands_[0]).dtype.is_integer else (value, dim(0))
    (left, a), (right, b) = parts
    if op.fn.data == "sub":
        return (left, a - b) if right is None else (value, dim(0))
    if left is None or right is None:
        return (right if left is None else left), a + b
    return value, dim(0)


def _count(value: SSAValue) -> Dim | None:
    """The size that a value of one element counts: the last of an iota, as `size_value` writes it."""
    op = value.owner
    if not isinstance(op, dialect.SliceOp) or not isinstance(counts := op.operand.owner, dialect.IotaOp):
        return None
    shape = types.graph_type(counts.result).shape
    return dim(shape[0]) - 1 if len(shape) == 1 and list(op.starts.iter_values()) == [-1] else None
