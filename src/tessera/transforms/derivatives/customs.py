"""Ops that live while a function is traced: what derivatives stop at, and functions with derivatives of their own.

`finish` takes them out of what was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.ir import Attribute, Block, Data, OpResult, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, BaseAttr, irdl_attr_definition, irdl_op_definition, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import Integers, integers
from tessera.ir.common.declared_ops import GIVEN_ALL, DeclaredOp
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import AnyTensor
from tessera.ir.graph.types import graph_type
from tessera.transforms.derivatives.graph_writer import GraphWriter
from tessera.transforms.derivatives.linearize import linearize
from tessera.transforms.derivatives.rules import (
    IsLinear,
    Replacements,
    Tangent,
    Tangents,
    captured_by,
    constant,
    refused,
    rule,
    transposed_only,
)

Values = Sequence[SSAValue]


@dataclass(frozen=True, eq=False)
class CustomRule:
    """A function's derivatives as their author wrote them; each writes ops into a block that it is given.

    Either `jvp`, from values and their tangents to results and theirs; or `forward`, from values to results and
    residuals, with `backward`, from residuals and cotangents of results to those of all values.
    """

    name: str
    jvp: Callable[[Block, Values, Values], tuple[list[SSAValue], list[SSAValue]]] | None = None
    forward: Callable[[Block, Values], tuple[list[SSAValue], list[SSAValue]]] | None = None
    backward: Callable[[Block, Values, Values], list[Tangent]] | None = None


@irdl_attr_definition
class CustomRuleAttr(Data[CustomRule]):
    """A rule in an op; it has no text."""

    name = "graph.custom_rule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> NoReturn:
        parser.raise_error("rules of derivatives have no text")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.name}>")


AnyRule = BaseAttr(CustomRuleAttr)


@irdl_op_definition
class StopOp(DeclaredOp):
    """A value that is a constant to derivatives."""

    name = "graph.stop"
    operand: SSAValue = fields.operand_def(AnyTensor)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())

    def result_type(self) -> Attribute:
        return self.operand.type


@irdl_op_definition
class CustomOp(DeclaredOp):
    """A part of a program with derivatives of its own: its body sees the values around it, and ends with a yield."""

    name = "graph.custom"
    arguments: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    rule: CustomRuleAttr = fields.prop_def(AnyRule, converter=CustomRuleAttr)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    body: Region = fields.region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class LinearOp(DeclaredOp):
    """The tangents of results of a function of which only the way back is known."""

    name = "graph.linear"
    residuals: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    tangents: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    rule: CustomRuleAttr = fields.prop_def(AnyRule, converter=CustomRuleAttr)
    active: Integers = fields.prop_def(Integers, converter=integers)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())


def _jvp(at: Tangents, op: CustomOp, given: Sequence[Tangent]) -> Sequence[Tangent]:
    count = len(op.arguments)
    outside = [value for value in captured_by(op) if value not in op.arguments]
    if any(value in at.tangents for value in outside):
        raise refused(
            op,
            f"{op.rule.data.name} has derivatives of its own, and uses a value from outside that is differentiated",
            "pass it as an argument, so that its rule knows of it; or put ts.stop_gradient around it",
        )
    tangents = given[:count]
    if op.rule.data.jvp is not None:
        return _by_jvp(at, op, tangents)
    if at.is_forward:
        raise refused(
            op,
            f"{op.rule.data.name} has a rule for reverse derivatives alone (custom_vjp); this is forwards",
            "give it a custom_jvp instead, which serves both ways",
        )
    return _by_vjp(at, op, tangents)


def _by_jvp(at: Tangents, op: CustomOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    assert op.rule.data.jvp is not None
    if at.is_forward:
        dense = [
            at.known.zeros(graph_type(value)) if one is None else one
            for value, one in zip(op.arguments, tangents, strict=True)
        ]
        part = Block()
        results, found = op.rule.data.jvp(part, op.arguments, dense)
        _take(part, results, op, at.replace)
        return found
    # A rule is linear in tangents: the derivative of what it computes of zeros is what it computes.
    part, results, found = _of_zeros(op)
    given: dict[SSAValue, SSAValue] = {
        argument: one for argument, one in zip(part.args, tangents, strict=True) if one is not None
    }
    linear = linearize(part, given, at.known.known, at.replace, at.linear.block)
    found = [at.replace.now(value) for value in found]
    results = [at.replace.now(value) for value in results]
    _take(part, results, op, at.replace)
    return [linear.get(value) for value in found]


def _of_zeros(op: CustomOp) -> tuple[Block, list[SSAValue], list[SSAValue]]:
    """What a rule for tangents computes, as a block whose arguments stand for tangents."""
    assert op.rule.data.jvp is not None
    part = Block(arg_types=[value.type for value in op.arguments])
    results, found = op.rule.data.jvp(part, op.arguments, list(part.args))
    return part, results, found


def _take(part: Block, results: Values, op: CustomOp, replace: Replacements) -> None:
    """Puts what a rule computes in the place of the function; tangents that it was given for none are zeros."""
    block = op.parent_block()
    assert block is not None
    for argument in list(part.args):
        zeros = graph.ConstantOp.splat(0.0, graph_type(argument))
        block.insert_op_before(zeros, op)
        argument.replace_all_uses_with(zeros.result)
    for made in list(part.ops):
        made.detach()
        block.insert_op_before(made, op)
    for before, after in zip(list(op.results), results, strict=True):
        replace(before, after)
    op.detach()
    op.erase()


def settle(op: CustomOp, replace: Replacements) -> None:
    """Puts the value that a rule computes in the place of the function: derivatives of that were taken."""
    if op.rule.data.jvp is not None:
        part, results, _ = _of_zeros(op)
    else:
        assert op.rule.data.forward is not None
        part = Block()
        results, _ = op.rule.data.forward(part, op.arguments)
    _take(part, results, op, replace)


def _by_vjp(at: Tangents, op: CustomOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    written = op.rule.data
    assert written.forward is not None
    part = Block()
    results, residuals = written.forward(part, op.arguments)
    active = [index for index, tangent in enumerate(tangents) if tangent is not None]
    given = [tangent for tangent in tangents if tangent is not None]
    linear = LinearOp(residuals, given, written, active, [value.type for value in op.results_])
    at.linear.write(linear)
    _take(part, results, op, at.replace)
    return list(linear.results)


def _append(w: GraphWriter, part: Block) -> None:
    for op in list(part.ops):
        op.detach()
        w.write(op)


def _linear(w: GraphWriter, op: LinearOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    backward = op.rule.data.backward
    assert backward is not None
    dense = [w.zeros(graph_type(value)) if one is None else one for value, one in zip(op.results_, given, strict=True)]
    part = Block()
    found = backward(part, op.residuals, dense)
    _append(w, part)
    return [*[None] * len(op.residuals), *[found[index] for index in op.active.iter_values()]]


constant(StopOp, "derivatives stop at it")
rule(CustomOp, _jvp)
transposed_only(LinearOp, _linear, "it is written among linear ops, which have no tangents")
