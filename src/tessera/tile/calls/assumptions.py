"""Assumptions of a kernel about its arguments: words for sizes, strides and values, and the facts they stand for.

A word is `sizes`, `strides` or `values`, for those of all arguments; or one of them, by the parameter: `a.size[1]`,
`b.stride[0]`, `scale`. What an object holds is spelled like the kernel does: `cache.K.size[2]`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from tessera.errors import CompileError
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.arguments import NUMBERS, look_up
from tessera.tile.calls.instance import Instance
from tessera.transforms.core.facts import Fact, FactKind, Facts, observe

GROUPS = {FactKind.SIZE: "sizes", FactKind.STRIDE: "strides", FactKind.VALUE: "values"}
_WORD = re.compile(r"(?P<path>\w+(?:\.\w+)*?)(?:\.(?:size|stride)\[(?P<axis>\d+)\])?")


@dataclass(frozen=True)
class Assumptions:
    """The words, in order. Programs are compiled for the facts that they name, and serve no other arguments."""

    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)

    def __str__(self) -> str:
        return ", ".join(self.words)

    def more(self, what: Iterable[str], name: str, parameters: Collection[str]) -> Assumptions:
        """These words and others, for a kernel of that name; `parameters` are those that are not static."""
        for word in what:
            found = _WORD.fullmatch(word) if isinstance(word, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            if word not in GROUPS.values() and (found is None or found["path"].split(".")[0] not in parameters):
                of_each = f"; and of {', '.join(parameters)} as of x: x.size[0], x.stride[0], or x where it is a number"
                raise CompileError(
                    f"{name} cannot assume {word!r}",
                    hint=f"it can assume {', '.join(GROUPS.values())}{of_each if parameters else ''}",
                )
        return Assumptions(tuple(sorted({*self.words, *what})))

    def check(self, name: str, given: Mapping[str, Any]) -> None:
        """Refuses words that say nothing about given arguments."""
        for word in self.words:
            found = _WORD.fullmatch(word)
            if word in GROUPS.values() or found is None:
                continue
            value, axis = look_up(found["path"], given), found["axis"]
            if not (value.__class__ in NUMBERS if axis is None else _rank(value) > int(axis)):
                raise CompileError(
                    f"{name} cannot assume {word!r}: {found['path']} is {_value_text(value)}",
                    hint=f"it can assume {', '.join([*GROUPS.values(), *_words_for(given)])}",
                )

    def includes_value(self, path: str) -> bool:
        """Whether the value of a number is assumed."""
        return GROUPS[FactKind.VALUE] in self.words or path in self.words

    def facts(self, instance: Instance, values: Sequence[Any]) -> Facts:
        """The facts that the words stand for, about an instance's arguments."""
        if not self:
            return Facts()
        found = [
            atom
            for index, (path, value) in enumerate(zip(instance.paths, values, strict=True))
            for atom in observe({f"arg{index}": value})
            if atom.kind in GROUPS and self._includes(path, atom)
        ]
        return Facts([*found, *self._of_results(instance)])

    def applied(self, instance: Instance, values: Sequence[Any]) -> Instance:
        """The instance as it is compiled for these values of its arguments, with the guards that this takes."""
        if not self:
            return instance
        from tessera.transforms.core.context import CompileContext
        from tessera.transforms.facts.apply_facts import specialize

        module, context = instance.module.clone(), CompileContext.with_facts(self.facts(instance, values))
        specialize(module, context, instance.name)
        return replace(instance, module=module, guards=guards_of(instance, context.recorder.guards))

    def _includes(self, path: str, atom: Fact) -> bool:
        if atom.kind is FactKind.VALUE:
            return self.includes_value(path) and _is_usual(atom.value)
        return GROUPS[atom.kind] in self.words or f"{path}.{atom.subject.partition('.')[2]}" in self.words

    def _of_results(self, instance: Instance) -> Iterator[Fact]:
        """Results are contiguous: their last stride is 1, and those before are known as far as sizes are."""
        for index, (shape, _) in enumerate(instance.outputs, len(instance.paths)):
            stride = 1
            for axis in reversed(range(len(shape)) if GROUPS[FactKind.STRIDE] in self.words else ()):
                yield Fact(FactKind.STRIDE, f"arg{index}.stride[{axis}]", stride)
                size = shape[axis]
                if not isinstance(size, int):
                    break
                stride *= size


def guards_of(instance: Instance, asked: Iterable[Fact]) -> Facts:
    """The guards of a program of an instance, if it asked for these facts; those about results follow from others."""
    inputs = {f"arg{index}" for index in range(len(instance.paths))}
    return Facts(atom for atom in (*instance.guards, *asked) if atom.subject.partition(".")[0] in inputs)


def _is_usual(value: Any) -> bool:
    """Whether a program for just this number makes sense: it is one, and a position of 64 bits if it is whole."""
    return not isnan(value) if isinstance(value, float) else -(1 << 63) <= value < 1 << 63


def _rank(value: Any) -> int:
    return value.ndim if isinstance(value, Tensor) else 0


def _value_text(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"an array of rank {value.ndim}"
    return "a number" if value.__class__ in NUMBERS else f"neither an array nor a number, but {value!r}"


def _words_for(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if value.__class__ in NUMBERS:
            yield name
        for what in ("size", "stride"):
            yield from (f"{name}.{what}[{axis}]" for axis in range(_rank(value)))
