"""The LLVM code of each row of the elementwise table: computed in the compute type, rounded once into the result's.

Results are those of `tessera.ir.common.elementwise.apply`, bit for bit, except that the functions of `mathematics` have
errors of their own and that sign and payload of a NaN are left as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tessera.dtypes.promotion import compute_type
from tessera.dtypes.types import DType, Kind, f16, f32, f64
from tessera.errors import CompileError
from tessera.ir.common import elementwise, reductions
from tessera.targets.llvm import integers, mathematics
from tessera.targets.llvm.casts import cast
from tessera.targets.llvm.elements import NAN, constant, decode, encode, extend, is_arm, reaches
from tessera.targets.llvm.floats import (
    Floats,
    Sixteen,
    any_lane,
    fits_sixteens,
    floored_quotient,
    floored_rest,
    in_sixteens,
    lane_by_lane,
)
from tessera.targets.llvm.text import Function, Value, bits_of, element_of, lanes_of, number


@dataclass(frozen=True, slots=True)
class VectorWork:
    """Where a row computes, and how: `dtype` is the compute type of the operands."""

    f: Function
    dtype: DType
    level: str
    contract: bool
    nnan: bool

    @property
    def signed(self) -> bool:
        return self.dtype.kind is Kind.INT

    def floats(self, value: Value) -> Floats:
        return Floats(self.f, value.type, self.level)


Recipe = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a row computes on `float` and `double`, and on integers and bool; None where the table has no such row.

    `exact` says that floats give values of the operands' format, which need no rounding. `half` says that computing in
    f16 itself, where the processor can, gives what computing in f32 and rounding does. `fused` marks the row that
    rounds once where computing in f32 and rounding again would not.
    """

    floats: Recipe | None
    integers: Recipe | None = None
    exact: bool = False
    half: bool = False
    fused: bool = False


# Rows that are an instruction


def _arithmetic(opcode: str) -> Recipe:
    def recipe(w: VectorWork, a: Value, b: Value) -> Value:
        if w.contract and is_arm(w.level):
            return _contracted(w.f, opcode, a, b)
        return w.f.binary(f"{opcode} contract" if w.contract else opcode, a, b)

    return recipe


def _contracted(f: Function, opcode: str, a: Value, b: Value) -> Value:
    """A sum that takes a product with it, on AArch64: there LLVM would contract products that do not allow it."""
    if opcode == "fmul":
        found = f.binary(opcode, a, b)
        if found.name.startswith("%"):  # not a constant
            f.products[found.name] = (a, b)
        return found
    if (factors := f.products.get(a.name)) is not None:
        return f.intrinsic("fma", *factors, b if opcode == "fadd" else f.op(b.type, f"fneg {b}"))
    if (factors := f.products.get(b.name)) is not None:
        first, second = factors
        return f.intrinsic("fma", first if opcode == "fadd" else f.op(first.type, f"fneg {first}"), second, a)
    return f.binary(opcode, a, b)


def _instruction(opcode: str) -> Recipe:
    def recipe(w: VectorWork, a: Value, b: Value) -> Value:
        return w.f.binary(opcode, a, b)

    return recipe


def _intrinsic(name: str) -> Recipe:
    def recipe(w: VectorWork, *operands: Value) -> Value:
        return w.f.intrinsic(name, *operands)

    return recipe


def _same(_: VectorWork, x: Value) -> Value:
    return x


def _compare(ordered: str, plain: str) -> tuple[Recipe, Recipe]:
    """A predicate on floats and on integers, where the latter may need their signedness."""

    def on_floats(w: VectorWork, a: Value, b: Value) -> Value:
        return w.f.compare(ordered, a, b)

    def on_integers(w: VectorWork, a: Value, b: Value) -> Value:
        sign = "" if plain in ("eq", "ne") else ("s" if w.signed else "u")
        return w.f.compare(sign + plain, a, b)

    return on_floats, on_integers


# Signs


