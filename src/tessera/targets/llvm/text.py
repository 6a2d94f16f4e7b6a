"""Writing LLVM's text: a module of functions, typed values, loops that carry values, and intrinsics declared on use."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

_BARE_NAME = re.compile(r"[A-Za-z$._-][A-Za-z0-9$._-]*")
_VECTOR = re.compile(r"<(\d+) x (.+)>")
_SUFFIXES = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}
_WIDTHS = {"float": 32, "double": 64, "half": 16, "bfloat": 16, "ptr": 64}


@cache
def shape_of(type_: str) -> tuple[int, str]:
    """Lanes and element of a type; a scalar has no lanes, written 0."""
    match = _VECTOR.fullmatch(type_)
    return (int(match[1]), match[2]) if match else (0, type_)


def symbol(name: str) -> str:
    """A name as LLVM reads it, after `@`; Python's names may hold more letters than LLVM's bare ones."""
    if _BARE_NAME.fullmatch(name):
        return name
    return f'"{"".join(f"{chr(92)}{byte:02X}" for byte in name.encode())}"'


def lanes_of(type_: str) -> int:
    return shape_of(type_)[0]


def element_of(type_: str) -> str:
    return shape_of(type_)[1]


def vector(lanes: int, element: str) -> str:
    """The type of `lanes` elements, or of a scalar when that is 0."""
    return f"<{lanes} x {element}>" if lanes else element


def like(type_: str, element: str) -> str:
    """As many lanes as `type_`, of another element."""
    return vector(lanes_of(type_), element)


@cache
def bits_of(type_: str) -> int:
    """The width of one element."""
    element = element_of(type_)
    return _WIDTHS[element] if element in _WIDTHS else int(element[1:])


@cache
def suffix_of(type_: str) -> str:
    """A type as intrinsics spell it: v16f32."""
    lanes, element = shape_of(type_)
    return (f"v{lanes}" if lanes else "") + _SUFFIXES.get(element, element)


@dataclass(frozen=True, slots=True)
class Value:
    """A name or a constant, and its type."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def number(value: float | bool, type_: str) -> Value:
    """A constant, the same in every lane; floats are rounded to the type by the caller's choice of value."""
    lanes, element = shape_of(type_)
    word = _word(value, element)
    if not lanes:
        return Value(word, type_)
    if word in ("0", "0x0000000000000000", "0xH0000", "0xR0000"):
        return Value("zeroinitializer", type_)
    return Value("<" + ", ".join([f"{element} {word}"] * lanes) + ">", type_)


Operand: TypeAlias = Value | float
"""A value, or a constant of the type that the first operand has."""


def of_type(type_: str, operand: Operand) -> Value:
    return operand if isinstance(operand, Value) else number(operand, type_)


def numbers(values: Sequence[float | int | bool], element: str) -> Value:
    """A constant vector."""
    words = ", ".join(f"{element} {_word(value, element)}" for value in values)
    return Value(f"<{words}>", vector(len(values), element))


def _word(value: float | bool, element: str) -> str:
    match element:
        case "float":
            return f"0x{struct.unpack('<Q', struct.pack('<d', _as_f32(value)))[0]:016X}"
        case "double":
            return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
        case "half":
            return f"0xH{struct.unpack('<H', struct.pack('<e', float(value)))[0]:04X}"
        case "bfloat":
            return f"0xR{struct.unpack('<I', struct.pack('<f', _as_f32(value)))[0] >> 16:04X}"
        case "ptr":
            return "null"
        case _:
            return str(int(value))


def _as_f32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def poison(type_: str) -> Value:
    return Value("poison", type_)


