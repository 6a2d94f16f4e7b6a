"""Annotations of a call's leaves: which `Tensor[...]` belongs to which array inside a pytree argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin

from tessera.dtypes.types import DType
from tessera.lang.calls.parameters import Call, Parameters
from tessera.shapes.annotations import TensorType
from tessera.shapes.environment import ShapeEnvironment
from tessera.shapes.signature import BARE, entries


def leaves_of(call: Call, parameters: Parameters) -> tuple[list[TensorType | None], ShapeEnvironment]:
    """For each leaf what its annotation says; and what the symbols are. What does not fit is an error."""
    signature = parameters.annotations
    if not signature.parameters:
        return [None] * len(call.values), ShapeEnvironment()
    # One array may be given for two parameters, so that each leaf gets a stand-in of its own.
    stands = [_Described(value.shape, value.dtype) for value in call.values]
    args, kwargs = call.rebuild(stands)
    arguments = parameters.bind(args, kwargs)
    environment = signature.bind(arguments)
    found: dict[int, TensorType] = {}
    for name, expected in signature.parameters.items():
        if name in arguments:
            for tensor_type, value in pairs(expected, arguments[name]):
                found[id(value)] = tensor_type
    return [found.get(id(stand)) for stand in stands], environment


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """The arguments that annotations are checked against."""

    shape: tuple[Any, ...]
    dtype: DType


def pairs(expected: Any, value: Any) -> Iterator[tuple[TensorType, Any]]:
    """The arrays inside of a value, each with what the annotation says about it."""
    expected = BARE.get(expected, expected) if isinstance(expected, type) else expected
    if isinstance(expected, TensorType):
        if value is not None:
            yield expected, value
        return
    origin, inner = get_origin(expected), get_args(expected)
    if origin is dict and isinstance(value, Mapping):
        for item in cast("Mapping[Any, Any]", value).values():
            yield from pairs(inner[1], item)
    elif origin in (tuple, list) and isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        repeated = origin is list or inner[-1:] == (Ellipsis,)
        for index, item in enumerate(items):
            yield from pairs(inner[0] if repeated else inner[index], item)
    else:
        for _, inside, item in entries(expected, value):
            yield from pairs(inside, item)
