"""The common part of the functions of all levels: a name, arguments, one block; and how they are written.

    level.func @name(%x: type, …) facts attributes {…} { … }

Facts are what a level says about its functions. Those of kernels have the sizes of arguments, and a grid.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, BlockArgument, Region
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import SizesAttr, print_body
from tessera.ir.common.declared_ops import DeclaredOp
from tessera.shapes.expr import Size

Facts = dict[str, Attribute]


class Function(DeclaredOp):
    """A function of some level. Its facts are properties: `parse_facts` reads them, `print_facts` writes them."""

    sym_name: StringAttr = fields.prop_def(SymbolNameConstraint())
    function_type: FunctionType = fields.prop_def(FunctionType)
    body: Region = fields.region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        inputs: Sequence[Attribute],
        outputs: Sequence[Attribute],
        facts: Mapping[str, Attribute | None],
        body: Region | None,
    ) -> None:
        kind = FunctionType.from_lists(list(inputs), list(outputs))
        body = Region(Block(arg_types=inputs)) if body is None else body
        super().__init__(StringAttr(name), kind, body, **facts)

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        return tuple(self.body.block.args)

    @classmethod
    @abstractmethod
    def parse_facts(cls, parser: Parser) -> tuple[Facts, Sequence[Attribute]]:
        """The facts, and the types of results."""

    @abstractmethod
    def print_facts(self, printer: Printer) -> None: ...

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()

        def parse_argument() -> Parser.Argument:
            argument = parser.parse_argument()
            argument.location = parser.parse_optional_location()
            return argument

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument)
        facts, outputs = cls.parse_facts(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        kind = FunctionType.from_lists([argument.type for argument in arguments], list(outputs))
        return cls.create(
            properties={"sym_name": name, "function_type": kind, **facts},
            attributes=attributes.data if attributes else {},
            regions=[parser.parse_region(arguments)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        self.print_facts(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        print_body(printer, self.body)

    def verify_header(self) -> None:
        """The entry block's arguments are the function's inputs."""
        entry = self.body.blocks.first
        if entry is None or len(self.body.blocks) != 1:
            raise VerifyException("a function has exactly one block")
        if tuple(self.function_type.inputs) != tuple(entry.arg_types):
            raise VerifyException(
                f"the entry block takes {', '.join(map(str, entry.arg_types))} "
                f"but the function type says {', '.join(map(str, self.function_type.inputs))}"
            )


def extents(shapes: Sequence[Sequence[Size]], grid: Sequence[Size]) -> Facts:
    """The sizes of arguments, and a grid, as facts."""
    return {"shapes": ArrayAttr([SizesAttr(tuple(shape)) for shape in shapes]), "grid": SizesAttr(tuple(grid))}


def parse_extents(parser: Parser) -> Facts:
    parser.parse_keyword("shapes")
    shapes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: SizesAttr.parse_bare(parser))
    parser.parse_keyword("grid")
    return extents(shapes, SizesAttr.parse_bare(parser))


def print_extents(printer: Printer, shapes: ArrayAttr[SizesAttr], grid: SizesAttr) -> None:
    printer.print_string(" shapes ")
    with printer.in_square_brackets():
        printer.print_list(shapes, lambda shape: shape.print_bare(printer))
    printer.print_string(" grid ")
    grid.print_bare(printer)


def parse_count(parser: Parser, keyword: str) -> int:
    """Parses a keyword and a number, such as `outputs 2`."""
    parser.parse_keyword(keyword)
    return parser.parse_integer(allow_boolean=False)
