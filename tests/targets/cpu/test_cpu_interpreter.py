"""Checks the meaning of every op of the cpu level against NumPy, and that what has none is refused."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import Array
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera.errors import CompileError, DtypeError, EffectError, ShapeError, TesseraError
from tessera.targets import text
from tessera.targets.cpu.interpreter import run_cpu_kernel

few = settings(max_examples=25)
bf16 = ml_dtypes.bfloat16


def view(element: str = "f32", rank: int = 2) -> str:
    return f"!tile.view<{rank}, {element}, global>"


def run(body: str, types: dict[str, str], *values: Any, seed: int | None = None, grid: str = "1") -> None:
    """Runs a function with this body; its arguments have the names in `types`, and `%c7` is the number 7."""
    ranks = [int(type_[11]) if type_.startswith("!tile.view") else 0 for type_ in types.values()]
    shapes = [", ".join(f"s{index}_{axis}" for axis in range(rank)) for index, rank in enumerate(ranks)]
    head = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    known = sorted(set(re.findall(r"%c(m?\d+)\b", body)))
    constants = "\n".join(f"%c{name} = arith.constant {name.replace('m', '-')} : index" for name in known)
    wrapped = ", ".join(f"[{shape}]" for shape in shapes)
    source = f"cpu.func @f({head}) shapes [{wrapped}] grid [{grid}] {{\n{constants}\n{body}\ncpu.return\n}}"
    run_cpu_kernel(text.read(source), "f", list(values), seed=seed)


def matrix(rows: int, cols: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 9, (rows, cols)).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


# Programs

PARALLEL = """
%rows = cpu.grid 0
%cols = cpu.grid 1
%b = arith.constant 1.0 : f32
cpu.parallel %rows, %cols once {
^bb0(%o: index):
  %one = tile.full %b : tensor<1xf32>
  tile.atomic<sum> %one, %times[%o] : tensor<1xf32>, !tile.view<1, f32, global>
  %ten = arith.muli %o, %c10 : index
  cpu.yield %ten : index
} do {
^bb0(%o: index, %i: index, %ten: index):
  %number = arith.addi %ten, %i : index
  %t = tile.iota %number, 0 : tensor<1xi32>
  %x = tile.ew<cast> %t : tensor<1xi32> -> tensor<1xf32>
  %y = tile.expand %x, 0 : tensor<1xf32> -> tensor<1x1xf32>
  tile.store %y, %out[%o, %i] : tensor<1x1xf32>, !tile.view<2, f32, global>
  %z = tile.full %b : tensor<1xf32>
  %seen = tile.load %count[%c0] : !tile.view<1, f32, global> -> tensor<1xf32>
  %w = tile.expand %seen, 0 : tensor<1xf32> -> tensor<1x1xf32>
  tile.store %w, %order[%o, %i] : tensor<1x1xf32>, !tile.view<2, f32, global>
  %next = tile.ew<add> %seen, %z : tensor<1xf32>, tensor<1xf32> -> tensor<1xf32>
  tile.store %next, %count[%c0] : tensor<1xf32>, !tile.view<1, f32, global>
  cpu.yield
}
"""
SHARED = {"out": view(), "order": view(), "times": view(rank=1), "count": view(rank=1)}


def parallel(seed: int | None) -> tuple[Array, Array, Array]:
    out, order, times = zeros(3, 4), zeros(3, 4), zeros(3)
    run(PARALLEL, SHARED, out, order, times, zeros(1), seed=seed, grid="3, 4")
    return out, order, times


def test_all_pairs_run_in_order_and_once_for_each_outer_index() -> None:
    out, order, times = parallel(None)
    assert np.array_equal(out, np.arange(3)[:, None] * 10 + np.arange(4))
    assert np.array_equal(order, np.arange(12).reshape(3, 4))
    assert np.array_equal(times, [1, 1, 1])


def test_with_a_seed_the_order_is_another_and_every_program_has_a_thread() -> None:
    plain = parallel(None)
    orders: set[bytes] = set()
    for seed in range(5):
        out, order, times = parallel(seed)
        assert np.array_equal(out, plain[0])
        assert sorted(order.ravel()) == list(range(12))
        assert np.array_equal(times, [4, 4, 4])
        orders.add(order.tobytes())
    assert len(orders) == 5
    assert np.array_equal(parallel(3)[1], parallel(3)[1])


@pytest.mark.parametrize("seed", [None, 1])
def test_a_grid_without_programs_does_nothing(seed: int | None) -> None:
    out, count = zeros(3, 4), zeros(1)
    run(PARALLEL, SHARED, out, out, zeros(3), count, seed=seed, grid="3, 0")
    assert count[0] == 0


def test_a_failed_assertion_names_the_pair() -> None:
    body = """
    cpu.parallel %c2, %c3 once {
    ^bb0(%o: index):
      cpu.yield
    } do {
    ^bb0(%o: index, %i: index):
      %good = arith.cmpi slt, %i, %c2 : index
      tile.assert %good, "too far" : i1
      cpu.yield
    }
    """
    with pytest.raises(CompileError, match=r"program instance \[0, 2\]: too far"):
        run(body, {})


# Buffers


@few
@given(st.integers(1, 6), st.integers(1, 20), st.data())
def test_buffers_keep_what_is_stored(rows: int, cols: int, data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    row, col = data.draw(st.integers(0, rows - height)), data.draw(st.integers(0, cols - width))
    if width == 1 and height != 1:
        return  # another case: it lies along a row
    x, y = matrix(height, width), zeros(height, width)
    tile, buffer = f"tensor<{height}x{width}xf32>", f"!cpu.buffer<{rows}x{cols}xf32>"
    run(
        f"""
        %b = cpu.buffer : {buffer}
        %t = tile.load %x[%c0, %c0] : {view()} -> {tile}
        cpu.store %t, %b[%c{row}, %c{col}] : {tile}, {buffer}
        %u = cpu.load %b[%c{row}, %c{col}] : {buffer} -> {tile}
        tile.store %u, %y[%c0, %c0] : {tile}, {view()}
        """,
        {"x": view(), "y": view()},
        x,
        y,
    )
    assert np.array_equal(x, y)


def halves(starts: tuple[int, int], axis: int) -> tuple[Array, Array]:
    """A part of the halves of a buffer's bytes, and a part of the bytes that they make: as found, and as wanted."""
    x = np.random.default_rng(0).integers(0, 256, (4, 6)).astype(np.uint8)
    apart = np.stack([x & 15, x >> 4], axis + 1).reshape([(8, 6), (4, 12)][axis])
    wide, at = f"{'x'.join(map(str, apart.shape))}xui4", f"%c{starts[0]}, %c{starts[1]}"
    found, back, (row, col) = zeros(3, 4, dtype=ml_dtypes.uint4), zeros(2, 3, dtype=np.uint8), starts
    run(
        f"""
        %a = cpu.buffer : !cpu.buffer<4x6xui8>
        %b = cpu.buffer : !cpu.buffer<{wide}>
        %t = tile.load %x[%c0, %c0] : {view("ui8")} -> tensor<4x6xui8>
        cpu.store %t, %a[%c0, %c0] : tensor<4x6xui8>, !cpu.buffer<4x6xui8>
        %h = cpu.load_halves %a[{at}] of [4, 6] along {axis} : !cpu.buffer<4x6xui8> -> tensor<3x4xui4>
        tile.store %h, %y[%c0, %c0] : tensor<3x4xui4>, {view("ui4")}
        %w = tile.load %v[%c0, %c0] : {view("ui4")} -> tensor<{wide}>
        cpu.store %w, %b[%c0, %c0] : tensor<{wide}>, !cpu.buffer<{wide}>
        %p = cpu.load_pairs %b[{at}] of [{", ".join(map(str, apart.shape))}] along {axis}
            : !cpu.buffer<{wide}> -> tensor<2x3xui8>
        tile.store %p, %z[%c0, %c0] : tensor<2x3xui8>, {view("ui8")}
        """,
        {"x": view("ui8"), "v": view("ui4"), "y": view("ui4"), "z": view("ui8")},
        x,
        apart.astype(ml_dtypes.uint4),
        found,
        back,
    )
    wanted = [apart[row : row + 3, col : col + 4], x[row : row + 2, col : col + 3]]
    return np.concatenate([found.ravel().astype(np.uint8), back.ravel()]), np.concatenate(
        [one.ravel() for one in wanted]
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_bytes_in_a_buffer_are_taken_apart_and_put_together(axis: int) -> None:
    for starts in ((0, 0), (1, 2), (1, 1), (0, 2)):
        found, wanted = halves(starts, axis)
        assert np.array_equal(found, wanted)
    with pytest.raises(ShapeError, match=r"elements at \[1, 9\] leave a tile of"):
        halves((1, 9), axis)


def test_one_column_lies_along_a_row_unless_a_column_is_meant() -> None:
    x, row, column, vector = matrix(5, 7), zeros(5, 1), zeros(5, 1), zeros(5)
    run(
        f"""
        %b = cpu.buffer : !cpu.buffer<5x7xf32>
        %t = tile.load %x[%c0, %c0] : {view()} -> tensor<5x7xf32>
        cpu.store %t, %b[%c0, %c0] : tensor<5x7xf32>, !cpu.buffer<5x7xf32>
        %u = cpu.load %b[%c3, %c2] : !cpu.buffer<5x7xf32> -> tensor<5x1xf32>
        tile.store %u, %row[%c0, %c0] : tensor<5x1xf32>, {view()}
        %v = cpu.load column %b[%c0, %c2] : !cpu.buffer<5x7xf32> -> tensor<5x1xf32>
        tile.store %v, %column[%c0, %c0] : tensor<5x1xf32>, {view()}
        cpu.store %v, %b[%c1, %c1] : tensor<5x1xf32>, !cpu.buffer<5x7xf32>
        %w = cpu.load %b[%c1, %c1] : !cpu.buffer<5x7xf32> -> tensor<5xf32>
        tile.store %w, %vector[%c0] : tensor<5xf32>, {view(rank=1)}
        """,
        {"x": view(), "row": view(), "column": view(), "vector": view(rank=1)},
        x,
        row,
        column,
        vector,
    )
    assert np.array_equal(row[:, 0], x[3, 2:7])
    assert np.array_equal(column, x[:, 2:3])
    assert np.array_equal(vector, x[:, 2])


ELEMENTS: dict[str, Any] = {
    "f32": np.float32,
    "i8": np.int8,
    "ui8": np.uint8,
    "i1": np.bool_,
    "i4": ml_dtypes.int4,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("element", ELEMENTS)
def test_fresh_memory_holds_nothing_useful_and_cleared_memory_zeros(element: str, seed: int | None) -> None:
    dtype = ELEMENTS[element]
    fresh, cleared = np.zeros((4, 8), dtype), np.ones((4, 8), dtype)
    tile, buffer = f"tensor<4x8x{element}>", f"!cpu.buffer<4x8x{element}>"
    run(
        f"""
        %b = cpu.buffer : {buffer}
        %t = cpu.load %b[%c0, %c0] : {buffer} -> {tile}
        tile.store %t, %fresh[%c0, %c0] : {tile}, {view(element)}
        cpu.clear %b : {buffer}
        %u = cpu.load %b[%c0, %c0] : {buffer} -> {tile}
        tile.store %u, %cleared[%c0, %c0] : {tile}, {view(element)}
        """,
        {"fresh": view(element), "cleared": view(element)},
        fresh,
        cleared,
        seed=seed,
    )
    assert np.count_nonzero(fresh.astype(np.float64)) > 8
    assert not np.any(cleared.astype(np.float64))
    if element == "f32" and seed is None:
        assert np.all(np.isnan(fresh))


# Packing and products


@few
@given(st.booleans(), st.integers(-3, 6), st.integers(-3, 6), st.sampled_from(["f32", "bf16"]), st.integers(0, 2))
def test_packing_fills_up_with_zeros(transposed: bool, row: int, col: int, element: str, number: int) -> None:
    x = matrix(6, 5, np.float32 if element == "f32" else bf16)
    wanted = np.zeros((7, 4))
    for i in range(7):
        for j in range(4):
            place = (row + j, col + i) if transposed else (row + i, col + j)
            if 0 <= place[0] < 6 and 0 <= place[1] < 5:
                wanted[i, j] = x[place]
    # The product with the identity gives the matrix back.
    found = zeros(7, 4)
    down, across = ("%c" + str(at).replace("-", "m") for at in (row, col))
    how, panels, tile = "transposed" if transposed else "", "!cpu.panels<7x4xf32, 8>", "tensor<7x4xf32>"
    run(
        f"""
        %a = cpu.buffer : !cpu.buffer<7x7xf32>
        %i = tile.load %eye[%c0, %c0] : {view()} -> tensor<7x7xf32>
        cpu.store %i, %a[%c0, %c0] : tensor<7x7xf32>, !cpu.buffer<7x7xf32>
        %p = cpu.reserve %c3 : {panels}
        cpu.pack {how} %x[{down}, {across}], %p[%c{number}] : {view(element)}, {panels}
        %zero = arith.constant 0.0 : f32
        %c = tile.full %zero : tensor<7x4xf32>
        %d = cpu.dot %a[%c0], %p[%c{number}, %c0], %c : !cpu.buffer<7x7xf32>, {panels}, {tile} -> {tile}
        tile.store %d, %y[%c0, %c0] : tensor<7x4xf32>, {view()}
        """,
        {"x": view(element), "eye": view(), "y": view()},
        x,
        np.eye(7, dtype=np.float32),
        found,
    )
    assert np.array_equal(found, wanted)


DOT = """
%a = cpu.buffer : !cpu.buffer<6x12x{t}>
%ta = tile.load %x[%c0, %c0] : !tile.view<2, {t}, global> -> tensor<6x12x{t}>
cpu.store %ta, %a[%c0, %c0] : tensor<6x12x{t}>, !cpu.buffer<6x12x{t}>
{right}
%c = tile.load %start[%c0, %c0] : !tile.view<2, {s}, global> -> tensor<4x5x{s}>
%d = cpu.dot %a[%c{row}], %b[%c0, %c{col}], %c {depth}
  : !cpu.buffer<6x12x{t}>, {type}, tensor<4x5x{s}> -> tensor<4x5x{s}>
tile.store %d, %y[%c0, %c0] : tensor<4x5x{s}>, !tile.view<2, {s}, global>
"""
PANELS = """
%b = cpu.reserve %c1 : !cpu.panels<12x20x{t}, 8>
cpu.pack %w[%c0, %c0], %b[%c0] : !tile.view<2, {t}, global>, !cpu.panels<12x20x{t}, 8>
"""
BUFFER = """
%b = cpu.buffer : !cpu.buffer<16x20x{t}>
%tb = tile.load %w[%c0, %c0] : !tile.view<2, {t}, global> -> tensor<12x20x{t}>
cpu.store %tb, %b[%c0, %c0] : tensor<12x20x{t}>, !cpu.buffer<16x20x{t}>
"""
TYPES: dict[str, tuple[Any, str, Any]] = {
    "f32": (np.float32, "f32", np.float32),
    "bf16": (bf16, "f32", np.float32),
    "i8": (np.int8, "i32", np.int32),
}


def dot(element: str, packed: bool, row: int, col: int, depth: int | None = None) -> tuple[Array, Array]:
    """What a product gives, and what it should."""
    dtype, sums, total = TYPES[element]
    x, w, start, y = matrix(6, 12, dtype), matrix(12, 20, dtype, 1), matrix(4, 5, total, 2), zeros(4, 5, dtype=total)
    body = DOT.format(
        t=element,
        s=sums,
        right=(PANELS if packed else BUFFER).format(t=element),
        type=f"!cpu.panels<12x20x{element}, 8>" if packed else f"!cpu.buffer<16x20x{element}>",
        row=row,
        col=col,
        depth="" if depth is None else f"depth %c{depth}",
    )
    run(body, {"x": view(element), "w": view(element), "start": view(sums), "y": view(sums)}, x, w, start, y)
    used = 12 if depth is None else depth
    product = x[row : row + 4, :used].astype(np.float64) @ w[:used, col : col + 5].astype(np.float64)
    return y, start + product


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("row", "col", "depth"), [(0, 0, None), (2, 8, None), (1, 8, 0), (1, 0, 8), (2, 8, 12)])
def test_a_dot_takes_rows_of_a_buffer_and_columns_of_a_panel(
    element: str, packed: bool, row: int, col: int, depth: int | None
) -> None:
    found, wanted = dot(element, packed, row, col, depth)
    assert np.array_equal(found, wanted)


def test_a_dot_reads_nothing_that_is_not_there() -> None:
    found, wanted = dot("f32", False, 0, 15)
    assert np.array_equal(found, wanted)
    for packed, row, col, depth, message in (
        (True, 3, 0, None, "4 rows from 3 on leave a buffer of 6"),
        (True, 0, 4, None, "a dot of 5 columns from 4 on: they are not those of one panel of 8"),
        (True, 0, 16, None, "5 columns from 16 on leave a matrix of 20"),
        (False, 0, 16, None, "5 columns from 16 on leave a matrix of 20"),
        (True, 0, 0, 6, "a dot over 6 of 12 columns: expected whole steps of 4"),
        (True, 0, 0, 16, "a dot over 16 of 12 columns: expected whole steps of 4"),
    ):
        with pytest.raises(ShapeError, match=message):
            dot("f32", packed, row, col, depth)


MATMUL = """
%a = cpu.buffer : !cpu.buffer<48x24x{t}>
{clear}
%ta = tile.load %x[%c0, %c0] : !tile.view<2, {t}, global> -> tensor<40x24x{t}>
cpu.store %ta, %a[%c0, %c0] : tensor<40x24x{t}>, !cpu.buffer<48x24x{t}>
%b = cpu.reserve %c2 : !cpu.panels<24x37x{t}, 16, {deep}>
cpu.pack %w[%c0, %c0], %b[%c1] : !tile.view<2, {t}, global>, !cpu.panels<24x37x{t}, 16, {deep}>
%o = cpu.buffer : !cpu.buffer<48x37x{s}>
%ts = tile.load %y[%c0, %c0] : !tile.view<2, {s}, global> -> tensor<40x37x{s}>
cpu.store %ts, %o[%c0, %c0] : tensor<40x37x{s}>, !cpu.buffer<48x37x{s}>
cpu.matmul {added} %a, %b[%c1], %o[%c{row}, %c{col}] size [{size}] {depth}
  : !cpu.buffer<48x24x{t}>, !cpu.panels<24x37x{t}, 16, {deep}>, !cpu.buffer<48x37x{s}>
%to = cpu.load %o[%c0, %c0] : !cpu.buffer<48x37x{s}> -> tensor<40x37x{s}>
tile.store %to, %y[%c0, %c0] : tensor<40x37x{s}>, !tile.view<2, {s}, global>
"""


def matmul(
    element: str,
    row: int,
    col: int,
    size: tuple[int, int],
    *,
    added: bool,
    clear: bool = True,
    depth: tuple[int, int] | None = None,
) -> tuple[Array, Array]:
    dtype, sums, total = TYPES[element]
    x, w, y = matrix(40, 24, dtype), matrix(24, 37, dtype, 1), matrix(40, 37, total, 2)
    wanted = y.copy()
    used = slice(*depth or (0, 24))
    product = x[:, used].astype(np.float64) @ w[used].astype(np.float64)
    block = slice(row, row + size[0]), slice(col, col + size[1])
    wanted[block] = product[block] + (wanted[block] if added else 0)
    body = MATMUL.format(
        t=element,
        s=sums,
        deep=4 // np.dtype(dtype).itemsize,
        clear=f"cpu.clear %a : !cpu.buffer<48x24x{element}>" if clear else "",
        added="added" if added else "",
        row=row,
        col=col,
        size=f"{size[0]}, {size[1]}",
        depth="" if depth is None else f"depth %c{depth[0]}, %c{depth[1]}",
    )
    run(body, {"x": view(element), "w": view(element), "y": view(sums)}, x, w, y)
    return y, wanted


@pytest.mark.parametrize("element", ["bf16", "i8"])
@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(
    ("row", "col", "size"), [(0, 0, (32, 32)), (32, 0, (16, 16)), (16, 32, (32, 16)), (0, 16, (16, 32))]
)
def test_the_matrix_unit_works_on_blocks(element: str, added: bool, row: int, col: int, size: tuple[int, int]) -> None:
    found, wanted = matmul(element, row, col, size, added=added)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize("depth", [(0, 32), (0, 0), (32, 32), (32, 0)])
def test_the_matrix_unit_takes_columns_from_one_to_another(added: bool, depth: tuple[int, int]) -> None:
    found, wanted = matmul("bf16", 16, 0, (16, 32), added=added, depth=depth)
    assert np.array_equal(found, wanted)
    with pytest.raises(ShapeError, match="a dot over 8 of 32 columns: expected whole steps of 32"):
        matmul("bf16", 16, 0, (16, 32), added=added, depth=(8, 32))


def test_the_matrix_unit_reads_what_lies_between_rows() -> None:
    """A left operand whose gaps were not cleared spoils every sum."""
    found, wanted = matmul("bf16", 0, 0, (16, 16), added=False, clear=False)
    assert np.all(np.isnan(found[:16, :16]))
    assert np.array_equal(found[16:], wanted[16:])


def test_the_matrix_unit_needs_whole_blocks() -> None:
    with pytest.raises(ShapeError, match="32 rows from 32 on leave a buffer of 48"):
        matmul("bf16", 32, 0, (32, 16), added=False)
    with pytest.raises(ShapeError, match="32 columns from 32 on leave rows of 37"):
        matmul("bf16", 0, 32, (16, 32), added=False)


# Work on tiles


@few
@given(st.sampled_from(["sum", "max", "min", "prod"]), st.integers(1, 9), st.integers(0, 20), st.integers(0, 100))
def test_a_partial_result_may_be_finished_later(kind: str, few_cols: int, cols: int, seed: int) -> None:
    acc, x, y = matrix(3, few_cols, seed=seed), matrix(3, cols, seed=seed + 1), zeros(3)
    less, more = f"tensor<3x{few_cols}xf32>", f"tensor<3x{cols}xf32>"
    run(
        f"""
        %a = tile.load %acc[%c0, %c0] : {view()} -> {less}
        %b = tile.load %x[%c0, %c0] : {view()} -> {more}
        %p = cpu.partial<{kind}> %a, %b : {less}, {more} -> {less}
        %s = tile.reduce<{kind}> %p, 1 : {less} -> tensor<3xf32>
        tile.store %s, %y[%c0] : tensor<3xf32>, {view(rank=1)}
        """,
        {"acc": view(), "x": view(), "y": view(rank=1)},
        acc,
        x,
        y,
    )
    everything = np.concatenate([acc, x], 1).astype(np.float64)
    wanted = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[kind](everything, 1)
    assert np.allclose(y, wanted, rtol=1e-6)


@pytest.mark.parametrize("true", [[], [0], [3], [0, 1, 2, 3, 4]])
def test_any_looks_at_every_element(true: list[int]) -> None:
    x, y = np.zeros(5, np.bool_), np.zeros((), np.float32)
    x[true] = True
    run(
        f"""
        %t = tile.load %x[%c0] : {view("i1", 1)} -> tensor<5xi1>
        %a = cpu.any %t : tensor<5xi1>
        %f = arith.sitofp %a : i1 to f32
        %s = tile.full %f : tensor<f32>
        tile.store %s, %y[] : tensor<f32>, {view(rank=0)}
        """,
        {"x": view("i1", 1), "y": view(rank=0)},
        x,
        y,
    )
    assert (y != 0) == bool(true)


# What a program may not do

INSIDE = """
%t = tile.load %x[{at}] {{inside}} : !tile.view<2, f32, global> -> tensor<{shape}xf32>
tile.store %t, %y[%c0, %c0] {{inside}} : tensor<{shape}xf32>, !tile.view<2, f32, global>
"""


def inside(x: Array, at: str, shape: str, y: Array | None = None) -> None:
    body = INSIDE.format(at=at, shape=shape)
    run(body, {"x": view(), "y": view()}, x, zeros(8, 8) if y is None else y)


def test_what_is_marked_as_inside_is_inside() -> None:
    inside(matrix(4, 8), "%c1, %c2", "3x6")
    inside(matrix(8, 4).T, "%c0, %c3", "4x1", zeros(8, 8).T)
    inside(matrix(4, 16)[:, ::2], "%c0, %c3", "1x1")
    for x, at, shape, message in (
        (matrix(4, 8), "%c2, %c2", "3x6", "marked as inside a view of sizes"),
        (matrix(4, 8), "%c1, %c3", "3x6", "marked as inside a view of sizes"),
        (matrix(4, 8), "%cm1, %c0", "3x6", "marked as inside a view of sizes"),
        (matrix(4, 16)[:, ::2], "%c0, %c0", "3x6", "lanes 2 elements apart along axis 1"),
        (matrix(4, 8), "%c0, %c3", "4x1", "lanes 8 elements apart along axis 0"),
    ):
        with pytest.raises(ShapeError, match=message) as caught:
            inside(x, at, shape)
        assert caught.value.hint
    with pytest.raises(ShapeError, match=r"a tile of sizes \[3, 6\] at \[0, 0\] is marked as inside"):
        inside(matrix(4, 8), "%c0, %c0", "3x6", zeros(2, 8))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%t = cpu.load %b[%c3, %c0] : !cpu.buffer<4x8xf32> -> tensor<2x8xf32>", r"2 by 8 elements at \[3, 0\] leave"),
        ("%t = cpu.load %b[%c0, %c1] : !cpu.buffer<4x8xf32> -> tensor<8xf32>", r"1 by 8 elements at \[0, 1\] leave"),
        ("%t = cpu.load %b[%c0, %c7] : !cpu.buffer<4x8xf32> -> tensor<4x1xf32>", r"1 by 4 elements at \[0, 7\] leave"),
        ("%t = cpu.load column %b[%c1, %c7] : !cpu.buffer<4x8xf32> -> tensor<4x1xf32>", r"4 by 1 elements at \[1, 7\]"),
        ("cpu.store %s, %b[%cm1, %c0] : tensor<2x2xf32>, !cpu.buffer<4x8xf32>", r"2 by 2 elements at \[-1, 0\] leave"),
        ("%q = cpu.reserve %cm1 : !cpu.panels<4x4xf32, 8>", "memory for -1 matrices"),
        (
            "cpu.pack %x[%c0, %c0], %p[%c2] : !tile.view<2, f32, global>, !cpu.panels<4x4xf32, 8>",
            "matrix 2 of 2 that are",
        ),
        (
            "%r = cpu.borrow %x[%c1, %c0] : !tile.view<2, f32, global> -> !cpu.buffer<4x4xf32, dense>",
            r"4 by 4 elements at \[1, 0\] leave a view",
        ),
        (
            "%r = cpu.borrow %x[%c0, %c0] : !tile.view<2, f32, global> -> !cpu.buffer<4x3xf32, dense>",
            r"rows \(16, 4\) bytes apart are borrowed as !cpu.buffer<4x3xf32, dense>",
        ),
    ],
)
def test_memory_has_ends(body: str, message: str) -> None:
    setup = """
    %b = cpu.buffer : !cpu.buffer<4x8xf32>
    %p = cpu.reserve %c2 : !cpu.panels<4x4xf32, 8>
    %f = arith.constant 0.0 : f32
    %s = tile.full %f : tensor<2x2xf32>
    """
    with pytest.raises(ShapeError, match=message) as caught:
        run(setup + body, {"x": view()}, zeros(4, 4))
    assert caught.value.span is not None


