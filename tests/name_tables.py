"""Tables of the specification's names: each has a Python name and a test that uses it, or a reason why not."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]


def rows_of(table: Path) -> list[tuple[str, str, str]]:
    """Specified name, Python name or "-", test or reason."""
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [tuple(line.split("\t")) for line in lines]
    assert all(len(row) == 3 for row in rows), [row for row in rows if len(row) != 3]
    return [(row[0], row[1], row[2]) for row in rows]


def member(owner: Any, name: str) -> Any:
    """An attribute; of fields, their names."""
    if hasattr(owner, name):
        return getattr(owner, name)
    fields = (*getattr(owner, "__dataclass_fields__", ()), *getattr(owner, "__slots__", ()))
    assert name in fields, f"{owner} has no {name}"
    return name


def found(path: str, member: Callable[[Any, str], Any] = member) -> Any:
    """What a dotted name means."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            value = member(value, part)
        return value
    raise AssertionError(path)


@cache
def functions_of(file: str) -> dict[str, Used]:
    """The functions of a test file, each with the names that its code uses. Texts and comments use nothing."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: Used.of(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


class Used(NamedTuple):
    """Names that code uses: behind a dot, by themselves, and as names of arguments."""

    attributes: frozenset[str]
    names: frozenset[str]
    keywords: frozenset[str]

    @staticmethod
    def of(function: ast.FunctionDef) -> Used:
        found = [node for node in ast.walk(function) if node is not function]
        attributes = {node.attr for node in found if isinstance(node, ast.Attribute)}
        names = {node.id for node in found if isinstance(node, ast.Name)}
        # Values that a test is given, by its decorators, are values that it uses.
        given = {node.arg for node in found if isinstance(node, ast.arg)}
        keywords = {node.arg for node in found if isinstance(node, ast.keyword) and node.arg is not None}
        return Used(frozenset(attributes), frozenset(names | given), frozenset(keywords))

    def uses(self, path: str) -> bool:
        """Members are used behind a dot or as arguments; what a module has, also by itself unless Python has one."""
        owner, _, word = path.rpartition(".")
        if word in self.attributes:
            return True
        of_module = owner.rpartition(".")[2].islower()
        if of_module:
            return word in self.names and not hasattr(builtins, word)
        return word in self.keywords


def fault(row: tuple[str, str, str]) -> str | None:
    """What is wrong with a row."""
    specified, python, test = row
    if python == "-":
        return None if len(test.split()) >= 5 else f"{specified}: the reason is too short to be one"
    try:
        found(python)
    except (AssertionError, AttributeError) as error:
        return f"{specified}: {python} does not exist: {error}"
    file, _, function = test.partition("::")
    if not (ROOT / file).is_file() or function not in functions_of(file):
        return f"{specified}: there is no test {test}"
    used = functions_of(file)[function].uses(python)
    return None if used else f"{specified}: {test} does not use {python.rpartition('.')[2]}"
