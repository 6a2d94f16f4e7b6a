"""A function's annotated shapes and dtypes, and the check of arguments and results against them."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, cast, get_args, get_origin, is_typeddict

import numpy as np

from tessera.cached_property import cached_property
from tessera.errors import DtypeError, ShapeError, SourceSpan, TesseraError
from tessera.shapes.annotations import FORM_NAMES, KTile, Out, TensorType, Tile
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import Size, dim, format_shape
from tessera.shapes.sources import source_lines

RETURN = "return"

BARE: dict[object, TensorType] = {
    Tile: TensorType((), form="tile", any_leading=True),
    KTile: TensorType((), form="ktile", any_leading=True),
    Out: TensorType((), form="ktile", any_leading=True, out=True),
}
"""The meaning of the classes as annotations without brackets: any shape, any dtype."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One tensor to check: what it must be, what came, and its name in messages."""

    type: TensorType
    value: object
    where: str
    label: str
    span: SourceSpan | None

    @property
    def shape(self) -> tuple[Size, ...]:
        return tuple(cast(Sequence[Size], getattr(self.value, "shape", ())))

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset[str]().union(*(dim(item).symbols for item in self.type.dims))

    def __str__(self) -> str:
        return f"{self.label}: {self.type} given {format_shape(self.shape)}"


class Signature:
    """The annotations of one function: a TensorType per parameter, or a tuple, list, dict or class that has some."""

    def __init__(self, parameters: Mapping[str, object], result: object = None, code: CodeType | None = None) -> None:
        self.parameters = dict(parameters)
        self.result = result
        self._code = code

    @staticmethod
    def of(function: Callable[..., object]) -> Signature:
        """Reads the annotations of `function`; those that do not speak of shapes are left out."""
        plain = inspect.unwrap(function)
        plain = getattr(plain, "__func__", plain)
        if not isinstance(plain, FunctionType):
            return Signature({})
        kinds = {name: parameter.kind for name, parameter in inspect.signature(plain).parameters.items()}
        found: dict[str, object] = {}
        for name, written in inspect.get_annotations(plain).items():
            read = _evaluate(plain, name, written)
            if kinds.get(name) is inspect.Parameter.VAR_POSITIONAL:
                read = tuple[cast(Any, read), ...]
            elif kinds.get(name) is inspect.Parameter.VAR_KEYWORD:
                read = dict[str, cast(Any, read)]
            if _speaks_of_shapes(read):
                found[name] = read
        result = found.pop(RETURN, None)
        return Signature(found, result, plain.__code__)

    def bind(self, arguments: Mapping[str, object]) -> ShapeEnvironment:
        """Checks the annotated arguments, and returns what their symbols stand for."""
        environment = ShapeEnvironment()
        seen: list[_Leaf] = []
        for name, expected in self.parameters.items():
            if name in arguments:
                where = f"argument '{name}'"
                for leaf in _leaves(expected, arguments[name], where, name, self._spans.get(name)):
                    seen.append(leaf)
                    _check(leaf, environment, seen)
        return environment

    def check_result(self, value: object, environment: ShapeEnvironment) -> None:
        """Checks what the function returned, with the symbols its arguments bound."""
        for leaf in _leaves(self.result, value, "result", "result", self._spans.get(RETURN)):
            _check(leaf, environment, [leaf])

    @property
    def outputs(self) -> frozenset[str]:
        """The parameters that the function fills."""
        read = ((name, BARE.get(found, found)) for name, found in self.parameters.items())
        return frozenset(name for name, found in read if isinstance(found, TensorType) and found.out)

    def span(self, name: str) -> SourceSpan | None:
        """Where the annotation of a parameter is written."""
        return self._spans.get(name)

    @cached_property
    def _spans(self) -> dict[str, SourceSpan]:
        return {} if self._code is None else _annotation_spans(self._code, self._code.co_filename)


def _leaves(expected: object, value: object, where: str, label: str, span: SourceSpan | None) -> Iterator[_Leaf]:
    """The tensors inside `value` that `expected` speaks of."""
    expected = BARE.get(expected, expected) if isinstance(expected, type) else expected
    if isinstance(expected, TensorType):
        if value is not None or not expected.optional:
            yield _Leaf(expected, value, where, label, span)
        return
    origin, inner = get_origin(expected), get_args(expected)
    if origin is dict and isinstance(value, Mapping):
        for key, item in cast(Mapping[object, object], value).items():
            yield from _leaves(inner[1], item, f"{where}, entry {key!r}", f"{label}[{key!r}]", span)
    elif origin in (tuple, list) and isinstance(value, tuple | list):
        items = cast(Sequence[object], value)
        repeated = origin is list or inner[-1:] == (Ellipsis,)
        if not repeated and len(items) != len(inner):
            raise ShapeError(
                f"{where}: expected {len(inner)} values, got {len(items)}",
                hint=f"the annotation names {len(inner)} values{f' ({span})' if span else ''}",
            )
        for index, item in enumerate(items):
            inside = inner[0] if repeated else inner[index]
            yield from _leaves(inside, item, f"{where}, item {index}", f"{label}[{index}]", span)
    else:
        for name, inside, item in entries(expected, value):
            yield from _leaves(inside, item, f"{where}, entry {name!r}", f"{label}[{name!r}]", span)


def entries(expected: object, value: object) -> Iterator[tuple[str, object, object]]:
    """The fields of a TypedDict, a NamedTuple or a dataclass that speak of shapes: names, annotations and values."""
    for name, inside in (_fields(expected) if isinstance(expected, type) else {}).items():
        if isinstance(value, Mapping):
            held = cast("Mapping[object, object]", value)
            if name in held:
                yield name, inside, held[name]
        elif hasattr(value, name):
            yield name, inside, getattr(value, name)


