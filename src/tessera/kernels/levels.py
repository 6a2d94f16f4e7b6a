"""A kernel instance at each level: the graph that calls it, its launch, its tile program."""

from __future__ import annotations

from dataclasses import asdict

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tessera.dialects import graph, tile
from tessera.dialects.attributes import SizesAttr
from tessera.dialects.effects import MEMORY, effects_within
from tessera.dialects.graph_types import GraphTensorType
from tessera.dialects.schedule_types import Config, ConfigAttr
from tessera.dialects.tile_types import ViewType
from tessera.kernels.function import Instance
from tessera.kernels.schedule import Schedule
from tessera.transforms.pipeline import Compiled, compile_module


def calling_module(instance: Instance, schedule: Schedule) -> ModuleOp:
    """A module whose graph function does nothing but call the kernel, under its schedule."""
    module = instance.module.clone()
    kernel = module.body.block.first_op
    assert isinstance(kernel, tile.FuncOp)
    types = [_outer(view, shape) for view, shape in zip(kernel.function_type.inputs, kernel.shapes, strict=True)]
    inputs, outputs = types[: kernel.input_count], types[kernel.input_count :]
    effects = effects_within(op for op in kernel.body.walk() if not op.regions) or ()
    declared = sorted({effect.resource.name() for effect in effects if effect.resource != MEMORY})
    function = graph.FuncOp("main", inputs, outputs, declared)
    for argument, inner in zip(function.arguments, kernel.arguments, strict=False):
        argument.name_hint = inner.name_hint
    results = [output for output in outputs if isinstance(output, GraphTensorType)]
    config = ConfigAttr(config_of(schedule))
    call = graph.CallKernelOp(kernel.sym_name.data, function.arguments, results, config)
    end = graph.ReturnOp(call.results)
    for op in (function, call, end):
        op.location = kernel.location
    function.body.block.add_ops([call, end])
    module.body.block.add_op(function)
    return module


def _outer(view: Attribute, shape: SizesAttr) -> Attribute:
    return GraphTensorType.of(shape.data, view.dtype) if isinstance(view, ViewType) else view


def config_of(schedule: Schedule) -> Config:
    """A schedule as Schedule IR carries it."""
    return Config(**asdict(schedule))


def schedule_of(config: Config) -> Schedule:
    """A schedule from what Schedule IR says."""
    return Schedule(**asdict(config))


def lower_through(instance: Instance, schedule: Schedule) -> Compiled:
    """The kernel through the whole pipeline, with the text of each level."""
    return compile_module(calling_module(instance, schedule))
