"""Numbers that remember how they came about: their code does the same for others, or says that it does not."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import ShapeError
from tessera.shapes.tracked import Again, Made, Trail, counted, made, plain, trail_of

Work = Callable[..., tuple[int, ...]]


def code_of(work: Work, *numbers: int) -> Callable[..., tuple[int, ...] | None]:
    trail = Trail()
    results = work(*[trail.give(number) for number in numbers])
    assert tuple(map(plain, results)) == work(*numbers)
    return trail.function(trail.text(results))


def rounded(size: Any) -> Any:
    return -(-size // 64) * 64


def packed(first: Any, second: Any, third: Any) -> tuple[Any, ...]:
    """Three arrays one behind the other, the largest first; small ones are left out."""
    sizes = sorted((rounded(size) for size in (first, second, third) if size > 3), reverse=True)
    offsets = [sum(sizes[:index]) for index in range(len(sizes))]
    return (*offsets, math.prod(sizes), max(sizes, default=0), sum(size % 128 == 0 for size in sizes))


SIZES = st.tuples(*[st.integers(0, 300)] * 3)


@given(SIZES, st.lists(SIZES, max_size=20))
def test_code_does_the_same_or_nothing(first: tuple[int, ...], others: list[tuple[int, ...]]) -> None:
    code = code_of(packed, *first)
    assert code(*first) == packed(*first)
    for numbers in others:
        assert code(*numbers) in (None, packed(*numbers))


def test_other_answers_are_noticed() -> None:
    def work(size: Any) -> tuple[Any, ...]:
        return (size * 2 if size % 8 == 0 else size,)

    code = code_of(work, 16)
    assert code(24) == (48,)
    assert code(25) is None


def _index(size: Any) -> tuple[Any, ...]:
    return (operator.index(size),)


def _key(size: Any) -> tuple[Any, ...]:
    return ({3: 7}[size],)


def _whole(size: Any) -> tuple[Any, ...]:
    return (int(size),)


@pytest.mark.parametrize("work", [_index, _key, _whole])
def test_numbers_that_leave_are_asked_for(work: Work) -> None:
    code = code_of(work, 3)
    assert code(3) == work(3)
    assert code(4) is None


def test_the_same_expression_is_worked_out_once() -> None:
    def work(a: Any, b: Any) -> tuple[Any, ...]:
        return a * b + 1, b * 2, a * b + 1, a * 1, b + 0

    code: Any = code_of(work, 5, 6)
    assert code(2, 3) == (7, 6, 7, 2, 3)
    assert code.text.count("g0 * g1") == 1
    assert "* 1" not in code.text


def test_values_that_are_not_used_are_left_out() -> None:
    def work(size: Any) -> tuple[Any, ...]:
        size * 17  # pyright: ignore[reportUnusedExpression]
        return (size + 1,)

    code: Any = code_of(work, 5)
    assert "17" not in code.text


def test_functions_are_called_by_the_code() -> None:
    trail = Trail()
    size = trail.give(5)
    found = made(range, size + 1)
    assert isinstance(found, Made)
    assert made(range, 3) == range(3)
    assert counted(min, size, 7) == 5
    code = trail.function(trail.text((found, counted(min, size, 7), counted(max, 2, 3))))
    assert [code(5), code(9)] == [(range(6), 5, 3), None]


def test_objects_that_hold_numbers_are_not_overlooked() -> None:
    size = Trail().give(5)
    assert trail_of((1, (2, [size]))) is size.trail
    assert trail_of((1, "text")) is None
    with pytest.raises(AssertionError):
        size.trail.text([size])


def _alone(one: int) -> list[int]:
    return [one]


def test_every_second_time_leaves_code() -> None:
    again, tracked = Again(2), list[int]()

    def work(trail: Trail, numbers: Sequence[Any]) -> Made:
        (size,) = numbers
        tracked.append(plain(size))
        return trail.made(_alone, size * (3 if size % 2 else 5))

    def done(number: int) -> Any:
        return again.found([number]) or again.tracked([number], work)

    assert [done(number) for number in (2, 4, 6, 3, 5, 7)] == [None, [20], [30], None, [15], [21]]
    assert tracked == [4, 5]


def test_errors_are_for_plain_numbers() -> None:
    again = Again(2)

    def work(trail: Trail, numbers: Sequence[Any]) -> Made:
        if numbers[0] > 5:
            raise ShapeError(f"{numbers[0]:,} is too large")
        return trail.made(str, numbers[0])

    assert again.tracked([9], work) is None
    assert again.tracked([9], work) is None
    assert again.tracked([3], work) is None
    assert again.tracked([3], work) == "3"
    assert again.found([9]) is None
