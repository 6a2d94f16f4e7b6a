"""nv level → LLVM text: loops, branches, and where a program instance is in its grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Region

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.llvm import scalars
from tessera.targets.llvm.literals import literal
from tessera.targets.llvm.text import Function, Value, number

for _kind, _rule in scalars.RULES.items():
    emits(_kind)(_rule)


@emits(scf.ForOp)
def _for(emitter: Emitter, op: scf.ForOp) -> None:
    start, stop, step = (emitter.number(value) for value in (op.lb, op.ub, op.step))
    first, last, every = literal(start), literal(stop), literal(step)
    body = op.body.block

    def run(index: Value, carried: list[Value]) -> Sequence[Value]:
        emitter.values[body.args[0]] = index
        emitter.bind_carried(body.args[1:], carried)
        end = emitter.block(body)
        return emitter.carried(end.operands)

    initial = emitter.carried(op.iter_args)
    runs = first is not None and last is not None and first < last
    if runs and every is not None and first is not None and last is not None and first + every >= last:
        found = run(start, initial)
    else:
        found = emitter.f.loop(start, stop, step, initial, run, runs=runs or "runs" in op.attributes)
    emitter.bind_carried(op.results, found)


@emits(scf.IfOp)
def _if(emitter: Emitter, op: scf.IfOp) -> None:
    def side(region: Region) -> Callable[[], Sequence[Value]]:
        def run() -> Sequence[Value]:
            if not region.blocks:
                return []
            end = emitter.block(region.block)
            return emitter.carried(end.operands)

        return run

    condition = emitter.number(op.cond)
    emitter.bind_carried(op.results, emitter.f.branch(condition, side(op.true_region), side(op.false_region)))


@emits(tile.ProgramIdOp)
def _program_id(emitter: Emitter, op: tile.ProgramIdOp) -> None:
    emitter.values[op.result] = emitter.f.convert("zext", program_ids(emitter)[op.axis.value.data], "i64")


def program_ids(emitter: Emitter) -> list[Value]:
    """Where this block is in the grid: the first axis varies fastest.

    With a `group`, blocks go through so many rows of the grid's first axis before they go on along the second: what
    neighbours read is then a square of the operands, and not a stripe.
    """
    f, count = emitter.f, len(emitter.source.grid.data)
    extents = [f.convert("trunc", emitter.param(emitter.block_layout.grid + axis), "i32") for axis in range(count)]
    rest = emitter.sreg("ctaid.x")
    group = emitter.source.attributes.get("group")
    found: list[Value] = []
    if isinstance(group, IntegerAttr) and count > 1:
        rows = group.value.data
        rest, plane = _divided(f, rest, f.binary("mul", extents[0], extents[1])) if count > 2 else (None, rest)
        band, within = _divided(f, plane, f.times(extents[1], rows))
        first = f.times(band, rows)
        height = f.intrinsic("umin", f.binary("sub", extents[0], first), number(rows, "i32"))
        column, row = _divided(f, within, height)
        found = [f.binary("add", first, row), column]
        if rest is None:
            return found
    for axis in range(len(found), count):
        if axis == count - 1:
            found.append(rest)
        else:
            rest, here = _divided(f, rest, extents[axis])
            found.append(here)
    return found


def _divided(f: Function, a: Value, b: Value) -> tuple[Value, Value]:
    quotient = f.binary("udiv", a, b)
    return quotient, f.binary("sub", a, f.binary("mul", quotient, b))
