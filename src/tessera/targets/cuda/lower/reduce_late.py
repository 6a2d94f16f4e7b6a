"""reduce-late: what a loop folds, and carries, is folded behind it; until then each element has a total of its own.

Folding a tile takes shuffles, and where warps share rows a wait for all of them, in every iteration. Totals of elements
are a thread's own business, and loads of the next iterations need not wait for anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tessera.dtypes.types import Kind
from tessera.ir.common import reductions
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location

_MOST = 8192
"""Elements of all totals of a loop: threads hold them beside what they load."""
_BOUNDS = 3
"""Operands of a loop in front of what it carries."""


@dataclass(frozen=True)
class _Total:
    """A value that a loop carries, the op that adds to it, and the reduction that it adds."""

    place: int
    added: tile.EwOp
    expanded: tile.ExpandOp | None
    reduced: tile.ReduceOp


def reduce_late(function: tile.FuncOp) -> None:
    """Rewrites the loops of a function without dots, whose accumulators have the registers otherwise."""
    if any(isinstance(op, tile.DotOp) for op in function.body.walk()):
        return
    for loop in [op for op in function.body.walk() if isinstance(op, scf.ForOp)]:
        room = _MOST
        for total in _totals(loop):
            size = prod(tile_type(total.reduced.operand).get_shape())
            if size <= room:
                room -= size
                _widen(loop, total)


ReduceLate = function_pass("reduce-late", reduce_late)


def _totals(loop: scf.ForOp) -> list[_Total]:
    end, found = loop.body.block.last_op, list[_Total]()
    assert end is not None
    for place, value in enumerate(end.operands):
        carried, added = loop.body.block.args[1 + place], value.owner
        if isinstance(added, tile.EwOp) and added.policy is None and _only_user(value) is end:
            others = [operand for operand in added.operands_ if operand is not carried]
            if len(others) == 1 and len(added.operands_) == 2 and _only_user(carried) is added:
                expanded = others[0].owner if isinstance(others[0].owner, tile.ExpandOp) else None
                reduced = others[0].owner if expanded is None else expanded.operand.owner
                if isinstance(reduced, tile.ReduceOp) and _is_folded(loop, added, expanded, reduced):
                    found.append(_Total(place, added, expanded, reduced))
    return found


def _is_folded(loop: scf.ForOp, added: tile.EwOp, expanded: tile.ExpandOp | None, reduced: tile.ReduceOp) -> bool:
    """Whether an op adds what a reduction gives, for nothing else."""
    chain: list[Operation] = [reduced] if expanded is None else [expanded, reduced]
    return (
        reductions.TABLE[reduced.kind.data].combine == added.fn.data
        and all(op.parent is loop.body.block and _only_user(op.results[0]) is not None for op in chain)
        and (expanded is None or expanded.axis == reduced.axis)
        # Scalars are signed: numbers without a sign would have to be cast.
        and tile_dtype(reduced.operand).kind in (Kind.FLOAT, Kind.INT)
        and prod(tile_type(reduced.operand).get_shape()) > 0
    )


def _only_user(value: SSAValue) -> Operation | None:
    uses = [use.operation for use in value.uses]
    return uses[0] if len(uses) == 1 else None


def _widen(loop: scf.ForOp, total: _Total) -> None:
    wide, reduced = tile_type(total.reduced.operand), total.reduced
    dtype, kind, axis = tile_dtype(reduced.operand), reduced.kind.data, reduced.axis.value.data
    block, body, end = loop.parent_block(), loop.body.block, loop.body.block.last_op
    assert block is not None
    assert end is not None
    neutral = materialize(reductions.TABLE[kind].identity(dtype), element_of(dtype))
    start = tile.FullOp(neutral.result, wide.get_shape())
    block.insert_ops_before([neutral, start], loop)
    before = loop.operands[_BOUNDS + total.place]
    loop.operands[_BOUNDS + total.place] = start.result
    carried, result = (
        Rewriter.replace_value_with_new_type(value, wide)
        for value in (body.args[1 + total.place], loop.results[total.place])
    )
    added = tile.EwOp(total.added.fn.data, [carried, reduced.operand])
    body.insert_op_before(added, total.added)
    end.operands[total.place] = added.result
    # What reads the total behind the loop reads what is folded there.
    folded = tile.ReduceOp(kind, result, axis)
    made: list[Operation] = [folded]
    if total.expanded is not None:
        made.append(tile.ExpandOp(folded.result, axis))
    made.append(tile.EwOp(total.added.fn.data, [before, made[-1].results[0]]))
    result.replace_uses_with_if(made[-1].results[0], lambda use: use.operation is not folded)
    block.insert_ops_after(made, loop)
    adopt_location([neutral, start, added, *made], total.added)
    for op in (total.added, *([] if total.expanded is None else [total.expanded]), reduced):
        op.detach()
        op.erase()
