"""Checks that every level of a compile means the same: random pointwise programs, ragged sizes, facts, effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from reference_values import LAYOUTS, Array, Draw, assert_same, laid_out, numbers_by, program, stored
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, accum, bf16, bool_, f8e4m3, f16, f32, i8, i32, loss_scale, saturate, u8
from tessera.errors import CompileError, DtypeError
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common import elementwise
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType, dense, graph_type
from tessera.shapes.expr import Size
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import compile_module

# None divides the blocks of 16 and 64 that pointwise regions are cut into, but for one that is a block.
RAGGED = (17, 1, 15, 65, 64, 100, 0)
COMMON = (f32, bf16, i32, bool_)
OTHERS = (f16, f8e4m3, i8, u8, bf16 @ saturate, i8 @ saturate, bf16 @ accum(f32))
NUMBERS = (1.0, -0.0, 0.0, -2.5, np.inf, np.nan, 3.0)


def _accepts(name: str, dtype: DType) -> bool:
    try:
        elementwise.result_dtype(name, [dtype] * elementwise.TABLE[name].arity)
    except DtypeError:
        return False
    return True


ROWS = {dtype: [name for name in elementwise.TABLE if _accepts(name, dtype)] for dtype in (*COMMON, *OTHERS)}


@dataclass
class Program:
    """A function that grows op by op; every value broadcasts to `shape`."""

    chance: Random
    shape: tuple[Size, ...]
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    ops: list[Operation] = field(default_factory=list[Operation])

    def add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        self.values.extend(op.results)
        return op.results[0]

    def pick(self) -> SSAValue:
        # The last value more often, so that programs become deep; any value may be used again.
        return self.chance.choice([self.values[-1], self.chance.choice(self.values)])

    def like(self, value: SSAValue, dtype: DType) -> SSAValue:
        """Some value, if need be repeated and cast, of the shape of another."""
        wanted = graph_type(value).with_dtype(dtype)
        same = [other for other in self.values if other.type == wanted and other is not value]
        fits = [other for other in self.values if _repeats_to(graph_type(other).shape, wanted.shape)]
        return self.become(self.chance.choice([*same, *same, *fits]), wanted)

    def become(self, value: SSAValue, type_: GraphTensorType) -> SSAValue:
        """The value, repeated and cast to a type."""
        if graph_type(value).shape != type_.shape:
            value = self.add(graph.BroadcastOp(value, type_.shape))
        return value if value.type == type_ else self.add(graph.EwOp("cast", [value], to=type_.dtype))

    def elementwise(self, value: SSAValue | None = None) -> None:
        value = value or self.pick()
        dtype = graph_type(value).dtype
        name = self.chance.choice([*ROWS[dtype], *(row for row in ("add", "sub", "mul") if row in ROWS[dtype])])
        operands = [value, *(self.like(value, dtype) for _ in range(elementwise.TABLE[name].arity - 1))]
        self.chance.shuffle(operands)
        self.add(graph.EwOp(name, operands))

    def select(self) -> None:
        value = self.pick()
        dtype = graph_type(value).dtype
        self.add(graph.EwOp("select", [self.like(value, bool_), self.like(value, dtype), value]))

    def cast(self) -> None:
        self.add(graph.EwOp("cast", [self.pick()], to=self.chance.choice([*COMMON, *OTHERS])))

    def narrow(self) -> tuple[Size, ...]:
        """A shape that broadcasts to the whole one."""
        kept = self.shape[self.chance.choice([0, 0, *range(len(self.shape) + 1)]) :]
        return tuple(1 if self.chance.random() < 0.2 else size for size in kept)

    def broadcast(self) -> None:
        """Repeats a value along some or all of the axes that it lacks."""
        narrow = [value for value in self.values if graph_type(value).shape != self.shape]
        value = self.chance.choice(narrow) if narrow else self.pick()
        before = graph_type(value).shape
        target = list(self.shape[self.chance.randint(0, len(self.shape) - len(before)) :])
        for axis in range(1, len(before) + 1):
            if before[-axis] == 1 and self.chance.random() < 0.3:
                target[-axis] = 1
        self.add(graph.BroadcastOp(value, target))

    def constant(self) -> None:
        dtype = self.chance.choice([*COMMON, *OTHERS])
        number = self.chance.choice(NUMBERS if dtype.is_float else (0, 1) if dtype is bool_ else (3, 0, 1, 7))
        type_ = GraphTensorType.of(self.narrow(), dtype)
        self.elementwise(self.add(graph.ConstantOp(dense(stored([number], dtype), dtype), type_)))

    def iota(self) -> None:
        if shape := self.narrow():
            type_ = GraphTensorType.of(shape, self.chance.choice([i32, i8, u8]))
            self.add(graph.IotaOp(self.chance.randrange(len(shape)), type_))

    def join(self) -> None:
        """Adds up some values over the whole shape, so that most of the program matters."""
        whole = GraphTensorType.of(self.shape, f32)
        total, *rest = (self.become(self.pick(), whole) for _ in range(3))
        for value in rest:
            total = self.add(graph.EwOp("add", [total, value]))


def _repeats_to(shape: Sequence[Size], target: Sequence[Size]) -> bool:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, whole) for size, whole in pairs)


PURE = (
    *(Program.elementwise,) * 4,
    Program.select,
    Program.cast,
    *(Program.broadcast,) * 2,
    Program.constant,
    Program.iota,
    Program.join,
)


def acts(slot: GraphTensorType) -> Sequence[Callable[[Program], None]]:
    """Steps that act on the world, with one state slot."""

    def read(program: Program) -> None:
        program.add(graph_effects.StateReadOp("slot", slot))

    def write(program: Program) -> None:
        program.ops.append(graph_effects.StateWriteOp("slot", program.become(program.pick(), slot)))

    def draw(program: Program) -> None:
        other = GraphTensorType.of(program.narrow(), bf16)
        type_ = program.chance.choice([slot, slot, other])
        program.add(graph_effects.RandomOp(program.chance.choice(graph_effects.DISTRIBUTIONS), type_))

    def show(program: Program) -> None:
        program.ops.append(graph_effects.PrintOp(f"{len(program.ops)}", program.pick()))

    return (read, write, draw, show) * 2


@dataclass
class Sample:
    """A module, arguments for its function @f, and all that is true of their sizes."""

    module: ModuleOp
    arguments: list[Array]
    facts: list[str]


def sample(draw: Draw, *, acting: bool) -> Sample:
    # Every example has bytes of its own, and all but the length follows from them: programs do not resemble each other.
    chance = Random(draw(st.binary(min_size=6, max_size=6), "seed"))
    sizes = [chance.choice(RAGGED) for _ in range(chance.choice([1, 2, 2, 2, 0]))]
    if sizes and chance.random() < 0.2:
        sizes = [chance.choice([2, 3]), *sizes]
    # The slot of a program that acts has constant sizes.
    shape = [
        f"S{axis}" if size != 1 and not acting and chance.random() < 0.7 else size for axis, size in enumerate(sizes)
    ]
    program = Program(chance, GraphTensorType.of(shape, f32).shape)
    types, arguments = list[GraphTensorType](), list[Array]()
    for _ in range(chance.randint(1, 4)):
        dtype = chance.choice([*COMMON, *COMMON, *OTHERS])
        # The first has all sizes, so that every symbol is bound.
        types.append(GraphTensorType.of(program.narrow() if types else program.shape, dtype))
        known = dict(zip(map(str, shape), sizes, strict=True))
        numbers = numbers_by(chance.getrandbits(32), [known.get(str(size), 1) for size in types[-1].shape], dtype)
        arguments.append(laid_out(numbers, chance.choice(LAYOUTS)))
    steps = (*PURE, *acts(GraphTensorType.of(program.shape, f32))) if acting else PURE
    chosen = [chance.choice(steps) for _ in range(draw(st.integers(1, 9), "steps"))]
    return Sample(_built(program, types, chosen, acting), arguments, _facts_about(arguments))


def _built(
    program: Program, types: Sequence[GraphTensorType], steps: Sequence[Callable[[Program], None]], acting: bool
) -> ModuleOp:
    declared = ["random", "state(slot)", "io"] if acting else []
    function = graph.FuncOp("f", types, [], declared)
    program.values.extend(function.arguments)
    for step in (*steps, Program.join):
        step(program)
    returned = [program.values[-1], *(program.pick() for _ in range(program.chance.randint(0, 2)))]
    function.body.block.add_ops([*program.ops, graph.ReturnOp(returned)])
    body = function.detach_region(function.body)
    whole = graph.FuncOp("f", types, [value.type for value in returned], declared, body)
    slot = graph_effects.StateOp("slot", GraphTensorType.of(program.shape, f32))
    return ModuleOp([slot, whole] if acting else [whole])


def _facts_about(arguments: Sequence[Array]) -> list[str]:
    return [
        f"arg{index}.size[{axis}] = {size}"
        for index, array in enumerate(arguments)
        for axis, size in enumerate(array.shape)
    ]


def outcome(module: ModuleOp, arguments: Sequence[Array]) -> tuple[tuple[Any, ...], list[Any]]:
    """The results of @f, called twice on one machine, and what the machine looks like after each call."""
    log: list[Any] = []
    machine = Machine(seed=11, write=log.append)
    results: tuple[Any, ...] = ()
    for _ in range(2):
        results += run_function(module, "f", arguments, machine=machine)
        log.append(machine.position)
        log.extend(slot.tobytes() for slot in machine.slots.values())
    return results, log


def check_levels(found: Sample, facts: Sequence[str]) -> None:
    """Every level's text, read again, gives the same bits and acts on the world in the same way."""
    text.verify(found.module)
    kept = [array.copy() for array in found.arguments]
    before = text.write(found.module)
    expected, happened = outcome(found.module, found.arguments)
    compiled = compile_module(found.module, facts=Facts.parse(*facts))
    assert text.write(found.module) == before
    assert {str(atom) for atom in compiled.guards} <= set(facts)
    assert list(compiled.levels) == ["graph", "schedule", "tile"]
    for module in (*map(text.read, compiled.levels.values()), compiled.module):
        results, log = outcome(module, found.arguments)
        for result, wanted in zip(results, expected, strict=True):
            assert_same(np.asarray(result), np.asarray(wanted))
        assert log == happened
    for array, copy in zip(found.arguments, kept, strict=True):
        assert_same(array, copy)


