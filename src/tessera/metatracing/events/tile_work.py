"""The work of a kernel's program instances, from its tile IR alone: dots, functions, elements and bytes.

Only the scalars of loops and offsets are computed, for some program instances; the cost of an iteration is read off the
types of its tiles. It serves every target, and takes milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.cached_property import cached_property
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common import elementwise
from tessera.ir.tile import dialect as tile
from tessera.ir.tile import values as tile_values
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.runtime.device.memory import contiguous_strides
from tessera.runtime.tensor.meta import Meta
from tessera.shapes.expr import dim, evaluator
from tessera.tiers.records import Described
from tessera.transforms.algebra.masks import Edge, Linear, Window, dead_from, masks_in
from tessera.transforms.core.slices import operand_source
from tessera.transforms.loops.live_iterations import clip_ranges

if TYPE_CHECKING:
    from tessera.tile.calls.instance import Instance

_LONG = 8
"""Adds and multiplies from which on an elementwise op counts as a function."""
FUNCTIONS = frozenset(
    name
    for name, row in elementwise.TABLE.items()
    if row.cost.special or row.cost.simple >= _LONG or (row.arity == 1 and row.cost.divide)
)
"""Elementwise ops that take the special-function unit, a root, or many steps: not divisions."""
SAMPLED = 24
_MOST_PROGRAMS = 4096
_MOST_ITERATIONS = 6
"""Iterations of an outer loop that are counted; the others are taken to be like them."""
_GROUP, _STEP = 8, 16
"""Rows that a CPU computes together, and columns: it leaves out those in which a mask leaves nothing."""

_INTEGERS: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.FloorDivSIOp: lambda a, b: a // b if b else 0,
    arith.CeilDivSIOp: lambda a, b: -(-a // b) if b else 0,
    arith.DivSIOp: lambda a, b: int(a / b) if b else 0,
    arith.RemSIOp: lambda a, b: a - b * int(a / b) if b else 0,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}


Geometry = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides."""
_COUNTED = ("products", "dots", "functions", "elements", "near", "far", "iterations", "left", "right", "ragged")


@dataclass
class Amounts:
    """The work of one program instance. Bytes that are `far` lie apart in memory: their axis has another stride than 1.

    `products` are operations of dots. `left` and `right` are the bytes of operands, as often as they are multiplied.
    `ragged` are the elements that are loaded into tiles which reach beyond their arrays.
    """

    products: float = 0.0
    dots: float = 0.0
    functions: float = 0.0
    elements: float = 0.0
    near: float = 0.0
    far: float = 0.0
    iterations: float = 0.0
    left: float = 0.0
    right: float = 0.0
    ragged: float = 0.0
    by_argument: Counter[int] = field(default_factory=Counter[int])
    far_arguments: set[int] = field(default_factory=set[int])

    def add(self, other: Amounts, times: float) -> None:
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + times * getattr(other, name))
        for argument, size in other.by_argument.items():
            self.by_argument[argument] += int(times * size)
        self.far_arguments |= other.far_arguments


