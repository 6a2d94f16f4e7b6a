"""Long folds of which little is left are divided: parts are folded by program instances of their own, then the parts.

The order of both is fixed, so that results are the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation

from tessera.dtypes.promotion import accumulator
from tessera.ir.common import reductions
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, element_count
from tessera.transforms.core.rewriting import replace

_LONG = 1 << 21
"""Elements that are read in more time than a kernel takes to start."""
_SEVERAL = 8
"""Times as many instances as keep the machine busy: each has few loads on their way at once."""
_COLUMNS = 64
"""Columns of a program instance that folds a leading axis."""
_LEAST = {True: 2048, False: 128}
"""Elements of a part, of rows along which memory lies, and of columns."""


def divide_long_folds(block: Block, instances: int) -> set[Operation]:
    """Makes two reductions of one that leaves fewer program instances than half of those that are wanted."""
    divided = set[Operation]()
    for op in list(block.ops):
        if isinstance(op, graph.ReduceOp) and (parts := _parts(op, instances)) is not None:
            made = list(_divided(op, parts))
            replace(op, made)
            divided.update(made)
    return divided


def _parts(op: graph.ReduceOp, instances: int) -> int | None:
    """How many parts its axis is divided into; None where it stays whole."""
    shape, axes = graph_type(op.operand).shape, list(op.axes.iter_values())
    total, length = element_count(shape), shape[axes[0]] if len(axes) == 1 else None
    if not isinstance(total, int) or not isinstance(length, int) or total < _LONG:
        return None
    along = axes[0] == len(shape) - 1
    programs = max(1, total // length // (1 if along else _COLUMNS))
    if 2 * programs >= instances:
        return None
    wanted = -(-_SEVERAL * instances // programs)
    possible = [parts for parts in _divisors(length) if 1 < parts <= 2 * wanted and length // parts >= _LEAST[along]]
    return min(possible, key=lambda parts: abs(parts - wanted), default=None)


def _divisors(number: int) -> Iterator[int]:
    root = int(number**0.5)
    for one in range(1, root + 1):
        if number % one == 0:
            yield from {one, number // one}


def _divided(op: graph.ReduceOp, parts: int) -> Iterator[Operation]:
    (axis,) = op.axes.iter_values()
    kind, dtype, shape = op.kind.data, graph_type(op.operand).dtype, graph_type(op.operand).shape
    carried = accumulator(dtype).base if reductions.TABLE[kind].combine in ("add", "mul") else dtype.base
    value = op.operand
    if dtype is not carried:
        yield (wide := graph.EwOp("cast", [value], to=carried))
        value = wide.result
    length = shape[axis]
    assert isinstance(length, int)
    sizes: list[Size] = [*shape[:axis], parts, length // parts, *shape[axis + 1 :]]
    yield (apart := graph.ReshapeOp(value, sizes))
    yield (first := graph.ReduceOp(kind, apart.result, [axis + 1]))
    yield (last := graph.ReduceOp(kind, first.result, [axis], keepdims=op.keepdims is not None))
    if dtype is not carried:
        yield graph.EwOp("cast", [last.result], to=dtype)
