"""`lazy-rescale`: a running maximum may lag behind, so that sums are rescaled in few iterations only.

Loops that add up exponentials relative to the greatest number so far multiply their sums by a factor whenever that
number rises, and by 1 in all other iterations. A maximum that is too low by a little does as well: weights are up to
2^slack then instead of 1, and the sums in f32 have room for that. `rescale_invariance` proves that nothing else
changes.

Each row decides for itself: it rises where the maximum of this iteration is above its `limit`, which is the last
maximum it rose to and the slack. If any row does (`tile.any`), a branch makes the new maxima, and in it rows that do
not rise keep what they have, to the bit. So a kernel for some of the rows only gets the same results: the mark
`tile.by_rows` says that this may be done.

Where weights have the exponents of f32 (bf16 has), a row that rises goes further than it has to, by the lead: weights
are around 2^−lead then, which costs nothing, and maxima that rise in every iteration do so in few steps.

In the other iterations nothing is left but the reduction and the comparison. The maximum of an iteration has no other
use outside of the branch: a machine may compare the parts of a row where they are, and finish the reduction in the
branch. The limit is carried in the units of what is reduced, and so is whatever the exponentials need of the maximum.
Sums get a branch of their own, because a machine may still be adding to them when the rows are known.

This comes behind `clip-ranges`, which no longer sees that a masked iteration changes nothing once it has a branch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from tessera.dtypes.casting import cast
from tessera.dtypes.types import f32, f64
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.ratios import is_near
from tessera.transforms.algebra.rescale_invariance import UNITS, freedom_of
from tessera.transforms.algebra.running_max import ONE, CarriedMax, RunningMaximum, Same, Unraised, running_maxima
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import TileOps

_Values = dict[SSAValue, SSAValue]
BY_ROWS = "tile.by_rows"
"""Marks questions that may be asked for some rows at a time: whatever the others say, these come out the same."""


@dataclass(frozen=True)
class LazyRescale(ModulePass):
    """The pass, for every tile function; weights grow up to 2^slack, and begin at 2^−lead where they may."""

    name = "lazy-rescale"
    slack: float = 8.0
    lead: float = 64.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            rescale_lazily(function, self.slack, self.lead)


def rescale_lazily(function: tile.FuncOp, slack: float = 8.0, lead: float = 64.0) -> int:
    """Lets the running maxima of a function lag behind where nothing that is stored changes; says how many."""
    count = 0
    while (writer := _next(function, slack, lead)) is not None:
        writer.write()
        count += 1
    return count


def _next(function: tile.FuncOp, slack: float, lead: float) -> _Writer | None:
    """The first running maximum that may lag behind, and does not yet."""
    for loop in function.body.walk():
        if not isinstance(loop, scf.ForOp):
            continue
        for top in running_maxima(loop):
            freedom = freedom_of(top, slack)
            if freedom is not None and (iteration := _Iteration(top, freedom.unraised)).divide():
                unit = math.log(2) / freedom.growth
                return _Writer(iteration, slack * unit, lead * unit if freedom.reaches_down else 0.0)
    return None


# Which op belongs where


class _Iteration:
    """An iteration of a loop, divided into ops that are only needed where a maximum rises, and the others."""

    def __init__(self, top: RunningMaximum, unraised: Unraised) -> None:
        self.top = top
        self.unraised = unraised
        end = top.block.last_op
        assert end is not None
        self.end = end
        self.ops = tuple(op for op in top.block.ops if op is not end)
        self.inside = {value for op in self.ops for value in op.results} | set(top.block.args)
        self.steady: set[SSAValue] = set()
        """Values that are the same in all iterations."""
        self.rare: set[Operation] = set()
        """Ops that are not needed where the maximum stays."""
        self.late: set[SSAValue] = set()
        """Values that depend on the new maximum in any way."""
        self.followers: set[SSAValue] = set()
        """Values that depend on the new maximum alone."""
        self.rows: list[SSAValue] = []
        """Results of rare ops that others need, in the shape of the maximum."""
        self.wide: list[SSAValue] = []
        """Results of rare ops that others need, in other shapes."""
        self.again: set[Operation] = set()
        """Rare ops that are done in every iteration all the same: they repeat rows."""
        self._sort()

    def _sort(self) -> None:
        for op in self.ops:
            used, results = self.inside & set(used_by(op)), set(op.results)
            plain = is_side_effect_free(op) and not op.regions and len(results) == 1
            if op is self.top.update or results & self.unraised.stays.keys():
                self.rare.add(op)
                self.late |= results
                self.followers |= results if op is self.top.update else set()
            elif not used & self.late:
                self.steady |= results if plain and used <= self.steady else set()
            else:
                follows = plain and used <= self.steady | self.followers
                possible = plain and all(value.owner in self.rare for value in used & self.late)
                if follows or (possible and self.unraised.of(op.results[0]) is not None):
                    self.rare.add(op)
                self.late |= results
                self.followers |= results if follows else set()

    def divide(self) -> bool:
        """Finds the results of rare ops that others need; False where an iteration cannot be divided so."""
        asked = [value for op in self.ops if op not in self.rare for value in used_by(op)]
        asked += (value for index, value in enumerate(self.end.operands) if index != self.top.index)
        if not all(self._ask(value) for value in asked) or not all(self.is_row(op.result) for op in self.factors()):
            return False
        # Ops that wait for the branch must not swap order with effects.
        return all(is_side_effect_free(op) for op in self.waiting())

    def is_row(self, value: SSAValue) -> bool:
        return value.type == self.top.updated.type

    def factors(self) -> list[tile.EwOp]:
        """The exponentials that older sums are multiplied by."""
        ops = [op for op in self.ops if op in self.rare and isinstance(op, tile.EwOp)]
        return [op for op in ops if op.fn.data in UNITS and self.unraised.of(op.result) is ONE]

    def _ask(self, value: SSAValue) -> bool:
        op, unraised = value.owner, self.unraised.of(value)
        if op not in self.rare or value in self.rows or value in self.wide:
            return True
        if isinstance(unraised, Same) and unraised.value not in self.late:
            if not self.is_row(value):
                self.wide.append(value)
                return all(self._ask(row) for row in self._rows_below(value))
        elif value not in self.followers and unraised is not ONE:
            return False
        elif not self.is_row(value):
            assert isinstance(op, Operation)
            self.again.add(op)
            return all(self._ask(operand) for operand in op.operands)
        self.rows.append(value)
        return True

    def _rows_below(self, value: SSAValue) -> Iterator[SSAValue]:
        """The rare rows that a value is made of, through rare ops in other shapes."""
        assert isinstance(value.owner, Operation)
        for operand in value.owner.operands:
            if self.is_row(operand):
                yield operand
            elif operand.owner in self.rare:
                yield from self._rows_below(operand)

    def ready(self) -> Operation:
        """The op behind which all that rare rows are made of is there."""
        rows = [op for op in self.rare if self.is_row(op.results[0])]
        needed = {value.owner for op in rows for value in op.operands if value not in self.late | self.steady}
        needed -= set(self.top.chain)
        return [op for op in self.ops if op in needed or op is self.top.reduced][-1]

    def waiting(self) -> list[Operation]:
        """The ops in front of that which need rare rows."""
        early = self.ops[: self.ops.index(self.ready()) + 1]
        return [op for op in early if set(op.results) & self.late and (op not in self.rare or op in self.again)]

    def measure(self) -> tuple[SSAValue, float] | None:
        """A row that is so many times the maximum and tells all that the factors need: the maximum need not be kept."""
        top, unraised = self.top, self.unraised
        if top.start != -math.inf or top.updated in self.rows or any(top.loop.results[top.index].uses):
            return None
        factors = set(self.factors())
        for use in top.carried.uses:
            op = use.operation
            if op not in self.rare:
                return None
            if op is top.update or set(op.results) & unraised.stays.keys():
                continue
            falls = isinstance(op, tile.EwOp) and op.fn.data == "sub" and use.index == 0
            level = unraised.of(op.operands[1]) if falls else None
            exact = isinstance(level, CarriedMax) and is_near(level.factor, 1.0) and op.operands[1] in self.followers
            if not exact or not all(inner.operation in factors for inner in op.results[0].uses):
                return None
        for value in self.rows:
            level = unraised.of(value)
            if (
                value in self.followers
                and value is not top.updated
                and isinstance(level, CarriedMax)
                and level.factor > 0
            ):
                return value, level.factor
        return None


def used_by(op: Operation) -> Iterator[SSAValue]:
    """The values that an op takes, in its regions too."""
    return (value for inner in op.walk() for value in inner.operands)


# How it is written


class _Ops(TileOps):
    """Ops on rows; of tiles of one number there is one for each number."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[float, SSAValue] = {}

    def filled(self, number: float, like: SSAValue) -> SSAValue:
        if number not in self._numbers:
            rounded = float(cast(np.asarray(number, np.float64), f64, f32))
            self._numbers[number] = super().filled(rounded, like)
        return self._numbers[number]


