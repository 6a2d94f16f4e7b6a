"""Classes of errors: each says what was expected, what came, where in the user's code, and what to do next.

Messages are written where they are raised; `tests/messages/` has the mistakes and the texts that they give.
"""

from __future__ import annotations

import inspect
import linecache
import os
import stat
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType
from typing import Self

_LARGEST_SOURCE = 1 << 24
_LONGEST_LINE = 10_000
_PACKAGE_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A range of source text; lines count from 1, columns from 0, the end column is exclusive."""

    file: str
    line: int
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None
    caller: SourceSpan | None = None
    """Where the function with this text was called, if it is a helper of a kernel."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"

    def excerpt(self) -> str:
        """The source line with carets under the span; empty when the source cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip("\n") if _can_be_shown(self.file) else ""
        if not text or len(text) > _LONGEST_LINE:
            return ""
        stop = self.end_column if self.end_line in (None, self.line) else len(text)
        width = 1 if stop is None else max(1, stop - self.column)
        gutter = f"{self.line:>4} | "
        # Tabs stay tabs so that the carets line up in any terminal.
        lead = "".join("\t" if c == "\t" else " " for c in text[: self.column])
        return f"{gutter}{text}\n{' ' * (len(gutter) - 2)}| {lead}{'^' * width}"


def _shown(word: str, span: SourceSpan) -> list[str]:
    return [line for line in (f"  {word} {span}", span.excerpt()) if line]


def _can_be_shown(file: str) -> bool:
    """Whether to look into a file for a line: text may name any file, and some have no end, or make one wait."""
    if file in linecache.cache:
        return True
    try:
        found = os.stat(file)
    except ValueError:  # a name that no file can have
        return False
    except OSError:  # it is none, but there may be lines under its name nevertheless
        return True
    return stat.S_ISREG(found.st_mode) and 0 < found.st_size <= _LARGEST_SOURCE


def span_of(code: CodeType, instruction: int) -> SourceSpan:
    """The exact source range of one bytecode instruction (`frame.f_lasti` counts in bytes, two per unit)."""
    line, end_line, column, end_column = next(islice(code.co_positions(), max(instruction, 0) // 2, None))
    return SourceSpan(code.co_filename, line or code.co_firstlineno, column or 0, end_line, end_column)


def caller_span() -> SourceSpan | None:
    """The span of the innermost frame outside the package: the user's expression that led here."""
    frame = caller_frame()
    return None if frame is None else span_of(frame.f_code, frame.f_lasti)


def caller_frame() -> FrameType | None:
    """The innermost frame outside the package."""
    return outer_frame(inspect.currentframe())


def outer_frame(frame: FrameType | None) -> FrameType | None:
    """A frame, or the innermost around it that is outside the package."""
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is one of the package."""
    if "__written_like_a_user__" in frame.f_globals:  # kernels that ship with the package are read like a user's
        return False
    # Methods that dataclasses generate have no file, but they have our globals.
    return frame.f_code.co_filename.startswith(_PACKAGE_ROOT) or frame.f_globals.get("__name__", "").startswith(
        "tessera."
    )


class TesseraError(Exception):
    """The base of all errors. `story` tells, step by step, how the values involved came to be."""

    def __init__(
        self,
        message: str,
        *,
        span: SourceSpan | None = None,
        shapes: Sequence[str] = (),
        story: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span if span is not None else caller_span()
        # Given by the raise, rather than guessed from the call stack.
        self.is_located = span is not None
        self.shapes = tuple(shapes)
        self.story = tuple(story)
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts += _shown("-->", self.span)
            caller = self.span.caller
            while caller is not None:
                parts += _shown("called at", caller)
                caller = caller.caller
        parts += [f"  shape: {line}" for line in self.shapes]
        parts += [f"  story: {line}" for line in self.story]
        if self.hint:
            parts.append(f"  help:  {self.hint}")
        return "\n".join(parts)

    def at(self, span: SourceSpan | None) -> Self:
        """Sets the source location, unless a more exact one was set before."""
        if span is not None and not self.is_located:
            self.span, self.is_located = span, True
        return self


class TesseraWarning(UserWarning):
    """Something that works and deserves to be known; the category of every warning of ours."""


def warn(message: str) -> None:
    """Warns at the user's expression that led here."""
    span = caller_span()
    if span is None:
        warnings.warn(message, TesseraWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, TesseraWarning, span.file, span.line)


_told: set[str] = set()


def warn_once(what: str, message: str) -> None:
    """Warns at the user's expression, the first time that this process has to tell of something."""
    if what not in _told:
        _told.add(what)
        warn(message)


class ShapeError(TesseraError, ValueError):
    """Sizes, ranks or strides that do not fit together; Python's own code knows it as a ValueError."""


class RangeError(ShapeError, IndexError):
    """An index or an axis that is outside of what there is; Python's own code knows it as an IndexError."""


class DtypeError(TesseraError, TypeError):
    """Element types or numerics policies that do not fit together; Python's own code knows it as a TypeError."""


class EffectError(TesseraError):
    """An effect (random, state, collective, IO) where it is not allowed, or in an unsafe order."""


class CompileError(TesseraError):
    """IR that a pass, a verifier or a legality rule refuses."""


class InternalError(CompileError):
    """A fault of the compiler itself; `report` is what its authors need to find it, as a text without your files."""

    stage: str = ""
    report: str = ""
    report_path: str | None = None
    """The file that the report was written to, if that could be."""


class FallbackError(CompileError):
    """Code that would run, but slower than code of this kind can; an error where `no_fallbacks` asks for that."""


class ResourceError(TesseraError):
    """Memory, files or hardware resources that cannot be had."""


class GuardError(TesseraError):
    """A fact that was assumed and does not hold."""


class RaceError(TesseraError):
    """Two program instances that touch the same address in conflicting ways."""


class AutotuneError(TesseraError):
    """A schedule space without a valid point, or a tuning run that could not finish."""


class DeviceError(TesseraError):
    """A device that does not exist, is not reachable, or does not match."""
