"""NumPy's functions on tensors and traced values: those that are an operator here, with their parameters there.

Others, and calls with parameters that are missing here, take a tensor for an array. Elementwise functions that are a
row of the elementwise table are not here: see `ROWS_OF_NUMPY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tessera.lang import operators as ops
from tessera.lang.creation import empty_like, full_like, ones_like, zeros_like
from tessera.runtime.tensor.operators import rounded

Axis: TypeAlias = Any


def _fold(operator: Callable[..., Any]) -> Callable[..., Any]:
    def fold(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
        return operator(a, axis=axis, keepdims=keepdims)

    return fold


def _total(operator: Callable[..., Any]) -> Callable[..., Any]:
    def total(a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
        return operator(a, axis=axis, dtype=dtype, keepdims=keepdims)

    return total


def _spread(operator: Callable[..., Any]) -> Callable[..., Any]:
    def spread(a: Any, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
        return operator(a, axis=axis, correction=ddof, keepdims=keepdims)

    return spread


def _running(operator: Callable[..., Any]) -> Callable[..., Any]:
    def running(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return operator(ops.flatten(a) if axis is None else a, axis=axis or 0, dtype=dtype)

    return running


def _ordered(operator: Callable[..., Any]) -> Callable[..., Any]:
    def ordered(a: Any, axis: int | None = -1) -> Any:
        return operator(a, axis=axis) if axis is not None else operator(ops.flatten(a))

    return ordered


def _like(maker: Callable[..., Any]) -> Callable[..., Any]:
    def made(a: Any, dtype: Any = None) -> Any:
        return maker(a, dtype=dtype)

    return made


def _where(condition: Any, x: Any, y: Any) -> Any:
    return ops.where(condition if ops.isdtype(condition.dtype, "bool") else condition != 0, x, y)


def _concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Any:
    return ops.concat(arrays, axis=axis)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    return ops.stack(arrays, axis=axis)


def _transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    return ops.permute_dims(a, tuple(axes) if axes is not None else tuple(reversed(range(a.ndim))))


def _squeeze(a: Any, axis: Axis = None) -> Any:
    return a.squeeze(axis)


def _flip(m: Any, axis: Axis = None) -> Any:
    return ops.flip(m, axis=axis)


def _roll(a: Any, shift: Any, axis: Axis = None) -> Any:
    return ops.roll(a, shift, axis=axis)


def _reshape(a: Any, shape: Any) -> Any:
    return ops.reshape(a, tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _take(a: Any, indices: Any, axis: int | None = None) -> Any:
    return ops.take(ops.flatten(a) if axis is None else a, indices, axis=axis or 0)


def _take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Any:
    return ops.take_along_axis(arr, indices, axis=axis)


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    return ops.clip(a, a_min, a_max)


def _round(a: Any, decimals: int = 0) -> Any:
    return rounded(a, decimals or None)


def _dot(a: Any, b: Any) -> Any:
    if max(np.ndim(a), np.ndim(b)) > 2:  # there it folds other axes than a product of matrices
        return NotImplemented
    return ops.matmul(a, b) if np.ndim(a) and np.ndim(b) else ops.multiply(a, b)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return ops.tensordot(a, b, axes=axes)


def _einsum(subscripts: str, *operands: Any) -> Any:
    return ops.einsum(subscripts, *operands)


def _outer(a: Any, b: Any) -> Any:
    return ops.outer(ops.flatten(a), ops.flatten(b))


def _triangle(operator: Callable[..., Any]) -> Callable[..., Any]:
    def triangle(m: Any, k: int = 0) -> Any:
        return operator(m, k=k)

    return triangle


def _ravel(a: Any) -> Any:
    return ops.flatten(a)


def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    return ops.transpose(a, axis1, axis2)


def _moveaxis(a: Any, source: Axis, destination: Axis) -> Any:
    return ops.moveaxis(a, source, destination)


def _expand_dims(a: Any, axis: Axis) -> Any:
    return ops.expand_dims(a, axis)


def _broadcast_to(array: Any, shape: Any) -> Any:
    return ops.broadcast_to(array, tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    return full_like(a, fill_value, dtype=dtype)


def _asked(name: str) -> Callable[..., Any]:
    return lambda a: getattr(a, name)


_ELEMENTWISE: dict[Any, Callable[..., Any]] = {
    # Those that are written over several rows, and the product of matrices.
    **{getattr(np, name): getattr(ops, name) for name in ("cosh", "sinh", "hypot", "logaddexp", "log10")},
    **{getattr(np, f"arc{name}"): getattr(ops, f"a{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{getattr(np, name): getattr(ops, name) for name in ("square", "signbit", "positive", "matmul")},
}
_FOLDS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): _fold(getattr(ops, name)) for name in ("mean", "max", "min", "any", "all")},
    np.amax: _fold(ops.max),
    np.amin: _fold(ops.min),
    np.argmax: _fold(ops.argmax),
    np.argmin: _fold(ops.argmin),
    np.sum: _total(ops.sum),
    np.prod: _total(ops.prod),
    np.std: _spread(ops.std),
    np.var: _spread(ops.var),
    np.cumsum: _running(ops.cumulative_sum),
    np.cumprod: _running(ops.cumulative_prod),
}
_ARRANGED: dict[Any, Callable[..., Any]] = {
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.transpose: _transpose,
    np.squeeze: _squeeze,
    np.flip: _flip,
    np.roll: _roll,
    np.moveaxis: _moveaxis,
    np.swapaxes: _swapaxes,
    np.expand_dims: _expand_dims,
    np.broadcast_to: _broadcast_to,
    np.sort: _ordered(ops.sort),
    np.argsort: _ordered(ops.argsort),
    np.take: _take,
    np.take_along_axis: _take_along_axis,
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
    np.tril: _triangle(ops.tril),
    np.triu: _triangle(ops.triu),
}
_OTHER: dict[Any, Callable[..., Any]] = {
    np.dot: _dot,
    np.tensordot: _tensordot,
    np.einsum: _einsum,
    np.outer: _outer,
    np.zeros_like: _like(zeros_like),
    np.ones_like: _like(ones_like),
    np.empty_like: _like(empty_like),
    np.full_like: _full_like,
    np.shape: _asked("shape"),
    np.ndim: _asked("ndim"),
    np.size: _asked("size"),
}
FUNCTIONS: Mapping[Any, Callable[..., Any]] = MappingProxyType({**_ELEMENTWISE, **_FOLDS, **_ARRANGED, **_OTHER})
"""By the function of NumPy."""
