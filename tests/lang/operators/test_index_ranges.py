"""Indices that are out of range: eager operators refuse them as `x[indices]` does, programs under checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.errors import RangeError, ShapeError

TABLE = ts.randn((4, 5), seed=1)


def _along_rows(x: Any, indices: Any) -> Any:
    # In the first of several rows: beyond its end the next one begins.
    return ts.take_along_axis(x.mT, ts.concat([ts.expand_dims(indices, axis=0), ts.zeros((4, 2), ts.i64)]), axis=1)


LOOKUPS: dict[str, Callable[[Any, Any], Any]] = {
    "embedding": lambda x, indices: ts.embedding(indices, x),
    "take": lambda x, indices: ts.take(x, indices, axis=0),
    "take_along_axis": _along_rows,
    "item": lambda x, indices: x[indices],
    "item of two axes": lambda x, indices: x[indices, indices],
    "set": lambda x, indices: x.at[indices].set(1.0),
    "add": lambda x, indices: x.at[indices].add(1.0),
    "multiply": lambda x, indices: x.at[indices].multiply(2.0),
    "one_hot": lambda x, indices: ts.one_hot(indices, 4),
    "cross_entropy": lambda x, indices: ts.cross_entropy(x[:2, :4], indices),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_an_index_out_of_range_is_refused(name: str) -> None:
    lookup = LOOKUPS[name]
    good = lookup(TABLE, ts.asarray([0, 3]))
    with knobs.checks.using("bounds"):
        checked = ts.jit(lookup)
        np.testing.assert_allclose(checked(TABLE, ts.asarray([0, 3])).numpy(), good.numpy(), rtol=1e-6)
        for bad in (4, -5):
            with pytest.raises(RangeError, match="out of range") as raised:
                checked(TABLE, ts.asarray([0, bad]))
            assert isinstance(raised.value, ShapeError | IndexError)
    for bad in (4, -5):
        indices = ts.asarray([0, bad])
        with pytest.raises(RangeError, match=f"index {bad} is out of (range|bounds)") as raised:
            lookup(TABLE, indices)
        assert raised.value.span is not None
        assert raised.value.span.file == __file__
        with knobs.interpret.using(True), pytest.raises(RangeError, match="out of range"):
            ts.jit(lookup)(TABLE, indices)


@pytest.mark.parametrize("name", ["embedding", "take", "item", "add"])
def test_negative_indices_count_from_the_end(name: str) -> None:
    lookup = LOOKUPS[name]
    below, above = ts.asarray([-1, -4]), ts.asarray([3, 0])
    assert lookup(TABLE, below).tolist() == lookup(TABLE, above).tolist()
    assert ts.jit(lookup)(TABLE, below).tolist() == lookup(TABLE, above).tolist()


def test_each_size_has_its_own_range() -> None:
    """Calls for other sizes come by quick ways, which look, too."""
    for count in (3, 7, 5, 3):
        table, indices = ts.randn((count, 2), seed=count), ts.asarray([count - 1])
        assert ts.embedding(indices, table).tolist() == table[indices].tolist()
        with pytest.raises(RangeError, match=f"index {count} is out of range for axis 0 of size {count}"):
            ts.embedding(indices + 1, table)
        assert ts.embedding(indices, table).tolist() == table[indices].tolist()


def test_numbers_and_narrow_indices_are_looked_at() -> None:
    with pytest.raises(RangeError, match="index 4 is out of range"):
        ts.take(TABLE, 4, axis=0)
    with pytest.raises(RangeError, match="index 200 is out of range for axis 1 of size 5"):
        ts.take(TABLE, ts.asarray([200], ts.u8), axis=1)
    assert ts.take(TABLE, -1, axis=0).tolist() == TABLE[-1].tolist()


def test_labels_that_do_not_count_may_be_anything() -> None:
    labels = ts.asarray([0, -100, 2, -100])
    found = ts.cross_entropy(TABLE, labels)
    with knobs.checks.using("bounds"):
        assert abs(float(ts.jit(ts.cross_entropy)(TABLE, labels)) - float(found)) < 1e-5
    with pytest.raises(RangeError, match="index -100 is out of range"):
        ts.cross_entropy(TABLE, labels, ignore_index=-1)


def test_no_index_is_right_where_there_is_nothing() -> None:
    nothing = ts.zeros((0, 2))
    assert ts.embedding(ts.zeros(0, ts.i64), nothing).shape == (0, 2)
    with pytest.raises(RangeError, match="of size 0"):
        ts.embedding(ts.zeros(1, ts.i64), nothing)


def test_an_axis_out_of_range_is_an_index_error() -> None:
    for wrong in (lambda: ts.expand_dims(TABLE, axis=9), lambda: ts.sum(TABLE, axis=2), lambda: TABLE[4]):
        with pytest.raises(IndexError) as raised:
            wrong()
        assert isinstance(raised.value, RangeError)
    with pytest.raises(RangeError) as raised:
        ts.expand_dims(TABLE, axis=9)
    assert raised.value.hint == "use an axis from -3 to 2"
