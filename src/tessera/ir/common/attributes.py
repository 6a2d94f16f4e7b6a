"""The `ts` dialect: attributes that all levels share."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TypeVar

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, Float64Type, FloatAttr, IntAttr, IntegerAttr, i64
from xdsl.ir import Data, Dialect, Region
from xdsl.irdl import IRDLOperation, eq, irdl_attr_definition
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tessera.dtypes.types import BY_NAME, NO_POLICY, DType, Policy
from tessera.errors import TesseraError
from tessera.ir.common.plain_classes import make_plain
from tessera.shapes.expr import Dim, Size, parse_dim

VERSION = 1
T = TypeVar("T")

make_plain()  # every dialect comes by here

# Constraints under which xDSL's declarative format prints `2` and `[0, 1]` without types.
IntegerConstraint = IntegerAttr.constr(type=eq(i64))
Integers = DenseArrayBase[I64]


def integer(value: int) -> IntegerAttr[I64]:
    return IntegerAttr(value, i64)


def integers(values: Sequence[int]) -> DenseArrayBase[I64]:
    return DenseArrayBase.from_list(i64, list(values))


def number(value: int | IntAttr) -> IntAttr:
    """A number as a parameter of a type."""
    return IntAttr(value) if isinstance(value, int) else value


def numbers(values: Sequence[int] | ArrayAttr[IntAttr]) -> ArrayAttr[IntAttr]:
    """Numbers as a parameter of a type."""
    return values if isinstance(values, ArrayAttr) else ArrayAttr(map(IntAttr, values))


class Verifying:
    """Makes errors of verification of what rules and tables refuse.

    A class of its own takes a fraction of the time of a generator, and every op is verified after every pass.
    """

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, TesseraError):
            raise VerifyException(error.message) from error


verifying = Verifying()


@irdl_attr_definition
class Name(Data[str]):
    """A row of a table, such as the function of an elementwise op: `<add>`."""

    name = "ts.name"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier(" for a name")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)


def parse_size(parser: AttrParser) -> Size:
    """`64`, `S`, or `"2*S + 1"`: quoted, because `//` starts a comment in IR text."""
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return number
    text = parser.parse_identifier_or_str_literal(" for a size, which is an integer, a symbol, or a quoted expression")
    try:
        parsed = parse_dim(text)
    except TesseraError as error:
        parser.raise_error(error.message)
    if (constant := parsed.constant) is None:
        return parsed
    return constant if constant >= 0 else parser.raise_error(f"a size is at least 0, got {constant}")


def print_size(printer: Printer, size: Size) -> None:
    text = str(size)
    printer.print_string(text if text.isidentifier() or text.isdecimal() else f'"{text}"')


@irdl_attr_definition
class SizesAttr(Data[tuple[Size, ...]]):
    """A tuple of symbolic sizes: `<[B, "2*S", 64]>`."""

    name = "ts.sizes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Size, ...]:
        with parser.in_angle_brackets():
            return cls.parse_bare(parser)

    @staticmethod
    def parse_bare(parser: AttrParser) -> tuple[Size, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_size(parser)))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.print_bare(printer)

    def print_bare(self, printer: Printer) -> None:
        with printer.in_square_brackets():
            printer.print_list(self.data, lambda size: print_size(printer, size))


def symbols_of(sizes: Iterable[Size]) -> frozenset[str]:
    """Every symbol in some sizes."""
    return frozenset(symbol for size in sizes if isinstance(size, Dim) for symbol in size.symbols)


@irdl_attr_definition
class PolicyAttr(Data[Policy]):
    """A numerics policy: `<accum(f32), saturate>`."""

    name = "ts.policy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Policy:
        with parser.in_angle_brackets():
            return cls.parse_bare(parser)

    @staticmethod
    def parse_bare(parser: AttrParser) -> Policy:
        policy = NO_POLICY
        parts = parser.parse_optional_undelimited_comma_separated_list(
            lambda: _parse_optional_policy(parser), lambda: _parse_policy(parser)
        )
        for part in parts or ():
            try:
                policy = policy @ part
            except TesseraError as error:
                parser.raise_error(error.message)
        return policy

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.print_bare(printer)

    def print_bare(self, printer: Printer) -> None:
        printer.print_string(str(self.data).replace(" @ ", ", "))


def _parse_optional_policy(parser: AttrParser) -> Policy | None:
    name = parser.parse_optional_identifier()
    return None if name is None else _parse_named_policy(parser, name)


def _parse_policy(parser: AttrParser) -> Policy:
    return _parse_named_policy(parser, parser.parse_identifier(" for a numerics policy"))


def _parse_named_policy(parser: AttrParser, name: str) -> Policy:
    def argument(parse: Callable[[], T]) -> T:
        with parser.in_parens():
            return parse()

    def parse_accumulator() -> DType:
        found = BY_NAME.get(parser.parse_identifier(" for an element type"))
        return found if found is not None else parser.raise_error("expected an element type, such as f32")

    readers: dict[str, Callable[[], Policy]] = {
        "stochastic_round": lambda: Policy(stochastic=True),
        "saturate": lambda: Policy(saturate=True),
        "accum": lambda: Policy(accum=argument(parse_accumulator)),
        "loss_scale": lambda: Policy(loss_scale=float(argument(parser.parse_number))),
        "scaled": lambda: Policy(scale_axis=argument(parser.parse_integer)),
    }
    if name not in readers:
        parser.raise_error(f"unknown policy {name}: expected {', '.join(readers)}")
    return readers[name]()


def finite_text(number: float) -> str:
    """The shortest text that reads back to the same bits; IR text wants a point before the exponent."""
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


@irdl_custom_directive
class Number(CustomDirective):
    """A float64 property in people's spelling: `0.1`, `-inf`, `nan`; other NaNs as their bits, `0x7ff8000000000001`."""

    value: AttributeVariable

    def is_anchorable(self) -> bool:
        return True

    def is_present(self, op: IRDLOperation) -> bool:
        return self.value.is_present(op)

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, FloatAttr(_parse_float(parser), Float64Type()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        attr = self.value.get(op)
        assert isa(attr, FloatAttr[Float64Type])
        number = attr.value.data
        state.print_whitespace(printer)
        if math.isfinite(number):
            printer.print_string(finite_text(number))
        elif struct.pack("<d", number) in _PLAIN:
            printer.print_string(str(number))
        else:
            printer.print_string("0x" + struct.pack(">d", number).hex())


def _parse_float(parser: Parser) -> float:
    start = parser.pos
    sign = 1.0 if parser.parse_optional_punctuation("-") is None else -1.0
    special = parser.parse_optional_keyword("inf") or parser.parse_optional_keyword("nan")
    if special is not None:
        return sign * float(special)
    number = parser.parse_number(allow_boolean=False)
    if isinstance(number, int) and parser.lexer.input.content[start : start + 2] == "0x":
        return struct.unpack("<d", number.to_bytes(8, "little"))[0]
    return sign * number


_PLAIN = frozenset(struct.pack("<d", number) for number in (math.inf, -math.inf, math.nan))


def print_body(printer: Printer, body: Region) -> None:
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)


Ts = Dialect("ts", [], [Name, SizesAttr, PolicyAttr])
