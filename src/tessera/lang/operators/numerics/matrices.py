"""Matrices without factorisations: diagonals, traces, norms, products of vectors, covariances."""

from __future__ import annotations

import math

from tessera.errors import ShapeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators import statistics
from tessera.lang.operators.linear_algebra import rounded_matmul
from tessera.lang.operators.manipulation import pad, swap_axes
from tessera.lang.operators.operands import (
    Axis,
    axes_of,
    floats,
    folded,
    known,
    narrow,
    one_axis,
    replaced,
    require_elements,
    tensors,
    wide,
)
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown, stories
from tessera.runtime.tensor.interface import DTypeLike
from tessera.shapes.expr import Size


@operator
def diagonal(x: Array, /, *, offset: int = 0) -> Traced:
    """The elements x[…, i, i + offset] of matrices. As the Array API says: matrices are the last two axes."""
    return _diagonal("diagonal", tensor(x), offset)


def _diagonal(name: str, x: Traced, offset: int) -> Traced:
    if x.ndim < 2:
        raise ShapeError(f"{name} is for matrices", shapes=shown(x), hint="give at least two axes")
    rows, columns = x.sizes[-2:]
    if rows == columns and not isinstance(rows, int):
        # Of a square whose size is open, this is the size less the offset.
        away = abs(offset)
        if away and x.trace.sizes.ask(rows, "<", away):
            rows = columns = known(x, x.ndim - 1, name)
    else:
        rows, columns = known(x, x.ndim - 2, name), known(x, x.ndim - 1, name)
    if isinstance(rows, int) and isinstance(columns, int):
        count: Size = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    else:
        count = rows - abs(offset)
    first = primitives.iota((count,), 0)
    step = columns + 1 if isinstance(columns, int) else elementwise("add", primitives.size_value(columns), 1)
    start: int | Traced = offset
    if offset < 0:
        start = (
            -offset * columns
            if isinstance(columns, int)
            else elementwise("mul", primitives.size_value(columns), -offset)
        )
    spots = elementwise("add", elementwise("mul", first, step), start)
    flat = primitives.reshape(x, (*x.sizes[:-2], rows * columns))
    return primitives.gather(flat, spots, x.ndim - 2)


@operator
def diag(x: Array, /, k: int = 0) -> Traced:
    """A matrix with a row on its k-th diagonal and zeros elsewhere; of a matrix, its k-th diagonal. As in NumPy."""
    made = tensor(x)
    if made.ndim == 2:
        return _diagonal("diag", made, k)
    if made.ndim != 1:
        raise ShapeError(
            "diag: expected a row or a matrix", shapes=shown(made), hint="of several matrices, take ts.diagonal"
        )
    row = tensor(pad(made, ((max(k, 0), max(-k, 0)),))) if k else made
    size = row.sizes[0]
    on = elementwise("eq", primitives.iota((size, size), 1), elementwise("add", primitives.iota((size, size), 0), k))
    # The row lies along the columns, behind as many zeros as the diagonal is to the right.
    return elementwise("select", on, row, False)


@operator
def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Traced:
    """The sum of the diagonal of matrices, the last two axes, in the types of `sum`. As the Array API says."""
    return statistics.sum(_diagonal("trace", tensor(x), offset), axis=-1, dtype=dtype)


@operator
def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Traced:
    """The norm of vectors along `axis`, or of all elements: (Σ |x|^ord)^(1/ord). As the Array API says.

    With infinity the largest |x|, with -infinity the least, with 0 the number of elements that are not 0.
    """
    (made,) = floats("vector_norm", x)
    axes = axes_of(made, axis, "vector_norm")
    return narrow(folded(_norm("vector_norm", wide(made), axes, ord), axes, keepdims), made.dtype)


def _norm(name: str, x: Traced, axes: tuple[int, ...], order: float) -> Traced:
    """The norm along axes, which are kept with size 1."""
    if math.isnan(order):
        raise TesseraError(f"{name}: ord is a number or an infinity, got {order}", hint="the usual one is 2")
    size = ew("abs", x)
    if not axes:
        return size
    if math.isinf(order):
        require_elements(x, axes, name)
        return primitives.reduce("max" if order > 0 else "min", size, axes, keepdims=True)
    if order == 0:
        return primitives.reduce("sum", primitives.cast(elementwise("ne", x, 0.0), x.dtype), axes, keepdims=True)
    if order == 1:
        return primitives.reduce("sum", size, axes, keepdims=True)
    if order == 2:
        return ew("sqrt", primitives.reduce("sum", ew("mul", x, x), axes, keepdims=True))
    total = primitives.reduce("sum", elementwise("pow", size, float(order)), axes, keepdims=True)
    return elementwise("pow", total, 1.0 / order)


_MATRIX_SUMS = {1: (0, "max"), -1: (0, "min"), math.inf: (1, "max"), -math.inf: (1, "min")}
"""Which of the two axes of matrices sizes are added up along, and what is taken of the sums."""


