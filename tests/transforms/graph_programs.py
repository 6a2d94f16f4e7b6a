"""Graph functions from Python, for tests: values with operators, each of which is one graph op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f32, f64, i32
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.shapes.rules import broadcast
from tessera.transforms.pipeline import Compiled, compile_module, default_stages

Array = np.ndarray[Any, np.dtype[Any]]


class Value:
    """A tensor of a function under construction."""

    def __init__(self, builder: Builder, ssa: SSAValue) -> None:
        self.builder, self.ssa = builder, ssa

    @property
    def shape(self) -> tuple[Any, ...]:
        return graph_type(self.ssa).shape

    @property
    def dtype(self) -> DType:
        return graph_type(self.ssa).dtype

    def _to(self, op: Any) -> Value:
        return self.builder.add(op)

    def ew(self, fn: str, *others: Any) -> Value:
        values = [self, *(self.builder.beside(other, self) for other in others)]
        shape = broadcast(*(value.shape for value in values))
        return self._to(graph.EwOp(fn, [value.broadcast(shape).ssa for value in values]))

    def cast(self, dtype: DType) -> Value:
        return self if dtype is self.dtype else self._to(graph.EwOp("cast", [self.ssa], to=dtype))

    def broadcast(self, shape: Sequence[Any]) -> Value:
        return self if self.shape == tuple(shape) else self._to(graph.BroadcastOp(self.ssa, shape))

    def reshape(self, *shape: Any) -> Value:
        return self._to(graph.ReshapeOp(self.ssa, shape))

    def transpose(self, *axes: int) -> Value:
        return self._to(graph.TransposeOp(self.ssa, axes))

    @property
    def T(self) -> Value:  # noqa: N802  (as NumPy has it, of the last two axes)
        rank = len(self.shape)
        return self.transpose(*range(rank - 2), rank - 1, rank - 2)

    def slice(self, axis: int, start: int, stop: int) -> Value:
        rank = len(self.shape)
        starts, stops = [0] * rank, [LAST] * rank
        starts[axis], stops[axis] = start, stop
        return self._to(graph.SliceOp(self.ssa, starts, stops, [1] * rank))

    def reduce(self, kind: str, axis: int = -1) -> Value:
        return self._to(graph.ReduceOp(kind, self.ssa, [axis], keepdims=True))

    def __matmul__(self, other: Value) -> Value:
        return self._to(graph.MatmulOp(self.ssa, other.ssa))

    def __add__(self, other: Any) -> Value:
        return self.ew("add", other)

    def __sub__(self, other: Any) -> Value:
        return self.ew("sub", other)

    def __mul__(self, other: Any) -> Value:
        return self.ew("mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self.ew("div", other)


class Builder:
    """Makes one function, `@main`, from another that is given values for its arguments."""

    def __init__(self, types: Sequence[GraphTensorType], make: Callable[..., Any]) -> None:
        self.function = graph.FuncOp("main", types, [])
        block = self.function.body.block
        found: Value | tuple[Value, ...] = make(self, *(Value(self, argument) for argument in block.args))
        values = [value.ssa for value in (found if isinstance(found, tuple) else (found,))]
        made = graph.FuncOp("main", types, [value.type for value in values], body=self.function.detach_region(0))
        block.add_op(graph.ReturnOp(values))
        self.module = ModuleOp([made])
        text.verify(self.module)

    def add(self, op: Any) -> Value:
        self.function.body.block.add_op(op)
        return Value(self, op.results[0])

    def beside(self, value: Any, like: Value) -> Value:
        return value if isinstance(value, Value) else self.full(value, like.shape, like.dtype)

    def full(self, number: float, shape: Sequence[Any], dtype: DType) -> Value:
        return self.add(graph.ConstantOp.splat(number, GraphTensorType.of(list(shape), dtype)))

    def iota(self, axis: int, shape: Sequence[Any]) -> Value:
        return self.add(graph.IotaOp(axis, GraphTensorType.of(list(shape), i32)))

    def where(self, condition: Value, a: Value, b: Any) -> Value:
        other = self.beside(b, a)
        shape = broadcast(condition.shape, a.shape, other.shape)
        return self.add(graph.EwOp("select", [value.broadcast(shape).ssa for value in (condition, a, other)]))


def build(make: Callable[..., Any], *types: tuple[Sequence[Any], DType]) -> ModuleOp:
    """A module whose `@main` computes what `make(builder, *values)` says."""
    return Builder([GraphTensorType.of(list(shape), dtype) for shape, dtype in types], make).module


def compiled(make: Callable[..., Any], *types: tuple[Sequence[Any], DType]) -> Compiled:
    return compile_module(build(make, *types))


def scheduled(make: Callable[..., Any], *types: tuple[Sequence[Any], DType]) -> Compiled:
    """A module at the schedule level, where it was decided what becomes one kernel."""
    stages = default_stages()
    names = list(stages)
    upper = names[: names.index("graph-to-schedule") + 1]
    return compile_module(build(make, *types), stages={name: stages[name] for name in upper})


def kinds(made: Compiled) -> list[str]:
    """The kinds of the regions, in order."""
    return [
        line.split("schedule.region<")[1].split(">")[0]
        for line in made.levels["schedule"].splitlines()
        if "schedule.region<" in line
    ]


def normal(shape: Sequence[int], dtype: DType, seed: int = 0, scale: float = 1.0) -> Array:
    """Random numbers of a type."""
    return cast(np.random.default_rng(seed).standard_normal(tuple(shape)) * scale, f64, dtype.base)


def error(found: Array, dtype: DType, expected: Array) -> float:
    """The relative error in norm; NaNs and infinities must be at the same places."""
    a, b = cast(found, dtype.base, f64), np.asarray(expected, np.float64)
    assert a.shape == b.shape
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True)
    a, b = a[finite], b[finite]
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


BOUNDS = {"f64": 1e-12, "f32": 2e-6, "f16": 5e-4, "bf16": 4e-3}


def check(
    module: ModuleOp, arrays: Sequence[Array], made: Compiled | None = None, bound: float | None = None
) -> Compiled:
    """Runs a module as algebra and as tile programs, in interpreters, and compares."""
    made = compile_module(module) if made is None else made
    function = next(iter(module.body.block.ops))
    assert isinstance(function, graph.FuncOp)
    expected = run_function(module, "main", list(arrays))
    found = run_function(made.module, "main", list(arrays))
    for type_, one, other in zip(function.function_type.outputs, found, expected, strict=True):
        assert isinstance(type_, GraphTensorType)
        dtype = type_.dtype
        wide = cast(other, dtype.base, f64)
        assert error(one, dtype, wide) <= (BOUNDS.get(dtype.base.name, 6e-2) * 2 if bound is None else bound)
    return made


# Programs.


def softmax(x: Value) -> Value:
    weights = (x - x.reduce("max")).ew("exp")
    return weights / weights.reduce("sum")


def attended(g: Builder, q: Value, k: Value, v: Value, *, causal: bool = True) -> Value:
    scores = (q @ k.T).cast(f32) * q.shape[-1] ** -0.5
    if causal:
        rows, keys = (g.iota(axis, scores.shape[-2:]) for axis in (0, 1))
        scores = g.where(rows.ew("ge", keys).broadcast(scores.shape), scores, -np.inf)
    return softmax(scores).cast(q.dtype) @ v


def multiplied(g: Builder, a: Value, b: Value) -> Value:
    return a @ b


def block(heads: int, width: int) -> Any:
    """The products of a block of a model: rows of one array to queries, keys and values, and so on."""

    def make(g: Builder, x: Value, qkv: Value, out: Value, up: Value, bias: Value, down: Value) -> Value:
        batch, length, _ = x.shape
        parts = (x @ qkv).reshape(batch, length, 3, heads, width)
        q, k, v = (
            parts.slice(2, index, index + 1).reshape(batch, length, heads, width).transpose(0, 2, 1, 3)
            for index in range(3)
        )
        found = attended(g, q, k, v).transpose(0, 2, 1, 3).reshape(batch, length, heads * width)
        x = x + found @ out
        hidden = x @ up + bias
        return x + (hidden * 0.5 * ((hidden * 0.5**0.5).ew("erf") + 1.0)) @ down

    return make


def block_types(heads: int, width: int, dtype: DType, sizes: Sequence[Any] = ("B", "S")) -> list[Any]:
    wide = heads * width
    shapes = [(*sizes, wide), (wide, 3 * wide), (wide, wide), (wide, 4 * wide), (4 * wide,), (4 * wide, wide)]
    return [(shape, dtype) for shape in shapes]


def sized_by(numbers: dict[str, int], shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(numbers[size] if isinstance(size, str) else size for size in shape)
