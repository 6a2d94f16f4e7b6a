"""What a kernel takes from around it: captured and global values, its helpers' too. They are part of its key.

Captured values are constants of the program, so they must not change under it: numbers, strings, tuples of those,
types, functions and other immutable values. Arrays are arguments.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Hashable, Iterator
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from tessera.errors import CompileError, SourceSpan, span_of
from tessera.kernels.control import is_kernel_module

_MISSING = object()


def captured(*functions: Any) -> tuple[object, ...]:
    """The values that functions, and the helpers they use, see from outside; equal for equal programs."""
    found: list[object] = []
    seen: set[int] = set()
    queue = list(functions)
    while queue:
        function = _plain(queue.pop(0))
        if function is None or id(function) in seen or not is_kernel_module(function.__module__):
            continue
        seen.add(id(function))
        for name, span, value in _outside(function):
            found.append((name, value.__class__, _constant(function, name, value, span)))
            queue.append(value)
    return tuple(found)


def _plain(value: Any) -> FunctionType | None:
    while isinstance(value, partial | MethodType):
        value = cast("partial[Any]", value).func if isinstance(value, partial) else value.__func__
    return value if isinstance(value, FunctionType) else None


def _outside(function: FunctionType) -> Iterator[tuple[str, SourceSpan, Any]]:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, span in _names(function.__code__):
        if name in cells:
            try:
                yield name, span, cells[name].cell_contents
            except ValueError:  # a cell that is filled later; using it raises where it is used
                continue
        elif (value := function.__globals__.get(name, _MISSING)) is not _MISSING and not hasattr(builtins, name):
            yield name, span, value


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[tuple[str, SourceSpan], ...]:
    """The outer names that code reads, each with its first place."""
    found: dict[str, SourceSpan] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") and instruction.argval not in found:
            found[instruction.argval] = span_of(code, instruction.offset)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            for name, span in _names(inner):
                found.setdefault(name, span)
    return tuple((name, span) for name, span in found.items() if name not in code.co_cellvars)


def _constant(function: FunctionType, name: str, value: Any, span: SourceSpan) -> Hashable:
    if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        return value
    if hasattr(value, "__dlpack__") or not _is_hashable(value):
        raise CompileError(
            f"{function.__name__} captures {name}, a {type(value).__name__}, which may change under the program",
            span=span,
            hint="pass arrays as arguments, and use a tuple or a number for constants",
        )
    return value


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
