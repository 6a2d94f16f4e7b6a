"""`multicast-loads`: CTAs of a cluster load together the tiles that all of them need.

They have program instances side by side along the first axis of the grid. A ring whose tiles do not depend on the
rank of a CTA in its cluster holds the same for all: each CTA loads a part of every tile, and multicasts it.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe.warp_groups import ConsumerIdOp, CtaIdOp, PipelineStateType, ProducerCopyOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.function_pass import function_pass


def multicast_loads(function: tile.FuncOp) -> int:
    """Marks the rings that a cluster can multicast; how many there are."""
    cluster = pipe.cluster_of(function)
    if cluster == 1:
        return 0
    uniformity = _Uniformity(cluster)
    found = 0
    for op in function.body.block.ops:
        if isinstance(op, pipe.RingOp):
            copies = [use.operation for use in op.result.uses if isinstance(use.operation, ProducerCopyOp)]
            if copies and all(uniformity.is_copy(copy) for copy in copies):
                op.properties["multicast"] = UnitAttr()
                found += 1
    return found


MulticastLoads = function_pass("multicast-loads", multicast_loads)


class _Uniformity:
    """Which values are the same for all CTAs of a cluster, whose numbers follow each other."""

    def __init__(self, cluster: int) -> None:
        self.cluster = cluster
        self.known: dict[SSAValue, bool] = {}

    def is_copy(self, op: ProducerCopyOp) -> bool:
        """Whether all CTAs copy the same tiles, equally often."""
        return all(map(self.holds, (op.view, *op.offsets))) and self._is_reached(op)

    def _is_reached(self, op: Operation) -> bool:
        around = op.parent_op()
        while not isinstance(around, WarpSpecializeOp):
            match around:
                case scf.ForOp():
                    decides = (around.lb, around.ub, around.step)
                case scf.IfOp():
                    decides = (around.cond,)
                case _:
                    return False
            if not all(map(self.holds, decides)):
                return False
            around = around.parent_op()
        return True

    def holds(self, value: SSAValue) -> bool:
        if value not in self.known:
            self.known[value] = self._look(value)
        return self.known[value]

    def _look(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, tile.FuncOp):
                return True
            # Other values that a loop carries are not looked into.
            return isinstance(loop, scf.ForOp) and value is owner.args[0] and all(map(self.holds, loop.operands[:3]))
        if isinstance(owner, CtaIdOp | ConsumerIdOp) or owner.regions or isinstance(value.type, PipelineStateType):
            return False
        if isinstance(owner, arith.DivSIOp) and isinstance(owner.lhs.owner, CtaIdOp):
            return integer_of(owner.rhs) == self.cluster
        return is_side_effect_free(owner) and all(map(self.holds, owner.operands))