class Module:
    """Functions, constants and declarations, in the order they were asked for."""

    def __init__(self, *, short: bool = False) -> None:
        self.short = short
        """Whether code is to be short: what is long and written more than once is a function of its own then."""
        self._declarations: dict[str, None] = {}
        self._globals: dict[str, str] = {}
        self._functions: dict[str, Function] = {}

    def declare(self, text: str) -> None:
        self._declarations[text] = None

    def define(self, name: str, text: str) -> Value:
        """A global called `name`, of any kind, defined by `text`: `constant [64 x i8] zeroinitializer, align 64`."""
        self._globals[name] = text
        return Value(f"@{name}", "ptr")

    def function(
        self,
        name: str,
        arguments: Sequence[tuple[str, str]],
        *,
        returns: str = "void",
        internal: bool = True,
        attributes: str = "",
    ) -> Function:
        """A new function; arguments are (type with attributes, name). Internal ones are never inlined.

        `returns` may begin with a calling convention; `attributes` come on top of those that all functions have.
        """
        made = Function(self, name, arguments, returns, internal, attributes)
        self._functions[name] = made
        return made

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def text(self) -> str:
        parts = [*self._declarations, *(f"@{name} = {text}" for name, text in self._globals.items())]
        parts += [function.text() for function in self._functions.values()]
        parts.append('attributes #0 = { nounwind "no-trapping-math"="true" }')
        parts.append('attributes #1 = { nounwind noinline "no-trapping-math"="true" }')
        parts.append('!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}')
        parts.append('!2 = !{!"branch_weights", i32 1, i32 1000000}')
        return "\n".join(parts) + "\n"


