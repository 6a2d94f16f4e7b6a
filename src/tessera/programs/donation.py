"""Arguments that are given away: which results may have their memory.

A result may if it is as large, about, and is first written when the argument has been read for the last time: by an
earlier act, or by the same launch, where that reads each element only where it writes it. Whether nothing else looks at
the memory, each call sees for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tessera.programs import host
from tessera.programs.buffer_assignment import BufferAssignment, BufferSlice, KernelLaunch, Move
from tessera.programs.memory_plan import Lives, lives_of


def donors(
    buffers: BufferAssignment,
    kernels: Sequence[host.Kernel],
    donated: Collection[int],
    alignments: Sequence[int],
    wanted: int,
) -> dict[int, int]:
    """Pieces of results, and the number of the argument whose memory each may have.

    `alignments` are those of arguments in bytes, `wanted` is that of results.
    """
    free = {
        number: buffer
        for number in donated
        if isinstance(buffer := buffers.arguments[number], BufferSlice)
        and buffer.is_plain
        and alignments[number] >= wanted
    }
    if not free:
        return {}
    lives, found = lives_of(buffers), dict[int, int]()
    for result in sorted(buffers.results, key=lambda buffer: -buffer.nbytes):
        fitting = [
            number
            for number, buffer in free.items()
            if buffer.nbytes // 2 < result.nbytes <= buffer.nbytes and _is_free(result, buffer, lives, kernels)
        ]
        if fitting and result.piece not in found:
            found[result.piece] = min(fitting, key=lambda number: (free[number].nbytes, number))
            del free[found[result.piece]]
    return found


def _is_free(result: BufferSlice, argument: BufferSlice, lives: Lives, kernels: Sequence[host.Kernel]) -> bool:
    first, last = lives.written[result.piece], lives.read[argument.piece]
    if last != first:
        return last < first
    act = lives.acts[first]
    if isinstance(act, Move):
        # What a kernel updates afterwards: copied onto itself.
        same = act.target.piece == result.piece and act.source == argument
        return same and act.target.is_plain and act.target.nbytes == argument.nbytes
    if not isinstance(act, KernelLaunch) or act.outputs != 1 or act.operands[-1] != result:
        return False
    same = (argument.shape, argument.dtype.storage.itemsize) == (result.shape, result.dtype.storage.itemsize)
    reading = [
        number
        for number, one in enumerate(act.operands[:-1])
        if isinstance(one, BufferSlice) and one.piece == argument.piece
    ]
    allowed = kernels[act.kernel].in_place
    return same and all(number in allowed and act.operands[number] == argument for number in reading)
