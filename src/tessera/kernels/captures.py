"""What a kernel takes from around it: captured and global values, its helpers' too. They are part of its key.

Captured values are constants of the program, so they must not change under it: numbers, strings, tuples of those,
types, functions and other immutable values. Arrays are arguments.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

from tessera.errors import CompileError, SourceSpan, span_of
from tessera.kernels.control import is_kernel_module

_MISSING = object()


class Capture(NamedTuple):
    """A value that a function sees from outside: in a cell of its closure, or among its globals."""

    owner: str
    scope: dict[str, Any]
    name: str
    span: SourceSpan
    value: Any
    cell: CellType | None


def captured(*functions: Any) -> tuple[object, ...]:
    """The values that functions, and the helpers they use, see from outside; equal for equal programs."""
    return tuple((found.name, found.value.__class__, _constant(found)) for found in _reached(functions))


def unchanged(*functions: Any) -> Callable[[], bool]:
    """A quick function that says whether everything `captured` looked at is still the same object.

    Names that are gone are a NameError or a ValueError.
    """
    names: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
    cells: dict[int, tuple[CellType, Any]] = {}
    for found in _reached(functions):
        if found.cell is not None:
            cells[id(found.cell)] = (found.cell, found.value)
        else:
            names.setdefault(id(found.scope), (found.scope, {}))[1][found.name] = found.value
    checks = [_same_names(scope, seen) for scope, seen in names.values()]
    checks += [_same_cells(tuple(cells.values()))] if cells else []
    return checks[0] if len(checks) == 1 else _written(checks, "{}()")


def _same_names(scope: dict[str, Any], seen: dict[str, Any]) -> Callable[[], bool]:
    """Written as code of the module that the names are global in, so that Python finds them as fast as it can."""
    # Tools that rewrite code, test runners say, use names that no program can write and therefore none can change.
    seen = {name: value for name, value in seen.items() if name.isidentifier()}
    if not seen:
        return lambda: True
    mark = "seen"
    while any(name.startswith(mark) for name in seen):
        mark = f"_{mark}"
    values = ", ".join(f"{mark}{place}" for place in range(len(seen)))
    tests = " and ".join(f"{name} is {mark}{place}" for place, name in enumerate(seen))
    made = eval(f"lambda {values}: lambda: {tests}", scope)  # it defines nothing there
    return made(*seen.values())


def _same_cells(seen: tuple[tuple[CellType, Any], ...]) -> Callable[[], bool]:
    return _written(seen, "{0}[0].cell_contents is {0}[1]")


def _written(asked: Sequence[Any], test: str) -> Callable[[], bool]:
    """Whether a test holds of everything: one after the other, for every call asks, and a loop would take long."""
    names = [f"asked{place}" for place in range(len(asked))]
    tests = " and ".join(test.format(name) for name in names) or "True"
    return eval(f"lambda {', '.join(names)}: lambda: {tests}")(*asked)


def _reached(functions: tuple[Any, ...]) -> Iterator[Capture]:
    """What functions see from outside, then what the helpers among that see, and so on."""
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
    """What one function sees from outside, apart from Python's own names."""
    owner, scope = function.__name__, function.__globals__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, span in _names(function.__code__):
        if name in cells:
            try:
                yield Capture(owner, scope, name, span, cells[name].cell_contents, cells[name])
            except ValueError:  # a cell that is filled later; using it raises where it is used
                continue
        elif (value := scope.get(name, _MISSING)) is not _MISSING and not hasattr(builtins, name):
            yield Capture(owner, scope, name, span, value, None)


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


def _constant(found: Capture) -> Hashable:
    value = found.value
    if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        return value
    if hasattr(value, "__dlpack__") or not _is_hashable(value):
        raise CompileError(
            f"{found.owner} captures {found.name}, a {type(value).__name__}, which may change under the program",
            span=found.span,
            hint="pass arrays as arguments, and use a tuple or a number for constants",
        )
    return value


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
