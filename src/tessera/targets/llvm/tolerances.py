"""How exact a value must be: what meets bf16 (on some targets f16) on its way need not be much more exact than that.

A function may use its approximate form where everything that its result goes into allows the error of that form. Sums
may be as inexact as what is summed. A maximum is one of the values: it is as exact as these have to be elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Protocol, TypeAlias

from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, bf16, f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.llvm.exponentials import APPROXIMATE_FORMS
from tessera.transforms.algebra.masks import constant_of

UNITS: Mapping[DType, float] = MappingProxyType({bf16: 2.0**-10})
"""Half of what rounding to a type changes at most."""


class Form(Protocol):
    """The errors of an approximate form: relative, absolute, and in parts of what its result lacks to one."""

    @property
    def relative(self) -> float: ...

    @property
    def absolute(self) -> float: ...

    @property
    def beside_one(self) -> float: ...


class Tolerances:
    """Errors that do no harm, of the values of one function; each is found once."""

    def __init__(
        self,
        reads: Callable[[SSAValue], Iterable[tuple[Operation, DType]]],
        forms: Mapping[str, Form] = APPROXIMATE_FORMS,
        units: Mapping[DType, float] = UNITS,
    ) -> None:
        self.units = units
        self._reads = reads
        self._forms = forms
        self._found: dict[tuple[_Measure, SSAValue], float] = {}

    def allows_approximation(self, op: tile.EwOp) -> bool:
        """Whether the approximate form of a function is exact enough for all uses of a result."""
        form = self._forms.get(op.fn.data)
        if form is None or tile_dtype(op.result) is not f32:
            return False
        measures = (form.relative, _relative), (form.absolute, _absolute), (form.beside_one, _beside_one)
        return any(error <= self.least(measure, op.result) < inf for error, measure in measures)

    def relative(self, value: SSAValue) -> float:
        """The error in parts of a value that does no harm."""
        return self.least(_relative, value)

    def absolute(self, value: SSAValue) -> float:
        """The error of a value that does no harm."""
        return self.least(_absolute, value)

    def least(self, measure: _Measure, value: SSAValue) -> float:
        """The error that all uses of a value allow, by one measure; where they meet again, their errors add up."""
        key = measure, value
        if key not in self._found:
            allowed = [measure(self, user) for user, _ in self._reads(value)]
            several = max(1, sum(error < inf for error in allowed))
            self._found[key] = min(allowed, default=0.0) / several
        return self._found[key]


_Measure: TypeAlias = Callable[[Tolerances, Operation], float]


def _relative(known: Tolerances, user: Operation) -> float:
    """The error in parts of a value that does no harm in a use of it; infinite where it is summed up and no more."""
    match user:
        case tile.EwOp() if user.fn.data == "cast":
            return known.units.get(tile_dtype(user.result), 0.0)
        case tile.EwOp() if user.fn.data in ("mul", "div", "select"):
            return known.least(_relative, user.result)
        case tile.ReduceOp() if user.kind.data == "sum":
            return inf
        case _:
            return 0.0


def _absolute(known: Tolerances, user: Operation) -> float:
    """The error of a value that does no harm in a use of it; infinite where only its maximum is wanted."""
    match user:
        case tile.EwOp() if user.fn.data in ("exp", "exp2"):
            return known.least(_relative, user.result)
        case tile.EwOp() if user.fn.data in ("add", "sub", "select"):
            return known.least(_absolute, user.result)
        case tile.EwOp() if user.fn.data == "mul":
            factors = [size for size in map(_size, user.operands_) if size]
            return known.least(_absolute, user.result) / factors[0] if factors else 0.0
        case tile.ReduceOp() if user.kind.data in ("max", "top", "min"):
            return inf
        case _:
            return 0.0


def _beside_one(known: Tolerances, user: Operation) -> float:
    """The error in parts of 1 − |value| that does no harm: one is added to the value, or it is taken from one."""
    added = isinstance(user, tile.EwOp) and user.fn.data in ("add", "sub")
    beside = added and any(_size(operand) == 1 for operand in user.operands)
    return known.least(_relative, user.results[0]) if beside else 0.0


def _size(value: SSAValue) -> float | None:
    number = constant_of(value)
    return None if number is None else abs(number)
