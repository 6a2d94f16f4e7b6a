"""Arguments that are given away: results take their memory, where nothing else holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from imitated_gpu import Imitation
from lambdas import binary, unary

import tessera as ts
from tessera import jit, kernel, knobs
from tessera import tile as tile_language
from tessera.errors import EffectError
from tessera.ir import text
from tessera.ir.tile import dialect as tile
from tessera.programs.buffer_assignment import Move
from tessera.runtime.cuda.streams import SEVERAL
from tessera.runtime.device.ownership import taken
from tessera.transforms.facts.in_place import overwritable

SIZES = (5, 300_000)
"""Small results have memory of another kind than large ones."""


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    with knobs.backend.using("auto"):
        yield


@kernel
def doubled(x: Any):
    return tile_language.load(x) * 2.0


@jit(donate_argnums=0)
def step(weights: Any, gradient: Any) -> Any:
    return weights - 0.5 * gradient


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_done_in_place(size: int) -> None:
    weights, gradient = ts.ones((size,)), ts.full((size,), 0.25)
    address = weights.pointer
    for iteration in range(1, 5):
        given = weights
        weights = step(given, gradient)
        assert weights.pointer == address
        assert set(weights.numpy()) == {np.float32(1 - 0.125 * iteration)}
        with pytest.raises(EffectError, match="donated"):
            _ = given.shape
    assert weights.meta is ts.empty((size,)).meta


@pytest.mark.parametrize("size", SIZES)
def test_not_where_others_look(size: int) -> None:
    gradient = ts.full((size,), 0.25)
    weights = ts.ones((size,))
    beside = weights[1:]
    assert step(weights, gradient)[0].item() == 0.875
    assert set(beside.numpy()) == {1.0}
    mine = np.ones(size, np.float32)
    step(ts.asarray(mine), gradient)
    assert set(mine) == {1.0}
    weights = ts.ones((size,))
    shown = weights.numpy()
    step(weights, gradient)
    assert set(shown) == {1.0}
    weights = ts.ones((size,))
    address = weights.pointer
    found = step(weights, weights)  # given as something else, too: it is gone, but not overwritten on the way
    assert found.pointer != address
    assert set(found.numpy()) == {0.5}


def test_not_what_a_function_sees_besides() -> None:
    seen = ts.ones((7,))

    @jit(donate_argnums=0)
    def added(x: Any) -> Any:
        return x + 2.0 * seen

    assert set(added(seen).numpy()) == {3.0}


def test_a_later_kernel_takes_what_an_earlier_one_read() -> None:
    @jit(donate_argnums=0)
    def both(x: Any) -> Any:
        return doubled(doubled(x))

    x = ts.randn((8, 8), seed=1)
    expected, address = 4 * x.numpy(), x.pointer
    found = both(x)
    assert found.pointer == address
    np.testing.assert_array_equal(found.numpy(), expected)


def test_not_what_a_kernel_reads_elsewhere() -> None:
    @jit(donate_argnums=0)
    def rows(x: Any) -> Any:
        return x - ts.max(x, axis=1, keepdims=True)

    @jit(donate_argnums=0)
    def transposed(x: Any) -> Any:
        return x + x.T

    @jit(donate_argnums=0)
    def wider(x: Any) -> Any:
        return ts.astype(x, ts.f64)

    for function in (rows, transposed, wider):
        x = ts.randn((40, 40), seed=3)
        expected, address = jit(function.function)(x).numpy(), x.pointer
        found = function(x)
        assert found.pointer != address
        np.testing.assert_array_equal(found.numpy(), expected)


def test_results_choose_among_arguments() -> None:
    @jit(donate_argnums=(0, 1))
    def both(x: Any, y: Any) -> Any:
        return y + 1.0, x * 2.0, x + 0.0

    x, y = ts.ones((3, 4)), ts.zeros((9,))
    pointers = {x.pointer, y.pointer}
    results = both(x, y)
    assert [one.numpy().flat[0] for one in results] == [1.0, 2.0, 1.0]
    assert len({one.pointer for one in results}) == 3
    assert results[0].pointer in pointers


def test_an_argument_is_gone_where_the_call_fails() -> None:
    @jit(donate_argnums=0)
    def bad(x: Any) -> Any:
        return ts.log(x)

    x = ts.full((3,), -1.0)
    with knobs.checks.using("nan"), pytest.raises(ts.TesseraError, match="log made NaN"):
        bad(x)
    with pytest.raises(EffectError, match="donated"):
        _ = x.shape


def test_on_a_gpu(gpu: Imitation) -> None:
    weights, gradient = ts.ones((6,)).cuda(), ts.full((6,), 0.25).cuda()
    address = weights.pointer
    for iteration in range(1, 4):
        weights = step(weights, gradient)
        assert weights.pointer == address
        assert set(weights.cpu().numpy()) == {np.float32(1 - 0.125 * iteration)}
    beside = weights[1:]
    assert step(weights, gradient).pointer != address
    assert set(beside.cpu().numpy()) == {np.float32(0.625)}


@pytest.fixture
def one_stream() -> Iterator[None]:
    """Streams that earlier tests of this process made are forgotten: with several of them, nothing is donated."""
    before = list(SEVERAL)
    SEVERAL.clear()
    yield
    SEVERAL.extend(before)


@pytest.mark.gpu
@pytest.mark.usefixtures("one_stream")
def test_on_a_real_gpu() -> None:
    for size in SIZES:
        weights, gradient = ts.ones((size,), device="cuda:0"), ts.full((size,), 0.25, device="cuda:0")
        address = weights.pointer
        for iteration in range(1, 4):
            weights = step(weights, gradient)
            assert weights.pointer == address
            assert set(weights.cpu().numpy()) == {np.float32(1 - 0.125 * iteration)}


def test_memory_of_numpy_is_taken_where_nothing_else_refers_to_it() -> None:
    for size in range(1, 9):  # some of them lie at multiples of 64 bytes, and are not copied
        weights = ts.asarray(np.ones((16, 16 * size), np.float32))
        gradient, address = ts.ones((16, 16 * size)), weights.pointer
        is_aligned = address % 64 == 0
        for _ in range(2):
            weights = step(weights, gradient)
            assert not is_aligned or weights.pointer == address
        assert set(weights.numpy().flat) == {0.0}


def test_memory_that_is_not_ours_is_not_taken() -> None:
    class Held:
        geometry = np.frombuffer(memoryview(b"0" * 64), np.uint8)

    assert taken(Held(), (4,), np.dtype(np.uint8)) is None


VIEW, TILE = "!tile.view<1, f32, global>", "tensor<8xf32>"
HEAD = """
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %number = tile.program_id 0
  %at = arith.muli %number, %eight : index
