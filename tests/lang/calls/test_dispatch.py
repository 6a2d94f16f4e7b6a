"""Dispatch: generated code finds bound programs, and notices whatever is not as it was."""

from __future__ import annotations

import enum
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from long_ways import slow_calls

import tessera as ts
from tessera import Tensor, jit, knobs
from tessera.lang.jit import Jitted

pytestmark = pytest.mark.usefixtures("interpreted")


def entries(function: Jitted) -> int:
    return sum(len(quick.entries) for quick in function.quicks)


@jit
def total(first: Any, tree: dict[str, Any], rate: float = 2.0, *, mode: str = "sum") -> Any:
    a, b = tree["pair"]
    found = first + a * rate + b
    return found if mode == "sum" else ts.negative(found)


def test_the_second_call_of_a_kind_is_quick() -> None:
    x, y, z = (ts.randn((3,), seed=seed) for seed in range(3))
    plain = x.numpy() + y.numpy() * np.float32(2) + z.numpy()
    assert np.allclose(total(x, {"pair": (y, z)}), plain)
    calls = slow_calls(total)
    for _ in range(3):
        assert np.allclose(total(x, {"pair": (y, z)}), plain)
        assert np.allclose(total(tree={"pair": (y, z)}, first=x), plain)
        assert np.allclose(total(x, {"pair": (y, z)}, 2.0, mode="sum"), plain)
        assert np.allclose(total(x, {"pair": (y, z)}, 0.0), x.numpy() + z.numpy())
    assert calls == []
    assert np.allclose(total(x, {"pair": (y, z)}, mode="other"), -plain)
    assert len(calls) == 1
    assert np.allclose(total(x, {"pair": (y, z)}, mode="other"), -plain)
    assert len(calls) == 1


class Side(enum.IntEnum):
    """Keys that are numbers, and are not written like them."""

    LEFT = 1


@pytest.mark.parametrize("key", [Side.LEFT, np.str_("left"), True])
def test_keys_of_other_classes_than_text_and_numbers(key: Any) -> None:
    @jit
    def f(tree: Any) -> Any:
        return {key: tree[key] + 1.0}

    for value in (1.0, 2.0):
        assert f({key: ts.full((2,), value)})[key].tolist() == [value + 1.0] * 2


def test_other_structures_metas_and_settings_go_the_long_way() -> None:
    f = jit(total.function)
    x, y, z = (ts.randn((4,), seed=seed) for seed in range(3))
    wanted = x.numpy() + y.numpy() * np.float32(2) + z.numpy()
    assert np.allclose(f(x, {"pair": (y, z)}), wanted)
    assert np.allclose(f(x, {"pair": [y, z]}), wanted)
    assert np.allclose(f(x.numpy(), {"pair": (y, z)}), wanted)
    assert np.allclose(f(x, {"pair": (y, z), "more": z}), wanted)
    strided = ts.randn((8,), seed=9)[::2]
    assert np.allclose(f(strided, {"pair": (y, z)}), wanted - x.numpy() + strided.numpy(), atol=1e-6)
    with knobs.interpret.using(False), knobs.optimization.using(0):
        assert np.allclose(f(x, {"pair": (y, z)}), wanted)
    with pytest.raises(ts.TesseraError, match="missing a required argument: 'tree'"):
        f(x)
    with pytest.raises(ts.TesseraError, match="too many positional"):
        f(x, {"pair": (y, z)}, 1.0, 2.0)
    with pytest.raises(ts.TesseraError, match="unexpected keyword"):
        f(x, {"pair": (y, z)}, other=1.0)


def test_there_is_code_for_several_structures() -> None:
    f = jit(total.function)
    x, y, z = (ts.randn((4,), seed=seed) for seed in range(3))
    wanted = x.numpy() + y.numpy() * np.float32(2) + z.numpy()
    structures = [{"pair": (y, z)}, {"pair": [y, z]}, {"pair": (y, z), "more": z}]
    for tree in structures:
        assert np.allclose(f(x, tree), wanted)
    assert len(f.quicks) == 3
    calls = slow_calls(f)
    for tree in structures:
        assert np.allclose(f(x, tree), wanted)
        assert np.allclose(f(tree=tree, first=x, rate=2.0), wanted)
    assert calls == []
    for count in range(5, 9):
        f(x, {"pair": (y, z), **{str(number): z for number in range(count)}})
    assert len(f.quicks) == 4  # the rest goes the long way


def test_entries_beside_the_first_few() -> None:
    @jit
    def f(x: Any, y: Any, *, by: float = 1.0) -> Any:
        return (x * y + by,)

    y = ts.full((), 3.0)
    given = [ts.full((size,), float(size)) for size in range(2, 11)]
    for _ in range(2):
        for x in given:
            for by in (1.0, 2.0):
                assert f(x, y, by=by)[0].tolist() == [x.shape[0] * 3.0 + by] * x.shape[0]
    assert entries(f) == 18
    calls = slow_calls(f)
    for x in given:
        assert f(x, y, by=float("1.0"))[0].tolist() == [x.shape[0] * 3.0 + 1.0] * x.shape[0]
    assert calls == []
    assert f(given[0], y, by=1)[0].tolist() == [7.0, 7.0]  # another class is another program
    assert len(calls) == 1
    assert f(given[0], 3.0)[0].tolist() == [7.0, 7.0]  # a number where an array was
    assert len(calls) == 2


