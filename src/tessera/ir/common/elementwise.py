"""The table of elementwise functions: for each its typing, NumPy meaning, derivative, interval rule and cost.

Operands have one element type; the table promotes nothing. Floats narrower than 32 bits are computed in float32 or
wider and rounded once. Integers wrap, unless their type saturates. Every function is total and silent: what NumPy
warns about has a value here (see `elementwise_numpy`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import as_float, compute_type
from tessera.dtypes.types import NO_POLICY, DType, Kind, bool_, f32, f64, i4, i8, i32, i64, u4, u8
from tessera.errors import DtypeError
from tessera.ir.common import elementwise_derivatives as rules
from tessera.ir.common import elementwise_numpy as meanings
from tessera.ir.common.elementwise_derivatives import Derivative
from tessera.ir.common.elementwise_numpy import Array, Meaning

if TYPE_CHECKING:
    from tessera.ir.common.intervals import Interval, Rule

Typing: TypeAlias = Callable[[tuple[DType, ...], DType | None], DType]


@dataclass(frozen=True, slots=True)
class Cost:
    """Machine work per element, by class; a machine model gives each class its weight."""

    simple: int = 0
    """Adds, multiplies, fused multiply-adds, compares, selects and bit operations."""
    convert: int = 0
    """Changes of type and roundings to whole numbers."""
    special: int = 0
    """One step of the special-function unit: 2^x, log2, 1/x, 1/√x, sin, cos, tanh."""
    divide: int = 0
    """Correctly rounded divisions and roots, and integer divisions."""


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One row. A `derivative` of None means zero for every operand."""

    name: str
    arity: int
    typing: Typing
    numpy: Meaning
    derivative: Derivative | None
    cost: Cost
    kinds: Collection[Kind] = frozenset()
    """The kinds of types that it takes, where it takes operands of one type."""

    @property
    def interval(self) -> Rule:
        """Bounds on results from bounds on operands; those rules load when first asked for."""
        from tessera.ir.common import intervals

        return intervals.RULES[self.name]


_FLOATS = frozenset({Kind.FLOAT})
_NUMBERS = frozenset({Kind.FLOAT, Kind.INT, Kind.UINT})
_INTEGERS = frozenset({Kind.INT, Kind.UINT})
_BITS = frozenset({Kind.BOOL, Kind.INT, Kind.UINT})
_ANY = frozenset(Kind)

# No row takes only one of the two kinds of integers.
_KIND_WORDS = {Kind.BOOL: "bool", Kind.INT: "integer", Kind.FLOAT: "float"}


def _uniform(
    name: str, arity: int, kinds: Collection[Kind], result: DType | None = None, *, clamps: bool = True
) -> Typing:
    """Operands of one type among `kinds`, giving that type or `result`; without `clamps` none that saturate."""

    def typing(dtypes: tuple[DType, ...], to: DType | None) -> DType:
        if len(dtypes) != arity or to is not None:
            raise _refusal(name, dtypes, to, _operands(arity, kinds), f"give {name} {_count(arity)}")
        merged = _merged(name, dtypes, dtypes)
        if merged.kind not in kinds:
            raise _refusal(name, dtypes, to, _operands(arity, kinds), "cast the operands first")
        if merged.is_integer and merged.policy.saturate and not clamps:
            raise _refusal(
                name, dtypes, to, "a type that does not saturate", f"cast to {merged.name}, which wraps around"
            )
        return merged if result is None else result

    return typing


def _type_select(dtypes: tuple[DType, ...], to: DType | None) -> DType:
    expected = "a bool and two operands of one type"
    if len(dtypes) != 3 or to is not None or dtypes[0].base is not bool_:
        raise _refusal("select", dtypes, to, expected, "the condition comes first; make it with a compare")
    return _merged("select", dtypes, dtypes[1:])


def _type_cast(dtypes: tuple[DType, ...], to: DType | None) -> DType:
    if len(dtypes) != 1 or to is None:
        raise _refusal("cast", dtypes, to, "one operand and the type to cast it to", "give the target as `to`")
    return to


def _type_key(dtypes: tuple[DType, ...], to: DType | None) -> DType:
    if len(dtypes) != 1 or to is not None or not dtypes[0].is_float:
        raise _refusal("sort_key", dtypes, to, "one operand, float", "whole numbers are keys themselves")
    return i64 if dtypes[0].bits > 32 else i32


def _type_of_key(dtypes: tuple[DType, ...], to: DType | None) -> DType:
    if len(dtypes) != 1 or to is not None or dtypes[0].base not in (i32, i64):
        raise _refusal("from_sort_key", dtypes, to, "one operand, i32 or i64", "give what sort_key gave")
    return f64 if dtypes[0].base is i64 else f32


