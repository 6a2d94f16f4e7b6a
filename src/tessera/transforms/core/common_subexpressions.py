"""cse: computes once what is computed twice, and reads once what nothing changed in between."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation
from xdsl.passes import ModulePass
from xdsl.traits import EffectInstance, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface, get_effects

from tessera.ir.common.effects import MEMORY, may_conflict, observable
from tessera.transforms.core.context import recorder_of
from tessera.transforms.core.facts import Fact, FactKind, Recorder, fact
from tessera.transforms.core.rewriting import replace


@dataclass(frozen=True)
class CommonSubexpressions(ModulePass):
    """Merges equal pure ops, and equal reads that no write between them can have changed."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _visit(op.body.block, _Scope(recorder_of(ctx)))


def merge_equal(block: Block) -> None:
    """Merges equal ops of a block and of those in it, by what they say alone: no facts are asked for."""
    _visit(block, _Scope(Recorder()))


@dataclass
class _Scope:
    """The values available at a point of a function: values of enclosing blocks, and reads of this block."""

    recorder: Recorder
    parent: _Scope | None = None
    pure: dict[Hashable, Operation] = field(default_factory=dict[Hashable, Operation])
    # Each read with the writes that came after it.
    reads: dict[Hashable, tuple[Operation, list[EffectInstance]]] = field(
        default_factory=dict[Hashable, "tuple[Operation, list[EffectInstance]]"]
    )

    def find_pure(self, key: Hashable) -> Operation | None:
        found = self.pure.get(key)
        return found if found is not None or self.parent is None else self.parent.find_pure(key)


def _key(op: Operation) -> Hashable:
    return (
        type(op),
        tuple(op.operands),
        _sorted(op.properties),
        _sorted(op.attributes),
        tuple([result.type for result in op.results]),
    )


def _sorted(attributes: Mapping[str, Attribute]) -> tuple[tuple[str, Attribute], ...]:
    items = attributes.items()
    return tuple(sorted(items, key=lambda item: item[0]) if len(items) > 1 else items)


@cache
def _is_pure(kind: type[Operation]) -> bool:
    """Whether ops of a kind have no effects, whatever their operands are; terminators are not merged for that."""
    return kind.has_trait(Pure) and not kind.has_trait(IsTerminator) and not kind.has_trait(SymbolOpInterface)


def _visit(block: Block, scope: _Scope) -> None:
    for op in list(block.ops):
        if _is_pure(type(op)) and not op.regions and op.results:
            _merge(op, scope, [])
            continue
        effects = get_effects(op)
        mergeable = not op.regions and op.results and effects is not None
        if op.has_trait(IsTerminator) or op.has_trait(SymbolOpInterface):
            mergeable = False
        if mergeable and effects is not None and not any(observable(effect) for effect in effects):
            _merge(op, scope, list(effects))
            continue
        for region in op.regions:
            for inner in region.blocks:
                isolated = op.has_trait(IsolatedFromAbove)
                _visit(inner, _Scope(scope.recorder, None if isolated else scope))
        _remember_writes(effects, scope)


def _merge(op: Operation, scope: _Scope, effects: list[EffectInstance]) -> None:
    key = _key(op)
    if not effects:
        if (earlier := scope.find_pure(key)) is not None:
            replace(op, [], earlier.results)
        else:
            scope.pure[key] = op
        return
    earlier_read = scope.reads.get(key)
    if earlier_read is not None and _untouched(effects, earlier_read[1], scope.recorder):
        replace(op, [], earlier_read[0].results)
    else:
        scope.reads[key] = (op, [])


def _untouched(reads: list[EffectInstance], writes: list[EffectInstance], recorder: Recorder) -> bool:
    """Whether no write since can have changed what was read; facts are asked only if they decide it."""
    needed: list[Fact] = []
    for write in writes:
        for read in reads:
            if not may_conflict(read, write):
                continue
            apart = _disjoint(read.value, write.value) if write.resource == MEMORY else None
            if apart is None or apart not in recorder.facts:
                return False
            needed.append(apart)
    return all(recorder.ask(apart) for apart in needed)


def _disjoint(first: object, second: object) -> Fact | None:
    if isinstance(first, BlockArgument) and isinstance(second, BlockArgument) and first is not second:
        return fact(FactKind.DISJOINT, f"arg{first.index}", f"arg{second.index}")
    return None


def _remember_writes(effects: AbstractSet[EffectInstance] | None, scope: _Scope) -> None:
    if effects is None:
        scope.reads.clear()
        return
    written = [effect for effect in effects if observable(effect)]
    for _, writes in scope.reads.values():
        writes.extend(written)
