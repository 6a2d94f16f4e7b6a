"""A kernel instance at each level: the graph that calls it, its launch, its tile program."""

from __future__ import annotations

from dataclasses import asdict

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute

from tessera.ir.common.attributes import SizesAttr, integer
from tessera.ir.common.effects import MEMORY, effects_within
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.tile.calls.instance import Instance
from tessera.tile.language.schedule import Schedule
from tessera.transforms.pipeline import Compiled, compile_module


def calling_module(instance: Instance, schedule: Schedule) -> ModuleOp:
    """A module whose graph function does nothing but call the kernel, under its schedule."""
    kernel = returning(instance)
    module = ModuleOp([kernel])
    types = [_outer(view, shape) for view, shape in zip(kernel.function_type.inputs, kernel.shapes, strict=True)]
    inputs, outputs = types[: kernel.input_count], types[kernel.input_count :]
    effects = effects_within(op for op in kernel.body.walk() if not op.regions) or ()
    declared = sorted({effect.resource.name() for effect in effects if effect.resource != MEMORY})
    function = graph.FuncOp("main", inputs, outputs, declared)
    for argument, inner in zip(function.arguments, kernel.arguments, strict=False):
        argument.name_hint = inner.name_hint
    results = [output for output in outputs if isinstance(output, GraphTensorType)]
    config = ConfigAttr(config_of(schedule))
    call = graph.CallKernelOp(kernel.sym_name.data, function.arguments, results, config=config)
    end = graph.ReturnOp(call.results)
    for op in (function, call, end):
        op.location = kernel.location
    function.body.block.add_ops([call, end])
    module.body.block.add_op(function)
    return module


def returning(instance: Instance) -> tile.FuncOp:
    """The tile function of an instance, as graphs call it: what it fills is among its results."""
    kernel = instance.module.body.block.first_op
    assert isinstance(kernel, tile.FuncOp)
    made = kernel.clone()
    _return_what_is_filled(made)
    return made


def _return_what_is_filled(kernel: tile.FuncOp) -> None:
    """In a graph arrays are values: those that a kernel fills are results, and results come last."""
    inputs = [index for index in range(kernel.input_count) if index not in kernel.filled]
    order = [*inputs, *kernel.filled, *range(kernel.input_count, len(kernel.arguments))]
    block, given = kernel.body.block, kernel.arguments
    for argument in (given[index] for index in order):
        moved = block.insert_arg(argument.type, len(block.args))
        moved.name_hint = argument.name_hint
        argument.replace_all_uses_with(moved)
    for argument in given:
        block.erase_arg(argument)
    kernel.properties["function_type"] = FunctionType.from_lists([argument.type for argument in block.args], [])
    kernel.properties["shapes"] = ArrayAttr([kernel.shapes.data[index] for index in order])
    kernel.properties["outputs"] = integer(len(order) - len(inputs))
    kernel.properties.pop("fills", None)


def _outer(view: Attribute, shape: SizesAttr) -> Attribute:
    return GraphTensorType.of(shape.data, view.dtype) if isinstance(view, ViewType) else view


def config_of(schedule: Schedule) -> Config:
    """A schedule as Schedule IR carries it."""
    return Config(**asdict(schedule))


def schedule_of(config: Config) -> Schedule:
    """A schedule from what Schedule IR says; among how many instances sums are split is for regions alone."""
    return Schedule(**{name: value for name, value in asdict(config).items() if name != "split"})


def lower_through(instance: Instance, schedule: Schedule) -> Compiled:
    """The kernel through the whole pipeline, with the text of each level."""
    return compile_module(calling_module(instance, schedule))
