"""Graph functions of the kind that models are made of, written op by op, and arguments for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, f32, i32, i64
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType, graph_type

Array = np.ndarray[Any, np.dtype[Any]]
Size = int | str


class Build:
    """Adds ops to a function, broadcasting operands as NumPy does."""

    def __init__(self, shapes: Sequence[Sequence[Size]], dtypes: Sequence[DType]) -> None:
        self.types = [GraphTensorType.of(list(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        self.function = graph.FuncOp("f", self.types, [])
        self.args = list(self.function.arguments)

    def add(self, op: Operation) -> SSAValue:
        self.function.body.block.add_op(op)
        return op.results[0]

    def ew(self, fn: str, *values: SSAValue | float) -> SSAValue:
        tensors = [value for value in values if isinstance(value, SSAValue)]
        shape = max((graph_type(value).shape for value in tensors), key=len)
        shapes = [graph_type(value).shape for value in tensors if len(graph_type(value).shape) == len(shape)]
        shape = tuple(next((s[axis] for s in shapes if s[axis] != 1), 1) for axis in range(len(shape)))
        given: list[SSAValue] = []
        for value in values:
            if not isinstance(value, SSAValue):
                given.append(self.add(graph.ConstantOp.splat(value, graph_type(tensors[-1]).with_shape(shape))))
            elif graph_type(value).shape != shape:
                given.append(self.add(graph.BroadcastOp(value, shape)))
            else:
                given.append(value)
        return self.add(graph.EwOp(fn, given))

    def cast(self, value: SSAValue, dtype: DType) -> SSAValue:
        return value if graph_type(value).dtype is dtype else self.add(graph.EwOp("cast", [value], to=dtype))

    def reduce(self, kind: str, value: SSAValue, axis: int = -1) -> SSAValue:
        return self.add(graph.ReduceOp(kind, value, [axis], keepdims=True))

    def finish(self, *results: SSAValue) -> ModuleOp:
        body = self.function.detach_region(self.function.body)
        function = graph.FuncOp("f", self.types, [value.type for value in results], body=body)
        function.body.block.add_op(graph.ReturnOp(list(results)))
        return ModuleOp([function])


def softmax(rows: Size, columns: Size, dtype: DType = f32, axis: int = 1) -> ModuleOp:
    build = Build([[rows, columns]], [dtype])
    x = build.cast(build.args[0], f32)
    weights = build.ew("exp", build.ew("sub", x, build.reduce("max", x, axis)))
    shares = build.ew("div", weights, build.reduce("sum", weights, axis))
    return build.finish(build.cast(shares, dtype))


def _normed(build: Build, x: SSAValue, columns: int) -> SSAValue:
    mean = build.ew("div", build.reduce("sum", x), float(columns))
    centred = build.ew("sub", x, mean)
    variance = build.ew("div", build.reduce("sum", build.ew("mul", centred, centred)), float(columns))
    return build.ew("mul", centred, build.ew("rsqrt", build.ew("add", variance, 1e-5)))


def layernorm(rows: Size, columns: int, dtype: DType = f32) -> ModuleOp:
    """The sum with a residual is a result as well."""
    build = Build([[rows, columns], [rows, columns], [columns], [columns]], [dtype] * 4)
    x, residual, weight, bias = build.args
    total = build.ew("add", x, residual)
    normed = _normed(build, build.cast(total, f32), columns)
    scaled = build.ew("add", build.ew("mul", normed, build.cast(weight, f32)), build.cast(bias, f32))
    return build.finish(build.cast(scaled, dtype), total)


def rmsnorm(rows: Size, columns: int, dtype: DType = f32) -> ModuleOp:
    build = Build([[rows, columns], [columns]], [dtype] * 2)
    x = build.cast(build.args[0], f32)
    mean = build.ew("div", build.reduce("sum", build.ew("mul", x, x)), float(columns))
    scaled = build.ew("mul", x, build.ew("rsqrt", build.ew("add", mean, 1e-6)))
    return build.finish(build.cast(build.ew("mul", scaled, build.cast(build.args[1], f32)), dtype))


def gelu_gate(rows: Size, columns: Size, dtype: DType = f32) -> ModuleOp:
    build = Build([[rows, columns], [columns], [rows, columns]], [dtype] * 3)
    x, bias, y = build.args
    total = build.ew("add", x, bias)
    grown = build.ew("add", build.ew("erf", build.ew("mul", total, 0.5**0.5)), 1.0)
    return build.finish(build.ew("mul", build.ew("mul", build.ew("mul", total, 0.5), grown), y))


def transposed_sum(rows: Size, columns: Size, dtype: DType = f32) -> ModuleOp:
    build = Build([[columns, rows], [rows, columns]], [dtype] * 2)
    transposed = build.add(graph.TransposeOp(build.args[0], [1, 0]))
    return build.finish(build.ew("add", transposed, build.args[1]))


def rope(batch: Size, length: Size, heads: int, width: int, dtype: DType = f32) -> ModuleOp:
    """Halves of each head are rotated against each other; sizes in front of them are folded, as slices want numbers."""
    build = Build([[batch, length, heads, width], [length, 1, width], [length, 1, width]], [dtype] * 3)
    x, cosine, sine = build.args
    indices = [build.add(graph.IotaOp(0, GraphTensorType.of([width // 2], i64))) for _ in range(2)]
    first = build.add(graph.GatherOp(x, [indices[0]], [3]))
    second = build.add(graph.GatherOp(x, [build.ew("add", indices[1], width // 2)], [3]))
    rotated = build.add(graph.ConcatenateOp([build.ew("neg", second), first], 3))
    return build.finish(build.ew("add", build.ew("mul", x, cosine), build.ew("mul", rotated, sine)))


def cross_entropy(rows: Size, columns: int, dtype: DType = f32) -> ModuleOp:
    """What is lost for each row; the column that is right is picked by comparing positions."""
    build = Build([[rows, columns], [rows, 1]], [dtype, i64])
    x = build.cast(build.args[0], f32)
    top = build.reduce("max", x)
    total = build.reduce("sum", build.ew("exp", build.ew("sub", x, top)))
    indices = build.add(graph.IotaOp(1, graph_type(x).with_dtype(i64)))
    picked = build.ew("eq", indices, build.args[1])
    nothing = build.ew("mul", x, 0.0)
    right = build.reduce("sum", build.add(graph.EwOp("select", [picked, x, nothing])))
    return build.finish(build.ew("sub", build.ew("add", build.ew("log", total), top), right))


def embedding(rows: Size, columns: int, count: Size, dtype: DType = f32) -> ModuleOp:
    build = Build([[count, columns], [rows]], [dtype, i32])
    return build.finish(build.add(graph.GatherOp(build.args[0], [build.args[1]], [0])))


def heads_merged(batch: Size, length: Size, heads: int, width: int, dtype: DType = f32) -> ModuleOp:
    build = Build([[batch, heads, length, width], [batch, length, heads * width]], [dtype] * 2)
    transposed = build.add(graph.TransposeOp(build.args[0], [0, 2, 1, 3]))
    merged = build.add(graph.ReshapeOp(transposed, [batch, length, heads * width]))
    return build.finish(build.ew("add", merged, build.args[1]))


def column_sums(rows: Size, columns: Size, dtype: DType = f32) -> ModuleOp:
    build = Build([[rows, columns]], [dtype])
    return build.finish(build.add(graph.ReduceOp("sum", build.args[0], [0])))


def arguments(module: ModuleOp, sizes: Mapping[str, int], seed: int = 0, most: int = 3) -> list[Array]:
    """Numbers for the arguments of a function; whole ones are from 0 up to `most`."""
    (function,) = module.body.block.ops
    assert isinstance(function, graph.FuncOp)
    rng, found = np.random.default_rng(seed), list[Array]()
    for value in function.arguments:
        type_ = graph_type(value)
        shape = [size if isinstance(size, int) else size.evaluate(sizes) for size in type_.shape]
        if type_.dtype.is_float:
            found.append(rng.standard_normal(shape).astype(type_.dtype.storage))
        else:
            found.append(rng.integers(0, most, shape).astype(type_.dtype.storage))
    return found


Model = Callable[..., ModuleOp]
