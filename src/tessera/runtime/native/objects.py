"""CPython's own objects as machine code sees them: offsets of their fields, and functions and classes made of it.

Structures and numbers are those of CPython's headers, here and nowhere else. What is looked at by machine
code is compared first with what Python says of it; where that differs, callers do without such code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tessera import python_versions

DICTIONARY_VERSION_AT = 24
"""Where a dictionary counts its changes, in CPython up to 3.13."""
DEALLOC = 52
"""CPython's number for what ends an object of a class."""

_TYPE_AT, _DATA_AT = 8, 16  # in an array object
_MEMBER_AT, _OFFSET_AT = 40, 16  # in the descriptor of a slot: its definition; in that: its offset in objects
_FASTCALL, _NO_ARGUMENTS = 0x80, 0x4  # how built-in functions are called
_MEMBERS = 72  # of what a class has
_DEFAULT, _NOT_MADE_BY_CALLS = 1 << 18, 1 << 7  # flags of classes
_OBJECT, _READ_ONLY = 16, 1  # of members
_kept: list[object] = []
"""Objects that classes point to, kept alive as long as this process."""


@cache
def are_known() -> bool:
    """Whether machine code can work on objects here: the interpreter is known, and arrays are as they are expected."""
    if not python_versions.is_known():
        return False
    base = np.arange(6.0)
    return all(
        word(id(array) + _TYPE_AT) == id(np.ndarray) and word(id(array) + _DATA_AT) == array.ctypes.data
        for array in (base, base[2:], base.reshape(2, 3).T)
    )


def word(address: int) -> int:
    """The word at an address."""
    return ctypes.c_uint64.from_address(address).value


def slot_of(example: Any, name: str) -> int | None:
    """Where objects of a class with slots have one of them, which an example has; None where that cannot be told."""
    value = getattr(example, name)
    described = word(id(example.__class__.__dict__[name]) + _MEMBER_AT)
    offset = word(described + _OFFSET_AT) if described else 0
    if not 0 < offset < example.__class__.__basicsize__:
        return None
    return offset if word(id(example) + offset) == id(value) else None


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


@cache
def definition(name: str, address: int, *, takes: bool = True) -> int:
    """Where machine code is defined as a built-in function that takes arguments, or none.

    Definitions stay: a function looks at its own until it is gone, and if a cycle held both, Python's collector would
    empty the definition first.
    """
    flags = _FASTCALL if takes else _NO_ARGUMENTS
    defined = _Method(name.encode(), address, flags, None)
    _kept.append(defined)
    return ctypes.addressof(defined)


@cache
def builder() -> Callable[[int, object, object], Callable[..., Any]]:
    """CPython's way to make a built-in function of a definition's address, what becomes its `self`, and its module.

    The function keeps both alive. Nothing asks for the module: so it is whatever is needed as long.
    """
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def built_in(name: str, address: int, record: bytes, keep: object, *, takes: bool = True) -> Callable[..., Any]:
    """The built-in function of machine code that has a record for its `self`. It keeps alive what it is told to."""
    return builder()(definition(name, address, takes=takes), record, keep)


class _Member(ctypes.Structure):
    """CPython's PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    """CPython's PyType_Slot."""

    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


class _Specification(ctypes.Structure):
    """CPython's PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def new_class(
    name: str, nbytes: int, members: Sequence[tuple[str, int, bool]], code: Sequence[tuple[int, int]]
) -> type[Any]:
    """A class of objects of so many bytes that machine code makes, never a call.

    Its members are objects: their names, where they are, and whether they may be replaced. `code` says what does what.
    """
    # Both lists end with zeros.
    listed = (_Member * (len(members) + 1))(
        *(_Member(one.encode(), _OBJECT, at, 0 if is_open else _READ_ONLY) for one, at, is_open in members)
    )
    slots = (_Slot * (len(code) + 2))(
        *(_Slot(number, address) for number, address in code), _Slot(_MEMBERS, ctypes.addressof(listed))
    )
    specification = _Specification(name.encode(), nbytes, 0, _DEFAULT | _NOT_MADE_BY_CALLS, ctypes.addressof(slots))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)
    made = prototype(("PyType_FromSpecWithBases", ctypes.pythonapi))(ctypes.addressof(specification), (object,))
    _kept.extend((specification, listed, slots))
    return made
