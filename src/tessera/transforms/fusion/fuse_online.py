"""Regions of two matmuls with exponentials between them: one loop over the keys (`online_algebra.py`).

The index maps of queries, keys and values are followed as those of any matmul's operands are, and what is computed of
the values is taken along; so are numbers of rows, such as the logarithm of the sum of weights.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import element_count
from tessera.transforms.core.block_order import in_order
from tessera.transforms.fusion.emit_tile_matmuls import COLUMN, ROW, positions_after
from tessera.transforms.fusion.epilogues import EpilogueWork, at_once, is_whole, longest, side_ops
from tessera.transforms.fusion.fuse_matmuls import operand_ops
from tessera.transforms.fusion.fusion_refusals import FusionRefusals
from tessera.transforms.fusion.gemv_fusion import is_held
from tessera.transforms.fusion.online_algebra import Online, Read, find_online, reads_through, width_of
from tessera.transforms.fusion.region_tiles import refusal
from tessera.transforms.fusion.regions import enclosable, enclose, users_of

_REARRANGE = (graph.ReshapeOp, graph.TransposeOp)


def fuse_online(block: Block, few: int, refusals: FusionRefusals) -> None:
    """Puts weighted means with exponential weights into regions of their own.

    With at most `few` queries, keys and values are read once: what is computed of them elementwise is done on the way,
    and stored where others want it.
    """
    for op in list(block.ops):
        if not isinstance(op, graph.MatmulOp) or op.parent is not block:
            continue
        found = find_online(op, block)
        if isinstance(found, Online):
            _form(found, block, few, refusals)
        elif found is not None:
            refusals.refuse([*found.ops, op], found.reason, op)


def _form(online: Online, block: Block, few: int, refusals: FusionRefusals) -> None:
    spaces = online.spaces
    made: dict[Operation, None] = {}
    sides: dict[Operation, None] = {}
    if isinstance(spaces.rows, int) and 0 < spaces.rows <= few and is_held(spaces.depth, *width_of(online)):
        for read in ((online.scores.b, online.right), (online.values.b, spaces.right)):
            found = _made_ops(read, online, block)
            if found is not None:
                made |= dict.fromkeys(found[0])
                sides |= dict.fromkeys(found[1])
    through_ops = [
        *operand_ops(online.scores.a, online.left, online.blocks, block, spaces.rows, tiled=True),
        *operand_ops(online.scores.b, online.right, online.blocks, block, spaces.rows),
        *operand_ops(online.values.b, spaces.right, online.blocks, block, spaces.rows),
    ]
    start = _work(online, block)
    if (reason := at_once(start)) is not None:
        exponential = online.weights[0].owner
        assert isinstance(exponential, Operation)
        refusals.refuse([online.scores, exponential, online.values], reason, online.values)
        return
    work = longest(start, block, refusals)
    taken = [*made, *work.ops]
    if not enclosable(taken):
        taken, sides = work.ops, {}
    copied = dict.fromkeys([*through_ops, *sides, *online.copied, *work.copied])
    enclose(taken, "online", Config(), copied=[op for op in copied if op not in taken])


def _made_ops(read: Read, online: Online, block: Block) -> tuple[list[Operation], list[Operation]] | None:
    """The op that computes keys or values, with the maps by which they are read, and what has to be copied for it.

    Others may want what is computed, if every element of it is read by one program instance: there are as many, and
    none is left out or read twice on the way.
    """
    reads = reads_through(read)
    value, where = reads[-1]
    op = value.owner
    if not isinstance(op, graph.EwOp) or op.parent is not block or refusal(op) is not None:
        return None
    found = [side_ops(operand, where, online.blocks, block) for operand in op.operands_]
    maps = [one.owner for one, _ in reversed(reads[:-1]) if isinstance(one.owner, Operation)]
    inside = {*maps, online.scores, online.values}
    if None in found or not all(is_whole(at, online.blocks) for _, at in reads):
        return None
    if any(user not in inside for one in (op, *maps) for user in users_of(one, block)):
        read_count = element_count((online.spaces.batch, *graph_type(read[0]).shape[-2:]))
        if element_count(graph_type(value).shape) != read_count or not all(isinstance(one, _REARRANGE) for one in maps):
            return None
    return [op, *maps], [one for ops in found for one in ops or ()]


def _work(online: Online, block: Block) -> EpilogueWork:
    ops = in_order(online.ops)
    rows = positions_after(dict((*online.tops, *online.totals)), ops)
    blocks = {ROW: online.spaces.rows, COLUMN: online.spaces.columns}
    return EpilogueWork(blocks, ops, {}, {**rows, online.values.result: online.spaces.result})
