"""How far the program instances of a tile function reach: bounds on stores and indices, as expressions over sizes.

An array that is to be filled stays unwritten in part where all stores to it end before it does. That can be told from
sizes alone, before the function runs. Bounds are never too low; where none is known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import indices_of
from tessera.ir.tile.types import tile_type, view_type
from tessera.shapes.bounds import at_least
from tessera.shapes.expr import Dim, Quotient, dim, size
from tessera.shapes.grid_coverage import Cover


class _End(NamedTuple):
    """Where stores end along an axis, if that is known; and whether a larger grid would reach farther."""

    at: Dim | None
    spread: bool = False


class _Bounds(NamedTuple):
    """A number is at most `high`, if that is known, at least 0 if it is `natural`, and `number` if that is one.

    It is `spread` if it is another one in other program instances, and `exact` if it is `high` in one of them.
    """

    high: Dim | None
    natural: bool
    number: int | None = None
    spread: bool = False
    exact: bool = False


_ANY = _Bounds(None, natural=False)


def covers(function: tile.FuncOp) -> tuple[Cover, ...]:
    """For each array that the function is to fill, how far program instances reach, unless far enough for all sizes.

    Of an array that the caller gives, only axes count along which program instances lie: a grid can be too small. And
    for each array that all program instances index, how far they do, unless that is inside of it for all sizes: a grid
    can be too large.
    """
    work = _Reach(function)
    found = list(work.indexed())
    ends = work.ends()
    if ends is None:
        return tuple(found)
    for index in sorted(function.blank):
        argument, shape = function.arguments[index], function.shapes.data[index].data
        name = argument.name_hint or f"argument {index}"
        for axis, end in enumerate(ends.get(argument, [_End(dim(0))] * len(shape))):
            # An array of the caller's keeps what a kernel means to leave alone; of a fresh one nothing may be left.
            counts = index >= function.input_count or end.spread
            if counts and end.at is not None and not _is_natural(end.at - shape[axis]):
                found.append(Cover(name, axis, size(end.at), tuple(shape)))
    return tuple(found)


class _Reach:
    """Bounds on the numbers of one function."""

    def __init__(self, function: tile.FuncOp) -> None:
        self._function = function
        self._argument_indices: dict[SSAValue, int] = {
            argument: index for index, argument in enumerate(function.arguments)
        }
        self._known: dict[SSAValue, _Bounds] = {}

    def ends(self) -> dict[SSAValue, list[_End]] | None:
        """Where stores to each argument end along each axis; None where it is not known what they store to."""
        found: dict[SSAValue, list[_End]] = {}
        for op in self._function.body.walk():
            if isinstance(op, tile.Writer):
                base = tile.base_of(op.view)
                if base not in self._argument_indices:
                    return None
                ends = self._ends_of(op)
                before = found.setdefault(base, ends)
                found[base] = [_later(*pair) for pair in zip(before, ends, strict=True)]
        return found

    def indexed(self) -> Iterator[Cover]:
        """The parts of arguments that every program instance makes, by leading indices, where some may not be there."""
        for op in self._function.body.block.ops:
            number = self._argument_indices.get(op.base) if isinstance(op, tile.ViewOp) else None
            if number is None or not isinstance(op, tile.ViewOp):
                continue
            shape = self._function.shapes.data[number].data
            for axis, index in (self._indices(op.offset, op.base) or {}).items():
                if index.exact and index.high is not None and not _is_natural(dim(shape[axis]) - index.high - 1):
                    name = op.base.name_hint or f"argument {number}"
                    yield Cover(name, axis, size(index.high + 1), tuple(shape), inside=True)

    def _ends_of(self, op: tile.Writer) -> list[_End]:
        if isinstance(op, tile.AtPlaces):
            return [_End(None)] * view_type(tile.base_of(op.view)).rank.data
        shape = tile_type(op.value).get_shape()
        ends = [_end(self.bounds(offset), extent) for offset, extent in zip(op.offsets, shape, strict=True)]
        view = op.view
        while isinstance(owner := view.owner, tile.ViewOp):
            ends = self._outside(owner, ends)
            view = owner.base
        return ends

    def _outside(self, op: tile.ViewOp, ends: Sequence[_End]) -> list[_End]:
        """Ends in a part of an array at leading indices, as ends in the array; nothing is known of other parts."""
        rank = view_type(op.base).rank.data
        dropped = rank - len(ends)
        is_part = dropped >= 0 and all(_is_stride(one, op.base, axis) for axis, one in enumerate(op.strides, dropped))
        indices = self._indices(op.offset, op.base) if is_part else None
        if indices is None or any(axis >= dropped for axis in indices):
            return [_End(None)] * rank
        return [*(_end(indices.get(axis, _Bounds(dim(0), natural=True)), 1) for axis in range(dropped)), *ends]

    def _indices(self, offset: SSAValue, base: SSAValue) -> dict[int, _Bounds] | None:
        """The indices in a sum of indices times strides, by the axes of the strides."""
        found = indices_of(offset, base)
        one = _Bounds(dim(1), natural=True, exact=True)
        if found is None:
            return None
        return {axis: one if isinstance(at, int) else self.bounds(at) for axis, at in found.items()}

    def bounds(self, value: SSAValue) -> _Bounds:
        """The bounds of a number."""
        if value not in self._known:
            self._known[value] = _ANY  # while it is being found
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> _Bounds:
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            return self._counter(loop) if isinstance(loop, scf.ForOp) and owner.args[0] is value else _ANY
        match owner:
            case arith.ConstantOp() if isinstance(owner.value, IntegerAttr):
                number = owner.value.value.data
                return _Bounds(dim(number), number >= 0, number, exact=True)
            case tile.ProgramIdOp():
                return _Bounds(
                    dim(self._function.grid.data[owner.axis.value.data]) - 1, natural=True, spread=True, exact=True
                )
            case tile.DimOp():
                return _Bounds(self._size(owner), natural=True, exact=True)
            case arith.IndexCastOp():
                return self.bounds(owner.input)
            case _:
                rule = _RULES.get(type(owner))
                if rule is None:
                    return _ANY
                operands = [self.bounds(operand) for operand in owner.operands]
                # What grows with all of its operands is greatest where they are: no instance has one without the
                # others.
                exact = type(owner) in _GROWING and all(one.exact and one.natural for one in operands)
                return rule(*operands)._replace(spread=any(one.spread for one in operands), exact=exact)

    def _size(self, op: tile.DimOp) -> Dim | None:
        if op.view not in self._argument_indices:
            return None
        return dim(self._function.shapes.data[self._argument_indices[op.view]].data[op.axis.value.data])

    def _counter(self, loop: scf.ForOp) -> _Bounds:
        first, last, step = (self.bounds(bound) for bound in (loop.lb, loop.ub, loop.step))
        natural = first.natural and step.natural
        if last.high is None:
            return _Bounds(None, natural)
        if first.number is None or step.number is None or step.number < 1:
            return _Bounds(last.high - 1, natural)
        iterations = (last.high - 1 - first.number) // step.number
        return _Bounds(iterations * step.number + first.number, natural)


def _end(start: _Bounds, extent: int) -> _End:
    return _End(None if start.high is None else start.high + extent, start.spread)


def _later(one: _End, other: _End) -> _End:
    return _End(_farther(one.at, other.at), one.spread or other.spread)


def _farther(one: Dim | None, other: Dim | None) -> Dim | None:
    """The farther of two ends, where it is known which that is."""
    if one is None or other is None:
        return None
    return one if _is_natural(one - other) else other if _is_natural(other - one) else None


def _is_natural(value: Dim) -> bool:
    """Whether a number is known not to be below 0; whole blocks, `64*((N + 63)//64)`, are no less than N."""
    least = dim(0)
    for monomial, coefficient in value.terms:
        match monomial:
            case (Quotient() as whole,) if coefficient > 0 and coefficient % whole.divisor == 0:
                least += (whole.numerator - (whole.divisor - 1)) * (coefficient // whole.divisor)
            case _:
                least += Dim({monomial: coefficient})
    return at_least(least, 0) or at_least(value, 0)


def _is_stride(value: SSAValue, base: SSAValue, axis: int) -> bool:
    owner = value.owner
    return isinstance(owner, tile.StrideOp) and owner.view is base and owner.axis.value.data == axis


# What is known of results, from what is known of operands.


def _sum(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(None if a.high is None or b.high is None else a.high + b.high, a.natural and b.natural)


def _difference(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(a.high if b.natural else None, natural=False)


def _product(a: _Bounds, b: _Bounds) -> _Bounds:
    if not (a.natural and b.natural):
        return _ANY
    return _Bounds(None if a.high is None or b.high is None else a.high * b.high, natural=True)


def _quotient(a: _Bounds, b: _Bounds) -> _Bounds:
    if not (a.natural and b.natural):
        return _ANY
    return _Bounds(a.high if a.high is None or not b.number else a.high // b.number, natural=True)


def _remainder(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(None if b.high is None else b.high - 1, natural=True) if a.natural and b.natural else _ANY


def _least(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(b.high if a.high is None else a.high, a.natural and b.natural)


def _greatest(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(_farther(a.high, b.high), a.natural or b.natural)


_GROWING = (arith.AddiOp, arith.MuliOp)
_RULES: Mapping[type[Operation], Callable[[_Bounds, _Bounds], _Bounds]] = {
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.FloorDivSIOp: _quotient,
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _quotient,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    arith.MinSIOp: _least,
    arith.MaxSIOp: _greatest,
}
