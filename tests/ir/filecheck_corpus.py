"""The IR files under tests/filecheck: finding them, splitting them into cases, and running what they say."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from click.testing import CliRunner
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

from tessera.cli.opt import opt

ROOT = Path(__file__).parents[1] / "filecheck"
INVALID_ROOT = ROOT / "invalid"
INVALID = sorted(INVALID_ROOT.rglob("*.mlir"))
POSITIVE = sorted(set(ROOT.rglob("*.mlir")) - set(INVALID))

_RUN = re.compile(
    r"// RUN: tessera opt %s(?: (?P<options>.+?))? \| filecheck %s(?: --check-prefix=(?P<prefix>[A-Z]+))?"
)
_EXPECTED = re.compile(r"\s*// expected: (.+)")
_OPTIONS = re.compile(r"\s*// options: (.+)")
_BORDER = "// -----"


def label(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


@dataclass(frozen=True)
class Run:
    """One RUN line: `tessera opt %s …` with these options, its output held against the CHECK lines of one prefix."""

    options: tuple[str, ...]
    prefix: str


def runs_of(text: str) -> list[Run]:
    """All RUN lines of a file; it must have one, and this harness must understand each."""
    found: list[Run] = []
    for line in text.splitlines():
        if "RUN:" not in line:
            continue
        match = _RUN.fullmatch(line)
        if match is None:
            raise ValueError(f"expected `tessera opt %s [options] | filecheck %s [--check-prefix=X]`, got {line!r}")
        found.append(Run(tuple(shlex.split(match["options"] or "")), match["prefix"] or "CHECK"))
    if not found:
        raise ValueError("the file has no RUN line")
    return found


def run_opt(path: str, options: tuple[str, ...], text: str | None = None) -> str:
    """What `tessera opt` prints; its errors are raised. The path `-` reads `text`."""
    arguments = [path, *options]
    return CliRunner().invoke(opt, arguments, input=text, catch_exceptions=False, standalone_mode=False).stdout


def mismatch(path: Path, output: str, prefix: str) -> str | None:
    """Why the output is not what the CHECK lines of a file say, or None; no CHECK lines is a mismatch, too."""
    options = Options(match_filename=str(path), check_prefixes=[prefix])
    complaints = io.StringIO()
    with redirect_stderr(complaints):
        status = Matcher(options, FInput("<output>", output), Parser.from_opts(options)).run()
    return None if status == 0 else f"{complaints.getvalue()}\nthe whole output:\n{output}"


@dataclass(frozen=True)
class Case:
    """One module that must be refused. Its text starts with as many empty lines as stand before it in the file."""

    path: Path
    text: str
    expected: str
    line: int
    options: tuple[str, ...]

    def __str__(self) -> str:
        return f"{label(self.path)}:{self.line}"


def cases_of(path: Path) -> list[Case]:
    """The modules of an invalid file; the comment `// expected:` stands right above the line that is blamed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    borders = [-1, *(number for number, line in enumerate(lines) if line == _BORDER), len(lines)]
    return [_case(path, lines, start + 1, stop) for start, stop in pairwise(borders)]


def _case(path: Path, lines: list[str], start: int, stop: int) -> Case:
    expected = [(number, found[1]) for number in range(start, stop) if (found := _EXPECTED.fullmatch(lines[number]))]
    options = [found[1] for number in range(start, stop) if (found := _OPTIONS.fullmatch(lines[number]))]
    if len(expected) != 1 or len(options) > 1:
        raise ValueError(f"{path}:{start + 1}: a case has one `// expected:` and at most one `// options:`")
    text = "\n" * start + "\n".join(lines[start:stop]) + "\n"
    # Lines count from 1, and the next line is meant.
    return Case(path, text, expected[0][1], expected[0][0] + 2, tuple(shlex.split(options[0])) if options else ())
