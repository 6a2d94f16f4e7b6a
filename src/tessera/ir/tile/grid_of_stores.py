"""The grid that a tile function's stores ask for: as many program instances along an axis as fill its outputs.

A store at `program_id(0) * 64` of a tile of 64 rows tells that the grid has one program instance for each 64 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import NamedTuple, TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import indices_of
from tessera.ir.tile.types import tile_type, view_type
from tessera.shapes.expr import Shape, Size, ceil_div, size

_Key = TypeVar("_Key")
_MOST_PLACES = 1024  # that a store in loops is followed to


class Unclear(NamedTuple):
    """Why stores do not tell the extent of an axis of the grid; `op` is the store."""

    reason: str
    op: Operation | None = None


class _Linear(NamedTuple):
    """A number as a sum: a constant, program ids by their axes, and counters of loops, each times a number."""

    constant: int = 0
    ids: Mapping[int, int] = {}
    counters: Mapping[SSAValue, int] = {}

    def plus(self, other: _Linear, times: int = 1) -> _Linear:
        return _Linear(
            self.constant + times * other.constant,
            _sum(self.ids, other.ids, times),
            _sum(self.counters, other.counters, times),
        )


class _Place(NamedTuple):
    """Where a store lies along an axis of an output, and how far its tile reaches there; `at` None: it is not known."""

    output: SSAValue
    axis: int
    at: _Linear | None
    extent: int
    op: Operation


def grid_of_stores(body: Block, outputs: Mapping[SSAValue, Shape], axes: Iterable[int]) -> dict[int, Size | Unclear]:
    """For axes of the grid, how many program instances the stores to outputs ask for, or why they do not tell."""
    places = [place for op in body.walk() if isinstance(op, tile.Writer) for place in _places(op, outputs)]
    return {axis: _extent(axis, places, outputs) for axis in axes}


def _extent(axis: int, places: list[_Place], outputs: Mapping[SSAValue, Shape]) -> Size | Unclear:
    """The extent of one axis of the grid."""
    moved: dict[tuple[SSAValue, int], list[_Place]] = {}
    for place in places:
        if place.at is not None and axis in place.at.ids:
            moved.setdefault((place.output, place.axis), []).append(place)
    found: dict[Size, Operation] = {}
    for (output, along), stores in moved.items():
        name = f"axis {along} of {output.name_hint or 'an output'}"
        step = _step_of(axis, stores)
        if step is None:
            return Unclear(f"stores along {name} lie in several steps, or follow other axes as well", stores[0].op)
        if not _fills(stores, step):
            return Unclear(f"a program instance fills not all of the {step} elements along {name}", stores[0].op)
        found.setdefault(size(ceil_div(outputs[output][along], step)), stores[0].op)
    if not found:
        unknown = next((place.op for place in places if place.at is None), None)
        return Unclear("no store to an output lies at a multiple of it", unknown)
    if len(found) > 1:
        return Unclear(f"outputs ask for {' and for '.join(map(str, found))} program instances", [*found.values()][1])
    return next(iter(found))


def _step_of(axis: int, stores: list[_Place]) -> int | None:
    """By how many elements stores move from one program instance to the next, if all do alike and stay in line."""
    places = [store.at for store in stores if store.at is not None]
    steps = {place.ids[axis] for place in places}
    return steps.pop() if len(steps) == 1 and all(len(place.ids) == 1 for place in places) and min(steps) > 0 else None


def _fills(stores: list[_Place], step: int) -> bool:
    """Whether the stores of program instance 0 cover the first `step` elements."""
    covered: list[tuple[int, int]] = []
    for store in stores:
        assert store.at is not None
        starts = _starts(store.at)
        if starts is None:
            return False
        covered += [(start, start + store.extent) for start in starts]
    reached = 0
    for first, last in sorted(covered):
        if first > reached:
            break
        reached = max(reached, last)
    return reached >= step


def _starts(place: _Linear) -> list[int] | None:
    """Where program instance 0 stores, in all iterations of loops; None where that is not known."""
    ranges: list[range] = []
    count = 1
    for counter, times in place.counters.items():
        loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
        assert isinstance(loop, scf.ForOp)
        first, last, step = (_number(bound) for bound in (loop.lb, loop.ub, loop.step))
        if first is None or last is None or not step:
            return None
        values = range(first, last, step)
        ranges.append(range(times * first, times * first + times * step * len(values), times * step))
        count *= len(values)
        if count > _MOST_PLACES:
            return None
    return [place.constant + sum(offsets) for offsets in product(*ranges)]


def _places(op: tile.Writer, outputs: Mapping[SSAValue, Shape]) -> Iterator[_Place]:
    """Where a store lies along each axis of an output."""
    base = tile.base_of(op.view)
    if base not in outputs:
        return
    shape = tile_type(op.value).get_shape()
    known: list[tuple[_Linear | None, int]] = (
        [(_linear(offset), extent) for offset, extent in zip(op.offsets, shape, strict=True)]
        if isinstance(op, tile.StoreOp)
        else [(None, 1)] * len(shape)
    )
    view = op.view
    while isinstance(owner := view.owner, tile.ViewOp):
        known = _outside(owner, known)
        view = owner.base
    for axis, (at, extent) in enumerate(known):
        yield _Place(base, axis, at, extent, op)


def _outside(op: tile.ViewOp, known: list[tuple[_Linear | None, int]]) -> list[tuple[_Linear | None, int]]:
    """Places in a part of a view at indices, as places in the view."""
    rank = view_type(op.base).rank.data
    indices = indices_of(op.offset, op.base)
    axes = [axis for axis in range(rank) if axis not in (indices or ())]
    if indices is None or not all(map(partial(_is_stride, op.base), op.strides, axes)):
        return [(None, 1)] * rank
    rest = iter(known)
    return [
        next(rest)
        if axis not in indices
        else (_Linear(index) if isinstance(index := indices[axis], int) else _linear(index), 1)
        for axis in range(rank)
    ]


def _is_stride(base: SSAValue, value: SSAValue, axis: int) -> bool:
    owner = value.owner
    return isinstance(owner, tile.StrideOp) and owner.view is base and owner.axis.value.data == axis


def _linear(value: SSAValue) -> _Linear | None:
    """A number as a sum of program ids and counters of loops; None where it is something else."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        return _Linear(counters={value: 1}) if isinstance(loop, scf.ForOp) and owner.args[0] is value else None
    match owner:
        case tile.ProgramIdOp():
            return _Linear(ids={owner.axis.value.data: 1})
        case arith.IndexCastOp():
            return _linear(owner.input)
        case arith.AddiOp() | arith.SubiOp():
            one, other = _linear(owner.lhs), _linear(owner.rhs)
            times = 1 if isinstance(owner, arith.AddiOp) else -1
            return None if one is None or other is None else one.plus(other, times)
        case arith.MuliOp():
            one, other = _linear(owner.lhs), _linear(owner.rhs)
            if one is None or other is None:
                return None
            by, of = (one, other) if not one.ids and not one.counters else (other, one)
            return None if by.ids or by.counters else _Linear().plus(of, by.constant)
        case _:
            number = _number(value)
            return None if number is None else _Linear(number)


def _number(value: SSAValue) -> int | None:
    owner = value.owner
    return (
        owner.value.value.data if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) else None
    )


def _sum(one: Mapping[_Key, int], other: Mapping[_Key, int], times: int) -> dict[_Key, int]:
    found = {key: one.get(key, 0) + times * other.get(key, 0) for key in (*one, *other)}
    return {key: value for key, value in found.items() if value}
