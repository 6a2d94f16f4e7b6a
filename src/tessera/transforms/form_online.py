"""Regions of two products with exponentials between them: one loop over the keys (`online_algebra.py`).

The index maps of queries, keys and values are followed as those of any product's factors are, and what is computed of
the values is taken along; so are numbers of rows, such as the logarithm of the sum of weights.
"""

from __future__ import annotations

from xdsl.ir import Block

from tessera.dialects import graph
from tessera.dialects.schedule_types import Config
from tessera.transforms.epilogues import Work, follow, longest
from tessera.transforms.form_products import factor_ops
from tessera.transforms.online_algebra import Online, find_online
from tessera.transforms.regions import enclosable, enclose
from tessera.transforms.write_products import COLUMN, ROW, positions_after


def form_online(block: Block) -> None:
    """Puts weighted means with exponential weights into regions of their own."""
    for op in list(block.ops):
        if isinstance(op, graph.MatmulOp) and op.parent is block and (found := find_online(op, block)) is not None:
            _form(found, block)


def _form(online: Online, block: Block) -> None:
    spaces = online.spaces
    factors = [
        *factor_ops(online.scores.a, online.left, online.blocks, block, spaces.rows),
        *factor_ops(online.scores.b, online.right, online.blocks, block, spaces.rows),
        *factor_ops(online.values.b, spaces.right, online.blocks, block, spaces.rows),
    ]
    start = _work(online, block)
    if not enclosable(start.ops):
        return
    work = longest(follow(_work(online, block), block, maps=True), start, block, lambda one: enclosable(one.ops))
    copied = dict.fromkeys([*factors, *online.copied, *work.copied])
    enclose(work.ops, "online", Config(), copied=[op for op in copied if op not in work.ops])


def _work(online: Online, block: Block) -> Work:
    ops = sorted(online.ops, key=block.get_operation_index)
    rows = positions_after(dict((*online.tops, *online.totals)), ops)
    blocks = {ROW: online.spaces.rows, COLUMN: online.spaces.columns}
    return Work(blocks, ops, {}, {**rows, online.values.result: online.spaces.result})
