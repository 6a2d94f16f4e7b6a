"""Checks loads, stores, atomics and views: outside, overlapping, reversed and empty, on all types."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from reference_values import (
    DTYPES,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Array,
    Draw,
    Index,
    arrays,
    assert_same,
    indexed,
    laid_out,
    numbers_of,
    rounded,
    shapes,
    stored,
    values,
)
from tile_programs import constants, covers, examples, kernel, tensor, view, zeros

from tessera.dtypes.types import DType, Kind, bool_, f16, f32, i32, i64
from tessera.errors import ShapeError
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile

ZERO = "%zero = arith.constant 0 : index\n"


def placed(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Sizes of a view, sizes of a tile, and where the tile lies: before, across, inside, beyond."""
    sizes = draw(shapes(0, 2))
    extents = draw(st.tuples(*[st.sampled_from([1, 2, 4, 7])] * len(sizes)))
    return sizes, extents, draw(st.tuples(*[st.integers(-8, 8)] * len(sizes)))


def inside(index: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]) -> Index | None:
    """The place in a view of an element of a tile, or None."""
    place = tuple(offset + at for offset, at in zip(offsets, index, strict=True))
    return place if all(0 <= at < size for at, size in zip(place, sizes, strict=True)) else None


@covers(tile.LoadOp)
@examples(50)
def test_a_load_gives_the_pad_outside_the_view(data: st.DataObject) -> None:
    draw: Draw = data.draw
    dtype, (sizes, extents, offsets) = draw(st.sampled_from(DTYPES)), placed(draw)
    pad = draw(st.sampled_from([None, 1.0, 0.0, *([-2.0] if dtype.kind in (Kind.INT, Kind.FLOAT) else [])]))
    x, y = arrays(draw, sizes, dtype), np.zeros(extents, dtype.storage)
    (lines, names), type_ = constants("at", offsets), view(len(sizes), dtype)
    body = (
        f"{ZERO}{lines}%t = tile.load %0[{names}]{'' if pad is None else f' pad {pad}'} : {type_}"
        f" -> {tensor(extents, dtype)}\n"
        f"tile.store %t, %1[{zeros(len(sizes))}] : {tensor(extents, dtype)}, {type_}"
    )
    kept = x.copy()
    run_kernel(kernel(body, type_, type_), "k", [x, y])

    def element(index: Index) -> Any:
        place = inside(index, offsets, sizes)
        return stored(pad or 0.0, dtype) if place is None else x[place]

    assert_same(y, indexed(extents, dtype, element))
    assert_same(x, kept)