@dataclass(frozen=True)
class TileWork:
    """The program instances of a call: how many, and the work of some of them."""

    grid: tuple[int, ...]
    sampled: tuple[Amounts, ...]
    numbers: tuple[int, ...]
    """The linear indices of the sampled program instances in the grid."""
    footprint: int
    """Bytes of all arrays, each element once."""
    bits: int
    """Bits of the elements of dots, or of those that are loaded."""
    columns: int
    """Columns of the accumulators of all dots in the code, which threads hold at once."""
    made: int
    """Columns of left operands that threads computed themselves."""
    tile_bytes: int
    """Bytes of the largest tile that is loaded."""

    @property
    def programs(self) -> int:
        return prod(self.grid)

    def total(self, what: str) -> float:
        """An amount of all program instances."""
        if not self.sampled:
            return 0.0
        return float(np.mean([getattr(one, what) for one in self.sampled])) * self.programs

    def busiest(self, what: str, units: int) -> float:
        """An amount of the busiest unit, where `units` take program instances as they become free, in their order."""
        amounts = np.array([getattr(one, what) for one in self.sampled])
        if not len(amounts):
            return 0.0
        count, each = self.programs, self._each(amounts)
        if count <= units:
            return float(each.max())
        even = float(each.sum()) * (count / len(each)) / units
        # The last instances do not end together: half of one, on average, or the rest of a round where all are alike.
        if float(np.ptp(amounts)) < 1e-9 * max(1.0, float(amounts.max())):
            return -(-count // units) * float(amounts[0])
        return max(float(each.max()), even + 0.5 * float(each[-min(units, len(each)) :].mean()))

    def _each(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The amount of every program instance, or of a few thousands that stand for all."""
        count, first = self.programs, self.grid[0] if self.grid else 1
        if first <= SAMPLED < count:
            # Whole rows of the grid were sampled: the others are like the nearest of them.
            rows = amounts.reshape(-1, first)
            many = min(count // first, max(1, _MOST_PROGRAMS // first))
            return rows[np.rint(np.linspace(0, len(rows) - 1, many)).astype(int)].reshape(-1)
        many = min(count, _MOST_PROGRAMS)
        return np.interp(np.arange(many) * (count / many), self.numbers, amounts)

    @cached_property
    def far_arguments(self) -> frozenset[int]:
        return frozenset[int]().union(*(one.far_arguments for one in self.sampled))


def tile_work(instance: Instance, arguments: Described, *, clipped: bool = False) -> TileWork:
    """The work of an instance of a kernel on arguments, given by metas of tensors and numbers.

    `clipped`: rows that are not stored and columns that a mask leaves out are not computed, as on CPUs.
    """
    function, grid, geometry = laid_out(instance, arguments)
    numbers = _sampled_programs(grid)
    reader = TileWorkCounter(function, geometry, arguments, clipped=clipped)
    sampled = tuple(reader.program(unravelled(number, grid)) for number in numbers)
    results = [found[0] for found in geometry[len(arguments) :] if found is not None]
    itemsize = [one.dtype.storage.itemsize for one in arguments if isinstance(one, Meta)]
    footprint = sum(one.nbytes for one in arguments if isinstance(one, Meta))
    footprint += sum(prod(shape) * (itemsize[0] if itemsize else 4) for shape in results)
    return TileWork(grid, sampled, tuple(numbers), footprint, *_widths(function))


def laid_out(instance: Instance, arguments: Described) -> tuple[tile.FuncOp, tuple[int, ...], list[Geometry | None]]:
    """The function of an instance with its loops cut short, its grid, and sizes and strides of all arrays."""
    module = instance.module.clone()
    function = symbol_in(module, instance.name, tile.FuncOp)
    clip_ranges(function)
    sizes: dict[str, int] = {}
    for shape, given in zip(function.shapes, arguments, strict=False):
        if isinstance(given, Meta):
            sizes.update((str(part), size) for part, size in zip(shape.data, given.shape, strict=True))
    extents: Any = evaluator(tuple(function.grid.data))(sizes)
    results = [evaluator(tuple(dim(part) for part in shape.data))(sizes) for shape in function.shapes][len(arguments) :]
    geometry: list[Geometry | None] = [(one.shape, one.strides) if isinstance(one, Meta) else None for one in arguments]
    geometry += [(shape, contiguous_strides(shape, 1)) for shape in results]
    return function, tuple(max(0, one) for one in extents), geometry


def _sampled_programs(grid: Sequence[int]) -> list[int]:
    """The program instances that are sampled: all, or some whole rows along the first axis, or some of a long row.

    The work of an instance mostly depends on its coordinate along the first axis; whole rows have all of these.
    """
    count = prod(grid)
    if grid and grid[0] <= SAMPLED < count:
        rows = count // grid[0]
        looked = np.linspace(0, rows - 1, min(rows, SAMPLED // grid[0])).astype(int)
        return [int(row) * grid[0] + column for row in looked for column in range(grid[0])]
    return spread(count, SAMPLED)


def spread(count: int, most: int) -> list[int]:
    """At most so many of the numbers below a count, evenly spread, with the first and the last."""
    return sorted({round(one) for one in np.linspace(0, count - 1, min(most, count))}) if count else []


def unravelled(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The coordinates of a program instance in the grid; the first axis changes fastest."""
    return tuple([int(one) for one in np.unravel_index(number, tuple(grid), order="F")])


def _widths(function: tile.FuncOp) -> tuple[int, int, int, int]:
    """The bits of operands, or loads; columns of accumulators, and of computed left operands; largest tile."""
    bits = columns = made = 0
    for op in function.body.walk():
        if isinstance(op, tile_values.DotOp):
            bits = max(bits, tile_dtype(op.a).bits)
            *batch, _, _ = tile_type(op.result).get_shape()
            columns += prod(batch) * tile_type(op.result).get_shape()[-1]
            loaded = isinstance(operand_source(op.a), tile.LoadOp)
            made += 0 if loaded else prod(batch) * tile_type(op.a).get_shape()[-1]
    loads = [op for op in function.body.walk() if isinstance(op, tile.LoadOp)]
    if not bits:
        bits = max((tile_dtype(op.result).bits for op in loads), default=32)
    sizes = [prod(tile_type(op.result).get_shape()) * tile_dtype(op.result).storage.itemsize for op in loads]
    return bits, columns, made, max(sizes, default=0)


class TileWorkCounter:
    """Counts the work of a function for one program instance after the other."""

    def __init__(
        self, function: tile.FuncOp, geometry: Sequence[Any], arguments: Described, *, clipped: bool = False
    ) -> None:
        self._function, self._geometry, self._clipped = function, geometry, clipped
        self._stored: tuple[int, int] | None = None  # rows of the tiles that are stored, and how many of them are
        self._masks: dict[Block, dict[tuple[int, int], list[SSAValue]]] = {}
        self._edges: dict[tuple[SSAValue, int], Sequence[Sequence[Edge]]] = {}
        self._live: dict[tuple[int, int], float] = {}  # by shapes of tiles, the part that a mask of a loop leaves
        self._program: tuple[int, ...] = ()
        self._known: dict[SSAValue, int | None] = {}
        self._views: dict[SSAValue, tuple[list[int | None], list[int | None]]] = {}
        self._start: dict[SSAValue, int | None] = {}
        for argument, found, given in zip(
            function.arguments, geometry, [*arguments, *[None] * (len(geometry) - len(arguments))], strict=True
        ):
            if found is not None:
                self._views[argument] = list(found[0]), list(found[1])
            elif isinstance(given, int):
                self._start[argument] = int(given)

    def program(self, at: tuple[int, ...]) -> Amounts:
        self._program, self._known, self._stored = at, dict(self._start), None
        found = self._block(self._function.body.block)
        if not self._clipped or self._stored is None or self._stored[0] == self._stored[1]:
            return found
        self._known = dict(self._start)  # once more, now that it is known how many rows there are
        return self._block(self._function.body.block)

    def _block(self, block: Block) -> Amounts:
        found = Amounts()
        is_loop = self._clipped and isinstance(block.parent_op(), scf.ForOp)
        outer = self._live
        for op in block.ops:
            if is_loop and isinstance(op, tile_values.DotOp) and self._live is outer:
                # Scalars that masks compare are before the first dot.
                self._live = outer | self._left_by_masks(block)
            self._op(op, found)
        self._live = outer
        return found

    def _left_by_masks(self, block: Block) -> dict[tuple[int, int], float]:
        """The parts of tiles that masks of a block leave, by whole groups of rows and steps of columns."""
        if block not in self._masks:
            masks: dict[tuple[int, int], list[SSAValue]] = {}
            for mask in masks_in(block):
                shape = tile_type(mask).get_shape()
                if len(shape) == 2 and shape[0] > 1:
                    masks.setdefault((shape[0], shape[1]), []).append(mask)
            self._masks[block] = masks
        found: dict[tuple[int, int], float] = {}
        for (rows, columns), several in self._masks[block].items():
            groups = range(0, self._rows(rows), _GROUP)
            there = sum(min(self._columns(mask, at) for mask in several) for at in groups)
            found[rows, columns] = there / (columns * len(groups)) if groups else 1.0
        return found

    def _columns(self, mask: SSAValue, row: int) -> int:
        """Columns up to the last one that a mask leaves to a group of rows, in whole steps."""
        rows, columns = tile_type(mask).get_shape()
        if (mask, row) not in self._edges:
            column = Block(arg_types=[IndexType()]).args[0]
            window = Window((Linear(number=row), Linear(((column, 1),))), (min(_GROUP, rows - row), 1))
            self._edges[mask, row] = dead_from(mask, column, window)
        end = columns
        for edges in self._edges[mask, row]:
            ends = [(self._sum(edge.at), edge.factor) for edge in edges]
            if all(at is not None for at, _ in ends):
                end = min(end, max(-(-at // factor) for at, factor in ends if at is not None))
        return min(columns, -(-max(0, end) // _STEP) * _STEP)

    def _sum(self, wanted: Linear) -> int | None:
        total = wanted.number
        for scalar, factor in wanted.terms:
            if (one := self._number(scalar)) is None:
                return None
            total += factor * one
        return total

    def _rows(self, rows: int) -> int:
        """How many rows of tiles with so many are computed."""
        return self._stored[1] if self._stored is not None and self._stored[0] == rows else rows

    def _part(self, shape: Sequence[int]) -> float:
        """The part of a tile that is computed."""
        if not self._clipped or len(shape) != 2:
            return 1.0
        rows, columns = shape
        return self._rows(rows) / rows * self._live.get((rows, columns), 1.0)

    def _number(self, value: SSAValue) -> int | None:
        return self._known.get(value)

    def _op(self, op: Operation, found: Amounts) -> None:
        apply = _INTEGERS.get(type(op))
        if apply is not None:
            a, b = (self._number(operand) for operand in op.operands)
            self._known[op.results[0]] = None if a is None or b is None else apply(a, b)
        elif isinstance(op, arith.ConstantOp):
            value = op.value
            self._known[op.result] = value.value.data if isinstance(value, IntegerAttr) else None
        elif isinstance(op, arith.IndexCastOp):
            self._known[op.result] = self._number(op.input)
        elif isinstance(op, tile.ProgramIdOp):
            axis = op.axis.value.data
            self._known[op.results[0]] = self._program[axis] if axis < len(self._program) else 0
        elif isinstance(op, tile.DimOp | tile.StrideOp):
            which = 0 if isinstance(op, tile.DimOp) else 1
            self._known[op.results[0]] = self._views[op.view][which][op.axis.value.data]
        elif isinstance(op, tile.ViewOp):
            self._views[op.result] = [self._number(one) for one in op.sizes], [self._number(one) for one in op.strides]
        elif isinstance(op, scf.ForOp):
            self._loop(op, found)
        elif isinstance(op, scf.IfOp):
            for region in op.regions:
                for block in region.blocks:
                    found.add(self._block(block), 0.5)
        else:
            self._cost(op, found)

    def _loop(self, op: scf.ForOp, found: Amounts) -> None:
        low, high, step = (self._number(one) for one in (op.lb, op.ub, op.step))
        if low is None or high is None or not step:
            found.add(self._block(op.body.block), 1)
            return
        count = max(0, -(-(high - low) // step))
        found.iterations += count
        if self._clipped and any(True for _ in masks_in(op.body.block)):
            # Masks leave out parts of the last iterations; the first stands for those before them.
            ends = list(range(max(0, count - _MOST_ITERATIONS), count))
            looked = {**({0: ends[0]} if ends and ends[0] else {}), **dict.fromkeys(ends, 1)}
        else:
            nested = any(isinstance(one, scf.ForOp) for one in op.body.block.ops)
            several = {round(one) for one in np.linspace(0, count - 1, min(count, _MOST_ITERATIONS if nested else 1))}
            looked = dict.fromkeys(sorted(several), count / max(1, len(several)))
        for iteration, times in looked.items():
            self._known[op.body.block.args[0]] = low + iteration * step
            found.add(self._block(op.body.block), times)

    def _cost(self, op: Operation, found: Amounts) -> None:
        if isinstance(op, tile_values.DotOp):
            (*batch, rows, depth), columns = tile_type(op.a).get_shape(), tile_type(op.b).get_shape()[-1]
            # A mask leaves out columns of the result, or of the left operand.
            part = min(self._part((*batch, rows, columns)), self._part((*batch, rows, depth)))
            several, itemsize = prod(batch), tile_dtype(op.a).storage.itemsize
            found.products += 2.0 * several * rows * depth * columns * part
            found.dots += several
            found.left += several * rows * depth * itemsize
            found.right += several * depth * columns * itemsize
        elif isinstance(op, tile_values.EwOp):
            size = prod(shape := tile_type(op.result).get_shape()) * self._part(shape)
            found.elements += size
            found.functions += size if op.fn.data in FUNCTIONS else 0
        elif isinstance(op, tile_values.UnpackOp | tile_values.PackOp):
            # One step for each half: shifted out of its byte, or into it.
            found.elements += max(prod(tile_type(value).get_shape()) for value in (op.operand, op.result))
        elif isinstance(op, tile_values.ReduceOp | tile_values.ScanOp | tile_values.SortOp):
            found.elements += prod(shape := tile_type(op.operands[0]).get_shape()) * self._part(shape)
        elif isinstance(op, tile.LoadOp):
            shape = tile_type(op.result).get_shape()
            inside = self.moved(op, op.view, op.offsets, op.result, found)
            found.ragged += prod(inside) if tuple(inside) != tuple(shape) else 0
        elif isinstance(op, tile.AtPlaces):
            value = op.result if isinstance(op, tile.ReadOp) else op.value
            self.moved(op, op.view, (), value, found)
        elif isinstance(op, tile.StoreOp | tile.AtomicOp):
            inside = self.moved(op, op.view, op.offsets, op.value, found)
            if len(inside) == 2:
                self._stored = tile_type(op.value).get_shape()[0], inside[0]

    def moved(
        self, op: Operation, view: SSAValue, offsets: Sequence[SSAValue], value: SSAValue, found: Amounts
    ) -> list[int]:
        """Counts the bytes of a tile that is loaded or stored; how much of each axis is inside of its array.

        Without offsets its elements are anywhere in the array.
        """
        shape = tile_type(value).get_shape()
        sizes, strides = self._views.get(view, ([], []))
        inside = list(shape) if not offsets else list[int]()
        for size, offset, extent in zip(sizes, offsets, shape, strict=False):
            at = self._number(offset)
            inside.append(extent if size is None or at is None else max(0, min(extent, size - at)))
        nbytes = prod(inside) * tile_dtype(value).storage.itemsize
        argument = self._function.arguments.index(tile.base_of(view))  # pyright: ignore[reportArgumentType]
        found.by_argument[argument] += nbytes
        last = next((stride for stride, size in zip(reversed(strides), reversed(shape), strict=False) if size > 1), 1)
        if offsets and last in (1, 0, None):
            found.near += nbytes
        else:
            found.far += nbytes
            found.far_arguments.add(argument)
        return inside
