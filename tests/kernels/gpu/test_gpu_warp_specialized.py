"""Kernels with dots in loops, warp-specialized on a GPU, against float64 and the interpreter: odd sizes and numbers.

Every case says how it is compiled: warp-specialized (`wgmma` in its PTX), or with the dots that all GPUs have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import warp_specialized_kernels as cases

import tessera as ts
from tessera import DType, Schedule, bf16, f16, f32, knobs, stdlib
from tessera.bench.cuda.kernel_texts import program_of
from tessera.runtime.cuda import Graph, Stream, default_stream, synchronize
from tessera.stdlib.decoding import Decoding, Split

Array = np.ndarray[Any, np.dtype[Any]]
Make = Callable[[Any], Any]
"""A call with arrays that something makes."""
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("warp_specialization_here")]
Heads, Product, PRODUCTS, STAGES = cases.Heads, cases.Product, cases.PRODUCTS, cases.STAGES
# Of 16-bit results, relative to the largest numbers of a row: weights are rounded, and what is stored.
TOLERANCES = {bf16: 1.6e-2, f16: 2e-3, f32: 4e-6}


@dataclass
class Arrays:
    """Makes the same arrays on a host and on a GPU. Those to be filled are full of NaN first."""

    dtype: DType
    seed: int = 0
    on_gpu: bool = False
    change: Callable[[int, Array], Array] = lambda which, values: values
    """Changes each array's numbers; `which` is its index."""

    def __post_init__(self) -> None:
        self.random, self.made = np.random.default_rng(self.seed), 0

    def __call__(self, *shape: int, dtype: DType | None = None, target: bool = False) -> ts.Tensor:
        values = np.full(shape, np.nan) if target else self.change(self.made, self.random.standard_normal(shape))
        self.made += 1
        made = ts.asarray(values.astype(np.float32)).to(dtype or self.dtype)
        return made.cuda() if self.on_gpu else made


def wide(tensor: ts.Tensor) -> Array:
    return tensor.cpu().to(f32).numpy().astype(np.float64)


def result(call: Any) -> ts.Tensor:
    """What a call gives: its result, or the array that it fills."""
    found = call()
    return call.arguments[-1] if found is None else found


def is_warp_specialized(call: Any) -> bool:
    return b"wgmma.mma_async" in program_of(call.kernel, *call.arguments, **call.static).ptx


def interpreted(make: Make, arrays: Arrays) -> Array:
    with knobs.interpret.using(True), np.errstate(all="ignore"):
        return wide(result(make(Arrays(arrays.dtype, arrays.seed, False, arrays.change))))


def on_gpu(make: Make, arrays: Arrays, *, warp_specialized: bool = True, repeats: int = 3) -> Array:
    """The same each time, to the bit."""
    found: list[Array] = []
    for _ in range(repeats):
        call = make(Arrays(arrays.dtype, arrays.seed, True, arrays.change))
        assert is_warp_specialized(call) == warp_specialized
        found.append(wide(result(call)))
    assert all(found[0].tobytes() == other.tobytes() for other in found[1:]), "two launches give different results"
    return found[0]


def expect_close(found: Array, expected: Array, dtype: DType) -> None:
    """Infinities and NaN where they belong; the rest relative to the largest number of its row."""
    assert found.shape == expected.shape
    assert np.array_equal(np.isnan(found), np.isnan(expected)), "NaN is elsewhere"
    endless = np.isinf(expected) | np.isinf(found)
    assert np.array_equal(found[endless], expected[endless]), "infinities differ"
    usual = np.where(np.isfinite(expected), expected, 0.0)
    largest = np.abs(usual).max(-1, keepdims=True, initial=1e-3)
    allowed = np.broadcast_to(TOLERANCES[dtype] * largest, usual.shape)
    rest = np.isfinite(expected)
    off = np.abs(found[rest] - expected[rest])
    assert (off <= allowed[rest]).all(), f"off by {off.max():.3g}, {(off > allowed[rest]).sum()} of {off.size}"


def check(make: Make, arrays: Arrays, *, warp_specialized: bool = True) -> None:
    expect_close(on_gpu(make, arrays, warp_specialized=warp_specialized), interpreted(make, arrays), arrays.dtype)


def stage(name: str, *sizes: Any) -> Make:
    return lambda new: STAGES[name](new, Heads(*sizes))


def matrices(name: str, *sizes: Any) -> Make:
    return lambda new: PRODUCTS[name](new, Product(*sizes))


# Against the interpreter

