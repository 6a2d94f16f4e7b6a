"""Operators: the functions of the Array API standard and the deep-learning set, for traced values and tensors alike.

This is the standard's namespace. Its names are those of the registry; the module of each loads when it is first used.
Tools that read sources see them in the stub beside this file, which `tests/stubs/` writes.
"""

from __future__ import annotations

from typing import Any

from tessera.dtypes.types import STANDARD_NAMES
from tessera.lang.operator_registry import ALIASES, ARRAY_API_VERSION, OPERATORS, operator_named
from tessera.lang.spellings import MissingAttributeError

globals().update(STANDARD_NAMES, __all__=["__array_api_version__", *STANDARD_NAMES, *OPERATORS])
__array_api_version__ = ARRAY_API_VERSION


def __getattr__(name: str) -> Any:
    known = ALIASES.get(name, name)
    if known not in OPERATORS:
        raise MissingAttributeError(f"module {__name__!r}", name, lambda: [*__dir__(), *ALIASES])
    found = globals()[name] = operator_named(known)
    return found


def __dir__() -> list[str]:
    return sorted(globals()["__all__"])
