"""nv level → LLVM text, sm_90a: tiles of 8 bits that change from rows to columns within shared memory.

A warp reads 32 rows of 16 bytes as four matrices of pairs of bytes, transposed: a thread then has, of two columns, two
rows of each matrix. Two permutations of bytes put together what belongs to each column, and four matrices go out, which
are 16 rows of 32 bytes. The order of the rows in which matrices are read is that of the columns to come. Threads of the
upper half give their columns the other way round: so the rows of a matrix that goes out meet all banks.
"""

from __future__ import annotations

from collections.abc import Iterator

from tessera.targets.cuda.emit.emitter import Emitter, Shared, emits
from tessera.targets.cuda.emit.hopper import do
from tessera.targets.cuda.ir import hopper_transpose
from tessera.targets.cuda.ptx.inline import asm, one
from tessera.targets.llvm.text import Value, number

WARPS = 4
AT_ONCE = 2
"""Pieces that a warp reads before it writes them: each is four registers."""
_BYTES = (0x6420, 0x7531)
"""Which bytes of two words are the first column's, and the second's: of its four rows, two are in each word."""
_CROSSED = (0x2064, 0x3175)
"""The same where the second word has the first two rows."""


@emits(hopper_transpose.TransposeSmemOp)
def _transpose_smem(emitter: Emitter, op: hopper_transpose.TransposeSmemOp) -> None:
    source, target = emitter.memory(op.shared), emitter.memory(op.transposed)
    transposing = _Transposing(emitter, source, target)
    everything = list(transposing.pieces())
    for first in range(0, len(everything), AT_ONCE):
        pieces = everything[first : first + AT_ONCE]
        read = [transposing.read(*piece) for piece in pieces]
        for piece, words in zip(pieces, read, strict=True):
            transposing.write(*piece, words)


class _Transposing:
    """Addresses of a thread: parts that stay are computed once, and the rest is in the instructions."""

    def __init__(self, emitter: Emitter, source: Shared, target: Shared) -> None:
        f = emitter.f
        self.emitter = emitter
        self.source = source
        self.target = target
        self.warp = f.binary("and", emitter.warp, WARPS - 1)
        paired = target.type.is_paired
        lane = emitter.lane
        matrix, inside = f.binary("lshr", lane, 3), f.binary("and", lane, 7)
        crossed = f.binary("lshr", inside, 2)
        if paired:
            self.row = lane
        else:
            # A thread's four rows are neighbours: two in one matrix, two in the next, or the other way round.
            second = f.binary("xor", f.binary("and", matrix, 1), crossed)
            start = f.binary("lshr", matrix, 1)
            near = f.binary("add", f.binary("shl", f.binary("lshr", inside, 1), 2), f.binary("and", inside, 1))
            self.row = f.binary("add", f.binary("shl", start, 4), f.binary("add", near, f.binary("shl", second, 1)))
        self.column = f.binary("add", f.binary("shl", inside, 1), f.binary("xor", f.binary("and", matrix, 1), crossed))
        self.half = f.binary("lshr", matrix, 1)
        upper = f.compare("uge", lane, 16)
        crosses = None if paired else f.compare("uge", f.binary("and", lane, 3), 2)
        self.firsts, self.seconds = (self._selector(upper, crosses, index) for index in (0, 1))
        self.sources: dict[int, Value] = {}
        self.targets: dict[int, Value] = {}

    def pieces(self) -> Iterator[tuple[int, int]]:
        """32 rows each, and the 16 columns that a warp has of four times as many."""
        wide = -(-self.source.type.columns // (hopper_transpose.COLUMNS * WARPS))
        for rows in range(self.source.type.rows // hopper_transpose.ROWS):
            for columns in range(wide):
                yield rows, columns

    def read(self, rows: int, columns: int) -> list[Value]:
        further = rows * hopper_transpose.ROWS * self.source.type.panel.data
        return asm(
            self.emitter.f,
            f"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{$0, $1, $2, $3}}, [$4+{further}];",
            returns=["i32"] * 4,
            arguments=[self._source(columns)],
            effects=True,
            convergent=True,
        )

    def write(self, rows: int, columns: int, words: list[Value]) -> None:
        f = self.emitter.f
        found = [
            one(f, "prmt.b32 $0, $1, $2, $3;", "i32", low, high, selector)
            for low, high in (words[:2], words[2:])
            for selector in (self.firsts, self.seconds)
        ]
        address, further = self._target(rows, columns)
        do(
            self.emitter,
            f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0+{further}], {{$1, $2, $3, $4}};",
            address,
            *found,
        )

    def _chunk(self, columns: int) -> Value:
        """The number of the 16 columns: some warps do the last ones again, if there are not enough."""
        f, last = self.emitter.f, self.source.type.columns // hopper_transpose.COLUMNS - 1
        chunk = f.binary("add", self.warp, columns * WARPS)
        return chunk if columns * WARPS + WARPS - 1 <= last else f.intrinsic("umin", chunk, last)

    def _source(self, columns: int) -> Value:
        if columns not in self.sources:
            f, chunk = self.emitter.f, self._chunk(columns)
            swizzled = f.binary("xor", f.binary("and", chunk, 7), f.binary("and", self.row, 7))
            panel = f.binary("mul", f.binary("lshr", chunk, 3), self.source.type.panel_bytes)
            inside = f.binary("add", f.binary("shl", self.row, 7), f.binary("shl", swizzled, 4))
            self.sources[columns] = f.binary("add", self.source.address, f.binary("add", panel, inside))
        return self.sources[columns]

    def _target(self, rows: int, columns: int) -> tuple[Value, int]:
        panel, inside = divmod(2 * rows, 8)
        last = self.source.type.columns // hopper_transpose.COLUMNS - 1
        whole = columns * WARPS + WARPS - 1 <= last
        key = inside if whole else -1 - inside - 8 * columns
        if key not in self.targets:
            # Rows there are columns here; which 16 of them is left to the instruction where all warps have their own.
            f, chunk = self.emitter.f, self.warp if whole else self._chunk(columns)
            row = f.binary("add", f.binary("shl", chunk, 4), self.column)
            swizzled = f.binary("xor", f.binary("add", self.half, inside), f.binary("and", self.column, 7))
            index = f.binary("add", f.binary("shl", row, 7), f.binary("shl", swizzled, 4))
            self.targets[key] = f.binary("add", self.target.address, index)
        further = panel * self.target.type.panel_bytes
        return self.targets[key], further + (columns * WARPS * hopper_transpose.COLUMNS * 128 if whole else 0)

    def _selector(self, upper: Value, crosses: Value | None, index: int) -> Value:
        """The bytes of a thread's first or second column; threads of the upper half have the second one first."""
        f = self.emitter.f
        straight, crossed = (
            f.select(upper, number(kind[1 - index], "i32"), kind[index]) for kind in (_BYTES, _CROSSED)
        )
        return straight if crosses is None else f.select(crosses, crossed, straight)