LENGTHS = [(1, 1), (65, 65), (130, 257), (257, 66), (1, 300), (300, 1)]
BLOCKS = {32: (256, 64), 64: (256, 64), 80: (192, 80), 96: (128, 128), 128: (192, 80), 192: (64, 64), 256: (64, 64)}


@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
@pytest.mark.parametrize("name", STAGES)
def test_lengths(name: str, dtype: DType) -> None:
    for seed, (queries, keys) in enumerate(LENGTHS):
        # The hidden units of an mlp are rows of memory: whole pieces of 16 bytes.
        whole = -(-keys // 8) * 8 if name == "mlp" else keys
        check(stage(name, queries, whole, 64, (128, 64), 2), Arrays(dtype, seed))


@pytest.mark.parametrize("width", BLOCKS)
@pytest.mark.parametrize("name", ["full", "causal", "window", "mlp"])
def test_widths(name: str, width: int) -> None:
    check(stage(name, 200, 168, width, BLOCKS[width], 3), Arrays(bf16, width))


@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_matmuls(name: str, dtype: DType) -> None:
    sizes = [(1, 8, 8), (65, 72, 40), (777, 264, 136), (130, 520, 1000)]
    blocks = [(64, 64, 32), (128, 128, 64), (256, 128, 64), (128, 256, 64)]
    for seed, ((m, n, k), block) in enumerate(zip(sizes, blocks, strict=True)):
        # With a bias of f16, the widest block keeps more than there are registers for.
        fits = (name, dtype, block[1]) != ("bias and gelu", f16, 256)
        check(matrices(name, m, n, k, block), Arrays(dtype, seed), warp_specialized=fits)


def test_nothing_to_add_up() -> None:
    """Without keys or depth, zeros or NaN as the interpreter has them; without rows, nothing."""
    check(stage("sigmoid", 100, 0, 64, (64, 64)), Arrays(bf16))
    check(stage("full", 100, 0, 64, (64, 64)), Arrays(bf16))
    # Rows of no columns do not lie at multiples of 16 bytes.
    check(matrices("a·b", 100, 72, 0, (64, 64, 32)), Arrays(bf16), warp_specialized=False)
    check(stage("full", 0, 100, 64, (64, 64)), Arrays(bf16))


# Against float64

Score = Callable[[Array, Array, Array], Array]


def attended(q: Array, k: Array, v: Array, score: Score) -> Array:
    rows, cols = np.ones((q.shape[1], 1)).cumsum(0) - 1, np.ones((1, k.shape[1])).cumsum(1) - 1
    scores = score(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1]), rows, cols)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


SCORES: dict[str, Score] = {
    "full": lambda s, rows, cols: s,
    "causal": lambda s, rows, cols: np.where(rows >= cols, s, -np.inf),
    "window": lambda s, rows, cols: np.where((rows >= cols) & (rows - cols < 100), s, -np.inf),
    "prefix": lambda s, rows, cols: np.where((rows >= cols) | (cols < 50), s, -np.inf),
    "own score": lambda s, rows, cols: 0.9 * s + 0.05 * np.maximum(s, 0),
    "soft cap": lambda s, rows, cols: 30 * np.tanh(s / 30),
}


@pytest.mark.parametrize(("width", "block"), [(64, (256, 64)), (128, (192, 80)), (128, (128, 128))], ids=str)
@pytest.mark.parametrize("name", SCORES)
def test_attention_of_many_blocks(name: str, width: int, block: tuple[int, int]) -> None:
    """Far more program instances than multiprocessors: persistent CTAs go on to the next; some have less to do."""
    make, arrays = stage(name, 1777, 1777, width, block, 24), Arrays(bf16, 5)
    found = on_gpu(make, arrays)
    q, k, v = (wide(array) for array in make(Arrays(bf16, 5)).arguments[:3])
    expect_close(found, attended(q, k, v, SCORES[name]), bf16)


@pytest.mark.parametrize("name", ["a·b", "a·bᵀ", "a f32 result"])
def test_a_large_matmul(name: str) -> None:
    make = matrices(name, 2111, 1544, 1032, (128, 256, 64))
    found = on_gpu(make, Arrays(bf16, 6))
    a, b, _ = (wide(array) for array in make(Arrays(bf16, 6)).arguments)
    expect_close(found, a @ (b.T if name == "a·bᵀ" else b), bf16)


