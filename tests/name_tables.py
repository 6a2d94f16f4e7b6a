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


@cache
def absences_of(file: str) -> dict[str, frozenset[str]]:
    """The functions of a test file, each with the attributes that it uses only to say that they are nothing."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: _absent(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _absent(function: ast.FunctionDef) -> frozenset[str]:
    nothing = {
        id(node) for one in ast.walk(function) if isinstance(one, ast.Assert) for node in _said_to_be_nothing(one)
    }
    attributes = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    keywords = {node.arg for node in ast.walk(function) if isinstance(node, ast.keyword)}
    there = {node.attr for node in attributes if id(node) not in nothing} | keywords
    return frozenset(node.attr for node in attributes if id(node) in nothing) - there


def _said_to_be_nothing(said: ast.Assert) -> list[ast.Attribute]:
    """Attributes that are compared with nothing, with tuples element by element, and members that are not in a set."""
    test = said.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        members = [node for node in ast.walk(inner) if isinstance(node, ast.Set)]
        elements = [one for node in members for one in node.elts] or [inner]
        return [one for one in elements if isinstance(one, ast.Attribute)]
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)):
        return []
    left, right = test.left, test.comparators[0]
    pairs = [(left, right)]
    if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple) and len(left.elts) == len(right.elts):
        pairs = list(zip(left.elts, right.elts, strict=True))
    empty = [value for value, compared in pairs if _is_nothing(compared)]
    counted = [one for call in empty if isinstance(call, ast.Call) for one in call.args[:1]]
    return [one for one in (*empty, *counted) if isinstance(one, ast.Attribute)]


def _is_nothing(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None or (node.value == 0 and node.value is not False)
    return (isinstance(node, ast.Tuple | ast.List) and not node.elts) or (isinstance(node, ast.Dict) and not node.keys)


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
    word = python.rpartition(".")[2]
    if not functions_of(file)[function].uses(python):
        return f"{specified}: {test} does not use {word}"
    if word in absences_of(file)[function]:
        return f"{specified}: {test} only says that {word} is not there"
    return None
