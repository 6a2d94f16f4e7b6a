"""The values that a kernel takes from around it: captured and global ones, its helpers' too; parts of its key.

Captured values are constants of the program, so they should not change under it: numbers, strings, tuples of those,
types, functions and objects. Lists, dictionaries and sets are refused, and arrays are arguments. What is behind
modules, classes and objects is looked at in each call; where it is another, there is another program.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from tessera.errors import CompileError, SourceSpan
from tessera.tile.identity.code_reads import reads_of
from tessera.tile.identity.dependencies import MISSING, Dependencies
from tessera.tile.identity.dependency_check import DependencyCheck
from tessera.tile.identity.static_keys import exact
from tessera.tile.language.kernel_code import is_kernel_module

_PLAIN = frozenset({int, bool, str, bytes, float, complex, type(None)})


class Capture(NamedTuple):
    """A value that a function sees from outside: in a cell of its closure, or among its globals."""

    owner: str
    scope: dict[str, Any]
    name: str
    span: SourceSpan
    value: Any
    cell: CellType | None


class CapturedValues:
    """The values that functions and their helpers take from outside: parts of a key, and a check for changes."""

    def __init__(self, functions: Sequence[Any]) -> None:
        for found in _reached(functions):
            _refuse_what_changes(found)
        found = Dependencies(functions)
        held = found.held()
        self.functions = tuple(functions)
        self.key: tuple[Hashable, ...] = tuple(
            [(one.kind, one.label, *map(_part, one.keys), *map(_part, one.values)) for one in held]
        )
        self.unwatched = found.unwatched
        self.is_unchanged = DependencyCheck(held, found.chains).check

    def serves(self, functions: Sequence[Any]) -> bool:
        """Whether it is what these functions see, still."""
        return (
            len(functions) == len(self.functions) and all(map(is_, functions, self.functions)) and self.is_unchanged()
        )


class _Itself:
    """An object as part of a key: equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _part(value: Any) -> Hashable:
    """A value as part of a key: plain ones by what they mean, all others by what they are."""
    kind = value.__class__
    if kind is slice:  # before Python 3.12 it has no hash
        return (kind, *map(_part, (value.start, value.stop, value.step)))
    if kind is tuple:
        return (kind, *map(_part, cast("tuple[Any, ...]", value)))
    return exact(value) if kind in _PLAIN or isinstance(value, np.generic) else _Itself(value)


def _reached(functions: Sequence[Any]) -> Iterator[Capture]:
    """The values that functions see from outside, then those that the helpers among them see, and so on."""
    seen: set[int] = set()
    queue = list(functions)
    while queue:
        function = _plain(queue.pop(0))
        if function is None or id(function) in seen or not is_kernel_module(function.__module__):
            continue
        seen.add(id(function))
        for found in outside(function):
            yield found
            queue.append(found.value)


def _plain(value: Any) -> FunctionType | None:
    while isinstance(value, partial | MethodType):
        value = cast("partial[Any]", value).func if isinstance(value, partial) else value.__func__
    return value if isinstance(value, FunctionType) else None


def outside(function: FunctionType) -> Iterator[Capture]:
    """The values that one function sees from outside, apart from Python's own names."""
    owner, scope = function.__name__, function.__globals__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, outer in reads_of(function.__code__).outer.items():
        if name in cells:
            try:
                yield Capture(owner, scope, name, outer.span, cells[name].cell_contents, cells[name])
            except ValueError:  # a cell that is filled later; using it raises where it is used
                continue
        elif (value := scope.get(name, MISSING)) is not MISSING:
            yield Capture(owner, scope, name, outer.span, value, None)


def _refuse_what_changes(found: Capture) -> None:
    value = found.value
    if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        return
    if hasattr(value, "__dlpack__") or not _is_hashable(value):
        raise CompileError(
            f"{found.owner} captures {found.name}, a {type(value).__name__}, "
            "which may change after the kernel is compiled",
            span=found.span,
            hint="pass arrays as arguments, and use a tuple or a number for constants",
        )


def _is_hashable(value: Any) -> bool:
    if value.__class__ in (slice, tuple):
        parts = (value.start, value.stop, value.step) if value.__class__ is slice else value
        return all(_is_hashable(part) for part in parts)
    try:
        hash(value)
    except TypeError:
        return False
    return True