@pytest.mark.parametrize(("m", "clusters"), [(5001, True), (4990, False)])
@pytest.mark.parametrize("name", ["a·b", "a·bᵀ", "a f32 result"])
def test_blocks_that_fetch_together(name: str, m: int, clusters: bool) -> None:
    """So many program instances that clusters pay; with an odd number of rows of them there are none."""
    make = matrices(name, m, 10200, 136, (128, 256, 64))
    call = make(Arrays(bf16, 7, on_gpu=True))
    assert (b".multicast::cluster" in program_of(call.kernel, *call.arguments).ptx) is clusters
    found = on_gpu(make, Arrays(bf16, 7), repeats=2)
    a, b, _ = (wide(array) for array in make(Arrays(bf16, 7)).arguments)
    expect_close(found, a @ (b.T if name == "a·bᵀ" else b), bf16)


def steeper(which: int, values: Array) -> Array:
    """Scores times 8."""
    return 8 * values if which == 0 else values


def rising(which: int, values: Array) -> Array:
    """Later keys have greater scores, by more than maxima may lag behind: sums are brought to new ones all the time."""
    if which > 1:
        return values
    return np.abs(values) * np.linspace(0.1, 6, values.shape[-2])[:, None] if which == 1 else np.abs(values)


def falling(which: int, values: Array) -> Array:
    return rising(which, values)[..., ::-1, :] if which == 1 else rising(which, values)


@pytest.mark.parametrize("change", [steeper, rising, falling])
@pytest.mark.parametrize("name", ["full", "causal", "window"])
def test_steep_scores(name: str, change: Callable[[int, Array], Array]) -> None:
    for dtype, width, block in ((bf16, 64, (256, 64)), (f16, 128, (192, 80))):
        make = stage(name, 333, 777, width, block, 2)
        found = on_gpu(make, Arrays(dtype, 7, change=change))
        q, k, v = (wide(array) for array in make(Arrays(dtype, 7, change=change)).arguments[:3])
        expect_close(found, attended(q, k, v, SCORES[name]), dtype)


@pytest.mark.parametrize("mask", [None, stdlib.causal])
@pytest.mark.parametrize("width", [64, 128])
def test_logarithms_of_sums(width: int, mask: Any) -> None:
    """Beside the result, and stored by threads: they are f32, and one for each row."""
    for queries, keys in ((1, 65), (333, 777), (1000, 1000)):
        q, k, v = (Arrays(bf16, seed, on_gpu=True)(3, rows, width) for seed, rows in enumerate((queries, keys, keys)))
        call = cases.Call(stdlib.attention_lse, [q, k, v], {"mask": mask})
        assert is_warp_specialized(call)
        found, logs = (wide(one) for one in call())
        scores = wide(q) @ wide(k).swapaxes(1, 2) / math.sqrt(width)
        if mask is not None:
            scores = np.where(np.tri(queries, keys, dtype=np.bool_), scores, -np.inf)
        top = scores.max(-1)
        sums = np.exp(scores - top[..., None]).sum(-1)
        expect_close(found, np.exp(scores - top[..., None]) / sums[..., None] @ wide(v), bf16)
        # Rows are summed before weights are rounded to 16 bits.
        assert np.abs(logs - (top + np.log(sums))).max() <= 2e-5


