"""Internal compiler errors: an unexpected exception becomes an `InternalError`, with a report that can be sent.

A boundary stands around work in which no code of a user runs: passes, lowerings, emission, binding. Python's errors
in there are faults of the package. Tracing runs a user's function, and what that raises passes unchanged.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from tessera import knobs
from tessera.errors import CompileError, InternalError, TesseraError, warn

_ROOT = Path(__file__).resolve().parent
_MOST_REPORTS = 50
_MOST_TEXT = 400_000  # letters of IR in a report
FAULTS = (ArithmeticError, AssertionError, LookupError, NameError, SyntaxError)
"""Errors of Python's that are faults of the package wherever its own code raises them, beside code of a user, too."""
_LIBRARIES = ("tessera-lang", "xdsl", "llvmlite", "numpy", "ml_dtypes")
_KNOBS = (
    knobs.backend,
    knobs.interpret,
    knobs.optimization,
    knobs.cpu_level,
    knobs.checks,
    knobs.deterministic,
    knobs.fast_math,
)


class boundary:  # noqa: N801  (read as a word: with boundary(...))
    """Makes an `InternalError` of whatever else than an error of ours leaves the body of a `with`.

    `what` is compiled, `stage` is at work, and `text` writes the IR that it was given, for the report.
    """

    def __init__(self, what: str, stage: str, text: Callable[[], str] | None = None) -> None:
        self.what, self.stage, self.text = what, stage, text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, Exception) and not isinstance(problem, TesseraError | Warning | MemoryError):
            raise fault(self.what, self.stage, problem, self.text) from problem


def fault(what: str, stage: str, problem: Exception, text: Callable[[], str] | None = None) -> InternalError:
    """The error for a problem inside the compiler, with its report written."""
    said = _said(problem).partition("\n")[0]
    written = report(what, stage, problem, text)
    path = _kept(written)
    named = "its `report`" if path is None else f"{path}"
    error = InternalError(
        f"{what}: the compiler failed in {stage}: {said}",
        hint=f"this is a fault of Tessera and not of your code; please send {named}. "
        f"{knobs.backend.variable}=interpreter runs it meanwhile",
        span=problem.span if isinstance(problem, TesseraError) and problem.is_located else None,
    )
    error.stage, error.report, error.report_path = stage, written, None if path is None else str(path)
    return error


def _said(problem: Exception) -> str:
    """A problem in its own words; of an error of ours without the lines of a user's file."""
    words = problem.message if isinstance(problem, TesseraError) else str(problem)
    return f"{type(problem).__name__}: {words or 'without words'}"


def verified(verify: Callable[[], None], what: str, stage: str, text: Callable[[], str] | None = None) -> None:
    """Verifies what a pass made: where that is not valid, the pass is at fault, and not the user's code."""
    try:
        verify()
    except CompileError as problem:
        raise fault(what, stage, problem, text) from problem


def tell(what: str, error: TesseraError) -> None:
    """Warns that the interpreter runs something because the compiler failed; of a mere refusal nothing is said."""
    if isinstance(error, InternalError):
        warn(f"{what} runs in the interpreter, slowly: {error.message}; {error.hint}")


def report(what: str, stage: str, problem: Exception, text: Callable[[], str] | None) -> str:
    """All that helps to find the fault: versions, settings, where it happened, the IR; nothing of a user's files."""
    parts = [f"Tessera failed to compile {what}", f"stage: {stage}", f"python: {platform.python_version()}"]
    parts += [f"{name}: {_version(name)}" for name in _LIBRARIES]
    parts.append(f"system: {sys.platform}, {platform.machine()}")
    parts += [f"{knob.name}: {_value(knob)}" for knob in _KNOBS]
    parts += ["", _said(problem)]
    for frame in traceback.extract_tb(problem.__traceback__):
        parts.append(f"  {_short_path(frame.filename)}:{frame.lineno} in {frame.name}")
    if text is not None:
        try:
            written = text()
        except Exception as trouble:  # what cannot be compiled may be such that it cannot be written, either
            written = f"// it cannot be written: {type(trouble).__name__}: {trouble}"
        cut = f"\n// … of {len(written)} letters" if len(written) > _MOST_TEXT else ""
        parts += ["", written[:_MOST_TEXT] + cut]
    return "\n".join(parts) + "\n"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _value(knob: knobs.Knob[Any]) -> str:
    try:
        return str(knob.value)
    except TesseraError:
        return "not understood"


def _short_path(file: str) -> str:
    """A file of the package from its root on; of any other only its name."""
    path = Path(file)
    return f"tessera/{path.relative_to(_ROOT)}" if path.is_relative_to(_ROOT) else path.name


def _kept(written: str) -> Path | None:
    """The report in a file beside the cache; equal ones are one file, old ones go. None where it cannot be written."""
    try:
        folder = knobs.cache_dir.value / "reports"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"fault-{hashlib.sha256(written.encode()).hexdigest()[:16]}.txt"
        descriptor, partial = tempfile.mkstemp(dir=folder, suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(written)
        Path(partial).replace(path)
        dated = sorted(folder.glob("fault-*.txt"), key=lambda one: one.stat().st_mtime)
        for old in dated[:-_MOST_REPORTS]:
            old.unlink(missing_ok=True)
    except (OSError, TesseraError, ValueError):
        return None
    return path
