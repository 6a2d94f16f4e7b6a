"""Symbolic sizes: `Dim`, an integer polynomial over named symbols in normal form, and shapes made of them.

Expressions that are equal as polynomials are equal as values: `S + S == 2*S`. Floor division by a positive
constant is an opaque atom (`S//64`); a remainder is written with it (`S%64` is `S - 64*(S//64)`, and printed
short again), so `S//64*64 + S%64 == S` holds as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import TypeAlias, cast

from tessera.errors import ShapeError


class Quotient:
    """The atom `numerator // divisor`; its text identifies it."""

    __slots__ = ("divisor", "numerator", "text")

    operator = "//"

    def __init__(self, numerator: Dim, divisor: int) -> None:
        self.numerator = numerator
        self.divisor = divisor
        inner = str(numerator)
        self.text = f"{inner if inner.isidentifier() else f'({inner})'}{self.operator}{divisor}"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Remainder(Quotient):
    """`numerator % divisor`: read into a polynomial for printing and bounds, never in its normal form."""

    __slots__ = ()

    operator = "%"


Atom: TypeAlias = "str | Quotient"
# Factors sorted by their text and repeated for powers; the empty monomial is 1.
Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
DimLike: TypeAlias = "int | str | Dim"


class Dim:
    """A size known as an expression. Immutable; compare with `==`, use as a dictionary key."""

    __slots__ = ("_hash", "_text", "terms")

    terms: Terms
    _hash: int
    _text: str | None

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
        if len(kept) > 1:
            kept.sort(key=_graded)
        self.terms = tuple(kept)
        constant = self.constant
        self._hash = hash(self.terms) if constant is None else hash(constant)
        self._text = None

    @property
    def constant(self) -> int | None:
        """The value when no symbol is left, else None."""
        if not self.terms:
            return 0
        monomial, coefficient = self.terms[0]
        return None if monomial else coefficient

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(
            name
            for monomial, _ in self.terms
            for atom in monomial
            for name in ((atom,) if isinstance(atom, str) else atom.numerator.symbols)
        )

    @property
    def is_affine(self) -> bool:
        """Whether this is a sum of symbols times integers, plus an integer."""
        return all(not monomial or (len(monomial) == 1 and isinstance(monomial[0], str)) for monomial, _ in self.terms)

    def substitute(self, values: Mapping[str, DimLike]) -> Dim:
        """The same expression with the given symbols replaced; others stay."""
        if self.symbols.isdisjoint(values):
            return self
        result = ZERO
        for monomial, coefficient in self.terms:
            term = dim(coefficient)
            for atom in monomial:
                if isinstance(atom, str):
                    term *= values.get(atom, atom)
                else:
                    term *= atom.numerator.substitute(values) // atom.divisor
            result += term
        return result

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer this is under `values`, which must name every symbol."""
        total = 0
        for monomial, coefficient in self.terms:
            factors = [
                self._value(atom, values) if isinstance(atom, str) else atom.numerator.evaluate(values) // atom.divisor
                for atom in monomial
            ]
            total += coefficient * prod(factors)
        return total

    def _value(self, symbol: str, values: Mapping[str, int]) -> int:
        if symbol in values:
            return values[symbol]
        known = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise ShapeError(
            f"cannot evaluate {self}: {symbol} has no value",
            story=[f"known: {known or 'nothing'}"],
            hint=f"give a value for {symbol}",
        )

    def __add__(self, other: DimLike) -> Dim:
        total = dict(self.terms)
        for monomial, coefficient in dim(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Dim(total)

    def __neg__(self) -> Dim:
        return Dim({monomial: -coefficient for monomial, coefficient in self.terms})

    def __sub__(self, other: DimLike) -> Dim:
        return self + -dim(other)

    def __rsub__(self, other: DimLike) -> Dim:
        return dim(other) - self

    def __mul__(self, other: DimLike) -> Dim:
        total: dict[Monomial, int] = {}
        others = dim(other).terms
        for left, factor in self.terms:
            for right, coefficient in others:
                product = _multiply(left, right)
                total[product] = total.get(product, 0) + factor * coefficient
        return Dim(total)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> Dim:
        return _floor_divide(self, _divisor(self, "//", other))

    def __rfloordiv__(self, other: DimLike) -> Dim:
        return dim(other) // self

    def __mod__(self, other: DimLike) -> Dim:
        divisor = _divisor(self, "%", other)
        return self - _floor_divide(self, divisor) * divisor

    def __rmod__(self, other: DimLike) -> Dim:
        return dim(other) % self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            return self is other or (self._hash == other._hash and self.terms == other.terms)
        return self.constant == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _format_terms(with_remainders(self))
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return parse_dim, (str(self),)

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Dim:
        return self


Size: TypeAlias = int | Dim
"""One size of a shape: an int where it is known, else a Dim that is not constant."""

Shape: TypeAlias = tuple[Size, ...]


def _graded(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    """Sort key: higher degree first, then alphabetical; products keep this order, as division needs."""
    return -len(term[0]), tuple(map(str, term[0]))


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    return tuple(sorted(left + right, key=str))


ZERO = Dim({})


def dim(value: DimLike) -> Dim:
    """`value` as a Dim: an integer, text such as "2*S + 1", or a Dim itself."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, str):
        return parse_dim(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(
            f"expected a size, got {value!r} of type {type(value).__name__}",
            hint="a size is an integer, a symbol such as 'S', or an expression such as '2*S + 1'",
        )
    return Dim({(): value.__index__()})


def size(value: DimLike) -> Size:
    """`value` as an element of a shape: an int where it is constant, else a Dim."""
    if type(value) is int:
        return value
    lifted = dim(value)
    constant = lifted.constant
    return lifted if constant is None else constant


def shape_of(items: Iterable[DimLike]) -> Shape:
    """A shape from integers, text and Dims; a negative size is an error."""
    shape = tuple([size(item) for item in items])
    for axis, item in enumerate(shape):
        if isinstance(item, int) and item < 0:
            raise ShapeError(
                f"axis {axis} has the negative size {item}", shapes=[format_shape(shape)], hint="sizes are at least 0"
            )
    return shape


def format_shape(shape: Sequence[Size]) -> str:
    """Text such as "[B, 2*S, 64]"."""
    return f"[{', '.join(map(str, shape))}]"


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def hinted(found: Size, hints: Mapping[str, int]) -> Size:
    """About how large a size is, by hints for its symbols; itself where they do not say."""
    return found if isinstance(found, int) or not found.symbols <= hints.keys() else found.evaluate(hints)


@lru_cache(maxsize=4096)
def evaluator(shape: Shape) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """A quick function from what symbols stand for to the sizes of a shape; KeyError where one is not known."""
    parts = [NAME.sub(lambda found: f"symbols[{found[0]!r}]", str(part)) for part in shape]
    return eval(f"lambda symbols: ({''.join(f'{part}, ' for part in parts)})", {})


def element_count(shape: Sequence[Size]) -> Size:
    """The product of the sizes."""
    return size(prod(cast(Sequence[int], shape)))


def ceil_div(value: DimLike, divisor: int) -> Dim:
    """`value / divisor` rounded up."""
    lifted = dim(value)
    return (lifted + (divisor - 1)) // divisor


def known_multiple(value: DimLike) -> int:
    """The largest integer known to divide `value` whatever its symbols are; 0 for zero itself."""
    return gcd(*(coefficient for _, coefficient in dim(value).terms))


def constant_part(value: DimLike) -> int:
    """The term without symbols."""
    terms = dim(value).terms
    return 0 if not terms or terms[-1][0] else terms[-1][1]


def exact_quotient(value: DimLike, divisor: DimLike) -> Dim | None:
    """The polynomial q with q * divisor == value, or None where there is none."""
    rest, divisor = dim(value), dim(divisor)
    if not divisor.terms:
        return None
    lead, lead_coefficient = divisor.terms[0]
    quotient = ZERO
    while rest.terms:
        monomial, coefficient = rest.terms[0]
        factor = _without(monomial, lead)
        if factor is None or coefficient % lead_coefficient:
            return None
        step = Dim({factor: coefficient // lead_coefficient})
        quotient += step
        rest -= step * divisor
    return quotient


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _divisor(value: Dim, operator: str, divisor: DimLike) -> int:
    constant = dim(divisor).constant
    if constant is None or constant <= 0:
        raise ShapeError(
            f"cannot form {value} {operator} {divisor}: expected a positive integer constant as the divisor",
            hint="divide by a constant; to split an axis, declare it as a product such as 'B*H'",
        )
    return constant


def _floor_divide(value: Dim, divisor: int) -> Dim:
    """Floor division in normal form: what is surely whole leaves the atom, and the atom's sign is fixed."""
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in value.terms:
        left = coefficient % divisor
        if monomial and 2 * left > divisor:
            left -= divisor
        whole[monomial], rest[monomial] = (coefficient - left) // divisor, left
    outside = Dim(whole)
    offset = rest.pop((), 0)
    # floor((g*x + c) / (g*n)) == floor((x + floor(c/g)) / n)
    common = gcd(divisor, *rest.values())
    divisor //= common
    inside = Dim({monomial: left // common for monomial, left in rest.items()})
    if not inside.terms:
        return outside
    lead = inside.terms[0][1]
    inside += offset // common
    # floor((floor(x/a) + y) / b) == floor((x + a*y) / (a*b))
    for monomial, coefficient in inside.terms:
        if coefficient == 1 and len(monomial) == 1 and isinstance(nested := monomial[0], Quotient):
            beside = inside - Dim({monomial: 1})
            return outside + _floor_divide(nested.numerator + beside * nested.divisor, divisor * nested.divisor)
    # floor(-x / n) == -floor((x + n - 1) / n), so that -(-S//64) and (S + 63)//64 are the same value
    if lead < 0:
        return outside - _floor_divide(divisor - 1 - inside, divisor)
    return outside + Dim({(Quotient(inside, divisor),): 1})


def with_remainders(value: Dim) -> Terms:
    """The terms of `value` with `p - n*(p//n)` read as `p % n` wherever that leaves fewer terms."""
    terms = value.terms
    for monomial, coefficient in value.terms:
        for atom in dict.fromkeys(monomial):
            if isinstance(atom, str) or coefficient % atom.divisor:
                continue
            beside = list(monomial)
            beside.remove(atom)
            factor = Dim({tuple(beside): -coefficient // atom.divisor})
            remainder = Dim({(Remainder(atom.numerator, atom.divisor),): 1})
            candidate = Dim(dict(terms)) - Dim({monomial: coefficient}) + factor * remainder - factor * atom.numerator
            if len(candidate.terms) < len(terms):
                terms = candidate.terms
                break
    return terms


def _format_terms(terms: Terms) -> str:
    text = ""
    for monomial, coefficient in terms:
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        factors = [str(atom) if isinstance(atom, str) else f"({atom})" for atom in monomial]
        if abs(coefficient) != 1 or not monomial:
            factors.insert(0, str(abs(coefficient)))
        elif len(monomial) == 1 and sign != "-":
            factors = [str(monomial[0])]
        text += sign + "*".join(factors)
    return text or "0"


_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<operator>//|[-+*%()]))")


@lru_cache(maxsize=4096)
def parse_dim(text: str) -> Dim:
    """Reads integers, names, + - * // % and parentheses, with Python's precedence."""
    reader = _Reader(text)
    value = reader.sum()
    if reader.kind != "end":
        raise reader.refuse("expected an operator")
    return value


class _Reader:
    """Recursive descent over one expression; `kind`, `token` and `start` are those of the next token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.advance()

    def advance(self) -> None:
        found = _TOKEN.match(self.text, self.end)
        if found is not None:
            self.kind = cast(str, found.lastgroup)
            self.token = found[self.kind]
            self.start, self.end = found.span(self.kind)
        else:
            rest = self.text[self.end :].lstrip()
            self.kind, self.token = ("unknown", rest[0]) if rest else ("end", "")
            self.start = len(self.text) - len(rest) if rest else len(self.text.rstrip())

    def accept(self, *operators: str) -> str | None:
        """Consumes the next token if it is one of `operators`."""
        if self.kind != "operator" or self.token not in operators:
            return None
        token = self.token
        self.advance()
        return token

    def refuse(self, expected: str) -> ShapeError:
        found = repr(self.token) if self.token else "the end"
        return ShapeError(
            f"cannot read a size: {expected}, found {found}\n    {self.text}\n    {' ' * self.start}^",
            hint="a size is made of integers, names, + - * // % and parentheses, such as '2*S + 1' or 'B*H'",
        )

    def sum(self) -> Dim:
        value = self.product()
        while operator := self.accept("+", "-"):
            value = value + self.product() if operator == "+" else value - self.product()
        return value

    def product(self) -> Dim:
        value = self.factor()
        while operator := self.accept("*", "//", "%"):
            start = self.start
            right = self.factor()
            if operator == "*":
                value *= right
            elif (right.constant or 0) <= 0:
                self.start, self.token = start, str(right)
                raise self.refuse(f"expected a positive integer constant after {operator}")
            else:
                value = value // right if operator == "//" else value % right
        return value

    def factor(self) -> Dim:
        kind, token = self.kind, self.token
        if kind in ("number", "name"):
            self.advance()
            return Dim({(): int(token)} if kind == "number" else {(token,): 1})
        if self.accept("-"):
            return -self.factor()
        if self.accept("("):
            value = self.sum()
            if not self.accept(")"):
                raise self.refuse("expected ')'")
            return value
        raise self.refuse("expected a number, a name or '('")
