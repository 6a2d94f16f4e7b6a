"""`software-pipeline-dots`: of two dependent dots in a loop, the first runs one iteration ahead of the second.

Such a loop has two stages. The first multiplies, and makes operands of the result; the second multiplies those and adds
to accumulators that the loop carries. Where the first stage never reads the accumulators, it can be an iteration ahead:
while the tensor cores work on the dots of two iterations, there is time for the vector work in between. Work on the
accumulators in front of a dot, such as rescaling each row, moves to the end of the iteration before. Results stay the
same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import MemoryEffectKind, get_effects

from tessera.ir.tile import dialect as tile
from tessera.transforms.core.folding import literal
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.facts.value_bounds import written

_index = IndexType()
_ANY_ORDER = "tile.unordered"
_Values = dict[SSAValue, SSAValue]


@dataclass(frozen=True)
class SoftwarePipelineDots(ModulePass):
    """The pass, for every loop of every tile function."""

    name = "software-pipeline-dots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            pipeline_dots(function)


def pipeline_dots(function: tile.FuncOp) -> bool:
    """Skews every loop that has two stages of products; says whether there was one."""
    changing = written(function)
    loops = [op for op in function.body.walk() if isinstance(op, scf.ForOp) and isinstance(op.lb.type, IndexType)]
    found = False
    # Inner loops first: those around them are written several times.
    for loop in reversed(loops):
        stages = _Body(loop, frozenset(function.arguments), changing).stages()
        if stages is not None and _has_first_turn(loop) is not False:
            _Skewed(loop, stages).write()
            found = True
    return found


# Which op belongs where


@dataclass(frozen=True)
class _Stages:
    """The ops of a turn, by the places they get; each tuple is in order."""

    early: tuple[Operation, ...]
    """The first products, behind all that they need."""
    rest: tuple[Operation, ...]
    """What else is done before the sums are."""
    prefix: tuple[Operation, ...]
    """Work on the sums in front of the second products."""
    late: tuple[Operation, ...]
    """The second products, what is loaded for them, and what comes of them."""
    sums: tuple[int, ...]
    """The places of the carried values that belong to the second stage."""
    kept: tuple[int, ...]
    """The places of the others."""
    handed: tuple[SSAValue, ...]
    """What the second stage of a turn is given by the first and by the prefix."""


class _Body:
    """The body of a loop, with all that each value in it is made of."""

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
        """A value and all the values of the body that it is made of; none for one that is made outside."""
        return self._sources.get(value, frozenset())

    def below(self, op: Operation) -> set[SSAValue]:
        """The values of the body that an op rests on."""
        return {source for value in _used(op) for source in self.sources(value)}

    def needed(self, values: Iterable[SSAValue]) -> set[Operation]:
        """The ops of the body that values are made by."""
        found = {source.owner for value in values for source in self.sources(value)}
        return {op for op in self.ops if op in found}

    def stages(self) -> _Stages | None:
        """How a turn divides into two stages; None where it does not."""
        first, second = self._products()
        sums = self._sums(second)
        mine = {self.carried[place] for place in sums}
        if not first or any(mine & self._operands(dot) for dot in second):
            return None
        latter = {op for op in self.ops if mine & self.below(op)}
        products = {dot.result for dot in second}
        late = {op for op in latter if op in second or products & self.below(op)}
        remade, handed = self._inputs(late, sums)
        prefix = latter - late
        kept = [place for place in range(len(self.carried)) if place not in sums]
        wanted = [*handed, *(self.yielded[place] for place in kept), *(value for op in prefix for value in _used(op))]
        loud = {op for op in self.ops if op not in self.quiet}
        former = (self.needed([*wanted, *(value for op in loud for value in _used(op))]) | loud) - latter
        early = self.needed(dot.result for dot in first)
        # What is not quiet stays in order.
        if not early | latter <= self.quiet:
            return None
        return _Stages(
            (*self._ordered(early - set(first)), *first),
            self._ordered(former - early),
            self._ordered(prefix),
            (*self._ordered(remade), *self._ordered(late)),
            sums,
            tuple(kept),
            handed,
        )

    def _products(self) -> tuple[Sequence[tile.DotOp], Sequence[tile.DotOp]]:
        """Those that begin with nothing carried and wait for no other; those that add to sums with their help."""
        dots = [op for op in self.ops if isinstance(op, tile.DotOp)]
        fresh = {dot.result for dot in dots if not self.sources(dot.c) & set(self.carried)}
        second = [dot for dot in dots if self._is_of_sums(dot) and fresh & self._operands(dot)]
        fed = {source for dot in second for source in self._operands(dot)}
        results = {dot.result for dot in dots}
        first: list[tile.DotOp] = []
        for dot in dots:
            waits = results & (self._operands(dot) if dot.c.owner in first else self.below(dot))
            if dot.result in fresh & fed and not waits:
                first.append(dot)
        return first, second

    def _operands(self, dot: tile.DotOp) -> AbstractSet[SSAValue]:
        """What a product's factors are made of."""
        return self.sources(dot.a) | self.sources(dot.b)

    def _is_of_sums(self, dot: tile.DotOp) -> bool:
        """Whether a product adds to a value that is carried from turn to turn through it."""
        return any(self._goes_through(dot, place) for place in range(len(self.carried)))

    def _goes_through(self, dot: tile.DotOp, place: int) -> bool:
        return self.carried[place] in self.sources(dot.c) and dot.result in self.sources(self.yielded[place])

    def _sums(self, second: Sequence[tile.DotOp]) -> tuple[int, ...]:
        """The places of what is carried through products, and of all that looks at it, in a later turn at last."""
        places = range(len(self.carried))
        found = {place for place in places if any(self._goes_through(dot, place) for dot in second)}
        while True:
            mine = {self.carried[place] for place in found}
            more = {place for place in places if mine & self.sources(self.yielded[place])}
            if more <= found:
                return tuple(sorted(found))
            found |= more

    def _inputs(self, late: set[Operation], sums: Sequence[int]) -> tuple[set[Operation], tuple[SSAValue, ...]]:
        """Of what late ops need, the ops that make it anew from the counter, and the values that have to be carried."""
        known: set[SSAValue] = {self.counter}
        for op in self.ops:
            multiplies = any(isinstance(inner, tile.DotOp) for inner in op.walk())
            if op in self.quiet and not multiplies and all(self._is_known(value, known) for value in _used(op)):
                known |= set(op.results)
        results = {result for op in late for result in op.results}
        inputs = [value for op in self._ordered(late) for value in _used(op)]
        inputs += (self.yielded[place] for place in sums)
        asked = [value for value in dict.fromkeys(inputs) if value not in results and self.sources(value)]
        anew = self.needed(value for value in asked if value in known)
        return anew, tuple(value for value in asked if value not in known)

    def _is_known(self, value: SSAValue, known: AbstractSet[SSAValue]) -> bool:
        return value in known or not self.sources(value)

    def _ordered(self, ops: AbstractSet[Operation]) -> tuple[Operation, ...]:
        return tuple(op for op in self.ops if op in ops)