def _merged(name: str, dtypes: tuple[DType, ...], alike: tuple[DType, ...]) -> DType:
    """The one type of the operands `alike`; a policy on some of them holds for the result."""
    first = alike[0]
    if any(dtype.base is not first.base for dtype in alike):
        expected = "operands of one type" if len(alike) == len(dtypes) else "two alternatives of one type"
        raise _refusal(name, dtypes, None, expected, "the table does not promote: cast one operand first")
    policies = {dtype.policy: None for dtype in alike if dtype.policy != NO_POLICY}
    if len(policies) > 1:
        raise _refusal(name, dtypes, None, "operands with one numerics policy", "cast one operand to the other's")
    if any(dtype.policy.scale_axis is not None for dtype in alike):
        raise _refusal(name, dtypes, None, "plain numbers, not integers with scales", "dequantize them first")
    return first.base.with_policy(next(iter(policies), NO_POLICY))


def _count(arity: int) -> str:
    return "one operand" if arity == 1 else f"{arity} operands of one type"


def _operands(arity: int, kinds: Collection[Kind]) -> str:
    words = " or ".join(word for kind, word in _KIND_WORDS.items() if kind in kinds)
    return _count(arity) if kinds == _ANY else f"{_count(arity)}, {words}"


def _refusal(name: str, dtypes: Sequence[DType], to: DType | None, expected: str, hint: str) -> DtypeError:
    came = ", ".join(map(str, dtypes)) or "nothing"
    target = "" if to is None else f" with to={to}"
    return DtypeError(f"{name} expects {expected}; got {came}{target}", hint=hint)


def _define(
    name: str,
    arity: int,
    kinds: Collection[Kind],
    numpy: Meaning,
    derivative: Derivative | None,
    cost: Cost,
    *,
    clamps: bool = True,
) -> Elementwise:
    typing = _uniform(name, arity, kinds, clamps=clamps)
    return Elementwise(name, arity, typing, numpy, derivative, cost, kinds)


def _question(name: str, arity: int, kinds: Collection[Kind], numpy: Meaning) -> Elementwise:
    return Elementwise(name, arity, _uniform(name, arity, kinds, bool_), numpy, None, Cost(simple=1), kinds)


