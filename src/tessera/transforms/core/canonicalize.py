"""canonicalize: folds constants and identities, resolves static control flow, orders operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.dtypes.types import NO_POLICY
from tessera.ir.common import elementwise
from tessera.ir.graph import dialect as graph
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import Dim
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.folding import FoldedConstant, can_fold, fold, literal, materialize, signature_size
from tessera.transforms.core.rewriting import inline_before, replace

_COMMUTATIVE = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MinSIOp, arith.MaxSIOp)
_COMMUTATIVE_ROWS = frozenset({"add", "mul", "min", "max", "and", "or", "xor", "eq", "ne"})


@dataclass(frozen=True)
class Canonicalize(ModulePass):
    """Brings a module to one normal form; running it twice changes nothing more."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert elementwise.TABLE.keys() >= _COMMUTATIVE_ROWS
        while _visit(op.body.block):
            pass
        sweep(op.body.block)


def _visit(block: Block) -> bool:
    """One pass over a block and what is nested in it; true when something changed."""
    changed = False
    op = block.first_op
    while op is not None:
        following = op.next_op
        for rewrite in _rewrites(type(op)):
            if rewrite(op):
                changed = True
                break
        else:
            for region in op.regions:
                for inner in region.blocks:
                    changed |= _visit(inner)
        op = following
    return changed


@cache
def _rewrites(kind: type[Operation]) -> tuple[Callable[[Operation], bool], ...]:
    """The rewrites for ops of one kind, in order."""
    chosen = [_fold] if can_fold(kind) else []
    return (*chosen, *_REWRITES.get(kind, ()))


def _fold(op: Operation) -> bool:
    if len(op.results) != 1:
        return False
    found = fold(op, [literal(operand) for operand in op.operands])
    if found is None:
        return False
    if isinstance(found, FoldedConstant):
        replace(op, [materialize(found.value, op.results[0].type)])
    else:
        replace(op, [], [found.value])
    return True


def _static_branch(op: Operation) -> bool:
    if not isinstance(op, scf.IfOp) or (condition := literal(op.cond)) is None:
        return False
    branch = op.true_region if condition else op.false_region
    replace(op, [], inline_before(op, branch.block) if branch.blocks else ())
    return True


def _empty_loop(op: Operation) -> bool:
    if not isinstance(op, scf.ForOp):
        return False
    start, stop = literal(op.lb), literal(op.ub)
    if op.lb is not op.ub and (start is None or stop is None or start < stop):
        return False
    replace(op, [], op.iter_args)
    return True


def _single_iteration(op: Operation) -> bool:
    """A loop that runs once is its body."""
    if not isinstance(op, scf.ForOp):
        return False
    start, stop, step = (literal(bound) for bound in (op.lb, op.ub, op.step))
    if start is None or stop is None or step is None or not start < stop <= start + step:
        return False
    block = op.body.block
    for argument, value in zip(block.args, (op.lb, *op.iter_args), strict=True):
        argument.replace_all_uses_with(value)
    replace(op, [], inline_before(op, block))
    return True


def _compose(op: Operation) -> bool:
    """A transpose of a transpose, or a reshape of a reshape, is one."""
    if isinstance(op, graph.ReshapeOp) and isinstance(inner := op.operand.owner, graph.ReshapeOp):
        replace(op, [graph.ReshapeOp(inner.operand, graph.graph_type(op.result).shape)])
        return True
    for kind in (tile.TransOp, graph.TransposeOp):
        if isinstance(op, kind) and isinstance(inner := op.operand.owner, kind):
            before = list(inner.permutation.iter_values())
            replace(op, [kind(inner.operand, [before[axis] for axis in op.permutation.iter_values()])])
            return True
    return False


def _of_one_element(op: Operation) -> bool:
    """A reduction along axes of one element gives what it takes."""
    if not isinstance(op, graph.ReduceOp):
        return False
    source, target = graph.graph_type(op.operand), graph.graph_type(op.result)
    if source.dtype.policy != NO_POLICY or any(source.shape[axis] != 1 for axis in op.axes.iter_values()):
        return False
    if source.shape == target.shape:
        replace(op, [], [op.operand])
    else:
        replace(op, [graph.ReshapeOp(op.operand, target.shape)])
    return True


def _order(op: Operation) -> bool:
    """Constants stand on the right of commutative ops, so that equal expressions look equal."""
    commutes = isinstance(op, _COMMUTATIVE) or (
        isinstance(op, tile.EwOp | graph.EwOp) and op.fn.data in _COMMUTATIVE_ROWS and len(op.operands) == 2
    )
    if not commutes or not _is_constant(op.operands[0]) or _is_constant(op.operands[1]):
        return False
    op.operands = [op.operands[1], op.operands[0], *op.operands[2:]]
    return True


def _is_constant(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp | graph.ConstantOp) or (
        isinstance(owner, tile.FullOp) and _is_constant(owner.value)
    )


def _first_occurrence(op: Operation) -> bool:
    """Sizes that share a symbol in the signature are equal: ask the first argument that has it."""
    if not isinstance(op, tile.DimOp) or not isinstance(view := op.view, BlockArgument):
        return False
    wanted = signature_size(view, op.axis.value.data)
    if not isinstance(wanted, Dim):
        return False
    for argument in view.block.args:
        if isinstance(argument.type, ViewType):
            for axis in range(argument.type.rank.data):
                if signature_size(argument, axis) == wanted:
                    if (argument, axis) == (view, op.axis.value.data):
                        return False
                    replace(op, [tile.DimOp(argument, axis)])
                    return True
    return False


_REWRITES: Mapping[type[Operation], tuple[Callable[[Operation], bool], ...]] = MappingProxyType(
    {
        scf.IfOp: (_static_branch,),
        scf.ForOp: (_empty_loop, _single_iteration),
        graph.ReshapeOp: (_compose,),
        graph.TransposeOp: (_compose,),
        graph.ReduceOp: (_of_one_element,),
        tile.TransOp: (_compose,),
        tile.DimOp: (_first_occurrence,),
        **dict.fromkeys((*_COMMUTATIVE, tile.EwOp, graph.EwOp), (_order,)),
    }
)
