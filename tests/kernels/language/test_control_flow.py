"""Checks how Python in a kernel becomes a program: loops, branches, helpers, leading axes, captures, caching."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import CompileError, Schedule, TesseraError, f32, kernel, tile

Array = np.ndarray[Any, np.dtype[Any]]
Helper = Callable[[Any, Any], Any]
X = np.arange(10, dtype=np.float32)


def run(made: Any, *args: Any, **static: Any) -> Array:
    return made(X, *args, **static).numpy()


def one(made: Any, *args: Any, **static: Any) -> float:
    """What the kernel adds to each element of X, the same for all."""
    (difference,) = set((run(made, *args, **static) - X).tolist())
    return difference


@kernel
def counting(x: Any, n: int):
    total, i, odd = 0.0, 0, False
    for _ in tile.range(n):
        total += 0.5
        i += 1
        odd = i % 2 == 1
    return tile.load(x) + total + i + tile.where(odd, 100.0, 0.0)


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_numbers_changed_in_a_loop_are_carried(n: int) -> None:
    assert one(counting, n) == 1.5 * n + 100 * (n % 2)


def test_a_number_keeps_its_kind_around_a_loop() -> None:
    @kernel
    def changing(x: Any, n: int):
        total = 0
        for _ in tile.range(n):
            total = total + 0.5
        return tile.load(x) + total

    with pytest.raises(CompileError, match="total was a position and becomes a scalar of f32"):
        changing(X, 3)


@kernel
def choosing(x: Any, n: int):
    y = tile.load(x)
    if n > 2:
        y, k = y + 1, 1
    elif n > 0:
        y, k = y + 2, 2.5
    else:
        k = 0
    return y + k


@pytest.mark.parametrize(("n", "added"), [(3, 2.0), (1, 4.5), (0, 0.0)])
def test_branches_change_tiles_and_numbers(n: int, added: float) -> None:
    assert one(choosing, n) == added


def test_a_condition_may_be_any_number() -> None:
    @kernel
    def truth(x: Any, n: int, a: float):
        k = 1.0 if n else 2.0
        if a:
            k = k + 10
        return tile.load(x) + k

    assert [one(truth, n, a) for n, a in [(0, 0.0), (7, 0.0), (0, 0.5)]] == [2, 1, 12]


def test_and_or_not_on_scalars() -> None:
    @kernel
    def logic(x: Any, n: int, *, flag: bool):
        k = 0.0
        if (n > 1 and n < 5 and flag) or not n:
            k = 1.0
        return tile.load(x) + k + (10.0 if flag and not n > 2 else 0.0)

    cases = [(n, flag) for n in (0, 1, 2, 3, 5) for flag in (True, False)]
    expected = [float((1 < n < 5 and flag) or not n) + 10 * (flag and not n > 2) for n, flag in cases]
    assert [one(logic, n, flag=flag) for n, flag in cases] == expected


class State(NamedTuple):
    total: Any
    count: Any


@kernel
def nested(x: Any, n: int, m: int):
    y, state = tile.load(x), State(tile.zeros(10), 0)
    for i in tile.range(n):
        for j in tile.range(i, m, 2):
            y = y + 1
            if j > i:
                y = y + i * 10
                state = State(state.total + y, state.count + 1)
    return y, state.total + state.count


@settings(max_examples=20)
@given(st.integers(0, 5), st.integers(0, 7))
def test_nested_loops_and_tuples(n: int, m: int) -> None:
    y, total, count = X.copy(), np.zeros_like(X), 0
    for i in range(n):
        for j in range(i, m, 2):
            y += 1
            if j > i:
                y += i * 10
                total, count = total + y, count + 1
    found = nested.with_schedule(Schedule(block=(10,)))(X, n, m)
    assert np.array_equal(found[0].numpy(), y)
    assert np.array_equal(found[1].numpy(), total + count)


def repeated(x: Any, times: Any, *, by: Helper = lambda x, i: x + i) -> Any:
    """A helper with a tile loop of its own."""
    for i in tile.range(times):
        x = by(x, i)
    return x


def logged(function: Helper) -> Helper:
    @wraps(function)
    def wrapper(x: Any, n: Any) -> Any:
        return function(x, n) + 1000

    return wrapper


@logged
def decorated(x: Any, n: Any) -> Any:
    return x + 1 if n > 2 else x + 2


class Scaler:
    def __init__(self, by: float) -> None:
        self.by = by

    def apply(self, x: Any, n: Any) -> Any:
        if n > 2:
            x = x + self.by
        return x


# Two lambdas on one line are told apart by their columns.
pair: tuple[Helper, Helper] = (lambda x, n: x + (n if n > 2 else 2)), (lambda x, n: x + (2 if n > 2 else n))


@kernel
def calling(x: Any, n: int, *, function: Helper):
    return function(tile.load(x), n)


HELPERS: list[tuple[Helper, float]] = [
    (repeated, 6.0),
    (partial(repeated, by=lambda x, i: x + 2 * i), 12.0),
    (decorated, 1001.0),
    (Scaler(5.0).apply, 5.0),
    (pair[0], 4.0),
    (pair[1], 2.0),
    (lambda x, n: repeated(x, n) if n > 3 else x, 6.0),
    (lambda x, n, k=7: x + k, 7.0),
]


@pytest.mark.parametrize(("function", "added"), HELPERS)
def test_helpers_are_ordinary_functions(function: Helper, added: float) -> None:
    assert one(calling, 4, function=function) == added


def test_functions_defined_in_a_kernel() -> None:
    @kernel
    def local(x: Any, n: int):
        def doubled(y: Any, times: int = 2) -> Any:
            for _ in tile.range(times):
                y = y + n
            return y

        choose: Callable[[Any], Any] = lambda y: doubled(y) if n > 0 else y  # noqa: E731  (a lambda is the point)
        return choose(tile.load(x))

    assert [one(local, n) for n in (3, -1)] == [6, 0]


@kernel
def returning(x: Any, *, how: str = "plain", offset: float = 1.0):
    y = tile.load(x)
    if how == "pair":
        return y, y + offset
    for step in range(10):
        if step == 3:
            break
        y = y + step
    if how == "steps":
        return y
    return y + offset


def test_static_ifs_choose_among_several_returns() -> None:
    first, second = returning(X, how="pair")
    assert np.array_equal(first.numpy(), X)
    assert np.array_equal(second.numpy(), X + 1)
    assert one(returning, how="steps") == 3
    assert one(returning, offset=5.0) == 8


def test_results_have_rows_or_rows_and_columns() -> None:
    @kernel
    def both(x: Any):
        y = tile.load(x)
        return tile.sum(y), y > 0, tile.broadcast(tile.max(y, keepdims=True), (tile.context().m, 3))

    x = np.arange(-20, 20, dtype=np.float32).reshape(2, 2, 10)
    total, positive, top = both(x)
    assert np.array_equal(total.numpy(), x.sum(-1))
    assert np.array_equal(positive.numpy(), x > 0)
    assert np.array_equal(top.numpy(), np.repeat(x.max(-1, keepdims=True), 3, -1))


@kernel
def products(q: Any, k: Any):
    return tile.dot(tile.load(q), tile.load(k).T) + tile.zeros((tile.context().m, tile.context().m))


def shared(q: Array, k: Array) -> Array:
    """q·kᵀ, k repeated along each leading axis until it has as many entries as q."""
    for axis in range(q.ndim - 2):
        k = np.repeat(k, q.shape[axis] // k.shape[axis], axis)
    return q @ np.swapaxes(k, -1, -2)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2), st.integers(1, 5))
def test_arrays_with_fewer_heads_are_shared_by_groups(b: int, kv: int, group: int, shared_b: int, d: int) -> None:
    random = np.random.default_rng(0)
    q = random.integers(-9, 9, (b * shared_b, kv * group, 4, d)).astype(np.float32)
    k = random.integers(-9, 9, (b, kv, 4, d)).astype(np.float32)
    run_products = products.with_schedule(Schedule(block=(4,)))
    assert np.array_equal(run_products(q, k).numpy(), shared(q, k))
    # With another number of leading axes, all of them count as one.
    flat_k = np.repeat(k, shared_b, 0).reshape(b * shared_b * kv, 4, d)
    assert np.array_equal(run_products(q, flat_k).numpy(), shared(q, flat_k.reshape(-1, kv, 4, d)))
    flat_q = q.reshape(-1, 4, d)
    assert np.array_equal(run_products(flat_q, flat_k).numpy(), shared(flat_q, flat_k))


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(CompileError, match="the leading sizes of q are multiples of those of k"):
        products(np.zeros((4, 8, 2), np.float32), np.zeros((3, 8, 2), np.float32))


def test_a_tile_that_moves_around_a_loop_has_no_place() -> None:
    @kernel
    def ahead(x: Any, y: Any):
        here = tile.context()
        block, total = tile.load(y, at=(0, 0), shape=(here.m, 4)), tile.zeros(here.m)
        for j in tile.range(4, y.shape[1], 4):
            total = total + tile.softmax_online(block)[2]
            block = tile.load(y, at=(0, j), shape=(here.m, 4))
        return total

    with pytest.raises(CompileError, match="where it lies along axis 1 is not known"):
        ahead(X, np.ones((10, 10), np.float32))


def test_scores_summed_over_depth_keep_their_place() -> None:
    @kernel.schedule(Schedule(block=(16, 4, 3)))
    def total(x: Any, k: Any):
        here = tile.context()
        result = tile.zeros(here.m)
        for n in tile.range(0, k.shape[0], here.n):
            scores = tile.zeros((here.m, here.n))
            for d in tile.range(0, k.shape[1], here.k):
                columns = tile.load(k, at=(n, d), shape=(here.n, here.k))
                scores = tile.dot(tile.load(x, at=(here.row_start, d), shape=(here.m, here.k)), columns.T, scores)
            _, top, weight = tile.softmax_online(scores)
            result = result + weight * tile.exp(top)
        return result

    x, k = np.ones((5, 7), np.float32), np.full((6, 7), 0.1, np.float32)
    np.testing.assert_allclose(total(x, k).numpy(), np.exp(x @ k.T).sum(-1), rtol=1e-5)


def test_functions_of_scalars() -> None:
    @kernel
    def scaled(x: Any, a: float, n: int):
        return tile.load(x) + np.float32(0) + tile.exp(a) + tile.rsqrt(n) + abs(-a) + (-n) % 3 + n // 2

    expected = math.exp(0.5) + 0.5 + 0.5 + (-4) % 3 + 2
    np.testing.assert_allclose(run(scaled, 0.5, 4), X + expected, rtol=1e-6)


def test_where_takes_scalar_conditions_and_mixed_types() -> None:
    @kernel
    def pick(x: Any, n: int):
        y = tile.load(x)
        return tile.where(n > 2, y, tile.cast(y + 1, f32)) + tile.where(y > -1, tile.cast(y * 0, f32), 5)

    assert [one(pick, n) for n in (3, 1)] == [0, 1]


# Statics, captures and instances.


def guards(made: Any, *args: Any, **static: Any) -> list[str]:
    return [str(guard) for guard in made.lower(*args, **static).guards]


@kernel
def widths(x: Any, y: Any, *, whole: bool):
    here = tile.context()
    rows = tile.load(x)
    return rows + tile.load(y) if whole else rows + tile.load(y, cols=here.d)


def test_guards_are_the_facts_that_were_asked() -> None:
    x = np.zeros((3, 4), np.float32)
    assert guards(widths, x, x, whole=False) == ["arg0.size[1] = 4"]
    assert guards(widths, x, x, whole=True) == ["arg0.size[1] = 4", "arg1.size[1] = 4"]
    assert guards(counting, X, 3) == []


def test_one_instance_per_schedule_statics_types_and_guards() -> None:
    x, y, z = (np.zeros(shape, np.float32) for shape in [(3, 4), (99, 4), (3, 5)])
    first = widths.lower(x, x, whole=False)
    assert widths.lower(y, y[::-1], whole=False) is first
    assert widths.with_schedule(Schedule()).lower(x, x, whole=False) is first
    others = [
        widths.lower(z, z, whole=False),
        widths.lower(x, x, whole=True),
        widths.lower(x.astype(np.float16), x.astype(np.float16), whole=False),
        widths.with_schedule(Schedule(block=(8, 8))).lower(x, x, whole=False),
        widths[7].lower(x, x, whole=False),
    ]
    assert len({id(instance) for instance in (first, *others)}) == 6
    assert widths[7].lower(x, x, whole=False) is others[-1]


def test_statics_must_be_hashable_and_values_static() -> None:
    with pytest.raises(CompileError, match="must be hashable"):
        widths(X, X, whole=[True])

    @kernel
    def dynamic(x: Any, n: int):
        return tile.zeros((n,))

    with pytest.raises(CompileError, match="a static integer is needed"):
        dynamic(X, 3)


_offset = 1.0


@kernel
def capturing(x: Any):
    return tile.load(x) + _offset


def test_captured_numbers_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = capturing.lower(X)
    monkeypatch.setitem(capturing.function.__globals__, "_offset", 2.0)
    assert one(capturing) == 2
    monkeypatch.setitem(capturing.function.__globals__, "_offset", 1.0)
    assert capturing.lower(X) is first
    assert one(capturing) == 1


def test_a_helper_s_captures_count_too() -> None:
    by = 3.0

    def helper(y: Any) -> Any:
        return y + by

    @kernel
    def through(x: Any):
        return helper(tile.load(x))

    assert one(through) == 3
    by = 4.0
    assert one(through) == 4


def test_mutable_captures_are_refused() -> None:
    table, weights = [1.0, 2.0], np.ones(3)

    @kernel
    def from_list(x: Any):
        return tile.load(x) + table[0]

    @kernel
    def from_array(x: Any):
        return tile.load(x) + weights

    for made, name in ((from_list, "table"), (from_array, "weights")):
        with pytest.raises(CompileError, match=f"captures {name}") as caught:
            made(X)
        assert caught.value.span is not None
        assert caught.value.span.excerpt().splitlines()[1].count("^") == len(name)


# Mistakes.


@kernel
def leaving(x: Any, n: int, *, how: str) -> Any:
    y: Any = tile.load(x)
    if how == "while":
        while True:
            if n > 1:
                break
    if how == "late":
        more: Any = True
        while more:
            more = n > 1
    if how == "return in a while":
        while n > 1:
            return y
    if how == "return":
        if n > 1:
            return y
        return y + 1
    if how == "unassigned":
        if n > 1:
            z = y
        y = tile.exp(z)  # pyright: ignore[reportPossiblyUnboundVariable]  (the mistake)
    if how == "from a loop":
        for _ in tile.range(n):
            w = y
        y = w + 1  # pyright: ignore[reportPossiblyUnboundVariable]  (the mistake)
    if how == "Python":
        y = y + int("three")
    if how == "context":
        y = y + tile.context().q
    if how == "kernel":
        y = counting(y, 3)
    if how == "axis":
        y = tile.max(y, y)
    if how == "types":
        k = y if n > 1 else "no"
        y = y + k
    if how == "number":
        return 3
    if how == "rows":
        return tile.zeros((3,))
    if how == "tuple":
        pair = (y, 1)
        for _ in tile.range(n):
            pair = (y, 1, 2)
        y = pair[0]
    return y


@pytest.mark.parametrize(
    ("how", "message", "excerpt"),
    [
        ("while", "break under a condition of the program", "n > 1"),
        ("late", "while under a condition of the program", "more"),
        ("return in a while", "while under a condition of the program", "n > 1"),
        ("return", "return under a condition of the program", "n > 1"),
        ("unassigned", "z has no value here: it is assigned only in one branch", "tile.exp(z)"),
        ("from a loop", "w has no value here: it is assigned only inside the loop", "w + 1"),
        ("Python", "ValueError: invalid literal for int()", 'int("three")'),
        ("context", "the context has no 'q'", "tile.context().q"),
        ("kernel", "counting is a kernel, called inside a kernel", "counting(y, 3)"),
        ("axis", "tile.max folds one axis", "tile.max(y, y)"),
        ("types", "in one branch and 'no' in the other", 'y if n > 1 else "no"'),
        ("number", "a kernel returns tiles, got 3", "3"),
        ("rows", "a returned tile holds this program instance's 64 rows", "tile.zeros((3,))"),
        ("tuple", "pair was a tuple of 2 and becomes", "tile.range(n)"),
    ],
)
def test_mistakes_are_told_at_their_expression(how: str, message: str, excerpt: str) -> None:
    with pytest.raises(TesseraError, match=re.escape(message)) as caught:
        leaving(X, 3, how=how)
    assert caught.value.hint
    assert caught.value.span is not None
    line, marks = caught.value.span.excerpt().splitlines()
    start = marks.index("^")
    assert line[start : start + marks.count("^")] == excerpt
