"""Operators on nothing: what folds give over axes without elements, known or symbolic, and what is made of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compared import traced

import tessera as ts
from tessera import knobs
from tessera.interpreters.levels.graph import run_function
from tessera.transforms.pipeline import compile_module

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
draw = np.random.default_rng(0)
Array = np.ndarray[Any, np.dtype[Any]]


def floats(*shape: int) -> Any:
    return draw.standard_normal(shape).astype(np.float32)


def whole(*shape: int) -> Array:
    return np.zeros(shape, np.int64)


def folds(library: Any, x: Any, axis: Any, *, more: bool = True) -> list[Any]:
    """Sums and their like, of what arithmetic makes of an array, and more arithmetic on them."""
    found = [
        library.sum(library.exp(x), axis=axis),
        library.sum(2.0 - x, axis=axis, keepdims=True) * 3.0 + x,
        library.prod(x, axis=axis) + 1.0,
        library.all(x > 0, axis=axis),
        library.any(x <= 0, axis=axis),
        library.sum(x - library.sum(x + 1.0, axis=axis, keepdims=True)),
    ]
    if more:
        found += [library.mean(x, axis=axis), library.var(x, axis=axis), library.std(x, axis=axis)]
    return found


SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((0,), 0),
    ((3, 0), 1),
    ((0, 3), 0),
    ((2, 0, 3), 1),
    ((2, 3, 0), (0, 2)),
    ((2, 0, 3), None),
    ((2, 0, 3), 2),
    ((0, 0), 0),
    ((1, 0), 1),
    ((20, 0, 40), (0, 1)),
]


def compare(found: Any, expected: Any) -> None:
    for got, want in zip(ts.tree_leaves(found), expected, strict=True):
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.numpy().astype(np.float64), np.asarray(want, np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_folds_of_nothing(shape: tuple[int, ...], axis: Any) -> None:
    x = floats(*shape)
    expected = folds(np, x, axis)
    compare(folds(ts, ts.asarray(x), axis), expected)
    compare(traced(lambda x: folds(ts, x, axis))(x), expected)


@pytest.mark.quick(case=[SHAPES[2]])
@pytest.mark.parametrize("case", SHAPES)
def test_native_folds_of_nothing(case: tuple[tuple[int, ...], Any]) -> None:
    shape, axis = case
    x = floats(*shape)
    compare(traced(lambda x: folds(ts, x, axis))(x), folds(np, x, axis))


def test_native_folds_of_nothing_eagerly() -> None:
    x = ts.asarray(floats(3, 0))
    compare([ts.prod(x), ts.logsumexp_safe(x)], [1.0, np.full(3, -np.inf)])


@pytest.mark.parametrize("dtype", [ts.f64, ts.bf16, ts.i32, ts.u8])
def test_native_folds_of_nothing_in_other_types(dtype: Any) -> None:
    x = ts.zeros((2, 0), dtype=dtype)
    found = traced(lambda x: (ts.sum(x + 1, axis=1), ts.prod(x + 2, axis=1)))(x)
    compare(found, [[0, 0], [1, 1]])


def test_native_symbolic_sizes_may_be_nothing() -> None:
    """One program for all sizes; 0 is one of them."""

    @ts.jit
    def folded(x: ts.Tensor["M", "N"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        return ts.prod(x, axis=1), ts.mean(x, axis=1), ts.logsumexp_safe(x, axis=1), ts.softmax_safe(x)

    for shape in ((3, 5), (3, 0), (0, 5), (0, 0), (2, 1)):
        x = floats(*shape)
        with np.errstate(all="ignore"):
            shares = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
            totals = np.log(np.sum(np.exp(x), axis=1))
            compare(folded(x), [np.prod(x, axis=1), np.mean(x, axis=1), totals, shares])
    assert len(folded.families) == 1


COUNTED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: ts.mean(x, axis=1),
    "mean and product": lambda x: (ts.prod(x, axis=1), ts.mean(x, axis=1)),
    "means of a product": lambda x: ts.mean(x @ x.mT @ x, axis=1),
    "means of all and of columns": lambda x: ts.mean(x) - ts.mean(x, axis=0),
    "variances": lambda x: (ts.var(x), ts.var(x, axis=1, correction=1)),
    "ones": lambda x: (ts.sum(ts.ones_like(x), axis=1), ts.sum(ts.ones_like(x))),
    "repeated sums": lambda x: ts.sum(ts.broadcast_to(ts.sum(x, axis=1, keepdims=True), x.shape), axis=1),
    "product of ones": lambda x: ts.ones_like(x) @ ts.ones_like(x).mT,
    "running sums of ones": lambda x: (
        ts.cumulative_sum(ts.ones_like(x), axis=1),
        ts.cumulative_sum(ts.ones((3, 4)), axis=0),
    ),
    "ones in a row": lambda x: ts.sum(ts.reshape(ts.ones_like(x), (-1,))),
}


@pytest.mark.parametrize("name", COUNTED)
def test_kernels_are_told_sizes_that_they_only_count(name: str) -> None:
    """None of the arrays that such a kernel reads has the size."""

    @ts.jit
    def counted(x: ts.Tensor["M", "N"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        return COUNTED[name](x)

    counted(floats(3, 5))
    (variant,) = [one for family in counted.families.values() for one in family.variants]
    with knobs.verify.using(True):
        compiled = compile_module(variant.traced.module).module
    for shape in ((3, 5), (3, 0), (0, 5), (1, 1)):
        x = floats(*shape)
        expected = run_function(variant.traced.module, "main", [x])
        for found, wanted in zip(run_function(compiled, "main", [x]), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_native_unnamed_sizes_may_become_nothing() -> None:
    total = traced(lambda x: ts.sum(ts.exp(x), axis=0))
    for rows in (4, 7, 9, 0, 5):
        x = floats(rows, 3)
        compare([total(x)], [np.sum(np.exp(x), axis=0)])


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_nothing_are_refused(name: str) -> None:
    function = getattr(ts, name)
    with pytest.raises(ts.ShapeError, match="axis 1 has no elements"):
        function(ts.zeros((3, 0)), axis=1)
    with pytest.raises(ts.ShapeError, match="no elements"):
        ts.jit(function)(ts.zeros((0,)))

    @ts.jit
    def named(x: ts.Tensor["N"]) -> Any:  # noqa: F821, UP037  (the name of a size)
        return function(x)

    named(ts.zeros((3,)))
    with pytest.raises(ts.ShapeError, match="no elements"):
        named(ts.zeros((0,)))
    assert float(named(ts.zeros((4,)))) == 0
    assert function(ts.zeros((3, 0)), axis=0).shape == (0,)


def test_a_correction_larger_than_the_number_of_elements() -> None:
    for count in (0, 1, 2):
        x = floats(count)
        expected = np.var(x, ddof=3)
        compare([ts.var(x, correction=3), traced(lambda x: ts.var(x, correction=3))(x)], [expected, expected])


Run = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
Case = tuple[Run, tuple[Any, ...], Any]
NAN, ONES = np.float32(np.nan), np.ones
LABELS = whole(0)
CASES: dict[str, Case] = {
    "shares": (lambda x: (ts.softmax(x), ts.softmax_safe(x), ts.log_softmax(x)), (floats(3, 0),), [floats(3, 0)] * 3),
    "shares added": (lambda x: ts.sum(ts.softmax_safe(x) + 1, axis=1), (floats(3, 0),), [np.zeros(3)]),
    "norms": (lambda x: (ts.layernorm_safe(x), ts.rmsnorm_safe(x)), (floats(3, 0),), [floats(3, 0)] * 2),
    "group norm": (lambda x: ts.groupnorm(x, 2), (floats(2, 4, 0),), [floats(2, 4, 0)]),
    "loss, summed": (lambda x, y: ts.cross_entropy(x, y, reduction="sum"), (floats(0, 5), LABELS), [0.0]),
    "loss, mean": (ts.cross_entropy, (floats(0, 5), LABELS), [NAN]),
    "loss, each": (lambda x, y: ts.cross_entropy(x, y, reduction="none"), (floats(0, 5), LABELS), [np.zeros(0)]),
    "smooth loss": (
        lambda x, y: ts.cross_entropy(x, y, label_smoothing=0.1, reduction="sum"),
        (floats(0, 5), LABELS),
        [0.0],
    ),
    "squares": (
        lambda x, y: (ts.mse_loss(x, y), ts.mse_loss(x, y, reduction="sum")),
        (floats(3, 0), floats(3, 0)),
        [NAN, 0.0],
    ),
    "running": (
        lambda x: (
            ts.cumulative_sum(x, axis=1, include_initial=True),
            ts.cumulative_prod(x, axis=1, include_initial=True),
        ),
        (floats(3, 0),),
        [np.zeros((3, 1)), ONES((3, 1))],
    ),
    "running, cast": (lambda x: ts.astype(ts.cumulative_sum(x), ts.i32), (np.zeros(0, np.int32),), [np.zeros(0)]),
    "sorted": (lambda x: (ts.sort(x), ts.argsort(x, axis=0), ts.topk(x, 0)[0]), (floats(3, 0),), [floats(3, 0)] * 3),
    "product": (lambda a, b: ts.exp(a @ b) + 1.0, (floats(3, 0), floats(0, 4)), [np.full((3, 4), 2.0)]),
    "product of what is computed": (
        lambda a, b, c: ts.exp(a) @ ts.exp(b) - c,
        (floats(2, 3, 0), floats(0, 4), ONES(4, np.float32)),
        [np.full((2, 3, 4), -1.0)],
    ),
    "product of integers": (lambda a, b: a @ b + 1, (whole(3, 0), whole(0, 2)), [ONES((3, 2))]),
    "products in a row": (
        lambda a, b: ts.relu(a @ b + 1) @ ts.ones((4, 2)),
        (floats(2, 3, 0), floats(0, 4)),
        [np.full((2, 3, 2), 4.0)],
    ),
    "few rows": (lambda a, b: ts.relu(a @ b + 1), (floats(1, 0), floats(0, 70)), [ONES((1, 70))]),
    "vectors": (
        lambda a, b: (a @ b + 1, ts.vecdot(a, b), ts.einsum("i,i->", a, b)),
        (floats(0), floats(0)),
        [1.0, 0.0, 0.0],
    ),
    "attention, no keys": (
        lambda q, k: (ts.flash_attention(q, k, k), ts.scaled_dot_product_attention(q, k, k, causal=True) + 1),
        (floats(2, 2, 3, 8), floats(2, 2, 0, 8)),
        [np.zeros((2, 2, 3, 8)), ONES((2, 2, 3, 8))],
    ),
    "attention, no queries": (
        lambda q, k: ts.flash_attention(q, k, k),
        (floats(2, 2, 0, 8), floats(2, 2, 3, 8)),
        [floats(2, 2, 0, 8)],
    ),
    "attention, no batch": (
        lambda q, k: ts.flash_attention(q, k, k),
        (floats(0, 2, 4, 8), floats(0, 2, 3, 8)),
        [floats(0, 2, 4, 8)],
    ),
    "own attention": (lambda q, k: ts.exp(ts.softmax_safe(q @ k.mT) @ k), (floats(3, 8), floats(0, 8)), [ONES((3, 8))]),
    "convolution": (
        lambda x, w: (ts.conv1d(x, w), ts.conv1d(x, w, groups=1, padding=1, stride=2)),
        (floats(0, 3, 8), floats(4, 3, 3)),
        [floats(0, 4, 6), floats(0, 4, 4)],
    ),
    "convolution of no channels": (
        lambda x, w, b: ts.relu(ts.conv1d(x, w, b)),
        (floats(2, 0, 8), floats(4, 0, 3), ONES(4, np.float32)),
        [ONES((2, 4, 6))],
    ),
    "convolution in a plane": (
        lambda x, w: ts.conv2d(x, w, groups=3),
        (floats(0, 3, 8, 8), floats(6, 1, 3, 3)),
        [floats(0, 6, 6, 6)],
    ),
    "pooling": (
        lambda x: (ts.max_pool(x, 2), ts.avg_pool(x, 2, padding=1)),
        (floats(0, 3, 8),),
        [floats(0, 3, 4), floats(0, 3, 5)],
    ),
    "embedding": (lambda i, t: (ts.embedding(i, t), t[i]), (whole(2, 0), floats(4, 3)), [floats(2, 0, 3)] * 2),
    "rows of no columns": (lambda x, i: x[i] * 2, (floats(3, 0), np.array([1, 2])), [floats(2, 0)]),
    "indices along rows": (ts.take_along_axis, (floats(3, 0), whole(3, 0)), [floats(3, 0)]),
    "updates": (lambda x, i: x.at[i].add(1.0), (ONES((3, 2), np.float32), whole(0)), [ONES((3, 2))]),
    "concatenated": (
        lambda x, y: ts.sum(ts.exp(ts.concat([x, y, x], axis=1)), axis=1),
        (floats(3, 0), np.zeros((3, 2), np.float32)),
        [np.full(3, 2.0)],
    ),
    "padded": (lambda x: ts.pad(x, ((0, 0), (1, 2)), value=7.0), (floats(2, 0),), [np.full((2, 3), 7.0)]),
    "cut away": (
        lambda x: (ts.sum(ts.exp(x[:, 2:2]), axis=1), ts.prod(x[3:1]), ts.sum(ts.exp(x[1:1])) + ts.sum(x)),
        (ONES((3, 4), np.float32),),
        [np.zeros(3), 1.0, 12.0],
    ),
    "repeated": (lambda x: ts.prod(ts.broadcast_to(x, (0, 3)), axis=0), (floats(3),), [ONES(3)]),
    "folded twice": (lambda x: (ts.all(ts.any(x > 0, axis=1)), ts.all(ts.any(x > 0, axis=0))), (floats(0, 3),), [1, 0]),
}
NATIVE = ["running, cast", "products in a row", "cut away"]


def case(name: str) -> tuple[Any, tuple[Any, ...], Any]:
    return CASES[name]


@pytest.mark.parametrize("name", CASES)
def test_of_nothing(name: str) -> None:
    function, arguments, expected = case(name)
    compare(function(*map(ts.asarray, arguments)), expected)
    compare(ts.jit(function)(*arguments), expected)


@pytest.mark.quick(name=NATIVE)
@pytest.mark.parametrize("name", CASES)
def test_native_of_nothing(name: str) -> None:
    function, arguments, expected = case(name)
    compare(ts.jit(function)(*arguments), expected)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", CASES)
def test_native_of_nothing_eagerly(name: str) -> None:
    function, arguments, expected = case(name)
    with knobs.eager_elements.using(0):
        compare(function(*map(ts.asarray, arguments)), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_of_nothing_on_a_gpu(name: str) -> None:
    function, arguments, expected = case(name)
    with knobs.backend.using("auto"):
        found = ts.jit(function)(*(ts.asarray(one).cuda() for one in arguments))
        compare([one.cpu() for one in ts.tree_leaves(found)], expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_folds_of_nothing_on_a_gpu(shape: tuple[int, ...], axis: Any) -> None:
    x = floats(*shape)
    with knobs.backend.using("auto"):
        found = traced(lambda x: folds(ts, x, axis))(ts.asarray(x).cuda())
        compare([one.cpu() for one in found], folds(np, x, axis))


def test_windows_have_at_least_one_element() -> None:
    x, w = ts.zeros((1, 2, 8)), ts.zeros((3, 2, 3))
    with pytest.raises(ts.ShapeError, match="stride is one number from 1 on"):
        ts.conv1d(x, w, stride=0)
    with pytest.raises(ts.ShapeError, match="dilation is one number from 1 on"):
        ts.conv1d(x, w, dilation=0)
    with pytest.raises(ts.ShapeError, match="the window is one number from 1 on"):
        ts.conv1d(x, w[:, :, :0])
    with pytest.raises(ts.ShapeError, match="the window is one number from 1 on"):
        ts.max_pool(x, 0)


def test_sizes_beside_tensors_are_numbers_of_their_type() -> None:
    @ts.jit
    def beside(x: ts.Tensor["M", "N"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        rows, columns = x.shape
        return x + rows, rows * x, columns - x, x // (columns + 1), x > columns, ts.maximum(x, rows * columns)

    for shape in ((3, 5), (2, 0), (0, 4), (4, 6)):
        x = floats(*shape)
        rows, columns = shape
        wanted = x + rows, rows * x, columns - x, x // (columns + 1), x > columns, np.maximum(x, rows * columns)
        found = beside(x)
        assert [one.dtype for one in found] == [ts.bool_ if index == 4 else ts.f32 for index in range(6)]
        compare(found, wanted)
    assert beside.explain().compilations == 1
