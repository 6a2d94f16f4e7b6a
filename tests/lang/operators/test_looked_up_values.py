"""Elements at traced indices: of slices, of other look-ups, at indices that are computed; kernels against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.interpreters.levels.graph import run_function
from tessera.transforms.pipeline import compile_module

draw = np.random.default_rng(0)
Array = np.ndarray[Any, np.dtype[Any]]


def floats(*shape: int) -> Array:
    return draw.standard_normal(shape).astype(np.float32)


def at(*indices: Any) -> Array:
    """Indices: one number, or a row of them."""
    return np.array(indices[0] if len(indices) == 1 else indices, np.int64)


X, CUBE, W = floats(4, 5), floats(4, 5, 3), floats(3, 50, 4)
ORDER = at(3, 1, 0, 2)
Run = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
Case = tuple[Run, Run | None, tuple[Array, ...]]
SAME = None
"""NumPy's indexing is written alike."""
CASES: dict[str, Case] = {
    "two numbers": (lambda x, i, j: x[i, j], SAME, (X, at(1), at(2))),
    "two numbers of 32 bits": (lambda x, i, j: x[i, j], SAME, (X, at(1).astype(np.int32), at(2).astype(np.int32))),
    "two numbers of 8 bits": (lambda x, i, j: x[i, j], SAME, (X, at(1).astype(np.uint8), at(2).astype(np.uint8))),
    "numbers from the end": (lambda x, i, j: x[i, j], SAME, (X, at(-1), at(-5))),
    "three numbers": (lambda x, i, j: x[i, j, i], SAME, (CUBE, at(-1), at(1))),
    "a number and a row": (lambda x, i, j: x[i, j], SAME, (CUBE, at(1), at([2, 3]))),
    "a column and a row": (lambda x, i, j: x[i, j], SAME, (CUBE, at([[1], [2]]), at([2, 3]))),
    "apart": (lambda x, i, j: x[i, :, j], SAME, (CUBE, at(1), at(2))),
    "behind an axis": (lambda x, i, j: x[:, i, j], SAME, (CUBE, at(-1), at(-2))),
    "beside a known number": (lambda x, i: (x[i, 0], x[0, i], x[..., i], x[None, i, None, -1]), SAME, (X, at(1))),
    "beside a slice": (lambda x, i: (x[i, 1:2], x[1:3, i]), SAME, (X, at(1))),
    "computed": (lambda x, i, j: x[i + j, j - i], SAME, (X, at(1), at(2))),
    "parts of a row of indices": (lambda x, i: (x[i[0], i[1]], x[i[:1], i[1:]], x[i[0]][i[1]]), SAME, (X, at([1, 2]))),
    "of a row": (lambda x, i: x[0][i], SAME, (X, at([2]))),
    "of a row, one": (lambda x, i: x[0][i], SAME, (X, at(2))),
    "of the only row": (lambda x, i: x[0][i], SAME, (floats(1, 5), at([2]))),
    "of a column": (lambda x, i: x[:, 1][i], SAME, (X, at([2]))),
    "of a part of a row": (lambda x, i: x[-1][1:][i], SAME, (X, at([2, 0]))),
    "of reversed rows": (lambda x, i: x[1:3][::-1][i], SAME, (X, at([1]))),
    "of a matrix of three": (lambda w, i: w[1][i], SAME, (W, at([[7]]))),
    "of a matrix of three, many": (lambda w, i: w[1][i] * 2.0, SAME, (W, at([[7, 3], [2, 1]]))),
    "of a row of a matrix": (lambda w, i: w[1][0][i], SAME, (W, at(2))),
    "folded": (lambda w, i: ts.sum(w[1][i], axis=0), lambda w, i: np.sum(w[1][i], axis=0), (W, at([7]))),
    "of another shape": (
        lambda w, i: ts.reshape(w * 2.0, (6, 100))[i, i + 1],
        lambda w, i: (w * 2).reshape(6, 100)[i, i + 1],
        (W, at(3)),
    ),
    "of what was found": (lambda x, i, j: (x[i][j], x[i][i + 1]), SAME, (X, at(1), at([2]))),
    "indices of indices": (lambda p, i: (p[p[p[i]]], p[p[0], None]), SAME, (ORDER, at([1]))),
    "indices of indices, one": (lambda p, i: p[p[p[i]]], SAME, (ORDER, at(1))),
    "along one row": (
        lambda x, i: ts.take_along_axis(x, i, axis=1),
        lambda x, i: np.take_along_axis(x, i, axis=1),
        (floats(1, 5), at([[0, -1]])),
    ),
    "along one column": (
        lambda x, i: ts.take_along_axis(x, i, axis=0),
        lambda x, i: np.take_along_axis(x, i, axis=0),
        (floats(5, 1), at([[3]])),
    ),
    "sorted twice": (
        lambda x: (ts.sort(ts.sort(x))[2], ts.sort(x, axis=0)[1:2, 0]),
        lambda x: (np.sort(x)[2], np.sort(x, axis=0)[1:2, 0]),
        (floats(3, 4),),
    ),
    "one of a sorted row": (
        lambda x, i: (ts.sort(x)[i], x[ts.argsort(x)[i]], x[ts.argmax(x)]),
        lambda x, i: (np.sort(x)[i], np.sort(x)[i], np.max(x)),
        (floats(7), at(2)),
    ),
    "the largest": (lambda x: ts.topk(ts.sort(x), 2)[0][1], lambda x: np.sort(x)[-2], (floats(7),)),
    "of a product": (lambda x, i: ((x @ x)[i, i], (x @ x)[0][i]), SAME, (floats(4, 4), at(1))),
    "in a product": (lambda x, i: x[0][i] @ x, SAME, (X, at([1, 2, 0, 3]))),
    "of shares": (
        lambda x, i: ts.softmax_safe(x)[i, i],
        lambda x, i: (np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True))[i, i],
        (X, at(1)),
    ),
    "of pieces": (
        lambda x, i: (ts.concat([x[0], x[1]])[i], ts.pad(x, ((1, 1), (1, 1)))[i, i]),
        lambda x, i: (np.concatenate([x[0], x[1]])[i], np.pad(x, 1)[i, i]),
        (X, at(4)),
    ),
    "of what was updated": (lambda x, i: x.at[0].set(1.0)[0][i], lambda x, i: np.ones_like(x)[0][i], (X, at([1]))),
}


