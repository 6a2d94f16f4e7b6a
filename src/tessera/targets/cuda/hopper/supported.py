"""Tile functions that warp specialization on sm_90a does not support: refused with a reason, for the portable path."""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.errors import CompileError
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.emitter import WARPGROUP
from tessera.targets.cuda.emit.values import registers_of
from tessera.targets.cuda.hopper.consumer_layouts import is_taken
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES, depth_step, transposes_in_memory
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.lower.layout_analysis import is_tile
from tessera.transforms.pipelining.row_branches import decides_row_by_row


def refusal(op: Operation, message: str) -> CompileError:
    return CompileError(message, span=span_of(op.location), hint="the portable path compiles it")


def check_warp_groups(function: tile.FuncOp) -> None:
    """Raises the refusal of a function that has no form for sm_90a, before anything is written."""
    partitions = [op for op in function.body.walk() if isinstance(op, warp_groups.WarpSpecializeOp)]
    if len(partitions) != 1:
        raise refusal(function, f"expected one pipe.warp_specialize, got {len(partitions)}")
    accesses = [op for op in function.body.walk() if isinstance(op, tile.Writer)]
    written = {tile.memory_of(op.view) for op in accesses}
    for op in function.body.walk():
        match op:
            case warp_groups.DotStartOp():
                _check_dot(op)
            case warp_groups.ConsumerWaitOp() if partitions[0].consumer.is_ancestor(op):
                _check_taken(op)
            case tile.AnyOp() if not decides_row_by_row(op, lambda branch: range(len(branch.results))):
                raise refusal(op, "a branch depends on several rows of a tile: warps decide by their own rows")
            case warp_groups.PipelineStateOp() if op.parent_op() is not partitions[0]:
                raise refusal(op, "a pipeline state begins inside a loop or branch of a partition")
            case tile.LoadOp() | tile.LoadBoxesOp() | tile.ReadOp() | tile.ItemOp() if (
                tile.memory_of(op.view) in written
            ):
                raise refusal(op, "a program instance reads memory that it writes: copies would come out of order")
            case warp_groups.ProducerCopyOp() | warp_groups.ProducerCopyBoxesOp() if tile.memory_of(op.view) in written:
                raise refusal(op, "a program instance reads memory that it writes: copies would come out of order")
            case tile.DotOp() | pipe.CopyOp() | pipe.GetOp() | tile.ProgramIdOp():
                raise refusal(op, f"{op.name} in a warp-specialized function")
            case _ if any(is_tile(value) for value in op.results) and not _computes_tiles(op, partitions[0]):
                raise refusal(op, f"{op.name} gives a tile outside of the partitions that compute")
            case _:
                pass


def _computes_tiles(op: Operation, partitions: warp_groups.WarpSpecializeOp) -> bool:
    """Whether an op is in a partition whose threads have tiles."""
    preparer = partitions.preparer
    return partitions.consumer.is_ancestor(op) or (preparer is not None and preparer.is_ancestor(op))


def _check_dot(op: warp_groups.DotStartOp) -> None:
    left, right, total = tile_type(op.a), tile_type(op.b), warp_groups.accumulator_type(op.c)
    (rows, depth), columns = left.get_shape(), right.get_shape()[1]
    dtype, accumulator = tile_dtype(op.b), dtype_of(total.element_type)
    if (tile_dtype(op.a), dtype, accumulator) not in WGMMA_TYPES:
        raise refusal(op, f"wgmma has no dot of {left} and {right} into {accumulator}")
    if rows != wgmma.ROWS or depth % depth_step(dtype) or not wgmma.is_wgmma_width(columns, accumulator):
        said = f"64 rows, {depth_step(dtype)}·k deep, 8·n columns up to 256"
        raise refusal(op, f"a dot of {left} and {right}: wgmma has {said}, of integers 16·n")
    if not is_taken(op.b):
        raise refusal(op, "a right operand is computed: wgmma reads it from shared memory only")
    if is_taken(op.a) and isinstance(op.a.owner, tile.TransOp) and not transposes_in_memory(tile_dtype(op.a)):
        raise refusal(op, f"a left operand of {tile_dtype(op.a)} lies across the depth: wgmma needs it along the depth")
    if not transposes_in_memory(dtype) and not isinstance(op.b.owner, tile.TransOp):
        raise refusal(
            op, f"a right operand of {dtype} is contiguous along its columns: wgmma needs it so along the depth"
        )


def _check_taken(op: warp_groups.ConsumerWaitOp) -> None:
    uses = list(op.result.uses)
    for use in tuple(uses):
        if isinstance(user := use.operation, tile.TransOp) and is_taken(user.result):
            uses.remove(use)
            uses += user.result.uses
    for use in uses:
        if not isinstance(use.operation, warp_groups.DotStartOp) or use.index > 1:
            raise refusal(use.operation, f"{use.operation.name} reads a ring: only dots do")


def check_alone(function: nv.FuncOp) -> None:
    """Raises the refusal of an op for which more threads than those of a warp group would have to synchronize, or for
    which all of these would, where each warp decides for itself whether it comes by."""
    for op in function.body.walk():
        if _meets(op):
            words = None
            if _is_voted_for(op):
                words = "its threads meet in a branch that each warp decides for its own rows"
            elif layout_of(op.operand).thread_count > WARPGROUP:
                words = "several warp groups have parts of it"
            if words is not None:
                raise refusal(op, f"{op.name} of a tile of {_plain(op)}: {words}")
        if isinstance(op, tile.SortOp) and not _is_within_warps(layout_of(op.operand), op.axis.value.data):
            raise refusal(op, f"a tile of {_plain(op)} is sorted along axis {op.axis.value.data}, across warps")
        if isinstance(op, tile.ScanOp) and not _is_within_warps(layout_of(op.operand), op.axis.value.data):
            raise refusal(op, f"a tile of {_plain(op)} is scanned along axis {op.axis.value.data}, across warps")


def _meets(op: Operation) -> TypeGuard[nv.ConvertOp | tile.TakeOp | tile.ReduceOp]:
    """Whether elements go from warp to warp for an op, through shared memory of the warp group."""
    match op:
        case nv.ConvertOp():
            shape = tile_type(op.result).get_shape()
            return registers_of(layout_of(op.operand), layout_of(op.result), shape, range(len(shape))) is None
        case tile.ReduceOp():
            return not _is_within_warps(layout_of(op.operand), op.axis.value.data)
        case _:
            return isinstance(op, tile.TakeOp)


def _is_voted_for(op: Operation) -> bool:
    """Whether an op is in a branch that warps take by themselves."""
    around = op.parent_op()
    while around is not None and not isinstance(around, nv.FuncOp):
        if isinstance(around, scf.IfOp) and _rests_on_votes(around.cond):
            return True
        around = around.parent_op()
    return False


def _rests_on_votes(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, Block) or owner.regions:
        return False
    return isinstance(owner, wgmma.AnyOp) or any(map(_rests_on_votes, owner.operands))


def _plain(op: nv.ConvertOp | tile.TakeOp | tile.ReduceOp | tile.ScanOp | tile.SortOp) -> str:
    return f"{'x'.join(map(str, tile_type(op.operand).get_shape()))}x{tile_dtype(op.operand)}"


def _is_within_warps(layout: Layout, axis: int) -> bool:
    """Whether the threads along an axis are lanes of one warp, neighbours within a power of two."""
    return all(
        below * digit.size <= WARP and digit.size & (digit.size - 1) == 0
        for digit, below in layout.positions
        if digit.axis == axis
    )
