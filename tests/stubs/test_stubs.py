"""The stubs that type checkers read are what the registry gives, and say what is true of operators and methods."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

import numpy as np
import pytest
from write_stubs import PACKAGE, STUBS, is_operator, own_methods, tidied

import tessera as ts
from tessera.lang.operator_registry import ALIASES, METHODS, OPERATORS

if TYPE_CHECKING:
    from typing import assert_type


@pytest.mark.parametrize("path", STUBS)
def test_a_stub_is_what_the_registry_gives(path: str) -> None:
    written = (PACKAGE / path).read_text(encoding="utf-8")
    assert written == tidied(STUBS[path]()), "python tests/stubs/write_stubs.py writes it anew"


def names_in(path: str) -> set[str]:
    """The names that a stub has at the top."""
    found: set[str] = set()
    for node in ast.parse((PACKAGE / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname is not None}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_every_name_is_in_the_stubs() -> None:
    assert names_in("__init__.pyi") >= {*dir(ts), *ALIASES}
    assert names_in("lang/operators/__init__.pyi") >= {
        *dir(ts.ops),
        *(one for one in ALIASES if ALIASES[one] in OPERATORS),
    }


def test_every_method_is_in_the_stub() -> None:
    tree = ast.parse((PACKAGE / "runtime/tensor/operator_methods.pyi").read_text(encoding="utf-8"))
    (methods,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "OperatorMethods")
    defined = {node.name for node in methods.body if isinstance(node, ast.FunctionDef)}
    assert defined >= {*METHODS, "at", "t", "view"} - own_methods().keys()
    assert all(hasattr(ts.zeros((2, 2)), name) for name in defined)
    assert not defined & own_methods().keys()


@pytest.mark.parametrize("name", [name for name in OPERATORS if is_operator(getattr(ts.ops, name))])
def test_help_says_that_operators_give_tensors(name: str) -> None:
    shown = str(inspect.signature(getattr(ts.ops, name)))
    assert "Traced" not in shown
    assert "->" in shown


@ts.jit
def scaled(x: ts.Tensor, factor: float = 2.0) -> ts.Tensor:
    """Twice."""
    return x * factor


class Layer:
    """A layer with a jitted method."""

    @ts.jit
    def forward(self, x: ts.Tensor) -> ts.Tensor:
        """x twice."""
        return x + x


def test_signatures_are_kept() -> None:
    """The type checker looks at this test: what it says of types is checked where types are."""
    x = ts.ones((2, 3))
    if TYPE_CHECKING:
        assert_type(ts.sum(x), ts.Tensor)
        assert_type(ts.softmax(np.ones(3)), ts.Tensor)
        assert_type(x.sum(0), ts.Tensor)
        assert_type(ts.cat([x, x]), ts.Tensor)
        assert_type(x.unsqueeze(0), ts.Tensor)
        assert_type(ts.zeros(2, 3), ts.Tensor)
        assert_type(scaled(x), ts.Tensor)
        assert_type(Layer().forward(x), ts.Tensor)
        _ = ts.sofmax(x)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        _ = x.summed()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        assert_type(scaled(np.ones(3)), ts.Tensor)
        _ = ts.sum(x, axs=0)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
    assert str(inspect.signature(scaled)) == "(x: 'ts.Tensor', factor: 'float' = 2.0) -> 'ts.Tensor'"
    with ts.knobs.interpret.using(True):
        assert scaled(x).shape == Layer().forward(x).shape == (2, 3)
