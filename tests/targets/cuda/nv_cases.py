"""Small functions of the nv level, one for each thing that is done with tiles, and their arguments.

They are run by the machine for tests and on GPUs, and compared with what the interpreter makes of them. What is written
is an argument: no function has outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from nv_layouts import Array, random_layout

from tessera.dtypes.casting import cast
from tessera.dtypes.types import BYTES, FOURS, NO_POLICY, DType, bf16, bool_, f32, f64, i4, i8, i32, u16
from tessera.ir.common.elements import element_of
from tessera.targets.cuda.ir.layouts import Layout, accumulator, blocked

MOST = 2048
"""Elements of a tile, so that the machine is quick."""
KINDS = {True: ("sum", "prod", "max", "min", "top"), False: ("sum", "prod", "max", "min", "and", "or", "xor")}


@dataclass
class Case:
    """A function's text, and what it is given; arrays that it writes come last."""

    text: str
    arguments: list[Any]
    written: int = 1

    def copies(self) -> list[Any]:
        """The arguments, with arrays in memory of their own that lie the same way."""
        return [like(value) if isinstance(value, np.ndarray) else value for value in self.arguments]  # pyright: ignore[reportUnknownArgumentType]

    def results(self, arguments: Sequence[Any]) -> list[Array]:
        return list(arguments[len(arguments) - self.written :])


def home(array: Array) -> tuple[Array, int]:
    """The memory that an array lies in, element after element, and how many bytes in it begins."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base.reshape(-1), array.ctypes.data - base.ctypes.data


def like(array: Array) -> Array:
    base, place = home(array)
    return np.ndarray(array.shape, array.dtype, base.copy(), place, array.strides)


def spelled(dtype: DType) -> str:
    return str(element_of(dtype))


def tile_text(shape: Sequence[int], dtype: DType, layout: Layout) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{spelled(dtype)}, #nv.layout<{layout}>>"


def view_text(rank: int, dtype: DType) -> str:
    return f"!tile.view<{rank}, {spelled(dtype)}, global>"


def function_text(
    arguments: Sequence[str], shapes: Sequence[str], threads: int, body: str, grid: str = "1", marks: str = ""
) -> str:
    """A function @k of arguments %a0, %a1, …; %c0 is the index 0."""
    head = ", ".join(f"%a{place}: {type_}" for place, type_ in enumerate(arguments))
    return (
        f"nv.func @k({head}) outputs 0 shapes [{', '.join(shapes)}] grid [{grid}] threads {threads}{marks} {{\n"
        f"%c0 = arith.constant 0 : index\n{body}\nnv.return\n}}"
    )


def _dims(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def zeros(rank: int) -> str:
    return ", ".join(["%c0"] * rank)


def numbers(chance: np.random.Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Small whole numbers, of which every order of sums gives the same."""
    if dtype is bool_:
        return np.asarray(chance.integers(0, 2, shape).astype(np.bool_))
    low = 0 if dtype.min_value == 0 else -2
    return np.asarray(cast(np.asarray(chance.integers(low, 4, shape), np.float64), f64, dtype))


# Elementwise functions

GROUP = 128


def elementwise(
    fn: str, dtypes: Sequence[DType], result: DType, operands: Sequence[Array], marks: str = "", width: int = 4
) -> Case:
    """One row, on groups of elements; of `width` in one thread."""
    layout = blocked((GROUP,), 32, width)
    types = [tile_text((GROUP,), dtype, layout) for dtype in dtypes]
    loads = [
        f"%t{place} = tile.load %a{place}[%at] : {view_text(1, dtype)} -> {type_}"
        for place, (dtype, type_) in enumerate(zip(dtypes, types, strict=True))
    ]
    made = tile_text((GROUP,), result, layout)
    policy = "" if result.policy == NO_POLICY else f" policy <{str(result.policy).replace(' @ ', ', ')}>"
    given = ", ".join(f"%t{place}" for place in range(len(dtypes)))
    body = "\n".join(
        [
            f"%i = tile.program_id 0\n%group = arith.constant {GROUP} : index\n%at = arith.muli %i, %group : index",
            *loads,
            f"%r = tile.ew<{fn}> {given}{policy} {marks} : {', '.join(types)} -> {made}",
            f"tile.store %r, %a{len(dtypes)}[%at] : {made}, {view_text(1, result)}",
        ]
    )
    arguments = [view_text(1, dtype) for dtype in (*dtypes, result)]
    text = function_text(arguments, ["[N]"] * len(arguments), 32, body, f'"(N + {GROUP - 1})//{GROUP}"')
    return Case(text, [*operands, np.zeros(operands[0].shape, result.storage)])


