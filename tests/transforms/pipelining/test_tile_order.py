"""Checks the order of program instances: each runs once, neighbours share memory, and uneven loops are noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import BLOCK, DEPTH, KERNELS, attention, lib, prepared
from placed_kernels import placed
from rewritten_programs import rewritten
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tessera import stdlib
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.attributes import SizesAttr
from tessera.ir.pipe.warp_groups import CtaIdOp, GridExtentOp
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.core.constants import integer_of
from tessera.transforms.pipelining.tile_order import (
    ABREAST,
    BAND,
    TileOrder,
    Uneven,
    axis_order,
    band_height,
    can_form_clusters,
    crosses,
    is_decided_by_memory,
    unevenness,
)

# Which loops have more iterations in some instances than in others


def found_in(name_or_make: str | Callable[[int], Any]) -> Uneven | None:
    make = KERNELS[name_or_make] if isinstance(name_or_make, str) else name_or_make
    _, function, _ = rewritten(make(41)[0], prepared)
    return unevenness(function)


KEYS_AND_VALUES = 2 * BLOCK * DEPTH * 2


@pytest.mark.parametrize("name", ["causal", "grouped queries", "prefix", "soft cap", "alibi"])
def test_later_queries_see_more_keys(name: str) -> None:
    assert found_in(name) == Uneven(rising=True, size=(1, 1), step=BLOCK, bytes=KEYS_AND_VALUES)


def later_keys(rows: Any, cols: Any) -> Any:
    return rows <= cols


def test_later_queries_see_fewer_keys() -> None:
    assert found_in(attention(stdlib.attention, mask=later_keys)) == Uneven(
        rising=False, size=(1, 1), step=BLOCK, bytes=KEYS_AND_VALUES
    )


@pytest.mark.parametrize("name", ["full", "gemm", "gemm and more", "sigmoid", "mlp", "another mlp"])
def test_where_all_have_the_same_iterations(name: str) -> None:
    assert found_in(name) is None


def test_windows_move_with_the_queries() -> None:
    """Both ends of the loop do: how many iterations are between them stays."""
    assert found_in("window") is None
    assert found_in(attention(lib.window_attention, 11)) is None


VIEW = "!tile.view<2, f32, global>"
LOOP = f"""
tile.func @k(%a: {VIEW}, %b: {VIEW}, %c: {VIEW}, %n: index) outputs 0
    shapes [[M, K], [K, 8], [M, 8], []] grid ["(M + 15)//16", 3] {{
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %sixteen = arith.constant 16 : index
  %instance = tile.program_id 0
  %other = tile.program_id 1
  %row = arith.muli %instance, %sixteen : index
  %deep = tile.dim %b, 0 : {VIEW}
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x8xf32>
  BOUND
  %end = arith.minsi %bound, %deep : index
  %sum = scf.for %i = %zero to %end step %four iter_args(%acc = %clear) -> (tensor<16x8xf32>) {{
    %l = tile.load %a[%row, %i] : {VIEW} -> tensor<16x4xf32>
    %r = tile.load %b[%i, %zero] : {VIEW} -> tensor<4x8xf32>
    %d = tile.dot %l, %r, %acc : tensor<16x4xf32>, tensor<4x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    scf.yield %d : tensor<16x8xf32>
  }}
  tile.store %sum, %c[%row, %zero] : tensor<16x8xf32>, {VIEW}
  tile.return
}}
"""
BOUNDS: dict[str, bool | None] = {
    "%bound = arith.addi %row, %sixteen : index": True,
    "%bound = arith.addi %four, %row : index": True,
    "%bound = arith.subi %n, %row : index": False,
    "%bound = arith.divsi %row, %four : index": True,
    "%bound = arith.floordivsi %row, %four : index": True,
    "%bound = arith.maxsi %row, %n : index": True,
    "%bound = arith.addi %row, %instance : index": True,
    # The other axis of the grid does not count, and neither does what is the same for all.
    "%bound = arith.muli %other, %sixteen : index": None,
    "%bound = arith.addi %n, %sixteen : index": None,
    # It may be either.
    "%bound = arith.subi %row, %instance : index": None,
    "%bound = arith.muli %row, %n : index": None,
    "%bound = arith.muli %row, %instance : index": None,
    "%bound = arith.divsi %sixteen, %row : index": None,
    "%bound = arith.remsi %row, %four : index": None,
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_how_an_end_depends_on_the_instance(bound: str) -> None:
    module = text.read(LOOP.replace("BOUND", bound))
    (function,) = (op for op in module.ops if isinstance(op, tile.FuncOp))
    rising = BOUNDS[bound]
    moved = 4 * (16 * 4 + 4 * 8)
    assert unevenness(function) == (None if rising is None else Uneven(rising, (1, 0), 4, moved))


@pytest.mark.parametrize(("rows", "fetched"), [("M", True), ("16000", True), ("160", False)])
def test_sizes_may_be_numbers(rows: str, fetched: bool) -> None:
    """Ends that are known are ends, too; and of few instances none is fetched."""
    known = (
        LOOP.replace(f"tile.dim %b, 0 : {VIEW}", "arith.constant 64 : index")
        .replace("BOUND", next(iter(BOUNDS)))
        .replace("M", rows)
    )
    module = text.read(known.replace(f"({rows} + 15)//16", "(M + 15)//16" if rows == "M" else f"{int(rows) // 16}"))
    (function,) = (op for op in module.ops if isinstance(op, tile.FuncOp))
    found = Uneven(True, 64, 4, 4 * (16 * 4 + 4 * 8))
    assert unevenness(function) == found
    assert TileOrder(function, bands=False).uneven == (found if fetched else None)


# Orders

GRID = """
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [GRID] {
  tile.return
}
"""
RULES: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: lambda a, b: a // b,
    arith.RemSIOp: lambda a, b: a % b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}


def order(grid: tuple[int, ...], *, bands: bool, cluster: int = 1, rank: int = 0) -> list[tuple[int, ...]]:
    """The coordinates of each instance, by its number; of clusters, those of the CTAs of a rank."""
    (function,) = (op for op in text.read(GRID.replace("GRID", ", ".join(map(str, grid)))).ops)
    assert isinstance(function, tile.FuncOp)
    return order_of(function, grid, bands=bands, cluster=cluster, rank=rank)


def order_of(
    function: tile.FuncOp, grid: tuple[int, ...], *, bands: bool, cluster: int = 1, rank: int = 0
) -> list[tuple[int, ...]]:
    order = TileOrder(function, bands=bands, cluster=cluster)
    block = Block(arg_types=[order.cta.type])
    coordinates = order.coordinates(block.args[0], block)

    def value(of: SSAValue, number: int) -> int:
        if of is block.args[0]:
            return number
        known, owner = integer_of(of), of.owner
        if known is not None:
            return known
        assert isinstance(owner, Operation)
        if isinstance(owner, GridExtentOp):
            return grid[owner.axis.value.data]
        if isinstance(owner, CtaIdOp):
            return rank
        return RULES[type(owner)](*(value(operand, number) for operand in owner.operands))

    count = value(order.counts[-1], 0)
    return [tuple(value(one, number) for one in coordinates) for number in range(count)]


def test_the_first_axis_goes_first() -> None:
    assert order((3,), bands=False) == [(0,), (1,), (2,)]
    assert order((2, 3), bands=False) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert order((2, 2, 2), bands=False)[:5] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)]
    assert order((3,), bands=True) == [(0,), (1,), (2,)]


def test_bands() -> None:
    """Eight rows of instances, column by column; the last band has the rows that are left."""
    found = order((BAND + 3, 4), bands=True)
    assert found[: BAND + 1] == [*((row, 0) for row in range(BAND)), (0, 1)]
    assert found[4 * BAND :][:4] == [(BAND, 0), (BAND + 1, 0), (BAND + 2, 0), (BAND, 1)]
    # As many instances as there are multiprocessors need few rows and columns of the operands.
    some = order((64, 64), bands=True)[:128]
    assert len({row for row, _ in some}) + len({column for _, column in some}) == BAND + 128 // BAND


@settings(max_examples=60)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=3), st.booleans())
def test_every_instance_runs(grid: list[int], bands: bool) -> None:
    found = order(tuple(grid), bands=bands)
    assert len(found) == len(set(found))
    assert set(found) == set(product(*map(range, grid)))


@settings(max_examples=60)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=3), st.booleans(), st.sampled_from([2, 4]))
def test_every_instance_is_that_of_one_cta_of_a_cluster(grid: list[int], bands: bool, cluster: int) -> None:
    grid[0] *= cluster
    found = [order(tuple(grid), bands=bands, cluster=cluster, rank=rank) for rank in range(cluster)]
    assert sorted(one for coordinates in found for one in coordinates) == list(product(*map(range, grid)))
    # A cluster's instances are side by side along the first axis.
    for first, *others in zip(*found, strict=True):
        assert others == [(first[0] + rank, *first[1:]) for rank in range(1, cluster)]


FACTORS = """
tile.func @k(%a: VIEW, %b: VIEW, %y: VIEW) outputs 0 shapes [[M, K], [K, N], [M, N]] grid [64, 64] {
  %zero = arith.constant 0 : index
  %rows = arith.constant ROWS : index
  %columns = arith.constant COLUMNS : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %rows : index
  %column = arith.muli %across, %columns : index
  %l = tile.load %a[%row, %zero] : VIEW -> tensor<ROWSx64xbf16>
  %r = tile.load %b[%zero, %column] : VIEW -> tensor<64xCOLUMNSxbf16>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<ROWSxCOLUMNSxf32>
  %s = tile.dot %l, %r, %clear : tensor<ROWSx64xbf16>, tensor<64xCOLUMNSxbf16>, tensor<ROWSxCOLUMNSxf32>
      -> tensor<ROWSxCOLUMNSxf32>
  %t = tile.ew<cast> %s : tensor<ROWSxCOLUMNSxf32> -> tensor<ROWSxCOLUMNSxbf16>
  tile.store %t, %y[%row, %column] : tensor<ROWSxCOLUMNSxbf16>, VIEW
  tile.return
}
""".replace("VIEW", "!tile.view<2, bf16, global>")


@pytest.mark.parametrize(
    ("rows", "columns", "height"), [(128, 256, 16), (128, 128, 8), (256, 128, 8), (64, 256, 16), (256, 64, 4)]
)
def test_how_high_a_band_is(rows: int, columns: int, height: int) -> None:
    """Instances that run at once read as much of the one operand as of the other, or nearly so."""
    (function,) = (
        op
        for op in text.read(FACTORS.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))).ops
        if isinstance(op, tile.FuncOp)
    )
    assert band_height(function) == height
    read = {high: high * rows + ABREAST // high * columns for high in (1, 2, 4, 8, 16, 32, 64)}
    assert read[height] <= 1.1 * min(read.values())


def test_without_operands_a_band_is_a_usual_one() -> None:
    (function,) = (op for op in text.read(GRID.replace("GRID", "4, 4")).ops if isinstance(op, tile.FuncOp))
    assert band_height(function) == BAND


def placed_function(name: str) -> tile.FuncOp:
    """A kernel whose operands are found by numbers out of memory, as it is traced."""
    call = placed(name, 0, (64, 32, 16), 200, 72, 80)
    made = call.kernel.lower(*call.given, **call.static)
    return symbol_in(made.module, made.name, tile.FuncOp)


@pytest.mark.parametrize(
    ("axes", "order", "is_crossing"),
    [("01", (0, 1, 2), True), ("12", (1, 2, 0), True), ("02", (0, 2, 1), True), ("00", (1, 2, 0), False)],
)
def test_axes_that_all_operands_follow_come_last(axes: str, order: tuple[int, ...], is_crossing: bool) -> None:
    """Experts and heads: their instances have no operand in common, so they do not run side by side."""
    row, column = axes
    (batch,) = {"0", "1", "2"} - {row, column} if is_crossing else {"0"}
    source = FACTORS.replace("ROWS", "64").replace("COLUMNS", "64").replace("grid [64, 64]", "grid [8, 16, 4]")
    for place, axis in (("%across", column), ("%down", row)):
        source = re.sub(rf"{place} = tile.program_id \d", f"{place} = tile.program_id {axis}", source)
    part = f"%batch = tile.program_id {batch}\n  %zero = arith.muli %batch, %rows : index"
    source = source.replace("  %zero = arith.constant 0 : index\n", "")
    source = source.replace("%columns = arith", f"{part}\n  %columns = arith")
    (function,) = text.read(source).ops
    assert isinstance(function, tile.FuncOp)
    assert axis_order(function) == order
    assert crosses(function) is is_crossing
    found = order_of(function, (8, 16, 4), bands=True)
    assert sorted(found) == list(product(range(8), range(16), range(4)))
    first, last = order[0], order[2]
    assert [one[first] for one in found[:4]] == [0, 1, 2, 3]
    assert {one[last] for one in found[: len(found) // (8, 16, 4)[last]]} == {0}


@pytest.mark.parametrize(
    ("name", "is_so"), [("parts", True), ("masked", False), ("scattered", False), ("chosen", False)]
)
def test_instances_are_fetched_where_memory_decides_their_iterations(name: str, is_so: bool) -> None:
    function = placed_function(name)
    assert is_decided_by_memory(function) is is_so
    many = tuple(1000 for _ in function.grid.data)
    function.properties["grid"] = SizesAttr(many)
    assert TileOrder(function, bands=False).fetches is is_so
    assert can_form_clusters(function, 2, bands=False) is not is_so
    # Of few instances none is fetched.
    function.properties["grid"] = SizesAttr(tuple(2 for _ in many))
    assert not TileOrder(function, bands=False).fetches


def test_clusters_need_instances_side_by_side() -> None:
    for grid, cluster, can in (("4, 3", 2, True), ("3, 4", 2, False), ('"(N + 1)//2", 2', 2, False), ("0, 2", 2, True)):
        (function,) = (op for op in text.read(GRID.replace("GRID", grid)).ops if isinstance(op, tile.FuncOp))
        assert can_form_clusters(function, cluster, bands=False) is can
