"""Operators that only arrange elements: on tensors they are views, whose writes are seen, and in traces values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lambdas import binary, unary

import tessera as ts
from tessera.errors import ResourceError, ShapeError

VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reshape": (lambda x: ts.reshape(x, (4, 6)), lambda a: a.reshape(4, 6)),
    "reshape to what is left": (lambda x: ts.reshape(x, (-1, 2)), lambda a: a.reshape(-1, 2)),
    "flatten": (ts.flatten, np.ravel),
    "method": (lambda x: x.flatten(), np.ravel),
    "expand_dims": (lambda x: ts.expand_dims(x, axis=1), lambda a: a[:, None]),
    "squeeze": (lambda x: ts.squeeze(x[:, :1], 1), lambda a: a[:, 0]),
    "permute_dims": (lambda x: ts.permute_dims(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "matrix_transpose": (ts.matrix_transpose, lambda a: a.swapaxes(-1, -2)),
    "transpose": (lambda x: ts.transpose(x, 0, 2), lambda a: a.swapaxes(0, 2)),
    "moveaxis": (lambda x: ts.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "moveaxis of two": (lambda x: ts.moveaxis(x, (0, 1), (1, -1)), lambda a: np.moveaxis(a, (0, 1), (1, -1))),
    "broadcast_to": (lambda x: ts.broadcast_to(x, (5, 2, 3, 4)), lambda a: np.broadcast_to(a, (5, 2, 3, 4))),
    "broadcast_arrays": (lambda x: ts.broadcast_arrays(x, 2.0)[0], lambda a: a),
    "unstack": (lambda x: ts.unstack(x, axis=1)[2], lambda a: a[:, 2]),
    "split": (lambda x: ts.split(x, 2, axis=2)[1], lambda a: a[:, :, 2:]),
    "split by sizes": (lambda x: ts.split(x, (1, 3), axis=-1)[1], lambda a: a[:, :, 1:]),
    "slices": (lambda x: x[:, ::2, 1:], lambda a: a[:, ::2, 1:]),
}


def given() -> Any:
    return ts.arange(24, dtype=ts.f32).reshape(2, 3, 4)


@pytest.mark.parametrize("name", VIEWS)
def test_they_are_views_with_numpys_elements(name: str) -> None:
    view, expected = VIEWS[name]
    x = given()
    found = view(x)
    assert ts.share_memory(found, x)
    np.testing.assert_array_equal(found.numpy(), expected(x.numpy()))
    x[1, 2, 3] = 100.0
    np.testing.assert_array_equal(found.numpy(), expected(x.numpy()))
    if found.writable:
        found[...] = 7.0
        written = given().numpy()
        written[1, 2, 3] = 100.0
        expected(written)[...] = 7.0
        np.testing.assert_array_equal(x.numpy(), written)
    else:
        assert name == "broadcast_to"
        with pytest.raises(ResourceError, match="read-only"):
            found[0] = 1.0


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", VIEWS)
def test_in_traces_they_are_values_with_the_same_elements(name: str) -> None:
    view, expected = VIEWS[name]
    x = given()
    found = ts.jit(lambda *xs: view(xs[0]) + 0.0)(x)
    np.testing.assert_array_equal(found.numpy(), expected(x.numpy()))
    assert not ts.share_memory(found, x)


def test_views_take_no_memory() -> None:
    """A view of 4 TB is made at once."""
    wide = ts.broadcast_to(ts.ones(()), (1 << 20, 1 << 20))
    assert wide.strides == (0, 0)
    assert ts.matrix_transpose(ts.reshape(wide, (1 << 20, 1 << 20))).shape == (1 << 20, 1 << 20)


def test_where_no_view_is_possible_there_is_a_copy() -> None:
    x = given()
    across = ts.permute_dims(x, (2, 1, 0))
    assert not ts.share_memory(ts.flatten(across), x)
    assert not ts.share_memory(ts.reshape(x, (24,), copy=True), x)
    np.testing.assert_array_equal(ts.reshape(across, (24,)).numpy(), x.numpy().T.ravel())
    with pytest.raises(ShapeError, match="no view of strides"):
        ts.reshape(across, (24,), copy=False)
    for copied in (ts.flip(x), ts.roll(x, 1), ts.concat([x]), ts.take(x, ts.asarray([0, 1]), axis=0)):
        assert not ts.share_memory(copied, x)


def test_views_of_views_feed_programs() -> None:
    x = given()
    view = ts.moveaxis(ts.split(ts.matrix_transpose(x), 2, axis=1)[1], 0, -1)
    expected = np.moveaxis(np.split(x.numpy().swapaxes(1, 2), 2, axis=1)[1], 0, -1)
    wide = ts.broadcast_to(ts.asarray([1.0, 2.0]), (2, 3, 2))
    for function in (binary(lambda v, w: ts.exp(v * 0.1) + w), binary(lambda v, w: ts.sum(v * w, axis=-1))):
        found, expected_ = ts.jit(function)(view, wide), function(view, wide)
        np.testing.assert_allclose(np.asarray(found.tolist()), np.asarray(expected_.tolist()), rtol=1e-6)
    np.testing.assert_array_equal(view.numpy(), expected)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (unary(lambda x: ts.reshape(x, (5, 5))), "reshape"),
        (unary(lambda x: ts.squeeze(x, 0)), "squeeze"),
        (unary(lambda x: ts.permute_dims(x, (0, 1))), "transpose|permute"),
        (unary(lambda x: ts.moveaxis(x, (0, 1), 0)), "2 axes go to 1 positions"),
        (unary(lambda x: ts.moveaxis(x, (0, 0), (1, 2))), "names an axis twice"),
        (unary(lambda x: ts.moveaxis(x, 3, 0)), "out of range"),
        (unary(lambda x: ts.broadcast_to(x, (3, 4, 4))), "broadcast"),
        (unary(lambda x: ts.split(x, 5, axis=0)), "5 does not divide axis 0 of size 2"),
        (unary(lambda x: ts.split(x, (1, 2), axis=0)), "does not divide"),
        (unary(lambda x: ts.unstack(x, axis=3)), "out of range"),
    ],
)
def test_mistakes_are_told_alike(wrong: Callable[[Any], Any], said: str) -> None:
    for call in (wrong, ts.jit(lambda *xs: wrong(xs[0]))):
        with pytest.raises(ShapeError, match=said) as caught:
            call(given())
        assert caught.value.hint


def test_vectors_are_empty_or_single() -> None:
    assert ts.flatten(ts.asarray(3.0)).shape == (1,)
    assert ts.flatten(ts.zeros((0, 3))).shape == (0,)
    assert ts.unstack(ts.zeros((0, 3))) == ()
