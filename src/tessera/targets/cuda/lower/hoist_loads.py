"""Hoists loads outside of loops to the beginning of a kernel, so that they are in flight together.

A kernel of a program runs after others. It may be launched while they run (programmatic dependent launch), and has to
wait (`nv.griddepcontrol_wait`) before it reads what they write. Arguments that none of them writes, such as weights,
are loaded before that: they are there, or on their way, when the wait is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from tessera.ir.common.attributes import integers
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.shapes.expr import element_count
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.lower.mark_in_bounds import mark_in_bounds
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.facts.mark_readonly import READONLY

HELD = 80
"""Words of hoisted loads that a thread may hold."""
_PLAIN = (nv.ReturnOp, nv.ConvertOp)
_NUMBERS = (tile.ProgramIdOp, tile.DimOp, tile.StrideOp, tile.ViewOp)


MULTIPROCESSORS = 132
SHORT_THREADS = 256


@dataclass(frozen=True)
class HoistLoads(FunctionPass):
    """Hoists loads of plain functions that have read-only arguments, or that follow others and are short.

    Functions that follow others wait for them by themselves if the machine starts them `early`.
    """

    name = "hoist-loads"
    kind = nv.FuncOp
    readonly: tuple[int, ...] = ()
    follows: bool = False
    early: bool = False

    def rewrite(self, function: nv.FuncOp, ctx: Context) -> None:
        if not (self.readonly or (self.follows and _is_short(function))) or not is_plain(function):
            return
        if self.readonly:
            function.attributes[READONLY] = integers(self.readonly)
        mark_in_bounds(function)
        hoist_loads(function, self.readonly, follows=self.follows and self.early)


def _is_short(function: nv.FuncOp) -> bool:
    """Whether all blocks of a kernel run at once, with threads to spare: starting it takes longer than it does."""
    count = element_count(function.grid.data)
    return isinstance(count, int) and count <= MULTIPROCESSORS and function.thread_count <= SHORT_THREADS


def is_plain(function: nv.FuncOp) -> bool:
    """Whether a block only loads, computes and stores, without copies or partitions, which have their own order."""
    return not any(op.name.startswith("nv.") and not isinstance(op, _PLAIN) for op in function.body.walk())


def hoist_loads(function: nv.FuncOp, still: Collection[int], *, follows: bool) -> None:
    """Moves loads of a plain function to its beginning; where it `follows` others, with the wait among them."""
    block = function.body.block
    written = tile.written_memory(function)
    early: dict[Operation, None] = {}
    late: dict[Operation, None] = {}
    room = HELD
    loads = [op for op in block.ops if isinstance(op, tile.LoadOp) and tile.memory_of(op.view) not in written]
    for op in sorted(loads, key=lambda one: not _is_still(one, still)):
        needed = _needed(op)
        room -= _words(op)
        if needed is None or room < 0:
            continue
        (early if _is_still(op, still) else late).update(dict.fromkeys([*needed, op]))
    wait = [nv.GriddepcontrolWaitOp()] if follows else []
    moved = [*early, *wait, *(op for op in late if op not in early)]
    front = set(moved)
    rest = [op for op in block.ops if op not in front]
    for op in (*early, *late, *rest):
        if op.parent is block:
            op.detach()
    for op in (*moved, *rest):
        block.add_op(op)


def _is_still(op: tile.LoadOp, still: Collection[int]) -> bool:
    base = tile.base_of(op.view)
    return isinstance(base, BlockArgument) and base.index in still


def _words(op: tile.LoadOp) -> int:
    """Words of 32 bits that a thread holds of a load."""
    return max(1, prod(digit.size for digit in layout_of(op.result).registers) * tile_dtype(op.result).bits // 32)


def _needed(op: tile.LoadOp) -> list[Operation] | None:
    """The numbers and views that a load needs, in order; None where it needs anything else."""
    found: dict[Operation, None] = {}

    def take(values: Iterable[SSAValue]) -> bool:
        for value in values:
            owner = value.owner
            if not isinstance(owner, Operation) or owner in found:
                continue
            if owner.parent is not op.parent or not (isinstance(owner, _NUMBERS) or owner.dialect_name() == "arith"):
                return False
            if any(isinstance(owner, one) for one in _FAILING) or not take(owner.operands):
                return False
            found[owner] = None
        return True

    return list(found) if take(op.operands) else None


_FAILING = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)
"""Ops that may fault."""
