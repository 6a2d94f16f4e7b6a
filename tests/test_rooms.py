"""Checks how sources and tests are divided: an order of rooms, no circles of imports, folders of few files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from module_graph import ROOT, SOURCE, SOURCES, circles, graph, imported, module_of, modules, text_of

PACKAGE = SOURCE / "tessera"

# Lowest first: a sub-room (or a file beside them) imports itself and what stands before it. "" is all other files of
# the room, which stand above its sub-rooms.
SUB_ROOMS: dict[str, tuple[str, ...]] = {
    "ir": ("common", "tile", "graph", "schedule", "pipe", ""),
    "interpreters": ("core", "sanitizers", "levels", ""),
    "transforms": ("core", "facts", "checks", "axes", "fusion", "algebra", "loops", "pipelining", "derivatives", ""),
    "targets": ("common", "llvm", "cpu", "cuda", ""),
    "targets.cpu": ("features", "ir", "emit", "lower", ""),
    "targets.cuda": ("ptx", "ir", "math", "emit", "lower", "hopper", "interpreter", ""),
    "runtime": ("cache", "native", "device", "tensor", "program", "cuda", ""),
    "runtime.device": ("memory", "device", "ownership", ""),
    "runtime.tensor": (
        *("tracking", "interface", "meta", "dlpack", "transfer", "printing", "indexing", "operators", "assignment"),
        *("operator_methods", "tensor", "creation", ""),
    ),
    "runtime.cuda": (
        *("driver", "context", "modules", "streams", "pool", "staging", "gather", "exchange", "backend"),
        *("launching", "tensor_maps", "results", "executable", "graphs", "recordings", ""),
    ),
    "tile": ("language", "identity", "call_code", "calls", ""),
    "lang": (
        *("operator_registry", "spellings", "tracing", "calls", "checking", "explain", "tiering"),
        *("jit", "operator", "draws", "creation", "operators", "random", ""),
    ),
    "lang.tracing": (
        *("sizes", "index_ranges", "graph_modules", "values", "shape_rules", "effects"),
        *("primitives", "arithmetic", "kernel_calls", "functions", ""),
    ),
    "lang.calls": (
        *("methods", "parameters", "annotated", "structures", "watching"),
        *("dispatch", "inlining", "variants", "object_fingerprint", "disk_cache", "narrowing", ""),
    ),
    "lang.operators": (
        *(
            "operands",
            "row_kernels",
            "by_rows",
            "elementwise",
            "composed_elementwise",
            "data_types",
            "creation",
            "views",
            "manipulation",
            "statistics",
        ),
        *("searching", "sorting", "taking", "sets", "indexing", "updates"),
        *(
            "linear_algebra",
            "numerics",
            "normalization",
            "networks",
            "layers",
            "attention",
            "inspection",
            "",
            "methods",
        ),
    ),
    "stdlib": ("elementwise", "normalization", "matmul", "rotary", "manipulation", "attentions", "decoding", ""),
    "tiers": ("logs", "config", "records", "client", "stand_ins", "sites", "compiling", ""),
    "tiers.sites": (
        *("hotness", "counts", "timing", "stats_recorder", "invariants", "schedule_history"),
        *("programs", "ab_test", "backoff", "candidates", "entries", "request", "site"),
        *("first_program", "recording", "trials", "tier_policy", "specialization_site", ""),
    ),
    "metatracing": ("attention", "ranks", "events", "models", "analysis", "clients", "live", "timeline", ""),
    "bench": (
        *("results", "registry", "configs", "instruments", "compiler", "measuring", "operator"),
        *("operators", "processes", "cuda", "reporting", "validation", ""),
    ),
}
# Rooms whose sub-rooms still import upwards, and how often; the numbers may only fall.
UPWARD: dict[str, int] = {}

# How many modules are in circles of imports; the number may only fall.
MOST_IN_CIRCLES = 0

MOST_FILES = 25


def sub_room(module: str, room: str) -> str:
    """`tessera.ir.tile.types` lies in the sub-room `tile` of `ir`."""
    rest = module.removeprefix(f"tessera.{room}").strip(".").split(".")
    return rest[0] if rest[0] in SUB_ROOMS[room] else ""


def upward(room: str, of: Mapping[str, frozenset[str]]) -> list[str]:
    """Imports inside a room that point to a sub-room above."""
    inside = [module for module in of if module.startswith(f"tessera.{room}.")]
    height = {name: index for index, name in enumerate(SUB_ROOMS[room])}
    return [
        f"{module} may not import {other}"
        for module in inside
        for other in of[module]
        if other.startswith(f"tessera.{room}.") and height[sub_room(other, room)] > height[sub_room(module, room)]
    ]


@pytest.mark.parametrize("room", SUB_ROOMS)
def test_sub_rooms_import_what_stands_below(room: str) -> None:
    found = upward(room, graph())
    assert len(found) <= UPWARD.get(room, 0), found


def test_the_check_of_sub_rooms_sees_a_planted_fault() -> None:
    planted = {"tessera.ir.common.elements": frozenset({"tessera.ir.graph.types"})}
    assert upward("ir", planted) == ["tessera.ir.common.elements may not import tessera.ir.graph.types"]
    assert upward("ir", {"tessera.ir.graph.types": frozenset({"tessera.ir.common.elements"})}) == []


def test_no_modules_import_each_other() -> None:
    found = circles(graph())
    assert sum(map(len, found)) <= MOST_IN_CIRCLES, found


def test_the_check_of_circles_sees_planted_faults() -> None:
    texts = {
        "at the top": "from tessera.ir import text",
        "in a function": "def f():\n    from tessera.ir import text",
        "for types": "if TYPE_CHECKING:\n    from tessera.ir.text import read",
        "by name": "import_module('tessera.ir.text')",
        "of a function": "importlib.import_module('tessera.ir.text').read",
    }
    for kind, text in texts.items():
        names = frozenset(name for _, name in imported(ast.parse(text), "tessera.shapes.expr", is_package=False))
        assert names == {"tessera.ir.text"}, kind
    planted = {"a": ("b",), "b": ("c", "d"), "c": ("a",), "d": ("e",), "e": (), "f": ("f", "a")}
    assert circles(planted) == [["a", "b", "c"]]
    assert circles({"a": ("b",), "b": ()}) == []


def crowded(folders: Mapping[str, int]) -> list[str]:
    return [f"{folder} has {count} files" for folder, count in folders.items() if count > MOST_FILES]


def counts_of(top: Path) -> dict[str, int]:
    """Numbers of files of the folders with code at and below `top`; folders of data alone are not counted.

    Mistakes in `tests/messages/*` are data, too: one for each message.
    """
    folders: dict[Path, int] = defaultdict(int)
    for path in top.rglob("*"):
        if path.is_file() and path.parent.name != "__pycache__":
            folders[path.parent] += 1
    return {
        str(folder.relative_to(top.parent)): count
        for folder, count in folders.items()
        if folder.parent.name != "messages" and any(folder.glob("*.py"))
    }


@pytest.mark.parametrize("top", [PACKAGE, ROOT / "tests"], ids=["sources", "tests"])
def test_folders_can_be_looked_through(top: Path) -> None:
    assert crowded(counts_of(top)) == []


def test_the_check_of_folders_sees_planted_faults(tmp_path: Path) -> None:
    top = tmp_path / "tests"
    for folder, count in {"targets": 26, "targets/cpu": 25, "messages/kernels": 30, "targets/__pycache__": 40}.items():
        (top / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (top / folder / f"test_{number}.py").touch()
    (top / "goldens").mkdir()
    for number in range(26):
        (top / "goldens" / f"{number}.txt").touch()
    assert counts_of(top) == {"tests/targets": 26, "tests/targets/cpu": 25}
    assert crowded(counts_of(top)) == ["tests/targets has 26 files"]
    (top / "targets" / "cpu" / "data.json").touch()
    assert "tests/targets/cpu has 26 files" in crowded(counts_of(top))


def test_tests_find_their_modules_where_types_are_checked() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    folders = tools["pytest"]["ini_options"]["pythonpath"]
    assert tools["basedpyright"]["extraPaths"] == ["src", *folders]
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


# Ops and types of dialects are told apart by their dialect.
OF_DIALECTS = re.compile(r"(Op|Type|Attr)$")
# How many names of classes are in more than two modules; the number may only fall.
MOST_SHARED_NAMES = 0


def homes(texts: Mapping[str, str]) -> dict[str, int]:
    """Public classes at the top of more than two modules, with the number of these."""
    found: dict[str, int] = defaultdict(int)
    for text in texts.values():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not OF_DIALECTS.search(node.name):
                found[node.name] += 1
    return {name: count for name, count in found.items() if count > 2}


def test_a_class_has_a_name_of_its_own() -> None:
    found = homes({module: text_of(path) for module, path in modules().items()})
    assert len(found) <= MOST_SHARED_NAMES, found
    assert homes(dict.fromkeys("abc", "class View: ...")) == {"View": 3}
    assert homes(dict.fromkeys("abc", "class _View: ...\nclass FuncOp: ...")) == {}


def loose_ends(path: Path) -> Iterator[str]:
    """Lines where a type is left open or a checker is silenced."""
    text = text_of(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id == "Any":
            yield "Any"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast" and isinstance(node.args[0], ast.Constant):
            yield "quoted cast"
    yield from ("ignore" for _ in re.finditer(r"# (?:pyright: ignore|noqa)", text))


MOST_LOOSE_ENDS = {"Any": 2782, "quoted cast": 63, "ignore": 112}


def test_types_become_no_looser() -> None:
    counts: dict[str, int] = dict.fromkeys(MOST_LOOSE_ENDS, 0)
    for path in SOURCES:
        for kind in loose_ends(path):
            counts[kind] += 1
    assert {kind: count for kind, count in counts.items() if count > MOST_LOOSE_ENDS[kind]} == {}


def test_every_file_has_one_module() -> None:
    assert module_of(PACKAGE / "ir" / "text.py") == "tessera.ir.text"
    assert module_of(PACKAGE / "ir" / "__init__.py") == "tessera.ir"