def _used(op: Operation) -> Iterator[SSAValue]:
    """The values that an op takes, in its regions too."""
    return (value for inner in op.walk() for value in inner.operands)


def _is_quiet(op: Operation, arguments: AbstractSet[SSAValue], changing: AbstractSet[SSAValue]) -> bool:
    """Whether an op may move past others: all it does besides computing is to read what nobody writes."""
    effects = get_effects(op)
    if effects is None or any(effect.kind != MemoryEffectKind.READ for effect in effects):
        return False
    # A view that a loop carries may be of any argument.
    return not changing or all(effect.value in arguments - changing for effect in effects)


# How it is written


def _has_first_turn(loop: scf.ForOp) -> bool | None:
    """Whether a loop runs at all, where constants say it."""
    start, stop = literal(loop.lb), literal(loop.ub)
    return None if start is None or stop is None else start < stop


class _Skewed:
    """Writes the first stage of the first turn, a loop over the other turns, and the second stage of the last turn."""

    def __init__(self, loop: scf.ForOp, stages: _Stages) -> None:
        self.loop, self.stages = loop, stages
        self.counter, self.carried = loop.body.block.args[0], loop.body.block.args[1:]
        end = loop.body.block.last_op
        assert end is not None
        self.yielded = end.operands

    def write(self) -> None:
        loop, ops = self.loop, list[Operation]()
        results: Sequence[SSAValue] = self._turns(ops)
        if not _has_first_turn(loop):
            condition = arith.CmpiOp(loop.lb, loop.ub, "slt")
            some, none = Block([*ops, scf.YieldOp(*results)]), Block([scf.YieldOp(*loop.iter_args)])
            branch = scf.IfOp(condition.result, [value.type for value in results], Region(some), Region(none))
            ops, results = [condition, branch], branch.results
        insert_before(loop, ops)
        replace(loop, [], results)

    def _turns(self, ops: list[Operation]) -> list[SSAValue]:
        """All turns; gives what the loop gave."""
        loop, stages = self.loop, self.stages
        turn: _Values = {self.counter: loop.lb, **dict(zip(self.carried, loop.iter_args, strict=True))}
        ops += _copied((*stages.early, *stages.rest, *stages.prefix), turn)
        following = arith.AddiOp(loop.lb, loop.step)
        others = scf.ForOp(following.result, loop.ub, loop.step, self._passed_on(turn), Region(self._body()))
        # Turns depend on the ones before now, whatever they did.
        others.attributes.update({name: held for name, held in loop.attributes.items() if name != _ANY_ORDER})
        for made, old in zip(others.results, (*(loop.results[at] for at in stages.kept), *stages.handed), strict=True):
            made.name_hint = old.name_hint
        ops += [following, others]
        turn = self._taken(others.results)
        ops += self._last_counter(turn)
        ops += _copied(stages.late, turn)
        results = {place: others.results[at] for at, place in enumerate(stages.kept)}
        results |= {place: turn[self.yielded[place]] for place in stages.sums}
        return [results[place] for place in range(len(self.carried))]

    def _body(self) -> Block:
        """A turn: the first products, the second ones of the turn before, and what lies between."""
        loop, stages = self.loop, self.stages
        given = [self.carried[place] for place in stages.kept]
        block = Block(arg_types=[_index, *(value.type for value in (*given, *stages.handed))])
        for made, old in zip(block.args, (self.counter, *given, *stages.handed), strict=True):
            made.name_hint = old.name_hint
        turn: _Values = {self.counter: block.args[0], **dict(zip(given, block.args[1:], strict=False))}
        before = self._taken(block.args[1:])
        ops = _copied(stages.early, turn)
        if self._counts(stages.late):
            previous = arith.SubiOp(block.args[0], loop.step)
            before[self.counter] = previous.result
            ops.append(previous)
        ops += _copied(stages.late, before)
        turn |= {self.carried[place]: before[self.yielded[place]] for place in stages.sums}
        ops += _copied((*stages.rest, *stages.prefix), turn)
        block.add_ops([*ops, scf.YieldOp(*self._passed_on(turn))])
        return block

    def _passed_on(self, turn: _Values) -> list[SSAValue]:
        """What the next turn gets: all that the first stage carries, and what the second one is to work on."""
        values = (*(self.yielded[place] for place in self.stages.kept), *self.stages.handed)
        return [turn.get(value, value) for value in values]

    def _taken(self, given: Sequence[SSAValue]) -> _Values:
        """What the second stage of the turn before works on."""
        return dict(zip(self.stages.handed, given[len(self.stages.kept) :], strict=True))

    def _last_counter(self, turn: _Values) -> list[Operation]:
        """The number of the last turn, where it is asked for."""
        if not self._counts(self.stages.late):
            return []
        loop = self.loop
        length = arith.SubiOp(loop.ub, loop.lb)
        turns = arith.CeilDivSIOp(length.result, loop.step)
        one = arith.ConstantOp(IntegerAttr(1, _index))
        behind = arith.SubiOp(turns.result, one.result)
        distance = arith.MuliOp(behind.result, loop.step)
        last = arith.AddiOp(loop.lb, distance.result)
        turn[self.counter] = last.result
        return [length, turns, one, behind, distance, last]

    def _counts(self, ops: Sequence[Operation]) -> bool:
        return any(value is self.counter for op in ops for value in _used(op))


def _copied(ops: Iterable[Operation], values: _Values) -> list[Operation]:
    """Copies of ops that work on other values; what they give is noted."""
    return [op.clone(values) for op in ops]
