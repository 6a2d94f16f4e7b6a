"""The steps of random programs: for each operator what it is given, how it is written, and what NumPy makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import bounded_values as bv
import numpy as np
from bounded_values import UNITS, Array, Bounded, UnfitError, cast, computing, joined, number, whole
from numpy_programs import Draft, broadcasts

Rule = Callable[[Draft], None]
RULES: list[Rule] = []


def rule(weight: int = 1) -> Callable[[Rule], Rule]:
    """One kind of step, drawn as often as its weight says."""

    def added(function: Rule) -> Rule:
        RULES.extend([function] * weight)
        return function

    return added


def by(x: Bounded, *functions: Callable[[Bounded], Bounded], dtype: str | None = None) -> Bounded:
    """Functions one after the other in the compute type, and one rounding."""
    found = computing(x)
    for function in functions:
        found = function(found)
    return cast(found, dtype or x.dtype)


# Elementwise

_UNARY: dict[str, Callable[[Bounded], Bounded]] = {
    "exp": bv.exp,
    "tanh": lambda x: bv.smooth(np.tanh, x),
    "sin": lambda x: bv.smooth(np.sin, x),
    "cos": lambda x: bv.smooth(np.cos, x),
    "sigmoid": bv.sigmoid,
    "erf": bv.erf,
    "sqrt": bv.sqrt,
    "log": bv.log,
    "log1p": lambda x: bv.monotone(np.log1p, x) if (x.exact > -0.9).all() else _unfit(),
    "expm1": lambda x: bv.monotone(np.expm1, x),
    "square": lambda x: bv.mul(x, x),
    "atan": lambda x: bv.smooth(np.arctan, x),
    "asinh": lambda x: bv.smooth(np.arcsinh, x),
    "abs": lambda x: Bounded(np.abs(x.exact), x.error, x.dtype),
    "negative": lambda x: Bounded(-x.exact, x.error, x.dtype),
    "relu": lambda x: Bounded(np.maximum(x.exact, 0), x.error, x.dtype),
    "softplus": lambda x: bv.smooth(lambda v: np.logaddexp(v, 0), x),
    "silu": lambda x: bv.mul(x, bv.sigmoid(x)),
    "gelu": lambda x: bv.mul(bv.mul(x, number(0.5, x)), bv.add(bv.erf(bv.mul(x, number(2**-0.5, x))), number(1.0, x))),
    "floor": lambda x: bv.steps(np.floor, x),
    "ceil": lambda x: bv.steps(np.ceil, x),
    "round": lambda x: bv.steps(np.round, x),
    "trunc": lambda x: bv.steps(np.trunc, x),
    "sign": lambda x: bv.steps(np.sign, x),
    "reciprocal": lambda x: bv.div(number(1.0, x), x),
    "rsqrt": lambda x: bv.div(number(1.0, x), bv.sqrt(x)),
}


def _unfit() -> Any:
    raise UnfitError


@rule(6)
def unary(d: Draft) -> None:
    x = d.some("f")
    name = d.one_of(list(_UNARY))
    value = d.values[x]
    made = by(value, _UNARY[name])
    shortly = name in ("exp", "tanh", "sin", "cos", "sigmoid", "sqrt", "log") and d.chance(0.2)
    d.let(f"{{{x}}}.{name}()" if shortly else f"ts.{name}({{{x}}})", made)


_FLOAT_BINARY: dict[str, tuple[str, Callable[[Bounded, Bounded], Bounded]]] = {
    "add": ("{} + {}", bv.add),
    "subtract": ("{} - {}", bv.sub),
    "multiply": ("{} * {}", bv.mul),
    "divide": ("{} / {}", bv.div),
    "maximum": ("ts.maximum({}, {})", bv.larger),
    "minimum": ("ts.minimum({}, {})", bv.smaller),
    "hypot": ("ts.hypot({}, {})", lambda a, b: bv.sqrt(bv.add(bv.mul(a, a), bv.mul(b, b)))),
}


@rule(8)
def float_binary(d: Draft) -> None:
    x = d.some("f")
    y = d.like(x, "f")
    if d.chance(0.5):
        x, y = y, x
    name = d.one_of(list(_FLOAT_BINARY))
    form, function = _FLOAT_BINARY[name]
    a, b = d.both(x, y)
    source = f"ts.{name}({{}}, {{}})" if d.chance(0.3) else form
    d.let(source.format(f"{{{x}}}", f"{{{y}}}"), cast(function(computing(a), computing(b)), a.dtype))


@rule(4)
def with_number(d: Draft) -> None:
    x = d.some("f")
    value = d.values[x]
    given = d.one_of((2, 0.5, -1.25, 3, True, 1.0, 0.1))
    form, function = d.one_of(list(_FLOAT_BINARY.values())[:6])
    a, b = computing(value), cast(number(float(given), value), computing(value).dtype)
    if d.chance(0.5):
        d.let(form.format(f"{{{x}}}", given), cast(function(a, b), value.dtype))
    else:
        d.let(
            form.format(given, f"{{{x}}}"),
            cast(function(replace(b, exact=b.exact + np.zeros(a.shape)), a), value.dtype),
        )


@rule(1)
def power(d: Draft) -> None:
    x = d.some("f")
    value = d.values[x]
    d.let(f"{{{x}}} ** {d.one_of((2, 2.0))}", by(value, lambda v: replace(bv.mul(v, v), error=4 * bv.mul(v, v).error)))


_INTEGER_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "{} + {}": np.add,
    "{} - {}": np.subtract,
    "{} * {}": np.multiply,
    "ts.maximum({}, {})": np.maximum,
    "ts.minimum({}, {})": np.minimum,
    "{} & {}": np.bitwise_and,
    "{} | {}": np.bitwise_or,
    "{} ^ {}": np.bitwise_xor,
}


@rule(3)
def integer_binary(d: Draft) -> None:
    x = d.some("i")
    y = d.like(x, "i")
    form = d.one_of(list(_INTEGER_BINARY))
    a, b = d.both(x, y)
    d.let(form.format(f"{{{x}}}", f"{{{y}}}"), whole(_INTEGER_BINARY[form](a.exact, b.exact), a.dtype))


@rule(2)
def integer_with_number(d: Draft) -> None:
    x = d.some("i")
    a = d.values[x]
    given = d.whole(1, 5)
    form, function = d.one_of(
        (
            ("{} // {}", np.floor_divide),
            ("{} % {}", np.remainder),
            ("{} + {}", np.add),
            ("{} * {}", np.multiply),
            ("{} >> {}", np.right_shift),
            ("{} == {}", np.equal),
            ("{} < {}", np.less),
        )
    )
    made = function(a.exact.astype(np.int64), given)
    d.let(form.format(f"{{{x}}}", given), whole(made, "bool" if made.dtype == np.bool_ else a.dtype))


@rule(3)
def compare(d: Draft) -> None:
    kind = d.one_of("fi")
    x = d.some(kind)
    y = d.like(x, kind)
    name, sign = d.one_of((("less", "<"), ("greater", ">"), ("less_equal", "<="), ("equal", "=="), ("not_equal", "!=")))
    a, b = d.both(x, y)
    source = f"ts.{name}({{{x}}}, {{{y}}})" if d.chance(0.5) else f"{{{x}}} {sign} {{{y}}}"
    d.let(source, bv.compared(name, a, b))


@rule(2)
def logic(d: Draft) -> None:
    x = d.some("b")
    a = d.values[x]
    if d.chance(0.3):
        d.let(f"~{{{x}}}", whole(~a.exact, "bool"))
        return
    y = d.like(x, "b")
    name = d.one_of(("and", "or", "xor"))
    d.let(
        f"ts.logical_{name}({{{x}}}, {{{y}}})",
        whole(getattr(np, f"logical_{name}")(a.exact, d.values[y].exact), "bool"),
    )


@rule(3)
def where(d: Draft) -> None:
    c = d.some("b")
    kind = d.one_of("ffi")
    x = d.like(c, kind)
    condition = d.values[c].exact
    if d.chance(0.4):
        a = d.values[x]
        given = d.one_of((0, 1)) if kind == "i" else d.one_of((0.0, 1.0, -0.5))
        b = Bounded(np.full((), given), np.zeros(()), a.dtype) if kind == "i" else number(given, a)
        d.let(f"ts.where({{{c}}}, {{{x}}}, {given})", a.over(b, lambda u, v: np.where(condition, u, v)))
        return
    y = d.like(c, kind)
    a, b = d.both(x, y)
    if not broadcasts(a.shape, b.shape):
        raise UnfitError
    d.let(f"ts.where({{{c}}}, {{{x}}}, {{{y}}})", a.over(b, lambda u, v: np.where(condition, u, v)))


@rule(1)
def where_of_numbers(d: Draft) -> None:
    c = d.some("b")
    low, high = d.one_of(((0, 1), (0.0, 1.0), (-0.5, 2), (1, 0.25)))
    first, second = np.asarray(low), np.asarray(high)
    exact = np.where(d.values[c].exact, first, second)
    dtype = "i64" if exact.dtype.kind == "i" else "f32"
    d.let(f"ts.where({{{c}}}, {low}, {high})", Bounded(exact, np.zeros(exact.shape), dtype))


@rule(1)
def chosen_times(d: Draft) -> None:
    """Numbers that are chosen between are of the default float type."""
    x = d.some("f16", "bf16", "f32", "f64")
    value = cast(d.values[x], "f64" if d.values[x].dtype == "f64" else "f32")
    c = d.like(x, "b")
    exact = np.where(d.values[c].exact, 1.0, 0.5)
    d.let(f"ts.where({{{c}}}, 1.0, 0.5) * {{{x}}}", bv.mul(Bounded(exact, np.zeros(exact.shape), value.dtype), value))


@rule(1)
def clip(d: Draft) -> None:
    x = d.some("f", "i")
    a = d.values[x]
    low, high = (0, 3) if a.dtype not in UNITS else (-0.5, 0.75)
    d.let(f"ts.clip({{{x}}}, {low}, {high})", replace(a, exact=np.clip(a.exact, low, high)))


@rule(3)
def astype(d: Draft) -> None:
    x = d.some("f", "i", "b")
    a = d.values[x]
    to = d.one_of(("f32", "f64", "f16", "bf16", "i32", "i64", "bool"))
    if to in UNITS:
        made = cast(a, to)
        if a.dtype not in UNITS:
            made = bv.rounded(a.exact.astype(np.float64), np.zeros(a.shape), to)
    elif to == "bool":
        made = bv.compared("not_equal", a, replace(a, exact=np.zeros(a.shape), error=np.zeros(a.shape)))
    else:
        made = replace(bv.steps(np.trunc, a) if a.dtype in UNITS else a, dtype=to)
    d.let(
        f"ts.astype({{{x}}}, ts.{to if to != 'bool' else 'bool_'})"
        if d.chance(0.7)
        else f"{{{x}}}.astype(ts.{to if to != 'bool' else 'bool_'})",
        made,
    )


# Folds


def _folded(d: Draft, x: str) -> tuple[Any, bool, str]:
    axes, keep = d.axes(d.values[x]), d.chance(0.4)
    return axes, keep, f"axis={axes}, keepdims={keep}"


@rule(6)
def float_fold(d: Draft) -> None:
    x = d.some("f")
    a = d.values[x]
    axes, keep, said = _folded(d, x)
    name = d.one_of(("sum", "sum", "mean", "max", "min", "prod", "var", "std", "logsumexp_safe", "all", "any"))
    if name in ("all", "any"):
        truth = bv.compared("not_equal", a, replace(a, exact=np.zeros(a.shape), error=np.zeros(a.shape)))
        d.let(f"ts.{name}({{{x}}}, {said})", whole(getattr(np, name)(truth.exact, axis=axes, keepdims=keep), "bool"))
        return
    folds: dict[str, Callable[[], Bounded]] = {
        "sum": lambda: bv.total(a, axes, keep),
        "mean": lambda: bv.mean(a, axes, keep),
        "max": lambda: bv.most(a, axes, keep),
        "min": lambda: bv.most(a, axes, keep, least=True),
        "prod": lambda: bv.product(a, axes, keep),
        "var": lambda: bv.variance(a, axes, keep),
        "std": lambda: by(a, lambda v: bv.sqrt(bv.variance(v, axes, keep))),
        "logsumexp_safe": lambda: bv.log_total(a, axes, keep),
    }
    method = d.chance(0.3) and name != "logsumexp_safe"
    d.let(f"{{{x}}}.{name}({said})" if method else f"ts.{name}({{{x}}}, {said})", folds[name]())


@rule(3)
def exact_fold(d: Draft) -> None:
    x = d.some("i", "b")
    a = d.values[x]
    axes, keep, said = _folded(d, x)
    name = d.one_of(("sum", "prod", "max", "min", "all", "any", "count_nonzero"))
    if name in ("max", "min"):
        if a.dtype == "bool" or not a.exact.size:
            raise UnfitError
        made = whole(getattr(np, name)(a.exact, axis=axes, keepdims=keep), a.dtype)
    elif name in ("all", "any"):
        made = whole(getattr(np, name)(a.exact, axis=axes, keepdims=keep), "bool")
    else:
        wide = (a.exact != 0 if name == "count_nonzero" else a.exact).astype(np.int64)
        if a.dtype == "bool" and name == "prod":
            raise UnfitError
        fold = np.prod if name == "prod" else np.sum
        # Unsigned sums stay unsigned, and are not used any further.
        made = whole(fold(wide, axis=axes, keepdims=keep), "i64")
        if a.dtype == "u8" and name != "count_nonzero":
            raise UnfitError
    d.let(f"ts.{name}({{{x}}}, {said})" if name != "count_nonzero" else f"ts.ops.{name}({{{x}}}, {said})", made)


@rule(2)
def fold_of_expression(d: Draft) -> None:
    """A fold over something that is computed with it."""
    x = d.some("f32", "f64")
    a = d.values[x]
    axes, keep, said = _folded(d, x)
    functions: dict[str, Callable[[Bounded], Bounded]] = {
        "ts.exp({})": bv.exp,
        "2.0 - {}": lambda v: bv.sub(replace(number(2.0, v), exact=np.full(v.shape, 2.0)), v),
        "ts.square({})": lambda v: bv.mul(v, v),
        "ts.cos({})": lambda v: bv.smooth(np.cos, v),
    }
    form = d.one_of(list(functions))
    function = functions[form]
    d.let(f"ts.sum({form.format('{' + x + '}')}, {said})", bv.total(function(a), axes, keep))


@rule(2)
def extreme_index(d: Draft) -> None:
    x = d.some("f", "i", least=1)
    a = d.values[x]
    name, most = d.one_of((("argmax", True), ("argmin", False)))
    axis, keep = (None if d.chance(0.3) or not a.shape else d.axis(a)), d.chance(0.3)
    if not a.is_exact:
        flat = a.at(lambda v: v.reshape(-1)) if axis is None else a
        bv.order(flat, 0 if axis is None else axis, most)
    found = getattr(np, name)(a.exact, axis=axis, keepdims=keep)
    d.let(f"ts.{name}({{{x}}}, axis={axis}, keepdims={keep})", whole(found, "i64"))


@rule(2)
def cumulative(d: Draft) -> None:
    x = d.some("f", "i")
    a = d.values[x]
    axis = d.axis(a)
    if a.dtype in UNITS:
        d.let(f"ts.cumulative_sum({{{x}}}, axis={axis})", bv.running(a, axis))
    elif a.dtype != "u8":
        found = whole(np.cumsum(a.exact.astype(np.int64), axis=axis), "i64")
        if d.chance(0.5):
            d.let(f"ts.astype(ts.cumulative_sum({{{x}}}, axis={axis}), ts.i32)", replace(found, dtype="i32"))
        else:
            d.let(f"ts.cumulative_sum({{{x}}}, axis={axis})", found)


@rule(2)
def sort(d: Draft) -> None:
    x = d.some("f", "i", "b")
    a = d.values[x]
    axis, down = d.axis(a), d.chance(0.3)
    if a.dtype == "bool":
        raise UnfitError
    if d.chance(0.6):
        d.let(f"ts.sort({{{x}}}, axis={axis}, descending={down})", bv.ordered(a, axis, down))
    else:
        d.let(f"ts.argsort({{{x}}}, axis={axis}, descending={down})", whole(bv.order(a, axis, down), "i64"))


@rule(1)
def topk(d: Draft) -> None:
    x = d.some("f", "i", ranks=(1, 2, 3, 4), least=1)
    a = d.values[x]
    axis = d.axis(a)
    count, largest = d.whole(1, a.shape[axis]), d.chance(0.6)
    indices = np.take(bv.order(a, axis, largest), np.arange(count), axis)
    values = a.at(lambda v: np.take_along_axis(v, indices, axis))
    d.let(f"ts.topk({{{x}}}, {count}, axis={axis}, largest={largest})", values, whole(indices, "i64"))


@rule(1)
def searchsorted(d: Draft) -> None:
    row, values = d.some("i64", ranks=(1,)), d.some("i64")
    side = d.one_of(("left", "right"))
    order = np.sort(d.values[row].exact)
    found = np.searchsorted(order, d.values[values].exact, side)
    d.let(f"ts.searchsorted(ts.sort({{{row}}}), {{{values}}}, side='{side}')", whole(found, "i64"))


# Arrangement


@rule(4)
def slices(d: Draft) -> None:
    x = d.some("f", "i", "b", ranks=(1, 2, 3, 4))
    a = d.values[x]
    parts: list[str] = []
    for size in a.shape[: d.whole(1, len(a.shape))]:
        if size and d.chance(0.25):
            parts.append(str(d.whole(-size, size - 1)))
            continue
        start, stop = (d.one_of(("", d.whole(-size - 1, size + 1))) for _ in range(2))
        step = d.one_of(("", "", "", "2", "-1", "3", "-2"))
        parts.append(f"{start}:{stop}" + (f":{step}" if step else ""))
    if d.chance(0.15):
        parts.insert(d.whole(0, len(parts)), "None")
    if d.chance(0.2):
        parts.append("...")
    key = ", ".join(parts)
    d.let(f"{{{x}}}[{key}]", a.at(lambda v: eval(f"v[{key}]", {"v": v})))


def _indices(d: Draft, size: int, shape: tuple[int, ...]) -> str:
    """Indices along an axis of that size, some of them from its end."""
    if not size and math.prod(shape):
        raise UnfitError
    return d.new(d.one_of(("i64", "i64", "i32")), shape, -size if d.chance(0.5) else 0, max(0, size - 1))


@rule(3)
def gathers(d: Draft) -> None:
    x = d.some("f", "i", "b", ranks=(1, 2, 3))
    a = d.values[x]
    axis = d.axis(a, signed=False)
    indices = _indices(d, a.shape[axis], tuple(d.size() for _ in range(d.whole(0, 2))))
    where_ = d.values[indices].exact
    way = d.one_of(("take", "item", "embedding"))
    if way == "take":
        found = a.at(lambda v: np.take(v, where_, axis) if v.size or not where_.size else _unfit())
        d.let(f"ts.take({{{x}}}, {{{indices}}}, axis={axis})", found)
    elif way == "embedding" and axis == 0:
        d.let(f"ts.embedding({{{indices}}}, {{{x}}})", a.at(lambda v: v[where_]))
    else:
        colons = ":, " * axis
        d.let(f"{{{x}}}[{colons}{{{indices}}}]", a.at(lambda v: v[(slice(None),) * axis + (where_,)]))


@rule(2)
def gathers_of_gathers(d: Draft) -> None:
    """Two indices at once, or one after the other."""
    x = d.some("f", "i", ranks=(2, 3), least=1)
    a = d.values[x]
    shape = tuple(d.one_of((1, 2, 5)) for _ in range(d.whole(0, 2)))
    i, j = (_indices(d, size, shape) for size in a.shape[:2])
    first, second = d.values[i].exact, d.values[j].exact
    if d.chance(0.5):
        d.let(f"{{{x}}}[{{{i}}}, {{{j}}}]", a.at(lambda v: v[first, second]))
    else:
        at = d.whole(0, a.shape[0] - 1)
        d.let(f"{{{x}}}[{at}][{{{j}}}]", a.at(lambda v: v[at][second]))


@rule(2)
def along_axis(d: Draft) -> None:
    x = d.some("f", "i", ranks=(1, 2, 3), least=1)
    a = d.values[x]
    axis = d.axis(a)
    shape = tuple(d.size() if at == axis % len(a.shape) else size for at, size in enumerate(a.shape))
    index = _indices(d, a.shape[axis], shape)
    spots = np.asarray(d.values[index].exact, np.int64)
    spots = np.where(spots < 0, spots + a.shape[axis], spots)
    d.let(f"ts.take_along_axis({{{x}}}, {{{index}}}, axis={axis})", a.at(lambda v: np.take_along_axis(v, spots, axis)))


@rule(2)
def updates(d: Draft) -> None:
    x = d.some("f32", "f64", "i64", ranks=(1, 2, 3), least=1)
    a = d.values[x]
    way = d.one_of(("set", "add", "max", "min"))
    value = 2 if a.dtype == "i64" else 0.5
    if d.chance(0.4):
        start, stop, step = d.whole(0, a.shape[0]), d.whole(0, a.shape[0]), d.one_of((1, 2))
        key, spots, text = slice(start, stop, step), np.arange(a.shape[0])[start:stop:step], f"{start}:{stop}:{step}"
    else:
        indices = _indices(d, a.shape[0], (d.size(),))
        spots = d.values[indices].exact
        key, text = spots, f"{{{indices}}}"
    exact, error = a.exact.copy(), a.error.copy()
    functions = {"add": np.add, "max": np.maximum, "min": np.minimum}
    if way == "set":
        exact[key], error[key] = value, 0.0
    else:
        functions[way].at(exact, spots, value)
        if a.dtype != "i64":
            error = error + (len(spots) + 1) * UNITS[a.dtype] * (np.abs(exact) + np.abs(a.exact) + error)
    d.let(f"{{{x}}}.at[{text}].{way}({value})", Bounded(exact, error, a.dtype))


@rule(1)
def update_with_rows(d: Draft) -> None:
    x = d.some("f32", ranks=(1, 2, 3), least=1)
    a = d.values[x]
    count = d.size()
    indices = _indices(d, a.shape[0], (count,))
    rows = d.new("f32", (count, *a.shape[1:]))
    exact = a.exact.copy()
    sums = np.abs(a.exact)
    np.add.at(exact, d.values[indices].exact, d.values[rows].exact)
    np.add.at(sums, d.values[indices].exact, np.abs(d.values[rows].exact))
    d.let(
        f"{{{x}}}.at[{{{indices}}}].add({{{rows}}})", Bounded(exact, a.error + (count + 1) * UNITS["f32"] * sums, "f32")
    )


@rule(4)
def reshaped(d: Draft) -> None:
    x = d.some("f", "i", "b")
    a = d.values[x]
    rank = len(a.shape)
    way = d.whole(0, 6)
    if way == 0:
        order = tuple(int(one) for one in d.random.permutation(rank))
        d.let(f"ts.permute_dims({{{x}}}, {order})", a.at(lambda v: v.transpose(order)))
    elif way == 1 and rank > 1:
        at = d.whole(0, rank - 2)
        shape = (*a.shape[:at], a.shape[at] * a.shape[at + 1], *a.shape[at + 2 :])
        d.let(f"ts.reshape({{{x}}}, {shape})", a.at(lambda v: v.reshape(shape)))
    elif way == 2 and rank and a.exact.size:
        at = d.axis(a, signed=False)
        divisor = d.one_of([one for one in range(1, a.shape[at] + 1) if a.shape[at] % one == 0])
        shape = (*a.shape[:at], divisor, a.shape[at] // divisor, *a.shape[at + 1 :])
        given = (*shape[:at], -1, *shape[at + 1 :])
        d.let(f"ts.reshape({{{x}}}, {given})", a.at(lambda v: v.reshape(shape)))
    elif way == 3:
        at = d.whole(-rank - 1, rank)
        d.let(f"ts.expand_dims({{{x}}}, axis={at})", a.at(lambda v: np.expand_dims(v, at)))
    elif way == 4:
        d.let(f"ts.flatten({{{x}}})", a.at(lambda v: v.reshape(-1)))
    elif way == 5 and rank > 1:
        d.let(f"{{{x}}}.mT", a.at(lambda v: np.swapaxes(v, -1, -2)))
    elif way == 6 and 1 in a.shape:
        at = a.shape.index(1)
        d.let(f"ts.squeeze({{{x}}}, axis={at})", a.at(lambda v: np.squeeze(v, at)))
    else:
        raise UnfitError


@rule(2)
def rearranged(d: Draft) -> None:
    x = d.some("f", "i", "b", ranks=(1, 2, 3))
    a = d.values[x]
    axis = d.axis(a)
    way = d.whole(0, 4)
    if way == 0:
        d.let(f"ts.flip({{{x}}}, axis={axis})", a.at(lambda v: np.flip(v, axis)))
    elif way == 1:
        shift = d.whole(-3, 4)
        d.let(f"ts.roll({{{x}}}, {shift}, axis={axis})", a.at(lambda v: np.roll(v, shift, axis)))
    elif way == 2:
        times = d.whole(0, 3)
        d.let(f"ts.repeat({{{x}}}, {times}, axis={axis})", a.at(lambda v: np.repeat(v, times, axis)))
    elif way == 3:
        times = tuple(d.whole(1, 2) for _ in a.shape)
        d.let(f"ts.ops.tile({{{x}}}, {times})", a.at(lambda v: np.tile(v, times)))
    else:
        shape = (d.whole(0, 3), *a.shape)
        d.let(f"ts.broadcast_to({{{x}}}, {shape})", a.at(lambda v: np.broadcast_to(v, shape)))


@rule(3)
def joins(d: Draft) -> None:
    x = d.some("f", "i", "b", ranks=(1, 2, 3))
    a = d.values[x]
    axis = d.axis(a)
    if d.chance(0.5):
        fitting = [name for name, one in d.values.items() if one.shape == a.shape and one.dtype == a.dtype]
        y = d.one_of(fitting) if d.chance(0.5) else d.new(a.dtype, a.shape)
        made = joined([a, d.values[y]], lambda xs: np.stack(xs, axis))
        d.let(f"ts.stack([{{{x}}}, {{{y}}}], axis={axis})", made)
        return
    y = d.new(a.dtype, tuple(d.size() if at == axis % len(a.shape) else size for at, size in enumerate(a.shape)))
    names = [x, y, x] if d.chance(0.3) else [y, x]
    made = joined([d.values[name] for name in names], lambda xs: np.concatenate(xs, axis))
    d.let(f"ts.concat([{', '.join(f'{{{name}}}' for name in names)}], axis={axis})", made)


@rule(2)
def pad(d: Draft) -> None:
    x = d.some("f", "i", "b", ranks=(1, 2, 3))
    a = d.values[x]
    widths = tuple((d.whole(0, 2), d.whole(0, 2)) for _ in a.shape)
    value = "" if d.chance(0.6) or a.dtype == "bool" else ", value=1"
    filler = 1 if value else 0
    made = replace(a, exact=np.pad(a.exact, widths, constant_values=filler), error=np.pad(a.error, widths))
    d.let(f"ts.pad({{{x}}}, {widths}{value})", made)


@rule(1)
def split(d: Draft) -> None:
    x = d.some("f", "i", ranks=(1, 2, 3), least=2)
    a = d.values[x]
    axis = d.axis(a)
    at = d.whole(0, a.shape[axis])
    parts = (at, a.shape[axis] - at)
    first, second = (a.at(lambda v, side=side: np.split(v, [at], axis)[side]) for side in (0, 1))
    d.let(f"ts.split({{{x}}}, {parts}, axis={axis})", first, second)


@rule(1)
def triangle(d: Draft) -> None:
    x = d.some("f", "i", ranks=(2, 3))
    a = d.values[x]
    name, k = d.one_of(("tril", "triu")), d.whole(-2, 2)
    d.let(f"ts.{name}({{{x}}}, k={k})", a.at(lambda v: getattr(np, name)(v, k)))


# Products


def _product(a: Bounded, b: Bounded, function: Callable[[Array, Array], Array], terms: int) -> Bounded:
    return bv.bilinear(function, a, b, max(2, terms))


@rule(6)
def matmul(d: Draft) -> None:
    x = d.some("f32", "f64", "f16", "bf16", ranks=(1, 2, 3, 4))
    a = d.values[x]
    lead = a.shape[:-2] if d.chance(0.4) else (1,) * d.chance(0.2)
    shape = (a.shape[-1],) if d.chance(0.2) else (*lead, a.shape[-1], d.size())
    y = d.new(a.dtype, shape)
    b = d.values[y]
    made = _product(a, b, np.matmul, a.shape[-1])
    d.let(f"{{{x}}} @ {{{y}}}" if d.chance(0.6) else f"ts.matmul({{{x}}}, {{{y}}})", made)


@rule(2)
def matmul_of_itself(d: Draft) -> None:
    x = d.some("f32", ranks=(2, 3))
    a = d.values[x]
    d.let(f"{{{x}}} @ {{{x}}}.mT", _product(a, a, lambda u, v: u @ np.swapaxes(v, -1, -2), a.shape[-1]))


@rule(2)
def linear(d: Draft) -> None:
    x = d.some("f32", "bf16", ranks=(1, 2, 3))
    a = d.values[x]
    outputs = d.size()
    w = d.new(a.dtype, (a.shape[-1], outputs))
    made = _product(a, d.values[w], np.matmul, a.shape[-1])
    if d.chance(0.5):
        d.let(f"ts.linear({{{x}}}, {{{w}}})", made)
    else:
        b = d.new(a.dtype, (outputs,))
        found = bv.add(computing(made), d.values[b])
        d.let(f"ts.linear({{{x}}}, {{{w}}}, {{{b}}})", cast(found, a.dtype))


@rule(2)
def einsum(d: Draft) -> None:
    x = d.some("f32", "f64", ranks=(2, 3))
    a = d.values[x]
    letters = "abc"[: len(a.shape)]
    other = letters[-1] + "z" if d.chance(0.6) else letters
    sizes = dict(zip(letters, a.shape, strict=True)) | {"z": d.size()}
    y = d.new(a.dtype, tuple(sizes[one] for one in other))
    used = sorted(set(letters + other))
    kept = "".join(one for one in used if d.chance(0.5))
    formula = f"{letters},{other}->{kept}"
    terms = math.prod(sizes[one] for one in used if one not in kept)
    made = _product(a, d.values[y], lambda u, v: np.einsum(formula, u, v), terms)
    d.let(f"ts.einsum('{formula}', {{{x}}}, {{{y}}})", made)


# Networks


@rule(3)
def softmax(d: Draft) -> None:
    x = d.some("f", ranks=(1, 2, 3, 4))
    a = d.values[x]
    axis = d.axis(a)
    name = d.one_of(("softmax", "softmax_safe", "log_softmax"))
    if name == "log_softmax":
        if not a.shape[axis]:
            raise UnfitError
        made = by(a, lambda v: bv.sub(v, bv.log_total(v, axis, True)))
    else:
        made = bv.shares(a, axis) if a.shape[axis] else a
    d.let(f"ts.{name}({{{x}}}, axis={axis})", made)


@rule(3)
def norm(d: Draft) -> None:
    x = d.some("f", ranks=(1, 2, 3), least=1)
    a = d.values[x]
    values = computing(a)
    if d.chance(0.5):
        apart = bv.sub(values, bv.mean(values, -1, True))
        width, name = bv.variance(values, -1, True), "layernorm_safe"
    else:
        apart, width, name = values, bv.mean(bv.mul(values, values), -1, True), "rmsnorm_safe"
    found = bv.div(apart, bv.sqrt(bv.add(width, number(0.1, width))))
    if d.chance(0.5):
        w = d.new(a.dtype, (a.shape[-1],))
        found = bv.mul(found, replace(d.values[w], dtype=found.dtype))
        d.let(f"ts.{name}({{{x}}}, {{{w}}}, eps=0.1)", cast(found, a.dtype))
    else:
        d.let(f"ts.{name}({{{x}}}, eps=0.1)", cast(found, a.dtype))


@rule(2)
def attention(d: Draft) -> None:
    lead = tuple(d.one_of((1, 2, 3)) for _ in range(2))
    rows, keys, depth, width = (d.one_of((1, 2, 3, 5, 8, 17, 33)) for _ in range(4))
    depth = d.one_of((4, 8, 16))
    width = depth
    causal = rows <= keys and d.chance(0.4)
    dtype = d.one_of(("f32", "f32", "f16", "bf16"))
    q, k, v = (d.new(dtype, (*lead, *shape)) for shape in ((rows, depth), (keys, depth), (keys, width)))
    a, b, c = (computing(d.values[name]) for name in (q, k, v))
    scores = _product(a, b, lambda s, t: s @ np.swapaxes(t, -1, -2), depth)
    scores = bv.mul(scores, number(depth**-0.5, scores))
    if causal:
        seen = np.tril(np.ones((rows, keys), np.bool_), keys - rows)
        scores = Bounded(np.where(seen, scores.exact, -1e4), scores.error, scores.dtype)
    found = _product(bv.shares(scores, -1), c, np.matmul, keys)
    # Weights may be rounded to the type of the values before they meet them.
    extra = UNITS[dtype] * (bv.shares(scores, -1).exact @ np.abs(c.exact))
    found = replace(found, error=4 * found.error + 2 * extra)
    name = d.one_of(("flash_attention", "scaled_dot_product_attention"))
    d.let(f"ts.{name}({{{q}}}, {{{k}}}, {{{v}}}, causal={causal})", cast(found, dtype))


def _windows(x: Array, widths: tuple[int, ...], stride: int, padding: int) -> Array:
    axes = tuple(range(2, 2 + len(widths)))
    held = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * len(widths))
    found = np.lib.stride_tricks.sliding_window_view(held, widths, axes)
    return found[(slice(None), slice(None), *(slice(None, None, stride),) * len(widths))]


@rule(2)
def convolution(d: Draft) -> None:
    rank = d.whole(1, 2)
    batch, channels, filters = d.size(), d.whole(1, 4), d.whole(1, 5)
    extents = tuple(d.whole(3, 7) for _ in range(rank))
    widths = tuple(d.whole(1, 3) for _ in range(rank))
    stride, padding = d.whole(1, 2), d.whole(0, 1)
    x, w = d.new("f32", (batch, channels, *extents)), d.new("f32", (filters, channels, *widths))
    letters, taps = "pq"[:rank], "st"[:rank]
    formula = f"nc{letters}{taps},fc{taps}->nf{letters}"

    def convolved(u: Array, v: Array) -> Array:
        return np.einsum(formula, _windows(u, widths, stride, padding), v)

    made = _product(d.values[x], d.values[w], convolved, channels * math.prod(widths))
    d.let(f"ts.conv{rank}d({{{x}}}, {{{w}}}, stride={stride}, padding={padding})", made)


@rule(1)
def pooling(d: Draft) -> None:
    x = d.new("f", (d.size(), d.whole(1, 3), d.whole(3, 8), d.whole(3, 8)))
    a = d.values[x]
    size, stride = d.whole(1, 3), d.whole(1, 2)
    windows = a.at(lambda v: _windows(v, (size, size), stride, 0))
    if d.chance(0.5):
        d.let(f"ts.max_pool({{{x}}}, {size}, stride={stride})", bv.most(windows, (-1, -2)))
    else:
        d.let(f"ts.avg_pool({{{x}}}, {size}, stride={stride})", bv.mean(windows, (-1, -2)))


@rule(2)
def losses(d: Draft) -> None:
    rows, classes = d.size(), d.one_of((1, 2, 5, 9))
    x = d.new("f32", (rows, classes))
    a = d.values[x]
    reduction = d.one_of(("sum", "none", "mean"))
    if reduction == "mean" and not rows:
        raise UnfitError
    finish: dict[str, Callable[[Bounded], Bounded]] = {
        "sum": lambda v: bv.total(v, None),
        "none": lambda v: v,
        "mean": lambda v: bv.mean(v, None),
    }
    if d.chance(0.5):
        y = d.new("f32", (rows, classes))
        apart = bv.sub(a, d.values[y])
        made = finish[reduction](bv.mul(apart, apart))
        d.let(f"ts.mse_loss({{{x}}}, {{{y}}}, reduction='{reduction}')", made)
        return
    y = d.new("i64", (rows,), 0, classes - 1)
    labels = d.values[y].exact
    if rows:
        own = a.at(lambda v: v[np.arange(rows), labels])
        rows_lost = bv.sub(bv.log_total(a, -1), own)
    else:
        rows_lost = a.at(lambda v: np.zeros((0,)))
    extra = 4 * UNITS["f32"] * (1 + np.max(np.abs(a.exact), initial=0))
    made = finish[reduction](replace(rows_lost, error=rows_lost.error + extra))
    d.let(f"ts.cross_entropy({{{x}}}, {{{y}}}, reduction='{reduction}')", made)


@rule(1)
def one_hot(d: Draft) -> None:
    classes = d.whole(1, 6)
    y = d.new("i64", tuple(d.size() for _ in range(d.whole(0, 2))), 0, classes - 1)
    exact = np.eye(classes)[d.values[y].exact]
    d.let(f"ts.one_hot({{{y}}}, {classes})", Bounded(exact, np.zeros(exact.shape), "f32"))


# Functions in functions, and Python's own control flow


@rule(1)
def nested(d: Draft) -> None:
    x = d.some("f32")
    y = d.like(x, "f32")
    a, b = d.values[x], d.values[y]
    made = bv.add(bv.mul(a, b), number(1.0, a))
    form = d.one_of(("ts.jit(lambda p, q: p * q + 1.0)", "(lambda p, q: p * q + 1.0)"))
    d.let(f"{form}({{{x}}}, {{{y}}})", made)


@rule(1)
def asked_of_a_shape(d: Draft) -> None:
    x = d.some("f32", ranks=(1, 2, 3))
    a = d.values[x]
    made = bv.add(a, a) if a.shape[0] > 2 else bv.mul(a, a)
    d.let(f"{{{x}}} + {{{x}}} if {{{x}}}.shape[0] > 2 else {{{x}}} * {{{x}}}", made)


@rule(1)
def unstacked(d: Draft) -> None:
    x = d.some("f32", ranks=(1, 2, 3), least=1)
    a = d.values[x]
    if a.shape[0] > 5:
        raise UnfitError
    made = a.at(lambda v: v[0])
    for at in range(1, a.shape[0]):
        made = bv.add(made, a.at(lambda v, at=at: v[at]))
    d.let(f"sum(ts.unstack({{{x}}}, axis=0)[1:], ts.unstack({{{x}}}, axis=0)[0])", made)


@rule(1)
def a_slice_beside_the_whole(d: Draft) -> None:
    """A product of which a part goes one way and all of it another."""
    x = d.new("f32", (d.size(), d.whole(1, 3), d.one_of((4, 8))))
    a = d.values[x]
    w = d.new("f32", (a.shape[-1], d.one_of((3, 16))))
    made = _product(a, d.values[w], np.matmul, a.shape[-1])
    d.let(f"{{{x}}} @ {{{w}}}", made)
    name = list(d.values)[-1]
    d.let(f"{{{name}}}[:, -1]", made.at(lambda v: v[:, -1]))
    d.let(f"ts.relu({{{name}}})", by(made, _UNARY["relu"]))
