"""Sentinels on graphs: find the first op that makes a NaN of operands that are none, and the place of the element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tessera.errors import DtypeError
from tessera.interpreters.sanitizers.sentinels import number, wide
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type

Array = np.ndarray[Any, np.dtype[Any]]
Excuse = Callable[[Any, Sequence[Array], tuple[int, ...]], Array]
"""Where operands that are NaN account for a result that is: of the op, which operands are, and the result's shape."""


def _same_place(op: Operation, flags: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.logical_or.reduce(flags)


def _folded(op: graph.ReduceOp, flags: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.any(flags[0], axis=tuple(op.axes.iter_values())).reshape(shape)


def _row_or_column(op: graph.MatmulOp, flags: Sequence[Array], shape: tuple[int, ...]) -> Array:
    a, b = flags
    return np.any(a, axis=-1, keepdims=True) | np.any(b, axis=-2, keepdims=True)


def _so_far(op: graph_indexing.CumulateOp, flags: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.logical_or.accumulate(flags[0], axis=op.axis.value.data)


_EXCUSES: Mapping[type[Operation], Excuse] = MappingProxyType(
    {
        graph.EwOp: _same_place,
        graph.ReduceOp: _folded,
        graph.MatmulOp: _row_or_column,
        graph_indexing.CumulateOp: _so_far,
    }
)


def _title(op: Operation) -> str:
    match op:
        case graph.EwOp():
            return op.fn.data
        case graph.ReduceOp() | graph_indexing.CumulateOp():
            return op.kind.data
        case _:
            return op.name.split(".")[-1]


def check_nan(op: Operation, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Refuses a NaN that the operands of an op do not account for."""
    excuse = _EXCUSES.get(type(op))
    if excuse is None or not graph_type(op.results[0]).dtype.is_float:
        return
    wrong = np.isnan(wide(results[0]))
    if not wrong.any():
        return
    floats = [
        value if graph_type(one).dtype.is_float else np.zeros_like(value, np.float64)
        for one, value in zip(op.operands, operands, strict=True)
    ]
    wrong = wrong & ~excuse(op, [np.isnan(wide(value)) for value in floats], wrong.shape)
    if not wrong.any():
        return
    index = tuple(int(at) for at in np.argwhere(wrong)[0])
    there = "operands that are none"
    if isinstance(op, graph.EwOp):
        there = " and ".join(number(value[index]) for value in operands)
    raise DtypeError(
        f"{_title(op)} made NaN of {there}, at {list(index)}",
        shapes=[str(graph_type(operand)) for operand in op.operands],
        hint="mask or clamp the operands before this op, or switch the check off",
    )
