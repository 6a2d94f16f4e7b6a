"""Tests that all accesses of a nest lie inside their views, elements side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.ir.types import BufferType
from tessera.targets.cpu.lower.extents import Extents, Span
from tessera.targets.cpu.lower.nests import shape_of

if TYPE_CHECKING:
    from tessera.targets.cpu.lower.nest_writer import NestWriter
    from tessera.targets.cpu.lower.tile_to_cpu import Lowering


def accesses(writer: NestWriter) -> Iterator[tile.LoadOp | tile.StoreOp]:
    """Every load and store of the nest, free ones too."""
    seen: set[SSAValue] = set()
    waiting: list[SSAValue] = []
    if writer.copied is not None and not isinstance(writer.copied[0].type, BufferType):
        waiting.append(writer.copied[0])
    for op in writer.nest.ops:
        if isinstance(op, tile.StoreOp | tile.LoadOp):
            yield op
        waiting += [value for value in op.operands if isinstance(value.type, TensorType)]
        if isinstance(op, tile.DotOp) and op in writer.lowering.packed:
            waiting.remove(op.b)
    while waiting:
        value = waiting.pop()
        if value in seen or not writer.lowering.analysis.is_free(value):
            continue
        seen.add(value)
        owner = value.owner
        assert isinstance(owner, Operation)
        if isinstance(owner, tile.LoadOp):
            yield owner
        waiting += [operand for operand in owner.operands if isinstance(operand.type, TensorType)]


def inside(writer: NestWriter) -> SSAValue | None:
    """That every access lies inside its view, its lanes side by side; None if that is known."""
    total: SSAValue | None = None
    for op in accesses(writer):
        for condition in _conditions(writer, op):
            total = condition if total is None else writer.lowering.add(arith.AndIOp(total, condition)).results[0]
    return total


def _conditions(writer: NestWriter, op: tile.LoadOp | tile.StoreOp) -> Iterator[SSAValue]:
    lowering = writer.lowering
    view, shape = lowering.values[op.view], shape_of(moved(op))
    for question, axis, proof in _questions(lowering.extents, op):
        if proof is not None:
            lowering.extents.decide(*proof)
        elif question == "low":
            yield _compare(lowering, lowering.values[op.offsets[axis]], 5, lowering.constant(0))
        elif question == "high":
            start = lowering.values[op.offsets[axis]]
            end = lowering.add(arith.AddiOp(start, lowering.constant(shape[axis]))).results[0]
            yield _compare(lowering, end, 3, _measured(lowering, view, axis, tile.DimOp))
        else:
            stride = _measured(lowering, view, axis, tile.StrideOp)
            yield _compare(lowering, stride, 0, lowering.constant(1))


def is_inside(extents: Extents, op: tile.LoadOp | tile.StoreOp) -> bool:
    """Whether an access is known to lie inside its view, its lanes side by side, before anything runs."""
    proofs = [proof for _, _, proof in _questions(extents, op)]
    if any(proof is None for proof in proofs):
        return False
    for proof in proofs:
        extents.decide(*proof or ())
    return True


def _questions(extents: Extents, op: tile.LoadOp | tile.StoreOp) -> Iterator[tuple[str, int, tuple[Span, ...] | None]]:
    """What must hold along which axis, and what proves it, if it is known."""
    shape = shape_of(moved(op))
    for axis, (offset, size) in enumerate(zip(op.offsets, shape, strict=True)):
        at, there = extents.span(offset), extents.size(op.view, axis)
        yield "low", axis, () if at.low >= 0 else None
        yield "high", axis, (at, there) if at.high + size <= there.low else None
    if shape:
        step = extents.stride(op.view, lane_axis(shape))
        yield "stride", lane_axis(shape), (step,) if step.number == 1 else None


def _compare(lowering: Lowering, a: SSAValue, predicate: int, b: SSAValue) -> SSAValue:
    return lowering.add(arith.CmpiOp(a, b, predicate)).results[0]


def moved(op: tile.LoadOp | tile.StoreOp) -> SSAValue:
    return op.result if isinstance(op, tile.LoadOp) else op.value


def lane_axis(shape: Sequence[int]) -> int:
    return 0 if len(shape) == 1 or (shape[1] == 1 and shape[0] != 1) else 1


def _measured(lowering: Lowering, view: SSAValue, axis: int, kind: type[tile.DimOp | tile.StrideOp]) -> SSAValue:
    """A size or stride of a view: the value it was made with, or one that is asked of an argument."""
    owner = view.owner
    if isinstance(owner, tile.ViewOp):
        return (owner.sizes if kind is tile.DimOp else owner.strides)[axis]
    return lowering.add(kind(view, axis)).results[0]
