"""Types and attributes of the nv level: the layout of a tile over threads, and tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType
from tessera.ir.common.attributes import number, numbers
from tessera.ir.common.elements import TileType, dtype_of, is_element, typed
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.ir.layouts import REPLICA, Digit, Layout

CHUNK = 16
"""Bytes that swizzling moves as one, and that the widest access moves."""
PANELS = (128, 64, 32, 16)
PLAIN, PAIRED = "plain", "paired"
PAIRED_COLUMNS = (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
"""The order of each 16 columns in memory, if they are paired."""


@irdl_attr_definition
class LayoutAttr(Data[Layout]):
    """Which thread holds which element, as `[digits of the thread], [digits of the register]`."""

    name = "nv.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            threads = _parse_digits(parser)
            parser.parse_punctuation(",")
            return Layout(threads, _parse_digits(parser))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def _parse_digits(parser: AttrParser) -> tuple[Digit, ...]:
    def digit() -> Digit:
        size = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_punctuation(":")
        if parser.parse_optional_keyword("_") is not None:
            return Digit(size, REPLICA, 0)
        axis = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_punctuation("*")
        return Digit(size, axis, parser.parse_integer(allow_boolean=False, allow_negative=False))

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, digit))


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """Tiles in shared memory: the last two sizes are rows and columns, those in front count tiles.

    Columns are cut into panels of `panel` bytes, which lie behind each other, row after row. Within a panel, chunks of
    16 bytes are permuted from row to row (they are swizzled), so that a column of chunks meets every bank once. The
    order is that of tensor maps with as many bytes of swizzling.

    Columns of 8 bits may be `paired`: of each 16, those lie side by side that one thread has of a row of an
    accumulator. A left operand that threads made of an accumulator is multiplied with them without a conversion.
    """

    name = "nv.shared"

    sizes: ArrayAttr[IntAttr]
    element: Attribute
    panel: IntAttr
    order: StringAttr

    def __init__(
        self,
        sizes: Sequence[int] | ArrayAttr[IntAttr],
        element: Attribute,
        panel: int | IntAttr,
        order: str | StringAttr = PLAIN,
    ) -> None:
        name = order if isinstance(order, StringAttr) else StringAttr(order)
        super().__init__(numbers(sizes), element, number(panel), name)

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size.data for size in self.sizes)

    @property
    def rows(self) -> int:
        return self.shape[-2]

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def itemsize(self) -> int:
        return self.dtype.storage.itemsize

    @property
    def panels(self) -> int:
        """How many panels the columns take."""
        return -(-self.columns * self.itemsize // self.panel.data)

    @property
    def panel_bytes(self) -> int:
        """Bytes from one panel to the next."""
        return self.rows * self.panel.data

    @property
    def tile_bytes(self) -> int:
        """Bytes of one tile; the next one begins where swizzling begins anew."""
        whole = self.panels * self.panel_bytes
        return -(-whole // 1024) * 1024

    @property
    def size(self) -> int:
        total = self.tile_bytes
        for count in self.shape[:-2]:
            total *= count
        return total

    @property
    def is_paired(self) -> bool:
        return self.order.data == PAIRED

    def ordered(self, order: str) -> SharedType:
        """The same memory, with its columns in another order."""
        return SharedType(self.sizes, self.element, self.panel, order)

    @property
    def held_columns(self) -> list[int]:
        """The columns of a row, in their order in memory."""
        if not self.is_paired:
            return list(range(self.columns))
        return [first + column for first in range(0, self.columns, len(PAIRED_COLUMNS)) for column in PAIRED_COLUMNS]

    @property
    def slot(self) -> SharedType:
        """The type of one of the tiles."""
        return SharedType(self.shape[1:], self.element, self.panel, self.order)

    def swizzle(self, row: int) -> int:
        """The number that chunks of a row are xored with."""
        return row * self.panel.data // 128 % (self.panel.data // CHUNK)

    def verify(self) -> None:
        if len(self.sizes) < 2 or any(size < 1 for size in self.shape):
            raise VerifyException(f"a tile in shared memory has rows and columns, got sizes {list(self.shape)}")
        if not is_element(self.element):
            raise VerifyException(f"{self.element} is not a Tessera element type")
        if self.panel.data not in PANELS:
            raise VerifyException(f"panels have {', '.join(map(str, PANELS))} bytes, not {self.panel.data}")
        if self.order.data not in (PLAIN, PAIRED):
            raise VerifyException(f"columns are {PLAIN} or {PAIRED}, not {self.order.data}")
        if self.is_paired and (self.itemsize != 1 or self.columns % len(PAIRED_COLUMNS)):
            raise VerifyException(f"columns of 8 bits are paired, 16·n of them, not {self.columns} of {self.element}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            panel = parser.parse_integer(allow_boolean=False)
            said = parser.parse_optional_punctuation(",") is not None
            order = StringAttr(parser.parse_identifier(" for an order of columns") if said else PLAIN)
            return ArrayAttr([IntAttr(size) for size in sizes]), element, IntAttr(panel), order

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, self.shape)) + "x")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.panel.data}{f', {PAIRED}' if self.is_paired else ''}")


AnyShared = BaseAttr(SharedType)
shared_type = typed(SharedType)


def check_plain(shared: SharedType) -> None:
    """Refuses columns that are paired: only dots know their order."""
    if shared.is_paired:
        raise VerifyException(f"{shared} is an operand of dots: its columns are paired")


def panel_for(columns: int, itemsize: int, *, in_order: bool = False) -> int:
    """The widest panels that columns of this type fill up, or the narrowest: those in which chunks lie `in_order`."""
    if in_order:
        return CHUNK
    width = columns * itemsize
    return next((panel for panel in PANELS if width % panel == 0), PANELS[-1])


def layout_of(value: SSAValue | TileType) -> Layout:
    """The layout of a tile that has one."""
    type_ = tile_type(value) if isinstance(value, SSAValue) else value
    assert isinstance(type_.encoding, LayoutAttr), f"{type_} has no layout"
    return type_.encoding.data


def lacks_layout(type_: Attribute) -> bool:
    """Whether a type is that of a tile without a layout."""
    return isinstance(type_, TensorType) and not isinstance(type_.encoding, LayoutAttr)  # pyright: ignore[reportUnknownMemberType]


def laid_out(type_: TileType, layout: Layout) -> TileType:
    """The type with a layout."""
    return TensorType(type_.element_type, type_.get_shape(), LayoutAttr(layout))
