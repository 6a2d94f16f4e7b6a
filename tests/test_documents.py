"""Checks the documents: every Python block runs, every error shown is the one raised, every link and table is true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tessera import knobs
from tessera.errors import TesseraError

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


@dataclass
class Block:
    """A fenced block: its info string, its text, and the text block that follows at once, if any."""

    info: list[str]
    text: str
    line: int
    shown: str = ""


def blocks_of(document: str) -> list[Block]:
    found = re.finditer(r"^```([^\n`]*)\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    blocks = [Block(match[1].split(), match[2], document.count("\n", 0, match.start()) + 1) for match in found]
    for block, after in pairwise(blocks):
        if after.info[:1] == ["text"] and re.match(r"\w+Error: ", after.text):
            block.shown = after.text
    return blocks


def run(block: Block, names: dict[str, Any], folder: Path) -> None:
    """The block's code runs; if an error is shown after it, it raises that error."""
    file = folder / str(block.line) / "example.py"
    file.parent.mkdir()
    file.write_text(block.text)
    code = compile(block.text, str(file), "exec", dont_inherit=True)
    if not block.shown:
        exec(code, names)
        return
    with pytest.raises(TesseraError) as caught:
        exec(code, names)
    said = f"{type(caught.value).__name__}: {caught.value}\n"
    assert said.replace(f"{file.parent}/", "") == block.shown


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__document__"}
    with knobs.full_tracebacks.using(False):  # as for users
        for block in blocks_of(path.read_text()):
            if block.info[:1] == ["python"] and "no-run" not in block.info:
                run(block, names, tmp_path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    targets = [target for target in LINK.findall(path.read_text()) if "://" not in target]
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_the_readme_starts_with_the_two_commands() -> None:
    first = blocks_of((ROOT / "README.md").read_text())[0].text
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]


def test_the_index_lists_every_page() -> None:
    listed = set(LINK.findall((ROOT / "docs" / "index.md").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= listed


def test_every_knob_has_a_row_in_its_page() -> None:
    page = (ROOT / "docs" / "knobs.md").read_text()
    for row in knobs.describe():
        assert f"| `{row.name}` | `{row.variable}` |" in page
