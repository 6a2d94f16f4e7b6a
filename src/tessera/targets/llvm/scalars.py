"""Scalars in LLVM text, for the emitters of all targets. A division by zero is reported, and stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Operation

from tessera.dtypes.types import bool_
from tessera.interpreters.core.scalars import CASTS, FLOAT, INTEGER_CASTS, ORDERED
from tessera.ir.common.elements import dtype_of
from tessera.targets.llvm import casts, elementwise
from tessera.targets.llvm.elements import constant
from tessera.targets.llvm.emitter import KernelEmitter, RuleTable, said
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Function, Value, number
from tessera.transforms.checks.host_checks import CHECKED

RULES: RuleTable[KernelEmitter] = RuleTable()
"""The rule of each op; none has an effect."""
emits = RULES.emits
Rule = Callable[[KernelEmitter, Operation], None]

_INTEGER: Mapping[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
}
_EXTREMES: Mapping[type[Operation], str] = {arith.MinSIOp: "smin", arith.MaxSIOp: "smax"}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@emits(arith.ConstantOp)
def _constant(emitter: KernelEmitter, op: arith.ConstantOp) -> None:
    assert isinstance(op.value, IntegerAttr | FloatAttr)
    data: float | int = op.value.value.data
    type_ = op.result.type
    emitter.values[op.result] = number(data, "i64") if isinstance(type_, IndexType) else constant(data, dtype_of(type_))


def integer_rule(opcode: str) -> Rule:
    """Whole-number arithmetic on scalars."""

    def rule(emitter: KernelEmitter, op: Operation) -> None:
        a, b = (emitter.number(operand) for operand in op.operands)
        emitter.values[op.results[0]] = folded(emitter.f, opcode, a, b)

    return rule


def _extreme_rule(name: str) -> Rule:
    def rule(emitter: KernelEmitter, op: Operation) -> None:
        a, b = (emitter.number(operand) for operand in op.operands)
        emitter.values[op.results[0]] = emitter.f.intrinsic(name, a, b)

    return rule


def _float_rule(name: str) -> Rule:
    def rule(emitter: KernelEmitter, op: Operation) -> None:
        dtype = dtype_of(op.results[0].type)
        operands = [emitter.number(operand) for operand in op.operands]
        emitter.values[op.results[0]] = elementwise.apply(
            emitter.f, name, operands, [dtype] * len(operands), dtype, emitter.level
        )

    return rule


for _kind, _opcode in _INTEGER.items():
    emits(_kind)(integer_rule(_opcode))
for _kind, _opcode in _EXTREMES.items():
    emits(_kind)(_extreme_rule(_opcode))
for _kind, _opcode in FLOAT.items():
    emits(_kind)(_float_rule(_opcode))


def _division(emitter: KernelEmitter, op: Operation) -> tuple[Value, Value]:
    """The operands of a division, the divisor never 0: a kernel that divides by 0 is reported, and not trapped."""
    a, b = (emitter.number(operand) for operand in op.operands)
    if literal(b) not in (None, 0) or CHECKED in op.attributes:
        return a, b
    zero = emitter.f.compare("eq", b, 0)
    emitter.f.branch(zero, lambda: emitter.report(said("divides by zero", op)))
    return a, emitter.f.select(zero, number(1, b.type), b)


@emits(arith.DivSIOp)
def _divide(emitter: KernelEmitter, op: arith.DivSIOp) -> None:
    emitter.values[op.result] = emitter.f.binary("sdiv", *_division(emitter, op))


@emits(arith.RemSIOp)
def _remainder(emitter: KernelEmitter, op: arith.RemSIOp) -> None:
    emitter.values[op.result] = emitter.f.binary("srem", *_division(emitter, op))


def _floor_quotient(f: Function, a: Value, b: Value) -> Value:
    known = literal(b)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return f.binary("ashr", a, known.bit_length() - 1) if known > 1 else a
    quotient = f.binary("sdiv", a, b)
    rest = f.binary("sub", a, f.binary("mul", quotient, b))
    inexact = f.compare("ne", rest, 0)
    opposed = f.compare("slt", f.binary("xor", a, b), 0)
    down = f.convert("zext", f.binary("and", inexact, opposed), a.type)
    return f.binary("sub", quotient, down)


@emits(arith.FloorDivSIOp)
def _floor_divide(emitter: KernelEmitter, op: arith.FloorDivSIOp) -> None:
    emitter.values[op.result] = _floor_quotient(emitter.f, *_division(emitter, op))


@emits(arith.CeilDivSIOp)
def _ceil_divide(emitter: KernelEmitter, op: arith.CeilDivSIOp) -> None:
    a, b = _division(emitter, op)
    f = emitter.f
    negative = f.binary("sub", number(0, a.type), a)
    emitter.values[op.result] = f.binary("sub", number(0, a.type), _floor_quotient(f, negative, b))


@emits(arith.CmpiOp)
def _compare_integers(emitter: KernelEmitter, op: arith.CmpiOp) -> None:
    a, b = emitter.number(op.lhs), emitter.number(op.rhs)
    emitter.values[op.result] = emitter.f.compare(_PREDICATES[op.predicate.value.data], a, b)


@emits(arith.CmpfOp)
def _compare_floats(emitter: KernelEmitter, op: arith.CmpfOp) -> None:
    dtype = dtype_of(op.lhs.type)
    operands = [emitter.number(op.lhs), emitter.number(op.rhs)]
    name = ORDERED[op.predicate.value.data]
    emitter.values[op.result] = elementwise.apply(emitter.f, name, operands, [dtype, dtype], bool_, emitter.level)


@emits(arith.SelectOp)
def _select(emitter: KernelEmitter, op: arith.SelectOp) -> None:
    condition, first, second = (emitter.number(operand) for operand in op.operands)
    emitter.values[op.result] = emitter.f.select(condition, first, second)


@emits(*CASTS)
def _cast_rule(emitter: KernelEmitter, op: Operation) -> None:
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    emitter.values[op.results[0]] = casts.cast(emitter.f, emitter.number(op.operands[0]), source, target, emitter.level)


@emits(*INTEGER_CASTS)
def _integer_cast_rule(emitter: KernelEmitter, op: Operation) -> None:
    given, to = emitter.number(op.operands[0]), op.results[0].type
    width = 64 if isinstance(to, IndexType) else dtype_of(to).bits
    source = int(given.type[1:])
    if width == source:
        emitter.values[op.results[0]] = given
        return
    # i1 is 0 or 1; 4-bit integers are kept in 8 bits.
    opcode = "trunc" if width < source else "zext" if source == 1 else "sext"
    emitter.values[op.results[0]] = emitter.f.convert(opcode, given, f"i{max(width, 8) if width > 1 else 1}")
