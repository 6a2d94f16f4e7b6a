"""Sizes that a function refuses as symbols and takes as numbers: they become numbers in its program.

A size that changes from call to call is a symbol, and not everything that is right for numbers can be shown for
symbols: that a slice lies inside of an array, that a reshape comes out even, that Python code takes an `int`. Such a
function gets programs with numbers for the sizes that it needs so, one for each size, as if these never changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from tessera import knobs
from tessera.errors import TesseraError
from tessera.lang.calls.variants import ObservedSizes
from tessera.lang.tracing.functions import TracedFunction

_MOST_TRIED = 4
"""Of more symbols all become numbers: tracing takes its time."""


def narrowed(
    name: str,
    attempt: Callable[[ObservedSizes], TracedFunction],
    symbols: Sequence[str],
    seen: ObservedSizes,
    refusal: Exception,
) -> TracedFunction:
    """The function traced with as few of the symbols as numbers as will do; `seen` remembers which.

    Where numbers do not help, the function's error for them is raised: it is that of a call without symbols.
    """
    needed = list(symbols)
    trial, traced = _tried(attempt, seen, needed)
    for symbol in symbols if 1 < len(symbols) <= _MOST_TRIED else ():
        fewer = [other for other in needed if other != symbol]
        try:
            trial, traced = _tried(attempt, seen, fewer)
        except Exception:  # of the user's code as well: without this number the function cannot be traced
            continue
        needed = fewer
    seen.replaced = trial.replaced
    message = refusal.message if isinstance(refusal, TesseraError) else f"{type(refusal).__name__}: {refusal}"
    seen.narrowed = f"{', '.join(needed)} as numbers: for sizes in general, {message}"
    if "recompiles" in knobs.logs.value:
        logging.getLogger("tessera.recompiles").warning("%s is traced with %s", name, seen.narrowed)
    return traced


def _tried(
    attempt: Callable[[ObservedSizes], TracedFunction], seen: ObservedSizes, symbols: Sequence[str]
) -> tuple[ObservedSizes, TracedFunction]:
    trial = replace(seen, replaced=seen.replaced | dict.fromkeys(symbols))
    return trial, attempt(trial)
