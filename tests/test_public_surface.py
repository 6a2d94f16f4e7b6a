"""Checks what `dir()` and `help()` show of the package and of its public modules: the public names, each documented."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from rlcompleter import Completer
from types import ModuleType
from typing import Any

import pytest

import tessera as ts
from tessera.lang.operator_registry import OPERATORS

MODULES = ("bench", "compile", "cuda", "distributed", "knobs", "metatracing", "ops", "random", "tile", "verify")
# Values of Python's own types, which have no docstrings.
CONSTANTS = {
    *("__array_api_version__", "__version__", "e", "inf", "nan", "newaxis", "pi"),
    *(f"ops.{name}" for name in ("__array_api_version__", "e", "inf", "nan", "newaxis", "pi")),
    *("metatracing.MOST_BRIDGES", "tile.INF"),
}


def public() -> dict[str, Any]:
    """Everything that the package and its public modules offer, by its name after `tessera.`."""
    found = {name: getattr(ts, name) for name in dir(ts)}
    for module in MODULES:
        found |= {f"{module}.{name}": getattr(getattr(ts, module), name) for name in dir(getattr(ts, module))}
    return found


def fault(name: str, value: Any) -> str | None:
    """Why `help()` says nothing of its own about a value."""
    if not isinstance(value, ModuleType) and not inspect.isclass(value) and not inspect.isroutine(value):
        if type(value).__module__ == "builtins":
            return None if name in CONSTANTS else f"{name} is a {type(value).__name__} and no known constant"
        return fault(f"{name}, a {type(value).__name__},", type(value))
    said = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    if not said or not said.strip():
        return f"{name} has no docstring of its own"
    if inspect.isclass(value) and said.startswith(f"{value.__name__}("):
        return f"{name} has the docstring that a dataclass makes"
    if inspect.isfunction(value) and list(inspect.signature(value).parameters) == ["args", "kwargs"]:
        return f"{name} shows *args, **kwargs instead of its parameters"
    return None


def test_every_public_name_is_documented() -> None:
    found = public()
    assert len(found) > 500
    assert [one for name, value in found.items() if (one := fault(name, value))] == []


def test_the_check_of_docstrings_sees_planted_faults() -> None:
    class Base:
        """Documented."""

    class Derived(Base):
        pass

    def bare(*args: Any, **kwargs: Any) -> None:
        """Documented."""

    assert fault("x", Derived) == "x has no docstring of its own"
    assert fault("x", Derived()) == "x, a Derived, has no docstring of its own"
    assert fault("x", lambda: 0) == "x has no docstring of its own"
    assert fault("x", bare) == "x shows *args, **kwargs instead of its parameters"
    assert fault("x", 1.5) == "x is a float and no known constant"
    assert fault("x", Base) is None
    assert fault("x", Base()) is None


USE = """
import json, sys
import tessera as ts
before = dir(ts)
@ts.jit
def double(x):
    return x + x
@ts.kernel
def copy(x, out: ts.Out):
    ts.tile.store(out, ts.tile.load(x))
x, out = ts.ones((4, 4)), ts.zeros((4, 4))
ts.knobs.interpret.set(True)
double(x), copy(x, out)
assert "tessera.lang.tracing.values" in sys.modules and "tessera.tile.language.tracer" in sys.modules
import tessera.cli, tessera.bench, tessera.metatracing
assert dir(ts) == before
print(json.dumps({name: dir(getattr(ts, name)) for name in MODULES} | {"": dir(ts)}))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Names that `dir()` shows in a fresh process that has used a jitted function and a kernel."""
    script = tmp_path_factory.mktemp("surface") / "use.py"
    script.write_text(USE.replace("MODULES", repr(MODULES)), encoding="utf-8")
    return json.loads(subprocess.run([sys.executable, script], check=True, stdout=subprocess.PIPE).stdout)


def test_dir_of_the_package_shows_the_public_names(shown: dict[str, list[str]]) -> None:
    expected = {*ts.__all__, *OPERATORS, "__array_api_version__", "bench", "compile", "metatracing"}
    assert set(shown[""]) == expected
    assert {name for name in shown[""] if isinstance(getattr(ts, name), ModuleType)} == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_dir_of_public_modules_shows_their_names(shown: dict[str, list[str]], module: str) -> None:
    found = getattr(ts, module)
    assert shown[module] == sorted(found.__all__)
    assert not [name for name in shown[module] if isinstance(getattr(found, name), ModuleType)]


@pytest.mark.parametrize("module", ["bench", "metatracing"])
def test_tools_see_the_modules_of_the_names_that_load_later(module: str) -> None:
    """Which modules sources import for types alone, and which ones the table names."""
    found = getattr(ts, module)
    tree = ast.parse(inspect.getsource(found))
    stars = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    homes: set[str] = {vars(found)["_MODULES"][name] for name in found.__all__}
    assert stars == sorted(homes)


def test_help_of_an_operator_reads_well() -> None:
    assert [str(one) for one in inspect.signature(ts.softmax).parameters.values()] == ["x: Array", "axis: Axis = -1"]
    assert str(inspect.signature(ts.softmax)) == "(x: Array, /, axis: Axis = -1) -> Tensor"
    assert str(inspect.signature(ts.zeros((2, 2)).softmax)) == "(axis: Axis = -1) -> Tensor"
    said = inspect.getdoc(ts.softmax)
    assert said is not None
    assert said.startswith("softmax(x) = e^x / Σ e^x along `axis`")
    assert "x1, x2: tensors" in str(inspect.getdoc(ts.add))


@pytest.mark.parametrize(("typed", "offered"), [("ts.ji", "ts.jit"), ("ts.softm", "ts.softmax"), ("x.su", "x.sum(")])
def test_completion_offers_names_and_methods(typed: str, offered: str) -> None:
    complete = Completer({"ts": ts, "x": ts.zeros((2, 2))}).complete
    found = [one for index in range(9) if (one := complete(typed, index)) is not None]
    assert any(one.startswith(offered) for one in found)
