"""Matmuls and ops beside them become one region, and their kernels compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from graph_programs import Array, Builder, Value, build, check, error, kinds, normal, scheduled
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import bf16, f8e4m3, f16, f32, f64, i8, i32
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, u8
from tessera.interpreters.levels.graph import run_function
from tessera.transforms.pipeline import compile_module

Case = tuple[Callable[..., Any], Sequence[tuple[Sequence[Any], DType]], Sequence[Sequence[int]]]


def gelu(x: Value) -> Value:
    return x * 0.5 * ((x * 0.5**0.5).ew("erf") + 1.0)


def linear(g: Builder, x: Value, w: Value, bias: Value, residual: Value) -> Value:
    return gelu(x @ w + bias) + residual


def transposed(g: Builder, x: Value, w: Value) -> Value:
    return x.T @ w.T


def batched(g: Builder, a: Value, b: Value, scale: Value) -> Value:
    return (a @ b) * scale


def stored_elsewhere(g: Builder, a: Value, b: Value) -> Value:
    found = (a @ b).transpose(0, 2, 1, 3)
    batch, rows, heads, width = found.shape
    return found.reshape(batch, rows, heads * width)


def two_results(g: Builder, x: Value, w: Value, again: Value) -> tuple[Value, Value]:
    hidden = x @ w
    return hidden, gelu(hidden) @ again


def heads_of_a_row(g: Builder, x: Value, w: Value) -> Value:
    """An operand that is some of the columns of a larger array."""
    batch, rows, _ = x.shape
    part = x.reshape(batch, rows, 3, 4, 8).slice(2, 1, 2).reshape(batch, rows, 4, 8).transpose(0, 2, 1, 3)
    return part @ w


def outer(g: Builder, a: Value, b: Value) -> Value:
    return a @ b


CASES: dict[str, Case] = {
    "a layer": (
        linear,
        [(["B", "S", 20], f32), ([20, 33], f32), ([33], f32), (["B", "S", 33], f32)],
        [(2, 5, 20), (20, 33), (33,), (2, 5, 33)],
    ),
    "a layer of rows": (
        linear,
        [(["M", 70], f32), ([70, 65], f32), ([65], f32), (["M", 65], f32)],
        [(67, 70), (70, 65), (65,), (67, 65)],
    ),
    "both transposed": (transposed, [(["K", "M"], f32), (["N", "K"], f32)], [(70, 9), (8, 70)]),
    "batches": (
        batched,
        [(["B", 1, "M", "K"], f32), (["H", "K", "N"], f32), (["B", 1, "M", 1], f32)],
        [(2, 1, 5, 70), (3, 70, 9), (2, 1, 5, 1)],
    ),
    "a result stored elsewhere": (
        stored_elsewhere,
        [(["B", "H", "S", 7], f32), (["B", "H", 7, 16], f32)],
        [(2, 3, 5, 7), (2, 3, 7, 16)],
    ),
    "two results": (two_results, [(["M", 9], f32), ([9, 10], f32), ([10, 4], f32)], [(5, 9), (9, 10), (10, 4)]),
    "columns": (heads_of_a_row, [(["B", "S", 96], f32), ([8, 5], f32)], [(2, 6, 96), (8, 5)]),
    "one row": (outer, [([1, "K"], f32), (["K", 5], f32)], [(1, 80), (80, 5)]),
    "one column": (outer, [(["M", "K"], f32), (["K", 1], f32)], [(7, 80), (80, 1)]),
    "no depth but one": (outer, [(["M", 1], f32), ([1, "N"], f32)], [(7, 1), (1, 9)]),
    "no depth": (outer, [(["M", "K"], f32), (["K", "N"], f32)], [(7, 0), (0, 9)]),
    "no rows": (outer, [(["M", "K"], f32), (["K", "N"], f32)], [(0, 4), (4, 9)]),
}


@pytest.mark.parametrize("name", CASES)
def test_products_and_what_is_beside_them(name: str) -> None:
    make, types, shapes = CASES[name]
    module = build(make, *types)
    made = compile_module(module)
    assert set(kinds(made)) == {"matmul"}
    arrays = [normal(shape, dtype, seed) for seed, (shape, (_, dtype)) in enumerate(zip(shapes, types, strict=True))]
    check(module, arrays, made)


def test_rows_are_one_axis() -> None:
    made = scheduled(*CASES["a layer"][:1], *CASES["a layer"][1])
    assert kinds(made) == ["matmul"]
    assert '["B*S", 33]' in made.levels["schedule"]


@pytest.mark.parametrize(
    ("dtype", "to"), [(f64, f64), (f16, f16), (bf16, f32), (f8e4m3, f32), (i8, i32), (u8, u8), (i32, i32)], ids=str
)
def test_types_of_elements(dtype: DType, to: DType) -> None:
    from tessera.ir.graph import dialect as graph

    def multiply(g: Builder, a: Value, b: Value) -> Value:
        return g.add(graph.MatmulOp(a.ssa, b.ssa, to=to))

    module = build(multiply, (["M", 70], dtype), ([70, 5], dtype))
    whole = np.random.default_rng(0).integers(0 if dtype is u8 else -9, 9, (2, 70, 70)).astype(np.float64)
    arrays = [cast(x, f64, dtype.base) for x in (whole[0, :7], whole[1, :, :5])]
    if dtype.is_float:
        check(module, arrays, bound=1e-12)
        return
    made = compile_module(module)
    (expected,), (found,) = (run_function(one, "main", arrays) for one in (module, made.module))
    assert (expected == found).all()


def test_sixteen_bits_are_rounded_once() -> None:
    types = [(["M", 70], bf16), ([70, 65], bf16), ([65], bf16), (["M", 65], bf16)]
    arrays = [normal(shape, bf16, seed) for seed, shape in enumerate(CASES["a layer of rows"][2])]
    made = compile_module(build(linear, *types))
    exact = build(linear, *((shape, f64) for shape, _ in types))
    (expected,) = run_function(exact, "main", [np.asarray(x, np.float64) for x in arrays])
    (found,) = run_function(made.module, "main", arrays)
    assert error(found, bf16, expected) < 2e-3


def test_a_row_that_is_folded_is_no_business_of_the_product() -> None:
    def normalized(g: Builder, x: Value, w: Value, residual: Value) -> Value:
        y = x @ w + residual
        return y * ((y * y).reduce("sum") / 8.0).ew("rsqrt")

    made = scheduled(normalized, (["M", 8], f32), ([8, 8], f32), (["M", 8], f32))
    text = made.levels["schedule"]
    product = text[text.index("schedule.region<matmul>") :].split("schedule.yield")[0]
    assert product.count("graph.ew") == 1, "the residual, but not the squares"


def test_a_factor_is_computed_beforehand_unless_few_rows_are_multiplied() -> None:
    def narrow(g: Builder, x: Value, w: Value) -> Value:
        return x @ w.cast(bf16)

    for rows, expected in ((8, ["matmul"]), (64, ["pointwise", "matmul"]), ("M", ["pointwise", "matmul"])):
        assert kinds(scheduled(narrow, ([rows, 32], bf16), ([32, 16], i8))) == expected


@pytest.mark.parametrize(
    "shapes", [[(0, 4, 5), (5, 6)], [(0, 2, 4, 5), (0, 2, 5, 6)], [(2, 0, 4, 5), (1, 1, 5, 6)]], ids=str
)
def test_a_batch_of_none(shapes: list[tuple[int, ...]]) -> None:
    def beside(g: Builder, a: Value, b: Value) -> tuple[Value, Value]:
        return a @ b + 1.0, b.ew("exp")

    check(build(beside, *((shape, f32) for shape in shapes)), [normal(shape, f32) for shape in shapes])


def test_gates_are_one_product_after_the_other() -> None:
    def gated(g: Builder, x: Value, gate: Value, up: Value, down: Value) -> Value:
        a, b = x @ gate, x @ up
        return ((a * a.ew("sigmoid")) * b) @ down

    module = build(gated, (["B", "S", 8], f32), ([8, 12], f32), ([8, 12], f32), ([12, 8], f32))
    made = compile_module(module)
    assert kinds(made) == ["matmul", "matmul", "matmul"]
    check(module, [normal(shape, f32, 1) for shape in ((2, 5, 8), (8, 12), (8, 12), (12, 8))], made)


# Random matmuls: shapes, transposed operands, leading axes, and epilogues.

SIZES = st.integers(1, 9)


@st.composite
def products(draw: st.DrawFn) -> tuple[Callable[..., Any], list[tuple[Sequence[Any], DType]], list[Array]]:
    m, n, k = draw(SIZES), draw(SIZES), draw(st.sampled_from((1, 5, 64, 70)))
    left, right = draw(st.sampled_from(((), (2,), (2, 3), (1, 3)))), draw(st.sampled_from(((), (3,), (2, 3), (2, 1))))
    if left and right:
        pairs = zip(left[-len(right) :], right[-len(left) :], strict=True)
        left = tuple(a if a == b or 1 in (a, b) else b for a, b in pairs)
    flipped = draw(st.booleans()), draw(st.booleans())
    shapes: list[tuple[int, ...]] = [
        (*left, *((k, m) if flipped[0] else (m, k))),
        (*right, *((n, k) if flipped[1] else (k, n))),
    ]
    outer = np.broadcast_shapes(left, right)
    extra = draw(st.sampled_from(((n,), (m, 1), (*outer, m, n), (1, n), (*outer, 1, 1))))
    steps = draw(st.lists(st.sampled_from(("add", "mul", "max", "tanh", "abs", "half")), max_size=4))
    mapped = draw(st.sampled_from(("none", "transpose", "flat", "back")))
    symbolic = draw(st.booleans())

    def make(g: Builder, a: Value, b: Value, more: Value) -> Value:
        found = (a.T if flipped[0] else a) @ (b.T if flipped[1] else b)
        for step in steps:
            if step in ("tanh", "abs"):
                found = found.ew(step)
            else:
                found = found * 0.5 if step == "half" else found.ew(step, more)
        rank = len(found.shape)
        if mapped == "transpose":
            return found.transpose(*reversed(range(rank)))
        if mapped == "back" and rank > 2:
            return found.transpose(1, 0, *range(2, rank))
        return found.reshape(*found.shape[:-2], m * n) if mapped == "flat" and not symbolic else found

    names = {m: "M", n: "N"} if symbolic and m != n and 1 not in (m, n) and not {m, n} & {*left, *right, k} else {}
    shapes.append(extra)
    types: list[tuple[Sequence[Any], DType]] = [
        (tuple(names.get(size, size) for size in shape), f32) for shape in shapes
    ]
    return make, types, [normal(shape, f32, seed) for seed, shape in enumerate(shapes)]


def _check_product(case: tuple[Callable[..., Any], list[tuple[Sequence[Any], DType]], list[Array]]) -> None:
    make, types, arrays = case
    check(build(make, *types), arrays)


@settings(max_examples=12, deadline=None)
@given(products())
def test_products_by_chance(case: Any) -> None:
    _check_product(case)


@pytest.mark.acceptance
@settings(max_examples=1000, deadline=None)
@given(products())
def test_many_products_by_chance(case: Any) -> None:
    _check_product(case)
