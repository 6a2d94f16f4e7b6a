"""Exponentials by powers of two: e^x = 2^(x · log2 e), with the factor folded into what x is made of.

Machines have an instruction for powers of two. In x = s · c − m, with m the same along a row, the factor goes into the
constant c and into m, and nothing is left to multiply for each element. Sigmoids are 1 / (1 + e^−x).

The factor is above 1: where s · c and m may be among the largest numbers there are, such as those that stand for −∞ in
masks, only their difference is multiplied. This supposes that products of data are not that large.
"""

from __future__ import annotations

from math import isfinite, isinf, log2

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.factoring import remove_unused
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.algebra.ratios import factor_of
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps

LOG2_E = log2(2.718281828459045235360287)
_FAR = 30.0
"""1 + 2^−30 is 1, and four numbers up to 1 + 2^30 have a product that f32 holds."""
_LARGEST = f32.max_value / LOG2_E
"""Ops whose operands may be multiplied by log2 e."""


def use_powers_of_two(function: tile.FuncOp, mark: str, loose: str = "", together: str = "") -> None:
    """Rewrites the exponentials that carry a mark: those that need not be exact to the last bits.

    Reciprocals in sigmoids that are marked to be computed `together` are of numbers from 1 to 2^31, and get that mark.
    """
    for op in list(function.body.walk()):
        if not isinstance(op, tile.EwOp) or mark not in op.attributes or tile_dtype(op.result) is not f32:
            continue
        if op.fn.data == "exp":
            made = tile.EwOp("exp2", [_Scaler(op, LOG2_E).scaled(op.operands_[0])])
            made.attributes.update(op.attributes)
            replace(op, [made])
        elif op.fn.data == "sigmoid" and op.policy is None:
            _Sigmoid(op).write(loose, together)
    remove_unused(function)


class _Sigmoid(TileOps):
    """The ops that are written for a sigmoid."""

    def __init__(self, op: tile.EwOp) -> None:
        super().__init__()
        self.op = op

    def write(self, loose: str, together: str) -> None:
        op = self.op
        if together not in op.attributes:
            self._inverse(self._power(-1.0))
        elif loose in op.attributes:
            self._inverse(self._power(-1.0, _FAR))
        else:
            # The power in front makes nothing of what is far below 0.
            power = self._power(1.0, _FAR)
            self.ew("mul", power, self._inverse(power))
        replace(op, self.ops)

    def _marked(self, op: tile.EwOp) -> SSAValue:
        op.attributes.update(self.op.attributes)
        return self.add(op)

    def _power(self, sign: float, most: float | None = None) -> SSAValue:
        """e^x or e^−x, 2^most at most."""
        scaler = _Scaler(self.op, sign * LOG2_E)
        raised = scaler.scaled(self.op.operands_[0])
        if most is not None:
            raised = self.ew("min", raised, scaler.filled(most, raised))
        return self._marked(tile.EwOp("exp2", [raised]))

    def _inverse(self, power: SSAValue) -> SSAValue:
        """1 / (1 + a power)."""
        more = self.ew("add", power, TileOps(self.op).filled(1.0, power))
        return self._marked(tile.EwOp("reciprocal", [more]))


class _Scaler(TileOps):
    """Writes values times a number in front of an op."""

    def __init__(self, before: Operation, factor: float) -> None:
        super().__init__(before)
        self.factor = factor
        self.known: dict[SSAValue, SSAValue] = {}

    def scaled(self, value: SSAValue) -> SSAValue:
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: SSAValue) -> SSAValue:
        number = constant_of(value)
        if number is not None:
            return self.filled(number * self.factor, value)
        op = value.owner
        # Values that others use, too, are there anyway: only what is cheap to write again is taken apart.
        match op:
            case tile.EwOp() if op.fn.data == "sub" and not any(_may_be_huge(part, set()) for part in op.operands_):
                return self.ew("sub", *(self.scaled(operand) for operand in op.operands_))
            case tile.EwOp() if op.fn.data == "add" and op.policy is None and _scales_well(op):
                return self.ew("add", *(self.scaled(operand) for operand in op.operands_))
            case tile.EwOp() if (found := self._factored(value)) is not None:
                return self.ew("mul", found[0], self.filled(found[1] * self.factor, value))
            case tile.BroadcastOp():
                return self.add(tile.BroadcastOp(self.scaled(op.operand), tile_type(value).get_shape()))
            case tile.ExpandOp():
                return self.add(tile.ExpandOp(self.scaled(op.operand), op.axis.value.data))
            case _:
                pass
        return self.ew("mul", value, self.filled(self.factor, value))

    def _factored(self, value: SSAValue) -> tuple[SSAValue, float] | None:
        """A value as something times a positive number; masks that choose infinities stand in front of it as well."""
        op = value.owner
        if not isinstance(op, tile.EwOp) or op.policy is not None:
            return None
        if (multiple := factor_of(value)) is not None:
            return multiple
        if op.fn.data == "select":
            mask, chosen, otherwise = op.operands_
            found = self._factored(chosen) if isinf(constant_of(otherwise) or 0.0) else None
            if found is not None:
                return self.ew("select", mask, found[0], otherwise), found[1]
        return None


def _scales_well(op: tile.EwOp) -> bool:
    """Whether nothing more is multiplied if both parts of a sum are: a multiple, and what is the same for many."""
    for small, other in (op.operands_, op.operands_[::-1]):
        same, multiple = isinstance(small.owner, tile.BroadcastOp | tile.FullOp), other.owner
        if same and isinstance(multiple, tile.EwOp) and multiple.fn.data == "mul":
            return not _may_be_huge(other, set())
    return False


_KEEPS_SIZE = ("add", "sub", "max", "min", "neg", "abs", "select", "cast")


def _may_be_huge(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Whether a value may be a number that log2 e times is not one any more."""
    dtype = tile_dtype(value)
    if value in seen or not dtype.is_float or dtype.max_value <= _LARGEST:
        return False
    seen.add(value)
    number = constant_of(value)
    if number is not None:
        return isfinite(number) and abs(number) > _LARGEST
    op = value.owner
    match op:
        case tile.LoadOp() | tile.FullOp():
            return True
        case tile.EwOp() if op.fn.data == "mul":
            numbers = [constant_of(operand) for operand in op.operands_]
            if all(number is None for number in numbers):
                return False
            least = max(abs(number) for number in numbers if number is not None)
            parts = [operand for operand, number in zip(op.operands_, numbers, strict=True) if number is None]
            return least > _LARGEST or (least > 1 / LOG2_E and any(_may_be_huge(part, seen) for part in parts))
        case tile.EwOp():
            return op.fn.data in _KEEPS_SIZE and any(_may_be_huge(operand, seen) for operand in op.operands_)
        case tile.ReduceOp() | tile.ExpandOp() | tile.BroadcastOp() | tile.TransOp():
            return _may_be_huge(op.operand, seen)
        case _:
            return any(_may_be_huge(part, seen) for part in _carried(value))


def _carried(value: SSAValue) -> list[SSAValue]:
    """The values that a loop or a branch makes a value of."""
    owner = value.owner
    op = owner.parent_op() if isinstance(owner, Block) else owner
    if isinstance(op, scf.ForOp):
        index = op.body.block.args.index(value) - 1 if isinstance(owner, Block) else op.results.index(value)
        end = op.body.block.last_op
        assert end is not None
        return [op.iter_args[index], end.operands[index]]
    if isinstance(op, scf.IfOp):
        ends = [region.block.last_op for region in op.regions]
        return [end.operands[op.results.index(value)] for end in ends if end is not None]
    return []
