"""Conditions, tested at run time, under which all accesses of a nest are in bounds of their views."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.ir.types import BufferType
from tessera.targets.cpu.lower.in_bounds import moved, questions
from tessera.targets.cpu.lower.lowering import Lowering
from tessera.targets.cpu.lower.nests import Nest, shape_of


def accesses(lowering: Lowering, nest: Nest, copied: SSAValue | None) -> Iterator[tile.LoadOp | tile.StoreOp]:
    """Every load and store of a nest, free ones too; `copied` is the tile or buffer that a nest of copies reads."""
    seen: set[SSAValue] = set()
    waiting: list[SSAValue] = []
    if copied is not None and not isinstance(copied.type, BufferType):
        waiting.append(copied)
    for op in nest.ops:
        if isinstance(op, tile.StoreOp | tile.LoadOp):
            yield op
        waiting += [value for value in op.operands if isinstance(value.type, TensorType)]
        if isinstance(op, tile.DotOp) and op in lowering.packed:
            waiting.remove(op.b)
    while waiting:
        value = waiting.pop()
        if value in seen or not lowering.analysis.is_free(value):
            continue
        seen.add(value)
        owner = value.owner
        assert isinstance(owner, Operation)
        if isinstance(owner, tile.LoadOp):
            yield owner
        waiting += [operand for operand in owner.operands if isinstance(operand.type, TensorType)]


def inside(lowering: Lowering, nest: Nest, copied: SSAValue | None) -> SSAValue | None:
    """The condition that every access of a nest lies inside its view, its lanes side by side; None if it is known."""
    total: SSAValue | None = None
    for op in accesses(lowering, nest, copied):
        for condition in _conditions(lowering, op):
            total = condition if total is None else lowering.add(arith.AndIOp(total, condition)).results[0]
    return total


def _conditions(lowering: Lowering, op: tile.LoadOp | tile.StoreOp) -> Iterator[SSAValue]:
    view, shape = lowering.values[op.view], shape_of(moved(op))
    for question, axis, proof in questions(lowering.extents, op):
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


def _compare(lowering: Lowering, a: SSAValue, predicate: int, b: SSAValue) -> SSAValue:
    return lowering.add(arith.CmpiOp(a, b, predicate)).results[0]


def _measured(lowering: Lowering, view: SSAValue, axis: int, kind: type[tile.DimOp | tile.StrideOp]) -> SSAValue:
    """A size or stride of a view: the value it was made with, or one that is asked of an argument."""
    owner = view.owner
    if isinstance(owner, tile.ViewOp):
        return (owner.sizes if kind is tile.DimOp else owner.strides)[axis]
    return lowering.add(kind(view, axis)).results[0]
