"""Fingerprints of functions and values: equal in every process, and different whenever a kernel might be.

A function is its code, where it was written, its defaults, and all that it sees from outside, helpers included. What
cannot be told from its value alone, such as an object of a user's class, has no fingerprint; kernels that use it are
compiled in each process anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from tessera import knobs
from tessera.dtypes.types import DType, Policy
from tessera.tile.identity.captures import outside
from tessera.tile.identity.code_reads import reads_of
from tessera.tile.identity.dependencies import ASKS_THE_WORLD, is_users_function
from tessera.tile.identity.pickling import found_as
from tessera.tile.language.kernel_code import is_as_written, is_kernel_module
from tessera.tile.language.schedule import Schedule, Space


class NoFingerprint(Exception):  # noqa: N818  (an answer, not an error: it is always caught)
    """Raised for something without an identity by value."""


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
    return parts if all(is_as_written(function.__code__) for function in work.functions) else None


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
            return ("type", *qualified_name(value))
        return self.other(value)

    def other(self, value: Any) -> object:
        """Something that is not told by its value alone."""
        raise NoFingerprint(f"something of type {type(value).__qualname__}")  # its text may be long, or on a device

    def all(self, values: Any) -> tuple[object, ...]:
        return tuple([self.of(value) for value in values])

    def function(self, function: FunctionType) -> object:
        if not is_users_function(function) or not is_kernel_module(function.__module__):
            if (function.__module__ or "").partition(".")[0] in ASKS_THE_WORLD or function is os.getenv:
                raise NoFingerprint(f"{function!r}, whose answers differ from process to process")
            return qualified_name(function)
        if function in self.functions:
            return self.functions[function]
        self.functions[function] = len(self.functions)
        code = function.__code__
        reads = reads_of(code)
        if reads.by_scope and (named := reads.words & function.__globals__.keys() - reads.outer.keys()):
            raise NoFingerprint(f"{', '.join(sorted(named))}, which {function.__name__} may ask for by name")
        for name, level in reads.imports:
            root = name.partition(".")[0]
            if level or is_kernel_module(name) or root in ASKS_THE_WORLD or root in ("os", "sys"):
                raise NoFingerprint(f"a module that {function.__name__} imports when it runs, {name}")
        for found in outside(function):
            if found.value is np and any(chain[0] == "random" for chain in reads.outer[found.name].chains):
                raise NoFingerprint("numpy.random, whose answers differ from process to process")
        return (
            self.code(code),
            self.all(function.__defaults__ or ()),
            self.all((function.__kwdefaults__ or {}).items()),
            self.all(list(function.__dict__.items())),
            tuple([(found.name, self.seen(found.value, code)) for found in outside(function)]),
        )

    def seen(self, value: Any, code: CodeType) -> object:
        """A value as code sees it: of a module, the attributes that it might use."""
        if not isinstance(value, ModuleType):
            return self.of(value)
        reads, mapping = reads_of(code), vars(value)
        used = sorted((reads.attributes | (reads.words if reads.by_name else set[str]())) & mapping.keys())
        if is_kernel_module(value.__name__):
            return (value.__name__, tuple([(name, self.seen(mapping[name], code)) for name in used]))
        if value.__name__.partition(".")[0] in ASKS_THE_WORLD and any(callable(mapping[name]) for name in used):
            raise NoFingerprint(f"{value.__name__}, whose answers differ from process to process")
        if value.__name__.partition(".")[0] == "tessera":
            return value.__name__
        # Of a library's own, what has a value is told by it; what changes as it runs has no fingerprint.
        kept: list[object] = []
        for name in used:
            found = mapping[name]
            if isinstance(found, ModuleType | type) or callable(found):
                if found is os.getenv or found is open:
                    raise NoFingerprint(f"{value.__name__}.{name}, whose answers differ from process to process")
                continue
            kept.append((name, self.of(found)))
        return (value.__name__, tuple(kept))

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
        name = owner.__name__ if isinstance(owner, ModuleType) else None
        if name is None or is_kernel_module(name) or name.partition(".")[0] in ASKS_THE_WORLD or function in _ASKING:
            raise NoFingerprint(f"{function!r}")
        return (name, function.__qualname__)

    def method(self, method: MethodType) -> object:
        return self.all((method.__func__, method.__self__))

    def partial(self, given: partial[Any]) -> object:
        return self.all((given.func, *given.args, *sorted(given.keywords.items())))

    def set(self, values: frozenset[Any]) -> object:
        return tuple(sorted(str(self.of(value)) for value in values))


def qualified_name(value: Any) -> tuple[str, str]:
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


_ASKING = (open, input)
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
