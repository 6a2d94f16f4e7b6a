"""Calls of jitted functions: generated code from Python's arguments to a bound program, with nothing slow on the way.

The code is written for the arguments' structure: it takes each array out of dictionaries, lists and tuples, and looks
up what arrays with such metas led to before. Whatever is not found there goes the long way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tessera.errors import TesseraError
from tessera.kernels.native import Settings, settings
from tessera.lang.parameters import Parameters, is_array, is_number, scalar
from tessera.lang.tracing import current_or_none
from tessera.lang.watching import Check
from tessera.runtime.pytree import tree_leaves, tree_unflatten
from tessera.runtime.tensor import Tensor

MISSING: Any = object()
# What code for one structure may run into with another: an item of a tuple that is a tensor now, for one.
NOT_FOUND = (KeyError, IndexError, AttributeError, TypeError, NameError, ValueError, TesseraError)
MOST_ENTRIES = 4096

Finish = Callable[[Sequence[Tensor]], Any]


class Entry(NamedTuple):
    """A program bound to arrays of certain metas."""

    unchanged: Check | None
    run: Callable[..., tuple[Tensor, ...]]
    hidden: tuple[Tensor, ...]
    finish: Finish | None
    """What makes the function's result of the program's results; None where they are the same."""


Entries = dict[tuple[Any, ...], Entry]


class Access(NamedTuple):
    """How generated code takes one parameter apart: tests of its structure, arrays, numbers, and static values."""

    tests: tuple[str, ...]
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    statics: tuple[str, ...]
    order: tuple[str, ...]
    """Arrays and numbers as the program takes them."""


def access(name: str, value: Any, parameters: Parameters) -> Access | None:
    """How to take apart a parameter with a value like this; None where only a general walk can."""
    tests: list[str] = []
    arrays: list[str] = []
    numbers: list[str] = []
    statics: list[str] = []
    order: list[str] = []

    def visit(path: str, item: Any) -> bool:
        kind = item.__class__
        if kind is Tensor:
            arrays.append(path)
            order.append(path)
        elif kind is dict:
            tests.append(f"{path}.__class__ is dict and len({path}) == {len(item)}")
            if not all(isinstance(key, str | int) and not isinstance(key, bool) for key in item):
                return False
            try:
                keys = sorted(item)
            except TypeError:
                return False
            return all(visit(f"{path}[{key!r}]", item[key]) for key in keys)
        elif kind in (list, tuple):
            tests.append(f"{path}.__class__ is {kind.__name__} and len({path}) == {len(item)}")
            return all(visit(f"{path}[{place}]", one) for place, one in enumerate(item))
        elif is_number(item) and name in parameters.numbered:
            numbers.append(path)
            order.append(path)
        elif item is None or (not is_array(item) and tree_leaves(item) == [item]):
            statics.append(path)
        else:
            return False
        return True

    if name in parameters.static:
        statics.append(name)
    elif not visit(name, value):
        return None
    return Access(tuple(tests), tuple(arrays), tuple(numbers), tuple(statics), tuple(order))


class Quick:
    """The generated function for one structure of arguments."""

    def __init__(
        self, name: str, parameters: Parameters, arguments: Mapping[str, Any], slowly: Callable[..., Any]
    ) -> None:
        self.entries: Entries = {}
        self.slowly = slowly
        self.parameters = parameters
        self.names = parameters.labels()
        found = [access(parameter, value, parameters) for parameter, value in arguments.items()]
        kinds = inspect.Parameter
        listed = list(parameters.signature.parameters.values())
        self.possible = all(one is not None for one in found) and not any(
            one.kind in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY) for one in listed
        )
        if not self.possible:
            return
        self.accesses = [one for one in found if one is not None]
        self.call = self._written(name, listed)

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments have the structure that the code was written for."""
        return all(
            access(name, value, self.parameters) == one
            for (name, value), one in zip(arguments.items(), self.accesses, strict=True)
        )

    def key(self, chosen: Settings | None, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """What the generated code looks up for these arguments."""
        scope: dict[str, Any] = dict(arguments)
        parts: list[Any] = [chosen]
        parts += [eval(f"{path}.meta", scope) for one in self.accesses for path in one.arrays]
        parts += [eval(f"{path}.__class__", scope) for one in self.accesses for path in one.numbers]
        for one in self.accesses:
            for path in one.statics:
                value = eval(path, scope)
                parts += [value.__class__, value]
        return tuple(parts)

    def add(self, chosen: Settings | None, arguments: Mapping[str, Any], entry: Entry) -> None:
        if len(self.entries) >= MOST_ENTRIES:
            self.entries.clear()
        self.entries[self.key(chosen, arguments)] = entry

    def _written(self, name: str, listed: Sequence[inspect.Parameter]) -> Callable[..., Any]:
        mark = "_"
        while any(parameter.name.startswith(mark) for parameter in listed):
            mark += "_"
        keys = [f"{path}.meta" for one in self.accesses for path in one.arrays]
        keys += [f"{path}.__class__" for one in self.accesses for path in one.numbers]
        keys += [f"{path}.__class__, {path}" for one in self.accesses for path in one.statics]
        numbers = {path for one in self.accesses for path in one.numbers}
        passed = [f"{mark}scalar({path})" if path in numbers else path for one in self.accesses for path in one.order]
        tests = [test for one in self.accesses for test in one.tests]
        given = [one.name for one in listed if one.kind is not one.KEYWORD_ONLY]
        named = [one.name for one in listed if one.kind is one.KEYWORD_ONLY]
        signature = [f"{one}={mark}defaults[{one!r}]" for one in given]
        signature += [f"*{mark}extra", *(f"{one}={mark}defaults[{one!r}]" for one in named), f"**{mark}more"]
        text = _TEMPLATE.format(
            mark=mark,
            signature=", ".join(signature),
            key=", ".join([f"{mark}settings()", *keys]) + ",",
            tests="".join(f" and {test}" for test in tests),
            passed="".join(f"{one}, " for one in passed),
            given="".join(f"{one}, " for one in given),
            named=", ".join(f"{one!r}: {one}" for one in named),
        )
        scope: dict[str, Any] = {
            "__name__": __name__,  # errors are told at the user's line, which is not in here
            f"{mark}settings": settings,
            f"{mark}entries": self.entries,
            f"{mark}tracing": current_or_none,
            f"{mark}not_found": NOT_FOUND,
            f"{mark}scalar": scalar,
            f"{mark}otherwise": self._otherwise,
            f"{mark}defaults": {one.name: MISSING if one.default is one.empty else one.default for one in listed},
        }
        exec(text, scope)
        quick = scope[f"{mark}call"]
        quick.__name__ = quick.__qualname__ = name
        return quick

    def _otherwise(self, given: tuple[Any, ...], extra: tuple[Any, ...], named: dict[str, Any], more: Any) -> Any:
        count = next((place for place, value in enumerate(given) if value is MISSING), len(given))
        names = self.names[: len(given)]
        rest = {name: value for name, value in zip(names[count:], given[count:], strict=True) if value is not MISSING}
        rest |= {name: value for name, value in named.items() if value is not MISSING}
        return self.slowly(*given[:count], *extra, **rest, **more)


_TEMPLATE = """
def {mark}call({signature}):
    try:
        {mark}unchanged, {mark}run, {mark}hidden, {mark}finish = {mark}entries[{key}]
        {mark}good = (
            ({mark}unchanged is None or {mark}unchanged())
            and {mark}tracing() is None and not {mark}extra and not {mark}more{tests}
        )
    except {mark}not_found:
        {mark}good = False
    if {mark}good:
        {mark}results = {mark}run({passed}*{mark}hidden)
        return {mark}results if {mark}finish is None else {mark}finish({mark}results)
    return {mark}otherwise(({given}), {mark}extra, {{{named}}}, {mark}more)
"""


def finishing(structure: Any, leaves: Sequence[Any]) -> Finish | None:
    """What makes a function's result of its program's results; leaves are places among those, or constants."""
    if any(leaf.__class__ is not Place for leaf in leaves):
        return lambda results: tree_unflatten(
            structure, [results[one.number] if one.__class__ is Place else one for one in leaves]
        )
    example = tree_unflatten(structure, leaves)
    if example.__class__ is tuple and list(example) == [Place(place) for place in range(len(leaves))]:
        return None
    text = _expression(example)
    if text is None:
        return lambda results: tree_unflatten(structure, [results[one.number] for one in leaves])
    return eval(f"lambda results: {text}")


class Place(NamedTuple):
    """The result of a program with this number."""

    number: int


def _expression(example: Any) -> str | None:
    """Python for a structure of lists, tuples and dictionaries; None where there is more to it."""
    kind = example.__class__
    if kind is Place:
        return f"results[{example.number}]"
    if example is None:
        return "None"
    if kind in (list, tuple):
        parts = [_expression(one) for one in example]
        if None in parts:
            return None
        inner = "".join(f"{one}, " for one in parts)
        return f"[{inner}]" if kind is list else f"({inner})"
    if kind is dict:
        inner = {key: _expression(one) for key, one in example.items()}
        if None in inner.values() or not all(isinstance(key, str | int) for key in inner):
            return None
        return "{" + ", ".join(f"{key!r}: {one}" for key, one in inner.items()) + "}"
    return None
