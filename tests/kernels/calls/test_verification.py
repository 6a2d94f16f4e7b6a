"""`verify.numerics`: the specification's snippet, what passes unaltered, what is caught and where, what is proven."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from operator import add, itemgetter, methodcaller, sub
from types import SimpleNamespace
from typing import Any

import library as lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import (
    CompileError,
    DtypeError,
    GuardError,
    Schedule,
    Tile,
    bf16,
    f16,
    f32,
    i32,
    kernel,
    knobs,
    tile,
    verify,
)
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.verification import Verified

Array = np.ndarray[Any, np.dtype[Any]]
few = settings(max_examples=15, deadline=None)
some = settings(max_examples=40, deadline=None)
d = 64


# As the specification has it.
@verify.numerics(stable=True, bounded=[-100, 100])
@kernel.auto
def attention_score(q: Tile, k: Tile) -> Tile:
    scores = tile.dot(q, k.T) / sqrt(d)
    # Verification ensures no overflow/underflow
    return scores  # noqa: RET504  (the specification's lines)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def told(error: type[Exception], run: Callable[[], object]) -> str:
    with pytest.raises(error) as found:
        run()
    return str(found.value)


def test_the_specified_snippet_runs() -> None:
    q, k = normal(2, 70, d), normal(2, 33, d)
    found = attention_score(q, k).numpy()
    np.testing.assert_allclose(found, q @ k.swapaxes(-1, -2) / 8, rtol=1e-5, atol=1e-5)
    message = told(GuardError, lambda: attention_score(q * 1000, k))
    assert message.startswith("result[0, 0, 0] is ")
    assert ", outside of the bounds [-100, 100], in program instance [0, 0]" in message
    assert "return scores" in message
    assert "dot makes -inf" in told(DtypeError, lambda: attention_score(q * 1e30, k * 1e30))
    assert "dot underflows" in told(DtypeError, lambda: attention_score(q * 1e-30, k * 1e-30))


# It is a kernel still.


BELOW_TEN = verify.numerics(bounded=[-9, 9])
SIXTEEN = kernel.schedule(Schedule(block=(16,)))
TUNED = kernel.autotune(space={"BM": [16]})


@pytest.mark.parametrize(
    "decorators",
    [
        [kernel, BELOW_TEN],
        [BELOW_TEN],
        [BELOW_TEN, kernel],
        [kernel.auto, BELOW_TEN, kernel.auto],
        [SIXTEEN, BELOW_TEN],
        [BELOW_TEN, SIXTEEN],
        [TUNED, BELOW_TEN],
        [BELOW_TEN, TUNED],
        [kernel, BELOW_TEN, methodcaller("with_schedule", Schedule(block=(16,)))],
        [kernel, BELOW_TEN, itemgetter(1)],
    ],
)
def test_every_order_of_decorators_verifies(decorators: list[Callable[[Any], Any]]) -> None:
    def double(x: Tile) -> Tile:
        return x * 2.0

    made: Any = double
    for decorate in decorators:
        made = decorate(made)
    assert isinstance(made, Kernel)
    x = np.full((10, 3), 4, np.float32)
    assert (made(x).numpy() == 8).all()
    x[7, 2] = 5
    assert told(GuardError, lambda: made(x)).startswith(
        "result[7, 2] is 10.0, outside of the bounds [-9, 9], in program instance [0]"
    )


def test_schedules_grids_and_programs_stay() -> None:
    plain = kernel.autotune(space={"BM": [16, 32]})(attention_score.function)
    verified = verify.numerics(plain)
    assert (verified.schedule, verified.space, verified.tuning) == (plain.schedule, plain.space, plain.tuning)
    q, k = normal(5, d), normal(6, d)
    assert verified.lower(q, k) is plain.lower(q, k)
    scheduled = verified.with_schedule(Schedule(block=(4,)))
    assert isinstance(scheduled, Verified)
    assert scheduled[2].given_grid == (2,)
    assert scheduled[2].promises == verified.promises
    assert "verified to be stable and bounded to [-100, 100]" in repr(attention_score)
    # Both keep their forms under a grid to themselves.
    assert not isinstance(plain[3], Verified)
    assert isinstance(verify.numerics(plain)[3], Verified)
    assert not isinstance(plain[3], Verified)
    tuned = TUNED(attention_score)
    assert tuned.schedule.m == 16
    assert tuned.space is not None
    assert len(tuned.space) == 1


# What is right passes, and comes out the same.

RIGHT: dict[str, Callable[[Array, Array, Array], tuple[Any, tuple[Any, ...]]]] = {
    "scores": lambda q, k, v: (attention_score, (q, k)),
    "softmax": lambda q, k, v: (lib.softmax, (q,)),
    "rmsnorm": lambda q, k, v: (lib.rmsnorm, (q, v[0])),
    "layernorm": lambda q, k, v: (lib.layernorm, (q, v[0], v[-1])),
    "attention": lambda q, k, v: (lib.attention, (q, k, v)),
    "window attention": lambda q, k, v: (lib.window_attention, (q, k, v, 3)),
    "sigmoid attention": lambda q, k, v: (lib.sigmoid_attention, (q, k, v, -1.0)),
    "logsumexp": lambda q, k, v: (lib.logsumexp, (q,)),
}


@few
@given(
    st.sampled_from(sorted(RIGHT)),
    st.integers(1, 50),
    st.integers(1, 50),
    st.sampled_from([f32, f16, bf16]),
    st.sampled_from([(16, 16), (7, 33), (64, 64)]),
    st.integers(0, 99),
)
def test_right_kernels_pass_and_come_out_the_same(
    name: str, rows: int, columns: int, dtype: Any, block: tuple[int, int], seed: int
) -> None:
    q = normal(rows, 8, seed=seed, dtype=dtype.storage)
    k, v = (normal(columns, 8, seed=seed + other, dtype=dtype.storage) for other in (1, 2))
    made, arguments = RIGHT[name](q, k, v)
    plain = Kernel(made.function, Schedule(block=block))
    verified = verify.numerics(stable=True, bounded=[-1000, 1000])(plain)
    with checking(Checks.all()):
        found = verified(*arguments)
    with knobs.interpret.using(True):
        expected = plain(*arguments)
    assert found.numpy().tobytes() == expected.numpy().tobytes()
    assert found.dtype is expected.dtype


# What is wrong is caught, where it is.


@verify.numerics
@kernel.schedule(Schedule(block=(4,)))
def stable(x: Tile, y: Tile, *, function: Callable[[Any, Any], Any]) -> Tile:
    return function(x, y)


def planted(data: st.DataObject, good: float, bad: float) -> tuple[Array, tuple[int, int]]:
    rows, columns = data.draw(st.integers(1, 11)), data.draw(st.integers(1, 5))
    place = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    x = np.full((rows, columns), good, np.float32)
    x[place] = bad
    return x, place


FAULTS: dict[str, tuple[Callable[[Any, Any], Any], float, float, float, str]] = {
    "mul makes inf": (lambda x, y: x * y, 2.0, 3e38, 10.0, "of 3e+38 and 10"),
    "add makes inf": (lambda x, y: x + y, 2.0, 3e38, 3e38, "of 3e+38 and 3e+38"),
    "div makes -inf": (lambda x, y: y / x, 2.0, 0.0, -1.0, "of -1 and 0"),
    "exp makes inf": (lambda x, y: tile.exp(x), 2.0, 89.0, 0.0, "of 89"),
    "sqrt makes nan": (lambda x, y: tile.sqrt(x), 2.0, -2.0, 0.0, "of -2"),
    "log makes -inf": (lambda x, y: tile.log(x), 2.0, 0.0, 0.0, "of 0"),
    "cast makes inf": (lambda x, y: tile.cast(x, f16), 2.0, 1e5, 0.0, "of 100000"),
    "mul underflows": (
        lambda x, y: x * y,
        2.0,
        1e-30,
        1e-30,
        "of 1e-30 and 1e-30 nothing is left, f32 starts at 1.4e-45",
    ),
    "div underflows": (lambda x, y: x / y, 2.0, -1e-30, 1e30, "of -1e-30 and 1e+30 nothing is left"),
    "pow underflows": (lambda x, y: x**y, 2.0, 1e-20, 3.0, "of 1e-20 and 3 nothing is left"),
    "cast underflows": (
        lambda x, y: tile.cast(x, f16),
        2.0,
        1e-9,
        0.0,
        "of 1e-09 nothing is left, f16 starts at 6e-08",
    ),
}


@some
@given(st.sampled_from(sorted(FAULTS)), st.data())
def test_one_bad_number_is_found_where_it_is(name: str, data: st.DataObject) -> None:
    function, good, bad, other, of = FAULTS[name]
    x, (row, column) = planted(data, good, bad)
    y = np.full(x.shape[1], other, np.float32)
    message = told(DtypeError, lambda: stable(x, y, function=function))
    assert message.startswith(f"{name} at [{row % 4}, {column}] in program instance [{row // 4}]")
    assert of in message
    assert "lambda x, y: " in message, "the user's line"
    x[row, column] = good
    assert np.isfinite(stable(x, y, function=function).numpy()).all()


@some
@given(
    st.sampled_from([np.nan, np.inf, -np.inf, 100.5, -3e38, np.nextafter(np.float32(100), np.float32(200))]), st.data()
)
def test_one_stored_number_out_of_bounds_is_found_where_it_is(bad: float, data: st.DataObject) -> None:
    x, place = planted(data, 100.0, bad)

    @verify.numerics(stable=False, bounded=[-100, 100])
    @kernel.schedule(Schedule(block=(4,)))
    def same(x: Tile) -> Tile:
        return x

    message = told(GuardError, lambda: same(x))
    assert message.startswith(
        f"result{list(place)} is {x[place]!s}, outside of the bounds [-100, 100], in program instance [{place[0] // 4}]"
    )
    x[place] = -100
    assert same(x).numpy().tobytes() == x.tobytes()


def test_what_comes_in_is_nobodys_fault_unless_bounds_say_so() -> None:
    x, zero = np.array([[1, np.inf, np.nan, -np.inf]], np.float32), np.zeros(4, np.float32)
    assert np.array_equal(stable(x, zero, function=add).numpy(), x, equal_nan=True)
    assert "sub makes nan at [0, 1]" in told(DtypeError, lambda: stable(x, x[0], function=sub))


# Underflow.

ALLOWED: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "exp": (lambda x, y: tile.exp(x), -200.0, 0.0),
    "exp2 and a product": (lambda x, y: tile.exp2(x) * y, -100.0, 1e-30),
    "sigmoid of f16": (lambda x, y: tile.cast(tile.sigmoid(x), f16), -30.0, 0.0),
    "weights over their sum": (lambda x, y: tile.exp(x) / (y + 1e30), -60.0, 0.0),
    "a chosen weight": (lambda x, y: tile.where(x < 0, tile.exp(x), y) * 1e-30, -60.0, 0.0),
    "subnormal": (lambda x, y: x * y, 1e-20, 1e-20),
    "zero": (lambda x, y: x * y, 0.0, 1e-30),
    "by infinity": (lambda x, y: x / (y + np.inf), 1.0, 1.0),
    "cancelled": (lambda x, y: (x - y) + (x * 0.0), 1e-38, 1e-38),
    "to a wider type": (lambda x, y: tile.cast(tile.cast(x, bf16), f32), 1e-38, 0.0),
    "to an integer": (lambda x, y: tile.cast(x, f32) + tile.cast(tile.cast(x, i32), f32), 0.25, 0.0),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_meant_to_vanish_may(name: str) -> None:
    function, x, y = ALLOWED[name]
    stable(np.full((3, 2), x, np.float32), np.full(2, y, np.float32), function=function)


magnitudes = st.floats(-38, 38).map(lambda exponent: float(np.float32(10.0**exponent)))


@some
@given(magnitudes, magnitudes, st.sampled_from(["mul", "div"]))
def test_underflow_is_exactly_where_all_value_is_lost(a: float, b: float, name: str) -> None:
    x, y = np.full((1, 1), a, np.float32), np.full(1, b, np.float32)
    function = FAULTS[f"{name} underflows"][0]
    with np.errstate(all="ignore"):
        expected = {"mul": np.multiply, "div": np.divide}[name](x, y)

    def run() -> Any:
        return stable(x, y, function=function).numpy()

    if expected == 0:
        assert f"{name} underflows" in told(DtypeError, run)
    elif np.isinf(expected):
        assert f"{name} makes inf" in told(DtypeError, run)
    else:
        assert run() == expected


@verify.numerics
@kernel
def product(a: Tile, b: Tile) -> Tile:
    return tile.dot(a, b)


def test_a_dot_underflows_where_all_its_products_vanish() -> None:
    a, b = np.full((2, 3), 1e-30, np.float32), np.full((3, 2), 1e-30, np.float32)
    message = told(DtypeError, lambda: product(a, b))
    assert message.startswith(
        "dot underflows at [0, 0] in program instance [0]: of [1e-30, 1e-30, 1e-30] · [1e-30, 1e-30, 1e-30]"
    )
    # One product that counts is enough, and terms that cancel have lost nothing.
    a[:, 0] = b[0] = 1
    assert (product(a, b).numpy() == 1).all()
    assert (product(np.array([[1, -1]], np.float32), np.ones((2, 1), np.float32)).numpy() == 0).all()
    assert (product(a * 0, b).numpy() == 0).all()


def test_a_product_along_an_axis_underflows() -> None:
    def along(x: Any, y: Any) -> Any:
        return tile.prod(x, 1)

    y = np.ones(4, np.float32)
    assert "reduce prod underflows at [1]" in told(
        DtypeError, lambda: stable(np.array([[1] * 4, [1e-20] * 4], np.float32), y, function=along)
    )
    assert (stable(np.array([[0, 1e-20, 1e-20, 1e-20]], np.float32), y, function=along).numpy() == 0).all()


def test_scalars_underflow_too() -> None:
    @verify.numerics
    @kernel
    def scaled(x: Tile, a: float, b: float) -> Tile:
        return x * (a * b)

    x = np.ones(3, np.float32)
    assert (scaled(x, 2.0, 3.0).numpy() == 6).all()
    message = told(DtypeError, lambda: scaled(x, 1e-30, 1e-30))
    assert message.startswith("mulf underflows in program instance [0]: of 1e-30 and 1e-30 nothing is left")
    assert "return x * (a * b)" in message


def test_integers_may_not_wrap() -> None:
    x = np.full((2, 2), 2**30, np.int32)
    assert "add wraps around at [0, 0]" in told(DtypeError, lambda: stable(x, x[0], function=add))


# Bounds.


def test_limits_take_the_type_of_the_tile() -> None:
    @verify.numerics(bounded=[-0.1, 0.1])
    @kernel
    def clamped(x: Tile) -> Tile:
        return tile.maximum(tile.minimum(x, 0.1), -0.1)

    # 0.1 is not a float32: the nearest one is above it.
    for dtype in (np.float32, f16.storage, bf16.storage, np.float64):
        assert clamped(np.array([5, -5, 0.05], dtype)).shape == (3,)


def test_a_store_out_of_bounds_does_not_happen() -> None:
    @verify.numerics(stable=False, bounded=[0, 10])
    @kernel
    def doubled(x: Any, y: Any) -> None:
        tile.store(y, tile.load(x) * 2.0)

    x, y = np.arange(6, dtype=np.float32), np.full(6, -1, np.float32)
    assert "y[0] is -2.0" in told(GuardError, lambda: doubled(x - 1, y))
    assert (y == -1).all()
    doubled(x, y)
    assert (y == 2 * x).all()


def test_views_name_the_element_of_the_whole_array() -> None:
    @verify.numerics(stable=False, bounded=[0, 10])
    @kernel.schedule(Schedule(block=(2,)))
    def copied(x: Any, y: Any) -> None:
        tile.store(y, tile.load(x))

    x = np.zeros((2, 3, 5, 4), np.float32)
    x[1, 2, 3, 1] = 11
    y = np.zeros((4, 5, 3, 2), np.float32).T
    assert "y[1, 2, 3, 1] is 11.0, outside of the bounds [0, 10], in program instance [1, 5]" in told(
        GuardError, lambda: copied(x, y)
    )


def test_an_atomic_stores_what_it_leaves_in_memory() -> None:
    @verify.numerics(stable=False, bounded=[0, 10])
    @kernel.schedule(Schedule(block=(2,)))
    def summed(x: Any, total: Any) -> None:
        tile.atomic_add(total, tile.sum(tile.load(x), 0, keepdims=True), at=(0,))

    total = np.zeros(1, np.float32)
    summed(np.full(5, 2, np.float32), total)
    assert total == 10
    message = told(GuardError, lambda: summed(np.full(6, 2, np.float32), np.zeros(1, np.float32)))
    assert message.startswith("total[0] is 12.0, outside of the bounds [0, 10], in program instance [2]")


def test_integers_have_no_bounds() -> None:
    @verify.numerics(stable=False, bounded=[0, 1])
    @kernel
    def same(x: Tile) -> Tile:
        return x

    assert (same(np.full(3, 7, np.int32)).numpy() == 7).all()


# Proofs.


@verify.numerics(stable=True, bounded=[-100, 100], inputs=[-4, 4])
@kernel
def bounded_score(q: Tile, k: Tile) -> Tile:
    return tile.dot(q, k.T) / sqrt(q.shape[1])


def test_what_intervals_prove_is_not_checked_again() -> None:
    q, k = normal(5, 16).clip(-4, 4), normal(6, 16).clip(-4, 4)
    report = bounded_score.verification(q, k)
    assert report.proven == {"bounded", "nonfinite"}
    assert report.checked == {"underflow", "overflow"}
    assert str(report).splitlines() == [
        "what is stored lies in [-100, 100]: proven, it lies in [-64, 64]",
        "no NaN and no infinity is made: proven, every value is bounded",
        "nothing underflows: checked at run time",
        "no signed integer wraps around: checked at run time",
    ]
    # Four times as many terms, and the same division: 256 is no longer below 100.
    wide = bounded_score.verification(np.zeros((5, 256), np.float32), np.zeros((6, 256), np.float32))
    assert wide.proven == {"nonfinite"}
    assert attention_score.verification(q[:, :1], k[:, :1]).proven == frozenset()


def test_without_premises_only_what_always_holds_is_proven() -> None:
    @verify.numerics(stable=False, bounded=[-1, 1])
    @kernel
    def squashed(x: Tile) -> Tile:
        return tile.tanh(tile.where(x > 0, 1.0, -1.0 + x * 0.0))

    @verify.numerics(stable=True, bounded=[0, 2])
    @kernel
    def flagged(x: Tile) -> Tile:
        return tile.cast(x > 0, f32) + 1.0

    x = normal(5)
    assert squashed.verification(x).proven == frozenset()
    assert flagged.verification(x).checked == {"overflow"}
    assert (flagged(x).numpy() == (x > 0) + 1.0).all()


def test_a_kernel_that_is_proven_runs_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    @verify.numerics(stable=False, bounded=[-20, 20], inputs={"x": [-10, 10]})
    @kernel
    def doubled(x: Tile) -> Tile:
        return x * 2.0

    x = normal(5)
    assert doubled.verification(x).checked == frozenset()
    calls: list[Any] = []

    def execute(self: Kernel, *args: Any) -> None:
        calls.append(args)

    monkeypatch.setattr(Kernel, "execute", execute)
    doubled(x)
    assert len(calls) == 1


def test_premises_are_checked() -> None:
    @verify.numerics(
        bounded=[-100, 100], inputs={"x": [-10, 10], "cache.scale": [0, 2], "cache.bias": [0, 1], "n": [0, 3]}
    )
    @kernel
    def scaled(x: Any, cache: Any, n: int, out: Any) -> None:
        tile.store(out, (tile.load(x) + tile.load(cache.bias)) * cache.scale * n)

    def run(x: float = 1, bias: float = 1, scale: float = 2.0, n: int = 3) -> Any:
        array, out = np.ones((2, 3), np.float32), np.full((2, 3), 1e9, np.float32)
        array[1, 2] = x
        return scaled(array, SimpleNamespace(bias=np.full((2, 3), bias, np.float32), scale=scale), n, out)

    run()
    assert told(GuardError, lambda: run(x=10.5)).startswith(
        "argument x holds 10.5 at [1, 2], outside of its bounds [-10, 10]"
    )
    assert "argument x holds nan at [1, 2]" in told(GuardError, lambda: run(x=np.nan))
    assert "argument cache.bias holds 2.0 at [0, 0]" in told(GuardError, lambda: run(bias=2))
    assert told(GuardError, lambda: run(scale=3.0)).startswith(
        "argument cache.scale is 3.0, outside of its bounds [0, 2]"
    )
    assert "argument n is 4" in told(GuardError, lambda: run(n=4))


def test_a_proof_does_not_hold_where_inputs_are_overwritten() -> None:
    @verify.numerics(stable=False, bounded=[-20, 20], inputs=[-10, 10])
    @kernel
    def passed_on(x: Any, y: Any) -> None:
        place = tile.program_id(0)
        tile.store(y, tile.load(x, at=(place,), shape=(1,)) * 2.0, at=(place + 1,))

    x, y = np.full(4, 10, np.float32), np.zeros(5, np.float32)
    assert passed_on[4].verification(x, y).proven == {"bounded"}
    passed_on[4](x, y)
    assert y.tolist() == [0, 20, 20, 20, 20]
    # Now each program instance reads what the one before has written.
    assert "y[2] is 40.0, outside of the bounds [-20, 20], in program instance [1]" in told(
        GuardError, lambda: passed_on[4](x, x)
    )


def test_checks_and_traces_around_a_call_stay_on() -> None:
    @verify.numerics(stable=False, bounded=[0, 10])
    @kernel
    def racing(x: Any) -> None:
        tile.store(x, tile.zeros((4,)), at=(0,))

    x, trace = np.ones(4, np.float32), Trace()
    racing[2](x)
    with checking(Checks(), trace=trace):
        racing[2](x)
    assert len(list(trace)) == 2
    with checking(Checks.all()):
        assert "race" in told(Exception, lambda: racing[2](x))


# Mistakes.


def plain(x: Any) -> Any:
    return tile.load(x)


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (lambda: verify.numerics(stable=False), "verify.numerics has nothing to verify"),
        (lambda: verify.numerics(bounded=[1, -1]), "bounded takes two numbers, the lower first, got [1, -1]"),
        (lambda: verify.numerics(bounded=[1]), "bounded takes two numbers, got [1]"),
        (lambda: verify.numerics(bounded=100), "bounded takes two numbers, got 100"),  # pyright: ignore[reportArgumentType]  (the mistake)
        (
            lambda: verify.numerics(bounded=[0, float("nan")]),
            "bounded takes two numbers, the lower first, got [0, nan]",
        ),
        (
            lambda: verify.numerics(inputs={"x": [2, 1]})(plain),
            "inputs of x takes two numbers, the lower first, got [2, 1]",
        ),
        (lambda: verify.numerics(inputs={"z": [1, 2]})(plain), "inputs bounds z, which plain does not take"),
        (lambda: verify.numerics(7), "verify.numerics decorates a kernel, got 7"),  # pyright: ignore[reportArgumentType]  (the mistake)
        (lambda: verify.numerics(attention_score), "attention_score is verified already, to be stable and bounded"),
    ],
)
def test_mistakes_are_told(decorate: Callable[[], Any], message: str) -> None:
    assert told(CompileError, decorate).startswith(message)
