"""Calls of jitted functions: generated code from Python's arguments to a bound program, with nothing slow on the way.

The code is written for the arguments' structure: it takes each array out of dictionaries, lists and tuples, compares
its meta with those of the first few entries, then looks up what arrays with such metas led to before. Whatever is not
found there goes to the code of another structure, and at last the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias

from tessera.lang.calls.parameters import Parameters, scalar
from tessera.lang.calls.structures import Structure
from tessera.lang.calls.watching import Check
from tessera.lang.tracing.values import current_or_none
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.pytree import tree_unflatten
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.call_code import INLINE, MISSING, NOT_FOUND, CallCode, as_given, listed, settings_text
from tessera.tile.calls.settings import Settings, settings

MOST_ENTRIES = 4096

Finish = Callable[[Sequence[Tensor]], Any]


class DispatchEntry(NamedTuple):
    """A program bound to arrays of certain metas."""

    unchanged: Check | None
    run: Callable[..., tuple[Tensor, ...]]
    hidden: tuple[Tensor, ...]
    finish: Finish | None
    """Makes the function's result of the program's results; None where they are the same."""


Entries = dict[tuple[Any, ...], DispatchEntry]
Sibling: TypeAlias = Callable[[Sequence[Tensor]], DispatchEntry | None]
"""Makes the entry for arrays that differ in sizes alone from those of another, if it can."""


class Inline(NamedTuple):
    """An entry whose key is compared in the code itself, by identity: static values are there as they came."""

    key: tuple[Any, ...]
    entry: DispatchEntry


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
        """By what calls have in common that differ in sizes alone."""
        self._raw: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """The keys that are compared in the code itself, with static values as they came."""
        self.slowly = slowly
        self.signature = parameters.signature
        self.structure = Structure(parameters, arguments)
        if not self.structure.is_regular:
            return
        self.call = self._written(())

    def add(
        self,
        chosen: Settings | None,
        arguments: Mapping[str, Any],
        entry: DispatchEntry,
        sibling: Sibling | None = None,
    ) -> bool:
        """Keeps an entry, and what makes more of its like; says whether `call` is another function now."""
        taken = self.structure.taken(**arguments)
        assert taken is not None, "the caller has checked that arguments fit"
        metas, kinds, _ = taken
        key = (chosen, *metas, *kinds)
        if sibling is not None:
            if len(self._siblings) >= MOST_ENTRIES:
                self._siblings.clear()
            self._siblings[_like(chosen, metas, kinds)] = sibling
        known = list(self.entries)[:INLINE]
        self._keep(key, entry)
        if len(known) >= INLINE and key not in known:
            return False
        first = list(self.entries)[:INLINE]
        raw = (chosen, *metas, *self.structure.taken_raw(**arguments))
        self._raw = {one: raw if one == key else self._raw.get(one, one) for one in first}
        self.call = self._written([Inline(self._raw[one], self.entries[one]) for one in first])
        return True

    def _keep(self, key: tuple[Any, ...], entry: DispatchEntry) -> None:
        if len(self.entries) >= MOST_ENTRIES:
            self.entries.clear()
        self.entries[key] = entry

    def _resized(self, given: Sequence[Any]) -> tuple[DispatchEntry, tuple[Tensor, ...]] | None:
        """An entry for arguments that differ in sizes alone from others that came, and the arrays among them."""
        # The first entries are compared in code, which is written anew for each of them.
        if len(self.entries) < INLINE or current_or_none() is not None:
            return None
        try:
            taken = self.structure.taken(*given)
            if taken is None:
                return None
            (metas, kinds, arrays), chosen = taken, settings()
            sibling = self._siblings.get(_like(chosen, metas, kinds))
        except NOT_FOUND:
            return None
        entry = None if sibling is None else sibling(arrays)
        if entry is None:
            return None
        self._keep((chosen, *metas, *kinds), entry)
        return entry, arrays

    def _written(self, inline: Sequence[Inline]) -> Callable[..., Any]:
        structure = self.structure
        code = CallCode(self.name, self.signature, __name__, settings=_settings, entries=self.entries, scalar=scalar)
        mark = code.mark
        parts = listed([f"{mark}now", *structure.metas, *structure.kinds])
        compared = [f"{mark}now", *structure.compared_metas, *structure.raw_kinds]
        passed = listed([f"{mark}scalar({path})" if path in structure.numbers else path for path in structure.order])
        look = code.choice(
            [one.key for one in inline],
            compared,
            f"{mark}which = {{}}",
            f"{mark}which, {mark}entry = -1, {mark}entries[{parts}]",
        )
        tests = "".join(f" and {test}" for test in structure.tests)
        look = f"{mark}now = {settings_text(mark)}\n{look}"
        look = f"{mark}good = not {mark}extra and not {mark}more{tests}\nif {mark}good:\n{indent(look, '    ')}"
        run = self._runs(inline, passed, code) + _RUN.format(mark=mark, passed=passed)
        return code.made(code.attempt(look, run), self._otherwise)

    def _runs(self, inline: Sequence[Inline], passed: str, code: CallCode) -> str:
        """Code that runs the entries that are compared here."""
        mark, lines = code.mark, list[str]()
        for number, (_, entry) in enumerate(inline):
            code.see(**{f"run{number}": entry.run, f"hidden{number}": entry.hidden, f"finish{number}": entry.finish})
            code.see(**{f"unchanged{number}": entry.unchanged})
            hidden = "" if not entry.hidden else f"*{mark}hidden{number}"
            call = f"{mark}run{number}({passed}{hidden})"
            if entry.finish is not None:
                call = f"{call}[0]" if _takes_only(entry.finish) else f"{mark}finish{number}({call})"
            holds = "" if entry.unchanged is None else f" and {mark}unchanged{number}()"
            lines.append(f"if {mark}which == {number}{holds}:\n    return {call}\n")
        return "".join(lines)

    def _otherwise(self, given: tuple[Any, ...], extra: tuple[Any, ...], named: dict[str, Any], more: Any) -> Any:
        everything = (*given, *named.values())
        if self._siblings and not extra and not more and all(value is not MISSING for value in everything):
            found = self._resized(everything)
            if found is not None:
                entry, arrays = found
                results = entry.run(*arrays, *entry.hidden)
                return results if entry.finish is None else entry.finish(results)
        args, kwargs = as_given(self.structure.positional, given, extra, named, more)
        return self.slowly(*args, **kwargs)


def _like(chosen: Settings | None, metas: Sequence[Meta], kinds: Sequence[Any]) -> tuple[Any, ...]:
    """The key that calls share which differ in sizes alone."""
    return (chosen, *[meta.kind for meta in metas], *kinds)


def _settings() -> Settings | None:
    """The settings around a call; a call in a function that is traced has no entry."""
    if current_or_none() is not None:
        raise KeyError
    return settings()


def _takes_only(finish: Finish | None) -> bool:
    """Whether it gives the one result of a program."""
    return getattr(finish, "text", None) == ONLY


_RUN = """if {mark}which == -1:
    {mark}unchanged, {mark}run, {mark}hidden, {mark}finish = {mark}entry
    if {mark}unchanged is None or {mark}unchanged():
        {mark}results = {mark}run({passed}*{mark}hidden)
        return {mark}results if {mark}finish is None else {mark}finish({mark}results)"""
ONLY = "results[0]"
"""The text of what takes the one result of a program."""


def finishing(structure: Any, leaves: Sequence[Any]) -> Finish | None:
    """The function that makes a function's result of its program's; leaves are indices of results, or constants."""
    if any(leaf.__class__ is not ResultIndex for leaf in leaves):
        return lambda results: tree_unflatten(
            structure, [results[one.number] if one.__class__ is ResultIndex else one for one in leaves]
        )
    example = tree_unflatten(structure, leaves)
    if example.__class__ is tuple and list(example) == [ResultIndex(index) for index in range(len(leaves))]:
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


class ResultIndex(NamedTuple):
    """The index of a result among those of a program."""

    number: int


def _expression(example: Any) -> str | None:
    """Python for a structure of lists, tuples and dictionaries; None where there is more to it."""
    kind = example.__class__
    if kind is ResultIndex:
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
        if None in inner.values() or not all(key.__class__ in (str, int) for key in inner):
            return None
        return "{" + ", ".join(f"{key!r}: {one}" for key, one in inner.items()) + "}"
    return None
