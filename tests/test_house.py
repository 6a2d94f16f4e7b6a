"""Checks the habits of the code base: imports point down, files are short and say what they are, importing is quick."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from module_graph import ROOT, SOURCE, SOURCES, imported, module_of, text_of

# The files in the folders below tests/messages are mistakes, made on purpose.
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path.parent.parent.name != "messages")

# Lowest first. A part imports itself and what is on lower lines; "" is the package's own __init__.
LAYERS: list[set[str]] = [
    {"cached_property", "deprecated_imports", "device_names", "errors", "forking", "subprocesses"},
    {"dtypes", "field_checks", "knobs", "python_versions"},
    {"internal_errors", "tracebacks"},
    {"shapes"},
    {"ir"},
    {"interpreters"},
    {"transforms"},
    {"compiler"},
    {"targets"},
    {"runtime"},
    {"compile_worker"},
    {"tile"},
    {"programs"},
    {"lang"},
    {"stdlib"},
    {"tiers"},
    {"metatracing"},
    {"distributed"},
    {""},
    {"compile"},
    {"bench"},
    {"cli", "__main__"},
]
HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts}


def part_of(module: str) -> str:
    """`tessera.dtypes.types` lives in `dtypes`."""
    return module.split(".")[1] if "." in module else ""


def upward_imports(text: str, module: str, is_package: bool = False) -> list[str]:
    part = part_of(module)
    if part not in HEIGHT:
        return [f"{module}: `{part}` is in no layer; add it to LAYERS"]
    found: list[str] = []
    for line, name in imported(ast.parse(text), module, is_package=is_package):
        other = part_of(name)
        if other not in HEIGHT:
            found.append(f"{module}:{line}: {name} is in no layer")
        elif other != part and HEIGHT[other] >= HEIGHT[part]:
            found.append(f"{module}:{line}: {part or 'tessera'} may not import {name}")
    return found


def test_imports_point_down() -> None:
    found = [
        message
        for path in SOURCES
        for message in upward_imports(text_of(path), module_of(path), path.name == "__init__.py")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tessera.dtypes.types", "from tessera.shapes.expr import Dim"),
        ("tessera.dtypes.types", "import tessera.knobs"),
        ("tessera.dtypes.types", "from tessera import knobs"),
        ("tessera.ir.tile.dialect", "def late():\n    from tessera.interpreters.levels.tile import run"),
        ("tessera.ir.tile.dialect", "if TYPE_CHECKING:\n    from tessera.runtime.tensor.tensor import Tensor"),
        ("tessera.interpreters.levels.tile", "from tessera.transforms.core import context"),
        ("tessera.tiers.sites.request", "from tessera.metatracing.runtime import MetaTracingRuntime"),
        ("tessera.tiers.sites.request", "def late():\n    from tessera.metatracing import MetaTracingRuntime"),
        ("tessera.tiers.tiered", "if TYPE_CHECKING:\n    from tessera.metatracing.runtime import MetaTracingRuntime"),
        ("tessera.runtime.tensor.tensor", "from tessera import Tensor"),
        ("tessera.runtime.tensor.tensor", "import tessera"),
        ("tessera.runtime.tensor.tensor", "from ...cli import main"),
        ("tessera.novelty.thing", "import os"),
        ("tessera.cli.main", "import tessera.novelty"),
    ],
)
def test_the_import_check_sees_planted_faults(module: str, text: str) -> None:
    assert len(upward_imports(text, module)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tessera.dtypes.types", "from tessera.errors import DtypeError\nimport numpy"),
        ("tessera.dtypes.casting", "from tessera.dtypes.types import f32\nfrom . import types\nfrom .types import f64"),
        ("tessera.shapes.expr", "from tessera.dtypes.types import DType"),
        ("tessera.cli.main", "import tessera\nfrom tessera import Tensor, knobs"),
    ],
)
def test_the_import_check_accepts_what_is_right(module: str, text: str) -> None:
    assert upward_imports(text, module) == []


def bad_habits(text: str, path: Path) -> Iterator[str]:
    if not re.match(r'"""(?!"")\s*\S', text):
        yield f"{path}: the first line says what the file is"
    if path.stem in ("util", "utils"):
        yield f"{path}: a name says what is in a file"
    if path.is_relative_to(SOURCE) and text.count("\n") > 700:
        yield f"{path}: has {text.count(chr(10))} lines"


def test_a_file_says_what_it_is_and_stays_short() -> None:
    assert [said for path in (*SOURCES, *TESTS) for said in bad_habits(text_of(path), path)] == []


def test_the_check_of_habits_sees_planted_faults() -> None:
    said = '"""What it is."""\n'
    for text, name in (("x = 1\n", "a"), (f"x = 1\n{said}", "a"), (said, "utils"), (said + "\n" * 700, "a")):
        assert len(list(bad_habits(text, SOURCE / f"{name}.py"))) == 1
    assert list(bad_habits(said + "\n" * 699, SOURCE / "a.py")) == []


# Comments that silence a tool must say which of its rules, so that they silence nothing else.
BLANKET = re.compile(
    r"type:\s*ignore|pyright:(?!\s*ignore\[\w)|(?:ruff|flake8):\s*noqa|noqa(?!:\s*[A-Z]+\d)|fmt:\s*(?:off|skip)", re.I
)


def blanket_ignores(text: str) -> list[str]:
    if BLANKET.search(text) is None:  # to find what is a comment takes long
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT and BLANKET.search(token.string)]


