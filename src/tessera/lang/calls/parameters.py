"""From Python's arguments to leaves: which are tensors, which are numbers that the program takes, which are static.

A parameter's value may be any pytree. Arrays in it are arguments. A number is an argument, too, unless its parameter is
static: named in `static_argnums` or `static_argnames`, or keyword-only, as for kernels. Everything else, such as
strings, functions and None, is static wherever it is, and must be hashable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import copysign
from typing import Any

import numpy as np

from tessera.cached_property import cached_property
from tessera.dtypes.types import DType, bool_, f64, i64
from tessera.errors import TesseraError
from tessera.lang.calls.methods import Held, alive
from tessera.lang.tracing.values import is_array
from tessera.runtime.device.memory import aligned
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.pytree import tree_flatten, tree_paths, tree_unflatten
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.annotations import TensorType
from tessera.shapes.signature import Signature
from tessera.tile.identity.static_keys import exact

_NUMBERS: dict[type, DType] = {bool: bool_, int: i64, float: f64}


_MOST_STRUCTURES = 256


class Static:
    """A static value as part of a key: equal where it means the same; see `exact`."""

    __slots__ = ("_exact", "_hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._exact = exact(value)
        self._hash = hash(self._exact)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._exact == other._exact

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where one argument of the program comes from: its name as users write it, and whether it was a number."""

    name: str
    number: type | None = None


@dataclass(frozen=True)
class Call:
    """One call's arguments: the leaves that the program takes, and everything else as a key."""

    values: list[Tensor]
    leaves: tuple[Leaf, ...]
    key: tuple[object, ...]
    """Equal for calls that differ in the leaves' values alone, apart from their ranks and types."""
    rebuild: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    """Python's arguments with other values for the leaves."""


class Parameters:
    """The parameters of a function that is traced."""

    def __init__(
        self,
        function: Held,
        static_argnums: Iterable[int] = (),
        static_argnames: Iterable[str] = (),
        *,
        number_parameters: Iterable[str] | None = None,
    ) -> None:
        self._function = function
        self.signature = inspect.signature(self.function)
        parameters = list(self.signature.parameters.values())
        names = set(static_argnames) | self.names_of(static_argnums)
        if unknown := names - {parameter.name for parameter in parameters}:
            raise TesseraError(
                f"{_name(self.function)} has no parameter {', '.join(sorted(unknown))}",
                hint=f"it takes {self.signature}",
            )
        self.static = frozenset(names)
        self._known: dict[tuple[str, Any], tuple[Leaf, ...]] = {}
        # Parameters whose numbers are arguments of the program rather than part of it.
        kinds = inspect.Parameter
        self.numbered = (
            frozenset(p.name for p in parameters if p.kind is not kinds.KEYWORD_ONLY)
            if number_parameters is None
            else frozenset(number_parameters)
        )

    @property
    def function(self) -> Callable[..., Any]:
        return alive(self._function)

    @cached_property
    def annotations(self) -> Signature:
        """The shapes and dtypes that annotations ask for."""
        return Signature.of(self.function)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults included."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TesseraError(f"{_name(self.function)}: {error}", hint=f"it takes {self.signature}") from None
        bound.apply_defaults()
        return bound.arguments

    def names_of(self, indices: Iterable[int]) -> frozenset[str]:
        """The parameters at these indices."""
        names = self.labels()
        for index in indices:
            if not -len(names) <= index < len(names):
                raise TesseraError(
                    f"there is no argument {index}: {_name(self.function)} has {len(names)}", hint="count from 0"
                )
        return frozenset(names[index] for index in indices)

    def call(self, arguments: Mapping[str, Any], convert: Callable[[TensorType], Any] | None = None) -> Call:
        """The leaves of a call. With `convert`, types may stand for arrays; it says what becomes of them."""
        values: list[Any] = []
        leaves: list[Leaf] = []
        key: list[object] = []
        pieces: list[tuple[str, Any, list[Any]]] = []
        for name, value in arguments.items():
            if name in self.static:
                key += [name, _hashable(self.function, name, value)]
                pieces.append((name, None, [Static(value)]))
                continue
            items: list[Any]
            items, structure = tree_flatten(value)
            numbered = name in self.numbered
            slots: list[Any] = []
            for leaf, item in zip(self._leaves(name, value, structure), items, strict=True):
                label = leaf.name
                if numbered and item.__class__ is np.float64:  # it is a Python float, and as weak as one
                    item = float(item)  # noqa: PLW2901
                is_type = convert is not None and item.__class__ is TensorType
                if item.__class__ is Tensor or is_type or is_array(item):
                    slots.append(len(values))
                    found: Any = convert(item) if is_type and convert is not None else asarray(item)
                    values.append(found)
                    leaves.append(leaf)
                    key.append((len(found.shape), found.dtype))
                elif numbered and is_number(item):
                    slots.append(len(values))
                    values.append(scalar(item))
                    leaves.append(Leaf(label, item.__class__))
                    key.append(item.__class__)
                else:
                    static = _hashable(self.function, label, item)
                    slots.append(static)
                    key.append(static)
            key.append(structure)
            pieces.append((name, structure, slots))
        return Call(values, tuple(leaves), tuple(key), _Rebuild(self.signature, pieces))

    def _leaves(self, name: str, value: Any, structure: Any) -> tuple[Leaf, ...]:
        """The leaves of a parameter's value, as if all were arrays: the same for all values of a structure."""
        found = self._known.get((name, structure))
        if found is None:
            if len(self._known) >= _MOST_STRUCTURES:
                self._known.clear()
            labels = [name + "".join(f"[{key!r}]" for key in path) for path in tree_paths(value)]
            found = self._known[name, structure] = tuple(map(Leaf, labels))
        return found

    def labels(self) -> tuple[str, ...]:
        return tuple(self.signature.parameters)


