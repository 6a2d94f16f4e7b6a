"""What is computed with tiles in registers: compiled to PTX, assembled, and run by the machine for tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import nv_cases
import ptx_checks
import pytest
from emitted_runs import Run, run
from gpu_options import gpu
from nv_cases import Case, function_text, tile_text, view_text
from nv_layouts import Array
from test_llvm_elementwise import Case as Row
from test_llvm_elementwise import agreement, cases, operands
from xdsl.dialects.builtin import ModuleOp

from tessera.dtypes.types import (
    ALL,
    DType,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    loss_scale,
    saturate,
    stochastic_round,
    u64,
)
from tessera.errors import CompileError
from tessera.ir.common import elementwise as table
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ir.layouts import accumulator, blocked
from tessera.targets.cuda.lower.legalize import SHORT_FORMS
from tessera.targets.cuda.math import functions

GPUS = ("sm_80", "sm_90a")


def both(case: Case, arch: str = "sm_90a") -> tuple[Run, list[Array], list[Array]]:
    """A run by the machine, what it wrote, and what the interpreter does."""
    module = text.read(case.text)
    mine, theirs = case.copies(), case.copies()
    run_nv_kernel(module, "k", theirs)
    return run(module, "k", mine, arch=arch), case.results(mine), case.results(theirs)


def check(case: Case) -> None:
    _, mine, theirs = both(case)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one.astype(np.float64), other.astype(np.float64), case.text)


def read(source: str) -> ModuleOp:
    return text.read(source)


# Elementwise functions


def picked(dtypes: tuple[DType, ...], count: int, seed: int) -> list[Array]:
    """Some of the operands that rows are tried on: the special ones come first, the others are drawn."""
    arrays = operands(dtypes)
    chance = np.random.default_rng(seed)
    places = chance.permutation(min(arrays[0].size, 40 if len(dtypes) == 1 else 1200))[: count // 2]
    places = np.concatenate([places, chance.integers(0, arrays[0].size, count - places.size)])
    return [array[places] for array in arrays]


def reference(row: Row, given_: list[Array]) -> Array:
    """What a row on tiles gives: they have no policy of their own, the op's governs those of the result's type."""
    name, dtypes, result = row
    if name == "cast":
        return table.apply(name, given_, dtypes, to=result)
    return table.apply(name, given_, [result if dtype.base is result.base else dtype.base for dtype in dtypes])


def on_machine(row: Row, arch: str, count: int, seed: int) -> str:
    """What is wrong with a row; nothing where the bits are right, or the function is as exact as it should be."""
    name, dtypes, result = row
    given_ = picked(dtypes, count, seed)
    case = nv_cases.elementwise(name, [dtype.base for dtype in dtypes], result, given_, width=(4, 3, 1)[seed % 3])
    mine = case.copies()
    run(read(case.text), "k", mine, arch=arch)
    return agreement(name, result, mine[-1], reference(row, given_), given_)


def check_rows(rows: Iterable[tuple[int, Row]], count: int) -> None:
    failures: list[str] = []
    for seed, row in rows:
        if said := on_machine(row, GPUS[seed % 2], count, seed):
            failures.append(f"{row[0]} on {', '.join(map(str, row[1]))}: {said}")
    assert failures == []


@pytest.mark.parametrize("name", ["eq", "lt", "add", "max", "mul"])
def test_loss_scales_of_tiles(name: str) -> None:
    """All agree what is scaled: comparisons have no policy that could say so, and see tiny numbers as they are."""
    tiny = np.array([0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**-140, 1.0, -3.0, np.inf, np.nan], f32.storage)
    given_, dtype = [side.reshape(-1) for side in np.meshgrid(tiny, tiny)], f32 @ loss_scale(1024.0)
    row = (name, (dtype, dtype), table.result_dtype(name, [dtype, dtype]))
    _, (mine,), (theirs,) = both(nv_cases.elementwise(name, [f32, f32], row[2], given_))
    for found in (mine, theirs):
        assert agreement(name, row[2], found, reference(row, given_), given_) == ""


@pytest.mark.quick(1)
@pytest.mark.parametrize("part", [0, 2])
def test_rows_have_the_bits_of_the_reference(part: int) -> None:
    """A few of the rows and types; all of them are an acceptance test."""
    check_rows([(seed, row) for seed, row in enumerate(cases()) if seed % 29 == 7 * part], 128)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", table.TABLE)
def test_all_rows(name: str) -> None:
    rows = cases() if name != "cast" else all_casts()
    check_rows([(seed, row) for seed, row in enumerate(rows) if row[0] == name], 640)


def all_casts() -> list[Row]:
    to = (*ALL, f8e4m3 @ saturate, f8e5m2 @ saturate, f16 @ saturate, i8 @ saturate)
    return [("cast", (source,), target) for source in ALL for target in to]


TARGETS = [f32, bf16, f16, f8e4m3, f8e4m3 @ saturate, f8e5m2, i32, i64, u64, i8, bool_, f64]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_casts(target: DType) -> None:
    """From every type, by the machine's own instructions where it has them."""
    sources = [source for source in (f32, bf16, f16, f8e4m3, f8e5m2, f64, i8, i64, bool_) if source is not target]
    check_rows(enumerate(("cast", (source,), target) for source in sources), 256)


