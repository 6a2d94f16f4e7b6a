"""Functions that write a part of what an array holds: their output begins with the elements of an input."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

UPDATES = "tile.updates"
"""Names the argument of a function whose elements its one output holds before: it writes those that change.

The function reads its output instead of that argument, which may have the same memory.
"""


def updated_input(function: Operation) -> int | None:
    """The index of the input whose elements the one output of a function holds before."""
    found = function.attributes.get(UPDATES)
    return found.value.data if isinstance(found, IntegerAttr) else None


def fresh_outputs(function: Operation, first: int, end: int) -> Sequence[int]:
    """The outputs that hold nothing before, of those from `first` on."""
    return range(first, end) if updated_input(function) is None else ()


def verify_updated(function: Operation, types: Sequence[Attribute], shapes: Sequence[Attribute], inputs: int) -> None:
    """Checks that the one output is like the input whose elements it holds before."""
    number = updated_input(function)
    if number is None or len(shapes) != len(types):
        return
    fits = inputs == len(types) - 1 and 0 <= number < inputs
    if not fits or (types[number], shapes[number]) != (types[-1], shapes[-1]):
        raise VerifyException(f"{UPDATES} names the input whose type and shape the one output has, not {number}")