def test_borrowed_rows_are_copied_where_they_are_written() -> None:
    body = """
    %r = cpu.borrow %x[%c0, %c0] WRITTEN : !tile.view<2, f32, global> -> !cpu.buffer<2x4xf32, dense>
    %f = arith.constant 7.0 : f32
    %s = tile.full %f : tensor<1x4xf32>
    tile.store %s, %x[%c0, %c0] : tensor<1x4xf32>, !tile.view<2, f32, global>
    %t = cpu.load %r[%c0, %c0] : !cpu.buffer<2x4xf32, dense> -> tensor<1x4xf32>
    tile.store %t, %x[%c1, %c0] : tensor<1x4xf32>, !tile.view<2, f32, global>
    """
    for said, expected in (("", 7.0), ("written %x : !tile.view<2, f32, global>", 0.0)):
        x = zeros(2, 4)
        run(body.replace("WRITTEN", said), {"x": view()}, x)
        assert (x[1] == expected).all()


def test_arguments_are_checked_as_at_the_tile_level() -> None:
    store = f"""
    %f = arith.constant 0.0 : f32
    %s = tile.full %f : tensor<2xf32>
    tile.store %s, %x[%c0] : tensor<2xf32>, {view(rank=1)}
    """
    types = {"x": view(rank=1)}
    fixed = zeros(4)
    fixed.flags.writeable = False
    cases: list[tuple[list[Any], type[TesseraError], str]] = [
        ([], ShapeError, "@f takes 1 arguments, got 0"),
        ([zeros(4, dtype=np.float64)], DtypeError, "expected an array of f32"),
        ([zeros(4, 4)], ShapeError, "expected rank 1, got 2"),
        ([fixed], EffectError, "argument 0 of @f is written, and the array given is read-only"),
    ]
    for values, kind, message in cases:
        with pytest.raises(kind, match=message):
            run(store, types, *values)
    module = text.read("cpu.func @f() shapes [] grid [] {\ncpu.return\n}")
    with pytest.raises(CompileError, match=r"expected a cpu\.func @g, the module has nothing of that name"):
        run_cpu_kernel(module, "g", [])
