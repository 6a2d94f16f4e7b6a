"""Calls of kernels: from Python's arguments to machine code, with nothing slow on the way.

Each form of a kernel has a function of its own, written for its parameters, that looks up what such arguments led to
before: by the metas of tensors, the types of numbers and the values of static arguments. For NumPy arrays there is a
second look, by dtype, shape and strides. Whatever is not found there, or not as it was, goes the long way: arguments
are checked against annotations, and a program is found, compiled or interpreted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import copysign
from textwrap import indent
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from tessera.runtime.program.executable import Runner
from tessera.runtime.program.overlap import OverlapError
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.call_code import MISSING, NOT_FOUND, CallCode, as_given, listed, meta_text, settings_text, static_text
from tessera.tile.calls.arguments import NUMBERS, Number, is_array, plain
from tessera.tile.calls.arguments import exact as exact_number
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.program_cache import WORK
from tessera.tile.calls.settings import Settings, settings
from tessera.tile.identity.captures import CapturedValues
from tessera.tile.identity.static_keys import AS_THEY_ARE, exact
from tessera.tracebacks import trimmed

INSIDE = "call_kernel"
"""The method of values that are not known yet, which says what calling a kernel with one means."""

_MOST_ENTRIES = 1024

Entry: TypeAlias = tuple[Callable[[], bool], Runner]
"""Whether what the program was made of is still the same, and the program for such arguments."""


class Known(NamedTuple):
    """The programs of earlier calls. `paths` say where arrays and numbers lie: parameters, or attributes of objects."""

    paths: tuple[str, ...]
    entries: dict[tuple[Any, ...], Entry]


class Callee(Protocol):
    """The parts of a kernel that its calls need."""

    __name__: str
    __call__: Callable[..., Any]
    signature: inspect.Signature
    assumed: Assumptions

    def program_for(
        self, args: Sequence[object], kwargs: Mapping[str, object], chosen: Settings
    ) -> tuple[GuardedKernel, list[object]]: ...

    def trace_and_run(self, args: Sequence[object], kwargs: Mapping[str, object]) -> object: ...

    def warn_if_not_tuned(self, made: GuardedKernel) -> None: ...

    def in_order(self, groups: Iterable[Iterable[str]]) -> Self: ...

    def seen(self, static: Iterable[object]) -> CapturedValues: ...


class Calls:
    """The calls of one form of a kernel."""

    def __init__(self, kernel: Callee) -> None:
        self.kernel = kernel
        self.signature = kernel.signature
        parameters = self.signature.parameters.values()
        self.given = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        self.static = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        self.names = [parameter.name for parameter in self.given]
        self.known = Known((), {})
        # The forms of the kernel for arrays that overlap.
        self.in_order: dict[frozenset[tuple[str, ...]], Callee] = {}
        # Numbers that programs were compiled for, as `exact` gives them. Only of these the value is part of a key.
        self.special: dict[tuple[Number, object], object] = {}

    @trimmed
    def slowly(self, /, *args: Any, **kwargs: Any) -> Any:
        """Any call; the next of its kind is quick."""
        for value in (*args, *kwargs.values()):
            if (inside := getattr(value, INSIDE, None)) is not None:
                return inside(self.kernel, args, kwargs)
        kernel, chosen = self.kernel, settings()
        if chosen is None:
            return kernel.trace_and_run(args, kwargs)
        program, values = kernel.program_for(args, kwargs, chosen)
        kernel.warn_if_not_tuned(program)
        if program.executable is None:
            return program.interpreted(values)
        arrays = [value.geometry if isinstance(value, Tensor) else value for value in values]
        run = program.executable.bind(arrays, deterministic=chosen.deterministic)
        with WORK.brief:
            self._remember(args, kwargs, program, run, chosen)
        try:
            return run(*arrays)
        except OverlapError as error:
            return self._in_order(error, program.paths)(*args, **kwargs)

    def _in_order(self, error: OverlapError, paths: Sequence[str]) -> Callee:
        """The kernel for calls in which these arrays overlap."""
        groups = frozenset(tuple(paths[index] for index in pair) for pair in error.pairs)
        with WORK.brief:
            found = self.in_order.get(groups)
            if found is None:
                found = self.in_order[groups] = self.kernel.in_order(sorted(groups))
        return found

    def _remember(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], program: GuardedKernel, run: Runner, chosen: Settings
    ) -> None:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        known = self.known
        added = tuple(path for path in program.paths if path not in known.paths)
        if added:
            known = self.known = Known(known.paths + added, {})
        for ask, answer in program.guards:
            if ask.what == "value":
                self.special[exact_number(answer)] = exact_number(answer)
        try:
            described = self._described(known, bound.arguments, chosen)
        except AttributeError:  # an object without something that others had
            return
        if described is None:
            return
        key, values = described
        if program.paths != known.paths:
            run = _picking(run, [known.paths.index(path) for path in program.paths])
        if len(known.entries) >= _MOST_ENTRIES:
            known.entries.clear()
        seen = self.kernel.seen([bound.arguments[parameter.name] for parameter in self.static])
        known.entries[key] = (seen.is_unchanged, run)
        if added:
            self.kernel.__call__ = self._quick(known, values)

    def _objects(self, known: Known) -> list[inspect.Parameter]:
        """Parameters that are neither arrays nor numbers, but may hold some."""
        return [parameter for parameter in self.given if parameter.name not in known.paths]

    def _described(
        self, known: Known, arguments: Mapping[str, Any], chosen: Settings | None
    ) -> tuple[tuple[Any, ...], list[Any]] | None:
        """The key of arguments, and the arrays and numbers among them; None where they are of unknown kinds."""
        parts: list[Any] = [chosen]
        values: list[Any] = []
        for path in known.paths:
            name, *attributes = path.split(".")
            value = arguments[name]
            for attribute in attributes:
                value = getattr(value, attribute)
            value = plain(value)
            if value.__class__ in NUMBERS:
                parts.append(value.__class__)
                if self.kernel.assumed.includes_value(path):
                    parts.append(self.special.get(exact_number(value)))
                values.append(value)
            elif is_array(value):
                tensor = asarray(value)
                # An array that had to be copied is no tensor's memory, and its copy is described instead.
                parts.append(_part(value if tensor.geometry is value else tensor))
                values.append(tensor.geometry)
            else:
                return None
        parts += [arguments[parameter.name].__class__ for parameter in self._objects(known)]
        for parameter in self.static:
            value = arguments[parameter.name]
            parts.append(value if value.__class__ in AS_THEY_ARE else exact(value))
            parts.append(value.__class__)
        return tuple(parts), values

    def _otherwise(
        self, given: Sequence[Any], extra: Sequence[Any], static: Mapping[str, Any], more: Mapping[str, Any]
    ) -> Any:
        """A call that the quick function has nothing for: perhaps arrays of others, perhaps the first of its kind."""
        args, kwargs = as_given(self.names, given, extra, static, more)
        named = dict(zip(self.names, given, strict=True)) | dict(static)
        values = named.values()
        if not extra and not more and not any(value is MISSING or hasattr(value, INSIDE) for value in values):
            found = self._found(named)
            if found is not None:
                run, arrays = found
                try:
                    return run(*arrays)
                except OverlapError as error:
                    return self._in_order(error, self.known.paths)(*args, **kwargs)
        return self.slowly(*args, **kwargs)

    def _overlapped(self, error: OverlapError, *parts: Any) -> Any:
        """A call with arrays that overlap: the kernel for such is called instead."""
        args, kwargs = as_given(self.names, *parts)
        return self._in_order(error, self.known.paths)(*args, **kwargs)

    def _found(self, arguments: Mapping[str, Any]) -> tuple[Runner, list[Any]] | None:
        known = self.known
        try:
            described = self._described(known, arguments, settings())
            if described is None:
                return None
            is_good, run = known.entries[described[0]]
            return (run, described[1]) if is_good() else None
        except NOT_FOUND:
            return None

    def _quick(self, known: Known, values: Sequence[Any]) -> Callable[..., Any]:
        """The function of this kernel's parameters that finds what is known with as little work as Python allows."""
        code = CallCode(self.kernel.__name__, self.signature, __name__, settings=settings, entries=known.entries)
        code.see(tensor=Tensor, part=_part, array=_array, special=self.special.get, float=float, sign=copysign)
        code.see(overlap=OverlapError, overlapped=self._overlapped)
        mark = code.mark
        # An attribute is read once: it may be another the next time.
        held = [path if "." not in path else f"{mark}{index}" for index, path in enumerate(known.paths)]
        are_arrays = {name: is_array(value) for name, value in zip(held, values, strict=True)}
        numbers = {
            name: f"{name}.__class__, {self._special(mark, name) if self.kernel.assumed.includes_value(path) else ''}"
            for name, path in zip(held, known.paths, strict=True)
        }
        others = [f"{parameter.name}.__class__" for parameter in self._objects(known)]
        for one in self.static:
            others += [static_text(one.name, mark), f"{one.name}.__class__"]

        def attempt(before: str, key: Callable[[str], str], taken: Callable[[str], str]) -> str:
            parts = "".join(f"{key(name)}, " if array else numbers[name] for name, array in are_arrays.items())
            passed = listed([taken(name) if array else name for name, array in are_arrays.items()])
            look = _LOOK.format(mark=mark, key=f"{settings_text(mark)}, {parts}{listed(others)}")
            run = _RUN.format(mark=mark, passed=passed, whole=code.whole)
            return code.attempt(before + (indent(look, "    ") if before else look), run)

        first = next((name for name, array in are_arrays.items() if array), None)
        reads = "".join(f"{name} = {path}\n" for name, path in zip(held, known.paths, strict=True) if name != path)
        tensors = f"{reads}{mark}good = {first}.__class__ is {mark}tensor\nif {mark}good:\n"
        body = attempt(tensors, meta_text, lambda name: f"{name}.geometry")
        body += attempt("", lambda name: f"{mark}part({name})", lambda name: f"{mark}array({name})")
        return code.made(body, self._otherwise)

    @staticmethod
    def _special(mark: str, name: str) -> str:
        """A number, as `exact` gives it, if programs were compiled for it."""
        return f"{mark}special(({name}, {name}.__class__ is {mark}float and {mark}sign(1.0, {name}))), "


_LOOK = """{mark}unchanged, {mark}run = {mark}entries[{key}]
{mark}good = {mark}unchanged() and not {mark}extra and not {mark}more"""
_RUN = """try:
    return {mark}run({passed})
except {mark}overlap as {mark}error:
    return {mark}overlapped({mark}error, {whole})"""


def _part(value: Any) -> Any:
    """The part of an array that keys have."""
    if value.__class__ is np.ndarray and value.flags.aligned:
        return value.dtype, value.shape, value.strides
    return value.meta


def _array(value: Any) -> Any:
    return value.geometry if value.__class__ is Tensor else value


def _picking(run: Runner, indices: Sequence[int]) -> Runner:
    def picked(*values: Any) -> Any:
        try:
            return run(*[values[index] for index in indices])
        except OverlapError as error:
            raise error.renumbered(indices) from None

    return picked
