"""Attributes that are computed once.

Python's own `cached_property` takes a lock of its class until 3.12, for all objects together. A child that is forked
while another thread computes one would wait for that lock for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  (it is used as Python's own is)
    """Computed when it is first asked for. Threads that ask at once may all compute it, and get the same object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    if TYPE_CHECKING:  # code that knows the value may set it; a real `__set__` would make every access slow

        def __set__(self, instance: object, value: T) -> None: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # From now on the object has an attribute of its own, and this is not asked again.
        return vars(instance).setdefault(self.name, self.compute(instance))
