"""Types of the cpu level: a thread's own buffers, and right operands of dots packed into panels."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType
from tessera.ir.common.attributes import number
from tessera.ir.common.elements import dtype_of, is_element, typed
from tessera.targets.cpu.features import TILE_ROWS

LINE = 64
"""Bytes of a cache line, to which rows are aligned."""


def rounded_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _parse_shape(parser: AttrParser) -> tuple[tuple[int, ...], Attribute]:
    sizes, element = parser.parse_ranked_shape()
    if any(size < 0 for size in sizes):
        parser.raise_error("sizes at the cpu level are numbers")
    return tuple(sizes), element


def _verify_shape(rows: int, cols: int, element: Attribute) -> None:
    if rows < 0 or cols < 0:
        raise VerifyException(f"sizes are not negative, got {rows} by {cols}")
    if not is_element(element):
        raise VerifyException(f"{element} is not a Tessera element type")


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """Rows of elements in a thread's own memory. Rows start on cache lines, not a power of two apart.

    In a `dense` one, which is part of an array, they lie side by side.
    """

    name = "cpu.buffer"

    rows: IntAttr
    cols: IntAttr
    element: Attribute
    dense: IntAttr

    def __init__(self, rows: int | IntAttr, cols: int | IntAttr, element: Attribute, dense: int | IntAttr = 0) -> None:
        super().__init__(number(rows), number(cols), element, number(dense))

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.data, self.cols.data

    @property
    def stride(self) -> int:
        """Bytes from one row to the next: rows a large power of two apart would fight for the same cache lines."""
        exact = self.cols.data * self.dtype.storage.itemsize
        if self.dense.data:
            return exact
        size = rounded_up(exact, LINE)
        return size + LINE if size % (8 * LINE) == 0 else size

    @property
    def size(self) -> int:
        return self.rows.data * self.stride

    def verify(self) -> None:
        _verify_shape(self.rows.data, self.cols.data, self.element)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = _parse_shape(parser)
            if len(sizes) != 2:
                parser.raise_error(f"a buffer has rows and columns, got {len(sizes)} sizes")
            dense = parser.parse_optional_punctuation(",") is not None
            if dense:
                parser.parse_keyword("dense")
            return IntAttr(sizes[0]), IntAttr(sizes[1]), element, IntAttr(int(dense))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rows.data}x{self.cols.data}x")
            printer.print_attribute(self.element)
            printer.print_string(", dense" if self.dense.data else "")


@irdl_attr_definition
class PanelsType(ParametrizedAttribute, TypeAttribute):
    """A numbered row of matrices, each `rows` by `cols`, cut into panels of `width` columns that lie row after row.

    The last panel is filled up with zeros. For the matrix unit, `depth` rows are interleaved element by element (2 of
    bf16, 4 of i8), and zero rows fill up its last step of 16 such groups.
    """

    name = "cpu.panels"

    rows: IntAttr
    cols: IntAttr
    element: Attribute
    width: IntAttr
    depth: IntAttr

    def __init__(
        self,
        rows: int | IntAttr,
        cols: int | IntAttr,
        element: Attribute,
        width: int | IntAttr,
        depth: int | IntAttr = 1,
    ) -> None:
        super().__init__(number(rows), number(cols), element, number(width), number(depth))

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.data, self.cols.data

    @property
    def row_size(self) -> int:
        """Bytes of one row of a panel (of `depth` interleaved rows)."""
        return self.width.data * self.depth.data * self.dtype.storage.itemsize

    @property
    def padded_rows(self) -> int:
        """Rows with those that fill up the last step of the matrix unit."""
        depth = self.depth.data
        return self.rows.data if depth == 1 else rounded_up(self.rows.data, TILE_ROWS * depth)

    @property
    def panel_size(self) -> int:
        return self.padded_rows // self.depth.data * self.row_size

    @property
    def size(self) -> int:
        """Bytes of one matrix."""
        return -(-self.cols.data // self.width.data) * self.panel_size

    def verify(self) -> None:
        _verify_shape(self.rows.data, self.cols.data, self.element)
        if self.width.data < 1 or self.depth.data < 1:
            raise VerifyException(f"panels of width {self.width.data} and depth {self.depth.data}: both are at least 1")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = _parse_shape(parser)
            if len(sizes) != 2:
                parser.raise_error(f"panels hold matrices of rows and columns, got {len(sizes)} sizes")
            parser.parse_punctuation(",")
            width = parser.parse_integer(allow_boolean=False)
            depth = parser.parse_integer(allow_boolean=False) if parser.parse_optional_punctuation(",") else 1
            return IntAttr(sizes[0]), IntAttr(sizes[1]), element, IntAttr(width), IntAttr(depth)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rows.data}x{self.cols.data}x")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.width.data}" + (f", {self.depth.data}" if self.depth.data > 1 else ""))


AnyBuffer = BaseAttr(BufferType)
AnyPanels = BaseAttr(PanelsType)
buffer_type = typed(BufferType)
panels_type = typed(PanelsType)
