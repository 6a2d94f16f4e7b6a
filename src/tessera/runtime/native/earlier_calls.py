"""Calls like earlier ones, passed on by machine code (`earlier_calls.ll`): arguments are compared by what they have.

It takes calls with a fixed number of arguments by position, all objects of one class with slots. In one of these they
have what is compared, by identity. All other calls go to a function that takes any.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from tessera.runtime.native import code, objects


class EarlierCall(NamedTuple):
    """An earlier call. Equal ones are run by `run`, then by `finish`, or give the first result if that is "item"."""

    settings: object
    keys: Sequence[object]
    run: Callable[..., Any]
    finish: Callable[[Any], Any] | str | None
    unchanged: Callable[[], bool] | None


class Asked(NamedTuple):
    """Further conditions of a call: a variable that must have a value, settings, and whether an entry still holds."""

    variable: ContextVar[Any]
    value: object
    settings: Callable[[], object]
    holds: Callable[[Any], bool]


def is_possible() -> bool:
    """Whether there is such code here, and it is loaded."""
    return code.is_loaded() and objects.are_known()


def front(
    otherwise: Callable[..., Any], count: int, kind: type, slot: int, asked: Asked, entries: Sequence[EarlierCall]
) -> Callable[..., Any]:
    """A function for calls like these entries, of arguments of a class that are compared by a slot of theirs."""
    head = (id(otherwise), count, id(kind), slot, *map(id, asked), id(True), len(entries))
    words = [*head]
    for one in entries:
        mode = 0 if one.finish is None else 1 if one.finish == "item" else 2
        check = 0 if one.unchanged is None else id(one.unchanged)
        words += [id(one.settings), id(one.run), check, mode, id(one.finish), *map(id, one.keys)]
    record = struct.pack(f"<{len(words)}Q", *words)
    keep = (otherwise, kind, asked, tuple(entries))
    return objects.built_in("call", code.address("match"), record, keep, names=True)
