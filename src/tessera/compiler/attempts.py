"""Attempts: lists of stages are tried in order, the first that fits is taken, and what was refused is kept.

This is the one place that decides between ways to compile a kernel: warp-specialized or portable, one plan or the next,
more in registers or less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from tessera.errors import CompileError, InternalError
from tessera.transforms.core.compile_report import CompileReport, Refusal

T = TypeVar("T")


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
