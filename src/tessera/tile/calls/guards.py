"""Guards of compiled kernels: a question about an argument (`Ask`), and the answer that a program is right for.

Facts, of which guards are made, are in `transforms/core/facts.py`; the guards of tiers are in `tiers/client.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.arguments import Number, exact, row_axis


class Ask(NamedTuple):
    """Something of an argument that a program may depend on: its size or stride along an axis, or a number's value.

    `row_aligned` asks along which axis its rows are aligned (`row_axis`), `alike` whether its size along an axis is
    that of the first array.
    """

    argument: int
    what: str
    axis: int

    def of(self, values: Sequence[Any]) -> Number:
        """The answer for given arguments; AttributeError or IndexError where there is none."""
        value = values[self.argument]
        if self.what == "value":
            return value
        if self.what == "row_aligned":
            return aligned_rows(value)
        if self.what == "alike":
            first = next(one for one in values if isinstance(one, Tensor))
            return value.shape[self.axis] == first.shape[self.axis]
        return (value.shape if self.what == "size" else value.strides)[self.axis]


def aligned_rows(value: Any) -> Number:
    """Along which axis the rows of an array are aligned, as guards have it."""
    return row_answer(row_axis(value))


def row_answer(axis: int) -> Number:
    """Where rows are aligned, as guards have it: whether they are so along the last axis, or the number of another."""
    return axis if axis > 1 else axis == 1


class Guard(NamedTuple):
    """A question of a program about its arguments, and the answer that it is right for."""

    ask: Ask
    answer: Number

    def holds(self, values: Sequence[Any]) -> bool:
        return exact(self.ask.of(values)) == exact(self.answer)

    def __str__(self) -> str:
        argument, what, axis = self.ask
        answer = str(self.answer).lower()  # as facts are spelled: true
        if what == "row_aligned":
            along = "" if int(self.answer) <= 1 else f" along axis -{answer}"
            return f"arg{argument} row_aligned{along} = {str(bool(self.answer)).lower()}"
        if what == "alike":
            return f"arg{argument}.size[{axis}] alike = {answer}"
        return f"arg{argument} = {answer}" if what == "value" else f"arg{argument}.{what}[{axis}] = {answer}"
