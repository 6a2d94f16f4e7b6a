"""take, take_along_axis and embedding: elements at integer indices along one axis."""

from __future__ import annotations

from typing import Any

from tessera.dtypes.types import Kind, i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import moved_from_last, moved_last, one_axis
from tessera.lang.operators.sorting import along_rows, picked
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes import rules
from tessera.shapes.expr import element_count


def from_front(x: Traced, axis: int, indices: Traced) -> Traced:
    """Indices counted from the front; negative ones count from the back."""
    if indices.dtype.kind is Kind.UINT:
        return indices
    size: Any = x.sizes[axis]
    primitives.lie_inside(indices, 0 - size, size, f"axis {axis}")
    if not isinstance(size, int):
        size = primitives.size_value(size, indices.dtype)
    return elementwise("select", elementwise("lt", indices, 0), elementwise("add", indices, size), indices)


@operator
def take(x: Array, indices: Array, /, axis: int | None = None) -> Traced:
    """Slices of `x` at integer indices along `axis`, which may be left out for one axis."""
    made, indices = tensor(x), tensor(indices)
    if axis is None and made.ndim != 1:
        raise ShapeError("take: name the axis to take along", shapes=shown(made), hint="give axis=")
    axis = one_axis(made, 0 if axis is None else axis, "take")
    return primitives.gather(made, from_front(made, axis, indices), axis)


@operator
def take_along_axis(x: Array, indices: Array, /, axis: int = -1) -> Traced:
    """Elements of `x` at `indices` along `axis`, which differ from row to row; the other axes broadcast."""
    made, indices = tensor(x), tensor(indices)
    if made.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_axis: indices have {indices.ndim} axes, the tensor {made.ndim}",
            shapes=shown(made, indices),
            hint="give indices with the same axes",
        )
    axis = one_axis(made, axis, "take_along_axis")
    order = moved_last(made.ndim, axis)
    values, spots = (primitives.transpose(one, order) for one in (made, from_front(made, axis, indices)))
    histories = [values.history, spots.history]
    lead = ruled(rules.broadcast, values.sizes[:-1], spots.sizes[:-1], where="broadcast", histories=histories)
    values = primitives.broadcast_to(values, (*lead, values.sizes[-1]))
    spots = primitives.cast(primitives.broadcast_to(spots, (*lead, spots.sizes[-1])), i64)
    spots = primitives.looked_at(spots, values.sizes[-1], f"axis {axis}")  # rows lie side by side below
    flat, where = (primitives.reshape(one, (element_count(lead), one.sizes[-1])) for one in (values, spots))
    found = along_rows(flat, where) if isinstance(flat.sizes[1], int) else picked(flat, where)
    return primitives.transpose(primitives.reshape(found, spots.sizes), moved_from_last(made.ndim, axis))


@operator
def embedding(indices: Array, table: Array, /) -> Traced:
    """Rows of a table at integer indices, `table[indices]`; negative ones count from the end."""
    rows = tensor(table)
    one_axis(rows, 0, "embedding")
    return primitives.gather(rows, from_front(rows, 0, tensor(indices)), 0)
