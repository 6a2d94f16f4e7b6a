"""How exact a value must be: what meets bf16 on its way need not be much more exact than that.

A function has a brief form where everything that its result goes into allows the error of that form. Sums may be as
inexact as what is summed. A maximum is one of the values: it is as exact as these have to be elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype
from tessera.dtypes.types import bf16, f32
from tessera.targets.llvm.exponentials import BRIEFLY
from tessera.transforms.masks import constant_of

if TYPE_CHECKING:
    from tessera.targets.cpu.tile_to_cpu import Lowering

_UNIT = 2.0**-10
"""Half of what rounding to bf16 changes at most."""


def is_brief(lowering: Lowering, op: tile.EwOp) -> bool:
    """Whether the brief form of a function does for a result."""
    form = BRIEFLY.get(op.fn.data)
    if form is None or tile_dtype(op.result) is not f32:
        return False
    measures = (form.relative, _relative), (form.absolute, _absolute), (form.beside_one, _beside_one)
    return any(error <= allowed(lowering, op.result) < inf for error, allowed in measures)


def _least(lowering: Lowering, value: SSAValue, allows: Callable[[Operation], float]) -> float:
    return min((allows(user) for user, _ in lowering.reads(value)), default=0.0)


def _relative(lowering: Lowering, value: SSAValue) -> float:
    """The error of a value, in parts of it, that does no harm; infinite where it is summed up and no more."""

    def allows(user: Operation) -> float:
        match user:
            case tile.EwOp() if user.fn.data == "cast":
                return _UNIT if tile_dtype(user.result) is bf16 else 0.0
            case tile.EwOp() if user.fn.data in ("mul", "select"):
                return _relative(lowering, user.result)
            case tile.ReduceOp() if user.kind.data == "sum":
                return inf
            case _:
                return 0.0

    return _least(lowering, value, allows)


def _absolute(lowering: Lowering, value: SSAValue) -> float:
    """The error of a value that does no harm; infinite where only its maximum is wanted."""

    def allows(user: Operation) -> float:
        match user:
            case tile.EwOp() if user.fn.data == "exp":
                return _relative(lowering, user.result)
            case tile.EwOp() if user.fn.data in ("add", "sub", "select"):
                return _absolute(lowering, user.result)
            case tile.EwOp() if user.fn.data == "mul":
                factors = [size for size in map(_size, user.operands_) if size]
                return _absolute(lowering, user.result) / factors[0] if factors else 0.0
            case tile.ReduceOp() if user.kind.data in ("max", "top", "min"):
                return inf
            case _:
                return 0.0

    return _least(lowering, value, allows)


def _beside_one(lowering: Lowering, value: SSAValue) -> float:
    """The error, in parts of 1 − |value|, that does no harm: one is added to the value, or it is taken from one."""

    def allows(user: Operation) -> float:
        added = isinstance(user, tile.EwOp) and user.fn.data in ("add", "sub")
        beside = added and any(_size(operand) == 1 for operand in user.operands)
        return _relative(lowering, user.results[0]) if beside else 0.0

    return _least(lowering, value, allows)


def _size(value: SSAValue) -> float | None:
    number = constant_of(value)
    return None if number is None else abs(number)
