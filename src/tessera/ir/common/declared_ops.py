"""Ops that are built of what they declare: the constructor takes a class's declarations, in their order.

    class DimOp(DeclaredOp):
        view: SSAValue = operand_def(AnyView)
        axis: IntegerAttr = prop_def(IntegerConstraint, converter=integer)
        result: OpResult = result_def(IndexType)

is built by `DimOp(view, 1)`. Type checkers know such a constructor, as they know that of a dataclass: annotations say
what an op's attributes give, converters what the constructor takes for them. What is optional is given by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast, dataclass_transform, overload

from xdsl import irdl
from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import AttrSizedOperandSegments, InferenceContext, IRDLAttrConstraint, RangeConstraint, VariadicDef

from tessera.ir.common.plain_classes import make_plain

make_plain()  # before the class that all ops are made of

AttributeT = TypeVar("AttributeT", bound=Attribute)
T = TypeVar("T")

GIVEN = cast(Callable[[Attribute], OpResult], "given")
"""The converter of a result whose type the constructor takes; other results' types are known from all else."""
GIVEN_ALL = cast(Callable[[Sequence[Attribute]], Sequence[OpResult]], "given")
"""The converter of results whose types the constructor takes."""


class _Field(NamedTuple):
    """A declaration: xDSL's, and how the constructor takes it."""

    definition: Any
    converter: Callable[[Any], Any] | None = None
    is_optional: bool = False
    is_argument: bool = True


def operand_def(constraint: IRDLAttrConstraint) -> SSAValue:
    return cast(SSAValue, _Field(irdl.operand_def(constraint)))


def var_operand_def(constraint: IRDLAttrConstraint | RangeConstraint) -> Sequence[SSAValue]:
    return cast(Sequence[SSAValue], _Field(irdl.var_operand_def(constraint)))


def opt_operand_def(constraint: IRDLAttrConstraint, *, default: None, kw_only: Literal[True] = True) -> SSAValue | None:
    return cast(SSAValue, _Field(irdl.opt_operand_def(constraint), is_optional=True))


def prop_def(
    constraint: IRDLAttrConstraint[AttributeT],
    *,
    converter: Callable[..., AttributeT] | None = None,
    prop_name: str | None = None,
) -> AttributeT:
    return cast(AttributeT, _Field(irdl.prop_def(constraint, prop_name=prop_name), converter))


def opt_prop_def(
    constraint: IRDLAttrConstraint[AttributeT],
    *,
    default: Literal[False] | None,
    converter: Callable[..., AttributeT | None] | None = None,
    kw_only: Literal[True] = True,
) -> AttributeT | None:
    return cast(AttributeT, _Field(irdl.opt_prop_def(constraint), converter, is_optional=True))


@overload
def result_def(constraint: IRDLAttrConstraint, *, init: Literal[False] = False) -> OpResult: ...
@overload
def result_def(constraint: IRDLAttrConstraint, *, converter: Callable[[Attribute], OpResult]) -> OpResult: ...
def result_def(constraint: IRDLAttrConstraint, *, init: bool = False, converter: object = None) -> OpResult:
    return cast(OpResult, _Field(irdl.result_def(constraint), is_argument=converter is GIVEN))


def var_result_def(
    constraint: IRDLAttrConstraint | RangeConstraint, *, converter: Callable[[Sequence[Attribute]], Sequence[OpResult]]
) -> Sequence[OpResult]:
    return cast(Sequence[OpResult], _Field(irdl.var_result_def(constraint)))


def region_def(single_block: Literal["single_block"]) -> Region:
    return cast(Region, _Field(irdl.region_def(single_block)))


def opt_region_def(
    single_block: Literal["single_block"], *, default: None, kw_only: Literal[True] = True
) -> Region | None:
    return cast(Region, _Field(irdl.opt_region_def(single_block), is_optional=True))


def flag(value: bool) -> UnitAttr | None:
    """A property that is there or is not."""
    return UnitAttr() if value else None


def optional(converter: Callable[[T], AttributeT]) -> Callable[[T | None], AttributeT | None]:
    """A converter of what may be None, which is not converted."""
    return cast(Callable[[T | None], AttributeT | None], converter)


def _inherited(*, init: Literal[False] = False) -> Any: ...


@dataclass_transform(
    eq_default=False,
    field_specifiers=(
        operand_def,
        var_operand_def,
        opt_operand_def,
        prop_def,
        opt_prop_def,
        result_def,
        var_result_def,
        region_def,
        opt_region_def,
        _inherited,
    ),
)
class _Declared:
    """What has a constructor that takes its declarations."""