def instructions_of(case: Case, arch: str = "sm_90a") -> Counter[str]:
    made = compile_lowered(read(case.text), "k", gpu(arch))
    ptx_checks.check_clean(made.ptx, arch)
    return ptx_checks.instructions(made.ptx)


def ones(dtype: DType) -> Array:
    return np.ones(nv_cases.GROUP).astype(dtype.storage)


def test_pairs_are_cast_by_one_instruction() -> None:
    found = instructions_of(nv_cases.elementwise("cast", [f32], bf16, [ones(f32)], width=4))
    assert found["cvt.rn.bf16x2.f32"] == 2
    found = instructions_of(nv_cases.elementwise("cast", [f32], f8e4m3 @ saturate, [ones(f32)], width=4))
    assert found["cvt.rn.satfinite.e4m3x2.f32"] == 2
    assert "selp.b16" not in found
    found = instructions_of(nv_cases.elementwise("fma", [bf16] * 3, bf16, [ones(bf16)] * 3, width=4))
    assert found["fma.rn.bf16x2"] == 2


@pytest.mark.parametrize("target", [f8e4m3, f8e4m3 @ saturate], ids=str)
def test_floats_of_8_bits_are_cast_without_instructions_that_a_machine_lacks(target: DType) -> None:
    found = instructions_of(nv_cases.elementwise("cast", [f32], target, [ones(f32)], width=4), "sm_80")
    assert not [name for name in found if "e4m3" in name]


def test_signs_are_not_taken_of_what_was_converted() -> None:
    """A GPU's conversions give every NaN the same sign. Other rows put the conversions into another block."""
    case = nv_cases.rows(["floordiv", "copysign"], [f16] * 2, [f16] * 2, [ones(f16)] * 2)
    ptx = compile_lowered(read(case.text), "k", gpu()).ptx
    converted = set(re.findall(r"cvt\.f32\.f16\s+(%r\d+)", ptx))
    taken = re.findall(r"copysign\.f32\s+%r\d+, (%r\d+), %r\d+", ptx)
    assert len(converted) == 8
    assert len(taken) == 4
    assert converted.isdisjoint(taken)


@pytest.mark.quick
@pytest.mark.parametrize("arch", GPUS)
@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "erf", "exp2", "sin", "rem", "pow"])
def test_functions_assemble_without_calls(name: str, arch: str) -> None:
    arity = table.TABLE[name].arity
    found = instructions_of(nv_cases.elementwise(name, [f32] * arity, f32, [ones(f32)] * arity), arch)
    assert "call" not in found and "call.uni" not in found  # noqa: PT018  # one fact


