"""Graph ops with effects: random numbers, state, collectives and output."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TypeVar

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, StringAttr, SymbolNameConstraint, SymbolRefAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.irdl import AnyAttr, BaseAttr, irdl_op_definition, traits_def
from xdsl.traits import EffectInstance, Pure, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common import reductions
from tessera.ir.common.attributes import Name, verifying
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp
from tessera.ir.common.effects import IO, RANDOM, HasEffects, World, reads, writes
from tessera.ir.graph.types import GraphTensorType, graph_type

AnyTensor = BaseAttr(GraphTensorType)
DISTRIBUTIONS = ("uniform", "normal")
OpT = TypeVar("OpT", bound=Operation)


def look_up(op: Operation, symbol: SymbolRefAttr, kind: type[OpT]) -> OpT:
    """The op a symbol names; anything else is a verification error."""
    found = SymbolTable.lookup_symbol(op, symbol)
    if not isinstance(found, kind):
        what = "nothing" if found is None else found.name
        raise VerifyException(f"@{symbol.string_value()} must name a {kind.name}, it names {what}")
    return found


@irdl_op_definition
class RandomOp(DeclaredOp):
    """Fresh numbers from the function's random stream: uniform on [0, 1) or standard normal."""

    name = "graph.random"
    distribution: Name = fields.prop_def(Name, converter=Name)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(HasEffects())
    assembly_format = "`` $distribution attr-dict `:` type($result)"

    def verify_(self) -> None:
        if self.distribution.data not in DISTRIBUTIONS:
            raise VerifyException(f"unknown distribution {self.distribution.data}: {' or '.join(DISTRIBUTIONS)}")
        if not graph_type(self.result).dtype.is_float:
            raise VerifyException(f"random numbers are floats, got {graph_type(self.result).dtype}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(RANDOM)}


@irdl_op_definition
class StateOp(DeclaredOp):
    """Declares a slot that outlives calls; it holds zeros until written."""

    name = "graph.state"
    sym_name: StringAttr = fields.prop_def(SymbolNameConstraint(), converter=StringAttr)
    type_: Attribute = fields.prop_def(AnyAttr(), prop_name="type")
    traits = traits_def(SymbolOpInterface(), Pure())
    assembly_format = "$sym_name `:` $type attr-dict"

    def verify_(self) -> None:
        if not isinstance(self.type_, GraphTensorType):
            raise VerifyException(f"a state slot holds a graph tensor, not {self.type_}")
        if not all(isinstance(size, int) for size in self.type_.shape):
            raise VerifyException(f"a state slot has constant sizes, got {self.type_}")


@irdl_op_definition
class StateReadOp(DeclaredOp):
    """The value a slot holds now."""

    name = "graph.state_read"
    slot: SymbolRefAttr = fields.prop_def(FlatSymbolRefAttrConstr, converter=SymbolRefAttr)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(HasEffects())
    assembly_format = "$slot attr-dict `:` type($result)"

    def verify_(self) -> None:
        if look_up(self, self.slot, StateOp).type_ != self.result.type:
            raise VerifyException(f"@{self.slot.string_value()} does not hold a {self.result.type}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(World("state", self.slot.string_value()))}


@irdl_op_definition
class StateWriteOp(DeclaredOp):
    """Puts a value into a slot."""

    name = "graph.state_write"
    slot: SymbolRefAttr = fields.prop_def(FlatSymbolRefAttrConstr, converter=SymbolRefAttr)
    value: SSAValue = fields.operand_def(AnyTensor)
    traits = traits_def(HasEffects())
    assembly_format = "$slot `,` $value attr-dict `:` type($value)"

    def verify_(self) -> None:
        if look_up(self, self.slot, StateOp).type_ != self.value.type:
            raise VerifyException(f"@{self.slot.string_value()} does not hold a {self.value.type}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(World("state", self.slot.string_value()))}


@irdl_op_definition
class AllReduceOp(DeclaredOp):
    """Combines the values of all ranks along a mesh axis; every rank must reach it, in the same order."""

    name = "graph.all_reduce"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTensor)
    axis: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(HasEffects())
    assembly_format = "`` $kind $operand `over` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        if self.result.type != self.operand.type:
            raise VerifyException(f"all_reduce keeps the type: {self.operand.type} became {self.result.type}")
        with verifying:
            reductions.check(self.kind.data, graph_type(self.operand).dtype)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(World("collective", self.axis.data))}


@irdl_op_definition
class PrintOp(DeclaredOp):
    """Shows a labelled tensor to people."""

    name = "graph.print"
    label: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    value: SSAValue = fields.operand_def(AnyTensor)
    traits = traits_def(HasEffects())
    assembly_format = "$label `,` $value attr-dict `:` type($value)"

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}
