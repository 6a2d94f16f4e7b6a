"""Checks the world that effects act on: random stream, state, ranks and output, in order and without hanging."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from reference_values import Array, assert_same
from xdsl.dialects.builtin import ModuleOp

from tessera.errors import EffectError, TesseraError
from tessera.interpreters.core.machine import Machine, run_ranks
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text

T = TypeVar("T")
DRAW = text.read("""
graph.func @f() -> (!graph.tensor<[3], f32>, !graph.tensor<[2, 2], f32>) effects [random] {
  %a = graph.random<uniform> : !graph.tensor<[3], f32>
  %b = graph.random<normal> : !graph.tensor<[2, 2], f32>
  graph.return %a, %b : !graph.tensor<[3], f32>, !graph.tensor<[2, 2], f32>
}
""")


# The random stream.


def test_a_seed_gives_the_same_numbers_and_another_gives_others() -> None:
    first, again, other = (run_function(DRAW, "f", [], machine=Machine(seed=seed)) for seed in (5, 5, 6))
    for a, b, c in zip(first, again, other, strict=True):
        assert_same(a, b)
        assert (a != c).all()


def test_the_stream_moves_on_by_what_was_drawn() -> None:
    machine = Machine(seed=5)
    first = run_function(DRAW, "f", [], machine=machine)
    assert machine.position == 7
    second = run_function(DRAW, "f", [], machine=machine)
    assert machine.position == 14
    assert all((a != b).all() for a, b in zip(first, second, strict=True))


def test_numbers_depend_on_the_position_alone() -> None:
    machine = Machine(seed=5)
    run_function(DRAW, "f", [], machine=machine)
    straight = run_function(DRAW, "f", [], machine=machine)
    for a, b in zip(run_function(DRAW, "f", [], machine=Machine(seed=5, position=7)), straight, strict=True):
        assert_same(a, b)


def test_drawing_nothing_moves_nothing() -> None:
    module = text.read(
        "graph.func @f() -> (!graph.tensor<[0], f32>) effects [random] {"
        "%a = graph.random<normal> : !graph.tensor<[0], f32>\n graph.return %a : !graph.tensor<[0], f32> }"
    )
    machine = Machine(position=3)
    (found,) = run_function(module, "f", [], machine=machine)
    assert found.shape == (0,)
    assert machine.position == 3


def test_a_seed_that_is_none_is_refused() -> None:
    with pytest.raises(TesseraError, match="64-bit"):
        run_function(DRAW, "f", [], machine=Machine(seed=-1))


# State.

COUNTER = text.read("""
graph.state @count : !graph.tensor<[2], i32>
graph.func @add(%x: !graph.tensor<[2], i32>) -> (!graph.tensor<[2], i32>) effects ["state(count)"] {
  %old = graph.state_read @count : !graph.tensor<[2], i32>
  %new = graph.ew<add> %old, %x : !graph.tensor<[2], i32>, !graph.tensor<[2], i32> -> !graph.tensor<[2], i32>
  graph.state_write @count, %new : !graph.tensor<[2], i32>
  graph.return %old : !graph.tensor<[2], i32>
}
graph.func @put(%x: !graph.tensor<[2], i32>) effects ["state(count)"] {
  graph.state_write @count, %x : !graph.tensor<[2], i32>
  graph.return
}
""")


def test_a_slot_is_zero_before_it_is_written_and_outlives_calls() -> None:
    machine, step = Machine(), np.array([1, 2], np.int32)
    seen = [run_function(COUNTER, "add", [step], machine=machine)[0].tolist() for _ in range(3)]
    assert seen == [[0, 0], [1, 2], [2, 4]]
    assert machine.slots["count"].tolist() == [3, 6]
    assert run_function(COUNTER, "add", [step], machine=Machine())[0].tolist() == [0, 0]


def test_what_callers_do_to_their_arrays_does_not_reach_a_slot() -> None:
    machine, x = Machine(), np.array([1, 2], np.int32)
    run_function(COUNTER, "put", [x], machine=machine)
    x[:] = 7
    (read,) = run_function(COUNTER, "add", [np.zeros(2, np.int32)], machine=machine)
    read[:] = 9
    assert run_function(COUNTER, "add", [x], machine=machine)[0].tolist() == [1, 2]


# Output.

PRINT = text.read("""
graph.func @f(%x: !graph.tensor<[2], i32>) effects [io] {
  graph.print "first", %x : !graph.tensor<[2], i32>
  graph.print "second", %x : !graph.tensor<[2], i32>
  graph.return
}
""")


def test_output_goes_where_the_machine_says_in_program_order() -> None:
    written: list[str] = []
    run_function(PRINT, "f", [np.array([1, 2], np.int32)], machine=Machine(write=written.append))
    assert written == ["first [1 2]\n", "second [1 2]\n"]


def test_output_goes_to_the_standard_output_of_the_moment() -> None:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        run_function(PRINT, "f", [np.array([1, 2], np.int32)])
    assert stream.getvalue() == "first [1 2]\nsecond [1 2]\n"


# Ranks.


def reducing(*kinds: str, size: int | str = "N", axis: str = "mesh") -> ModuleOp:
    """@f combines its argument over the ranks, once per kind, one after the other."""
    type_ = f"!graph.tensor<[{size}], f32>"
    steps = [
        f'%{i + 1} = graph.all_reduce<{kind}> %{i} over "{axis}" : {type_} -> {type_}' for i, kind in enumerate(kinds)
    ]
    return text.read(
        f'graph.func @f(%0: {type_}) -> ({type_}) effects ["collective({axis})"] {{\n'
        + "\n".join([*steps, f"graph.return %{len(kinds)} : {type_}"])
        + "}"
    )


def finished(work: Callable[[], T]) -> T:
    """What `work` gives or raises; a test that hangs fails."""
    found: list[T | BaseException] = []

    def play() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "the ranks hang"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def on_ranks(size: int, *modules: ModuleOp) -> list[Array]:
    """Runs @f of the rank's module (the last one for all further ranks) on [rank + 1, 10 * rank]."""

    def body(rank: int, machine: Machine) -> Array:
        module = modules[min(rank, len(modules) - 1)]
        (found,) = run_function(module, "f", [np.array([rank + 1, 10 * rank], np.float32)], machine=machine)
        return found

    return finished(lambda: run_ranks(size, "mesh", body))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("kind", "combine"), [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)])
