"""Effects of ops, besides computing results: on random streams, state, collectives and IO.

Effects are xDSL's own, so that its tools respect them; a resource tells which part of the world is touched.
Reading and writing memory through a view names that view's base argument as the value touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource, get_effects

from tessera.ir.common.declared_ops import DeclaredOp

READ, WRITE = MemoryEffectKind.READ, MemoryEffectKind.WRITE
KINDS = ("random", "state", "collective", "io", "memory")


@dataclass(frozen=True)
class World(Resource):
    """One part of the world: the random stream, a state slot, a mesh axis, the outside, or memory."""

    kind: str
    key: str = ""

    def name(self) -> str:
        return f"{self.kind}({self.key})" if self.key else self.kind

    @staticmethod
    def parse(text: str) -> World:
        kind, _, rest = text.partition("(")
        return World(kind, rest.removesuffix(")"))


RANDOM = World("random")
IO = World("io")
MEMORY = World("memory")


def reads(world: World, value: SSAValue | None = None) -> EffectInstance:
    return EffectInstance(READ, value, world)


def writes(world: World, value: SSAValue | None = None) -> EffectInstance:
    return EffectInstance(WRITE, value, world)


@runtime_checkable
class Effectful(Protocol):
    """An op that states its effects."""

    def effects(self) -> AbstractSet[EffectInstance]: ...


class HasEffects(MemoryEffect):
    """The trait of ops whose effects depend on their attributes or operands."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        assert isinstance(op, Effectful), f"{op.name} has the trait HasEffects but no method effects"
        return op.effects()


def effects_within(ops: Iterable[Operation]) -> AbstractSet[EffectInstance] | None:
    """The union of effects of `ops`; None when one of them does not tell."""
    found = set[EffectInstance]()
    for op in ops:
        effects = get_effects(op)
        if effects is None:
            return None
        found |= effects
    return found


def observable(effect: EffectInstance) -> bool:
    """Whether leaving the op out can be noticed by others."""
    return effect.kind is not READ


def may_conflict(first: EffectInstance, second: EffectInstance) -> bool:
    """Whether exchanging the two can be noticed: same resource, and one of them changes it.

    Distinct values of one resource are taken to overlap; who knows better (a no-overlap fact) asks first.
    """
    if first.kind is READ and second.kind is READ:
        return False
    return first.resource == second.resource


class OrderedOp(DeclaredOp):
    """An op that no access to memory may be moved across."""

    traits = traits_def(HasEffects())

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}
