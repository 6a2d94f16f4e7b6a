"""Lines that kernels print: their text, and records of them, which are shown behind all program instances."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class PrintRecord(NamedTuple):
    """A print of a program instance: its label, and the values as they are when it is shown."""

    program: tuple[int, ...]
    label: str
    values: Sequence[object]


def printed(program: Sequence[int], label: str, values: Iterable[object]) -> str:
    """The line that a print of a program instance is."""
    return f"{list(program)} {label}{''.join(f' {value}' for value in values)}\n"


def write_out(text: str) -> object:
    """Writes to the standard output, which is looked up at each call: users redirect it."""
    return sys.stdout.write(text)


def show(records: Iterable[PrintRecord], write: Callable[[str], object]) -> None:
    """Prints records by program instances, those of each in their order."""
    for one in sorted(records, key=lambda one: one.program):
        write(printed(*one))
