"""The table of derivatives: for each graph op its tangent, and its transpose where it is linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Block, Operation, SSAValue

from tessera.errors import EffectError
from tessera.ir.common.locations import span_of
from tessera.ir.graph.types import GraphTensorType
from tessera.transforms.derivatives.graph_writer import GraphWriter

Tangent: TypeAlias = SSAValue | None
"""A tangent or a cotangent; None stands for zeros."""
OpT = TypeVar("OpT", bound=Operation)


class Replacements:
    """Other values for those that were computed; `values` is read by who keeps values."""

    def __init__(self, values: dict[SSAValue, SSAValue]) -> None:
        self.values = values

    def __call__(self, old: SSAValue, new: SSAValue) -> None:
        old.replace_all_uses_with(new)
        self.values[old] = new

    def now(self, value: SSAValue) -> SSAValue:
        """What is there for a value now."""
        while value in self.values:
            value = self.values[value]
        return value


@dataclass(frozen=True)
class Tangents:
    """Where a walk writes: `known` has what does not depend on tangents, `linear` what does.

    Forwards the two are one block: the linear ops may then be anything that is right for the tangents at hand.
    """

    known: GraphWriter
    linear: GraphWriter
    replace: Replacements
    tangents: dict[SSAValue, SSAValue]
    """What is found so far."""

    @property
    def is_forward(self) -> bool:
        return self.known.block is self.linear.block


IsLinear: TypeAlias = Callable[[SSAValue], bool]
"""Whether a value depends on tangents."""
Jvp: TypeAlias = Callable[[Tangents, OpT, Sequence[Tangent]], Sequence[Tangent]]
"""From the tangents of an op's inputs, of which one is there, to those of its results; see `inputs_of`."""
Transpose: TypeAlias = Callable[[GraphWriter, OpT, Sequence[Tangent], IsLinear], Sequence[Tangent]]
"""From cotangents of results, of which one is there, to those of inputs that are linear."""


AnyJvp: TypeAlias = Jvp[Operation]
AnyTranspose: TypeAlias = Transpose[Operation]


@dataclass(frozen=True)
class DerivativeRule:
    """One row: how tangents pass an op, and how cotangents do where it is linear. `reason` says why they do not."""

    jvp: AnyJvp | None
    transpose: AnyTranspose | None = None
    reason: str = ""


RULES: dict[type[Operation], DerivativeRule] = {}


def rule(kind: type[OpT], jvp: Jvp[OpT] | None, transpose: Transpose[OpT] | None = None) -> None:
    """Puts a row into the table."""
    RULES[kind] = DerivativeRule(cast(AnyJvp | None, jvp), cast(AnyTranspose | None, transpose))


def constant(kind: type[Operation], reason: str) -> None:
    """An op whose results are constants to derivatives."""
    RULES[kind] = DerivativeRule(None, None, reason)


def transposed_only(kind: type[OpT], transpose: Transpose[OpT], reason: str) -> None:
    """A linear op that is written by derivatives alone."""
    rule(kind, None, transpose)
    RULES[kind] = replace(RULES[kind], reason=reason)


def captured_by(op: Operation) -> list[SSAValue]:
    """The values from outside that an op's bodies use, each once."""
    if not op.regions:
        return []
    inside = {block for one in op.walk() for region in one.regions for block in region.blocks}
    found: dict[SSAValue, None] = {}
    for one in op.walk():
        for value in one.operands if one is not op else ():
            if block_of(value) not in inside:
                found[value] = None
    return list(found)


def inputs_of(op: Operation) -> list[SSAValue]:
    """An op's operands, then what its bodies use from outside."""
    return [*op.operands, *captured_by(op)]


def block_of(value: SSAValue) -> Block | None:
    """The block in which a value is made."""
    return value.owner if isinstance(value.owner, Block) else value.owner.parent_block()


def refused(op: Operation, what: str, hint: str) -> EffectError:
    """The error of an op that has no derivative, at the user's line."""
    return EffectError(what, span=span_of(op.location), hint=hint)


def is_differentiable(value: SSAValue) -> bool:
    """Whether a value's type has tangents: floats have."""
    return isinstance(value.type, GraphTensorType) and value.type.dtype.is_float
