"""Checks how graph programs are called: rows and policies, symbols and arguments, kernels and launches, calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from reference_values import Array, assert_same, program, spacing, stored
from xdsl.ir import Operation, SSAValue

from tessera.dtypes import philox
from tessera.dtypes.types import (
    ALL,
    DType,
    Kind,
    accum,
    bf16,
    bool_,
    f8e4m3,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    loss_scale,
    saturate,
    stochastic_round,
)
from tessera.errors import CompileError, DtypeError, ShapeError, TesseraError
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common import elementwise
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule


def tensor(sizes: Sequence[int | str], dtype: DType) -> GraphTensorType:
    return GraphTensorType.of(sizes, dtype)


def numbers(*listed: float, dtype: DType = f32) -> Array:
    return stored(listed, dtype)


# Rows and policies.


def _row(name: str, to: DType | None, operands: Sequence[SSAValue]) -> list[Operation]:
    return [graph.EwOp(name, operands, to=to)]


@pytest.mark.parametrize("name", elementwise.TABLE)
def test_every_row_is_passed_its_operands_in_order(name: str) -> None:
    generator = np.random.default_rng(1)
    for dtype in ALL:
        types = [bool_, dtype, dtype] if name == "select" else [dtype] * elementwise.TABLE[name].arity
        to = f32 if name == "cast" else None
        try:
            elementwise.result_dtype(name, types, to=to)
        except DtypeError:
            continue
        operands = [
            generator.integers(0, 2 if each.kind is Kind.BOOL else 7, (2, 3)).astype(each.storage) for each in types
        ]
        module = program([tensor([2, "N"], each) for each in types], partial(_row, name, to))
        (found,) = run_function(module, "f", operands)
        assert_same(found, elementwise.apply(name, operands, types, to=to))


SCALED = f16 @ loss_scale(4)


def test_each_operand_is_read_under_its_own_policy() -> None:
    # 1 + 1 = 2, where the first 1 and the 2 are stored as 4 and 8.
    module = program([tensor(["N"], SCALED), tensor(["N"], f16)], lambda a: [graph.EwOp("add", a)])
    (found,) = run_function(module, "f", [numbers(4, dtype=f16), numbers(1, dtype=f16)])
    assert_same(found, numbers(8, dtype=f16))
    module = program([tensor(["N"], SCALED), tensor(["N"], f16)], lambda a: [graph.EwOp("lt", a)])
    (found,) = run_function(module, "f", [numbers(4, 8, dtype=f16), numbers(2, 2, dtype=f16)])
    assert found.tolist() == [True, False]


def test_a_product_is_scaled_once_and_clamps_where_its_type_says_so() -> None:
    square = program([tensor([1, 1], SCALED)] * 2, lambda a: [graph.MatmulOp(*a)])
    (found,) = run_function(square, "f", [numbers(4, dtype=f16).reshape(1, 1)] * 2)
    assert found.tolist() == [[4.0]]
    clamped = program([tensor([1, 1], f16)] * 2, lambda a: [graph.MatmulOp(*a, to=f16 @ saturate)])
    (found,) = run_function(clamped, "f", [numbers(60000, dtype=f16).reshape(1, 1)] * 2)
    assert found.tolist() == [[65504.0]]
    small = i8 @ saturate
    clamped = program([tensor([1, 2], small), tensor([2, 1], small)], lambda a: [graph.MatmulOp(*a)])
    (found,) = run_function(clamped, "f", [np.full((1, 2), 100, np.int8), np.full((2, 1), 100, np.int8)])
    assert found.tolist() == [[127]]


@pytest.mark.parametrize(
    ("kind", "dtype", "listed", "expected"),
    [
        ("sum", i8 @ saturate, [100, 100, -1], 127),
        ("sum", i8, [100, 100, -1], -57),
        ("sum", i8 @ saturate @ accum(i8), [100, 100, -1], -57),
        ("sum", f16 @ saturate, [60000, 60000], 65504),
        ("sum", f16, [60000, 60000], math.inf),
        ("sum", f8e4m3, [448, 448], math.nan),
        ("sum", SCALED, [4, 8], 12),
        ("prod", SCALED, [4, 8], 8),
        ("max", SCALED, [4, 8], 8),
        # Carried in more than the type itself: 2048 + 1 is not a number of f16, but 2048 + 1 + 1 is.
        ("sum", f16, [2048, 1, 1], 2050),
        # Carried without rounding: 1 is far below the spacing of f32 around 2^60.
        ("sum", f32, [2.0**50, 1, -(2.0**50)], 1),
    ],
)
def test_a_sum_is_carried_wide_and_rounded_once_under_its_policy(
    kind: str, dtype: DType, listed: list[float], expected: float
) -> None:
    module = program([tensor(["N"], dtype)], lambda a: [graph.ReduceOp(kind, a[0], [0])])
    (found,) = run_function(module, "f", [stored(listed, dtype)])
    assert_same(found, stored(expected, dtype))


def test_a_narrow_integer_product_wraps_in_its_accumulator() -> None:
    module = program([tensor([1, 2], i16), tensor([2, 1], i16)], lambda a: [graph.MatmulOp(*a, to=i64)])
    (found,) = run_function(module, "f", [np.full((1, 2), -32768, np.int16), np.full((2, 1), -32768, np.int16)])
    assert found.tolist() == [[-(2**31)]]


@pytest.mark.parametrize("name", ["reduce", "matmul", "all_reduce"])
def test_a_result_that_rounds_at_random_needs_a_seed(name: str) -> None:
    type_ = tensor([1, 1], bf16 @ stochastic_round)
    module = {
        "reduce": program([type_], lambda a: [graph.ReduceOp("sum", a[0], [0])]),
        "matmul": program([type_], lambda a: [graph.MatmulOp(a[0], a[0])]),
        "all_reduce": program(
            [type_], lambda a: [graph_effects.AllReduceOp("sum", a[0], "i")], effects=["collective(i)"]
        ),
    }[name]
    machine = Machine(axes={"i": _Alone()})
    with pytest.raises(DtypeError, match="needs a seed"):
        run_function(module, "f", [np.ones((1, 1), bf16.storage)], machine=machine)


def test_rounding_at_random_follows_the_words_of_the_seed() -> None:
    target = bf16 @ stochastic_round
    module = program([tensor(["N", 2], f32)], lambda a: [graph.EwOp("cast", a, to=target, seed=9)])
    x = np.linspace(-3, 3, 200, dtype=np.float32).reshape(100, 2)
    (found,) = run_function(module, "f", [x.T.copy().T])
    words = philox.random_bits(9, 0, 200, stream=philox.Stream.ROUNDING)
    for number, result, word in zip(x.flat, found.flat, words, strict=True):
        gap = spacing(Fraction(float(number)), bf16)
        below, rest = divmod(abs(Fraction(float(number))), gap)
        up = int(word) < math.floor(2**32 * rest / gap)
        assert abs(Fraction(float(result))) == (below + up) * gap
    assert (found != x).any()


class _Alone:
    """A mesh axis of one rank."""

    def exchange(self, what: str, value: Array) -> list[Array]:
        return [value]


@pytest.mark.parametrize("dtype", [bf16, f16, f8e4m3, f32, f64], ids=str)
def test_uniform_numbers_never_reach_one(dtype: DType) -> None:
    module = program([], lambda _: [graph_effects.RandomOp("uniform", tensor([5000], dtype))], effects=["random"])
    (found,) = run_function(module, "f", [], machine=Machine(seed=3))
    wide = found.astype(np.float64)
    assert wide.min() >= 0
    assert 0.9 < wide.max() < 1
    assert abs(wide.mean() - 0.5) < 0.05


# Symbols and arguments.

TWO = program([tensor(["M", "K"], f32), tensor(["K", "2*N"], f32)], lambda a: [graph.MatmulOp(*a)])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ([np.zeros((2, 3), np.float32)], ShapeError, ["@f takes 2 arguments, got 1"]),
        (
            [np.zeros((2, 3), np.float32), np.zeros((4, 2), np.float32)],
            ShapeError,
            ["argument 1 of @f", "K = 3", "got 4"],
        ),
        ([np.zeros((2, 3), np.float32), np.zeros((3, 5), np.float32)], ShapeError, ["argument 1 of @f", "2*N", "5"]),
        ([np.zeros(3, np.float32), np.zeros((3, 2), np.float32)], ShapeError, ["argument 0 of @f", "rank 2", "got 1"]),
        ([np.zeros((2, 3)), np.zeros((3, 2), np.float32)], DtypeError, ["argument 0 of @f", "f32", "float64"]),
        ([np.zeros((2, 3), ">f4"), np.zeros((3, 2), np.float32)], DtypeError, ["argument 0 of @f", "f32", ">f4"]),
        (["text", np.zeros((3, 2), np.float32)], DtypeError, ["argument 0 of @f", "f32"]),
    ],
)
def test_an_argument_that_does_not_fit_is_named(
    arguments: list[Any], error: type[TesseraError], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        run_function(TWO, "f", arguments)
    for word in words:
        assert word in caught.value.message


def test_symbols_are_bound_by_arguments_and_may_be_zero() -> None:
    for m, k, n in ((2, 3, 1), (0, 3, 2), (2, 0, 0)):
        (found,) = run_function(TWO, "f", [np.ones((m, k), np.float32), np.ones((k, 2 * n), np.float32)])
        assert found.shape == (m, 2 * n)
        assert (found == k).all()


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(CompileError, match=r"expected a graph.func @g, the module has nothing of that name"):
        run_function(TWO, "g", [])


@pytest.mark.parametrize("index", [-1, 3, 2**40])
@pytest.mark.parametrize("dtype", [i8, i32, i64], ids=str)
def test_an_index_out_of_range_is_named(index: int, dtype: DType) -> None:
    if index > dtype.max_value:
        return
    module = program([tensor(["N"], f32), tensor(["I"], dtype)], lambda a: [graph.GatherOp(a[0], [a[1]], [0])])
    with pytest.raises(ShapeError, match=rf"index {index} is out of range for axis 0 of size 3"):
        run_function(module, "f", [np.zeros(3, np.float32), np.array([0, index, 1], dtype.storage)])


@pytest.mark.parametrize("value", [1.5, 2**31, -(2**31) - 1, math.nan, "one", None, [1, 2]], ids=repr)
def test_a_scalar_argument_must_be_a_number_of_its_type(value: object) -> None:
    module = text.read("graph.func @f(%n: i32) { graph.return }")
    with pytest.raises(DtypeError, match="argument 0 of @f: expected a number of i32") as caught:
        run_function(module, "f", [value])
    assert caught.value.hint == "give one whole number from -2147483648 to 2147483647"


# Calls, kernels and launches.

PAIR = """
tile.func @pair(%n: ui8, %x: !tile.view<1, f32, global>,
    %sum: !tile.view<0, f32, global>, %twice: !tile.view<1, f32, global>) outputs 2 shapes [[], [N], [], [N]] grid [] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
  %s = tile.reduce<sum> %a, 0 : tensor<8xf32> -> tensor<f32>
  tile.store %s, %sum[] : tensor<f32>, !tile.view<0, f32, global>
  %n8 = tile.full %n : tensor<8xui8>
  %f = tile.ew<cast> %n8 : tensor<8xui8> -> tensor<8xf32>
  %b = tile.ew<mul> %a, %f : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  tile.store %b, %twice[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}