@operator
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | str = "fro") -> Traced:
    """The norm of matrices, the last two axes. As the Array API says.

    "fro" is the root of the sum of squares, 1 and -1 the largest and the least sum of |x| over a column, infinity and
    -infinity over a row. Norms of singular values (2, -2, "nuc") are left out.
    """
    (made,) = floats("matrix_norm", x)
    return narrow(_matrix_norm("matrix_norm", made, (made.ndim - 2, made.ndim - 1), keepdims, ord), made.dtype)


def _matrix_norm(name: str, made: Traced, axes: tuple[int, ...], keepdims: bool, order: float | str) -> Traced:
    if made.ndim < 2:
        raise ShapeError(f"{name} of matrices is for two axes and more", shapes=shown(made), hint="give a matrix")
    if order == "fro":
        found = _norm(name, wide(made), axes, 2)
    elif order in _MATRIX_SUMS:
        summed, kind = _MATRIX_SUMS[order]
        kept = axes[1 - summed]
        require_elements(made, [kept], name)
        sums = primitives.reduce("sum", ew("abs", wide(made)), [axes[summed]], keepdims=True)
        found = primitives.reduce(kind, sums, [kept], keepdims=True)
    else:
        raise TesseraError(
            f"{name}: ord of matrices is 'fro', 1, -1, inf or -inf, got {order!r}",
            hint="norms of singular values take a factorisation, which there is none of",
        )
    return folded(found, axes, keepdims)


@operator
def norm(x: Array, /, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Traced:
    """A norm of vectors along one axis, or of matrices over two. As numpy.linalg.norm.

    Without `ord` it is the root of the sum of squares over `axis`, or over all axes. With it, `axis` may be left out
    for tensors of one axis or two. `vector_norm` and `matrix_norm` say what `ord` means.
    """
    (made,) = floats("norm", x)
    axes = axes_of(made, axis, "norm")
    if ord is None:
        return narrow(folded(_norm("norm", wide(made), axes, 2), axes, keepdims), made.dtype)
    if len(axes) == 2:
        return narrow(_matrix_norm("norm", made, axes, keepdims, ord), made.dtype)
    if len(axes) != 1 or isinstance(ord, str):
        raise ShapeError(
            f"norm: ord={ord!r} is for {'matrices' if isinstance(ord, str) else 'vectors or matrices'}, "
            f"and {len(axes)} axes are folded",
            shapes=shown(made),
            hint="name one axis or two, or leave ord out",
        )
    return narrow(folded(_norm("norm", wide(made), axes, ord), axes, keepdims), made.dtype)


@operator
def cross(x1: Array, x2: Array, /, axis: int = -1) -> Traced:
    """The cross product of vectors of three elements along `axis`; the other axes broadcast. As the Array API says."""
    given = tensors("cross", x1, x2)
    a, b = broadcast_all(given, "cross")
    along = one_axis(a, axis, "cross")
    back = along - a.ndim
    if any(x.ndim < -back or known(x, x.ndim + back, "cross") != 3 for x in given):
        raise ShapeError(
            f"cross: vectors have 3 elements along axis {axis}",
            shapes=shown(*given),
            story=stories(given),
            hint="name the axis of the vectors with axis=",
        )

    def part(x: Traced, at: int) -> Traced:
        ends = [None] * x.ndim
        return primitives.slice_(x, replaced(ends, along, at), replaced(ends, along, at + 1))

    parts = [
        ew("sub", ew("mul", part(a, at), part(b, then)), ew("mul", part(a, then), part(b, at)))
        for at, then in ((1, 2), (2, 0), (0, 1))
    ]
    return primitives.concatenate(parts, along)


@operator
def kron(x1: Array, x2: Array, /) -> Traced:
    """The Kronecker product: each element of x1 times all of x2, as blocks. As in NumPy."""
    a, b = tensors("kron", x1, x2)
    rank = max(a.ndim, b.ndim)
    left, right = ((*(1,) * (rank - x.ndim), *x.sizes) for x in (a, b))
    wide_a = primitives.reshape(a, [part for size in left for part in (size, 1)])
    wide_b = primitives.reshape(b, [part for size in right for part in (1, size)])
    found = elementwise("mul", wide_a, wide_b)
    joined: list[Size] = [one * other for one, other in zip(left, right, strict=True)]
    return primitives.reshape(found, joined)


@operator
def cov(x: Array, /, *, correction: float = 1.0) -> Traced:
    """The covariances of variables, which are the rows of x; the sum of products is divided by their number less
    `correction`. As in torch, and as NumPy's with ddof for `correction`.
    """
    (made,) = floats("cov", x)
    if made.ndim > 2:
        raise ShapeError("cov: expected a row, or rows of a matrix", shapes=shown(made), hint="give one matrix")
    values = wide(made)
    rows = values if made.ndim == 2 else primitives.reshape(values, (1, -1))
    _, apart, _ = statistics.spread(rows, (1,))
    products = rounded_matmul(apart, swap_axes(apart), rows.dtype)
    size = rows.sizes[1]
    if isinstance(size, int):
        count = max(size - correction, 0.0)
    else:
        less = elementwise("sub", primitives.size_value(size, rows.dtype), correction)
        count = elementwise("max", less, 0.0)
    found = elementwise("div", products, count)
    return narrow(found if made.ndim == 2 else primitives.reshape(found, ()), made.dtype)
