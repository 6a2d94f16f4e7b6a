"""The page that walks through the code: it is as the code is, short enough to read, and its listings are looked up."""

from __future__ import annotations

import re
from pathlib import Path

import code_walk
import pytest
from code_walk import WALKS, definition, listing
from walked_files import Step

MOST_FILES = 12
MOST_LINES = 60
"""Of one listing or sample: a page of the screen."""


@pytest.fixture(scope="module", name="page")
def _page() -> str:
    return code_walk.page()


def test_the_page_is_up_to_date(page: str) -> None:
    assert code_walk.PAGE.read_text(encoding="utf-8") == page, "run `make docs`"


def test_it_says_nothing_about_the_machine_that_wrote_it(page: str) -> None:
    assert str(code_walk.ROOT) not in page
    assert str(Path.home()) not in page
    assert not re.search(r"/tmp|0x[0-9a-f]{6}|avx|loc\(", page)


def test_each_walk_has_a_dozen_files_at_most_each_once(page: str) -> None:
    for walk in WALKS.values():
        paths = [step.path for step in walk.steps]
        assert len(paths) <= MOST_FILES
        assert len(set(paths)) == len(paths)
        assert f"\n## {walk.title}\n" in page


@pytest.mark.parametrize("step", [step for walk in WALKS.values() for step in walk.steps], ids=lambda step: step.path)
def test_each_file_is_there_with_a_short_listing(step: Step, page: str) -> None:
    assert (code_walk.SOURCES / step.path).is_file()
    assert f"[`{step.path}`](../src/tessera/{step.path})\n\n{step.words}\n" in page
    assert step.listed
    for name, words in step.listed.items():
        assert len(listing(step.path, name, words).splitlines()) <= MOST_LINES


def test_samples_are_short_and_each_is_shown_once() -> None:
    made = code_walk.samples()
    named = [step.sample for walk in WALKS.values() for step in walk.steps if step.sample]
    assert sorted(named) == sorted(made)
    assert all(0 < len(text.splitlines()) <= MOST_LINES for text in made.values())


def test_a_walk_goes_the_way_that_it_says(page: str) -> None:
    """What the samples say where the walks end: code of the machine, a launch, and a program with facts."""
    first, second, third = re.split(r"\n## ", page)[1:]
    assert "wgmma.mma_async" in first
    assert "warp-specialized, 2 consumers" in first
    assert "Launch(kernel=1, inputs=(2,), outputs=(3,))" in second
    assert "tier 3, assuming factor, x.size[0]" in third


PLANTED = '''\
"""A file."""

class Thing:
    def work(self, many):
        """Does it."""
        start = 1  # here
        # About the loop.
        for one in many:
            if one:
                first(one)
            else:
                # Otherwise.
                second(
                    one,
                )
        try:
            third()
        except KeyError:
            fourth()
        return start
'''


@pytest.fixture(name="planted")
def _planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setattr(code_walk, "SOURCES", tmp_path)
    code_walk.source.cache_clear()
    return "planted.py"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["second("],
            "…\nfor one in many:\n    if one:\n        …\n    else:\n        second(\n            one,\n        )\n…",
        ),
        (["first(", "return"], "…\nfor one in many:\n    if one:\n        first(one)\n…\nreturn start"),
        (["fourth"], "…\ntry:\n    …\nexcept KeyError:\n    fourth()\n…"),
        (["for one"], "…\nfor one in many:\n    …"),
        (["start = 1"], "start = 1  # here\n…"),
    ],
)
def test_a_listing_has_the_statements_asked_for_and_the_heads_around_them(
    planted: str, words: list[str], shown: str
) -> None:
    head, *body = listing(planted, "Thing.work", words).removeprefix("# of Thing\n").splitlines()
    assert head == "def work(self, many):"
    assert "\n".join(line.removeprefix("    ") for line in body) == shown


def test_a_listing_without_words_is_the_whole_function_without_what_it_says(planted: str) -> None:
    found = listing(planted, "Thing.work", [])
    assert "Does it" not in found
    assert "…" not in found
    assert found.endswith("    return start")


def test_what_is_gone_from_the_code_is_an_error(planted: str) -> None:
    with pytest.raises(LookupError, match=r"planted.py has no Thing\.rest"):
        definition(planted, "Thing.rest")
    with pytest.raises(LookupError, match=r"Thing\.work of planted\.py has no statement with 'fifth'"):
        listing(planted, "Thing.work", ["fifth"])
