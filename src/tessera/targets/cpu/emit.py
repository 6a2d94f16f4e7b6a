"""cpu level → LLVM text: one rule per op, from a table. A value is a number, a view, memory, or a register tile.

A kernel becomes three functions: the work of one thread, `NAME.workspace`, which says how many bytes of scratch memory
a thread needs for given arguments, and nothing else that outsiders call. Arguments come in a block of words; `Layout`
says which word is what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tessera.dialects import tile
from tessera.dialects.elements import dtype_of
from tessera.dialects.locations import span_of
from tessera.dialects.tile_types import ViewType, tile_dtype, tile_type
from tessera.dtypes.casting import cast as cast_array
from tessera.dtypes.types import DType, bool_, f32, f64
from tessera.errors import CompileError
from tessera.targets.cpu import dialect as cpu
from tessera.targets.cpu.cpu_types import LINE, BufferType, PanelsType, buffer_type, panels_type, rounded_up
from tessera.targets.cpu.registers import RegisterTile
from tessera.targets.llvm import casts, elements, elementwise
from tessera.targets.llvm.text import Function, Module, Value, number

COUNTER, STATUS, DETAILS, FIRST_ARGUMENT = 0, 8, 16, 64
"""Bytes into the block of arguments: the work queue's counter, what went wrong, details of that, the arguments."""

OpT = TypeVar("OpT", bound=Operation)
Rule = Callable[["Emitter", OpT], None]
RULES: dict[type[Operation], Rule[Any]] = {}


