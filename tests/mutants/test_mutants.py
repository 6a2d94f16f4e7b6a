"""Mutations of passes: all of the list still apply, the tests named there kill them, and the runner can tell."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from draw import NO_PASSES, ROOMS
from mutant_sites import KINDS, SOURCE, MutantError, Site, fingerprint, function_named, path_of, replaced, sites
from run import ROOT, Copy, Mutant, check, read, relocated, site_of, verdict

MUTANTS = read()


def test_there_are_sixty_mutations_of_many_files_and_kinds() -> None:
    assert len(MUTANTS) == 60
    assert len({mutant.module for mutant in MUTANTS}) >= 30
    assert {mutant.kind for mutant in MUTANTS} == set(KINDS)
    assert [mutant.number for mutant in MUTANTS] == sorted({mutant.number for mutant in MUTANTS})


def test_modules_that_are_not_drawn_from_are_there() -> None:
    for room, names in NO_PASSES.items():
        paths = [SOURCE.joinpath(ROOMS[room], *name.split(".")) for name in names.split()]
        assert [path for path in paths if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant.number))
def test_a_mutation_still_applies(mutant: Mutant) -> None:
    source = path_of(mutant.module).read_text(encoding="utf-8")
    assert replaced(source, site_of(mutant)) != source
    assert (mutant.killed_by is None) == (mutant.survives_because is not None)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant.number))
def test_the_tests_of_a_mutation_are_there(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.partition("[")[0].split("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert not names or function_named(tree, ".".join(names))


@pytest.mark.acceptance
def test_every_mutation_has_the_verdict_of_the_list() -> None:
    assert check(MUTANTS) == 0


LIMITED = '''
def limited(values: list[int], most: int) -> list[int]:
    """Those of the values that are small enough."""
    found = []
    for value in values:
        if value < most:
            found.append(value + 1)
    return found
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one function and two tests of it, one of which sees where its limit is."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they need none, and loading them takes longest
    (tmp_path / "src" / "toy").mkdir(parents=True)
    (tmp_path / "src" / "toy" / "__init__.py").write_text("")
    (tmp_path / "src" / "toy" / "limits.py").write_text(LIMITED)
    (tmp_path / "test_toy.py").write_text(
        "from toy.limits import limited\n"
        "def test_where(): assert limited([1, 2, 3], 3) == [2, 3]\n"
        "def test_that(): assert limited([1], 3) == [2]\n"
    )
    return tmp_path


def mutation(kind: str, index: int = 0, test: str = "test_where") -> Mutant:
    shape = fingerprint(function_named(ast.parse(LIMITED), "limited"))
    return Mutant(0, "toy.limits", "limited", kind, index, shape, "", "", f"test_toy.py::{test}")


@pytest.mark.parametrize(("test", "expected"), [("test_where", "killed"), ("test_that", "survives")])
def test_a_mutation_is_killed_by_a_test_that_sees_it(toy: Path, test: str, expected: str) -> None:
    copy = Copy(toy / "copy", toy / "src")
    assert verdict(copy, mutation("comparison", test=test), root=toy) == expected
    assert (copy.folder / "toy" / "limits.py").read_text() == LIMITED


def test_an_empty_mutation_survives(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(source: str, site: Site) -> str:
        del site
        return source

    monkeypatch.setattr("run.replaced", unchanged)
    assert verdict(Copy(toy / "copy", toy / "src"), mutation("comparison"), root=toy) == "survives"


def test_a_mutation_that_never_ends_is_killed(toy: Path) -> None:
    (toy / "test_toy.py").write_text("import time\ndef test_where(): time.sleep(60)\n")
    assert verdict(Copy(toy / "copy", toy / "src"), mutation("comparison"), root=toy, limit_s=0.2) == "killed"


def test_a_function_is_found_again_under_other_names(toy: Path) -> None:
    source = toy / "src"
    text = LIMITED.replace("limited", "bounded").replace("value", "number").replace("small enough", "little")
    (source / "toy" / "limits.py").rename(source / "toy" / "bounds.py")
    (source / "toy" / "bounds.py").write_text(text)
    with pytest.raises(MutantError, match=r"there is no module toy.limits; `run.py --relocate` looks for it elsewhere"):
        site_of(mutation("comparison"), source)
    (found,) = relocated([mutation("comparison")], source)
    assert (found.module, found.function, found.mutated) == ("toy.bounds", "bounded", "if (number <= most):")


@pytest.mark.parametrize(
    ("old", "new"), [("<", "<="), ("+ 1", "+ 2"), ("for value in values", "for value in reversed(values)")]
)
def test_a_function_that_has_changed_is_noticed(toy: Path, old: str, new: str) -> None:
    (toy / "src" / "toy" / "limits.py").write_text(LIMITED.replace(old, new))
    with pytest.raises(MutantError, match="the function has changed"):
        site_of(mutation("comparison"), toy / "src")
    with pytest.raises(MutantError, match="0 functions have its shape"):
        relocated([mutation("comparison")], toy / "src")


def test_a_site_that_is_not_there_is_noticed(toy: Path) -> None:
    with pytest.raises(MutantError, match=r"there is no site 1 of the kind comparison"):
        site_of(replace(mutation("comparison"), index=1), toy / "src")


def test_what_each_kind_does() -> None:
    text = (
        "def f(a, b) -> None:\n    while a and b:\n        g(a, b, flag=True)\n        a.x = b - 1\n"
        "        if a in b:\n            break\n    raise E(f'{a + 1}') if a < b else E(2)\n"
    )
    function = function_named(ast.parse(text), "f")
    made = {kind: [replaced(text, site) for site in sites(function, kind)] for kind in KINDS}
    assert made == {
        "comparison": [text.replace("a in b", "(a not in b)")],
        "arithmetic": [text.replace("b - 1", "(b + 1)")],
        "and-or": [text.replace("a and b", "(a or b)")],
        "plus-one": [text.replace("b - 1", "b - 2")],
        "minus-one": [text.replace("b - 1", "b - 0")],
        "flag": [text.replace("True", "False")],
        "deleted-statement": [text.replace("g(a, b, flag=True)", "pass"), text.replace("a.x = b - 1", "pass")],
        "loop-control": [text.replace("break", "continue")],
        "swapped-arguments": [text.replace("g(a, b, flag", "g(b, a, flag")],
        "negated-condition": [text.replace("while a and b", "while (not (a and b))")],
        "early-return": [text[: text.index("while")] + "return\n" + text[text.index("    raise") :]],
    }