def case(name: str) -> tuple[Any, list[Array], tuple[Array, ...]]:
    """A function, what NumPy gives, and the arguments."""
    function, reference, arguments = CASES[name]
    run: Any = function if reference is None else reference
    expected: Any = run(*arguments)
    return function, [np.asarray(one) for one in (expected if isinstance(expected, tuple) else (expected,))], arguments  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  (of anything)


@pytest.mark.parametrize("name", CASES)
def test_kernels_find_what_numpy_finds(name: str) -> None:
    function, wanted, arguments = case(name)
    jitted = ts.jit(function)
    compare([one.numpy() for one in ts.tree_leaves(jitted(*arguments))], wanted)
    (variant,) = [one for family in jitted.families.values() for one in family.variants]
    with knobs.verify.using(True):
        compiled = compile_module(variant.traced.module)
    compare(run_function(compiled.module, "main", list(arguments)), wanted)


def compare(found: Any, expected: Any) -> None:
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("two numbers", "along one row") else pytest.param(name, marks=pytest.mark.acceptance)
        for name in CASES
    ],
)
def test_native_code_finds_what_numpy_finds(name: str) -> None:
    function, wanted, arguments = case(name)
    compare([one.numpy() for one in ts.tree_leaves(ts.jit(function)(*arguments))], wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_gpus_find_what_numpy_finds(name: str) -> None:
    function, wanted, arguments = case(name)
    with knobs.backend.using("auto"):
        found = ts.jit(function)(*(ts.asarray(one).cuda() for one in arguments))
        compare([one.cpu().numpy() for one in ts.tree_leaves(found)], wanted)
