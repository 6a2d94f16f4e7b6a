"""Arguments that share memory: which arrays of a call overlap, and the error of a program compiled for others.

A program is compiled for arrays that it writes and that overlap no other argument, as nearly all calls have them. Its
launches compare addresses; where arrays overlap after all, nothing runs, and `OverlapError` says which. Kernels take
another program then, which loads and stores in the order in which it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tessera.compiler.launch_plan import ArrayArgument, Plan
from tessera.errors import EffectError


class Distances(NamedTuple):
    """Two arguments that must not overlap, by their indices; they do if the distance of their addresses is between.

    The distance is that of the second from the first, in bytes.
    """

    first: int
    second: int
    above: int
    below: int


class OverlapError(EffectError):
    """Arrays overlap that a program was compiled to find apart: `pairs` are indices of its arguments."""

    def __init__(self, name: str, pairs: Sequence[tuple[int, int]]) -> None:
        listed = " and ".join(f"arguments {one} and {other}" for one, other in pairs)
        super().__init__(
            f"@{name} writes memory that another argument shares: {listed} overlap",
            hint="give arrays that do not overlap, such as a copy of one",
        )
        self.name, self.pairs = name, tuple(pairs)

    def renumbered(self, indices: Sequence[int]) -> OverlapError:
        """The same for a caller that has the arguments in another order."""
        return OverlapError(self.name, [(indices[one], indices[other]) for one, other in self.pairs])


def distances(plan: Plan, geometry: Sequence[tuple[Sequence[int], Sequence[int]] | None]) -> Iterator[Distances]:
    """The distances at which arrays of these sizes and strides, in elements, overlap: one for each pair of the plan."""
    for first, second in plan.apart:
        one, other = _extent(plan, first, geometry), _extent(plan, second, geometry)
        if one is not None and other is not None:
            yield Distances(first, second, one[0] - other[1], one[1] - other[0])


def overlapping(pairs: Sequence[Distances], addresses: Sequence[int | None]) -> list[tuple[int, int]]:
    """The pairs of arguments that overlap at these addresses."""
    found: list[tuple[int, int]] = []
    for first, second, above, below in pairs:
        one, other = addresses[first], addresses[second]
        if one is not None and other is not None and above < other - one < below:
            found.append((first, second))
    return found


def _extent(plan: Plan, index: int, geometry: Sequence[Any]) -> tuple[int, int] | None:
    """Where an array begins and ends, in bytes from its first element; None for one without elements."""
    argument, measured = plan.arguments[index], geometry[index]
    assert isinstance(argument, ArrayArgument)
    if measured is None or 0 in measured[0]:
        return None
    lasts = [(size - 1) * stride for size, stride in zip(*measured, strict=True)]
    low, high = sum(min(last, 0) for last in lasts), sum(max(last, 0) for last in lasts) + 1
    return low * argument.dtype.storage.itemsize, high * argument.dtype.storage.itemsize
