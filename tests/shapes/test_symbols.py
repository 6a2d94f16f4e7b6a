"""Symbols and sizes found quickly: the same as by evaluating and solving, and nothing where that is not plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.shapes.expr import dim, evaluator, shape_of
from tessera.shapes.symbols import Symbols

TEXTS = ["S", "T", "2*S + 1", "(S + 15)//16", "S%16", "S*T - 3", "-S + 4*T", "(S + T)//3*3", "S*S", "7"]


@given(st.lists(st.sampled_from(TEXTS), max_size=5), st.integers(0, 99), st.integers(0, 99))
def test_evaluators_agree_with_expressions(texts: list[str], s: int, t: int) -> None:
    symbols = {"S": s, "T": t}
    parts = [dim(text) for text in texts]
    expected = tuple(part.evaluate(symbols) for part in parts)
    assert evaluator(tuple(parts))(symbols) == expected


def test_symbols_that_are_not_known_are_said() -> None:
    with pytest.raises(KeyError, match="T"):
        evaluator(shape_of(["S", "2*T"]))({"S": 3})


def test_symbols_are_found_where_they_stand_alone() -> None:
    symbols = Symbols([shape_of(["2*S", 4]), None, shape_of(["S", "T"]), shape_of(["S + T"])])
    assert symbols.quick([(6, 4), None, (3, 5), (8,)]) == {"S": 3, "T": 5}
    assert symbols.quick([(6, 4), None, (3, 5)]) == {"S": 3, "T": 5}


@pytest.mark.parametrize(
    "shapes",
    [
        [(7, 4), None, (3, 5), (8,)],  # 7 is not twice 3
        [(6, 5), None, (3, 5), (8,)],
        [(6, 4), None, (3,), (8,)],  # another rank
        [(6, 4), None, (3, 5, 1), (8,)],
        [(6, 4), None, None, (8,)],
        [(6, 4)],  # S is to be solved for
    ],
)
def test_what_is_not_plain_is_left_to_others(shapes: list[tuple[int, ...] | None]) -> None:
    symbols = Symbols([shape_of(["2*S", 4]), None, shape_of(["S", "T"]), shape_of(["S + T"])])
    assert symbols.quick(shapes) is None
