"""Shape rules in a trace: where a rule needs two sizes to be equal that only happen to be, the trace begins anew.

Sizes that nobody named are symbols of convenience. A program that adds two of them is right only where they are
equal; it is traced again with one symbol, or a number, in place of both, and its guards say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tessera.errors import SourceSpan, TesseraError, caller_span
from tessera.lang.tracing import current
from tessera.shapes.expr import Dim, dim


class TraceAgain(BaseException):
    """Not an error: the function must be traced again with these symbols replaced. No user code should catch it."""

    def __init__(self, replaced: dict[str, Dim], reason: str, span: SourceSpan | None) -> None:
        super().__init__(reason)
        self.replaced = replaced
        self.reason = reason
        self.span = span


def is_automatic(symbol: str) -> bool:
    """Whether nobody named the symbol: it stands for an unannotated size that changed from call to call."""
    return symbol.startswith("_")


def ruled(rule: Callable[..., Any], *shapes: Any, **options: Any) -> Any:
    """What a rule says about symbolic shapes; where it says no, and yes for the numbers at hand, they are asked."""
    try:
        return rule(*shapes, **{name: value for name, value in options.items() if _takes(rule, name)})
    except TesseraError as error:
        if not error.story:
            error.story = tuple(dict.fromkeys(line for one in options.get("histories", ()) for line in one.lines()))
        numbers = current().sizes.numbers
        if numbers is None:
            raise
        free = sorted(symbol for symbol in _symbols(shapes) if is_automatic(symbol) and symbol in numbers)
        if not free:
            raise
        try:
            options.pop("histories", None)
            rule(*_with_numbers(shapes, {symbol: numbers[symbol] for symbol in free}), **options)
        except TesseraError:
            raise error from None
        raise TraceAgain(_fewest(shapes, free, numbers), error.message, caller_span()) from None


def _takes(rule: Callable[..., Any], name: str) -> bool:
    return name in rule.__code__.co_varnames[: rule.__code__.co_argcount + rule.__code__.co_kwonlyargcount]


def _symbols(value: Any) -> set[str]:
    if isinstance(value, Dim):
        return set(value.symbols)
    if isinstance(value, tuple | list):
        return {symbol for item in cast("Sequence[Any]", value) for symbol in _symbols(item)}
    return set()


def _with_numbers(value: Any, numbers: dict[str, int]) -> Any:
    if isinstance(value, Dim):
        found = value.substitute(numbers)
        constant = found.constant
        return found if constant is None else constant
    if isinstance(value, tuple | list):
        return [_with_numbers(item, numbers) for item in cast("Sequence[Any]", value)]
    return value


def _fewest(shapes: Any, free: Sequence[str], numbers: Mapping[str, int]) -> dict[str, Dim]:
    """One symbol in place of another where two of equal size stand alone; else numbers for all that are involved."""
    sizes = {numbers[symbol] for symbol in free}
    if len(free) > 1 and len(sizes) == 1:
        first, *others = free
        return {other: dim(first) for other in others}
    return {symbol: dim(numbers[symbol]) for symbol in free}
