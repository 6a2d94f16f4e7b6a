"""Tracebacks of errors that leave the package: the user's frames and the message, without frames of the package.

A public function that people call wraps its work in `try … except Exception as error: trim(error); raise`, which costs
nothing while nothing is raised. A bare `raise` adds no frame, so that the function itself is not shown, either.
`TESSERA_FULL_TRACEBACKS=1` shows everything.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from tessera import knobs
from tessera.errors import TesseraError, is_ours

P = ParamSpec("P")
R = TypeVar("R")

# What the package calls on its way: frames of these are as little of the user's as its own, where it called them.
_LIBRARIES = frozenset({*sys.stdlib_module_names, "llvmlite", "ml_dtypes", "numpy", "optree", "xdsl"}) - {"__main__"}
_NOTE = f"(frames of tessera are left out: {knobs.full_tracebacks.variable}=1 shows them)"


def trim(error: BaseException) -> None:
    """Takes the package's frames out of an error that goes to its user, and out of those that led to it.

    Errors other than the package's own stay as they are where they come out of its code: they are faults, and what they
    are found by.
    """
    if knobs.full_tracebacks.value or not (isinstance(error, TesseraError) or comes_from_outside(error)):
        return
    cut, seen = False, {id(error)}
    one = error
    while True:
        before = one.__traceback__
        one.__traceback__ = after = _of_users(before)
        cut = cut or before is not after
        following = one.__cause__ if one.__suppress_context__ else one.__context__
        if following is None or id(following) in seen:
            break
        seen.add(id(following))
        if one.__cause__ is None and next(_kept(following.__traceback__), None) is None:
            one.__suppress_context__ = True  # it was raised and handled inside
            break
        one = following
    if cut and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def trimmed(function: Callable[P, R]) -> Callable[P, R]:
    """A public function whose errors are shown without the package's frames."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return call


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def comes_from_outside(error: BaseException) -> bool:
    """Whether an error was raised by a user's code: neither by the package, nor by a library that it called."""
    last = next(reversed(list(_frames(error.__traceback__))), None)
    return last is not None and last is next(reversed(list(_kept(error.__traceback__))), None)


def _kept(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The frames that are neither the package's nor those of a library that it called."""
    inside = False
    for one in _frames(trace):
        if is_ours(one.tb_frame):
            inside = True
        elif not (inside and _is_of_library(one.tb_frame)):
            inside = False
            yield one


def _is_of_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES


def _of_users(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are not kept; itself where all are."""
    kept = list(_kept(trace))
    if len(kept) == sum(1 for _ in _frames(trace)):
        return trace
    for one, following in zip_longest(kept, kept[1:]):
        one.tb_next = following
    return kept[0] if kept else None