@covers(tile.LoadBoxesOp)
@examples(50)
def test_boxes_lie_one_behind_the_other(data: st.DataObject) -> None:
    """Rows of each box, zeros from an end on and outside of the view."""
    draw: Draw = data.draw
    dtype, sizes = draw(st.sampled_from(DTYPES)), (draw(st.integers(1, 6)), draw(st.integers(1, 5)))
    starts = draw(st.lists(st.tuples(st.integers(-3, 7), st.integers(-2, 6)), min_size=1, max_size=3))
    end = draw(st.none() | st.integers(-1, 2 * len(starts) + 1))
    rows, x = 2 * len(starts), arrays(draw, sizes, dtype)
    y, type_, made = np.ones((rows, 3), dtype.storage), view(2, dtype), tensor((rows, 3), dtype)
    (lines, names) = constants("at", [one for start in starts for one in start])
    (more, last) = constants("end", [] if end is None else [end])
    until = f" until {last}" if end is not None else ""
    body = f"{ZERO}{lines}{more}%t = tile.load_boxes %0[{names}] along [0, 1]{until} : {type_} -> {made}\n"
    run_kernel(kernel(body + f"tile.store %t, %1[{zeros(2)}] : {made}, {type_}", type_, type_), "k", [x, y])
    expected = np.zeros_like(y)
    for row in range(rows):
        for column in range(3):
            i, j = starts[row // 2][0] + row % 2, starts[row // 2][1] + column
            if 0 <= i < sizes[0] and 0 <= j < sizes[1] and (end is None or row < end):
                expected[row, column] = x[i, j]
    assert np.array_equal(y, expected)


@covers(tile.ReadOp)
@examples(50)
def test_a_read_looks_at_one_place_for_each_element(data: st.DataObject) -> None:
    draw: Draw = data.draw
    dtype, sizes = draw(st.sampled_from(DTYPES)), (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    rows, columns = (generator.integers(0, size, (2, 3)) for size in sizes)
    x, y = arrays(draw, sizes, dtype), np.zeros((2, 3), dtype.storage)
    indices, type_, made = view(2, i64), view(2, dtype), tensor((2, 3), dtype)
    looked = "tensor<2x3xi64>"
    body = ZERO + "".join(
        f"%{name} = tile.load %{number}[{zeros(2)}] : {indices} -> {looked}\n" for number, name in ((2, "i"), (3, "j"))
    )
    body += f"%t = tile.read %0[%i, %j] : {type_}, {looked}, {looked} -> {made}\n"
    body += f"tile.store %t, %1[{zeros(2)}] : {made}, {type_}"
    run_kernel(kernel(body, type_, type_, indices, indices), "k", [x, y, rows, columns])
    assert_same(y, x[rows, columns])


@covers(tile.WriteOp, tile.AtomicAtOp)
@examples(50)
def test_a_write_and_an_atomic_touch_the_places_that_are_there(data: st.DataObject) -> None:
    draw: Draw = data.draw
    op, masked = (
        draw(st.sampled_from(["tile.write", "tile.atomic_at<sum>", "tile.atomic_at<max>"])),
        draw(st.booleans()),
    )
    sizes = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    flat = (
        random.permutation((sizes[0] + 4) * (sizes[1] + 4))[:12] if op == "tile.write" else random.integers(0, 81, 12)
    )
    rows, columns = (
        part.reshape(3, 4) - 2
        for part in np.unravel_index(flat % ((sizes[0] + 4) * (sizes[1] + 4)), (sizes[0] + 4, sizes[1] + 4))
    )
    x, y = random.integers(-9, 9, (3, 4)), random.integers(-9, 9, sizes)
    kept, type_, made = y.copy(), view(2, i64), tensor((3, 4), i64)
    body = ZERO + "".join(
        f"%{name} = tile.load %{number}[{zeros(2)}] : {type_} -> {made}\n"
        for number, name in ((0, "t"), (2, "i"), (3, "j"))
    )
    body += f"%m = tile.ew<lt> %i, %j : {made}, {made} -> tensor<3x4xi1>\n"
    mask = "mask %m : tensor<3x4xi1> " if masked else ""
    body += f"{op} %t, %1[%i, %j] {mask}: {made}, {type_}, {made}, {made}"
    run_kernel(kernel(body, type_, type_, type_, type_), "k", [x, y, rows, columns])
    for row, column, value in zip(rows.ravel(), columns.ravel(), x.ravel(), strict=True):
        if 0 <= row < sizes[0] and 0 <= column < sizes[1] and (row < column or not masked):
            old = kept[row, column]
            kept[row, column] = {"write": value, "sum": old + value, "max": max(old, value)}[
                op.rstrip(">").split(".")[-1].split("<")[-1]
            ]
    assert_same(y, kept)


@covers(tile.ItemOp)
@examples(20)
def test_an_item_is_one_element_as_a_scalar(data: st.DataObject) -> None:
    draw: Draw = data.draw
    x = np.random.default_rng(draw(st.integers(0, 99))).integers(-9, 9, (3, 4))
    place, y = (draw(st.integers(0, 2)), draw(st.integers(0, 3))), np.zeros(2, np.int64)
    lines, names = constants("at", place)
    body = (
        f"{ZERO}{lines}%s = tile.item %0[{names}] : {view(2, i64)} -> i64\n"
        f"%t = tile.full %s : tensor<2xi64>\ntile.store %t, %1[{zeros(1)}] : tensor<2xi64>, {view(1, i64)}"
    )
    run_kernel(kernel(body, view(2, i64), view(1, i64)), "k", [x, y])
    assert_same(y, np.full(2, x[place]))


def put(how: str, x: Array, y: Array, dtype: DType, offsets: Sequence[int]) -> None:
    """Runs `how` on the whole of `x` and the view `y` at some offsets."""
    (lines, names), type_ = constants("at", offsets), view(x.ndim, dtype)
    body = (
        f"{ZERO}{lines}%t = tile.load %0[{zeros(x.ndim)}] : {type_} -> {tensor(x.shape, dtype)}\n"
        f"{how} %t, %1[{names}] : {tensor(x.shape, dtype)}, {type_}"
    )
    run_kernel(kernel(body, type_, type_), "k", [x, y])


@covers(tile.StoreOp)
@examples(50)
def test_a_store_leaves_out_what_is_outside_the_view(data: st.DataObject) -> None:
    draw: Draw = data.draw
    dtype, (sizes, extents, offsets) = draw(st.sampled_from(DTYPES)), placed(draw)
    # With a margin around it, to see that nothing beside the view is touched.
    wide = values(draw, [size + 6 for size in sizes], dtype)
    whole = np.array(laid_out(wide, draw(st.sampled_from(LAYOUTS[:-1]))), order="K")
    middle = whole[(*(slice(3, -3) for _ in sizes), ...)]
    x, expected = values(draw, extents, dtype), whole.copy()
    for index in product(*map(range, extents)):
        if (place := inside(index, offsets, sizes)) is not None:
            expected[tuple(at + 3 for at in place)] = x[index]
    put("tile.store", x, middle, dtype, offsets)
    assert_same(whole, expected)


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "prod": operator.mul,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@covers(tile.AtomicOp)
@examples(60)
def test_atomics_combine_with_what_is_there(data: st.DataObject) -> None:
    draw: Draw = data.draw
    kind = draw(st.sampled_from([*COMBINE]))
    bits = kind in ("and", "or", "xor")
    dtype = draw(st.sampled_from([*INTEGERS, bool_] if bits else [*FLOATS, *INTEGERS]))
    sizes, extents, offsets = placed(draw)
    x = values(draw, extents, dtype, tame=True)
    y = laid_out(values(draw, sizes, dtype, tame=True), draw(st.sampled_from(LAYOUTS[:-1])))
    expected = y.copy()
    for index in product(*map(range, extents)):
        if (place := inside(index, offsets, sizes)) is not None:
            joined = COMBINE[kind](*numbers_of(np.array([expected[place], x[index]])))
            if dtype.is_float:
                joined = rounded(rounded(joined, f32) if dtype.bits < 32 else joined, dtype)
            expected[place] = stored(joined, dtype)
    put(f"tile.atomic<{kind}>", x, y, dtype, offsets)
    assert_same(y, expected)


@pytest.mark.parametrize(
    ("strides", "expected"),
    [((0, 0), [78, 0, 0, 0, 0, 0]), ((1, 1), [1, 6, 15, 24, 20, 12]), ((1, 0), [6, 15, 24, 33, 0, 0])],
)
def test_atomics_count_every_element_of_a_view_that_overlaps_itself(
    strides: tuple[int, int], expected: list[int]
) -> None:
    x, y = np.arange(1, 13, dtype=np.int32).reshape(4, 3), np.zeros(6, np.int32)
    body = (
        constants("c", [0, 4, 3, *strides])[0]
        + f"%w = tile.view %1 offset %c0 sizes [%c1, %c2] strides [%c3, %c4] : {view(1, i32)} -> {view(2, i32)}\n"
        f"%t = tile.load %0[%c0, %c0] : {view(2, i32)} -> {tensor((4, 3), i32)}\n"
        f"tile.atomic<sum> %t, %w[%c0, %c0] : {tensor((4, 3), i32)}, {view(2, i32)}"
    )
    run_kernel(kernel(body, view(2, i32), view(1, i32)), "k", [x, y])
    assert y.tolist() == expected


def test_program_instances_combine_into_one_element() -> None:
    y = np.zeros((), f16.storage)
    body = (
        f"%one = arith.constant 1.0 : f16\n%t = tile.full %one : {tensor((), f16)}\n"
        f"tile.atomic<sum> %t, %0[] : {tensor((), f16)}, {view(0, f16)}"
    )
    run_kernel(kernel(body, view(0, f16), grid="[5, 4]"), "k", [y])
    assert y == 20


# Views.

Step = tuple[int, tuple[int, ...], tuple[int, ...]]


def step(draw: Draw) -> Step:
    """A view: an offset, sizes and strides."""
    rank = draw(st.integers(0, 2))
    size, stride = st.integers(0, 4), st.integers(-3, 3)
    return draw(st.integers(-4, 8)), draw(st.tuples(*[size] * rank)), draw(st.tuples(*[stride] * rank))


def reading(steps: Sequence[Step], extents: Sequence[int], marker: int) -> str:
    """A body that stores the last of these nested views of %0 into %1, and prints its sizes and strides."""
    lines, last, rank = ZERO, "%0", 1
    for number, parts in enumerate(steps):
        named = [
            constants(f"{what}{number}_", [*part]) for what, part in zip("ons", ([parts[0]], *parts[1:]), strict=True)
        ]
        lines += "".join(line for line, _ in named)
        (_, offset), (_, sizes), (_, strides) = named
        seen = f"{view(rank, i32)} -> {view(len(parts[1]), i32)}"
        lines += f"%v{number} = tile.view {last} offset {offset} sizes [{sizes}] strides [{strides}] : {seen}\n"
        last, rank = f"%v{number}", len(parts[1])
    type_ = view(rank, i32)
    lines += f"%t = tile.load {last}[{zeros(rank)}] pad {marker}.0 : {type_} -> {tensor(extents, i32)}\n"
    lines += f"tile.store %t, %1[{zeros(rank)}] : {tensor(extents, i32)}, {type_}\n"
    for axis in range(rank):
        lines += f"%d{axis} = tile.dim {last}, {axis} : {type_}\n%e{axis} = tile.stride {last}, {axis} : {type_}\n"
        lines += f'tile.debug_print "{axis}", %d{axis}, %e{axis} : index, index\n'
    return lines


def along(strides: Sequence[int], index: Sequence[int]) -> int:
    return sum(stride * at for stride, at in zip(strides, index, strict=True))


@covers(tile.ViewOp, tile.DimOp, tile.StrideOp)
@examples(100)
def test_views_of_views_see_the_argument_and_nothing_else(data: st.DataObject) -> None:
    """The model: an argument is every `gap`-th number of a line; a view is a start on that line, and strides."""
    draw: Draw = data.draw
    gap, size = draw(st.sampled_from([1, 2, -1, -3])), draw(st.sampled_from([9, 5, 1, 0]))
    line, start = np.arange(60, dtype=np.int32), 30
    argument = line[start::gap][:size]
    ends = (start, start + gap * (size - 1))
    steps = [step(draw) for _ in range(draw(st.integers(1, 2)))]
    first, leaves = start, False
    for offset, sizes, strides in steps:
        first += offset
        seen = [first + along(strides, index) for index in product(*map(range, sizes))]
        leaves |= any(not (size and min(ends) <= at <= max(ends)) for at in seen)
    _, sizes, strides = steps[-1]
    extents, marker, written = [max(size, 1) for size in sizes], -7, list[str]()
    y = np.full(extents, -1, np.int32)
    module = kernel(reading(steps, extents, marker), view(1, i32), view(len(sizes), i32))
    if leaves:
        with pytest.raises(ShapeError, match="leaves its memory"):
            run_kernel(module, "k", [argument, y])
        assert (y == -1).all()
        return
    run_kernel(module, "k", [argument, y], machine=Machine(write=written.append))
    empty = 0 in sizes
    assert_same(y, indexed(extents, i32, lambda index: marker if empty else line[first + along(strides, index)]))
    assert written == [f"[] {axis} {sizes[axis]} {strides[axis]}\n" for axis in range(len(sizes))]
    assert (line == np.arange(60)).all()


def test_an_argument_has_its_own_strides() -> None:
    written: list[str] = []
    body = f"%s = tile.stride %0, 0 : {view(2, f32)}\n%t = tile.stride %0, 1 : {view(2, f32)}\n"
    module = kernel(f'{body}tile.debug_print "", %s, %t : index, index', view(2, f32), outputs=0)
    for x in (
        np.zeros((3, 4), np.float32).T,
        np.zeros((6, 4), np.float32)[::-2],
        np.zeros((4, 6), np.float32)[:0, ::3],
    ):
        run_kernel(module, "k", [x], machine=Machine(write=written.append))
    assert written == ["[]  1 4\n", "[]  -8 1\n", "[]  6 3\n"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_view_writes_backwards_into_the_memory_of_every_type(dtype: DType) -> None:
    x, y = np.arange(5).astype(dtype.storage), np.zeros(5, dtype.storage)
    body = (
        constants("c", [4, 5, -1, 0])[0]
        + f"%v = tile.view %1 offset %c0 sizes [%c1] strides [%c2] : {view(1, dtype)} -> {view(1, dtype)}\n"
        f"%t = tile.load %0[%c3] : {view(1, dtype)} -> {tensor((8,), dtype)}\n"
        f"tile.store %t, %v[%c3] : {tensor((8,), dtype)}, {view(1, dtype)}"
    )
    run_kernel(kernel(body, view(1, dtype), view(1, dtype)), "k", [x, y])
    assert_same(y, x[::-1])


def test_what_leaves_the_memory_is_told_in_elements() -> None:
    body = (
        constants("c", [1, 3, 2])[0]
        + f"%v = tile.view %0 offset %c0 sizes [%c1] strides [%c2] : {view(1, i32)} -> {view(1, i32)}"
    )
    with pytest.raises(ShapeError) as caught:
        run_kernel(kernel(body, view(1, i32), outputs=0), "k", [np.zeros(5, np.int32)])
    assert caught.value.message == "a view at offset 1 with sizes [3] and strides [2] leaves its memory"
    assert caught.value.shapes == ("memory of 5 elements; the view reaches from 1 to 5",)


def test_a_view_of_negative_size_is_refused() -> None:
    body = (
        constants("c", [0, -1, 1])[0]
        + f"%v = tile.view %0 offset %c0 sizes [%c1] strides [%c2] : {view(1, i32)} -> {view(1, i32)}"
    )
    with pytest.raises(ShapeError, match="sizes are not negative"):
        run_kernel(kernel(body, view(1, i32), outputs=0), "k", [np.zeros(5, np.int32)])
