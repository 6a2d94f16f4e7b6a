"""The same elements arranged otherwise: shapes, axes, joining, repeating, rolling."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from tessera.errors import DtypeError, ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import Axis, axes_of, expanded, known, one_axis, replaced, tensors
from tessera.lang.operators.views import (
    broadcast_views,
    expand_view,
    flatten_view,
    move_view,
    order_of_move,
    reshape_view,
    sizes_of_parts,
    split_views,
    unstack_views,
    view_by,
)
from tessera.lang.spellings import knowing
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_shapes, tensor
from tessera.lang.tracing.values import Array, Traced, shown, stories
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes import rules
from tessera.shapes.expr import DimLike, Size


@view_by(Tensor.broadcast_to)
@operator
def broadcast_to(x: Array, /, shape: tuple[DimLike, ...]) -> Traced:
    """Broadcasts `x` to `shape`: axes of size 1 and new leading axes are repeated."""
    return primitives.broadcast_to(tensor(x), shape)


@view_by(broadcast_views)
@operator
def broadcast_arrays(*arrays: Array) -> list[Traced]:
    """Broadcasts all arrays to their common shape."""
    made = [tensor(x) for x in arrays]
    shape = broadcast_shapes(*made, where="broadcast_arrays")
    return [primitives.broadcast_to(x, shape) for x in made]


@operator
def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Traced:
    """Concatenates arrays along `axis`; with None, their elements as one axis."""
    made = tensors("concat", *_some(arrays, "concat"))
    if axis is None:
        made, axis = [primitives.reshape(x, (-1,)) for x in made], 0
    return primitives.concatenate(made, one_axis(made[0], axis, "concat"))


def _some(arrays: Sequence[Any], where: str) -> Sequence[Any]:
    if not arrays:
        raise ShapeError(f"{where} needs at least one array, got none", hint="give a list with an array in it")
    return arrays


@operator
def stack(arrays: Sequence[Array], /, axis: int = 0) -> Traced:
    """Joins arrays of one shape along a new axis."""
    made = tensors("stack", *_some(arrays, "stack"))
    axis = rules.normalize_axis(axis, made[0].ndim + 1, where="stack")
    return primitives.concatenate([expanded(x, [axis]) for x in made], axis)


@view_by(expand_view)
@operator
def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Traced:
    """Inserts axes of size 1 at `axis`, counted in the result."""
    made = tensor(x)
    return primitives.reshape(made, rules.expand_dims(made.sizes, axis))


@view_by(Tensor.squeeze)
@operator
def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Traced:
    """Removes `axis`, which must have size 1."""
    made = tensor(x)
    return primitives.reshape(made, rules.squeeze(made.sizes, axis))


@operator
def flip(x: Array, /, axis: Axis = None) -> Traced:
    """Reverses the order of elements along `axis`, or along all axes."""
    made = tensor(x)
    axes = axes_of(made, axis, "flip")
    open_ends = [None] * made.ndim
    return primitives.slice_(made, open_ends, open_ends, [-1 if at in axes else 1 for at in range(made.ndim)])


@view_by(Tensor.permute)
@operator
def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Traced:
    """Permutes axes: axis i of the result is axis axes[i] of `x`."""
    return primitives.transpose(tensor(x), axes)


@view_by(Tensor.transpose)
@operator
def matrix_transpose(x: Array, /) -> Traced:
    """Exchanges the last two axes."""
    return swap_axes(tensor(x), -2, -1)


def swap_axes(x: Traced, first: int = -2, second: int = -1) -> Traced:
    """Two axes exchanged."""
    if not isinstance(first, int):
        raise ShapeError(
            f"transpose exchanges two axes, got {first!r}",
            shapes=shown(x),
            hint="permute_dims(x, axes) orders all axes",
        )
    order = list(range(x.ndim))
    a, b = (one_axis(x, axis, "transpose") for axis in (first, second))
    order[a], order[b] = order[b], order[a]
    return primitives.transpose(x, order)


@view_by(Tensor.transpose)
@operator
def transpose(x: Array, /, first: int = -2, second: int = -1) -> Traced:
    """Exchanges two axes, the last two unless others are named."""
    return swap_axes(tensor(x), first, second)


@view_by(move_view)
@operator
def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Traced:
    """Moves axes from `source` to `destination`; the others keep their order."""
    made = tensor(x)
    return primitives.transpose(made, order_of_move(made.ndim, source, destination))


@view_by(reshape_view)
@operator
def reshape(x: Array, /, shape: tuple[DimLike, ...], *, copy: bool | None = None) -> Traced:
    """The same elements in another shape, of which one size may be -1: of a tensor a view where strides allow it."""
    return primitives.reshape(tensor(x), shape)


@view_by(flatten_view)
@operator
def flatten(x: Array, /) -> Traced:
    """All elements along one axis."""
    return primitives.reshape(tensor(x), (-1,))


@operator
def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axis = None) -> Traced:
    """Moves elements by `shift` along `axis`; those that leave come in again at the other end."""
    made = tensor(x)
    if axis is None:
        row = primitives.reshape(made, (-1,))
        for one in shift if isinstance(shift, tuple) else (shift,):
            row = _rolled(row, one, 0)
        return primitives.reshape(row, made.sizes)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(
            f"roll: {len(shifts)} shifts for {len(axes)} axes", shapes=shown(made), hint="give one shift per axis"
        )
    for one, at in zip(shifts, axes, strict=True):
        made = _rolled(made, one, one_axis(made, at, "roll"))
    return made


def _rolled(x: Traced, shift: int, axis: int) -> Traced:
    size = x.sizes[axis]
    if isinstance(size, int):
        shift = shift % size if size else 0
    elif builtins.abs(shift) > 1:
        shift %= known(x, axis, "roll")
    if shift == 0:
        return x
    cut = -shift
    open_ends: list[Any] = [None] * x.ndim
    tail = primitives.slice_(x, replaced(open_ends, axis, cut), open_ends)
    head = primitives.slice_(x, open_ends, replaced(open_ends, axis, cut))
    return primitives.concatenate([tail, head], axis)


@operator
def tile(x: Array, repetitions: tuple[int, ...], /) -> Traced:
    """`x` set side by side: repetitions[i] times along axis i, counted from the last."""
    made = tensor(x)
    given: tuple[int, ...] = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    rank = builtins.max(made.ndim, len(given))
    times = (*(1,) * (rank - len(given)), *given)
    sizes = (*(1,) * (rank - made.ndim), *made.sizes)
    apart = [part for size in sizes for part in (1, size)]
    spread = [part for count, size in zip(times, sizes, strict=True) for part in (count, size)]
    laid = primitives.broadcast_to(primitives.reshape(made, apart), spread)
    joined: list[Size] = [count * size for count, size in zip(times, sizes, strict=True)]  # pyright: ignore[reportAssignmentType]
    return primitives.reshape(laid, joined)


@operator
def _repeat_each(x: Array, count: int, axis: int) -> Traced:
    """Each slice along `axis` `count` times."""
    made = tensor(x)
    axis = one_axis(made, axis, "repeat")
    if count < 0:
        raise ShapeError(f"repeat: a count is {count}, and none may be negative", hint="give counts from 0 on")
    sizes = made.sizes
    apart = primitives.reshape(made, replaced(sizes, axis, sizes[axis], 1))
    laid = primitives.broadcast_to(apart, replaced(sizes, axis, sizes[axis], count))
    return primitives.reshape(laid, replaced(sizes, axis, sizes[axis] * count))


@operator
def _take(x: Array, indices: Array, axis: int) -> Traced:
    made = tensor(x)
    return primitives.gather(made, indices, one_axis(made, axis, "take"))


@knowing
def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Any:
    """Each element, or each slice along `axis`, several times.

    An array of counts decides the size of the result: it must be known when the function is traced.
    """
    if axis is None:
        x, axis = flatten(x), 0
    if isinstance(repeats, int):
        return _repeat_each(x, repeats, axis)
    if isinstance(repeats, Traced):
        raise data_dependent("repeat with an array of counts", repeats)
    counts: Any = repeats.cpu().numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    given: Any = x if isinstance(x, Tensor | Traced) else asarray(x)
    size = given.shape[rules.normalize_axis(axis, given.ndim, where="repeat")]
    if counts.dtype.kind not in "iu":
        raise DtypeError(f"repeat: counts are integers, got {counts.dtype}", hint="cast them to i64")
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeat: a count is {counts.min()}, and none may be negative", hint="give counts from 0 on")
    if counts.ndim > 1 or counts.size not in (1, size):
        raise ShapeError(
            f"repeat: {counts.shape} counts for an axis of {size}", hint="give one count, or one for each slice"
        )
    indices: Any = np.repeat(np.arange(int(size)), counts)
    return _take(given, indices, axis)


def data_dependent(what: str, *given: Traced) -> ShapeError:
    """An error for shapes that only values decide, inside a trace."""
    return ShapeError(
        f"{what}: the shape of the result depends on elements, which are not known while a function is traced",
        shapes=shown(*given),
        story=stories(given),
        hint="call it outside jit, or use where with a shape that is known",
    )


@view_by(unstack_views)
@operator
def unstack(x: Array, /, axis: int = 0) -> tuple[Traced, ...]:
    """Splits `x` into its slices along `axis`, without that axis."""
    made = tensor(x)
    axis = one_axis(made, axis, "unstack")
    count = known(made, axis, "unstack")
    return tuple(_at_index(made, axis, at) for at in range(count))


def _at_index(x: Traced, axis: int, at: int) -> Traced:
    """One slice along an axis, without the axis."""
    open_ends: list[Any] = [None] * x.ndim
    last = None if at == -1 else at + 1
    one = primitives.slice_(x, replaced(open_ends, axis, at), replaced(open_ends, axis, last))
    return primitives.reshape(one, replaced(x.sizes, axis))


@view_by(split_views)
@operator
def split(x: Array, parts: int | tuple[int, ...], /, axis: int = 0) -> tuple[Traced, ...]:
    """Splits `x` along `axis` into equal parts, or into parts of these sizes."""
    made = tensor(x)
    axis = one_axis(made, axis, "split")
    size = known(made, axis, "split")
    open_ends: list[Any] = [None] * made.ndim
    found: list[Traced] = []
    start = 0
    for one in sizes_of_parts(parts, size, axis):
        bounds = replaced(open_ends, axis, start), replaced(open_ends, axis, start + one)
        found.append(primitives.slice_(made, *bounds))
        start += one
    return tuple(found)


@operator
def pad(x: Array, widths: tuple[tuple[int, int], ...], /, *, value: float = False) -> Traced:
    """Pads `x` with `value`, 0 or False by default: `widths` has (before, after) for each axis."""
    made = tensor(x)
    if len(widths) != made.ndim or builtins.any(side < 0 for pair in widths for side in pair):
        raise ShapeError(
            f"pad: {widths} does not fit {made.ndim} axes",
            shapes=shown(made),
            hint="give a pair of numbers, not negative, for each axis",
        )
    for axis, (before, after) in enumerate(widths):
        filled = [
            primitives.constant(value, replaced(made.sizes, axis, width), made.dtype) if width else None
            for width in (before, after)
        ]
        parts = [filled[0], made, filled[1]]
        made = primitives.concatenate([part for part in parts if part is not None], axis)
    return made
