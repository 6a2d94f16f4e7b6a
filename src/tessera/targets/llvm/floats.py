"""Arithmetic on floats in registers at one level of the processor: fused where it fuses, with AVX-512's own steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from tessera.targets.llvm.elements import NAN, fuses, is_arm, reaches
from tessera.targets.llvm.text import (
    Function,
    Operand,
    Value,
    bits_of,
    lanes_of,
    like,
    number,
    numbers,
    of_type,
    poison,
    suffix_of,
)

SIXTEEN = "<16 x float>"


class Floats:
    """Works on values of one type, `float`, `double` or vectors of them; Python's numbers are constants of it."""

    def __init__(self, f: Function, type_: str, level: str) -> None:
        self.f = f
        self.type = type_
        self.level = level
        self.lanes = lanes_of(type_)
        self._words = like(type_, f"i{bits_of(type_)}")
        self._fuses = fuses(level)

    def of(self, x: Operand) -> Value:
        return of_type(self.type, x)

    # Arithmetic

    def add(self, a: Operand, b: Operand) -> Value:
        return self.f.binary("fadd", self.of(a), self.of(b))

    def sub(self, a: Operand, b: Operand) -> Value:
        return self.f.binary("fsub", self.of(a), self.of(b))

    def mul(self, a: Operand, b: Operand) -> Value:
        return self.f.binary("fmul", self.of(a), self.of(b))

    def open_mul(self, a: Operand, b: Operand) -> Value:
        """a·b, which a sum that allows it may take with it, so that both are rounded once."""
        return self.f.binary("fmul contract", self.of(a), self.of(b))

    def div(self, a: Operand, b: Operand) -> Value:
        return self.f.binary("fdiv", self.of(a), self.of(b))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a·b + c, rounded once where the processor does that in one step and twice where it does not."""
        if not self._fuses:
            return self.add(self.mul(a, b), c)
        return self.f.intrinsic("fma", self.of(a), self.of(b), self.of(c))

    def neg(self, x: Operand) -> Value:
        return self.f.op(self.type, f"fneg {self.of(x)}")

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """c0 + x·(c1 + x·(c2 + …))."""
        *rest, found = [self.of(c) for c in coefficients]
        for coefficient in reversed(rest):
            found = self.fma(found, x, coefficient)
        return found

    def sqrt(self, x: Value) -> Value:
        return self.f.intrinsic("sqrt", x)

    def absolute(self, x: Value) -> Value:
        return self.f.intrinsic("fabs", x)

    def with_sign(self, size: Operand, sign: Value) -> Value:
        return self.f.intrinsic("copysign", self.of(size), sign)

    # Choices

    def compare(self, predicate: str, a: Operand, b: Operand) -> Value:
        return self.f.compare(predicate, self.of(a), self.of(b))

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        return self.f.select(condition, self.of(a), self.of(b))

    def at_most(self, x: Value, bound: float) -> Value:
        """The smaller of the two, NaN if x is: one instruction in this order."""
        if is_arm(self.level):
            return self.f.intrinsic("minimum", x, self.of(bound))
        return self.select(self.compare("olt", bound, x), bound, x)

    def at_least(self, x: Value, bound: float) -> Value:
        if is_arm(self.level):
            return self.f.intrinsic("maximum", x, self.of(bound))
        return self.select(self.compare("ogt", bound, x), bound, x)

    def both(self, a: Value, b: Value) -> Value:
        return self.f.binary("and", a, b)

    def either(self, a: Value, b: Value) -> Value:
        return self.f.binary("or", a, b)

    # Bits

    def bits(self, x: Operand) -> Value:
        return self.f.convert("bitcast", self.of(x), f"i{bits_of(self.type)}")

    def of_bits(self, words: Value) -> Value:
        return self.f.convert("bitcast", words, {32: "float", 64: "double"}[bits_of(self.type)])

    def word(self, value: int) -> Value:
        return number(value, self._words)

    def on_bits(self, opcode: str, words: Value, by: Value | int) -> Value:
        return self.f.binary(opcode, words, by)

    def changed(self, other: str) -> Floats:
        """The same lanes of another element."""
        return Floats(self.f, like(self.type, other), self.level)


class Sixteen(Floats):
    """Vectors of sixteen `float`s, with what AVX-512 adds. Everything here takes any float, infinities and NaN too."""

    _EVERY = Value("-1", "i16")
    _AS_SET = Value("4", "i32")  # the rounding that is set: to nearest even

    def __init__(self, f: Function, level: str, *, flushes: bool = False) -> None:
        super().__init__(f, SIXTEEN, level)
        self.flushes = flushes
        """Whether the processor writes zeros for subnormal results, which otherwise are slow to make."""

    def _masked(self, name: str, *operands: Value, where: Value | None = None) -> Value:
        """An operation under a mask; lanes that are not wanted are 0."""
        mask = self._EVERY if where is None else self.f.op("i16", f"bitcast {where} to i16")
        given = [*operands, self.of(0.0), mask, self._AS_SET]
        return self.f.call(f"llvm.x86.avx512.mask.{name}.ps.512", SIXTEEN, given)

    def scaled(self, x: Value, exponent: Value, where: Value | None = None) -> Value:
        """x · 2^⌊exponent⌋, rounded once; an infinite exponent gives 0 or infinity."""
        return self._masked("scalef", x, exponent, where=where)

    def exponent(self, x: Value) -> Value:
        """⌊log2 |x|⌋; −∞ for 0 and ∞ for ∞."""
        return self._masked("getexp", x)

    def mantissa(self, x: Value) -> Value:
        """x / 2^exponent, in [1, 2); 1 for 0 and ∞, NaN for what is negative (but −0)."""
        return self._masked("getmant", x, Value("8", "i32"))

    def fraction(self, x: Value, digits: int) -> Value:
        """x without the part that `digits` binary digits after the point hold, rounding down; 0 for infinities."""
        return self._masked("reduce", x, Value(str(digits << 4 | 0b1001), "i32"))

    def highest(self, a: Value, b: Value) -> Value:
        """The larger of two; +0 is above −0, and NaN above everything."""
        return self._extreme(a, b, "5")

    def lowest(self, a: Value, b: Value) -> Value:
        return self._extreme(a, b, "4")

    def _extreme(self, a: Value, b: Value, which: str) -> Value:
        found = self._masked("range", a, b, Value(which, "i32"))
        return self.select(self.compare("uno", a, b), self.add(a, b), found)

    def add_down(self, a: Value, b: float) -> Value:
        """a + b, rounded down."""
        return self.f.call("llvm.x86.avx512.add.ps.512", SIXTEEN, [a, self.of(b), Value("9", "i32")])

    def nearly_inverse(self, x: Value) -> Value:
        """1/x to 14 bits."""
        return self.f.call("llvm.x86.avx512.rcp14.ps.512", SIXTEEN, [x, self.of(0.0), self._EVERY])

    def nearly_inverse_root(self, x: Value) -> Value:
        """1/√x to 14 bits."""
        return self.f.call("llvm.x86.avx512.rsqrt14.ps.512", SIXTEEN, [x, self.of(0.0), self._EVERY])

    def look_up(self, table: Sequence[float], x: Value) -> Value:
        """The entry of a table of sixteen at the lowest four bits of each lane."""
        return self.f.call("llvm.x86.avx512.permvar.sf.512", SIXTEEN, [numbers(table, "float"), self.bits(x)])


def logarithm_at_ends(k: Floats, x: Value, found: Value) -> Value:
    """A logarithm: infinite for 0 and infinity, NaN below."""
    found = k.select(k.compare("oeq", x, inf), x, found)
    found = k.select(k.compare("oeq", x, 0.0), -inf, found)
    return k.select(k.compare("ult", x, 0.0), NAN, found)


def power_at_one(k: Floats, a: Value, b: Value, found: Value) -> Value:
    """A power: 1 to any power, anything to the power 0, and −1 to an infinite power are 1."""
    one = k.either(k.compare("oeq", a, 1.0), k.compare("oeq", b, 0.0))
    endless = k.compare("oeq", k.absolute(b), inf)
    one = k.either(one, k.both(endless, k.compare("oeq", a, -1.0)))
    return k.select(one, 1.0, found)


def floored_quotient(k: Floats, a: Value, b: Value, rest: Value) -> Value:
    """a / b rounded down, by the remainder that has the sign of a."""
    lower, quotient = _is_cut_up(k, b, rest), k.div(k.sub(a, rest), b)
    quotient = k.select(lower, k.sub(quotient, 1.0), quotient)
    floor = k.f.intrinsic("floor", quotient)
    whole = k.select(k.compare("ogt", k.sub(quotient, floor), 0.5), k.add(floor, 1.0), floor)
    ratio = k.div(a, b)
    whole = k.select(k.compare("oeq", quotient, 0.0), k.with_sign(0.0, ratio), whole)
    return k.select(k.compare("oeq", b, 0.0), ratio, whole)


def floored_rest(k: Floats, b: Value, rest: Value) -> Value:
    """The remainder that has the sign of b, by the one that has the sign of a."""
    lower = _is_cut_up(k, b, rest)
    return k.select(k.compare("oeq", rest, 0.0), k.with_sign(0.0, b), k.select(lower, k.add(rest, b), rest))


def _is_cut_up(k: Floats, b: Value, rest: Value) -> Value:
    """Whether the quotient that was cut towards zero is one more than the one that is rounded down."""
    other_sign = k.f.binary("xor", k.compare("olt", b, 0.0), k.compare("olt", rest, 0.0))
    return k.both(other_sign, k.compare("une", rest, 0.0))


def fits_sixteens(type_: str, level: str) -> bool:
    """Whether `in_sixteens` can take values of this type."""
    lanes = lanes_of(type_)
    return reaches(level, "avx512") and lanes >= 16 and lanes & (lanes - 1) == 0


def in_sixteens(f: Function, operands: Sequence[Value], work: Callable[..., Value]) -> Value:
    """`work` on sixteen lanes at a time."""
    lanes = lanes_of(operands[0].type)
    pieces = [
        work(*(f.shuffle(operand, None, range(start, start + 16)) for operand in operands) if lanes > 16 else operands)
        for start in range(0, lanes, 16)
    ]
    while len(pieces) > 1:
        size = lanes_of(pieces[0].type)
        pieces = [f.shuffle(low, high, range(2 * size)) for low, high in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]


def lane_by_lane(f: Function, name: str, operands: Sequence[Value], work: Callable[..., Value]) -> Value:
    """A computation on scalars, applied to each lane by a function of the module, which is made when first needed.

    `work(g, *scalars)` writes the computation of one lane into a function g. One name means the same work everywhere.
    """
    type_ = operands[0].type
    lanes = lanes_of(type_)
    if not lanes:
        return work(f, *operands)
    called = f"lanes.{name}.{suffix_of(type_)}"
    if called not in f.module:
        g = f.module.function(called, [(operand.type, f"x{at}") for at, operand in enumerate(operands)], returns=type_)
        found = poison(type_)
        for lane in range(lanes):
            found = g.insert(found, work(g, *(g.lane(argument, lane) for argument in g.arguments)), lane)
        g.give(found)
    return f.op(type_, f"call {type_} @{called}({', '.join(map(str, operands))})")


def any_lane(f: Function, condition: Value) -> Value:
    lanes = lanes_of(condition.type)
    if not lanes:
        return condition
    return f.call(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [condition])
