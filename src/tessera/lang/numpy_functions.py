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

Given: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]
Axis: TypeAlias = Given


def _fold(operator: Function) -> Function:
    def fold(a: Given, axis: Axis = None, *, keepdims: bool = False) -> Given:
        return operator(a, axis=axis, keepdims=keepdims)

    return fold


def _total(operator: Function) -> Function:
    def total(a: Given, axis: Axis = None, dtype: Given = None, *, keepdims: bool = False) -> Given:
        return operator(a, axis=axis, dtype=dtype, keepdims=keepdims)

    return total


def _spread(operator: Function) -> Function:
    def spread(a: Given, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False) -> Given:
        return operator(a, axis=axis, correction=ddof, keepdims=keepdims)

    return spread


def _running(operator: Function) -> Function:
    def running(a: Given, axis: int | None = None, dtype: Given = None) -> Given:
        return operator(ops.flatten(a) if axis is None else a, axis=axis or 0, dtype=dtype)

    return running


def _ordered(operator: Function) -> Function:
    def ordered(a: Given, axis: int | None = -1) -> Given:
        return operator(a, axis=axis) if axis is not None else operator(ops.flatten(a))

    return ordered


def _like(maker: Function) -> Function:
    def made(a: Given, dtype: Given = None) -> Given:
        return maker(a, dtype=dtype)

    return made


def _where(condition: Given, x: Given, y: Given) -> Given:
    return ops.where(condition if ops.isdtype(condition.dtype, "bool") else condition != 0, x, y)


def _concatenate(arrays: Sequence[Given], axis: int | None = 0) -> Given:
    return ops.concat(arrays, axis=axis)


def _stack(arrays: Sequence[Given], axis: int = 0) -> Given:
    return ops.stack(arrays, axis=axis)


def _transpose(a: Given, axes: Sequence[int] | None = None) -> Given:
    return ops.permute_dims(a, tuple(axes) if axes is not None else tuple(reversed(range(a.ndim))))


def _squeeze(a: Given, axis: Axis = None) -> Given:
    return a.squeeze(axis)


def _flip(m: Given, axis: Axis = None) -> Given:
    return ops.flip(m, axis=axis)


def _roll(a: Given, shift: Given, axis: Axis = None) -> Given:
    return ops.roll(a, shift, axis=axis)


def _reshape(a: Given, shape: Given) -> Given:
    return ops.reshape(a, tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _take(a: Given, indices: Given, axis: int | None = None) -> Given:
    return ops.take(ops.flatten(a) if axis is None else a, indices, axis=axis or 0)


def _take_along_axis(arr: Given, indices: Given, axis: int = -1) -> Given:
    return ops.take_along_axis(arr, indices, axis=axis)


def _clip(a: Given, a_min: Given = None, a_max: Given = None) -> Given:
    return ops.clip(a, a_min, a_max)


def _round(a: Given, decimals: int = 0) -> Given:
    return rounded(a, decimals or None)


def _dot(a: Given, b: Given) -> Given:
    if max(np.ndim(a), np.ndim(b)) > 2:  # there it folds other axes than a product of matrices
        return NotImplemented
    return ops.matmul(a, b) if np.ndim(a) and np.ndim(b) else ops.multiply(a, b)


def _tensordot(a: Given, b: Given, axes: Given = 2) -> Given:
    return ops.tensordot(a, b, axes=axes)


def _einsum(subscripts: str, *operands: Given) -> Given:
    return ops.einsum(subscripts, *operands)


def _outer(a: Given, b: Given) -> Given:
    return ops.outer(ops.flatten(a), ops.flatten(b))


def _triangle(operator: Function) -> Function:
    def triangle(m: Given, k: int = 0) -> Given:
        return operator(m, k=k)

    return triangle


def _ravel(a: Given) -> Given:
    return ops.flatten(a)


def _swapaxes(a: Given, axis1: int, axis2: int) -> Given:
    return ops.transpose(a, axis1, axis2)


def _moveaxis(a: Given, source: Axis, destination: Axis) -> Given:
    return ops.moveaxis(a, source, destination)


def _expand_dims(a: Given, axis: Axis) -> Given:
    return ops.expand_dims(a, axis)


def _broadcast_to(array: Given, shape: Given) -> Given:
    return ops.broadcast_to(array, tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _full_like(a: Given, fill_value: Given, dtype: Given = None) -> Given:
    return full_like(a, fill_value, dtype=dtype)


def _asked(name: str) -> Function:
    return lambda a: getattr(a, name)


_ELEMENTWISE: dict[Given, Function] = {
    # Those that are written over several rows, and the product of matrices.
    **{getattr(np, name): getattr(ops, name) for name in ("cosh", "sinh", "hypot", "logaddexp", "log10")},
    **{getattr(np, f"arc{name}"): getattr(ops, f"a{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{getattr(np, name): getattr(ops, name) for name in ("square", "signbit", "positive", "matmul")},
}
_FOLDS: dict[Given, Function] = {
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
_ARRANGED: dict[Given, Function] = {
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
_OTHER: dict[Given, Function] = {
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
FUNCTIONS: Mapping[Given, Function] = MappingProxyType({**_ELEMENTWISE, **_FOLDS, **_ARRANGED, **_OTHER})
"""By the function of NumPy."""
