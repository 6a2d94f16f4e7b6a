"""The calls that lead from a kernel to an expression: in the kernel itself, or in a helper that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import CodeType, FrameType

from tessera.errors import SourceSpan, outer_frame, span_of

Position = tuple[CodeType, int]
"""An instruction of the user's code."""
PART = "__part_{}__"
"""The name of a function that holds the body of a loop or one side of a branch."""
_PART_START = PART.partition("{")[0]
_MOST_CALLERS = 8
"""Helpers may call themselves: callers beyond these are left out."""


def positions_within(frame: FrameType | None, kernel: CodeType | None) -> list[Position]:
    """The positions in the user's code from a frame out to the kernel's; outside of a kernel, that of the frame."""
    found: list[Position] = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        if kernel is None or frame.f_code is kernel:
            return found
        frame = outer_frame(frame.f_back)
    return found[:1]


def span_with_callers(positions: Sequence[Position]) -> SourceSpan | None:
    """The span of the first position, with those of the calls that lead there."""
    chain: list[SourceSpan] = []
    is_inside = False
    for code, instruction in positions:
        span = span_of(code, instruction)
        if not is_inside and not (chain and _encloses(span, chain[-1])):
            chain.append(span)
        # A part is run by a statement of the function that it belongs to: that is no call of the user's.
        is_inside = code.co_name.startswith(_PART_START)
    found: SourceSpan | None = None
    for span in reversed(chain[: 1 + _MOST_CALLERS]):
        found = replace(span, caller=found)
    return found


def _encloses(outer: SourceSpan, inner: SourceSpan) -> bool:
    """Whether one expression is part of another, as an element is of a comprehension."""
    if outer.file != inner.file or outer.end_line is None or outer.end_column is None:
        return False
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (inner.line, inner.column) <= end