_ROWS = (
    _define("neg", 1, _NUMBERS, np.negative, rules.neg, Cost(simple=1)),
    _define("abs", 1, _NUMBERS, np.absolute, rules.absolute, Cost(simple=1)),
    _define("sign", 1, _NUMBERS, np.sign, None, Cost(simple=2)),
    _define("exp", 1, _FLOATS, meanings.wide(np.exp), rules.exp, Cost(simple=1, special=1)),
    _define("exp2", 1, _FLOATS, meanings.wide(np.exp2), rules.exp2, Cost(special=1)),
    _define("expm1", 1, _FLOATS, meanings.wide(np.expm1), rules.expm1, Cost(simple=8, special=1)),
    _define("log", 1, _FLOATS, meanings.wide(np.log), rules.log, Cost(simple=1, special=1)),
    _define("log2", 1, _FLOATS, meanings.wide(np.log2), rules.log2, Cost(special=1)),
    _define("log1p", 1, _FLOATS, meanings.wide(np.log1p), rules.log1p, Cost(simple=8, special=1)),
    _define("sqrt", 1, _FLOATS, np.sqrt, rules.sqrt, Cost(divide=1)),
    _define("rsqrt", 1, _FLOATS, meanings.rsqrt, rules.rsqrt, Cost(special=1)),
    _define("reciprocal", 1, _FLOATS, meanings.reciprocal, rules.reciprocal, Cost(special=1)),
    _define("sin", 1, _FLOATS, meanings.wide(np.sin), rules.sin, Cost(simple=3, special=1)),
    _define("cos", 1, _FLOATS, meanings.wide(np.cos), rules.cos, Cost(simple=3, special=1)),
    _define("tan", 1, _FLOATS, meanings.wide(np.tan), rules.tan, Cost(simple=3, special=2, divide=1)),
    _define("tanh", 1, _FLOATS, meanings.wide(np.tanh), rules.tanh, Cost(special=1)),
    _define("erf", 1, _FLOATS, meanings.erf, rules.erf, Cost(simple=12, special=1)),
    _define("sigmoid", 1, _FLOATS, meanings.sigmoid, rules.sigmoid, Cost(simple=2, special=2)),
    _define("floor", 1, _NUMBERS, meanings.to_integral(np.floor), None, Cost(convert=1)),
    _define("ceil", 1, _NUMBERS, meanings.to_integral(np.ceil), None, Cost(convert=1)),
    _define("round", 1, _NUMBERS, meanings.to_integral(np.rint), None, Cost(convert=1)),
    _define("trunc", 1, _NUMBERS, meanings.to_integral(np.trunc), None, Cost(convert=1)),
    _question("isnan", 1, _NUMBERS, np.isnan),
    _question("isinf", 1, _NUMBERS, np.isinf),
    _question("isfinite", 1, _NUMBERS, np.isfinite),
    _define("add", 2, _NUMBERS, np.add, rules.add, Cost(simple=1)),
    _define("sub", 2, _NUMBERS, np.subtract, rules.sub, Cost(simple=1)),
    _define("mul", 2, _NUMBERS, np.multiply, rules.mul, Cost(simple=1)),
    _define("div", 2, _FLOATS, np.divide, rules.div, Cost(divide=1)),
    _define("floordiv", 2, _NUMBERS, meanings.floordiv, None, Cost(divide=1, convert=1)),
    _define("rem", 2, _NUMBERS, meanings.rem, rules.rem, Cost(simple=1, divide=1, convert=1)),
    # A saturating integer would have to clamp a power or a shift that is too large even for the wider type, ...
    _define("pow", 2, _NUMBERS, meanings.power, rules.power, Cost(simple=4, special=2), clamps=False),
    _define("min", 2, _NUMBERS, meanings.minimum, rules.minimum, Cost(simple=1)),
    _define("max", 2, _NUMBERS, meanings.maximum, rules.maximum, Cost(simple=1)),
    _define("atan2", 2, _FLOATS, meanings.wide(np.arctan2), rules.atan2, Cost(simple=12, divide=1)),
    _define("copysign", 2, _FLOATS, np.copysign, rules.copysign, Cost(simple=1)),
    _define("fma", 3, _NUMBERS, meanings.fma, rules.fma, Cost(simple=1)),
    _define("and", 2, _BITS, np.bitwise_and, None, Cost(simple=1)),
    _define("or", 2, _BITS, np.bitwise_or, None, Cost(simple=1)),
    _define("xor", 2, _BITS, np.bitwise_xor, None, Cost(simple=1)),
    # ... and inverting bits means something else in a wider type.
    _define("not", 1, _BITS, np.invert, None, Cost(simple=1), clamps=False),
    # A count is read as unsigned; counts of the type's width and above push every bit out.
    _define("shl", 2, _INTEGERS, np.left_shift, None, Cost(simple=1), clamps=False),
    _define("shr", 2, _INTEGERS, np.right_shift, None, Cost(simple=1)),
    _question("eq", 2, _ANY, np.equal),
    _question("ne", 2, _ANY, np.not_equal),
    _question("lt", 2, _NUMBERS, np.less),
    _question("le", 2, _NUMBERS, np.less_equal),
    _question("gt", 2, _NUMBERS, np.greater),
    _question("ge", 2, _NUMBERS, np.greater_equal),
    Elementwise("sort_key", 1, _type_key, meanings.sort_key, None, Cost(simple=5)),
    Elementwise("from_sort_key", 1, _type_of_key, meanings.from_sort_key, None, Cost(simple=3)),
    Elementwise("select", 3, _type_select, np.where, rules.select, Cost(simple=1)),
    Elementwise("cast", 1, _type_cast, meanings.same, rules.cast, Cost(convert=1)),
)

TABLE: Mapping[str, Elementwise] = MappingProxyType({row.name: row for row in _ROWS})

_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and"}
_ORDERS = frozenset({"lt", "le", "gt", "ge"})


def takes_only_floats(name: str) -> bool:
    """Whether a row is a function of floats, such as a root or a quotient."""
    row = TABLE.get(name)
    return row is not None and row.kinds == _FLOATS


@functools.cache
def row_for(name: str, dtype: DType) -> tuple[str, DType]:
    """The row that an expression means for operands of `dtype`, and the type in which that row takes them.

    Functions of floats take integers and bools in f32; sums, products and orders of bools are those of NumPy.
    """
    if dtype.kind is Kind.BOOL and name in _OF_BOOLS:
        return _OF_BOOLS[name], dtype
    if dtype.kind is Kind.BOOL and name in _ORDERS:
        return name, u8
    return name, as_float(dtype) if takes_only_floats(name) else dtype


def _row(name: str) -> Elementwise:
    row = TABLE.get(name)
    if row is None:
        raise DtypeError(f"{name!r} is not an elementwise function", hint=f"give one of {', '.join(TABLE)}")
    return row


