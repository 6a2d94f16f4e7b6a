"""Attempts: lists of stages are tried in order, the first that fits is taken, and what was refused is kept.

This is the one place that decides between ways to compile a kernel: warp-specialized or portable, one plan or the next,
more in registers or less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, Generic, TypeVar

from tessera import knobs
from tessera.errors import CompileError, FallbackError, InternalError, SourceSpan

T = TypeVar("T")


@dataclass(frozen=True)
class Refusal:
    """One way to compile a kernel that was not taken: why, where in the source, and what would help."""

    way: str
    reason: str
    span: SourceSpan | None = None
    hint: str | None = None
    is_slower: bool = True
    """Whether what is taken instead is slower code, which is a fallback; other plans of one way are not."""

    @staticmethod
    def of(way: str, error: CompileError, *, is_slower: bool = True) -> Refusal:
        return Refusal(way, error.message, error.span, error.hint, is_slower)

    def __str__(self) -> str:
        where = "" if self.span is None else f"{self.span}: "
        return f"{where}{self.way}: {self.reason}" + (f" ({self.hint})" if self.hint else "")


@dataclass
class CompileReport:
    """The way a kernel was compiled, and those that were refused before."""

    way: str = ""
    refusals: list[Refusal] = field(default_factory=list[Refusal])

    @property
    def fallbacks(self) -> list[Refusal]:
        """The refusals that make the kernel slower."""
        return [one for one in self.refusals if one.is_slower]

    def refuse(self, refusal: Refusal) -> None:
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def lines(self) -> list[str]:
        """The report in words, a line each."""
        way = [f"compiled: {self.way}"] if self.way else []
        return way + [f"{'slower than' if one.is_slower else 'not'} {one}" for one in self.refusals]

    def tell(self, name: str) -> None:
        """Logs which faster ways a kernel did not take, and why, where fallbacks are logged; or refuses it for that.

        This is asked where a program is used first in a process: compiled there, or found on the disk.
        """
        if self.fallbacks and knobs.no_fallbacks.value:
            first, *others = self.fallbacks
            raise FallbackError(
                f"@{name} is compiled {self.way}, which is slower: {first.way}: {first.reason}",
                span=first.span,
                story=[str(other) for other in others],
                hint=first.hint or f"unset {knobs.no_fallbacks.variable} to run it as it is",
            )
        if self.fallbacks and "fallbacks" in knobs.logs.value:
            import logging

            for refusal in self.fallbacks:
                logging.getLogger("tessera.fallbacks").warning("@%s is compiled %s: %s", name, self.way, refusal)

    def encoded(self) -> object:
        """The report as JSON has it."""
        return {"way": self.way, "refusals": [asdict(one) for one in self.refusals]}

    @staticmethod
    def decoded(found: Any) -> CompileReport:
        """The report that JSON has; what is none raises ValueError, TypeError or KeyError."""
        refusals = [
            Refusal(one["way"], one["reason"], _decoded_span(one["span"]), one["hint"], one["is_slower"])
            for one in found["refusals"]
        ]
        if type(found["way"]) is not str or not all(type(one.reason) is str for one in refusals):
            raise TypeError("a report of other things than words")
        return CompileReport(found["way"], refusals)


def _decoded_span(found: Any) -> SourceSpan | None:
    return None if found is None else SourceSpan(**dict[str, Any](found, caller=_decoded_span(found["caller"])))


@dataclass(frozen=True)
class Fit:
    """Whether the result of an attempt fits, and why not; one with a finite `excess` is used where nothing fits."""

    reason: str | None = None
    excess: float = inf
    hint: str | None = None


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """One list of stages: what it is called, how it is run, and whether its result fits."""

    way: str
    make: Callable[[], T]
    fits: Callable[[T], Fit] = lambda made: Fit()


def first_that_fits(
    attempts: Iterable[Attempt[T]], report: CompileReport, *, is_optional: bool = False, is_slower: bool = False
) -> T | None:
    """Runs attempts in order and gives the first result that fits; where none does, the one that comes nearest.

    None where none can be used. Where the whole way `is_optional`, an error of an attempt refuses it, with all attempts
    that are left; `is_slower` says whether refusals of single attempts are fallbacks.
    """
    nearest: tuple[float, T, str] | None = None
    for attempt in attempts:
        try:
            made = attempt.make()
        except CompileError as error:
            if not is_optional or isinstance(error, InternalError):
                raise
            report.refuse(Refusal.of(attempt.way, error))
            return None
        fit = attempt.fits(made)
        if fit.reason is None:
            report.way = attempt.way
            return made
        report.refuse(Refusal(attempt.way, fit.reason, hint=fit.hint, is_slower=is_slower))
        if fit.excess < inf and (nearest is None or fit.excess < nearest[0]):
            nearest = fit.excess, made, attempt.way
    if nearest is None:
        return None
    report.way = nearest[2]
    return nearest[1]
