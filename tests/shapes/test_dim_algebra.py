"""The algebra of sizes: normal form, printing and reading, evaluation, substitution, division, bounds."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import ShapeError
from tessera.shapes.bounds import bounds
from tessera.shapes.expr import (
    Dim,
    ceil_div,
    constant_part,
    dim,
    element_count,
    exact_quotient,
    format_shape,
    known_multiple,
    parse_dim,
    shape_of,
    size,
)

SYMBOLS = ("B", "H", "S", "T_1")

values = st.fixed_dictionaries({name: st.integers(0, 200) for name in SYMBOLS})
constants = st.integers(-70, 70)
divisors = st.integers(1, 70)


def _expressions(*, division: bool) -> st.SearchStrategy[str]:
    """Text in our grammar, which is also Python, so that Python itself says what it means."""
    leaves = st.one_of(st.sampled_from(SYMBOLS), constants.map(lambda number: f"({number})"))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        sums = st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner)
        quotients = st.builds("({} {} {})".format, inner, st.sampled_from(["//", "%"]), divisors)
        return st.one_of(sums, st.builds("(-{})".format, inner), *([quotients] if division else []))

    return st.recursive(leaves, grow, max_leaves=6)


texts = _expressions(division=True)
dims = texts.map(parse_dim)
polynomials = _expressions(division=False).map(parse_dim)


def python_value(text: str, known: dict[str, int]) -> int:
    return eval(text, {}, known)


@given(texts, values)
def test_an_expression_means_what_python_says(text: str, known: dict[str, int]) -> None:
    assert parse_dim(text).evaluate(known) == python_value(text, known)


@given(dims)
def test_printing_reads_back_to_an_equal_value(value: Dim) -> None:
    again = parse_dim(str(value))
    assert again == value
    assert hash(again) == hash(value)
    assert str(again) == str(value)


@given(dims, values)
def test_python_reads_the_printed_form_alike(value: Dim, known: dict[str, int]) -> None:
    assert python_value(str(value), known) == value.evaluate(known)


@given(dims, dims, dims)
def test_ring_laws(a: Dim, b: Dim, c: Dim) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a * b == b * a
    assert a * (b + c) == a * b + a * c
    assert (a * b) * c == a * (b * c)
    assert a - a == 0
    assert a - b == -(b - a)
    assert a + 0 == a * 1 == a
    assert len({a + b, b + a, a - -b}) == 1


@given(dims, divisors, divisors, constants)
def test_division_laws(a: Dim, n: int, m: int, k: int) -> None:
    assert (a // n) * n + a % n == a
    assert (a * n) // n == a
    assert (a * n) % n == 0
    assert (a + k * n) // n == a // n + k
    assert (a + k * n) % n == a % n
    assert (a * m) // (n * m) == a // n
    assert a // 1 == a
    assert a % 1 == 0
    assert (a % n) // n == 0


@given(st.sampled_from(SYMBOLS), divisors, divisors, constants)
def test_nested_and_ceiling_division(name: str, n: int, m: int, k: int) -> None:
    value = dim(name)
    assert (value // n) // m == value // (n * m)
    assert (value // n + k) // m == (value + k * n) // (n * m)
    assert ceil_div(value, n) == (value + (n - 1)) // n
    if n > 2:  # for n = 2 a coefficient is its own negative modulo n
        assert ceil_div(value, n) == -(-value // n)


@given(dims, values, st.dictionaries(st.sampled_from(SYMBOLS), dims))
def test_substitution_commutes_with_evaluation(value: Dim, known: dict[str, int], changes: dict[str, Dim]) -> None:
    changed = {**known, **{name: new.evaluate(known) for name, new in changes.items()}}
    assert value.substitute(changes).evaluate(known) == value.evaluate(changed)
    assert value.substitute(known) == value.evaluate(known)


@given(dims, values)
def test_known_multiple_divides(value: Dim, known: dict[str, int]) -> None:
    multiple, number = known_multiple(value), value.evaluate(known)
    assert number % multiple == 0 if multiple else number == 0


@given(dims, values)
def test_bounds_hold_every_value(value: Dim, known: dict[str, int]) -> None:
    for intervals in (None, {"S": (known["S"], known["S"] + 5), "B": (None, 200)}):
        low, high = bounds(value, intervals)
        number = value.evaluate(known)
        assert low is None or low <= number
        assert high is None or number <= high


@given(dims, dims)
def test_exact_quotient_undoes_multiplication(a: Dim, b: Dim) -> None:
    quotient = exact_quotient(a * b, b)
    assert quotient == (None if b == 0 else a)


@given(dims, dims)
def test_an_exact_quotient_is_exact(a: Dim, b: Dim) -> None:
    quotient = exact_quotient(a, b)
    assert quotient is None or quotient * b == a


@given(polynomials, polynomials, st.lists(values, min_size=8, max_size=8))
def test_different_polynomials_are_unequal_and_equal_ones_equal(a: Dim, b: Dim, points: list[dict[str, int]]) -> None:
    if any(a.evaluate(point) != b.evaluate(point) for point in points):
        assert a != b
    assert sum((Dim({monomial: number}) for monomial, number in reversed(a.terms)), start=dim(0)) == a


@given(dims)
def test_constants_are_those_without_symbols(value: Dim) -> None:
    assert (value.constant is None) == bool(value.symbols)
    assert constant_part(value) == constant_part(value - 7) + 7
    if value.constant is not None:
        assert value == value.constant
        assert hash(value) == hash(value.constant)
        assert size(value) == value.constant
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) is value


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("S+S", "2*S"),
        ("H*B", "B*H"),
        ("1 + S", "S + 1"),
        ("S//64", "S//64"),
        ("S % 64", "S%64"),
        ("(2*S)%64", "2*(S%32)"),
        ("-S//64", "-((S + 63)//64)"),
        ("B*(S//64)", "B*(S//64)"),
        ("-(S%64)", "-(S%64)"),
        ("S//4//2", "S//8"),
        ("(S + T)*(S - T)", "S*S - T*T"),
        ("S//64*64 + S%64", "S"),
        ("3*B*(S%64) - 1", "3*B*(S%64) - 1"),
        ("(64*T + S)//64", "S//64 + T"),
        ("0*S", "0"),
    ],
)
def test_printed_form(text: str, printed: str) -> None:
    assert str(parse_dim(text)) == printed


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("", "expected a number, a name or '(', found the end", 0),
        ("B**2", "expected a number, a name or '(', found '*'", 2),
        ("2 S", "expected an operator, found 'S'", 2),
        ("(S + 1", "expected ')', found the end", 6),
        ("S @ 2", "expected an operator, found '@'", 2),
        ("S//T", "expected a positive integer constant after //, found 'T'", 3),
        ("S % 0", "expected a positive integer constant after %, found '0'", 4),
        ("S +  ", "expected a number, a name or '(', found the end", 3),
    ],
)
def test_text_that_cannot_be_read_is_shown_with_a_caret(text: str, problem: str, column: int) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_dim(text)
    first, shown, caret = caught.value.message.split("\n")
    assert first == f"cannot read a size: {problem}"
    assert shown == f"    {text}"
    assert caret == f"    {' ' * column}^"
    assert caught.value.hint


def test_mixed_operands() -> None:
    assert 2 * dim("S") + "T" - 1 == parse_dim("2*S + T - 1")
    assert "S" + dim("T") == parse_dim("S + T")
    assert 10 - dim("S") == parse_dim("10 - S")
    assert dim(130) // 64 == 2
    assert 130 // dim(64) == 2
    assert 130 % dim(64) == 2
    assert dim("S") != "S"


def test_affine() -> None:
    assert parse_dim("2*S + T - 1").is_affine
    assert dim(3).is_affine
    assert not parse_dim("B*H").is_affine
    assert not parse_dim("S//64").is_affine


def test_division_by_a_symbol_or_by_nothing_is_refused() -> None:
    for divisor in ("T", 0, -2):
        with pytest.raises(ShapeError, match="positive integer constant as the divisor"):
            _ = dim("S") // divisor
        with pytest.raises(ShapeError, match="positive integer constant as the divisor"):
            _ = dim("S") % divisor


def test_evaluation_names_the_missing_symbol() -> None:
    with pytest.raises(ShapeError, match="cannot evaluate B\\*H: H has no value") as caught:
        parse_dim("B*H").evaluate({"B": 2})
    assert caught.value.story == ("known: B = 2",)


def test_shapes_hold_ints_where_they_can() -> None:
    shape = shape_of(["B", "S - S + 2*S", dim(64), 3])
    assert shape == (dim("B"), parse_dim("2*S"), 64, 3)
    assert [type(item) for item in shape] == [Dim, Dim, int, int]
    assert format_shape(shape) == "[B, 2*S, 64, 3]"
    assert format_shape(()) == "[]"
    assert element_count(shape) == parse_dim("384*B*S")
    assert type(element_count((2, 3))) is int


@pytest.mark.parametrize("wrong", [True, 2.5, None])
def test_what_is_no_size_is_refused(wrong: object) -> None:
    with pytest.raises(ShapeError, match="expected a size"):
        dim(wrong)  # pyright: ignore[reportArgumentType]  # the check at run time is what is tested
    with pytest.raises(ShapeError, match="axis 1 has the negative size -1"):
        shape_of(["B", -1])
