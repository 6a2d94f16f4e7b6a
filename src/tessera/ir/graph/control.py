"""Graph ops that choose and repeat: their bodies are blocks that see the values around them, and end with a yield."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition, traits_def
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import bool_
from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import SizesAttr
from tessera.ir.common.declared_ops import GIVEN_ALL, DeclaredOp, flag
from tessera.ir.graph.effects import AnyTensor
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.shapes.expr import Size

Types = Sequence[Attribute]


def _types(values: Sequence[SSAValue]) -> tuple[Attribute, ...]:
    return tuple(value.type for value in values)


def _listed(types: Types) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _verify_body(op: Operation, what: str, body: Region, arguments: Types, yields: Types) -> None:
    """A body takes and gives values of these types."""
    if tuple(body.block.arg_types) != tuple(arguments):
        raise VerifyException(f"{what} takes {_listed(arguments)}, not {_listed(tuple(body.block.arg_types))}")
    last = body.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{what} ends with graph.yield")
    if _types(last.values) != tuple(yields):
        raise VerifyException(f"{what} gives {_listed(yields)}, not {_listed(_types(last.values))}")


def _expect_flag(type_: Attribute, what: str) -> None:
    if not isinstance(type_, GraphTensorType) or type_.shape or type_.dtype.base is not bool_:
        raise VerifyException(f"{what} is one bool without axes, got {type_}")


@irdl_op_definition
class CondOp(DeclaredOp):
    """Runs one of two bodies."""

    name = "graph.cond"
    condition: SSAValue = fields.operand_def(AnyTensor)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    chosen: Region = fields.region_def("single_block")
    otherwise: Region = fields.region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "$condition `then` $chosen `else` $otherwise attr-dict `:` type($condition) `->` `(` type($results_) `)`"
    )

    def __init__(self, condition: SSAValue, chosen: Region, otherwise: Region, results: Types) -> None:
        super().__init__(condition, results, chosen, otherwise)

    def verify_(self) -> None:
        _expect_flag(self.condition.type, "a condition")
        results = _types(self.results_)
        _verify_body(self, "the first branch", self.chosen, (), results)
        _verify_body(self, "the second branch", self.otherwise, (), results)


@irdl_op_definition
class WhileOp(DeclaredOp):
    """Repeats a body as long as a condition holds; both see the carried values, and the body gives the next ones."""

    name = "graph.while"
    inits: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    condition: Region = fields.region_def("single_block")
    body: Region = fields.region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "`(` $inits `)` `if` $condition `do` $body attr-dict `:` `(` type($inits) `)` `->` `(` type($results_) `)`"
    )

    def __init__(self, inits: Sequence[SSAValue], condition: Region, body: Region) -> None:
        super().__init__(inits, _types(inits), condition, body)

    def verify_(self) -> None:
        carried = _types(self.inits)
        if _types(self.results_) != carried:
            raise VerifyException(f"a loop that begins with {_listed(carried)} gives {_listed(_types(self.results_))}")
        last = self.condition.block.last_op
        flags = _types(last.values) if isinstance(last, YieldOp) else ()
        _verify_body(self, "the condition", self.condition, carried, flags[:1])
        if len(flags) != 1:
            raise VerifyException("the condition gives one bool")
        _expect_flag(flags[0], "a condition")
        _verify_body(self, "the body", self.body, carried, carried)


@irdl_op_definition
class ScanOp(DeclaredOp):
    """Runs a body once for each index along the first axis of `xs`, and carries values on.

    The body takes the carried values and one slice of each of `xs`; it gives the next carried values, and one slice of
    each further result. `reverse` begins at the last index; slices of results lie where those of `xs` did.
    """

    name = "graph.scan"
    inits: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    xs: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    length: SizesAttr = fields.prop_def(SizesAttr, converter=SizesAttr)
    reverse: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    results_: Sequence[OpResult] = fields.var_result_def(AnyTensor, converter=GIVEN_ALL)
    body: Region = fields.region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "$length (`reverse` $reverse^)? `from` `(` $inits `)` `over` `(` $xs `)` `do` $body attr-dict "
        "`:` `(` type($inits) `)` `,` `(` type($xs) `)` `->` `(` type($results_) `)`"
    )

    def __init__(
        self, length: Size, inits: Sequence[SSAValue], xs: Sequence[SSAValue], body: Region, *, reverse: bool = False
    ) -> None:
        last = body.block.last_op
        given = _types(last.values) if isinstance(last, YieldOp) else ()
        stacked = [
            type_.with_shape((length, *type_.shape))
            for type_ in given[len(inits) :]
            if isinstance(type_, GraphTensorType)
        ]
        super().__init__(inits, xs, (length,), [*_types(inits), *stacked], body, reverse=reverse)

    @property
    def count(self) -> Size:
        """How often the body runs."""
        return self.length.data[0]

    def verify_(self) -> None:
        if len(self.length.data) != 1:
            raise VerifyException(f"a scan has one length, got {self.length}")
        slices: list[Attribute] = []
        for x in self.xs:
            type_ = graph_type(x)
            if not type_.shape or type_.shape[0] != self.count:
                raise VerifyException(
                    f"a scan of length {self.count} goes over {self.count} slices, {type_} has others"
                )
            slices.append(type_.with_shape(type_.shape[1:]))
        carried, results = _types(self.inits), _types(self.results_)
        if results[: len(carried)] != carried:
            raise VerifyException(f"a scan that begins with {_listed(carried)} gives {_listed(results)}")
        pieces: list[Attribute] = []
        for value in self.results_[len(carried) :]:
            type_ = graph_type(value)
            if not type_.shape or type_.shape[0] != self.count:
                raise VerifyException(f"a scan of length {self.count} stacks {self.count} slices, not as in {type_}")
            pieces.append(type_.with_shape(type_.shape[1:]))
        _verify_body(self, "the body", self.body, (*carried, *slices), (*carried, *pieces))


def slice_of(type_: GraphTensorType) -> GraphTensorType:
    """The type of one slice along the first axis."""
    return type_.with_shape(type_.shape[1:])


@irdl_op_definition
class YieldOp(DeclaredOp):
    """Ends a body and gives values to the op around it."""

    name = "graph.yield"
    values: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    traits = traits_def(IsTerminator(), HasParent(CondOp, WhileOp, ScanOp), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"


def body_of(arguments: Types) -> Region:
    """An empty body that takes values of these types."""
    return Region(Block(arg_types=arguments))
