"""Integer functions on registers: division, powers and shifts that have a result for every operand and never trap."""

from __future__ import annotations

from tessera.targets.llvm.floats import lane_by_lane
from tessera.targets.llvm.text import Function, Value, bits_of, lanes_of, number


def divide(f: Function, a: Value, b: Value, *, signed: bool) -> tuple[Value, Value]:
    """The quotient rounded down and what remains; 0 and `a` where b is 0. A quotient that does not fit wraps around."""
    zero = number(0, a.type)
    by_zero = f.compare("eq", b, zero)
    divisor = f.select(by_zero, number(1, a.type), b)
    if signed:
        # The smallest number over −1 is itself, as it is over 1.
        lowest = f.compare("eq", a, -1 << (bits_of(a.type) - 1))
        wraps = f.binary("and", lowest, f.compare("eq", b, -1))
        divisor = f.select(wraps, number(1, a.type), divisor)
    quotient = _truncated(f, a, divisor, signed=signed)
    rest = f.binary("sub", a, f.binary("mul", quotient, divisor))
    if signed:
        opposite = f.compare("slt", f.binary("xor", rest, divisor), zero)
        down = f.binary("and", opposite, f.compare("ne", rest, zero))
        quotient = f.select(down, f.binary("sub", quotient, 1), quotient)
        rest = f.select(down, f.binary("add", rest, divisor), rest)
    return f.select(by_zero, zero, quotient), f.select(by_zero, a, rest)


def _truncated(f: Function, a: Value, divisor: Value, *, signed: bool) -> Value:
    """The quotient cut towards zero, which fits.

    Processors divide vectors of floats only. A quotient of 16-bit integers in f32, or of 32-bit ones in f64, is never
    rounded up to a whole number: it is further from it than half a unit in the last place.
    """
    opcode, width = "sdiv" if signed else "udiv", bits_of(a.type)
    if not lanes_of(a.type) or not divisor.name.startswith("%"):
        return f.binary(opcode, a, divisor)
    if width == 64:

        def scalar(g: Function, x: Value, y: Value) -> Value:
            return g.binary(opcode, x, y)

        return lane_by_lane(f, opcode, [a, divisor], scalar)
    wide = "double" if width == 32 else "float"
    to_float, to_integer = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    quotient = f.binary("fdiv", f.convert(to_float, a, wide), f.convert(to_float, divisor, wide))
    if width == 32:
        return f.convert(to_integer, quotient, "i32")
    return f.convert("trunc", f.convert("fptosi", quotient, "i32"), f"i{width}")


def power(f: Function, a: Value, b: Value, *, signed: bool) -> Value:
    """a^b, which wraps around; negative exponents give the exact power cut towards zero, and 0 for a base of 0."""
    one, zero = number(1, a.type), number(0, a.type)

    def odd(x: Value) -> Value:
        return f.compare("ne", f.binary("and", x, one), zero)

    def square(_: Value, carried: list[Value]) -> list[Value]:
        found, base, exponent = carried
        found = f.select(odd(exponent), f.binary("mul", found, base), found)
        return [found, f.binary("mul", base, base), f.binary("lshr", exponent, one)]

    found = f.loop(0, bits_of(a.type), 1, [one, a, b], square, runs=True)[0]
    if not signed:
        return found
    minus_one = f.compare("eq", a, -1)
    unit = f.binary("or", minus_one, f.compare("eq", a, one))
    inverse = f.select(unit, f.select(odd(b), a, one), zero)
    return f.select(f.compare("slt", b, zero), inverse, found)


def shift(f: Function, opcode: str, a: Value, count: Value) -> Value:
    """A shift by a count that is read as unsigned: counts of the width and above push every bit out."""
    last = number(bits_of(a.type) - 1, a.type)
    if opcode == "ashr":
        return f.binary(opcode, a, f.intrinsic("umin", count, last))
    fits = f.compare("ule", count, last)
    return f.select(fits, f.binary(opcode, a, f.select(fits, count, 0)), 0)
