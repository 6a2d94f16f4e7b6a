"""Random graphs in which products, folds, index maps and look-ups meet, some over axes of no element, or of one.

All arguments are known by their seed, so that a graph that fails is found again. Values are small whole numbers, as far
as they can be: then sums come out the same in every order.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import bool_, f32, i64
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.indexing import CumulateOp, DynamicSliceOp
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.shapes.expr import element_count, size

Array = np.ndarray[Any, np.dtype[Any]]
_FOLDS = ("sum", "prod", "max", "min")
_MOST_ELEMENTS = 20000


class MixedGraph:
    """A graph function `f` that grows step by step; `sizes` are the numbers of its symbols."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.seed = seed
        self.sizes = {"M": self.source.choice([0, 1, 2, 5]), "N": self.source.choice([0, 1, 3, 4])}
        symbols: list[Any] = ["M", "N"] if self.source.random() < 0.35 else []
        # Some are longer than the blocks of a product, and no multiple of them.
        symbols += [70, 130] if self.source.random() < 0.25 else []
        self.extents: list[Any] = [self.source.choice([0, 1, 2, 3, 5, 6, *symbols]) for _ in range(3)]
        self.extents += [self.source.choice([1, 2, 4, 6, 70])]
        shapes = [[self.extent() for _ in range(self.source.choice([1, 2, 2, 3, 3]))] for _ in range(3)]
        # Each size is that of an argument, so that every kernel can be told all of them.
        self.types = [GraphTensorType.of(shape, f32) for shape in [*shapes, *([one] for one in self.extents)]]
        self.types += [GraphTensorType.of([], i64), GraphTensorType.of([1], i64), GraphTensorType.of([2, 1], i64)]
        self.function = graph.FuncOp("f", self.types, [])
        self.values: list[SSAValue] = list(self.function.arguments[:-3])
        self.indices: list[SSAValue] = list(self.function.arguments[-3:])
        for _ in range(self.source.randint(2, 12)):
            value = self.source.choice(self.values[-6:])
            step = self.source.choice(_STEPS)
            step(self, value)

    def extent(self) -> Any:
        return self.source.choice(self.extents)

    def add(self, op: Operation) -> SSAValue:
        self.function.body.block.add_op(op)
        return op.results[0]

    def keep(self, value: SSAValue) -> None:
        if self.count(shape_of(value)) <= _MOST_ELEMENTS and len(shape_of(value)) <= 4:
            self.values.append(value)

    def count(self, shape: tuple[Any, ...]) -> int:
        total = element_count(shape)
        return total if isinstance(total, int) else total.evaluate(self.sizes)

    def number(self, extent: Any) -> int:
        return extent if isinstance(extent, int) else extent.evaluate(self.sizes)

    def module(self) -> ModuleOp:
        chosen = self.values[7:] or self.values[:1]
        results = list(dict.fromkeys([chosen[-1], *self.source.sample(chosen, min(len(chosen), 2))]))
        body = self.function.detach_region(self.function.body)
        function = graph.FuncOp("f", self.types, [value.type for value in results], body=body)
        function.body.block.add_op(graph.ReturnOp(results))
        return ModuleOp([function])

    def arguments(self) -> list[Array]:
        draw = np.random.default_rng(self.seed)
        found: list[Array] = []
        for type_ in self.types:
            shape = [self.number(one) for one in type_.shape]
            floats = type_.dtype is f32
            found.append(draw.integers(-1, 2, shape).astype(np.float32) if floats else draw.integers(0, 1, shape))
        return found


def shape_of(value: SSAValue) -> tuple[Any, ...]:
    return graph_type(value).shape


def _alike(program: MixedGraph, value: SSAValue) -> SSAValue:
    """Another value of the same shape: one that is there, one that is repeated, or a number."""
    shape = shape_of(value)
    same = [one for one in program.values if shape_of(one) == shape]
    rows = [one for one in program.values if len(shape_of(one)) == 1 and shape_of(one) == shape[-1:]]
    choice = program.source.random()
    if choice < 0.2 or (choice < 0.4 and not rows):
        return program.add(graph.ConstantOp.splat(program.source.choice([0.0, 2.0, -1.0]), graph_type(value)))
    if choice < 0.4 and len(shape) > 1:
        return program.add(graph.BroadcastOp(program.source.choice(rows), shape))
    return program.source.choice(same)