def _neg(w: VectorWork, x: Value) -> Value:
    return w.floats(x).neg(x)


def _neg_integer(w: VectorWork, x: Value) -> Value:
    return w.f.binary("sub", number(0, x.type), x)


def _abs_integer(w: VectorWork, x: Value) -> Value:
    return w.f.intrinsic("smax", x, _neg_integer(w, x)) if w.signed else x


def _sign(w: VectorWork, x: Value) -> Value:
    k = w.floats(x)
    found = k.select(k.compare("ogt", x, 0.0), 1.0, k.select(k.compare("olt", x, 0.0), -1.0, 0.0))
    return k.select(k.compare("uno", x, 0.0), NAN, found)


def _sign_integer(w: VectorWork, x: Value) -> Value:
    low, high = number(-1, x.type), number(1, x.type)
    return w.f.intrinsic("smin", w.f.intrinsic("smax", x, low), high) if w.signed else w.f.intrinsic("umin", x, high)


# Questions


def _isnan(w: VectorWork, x: Value) -> Value:
    return w.floats(x).compare("uno", x, 0.0)


def _isinf(w: VectorWork, x: Value) -> Value:
    k = w.floats(x)
    return k.compare("oeq", k.absolute(x), float("inf"))


def _isfinite(w: VectorWork, x: Value) -> Value:
    k = w.floats(x)
    return k.compare("olt", k.absolute(x), float("inf"))


def _answer(answer: bool) -> Recipe:
    """For integers, all of which are finite numbers."""

    def recipe(w: VectorWork, x: Value) -> Value:
        return w.f.compare("eq" if answer else "ne", x, x)

    return recipe


def _sort_key(w: VectorWork, x: Value) -> Value:
    """The bits of a float, those below the sign inverted where it is negative."""
    f, k = w.f, w.floats(x)
    largest = 2 ** (31 if element_of(x.type) == "float" else 63) - 1
    words = k.bits(k.add(x, 0.0))  # of zeros, +0
    signs = k.on_bits("ashr", words, largest.bit_length())
    found = k.on_bits("xor", words, k.on_bits("and", signs, largest))
    return f.select(k.compare("uno", x, 0.0), k.word(largest), found)


def _from_sort_key(w: VectorWork, x: Value) -> Value:
    f, bits = w.f, bits_of(element_of(x.type))
    largest = 2 ** (bits - 1) - 1
    words = f.binary("xor", x, f.binary("and", f.binary("ashr", x, bits - 1), largest))
    return f.convert("bitcast", words, "float" if bits == 32 else "double")


# Division


def _reciprocal(w: VectorWork, x: Value) -> Value:
    return w.floats(x).div(1.0, x)


_FEW = 2.0**29


def _division(w: VectorWork, a: Value, b: Value) -> tuple[Floats, Value, Value, Value]:
    """Both operands in f64, and the remainder with the sign of a."""
    f = w.f
    narrow = element_of(a.type) == "float"
    a, b = (f.convert("fpext", operand, "double") if narrow else operand for operand in (a, b))
    k = w.floats(a)

    def exact(g: Function, x: Value, y: Value) -> Value:
        return g.call("fmod", "double", [x, y])

    if narrow:
        # With fewer than 29 digits before the point, quotient and products are exact in f64.
        quotient = f.intrinsic("trunc", k.div(a, b))
        rest = k.sub(a, k.mul(quotient, b))
        rest = k.select(k.compare("olt", k.absolute(a), k.absolute(b)), a, rest)
        size = k.absolute(quotient)
        many = k.both(k.compare("oge", size, _FEW), k.compare("olt", size, float("inf")))
        chosen = f.branch(
            any_lane(f, many), lambda: [lane_by_lane(f, "fmod", [a, b], exact)], lambda: [rest], rare=True
        )
        rest = chosen[0]
    else:
        rest = lane_by_lane(f, "fmod", [a, b], exact)
    return k, a, b, rest


