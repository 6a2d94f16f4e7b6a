"""The structure of arguments, for code that is written for one: how to take them apart, and what to compare of them.

Arguments are nested dictionaries, lists and tuples of arrays, numbers and static values; each of those has a path here,
which is Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, NamedTuple

from tessera.lang.calls.parameters import Parameters, is_number, is_number_class
from tessera.lang.tracing.values import is_array
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.pytree import tree_leaves
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.call_code import NOT_FOUND, compared_meta_text, mark_for, meta_text, static_text
from tessera.tile.identity.static_keys import AS_THEY_ARE, exact

_BY_POSITION_OR_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Static(NamedTuple):
    """A value that is part of the program: of a parameter that is static, or static by what it is."""

    path: str
    by_parameter: bool
    numbered: bool
    """Whether a number for it would be an argument."""


class Structure:
    """How code takes arguments apart that are nested like some."""

    def __init__(self, parameters: Parameters, arguments: Mapping[str, Any]) -> None:
        listed = list(parameters.signature.parameters.values())
        self.names = parameters.labels()
        self.mark = mark_for(parameters.signature)
        self.positional = [one.name for one in listed if one.kind is not one.KEYWORD_ONLY]
        self.keyword_only = [one.name for one in listed if one.kind is one.KEYWORD_ONLY]
        self.tests: list[str] = []
        self.arrays: list[str] = []
        self.numbers: list[str] = []
        self.statics: list[Static] = []
        self.order: list[str] = []
        """Arrays and numbers as the program takes them."""
        self._parameters = parameters
        self.is_regular = all(one.kind in _BY_POSITION_OR_NAME for one in listed) and all(
            self._visit(name, name, value) for name, value in arguments.items()
        )
        """Whether code can take them apart; otherwise only a general walk can."""
        if self.is_regular:
            self.taken = self._taking()
            self.taken_raw = self._taking_raw()
            """The kinds of such arguments with static values as they are."""

    def _visit(self, name: str, path: str, item: Any) -> bool:
        kind, numbered = item.__class__, name in self._parameters.numbered
        if name in self._parameters.static:
            self.statics.append(Static(path, True, numbered))
        elif kind is Tensor:
            self.arrays.append(path)
            self.order.append(path)
        elif kind is dict:
            self.tests.append(f"{path}.__class__ is dict and len({path}) == {len(item)}")
            if not all(key.__class__ in (str, int) for key in item):  # of others `repr` is not always Python
                return False
            try:
                keys = sorted(item)
            except TypeError:
                return False
            return all(self._visit(name, f"{path}[{key!r}]", item[key]) for key in keys)
        elif kind in (list, tuple):
            self.tests.append(f"{path}.__class__ is {kind.__name__} and len({path}) == {len(item)}")
            return all(self._visit(name, f"{path}[{index}]", one) for index, one in enumerate(item))
        elif is_number(item) and numbered:
            self.numbers.append(path)
            self.order.append(path)
        elif _is_static(item, numbered):
            self.statics.append(Static(path, False, numbered))
        else:
            return False
        return True

    @property
    def metas(self) -> list[str]:
        return [meta_text(path) for path in self.arrays]

    @property
    def compared_metas(self) -> list[str]:
        return [compared_meta_text(path) for path in self.arrays]

    @property
    def kinds(self) -> list[str]:
        """The parts of a key besides metas: classes of numbers, static values as keys, and their classes."""
        mark = self.mark
        found = [f"{path}.__class__" for path in self.numbers]
        for path in [one.path for one in self.statics]:
            found += [f"{path}.__class__", static_text(path, mark)]
        return found

    @property
    def raw_kinds(self) -> list[str]:
        """The same with static values as they are: where these are the same objects, the keys are equal."""
        found = [f"{path}.__class__" for path in self.numbers]
        return found + [part for one in self.statics for part in (f"{one.path}.__class__", one.path)]

    @property
    def scope(self) -> dict[str, Any]:
        """Other names of the code that makes keys."""
        return {f"{self.mark}plain": AS_THEY_ARE, f"{self.mark}exact": exact}

    def _taking(self) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]] | None]:
        """Gives metas, kinds and the program's arguments of such arguments; None for others, or an error."""
        listed = ["".join(f"{one}, " for one in several) for several in (self.metas, self.kinds, self.order)]
        # What is behind the tests may only be looked at where they hold: a tensor can be indexed like a list.
        text = f"(({listed[0]}), ({listed[1]}), ({listed[2]})) if {' and '.join(self.tests) or 'True'} else None"
        return eval(f"lambda {', '.join(self.names)}: {text}", self.scope)

    def _taking_raw(self) -> Callable[..., tuple[Any, ...]]:
        return eval(f"lambda {', '.join(self.names)}: ({''.join(f'{one}, ' for one in self.raw_kinds)})", {})

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments have this structure."""
        try:
            taken = self.taken(**arguments)
        except NOT_FOUND:
            return False
        if taken is None:
            return False
        (metas, _, _), kinds = taken, self.taken_raw(**arguments)
        count = len(self.numbers)
        return (
            all(meta.__class__ is Meta for meta in metas)
            and all(map(is_number_class, kinds[:count]))
            and all(
                one.by_parameter or _is_static(value, one.numbered)
                for one, value in zip(self.statics, kinds[count + 1 :: 2], strict=True)
            )
        )


def _is_static(value: Any, numbered: bool) -> bool:
    """Whether a value is static wherever it is, and not taken apart."""
    if value is None or isinstance(value, str):
        return True
    return not (numbered and is_number(value)) and not is_array(value) and tree_leaves(value) == [value]
