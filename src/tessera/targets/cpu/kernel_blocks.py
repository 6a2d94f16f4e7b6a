"""Blocks that are worth trying for kernels on CPUs, where a kernel leaves its block open.

They follow what `region_blocks.py` has for regions: a block has as many rows as fill register tiles and the matrix
unit, and as many columns as go through the second cache together. Which is best depends on the kernel; whoever can
measure tries some. The first are those that were best for attention on AVX-512, on the matrix unit and on Neon.
"""

from __future__ import annotations

from tessera.dtypes.types import DType

_BY_VECTORS = ((64, 256), (24, 256), (24, 512))
_BY_MATRIX_UNIT = ((64, 256), (32, 512), (32, 256))
LEAST_ROWS, LEAST_COLUMNS = 8, 16


def blocks_for(dtype: DType, level: str, rows: int, columns: int) -> list[tuple[int, int]]:
    """Blocks of rows and columns for arrays of such elements, not larger than there is work; best guess first."""
    blocks = _BY_MATRIX_UNIT if level == "amx" and dtype.bits <= 16 else _BY_VECTORS
    fitting = [(_fitting(m, rows, LEAST_ROWS), _fitting(n, columns, LEAST_COLUMNS)) for m, n in blocks]
    return list(dict.fromkeys(fitting))


def _fitting(wanted: int, size: int, step: int) -> int:
    """No more than there are, in whole steps."""
    return min(wanted, max(step, -(-size // step) * step))