"""
RESULTS = "(!graph.tensor<[], f32>, !graph.tensor<[S], f32>)"


@pytest.mark.parametrize("how", ["graph.call_kernel @pair", "schedule.launch @pair grid <[]> config <>"])
def test_kernels_get_scalars_and_views_and_give_all_their_outputs(how: str) -> None:
    module = text.read(
        PAIR + f"graph.func @f(%n: ui8, %x: !graph.tensor<[S], f32>) -> {RESULTS} {{"
        f"%a, %b = {how}(%n, %x) : (ui8, !graph.tensor<[S], f32>) -> {RESULTS}\n"
        "graph.return %a, %b : !graph.tensor<[], f32>, !graph.tensor<[S], f32> }"
    )
    x = np.arange(10, dtype=np.float32)[::-2]
    total, scaled = run_function(module, "f", [200, x])
    assert total == 25
    assert_same(scaled, 200 * x)


def test_a_region_means_its_body() -> None:
    type_ = tensor(["N"], i32)
    module = program([type_, type_], lambda a: [_region(*a)])
    text.verify(module)
    (found,) = run_function(module, "f", [np.array([1, 2], np.int32), np.array([10, 20], np.int32)])
    assert found.tolist() == [-9, -18]


def _region(a: SSAValue, b: SSAValue) -> schedule.RegionOp:
    region = schedule.RegionOp("pointwise", Config(block=(64,)), [a, b], [a.type])
    difference = graph.EwOp("sub", region.body.block.args)
    region.body.block.add_ops([difference, schedule.YieldOp([difference.result])])
    return region


def test_a_call_passes_arguments_and_results_in_order() -> None:
    a, b = tensor(["M"], f32), tensor(["N"], f32)
    callee = graph.FuncOp("g", [a, b], [b, a])
    callee.body.block.add_op(graph.ReturnOp(callee.arguments[::-1]))
    module = program([a, b], lambda args: [graph.CallOp("g", args, [b, a])], before=[callee])
    text.verify(module)
    found = run_function(module, "f", [numbers(1, 2), numbers(3)])
    assert [each.tolist() for each in found] == [[3.0], [1.0, 2.0]]


def test_an_error_names_the_source_location() -> None:
    module = text.read(
        "graph.func @f(%x: !graph.tensor<[N], f32>, %i: !graph.tensor<[], i32>) -> (!graph.tensor<[], f32>) {\n"
        "  %y = graph.gather %x[%i], [0] : !graph.tensor<[N], f32>, !graph.tensor<[], i32> -> !graph.tensor<[], f32>\n"
        "  graph.return %y : !graph.tensor<[], f32>\n}",
        "program.mlir",
    )
    with pytest.raises(ShapeError) as caught:
        run_function(module, "f", [np.zeros(2, np.float32), np.array(2, np.int32)])
    assert caught.value.span is not None
    assert caught.value.span.file.endswith("program.mlir")
    assert caught.value.span.line == 2


def test_a_module_is_not_changed_by_running_it() -> None:
    before = text.write(TWO)
    run_function(TWO, "f", [np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)])
    assert text.write(TWO) == before
