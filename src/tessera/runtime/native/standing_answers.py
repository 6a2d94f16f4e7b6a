"""Answers that hold while nothing has changed: given by machine code (`standing_answers.ll`), or worked out anew.

What they depend on: context variables, the first item of a list, and a dictionary. CPython counts the changes of a
dictionary in a word of it, up to version 3.13; it is looked at first whether it does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from tessera.runtime.native import code, objects

_HEAD = struct.Struct("<QQQQQQq")
_PAIR = struct.Struct("<QQ")


def is_possible(mapping: Mapping[Any, Any]) -> bool:
    """Whether there is such code here, it is loaded, and the mapping is a dictionary whose changes are counted."""
    return mapping.__class__ is dict and code.is_loaded() and objects.are_known() and counts_changes()


@cache
def counts_changes() -> bool:
    """Whether that word of a dictionary changes with everything that is done to it, and with nothing else."""
    seen: dict[bytes, object] = {}
    versions: list[int] = [_version(seen)]
    for value in (b"1", b"2", b"2 ", None):
        if value is None:
            del seen[b"one"]
        else:
            seen[b"one"] = value
        versions.append(_version(seen))
        if seen.get(b"one") != value or seen.get(b"two") is not None or _version(seen) != versions[-1]:
            return False
    return len(set(versions)) == len(versions)


def _version(found: Any) -> int:
    return objects.word(id(found) + objects.DICTIONARY_VERSION_AT)


class StandingAnswer:
    """`ask()` gives an answer, which `anew` works out where something may have changed since.

    `anew` also says whether its answer is to be given again while all is as it is now.
    """

    def __init__(
        self,
        anew: Callable[[], tuple[Any, bool]],
        variables: Sequence[ContextVar[Any]],
        listed: list[Any],
        mapping: Mapping[Any, Any],
    ) -> None:
        self._anew, self._variables, self._listed, self._mapping = anew, variables, listed, mapping
        self._words = bytearray(_HEAD.size + _PAIR.size * len(variables))
        self._otherwise = self._asked_anew
        self._held: tuple[Any, ...] = ()
        self._writing = Lock()
        self._write(0, None, None, [None] * len(variables))  # no dictionary has version 0
        self.ask = objects.built_in("ask", code.address("unchanged"), self._words, self, takes=False)

    def _asked_anew(self) -> Any:
        # What changes from here on is noticed by the next call.
        version, item, values = _version(self._mapping), self._listed[0], [one.get() for one in self._variables]
        answer, again = self._anew()
        if again:
            self._write(version, item, answer, values)
        return answer

    def _write(self, version: int, item: Any, answer: Any, values: Sequence[Any]) -> None:
        # Words and what is held for them belong together. A thread that finds another at it leaves it at that; so
        # does a process that was forked meanwhile.
        if not self._writing.acquire(blocking=False):
            return
        try:
            head = (id(self._otherwise), id(answer), id(self._mapping) + objects.DICTIONARY_VERSION_AT, version)
            pairs = [id(one) for pair in zip(self._variables, values, strict=True) for one in pair]
            words = _HEAD.pack(*head, id(self._listed), id(item), len(values)) + struct.pack(f"<{len(pairs)}Q", *pairs)
            before, self._held = self._held, (item, answer, *values)
            self._words[:] = words
            del before  # not sooner: until now the words were of these
        finally:
            self._writing.release()
