"""Checks what is said at import on each kind of Python, and that calls run in Python where objects are not known."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tessera import python_versions

ROOT = Path(__file__).parents[1]
# A Python that claims to be another one. What it claims is all that the package looks at.
PRETENCES = {
    "3.14": "sys.version_info = (3, 14, 0, 'final', 0)",
    "3.15": "sys.version_info = (3, 15, 0, 'alpha', 4)",
    "free-threaded": "sys.abiflags = 't'; sys._is_gil_enabled = lambda: True",
    "without lock": "sys.abiflags = 't'; sys._is_gil_enabled = lambda: False",
    "3.14 without lock": (
        "sys.version_info = (3, 14, 0, 'final', 0); sys.abiflags = 't'; sys._is_gil_enabled = lambda: False"
    ),
    "traced references": "sys.getobjects = lambda *_: []",
    "another": "sys.implementation.name = 'pypy'",
}
SAID = {
    "3.14": ["tested on Python 3.11 to 3.13, this is 3.14"],
    "3.15": ["tested on Python 3.11 to 3.13, this is 3.15"],
    "free-threaded": ["a free-threaded build"],
    "without lock": ["a free-threaded build", "without its global lock"],
    "3.14 without lock": ["this is 3.14", "a free-threaded build", "without its global lock"],
    "traced references": [],
    "another": ["tested on CPython, this is pypy"],
}
# Dependencies are imported before: they have a look at the version, too.
PROGRAM = """
import sys, warnings
import inspect, dataclasses, typing, ctypes, llvmlite.binding, numpy as np, ml_dtypes, optree, xdsl.ir, xdsl.parser
import rich.console
{pretence}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import tessera as ts
print("files", [one.filename == __file__ for one in said])
print("said", [str(one.message) for one in said])
sys.path.insert(0, {tests!r})
import twice
x = ts.randn((30, 20), seed=1)
assert all((twice.double(x).numpy() == x.numpy() * 2).all() for _ in range(3))
assert all((twice.shifted(x).numpy() == x.numpy() + 1).all() for _ in range(3))
from tessera.runtime.native import objects
print("known", objects.are_known())
"""
KERNEL = """
import tessera as ts
from tessera import kernel, tile


@kernel
def double(x):
    return tile.load(x) * 2.0


@ts.jit
def shifted(x):
    return x + 1.0
"""


def told(tmp_path: Path, pretence: str) -> dict[str, str]:
    """What a process with a pretended Python prints."""
    (tmp_path / "twice.py").write_text(KERNEL, encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(pretence=pretence, tests=str(tmp_path)), encoding="utf-8")
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(line.split(" ", 1) for line in ran.stdout.splitlines())


@pytest.mark.parametrize(
    "kind",
    [
        "3.14 without lock",
        *(pytest.param(one, marks=pytest.mark.acceptance) for one in ("3.14", "3.15", "free-threaded")),
    ],
)
def test_what_is_said_at_import_and_that_calls_are_right(tmp_path: Path, kind: str) -> None:
    found = told(tmp_path, PRETENCES[kind])
    assert found["known"] == "False"
    said = eval(found["said"])
    assert len(said) == len(SAID[kind])
    assert all(words in remark for words, remark in zip(SAID[kind], said, strict=True))
    assert "False" not in found["files"]  # they are told where the package is imported


@pytest.mark.parametrize("kind", PRETENCES)
def test_remarks_and_what_is_known(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if sys.version_info[:2] in python_versions.TESTED:
        assert python_versions.is_known()
        assert python_versions.remarks() == []
    monkeypatch.setattr(python_versions, "sys", sys_like(PRETENCES[kind]))
    assert not python_versions.is_known()
    remarks = python_versions.remarks()
    assert len(remarks) == len(SAID[kind])
    assert all(words in remark for words, remark in zip(SAID[kind], remarks, strict=True))


def sys_like(pretence: str) -> object:
    """A module like `sys` of 3.13, changed."""

    class Implementation:
        name = "cpython"

    class Sys:
        version_info = (3, 13, 0, "final", 0)
        implementation = Implementation()
        abiflags = ""

    made = Sys()
    exec(pretence, {"sys": made})
    return made


def test_the_versions_that_are_listed_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [f"{major}.{minor}" for major, minor in python_versions.TESTED]
    listed = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one]
    assert listed == versions
    assert project["requires-python"] == f">={versions[0]}"
    matrix = (ROOT / ".ci" / "matrix").read_text(encoding="utf-8").split()
    assert matrix == [f"python{version}" for version in versions]