def emits(kind: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the rule of one op."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        assert kind not in RULES, f"{kind.name} has two rules"
        RULES[kind] = rule
        return rule

    return register


@dataclass(frozen=True)
class Machine:
    """What code is made for: an instruction-set level and how many 32-bit lanes its vectors have."""

    level: str
    lanes: int
    contract: bool = True
    """Whether a product and a sum may become one instruction, which rounds once."""


@dataclass(frozen=True)
class View:
    """Memory of an argument: where it starts, its sizes and strides in elements."""

    pointer: Value
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    dtype: DType


@dataclass(frozen=True)
class Memory:
    """A buffer or panels."""

    pointer: Value
    type: BufferType | PanelsType


@dataclass
class Layout:
    """Words of the argument block, from `FIRST_ARGUMENT` on: for a view its pointer, sizes and strides."""

    first: list[int] = field(default_factory=list[int])
    grid: int = 0
    threads_hint: int = 0
    words: int = 0


@dataclass(frozen=True)
class Emitted:
    """The text, and what a launcher has to know."""

    text: str
    layout: Layout
    messages: tuple[str, ...]
    """What went wrong when the status is 1, 2, …"""


def emit(module: ModuleOp, name: str, machine: Machine) -> Emitted:
    """The LLVM text of one cpu function."""
    function = next(
        op for op in module.body.block.ops if isinstance(op, cpu.FuncOp) and op.sym_name.data == name
    )
    return Emitter(function, machine).emit()


class Emitter:
    """Writes one kernel."""

    def __init__(self, function: cpu.FuncOp, machine: Machine) -> None:
        self.source = function
        self.machine = machine
        self.module = Module()
        self.messages: dict[str, int] = {}
        self.layout = _layout(function)
        self.values: dict[SSAValue, Any] = {}
        self.places, self.static_size = _places(function)
        self.pending: list[tuple[object, RegisterTile]] = []
        self.f: Function
        self.cursor: Value | None = None

    def emit(self) -> Emitted:
        name = self.source.sym_name.data
        self.f = self.module.function(
            name,
            [("ptr noalias", "args"), ("i64", "thread"), ("i64", "threads"), ("ptr noalias", "workspace")],
            returns="i64",
            internal=False,
        )
        self.args, _, self.threads, self.workspace = self.f.arguments
        self.bind_arguments()
        matrix = any(isinstance(op, cpu.MatmulOp) for op in self.source.body.walk())
        if matrix:
            emit_matrix.configure(self)
        self.block(self.source.body.block)
        if matrix:
            emit_matrix.release(self)
        self.f.give(number(0, "i64"))
        self._workspace_function(name)
        return Emitted(self.module.text(), self.layout, tuple(self.messages))

    def bind_arguments(self) -> None:
        for argument, first in zip(self.source.arguments, self.layout.first, strict=True):
            self.values[argument] = self._argument(argument.type, first)

    def _argument(self, type_: Attribute, first: int) -> View | Value:
        def word(place: int, kind: str = "i64") -> Value:
            return self.f.load(kind, self.f.at(self.args, FIRST_ARGUMENT + 8 * (first + place)), align=8)

        if isinstance(type_, ViewType):
            rank = type_.rank.data
            sizes = tuple(word(1 + axis) for axis in range(rank))
            strides = tuple(word(1 + rank + axis) for axis in range(rank))
            return View(word(0, "ptr"), sizes, strides, type_.dtype)
        dtype = dtype_of(type_)
        memory = elements.memory_type(dtype, 0)
        return elements.to_register(self.f, word(0, memory), dtype)

    def _workspace_function(self, name: str) -> None:
        """How many bytes a thread needs: the buffers, and what `once` reserves for these arguments."""
        self.f = self.module.function(
            f"{name}.workspace", [("ptr noalias", "args")], returns="i64", internal=False
        )
        (self.args,) = self.f.arguments
        self.values = {}
        self.pending = []
        self.bind_arguments()
        total = number(rounded_up(self.static_size, LINE), "i64")
        for op in self.source.body.walk():
            if isinstance(op, cpu.ParallelOp):
                self.values[op.once.block.args[0]] = number(0, "i64")
            elif isinstance(op, cpu.ReserveOp) and _in_once(op):
                total = self.f.add(total, self.f.times(self.number(op.count), panels_type(op.result).size))
            elif _is_plain(op) and all(operand in self.values for operand in op.operands):
                RULES[type(op)](self, op)
        self.f.give(total)

    # Values

    def number(self, value: SSAValue) -> Value:
        found = self.values[value]
        assert isinstance(found, Value), value
        return found

    def view(self, value: SSAValue) -> View:
        found = self.values[value]
        assert isinstance(found, View), value
        return found

    def memory(self, value: SSAValue) -> Memory:
        found = self.values[value]
        assert isinstance(found, Memory), value
        return found

    def tile(self, value: SSAValue) -> RegisterTile:
        found = self.values[value]
        assert isinstance(found, RegisterTile), value
        return found

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

    def report(self, message: str, details: Sequence[Value] = ()) -> None:
        """Notes that something went wrong, unless something did before."""
        code = self.messages.setdefault(message, len(self.messages) + 1)
        place = self.f.at(self.args, STATUS)
        pair = self.f.op("{ i64, i1 }", f"cmpxchg {place}, i64 0, i64 {code} monotonic monotonic")
        won = self.f.op("i1", f"extractvalue {{ i64, i1 }} {pair.name}, 1")

        def write() -> Sequence[Value]:
            for place, detail in enumerate(details[:6]):
                self.f.store(detail, self.f.at(self.args, DETAILS + 8 * place), align=8)
            return []

        self.f.branch(won, write)

    # Blocks

    def block(self, block: Block) -> Operation:
        """Emits the ops of a block up to its terminator, which is given back."""
        for op in block.ops:
            if op is block.last_op:
                return op
            rule = RULES.get(type(op))
            if rule is None:
                raise CompileError(
                    f"{op.name} has no machine code for CPUs",
                    span=span_of(op.location),
                    hint="run the kernel in the interpreter: TESSERA_INTERPRET=1",
                )
            if op.regions:
                self.settle(op)
            rule(self, op)
        raise AssertionError("a block without a terminator")

    def settle(self, op: Operation) -> None:
        """Makes every vector that a nested block uses, in front of it."""
        for inner in op.walk():
            for operand in inner.operands:
                found = self.values.get(operand)
                if isinstance(found, RegisterTile):
                    found.all()

    def carried(self, values: Sequence[SSAValue]) -> list[Value]:
        """Values as a flat list for a loop or branch to carry."""
        flat: list[Value] = []
        for value in values:
            found = self.values[value]
            flat += found.all() if isinstance(found, RegisterTile) else [found]
        return flat

    def bind_carried(self, values: Sequence[SSAValue], flat: Sequence[Value]) -> None:
        """The other way round."""
        rest = list(flat)
        for value in values:
            if isinstance(value.type, TensorType):
                shape, dtype, lanes = tile_type(value).get_shape(), tile_dtype(value), self.machine.lanes
                count = len(list(RegisterTile.of(shape, dtype, lanes, ()).places))
                self.values[value] = RegisterTile.of(shape, dtype, lanes, rest[:count])
                del rest[:count]
            else:
                self.values[value] = rest.pop(0)


def _layout(function: cpu.FuncOp) -> Layout:
    layout = Layout()
    for type_ in function.function_type.inputs:
        layout.first.append(layout.words)
        layout.words += 1 + 2 * type_.rank.data if isinstance(type_, ViewType) else 1
    layout.grid = layout.words
    layout.words += len(function.grid.data)
    return layout


def _in_once(op: Operation) -> bool:
    inner, outer = op, op.parent_op()
    while outer is not None and not isinstance(outer, cpu.ParallelOp):
        inner, outer = outer, outer.parent_op()
    if outer is None:
        return False
    assert isinstance(outer, cpu.ParallelOp)
    block = inner.parent_block()
    return block is outer.once.block


def _is_plain(op: Operation) -> bool:
    """Whether an op is scalar arithmetic, free of effects."""
    return type(op) in _PLAIN


# Scalars

_INTEGER: Mapping[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
}
_EXTREMES: Mapping[type[Operation], str] = {arith.MinSIOp: "smin", arith.MaxSIOp: "smax"}
_FLOAT: Mapping[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MulfOp: "mul",
    arith.DivfOp: "div",
    arith.NegfOp: "neg",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
}
_CASTS = (arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.FPToSIOp)
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_ORDERED = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}


