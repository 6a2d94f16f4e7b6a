"""Kernels that are not compiled the fastest way there is, each for another reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tessera as ts
from tessera import bf16, f32, f64, i4, i8, i32, kernel, tile, u8

if TYPE_CHECKING:
    Out = Any
else:
    from tessera import Out


@dataclass(frozen=True)
class Refused:
    """A kernel, its arguments and its schedule; arguments that are not in `aligned` have rows that are not, either."""

    kernel: Any
    args: tuple[Any, ...]
    aligned: tuple[int, ...] | None = None
    block: tuple[int, ...] = (128, 128, 64)
    warps: int | None = None
    grid: tuple[int, ...] | None = (4, 4)


def _array(*shape: int, dtype: Any = bf16) -> Any:
    return ts.empty(shape, dtype)


def _gemm(
    left: Callable[[Any], Any] = lambda x: x, epilogue: Callable[[Any], Any] = lambda x: x, dtype: Any = f32
) -> Any:
    """A GEMM whose operands and result go through functions."""

    @kernel
    def gemm(a: Any, b: Any, c: Out) -> None:
        here = tile.context()
        row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
        acc = tile.zeros((here.m, here.n), dtype)
        for k in tile.range(0, a.shape[1], here.k):
            one = left(tile.load(a, at=(row, k), shape=(here.m, here.k)))
            acc = tile.dot(one, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
        tile.store(c, tile.cast(epilogue(acc), c.dtype), at=(row, col))

    return gemm


@kernel
def folded(a: Any, b: Any, c: Out) -> None:
    """The largest of each row of a product, beside the product."""
    here = tile.context()
    row = tile.program_id(0) * here.m
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, 0), shape=(here.k, here.n)), acc
        )
    tile.store(c, tile.max(acc, axis=0), at=(row,))


@kernel
def carried(q: Any, k: Any, v: Any, out: Out) -> None:
    """Linear attention: the state is an operand of the next iteration's dot."""
    here = tile.context()
    state, acc = tile.zeros((64, 64), f32), tile.zeros((here.m, 64), f32)
    queries = tile.load(q, at=(0, 0), shape=(here.m, 64))
    for n in tile.range(0, k.shape[0], here.n):
        keys = tile.load(k, at=(n, 0), shape=(here.n, 64))
        acc = tile.dot(queries, tile.cast(state, q.dtype), acc)
        state = tile.dot(keys.T, tile.load(v, at=(n, 0), shape=(here.n, 64)), state)
    tile.store(out, tile.cast(acc, out.dtype), at=(0, 0))


@kernel
def straight(a: Any, b: Any, c: Out) -> None:
    """One dot, in no loop."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.dot(tile.load(a, at=(row, 0), shape=(here.m, 64)), tile.load(b, at=(0, col), shape=(64, here.n)))
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def added(a: Any, b: Any, c: Out) -> None:
    """Partial products that are added to memory."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc
        )
    tile.atomic_add(c, acc, at=(row, col))


@kernel
def looped(a: Any, b: Any, c: Out) -> None:
    """Stores inside of a loop."""
    here = tile.context()
    row = tile.program_id(0) * here.m
    for n in tile.range(0, b.shape[1], here.n):
        acc = tile.zeros((here.m, here.n), f32)
        for k in tile.range(0, a.shape[1], here.k):
            acc = tile.dot(
                tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, n), shape=(here.k, here.n)), acc
            )
        tile.store(c, tile.cast(acc, c.dtype), at=(row, n))


@kernel
def in_place(a: Any, b: Any) -> None:
    """A product that replaces its left operand."""
    here = tile.context()
    row = tile.program_id(0) * here.m
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, 0), shape=(here.k, here.n)), acc
        )
    tile.store(a, tile.cast(acc, a.dtype), at=(row, 0))


@kernel
def across(a: Any, b: Any, c: Out) -> None:
    """Xᵀ·dY: the left operand is loaded along the depth."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[0], here.k):
        left = tile.load(a, at=(k, row), shape=(here.k, here.m))
        acc = tile.dot(left.T, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def normed(a: Any, b: Any, c: Out) -> None:
    """A product whose columns are divided by their sums."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc
        )
    tile.store(c, tile.cast(acc / tile.sum(acc, axis=0, keepdims=True), c.dtype), at=(row, col))


