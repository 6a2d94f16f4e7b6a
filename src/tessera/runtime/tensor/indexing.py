"""Indices: which ones give views, which become gathers, and what is wrong with those that fail."""

from __future__ import annotations

import math
import operator
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias, cast

import numpy as np

from tessera.dtypes.types import Kind, i64
from tessera.errors import DeviceError, DtypeError, RangeError, ShapeError, TesseraError
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import Array
from tessera.runtime.tensor.interface import TensorInterface, asarray
from tessera.shapes.expr import format_shape

# int, slice, None, ... and integer or boolean arrays of any library, alone or in a tuple.
Key: TypeAlias = Any
Part: TypeAlias = int | slice | EllipsisType | TensorInterface | None

_BASIC = frozenset({int, slice, type(None), EllipsisType})


def parts_of(key: Key) -> tuple[tuple[Part, ...], bool]:
    """The parts of a key, arrays among them as tensors, and whether it gives a view: whether there are no arrays."""
    given: tuple[Any, ...] = cast(tuple[Any, ...], key) if isinstance(key, tuple) else (key,)
    if all(type(part) in _BASIC for part in given):
        return given, True
    parts = tuple([_part(part) for part in given])
    return parts, all(type(part) in _BASIC for part in parts)


def for_numpy(shape: tuple[int, ...], parts: tuple[Part, ...]) -> tuple[Any, ...]:
    """The key of a tensor of the host as NumPy takes it."""
    found: list[int | slice | EllipsisType | Array | None] = []
    for part in parts:
        if isinstance(part, int | slice | EllipsisType) or part is None:
            found.append(part)
            continue
        if not part.device.backend.host_addressable:
            raise DeviceError(
                f"a tensor of the host is indexed with one of {part.device}",
                shapes=[f"tensor: {format_shape(shape)}", f"indices: {format_shape(part.shape)} of {part.dtype}"],
                hint=f"bring the indices over first, .cpu(), or the tensor: .to({str(part.device)!r})",
            )
        array = part.numpy()
        found.append(array if part.dtype.kind is Kind.BOOL else array.astype(np.intp))
    # With an ellipsis, NumPy answers with an array where it would otherwise read out a scalar.
    return tuple(found) if any(one is Ellipsis for one in found) else (*found, Ellipsis)


def selected(shape: tuple[int, ...], parts: tuple[Part, ...]) -> int:
    """How many elements arrays of integers choose; 0 where a mask decides that, or where the parts do not fit."""
    taken, extents = [part for part in parts if part is not None and part is not Ellipsis], list(shape)
    if len(taken) > len(shape) or any(hasattr(part, "dtype") and part.dtype.kind is Kind.BOOL for part in taken):
        return 0
    axis, arrays = 0, list[tuple[int, ...]]()
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - len(taken)
        elif isinstance(part, slice):
            extents[axis] = len(range(*part.indices(shape[axis])))
            axis += 1
        elif part is not None:
            extents[axis] = 1
            arrays += [] if isinstance(part, int) else [part.shape]
            axis += 1
    try:
        total = math.prod(np.broadcast_shapes(*arrays))
    except ValueError:
        return 0
    return total * math.prod(extents)


def for_device(key: Key, parts: tuple[Part, ...], device: Device) -> tuple[Any, ...]:
    """The key of a tensor of a device: lists and arrays of the host that are no tensors go where it is."""
    given: tuple[Any, ...] = cast(tuple[Any, ...], key) if isinstance(key, tuple) else (key,)
    return tuple(
        part if type(part) in _BASIC or type(part) is type(source) else cast(TensorInterface, part).to(device)
        for source, part in zip(given, parts, strict=True)
    )


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
    indices = asarray(part, i64 if type(part) is list and not part else None)
    if indices.dtype.kind is Kind.BOOL:
        return indices
    if indices.dtype.is_integer:
        # A single number is an index like any other, and gives a view.
        return int(indices) if indices.ndim == 0 else indices
    raise DtypeError(
        f"expected integer or boolean indices, got {indices.dtype}", hint="cast the indices to i64 or bool"
    )


def refusal(shape: tuple[int, ...], problem: Exception) -> TesseraError:
    """NumPy's complaint about an index or a value, as ours."""
    return (RangeError if isinstance(problem, IndexError) else ShapeError)(
        f"the index does not fit: {problem}",
        shapes=[format_shape(shape)],
        hint="an axis of size n has indices from -n to n - 1; a mask has the shape of the axes that it selects from",
    )
