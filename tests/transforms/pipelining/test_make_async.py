"""Checks copies that run ahead: they change no bit, are never read too early, and nothing is written over too soon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import check_same, count, rewritten, run
from xdsl.dialects import scf

from tessera.errors import RaceError, ShapeError
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.pipelining.make_async import MakeAsync, make_async
from tessera.transforms.pipelining.unroll_rings import unroll_rings

GEMM = """
tile.func @k(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %start: index, %stop: index, %step: index,
    %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [], [], [], [6, 7]] grid [1] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<6x7xf32>
  %sum = scf.for %i = %start to %stop step %step iter_args(%acc = %clear) -> (tensor<6x7xf32>) {{
{body}
  }} {{tile.unordered}}
  tile.store %sum, %y[%zero, %zero] : tensor<6x7xf32>, !tile.view<2, f32, global>
  tile.return
}}
"""
LEFT = "%l = tile.load %a[%zero, %i] : !tile.view<2, f32, global> -> tensor<6x5xf32>"
RIGHT = "%r = tile.load %b[%i, %zero] : !tile.view<2, f32, global> -> tensor<5x7xf32>"
DOT = "%d = tile.dot %l, %r, %acc : tensor<6x5xf32>, tensor<5x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>"
YIELD = "scf.yield %d : tensor<6x7xf32>"
PLAIN = "\n".join([LEFT, RIGHT, DOT, YIELD])
# What stays as it is, and how many of the two loads become copies.
BODIES = {
    "plain": (PLAIN, 2),
    "computed": (
        f"""%twice = arith.muli %i, %two : index
        %at = arith.subi %twice, %start : index
        {LEFT.replace("%i]", "%at]")}
        {RIGHT}
        {DOT}
        {YIELD}""",
        2,
    ),
    "transposed": (
        f"""%t = tile.load %b[%i, %one] : !tile.view<2, f32, global> -> tensor<5x6xf32>
        %l = tile.trans %t, [1, 0] : tensor<5x6xf32> -> tensor<6x5xf32>
        {RIGHT}
        {DOT}
        {YIELD}""",
        2,
    ),
    "a view of the iteration": (
        f"""%v = tile.view %a offset %i sizes[%two, %two] strides[%one, %two]
            : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
        {LEFT.replace("%a", "%v").replace("%i]", "%zero]")}
        {RIGHT}
        {DOT}
        {YIELD}""",
        2,
    ),
    "a division": (
        f"""%left = arith.subi %stop, %i : index
        %at = arith.floordivsi %stop, %left : index
        {LEFT.replace("%i]", "%at]")}
        {RIGHT}
        {DOT}
        {YIELD}""",
        2,
    ),
    "padded": (PLAIN.replace("%a[%zero, %i]", "%a[%zero, %i] pad 1.0"), 1),
    "used elsewhere": (
        f"""{LEFT}
        {RIGHT}
        {DOT.replace("%d", "%e")}
        %s = tile.reduce<sum> %r, 0 : tensor<5x7xf32> -> tensor<7xf32>
        %x = tile.expand %s, 0 : tensor<7xf32> -> tensor<1x7xf32>
        %w = tile.broadcast %x : tensor<1x7xf32> -> tensor<6x7xf32>
        %d = tile.ew<add> %e, %w : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
        {YIELD}""",
        1,
    ),
    "a start of an accumulator": (
        f"""{LEFT}
        {RIGHT}
        %c = tile.load %a[%zero, %i] : !tile.view<2, f32, global> -> tensor<6x7xf32>
        {DOT.replace("%acc", "%c")}
        {YIELD}""",
        2,
    ),
    "in a branch": (
        f"""%is = arith.cmpi slt, %i, %two : index
        {LEFT}
        %d = scf.if %is -> (tensor<6x7xf32>) {{
          {RIGHT}
          {DOT.replace("%d", "%e")}
          scf.yield %e : tensor<6x7xf32>
        }} else {{
          scf.yield %acc : tensor<6x7xf32>
        }}
        {YIELD}""",
        1,
    ),
    "twice": (
        f"""{LEFT}
        {RIGHT}
        {DOT.replace("%d", "%e")}
        {DOT.replace("%acc", "%e")}
        {YIELD}""",
        2,
    ),
}


def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)


def arguments(start: int, stop: int, step: int) -> list[object]:
    return [numbers(6, 50), numbers(50, 7), start, stop, step, np.zeros((6, 7), np.float32)]


@pytest.mark.quick
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_no_bit_changes(name: str, depth: int) -> None:
    body, rings = BODIES[name]
    source = GEMM.format(body=body)
    for bounds in ((0, 0, 5), (0, 5, 5), (0, 6, 5), (0, 50, 5), (7, 40, 3), (-9, 30, 4), (9, 3, 1)):
        if name == "a view of the iteration" and bounds[0] < 0:
            continue
        function = check_same(source, lambda function: make_async(function, depth), arguments(*bounds))
        assert count(function, pipe.RingOp) == (rings if depth > 1 else 0)
        assert count(function, pipe.GetOp) == count(function, pipe.RingOp)


@pytest.mark.quick
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_no_bit_changes_where_rings_are_unrolled(name: str, depth: int) -> None:
    def unrolled(function: tile.FuncOp) -> None:
        make_async(function, depth)
        unroll_rings(function)

    source = GEMM.format(body=BODIES[name][0])
    for bounds in ((0, 0, 5), (0, 5, 5), (0, 16, 5), (0, 50, 5), (7, 40, 3), (2, 33, 1), (9, 3, 1)):
        function = check_same(source, unrolled, arguments(*bounds))
        # Where an iteration has one dot.
        assert count(function, scf.ForOp) == (2 if count(function, tile.DotOp) == depth + 1 else 1)


@settings(max_examples=40)
@given(st.integers(-20, 60), st.integers(-20, 60), st.integers(1, 20), st.integers(2, 6))
def test_loops_of_any_length(start: int, stop: int, step: int, depth: int) -> None:
    source = GEMM.format(body=PLAIN)
    check_same(source, lambda function: make_async(function, depth), arguments(start, stop, step))


def test_copies_run_ahead_by_one_iteration_less_than_there_are_slots() -> None:
    """Of each iteration, so many copies begin before the first is waited for."""
    for depth in (2, 3, 4):
        _, function, _ = rewritten(GEMM.format(body=PLAIN), lambda function, d=depth: make_async(function, d))
        (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
        ahead = [op for op in function.body.block.ops if isinstance(op, scf.IfOp)]
        assert len(ahead) == depth - 1
        (wait,) = (op for op in loop.body.block.ops if isinstance(op, pipe.WaitOp))
        assert wait.pending.value.data == depth - 2
        assert "tile.unordered" in loop.attributes


WRITTEN = GEMM.format(
    body=f"""{LEFT}
    {RIGHT}
    {DOT}
    tile.store %d, %b[%i, %zero] : tensor<6x7xf32>, !tile.view<2, f32, global>
    {YIELD}"""
)


def test_memory_that_is_written_is_not_read_ahead() -> None:
    function = check_same(WRITTEN, lambda function: make_async(function, 3), arguments(0, 40, 5))
    assert count(function, pipe.RingOp) == 1
    elsewhere = GEMM.format(body=PLAIN).replace("tile.store %sum, %y[", "tile.atomic<sum> %sum, %a[")
    function = check_same(elsewhere, lambda function: make_async(function, 3), arguments(0, 40, 5))
    assert count(function, pipe.RingOp) == 1


def test_what_follows_from_more_than_the_counter_is_not_read_ahead() -> None:
    carried = """
    tile.func @k(%a: !tile.view<2, f32, global>, %n: index, %y: !tile.view<2, f32, global>) outputs 1
        shapes [[6, K], [], [6, 6]] grid [1] {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %nothing = arith.constant 0.0 : f32
      %clear = tile.full %nothing : tensor<6x6xf32>
      %sum, %last = scf.for %i = %zero to %n step %one iter_args(%acc = %clear, %at = %zero)
          -> (tensor<6x6xf32>, index) {
        %l = tile.load %a[%zero, %at] : !tile.view<2, f32, global> -> tensor<6x6xf32>
        %d = tile.dot %l, %l, %acc : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
        %next = arith.addi %at, %i : index
        scf.yield %d, %next : tensor<6x6xf32>, index
      }
      tile.store %sum, %y[%zero, %zero] : tensor<6x6xf32>, !tile.view<2, f32, global>
      tile.return
    }
    """
    values = [numbers(6, 20), 5, np.zeros((6, 6), np.float32)]
    assert count(check_same(carried, lambda function: make_async(function, 3), values), pipe.RingOp) == 0


NESTED = """
tile.func @k(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %m: index, %n: index,
    %y: !tile.view<2, f32, global>) outputs 1 shapes [[6, K], [K, 7], [], [], [6, 7]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<6x7xf32>
  %sum = scf.for %j = %zero to %m step %one iter_args(%all = %clear) -> (tensor<6x7xf32>) {
    %p = tile.load %a[%zero, %j] : !tile.view<2, f32, global> -> tensor<6x3xf32>
    %q = tile.load %b[%j, %zero] : !tile.view<2, f32, global> -> tensor<3x7xf32>
    %more = scf.for %i = %zero to %n step %one iter_args(%acc = %all) -> (tensor<6x7xf32>) {
      %l = tile.load %a[%zero, %i] : !tile.view<2, f32, global> -> tensor<6x5xf32>
      %r = tile.load %b[%j, %zero] : !tile.view<2, f32, global> -> tensor<5x7xf32>
      %d = tile.dot %l, %r, %acc : tensor<6x5xf32>, tensor<5x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
      scf.yield %d : tensor<6x7xf32>
    }
    %d = tile.dot %p, %q, %more : tensor<6x3xf32>, tensor<3x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    scf.yield %d : tensor<6x7xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<6x7xf32>, !tile.view<2, f32, global>
  tile.return
}
"""


# Loads that pad are not copied: the outer loop has no copies of its own then.
INNER = NESTED.replace("%zero, %j] :", "%zero, %j] pad 1.0 :").replace(
    "%q = tile.load %b[%j, %zero]", "%q = tile.load %b[%j, %zero] pad 1.0"
)


@pytest.mark.quick
@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize(("source", "rings"), [(NESTED, 4), (INNER, 2)], ids=["both", "inner"])
def test_loops_within_loops(depth: int, source: str, rings: int) -> None:
    """The slots of the inner loop are used anew in every iteration of the outer one."""
    for m in (0, 1, 2, 5):
        for n in (0, 1, 2, 3, 7):
            values = [numbers(6, 9), numbers(9, 7), m, n, np.zeros((6, 7), np.float32)]
            function = check_same(source, lambda function: make_async(function, depth), values)
            assert count(function, pipe.RingOp) == rings


def test_a_ring_of_a_loop_within_a_loop_is_waited_for() -> None:
    """Without that wait the first copies of an iteration would write over slots that the last one still reads."""
    module, function, _ = rewritten(INNER, lambda function: make_async(function, 3))
    inner = [op for op in function.body.walk() if isinstance(op, scf.ForOp)][1]
    (wait,) = (op for op in function.body.walk() if isinstance(op, pipe.WaitOp) and op.parent_op() is not inner)
    wait.detach()
    with pytest.raises(RaceError, match="may still be read"):
        run(module, [numbers(6, 9), numbers(9, 7), 3, 4, np.zeros((6, 7), np.float32)])


def test_the_pass() -> None:
    module = text.read(GEMM.format(body=PLAIN))
    MakeAsync(depth=2).apply(text.new_context(), module)
    written = text.write(module)
    assert written.count("!pipe.ring<2, 6x5xf32>") > 0
    assert text.write(text.read(written)) == written


# What the interpreter refuses

RING = """
tile.func @k(%a: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 4], [4, 4]]
    grid [1] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %ring = pipe.ring : !pipe.ring<2, 4x4xf32>
  pipe.copy %a[%zero, %zero], %ring[%zero] : !tile.view<2, f32, global>, !pipe.ring<2, 4x4xf32>
  pipe.commit
  pipe.copy %a[%one, %zero], %ring[%one] : !tile.view<2, f32, global>, !pipe.ring<2, 4x4xf32>
  pipe.commit
{body}
  tile.store %t, %y[%zero, %zero] : tensor<4x4xf32>, !tile.view<2, f32, global>
  tile.return
}}
"""
GET = "%t = pipe.get %ring[{slot}] : !pipe.ring<2, 4x4xf32> -> tensor<4x4xf32>"
COPY = "pipe.copy %a[%zero, %zero], %ring[{slot}] : !tile.view<2, f32, global>, !pipe.ring<2, 4x4xf32>"
WRONG = {
    "too early": (f"pipe.wait 2\n{GET.format(slot='%zero')}", RaceError, "slot 0 is read before its copy has arrived"),
    "the later one": (f"pipe.wait 1\n{GET.format(slot='%one')}", RaceError, "slot 1 is read before its copy"),
    "over the end": (f"pipe.wait 0\n{GET.format(slot='%two')}", ShapeError, "slot 2 of a ring of 2"),
    "a copy over the end": (
        COPY.format(slot="%two") + f"\npipe.wait 0\n{GET.format(slot='%one')}",
        ShapeError,
        "slot 2",
    ),
    "on its way": (
        COPY.format(slot="%one") + f"\npipe.wait 0\n{GET.format(slot='%one')}",
        RaceError,
        "another copy into it is in flight",
    ),
    "still read": (
        f"pipe.wait 0\n{GET.format(slot='%one')}\n" + COPY.format(slot="%one"),
        RaceError,
        "the tile in it may still be read",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_kernels_that_do_not_wait_raise_an_error(name: str) -> None:
    body, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        run(text.read(RING.format(body=body)), [numbers(4, 4), np.zeros((4, 4), np.float32)])


def test_a_kernel_that_waits_runs() -> None:
    body = f"pipe.wait 1\n{GET.format(slot='%zero').replace('%t', '%u')}\npipe.wait 0\n" + COPY.format(slot="%zero")
    body += f"\npipe.commit\n{GET.format(slot='%one')}"
    x = numbers(4, 4)
    found = run(text.read(RING.format(body=body)), [x, np.zeros((4, 4), np.float32)])
    assert np.array_equal(found[1], np.vstack([x[1:], np.zeros((1, 4))]))
