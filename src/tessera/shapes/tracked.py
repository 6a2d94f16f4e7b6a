"""Numbers that remember how they came about, so that what was worked out for some sizes can be done again for others.

A `Trail` begins with numbers that are given. Computing with them leaves Python code on it: what was computed,
and what was asked about them, with the answer. The code of a trail does the same for other numbers, as long as all
answers are the same; else it returns None, and the caller computes everything again. A number that leaves the
trail, as an index or a key, counts as a question for its value: then the code serves this one, which is never wrong.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from tessera.errors import TesseraError

_SIGNS: dict[str, Callable[[Any, Any], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda left, right: left // right,
    "%": operator.mod,
}
_QUESTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _arithmetic(sign: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Python's operators `number ∘ other` and `other ∘ number`."""
    return (
        lambda number, other: number.computed(sign, number, other),
        lambda number, other: number.computed(sign, other, number),
    )


def _question(sign: str) -> Callable[[Any, Any], Any]:
    """Python's comparison `number ∘ other`."""
    return lambda number, other: number.asked(sign, other)


class Tracked:
    """A whole number with a name in the code of a trail."""

    __slots__ = ("text", "trail", "value")

    def __init__(self, trail: Trail, text: str, value: int) -> None:
        self.trail = trail
        self.text = text
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.text}: {self.value}>"

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        if not _is_number(left) or not _is_number(right):
            return NotImplemented
        if sign in "+*" and left.__class__ is not Tracked:
            left, right = right, left
        if right.__class__ is not Tracked:
            if right == (1 if sign in ("*", "//") else 0 if sign in "+-" else None):
                return left
            if right == 0 and sign == "*":
                return 0
        value = _SIGNS[sign](plain(left), plain(right))
        return self.trail.number(f"{_text(left)} {sign} {_text(right)}", value)

    def asked(self, sign: str, other: Any) -> Any:
        if other is self:
            return sign in ("==", "<=", ">=")
        if not _is_number(other):
            return NotImplemented
        answer = _QUESTIONS[sign](self.value, plain(other))
        self.trail.ask(f"{self.text} {sign} {_text(other)}", answer)
        return answer

    __add__, __radd__ = _arithmetic("+")
    __sub__, __rsub__ = _arithmetic("-")
    __mul__, __rmul__ = _arithmetic("*")
    __floordiv__, __rfloordiv__ = _arithmetic("//")
    __mod__, __rmod__ = _arithmetic("%")

    def __neg__(self) -> Any:
        return self.computed("-", 0, self)

    def __pos__(self) -> Tracked:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    __eq__, __ne__ = _question("=="), _question("!=")
    __lt__, __le__ = _question("<"), _question("<=")
    __gt__, __ge__ = _question(">"), _question(">=")

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        self.trail.ask(f"{self.text} == {self.value}", True)
        return self.value

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.__index__())


class LostError(Exception):
    """Something was worked out for tracked numbers that no code can do again for others."""


class Made:
    """An object that depends on tracked numbers: an expression in the code of a trail."""

    __slots__ = ("text", "trail")

    def __init__(self, trail: Trail, text: str) -> None:
        self.trail = trail
        self.text = text


