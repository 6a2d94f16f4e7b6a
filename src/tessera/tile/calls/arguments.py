"""Arguments of kernels: what counts as an array, where values lie in objects, and what kinds they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import copysign
from typing import Any, TypeAlias

import numpy as np

from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor

Number: TypeAlias = bool | int | float
NUMBERS: frozenset[object] = frozenset({bool, int, float})


def is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or (
        not isinstance(value, bool | int | float | np.bool_)
        and (hasattr(value, "__dlpack__") or hasattr(value, "__array__"))
    )


def plain(value: Any) -> Any:
    """A flag of NumPy's as Python's: it is a number. All else as it is."""
    return bool(value) if value.__class__ is np.bool_ else value


def look_up(path: str, given: Mapping[str, Any]) -> Any:
    """The value at a path such as `cache.K`, arrays as tensors."""
    name, *attributes = path.split(".")
    value = given[name]
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return asarray(value) if is_array(value) else plain(value)


def collect(paths: Sequence[str], given: Mapping[str, Any]) -> list[Any]:
    """The values at all paths."""
    return [look_up(path, given) for path in paths]


def kinds_of(values: Iterable[Any]) -> tuple[object, ...]:
    """Rank and element type of each array, its policy with it, by name; the class of anything else."""
    return tuple((v.ndim, str(v.dtype)) if isinstance(v, Tensor) else v.__class__ for v in values)


def exact(number: Number) -> tuple[Number, object]:
    """Numbers of one type are alike where these are equal: 0.0 and -0.0 are not."""
    return number, number.__class__ is float and copysign(1.0, number)


LINE = 16
"""Bytes that a GPU moves at once."""


_FAR = 1 << 31


def row_axis(value: Any) -> int:
    """The axis along which an array's rows lie as a GPU wants them, counted from the end: 1 is the last; 0 for none.

    Such rows are whole pieces of 16 bytes, neighbours side by side: each begins and ends with such a piece, and is less
    than 2 GiB from the next. An array whose last two axes are exchanged has them along axis 2.
    """
    return 0 if value.pointer % LINE else aligned_axis(value.shape, value.strides, value.itemsize)


def aligned_axis(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """The same for an array that begins at a multiple of 16 bytes."""
    axis = next((axis for axis in range(len(strides) - 1, -1, -1) if strides[axis] == 1), None)
    if axis is None:
        return 0
    steps = [abs(step * itemsize) for step in (*strides[:axis], *strides[axis + 1 :], shape[axis])]
    return 0 if any(step % LINE or step >= _FAR for step in steps) else len(strides) - axis
