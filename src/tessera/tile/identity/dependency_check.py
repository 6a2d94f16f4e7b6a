"""`DependencyCheck`: a quick check, in generated code, whether all that functions depend on is unchanged.

Names are looked at by code of the module that they are global in, so that Python finds them as fast as it can. All is
compared by identity. Only where something is another object it is looked at again, slowly: plain values that mean the
same are the same, and from then on the new objects are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import is_
from types import CellType, CodeType
from typing import Any, cast

from tessera.runtime.native import same_words
from tessera.tile.identity.dependencies import MISSING, Held
from tessera.tile.identity.static_keys import are_same

Check = Callable[[], bool]
Chains = Sequence[tuple[dict[str, Any], str, Any, str]]

_FEW = 8
"""Entries of a container that are compared one by one."""
_MOST_TESTS = 256
"""Tests that are written out; beyond, there are loops."""
_DICT: Any = dict  # as they are, whatever classes made of them do
_LIST: Any = list
_PATIENCE = 4
"""Looks by Python before it is asked whether there is machine code for them."""
_FAULTS = (NameError, AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError)


class DependencyCheck:
    """Checks whether all that functions depend on is unchanged: `check()`, or by name, `changed()`."""

    def __init__(self, held: Iterable[Held], chains: Chains = ()) -> None:
        self.held = list(held)
        self._texts = {(id(module), name): (scope, text) for scope, text, module, name in chains}
        self._writing = _Writing(self.held, self._texts, self._again)
        self.check, self._update = self._writing.made(self._again)

    def _again(self) -> bool:
        """Whether all means the same, if it is not the same."""
        found: list[Held] = []
        for one in self.held:
            try:
                keys, values = one.now()
            except _FAULTS:
                return False
            if len(keys) != len(one.keys) or len(values) != len(one.values):
                return False
            if not all(map(are_same, keys, one.keys)) or not all(map(are_same, values, one.values)):
                return False
            found.append(one._replace(keys=keys, values=values))
        self.held = found
        writing = _Writing(found, self._texts, self._again)
        self._update(*writing.given, *(value for _, _, given in writing.others.values() for value in given))
        return True

    def changed(self) -> str | None:
        """The name of something that is another now; None where nothing is."""
        for one in self.held:
            try:
                keys, values = one.now()
            except _FAULTS:
                return one.label
            if len(values) != len(one.values) or not all(map(are_same, keys, one.keys)):
                return one.label
            for index, (now, before) in enumerate(zip(values, one.values, strict=True)):
                if not are_same(now, before):
                    return one.named(index)
        return None


class _Writing:
    """The code of a check, and what is given to it: the same text for things of the same kinds and sizes."""

    def __init__(
        self, held: Sequence[Held], texts: dict[tuple[int, str], tuple[dict[str, Any], str]], again: Check
    ) -> None:
        self.given: list[Any] = []
        self.tests: list[str] = []
        self._texts = texts
        scopes: list[dict[str, Any]] = [one.holder for one in held if one.kind == "names"]
        self.scope = scopes[0] if scopes else {}
        self.others: dict[int, tuple[dict[str, Any], list[str], list[Any]]] = {}
        self.mark = _mark(held)
        many: dict[str, list[Held]] = {"attributes": [], "list": [], "dict": []}
        words: list[same_words.Word] = []
        by_words: list[Held] = []
        are_known = same_words.are_known()
        for one in held:
            found = _WORDS[one.kind](one) if are_known and one.kind in _WORDS else None
            if found is not None:
                words += found
                by_words.append(one)
            elif len(self.tests) + len(one.values) > _MOST_TESTS and one.kind in many:
                many[one.kind].append(one)
            else:
                getattr(self, f"_{one.kind}")(one)
        if words:
            is_loaded = same_words.is_loaded()
            self._test("{}()", same_words.asking(words, by_words) if is_loaded else _until_loaded(by_words, again))
        for kind in ("attributes", "dict"):
            if many[kind]:
                self._test("{}()", _same_dictionaries(many[kind]))
        if many["list"]:
            self._test("{}()", _same_lists(many["list"]))

    def made(self, again: Check) -> tuple[Check, Callable[..., None]]:
        mark, scope = self.mark, self.scope
        inner: list[Check] = []
        updates: list[tuple[Callable[..., None], int]] = []
        for other, tests, given in self.others.values():
            check, update = _written(mark, tests, len(given), other, given, None)
            inner.append(check)
            updates.append((update, len(given)))
        own = len(self.given)
        tests = [*self.tests, *(f"{mark}{own + index}()" for index in range(len(inner)))]
        check, update = _written(mark, tests, own + len(inner), scope, [*self.given, *inner], again)
        if not updates:
            return check, update

        def update_all(*values: Any) -> None:
            start = own
            for one, count in updates:
                one(*values[start : start + count])
                start += count
            update(*values[:own], *inner)

        return check, update_all

    def _test(self, text: str, *values: Any) -> None:
        """A test with values for its braces."""
        names: list[str] = []
        for value in values:
            names.append(f"{self.mark}{len(self.given)}")
            self.given.append(value)
        self.tests.append(text.format(*names))

    def _in_scope(self, scope: dict[str, Any], text: str, value: Any) -> None:
        """A test that an expression of a module gives a value."""
        if scope is self.scope:
            self._test(text + " is {}", value)
            return
        _, tests, given = self.others.setdefault(id(scope), (scope, [], []))
        tests.append(f"{text} is {self.mark}{len(given)}")
        given.append(value)

    def _names(self, one: Held) -> None:
        scope: dict[str, Any] = one.holder
        for name, value in zip(one.keys, one.values, strict=True):
            if value is MISSING:
                self._test("{} not in {}", name, scope)
            elif name in scope or "__builtins__" not in scope or "len" in _builtins_of(scope):
                self._in_scope(scope, name, value)

    def _module(self, one: Held) -> None:
        for name, value in zip(one.keys, one.values, strict=True):
            scope, text = self._texts.get((id(one.holder), name), (None, ""))
            if value is MISSING:
                self._test("{} not in {}", name, one.holder.__dict__)
            elif scope is not None:
                self._in_scope(scope, text, value)
            else:
                self._test("{}[{}] is {}", one.holder.__dict__, name, value)

    def _keys(self, one: Held) -> None:
        for key, value in zip(one.keys, one.values, strict=True):
            if value is MISSING:
                self._test("{} not in {}", key, one.holder)
            else:
                self._test("{}[{}] is {}", one.holder, key, value)

    def _class(self, one: Held) -> None:
        mapping = one.holder.__dict__
        self._test("len({}) == {}", mapping, one.values[-1])
        for key, value in zip(one.keys, one.values, strict=False):
            self._test("{}[{}] is {}", mapping, key, value)

    def _attributes(self, one: Held) -> None:
        if len(one.keys) > _FEW:
            self._test("{}()", _same_dictionaries([one]))
            return
        self._test("len({}) == {}", one.holder, len(one.keys))
        for key, value in zip(one.keys, one.values, strict=True):
            self._test("{}[{}] is {}", one.holder, key, value)

    def _dict(self, one: Held) -> None:
        if len(one.keys) <= _FEW and one.holder.__class__ is dict and all(key.__class__ is str for key in one.keys):
            self._test("tuple({}) == {}", one.holder, one.keys)
            for key, value in zip(one.keys, one.values, strict=True):
                self._test("{}[{}] is {}", one.holder, key, value)
        else:
            self._test("{}()", _same_dictionaries([one]))

    def _list(self, one: Held) -> None:
        if len(one.values) > _FEW or one.holder.__class__ is not list:
            self._test("{}()", _same_lists([one]))
            return
        self._test("len({}) == {}", one.holder, len(one.values))
        for index, value in enumerate(one.values):
            self._test("{}[" + str(index) + "] is {}", one.holder, value)

    def _start(self, one: Held) -> None:
        self._test("{}()", lambda: len(one.holder) >= len(one.values) and all(map(is_, one.values, one.holder)))

    def _set(self, one: Held) -> None:
        self._test("{}()", lambda: len(one.holder) == len(one.values) and all(map(is_, one.holder, one.values)))

    def _cell(self, one: Held) -> None:
        cell: CellType = one.holder
        if one.values[0] is MISSING:
            self._test("{}()", lambda: one.now()[1][0] is MISSING)
        else:
            self._test("{}.cell_contents is {}", cell, one.values[0])

    def _function(self, one: Held) -> None:
        for name, value in zip(("__code__", "__defaults__", "__kwdefaults__"), one.values, strict=True):
            self._test("{}." + name + " is {}", one.holder, value)

    def _type(self, one: Held) -> None:
        self._test("type({}) is {}", one.holder, one.values[0])

    def _slots(self, one: Held) -> None:
        self._test("{}()", lambda: all(map(is_, one.now()[1], one.values)))

    def _asked(self, one: Held) -> None:
        ask, before = one.holder, one.values

        def is_same() -> bool:
            now = ask()
            return len(now) == len(before) and all(map(are_same, now, before))

        self._test("{}()", is_same)


_WORDS: dict[str, Callable[[Held], list[same_words.Word] | None]] = {
    "function": lambda one: same_words.of_function(one.holder, one.values),
    "cell": lambda one: None if one.values[0] is MISSING else same_words.of_cell(one.holder, one.values[0]),
    "type": lambda one: same_words.of_type(one.holder, one.values[0]),
    "list": lambda one: same_words.of_list(one.holder, one.values),
    "attributes": lambda one: same_words.of_dictionary(one.holder, of_object=True) if _is_now(one) else None,
    "dict": lambda one: same_words.of_dictionary(one.holder) if _is_now(one) else None,
    "class": lambda one: same_words.of_class(one.holder) if _is_now(one) else None,
}
"""Kinds that words of memory can tell: of a dictionary, that nothing was done to it, if it is as it was now."""


def _until_loaded(held: Sequence[Held], again: Check) -> Check:
    """The same by Python, until machine code is there: then all is looked at again, and from then on by that."""
    left = _PATIENCE

    def check() -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            left = _PATIENCE
            if same_words.is_loaded():
                return again()
        return all(map(_is_now, held))

    return check


def _is_now(one: Held) -> bool:
    keys, values = one.now()
    return (
        len(keys) == len(one.keys)
        and len(values) == len(one.values)
        and all(map(is_, keys, one.keys))
        and all(map(are_same, values, one.values))
    )


def _same_dictionaries(held: Sequence[Held]) -> Check:
    """Whether dictionaries have the same keys, in the same order, and the same values."""
    dictionaries = [cast("dict[Any, Any]", one.holder) for one in held]
    sizes = [len(one.keys) for one in held]
    keys = [key for one in held for key in one.keys]
    values = [value for one in held for value in one.values]

    def check() -> bool:
        return (
            list(map(len, dictionaries)) == sizes
            and all(map(is_, chain.from_iterable(map(_DICT.values, dictionaries)), values))
            and all(map(is_, chain.from_iterable(map(_DICT.keys, dictionaries)), keys))
        )

    return check


def _same_lists(held: Sequence[Held]) -> Check:
    lists = [cast("list[Any]", one.holder) for one in held]
    sizes = [len(one.values) for one in held]
    values = [value for one in held for value in one.values]

    def check() -> bool:
        return [_LIST.__len__(one) for one in lists] == sizes and all(
            map(is_, chain.from_iterable(map(_LIST.__iter__, lists)), values)
        )

    return check


def _builtins_of(scope: dict[str, Any]) -> Any:
    return getattr(scope["__builtins__"], "__dict__", scope["__builtins__"])


def _mark(held: Sequence[Held]) -> str:
    """The prefix of the code's own names: no name that is looked at begins with it."""
    mark = "seen"
    while any(str(name).startswith(mark) for one in held if one.kind == "names" for name in one.keys):
        mark = f"_{mark}"
    return mark


