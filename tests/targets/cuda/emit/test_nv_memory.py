"""Tiles in global memory: read, written and combined, compiled to PTX, and run by the machine for tests."""

from __future__ import annotations

from collections import Counter

import numpy as np
import nv_cases
import ptx_checks
import pytest
from emitted_runs import run
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from nv_cases import Case, function_text, numbers, tile_text, view_text
from test_nv_values import check, instructions_of, read

from tessera.dtypes.types import ALL, DType, bf16, bool_, f8e4m3, f16, f32, f64, i8, i32, i64, u8
from tessera.errors import CompileError, DtypeError
from tessera.ir.common import reductions
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.ir.layouts import Layout, blocked, replicas

ROW_ALIGNED = " attributes {row_aligned = array<i64: 0, 1>}"


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_tiles_move_from_view_to_view(seed: int) -> None:
    """Any strides, offsets, sizes and layouts; what is outside is padded, and not written."""
    check(nv_cases.movement(seed))


# How it is done


def row_text(columns: int, size: str, dtype: DType, marks: str = "", threads: int = 128, offset: str = "%c0") -> str:
    """Copies a row in each program."""
    type_ = tile_text((1, columns), dtype, blocked((1, columns), threads, 16 // dtype.storage.itemsize))
    view = view_text(2, dtype)
    body = f"""%i = tile.program_id 0
%t = tile.load %a0[%i, {offset}] : {view} -> {type_}
tile.store %t, %a1[%i, {offset}] : {type_}, {view}"""
    return function_text([view] * 2, [f"[M, {size}]"] * 2, threads, body, grid="M", marks=marks)


def counts(source: str) -> Counter[str]:
    return instructions_of(Case(source, []))


@pytest.mark.parametrize("dtype", [f32, bf16, i8, f64, f8e4m3], ids=str)
def test_rows_move_sixteen_bytes_at_a_time(dtype: DType) -> None:
    elements = 4096 // dtype.storage.itemsize
    found = counts(row_text(elements, str(elements), dtype, ROW_ALIGNED))
    wide = "v2.b64" if dtype is f64 else "v4.b32"
    # Whole rows without tests; rows beyond the last are tested.
    assert found[f"ld.global.nc.{wide}"] == found[f"st.global.{wide}"] == 2 * 2
    assert not any(name.startswith(("ld.global", "st.global")) and wide not in name for name in found)


def test_what_is_not_known_is_tested_once() -> None:
    found = counts(row_text(1024, "N", f32))
    assert found["ld.global.nc.v4.b32"] == found["st.global.v4.b32"] == 2 * 2
    # The careful way, element by element.
    assert found["ld.global.nc.b32"] == found["st.global.b32"] == 8


def test_a_size_that_ends_within_a_piece_leaves_whole_tiles_or_elements() -> None:
    found = counts(row_text(1024, "1022", f32))
    assert "ld.global.nc.v4.b32" not in found
    assert found["ld.global.nc.b32"] == 8


def test_memory_that_is_written_is_not_read_as_constant() -> None:
    type_, view = tile_text((256,), f32, blocked((256,), 32, 4)), view_text(1, f32)
    body = f"%t = tile.load %a0[%c0] : {view} -> {type_}\ntile.store %t, %a0[%c0] : {type_}, {view}"
    found = counts(function_text([view], ["[256]"], 32, body, marks=" attributes {row_aligned = array<i64: 0>}"))
    assert found["ld.global.v4.b32"] == 2
    assert not any(".nc." in name for name in found)


def test_small_elements_stay_in_words() -> None:
    """A copy of bf16 takes nothing apart."""
    found = counts(row_text(2048, "2048", bf16, ROW_ALIGNED))
    assert not any(name.startswith(("prmt", "mov.b16", "shr", "cvt.u16")) for name in found)


def test_the_first_of_those_that_hold_the_same_writes() -> None:
    layout = Layout.of([replicas(64)], [])
    type_, view = tile_text((1,), f32, layout), view_text(1, f32)
    body = f"%t = tile.load %a0[%c0] : {view} -> {type_}\ntile.store %t, %a1[%c0] : {type_}, {view}"
    source = function_text([view] * 2, ["[1]"] * 2, 64, body)
    mine = [np.ones(1, np.float32), np.zeros(1, np.float32)]
    made = run(read(source), "k", mine)
    assert mine[1][0] == 1
    # One thread of 64 comes by.
    assert counts(source)["setp.ne.b32"] == 1
    assert made.status == 0


VIEWS = {
    "backwards": ("%c7", "%c8", "%cm1"),
    "every third": ("%c1", "%c2", "%c3"),
    "one for all": ("%c2", "%c8", "%c0"),
    "nothing": ("%c0", "%c0", "%c1"),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [f32, bf16, u8], ids=str)
def test_views_of_views(name: str, dtype: DType) -> None:
    first, size, stride = VIEWS[name]
    type_, view = tile_text((8,), dtype, blocked((8,), 32, 4)), view_text(1, dtype)
    lines = [f"%c{number} = arith.constant {number} : index" for number in (1, 2, 3, 7, 8)]
    lines.append("%cm1 = arith.constant -1 : index")
    lines.append(f"%v = tile.view %a0 offset {first} sizes [{size}] strides [{stride}] : {view} -> {view}")
    lines.append(f"%t = tile.load %v[%c0] pad 3.0 : {view} -> {type_}")
    lines.append(f"tile.store %t, %a1[%c0] : {type_}, {view}")
    source = function_text([view] * 2, ["[N]"] * 2, 32, "\n".join(lines))
    given_ = numbers(np.random.default_rng(0), (8,), dtype)
    check(Case(source, [given_, np.zeros_like(given_)]))


def test_offsets_far_outside() -> None:
    source = row_text(256, "N", f32, offset="%a0").replace("%a1", "%b1").replace("%a0[", "%b0[")
    source = source.replace("%a0: !tile", "%a0: index, %b0: !tile").replace("shapes [", "shapes [[], ")
    for offset in (2**40, -(2**40), 2**31, -(2**31), 2**63 - 1, 2**63 - 64, -(2**63)):
        given_ = np.ones((2, 64), np.float32)
        check(Case(source, [offset, given_, np.zeros_like(given_)]))


# Atomics


def kinds_of(dtype: DType) -> list[str]:
    found: list[str] = []
    for kind in reductions.TABLE:
        try:
            reductions.check(kind, dtype)
        except DtypeError:
            continue
        found.append(kind)
    return found


@pytest.mark.parametrize("dtype", [f32, bf16, i32, i8, bool_], ids=str)
def test_atomics(dtype: DType) -> None:
    """Every element once, whoever holds it; 47 elements are there, and some threads hold ghosts."""
    for kind in kinds_of(dtype):
        check(nv_cases.atomic(kind, dtype))


@pytest.mark.acceptance
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_atomics_of_all_types(dtype: DType) -> None:
    for kind in kinds_of(dtype):
        for seed in range(3):
            check(nv_cases.atomic(kind, dtype, seed))


NATIVE = {
    ("sum", f32): "add.f32",
    ("sum", f64): "add.f64",
    ("sum", i32): "add.u32",
    ("max", i32): "max.s32",
    ("min", i64): "min.s64",
    ("xor", i64): "xor.b64",
    ("and", i32): "and.b32",
}


@pytest.mark.parametrize(("kind", "dtype"), NATIVE, ids=str)
def test_atomics_that_the_machine_has(kind: str, dtype: DType) -> None:
    found = counts(nv_cases.atomic(kind, dtype).text)
    assert found[f"atom.global.{NATIVE[kind, dtype]}"] == 4
    assert not any("cas" in name for name in found)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_small_floats_are_added_in_pairs(dtype: DType) -> None:
    """Where they are neighbours; otherwise one by one."""
    found = counts(nv_cases.atomic("sum", dtype).text)
    assert found[f"red.relaxed.gpu.global.add.noftz.{dtype}x2"] == 2 * 2
    assert found[f"atom.global.add.noftz.{dtype}"] == 4
    case = nv_cases.atomic("sum", dtype)
    for offset in (0, 1):
        wide = numbers(np.random.default_rng(1), (48,), dtype)
        check(Case(case.text.replace("constant 3", "constant 4"), [case.arguments[0], wide[offset : offset + 44]]))


def test_atomics_assemble_for_older_machines() -> None:
    for dtype in (bf16, i8, f32):
        for kind in kinds_of(dtype):
            made = compile_lowered(read(nv_cases.atomic(kind, dtype).text), "k", gpu("sm_80"))
            ptx_checks.check_clean(made.ptx, "sm_80")


# Asserts


def assert_text(message: str) -> str:
    layout = blocked((50,), 32, 4)
    type_, view = tile_text((50,), bool_, layout), view_text(1, bool_)
    body = f"""%t = tile.load %a0[%c0] : {view} -> {type_}
tile.assert %t, "{message}" : {type_}
tile.assert %a1, "a scalar" : i1"""
    return function_text([view, "i1"], ["[N]", "[]"], 32, body)


def test_asserts_report_what_failed() -> None:
    source = assert_text("a tile")
    good = np.ones(50, np.bool_)
    assert run(read(source), "k", [good, True]).message is None
    assert run(read(source), "k", [good, False]).message == "<text>:5:1: a scalar"
    for place in (0, 31, 49):
        bad = good.copy()
        bad[place] = False
        # The first to fail is told; ghosts are not asked.
        assert run(read(source), "k", [bad, False]).message == "<text>:4:1: a tile"


def test_prints_that_are_no_records_have_no_machine_code() -> None:
    source = function_text([], [], 32, 'tile.debug_print "here"')
    with pytest.raises(CompileError, match=r"tile\.debug_print has no machine code") as caught:
        run(read(source), "k", [])
    assert caught.value.span is not None
