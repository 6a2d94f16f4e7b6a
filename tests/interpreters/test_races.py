"""Checks the race detector: correct kernels are clean at any size, planted races are caught with both witnesses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera import f32, i8, i32, kernel, tile
from tessera.errors import RaceError
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text

Array = np.ndarray[Any, np.dtype[Any]]
RACES = Checks(races=True)
B = 4


def blocks(n: int, block: int = B) -> int:
    return -(-n // block)


# The correct kernels. Arrays are plain positional arguments, written in place.


@kernel
def copy(x: Any, y: Any) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * B], shape=[B]), at=[p * B])


@kernel
def transpose(x: Any, y: Any) -> None:
    i, j = tile.program_id(0) * B, tile.program_id(1) * B
    tile.store(y, tile.transpose(tile.load(x, at=[i, j], shape=[B, B])), at=[j, i])


@kernel
def row_sum(x: Any, y: Any) -> None:
    p = tile.program_id(0) * B
    tile.store(y, tile.sum(tile.load(x, at=[p, 0], shape=[B, 8]), 1), at=[p])


@kernel
def histogram(x: Any, counts: Any) -> None:
    p = tile.program_id(0) * B
    values = tile.load(x, at=[p], shape=[B], pad=-1)
    hits = values[:, None] == tile.iota((1, 8), 1, 0, i32)
    tile.atomic_add(counts, tile.sum(tile.cast(hits, i32), 0), at=[0])


@kernel
def matmul(a: Any, b: Any, c: Any) -> None:
    i, j = tile.program_id(0) * B, tile.program_id(1) * B
    total = tile.zeros((B, B), f32)
    for k in tile.range(0, a.shape[1], B):
        total = tile.dot(tile.load(a, at=[i, k], shape=[B, B]), tile.load(b, at=[k, j], shape=[B, B]), total)
    tile.store(c, total, at=[i, j])


@kernel
def saxpy(x: Any, y: Any, a: float) -> None:
    p = tile.program_id(0) * B
    tile.store(y, a * tile.load(x, at=[p], shape=[B]) + tile.load(y, at=[p], shape=[B]), at=[p])


@kernel
def rope(x: Any, angle: Any, y: Any) -> None:
    p = tile.program_id(0) * B
    low, high = tile.load(x, at=[p, 0], shape=[B, 2]), tile.load(x, at=[p, 2], shape=[B, 2])
    angles = tile.load(angle, at=[p, 0], shape=[B, 2])
    tile.store(y, low * tile.cos(angles) - high * tile.sin(angles), at=[p, 0])
    tile.store(y, low * tile.sin(angles) + high * tile.cos(angles), at=[p, 2])


@kernel
def prefix(x: Any, y: Any, half: int) -> None:
    start = tile.program_id(0) * half
    tile.store(y, tile.load(x, at=[start], shape=[1]), at=[start])
    for i in tile.range(start + 1, start + half):
        tile.store(y, tile.load(y, at=[i - 1], shape=[1]) + tile.load(x, at=[i], shape=[1]), at=[i])


@kernel
def scale(x: Any) -> None:
    p = tile.program_id(0) * B
    tile.store(x, 2.0 * tile.load(x, at=[p], shape=[B]), at=[p])


@kernel
def backwards(x: Any, y: Any, n: int) -> None:
    p = tile.program_id(0)
    for i in tile.range(p * B, tile.minimum(p * B + B, n)):
        tile.store(y, tile.load(x, at=[i], shape=[1]), at=[n - 1 - i])


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def names_of(program: Any) -> list[str]:
    """The parameters of a kernel."""
    return list(inspect.signature(program.function).parameters)


def clean(program: Any, *arguments: Any) -> None:
    """Runs under every check, and agrees with the oracle that there is no race."""
    trace = Trace()
    with checking(Checks.all(), trace=trace):
        program(*arguments)
    assert not conflicts(trace, arguments, names_of(program))


VERBS = {"read": "reads", "write": "writes", "atomic": "updates atomically"}


def conflicts(trace: Trace, arguments: Sequence[Any], names: Sequence[str]) -> set[tuple[str, str]]:
    """The oracle: every two program instances that conflict at a byte of memory, and at which elements of what."""
    touched: dict[int, set[tuple[tuple[int, ...], str, str]]] = {}
    for access in trace:
        array: Array = arguments[access.argument]
        steps = [stride // array.itemsize for stride in array.strides]
        indices = np.stack(np.meshgrid(*map(np.arange, array.shape), indexing="ij"), -1).reshape(-1, array.ndim)
        found = dict(zip((indices @ steps)[::-1].tolist(), indices[::-1].tolist(), strict=True))
        for offset in access.offsets.tolist():
            use = access.program, access.kind, f"{names[access.argument]}{found[offset]}"
            for byte in range(array.itemsize):
                touched.setdefault(array.ctypes.data + offset * array.itemsize + byte, set()).add(use)
    return {
        (told(first), told(second))
        for users in touched.values()
        for first, second in combinations(sorted(users), 2)
        if first[0] != second[0] and (first[1], second[1]) not in {("read", "read"), ("atomic", "atomic")}
    }


def told(use: tuple[tuple[int, ...], str, str]) -> str:
    """One side of a conflict, as an error tells it."""
    program, kind, element = use
    return f"{list(program)} {VERBS[kind]} {element}"


SIZES = st.integers(1, 19)


@given(SIZES)
def test_copies_scales_and_sums_are_clean(n: int) -> None:
    x, y = floats(n), zeros(n)
    clean(copy[blocks(n)], x, y)
    assert (y == x).all()
    clean(saxpy[blocks(n)], x, y, 2.0)
    np.testing.assert_allclose(y, 3 * x, rtol=1e-6)
    clean(backwards[blocks(n)], x, y, n)
    assert (y == x[::-1]).all()
    clean(scale[blocks(n)], x)
    rows, sums = floats(n, 8), zeros(n)
    clean(row_sum[blocks(n)], rows, sums)
    np.testing.assert_allclose(sums, rows.sum(1), rtol=1e-5, atol=1e-6)


@given(SIZES, SIZES)
def test_transposes_are_clean(m: int, n: int) -> None:
    x, y = floats(m, n), zeros(n, m)
    clean(transpose[blocks(m), blocks(n)], x, y)
    assert (y == x.T).all()


@given(SIZES)
def test_histograms_are_clean(n: int) -> None:
    x, counts = np.arange(n, dtype=np.int32) % 8, np.zeros(8, np.int32)
    clean(histogram[blocks(n)], x, counts)
    assert counts.tolist() == np.bincount(x, minlength=8).tolist()


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_products_are_clean(m: int, n: int, k: int) -> None:
    a, b, c = floats(m, k), floats(k, n), zeros(m, n)
    clean(matmul[blocks(m), blocks(n)], a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


@given(SIZES)
def test_rotations_and_prefixes_are_clean(n: int) -> None:
    x, angle, y = floats(n, 4), floats(n, 2), zeros(n, 4)
    clean(rope[blocks(n)], x, angle, y)
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), np.linalg.norm(x, axis=1), rtol=1e-5)
    line, sums = floats(2 * n), zeros(2 * n)
    clean(prefix[2], line, sums, n)
    np.testing.assert_allclose(sums, line.reshape(2, n).cumsum(1).ravel(), rtol=1e-4, atol=1e-5)


# The same with planted races. `first` and `second` mark the lines of the two witnesses.


@kernel
def copy_without_program(x: Any, y: Any) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * B], shape=[B]), at=[0])  # both


@kernel
def copy_overlapping(x: Any, y: Any) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * B], shape=[B]), at=[p * (B - 1)])  # both


@kernel
def copy_in_pairs(x: Any, y: Any) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * B], shape=[B]), at=[p // 2 * B])  # both


@kernel
def copy_around(x: Any, y: Any) -> None:
    p = tile.program_id(0)
    tile.store(y, tile.load(x, at=[p * B], shape=[B]), at=[p % 2 * B])  # both


@kernel
def transpose_to_the_diagonal(x: Any, y: Any) -> None:
    i, j = tile.program_id(0) * B, tile.program_id(1) * B
    tile.store(y, tile.transpose(tile.load(x, at=[i, j], shape=[B, B])), at=[i, i])  # both


@kernel
def transpose_in_place(x: Any) -> None:
    i, j = tile.program_id(0) * B, tile.program_id(1) * B
    block = tile.load(x, at=[i, j], shape=[B, B])  # second
    tile.store(x, tile.transpose(block), at=[j, i])  # first


@kernel
def row_sum_overlapping(x: Any, y: Any) -> None:
    p = tile.program_id(0) * (B - 1)
    tile.store(y, tile.sum(tile.load(x, at=[p, 0], shape=[B, 8]), 1), at=[p])  # both


@kernel
def row_sum_by_columns(x: Any, y: Any) -> None:
    p, q = tile.program_id(0) * B, tile.program_id(1) * B
    tile.store(y, tile.sum(tile.load(x, at=[p, q], shape=[B, B]), 1), at=[p])  # both


@kernel
def row_sum_accumulated(x: Any, y: Any) -> None:
    p, q = tile.program_id(0) * B, tile.program_id(1) * B
    part = tile.sum(tile.load(x, at=[p, q], shape=[B, B]), 1)
    total = part + tile.load(y, at=[p], shape=[B])  # second
    tile.store(y, total, at=[p])  # first


@kernel
def histogram_stored(x: Any, counts: Any) -> None:
    p = tile.program_id(0) * B
    hits = tile.load(x, at=[p], shape=[B], pad=-1)[:, None] == tile.iota((1, 8), 1, 0, i32)
    tile.store(counts, tile.sum(tile.cast(hits, i32), 0), at=[0])  # both


@kernel
def histogram_by_hand(x: Any, counts: Any) -> None:
    p = tile.program_id(0) * B
    hits = tile.load(x, at=[p], shape=[B], pad=-1)[:, None] == tile.iota((1, 8), 1, 0, i32)
    before = tile.load(counts, at=[0], shape=[8])  # second
    tile.store(counts, before + tile.sum(tile.cast(hits, i32), 0), at=[0])  # first


@kernel
def histogram_read_back(x: Any, counts: Any, seen: Any) -> None:
    p = tile.program_id(0)
    hits = tile.load(x, at=[p * B], shape=[B], pad=-1)[:, None] == tile.iota((1, 8), 1, 0, i32)
    tile.atomic_add(counts, tile.sum(tile.cast(hits, i32), 0), at=[0])  # second
    tile.store(seen, tile.load(counts, at=[0], shape=[8]), at=[p * 8])  # first


@kernel
def histogram_cleared_by_one(x: Any, counts: Any) -> None:
    p = tile.program_id(0)
    hits = tile.load(x, at=[p * B], shape=[B], pad=-1)[:, None] == tile.iota((1, 8), 1, 0, i32)
    if p == 0:
        tile.store(counts, tile.zeros((8,), i32), at=[0])  # first
    tile.atomic_add(counts, tile.sum(tile.cast(hits, i32), 0), at=[0])  # second


@kernel
def matmul_split(a: Any, b: Any, c: Any) -> None:
    i, j, k = tile.program_id(0) * B, tile.program_id(1) * B, tile.program_id(2) * B
    part = tile.dot(tile.load(a, at=[i, k], shape=[B, B]), tile.load(b, at=[k, j], shape=[B, B]))
    tile.store(c, part, at=[i, j])  # both


@kernel
def matmul_wrong_axis(a: Any, b: Any, c: Any) -> None:
    i, j = tile.program_id(0) * B, tile.program_id(0) * B + tile.program_id(1) * 0
    part = tile.dot(tile.load(a, at=[i, 0], shape=[B, B]), tile.load(b, at=[0, j], shape=[B, B]))
    tile.store(c, part, at=[i, j])  # both


@kernel
def matmul_short_step(a: Any, b: Any, c: Any) -> None:
    i, j = tile.program_id(0) * 2, tile.program_id(1) * B
    part = tile.dot(tile.load(a, at=[i, 0], shape=[B, B]), tile.load(b, at=[0, j], shape=[B, B]))
    tile.store(c, part, at=[i, j])  # both


@kernel
def saxpy_reading_ahead(x: Any, y: Any, a: float) -> None:
    p = tile.program_id(0) * B
    ahead = tile.load(y, at=[p + 1], shape=[B])  # first
    tile.store(y, a * tile.load(x, at=[p], shape=[B]) + ahead, at=[p])  # second


@kernel
def saxpy_reading_behind(x: Any, y: Any, a: float) -> None:
    p = tile.program_id(0) * B
    behind = tile.load(y, at=[p - 1], shape=[B])  # second
    tile.store(y, a * tile.load(x, at=[p], shape=[B]) + behind, at=[p])  # first


@kernel
def rope_short_step(x: Any, angle: Any, y: Any) -> None:
    p = tile.program_id(0) * 2
    low, angles = tile.load(x, at=[p, 0], shape=[B, 2]), tile.load(angle, at=[p, 0], shape=[B, 2])
    tile.store(y, low * tile.cos(angles), at=[p, 0])  # both


@kernel
def rope_in_place(x: Any, angle: Any) -> None:
    p = tile.program_id(0) * B
    low, angles = tile.load(x, at=[p, 0], shape=[B, 2]), tile.load(angle, at=[p, 0], shape=[B, 2])
    high = tile.load(x, at=[p + 1, 2], shape=[B, 2])  # first
    tile.store(x, low * tile.cos(angles) - high * tile.sin(angles), at=[p, 0])
    tile.store(x, low * tile.sin(angles) + high * tile.cos(angles), at=[p, 2])  # second


@kernel
def prefix_across(x: Any, y: Any, half: int) -> None:
    start = tile.program_id(0) * half
    for i in tile.range(start, start + half):
        before = tile.load(y, at=[i - 1], shape=[1])  # second
        tile.store(y, before + tile.load(x, at=[i], shape=[1]), at=[i])  # first


@kernel
def prefix_one_too_many(x: Any, y: Any, half: int) -> None:
    start = tile.program_id(0) * half
    tile.store(y, tile.load(x, at=[start], shape=[1]), at=[start])  # second
    for i in tile.range(start + 1, start + half + 1):
        before = tile.load(y, at=[i - 1], shape=[1])
        tile.store(y, before + tile.load(x, at=[i], shape=[1]), at=[i])  # first


@kernel
def scale_overlapping(x: Any) -> None:
    p = tile.program_id(0) * (B - 1)
    block = tile.load(x, at=[p], shape=[B])  # second
    tile.store(x, 2.0 * block, at=[p])  # first


@kernel
def scale_by_the_first(x: Any) -> None:
    p = tile.program_id(0) * B
    by = tile.load(x, at=[0], shape=[1])  # second
    tile.store(x, by * tile.load(x, at=[p], shape=[B]), at=[p])  # first


@kernel
def backwards_in_place(x: Any, n: int) -> None:
    p = tile.program_id(0)
    for i in tile.range(p * B, tile.minimum(p * B + B, n)):
        element = tile.load(x, at=[i], shape=[1])  # second
        tile.store(x, element, at=[n - 1 - i])  # first


@kernel
def backwards_short_step(x: Any, y: Any, n: int) -> None:
    p = tile.program_id(0)
    for i in tile.range(p * B, tile.minimum(p * B + B, n)):
        tile.store(y, tile.load(x, at=[i], shape=[1]), at=[n - 1 - i + p])  # both


def integers(n: int) -> Array:
    return np.arange(n, dtype=np.int32)


Case = tuple[Any, tuple[int, ...], Callable[[], list[Any]], str, str]
MUTANTS: list[Case] = [
    (copy_without_program, (2,), lambda: [floats(8), zeros(8)], "[0] writes y[0]", "[1] writes y[0]"),
    (copy_overlapping, (2,), lambda: [floats(7), zeros(7)], "[0] writes y[3]", "[1] writes y[3]"),
    (copy_in_pairs, (4,), lambda: [floats(16), zeros(16)], "[0] writes y[0]", "[1] writes y[0]"),
    (copy_around, (3,), lambda: [floats(12), zeros(12)], "[0] writes y[0]", "[2] writes y[0]"),
    (
        transpose_to_the_diagonal,
        (2, 2),
        lambda: [floats(8, 8), zeros(8, 8)],
        "[0, 0] writes y[0, 0]",
        "[0, 1] writes y[0, 0]",
    ),
    (transpose_in_place, (2, 2), lambda: [floats(8, 7)], "[0, 1] writes x[4, 0]", "[1, 0] reads x[4, 0]"),
    (row_sum_overlapping, (3,), lambda: [floats(10, 8), zeros(10)], "[0] writes y[3]", "[1] writes y[3]"),
    (row_sum_by_columns, (2, 2), lambda: [floats(7, 8), zeros(7)], "[0, 0] writes y[0]", "[0, 1] writes y[0]"),
    (row_sum_accumulated, (2, 2), lambda: [floats(7, 8), zeros(7)], "[0, 0] writes y[0]", "[0, 1] reads y[0]"),
    (histogram_stored, (2,), lambda: [integers(8), integers(8)], "[0] writes counts[0]", "[1] writes counts[0]"),
    (histogram_by_hand, (2,), lambda: [integers(8), integers(8)], "[0] writes counts[0]", "[1] reads counts[0]"),
    (
        histogram_read_back,
        (2,),
        lambda: [integers(8), integers(8), integers(16)],
        "[0] reads counts[0]",
        "[1] updates atomically counts[0]",
    ),
    (
        histogram_cleared_by_one,
        (2,),
        lambda: [integers(8), integers(8)],
        "[0] writes counts[0]",
        "[1] updates atomically counts[0]",
    ),
    (
        matmul_split,
        (1, 1, 2),
        lambda: [floats(4, 8), floats(8, 3), zeros(4, 3)],
        "[0, 0, 0] writes c[0, 0]",
        "[0, 0, 1] writes c[0, 0]",
    ),
    (
        matmul_wrong_axis,
        (1, 2),
        lambda: [floats(4, 4), floats(4, 8), zeros(4, 8)],
        "[0, 0] writes c[0, 0]",
        "[0, 1] writes c[0, 0]",
    ),
    (
        matmul_short_step,
        (2, 1),
        lambda: [floats(6, 4), floats(4, 4), zeros(6, 4)],
        "[0, 0] writes c[2, 0]",
        "[1, 0] writes c[2, 0]",
    ),
    (saxpy_reading_ahead, (2,), lambda: [floats(8), zeros(8), 2.0], "[0] reads y[4]", "[1] writes y[4]"),
    (saxpy_reading_behind, (2,), lambda: [floats(8), zeros(8), 2.0], "[0] writes y[3]", "[1] reads y[3]"),
    (
        rope_short_step,
        (2,),
        lambda: [floats(6, 4), floats(6, 2), zeros(6, 4)],
        "[0] writes y[2, 0]",
        "[1] writes y[2, 0]",
    ),
    (rope_in_place, (2,), lambda: [floats(8, 4), floats(8, 2)], "[0] reads x[4, 2]", "[1] writes x[4, 2]"),
    (prefix_across, (2,), lambda: [floats(10), zeros(10), 5], "[0] writes y[4]", "[1] reads y[4]"),
    (prefix_one_too_many, (2,), lambda: [floats(10), zeros(10), 5], "[0] writes y[5]", "[1] writes y[5]"),
    (scale_overlapping, (2,), lambda: [floats(7)], "[0] writes x[3]", "[1] reads x[3]"),
    (scale_by_the_first, (2,), lambda: [floats(8)], "[0] writes x[0]", "[1] reads x[0]"),
    (backwards_in_place, (2,), lambda: [floats(7), 7], "[0] writes x[4]", "[1] reads x[4]"),
    (backwards_short_step, (2,), lambda: [floats(8), zeros(8), 8], "[0] writes y[4]", "[1] writes y[4]"),
]


def marked_line(function: Any, mark: str) -> str:
    """Where a comment marks a line of a function, as errors write it."""
    lines, start = inspect.getsourcelines(function)
    (found,) = (start + at for at, line in enumerate(lines) if line.rstrip().endswith((f"# {mark}", "# both")))
    return f"{inspect.getsourcefile(function)}:{found}:"


@pytest.mark.parametrize("case", MUTANTS, ids=lambda case: case[0].__name__)
def test_planted_races_are_caught_with_both_witnesses(case: Case) -> None:
    program, grid, make, first, second = case
    trace, arguments = Trace(), make()
    with checking(Checks(), trace=trace):
        program[grid](*arguments)
    assert (first, second) in conflicts(trace, arguments, names_of(program))
    with pytest.raises(RaceError) as caught, checking(RACES):
        program[grid](*make())
    for witness, line, mark in zip((first, second), caught.value.story, ("first", "second"), strict=True):
        assert line.startswith(f"program instance {witness} at {marked_line(program.function, mark)}")
    assert str(caught.value.span).startswith(marked_line(program.function, "second"))


def strided(stride: int, offset: str = "%p") -> Any:
    """Two program instances that each write three elements of a view of their own."""
    view = "!tile.view<1, f32, global>"
    return text.read(
        f"""tile.func @k(%y: {view}) outputs 1 shapes [[N]] grid [2] {{
  %zero = arith.constant 0 : index
  %stride = arith.constant {stride} : index
  %size = arith.constant 3 : index
  %p = tile.program_id 0
  %q = arith.addi %p, %p : index
  %v = tile.view %y offset {offset} sizes [%size] strides [%stride] : {view} -> {view}
  %one = arith.constant 1.0 : f32
  %t = tile.full %one : tensor<3xf32>
  tile.store %t, %v[%zero] : tensor<3xf32>, {view}
  tile.return
}}"""
    )


def test_views_that_interleave_are_clean() -> None:
    y = zeros(6)
    run_kernel(strided(2), "k", [y], checks=Checks.all())
    assert (y == 1).all()


@pytest.mark.parametrize(
    ("stride", "offset", "place"), [(1, "%p", 1), (0, "%zero", 0), (2, "%q", 2), (2, "%zero", 0), (1, "%q", 2)]
)
def test_views_that_overlap_are_caught(stride: int, offset: str, place: int) -> None:
    with pytest.raises(RaceError) as caught:
        run_kernel(strided(stride, offset), "k", [zeros(8)], checks=RACES)
    race = f"program instances [0] and [1] race: the first writes y[{place}], the second writes it"
    assert caught.value.message == race
    assert caught.value.story == (
        f"program instance [0] writes y[{place}] at <text>:10:3",
        f"program instance [1] writes y[{place}] at <text>:10:3",
    )


def test_arguments_that_share_memory_race_with_each_other() -> None:
    line = floats(12)
    with pytest.raises(RaceError) as caught, checking(RACES):
        copy[2](line[:8], line[2:10])
    assert caught.value.message == "program instances [0] and [1] race: the first writes y[2], the second reads x[4]"
    with checking(RACES):
        copy[2](line[:8], line[:8])
        copy[1](line[:4], line[2:6])
        copy[1](line[0:8:2], line[1:8:2])
        copy[3](line[::-1], line[::-1])


def test_elements_of_other_widths_share_memory() -> None:
    words = np.zeros(8, np.int32)
    bytes_ = words.view(np.int8)
    with pytest.raises(RaceError, match=r"the first writes y\[0\], the second writes z\[3\]"), checking(RACES):
        words_and_bytes[2](words, bytes_)


@kernel
def words_and_bytes(y: Any, z: Any) -> None:
    if tile.program_id(0) == 0:
        tile.store(y, tile.zeros((1,), i32), at=[0])
    else:
        tile.store(z, tile.zeros((1,), i8), at=[3])


def test_a_race_tells_what_to_do() -> None:
    with pytest.raises(RaceError) as caught, checking(RACES):
        saxpy_reading_behind[2](floats(8), zeros(8), 2.0)
    lines = str(caught.value).splitlines()
    assert lines[0] == "program instances [0] and [1] race: the first writes y[3], the second reads it"
    assert lines[2].endswith("|     behind = tile.load(y, at=[p - 1], shape=[B])  # second")
    assert lines[3].endswith("|" + " " * 14 + "^" * len("tile.load(y, at=[p - 1], shape=[B])"))
    assert lines[-1] == (
        "  help:  give each program instance its own elements (check offsets and tile.program_id), "
        "or add to them: tile.atomic_add, tile.scatter_add"
    )


def test_without_the_check_a_race_runs() -> None:
    y = zeros(8)
    copy_without_program[2](floats(8), y)
    with checking(Checks(bounds=True, uninitialised=True, nonfinite="all", overflow=True, padding=True)):
        copy_without_program[2](floats(8), y)
    assert (y[:4] == floats(8)[4:]).all()
