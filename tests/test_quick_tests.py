"""Of marked tests the quick run takes combinations that show each value, and `make acceptance` all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

CONFTEST = """
import pytest
from quick_tests import leave_to_acceptance

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    leave_to_acceptance(items)
"""
TESTS = """
import pytest

@pytest.mark.quick
@pytest.mark.parametrize("level", ["a", "b", "c"])
@pytest.mark.parametrize(("m", "n"), [(1, 2), (1, 3), (2, 2), (3, 3)])
def test_each(level, m, n): ...

@pytest.mark.quick(level=["c", "a"])
@pytest.mark.parametrize("level", ["a", "b", "c"])
@pytest.mark.parametrize("transposed", [False, True])
def test_named(level, transposed): ...

@pytest.mark.quick(m=[1])
@pytest.mark.parametrize(("m", "n"), [(1, 2), pytest.param(1, 3, marks=pytest.mark.acceptance), (2, 2)])
def test_rows(m, n): ...

@pytest.mark.quick(2)
@pytest.mark.parametrize("level", ["a", "b", "c", "d", "e"])
def test_few(level): ...

@pytest.mark.parametrize("level", ["a", "b"])
def test_all(level): ...
"""


def collected(folder: Path, markers: str, tests: str = TESTS) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  quick: few\n  acceptance: all\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", markers]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_value_is_shown_and_no_more_than_that(tmp_path: Path) -> None:
    status, said = collected(tmp_path, "not acceptance")
    assert status == 0
    found = [line.partition("::")[2] for line in said.splitlines() if "::" in line]
    counts = Counter(name.partition("[")[0] for name in found)
    assert counts == {"test_each": 4, "test_named": 2, "test_rows": 1, "test_few": 2, "test_all": 2}
    each = [name.partition("[")[2][:-1].split("-") for name in found if name.startswith("test_each")]
    assert {(m, n) for m, n, _ in each} == {("1", "2"), ("1", "3"), ("2", "2"), ("3", "3")}
    assert {level for _, _, level in each} == {"a", "b", "c"}
    assert not [name for name in found if name.startswith("test_named") and "-b]" in name]
    assert {"test_rows[1-2]", "test_few[a]", "test_few[c]"} <= {*found}


def test_the_others_are_left_to_acceptance(tmp_path: Path) -> None:
    status, said = collected(tmp_path, "acceptance")
    assert status == 0
    counts = Counter(line.partition("::")[2].partition("[")[0] for line in said.splitlines() if "::" in line)
    assert counts == {"test_each": 8, "test_named": 4, "test_rows": 2, "test_few": 3}


def test_a_value_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    status, said = collected(tmp_path, "not acceptance", TESTS.replace('level=["c", "a"]', 'level=["c", "d"]'))
    assert status != 0
    assert "quick(level=…) names 'd', which is none of its values" in said
