"""Facts about arguments: what the host can decide from metadata, and the record of which facts were needed.

A fact reads like the guard that checks it: `arg0.size[1] = 128`, `arg0.stride[0] % 16 = 0`,
`arg0.size[1] = arg2.size[0]`, `arg0 disjoint arg1`, `arg3 = 0.125`, `arg0.dtype = f32`, `arg0.rank = 2`,
`arg4 is 7#3` (object 7 at version 3). More facts is set inclusion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from tessera.dtypes.types import DType
from tessera.errors import GuardError


class FactKind(Enum):
    """The kinds of facts; the value shows the spelling."""

    DTYPE = "argN.dtype = T"
    RANK = "argN.rank = n"
    SIZE = "argN.size[i] = n"
    STRIDE = "argN.stride[i] = n"
    DIVISIBLE = "argN.size[i] % n = 0"
    EQUAL = "argN.size[i] = argM.size[j]"
    DISJOINT = "argN disjoint argM"
    VALUE = "argN = scalar"
    IDENTITY = "argN is id#version"


Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Fact:
    """One atom: what kind, about what, and the value it has."""

    kind: FactKind
    subject: str
    value: Value

    def __str__(self) -> str:
        match self.kind:
            case FactKind.DIVISIBLE:
                return f"{self.subject} % {self.value} = 0"
            case FactKind.DISJOINT:
                return f"{self.subject} disjoint {self.value}"
            case FactKind.IDENTITY:
                return f"{self.subject} is {self.value}"
            case FactKind.VALUE if isinstance(self.value, bool):
                return f"{self.subject} = {str(self.value).lower()}"
            case _:
                return f"{self.subject} = {self.value}"


_PATH = r"[A-Za-z_][\w.]*?"
# A measure is not a scalar argument, though it is spelled like one.
_NAME = r"(?!.*\.(?:size|stride|dtype|rank|pointer)\b)" + _PATH
_MEASURE = rf"(?:{_PATH})\.(?:size|stride)\[\d+\]"
_SPELLINGS: tuple[tuple[FactKind, re.Pattern[str]], ...] = (
    (FactKind.DIVISIBLE, re.compile(rf"({_MEASURE}|{_PATH}\.pointer) % (\d+) = 0")),
    (FactKind.DISJOINT, re.compile(rf"({_PATH}) disjoint ({_PATH})")),
    (FactKind.IDENTITY, re.compile(rf"({_PATH}) is (\d+#\d+)")),
    (FactKind.EQUAL, re.compile(rf"({_MEASURE}) = ({_MEASURE})")),
    (FactKind.SIZE, re.compile(rf"({_PATH}\.size\[\d+\]) = (\d+)")),
    (FactKind.STRIDE, re.compile(rf"({_PATH}\.stride\[\d+\]) = (-?\d+)")),
    (FactKind.DTYPE, re.compile(rf"({_PATH}\.dtype) = (\w+)")),
    (FactKind.RANK, re.compile(rf"({_PATH}\.rank) = (\d+)")),
    (FactKind.VALUE, re.compile(rf"({_NAME}) = (true|false|-?[\d.]+(?:[eE][-+]?\d+)?|-?inf|nan)")),
)
_TEXT_VALUES = (FactKind.DISJOINT, FactKind.IDENTITY, FactKind.EQUAL, FactKind.DTYPE)


def parse_fact(text: str) -> Fact:
    """Reads a fact back from its spelling."""
    stripped = " ".join(text.split())
    for kind, pattern in _SPELLINGS:
        if match := pattern.fullmatch(stripped):
            return fact(kind, match[1], match[2] if kind in _TEXT_VALUES else _number(match[2]))
    raise GuardError(f"cannot read the fact {text!r}", hint="facts are spelled " + "; ".join(k.value for k in FactKind))


def fact(kind: FactKind, subject: str, value: Value) -> Fact:
    """A fact in normal form: relations between two arguments name the smaller first."""
    if kind in (FactKind.DISJOINT, FactKind.EQUAL) and str(value) < subject:
        return Fact(kind, str(value), subject)
    return Fact(kind, subject, value)


def _number(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return float(text)


class Facts:
    """A set of facts without contradictions."""

    __slots__ = ("_atoms", "_by_subject")

    def __init__(self, atoms: Iterable[Fact] = ()) -> None:
        self._atoms = frozenset(atoms)
        self._by_subject: dict[tuple[FactKind, str], list[Fact]] = {}
        for atom in sorted(self._atoms, key=str):
            self._by_subject.setdefault((atom.kind, atom.subject), []).append(atom)
        for (kind, subject), found in self._by_subject.items():
            if len(found) > 1 and kind not in (FactKind.DIVISIBLE, FactKind.DISJOINT, FactKind.EQUAL):
                raise GuardError(
                    f"contradicting facts about {subject}: {', '.join(map(str, found))}", hint="keep one of them"
                )

    @staticmethod
    def parse(*texts: str) -> Facts:
        return Facts(parse_fact(text) for text in texts)

    def about(self, kind: FactKind, subject: str) -> list[Fact]:
        return self._by_subject.get((kind, subject), [])

    def of_kind(self, kind: FactKind) -> list[Fact]:
        return [atom for (found, _), atoms in self._by_subject.items() if found is kind for atom in atoms]

    def without(self, *atoms: Fact) -> Facts:
        return Facts(self._atoms - set(atoms))

    def __iter__(self) -> Iterator[Fact]:
        return iter(sorted(self._atoms, key=str))

    def __len__(self) -> int:
        return len(self._atoms)

    def __bool__(self) -> bool:
        return bool(self._atoms)

    def __contains__(self, atom: object) -> bool:
        return atom in self._atoms

    def __le__(self, other: Facts) -> bool:
        return self._atoms <= other._atoms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self._atoms == other._atoms

    def __hash__(self) -> int:
        return hash(self._atoms)

    def __repr__(self) -> str:
        return f"Facts({', '.join(map(str, self))})"


class Recorder:
    """Answers passes' questions about arguments and remembers each answer that was given.

    A pass asks only where the answer changes what it does; so the facts asked and held are the guards.
    """

    def __init__(self, facts: Facts | None = None) -> None:
        self.facts = facts if facts is not None else Facts()
        self._guards: set[Fact] = set()

    def ask(self, atom: Fact | None) -> bool:
        """Whether `atom` holds; if so it becomes a guard."""
        if atom is None or atom not in self.facts:
            return False
        self._guards.add(atom)
        return True

    @property
    def guards(self) -> Facts:
        return Facts(self._guards)


@runtime_checkable
class Described(Protocol):
    """An array-like argument: everything a fact may speak of, readable on the host."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def pointer(self) -> int: ...


