"""Ranges of the indices that a program takes as arguments, and the check of them before an eager call.

Kernels do not look at indices, because that takes time (`transforms/checks/check_indices.py` makes them, where asked).
An operator that is called by itself on the host is as careful as `x[indices]` there: one look at its arguments, as
NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tessera.errors import RangeError
from tessera.shapes.expr import Dim, dim

_FEW = 64  # numbers, which Python compares sooner than NumPy starts
_least, _most = np.minimum.reduce, np.maximum.reduce


class IndexRange(NamedTuple):
    """An argument whose elements lie from `low` to below `high`, apart from those that are `ignored`."""

    argument: int
    low: Dim
    high: Dim
    what: str
    """The thing that the numbers index, such as `axis 0`."""
    ignored: int | None = None

    def encoded(self) -> list[Any]:
        """As JSON has it."""
        return [self.argument, str(self.low), str(self.high), self.what, self.ignored]

    @staticmethod
    def decoded(found: Sequence[Any]) -> IndexRange:
        argument, low, high, what, ignored = found
        return IndexRange(int(argument), dim(low), dim(high), str(what), None if ignored is None else int(ignored))


def looking(
    run: Callable[..., Any], name: str, index_ranges: Sequence[IndexRange], sizes: Mapping[str, int]
) -> Callable[..., Any]:
    """The same, after a look at the arguments that are indices."""
    known = [(one, one.low.evaluate(sizes), one.high.evaluate(sizes)) for one in index_ranges]

    def looked(*values: Any) -> Any:
        for one, low, high in known:
            array = values[one.argument].geometry
            if one.ignored is not None:
                array = array[array != one.ignored]
            if not array.size:
                continue
            if array.size <= _FEW:
                listed = array.reshape(-1).tolist()
                fine = min(listed) >= low and max(listed) < high
            else:
                fine = _least(array, axis=None) >= low and _most(array, axis=None) < high
            if not fine:
                raise _refusal(name, one, low, high, array)
        return run(*values)

    return looked


def _refusal(name: str, one: IndexRange, low: int, high: int, array: np.ndarray[Any, Any]) -> RangeError:
    worst = int(array[(array < low) | (array >= high)].reshape(-1)[0])
    return RangeError(
        f"{name}: index {worst} is out of range for {one.what} of size {high}",
        hint=f"use an index from {low} to {high - 1}" if high else "where there are no elements, there is no index",
    )
