"""What a traced function saw from outside, and a quick look whether it is still there.

Names of closures and modules are looked at by identity. So is what the objects behind them hold: the entries of lists
and dictionaries, and the attributes of objects of the user's own classes and of namespaces. Arrays found there are
arguments of the program, so that writing into one needs no new trace; putting another in its place does.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from tessera.kernels.captures import outside, unchanged
from tessera.kernels.control import is_kernel_module
from tessera.lang.methods import Method

Check = Callable[[], bool]

_METHODS = (types.MethodType, Method)
_MOST_OBJECTS = 10_000
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, types.ModuleType, types.BuiltinFunctionType)


class Watch:
    """What a function, and helpers that it uses, see from outside, as it is before the function is traced.

    What tracing itself changes, a list that the function appends to for one, is not looked at afterwards: it is what
    the function does, not what it depends on.
    """

    def __init__(self, function: Callable[..., Any], *more: Any) -> None:
        self.functions = [one for one in (function, *more) if _plain(one) is not None]
        roots: list[Any] = [one.__self__ for one in self.functions if isinstance(one, _METHODS)]
        self.sees_names = False
        seen: set[int] = set()
        queue: list[Any] = list(self.functions)
        while queue:
            plain = _plain(queue.pop())
            if plain is None or id(plain) in seen or not is_kernel_module(plain.__module__):
                continue
            seen.add(id(plain))
            for capture in outside(plain):
                self.sees_names = True
                queue.append(capture.value)
                if isinstance(capture.value, _METHODS):
                    roots.append(capture.value.__self__)
                elif not isinstance(capture.value, types.FunctionType):
                    roots.append(capture.value)
        self.contents = list(_contents(roots))

    def settled(self, more: Iterable[Check] = ()) -> Check | None:
        """After tracing: a quick look whether all is as it was; None where there is nothing to look at."""
        checks = [*(check for check in self.contents if check()), *more]
        if self.sees_names:
            checks.insert(0, unchanged(*self.functions))
        if not checks:
            return None
        return checks[0] if len(checks) == 1 else lambda: all(check() for check in checks)


def _plain(value: Any) -> types.FunctionType | None:
    while True:
        if isinstance(value, _METHODS):
            value = value.__func__
        elif not isinstance(value, types.FunctionType) and isinstance(
            wrapped := getattr(value, "__wrapped__", None), types.FunctionType
        ):
            value = wrapped
        else:
            return value if isinstance(value, types.FunctionType) else None


def _contents(roots: list[Any]) -> Iterator[Check]:
    """A check for each container and object that can be reached."""
    seen: dict[int, Any] = {}
    queue: list[Any] = list(roots)
    while queue and len(seen) < _MOST_OBJECTS:
        value: Any = queue.pop()
        if isinstance(value, _PLAIN) or id(value) in seen:
            continue
        seen[id(value)] = value
        if value.__class__ in (list, tuple):
            items = tuple(cast("list[Any]", value))
            queue += items
            if value.__class__ is list:
                yield _same_items(cast("list[Any]", value), items)
        elif isinstance(value, dict):
            held = cast("dict[Any, Any]", value)
            queue += list(held.values())
            yield _same_entries(held, dict(held))
        elif isinstance(value, set):
            members = cast("set[Any]", value)
            yield _same_set(members, set(members))
        elif is_users(value):
            attributes = cast("dict[str, Any]", vars(value))
            queue += list(attributes.values())
            yield _same_entries(attributes, dict(attributes))


def is_users(value: Any) -> bool:
    """Whether an object is of a class that a user wrote, and has attributes; or a namespace that holds theirs."""
    if isinstance(value, types.SimpleNamespace) or type(value).__module__ == "argparse":
        return hasattr(value, "__dict__")
    return is_kernel_module(type(value).__module__) and hasattr(value, "__dict__") and not callable_only(value)


def callable_only(value: Any) -> bool:
    return isinstance(value, types.FunctionType | types.MethodType | type)


def _same_items(held: list[Any], items: tuple[Any, ...]) -> Check:
    def check() -> bool:
        return len(held) == len(items) and all(map(_is, held, items))

    return check


def _same_entries(held: dict[Any, Any], entries: dict[Any, Any]) -> Check:
    values = tuple(entries.values())
    keys = tuple(entries)

    def check() -> bool:
        return len(held) == len(keys) and all(map(_is, held.values(), values)) and tuple(held) == keys

    return check


def _same_set(held: set[Any], members: set[Any]) -> Check:
    return lambda: held == members


def _is(left: Any, right: Any) -> bool:
    return left is right
