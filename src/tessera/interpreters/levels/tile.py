"""The meaning of tile functions: one sequential run per program instance of the grid, on strided NumPy memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any
from typing import cast as cast_type

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, SSAValue

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, f64, i64, u64
from tessera.errors import CompileError, DtypeError, EffectError, ShapeError, SourceSpan
from tessera.interpreters.core import scalars
from tessera.interpreters.core.engine import Frame, Values, meaning, meanings, symbol_in
from tessera.interpreters.core.halves import bytes_of, halves_of
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.places import placed, taken
from tessera.interpreters.core.printing import PrintRecord, printed
from tessera.interpreters.core.running import running
from tessera.interpreters.core.views import Array, ArrayView, read_window, window
from tessera.interpreters.sanitizers.access_trace import Trace
from tessera.interpreters.sanitizers.checks import Checks, asked
from tessera.interpreters.sanitizers.watching import SanitizedRun
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.attributes import SizesAttr
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.pipe.copies import cluster_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.reach import covers
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import dim


def run_kernel(
    module: ModuleOp,
    name: str,
    arguments: Sequence[Any],
    *,
    machine: Machine | None = None,
    checks: Checks | None = None,
    trace: Trace | None = None,
    covered: bool = False,
) -> None:
    """Runs a tile function over its grid. Arrays are written in place; scalars are Python numbers.

    `checks` says what is watched on the way, by default what `checking` asks for around the call; `trace` receives
    every access to memory. With `covered`, a function that leaves parts of its outputs unwritten, as sizes tell, is
    refused.
    """
    kernel = symbol_in(module, name, tile.FuncOp)
    bound = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments)
    for cover in covers(kernel) if covered else ():
        cover.check(name, bound.grid, bound.symbols)
    check_writable(name, kernel.body.block, bound.values)
    machine = machine if machine is not None else Machine()
    watch = _watch(kernel, bound.values, checks, trace)
    with machine.recording():
        for runner in _runners(kernel, bound.grid, machine):
            one = _frame(watch, machine, bound.symbols, runner.program)
            one.kept[Runner] = runner
            one.run(kernel.body.block, bound.values)
    if watch is not None:
        watch.finish(name, bound.grid)


@dataclass(frozen=True)
class Runner:
    """One run of a function: a program instance of the grid, or one of several persistent CTAs."""

    grid: tuple[int, ...]
    program: tuple[int, ...]
    ctas: int | None = None
    fetched: list[int] = field(default_factory=list[int])
    """Program instances that persistent CTAs have fetched, all of them together."""
    cluster: int = 1
    """So many persistent CTAs, with consecutive numbers, are a cluster."""
    shared: dict[tuple[int, SSAValue], list[object]] = field(default_factory=dict[tuple[int, SSAValue], list[object]])
    """Tiles that the first CTA of each cluster has copied into multicast rings, by cluster and ring."""


def _runners(kernel: tile.FuncOp, grid: tuple[int, ...], machine: Machine) -> Iterable[Runner]:
    if "persistent" not in kernel.attributes:
        return (Runner(grid, program) for program in itertools.product(*map(range, grid)))
    cluster, fetched, shared = cluster_of(kernel), list[int](), dict[tuple[int, SSAValue], list[object]]()
    ctas = -(-min(prod(grid), machine.ctas) // cluster) * cluster
    return (Runner(grid, (cta,), ctas, fetched, cluster, shared) for cta in range(ctas))


@dataclass(frozen=True)
class BoundArguments:
    """The arguments of a call as program instances see them, the values of its symbols, and the extents of its grid."""

    values: list[Any]
    symbols: dict[str, int]
    grid: tuple[int, ...]


def bind(
    name: str, type_: FunctionType, shapes: Iterable[SizesAttr], grid: SizesAttr, arguments: Sequence[Any]
) -> BoundArguments:
    """Holds what a caller gives against a signature; targets have functions with the same one."""
    types = list(type_.inputs)
    if len(arguments) != len(types):
        raise ShapeError(f"@{name} takes {len(types)} arguments, got {len(arguments)}")
    environment = ShapeEnvironment()
    values: list[Any] = []
    for position, (argument, expected, shape) in enumerate(zip(arguments, types, shapes, strict=True)):
        what = f"argument {position} of @{name}"
        if not isinstance(expected, ViewType):
            values.append(scalars.argument(what, argument, expected))
            continue
        array = _memory(what, argument, expected)
        for axis, (size, actual) in enumerate(zip(shape.data, array.shape, strict=True)):
            environment.unify(size, actual, Origin(f"{what}, axis {axis}", None))
        values.append(ArrayView.of(array))
    symbols = environment.sizes
    return BoundArguments(values, symbols, tuple(dim(size).evaluate(symbols) for size in grid.data))


def _watch(
    kernel: tile.FuncOp, values: Sequence[Any], checks: Checks | None, trace: Trace | None
) -> SanitizedRun | None:
    """The sanitizers of a run; None where neither checks nor a trace are asked for."""
    around = asked()
    checks, trace = checks if checks is not None else around.checks, trace if trace is not None else around.trace
    if trace is None and not checks:
        return None
    return SanitizedRun(kernel, values, checks, trace)


def _frame(watch: SanitizedRun | None, machine: Machine, symbols: dict[str, int], program: tuple[int, ...]) -> Frame:
    """The frame of a program instance: a plain one, or one that watches."""
    return Frame(machine, symbols, program) if watch is None else watch.frame(machine, symbols, program)


def _memory(what: str, argument: Any, type_: ViewType) -> Array:
    found: object = getattr(argument, "dtype", type(argument).__name__)
    if not isinstance(argument, np.ndarray) or found != type_.dtype.storage:
        raise DtypeError(f"{what}: expected an array of {type_.dtype}, got {found}")
    array = cast_type("Array", argument)
    if array.ndim != type_.rank.data:
        raise ShapeError(f"{what}: expected rank {type_.rank.data}, got {array.ndim}")
    if any(stride % array.itemsize for stride in array.strides):
        raise ShapeError(
            f"{what}: strides of {array.strides} bytes are not whole elements of {array.itemsize} bytes",
            hint="give a copy of the array",
        )
    return array


def check_writable(name: str, body: Block, values: Sequence[Any]) -> None:
    """Refuses read-only arrays that a kernel writes, before anything is written."""
    written = {tile.base_of(op.view) for op in body.walk() if isinstance(op, tile.Writer)}
    for position, (argument, value) in enumerate(zip(body.args, values, strict=True)):
        if argument in written and not value.argument.flags.writeable:
            raise EffectError(
                f"argument {position} of @{name} is written, and the array given is read-only",
                hint="give a writable array, such as a copy",
            )


meanings(
    {
        tile.ProgramIdOp: lambda frame, op, operands: [frame.program[op.axis.value.data]],
        tile.DimOp: lambda frame, op, operands: [operands[0].sizes[op.axis.value.data]],
        tile.StrideOp: lambda frame, op, operands: [operands[0].strides[op.axis.value.data]],
        tile.IotaOp: lambda frame, op, operands: [
            positions(tile_type(op.result).get_shape(), op.axis.value.data, operands[0], tile_dtype(op.result))
        ],
        tile.ReduceOp: lambda frame, op, operands: [
            reductions.apply(op.kind.data, operands[0], tile_dtype(op.operand), [op.axis.value.data])
        ],
        tile.ScanOp: lambda frame, op, operands: [
            running(op.kind.data, operands[0], tile_dtype(op.operand), op.axis.value.data)
        ],
        tile.SortOp: lambda frame, op, operands: [np.sort(operands[0], axis=op.axis.value.data)],
        tile.AnyOp: lambda frame, op, operands: [bool(np.any(operands[0]))],
        tile.ExpandOp: lambda frame, op, operands: [np.expand_dims(operands[0], op.axis.value.data)],
        tile.BroadcastOp: lambda frame, op, operands: [np.broadcast_to(operands[0], tile_type(op.result).get_shape())],
        tile.TransOp: lambda frame, op, operands: [np.transpose(operands[0], tuple(op.permutation.iter_values()))],
    }
)


@meaning(tile.TakeOp)
def _take(frame: Frame, op: tile.TakeOp, operands: Values) -> Values:
    source, *indices = operands
    return [taken(source, indices)]


@meaning(tile.UnpackOp)
def _unpack(frame: Frame, op: tile.UnpackOp, operands: Values) -> Values:
    return [halves_of(operands[0], op.axis.value.data, tile_dtype(op.result))]


@meaning(tile.PackOp)
def _pack(frame: Frame, op: tile.PackOp, operands: Values) -> Values:
    return [bytes_of(operands[0], op.axis.value.data, tile_dtype(op.result))]


@meaning(tile.ViewOp)
def _view(frame: Frame, op: tile.ViewOp, operands: Values) -> Values:
    base: ArrayView = operands[0]
    offset, rank = operands[1], len(op.sizes)
    sizes, strides = operands[2 : 2 + rank], operands[2 + rank :]
    if any(size < 0 for size in sizes):
        raise ShapeError(f"a view of sizes {list(sizes)}: sizes are not negative")
    view = ArrayView(base.argument, base.first + offset, tuple(sizes), tuple(strides))
    (low, high), (first, last) = view.reach, ArrayView.of(base.argument).reach
    if low <= high and (low < first or high > last):
        raise ShapeError(
            f"a view at offset {offset} with sizes {list(sizes)} and strides {list(strides)} leaves its memory",
            shapes=[f"memory of {last - first + 1} elements; the view reaches from {low - first} to {high - first}"],
            hint="check the offset and the strides against the argument's",
        )
    return [view]


@meaning(tile.LoadOp)
def _load(frame: Frame, op: tile.LoadOp, operands: Values) -> Values:
    view, *offsets = operands
    result = tile_type(op.result)
    dtype = tile_dtype(op.result)
    pad = cast(np.asarray(op.pad_value, np.float64), f64, dtype)
    return [read_window(view, offsets, result.get_shape(), pad)]


@meaning(tile.ReadOp)
def _read(frame: Frame, op: tile.ReadOp, operands: Values) -> Values:
    at = placed(op, operands)
    found = np.zeros(at.inside.shape, tile_dtype(op.result).storage)
    found[at.taken] = operands[0].array[at.index]
    return [found]


@meaning(tile.WriteOp)
def _write(frame: Frame, op: tile.WriteOp, operands: Values) -> None:
    at = placed(op, operands)
    operands[1].array[at.index] = operands[0][at.taken]


@meaning(tile.AtomicAtOp)
def _atomic_at(frame: Frame, op: tile.AtomicAtOp, operands: Values) -> None:
    at, array, dtype = placed(op, operands), operands[1].array, tile_dtype(op.value)
    combine = reductions.TABLE[op.kind.data].combine
    for place, value in zip(zip(*at.index, strict=True), operands[0][at.taken], strict=True):
        array[place] = elementwise.apply(combine, [np.asarray(array[place]), np.asarray(value)], [dtype, dtype])


@meaning(tile.ItemOp)
def _item(frame: Frame, op: tile.ItemOp, operands: Values) -> Values:
    view, *offsets = operands
    inside = all(0 <= offset < size for offset, size in zip(offsets, view.sizes, strict=True))
    return [scalars.scalar(view.array[tuple(offsets)] if inside else 0, op.result.type)]


@meaning(tile.StoreOp)
def _store(frame: Frame, op: tile.StoreOp, operands: Values) -> None:
    value, view, *offsets = operands
    inside, within = window(view, offsets, value.shape)
    view.array[inside] = value[within]


@meaning(tile.AtomicOp)
def _atomic(frame: Frame, op: tile.AtomicOp, operands: Values) -> None:
    value, view, *offsets = operands
    inside, within = window(view, offsets, value.shape)
    dtype = tile_dtype(op.value)
    combine = reductions.TABLE[op.kind.data].combine
    target, source = view.array[(*inside, ...)], value[(*within, ...)]
    for index in _separate(target):
        target[index] = elementwise.apply(combine, [target[index], source[index]], [dtype, dtype])


def _separate(target: Array) -> Iterable[Any]:
    """Places of `target` that share no address: all at once, or one by one where a view overlaps itself."""
    addresses = ArrayView.of(target).elements
    return np.ndindex(target.shape) if np.unique(addresses).size < addresses.size else [...]


@meaning(tile.FullOp)
def _full(frame: Frame, op: tile.FullOp, operands: Values) -> Values:
    dtype = tile_dtype(op.result)
    return [np.full(tile_type(op.result).get_shape(), scalars.as_array(operands[0], dtype), dtype.storage)]


def positions(shape: Sequence[int], axis: int, base: int, dtype: DType) -> Array:
    """`base` plus the position along `axis`, wrapped into `dtype`."""
    counted = np.arange(shape[axis], dtype=np.int64) + base
    aligned = counted.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return cast(np.ascontiguousarray(np.broadcast_to(aligned, shape)), i64, dtype)


@meaning(tile.EwOp)
def _elementwise(frame: Frame, op: tile.EwOp, operands: Values) -> Values:
    """One row of the elementwise table, rounded once as the op's policy says."""
    dtypes, result = [tile_dtype(operand) for operand in op.operands_], op.result_dtype
    seed = None if op.seed is None else op.seed.value.data
    if op.fn.data == "cast":
        return [elementwise.apply("cast", operands, dtypes, to=result, seed=seed)]
    # A row's result has the policy of its operands: tiles have none of their own, so they take the op's.
    governed = [result if dtype.base is result.base else dtype for dtype in dtypes]
    return [elementwise.apply(op.fn.data, operands, governed, seed=seed)]


