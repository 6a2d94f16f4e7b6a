"""Prefetching of small loads: what a preparer loads itself, such as scales, is loaded an iteration ahead.

A copy brings the tiles that operands are computed of. Rows and columns beside them come straight from memory, and a
preparer, which has a warp or two on each scheduler, would wait for them in every iteration. Where their places follow
from the induction variable, the loop carries them from the iteration before.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import layout_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.pipelining.make_async import address_slice

HELD = 16
"""Elements of a tile that a thread holds for an iteration, at most."""


def prefetch_small_loads(function: nv.FuncOp) -> int:
    """Prefetches the loads of loops that write operands to shared memory, and returns how many."""
    written = {tile.memory_of(op.view) for op in function.body.walk() if isinstance(op, tile.Writer)}
    loops = [op for op in function.body.walk() if isinstance(op, scf.ForOp) and isinstance(op.lb.type, IndexType)]
    loops = [loop for loop in loops if any(isinstance(op, nv.WriteOp) for op in loop.body.block.ops)]
    return sum(_prefetch(loop, written) for loop in loops)


PrefetchSmallLoads = function_pass("prefetch-small-loads", prefetch_small_loads, nv.FuncOp)


def _prefetch(loop: scf.ForOp, written: AbstractSet[SSAValue]) -> int:
    body = loop.body.block
    found: dict[tile.LoadOp, list[Operation]] = {}
    for op in body.ops:
        if not isinstance(op, tile.LoadOp) or tile.memory_of(op.view) in written:
            continue
        if layout_of(op.result).count <= HELD:
            ops = address_slice(op, body)
            # Where it does not follow from the counter, there is nothing to prefetch.
            if ops is not None and _moves(op, ops, body.args[0]):
                found[op] = ops
    if not found:
        return 0
    firsts = _loads(loop.lb, body, found, before := list[Operation]())
    insert_before(loop, before)
    following = arith.AddiOp(body.args[0], loop.step)
    nexts = _loads(following.result, body, found, ahead := list[Operation]())
    first_op, end = body.first_op, body.last_op
    assert first_op is not None
    assert end is not None
    insert_before(first_op, [following, *ahead])
    for load in found:
        carried = body.insert_arg(load.result.type, len(body.args))
        carried.name_hint = load.result.name_hint
        replace(load, [], [carried])
    replace(end, [scf.YieldOp(*end.operands, *nexts)], [])
    region = loop.detach_region(0)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *firsts], region)
    made.attributes.update(loop.attributes)
    replace(loop, [made], list(made.results[: len(loop.results)]))
    return len(found)


def _moves(load: tile.LoadOp, ops: list[Operation], counter: SSAValue) -> bool:
    """Whether a load is of another place in each iteration."""
    return any(value is counter for op in (load, *ops) for value in op.operands)


def _loads(
    iteration: SSAValue, body: Block, found: dict[tile.LoadOp, list[Operation]], made: list[Operation]
) -> list[SSAValue]:
    """The tiles that some loads give in an iteration, by ops that go to `made`."""
    values: dict[SSAValue, SSAValue] = {body.args[0]: iteration}
    done, results = set[Operation](), list[SSAValue]()
    for load, ops in found.items():
        for op in (*ops, load):
            if op not in done:
                done.add(op)
                made.append(op.clone(values))
        results.append(made[-1].results[0])
    return results
