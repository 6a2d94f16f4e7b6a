"""Packed operands that many program instances share: an analysis of tile functions.

A right operand that is loaded the same way by all program instances along some axis of the grid is packed once for
them. That axis then runs innermost, and what is packed, for every iteration of the loops around the load, is there
before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.lower.nests import Analysis


@dataclass
class Slice:
    """The inputs of a load's address: scalar ops in order, the loops around it, and axes of the grid."""

    ops: list[Operation] = field(default_factory=list[Operation])
    loops: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    axes: set[int] = field(default_factory=set[int])


@dataclass(frozen=True)
class Sharing:
    """The axes that vary slowest, and the dots whose operands are packed when one of them changes."""

    outer: tuple[int, ...]
    slices: Mapping[tile.DotOp, Slice]


def sharing(function: tile.FuncOp, analysis: Analysis) -> Sharing:
    """Operands to pack once for many program instances."""
    everything = set(range(len(function.grid.data)))
    found: dict[tile.DotOp, Slice] = {}
    outer: set[int] = set()
    for op, (load, _) in analysis.packs.items():
        part = _slice(load)
        if part is not None and (outer | part.axes) < everything:
            outer |= part.axes
            found[op] = part
    return Sharing(tuple(sorted(outer)), found)


def _slice(load: tile.LoadOp) -> Slice | None:
    """None if the address depends on more than sizes, numbers, loop counters and program_id."""
    found = Slice()
    roots: list[SSAValue] = [load.view, *load.offsets]
    parent = load.parent_op()
    while isinstance(parent, scf.ForOp):
        found.loops.insert(0, parent)
        roots += [parent.lb, parent.ub, parent.step]
        parent = parent.parent_op()
    if not isinstance(parent, tile.FuncOp):
        return None
    counters: set[SSAValue] = {loop.body.block.args[0] for loop in found.loops}
    seen: set[Operation] = set()
    if not all(_visit(root, counters, seen, found) for root in roots):
        return None
    return found


def scalars_behind(roots: Sequence[SSAValue]) -> list[Operation] | None:
    """The scalar ops and views, in order, behind some values; None if these depend on loops or on memory."""
    found, seen = Slice(), set[Operation]()
    return found.ops if all(_visit(root, set(), seen, found) for root in roots) else None


def _visit(value: SSAValue, counters: set[SSAValue], seen: set[Operation], found: Slice) -> bool:
    op = value.owner
    if isinstance(op, Block):
        return value in counters or isinstance(op.parent_op(), tile.FuncOp)
    if op in seen:
        return True
    seen.add(op)
    if isinstance(op, tile.ProgramIdOp):
        found.axes.add(op.axis.value.data)
        return True
    plain = isinstance(op, tile.ViewOp | tile.DimOp | tile.StrideOp) or op.name.startswith("arith.")
    if not plain or not all(_visit(operand, counters, seen, found) for operand in op.operands):
        return False
    found.ops.append(op)
    return True


def by_depth(part: Slice) -> list[list[Operation]]:
    """The ops of a slice, sorted by how many of its loops they stand in."""
    inside: list[list[Operation]] = [[] for _ in range(len(part.loops) + 1)]
    for op in part.ops:
        depth = 0
        parent = op.parent_op()
        while isinstance(parent, scf.ForOp):
            depth += 1
            parent = parent.parent_op()
        inside[depth].append(op)
    return inside


def axes_of(function: tile.FuncOp, outer: Sequence[int]) -> list[int]:
    """The axes that vary fastest."""
    return [axis for axis in range(len(function.grid.data)) if axis not in outer]
