"""Checking a function before anything runs: traced for types alone, symbolic sizes and all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tessera.dtypes.types import f32
from tessera.lang.calls.annotated import leaves_of
from tessera.lang.calls.parameters import Parameters
from tessera.lang.tracing.functions import ArgumentType, Outcome, trace_function
from tessera.runtime.device.device import Device, default_device
from tessera.runtime.tensor.pytree import tree_unflatten
from tessera.shapes.annotations import TensorType, annotation


class Checked(NamedTuple):
    """The result of a check: the types of the results, in the function's structure, and how each came to its shape."""

    results: Any
    stories: Any
    effects: tuple[str, ...]


class Typed:
    """An array that is only a type."""

    def __init__(self, given: TensorType, device: Device) -> None:
        self.shape = given.dims
        self.dtype = given.dtype or f32
        self.ndim = len(given.dims)
        self.device = device


def check(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Checked:
    """Traces a function for types such as `Tensor["B", 64, f32]`, arrays and numbers; nothing is compiled or run.

    Gives the types of its results; what does not fit together is an error at its line. Symbols stand for all sizes.
    """
    if isinstance(found := getattr(function, "parameters", None), Parameters):
        return checked(found.function, found, args, kwargs)
    return checked(function, Parameters(function), args, kwargs)


def checked(
    function: Callable[..., Any], parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Checked:
    """The check of a function with these parameters."""
    name = getattr(function, "__name__", "function")
    device = default_device()
    arguments = parameters.bind(args, kwargs)
    call = parameters.call(arguments, lambda given: Typed(given, device))
    annotated, _ = leaves_of(call, parameters)
    types: list[ArgumentType] = []
    for leaf, value, expected in zip(call.leaves, call.values, annotated, strict=True):
        dtype = value.dtype if expected is None or expected.dtype is None else expected.dtype
        types.append(ArgumentType(leaf.name, tuple(value.shape), dtype, leaf.number is not None))
    traced = trace_function(name, function, types, call.rebuild, device, None, {})

    def described(outcome: Outcome) -> Any:
        if outcome.result is None:
            return outcome.constant if outcome.size is None else outcome.size
        sizes, dtype = traced.result_types[outcome.result]
        return annotation("tensor", (*sizes, dtype))

    results = tree_unflatten(traced.structure, [described(one) for one in traced.outcomes])
    results_of = [one.result for one in traced.outcomes]
    stories = [None if result is None else traced.histories[result] for result in results_of]
    return Checked(results, tree_unflatten(traced.structure, stories), traced.effects)
