"""Neighbours and places: differences of neighbours, quarter rotations, flat indices and those along each axis."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.dtypes.types import Kind, i64
from tessera.errors import ShapeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.manipulation import concat, flip
from tessera.lang.operators.operands import axes_of, one_axis, refusal, replaced
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.sizes import plain, plain_size
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import DimLike, dim


@operator
def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Traced:
    """The differences of neighbours along `axis`, `n` times over. As the Array API says, and NumPy.

    `prepend` and `append` are put before and after `x` first; they have its axes, or are numbers. Of bools, it is
    where neighbours differ.
    """
    made = tensor(x)
    if not made.ndim:
        raise ShapeError("diff: a number has no neighbours", shapes=shown(made), hint="give a row")
    if n < 0:
        raise TesseraError(f"diff: expected how often, from 0 on, got {n}", hint="the usual number is 1")
    axis = one_axis(made, axis, "diff")
    parts = [_beside(made, prepend, axis), made, _beside(made, append, axis)]
    made = tensor(concat([part for part in parts if part is not None], axis=axis))
    row = "ne" if made.dtype.kind is Kind.BOOL else "sub"
    ends = [None] * made.ndim
    for _ in range(n):
        later = primitives.slice_(made, replaced(ends, axis, 1), ends)
        earlier = primitives.slice_(made, ends, replaced(ends, axis, -1))
        made = ew(row, later, earlier)
    return made


def _beside(x: Traced, given: Array | None, axis: int) -> Traced | None:
    """What is put beside x: a tensor, or a number that is repeated."""
    if given is None:
        return None
    value = primitives.lift(given)
    if not value.ndim:
        value = primitives.cast(value, x.dtype) if value.weak else value
        return primitives.broadcast_to(value, replaced(x.sizes, axis, 1))
    return value


@operator
def rot90(x: Array, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Traced:
    """x rotated k times by 90° in the plane of two axes, from the first towards the second. As in NumPy and torch."""
    made = tensor(x)
    if len(axes) != 2:
        raise ShapeError(f"rot90: a plane has two axes, got {axes}", shapes=shown(made), hint="give a pair of axes")
    first, second = axes_of(made, tuple(axes), "rot90")
    k %= 4
    if k == 2:
        return tensor(flip(made, axis=(first, second)))
    if k == 0:
        return made
    order = list(range(made.ndim))
    order[first], order[second] = second, first
    if k == 1:
        return primitives.transpose(tensor(flip(made, axis=second)), order)
    return tensor(flip(primitives.transpose(made, order), axis=second))


def _whole(name: str, x: Array) -> Traced:
    made = tensor(x)
    if not made.dtype.is_integer:
        raise refusal(name, "whole numbers", [made], "cast them: ts.astype(x, ts.i64)")
    return made


@operator
def unravel_index(indices: Array, /, shape: tuple[DimLike, ...]) -> tuple[Traced, ...]:
    """For indices into the elements of `shape` in C order, the index along each axis. As in NumPy and torch."""
    rest = _whole("unravel_index", indices)
    count = dim(1)
    for size in shape:
        count = count * plain(size)
    rest = primitives.cast(primitives.looked_at(rest, plain_size(count), "the elements"), i64)
    found: list[Traced] = []
    for size in reversed(shape):
        extent = primitives.size_value(size)
        found.append(elementwise("rem", rest, extent))
        rest = elementwise("floordiv", rest, extent)
    return tuple(reversed(found))


@operator
def ravel_multi_index(indices: Sequence[Array], /, shape: tuple[DimLike, ...]) -> Traced:
    """For an index along each axis of `shape`, the index into its elements in C order. As in NumPy."""
    given = [_whole("ravel_multi_index", one) for one in indices]
    if len(given) != len(shape) or not given:
        raise ShapeError(
            f"ravel_multi_index: {len(given)} indices for {len(shape)} axes",
            shapes=shown(*given),
            hint="give a tuple with one index for each axis",
        )
    given = [
        primitives.cast(primitives.looked_at(one, plain_size(size), f"axis {axis}"), i64)
        for axis, (one, size) in enumerate(zip(given, shape, strict=True))
    ]
    flat, *rest = broadcast_all(given, "ravel_multi_index")
    for one, size in zip(rest, shape[1:], strict=True):
        flat = elementwise("add", elementwise("mul", flat, primitives.size_value(size)), one)
    return flat
