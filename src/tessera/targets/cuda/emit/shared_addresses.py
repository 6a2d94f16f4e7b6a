"""Where elements of a tile in shared memory lie, for threads whose coordinates are a base and a constant.

Within a panel, a chunk's number is xored with a number that follows from the row and comes round every eight rows.
What a thread owes to its number is computed once. Constants that do not touch the bits that swizzling moves go into
the instruction; those that move whole chunks are one xor, since tiles begin on multiples of 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessera.targets.cuda.emit.emitter import Emitter, Shared
from tessera.targets.cuda.ir.layouts import Digit, Layout
from tessera.targets.cuda.ir.types import CHUNK
from tessera.targets.llvm.text import Value

SWIZZLE_ROWS = 8
"""Rows after which swizzling repeats."""


class Addresses:
    """The addresses in one tile that the threads of a block reach, each by its number's digits.

    Axis 0 of the digits are rows of shared memory, axis 1 columns. `width` bytes are read or written at a time. Those
    beyond the tile are moved to its edge: what is found there is not used.
    """

    def __init__(self, emitter: Emitter, shared: Shared, digits: Sequence[Digit], width: int) -> None:
        self.emitter, self.shared, self.digits, self.width = emitter, shared, tuple(digits), width
        self._item, self._panel = shared.type.itemsize, shared.type.panel.data
        self._layout = layout = Layout(self.digits, ())
        self._row_reach, self._reach = layout.reach(0), layout.reach(1) * self._item
        self._bits = _bits(self.digits, self._item)
        self._swizzle_varies = any(digit.axis == 0 and digit.step % SWIZZLE_ROWS for digit in self.digits)
        self._bases: tuple[Value, Value] | None = None
        self._known: dict[tuple[int, int], Value] = {}

    def at(self, row: int, column: int) -> tuple[Value, int]:
        """The address of the element that lies so many rows and columns behind the thread's own, and bytes to add."""
        shared, left = self.shared.type, column * self._item
        if self._row_reach + row >= shared.rows or self._reach + left + self.width > shared.panels * self._panel:
            return self._at_the_edge(row, left), 0
        low_row, low = row % SWIZZLE_ROWS, left % self._panel
        constant = (row - low_row) * self._panel + (left - low) // self._panel * shared.panel_bytes
        if not self._swizzle_varies:
            # The swizzle is the same for all threads, and is xored with chunks as columns are.
            moved = low ^ (shared.swizzle(low_row) * CHUNK)
            if self._splits(low):
                return self._xored(0, moved), constant + low_row * self._panel
        elif self._splits(low):
            return self._xored(low_row, low), constant
        return self._whole(low_row, low), constant

    def _splits(self, low: int) -> bool:
        """Whether a constant and the bytes that a thread owes to its number have no bits in common."""
        return low & self._bits == 0

    def _xored(self, row: int, moved: int) -> Value:
        first = self._whole(row, 0)
        if moved == 0:
            return first
        if (row, -moved) not in self._known:
            self._known[row, -moved] = self.emitter.f.binary("xor", first, moved)
        return self._known[row, -moved]

    def _whole(self, row: int, low: int) -> Value:
        if (row, low) not in self._known:
            rows, lefts = self._coordinates()
            f = self.emitter.f
            self._known[row, low] = self._address(f.add(rows, row), f.add(lefts, low), self._reach + low)
        return self._known[row, low]

    def _at_the_edge(self, row: int, left: int) -> Value:
        f, shared = self.emitter.f, self.shared.type
        rows, lefts = self._coordinates()
        wide = shared.panels * self._panel
        row_ = f.intrinsic("umin", f.add(rows, row), shared.rows - 1)
        left_ = f.intrinsic("umin", f.add(lefts, left), wide - self.width)
        return self._address(row_, left_, wide)

    def _coordinates(self) -> tuple[Value, Value]:
        """The thread's row, and its column in bytes."""
        if self._bases is None:
            columns = self.emitter.thread_part(self._layout, 1)
            lefts = self.emitter.f.times(columns, self._item) if columns.name != "0" else columns
            self._bases = self.emitter.thread_part(self._layout, 0), lefts
        return self._bases

    def _address(self, row: Value, left: Value, reach: int) -> Value:
        return swizzled_address(self.emitter, self.shared, row, left, reach)


def swizzled_address(emitter: Emitter, shared: Shared, row: Value, left: Value, reach: int) -> Value:
    """The address of a row and of a byte in it, of which it is known that it is not behind `reach`.

    What slot of a ring it is comes last: all else stays the same in all iterations of a loop.
    """
    f, panel = emitter.f, shared.type.panel.data
    down = f.times(row, panel)
    found = down
    if reach >= panel:
        number_ = f.binary("lshr", left, panel.bit_length() - 1)
        found = f.binary("add", found, f.times(number_, shared.type.panel_bytes))
        left = f.binary("and", left, panel - 1)
    if panel > CHUNK:
        swizzle = f.binary("and", f.binary("lshr", down, 3), panel - CHUNK)
        left = f.binary("xor", left, swizzle)
    return f.binary("add", shared.address, f.binary("add", found, left))


def _bits(digits: Sequence[Digit], itemsize: int) -> int:
    """The bits that may be set in a thread's column, in bytes; all up to the highest one where sums may carry."""
    found = reach = 0
    plain = True
    for digit in digits:
        if digit.axis == 1:
            part = (digit.size - 1) * digit.step * itemsize
            whole = digit.size & (digit.size - 1) == 0 and digit.step * itemsize & (digit.step * itemsize - 1) == 0
            plain = plain and whole and found & part == 0
            found, reach = found | part, reach + part
    return found if plain else (1 << reach.bit_length()) - 1
