"""What is compiled and what comes of it: a tile function with its schedule; machine code with its launch plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue

from tessera.compiler.launch_plan import ArrayArgument, Failure, NumberArgument, Plan
from tessera.compiler.print_records import Print
from tessera.dtypes.types import DType, bool_, i64
from tessera.errors import CompileError, SourceSpan
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.reach import covers
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type
from tessera.transforms.checks.host_checks import host_checks
from tessera.transforms.checks.instrument import check_of, title
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts


class Source(NamedTuple):
    """A tile function of a module, and what its schedule says of threads; its last `outputs` arguments are results."""

    module: ModuleOp
    name: str
    inputs: int
    outputs: int
    warps: int | None = None
    stages: int | None = None
    follows: bool = False
    """Whether it is one of several that are launched one after the other."""


@dataclass(frozen=True)
class Artifact:
    """A compiled tile function: its launch plan, its code, facts that it depends on, and how it was compiled."""

    plan: Plan
    code: bytes
    guards: Facts = field(default_factory=Facts)
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    report: CompileReport = field(default_factory=CompileReport)
    """The way it was compiled, and those that were refused."""


@dataclass(frozen=True)
class LoweredKernel:
    """A tile function in its target's own words, before machine code: IR, text and assembly, for people to read."""

    module: ModuleOp | None
    """The function in the target's own dialect; None of a target that has none."""
    text: str
    """As the emitter writes it: LLVM's text, where the target has LLVM."""
    assembly: Callable[[], str]
    """Writes the assembly: that of the processor, or PTX."""
    finish: Callable[[], Artifact]
    """Makes the machine code."""
    guards: Facts = field(default_factory=Facts)
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of the stages so far; those of the artifact have the rest, too."""
    report: CompileReport = field(default_factory=CompileReport)


class Words(NamedTuple):
    """The words of a program's arguments: the first of each, of the grid's extents, and how many there are.

    `prints` is that of the buffer for what it prints, or of the status record in front; -1 where it prints nothing.
    """

    first: Sequence[int]
    grid: int
    total: int
    prints: int = -1


def plan_of(source: Source, words: Words, messages: tuple[str, ...]) -> Plan:
    """How to launch a compiled tile function."""
    function = symbol_in(source.module, source.name, tile.FuncOp)
    stores = [op for op in function.body.walk() if isinstance(op, tile.Writer)]
    written = {tile.base_of(op.view) for op in stores}
    ordered = any(isinstance(op, tile.Atomic) and op.shows_order for op in stores)
    memories = [tile.memory_of(one) for one in function.arguments[: source.inputs]]
    changed = {tile.memory_of(one) for one in written}
    apart = tuple(
        (first, second)
        for (first, one), (second, other) in combinations(enumerate(memories), 2)
        if one is not other and (one in changed or other in changed) and _are_arrays(one, other)
    )
    arguments: list[ArrayArgument | NumberArgument] = []
    for argument, shape, word in zip(function.arguments, function.shapes, words.first, strict=True):
        type_ = argument.type
        if isinstance(type_, ViewType):
            arguments.append(ArrayArgument(word, type_.dtype, tuple(shape.data), argument in written))
        else:
            arguments.append(NumberArgument(word, _kind_of(type_)))
    return Plan(
        source.name,
        tuple(arguments),
        source.outputs,
        tuple(function.grid.data),
        words.grid,
        words.total,
        tuple(_failures(function, messages)),
        ordered,
        apart=apart,
        checks=tuple((one.condition, Failure(one.message, one.span, one.check)) for one in host_checks(function)),
        covers=covers(function),
        prints=tuple(map(_print, tile.prints_of(function))) if words.prints >= 0 else (),
        prints_word=words.prints,
    )


def _print(op: tile.DebugPrintOp) -> Print:
    """A print as its records have it: scalars have no axes, and positions and flags are whole numbers there."""
    return Print(op.label.data, tuple(map(_shown, op.values)))


def _shown(value: SSAValue) -> tuple[DType, tuple[int, ...]]:
    if isinstance(value.type, TensorType):
        return tile_dtype(value), tile_type(value).get_shape()
    dtype = dtype_of(value.type)
    return i64 if dtype is bool_ else dtype, ()


def _are_arrays(*values: SSAValue) -> bool:
    return all(isinstance(value.type, ViewType) for value in values)


def _kind_of(type_: Attribute) -> str:
    name = "i64" if isinstance(type_, IndexType) else dtype_of(type_).name
    kind = {"bool": "i1"}.get(name, name)
    if kind not in ("i64", "f32", "f64", "i1"):
        raise CompileError(f"a number of {name} cannot be passed to machine code", hint="pass it as an array")
    return kind


def _failures(function: tile.FuncOp, messages: tuple[str, ...]) -> Iterator[Failure]:
    """The failures that programs report, with the exact source: the machine code names only where it begins."""
    spans: dict[str, SourceSpan] = {}
    # Ops that begin at one location: checks say which of them it was.
    titled: dict[tuple[str, str], SourceSpan] = {}
    asserted: dict[str, str | None] = {}
    for op in function.body.walk():
        if (span := span_of(op.location)) is not None:
            spans.setdefault(str(span), span)
            titled.setdefault((str(span), title(op)), span)
        if isinstance(op, tile.AssertOp):
            check = op.attributes.get(tile.CHECK)
            words = op.message.data if span is None else f"{span}: {op.message.data}"
            asserted[words] = check.data if isinstance(check, StringAttr) else None
    for message in messages:
        location = next((location for location in spans if message.startswith(f"{location}: ")), None)
        span, words = (None, message) if location is None else (spans[location], message.removeprefix(f"{location}: "))
        check = asserted[message] if message in asserted else check_of(words)
        if message in asserted and check is None:
            words = f"assertion failed: {words}"
        elif message not in asserted and check is not None and location is not None:
            span = titled.get((location, words.partition(" ")[0].removeprefix("tile.")), span)
        yield Failure(words, span, check)
