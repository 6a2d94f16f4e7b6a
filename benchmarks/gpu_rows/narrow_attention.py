"""Rows of attention in f8e4m3 on sm_90a, warp-specialized, beside our own in bf16: no library that torch has does it.

Values lie as in bf16: a warp group transposes them within the kernel. Accumulators are promoted to f32, or, with fast
sums, carried as tensor cores do, and as other libraries leave them: the bar is on those.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tessera
from tessera import DType, accum, stdlib
from tessera.bench.cuda.declarations import Contest, Inputs, Yardstick, kernel_text, row
from tessera.bench.cuda.kernel_texts import program_of, text_for
from tessera.bench.cuda.occupancy import occupancy
from tessera.bench.instruments.libraries import library
from tessera.runtime.tensor.tensor import Tensor

BATCH, HEADS, LENGTH, WIDTH = 4, 16, 8192, 128
SHAPE = (BATCH * HEADS, LENGTH, WIDTH)
PICKED = 64
"""Rows of each head that are compared with the truth."""
BOUND = 0.04
"""Weights have 4 digits: 1/16 is what rounding changes at most, and much of it averages out."""
SUMS = {"": tessera.f8e4m3, ", fast sums": tessera.f8e4m3 @ accum(tessera.f16)}
"""The types of values: they say how dots with them are accumulated."""


def seen(x: Any, dtype: DType) -> Tensor:
    """A torch tensor's memory as numbers of our type."""
    found = tessera.from_dlpack(x.view(library("torch").uint8))
    return Tensor.wrap(found.geometry.view(dtype.storage), dtype, found.device, found.buffer)


def picked(device: Any) -> Any:
    return library("torch").linspace(0, LENGTH - 1, PICKED, device=device).long()


def truth(given: list[Any], *, causal: bool) -> Any:
    """In float64, of the numbers that were given, head by head: scores of all take too much memory."""
    torch = library("torch")
    rows = picked(given[0].device)
    found: list[Any] = []
    for q, k, v in zip(*given, strict=True):
        scores = q[rows].double() @ k.double().mT / WIDTH**0.5
        if causal:
            hidden = rows[:, None] < torch.arange(LENGTH, device=rows.device)
            scores = scores.masked_fill(hidden, -torch.inf)
        found.append(scores.softmax(-1) @ v.double())
    return torch.stack(found)


def declare(how: str, *, causal: bool) -> None:
    shape = f"{BATCH}×{HEADS}×{LENGTH}×{WIDTH}"
    called = f"agents attention {shape} f8e4m3{' causal' if causal else ''}{how}"
    plain = f"agents attention {shape} bf16{' causal' if causal else ''}"
    static: dict[str, Any] = {"mask": stdlib.causal} if causal else {}
    types = [tessera.f8e4m3, tessera.f8e4m3, SUMS[how]]
    flops = 4.0 * BATCH * HEADS * WIDTH * (LENGTH * (LENGTH + 1) / 2 if causal else LENGTH**2)

    @kernel_text(called)
    def text() -> str:
        return text_for(stdlib.narrow_attention, *(tessera.empty(SHAPE, dtype) for dtype in types), **static)

    @row(called, "bf16", flops=flops, bars={"bf16": 1.3} if how else {}, kernels=[called, plain], bound=BOUND)
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        given = [make.normal(*SHAPE, dtype="f8e4m3") for _ in types]
        ours = [seen(x, dtype) for x, dtype in zip(given, types, strict=True)]
        wide = [tessera.from_dlpack(x.to(torch.bfloat16)) for x in given]
        program = program_of(stdlib.narrow_attention, *ours, **static)
        measure = Yardstick(partial(stdlib.attention, *wide, **static), flops)
        ptx = program_of(stdlib.attention, *wide, **static).ptx.decode()
        return Contest(
            truth=partial(truth, given, causal=causal),
            ours=partial(stdlib.narrow_attention, *ours, **static),
            yardsticks={"bf16": measure},
            part=lambda result: result[:, picked(result.device)],
            ptx={called: program.ptx.decode(), plain: ptx},
            occupancy=partial(occupancy, program),
        )


for _how in SUMS:
    for _causal in (False, True):
        declare(_how, causal=_causal)
