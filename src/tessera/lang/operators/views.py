"""Operators that arrange the same elements otherwise, outside of traces: views of a tensor's memory, without copies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from tessera.errors import ShapeError, TesseraError
from tessera.lang.tracing.values import current_or_none
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes import rules

Given: TypeAlias = Any
P = ParamSpec("P")
R = TypeVar("R")


def view_by(view: Callable[..., Given]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Outside of a trace, the operator on a tensor is `view`, which gives the same elements in the same memory."""

    def decorate(operator: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(operator)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if args and args[0].__class__ is Tensor and current_or_none() is None:
                try:
                    return view(*args, **kwargs)
                except (TypeError, ValueError) as problem:  # arguments that are none: the operator says which
                    if isinstance(problem, TesseraError):
                        raise
            return operator(*args, **kwargs)

        return call

    return decorate


def reshape_view(x: Tensor, /, shape: Given, *, copy: bool | None = None) -> Tensor:
    return x.reshape(shape, copy=copy)


def flatten_view(x: Tensor, /) -> Tensor:
    return x.reshape((x.size,))


def move_view(x: Tensor, source: Given, destination: Given, /) -> Tensor:
    return x.permute(order_of_move(x.ndim, source, destination))


def order_of_move(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> tuple[int, ...]:
    """The permutation that brings axes to other places; the others keep their order."""
    come, go = (
        [rules.normalize_axis(axis, rank, where="moveaxis") for axis in ([axes] if isinstance(axes, int) else axes)]
        for axes in (source, destination)
    )
    if len(come) != len(go):
        raise ShapeError(f"moveaxis: {len(come)} axes go to {len(go)} positions", hint="name as many as there are")
    for axes in (come, go):
        if len(set(axes)) != len(axes):
            raise ShapeError(f"moveaxis: {axes} names an axis twice", hint="name each axis once")
    rest = iter([axis for axis in range(rank) if axis not in come])
    places = dict(zip(go, come, strict=True))
    return tuple([places[at] if at in places else next(rest) for at in range(rank)])


def expand_view(x: Tensor, /, axis: Given = 0) -> Tensor:
    return x.expand_dims(axis)


def broadcast_views(*arrays: Given) -> list[Given]:
    arrays = tuple([asarray(x) for x in arrays])
    shape = rules.broadcast(*[x.shape for x in arrays], where="broadcast_arrays")
    return [x if x.shape == shape else x.broadcast_to(shape) for x in arrays]


def unstack_views(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    along = rules.normalize_axis(axis, x.ndim, where="unstack")
    return tuple([x[(slice(None),) * along + (at,)] for at in range(x.shape[along])])


def split_views(x: Tensor, parts: int | Sequence[int], /, axis: int = 0) -> tuple[Tensor, ...]:
    along = rules.normalize_axis(axis, x.ndim, where="split")
    found: list[Tensor] = []
    start = 0
    for size in sizes_of_parts(parts, x.shape[along], along):
        found.append(x[(slice(None),) * along + (slice(start, start + size),)])
        start += size
    return tuple(found)


def sizes_of_parts(parts: int | Sequence[int], size: int, axis: int) -> Sequence[int]:
    """The sizes of equal parts, or those that are given; an error where they do not add up."""
    sizes = [size // parts] * parts if isinstance(parts, int) and parts > 0 and size % parts == 0 else parts
    if isinstance(sizes, int) or sum(sizes) != size:
        raise ShapeError(
            f"split: {parts} does not divide axis {axis} of size {size}",
            hint="give a number of equal parts, or sizes that add up",
        )
    return sizes
