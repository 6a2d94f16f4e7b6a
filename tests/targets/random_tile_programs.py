"""Random tile programs over whole numbers, for comparing levels exactly: memory, shapes, sums, products, control.

Sizes are small and awkward, one among them; accesses hang over the edges; loops swap what they carry; stores and loads
of one array follow each other. Integers wrap, so that every order of work gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.dtypes.types import DType, i8, i32
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type, view_type
from tessera.shapes.expr import dim

ROWS, COLS = 20, 24
SIZES = (1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 20)
_index = IndexType()
_VIEW = ViewType(2, element_of(i32))
_NARROW = ViewType(2, element_of(i8))
_VECTOR = ViewType(1, element_of(i32))

PROGRAMS = 3


def arguments(seed: int) -> list[object]:
    """Arrays for the arguments of a program, the last three of which it writes, and a number that decides branches."""
    generator = np.random.default_rng(seed)

    def numbers(*shape: int, dtype: type[np.signedinteger[Any]] = np.int32) -> Any:
        return generator.integers(-9, 9, shape).astype(dtype)

    # Elements side by side, a row apart, or backwards.
    inputs = [numbers(ROWS, COLS), numbers(COLS, ROWS).T, numbers(ROWS, COLS)[::-1, ::-1]]
    narrow = [numbers(ROWS, COLS, dtype=np.int8), numbers(COLS, ROWS, dtype=np.int8).T]
    vectors = [numbers(COLS), numbers(2 * COLS)[::2]]
    written = [numbers(PROGRAMS * ROWS, COLS), numbers(PROGRAMS * ROWS, COLS), numbers(PROGRAMS * COLS)]
    chosen = [some[int(generator.integers(0, len(some)))] for some in (inputs, narrow, vectors)]
    return [*chosen, *written, int(generator.integers(0, 5))]


@dataclass
class Maker:
    """Writes one program; `values` are the tiles there are to work on, `views` and `written` the memory, by rank."""

    chance: random.Random
    out: Block
    views: Sequence[SSAValue] = ()
    written: Sequence[SSAValue] = ()
    number: SSAValue | None = None
    values: list[SSAValue] = field(default_factory=list[SSAValue])

    def add(self, op: Operation) -> SSAValue:
        self.out.add_op(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(value, _index)))

    def number_of(self, value: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(value, IntegerType(32))))

    def size(self) -> int:
        return self.chance.choice(SIZES)

    def offsets(self, rank: int = 2) -> list[SSAValue]:
        return [self.constant(self.chance.choice((0, 0, 0, 1, 5, -2, 15))) for _ in range(rank)]

    def ranked(self, views: Sequence[SSAValue], rank: int, dtype: DType = i32) -> list[SSAValue]:
        return [view for view in views if view_type(view).rank.data == rank and view_type(view).dtype is dtype]

    def pick(self, dtype: DType = i32, rank: int | None = None) -> SSAValue:
        fitting = [
            value
            for value in self.values
            if tile_dtype(value) is dtype and (rank is None or len(shape_of(value)) == rank)
        ]
        return self.chance.choice(fitting) if fitting else self.load(self.size(), self.size(), dtype)

    def keep(self, value: SSAValue) -> SSAValue:
        self.values.append(value)
        return value

    # Single ops

    def load(self, rows: int, cols: int, dtype: DType = i32) -> SSAValue:
        view = self.chance.choice(self.ranked([*self.views, *self.written], 2, dtype))
        pad = self.chance.choice((None, None, 3.0))
        return self.keep(self.add(tile.LoadOp(view, self.offsets(), (rows, cols), pad)))

    def line(self) -> None:
        view = self.chance.choice(self.ranked([*self.views, *self.written], 1))
        self.keep(self.add(tile.LoadOp(view, self.offsets(1), (self.size(),), None)))

    def shaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue | None:
        """A value brought to a shape, if it can be."""
        have = shape_of(value)
        if len(have) < len(shape):
            return self.shaped(self.add(tile.ExpandOp(value, self.chance.randint(0, len(have)))), shape)
        if len(have) > len(shape):
            return None
        if len(have) == 2 and have != tuple(shape) and self.chance.random() < 0.3:
            value = self.add(tile.TransOp(value, (1, 0)))
            have = shape_of(value)
        if have == tuple(shape):
            return value
        fits = all(size in (1, wanted) for size, wanted in zip(have, shape, strict=True))
        return self.add(tile.BroadcastOp(value, shape)) if fits else None

    def elementwise(self) -> None:
        first, second = self.pick(), self.pick()
        other = self.shaped(second, shape_of(first))
        if other is None:
            first, other = second, self.shaped(first, shape_of(second))
        if other is None:
            other = self.add(tile.FullOp(self.number_of(self.chance.randint(-3, 3)), shape_of(first)))
        name = self.chance.choice(("add", "sub", "mul", "max", "min", "select"))
        if name == "select":
            mask = self.add(tile.EwOp(self.chance.choice(("lt", "ge", "eq")), [first, other]))
            self.keep(self.add(tile.EwOp("select", [mask, other, first])))
        else:
            self.keep(self.add(tile.EwOp(name, [first, other])))

    def masked(self) -> None:
        value = self.pick(rank=2)
        shape = shape_of(value)
        rows, cols = (self.iota(axis, shape) for axis in (0, 1))
        mask = self.add(tile.EwOp(self.chance.choice(("lt", "le", "gt", "ge")), [rows, cols]))
        nothing = self.add(tile.FullOp(self.number_of(0), shape))
        self.keep(self.add(tile.EwOp("select", [mask, value, nothing])))

    def iota(self, axis: int, shape: Sequence[int]) -> SSAValue:
        return self.add(tile.IotaOp(self.constant(self.chance.randint(-3, 3)), axis, tile_of(tuple(shape), i32)))

    def reduce(self) -> None:
        value = self.pick()
        rank = len(shape_of(value))
        if rank:
            kind = self.chance.choice(("sum", "max", "min", "prod"))
            self.keep(self.add(tile.ReduceOp(kind, value, self.chance.randrange(rank))))

    def shape(self) -> None:
        value = self.pick()
        rank = len(shape_of(value))
        if rank == 2:
            self.keep(self.add(tile.TransOp(value, (1, 0))))
        else:
            self.keep(self.add(tile.ExpandOp(value, self.chance.randint(0, rank))))

    def source(self) -> None:
        shape = (self.size(), self.size())[: self.chance.choice((1, 2, 2))]
        if self.chance.random() < 0.5:
            self.keep(self.add(tile.FullOp(self.number_of(self.chance.randint(-3, 3)), shape)))
        else:
            self.keep(self.iota(self.chance.randrange(len(shape)), shape))

    def dot(self) -> None:
        dtype = self.chance.choice((i8, i32))
        a = self.pick(dtype, rank=2)
        rows, depth = shape_of(a)
        matrices = [value for value in self.values if tile_dtype(value) is dtype and len(shape_of(value)) == 2]
        fitting = [value for value in matrices if shape_of(value)[0] == depth]
        transposed = [value for value in matrices if shape_of(value)[1] == depth]
        if fitting and self.chance.random() < 0.4:
            b = self.chance.choice(fitting)
        elif transposed and self.chance.random() < 0.5:
            b = self.add(tile.TransOp(self.chance.choice(transposed), (1, 0)))
        else:
            b = self.load(depth, self.size(), dtype)
        cols = shape_of(b)[1]
        starts = [value for value in self.values if tile_dtype(value) is i32 and shape_of(value) == (rows, cols)]
        if starts and self.chance.random() < 0.6:
            c = self.chance.choice(starts)
        else:
            c = self.add(tile.FullOp(self.number_of(self.chance.randint(0, 1)), (rows, cols)))
        self.keep(self.add(tile.DotOp(a, b, c)))

    def cast(self) -> None:
        dtype, to = self.chance.choice(((i8, i32), (i32, i8)))
        self.keep(self.add(tile.EwOp("cast", [self.pick(dtype)], to=to)))

    def store(self) -> None:
        value = self.pick()
        rank = len(shape_of(value))
        if rank:
            view, offsets = self.chance.choice(self.ranked(self.written, rank)), self.offsets(rank)
            kind = self.chance.choice(("store", "store", "atomic"))
            self.out.add_op(
                tile.StoreOp(value, view, offsets) if kind == "store" else tile.AtomicOp("sum", value, view, offsets)
            )

    def check(self) -> None:
        value = self.pick()
        self.out.add_op(tile.AssertOp(self.add(tile.EwOp("eq", [value, value])), "equal to itself"))

    # Control

    def inside(self, block: Block, steps: int) -> Maker:
        inner = Maker(self.chance, block, self.views, self.written, self.number, list(self.values))
        inner.fill(steps)
        return inner

    def loop(self) -> None:
        carried = [self.pick() for _ in range(self.chance.randint(1, 3))]
        if self.chance.random() < 0.3:
            carried.append(self.pick(i8))
        block = Block(arg_types=[_index, *(value.type for value in carried)])
        inner = Maker(self.chance, block, self.views, self.written, self.number, [*self.values, *block.args[1:]])
        inner.values += list(block.args[1:])
        inner.fill(self.chance.randint(2, 6))
        found: list[SSAValue] = []
        for value in carried:
            same = [made for made in inner.values if made.type == value.type]
            late = [made for made in same if isinstance(made.owner, Operation) and made.owner.parent_block() is block]
            found.append(self.chance.choice(late) if late and self.chance.random() < 0.7 else self.chance.choice(same))
        block.add_op(scf.YieldOp(*found))
        start, stop, step = (self.constant(number) for number in (0, self.chance.choice((0, 1, 2, 3)), 1))
        loop = scf.ForOp(start, stop, step, carried, Region(block))
        self.add(loop)
        self.values += list(loop.results)

    def branch(self) -> None:
        assert self.number is not None
        given = [self.pick() for _ in range(self.chance.randint(0, 2))]
        regions: list[Region] = []
        for _ in range(2):
            block = Block()
            inner = self.inside(block, self.chance.randint(1, 4))
            same = [[made for made in inner.values if made.type == value.type] for value in given]
            block.add_op(scf.YieldOp(*(self.chance.choice(choices) for choices in same)))
            regions.append(Region(block))
        condition = self.add(arith.CmpiOp(self.number, self.constant(2), self.chance.choice(("slt", "sge"))))
        branch = scf.IfOp(condition, [value.type for value in given], regions[0], regions[1])
        self.out.add_op(branch)
        self.values += list(branch.results)

    def fill(self, steps: int, *, control: bool = False) -> None:
        often = [self.elementwise] * 5 + [self.reduce, self.dot] * 3 + [self.store] * 2
        kinds = [*often, self.shape, self.source, self.cast, self.masked, self.line, self.check]
        if control:
            kinds += [self.loop] * 3 + [self.branch] * 2
        for _ in range(steps):
            self.chance.choice(kinds)()


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tile_type(value).get_shape()


def program(seed: int, steps: int = 8) -> ModuleOp:
    """A module with one tile function, @k, run by `PROGRAMS` programs, each on rows of its own."""
    types = [_VIEW, _NARROW, _VECTOR, _VIEW, _VIEW, _VECTOR, _index]
    shapes = [("A", "B"), ("A", "B"), ("B",), ("C", "B"), ("C", "B"), ("D",), ()]
    function = tile.FuncOp("k", types, 0, [[dim(name) for name in shape] for shape in shapes], [PROGRAMS])
    block = function.body.block
    maker = Maker(random.Random(seed), block, block.args[:3])
    maker.number = block.args[6]
    number, rows, cols, one = maker.add(tile.ProgramIdOp(0)), *(maker.constant(size) for size in (ROWS, COLS, 1))
    along = maker.add(arith.MuliOp(number, cols))
    here = maker.add(arith.MuliOp(along, rows))
    matrices = [maker.add(tile.ViewOp(argument, here, [rows, cols], [cols, one])) for argument in block.args[3:5]]
    maker.written = [*matrices, maker.add(tile.ViewOp(block.args[5], along, [cols], [one]))]
    for _ in range(2):
        maker.load(maker.size(), maker.size())
    maker.load(maker.size(), maker.size(), i8)
    maker.fill(steps, control=True)
    for value in maker.values[-4:]:
        if tile_dtype(value) is i32:
            seen = value
            while len(shape_of(seen)) < 2:
                seen = maker.add(tile.ExpandOp(seen, 0))
            view = maker.chance.choice(maker.ranked(maker.written, 2))
            block.add_op(tile.AtomicOp("sum", seen, view, maker.offsets()))
    block.add_op(tile.ReturnOp())
    return ModuleOp([function])
