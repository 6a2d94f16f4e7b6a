"""The schedule dialect: which work becomes one kernel, over which grid, cut up how."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Dialect, OpResult, Region, SSAValue
from xdsl.irdl import AnyAttr, irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, IsolatedFromAbove, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import Name, SizesAttr, print_body
from tessera.ir.common.declared_ops import GIVEN_ALL, DeclaredOp
from tessera.ir.common.effects import HasEffects, effects_within
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph.effects import AnyTensor
from tessera.ir.graph.kernel_calls import kernel_effects, match_symbols, substitute, verify_kernel_call
from tessera.shapes.expr import format_shape

VERSION = 3

# Which writer makes a region's tile function: docs/schedule.md says what may stand in each.
REGION_KINDS = ("pointwise", "rows", "matmul", "online")


@irdl_op_definition
class LaunchOp(DeclaredOp):
    """Runs a tile function once per point of `grid`, whose sizes are expressions in the arguments' symbols."""

    name = "schedule.launch"
    callee: SymbolRefAttr = fields.prop_def(FlatSymbolRefAttrConstr, converter=SymbolRefAttr)
    grid: SizesAttr = fields.prop_def(SizesAttr, converter=SizesAttr)
    config: ConfigAttr = fields.prop_def(ConfigAttr, converter=ConfigAttr)
    arguments: Sequence[SSAValue] = fields.var_operand_def(AnyAttr())
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    traits = traits_def(HasEffects())
    assembly_format = (
        "$callee `grid` $grid `config` $config `(` $arguments `)` attr-dict `:` functional-type($arguments, $results_)"
    )

    def verify_(self) -> None:
        kernel = verify_kernel_call(self, self.callee, self.arguments, self.results_)
        values = match_symbols(kernel, [value.type for value in (*self.arguments, *self.results_)])
        if (expected := substitute(kernel.grid.data, values)) != self.grid.data:
            raise VerifyException(f"the grid is {format_shape(expected)} for these sizes, not {self.grid}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return kernel_effects(self, self.callee)


@irdl_op_definition
class RegionOp(DeclaredOp):
    """Graph ops that will become one kernel, which kind of kernel, and how it is cut up."""

    name = "schedule.region"
    kind: Name = fields.prop_def(Name, converter=Name)
    config: ConfigAttr = fields.prop_def(ConfigAttr, converter=ConfigAttr)
    arguments: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    body: Region = fields.region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())

    def __init__(
        self,
        kind: str,
        config: Config,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute],
        body: Region | None = None,
    ) -> None:
        body = Region(Block(arg_types=[value.type for value in arguments])) if body is None else body
        super().__init__(kind, config, arguments, results, body)

    def verify_(self) -> None:
        if self.kind.data not in REGION_KINDS:
            raise VerifyException(f"unknown kind of region {self.kind.data}: kinds are {', '.join(REGION_KINDS)}")
        if tuple(self.body.block.arg_types) != tuple(value.type for value in self.arguments):
            raise VerifyException("the region's arguments have the types of its operands")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("a region ends with schedule.yield")
        if tuple(value.type for value in last.values) != tuple(value.type for value in self.results_):
            raise VerifyException("a region yields values of its result types")
        if effects_within(self.body.block.ops) != set():
            raise VerifyException("a region holds pure ops only; effects stay outside, in order")

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        kind = Name.parse_parameter(parser)
        config = ConfigAttr.parse_parameter(parser)

        def parse_binding() -> tuple[Parser.Argument, SSAValue]:
            argument = parser.parse_argument()
            parser.parse_punctuation("=")
            return argument, parser.resolve_operand(parser.parse_unresolved_operand(), argument.type)

        bindings = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_binding)
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([argument for argument, _ in bindings])
        op = cls(kind, config, [value for _, value in bindings], results, body)
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        self.kind.print_parameter(printer)
        printer.print_string(" ")
        self.config.print_parameter(printer)

        def print_binding(pair: tuple[SSAValue, SSAValue]) -> None:
            argument, value = pair
            printer.print_ssa_value(argument)
            printer.print_string(" : ")
            printer.print_attribute(argument.type)
            printer.print_string(" = ")
            printer.print_ssa_value(value)

        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(list(zip(self.body.block.args, self.arguments, strict=True)), print_binding)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(self.results_, lambda value: printer.print_attribute(value.type))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        print_body(printer, self.body)


@irdl_op_definition
class YieldOp(DeclaredOp):
    """The results of a region."""

    name = "schedule.yield"
    values: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    traits = traits_def(IsTerminator(), HasParent(RegionOp), Pure())
    assembly_format = "$values attr-dict `:` type($values)"


Schedule = Dialect("schedule", [LaunchOp, RegionOp, YieldOp], [ConfigAttr])