def _written(
    mark: str, tests: Sequence[str], count: int, scope: dict[str, Any], given: Sequence[Any], again: Check | None
) -> tuple[Check, Callable[..., None]]:
    """The check of some tests, as code of a module; and what gives it other values."""
    names = [f"{mark}{index}" for index in range(count)]
    made: dict[str, Any] = {}
    exec(_compiled(mark, tuple(tests), tuple(names), again is not None), scope, made)  # it defines nothing in the scope
    return made[f"{mark}made"](*given, _FAULTS, again)


@lru_cache(maxsize=512)
def _compiled(mark: str, tests: tuple[str, ...], names: tuple[str, ...], whole: bool) -> CodeType:
    condition = "\n        and ".join(tests) or "True"
    body = (
        f"""
        try:
            if ({condition}):
                return True
        except {mark}_faults:
            pass
        return {mark}_again()
"""
        if whole
        else f"        return ({condition})\n"
    )
    update = f"        nonlocal {', '.join(names)}\n" if names else ""
    update += "".join(f"        {name} = {mark}_values[{index}]\n" for index, name in enumerate(names))
    text = f"""
def {mark}made({"".join(f"{name}, " for name in names)}{mark}_faults, {mark}_again):
    def {mark}_check():
{body}
    def {mark}_update(*{mark}_values):
{update or "        pass"}
    return {mark}_check, {mark}_update
"""
    return compile(text, "<what is looked at>", "exec")