@pytest.mark.parametrize("programs", [1, 3])
def test_decoding(programs: int) -> None:
    """Few queries, whose rows are most of them beyond the array, and keys that program instances share."""
    for keys in (1, 130, 1000):
        new = Arrays(bf16, keys, on_gpu=True)
        q, k, v = new(2, 3, 4, 128), new(2, 3, keys, 128), new(2, 3, keys, 128)
        found = Decoding(q, k, v, Split(programs, -(-keys // (programs * 128)) * 128))
        first = found.steps(ts.empty_like(q))[0]
        assert b"wgmma.mma_async" in program_of(first.func, *first.args).ptx  # pyright: ignore[reportArgumentType]
        scores = wide(q) @ wide(k).swapaxes(2, 3) / math.sqrt(128)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expect_close(wide(found()), weights / weights.sum(-1, keepdims=True) @ wide(v), bf16)


@pytest.mark.parametrize("dtype", [bf16, f32], ids=str)
@pytest.mark.parametrize("width", [64, 128])
def test_biases(width: int, dtype: DType) -> None:
    """For all, and for each head, in blocks that the model chose."""
    for shape in ((300, 500), (1, 3, 300, 500)):
        new = Arrays(bf16, 20, on_gpu=True)
        q, k, v = new(2, 3, 300, width), new(2, 3, 500, width), new(2, 3, 500, width)
        call = cases.Call(stdlib.bias_attention, [q, k, v, new(*shape, dtype=dtype)])
        assert is_warp_specialized(call)
        scores = wide(q) @ wide(k).swapaxes(2, 3) / math.sqrt(width) + wide(call.arguments[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expect_close(wide(call()), weights / weights.sum(-1, keepdims=True) @ wide(v), bf16)


# Numbers that are none


def late_rows(rows: Any, cols: Any) -> Any:
    """The first 70 rows see nothing."""
    return rows >= cols + 70


def no_rows(rows: Any, cols: Any) -> Any:
    return rows < cols - 100000


@pytest.mark.parametrize("mask", [late_rows, no_rows])
@pytest.mark.parametrize("block", [(64, 64), (128, 128), (256, 64)], ids=str)
def test_rows_that_see_nothing(mask: Any, block: tuple[int, int]) -> None:
    """They come out as the interpreter has them, and do no harm to the others."""

    def make(new: Any) -> Any:
        size = Heads(200, 150, 64, block, 2)
        return cases.Call(size.on(stdlib.attention), size.arrays(new), {"mask": mask})

    check(make, Arrays(bf16, 8))


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("name", ["full", "causal"])
def test_infinite_numbers(name: str, which: int, number: float) -> None:
    """One in the queries spoils a row; one in the keys or values those that see it."""

    def change(at: int, values: Array) -> Array:
        if at == which:
            values[0, 90, 3] = number
        return values

    make, arrays = stage(name, 150, 200, 64, (128, 64), 2), Arrays(bf16, 9, change=change)
    found, expected = on_gpu(make, arrays), interpreted(make, arrays)
    assert (~np.isfinite(expected)).any()
    spoiled = np.isnan(expected)
    if name == "causal":
        # Iterations that masks leave out are skipped: what is infinite there may be missing.
        assert not (np.isnan(found) & ~spoiled).any()
        found = np.where(spoiled, np.nan, found)
    expect_close(found, expected, bf16)


# Memory


def strided_heads(*sizes: Any, mask: Any = None) -> Make:
    """Arrays of [length, heads, width], seen as [heads, length, width]; the result, too."""
    size = Heads(*sizes)

    def make(new: Any) -> Any:
        q, out = (new(size.queries, size.heads, size.width, target=target) for target in (False, True))
        k, v = (new(size.keys, size.heads, size.width) for _ in range(2))
        arguments = [array.permute(1, 0, 2) for array in (q, k, v, out)]
        return cases.Call(size.on(stdlib.attention_into), arguments, {"mask": mask})

    return make


@pytest.mark.parametrize("mask", [None, stdlib.causal])
@pytest.mark.parametrize(("width", "block"), [(64, (256, 64)), (128, (128, 128)), (32, (64, 64))], ids=str)
def test_sequence_first(width: int, block: tuple[int, int], mask: Any) -> None:
    for queries, keys in ((1, 65), (200, 200), (333, 130)):
        check(strided_heads(queries, keys, width, block, 3, mask=mask), Arrays(bf16, queries))


def test_views_of_larger_arrays() -> None:
    """Columns of a wider matrix, rows from the middle; what lies between stays as it was."""

    def make(new: Any) -> Any:
        a, b, c = new(300, 256), new(256, 200), new(300, 400, target=True)
        call = PRODUCTS["a·b"](new, Product(200, 136, 128, (128, 128, 64)))
        return cases.Call(call.kernel, [a[50:250, 64:192], b[8:136, 16:152], c[3:203, 40:176]])

    check(make, Arrays(bf16, 11))
    call = make(Arrays(bf16, 11, on_gpu=True))
    c = Arrays(bf16, on_gpu=True)(300, 400, target=True)
    call.kernel(*call.arguments[:2], c[3:203, 40:176])
    around = wide(c)
    inside = around[3:203, 40:176].copy()
    around[3:203, 40:176] = np.nan
    assert np.isnan(around).all()
    assert np.isfinite(inside).all()


UNMAPPED: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "rows of 200 bytes": lambda a, b: (a[:, :100], b[:100]),
    "from the second column": lambda a, b: (a[:, 1:129], b[:128]),
    "every second column": lambda a, b: (a[:, ::2], b[:128]),
    "an odd start of b": lambda a, b: (a[:, :128], b[:128, 3:139]),
    "b transposed, an odd start": lambda a, b: (a[:, :136], b[:136, 3:139].T),
}


@pytest.mark.parametrize("name", UNMAPPED)
def test_what_has_no_tensor_map_goes_another_way(name: str) -> None:
    """Rows that are not whole pieces of 16 bytes, or do not begin with one: dots as all GPUs have them."""

    def make(new: Any) -> Any:
        a, b = UNMAPPED[name](new(200, 256), new(256, 144))
        size = Product(200, b.shape[1], a.shape[1], (64, 64, 32))
        return cases.Call(size.on(stdlib.gemm), [a, b, new(200, b.shape[1], target=True)])

    check(make, Arrays(bf16, 12), warp_specialized=False)


@pytest.mark.parametrize("width", [36, 100])
def test_odd_widths_go_another_way(width: int) -> None:
    for name in ("full", "causal"):
        check(stage(name, 130, 150, width, (64, 64), 2), Arrays(bf16), warp_specialized=False)


def test_results_that_have_no_tensor_map() -> None:
    """Threads store them; the dots are those of consumers."""

    def make(new: Any) -> Any:
        call = PRODUCTS["a·b"](new, Product(200, 136, 128, (128, 128, 64)))
        return cases.Call(call.kernel, [*call.arguments[:2], new(200, 137, target=True)[:, :136]])

    check(make, Arrays(bf16, 13))


def test_every_element_is_written() -> None:
    """Into memory full of NaN, of sizes around those of blocks."""
    for queries in (63, 64, 65, 191, 192, 193, 255, 257):
        for mask in (None, stdlib.causal):
            make = strided_heads(queries, 300, 64, (64, 64), 2, mask=mask)
            assert np.isfinite(on_gpu(make, Arrays(f16, queries), repeats=1)).all()
    for m, n in ((127, 248), (128, 256), (129, 264), (1, 8)):
        make = matrices("a·b", m, n, 72, (128, 256, 64))
        assert np.isfinite(on_gpu(make, Arrays(f16, m), repeats=1)).all()


# Launches

LAUNCHED: dict[str, Make] = {
    "causal": stage("causal", 1000, 1000, 64, (256, 64), 40),
    "full": stage("full", 500, 1000, 128, (192, 80), 20),
    "a·b": matrices("a·b", 2000, 1544, 512, (128, 256, 64)),
}


@pytest.mark.parametrize("name", LAUNCHED)
def test_many_launches_give_the_same_bits(name: str) -> None:
    """Warp groups run in other orders each time; counters of program instances start from 0 again."""
    call = LAUNCHED[name](Arrays(bf16, 14, on_gpu=True))
    assert is_warp_specialized(call)
    first = wide(result(call))
    for _ in range(50):
        found = wide(result(call))
        assert found.tobytes() == first.tobytes()


@pytest.mark.parametrize("name", LAUNCHED)
def test_two_streams_at_once(name: str) -> None:
    """Launches that overlap have counters of their own."""
    calls = [LAUNCHED[name](Arrays(bf16, seed, on_gpu=True)) for seed in (15, 16)]
    expected = [wide(result(call)) for call in calls]
    streams = [Stream(), Stream()]
    for stream in streams:
        stream.wait_for(default_stream())
    for _ in range(10):
        found: list[ts.Tensor] = []
        for stream, call in zip(streams, calls, strict=True):
            with stream:
                found.append([result(call) for _ in range(4)][-1])
        synchronize()
        for one, other in zip(found, expected, strict=True):
            assert wide(one).tobytes() == other.tobytes()


@pytest.mark.parametrize("name", LAUNCHED)
def test_graphs_replay_them(name: str) -> None:
    call = LAUNCHED[name](Arrays(bf16, 17, on_gpu=True))
    expected = wide(result(call))
    with Graph() as graph:
        found = [result(call) for _ in range(3)]
    for _ in range(5):
        graph.replay()
        synchronize()
        assert all(wide(one).tobytes() == expected.tobytes() for one in found)
    # The same kernel with other numbers, outside of the graph and in between.
    other = LAUNCHED[name](Arrays(bf16, 18, on_gpu=True))
    beside = wide(result(other))
    graph.replay()
    assert wide(result(other)).tobytes() == beside.tobytes()
    assert wide(found[0]).tobytes() == expected.tobytes()


def test_a_schedule_for_each_number_of_consumers() -> None:
    for rows in (64, 128, 256):
        check(stage("causal", 300, 300, 64, (rows, 64), 2), Arrays(f16, rows))
        make = matrices("a·b", 300, 264, 200, (rows, 64, 64))
        call = make(Arrays(f16, rows, on_gpu=True))
        warps = 4 * (rows // 64)
        given = call.kernel.with_schedule(Schedule(block=(rows, 64, 64), warps=warps))
        assert b"wgmma" in program_of(given, *call.arguments).ptx
        check(make, Arrays(f16, rows))
