"""Unrolling: a loop over whole groups of iterations, and the old loop for the remainder."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.rewriting import insert_before
from tessera.transforms.core.slices import end_of
from tessera.transforms.core.tile_ops import Ops


def unroll(loop: scf.ForOp, times: int) -> scf.ForOp:
    """Unrolls a loop `times` times, as often as there are so many iterations; gives the new loop.

    The old one goes on behind it with the iterations that are left, fewer than that.
    """
    before = Ops()
    add, number = before.add, before.index
    step = integer_of(loop.step)
    group = number(step * times) if step is not None else add(arith.MuliOp(loop.step, number(times)))
    way = loop.ub if integer_of(loop.lb) == 0 else add(arith.SubiOp(loop.ub, loop.lb))
    if not isinstance(way.owner, tile.DimOp):
        way = add(arith.MaxSIOp(way, number(0)))
    whole = add(arith.SubiOp(way, add(arith.RemSIOp(way, group))))
    end = whole if integer_of(loop.lb) == 0 else add(arith.AddiOp(loop.lb, whole))
    made = scf.ForOp(loop.lb, end, group, list(loop.iter_args), Region(_unrolled_body(loop, times)))
    made.attributes.update(loop.attributes)
    insert_before(loop, [*before.ops, made])
    for index, value in enumerate((end, loop.ub, loop.step, *made.results)):
        loop.operands[index] = value
    return made


def _unrolled_body(loop: scf.ForOp, times: int) -> Block:
    body = loop.body.block
    made = Block(arg_types=[value.type for value in body.args])
    for old, new in zip(body.args, made.args, strict=True):
        new.name_hint = old.name_hint
    counter, carried = made.args[0], list[SSAValue](made.args[1:])
    for copy in range(times):
        if copy:
            following = arith.AddiOp(counter, loop.step)
            made.add_op(following)
            counter = following.result
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, (counter, *carried), strict=True))
        for op in body.ops:
            if op is not end_of(body):
                made.add_op(op.clone(values))
        carried = [values.get(value, value) for value in end_of(body).operands]
    made.add_op(scf.YieldOp(*carried))
    return made
