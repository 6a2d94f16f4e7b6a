"""Sentinels on arithmetic: the op that makes the first NaN or infinity, and signed integers that wrap around."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation

from tessera.dtypes.types import DType, Kind
from tessera.errors import DtypeError
from tessera.interpreters.core import scalars
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type

Array = np.ndarray[Any, np.dtype[Any]]
Index = tuple[int, ...]
Mark = Array | None
Program = Sequence[int]


def whereabouts(index: Index, program: Program) -> str:
    """The place of an element in words; scalars have no index."""
    return f"at {list(index)} in program instance {list(program)}" if index else f"in program instance {list(program)}"


def number(value: Any) -> str:
    """A number for people: whole ones in full, floats with six digits."""
    value = np.asarray(value)
    return str(value) if value.dtype.kind in "biu" else f"{float(value):g}"


def _line(values: Array) -> str:
    shown = ", ".join(number(value) for value in values[:8])
    return f"[{shown}{', …' if len(values) > 8 else ''}]"


# Which elements of the operands an element of the result depends on: as flags, and in words.
def _same_place(op: Operation, flags: Sequence[Any]) -> Any:
    return np.logical_or.reduce(np.broadcast_arrays(*flags))


def _values_there(op: Operation, operands: Sequence[Any], index: Index) -> str:
    return " and ".join(number(value[index] if np.ndim(value) else value) for value in operands)


def _any_in_line(op: tile.ReduceOp, flags: Sequence[Any]) -> Any:
    return flags[0].any(axis=op.axis.value.data)


def _folded(op: tile.ReduceOp, operands: Sequence[Any], index: Index) -> str:
    axis = op.axis.value.data
    return _line(operands[0][(*index[:axis], slice(None), *index[axis:])])


def _any_before(op: tile.ScanOp, flags: Sequence[Array]) -> Array:
    return np.logical_or.accumulate(flags[0], axis=op.axis.value.data)


def _folded_so_far(op: tile.ScanOp, operands: Sequence[Any], index: Index) -> str:
    axis = op.axis.value.data
    return _line(operands[0][(*index[:axis], slice(None, index[axis] + 1), *index[axis + 1 :])])


def _any_in_row_or_column(op: tile.DotOp, flags: Sequence[Any]) -> Any:
    a, b, c = flags
    return a.any(axis=-1)[..., :, np.newaxis] | b.any(axis=-2)[..., np.newaxis, :] | c


def _row_and_column(op: tile.DotOp, operands: Sequence[Any], index: Index) -> str:
    a, b, c = operands
    *front, row, column = index
    return f"{_line(a[(*front, row)])} · {_line(b[(*front, slice(None), column)])} + {number(c[index])}"


Gather = Callable[[Any, Sequence[Any]], Any]
Describe = Callable[[Any, Sequence[Any], Index], str]
_SOURCES: Mapping[type[Operation], tuple[Gather, Describe]] = MappingProxyType(
    {
        tile.EwOp: (_same_place, _values_there),
        tile.ReduceOp: (_any_in_line, _folded),
        tile.ScanOp: (_any_before, _folded_so_far),
        tile.DotOp: (_any_in_row_or_column, _row_and_column),
        **dict.fromkeys((*scalars.FLOAT, *scalars.CASTS), (_same_place, _values_there)),
    }
)


# The ops that compute; the others move, make or choose values.
ARITHMETIC = frozenset(_SOURCES)
_GIVEN_BACK = frozenset({"from_sort_key"})
"""What gives floats that were there before, as whole numbers meanwhile."""


def sources(op: Operation, operands: Sequence[Any], index: Index) -> str:
    """The numbers that one element of a result is made of, in words."""
    return _SOURCES[type(op)][1](op, operands, index)


def title(op: Operation) -> str:
    """An op as its user knows it."""
    match op:
        case tile.EwOp():
            return op.fn.data
        case tile.ReduceOp():
            return f"reduce {op.kind.data}"
        case tile.ScanOp():
            return f"scan {op.kind.data}"
        case tile.ReadOp() | tile.WriteOp() | tile.AtomicAtOp():
            return tile.title(op)
        case _:
            return op.name.split(".")[-1]


def check_nonfinite(
    op: Operation, operands: Sequence[Any], results: Sequence[Any], mark: Mark, program: Program, *, infinities: bool
) -> None:
    """Refuses the first NaN, or infinity, that the operands do not account for; made-up values are let be."""
    source = _SOURCES.get(type(op))
    if source is None or title(op) in _GIVEN_BACK:
        return
    gather, describe = source
    found = wide(results[0])
    questions = [np.isnan, _is_infinite] if infinities else [np.isnan]
    for question in questions:
        wrong = question(found)
        if not wrong.any():
            continue
        # An infinity is accounted for by anything that is not finite, a NaN by a NaN only.
        excuse = np.isnan if question is np.isnan else _is_unbounded
        wrong = wrong & ~gather(op, [excuse(wide(value)) for value in operands])
        if mark is not None:
            wrong = wrong & (mark == 0)
        if wrong.any():
            index = tuple(int(at) for at in np.argwhere(wrong)[0])
            raise DtypeError(
                f"{title(op)} makes {number(found[index])} {whereabouts(index, program)}, "
                f"of {describe(op, operands, index)}",
                hint="mask or clamp the operands with tile.where before this op, or switch the nonfinite check off",
            )


def wide(value: Any) -> Array:
    """A value as float64, which holds every other float."""
    return np.asarray(value).astype(np.float64)


def _is_unbounded(values: Array) -> Array:
    return ~np.isfinite(values)


def _is_infinite(values: Array) -> Array:
    return np.isinf(values)


def _fma(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


# On Python integers exact; on float64 near enough to tell where it is worth asking.
_EXACT: Mapping[str, tuple[Callable[..., Any], str]] = MappingProxyType(
    {
        "neg": (operator.neg, "-{}"),
        "add": (operator.add, "{} + {}"),
        "sub": (operator.sub, "{} - {}"),
        "mul": (operator.mul, "{} * {}"),
        "fma": (_fma, "{} * {} + {}"),
    }
)


def check_overflow(
    op: Operation, operands: Sequence[Any], results: Sequence[Any], mark: Mark, program: Program
) -> None:
    """Refuses signed integers that do not fit; unsigned ones wrap by definition, and saturating ones clamp."""
    rule = _OVERFLOW.get(type(op))
    if rule is not None:
        rule(op, operands, results, mark, program)


def _refuse(op: Operation, dtype: DType, story: str, index: Index, program: Program) -> None:
    raise DtypeError(
        f"{title(op)} wraps around {whereabouts(index, program)}: {story}, and {dtype} ends at "
        f"{dtype.min_value} and {dtype.max_value}",
        hint="cast the operands to a wider type, or to an unsigned one where wrapping is meant",
    )


def _scalar(op: Operation, operands: Sequence[Any], results: Sequence[Any], mark: Mark, program: Program) -> None:
    dtype = dtype_of(op.results[0].type)
    exact = scalars.INTEGER[type(op)](*operands) if type(op) in scalars.INTEGER else operands[0]
    if dtype.kind is Kind.INT and exact != results[0]:
        _refuse(op, dtype, f"{' and '.join(map(str, operands))} give {exact}", (), program)


def _iota(op: tile.IotaOp, operands: Sequence[Any], results: Sequence[Any], mark: Mark, program: Program) -> None:
    dtype, base = tile_dtype(op.result), operands[0]
    last = base + tile_type(op.result).get_shape()[op.axis.value.data] - 1
    if dtype.kind is Kind.INT and base <= last and not dtype.min_value <= base <= last <= dtype.max_value:
        _refuse(op, dtype, f"it counts from {base} to {last}", (), program)


def _tile(op: tile.EwOp, operands: Sequence[Any], results: Sequence[Any], mark: Mark, program: Program) -> None:
    dtype = op.result_dtype
    if op.fn.data not in _EXACT or dtype.kind is not Kind.INT or dtype.policy.saturate:
        return
    function, sentence = _EXACT[op.fn.data]
    near = np.abs(function(*(wide(operand) for operand in operands))) >= 0.99 * dtype.max_value
    if mark is not None:
        near = near & (mark == 0)
    for place in np.argwhere(near):
        index = tuple(int(at) for at in place)
        numbers = [int(operand[index]) for operand in operands]
        exact = function(*numbers)
        if not dtype.min_value <= exact <= dtype.max_value:
            _refuse(op, dtype, f"{sentence.format(*numbers)} is {exact}", index, program)


_OVERFLOW: Mapping[type[Operation], Callable[..., None]] = MappingProxyType(
    {tile.IotaOp: _iota, tile.EwOp: _tile, **dict.fromkeys((*scalars.INTEGER, arith.IndexCastOp), _scalar)}
)
