"""Limits for fusing kernels of few rows: how much a program instance that multiplies one row holds at once.

Such kernels take about as long as starting one. Where there is more to read, a kernel more does not count, and reading
has to go on while a program instance computes.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, element_count

HELD = 1 << 20
"""Bits of weights, of keys or of values that a program instance holds."""
SHORT = 1 << 26
"""Bits of weights that are read in about the time that it takes to start a kernel."""


def is_short(operand: SSAValue) -> bool:
    """Whether the right operand of a matmul is read in about the time that a kernel takes to start."""
    count = element_count(graph_type(operand).shape)
    return isinstance(count, int) and count * graph_type(operand).dtype.bits <= SHORT


def is_held(count: Size, width: Size, bits: int) -> bool:
    """Whether a program instance can hold so many rows of an array at once, if they are this wide."""
    return isinstance(count, int) and isinstance(width, int) and 0 < count * width * bits <= HELD
