"""Takes ops that live in a trace alone out of what was traced."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tessera.ir.graph.control import YieldOp
from tessera.transforms.derivatives.checkpoints import CheckpointOp, NamedOp
from tessera.transforms.derivatives.customs import CustomOp, StopOp
from tessera.transforms.derivatives.rules import Replacements


def finish(block: Block, replace: Replacements) -> None:
    """Takes these ops out of a block, and out of all bodies in it."""
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                finish(inner, replace)
        if isinstance(op, StopOp | NamedOp):
            replace(op.result, op.operand)
            _erase(op)
        elif isinstance(op, CustomOp | CheckpointOp):
            last = op.body.block.last_op
            assert isinstance(last, YieldOp)
            values = list(last.values)
            _erase(last)
            for made in list(op.body.block.ops):
                made.detach()
                block.insert_op_before(made, op)
            for before, after in zip(list(op.results), values, strict=True):
                replace(before, after)
            _erase(op)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
