"""Indices: which ones give views, what the others are turned into, and what is wrong with those that fail."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias, cast

import numpy as np

from tessera.dtypes.types import Kind, i64
from tessera.errors import DtypeError, ShapeError, TesseraError
from tessera.runtime.memory import Array
from tessera.shapes.expr import format_shape

# int, slice, None, ... and integer or boolean arrays of any library, alone or in a tuple.
Key: TypeAlias = Any
Part: TypeAlias = int | slice | EllipsisType | Array | None

_BASIC = frozenset({int, slice, type(None), EllipsisType})


def parts_of(key: Key) -> tuple[tuple[Part, ...], bool]:
    """The key as NumPy takes it, and whether it gives a view: that is, whether it is free of arrays."""
    given: tuple[Any, ...] = cast(tuple[Any, ...], key) if isinstance(key, tuple) else (key,)
    basic = all(type(part) in _BASIC for part in given)
    parts = given if basic else tuple([_part(part) for part in given])
    if not basic:
        basic = not any(isinstance(part, np.ndarray) for part in parts)
    # With an ellipsis, NumPy answers with an array where it would otherwise read out a scalar.
    if not any(part is Ellipsis for part in parts):
        parts = (*parts, Ellipsis)
    return parts, basic


def _part(part: Any) -> Part:
    if type(part) in _BASIC:
        return part
    if type(part) is list or hasattr(part, "__dlpack__") or hasattr(part, "__array__"):
        return _array_part(part)
    if isinstance(part, SupportsIndex) and not isinstance(part, bool):
        return operator.index(part)
    raise DtypeError(
        f"expected an index, got {part!r} of type {type(part).__name__}",
        hint="index with integers, slices, None, ... and integer or boolean arrays",
    )


def _array_part(part: Any) -> Part:
    from tessera.runtime.creation import asarray  # above this file: it makes tensors

    indices = asarray(part, i64 if type(part) is list and not part else None)
    if indices.dtype.kind is Kind.BOOL:
        return indices.numpy()
    if indices.dtype.is_integer:
        # A single number is an index like any other, and gives a view.
        return int(indices) if indices.ndim == 0 else indices.numpy().astype(np.intp)
    raise DtypeError(
        f"expected integer or boolean indices, got {indices.dtype}", hint="cast the indices to i64 or bool"
    )


def refusal(shape: tuple[int, ...], problem: Exception) -> TesseraError:
    """NumPy's complaint about an index or a value, as ours."""
    return ShapeError(
        f"the index does not fit: {problem}",
        shapes=[format_shape(shape)],
        hint="an axis of size n has indices from -n to n - 1; a mask has the shape of the axes that it selects from",
    )
