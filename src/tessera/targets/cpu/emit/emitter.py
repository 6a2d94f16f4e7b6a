"""The frame of the cpu emitter: one table from op to rule. A value is a number, a view, memory, or a register tile.

A kernel becomes three functions: the work of one thread, `NAME.workspace`, which says how many bytes of scratch memory
a thread needs for given arguments, and nothing else that outsiders call. Arguments come in a block of words;
`ArgumentBlockLayout` says which word is what.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tessera.ir.common.checking import operands_of
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type
from tessera.targets.cpu.emit.registers import RegisterTile
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, TILE_ROWS, BufferType, PanelsType, buffer_type, panels_type, rounded_up
from tessera.targets.llvm import elements, rules
from tessera.targets.llvm.emitter import KernelEmitter, RuleTable, ViewDescriptor, argument_words, is_tile, some
from tessera.targets.llvm.text import Function, Module, Value, number, numbers

STATUS, FIRST_ARGUMENT = 8, 64
"""Bytes into the block of arguments: what went wrong, the arguments."""
QUEUES = 8
"""Counters of work behind the arguments."""

RULES: RuleTable[Emitter] = RuleTable({**rules.PLAIN, **rules.RULES})
emits = RULES.emits
PLAIN: frozenset[type[Operation]] = frozenset({*rules.PLAIN, cpu.GridOp})
"""Ops on scalars and views that have no effect: what memory a thread needs may be computed with them."""


@dataclass(frozen=True)
class TargetMachine:
    """The machine that code is generated for: its instruction-set level and the 32-bit lanes of its vectors."""

    level: str
    lanes: int
    contract: bool = True
    """Whether a product and a sum may become one instruction, which rounds once."""
    small: bool = False
    """Whether code is to be short, not fast."""


@dataclass(frozen=True)
class Memory:
    """A buffer or panels."""

    pointer: Value
    type: BufferType | PanelsType


@dataclass(frozen=True)
class ArgumentBlockLayout:
    """The word of the argument block at which each argument begins; a view has its pointer, sizes and strides there."""

    first: Sequence[int]
    grid: int
    queues: int
    words: int
    prints: int = -1
    """The word of the buffer for what the kernel prints; -1 where it prints nothing."""


@dataclass(frozen=True)
class Emitted:
    """The text, and what a launcher has to know."""

    text: str
    layout: ArgumentBlockLayout
    messages: tuple[str, ...]
    """The error message for status 1, 2, …"""


class Emitter(KernelEmitter):
    """Writes one kernel."""

    machines = "CPUs"
    rules = RULES

    def __init__(self, function: cpu.FuncOp, machine: TargetMachine) -> None:
        super().__init__(Module(short=machine.small))
        self.source = function
        self.machine = machine
        self.level = machine.level
        self.layout = _layout(function)
        self.workspace_offsets, self.static_size = _workspace_offsets(function)
        dots = any(isinstance(op, cpu.MatmulOp | cpu.DotOp) for op in function.body.walk())
        self.flushes = dots and machine.contract
        """Whether subnormal numbers are taken as zeros; see `flush_subnormals`."""
        self.pending: list[tuple[object, RegisterTile]] = []
        self.cursor: Value | None = None

    def emit(self) -> Emitted:
        name = self.source.sym_name.data
        self.f = self.module.function(
            name,
            [("ptr noalias", "args"), ("i64", "thread"), ("i64", "threads"), ("ptr noalias", "workspace")],
            returns="i64",
            internal=False,
        )
        self.args, self.thread, self.threads, self.workspace = self.f.arguments
        self.bind_arguments()
        matrix = any(isinstance(op, cpu.MatmulOp) for op in self.source.body.walk())
        if matrix:
            configure_tiles(self.f)
        before = flush_subnormals(self.f, self.level) if self.flushes else None
        self.block(self.source.body.block)
        if before is not None:
            restore_subnormals(self.f, before, self.level)
        if matrix:
            release_tiles(self.f)
        self.f.give(number(0, "i64"))
        self._workspace_function(name)
        return Emitted(self.module.text(), self.layout, tuple(self.messages))

    def bind_arguments(self, needed: Container[SSAValue] | None = None) -> None:
        """Reads what was given, or as much of it as is needed."""
        for argument, first in zip(self.source.arguments, self.layout.first, strict=True):
            if needed is None or argument in needed:
                self.values[argument] = self._argument(argument.type, first)

    def _argument(self, type_: Attribute, first: int) -> ViewDescriptor | Value:
        def word(position: int, kind: str = "i64") -> Value:
            return self.f.load(kind, self.f.at(self.args, FIRST_ARGUMENT + 8 * (first + position)), align=8)

        if isinstance(type_, ViewType):
            rank = type_.rank.data
            sizes = tuple(word(1 + axis) for axis in range(rank))
            strides = tuple(word(1 + rank + axis) for axis in range(rank))
            return ViewDescriptor(word(0, "ptr"), sizes, strides, type_.dtype)
        dtype = dtype_of(type_)
        memory = elements.memory_type(dtype, 0)
        return elements.to_register(self.f, word(0, memory), dtype)

    def _workspace_function(self, name: str) -> None:
        """How many bytes a thread needs: the buffers, and what `once` reserves for these arguments."""
        self.f = self.module.function(f"{name}.workspace", [("ptr noalias", "args")], returns="i64", internal=False)
        (self.args,) = self.f.arguments
        self.values = {}
        self.pending = []
        ops = list(self.source.body.walk())
        reserved = [op for op in ops if isinstance(op, cpu.ReserveOp) and _in_once(op)]
        needed = _behind([op.count for op in reserved])
        self.bind_arguments(needed)
        total = number(rounded_up(self.static_size, LINE), "i64")
        for op in ops:
            if isinstance(op, cpu.ParallelOp):
                self.values[op.once.block.args[0]] = number(0, "i64")
            elif op in reserved:
                assert isinstance(op, cpu.ReserveOp)
                total = self.f.add(total, self.f.times(self.number(op.count), panels_type(op.result).size))
            elif type(op) in PLAIN and any(result in needed for result in op.results):
                RULES[type(op)](self, op)
        self.f.give(total)

    # Values

    def memory(self, value: SSAValue) -> Memory:
        return self.bound(value, Memory)

    def tile(self, value: SSAValue) -> RegisterTile:
        return self.bound(value, RegisterTile)

    def make(self, result: SSAValue, maker: Callable[[int, int], Value]) -> RegisterTile:
        """Binds a register tile whose vectors are made when asked for."""
        made = RegisterTile(tile_type(result).get_shape(), tile_dtype(result), self.machine.lanes, maker)
        self.values[result] = made
        return made

    def loaded(self, origin: object, made: RegisterTile) -> None:
        """Notes a tile that must be read before its memory is written."""
        self.pending.append((origin, made))

    def writing(self, origin: object) -> None:
        """Reads everything pending from memory that is about to be written."""
        for where, made in self.pending:
            if where == origin:
                made.all()
        self.pending = [entry for entry in self.pending if entry[0] != origin]

    def record(self) -> Value:
        return self.f.at(self.args, STATUS)

    def all_true(self, given: RegisterTile) -> Value:
        return self.joined(given, "and")

    def joined(self, given: RegisterTile, kind: str) -> Value:
        """All truths of a tile as one, by `and` or `or`."""
        f, lanes = self.f, self.machine.lanes
        total = number(kind == "and", "i1")
        for row, vector_number in given.positions:
            live, vector = given.elements - vector_number * lanes, given.vector(row, vector_number)
            if live < lanes:
                mask = numbers([(lane < live) == (kind == "or") for lane in range(lanes)], "i1")
                vector = f.binary("and" if kind == "or" else "or", vector, mask)
            total = f.binary(kind, total, f.call(f"llvm.vector.reduce.{kind}.v{lanes}i1", "i1", [vector]))
        return total

    # Blocks

    def emit_op(self, op: Operation) -> None:
        if op.regions:
            self.settle(op)
        super().emit_op(op)

    def yielded(self, block: Block) -> list[Value]:
        self.pending, outside = [], self.pending
        found = super().yielded(block)
        self.pending = outside
        return found

    def settle(self, op: Operation) -> None:
        """Makes every vector that a nested block uses, in front of it."""
        for inner in op.walk():
            for operand in operands_of(inner):
                found = self.values.get(operand)
                if isinstance(found, RegisterTile):
                    found.all()

    def flat(self, found: Any) -> Sequence[Value]:
        return found.all() if isinstance(found, RegisterTile) else [found]

    def of_flat(self, value: SSAValue, rest: Iterator[Value]) -> Any:
        if not is_tile(value):
            return next(rest)
        shape, dtype, lanes = tile_type(value).get_shape(), tile_dtype(value), self.machine.lanes
        count = len(list(RegisterTile.of(shape, dtype, lanes, ()).positions))
        return RegisterTile.of(shape, dtype, lanes, some(count, rest))


def _layout(function: cpu.FuncOp) -> ArgumentBlockLayout:
    first, grid = argument_words(function.function_type.inputs.data)
    queues = grid + len(function.grid.data)
    words = queues + QUEUES
    if tile.records_prints(function):
        return ArgumentBlockLayout(first, grid, queues, words + 1, prints=words)
    return ArgumentBlockLayout(first, grid, queues, words)


def _in_once(op: Operation) -> bool:
    inner, outer = op, op.parent_op()
    while outer is not None and not isinstance(outer, cpu.ParallelOp):
        inner, outer = outer, outer.parent_op()
    if outer is None:
        return False
    assert isinstance(outer, cpu.ParallelOp)
    block = inner.parent_block()
    return block is outer.once.block


def _behind(values: Iterable[SSAValue]) -> set[SSAValue]:
    """Values, and all that they are made of."""
    found: set[SSAValue] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            waiting += operands_of(value.owner) if isinstance(value.owner, Operation) else ()
    return found


def _workspace_offsets(function: cpu.FuncOp) -> tuple[dict[Operation, int], int]:
    """The offset of each buffer in a thread's workspace, and where they end; `once` reserves its panels behind that."""
    offsets: dict[Operation, int] = {}
    end = 0
    for op in function.body.walk():
        if isinstance(op, cpu.BufferOp) or (isinstance(op, cpu.BorrowOp) and op.written):
            size = buffer_type(op.results[0]).size
        elif isinstance(op, cpu.ReserveOp) and not _in_once(op):
            count = op.count.owner
            assert isinstance(count, arith.ConstantOp), "only `once` reserves memory whose size is not known"
            assert isinstance(count.value, IntegerAttr)
            size = count.value.value.data * panels_type(op.result).size
        else:
            continue
        offsets[op] = end
        # Vectors may be read and written a little beyond the last element.
        end += rounded_up(size + LINE, LINE)
    return offsets, end


