"""The code of calls: functions that are written for the parameters of a kernel, a jitted function or a tiered one.

Each finds what such arguments led to before: it asks for the settings, compares metas and static values with those of
the first few entries, by identity, then looks into a dictionary. All parameters have defaults in it, so that what is
wrong with arguments is found and told once: by the function that takes calls with new arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from textwrap import indent
from types import CodeType
from typing import Any

from tessera import knobs
from tessera.tile.identity.static_keys import AS_THEY_ARE, exact
from tessera.tracebacks import trim

MISSING: Any = object()
"""The default of a parameter that has none."""
NOT_FOUND = (KeyError, IndexError, AttributeError, TypeError, NameError, ValueError)
"""Errors of looking for an entry where there is none: no such key, an argument that is no tensor, has no such part
or cannot be part of a key, a global name or a variable of an outer function that is gone."""
INLINE = 4
"""Entries that are compared one by one before there is a look into the dictionary."""
_TRIM = "    except Exception as {0}problem:\n        {0}trim({0}problem)\n        raise\n"
"""The end of such code: an error that goes to its caller leaves without the frames of the package."""


def mark_for(signature: Signature) -> str:
    """A prefix for the code's own names, which no parameter begins with."""
    mark = "_"
    while any(name.startswith(mark) for name in signature.parameters):
        mark += "_"
    return mark


def meta_text(path: str) -> str:
    """The meta of a tensor. A slot is read in a third of the time that a property takes; it is empty at first."""
    return f"{path}.known_meta or {path}.meta"


def compared_meta_text(path: str) -> str:
    """The meta of a tensor where it is compared with others: an empty slot is none of them."""
    return f"{path}.known_meta"


def static_text(path: str, mark: str) -> str:
    """The key of a static value, beside its class."""
    return f"({path} if {path}.__class__ in {mark}plain else {mark}exact({path}))"


def listed(texts: Sequence[str]) -> str:
    """Texts as the items of a tuple or the arguments of a call."""
    return "".join(f"{one}, " for one in texts)


def settings_text(mark: str) -> str:
    """The settings around a call. Knobs know them while nothing has changed; otherwise `settings` is asked."""
    return f"{mark}scope().quick.settings or {mark}settings()"


class CallCode:
    """A function for calls, while it is written. Its own names begin with `mark`, in texts too."""

    def __init__(self, name: str, signature: Signature, module: str, **seen: Any) -> None:
        """`seen` are values under names of its own. Its module is one of the package, which tracebacks leave out."""
        self.mark = mark_for(signature)
        self._name, self._module = name, module
        self._parameters = list(signature.parameters.values())
        defaults = {one.name: MISSING if one.default is one.empty else one.default for one in self._parameters}
        self._seen: dict[str, Any] = {"__name__": module}
        given = listed([one.name for one in self._parameters if one.kind is not one.KEYWORD_ONLY])
        named = ", ".join(f"{one.name!r}: {one.name}" for one in self._parameters if one.kind is one.KEYWORD_ONLY)
        self.whole = f"({given}), {self.mark}extra, {{{named}}}, {self.mark}more"
        """All that a call was given, in the parts that `as_given` joins."""
        self.see(not_found=NOT_FOUND, scope=knobs.scope, plain=AS_THEY_ARE, exact=exact, defaults=defaults, **seen)

    def see(self, **values: Any) -> None:
        """Lets the function see values under names of its own."""
        self._seen |= {f"{self.mark}{name}": value for name, value in values.items()}

    def attempt(self, look: str, run: str) -> str:
        """Looks for an entry, which sets `good`, and runs it where that is true; what it then raises is not caught."""
        mark = self.mark
        return (
            f"try:\n{indent(look, '    ')}\nexcept {mark}not_found:\n    {mark}good = False\n"
            f"if {mark}good:\n{indent(run, '    ')}\n"
        )

    def choice(self, keys: Sequence[Sequence[object]], parts: Sequence[str], found: str, otherwise: str) -> str:
        """Compares parts of a call with those of keys; `found` has braces for the number of the key that it matches.

        The parts that all keys have in common are compared once.
        """
        if not keys:
            return otherwise
        differ = [index for index in range(len(parts)) if any(one[index] is not keys[0][index] for one in keys)]

        def tests(number: int, indices: Sequence[int]) -> str:
            self.see(**{f"key{number}_{index}": keys[number][index] for index in indices})
            return " and ".join(f"{parts[index]} is {self.mark}key{number}_{index}" for index in indices) or "True"

        common = tests(0, [index for index in range(len(parts)) if index not in differ])
        if not differ:
            return f"if {common}:\n    {found.format(0)}\nelse:\n    {otherwise}"
        lines = [f"if not ({common}):\n    {otherwise}"]
        lines += [f"elif {tests(number, differ)}:\n    {found.format(number)}" for number in range(len(keys))]
        return "\n".join([*lines, f"else:\n    {otherwise}"])

    def made(self, body: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The function. Calls for which the body returns nothing go to `otherwise`, in those parts."""
        mark, body = self.mark, f"{body}\nreturn {self.mark}otherwise({self.whole})"
        text = f"def {mark}call({self._parameters_text()}):\n    try:\n{indent(body, '        ')}\n{_TRIM.format(mark)}"
        self.see(otherwise=otherwise, trim=trim)
        exec(_compiled(text, self._module), self._seen)
        made = self._seen[f"{mark}call"]
        made.__name__ = made.__qualname__ = self._name
        return made

    def _parameters_text(self) -> str:
        """The parameters, with all that is given beyond them in `extra` and `more`."""
        found: list[str] = []
        beyond = f"*{self.mark}extra"
        for one, following in zip(self._parameters, [*self._parameters[1:], None], strict=True):
            if one.kind is Parameter.KEYWORD_ONLY and beyond not in found:
                found.append(beyond)
            found.append(f"{one.name}={self.mark}defaults[{one.name!r}]")
            is_last = following is None or following.kind is not Parameter.POSITIONAL_ONLY
            if one.kind is Parameter.POSITIONAL_ONLY and is_last:
                found.append("/")
        if beyond not in found:
            found.append(beyond)
        return ", ".join([*found, f"**{self.mark}more"])


@lru_cache(maxsize=256)
def _compiled(text: str, module: str) -> CodeType:
    """A text is written anew when what it sees changes; compiling takes a millisecond, which calls would wait for."""
    return compile(text, f"<{module}>", "exec")


def as_given(
    names: Sequence[str], given: Sequence[Any], extra: Sequence[Any], named: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position and by name, from those of parameters that can be given by position, and others.

    Parameters in front of the first that is missing were given by position, as far as anyone can tell.
    """
    count = next((index for index, value in enumerate(given) if value is MISSING), len(given))
    rest = dict(zip(names[count:], given[count:], strict=True)) | dict(named)
    return (*given[:count], *extra), {name: value for name, value in rest.items() if value is not MISSING} | dict(more)
