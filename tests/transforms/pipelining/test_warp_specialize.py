"""Checks warp-specialized kernels: they give the same bits in every order, and which loads share a ring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import BLOCK, DEPTH, KERNELS, LENGTHS, ROWS, STAGES, check_partitions, prepared
from random_matmuls import arguments as random_arguments
from random_matmuls import random_program
from rewritten_programs import count, rewritten
from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe.tile_scheduler import SchedulerFetchOp, SchedulerReadOp, WorkQueueOp
from tessera.ir.pipe.warp_groups import ConsumerReleaseOp, ConsumerWaitOp, ProducerCopyOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets import text
from tessera.transforms.loops.live_iterations import split_ranges
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.tile_order import BAND
from tessera.transforms.pipelining.warp_specialize import WarpSpecialize, warp_specialize

VIEW = "!tile.view<2, f32, global>"
PROGRAM = """
tile.func @k(%a: {VIEW}, %b: {VIEW}, %n: index, %y: {VIEW}) outputs 1 shapes [[M, 12], [12, 8], [], [M, 8]]
    grid ["(M + 11)//12", 2] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %c12 : index
  %column = arith.muli %across, %c4 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<12x4xf32>
{body}
  tile.return
}}
"""
LEFT = f"%l = tile.load %a[%row, %c0] : {VIEW} -> tensor<12x4xf32>\n"
RIGHT = f"%r = tile.load %b[%c0, %column] : {VIEW} -> tensor<4x4xf32>\n"
DOT = "%s = tile.dot %l, %r, %clear : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>\n"
STORE = f"tile.store %s, %y[%row, %column] : tensor<12x4xf32>, {VIEW}\n"


def kernel(body: str) -> str:
    return PROGRAM.format(VIEW=VIEW, body=body)


def arguments(n: int = 3, rows: int = 31) -> list[object]:
    chance = np.random.default_rng(rows)
    left, right = (chance.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, 12), (12, 8)))
    return [left, right, n, np.full((rows, 8), 7, np.float32)]


def partitions_of(function: tile.FuncOp) -> WarpSpecializeOp:
    (partitions,) = (op for op in function.body.block.ops if isinstance(op, WarpSpecializeOp))
    return partitions


def rings_of(function: tile.FuncOp) -> list[tuple[int, tuple[int, ...]]]:
    """The depth of each ring, and the shape of its tiles."""
    rings = [op.result for op in function.body.block.ops if isinstance(op, pipe.RingOp)]
    return [(pipe.ring_type(ring).depth.data, pipe.slot_type(ring).get_shape()) for ring in rings]


# Kernels as people write them


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("consumers", "depth", "bands"), [(1, 2, False), (2, 1, False), (3, 2, True)])
def test_kernels_give_the_same_bits(name: str, consumers: int, depth: int, bands: bool) -> None:
    module, given_ = KERNELS[name](LENGTHS[consumers])
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(
        module, lambda function: warp_specialize(function, consumers=consumers, depth=depth, bands=bands), given_
    )
    # Queries come once for each program instance.
    assert [slots for slots, _ in rings_of(function)][-2:] == [depth, depth]
    assert all(slots == 2 for slots, _ in rings_of(function)[:-2])
    stored = [op.value for op in partitions_of(function).walk() if isinstance(op, tile.StoreOp)]
    assert [tile_type(value).get_shape()[0] for value in stored] == [24 // consumers] * len(stored)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("length", [0, 41])
def test_skewed_kernels_give_the_same_bits(name: str, length: int) -> None:
    """Keys of the first iteration and of the others are one ring, and so are values of the last and of the others."""

    def specialize(function: tile.FuncOp) -> None:
        pipeline_dots(function)
        assert warp_specialize(function, consumers=3, depth=2)
        # Only the consumers have masks.
        split_ranges(function)

    module, given_ = STAGES[name](length)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(module, specialize, given_)
    assert len(rings_of(function)) == 3
    copies = list(partitions_of(function).producer.walk())
    assert sum(isinstance(op, ProducerCopyOp) for op in copies) == 5
    assert sum(isinstance(op, scf.ForOp | scf.WhileOp) for op in copies) == 2


def test_the_producer_has_what_it_needs_and_no_tiles() -> None:
    for name in STAGES:
        module, _, _ = rewritten(STAGES[name](20)[0], prepared)
        _, function, _ = rewritten(module, lambda function: warp_specialize(function, consumers=2, depth=2))
        copies = list(partitions_of(function).producer.walk())
        assert not any(str(value.type).startswith("tensor") for op in copies for value in op.results)
        assert sum(isinstance(op, ProducerCopyOp) for op in copies) == 3
        pure = [op for op in copies if op.results and not op.regions]
        assert all(value.first_use is not None for op in pure for value in op.results), text.write(function)


def test_values_of_all_instances_stand_in_front() -> None:
    module, _, _ = rewritten(STAGES["grouped queries"](20)[0], prepared)
    _, function, _ = rewritten(module, lambda function: warp_specialize(function, consumers=2, depth=2))
    partitions = partitions_of(function)
    assert not any(isinstance(op, tile.DimOp | tile.StrideOp) for op in partitions.walk())
    # But not ops that may fail: there may be no instance.
    assert not any(isinstance(op, arith.FloorDivSIOp) for op in function.body.block.ops)
    assert any(isinstance(op, arith.FloorDivSIOp) for op in partitions.producer.walk())


# Rings

TWICE = f"""
  %l = tile.load %a[%row, %c0] : {VIEW} -> tensor<12x4xf32>
  %m = tile.load %a[%row, %c4] : {VIEW} -> tensor<12x4xf32>
  %r = tile.load %b[%c0, %column] : {VIEW} -> tensor<4x4xf32>
  %t = tile.dot %l, %r, %clear : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
  %q = tile.load %b[%c4, %column] : {VIEW} -> tensor<4x4xf32>
  %s = tile.dot %m, %q, %t : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
{STORE}"""
ACROSS = f"""
{LEFT}
  %o = tile.load %b[%c4, %column] : {VIEW} -> tensor<4x4xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %clear) -> (tensor<12x4xf32>) {{
    %m = tile.load %a[%row, %i] : {VIEW} -> tensor<12x4xf32>
    %p = tile.dot %m, %o, %acc : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    %r = tile.load %b[%i, %column] : {VIEW} -> tensor<4x4xf32>
    %d = tile.dot %l, %r, %p : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    scf.yield %d : tensor<12x4xf32>
  }}
{STORE}"""
BRANCH = f"""
  %is = arith.cmpi slt, %down, %n : index
  %s = scf.if %is -> (tensor<12x4xf32>) {{
{LEFT}{RIGHT}{DOT}
    scf.yield %s : tensor<12x4xf32>
  }} else {{
    scf.yield %clear : tensor<12x4xf32>
  }}
{STORE}"""
ALONE = f"""
{LEFT}{RIGHT}{DOT}{STORE}
  %is = arith.cmpi slt, %down, %n : index
  scf.if %is {{
    %unused = arith.addi %n, %n : index
  }}"""
SLICED = f"""
  %x, %at = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %clear, %at = %c1) -> (tensor<12x4xf32>, index) {{
    %m = tile.load %a[%row, %at] : {VIEW} -> tensor<12x4xf32>
    %r = tile.load %b[%i, %column] : {VIEW} -> tensor<4x4xf32>
    %d = tile.dot %m, %r, %acc : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    %next = arith.addi %at, %i : index
    scf.yield %d, %next : tensor<12x4xf32>, index
  }}
  %l = tile.load %a[%row, %at] : {VIEW} -> tensor<12x4xf32>
{RIGHT}
  %s = tile.dot %l, %r, %x : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
{STORE}"""
# A row that is above a limit is halved; the others are not touched, whether or not the branch is taken.
ASKING = f"""
{LEFT}
  %one = arith.constant 1.0 : f32
  %ones = tile.full %one : tensor<12xf32>
  %half = arith.constant 0.5 : f32
  %halves = tile.full %half : tensor<12xf32>
  %s, %times = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %clear, %t = %ones)
      -> (tensor<12x4xf32>, tensor<12xf32>) {{{{
    %r = tile.load %b[%i, %column] : {VIEW} -> tensor<4x4xf32>
    %d = tile.dot %l, %r, %acc : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    %top = tile.reduce<max> %d, 1 : tensor<12x4xf32> -> tensor<12xf32>
    %above = tile.ew<gt> %top, %ones : tensor<12xf32>, tensor<12xf32> -> tensor<12xi1>
    %any = tile.any %above : tensor<12xi1>
    %factor, %u = scf.if %any -> (tensor<12xf32>, tensor<12xf32>) {{{{
      %f = {{factor}} : tensor<12xi1>, tensor<12xf32>, tensor<12xf32> -> tensor<12xf32>
      %g = tile.ew<mul> %t, %f : tensor<12xf32>, tensor<12xf32> -> tensor<12xf32>
      scf.yield %f, %g : tensor<12xf32>, tensor<12xf32>
    }}}} else {{{{
      scf.yield %ones, {{kept}} : tensor<12xf32>, tensor<12xf32>
    }}}}
    %e = scf.if %any -> (tensor<12x4xf32>) {{{{
      %wide = tile.expand %factor, 1 : tensor<12xf32> -> tensor<12x1xf32>
      %all = tile.broadcast %wide : tensor<12x1xf32> -> tensor<12x4xf32>
      %m = tile.ew<mul> %d, %all : tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
      scf.yield %m : tensor<12x4xf32>
    }}}} else {{{{
      scf.yield %d : tensor<12x4xf32>
    }}}}
    scf.yield %e, %u : tensor<12x4xf32>, tensor<12xf32>
  }}}}
  tile.store %s, %y[%row, %column] : tensor<12x4xf32>, {VIEW}
  %column_of = tile.expand %times, 1 : tensor<12xf32> -> tensor<12x1xf32>
  tile.store %column_of, %y[%row, %column] : tensor<12x1xf32>, {VIEW}
