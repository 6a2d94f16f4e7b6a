"""Types of the tile dialect: views of memory, and what every tile value must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType
from tessera.ir.common.attributes import number
from tessera.ir.common.elements import TileType, dtype_of, is_element, typed

SPACES = ("global", "shared", "register")
AnyTile = BaseAttr[TileType](TensorType)


@irdl_attr_definition
class ViewType(ParametrizedAttribute, TypeAttribute):
    """Memory seen as an array: rank, element, space. Sizes and strides are values, not part of the type."""

    name = "tile.view"

    rank: IntAttr
    element: Attribute
    space: StringAttr

    def __init__(self, rank: int | IntAttr, element: Attribute, space: str | StringAttr = "global") -> None:
        super().__init__(number(rank), element, StringAttr(space) if isinstance(space, str) else space)

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    def verify(self) -> None:
        if self.rank.data < 0:
            raise VerifyException(f"a view's rank is not negative, got {self.rank.data}")
        if not is_element(self.element):
            raise VerifyException(f"{self.element} is not a Tessera element type")
        if self.space.data not in SPACES:
            raise VerifyException(f"memory space {self.space.data}: expected one of {', '.join(SPACES)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            rank = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            return IntAttr(rank), element, StringAttr(parser.parse_identifier(" for a memory space"))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rank.data}, ")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.space.data}")


AnyView = BaseAttr(ViewType)
view_type = typed(ViewType)


def tile_type(value: SSAValue) -> TileType:
    assert isinstance(value.type, TensorType)
    return cast("TileType", value.type)


def tile_dtype(value: SSAValue) -> DType:
    return dtype_of(tile_type(value).element_type)


def check_tile(value: SSAValue | TileType, what: str) -> TileType:
    """A tile has constant sizes and a Tessera element type."""
    found = tile_type(value) if isinstance(value, SSAValue) else value
    if any(size < 0 for size in found.get_shape()):
        raise VerifyException(f"{what} {found} must have constant sizes")
    dtype_of(found.element_type)
    return found


def check_axis(axis: int, rank: int) -> None:
    if not 0 <= axis < rank:
        raise VerifyException(f"axis {axis} is out of range for rank {rank}")


def boxes_in(view: SSAValue, starts: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
    """Where each of some boxes in a view starts: groups of numbers, one for each axis of the view."""
    rank = view_type(view).rank.data
    return [starts[first : first + rank] for first in range(0, len(starts), rank)]


def check_boxes(view: SSAValue, starts: Sequence[SSAValue], axes: Sequence[int], tile: TileType) -> None:
    """Refuses boxes that do not make a tile, or do not lie in a view."""
    seen, shape = view_type(view), tile.get_shape()
    rank = seen.rank.data
    if not starts or not rank or len(starts) % rank:
        raise VerifyException(f"{len(starts)} starts of boxes in {seen}: each has one for every axis")
    if list(axes) != sorted(set(axes)) or len(axes) != len(shape) or not all(0 <= axis < rank for axis in axes):
        raise VerifyException(f"axes {list(axes)} of {seen}, for {tile}: expected one for each of its axes, ascending")
    if not shape or shape[0] % (len(starts) // rank):
        raise VerifyException(f"{len(starts) // rank} boxes do not share the rows of {tile}")
    if tile.element_type != seen.element:
        raise VerifyException(f"the view holds {seen.element}, the tile {tile.element_type}")