SHORT = {"exp": 2, "sigmoid": 4, "tanh": 1, "erf": 12, "exp2": 1}
"""Instructions of brief forms, per element; PTX has two more than the machine, for signs."""


@pytest.mark.parametrize("name", SHORT)
def test_brief_forms(name: str) -> None:
    values = np.concatenate([np.linspace(-9, 9, 125), [np.nan, np.inf, -np.inf]]).astype(np.float32)
    case = nv_cases.elementwise(name, [f32], f32, [values], "{approximate}", width=4)
    mine = case.copies()
    run(read(case.text), "k", mine)
    true = table.apply(name, [values], [f32]).astype(np.float64)
    form, same = SHORT_FORMS[name], (mine[-1] == true) | (np.isnan(mine[-1]) & np.isnan(true))
    with np.errstate(all="ignore"):
        error = np.abs(mine[-1] - true)
        assert (same | (error <= form.relative * np.abs(true)) | np.isinf(form.relative)).all()
        assert (same | (error <= form.absolute)).all()
        beside = form.beside_one * (1 - np.abs(true)) + 2.0**-24
        assert (same | (error <= beside) | np.isinf(form.beside_one)).all()
    plain = instructions_of(nv_cases.elementwise("abs", [f32], f32, [ones(f32)], width=4))
    brief = instructions_of(nv_cases.elementwise(name, [f32], f32, [ones(f32)], "{approximate}", width=4))
    assert brief.total() - plain.total() <= 4 * (SHORT[name] - 1)


def test_fast_forms_are_one_instruction() -> None:
    for name in functions.FAST:
        arity = table.TABLE[name].arity
        plain = instructions_of(nv_cases.elementwise("abs", [f32], f32, [ones(f32)]))
        loads = instructions_of(nv_cases.elementwise("add", [f32] * 2, f32, [ones(f32)] * 2))
        found = instructions_of(nv_cases.elementwise(name, [f32] * arity, f32, [ones(f32)] * arity, "{fast}"))
        assert found.total() <= (plain if arity == 1 else loads).total(), name


