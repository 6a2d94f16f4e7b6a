"""nv level → LLVM text: loops, branches, and where a program is in its grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Region

from tessera.dialects import tile
from tessera.targets.cuda.emitter import Emitter, emits
from tessera.targets.llvm import scalars
from tessera.targets.llvm.literals import literal
from tessera.targets.llvm.text import Value

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
    """The last axis of the grid turns fastest."""
    f, axis = emitter.f, op.axis.value.data
    extents = len(emitter.source.grid.data)
    rest = emitter.sreg("ctaid.x")
    for other in range(extents - 1, axis - 1, -1):
        if other == 0:
            break
        size = f.convert("trunc", emitter.param(emitter.block_layout.grid + other), "i32")
        quotient = f.binary("udiv", rest, size)
        if other == axis:
            rest = f.binary("sub", rest, f.binary("mul", quotient, size))
            break
        rest = quotient
    emitter.values[op.result] = f.convert("zext", rest, "i64")
