"""Running reductions: what graphs call cumulations and tiles call scans."""

from __future__ import annotations

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, Kind, f64, i64, u64
from tessera.interpreters.core.views import Array
from tessera.ir.common import elementwise, reductions


@np.errstate(all="ignore")
def running(
    kind: str, values: Array, dtype: DType, axis: int, *, exclusive: bool = False, initial: Array | None = None
) -> Array:
    """Carried in float64, or in integers that wrap as the accumulator does; each element is rounded once.

    `initial` has size 1 along the axis, and is what the first element is combined with.
    """
    row = reductions.check(kind, dtype)
    carrier = dtype if dtype.kind is Kind.BOOL else {Kind.FLOAT: f64, Kind.INT: i64}.get(dtype.kind, u64)
    wide = np.moveaxis(cast(values, dtype, carrier), axis, 0)
    if initial is None:
        total = np.full(wide.shape[1:], row.identity(dtype), carrier.storage)
    else:
        total = np.moveaxis(cast(initial, dtype, carrier), axis, 0)[0]
    found = np.empty(wide.shape, carrier.storage)
    for index in range(wide.shape[0]):
        after = elementwise.apply(row.combine, [total, wide[index]], [carrier, carrier])
        found[index] = total if exclusive else after
        total = after
    found = np.ascontiguousarray(np.moveaxis(found, 0, axis))
    if dtype.is_integer:
        found, carrier = cast(found, carrier, accumulator(dtype)), accumulator(dtype)
    return cast(found, carrier, dtype)
