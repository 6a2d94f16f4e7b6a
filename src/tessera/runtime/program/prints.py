"""Buffers for what kernels print, on the host: made in front of a launch; read and shown when it is over."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from tessera import knobs
from tessera.compiler.launch_plan import Plan
from tessera.compiler.print_records import HEAD, WORD, RecordLayout
from tessera.interpreters.core.printing import PrintRecord, show, write_out
from tessera.runtime.device.memory import Array, aligned_empty, data_address
from tessera.runtime.native.launch import Launch

Write = Callable[[str], object]

_HEAD = struct.Struct("<4q")


def buffer_size() -> int:
    """How many bytes a buffer has, by the knob."""
    return HEAD + knobs.print_buffer.value


def empty_head(size: int) -> bytes:
    """The first bytes of a buffer of so many bytes in which no record is yet."""
    return _HEAD.pack(HEAD, 0, 0, size)


def used(head: bytes) -> int:
    """How many bytes of a buffer are used, by its first bytes; 0 where there is nothing to show."""
    end, written, lost, size = _HEAD.unpack_from(head)
    return min(end, size) if written or lost else 0


def show_records(plan: Plan, buffer: memoryview, write: Write = write_out) -> None:
    """Prints the records in a buffer, in the order of program instances, and how many others there would have been."""
    head: tuple[int, ...] = _HEAD.unpack_from(buffer)
    _, written, lost, size = head
    axes, at, records = len(plan.grid), HEAD, list[PrintRecord]()
    layouts = [RecordLayout.of(axes, one.values) for one in plan.prints]
    for _ in range(written):
        words: tuple[int, ...] = struct.unpack_from(f"<{1 + axes}q", buffer, at)
        site, *program = words
        one, layout = plan.prints[site], layouts[site]
        values = [
            np.ndarray(shape, dtype.storage, buffer, at + offset)
            for (dtype, shape), offset in zip(one.values, layout.offsets, strict=True)
        ]
        records.append(PrintRecord(tuple(program), one.label, values))
        at += layout.size
    show(records, write)
    if lost:
        room = size - HEAD
        write(f"… {lost:,} more records of {plan.name} in {room:,} bytes: raise {knobs.print_buffer.variable}\n")


def printing(plan: Plan, start: Launch, write: Write = write_out) -> Launch:
    """A launch on the host with a buffer for what it prints, which is shown before it returns."""

    def run(*values: object) -> int | tuple[int, ...]:
        size = buffer_size()
        buffer: Array = aligned_empty((size,), np.dtype(np.uint8))
        buffer[:HEAD] = np.frombuffer(empty_head(size), np.uint8)
        status = start(*values, data_address(buffer))
        show_records(plan, buffer.data, write)
        return status

    return run


assert _HEAD.size == HEAD == 4 * WORD
