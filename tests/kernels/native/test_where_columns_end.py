"""Tiles that are made of arrays of several sizes: an element is one of the program's own where it is inside of all."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from gpu_options import gpu

from tessera import KTile, Schedule, f32, kernel, knobs, tile
from tessera.targets.cuda.compile import compile_kernel
from tessera.targets.cuda.ptx.assembler import assemble

nv_runs: Any = import_module("nv_runs")

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = Schedule(block=(16, 32))
QUERIES, KEYS, WIDTH = 20, 70, 16


def _masked(how: str, q: Any, k: Any, buffer: Any, block: Any, positions: Any) -> Any:
    """Scores, together with a part of another array."""
    here = tile.context()
    right = tile.load(k, block).T
    if how == "starting with it":
        return tile.dot(q, right, tile.load(buffer, at=(here.row_start, block.start), shape=(here.m, here.n)))
    scores = tile.dot(q, right) * here.d**-0.5
    if how in ("row numbers", "causal by row numbers"):
        rows = tile.load(positions, at=(0,), shape=(1,))[:, None] + tile.zeros((here.m, 1))
        columns = tile.load(buffer, at=(0, block.start), shape=(1, here.n))
        if how == "row numbers":
            return tile.where(rows >= columns, scores, -tile.INF)
        tile.mask_causal(scores, rows, columns)
        return scores
    part = tile.load(buffer, at=(here.row_start, block.start), shape=(here.m, here.n))
    match how:
        case "first of a where":
            return tile.where(part > 0.0, scores, -tile.INF)
        case "last of a where":
            return tile.where(~(part > 0.0), -tile.INF, scores)
        case "mask of what is left out":
            return tile.where(part < 0.0, -tile.INF, scores)
        case "bias first":
            return part + scores
        case "bias last":
            return scores + part
        case _:
            assert how == "twice"
            return tile.where(part > 0.0, part + scores, -tile.INF)


@kernel.schedule(BLOCK)
def attention(q: Any, k: Any, v: Any, buffer: Any, positions: Any, *, how: str):
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        weights, highest, sums = tile.softmax_online(_masked(how, queries, k, buffer, block, positions))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, tile.load(v, block), highest, sums)
    return acc / total[:, None]


HOWS = [
    "first of a where",
    "last of a where",
    "mask of what is left out",
    "bias first",
    "bias last",
    "starting with it",
    "twice",
    "row numbers",
    "causal by row numbers",
]


def _arguments(how: str, width: int) -> list[Array]:
    random = np.random.default_rng(width)
    q, k, v = (random.standard_normal((rows, WIDTH)).astype(np.float32) for rows in (QUERIES, KEYS, KEYS))
    buffer = random.standard_normal((QUERIES, width)).astype(np.float32)
    buffer[:, 0] = 1.0 if "left out" not in how else 0.5  # no row is masked as a whole
    if "numbers" in how:
        buffer = np.arange(width, dtype=np.float32)[None, :]
    return [q, k, v, buffer, np.full(1, 60, np.float32)]


def _expected(how: str, q: Array, k: Array, v: Array, buffer: Array, positions: Array) -> Array:
    count = min(KEYS, buffer.shape[1])
    buffer = buffer[:, :count].astype(np.float64)
    products = q.astype(np.float64) @ k[:count].T.astype(np.float64)
    scores = products * WIDTH**-0.5
    match how:
        case "first of a where" | "last of a where":
            scores = np.where(buffer > 0, scores, -np.inf)
        case "mask of what is left out":
            scores = np.where(buffer < 0, -np.inf, scores)
        case "bias first" | "bias last":
            scores = scores + buffer
        case "starting with it":
            scores = products + buffer
        case "twice":
            scores = np.where(buffer > 0, scores + buffer, -np.inf)
        case _:
            scores = np.where(positions[0] >= buffer, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v[:count] / weights.sum(axis=1, keepdims=True)


@pytest.mark.quick
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("width", [128, 50, 70])
def test_columns_end_where_the_first_array_does(how: str, width: int) -> None:
    """A buffer wider than the keys, one narrower, and one as wide."""
    given = _arguments(how, width)
    expected = _expected(how, *given)
    for backend in ("cpu", "interpreter"):
        with knobs.backend.using(backend), knobs.optimization.using(0):
            assert np.abs(attention(*given, how=how).numpy() - expected).max() <= 1e-5, backend


@pytest.mark.quick
@pytest.mark.parametrize("how", ["first of a where", "bias last", "starting with it"])
def test_on_a_gpu(how: str) -> None:
    """By the meaning of what is compiled for one; and that text assembles."""
    given = _arguments(how, 128)
    made = attention.lower(*given, how=how)
    result = np.zeros((QUERIES, WIDTH), np.float32)
    *_, found = nv_runs.at_nv_level(
        nv_runs.lowered(made.module, made.name, warps=1, stages=2), made.name, [*given, result]
    )
    assert np.abs(found - _expected(how, *given)).max() <= 1e-5
    program = compile_kernel(made.module, made.name, gpu("sm_80", warps=1, stages=2, optimization=0))
    assert not assemble(program.ptx, "sm_80").warnings


if TYPE_CHECKING:
    Queries = Keys = Biases = Any
else:
    Queries, Keys, Biases = KTile["M", "D", f32], KTile["N", "D", f32], KTile["M", "N", f32]


@kernel.schedule(BLOCK)
def named(q: Queries, k: Keys, bias: Biases, out: Any):
    here = tile.context()
    for block in tile.range_n(k.shape, here.n):
        part = tile.load(bias, at=(here.row_start, block.start), shape=(here.m, here.n))
        _, _, total = tile.softmax_online(tile.dot(tile.load(q), tile.load(k, block).T) + part)
        tile.store(out, total, at=(here.row_start,))


def test_sizes_of_one_name_are_compared_once() -> None:
    arrays = [np.ones(shape, np.float32) for shape in ((16, 4), (40, 4), (16, 40), (16,))]
    text = str(named.lower(*arrays).module)
    assert text.count("tile.ew<lt>") == 1


@kernel.schedule(BLOCK)
def dropped(q: Any, k: Any, mask: Any, out: Any, *, first: bool):
    here = tile.context()
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(tile.load(q), tile.load(k, block).T)
        kept = tile.load(mask, at=(here.row_start, block.start), shape=(here.m, here.n)) > 0.0
        scores = tile.where(kept, scores, 0.0) if first else tile.where(~kept, 0.0, scores)
        tile.store(out, tile.dropout(scores, p=0.5, key=3), at=(here.row_start, block.start))


def test_what_is_dropped_does_not_depend_on_a_mask() -> None:
    q, k = np.ones((20, 4), np.float32), np.ones((70, 4), np.float32)
    found: list[Array] = []
    for width in (70, 128):
        for first in (True, False):
            out = np.zeros((20, 70), np.float32)
            with knobs.backend.using("interpreter"):
                dropped(q, k, np.ones((20, width), np.float32), out, first=first)
            found.append(out)
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert 0.3 < (found[0] == 0).mean() < 0.7


FOLDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@kernel
def folded(x: Any, y: Any, out: Any, *, kind: str, axis: int, pad: float):
    a = tile.load(x, at=(0, 0), shape=(16, 32), pad=pad)
    b = tile.load(y, at=(0, 0), shape=(16, 32), pad=pad)
    tile.store(out, getattr(tile, kind)(a + b, axis), at=(0,))


@pytest.mark.quick
@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shapes", [((5, 20), (9, 7)), ((16, 32), (3, 3)), ((1, 31), (15, 1))], ids=str)
def test_folds_count_what_loads_give_beyond_arrays(
    kind: str, axis: int, shapes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """Outside of an array a load gives `pad`, whatever it is combined with; folds mask nothing."""
    random, pad = np.random.default_rng(0), 0.5
    arrays = [random.integers(1, 4, shape).astype(np.float32) / 2 for shape in shapes]
    padded = [np.pad(a, [(0, 16 - a.shape[0]), (0, 32 - a.shape[1])], constant_values=pad) for a in arrays]
    expected = FOLDS[kind]((padded[0] + padded[1]).astype(np.float64), axis=axis)
    for backend in ("cpu", "interpreter"):
        out = np.zeros(32 if axis == 0 else 16, np.float32)
        with knobs.backend.using(backend):
            folded[1](*arrays, out, kind=kind, axis=axis, pad=pad)
        assert np.allclose(out, expected, rtol=1e-6)


@kernel
def multiplied(x: Any, y: Any, out: Any):
    left = tile.load(x, at=(0, 0), shape=(16, 32))
    right = tile.load(y, at=(0, 0), shape=(32, 16))
    tile.store(out, tile.dot(tile.exp(left), tile.where(right > 0.0, right, 1.0)), at=(0, 0))


def test_products_of_different_depths() -> None:
    """Beyond both arrays the loop goes on with what loads give there."""
    random = np.random.default_rng(1)
    x, y = random.standard_normal((16, 20)).astype(np.float32), random.standard_normal((9, 16)).astype(np.float32)
    left, right = np.pad(x, [(0, 0), (0, 12)]), np.pad(y, [(0, 23), (0, 0)])
    expected = np.exp(left.astype(np.float64)) @ np.where(right > 0, right, 1.0)
    for backend in ("cpu", "interpreter"):
        out = np.zeros((16, 16), np.float32)
        with knobs.backend.using(backend):
            multiplied[1](x, y, out)
        assert np.allclose(out, expected, rtol=1e-5)