def holds(atom: Fact, arguments: Mapping[str, Any]) -> bool:
    """Decides a fact from the metadata of concrete arguments: the guard, evaluated."""
    match atom.kind:
        case FactKind.DISJOINT:
            first, second = _extent(arguments[atom.subject]), _extent(arguments[str(atom.value)])
            return first[1] <= second[0] or second[1] <= first[0]
        case FactKind.EQUAL:
            return _measure(atom.subject, arguments) == _measure(str(atom.value), arguments)
        case FactKind.DIVISIBLE:
            return _measure(atom.subject, arguments) % int(atom.value) == 0
        case FactKind.VALUE:
            given = arguments[atom.subject]
            return type(given) is type(atom.value) and given == atom.value
        case FactKind.IDENTITY:
            given = arguments[atom.subject]
            return f"{id(given)}#{getattr(given, 'version', 0)}" == atom.value
        case FactKind.DTYPE:
            return _argument(atom.subject, arguments).dtype.base.name == atom.value
        case FactKind.RANK:
            return len(_argument(atom.subject, arguments).shape) == atom.value
        case FactKind.SIZE | FactKind.STRIDE:
            return _measure(atom.subject, arguments) == atom.value


def _argument(subject: str, arguments: Mapping[str, Any]) -> Described:
    return arguments[subject.rpartition(".")[0]]


def _extent(argument: Described) -> tuple[int, int]:
    """The bytes from the first to behind the last that an array touches; none when it is empty."""
    if 0 in argument.shape:
        return argument.pointer, argument.pointer
    item = argument.dtype.storage.itemsize
    reach = [(size - 1) * stride * item for size, stride in zip(argument.shape, argument.strides, strict=True)]
    low, high = sum(step for step in reach if step < 0), sum(step for step in reach if step > 0)
    return argument.pointer + low, argument.pointer + high + item


def _measure(subject: str, arguments: Mapping[str, Any]) -> int:
    path, _, what = subject.rpartition(".")
    argument: Described = arguments[path]
    if what == "pointer":
        return argument.pointer
    name, _, axis = what.removesuffix("]").partition("[")
    return (argument.shape if name == "size" else argument.strides)[int(axis)]


def observe(arguments: Mapping[str, Any]) -> Facts:
    """Every size, stride, value and overlap fact that holds for concrete arguments."""
    found: list[Fact] = []
    arrays: dict[str, Described] = {}
    for path, argument in arguments.items():
        if isinstance(argument, bool | int | float):
            found.append(Fact(FactKind.VALUE, path, argument))
        elif isinstance(argument, Described):
            arrays[path] = argument
            found.append(Fact(FactKind.DTYPE, f"{path}.dtype", argument.dtype.base.name))
            found.append(Fact(FactKind.RANK, f"{path}.rank", len(argument.shape)))
            for axis, (size, stride) in enumerate(zip(argument.shape, argument.strides, strict=True)):
                found.append(Fact(FactKind.SIZE, f"{path}.size[{axis}]", size))
                found.append(Fact(FactKind.STRIDE, f"{path}.stride[{axis}]", stride))
    for first in arrays:
        for second in arrays:
            atom = fact(FactKind.DISJOINT, first, second)
            if first < second and holds(atom, arguments):
                found.append(atom)
    return Facts(found)
