"""What a kernel asks of the way to memory: hints on loads, stores and functions, which change no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

SMEM, REGISTERS = "smem", "registers"
XOR, IN_ORDER = "xor", "none"
WORDS: Mapping[str, tuple[str, ...]] = {"memory": (SMEM, REGISTERS), "swizzle": (IN_ORDER, XOR)}
"""The hints that are one of some words; the others are numbers from 1 on."""


class Hints(NamedTuple):
    """Hints of an op; None is none."""

    memory: str | None = None
    """Where a tile that is loaded lies on a GPU: shared memory or registers."""
    vector: int | None = None
    """How many neighbours along the last axis a thread of a GPU has."""
    prefetch: int | None = None
    """How many iterations a load runs ahead of its loop."""
    swizzle: str | None = None
    """Whether chunks of tiles in shared memory change places from row to row; a hint of functions."""

    def said(self) -> Iterator[tuple[str, str | int]]:
        """The hints that there are."""
        return ((name, value) for name, value in self._asdict().items() if value is not None)


NO_HINTS = Hints()
