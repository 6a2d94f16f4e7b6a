"""`choose-warp-groups`: whether to specialize warps on sm_90a, with how many consumers and how many stages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile import hints
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.hopper.tma_boxes import ROWS as BOX_ROWS
from tessera.targets.cuda.hopper.tma_boxes import fits, is_mapped
from tessera.targets.cuda.ir.hopper_transpose import COLUMNS as TRANSPOSED_COLUMNS
from tessera.targets.cuda.ir.hopper_transpose import ROWS as TRANSPOSED_ROWS
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES, depth_step, transposes_in_memory
from tessera.targets.cuda.lower.multiprocessor_model import (
    AT_ONCE,
    BOXING_REGISTERS,
    CLUSTER,
    DEPTHS,
    MOST_CONSUMERS,
    OWN_REGISTERS,
    PREPARED_SLOTS,
    REGISTERS,
    ROWS,
    SHARED,
    STAGED,
    THREADS,
    TRANSPOSING_REGISTERS,
    cluster_for,
    preparer_groups,
    preparing_registers,
    slot_bytes,
    widest_dot,
)
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.slices import operand_source
from tessera.transforms.pipelining.form_box_loads import MOST_BOXES, is_right_operand
from tessera.transforms.pipelining.make_async import feeds_dots, is_only_multiplied
from tessera.transforms.pipelining.partition_rows import rows_of
from tessera.transforms.pipelining.prepared_operands import is_short_row, prepared_loads, prepared_operands
from tessera.transforms.pipelining.promote_accumulators import loses_bits
from tessera.transforms.pipelining.tile_order import axes_of, can_form_clusters, crosses
from tessera.transforms.pipelining.transpose_operands import BITS
from tessera.transforms.pipelining.warp_specialize import is_repeated

COLUMN_LANES = 4
"""Threads that share the columns of an accumulator."""


@dataclass(frozen=True)
class WarpGroupPlan:
    """The number of consumers, and of slots in rings: rings of inner loops (`depth`), and others (`ahead`)."""

    consumers: int
    depth: int
    ahead: int = 2
    cluster: int = 1
    """CTAs of a cluster, which share the tiles that they all need."""
    walks: bool = True
    """Whether a persistent CTA has several program instances."""


def warp_group_plans(
    function: tile.FuncOp, warps: int | None, depth: int | None, row_aligned: Collection[int]
) -> Iterator[WarpGroupPlan]:
    """Plans for a prepared function, the deepest rings first; none where warps are not specialized.

    `row_aligned` are the arguments whose rows are aligned: the others have no tensor maps.
    """
    rows = rows_of(function, at_places=True)
    if rows is None or why_not(function, warps, row_aligned) is not None:
        return
    consumers, loads = rows // ROWS, [*_operand_loads(function), *prepared_loads(function)]
    inner, transposing = [op for op in loads if is_repeated(op)], any(map(needs_transpose, loads))
    depths = DEPTHS if depth is None else [(ahead, depth) for ahead in (2, 1)]
    instances = _instance_count(function)
    # Tiles that are transposed are not shared in a cluster: every CTA transposes its own.
    cluster = 1 if instances is None or transposing else _cluster(function, inner, instances)
    walks = instances is None or instances > AT_ONCE
    found = [WarpGroupPlan(consumers, slots, ahead, cluster, walks) for ahead, slots in depths]
    # Lowering takes long: plans that will not fit are left out, except the smallest one, which is tried anyhow.
    likely = [plan for plan in found[:-1] if shared_bytes(function, loads, plan, row_aligned) <= SHARED]
    yield from (*likely, found[-1])


def why_not(function: tile.FuncOp, warps: int | None, row_aligned: Collection[int]) -> CompileError | None:
    """The reason why warps of a function are not specialized; None where they may be."""
    dots, rows = _dots(function), rows_of(function, at_places=True)
    if not dots:
        return _refusal(function, "it has no dot", "only dots have producers")
    if (atomic := next((op for op in function.body.walk() if isinstance(op, tile.Atomic)), None)) is not None:
        words = "it adds to memory, which is done for all rows at once"
        return _refusal(atomic, words, "store partial results, and add them in a kernel behind")
    if (shown := next((op for op in function.body.walk() if isinstance(op, tile.PrintRecordOp)), None)) is not None:
        words = "it prints, which a program instance does once, with all of its rows"
        return _refusal(shown, words, "leave the print out when it is to be fast")
    if rows is None:
        words = "its stores do not have one number of rows that consumers could share"
        return _refusal(function, words, "store tiles of one number of rows")
    if rows % ROWS or not 1 <= rows // ROWS <= MOST_CONSUMERS:
        words = f"a program instance has {rows} rows: consumers have {ROWS} each, and there are 1 to {MOST_CONSUMERS}"
        return _refusal(function, words, f"give it a block of {ROWS}, {2 * ROWS} or {MOST_CONSUMERS * ROWS} rows")
    consumers, loads = rows // ROWS, _operand_loads(function)
    prepared = prepared_loads(function)
    if (kept := next(filter(_is_kept_in_registers, function.body.walk()), None)) is not None:
        words = "an operand of a dot is to be loaded into registers, and wgmma's come from shared memory"
        return _refusal(kept, words, 'leave memory="registers" out')
    boxes = next((op for op in function.body.walk() if isinstance(op, tile.LoadBoxesOp)), None)
    if boxes is not None and prepared:
        words = "a tile is loaded from several boxes beside operands that are computed: the producer has no registers"
        return _refusal(boxes, words, "load from one box, or compute the operands in a kernel before")
    if warps is not None and warps != 4 * consumers:
        words = f"the schedule has {warps} warps, and {rows} rows are {4 * consumers} warps of consumers"
        return _refusal(function, words, f"leave warps out, or give {4 * consumers}")
    if not any(map(is_repeated, loads)):
        if (looked_up := next(filter(_is_looked_up, function.body.walk()), None)) is not None:
            words = "rows of an operand of a dot are looked up one by one, and producers copy boxes"
            hint = f"look up groups of rows that lie side by side, at most {MOST_BOXES} groups for a tile"
            return _refusal(looked_up, words, hint)
        words = "no loop loads a tile that is an operand of a dot only: there is nothing to copy ahead"
        return _refusal(dots[0], words, "load operands in the loop of the dot, and compute them in a kernel before")
    for op in dots:
        if not _has_warpgroups(op):
            left, right, total = (tile_dtype(value) for value in (op.a, op.b, op.c))
            words = f"wgmma has no dot of {left} and {right} into {total} in this layout"
            return _refusal(op, words, "multiply bf16, f16 or 8-bit floats into f32, or i8 into i32")
    for op in (*loads, *prepared):
        if not fits(tile_type(op.result)) and not (op in prepared and is_short_row(op.result)):
            shape, step = tile_type(op.result).get_shape(), depth_step(tile_dtype(op.result))
            words = (
                f"a loaded operand has {'x'.join(map(str, shape))} elements: copies take rows in groups of {BOX_ROWS}"
            )
            return _refusal(op, f"{words} and columns in groups of {step}", "give it a block of such sizes")
        if not is_mapped(op):
            words = "a loaded operand is not a box of an array, so it has no tensor map"
            return _refusal(op, words, "index the array itself: slices along its axes, zeros beyond its ends")
        if not is_row_aligned(op.view, row_aligned):
            words = "rows of a loaded operand are not contiguous, or do not begin at multiples of 16 bytes"
            return _refusal(op, words, "pass an array with stride 1 along its last axis and rows of whole 16 bytes")
    widest = max(dots, key=lambda op: tile_type(op.result).get_shape()[1])
    columns = tile_type(widest.result).get_shape()[1]
    helpers = preparer_groups(consumers, columns) if prepared else any(map(needs_transpose, loads))
    most = widest_dot(consumers, helpers=helpers)
    if columns > most:
        words = f"a dot has {columns} columns: accumulators of {consumers} consumers have registers for {most}"
        return _refusal(widest, words, f"give it a block of at most {most} columns")
    return None


def _refusal(op: Operation, reason: str, hint: str) -> CompileError:
    # What is about the whole kernel is at the call, where its sizes and its schedule come from.
    span = None if isinstance(op, tile.FuncOp) else span_of(op.location)
    return CompileError(reason, span=span, hint=hint)


def _is_kept_in_registers(op: Operation) -> bool:
    """Whether an op loads what only dots read, under a hint that it does not go through shared memory."""
    return isinstance(op, tile.BoxLoad) and hints_of(op).memory == hints.REGISTERS and is_only_multiplied(op.result)


def _is_looked_up(op: Operation) -> bool:
    """Whether an op reads a right operand of dots at computed places."""
    return isinstance(op, tile.ReadOp) and is_right_operand(op.result)


def _dots(function: tile.FuncOp) -> list[tile.DotOp]:
    return [op for op in function.body.walk() if isinstance(op, tile.DotOp)]


def _operand_loads(function: tile.FuncOp) -> list[tile.BoxLoad]:
    """Loads of tiles that are operands of dots only."""
    return [op for op in function.body.walk() if isinstance(op, tile.BoxLoad) and feeds_dots(op)]


def _instance_count(function: tile.FuncOp) -> int | None:
    """The number of program instances, if it is known."""
    extents = [extent for extent in function.grid.data if isinstance(extent, int)]
    return prod(extents) if len(extents) == len(function.grid.data) else None


def _cluster(function: tile.FuncOp, loads: Sequence[tile.BoxLoad], instances: int) -> int:
    """The size of a cluster: CTAs whose program instances are neighbours along the first axis of the grid."""
    if not crosses(function) or not can_form_clusters(function, CLUSTER, bands=True):
        return 1
    loops = {op.parent_op() for op in loads}
    loop = loops.pop() if len(loops) == 1 else None
    step = integer_of(loop.step) if isinstance(loop, scf.ForOp) else None
    if step is None:
        return 1
    shared = [op for op in loads if 0 not in axes_of(op)]
    return cluster_for(sum(map(_tile_bytes, shared)), step, instances)


def shared_bytes(
    function: tile.FuncOp, loads: Sequence[tile.BoxLoad], plan: WarpGroupPlan, row_aligned: Collection[int]
) -> int:
    """About how much shared memory a plan takes: a ring for each kind of tile, and room for what is stored."""
    slots: dict[tuple[object, object, int], int] = {}
    for op in loads:
        ring = tile.base_of(op.view), op.result.type, _tile_bytes(op)
        slots[ring] = max(slots.get(ring, 0), plan.depth if is_repeated(op) else plan.ahead)
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    stored = {
        tile_type(op.value).element_type for op in stores if is_mapped(op) and is_row_aligned(op.view, row_aligned)
    }
    rings = sum(count * ring[-1] for ring, count in slots.items())
    rings += sum(PREPARED_SLOTS * _bytes_of(op.results[0]) for op in prepared_operands(_dots(function)))
    return rings + STAGED * plan.consumers * len(stored)


def _tile_bytes(op: tile.BoxLoad) -> int:
    """Bytes of shared memory of a loaded tile, and of its transpose where it has one."""
    (rows, columns), itemsize = tile_type(op.result).get_shape(), tile_dtype(op.result).storage.itemsize
    found = _bytes_of(op.result)
    return found + slot_bytes(columns, rows, itemsize) if needs_transpose(op) else found


def _bytes_of(value: SSAValue) -> int:
    (rows, columns), itemsize = tile_type(value).get_shape(), tile_dtype(value).storage.itemsize
    return slot_bytes(rows, columns, itemsize)


def _has_warpgroups(op: tile.DotOp) -> bool:
    """Whether wgmma has such operands: right ones without 16 bits lie along the depth, or can be transposed."""
    left, right, total = (tile_dtype(value) for value in (op.a, op.b, op.c))
    if (left, right, total) not in WGMMA_TYPES:
        return False
    if transposes_in_memory(right) or isinstance(op.b.owner, tile.TransOp):
        return True
    rows, columns = tile_type(op.b).get_shape()
    return right.bits in BITS and rows % TRANSPOSED_ROWS == 0 and columns % TRANSPOSED_COLUMNS == 0


def needs_transpose(op: tile.BoxLoad) -> bool:
    """Whether a tile is a right operand that dots read only along the depth, and memory has it across."""
    uses = list(op.result.uses)
    across = all(isinstance(use.operation, tile.DotOp) and use.index == 1 for use in uses)
    return bool(uses) and across and tile_dtype(op.result).bits in BITS


def spare_registers(function: tile.FuncOp, consumers: int) -> int:
    """Registers of a consumer's thread that are left beside accumulators, and left operands in registers."""
    taken = OWN_REGISTERS
    for op in (op for op in function.body.walk() if isinstance(op, tile.DotOp)):
        # Accumulators that are promoted are there twice.
        taken += thread_registers(op.result, consumers) * (2 if loses_bits(op) else 1)
        if not isinstance(operand_source(op.a), tile.BoxLoad):
            taken += thread_registers(op.a, consumers)
    transposing = any(isinstance(op, tile.BoxLoad) and needs_transpose(op) for op in function.body.walk())
    boxing = any(isinstance(op, tile.LoadBoxesOp) for op in function.body.walk())
    if prepared_operands(dots := _dots(function)):
        columns = max(tile_type(op.result).get_shape()[1] for op in dots)
        return preparing_registers(consumers, preparer_groups(consumers, columns))[-1] - taken
    return (TRANSPOSING_REGISTERS if transposing else BOXING_REGISTERS if boxing else REGISTERS)[consumers] - taken


def thread_registers(value: SSAValue, consumers: int = 1) -> int:
    """Registers of a thread for a tile in the layout of accumulators, shared by `consumers`, or for a row of it."""
    *rows, columns = tile_type(value).get_shape()
    elements = prod(rows) * columns // (THREADS * consumers) if rows else columns // COLUMN_LANES
    return elements * tile_dtype(value).storage.itemsize // 4


def is_row_aligned(view: SSAValue, row_aligned: Collection[int]) -> bool:
    """Whether a view is one of an argument with a tensor map."""
    base = tile.base_of(view)
    return isinstance(base.owner, Block) and base.owner.args.index(base) in row_aligned  # pyright: ignore[reportArgumentType]