@kernel
def asserted(a: Any, b: Any, c: Out) -> None:
    """A product of operands that are looked at."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        tile.assert_(k < 4096, "the depth is too large")  # noqa: PT009  (a kernel of ours, no unittest)
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc
        )
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def used_twice(a: Any, b: Any, c: Out) -> None:
    """A product, and the sum of one of its operands' elements."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc, total = tile.zeros((here.m, here.n), f32), tile.zeros((here.m,), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left, right = (
            tile.load(a, at=(row, k), shape=(here.m, here.k)),
            tile.load(b, at=(k, col), shape=(here.k, here.n)),
        )
        acc, total = tile.dot(left, right, acc), total + tile.sum(tile.cast(left, f32), axis=1)
        acc = acc + tile.sum(tile.cast(right, f32), axis=0, keepdims=True)
    tile.store(c, tile.cast(acc + total[:, None], c.dtype), at=(row, col))


@kernel
def two_results(a: Any, b: Any, c: Out, d: Out) -> None:
    """A product, and its transpose."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc
        )
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))
    tile.store(d, tile.cast(acc.T, d.dtype), at=(col, row))


@kernel
def twice_in_one(a: Any, b: Any, c: Out) -> None:
    """A product that is stored twice, the second time lower by half a block."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        acc = tile.dot(
            tile.load(a, at=(row, k), shape=(here.m, here.k)), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc
        )
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))
    tile.store(c, tile.cast(acc, c.dtype), at=(row + 64, col))


@kernel
def packed(a: Any, b: Any, c: Out) -> None:
    """A GEMM with a left operand of four bits, two to a byte along its rows."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, c.shape[1], here.k):
        one = tile.unpack(tile.load(a, at=(row // 2, k), shape=(here.m // 2, here.k)), i4, 0)
        acc = tile.dot(tile.cast(one, bf16), tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


A, B, C = (512, 512), (512, 512), (512, 512)
PLAIN = _gemm()
GEMM = _array(*A), _array(*B), _array(*C)

CASES: Mapping[str, Refused] = {
    "folding epilogue": Refused(folded, (*GEMM[:2], _array(512, dtype=f32)), grid=(4,)),
    "columns divided by sums": Refused(normed, GEMM),
    "state-carrying loop": Refused(carried, (*[_array(512, 64)] * 3, _array(512, 64)), block=(128, 64), grid=(1,)),
    "left operand packed along its rows": Refused(packed, (_array(256, 512, dtype=u8), _array(*B), _array(*C))),
    "exchanged strides": Refused(PLAIN, GEMM, aligned=(0, 2)),
    "left operand without aligned rows": Refused(PLAIN, GEMM, aligned=(1, 2)),
    "block too wide": Refused(PLAIN, GEMM, block=(256, 256, 64)),
    "rows that are no multiple of 64": Refused(PLAIN, GEMM, block=(96, 128, 64)),
    "too many rows": Refused(PLAIN, GEMM, block=(512, 64, 64)),
    "few rows": Refused(PLAIN, GEMM, block=(32, 128, 64)),
    "other number of warps": Refused(PLAIN, GEMM, warps=16),
    "no loop": Refused(straight, GEMM),
    "f32 operands": Refused(PLAIN, tuple(_array(512, 512, dtype=f32) for _ in range(3)), block=(128, 64, 32)),
    "f64 operands": Refused(_gemm(dtype=f64), tuple(_array(512, 512, dtype=f64) for _ in range(3)), block=(64, 64, 16)),
    "added to memory": Refused(added, (*GEMM[:2], _array(*C, dtype=f32))),
    "store in a loop": Refused(looped, GEMM, grid=(4,)),
    "reads what it writes": Refused(in_place, GEMM[:2], grid=(4,)),
    "narrow left operand across the depth": Refused(
        across, (_array(512, 512, dtype=ts.f8e4m3), _array(512, 512, dtype=ts.f8e4m3), _array(*C))
    ),
    "narrow integers across": Refused(
        _gemm(dtype=i32), (_array(*A, dtype=i8), _array(*B, dtype=i8), _array(*C, dtype=i32)), block=(128, 24, 64)
    ),
    "columns that are no multiple of 8": Refused(PLAIN, GEMM, block=(128, 100, 64)),
    "shallow depth": Refused(PLAIN, GEMM, block=(128, 128, 8)),
    "reversed columns": Refused(_gemm(epilogue=lambda x: x.T), (*GEMM[:2], _array(*C)), block=(128, 128, 64)),
    "assertion": Refused(asserted, GEMM),
    "operands that are used twice": Refused(used_twice, GEMM),
    "a transposed result beside": Refused(two_results, (*GEMM, _array(*C))),
    "two stores of other rows": Refused(twice_in_one, GEMM),
    "rings too deep for shared memory": Refused(PLAIN, GEMM, block=(192, 256, 256)),
}
