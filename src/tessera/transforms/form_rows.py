"""Forms pointwise and rows regions: everything that is no product, producers fused into what uses them."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tessera.dialects import graph, schedule
from tessera.dialects.graph_types import graph_type
from tessera.dialects.schedule_types import Config
from tessera.transforms.legality import LEVELS
from tessera.transforms.regions import enclose

# Ops that compute each element from the elements at its place: they fuse into one loop over the result.
POINTWISE = (graph.EwOp, graph.BroadcastOp, graph.IotaOp)
# Rows of 64 fill a cache line or a warp's access for every element type; 16 of them amortise the loop.
_POINTWISE_BLOCK = (16, 64)
_KINDS: dict[type[Operation], str] = {graph.ReduceOp: "rows", graph.MatmulOp: "product"}


def form_rows(block: Block) -> None:
    """Puts all algebra of a block that is in no region yet into regions."""
    # A reshape that no region took is the host's: it moves nothing.
    algebra = LEVELS["schedule"].region - {schedule.YieldOp, graph.ConstantOp, graph.ReshapeOp}
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        if type(op) in algebra:
            region = enclose(_group(op), _KINDS.get(type(op), "pointwise"), _config(op))
            previous = region.prev_op
        op = previous


def _config(root: Operation) -> Config:
    if not isinstance(root, POINTWISE):
        return Config()
    rank = len(graph_type(root.results[0]).shape)
    return Config(block=(1,) * (rank - 2) + _POINTWISE_BLOCK[max(0, 2 - rank) :])


def _group(root: Operation) -> list[Operation]:
    """The root and the pointwise ops that only serve it."""
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
    return list(group)
