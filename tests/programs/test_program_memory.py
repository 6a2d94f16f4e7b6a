"""Memory of programs: plans against the least that any plan needs, and no growth over many calls."""

from __future__ import annotations

import gc
import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import CHAIN, KERNELS, check, drawn, program_of, tensor
from test_program_control import SCAN

from tessera import f32
from tessera.programs import arenas, host, memory_plan
from tessera.programs.buffer_assignment import (
    TEMPORARY,
    Act,
    BufferAssignment,
    BufferSlice,
    KernelLaunch,
    Move,
    Piece,
    assign_buffers,
    reads_of,
    writes_of,
)
from tessera.programs.memory_plan import ALIGNMENT


def launches(*steps: tuple[tuple[int, ...], int], sizes: list[int], results: tuple[int, ...]) -> host.Host:
    """A program of one kernel each: which values it reads, and the one that it makes. Value 0 is the argument."""
    values = tuple(host.Array(f32, (size,)) for size in sizes)
    made = tuple(host.Launch(0, reads, (writes,)) for reads, writes in steps)
    return host.Host("main", values, (0,), made, results, (host.Kernel("kernel", "0"),))


def planned(program: host.Host, *, lend: bool = False) -> tuple[BufferAssignment, memory_plan.Plan]:
    shape = program.array(0).shape
    buffers = assign_buffers(program, {}, [(tuple(int(str(size)) for size in shape), (1,))])
    return buffers, memory_plan.plan(buffers, lend=lend)


def check_plan(plan: memory_plan.Plan) -> None:
    """No two arrays that are needed at once have a byte in common, and all of it is in the arena."""
    for index, one in enumerate(plan.slots):
        assert one.offset % ALIGNMENT == 0
        assert one.home is not None or one.offset + one.nbytes <= plan.nbytes
        for other in plan.slots[:index]:
            at_once = one.first <= other.last and other.first <= one.last
            apart = one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
            assert apart or not at_once or one.home != other.home
    assert plan.least <= plan.nbytes


def test_a_chain_needs_two_arrays() -> None:
    size, length = 1024, 9
    steps = [((number,), number + 1) for number in range(length)]
    program = launches(*steps, sizes=[size] * (length + 1), results=(length,))
    buffers, plan = planned(program)
    assert sum(piece.kind == TEMPORARY for piece in buffers.pieces) == length - 1
    assert plan.nbytes == plan.least == 2 * 4 * size
    check_plan(plan)


def test_what_is_needed_later_is_kept() -> None:
    program = launches(((0,), 1), ((1,), 2), ((2,), 3), ((3,), 4), ((4, 1), 5), sizes=[256] * 6, results=(5,))
    _, plan = planned(program)
    check_plan(plan)
    assert plan.nbytes == plan.least == 3 * 4 * 256


def test_small_arrays_fit_into_gaps() -> None:
    sizes = [64, 1024, 64, 512, 64, 512, 1024, 64]
    steps = [((0,), 1), ((1,), 2), ((1, 2), 3), ((3,), 4), ((3, 4), 5), ((5, 2), 6), ((6,), 7)]
    _, plan = planned(launches(*steps, sizes=sizes, results=(7,)))
    check_plan(plan)
    assert plan.nbytes == plan.least


@given(st.data())
@settings(max_examples=60)
def test_plans_of_random_programs_are_right_and_tight(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 24))
    sizes = data.draw(st.lists(st.integers(0, 5000), min_size=count + 1, max_size=count + 1))
    steps: list[tuple[tuple[int, ...], int]] = []
    for number in range(count):
        recent = st.integers(max(0, number - 4), number)
        steps.append((tuple(data.draw(st.lists(recent, min_size=1, max_size=3))), number + 1))
    program = launches(*steps, sizes=sizes, results=(count, data.draw(st.integers(1, count))))
    _, plan = planned(program)
    check_plan(plan)
    assert plan.nbytes <= 1.25 * plan.least
    buffers, lent = planned(program, lend=True)
    check_plan(lent)
    check_lent(buffers, lent)
    assert lent.least <= plan.least


