"""Prologues: work that may be fused in front of a matmul, few rows of its left operand.

Every program instance computes them anew, norms and all, from what they are made of. That is a small part of what
it reads of the other operand, as long as rows are few; and a kernel less stands between what came before and the
matmul. An analysis: it looks at a block of graph ops and says which of them a region may take. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size
from tessera.transforms.core.index_digits import PULL, Map, pull
from tessera.transforms.fusion.epilogues import Extents, is_whole
from tessera.transforms.fusion.fusion_refusals import AS_KERNEL, Reason
from tessera.transforms.fusion.region_tiles import FOLDS, folded_map, is_count, refusal
from tessera.transforms.fusion.regions import is_splat, users_of

DEEPEST = 4096
"""So long may a row be that every program instance holds it."""

_LONG_ROWS = Reason(f"a program instance holds rows of at most {DEEPEST} elements", AS_KERNEL, is_limit=True)
_NO_ROWS = Reason("what the rows are made of cannot be computed row by row here", AS_KERNEL, is_limit=True)
_NEEDED = Reason("others need what is computed, too, so that it would be computed beforehand all the same")


def prologue_ops(
    value: SSAValue, where: Map, blocks: Extents, block: Block, rows: tuple[int, Size]
) -> list[Operation] | Reason:
    """The ops that a left operand is made of, in order, where instances may compute it; or why they may not.

    `rows` are the axis of the iteration along which rows lie, and how long they are.
    """
    _, length = rows
    if not isinstance(length, int) or not 0 < length <= DEEPEST:
        return _LONG_ROWS
    found = _Search(blocks, block, rows).ops(value, where)
    if found is None:
        return _NO_ROWS
    taken = list(dict.fromkeys(found))
    works = any(isinstance(op, graph.EwOp | graph.ReduceOp) for op in taken)
    return [] if not works else taken if _is_all(taken, block) else _NEEDED


def _is_all(taken: Collection[Operation], block: Block) -> bool:
    """Whether only matmuls need what is computed: else it would be computed in front of them all the same."""
    inside = set(taken)
    return all(
        user in inside or isinstance(user, graph.MatmulOp)
        for op in taken
        if isinstance(op, graph.EwOp | graph.ReduceOp) and not is_count(op)
        for user in users_of(op, block)
    )


class _Search:
    """Goes from a value to what it is made of."""

    def __init__(self, blocks: Extents, block: Block, rows: tuple[int, Size]) -> None:
        self.blocks = blocks
        self.block = block
        self.axis, self.length = rows

    def ops(self, value: SSAValue, where: Map) -> list[Operation] | None:
        """The ops that compute a value at a position; None where it cannot be had there."""
        op = value.owner
        if isinstance(op, Operation) and op.parent is self.block:
            if isinstance(op, graph.IotaOp) or is_splat(value):
                return [op]
            found = self._made(op, where)
            if found is not None:
                return [*found, op]
        return [] if is_whole(where, self.blocks) else None

    def _made(self, op: Operation, where: Map) -> list[Operation] | None:
        if type(op) in PULL:
            inner = pull(op, where)
            return None if inner is None else self.ops(op.operands[0], inner)
        if isinstance(op, graph.EwOp) and refusal(op) is None:
            found = [self.ops(operand, where) for operand in op.operands_]
            return None if None in found else [one for ops in found for one in ops or ()]
        if isinstance(op, graph.ReduceOp):
            if is_count(op):
                return self.ops(op.operand, where)
            inner = self._folded(op, where)
            return None if inner is None else self.ops(op.operand, inner)
        return None

    def _folded(self, op: graph.ReduceOp, where: Map) -> Map | None:
        """Where the operand of a reduction is read, if it folds whole rows."""
        shape, axes = graph_type(op.operand).shape, list(op.axes.iter_values())
        dtypes = graph_type(op.operand).dtype, graph_type(op.result).dtype
        if op.kind.data not in FOLDS or len(axes) != 1 or shape[axes[0]] != self.length:
            return None
        if not all(dtype.is_float and dtype.policy.accum is None for dtype in dtypes):
            return None
        return None if any(self.axis in index.axes for index in where) else folded_map(op, where, self.axis)
