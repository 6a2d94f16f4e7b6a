"""Rows of matmuls in 8 bits and tf32 on sm_90a, warp-specialized: x·weightᵀ in the tile DSL, and cuBLAS.

Accumulators of 8-bit floats are promoted to f32 unless the type says that fewer bits are enough; cuBLAS has both, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tessera
from tessera import DType, accum, kernel, tile
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.cuda.kernel_texts import program_of, text_for
from tessera.bench.cuda.occupancy import occupancy
from tessera.bench.instruments.libraries import library
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.language.schedule import Schedule

LOOKED_AT = 1024
"""Rows of a result that are compared with the truth."""


@kernel
def linear(x: Any, weight: Any, y: Any):
    """x·weightᵀ."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), tessera.f32 if x.dtype.is_float else tessera.i32)
    for k in tile.range(0, x.shape[1], here.k):
        left = tile.load(x, at=(row, k), shape=(here.m, here.k))
        right = tile.load(weight, at=(col, k), shape=(here.n, here.k))
        acc = tile.dot(left, right.T, acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@dataclass(frozen=True)
class Narrow:
    """How a type is multiplied."""

    name: str
    dtype: DType
    result: DType
    block: tuple[int, int, int]
    bar: float
    checked_as: str
    """The type whose bound the result has to meet."""
    scale: float = 1.0
    bound: float | None = None


PROMOTED = Narrow("f8e4m3", tessera.f8e4m3, tessera.bf16, (128, 128, 256), 0.95, "bf16")
FAST = Narrow("f8e4m3 fast sums", tessera.f8e4m3 @ accum(tessera.f16), tessera.bf16, (128, 256, 128), 0.95, "bf16")
BYTES = Narrow("i8", tessera.i8, tessera.i32, (128, 256, 128), 1.0, "f64", 30.0)
TF32 = Narrow("tf32", tessera.tf32, tessera.f32, (128, 256, 32), 0.95, "f32", bound=1e-4)


def seen(x: Any, dtype: DType) -> Tensor:
    """A torch tensor's memory as numbers of our type."""
    found = tessera.from_dlpack(x.view(library("torch").uint8) if x.element_size() == 1 else x)
    return Tensor.wrap(found.geometry.view(dtype.storage), dtype, found.device, found.buffer)


def cublas(one: Narrow, x: Any, weight: Any) -> Any:
    """What torch calls for the type."""
    torch = library("torch")
    if one is BYTES:
        return partial(torch._int_mm, x, weight.T)  # noqa: SLF001  (it has no other name)
    if one is TF32:
        torch.backends.cuda.matmul.allow_tf32 = True
        return partial(torch.mm, x, weight.T)
    unit = torch.ones((), device="cuda")
    scaled = torch._scaled_mm  # noqa: SLF001  (it has no other name)
    return partial(scaled, x, weight.T, unit, unit, out_dtype=torch.bfloat16, use_fast_accum=one is FAST)


def declare(one: Narrow, m: int, n: int, k: int) -> None:
    called = f"agents gemm {m}×{n}×{k} {one.name}"
    made = linear.with_schedule(Schedule(block=one.block))[-(-m // one.block[0]), -(-n // one.block[1])]

    @kernel_text(called)
    def text() -> str:
        shapes = [((m, k), one.dtype), ((n, k), one.dtype), ((m, n), one.result)]
        return text_for(made, *(tessera.empty(shape, dtype) for shape, dtype in shapes))

    @row(called, one.checked_as, flops=2.0 * m * n * k, bars={"cublas": one.bar}, kernels=[called], bound=one.bound)
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        x, weight = (make.normal(*shape, dtype=one.dtype.name, scale=one.scale) for shape in ((m, k), (n, k)))
        filled = tessera.from_dlpack(torch.empty((m, n), dtype=_result_type(one), device="cuda"))
        ours = [seen(x, one.dtype), seen(weight, one.dtype), filled]
        program = program_of(made, *ours)
        step = max(1, m // LOOKED_AT)

        def call() -> Any:
            made(*ours)
            return filled

        return Contest(
            truth=lambda: x[::step].double() @ weight.double().T,
            ours=call,
            peers={"cublas": cublas(one, x, weight)},
            part=lambda result: result[::step],
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


def _result_type(one: Narrow) -> Any:
    torch = library("torch")
    return {tessera.bf16: torch.bfloat16, tessera.i32: torch.int32, tessera.f32: torch.float32}[one.result]


# Where there are program instances for many waves, larger blocks fetch less.
declare(PROMOTED, 4096, 4096, 4096)
declare(FAST, 4096, 4096, 4096)
for _shape in ((8192, 8192, 8192), (8192, 14336, 4096)):
    declare(replace(PROMOTED, block=(192, 128, 128)), *_shape)
    declare(FAST, *_shape)
for _one in (BYTES, TF32):
    declare(_one, 4096, 4096, 4096)
