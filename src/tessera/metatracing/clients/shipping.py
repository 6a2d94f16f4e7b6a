"""Kernels for another process: functions go by value, so that no user's script is run again there.

A function of a user is its code, its defaults and what it sees from outside: all that its fingerprint is made of.
Functions of libraries and modules go by their names. Kernels with objects that cannot be sent, of a class that only
exists in a script say, are compiled in this process.
"""

from __future__ import annotations

import ast
import io
import marshal
import pickle
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import CellType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple, cast

from tessera import knobs
from tessera.subprocesses import find_also, users_modules
from tessera.tile.calls.settings import Settings
from tessera.tile.identity.captures import outside
from tessera.tile.identity.pickling import Named
from tessera.tile.language.kernel_code import is_kernel_module


class NotShippable(Exception):  # noqa: N818  (an answer, not an error that users see)
    """A value that cannot be sent to another process."""


def pack(value: Any) -> bytes:
    """A value with its functions, as bytes."""
    stream = io.BytesIO()
    # Before it is read: the modules that are known here only because this process's script lies beside them.
    pickle.dump(users_modules(), stream, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        _Packer(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotShippable(str(error)) from None
    return stream.getvalue()


def unpack(data: bytes) -> Any:
    """The value that `pack` packed. It runs code from the bytes: only for bytes of this user's own process."""
    stream = io.BytesIO(data)
    find_also(pickle.load(stream))
    return pickle.load(stream)


class SentSettings(NamedTuple):
    """The knobs that hold around a call, for the process that compiles for it."""

    knobs: Mapping[str, Any]

    @staticmethod
    def of(here: Settings, names: Sequence[str]) -> SentSettings:
        """These settings of a call by their names, and where its cache is."""
        sent = {name: getattr(here, name) for name in names} | {"cpu_level": knobs.cpu_level.value}
        folder = str(knobs.cache_dir.value.absolute())
        return SentSettings(sent | {"cache_dir": folder, "cache_size": knobs.cache_size.value})

    @contextmanager
    def held(self) -> Generator[None]:
        """Holds them as long as a `with` is around; there is machine code in any case."""
        with ExitStack() as stack:
            for name, value in {"interpret": False, "backend": "auto", **self.knobs}.items():
                if value is not None:
                    stack.enter_context(getattr(knobs, name).using(value))
            yield


class _Packer(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType):
            return _function(obj)
        if isinstance(obj, Named) and is_kernel_module(cast("Any", obj).__module__):
            return obj.as_made()
        if isinstance(obj, ModuleType):
            if obj.__name__ == "__main__" or sys.modules.get(obj.__name__) is not obj:
                raise NotShippable(f"the module {obj.__name__}")
            return import_module, (obj.__name__,)
        if isinstance(obj, CodeType):
            return marshal.loads, (marshal.dumps(obj),)
        if isinstance(obj, MappingProxyType):
            return dict, (dict(cast("dict[Any, Any]", obj)),)
        return NotImplemented


def _function(function: FunctionType) -> Any:
    if not is_kernel_module(function.__module__):
        # A function goes by its name where that names it; the name of a library's kernel names the kernel.
        there = getattr(sys.modules.get(function.__module__), function.__qualname__, None)
        if getattr(there, "__wrapped__", None) is not function:
            return NotImplemented
        return library_function, (function.__module__, function.__qualname__)
    seen = {found.name: found.value for found in outside(function) if found.cell is None}
    seen |= {name: function.__globals__[name] for name in _annotated(function) if name in function.__globals__}
    free, closure = function.__code__.co_freevars, function.__closure__ or ()
    cells = {name: cell.cell_contents for name, cell in zip(free, closure, strict=True) if _is_filled(cell)}
    state = {
        "globals": {name: value for name, value in seen.items() if name.isidentifier()},
        "cells": cells,
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "annotations": _annotations(function),
    }
    made = (marshal.dumps(function.__code__), function.__module__, function.__name__, function.__qualname__)
    # Functions may see each other: each is made empty first, and filled when all are there.
    return hollow, made, state, None, None, fill


def _annotations(function: FunctionType) -> dict[str, Any]:
    return {
        name: written if isinstance(written, str) or _can_be_sent(written) else repr(written)
        for name, written in function.__annotations__.items()
    }


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def _annotated(function: FunctionType) -> Iterator[str]:
    """The names in annotations that are kept as text."""
    for written in function.__annotations__.values():
        if isinstance(written, str):
            for node in ast.walk(ast.parse(written, mode="eval")):
                if isinstance(node, ast.Name):
                    yield node.id


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (an empty one raises)
    except ValueError:
        return False
    return True


def library_function(module: str, name: str) -> FunctionType:
    """The function of a library's kernel."""
    return getattr(import_module(module), name).__wrapped__


def hollow(code: bytes, module: str, name: str, qualname: str) -> FunctionType:
    """A function that sees nothing yet."""
    loaded = marshal.loads(code)
    scope: dict[str, Any] = {"__name__": module, "__builtins__": __builtins__}
    cells = tuple([CellType() for _ in loaded.co_freevars])
    made = FunctionType(loaded, scope, name, None, cells)
    made.__module__, made.__qualname__ = module, qualname
    return made


def fill(function: FunctionType, state: dict[str, Any]) -> None:
    """Gives a function what it sees."""
    function.__globals__.update(state["globals"])
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in state["cells"]:
            cell.cell_contents = state["cells"][name]
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["kwdefaults"]
    function.__annotations__ = state["annotations"]
