"""`choose-warp-groups`: whether to specialize warps on sm_90a, with how many consumers and how many stages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.hopper.tma_boxes import is_mapped
from tessera.targets.cuda.ir.hopper_transpose import COLUMNS as TURNED_COLUMNS
from tessera.targets.cuda.ir.hopper_transpose import ROWS as TURNED_ROWS
from tessera.targets.cuda.ir.tensor_cores import WARPGROUP_TYPES, transposes_in_memory
from tessera.targets.cuda.lower.multiprocessor_model import (
    AT_ONCE,
    CLUSTER,
    DEPTHS,
    MOST_AGENTS,
    OWN_REGISTERS,
    REGISTERS,
    ROWS,
    SHARED,
    STAGED,
    THREADS,
    TURNING_REGISTERS,
    slot_bytes,
    team_for,
    widest_product,
)
from tessera.targets.cuda.lower.tile_to_nv import crosses
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.slices import operand_source
from tessera.transforms.pipelining.make_async import feeds_dots
from tessera.transforms.pipelining.partition_rows import rows_of
from tessera.transforms.pipelining.promote_accumulators import loses_bits
from tessera.transforms.pipelining.tile_order import axes_of, can_form_clusters
from tessera.transforms.pipelining.transpose_operands import BITS

COLUMN_LANES = 4
"""Threads that share the columns of sums."""


@dataclass(frozen=True)
class AgentsPlan:
    """How many agents compute, and how many slots rings have: those of inner loops, and those filled once a program."""

    consumers: int
    depth: int
    ahead: int = 2
    cluster: int = 1
    """Workers that fetch together what they all need."""
    walks: bool = True
    """Whether a worker has several programs."""


def warp_group_plans(
    function: tile.FuncOp, warps: int | None, depth: int | None, lined: Collection[int]
) -> Iterator[AgentsPlan]:
    """Plans for a prepared function, the deepest rings first; none where it has no form for agents.

    `lined` are the arguments whose rows lie well: the others have no tensor maps.
    """
    rows = rows_of(function)
    if rows is None or rows % ROWS or not 1 <= rows // ROWS <= MOST_AGENTS:
        return
    consumers = rows // ROWS
    if warps is not None and warps != 4 * consumers:
        return
    loads = [op for op in function.body.walk() if isinstance(op, tile.LoadOp) and feeds_dots(op)]
    inner = [op for op in loads if _is_repeated(op)]
    if not inner or not all(is_mapped(op) and is_lined(op.view, lined) for op in loads):
        return
    products = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    if not all(map(_has_warpgroups, products)):
        return
    turning = any(map(needs_transpose, loads))
    if max(tile_type(op.result).get_shape()[1] for op in products) > widest_product(consumers, turning=turning):
        return
    depths = DEPTHS if depth is None else [(ahead, depth) for ahead in (2, 1)]
    programs = _programs(function)
    # What is turned, every worker turns for itself.
    cluster = 1 if programs is None or turning else _team(function, inner, programs)
    walks = programs is None or programs > AT_ONCE
    found = [AgentsPlan(consumers, slots, ahead, cluster, walks) for ahead, slots in depths]
    # Lowering takes long: what will not fit is not lowered. Of the least it is left to see.
    likely = [plan for plan in found[:-1] if shared_bytes(function, loads, plan, lined) <= SHARED]
    yield from (*likely, found[-1])


def _programs(function: tile.FuncOp) -> int | None:
    """How many there are, if that is known."""
    extents = [extent for extent in function.grid.data if isinstance(extent, int)]
    return prod(extents) if len(extents) == len(function.grid.data) else None


def _team(function: tile.FuncOp, loads: Sequence[tile.LoadOp], programs: int) -> int:
    """How many workers fetch together: those with programs side by side along the first axis of the grid."""
    if not crosses(function) or not can_form_clusters(function, CLUSTER, bands=True):
        return 1
    loops = {op.parent_op() for op in loads}
    loop = loops.pop() if len(loops) == 1 else None
    step = integer_of(loop.step) if isinstance(loop, scf.ForOp) else None
    if step is None:
        return 1
    shared = [op for op in loads if 0 not in axes_of(op)]
    return team_for(sum(map(_tile_bytes, shared)), step, programs)


def shared_bytes(function: tile.FuncOp, loads: Sequence[tile.LoadOp], plan: AgentsPlan, lined: Collection[int]) -> int:
    """About how much shared memory a plan takes: a ring for each kind of tile, and room for what is stored."""
    slots: dict[tuple[object, object, int], int] = {}
    for op in loads:
        ring = tile.base_of(op.view), op.result.type, _tile_bytes(op)
        slots[ring] = max(slots.get(ring, 0), plan.depth if _is_repeated(op) else plan.ahead)
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    stored = {tile_type(op.value).element_type for op in stores if is_mapped(op) and is_lined(op.view, lined)}
    rings = sum(count * ring[-1] for ring, count in slots.items())
    return rings + STAGED * plan.consumers * len(stored)


def _tile_bytes(op: tile.LoadOp) -> int:
    """Of what is loaded, in shared memory, and of what it is turned into."""
    (rows, columns), itemsize = tile_type(op.result).get_shape(), tile_dtype(op.result).storage.itemsize
    found = slot_bytes(rows, columns, itemsize)
    return found + slot_bytes(columns, rows, itemsize) if needs_transpose(op) else found


def _has_warpgroups(op: tile.DotOp) -> bool:
    """Whether warpgroups multiply such factors: what does not have 16 bits lies along the depth, or can be turned."""
    left, right, total = (tile_dtype(value) for value in (op.a, op.b, op.c))
    if (left, right, total) not in WARPGROUP_TYPES:
        return False
    if transposes_in_memory(right) or isinstance(op.b.owner, tile.TransOp):
        return True
    rows, columns = tile_type(op.b).get_shape()
    return right.bits in BITS and rows % TURNED_ROWS == 0 and columns % TURNED_COLUMNS == 0


def needs_transpose(op: tile.LoadOp) -> bool:
    """Whether a tile is a right factor that products read only along the depth, and memory has it across."""
    uses = list(op.result.uses)
    across = all(isinstance(use.operation, tile.DotOp) and use.index == 1 for use in uses)
    return bool(uses) and across and tile_dtype(op.result).bits in BITS


def _is_repeated(op: tile.LoadOp) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is not None


def spare_registers(function: tile.FuncOp, consumers: int) -> int:
    """How many of a thread's registers products of a function leave to others: sums, and factors that threads made."""
    taken = OWN_REGISTERS
    for op in (op for op in function.body.walk() if isinstance(op, tile.DotOp)):
        # Sums that are promoted are there twice.
        taken += thread_registers(op.result, consumers) * (2 if loses_bits(op) else 1)
        if not isinstance(operand_source(op.a), tile.LoadOp):
            taken += thread_registers(op.a, consumers)
    turning = any(isinstance(op, tile.LoadOp) and needs_transpose(op) for op in function.body.walk())
    return (TURNING_REGISTERS if turning else REGISTERS)[consumers] - taken


def thread_registers(value: SSAValue, consumers: int = 1) -> int:
    """Of a tile that lies as sums do, whose rows `agents` share; of a row of it, if it has one axis."""
    *rows, columns = tile_type(value).get_shape()
    elements = prod(rows) * columns // (THREADS * consumers) if rows else columns // COLUMN_LANES
    return elements * tile_dtype(value).storage.itemsize // 4


def is_lined(view: SSAValue, lined: Collection[int]) -> bool:
    """Whether a view is one of an argument with a tensor map."""
    base = tile.base_of(view)
    return isinstance(base.owner, Block) and base.owner.args.index(base) in lined  # pyright: ignore[reportArgumentType]
