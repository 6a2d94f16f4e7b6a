"""Checks that every tile op means what an independent formula says, on all types and shapes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from reference_values import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Array,
    Index,
    arrays,
    assert_dot,
    assert_folded,
    assert_same,
    indexed,
    numbers_of,
    rounded,
    shapes,
    stored,
    wrapped,
)
from tile_programs import COVERED, computed, constants, covers, examples, kernel, tensor, view

from tessera.dtypes.casting import cast
from tessera.dtypes.types import (
    ALL,
    BYTES,
    FOURS,
    DType,
    Kind,
    bf16,
    bool_,
    f16,
    f32,
    i4,
    i8,
    i32,
    i64,
    stochastic_round,
    u8,
)
from tessera.errors import CompileError, DtypeError, EffectError, ShapeError, TesseraError
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir import text
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile


def test_every_tile_op_has_a_test() -> None:
    import test_tile_memory

    assert test_tile_memory.__doc__
    assert set(tile.Tile.operations) == COVERED


# Programs.


@covers(tile.FuncOp, tile.ReturnOp, tile.ProgramIdOp)
@pytest.mark.parametrize("sizes", [(3, 2), (0, 2), (1, 1)])
def test_one_program_runs_for_each_point_of_the_grid(sizes: tuple[int, int]) -> None:
    y = np.full(sizes, -1, np.int32)
    body = (
        "%i = tile.program_id 0\n%j = tile.program_id 1\n%ten = arith.constant 10 : index\n"
        "%t = arith.muli %i, %ten : index\n%u = arith.addi %t, %j : index\n"
        f"%r = tile.iota %u, 0 : {tensor((1, 1), i32)}\n"
        f"tile.store %r, %0[%i, %j] : {tensor((1, 1), i32)}, {view(2, i32)}"
    )
    run_kernel(kernel(body, view(2, i32), grid='[S0_0, "(2*S0_1 + 1)//2"]'), "k", [y])
    assert_same(y, indexed(sizes, i32, lambda index: 10 * index[0] + index[1]))


def test_a_grid_without_axes_is_one_program() -> None:
    written: list[str] = []
    run_kernel(kernel('tile.debug_print "once"', outputs=0), "k", [], machine=Machine(write=written.append))
    assert written == ["[] once\n"]


COPY = text.read(
    f"tile.func @k(%x: {view(1, f32)}, %y: {view(1, f32)}) outputs 1 shapes [[N], [N]] grid [] {{\n"
    f"%zero = arith.constant 0 : index\n%a = tile.load %x[%zero] : {view(1, f32)} -> {tensor((2,), f32)}\n"
    f"tile.store %a, %y[%zero] : {tensor((2,), f32)}, {view(1, f32)}\ntile.return\n}}"
)
FINE = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ([FINE], ShapeError, "@k takes 2 arguments, got 1"),
        ([np.zeros(2), FINE], DtypeError, "argument 0 of @k: expected an array of f32, got float64"),
        ([[1.0], FINE], DtypeError, "argument 0 of @k: expected an array of f32, got list"),
        ([np.zeros((2, 2), np.float32), FINE], ShapeError, "argument 0 of @k: expected rank 1, got 2"),
        ([FINE, np.zeros(3, np.float32)], ShapeError, "argument 1 of @k, axis 0: expected N = 2, got 3"),
        (
            [np.zeros(2, [("x", "f4"), ("y", "i2")])["x"], FINE],
            ShapeError,
            "argument 0 of @k: strides of (6,) bytes are not whole elements of 4 bytes",
        ),
        (
            [FINE, np.broadcast_to(np.float32(0), (2,))],
            EffectError,
            "argument 1 of @k is written, and the array given is read-only",
        ),
    ],
)
def test_an_argument_that_does_not_fit_is_named(arguments: list[Any], error: type[TesseraError], words: str) -> None:
    with pytest.raises(error) as caught:
        run_kernel(COPY, "k", arguments)
    assert words in caught.value.message


def test_inputs_may_be_read_only_and_repeated() -> None:
    y = np.zeros(2, np.float32)
    run_kernel(COPY, "k", [np.broadcast_to(np.float32(3), (2,)), y])
    assert y.tolist() == [3, 3]


# Values.


@covers(tile.FullOp)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_full_repeats_a_scalar_argument(dtype: DType) -> None:
    number = 1.5 if dtype.is_float else int(dtype.max_value)
    y, held = np.zeros((2, 3), dtype.storage), tensor((2, 3), dtype)
    lines = "%zero = arith.constant 0 : index\n"
    body = f"{lines}%r = tile.full %0 : {held}\ntile.store %r, %1[%zero, %zero] : {held}, {view(2, dtype)}"
    run_kernel(kernel(body, str(element_of(dtype)), view(2, dtype)), "k", [number, y])
    assert_same(y, np.full((2, 3), number).astype(dtype.storage))


@covers(tile.IotaOp)
@examples(30)
def test_iota_counts_from_its_base_and_wraps(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from([*INTEGERS, i64])), data.draw(shapes(1, 3))
    axis = data.draw(st.sampled_from(range(len(shape))))
    base = data.draw(st.sampled_from([0, 5, -3, 2**63 - 2, -(2**63)]) | st.integers(-300, 300))
    body = f"{constants('base', [base])[0]}%r = tile.iota %base0, {axis} : {tensor(shape, dtype)}"
    assert_same(computed(body, shape, dtype), indexed(shape, dtype, lambda index: wrapped(base + index[axis], dtype)))


@covers(tile.EwOp)
@pytest.mark.parametrize("name", elementwise.TABLE)
def test_every_row_is_passed_its_operands_in_order(name: str) -> None:
    generator, tried = np.random.default_rng(2), 0
    for dtype in (f32, f16, i8, i32, i4, u8, bool_):
        types = [bool_, dtype, dtype] if name == "select" else [dtype] * elementwise.TABLE[name].arity
        to = i32 if name == "cast" else None
        try:
            result = elementwise.result_dtype(name, types, to=to)
        except DtypeError:
            continue
        tried += 1
        operands = [generator.integers(0, 2 if each is bool_ else 7, (2, 3)).astype(each.storage) for each in types]
        names, held = ", ".join(["%a", "%b", "%c"][: len(types)]), ", ".join(tensor((2, 3), each) for each in types)
        body = f"%r = tile.ew<{name}> {names} : {held} -> {tensor((2, 3), result)}"
        found = computed(body, (2, 3), result, *zip(operands, types, strict=True))
        assert_same(found, elementwise.apply(name, operands, types, to=to))
    assert tried


@pytest.mark.parametrize(
    ("body", "dtype", "listed", "expected"),
    [
        ("%r = tile.ew<add> %a, %a policy <saturate> : {t}, {t} -> {t}", i8, [100, -100, 3], [127, -128, 6]),
        ("%r = tile.ew<add> %a, %a : {t}, {t} -> {t}", i8, [100, -100, 3], [-56, 56, 6]),
        ("%r = tile.ew<mul> %a, %a policy <saturate> : {t}, {t} -> {t}", f16, [60000, 2, 0], [65504, 4, 0]),
        # Stored 4 times as large: 1 times 1 is 1, and 2 times 2 is 4.
        ("%r = tile.ew<mul> %a, %a policy <loss_scale(4)> : {t}, {t} -> {t}", f16, [4, 8, 0], [4, 16, 0]),
    ],
)
def test_the_policy_of_an_op_governs_its_rounding(
    body: str, dtype: DType, listed: list[float], expected: list[float]
) -> None:
    found = computed(body.format(t=tensor((3,), dtype)), (3,), dtype, (stored(listed, dtype), dtype))
    assert_same(found, stored(expected, dtype))


def test_rounding_at_random_takes_the_words_of_the_seed_in_the_order_of_the_tile() -> None:
    x = np.linspace(-3, 3, 60, dtype=np.float32).reshape(6, 10)
    a, r = tensor((6, 10), f32), tensor((6, 10), bf16)
    body = f"%r = tile.ew<cast> %a policy <stochastic_round> seed 9 : {a} -> {r}"
    expected = cast(x, f32, bf16 @ stochastic_round, seed=9)
    assert_same(computed(body, (6, 10), bf16, (np.asfortranarray(x), f32)), expected)
    assert (expected != cast(x, f32, bf16)).any()


@covers(tile.ReduceOp)
@examples(40)
def test_reductions_fold_one_axis(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*reductions.TABLE]))
    bits = kind in ("and", "or", "xor")
    dtype = data.draw(st.sampled_from([*INTEGERS, bool_] if bits else [*FLOATS, *INTEGERS]))
    shape = data.draw(shapes(1, 3))
    axis = data.draw(st.sampled_from(range(len(shape))))
    x = arrays(data.draw, shape, dtype, tame=kind == "prod" or dtype.bits == 64)
    target = shape[:axis] + shape[axis + 1 :]
    body = f"%r = tile.reduce<{kind}> %a, {axis} : {tensor(shape, dtype)} -> {tensor(target, dtype)}"
    found = computed(body, target, dtype, (x, dtype))
    for index in product(*map(range, target)):
        assert_folded(found[index], kind, x[(*index[:axis], slice(None), *index[axis:])], dtype)


@covers(tile.ScanOp)
@examples(40)
def test_running_reductions_are_those_of_all_before(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["sum", "prod", "max", "min", "or"]))
    dtype = data.draw(st.sampled_from([*INTEGERS, bool_] if kind == "or" else [*FLOATS, *INTEGERS]))
    shape = data.draw(shapes(1, 3))
    axis = data.draw(st.sampled_from(range(len(shape))))
    x = arrays(data.draw, shape, dtype, tame=kind == "prod" or dtype.bits == 64)
    found = computed(
        f"%r = tile.scan<{kind}> %a, {axis} : {(t := tensor(shape, dtype))} -> {t}", shape, dtype, (x, dtype)
    )
    for index in product(*map(range, shape)):
        before = x[(*index[:axis], slice(None, index[axis] + 1), *index[axis + 1 :])]
        assert_folded(found[index], kind, before, dtype)


@covers(tile.SortOp)
@examples(40)
def test_whole_numbers_are_sorted(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([one for one in INTEGERS if one.bits >= 8]))
    shape = data.draw(shapes(1, 3))
    axis = data.draw(st.sampled_from(range(len(shape))))
    x = arrays(data.draw, shape, dtype)
    found = computed(f"%r = tile.sort %a, {axis} : {(t := tensor(shape, dtype))} -> {t}", shape, dtype, (x, dtype))
    assert_same(found, np.sort(x, axis))


@covers(tile.AnyOp)
@pytest.mark.parametrize("flags", [np.zeros((2, 3)), np.eye(2, 3)[::-1], np.ones((2, 3)), np.zeros((0, 3))])
def test_any_looks_at_all_elements(flags: Array) -> None:
    type_ = tensor(flags.shape, bool_)
    body = f"%t = tile.any %a : {type_}\n%r = tile.full %t : tensor<i1>"
    found = computed(body, (), bool_, (flags.astype(np.bool_), bool_))
    assert found == (1 in flags)


@covers(tile.TakeOp)
@examples(40)
def test_elements_are_taken_from_computed_places(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes(1, 2))
    x, random = arrays(data.draw, shape, dtype), np.random.default_rng(data.draw(st.integers(0, 99)))
    target = (3, 4)
    places = [random.integers(-2, size + 2, target) for size in shape]
    made, looked = tensor(target, dtype), tensor(target, i64)
    names = ["%b", "%c"][: len(shape)]
    operands = ", ".join([tensor(shape, dtype), *[looked] * len(shape)])
    body = f"%r = tile.take %a[{', '.join(names)}] : {operands} -> {made}"

    def element(index: Index) -> Any:
        at = tuple(int(place[index]) for place in places)
        there = all(0 <= one < size for one, size in zip(at, shape, strict=True))
        return x[at] if there else np.zeros((), dtype.storage)[()]

    assert_same(
        computed(body, target, dtype, (x, dtype), *((place, i64) for place in places)), indexed(target, dtype, element)
    )


@covers(tile.UnpackOp, tile.PackOp)
@examples(40)
def test_bytes_have_two_elements_of_four_bits(data: st.DataObject) -> None:
    byte, dtype = data.draw(st.sampled_from(BYTES)), data.draw(st.sampled_from(FOURS))
    shape = data.draw(shapes(1, 3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    wide = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, shape).astype(np.uint8)

    def half(index: Index) -> Any:
        code = int(x[(*index[:axis], index[axis] // 2, *index[axis + 1 :])])
        # Of four bits in two's complement the highest counts -8.
        if dtype.is_integer:
            number = code // 16 ** (index[axis] % 2) % 16
            number -= 16 if number >= 8 and dtype is i4 else 0
            return np.asarray(number).astype(dtype.storage)[()]
        return np.asarray(code // 16 ** (index[axis] % 2) % 16).astype(np.uint8).view(dtype.storage)[()]

    bytes_, fours = tensor(shape, byte), tensor(wide, dtype)
    given_ = x.view(byte.storage)
    halves = computed(f"%r = tile.unpack %a, {axis} : {bytes_} -> {fours}", wide, dtype, (given_, byte))
    assert_same(halves, indexed(wide, dtype, half))
    back = computed(f"%r = tile.pack %a, {axis} : {fours} -> {bytes_}", shape, byte, (halves, dtype))
    assert_same(back, given_)


@covers(tile.ExpandOp, tile.BroadcastOp, tile.TransOp)
@examples(40)
def test_axes_are_inserted_repeated_and_permuted(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes(0, 2))
    x = arrays(data.draw, shape, dtype)
    axis = data.draw(st.integers(0, len(shape)))
    wide = (*shape[:axis], 1, *shape[axis:])
    repeated = tuple(data.draw(st.sampled_from([1, 3])) if size == 1 else size for size in wide)
    permutation = data.draw(st.permutations(range(len(wide))))
    target = tuple(repeated[each] for each in permutation)
    body = (
        f"%e = tile.expand %a, {axis} : {tensor(shape, dtype)} -> {tensor(wide, dtype)}\n"
        f"%f = tile.broadcast %e : {tensor(wide, dtype)} -> {tensor(repeated, dtype)}\n"
        f"%r = tile.trans %f, {list(permutation)} : {tensor(repeated, dtype)} -> {tensor(target, dtype)}"
    )

    def element(index: Index) -> Any:
        back = [index[permutation.index(axis)] for axis in range(len(wide))]
        del back[axis]
        return x[tuple(0 if size == 1 else at for size, at in zip(shape, back, strict=True))]

    assert_same(computed(body, target, dtype, (x, dtype)), indexed(target, dtype, element))


PAIRS = [(a, b) for a in ALL for b in ALL if a.kind is b.kind and a.bits <= b.bits]


def dot(m: int, k: int, n: int, of: DType, total: DType) -> str:
    c = tensor((m, n), total)
    return f"%r = tile.dot %a, %b, %c : {tensor((m, k), of)}, {tensor((k, n), of)}, {c} -> {c}"


@covers(tile.DotOp)
@pytest.mark.parametrize(("dtype", "total"), PAIRS, ids=str)
def test_dot_is_exact_until_it_is_rounded_once(dtype: DType, total: DType) -> None:
    generator = np.random.default_rng(PAIRS.index((dtype, total)))

    def draw(shape: tuple[int, ...], of: DType) -> Array:
        if of.is_float:
            return stored([rounded(float(x), of) for x in generator.normal(size=shape).flat], of).reshape(shape)
        carrier, low, high = np.uint64 if of.kind is Kind.UINT else np.int64, int(of.min_value), int(of.max_value)
        return generator.integers(low, high, shape, carrier, endpoint=True).astype(of.storage)

    a, b, c = draw((2, 3), dtype), draw((3, 2), dtype), draw((2, 2), total)
    found = computed(dot(2, 3, 2, dtype, total), (2, 2), total, (a, dtype), (b, dtype), (c, total))
    for i, j in product(range(2), range(2)):
        assert_dot(found[i, j], a[i], b[:, j], total, start=numbers_of(c[i, j, np.newaxis])[0])


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1)])
def test_dot_of_empty_tiles_is_c(m: int, k: int, n: int) -> None:
    a, b, c = (np.full(shape, x, np.float32) for shape, x in (((m, k), 1), ((k, n), 1), ((m, n), 2)))
    found = computed(dot(m, k, n, f32, f32), (m, n), f32, (a, f32), (b, f32), (c, f32))
    assert_same(found, np.full((m, n), 2 + k, np.float32))


def test_dot_knows_infinities() -> None:
    a, b, c = (stored(x, f32) for x in ([[np.inf, -np.inf], [np.inf, 1]], [[1], [1]], [[0], [0]]))
    found = computed(dot(2, 2, 1, f32, f32), (2, 1), f32, (a, f32), (b, f32), (c, f32))
    assert_same(found, stored([[np.nan], [np.inf]], f32))


# Speaking up.


@covers(tile.AssertOp)
def test_an_assertion_names_the_program_and_the_element() -> None:
    x = np.ones((3, 4), np.bool_)
    body = (
        "%i = tile.program_id 0\n%two = arith.constant 2 : index\n%at = arith.muli %i, %two : index\n"
        "%zero = arith.constant 0 : index\n"
        f"%t = tile.load %0[%zero, %at] pad 1.0 : {view(2, bool_)} -> {tensor((4, 2), bool_)}\n"
        f'tile.assert %t, "all are true" : {tensor((4, 2), bool_)}'
    )
    module = kernel(body, view(2, bool_), outputs=0, grid="[3]")
    run_kernel(module, "k", [x])
    x[2, 3] = False
    with pytest.raises(CompileError, match=r"assertion failed at \[2, 1\] in program instance \[1\]: all are true"):
        run_kernel(module, "k", [x])


def test_an_assertion_may_be_about_a_scalar() -> None:
    module = kernel('tile.assert %0, "as it should be" : i1', "i1", outputs=0)
    run_kernel(module, "k", [True])
    with pytest.raises(CompileError, match=r"assertion failed at \[\] in program instance \[\]: as it should be"):
        run_kernel(module, "k", [False])


@covers(tile.PrintRecordOp)
def test_records_are_printed_behind_all_program_instances_in_their_order() -> None:
    written: list[str] = []
    types, views = f"[{tensor((2,), i32)}, {tensor((), i64)}]", f"{view(1, i32)}, {view(1, i64)}"
    body = (
        "%i = tile.program_id 0\n%zero = arith.constant 0 : index\n%last = arith.constant 2 : index\n"
        # Not in the order in which program instances run: a record says whose it is.
        "%k = arith.subi %last, %i : index\n"
        f"%t = tile.iota %i, 0 : {tensor((2,), i32)}\n%s = tile.iota %i, 0 : {tensor((1,), i64)}\n"
        f'%a, %b = tile.print_record 0 "here" at [%k] {types} : {views}\n'
        f"tile.store %t, %a[%zero] : {tensor((2,), i32)}, {view(1, i32)}\n"
        f"tile.store %s, %b[%zero] : {tensor((1,), i64)}, {view(1, i64)}\n"
        'tile.print_record 1 "there" at [%k] []\n'
        'tile.debug_print "at once"'
    )
    module = kernel(body, outputs=0, grid="[3]")
    run_kernel(module, "k", [], machine=Machine(write=written.append))
    assert written[:3] == [f"[{number}] at once\n" for number in range(3)]
    assert written[3:] == [
        line
        for number, i in ((0, 2), (1, 1), (2, 0))
        for line in (f"[{number}] here [{i} {i + 1}] {i}\n", f"[{number}] there\n")
    ]


@covers(tile.DebugPrintOp)
def test_printing_shows_the_program_the_label_and_the_values() -> None:
    written: list[str] = []
    body = (
        "%i = tile.program_id 0\n%j = tile.program_id 1\n"
        f"%t = tile.iota %j, 0 : {tensor((2,), i32)}\n"
        f'tile.debug_print "here", %t, %i, %0, %1 : {tensor((2,), i32)}, index, ui8, f32'
    )
    module = kernel(body, "ui8", "f32", outputs=0, grid="[1, 2]")
    run_kernel(module, "k", [200, 0.5], machine=Machine(write=written.append))
    assert written == ["[0, 0] here [0 1] 0 200 0.5\n", "[0, 1] here [1 2] 0 200 0.5\n"]
