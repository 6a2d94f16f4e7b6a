"""Attention written in plain algebra becomes one region, and its kernel computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from graph_programs import Array, Builder, Value, build, check, compiled, error, kinds, normal, scheduled
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import bf16, f16, f32, f64, i32
from tessera.dtypes.types import DType, bool_
from tessera.interpreters.levels.graph import run_function
from tessera.transforms.pipeline import compile_module

WIDTH = 16


def softmax(x: Value) -> Value:
    weights = (x - x.reduce("max")).ew("exp")
    return weights / weights.reduce("sum")


def scores(q: Value, k: Value) -> Value:
    return (q @ k.T) * WIDTH**-0.5


def masked(g: Builder, x: Value, fill: float = -np.inf, fn: str = "ge") -> Value:
    rows, keys = (g.iota(axis, x.shape[-2:]) for axis in (0, 1))
    return g.where(rows.ew(fn, keys).broadcast(x.shape), x, fill)


def plain(g: Builder, q: Value, k: Value, v: Value) -> Value:
    return softmax(scores(q, k)) @ v


def causal(g: Builder, q: Value, k: Value, v: Value) -> Value:
    return softmax(masked(g, scores(q, k))) @ v


def scaled_before(g: Builder, q: Value, k: Value, v: Value) -> Value:
    return softmax((q * WIDTH**-0.5) @ k.T) @ v


def without_maxima(g: Builder, q: Value, k: Value, v: Value) -> Value:
    weights = scores(q, k).ew("exp")
    return (weights / weights.reduce("sum")) @ v


def divided_later(g: Builder, q: Value, k: Value, v: Value) -> Value:
    x = scores(q, k)
    weights = (x - x.reduce("max")).ew("exp")
    return (weights @ v) / weights.reduce("sum")


def not_divided(g: Builder, q: Value, k: Value, v: Value) -> Value:
    x = scores(q, k)
    return (x - x.reduce("max")).ew("exp") @ v


def large_negative(g: Builder, q: Value, k: Value, v: Value) -> Value:
    return softmax(masked(g, scores(q, k), -1e9)) @ v


def nothing_seen(g: Builder, q: Value, k: Value, v: Value) -> Value:
    """The first rows see no key at all: NaN, as the algebra says."""
    return softmax(masked(g, scores(q, k), fn="gt")) @ v


def safe(g: Builder, q: Value, k: Value, v: Value) -> Value:
    """The same rows are 0."""
    x = masked(g, scores(q, k), fn="gt")
    top = x.reduce("max")
    weights = (x - g.where(top.ew("eq", -np.inf), g.full(0, top.shape, top.dtype), top)).ew("exp")
    total = weights.reduce("sum")
    shares = weights / g.where(total.ew("eq", 0.0), g.full(1, total.shape, total.dtype), total)
    return shares @ v


def chosen_zero(g: Builder, q: Value, k: Value, v: Value) -> Value:
    x = masked(g, scores(q, k), fn="gt")
    top = x.reduce("max")
    weights = (x - top).ew("exp")
    nothing = top.ew("eq", -np.inf).broadcast(x.shape)
    return g.where(nothing, g.full(0, x.shape, x.dtype), weights / weights.reduce("sum")) @ v


def soft_cap(g: Builder, q: Value, k: Value, v: Value) -> Value:
    return softmax(masked(g, (scores(q, k) / 3.0).ew("tanh") * 3.0)) @ v


def base_two(g: Builder, q: Value, k: Value, v: Value) -> Value:
    x = scores(q, k)
    weights = (x - x.reduce("max")).ew("exp2")
    return (weights / weights.reduce("sum")) @ v


def with_logarithms(g: Builder, q: Value, k: Value, v: Value) -> tuple[Value, Value]:
    x = masked(g, scores(q, k))
    top = x.reduce("max")
    weights = (x - top).ew("exp")
    total = weights.reduce("sum")
    return (weights / total) @ v, total.ew("log") + top


def logarithms_of_nothing(g: Builder, q: Value, k: Value, v: Value) -> tuple[Value, Value]:
    x = masked(g, scores(q, k), fn="gt")
    top = x.reduce("max")
    weights = (x - top).ew("exp")
    total = weights.reduce("sum")
    return (weights / total) @ v, total.ew("log") + top


def heads_last(g: Builder, q: Value, k: Value, v: Value) -> Value:
    """[B, S, H, D] in, [B, S, H*D] out."""
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    found = causal(g, q, k, v).transpose(0, 2, 1, 3)
    batch, rows, heads, width = found.shape
    return found.reshape(batch, rows, heads * width)


FORMS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        plain,
        causal,
        scaled_before,
        without_maxima,
        divided_later,
        not_divided,
        large_negative,
        nothing_seen,
        safe,
        chosen_zero,
        soft_cap,
        base_two,
        with_logarithms,
        logarithms_of_nothing,
        heads_last,
    )
}


def arguments(dtype: DType, rows: int = 21, keys: int = 70) -> list[Array]:
    return [normal((2, 3, size, WIDTH), dtype, seed) for seed, size in enumerate((rows, keys, keys))]


TYPES = [["B", "H", "S", WIDTH], ["B", "H", "T", WIDTH], ["B", "H", "T", WIDTH]]


@pytest.mark.parametrize("form", FORMS)
def test_algebra_of_attention_is_one_loop(form: str) -> None:
    types: Sequence[Sequence[Any]] = TYPES
    arrays = arguments(f32)
    if form == "heads_last":
        types = [["B", "S", 3, WIDTH], ["B", "T", 3, WIDTH], ["B", "T", 3, WIDTH]]
        arrays = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in arrays]
    module = build(FORMS[form], *((shape, f32) for shape in types))
    made = compile_module(module)
    scaled = form == "scaled_before"
    assert kinds(made) == (["pointwise", "online"] if scaled else ["online"])
    check(module, arrays, made)


@pytest.mark.parametrize("dtype", [bf16, f16, f64], ids=str)
def test_types_of_elements(dtype: DType) -> None:
    def mixed(g: Builder, q: Value, k: Value, v: Value) -> Value:
        x = masked(g, (q @ k.T).cast(f64 if dtype is f64 else f32) * WIDTH**-0.5)
        return softmax(x).cast(dtype) @ v

    made = compiled(mixed, *((shape, dtype) for shape in TYPES))
    assert kinds(made) == ["online"]
    check(build(mixed, *((shape, dtype) for shape in TYPES)), arguments(dtype), made)


def test_everything_in_sixteen_bits() -> None:
    module = build(causal, *((shape, bf16) for shape in TYPES))
    made = compile_module(module)
    assert kinds(made) == ["online"]
    # The algebra rounds after every op, the kernel does not: compared with exact numbers it is the better one.
    arrays = arguments(bf16)
    exact = build(causal, *((shape, f64) for shape in TYPES))
    (expected,) = run_function(exact, "main", [np.asarray(x, np.float64) for x in arrays])
    (found,) = run_function(made.module, "main", arrays)
    assert error(found, bf16, expected) < 4e-3


@pytest.mark.parametrize("way", ["repeated", "grouped"])
def test_groups_of_heads_share_keys(way: str) -> None:
    """Keys and values are read where they are: the region has the small arrays as arguments."""
    heads, groups = 6, 2

    def repeated(g: Builder, q: Value, k: Value, v: Value) -> Value:
        batch, _, keys, width = k.shape
        wide = (batch, groups, heads // groups, keys, width)
        k, v = (
            x.reshape(batch, groups, 1, keys, width).broadcast(wide).reshape(batch, heads, keys, width) for x in (k, v)
        )
        return causal(g, q, k, v)

    def grouped(g: Builder, q: Value, k: Value, v: Value) -> Value:
        batch, _, rows, width = q.shape
        keys = k.shape[2]
        q = q.reshape(batch, groups, heads // groups, rows, width)
        k, v = (x.reshape(batch, groups, 1, keys, width) for x in (k, v))
        found = softmax(masked(g, scores(q, k))) @ v
        return found.reshape(batch, heads, rows, width)

    types = [(["B", heads, "S", WIDTH], f32), (["B", groups, "T", WIDTH], f32), (["B", groups, "T", WIDTH], f32)]
    module = build(repeated if way == "repeated" else grouped, *types)
    made = compile_module(module)
    assert kinds(made) == ["online"]
    launch = next(line for line in made.levels["tile"].splitlines() if "schedule.launch" in line)
    assert f"[B, {groups}, T, {WIDTH}]" in launch.split(" : ")[1] or f"[B, {groups}, 1, T, {WIDTH}]" in launch
    arrays = [normal((2, count, size, WIDTH), f32, count) for count, size in ((heads, 21), (groups, 70), (groups, 70))]
    check(module, arrays, made)


def test_biases_and_masks_are_read_in_blocks() -> None:
    def biased(g: Builder, q: Value, k: Value, v: Value, bias: Value, keep: Value, slopes: Value) -> Value:
        x = scores(q, k) + bias * slopes.reshape(3, 1, 1)
        return softmax(g.where(keep.broadcast(x.shape), x, -np.inf)) @ v

    more = (["S", "T"], f32), (["B", 1, 1, "T"], bool_), ([3], f32)
    types = [["B", 3, *shape[2:]] for shape in TYPES]
    module = build(biased, *((shape, f32) for shape in types), *more)
    made = compile_module(module)
    assert kinds(made) == ["online"]
    keep = np.random.default_rng(0).random((2, 1, 1, 70)) < 0.7
    check(module, [*arguments(f32), normal((21, 70), f32, 4), keep, normal((3,), f32, 5)], made)


def test_one_query() -> None:
    module = build(causal, *((["B", "H", size, WIDTH], f32) for size in (1, "T", "T")))
    made = compile_module(module)
    assert kinds(made) == ["online"]
    check(module, arguments(f32, rows=1), made)


@pytest.mark.parametrize(("size", "keys"), [("T", 1), (64, 64)])
def test_numbers_of_keys(size: Any, keys: int) -> None:
    module = build(plain, *((["B", "H", one, WIDTH], f32) for one in ("S", size, size)))
    made = compile_module(module)
    assert kinds(made) == ["online"]
    # With whole blocks nothing has to be masked.
    assert ("tile.iota" in made.levels["tile"]) == (size == "T")
    check(module, arguments(f32, keys=keys), made)


@pytest.mark.quick
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [("S", "T"), ("S", 0), (0, "T")], ids=str)
def test_no_keys_and_no_queries(form: str, sizes: tuple[Any, Any]) -> None:
    """A sum of nothing is 0, whatever it is divided by in front of the matmul."""
    heads = form == "heads_last"
    rows, keys = sizes
    for count in (0, 3):
        known = {"S": count and 5, "T": count if rows == 0 else 0}
        types = [["B", one, 3, WIDTH] if heads else ["B", 3, one, WIDTH] for one in (rows, keys, keys)]
        made = compile_module(module := build(FORMS[form], *((shape, f32) for shape in types)))
        shapes: list[list[Any]] = [[{"B": 2, **known}.get(str(one), one) for one in shape] for shape in types]
        check(module, [normal(shape, f32, seed) for seed, shape in enumerate(shapes)], made)


def test_what_is_made_of_keys_is_stored_where_there_is_no_query() -> None:
    def made_keys(g: Builder, q: Value, k: Value, v: Value) -> tuple[Value, Value]:
        keys = k.ew("exp")
        return softmax(scores(q, keys)) @ v, keys

    module = build(made_keys, *(([one, WIDTH], f32) for one in (0, 8, 8)))
    check(module, [normal((one, WIDTH), f32, one) for one in (0, 8, 8)], compile_module(module))


CONDITIONS: dict[str, Callable[[Value, Value], Value]] = {
    "of a query": lambda row, total: row.ew("gt", 0.5),
    "whether a query is positive": lambda row, total: row.ew("gt", 0.0),
    "whether a query is 0": lambda row, total: row.ew("eq", 0.0),
    "whether there are weights": lambda row, total: total.ew("gt", 0.0),
    "whether there are none": lambda row, total: total.ew("gt", 0.0).ew("not"),
    "whether a multiple is 0": lambda row, total: (total * row).ew("eq", 0.0),
    "of a sum": lambda row, total: total.ew("gt", 90.0),
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_divisors_of_some_rows_only(condition: str) -> None:
    """Weights that are divided by their sum in some rows and by 1 in others keep their size in the others."""
    queries, keys, values = arguments(f32)
    queries[..., ::3, 0] = 0.0

    def divided(g: Builder, q: Value, k: Value, v: Value, swapped: bool) -> Value:
        weights = scores(q, k).ew("exp")
        total = weights.reduce("sum")
        branches = total, g.full(1, total.shape, total.dtype)
        chosen = CONDITIONS[condition](q.slice(3, 0, 1), total)
        return (weights / g.where(chosen, *(branches[::-1] if swapped else branches))) @ v

    for swapped in (False, True):
        module = build(partial(divided, swapped=swapped), *((shape, f32) for shape in TYPES))
        made = compile_module(module)
        assert "online" in kinds(made)
        check(module, [queries, keys, values], made)


def test_divisors_that_are_rounded() -> None:
    def rounded(g: Builder, q: Value, k: Value, v: Value) -> Value:
        weights = scores(q, k).ew("exp")
        return (weights / weights.reduce("sum").cast(i32).cast(f32)) @ v

    module = build(rounded, *((shape, f32) for shape in TYPES))
    made = compile_module(module)
    assert kinds(made) == ["online"]
    check(module, arguments(f32), made)


def test_weights_with_other_uses_are_not_hidden() -> None:
    def returned(g: Builder, q: Value, k: Value, v: Value) -> tuple[Value, Value]:
        weights = softmax(scores(q, k))
        return weights @ v, weights

    made = scheduled(returned, *((shape, f32) for shape in TYPES))
    assert "online" not in kinds(made)
    assert kinds(made).count("matmul") == 2


def test_weights_that_are_no_exponentials_are_not_taken() -> None:
    def squared(g: Builder, q: Value, k: Value, v: Value) -> Value:
        x = scores(q, k)
        return (x * x) @ v

    def other_axis(g: Builder, q: Value, k: Value, v: Value) -> Value:
        x = scores(q, k)
        weights = (x - x.reduce("max", -2)).ew("exp")
        return (weights / weights.reduce("sum", -2)) @ v

    for form in (squared, other_axis):
        assert "online" not in kinds(scheduled(form, *((shape, f32) for shape in TYPES)))


# Loops by chance: layouts, groups, masks, guards, and what is made of rows.


@st.composite
def loops(draw: st.DrawFn) -> tuple[Callable[..., Any], list[tuple[Sequence[Any], DType]], list[Array]]:
    batch, groups, shared = draw(st.integers(1, 2)), draw(st.sampled_from((1, 2))), draw(st.sampled_from((1, 3)))
    rows, keys = draw(st.sampled_from((1, 5, 70))), draw(st.sampled_from((2, 7, 64, 70)))
    inner, width = draw(st.sampled_from((1, 8, 20))), draw(st.sampled_from((1, 16, 24)))
    heads_last, merged = draw(st.booleans()), draw(st.booleans())
    fn = draw(st.sampled_from((None, "ge", "gt", "lt")))
    guard = draw(st.sampled_from(("plain", "guarded", "late", "free")))
    steps = draw(st.lists(st.sampled_from(("scale", "cap", "bias", "keep")), max_size=3, unique=True))
    logarithms, symbolic = draw(st.booleans()), draw(st.booleans())
    heads = groups * shared

    def make(g: Builder, q: Value, k: Value, v: Value, bias: Value, keep: Value) -> Any:
        if heads_last:
            q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        if shared > 1:
            k, v = (
                x.reshape(x.shape[0], groups, 1, *x.shape[2:])
                .broadcast((x.shape[0], groups, shared, *x.shape[2:]))
                .reshape(x.shape[0], heads, *x.shape[2:])
                for x in (k, v)
            )
        x = q @ k.T
        for step in steps:
            if step == "scale":
                x = x * 0.3
            elif step == "cap":
                x = x.ew("tanh") * 4.0
            elif step == "bias":
                x = x + bias
            else:
                x = g.where(keep.broadcast(x.shape), x, -np.inf)
        x = x if fn is None else masked(g, x, fn=fn)
        top = x.reduce("max")
        zeros, ones = (g.full(number, top.shape, top.dtype) for number in (0, 1))
        shift = g.where(top.ew("eq", -np.inf), zeros, top) if guard == "guarded" else top
        weights = (x if guard == "free" else x - shift).ew("exp")
        total = weights.reduce("sum")
        held = g.where(total.ew("eq", 0.0), ones, total) if guard == "guarded" else total
        found = (weights @ v) / held if guard == "late" else (weights / held) @ v
        if merged:
            found = found.transpose(0, 2, 1, 3).reshape(found.shape[0], found.shape[2], heads * width)
        return (found, total.ew("log") + shift) if logarithms and guard != "free" else found

    shapes = [(batch, heads, rows, inner), (batch, groups, keys, inner), (batch, groups, keys, width)]
    if heads_last:
        shapes = [(a, c, b, d) for a, b, c, d in shapes]
    arrays = [normal(shape, f32, seed) for seed, shape in enumerate(shapes)]
    arrays += [normal((rows, keys), f32, 4), np.random.default_rng(5).random((batch, 1, 1, keys)) < 0.6]
    # Names go by sizes: those that are named must not be the size of anything else.
    others = {inner, width, heads, groups, batch}
    names = {rows: "S", keys: "T"} if symbolic and rows > 1 and rows != keys and not {rows, keys} & others else {}
    types = [tuple(names.get(size, size) for size in array.shape) for array in arrays]
    return make, [*((shape, f32) for shape in types[:4]), (types[4], bool_)], arrays


def _check_loop(case: tuple[Callable[..., Any], list[tuple[Sequence[Any], DType]], list[Array]]) -> None:
    make, types, arrays = case
    check(build(make, *types), arrays)


@settings(max_examples=6, deadline=None)
@given(loops())
def test_loops_by_chance(case: Any) -> None:
    _check_loop(case)


@pytest.mark.acceptance
@settings(max_examples=600, deadline=None)
@given(loops())
def test_many_loops_by_chance(case: Any) -> None:
    _check_loop(case)
