"""Shared memory, asynchronous copies and products of the nv level: the PTX is assembled, and run by `ptx_machine`."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import ptx_checks
import pytest
from gpu_options import gpu
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from ptx_machine import Machine
from ptx_rules import Array, PtxError
from ptx_runs import no_conflicts, numbers, run, spelled

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType
from tessera.errors import CompileError
from tessera.targets import text
from tessera.targets.cuda.compile import TRIPLE, CompiledPtx, compile_lowered
from tessera.targets.cuda.emit.rules import emit
from tessera.targets.cuda.emit.shared import matrices_of, runs_of
from tessera.targets.cuda.ir import layouts
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.tensor_cores import INSTRUCTIONS, grid_of, operand_bits
from tessera.targets.cuda.ir.types import panel_for
from tessera.targets.llvm import machine

# One product of two tiles


def product_text(
    left: DType,
    right: DType,
    total: DType,
    shape: tuple[int, int, int],
    warps: tuple[int, int],
    *,
    transposed: tuple[bool, bool] = (False, False),
    marks: str = "",
) -> str:
    """c + a · b, where transposed operands lie so in global and in shared memory."""
    rows, depth, columns = shape
    sums = layouts.accumulator(rows, columns, warps)
    a = layouts.left_operand(rows, depth, warps, operand_bits(left))
    b = layouts.right_operand(depth, columns, warps, operand_bits(right))
    a_shape = (depth, rows) if transposed[0] else (rows, depth)
    b_shape = (columns, depth) if transposed[1] else (depth, columns)
    c = f"tensor<{rows}x{columns}x{spelled(total)}, #nv.layout<{sums}>>"

    def memory(shape: tuple[int, int], dtype: DType) -> str:
        panel = panel_for(shape[1], dtype.storage.itemsize)
        return f"!nv.shared<{shape[0]}x{shape[1]}x{spelled(dtype)}, {panel}>"

    def view(dtype: DType) -> str:
        return f"!tile.view<2, {spelled(dtype)}, global>"

    return f"""