def _floordiv(w: VectorWork, a: Value, b: Value) -> Value:
    return floored_quotient(*_division(w, a, b))


def _rem(w: VectorWork, a: Value, b: Value) -> Value:
    k, _, b, rest = _division(w, a, b)
    return floored_rest(k, b, rest)


def _floordiv_integer(w: VectorWork, a: Value, b: Value) -> Value:
    return integers.divide(w.f, a, b, signed=w.signed)[0]


def _rem_integer(w: VectorWork, a: Value, b: Value) -> Value:
    return integers.divide(w.f, a, b, signed=w.signed)[1]


# Extremes


def _extreme(*, largest: bool) -> tuple[Recipe, Recipe]:
    def on_floats(w: VectorWork, a: Value, b: Value) -> Value:
        f = w.f
        if w.nnan and not is_arm(w.level):  # there one instruction has a NaN wherever it meets one
            return f.select(f.compare("ogt" if largest else "olt", a, b), a, b)
        if element_of(a.type) == "float" and fits_sixteens(a.type, w.level):
            k = Sixteen(f, w.level)
            return in_sixteens(f, [a, b], k.highest if largest else k.lowest)
        return f.intrinsic("maximum" if largest else "minimum", a, b)

    def on_integers(w: VectorWork, a: Value, b: Value) -> Value:
        return w.f.intrinsic(f"{'s' if w.signed else 'u'}{'max' if largest else 'min'}", a, b)

    return on_floats, on_integers


# Sums of products


def _fma_once(w: VectorWork, a: Value, b: Value, c: Value) -> Value:
    """a·b + c of f32 values for rounding elsewhere: in f64 the product is exact and the sum is rounded to odd."""
    f = w.f
    a, b, c = (f.convert("fpext", operand, "double") for operand in (a, b, c))
    k = w.floats(a)
    product = k.mul(a, b)
    total = k.add(product, c)
    rest = k.sub(total, product)
    error = k.add(k.sub(product, k.sub(total, rest)), k.sub(c, rest))
    words = k.bits(total)
    even = f.compare("eq", k.on_bits("and", words, 1), k.word(0))
    inexact = k.both(even, k.compare("one", error, 0.0))
    # Away from zero is one up in the bits, towards it one down.
    away = f.compare("sge", k.on_bits("xor", words, k.bits(error)), k.word(0))
    odd = f.select(away, k.on_bits("add", words, 1), k.on_bits("sub", words, 1))
    return k.of_bits(f.select(inexact, odd, words))


def _fma_integer(w: VectorWork, a: Value, b: Value, c: Value) -> Value:
    return w.f.binary("add", w.f.binary("mul", a, b), c)


# Bits


def _not(w: VectorWork, x: Value) -> Value:
    return w.f.binary("xor", x, -1)


def _shl(w: VectorWork, a: Value, count: Value) -> Value:
    return integers.shift(w.f, "shl", a, count)


def _shr(w: VectorWork, a: Value, count: Value) -> Value:
    return integers.shift(w.f, "ashr" if w.signed else "lshr", a, count)


def _pow_integer(w: VectorWork, a: Value, b: Value) -> Value:
    return integers.power(w.f, a, b, signed=w.signed)


def _function(name: str) -> Recipe:
    """A row of `mathematics`."""

    def recipe(w: VectorWork, *operands: Value) -> Value:
        return mathematics.compute(w.f, name, operands, w.level)

    return recipe


