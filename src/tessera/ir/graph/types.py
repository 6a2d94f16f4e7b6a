"""Types and constants of the graph dialect: tensors with symbolic sizes and numerics policies."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.ir import Attribute, BlockArgument, Data, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.casting import cast
from tessera.dtypes.types import NO_POLICY, DType, Kind, f64, i64, tf32, u64
from tessera.errors import TesseraError
from tessera.ir.common.attributes import PolicyAttr, SizesAttr, finite_text, verifying
from tessera.ir.common.elements import dtype_of, element_of, is_element
from tessera.ir.common.locations import span_of
from tessera.shapes.expr import Size, shape_of

Array = np.ndarray[Any, np.dtype[Any]]


@irdl_attr_definition
class GraphTensorType(ParametrizedAttribute, TypeAttribute):
    """`!graph.tensor<[B, "2*S", 64], bf16, accum(f32)>`: sizes, element type, policy."""

    name = "graph.tensor"

    sizes: SizesAttr
    element: Attribute
    policy: PolicyAttr

    @staticmethod
    def of(sizes: Sequence[int | str | Size], dtype: DType) -> GraphTensorType:
        return GraphTensorType(SizesAttr(shape_of(sizes)), element_of(dtype), PolicyAttr(dtype.policy))

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.sizes.data

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element).with_policy(self.policy.data)

    def with_shape(self, sizes: Sequence[Size]) -> GraphTensorType:
        return GraphTensorType(SizesAttr(tuple(sizes)), self.element, self.policy)

    def with_dtype(self, dtype: DType) -> GraphTensorType:
        return GraphTensorType(self.sizes, element_of(dtype), PolicyAttr(dtype.policy))

    def verify(self) -> None:
        if not is_element(self.element):
            raise VerifyException(f"{self.element} is not a Tessera element type")
        with verifying:
            _ = self.dtype, shape_of(self.shape)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes = SizesAttr.parse_bare(parser)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            policy = NO_POLICY
            if parser.parse_optional_punctuation(",") is not None:
                policy = PolicyAttr.parse_bare(parser)
                if policy == NO_POLICY:
                    parser.raise_error("expected a numerics policy after the comma")
            return SizesAttr(sizes), element, PolicyAttr(policy)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.sizes.print_bare(printer)
            printer.print_string(", ")
            printer.print_attribute(self.element)
            if self.policy.data != NO_POLICY:
                printer.print_string(", ")
                self.policy.print_bare(printer)


def graph_type(value: SSAValue) -> GraphTensorType:
    if not isinstance(value.type, GraphTensorType):
        raise VerifyException(f"expected a graph tensor, got {value.type}")
    return value.type


_STORY_LENGTH = 6


def story_of(*values: SSAValue) -> tuple[str, ...]:
    """How values came to have their shapes: the ops behind each, oldest first."""
    return tuple(dict.fromkeys(line for value in values for line in reversed(list(_steps_back(value)))))


def _steps_back(value: SSAValue) -> Iterator[str]:
    for _ in range(_STORY_LENGTH):
        if isinstance(value, BlockArgument):
            yield f"argument {value.index} is {value.type}"
            return
        op = value.owner
        assert isinstance(op, Operation)
        span = span_of(op.location)
        location = f" ({span})" if span is not None else ""
        yield f"{op.name} gives {value.type}{location}"
        if not op.operands:
            return
        value = op.operands[0]


@contextmanager
def telling(*operands: SSAValue) -> Generator[None]:
    """Lets an error about operands tell how each came to be."""
    try:
        yield
    except TesseraError as error:
        error.shapes = error.shapes or tuple(str(operand.type) for operand in operands)
        error.story += story_of(*operands)
        raise


@irdl_attr_definition
class DenseAttr(Data[bytes]):
    """The elements of a constant, row by row, as little-endian storage; one element alone fills the shape."""

    name = "graph.dense"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        with parser.in_angle_brackets():
            return _parse_bytes(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.hex())


# Longer constants are printed as bytes: people read the short ones, machines the long ones.
_READABLE = 64


def dense(values: Array, dtype: DType) -> DenseAttr:
    """A constant from values that are stored as `dtype`; equal bits everywhere are kept once."""
    data = np.ascontiguousarray(values, dtype.storage).tobytes()
    item = data[: dtype.storage.itemsize]
    return DenseAttr(item if data and item * (len(data) // len(item)) == data else data)


def dense_values(attr: DenseAttr, dtype: DType, shape: Sequence[int]) -> Array:
    """The elements as an array; a single stored element is repeated without copying."""
    flat = np.frombuffer(attr.data, dtype.storage)
    return np.broadcast_to(flat.reshape(()), shape) if flat.size == 1 else flat.reshape(tuple(shape))


def print_dense(printer: Printer, attr: DenseAttr, dtype: DType) -> None:
    flat = np.frombuffer(attr.data, dtype.storage)
    if flat.size > _READABLE:
        printer.print_string("bytes ")
        printer.print_string_literal(attr.data.hex())
        return
    with printer.in_square_brackets():
        printer.print_list([_number_text(item, dtype) for item in flat], printer.print_string)


def parse_dense(parser: Parser, dtype: DType) -> DenseAttr:
    if parser.parse_optional_keyword("bytes") is not None:
        return DenseAttr(_parse_bytes(parser))
    numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_number(parser, dtype))
    return DenseAttr(b"".join(numbers))


def _parse_bytes(parser: AttrParser) -> bytes:
    text = parser.parse_str_literal(" with hexadecimal bytes")
    try:
        return bytes.fromhex(text)
    except ValueError:
        parser.raise_error(f"expected hexadecimal bytes, got {text!r}")


def spare_bits_are_zero(attr: DenseAttr, dtype: DType) -> bool:
    """Whether the elements are stored in the one way that `cast` stores them, so that equal values have equal bytes."""
    width = dtype.storage.itemsize
    spare = 8 * width - dtype.bits
    # tf32 has its bits at the top of a word, as f32 has; narrower types have them at the bottom.
    mask = ((1 << spare) - 1) << (0 if dtype.base is tf32 else dtype.bits)
    return not np.any(np.frombuffer(attr.data, f"<u{width}") & mask)


def _number_text(item: Any, dtype: DType) -> str:
    if dtype.kind is Kind.BOOL:
        return "true" if item else "false"
    if not dtype.is_float:
        return str(int(item))
    # float64 holds every value of every format, and its shortest form reads back to the same bits. NaNs keep
    # their payload as hexadecimal storage.
    number = float(item)
    if not math.isfinite(number):
        return "0x" + np.asarray(item, dtype.storage).tobytes()[::-1].hex()
    return finite_text(number)


def _parse_number(parser: Parser, dtype: DType) -> bytes:
    if dtype.kind is Kind.BOOL:
        return bytes([parser.parse_boolean()])
    start = parser.pos
    number = parser.parse_number(allow_boolean=False)
    if not dtype.is_float:
        if not isinstance(number, int) or not dtype.min_value <= number <= dtype.max_value:
            parser.raise_error(f"expected a value of {dtype.name}, got {number}")
        carrier = u64 if dtype.kind is Kind.UINT else i64
        return cast(np.asarray(number, carrier.storage), carrier, dtype.base).tobytes()
    spelled = parser.lexer.input.content[start : start + 2]
    try:
        if isinstance(number, int) and spelled == "0x":
            return number.to_bytes(dtype.storage.itemsize, "little")
        return cast(np.asarray(float(number), np.float64), f64, dtype.base).tobytes()
    except OverflowError:
        parser.raise_error(f"expected a value of {dtype.name}, got more digits than it can hold")
