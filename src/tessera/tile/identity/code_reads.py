"""The names that code reads, as its bytecode tells: names of modules and closures, attributes, imports."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from tessera.errors import SourceSpan, span_of

_OUTER = frozenset(
    {
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_DEREF",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT_OR_GLOBALS",
        "LOAD_FROM_DICT_OR_DEREF",
    }
)
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_STORES = frozenset(
    {"STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_DEREF", "DELETE_ATTR"}
)
_BY_TEXT = frozenset({"getattr", "hasattr", "setattr", "delattr", "vars", "attrgetter", "methodcaller", "__dict__"})
_SCOPES = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__", "import_module"})
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Outer:
    """A name from outside: where it is read first, which attributes of it are, and whether its value goes elsewhere."""

    name: str
    span: SourceSpan
    chains: tuple[tuple[str, ...], ...]
    escapes: bool


@dataclass(slots=True)
class CodeReads:
    """The names that code reads, functions inside of it included."""

    outer: dict[str, Outer] = field(default_factory=dict[str, Outer])
    attributes: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    """Identifiers in its strings: names, where it asks for attributes by name."""
    stores: set[str] = field(default_factory=set[str])
    """Names that it may change."""
    imports: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Modules that it imports itself, and how many packages up they are looked for."""
    by_name: bool = False
    """Whether it may ask for attributes whose names are not in it."""
    by_scope: bool = False
    """Whether it may ask for names of its module so."""


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> CodeReads:
    """The names that code reads from outside."""
    found = CodeReads()
    listed = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    uses: dict[str, tuple[SourceSpan, set[tuple[str, ...]], bool]] = {}
    for index, instruction in enumerate(listed):
        name, kind = instruction.argval, instruction.opname
        if kind in _OUTER:
            chain = tuple(_chain(listed, index + 1))
            span, chains, escapes = uses.get(name) or (span_of(code, instruction.offset), set[tuple[str, ...]](), False)
            if chain:
                chains.add(chain)
            uses[name] = (span, chains, escapes or not chain)
        elif kind == "IMPORT_NAME":
            level = listed[index - 2].argval if index >= 2 else 0
            found.imports.add((name, level if isinstance(level, int) else 0))
        elif kind in _STORES:
            found.stores.add(name)
    found.outer = {
        name: Outer(name, span, tuple(sorted(chains)), escapes) for name, (span, chains, escapes) in uses.items()
    }
    found.attributes |= set(code.co_names)
    for constant in code.co_consts:
        _note_constant(found, constant)
    asked = found.attributes | found.outer.keys()
    found.by_name = found.by_name or not asked.isdisjoint(_BY_TEXT)
    found.by_scope = found.by_scope or not asked.isdisjoint(_SCOPES)
    for name in code.co_cellvars:
        found.outer.pop(name, None)
    return found


def _note_constant(found: CodeReads, constant: Any) -> None:
    if isinstance(constant, CodeType):
        inner = reads_of(constant)
        for name, one in inner.outer.items():
            here = found.outer.get(name)
            found.outer[name] = (
                one
                if here is None
                else Outer(name, here.span, tuple(sorted({*here.chains, *one.chains})), here.escapes or one.escapes)
            )
        found.attributes |= inner.attributes
        found.words |= inner.words
        found.stores |= inner.stores
        found.imports |= inner.imports
        found.by_name, found.by_scope = found.by_name or inner.by_name, found.by_scope or inner.by_scope
    elif isinstance(constant, str):
        found.words.update(_IDENTIFIER.findall(constant))
    elif isinstance(constant, tuple | frozenset):
        for one in constant:  # pyright: ignore[reportUnknownVariableType]  (of anything)
            _note_constant(found, one)


def _chain(listed: list[dis.Instruction], index: int) -> Iterator[str]:
    """The attributes that follow: `.b.c` of `a.b.c`."""
    while index < len(listed) and listed[index].opname in _ATTRIBUTE:
        yield listed[index].argval
        index += 1