def check_drawn(data: st.DataObject, *, acting: bool) -> None:
    drawn = sample(data.draw, acting=acting)
    note(text.write(drawn.module))
    some = data.draw(st.lists(st.sampled_from(drawn.facts), unique=True)) if drawn.facts else []
    check_levels(drawn, data.draw(st.sampled_from([[], some, drawn.facts])))


@settings(max_examples=60)
@given(data=st.data())
def test_pointwise_programs_mean_the_same_at_every_level(data: st.DataObject) -> None:
    check_drawn(data, acting=False)


@settings(max_examples=25)
@given(data=st.data())
def test_effects_keep_their_order_and_count_at_every_level(data: st.DataObject) -> None:
    check_drawn(data, acting=True)


@pytest.mark.acceptance
@settings(max_examples=2000)
@given(data=st.data())
def test_many_pointwise_programs_mean_the_same_at_every_level(data: st.DataObject) -> None:
    check_drawn(data, acting=False)


@pytest.mark.acceptance
@settings(max_examples=500)
@given(data=st.data())
def test_many_programs_with_effects_mean_the_same_at_every_level(data: st.DataObject) -> None:
    check_drawn(data, acting=True)


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", [f32, bf16, i32, bool_], ids=str)
def test_every_row_means_the_same_with_a_constant_on_either_side(dtype: DType) -> None:
    type_, rows = GraphTensorType.of(["N"], dtype), [row for row in ROWS[dtype] if elementwise.TABLE[row].arity == 2]
    function = graph.FuncOp("f", [type_], [])
    three = graph.ConstantOp(dense(stored([True if dtype is bool_ else 3], dtype), dtype), type_)
    (x,), c = function.arguments, three.result
    applied = [graph.EwOp(row, pair) for row in rows for pair in ([c, x], [x, c], [c, c])]
    results = [op.result for op in applied]
    function.body.block.add_ops([three, *applied, graph.ReturnOp(results)])
    body = function.detach_region(function.body)
    module = ModuleOp([graph.FuncOp("f", [type_], [result.type for result in results], [], body)])
    check_levels(Sample(module, [numbers_by(5, [65], dtype)], []), [])