"""
LOADS = f"  %a = tile.load %x[%at] : {VIEW} -> {TILE}\n  %b = tile.load %y[%at] : {VIEW} -> {TILE}\n"
SUM = f"  %s = tile.ew<add> %a, %b : {TILE}, {TILE} -> {TILE}\n"
STORE = f"  tile.store %s, %z[%at] : {TILE}, {VIEW}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (HEAD + LOADS + SUM + STORE, (0, 1)),
        (HEAD + LOADS.replace("%y[%at]", "%y[%zero]") + SUM + STORE, (0,)),
        (HEAD + LOADS.replace("%y", "%x") + SUM + STORE, ()),
        (HEAD + LOADS + SUM.replace("%a, %b", "%a, %a") + STORE, (0,)),
        (HEAD + LOADS + SUM + STORE + STORE.replace("%at", "%zero"), ()),
        (HEAD + LOADS + SUM + STORE.replace("%at", "%zero"), ()),
        (HEAD + LOADS + SUM + STORE.replace("%z", "%x"), ()),
    ],
    ids=["same place", "another place", "read twice", "not used", "two stores", "stored elsewhere", "its own"],
)
def test_what_a_result_may_overwrite(body: str, expected: tuple[int, ...]) -> None:
    head = f"tile.func @f(%x: {VIEW}, %y: {VIEW}, %z: {VIEW}) outputs 1 shapes [[N], [N], [N]] grid [2]"
    (function,) = text.read(f"{head} {{{body}  tile.return\n}}").body.block.ops
    assert isinstance(function, tile.FuncOp)
    assert overwritable(function) == expected


KEYS: dict[str, Any] = {
    "behind two axes": unary(lambda p: (slice(None), slice(None), p)),
    "one row": unary(lambda p: p),
    "rows from a start": unary(lambda p: (slice(None), slice(p, p + 2))),
    "known rows": unary(lambda _: (slice(1, 3), 2)),
    "two numbers": unary(lambda p: (p, slice(None), p)),
    "every second": unary(lambda _: slice(None, None, 2)),
    "an array": unary(lambda p: (slice(None), [0, 2], p)),
}


@pytest.mark.parametrize("name", KEYS)
def test_updates_write_what_changes(name: str) -> None:
    key = KEYS[name]
    stored = jit(binary(lambda x, p: x.at[key(p)].set(2.0)), donate_argnums=0)
    added = jit(binary(lambda x, p: x.at[key(p)].add(2.0)), donate_argnums=0)
    for function, wanted in ((stored, 2.0), (added, 3.0)):
        x = ts.ones((4, 3, 5, 2))
        address = x.pointer
        found = function(x, 1)
        expected = np.ones((4, 3, 5, 2), np.float32)
        expected[key(1)] = wanted
        assert np.array_equal(found.numpy(), expected)
        assert found.pointer == address


def test_updates_leave_what_others_need() -> None:
    x = ts.ones((3, 4))
    assert jit(binary(lambda x, p: x.at[p].set(0.0)))(x, 1)[1].tolist() == [0.0] * 4
    assert set(x.numpy().flat) == {1.0}
    old, new = jit(binary(lambda x, p: (x * 2.0, x.at[p].set(0.0))), donate_argnums=0)(ts.ones((3, 4)), 1)
    assert (old[1].tolist(), new[1].tolist()) == ([2.0] * 4, [0.0] * 4)
    doubled = jit(binary(lambda x, p: ((y := x * 2.0).at[p].set(0.0), y)))
    new, old = doubled(ts.ones((3, 4)), 1)
    assert (old[1].tolist(), new[1].tolist()) == ([2.0] * 4, [0.0] * 4)
    reversed_ = jit(binary(lambda x, i: x.at[i].set(x[::-1][:2])), donate_argnums=0)
    assert reversed_(ts.asarray([1, 2, 3, 4]), ts.asarray([3, 0])).tolist() == [3, 2, 3, 4]
    assert jit(unary(lambda x: x.at[x[0]].set(x[1])), donate_argnums=0)(ts.asarray([1, 7, 2])).tolist() == [1, 7, 2]


def test_updates_one_after_the_other_need_one_copy() -> None:
    both = jit(binary(lambda x, p: x.at[p].set(0.0).at[:, p].add(5.0)))
    assert both(ts.ones((2, 3)), 1).tolist() == [[1.0, 6.0, 1.0], [0.0, 5.0, 0.0]]
    (variant,) = both.explain().variants
    bound = variant.program.bind([ts.ones((2, 3)), ts.asarray(1)])
    assert sum(isinstance(act, Move) for act in bound.buffers.acts) == 1


def test_loops_carry_what_they_update() -> None:
    @jit
    def filled(x: Any) -> Any:
        return ts.scan(lambda c, i: (c.at[i].set(ts.sum(c)), i), x, ts.arange(3))[0]

    assert filled(ts.ones((4,))).tolist() == [4.0, 7.0, 13.0, 1.0]
