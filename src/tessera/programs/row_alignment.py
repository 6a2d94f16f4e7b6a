"""Which arrays of a launch have rows that begin at multiples of 16 bytes, as code for them may depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from tessera.programs.buffer_assignment import (
    ARGUMENT,
    VARIABLE,
    Act,
    BufferAssignment,
    BufferSlice,
    Choose,
    KernelLaunch,
    Repeat,
)
from tessera.runtime.device.memory import ALIGNMENT

_LINE = 16
_FAR = 1 << 31


@dataclass(frozen=True)
class RowAlignment:
    """The alignment of all arrays of a program, from that of its arguments."""

    buffers: BufferAssignment
    alignments: Sequence[int]
    """Of the addresses of arguments, in bytes."""

    def lines(self, run: KernelLaunch) -> tuple[bool, ...]:
        """Whether each argument of a launch is an array whose rows are aligned well."""
        return tuple(isinstance(one, BufferSlice) and self._is_row_aligned(one) for one in run.operands)

    def _is_row_aligned(self, buffer: BufferSlice) -> bool:
        """As tile/calls/arguments.py says it of tensors."""
        if not buffer.shape or buffer.strides[-1] != 1 or self._alignment(buffer.piece, set()) % _LINE:
            return False
        itemsize = buffer.dtype.storage.itemsize
        steps = [abs(step * itemsize) for step in (*buffer.strides[:-1], buffer.shape[-1])]
        return buffer.offset % _LINE == 0 and not any(step % _LINE or step >= _FAR for step in steps)

    def _alignment(self, number: int, seen: set[int]) -> int:
        piece = self.buffers.pieces[number]
        if piece.kind == ARGUMENT:
            return self.alignments[piece.number]
        if piece.kind != VARIABLE or number in seen:
            return ALIGNMENT
        found = min((self._alignment(one, seen | {number}) for one in piece.behind), default=ALIGNMENT)
        return gcd(found, piece.grain)


def launches_in(acts: Sequence[Act]) -> Iterator[KernelLaunch]:
    """All launches among acts, those inside of branches and loops too."""
    for act in acts:
        if isinstance(act, KernelLaunch):
            yield act
        elif isinstance(act, Choose):
            yield from launches_in((*act.first, *act.second))
        elif isinstance(act, Repeat):
            yield from launches_in((*act.check, *act.body))