def test_programs_are_as_varied_as_they_should_be() -> None:
    assert {"add", "fma", "erf", "isnan", "sigmoid"} <= set(ROWS[f32])
    assert {"add", "shl", "not", "floordiv"} <= set(ROWS[i32])
    assert {"and", "eq", "not"} <= set(ROWS[bool_])


# Single programs.


def ew(name: str, types: Sequence[DType], to: DType | None = None) -> ModuleOp:
    """@f is one row over vectors of these types."""
    return program([GraphTensorType.of(["N"], each) for each in types], lambda a: [graph.EwOp(name, a, to=to)])


SCALED = f16 @ loss_scale(4)
NUMBERS_OF_F16 = stored([4.0, 8.0, 0.0], f16)


def agrees_or_is_refused(found: Sample) -> bool:
    """Whether all levels agree, or the compile says that it cannot."""
    try:
        check_levels(found, [])
    except CompileError as error:
        return "has no tile function" in error.message
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    "module",
    [ew("add", [SCALED, f16]), ew("lt", [SCALED, f16]), ew("cast", [SCALED], f32)],
    ids=["mixed", "compared", "cast"],
)
def test_scaled_values_keep_their_scale(module: ModuleOp) -> None:
    arguments = [NUMBERS_OF_F16, NUMBERS_OF_F16[::-1]]
    (function,) = (op for op in module.body.block.ops if isinstance(op, graph.FuncOp))
    assert agrees_or_is_refused(Sample(module, arguments[: len(function.arguments)], []))


def test_selecting_clamps_infinities_where_the_type_saturates() -> None:
    types = [GraphTensorType.of(["N"], each) for each in (bool_, f16 @ saturate)]
    module = program(types, lambda a: [graph.EwOp("select", [a[0], a[1], a[1]])])
    check_levels(Sample(module, [np.ones(1, np.bool_), stored([np.inf], f16)], []), [])


def test_facts_reach_the_functions_that_are_called() -> None:
    type_ = GraphTensorType.of(["N"], f32)
    callee = graph.FuncOp("g", [type_], [type_])
    negated = graph.EwOp("neg", callee.arguments)
    callee.body.block.add_ops([negated, graph.ReturnOp([negated.result])])
    module = program([type_], lambda a: [graph.CallOp("g", a, [type_])], before=[callee])
    check_levels(Sample(module, [stored([1.0, 2.0], f32)], []), ["arg0.size[0] = 2"])
