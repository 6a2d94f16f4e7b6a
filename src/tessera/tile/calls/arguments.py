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


def is_row_aligned(value: Any) -> bool:
    """Whether an array's rows are aligned for a GPU: whole pieces of 16 bytes, neighbours side by side.

    So every row begins and ends with such a piece, and is less than 2 GiB from the next.
    """
    if value.ndim == 0 or value.strides[-1] != 1 or value.pointer % LINE:
        return False
    steps = [abs(stride * value.itemsize) for stride in (*value.strides[:-1], value.shape[-1])]
    return not any(step % LINE or step >= _FAR for step in steps)
