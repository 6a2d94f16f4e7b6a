"""Parts of a program that are computed again on the way back: what they made on the way is not kept."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import integer
from tessera.ir.common.declared_ops import GIVEN_ALL, DeclaredOp
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import AnyTensor
from tessera.transforms.core.dead_code import is_removable, sweep
from tessera.transforms.derivatives.control_rules import end, instead, taken, yields
from tessera.transforms.derivatives.customs import CustomOp, settle
from tessera.transforms.derivatives.graph_writer import GraphWriter
from tessera.transforms.derivatives.linearize import linearize, transpose
from tessera.transforms.derivatives.rules import (
    IsLinear,
    Replacements,
    Tangent,
    Tangents,
    captured_by,
    rule,
    transposed_only,
)

AGAIN = "graph.again"
"""The attribute of an op that computes once more what was computed before: how often."""
NOTHING, PRODUCTS, EVERYTHING = "nothing", "products", "everything"


@irdl_op_definition
class NamedOp(DeclaredOp):
    """A value with a name, by which a checkpoint may keep it."""

    name = "graph.named"
    label: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    operand: SSAValue = fields.operand_def(AnyTensor)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())

    def result_type(self) -> Attribute:
        return self.operand.type


@irdl_op_definition
class CheckpointOp(DeclaredOp):
    """A part of a program that keeps for the way back what `keeps` says: its body sees the values around it."""

    name = "graph.checkpoint"
    keeps: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    body: Region = fields.region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class RecomputeOp(DeclaredOp):
    """The tangents of a checkpoint's results, with the ops that compute once more what they use."""

    name = "graph.recompute"
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    known: Region = fields.region_def("single_block")
    linear: Region = fields.region_def("single_block")
    traits = traits_def(Pure())


def keeps(policy: str, op: Operation) -> bool:
    """Whether a checkpoint keeps what an op gives."""
    if policy in (NOTHING, EVERYTHING):
        return policy == EVERYTHING
    if policy == PRODUCTS:
        return isinstance(op, graph.MatmulOp)
    return isinstance(op, NamedOp) and op.label.data in policy.split(",")


def _jvp(at: Tangents, op: CheckpointOp, _: Sequence[Tangent]) -> Sequence[Tangent]:
    policy = op.keeps.data
    if at.is_forward:
        region = taken(op.body)
        found = linearize(region.block, at.tangents, at.known.known, at.replace)
        values = list(yields(region.block).values)
        tangents = [found.get(value) for value in values]
        end(region.block, [*values, *[one for one in tangents if one is not None]])
        types = [value.type for value in yields(region.block).values]
        more = iter(instead(at, op, CheckpointOp(policy, types, region)))
        return [None if one is None else next(more) for one in tangents]
    again, kept = _copied(op, policy)
    part = Block()
    found = linearize(again, at.tangents, at.known.known, at.replace, part)
    tangents = [found.get(value) for value in yields(again).values]
    end(part, [one for one in tangents if one is not None])
    end(again, [])
    for inner in list(op.body.walk()):
        if isinstance(inner, CustomOp):
            settle(inner, at.replace)
    before = list(yields(op.body.block).values)
    region = taken(op.body)
    end(region.block, [*before, *[old for old, _ in kept]])
    made = CheckpointOp(policy, [value.type for value in yields(region.block).values], region)
    for (_old, new), value in zip(kept, instead(at, op, made), strict=True):
        new.replace_all_uses_with(value)
        owner = new.owner
        if isinstance(owner, Operation) and all(one.first_use is None for one in owner.results):
            owner.detach()
            owner.erase()
    types = [value.type for value in yields(part).values]
    linear = at.linear.write(RecomputeOp(types, Region(again), Region(part)))
    sweep(again)
    results = iter(linear.results)
    return [None if one is None else next(results) for one in tangents]


def _copied(op: CheckpointOp, policy: str) -> tuple[Block, list[tuple[SSAValue, SSAValue]]]:
    """The body once more; and which of its values are kept instead, each with its copy."""
    block = op.body.block
    made = Block()
    values: dict[SSAValue, SSAValue] = {}
    kept: list[tuple[SSAValue, SSAValue]] = []
    for one in block.ops:
        if not one.results and not one.has_trait(IsTerminator):
            continue  # effects happen once
        copy = one.clone(values)
        made.add_op(copy)
        for inner in copy.walk():
            inner.attributes[AGAIN] = integer(_times(inner) + 1)
        # What is drawn or read is not drawn or read again.
        if keeps(policy, one) or not (is_removable(one) or one.has_trait(IsTerminator)):
            kept += zip(one.results, copy.results, strict=True)
    return made, kept


def _times(op: Operation) -> int:
    found = op.attributes.get(AGAIN)
    return found.value.data if isinstance(found, IntegerAttr) else 0


def _recompute(w: GraphWriter, op: RecomputeOp, given: Sequence[Tangent], is_linear: IsLinear) -> Sequence[Tangent]:
    captured = captured_by(op)
    wanted = [value for value in captured if is_linear(value)]
    for one in list(op.known.block.ops):
        if not one.has_trait(IsTerminator):
            one.detach()
            w.write(one)
    ends = yields(op.linear.block).values
    pairs = [(value, one) for value, one in zip(ends, given, strict=True) if one is not None]
    found = transpose(op.linear.block, wanted, pairs, w)
    return [found.get(value) for value in captured]


def expand(block: Block, replace: Replacements) -> None:
    """Puts what is computed again, and the tangents that follow from it, in their places in a block and its bodies."""
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                expand(inner, replace)
        if not isinstance(op, RecomputeOp):
            continue
        values = list(yields(op.linear.block).values)
        for part in (op.known.block, op.linear.block):
            for one in list(part.ops):
                if not one.has_trait(IsTerminator):
                    one.detach()
                    block.insert_op_before(one, op)
        for old, new in zip(list(op.results), values, strict=True):
            replace(old, new)
        op.detach()
        op.erase()


def _named_jvp(at: Tangents, op: NamedOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    return tangents


rule(CheckpointOp, _jvp)
rule(NamedOp, _named_jvp)
transposed_only(RecomputeOp, _recompute, "it is written among linear ops, which have no tangents")