def rows(names: Sequence[str], dtypes: Sequence[DType], results: Sequence[DType], operands: Sequence[Array]) -> Case:
    """Several functions of the same operands, each with a result of its own."""
    layout = blocked((GROUP,), 32, 4)
    types = [tile_text((GROUP,), dtype, layout) for dtype in dtypes]
    lines = [f"%i = tile.program_id 0\n%group = arith.constant {GROUP} : index\n%at = arith.muli %i, %group : index"]
    for place, (dtype, type_) in enumerate(zip(dtypes, types, strict=True)):
        lines.append(f"%t{place} = tile.load %a{place}[%at] : {view_text(1, dtype)} -> {type_}")
    given = ", ".join(f"%t{place}" for place in range(len(dtypes)))
    for place, (name, result) in enumerate(zip(names, results, strict=True)):
        made = tile_text((GROUP,), result, layout)
        policy = "" if result.policy == NO_POLICY else f" policy <{str(result.policy).replace(' @ ', ', ')}>"
        lines.append(f"%r{place} = tile.ew<{name}> {given}{policy} : {', '.join(types)} -> {made}")
        lines.append(f"tile.store %r{place}, %a{len(dtypes) + place}[%at] : {made}, {view_text(1, result)}")
    arguments = [view_text(1, dtype) for dtype in (*dtypes, *results)]
    text = function_text(arguments, ["[N]"] * len(arguments), 32, "\n".join(lines), f'"(N + {GROUP - 1})//{GROUP}"')
    outputs = [np.zeros(operands[0].shape, result.storage) for result in results]
    return Case(text, [*operands, *outputs], len(outputs))


# Random tiles


