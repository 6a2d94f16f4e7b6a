"""apply-facts: folds sizes, strides and scalars that are known, and records exactly the facts that mattered.

Going forward, every value that facts decide is noted together with the facts it rests on. Going backward, from the
last op to the first, a value is replaced only if something still uses it; only then are its facts asked for. What a
dead branch or a multiplication by zero would have wanted to know is therefore never asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from tessera.dtypes.types import DType
from tessera.errors import DtypeError, GuardError
from tessera.interpreters.core import scalars
from tessera.ir.common.effects import effects_within, observable
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.ir.structural_hash import structural_hash
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.environment import ShapeEnvironment
from tessera.shapes.expr import Dim
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.context import CompileContext, recorder_of
from tessera.transforms.core.dead_code import is_dead
from tessera.transforms.core.facts import Fact, FactKind, Facts, Recorder
from tessera.transforms.core.folding import FoldedConstant, fold, literal, materialize, signature_size
from tessera.transforms.core.rewriting import inline_before, insert_before
from tessera.transforms.facts.symbols import bind_size, specialize_symbols

_NONE: frozenset[Fact] = frozenset()
_SUBJECT = re.compile(r"arg\d+\.(?:size|stride)\[\d+\]")
_MEASURES = {"size": tile.DimOp, "stride": tile.StrideOp}
# One operand of these can decide the result, and so can another: any, or one that is such a number.
_SEVERAL_REASONS: dict[type[Operation], tuple[int, ...] | None] = {
    arith.MuliOp: (0,),
    arith.AndIOp: (0,),
    arith.OrIOp: (1, -1),
    arith.SelectOp: None,
}


def specialize(module: ModuleOp, context: CompileContext, function: str) -> None:
    """Specialises one function to the facts of a compile, and clears away what they leave useless."""
    for step in (ApplyFacts(function), Canonicalize(), CommonSubexpressions()):
        step.apply(context, module)


@dataclass(frozen=True)
class ApplyFacts(ModulePass):
    """Specialises one function to the facts of this compile, or to those given as options."""

    name = "apply-facts"

    function: str | None = None
    facts: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        recorder = recorder_of(ctx)
        if self.facts:
            recorder = Recorder(Facts.parse(*self.facts))
            if isinstance(ctx, CompileContext):
                ctx.recorder = recorder
        if not recorder.facts:
            return
        function = _entry(op, self.function)
        _check_facts(function, recorder.facts)
        before = op.clone()
        guards, doubted = _specialise(function, recorder.facts)
        if doubted:
            guards = _fewest(before, function.sym_name.data, guards, doubted)
        for atom in guards:
            recorder.ask(atom)


def _specialise(function: tile.FuncOp | graph.FuncOp, facts: Facts) -> tuple[Facts, set[Fact]]:
    """Rewrites the function; gives the facts that mattered, and those of decisions that had several reasons."""
    recorder = Recorder(facts)
    if isinstance(function, graph.FuncOp):
        specialize_symbols(function, recorder)
    knowledge = _Knowledge(function.body.block, facts)
    knowledge.learn(function.body.block)
    for atom in knowledge.settle():
        recorder.ask(atom)
    return recorder.guards, knowledge.doubted


def _fewest(module: ModuleOp, name: str, guards: Facts, doubted: set[Fact]) -> Facts:
    """Where a decision had several reasons, the ones taken may be more than are needed: leaves out what it can."""

    def code(facts: Facts) -> str:
        trial = module.clone()
        _specialise(_entry(trial, name), facts)
        for step in (Canonicalize(), CommonSubexpressions(), Canonicalize()):
            step.apply(Context(), trial)
        return structural_hash(trial)

    asked = [atom for atom in guards if atom in doubted]
    wanted = code(guards) if asked else ""
    for atom in asked:
        fewer = guards.without(atom)
        if code(fewer) == wanted:
            guards = fewer
    return guards


def _entry(module: ModuleOp, name: str | None) -> tile.FuncOp | graph.FuncOp:
    """The function whose arguments the facts are about: the one named, or the only one the module never calls."""
    functions = [op for op in module.body.block.ops if isinstance(op, tile.FuncOp | graph.FuncOp)]
    called = {
        op.callee.string_value()
        for op in module.walk()
        if isinstance(op, graph.CallOp | graph.CallKernelOp | schedule.LaunchOp)
    }
    found = [f for f in functions if f.sym_name.data == name or (name is None and f.sym_name.data not in called)]
    if len(found) != 1:
        names = ", ".join(f"@{function.sym_name.data}" for function in functions)
        raise GuardError(
            f"facts are about one function, found {len(found)} that they could be about",
            story=[f"the module has {names or 'no functions'}"],
            hint="name the function that the host calls: apply-facts{function=...}",
        )
    return found[0]


def _check_facts(function: tile.FuncOp | graph.FuncOp, facts: Facts) -> None:
    """Facts that contradict the function's own types are refused before anything is changed."""

    def refuse(subject: str, expected: object, found: Iterable[Fact]) -> None:
        for atom in found:
            if atom.value != expected:
                raise GuardError(
                    f"the fact {atom} contradicts the signature of @{function.sym_name.data}",
                    shapes=[f"{subject} = {expected}"],
                    hint="facts must come from arguments that the function accepts",
                )

    environment = ShapeEnvironment()
    for position, type_ in enumerate(function.function_type.inputs):
        path = f"arg{position}"
        dtype: DType | None = None
        sizes: tuple[Any, ...] = ()
        if isinstance(type_, ViewType) and isinstance(function, tile.FuncOp):
            dtype, sizes = type_.dtype, function.shapes.data[position].data
        elif isinstance(type_, GraphTensorType):
            dtype, sizes = type_.dtype, type_.shape
        if dtype is None:
            _check_scalar(function, path, type_, facts)
            continue
        refuse(path, "an array", facts.about(FactKind.VALUE, path))
        refuse(f"{path}.dtype", dtype.base.name, facts.about(FactKind.DTYPE, f"{path}.dtype"))
        refuse(f"{path}.rank", len(sizes), facts.about(FactKind.RANK, f"{path}.rank"))
        for axis, size in enumerate(sizes):
            known = facts.about(FactKind.SIZE, f"{path}.size[{axis}]")
            if isinstance(size, int):
                refuse(f"{path}.size[{axis}]", size, known)
                continue
            for atom in known:
                bind_size(environment, size, atom)


