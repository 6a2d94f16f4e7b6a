"""The frame of the emitters of all targets: tables from op to rule, values, blocks, and what goes wrong in a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tessera.dtypes.types import DType
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile.types import ViewType
from tessera.targets.llvm.text import Function, Module, Value

EmitterT = TypeVar("EmitterT")
OpT = TypeVar("OpT", bound=Operation)
T = TypeVar("T")


class RuleTable(dict[type[Operation], Callable[[EmitterT, Any], None]], Generic[EmitterT]):
    """The rule of each op, as functions that are decorated with `emits`."""

    def emits(self, *kinds: type[OpT]) -> Callable[[Callable[[EmitterT, OpT], None]], Callable[[EmitterT, OpT], None]]:
        """Registers the rule of one op, or of several."""
        assert not any(kind in self for kind in kinds), f"one of {[kind.name for kind in kinds]} has two rules"
        return self.overrides(*kinds)

    def overrides(
        self, *kinds: type[OpT]
    ) -> Callable[[Callable[[EmitterT, OpT], None]], Callable[[EmitterT, OpT], None]]:
        """Registers a rule in the place of the one that all targets have."""

        def register(rule: Callable[[EmitterT, OpT], None]) -> Callable[[EmitterT, OpT], None]:
            self.update(dict.fromkeys(kinds, rule))
            return rule

        return register


@dataclass(frozen=True)
class ViewDescriptor:
    """The pointer, sizes and strides (in elements) of a view, as LLVM values."""

    pointer: Value
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    dtype: DType


class KernelEmitter(ABC):
    """Writes one kernel: what rules of any target need."""

    machines: ClassVar[str]
    rules: ClassVar[Mapping[type[Operation], Callable[[Any, Any], None]]]
    level: str
    """Of the processor, for the tables of functions."""
    f: Function

    def __init__(self, module: Module) -> None:
        self.module = module
        self.messages: dict[str, int] = {}
        self.values: dict[SSAValue, Any] = {}

    # Values

    def bound(self, value: SSAValue, kind: type[T]) -> T:
        """What a value of the kernel is, of the kind that the rule knows it to be."""
        found = self.values[value]
        assert isinstance(found, kind), value
        return found

    def number(self, value: SSAValue) -> Value:
        return self.bound(value, Value)

    def view(self, value: SSAValue) -> ViewDescriptor:
        return self.bound(value, ViewDescriptor)

    # Failures

    @abstractmethod
    def record(self) -> Value:
        """Where a failure is noted: a word that is 0 before."""

    def report(self, message: str) -> None:
        """Notes that something went wrong, unless something did before."""
        code = self.messages.setdefault(message, len(self.messages) + 1)
        self.f.op("{ i64, i1 }", f"cmpxchg {self.record()}, i64 0, i64 {code} monotonic monotonic")

    @abstractmethod
    def all_true(self, given: Any) -> Value | None:
        """Whether all that a thread holds of a tile of truths holds; None where it holds nothing."""

    # Blocks

    def block(self, block: Block) -> Operation:
        """Emits the ops of a block up to its terminator, which is given back."""
        for op in block.ops:
            if op is block.last_op:
                return op
            self.emit_op(op)
        raise AssertionError("a block without a terminator")

    def emit_op(self, op: Operation) -> None:
        """Emits an op by its rule."""
        rule = self.rules.get(type(op))
        if rule is None:
            raise CompileError(
                f"{op.name} has no machine code for {self.machines}",
                span=span_of(op.location),
                hint="run the kernel in the interpreter: TESSERA_INTERPRET=1",
            )
        rule(self, op)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] | None = None,
    ) -> list[Value]:
        """`if` within a rule."""
        return self.f.branch(condition, then, otherwise)

    def where(
        self,
        condition: Value | None,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] | None = None,
    ) -> None:
        """Does something where a condition holds; None is one that always does."""
        if condition is None:
            then()
        else:
            self.branch(condition, then, otherwise)

    def yielded(self, block: Block) -> list[Value]:
        """Emits a block of a loop or a branch, and gives what its terminator hands on."""
        return self.carried(self.block(block).operands)

    def carried(self, values: Sequence[SSAValue]) -> list[Value]:
        """Values as a flat list for a loop or branch to carry."""
        return [part for value in values for part in self.flat(self.values[value])]

    def bind_carried(self, values: Sequence[SSAValue], flat: Sequence[Value]) -> None:
        """The other way round."""
        rest = iter(flat)
        for value in values:
            self.values[value] = self.of_flat(value, rest)

    @abstractmethod
    def flat(self, found: Any) -> Sequence[Value]:
        """What is carried of a value."""

    @abstractmethod
    def of_flat(self, value: SSAValue, rest: Iterator[Value]) -> Any:
        """The value that is made of the next ones that were carried."""


def some(count: int, rest: Iterator[Value]) -> list[Value]:
    """The next so many values."""
    return list(islice(rest, count))


def argument_words(types: Sequence[Attribute]) -> tuple[list[int], int]:
    """The word of the block of arguments at which each begins, and how many there are.

    A view has its pointer, sizes and strides there.
    """
    first, words = list[int](), 0
    for type_ in types:
        first.append(words)
        words += 1 + 2 * type_.rank.data if isinstance(type_, ViewType) else 1
    return first, words


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def said(message: str, op: Operation) -> str:
    """A message with where in the user's code it is about."""
    span = span_of(op.location)
    return f"{span}: {message}" if span is not None else message
