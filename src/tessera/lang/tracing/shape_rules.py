"""Shape rules on symbolic sizes in a trace; where a rule needs two symbols to be equal, the trace begins anew.

Sizes without a name are symbols of convenience. A program that adds two of them is right only where they are
equal; it is traced again with one symbol, or a number, for both, and its guards say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tessera.errors import SourceSpan, TesseraError, caller_span
from tessera.lang.tracing.values import current
from tessera.shapes.expr import Dim, DimLike, size


class TraceAgain(BaseException):
    """Raised where a function must be traced again with some sizes as numbers, or as others. Only `jit` catches it.

    `replaced` says for a symbol which one replaces it, or None: the number that it is in each call.
    """

    def __init__(self, replaced: Mapping[str, str | None], reason: str, span: SourceSpan | None) -> None:
        super().__init__(reason)
        self.replaced = replaced
        self.reason = reason
        self.span = span


def is_automatic(symbol: str) -> bool:
    """Whether the symbol is an automatic one: it stands for an unannotated size that changed from call to call."""
    return symbol.startswith("_")


def ruled(rule: Callable[..., Any], *shapes: Any, **options: Any) -> Any:
    """The result of a rule for symbolic shapes; where only the numbers at hand pass it, these are asked for."""
    try:
        return rule(*shapes, **{name: value for name, value in options.items() if _takes(rule, name)})
    except TesseraError as error:
        if not error.story:
            error.story = tuple(dict.fromkeys(line for one in options.get("histories", ()) for line in one.lines()))
        numbers = current().sizes.numbers
        options.pop("histories", None)
        replaced = None if numbers is None else _needed(rule, shapes, options, numbers)
        if replaced is None:
            raise
        raise TraceAgain(replaced, error.message, caller_span()) from None


def _needed(
    rule: Callable[..., Any], shapes: Any, options: Mapping[str, Any], numbers: Mapping[str, int]
) -> dict[str, str | None] | None:
    """The fewest symbols that must be others, or numbers, for a rule to say yes; None where that does not help.

    Two sizes that a user named differently are never taken for one, whatever their numbers are.
    """

    def holds(values: Mapping[str, DimLike]) -> bool:
        try:
            rule(*_replaced(shapes, values), **options)
        except TesseraError:
            return False
        return True

    known = sorted(symbol for symbol in _symbols(shapes) if symbol in numbers)
    automatic = [symbol for symbol in known if is_automatic(symbol)]
    for first in automatic:
        equal = [other for other in automatic if other != first and numbers[other] == numbers[first]]
        if equal and holds(dict.fromkeys(equal, first)):
            return dict.fromkeys(equal, first)
    needed = {symbol: numbers[symbol] for symbol in known}
    if not holds(needed):
        return None
    for symbol in known:
        without = {other: number for other, number in needed.items() if other != symbol}
        if holds(without):
            needed = without
    # Sizes of no meaning instead of the numbers: if they do as well, only symbols met each other.
    elsewhere = {symbol: number + 1_000_003 for symbol, number in needed.items()}
    if not any(is_automatic(symbol) for symbol in needed) and holds(elsewhere):
        return None
    return dict.fromkeys(needed)


def _takes(rule: Callable[..., Any], name: str) -> bool:
    return name in rule.__code__.co_varnames[: rule.__code__.co_argcount + rule.__code__.co_kwonlyargcount]


def _symbols(value: Any) -> set[str]:
    if isinstance(value, Dim):
        return set(value.symbols)
    if isinstance(value, tuple | list):
        return {symbol for item in cast("Sequence[Any]", value) for symbol in _symbols(item)}
    return set()


def _replaced(value: Any, values: Mapping[str, DimLike]) -> Any:
    if isinstance(value, Dim):
        return size(value.substitute(values))
    if isinstance(value, tuple | list):
        return tuple(_replaced(item, values) for item in cast("Sequence[Any]", value))
    return value
