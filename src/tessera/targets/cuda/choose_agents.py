"""`choose-agents`: whether a program is given to agents of sm_90a, how many of them, and how far copies run ahead."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from tessera.dialects import tile
from tessera.targets.cuda.boxes import is_mapped
from tessera.transforms.make_async import feeds_products
from tessera.transforms.partition_rows import rows_of

ROWS = 64
"""Of an agent: those of one product."""
MOST_AGENTS = 4
DEEPEST = 4
"""Turns of a ring, where there is room: more of them helped no kernel."""


@dataclass(frozen=True)
class AgentsPlan:
    """How many agents compute, and how many slots the rings of inner loops have."""

    agents: int
    depth: int


def agents_plans(
    function: tile.FuncOp, warps: int | None, depth: int | None, lined: Collection[int]
) -> Iterator[AgentsPlan]:
    """Plans for a prepared function, the deepest rings first; none where it has no form for agents.

    `lined` are the arguments whose rows lie well: the others have no tensor maps.
    """
    rows = rows_of(function)
    if rows is None or rows % ROWS or not 1 <= rows // ROWS <= MOST_AGENTS:
        return
    agents = rows // ROWS
    if warps is not None and warps != 4 * agents:
        return
    loads = [op for op in function.body.walk() if isinstance(op, tile.LoadOp) and feeds_products(op)]
    inner = [op for op in loads if _is_repeated(op)]
    if not inner or not all(is_mapped(op) and _is_lined(op.view, lined) for op in loads):
        return
    for slots in range(DEEPEST, 1, -1) if depth is None else [depth]:
        yield AgentsPlan(agents, slots)


def _is_repeated(op: tile.LoadOp) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is not None


def _is_lined(view: SSAValue, lined: Collection[int]) -> bool:
    base = tile.base_of(view)
    return isinstance(base.owner, Block) and base.owner.args.index(base) in lined  # pyright: ignore[reportArgumentType]
