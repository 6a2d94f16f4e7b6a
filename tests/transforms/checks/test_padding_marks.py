"""Checks for NaN that are part of a kernel find what the interpreter's find: random kernels, many at the edges."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.dtypes.types import f32, i32
from tessera.errors import CompileError, DtypeError
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks
from tessera.ir import text
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import dim
from tessera.transforms.checks.instrument import Instrument, check_of

SIDE, SIZE = 4, 6
_index = IndexType()


@dataclass
class Maker:
    """Writes one kernel over square tiles of floats."""

    chance: random.Random
    out: Block
    views: tuple[SSAValue, ...]
    number: SSAValue
    scalar: SSAValue
    values: list[SSAValue] = field(default_factory=list[SSAValue])

    def add(self, op: Operation) -> SSAValue:
        self.out.add_op(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(value, _index)))

    def full(self, value: float) -> SSAValue:
        return self.add(tile.FullOp(self.add(arith.ConstantOp(FloatAttr(value, Float32Type()))), (SIDE, SIDE)))

    def pick(self) -> SSAValue:
        return self.chance.choice(self.values)

    def keep(self, value: SSAValue) -> None:
        self.values.append(value)

    def load(self) -> None:
        offsets = [self.constant(self.chance.choice((0, 0, 2, 3, 5, -2))) for _ in range(2)]
        pad = self.chance.choice((None, None, 1.0, float("-inf")))
        self.keep(self.add(tile.LoadOp(self.chance.choice(self.views), offsets, (SIDE, SIDE), pad)))

    def whole_numbers(self) -> None:
        self.keep(self.add(tile.EwOp("cast", [self.add(tile.EwOp("cast", [self.pick()], to=i32))], to=f32)))

    def source(self) -> None:
        self.keep(self.full(self.chance.choice((0.0, 1.0, -1.0, float("inf")))))

    def filled(self) -> None:
        kind = self.chance.choice((arith.MulfOp, arith.DivfOp, arith.SubfOp))
        self.keep(self.add(tile.FullOp(self.add(kind(self.scalar, self.scalar)), (SIDE, SIDE))))

    def two(self) -> None:
        name = self.chance.choice(("add", "sub", "mul", "div", "max", "min"))
        self.keep(self.add(tile.EwOp(name, [self.pick(), self.pick()])))

    def one(self) -> None:
        self.keep(self.add(tile.EwOp(self.chance.choice(("sqrt", "log", "exp", "neg", "sin")), [self.pick()])))

    def select(self) -> None:
        mask = self.add(tile.EwOp(self.chance.choice(("lt", "ge", "ne")), [self.pick(), self.pick()]))
        self.keep(self.add(tile.EwOp("select", [mask, self.pick(), self.pick()])))

    def reduce(self) -> None:
        axis, kind = self.chance.randrange(2), self.chance.choice(("sum", "sum", "max", "prod"))
        line = self.add(tile.ExpandOp(self.add(tile.ReduceOp(kind, self.pick(), axis)), axis))
        self.keep(self.add(tile.BroadcastOp(line, (SIDE, SIDE))))

    def transpose(self) -> None:
        self.keep(self.add(tile.TransOp(self.pick(), (1, 0))))

    def dot(self) -> None:
        self.keep(self.add(tile.DotOp(self.pick(), self.pick(), self.pick())))

    def loop(self) -> None:
        carried = [self.pick() for _ in range(self.chance.randint(1, 3))]
        block = Block(arg_types=[_index, *(value.type for value in carried)])
        inner = Maker(self.chance, block, self.views, self.number, self.scalar, [*self.values, *block.args[1:]])
        inner.fill(self.chance.randint(1, 4))
        block.add_op(scf.YieldOp(*(inner.pick() for _ in carried)))
        bounds = [self.constant(number) for number in (0, self.chance.choice((0, 1, 2, 3)), 1)]
        loop = scf.ForOp(bounds[0], bounds[1], bounds[2], carried, Region(block))
        self.add(loop)
        self.values += loop.results

    def branch(self) -> None:
        regions: list[Region] = []
        for _ in range(2):
            block = Block()
            inner = Maker(self.chance, block, self.views, self.number, self.scalar, list(self.values))
            inner.fill(self.chance.randint(1, 3))
            block.add_op(scf.YieldOp(inner.pick()))
            regions.append(Region(block))
        condition = self.add(arith.CmpiOp(self.number, self.constant(1), "slt"))
        self.keep(self.add(scf.IfOp(condition, [self.values[0].type], regions[0], regions[1])))

    def fill(self, steps: int, *, control: bool = False) -> None:
        kinds = [self.two] * 4 + [self.load, self.one, self.select, self.reduce] * 2
        kinds += [self.dot, self.transpose, self.source, self.whole_numbers, self.filled]
        for _ in range(steps):
            self.chance.choice(kinds + [self.loop, self.branch] * (2 if control else 0))()


def program(seed: int) -> ModuleOp:
    view, element = ViewType(2, element_of(f32)), element_of(f32)
    size = dim("N")
    shapes = [(size, size), (size, SIZE), (size, size), (), ()]
    function = tile.FuncOp("k", [view, view, view, _index, element], 0, shapes, [1])
    block = function.body.block
    x, y, out, number, scalar = block.args
    maker = Maker(random.Random(seed), block, (x, y), number, scalar)
    maker.load()
    maker.load()
    maker.fill(8, control=True)
    for value in maker.values[-2:]:
        block.add_op(tile.StoreOp(value, out, [maker.constant(0), maker.constant(3)]))
    block.add_op(tile.ReturnOp())
    return ModuleOp([function])


def arguments(seed: int) -> list[Any]:
    chance = np.random.default_rng(seed)
    numbers = [0.0, 0.0, 1.0, 2.0, -1.0, 0.5]
    # Most arrays hold nothing special, so that what is made up has a chance to matter.
    special = [[], [], [np.inf, -np.inf], [np.nan]][seed % 4]
    x, y = (chance.choice([*numbers, *special], (SIZE, SIZE)).astype(np.float32) for _ in range(2))
    return [x, y, np.zeros((SIZE, SIZE), np.float32), seed % 3, [0.0, 1.0][seed % 2]]


def verdicts(seed: int) -> tuple[str | None, str | None]:
    """The op that makes the first NaN, as the interpreter sees it and as the kernel itself does."""
    module, expected, found = program(seed), None, None
    text.verify(module)
    try:
        run_kernel(module, "k", arguments(seed), checks=Checks(nonfinite="nan"))
    except DtypeError as error:
        expected = error.message.removeprefix("reduce ").split()[0]
    Instrument(bounds=False, everywhere=False).apply(text.new_context(), module)
    text.verify(module)
    given = arguments(seed)
    try:
        run_kernel(module, "k", given)
    except CompileError as error:
        _, _, message = error.message.partition(": ")
        assert check_of(message) == "nan"
        found = message.split()[0]
    if found is None:
        plain = arguments(seed)
        run_kernel(program(seed), "k", plain)
        assert np.array_equal(given[2], plain[2], equal_nan=True)
    return expected, found


def compare(seeds: range) -> set[str | None]:
    seen: set[str | None] = set()
    for seed in seeds:
        expected, found = verdicts(seed)
        assert found == expected, f"program {seed}"
        seen.add(expected)
    return seen


@pytest.mark.acceptance
def test_programs_find_the_nan_that_the_interpreter_finds() -> None:
    assert {None, "div", "sub", "sqrt", "log"} <= compare(range(60))


@pytest.mark.acceptance
def test_many_programs_find_the_nan_that_the_interpreter_finds() -> None:
    assert {None, "div", "sub", "sqrt", "log", "dot", "sum", "mul", "divf"} <= compare(range(60, 4_000))


@pytest.mark.parametrize(
    ("message", "check"),
    [
        ("tile.load starts outside its view, along axis 0", "bounds"),
        ("div made NaN of operands that are none", "nan"),
        ("all is well", None),
    ],
)
def test_messages_tell_their_check(message: str, check: str | None) -> None:
    assert check_of(message) == check