_ROWS: dict[str, Rule] = {
    "neg": Rule(_neg, _neg_integer, exact=True, half=True),
    "abs": Rule(_intrinsic("fabs"), _abs_integer, exact=True, half=True),
    "sign": Rule(_sign, _sign_integer, exact=True, half=True),
    "sqrt": Rule(_intrinsic("sqrt"), half=True),
    "reciprocal": Rule(_reciprocal, half=True),
    "floor": Rule(_intrinsic("floor"), _same, exact=True, half=True),
    "ceil": Rule(_intrinsic("ceil"), _same, exact=True, half=True),
    "round": Rule(_intrinsic("rint"), _same, exact=True, half=True),
    "trunc": Rule(_intrinsic("trunc"), _same, exact=True, half=True),
    "isnan": Rule(_isnan, _answer(False), half=True),
    "isinf": Rule(_isinf, _answer(False), half=True),
    "isfinite": Rule(_isfinite, _answer(True), half=True),
    "sort_key": Rule(_sort_key),
    "from_sort_key": Rule(None, _from_sort_key),
    "add": Rule(_arithmetic("fadd"), _instruction("add"), half=True),
    "sub": Rule(_arithmetic("fsub"), _instruction("sub"), half=True),
    "mul": Rule(_arithmetic("fmul"), _instruction("mul"), half=True),
    "div": Rule(_instruction("fdiv"), half=True),
    "floordiv": Rule(_floordiv, _floordiv_integer),
    "rem": Rule(_rem, _rem_integer),
    "min": Rule(*_extreme(largest=False), exact=True, half=True),
    "max": Rule(*_extreme(largest=True), exact=True, half=True),
    "copysign": Rule(_intrinsic("copysign"), exact=True, half=True),
    "fma": Rule(_intrinsic("fma"), _fma_integer, half=True, fused=True),
    "and": Rule(None, _instruction("and")),
    "or": Rule(None, _instruction("or")),
    "xor": Rule(None, _instruction("xor")),
    "not": Rule(None, _not),
    "shl": Rule(None, _shl),
    "shr": Rule(None, _shr),
    "eq": Rule(*_compare("oeq", "eq"), half=True),
    "ne": Rule(*_compare("une", "ne"), half=True),
    "lt": Rule(*_compare("olt", "lt"), half=True),
    "le": Rule(*_compare("ole", "le"), half=True),
    "gt": Rule(*_compare("ogt", "gt"), half=True),
    "ge": Rule(*_compare("oge", "ge"), half=True),
    **{name: Rule(_function(name), _pow_integer if name == "pow" else None) for name in mathematics.F32},
}

TABLE: Mapping[str, Rule] = MappingProxyType(_ROWS)
"""Every row but select and cast, which are about types and not about numbers."""


def apply(
    f: Function,
    name: str,
    operands: Sequence[Value],
    dtypes: Sequence[DType],
    result_dtype: DType,
    level: str,
    *,
    contract: bool = False,
    nnan: bool = False,
) -> Value:
    """`name` on operands as registers hold them, giving a value of `result_dtype`.

    `contract` lets a sum of products in f32 and f64 be rounded once. `nnan` promises that min and max meet no NaN and
    that the sign of a zero does not matter.
    """
    if name == "cast":
        return cast(f, operands[0], dtypes[0], result_dtype, level)
    expected = elementwise.result_dtype(name, dtypes)
    if expected is not result_dtype:
        raise CompileError(f"{name} on {', '.join(map(str, dtypes))} gives {expected}, and {result_dtype} was expected")
    if name == "select":
        return _select(f, operands, dtypes, result_dtype, level)
    rule = TABLE[name]
    work = _work_type(dtypes[0], result_dtype)
    if name in _SATURATING and result_dtype.is_integer and result_dtype.policy.saturate and result_dtype.bits >= 8:
        return f.intrinsic(f"{'s' if result_dtype.kind is Kind.INT else 'u'}{name}.sat", *operands)
    w = VectorWork(f, work, level, contract, nnan)
    if rule.half and rule.floats is not None and _computes_in_half(dtypes, result_dtype, level):
        found = rule.floats(w, *(f.convert("bitcast", operand, "half") for operand in operands))
        return found if result_dtype.kind is Kind.BOOL else f.convert("bitcast", found, "i16")
    opened = [_opened(f, value, dtype, work, level) for value, dtype in zip(operands, dtypes, strict=True)]
    recipe = rule.floats if work.is_float else rule.integers
    if rule.fused and work is f32 and (result_dtype.bits < 32 or result_dtype.policy.loss_scale is not None):
        recipe = _fma_once
    if recipe is None:
        raise CompileError(f"{name} is not defined on {dtypes[0]}")
    return _closed(f, recipe(w, *opened), work, result_dtype, level, exact=rule.exact)


