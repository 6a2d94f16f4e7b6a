"""Blocks for kernels on CPUs, where a kernel leaves its block open: ranked by a model of registers, caches and threads.

The model is of a program instance that goes through columns, a block of them at a time: scores by a dot over the
width, work on each element, another dot into accumulators of that width, and some work on each row for each block.
Its clocks are those of

- dots, at the rate of fused steps in register tiles or of the matrix unit; a group of few rows waits for accumulators;
- elements, vector by vector, with the time to fetch them where the scores of a group do not stay in the first
  cache;
- rows: reductions, and accumulators that are fetched, scaled and put back, once for each block of columns;
- right operands, for each program instance anew where those of all columns do not stay in the second cache.

Threads share program instances; at the end some are idle. Tuners measure the first few: the model is off by a few parts
in a hundred, and kernels differ. docs/cpu.md has the measurements that it was compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tessera.dtypes.types import DType
from tessera.runtime.native import pool
from tessera.targets.cpu import features
from tessera.targets.cpu.features import TILE_ROWS
from tessera.targets.llvm.elements import is_arm

ROWS = (24, 32, 48, 64, 96, 128, 192, 256)
COLUMNS = (64, 128, 192, 256, 384, 512, 768, 1024)
LEAST_ROWS, LEAST_COLUMNS = 8, 16
REFERENCE = (128, 128)
"""The reference block, which is always tried."""
_LARGEST = 1 << 16
"""Elements of a block: more would not stay in any near cache."""

# Clocks, as a Neoverse N1 and a Xeon of the fifth generation have them.
FUSED = 2
"""Fused multiplications and additions of vectors in a clock."""
LATENCY = 4
"""Clocks until the result of such a step is there."""
ELEMENT = 18.0
"""Work on a vector of elements: a mask, a maximum, an exponential, a sum."""
ROW = 2.0
"""Work on one row for each block of columns."""
GROUP = 126.0
"""Beginning and ending the phases of a group of rows."""
SUMS = 2.75
"""A vector of accumulators that is fetched, scaled and put back."""
MATRIX = 266.0
"""Operations of the matrix unit in a clock, with its operands fetched."""
STRIP = 0.57
"""The time of a strip of half the rows over that of a whole one: the right operand is fetched for it as well."""
MASKED = 0.25
"""Columns for each row that are computed although a mask leaves them out: half of a block's, in half of all kernels."""
PROGRAM = 300.0
"""Beginning and ending a program instance."""
AWAY = 0.5
"""Additional clocks of a vector of elements where the scores are not in the first cache."""
NEAR, FAR = 128.0, 4.5
"""Bytes in a clock from the second cache, and from beyond it."""


@dataclass(frozen=True)
class Work:
    """The arguments of a kernel: so many rows and columns of this width, so many times."""

    rows: int
    columns: int
    width: int
    batch: int
    dtype: DType


@dataclass(frozen=True)
class Processor:
    """A processor as the model sees it: sizes of the first two caches in bytes, and threads."""

    level: str
    first: int
    second: int
    threads: int

    @staticmethod
    def here(level: str) -> Processor:
        """This host's, at one of its levels."""
        return Processor(level, *features.caches(), pool.threads())

    @property
    def lanes(self) -> int:
        return features.lanes(self.level, 32)

    @property
    def vectors(self) -> int:
        """Vectors of accumulators in a row of a register tile; `blocking.py` has tiles of as many."""
        return 4 if self.lanes >= 16 or is_arm(self.level) else 2

    @property
    def group(self) -> int:
        """Rows of a register tile."""
        registers = 32 if self.vectors == 4 else 16
        return (registers - 1 - self.vectors) // self.vectors

    def has_matrix_unit(self, dtype: DType) -> bool:
        return features.has_matrix_unit(self.level) and dtype.bits <= 16


def blocks_for(work: Work, processor: Processor, most: int = 3) -> list[tuple[int, int]]:
    """Blocks of rows and columns, not larger than there is work, the best first by the model."""
    heights = {_fitting(rows, work.rows, LEAST_ROWS) for rows in ROWS}
    widths = {_fitting(columns, work.columns, LEAST_COLUMNS) for columns in COLUMNS}
    blocks = [(rows, columns) for rows, columns in product(heights, widths) if rows * columns <= _LARGEST]
    return sorted(blocks, key=lambda block: (clocks(work, block, processor), block))[:most]


def clocks(work: Work, block: tuple[int, int], processor: Processor) -> float:
    """Clocks until all program instances are done, on average over the threads."""
    rows, columns = block
    whole, rest = divmod(work.rows, rows)
    one = sum(count * _program(work, height, columns, processor) for count, height in ((whole, rows), (1, rest)))
    programs = max(1, work.batch * (whole + (rest > 0)))
    # Equal program instances leave threads idle in the last round. Else the last thread is half an instance behind.
    rounds = -(-programs // processor.threads)
    idle = (processor.threads - 1) / (2 * programs) if rest else rounds * processor.threads / programs - 1
    return work.batch * one / processor.threads * (1 + idle)


def _program(work: Work, rows: int, columns: int, processor: Processor) -> float:
    """Clocks of one program instance with so many rows."""
    if rows == 0:
        return 0.0
    lanes, item = processor.lanes, work.dtype.storage.itemsize
    iterations = -(-work.columns // columns)
    if processor.has_matrix_unit(work.dtype):
        # The scores of all rows lie in memory, and the weights in few bits.
        strips = rows // (2 * TILE_ROWS) + (rows % (2 * TILE_ROWS) > 0) * (1.0 if rows % 32 > TILE_ROWS else STRIP)
        # Masks leave out columns for all rows of the block.
        seen = work.columns + MASKED * rows
        products = 4.0 * 2 * TILE_ROWS * strips * seen * work.width / MATRIX
        scores, groups = rows * columns * (4 + item), -(-rows // 4)
        operand = item
    else:
        whole, rest = divmod(rows, processor.group)
        steps = 2.0 * work.columns * work.width / (processor.vectors * lanes)
        heights = [processor.group] * whole + [rest] * (rest > 0)
        products = steps * sum(max(height * processor.vectors / FUSED, LATENCY) for height in heights)
        scores, groups = processor.group * columns * 8, len(heights)
        operand = 4
        seen = work.columns
    elements = rows * seen * (ELEMENT / lanes)
    if scores > processor.first * 3 / 4:
        elements += rows * seen * AWAY / lanes
    ends = iterations * (rows * (ROW + work.width / lanes * SUMS) + groups * GROUP)
    right = 2.0 * work.columns * work.width * operand
    return PROGRAM + products + elements + ends + right / (NEAR if right <= processor.second / 2 else FAR)


def _fitting(wanted: int, size: int, step: int) -> int:
    """No more than there are, in whole steps."""
    return min(wanted, max(step, -(-size // step) * step))
