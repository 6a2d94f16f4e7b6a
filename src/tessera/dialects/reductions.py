"""The table of reductions, shared by `reduce`, `atomic` and collectives: typing, start value, NumPy meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, f64, i64, u64
from tessera.errors import DtypeError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Reduction:
    """`combine` names the elementwise row that joins two partial results."""

    name: str
    kinds: frozenset[Kind]
    combine: str
    identity: Callable[[DType], float | int | bool]
    numpy: Callable[..., Any]


_NUMBERS = frozenset({Kind.FLOAT, Kind.INT, Kind.UINT})
_BITS = frozenset({Kind.BOOL, Kind.INT, Kind.UINT})


def _lowest(dtype: DType) -> float | int:
    return -np.inf if dtype.float_format is not None else dtype.min_value


def _highest(dtype: DType) -> float | int:
    return np.inf if dtype.float_format is not None else dtype.max_value


def _all_ones(dtype: DType) -> int | bool:
    return {Kind.BOOL: True, Kind.INT: -1}.get(dtype.kind, dtype.max_value)  # pyright: ignore[reportReturnType]  # integer kinds have integer limits


TABLE: Mapping[str, Reduction] = MappingProxyType(
    {
        row.name: row
        for row in (
            Reduction("sum", _NUMBERS, "add", lambda _: 0, np.sum),
            Reduction("prod", _NUMBERS, "mul", lambda _: 1, np.prod),
            Reduction("max", _NUMBERS, "max", _lowest, np.max),
            Reduction("min", _NUMBERS, "min", _highest, np.min),
            Reduction("and", _BITS, "and", _all_ones, np.bitwise_and.reduce),
            Reduction("or", _BITS, "or", lambda _: 0, np.bitwise_or.reduce),
            Reduction("xor", _BITS, "xor", lambda _: 0, np.bitwise_xor.reduce),
        )
    }
)


def check(name: str, dtype: DType) -> Reduction:
    """The row `name`, if it is defined for `dtype`."""
    row = TABLE.get(name)
    if row is None:
        raise DtypeError(f"unknown reduction {name}", hint=f"reductions are {', '.join(TABLE)}")
    if dtype.kind not in row.kinds:
        accepted = " or ".join(sorted(kind.value for kind in row.kinds))
        raise DtypeError(f"{name} reduces {accepted} elements, got {dtype}", hint="cast the operand first")
    return row


def apply(name: str, values: Array, dtype: DType, axes: Sequence[int]) -> Array:
    """The reference meaning: exact order-free accumulation as far as float64 and wrapping integers go."""
    row = check(name, dtype)
    initial = row.identity(dtype)
    if dtype.is_float:
        wide = row.numpy(values.astype(np.float64), axis=tuple(axes), initial=initial)
        return cast(np.asarray(wide, np.float64), f64, dtype.base)
    if dtype.kind is Kind.BOOL:
        return np.asarray(row.numpy(values, axis=tuple(axes), initial=bool(initial)), np.bool_)
    # Working modulo 2^64 and wrapping once equals wrapping at every step.
    carrier = i64 if dtype.kind is Kind.INT else u64
    wide = row.numpy(values.astype(carrier.storage), axis=tuple(axes), initial=carrier.storage.type(initial))
    return cast(np.asarray(wide, carrier.storage), carrier, dtype.base)
