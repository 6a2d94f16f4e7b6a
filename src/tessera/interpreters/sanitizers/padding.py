"""Marks on values that come from beyond an array, followed through a kernel until they would reach a result.

A mark is an integer tile of the value's shape: 0 for a value of the kernel's own, n for one that the n-th padded load
made up. A position whose every contribution is marked (a row beyond the end, say) is marked itself and does no harm;
it is an error when made-up and real values meet in one sum, or when a made-up value is stored inside an array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tessera.dtypes.types import DType
from tessera.errors import ShapeError
from tessera.ir.common import reductions
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type

Array = np.ndarray[Any, np.dtype[Any]]
Mark = Array | None
Marks = Sequence[Mark]
_HINT = (
    "mask before this op: tile.where(positions < size, x, fill) with positions from tile.row_index or tile.col_index, "
    "or load with pad= a value that changes nothing here"
)


class Padding:
    """The loads that have made up values, and the rules by which marks spread. Without `strict` nothing is refused."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.loads: list[tile.LoadOp] = []

    def load(self, op: tile.LoadOp, inside: Array) -> Mark:
        if inside.all():
            return None
        if op not in self.loads:
            self.loads.append(op)
        return np.where(inside, 0, self.loads.index(op) + 1)

    @staticmethod
    def looked_up(places: Marks, inside: Array) -> Mark:
        """What is read at made-up places is made up; what was left out on purpose is 0 on purpose."""
        found = [mark for mark in places if mark is not None]
        return np.where(inside, _joined(found), 0) if found else None

    def refuse(self, where: str, mark: Array, bad: Array, program: Sequence[int]) -> None:
        """Raises for the first of the `bad` places, whose marks are given."""
        if not self.strict or not bad.any():
            return
        place = tuple(int(at) for at in np.argwhere(bad)[0])
        load = self.loads[int(mark[place]) - 1]
        span, result = span_of(load.location), tile_type(load.result)
        source = "" if span is None else f" at {span}"
        raise ShapeError(
            f"a value from beyond the array reaches {where} at {list(place)} in program instance {list(program)}",
            story=[f"the load of {list(result.get_shape())} with pad {load.pad_value:g}{source} made it up"],
            hint=_HINT,
        )

    def store(self, op: Operation, value: Array, mark: Mark, inside: Array, program: Sequence[int]) -> None:
        """Refuses made-up values inside the array; an atomic may combine those that change nothing."""
        if mark is None:
            return
        bad = (mark > 0) & inside
        if isinstance(op, tile.Atomic):
            bad &= ~_neutral(value, op.kind.data, tile_dtype(op.value))
        self.refuse("an atomic" if isinstance(op, tile.Atomic) else "a store", mark, bad, program)

    def spread(self, op: Operation, operands: Sequence[Any], marks: Marks, program: Sequence[int]) -> Mark:
        """The mark of an op's result."""
        rule = _SPREAD.get(type(op))
        return None if rule is None or all(mark is None for mark in marks) else rule(self, op, operands, marks, program)


def _elementwise(
    padding: Padding, op: tile.EwOp, operands: Sequence[Any], marks: Marks, program: Sequence[int]
) -> Mark:
    if op.fn.data == "select":
        condition: Array = operands[0]
        first: Array = _filled(condition, marks[1])
        second: Array = _filled(condition, marks[2])
        return np.where(condition, first, second)
    return _joined([mark for mark in marks if mark is not None])


def _joined(marks: Sequence[Array]) -> Array:
    """The first mark at each place."""
    first = marks[0]
    for mark in marks[1:]:
        first = np.where(first > 0, first, mark)
    return first


def _neutral(values: Array, kind: str, dtype: DType) -> Array:
    """Where a reduction would not notice a value."""
    return np.asarray(values == np.asarray(reductions.TABLE[kind].identity(dtype)).astype(dtype.storage))


def _reduce(padding: Padding, op: tile.ReduceOp, operands: Sequence[Any], marks: Marks, program: Sequence[int]) -> Mark:
    axis, mark = op.axis.value.data, _filled(operands[0], marks[0])
    counts: Any = ~_neutral(operands[0], op.kind.data, tile_dtype(op.operand))
    source: Array = np.max(mark, axis=axis, where=counts, initial=0)
    padding.refuse(f"reduce {op.kind.data}", source, (source > 0) & (counts & (mark == 0)).any(axis=axis), program)
    # Only neutral values were made up: the result is the real ones', unless there are none.
    return np.asarray(np.where((mark > 0).all(axis=axis), np.max(mark, axis=axis, initial=0), source))


