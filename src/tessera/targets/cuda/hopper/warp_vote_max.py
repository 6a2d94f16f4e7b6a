"""Warps vote before they reduce a row's maximum: threads exchange maxima only where the vote asks for it.

A branch on `nv.any` of a comparison of rows' maxima is rarely taken. For the vote it is enough that each thread
compares the greatest element that it holds itself; threads that share a row exchange theirs in the branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import laid_out, layout_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before, replace

_MAXIMA = ("max", "top")
_ABOVE = {"gt": 0, "ge": 0, "lt": 1, "le": 1}
"""Comparisons, and which side of them is greater if they hold."""


def vote_before_max(function: nv.FuncOp) -> None:
    """Rewrites the votes of a function."""
    for op in list(function.body.walk()):
        if isinstance(op, wgmma.AnyOp) and (vote := _vote(op)) is not None:
            _write(vote)


VoteBeforeMax = function_pass("vote-before-max", vote_before_max, nv.FuncOp)


@dataclass(frozen=True)
class _Vote:
    """A vote on rows whose maximum is above a limit, and the branch in which the maxima are used."""

    asks: wgmma.AnyOp
    compares: tile.EwOp
    maximum: tile.ReduceOp
    side: int
    branch: scf.IfOp


def _vote(op: wgmma.AnyOp) -> _Vote | None:
    compares = op.operand.owner
    if not isinstance(compares, tile.EwOp) or compares.fn.data not in _ABOVE:
        return None
    side = _ABOVE[compares.fn.data]
    maximum = compares.operands_[side].owner
    if not isinstance(maximum, tile.ReduceOp) or maximum.kind.data not in _MAXIMA:
        return None
    source = tile_type(maximum.operand)
    if source.get_num_dims() != 2 or maximum.axis.value.data != 1 or layout_of(source).has_ghosts(source.get_shape()):
        return None
    users = [use.operation for use in (*maximum.result.uses, *compares.result.uses)]
    users = [user for user in users if user is not compares and user is not op]
    branches = [use.operation for use in op.result.uses if isinstance(use.operation, scf.IfOp)]
    for branch in branches:
        if branch.parent_block() is op.parent_block() and all(branch.true_region.is_ancestor(user) for user in users):
            return _Vote(op, compares, maximum, side, branch)
    return None


def _write(vote: _Vote) -> None:
    """Puts the thread's own maximum in front of the vote, and the row's maximum and its comparison into the branch."""
    maximum, compares = vote.maximum, vote.compares
    own = wgmma.PartialOp(maximum.kind.data, maximum.operand, 1)
    layout, shape = layout_of(own.result), tile_type(own.result).get_shape()
    column = tile.ExpandOp(compares.operands_[1 - vote.side], 1)
    _lay(column, layout.narrowed((shape[0], 1)))
    limits = tile.BroadcastOp(column.result, shape)
    _lay(limits, layout)
    sides = [own.result, limits.result]
    above = tile.EwOp(compares.fn.data, sides if vote.side == 0 else sides[::-1])
    _lay(above, layout)
    finished = tile.ReduceOp(maximum.kind.data, own.result, 1)
    _lay(finished, layout_of(maximum.result))
    maximum.result.replace_all_uses_with(finished.result)
    compares.detach()
    first = vote.branch.true_region.block.first_op
    assert first is not None
    insert_before(first, [finished, compares])
    replace(vote.asks, [own, column, limits, above, wgmma.AnyOp(above.result)])
    maximum.detach()
    maximum.erase()


def _lay(op: Operation, layout: Layout) -> None:
    """Gives the result of an op a layout."""
    (result,) = op.results
    Rewriter.replace_value_with_new_type(result, laid_out(tile_type(result), layout))
