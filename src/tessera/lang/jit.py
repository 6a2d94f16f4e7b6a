"""`@jit`: a function over tensors, traced for the types it is called with, compiled once for many sizes, and run."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from tessera import knobs
from tessera.errors import DeviceError, SourceSpan, TesseraError, caller_span
from tessera.lang.asking import TraceAgain
from tessera.lang.functions import Outcome, TracedFunction, trace_function
from tessera.lang.parameters import Call, Parameters
from tessera.lang.running import Interpreted, Program, Run
from tessera.lang.tracing import current_or_none
from tessera.lang.variants import Pattern, Reason, Seen, pattern_of, sizes_for
from tessera.runtime.device import Device, default_device
from tessera.runtime.pytree import tree_unflatten
from tessera.runtime.tensor import Tensor
from tessera.shapes.expr import format_shape

_MOST_TRACES = 32  # of one function for one call, each with more sizes known to be equal
_MOST_KNOWN = 4096


@dataclass
class Variant:
    """A traced and compiled function, and why it was made."""

    traced: TracedFunction
    program: Program
    device: Device
    reason: Reason
    calls: int = 0


@dataclass
class Family:
    """Calls that differ in sizes alone: what they came with, and the variants that serve them."""

    seen: Seen = field(default_factory=Seen)
    variants: list[Variant] = field(default_factory=list[Variant])


class Jitted:
    """A function that is traced, compiled and kept. Call it like the function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        number_parameters: Iterable[str] | None = None,
        name: str | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or getattr(function, "__name__", "function")
        self.parameters = Parameters(
            function,
            (static_argnums,) if isinstance(static_argnums, int) else static_argnums,
            (static_argnames,) if isinstance(static_argnames, str) else static_argnames,
            number_parameters=number_parameters,
        )
        self.families: dict[tuple[object, ...], Family] = {}
        self.known: dict[tuple[object, ...], tuple[Variant, Run, dict[str, int]]] = {}
        self.reasons: list[Reason] = []
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<jit {self.name}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_or_none() is not None:
            return self.function(*args, **kwargs)
        call = self.parameters.call(args, kwargs)
        key = (call.key, *[value.meta for value in call.values])
        found = self.known.get(key)
        if found is None:
            found = self._find(call)
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[key] = found
        variant, run, sizes = found
        variant.calls += 1
        results = run(*call.values, *variant.traced.hidden)
        return rebuilt(variant.traced, results, sizes)

    def _find(self, call: Call) -> tuple[Variant, Run, dict[str, int]]:
        with self._lock:
            device = device_of(self.name, call.values)
            family = self.families.setdefault((device, *call.key), Family())
            family.seen.add(call.values)
            for variant in family.variants:
                sizes = sizes_for(variant.traced, call.values)
                if sizes is not None:
                    break
            else:
                variant = self._made(call, family, device)
                sizes = sizes_for(variant.traced, call.values)
                assert sizes is not None, "a function serves the arguments that it was traced for"
            return variant, variant.program.bind([*call.values, *variant.traced.hidden]), sizes

    def _made(self, call: Call, family: Family, device: Device) -> Variant:
        reason = self._reason(call, family)
        traced = self.trace(call, family.seen, device)
        variant = Variant(traced, self._program(traced, device), device, reason)
        family.variants.append(variant)
        self.reasons.append(reason)
        if family.variants[1:] and "recompiles" in knobs.logs.value:
            logging.getLogger("tessera.recompiles").warning("%s: %s", self.name, reason)
        return variant

    def _program(self, traced: TracedFunction, device: Device) -> Program:
        from tessera.interpreters.machine import Machine

        return Interpreted(traced, device, Machine)

    def trace(self, call: Call, seen: Seen, device: Device) -> TracedFunction:
        """The function traced for a call; again, with sizes put in one, where it turns out to need that."""
        for _ in range(_MOST_TRACES):
            pattern = pattern_of(call, self.parameters, seen)
            try:
                return self._traced(call, pattern, device)
            except TraceAgain as wish:
                seen.replaced |= wish.replaced
        raise TesseraError(
            f"{self.name} was traced {_MOST_TRACES} times, and each time it needed other sizes to be equal",
            hint="name the sizes in annotations",
        )

    def _traced(self, call: Call, pattern: Pattern, device: Device) -> TracedFunction:
        return trace_function(
            self.name, self.function, pattern.types, call.rebuild, device, pattern.numbers, pattern.intervals
        )

    def _reason(self, call: Call, family: Family) -> Reason:
        span: SourceSpan | None = caller_span()
        if not family.variants:
            return Reason("first call with arguments of these types", span)
        before = family.variants[-1].traced
        for leaf, one, value in zip(call.leaves, before.types, call.values, strict=True):
            for axis, (expected, actual) in enumerate(zip(one.sizes, value.shape, strict=True)):
                if isinstance(expected, int) and expected != actual:
                    return Reason(f"argument '{leaf.name}', axis {axis}: {expected} became {actual}", span)
        shapes = ", ".join(
            f"{leaf.name}: {format_shape(value.shape)}" for leaf, value in zip(call.leaves, call.values, strict=True)
        )
        failing = [str(guard) for guard in before.guards]
        return Reason(f"sizes no longer fit what was asked ({', '.join(failing)}): {shapes}", span)


def rebuilt(traced: TracedFunction, results: Sequence[Tensor], sizes: Mapping[str, int]) -> Any:
    """What the function returned, with results in the place of traced values."""
    return tree_unflatten(traced.structure, [_leaf(one, results, sizes) for one in traced.outcomes])


def _leaf(outcome: Outcome, results: Sequence[Tensor], sizes: Mapping[str, int]) -> Any:
    if outcome.place is not None:
        return results[outcome.place]
    return outcome.constant if outcome.size is None else outcome.size.evaluate(sizes)


def device_of(name: str, values: Sequence[Tensor]) -> Device:
    """The one device of all arguments; numbers go anywhere."""
    devices = {value.device: value for value in values if value.ndim or value.device.kind != "cpu"}
    if len(devices) > 1:
        shapes = [f"{format_shape(value.shape)} of {value.dtype} on {place}" for place, value in devices.items()]
        raise DeviceError(
            f"{name}: arguments are on different devices: {', '.join(map(str, devices))}",
            shapes=shapes,
            hint="bring them to one device first: .to(...)",
        )
    return next(iter(devices), None) or (values[0].device if values else default_device())


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """A function over tensors that is traced once per kind of arguments, compiled, and run."""

    def decorate(given: Callable[..., Any]) -> Jitted:
        return Jitted(given, static_argnums=static_argnums, static_argnames=static_argnames)

    return decorate if function is None else decorate(function)
