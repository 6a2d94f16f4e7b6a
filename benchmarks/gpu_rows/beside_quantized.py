"""Rows of products with weights of 8 and 4 bits, a scale for each group of 128 along the depth: `beside int8`, `int4`.

Ours is `examples/kernels/group_quantized_gemm.py`: it has no temporary of the dequantised size. Peers are Triton of the
same, cuBLAS in bf16, tinygemm, and what torch.compile makes of the plain expression.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.cuda.kernel_texts import text_for, text_of, ways_of
from tessera.bench.instruments.libraries import library
from tessera.tile.language.schedule import Schedule

sys.path += [str(Path(__file__).parents[2] / "examples" / "kernels"), str(Path(__file__).parent)]
import group_quantized_gemm

GROUP = 128
WEIGHTS = [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096), (4096, 128256)]
LARGE = 24 << 20
"""Bytes of packed weights above which memory is the bound of few rows."""
BLOCKS = {64: (64, 64, 128), 512: (128, 128, 64), 8192: (128, 192, 64)}
"""Up to so many rows."""
LOOKED_AT = 512


def whole_numbers(held: Any, bits: int) -> Any:
    """The weights, [K, N], as they were before two were put into a byte."""
    if bits == 8:
        return held
    signed = held.view(library("torch").int8)
    return library("torch").stack([(signed << 4) >> 4, signed >> 4], 1).flatten(0, 1)


def dequantised(held: Any, scales: Any, bits: int, dtype: Any) -> Any:
    numbers = whole_numbers(held, bits).to(dtype)
    return (numbers.unflatten(0, (-1, GROUP)) * scales.to(dtype)[:, None]).flatten(0, 1)


def for_tinygemm(held: Any) -> Any:
    """The weights as torch's kernel of four bits wants them: [N, K / 2], without signs, even ones in high halves."""
    torch = library("torch")
    numbers = (whole_numbers(held, 4).T + 8).to(torch.uint8)
    packed = (numbers[:, ::2] << 4) | numbers[:, 1::2]
    return torch.ops.aten._convert_weight_to_int4pack(packed.contiguous(), 8)  # noqa: SLF001


def declare(bits: int, m: int, k: int, n: int) -> None:
    packed = k * n * bits // 8
    moves = 2.0 * (m * k + m * n) + packed + 2.0 * (k // GROUP) * n
    few = m <= 16
    bars = {"best": 1.2, **({"copy": 0.8} if packed >= LARGE else {})} if few else {"cublas": 0.85}

    called = f"beside int{bits} M {m} {k}×{n}"
    plain = group_quantized_gemm.int8_gemm if bits == 8 else group_quantized_gemm.int4_gemm
    block = next(block for rows, block in BLOCKS.items() if m <= rows)
    kernel = plain.with_schedule(Schedule(block=block)).grid(group_quantized_gemm.by_blocks)

    @kernel_text(called)
    def text() -> str:
        weights = ts.empty((k, n), ts.i8) if bits == 8 else ts.empty((k // 2, n), ts.u8)
        x, scales, out = (ts.empty(shape, ts.bf16) for shape in ((m, k), (k // GROUP, n), (m, n)))
        return text_for(kernel, x, weights, scales, out)

    @row(called, "bf16", moves=moves, flops=2.0 * m * n * k, bars=bars, kernels=[called], bound=6e-3)
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.device import copies_beyond_cache, in_rotation, made_late

        torch, triton = library("torch"), library("triton_peers.quantized")
        copies = copies_beyond_cache(packed) if few else 1
        x, scales = make.normal(m, k), make.normal(k // GROUP, n, scale=(k**-0.5) / 2 ** (bits - 2))
        shape, limits, dtype = ((k, n), (-127, 128), "i8") if bits == 8 else ((k // 2, n), (0, 256), "u8")
        held = make.integers(*limits, *shape, dtype=dtype, copies=copies)
        out = torch.empty((m, n), dtype=x.dtype, device=x.device)
        ours = [ts.from_dlpack(one) for one in (x, scales, out)]

        def call(weights: Any) -> Any:
            kernel(ours[0], weights, ours[1], ours[2])
            return out

        multiply = triton.Product(x, bits, n)
        peers: dict[str, Any] = {"triton": in_rotation([partial(multiply, x, one, scales) for one in held])}
        if few:
            torch.compiler.reset()
            compiled = torch.compile(
                lambda x, held, scales: x @ dequantised(held, scales, bits, x.dtype), dynamic=False
            )
            peers["inductor"] = in_rotation([partial(compiled, x, one, scales) for one in held])
        else:
            wide = make.derived(lambda: dequantised(held[0], scales, bits, x.dtype))
            peers["cublas"] = partial(torch.matmul, x, wide)
        if bits == 4 and n * k < 1 << 28:

            def tinygemm() -> Any:
                packed = [make.derived(partial(for_tinygemm, one)) for one in held]
                both = make.derived(lambda: torch.stack([scales, torch.zeros_like(scales)], 2).contiguous())
                multiply = torch.ops.aten._weight_int4pack_mm  # noqa: SLF001
                return in_rotation([partial(multiply, x, one, GROUP, both) for one in packed])

            peers["tinygemm"] = made_late(tinygemm)
        step = max(1, n // LOOKED_AT)
        rows = max(1, m // LOOKED_AT)
        given = ours[0], ts.from_dlpack(held[0]), ours[1], ours[2]
        return Contest(
            truth=lambda: x[::rows].double() @ dequantised(held[0][:, ::step], scales[:, ::step], bits, torch.float64),
            ours=in_rotation([partial(call, ts.from_dlpack(one)) for one in held]),
            peers=peers,
            ptx={called: partial(text_of, kernel, *given)},
            part=lambda result: result[::rows, ::step],
            ways=lambda: ways_of(kernel, *given),
        )


for _bits in (8, 4):
    for _m in (1, 16, 256, 4096):
        for _weight in WEIGHTS:
            declare(_bits, _m, *_weight)