def test_an_entry_in_the_code_sees_what_changes_outside() -> None:
    scope: dict[str, Any] = {"rate": 2.0}

    @jit
    def f(x: Any) -> Any:
        return x * scope["rate"]

    x = ts.ones((3,))
    assert f(x).tolist() == f(x).tolist() == [2.0] * 3
    scope["rate"] = 5.0
    assert f(x).tolist() == f(x).tolist() == [5.0] * 3
    assert f.explain().compilations == 2


def test_nothing_grows_with_calls_of_many_shapes() -> None:
    @jit
    def f(x: Any) -> Any:
        return x + 1.0

    for size in range(2, 60):
        assert f(ts.zeros((size,))).shape == (size,)
    assert entries(f) == 58
    assert f.explain().compilations == 2
    assert len(f.families) == 1


def test_threads_share_a_function() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        return x * 2.0 + y

    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for size in (3, 5, 8, 13):
                x, y = ts.randn((size,), seed=seed), ts.randn((size,), seed=seed + 1)
                assert np.array_equal(np.asarray(f(x, y)), x.numpy() * np.float32(2) + y.numpy())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert f.explain().compilations <= 3


def test_shape_history_of_traced_values() -> None:
    stories: list[tuple[str, ...]] = []

    def f(x: Any) -> Any:
        y = ts.reshape(x, (2, -1)).T
        stories.append(ts.shape_history(y).lines())
        return y

    ts.check(f, Tensor[3, 4])
    assert [line.partition(" (")[0] for line in stories[0]] == [
        "argument 'x': [3, 4]",
        "reshape: [3, 4] -> [2, 6]",
        "matrix_transpose: [2, 6] -> [6, 2]",
    ]


@pytest.mark.acceptance
def test_a_thousand_lengths_are_three_programs_at_most() -> None:
    @jit
    def f(x: Any, w: Any) -> Any:
        return ts.softmax(x @ w)

    w = ts.randn((16, 16), seed=0)
    with knobs.interpret.using(False):
        for size in np.random.default_rng(1).integers(1, 4096, 1000).tolist():
            assert f(ts.zeros((size, 16)), w).shape == (size, 16)
    assert f.explain().compilations <= 3


def test_a_structure_is_asked_for_before_anything_is_taken_out_of_it() -> None:
    """A tensor can be indexed like a list, and says no where it is too short."""

    @jit
    def second(x: Any) -> Any:
        return x[1] + 0 if x.__class__ is list else x * 2

    one = ts.ones((1, 3))
    for _ in range(2):
        assert second([one, 3 * one]).numpy().tolist() == [[3, 3, 3]]
        assert second(one).numpy().tolist() == [[2, 2, 2]]


def test_a_tensor_where_a_tuple_was() -> None:
    """The code that was written for the tuple asks the tensor for items that it may not have."""

    @ts.jit
    def first(x: Any) -> Any:
        return x[0] * 2.0

    one = ts.ones((1, 3))
    assert first((one, one)).shape == (1, 3)
    assert first(one).shape == (3,)
    q = ts.ones((1, 2, 4, 8))
    assert ts.flash_attention(q, (q, q)).shape == (1, 2, 4, 8)
    assert ts.flash_attention(q, q, q).shape == (1, 2, 4, 8)


class Resized:
    """A function that has been called with some sizes, compiled, and the calls after that which went the long way."""

    def __init__(self) -> None:
        outside = self.outside = SimpleNamespace(added=1.0)

        @jit
        def f(x: Any, w: Any, *, negated: bool = False) -> Any:
            found = x @ w + outside.added
            return ts.negative(found) if negated else found

        self.function, self.w = f, ts.randn((8, 6), seed=0)
        for size in (5, 7, 9, 12, 17, 20, 23, 29):
            f(ts.ones((size, 8)), self.w)
        self.calls = slow_calls(f)

    def check(self, x: Tensor, *, added: float = 1.0, **named: Any) -> int:
        """How many calls took the long way, for one whose result is right."""
        before = len(self.calls)
        found = self.function(x, self.w, **named).numpy()
        expected = x.numpy() @ self.w.numpy() + np.float32(added)
        assert found.shape == expected.shape
        assert np.allclose(found, -expected if named.get("negated") else expected, atol=1e-5)
        return len(self.calls) - before


def test_new_sizes_alone_do_not_take_the_long_way() -> None:
    with knobs.interpret.using(False):
        known = Resized()
        assert sum(known.check(ts.randn((size, 8), seed=size)) for size in range(30, 60)) == 0
        assert sum(known.check(ts.randn((size, 8), seed=size)) for size in range(30, 60)) == 0
        assert known.function.explain().compilations <= 3


def test_what_is_new_apart_from_sizes_takes_the_long_way_first() -> None:
    """Static values, dtypes, ranks, strides, alignments, and what the function sees from outside."""
    with knobs.interpret.using(False):
        known = Resized()
        assert known.check(ts.randn((61, 8), seed=0), negated=True) == 1
        assert known.check(ts.randn((62, 16), seed=0)[:, ::2]) == 1
        assert known.check(ts.randn((2, 63, 8), seed=0)) == 1
        assert known.check(ts.randn((65 * 8 + 1,), seed=0)[1:].reshape(65, 8)) == 1
        with pytest.raises(ts.ShapeError, match="matmul"):
            known.function(ts.ones((64, 9)), known.w)
        assert len(known.calls) == 5
        known.outside.added = 2.0
        assert known.check(ts.randn((66, 8), seed=0), added=2.0) == 1
