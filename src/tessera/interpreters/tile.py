"""The meaning of tile programs: one sequential run per point of the grid, on strided NumPy memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tessera.dialects import elementwise, reductions, tile
from tessera.dialects.elements import dtype_of
from tessera.dialects.tile_types import ViewType, tile_dtype, tile_type
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, f64, i64, u64
from tessera.errors import CompileError, ShapeError
from tessera.interpreters import scalars
from tessera.interpreters.engine import Frame, Values, meaning, symbol_in
from tessera.interpreters.machine import Machine
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import dim

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class View:
    """Strided memory of one dtype; `memory` is the whole argument, whose bytes no view may leave."""

    array: Array
    memory: Array

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


def run_kernel(
    module: ModuleOp,
    name: str,
    arguments: Sequence[Any],
    *,
    grid: Sequence[int] | None = None,
    machine: Machine | None = None,
) -> None:
    """Runs a tile function over its grid. Arrays are written in place; scalars are Python numbers."""
    kernel = symbol_in(module, name, tile.FuncOp)
    types = list(kernel.function_type.inputs)
    if len(arguments) != len(types):
        raise ShapeError(f"@{name} takes {len(types)} arguments, got {len(arguments)}")
    environment = ShapeEnvironment()
    values: list[Any] = []
    for position, (argument, type_, shape) in enumerate(zip(arguments, types, kernel.shapes, strict=True)):
        if not isinstance(type_, ViewType):
            values.append(scalars.scalar(argument, type_))
            continue
        if not isinstance(argument, np.ndarray) or argument.dtype != type_.dtype.storage:
            found = getattr(argument, "dtype", type(argument).__name__)
            raise CompileError(f"argument {position} of @{name}: expected an array of {type_.dtype}, got {found}")
        array: Array = argument
        if array.ndim != type_.rank.data:
            raise ShapeError(f"argument {position} of @{name}: expected rank {type_.rank.data}, got {array.ndim}")
        for axis, (size, actual) in enumerate(zip(shape.data, array.shape, strict=True)):
            environment.unify(size, actual, Origin(f"argument {position}, axis {axis}", None))
        values.append(View(array, array))
    machine = machine if machine is not None else Machine()
    symbols = environment.sizes
    if grid is None:
        grid = [dim(size).evaluate(symbols) for size in kernel.grid.data]
    for program in itertools.product(*(range(extent) for extent in grid)):
        Frame(machine, symbols, program).run(kernel.body.block, values)


@meaning(tile.ProgramIdOp)
def _program_id(frame: Frame, op: tile.ProgramIdOp, operands: Values) -> Values:
    return [frame.program[op.axis.value.data]]


@meaning(tile.DimOp)
def _dim(frame: Frame, op: tile.DimOp, operands: Values) -> Values:
    return [operands[0].array.shape[op.axis.value.data]]


@meaning(tile.StrideOp)
def _stride(frame: Frame, op: tile.StrideOp, operands: Values) -> Values:
    return [operands[0].strides[op.axis.value.data]]


@meaning(tile.ViewOp)
def _view(frame: Frame, op: tile.ViewOp, operands: Values) -> Values:
    base: View = operands[0]
    offset, rank = operands[1], len(op.sizes)
    sizes, strides = operands[2 : 2 + rank], operands[2 + rank :]
    if any(size < 0 for size in sizes):
        raise ShapeError(f"a view of sizes {list(sizes)}: sizes are not negative")
    item = base.array.itemsize
    if not base.array.size or 0 in sizes:
        return [View(np.empty(tuple(sizes), base.array.dtype), base.memory)]
    reach = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    start = base.array.__array_interface__["data"][0] + offset * item
    low = start + item * sum(step for step in reach if step < 0)
    high = start + item * (1 + sum(step for step in reach if step > 0))
    first, end = np.lib.array_utils.byte_bounds(base.memory)
    if low < first or high > end:
        reached = f"elements {(low - first) // item} to {(high - first) // item - 1}"
        raise ShapeError(
            f"a view at offset {offset} with sizes {list(sizes)} and strides {list(strides)} leaves its memory",
            shapes=[f"memory of {(end - first) // item} elements; the view reaches {reached}"],
            hint="check the offset and the strides against the argument's",
        )
    step = item if offset >= 0 else -item
    anchor = np.lib.stride_tricks.as_strided(base.array, (abs(offset) + 1,), (step,))[abs(offset) :]
    array = np.lib.stride_tricks.as_strided(anchor, tuple(sizes), tuple(stride * item for stride in strides))
    return [View(array, base.memory)]


def _window(view: View, offsets: Sequence[int], shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a tile that lies inside a view: slices of the view, and of the tile."""
    inside: list[slice] = []
    within: list[slice] = []
    for size, offset, extent in zip(view.array.shape, offsets, shape, strict=True):
        low = min(max(0, -offset), extent)
        high = max(low, min(extent, size - offset))
        inside.append(slice(offset + low, offset + high) if high > low else slice(0, 0))
        within.append(slice(low, high))
    return tuple(inside), tuple(within)


