"""Checks that every graph op means what an independent formula says, on all types, shapes, layouts and specials."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from graph_cases import WRITTEN, Written
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_values import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Array,
    Case,
    Draw,
    Index,
    arrays,
    assert_dot,
    assert_folded,
    assert_same,
    element_wise,
    expecting,
    indexed,
    program,
    rounded,
    shapes,
    values,
    wrapped,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, bf16, bool_, f8e4m3, f32, f64, i4, i8, i16, i32, i64, u64
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common import elementwise
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType, dense
from tessera.runtime.tensor.random import rand, randn

CASES: dict[type[Operation], Callable[[Draw], Case]] = {}


def case(kind: type[Operation]) -> Callable[[Callable[[Draw], Case]], Callable[[Draw], Case]]:
    """Registers how to draw a program with one op, and what must come out of it."""

    def register(build: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        CASES[kind] = build
        return build

    return register


def typed(draw: Draw, shape: Sequence[int], dtype: DType, prefix: str = "S") -> GraphTensorType:
    """The type of an argument, with some of its sizes left open."""
    known = [draw(st.booleans(), "known") for _ in shape]
    sizes = [
        size if size == 1 or fixed else f"{prefix}{axis}"
        for axis, (size, fixed) in enumerate(zip(shape, known, strict=True))
    ]
    return GraphTensorType.of(sizes, dtype)


# The ops.


@case(graph.FuncOp)
def _func(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes())
    x = arrays(draw, shape, dtype)
    return Case(program([typed(draw, shape, dtype)], lambda _: []), [x], expecting(x))


@case(graph.ReturnOp)
def _return(draw: Draw) -> Case:
    first, second = (values(draw, (2,), dtype) for dtype in (f32, i8))
    function = graph.FuncOp("f", types := [GraphTensorType.of([2], dtype) for dtype in (f32, i8)], types[::-1])
    function.body.block.add_op(graph.ReturnOp(function.arguments[::-1]))
    return Case(ModuleOp([function]), [first, second], expecting(second, first))


@case(graph.CallOp)
def _call(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(FLOATS)), draw(shapes())
    x, type_ = arrays(draw, shape, dtype), typed(draw, shape, dtype)
    callee = graph.FuncOp("callee", [type_, type_], [type_])
    negated = graph.EwOp("neg", [callee.arguments[1]])
    callee.body.block.add_ops([negated, graph.ReturnOp([negated.result])])
    module = program([type_, type_], lambda a: [graph.CallOp("callee", a, [type_])], before=[callee])
    other = values(draw, shape, dtype)
    return Case(module, [other, x], expecting(element_wise(operator.neg, dtype, x)))


KERNEL = """
tile.func @kernel(%x: !tile.view<1, f32, global>, %by: f32, %y: !tile.view<1, f32, global>) outputs 1
    shapes [[N], [], [N]] grid ["(N + 3)//4"] {
  %i = tile.program_id 0
  %four = arith.constant 4 : index
  %at = arith.muli %i, %four : index
  %a = tile.load %x[%at] : !tile.view<1, f32, global> -> tensor<4xf32>
  %b = tile.full %by : tensor<4xf32>
  %c = tile.ew<mul> %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  tile.store %c, %y[%at] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
"""


@case(graph.CallKernelOp)
def _call_kernel(draw: Draw) -> Case:
    size = draw(st.integers(0, 9))
    x, by = arrays(draw, (size,), f32), draw(st.floats(width=32))
    module = text.read(
        KERNEL + "graph.func @f(%x: !graph.tensor<[M], f32>, %by: f32) -> (!graph.tensor<[M], f32>) {"
        "%y = graph.call_kernel @kernel(%x, %by) : (!graph.tensor<[M], f32>, f32) -> !graph.tensor<[M], f32>\n"
        "graph.return %y : !graph.tensor<[M], f32> }"
    )
    return Case(module, [x, by], expecting(element_wise(lambda *a: rounded(a[0] * by, f32), f32, x)))


@case(graph.ConstantOp)
def _constant(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes() | st.just((13, 7)))
    constant = values(draw, shape, dtype)
    if draw(st.booleans()) and constant.size:
        constant = np.full(shape, constant.flat[0])
    type_ = GraphTensorType.of(shape, dtype)
    return Case(program([], lambda _: [graph.ConstantOp(dense(constant, dtype), type_)]), [], expecting(constant))


def _in_compute_type(number: float, dtype: DType) -> float:
    return rounded(rounded(number, f32), dtype) if dtype.bits < 32 else rounded(number, dtype)


def _float_row(formula: Callable[..., float]) -> Callable[[DType], Callable[..., float]]:
    # float64 holds sums and products of narrower floats well enough that rounding it again changes nothing.
    return lambda dtype: lambda *numbers: _in_compute_type(formula(*numbers), dtype)


def _float_to_integer(number: float) -> int:
    if math.isnan(number):
        return 0
    return int(max(-(2.0**7), min(2.0**7 - 1, math.trunc(number) if math.isfinite(number) else number)))


NEGATE: dict[str, Callable[[Any], Any]] = {"neg": lambda a: -a, "not": lambda a: ~a}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
BITS: dict[str, Callable[[Any, Any], Any]] = {
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
FLOAT_ROWS = {name: _float_row(formula) for name, formula in {**ARITHMETIC, "neg": NEGATE["neg"]}.items()}
INTEGER_ROWS: dict[str, Callable[..., Any]] = {**ARITHMETIC, **BITS, **NEGATE}
QUESTIONS: dict[str, Callable[..., bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _selected(condition: bool, first: Any, second: Any) -> Any:
    return first if condition else second


@case(graph.EwOp)
def _elementwise(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from([*FLOATS, *INTEGERS])), draw(shapes())
    name = draw(st.sampled_from([*(FLOAT_ROWS if dtype.is_float else INTEGER_ROWS), *QUESTIONS, "select", "cast"]))
    types = [bool_, dtype, dtype] if name == "select" else [dtype] * elementwise.TABLE[name].arity
    operands = [arrays(draw, shape, each) for each in types]
    to = i8 if name == "cast" else None
    if name == "select":
        expected = element_wise(_selected, dtype, *operands)
    elif name == "cast":
        expected = element_wise(_float_to_integer if dtype.is_float else int, i8, *operands)
    elif name in QUESTIONS:
        expected = element_wise(QUESTIONS[name], bool_, *operands)
    else:
        expected = element_wise(FLOAT_ROWS[name](dtype) if dtype.is_float else INTEGER_ROWS[name], dtype, *operands)
    sizes = typed(draw, shape, dtype)
    module = program([sizes.with_dtype(each) for each in types], lambda a: [graph.EwOp(name, a, to=to)])
    return Case(module, operands, expecting(expected))


@case(graph.BroadcastOp)
def _broadcast(draw: Draw) -> Case:
    dtype, target = draw(st.sampled_from(DTYPES)), draw(shapes())
    kept = draw(st.integers(0, len(target)))
    source = [1 if draw(st.booleans()) else size for size in target[len(target) - kept :]]
    x = arrays(draw, source, dtype)
    module = program([GraphTensorType.of(source, dtype)], lambda a: [graph.BroadcastOp(a[0], target)])

    def element(index: Index) -> Any:
        return x[tuple(0 if size == 1 else at for size, at in zip(source, index[len(index) - kept :], strict=True))]

    return Case(module, [x], expecting(indexed(target, dtype, element)))


@case(graph.ReshapeOp)
def _reshape(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes())
    factors = [prime for size in shape for prime in ([2, 2] if size == 4 else [size])]
    order = draw(st.permutations(factors))
    cut = draw(st.integers(0, len(order)))
    target = (*order[:cut], *([math.prod(order[cut:])] if cut < len(order) else []), 1)
    x = arrays(draw, shape, dtype)
    flat = [x[index] for index in product(*map(range, shape))]
    expected = indexed(target, dtype, lambda index: flat[int(np.ravel_multi_index(index, target))])
    module = program([GraphTensorType.of(shape, dtype)], lambda a: [graph.ReshapeOp(a[0], target)])
    return Case(module, [x], expecting(expected))


@case(graph.TransposeOp)
def _transpose(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes())
    permutation = draw(st.permutations(range(len(shape))))
    x = arrays(draw, shape, dtype)
    module = program([typed(draw, shape, dtype)], lambda a: [graph.TransposeOp(a[0], permutation)])
    target = [shape[axis] for axis in permutation]

    def element(index: Index) -> Any:
        return x[tuple(index[permutation.index(axis)] for axis in range(len(shape)))]

    return Case(module, [x], expecting(indexed(target, dtype, element)))


@case(graph.SliceOp)
def _slice(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes(1))
    bound = st.integers(-7, 7)
    starts, stops, steps = (draw(st.tuples(*[part] * len(shape))) for part in (bound, bound, bound.filter(bool)))
    x = arrays(draw, shape, dtype)
    # Python's own lists say what a slice takes.
    taken = [list(range(size))[a:b:c] for size, a, b, c in zip(shape, starts, stops, steps, strict=True)]
    expected = indexed(
        [*map(len, taken)], dtype, lambda index: x[tuple(t[i] for t, i in zip(taken, index, strict=True))]
    )
    module = program([GraphTensorType.of(shape, dtype)], lambda a: [graph.SliceOp(a[0], starts, stops, steps)])
    return Case(module, [x], expecting(expected))


@case(graph.ReduceOp)
def _reduce(draw: Draw) -> Case:
    kind = draw(st.sampled_from(["sum", "prod", "max", "min", "and", "or", "xor"]))
    bits = kind in ("and", "or", "xor")
    dtype = draw(st.sampled_from([*INTEGERS, bool_] if bits else [*FLOATS, *INTEGERS]))
    shape = draw(shapes())
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    keepdims = draw(st.booleans())
    # Products and float64 sums of huge numbers overflow on the way or not, depending on their order.
    x = arrays(draw, shape, dtype, tame=kind == "prod" or dtype is f64)
    module = program([typed(draw, shape, dtype)], lambda a: [graph.ReduceOp(kind, a[0], axes, keepdims=keepdims)])

    def check(results: Sequence[Any], machine: Machine) -> None:
        (found,) = results
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        assert found.shape == tuple(kept if keepdims else [s for axis, s in enumerate(shape) if axis not in axes])
        for index in product(*map(range, kept)):
            where = tuple(slice(None) if axis in axes else at for axis, at in enumerate(index))
            assert_folded(found.reshape(kept)[index], kind, x[where], dtype)

    return Case(module, [x], check)


@case(graph.ConcatenateOp)
def _concatenate(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes(1))
    axis = draw(st.sampled_from(range(len(shape))))
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    shapes_ = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    parts = [arrays(draw, each, dtype) for each in shapes_]
    module = program([GraphTensorType.of(each, dtype) for each in shapes_], lambda a: [graph.ConcatenateOp(a, axis)])
    origin = [(part, at) for part, size in enumerate(sizes) for at in range(size)]

    def element(index: Index) -> Any:
        part, at = origin[index[axis]]
        return parts[part][(*index[:axis], at, *index[axis + 1 :])]

    target = (*shape[:axis], sum(sizes), *shape[axis + 1 :])
    return Case(module, parts, expecting(indexed(target, dtype, element)))


@case(graph.MatmulOp)
def _matmul(draw: Draw) -> Case:
    dtype = draw(st.sampled_from([*FLOATS, *INTEGERS, i16]))
    wide: dict[DType, list[DType]] = {bf16: [f32], f8e4m3: [f32, bf16], i8: [i32], i4: [i32], i16: [i32, i64]}
    to = draw(st.sampled_from([dtype, *wide.get(dtype, [])]))
    lead, (m, k, n) = draw(shapes(0, 1)), draw(st.tuples(*[st.integers(0, 4)] * 3))
    left = (*((1 if draw(st.booleans()) else size) for size in lead), m, k)
    right = (*lead[draw(st.integers(0, len(lead))) :], k, n)
    a, b = (arrays(draw, shape, dtype, tame=dtype is f64) for shape in (left, right))
    module = program(
        [GraphTensorType.of(shape, dtype) for shape in (left, right)], lambda a: [graph.MatmulOp(*a, to=to)]
    )

    def check(results: Sequence[Any], machine: Machine) -> None:
        (found,) = results
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        assert found.shape == (*batch, m, n)
        assert found.dtype == to.storage
        rows, columns = np.broadcast_to(a, (*batch, m, k)), np.broadcast_to(b, (*batch, k, n))
        for index in product(*map(range, found.shape)):
            *outer, row, column = index
            down = columns[(*outer, slice(None), column)]
            # Sums of 16 bits and fewer are carried in 32 bits, and wrap there even if the result is wider.
            assert_dot(found[index], rows[(*outer, row)], down, to, carried=i32 if dtype.bits < 32 else i64)

    return Case(module, [a, b], check)


@case(graph.IotaOp)
def _iota(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from([*INTEGERS, u64])), draw(shapes(1) | st.just((2, 300)))
    axis = draw(st.sampled_from(range(len(shape))))
    module = program([], lambda _: [graph.IotaOp(axis, GraphTensorType.of(shape, dtype))])
    return Case(module, [], expecting(indexed(shape, dtype, lambda index: wrapped(index[axis], dtype))))


@case(graph.GatherOp)
def _gather(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes(1))
    counting, axis = draw(st.sampled_from([*INTEGERS, u64])), draw(st.sampled_from(range(len(shape))))
    where = draw(shapes(0, 2)) if shape[axis] else (0,)
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    indices = generator.integers(0, max(1, shape[axis]), where).astype(counting.storage)
    x = arrays(draw, shape, dtype)
    module = program(
        [typed(draw, shape, dtype), typed(draw, where, counting, "I")], lambda a: [graph.GatherOp(a[0], [a[1]], [axis])]
    )

    def element(index: Index) -> Any:
        at = int(indices[index[axis : axis + len(where)]])
        return x[(*index[:axis], at, *index[axis + len(where) :])]

    target = (*shape[:axis], *where, *shape[axis + 1 :])
    return Case(module, [x, indices], expecting(indexed(target, dtype, element)))


@case(graph_effects.RandomOp)
def _random(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(FLOATS)), draw(shapes())
    distribution = draw(st.sampled_from(graph_effects.DISTRIBUTIONS))
    seed, position = draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**40))
    type_ = GraphTensorType.of(shape, dtype)
    module = program([], lambda _: [graph_effects.RandomOp(distribution, type_)], effects=["random"])
    # The eager functions are another implementation of the same numbers.
    eager = (rand if distribution == "uniform" else randn)(shape, dtype, seed=seed, offset=position).numpy()

    def check(results: Sequence[Any], machine: Machine) -> None:
        assert_same(results[0], eager)
        assert machine.position == position + math.prod(shape)

    return Case(module, [], check, lambda: Machine(seed=seed, position=position))


@case(graph_effects.StateOp)
@case(graph_effects.StateReadOp)
@case(graph_effects.StateWriteOp)
def _state(draw: Draw) -> Case:
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes())
    type_, x = GraphTensorType.of(shape, dtype), arrays(draw, shape, dtype)
    held = values(draw, shape, dtype) if draw(st.booleans()) else None

    def build(a: Sequence[SSAValue]) -> list[Operation]:
        before, after = (graph_effects.StateReadOp("slot", type_) for _ in range(2))
        return [
            before,
            graph_effects.StateWriteOp("slot", a[0]),
            after,
            graph.CallOp("both", [before.result, after.result], [type_] * 2),
        ]

    both = graph.FuncOp("both", [type_] * 2, [type_] * 2)
    both.body.block.add_op(graph.ReturnOp(both.arguments))
    module = program([type_], build, effects=["state(slot)"], before=[graph_effects.StateOp("slot", type_), both])

    def check(results: Sequence[Any], machine: Machine) -> None:
        expecting(np.zeros(shape, dtype.storage) if held is None else held, x)(results, machine)
        assert_same(machine.slots["slot"], np.asarray(x))
        assert not np.shares_memory(machine.slots["slot"], x)
        assert not np.shares_memory(machine.slots["slot"], results[1])

    return Case(module, [x], check, lambda: Machine(slots={} if held is None else {"slot": held}))


@case(graph_effects.AllReduceOp)
def _all_reduce(draw: Draw) -> Case:
    kind = draw(st.sampled_from(["sum", "max", "min"]))
    dtype, shape = draw(st.sampled_from([f32, bf16, i8])), draw(shapes())
    x, others = arrays(draw, shape, dtype), [values(draw, shape, dtype) for _ in range(draw(st.integers(0, 2)))]
    module = program(
        [typed(draw, shape, dtype)],
        lambda a: [graph_effects.AllReduceOp(kind, a[0], "mesh")],
        effects=["collective(mesh)"],
    )

    class Others:
        """The other ranks, who always agree."""

        def exchange(self, what: str, value: Array) -> list[Array]:
            return [value, *others]

    def check(results: Sequence[Any], machine: Machine) -> None:
        for index in product(*map(range, shape)):
            assert_folded(results[0][index], kind, np.array([each[index] for each in (x, *others)]), dtype)

    return Case(module, [x], check, lambda: Machine(axes={"mesh": Others()}))


@case(graph_effects.PrintOp)
def _print(draw: Draw) -> Case:
    written: list[str] = []
    x = values(draw, (3,), i8)
    module = program([GraphTensorType.of([3], i8)], lambda a: [graph_effects.PrintOp("numbers:", a[0])], effects=["io"])

    def check(results: Sequence[Any], machine: Machine) -> None:
        assert results == ()
        assert written.pop() == f"numbers: {x}\n"
        assert written == []

    return Case(module, [x], check, lambda: Machine(write=written.append))


def _as_case(made: Callable[[Draw], Written]) -> Callable[[Draw], Case]:
    def drawn(draw: Draw) -> Case:
        written = made(draw)
        return Case(text.read(written.text), list(written.arguments), expecting(*written.expected))

    return drawn


CASES.update({kind: _as_case(made) for kind, made in WRITTEN.items()})


def test_every_graph_op_has_a_case() -> None:
    assert set(CASES) == set(graph.Graph.operations)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.name)
@settings(max_examples=25)
@given(data=st.data())
def test_an_op_means_its_formula(kind: type[Operation], data: st.DataObject) -> None:
    drawn = CASES[kind](data.draw)
    text.verify(drawn.module)
    kept = [np.array(argument) for argument in drawn.arguments]
    for module in (drawn.module, text.read(text.write(drawn.module))):
        machine = drawn.machine()
        drawn.check(run_function(module, "f", drawn.arguments, machine=machine), machine)
        for argument, copy in zip(drawn.arguments, kept, strict=True):
            assert_same(np.asarray(argument), copy)
