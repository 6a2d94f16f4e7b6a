"""Operators as machine code: on the CPU they give what the interpreter gives; for GPUs their code assembles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.programs import compile_graph
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.tile.calls.settings import Settings

HOPPER = Settings("cuda", "sm_90a", 3, frozenset(), True, True)
draw = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return draw.standard_normal(shape).astype(np.float32)


X, Y, PLACES = floats(5, 33), floats(5, 33), np.array([0, 3, 3, 1])
Q, K = floats(2, 4, 5, 16), floats(2, 2, 7, 16)
Case = tuple[Callable[[Any], Any], Any]
CASES: dict[str, Case] = {
    "sinh": (ts.sinh, X),
    "acosh": (ts.acosh, X),
    "atanh": (ts.atanh, X / 9),
    "log10": (lambda x: ts.log10(ts.abs(x)), X),
    "hypot": (lambda xs: ts.hypot(*xs), (X, Y)),
    "copysign": (lambda xs: ts.copysign(*xs), (X, Y)),
    "signbit": (ts.signbit, X),
    "gelu": (ts.gelu, X),
    "clip": (lambda x: ts.clip(x, -1, 1), X),
    "sum": (lambda x: (ts.sum(x, axis=0), ts.sum(x, axis=1), ts.sum(x)), X),
    "var": (lambda x: (ts.mean(x), ts.var(x, axis=1), ts.std(x, axis=0)), X),
    "all": (lambda x: (ts.all(x > -9, axis=1), ts.any(x > 1)), X),
    "argmax": (lambda x: (ts.argmax(x, axis=1), ts.argmin(x, axis=0), ts.argmax(x)), X),
    "cumulative": (lambda x: (ts.cumulative_sum(x, axis=0), ts.cumulative_sum(x, axis=1)), X),
    "cumulative_long": (lambda x: ts.cumulative_sum(x, axis=1), np.arange(3000).reshape(1, 3000)),
    "sort": (lambda x: (ts.sort(x), ts.argsort(x, axis=0, descending=True)), X),
    "sort_long": (ts.sort, floats(2, 100)),
    "topk": (lambda x: ts.topk(x, 3), X),
    "searchsorted": (lambda xs: ts.searchsorted(*xs), (np.sort(floats(20)), Y)),
    "softmax": (lambda x: (ts.softmax_safe(x), ts.softmax_safe(x, axis=0), ts.logsumexp_safe(x)), X),
    "layernorm": (lambda xs: ts.layernorm_safe(*xs), (X, floats(33), floats(33))),
    "rmsnorm": (lambda xs: ts.rmsnorm_safe(*xs), (X, floats(33))),
    "groupnorm": (lambda x: ts.groupnorm(x, 3), floats(2, 6, 4, 3)),
    "cross_entropy": (lambda xs: ts.cross_entropy(*xs), (X, np.array([1, 2, -100, 0, 32]))),
    "mse_loss": (lambda xs: ts.mse_loss(*xs), (X, Y)),
    "matmul": (lambda xs: xs[0] @ xs[1].mT, (X, Y)),
    "vecdot": (lambda xs: ts.vecdot(*xs), (X, Y)),
    "einsum": (lambda xs: ts.einsum("bhsd,bgtd->bhgst", *xs), (Q, K)),
    "linear": (lambda xs: ts.gelu(ts.linear(*xs)), (X, floats(33, 7), floats(7))),
    "attention": (lambda xs: ts.flash_attention(xs[0], xs[1], xs[1], causal=True), (Q, K)),
    "attention_lse": (lambda xs: ts.flash_attention(xs[0], xs[1], xs[1], return_lse=True, soft_cap=2.0), (Q, K)),
    "rope": (lambda x: (ts.rope(x), ts.rope(x, interleaved=True)), Q),
    "split_qkv": (lambda x: ts.split_qkv(x, heads=2), floats(2, 5, 24)),
    "merge_heads": (ts.merge_heads, Q),
    "indexing": (lambda x: (x[1:, ::2], x[None, -1], x[:, ::-1]), X),
    "masked_update": (lambda x: (x.at[x > 0].set(1.5), x.at[x[:, 0] > 0].add(1.0)), X),
    "gathering": (lambda xs: (xs[0][xs[1]], xs[0][xs[1], xs[1]], ts.take(xs[0], xs[1], axis=1)), (X, PLACES)),
    "take_along_axis": (lambda x: ts.take_along_axis(x, ts.argsort(x), axis=1), X),
    "update": (lambda xs: (xs[0].at[1:3, ::4].set(7.0), xs[0].at[xs[1]].add(1.0)), (X, PLACES)),
    "concat": (lambda xs: (ts.concat(xs, axis=1), ts.stack(xs, axis=1)), (X, Y)),
    "roll": (lambda x: (ts.roll(x, 3, axis=1), ts.flip(x), ts.ops.tile(x, (2, 3)), ts.repeat(x, 3, axis=1)), X),
    "pad": (lambda x: (ts.pad(x, ((1, 2), (0, 3))), ts.tril(x, k=2), ts.unstack(x, axis=0)), X),
    "making": (lambda x: (ts.eye(5, 33) + x, x + ts.arange(33, dtype=ts.f32), ts.zeros_like(x)), X),
    "one_hot": (lambda x: ts.one_hot(x, 5), PLACES),
    "conv2d": (lambda xs: ts.conv2d(*xs, padding=1), (floats(2, 3, 8, 7), floats(4, 3, 3, 3))),
    "max_pool": (lambda x: ts.max_pool(x, 2), floats(2, 3, 8, 6)),
    "bf16": (lambda x: ts.softmax_safe(ts.astype(x, ts.bf16)) @ ts.astype(x, ts.bf16).mT, X),
    "integers": (lambda x: (x + 1) // 2 * 3 % 5, PLACES),
    "f64": (lambda x: ts.exp(ts.astype(x, ts.f64)), X),
    "u8": (lambda x: ts.astype(ts.abs(x) * 10, ts.u8) + ts.full((33,), 3, dtype=ts.u8), X),
}
QUICK = ("rmsnorm", "attention", "gathering", "update")
names = [name if name in QUICK else pytest.param(name, marks=pytest.mark.acceptance) for name in CASES]


@pytest.mark.parametrize("name", names)
def test_native_results_are_the_interpreter_s(name: str) -> None:
    function, argument = CASES[name]
    with knobs.backend.using("interpreter"):
        expected = ts.jit(function)(argument)
    found = ts.jit(function)(argument)
    for got, want in zip(_listed(found), _listed(expected), strict=True):
        assert got.dtype is want.dtype
        a, b = (one.numpy().astype(np.float64) for one in (got, want))
        np.testing.assert_allclose(a, b, rtol=3e-2 if got.dtype.bits < 32 else 2e-5, atol=1e-5)


def _listed(x: Any) -> list[Any]:
    return ts.tree_leaves(x)


def _on_device(x: Any) -> Any:
    return ts.asarray(x).cuda()


@pytest.mark.parametrize(
    "name", [name if name in QUICK[-1:] else pytest.param(name, marks=pytest.mark.acceptance) for name in CASES]
)
def test_code_for_gpus_assembles(name: str) -> None:
    function, argument = CASES[name]
    jitted = ts.jit(function)
    jitted(argument)
    (variant,) = [one for family in jitted.families.values() for one in family.variants]
    program = compile_graph(variant.traced.module, HOPPER)
    for part in program.levels.asm.text.split(".version")[1:]:
        assert assemble(f".version{part}", "sm_90a").cubin


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_results_of_a_gpu_are_the_interpreter_s(name: str) -> None:
    function, argument = CASES[name]
    expected = ts.jit(function)(argument)
    on_device = ts.tree_map(_on_device, argument)
    with knobs.backend.using("auto"):
        found = ts.jit(function)(on_device)
    for got, want in zip(_listed(found), _listed(expected), strict=True):
        a, b = (one.cpu().numpy().astype(np.float64) for one in (got, want))
        np.testing.assert_allclose(a, b, rtol=3e-2 if got.dtype.bits < 32 else 2e-5, atol=1e-5)


@pytest.mark.gpu
def test_tensors_of_a_gpu_compute_where_they_are() -> None:
    with knobs.backend.using("auto"):
        x, y = ts.asarray(X).cuda(), ts.asarray(Y).cuda()
        assert (x + y).device == x.device
        np.testing.assert_allclose((x + y).cpu().numpy(), X + Y)
        np.testing.assert_allclose((2 * x - 1).cpu().numpy(), 2 * X - 1, rtol=1e-6)
        np.testing.assert_allclose((-x @ y.mT).cpu().numpy(), -X @ Y.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal((x > y).cpu().numpy(), X > Y)
        np.testing.assert_array_equal(x.to(ts.i32).cpu().numpy(), X.astype(np.int32))
        np.testing.assert_array_equal(x[ts.asarray(PLACES).cuda()].cpu().numpy(), X[PLACES])
        np.testing.assert_array_equal(x[x > 0].cpu().numpy(), X[X > 0])
        np.testing.assert_allclose(x.sum(axis=0).cpu().numpy(), X.sum(0), rtol=1e-4, atol=1e-5)
