"""Rows of products of Llama-8B's weights through public operators, and gradients of them: `beside gemm`, `dw`, `fp8`.

Where few rows make memory the bound, calls take one of several weights after the other, more than twice the L2 cache
together. Weights are [K, N], or [N, K] and given as `w.T`; `eager` calls `ts.matmul`, `jit` a jitted function of it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import KERNELS, Contest, Inputs, kernel_text, mean, row
from tessera.bench.cuda.kernel_texts import program_text_for, text_of_program, ways_of
from tessera.bench.instruments.libraries import library
from tessera.runtime.tensor.tensor import Tensor

WEIGHTS = [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096), (4096, 128256)]
ROWS = (1, 16, 64, 128, 256, 512)
TOKENS = 8192
LOOKED_AT = 512
"""Rows of a result that are compared with the truth, where there are more."""


def product(x: Any, w: Any) -> Any:
    return x @ w


def gradient(x: Any, dy: Any) -> Any:
    return x.T @ dy


def narrow_product(x: Any, w: Any) -> Any:
    return ts.matmul(x, w.T, dtype=ts.bf16)


def seen_with_all_rows(x: Any, w: Any) -> None:
    """Calls the operator as a program does that has had other numbers of rows, too."""
    for m in ROWS:
        if m != x.shape[0]:
            ts.matmul(ts.zeros((m, x.shape[1]), x.dtype, device=x.device), w)


def declare_text(m: int, k: int, n: int, way: str, layout: str) -> str:
    """Eager calls of several rows run one program."""
    eager = way == "eager"
    called = f"beside gemm {way} {layout}{'' if eager and m > 1 else f' M {m}'} {k}×{n} bf16"

    def text() -> str:
        weight = ts.empty((n, k), ts.bf16).T if layout == "w.T" else ts.empty((k, n), ts.bf16)
        calls = [(ts.empty((rows, k), ts.bf16), weight) for rows in ((2, 3, m) if eager and m > 1 else (m,))]
        return program_text_for(ts.matmul.eager if eager else ts.jit(product), *calls)

    if called not in KERNELS:
        kernel_text(called)(text)
    return called


def declare(m: int, k: int, n: int, way: str, layout: str) -> str:
    called = f"beside gemm {way} {layout} M {m} {k}×{n} bf16"
    moves = 2.0 * (m * k + k * n + m * n)
    text = declare_text(m, k, n, way, layout)

    @row(called, "bf16", moves=moves, flops=2.0 * m * n * k, bars={"cublas": 0.9}, kernels=[text])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.device import copies_beyond_cache, in_rotation

        torch = library("torch")
        copies = copies_beyond_cache(moves)
        x = make.normal(m, k)
        stored = make.normal(*((n, k) if layout == "w.T" else (k, n)), scale=k**-0.5, copies=copies)
        weights = stored.mT if layout == "w.T" else stored
        ours = ts.from_dlpack(x), [ts.from_dlpack(one) for one in weights]
        if way == "eager":
            seen_with_all_rows(ours[0], ours[1][0])
            call, jitted = ts.matmul, ts.matmul.eager
        else:
            call = jitted = ts.jit(product)
        return Contest(
            truth=lambda: x.double() @ weights[0].double(),
            ours=in_rotation([partial(call, ours[0], one) for one in ours[1]]),
            ptx={text: lambda: text_of_program(jitted, ours[0], ours[1][0])},
            peers={"cublas": in_rotation([partial(torch.matmul, x, one) for one in weights])},
            ways=lambda: ways_of(jitted, ours[0], ours[1][0]),
        )

    return called


for _way in ("eager", "jit"):
    for _layout in ("w", "w.T"):
        _rows = [declare(m, *_weight, _way, _layout) for _weight in WEIGHTS for m in ROWS]
        mean(f"beside gemm {_way} {_layout}", _rows, "cublas", 1.0)


def declare_gradient(k: int, n: int) -> str:
    """Of a weight, from the inputs and the gradients of the outputs of all tokens."""
    called = f"beside dw {k}×{n} of {TOKENS} tokens bf16"

    @kernel_text(called)
    def text() -> str:
        return program_text_for(ts.jit(gradient), [ts.empty((TOKENS, size), ts.bf16) for size in (k, n)])

    @row(called, "bf16", flops=2.0 * k * n * TOKENS, bars={"cublas": 0.97}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        x, dy = make.normal(TOKENS, k), make.normal(TOKENS, n, scale=TOKENS**-0.5)
        ours, step = [ts.from_dlpack(one) for one in (x, dy)], k // LOOKED_AT
        columns, jitted = n // LOOKED_AT, ts.jit(gradient)
        return Contest(
            truth=lambda: x[:, ::step].T.double() @ dy[:, ::columns].double(),
            ours=partial(jitted, *ours),
            peers={"cublas": lambda: torch.matmul(x.T, dy)},
            part=lambda result: result[::step, ::columns],
            ptx={called: lambda: text_of_program(jitted, *ours)},
            ways=lambda: ways_of(jitted, *ours),
        )

    return called


def declare_narrow(k: int, n: int) -> str:
    called = f"beside fp8 {TOKENS}×{n}×{k} f8e4m3"

    def seen(x: Any) -> Tensor:
        found = ts.from_dlpack(x.view(library("torch").uint8))
        return Tensor.wrap(found.geometry.view(ts.f8e4m3.storage), ts.f8e4m3, found.device, found.buffer)

    @kernel_text(called)
    def text() -> str:
        return program_text_for(ts.jit(narrow_product), [ts.empty((size, k), ts.f8e4m3) for size in (TOKENS, n)])

    @row(called, "bf16", flops=2.0 * k * n * TOKENS, bars={"cublas": 1.0}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        x, weight = (make.normal(*shape, dtype="f8e4m3") for shape in ((TOKENS, k), (n, k)))
        unit, scaled = torch.ones((), device=make.device), torch._scaled_mm  # noqa: SLF001  (it has no other name)
        ours, step, columns = [seen(one) for one in (x, weight)], TOKENS // LOOKED_AT, n // LOOKED_AT
        jitted = ts.jit(narrow_product)
        return Contest(
            truth=lambda: x[::step].double() @ weight[::columns].double().T,
            ours=partial(jitted, *ours),
            peers={"cublas": partial(scaled, x, weight.T, unit, unit, out_dtype=torch.bfloat16)},
            part=lambda result: result[::step, ::columns],
            ptx={called: lambda: text_of_program(jitted, *ours)},
            ways=lambda: ways_of(jitted, *ours),
        )

    return called


for _weight in WEIGHTS:
    declare_gradient(*_weight)
for _weight in WEIGHTS:
    declare_narrow(*_weight)
