"""Copying and pickling of decorated functions, kernels and jitted ones: as Python does with functions.

A copy of a function is the function. One that its module has under its name is pickled by that name; another is made
again, of the function behind it, where that has a name.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

Made = tuple[Callable[..., Any], tuple[Any, ...]]
"""The function that makes an object again, and its arguments: the first is the decorated function."""


def found_as(value: Any) -> Any:
    """The object that the module of a function has under its name; None where there is none."""
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found


class Named:
    """Something that wraps a function, has its name and its module, and is called like it."""

    __slots__ = ()
    __qualname__: str
    __wrapped__: Any

    @abstractmethod
    def as_made(self) -> Made:
        """The function that makes another like it, and its arguments."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        if found_as(self) is self:
            return self.__qualname__
        make, (function, *others) = self.as_made()
        # Under the name of a function that was decorated there is what became of it, which has the function.
        there = found_as(function) if hasattr(function, "__qualname__") else None
        wraps = there is not function and getattr(there, "__wrapped__", None) is function
        return make, (there if wraps else function, *others)


def function_behind(given: Any) -> Any:
    """The function that pickling replaced by what wraps it."""
    return given.__wrapped__ if isinstance(given, Named) else given