def _unary(program: MixedGraph, value: SSAValue) -> None:
    if program.source.random() < 0.3:
        # 1 where there was nothing.
        program.keep(program.add(graph.EwOp("exp", [program.add(graph.EwOp("mul", [value, _zero(program, value)]))])))
    else:
        program.keep(program.add(graph.EwOp(program.source.choice(["neg", "abs", "sign"]), [value])))


def _zero(program: MixedGraph, value: SSAValue) -> SSAValue:
    return program.add(graph.ConstantOp.splat(0.0, graph_type(value)))


def _binary(program: MixedGraph, value: SSAValue) -> None:
    fn = program.source.choice(["add", "sub", "max", "min", "mul"])
    program.keep(program.add(graph.EwOp(fn, [value, _alike(program, value)])))


def _clamped(program: MixedGraph, value: SSAValue) -> SSAValue:
    """Between -2 and 2, so that numbers stay exact however many are multiplied."""
    low, high = (program.add(graph.ConstantOp.splat(number, graph_type(value))) for number in (-2.0, 2.0))
    return program.add(graph.EwOp("max", [program.add(graph.EwOp("min", [value, high])), low]))


def _product(program: MixedGraph, value: SSAValue) -> None:
    if len(shape_of(value)) < 2:
        return
    left, depth = _clamped(program, value), shape_of(value)[-1]
    fits = [one for one in program.values if len(shape_of(one)) == 2 and shape_of(one)[0] == depth]
    transposed = [one for one in program.values if len(shape_of(one)) == 2 and shape_of(one)[1] == depth]
    rows = [one for one in program.values if shape_of(one) == (depth,)]
    lead = shape_of(value)[:-2]
    batched = [
        one
        for one in program.values
        if len(shape_of(one)) == len(lead) + 2 and shape_of(one)[:-2] == lead and shape_of(one)[-2] == depth
    ]
    if fits and program.source.random() < 0.6:
        right = program.source.choice(fits)
    elif batched and program.source.random() < 0.6:
        right = program.source.choice(batched)
    elif transposed and program.source.random() < 0.6:
        right = program.add(graph.TransposeOp(program.source.choice(transposed), [1, 0]))
    elif rows:
        column = program.add(graph.ReshapeOp(program.source.choice(rows), [depth, 1]))
        right = program.add(graph.BroadcastOp(column, [depth, program.extent()]))
    else:
        return
    program.keep(program.add(graph.MatmulOp(left, _clamped(program, right))))


def _transpose(program: MixedGraph, value: SSAValue) -> None:
    order = list(range(len(shape_of(value))))
    program.source.shuffle(order)
    program.keep(program.add(graph.TransposeOp(value, order)))


def _reshape(program: MixedGraph, value: SSAValue) -> None:
    shape = list(shape_of(value))
    choice = program.source.randrange(4)
    if choice == 0 and len(shape) > 1:
        axis = program.source.randrange(len(shape) - 1)
        shape[axis : axis + 2] = [size(element_count(shape[axis : axis + 2]))]
    elif choice == 1:
        shape.insert(program.source.randint(0, len(shape)), 1)
    elif choice == 2 and 6 in shape:
        axis_number = shape.index(6)
        shape[axis_number : axis_number + 1] = program.source.choice([[2, 3], [3, 2]])
    else:
        shape = [element_count(shape)]
    program.keep(program.add(graph.ReshapeOp(value, shape)))


def _slice(program: MixedGraph, value: SSAValue) -> None:
    shape = shape_of(value)
    if any(not isinstance(one, int) for one in shape):
        return
    bounds = [(0, one, 1) for one in shape]
    axis = program.source.randrange(len(shape)) if shape else 0
    for axis_number, extent in enumerate(shape):
        if axis_number == axis and extent:
            start = program.source.randrange(extent)
            stop = program.source.choice([start, start + 1, extent])
            bounds[axis_number] = (start, stop, 1)
    starts, stops, steps = ([bound[part] for bound in bounds] for part in range(3))
    made = program.add(graph.SliceOp(value, starts, stops, steps))
    program.keep(made)
    found = shape_of(made)
    if 1 in found and program.source.random() < 0.6:
        axis_number = found.index(1)
        program.keep(program.add(graph.ReshapeOp(made, [*found[:axis_number], *found[axis_number + 1 :]])))


