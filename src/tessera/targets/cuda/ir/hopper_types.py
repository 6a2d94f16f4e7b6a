"""Types of the nv level that only sm_90a has: mbarriers, words for schedulers, and tensor maps."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType
from tessera.ir.common.attributes import number, numbers
from tessera.ir.common.elements import dtype_of, is_element, typed

SCOPES = ("block", "cluster")
MOST_AXES, WIDEST_BOX = 5, 256
SWIZZLES = (0, 32, 64, 128)
PARTS = ("whole", "inner", "outer")


@irdl_attr_definition
class BarriersType(ParametrizedAttribute, TypeAttribute):
    """Some mbarriers side by side in shared memory: of this block, or, mapped, of another block of the cluster."""

    name = "nv.mbarriers"

    count: IntAttr
    scope: StringAttr

    def __init__(self, count: int | IntAttr, scope: str | StringAttr = "block") -> None:
        super().__init__(number(count), StringAttr(scope) if isinstance(scope, str) else scope)

    def verify(self) -> None:
        if self.count.data < 1:
            raise VerifyException(f"expected at least one mbarrier, got {self.count.data}")
        if self.scope.data not in SCOPES:
            raise VerifyException(f"mbarriers are of a {' or a '.join(SCOPES)}, not of a {self.scope.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            count = parser.parse_integer(allow_boolean=False)
            far = parser.parse_optional_punctuation(",") is not None
            return IntAttr(count), StringAttr(parser.parse_identifier(" for a scope") if far else SCOPES[0])

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.count.data))
            if self.scope.data != SCOPES[0]:
                printer.print_string(f", {self.scope.data}")


@irdl_attr_definition
class WordsType(ParametrizedAttribute, TypeAttribute):
    """Some words of 32 bits side by side in shared memory."""

    name = "nv.words"

    count: IntAttr = param_def(converter=number)

    def verify(self) -> None:
        if self.count.data < 1:
            raise VerifyException(f"expected at least one word, got {self.count.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.count.data))


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """A tensor map: the box that one copy moves, innermost axis first, and over how many bytes it is swizzled."""

    name = "nv.map"

    sizes: ArrayAttr[IntAttr] = param_def(converter=numbers)
    element: Attribute
    swizzle: IntAttr = param_def(converter=number)

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def box(self) -> tuple[int, ...]:
        return tuple(size.data for size in self.sizes)

    @property
    def bytes(self) -> int:
        """What one copy moves."""
        return prod(self.box) * self.dtype.storage.itemsize

    def verify(self) -> None:
        if not 1 <= len(self.sizes) <= MOST_AXES or any(not 1 <= size <= WIDEST_BOX for size in self.box):
            raise VerifyException(
                f"a box has 1 to {MOST_AXES} axes of 1 to {WIDEST_BOX} elements, got {list(self.box)}"
            )
        if not is_element(self.element):
            raise VerifyException(f"{self.element} is not a Tessera element type")
        if self.swizzle.data not in SWIZZLES:
            raise VerifyException(
                f"swizzling is over {', '.join(map(str, SWIZZLES))} bytes, not over {self.swizzle.data}"
            )
        width = self.box[0] * self.dtype.storage.itemsize
        if self.swizzle.data and width > self.swizzle.data:
            raise VerifyException(f"a box of {width} bytes is wider than the {self.swizzle.data} it is swizzled over")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            swizzle = parser.parse_integer(allow_boolean=False)
            return ArrayAttr([IntAttr(size) for size in sizes]), element, IntAttr(swizzle)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, self.box)) + "x")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.swizzle.data}")


@irdl_attr_definition
class MapAxesAttr(Data[tuple[tuple[int, str, int], ...]]):
    """The axes of a tensor map, innermost first: `<[3 inner 64, 2, 3 outer 64]>`.

    A number alone is a whole axis of the view; `inner 64` are 64 neighbours along it, `outer 64` the steps over those.
    """

    name = "nv.map_axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[int, str, int], ...]:
        def axis() -> tuple[int, str, int]:
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
            for part in PARTS[1:]:
                if parser.parse_optional_keyword(part) is not None:
                    return number, part, parser.parse_integer(allow_boolean=False, allow_negative=False)
            return number, PARTS[0], 1

        with parser.in_angle_brackets():
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, axis))

    def print_parameter(self, printer: Printer) -> None:
        words = (str(axis) if part == PARTS[0] else f"{axis} {part} {step}" for axis, part, step in self.data)
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(words)}]")


AnyBarriers = BaseAttr(BarriersType)
AnyWords = BaseAttr(WordsType)
AnyMap = BaseAttr(MapType)
barriers_type = typed(BarriersType)
map_type = typed(MapType)


TYPES: tuple[type[Attribute], ...] = (BarriersType, WordsType, MapType, MapAxesAttr)
