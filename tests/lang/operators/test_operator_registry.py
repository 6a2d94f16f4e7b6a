"""The registry of operators against what is defined, what is shown, and what the page Operators lists."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tessera as ts
from module_graph import ROOT, imported, modules, text_of
from tessera import ops
from tessera.dtypes.types import STANDARD_NAMES
from tessera.lang.operator_registry import METHODS as REGISTERED
from tessera.lang.operator_registry import OPERATORS
from tessera.lang.operators.methods import METHODS, PROPERTIES

PAGE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
PACKAGE = "tessera.lang.operators"
DEFINING = sorted({name for name in modules() if name.startswith(f"{PACKAGE}.")} | {"tessera.lang.creation"})
# Operators that are called for what is written otherwise: `x[key]`, `x + y`, `x.to(dtype)`, `x.at[key]`.
BEHIND_SYNTAX = [*METHODS.values(), *PROPERTIES.values()]


def own_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public functions that a module defines."""
    for name, value in vars(module).items():
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value


def helpers() -> set[str]:
    """Names that some module of the package imports from the modules of operators."""
    found: set[str] = set()
    for name, path in modules().items():
        tree = ast.parse(text_of(path))
        if any(module in DEFINING for _, module in imported(tree, name, is_package=path.name == "__init__.py")):
            nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in DEFINING)
            found |= {alias.name for node in nodes for alias in node.names}
    return found


def forgotten(module: ModuleType, registered: Mapping[str, str], imported_elsewhere: set[str]) -> list[str]:
    """Operators that a module defines and the registry does not have; a function that nothing imports is one, too."""
    return [
        name
        for name, value in own_names(module)
        if registered.get(name) != module.__name__
        and not any(value is one for one in BEHIND_SYNTAX)
        and (hasattr(value, "eager") or name not in imported_elsewhere)
    ]


def missing(registered: Mapping[str, str]) -> list[str]:
    """Operators that the registry has and their modules do not define."""
    found: list[str] = []
    for name, module in registered.items():
        value = vars(import_module(module)).get(name, missing)
        if value is missing or getattr(value, "__module__", module) != module:
            found.append(f"{module}.{name}")
    return found


def test_what_is_defined_is_registered() -> None:
    known = helpers()
    assert {name for module in DEFINING for name in forgotten(import_module(module), OPERATORS, known)} == set()


def test_what_is_registered_is_defined() -> None:
    assert missing(OPERATORS) == []


def test_the_checks_see_planted_faults() -> None:
    module = import_module(f"{PACKAGE}.sorting")
    fewer = {name: where for name, where in OPERATORS.items() if name != "topk"}
    assert forgotten(module, fewer, helpers()) == ["topk"]
    assert "data_dependent" in forgotten(import_module(f"{PACKAGE}.manipulation"), OPERATORS, set())
    planted = {"sort": f"{PACKAGE}.sets", "sorted": f"{PACKAGE}.sorting", "argsort": f"{PACKAGE}.sorting"}
    assert missing(planted) == [f"{PACKAGE}.sets.sort", f"{PACKAGE}.sorting.sorted"]


def test_namespaces_have_what_is_registered() -> None:
    assert dir(ops) == sorted({*OPERATORS, *STANDARD_NAMES, "__array_api_version__"})
    assert {*vars(ops)["__all__"]} == {*dir(ops)}
    for name, module in OPERATORS.items():
        assert getattr(ops, name) is vars(import_module(module))[name]
        if name != "tile":  # at the top, that is the language of kernels
            assert getattr(ts, name) is getattr(ops, name)
    for name, dtype in STANDARD_NAMES.items():
        assert getattr(ops, name) is getattr(ts, name) is dtype
    with pytest.raises(AttributeError, match=r"module 'tessera\.lang\.operators' has no attribute 'summed'"):
        _ = vars(ops)["__getattr__"]("summed")


def test_methods_are_the_operators_of_the_same_names() -> None:
    same = {name for name in REGISTERED if METHODS[name] is getattr(ops, name)}
    assert {*REGISTERED} - same == {"broadcast_to", "reshape", "squeeze"}
    assert len(same) > 100
    assert len(set(REGISTERED)) == len(REGISTERED)


def rows(registered: Mapping[str, str]) -> Iterable[str]:
    """The rows of the page's list of all operators."""
    by_module: dict[str, list[str]] = {}
    for name, module in registered.items():
        by_module.setdefault(module, []).append(name)
    for module, names in by_module.items():
        path = Path(*module.split(".")[1:]).with_suffix(".py")
        yield f"| `{path}` | {' '.join(f'`{name}`' for name in names)} |"


def test_the_page_lists_every_operator() -> None:
    listed = PAGE.split("## All operators")[1].split("\n## ")[0].splitlines()
    assert [row for row in listed if row.startswith("| `")] == list(rows(OPERATORS))
