"""The sanitizers of the interpreter: which there are, and how to switch them on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from tessera import knobs
from tessera.errors import CompileError
from tessera.interpreters.sanitizers.access_trace import Trace


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The checks that are on; none unless said. `nonfinite` watches for NaN, with "all" for infinities too."""

    bounds: bool = False
    """Loads, stores and atomics that lie wholly outside their view or start before it."""
    races: bool = False
    """Elements that two program instances touch, at least one of them writing."""
    uninitialised: bool = False
    """Reads of elements of an output that nothing has written."""
    unwritten: bool = False
    """Elements of an output that nothing has written when all program instances are done."""
    nonfinite: bool | Literal["nan", "all"] = False
    """Ops that make a NaN (or, with "all", an infinity) of operands that are none."""
    overflow: bool = False
    """Signed integers, positions above all, that wrap around."""
    padding: bool = False
    """Values from beyond an array that reach a result: a mask is missing."""

    def __post_init__(self) -> None:
        if self.nonfinite not in (False, True, "nan", "all"):
            raise CompileError(f"nonfinite={self.nonfinite!r} is not a check", hint='use "nan", "all", True or False')

    @staticmethod
    def all() -> Checks:
        """Every check; of what is not finite, NaN only, since masks are made of infinities."""
        return Checks(
            bounds=True, races=True, uninitialised=True, unwritten=True, nonfinite="nan", overflow=True, padding=True
        )

    def __bool__(self) -> bool:
        return self != Checks()


@dataclass(frozen=True, kw_only=True)
class NumericChecks(Checks):
    """Demands on numbers that a right kernel need not meet; they are asked for by name, and never part of `all`."""

    underflow: bool = False
    """Products, quotients and casts of numbers other than 0 that come out as 0."""
    bounded: tuple[float, float] | None = None
    """The least and the greatest float that may be stored; NaN may not."""

    def beside(self, other: Checks) -> NumericChecks:
        """Both these checks and the others."""
        met = {field.name: _both(getattr(self, field.name), getattr(other, field.name)) for field in fields(Checks)}
        if not isinstance(other, NumericChecks):
            return NumericChecks(**met, underflow=self.underflow, bounded=self.bounded)
        given = [bounds for bounds in (self.bounded, other.bounded) if bounds is not None]
        bounded = (max(low for low, _ in given), min(high for _, high in given)) if given else None
        return NumericChecks(**met, underflow=self.underflow or other.underflow, bounded=bounded)


def _both(one: Any, other: Any) -> Any:
    return "all" if "all" in (one, other) else one or other


class Asked(NamedTuple):
    """The checks that are in force around a call."""

    checks: Checks
    trace: Trace | None


NOTHING = Asked(Checks(), None)
AROUND: ContextVar[Asked] = ContextVar("checks", default=NOTHING)


def asked() -> Asked:
    """The checks and the trace that `checking` has set here."""
    return AROUND.get()


@contextmanager
def checking(checks: Checks, *, trace: Trace | None = None) -> Generator[None]:
    """Runs every kernel called inside under these checks; `trace` receives their accesses."""
    token = AROUND.set(Asked(checks, trace))
    try:
        with knobs.deciding_too():
            yield
    finally:
        AROUND.reset(token)
