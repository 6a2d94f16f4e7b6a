"""Checks docs/renames.md: names it calls old are gone, names it calls new are there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache

from module_graph import ROOT, modules, text_of
from tessera.deprecated_imports import MOVED

PAGE = ROOT / "docs" / "renames.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$")


@cache
def sections() -> dict[str, list[tuple[str, str]]]:
    """The rows (old, new) under each heading."""
    found: dict[str, list[tuple[str, str]]] = {}
    rows: list[tuple[str, str]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            rows = found[line.removeprefix("## ")] = []
        elif match := ROW.match(line):
            rows.append((match[1], match[2]))
    return found


def defined(module: str) -> set[str]:
    """Names that stand at the top of a module: classes, functions, and what is assigned."""
    found: set[str] = set()
    for node in ast.parse(text_of(modules()[module])).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found


def test_modules_are_where_the_table_says() -> None:
    rows = sections()["Modules"]
    assert len(rows) > 300
    assert [new for _, new in rows if f"tessera.{new}" not in modules()] == []
    # An old module may have given its name to a folder.
    left = [old for old, _ in rows if (path := modules().get(f"tessera.{old}")) and path.name != "__init__.py"]
    assert left == []


def test_names_are_where_the_table_says() -> None:
    rows = sections()["Classes and functions"]
    assert rows
    for old, new in rows:
        module, _, name = new.rpartition(".")
        assert name in defined(f"tessera.{module}"), new
        assert old not in defined(f"tessera.{module}"), old


def test_passes_have_the_names_of_the_table() -> None:
    from tessera.targets.passes import ALL_PASSES

    rows = sections()["Passes"]
    assert rows
    assert [new for _, new in rows if new not in ALL_PASSES] == []
    assert [old for old, _ in rows if old in ALL_PASSES] == []


def test_tests_are_where_the_table_says() -> None:
    rows = sections()["Tests"]
    assert rows
    assert [new for _, new in rows if not (ROOT / new).is_file()] == []
    assert [old for old, _ in rows if (ROOT / old).is_file()] == []


def test_test_functions_are_where_the_table_says() -> None:
    def functions(path: str) -> set[str]:
        tree = ast.parse(text_of(ROOT / path)) if (ROOT / path).is_file() else ast.Module([], [])
        return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    rows = [(old.split("::"), new.split("::")) for old, new in sections()["Test functions"]]
    assert rows
    assert [new for _, new in rows if new[1] not in functions(new[0])] == []
    assert [old for old, _ in rows if old[1] in functions(old[0])] == []


def test_ops_have_the_names_of_the_table() -> None:
    from tessera.targets.text import DIALECTS

    names = {op.name for dialect in DIALECTS for op in dialect.operations}
    rows = sections()["Ops"]
    assert rows
    assert [new for _, new in rows if new not in names] == []
    assert [old for old, _ in rows if old in names] == []


def test_public_modules_are_found_by_their_old_names() -> None:
    rows = dict(sections()["Modules"])
    short = {old.removeprefix("tessera."): new.removeprefix("tessera.") for old, new in MOVED.items()}
    assert {old: new for old, new in short.items() if rows.get(old) != new} == {}
    code = f"""
import sys, warnings
from importlib import import_module
import tessera
for old, new in {MOVED!r}.items():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = import_module(old)
    assert found is import_module(new) and found.__spec__.name == new == found.__name__, old
    assert any(old + " is " + new in str(one.message) for one in said), old
from tessera.kernels import kernel, Schedule
from tessera.dialects import text
assert text is import_module("tessera.ir.text")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
