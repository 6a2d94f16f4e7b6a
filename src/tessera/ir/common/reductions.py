"""The table of reductions, shared by `reduce`, `atomic` and collectives: typing, start value, NumPy meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, Kind, Specials, f64, i64, u64
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
    return -np.inf if _has_infinity(dtype) else dtype.min_value


def _highest(dtype: DType) -> float | int:
    return np.inf if _has_infinity(dtype) else dtype.max_value


def _has_infinity(dtype: DType) -> bool:
    return dtype.float_format is not None and dtype.float_format.specials is Specials.IEEE


def _all_ones(dtype: DType) -> int | bool:
    return {Kind.BOOL: True, Kind.INT: -1}.get(dtype.kind, dtype.max_value)  # pyright: ignore[reportReturnType]  # integer kinds have integer limits


def _largest(values: Array, axis: tuple[int, ...], initial: float) -> Any:
    """NaN if any is; +0 is above -0 as in the elementwise table, while NumPy leaves that to the machine."""
    found = np.max(values, axis=axis, initial=initial)
    if values.dtype.kind != "f":
        return found
    # Zeros add up to -0 only if all of them are.
    zero: Array = np.sum(values, axis=axis, initial=-0.0, where=values == 0)
    return np.where(found == 0, zero, found)


def _smallest(values: Array, axis: tuple[int, ...], initial: float) -> Any:
    if values.dtype.kind != "f":
        return np.min(values, axis=axis, initial=initial)
    return -_largest(-values, axis, -initial)


TABLE: Mapping[str, Reduction] = MappingProxyType(
    {
        row.name: row
        for row in (
            Reduction("sum", _NUMBERS, "add", lambda _: 0, np.sum),
            Reduction("prod", _NUMBERS, "mul", lambda _: 1, np.prod),
            Reduction("max", _NUMBERS, "max", _lowest, _largest),
            Reduction("min", _NUMBERS, "min", _highest, _smallest),
            # The maximum, except that machine code may miss a NaN and the sign of zero. For results that become NaN
            # in another way then, such as a softmax, it spares the machine two instructions of three.
            Reduction("top", _NUMBERS, "max", _lowest, _largest),
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


@np.errstate(all="ignore")
def apply(name: str, values: Array, dtype: DType, axes: Sequence[int]) -> Array:
    """The reference meaning: carried in float64, or in integers that wrap as the accumulator does; rounded once."""
    row = check(name, dtype)
    carrier = {Kind.FLOAT: f64, Kind.INT: i64, Kind.UINT: u64}.get(dtype.kind, dtype)
    wide = cast(values, dtype, carrier)
    total = np.asarray(row.numpy(wide, axis=tuple(axes), initial=carrier.storage.type(row.identity(dtype))))
    if dtype.is_integer:
        # Working modulo 2^64 and wrapping once equals wrapping at every step.
        total, carrier = cast(total, carrier, accumulator(dtype)), accumulator(dtype)
    return cast(total, carrier, dtype)