def constant(value: float | bool, dtype: DType, lanes: int = 0) -> Value:
    """A number of a type as registers hold it, rounded to it."""
    type_ = elements.register_type(dtype, lanes)
    if not dtype.is_float:
        return number(int(value), type_)
    import numpy as np

    rounded = cast_array(np.asarray(value, np.float64), f64, dtype)
    if dtype.base in (f32, f64) or type_.endswith("float") or type_.endswith("float>"):
        return number(float(rounded), type_)
    return number(int(rounded.view(f"u{rounded.dtype.itemsize}")), type_)


@emits(arith.ConstantOp)
def _constant(emitter: Emitter, op: arith.ConstantOp) -> None:
    assert isinstance(op.value, IntegerAttr | FloatAttr)
    data: float | int = op.value.value.data
    type_ = op.result.type
    emitter.values[op.result] = (
        number(data, "i64") if isinstance(type_, IndexType) else constant(data, dtype_of(type_))
    )


def _integer_rule(opcode: str) -> Rule[Operation]:
    def rule(emitter: Emitter, op: Operation) -> None:
        a, b = (emitter.number(operand) for operand in op.operands)
        emitter.values[op.results[0]] = folded(emitter.f, opcode, a, b)

    return rule


_FOLDS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def folded(f: Function, opcode: str, a: Value, b: Value) -> Value:
    """Whole-number arithmetic; on constants, the constant."""
    left, right = literal(a), literal(b)
    if opcode in _FOLDS:
        if left is not None and right is not None:
            return number(_FOLDS[opcode](left, right), a.type)
        if right == 0 and opcode in ("add", "sub"):
            return a
        if left == 0 and opcode == "add":
            return b
        if (right == 1 or left == 0) and opcode == "mul":
            return a
        if (left == 1 or right == 0) and opcode == "mul":
            return b
    return f.binary(opcode, a, b)


def literal(value: Value) -> int | None:
    """The number a value is known to be."""
    return int(value.name) if value.name.lstrip("-").isdecimal() else None


