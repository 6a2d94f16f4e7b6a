"""nv level → LLVM text: where a program instance is in its grid."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.llvm.text import Function, Value


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
        height = f.intrinsic("umin", f.binary("sub", extents[0], first), rows)
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
