"""The documents name everything there is: ops, passes, commands, knobs, error classes, levels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera import errors, knobs
from tessera.cli.main import cli
from tessera.ir.common import elementwise
from tessera.targets.cuda.ir import dialect
from tessera.targets.passes import ALL_PASSES
from tessera.targets.text import DIALECTS
from tessera.transforms.core.facts import FactKind
from tessera.transforms.core.legality import LEVELS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_OPS = [op.name for each in DIALECTS for op in each.operations]
_PORTABLE = [op.name for op in dialect.OPS]
_ERRORS = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.TesseraError)
]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("graph.md", [name for name in _OPS if name.startswith("graph.")]),
        ("schedule.md", [name for name in _OPS if name.startswith("schedule.")]),
        ("tile.md", [name for name in _OPS if name.startswith("tile.")]),
        ("pipe.md", [name for name in _OPS if name.startswith("pipe.")]),
        ("cpu.md", [name for name in _OPS if name.startswith("cpu.")]),
        ("cuda.md", _PORTABLE),
        ("hopper.md", [name for name in _OPS if name.startswith("nv.") and name not in _PORTABLE]),
        ("transforms.md", [*ALL_PASSES, *LEVELS]),
        ("cli.md", [f"tessera {name}" for name in cli.list_commands(None)]),  # pyright: ignore[reportArgumentType]  # the list needs no context
        ("knobs.md", [row.variable for row in knobs.describe()]),
        ("errors.md", _ERRORS),
    ],
)
def test_a_page_names_everything_it_is_about(page: str, names: list[str]) -> None:
    written = (DOCS / page).read_text(encoding="utf-8")
    assert names
    assert [name for name in names if name not in written] == []


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = [path.name for path in DOCS.glob("*.md") if path.name != "index.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def _file(path: str) -> Path:
    """A file that CONTRIBUTING names: in the package unless it begins otherwise."""
    return ROOT / path if path.startswith(("src/", "tests/", "benchmarks/")) else ROOT / "src" / "tessera" / path


def test_files_and_names_to_look_at_are_there() -> None:
    written = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where to add things")[2]
    files = re.findall(r"`([\w/]+/\w+\.(?:py|txt))`", written)
    assert len(files) > 60
    assert [path for path in files if not _file(path).is_file()] == []
    pairs = [
        (name, path)
        for names, path in re.findall(r"((?:`\w+`(?:, | and )?)+) (?:of|in) `([\w/]+/\w+\.py)`", written)
        for name in re.findall(r"\w+(?=`)", names)
    ]
    pairs += [
        (name, path)
        for path, inside in re.findall(r"`([\w/]+/\w+\.py)` \(([^)]*)\)", written)
        for name in re.findall(r"`(\w+)`", inside)
    ]
    assert len(pairs) > 30
    assert [pair for pair in pairs if not re.search(rf"\b{pair[0]}\b", _file(pair[1]).read_text("utf-8"))] == []


def test_files_that_pages_name_are_there() -> None:
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "examples")]
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.*")]
    pages = [ROOT / "README.md", *(page for page in DOCS.glob("*.md") if page.name != "renames.md")]
    named = [
        (page.name, name)
        for page in pages
        for name in re.findall(r"`([\w/.-]+\.(?:py|ll))`", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 300
    assert [pair for pair in named if not any(path.endswith(f"/{pair[1]}") for path in files)] == []


def test_tables_are_not_empty() -> None:
    assert len(elementwise.TABLE) > 40
    assert len(FactKind) == 9
