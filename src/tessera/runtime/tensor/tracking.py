"""Shape tracking: while it is on, tensors remember how they came to their shapes, and errors tell it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from tessera.dtypes.types import DType
from tessera.errors import TesseraError, caller_span
from tessera.shapes.expr import format_shape
from tessera.shapes.history import ShapeHistory, tell
from tessera.tracebacks import trim


class Shaped(Protocol):
    """A tensor, as far as its history is concerned."""

    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]: ...


P = ParamSpec("P")
T = TypeVar("T", bound=Shaped)
# By id, because tensors compare elementwise and so cannot be keys; an entry goes when its tensor does.
_Histories = dict[int, tuple[weakref.ref[Shaped], ShapeHistory]]
_histories: ContextVar[_Histories | None] = ContextVar("shape histories", default=None)
histories = _histories.get  # None where shapes are not tracked; bound once, since every new tensor asks


@contextmanager
def track_shapes() -> Generator[None]:
    """Within this block, each tensor made remembers the operations and source lines that led to its shape.

    An error about tensors then tells their story, and `shape_history(tensor)` gives it at any time.
    """
    token = _histories.set({})
    try:
        yield
    finally:
        _histories.reset(token)


def shape_history(tensor: Shaped) -> ShapeHistory:
    """How a tensor came to its shape, as far as that was tracked; a traced value always knows."""
    known = getattr(type(tensor), "history", None)
    if known is not None:
        return cast("Any", tensor).history
    histories = _histories.get() or {}
    found = histories.get(id(tensor))
    return found[1] if found is not None else ShapeHistory("given", tensor.shape)


def remember(tensor: Shaped, history: ShapeHistory | None = None) -> None:
    """Notes a tensor's history; without one, it begins here, at the user's line."""
    histories = _histories.get()
    if histories is None:
        return
    key = id(tensor)
    forget = weakref.ref(tensor, lambda _: histories.pop(key, None))
    histories[key] = forget, history or ShapeHistory("made", tensor.shape, span=caller_span())


def tracked(method: Callable[Concatenate[T, P], T]) -> Callable[Concatenate[T, P], T]:
    """A method that makes a tensor from `self`: the result's history goes on from there."""

    @functools.wraps(method)
    def call(self: T, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result = method(self, *args, **kwargs)
        except Exception as error:
            if isinstance(error, TesseraError) and _histories.get() is not None:
                operands = (self, *[value for value in args if type(value) is type(self)])
                error.shapes = error.shapes or tuple(f"{format_shape(t.shape)} of {t.dtype}" for t in operands)
                error.story = error.story or tell([shape_history(tensor) for tensor in operands])
            trim(error)
            raise
        if _histories.get() is None:
            return result
        if type(result) is type(self):  # an operator may answer NotImplemented
            remember(result, shape_history(self).step(method.__name__, result.shape, caller_span()))
        return result

    return call