!a = tensor<{rows}x{depth}x{spelled(left)}, #nv.layout<{a}>>
!b = tensor<{depth}x{columns}x{spelled(right)}, #nv.layout<{b}>>
!c = {c}
nv.func @f(%x: {view(left)}, %y: {view(right)}, %z: {view(total)}) outputs 0 \
shapes [[M, K], [K1, N], [M1, N1]] grid [1] threads {32 * warps[0] * warps[1]} {{
  %0 = arith.constant 0 : index
  %as = nv.alloc : {memory(a_shape, left)}
  %bs = nv.alloc : {memory(b_shape, right)}
  nv.copy_async %x[%0, %0], %as {marks} : {view(left)}, {memory(a_shape, left)}
  nv.copy_async %y[%0, %0], %bs {marks} : {view(right)}, {memory(b_shape, right)}
  nv.commit
  nv.wait 0
  %c = tile.load %z[%0, %0] : {view(total)} -> !c
  %a = nv.read %as[0, 0]{" transposed" if transposed[0] else ""} : {memory(a_shape, left)} -> !a
  %b = nv.read %bs[0, 0]{" transposed" if transposed[1] else ""} : {memory(b_shape, right)} -> !b
  %d = nv.mma %a, %b, %c : !a, !b, !c -> !c
  tile.store %d, %z[%0, %0] : !c, {view(total)}
  nv.return
}}
"""


@cache
def compiled(source: str, arch: str = "sm_90a") -> CompiledPtx:
    return compile_lowered(text.read(source), "f", gpu(arch))


def check_product(
    left: DType,
    right: DType,
    total: DType,
    shape: tuple[int, int, int],
    warps: tuple[int, int],
    transposed: tuple[bool, bool] = (False, False),
    *,
    marks: str = "",
    bound: float = 1e-6,
) -> list[Machine]:
    rows, depth, columns = shape
    program = compiled(product_text(left, right, total, shape, warps, transposed=transposed, marks=marks))
    a, b = numbers(1, (rows, depth), left), numbers(2, (depth, columns), right)
    c = numbers(3, (rows, columns), total) if total.is_float else np.zeros((rows, columns), total.storage)
    wide = np.float64 if total.is_float else np.int64
    truth = a.astype(wide) @ b.astype(wide) + c.astype(wide)
    given = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), transposed, strict=True)]
    machines = run(program, [*given, c])
    if total.is_float:
        size = np.abs(a.astype(wide)) @ np.abs(b.astype(wide)) + 1
        assert (np.abs(c.astype(wide) - truth) <= bound * size).all()
    else:
        assert (c == truth.astype(total.storage)).all()
    return machines


FLOATS = [
    (dt.bf16, dt.f32, 1e-6),
    (dt.f16, dt.f32, 1e-6),
    (dt.f16, dt.f16, 2e-3),
    (dt.tf32, dt.f32, 1e-6),
    (dt.f32, dt.f32, 2e-6),
    (dt.f64, dt.f64, 1e-15),
]


@pytest.mark.quick
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("dtype", "total", "bound"), FLOATS, ids=str)
def test_products_of_floats_are_right(dtype: DType, total: DType, bound: float, transposed: tuple[bool, bool]) -> None:
    if dtype is dt.tf32:
        bound = 2e-3  # the operands of this test are f32, cut off
    machines = check_product(dtype, dtype, total, (32, 32, 48), (2, 1), transposed, bound=bound)
    no_conflicts(machines, "cp.async")
    if dtype.storage.itemsize == 2:
        no_conflicts(machines, "ldmatrix")


@pytest.mark.quick
@pytest.mark.parametrize("pair", [(dt.i8, dt.i8), (dt.u8, dt.u8), (dt.i8, dt.u8), (dt.u8, dt.i8)], ids=str)
@pytest.mark.parametrize("transposed", [(False, False), (False, True)])
def test_products_of_bytes_are_exact(pair: tuple[DType, DType], transposed: tuple[bool, bool]) -> None:
    check_product(*pair, dt.u32 if pair == (dt.u8, dt.u8) else dt.i32, (32, 96, 24), (1, 1), transposed)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shape", "warps"),
    [
        ((16, 16, 8), (1, 1)),
        ((64, 32, 64), (2, 2)),
        ((64, 16, 24), (1, 4)),
        ((128, 48, 16), (4, 1)),
        ((48, 16, 40), (2, 1)),  # 2 warps have 64 rows
        ((20, 16, 20), (2, 2)),
        ((64, 40, 32), (4, 1)),  # 40 of 48
        ((64, 5, 32), (4, 1)),  # pairs that end in the middle
        ((17, 23, 9), (1, 2)),
        ((80, 80, 80), (4, 2)),
        ((1, 1, 1), (1, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
def test_tiles_of_all_sizes_are_multiplied(
    shape: tuple[int, int, int], warps: tuple[int, int], transposed: tuple[bool, bool]
) -> None:
    no_conflicts(check_product(dt.bf16, dt.bf16, dt.f32, shape, warps, transposed), "ldmatrix")


@pytest.mark.parametrize("dtype", [dt.f32, dt.i8, dt.f64], ids=str)
def test_other_types_end_anywhere_too(dtype: DType) -> None:
    total = dt.i32 if dtype is dt.i8 else dtype
    check_product(dtype, dtype, total, (19, 13, 11), (1, 2), bound=2e-6)


def test_infinities_stay_infinite_in_products_of_f32() -> None:
    program = compiled(product_text(dt.f32, dt.f32, dt.f32, (16, 8, 8), (1, 1)))
    a, b = np.ones((16, 8), np.float32), np.ones((8, 8), np.float32)
    a[3, 2], a[5, 1], b[4, 6], a[7, 0], b[0, 5] = np.inf, np.nan, 3.0e38, -np.inf, np.inf
    c = np.zeros((16, 8), np.float32)
    with np.errstate(all="ignore"):
        truth = a @ b
    run(program, [a, b, c])
    assert np.isinf(truth[3]).all()
    assert np.allclose(c, truth, rtol=2e-6, equal_nan=True)


def test_deep_products_of_f32_do_not_lose_bits() -> None:
    """Tensor cores cut off instead of rounding: sums of thousands of products must not go through them."""
    source = compiled(product_text(dt.f32, dt.f32, dt.f32, (16, 64, 8), (1, 1)))
    found = ptx_checks.instructions(source.ptx)
    assert found["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] == 3 * 8
    assert found["add.rn.f32"] == 4 * 8


@pytest.mark.parametrize("dtype", [dt.f8e4m3, dt.f8e5m2], ids=str)
def test_products_of_8_bit_floats(dtype: DType) -> None:
    """LLVM writes the version of PTX that it is told; these need a later one."""
    module = text.read(product_text(dtype, dtype, dt.f32, (32, 64, 16), (1, 1), transposed=(False, True)))
    emitted = emit(module, "f")
    ptx = machine.assembly(TRIPLE + emitted.text, cpu="sm_90", features="+ptx84")
    ptx_checks.check_clean(ptx, "sm_90")
    a, b = numbers(1, (32, 64), dtype), numbers(2, (64, 16), dtype)
    c = np.zeros((32, 16), np.float32)
    run(CompiledPtx("f", ptx, emitted.block, 32, emitted.shared, ()), [a, np.ascontiguousarray(b.T), c])
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-5)


@pytest.mark.quick
@pytest.mark.parametrize("types", [types for types in INSTRUCTIONS if types[0] not in (dt.f8e4m3, dt.f8e5m2)], ids=str)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_product_assembles_without_spills(types: tuple[DType, DType, DType], arch: str) -> None:
    left, right, total = types
    source = product_text(left, right, total, (64, 32, 32), (2, 2))
    program = compiled(source, arch)
    ptx_checks.check_clean(program.ptx, arch)
    assert ptx_checks.count(program.ptx, f"mma.sync.aligned.{INSTRUCTIONS[types].name}") > 0


# Copies


def test_aligned_copies_are_one_instruction_each() -> None:
    program = compiled(product_text(dt.bf16, dt.bf16, dt.f32, (64, 64, 64), (2, 2), marks="{aligned}"))
    found = ptx_checks.instructions(program.ptx)
    assert found["cp.async.cg.shared.global.L2::128B"] == 2 * 64 * 64 * 2 // 16 // 128
    assert found["cp.async.ca.shared.global"] == found["st.shared.b16"] == 0
    assert found["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 2 * 4  # 32 rows, 64 deep
    assert found["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] == 2 * 4  # 32 columns
    assert found["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] == 2 * 4 * 4
    check_product(dt.bf16, dt.bf16, dt.f32, (64, 64, 64), (2, 2), marks="{aligned}")
    check_product(dt.bf16, dt.bf16, dt.f32, (64, 64, 64), (2, 2), marks="{aligned, inside}")


COPY = """
!x = !tile.view<{rank}, {element}, global>
!y = !tile.view<2, {element}, global>
!s = !nv.shared<{rows}x{columns}x{element}, {panel}>
!t = tensor<{rows}x{columns}x{element}, #nv.layout<{layout}>>
nv.func @f(%x: !x, %row: index, %column: index, %y: !y) outputs 0 shapes [{shape}, [], [], [P, Q]] grid [1] \
threads {threads} {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %s = nv.alloc : !s
  nv.copy_async %x[{lead}%row, %column], %s{transposed} : !x, !s
  nv.commit
  nv.wait 0
  %t = nv.read %s[0, 0] : !s -> !t
  tile.store %t, %y[%0, %0] : !t, !y
  nv.return
}}
"""


def check_copy(
    view: Array, at: tuple[int, int], shape: tuple[int, int], *, transposed: bool = False, threads: int = 64
) -> Machine:
    """What lands in shared memory is the tile at a place of the view, zeros beyond it."""
    rows, columns = shape
    dtype = next(each for each in dt.ALL if each.storage == view.dtype and each is not dt.tf32)
    layout = layouts.blocked(shape, threads, 1)
    source = COPY.format(
        rank=view.ndim,
        element=spelled(dtype),
        shape="[S0, S1]" if view.ndim == 2 else "[S0, S1, S2]",
        threads=threads,
        rows=rows,
        columns=columns,
        panel=panel_for(columns, view.itemsize),
        lead="%1, " if view.ndim == 3 else "",
        transposed=" transposed" if transposed else "",
        layout=layout,
    )
    found = np.full(shape, 7, view.dtype)
    (made,) = run(compiled(source), [view, *at, found])
    plane = view[1] if view.ndim == 3 else view
    truth = np.zeros(shape[::-1] if transposed else shape, view.dtype)
    for row in range(truth.shape[0]):
        for column in range(truth.shape[1]):
            place = at[0] + row, at[1] + column
            if 0 <= place[0] < plane.shape[0] and 0 <= place[1] < plane.shape[1]:
                truth[row, column] = plane[place]
    assert (found == (truth.T if transposed else truth)).all()
    return made


@pytest.mark.parametrize("at", [(0, 0), (8, 16), (40, 40), (-4, -8), (100, 0)], ids=str)
def test_copies_are_zero_beyond_the_view(at: tuple[int, int]) -> None:
    view = np.arange(1, 64 * 72 + 1, dtype=np.int16).reshape(64, 72)
    made = check_copy(view, at, (32, 40))
    no_conflicts([made], "cp.async")


def counted(rows: int, columns: int, kind: str = "i2") -> Array:
    return np.arange(1, rows * columns + 1).astype(kind).reshape(rows, columns)


@pytest.mark.parametrize(
    ("view", "at", "instruction"),
    [
        (counted(64, 72), (0, 8), "cp.async.cg.shared.global.L2::128B"),
        (counted(64, 72), (0, 2), "cp.async.ca.shared.global"),  # 4 bytes
        (counted(64, 70), (3, 4), "cp.async.ca.shared.global"),
        (counted(64, 72), (0, 1), "st.shared.b16"),
        (counted(64, 71), (0, 0), "st.shared.b16"),
        (counted(64, 144)[:, ::2], (5, 8), "st.shared.b16"),
        (counted(128, 72)[::-2], (5, 8), "cp.async.cg.shared.global.L2::128B"),
        (counted(64, 36, "i4"), (1, 1), "cp.async.ca.shared.global"),
        (counted(64, 40, "u1"), (1, 3), "st.shared.b8"),
        (counted(64, 40, "f8"), (1, 3), "st.shared.b64"),
        (counted(64, 40, "f8"), (1, 2), "cp.async.cg.shared.global.L2::128B"),
    ],
    ids=["chunks", "words", "narrow", "odd", "odd rows", "strided", "backwards", "i32", "bytes", "doubles", "pairs"],
)
def test_memory_decides_how_it_is_copied(view: Array, at: tuple[int, int], instruction: str) -> None:
    made = check_copy(view, at, (24, 24))
    ways = (
        "cp.async.cg.shared.global.L2::128B",
        "cp.async.ca.shared.global",
        "st.shared.b8",
        "st.shared.b16",
        "st.shared.b64",
    )
    assert [way for way in ways if made.counts[way]] == [instruction]


def test_copies_may_turn_tiles() -> None:
    """A view of columns: what lies side by side in memory does so in shared memory."""
    made = check_copy(np.asfortranarray(counted(64, 80)), (8, 16), (24, 32), transposed=True)
    assert made.counts["cp.async.cg.shared.global.L2::128B"]


def test_copies_out_of_planes() -> None:
    check_copy(np.arange(3 * 40 * 24, dtype=np.int32).reshape(3, 40, 24), (4, 8), (24, 24))


@settings(max_examples=15, deadline=None)
@drawn(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(-20, 60),
    st.integers(-20, 60),
    st.sampled_from(["u1", "i2", "i4", "f8"]),
    st.sampled_from([32, 96, 128]),
)
def test_tiles_of_any_size_are_copied(rows: int, columns: int, down: int, across: int, kind: str, threads: int) -> None:
    check_copy(counted(50, 48, kind), (down, across), (rows, columns), threads=threads)


def test_a_copy_that_nobody_waits_for_is_caught() -> None:
    source = product_text(dt.bf16, dt.bf16, dt.f32, (16, 16, 8), (1, 1)).replace("nv.wait 0", "nv.barrier")
    arrays = [np.zeros(shape, ml_dtypes.bfloat16) for shape in ((16, 16), (16, 8))]
    with pytest.raises(PtxError, match="while a copy into it is under way"):
        run(compiled(source), [*arrays, np.zeros((16, 8), np.float32)])


def test_what_is_known_of_arguments_leaves_one_way_to_copy() -> None:
    source = product_text(dt.bf16, dt.bf16, dt.f32, (64, 64, 64), (2, 2))
    ways = ("cp.async.cg", "cp.async.ca", "st.shared")
    assert [ptx_checks.count(compiled(source).ptx, way) for way in ways] == [8, 2, 2]
    row_aligned = source.replace("threads 128 {", "threads 128 attributes {row_aligned = array<i64: 0, 1>} {")
    assert [ptx_checks.count(compiled(row_aligned).ptx, way) for way in ways] == [8, 0, 0]
    # Where a tile begins is another matter: 4 elements are 8 bytes.
    moved = row_aligned.replace("%x[%0, %0]", "%x[%0, %4]").replace("%0 =", "%4 = arith.constant 4 : index\n  %0 =")
    assert [ptx_checks.count(compiled(moved).ptx, way) for way in ways] == [4, 1, 0]


# Registers to shared memory and back


ROUND = """
!x = !tile.view<2, {element}, global>
!s = !nv.shared<{rows}x{columns}x{element}, {panel}>
!t = tensor<{rows}x{columns}x{element}, #nv.layout<{first}>>
!u = tensor<{shape}x{element}, #nv.layout<{second}>>
nv.func @f(%x: !x, %y: !x) outputs 0 shapes [[M, N], [P, Q]] grid [1] threads {threads} {{
  %0 = arith.constant 0 : index
  %s = nv.alloc : !s
  %t = tile.load %x[%0, %0] : !x -> !t
  nv.write %t, %s : !t, !s
  nv.barrier
  %u = nv.read %s[{row}, {column}]{transposed} : !s -> !u
  tile.store %u, %y[%0, %0] : !u, !x
  nv.return
}}
"""


def layouts_of(shape: tuple[int, int], warps: int) -> list[Layout]:
    grid = (warps, 1) if warps < 4 else (2, 2)
    return [
        layouts.accumulator(*shape, grid),
        layouts.left_operand(*shape, grid, 16),
        layouts.right_operand(*shape, grid, 16),
        layouts.left_operand(*shape, grid, 32),
        layouts.right_operand(*shape, grid, 8),
        layouts.blocked(shape, 32 * warps, 8),
        layouts.blocked(shape, 32 * warps, 4, order=(0, 1)),
        layouts.accumulator(*shape, grid).permuted((1, 0)) if shape[0] == shape[1] else layouts.blocked(shape, 32, 1),
    ]


@settings(max_examples=40, deadline=None)
@drawn(
    st.tuples(st.integers(1, 40), st.integers(1, 72)),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([dt.bf16, dt.f32, dt.i8, dt.f64, dt.i16]),
    st.tuples(st.integers(0, 7), st.integers(0, 7)),
    st.booleans(),
    st.data(),
)
def test_what_is_written_is_read_again_in_any_layout(
    shape: tuple[int, int], warps: int, dtype: DType, picks: tuple[int, int], transposed: bool, data: st.DataObject
) -> None:
    rows, columns = shape
    height, width = data.draw(st.integers(1, rows)), data.draw(st.integers(1, columns))
    row, column = data.draw(st.integers(0, rows - height)), data.draw(st.integers(0, columns - width))
    seen = (width, height) if transposed else (height, width)
    source = ROUND.format(
        element=spelled(dtype),
        rows=rows,
        columns=columns,
        threads=32 * warps,
        panel=data.draw(st.sampled_from([panel_for(columns, dtype.storage.itemsize), 16, 64, 128])),
        first=layouts_of(shape, warps)[picks[0]],
        second=layouts_of(seen, warps)[picks[1]],
        row=row,
        column=column,
        transposed=" transposed" if transposed else "",
        shape="x".join(map(str, seen)),
    )
    x, y = numbers(5, shape, dtype), np.zeros(seen, dtype.storage)
    run(compile_lowered(text.read(source), "f"), [x, y])
    part = x[row : row + height, column : column + width]
    assert ((part.T if transposed else part) == y).all()


def test_matrices_are_found_where_layouts_are_made_of_them() -> None:
    grid = (2, 2)
    left, right = layouts.left_operand(64, 32, grid, 16), layouts.right_operand(32, 64, grid, 16)
    plain, transposed = matrices_of(left, 2), matrices_of(left.permuted((1, 0)), 2)
    assert plain is not None
    assert transposed is not None
    assert (plain.transposed, transposed.transposed) == (False, True)
    assert [len(load.words) for load in plain.loads] == [4] * 4
    straight, across = matrices_of(right, 2), matrices_of(right.permuted((1, 0)), 2)
    assert straight is not None
    assert across is not None
    # Rows of shared memory are the depth here: matrices are transposed on the way.
    assert (straight.transposed, across.transposed) == (True, False)
    # One instruction has both halves of a step of 16, for 16 columns.
    assert [load.words for load in straight.loads] == [(0, 1, 4, 5), (2, 3, 6, 7), (8, 9, 12, 13), (10, 11, 14, 15)]
    assert matrices_of(layouts.left_operand(64, 32, grid, 8), 1) is not None
    assert matrices_of(layouts.left_operand(64, 32, grid, 8).permuted((1, 0)), 1) is None
    assert matrices_of(layouts.left_operand(64, 32, grid, 32), 4) is not None
    assert matrices_of(left, 2, column=4) is None
    assert matrices_of(layouts.blocked((64, 32), 128, 8), 2) is None


def test_runs_are_as_wide_as_threads_and_chunks_allow() -> None:
    assert runs_of(layouts.blocked((16, 64), 64, 8), 2).width == 8
    assert runs_of(layouts.blocked((16, 64), 64, 16), 2).width == 8
    assert runs_of(layouts.blocked((16, 64), 64, 8), 2, column=4).width == 4
    assert runs_of(layouts.accumulator(16, 64, (1, 1)), 4).width == 2
    assert runs_of(layouts.blocked((16, 64), 64, 8, order=(0, 1)), 2).width == 1


# Fragments: the tables of the PTX manual, "Matrix fragments for mma"


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_operands_lie_as_the_instruction_asks(bits: int) -> None:
    side = 32 // bits
    depth = 8 * side
    left, right = layouts.left_operand(16, depth, (1, 1), bits), layouts.right_operand(depth, 8, (1, 1), bits)
    sums = layouts.accumulator(16, 8, (1, 1))
    for lane in range(32):
        group, inside = divmod(lane, 4)
        for i in range(4 * side):
            row = group if i // side % 2 == 0 else group + 8
            column = inside * side + i % side + (0 if i // side < 2 else 4 * side)
            assert left.base(lane, 0) + left.offset(i, 0) == row
            assert left.base(lane, 1) + left.offset(i, 1) == column
        for i in range(2 * side):
            row = inside * side + i % side + (0 if i < side else 4 * side)
            assert (right.base(lane, 0) + right.offset(i, 0), right.base(lane, 1) + right.offset(i, 1)) == (row, group)
        for i in range(4):
            place = sums.base(lane, 0) + sums.offset(i, 0), sums.base(lane, 1) + sums.offset(i, 1)
            assert place == (group + 8 * (i // 2), 2 * inside + i % 2)


def test_sums_are_left_operands_of_the_next_product() -> None:
    for rows, columns, warps in ((128, 64, 4), (64, 128, 4), (256, 64, 8)):
        assert layouts.accumulator(rows, columns, (warps, 1)) == layouts.left_operand(rows, columns, (warps, 1), 16)


def test_the_warps_of_a_product_are_found() -> None:
    found = grid_of(layouts.accumulator(128, 256, (2, 4)), 128, 256)
    assert found is not None
    assert (found.down, found.across) == (2, 4)
    assert grid_of(layouts.blocked((128, 128), 128, 8), 128, 128) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("xbf16, #nv.layout<[4:1*2", "xbf16, #nv.layout<[4:1*4"), "needs the layout"),
        (("xf32, #nv.layout<[4:1*2", "xf32, #nv.layout<[4:1*4"), "not the layout of an accumulator"),
        (("!a = tensor<32x16xbf16", "!a = tensor<32x16xf16"), "no dot of f16 and bf16 into f32"),
        (("!a = tensor<32x16x", "!a = tensor<32x24x"), "expected"),
    ],
)
def test_products_that_no_instruction_has_are_refused(change: tuple[str, str], words: str) -> None:
    source = product_text(dt.bf16, dt.bf16, dt.f32, (32, 16, 16), (1, 1))
    read = "%a = nv.read %as[0, 0] : !nv.shared<32x16xbf16, 32> -> !a"
    assert read in source
    changed = source.replace(*change).replace(read, "%zero = arith.constant 0.0 : bf16\n  %a = tile.full %zero : !a")
    if "xf16" in change[1]:
        changed = changed.replace("0.0 : bf16", "0.0 : f16")
    with pytest.raises(CompileError, match=words):
        text.read(changed)


# When products read what they need


def reads_of(body: str) -> list[str]:
    """The instructions of a kernel that matter here, in order."""
    source = f"""
