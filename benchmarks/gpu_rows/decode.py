"""Rows of attention as one decodes, few queries to many keys; and of attention with logarithms of its sums.

Names begin with `decode` and with `lse`. Peers give the logarithms, too, where rows ask for them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import tessera
from tessera import stdlib
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.cuda.kernel_texts import program_of, text_for
from tessera.bench.cuda.occupancy import occupancy
from tessera.bench.instruments.libraries import library
from tessera.stdlib.decoding import BLOCK, Decoding, split
from tessera.tile.calls.block_selection import MULTIPROCESSORS

HEADS, GROUP, WIDTH = 8, 4, 128
"""Heads of keys, query heads that share one, and columns of each."""


def declare_decoding(batch: int, keys: int, bars: dict[str, float]) -> None:
    called = f"decode {batch}×{HEADS * GROUP}×{keys}×{WIDTH} bf16, {HEADS} heads of keys"
    queries, cached = (batch, HEADS, GROUP, WIDTH), (batch, HEADS, keys, WIDTH)
    shared = split(batch * HEADS, keys, MULTIPROCESSORS, BLOCK[1])
    names = [called] if shared.instances == 1 else [f"{called}, {step}" for step in ("parts", "combined")]
    moves = 2.0 * (2 * math.prod(cached) + 2 * math.prod(queries))

    for index, name in enumerate(names):

        @kernel_text(name)
        def text(index: int = index) -> str:
            q, found = (tessera.empty(queries, tessera.bf16) for _ in range(2))
            k, v = (tessera.empty(cached, tessera.bf16) for _ in range(2))
            step = Decoding(q, k, v, shared).steps(found)[index]
            return text_for(step.func, *step.args)

    @row(called, "bf16", moves=moves, bars=bars, kernels=names)
    def contest(make: Inputs) -> Contest:
        given = make.normal(batch, HEADS * GROUP, 1, WIDTH), make.normal(*cached), make.normal(*cached)
        q, k, v = given
        ours = Decoding(*(tessera.from_dlpack(x) for x in (q.reshape(queries), k, v)), shared)
        steps = ours.steps(ours())

        def expected() -> Any:
            """A batch at a time: keys in float64 are large."""
            torch = library("torch")
            found = torch.empty(queries, dtype=torch.float64, device=q.device)
            for index in range(batch):
                each = [x[index].double() for x in (q.reshape(queries), k, v)]
                found[index] = (each[0] @ each[1].mT / WIDTH**0.5).softmax(-1) @ each[2]
            return found

        return Contest(
            truth=expected,
            ours=ours,
            peers={name: partial(attend, given, way) for name, way in BACKENDS.items()},
            part=lambda result: result.reshape(queries),
            ptx={name: program_of(step.func, *step.args).ptx.decode() for name, step in zip(names, steps, strict=True)},
            occupancy=partial(occupancy, program_of(steps[0].func, *steps[0].args)),
        )


BACKENDS = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}


def attend(given: tuple[Any, ...], way: str) -> Any:
    functional, ways = library("torch.nn.functional"), library("torch.nn.attention")
    with ways.sdpa_kernel(getattr(ways.SDPBackend, way)):
        return functional.scaled_dot_product_attention(*given, enable_gqa=True)


declare_decoding(64, 8192, {"copy": 0.9, "cudnn": 0.97})
declare_decoding(8, 32768, {})
declare_decoding(1, 32768, {})


# With logarithms


def with_logs(given: list[Any], causal: bool, backend: str) -> tuple[Any, Any]:
    """What torch's backends give for training: the result, and the logarithms."""
    operator = getattr(library("torch").ops.aten, f"_scaled_dot_product_{backend}_attention")
    asked = (None, True) if backend == "cudnn" else ()
    return operator(*given, *asked, 0.0, causal, False)[:2]


def declare_lse(shape: tuple[int, int, int, int], *, causal: bool, logs: bool) -> None:
    """Two rows of the same calls: in one, results are looked at, in the other one logarithms."""
    batch, heads, length, width = shape
    size = f"{batch}×{heads}×{length}×{width} bf16{' causal' if causal else ''}"
    called = f"lse attention {size}{', its logarithms' if logs else ''}"
    mask = stdlib.causal if causal else None
    flops = 4.0 * batch * heads * width * (length * (length + 1) / 2 if causal else length * length)
    step = max(1, length // 64)

    @kernel_text(called)
    def text() -> str:
        given = [tessera.empty((batch * heads, length, width), tessera.bf16) for _ in range(3)]
        return text_for(stdlib.attention_lse, *given, mask=mask)

    # The logarithms of what is made of 16-bit numbers, but in f32 throughout.
    bound = 1e-5 if logs else None

    @row(called, "f32" if logs else "bf16", flops=flops, bars={"cudnn": 1.0}, kernels=[called], bound=bound)
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        given = [make.normal(*shape, dtype="bf16") for _ in range(3)]
        ours = [tessera.from_dlpack(x.flatten(0, 1)) for x in given]
        program = program_of(stdlib.attention_lse, *ours, mask=mask)

        def expected() -> Any:
            rows = torch.arange(0, length, step, device=given[0].device)
            q, k, v = (x.flatten(0, 1).double() for x in given)
            scores = q[:, rows] @ k.mT / width**0.5
            if causal:
                scores = scores.masked_fill(torch.arange(length, device=rows.device) > rows[:, None], -math.inf)
            return scores.logsumexp(-1) if logs else scores.softmax(-1) @ v

        sizes = (batch * heads, length) if logs else (batch * heads, length, width)
        return Contest(
            truth=expected,
            ours=lambda: stdlib.attention_lse(*ours, mask=mask)[int(logs)],
            peers={name: lambda name=name: with_logs(given, causal, name)[int(logs)] for name in ("cudnn", "flash")},
            part=lambda result: result.reshape(sizes)[:, ::step],
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


for _causal in (False, True):
    for _logs in (False, True):
        declare_lse((4, 16, 4096, 128), causal=_causal, logs=_logs)
