"""Bounds of expressions: the interval of an expression's value when its symbols are sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tessera.shapes.expr import Atom, DimLike, Remainder, dim, with_remainders

Interval: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value; None where there is no bound."""

ANY_SIZE: Interval = (0, None)


def bounds(value: DimLike, known: Mapping[str, Interval] | None = None) -> Interval:
    """An interval that holds `value` while every symbol lies in its own, which is "at least 0" by default."""
    symbols = known or {}
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in with_remainders(dim(value)):
        term: Interval = (1, 1)
        for atom in monomial:
            term = _times(term, _atom_bounds(atom, symbols))
        least, greatest = term if coefficient > 0 else (term[1], term[0])
        low = None if low is None or least is None else low + coefficient * least
        high = None if high is None or greatest is None else high + coefficient * greatest
    return low, high


def at_least(value: DimLike, least: int, known: Mapping[str, Interval] | None = None) -> bool:
    """Whether `value` is known to be no less."""
    low = bounds(value, known)[0]
    return low is not None and low >= least


def _atom_bounds(atom: Atom, known: Mapping[str, Interval]) -> Interval:
    if isinstance(atom, str):
        return known.get(atom, ANY_SIZE)
    if isinstance(atom, Remainder):
        return 0, atom.divisor - 1
    low, high = bounds(atom.numerator, known)
    return None if low is None else low // atom.divisor, None if high is None else high // atom.divisor


def _times(left: Interval, right: Interval) -> Interval:
    """The product of two intervals; sound for all, exact for those of sizes, which are at least 0."""
    if left == (1, 1):
        return right
    if left[0] is None or right[0] is None or left[0] < 0 or right[0] < 0:
        return None, None
    high = None if left[1] is None or right[1] is None else left[1] * right[1]
    return left[0] * right[0], high
