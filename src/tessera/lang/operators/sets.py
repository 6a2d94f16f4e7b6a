"""Functions whose results have as many elements as the values say: outside a trace only, with kernels for the work."""

from __future__ import annotations

from typing import Any, NamedTuple

from tessera.dtypes.types import i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.manipulation import data_dependent
from tessera.lang.operators.searching import searchsorted
from tessera.lang.operators.sorting import argsort
from tessera.lang.operators.statistics import running, truth
from tessera.lang.operators.taking import take
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced
from tessera.runtime.tensor.creation import arange, asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import format_shape


class UniqueAll(NamedTuple):
    """Different elements in sorted order, where each was first, which one each element was, and how often."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Different elements in sorted order, and how often each occurs."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Different elements in sorted order, and which one each element was."""

    values: Any
    inverse_indices: Any


def _concrete(name: str, x: Any) -> Tensor:
    if isinstance(x, Traced):
        raise data_dependent(name, x)
    return x if isinstance(x, Tensor) else asarray(x)


@operator
def _true_so_far(x: Array) -> Traced:
    """How many elements up to each, in C order, are not 0."""
    return running("sum", primitives.cast(primitives.reshape(truth(x), (-1,)), i64), 0)


@operator
def _new_so_far(row: Array) -> Traced:
    """How many different elements a sorted row has up to each; a NaN differs from every other."""
    made = tensor(row)
    first = primitives.constant(True, (1,), "bool")
    changes = elementwise("ne", primitives.slice_(made, [1], [None]), primitives.slice_(made, [None], [-1]))
    return running("sum", primitives.cast(primitives.concatenate([first, changes], 0), i64), 0)


@operator
def _quotients(flat: Array, step: int, size: int) -> Traced:
    """The index along one axis of flat indices in C order."""
    return elementwise("rem", elementwise("floordiv", tensor(flat), step), size)


def _steps_of(counts: Tensor) -> Tensor:
    """Where a row of running counts goes up, for each count from 1."""
    total = int(counts[-1]) if counts.size else 0
    if not total:
        return arange(0, dtype=i64, device=counts.device)
    return searchsorted(counts, arange(1, total + 1, dtype=i64, device=counts.device))  # pyright: ignore[reportReturnType]  (a tensor for tensors)


def _flat_nonzero(x: Any) -> Tensor:
    """Flat indices in C order of elements that are not 0."""
    return _steps_of(_true_so_far(x))  # pyright: ignore[reportArgumentType]  (a tensor for tensors)


def nonzero(x: Array, /) -> tuple[Any, ...]:
    """The indices of elements that are not 0: one array per axis."""
    made = _concrete("nonzero", x)
    if not made.ndim:
        raise ShapeError(
            "nonzero: a tensor without axes has no indices",
            shapes=[format_shape(made.shape)],
            hint="compare it with 0, or reshape it to (1,)",
        )
    flat = _flat_nonzero(made)
    found: list[Any] = []
    step = made.size
    for size in made.shape:
        step = step // size if size else 0
        found.append(_quotients(flat, step, size) if flat.size else flat)
    return tuple(found)


def masked(x: Any, mask: Any) -> Any:
    """Elements, or slices, where a mask over the first axes holds, in C order."""
    made, holds = _concrete("a mask as an index", x), _concrete("a mask as an index", mask)
    rank = holds.ndim
    if made.shape[:rank] != holds.shape:
        raise ShapeError(
            "the index does not fit: a mask has the shape of the axes that it selects from",
            shapes=[format_shape(made.shape), format_shape(holds.shape)],
            hint="compare the tensor itself, or one of its shape",
        )
    flat = _flat_nonzero(holds.reshape(-1))
    return take(made.reshape(holds.size, *made.shape[rank:]), flat, axis=0)


def _distinct(name: str, x: Any) -> tuple[Tensor, Any, Any, Any]:
    """The flat array, its sorting order, the sorted row and running counts of different elements."""
    made = _concrete(name, x)
    flat = made.reshape(-1)
    if not flat.size:
        empty = arange(0, dtype=i64, device=flat.device)
        return made, empty, flat, empty
    order = argsort(flat)
    row = take(flat, order, axis=0)
    return made, order, row, _new_so_far(row)


def _counts(starts: Tensor, size: int) -> Tensor:
    if not starts.size:
        return starts
    ends = arange(size, size + 1, dtype=i64, device=starts.device)
    return _differences(starts, ends)  # pyright: ignore[reportReturnType]  (a tensor for tensors)


@operator
def _differences(starts: Array, end: Array) -> Traced:
    made = tensor(starts)
    following = primitives.concatenate([primitives.slice_(made, [1], [None]), tensor(end)], 0)
    return primitives.ew("sub", following, made)


def _inverse(order: Any, counts: Any, shape: tuple[int, ...]) -> Any:
    """For each element in the order of the array, which of the different elements it is."""
    if not counts.size:
        return counts.reshape(shape)
    found: Any = _less_one(take(counts, argsort(order), axis=0))
    return found.reshape(shape)


@operator
def _less_one(x: Array) -> Traced:
    return elementwise("sub", tensor(x), 1)


def unique_all(x: Array, /) -> UniqueAll:
    """Different elements in sorted order, their first indices, inverse indices and counts; each NaN is different."""
    made, order, row, counts = _distinct("unique_all", x)
    starts = _steps_of(counts)
    return UniqueAll(
        take(row, starts, axis=0) if starts.size else row,
        take(order, starts, axis=0) if starts.size else order,
        _inverse(order, counts, made.shape),
        _counts(starts, made.size),
    )


def unique_counts(x: Array, /) -> UniqueCounts:
    """Different elements in sorted order, and how often each occurs."""
    made, _, row, counts = _distinct("unique_counts", x)
    starts = _steps_of(counts)
    return UniqueCounts(take(row, starts, axis=0) if starts.size else row, _counts(starts, made.size))


def unique_inverse(x: Array, /) -> UniqueInverse:
    """Different elements in sorted order, and which one each element was."""
    made, order, row, counts = _distinct("unique_inverse", x)
    starts = _steps_of(counts)
    return UniqueInverse(take(row, starts, axis=0) if starts.size else row, _inverse(order, counts, made.shape))


def unique_values(x: Array, /) -> Any:
    """Different elements in sorted order; each NaN is different."""
    _, _, row, counts = _distinct("unique_values", x)
    starts = _steps_of(counts)
    return take(row, starts, axis=0) if starts.size else row