@pytest.mark.parametrize("arch", GPUS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_f64_are_three_instructions(name: str, arch: str) -> None:
    """More of them take more predicates than there are, and put some of those into local memory."""
    plain, found = (
        instructions_of(nv_cases.elementwise(fn, [f64] * 2, f64, [ones(f64)] * 2), arch) for fn in ("add", name)
    )
    assert found.total() - plain.total() == 4 * 2
    instructions_of(nv_cases.reduction(42), arch)


# Divisors that many elements share


def shared_division(a: Array, b: Array, dtype: DType, marks: str = "") -> Case:
    rows, columns = a.shape
    layout = blocked((rows, columns), 32, columns)
    folded = layout.without(1)
    whole, part = tile_text((rows, columns), dtype, layout), tile_text((rows,), dtype, folded)
    column = tile_text((rows, 1), dtype, folded.with_axis(1))
    body = f"""%a = tile.load %a0[%c0, %c0] : {view_text(2, dtype)} -> {whole}
%b = tile.load %a1[%c0] : {view_text(1, dtype)} -> {part}
%e = tile.expand %b, 1 : {part} -> {column}
%d = tile.broadcast %e : {column} -> {whole}
%q = tile.ew<div> %a, %d : {whole}, {whole} -> {whole}
tile.store %q, %a2[%c0, %c0] : {whole}, {view_text(2, dtype)}"""
    views = [view_text(2, dtype), view_text(1, dtype), view_text(2, dtype)]
    return Case(function_text(views, ["[M, N]", "[M]", "[M, N]"], 32, body, marks=marks), [a, b, np.zeros_like(a)])


@pytest.mark.parametrize("marks", ["", " attributes {short}"], ids=["usual", "short"])
@pytest.mark.parametrize("dtype", [f32, bf16, f16], ids=str)
def test_division_by_rows(dtype: DType, marks: str) -> None:
    """Right within two units, over the whole range of divisors and dividends."""
    extreme = [2.0**-149, 2.0**-130, 2.0**-126, 1.0, 3.0, -7.0, 2.0**126, 1.5 * 2.0**127, 2.0**-60, np.inf, 0.0, np.nan]
    with np.errstate(all="ignore"):
        b = np.array([*extreme, *(-np.array(extreme))] * 2).astype(dtype.storage)[:32]
        a = np.array([2.0**-149, 1e-30, 0.3, 1.0, 5.0, 1e30, 2.0**127, np.inf]).astype(dtype.storage)
    case = shared_division(np.repeat(a[None], b.size, 0).copy(), b, dtype, marks)
    mine = case.copies()
    run(read(case.text), "k", mine)
    wanted = table.apply("div", [case.arguments[0], np.repeat(b[:, None], a.size, 1)], [dtype, dtype])
    # `exp` is a function that may be off by as much.
    assert agreement("exp", dtype, mine[-1].reshape(-1), wanted.reshape(-1), [case.arguments[0].reshape(-1)]) == ""
    divisions = instructions_of(case)
    assert not any(name.startswith("div") for name in divisions)
    assert ("rcp.rn.f32" in divisions, "rcp.approx.ftz.f32" in divisions) == (not marks, bool(marks))


def test_division_by_what_differs_is_exact() -> None:
    found = instructions_of(nv_cases.elementwise("div", [f32] * 2, f32, [ones(f32)] * 2))
    assert found["div.rn.f32"] == 4


# Positions


def mask_text(dtype: DType, predicate: str, shift: str) -> str:
    layout = accumulator(16, 64, (1, 1))
    rows, columns = layout.without(1), layout.without(0)
    whole, truth = tile_text((16, 64), dtype, layout), tile_text((16, 64), bool_, layout)
    return function_text(
        ["index", "index", nv_cases.spelled(dtype), view_text(2, bool_)],
        ["[]", "[]", "[]", "[M, N]"],
        32,
        f"""%i = tile.iota %a0, 0 : {tile_text((16,), dtype, rows)}
%ie = tile.expand %i, 1 : {tile_text((16,), dtype, rows)} -> {tile_text((16, 1), dtype, rows.with_axis(1))}
%r = tile.broadcast %ie : {tile_text((16, 1), dtype, rows.with_axis(1))} -> {whole}
%j = tile.iota %a1, 0 : {tile_text((64,), dtype, columns)}
%je = tile.expand %j, 0 : {tile_text((64,), dtype, columns)} -> {tile_text((1, 64), dtype, columns.with_axis(0))}
%c = tile.broadcast %je : {tile_text((1, 64), dtype, columns.with_axis(0))} -> {whole}
%n = tile.full %a2 : {whole}
{shift.format(whole=whole)}
%m = tile.ew<{predicate}> %left, %right : {whole}, {whole} -> {truth}
tile.store %m, %a3[%c0, %c0] : {truth}, {view_text(2, bool_)}""",
    )


SHIFTS = {
    "rows and columns": "%z = tile.ew<sub> %n, %n : {whole}, {whole} -> {whole}\n"
    "%left = tile.ew<add> %r, %z : {whole}, {whole} -> {whole}\n"
    "%right = tile.ew<add> %c, %z : {whole}, {whole} -> {whole}",
    "a bound": "%left = tile.ew<add> %c, %c : {whole}, {whole} -> {whole}\n"
    "%right = tile.ew<add> %n, %n : {whole}, {whole} -> {whole}",
    "a window": "%d = tile.ew<sub> %r, %c : {whole}, {whole} -> {whole}\n"
    "%left = tile.ew<sub> %d, %n : {whole}, {whole} -> {whole}\n"
    "%right = tile.ew<sub> %n, %n : {whole}, {whole} -> {whole}",
}


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [i32, i64], ids=str)
@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_masks(dtype: DType, predicate: str, shift: str) -> None:
    source = mask_text(dtype, predicate, SHIFTS[shift])
    largest = int(dtype.max_value)
    for first, second, number in ((0, 0, 7), (100, 80, 20), (3, 60, -5), (5, 5, largest), (5, 5, -largest - 1)):
        check(Case(source, [first, second, number, np.zeros((16, 64), np.bool_)]))


