"""Cache keys of static values: equal where class and value are, all the way down (`exact`).

Python's own equality does not do, for it has 0.0 == -0.0 and 1 == True. Numbers are told apart by their bits, so that
-0.0 is not 0.0, and a NaN is itself.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from decimal import Decimal
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from tessera.dtypes.types import DType
from tessera.tile.language.kernel_code import is_kernel_module

AS_THEY_ARE: frozenset[type] = frozenset(
    {int, bool, str, bytes, type(None), type, FunctionType, BuiltinFunctionType, ModuleType, DType, type(Ellipsis)}
)
"""Classes of values that are keys of themselves, beside their class: equal ones of one class mean the same."""

_DEEPEST = 16
_float = struct.Struct("<d").pack
_complex = struct.Struct("<dd").pack


def exact(value: Any, depth: int = 0) -> Hashable:
    """A key of a value, equal for values that mean the same; it has no hash where the value has none."""
    kind = cast("type[Any]", value.__class__)
    if kind in AS_THEY_ARE:
        return kind, value
    if kind is float:
        return kind, _float(value)
    if kind is complex:
        return kind, _complex(value.real, value.imag)
    if depth > _DEEPEST:
        return kind, value
    if isinstance(value, tuple):
        parts = tuple([exact(one, depth + 1) for one in cast("tuple[Any, ...]", value)])
        return (kind, parts) if kind is tuple else (kind, parts, _attributes(value, depth))
    if isinstance(value, frozenset):
        return kind, frozenset([exact(one, depth + 1) for one in cast("frozenset[Any]", value)])
    if isinstance(value, np.generic):
        number = cast("Any", value)
        return kind, number.dtype.str, number.tobytes()
    if isinstance(value, range):
        return kind, value.start, value.stop, value.step
    if isinstance(value, float):
        return kind, _float(value), _attributes(value, depth)
    if isinstance(value, Decimal):
        return kind, str(value)
    if isinstance(value, Enum) or kind.__eq__ is object.__eq__:
        return kind, value
    return kind, value, _attributes(value, depth)


def _attributes(value: Any, depth: int) -> Hashable:
    """The attributes of an object that defines its own comparison, as far as they can be part of a key."""
    if not is_kernel_module(type(value).__module__):
        return ()
    found: list[Hashable] = []
    for name, one in getattr(value, "__dict__", {}).items():
        found += _attribute(name, one, depth)
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            found += _attribute(name, getattr(value, name, None), depth)
    return tuple(found)


def _attribute(name: str, value: Any, depth: int) -> list[Hashable]:
    try:
        key = exact(value, depth + 1)
        hash(key)
    except TypeError:  # its owner has a hash without it
        return []
    return [(name, key)]


def are_same(one: Any, other: Any) -> bool:
    """Whether two values are the same object, or plain values that mean the same."""
    if one is other:
        return True
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind is tuple:
        return len(one) == len(other) and all(map(are_same, one, other))
    return (kind in _PLAIN or isinstance(one, np.generic)) and exact(one) == exact(other)


_PLAIN = frozenset({int, bool, str, bytes, float, complex})
