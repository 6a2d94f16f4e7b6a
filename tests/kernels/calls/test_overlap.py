"""Kernels whose arguments share memory: loads and stores happen in the order in which they are written."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.compiler.launch_plan import Plan
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.tile.dialect import FuncOp, memory_of
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.runtime.native import launch as host_launch
from tessera.runtime.native import objects
from tessera.runtime.program.overlap import OverlapError
from tessera.tile.calls.overlapping import merged_groups
from tessera.tile.calls.settings import settings

if TYPE_CHECKING:
    Filled = Any
else:
    from tessera import Out as Filled

BACKENDS = ("interpreter", "cpu")


@kernel
def transpose(x: Any, y: Filled):
    tile.store(y, tile.load(x, at=(0, 0), shape=(16, 16)).T, at=(0, 0))


@kernel
def shift(x: Any, y: Filled):
    tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(1,))


@kernel
def store_between(x: Any, y: Filled):
    first = tile.load(x, at=(0,), shape=(8,))
    tile.store(y, first * 2.0, at=(0,))
    second = tile.load(x, at=(3,), shape=(8,))
    tile.store(y, first + second, at=(1,))


@kernel
def stores_meet(x: Any, y: Filled, z: Filled):
    rows = tile.load(x, at=(0,), shape=(8,))
    tile.store(y, rows * 2.0, at=(0,))
    tile.store(z, rows, at=(1,))


@kernel
def swap(x: Any, y: Filled):
    top, bottom = tile.load(x, at=(0, 0), shape=(8, 16)), tile.load(x, at=(8, 0), shape=(8, 16))
    tile.store(y, bottom, at=(0, 0))
    tile.store(y, top, at=(8, 0))


@kernel
def square(x: Any, y: Filled):
    rows = tile.load(x, at=(0, 0), shape=(16, 16))
    tile.store(y, tile.dot(rows, rows), at=(0, 0))


@kernel
def running(x: Any, y: Filled):
    for place in tile.range(4):
        tile.store(y, tile.load(x, at=(4 * place,), shape=(4,)) + 1.0, at=(4 * place + 4,))


@kernel
def added(x: Any, y: Filled):
    tile.atomic_add(y, tile.load(x, at=(0,), shape=(8,)), at=(2,))
    tile.store(y, tile.load(x, at=(1,), shape=(8,)), at=(0,))


@kernel
def double(x: Any, y: Filled):
    rows = tile.program_id(0) * 16
    tile.store(y, tile.load(x, at=(rows,), shape=(16,)) * 2.0, at=(rows,))


def _running(x: Any, y: Any) -> None:
    for index in range(4):
        y[4 * index + 4 : 4 * index + 8] = x[4 * index : 4 * index + 4] + 1


def _stores_meet(x: Any, y: Any, z: Any) -> None:
    rows = x[:8].copy()
    y[:8] = rows * 2
    z[1:9] = rows


def _store_between(x: Any, y: Any) -> None:
    first = x[:8].copy()
    y[:8] = first * 2
    y[1:9] = first + x[3:11]


def _swap(x: Any, y: Any) -> None:
    top, bottom = x[:8].copy(), x[8:].copy()
    y[:8], y[8:] = bottom, top


def _added(x: Any, y: Any) -> None:
    y[2:10] += x[:8].copy()
    y[:8] = x[1:9].copy()


def _moved(target: slice, source: slice) -> Callable[[Any, Any], None]:
    def move(x: Any, y: Any) -> None:
        y[target] = x[source].copy()

    return move


def _transpose(x: Any, y: Any) -> None:
    y[...] = x.T.copy()


def _square(x: Any, y: Any) -> None:
    y[...] = x @ x


def whole(array: Any) -> tuple[Any, Any]:
    return array, array


def pushed(array: Any) -> tuple[Any, Any]:
    return array[: len(array) - 3], array[3:]


CASES: dict[str, tuple[Any, Callable[..., None], tuple[int, ...], Callable[[Any], tuple[Any, ...]]]] = {
    "transpose": (transpose, _transpose, (16, 16), whole),
    "shift": (shift, _moved(slice(1, 9), slice(0, 8)), (20,), whole),
    "shift, views": (shift, _moved(slice(1, 9), slice(0, 8)), (20,), pushed),
    "shift, backwards": (shift, _moved(slice(1, 9), slice(0, 8)), (20,), lambda array: (array, array[::-1])),
    "shift, every other": (shift, _moved(slice(1, 9), slice(0, 8)), (40,), lambda array: (array, array[1::2])),
    "store between": (store_between, _store_between, (20,), whole),
    "store between, views": (store_between, _store_between, (20,), pushed),
    "two that are written": (stores_meet, _stores_meet, (20,), lambda array: (np.ones(20, "f4"), array, array)),
    "all one": (stores_meet, _stores_meet, (20,), lambda array: (array, array, array)),
    "two of three": (stores_meet, _stores_meet, (20,), lambda array: (array, array[2:], np.zeros(20, "f4"))),
    "swap": (swap, _swap, (16, 16), whole),
    "square": (square, _square, (16, 16), whole),
    "loop": (running, _running, (24,), whole),
    "loop, views": (running, _running, (27,), pushed),
    "atomics": (added, _added, (20,), whole),
}


@pytest.mark.parametrize("name", CASES)
def test_order_is_that_of_the_program(name: str) -> None:
    program, reference, shape, views = CASES[name]
    for level in (3, 0):
        for backend in BACKENDS:
            array = (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float32)
            wanted = array.copy()
            reference(*views(wanted))
            with knobs.backend.using(backend), knobs.optimization.using(level):
                program[1](*views(array))
            assert np.array_equal(array, wanted), (backend, level)


def test_calls_with_and_without_overlap_alternate() -> None:
    """A call that overlaps does not change what others run, and the other way round."""
    x, y = np.arange(20, dtype=np.float32), np.zeros(20, np.float32)
    for _ in range(3):
        shift[1](x, y)
        assert np.array_equal(y[1:9], x[:8])
        both = x.copy()
        shift[1](both, both)
        assert np.array_equal(both[1:9], x[:8])
        tensor = ts.asarray(x.copy())
        shift[1](tensor, tensor)
        assert np.array_equal(np.asarray(tensor)[1:9], x[:8])


def test_program_instances_that_keep_to_their_own_elements() -> None:
    array = np.arange(64, dtype=np.float32)
    double[4](array, array)
    assert np.array_equal(array, 2 * np.arange(64))


def test_empty_arrays_overlap_nothing() -> None:
    array = np.arange(20, dtype=np.float32)
    shift[1](array[:0], array)
    assert array[1:9].tolist() == [0.0] * 8


def test_slower_programs_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    array = np.arange(16, dtype=np.float32)

    @kernel
    def copied(x: Any, y: Filled):
        tile.store(y, tile.load(x, at=(0,), shape=(8,)), at=(2,))

    with knobs.logs.using(frozenset({"fallbacks"})), caplog.at_level(logging.WARNING, "tessera.fallbacks"):
        copied[1](array, array)
        copied[1](array, array)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["copied: x and y overlap, so it is compiled to load and store in the order in which it is written"]


def test_tiers_leave_overlapping_arrays_to_the_plain_kernel() -> None:
    with MetaTracingRuntime(RuntimeConfig(background_compilation=False)) as runtime:
        tiered = runtime.tiered(shift[1])
        for iteration in range(8):
            x, y = ts.arange(20, dtype=ts.f32), ts.zeros((20,))
            target = x if iteration % 2 else y
            tiered(x, target)
            assert np.asarray(target)[1:9].tolist() == list(range(8)), iteration


def test_launches_compare_addresses_wherever_they_are_made() -> None:
    """With and without the interpreter's own layout: nothing runs, and the status says why."""
    values = np.arange(16, dtype=np.float32)
    chosen = settings()
    assert chosen is not None
    executable = shift[1].program_for((values, values), {}, chosen)[0].executable
    assert executable is not None
    plan = executable.plan
    assert plan.apart == ((0, 1),)
    assert Plan.decoded(json.loads(json.dumps(plan.encoded()))).apart == plan.apart
    run = executable.bind([values, values])
    with pytest.raises(OverlapError, match="arguments 0 and 1 overlap"):
        run(values, values)
    assert np.array_equal(values, np.arange(16))
    assert objects.are_known()
    pair = host_launch.Pair(8, 9, -64, 64)
    slow = host_launch.through_ctypes(0, bytes(8 * 12), [("array", 8), ("array", 9)], 0, 1, None, [pair])
    assert slow(values, values) == host_launch.OVERLAP


def test_groups_with_a_common_member_are_one() -> None:
    assert merged_groups([("a", "b"), ("c", "d"), ("b", "e")]) == (("a", "b", "e"), ("c", "d"))
    assert merged_groups([("a", "b"), ("c", "d"), ("d", "a")]) == (("a", "b", "c", "d"),)


def test_passes_see_one_memory() -> None:
    source = """
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[X], [Y]] grid [1]
    attributes {tile.overlapping = array<i64: 0, 0>} {
  tile.return
}"""
    function = symbol_in(text.read(source), "f", FuncOp)
    assert memory_of(function.arguments[1]) is function.arguments[0]
