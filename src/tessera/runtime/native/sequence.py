"""Sequences: several kernels launched one after the other by one call, from addresses that all of them share.

`sequence.ll` is a kernel like any other to the entry that Python calls; what it runs is in a table packed here. A call
gives values: arrays, addresses and numbers, each into a word. Every launch has a template of its args block, and
fields: which words of the values, and how many bytes after them, go where in it. Numbers in it may be tracked: then the
sequence is made when the code of their trail runs, of a copy of all that is known.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

from tessera.errors import CompileError
from tessera.runtime.native import launch, pool
from tessera.shapes.tracked import is_tracked, made, plain

_FIRST_VALUE = launch.FIRST_SLOT + 1  # the word before it holds the table
_STEP = struct.Struct("<Q6q")
_FIELD = struct.Struct("<qqq")


class Field(NamedTuple):
    """A word of a launch, at byte `offset` of the args block: value `value` of the call, `added` bytes further on."""

    offset: int
    value: int
    added: int = 0


class Step(NamedTuple):
    """One launch of a sequence; `template` begins with the zeros that launches need.

    `open` are words of the template whose numbers are tracked: at which byte, and the number.
    """

    kernel: int
    template: bytes
    fields: tuple[Field, ...]
    scratch: int
    threads: int
    open: tuple[tuple[int, int], ...] = ()


def make(steps: Sequence[Step], kinds: Sequence[str], *, keep: object = None) -> launch.Launch:
    """A callable of values of these kinds that runs all steps, until one fails.

    It returns 0, or the status of the launch that failed, its number, and what it says of that in five words. It keeps
    `keep` alive: the images that the kernels are in.
    """
    if len(kinds) > launch.LARGEST_BLOCK // launch.WORD - _FIRST_VALUE:
        raise CompileError(f"a program takes at most {launch.LARGEST_BLOCK // launch.WORD - _FIRST_VALUE} values")
    table = Table(steps, kinds, keep)
    return made(table.launch, *table.numbers)


class Table:
    """The table of a sequence, and behind it what it points to: one piece of words, for there are many sequences."""

    def __init__(self, steps: Sequence[Step], kinds: Sequence[str], keep: object) -> None:
        self._keep = keep
        self._opened: list[tuple[int, int]] = []
        content = self._packed(steps)
        self._opened.sort(key=operator.itemgetter(0))
        self.numbers = [number for _, number in self._opened]
        """Those that are tracked, in the order of their offsets."""
        self._prepare(content)
        self._head = bytes(launch.WORD * launch.FIRST_SLOT)
        self._rest = bytes(launch.WORD * len(kinds))
        arguments = [(kind, _FIRST_VALUE + index) for index, kind in enumerate(kinds)]
        example = self._head + bytes(launch.WORD) + self._rest
        self._made = launch.maker(pool.start().image.address("sequence"), example, arguments, 0, 1)

    def launch(self, *numbers: int) -> launch.Launch:
        """The callable, with these numbers."""
        memory = self.filled(numbers)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return self._made(self._head + base.to_bytes(launch.WORD, "little") + self._rest, (memory, self._keep))

    def filled(self, numbers: Sequence[int]) -> bytearray:
        """The table with these numbers.

        All words at once: of a hundred that change each would take Python as long as all of them do so.
        """
        parts = self._parts.copy()
        parts[1::2] = numbers
        return bytearray(self._words.pack(*parts))

    def _prepare(self, content: bytes) -> None:
        """The bytes between the words that change."""
        self._parts: list[bytes | int] = []
        form, end = ["<"], 0
        for at, _ in self._opened:
            form.append(f"{at - end}sq")
            self._parts += [content[end:at], 0]
            end = at + launch.WORD
        form.append(f"{len(content) - end}s")
        self._parts.append(content[end:])
        self._words = struct.Struct("".join(form))

    def _packed(self, steps: Sequence[Step]) -> bytes:
        end = struct.calcsize("<qq") + _STEP.size * len(steps)
        largest = launch.WORD * launch.FIRST_SLOT
        rows: list[bytes] = []
        parts: list[bytes] = []
        for number, step in enumerate(steps):
            nbytes = len(step.template)
            if nbytes > launch.LARGEST_BLOCK:
                raise CompileError(f"an args block of {nbytes} bytes is too large for a launch")
            largest = max(largest, nbytes)
            row = struct.calcsize("<qq") + _STEP.size * number
            fields_at = end + nbytes + -nbytes % launch.WORD
            for offset, found in step.open:
                self._open(end + offset, found)
            self._open(row + 2 * launch.WORD, step.scratch)
            self._open(row + launch.WORD, step.threads)
            fields: list[bytes] = []
            for offset, value, added in step.fields:
                self._open(fields_at + _FIELD.size * len(fields) + 2 * launch.WORD, added)
                fields.append(_FIELD.pack(offset, _FIRST_VALUE + value, plain(added)))
            rows.append(
                _STEP.pack(
                    step.kernel, plain(step.threads), plain(step.scratch), end, nbytes, len(step.fields), fields_at
                )
            )
            parts += [step.template, bytes(-nbytes % launch.WORD), *fields]
            end = fields_at + _FIELD.size * len(fields)
        return b"".join([struct.pack("<qq", len(steps), largest), *rows, *parts])

    def _open(self, offset: int, number: int) -> None:
        if is_tracked(number):
            self._opened.append((offset, number))