def _extreme_rule(name: str) -> Rule[Operation]:
    def rule(emitter: Emitter, op: Operation) -> None:
        a, b = (emitter.number(operand) for operand in op.operands)
        emitter.values[op.results[0]] = emitter.f.intrinsic(name, a, b)

    return rule


def _float_rule(name: str) -> Rule[Operation]:
    def rule(emitter: Emitter, op: Operation) -> None:
        dtype = dtype_of(op.results[0].type)
        operands = [emitter.number(operand) for operand in op.operands]
        emitter.values[op.results[0]] = elementwise.apply(
            emitter.f, name, operands, [dtype] * len(operands), dtype, emitter.machine.level
        )

    return rule


for _kind, _opcode in _INTEGER.items():
    emits(_kind)(_integer_rule(_opcode))
for _kind, _opcode in _EXTREMES.items():
    emits(_kind)(_extreme_rule(_opcode))
for _kind, _opcode in _FLOAT.items():
    emits(_kind)(_float_rule(_opcode))


def _division(emitter: Emitter, op: Operation) -> tuple[Value, Value]:
    """The operands of a division, the divisor never 0: a program that divides by 0 is reported, and not trapped."""
    a, b = (emitter.number(operand) for operand in op.operands)
    if literal(b) not in (None, 0):
        return a, b
    zero = emitter.f.compare("eq", b, number(0, b.type))

    def wrong() -> Sequence[Value]:
        emitter.report(_said("divides by zero", op))
        return []

    emitter.f.branch(zero, wrong)
    return a, emitter.f.select(zero, number(1, b.type), b)


def _said(message: str, op: Operation) -> str:
    span = span_of(op.location)
    return f"{span}: {message}" if span is not None else message


@emits(arith.DivSIOp)
def _divide(emitter: Emitter, op: arith.DivSIOp) -> None:
    emitter.values[op.result] = emitter.f.binary("sdiv", *_division(emitter, op))


@emits(arith.RemSIOp)
def _remainder(emitter: Emitter, op: arith.RemSIOp) -> None:
    emitter.values[op.result] = emitter.f.binary("srem", *_division(emitter, op))


def _floor_quotient(f: Function, a: Value, b: Value) -> Value:
    quotient = f.binary("sdiv", a, b)
    rest = f.binary("sub", a, f.binary("mul", quotient, b))
    inexact = f.compare("ne", rest, number(0, a.type))
    opposed = f.compare("slt", f.binary("xor", a, b), number(0, a.type))
    down = f.convert("zext", f.binary("and", inexact, opposed), a.type)
    return f.binary("sub", quotient, down)


@emits(arith.FloorDivSIOp)
def _floor_divide(emitter: Emitter, op: arith.FloorDivSIOp) -> None:
    a, b = _division(emitter, op)
    emitter.values[op.result] = a if literal(b) == 1 else _floor_quotient(emitter.f, a, b)


@emits(arith.CeilDivSIOp)
def _ceil_divide(emitter: Emitter, op: arith.CeilDivSIOp) -> None:
    a, b = _division(emitter, op)
    f = emitter.f
    negative = f.binary("sub", number(0, a.type), a)
    emitter.values[op.result] = f.binary("sub", number(0, a.type), _floor_quotient(f, negative, b))


@emits(arith.CmpiOp)
def _compare_integers(emitter: Emitter, op: arith.CmpiOp) -> None:
    a, b = emitter.number(op.lhs), emitter.number(op.rhs)
    emitter.values[op.result] = emitter.f.compare(_PREDICATES[op.predicate.value.data], a, b)


@emits(arith.CmpfOp)
def _compare_floats(emitter: Emitter, op: arith.CmpfOp) -> None:
    dtype = dtype_of(op.lhs.type)
    operands = [emitter.number(op.lhs), emitter.number(op.rhs)]
    name = _ORDERED[op.predicate.value.data]
    emitter.values[op.result] = elementwise.apply(
        emitter.f, name, operands, [dtype, dtype], bool_, emitter.machine.level
    )