@meaning(tile.LoadOp)
def _load(frame: Frame, op: tile.LoadOp, operands: Values) -> Values:
    view, *offsets = operands
    result = tile_type(op.result)
    dtype = dtype_of(result.element_type)
    pad = cast(np.asarray(op.pad_value, np.float64), f64, dtype)
    loaded = np.full(result.get_shape(), pad, dtype.storage)
    inside, within = _window(view, offsets, result.get_shape())
    loaded[within] = view.array[inside]
    return [loaded]


@meaning(tile.StoreOp)
def _store(frame: Frame, op: tile.StoreOp, operands: Values) -> Values:
    value, view, *offsets = operands
    inside, within = _window(view, offsets, value.shape)
    view.array[inside] = value[within]
    return []


@meaning(tile.AtomicOp)
def _atomic(frame: Frame, op: tile.AtomicOp, operands: Values) -> Values:
    value, view, *offsets = operands
    inside, within = _window(view, offsets, value.shape)
    dtype = tile_dtype(op.value)
    combine = reductions.TABLE[op.kind.data].combine
    view.array[inside] = elementwise.apply(combine, [view.array[inside], value[within]], [dtype, dtype])
    return []


@meaning(tile.FullOp)
def _full(frame: Frame, op: tile.FullOp, operands: Values) -> Values:
    dtype = tile_dtype(op.result)
    return [np.full(tile_type(op.result).get_shape(), scalars.as_array(operands[0], dtype), dtype.storage)]


@meaning(tile.IotaOp)
def _iota(frame: Frame, op: tile.IotaOp, operands: Values) -> Values:
    return [positions(tile_type(op.result).get_shape(), op.axis.value.data, operands[0], tile_dtype(op.result))]


def positions(shape: Sequence[int], axis: int, base: int, dtype: DType) -> Array:
    """`base` plus the position along `axis`, wrapped into `dtype`."""
    counted = np.arange(shape[axis], dtype=np.int64) + base
    aligned = counted.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return cast(np.ascontiguousarray(np.broadcast_to(aligned, shape)), i64, dtype)


@meaning(tile.EwOp)
def _elementwise(frame: Frame, op: tile.EwOp, operands: Values) -> Values:
    dtypes = [tile_dtype(operand) for operand in op.operands_]
    return [apply_row(op.fn.data, operands, dtypes, op.result_dtype, op.seed)]


def apply_row(fn: str, arrays: Values, dtypes: Sequence[DType], result: DType, seed: IntegerAttr[Any] | None) -> Array:
    """One row of the elementwise table, rounded once as the result's policy says."""
    chosen = None if seed is None else seed.value.data
    if fn == "cast":
        return elementwise.apply(fn, arrays, dtypes, to=result, seed=chosen)
    # A row's result has the policy of its operands: tiles have none of their own, so they take the op's.
    governed = [result if dtype.base is result.base else dtype for dtype in dtypes]
    return elementwise.apply(fn, arrays, governed, seed=chosen)


@meaning(tile.ReduceOp)
def _reduce(frame: Frame, op: tile.ReduceOp, operands: Values) -> Values:
    return [reductions.apply(op.kind.data, operands[0], tile_dtype(op.operand), [op.axis.value.data])]


@meaning(tile.ExpandOp)
def _expand(frame: Frame, op: tile.ExpandOp, operands: Values) -> Values:
    return [np.expand_dims(operands[0], op.axis.value.data)]


@meaning(tile.BroadcastOp)
def _broadcast(frame: Frame, op: tile.BroadcastOp, operands: Values) -> Values:
    return [np.broadcast_to(operands[0], tile_type(op.result).get_shape())]


@meaning(tile.TransOp)
def _trans(frame: Frame, op: tile.TransOp, operands: Values) -> Values:
    return [np.transpose(operands[0], tuple(op.permutation.iter_values()))]


@meaning(tile.DotOp)
def _dot(frame: Frame, op: tile.DotOp, operands: Values) -> Values:
    a, b, c = operands
    return [multiply(a, b, tile_dtype(op.a), tile_dtype(op.c), c)]


def multiply(a: Array, b: Array, dtype: DType, result: DType, c: Array | None = None) -> Array:
    """c + a·b with one rounding at the end: float64 for floats, wrapping 64-bit integers for the rest."""
    carrier = {Kind.FLOAT: f64, Kind.INT: i64}.get(dtype.kind, u64)
    total = np.matmul(cast(a, dtype.base, carrier), cast(b, dtype.base, carrier))
    if c is not None:
        total = total + cast(c, result.base, carrier)
    return cast(np.asarray(total), carrier, result.base)


@meaning(tile.AssertOp)
def _assert(frame: Frame, op: tile.AssertOp, operands: Values) -> Values:
    condition = np.asarray(operands[0], np.bool_)
    if not condition.all():
        where = [int(index) for index in np.argwhere(~condition)[0]]
        raise CompileError(f"assertion failed at {where} in program {list(frame.program)}: {op.message.data}")
    return []


@meaning(tile.DebugPrintOp)
def _debug_print(frame: Frame, op: tile.DebugPrintOp, operands: Values) -> Values:
    shown = "".join(f" {value}" for value in operands)
    frame.machine.write(f"{list(frame.program)} {op.label.data}{shown}\n")
    return []