def check_lent(buffers: BufferAssignment, plan: memory_plan.Plan) -> None:
    """What lies in a result is within it, and gone when it is written."""
    for slot in plan.slots:
        if slot.home is not None:
            written = [index for index, act in enumerate(buffers.acts, 1) if slot.home in _touched(act)]
            assert slot.last < min(written)
            assert slot.offset + buffers.pieces[slot.piece].nbytes <= buffers.pieces[slot.home].nbytes


def _touched(act: Act) -> set[int]:
    return {buffer.piece for buffer in (*reads_of(act), *writes_of(act))}


def test_results_lend_their_memory() -> None:
    size, length = 1000, 9
    steps = [((number,), number + 1) for number in range(length)]
    program = launches(*steps, sizes=[size] * (length + 1), results=(length,))
    buffers, plan = planned(program, lend=True)
    check_plan(plan)
    check_lent(buffers, plan)
    assert plan.nbytes == plan.least == 4096  # the other one of two lies in the result


def test_results_of_loops_are_right_where_they_lend() -> None:
    check(SCAN.replace("REVERSE", ""), [drawn((600,)), drawn((5, 600), seed=1)])


def test_moves_and_launches_count_alike() -> None:
    pieces = [Piece(TEMPORARY, 0, nbytes=400), Piece(TEMPORARY, 1, nbytes=400), Piece(TEMPORARY, 2, nbytes=400)]
    first, second, third = (BufferSlice(number, 0, f32, (100,), (1,)) for number in range(3))
    acts = (KernelLaunch(0, (first,), 1), Move(second, first), KernelLaunch(0, (second, third), 1))
    plan = memory_plan.plan(BufferAssignment(pieces, acts, [], []))
    check_plan(plan)
    assert plan.nbytes == 2 * 512
    assert plan.slots[0].offset == plan.slots[2].offset


K = tensor("B, S")
GRAPHS = {
    "chain": CHAIN,
    "kept": f"""{KERNELS}
    graph.func @main(%a: {K}, %b: {K}, %c: {tensor("S")}) -> ({K}) {{
      %d = graph.call_kernel @halve(%a) : ({K}) -> {K}
      %e = graph.call_kernel @halve(%d) : ({K}) -> {K}
      %f = graph.call_kernel @halve(%e) : ({K}) -> {K}
      %g = graph.call_kernel @halve(%f) : ({K}) -> {K}
      %h = graph.ew<sub> %g, %d : {K}, {K} -> {K}
      %i = graph.call_kernel @halve(%h) : ({K}) -> {K}
      %j = graph.ew<add> %i, %d : {K}, {K} -> {K}
      graph.return %j : {K}
    }}""",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_programs_need_little_more_than_what_is_alive(name: str, device: str) -> None:
    program = program_of(GRAPHS[name], device)
    values = [drawn((64, 96)).to(device), drawn((64, 96)).to(device), drawn((96,)).to(device)]
    program.bind(values)
    memory = program.memory
    assert memory is not None
    assert memory.least <= memory.arena <= 1.05 * memory.least
    assert memory.peak == memory.arena + memory.results


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_no_growth(device: str, calls: int) -> None:
    program = program_of(CHAIN, device)
    values = [drawn((64, 96)).to(device), drawn((64, 96)).to(device), drawn((96,)).to(device)]
    bound = program.bind(values)
    for _ in range(20):
        bound(*values)
    gc.collect()
    held, objects, resident = arenas.held(), len(gc.get_objects()), _resident()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(calls):
        bound(*values)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 16384
    assert len(gc.get_objects()) - objects < 50
    assert arenas.held() == held
    assert _resident() - resident < 8 << 20


def test_calls_leave_nothing_behind(device: str) -> None:
    check_no_growth(device, 300)


@pytest.mark.acceptance
def test_ten_thousand_calls_leave_nothing_behind(device: str) -> None:
    check_no_growth(device, 10_000)
