"""Methods that were jitted: what was compiled for an object is kept as long as there is the object, and no longer."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

from tessera.errors import TesseraError
from tessera.runtime.cache.newest import shorten

_MOST_STRONG = 8
"""Objects that cannot be referred to weakly: so many of them are kept, the latest."""
_MOST_WEAK = 4096
"""Objects whose compiled methods are kept, the latest: attributes that a program reads may lead back to its object."""

Held = Callable[..., Any] | weakref.WeakMethod[Any]
"""A function; of a method, what does not keep its object."""


def alive(held: Held) -> Callable[..., Any]:
    """The function."""
    if not isinstance(held, weakref.WeakMethod):
        return held
    found = cast("Callable[..., Any] | None", held())
    if found is None:
        raise TesseraError(
            "the object of a jitted method is gone, and so is what was compiled for it",
            hint="keep the object, or its method, while it is called",
        )
    return found


class Method:
    """A jitted method of an object, which it keeps, as methods do. All else is what was compiled for the object."""

    __slots__ = ("__self__", "__weakref__", "_jitted")
    __call__ = property(attrgetter("_jitted.__call__"))

    def __init__(self, jitted: Any, instance: Any) -> None:
        self._jitted = jitted
        self.__self__ = instance

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self._jitted.function

    @property
    def __func__(self) -> Any:
        """The plain function."""
        return self._jitted.function.__func__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __repr__(self) -> str:
        return f"<jit {self._jitted.name} of {self.__self__!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and self._jitted is other._jitted

    def __hash__(self) -> int:
        return hash(self._jitted)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self._jitted.__name__)


class Methods:
    """The compiled methods of objects, by object."""

    def __init__(self) -> None:
        self._weak: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self._strong: dict[int, tuple[Any, Any]] = {}

    def known(self, instance: Any) -> Any:
        """The compiled method of an object, by its identity; None without any."""
        key = id(instance)
        if (weak := self._weak.get(key)) is not None and weak[0]() is instance:
            return weak[1]
        return None if (strong := self._strong.get(key)) is None else strong[1]

    def of(self, function: Callable[..., Any], instance: Any, make: Callable[[Held], Any]) -> Any:
        """The same, made where there is none."""
        if (known := self.known(instance)) is not None:
            return known
        key, method = id(instance), types.MethodType(function, instance)
        try:
            made = make(weakref.WeakMethod(method))
        except TypeError:  # nothing can refer to it weakly
            made = make(method)
            self._strong[key] = (instance, made)
            shorten(self._strong, _MOST_STRONG)
            return made
        weak = self._weak

        def gone(gone_one: weakref.ref[Any]) -> None:
            if (found := weak.get(key)) is not None and found[0] is gone_one:  # another may be there by now
                weak.pop(key, None)

        weak[key] = (weakref.ref(instance, gone), made)
        shorten(weak, _MOST_WEAK)
        return made
