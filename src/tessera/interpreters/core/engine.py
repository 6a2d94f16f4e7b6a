"""The frame of all interpreters: one table from op to meaning, values by SSA name, blocks run in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, NoTerminator, SymbolTable

from tessera.errors import CompileError, TesseraError
from tessera.interpreters.core.machine import Machine
from tessera.ir.common.locations import span_of

Values = Sequence[Any]
OpT = TypeVar("OpT", bound=Operation)
Rule = Callable[["Frame", OpT, Values], Values | None]
Witness = Callable[[Operation, Values, Values], None]
"""Looks at an op, its operands and its results when it has run."""
RULES: dict[type[Operation], Rule[Any]] = {}


def meaning(*kinds: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the rule of some ops: (frame, op, operand values) → result values, or None where there are none."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        for kind in kinds:
            assert kind not in RULES, f"{kind.name} has two meanings"
            RULES[kind] = rule
        return rule

    return register


def meanings(rules: Mapping[type[Operation], Rule[Any]]) -> None:
    """Registers the rules of a table."""
    for kind, rule in rules.items():
        meaning(kind)(rule)


@dataclass
class Frame:
    """One activation of a function: its values, the sizes of its symbols, and the machine it runs on."""

    machine: Machine
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    program: tuple[int, ...] = ()
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    kept: dict[type, Any] = field(default_factory=dict[type, Any])
    """State that ops share while the function runs, by its class."""
    guard: Callable[[Operation, Values], None] | None = None
    """Looks at each op and its operands before it runs."""
    witness: Witness | None = None

    def run(self, block: Block, arguments: Values) -> Values:
        """Runs a block and gives the operands of its terminator."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [self.values[operand] for operand in op.operands]
            if op.has_trait(IsTerminator):
                return operands
            try:
                results = self.perform(op, operands)
            except TesseraError as error:
                raise error.at(span_of(op.location)) from None
            self.values.update(zip(op.results, results, strict=True))
        around = block.parent_op()
        if around is None or not around.has_trait(NoTerminator):
            raise CompileError("a block without a terminator cannot be run")
        return []

    def perform(self, op: Operation, operands: Values) -> Values:
        """The results of one op; frames with sanitizers do more here."""
        if self.guard is not None:
            self.guard(op, operands)
        rule = RULES.get(type(op))
        if rule is None:
            raise CompileError(
                f"{op.name} has no reference meaning", span=span_of(op.location), hint="add a rule in interpreters/"
            )
        results = rule(self, op, operands) or []
        if self.witness is not None:
            self.witness(op, operands, results)
        return results

    def fork(self) -> Frame:
        """A frame that knows what this one knows, and goes on by itself."""
        return replace(self, values=dict(self.values), kept=dict(self.kept))


def symbol_in(module: ModuleOp, name: str, kind: type[OpT]) -> OpT:
    """The op of one kind that has a name."""
    found = SymbolTable.lookup_symbol(module, name)
    if not isinstance(found, kind):
        what = "nothing of that name" if found is None else f"a {found.name}"
        raise CompileError(f"expected a {kind.name} @{name}, the module has {what}", hint="check the name")
    return found