def _check_scalar(function: tile.FuncOp | graph.FuncOp, path: str, type_: Attribute, facts: Facts) -> None:
    for atom in facts.about(FactKind.VALUE, path):
        try:
            scalars.argument(path, atom.value, type_)
        except DtypeError as error:
            raise GuardError(
                f"the fact {atom} contradicts the signature of @{function.sym_name.data}: {error.message}",
                hint=error.hint,
            ) from error


@dataclass
class _Knowledge:
    """The results of facts in one function: values that are constants, and values that equal others."""

    entry: Block
    facts: Facts
    numbers: dict[SSAValue, tuple[Any, frozenset[Fact]]] = field(
        default_factory=dict[SSAValue, "tuple[Any, frozenset[Fact]]"]
    )
    aliases: dict[SSAValue, tuple[SSAValue, frozenset[Fact]]] = field(
        default_factory=dict[SSAValue, "tuple[SSAValue, frozenset[Fact]]"]
    )
    needed: set[Fact] = field(default_factory=set[Fact])
    doubted: set[Fact] = field(default_factory=set[Fact])
    """The facts of decisions that may rest on others, too."""

    def __post_init__(self) -> None:
        # These relate measures to each other: what one decides may follow from another, too.
        if self.facts.of_kind(FactKind.EQUAL) or self.facts.of_kind(FactKind.DIVISIBLE):
            self.doubted.update(self.facts)
        for argument in self.entry.args:
            # There are no unsigned constants that could replace an argument.
            known = () if _is_unsigned(argument.type) else self.facts.about(FactKind.VALUE, f"arg{argument.index}")
            for atom in known:
                self.numbers[argument] = (scalars.scalar(atom.value, argument.type), frozenset({atom}))

    # Forward.

    def learn(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, scf.IfOp):
                self._learn_branch(op)
            elif isinstance(op, scf.ForOp):
                self._learn_loop(op)
            elif isinstance(op, tile.DimOp | tile.StrideOp) and isinstance(op.view, BlockArgument):
                self._learn_measure(op)
            elif len(op.results) == 1 and not isinstance(op, arith.ConstantOp):
                self._learn_fold(op)

    def resolve(self, value: SSAValue) -> tuple[SSAValue, frozenset[Fact]]:
        """The value that this one equals in the end, and the facts that make it so."""
        facts = _NONE
        while value in self.aliases:
            value, more = self.aliases[value]
            facts |= more
        return value, facts

    def number(self, value: SSAValue) -> tuple[Any, frozenset[Fact]] | None:
        """The number a value is, and the facts that make it so."""
        final, facts = self.resolve(value)
        if final in self.numbers:
            found, more = self.numbers[final]
            return found, facts | more
        constant = literal(final)
        return None if constant is None else (constant, facts)

    def _learn_branch(self, op: scf.IfOp) -> None:
        condition = self.number(op.cond)
        branches: tuple[Region, ...] = op.true_region, op.false_region
        if condition is not None:
            branches = (op.true_region if condition[0] else op.false_region,)
        for branch in branches:
            if branch.blocks:
                self.learn(branch.block)
        if condition is not None and op.results:
            self.doubted |= condition[1]  # both branches may come to the same
            terminator = branches[0].block.last_op
            assert terminator is not None
            for result, yielded in zip(op.results, terminator.operands, strict=True):
                self.aliases[result] = (yielded, condition[1])

    def _learn_loop(self, op: scf.ForOp) -> None:
        start, stop = self.number(op.lb), self.number(op.ub)
        if start is not None and stop is not None and start[0] >= stop[0]:
            for result, initial in zip(op.results, op.iter_args, strict=True):
                self.aliases[result] = (initial, start[1] | stop[1])
        else:
            self.learn(op.body.block)

    def _learn_measure(self, op: tile.DimOp | tile.StrideOp) -> None:
        assert isinstance(op.view, BlockArgument)
        subject = _subject(op)
        if isinstance(op, tile.DimOp) and isinstance(signature_size(op.view, op.axis.value.data), int):
            self._learn_fold(op)
            return
        equals = self._equals(subject)
        for other, path in equals:
            for atom in self.facts.about(FactKind.SIZE, other) + self.facts.about(FactKind.STRIDE, other):
                self.numbers[op.result] = (atom.value, path | {atom})
                return
        smallest, path = min(equals, key=lambda found: _order(found[0]))
        if smallest != subject and path:
            argument, axis, measure = _order(smallest)
            twin = _MEASURES[measure](self.entry.args[argument], axis)
            first = self.entry.first_op
            assert first is not None
            insert_before(first, [twin])
            self.aliases[op.result] = (twin.result, path)
            return
        self._learn_fold(op)

    def _equals(self, subject: str) -> list[tuple[str, frozenset[Fact]]]:
        """All measures of arguments that equal this one, nearest first, with the facts that connect them."""
        found = {subject: _NONE}
        queue = [subject]
        for current in queue:
            steps = [(twin, _NONE) for twin in self._same_symbol(current)]
            for atom in self.facts.of_kind(FactKind.EQUAL):
                ends = (atom.subject, str(atom.value))
                if current in ends:
                    steps.append((ends[1 - ends.index(current)], frozenset({atom})))
            for other, facts in steps:
                if other not in found and self._is_measure(other):
                    found[other] = found[current] | facts
                    queue.append(other)
        return list(found.items())

    def _is_measure(self, subject: str) -> bool:
        """Whether the function has the argument, and the argument the axis, that a fact speaks of."""
        if not _SUBJECT.fullmatch(subject):
            return False
        position, axis, _ = _order(subject)
        type_ = self.entry.args[position].type if position < len(self.entry.args) else None
        return isinstance(type_, ViewType) and axis < type_.rank.data

    def _same_symbol(self, subject: str) -> list[str]:
        """Sizes that the signature itself calls by one name are checked equal on every call."""
        position, axis, measure = _order(subject)
        wanted = signature_size(self.entry.args[position], axis)
        if not isinstance(wanted, Dim) or measure != "size":
            return []
        return [
            f"arg{argument.index}.size[{other}]"
            for argument in self.entry.args
            if isinstance(argument.type, ViewType)
            for other in range(argument.type.rank.data)
            if signature_size(argument, other) == wanted
        ]

    def _learn_fold(self, op: Operation) -> None:
        known = [self.number(operand) for operand in op.operands]
        if isinstance(op, arith.RemSIOp) and known[1] is not None and known[0] is None:
            facts = self._divisible(op.lhs, known[1][0])
            if facts is not None:
                self.numbers[op.result] = (0, facts | known[1][1])
                return
        found = fold(op, [None if entry is None else entry[0] for entry in known])
        if found is None:
            return
        entries = [entry for entry in known if entry is not None]
        if type(op) in _SEVERAL_REASONS and len(entries) > 1:
            deciding = _SEVERAL_REASONS[type(op)]
            if deciding is None or any(entry[0] in deciding for entry in entries):
                self.doubted.update(*(entry[1] for entry in entries))
        because = _NONE.union(*(entry[1] for i in found.because if (entry := known[i]) is not None))
        if isinstance(found, FoldedConstant):
            self.numbers[op.results[0]] = (found.value, because)
        else:
            self.aliases[op.results[0]] = (found.value, because)

    def _divisible(self, value: SSAValue, divisor: int) -> frozenset[Fact] | None:
        """The facts by which `divisor` always divides a value, or None."""
        if divisor == 0:
            return None
        number = self.number(value)
        if number is not None:
            return number[1] if number[0] % divisor == 0 else None
        value, facts = self.resolve(value)
        match value.owner:
            case tile.DimOp() | tile.StrideOp() as op if isinstance(op.view, BlockArgument):
                for atom in self.facts.about(FactKind.DIVISIBLE, _subject(op)):
                    if int(atom.value) % divisor == 0:
                        return facts | {atom}
            case arith.MuliOp() as op:
                for operand in op.operands:
                    if (found := self._divisible(operand, divisor)) is not None:
                        return facts | found
            case arith.AddiOp() | arith.SubiOp() as op:
                left, right = (self._divisible(operand, divisor) for operand in op.operands)
                if left is not None and right is not None:
                    return facts | left | right
            case _:
                pass
        return None

    # Backward.

    def settle(self) -> set[Fact]:
        """Replaces what is known and still used, removes what is not, and gives the facts that mattered."""
        self._settle_block(self.entry)
        first = self.entry.first_op
        assert first is not None
        for argument in self.entry.args:
            if argument in self.numbers and argument.first_use is not None:
                value, facts = self.numbers[argument]
                constant = materialize(value, argument.type)
                insert_before(first, [constant])
                argument.replace_all_uses_with(constant.result)
                self.needed |= facts
        return self.needed

    def _settle_block(self, block: Block) -> None:
        op = block.last_op
        while op is not None:
            live = any(result.first_use is not None for result in op.results)
            for result in op.results:
                self._settle_value(op, result)
            condition = self.number(op.cond) if isinstance(op, scf.IfOp) else None
            if isinstance(op, scf.IfOp) and condition is not None:
                op = self._settle_branch(op, condition, live)
                continue
            previous = op.prev_op
            if is_dead(op):
                op.detach()
                op.erase()
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self._settle_block(inner)
            op = previous

    def _settle_value(self, op: Operation, result: SSAValue) -> None:
        if result.first_use is None:
            return
        number = self.number(result)
        if number is not None and not isinstance(op, arith.ConstantOp):
            constant = materialize(number[0], result.type)
            insert_before(op, [constant])
            constant.result.name_hint = result.name_hint
            result.replace_all_uses_with(constant.result)
            self.needed |= number[1]
        elif result in self.aliases:
            final, facts = self.resolve(result)
            result.replace_all_uses_with(final)
            self.needed |= facts

    def _settle_branch(self, op: scf.IfOp, condition: tuple[Any, frozenset[Fact]], live: bool) -> Operation | None:
        """Replaces an `if` by the branch that is taken; gives the op to go on with."""
        branch = op.true_region if condition[0] else op.false_region
        untaken = op.false_region if condition[0] else op.true_region
        acts = [_acts(region) for region in (branch, untaken)]
        if live or any(acts):
            self.needed |= condition[1]
        if branch.blocks:
            inline_before(op, branch.block)
        previous = op.prev_op
        op.detach()
        op.erase()
        return previous


def _is_unsigned(type_: Attribute) -> bool:
    return isa(type_, IntegerType) and type_.signedness.data is Signedness.UNSIGNED


def _acts(region: Region) -> bool:
    effects = effects_within(inner for block in region.blocks for inner in block.ops)
    return effects is None or any(observable(effect) for effect in effects)


def _subject(op: tile.DimOp | tile.StrideOp) -> str:
    assert isinstance(op.view, BlockArgument)
    what = "size" if isinstance(op, tile.DimOp) else "stride"
    return f"arg{op.view.index}.{what}[{op.axis.value.data}]"


def _order(subject: str) -> tuple[int, int, str]:
    """Which measure of an argument: the argument, the axis, and its kind."""
    path, _, what = subject.partition(".")
    name, _, axis = what.removesuffix("]").partition("[")
    return int(path.removeprefix("arg")), int(axis), name
