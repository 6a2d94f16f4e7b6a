"""Fingerprints of what jitted functions capture: objects, containers and classes by their values, arrays by types.

Kernels refuse to depend on such things (`tile/identity/fingerprint.py`); jitted functions look in each call whether
they are what they were (`watching`), so that the next value gets a key of its own. An array of Tessera that a function
captures is an argument of its program, and told by its order among those that the function sees; an array of NumPy is
told by its elements besides, for Python may read those while the function is traced.
"""

from __future__ import annotations

import enum
import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, SimpleNamespace
from typing import Any, cast

import numpy as np

from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.identity.dependencies import NO_DEPENDENCY, is_users_function
from tessera.tile.identity.fingerprint import Fingerprints, NoFingerprint, qualified_name
from tessera.tile.language.kernel_code import is_as_written, is_kernel_module

_MOST_BYTES = 1 << 26
"""Elements of NumPy arrays are read up to this size; that takes a tenth of a second."""
_DICTS = (dict, OrderedDict, MappingProxyType)
_LISTS = (list, deque)
_LIBRARY_BASES = frozenset({"typing", "abc", "collections.abc", "typing_extensions"})
"""Modules of bases that hold nothing."""
_GENERATED = "<string>"
"""The file of methods that `dataclass` and `NamedTuple` write: what they do follows from the fields."""


class ObjectFingerprints(Fingerprints):
    """One key at work, of a jitted function and its static values."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[int, Any]] = {}
        self.arrays: list[Any] = []
        """The arrays that were met, in order."""

    @staticmethod
    def told(*values: Any) -> tuple[tuple[object, ...], list[Any]]:
        """Values as parts of a key, and the arrays that they lead to; raises NoFingerprint where there is none."""
        work = ObjectFingerprints()
        parts = work.all(values)
        for function in work.functions:
            if not is_as_written(function.__code__):
                raise NoFingerprint(f"{function.__qualname__}, which is not as in its file")
        return parts, work.arrays

    def other(self, value: Any) -> object:
        if (known := self._known.get(id(value))) is not None:
            return ("again", known[0])
        self._known[id(value)] = len(self._known), value
        kind = cast("type[Any]", type(value))
        if isinstance(value, Tensor):
            self.arrays.append(value)
            return ("tensor", value.shape, str(value.dtype), str(value.device))
        if kind is np.ndarray:
            return self._array(value)
        if kind in _DICTS:
            return (kind.__name__, self._items(value))
        if kind in _LISTS:
            return (kind.__name__, self.all(value), getattr(value, "maxlen", None))
        if kind is set:
            return ("set", self.set(frozenset(value)))
        if isinstance(value, staticmethod | classmethod):
            return (kind.__name__, self.of(cast("Any", value).__func__))
        if kind is property:
            return ("property", self.all((value.fget, value.fset, value.fdel)))
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, enum.Enum):
            return ("enum", self.of(kind), value.name, self.of(value.value))
        if kind is SimpleNamespace:
            return ("namespace", self._items(vars(value)))
        if is_kernel_module(kind.__module__):
            return self._object(value, kind)
        raise NoFingerprint(_described(value))

    def _items(self, held: Mapping[Any, Any]) -> tuple[object, ...]:
        return tuple([(self.of(key), self.of(one)) for key, one in held.items()])

    def _array(self, array: np.ndarray[Any, Any]) -> object:
        if array.dtype.hasobject or array.nbytes > _MOST_BYTES:
            raise NoFingerprint(f"a NumPy array of {array.nbytes >> 20} MiB of {array.dtype}")
        self.arrays.append(array)
        elements = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return ("array", array.shape, array.dtype.str, elements)

    def _object(self, value: Any, kind: type) -> object:
        """An object of a user's class: the class, and all that the object holds."""
        held: list[object] = []
        for base in kind.__mro__:
            if is_kernel_module(base.__module__):
                slots = [name for name, one in vars(base).items() if isinstance(one, MemberDescriptorType)]
                held += [(name, self.of(getattr(value, name))) for name in slots if hasattr(value, name)]
            elif base is tuple or base is list:
                held.append(self.all(base.__iter__(value)))  # pyright: ignore[reportUnknownMemberType]
            elif base is dict:
                held.append(self._items(cast("dict[Any, Any]", value)))
            elif base is not object and base.__module__ not in _LIBRARY_BASES:
                raise NoFingerprint(f"{_described(value)}, which holds what {base.__qualname__} holds")
        return ("object", self.of(kind), tuple(held), self._items(getattr(value, "__dict__", {})))

    def _class(self, kind: type) -> object:
        """A user's class: its bases, and what it has for its objects, code of methods among it."""
        if issubclass(kind, enum.Enum):
            functions = [one for one in vars(kind).values() if isinstance(one, FunctionType | property)]
            own = [one for one in functions if not isinstance(one, FunctionType) or is_kernel_module(one.__module__)]
            return ("class", kind.__module__, kind.__qualname__, self.all(own))
        made_fields = tuple(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else ()
        parts: list[object] = []
        for name, one in vars(kind).items():
            if name in NO_DEPENDENCY or name in _OF_CLASSES or isinstance(one, _DESCRIPTORS):
                continue
            if made_fields and (name in made_fields or name in _OF_NAMED_TUPLES):
                continue
            if isinstance(one, FunctionType):
                is_generated = one.__code__.co_filename == _GENERATED
                if "__dataclass_fields__" in vars(kind) and (is_generated or not is_users_function(one)):
                    continue  # it follows from the fields
                if is_generated:
                    raise NoFingerprint(f"{kind.__qualname__}.{name}, whose code is in no file")
            parts.append((name, self.of(one)))
        bases = [self._base(base) for base in kind.__bases__]
        meta = cast("type[Any]", type(kind))
        if is_kernel_module(meta.__module__):
            bases.append(self.of(meta))
        return (
            "class",
            kind.__module__,
            kind.__qualname__,
            tuple(bases),
            self._fields(kind),
            made_fields,
            tuple(parts),
        )

    def _base(self, base: type) -> object:
        return self.of(base) if is_kernel_module(base.__module__) else qualified_name(base)

    def _fields(self, kind: type) -> object:
        """What the methods of a dataclass follow from."""
        if not is_dataclass(kind):
            return ()
        found = [
            (one.name, self.of(_default(one.default)), self.of(_default(one.default_factory)), one.init, one.compare)
            for one in fields(kind)
        ]
        return (tuple(found), repr(vars(kind).get("__dataclass_params__")))


_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)
_OF_CLASSES = frozenset(
    {"_abc_impl", "__abstractmethods__", "__protocol_attrs__", "_is_protocol", "_is_runtime_protocol"}
    | {"__non_callable_proto_members__", "__type_params__"}
)
_OF_NAMED_TUPLES = frozenset(
    {"_make", "_replace", "_asdict", "_fields", "__new__", "__repr__", "__getnewargs__", "__replace__"}
)


def _default(value: Any) -> Any:
    return "no default" if value is MISSING else (value,)


def _described(value: Any) -> str:
    kind = cast("type[Any]", type(value))
    return f"something of type {kind.__module__}.{kind.__qualname__}"
