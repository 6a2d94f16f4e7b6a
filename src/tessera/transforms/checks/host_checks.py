"""Moves asserts that depend on sizes and strides only from kernels to the host, which checks them before a launch.

A GPU runs on while its caller does something else, and a kernel that can fail has to be waited for. Most asserts, and
most divisions that might divide by zero, are about shapes, which the caller knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.ir import Operation, SSAValue

from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.shapes.conditions import Condition
from tessera.transforms.checks.instrument import check_of
from tessera.transforms.core.context import CompileContext, HostCheck
from tessera.transforms.core.function_pass import FunctionPass

CHECKED = "checked"
"""Marks a division whose divisor is known not to be 0."""

_NAMES: Mapping[type[Operation], str] = {
    arith.AddiOp: "addi",
    arith.SubiOp: "subi",
    arith.MuliOp: "muli",
    arith.FloorDivSIOp: "floordivsi",
    arith.CeilDivSIOp: "ceildivsi",
    arith.DivSIOp: "divsi",
    arith.RemSIOp: "remsi",
    arith.MinSIOp: "minsi",
    arith.MaxSIOp: "maxsi",
    arith.AndIOp: "andi",
    arith.OrIOp: "ori",
    arith.SelectOp: "select",
}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


@dataclass(frozen=True)
class TakeHostChecks(FunctionPass):
    """`take_host_checks` for every tile function; the context gets the checks."""

    name = "take-host-checks"

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        found = take_host_checks(function)
        if isinstance(ctx, CompileContext):
            ctx.host_checks += found


def host_checks(function: tile.FuncOp) -> list[HostCheck]:
    """The conditions of such asserts, which stay in the function: CPU kernels check them, too, but when one fails,
    other program instances have run already."""
    indices: dict[SSAValue, int] = {argument: index for index, argument in enumerate(function.arguments)}
    known: dict[SSAValue, Condition | None] = {}
    asserts = [op for op in function.body.block.ops if isinstance(op, tile.AssertOp)]
    found = [(op, _condition(op.condition, indices, known)) for op in asserts]
    return [_check_of(op, condition) for op, condition in found if condition is not None]


def _check_of(op: tile.AssertOp, condition: Condition) -> HostCheck:
    words, named = op.message.data, op.attributes.get(tile.CHECK)
    check = named.data if isinstance(named, StringAttr) else check_of(words)
    return HostCheck(condition, words if check else f"assertion failed: {words}", span_of(op.location), check)


def take_host_checks(function: tile.FuncOp) -> list[HostCheck]:
    """Takes such asserts out of a function, and marks such divisions, in the order in which they would fail."""
    indices: dict[SSAValue, int] = {argument: index for index, argument in enumerate(function.arguments)}
    known: dict[SSAValue, Condition | None] = {}
    found: list[HostCheck] = []
    for op in list(function.body.block.ops):
        if isinstance(op, tile.AssertOp):
            condition = _condition(op.condition, indices, known)
            if condition is not None:
                found.append(_check_of(op, condition))
                op.detach()
                op.erase()
        elif isinstance(op, DIVISIONS):
            divisor = _condition(op.operands[1], indices, known)
            if divisor is not None:
                op.attributes[CHECKED] = UnitAttr()
                if not isinstance(divisor, int) or divisor == 0:
                    found.append(HostCheck(divisor, "divides by zero", span_of(op.location)))
    # In loops and branches nothing is checked ahead, for it may never run; but what was checked holds there, too.
    checked = {check.condition for check in found}
    for op in function.body.walk():
        if isinstance(op, DIVISIONS) and _condition(op.operands[1], indices, known) in checked:
            op.attributes[CHECKED] = UnitAttr()
    return found


def _condition(
    value: SSAValue, indices: Mapping[SSAValue, int], known: dict[SSAValue, Condition | None]
) -> Condition | None:
    if value not in known:
        known[value] = _made(value, indices, known)
    return known[value]


def _made(
    value: SSAValue, indices: Mapping[SSAValue, int], known: dict[SSAValue, Condition | None]
) -> Condition | None:
    owner = value.owner
    match owner:
        case arith.ConstantOp() if isinstance(owner.value, IntegerAttr):
            number = owner.value.value.data
            # Truths are 0 and 1 here; a signed bit that is set is −1.
            return number & 1 if owner.result.type == i1 else number
        case tile.DimOp() | tile.StrideOp() if owner.view in indices:
            name = "dim" if isinstance(owner, tile.DimOp) else "stride"
            return (name, indices[owner.view], owner.axis.value.data)
        case arith.CmpiOp() if owner.predicate.value.data < len(_PREDICATES):
            name = _PREDICATES[owner.predicate.value.data]
        case Operation() if type(owner) in _NAMES:
            name = _NAMES[type(owner)]
        case _:
            return None
    operands = [_condition(operand, indices, known) for operand in owner.operands]
    return None if any(operand is None for operand in operands) else (name, *operands)
