"""Checks that code outside of targets asks a target or a device what it does, and not for its name or level."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from module_graph import SOURCES, imported, module_of, text_of

# The names of kinds of devices, targets, vendors, families of processors and instruction sets.
VENDOR = re.compile(
    r"(?:cpu|cuda|rocm|hip|metal)(?::\d+)?|nvidia|intel|amd|nvptx\w*|ptx|sm_\d+[a-z]?|[abh][12]00"
    r"|avx|avx2|avx512|amx|neon|sve2?|x86|x86[-_]64|aarch64|arm64",
    re.I,
)
# Where they are at home; and where the names that users write are listed.
HOMES = ("tessera.targets", "tessera.runtime.cuda", "tessera.bench.cuda")
SPELLINGS = "tessera.device_names"
PUBLIC = "tessera"  # `tessera.cuda` is a module of users
INSIDES = ("tessera.targets.cpu", "tessera.targets.cuda")
ASKING = ("startswith", "endswith", "get", "index", "count")

# How often code elsewhere depends on such a name, and imports a target's insides; the numbers may only fall.
MOST_BRANCHES = 0
MOST_IMPORTS = 14


def is_at_home(module: str) -> bool:
    return module in (SPELLINGS, PUBLIC) or any(f"{module}.".startswith(f"{home}.") for home in HOMES)


def vendors_in(node: ast.AST | None) -> Iterator[str]:
    """The vendors that a text names, or one of a collection."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if VENDOR.fullmatch(node.value):
            yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from chain.from_iterable(map(vendors_in, node.elts))
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("frozenset", "set", "tuple", "list"):
        yield from chain.from_iterable(map(vendors_in, node.args))


def standing_in(tree: ast.AST) -> dict[str, list[str]]:
    """The names that stand for vendors: those given one, as `LEVEL = "sm_90a"`, and those of the list of spellings."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and (vendors := list(vendors_in(node.value))):
                    found.setdefault(target.id, []).extend(vendors)
        elif isinstance(node, ast.ImportFrom) and node.module == SPELLINGS:
            found |= {alias.asname or alias.name: [alias.name] for alias in node.names if alias.name == "HOST"}
    return found


def asked_in(node: ast.AST) -> Iterator[ast.AST | None]:
    """What a node compares with, or looks up; a display of keys is asked where all of them are vendors."""
    match node:
        case ast.Compare():
            yield from (node.left, *node.comparators)
        case ast.MatchValue():
            yield node.value
        case ast.Subscript():
            yield node.slice
        case ast.Call(func=ast.Attribute(attr=asks)) if asks in ASKING:
            yield from node.args[:1]
        case ast.Dict() if node.keys and all(any(vendors_in(key)) for key in node.keys):
            yield from node.keys
        case _:
            pass


def branches(text: str) -> list[str]:
    """The lines of a file that depend on the name of a vendor, with these."""
    tree = ast.parse(text)
    standing = standing_in(tree)
    found: list[str] = []
    for node in ast.walk(tree):
        for asked in asked_in(node):
            named = standing.get(asked.id, []) if isinstance(asked, ast.Name) else list(vendors_in(asked))
            if named:
                found.append(f"{getattr(node, 'lineno', getattr(asked, 'lineno', 0))}: {', '.join(named)}")
    return found


def insides(text: str, module: str, is_package: bool = False) -> set[str]:
    """The modules of targets that a file imports."""
    names = {name for _, name in imported(ast.parse(text), module, is_package=is_package)}
    return {name for name in names if any(f"{name}.".startswith(f"{inside}.") for inside in INSIDES)}


def found_branches() -> list[str]:
    places = ((module_of(path), text_of(path)) for path in SOURCES if not is_at_home(module_of(path)))
    return [f"{module}:{said}" for module, text in places for said in branches(text)]


def found_imports() -> list[str]:
    return [
        f"{module_of(path)} imports {name}"
        for path in SOURCES
        if not is_at_home(module_of(path))
        for name in sorted(insides(text_of(path), module_of(path), path.name == "__init__.py"))
    ]


def test_nothing_branches_on_the_name_of_a_vendor() -> None:
    found = found_branches()
    assert len(found) <= MOST_BRANCHES, found


def test_the_insides_of_targets_are_imported_no_more_often() -> None:
    found = found_imports()
    assert len(found) <= MOST_IMPORTS, found


@pytest.mark.parametrize(
    "text",
    [
        'if settings.target == "cuda": pass',
        'if "cpu" != device.kind: pass',
        'if level in ("sm_80", "sm_90a"): pass',
        'if level in {"base", "avx512"}: pass',
        'if device == "cuda:0": pass',
        'if device.startswith("cuda"): pass',
        'LEVEL = "sm_90a"\nif level == LEVEL: pass',
        'LEVELS: frozenset[str] = frozenset({"avx2", "neon"})\nis_known = level in LEVELS',
        'match target:\n    case "cuda": pass',
        'blocks = {"cuda": 1, "cpu": 2}[target]',
        'of_gpus = BLOCKS["cuda"]',
        'of_gpus = BLOCKS.get("cuda")',
        "from tessera.device_names import HOST\nif kind == HOST: pass",
        "from tessera.device_names import HOST as processor\nif kind == processor: pass",
    ],
)
def test_the_check_of_names_sees_planted_faults(text: str) -> None:
    assert branches(text)


@pytest.mark.parametrize(
    "text",
    [
        'x = device("cuda:1")',
        '"""A function for "cuda"."""',
        'def f(device: str = "cpu"): ...',
        'if settings.compiler.is_asynchronous: raise DeviceError("cuda")',
        'record = {"cpu": 1, "memory": 2}',
        "if found.kind != chosen.target: pass",
        "from tessera.device_names import HOST\nx = Device(HOST)",
    ],
)
def test_the_check_of_names_accepts_what_is_right(text: str) -> None:
    assert branches(text) == []


def test_the_check_of_insides_sees_planted_faults() -> None:
    for text in (
        "from tessera.targets.cpu import features",
        "def late():\n    from tessera.targets.cuda.compile import lower_kernel",
        "if TYPE_CHECKING:\n    import tessera.targets.cuda.ptx.reading",
        'import_module("tessera.targets.cuda.compile")',
    ):
        assert len(insides(text, "tessera.tile.calls.settings")) == 1, text
    assert insides("from tessera.targets import text", "tessera.tile.calls.settings") == set()


def test_vendors_are_named_at_home() -> None:
    assert all(map(is_at_home, ("tessera.targets.cuda.target", "tessera.runtime.cuda", SPELLINGS)))
    assert not any(map(is_at_home, ("tessera.runtime.device.device", "tessera.targetsize", "tessera.tile")))
