"""Arguments of kernels: what counts as an array, where values lie in objects, and what kinds they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tessera.runtime.creation import asarray
from tessera.runtime.tensor import Tensor


def is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or (
        not isinstance(value, bool | int | float) and (hasattr(value, "__dlpack__") or hasattr(value, "__array__"))
    )


def look_up(path: str, given: Mapping[str, Any]) -> Any:
    """The value at a path such as `cache.K`, arrays as tensors."""
    name, *attributes = path.split(".")
    value = given[name]
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return asarray(value) if is_array(value) else value


def collect(paths: Sequence[str], given: Mapping[str, Any]) -> list[Any]:
    """The values at all paths."""
    return [look_up(path, given) for path in paths]


def kinds_of(values: Iterable[Any]) -> tuple[object, ...]:
    """Rank and element type of each array, the class of anything else."""
    return tuple((v.ndim, v.dtype.base) if isinstance(v, Tensor) else v.__class__ for v in values)
