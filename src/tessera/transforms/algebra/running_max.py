"""Running maxima of loops, and the values of an iteration in which such a maximum does not rise.

A loop carries m and yields m' = max(m, t), with t the maximum of numbers of this iteration. Where m' is m, the factor
by which older sums are brought to the new maximum is 1, and their products with it are the sums themselves.

What is said here holds where m is a number. Where it is −∞, no number has been seen, and all sums are of nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.algebra.ratios import factor_of, is_near


def stripped(value: SSAValue) -> tuple[SSAValue, tuple[int, ...]]:
    """The value that a tile repeats, and the axis of the tile that each of its axes is."""
    inserted: list[int] = []
    while isinstance(op := value.owner, tile.ExpandOp | tile.BroadcastOp):
        if isinstance(op, tile.ExpandOp):
            inserted.append(op.axis.value.data)
        value = op.operand
    axes = list(range(tile_type(value).get_num_dims()))
    for new in reversed(inserted):
        axes = [axis + (axis >= new) for axis in axes]
    return value, tuple(axes)


@dataclass(frozen=True, eq=False)
class RunningMaximum:
    """A maximum that a loop carries, and how an iteration updates it."""

    loop: scf.ForOp
    index: int
    update: tile.EwOp
    candidate: SSAValue
    """The maximum of an iteration: that of `reduced`, times `scale`."""
    reduced: tile.ReduceOp
    chain: tuple[Operation, ...]
    """The ops on the reduced numbers, in order."""
    scale: float
    start: float
    """The initial value: −∞ or a number."""

    @property
    def block(self) -> Block:
        return self.loop.body.block

    @property
    def carried(self) -> SSAValue:
        return self.block.args[1 + self.index]

    @property
    def updated(self) -> SSAValue:
        return self.update.result

    @property
    def shape(self) -> tuple[int, ...]:
        return tile_type(self.updated).get_shape()

    @property
    def long_axes(self) -> tuple[int, ...]:
        """The axes along which there is more than one maximum."""
        return tuple(axis for axis, size in enumerate(self.shape) if size > 1)

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The axes of what is reduced that these are; None where maxima are repeated."""
        folded, axes = self.reduced.axis.value.data, list(range(tile_type(self.reduced.result).get_num_dims()))
        for op in self.chain:
            if isinstance(op, tile.ExpandOp):
                axes = [axis + (axis >= op.axis.value.data) for axis in axes]
        sources = {axis: source + (source >= folded) for source, axis in enumerate(axes)}
        kept = tile_type(self.reduced.operand).get_shape()
        found = [sources.get(axis) for axis in self.long_axes]
        whole = [source for source in found if source is not None and kept[source] > 1]
        return tuple(whole) if len(whole) == len(found) else None


def running_maxima(loop: scf.ForOp) -> Iterator[RunningMaximum]:
    """The maxima that a loop carries."""
    end = loop.body.block.last_op
    assert end is not None
    for index, (value, carried) in enumerate(zip(end.operands, loop.body.block.args[1:], strict=True)):
        update = value.owner
        if not isinstance(update, tile.EwOp) or update.fn.data != "max" or update.parent_block() is not loop.body.block:
            continue
        start = constant_of(loop.iter_args[index])
        if tile_dtype(value) is not f32 or start is None or not start < math.inf or carried not in update.operands_:
            continue
        (candidate,) = [other for other in update.operands_ if other is not carried] or [carried]
        found = _reduction(candidate, loop.body.block)
        if found is not None:
            reduced, chain, scale = found
            top = RunningMaximum(loop, index, update, candidate, reduced, chain, scale, start)
            if top.axes is not None:
                yield top


def _reduction(value: SSAValue, block: Block) -> tuple[tile.ReduceOp, tuple[Operation, ...], float] | None:
    """The reduction that a value is a multiple of, what is done to it, and the factor."""
    chain, scale = list[Operation](), 1.0
    while isinstance(op := value.owner, Operation) and op.parent_block() is block:
        if isinstance(op, tile.ReduceOp):
            return (op, tuple(reversed(chain)), scale) if op.kind.data in ("max", "top") else None
        chain.append(op)
        if isinstance(op, tile.ExpandOp | tile.BroadcastOp):
            value = op.operand
        elif (found := factor_of(value)) is not None:
            value, number = found
            scale *= number
        else:
            return None
    return None


@dataclass(frozen=True)
class CarriedMax:
    """A multiple of the carried maximum; with factor 0, the constant 0."""

    factor: float


@dataclass(frozen=True)
class Same:
    """Equal to another value."""

    value: SSAValue


@dataclass(frozen=True)
class One:
    """1."""


