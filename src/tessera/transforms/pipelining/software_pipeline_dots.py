"""`software-pipeline-dots`: of two dependent dots in a loop, the first runs one iteration ahead of the second.

Such a loop has two stages. The first multiplies, and makes operands of the result; the second multiplies those and adds
to accumulators that the loop carries. Where the first stage never reads the accumulators, it can be an iteration ahead:
while the tensor cores work on the dots of two iterations, there is time for the vector work in between. Work on the
accumulators in front of a dot, such as rescaling each row, moves to the end of the iteration before. Results stay the
same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.lazy_rescale import used_by
from tessera.transforms.core.folding import literal
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.facts.value_bounds import written

_index = IndexType()
_ANY_ORDER = "tile.unordered"
_Values = dict[SSAValue, SSAValue]


def pipeline_dots(function: tile.FuncOp) -> bool:
    """Pipelines every loop that has two stages of dots; says whether there was one."""
    changing = written(function)
    loops = [op for op in function.body.walk() if isinstance(op, scf.ForOp) and isinstance(op.lb.type, IndexType)]
    found = False
    # Inner loops first: those around them are written several times.
    for loop in reversed(loops):
        stages = _Body(loop, frozenset(function.arguments), changing).stages()
        if stages is not None and _has_first_iteration(loop) is not False:
            _Pipelined(loop, stages).write()
            found = True
    return found


SoftwarePipelineDots = function_pass("software-pipeline-dots", pipeline_dots)


# Which op belongs to which stage


@dataclass(frozen=True)
class _Stages:
    """The ops of an iteration, by stages; each tuple is in order."""

    early: tuple[Operation, ...]
    """The first dots, behind all that they need."""
    rest: tuple[Operation, ...]
    """The other ops of the first stage."""
    prefix: tuple[Operation, ...]
    """Work on the accumulators in front of the second dots."""
    late: tuple[Operation, ...]
    """The second dots, the loads for them, and the ops that use their results."""
    accumulators: tuple[int, ...]
    """The indices of the carried values that belong to the second stage."""
    kept: tuple[int, ...]
    """The indices of the others."""
    handed: tuple[SSAValue, ...]
    """Values that the second stage of an iteration gets from the first and from the prefix."""


class _Body:
    """The body of a loop, with the values that each value in it depends on."""

    def __init__(self, loop: scf.ForOp, arguments: AbstractSet[SSAValue], changing: AbstractSet[SSAValue]) -> None:
        block = loop.body.block
        assert block.last_op is not None
        self.counter, self.carried = block.args[0], tuple(block.args[1:])
        self.yielded = tuple(block.last_op.operands)
        self.ops = tuple(op for op in block.ops if op is not block.last_op)
        self.quiet = {op for op in self.ops if _is_quiet(op, arguments, changing)}
        self._sources: dict[SSAValue, set[SSAValue]] = {argument: {argument} for argument in block.args}
        for op in self.ops:
            self._sources.update({result: {result, *self.below(op)} for result in op.results})

    def sources(self, value: SSAValue) -> AbstractSet[SSAValue]:
        """A value and all the values of the body that it depends on; none for one that is made outside."""
        return self._sources.get(value, frozenset())

    def below(self, op: Operation) -> set[SSAValue]:
        """The values of the body that an op depends on."""
        return {source for value in used_by(op) for source in self.sources(value)}

    def needed(self, values: Iterable[SSAValue]) -> set[Operation]:
        """The ops of the body that values depend on."""
        found = {source.owner for value in values for source in self.sources(value)}
        return {op for op in self.ops if op in found}

    def stages(self) -> _Stages | None:
        """How an iteration divides into two stages; None where it does not."""
        first, second = self._dots()
        accumulators = self._accumulators(second)
        mine = {self.carried[index] for index in accumulators}
        if not first or any(mine & self._operands(dot) for dot in second):
            return None
        latter = {op for op in self.ops if mine & self.below(op)}
        results = {dot.result for dot in second}
        late = {op for op in latter if op in second or results & self.below(op)}
        remade, handed = self._inputs(late, accumulators)
        prefix = latter - late
        kept = [index for index in range(len(self.carried)) if index not in accumulators]
        wanted = [*handed, *(self.yielded[index] for index in kept), *(value for op in prefix for value in used_by(op))]
        loud = {op for op in self.ops if op not in self.quiet}
        former = (self.needed([*wanted, *(value for op in loud for value in used_by(op))]) | loud) - latter
        early = self.needed(dot.result for dot in first)
        # Ops that are not quiet stay in order.
        if not early | latter <= self.quiet:
            return None
        return _Stages(
            (*self._ordered(early - set(first)), *first),
            self._ordered(former - early),
            self._ordered(prefix),
            (*self._ordered(remade), *self._ordered(late)),
            accumulators,
            tuple(kept),
            handed,
        )

    def _dots(self) -> tuple[Sequence[tile.DotOp], Sequence[tile.DotOp]]:
        """The first dots, which need no carried value and no other dot; and those that accumulate their results."""
        dots = [op for op in self.ops if isinstance(op, tile.DotOp)]
        fresh = {dot.result for dot in dots if not self.sources(dot.c) & set(self.carried)}
        second = [dot for dot in dots if self._accumulates(dot) and fresh & self._operands(dot)]
        fed = {source for dot in second for source in self._operands(dot)}
        results = {dot.result for dot in dots}
        first: list[tile.DotOp] = []
        for dot in dots:
            waits = results & (self._operands(dot) if dot.c.owner in first else self.below(dot))
            if dot.result in fresh & fed and not waits:
                first.append(dot)
        return first, second

    def _operands(self, dot: tile.DotOp) -> AbstractSet[SSAValue]:
        """The values that the operands of a dot depend on."""
        return self.sources(dot.a) | self.sources(dot.b)

    def _accumulates(self, dot: tile.DotOp) -> bool:
        """Whether a dot adds to a value that the loop carries through it."""
        return any(self._goes_through(dot, index) for index in range(len(self.carried)))

    def _goes_through(self, dot: tile.DotOp, index: int) -> bool:
        return self.carried[index] in self.sources(dot.c) and dot.result in self.sources(self.yielded[index])

    def _accumulators(self, second: Sequence[tile.DotOp]) -> tuple[int, ...]:
        """The indices of values carried through dots, and of all that depend on them, also in later iterations."""
        indices = range(len(self.carried))
        found = {index for index in indices if any(self._goes_through(dot, index) for dot in second)}
        while True:
            mine = {self.carried[index] for index in found}
            more = {index for index in indices if mine & self.sources(self.yielded[index])}
            if more <= found:
                return tuple(sorted(found))
            found |= more

    def _inputs(self, late: set[Operation], accumulators: Sequence[int]) -> tuple[set[Operation], tuple[SSAValue, ...]]:
        """The inputs of late ops: ops that recompute them from the counter, and values that have to be carried."""
        known: set[SSAValue] = {self.counter}
        for op in self.ops:
            multiplies = any(isinstance(inner, tile.DotOp) for inner in op.walk())
            if op in self.quiet and not multiplies and all(self._is_known(value, known) for value in used_by(op)):
                known |= set(op.results)
        results = {result for op in late for result in op.results}
        inputs = [value for op in self._ordered(late) for value in used_by(op)]
        inputs += (self.yielded[index] for index in accumulators)
        asked = [value for value in dict.fromkeys(inputs) if value not in results and self.sources(value)]
        anew = self.needed(value for value in asked if value in known)
        return anew, tuple(value for value in asked if value not in known)

    def _is_known(self, value: SSAValue, known: AbstractSet[SSAValue]) -> bool:
        return value in known or not self.sources(value)

    def _ordered(self, ops: AbstractSet[Operation]) -> tuple[Operation, ...]:
        return tuple(op for op in self.ops if op in ops)


def _is_quiet(op: Operation, arguments: AbstractSet[SSAValue], changing: AbstractSet[SSAValue]) -> bool:
    """Whether an op may move past others: its only effect is to read memory that is not written."""
    effects = get_effects(op)
    if effects is None or any(effect.kind != MemoryEffectKind.READ for effect in effects):
        return False
    # A view that a loop carries may be of any argument.
    return not changing or all(effect.value in arguments - changing for effect in effects)


# Writing the pipelined loop


def _has_first_iteration(loop: scf.ForOp) -> bool | None:
    """Whether a loop runs at all, where constants say it."""
    start, stop = literal(loop.lb), literal(loop.ub)
    return None if start is None or stop is None else start < stop


class _Pipelined:
    """Writes the first stage of the first iteration, a loop over the others, and the second stage of the last one."""

    def __init__(self, loop: scf.ForOp, stages: _Stages) -> None:
        self.loop, self.stages = loop, stages
        self.counter, self.carried = loop.body.block.args[0], loop.body.block.args[1:]
        end = loop.body.block.last_op
        assert end is not None
        self.yielded = end.operands

    def write(self) -> None:
        loop, ops = self.loop, list[Operation]()
        results: Sequence[SSAValue] = self._iterations(ops)
        if not _has_first_iteration(loop):
            condition = arith.CmpiOp(loop.lb, loop.ub, "slt")
            some, none = Block([*ops, scf.YieldOp(*results)]), Block([scf.YieldOp(*loop.iter_args)])
            branch = scf.IfOp(condition.result, [value.type for value in results], Region(some), Region(none))
            ops, results = [condition, branch], branch.results
        insert_before(loop, ops)
        replace(loop, [], results)

    def _iterations(self, ops: list[Operation]) -> list[SSAValue]:
        """Writes all iterations; returns the values of the loop's results."""
        loop, stages = self.loop, self.stages
        iteration: _Values = {self.counter: loop.lb, **dict(zip(self.carried, loop.iter_args, strict=True))}
        ops += _copied((*stages.early, *stages.rest, *stages.prefix), iteration)
        following = arith.AddiOp(loop.lb, loop.step)
        others = scf.ForOp(following.result, loop.ub, loop.step, self._passed_on(iteration), Region(self._body()))
        # Iterations depend on the ones before now, even if they did not.
        others.attributes.update({name: held for name, held in loop.attributes.items() if name != _ANY_ORDER})
        for made, old in zip(others.results, (*(loop.results[at] for at in stages.kept), *stages.handed), strict=True):
            made.name_hint = old.name_hint
        ops += [following, others]
        iteration = self._inputs_before(others.results)
        ops += self._last_counter(iteration)
        ops += _copied(stages.late, iteration)
        results = {index: others.results[at] for at, index in enumerate(stages.kept)}
        results |= {index: iteration[self.yielded[index]] for index in stages.accumulators}
        return [results[index] for index in range(len(self.carried))]

    def _body(self) -> Block:
        """An iteration: its first dots, the second dots of the iteration before, and the ops between them."""
        loop, stages = self.loop, self.stages
        given = [self.carried[index] for index in stages.kept]
        block = Block(arg_types=[_index, *(value.type for value in (*given, *stages.handed))])
        for made, old in zip(block.args, (self.counter, *given, *stages.handed), strict=True):
            made.name_hint = old.name_hint
        iteration: _Values = {self.counter: block.args[0], **dict(zip(given, block.args[1:], strict=False))}
        before = self._inputs_before(block.args[1:])
        ops = _copied(stages.early, iteration)
        if self._counts(stages.late):
            previous = arith.SubiOp(block.args[0], loop.step)
            before[self.counter] = previous.result
            ops.append(previous)
        ops += _copied(stages.late, before)
        iteration |= {self.carried[index]: before[self.yielded[index]] for index in stages.accumulators}
        ops += _copied((*stages.rest, *stages.prefix), iteration)
        block.add_ops([*ops, scf.YieldOp(*self._passed_on(iteration))])
        return block

    def _passed_on(self, iteration: _Values) -> list[SSAValue]:
        """The values for the next iteration: those that the first stage carries, and the inputs of the second stage."""
        values = (*(self.yielded[index] for index in self.stages.kept), *self.stages.handed)
        return [iteration.get(value, value) for value in values]

    def _inputs_before(self, given: Sequence[SSAValue]) -> _Values:
        """The inputs of the second stage of the iteration before."""
        return dict(zip(self.stages.handed, given[len(self.stages.kept) :], strict=True))

    def _last_counter(self, iteration: _Values) -> list[Operation]:
        """Ops that compute the counter of the last iteration, if late ops use it."""
        if not self._counts(self.stages.late):
            return []
        loop = self.loop
        length = arith.SubiOp(loop.ub, loop.lb)
        iterations = arith.CeilDivSIOp(length.result, loop.step)
        one = arith.ConstantOp(IntegerAttr(1, _index))
        behind = arith.SubiOp(iterations.result, one.result)
        distance = arith.MuliOp(behind.result, loop.step)
        last = arith.AddiOp(loop.lb, distance.result)
        iteration[self.counter] = last.result
        return [length, iterations, one, behind, distance, last]

    def _counts(self, ops: Sequence[Operation]) -> bool:
        return any(value is self.counter for op in ops for value in used_by(op))


def _copied(ops: Iterable[Operation], values: _Values) -> list[Operation]:
    """Clones of ops with operands mapped by `values`, to which their results are added."""
    return [op.clone(values) for op in ops]
