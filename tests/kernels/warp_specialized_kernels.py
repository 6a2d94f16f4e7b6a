"""Kernels with dots in loops, as calls of many kinds, which warp specialization applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import library as lib

from tessera import Schedule, f32, kernel, stdlib, tile
from tessera.dtypes.promotion import accumulator

Make = Callable[..., Any]
"""An array of a shape; `dtype` where it is not the one of the call."""
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """A kernel with its arguments: those that are arrays or numbers, and those that are known when it is compiled."""

    kernel: Any
    arguments: list[Any]
    static: dict[str, Any] = field(default_factory=dict[str, Any])

    def __call__(self) -> Any:
        return self.kernel(*self.arguments, **self.static)


@kernel
def transposed_gemm(a: Any, b: Any, c: Any):
    """a·bᵀ: both have their rows along k."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(col, k), shape=(here.n, here.k))
        acc = tile.dot(left, right.T, acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def narrow_gemm(a: Any, b: Any, c: Any):
    """a·bᵀ of narrow numbers, summed in the type that theirs are summed in."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32 if a.dtype.is_float else accumulator(a.dtype))
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(col, k), shape=(here.n, here.k))
        acc = tile.dot(left, right.T, acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def residual_gemm(a: Any, b: Any, more: Any, c: Any):
    """more + a·b."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    acc = acc + tile.load(more, at=(row, col), shape=(here.m, here.n))
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def plain_narrow_gemm(a: Any, b: Any, c: Any):
    """a·b of narrow numbers: those of b lie across the depth."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32 if a.dtype.is_float else accumulator(a.dtype))
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(k, col), shape=(here.k, here.n))
        acc = tile.dot(left, right, acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


# Matmuls


@dataclass(frozen=True)
class Product:
    """Sizes of a matmul, and the block of a program instance."""

    m: int
    n: int
    k: int
    block: tuple[int, int, int]

    def on(self, kernel: Any) -> Any:
        grid = -(-self.m // self.block[0]), -(-self.n // self.block[1])
        return kernel.with_schedule(Schedule(block=self.block))[grid]


def _plain(new: Make, size: Product) -> Call:
    return Call(size.on(stdlib.gemm), [new(size.m, size.k), new(size.k, size.n), new(size.m, size.n, target=True)])


def _transposed(new: Make, size: Product) -> Call:
    return Call(size.on(transposed_gemm), [new(size.m, size.k), new(size.n, size.k), new(size.m, size.n, target=True)])


def _wide(new: Make, size: Product) -> Call:
    target = new(size.m, size.n, target=True, dtype=f32)
    return Call(size.on(stdlib.gemm), [new(size.m, size.k), new(size.k, size.n), target])


def _with_bias(new: Make, size: Product) -> Call:
    target = new(size.m, size.n, target=True)
    arguments = [new(size.m, size.k), new(size.k, size.n), new(size.n), target]
    return Call(size.on(lib.gemm), arguments, {"epilogue": lib.gelu})


def narrow(new: Make, size: Product, result: Any) -> Call:
    """a·bᵀ with a result of another type."""
    target = new(size.m, size.n, target=True, dtype=result)
    return Call(size.on(narrow_gemm), [new(size.m, size.k), new(size.n, size.k), target])


def _with_more(new: Make, size: Product) -> Call:
    shapes = (size.m, size.k), (size.k, size.n), (size.m, size.n)
    return Call(size.on(residual_gemm), [*(new(*shape) for shape in shapes), new(size.m, size.n, target=True)])


PRODUCTS: dict[str, Callable[[Make, Product], Call]] = {
    "a·b": _plain,
    "a·bᵀ": _transposed,
    "a f32 result": _wide,
    "bias and gelu": _with_bias,
    "another matrix": _with_more,
}


# Two dots in a loop


@dataclass(frozen=True)
class Heads:
    """Sizes of an attention, and the block of a program instance: queries and keys."""

    queries: int
    keys: int
    width: int
    block: tuple[int, int]
    heads: int = 1

    def arrays(self, new: Make) -> list[Any]:
        keys = self.heads, self.keys, self.width
        return [new(self.heads, self.queries, self.width), new(*keys), new(*keys)]

    def on(self, kernel: Any) -> Any:
        return kernel.with_schedule(Schedule(block=self.block))


def _attention(*others: Any, of: Any = stdlib.attention, **static: Any) -> Callable[[Make, Heads], Call]:
    return lambda new, size: Call(size.on(of), [*size.arrays(new), *others], static)


def _alibi(new: Make, size: Heads) -> Call:
    return Call(size.on(stdlib.alibi_attention), [*size.arrays(new), new(size.heads, dtype=f32)])


def _bias(new: Make, size: Heads) -> Call:
    return Call(size.on(stdlib.bias_attention), [*size.arrays(new), new(size.heads, size.queries, size.keys)])


def _mlp(new: Make, size: Heads) -> Call:
    """As many hidden units as there are keys."""
    arguments = [new(size.queries, size.width), new(size.width, size.keys), new(size.keys, size.width)]
    return Call(size.on(stdlib.mlp), arguments)


STAGES: dict[str, Callable[[Make, Heads], Call]] = {
    "full": _attention(),
    "causal": _attention(mask=stdlib.causal),
    "window": _attention(100, of=stdlib.window_attention),
    "prefix": _attention(50, of=stdlib.prefix_attention),
    "alibi": _alibi,
    "bias": _bias,
    "own score": _attention(score=stdlib.own_score),
    "soft cap": _attention(score=stdlib.soft_cap),
    "sigmoid": _attention(-2.0, of=stdlib.sigmoid_attention),
    "mlp": _mlp,
}
