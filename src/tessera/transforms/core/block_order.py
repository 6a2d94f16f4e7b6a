"""The order of ops in a block, for those who ask while ops are put in and erased: numbers that leave gaps.

Counting from the first op each time would make passes over blocks of n ops take n² steps. An op that is moved inside
of its block has to be told (`moved`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from xdsl.ir import Block, Operation

_GAP = 1 << 32
_NUMBERS: WeakKeyDictionary[Operation, tuple[weakref.ref[Block], int]] = WeakKeyDictionary()


def number_in_block(op: Operation) -> int:
    """A number that is larger than those of the ops in front of it, and smaller than those behind."""
    found = _known(op, op.parent)
    return _numbered(op) if found is None else found


def in_order(ops: Iterable[Operation]) -> list[Operation]:
    """Ops of one block as they stand in it."""
    return sorted(ops, key=number_in_block)


def moved(ops: Iterable[Operation]) -> None:
    """Forgets where ops stood."""
    for op in ops:
        _NUMBERS.pop(op, None)


def _known(op: Operation, block: Block | None) -> int | None:
    found = _NUMBERS.get(op)
    return found[1] if found is not None and block is not None and found[0]() is block else None


def _numbered(op: Operation) -> int:
    """Numbers the ops around one that have none, between those that have."""
    block = op.parent
    assert block is not None, "an op that stands in a block"
    run = [op]
    before = op.prev_op
    while before is not None and _known(before, block) is None:
        run.append(before)
        before = before.prev_op
    run.reverse()
    behind = op.next_op
    while behind is not None and _known(behind, block) is None:
        run.append(behind)
        behind = behind.next_op
    low = 0 if before is None else _known(before, block) or 0
    last = None if behind is None else _known(behind, block)
    if before is None:
        low = _GAP * -len(run) if last is None else last - _GAP * (len(run) + 1)
    step = _GAP if last is None else (last - low) // (len(run) + 1)
    if step > 0:
        _put(run, block, low, step)
    else:
        _put(list(block.ops), block, 0, _GAP)
    found = _known(op, block)
    assert found is not None
    return found


def _put(ops: Sequence[Operation], block: Block, low: int, step: int) -> None:
    around = weakref.ref(block)
    for count, op in enumerate(ops, 1):
        _NUMBERS[op] = around, low + step * count