@lru_cache(maxsize=256)
def _fields(kind: type) -> Mapping[str, object]:
    if not (is_typeddict(kind) or is_dataclass(kind) or hasattr(kind, "_fields")):
        return {}
    found: dict[str, object] = {}
    for one in reversed(kind.__mro__):
        scope = vars(sys.modules[one.__module__]) if one.__module__ in sys.modules else {}
        for name, written in inspect.get_annotations(one).items():
            read: object = written
            with suppress(Exception):  # of a name that is there for type checkers alone: it speaks of something else
                while isinstance(read, str):
                    read = eval(read, dict(scope))
            # A class that holds itself, say in a tree, is not looked into again.
            if read is not kind and _speaks_of_shapes(read):
                found[name] = read
    return found


def _speaks_of_shapes(annotation: object) -> bool:
    if isinstance(annotation, TensorType) or (isinstance(annotation, type) and annotation in BARE):
        return True
    if get_origin(annotation) in (tuple, list, dict):
        return any(map(_speaks_of_shapes, get_args(annotation)))
    return isinstance(annotation, type) and bool(_fields(annotation))


def _check(leaf: _Leaf, environment: ShapeEnvironment, seen: Sequence[_Leaf]) -> None:
    """Unifies one tensor with its annotation; `seen` are those whose shapes an error may show."""
    written = f"the annotation is at {leaf.span}" if leaf.span else f"the annotation is {leaf.type}"
    if not (hasattr(leaf.value, "shape") and hasattr(leaf.value, "dtype")):
        raise ShapeError(
            f"{leaf.where}: expected {leaf.type}, got {type(leaf.value).__name__}",
            hint=f"pass a tensor or an array; {written}",
        )
    _check_dtype(leaf, written)
    dims, shape = leaf.type.dims, leaf.shape
    lead = len(shape) - len(dims)
    if lead < 0 or (lead > 0 and not leaf.type.any_leading):
        least = "at least " if leaf.type.any_leading else ""
        raise ShapeError(
            f"{leaf.where}: expected {least}{len(dims)} axes, got {len(shape)}", shapes=[str(leaf)], hint=written
        )
    for axis, (expected, given) in enumerate(zip(dims, shape[lead:], strict=True), lead):
        if expected == given:
            continue
        try:
            environment.unify(expected, given, Origin(f"{leaf.where}, axis {axis}", leaf.span))
        except ShapeError as error:
            related = [str(other) for other in seen if other is leaf or other.symbols & leaf.symbols]
            error.shapes = tuple(related)
            raise


def _check_dtype(leaf: _Leaf, written: str) -> None:
    expected, given = leaf.type.dtype, getattr(leaf.value, "dtype", None)
    if expected is None:
        return
    base = getattr(given, "base", None)
    # NumPy's dtypes have a `base` too; one fits where it is what the element type is stored as.
    if base is expected.base or (isinstance(base, np.dtype) and base == expected.storage):
        return
    if base is None:
        message, hint = f"cannot read the dtype {given!r}", "convert the array to a tensor first"
    else:
        message, hint = f"expected {expected}, got {given}", f"cast it to {expected.base}, or change the annotation"
    raise DtypeError(f"{leaf.where}: {message}", shapes=[f"{leaf} of {given}"], hint=f"{hint}; {written}")


def _evaluate(function: FunctionType, name: str, written: object) -> object:
    """An annotation as an object; text is evaluated where the function was defined."""
    text = written
    scope: dict[str, object] = {}
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a variable of the outer function that has no value yet
            scope[variable] = cell.cell_contents
    while isinstance(text, str):
        try:
            text = eval(text, function.__globals__, scope)  # as typing.get_type_hints does
        except Exception as error:
            span = _annotation_spans(function.__code__, function.__code__.co_filename).get(name)
            if isinstance(error, TesseraError):
                error.at(span)
                raise
            if not _looks_like_a_tensor(text):
                return None
            role = "result" if name == RETURN else f"argument '{name}'"
            raise ShapeError(
                f"{role} of {function.__qualname__}: cannot read the annotation {text}: {error}",
                span=span,
                hint="annotations kept as text see module globals and what the function's body uses: "
                "define the names there",
            ) from error
    return text


def _looks_like_a_tensor(text: str) -> bool:
    """Whether unreadable text was meant for us; others, such as names imported for type checkers, are not."""
    return any(f"{name}[" in text for name in (*FORM_NAMES.values(), Out.__name__))


@lru_cache(maxsize=256)  # reading the source takes longer than all else that is done for a call
def _annotation_spans(code: CodeType, file: str) -> dict[str, SourceSpan]:
    """Where each annotation is written; empty when the source cannot be read. Codes of two files may be equal."""
    try:
        lines, first = source_lines(code)
        source = textwrap.dedent("".join(lines))
        tree = ast.parse(source)
    except (OSError, SyntaxError):
        return {}
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    indent = len(lines[0].rstrip("\n")) - len(source.split("\n", 1)[0])
    given = definition.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    written = {argument.arg: argument.annotation for argument in every if argument is not None}
    written[RETURN] = definition.returns

    def span(node: ast.expr) -> SourceSpan:
        end_line = None if node.end_lineno is None else first + node.end_lineno - 1
        end_column = None if node.end_col_offset is None else node.end_col_offset + indent
        return SourceSpan(file, first + node.lineno - 1, node.col_offset + indent, end_line, end_column)

    return {name: span(node) for name, node in written.items() if node is not None}