def causal_text() -> str:
    """A causal mask in the layout of a product's sums, over programs and turns of a loop."""
    layout = accumulator(64, 64)
    whole, truth = tile_text((64, 64), i32, layout), tile_text((64, 64), bool_, layout)
    sums = tile_text((64, 64), f32, layout)
    rows, columns = layout.without(1), layout.without(0)
    return function_text(
        [view_text(2, f32)],
        ["[M, N]"],
        128,
        f"""%size = arith.constant 64 : index
%p = tile.program_id 0
%first = arith.muli %p, %size : index
%n = tile.dim %a0, 1 : {view_text(2, f32)}
%i = tile.iota %first, 0 : {tile_text((64,), i32, rows)}
%ie = tile.expand %i, 1 : {tile_text((64,), i32, rows)} -> {tile_text((64, 1), i32, rows.with_axis(1))}
%r = tile.broadcast %ie : {tile_text((64, 1), i32, rows.with_axis(1))} -> {whole}
%none = arith.constant 0.0 : f32
%zero = tile.full %none : {sums}
scf.for %at = %c0 to %n step %size {{
  %x = tile.load %a0[%first, %at] {{inside}} : {view_text(2, f32)} -> {sums}
  %j = tile.iota %at, 0 : {tile_text((64,), i32, columns)}
  %je = tile.expand %j, 0 : {tile_text((64,), i32, columns)} -> {tile_text((1, 64), i32, columns.with_axis(0))}
  %c = tile.broadcast %je : {tile_text((1, 64), i32, columns.with_axis(0))} -> {whole}
  %m = tile.ew<ge> %r, %c : {whole}, {whole} -> {truth}
  %y = tile.ew<select> %m, %x, %zero : {truth}, {sums}, {sums} -> {sums}
  tile.store %y, %a0[%first, %at] {{inside}} : {sums}, {view_text(2, f32)}
}}""",
        grid='"(M + 63)//64"',
        marks=" attributes {row_aligned = array<i64: 0>}",
    )


def test_causal_masks_test_one_bit_for_each_element() -> None:
    case = Case(causal_text(), [np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)])
    check(case)
    found = instructions_of(case)
    # Thirty-two elements in one thread, of two rows: a word of bits for each.
    assert found["selp.f32"] == found["setp.ne.b32"] == 32
    assert found["shl.b32"] >= 2
    assert found["sub.sat.s32"] == 1
    assert not found["setp.gt.s32"] + found["setp.lt.s32"]