def _any_layout(chance: np.random.Generator, shape: Sequence[int], threads: int) -> Layout:
    kind = chance.random()
    if kind < 0.5:
        return random_layout(chance, shape, threads, odd=bool(chance.random() < 0.3))
    if len(shape) == 2 and kind < 0.7:
        return accumulator(shape[0], shape[1], (threads // 32, 1))
    order = [int(axis) for axis in chance.permutation(len(shape))]
    return blocked(shape, threads, int(chance.choice([1, 2, 4, 8, 16])), order=order)


def _shape(chance: np.random.Generator, least: int) -> tuple[int, ...]:
    rank = int(chance.integers(least, 4))
    while True:
        shape = tuple(int(size) for size in chance.choice([1, 2, 3, 4, 5, 7, 8, 12, 16, 32, 64], rank))
        if np.prod(shape, dtype=np.int64) <= MOST:
            return shape


def _few(chance: np.random.Generator, shape: Sequence[int], threads: int) -> Layout:
    """A layout with few enough registers."""
    while True:
        layout = _any_layout(chance, shape, threads)
        if layout.count <= 64:
            return layout


def _threads(chance: np.random.Generator) -> int:
    return int(chance.choice([32, 64, 96, 128, 256]))


def conversion(seed: int) -> Case:
    """There, back again, and there."""
    chance = np.random.default_rng(seed)
    shape, threads = _shape(chance, 0), _threads(chance)
    dtype = _one_of(chance, (f32, bf16, f64, i8, bool_, u16, i4))
    here, there = (tile_text(shape, dtype, _few(chance, shape, threads)) for _ in range(2))
    view = view_text(len(shape), dtype)
    body = f"""%t = tile.load %a0[{zeros(len(shape))}] : {view} -> {here}
%c = nv.convert %t : {here} -> {there}
%d = nv.convert %c : {there} -> {here}
%e = nv.convert %d : {here} -> {there}
tile.store %e, %a1[{zeros(len(shape))}] : {there}, {view}"""
    given = numbers(chance, shape, dtype)
    text = function_text([view] * 2, [_dims(shape)] * 2, threads, body)
    return Case(text, [given, np.zeros_like(given)])


def halves(seed: int) -> Case:
    """Bytes taken apart into a layout of the halves' own, and put together into another one of bytes."""
    chance = np.random.default_rng(seed)
    shape, threads = _shape(chance, 1), _threads(chance)
    axis, dtype, byte = int(chance.integers(len(shape))), _one_of(chance, FOURS), _one_of(chance, BYTES)
    wide = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    packed = _few(chance, shape, threads)
    apart = packed.doubled(axis)
    if chance.random() < 0.6:
        found = _few(chance, wide, threads)
        halved = found.halved(axis)
        if halved is not None:
            packed, apart = halved, found
    again = _few(chance, shape, threads)
    whole, back = tile_text(shape, byte, packed), tile_text(shape, byte, again)
    here, there = tile_text(wide, dtype, apart), tile_text(wide, dtype, again.doubled(axis))
    bytes_, fours = view_text(len(shape), byte), view_text(len(shape), dtype)
    body = f"""%t = tile.load %a0[{zeros(len(shape))}] : {bytes_} -> {whole}
%h = tile.unpack %t, {axis} : {whole} -> {here}
tile.store %h, %a1[{zeros(len(shape))}] : {here}, {fours}
%c = nv.convert %h : {here} -> {there}
%b = tile.pack %c, {axis} : {there} -> {back}
tile.store %b, %a2[{zeros(len(shape))}] : {back}, {bytes_}"""
    given = chance.integers(0, 256, shape).astype(np.uint8).view(byte.storage)
    text = function_text([bytes_, fours, bytes_], [_dims(shape), _dims(wide), _dims(shape)], threads, body)
    return Case(text, [given, np.zeros(wide, dtype.storage), np.zeros_like(given)], 2)


def _one_of(chance: np.random.Generator, dtypes: Sequence[DType]) -> DType:
    return dtypes[int(chance.integers(len(dtypes)))]


def reduction(seed: int) -> Case:
    """A reduction, stored and repeated along the axis that it folded; then another, in the same shared memory."""
    chance = np.random.default_rng(seed)
    shape, threads = _shape(chance, 1), _threads(chance)
    dtype = _one_of(chance, (f32, bf16, f64, i8, i32, u16))
    kind = str(chance.choice(KINDS[dtype.is_float]))
    axis = int(chance.integers(len(shape)))
    layout = _few(chance, shape, threads)
    rest, folded = shape[:axis] + shape[axis + 1 :], layout.without(axis)
    whole, part = tile_text(shape, dtype, layout), tile_text(rest, dtype, folded)
    column = tile_text((*rest[:axis], 1, *rest[axis:]), dtype, folded.with_axis(axis))
    views = [view_text(rank, dtype) for rank in (len(shape), len(rest), len(shape))]
    body = f"""%t = tile.load %a0[{zeros(len(shape))}] : {views[0]} -> {whole}
%r = tile.reduce<{kind}> %t, {axis} : {whole} -> {part}
%e = tile.expand %r, {axis} : {part} -> {column}
%b = tile.broadcast %e : {column} -> {whole}
%s = tile.reduce<{"max" if kind != "max" else "min"}> %t, {axis} : {whole} -> {part}
%m = tile.ew<max> %r, %s : {part}, {part} -> {part}
tile.store %m, %a1[{zeros(len(rest))}] : {part}, {views[1]}
tile.store %b, %a2[{zeros(len(shape))}] : {whole}, {views[2]}"""
    given = numbers(chance, shape, dtype)
    if dtype.is_float and kind in ("max", "min", "sum") and chance.random() < 0.3:
        given = np.where(chance.random(shape) < 0.05, np.nan, given.astype(np.float64)).astype(given.dtype)
    text = function_text(views, [_dims(shape), _dims(rest), _dims(shape)], threads, body)
    return Case(text, [given, np.asarray(np.zeros(rest, given.dtype)), np.zeros_like(given)], 2)


def _strided(chance: np.random.Generator, sizes: Sequence[int], dtype: DType, backwards: bool) -> Array:
    """An array of these sizes: whole, a part of a larger one, or every other element of one."""
    large = numbers(chance, tuple(2 * size + 2 for size in sizes), dtype)
    kind = int(chance.integers(3))
    if kind == 0:
        return np.ascontiguousarray(large[tuple(slice(size) for size in sizes)]).reshape(sizes)
    if kind == 1:
        return np.asarray(large[(*(slice(1, 1 + size) for size in sizes), ...)])
    steps = [int(step) for step in chance.choice([1, 2, -1] if backwards else [1, 2], len(sizes))]
    parts = [
        slice(0, size * step, step) if step > 0 else slice(size, 0, -1) for size, step in zip(sizes, steps, strict=True)
    ]
    return np.asarray(large[(*parts, ...)])


def movement(seed: int, *, backwards: bool = True) -> Case:
    """A tile out of one view into another, at offsets that are known or not, partly outside."""
    chance = np.random.default_rng(seed)
    shape, threads = _shape(chance, 0), _threads(chance)
    dtype = _one_of(chance, (f32, bf16, f64, i8, bool_, u16, i4))
    sizes = tuple(int(chance.choice([size, size, max(1, size - 1), size + 3, 2 * size, size + 8])) for size in shape)
    known, fixed = chance.random(len(shape)) < 0.3, bool(chance.random() < 0.5)
    named = [str(size) if known[axis] else f"s{axis}" for axis, size in enumerate(sizes)]
    dims = f"[{', '.join(named)}]"
    offsets = [int(chance.choice([0, 0, 0, 1, 2, 4, 8, 16, -1, -3])) for _ in shape]
    rank = len(shape)
    given = [] if fixed else offsets
    lines = [
        f"%o{axis} = arith.constant {offset} : index" if fixed else f"%o{axis} = arith.addi %a{1 + axis}, %c0 : index"
        for axis, offset in enumerate(offsets)
    ]
    type_, view = tile_text(shape, dtype, _few(chance, shape, threads)), view_text(rank, dtype)
    at, last = ", ".join(f"%o{axis}" for axis in range(rank)), 1 + len(given)
    pad = " pad 1.0" if chance.random() < 0.5 else ""
    lines.append(f"%t = tile.load %a0[{at}]{pad} : {view} -> {type_}")
    lines.append(f"tile.store %t, %a{last}[{at}] : {type_}, {view}")
    arguments, shapes = [view, *["index"] * len(given), view], [dims, *["[]"] * len(given), dims]
    text = function_text(arguments, shapes, threads, "\n".join(lines))
    arrays = [_strided(chance, sizes, dtype, backwards) for _ in range(2)]
    return Case(text, [arrays[0], *given, arrays[1]])


# Atomics


def atomic(kind: str, dtype: DType, seed: int = 0) -> Case:
    """Tiles that overlap, held twice, with ghosts and beyond the end."""
    chance = np.random.default_rng(seed)
    type_ = f"tensor<50x{spelled(dtype)}, #nv.layout<[2:_, 16:0*4], [4:0*1]>>"
    view = view_text(1, dtype)
    body = f"""%i = tile.program_id 0
%three = arith.constant 3 : index
%at = arith.muli %i, %three : index
%t = tile.load %a0[%c0] : {view} -> {type_}
tile.atomic<{kind}> %t, %a1[%at] : {type_}, {view}"""
    text = function_text([view] * 2, ["[M]", "[N]"], 64, body, grid="2")
    given = [numbers(chance, (size,), dtype) for size in (50, 47)]
    if dtype.bits == 4 and kind == "sum":
        # Nobody knows who adds first: sums of three have to be exact, and 4 bits have few numbers.
        given = [np.sign(one.astype(np.float32)).astype(one.dtype) for one in given]
    return Case(text, given)
