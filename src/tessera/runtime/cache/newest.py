"""Dictionaries that keep the newest of what is put into them, for threads that do so at once."""

from __future__ import annotations

from typing import Any


def shorten(known: dict[Any, Any], most: int) -> None:
    """Forgets the oldest, where there are too many; threads and finalizers may add and forget meanwhile."""
    if len(known) > most:
        for old in list(known)[:-most]:
            known.pop(old, None)
