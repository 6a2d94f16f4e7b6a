"""Shape tracking: what is remembered, for how long, and that it is off unless asked for."""

from __future__ import annotations

import gc
import threading

import pytest

import tessera as ts
from tessera.runtime.tensor import tracking


def test_nothing_is_remembered_unless_asked_for() -> None:
    x = ts.zeros((4, 6)).T
    assert ts.shape_history(x).lines() == ("given: [6, 4]",)
    with pytest.raises(ts.ShapeError) as caught:
        x.reshape(5, -1)
    assert caught.value.story == ()


def test_histories_go_through_views_and_operators() -> None:
    with ts.track_shapes():
        x = (ts.zeros((4, 6))[1:].T + 1.0).expand_dims(0)
        steps = [line.partition(" (")[0] for line in ts.shape_history(x).lines()]
    assert steps == [
        "made: [4, 6]",
        "__getitem__: [4, 6] -> [3, 6]",
        "T: [3, 6] -> [6, 3]",
        "add: [6, 3] -> [6, 3]",
        "expand_dims: [6, 3] -> [1, 6, 3]",
    ]


def test_every_step_names_the_users_line() -> None:
    with ts.track_shapes():
        x = ts.zeros((4, 6)).T
        assert all(f"({__file__}:" in line for line in ts.shape_history(x).lines())


def test_histories_go_with_their_tensors() -> None:
    with ts.track_shapes():
        table = tracking._histories.get()  # pyright: ignore[reportPrivateUsage]  (no leak is worth a look inside)
        assert table is not None
        x = ts.zeros((4, 6)).T
        assert len(table) == 1  # the tensor that x is a view of is gone already
        del x
        gc.collect()
        assert table == {}


def test_blocks_and_threads_do_not_mix() -> None:
    seen: list[str] = []
    with ts.track_shapes():
        x = ts.zeros((2, 3))
        thread = threading.Thread(target=lambda: seen.extend(ts.shape_history(x).lines()))
        thread.start()
        thread.join()
        with ts.track_shapes():
            assert ts.shape_history(x).lines() == ("given: [2, 3]",)
        assert ts.shape_history(x).lines()[0].startswith("made: [2, 3]")
    assert seen == ["given: [2, 3]"]