class _Writer:
    """Writes one loop anew."""

    def __init__(self, iteration: _Iteration, slack: float, lead: float) -> None:
        self.iteration, self.top, self.unraised = iteration, iteration.top, iteration.unraised
        self.before = _Ops()
        """The ops that are inserted in front of the loop."""
        self.starts: list[SSAValue] = []
        """The values carried from there on, beside the old ones."""
        self.measure = iteration.measure()
        self.lead = lead if self.measure is not None else 0.0
        """How far a maximum goes beyond what it is, in its own units. One that is kept for others does not."""
        self.slack = slack + self.lead
        """How far numbers may be above what it was, in the same units."""
        self.asked = [value for value in iteration.rows if value is not self.top.updated]
        if self.measure is None:
            self.asked.append(self.top.updated)

    def write(self) -> None:
        top, iteration = self.top, self.iteration
        self.limit = self._carry(self._full((top.start + self.slack) / top.scale))
        self.limit.name_hint = "limit"
        self.copies: _Values = {top.updated: top.loop.iter_args[top.index]}
        followers = [value for value in self.asked if value in iteration.followers and value is not top.updated]
        self.held: _Values = {value: self._carry(self._copied(value)) for value in followers}
        self.held[top.updated] = top.carried
        test, branch = self._test(), _Ops()
        # The branch comes first: what stands in front of the loop is complete then.
        new = self._risen(branch)
        old = [*map(self._stayed, self.asked), self.limit]
        made = _branch(self.truth, branch, new, old)
        self._insert([*test.ops, made], InsertPoint.after(iteration.ready()))
        made.results[-1].name_hint = self.limit.name_hint
        results = dict(zip(self.asked, made.results, strict=False))
        self._move_behind(made)
        for value in iteration.wide:
            self._write_wide(value, dict(results))
        for value, result in results.items():
            result.name_hint = value.name_hint
            value.replace_all_uses_with(result)
        self._insert(self.before.ops, InsertPoint.before(top.loop))
        self._replace_loop([made.results[-1], *(results[value] for value in followers)])

    def _insert(self, ops: Sequence[Operation], point: InsertPoint) -> None:
        adopt_location(ops, self.top.update)
        Rewriter.insert_op(ops, point)

    def _full(self, number: float) -> SSAValue:
        return self.before.filled(number, self.top.updated)

    def _carry(self, start: SSAValue) -> SSAValue:
        block = self.top.block
        self.starts.append(start)
        return block.insert_arg(start.type, len(block.args))

    def _copied(self, value: SSAValue) -> SSAValue:
        """A follower as it is when the loop begins, or a value that is the same in all iterations."""
        op = value.owner
        if value not in self.copies and value in self.iteration.inside:
            assert isinstance(op, Operation)
            for operand in op.operands:
                self._copied(operand)
            self.before.add(op.clone(self.copies))
        return self.copies.get(value, value)

    def _test(self) -> _Ops:
        """Which rows rise, and whether any does: compared in the units of what is reduced."""
        top, test = self.top, _Ops()
        self.reached: SSAValue = top.reduced.result
        for op in top.chain:
            if isinstance(op, tile.ExpandOp | tile.BroadcastOp):
                self.reached = test.add(op.clone({op.operand: self.reached}))
        if top.reduced.kind.data == "top":
            # Where a NaN is missed, the result has it from elsewhere.
            self.rises = test.ew("gt", self.reached, self.limit)
        else:
            self.rises = test.ew("not", test.ew("le", self.reached, self.limit))
        self.rises.name_hint = "rises"
        asked = tile.AnyOp(self.rises)
        asked.attributes[BY_ROWS] = UnitAttr()
        self.truth = test.add(asked)
        return test

    def _risen(self, branch: _Ops) -> list[SSAValue]:
        """The values of rows that rise; those that do not rise keep what they have."""
        values: _Values = {}
        made = [self._made(value, branch, values) for value in self.asked]
        for index, value in enumerate(self.asked):
            if value in self.held:
                made[index] = branch.ew("select", self.rises, made[index], self.held[value])
        # Added to what is reduced, and not to its multiple: no row falls, however this is rounded.
        limit = branch.ew("add", self.reached, self._full(self.slack / self.top.scale))
        if self.top.chain:
            # A multiple may be −∞ of what is a number: nothing has been seen then.
            candidate = self._made(self.top.candidate, branch, values)
            nothing = branch.ew("eq", candidate, self._full(-math.inf))
            limit = branch.ew("select", nothing, self._full(-math.inf), limit)
        return [*made, branch.ew("select", self.rises, limit, self.limit)]

    def _stayed(self, value: SSAValue) -> SSAValue:
        unraised = self.unraised.of(value)
        if value in self.held:
            return self.held[value]
        return unraised.value if isinstance(unraised, Same) else self._full(1.0)

    def _made(self, value: SSAValue, branch: _Ops, values: _Values) -> SSAValue:
        """A value as it is where the maximum rises, made in a branch."""
        op = value.owner
        if value in self.iteration.steady:
            values[value] = self._copied(value)
        if value in values or (op not in self.iteration.rare and op not in self.top.chain):
            return values.get(value, value)
        assert isinstance(op, Operation)
        rising = self.unraised.rising(op) if isinstance(op, tile.EwOp) else None
        if rising is not None:
            values[value] = self._made(rising, branch, values)
        elif op is self.top.update and self.measure is not None:
            # It rises from −∞, or from a number that is below the limit.
            values[value] = self._made(self.top.candidate, branch, values)
            if self.lead:
                values[value] = branch.ew("add", values[value], self._full(self.lead))
        elif isinstance(op, tile.EwOp) and op in self.iteration.factors():
            values[value] = branch.ew("select", self.rises, self._factor(op, branch, values), self._full(1.0))
        else:
            for operand in op.operands:
                self._made(operand, branch, values)
            branch.add(op.clone(values))
        return values[value]

    def _factor(self, op: tile.EwOp, branch: _Ops, values: _Values) -> SSAValue:
        """The factors that older sums are multiplied by."""
        if self.measure is None:
            self._made(op.operands_[0], branch, values)
            return branch.add(op.clone(values))
        # Weights are made with the measure: the factor is exactly right for them if it is, too.
        row, unit = self.measure
        fall = branch.ew("sub", self.held[row], self._made(row, branch, values))
        unit = UNITS[op.fn.data] / unit
        names = [name for name, natural in UNITS.items() if is_near(unit, natural)]
        if not names:
            fall = branch.ew("mul", fall, self._full(unit))
        factor = tile.EwOp(names[0] if names else "exp", [fall])
        factor.attributes |= op.attributes
        fresh = branch.ew("eq", self.limit, self._full(-math.inf))
        return branch.ew("select", fresh, self._full(0.0), branch.add(factor))

    def _move_behind(self, made: Operation) -> None:
        """Lets what needs the rows wait for them."""
        last = made
        for op in self.iteration.waiting():
            op.detach()
            Rewriter.insert_op(op, InsertPoint.after(last))
            last = op

    def _write_wide(self, value: SSAValue, values: _Values) -> None:
        """Sums are multiplied right before they are needed."""
        iteration, branch = self.iteration, _Ops()
        made = _branch(self.truth, branch, [self._made(value, branch, values)], [self._stayed(value)])
        users = (op for op in self.top.block.ops if op not in iteration.rare or op in iteration.again)
        first = next(op for op in users if value in used_by(op))
        self._insert([made], InsertPoint.before(first))
        made.results[0].name_hint = value.name_hint
        value.replace_all_uses_with(made.results[0])

    def _replace_loop(self, yielded: Sequence[SSAValue]) -> None:
        top, loop, end = self.top, self.top.loop, self.iteration.end
        keeps = [index for index in range(len(loop.iter_args)) if self.measure is None or index != top.index]
        end.operands = [*(end.operands[index] for index in keeps), *yielded]
        # Chains, factors and numbers of what is rare are not needed here any more.
        for op in reversed(list(top.block.ops)):
            if is_side_effect_free(op) and op is not end and not any(any(result.uses) for result in op.results):
                op.detach()
                op.erase()
        if self.measure is not None:
            top.block.erase_arg(top.block.args[1 + top.index])
        carried = [*(loop.iter_args[index] for index in keeps), *self.starts]
        made = scf.ForOp(loop.lb, loop.ub, loop.step, carried, loop.detach_region(loop.body))
        made.attributes |= loop.attributes
        self._insert([made], InsertPoint.before(loop))
        made.location = loop.location
        for index, new in zip(keeps, made.results, strict=False):
            new.name_hint = loop.results[index].name_hint
            loop.results[index].replace_all_uses_with(new)
        loop.detach()
        loop.erase()


def _branch(truth: SSAValue, branch: _Ops, new: Sequence[SSAValue], old: Sequence[SSAValue]) -> scf.IfOp:
    risen, stayed = Block([*branch.ops, scf.YieldOp(*new)]), Block([scf.YieldOp(*old)])
    return scf.IfOp(truth, [value.type for value in new], Region(risen), Region(stayed))