!a = tensor<16x32xbf16, #nv.layout<{layouts.left_operand(16, 32, (1, 1), 16)}>>
!b = tensor<32x16xbf16, #nv.layout<{layouts.right_operand(32, 16, (1, 1), 16)}>>
!c = tensor<16x16xf32, #nv.layout<{layouts.accumulator(16, 16, (1, 1))}>>
!m = !nv.shared<16x32xbf16, 64>
!n = !nv.shared<32x16xbf16, 32>
nv.func @f(%x: f32, %y: !tile.view<2, f32, global>) outputs 0 shapes [[], [M, N]] grid [1] threads 32 {{
  %0 = arith.constant 0 : index
  %as = nv.alloc : !m
  %bs = nv.alloc : !n
  %c = tile.full %x : !c
  {body}
  tile.store %d, %y[%0, %0] : !c, !tile.view<2, f32, global>
  nv.return
}}
"""
    lines = emit(text.read(source), "f").text.splitlines()
    names = ("ldmatrix", "mma.sync", "bar.sync")
    return [name for line in lines for name in names if f'"{name}' in line]


A, B = "%a = nv.read %as[0, 0] : !m -> !a", "%b = nv.read %bs[0, 0] : !n -> !b"
MMA = "%d = nv.mma %a, %b, %c : !a, !b, !c -> !c"


def test_products_read_one_step_ahead() -> None:
    step = ["ldmatrix"] * 2
    assert reads_of(f"{A}\n{B}\n{MMA}") == [*step, *step, "mma.sync", "mma.sync", "mma.sync", "mma.sync"]


def test_memory_that_changes_is_read_before_it_does() -> None:
    assert reads_of(f"{A}\n{B}\nnv.barrier\n{MMA}")[:5] == [*["ldmatrix"] * 4, "bar.sync"]
    # Only what stands before the change is read early.
    assert reads_of(f"{A}\nnv.barrier\n{B}\n{MMA}")[:4] == ["ldmatrix", "ldmatrix", "bar.sync", "ldmatrix"]


def test_operands_of_several_products_are_read_once() -> None:
    again = "%e = nv.mma %a, %b, %c : !a, !b, !c -> !c\n%d = nv.mma %a, %b, %e : !a, !b, !c -> !c"
    assert reads_of(f"{A}\n{B}\n{again}").count("ldmatrix") == 4