def choice_text(predicates: Sequence[str], columns: int) -> str:
    """Numbers where positions compare with all of some bounds, and nothing elsewhere."""
    layout = accumulator(16, columns, (1, 1))
    rows, across = layout.without(1), layout.without(0)
    whole, truth = tile_text((16, columns), i64, layout), tile_text((16, columns), bool_, layout)
    values = tile_text((16, columns), f32, layout)
    asked = [
        f"""%b{place} = tile.full %n{place} : {whole}
%m{place} = tile.ew<{predicate}> %{"c" if place % 2 else "d"}, %b{place} : {whole}, {whole} -> {truth}"""
        for place, predicate in enumerate(predicates)
    ]
    names = [f"%all{place}" for place in range(len(predicates))]
    joined = [
        f"{name} = tile.ew<and> {before}, %m{place} : {truth}, {truth} -> {truth}"
        for place, (before, name) in enumerate(zip(["%m0", *names], names, strict=False))
    ]
    numbers = [f"%n{place} = arith.index_cast %a{place + 2} : index to i64" for place in range(len(predicates))]
    out = f"%a{len(predicates) + 2}"
    return function_text(
        ["index"] * (2 + len(predicates)) + [view_text(2, f32)],
        ["[]"] * (2 + len(predicates)) + ["[M, N]"],
        32,
        "\n".join(numbers)
        + f"""
%i = tile.iota %a0, 0 : {tile_text((16,), i64, rows)}
%ie = tile.expand %i, 1 : {tile_text((16,), i64, rows)} -> {tile_text((16, 1), i64, rows.with_axis(1))}
%r = tile.broadcast %ie : {tile_text((16, 1), i64, rows.with_axis(1))} -> {whole}
%j = tile.iota %a1, 0 : {tile_text((columns,), i64, across)}
%je = tile.expand %j, 0 : {tile_text((columns,), i64, across)} -> {tile_text((1, columns), i64, across.with_axis(0))}
%c = tile.broadcast %je : {tile_text((1, columns), i64, across.with_axis(0))} -> {whole}
%d = tile.ew<sub> %r, %c : {whole}, {whole} -> {whole}
"""
        + "\n".join([*asked, *joined])
        + f"""
%none = arith.constant -2.0 : f32
%zero = tile.full %none : {values}
%x = tile.load {out}[%c0, %c0] : {view_text(2, f32)} -> {values}
%y = tile.ew<select> {names[-1]}, %x, %zero : {truth}, {values}, {values} -> {values}
tile.store %y, {out}[%c0, %c0] : {values}, {view_text(2, f32)}""",
    )


BOUNDS = [("lt",), ("ge",), ("le", "gt"), ("gt", "lt"), ("ge", "le", "lt"), ("ne", "lt")]


@pytest.mark.quick(3, columns=[16, 80])
@pytest.mark.parametrize(
    ("predicates", "columns"),
    [
        *((predicates, columns) for predicates in BOUNDS for columns in (16, 40)),
        (BOUNDS[3], 80),
        pytest.param(BOUNDS[4], 256, marks=pytest.mark.acceptance),
    ],
)
def test_choices_by_positions(predicates: tuple[str, ...], columns: int) -> None:
    """Distances of rows and columns, and columns themselves, within bounds that are near, far and farther than that."""
    source, values = choice_text(predicates, columns), np.arange(16.0 * columns, dtype=np.float32).reshape(16, columns)
    chance, far = np.random.default_rng(columns), 1 << 62
    for first, second in ((0, 0), (columns, 3), (7, 1 << 30)):
        bounds = chance.integers(-columns, columns, len(predicates)).tolist()
        for given in (bounds, [bound + second for bound in bounds], [far, -far, far][: len(predicates)]):
            check(Case(source, [first, second, *given, values.copy()]))


@pytest.mark.acceptance
def test_divisions_of_f64_are_exact_for_any_quotient() -> None:
    """The largest by the smallest, subnormal numbers, quotients that are nearly whole."""
    chance = np.random.default_rng(0)
    scales = 2.0 ** chance.integers(-1070, 1020, (2, 256))
    a, b = (1 + chance.random((2, 256))) * scales * chance.choice([-1.0, 1.0], (2, 256))
    a[:6], b[:6] = [1.7e308, 5e-324, 1e308, 3 * 1.1, 2.0**1000, 1e16], [5e-324, 1.7e308, 3e-310, 1.1, 3.0, 3.0]
    for name in ("rem", "floordiv"):
        case = nv_cases.elementwise(name, [f64, f64], f64, [a, b])
        mine = case.copies()
        run(read(case.text), "k", mine)
        assert agreement(name, f64, mine[-1], table.apply(name, [a, b], [f64, f64]), [a, b]) == ""


def test_casts_that_round_at_random_are_refused_with_their_line() -> None:
    case = nv_cases.elementwise("cast", [f32], bf16 @ stochastic_round, [ones(f32)])
    source = case.text.replace("policy <stochastic_round>", "policy <stochastic_round> seed 1")
    with pytest.raises(CompileError, match="rounds at random") as caught:
        run(read(source), "k", case.copies())
    assert caught.value.span is not None
