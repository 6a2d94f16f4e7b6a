"""Tensors made of others: grids, triangles, classes as ones and zeros."""

from __future__ import annotations

from typing import Any, Literal

from tessera.dtypes.types import f32, i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import refusal
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.runtime.tensor.interface import DTypeLike


@operator
def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> list[Traced]:
    """Coordinates of a grid: one array per axis, each repeated along the axes of the others."""
    made = [primitives.reshape(tensor(x), (-1,)) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}", hint="use 'ij' for NumPy's matrices")
    order = list(range(len(made)))
    if indexing == "xy" and len(made) > 1:
        order[:2] = [1, 0]
    shape = [made[at].sizes[0] for at in order]
    found: list[Traced] = []
    for at, x in enumerate(made):
        position = order.index(at)
        laid = primitives.reshape(x, [x.sizes[0] if axis == position else 1 for axis in range(len(made))])
        found.append(primitives.broadcast_to(laid, shape))
    return found


def _triangle(name: str, row: str, x: Any, k: int) -> Traced:
    made = tensor(x)
    if made.ndim < 2:
        raise ShapeError(f"{name} is for matrices", shapes=shown(made), hint="give at least two axes")
    rows, columns = (primitives.iota(made.sizes, made.ndim - at) for at in (2, 1))
    inside = elementwise(row, elementwise("sub", columns, rows), k)
    return elementwise("select", inside, made, False)


@operator
def tril(x: Array, /, *, k: int = 0) -> Traced:
    """The lower triangle of matrices: elements on and below the k-th diagonal, zeros above."""
    return _triangle("tril", "le", x, k)


@operator
def triu(x: Array, /, *, k: int = 0) -> Traced:
    """The upper triangle of matrices: elements on and above the k-th diagonal, zeros below."""
    return _triangle("triu", "ge", x, k)


@operator
def one_hot(indices: Array, classes: int, /, *, dtype: DTypeLike = f32) -> Traced:
    """1 at the class that an index names and 0 elsewhere, along a new last axis."""
    made = tensor(indices)
    if not made.dtype.is_integer:
        raise refusal("one_hot", "indices that are numbers of classes", [made], "cast them: ts.astype(y, ts.i64)")
    made = primitives.looked_at(made, classes, "the classes")
    shape = (*made.sizes, classes)
    indices = primitives.iota(shape, made.ndim, i64)
    spread = primitives.broadcast_to(primitives.reshape(primitives.cast(made, i64), (*made.sizes, 1)), shape)
    return primitives.cast(primitives.ew("eq", indices, spread), dtype)
