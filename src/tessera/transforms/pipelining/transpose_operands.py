"""`transpose-operands`: a warp group transposes right operands that wgmma can only read along the depth.

Where a ring holds [depth, columns] of such elements, a second ring gets [columns, depth], and consumers read that one.
The transposing warp group runs the same loops as the producer: each copy into the first ring has one transpose. The
meaning of the kernel stays: the tile that is read is transposed back, which a dot does as it reads.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.common.elements import dtype_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import tile_scheduler, transpose, warp_groups
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace

BITS = (8,)
"""Elements of so many bits are multiplied along the depth only."""


def transpose_operands(function: tile.FuncOp, bits: Collection[int] = BITS) -> bool:
    """Adds a preparer for right operands with elements of so many `bits`, before `insert-wgmma-waits`; whether there
    are any."""
    partitions = next((op for op in function.body.block.ops if isinstance(op, warp_groups.WarpSpecializeOp)), None)
    if partitions is None or partitions.preparer is not None:
        return False
    rings = [op for op in function.body.block.ops if isinstance(op, pipe.RingOp) and _lies_across(op.result, bits)]
    if not rings:
        return False
    transposed: dict[SSAValue, SSAValue] = {op.result: _ring_for(op) for op in rings}
    for op in [op for op in partitions.consumer.walk() if any(value in transposed for value in op.operands)]:
        _wait_for_transposed(op, transposed)
    preparer = partitions.producer.clone()
    _copies_to_transposes(preparer.block, transposed)
    producer, consumer = partitions.detach_region(partitions.producer), partitions.detach_region(partitions.consumer)
    replace(
        partitions,
        [warp_groups.WarpSpecializeOp(partitions.consumers.value.data, producer, consumer, preparer=preparer)],
        [],
    )
    return True


TransposeOperands = function_pass("transpose-operands", transpose_operands)


def _lies_across(ring: SSAValue, bits: Collection[int]) -> bool:
    """Whether all tiles of a ring are right operands, as they are."""
    held = pipe.slot_type(ring)
    if dtype_of(held.element_type).bits not in bits or held.get_num_dims() != 2:
        return False
    waits = [use.operation for use in ring.uses if isinstance(use.operation, warp_groups.ConsumerWaitOp)]
    uses = [use for wait in waits for use in wait.result.uses]
    return bool(uses) and all(isinstance(use.operation, tile.DotOp) and use.index == 1 for use in uses)


def _ring_for(op: pipe.RingOp) -> SSAValue:
    """A ring of as many slots for the transposed tiles."""
    held, block = pipe.slot_type(op.result), op.parent_block()
    made = pipe.RingOp(warp_groups.ring_depth(op.result), TensorType(held.element_type, held.get_shape()[::-1]))
    made.location = op.location
    made.result.name_hint = f"{op.result.name_hint}_transposed" if op.result.name_hint else None
    assert block is not None
    block.insert_op_after(made, op)
    return made.result


def _wait_for_transposed(op: Operation, transposed: dict[SSAValue, SSAValue]) -> None:
    """Rewrites an op of the consumers to use the ring of transposed tiles."""
    if isinstance(op, warp_groups.ConsumerWaitOp):
        wait = warp_groups.ConsumerWaitOp(transposed[op.ring], op.state)
        replace(op, [wait, tile.TransOp(wait.result, (1, 0))])
        return
    for index, value in enumerate(op.operands):
        if value in transposed:
            op.operands[index] = transposed[value]


def _copies_to_transposes(block: Block, transposed: dict[SSAValue, SSAValue]) -> None:
    """Rewrites the partition of a producer to that of a preparer, which transposes them."""
    for op in list(block.walk()):
        match op:
            case warp_groups.ProducerCopyOp() | warp_groups.ProducerCopyBoxesOp() if op.ring in transposed:
                replace(op, [transpose.TransposeSmemOp(op.ring, transposed[op.ring], op.state)], [])
            case warp_groups.ProducerCopyOp() | warp_groups.ProducerCopyBoxesOp():
                replace(op, [], [])
            case tile_scheduler.SchedulerFetchOp():
                replace(op, [tile_scheduler.SchedulerReadOp(op.work_queue, op.state)])
            case _:
                pass
    sweep(block)