@emits(arith.SelectOp)
def _select(emitter: Emitter, op: arith.SelectOp) -> None:
    condition, first, second = (emitter.number(operand) for operand in op.operands)
    emitter.values[op.result] = emitter.f.select(condition, first, second)


def _cast_rule(emitter: Emitter, op: Operation) -> None:
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    emitter.values[op.results[0]] = casts.cast(
        emitter.f, emitter.number(op.operands[0]), source, target, emitter.machine.level
    )


for _kind in _CASTS:
    emits(_kind)(_cast_rule)


def _integer_cast_rule(emitter: Emitter, op: Operation) -> None:
    given, to = emitter.number(op.operands[0]), op.results[0].type
    width = 64 if isinstance(to, IndexType) else dtype_of(to).bits
    source = int(given.type[1:])
    if width == source:
        emitter.values[op.results[0]] = given
        return
    # i1 is 0 or 1; 4-bit integers are kept in 8 bits.
    opcode = "trunc" if width < source else "zext" if source == 1 else "sext"
    emitter.values[op.results[0]] = emitter.f.convert(opcode, given, f"i{max(width, 8) if width > 1 else 1}")


for _kind in (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp):
    emits(_kind)(_integer_cast_rule)

_PLAIN = frozenset(RULES) | {tile.DimOp, tile.StrideOp, tile.ViewOp, cpu.GridOp}


# Control


@emits(scf.ForOp)
def _for(emitter: Emitter, op: scf.ForOp) -> None:
    start, stop, step = (emitter.number(value) for value in (op.lb, op.ub, op.step))
    first, last = literal(start), literal(stop)
    body = op.body.block

    def run(index: Value, carried: list[Value]) -> Sequence[Value]:
        emitter.pending, outside = [], emitter.pending
        emitter.values[body.args[0]] = index
        emitter.bind_carried(body.args[1:], carried)
        end = emitter.block(body)
        found = emitter.carried(end.operands)
        emitter.pending = outside
        return found

    initial = emitter.carried(op.iter_args)
    runs = first is not None and last is not None and first < last
    if runs and (every := literal(step)) is not None and first + every >= last:
        found = run(start, initial)
    else:
        found = emitter.f.loop(start, stop, step, initial, run, runs=runs)
    emitter.bind_carried(op.results, found)


@emits(scf.IfOp)
def _if(emitter: Emitter, op: scf.IfOp) -> None:
    def side(region: Any) -> Callable[[], Sequence[Value]]:
        def run() -> Sequence[Value]:
            if not region.blocks:
                return []
            emitter.pending, outside = [], emitter.pending
            end = emitter.block(region.block)
            found = emitter.carried(end.operands)
            emitter.pending = outside
            return found

        return run

    condition = emitter.number(op.cond)
    emitter.bind_carried(op.results, emitter.f.branch(condition, side(op.true_region), side(op.false_region)))


@emits(cpu.GridOp)
def _grid(emitter: Emitter, op: cpu.GridOp) -> None:
    word = FIRST_ARGUMENT + 8 * (emitter.layout.grid + op.axis.value.data)
    emitter.values[op.result] = emitter.f.load("i64", emitter.f.at(emitter.args, word), align=8)


SHARE = 4
"""Pieces of work per thread: enough that one which is late delays the others little."""