def _scan(padding: Padding, op: tile.ScanOp, operands: Sequence[Array], marks: Marks, program: Sequence[int]) -> Mark:
    """What is made up spoils what is behind it, unless it is neutral: then it is as if it were not there."""
    axis, mark = op.axis.value.data, _filled(operands[0], marks[0])
    counted = np.where(_neutral(operands[0], op.kind.data, tile_dtype(op.operand)), 0, mark)
    alone = np.minimum.accumulate(mark > 0, axis=axis)
    return np.where(alone, mark, np.maximum.accumulate(counted, axis=axis))


def _sort(padding: Padding, op: tile.SortOp, operands: Sequence[Array], marks: Marks, program: Sequence[int]) -> Mark:
    """Marks go where their elements do."""
    axis = op.axis.value.data
    order = np.argsort(operands[0], axis=axis, kind="stable")
    return None if marks[0] is None else np.take_along_axis(marks[0], order, axis)


def _dot(padding: Padding, op: tile.DotOp, operands: Sequence[Any], marks: Marks, program: Sequence[int]) -> Mark:
    """A reduction over the products; one is made up if a factor is, and neutral if a factor is zero."""
    a, b, _ = operands
    left, right, start = (_filled(value, mark) for value, mark in zip(operands, marks, strict=True))
    used_a, used_b = a != 0, b != 0
    real = _meets(used_a & (left == 0), used_b & (right == 0))
    from_left = _meets(used_a & (left > 0), used_b) * np.max(left, axis=-1, keepdims=True, where=used_a, initial=0)
    from_right = _meets(used_a, used_b & (right > 0)) * np.max(right, axis=-2, keepdims=True, where=used_b, initial=0)
    source = _joined([from_left, from_right])
    padding.refuse("dot", source, (source > 0) & real & (start == 0), program)
    row = (left > 0).all(axis=-1, keepdims=True) * np.max(left, axis=-1, keepdims=True, initial=0)
    column = (right > 0).all(axis=-2, keepdims=True) * np.max(right, axis=-2, keepdims=True, initial=0)
    return _joined([start, source, *np.broadcast_arrays(row, column)])


def _take(padding: Padding, op: tile.TakeOp, operands: Sequence[Any], marks: Marks, program: Sequence[int]) -> Mark:
    """Marks move with elements; what is taken at made-up places is made up."""
    source, *indices = operands
    moved, *places = marks
    found = [mark for mark in places if mark is not None]
    if moved is not None:
        at = tuple(np.clip(index, 0, size - 1) for index, size in zip(indices, source.shape, strict=True))
        found.append(moved[at])
    return _joined(found)


def _pack(padding: Padding, op: tile.PackOp, operands: Sequence[object], marks: Marks, program: Sequence[int]) -> Mark:
    """A byte is made up if one of its halves is."""
    (mark,), axis = marks, [slice(None)] * op.axis.value.data
    return None if mark is None else _joined([mark[(*axis, slice(first, None, 2))] for first in (0, 1)])


def _filled(value: Array, mark: Mark) -> Any:
    return np.zeros(value.shape, np.int64) if mark is None else mark


def _meets(a: Array, b: Array) -> Array:
    """Where a row of `a` and a column of `b` are both true at some place."""
    return np.matmul(a.astype(np.float32), b.astype(np.float32)) > 0


def _moved(move: Callable[[Any, Array], Array]) -> Callable[..., Mark]:
    """Ops that only move elements move their marks."""

    def rule(padding: Padding, op: Any, operands: Sequence[Any], marks: Marks, program: Sequence[int]) -> Mark:
        return None if marks[0] is None else move(op, marks[0])

    return rule


_SPREAD: Mapping[type[Operation], Callable[..., Mark]] = MappingProxyType(
    {
        tile.EwOp: _elementwise,
        tile.ReduceOp: _reduce,
        tile.ScanOp: _scan,
        tile.SortOp: _sort,
        tile.DotOp: _dot,
        tile.TakeOp: _take,
        tile.PackOp: _pack,
        tile.UnpackOp: _moved(lambda op, mark: np.repeat(mark, 2, op.axis.value.data)),
        tile.ExpandOp: _moved(lambda op, mark: np.expand_dims(mark, op.axis.value.data)),
        tile.BroadcastOp: _moved(lambda op, mark: np.broadcast_to(mark, tile_type(op.result).get_shape())),
        tile.TransOp: _moved(lambda op, mark: np.transpose(mark, tuple(op.permutation.iter_values()))),
    }
)
