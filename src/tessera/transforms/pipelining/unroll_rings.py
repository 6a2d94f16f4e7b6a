"""`unroll-rings`: unrolls a loop by the number of stages of its ring, so that stage numbers are constants.

The stage that an iteration uses is then part of the addresses in its instructions. Iterations that do not fill a whole
round run in a loop of the old kind behind. It is done where an iteration is one dot: longer ones have enough other work
to hide the index arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.interpreters.core.scalars import COMPARE, DIVISIONS, INTEGER
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before, replace
from tessera.transforms.core.tile_ops import Ops

_index = IndexType()


def unroll_rings(function: tile.FuncOp) -> None:
    """Rewrites every loop of a function that goes through rings with one dot in an iteration."""
    for op in list(function.body.walk()):
        if isinstance(op, scf.ForOp) and (depth := _depth(op)) is not None:
            _unroll(op, depth)


UnrollRings = function_pass("unroll-rings", unroll_rings)


def _depth(loop: scf.ForOp) -> int | None:
    """How many slots the rings of a loop have, if it is one to unroll: the number of the slot is carried last."""
    block = loop.body.block
    gets = [op for op in block.ops if isinstance(op, pipe.GetOp)]
    dots = sum(isinstance(op, tile.DotOp) for op in block.ops)
    depths = {pipe.ring_type(op.ring).depth.data for op in gets}
    if dots != 1 or len(depths) != 1 or any(op.slot is not block.args[-1] for op in gets):
        return None
    # A loop that goes on where another one ended may begin at any slot.
    if integer_of(loop.iter_args[-1]) != 0:
        return None
    (depth,) = depths
    return depth if depth > 1 else None


def _unroll(loop: scf.ForOp, depth: int) -> None:
    before = Ops()
    add = before.add
    room = add(arith.MaxSIOp(add(arith.SubiOp(loop.ub, loop.lb)), before.index(0)))
    iterations = add(arith.CeilDivSIOp(room, loop.step))
    count = before.index(depth)
    rounds = add(arith.FloorDivSIOp(iterations, count))
    stride = add(arith.MuliOp(loop.step, count))
    middle = add(arith.AddiOp(loop.lb, add(arith.MuliOp(rounds, stride))))
    insert_before(loop, before.ops)
    source = loop.body.block
    carried = list(loop.iter_args)[:-1]
    body = Block(arg_types=[_index, *(value.type for value in carried)])
    state: list[SSAValue] = list(body.args[1:])
    for slot in range(depth):
        state = _iteration(body, source, loop, state, slot)
    body.add_op(scf.YieldOp(*state))
    main = scf.ForOp(loop.lb, middle, stride, carried, Region(body))
    main.attributes.update(loop.attributes)
    rest = scf.ForOp(middle, loop.ub, loop.step, [*main.results, loop.iter_args[-1]], loop.detach_region(0))
    rest.attributes.update(loop.attributes)
    replace(loop, [main, rest], list(rest.results))


def _iteration(body: Block, source: Block, loop: scf.ForOp, state: list[SSAValue], slot: int) -> list[SSAValue]:
    """Writes one iteration with a constant slot; returns the values it carries on."""
    scalars = Ops()
    counter: SSAValue = body.args[0]
    if slot:
        counter = scalars.add(arith.AddiOp(counter, scalars.add(arith.MuliOp(loop.step, scalars.index(slot)))))
    values: dict[SSAValue, SSAValue] = {source.args[0]: counter}
    values.update(zip(source.args[1:-1], state, strict=True))
    values[source.args[-1]] = scalars.index(slot)
    known: dict[SSAValue, int] = {values[source.args[-1]]: slot}
    adopt_location(scalars.ops, loop)
    body.add_ops(scalars.ops)
    end = source.last_op
    assert end is not None
    for op in source.ops:
        if op is end:
            break
        made = op.clone(values)
        number = _folded(made, known)
        if number is not None:
            made = arith.ConstantOp(IntegerAttr(number, i1 if made.results[0].type == i1 else _index))
            adopt_location([made], op)
            values[op.results[0]] = made.result
            known[made.result] = number
        body.add_op(made)
    return [values.get(value, value) for value in end.operands[:-1]]


def _folded(op: Operation, known: Mapping[SSAValue, int]) -> int | None:
    """The number that an op on known numbers gives. Narrow ones are left alone: they may wrap."""
    if not op.operands or len(op.results) != 1 or op.results[0].type not in (_index, i1):
        return None
    numbers: list[int] = []
    for operand in op.operands:
        number = known.get(operand, integer_of(operand))
        if number is None:
            return None
        numbers.append(number)
    if isinstance(op, arith.SelectOp):
        return numbers[1] if numbers[0] else numbers[2]
    function: Callable[..., int] | None = INTEGER.get(type(op))
    if isinstance(op, arith.CmpiOp):
        function = COMPARE[op.predicate.value.data]
    fails = isinstance(op, DIVISIONS) and numbers[1] == 0
    return None if function is None or fails else int(function(*numbers))