class Function:
    """One function under construction: instructions go to the end of the current block."""

    def __init__(
        self,
        module: Module,
        name: str,
        arguments: Sequence[tuple[str, str]],
        returns: str,
        internal: bool,
        attributes: str = "",
    ) -> None:
        self.module = module
        self.name = name
        self.arguments = [Value(f"%{called}", _bare(type_)) for type_, called in arguments]
        self._head = ", ".join(f"{type_} %{called}" for type_, called in arguments)
        self._returns = returns
        self._internal = internal
        self._attributes = f" {attributes}" if attributes else ""
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self._entry: list[str] = []
        self.products: dict[str, tuple[Value, Value]] = {}
        """The factors of products that a sum may take with it, by their names."""

    def text(self) -> str:
        linkage, group = ("internal ", "#1") if self._internal else ("", "#0")
        body = "\n".join(["entry:", *self._entry, *self._lines])
        head = f"{linkage}{self._returns} @{symbol(self.name)}({self._head}) {group}{self._attributes}"
        return f"define {head} {{\n{body}\n}}"

    # Instructions

    def _fresh(self) -> str:
        self._count += 1
        return f"%.{self._count}"

    def do(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def op(self, type_: str, text: str) -> Value:
        made = Value(self._fresh(), type_)
        self._lines.append(f"  {made.name} = {text}")
        return made

    def binary(self, opcode: str, a: Value, b: Operand) -> Value:
        return self.op(a.type, f"{opcode} {a}, {of_type(a.type, b).name}")

    def compare(self, predicate: str, a: Value, b: Operand) -> Value:
        """`icmp` or `fcmp`, by the element."""
        opcode = "icmp" if element_of(a.type)[0] == "i" or a.type == "ptr" else "fcmp"
        return self.op(like(a.type, "i1"), f"{opcode} {predicate} {a}, {of_type(a.type, b).name}")

    def select(self, condition: Value, a: Value, b: Operand) -> Value:
        return self.op(a.type, f"select {condition}, {a}, {of_type(a.type, b)}")

    def convert(self, opcode: str, a: Value, element: str) -> Value:
        """`sext`, `fptrunc`, `bitcast` and their like, to another element with as many lanes."""
        to = like(a.type, element)
        return (
            a
            if opcode in ("bitcast", "trunc", "zext", "sext") and to == a.type
            else self.op(to, f"{opcode} {a} to {to}")
        )

    def call(self, name: str, returns: str, arguments: Sequence[Value], *, flags: str = "") -> Value:
        """A call of an external function or intrinsic, which is declared on the way."""
        types = ", ".join(argument.type for argument in arguments)
        self.module.declare(f"declare {returns} @{name}({types})")
        given = ", ".join(map(str, arguments))
        text = f"call {flags + ' ' if flags else ''}{returns} @{name}({given})"
        if returns != "void":
            return self.op(returns, text)
        self.do(text)
        return poison("void")

    def intrinsic(self, name: str, first: Value, *others: Operand, flags: str = "") -> Value:
        """An overloaded intrinsic of one type: `intrinsic("fma", a, b, c)` calls llvm.fma on that type."""
        type_ = first.type
        arguments = [first, *(of_type(type_, other) for other in others)]
        return self.call(f"llvm.{name}.{suffix_of(type_)}", type_, arguments, flags=flags)

    def invoke(self, function: Function | str, arguments: Sequence[Value]) -> None:
        """A call of a function of this module."""
        name = function if isinstance(function, str) else function.name
        self.do(f"call void @{name}({', '.join(map(str, arguments))})")

    def shuffle(self, a: Value, b: Value | None, indices: Sequence[int]) -> Value:
        """Lanes of `a` and then of `b`, picked by index; −1 leaves a lane undefined."""
        mask = ", ".join("i32 poison" if index < 0 else f"i32 {index}" for index in indices)
        other = poison(a.type) if b is None else b
        to = vector(len(indices), element_of(a.type))
        return self.op(to, f"shufflevector {a}, {other}, <{len(indices)} x i32> <{mask}>")

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A scalar in every lane."""
        if not lanes:
            return scalar
        if not scalar.name.startswith("%"):
            return Value("<" + ", ".join([str(scalar)] * lanes) + ">", vector(lanes, scalar.type))
        type_ = vector(lanes, scalar.type)
        first = self.op(type_, f"insertelement {type_} poison, {scalar}, i32 0")
        return self.op(type_, f"shufflevector {first}, {type_} poison, <{lanes} x i32> zeroinitializer")

    def lane(self, a: Value, index: int) -> Value:
        return self.op(element_of(a.type), f"extractelement {a}, i32 {index}")

    def insert(self, a: Value, scalar: Value, index: int) -> Value:
        return self.op(a.type, f"insertelement {a}, {scalar}, i32 {index}")

    # Memory

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The pointer `offset` bytes further on."""
        if isinstance(offset, int):
            return pointer if offset == 0 else self.op(pointer.type, f"getelementptr i8, {pointer}, i64 {offset}")
        return self.op(pointer.type, f"getelementptr i8, {pointer}, {offset}")

    def load(self, type_: str, pointer: Value, *, align: int) -> Value:
        return self.op(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, value: Value, pointer: Value, *, align: int) -> None:
        self.do(f"store {value}, {pointer}, align {align}")

    def masked_load(self, type_: str, pointer: Value, mask: Value, otherwise: Value, *, align: int) -> Value:
        name = f"llvm.masked.load.{suffix_of(type_)}.p0"
        self.module.declare(f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
        return self.op(type_, f"call {type_} @{name}(ptr align {align} {pointer.name}, {mask}, {otherwise})")

    def masked_store(self, value: Value, pointer: Value, mask: Value, *, align: int) -> None:
        name = f"llvm.masked.store.{suffix_of(value.type)}.p0"
        self.module.declare(f"declare void @{name}({value.type}, ptr, {mask.type})")
        self.do(f"call void @{name}({value}, ptr align {align} {pointer.name}, {mask})")

    def prefetch(self, pointer: Value, *, write: bool = False, locality: int = 3) -> None:
        self.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0({pointer}, i32 {int(write)}, i32 {locality}, i32 1)")

    def stack(self, size: int, align: int = 64) -> Value:
        """Memory of this call, `size` bytes."""
        name = self._fresh()
        self._entry.append(f"  {name} = alloca [{size} x i8], align {align}")
        return Value(name, "ptr")

    def together(self, values: Sequence[Value]) -> Value:
        """Values as the lanes of a vector; one by itself stays a scalar."""
        if len(values) == 1:
            return values[0]
        found = poison(vector(len(values), values[0].type))
        for index, value in enumerate(values):
            found = self.insert(found, value, index)
        return found

    # Truths

    def all_of(self, conditions: Iterable[Value | None]) -> Value | None:
        """All of some conditions; None is one that always holds."""
        found: Value | None = None
        for condition in conditions:
            if condition is not None:
                found = condition if found is None else self.binary("and", found, condition)
        return found

    def divides(self, size: int, value: Value) -> Value:
        """Whether a value is a multiple of a power of two."""
        return self.compare("eq", self.binary("and", value, size - 1), 0)

    # Whole numbers

    def add(self, a: Value, b: Value | int) -> Value:
        if b == 0:
            return a
        return self.op(a.type, f"add {a}, {b if isinstance(b, int) else b.name}")

    def subtract(self, a: Value, b: Value | int) -> Value:
        if b == 0:
            return a
        return self.op(a.type, f"sub {a}, {b if isinstance(b, int) else b.name}")

    def times(self, a: Value, b: Value | int) -> Value:
        if b == 1:
            return a
        return self.op(a.type, f"mul {a}, {b if isinstance(b, int) else b.name}")

    # Control

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    def jump(self, name: str) -> None:
        self.do(f"br label %{name}")

    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int,
        initial: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value] | None],
        *,
        runs: bool = False,
    ) -> list[Value]:
        """A counted loop that carries values. `runs` promises an iteration at least, which saves the test before it."""
        self._count += 1
        number_ = self._count
        type_ = start.type if isinstance(start, Value) else "i64"
        top, out, before = f"top{number_}", f"out{number_}", self._block
        if not runs:
            guard = self.op("i1", f"icmp slt {type_} {_plain(start)}, {_plain(stop)}")
            self.do(f"br {guard}, label %{top}, label %{out}")
        else:
            self.jump(top)
        self.label(top)
        hole = len(self._lines)
        self._lines.append("")
        index = Value(f"%index{number_}", type_)
        carried = [Value(self._fresh(), value.type) for value in initial]
        found = list(body(index, carried) or ())
        following = self.op(type_, f"add nsw {type_} {index.name}, {_plain(step)}")
        again = self.op("i1", f"icmp slt {following}, {_plain(stop)}")
        end = self._block
        self.do(f"br {again}, label %{top}, label %{out}, !llvm.loop !0")
        starts = [of_type(type_, start), *initial]
        self._lines[hole] = _phis([index, *carried], starts, before, [following, *found], end)
        self.label(out)
        return found if runs else self._merged(initial, before, found, end)

    def repeat(
        self,
        initial: Sequence[Value],
        test: Callable[[list[Value]], tuple[Value, Sequence[Value]]],
        body: Callable[[list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """`while`: `test` gives a condition and values, which go to `body` where it holds, and out where it fails."""
        self._count += 1
        top, again, out = f"test{self._count}", f"again{self._count}", f"out{self._count}"
        before = self._block
        self.jump(top)
        self.label(top)
        hole = len(self._lines)
        self._lines.append("")
        carried = [Value(self._fresh(), value.type) for value in initial]
        condition, handed = test(carried)
        self.do(f"br {condition}, label %{again}, label %{out}")
        self.label(again)
        found = list(body(list(handed)))
        end = self._block
        self.do(f"br label %{top}, !llvm.loop !0")
        self._lines[hole] = _phis(carried, initial, before, found, end)
        self.label(out)
        return list(handed)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] | None = None,
        *,
        rare: bool = False,
    ) -> list[Value]:
        """`if`: both sides give values of the same types. `rare` says that the condition hardly ever holds."""
        self._count += 1
        yes, no, end = f"yes{self._count}", f"no{self._count}", f"end{self._count}"
        self.do(f"br {condition}, label %{yes}, label %{no}{', !prof !2' if rare else ''}")
        self.label(yes)
        first = list(then() or ())
        left = self._block
        self.jump(end)
        self.label(no)
        second = list(otherwise() or ()) if otherwise else []
        right = self._block
        self.jump(end)
        self.label(end)
        return self._merged(first, left, second, right)

    def _merged(self, first: Sequence[Value], left: str, second: Sequence[Value], right: str) -> list[Value]:
        """Values where two blocks meet."""
        return [self.op(a.type, _phi(a, left, b, right)) for a, b in zip(first, second, strict=True)]

    def give(self, value: Value | None = None) -> None:
        self.do("ret void" if value is None else f"ret {value}")


def _bare(type_: str) -> str:
    """A type without the attributes behind it."""
    return type_[: type_.index(">") + 1] if type_.startswith("<") else type_.split(maxsplit=1)[0]


def _phi(a: Value, left: str, b: Value, right: str) -> str:
    """One of two values, by the block that was left."""
    return f"phi {a.type} [ {a.name}, %{left} ], [ {b.name}, %{right} ]"


def _phis(names: Sequence[Value], first: Sequence[Value], before: str, last: Sequence[Value], end: str) -> str:
    """What a loop carries: as it begins, and as its body leaves it."""
    lines = zip(names, first, last, strict=True)
    return "\n".join(f"  {name.name} = {_phi(a, before, b, end)}" for name, a, b in lines)


def _plain(value: Value | int) -> str:
    return str(value) if isinstance(value, int) else value.name
