"""The kernels under examples/kernels/ against plain NumPy: interpreted, as machine code, as PTX, and on a GPU."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ptx_checks import check_clean

import tessera as ts
from tessera import knobs
from tessera.dtypes import types as dtypes
from tessera.targets.cuda.target import CudaTarget
from tessera.tile import Kernel

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"
SLOW = (
    *("beam_step", "top_p", "gated_delta_rule", "retention", "t5_bias", "paged_prefill"),
    *("linear_attention_chunks", "group_quantized_gemm", "quantizing_gemm", "linear_cross_entropy"),
)
"""What compiles for over a second."""
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
Array = np.ndarray[Any, np.dtype[Any]]
BF16 = dtypes.bf16.storage


def example(name: str, prefix: str = "example_kernels") -> ModuleType:
    """The module of an example; with another prefix, another copy of it, which has compiled nothing yet."""
    known = sys.modules.get(f"{prefix}_{name}")
    if known is not None:
        return known
    spec = spec_from_file_location(f"{prefix}_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case:
    """A call that fills one array: `expected` is what it should hold then."""

    def __init__(self, run: str, arrays: list[Any], out: int, expected: Array, **options: Any) -> None:
        self.run, self.arrays, self.out, self.expected, self.options = run, arrays, out, expected, options


def softmax(scores: Array) -> Array:
    """Rows of −∞ give 0."""
    top = scores.max(-1, keepdims=True, initial=-1e30)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def attended(
    q: Array, k: Array, v: Array, seen: Array | None = None, bias: Any = 0.0, scale: float | None = None
) -> Array:
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    scores = q @ k.T * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    return softmax(scores if seen is None else np.where(seen, scores, -np.inf)) @ v


def paged(random: np.random.Generator, lengths: Array, heads: int, page: int, depth: int, dtype: Any) -> Any:
    """Pages in random order, some of them shared, a table with entries that are none, and the plain keys and values."""
    most = max(1, int(-(-lengths.max(initial=0) // page)))
    count = len(lengths) * most + 2
    keys, values = (random.standard_normal((count, heads, page, depth)).astype(dtype) for _ in range(2))
    table = random.permutation(count)[: len(lengths) * most].reshape(len(lengths), most).astype(np.int32)
    if len(lengths) > 1:
        table[1, 0] = table[0, 0]  # a prefix of both
    for row, length in zip(table, lengths, strict=True):
        row[-(-int(length) // page) :] = -1

    def plain(pages: Array, b: int, h: int) -> Array:
        return np.concatenate([pages[row, h] for row in table[b] if row >= 0] or [np.zeros((0, depth), dtype)])[
            : lengths[b]
        ]

    return keys, values, table, plain


def paged_decode(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    lengths, heads, group, depth = np.array([0, 1, 37, 64, 16][: 2 + seed]), 2, 3 + seed, 32
    keys, values, table, plain = paged(random, lengths, heads, 16, depth, dtype)
    q = random.standard_normal((len(lengths), heads, group, depth)).astype(dtype)
    expected = np.stack(
        [[attended(q[b, h], plain(keys, b, h), plain(values, b, h)) for h in range(heads)] for b in range(len(lengths))]
    )
    return Case("attend", [q, keys, values, table, lengths.astype(np.int32), np.full(q.shape, 7, dtype)], 5, expected)


def paged_prefill(seed: int, dtype: Any, depth: int = 32) -> Case:
    random = np.random.default_rng(seed)
    lengths, heads, most = np.array([5, 70, 33]), 2, 40
    counts = np.array([5, 40, 1 + seed])
    keys, values, table, plain = paged(random, lengths, heads, 16, depth, dtype)
    q = random.standard_normal((len(lengths), heads, most, depth)).astype(dtype)
    expected = np.full(q.shape, 7.0)
    for b, (length, count) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        seen = np.tri(count, length, length - count, dtype=bool)
        for h in range(heads):
            expected[b, h, :count] = attended(q[b, h, :count], plain(keys, b, h), plain(values, b, h), seen)
    given = [q, keys, values, table, lengths.astype(np.int32), counts.astype(np.int32), np.full(q.shape, 7, dtype)]
    return Case("attend", given, 6, expected, rows=(16, 32, 64, 128)[seed % 4])


def varlen_attention(seed: int, dtype: Any) -> Case:
    random, causal = np.random.default_rng(seed), seed % 2 == 1
    lengths = np.array([0, 3, 70, 1, 0, 33])
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    q, k, v = (random.standard_normal((starts[-1], 2, 32)).astype(dtype) for _ in range(3))
    expected = np.zeros(q.shape)
    for a, b in itertools.pairwise(starts):
        seen = np.tri(b - a, dtype=bool) if causal else None
        for h in range(2):
            expected[a:b, h] = attended(q[a:b, h], k[a:b, h], v[a:b, h], seen) if b > a else 0
    return Case(
        "attend", [q, k, v, starts, np.full(q.shape, 7, dtype)], 4, expected, longest=70, causal=causal, rows=32
    )


def grouped_gemm(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    starts = np.cumsum([0, 3, 0, 70, 64, 1]).astype(np.int32)
    x = random.standard_normal((starts[-1], 50)).astype(dtype)
    weights = random.standard_normal((5, 50, 75 + seed)).astype(dtype)
    parts = [
        x[a:b].astype(np.float64) @ w for a, b, w in zip(starts, starts[1:], weights.astype(np.float64), strict=False)
    ]
    out = np.full((starts[-1], 75 + seed), 7, dtype)
    return Case("multiply", [x, weights, starts, out], 3, np.concatenate(parts), most=70)


def block_sparse_attention(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal((2, 128, 32)).astype(dtype) for _ in range(3))
    lists = [[0, 2], [], [3, 1, 0], [3]]
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    columns = np.array([one for part in lists for one in part], np.int32)
    seen = np.zeros((128, 128), bool)
    for i, part in enumerate(lists):
        for j in part:
            seen[32 * i : 32 * i + 32, 32 * j : 32 * j + 32] = True
    expected = np.stack([attended(q[h], k[h], v[h], seen) for h in range(2)])
    return Case("attend", [q, k, v, starts, columns, np.full(q.shape, 7, dtype)], 5, expected, rows=32)


def t5_bias(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal((2, 90 + seed, 32)).astype(dtype) for _ in range(3))
    bias = random.standard_normal((32, 2)).astype(dtype)
    behind = np.maximum(np.arange(90 + seed)[:, None] - np.arange(90 + seed), 0)
    steps = np.log(np.maximum(behind, 1).astype(np.float32) / np.float32(16)) * np.float32(16 / np.log(128 / 16))
    buckets = np.where(behind < 16, behind, np.minimum(16 + np.maximum(steps, 0).astype(np.int64), 31))
    seen = np.tri(90 + seed, dtype=bool)
    expected = np.stack([attended(q[h], k[h], v[h], seen, bias[buckets, h].astype(np.float64), 1.0) for h in range(2)])
    return Case("attend", [q, k, v, bias, np.full(q.shape, 7, dtype)], 4, expected, rows=32)


def segmented_sum(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    starts = np.cumsum([0, 5, 0, 300, 1, 0]).astype(np.int32)
    x: Array = random.standard_normal((int(starts[-1]),)).astype(dtype)
    expected = np.array([x[a:b].astype(np.float64).sum() for a, b in itertools.pairwise(starts)])
    return Case("add_up", [x, starts, np.full(5, 7, dtype)], 2, expected, block=64)


def bags(seed: int, dtype: Any) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    starts = np.cumsum([0, 5, 0, 40, 1]).astype(np.int32)
    table: Array = random.standard_normal((12, 20)).astype(dtype)
    return table, random.integers(0, 12, (int(starts[-1]),)).astype(np.int32), starts


def embedding_bag(seed: int, dtype: Any) -> Case:
    table, tokens, starts = bags(seed, dtype)
    if seed % 2 == 0:
        parts = [table[tokens[a:b]].astype(np.float64).sum(0) for a, b in itertools.pairwise(starts)]
        return Case("look_up", [table, tokens, starts, np.full((4, 20), 7, dtype)], 3, np.stack(parts))
    gradient = np.random.default_rng(seed + 1).standard_normal((4, 20)).astype(dtype)
    expected = table.astype(np.float64)
    np.add.at(expected, tokens, np.repeat(gradient.astype(np.float64), np.diff(starts), 0))
    return Case("add_gradient", [gradient, tokens, starts, table], 3, expected)


def histogram(seed: int, dtype: Any) -> Case:
    x = np.random.default_rng(seed).integers(0, 9, 2000 + seed).astype(np.int32)
    return Case("count", [x, np.full(11, 3, np.int32)], 1, 3 + np.bincount(x, minlength=11))


def stencil(seed: int, dtype: Any) -> Case:
    x = np.random.default_rng(seed).standard_normal((37, 70 + seed)).astype(np.float32)
    padded = np.pad(x, 1).astype(np.float64)
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * x
    return Case("step", [x, np.full(x.shape, 7, np.float32)], 1, x + 0.1 * around)


def prefix_sums(seed: int, dtype: Any) -> Case:
    x: Array = np.random.default_rng(seed).standard_normal((1000 + 49 * seed,)).astype(dtype)
    expected = np.cumsum(x.astype(np.float64))
    return Case("running_sums", [x, np.full(x.shape, 7, np.float32)], 1, expected, block=64)


def sorted_rows(seed: int, dtype: Any) -> Case:
    x: Array = np.random.default_rng(seed).integers(-9, 9, (3, 13)).astype(dtype)
    if seed % 2 == 0:
        return Case("sort", [x, np.full(x.shape, 7, dtype)], 1, np.sort(x.astype(np.float64), 1))
    order = np.argsort(-x.astype(np.float64), 1, kind="stable")[:, :5]
    return Case("top", [x, np.zeros((3, 5), dtype), np.zeros((3, 5), np.int32)], 2, order)


def top_p(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    logits: Array = (3 * random.standard_normal((9, 20))).astype(dtype)
    chances = random.random(9).astype(np.float32)
    expected = np.zeros((9, 1))
    for row, chance, token in zip(logits.astype(np.float64), chances, expected, strict=True):
        order = np.argsort(-row, kind="stable")
        shares = softmax(row[order])
        upto = np.cumsum(shares)
        kept = int((upto - shares < 0.8).sum())
        token[0] = order[min(int((upto[:kept] <= chance * shares[:kept].sum()).sum()), kept - 1)]
    return Case("sample", [logits, chances, np.full((9, 1), -1, np.int32)], 2, expected, p=0.8)


def beam_step(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    logits: Array = random.standard_normal((2, 4, 11)).astype(dtype)
    scores = random.standard_normal((2, 4)).astype(np.float32)
    wide = logits.astype(np.float64)
    total = wide - np.log(np.exp(wide).sum(-1, keepdims=True)) + scores[..., None]
    order = np.argsort(-total.reshape(2, -1), 1, kind="stable")[:, :4]
    best = np.take_along_axis(total.reshape(2, -1), order, 1)
    out = 2 + seed * 2
    whole = [np.full((2, 4), -1, np.int32) for _ in range(2)]
    expected = [best, order // 11, order % 11][out - 2]
    return Case("step", [scores, logits, np.zeros((2, 4), np.float32), *whole], out, expected)


def int4_gemm(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    weights = random.integers(-8, 8, (96, 70))
    packed = (weights[::2] & 15 | (weights[1::2] & 15) << 4).astype(np.uint8)
    scales: Array = random.random((3, 70)).astype(dtype)
    x: Array = random.standard_normal((33, 96)).astype(dtype)
    expected = x.astype(np.float64) @ (weights * np.repeat(scales.astype(np.float64), 32, 0))
    return Case("multiply", [x, packed, scales, np.full((33, 70), 7, dtype)], 3, expected)


def group_quantized_gemm(seed: int, dtype: Any) -> Case:
    """Weights of 8 bits, or of 4, two to a byte."""
    random, bits = np.random.default_rng(seed), 8 if seed % 2 == 0 else 4
    weights = random.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (256, 72))
    packed = (weights[::2] & 15 | (weights[1::2] & 15) << 4).astype(np.uint8)
    scales: Array = (random.random((2, 72)) / 2**bits).astype(dtype)
    x: Array = random.standard_normal((33, 256)).astype(dtype)
    expected = x.astype(np.float64) @ (weights * np.repeat(scales.astype(np.float64), 128, 0))
    held = weights.astype(np.int8) if bits == 8 else packed
    return Case("multiply", [x, held, scales, np.full((33, 72), 7, dtype)], 3, expected)


def quantizing_gemm(seed: int, dtype: Any) -> Case:
    """The scales, or numbers that 8 bits hold."""
    random = np.random.default_rng(seed)
    kept = dtypes.f8e4m3.storage
    a, b = random.standard_normal((70, 40)), random.standard_normal((40, 256))
    if seed % 2:
        a, b = np.eye(70, 40), random.standard_normal((40, 256)).astype(kept).astype(np.float64)
        b[:, ::128] = 448.0
    given: list[Array] = [a.astype(dtype), b.astype(dtype), np.zeros((70, 256), kept), np.zeros((70, 2), np.float32)]
    wide = given[0].astype(np.float64) @ given[1].astype(np.float64)
    most = np.maximum(np.abs(wide).reshape(70, 2, 128).max(-1), 1e-30)
    return Case("multiply", given, 2 if seed % 2 else 3, wide if seed % 2 else most / 448)


def linear_cross_entropy(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    x: Array = random.standard_normal((70, 40)).astype(dtype)
    weights: Array = random.standard_normal((300 + seed, 40)).astype(dtype)
    targets = random.integers(0, 300 + seed, 70).astype(np.int32)
    logits = x.astype(np.float64) @ weights.astype(np.float64).T
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(70), targets]
    return Case("losses_of", [x, weights, targets, np.zeros(70, np.float32)], 3, expected)


def differential_attention(seed: int, dtype: Any) -> Case:
    random = np.random.default_rng(seed)
    q1, k1, q2, k2, v = (random.standard_normal((2, 70 + seed, 32)).astype(dtype) for _ in range(5))
    expected = np.stack([attended(q1[h], k1[h], v[h]) - 0.3 * attended(q2[h], k2[h], v[h]) for h in range(2)])
    return Case("attend", [q1, k1, q2, k2, v, np.full(q1.shape, 7, dtype)], 5, expected, share=0.3)


def recurrent(seed: int, dtype: Any) -> tuple[list[Array], np.random.Generator]:
    random = np.random.default_rng(seed)
    return [(random.standard_normal((2, 45, 16)) / 2).astype(dtype) for _ in range(3)], random


def retention(seed: int, dtype: Any) -> Case:
    (q, k, v), random = recurrent(seed, dtype)
    gammas = (0.9 + 0.1 * random.random(2)).astype(np.float32)
    wide = [one.astype(np.float64) for one in (q, k, v)]
    expected = np.zeros(q.shape)
    for h in range(2):
        state = np.zeros((16, 16))
        for t in range(45):
            state = gammas[h] * state + np.outer(wide[1][h, t], wide[2][h, t])
            expected[h, t] = wide[0][h, t] @ state
    return Case("retain", [q, k, v, gammas, np.full(q.shape, 7, dtype)], 4, expected, chunk=16)


def linear_attention_chunks(seed: int, dtype: Any) -> Case:
    """One gate for a whole state, or one for each of its rows."""
    (q, k, v), random = recurrent(seed, dtype)
    single = seed % 2 == 0
    gammas = (0.9 + 0.1 * random.random(2)).astype(np.float32)
    drawn = np.asarray(random.random(q.shape), np.float64)
    gates: Array = (-0.2 * drawn).astype(np.float32)
    kept = np.broadcast_to(gammas[:, None, None], q.shape) if single else np.exp2(gates.astype(np.float64))
    wide, expected = [one.astype(np.float64) for one in (q, k, v)], np.zeros(q.shape)
    for h in range(2):
        state = np.zeros((16, 16))
        for t in range(45):
            state = kept[h, t][:, None] * state + np.outer(wide[1][h, t], wide[2][h, t])
            expected[h, t] = wide[0][h, t] @ state
    given: list[Array] = [q, k, v, gammas if single else gates, np.full(q.shape, 7, dtype)]
    return Case("retain" if single else "attend", given, 4, expected, chunk=16)


def gated_delta_rule(seed: int, dtype: Any) -> Case:
    (q, k, v), random = recurrent(seed, dtype)
    alphas, betas = (0.8 + 0.2 * random.random((2, 45)).astype(np.float32), random.random((2, 45)).astype(np.float32))
    wide = [one.astype(np.float64) for one in (q, k, v)]
    expected = np.zeros(q.shape)
    for h in range(2):
        state = np.zeros((16, 16))
        for t in range(45):
            key = wide[1][h, t]
            state = alphas[h, t] * (state - betas[h, t] * np.outer(key, key @ state))
            state = state + betas[h, t] * np.outer(key, wide[2][h, t])
            expected[h, t] = wide[0][h, t] @ state
    return Case("run", [q, k, v, alphas, betas, np.full(q.shape, 7, dtype)], 5, expected)


CASES: dict[str, Callable[[int, Any], Case]] = {
    case.__name__: case
    for case in (
        *(paged_decode, paged_prefill, varlen_attention, grouped_gemm, block_sparse_attention, t5_bias),
        *(segmented_sum, embedding_bag, histogram, stencil, prefix_sums, sorted_rows),
        *(top_p, beam_step, int4_gemm, retention, gated_delta_rule, linear_attention_chunks),
        *(group_quantized_gemm, quantizing_gemm, linear_cross_entropy, differential_attention),
    )
}


def check(found: Array, case: Case, dtype: Any) -> None:
    error = np.abs(found.astype(np.float64) - case.expected).max()
    assert error <= (2e-5 if dtype is np.float32 else 3e-2) * max(1.0, np.abs(case.expected).max())


def launched(name: str, case: Case, move: Callable[[Array], Any] = np.array, prefix: str = "example_kernels") -> Array:
    given = [move(array) for array in case.arrays]
    getattr(example(name, prefix), case.run)(*given, **case.options)
    out = given[case.out]
    return out.cpu().numpy() if isinstance(out, ts.Tensor) else out


@pytest.mark.quick(seed=[0], dtype=[np.float32], name=[name for name in NAMES if name not in SLOW])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_it_computes_what_numpy_does(name: str, dtype: Any, seed: int) -> None:
    for interpreted in (False, True):
        case = CASES[name](seed, dtype)
        with knobs.interpret.using(interpreted):
            check(launched(name, case), case, dtype)


@pytest.mark.quick(1, name=["paged_decode", "embedding_bag", "prefix_sums", "histogram"])
@pytest.mark.parametrize("level", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", NAMES)
def test_ptx_of_it_assembles(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def noted(self: Any, *given: Any, **more: Any) -> None:
        found.append((self, given, more))

    for seed in (0, 1):
        case = CASES[name](seed, BF16)
        with monkeypatch.context() as patched:
            patched.setattr(Kernel, "__call__", noted)
            getattr(example(name), case.run)(*case.arrays, **case.options)
    assert {one.__name__ for one, _, _ in found} == {one.__name__ for one in kernels_of(name)}
    for kernel, given, more in found:
        graph = ts.compile.to_graph_ir(kernel, given, more, options={"level": level})
        target = ts.compile.to_target_ir(ts.compile.to_tile_ir(ts.compile.to_schedule_ir(graph)))
        check_clean(target.assembly, level)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("level", ["sm_80", None])
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_computes_what_numpy_and_the_interpreter_do(
    name: str, level: str | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if level is not None:

        def level_on(self: CudaTarget, index: int) -> str:
            return level

        monkeypatch.setattr(CudaTarget, "level_on", level_on)
    prefix = f"kernels_at_{level}"
    for dtype in (np.float32, BF16):
        case = CASES[name](seed, dtype)
        found = launched(name, case, lambda array: ts.asarray(array).cuda(), prefix)
        check(found, case, dtype)
        with knobs.interpret.using(True):
            case.expected = launched(name, case).astype(np.float64)
        check(found, case, dtype)
    if level is not None:
        assert all("warp-specialized" not in one.explain() for one in kernels_of(name, prefix))


def kernels_of(name: str, prefix: str = "example_kernels") -> list[Kernel]:
    return [value for value in vars(example(name, prefix)).values() if isinstance(value, Kernel)]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_short(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    kernels = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.decorator_list]
    assert 1 <= len(kernels) <= 2
    for one in kernels:
        assert one.end_lineno is not None
        assert one.end_lineno - one.lineno + 1 <= 25
    assert len(kernels_of(name)) == len(kernels)


def test_every_kernel_has_a_case() -> None:
    assert sorted(CASES) == NAMES


def large_block_sparse(seed: int) -> Case:
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal((3, 512, 64)).astype(BF16) for _ in range(3))
    lists = [random.permutation(8)[: random.integers(0, 9)] for _ in range(8)]
    starts, columns = np.cumsum([0, *map(len, lists)]).astype(np.int32), np.concatenate(lists).astype(np.int32)
    seen = np.zeros((512, 512), bool)
    for i, part in enumerate(lists):
        for j in part:
            seen[64 * i : 64 * i + 64, 64 * j : 64 * j + 64] = True
    expected = np.stack([attended(q[h], k[h], v[h], seen) for h in range(3)])
    return Case("attend", [q, k, v, starts, columns, np.full(q.shape, 7, BF16)], 5, expected, rows=64)


def large_paged_decode(seed: int, page: int = 64) -> Case:
    random = np.random.default_rng(seed)
    lengths, heads, depth = random.integers(0, 500, 5), 2, 128
    keys, values, table, plain = paged(random, lengths, heads, page, depth, BF16)
    q = random.standard_normal((5, heads, 64, depth)).astype(BF16)
    expected = np.stack(
        [[attended(q[b, h], plain(keys, b, h), plain(values, b, h)) for h in range(heads)] for b in range(5)]
    )
    return Case("attend", [q, keys, values, table, lengths.astype(np.int32), np.full(q.shape, 7, BF16)], 5, expected)


LARGE: dict[str, tuple[str, Callable[[int], Case]]] = {
    "block_sparse_attention": ("block_sparse_attention", large_block_sparse),
    "paged_decode": ("paged_decode", large_paged_decode),
    "paged_prefill": ("paged_prefill", lambda seed: paged_prefill(seed % 2 + 2, BF16, 128)),
    "paged_decode, small pages": ("paged_decode", partial(large_paged_decode, page=16)),
    "paged_decode, large pages": ("paged_decode", partial(large_paged_decode, page=256)),
}


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", LARGE)
def test_warps_are_specialized_where_a_table_says_what_is_next(name: str, seed: int) -> None:
    kernel, make = LARGE[name]
    case = make(seed)
    check(launched(kernel, case, lambda array: ts.asarray(array).cuda()), case, BF16)
    one = kernels_of(kernel)[0]
    assert "compiled: warp-specialized, " in one.explain()
