"""Sequences: several kernels launched one after the other by one call, from addresses that all of them share.

`sequence.ll` is a kernel like any other to the entry that Python calls; what it runs is in a table packed here. A call
gives values: arrays, addresses and numbers, each into a word. Every launch has a template of its args block, and
fields: which words of the values, and how many bytes after them, go where in it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import NamedTuple

from tessera.errors import CompileError
from tessera.targets.cpu import launch, pool

_FIRST_VALUE = launch.FIRST_SLOT + 1  # the word before it holds the table
_STEP = struct.Struct("<QqqQqqQ")
_FIELD = struct.Struct("<qqq")


class Field(NamedTuple):
    """A word of a launch: `value` of the call's values, `added` bytes further on, at byte `place` of the args block."""

    place: int
    value: int
    added: int = 0


class Step(NamedTuple):
    """One launch of a sequence; `template` begins with the zeros that launches need."""

    kernel: int
    template: bytes
    fields: tuple[Field, ...]
    scratch: int
    threads: int


def make(steps: Sequence[Step], kinds: Sequence[str], *, keep: object = None) -> launch.Launch:
    """A callable of values of these kinds that runs all steps, until one fails.

    It returns 0, or the status of the launch that failed, its number, and what it says of that in five words. It keeps
    `keep` alive: the images that the kernels are in.
    """
    if len(kinds) > launch.LARGEST_BLOCK // launch.WORD - _FIRST_VALUE:
        raise CompileError(f"a program takes at most {launch.LARGEST_BLOCK // launch.WORD - _FIRST_VALUE} values")
    packed = _packed(steps)
    head = bytes(launch.WORD * launch.FIRST_SLOT) + struct.pack("<Q", ctypes.addressof(packed))
    template = head + bytes(launch.WORD * len(kinds))
    arguments = [(kind, _FIRST_VALUE + place) for place, kind in enumerate(kinds)]
    entry = pool.start().image.address("sequence")
    return launch.make(entry, template, arguments, 0, 1, keep=(packed, keep))


def _packed(steps: Sequence[Step]) -> ctypes.Array[ctypes.c_char]:
    """The table of a sequence in memory, and behind it what it points to: one piece, for there are many sequences."""
    head = struct.calcsize("<qq") + _STEP.size * len(steps)
    largest = launch.WORD * launch.FIRST_SLOT
    parts: list[bytes] = []
    rows: list[tuple[int, ...]] = []
    end = head
    for step in steps:
        if len(step.template) > launch.LARGEST_BLOCK:
            raise CompileError(f"an args block of {len(step.template)} bytes is too large for a launch")
        fields = b"".join([_FIELD.pack(place, _FIRST_VALUE + value, added) for place, value, added in step.fields])
        largest = max(largest, len(step.template))
        template_at, fields_at = end, end + len(step.template)
        end = fields_at + len(fields)
        parts += [step.template, fields]
        rows.append(
            (step.kernel, step.threads, step.scratch, template_at, len(step.template), len(step.fields), fields_at)
        )
    memory = ctypes.create_string_buffer(end)
    base = ctypes.addressof(memory)
    table = [
        _STEP.pack(kernel, threads, scratch, base + template_at, nbytes, count, base + fields_at)
        for kernel, threads, scratch, template_at, nbytes, count, fields_at in rows
    ]
    memory[:end] = b"".join([struct.pack("<qq", len(steps), largest), *table, *parts])
    return memory
