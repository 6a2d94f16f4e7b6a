"""Launch plans of nv functions: what the head of a kernel and its tensor maps ask of the host."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute

from tessera.compiler.launch_plan import ArrayArgument, DeviceLaunch, MapAxis, NumberArgument, Plan, TensorMap
from tessera.errors import CompileError
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.targets.cuda.compile import CompiledPtx
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper_copies import TensorMapOp
from tessera.targets.cuda.ir.hopper_types import map_type

_KINDS = {"f32": "f32", "f64": "f64", "i64": "i64", "bool": "i1"}


def plan_of_function(function: nv.FuncOp, made: CompiledPtx) -> Plan:
    """How to launch a function of the nv level; its outputs are results that each call makes anew."""
    block, outputs = made.block, function.outputs.value.data
    arguments: list[ArrayArgument | NumberArgument] = []
    first_output = len(function.arguments) - outputs
    for index, (argument, shape) in enumerate(zip(function.arguments, function.shapes, strict=True)):
        word = block.first[index]
        if isinstance(argument.type, ViewType):
            arguments.append(ArrayArgument(word, argument.type.dtype, tuple(shape.data), index >= first_output))
        else:
            arguments.append(NumberArgument(word, _kind_of(argument.type)))
    return Plan(
        made.name,
        tuple(arguments),
        outputs,
        tuple(function.grid.data),
        block.grid,
        block.words,
        (),
        device=launch_of(function, made),
        block_bytes=block.size,
    )


def launch_of(function: nv.FuncOp, made: CompiledPtx) -> DeviceLaunch:
    """The parts of a launch of a function besides its arguments."""
    maps = [op for op in function.body.walk() if isinstance(op, TensorMapOp)]
    counters = _number(function, "counters", 0)
    return DeviceLaunch(
        threads=made.threads,
        shared=made.shared,
        cluster=_number(function, "cluster", 1),
        persistent=_number(function, "persistent", 0),
        maps=tuple(_map(function, op, offset) for op, offset in zip(maps, made.block.maps, strict=True)),
        counters=counters,
        counters_word=made.block.counters if counters else -1,
        report_word=made.block.report if made.messages or tile.records_prints(function) else -1,
        local=made.local,
        follows=any(isinstance(op, nv.GriddepcontrolWaitOp) for op in function.body.block.ops),
    )


def _map(function: nv.FuncOp, op: TensorMapOp, offset: int) -> TensorMap:
    made = map_type(op.result)
    axes = tuple(MapAxis(*axis) for axis in op.axes.data)
    return TensorMap(offset, function.arguments.index(op.view), axes, made.box, made.swizzle.data)  # pyright: ignore[reportArgumentType]  # it is one of them


def _number(function: nv.FuncOp, name: str, otherwise: int) -> int:
    found = function.attributes.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else otherwise


def _kind_of(type_: Attribute) -> str:
    name = "i64" if isinstance(type_, IndexType) else dtype_of(type_).name
    if name not in _KINDS:
        raise CompileError(f"a number of {name} cannot be passed to machine code", hint="pass it as an array")
    return _KINDS[name]
