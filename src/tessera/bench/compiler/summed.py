"""The counts of several kernels as one: what can be added is, and what is of a kernel alone is left to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tessera.compiler.code_counts import FIGURES, CodeCounts

Figures: TypeAlias = Mapping[str, Any]

_OF_EACH = ("registers", "register_pressure", "occupancy_estimate", "shared_memory_usage")
_SEVERAL = "each kernel has its own, which cannot be added: see `kernels`"


def summed(kernels: Mapping[str, CodeCounts]) -> CodeCounts:
    """The counts of kernels together. Of one alone they are its own."""
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    if not kernels:
        return CodeCounts.unknown("there is no kernel")
    reasons: dict[str, str] = {}
    for one in reversed(list(kernels.values())):
        reasons |= one.unavailable
    figures: dict[str, Any] = {}
    for name in FIGURES:
        if name in _OF_EACH:
            reasons = {key: why for key, why in reasons.items() if key.partition(".")[0] != name}
            reasons[name] = _SEVERAL
            continue
        figures[name] = _together([getattr(one, name) for one in kernels.values()])
    return CodeCounts(**figures, unavailable=reasons)


def _together(values: Sequence[Any]) -> Any:
    """The sum of numbers, or of those under the same key; None where one is not known."""
    if any(value is None for value in values):
        return None
    if all(isinstance(value, Mapping) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _together([value.get(key, _nothing_like(values, key)) for value in values]) for key in keys}
    return sum(values)


def _nothing_like(values: Sequence[Figures], key: str) -> Any:
    """What a kernel has that another counts and it does not: none of it."""
    found = next(value[key] for value in values if key in value)
    return {} if isinstance(found, Mapping) else 0