_SATURATING = frozenset({"add", "sub"})


def _select(f: Function, operands: Sequence[Value], dtypes: Sequence[DType], result: DType, level: str) -> Value:
    condition, *choices = operands
    if not result.is_float or not _reshapes(result):
        return f.select(condition, *choices)
    work = _work_type(result, result)
    first, second = (_opened(f, value, dtype, work, level) for value, dtype in zip(choices, dtypes[1:], strict=True))
    return _closed(f, f.select(condition, first, second), work, result, level)


def _computes_in_half(dtypes: Sequence[DType], result: DType, level: str) -> bool:
    alike = all(dtype.base is f16 and dtype.policy.loss_scale is None for dtype in dtypes)
    return alike and reaches(level, "amx") and not _reshapes(result)


def _reshapes(result: DType) -> bool:
    """Whether a policy can change a value that is already one of the format."""
    policy = result.policy
    return policy.saturate or policy.stochastic or policy.loss_scale is not None


def _work_type(dtype: DType, result: DType) -> DType:
    # Operands of the result's type follow the result's policy: a clamped sum needs wider terms.
    return compute_type(result if dtype.base is result.base else dtype.base)


def _opened(f: Function, value: Value, dtype: DType, work: DType, level: str) -> Value:
    """An operand in the compute type."""
    if dtype.policy.loss_scale is not None:
        return cast(f, value, dtype, work, level)
    return decode(f, value, dtype, level) if dtype.is_float else cast(f, value, dtype.base, work, level)


def _closed(f: Function, found: Value, work: DType, result: DType, level: str, *, exact: bool = False) -> Value:
    """A value of the compute type, or of f64 for f32, rounded to the result's type."""
    if result.kind is Kind.BOOL or work.is_float != result.is_float:
        return found
    if not result.is_float:
        if work is not result.base or result.policy.saturate:
            return cast(f, found, work, result, level)
        return extend(f, found, result) if result.bits < 8 else found
    wide = f64 if element_of(found.type) == "double" else f32
    if _reshapes(result):
        return cast(f, found, wide, result, level)
    if result.base is wide:
        return found
    if result.base is f32:
        return f.convert("fptrunc", found, "float")
    return encode(f, found, result, level, exact=True) if exact else cast(f, found, wide, result.base, level)


# Reductions


def identity(kind: str, dtype: DType, lanes: int = 0) -> Value:
    """The identity of a reduction."""
    return constant(reductions.check(kind, dtype).identity(dtype), dtype, lanes)


def combine(f: Function, kind: str, a: Value, b: Value, dtype: DType, level: str, *, nnan: bool = False) -> Value:
    """Two partial results of a reduction as one; `dtype` is the type that the reduction is carried in."""
    row = reductions.check(kind, dtype)
    return apply(f, row.combine, [a, b], [dtype, dtype], dtype, level, nnan=nnan)


def fold(f: Function, kind: str, vector: Value, dtype: DType, level: str, *, nnan: bool = False) -> Value:
    """All lanes as one scalar: the upper half onto the lower, again and again."""
    rest: list[Value] = []
    while (lanes := lanes_of(vector.type)) > 1:
        half = lanes // 2
        if lanes % 2:
            rest.append(f.lane(vector, lanes - 1))
        if half == 1:
            low, high = f.lane(vector, 0), f.lane(vector, 1)
        else:
            low, high = (f.shuffle(vector, None, range(start, start + half)) for start in (0, half))
        vector = combine(f, kind, low, high, dtype, level, nnan=nnan)
    for scalar in reversed(rest):
        vector = combine(f, kind, vector, scalar, dtype, level, nnan=nnan)
    return vector