@meaning(tile.DotOp)
def _dot(frame: Frame, op: tile.DotOp, operands: Values) -> Values:
    a, b, c = operands
    return [accumulate(a, b, c, tile_dtype(op.a), tile_dtype(op.b), tile_dtype(op.c))]


def accumulate(a: Array, b: Array, c: Array, left: DType, right: DType, total: DType) -> Array:
    """c + a·b, rounded once."""
    product, carrier = multiply(a, b, left, right)
    with np.errstate(all="ignore"):
        return cast(np.add(product, cast(c, total, carrier)), carrier, total)


def multiply(a: Array, b: Array, left: DType, right: DType) -> tuple[Array, DType]:
    """a·b before the one rounding at the end: in float64, or in 64-bit integers that wrap; and the type of that."""
    carrier = {Kind.FLOAT: f64, Kind.INT: i64}.get(left.kind, u64)
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(cast(a, left, carrier), cast(b, right, carrier))), carrier


@meaning(tile.AssertOp)
def _assert(frame: Frame, op: tile.AssertOp, operands: Values) -> None:
    condition = np.asarray(operands[0], np.bool_)
    if not condition.all():
        if tile.CHECK in op.attributes:
            raise CompileError(
                f"{op.message.data}, in program instance {list(frame.program)}",
                hint="loops go upward: check where the step comes from, or write tile.maximum(step, 1)",
            )
        where = [int(index) for index in np.argwhere(~condition)[0]]
        raise CompileError(f"assertion failed at {where} in program instance {list(frame.program)}: {op.message.data}")


@meaning(tile.DebugPrintOp)
def _debug_print(frame: Frame, op: tile.DebugPrintOp, operands: Values) -> Values:
    if tile.BREAKPOINT in op.attributes:
        _stop(frame.program, list(operands), span_of(op.location))
        return []
    frame.machine.write(printed(frame.program, op.label.data, operands))
    return []


@meaning(tile.PrintRecordOp)
def _print_record(frame: Frame, op: tile.PrintRecordOp, operands: Values) -> Values:
    arrays = [np.zeros(one.get_shape(), dtype_of(one.element_type).storage) for one in op.types]
    frame.machine.record(PrintRecord(tuple(operands), op.label.data, arrays))
    return [ArrayView.of(array if array.ndim else array.reshape(1)) for array in arrays]


def _stop(program: tuple[int, ...], tiles: list[Any], source: SourceSpan | None) -> None:
    """Where a debugger lands: `tiles` are the values asked for, `source` is the line of the kernel."""
    breakpoint()
