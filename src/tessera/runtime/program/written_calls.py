"""The common parts of code that is generated for calls: parameters, names of its own, and arguments as they were given.

Kernels, jitted functions and what runs in tiers each have a function written for their parameters, which finds what
such arguments led to before. All parameters have defaults in it, so that what is wrong with arguments is found and said
once: by the function that takes calls with new arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from types import CodeType
from typing import Any

from tessera import knobs

MISSING: Any = object()
"""The default of a parameter that has none."""
NOT_FOUND = (KeyError, IndexError, AttributeError, TypeError, NameError, ValueError)
"""Errors of looking for an entry where there is none: no such key, an argument that is no tensor, has no such part
or cannot be part of a key, a global name or a variable of an outer function that is gone."""


def mark_for(signature: Signature) -> str:
    """A prefix for the code's own names, which no parameter begins with."""
    mark = "_"
    while any(name.startswith(mark) for name in signature.parameters):
        mark += "_"
    return mark


def settings_text(mark: str) -> str:
    """The settings around a call. Knobs know them while nothing has changed; otherwise `settings` is asked."""
    return f"{mark}scope().quick.settings or {mark}settings()"


def meta_text(path: str) -> str:
    """The meta of a tensor. A slot is read in a third of the time that a property takes; it is empty at first."""
    return f"{path}.known_meta or {path}.meta"


def parameters_text(signature: Signature, mark: str) -> str:
    """The parameters, with all that is given beyond them in `extra` and `more`."""
    listed: list[str] = []
    ordered = list(signature.parameters.values())
    beyond = f"*{mark}extra"
    for index, one in enumerate(ordered):
        if one.kind is Parameter.KEYWORD_ONLY and beyond not in listed:
            listed.append(beyond)
        listed.append(f"{one.name}={mark}defaults[{one.name!r}]")
        following = ordered[index + 1].kind if index + 1 < len(ordered) else None
        if one.kind is Parameter.POSITIONAL_ONLY and following is not Parameter.POSITIONAL_ONLY:
            listed.append("/")
    if beyond not in listed:
        listed.append(beyond)
    return ", ".join([*listed, f"**{mark}more"])


def written(
    name: str, text: str, signature: Signature, mark: str, scope: Mapping[str, Any], module: str
) -> Callable[..., Any]:
    """The function `call` of a text, under a name. `scope` has what else it sees, without marks.

    Errors are told at the user's line, which is not in there: so its module is one of the package.
    """
    seen: dict[str, Any] = {
        "__name__": module,
        f"{mark}not_found": NOT_FOUND,
        f"{mark}scope": knobs.scope,
        f"{mark}defaults": {
            one.name: MISSING if one.default is one.empty else one.default for one in signature.parameters.values()
        },
    }
    seen |= {f"{mark}{key}": value for key, value in scope.items()}
    exec(_code(text, module), seen)
    made = seen[f"{mark}call"]
    made.__name__ = made.__qualname__ = name
    return made


@lru_cache(maxsize=256)
def _code(text: str, module: str) -> CodeType:
    """A text is written anew when what it sees changes; compiling takes a millisecond, which calls would wait for."""
    return compile(text, f"<{module}>", "exec")


def as_given(
    names: Sequence[str], given: Sequence[Any], extra: Sequence[Any], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position and by name, from those of parameters that can be given by position, and others.

    Parameters in front of the first that is missing were given by position, as far as anyone can tell.
    """
    count = next((index for index, value in enumerate(given) if value is MISSING), len(given))
    rest = dict(zip(names[count:], given[count:], strict=True)) | dict(named)
    return (*given[:count], *extra), {name: value for name, value in rest.items() if value is not MISSING}
