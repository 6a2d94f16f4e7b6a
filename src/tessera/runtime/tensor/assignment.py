"""x[key] = value: what may be stored where, on the host by NumPy, on other devices by the operator for updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import can_cast, is_higher
from tessera.dtypes.types import DType
from tessera.errors import DeviceError, DtypeError, EffectError, ResourceError
from tessera.runtime.device.device import CPU
from tessera.runtime.tensor import indexing
from tessera.runtime.tensor.interface import TensorInterface, asarray
from tessera.runtime.tensor.operators import OPERATORS, Operand, nearest, operand, plain_number, traced_in
from tessera.shapes.expr import format_shape


def assign(tensor: TensorInterface, key: indexing.Key, value: Operand) -> None:
    """Stores `value`, which broadcasts; its dtype must go into the tensor's without changing a value."""
    if traced_in(key) or traced_in(value):
        raise EffectError(
            "a tensor from outside is assigned to in a jitted function, where tensors are values",
            shapes=[f"{format_shape(tensor.shape)} of {tensor.dtype}"],
            hint="make a new one: x = x.at[...].set(...); what outlives calls is a ts.State",
        )
    if not tensor.writable:
        raise ResourceError(
            "this tensor is read-only: it shares memory that may not be written, or repeats elements",
            shapes=[format_shape(tensor.shape)],
            hint="write to a copy: .copy()",
        )
    parts, _ = indexing.parts_of(key)
    if tensor.device.is_accelerator:
        _on_device(tensor, indexing.for_device(key, parts, tensor.device), value)
        return
    array, indices = tensor.numpy(), indexing.for_numpy(tensor.shape, parts)
    coerced = operand(_given(value, tensor.dtype), tensor.dtype)
    if coerced is None:
        raise DtypeError(
            f"expected a tensor, an array or a number, got {type(value).__name__}",
            hint="make a tensor of it with asarray",
        )
    elements, dtype = coerced
    if dtype is not tensor.dtype:
        _check_stored(dtype, tensor.dtype)
        elements = cast(elements, dtype, nearest(tensor.dtype))
    try:
        array[indices] = elements
    except (IndexError, ValueError, TypeError) as problem:
        raise indexing.refusal(tensor.shape, problem) from None


def _given(value: Operand, dtype: DType) -> Operand:
    """A number of NumPy as Python's, and a list of numbers in the tensor's type: its own types are no matter."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return plain_number(value)
    if not isinstance(value, list | tuple | range):
        return value
    own = asarray(value, device=CPU).dtype
    if is_higher(own.kind, dtype.kind):
        raise DtypeError(
            f"a {type(value).__name__} of {own} does not go into a tensor of {dtype}",
            hint="cast the tensor first, or give numbers of its kind",
        )
    return asarray(value, nearest(dtype), device=CPU)


def _check_stored(dtype: DType, into: DType) -> None:
    if not can_cast(dtype, nearest(into)):
        raise DtypeError(
            f"storing {dtype} in a {into} tensor could change values", hint=f"cast it explicitly: .to({into})"
        )


def _on_device(tensor: TensorInterface, key: tuple[Any, ...], value: Operand) -> None:
    """The operator's update, computed beside the tensor and copied over it."""
    if not tensor.geometry.flags.c_contiguous:
        raise DeviceError(
            f"a view with gaps is assigned to on {tensor.device}, where whole stretches of memory are written",
            shapes=[f"{format_shape(tensor.shape)}, strides {format_shape(tensor.strides)}"],
            hint="assign to the tensor that it is a view of, with one index for both",
        )
    given = _given(value, tensor.dtype)
    if not isinstance(given, bool | int | float):
        given = asarray(value)
        _check_stored(given.dtype, tensor.dtype)
        given = given if given is value else given.to(tensor.device)  # what is no tensor lies nowhere in particular
    changed: TensorInterface = OPERATORS.method("__setitem__")(tensor, key, given)
    if changed.nbytes:
        backend = tensor.device.backend
        backend.copy_from_device(tensor.pointer, tensor.device, changed.pointer, changed.nbytes)
        backend.note_use(changed.geometry)