"""
EACH = "tile.ew<select> %above, %halves, %ones"
TURNED = f"""
  %t = tile.load %b[%c0, %row] : {VIEW} -> tensor<4x12xf32>
  %l = tile.trans %t, [1, 0] : tensor<4x12xf32> -> tensor<12x4xf32>
{RIGHT}{DOT}{STORE}"""
# Kernels, and the depths of their rings where those that loops fill have 3 slots.
RINGS = {
    "tiles that are needed at once": (TWICE, [2, 2, 2]),
    "a tile that is needed all along": (ACROSS, [2, 2, 3, 3]),
    "a branch": (BRANCH, [2, 2]),
    "a branch that does nothing": (ALONE, [2, 2]),
    "an offset that a loop carries": (SLICED, [3, 3]),
    "a branch that rows ask for": (ASKING.format(factor=EACH, kept="%t"), [2, 3]),
    "shares that are columns of what is loaded": (TURNED, [2, 2]),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("consumers", [1, 3, 12])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_loads_that_follow_each_other_share_a_ring(name: str, consumers: int, n: int) -> None:
    body, depths = RINGS[name]
    function = check_partitions(
        kernel(body), lambda function: warp_specialize(function, consumers=consumers, depth=3), arguments(n)
    )
    assert sorted(depth for depth, _ in rings_of(function)) == depths


def test_one_slot_is_enough() -> None:
    """No consumer waits for a tile while it holds another of the same ring."""
    for body, _ in RINGS.values():
        check_partitions(
            kernel(body), lambda function: warp_specialize(function, consumers=2, depth=1, ahead=1), arguments()
        )


def test_tiles_are_released_behind_their_last_use() -> None:
    _, function, _ = rewritten(kernel(ACROSS), lambda function: warp_specialize(function, consumers=2, depth=3))
    loops = [op for op in partitions_of(function).consumer.walk() if isinstance(op, scf.ForOp)]
    walk, inner = ([op for op in loop.body.block.ops if not isinstance(op, arith.ConstantOp)] for loop in loops)
    kinds: tuple[type[Operation], ...] = (ConsumerWaitOp, tile.DotOp, ConsumerReleaseOp, scf.ForOp, tile.StoreOp)

    def names(ops: list[Operation]) -> list[str]:
        return [op.name.partition(".")[2] for op in ops if isinstance(op, kinds)]

    assert names(inner) == ["consumer_wait", "dot", "consumer_release", "consumer_wait", "dot", "consumer_release"]
    assert names(walk) == ["consumer_wait", "consumer_wait", "for", "consumer_release", "consumer_release", "store"]
    parts = {tile_type(op.result).get_shape(): op.part is not None for op in walk if isinstance(op, ConsumerWaitOp)}
    assert parts == {(6, 4): True, (4, 4): False}


@settings(max_examples=25)
@given(
    st.integers(0, 10**9),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_no_bit_of_random_kernels_changes(seed: int, n: int, m: int, consumers: int, depth: int, ahead: int) -> None:
    check_partitions(
        random_program(seed),
        lambda function: warp_specialize(function, consumers=consumers, depth=depth, ahead=ahead, bands=seed % 2 == 0),
        random_arguments(n, m),
        [Machine(ctas=2), Machine(ctas=3, chance=np.random.default_rng(seed))],
    )


# The walk through the grid

GRID = """
tile.func @k(%a: {VIEW}, %b: {VIEW}, %y: !tile.view<1, i64, global>, %z: {VIEW}) outputs 0
    shapes [[2, 2], [2, 2], [{count}], [2, {wide}]] grid [{grid}] {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %extent = arith.constant {x} : index
  %extents = arith.constant {y} : index
  %x = tile.program_id 0
{more}
  %from = arith.muli %h, %c2 : index
  %to = arith.muli %at, %c2 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<2x2xf32>
  %l = tile.load %a[%c0, %c0] : {VIEW} -> tensor<2x2xf32>
  %r = tile.load %b[%c0, %c0] : {VIEW} -> tensor<2x2xf32>
  %s = tile.dot %l, %r, %clear : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %seen = tile.iota %from, 0 : tensor<2xi64>
  tile.store %seen, %y[%to] : tensor<2xi64>, !tile.view<1, i64, global>
  tile.store %s, %z[%c0, %to] : tensor<2x2xf32>, {VIEW}
  tile.return
}}
"""
AXES = {
    1: "%h = arith.addi %x, %c0 : index\n%at = arith.addi %x, %c0 : index",
    2: """%v = tile.program_id 1
      %m = arith.muli %v, %extent : index
      %at = arith.addi %x, %m : index
      %h = arith.addi %at, %v : index""",
    3: """%v = tile.program_id 1
      %w = tile.program_id 2
      %m = arith.muli %w, %extents : index
      %o = arith.addi %v, %m : index
      %p = arith.muli %o, %extent : index
      %at = arith.addi %x, %p : index
      %h = arith.addi %at, %w : index""",
}


@pytest.mark.quick
@pytest.mark.parametrize("bands", [False, True])
@pytest.mark.parametrize(
    "grid", [(1,), (5,), (0,), (3, 4), (8, 3), (11, 3), (19, 2), (0, 3), (3, 0), (10, 3, 2), (2, 1, 3)]
)
def test_every_instance_of_a_grid_runs_once(grid: tuple[int, ...], bands: bool) -> None:
    count_ = int(np.prod(grid))
    x, y = (*grid, 1)[:2]
    sizes = {"count": 2 * count_, "wide": 2 * count_, "x": x, "y": y, "grid": ", ".join(map(str, grid))}
    source = GRID.format(VIEW=VIEW, more=AXES[len(grid)], **sizes)
    square = np.eye(2, dtype=np.float32)
    given_: list[Any] = [square, square + 1, np.zeros(2 * count_, np.int64), np.zeros((2, 2 * count_), np.float32)]
    worlds = [Machine(ctas=ctas) for ctas in (1, 3, 1000)]
    check_partitions(
        source, lambda function: warp_specialize(function, consumers=2, depth=2, bands=bands), given_, worlds
    )


def numbered(x: int, y: int) -> list[tuple[int, int]]:
    """The program instances of a grid in the order in which one CTA goes through them, in bands."""
    found: list[tuple[int, int]] = []
    for top in range(0, x, BAND):
        found += [(row, column) for column in range(y) for row in range(top, min(x, top + BAND))]
    return found


@pytest.mark.parametrize("bands", [False, True])
def test_a_cta_goes_through_bands(bands: bool) -> None:
    """Instances that are near each other in time read the same columns, and few rows."""
    source = kernel(LEFT + RIGHT + DOT + STORE)
    module, _, _ = rewritten(source, lambda function: warp_specialize(function, consumers=1, depth=2, bands=bands))
    trace = Trace()
    run_kernel(module, "k", arguments(rows=12 * 19), machine=Machine(ctas=1), trace=trace)
    coordinates = [divmod(int(access.offsets.flat[0]), 8) for access in trace if access.kind == "write"]
    ordered = numbered(19, 2) if bands else [(row, column) for column in range(2) for row in range(19)]
    assert [(row // 12, column // 4) for row, column in coordinates] == ordered


@pytest.mark.parametrize("ctas", [1, 2])
def test_instances_that_differ_are_fetched_with_the_longest_first(ctas: int) -> None:
    """The last rows see most keys. What one CTA does not get to is left for others."""
    module, given_ = STAGES["causal"](53)
    module, _, _ = rewritten(module, prepared)
    after, function, _ = rewritten(module, lambda function: warp_specialize(function, consumers=2, depth=2))
    fetches = [op for op in partitions_of(function).walk() if isinstance(op, SchedulerFetchOp | SchedulerReadOp)]
    assert [type(op) for op in fetches] == [SchedulerFetchOp, SchedulerReadOp]
    trace, heads, rows = Trace(), 2, 3
    run_kernel(after, "k", given_, machine=Machine(ctas=ctas), trace=trace)
    stores = [access for access in trace if access.kind == "write" and access.offsets.size]
    stored = [(access.program[0], *divmod(int(access.offsets.flat[0]), 53 * DEPTH)) for access in stores]
    # Consumers store their rows of an instance; heads lie beside each other.
    found = list(dict.fromkeys((cta, at // DEPTH // ROWS, head) for cta, head, at in stored))
    order = [(row, head) for row in reversed(range(rows)) for head in range(heads)]
    first = [(0, *order[0]), *((0, *found) for found in order[ctas:])]
    assert found == [*first, *((cta, *order[cta]) for cta in range(1, ctas))]


def test_instances_of_one_length_are_not_fetched() -> None:
    for name in ("full", "sigmoid", "mlp"):
        module, _, _ = rewritten(STAGES[name](41)[0], prepared)
        _, function, _ = rewritten(module, lambda function: warp_specialize(function, consumers=2, depth=2))
        assert not any(isinstance(op, SchedulerFetchOp | WorkQueueOp | scf.WhileOp) for op in function.walk())


def test_a_grid_without_instances_divides_nothing() -> None:
    """Ops of an instance that may fail do not run where there is none."""
    for keys in (0, BLOCK):
        module, given_ = STAGES["grouped queries"](keys)
        module, _, _ = rewritten(module, prepared)
        check_partitions(
            module,
            lambda function: warp_specialize(function, consumers=2, depth=2),
            [value[:0] for value in given_],
            [Machine()],
        )


@pytest.mark.parametrize("consumers", [1, 2, 3])
def test_left_operands_that_lie_across_are_shared_by_their_columns(consumers: int) -> None:
    module = text.read(kernel(TURNED))
    after, function, said = rewritten(
        kernel(TURNED), lambda function: warp_specialize(function, consumers=consumers, depth=2)
    )
    assert said is True
    assert rings_of(function) == [(2, (4, 12)), (2, (4, 4))]
    waits = [op for op in function.walk() if isinstance(op, ConsumerWaitOp)]
    assert [op.shared_axis for op in waits] == [1, None]
    check_partitions(
        module, lambda function: warp_specialize(function, consumers=consumers, depth=2), arguments(), [Machine()]
    )
    assert "part columns" in text.write(after)


# What is left alone

COLUMNS = f"""
  %l = tile.load %a[%row, %c0] : {VIEW} -> tensor<4x4xf32>
  %r = tile.load %b[%c0, %column] : {VIEW} -> tensor<4x12xf32>
  %wide = tile.full %nothing : tensor<4x12xf32>
  %d = tile.dot %l, %r, %wide : tensor<4x4xf32>, tensor<4x12xf32>, tensor<4x12xf32> -> tensor<4x12xf32>
  %s = tile.trans %d, [1, 0] : tensor<4x12xf32> -> tensor<12x4xf32>
{STORE}"""
SQUARE = f"""
  %l = tile.load %a[%row, %c0] : {VIEW} -> tensor<12x12xf32>
  %r = tile.load %b[%c0, %column] : {VIEW} -> tensor<12x12xf32>
  %none = tile.full %nothing : tensor<12x12xf32>
  %d = tile.dot %l, %r, %none : tensor<12x12xf32>, tensor<12x12xf32>, tensor<12x12xf32> -> tensor<12x12xf32>
  %s = tile.trans %d, [1, 0] : tensor<12x12xf32> -> tensor<12x12xf32>
{STORE.replace("12x4", "12x12")}"""
ALONE_STORE = f"""
{LEFT}{RIGHT}{DOT}
  scf.for %i = %c0 to %n step %c1 {{
    {STORE}
  }}"""
LEFT_ALONE = {
    "dots along columns": COLUMNS,
    "dots along columns of squares": SQUARE,
    "a branch that is for all rows": ASKING.format(factor="tile.ew<select> %above, %halves, %halves", kept="%t"),
    "a branch that gives other rows something else": ASKING.format(factor=EACH, kept="%halves"),
    "an offset out of a tile": f"""
  %o = tile.load %b[%c0, %c0] : {VIEW} -> tensor<4x4xf32>
  %is = tile.ew<gt> %o, %o : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xi1>
  %any = tile.any %is : tensor<4x4xi1>
  %at = arith.select %any, %c0, %c4 : index
  %r = tile.load %b[%at, %column] : {VIEW} -> tensor<4x4xf32>
{LEFT}{DOT}{STORE}""",
    "stores for all rows where one asks": f"""
{LEFT}{RIGHT}{DOT}
  %is = tile.ew<gt> %s, %s : tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xi1>
  %any = tile.any %is : tensor<12x4xi1>
  scf.if %any {{
    {STORE}
  }}""",
    "no dots": LEFT + "%s = tile.ew<neg> %l : tensor<12x4xf32> -> tensor<12x4xf32>\n" + STORE,
    "stores in a loop": ALONE_STORE,
    "atomics": LEFT + RIGHT + DOT + STORE.replace("tile.store", "tile.atomic<sum>"),
    "asserts": LEFT
    + RIGHT
    + DOT
    + """%is = arith.cmpi slt, %down, %n : index
    tile.assert %is, "few instances" : i1
    """
    + STORE,
    "memory that is read and written": LEFT + RIGHT.replace("%b[", "%y[") + DOT + STORE,
    "rows that meet": LEFT
    + RIGHT
    + DOT
    + """%sum = tile.reduce<sum> %s, 0 : tensor<12x4xf32> -> tensor<4xf32>
    %line = tile.expand %sum, 0 : tensor<4xf32> -> tensor<1x4xf32>
    %all = tile.broadcast %line : tensor<1x4xf32> -> tensor<12x4xf32>
    %both = tile.ew<add> %s, %all : tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    """
    + STORE.replace("%s", "%both"),
    "a dot that all rows share": LEFT
    + RIGHT
    + DOT.replace("%s", "%d")
    + """%sum = tile.reduce<sum> %d, 0 : tensor<12x4xf32> -> tensor<4xf32>
    %line = tile.expand %sum, 0 : tensor<4xf32> -> tensor<1x4xf32>
    %s = tile.broadcast %line : tensor<1x4xf32> -> tensor<12x4xf32>
    """
    + STORE,
    "rows that become operands of others": LEFT
    + f"""%m = tile.load %a[%row, %c0] : {VIEW} -> tensor<12x12xf32>
    %s = tile.dot %m, %l, %clear : tensor<12x12xf32>, tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    %e = tile.dot %m, %s, %clear : tensor<12x12xf32>, tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    """
    + STORE.replace("%s", "%e"),
    "an operand of all rows that is folded": LEFT
    + RIGHT.replace("%r", "%t")
    + """
    %f = tile.reduce<sum> %t, 0 : tensor<4x4xf32> -> tensor<4xf32>
    %u = tile.expand %f, 0 : tensor<4xf32> -> tensor<1x4xf32>
    %r = tile.broadcast %u : tensor<1x4xf32> -> tensor<4x4xf32>
    """
    + DOT
    + STORE,
    "an operand of all rows that is padded": LEFT + RIGHT.replace("%column]", "%column] pad 1.0") + DOT + STORE,
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_some_kernels_stay_as_they_are(name: str) -> None:
    source = kernel(LEFT_ALONE[name])
    module, function, said = rewritten(source, lambda function: warp_specialize(function, consumers=2, depth=2))
    assert said is False
    assert text.write(module) == text.write(text.read(source))
    assert count(function, WarpSpecializeOp) == 0


def test_consumers_divide_the_rows() -> None:
    source = kernel(LEFT + RIGHT + DOT + STORE)
    for consumers, can in ((1, True), (2, True), (5, False), (8, False), (12, True), (24, False)):
        said = rewritten(
            source, lambda function, consumers=consumers: warp_specialize(function, consumers=consumers, depth=2)
        )[2]
        assert said is can


def test_grids_have_at_most_three_axes() -> None:
    source = kernel(LEFT + RIGHT + DOT + STORE).replace(", 2] {", ", 2, 1, 1] {")
    assert rewritten(source, lambda function: warp_specialize(function, consumers=2, depth=2))[2] is False


def test_unused_values_are_left_out() -> None:
    """A tile whose rows meet, and a load that no store needs: neither keeps the others from partitions."""
    unused = f"""
  %o = tile.load %b[%c4, %column] : {VIEW} -> tensor<4x4xf32>
  %p = tile.dot %l, %o, %clear : tensor<12x4xf32>, tensor<4x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
  %q = tile.reduce<sum> %p, 0 : tensor<12x4xf32> -> tensor<4xf32>
"""
    source = kernel(LEFT + RIGHT + unused + DOT + STORE)
    function = check_partitions(source, lambda function: warp_specialize(function, consumers=2, depth=2), arguments())
    assert count(function, ConsumerWaitOp) == count(function, ProducerCopyOp) == 2
    assert count(function, tile.ReduceOp) == 0


def test_the_pass() -> None:
    module = text.read(kernel(LEFT + RIGHT + DOT + STORE))
    WarpSpecialize(consumers=3, depth=2, ahead=4).apply(text.new_context(), module)
    written = text.write(module)
    assert "pipe.warp_specialize 3" in written
    assert "!pipe.ring<4, 12x4xf32>" in written
    assert text.write(text.read(written)) == written
