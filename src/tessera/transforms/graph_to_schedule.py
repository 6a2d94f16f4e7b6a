"""graph-to-schedule: decides which ops become one kernel, and how each kernel is cut up."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.dialects import graph, schedule, tile
from tessera.dialects.graph_effects import look_up
from tessera.dialects.graph_types import graph_type
from tessera.dialects.kernel_calls import match_symbols, substitute
from tessera.dialects.schedule_types import Config
from tessera.dtypes.types import Kind
from tessera.transforms.legality import LEVELS
from tessera.transforms.rewriting import replace

# Ops that compute each element from the elements at its place: they fuse into one loop over the result.
POINTWISE = (graph.EwOp, graph.BroadcastOp, graph.IotaOp)
# Rows of 64 fill a cache line or a warp's access for every element type; 16 of them amortise the loop.
_POINTWISE_BLOCK = (16, 64)


@dataclass(frozen=True)
class GraphToSchedule(ModulePass):
    """Puts algebra into regions, fusing pointwise producers into their consumers, and schedules kernel calls."""

    name = "graph-to-schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, graph.FuncOp):
                _lower(function.body.block)


def _lower(block: Block) -> None:
    algebra = LEVELS["schedule"].region
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        if isinstance(op, graph.CallKernelOp):
            _launch(op)
        elif type(op) in algebra and not isinstance(op, graph.ConstantOp):
            region = _enclose(op)
            previous = region.prev_op
        op = previous
    for op in list(block.ops):
        if isinstance(op, graph.ConstantOp) and op.result.first_use is None:
            op.detach()
            op.erase()


def _launch(op: graph.CallKernelOp) -> None:
    kernel = look_up(op, op.callee, tile.FuncOp)
    values = match_symbols(kernel, [value.type for value in (*op.arguments, *op.results_)])
    config = op.config.data if op.config is not None else Config()
    results = [graph_type(value) for value in op.results_]
    grid = substitute(kernel.grid.data, values)
    replace(op, [schedule.LaunchOp(op.callee.string_value(), grid, config, op.arguments, results)])


def _is_splat(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, graph.ConstantOp):
        return False
    dtype = graph_type(owner.result).dtype
    # A splat becomes an `arith.constant`, and there are no unsigned ones.
    return len(owner.value.data) == dtype.storage.itemsize and dtype.kind is not Kind.UINT


def _group(root: Operation) -> list[Operation]:
    """The root and the pointwise ops that only serve it, in program order; splats are copied in."""
    group = {root}
    if isinstance(root, POINTWISE):
        queue = [root]
        for consumer in queue:
            for operand in consumer.operands:
                producer = operand.owner
                if not isinstance(producer, Operation) or producer in group or producer.parent is not root.parent:
                    continue
                if isinstance(producer, POINTWISE) and all(use.operation in group for use in operand.uses):
                    group.add(producer)
                    queue.append(producer)
    block = root.parent
    assert block is not None
    return [op for op in block.ops if op in group]


def _enclose(root: Operation) -> schedule.RegionOp:
    """Moves a group into a region that stands where its root stood."""
    group = _group(root)
    inside = {result for op in group for result in op.results}
    splats = [
        operand.owner
        for op in group
        for operand in op.operands
        if _is_splat(operand) and isinstance(operand.owner, Operation)
    ]
    inputs: list[SSAValue] = []
    for op in group:
        inputs += [v for v in op.operands if v not in inside and not _is_splat(v) and v not in inputs]
    result = root.results[0]
    shape = graph_type(result).shape
    block = (1,) * (len(shape) - 2) + _POINTWISE_BLOCK[max(0, 2 - len(shape)) :]
    config = Config(block=block) if isinstance(root, POINTWISE) else Config()
    region = schedule.RegionOp(config, inputs, [result.type])
    body = region.body.block
    mapped: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    for argument, value in zip(body.args, inputs, strict=True):
        argument.name_hint = value.name_hint
    for op in [*dict.fromkeys(splats), *group]:
        body.add_op(op.clone(value_mapper=mapped))
    end = schedule.YieldOp([mapped[result]])
    end.location = root.location
    body.add_op(end)
    replace(root, [region])
    for op in reversed(group):
        if op is not root:
            op.detach()
            op.erase()
    return region
