"""A jitted function called inside of another: its body becomes part of the trace, its annotations are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tessera.lang.calls.annotated import pairs
from tessera.lang.calls.parameters import Parameters
from tessera.lang.tracing.shape_rules import is_automatic
from tessera.lang.tracing.values import Traced
from tessera.runtime.tensor.pytree import tree_map
from tessera.shapes.annotations import TensorType
from tessera.shapes.expr import dim, size


def inlined(name: str, parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls the function as it is, on traced values, once their types were checked."""
    if parameters.annotations.parameters:
        arguments = parameters.bind(args, kwargs)
        described = {key: tree_map(_described, value) for key, value in arguments.items()}
        parameters.annotations.bind(described)
        for key, expected in parameters.annotations.parameters.items():
            for written, value in pairs(expected, arguments.get(key)):
                if isinstance(value, Traced):
                    _ask(written, value)
    return parameters.function(*args, **kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """A traced value's type, whose sizes ask nothing."""

    shape: tuple[Any, ...]
    dtype: Any


def _described(value: Any) -> Any:
    """A value's type; sizes without a name are the numbers that they are in the call at hand."""
    if not isinstance(value, Traced):
        return value
    numbers = value.trace.sizes.numbers or {}
    known = {symbol: number for symbol, number in numbers.items() if is_automatic(symbol)}
    return _Described(tuple(size(dim(one).substitute(known)) for one in value.sizes), value.dtype)


def _ask(written: TensorType, value: Traced) -> None:
    """A size that the annotation fixes is asked of the value: the trace is right for that number alone."""
    for expected, one in zip(reversed(written.dims), reversed(value.sizes), strict=False):
        if isinstance(expected, int) and not isinstance(one, int) and value.trace.sizes.numbers is not None:
            value.trace.sizes.ask(one, "==", expected)