def test_collectives_combine_the_values_of_all_ranks(size: int, kind: str, combine: Callable[..., Any]) -> None:
    together = np.array([[rank + 1, 10 * rank] for rank in range(size)], np.float32)
    for found in on_ranks(size, reducing(kind)):
        assert_same(found, combine(together, axis=0).astype(np.float32))


def test_collectives_follow_each_other_in_order() -> None:
    # Each rank's sum, then the sum of those sums, and so on: 2 ranks double the first sum every time.
    for found in on_ranks(2, reducing(*["sum"] * 20)):
        assert found.tolist() == [3 * 2.0**19, 10 * 2.0**19]


def test_many_ranks_meet_many_times() -> None:
    kinds = ["max", "sum", "min"] * 4
    results = on_ranks(8, reducing(*kinds))
    assert all(found.tolist() == results[0].tolist() for found in results)
    assert results[0].tolist() == [8.0 * 8**4, 70.0 * 8**4]


def test_different_collectives_are_an_error_that_names_both() -> None:
    with pytest.raises(EffectError, match="different collectives") as caught:
        on_ranks(2, reducing("sum"), reducing("max"))
    assert "all_reduce<sum> of (2,) f32" in caught.value.message
    assert "all_reduce<max> of (2,) f32" in caught.value.message


def test_different_shapes_are_an_error_that_names_both() -> None:
    def body(rank: int, machine: Machine) -> Any:
        return run_function(reducing("sum"), "f", [np.zeros(rank + 1, np.float32)], machine=machine)

    with pytest.raises(EffectError, match=r"\(1,\) f32.*\(2,\) f32"):
        finished(lambda: run_ranks(2, "mesh", body))


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_a_rank_that_fails_gives_the_cause_and_no_rank_hangs(fails: int) -> None:
    def body(rank: int, machine: Machine) -> Any:
        if rank == fails:
            raise RuntimeError(f"rank {rank} broke")
        return run_function(reducing("sum"), "f", [np.zeros(2, np.float32)], machine=machine)

    with pytest.raises(RuntimeError, match=f"rank {fails} broke"):
        finished(lambda: run_ranks(3, "mesh", body))


@pytest.mark.parametrize("leaves", [0, 1, 2])
def test_a_rank_that_is_done_early_is_an_error_and_no_rank_hangs(leaves: int) -> None:
    modules = [reducing("sum") if rank == leaves else reducing("sum", "sum") for rank in range(3)]
    with pytest.raises(
        EffectError, match=rf"waits in all_reduce<sum> of \(2,\) f32 for rank {leaves}, which has stopped"
    ):
        on_ranks(3, *modules)


def test_results_are_kept_when_ranks_finish_at_different_times() -> None:
    hold = threading.Event()

    def body(rank: int, machine: Machine) -> Any:
        (found,) = run_function(reducing("sum"), "f", [np.ones(1, np.float32)], machine=machine)
        if rank == 0:
            hold.set()
        else:
            hold.wait(10)
        return found.tolist()

    assert finished(lambda: run_ranks(3, "mesh", body)) == [[3.0]] * 3


def test_an_axis_that_the_machine_does_not_have_is_named() -> None:
    module = reducing("sum", axis="other")
    with pytest.raises(EffectError, match="mesh axis 'other'") as caught:
        run_function(module, "f", [np.zeros(1, np.float32)])
    assert caught.value.hint is not None
    assert "none" in caught.value.hint
    with pytest.raises(EffectError) as caught:
        on_ranks(2, module)
    assert caught.value.hint is not None
    assert "mesh" in caught.value.hint


def test_ranks_have_seeds_of_their_own() -> None:
    assert finished(lambda: run_ranks(3, "mesh", lambda rank, machine: machine.seed)) == [0, 1, 2]