@emits(cpu.ParallelOp)
def _parallel(emitter: Emitter, op: cpu.ParallelOp) -> None:
    """A queue of pieces: each is a run of inner indices for one outer index."""
    f = emitter.f
    outer, inner = emitter.number(op.outer), emitter.number(op.inner)
    once, body = op.once.block, op.body.block
    wanted = f.times(emitter.threads, SHARE)
    least = f.intrinsic("smax", outer, number(1, "i64"))
    cuts = f.binary("sdiv", f.subtract(f.add(wanted, least), 1), least)
    cuts = f.intrinsic("smax", f.intrinsic("smin", cuts, inner), number(1, "i64"))
    alone = f.compare("eq", emitter.threads, number(1, "i64"))
    cuts = f.select(alone, number(1, "i64"), cuts)
    length = f.binary("sdiv", f.subtract(f.add(inner, cuts), 1), cuts)
    pieces = f.binary("mul", outer, cuts)
    # What `once` yields is kept in memory between pieces.
    end = once.last_op
    assert isinstance(end, cpu.YieldOp)
    kept = f.stack(8 * max(1, len(end.values)), 8)
    last = f.stack(8, 8)
    f.store(number(-1, "i64"), last, align=8)
    top, work, out = (f"{name}{len(emitter.values)}" for name in ("queue", "work", "done"))
    f.jump(top)
    f.label(top)
    counter = f.at(emitter.args, COUNTER)
    piece = f.op("i64", f"atomicrmw add {counter}, i64 1 monotonic")
    f.do(f"br {f.compare('slt', piece, pieces)}, label %{work}, label %{out}")
    f.label(work)
    here = f.binary("sdiv", piece, cuts)
    cut = f.subtract(piece, f.binary("mul", here, cuts))

    def prepare() -> Sequence[Value]:
        f.store(here, last, align=8)
        emitter.values[once.args[0]] = here
        emitter.cursor = f.at(emitter.workspace, emitter.static_size)
        emitter.block(once)
        for place, value in enumerate(end.values):
            found = emitter.values[value]
            word = found.pointer if isinstance(found, Memory) else found
            f.store(word, f.at(kept, 8 * place), align=8)
        emitter.cursor = None
        return []

    if list(once.ops) != [end]:
        f.branch(f.compare("ne", f.load("i64", last, align=8), here), prepare)
    emitter.values[body.args[0]] = here
    for place, (argument, value) in enumerate(zip(body.args[2:], end.values, strict=True)):
        where = f.at(kept, 8 * place)
        if isinstance(value.type, BufferType | PanelsType):
            emitter.values[argument] = Memory(f.load("ptr", where, align=8), value.type)
        else:
            emitter.values[argument] = f.load("i64", where, align=8)
    start = f.binary("mul", cut, length)
    stop = f.intrinsic("smin", f.add(start, length), inner)

    def run(index: Value, _: list[Value]) -> Sequence[Value]:
        emitter.values[body.args[1]] = index
        emitter.block(body)
        return []

    f.loop(start, stop, 1, [], run)
    f.jump(top)
    f.label(out)


def _places(function: cpu.FuncOp) -> tuple[dict[Operation, int], int]:
    """Where in a thread's workspace each buffer lies, and where they end; `once` reserves its panels behind that."""
    places: dict[Operation, int] = {}
    end = 0
    for op in function.body.walk():
        if isinstance(op, cpu.BufferOp):
            size = buffer_type(op.result).size
        elif isinstance(op, cpu.ReserveOp) and not _in_once(op):
            count = op.count.owner
            assert isinstance(count, arith.ConstantOp), "only `once` reserves memory whose size is not known"
            assert isinstance(count.value, IntegerAttr)
            size = count.value.value.data * panels_type(op.result).size
        else:
            continue
        places[op] = end
        # Vectors may be read and written a little beyond the last element.
        end += rounded_up(size + LINE, LINE)
    return places, end


@emits(cpu.BufferOp)
def _buffer(emitter: Emitter, op: cpu.BufferOp) -> None:
    emitter.values[op.result] = Memory(emitter.f.at(emitter.workspace, emitter.places[op]), buffer_type(op.result))


@emits(cpu.ReserveOp)
def _reserve(emitter: Emitter, op: cpu.ReserveOp) -> None:
    type_ = panels_type(op.result)
    if op in emitter.places:
        emitter.values[op.result] = Memory(emitter.f.at(emitter.workspace, emitter.places[op]), type_)
        return
    assert emitter.cursor is not None
    emitter.values[op.result] = Memory(emitter.cursor, type_)
    emitter.cursor = emitter.f.at(emitter.cursor, emitter.f.times(emitter.number(op.count), type_.size))


# The other rules register themselves; they need what is above.
from tessera.targets.cpu import emit_matrix, emit_memory, emit_packs, emit_tiles  # noqa: E402, F401
