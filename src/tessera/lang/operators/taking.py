"""take, take_along_axis and embedding: elements at integer indices along one axis."""

from __future__ import annotations

from tessera.dtypes.types import Kind, i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import one_axis, replaced
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes import rules
from tessera.shapes.expr import Size


def from_front(x: Traced, axis: int, indices: Traced) -> Traced:
    """Indices counted from the front; negative ones count from the back."""
    if indices.dtype.kind is Kind.UINT:
        return indices
    primitives.check_indices(x, indices)
    size = x.sizes[axis]
    primitives.lie_inside(indices, 0 - size, size, f"axis {axis}")
    return counted_from_front(indices, size)


def counted_from_front(indices: Traced, size: Size) -> Traced:
    """The same along an axis of some size, in i64."""
    if indices.dtype.kind is Kind.UINT:
        return indices
    wide = primitives.cast(indices, i64)
    count = size if isinstance(size, int) else primitives.size_value(size, i64)
    return elementwise("select", elementwise("lt", wide, 0), elementwise("add", wide, count), wide)


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
    spots = primitives.cast(from_front(made, axis, indices), i64)
    lead = ruled(
        rules.broadcast,
        replaced(made.sizes, axis),
        replaced(spots.sizes, axis),
        where="broadcast",
        histories=[made.history, spots.history],
    )
    x, y = (primitives.broadcast_to(one, (*lead[:axis], one.sizes[axis], *lead[axis:])) for one in (made, spots))
    return _along(x, y, axis)


def _along(x: Traced, spots: Traced, axis: int) -> Traced:
    """Elements of a tensor at indices along one axis, which go along the others."""
    axes = range(x.ndim)
    return primitives.gather_along(x, [spots if at == axis else primitives.iota(spots.sizes, at) for at in axes], axes)


@operator
def embedding(indices: Array, table: Array, /) -> Traced:
    """Rows of a table at integer indices, `table[indices]`; negative ones count from the end."""
    rows = tensor(table)
    one_axis(rows, 0, "embedding")
    return primitives.gather(rows, from_front(rows, 0, tensor(indices)), 0)
