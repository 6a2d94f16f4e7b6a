"""Fingerprints of functions and values: equal in every process, and different whenever a kernel might be.

A function is its code, where it was written, its defaults, and all that it sees from outside, helpers included. What
cannot be told from its value alone, such as an object of a user's class, has no fingerprint; kernels that use it are
compiled in each process anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import cache_from_source
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from tessera import knobs
from tessera.dtypes.types import DType, Policy
from tessera.kernels.captures import outside
from tessera.kernels.control import is_kernel_module
from tessera.kernels.named import found_as
from tessera.kernels.schedule import Schedule, Space
from tessera.runtime.build import is_unedited


class NoFingerprint(Exception):  # noqa: N818  (an answer, not an error: nobody sees it)
    """Something that cannot be told from its value."""


def identity_of(*values: Any) -> tuple[object, ...] | None:
    """Values as parts of a key; None where there is no such thing, or where functions are not as in their files."""
    work = Fingerprints()
    try:
        parts = work.all(values)
    except NoFingerprint as reason:
        if "cache" in knobs.logs.value:
            import logging

            logging.getLogger("tessera.cache").warning("a kernel is not kept: it depends on %s", reason)
        return None
    return parts if all(_is_as_written(function.__code__) for function in work.functions) else None


def _is_as_written(code: CodeType) -> bool:
    """Whether the file of a function has what runs: tracing reads it.

    That is so where it was not edited since this process began, and bytecode is younger. Python takes bytecode of the
    same second for the file's. Otherwise the file is compiled, to see whether it has the function.
    """
    file = code.co_filename
    if is_unedited([file]) and not _has_old_bytecode(file):
        return True
    try:
        return code in _codes_in(file, os.stat(file).st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return False


def _has_old_bytecode(file: str) -> bool:
    """Whether Python may have run bytecode that was there before the file was as it is."""
    try:
        return os.stat(cache_from_source(file)).st_mtime_ns <= os.stat(file).st_mtime_ns
    except (OSError, NotImplementedError):  # there is no bytecode, or Python was told to keep none: it read the file
        return False


@lru_cache(maxsize=64)
def _codes_in(file: str, _changed: int) -> frozenset[CodeType]:
    return frozenset(_within(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)))


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _within(inner)


class Fingerprints:
    """One key at work. Functions may see each other: the second time, one is told by its number."""

    def __init__(self) -> None:
        self.functions: dict[FunctionType, int] = {}

    def of(self, value: Any) -> object:
        kind = cast("type[Any]", type(value))
        if kind in _PLAIN:
            return value
        if kind in _RULES:
            return (kind.__name__, _RULES[kind](self, value))
        if isinstance(value, np.generic):
            number = cast("Any", value)
            return ("number", number.dtype.str, number.tobytes())
        if (parts := getattr(kind, "identity_parts", None)) is not None:
            return (kind.__qualname__, self.all(parts(value)))
        if isinstance(value, type) and not is_kernel_module(value.__module__):
            return ("type", *_place(value))
        raise NoFingerprint(f"something of type {kind.__qualname__}")  # its text may be long, or on a device

    def all(self, values: Any) -> tuple[object, ...]:
        return tuple([self.of(value) for value in values])

    def function(self, function: FunctionType) -> object:
        if not is_kernel_module(function.__module__):
            return _place(function)
        if function in self.functions:
            return self.functions[function]
        self.functions[function] = len(self.functions)
        code = function.__code__
        return (
            self.code(code),
            self.all(function.__defaults__ or ()),
            self.all((function.__kwdefaults__ or {}).items()),
            tuple([(found.name, self.seen(found.value, code)) for found in outside(function)]),
        )

    def seen(self, value: Any, code: CodeType) -> object:
        """A value as code sees it: of a module, the attributes that it might use."""
        if not isinstance(value, ModuleType):
            return self.of(value)
        if not is_kernel_module(value.__name__):
            return value.__name__
        used = sorted(set(_attributes(code)) & vars(value).keys())
        return (value.__name__, tuple([(name, self.seen(vars(value)[name], code)) for name in used]))

    def code(self, code: CodeType) -> object:
        return (
            code.co_filename,
            code.co_firstlineno,
            code.co_qualname,
            code.co_linetable,
            code.co_code,
            code.co_exceptiontable,
            (code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            self.all(code.co_consts),
        )

    def builtin(self, function: BuiltinFunctionType) -> object:
        owner = function.__self__
        if not isinstance(owner, ModuleType) or is_kernel_module(owner.__name__):
            raise NoFingerprint(f"{function!r}")
        return (owner.__name__, function.__qualname__)

    def method(self, method: MethodType) -> object:
        return self.all((method.__func__, method.__self__))

    def partial(self, given: partial[Any]) -> object:
        return self.all((given.func, *given.args, *sorted(given.keywords.items())))

    def set(self, values: frozenset[Any]) -> object:
        return tuple(sorted(str(self.of(value)) for value in values))


def _place(value: Any) -> tuple[str, str]:
    """The module and the name that a function or type is found under; functions of one maker have a name in common.

    Under the name of a library's kernel there is the kernel, which has the function.
    """
    found = found_as(value)
    if found is not value and getattr(found, "__wrapped__", None) is not value:
        raise NoFingerprint(f"{value!r}, which its module does not have under its name")
    return value.__module__, value.__qualname__


def _ufunc(value: np.ufunc) -> str:
    if getattr(np, value.__name__, None) is not value:
        raise NoFingerprint(f"{value!r}")
    return value.__name__


def _attributes(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _attributes(inner)


_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_RULES: dict[type, Callable[[Fingerprints, Any], object]] = {
    tuple: Fingerprints.all,
    frozenset: Fingerprints.set,
    FunctionType: Fingerprints.function,
    MethodType: Fingerprints.method,
    partial: Fingerprints.partial,
    CodeType: Fingerprints.code,
    complex: lambda _, value: repr(value),
    EllipsisType: lambda _, value: repr(value),
    slice: lambda work, value: work.all((value.start, value.stop, value.step)),
    BuiltinFunctionType: Fingerprints.builtin,
    DType: lambda _, value: str(value),
    Policy: lambda _, value: str(value),
    Schedule: lambda _, value: str(value),
    Space: lambda work, value: work.of(value.choices),
    np.ufunc: lambda _, value: _ufunc(value),
}
