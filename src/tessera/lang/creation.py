"""Creation functions of the Array API: `zeros`, `full`, `arange`, `linspace`, `eye`, `asarray` and others.

Outside of a trace they fill memory at once; inside one they write constants and iotas into the graph. This file is
light to import: the code that writes traces is loaded when there is one.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import DType, f32, f64, i64
from tessera.errors import DeviceError, ShapeError
from tessera.lang.tracing.graph_modules import Deferred
from tessera.lang.tracing.values import Traced, current, current_or_none
from tessera.runtime.device.device import device as find_device
from tessera.runtime.tensor import creation
from tessera.runtime.tensor.creation import DeviceLike, taking_sizes
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.operators import Scalar, nearest
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import Dim, DimLike
from tessera.tracebacks import trim, trimmed

if TYPE_CHECKING:
    from tessera.lang.tracing import arithmetic, primitives
    from tessera.lang.tracing.values import Array
else:
    arithmetic, primitives = (Deferred(f"tessera.lang.tracing.{name}") for name in ("arithmetic", "primitives"))

ShapeLike: TypeAlias = "DimLike | SupportsIndex | Sequence[DimLike | SupportsIndex]"


def _sizes(shape: ShapeLike) -> tuple[DimLike, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)  # pyright: ignore[reportReturnType]


def _here(device: DeviceLike | None) -> None:
    """Everything in a trace is on its device."""
    if device is not None and find_device(device) is not current().device:
        raise DeviceError(
            f"{current().name} runs on {current().device}, and a tensor on {device} is asked for",
            hint="leave device= out inside a jitted function",
        )


@trimmed
def full(shape: ShapeLike, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Any:
    """A tensor of `fill_value`; f32, i64 or bool by its type unless `dtype` says otherwise."""
    if current_or_none() is None:
        return creation.full(shape, fill_value, dtype, device)  # pyright: ignore[reportArgumentType]  (numbers here)
    _here(device)
    return primitives.constant(fill_value, _sizes(shape), as_dtype(type(fill_value) if dtype is None else dtype))


@taking_sizes
def empty(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Any:
    """A tensor whose elements mean nothing yet: zeros inside a trace."""
    if current_or_none() is None:
        return creation.empty(shape, dtype or f32, device)  # pyright: ignore[reportArgumentType]  (numbers here)
    return zeros(shape, dtype=dtype, device=device)


@taking_sizes
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros, f32 unless `dtype` says otherwise."""
    return full(shape, False, dtype=dtype or f32, device=device)


@taking_sizes
def ones(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones, f32 unless `dtype` says otherwise."""
    return full(shape, True, dtype=dtype or f32, device=device)


def _like(x: Any) -> tuple[Any, DType, Any]:
    made = x if isinstance(x, Traced | Tensor) else creation.asarray(x)
    return made.shape, made.dtype, None if isinstance(made, Traced) else made.device


def full_like(
    x: Array, /, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """`fill_value` in the shape of `x`, and in its dtype and on its device unless others are named."""
    shape, own, own_device = _like(x)
    inside = current_or_none() is not None
    return full(shape, fill_value, dtype=dtype or own, device=device if inside else device or own_device)


def empty_like(x: Array, /, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor in the shape of `x` whose elements mean nothing yet."""
    if current_or_none() is not None:
        return zeros_like(x, dtype=dtype, device=device)
    shape, own, own_device = _like(x)
    return empty(shape, dtype=dtype or own, device=device or own_device)


def zeros_like(x: Array, /, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Zeros in the shape of `x`, and in its dtype and on its device unless others are named."""
    return full_like(x, False, dtype=dtype, device=device)


def ones_like(x: Array, /, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Ones in the shape of `x`, and in its dtype and on its device unless others are named."""
    return full_like(x, True, dtype=dtype, device=device)


def asarray(
    obj: Any, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Any:
    """`obj` as a tensor: shared where dtype and device allow it, else copied; a traced value as it is, or cast."""
    try:
        if not isinstance(obj, Traced):
            return creation.asarray(obj, dtype, device=device, copy=copy)
        _here(device)
        return arithmetic.tensor(obj) if dtype is None else primitives.cast(obj, dtype)
    except Exception as error:
        trim(error)
        raise


@trimmed
def arange(
    start: float | Dim,
    /,
    stop: float | Dim | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Any:
    """start, start + step, … below `stop`; from 0 where only one bound is given. i64, or f32 if a bound is a float."""
    ends: tuple[Any, Any] = (0, start) if stop is None else (start, stop)
    first, last = ends
    if current_or_none() is None:
        return creation.arange(first, last, step, dtype, device)
    _here(device)
    bounds = (first, last, step)
    whole = all(isinstance(bound, int | Dim) for bound in bounds)
    target = as_dtype(dtype) if dtype is not None else (i64 if whole else f32)
    if isinstance(first, Dim) or isinstance(last, Dim):
        if step != 1 or not whole or isinstance(first, Dim):
            raise ShapeError(
                f"arange({first}, {last}, {step}): of symbolic bounds only the stop may be one, with step 1",
                hint="count from a number in steps of 1, and compute with the result",
            )
        count: Any = last - first
    elif step == 0 or not all(map(math.isfinite, bounds)):
        raise ShapeError(
            f"arange({first}, {last}, {step}) has no length", hint="give finite bounds and a step other than 0"
        )
    else:
        count = builtins.max(0, math.ceil((last - first) / step))
    indices = primitives.iota((count,), 0, target if whole and target.is_integer else i64)
    return _along(indices, first, step, target, whole)


def _along(indices: Traced, first: Any, step: Any, target: DType, whole: bool) -> Traced:
    """first + step · index, computed in integers or in f64, and rounded once."""
    values = indices if whole else primitives.cast(indices, f64)
    if step != 1:
        values = arithmetic.elementwise("mul", values, step if whole else float(step))
    if first != 0:
        values = arithmetic.elementwise("add", values, first if whole else float(first))
    return primitives.cast(values, nearest(target))


@trimmed
def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    *,
    endpoint: bool = True,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out without `endpoint`."""
    if current_or_none() is None:
        return creation.linspace(start, stop, num, dtype or f32, device, endpoint=endpoint)
    _here(device)
    made = creation.linspace(start, stop, num, dtype or f32, "cpu", endpoint=endpoint)
    return primitives.constant_array(made)


@trimmed
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Any:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    if current_or_none() is None:
        return creation.eye(n_rows, n_cols, k=k, dtype=dtype or f32, device=device)
    _here(device)
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    on = arithmetic.elementwise(
        "eq", primitives.iota(shape, 1), arithmetic.elementwise("add", primitives.iota(shape, 0), k)
    )
    return primitives.cast(on, dtype or f32)


@trimmed
def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """The memory of anything with `__dlpack__` as a tensor, without a copy unless asked for one."""
    return creation.from_dlpack(x, device=device, copy=copy)