def _reduce(program: MixedGraph, value: SSAValue) -> None:
    shape = shape_of(value)
    if not shape:
        return
    axes = sorted(program.source.sample(range(len(shape)), program.source.randint(1, len(shape))))
    kind, keeps = program.source.choice(_FOLDS), program.source.random() < 0.5
    if kind == "prod":
        value = _clamped(program, value)
        value = program.add(graph.EwOp("max", [value, program.add(graph.ConstantOp.splat(-1.0, graph_type(value)))]))
    if program.source.random() < 0.2:
        zero = _zero(program, value)
        truth = program.add(graph.EwOp("gt", [value, zero]))
        folded = program.add(graph.ReduceOp(program.source.choice(["and", "or"]), truth, axes, keepdims=keeps))
        program.keep(program.add(graph.EwOp("cast", [folded], to=f32)))
        assert graph_type(folded).dtype is bool_
        return
    folded = program.add(graph.ReduceOp(kind, value, axes, keepdims=keeps))
    if kind != "prod":
        program.keep(folded)
    else:
        program.keep(_clamped(program, folded))
    if keeps and program.source.random() < 0.5:
        spread = program.add(graph.BroadcastOp(folded, shape))
        program.keep(_clamped(program, program.add(graph.EwOp("max", [value, spread]))))


def _cumulate(program: MixedGraph, value: SSAValue) -> None:
    if not shape_of(value):
        return
    made = CumulateOp("sum", value, program.source.randrange(len(shape_of(value))))
    program.keep(_clamped(program, program.add(made)))


def _concatenate(program: MixedGraph, value: SSAValue) -> None:
    shape = shape_of(value)
    if not shape:
        return
    axis = program.source.randrange(len(shape))
    fits = [
        one
        for one in program.values
        if len(shape_of(one)) == len(shape)
        and all(a == b for index, (a, b) in enumerate(zip(shape, shape_of(one), strict=True)) if index != axis)
    ]
    others = [program.source.choice(fits) for _ in range(program.source.randint(1, 2))]
    program.keep(program.add(graph.ConcatenateOp([value, *others], axis)))


def _broadcast(program: MixedGraph, value: SSAValue) -> None:
    shape = [program.extent() if one == 1 else one for one in shape_of(value)]
    if len(shape) < 3 and program.source.random() < 0.5:
        shape.insert(0, program.extent())
    program.keep(program.add(graph.BroadcastOp(value, shape)))


def _gather(program: MixedGraph, value: SSAValue) -> None:
    shape = shape_of(value)
    axes = [axis for axis, extent in enumerate(shape) if program.number(extent) > 0]
    if not axes:
        return
    axis = program.source.choice(axes)
    indices = program.source.choice(program.indices)
    least = program.number(shape[axis])
    numbers = list(range(least))
    if isinstance(shape[axis], int) and least > 1 and program.source.random() < 0.7:
        # Computed from what is looked up: 0 there.
        type_ = graph_type(indices)
        added = program.add(graph.ConstantOp.splat(program.source.choice(numbers), type_))
        indices = program.add(graph.EwOp("add", [indices, added]))
    program.keep(program.add(graph.GatherOp(value, [indices], [axis])))


def _dynamic_slice(program: MixedGraph, value: SSAValue) -> None:
    shape = shape_of(value)
    if not shape or any(not isinstance(one, int) for one in shape):
        return
    wanted = [program.source.choice([one, min(1, one), max(one - 1, 0)]) for one in shape]
    starts = [program.indices[0]] * len(shape)
    program.keep(program.add(DynamicSliceOp(value, starts, wanted)))


_STEPS = (
    _unary,
    _binary,
    _binary,
    _product,
    _product,
    _product,
    _transpose,
    _reshape,
    _slice,
    _reduce,
    _reduce,
    _cumulate,
    _concatenate,
    _broadcast,
    _gather,
    _gather,
    _dynamic_slice,
)