class Trail:
    """Code that numbers left, in order. Nothing but the numbers that are given changes from one use to the next."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self._lines: list[tuple[str | None, str]] = []
        self._numbers: dict[str, Tracked] = {}
        self._asked: set[str] = set()
        self._scope: dict[str, Any] = {"__name__": __name__}
        self._names: dict[int, str] = {}
        self._made: dict[str, Made] = {}

    def give(self, value: int) -> Any:
        """A number that each use of the code is given."""
        self.given.append(f"g{len(self.given)}")
        return Tracked(self, self.given[-1], value)

    def number(self, text: str, value: int) -> Tracked:
        """The value of an expression: the same object for the same expression."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = Tracked(self, f"t{len(self._lines)}", value)
            self._lines.append((found.text, text))
        return found

    def ask(self, text: str, answer: bool) -> None:
        """From here on, the code serves numbers for which this question has this answer."""
        if text not in self._asked:
            self._asked.add(text)
            self._lines.append((None, f"if {'not ' if answer else ''}({text}): return None"))

    def made(self, function: Callable[..., Any], *given: Any) -> Made:
        """The result of a function; the code calls it, not this method, and once for the same arguments."""
        text = f"{self.text(function)}({', '.join(map(self.text, given))})"
        found = self._made.get(text)
        if found is None:
            found = self._made[text] = Made(self, f"t{len(self._lines)}")
            self._lines.append((found.text, text))
        return found

    def text(self, value: Any) -> str:
        """An object in the code: tracked ones by name, and so the parts of tuples; others are the same for all uses."""
        if isinstance(value, Tracked | Made):
            return value.text
        if trail_of(value) is not None:
            assert value.__class__ is tuple, "of what holds tracked numbers, plain tuples are written into code"
            return f"({''.join(f'{self.text(one)}, ' for one in value)})"
        if value is None or value.__class__ in (int, bool):
            return repr(value)
        name = self._names.setdefault(id(value), f"o{len(self._names)}")
        self._scope[name] = value  # it stays alive here, and its number with it
        return name

    def function(self, result: str) -> Callable[..., Any]:
        """The code as a function of the numbers that are given; values that are not used are left out."""
        words = _Words()
        words.add(result)
        kept: list[str] = []
        for name, text in reversed(self._lines):
            if name is None or name in words:
                words.add(text)
                kept.append(text if name is None else f"{name} = {text}")
        body = "\n    ".join([*reversed(kept), f"return {result}"])
        code = f"def again({', '.join(self.given)}):\n    {body}\n"
        exec(code, self._scope)
        self._scope["again"].text = code
        return self._scope["again"]


class _Words(set[str]):
    """The names that occur in texts."""

    def add(self, text: str) -> None:
        for sign in "(),.[]":
            text = text.replace(sign, " ")
        self.update(text.split())


class Again:
    """Code for the same work on other numbers: of several trails, if these have other answers to some question.

    Tracking takes several times as long as the work itself, so it is done every second time that no code serves: much
    is done once only, and some numbers, such as 1, are a case of their own.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._codes: tuple[Callable[..., Any], ...] = ()
        self._missed = False

    def found(self, numbers: Sequence[int]) -> Any:
        """The result of the work for numbers, if some code computes it; else None."""
        for code in self._codes:
            found = code(*numbers)
            if found is not None:
                return found
        return None

    def tracked(self, numbers: Sequence[int], work: Callable[[Trail, list[Any]], Made | None]) -> Any:
        """Does the work on tracked numbers, which leaves code, and gives what it gives; None if it is not the time.

        Where `work` finds that there cannot be code it gives None, and is not asked again. What is wrong with numbers
        is for the work on plain ones to say.
        """
        self._missed = not self._missed
        if self._missed or len(self._codes) >= self.most:
            return None
        trail = Trail()
        try:
            made = work(trail, [trail.give(number) for number in numbers])
        except (TesseraError, TypeError, ValueError, ArithmeticError):
            return None
        if made is None:
            self.most = 0
            return None
        code = trail.function(made.text)
        self._codes = (*self._codes, code)
        return code(*numbers)


def _is_number(value: Any) -> bool:
    return value.__class__ is Tracked or isinstance(value, int)


def _text(value: Any) -> str:
    return value.text if value.__class__ is Tracked else str(int(value)) if value >= 0 else f"({value})"


def is_tracked(value: Any) -> bool:
    return value.__class__ is Tracked


def plain(value: Any) -> int:
    """The value of a number, without a question on the trail: for callers that keep the number itself, too."""
    return value.value if value.__class__ is Tracked else value


def trail_of(*values: Any) -> Trail | None:
    """The trail of what is tracked among these, or in tuples and lists of them."""
    for value in values:
        if isinstance(value, Tracked | Made):
            return value.trail
        if isinstance(value, tuple | list):
            found = trail_of(*cast("Sequence[Any]", value))
            if found is not None:
                return found
    return None


def made(function: Callable[..., Any], *given: Any) -> Any:
    """Calls a function now or, where an argument is tracked, when the code of the trail runs."""
    trail = trail_of(*given)
    return function(*given) if trail is None else trail.made(function, *given)


def counted(function: Callable[..., int], *given: Any) -> Any:
    """The number that a function gives, whatever it asks: it is called anew when the code of a trail runs."""
    trail = trail_of(*given)
    if trail is None:
        return function(*given)
    text = f"{trail.text(function)}({', '.join(map(trail.text, given))})"
    return trail.number(text, function(*map(plain, given)))
