"""Random graph programs of everything that is no product, drawn by hypothesis, and arguments for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import f32, i32
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType, graph_type

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = {"M": 5, "N": 3, "K": 4}


class Program:
    """A graph function that grows op by op, with symbolic sizes whose values are known to the test."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        names = draw(st.lists(st.sampled_from([*SIZES, 1, 2, 6, 7]), min_size=0, max_size=3))
        again = draw(st.lists(st.sampled_from([*SIZES, 1, 6]), min_size=1, max_size=3))
        types = [GraphTensorType.of(names, f32), GraphTensorType.of(again, f32)]
        types += [GraphTensorType.of([name], f32) for name in SIZES]
        self.types = types
        self.function = graph.FuncOp("f", types, [])
        self.values: list[SSAValue] = list(self.function.arguments[:2])

    def add(self, op: Operation) -> SSAValue:
        self.function.body.block.add_op(op)
        self.values.append(op.results[0])
        return op.results[0]

    def finish(self, count: int) -> ModuleOp:
        results = list(dict.fromkeys(reversed(self.values)))[:count]
        outputs = [value.type for value in results]
        body = self.function.detach_region(self.function.body)
        function = graph.FuncOp("f", self.types, outputs, body=body)
        function.body.block.add_op(graph.ReturnOp(results))
        return ModuleOp([function])

    def arguments(self, seed: int) -> list[Array]:
        rng = np.random.default_rng(seed)
        found: list[Array] = []
        for type_ in self.types:
            shape = [size if isinstance(size, int) else SIZES[str(size)] for size in type_.shape]
            found.append(rng.standard_normal(shape).astype(np.float32))
        return found


def _shape(value: SSAValue) -> tuple[Any, ...]:
    return graph_type(value).shape


def _float(program: Program, value: SSAValue) -> SSAValue:
    return value if graph_type(value).dtype is f32 else program.add(graph.EwOp("cast", [value], to=f32))


def _alike(program: Program, value: SSAValue) -> SSAValue:
    """Another value of the same shape: one that is there, or a number, or a count."""
    same = [v for v in program.values if _shape(v) == _shape(value) and graph_type(v).dtype is f32]
    choice = program.draw(st.integers(0, 2))
    if choice == 0 and _shape(value):
        axis = program.draw(st.integers(0, len(_shape(value)) - 1))
        counted = program.add(graph.IotaOp(axis, graph_type(value).with_dtype(i32)))
        return _float(program, counted)
    if choice == 1:
        return program.add(graph.ConstantOp.splat(0.5, graph_type(value)))
    return program.draw(st.sampled_from(same))


def _unary(program: Program, value: SSAValue) -> None:
    program.add(graph.EwOp(program.draw(st.sampled_from(["neg", "abs", "tanh", "floor"])), [value]))


def _binary(program: Program, value: SSAValue) -> None:
    fn = program.draw(st.sampled_from(["add", "sub", "mul", "max"]))
    program.add(graph.EwOp(fn, [value, _alike(program, value)]))


def _transpose(program: Program, value: SSAValue) -> None:
    program.add(graph.TransposeOp(value, program.draw(st.permutations(range(len(_shape(value)))))))


def _broadcast(program: Program, value: SSAValue) -> None:
    shape = [program.draw(st.sampled_from(["N", 2])) if size == 1 else size for size in _shape(value)]
    if len(shape) < 3 and program.draw(st.booleans()):
        shape.insert(0, program.draw(st.sampled_from(["M", 3])))
    program.add(graph.BroadcastOp(value, shape))


def _reshape(program: Program, value: SSAValue) -> None:
    shape = list(_shape(value))
    choice = program.draw(st.integers(0, 3))
    if choice == 0 and len(shape) > 1:
        axis = program.draw(st.integers(0, len(shape) - 2))
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif choice == 1:
        shape.insert(program.draw(st.integers(0, len(shape))), 1)
    elif choice == 2 and 6 in shape:
        axis = shape.index(6)
        shape[axis : axis + 1] = program.draw(st.sampled_from([[2, 3], [3, 2], [6, 1]]))
    else:
        total: Any = 1
        for size in shape:
            total = size * total
        shape = [total]
    if len(shape) <= 4:
        program.add(graph.ReshapeOp(value, shape))


def _slice(program: Program, value: SSAValue) -> None:
    shape = _shape(value)
    bounds: list[tuple[int, int, int]] = []
    if any(not isinstance(size, int) for size in shape):
        return
    for size in shape:
        step = program.draw(st.sampled_from([1, 1, 2, -1, -2]))
        bounds.append((0, size, step) if step > 0 else (size - 1, -size - 1, step))
        if size > 2 and step > 0 and program.draw(st.booleans()):
            bounds[-1] = (1, size - 1, step)
    starts, stops, steps = ([bound[part] for bound in bounds] for part in range(3))
    program.add(graph.SliceOp(value, starts, stops, steps))


def _reduce(program: Program, value: SSAValue) -> None:
    rank = len(_shape(value))
    axes = sorted(program.draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=rank)))
    kind = program.draw(st.sampled_from(["sum", "max", "min"]))
    keepdims = program.draw(st.booleans())
    reduced = program.add(graph.ReduceOp(kind, value, axes, keepdims=keepdims))
    if keepdims and program.draw(st.booleans()):
        spread = program.add(graph.BroadcastOp(reduced, _shape(value)))
        program.add(graph.EwOp("sub", [value, spread]))


def _concatenate(program: Program, value: SSAValue) -> None:
    axis = program.draw(st.integers(0, len(_shape(value)) - 1))
    same = [v for v in program.values if _shape(v) == _shape(value) and graph_type(v).dtype is f32]
    other = program.draw(st.sampled_from(same))
    program.add(graph.ConcatenateOp([value, other], axis))


def _gather(program: Program, value: SSAValue) -> None:
    shape = _shape(value)
    axis = program.draw(st.integers(0, len(shape) - 1))
    if len(shape) > 3:
        return
    count = program.draw(st.sampled_from([2, 5]))
    # Every size of the program is at least 1.
    zeros = program.add(graph.ConstantOp.splat(0, GraphTensorType.of([count], i32)))
    if shape[axis] in (6, 7):
        zeros = program.add(graph.IotaOp(0, GraphTensorType.of([count], i32)))
    program.add(graph.GatherOp(value, [zeros], [axis]))


_STEPS = (_unary, _binary, _transpose, _broadcast, _reshape, _slice, _reduce, _concatenate, _gather)


@st.composite
def programs(draw: st.DrawFn, most: int = 8) -> Program:
    """Programs of up to `most` steps."""
    program = Program(draw)
    for _ in range(draw(st.integers(1, most))):
        value = _float(program, draw(st.sampled_from(program.values)))
        step = draw(st.sampled_from(_STEPS))
        if not _shape(value) and step not in (_unary, _binary, _broadcast):
            continue
        step(program, value)
    return program
