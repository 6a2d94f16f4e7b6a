"""Random numbers by keys: distributions, choices and orders, the same eagerly, jitted and for symbolic sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs, random
from tessera.dtypes import philox

KEY = random.key(11)
MANY = 4000


@pytest.fixture(autouse=True)
def _interpreter(request: pytest.FixtureRequest) -> Generator[None]:
    with knobs.backend.using("cpu" if "native" in request.node.name else "interpreter"):
        yield


DRAWS: dict[str, Callable[[Any], Any]] = {
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (5, 3)),
    "bernoulli, each": lambda key: random.bernoulli(key, ts.asarray([0.0, 0.5, 1.0])),
    "exponential": lambda key: random.exponential(key, (7,)),
    "gumbel": lambda key: random.gumbel(key, (2, 5)),
    "truncated_normal": lambda key: random.truncated_normal(key, -1.0, 2.5, (9,)),
    "categorical": lambda key: random.categorical(key, ts.asarray([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])),
    "permutation": lambda key: random.permutation(key, 10),
    "permutation, rows": lambda key: random.permutation(key, ts.reshape(ts.arange(12), (4, 3))),
    "permutation, independent": lambda key: random.permutation(
        key, ts.reshape(ts.arange(12), (3, 4)), axis=1, independent=True
    ),
    "shuffle": lambda key: random.shuffle(key, ts.arange(6)),
    "choice": lambda key: random.choice(key, 5, (2, 3)),
    "choice, rows": lambda key: random.choice(key, ts.reshape(ts.arange(12), (4, 3)), (2,), replace=False),
    "choice, weighted": lambda key: random.choice(key, 4, (6,), p=ts.asarray([0.0, 1.0, 2.0, 0.0])),
    "choice, weighted once": lambda key: random.choice(key, 4, (3,), replace=False, p=ts.asarray([0.5, 1.0, 2.0, 3.0])),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_functions_of_the_key(name: str) -> None:
    draw = DRAWS[name]
    first = draw(KEY).numpy()
    np.testing.assert_array_equal(draw(KEY).numpy(), first)
    np.testing.assert_array_equal(ts.jit(draw)(KEY).numpy(), first)
    others = [draw(random.key(seed)).numpy() for seed in range(4)]
    assert any((other != first).any() for other in others)


@pytest.mark.parametrize(
    "name", [one if one == "categorical" else pytest.param(one, marks=pytest.mark.acceptance) for one in DRAWS]
)
def test_native_draws_are_the_interpreter_s(name: str) -> None:
    with knobs.backend.using("interpreter"):
        expected = ts.jit(DRAWS[name])(KEY).numpy()
    np.testing.assert_allclose(ts.jit(DRAWS[name])(KEY).numpy(), expected, rtol=1e-6)


def middles(count: int) -> Any:
    words = philox.random_bits(11, 0, count).astype(np.float64)
    return (words + 0.5) * 2.0**-32


def test_distributions_by_their_inverse() -> None:
    share = middles(MANY)
    np.testing.assert_allclose(random.exponential(KEY, (MANY,), ts.f64).numpy(), -np.log(share), rtol=1e-12)
    found = random.gumbel(KEY, (MANY,), ts.f64).numpy()
    np.testing.assert_allclose(found, -np.log(-np.log(share)), rtol=1e-10, atol=1e-12)
    normal = NormalDist()
    for low, high in ((-2.0, 2.0), (-1.0, math.inf), (0.5, 0.75), (-9.0, -8.0)):
        first, last = (0.5 * math.erfc(-end / math.sqrt(2)) for end in (low, high))
        expected = [normal.inv_cdf(first + (last - first) * one) for one in share[:500]]
        drawn = random.truncated_normal(KEY, low, high, (500,), ts.f64).numpy()
        if low > 0:  # drawn from the other side, where shares are exact
            expected = [-normal.inv_cdf(1 - last + (last - first) * one) for one in share[:500]]
        np.testing.assert_allclose(drawn, expected, rtol=1e-9, atol=1e-12)
        assert low <= drawn.min()
        assert drawn.max() <= high


def test_types_and_shapes() -> None:
    for draw in (random.exponential, random.gumbel):
        assert draw(KEY).shape == ()
        assert draw(KEY, (0, 3)).shape == (0, 3)
        assert draw(KEY, (2,), ts.bf16).dtype is ts.bf16
    assert random.truncated_normal(KEY, 9.0, 10.0, (50,)).numpy().min() >= 9.0
    assert random.permutation(KEY, 0).shape == (0,)
    assert random.choice(KEY, 3).shape == ()
    assert random.bernoulli(KEY, 0.5).dtype is ts.bool_


def test_choices_are_as_likely_as_their_weights() -> None:
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    with np.errstate(divide="ignore"):
        logits = np.log(weights)
    drawn = {
        "categorical": random.categorical(KEY, ts.asarray(logits), shape=(MANY,)),
        "choice": random.choice(KEY, 4, (MANY,), p=ts.asarray(weights)),
    }
    for found in drawn.values():
        shares = np.bincount(found.numpy(), minlength=4) / MANY
        assert shares[1] == 0
        assert np.abs(shares - weights / 8).max() < 0.03
    even = np.bincount(random.choice(KEY, 4, (MANY,)).numpy(), minlength=4) / MANY
    assert np.abs(even - 0.25).max() < 0.03
    once = np.stack(
        [random.choice(random.key(seed), 4, (1,), replace=False, p=ts.asarray(weights)).numpy() for seed in range(150)]
    )
    assert not (once == 1).any()
    assert abs((once == 3).mean() - 0.5) < 0.15


def test_axes_of_classes() -> None:
    logits = np.where(np.arange(3)[:, None] == np.array([2, 0]), 50.0, -50.0)
    assert random.categorical(KEY, ts.asarray(logits), axis=0).tolist() == [2, 0]
    assert random.categorical(KEY, ts.asarray(logits.T), shape=(3, 2)).tolist() == [[2, 0]] * 3


def test_orders_have_everything_once() -> None:
    for count in (1, 5, 64, 100):
        assert sorted(random.permutation(KEY, count).tolist()) == list(range(count))
    rows = np.arange(12).reshape(4, 3)
    found = random.permutation(KEY, rows).numpy()
    assert sorted(map(tuple, found)) == sorted(map(tuple, rows))
    apart = random.permutation(KEY, rows, axis=1, independent=True).numpy()
    assert [sorted(row) for row in apart] == rows.tolist()
    assert sorted(random.choice(KEY, 7, (7,), replace=False).tolist()) == list(range(7))
    firsts = [int(random.permutation(random.key(seed), 3)[0]) for seed in range(120)]
    assert min(np.bincount(firsts, minlength=3)) > 20


def test_sizes_may_be_open() -> None:
    @ts.jit
    def shuffled(key: Any, x: ts.Tensor["N", 2]) -> Any:  # noqa: F821, UP037  (the name of a size)
        return random.shuffle(key, x), random.permutation(key, x.shape[0]), random.gumbel(key, x.shape)

    for count in (3, 6):
        x = np.arange(2 * count).reshape(count, 2)
        rows, order, noise = shuffled(KEY, x)
        np.testing.assert_array_equal(rows.numpy(), x[order.numpy()])
        np.testing.assert_array_equal(order.numpy(), random.permutation(KEY, count).numpy())
        assert noise.shape == (count, 2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ts.DtypeError, match="gumbel needs a key"):
        random.gumbel(None)  # pyright: ignore[reportArgumentType]  # that there is none is the point
    with pytest.raises(ts.ShapeError, match=r"gumbel: a key is a u64 without axes, got \[2\] of u64"):
        random.gumbel(random.split(KEY))
    with pytest.raises(ts.TesseraError, match=r"expected a range of numbers, got 1\.0 to 1\.0"):
        random.truncated_normal(KEY, 1.0, 1.0)
    with pytest.raises(ts.TesseraError, match="rarer than f64 can tell"):
        random.truncated_normal(KEY, 60.0, 61.0)
    with pytest.raises(ts.ShapeError, match="choice: 4 of 3 cannot be chosen if none is replaced"):
        random.choice(KEY, 3, (4,), replace=False)
    with pytest.raises(ts.ShapeError, match="expected one weight for each of 3"):
        random.choice(KEY, 3, p=ts.ones(2))
    with pytest.raises(ts.TesseraError, match="a number of things from 0 on, got -1"):
        random.permutation(KEY, -1)
    with pytest.raises(ts.ShapeError, match=r"a shape that ends with \[2\] was expected"):
        random.categorical(KEY, ts.zeros((2, 3)), shape=(3,))
    with pytest.raises(ts.TesseraError, match="a probability from 0 to 1"):
        random.bernoulli(KEY, 1.5)