def result_dtype(name: str, dtypes: Sequence[DType], *, to: DType | None = None) -> DType:
    """The element type of `name` applied to operands of these types; `to` is the target of a cast."""
    return _typed(name, tuple(dtypes), to)


@functools.lru_cache(maxsize=1024)  # compilers ask for every element
def _typed(name: str, dtypes: tuple[DType, ...], to: DType | None) -> DType:
    return _row(name).typing(dtypes, to)


def interval(name: str, operands: Sequence[Interval], dtypes: Sequence[DType], *, to: DType | None = None) -> Interval:
    """Bounds on what `apply` gives for any operands within these bounds."""
    from tessera.ir.common import intervals

    result = result_dtype(name, dtypes, to=to)
    held = (_held(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=True))
    return intervals.rounded(_row(name).interval(dtypes[0], *held), result)


def _held(operand: Interval, dtype: DType) -> Interval:
    """The part of `operand` that an integer or bool type can hold; floats need no such help."""
    if dtype.is_float:
        return operand
    from tessera.ir.common.intervals import Interval, all_values

    every = all_values(dtype)
    return Interval(max(operand.lo, every.lo), min(operand.hi, every.hi))


def apply(
    name: str, arrays: Sequence[Array], dtypes: Sequence[DType], *, to: DType | None = None, seed: int | None = None
) -> Array:
    """The reference meaning of `name` on arrays in the storage of their types; shapes broadcast as in NumPy.

    `seed` drives the rounding of a result whose type rounds stochastically.
    """
    return _plan(name, tuple(dtypes), to)(arrays, seed)


_Plan: TypeAlias = Callable[[Sequence[Array], int | None], Array]

# NumPy does not compute in 4 bits; the low bits of 8-bit results are the 4-bit results.
_CARRIERS = {i4: i8, u4: u8}


@functools.cache
def _plan(name: str, dtypes: tuple[DType, ...], to: DType | None) -> _Plan:
    """How to compute one row for one list of types: straight by NumPy where it computes in those types itself."""
    row = _row(name)
    result = row.typing(dtypes, to)
    if to is not None:
        return lambda arrays, seed: cast(arrays[0], dtypes[0], to, seed=seed)
    decoders = [_decoder(dtype, _work_type(dtype, result)) for dtype in dtypes]
    compute, encode = _computation(row.numpy, result), _encoder(result)

    def native(arrays: Sequence[Array], _: int | None) -> Array:
        return compute(*arrays)

    def general(arrays: Sequence[Array], seed: int | None) -> Array:
        operands = (decode(array) if decode else array for decode, array in zip(decoders, arrays, strict=True))
        return encode(compute(*operands), seed) if encode else compute(*operands)

    return general if encode or any(decoders) else native


def _computation(meaning: Meaning, result: DType) -> Callable[..., Array]:
    """`meaning` without warnings, and in the storage of the result where NumPy's own conversion is right."""
    target = result.storage if result.storage.isbuiltin == 1 and not _needs_encoding(result) else None

    @np.errstate(all="ignore")
    def compute(*operands: Array) -> Array:
        found = meaning(*operands)
        if target is not None and found.dtype != target:
            found = found.astype(target)
        return np.asarray(found)

    return compute


def _work_type(dtype: DType, result: DType) -> DType:
    # Operands of the result's type follow the result's policy: a clamped sum needs wider terms.
    work = compute_type(result if dtype.base is result.base else dtype.base)
    return _CARRIERS.get(work, work)


def _decoder(dtype: DType, work: DType) -> Callable[[Array], Array] | None:
    if dtype.policy.loss_scale is not None:
        return lambda array: cast(array, dtype, work)
    if dtype.storage == work.storage:
        return None

    @np.errstate(invalid="ignore")  # some processors flag signalling NaN that are converted
    def decode(array: Array) -> Array:
        return array.astype(work.storage)

    return decode


def _needs_encoding(result: DType) -> bool:
    """Whether a result is rounded, scaled or clamped in ways that NumPy does not know."""
    policy = result.policy
    if result.is_float:
        return result.base not in (f32, f64) or policy.saturate or policy.stochastic or bool(policy.loss_scale)
    return policy.saturate or result.base in _CARRIERS


def _encoder(result: DType) -> Callable[[Array, int | None], Array] | None:
    """How computed values become the result's, where that takes more than NumPy's own conversion."""
    if not _needs_encoding(result):
        return None
    if result.is_integer:
        work = _work_type(result, result)
        return lambda found, _: cast(found, work, result)
    return lambda found, seed: cast(found, f64 if found.dtype == np.float64 else f32, result, seed=seed)
