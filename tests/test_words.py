"""Checks that one word means one thing: words of several meanings are gone, ops and their classes are named alike.

`docs/glossary.md` says which words are used, `docs/renames.md` what had other names.
"""

from __future__ import annotations

import re

import pytest

from module_graph import ROOT, SOURCES, modules, text_of
from tessera.targets.text import DIALECTS

# Each of these meant several things, or nothing that a reader could look up.
GONE = re.compile(r"(?<![a-z])(turns?|turned|turning|agents?|whoever|nobody|somebody)(?![a-z])", re.IGNORECASE)
# Lines in which an older word is a key: names of modules that have moved, and columns of older files.
OLDER_NAMES = re.compile(r'"tessera\.[\w.]+": "tessera\.[\w.]+"|^_OLDER = ')
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
# These two say what older words mean.
OF_OLDER_WORDS = ("glossary.md", "renames.md")


def words(text: str) -> list[str]:
    """The lines of a text with words that are gone."""
    return [line.strip() for line in text.splitlines() if GONE.search(line) and not OLDER_NAMES.search(line)]


def test_words_of_several_meanings_are_gone() -> None:
    assert {str(path.relative_to(ROOT)): found for path in SOURCES if (found := words(text_of(path)))} == {}


def test_pages_say_who_is_meant() -> None:
    pages = [path for path in PAGES if path.name not in OF_OLDER_WORDS]
    found = {path.name: words(text_of(path)) for path in pages if path.name != "evaluation.md"}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("planted", ["def next_turn(): ...", '"""Whoever asks is told."""', "agents = 2", "# Turned"])
def test_the_check_of_words_sees_a_planted_fault(planted: str) -> None:
    assert words(planted) == [planted]
    assert words("return returned, turnaround, reagent") == []


def test_classes_of_ops_are_named_after_their_ops() -> None:
    for dialect in DIALECTS:
        for op in dialect.operations:
            name = op.name.partition(".")[2].replace(".", "_")
            assert op.__name__ == "".join(map(str.capitalize, name.split("_"))) + "Op"


@pytest.mark.parametrize(
    ("word", "module"),
    [
        ("warp specialization", "ir.pipe.warp_groups"),
        ("warp-specialize", "transforms.pipelining.warp_specialize"),
        ("software pipelining", "ir.pipe"),
        ("software-pipeline-dots", "transforms.pipelining.software_pipeline_dots"),
        ("producer", "ir.pipe.warp_groups"),
        ("consumer", "ir.pipe.warp_groups"),
        ("ping-pong", "ir.pipe.pingpong"),
        ("tile scheduler", "ir.pipe.tile_scheduler"),
        ("epilogue", "transforms.fusion.epilogues"),
        ("prologue", "transforms.fusion.prologues"),
    ],
)
def test_words_of_the_field_are_where_a_reader_looks(word: str, module: str) -> None:
    head = text_of(modules()[f"tessera.{module}"]).split('"""')[1]
    assert word in head.lower()
