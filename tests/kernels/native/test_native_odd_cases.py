"""Odd cases as machine code at every level against the interpreter: sizes, strides, masks, infinities, no elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import library as lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_arrays import (
    EDGES,
    MACHINES,
    PRIMES,
    SIZES,
    SPECIAL,
    Array,
    Odd,
    bounds,
    compiled,
    expect_close,
    expect_equal,
    interpreted,
    odd,
)

from tessera import DType, Schedule, ShapeError, bf16, f16, f32, f64, i32, kernel, knobs, tile
from tessera import stdlib as measured
from tessera.tile.calls.function import Kernel


@kernel
def biased_attention(q: Any, k: Any, v: Any, bias: Any):
    """A number for each query and key is added to the scores; −∞ masks. The factor is a power of two, and exact."""
    here = tile.context()
    scale = 2.0 ** -(here.d.bit_length() // 2)
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        extra = tile.load(bias, at=(here.row_start, block.start), shape=(here.m, here.n))
        scores = tile.dot(queries, tile.load(k, block).T) * scale + tile.cast(extra, f32)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def wide_attention(q: Any, k: Any, v: Any):
    """Everything in f64."""
    here = tile.context()
    queries, acc = tile.load(q), tile.zeros((here.m, here.d), f64)
    top, total = tile.full((here.m,), -tile.INF, f64), tile.zeros((here.m,), f64)
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        tile.mask_causal(scores, tile.row_index(), tile.col_index(block))
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return acc / total[:, None]


def later(rows: Any, cols: Any) -> Any:
    """The last rows see nothing, where there are no more columns than rows."""
    return rows < cols


def nothing(rows: Any, cols: Any) -> Any:
    return (rows < 0) & (cols < 0)


def banded(rows: Any, cols: Any) -> Any:
    """Rows from 40 to 90 see nothing, the others two pieces."""
    return ((rows < 40) | (rows > 90)) & ((cols < 20) | ((cols > 70) & (cols <= rows + 64)))


@dataclass(frozen=True)
class Sizes:
    """How many queries and keys there are and how wide they are, or what plays their part; a number; block sizes."""

    s: int
    t: int
    d: int
    number: int
    block: tuple[int, ...]


def heads(new: Odd, n: Sizes, *, modest: bool = False) -> tuple[Array, Array, Array]:
    """Two heads of queries share one of keys and values."""
    q, k = new.scores(2, n.s, n.d, modest=modest), new.scores(1, n.t, n.d, modest=modest)
    return q, k, new(1, n.t, n.d, summed=True, modest=modest)


def scheduled(program: Any, n: Sizes) -> Any:
    return program.with_schedule(Schedule(block=n.block))


def on_a_grid(program: Any, n: Sizes) -> Any:
    """Program instances for the largest sizes, because a grid is part of what is compiled: some have nothing to do."""
    return scheduled(program, n)[-(-300 // n.block[0]), -(-300 // n.block[1])]


def filling(program: Any, *arguments: Any, **static: Any) -> Array:
    """What a kernel makes of its last argument."""
    assert program(*arguments, **static) is None
    return arguments[-1]


def attention(mask: Any) -> Callable[[Odd, Sizes], Any]:
    return lambda new, n: scheduled(lib.attention, n)(*heads(new, n), mask=mask)


# Each calls a kernel with new arrays.
CASES: dict[str, Callable[[Odd, Sizes], Any]] = {
    "saxpy": lambda new, n: scheduled(lib.saxpy, n)(new(n.s, summed=True), new(n.s, summed=True), 1.5),
    "softmax": lambda new, n: scheduled(lib.softmax, n)(new(n.s, n.d)),
    "layernorm": lambda new, n: scheduled(lib.layernorm, n)(
        # A row of equal numbers must be no more than its mean.
        new(2, n.s, n.d, exact=True),
        new(n.d, summed=True),
        new(n.d, summed=True),
    ),
    "rmsnorm": lambda new, n: scheduled(lib.rmsnorm, n)(new(n.s, n.d), new(n.d)),
    "gemm": lambda new, n: filling(
        on_a_grid(lib.gemm, n),
        new(n.s, n.d, summed=True),
        new(n.d, n.t, summed=True),
        new(n.t, summed=True),
        new.target(n.s, n.t),
        epilogue=lib.gelu,
    ),
    "transpose": lambda new, n: filling(on_a_grid(lib.transpose, n), new(n.s, n.t), new.target(n.t, n.s)),
    "attention": attention(lib.everything),
    "causal_attention": attention(lib.causal),
    "later_attention": attention(later),
    "masked_attention": attention(nothing),
    "banded_attention": attention(banded),
    "window_attention": lambda new, n: scheduled(lib.window_attention, n)(*heads(new, n), n.number),
    "prefix_attention": lambda new, n: scheduled(measured.prefix_attention, n)(*heads(new, n), n.number),
    "softcap_attention": lambda new, n: scheduled(lib.softcap_attention, n)(*heads(new, n), cap=5.0),
    # Products and sums are rounded once or twice: of huge scores, another one may then be the largest. Distance makes
    # weights subnormal, which products take for 0: no infinity must meet them.
    "alibi_attention": lambda new, n: scheduled(lib.alibi_attention, n)(
        *heads(new, n, modest=True), new(2, exact=True)
    ),
    "biased_attention": lambda new, n: scheduled(biased_attention, n)(*heads(new, n), new.bias(n.s, n.t)),
    "wide_attention": lambda new, n: scheduled(wide_attention, n)(*heads(new, n)),
    "sigmoid_attention": lambda new, n: scheduled(lib.sigmoid_attention, n)(*heads(new, n), -0.5),
    "mlp": lambda new, n: scheduled(lib.mlp, n)(
        # Hidden units may be 0 or nearly so: no infinity must meet them.
        new(n.s, n.d, summed=True),
        new(n.d, n.t, summed=True),
        new(n.t, n.d, summed=True, modest=True),
    ),
    "histogram": lambda new, n: filling(
        scheduled(lib.histogram, n), new.whole(-2, 9, n.s, dtype=i32), new.target(7, dtype=i32), bins=7
    ),
    "logsumexp": lambda new, n: scheduled(lib.logsumexp, n)(new(n.s, n.t)),
    "rope": lambda new, n: filling(scheduled(lib.rope, n), new(2, n.s, 2 * n.d), new.target(2, n.s, 2 * n.d)),
}
# What a mask hides is taken for finite: where it is not, a NaN may be missing.
MASKED = {name for name in CASES if name.endswith("_attention")} - {"biased_attention", "sigmoid_attention"}
# These have no products, and take f64; the others have sums in f32.
ANY_FLOAT = {"saxpy", "softmax", "layernorm", "rmsnorm", "transpose", "histogram", "logsumexp", "rope"}
NARROW = [f32, bf16, f16]


def test_every_kernel_has_a_case() -> None:
    library = {name for name in dir(lib) if isinstance(getattr(lib, name), Kernel)}
    assert library <= CASES.keys()


def dtypes_of(name: str) -> list[DType]:
    return [f64] if name == "wide_attention" else [*NARROW, f64] if name in ANY_FLOAT else NARROW


def check(name: str, level: str, arrays: Odd, n: Sizes) -> None:
    def call(new: Odd) -> Any:
        return CASES[name](new, n)

    expected, found = interpreted(call, arrays), compiled(call, arrays, level)
    if name in ("histogram", "transpose"):
        expect_equal(found, expected)
        return
    terms = interpreted(call, arrays.positive())
    if name == "logsumexp":  # a logarithm is added
        terms = np.fmax(terms, 1.0)
    # Angles, and what distance adds to scores, grow with the row, and their errors with them.
    beyond = n.s * 2.0**-23 if name in ("rope", "alibi_attention") else 0.0
    if arrays.repeats:  # equal terms are rounded the same way each time, so the errors of a sum do not cancel
        beyond += n.t * 2.0**-24
    work = f32 if name in ANY_FLOAT and arrays.dtype is f64 else arrays.dtype
    overflow, products = arrays.special == "huge", name not in ANY_FLOAT
    allowed = bounds(work, terms, expected, beyond=beyond, products=products, overflow=overflow)
    expect_close(found, expected, allowed, nans_may_be_missing=name in MASKED)


def test_planted_faults_are_seen() -> None:
    expected = np.array([1.0, np.nan, np.inf], np.float32)
    allowed = bounds(f32, expected, expected)
    expect_close(expected, expected, allowed)
    for which, wrong in ((0, 1.00001), (0, np.nan), (0, np.inf), (1, 1.0), (2, -np.inf), (2, np.nan), (2, 3e38)):
        found = expected.copy()
        found[which] = wrong
        with pytest.raises(AssertionError):
            expect_close(found, expected, allowed)

    def spilling(new: Odd) -> Array:
        y = new.target(5, 6)
        memory: Any = y.base
        memory[0, 0] = 1.0  # in front of the first element
        return y

    with pytest.raises(AssertionError, match="wrote between the elements"):
        compiled(spilling, Odd(f32, "whole", "whole", 0, ("late",), 0), MACHINES[-1])


# A compile serves all sizes but the width: the quick tests have one width, element type and schedule to a level.
QUICK: dict[str, tuple[DType, int, tuple[int, ...]]] = {
    "base": (f32, 17, (32, 32, 32)),
    "avx2": (f16, 31, (33, 48, 32)),
    "avx512": (f32, 65, (64, 64, 64)),
    "amx": (bf16, 33, (32, 64, 64)),
    "neon": (f16, 33, (32, 48, 32)),
}
NUMBERS = st.sampled_from([-3, 0, 1, 5, 64, 1000])


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=3)
@given(st.data())
def test_machine_code_gives_what_the_interpreter_gives(name: str, level: str, data: st.DataObject) -> None:
    dtype, width, block = QUICK[level]
    arrays = data.draw(odd(st.just(dtype if dtype in dtypes_of(name) else f64)))
    check(name, level, arrays, data.draw(st.builds(Sizes, SIZES, SIZES, st.just(width), NUMBERS, st.just(block))))


@pytest.mark.quick(8)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_special_values(name: str, level: str) -> None:
    dtype, width, block = QUICK[level]
    for special, which in product(SPECIAL, range(2)):
        arrays = Odd(dtype if dtype in dtypes_of(name) else f64, "normal", special, which, ("plain",), 3)
        check(name, level, arrays, Sizes(19, 70, width, 5, block))


WIDTHS = sorted({*EDGES[::2], *PRIMES[3::6]})  # each of them is a compile
BLOCKS = [(32, 32, 32), (64, 64, 64), (24, 96, 48)]


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=200)
@given(st.data())
def test_machine_code_always_gives_what_the_interpreter_gives(name: str, level: str, data: st.DataObject) -> None:
    arrays = data.draw(odd(st.sampled_from(dtypes_of(name))))
    widths, schedules = st.sampled_from(WIDTHS), st.sampled_from(BLOCKS)
    check(name, level, arrays, data.draw(st.builds(Sizes, SIZES, SIZES, widths, NUMBERS, schedules)))


PLAIN: dict[str, Any] = {"ordinary": "normal", "special": "normal", "which": 0, "layouts": ("plain",)}


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
def test_every_size(level: str) -> None:
    dtype, width, block = QUICK[level]
    for size in range(1, 301):
        arrays = Odd(dtype, **PLAIN, seed=size)
        for name in ("causal_attention", "gemm", "mlp"):
            check(name, level, arrays, Sizes(size, 301 - size, width, 0, block))


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", ["causal_attention", "layernorm"])
def test_every_width(name: str, level: str) -> None:
    dtype, _, block = QUICK[level]
    for width in range(1, 301):
        check(name, level, Odd(dtype, **PLAIN, seed=width), Sizes(41, 67, width, 0, block))


@pytest.mark.quick(8)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_of_no_rows_and_no_keys_all_agree(name: str, level: str) -> None:
    dtype, width, block = QUICK[level]
    arrays = Odd(dtype if dtype in dtypes_of(name) else f64, **PLAIN, seed=1)
    for s, t in ((0, 5), (5, 0), (0, 0)):
        check(name, level, arrays, Sizes(s, t, width, 3, block))


# Tiles have elements; these make none of the width.
WITHOUT_WIDTH = {"saxpy", "softmax", "gemm", "transpose", "histogram", "logsumexp"}


@pytest.mark.parametrize("name", CASES)
def test_of_no_width_all_agree(name: str) -> None:
    dtype, _, block = QUICK[MACHINES[-1]]
    arrays, n = Odd(dtype if dtype in dtypes_of(name) else f64, **PLAIN, seed=1), Sizes(5, 7, 0, 3, block)
    if name in WITHOUT_WIDTH:
        check(name, MACHINES[-1], arrays, n)
        return
    for backend in ("interpreter", "cpu"):
        with knobs.backend.using(backend), pytest.raises(ShapeError, match="a tile's size must be positive, got 0"):
            CASES[name](arrays, n)
