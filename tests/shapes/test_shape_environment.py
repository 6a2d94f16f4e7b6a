"""Unification, constraints and stories: what is accepted holds, what has a solution is never refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera.errors import ShapeError, SourceSpan
from tessera.shapes.environment import AtLeast, AtMost, Constraint, DivisibleBy, Equal, Origin, ShapeEnvironment
from tessera.shapes.expr import Dim, dim, parse_dim

HERE = Origin("here")
SYMBOLS: tuple[str, ...] = ("B", "H", "S")

expressions = st.sampled_from(
    [
        *("B", "H", "S", "B*H", "B*H*S", "2*S", "3*S", "S + 1", "B + H", "B - H", "2*B + 3*H", "4*B + 6*H"),
        *("S//2", "S%3", "B*S + H", "S*S", "(S + 3)//4", "5", "0"),
    ]
).map(parse_dim)
solutions = st.fixed_dictionaries({name: st.integers(0, 9) for name in SYMBOLS})
small_numbers = st.integers(-2, 14)


def constraint_holds(constraint: Constraint, values: dict[str, int]) -> bool:
    if isinstance(constraint, Equal):
        return dim(constraint.a).evaluate(values) == dim(constraint.b).evaluate(values)
    value = dim(constraint.dim).evaluate(values)
    if isinstance(constraint, DivisibleBy):
        return value % constraint.n == 0
    return value >= constraint.n if isinstance(constraint, AtLeast) else value <= constraint.n


constraints: st.SearchStrategy[Constraint] = st.one_of(
    st.builds(DivisibleBy, expressions, st.integers(1, 6)),
    st.builds(AtLeast, expressions, small_numbers),
    st.builds(AtMost, expressions, small_numbers),
    st.builds(Equal, expressions, expressions),
    st.builds(Equal, expressions, small_numbers),
)


@given(solutions, st.lists(st.tuples(expressions, expressions, st.booleans()), max_size=6))
def test_equations_with_a_solution_are_never_refused(
    solution: dict[str, int], sides: list[tuple[Dim, Dim, bool]]
) -> None:
    environment = ShapeEnvironment()
    for left, right, symbolic in sides:
        gap = left.evaluate(solution) - right.evaluate(solution)
        environment.unify(left, right + gap if symbolic else left.evaluate(solution), HERE)
    for name in SYMBOLS:
        assert environment.resolve(name).evaluate(solution) == solution[name]
    for name, value in solution.items():
        environment.bind(name, value, HERE)
    assert all(environment.sizes[name] == solution[name] for name in environment.sizes)


@given(solutions, st.lists(constraints, max_size=8))
def test_constraints_with_a_solution_are_never_refused(solution: dict[str, int], asked: list[Constraint]) -> None:
    environment = ShapeEnvironment()
    for constraint in asked:
        if constraint_holds(constraint, solution):
            environment.require(constraint, HERE)
    for name, (low, high) in environment.intervals.items():
        assert low is None or low <= solution[name]
        assert high is None or solution[name] <= high


@settings(max_examples=60)
@given(st.lists(constraints, min_size=1, max_size=4))
def test_what_is_refused_has_no_solution(asked: list[Constraint]) -> None:
    environment = ShapeEnvironment()
    accepted: list[Constraint] = []
    for constraint in asked:
        before = environment.sizes, environment.intervals, environment.story(*SYMBOLS)
        try:
            environment.require(constraint, HERE)
            accepted.append(constraint)
        except ShapeError:
            tried = [*accepted, constraint]
            for point in product(range(8), repeat=len(SYMBOLS)):
                values = dict(zip(SYMBOLS, point, strict=True))
                assert not all(constraint_holds(each, values) for each in tried)
            assert (environment.sizes, environment.intervals, environment.story(*SYMBOLS)) == before


@given(st.lists(constraints, max_size=4), solutions, st.permutations(SYMBOLS))
def test_what_is_accepted_holds(asked: list[Constraint], values: dict[str, int], order: list[str]) -> None:
    environment = ShapeEnvironment()
    try:
        for constraint in asked:
            environment.require(constraint, HERE)
        for name in order:
            environment.bind(name, values[name], HERE)
    except ShapeError:
        return
    assert environment.sizes == values
    assert all(constraint_holds(constraint, values) for constraint in asked)


def test_products_are_solved_once_the_other_factors_are_known() -> None:
    environment = ShapeEnvironment()
    environment.unify("B*H", 32, HERE)
    assert environment.sizes == {}
    environment.bind("B", 4, HERE)
    assert environment.sizes == {"B": 4, "H": 8}


def test_equations_wait_until_they_can_be_solved() -> None:
    environment = ShapeEnvironment()
    environment.unify("2*S", "3*T", HERE)
    environment.unify("S//64", "N", HERE)
    assert environment.resolve("N") == parse_dim("S//64")
    environment.bind("T", 86, HERE)
    assert environment.sizes == {"T": 86, "S": 129, "N": 2}


def refusal(*steps: Callable[[ShapeEnvironment], None]) -> ShapeError:
    environment = ShapeEnvironment()
    for step in steps[:-1]:
        step(environment)
    with pytest.raises(ShapeError) as caught:
        steps[-1](environment)
    return caught.value


def unify(a: str, b: str | int, where: str) -> Callable[[ShapeEnvironment], None]:
    return lambda environment: environment.unify(a, b, Origin(where))


def require(constraint: Constraint, where: str) -> Callable[[ShapeEnvironment], None]:
    return lambda environment: environment.require(constraint, Origin(where))


@pytest.mark.parametrize(
    ("steps", "message", "story"),
    [
        ([unify("S", 128, "q"), unify("S", 64, "v")], "v: expected S = 128, got 64", ["S was bound to 128 by q"]),
        (
            [unify("B*H", 30, "x"), unify("B", 4, "y")],
            "x: expected B*H = 4*H, got 30: 30 is not divisible by 4",
            ["B*H = 30 was asked by x and waits for more", "B was bound to 4 by y"],
        ),
        (
            [unify("S", "2*T", "x"), unify("T", 3, "y"), unify("S", 8, "z")],
            "z: expected S = 6, got 8",
            ["S was bound to 2*T by x", "S became 6 with T = 3"],
        ),
        ([unify("S + 5", 3, "x")], "x: expected S + 5, got 3: S would be -2", []),
        ([unify("B*H + 1", 0, "x")], "x: expected B*H + 1, got 0: no sizes make them equal", []),
        ([unify("4*B + 6*H", 9, "x")], "x: expected 4*B + 6*H, got 9: 9 is not divisible by 2", []),
        (
            [unify("S", "T - 4", "x"), unify("T", 2, "y")],
            "y: expected T, got 2: T is at least 4",
            ["S was bound to T - 4 by x"],
        ),
        (
            [require(AtMost("S", 8), "x"), unify("S", 9, "y")],
            "y: expected S, got 9: S is at most 8",
            ["S is at most 8, required by x"],
        ),
        (
            [unify("S", "T - U", "x"), unify("T", 1, "y"), unify("U", 3, "z")],
            "z: expected U, got 3: S would be -2",
            [
                "S was bound to T - U by x",
                "S became -U + 1 with T = 1",
                "U was bound to 3 by z",
                "S became -2 with U = 3",
            ],
        ),
        (
            [require(DivisibleBy("S", 64), "block"), unify("S", 100, "x")],
            "block: expected that S is divisible by 64, but S = 100",
            ["S is divisible by 64, required by block", "S was bound to 100 by x"],
        ),
        (
            [unify("S", "64*T + 32", "x"), require(DivisibleBy("S", 64), "block")],
            "block: expected that S is divisible by 64, but S = 64*T + 32",
            ["S was bound to 64*T + 32 by x", "S is divisible by 64, required by block"],
        ),
        (
            [require(AtLeast("S", 5), "x"), require(AtMost("S", 3), "y")],
            "y: expected that S is at most 3",
            ["S is at least 5, required by x", "S is at most 3, required by y"],
        ),
    ],
)
def test_contradictions_tell_their_story(
    steps: list[Callable[[ShapeEnvironment], None]], message: str, story: list[str]
) -> None:
    error = refusal(*steps)
    assert error.message == message
    assert list(error.story) == story
    assert error.hint


def test_origins_carry_their_source_and_notes_join_the_story() -> None:
    environment = ShapeEnvironment()
    environment.bind("S", 100, Origin("argument 'x', axis 1", SourceSpan("model.py", 9, 17)))
    environment.note(["S", "P"], "S was padded to P", Origin("pad", SourceSpan("model.py", 11, 8)))
    assert environment.story("S") == (
        "S was bound to 100 by argument 'x', axis 1 (model.py:9:18)",
        "S was padded to P by pad (model.py:11:9)",
    )
    assert environment.story("P") == ("S was padded to P by pad (model.py:11:9)",)
    assert environment.story("Q") == ()


def test_constraints_tighten_the_intervals_that_rules_use() -> None:
    environment = ShapeEnvironment()
    environment.require(AtLeast("S", 1), HERE)
    environment.require(AtMost("S + 2", 10), HERE)
    environment.unify("N", "T - 3", HERE)
    assert environment.intervals == {"S": (1, 8), "T": (3, None)}
