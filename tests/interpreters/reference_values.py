"""What the interpreter tests draw and compare with: values, memory layouts, exact rounding, programs of one op."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tessera.dtypes.types import DType, Kind, Specials, bf16, bool_, f8e4m3, f8e5m2, f16, f32, f64, i4, i8, i32, u8
from tessera.interpreters.core.machine import Machine
from tessera.ir.graph import dialect as graph

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
Index = tuple[int, ...]

FLOATS = (f64, f32, bf16, f16, f8e4m3, f8e5m2)
INTEGERS = (i32, i8, i4, u8)
DTYPES = (*FLOATS, *INTEGERS, bool_)
LAYOUTS = ("plain", "column-major", "every second", "backwards", "repeated")


class Draw(Protocol):
    """Hypothesis' `data.draw`."""

    def __call__(self, strategy: st.SearchStrategy[T], label: object = None) -> T: ...


# Drawing.


def shapes(least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes, with axes of size 0 and 1 among them."""
    return st.lists(st.sampled_from([1, 2, 3, 0, 5]), min_size=least, max_size=most).map(tuple)


def values(draw: Draw, shape: Sequence[int], dtype: DType, *, tame: bool = False) -> Array:
    """Drawn numbers of every size and all specials, or (`tame`) small and finite ones."""
    return numbers_by(draw(st.integers(0, 2**32 - 1), "values"), shape, dtype, tame=tame)


def numbers_by(seed: int, shape: Sequence[int], dtype: DType, *, tame: bool = False) -> Array:
    generator = np.random.default_rng(seed)
    count = math.prod(shape)
    if dtype.kind is Kind.BOOL:
        return generator.integers(0, 2, count).astype(np.bool_).reshape(shape)
    if dtype.is_integer:
        low, high = int(dtype.min_value), int(dtype.max_value)
        carrier = np.uint64 if dtype.kind is Kind.UINT else np.int64
        edges = np.array([low, high, 0, 1], carrier)
        pool = np.concatenate([generator.integers(low, high, count + 1, carrier, endpoint=True), edges])
        return generator.choice(pool, count).astype(dtype.storage).reshape(shape)
    assert dtype.float_format is not None
    numbers = [rounded(float(number), dtype) for number in generator.normal(size=count + 1)]
    if not tame:
        largest, smallest = dtype.float_format.max_finite, dtype.float_format.smallest_subnormal
        specials = [0.0, -0.0, largest, -largest, smallest, 1.0, *(rounded(x, dtype) for x in (math.inf, math.nan))]
        numbers += [*specials, -specials[-2]]
    return stored(generator.choice(numbers, count), dtype).reshape(shape)


def arrays(draw: Draw, shape: Sequence[int], dtype: DType, *, tame: bool = False) -> Array:
    """Values in some layout: columns first, with gaps, backwards, or one slice repeated with stride 0."""
    return laid_out(values(draw, shape, dtype, tame=tame), draw(st.sampled_from(LAYOUTS), "layout"))


def laid_out(array: Array, layout: str) -> Array:
    """The same values with other strides (where one slice is repeated, other values)."""
    if not array.ndim:
        return array
    if layout == "column-major":
        return np.asfortranarray(array)
    if layout == "every second":
        wide = np.zeros([2 * size for size in array.shape], array.dtype)
        every = tuple(slice(None, None, 2) for _ in array.shape)
        wide[every] = array
        return wide[every]
    if layout == "backwards":
        back = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[back])[back]
    if layout == "repeated" and array.size:
        return np.broadcast_to(array[:1], array.shape)
    return array


# Comparing.


def rounded(value: float | Fraction, dtype: DType) -> float:
    """The nearest number of a float format, ties to even, from the definition of the format."""
    form = dtype.float_format
    assert form is not None
    overflow = {Specials.IEEE: math.inf, Specials.NAN_ONLY: math.nan, Specials.FINITE: form.max_finite}[form.specials]
    if isinstance(value, float) and not math.isfinite(value):
        return (
            (form.max_finite if form.specials is Specials.FINITE else math.nan)
            if math.isnan(value)
            else (math.copysign(overflow, value))
        )
    exact = Fraction(value)
    if exact == 0:
        return math.copysign(0.0, value) if isinstance(value, float) else 0.0
    units = round(exact / spacing(exact, dtype))
    size = abs(units * spacing(exact, dtype))
    return math.copysign(overflow if size > Fraction(form.max_finite) else float(size), exact)


def spacing(exact: Fraction, dtype: DType) -> Fraction:
    """The distance of neighbours of `dtype` around a number."""
    form = dtype.float_format
    assert form is not None
    exponent = form.min_exponent
    if exact:
        guess = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
        exponent = max(exponent, guess - (Fraction(2) ** guess > abs(exact)))
    return Fraction(2) ** (exponent - form.mantissa_bits)


def wrapped(value: int, dtype: DType) -> int:
    low = value % (1 << dtype.bits)
    return low - (1 << dtype.bits) if dtype.kind is Kind.INT and low > dtype.max_value else low


def stored(numbers: Any, dtype: DType) -> Array:
    """Numbers that are values of `dtype` in its storage; integers are wrapped first."""
    listed = np.asarray(numbers, None if dtype.is_float else object)
    if dtype.is_integer:
        listed = np.asarray([wrapped(int(number), dtype) for number in listed.flat], object).reshape(listed.shape)
        return listed.astype(np.int64).astype(dtype.storage)
    with np.errstate(all="ignore"):
        return listed.astype(dtype.storage)


def is_nan(array: Array) -> Array:
    return np.isnan(array.astype(np.float64)) if array.dtype.kind in "fV" else np.zeros(array.shape, np.bool_)


def assert_same(found: Array, expected: Array) -> None:
    """Equal shapes, types and bits; all NaNs are one."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert (is_nan(found) == is_nan(expected)).all(), f"{found} is not {expected}"
    bits = [each.flatten().view(f"u{each.itemsize}")[~is_nan(each).flatten()] for each in (found, expected)]
    assert (bits[0] == bits[1]).all(), f"{found} is not {expected}"


def assert_close(found: float, exact: Fraction, dtype: DType, slack: Fraction = Fraction(0)) -> None:
    """`found` is `exact` rounded once to `dtype`, give or take a `slack` before that rounding."""
    near = [rounded(exact + way * slack, dtype) for way in (-1, 0, 1)]
    numbers = [number for number in near if not math.isnan(number)]
    # Without infinities an overflow is a NaN.
    fits = len(numbers) < len(near) if math.isnan(found) else numbers and min(numbers) <= found <= max(numbers)
    assert fits, f"{found} is not one of {near}"


def numbers_of(array: Array) -> list[Any]:
    """The elements as Python numbers, which hold each of them exactly."""
    name = array.dtype.name
    return array.astype(np.float64 if "float" in name else np.bool_ if name == "bool" else np.int64).flatten().tolist()


def element_wise(meaning: Callable[..., Any], dtype: DType, *operands: Array) -> Array:
    """A formula over Python numbers, applied to each element; it gives values of `dtype`."""
    rows = zip(*map(numbers_of, operands), strict=True)
    return stored([meaning(*row) for row in rows], dtype).reshape(operands[0].shape)


def indexed(shape: Sequence[int], dtype: DType, element: Callable[[Index], Any]) -> Array:
    """An array from a formula for the element at each index."""
    found = np.zeros(tuple(shape), dtype.storage)
    for index in product(*map(range, shape)):
        found[index] = element(index)
    return found


# Folding.


def folded(kind: str, numbers: list[Any], dtype: DType) -> Any:
    """What a reduction of Python numbers gives exactly; None where only float64's own rules say."""
    start = {"sum": 0, "prod": 1, "and": -1, "or": 0, "xor": 0}
    join: dict[str, Callable[[Any, Any], Any]] = {
        "sum": operator.add,
        "prod": operator.mul,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
    }
    if kind == "top":  # differs from `max` in machine code only
        kind = "max"
    if kind in ("max", "min"):
        sign = 1 if kind == "max" else -1
        if any(map(math.isnan, numbers)):
            return math.nan
        infinite = rounded(math.inf, dtype) if dtype.is_float else 0
        empty = sign * -(infinite if infinite == math.inf else dtype.max_value)
        if dtype.is_integer:
            empty = dtype.min_value if kind == "max" else dtype.max_value
        return max(numbers, key=lambda n: (sign * n, sign * math.copysign(1, n)), default=empty)
    if dtype.is_float and not all(map(math.isfinite, numbers)):
        return float(reduce(join[kind], numbers, start[kind]))
    exact = [Fraction(number) if dtype.is_float else int(number) for number in numbers]
    return reduce(join[kind], exact, start[kind])


def assert_folded(found: Any, kind: str, elements: Array, dtype: DType) -> None:
    """One element of a reduction against the exact result, within what float64 loses on the way."""
    numbers = numbers_of(np.asarray(elements))
    exact = folded(kind, numbers, dtype)
    if dtype.kind is Kind.BOOL:
        assert bool(found) == bool(exact & 1)
    elif dtype.is_integer:
        assert int(found) == wrapped(exact, dtype)
    elif isinstance(exact, float):
        assert_same(np.asarray(found), stored(rounded(exact, dtype), dtype))
    else:
        size = folded(kind, [abs(number) for number in numbers], dtype)
        assert_close(float(found), Fraction(exact), dtype, len(numbers) * Fraction(size) / 2**52)


def assert_dot(
    found: Any, row: Array, column: Array, to: DType, *, carried: DType | None = None, start: Any = 0
) -> None:
    """One element of a product against exact arithmetic, within what float64 loses; integers wrap as `carried`."""
    terms = list(zip(numbers_of(row), numbers_of(column), strict=True))
    if not to.is_float:
        total = int(start) + sum(x * y for x, y in terms)
        assert int(found) == (bool(total) if to is bool_ else wrapped(wrapped(total, carried or to), to))
    elif all(math.isfinite(number) for number in (*sum(terms, ()), start)):
        exact = [Fraction(start), *(Fraction(x) * Fraction(y) for x, y in terms)]
        slack = len(exact) * sum(map(abs, exact), Fraction(0)) / 2**52
        assert_close(float(found), sum(exact, Fraction(0)), to, slack)
    else:
        assert_same(np.asarray(found), stored(rounded(float(start + sum(x * y for x, y in terms)), to), to))


# Programs.


@dataclass
class Case:
    """A program @f, what to run it on, and what must come out."""

    module: ModuleOp
    arguments: Sequence[Any]
    check: Callable[[Sequence[Any], Machine], None]
    machine: Callable[[], Machine] = field(default=Machine)


def program(
    inputs: Sequence[Attribute],
    build: Callable[[Sequence[SSAValue]], Sequence[Operation]],
    *,
    effects: Sequence[str] = (),
    before: Sequence[Operation] = (),
) -> ModuleOp:
    """@f, whose body is what `build` makes of its arguments and which gives the results of the last op."""
    function = graph.FuncOp("f", inputs, [], effects)
    ops = list(build(function.arguments))
    results: Sequence[SSAValue] = ops[-1].results if ops else function.arguments
    function.body.block.add_ops([*ops, graph.ReturnOp(results)])
    outputs = [value.type for value in results]
    whole = graph.FuncOp("f", inputs, outputs, effects, function.detach_region(function.body))
    return ModuleOp([*before, whole])


def expecting(*expected: Array) -> Callable[[Sequence[Any], Machine], None]:
    def check(results: Sequence[Any], machine: Machine) -> None:
        assert len(results) == len(expected)
        for found, wanted in zip(results, expected, strict=True):
            assert_same(np.asarray(found), wanted)

    return check
