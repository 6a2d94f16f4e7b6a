"""Rows of warp-specialized kernels on sm_90a: attention, its variants and matmuls, in the tile DSL as users write them.

All names begin with `agents`, the older word for warp groups: results are found by them. Where a bar is on `best`, it
is on the fastest of torch's backends that can do the row. Attention leaves its block to the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import tessera
from tessera import kernel, stdlib, tile
from tessera.bench.cuda.declarations import Contest, Inputs, Yardstick, kernel_text, mean, row
from tessera.bench.cuda.kernel_texts import program_of, text_for
from tessera.bench.cuda.occupancy import occupancy
from tessera.bench.instruments.libraries import library
from tessera.tile.language.schedule import Schedule

BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
LOOKED_AT = 4096
"""Rows of a result, of all heads together, that are compared with the truth: they lie spread over each."""


@kernel
def linear_gelu(x: Any, weight: Any, bias: Any, y: Any):
    """gelu(x·weightᵀ + bias)."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        left = tile.load(x, at=(row, k), shape=(here.m, here.k))
        right = tile.load(weight, at=(col, k), shape=(here.n, here.k))
        acc = tile.dot(left, right.T, acc)
    acc = stdlib.gelu(acc + tile.load(bias, at=(col,), shape=(here.n,)))
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@dataclass(frozen=True)
class Heads:
    """Shapes of queries, keys and values."""

    batch: int
    heads: int
    queries: int
    width: int
    dtype: str = "bf16"
    causal: bool = False
    keys: int = 0
    """As many as queries, if nothing is said."""
    shared: int = 1
    """Heads that have their keys in common."""
    sequence_first: bool = False
    """[B, S, H, D] in memory."""

    @property
    def length(self) -> int:
        """Of keys."""
        return self.keys or self.queries

    @property
    def name(self) -> str:
        said = f"agents attention {self.batch}×{self.heads}×{self.queries}×{self.width} {self.dtype}"
        said += " causal" if self.causal else ""
        said += f", {self.keys} keys" if self.keys else ""
        said += f", {self.heads // self.shared} heads of keys" if self.shared > 1 else ""
        return said + (", sequence first" if self.sequence_first else "")

    @property
    def flops(self) -> float:
        seen = self.queries * (self.queries + 1) / 2 if self.causal else float(self.queries * self.length)
        return 4.0 * self.batch * self.heads * seen * self.width

    def shapes(self) -> list[tuple[int, int, int, int]]:
        """Of queries, keys and values, as torch wants them."""
        keys = (self.batch, self.heads // self.shared, self.length, self.width)
        return [(self.batch, self.heads, self.queries, self.width), keys, keys]

    def made(self, make: Inputs) -> list[Any]:
        """Torch tensors of these shapes."""
        if self.sequence_first:
            return [make.normal(b, s, h, d).transpose(1, 2) for b, h, s, d in self.shapes()]
        return [make.normal(*shape) for shape in self.shapes()]

    def ours(self, given: list[Any]) -> list[Any]:
        """The same memory as kernels take it: one leading axis where batches lie side by side."""
        return [tessera.from_dlpack(x if self.sequence_first else x.flatten(0, 1)) for x in given]

    def unmade(self) -> list[Any]:
        """Arrays like them, which take no memory."""
        dtype = getattr(tessera, self.dtype)
        if self.sequence_first:
            return [tessera.empty((b, s, h, d), dtype).permute(0, 2, 1, 3) for b, h, s, d in self.shapes()]
        return [tessera.empty((b * h, s, d), dtype) for b, h, s, d in self.shapes()]


def picked(heads: Heads, device: Any) -> Any:
    """The rows of every head that are looked at: the first, the last, and some between them."""
    count = min(heads.queries, max(8, LOOKED_AT // (heads.batch * heads.heads)))
    return library("torch").linspace(0, heads.queries - 1, count, device=device).long()


def part(heads: Heads, result: Any) -> Any:
    """Those rows of a result, [B·H, rows, D]."""
    return result.reshape(heads.batch * heads.heads, heads.queries, heads.width)[:, picked(heads, result.device)]


Score = Callable[..., Any]
"""As FlexAttention has them: of a score, and the numbers of batch, head, query and key."""


def causal(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
    return query >= key


def truth(heads: Heads, given: list[Any], weigh: Callable[[Any], Any], score: Score | None, seen: Score | None) -> Any:
    """In float64, of the rows that are looked at."""
    torch = library("torch")
    q, k, v = (x.flatten(0, 1) for x in given)
    device = q.device
    rows = picked(heads, device)
    k, v = (x.repeat_interleave(heads.shared, 0).double() for x in (k, v))
    scores = q[:, rows].double() @ k.mT / heads.width**0.5
    number = torch.arange(heads.batch * heads.heads, device=device)[:, None, None]
    coordinates = number // heads.heads, number % heads.heads, rows[:, None], torch.arange(heads.length, device=device)
    if score is not None:
        scores = score(scores, *coordinates)
    if seen is not None:
        scores = scores.masked_fill(~seen(*coordinates), -math.inf)
    return weigh(scores) @ v


def softmax(scores: Any) -> Any:
    return scores.softmax(-1)


def backends(heads: Heads, given: list[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Torch's ways that can do it."""
    functional, ways = library("torch.nn.functional"), library("torch.nn.attention")

    def attend(way: Any) -> Any:
        with ways.sdpa_kernel(way):
            return functional.scaled_dot_product_attention(*given, is_causal=heads.causal, enable_gqa=heads.shared > 1)

    found = {name: partial(attend, getattr(ways.SDPBackend, BACKENDS[name])) for name in names}
    return {name: call for name, call in found.items() if works(call)}


def works(call: Callable[[], Any]) -> bool:
    try:
        call()
    except RuntimeError as error:
        print(f"  {error}")
        return False
    return True


def plain_kernel(heads: Heads) -> Any:
    """A call of it lacks only the arrays."""
    masked = {"mask": stdlib.causal} if heads.causal else {}
    return partial(stdlib.attention_into if heads.sequence_first else stdlib.attention, **masked)


def declare_attention(heads: Heads, bars: Mapping[str, float], peers: tuple[str, ...] = ("cudnn",)) -> str:
    called = heads.name

    @kernel_text(called)
    def text() -> str:
        made, given = plain_kernel(heads), heads.unmade()
        return text_for(made.func, *given, *given[: heads.sequence_first], **made.keywords)

    @row(called, heads.dtype, flops=heads.flops, bars=bars, kernels=[called])
    def contest(make: Inputs) -> Contest:
        given, made = heads.made(make), plain_kernel(heads)
        ours = heads.ours(given)
        if heads.sequence_first:
            ours.append(tessera.from_dlpack(library("torch").empty_like(given[0])))
        program = program_of(made.func, *ours, **made.keywords)

        def call() -> Any:
            returned = made(*ours)
            return ours[-1] if heads.sequence_first else returned

        return Contest(
            truth=partial(truth, heads, given, softmax, None, causal if heads.causal else None),
            ours=call,
            peers=backends(heads, given, peers),
            part=partial(part, heads),
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )

    return called


# The table of the design, in both types; and what else a library has to know.

TABLE = [
    (4, 16, 2048, 64),
    (16, 32, 4096, 64),
    (8, 16, 8192, 64),
    (16, 32, 2048, 128),
    (8, 40, 4096, 128),
    (2, 16, 16384, 128),
]
for _dtype in ("f16", "bf16"):
    _rows = [
        declare_attention(Heads(*_shape, dtype=_dtype, causal=_causal), {"cudnn": 1.0})
        for _shape in TABLE
        for _causal in (True, False)
    ]
    mean(f"agents attention {_dtype}", _rows, "cudnn", 1.15)

OTHERS = [
    Heads(4, 16, 4096, 96),
    Heads(4, 16, 4096, 192),
    Heads(4, 16, 4096, 256),
    Heads(2, 32, 4096, 128, shared=4),
    Heads(8, 16, 1000, 128),
    Heads(4, 16, 4096, 128, sequence_first=True),
]
for _heads in OTHERS:
    for _causal in (True, False):
        declare_attention(replace(_heads, causal=_causal), {"best": 1.0}, tuple(BACKENDS))
for _queries, _keys in ((2048, 8192), (8192, 2048)):
    declare_attention(Heads(4, 16, _queries, 128, keys=_keys), {"best": 1.0}, tuple(BACKENDS))
for _shape in ((1, 8, 512, 64), (1, 8, 1024, 64), (2, 8, 512, 64)):
    for _causal in (True, False):
        declare_attention(Heads(*_shape, causal=_causal), {"cudnn": 0.95})
for _length in (32768, 65536):
    for _causal in (True, False):
        declare_attention(Heads(1, 16, _length, 64, causal=_causal), {"cudnn": 1.1})


# Programs that no library has, beside the plain kernel: useful operations per second, and FlexAttention's time.

PLAIN = Heads(4, 16, 8192, 128)
WINDOW = PREFIX = 1024
SIGMOID_BIAS = -math.log(PLAIN.length)
YARDSTICKS = {"plain": PLAIN, "causal": replace(PLAIN, causal=True)}
for _heads in YARDSTICKS.values():
    declare_attention(_heads, {})


@dataclass(frozen=True)
class Variant:
    """A variant of attention, in the DSL and as FlexAttention says it."""

    name: str
    kernel: Any
    bar: float = 0.9
    """Of the plain kernel's rate."""
    numbers: tuple[float, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict[str, Any])
    weigh: Callable[[Any], Any] = softmax
    score: Score | None = None
    seen: Score | None = None
    pairs: float = float(PLAIN.queries * PLAIN.length)
    """Of queries and keys that see each other."""
    flex: bool = True

    @property
    def flops(self) -> float:
        return 4.0 * PLAIN.batch * PLAIN.heads * PLAIN.width * self.pairs


def slopes() -> Any:
    """Of ALiBi: one for each head."""
    torch = library("torch")
    return torch.exp2(-8.0 * torch.arange(1, PLAIN.heads + 1, device="cuda") / PLAIN.heads)


# What FlexAttention is given. Torch looks for globals in a module, and this file is none: constants come as arguments.


def alibi(score: Any, _batch: Any, head: Any, query: Any, key: Any, *, slope: Any) -> Any:
    return score - slope[head] * (query - key).abs()


def own_score(score: Any, _batch: Any, _head: Any, _query: Any, _key: Any) -> Any:
    return 0.9 * score + 0.05 * score.clamp(min=0.0)


def soft_cap(score: Any, _batch: Any, _head: Any, _query: Any, _key: Any) -> Any:
    return 30.0 * (score * (1 / 30)).tanh()


def in_window(_batch: Any, _head: Any, query: Any, key: Any, *, window: int) -> Any:
    return (query >= key) & (query - key < window)


def in_prefix(_batch: Any, _head: Any, query: Any, key: Any, *, prefix: int) -> Any:
    return (query >= key) | (key < prefix)


def sigmoid(scores: Any) -> Any:
    return (scores + SIGMOID_BIAS).sigmoid()


def flex_attention(given: list[Any], score: Score | None, seen: Score | None) -> Callable[[], Any]:
    torch, flex = library("torch"), library("torch.nn.attention.flex_attention")
    blocks = None if seen is None else flex.create_block_mask(seen, None, None, PLAIN.queries, PLAIN.length)
    # Each row compiles a program of its own, and torch gives up after some of one function.
    torch.compiler.reset()
    return partial(torch.compile(flex.flex_attention, dynamic=False), *given, score_mod=score, block_mask=blocks)


def yardsticks(names: tuple[str, ...], make: Inputs) -> tuple[dict[str, Yardstick], dict[str, str]]:
    """Plain kernels, and their texts."""
    found: dict[str, Yardstick] = {}
    texts: dict[str, str] = {}
    for name in names:
        heads = YARDSTICKS[name]
        ours, made = heads.ours(heads.made(make)), plain_kernel(heads)
        found[name] = Yardstick(partial(made, *ours), heads.flops)
        texts[heads.name] = program_of(made.func, *ours, **made.keywords).ptx.decode()
    return found, texts


def declare_variant(one: Variant) -> None:
    called = f"agents {one.name} {PLAIN.batch}×{PLAIN.heads}×{PLAIN.queries}×{PLAIN.width} bf16"
    made: Any = partial(one.kernel, **one.static)
    measures = ("plain",) if one.seen is None else ("plain", "causal")
    bars = {"plain": one.bar, **({"flex": 1.4} if one.flex else {})}
    used = [called, *(YARDSTICKS[name].name for name in measures)]
    biased = one.kernel is stdlib.alibi_attention

    @kernel_text(called)
    def text() -> str:
        more = [tessera.empty((PLAIN.batch * PLAIN.heads,), tessera.f32)] if biased else []
        return text_for(made.func, *PLAIN.unmade(), *more, *one.numbers, **made.keywords)

    @row(called, PLAIN.dtype, flops=one.flops, bars=bars, kernels=used)
    def contest(make: Inputs) -> Contest:
        given = PLAIN.made(make)
        score, more = one.score, []
        if biased:
            slope = slopes()
            score, more = partial(alibi, slope=slope), [tessera.from_dlpack(slope.repeat(PLAIN.batch))]
        ours = [*PLAIN.ours(given), *more, *one.numbers]
        program = program_of(made.func, *ours, **made.keywords)
        measured_by, texts = yardsticks(measures, make)
        return Contest(
            truth=partial(truth, PLAIN, given, one.weigh, score, one.seen),
            ours=partial(made, *ours),
            peers={"flex": flex_attention(given, score, one.seen)} if one.flex else {},
            yardsticks=measured_by,
            part=partial(part, PLAIN),
            ptx={called: program.ptx.decode(), **texts},
            occupancy=partial(occupancy, program),
        )


_LENGTH = PLAIN.queries
VARIANTS = [
    Variant("alibi", stdlib.alibi_attention, bar=0.92),
    Variant(
        f"window {WINDOW}",
        stdlib.window_attention,
        numbers=(WINDOW,),
        seen=partial(in_window, window=WINDOW),
        pairs=_LENGTH * WINDOW - WINDOW * (WINDOW - 1) / 2,
    ),
    Variant(
        f"prefix {PREFIX}",
        stdlib.prefix_attention,
        numbers=(PREFIX,),
        seen=partial(in_prefix, prefix=PREFIX),
        pairs=PREFIX**2 + (_LENGTH * (_LENGTH + 1) - PREFIX * (PREFIX + 1)) / 2,
    ),
    Variant("own score", stdlib.attention, bar=0.92, static={"score": stdlib.own_score}, score=own_score),
    Variant("soft cap", stdlib.attention, bar=0.72, static={"score": stdlib.soft_cap}, score=soft_cap),
    Variant("sigmoid", stdlib.sigmoid_attention, numbers=(SIGMOID_BIAS,), weigh=sigmoid, flex=False),
]
for _variant in VARIANTS:
    declare_variant(_variant)


def declare_mlp(rows: int, hidden: int, width: int) -> None:
    """Dot, gelu, dot: what attention is without any of its names."""
    called = f"agents mlp {rows}×{width}×{hidden} bf16"
    made = stdlib.mlp
    shapes = [(rows, width), (width, hidden), (hidden, width)]

    @kernel_text(called)
    def text() -> str:
        return text_for(made, *(tessera.empty(shape, tessera.bf16) for shape in shapes))

    @row(called, "bf16", flops=4.0 * rows * hidden * width, bars={"plain": 0.9}, kernels=[called, PLAIN.name])
    def contest(make: Inputs) -> Contest:
        functional = library("torch.nn.functional")
        given = [make.normal(*shape, scale=scale) for shape, scale in zip(shapes, (1.0, 0.1, 0.1), strict=True)]
        ours = [tessera.from_dlpack(x) for x in given]
        program = program_of(made, *ours)
        measured_by, texts = yardsticks(("plain",), make)
        step = rows // LOOKED_AT

        def expected() -> Any:
            x, up, down = (each.double() for each in (given[0][::step], *given[1:]))
            return functional.gelu(x @ up) @ down

        return Contest(
            truth=expected,
            ours=partial(made, *ours),
            yardsticks=measured_by,
            part=lambda result: result[::step],
            ptx={called: program.ptx.decode(), **texts},
            occupancy=partial(occupancy, program),
        )


declare_mlp(131072, 8192, PLAIN.width)


# Matmuls. Their program instances say where they are in the result, so the grid goes with the block.


def declare_gemm(m: int, n: int, k: int, block: tuple[int, int, int], *, linear: bool = False) -> None:
    """a·b; or gelu(a·bᵀ + bias) with the weights of a linear layer."""
    called = f"agents {'linear gelu' if linear else 'gemm'} {m}×{n}×{k} bf16"
    made = (linear_gelu if linear else stdlib.gemm).with_schedule(Schedule(block=block))[
        -(-m // block[0]), -(-n // block[1])
    ]
    shapes = [(m, k), (n, k), (n,)] if linear else [(m, k), (k, n)]
    bars = {"inductor": 1.1} if linear else {"cublas": 0.97}

    @kernel_text(called)
    def text() -> str:
        return text_for(made, *(tessera.empty(shape, tessera.bf16) for shape in (*shapes, (m, n))))

    @row(called, "bf16", flops=2.0 * m * n * k, bars=bars, kernels=[called])
    def contest(make: Inputs) -> Contest:
        torch, functional = library("torch"), library("torch.nn.functional")
        given = [make.normal(*shape, scale=k**-0.5 if index == 1 else 1.0) for index, shape in enumerate(shapes)]
        filled = torch.empty((m, n), dtype=torch.bfloat16, device="cuda")
        ours = [tessera.from_dlpack(x) for x in (*given, filled)]
        program = program_of(made, *ours)
        step = max(1, m // LOOKED_AT)

        def layer(x: Any, weight: Any, bias: Any) -> Any:
            return functional.gelu(functional.linear(x, weight, bias))

        def call() -> Any:
            made(*ours)
            return ours[-1]

        peer = layer if linear else torch.matmul
        if linear:
            torch.compiler.reset()
        peers = {"inductor": torch.compile(layer, dynamic=False)} if linear else {"cublas": torch.matmul}
        return Contest(
            truth=lambda: peer(given[0][::step].double(), *(x.double() for x in given[1:])),
            ours=call,
            peers={name: partial(each, *given) for name, each in peers.items()},
            part=lambda result: result[::step],
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


WIDE, SMALL = (128, 256, 64), (128, 128, 64)
declare_gemm(4096, 4096, 4096, WIDE)
declare_gemm(8192, 8192, 8192, WIDE)
declare_gemm(8192, 14336, 4096, WIDE)
declare_gemm(512, 4096, 4096, SMALL)
declare_gemm(4096, 4096, 4096, WIDE, linear=True)
declare_gemm(8192, 14336, 4096, WIDE, linear=True)
