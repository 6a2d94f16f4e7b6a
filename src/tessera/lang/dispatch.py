"""Calls of jitted functions: generated code from Python's arguments to a bound program, with nothing slow on the way.

The code is written for the arguments' structure: it takes each array out of dictionaries, lists and tuples, compares
its meta with those of the first few entries, then looks up what arrays with such metas led to before. Whatever is not
found there goes to the code of another structure, and at last the long way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias, cast

from tessera.kernels.native import Settings, quick_settings, settings
from tessera.lang.parameters import Parameters, is_array, is_number, scalar
from tessera.lang.tracing import current_or_none
from tessera.lang.watching import Check
from tessera.runtime.meta import Meta
from tessera.runtime.pytree import tree_leaves, tree_unflatten
from tessera.runtime.tensor import Tensor
from tessera.runtime.written_calls import MISSING, NOT_FOUND, as_given, mark_for, parameters_text, written
from tessera.targets.cpython import earlier_calls, objects

MOST_ENTRIES = 4096
INLINE = 4
"""Entries that are compared one by one before there is a look into the dictionary."""

Finish = Callable[[Sequence[Tensor]], Any]


class Entry(NamedTuple):
    """A program bound to arrays of certain metas."""

    unchanged: Check | None
    run: Callable[..., tuple[Tensor, ...]]
    hidden: tuple[Tensor, ...]
    finish: Finish | None
    """What makes the function's result of the program's results; None where they are the same."""


Entries = dict[tuple[Any, ...], Entry]
Sibling: TypeAlias = Callable[[Sequence[Tensor]], Entry | None]
"""Makes the entry for arrays that differ in sizes alone from those of another, if it can."""


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
        elif _is_static(item, name in parameters.numbered):
            statics.append(path)
        else:
            return False
        return True

    if name in parameters.static:
        statics.append(name)
    elif not visit(name, value):
        return None
    return Access(tuple(tests), tuple(arrays), tuple(numbers), tuple(statics), tuple(order))


class Inline(NamedTuple):
    """An entry whose key is compared in the code itself."""

    key: tuple[Any, ...]
    entry: Entry


class Quick:
    """The generated function for one structure of arguments.

    It compares metas with those of the entries that came first, then looks into a dictionary. Metas are interned, so
    comparing is by identity; what these entries have in common is compared once.
    """

    def __init__(
        self, name: str, parameters: Parameters, arguments: Mapping[str, Any], slowly: Callable[..., Any]
    ) -> None:
        self.name = name
        self.entries: Entries = {}
        self._siblings: dict[tuple[Any, ...], Sibling] = {}
        """By what `key` says, with kinds in the place of metas."""
        self.slowly = slowly
        self.parameters = parameters
        self.names = parameters.labels()
        found = [access(parameter, value, parameters) for parameter, value in arguments.items()]
        kinds = inspect.Parameter
        self.listed = list(parameters.signature.parameters.values())
        self.possible = all(one is not None for one in found) and not any(
            one.kind in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY) for one in self.listed
        )
        if not self.possible:
            return
        self.accesses = [one for one in found if one is not None]
        self.mark = mark_for(parameters.signature)
        self._seen = self._looking()
        inner = "".join(f"{part}, " for part in self._parts()[1:])
        self._keyed: Callable[..., tuple[Any, ...]] = eval(f"lambda {', '.join(self.names)}: ({inner})", {})
        self._arrays = sum(len(one.arrays) for one in self.accesses)
        self._apart = self._taking()
        self.call = self._written(())

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments have the structure that the code was written for."""
        try:
            seen = self._seen(**arguments)
        except NOT_FOUND:
            return False
        if seen is None:
            return False
        metas, numbers, statics = seen
        return (
            all(meta.__class__ is Meta for meta in metas)
            and all(map(is_number, numbers))
            and all(is_free or _is_static(value, numbered) for is_free, numbered, value in statics)
        )

    def _looking(self) -> Callable[..., tuple[Any, ...] | None]:
        """What `fits` asks about arguments, written once."""
        tests = [test for one in self.accesses for test in one.tests]
        metas = [f"{path}.meta" for one in self.accesses for path in one.arrays]
        numbers = [path for one in self.accesses for path in one.numbers]
        statics = [
            f"({name in self.parameters.static}, {name in self.parameters.numbered}, {path})"
            for name, one in zip(self.names, self.accesses, strict=True)
            for path in one.statics
        ]
        listed = ["".join(f"{one}, " for one in several) for several in (metas, numbers, statics)]
        # What is behind the tests may only be looked at where they hold: a tensor can be indexed like a list.
        text = f"(({listed[0]}), ({listed[1]}), ({listed[2]})) if {' and '.join(tests) or 'True'} else None"
        return eval(f"lambda {', '.join(self.names)}: {text}", {})

    def _parts(self) -> list[str]:
        """What the code looks at, settings first."""
        parts = [f"{self.mark}settings()"]
        parts += [f"{path}.meta" for one in self.accesses for path in one.arrays]
        parts += [f"{path}.__class__" for one in self.accesses for path in one.numbers]
        parts += [part for one in self.accesses for path in one.statics for part in (f"{path}.__class__", path)]
        return parts

    def key(self, chosen: Settings | None, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """What the generated code looks up for these arguments."""
        return (chosen, *self._keyed(**arguments))

    def add(
        self, chosen: Settings | None, arguments: Mapping[str, Any], entry: Entry, sibling: Sibling | None = None
    ) -> bool:
        """Keeps an entry, and what makes more of its like; says whether `call` is another function now."""
        key = self.key(chosen, arguments)
        if sibling is not None:
            if len(self._siblings) >= MOST_ENTRIES:
                self._siblings.clear()
            self._siblings[self._like(key)] = sibling
        known = list(self.entries)[:INLINE]
        self._keep(key, entry)
        if len(known) >= INLINE and key not in known:
            return False
        self.call = self._written([Inline(one, self.entries[one]) for one in list(self.entries)[:INLINE]])
        return True

    def _keep(self, key: tuple[Any, ...], entry: Entry) -> None:
        if len(self.entries) >= MOST_ENTRIES:
            self.entries.clear()
        self.entries[key] = entry

    def _like(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """What keys have in common that differ in sizes alone."""
        end = 1 + self._arrays
        return (key[0], *[meta.kind for meta in key[1:end]], *key[end:])

    def _taking(self) -> Callable[..., tuple[Any, ...] | None]:
        """The rest of a key behind settings, and the arrays, for arguments of the structure; None for others."""
        tests = [test for one in self.accesses for test in one.tests]
        parts = "".join(f"{part}, " for part in self._parts()[1:])
        passed = "".join(f"{path}, " for one in self.accesses for path in one.order)
        text = f"(({parts}), ({passed})) if {' and '.join(tests) or 'True'} else None"
        return eval(f"lambda {', '.join(self.names)}: {text}", {})

    def _resized(self, given: Sequence[Any]) -> tuple[Entry, tuple[Tensor, ...]] | None:
        """An entry for arguments that differ in sizes alone from others that came, and the arrays among them."""
        # The first entries are compared in code, which is written anew for each of them.
        if len(self.entries) < INLINE or current_or_none() is not None:
            return None
        try:
            taken = self._apart(*given)
            if taken is None:
                return None
            key = (settings(), *taken[0])
            sibling = self._siblings.get(self._like(key))
        except NOT_FOUND:
            return None
        entry = None if sibling is None else sibling(taken[1])
        if entry is None:
            return None
        self._keep(key, entry)
        return entry, taken[1]

    def _written(self, inline: Sequence[Inline]) -> Callable[..., Any]:
        mark, parts = self.mark, self._parts()
        numbers = {path for one in self.accesses for path in one.numbers}
        passed = [f"{mark}scalar({path})" if path in numbers else path for one in self.accesses for path in one.order]
        tests = [test for one in self.accesses for test in one.tests]
        given = [one.name for one in self.listed if one.kind is not one.KEYWORD_ONLY]
        named = [one.name for one in self.listed if one.kind is one.KEYWORD_ONLY]
        scope: dict[str, Any] = {
            "settings": quick_settings(),
            "entries": self.entries,
            "tracing": current_or_none,
            "scalar": scalar,
            "otherwise": self._otherwise,
        }
        arguments = "".join(f"{one}, " for one in passed)
        text = _TEMPLATE.format(
            mark=mark,
            parameters=parameters_text(self.parameters.signature, mark),
            look=indent(self._look(inline, parts, scope), "    "),
            tests="".join(f" and {test}" for test in tests),
            runs=self._runs(inline, arguments, scope),
            passed=arguments,
            given="".join(f"{one}, " for one in given),
            named=", ".join(f"{one!r}: {one}" for one in named),
        )
        made = written(self.name, text, self.parameters.signature, mark, scope, __name__)
        return self._in_front_of(made, inline)

    def _in_front_of(self, made: Callable[..., Any], inline: Sequence[Inline]) -> Callable[..., Any]:
        """Machine code that takes the calls of these entries, where all arguments are arrays by themselves."""
        count, kinds = len(self.listed), {one.kind for one in self.listed}
        is_flat = [one.arrays for one in self.accesses] == [(name,) for name in self.names]
        if (
            not is_flat
            or kinds != {inspect.Parameter.POSITIONAL_OR_KEYWORD}
            or not inline
            or not earlier_calls.is_possible()
        ):
            return made
        slot = _slot_of_meta()
        entries = [
            earlier_calls.Entry(
                key[0], key[1:], entry.run, "item" if _takes_only(entry.finish) else entry.finish, entry.unchanged
            )
            for key, entry in inline
            if not entry.hidden
        ]
        asked = earlier_calls.Asked(cast("Any", current_or_none).__self__, None, quick_settings(), _holds)
        return made if slot is None or not entries else earlier_calls.front(made, count, Tensor, slot, asked, entries)

    def _look(self, inline: Sequence[Inline], parts: Sequence[str], scope: dict[str, Any]) -> str:
        """Code that finds an entry, or the number of one that is compared here."""
        mark = self.mark
        dictionary = f"{mark}which, {mark}entry = -1, {mark}entries[{', '.join([f'{mark}now', *parts[1:]])},]"
        if not inline:
            return f"        {dictionary}\n"
        different = [
            place for place in range(len(parts)) if any(one.key[place] is not inline[0].key[place] for one in inline)
        ]
        texts = [f"{mark}now", *parts[1:]]

        def tests(number: int, places: Sequence[int]) -> str:
            listed: list[str] = []
            for place in places:
                scope[f"key{number}_{place}"] = inline[number].key[place]
                listed.append(f"{texts[place]} is {mark}key{number}_{place}")
            return " and ".join(listed)

        same = tests(0, [place for place in range(len(parts)) if place not in different]) or "True"
        if not different:
            return f"        if {same}:\n            {mark}which = 0\n        else:\n            {dictionary}\n"
        lines = [f"        if not ({same}):\n            {dictionary}\n"]
        lines += [
            f"        elif {tests(number, different)}:\n            {mark}which = {number}\n"
            for number in range(len(inline))
        ]
        return "".join([*lines, f"        else:\n            {dictionary}\n"])

    def _runs(self, inline: Sequence[Inline], arguments: str, scope: dict[str, Any]) -> str:
        """Code that runs the entries that are compared here."""
        mark, lines = self.mark, list[str]()
        for number, (_, entry) in enumerate(inline):
            scope[f"run{number}"] = entry.run
            hidden = "" if not entry.hidden else f"*{mark}hidden{number}"
            scope[f"hidden{number}"] = entry.hidden
            call = f"{mark}run{number}({arguments}{hidden})"
            if entry.finish is not None:
                scope[f"finish{number}"] = entry.finish
                call = f"{call}[0]" if _takes_only(entry.finish) else f"{mark}finish{number}({call})"
            scope[f"unchanged{number}"] = entry.unchanged
            holds = "" if entry.unchanged is None else f" and {mark}holds({mark}unchanged{number})"
            lines.append(f"        if {mark}which == {number}{holds}:\n            return {call}\n")
        scope["holds"] = _holds
        return "".join(lines)

    def _otherwise(self, given: tuple[Any, ...], extra: tuple[Any, ...], named: dict[str, Any], more: Any) -> Any:
        everything = (*given, *named.values())
        if self._siblings and not extra and not more and all(value is not MISSING for value in everything):
            found = self._resized(everything)
            if found is not None:
                entry, arrays = found
                results = entry.run(*arrays, *entry.hidden)
                return results if entry.finish is None else entry.finish(results)
        args, kwargs = as_given(self.names[: len(given)], given, extra, named)
        return self.slowly(*args, **kwargs, **more)


@cache
def _slot_of_meta() -> int | None:
    """Where tensors have their metas."""
    return objects.slot_of(scalar(0), "meta")


def _takes_only(finish: Finish | None) -> bool:
    """Whether it gives the one result of a program."""
    return getattr(finish, "text", None) == ONLY


def _is_static(value: Any, numbered: bool) -> bool:
    """Whether a value is static wherever it is, and not taken apart."""
    if value is None or isinstance(value, str):
        return True
    return not (numbered and is_number(value)) and not is_array(value) and tree_leaves(value) == [value]


def _holds(unchanged: Check) -> bool:
    """Whether what a function sees from outside is as it was; a name that is gone is not."""
    try:
        return unchanged()
    except NOT_FOUND:
        return False


_TEMPLATE = """
def {mark}call({parameters}):
    try:
        {mark}good = {mark}tracing() is None and not {mark}extra and not {mark}more{tests}
        if {mark}good:
            {mark}now = {mark}settings()
{look}
    except {mark}not_found:
        {mark}good = False
    if {mark}good:
{runs}        if {mark}which == -1:
            {mark}unchanged, {mark}run, {mark}hidden, {mark}finish = {mark}entry
            if {mark}unchanged is None or {mark}holds({mark}unchanged):
                {mark}results = {mark}run({passed}*{mark}hidden)
                return {mark}results if {mark}finish is None else {mark}finish({mark}results)
    return {mark}otherwise(({given}), {mark}extra, {{{named}}}, {mark}more)
"""
ONLY = "results[0]"
"""The text of what takes the one result of a program."""


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
    return _finisher(text)


@lru_cache(maxsize=256)
def _finisher(text: str) -> Finish:
    made = eval(f"lambda results: {text}")
    made.text = text
    return made


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
