"""Whether objects are unchanged, by words of their memory: machine code compares them (`same_words.ll`).

Looked at are the code and the defaults of functions, what cells hold, and how often dictionaries have changed. Where
objects have these is found by looking at some whose words are known; where that does not work, callers do without.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from types import CellType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

from tessera.runtime.native import code, objects

_TYPE_AT = 8
_CELL_AT = 16
_SIZE_AT, _ITEMS_AT = 16, 24  # in a list
_MAPPING_AT = 16  # in the view of a class's dictionary
_VALUES_AT = objects.DICTIONARY_VERSION_AT + 16  # in a dictionary, where its keys lie in a shared table


class Word(NamedTuple):
    """A word of memory: where it is, and what it is."""

    address: int
    value: int


def are_known() -> bool:
    """Whether objects are laid out as it is known here."""
    return objects.are_known()


def is_loaded() -> bool:
    """Whether the code is there yet."""
    return code.is_loaded()


def asking(words: Sequence[Word], keep: object) -> Callable[[], bool]:
    """A function that says whether words still have these values. It keeps the objects alive that they belong to."""
    flat = [number for word in words for number in word]
    record = struct.pack(f"<{len(flat) + 3}Q", id(True), id(False), len(words), *flat)
    return objects.built_in("same", code.address("same_words"), record, keep, takes=False)


def of_function(function: FunctionType, values: Sequence[Any]) -> list[Word] | None:
    """The words that say that a function has this code, these defaults and those of keywords."""
    offsets = _in_functions()
    if offsets is None:
        return None
    return [
        Word(id(function) + at, 0 if value is None else id(value)) for at, value in zip(offsets, values, strict=True)
    ]


def of_cell(cell: CellType, value: Any) -> list[Word] | None:
    """The word that says that a cell holds a value."""
    return [Word(id(cell) + _CELL_AT, id(value))] if _cells_are_known() else None


def of_type(value: Any, kind: type) -> list[Word]:
    """The word that says that an object is of a class."""
    return [Word(id(value) + _TYPE_AT, id(kind))]


def of_list(held: list[Any], values: Sequence[Any]) -> list[Word] | None:
    """The words that say that a list has these items; first where it has them, which is read only if that holds."""
    if not _lists_are_known() or len(held) != len(values):
        return None
    items = objects.word(id(held) + _ITEMS_AT)
    head = [Word(id(held) + _SIZE_AT, len(held)), Word(id(held) + _ITEMS_AT, items)]
    return [*head, *(Word(items + 8 * index, id(value)) for index, value in enumerate(values))]


@cache
def _lists_are_known() -> bool:
    example = [object() for _ in range(5)]
    items = objects.word(id(example) + _ITEMS_AT)
    return objects.word(id(example) + _SIZE_AT) == len(example) and all(
        objects.word(items + 8 * index) == id(value) for index, value in enumerate(example)
    )


def of_dictionary(held: dict[Any, Any], *, of_object: bool = False) -> list[Word] | None:
    """The word that says that nothing has been done to a dictionary since now.

    Dictionaries of objects (`vars(x)`) may share their values with the object, and Python 3.13 counts no change that is
    made through that one.
    """
    if held.__class__ is not dict or not _counts_changes():
        return None
    shares_values = of_object or objects.word(id(held) + _VALUES_AT) != 0
    if shares_values and not _objects_count_changes():
        return None
    address = id(held) + objects.DICTIONARY_VERSION_AT
    return [Word(address, objects.word(address))]


@cache
def _counts_changes() -> bool:
    """Whether a word of a dictionary changes with everything that is done to it, and with nothing else.

    CPython counts the changes of a dictionary there, up to version 3.13.
    """
    seen: dict[bytes, object] = {}
    address = id(seen) + objects.DICTIONARY_VERSION_AT
    versions = [objects.word(address)]
    for value in (b"1", b"2", b"2 ", None):
        if value is None:
            del seen[b"one"]
        else:
            seen[b"one"] = value
        versions.append(objects.word(address))
        if seen.get(b"one") != value or seen.get(b"two") is not None or objects.word(address) != versions[-1]:
            return False
    return len(set(versions)) == len(versions)


def of_class(held: type) -> list[Word] | None:
    """The same of the attributes of a class."""
    if not _counts_changes() or not _classes_are_known():
        return None
    address = _changes_at(held)
    return [Word(address, objects.word(address))]


def _changes_at(held: type) -> int:
    """Where changes of a class are counted."""
    view = vars(held)  # a new object each time, which has to be there while it is looked at
    return objects.word(id(view) + _MAPPING_AT) + objects.DICTIONARY_VERSION_AT


@cache
def _in_functions() -> tuple[int, ...] | None:
    """Where functions have their code, defaults and those of keywords."""

    def example(one: Any = 1, *, other: Any = 2) -> Any:
        return one, other

    words = [objects.word(id(example) + at) for at in range(0, FunctionType.__basicsize__, 8)]
    wanted = [id(value) for value in (example.__code__, example.__defaults__, example.__kwdefaults__)]
    if any(words.count(one) != 1 for one in wanted):
        return None
    offsets = tuple(8 * words.index(one) for one in wanted)
    example.__defaults__ = example.__kwdefaults__ = None
    return offsets if all(objects.word(id(example) + at) == 0 for at in offsets[1:]) else None


@cache
def _cells_are_known() -> bool:
    value = object()
    return objects.word(id(cell := CellType(value)) + _CELL_AT) == id(value) and cell.cell_contents is value


@cache
def _objects_count_changes() -> bool:
    """Whether an attribute that is set through an object counts as a change of the object's dictionary."""

    class Example:
        def __init__(self) -> None:
            self.one = 0

    example = Example()
    held = vars(example)
    versions = [objects.word(id(held) + objects.DICTIONARY_VERSION_AT)]
    for value in range(100):  # the interpreter has other code for statements that have run some times
        example.one = value + 1
        versions.append(objects.word(id(held) + objects.DICTIONARY_VERSION_AT))
    return len(set(versions)) == len(versions)


@cache
def _classes_are_known() -> bool:
    """Whether changes of a class are counted where its view points to."""
    made: Any = type("Example", (), {"one": 1})
    view: Any = made.__dict__
    if view.__class__ is not MappingProxyType or objects.word(objects.word(id(view) + _MAPPING_AT) + 8) != id(dict):
        return False
    versions = [objects.word(_changes_at(made))]
    for value in (2, 3):
        made.one = value
        versions.append(objects.word(_changes_at(made)))
    return len(set(versions)) == len(versions) and objects.word(_changes_at(made)) == versions[-1]
