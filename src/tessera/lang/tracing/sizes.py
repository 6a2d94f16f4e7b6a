"""Sizes as traced functions see them: expressions that answer Python's questions, and remember what was asked."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tessera.errors import ShapeError, SourceSpan, caller_span
from tessera.shapes.bounds import Interval, bounds
from tessera.shapes.expr import Dim, DimLike, Size, dim, size

Comparison: TypeAlias = Callable[[int, int], bool]

_QUESTIONS: dict[str, Comparison] = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class SizeGuard:
    """A question of Python code about a size, and the answer that its trace is right for."""

    value: Dim
    question: str
    number: int
    answer: bool
    span: SourceSpan | None = None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return _QUESTIONS[self.question](self.value.evaluate(sizes), self.number) is self.answer

    def __str__(self) -> str:
        sign = self.question if self.answer else _OPPOSITES[self.question]
        return f"{self.value} {sign} {self.number}"


class Sizes:
    """The symbols of one trace: the numbers they have in the call at hand, and what was asked about them.

    Without numbers (a check before anything runs), only what holds for all sizes has an answer.
    """

    def __init__(self, numbers: Mapping[str, int] | None, intervals: Mapping[str, Interval]) -> None:
        self.numbers = numbers
        self.intervals = dict(intervals)
        self.guards: dict[tuple[Dim, str, int], SizeGuard] = {}

    def ask(self, value: Dim, question: str, number: int) -> bool:
        """The answer for all sizes where there is one, else for the sizes at hand, which the trace then depends on."""
        low, high = bounds(value, self.intervals)
        known = _decided(question, number, low, high)
        if known is not None:
            return known
        key = (value, question, number)
        if key not in self.guards:
            answer = _QUESTIONS[question](self._number(value), number)
            self.guards[key] = SizeGuard(value, question, number, answer, caller_span())
        return self.guards[key].answer

    def number(self, value: Dim) -> int:
        """The size as a number, on which the trace then depends."""
        found = self._number(value)
        self.ask(value, "==", found)
        return found

    def _number(self, value: Dim) -> int:
        if self.numbers is None or not value.symbols <= self.numbers.keys():
            raise ShapeError(
                f"the size {value} is asked for as a number, and it is only known as an expression here",
                hint="compute with the size as it is, or check the function for numbers instead",
            )
        return value.evaluate(self.numbers)


def _decided(question: str, number: int, low: int | None, high: int | None) -> bool | None:
    """The answer to a question by bounds; None where they leave it open."""
    if question in ("==", "!="):
        if low is not None and low == high:
            return (low == number) is (question == "==")
        if (low is not None and low > number) or (high is not None and high < number):
            return question == "!="
        return None
    most = number - 1 if question == "<" else number
    if high is not None and high <= most:
        return True
    return False if low is not None and low > most else None


def _arithmetic(compute: Callable[[Dim, DimLike], Dim]) -> tuple[Any, Any]:
    """Python's operators `size ∘ other` and `other ∘ size`."""

    def forward(self: TracedSize, other: DimLike) -> Any:
        return self.wrapped(compute(plain(self), other)) if _is_size(other) else NotImplemented

    def reflected(self: TracedSize, other: DimLike) -> Any:
        return self.wrapped(compute(plain(other), self)) if _is_size(other) else NotImplemented

    return forward, reflected


def _is_size(value: object) -> bool:
    """Whether arithmetic with a value gives a size: with a tensor it gives a tensor, which knows how."""
    return isinstance(value, int | Dim | np.integer)


def _comparison(question: str) -> Any:
    """Python's comparison `size ∘ other`."""

    def compare(self: TracedSize, other: object) -> bool:
        return self.compare(question, other)

    return compare


class TracedSize(Dim):
    """A size in a trace. Arithmetic keeps it an expression; comparing it or counting with it asks for its number."""

    __slots__ = ("sizes",)

    sizes: Sizes

    @staticmethod
    def of(value: Dim, sizes: Sizes) -> TracedSize:
        made = TracedSize(dict(value.terms))
        made.sizes = sizes
        return made

    def wrapped(self, value: Dim) -> Any:
        found = size(value)
        return found if isinstance(found, int) else TracedSize.of(found, self.sizes)

    __add__, __radd__ = _arithmetic(lambda left, right: left + plain(right))
    __sub__, __rsub__ = _arithmetic(lambda left, right: left - plain(right))
    __mul__, __rmul__ = _arithmetic(lambda left, right: left * plain(right))
    __floordiv__, __rfloordiv__ = _arithmetic(lambda left, right: left // _divisor(right))
    __mod__, __rmod__ = _arithmetic(lambda left, right: left % _divisor(right))

    def __neg__(self) -> Any:
        return self.wrapped(-plain(self))

    def __truediv__(self, other: float) -> float:
        return int(self) / other

    def __rtruediv__(self, other: float) -> float:
        return other / int(self)

    def __pow__(self, other: float) -> float:
        return int(self) ** other

    def __rpow__(self, other: float) -> float:
        return other ** int(self)

    def compare(self, question: str, other: object) -> bool:
        if not isinstance(other, int | Dim):
            return NotImplemented
        difference = plain(self) - plain(other)
        constant = difference.constant
        if constant is not None:
            return _QUESTIONS[question](constant, 0)
        if isinstance(other, int):
            return self.sizes.ask(plain(self), question, other)
        return self.sizes.ask(difference, question, 0)

    __eq__, __ne__ = _comparison("=="), _comparison("!=")
    __lt__, __le__ = _comparison("<"), _comparison("<=")

    def __gt__(self, other: object) -> bool:
        found = self.compare("<=", other)
        return found if found is NotImplemented else not found

    def __ge__(self, other: object) -> bool:
        found = self.compare("<", other)
        return found if found is NotImplemented else not found

    def __hash__(self) -> int:
        """That of its number, which it is equal to: a dictionary with numbers for keys finds what Python would find."""
        return hash(self.sizes.number(plain(self)))

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        return self.sizes.number(plain(self))

    def __int__(self) -> int:
        return self.sizes.number(plain(self))

    def __float__(self) -> float:
        return float(self.sizes.number(plain(self)))


def _divisor(value: DimLike) -> DimLike:
    """Expressions are divided by numbers only; a symbol as divisor is asked for its number."""
    if isinstance(value, TracedSize) and value.constant is None:
        return int(value)
    return value


def plain(value: DimLike) -> Dim:
    """The expression itself, which asks nothing."""
    return Dim(dict(value.terms)) if type(value) is TracedSize else dim(value)


def plain_size(value: DimLike) -> Size:
    """One size of a shape that rules may look at: an int, or an expression that asks nothing."""
    return value if type(value) is int else size(plain(value))


def plain_shape(items: Iterable[DimLike]) -> tuple[Size, ...]:
    return tuple([plain_size(item) for item in items])


def traced_shape(shape: Sequence[Size], sizes: Sizes) -> tuple[Any, ...]:
    """A shape as user code sees it."""
    return tuple([item if type(item) is int else TracedSize.of(dim(item), sizes) for item in shape])