def configure_tiles(f: Function) -> None:
    """Gives every register its full size: 16 rows of 64 bytes."""
    words: list[int] = [1, 0, *[0] * 14, *([LINE, 0] * 8), *[0] * 16, *[TILE_ROWS] * 8, *[0] * 8]
    text = ", ".join(f"i8 {word}" for word in words)
    shape = f.module.define("tile_shape", f"private constant [64 x i8] [{text}], align 64")
    f.call("llvm.x86.ldtilecfg", "void", [shape])


def release_tiles(f: Function) -> None:
    f.call("llvm.x86.tilerelease", "void", [])


def flush_subnormals(f: Function, level: str) -> Value:
    """Takes subnormal numbers as zeros from here on, like the matrix unit does: sums of them take a hundred times as
    long. Gives the thread's own setting, or where it is kept."""
    if elements.is_arm(level):
        mode = f.call("llvm.aarch64.get.fpcr", "i64", [])
        f.call("llvm.aarch64.set.fpcr", "void", [f.binary("or", mode, 1 << 24)])
        return mode
    before, now = f.stack(4, 4), f.stack(4, 4)
    f.call("llvm.x86.sse.stmxcsr", "void", [before])
    f.store(f.binary("or", f.load("i32", before, align=4), 0x8040), now, align=4)
    f.call("llvm.x86.sse.ldmxcsr", "void", [now])
    return before


def restore_subnormals(f: Function, before: Value, level: str) -> None:
    """Undoes `flush_subnormals`."""
    f.call("llvm.aarch64.set.fpcr" if elements.is_arm(level) else "llvm.x86.sse.ldmxcsr", "void", [before])
