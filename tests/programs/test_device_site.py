"""Programs of a GPU where there is none: code of sm_90a that ptxas takes, and launches with an imitated driver."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imitated_gpu import Imitation
from program_cases import CHAIN, check, check_close, drawn, expected, program_of, tensor
from test_program_control import BRANCH, FIBONACCI, SCAN, flag

import tessera as ts
from tessera import jit
from tessera.errors import EffectError
from tessera.lang.operators import matmul
from tessera.programs.lowered import host_of
from tessera.programs.machine_code import machine_code
from tessera.runtime.cuda.pool import Pool, rounded
from tessera.runtime.cuda.streams import default_stream
from tessera.runtime.device.memory import data_address
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.tile.calls.settings import Settings

HOPPER = Settings("cuda", "sm_90a", 3, frozenset(), True, True)


def test_code_of_programs_assembles() -> None:
    program = program_of(CHAIN, HOPPER)
    text = program.levels.asm.text
    assert text.count(".visible .entry") == len(program.host.kernels) == 5
    for part in text.split(".version")[1:]:
        assert assemble(f".version{part}", "sm_90a").cubin


def test_code_that_is_shown_is_code_that_runs() -> None:
    row, weights = tensor("1, 64"), tensor("64, 128")
    program = program_of(
        f"""
    graph.func @main(%x: {row}, %w: {weights}) -> ({tensor("1, 128")}) {{
      %p = graph.matmul %x, %w : {row}, {weights} -> {tensor("1, 128")}
      graph.return %p : {tensor("1, 128")}
    }}""",
        HOPPER,
    )
    (kernel,) = program.host.kernels
    code = machine_code(program.codes.tile_module, kernel, HOPPER, (True, True, True)).code
    assert program.levels.asm.text.strip() == code.decode().strip()
    assert b"griddepcontrol.wait" in code


def test_launches_go_to_the_driver_in_order(gpu: Imitation) -> None:
    values = [drawn((20, 32)), drawn((20, 32), seed=1), drawn((32,), seed=2)]
    program = check(CHAIN, values, "cuda")
    assert gpu.launched == [*program.kernels, *program.kernels]
    (arena,) = default_stream("cuda:0").arenas
    assert program.memory is not None
    assert arena[1] == program.memory.arena > 0


def test_rows_that_lie_badly_get_code_of_their_own(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    for columns in (32, 64, 33, 35):
        values = [drawn((20, columns)), drawn((20, columns), seed=1), drawn((columns,), seed=2)]
        given = [value.to("cuda") for value in values]
        check_close(program.bind(given)(*given), expected(CHAIN, values))
    assert program.codes.compiled == 2 * len(program.host.kernels)


def test_control_flow(gpu: Imitation) -> None:
    check(FIBONACCI, [ts.ones(7), ts.ones(7), ts.full((), 3.0), ts.ones(14)[::2]], "cuda")
    check(BRANCH, [drawn((9,)), flag(True)], "cuda")
    check(BRANCH, [drawn((18,))[::-2], flag(False)], "cuda")
    check(SCAN.replace("REVERSE", " reverse"), [drawn((5,)), drawn((3, 5), seed=1)], "cuda")
    assert gpu.launched


def test_effects_and_constants(gpu: Imitation) -> None:
    kind = tensor("3")
    source = f"""
    graph.state @total : {kind}
    graph.func @main(%a: {kind}) -> ({kind}, {kind}) effects [random, "state(total)"] {{
      %c = graph.constant {kind} = [1.0, -2.5, 4.0]
      %u = graph.random<uniform> : {kind}
      %t = graph.state_read @total : {kind}
      %s = graph.ew<add> %t, %c : {kind}, {kind} -> {kind}
      graph.state_write @total, %s : {kind}
      %v = graph.ew<add> %s, %u : {kind}, {kind} -> {kind}
      graph.return %v, %c : {kind}, {kind}
    }}"""
    program = program_of(source, "cuda")
    given = [drawn((3,)).to("cuda")]
    bound = program.bind(given)
    first, second = bound(*given)[0].cpu().numpy(), bound(*given)
    assert ((second[0].cpu().numpy() - first).round().tolist()) == pytest.approx([1.0, -2.0, 4.0], abs=1.01)
    assert second[1].cpu().tolist() == [1.0, -2.5, 4.0]
    assert gpu.launched


def test_a_thread_that_is_new_to_the_gpu_tries_again(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    values = [drawn((20, 32)), drawn((20, 32), seed=1), drawn((32,), seed=2)]
    given = [value.to("cuda") for value in values]
    bound = program.bind(given)
    gpu.lost = 1
    check_close(bound(*given), expected(CHAIN, values))
    assert gpu.launched == list(program.kernels)


def test_tensor_maps_are_made_for_addresses_that_are_new(gpu: Imitation) -> None:
    def product(x: Any, y: Any) -> Any:
        return matmul(x, y)

    hosts = [drawn((128, 128), ts.bf16, seed=seed) for seed in range(3)]
    x, y, other = (one.to("cuda") for one in hosts)
    program = jit(product).lower(x, y).program
    bound = program.bind([x, y])
    gpu.lost_maps = 1  # the first of them, on a thread that is new
    first = bound(x, y)
    count = len(gpu.mapped)
    assert count >= 2
    assert {data_address(one.geometry) for one in (x, y)} <= set(gpu.mapped)
    found = first[0].cpu().tolist()
    del first  # its memory serves again
    assert bound(x, y)[0].cpu().tolist() == found
    assert len(gpu.mapped) == count
    changed = bound(other, y)[0].cpu()
    assert data_address(other.geometry) in gpu.mapped[count:]
    exact = hosts[2].numpy().astype(float) @ hosts[1].numpy().astype(float)
    check_close([changed], [exact.astype(ts.bf16.storage)])
    assert len(gpu.mapped) == 2 * count


def test_programs_are_not_recorded(gpu: Imitation) -> None:
    program = program_of(CHAIN, "cuda")
    given = [drawn((20, 32)).to("cuda"), drawn((20, 32)).to("cuda"), drawn((32,)).to("cuda")]
    bound = program.bind(given)
    graph: object = object()
    with default_stream("cuda:0").recording(graph), pytest.raises(EffectError, match="cannot be recorded"):  # pyright: ignore[reportArgumentType]
        bound(*given)
    assert not gpu.launched


def test_kernels_are_told_apart_by_what_they_do() -> None:
    assert len({kernel.hash for kernel in program_of(CHAIN, HOPPER).host.kernels}) == 5
    assert host_of(program_of(CHAIN, HOPPER).codes.tile_module) == program_of(CHAIN, HOPPER).host


@given(st.integers(0, 1 << 40))
def test_sizes_are_rounded_to_few(nbytes: int) -> None:
    size = rounded(nbytes)
    assert rounded(size) == size
    assert nbytes <= size <= max(512, nbytes + max(511, nbytes // 16))
    assert size % 512 == 0


def test_many_lengths_share_memory(gpu: Imitation) -> None:
    stream = default_stream("cuda:0")
    pool, before = Pool.of(stream.context), len(gpu.allocated)
    for length in random.Random(0).sample(range(1, 2048), 300):
        pool.allocate(stream, 64 * length)
    assert len(gpu.allocated) - before <= 80  # and not one for each length
