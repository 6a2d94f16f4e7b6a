"""The graph dialect's functions: functions over tensors, calls of each other and of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ArrayAttr, FlatSymbolRefAttrConstr, IndexType, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, OpResult, Region, SSAValue
from xdsl.irdl import AnyAttr, irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import symbols_of
from tessera.ir.common.checking import enclosing
from tessera.ir.common.declared_ops import GIVEN_ALL, DeclaredOp
from tessera.ir.common.effects import KINDS, HasEffects, World, effects_within, writes
from tessera.ir.common.elements import is_element
from tessera.ir.common.functions import Facts, Function
from tessera.ir.common.schedule_attributes import ConfigAttr
from tessera.ir.graph.effects import AnyTensor, look_up
from tessera.ir.graph.kernel_calls import kernel_effects, verify_kernel_call
from tessera.ir.graph.types import GraphTensorType


@irdl_op_definition
class FuncOp(Function):
    """A function over tensors. It may have only the effects it declares."""

    name = "graph.func"

    effects_: ArrayAttr[StringAttr] = fields.prop_def(ArrayAttr[StringAttr], prop_name="effects")

    def __init__(
        self,
        name: str,
        inputs: Sequence[Attribute],
        outputs: Sequence[Attribute],
        effects: Sequence[str] = (),
        body: Region | None = None,
    ) -> None:
        super().__init__(name, inputs, outputs, {"effects_": _declared(effects)}, body)

    @property
    def worlds(self) -> frozenset[World]:
        """The effects that the function declares."""
        return frozenset(World.parse(effect.data) for effect in self.effects_)

    def verify_(self) -> None:
        self.verify_header()
        last = self.body.block.last_op
        if not isinstance(last, ReturnOp):
            raise VerifyException("a graph function ends with graph.return")
        promised, returned = tuple(self.function_type.outputs), tuple(value.type for value in last.values)
        if promised != returned:
            raise VerifyException(
                f"the function promises ({', '.join(map(str, promised))}) but returns ({', '.join(map(str, returned))})"
            )
        self._verify_types()
        for effect in self.effects_:
            world = World.parse(effect.data)
            if world.kind not in KINDS or world.name() != effect.data:
                raise VerifyException(f"unknown effect {effect.data}: effects are {', '.join(KINDS)}")
        for op in self.body.block.ops:
            effects = effects_within([op])
            if effects is None:
                raise VerifyException(f"{op.name} does not say what its effects are")
            for effect in effects:
                if effect.resource not in self.worlds:
                    raise VerifyException(
                        f"{op.name} has the effect {effect.resource.name()}, "
                        f"which @{self.sym_name.data} does not declare"
                    )

    def _verify_types(self) -> None:
        """Arguments are tensors and scalars, and every size symbol is bound by one of them."""
        bound: set[str] = set()
        for position, type_ in enumerate(self.function_type.inputs):
            if isinstance(type_, GraphTensorType):
                bound |= symbols_of(type_.shape)
            elif not isinstance(type_, IndexType) and not is_element(type_):
                raise VerifyException(f"argument {position} must be a graph tensor or a scalar, got {type_}")
        for op in self.body.walk():
            for result in op.results:
                if isinstance(result.type, GraphTensorType) and (missing := symbols_of(result.type.shape) - bound):
                    raise VerifyException(
                        f"{op.name} gives {result.type}, and no argument of @{self.sym_name.data} "
                        f"binds {', '.join(sorted(missing))}"
                    )

    @classmethod
    def parse_facts(cls, parser: Parser) -> tuple[Facts, Sequence[Attribute]]:
        outputs: list[Attribute] = []
        if parser.parse_optional_punctuation("->") is not None:
            outputs = list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))
        effects: list[str] = []
        if parser.parse_optional_keyword("effects") is not None:
            effects = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier_or_str_literal)
        return {"effects": _declared(effects)}, outputs

    def print_facts(self, printer: Printer) -> None:
        if self.function_type.outputs.data:
            printer.print_string(" -> ")
            with printer.in_parens():
                printer.print_list(self.function_type.outputs, printer.print_attribute)
        if self.effects_.data:
            printer.print_string(" effects ")
            with printer.in_square_brackets():
                printer.print_list(
                    [effect.data for effect in self.effects_], printer.print_identifier_or_string_literal
                )


def _declared(effects: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(effect) for effect in effects])


@irdl_op_definition
class ReturnOp(DeclaredOp):
    """The results of a graph function."""

    name = "graph.return"
    values: Sequence[SSAValue] = fields.var_operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), HasParent(FuncOp), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"


@irdl_op_definition
class CallOp(DeclaredOp):
    """Calls a graph function; it has the effects the callee declares. No function calls itself, by any way."""

    name = "graph.call"
    callee: SymbolRefAttr = fields.prop_def(FlatSymbolRefAttrConstr, converter=SymbolRefAttr)
    arguments: Sequence[SSAValue] = fields.var_operand_def(AnyAttr())
    results_: Sequence[OpResult] = fields.var_result_def(AnyAttr(), converter=GIVEN_ALL)
    traits = traits_def(HasEffects())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $results_)"

    def verify_(self) -> None:
        callee = look_up(self, self.callee, FuncOp)
        expected = callee.function_type
        if tuple(expected.inputs) != tuple(value.type for value in self.arguments):
            raise VerifyException(f"@{callee.sym_name.data} is a {expected}, called with other argument types")
        if tuple(expected.outputs) != tuple(value.type for value in self.results_):
            raise VerifyException(f"@{callee.sym_name.data} is a {expected}, called for other result types")
        if way := _way_back(callee, self):
            told = ", which calls ".join(f"@{function.sym_name.data}" for function in way)
            raise VerifyException(f"a graph has no recursion, and @{way[-1].sym_name.data} calls {told}")

    def effects(self) -> AbstractSet[EffectInstance]:
        # A callee is not trusted to only read: a declared effect counts as a write.
        return {writes(world) for world in look_up(self, self.callee, FuncOp).worlds}


def _way_back(callee: FuncOp, call: CallOp) -> list[FuncOp]:
    """The functions from a callee, by what they call, to the one that makes the call: a shortest way, or none."""
    caller = enclosing(call, FuncOp)
    block = callee.parent_block()
    functions = {op.sym_name.data: op for op in (block.ops if block else ()) if isinstance(op, FuncOp)}
    ways, seen = [[callee]], {callee}
    for way in ways:
        if way[-1] is caller:
            return way
        for op in way[-1].body.walk():
            # What is called may not exist; the verifier of that call says so.
            found = functions.get(op.callee.string_value()) if isinstance(op, CallOp) else None
            if found is not None and found not in seen:
                seen.add(found)
                ways.append([*way, found])
    return []


@irdl_op_definition
class CallKernelOp(DeclaredOp):
    """Runs a tile function: tensors go in as views, results are fresh tensors. `config` may fix a schedule."""

    name = "graph.call_kernel"
    callee: SymbolRefAttr = fields.prop_def(FlatSymbolRefAttrConstr, converter=SymbolRefAttr)
    arguments: Sequence[SSAValue] = fields.var_operand_def(AnyAttr())
    config: ConfigAttr | None = fields.opt_prop_def(ConfigAttr, default=None)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    traits = traits_def(HasEffects())
    assembly_format = (
        "$callee `(` $arguments `)` (`config` $config^)? attr-dict `:` functional-type($arguments, $results_)"
    )

    def verify_(self) -> None:
        verify_kernel_call(self, self.callee, self.arguments, self.results_)

    def effects(self) -> AbstractSet[EffectInstance]:
        return kernel_effects(self, self.callee)
