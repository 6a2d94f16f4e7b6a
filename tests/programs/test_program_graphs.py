"""Programs whose launches are replayed as graphs: nodes of launch plans, and only what changed goes to the driver."""

from __future__ import annotations

import gc
from threading import Thread
from typing import Any

import numpy as np
import pytest
from imitated_gpu import Imitation
from program_cases import CHAIN, check_close, drawn, expected, program_of
from test_program_control import BRANCH, SCAN, flag

import tessera as ts
from tessera import Tensor, jit
from tessera.runtime.cuda.streams import Stream


def values_of(seed: int = 0) -> list[Tensor]:
    return [drawn((20, 32), seed=seed), drawn((20, 32), seed=seed + 1), drawn((32,), seed=seed + 2)]


def test_all_launches_are_one_graph(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    first, second = values_of(), values_of(7)
    given, other = [value.to("cuda") for value in first], [value.to("cuda") for value in second]
    bound = program.bind(given, graph=True)
    assert bound.recorded == len(program.kernels) == 6
    check_close(bound(*given), expected(CHAIN, first))
    assert len(gpu.replayed) == 1
    assert gpu.launched == list(program.kernels)
    assert (gpu.joined, gpu.early) == (5, 0)
    told = len(gpu.changed)
    for _ in range(3):  # results go back to where the next ones are taken from, so nothing changes
        check_close(bound(*given), expected(CHAIN, first))
    assert len(gpu.changed) == told
    check_close(bound(given[0], other[1], given[2]), expected(CHAIN, [first[0], second[1], first[2]]))
    assert told < len(gpu.changed) < 2 * told
    assert len(set(gpu.replayed)) == 1


ROWS = """
graph.func @main(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[64, 64], f32>) -> (!graph.tensor<[1, 64], f32>) {
  %y = graph.matmul %x, %w : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 64], f32> -> !graph.tensor<[1, 64], f32>
  %z = graph.matmul %y, %w : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 64], f32> -> !graph.tensor<[1, 64], f32>
  graph.return %z : !graph.tensor<[1, 64], f32>
}
"""


def test_products_of_one_row_are_started_before_those_in_front_have_ended(gpu: Imitation) -> None:
    """They wait by themselves, when they have read their weights."""
    program = program_of(ROWS, "cuda")
    given = [drawn((1, 64)), drawn((64, 64), seed=1)]
    bound = program.bind([value.to("cuda") for value in given], graph=True)
    assert bound.recorded == 2
    check_close(bound(*(value.to("cuda") for value in given)), expected(ROWS, given))
    assert (gpu.joined, gpu.early) == (0, 1)


def test_results_that_are_kept_are_not_written_again(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    first, second = values_of(), values_of(7)
    given, other = [value.to("cuda") for value in first], [value.to("cuda") for value in second]
    bound = program.bind(given, graph=True)
    kept = [bound(*given), bound(*other), bound(*given)]
    for results, wanted in zip(kept, (first, second, first), strict=True):
        check_close(results, expected(CHAIN, wanted))


def test_streams_and_threads_have_recordings_of_their_own(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    first = values_of()
    given = [value.to("cuda") for value in first]
    bound = program.bind(given, graph=True)
    bound(*given)
    with Stream("cuda:0"):
        check_close(bound(*given), expected(CHAIN, first))
    assert len(set(gpu.replayed)) == 2
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                check_close(bound(*given), expected(CHAIN, first))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_branches_and_loops(gpu: Imitation) -> None:
    for source, values in (
        (BRANCH, [drawn((9,)), flag(True)]),
        (BRANCH, [drawn((9,)), flag(False)]),
        (SCAN.replace("REVERSE", ""), [drawn((5,)), drawn((3, 5), seed=1)]),
    ):
        program = program_of(source, "cuda")
        given = [value.to("cuda") for value in values]
        check_close(program.bind(given, graph=True)(*given), expected(source, values))
    assert gpu.launched


def test_a_thread_that_is_new_to_the_gpu_tries_again(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    first = values_of()
    given = [value.to("cuda") for value in first]
    bound = program.bind(given, graph=True)
    for _ in range(2):  # refused at its first node, and at the launch of the graph
        gpu.lost = 1
        check_close(bound(*given), expected(CHAIN, first))
    assert gpu.launched == 2 * list(program.kernels)


def test_graphs_go_with_their_program(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    given = [value.to("cuda") for value in values_of()]
    bound = program.bind(given, graph=True)
    bound(*given)
    assert len(gpu.graphs) == 1
    del bound
    gc.collect()
    assert not gpu.graphs


def test_jitted_functions_ask_for_graphs(gpu: Imitation) -> None:
    @jit(graphs=True)
    def f(x: Any, w: Any) -> Any:
        return ts.tanh(x @ w) @ w

    x, w = drawn((16, 32)), drawn((32, 32), seed=1)
    given = x.to("cuda"), w.to("cuda")
    plain = jit(f.function)(*given)
    launches = len(gpu.launched)
    assert not gpu.replayed
    for _ in range(2):
        assert np.array_equal(f(*given).cpu().numpy(), plain.cpu().numpy())
    assert len(gpu.replayed) == 2
    assert len(gpu.launched) == 3 * launches >= 6


def test_what_cannot_be_replayed_is_launched() -> None:
    program = program_of(CHAIN)
    first = values_of()
    bound = program.bind(first, graph=True)
    assert bound.recorded == 0
    check_close(bound(*first), expected(CHAIN, first))


@pytest.mark.gpu
def test_graphs_of_a_gpu() -> None:
    program = program_of(CHAIN, "cuda")
    first, second = values_of(), values_of(7)
    given, other = [value.to("cuda") for value in first], [value.to("cuda") for value in second]
    bound = program.bind(given, graph=True)
    assert bound.recorded == len(program.kernels)
    kept = [bound(*one) for one in (given, other, given, given, other)]
    for results, wanted in zip(kept, (first, second, first, first, second), strict=True):
        check_close(results, expected(CHAIN, wanted))
    with Stream("cuda:0"):
        check_close(bound(*given), expected(CHAIN, first))
    for seed in range(20):  # more in flight than there are recordings
        several = values_of(seed)
        moved = [value.to("cuda") for value in several]
        check_close(bound(*moved), expected(CHAIN, several))
    ts.empty(1, device="cuda")