def test_ignores_name_their_rule() -> None:
    assert [(path, said) for path in (*SOURCES, *TESTS) for said in blanket_ignores(text_of(path))] == []


def test_the_ignore_check_sees_planted_faults() -> None:
    blanket = [
        "# type: ignore",
        "# type: ignore[arg]",
        "# pyright: ignore",
        "# pyright: basic",
        "# noqa",
        "# ruff: noqa",
    ]
    assert all(blanket_ignores(f"x = 1  {comment}\n") for comment in blanket)
    named = ["# noqa: A001", "# pyright: ignore[reportPrivateUsage]  # because", "# words about ignoring types"]
    assert not any(blanket_ignores(f"x = 1  {comment}\n") for comment in named)


# What an address is asked of has a name, or it is gone before it is read. These give a view of what has one.
VIEWS = ("from_buffer", "in_dll")


def lost_addresses(text: str) -> list[str]:
    """Addresses of objects that no name holds."""
    if "addressof" not in text and "data_address" not in text:
        return []
    asked = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args)
    of = [node.args[0] for node in asked if ast.unparse(node.func).split(".")[-1] in ("addressof", "data_address")]
    made = [node for node in of if isinstance(node, ast.Call)]
    return [ast.unparse(node) for node in made if ast.unparse(node.func).split(".")[-1] not in VIEWS]


def test_addresses_are_taken_of_named_objects() -> None:
    assert [(path, said) for path in SOURCES for said in lost_addresses(text_of(path))] == []


def test_the_check_of_addresses_sees_planted_faults() -> None:
    assert lost_addresses("call(ctypes.addressof(ctypes.c_int(2)))") == ["ctypes.c_int(2)"]
    assert lost_addresses("x = addressof(c_char.from_buffer(memory)) + addressof(x)") == []


def test_no_module_lists_all_objects() -> None:
    """Some are tuples that other threads are still filling: Python ends those threads' work with a SystemError."""
    takes = re.compile(r"gc\.get_(objects|referrers)\b")
    assert takes.search("count = len(gc.get_objects())")
    assert [path for path in SOURCES if takes.search(text_of(path))] == []


def test_no_cached_property_has_a_lock() -> None:
    """A child that is forked while a thread computes such a property waits for ever. The package's own has no lock."""
    locks = re.compile(r"functools\.cached_property|from functools import .*\bcached_property")
    assert locks.search("from functools import cache, cached_property")
    assert [path for path in SOURCES if locks.search(text_of(path))] == []


# Passes and lowerings work on programs, whatever they compute. Comments and docstrings may give examples.
OPERATORS = re.compile(
    r"softmax|attention|attend|gelu|silu|swish|(?:layer|rms|batch|group)_?norm|logsumexp|cross_?entropy|dropout|rotary"
    r"|(?:^|_)rope(?:_|$)|(?-i:Rope)|flash|gemm|conv\dd|convolution|alibi|causal|mlp|transformer|embedding",
    re.I,
)
GENERAL = [path for path in SOURCES if {"transforms", "targets"} & set(path.relative_to(SOURCE).parts)]


def operators_in(text: str) -> list[str]:
    """Names and texts in the code of a file that name an operator."""
    tree = ast.parse(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        named = [getattr(node, field, None) for field in ("id", "attr", "name", "arg", "asname", "module")]
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            named.append(node.value)
        found += [name for name in named if isinstance(name, str) and OPERATORS.search(name)]
    return found


def test_no_pass_names_an_operator() -> None:
    assert [(path, name) for path in GENERAL for name in operators_in(text_of(path))] == []
    assert [path for path in GENERAL if OPERATORS.search(path.stem)] == []


def test_the_operator_check_sees_planted_faults() -> None:
    planted = [
        "def lower_softmax(op): ...",
        "x = tile.attention",
        "from a import layernorm",
        "import gelu as g",
        'if name == "flash_attention": pass',
        "def f(causal): ...",
        "class MlpOp: ...",
        "class RopeOp: ...",
        "f(is_causal=True)",
    ]
    assert [text for text in planted if not operators_in(text)] == []
    fine = ['"""What softmax does."""', "x = 1  # attention", 'x = 1\n"""As in attention."""', "europe = tensor.scope"]
    assert [text for text in fine if operators_in(text)] == []


def processor_seconds(code: str, bytecode: Path) -> float:
    """The processor time of a fresh interpreter; the time on the clock would tell how busy the machine is.

    NumPy's linear algebra starts workers that spin beside the import. With one thread, processor time is the time an
    idle machine's clock would show.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(bytecode), "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def test_importing_the_package_is_quick(tmp_path: Path) -> None:
    # The first import writes bytecode, as installing does; the best of the others counts. A processor that others use
    # takes up to half as long again, the share of NumPy included: then there are more tries.
    processor_seconds("import tessera", tmp_path)
    bare = min(processor_seconds("pass", tmp_path) for _ in range(5))
    best = min(processor_seconds("import tessera", tmp_path) for _ in range(4)) - bare
    for _ in range(20):
        if best < 0.3:
            break
        best = min(best, processor_seconds("import tessera", tmp_path) - bare)
    assert best < 0.3


def test_importing_the_package_loads_no_compiler_and_no_terminal_library() -> None:
    code = "import sys, tessera; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "numpy" in loaded
    assert not {"xdsl", "llvmlite", "click", "rich", "torch", "jax"} & set(loaded)
