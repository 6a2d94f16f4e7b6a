"""A jitted function called inside of another: its body becomes part of the trace, its annotations are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tessera.lang.parameters import Parameters
from tessera.lang.tracing import Traced
from tessera.runtime.pytree import tree_map


def inlined(name: str, parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls the function as it is, on traced values, once their types were checked."""
    if parameters.annotations.parameters:
        arguments = parameters.bind(args, kwargs)
        described = {key: tree_map(_described, value) for key, value in arguments.items()}
        parameters.annotations.bind(described)
    return parameters.function(*args, **kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """A traced value's type, whose sizes ask nothing."""

    shape: tuple[Any, ...]
    dtype: Any


def _described(value: Any) -> Any:
    return _Described(value.sizes, value.dtype) if isinstance(value, Traced) else value