class _Rebuild:
    """Python's arguments from leaves."""

    def __init__(self, signature: inspect.Signature, pieces: list[tuple[str, Any, list[Any]]]) -> None:
        self.signature = signature
        self.pieces = pieces

    def __call__(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        made: dict[str, Any] = {}
        for name, structure, slots in self.pieces:
            filled = [slot.value if isinstance(slot, Static) else leaves[slot] for slot in slots]
            made[name] = filled[0] if structure is None else tree_unflatten(structure, filled)
        bound = inspect.BoundArguments(self.signature, made)  # pyright: ignore[reportArgumentType]  (any mapping)
        return bound.args, bound.kwargs


def is_number(value: Any) -> bool:
    return is_number_class(value.__class__)


def is_number_class(kind: type) -> bool:
    return kind in _NUMBERS


def scalar(value: bool | float) -> Tensor:
    """A Python number as a tensor without axes, in the widest type of its kind. It must not be written to."""
    return _scalar(value, value.__class__, copysign(1.0, value) if value.__class__ is float else 0.0)


@lru_cache(maxsize=256)
def _scalar(value: bool | float, kind: type, _sign: float) -> Tensor:
    dtype = _NUMBERS[kind]
    try:
        array = np.array(value, dtype.storage)
    except OverflowError:
        raise TesseraError(
            f"{value} does not fit in 64 bits", hint="make the argument static, or pass a float"
        ) from None
    array.flags.writeable = False
    return Tensor.wrap(aligned(array), dtype)


def _hashable(function: Callable[..., Any], name: str, value: Any) -> Static:
    try:
        return Static(value)
    except TypeError:
        raise TesseraError(
            f"argument {name} of {_name(function)} is a {type(value).__name__}: neither an array nor a number, "
            "so it is static, and static values must be hashable",
            hint="pass arrays, numbers or containers of them; register a class as a pytree node (ts.register_node); "
            "or give it a hash",
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", getattr(function, "__name__", repr(function)))