class DeclaredOp(_Declared, irdl.IRDLOperation):
    """An op that is built of its declarations."""

    if TYPE_CHECKING:  # xDSL's operations are dataclasses: none of their own fields is an argument.
        _operands: SSAValues = _inherited()
        _operand_uses: tuple[Use, ...] = _inherited()
        results: SSAValues[OpResult] = _inherited()
        _successors: tuple[Block, ...] = _inherited()
        _successor_uses: tuple[Use, ...] = _inherited()
        properties: dict[str, Attribute] = _inherited()
        attributes: dict[str, Attribute] = _inherited()
        location: LocationAttr = _inherited()
        regions: tuple[Region, ...] = _inherited()
        parent: Block | None = _inherited()
        _next_op: Operation | None = _inherited()
        _prev_op: Operation | None = _inherited()

    __fields__ = MappingProxyType(dict[str, _Field]())
    """All declarations that are no results of known types, those of the classes above first."""

    def __init_subclass__(cls) -> None:
        own = {name: field for name, field in vars(cls).items() if isinstance(field, _Field)}
        for name, field in own.items():
            setattr(cls, name, field.definition)
        own = {name: field for name, field in own.items() if field.is_argument}
        cls.__fields__ = MappingProxyType({**cls.__fields__, **own})

    def __init__(self, *arguments: Any, **named: Any) -> None:
        plan = _plan(type(self))
        given = {**dict(zip(plan.positional, arguments, strict=False)), **named}
        if len(given) < len(arguments) + len(named) or not plan.needed <= given.keys() <= self.__fields__.keys():
            raise TypeError(f"{self.name} is built of {', '.join(self.__fields__)}: got {len(arguments)} of them")
        properties: dict[str, Attribute] = {}
        for name, ir_name, converter in plan.properties:
            made = given.get(name)
            if made is not None and converter is not None:
                made = converter(made)
            if made is not None:
                properties[ir_name] = made
        operands: list[SSAValue] = []
        sizes: list[int] = []
        for name, is_variadic in plan.operands:
            value = given.get(name)
            before = len(operands)
            if is_variadic and isinstance(value, Sequence):
                operands += cast(Sequence[SSAValue], value)
            elif value is not None:
                operands.append(value)
            sizes.append(len(operands) - before)
        if plan.has_segments:
            properties[AttrSizedOperandSegments.attribute_name] = _segments(*sizes)
        types = given.get(plan.given_result, plan.result_types)
        Operation.__init__(
            self,
            operands=operands,
            result_types=(types,) if isinstance(types, Attribute) else types or (),
            properties=properties,
            regions=[given[name] for name in plan.regions if given.get(name) is not None],
        )
        if types is None:
            try:
                self.results = SSAValues((OpResult(self.result_type(), self, 0),))
            except BaseException:
                self.operands = ()
                raise

    def result_type(self) -> Attribute:
        """The type of the result, from all else that the op has."""
        raise NotImplementedError(f"{self.name} does not say the type of its result")


class _Plan(NamedTuple):
    """How the declarations of an op become parts of it."""

    positional: tuple[str, ...]
    needed: frozenset[str]
    operands: tuple[tuple[str, bool], ...]
    """Their names, and whether there may be none or several."""
    has_segments: bool
    properties: tuple[tuple[str, str, Callable[[Any], Attribute | None] | None], ...]
    """The names of fields and of properties, and converters."""
    regions: tuple[str, ...]
    given_result: str
    """The name of the results whose types are given, if there are any."""
    result_types: tuple[Attribute, ...] | None
    """None where declarations leave a choice."""


@cache
def _plan(kind: type[DeclaredOp]) -> _Plan:
    fields, definition = kind.__fields__, kind.get_irdl_definition()
    types = None
    if all(one.constr.can_infer(frozenset(), length_known=True) for _, one in definition.results):
        types = tuple(one.constr.infer(InferenceContext(), length=1)[0] for _, one in definition.results)
    return _Plan(
        tuple(name for name, field in fields.items() if not field.is_optional),
        frozenset(name for name, field in fields.items() if not field.is_optional),
        tuple((name, isinstance(one, VariadicDef)) for name, one in definition.operands),
        any(isinstance(option, AttrSizedOperandSegments) for option in definition.options),
        tuple((name, ir_name, fields[name].converter) for name, (ir_name, _) in definition.accessor_names.items()),
        tuple(name for name, _ in definition.regions),
        next((name for name, _ in definition.results if name in fields), ""),
        types,
    )


@cache
def _segments(*sizes: int) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i32, list(sizes))
