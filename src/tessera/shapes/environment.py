"""Knowledge about symbols: equations solved as far as they can be, constraints, and how each came about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from tessera.errors import ShapeError, SourceSpan
from tessera.shapes.bounds import ANY_SIZE, Interval, bounds
from tessera.shapes.expr import Dim, DimLike, constant_part, dim, known_multiple


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from, such as "argument 'x', axis 1", and the source that says so."""

    description: str
    span: SourceSpan | None = None

    def __str__(self) -> str:
        return self.description if self.span is None else f"{self.description} ({self.span})"


@dataclass(frozen=True, slots=True)
class DivisibleBy:
    """`dim` is a multiple of `n`."""

    dim: DimLike
    n: int

    @property
    def interval(self) -> Interval:
        return None, None

    def holds(self, value: Dim, intervals: Mapping[str, Interval]) -> bool | None:
        """Whether this is true of `value`, or None where that cannot be told yet."""
        del intervals
        constant = constant_part(value)
        varying = known_multiple(value - constant)
        if constant % gcd(varying, self.n):
            return False
        return True if varying % self.n == 0 else None

    def __str__(self) -> str:
        return f"{self.dim} is divisible by {self.n}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`dim` >= `n`."""

    dim: DimLike
    n: int

    @property
    def interval(self) -> Interval:
        return self.n, None

    def holds(self, value: Dim, intervals: Mapping[str, Interval]) -> bool | None:
        """Whether this is true of `value`, or None where that cannot be told yet."""
        low, high = bounds(value, intervals)
        if high is not None and high < self.n:
            return False
        return True if low is not None and low >= self.n else None

    def __str__(self) -> str:
        return f"{self.dim} is at least {self.n}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """`dim` <= `n`."""

    dim: DimLike
    n: int

    @property
    def interval(self) -> Interval:
        return None, self.n

    def holds(self, value: Dim, intervals: Mapping[str, Interval]) -> bool | None:
        """Whether this is true of `value`, or None where that cannot be told yet."""
        return AtLeast(-value, -self.n).holds(-value, intervals)

    def __str__(self) -> str:
        return f"{self.dim} is at most {self.n}"


@dataclass(frozen=True, slots=True)
class Equal:
    """`a` == `b`."""

    a: DimLike
    b: DimLike

    def __str__(self) -> str:
        return f"{self.a} equals {self.b}"


Constraint: TypeAlias = DivisibleBy | AtLeast | AtMost | Equal


@dataclass(frozen=True, slots=True)
class _Equation:
    """`expected` == `given`, not solved yet."""

    expected: Dim
    given: Dim
    origin: Origin

    @property
    def symbols(self) -> frozenset[str]:
        return self.expected.symbols | self.given.symbols


@dataclass(slots=True)
class _State:
    """All that an environment knows, as one object so that a step that fails can be undone."""

    values: dict[str, Dim]
    equations: list[_Equation]
    constraints: list[tuple[DivisibleBy | AtLeast | AtMost, Origin]]
    events: list[tuple[frozenset[str], str]]

    def copy(self) -> _State:
        return _State(dict(self.values), list(self.equations), list(self.constraints), list(self.events))


class ShapeEnvironment:
    """Symbols and what they stand for. A step that contradicts what is known raises and changes nothing."""

    def __init__(self) -> None:
        self._state = _State({}, [], [], [])

    def bind(self, symbol: str, value: DimLike, origin: Origin) -> None:
        """`symbol` stands for `value`."""
        self.unify(symbol, value, origin)

    def unify(self, a: DimLike, b: DimLike, origin: Origin) -> None:
        """Adds the equation of the expected `a` and the given `b`: solved now, or kept and tried again later."""
        equation = _Equation(dim(a), dim(b), origin)
        if self.resolve(equation.expected) == self.resolve(equation.given):
            return

        def step() -> None:
            self._state.equations.append(equation)
            self._settle()
            if equation in self._state.equations:
                text = f"{equation.expected} = {equation.given} was asked by {origin} and waits for more"
                self._state.events.append((equation.symbols, text))

        self._undo_on_error(step)

    def require(self, constraint: Constraint, origin: Origin) -> None:
        """`constraint` holds: checked now if it can be decided, and again whenever more is known."""
        if isinstance(constraint, Equal):
            self.unify(constraint.a, constraint.b, origin)
            return

        def step() -> None:
            self._state.constraints.append((constraint, origin))
            self.note(dim(constraint.dim).symbols, f"{constraint}, required", origin)
            self._settle()

        self._undo_on_error(step)

    def note(self, symbols: str | Iterable[str], text: str, origin: Origin) -> None:
        """Adds a step to the story of `symbols`."""
        about = frozenset([symbols] if isinstance(symbols, str) else symbols)
        self._state.events.append((about, f"{text} by {origin}"))

    def resolve(self, value: DimLike) -> Dim:
        """`value` with every known symbol replaced."""
        return dim(value).substitute(self._state.values)

    def story(self, *symbols: str) -> tuple[str, ...]:
        """The history of `symbols`, in order."""
        return tuple(text for about, text in self._state.events if not about.isdisjoint(symbols))

    @property
    def sizes(self) -> dict[str, int]:
        """The symbols known as integers."""
        values = self._state.values
        return {name: known for name, value in values.items() if (known := value.constant) is not None}

    @property
    def intervals(self) -> dict[str, Interval]:
        """Bounds of symbols without a value, from constraints and from sizes being at least 0."""
        found: dict[str, Interval] = {}
        facts = [(value, ANY_SIZE) for value in self._state.values.values()]
        facts += [(self.resolve(fact.dim), fact.interval) for fact, _ in self._state.constraints]
        for value, (low, high) in facts:
            if value.constant is not None:
                continue
            offset = constant_part(value)
            symbol = str(value - offset)
            if symbol.isidentifier():
                least, most = found.get(symbol, ANY_SIZE)
                least = least if low is None else max(least or 0, low - offset)
                most = most if high is None else min(high - offset, high - offset if most is None else most)
                found[symbol] = least, most
        return found

    def _undo_on_error(self, step: Callable[[], None]) -> None:
        before = self._state.copy()
        try:
            step()
        except ShapeError:
            self._state = before
            raise

    def _settle(self) -> None:
        """Solves equations until none gets further, then checks what must hold."""
        while self._solve_one():
            pass
        intervals = self.intervals
        for constraint, origin in reversed(self._state.constraints):
            value = self.resolve(constraint.dim)
            if constraint.holds(value, intervals) is False:
                raise ShapeError(
                    f"{origin.description}: expected that {constraint}{_known_as(constraint.dim, value, ', but ')}",
                    story=self.story(*dim(constraint.dim).symbols),
                    hint="change the size, or the requirement",
                )

    def _solve_one(self) -> bool:
        """Removes the first equation that is true or can be solved; whether there was one."""
        intervals = self.intervals
        for index, equation in enumerate(self._state.equations):
            residual = self.resolve(equation.expected) - self.resolve(equation.given)
            if residual == 0:
                del self._state.equations[index]
                return True
            reason = _impossible(residual, intervals)
            if reason is not None:
                raise self._contradiction(equation, reason)
            solution = _solve(residual, equation.expected.symbols)
            if solution is not None:
                del self._state.equations[index]
                self._assign(*solution, equation)
                return True
        return False

    def _assign(self, symbol: str, value: Dim, equation: _Equation) -> None:
        self.note({symbol} | value.symbols, f"{symbol} was bound to {value}", equation.origin)
        known = self._state.values
        changed = {name: new for name, old in known.items() if (new := old.substitute({symbol: value})) != old}
        for name, new in changed.items():
            self._state.events.append((frozenset([name]), f"{name} became {new} with {symbol} = {value}"))
            high = bounds(new)[1]
            if high is not None and high < 0:
                raise self._contradiction(equation, f"{name} would be {new}", name)
        known |= {symbol: value, **changed}

    def _contradiction(self, equation: _Equation, reason: str, *symbols: str) -> ShapeError:
        expected, given = equation.expected, equation.given
        return ShapeError(
            f"{equation.origin.description}: expected {expected}{_known_as(expected, self.resolve(expected))}, "
            f"got {given}{_known_as(given, self.resolve(given))}{reason and f': {reason}'}",
            story=self.story(*equation.symbols, *symbols),
            hint="one symbol is one size everywhere; use another name where sizes may differ"
            if equation.symbols
            else "the size is fixed: pass one that is equal",
        )


def _known_as(value: DimLike, resolved: Dim, joint: str = "") -> str:
    """Text that adds what `value` is known to be, where that says more."""
    if dim(value) == resolved:
        return ""
    return f"{joint}{value} = {resolved}" if joint else f" = {resolved}"


def _impossible(residual: Dim, intervals: Mapping[str, Interval]) -> str | None:
    """Why no sizes make `residual` zero (empty where that is plain), or None if some may."""
    if residual.constant is not None:
        return ""
    constant = constant_part(residual)
    common = known_multiple(residual - constant)
    if constant % common:
        return f"{abs(constant)} is not divisible by {common}"
    low, high = bounds(residual, intervals)
    if (low is None or low <= 0) and (high is None or high >= 0):
        return None
    symbol, value = _solve(residual, frozenset()) or ("", residual)
    if value.constant is None:
        return "no sizes make them equal"
    least, most = intervals.get(symbol, ANY_SIZE)
    if value.constant < 0:
        return f"{symbol} would be {value}"
    too_large = most is not None and value.constant > most
    return f"{symbol} is at most {most}" if too_large else f"{symbol} is at least {least}"


def _solve(residual: Dim, preferred: frozenset[str]) -> tuple[str, Dim] | None:
    """A symbol and what it must be for `residual` to be zero, without losing any integer solution.

    That is a symbol that occurs once, alone, with coefficient ±1 after common factors are divided out.
    """
    content = known_multiple(residual)
    reduced = Dim({monomial: coefficient // content for monomial, coefficient in residual.terms})
    candidates = [
        (symbol not in preferred, symbol, coefficient)
        for monomial, coefficient in reduced.terms
        if coefficient in (1, -1) and len(monomial) == 1 and isinstance(symbol := monomial[0], str)
        if symbol not in (reduced - Dim({monomial: coefficient})).symbols
    ]
    if not candidates:
        return None
    _, symbol, coefficient = min(candidates)
    alone = Dim({(symbol,): coefficient})
    return symbol, (alone - reduced) * coefficient
