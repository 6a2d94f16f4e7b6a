"""The meaning of graph and schedule functions: whole arrays in NumPy, symbols bound by the arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tessera.dtypes.casting import cast
from tessera.errors import CompileError, DtypeError, ShapeError
from tessera.interpreters.core import scalars
from tessera.interpreters.core.engine import Frame, Values, Witness, meaning, meanings, symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels import graph_control, graph_indexing
from tessera.interpreters.levels.tile import multiply, positions, run_kernel
from tessera.interpreters.sanitizers.checks import asked
from tessera.interpreters.sanitizers.graph_sentinels import check_nan
from tessera.ir.common import elementwise, reductions
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType, dense_values, graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.updates import updated_input
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import dim

Array = np.ndarray[Any, np.dtype[Any]]

RULES_ELSEWHERE = (graph_control, graph_indexing)  # importing them fills the table


def run_function(
    module: ModuleOp,
    name: str,
    arguments: Sequence[Any],
    *,
    machine: Machine | None = None,
    witness: Witness | None = None,
) -> tuple[Any, ...]:
    """Runs a graph function on arrays (and numbers for scalar arguments); inputs are never written.

    Around it, `checking(Checks(nonfinite="nan"))` makes it stop at the first op that makes a NaN. `witness` is shown
    each op of the function itself, with its operands and results.
    """
    function = symbol_in(module, name, graph.FuncOp)
    return tuple(_call(function, arguments, machine if machine is not None else Machine(), witness))


def _call(function: graph.FuncOp, arguments: Sequence[Any], machine: Machine, witness: Witness | None = None) -> Values:
    name, types = function.sym_name.data, function.function_type.inputs.data
    if len(arguments) != len(types):
        raise ShapeError(f"@{name} takes {len(types)} arguments, got {len(arguments)}")
    environment = ShapeEnvironment()
    values = [
        _argument(f"argument {position} of @{name}", argument, type_, environment)
        for position, (argument, type_) in enumerate(zip(arguments, types, strict=True))
    ]
    frame = _frame(machine, environment.sizes)
    if witness is not None:
        frame.witness = witness
    return frame.run(function.body.block, values)


def _frame(machine: Machine, sizes: dict[str, int]) -> Frame:
    """A frame for graph ops, watched as `checking` asks around it."""
    return Frame(machine, sizes, witness=check_nan if asked().checks.nonfinite else None)


def _argument(what: str, argument: Any, type_: Attribute, environment: ShapeEnvironment) -> Any:
    if not isinstance(type_, GraphTensorType):
        return scalars.argument(what, argument, type_)
    array = np.asarray(argument)
    if array.dtype != type_.dtype.storage:
        raise DtypeError(f"{what}: expected {type_.dtype}, got an array of {array.dtype}")
    if array.ndim != len(type_.shape):
        raise ShapeError(f"{what}: expected rank {len(type_.shape)}, got {array.ndim}", shapes=[str(type_)])
    for axis, (size, actual) in enumerate(zip(type_.shape, array.shape, strict=True)):
        environment.unify(size, actual, Origin(f"{what}, axis {axis}", None))
    return array


def _shape(frame: Frame, value: SSAValue) -> tuple[int, ...]:
    return tuple(dim(size).evaluate(frame.symbols) for size in graph_type(value).shape)


def _module(op: Operation) -> ModuleOp:
    while not isinstance(op, ModuleOp):
        parent = op.parent_op()
        if parent is None:
            raise CompileError(f"{op.name} is not inside a module")
        op = parent
    return op


def _run_kernel(
    frame: Frame, op: Operation, callee: SymbolRefAttr, operands: Values, results: Sequence[SSAValue]
) -> Values:
    outputs = [np.zeros(_shape(frame, result), graph_type(result).dtype.storage) for result in results]
    if (updated := updated_input(symbol_in(_module(op), callee.string_value(), tile.FuncOp))) is not None:
        outputs[0][...] = operands[updated]
    run_kernel(_module(op), callee.string_value(), [*operands, *outputs], machine=frame.machine, covered=True)
    return outputs


meanings(
    {
        graph.CallOp: lambda frame, op, operands: _call(
            symbol_in(_module(op), op.callee.string_value(), graph.FuncOp), operands, frame.machine
        ),
        graph.CallKernelOp: lambda frame, op, operands: _run_kernel(frame, op, op.callee, operands, op.results_),
        schedule.LaunchOp: lambda frame, op, operands: _run_kernel(frame, op, op.callee, operands, op.results_),
        schedule.RegionOp: lambda frame, op, operands: _frame(frame.machine, frame.symbols).run(
            op.body.block, operands
        ),
        graph.ConstantOp: lambda frame, op, operands: [
            dense_values(op.value, graph_type(op.result).dtype, _shape(frame, op.result))
        ],
        graph.BroadcastOp: lambda frame, op, operands: [np.broadcast_to(operands[0], _shape(frame, op.result))],
        graph.ReshapeOp: lambda frame, op, operands: [np.reshape(operands[0], _shape(frame, op.result))],
        graph.TransposeOp: lambda frame, op, operands: [np.transpose(operands[0], tuple(op.permutation.iter_values()))],
        graph.ConcatenateOp: lambda frame, op, operands: [np.concatenate(list(operands), axis=op.axis.value.data)],
        graph.IotaOp: lambda frame, op, operands: [
            positions(_shape(frame, op.result), op.axis.value.data, 0, graph_type(op.result).dtype.base)
        ],
    }
)


@meaning(graph.EwOp)
def _elementwise(frame: Frame, op: graph.EwOp, operands: Values) -> Values:
    dtypes = [graph_type(operand).dtype for operand in op.operands_]
    to = graph_type(op.result).dtype if op.fn.data == "cast" else None
    seed = None if op.seed is None else op.seed.value.data
    return [elementwise.apply(op.fn.data, operands, dtypes, to=to, seed=seed)]


@meaning(graph.SliceOp)
def _slice(frame: Frame, op: graph.SliceOp, operands: Values) -> Values:
    bounds = zip(op.starts.iter_values(), op.stops.iter_values(), op.steps.iter_values(), strict=True)
    return [operands[0][tuple(slice(*bound) for bound in bounds)]]


@meaning(graph.ReduceOp)
def _reduce(frame: Frame, op: graph.ReduceOp, operands: Values) -> Values:
    dtype = graph_type(op.operand).dtype
    reduced = reductions.apply(op.kind.data, operands[0], dtype, list(op.axes.iter_values()))
    return [reduced.reshape(_shape(frame, op.result))]


@meaning(graph.MatmulOp)
def _matmul(frame: Frame, op: graph.MatmulOp, operands: Values) -> Values:
    a, b = operands
    if (count := op.part_count) is not None:
        a, b = _parts_of(a, 1, count, op.step), _parts_of(b, 0, count, op.step)
    product, carrier = multiply(a, b, graph_type(op.a).dtype, graph_type(op.b).dtype)
    result = graph_type(op.result).dtype
    if result.is_integer:
        product, carrier = cast(product, carrier, op.accumulator), op.accumulator
    return [cast(product, carrier, result)]


def _parts_of(matrix: Array, axis: int, count: int, step: IntegerAttr | None) -> Array:
    """The parts of a matrix along an axis, zeros behind its end."""
    assert step is not None
    unit, depth = step.value.data, matrix.shape[axis]
    length = math.ceil(math.ceil(depth / unit) / count) * unit
    padded = np.zeros([*matrix.shape[:axis], count * length, *matrix.shape[axis + 1 :]], matrix.dtype)
    padded[tuple(slice(0, extent) for extent in matrix.shape)] = matrix
    parts = padded.reshape(*matrix.shape[:axis], count, length, *matrix.shape[axis + 1 :])
    return np.moveaxis(parts, axis, 0)


@meaning(graph_effects.RandomOp)
def _random(frame: Frame, op: graph_effects.RandomOp, operands: Values) -> Values:
    dtype = graph_type(op.result).dtype
    return [frame.machine.draw(op.distribution.data, dtype, _shape(frame, op.result))]


@meaning(graph_effects.StateReadOp)
def _state_read(frame: Frame, op: graph_effects.StateReadOp, operands: Values) -> Values:
    empty = np.zeros(_shape(frame, op.result), graph_type(op.result).dtype.storage)
    return [np.array(frame.machine.slots.get(op.slot.string_value(), empty))]


@meaning(graph_effects.StateWriteOp)
def _state_write(frame: Frame, op: graph_effects.StateWriteOp, operands: Values) -> Values:
    frame.machine.slots[op.slot.string_value()] = np.array(operands[0])
    return []


@meaning(graph_effects.AllReduceOp)
def _all_reduce(frame: Frame, op: graph_effects.AllReduceOp, operands: Values) -> Values:
    dtype = graph_type(op.operand).dtype
    return [frame.machine.combine(op.kind.data, op.axis.data, dtype, operands[0])]


@meaning(graph_effects.PrintOp)
def _print(frame: Frame, op: graph_effects.PrintOp, operands: Values) -> Values:
    frame.machine.show(op.label.data, operands[0])
    return []