ONE: Final = One()
UnraisedValue = CarriedMax | Same | One


@dataclass(frozen=True)
class Question:
    """A comparison with the least number that a value can be."""

    value: SSAValue
    number: float
    says: bool
    """The answer for that number."""
    axes: tuple[int, ...]
    """The axes that those of the value are, where it is asked."""


class Unraised:
    """The values of an iteration in which a maximum does not rise, as far as they are known."""

    def __init__(self, top: RunningMaximum) -> None:
        self.top = top
        self._found: dict[SSAValue, UnraisedValue] = {top.carried: CarriedMax(1.0), top.updated: CarriedMax(1.0)}
        self.stays: dict[SSAValue, bool] = {}
        """Comparisons that ask whether the maximum stays: what they say then."""
        for op in top.block.ops:
            if op is not top.update and len(op.results) == 1:
                found = self._of_op(op)
                if found is not None:
                    self._found[op.results[0]] = found

    def of(self, value: SSAValue) -> UnraisedValue | None:
        if value not in self._found and constant_of(value) == 1:
            return ONE
        return self._found.get(value)

    def rising(self, op: tile.EwOp) -> SSAValue | None:
        """The branch of a select where the maximum rises; None where its condition asks something else."""
        if op.fn.data != "select":
            return None
        stays = self.stays.get(stripped(op.operands_[0])[0])
        return None if stays is None else op.operands_[2 if stays else 1]

    def question(self, condition: SSAValue) -> Question | None:
        """The comparison of a value with 0 or −∞ that a condition is, if it is one."""
        root, axes = stripped(condition)
        op = root.owner
        if not isinstance(op, tile.EwOp) or op.fn.data not in _COMPARES:
            return None
        for names, operands in ((_IS_LEAST, op.operands_), (_IS_LEAST_SWAPPED, op.operands_[::-1])):
            number, says = constant_of(operands[1]), names.get(op.fn.data)
            if number in (0, -math.inf) and says is not None:
                value, inner = stripped(operands[0])
                return Question(value, number, says, tuple(axes[axis] for axis in inner))
        return None

    def _of_op(self, op: Operation) -> UnraisedValue | None:
        if isinstance(op, tile.ExpandOp | tile.BroadcastOp):
            found = self.of(op.operand)
            return None if isinstance(found, Same) else found
        return self._of_elementwise(op) if isinstance(op, tile.EwOp) and op.policy is None else None

    def _of_elementwise(self, op: tile.EwOp) -> UnraisedValue | None:
        name, operands = op.fn.data, op.operands_
        if name in _COMPARES:
            self._look_for_question(op)
            return None
        if name == "select":
            return self._of_select(op)
        known = [self.of(operand) for operand in operands]
        match name, known:
            case "mul" | "div", [_, One()]:
                return known[0] or Same(operands[0])
            case "mul", [One(), _]:
                return known[1] or Same(operands[1])
            case "mul", _ if (found := factor_of(op.result)) is not None:
                level = self.of(found[0])
                return CarriedMax(level.factor * found[1]) if isinstance(level, CarriedMax) else None
            case "neg", [CarriedMax(factor)]:
                return CarriedMax(-factor)
            case "sub", [CarriedMax(one), CarriedMax(other)]:
                return CarriedMax(0.0 if is_near(one, other) else one - other)
            case "exp" | "exp2", [CarriedMax(0.0)]:
                return ONE
            case _:
                return None

    def _of_select(self, op: tile.EwOp) -> UnraisedValue | None:
        _, first, second = op.operands_
        if self.rising(op) is not None:
            return ONE if self.of(first) is ONE and self.of(second) is ONE else None
        asked = self.question(op.operands_[0])
        if asked is None or asked.number == 0 or asked.value not in (self.top.carried, self.top.updated):
            return None
        found = self.of(second if asked.says else first)
        return found if isinstance(found, CarriedMax) else None

    def _look_for_question(self, op: tile.EwOp) -> None:
        top, name = self.top, op.fn.data
        first, second = op.operands_
        if (first, second) == (top.candidate, top.carried):
            stays = {"le": True, "lt": True, "gt": False, "ge": False}
        elif (first, second) == (top.carried, top.candidate):
            stays = {"ge": True, "gt": True, "lt": False, "le": False}
        elif {first, second} == {top.updated, top.carried}:
            stays = {"eq": True, "ne": False}
        else:
            stays = {}
        if name in stays:
            self.stays[op.result] = stays[name]


_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
# What comparisons with the least of all numbers say where a value is that number.
_IS_LEAST = {"eq": True, "ne": False, "le": True, "gt": False}
_IS_LEAST_SWAPPED = {"eq": True, "ne": False, "ge": True, "lt": False}
