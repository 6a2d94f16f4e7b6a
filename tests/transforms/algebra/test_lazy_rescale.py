"""Maxima that lag behind: results stay, the branch is rare and decides row by row, what depends on them is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rewritten_programs import count, rewritten, run
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera import Schedule, f32, kernel, stdlib
from tessera import tile as language
from tessera.interpreters.core import engine
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.lower.legalize import legalize
from tessera.transforms.algebra.lazy_rescale import LazyRescale, rescale_lazily
from tessera.transforms.checks.host_checks import take_host_checks
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges

lib: Any = import_module("library")
specified: Any = import_module("specified")

Array = np.ndarray[Any, np.dtype[Any]]
Edits = Sequence[tuple[str, str]]

# Rows of scores, three columns an iteration; the rows of v are weighted with their exponentials.
PROGRAM = """
tile.func @k(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>,
    %z: !tile.view<1, f32, global>) outputs 2 shapes [[4, N], [N, 2], [4, 2], [4]] grid [1] {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = tile.dim %x, 1 : !tile.view<2, f32, global>
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %first = arith.constant 0xff800000 : f32
  %infinite = arith.constant 0xff800000 : f32
  %half = arith.constant 0.5 : f32
  %zero = tile.full %f0 : tensor<4xf32>
  %one = tile.full %f1 : tensor<4xf32>
  %start = tile.full %first : tensor<4xf32>
  %nothing = tile.full %infinite : tensor<4xf32>
  %clear = tile.full %f0 : tensor<4x2xf32>
  %scale = tile.full %half : tensor<4xf32>
  %scales = tile.full %half : tensor<4x3xf32>
  %sums, %m, %totals = scf.for %i = %c0 to %n step %c3 iter_args(%acc = %clear, %old = %start, %total = %zero)
      -> (tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>) {
    %s = tile.load %x[%c0, %i] pad 0xfff0000000000000 : !tile.view<2, f32, global> -> tensor<4x3xf32>
    %w = tile.load %v[%i, %c0] : !tile.view<2, f32, global> -> tensor<3x2xf32>
    %greatest = tile.reduce<top> %s, 1 : tensor<4x3xf32> -> tensor<4xf32>
    %t = tile.ew<mul> %greatest, %scale : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %new = tile.ew<max> %old, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %none = tile.ew<eq> %new, %nothing : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
    %safe = tile.ew<select> %none, %zero, %new : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %same = tile.ew<le> %t, %old : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
    %fall = tile.ew<sub> %old, %safe : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %less = tile.ew<exp> %fall : tensor<4xf32> -> tensor<4xf32>
    %alpha = tile.ew<select> %same, %one, %less : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %scaled = tile.ew<mul> %s, %scales : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
    %column = tile.expand %safe, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %base = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x3xf32>
    %power = tile.ew<sub> %scaled, %base : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
    %p = tile.ew<exp> %power : tensor<4x3xf32> -> tensor<4x3xf32>
    %sum = tile.reduce<sum> %p, 1 : tensor<4x3xf32> -> tensor<4xf32>
    %faded = tile.ew<mul> %total, %alpha : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %total_new = tile.ew<add> %faded, %sum : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %alpha_column = tile.expand %alpha, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %alphas = tile.broadcast %alpha_column : tensor<4x1xf32> -> tensor<4x2xf32>
    %acc_faded = tile.ew<mul> %acc, %alphas : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
    %acc_new = tile.dot %p, %w, %acc_faded : tensor<4x3xf32>, tensor<3x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
    scf.yield %acc_new, %new, %total_new : tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %empty = tile.ew<eq> %totals, %zero : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  %safe_totals = tile.ew<select> %empty, %one, %totals : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %totals_column = tile.expand %safe_totals, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %divisors = tile.broadcast %totals_column : tensor<4x1xf32> -> tensor<4x2xf32>
  %shares = tile.ew<div> %sums, %divisors : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  %empty_column = tile.expand %empty, 1 : tensor<4xi1> -> tensor<4x1xi1>
  %empties = tile.broadcast %empty_column : tensor<4x1xi1> -> tensor<4x2xi1>
  %out = tile.ew<select> %empties, %clear, %shares : tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  tile.store %out, %y[%c0, %c0] : tensor<4x2xf32>, !tile.view<2, f32, global>
  tile.return
}
"""
END = "  tile.return"
SUM = "    %sum = "
LOWEST = "%first = arith.constant 0xff800000"
PAIR = ": tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>"
STORED = f": tensor<4xf32>, !tile.view<1, f32, global>\n{END}"
LOGARITHM = f"""  %log = tile.ew<log> %totals : tensor<4xf32> -> tensor<4xf32>
  %lse = tile.ew<add> %m, %log {PAIR}
  tile.store %lse, %z[%c0] {STORED}"""
HALVES = """    %h = tile.ew<cast> %e : tensor<4x3xf32> -> tensor<4x3xf16>
    %p = tile.ew<cast> %h : tensor<4x3xf16> -> tensor<4x3xf32>
"""
SINK = f"""  %away = tile.ew<sub> %one, %m {PAIR}
  %sink = tile.ew<exp> %away : tensor<4xf32> -> tensor<4xf32>
  %all = tile.ew<add> %totals, %sink {PAIR}
  %empty = """
INVERSE = """%inverse = tile.ew<reciprocal> %divisors : tensor<4x2xf32> -> tensor<4x2xf32>
  %shares = tile.ew<mul> %sums, %inverse"""
FLAG = f"""  %above = tile.ew<gt> %m, %one : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  %flag = tile.ew<select> %above, %one, %zero : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  tile.store %flag, %z[%c0] {STORED}"""
BEGUN: Edits = [
    ("%clear = tile.full %f0", "%clear = tile.full %half"),
    ("tile.expand %safe_totals", "tile.expand %totals"),
    ("tile.store %out", "tile.store %shares"),
]
KEEPING = "%kept = scf.for %j = %c0 to %c3 step %c3 iter_args(%k = %start) -> (tensor<4xf32>) {\n"
AROUND: Edits = [
    ("%sums, %m, %totals = scf.for", "scf.for %j = %c0 to %c3 step %c3 {\n  %sums, %m, %totals = scf.for"),
    (END, "  }\n  tile.return"),
]

# Replacements in the text.
ACCEPTED: dict[str, Edits] = {
    "as it is": [],
    "its logarithm, too": [(END, LOGARITHM)],
    "a number to begin with": [(LOWEST, "%first = arith.constant -1.0e30")],
    "the least number to begin with": [(LOWEST, "%first = arith.constant -3.4028234e38")],
    "sums to begin with": [(LOWEST, "%first = arith.constant -7.0"), *BEGUN],
    "a large scale": [("arith.constant 0.5", "arith.constant 3.0")],
    "a maximum that may be NaN": [("reduce<top>", "reduce<max>")],
    "the other order": [("tile.ew<max> %old, %t", "tile.ew<max> %t, %old")],
    "the other question": [
        ("tile.ew<le> %t, %old", "tile.ew<gt> %t, %old"),
        ("%same, %one, %less", "%same, %less, %one"),
    ],
    "whether it is the same": [("tile.ew<le> %t, %old", "tile.ew<eq> %new, %old")],
    "no question": [("tile.ew<select> %same, %one, %less : tensor<4xi1>, ", "tile.ew<mul> %less, %one : ")],
    "powers of two": [("tile.ew<exp>", "tile.ew<exp2>")],
    "nothing that is safe": [
        ("tile.ew<sub> %old, %safe", "tile.ew<sub> %old, %new"),
        ("tile.expand %safe,", "tile.expand %new,"),
    ],
    "weights in f16": [("%p = tile.ew<exp>", "%e = tile.ew<exp>"), (SUM, HALVES + SUM)],
    "weights in bf16": [("%p = tile.ew<exp>", "%e = tile.ew<exp>"), (SUM, HALVES.replace("f16", "bf16") + SUM)],
    "a sink behind the loop": [("  %empty = ", SINK), ("%empty, %one, %totals", "%empty, %one, %all")],
    "a loop around it": AROUND,
    "a divisor that is safe": [("tile.store %out", "tile.store %shares")],
    "totals above 0": [
        ("tile.store %out", "tile.store %shares"),
        ("tile.ew<eq> %totals, %zero", "tile.ew<lt> %zero, %totals"),
        ("%empty, %one, %totals", "%empty, %totals, %one"),
        ("%empties, %clear, %shares", "%empties, %shares, %clear"),
    ],
    "an inverse": [("%shares = tile.ew<div> %sums, %divisors", INVERSE)],
}
REFUSED: dict[str, Edits] = {
    "the maximum is stored": [(END, f"  tile.store %m, %z[%c0] {STORED}")],
    "the totals are stored": [(END, f"  tile.store %totals, %z[%c0] {STORED}")],
    "the sums are stored": [("tile.store %out", "tile.store %sums")],
    "a logarithm to another base": [(END, LOGARITHM.replace("<log>", "<log2>"))],
    "weights are stored in the loop": [
        (SUM, f"    tile.store %p, %x[%c0, %i] : tensor<4x3xf32>, !tile.view<2, f32, global>\n{SUM}")
    ],
    "a loop around it that carries the maximum": [
        ("%sums, %m, %totals = scf.for", KEEPING + "  %sums, %m, %totals = scf.for"),
        (END, "    scf.yield %m : tensor<4xf32>\n  }\n  tile.return"),
    ],
    "a question about the maximum": [(END, FLAG)],
    "totals that do not fade": [("tile.ew<mul> %total, %alpha", "tile.ew<mul> %total, %one")],
    "a number in the totals": [("tile.ew<add> %faded, %sum", "tile.ew<add> %faded, %one")],
    "weights of other numbers": [("tile.ew<mul> %s, %scales", "tile.ew<add> %s, %scales")],
    "weights of a larger scale": [("%scales = tile.full %half", "%scales = tile.full %f1")],
    "sums to begin with, and no maximum": BEGUN,
    "a maximum to begin with that is not known": [
        (
            "%start = tile.full %first : tensor<4xf32>",
            "%start = tile.load %z[%c0] : !tile.view<1, f32, global> -> tensor<4xf32>",
        )
    ],
    "another value where the maximum stays": [("%same, %one, %less", "%same, %scale, %less")],
    "totals that may be 0 in spite of a maximum": [
        ("tile.store %out", "tile.store %shares"),
        (SUM, f"    %q = tile.ew<mul> %p, %s : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>\n{SUM}"),
        ("tile.reduce<sum> %p,", "tile.reduce<sum> %q,"),
    ],
    "a divisor that is rarely 1": [
        ("tile.store %out", "tile.store %shares"),
        ("tile.ew<eq> %totals, %zero", "tile.ew<eq> %totals, %one"),
    ],
    "a minimum": [("tile.ew<max>", "tile.ew<min>")],
}


def variant(edits: Edits) -> str:
    source = PROGRAM
    for old, new in edits:
        assert old in source, old
        source = source.replace(old, new)
    return source


@cache
def programs(name: str) -> tuple[ModuleOp, ModuleOp]:
    """A kernel before and after the pass."""
    module = text.read(variant(ACCEPTED[name]))
    after, function, said = rewritten(module, rescale_lazily)
    assert said == count(function, tile.AnyOp) == 1
    return module, after


def arguments(x: Array) -> list[Array]:
    v = np.random.default_rng(5).standard_normal((x.shape[1], 2)).astype(np.float32)
    return [x, v, np.zeros((4, 2), np.float32), np.zeros(4, np.float32)]


@contextmanager
def answers(patch: pytest.MonkeyPatch, answer: Callable[[Array], bool]) -> Generator[list[bool]]:
    """Another meaning of tile.any; gives what it said, call by call."""
    said: list[bool] = []

    def meaning(frame: object, op: object, operands: Sequence[Array]) -> list[bool]:
        said.append(answer(operands[0]))
        return [said[-1]]

    with patch.context() as changes:
        changes.setitem(engine.RULES, tile.AnyOp, meaning)
        yield said


def is_true(flags: Array) -> bool:
    return bool(flags.any())


def close(found: Array, expected: Array, bound: float) -> None:
    """Equal but for roundings, and NaN and ∞ in the same places."""
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= bound * (1 + np.abs(expected))
    assert (near | (found == expected) | (np.isnan(found) & np.isnan(expected))).all(), (found, expected)


def scores(kind: str, columns: int) -> Array:
    """Rows of scores, each another case."""
    x = np.random.default_rng(columns).standard_normal((4, columns))
    least = float(np.finfo(np.float32).min)
    slopes = np.arange(columns) * np.array([[0.1], [1], [9], [40]])
    match kind:
        case "large":
            x *= 8
        case "huge":
            x *= 1000
        case "rising":
            x += slopes
        case "falling":
            x -= slopes
        case "masked" | "least":
            nothing = -np.inf if kind == "masked" else least
            x[0] = x[1, : columns // 2] = x[2, columns // 2 :] = x[3, ::2] = nothing
        case "infinite":
            x[0, 7] = x[1, 0] = x[2, -1] = np.inf
            x[3, 3:] = -np.inf
        case "NaN":
            x[0, 7] = x[1, 0] = x[2, -1] = np.nan
            x[3, :4] = -np.inf
        case _:
            pass
    return x.astype(np.float32)


KINDS = ("usual", "large", "huge", "rising", "falling", "masked", "infinite", "NaN", "least")


def bound_of(x: Array) -> float:
    """Exponentials are as exact as the numbers they are taken of."""
    counted = x[np.isfinite(x) & (np.abs(x) < 1e30)]
    return 2e-6 * (1 + float(np.abs(counted).max(initial=0)))


ROUNDING = {"weights in f16": 2e-3, "weights in bf16": 2e-2}


@pytest.mark.quick
@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("kind", KINDS)
def test_results_stay(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, after = programs(name)
    for x in (scores(kind, 25), scores(kind, 25)[:, :1], np.zeros((4, 0), np.float32)):
        found, expected = run(after, arguments(x)), run(module, arguments(x))
        for one, other in zip(found, expected, strict=True):
            close(one, other, ROUNDING.get(name, bound_of(x)))
        # Rows decide for themselves: it makes no difference of which rows one asks whether any rises.
        with answers(monkeypatch, lambda _: True):
            asked = run(after, arguments(x))
        assert [one.tobytes() for one in asked] == [other.tobytes() for other in found]


NUMBERS = st.one_of(
    st.floats(-30, 30, width=32),
    st.sampled_from([-np.inf, np.inf, np.nan, 0.0, -0.0, 11.0, 11.1, 1e4, -1e4, 3e38, -3e38]),
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(*[NUMBERS] * 4), min_size=1, max_size=14), st.sampled_from(["as it is", "its logarithm, too"])
)
@example([(-np.inf,) * 4, (3e38, -3e38, np.nan, 1.0), (0.0,) * 4], "as it is")
def test_any_scores(columns: list[tuple[float, ...]], name: str) -> None:
    module, after = programs(name)
    x = np.array(columns, np.float32).T.copy()
    for one, other in zip(run(after, arguments(x)), run(module, arguments(x)), strict=True):
        close(one, other, bound_of(x))


def test_multiples_that_overflow_are_nothing() -> None:
    """A number that becomes −∞ by its scale has not been seen; one that follows it is the first."""
    module, after = programs("a large scale")
    x = np.full((4, 12), -2e38, np.float32)
    x[1:, 3:] = np.array([[-1e38], [-50.0], [3.0]], np.float32)
    found, expected = run(after, arguments(x)), run(module, arguments(x))
    for one, other in zip(found, expected, strict=True):
        close(one, other, 1e-6)
    assert np.isfinite(found[2]).all()


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_the_maximum_is_refused(name: str) -> None:
    module = text.read(variant(REFUSED[name]))
    after, _, said = rewritten(module, rescale_lazily)
    assert said == 0
    assert text.write(after) == text.write(module)


def test_types_need_room() -> None:
    source = variant(ACCEPTED["weights in f16"])
    assert rewritten(source, lambda function: rescale_lazily(function, 15.9))[2] == 1
    assert rewritten(source, lambda function: rescale_lazily(function, 16.1))[2] == 0
    assert rewritten(PROGRAM, lambda function: rescale_lazily(function, 16.1))[2] == 1
    # Twice a weight is above 1.
    twice = "    %e = tile.ew<add> %u, %u : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>\n"
    source = variant([("%p = tile.ew<exp>", "%u = tile.ew<exp>"), (SUM, twice + HALVES + SUM)])
    assert rewritten(source, rescale_lazily)[2] == 0


def test_rows_are_those_of_the_maximum() -> None:
    """Maxima of columns say nothing about rows, even where there are as many of them."""
    square = PROGRAM.replace("4x3", "4x4").replace("3x2", "4x2").replace("constant 3 :", "constant 4 :")
    assert rewritten(square, rescale_lazily)[2] == 1
    assert rewritten(square.replace("reduce<top> %s, 1", "reduce<top> %s, 0"), rescale_lazily)[2] == 0
    line = "tile.expand %safe, 0 : tensor<4xf32> -> tensor<1x4xf32>"
    transposed = square.replace("tile.expand %safe, 1 : tensor<4xf32> -> tensor<4x1xf32>", line)
    transposed = transposed.replace(
        "tile.broadcast %column : tensor<4x1xf32>", "tile.broadcast %column : tensor<1x4xf32>"
    )
    assert rewritten(transposed, rescale_lazily)[2] == 0


def test_little_is_left_where_nothing_rises() -> None:
    """A reduction and a comparison; the maximum itself is not carried, if nothing else needs it."""
    _, function, _ = rewritten(PROGRAM, rescale_lazily)
    (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
    rows = [op for op in loop.body.block.ops if isinstance(op, tile.EwOp) and op.result.type == loop.results[1].type]
    assert [op.fn.data for op in rows] == ["add"]
    reduced = next(op for op in loop.body.block.ops if isinstance(op, tile.ReduceOp))
    outside = [use.operation for use in reduced.result.uses if use.operation.parent_op() is loop]
    assert [op.fn.data for op in outside if isinstance(op, tile.EwOp)] == ["gt"]
    # Sums, totals, the limit and what exponentials begin with.
    assert len(loop.results) == 4
    _, function, _ = rewritten(variant(ACCEPTED["its logarithm, too"]), rescale_lazily)
    (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
    assert len(loop.results) == 5


@pytest.mark.parametrize(("kind", "most"), [("usual", 1), ("falling", 1), ("large", 12), ("rising", 40)])
def test_the_branch_is_rare(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    after, _, _ = rewritten(PROGRAM, rescale_lazily)
    with answers(monkeypatch, is_true) as said:
        run(after, arguments(scores(kind, 120)))
    assert len(said) == 40
    assert 1 <= sum(said) <= most
    assert kind != "rising" or sum(said) > 30


def test_maxima_that_rise_in_every_iteration_do_so_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where weights have the exponents of f32. Those in f16 have not, and those in f32 keep their digits."""
    taken: dict[str, int] = {}
    rows = scores("usual", 120) + np.arange(120) * np.array([[2.0], [1.0], [0.5], [0.0]])
    for name in ("as it is", "weights in f16", "weights in bf16"):
        _, after = programs(name)
        with answers(monkeypatch, is_true) as said:
            run(after, arguments(rows.astype(np.float32)))
        taken[name] = sum(said)
    assert taken["as it is"] == taken["weights in f16"] > 15
    assert taken["weights in bf16"] < 6


# Kernels of the tile language


def modules(made: Any) -> tuple[ModuleOp, tile.FuncOp]:
    """The tile function of a kernel without the checks that callers make."""
    module = made.module.clone()
    function = next(op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    take_host_checks(function)
    return module, function


def run_with(module: ModuleOp, function: tile.FuncOp, given: Sequence[Any], result: Array) -> Array:
    found = np.zeros_like(result)
    run_kernel(module, function.sym_name.data, [*given, found])
    return found


@kernel
def column_maxima(x: Any):
    """The logarithm of sums of exponentials, with maxima that keep their axis."""
    here = language.context()
    top, total = language.full((here.m, 1), -language.INF), language.zeros((here.m, 1))
    for col in language.range(0, x.shape[1], here.n):
        block = language.load(x, at=(here.row_start, col), shape=(here.m, here.n), pad=-language.INF) * 0.25
        higher = language.maximum(top, language.max(block, keepdims=True))
        safe = language.where(higher == -language.INF, 0.0, higher)
        weights = language.exp(block - safe)
        total = total * language.exp(top - safe) + language.sum(weights, keepdims=True)
        top = higher
    return language.sum(top + language.log(total), 1)


def add_weighted(scores: Any, values: Any, top: Any, total: Any, acc: Any) -> tuple[Any, Any, Any]:
    higher = language.maximum(top, language.max(scores))
    weights, fade = language.exp(scores - higher[:, None]), language.exp(top - higher)
    return higher, total * fade + language.sum(weights), acc * fade + language.sum(weights * values)


@kernel
def two_maxima(x: Any):
    """The difference of two means, each weighted in its own way."""
    here = language.context()
    top, low = (language.full((here.m,), -language.INF) for _ in range(2))
    total, other_total, acc, other_acc = (language.zeros((here.m,)) for _ in range(4))
    for col in language.range(0, x.shape[1], here.n):
        block = language.load(x, at=(here.row_start, col), shape=(here.m, here.n), pad=-1e4).to(f32)
        top, total, acc = add_weighted(block, block, top, total, acc)
        low, other_total, other_acc = add_weighted(block * 0.5, block, low, other_total, other_acc)
    return acc / total - other_acc / other_total


def _heads(dtype: Any) -> list[Array]:
    generator = np.random.default_rng(3)
    q, k, v = (generator.standard_normal((2, rows, 8)) for rows in (40, 53, 53))
    return [(2 * q).astype(dtype), (2 * k).astype(dtype), v.astype(dtype)]


_SLOPES = np.array([0.3, 0.01], np.float32)
_X = np.random.default_rng(4).standard_normal((21, 70)).astype(np.float32) * 20
ATTENTIONS: dict[str, Callable[[Any], tuple[Any, list[Any], dict[str, Any]]]] = {
    "full": lambda dtype: (stdlib.attention, _heads(dtype), {}),
    "causal": lambda dtype: (stdlib.attention, _heads(dtype), {"mask": stdlib.causal}),
    "window": lambda dtype: (stdlib.window_attention, [*_heads(dtype), 7], {}),
    "prefix": lambda dtype: (stdlib.prefix_attention, [*_heads(dtype), 9], {}),
    "alibi": lambda dtype: (stdlib.alibi_attention, [*_heads(dtype), _SLOPES], {}),
    "soft cap": lambda dtype: (stdlib.attention, _heads(dtype), {"score": stdlib.soft_cap}),
    "own score": lambda dtype: (stdlib.attention, _heads(dtype), {"score": stdlib.own_score, "mask": stdlib.causal}),
    "library": lambda dtype: (lib.attention, _heads(dtype), {"mask": lib.causal}),
    "library, window": lambda dtype: (lib.window_attention, [*_heads(dtype), 5], {}),
    "library, soft cap": lambda dtype: (lib.softcap_attention, _heads(dtype), {"cap": 5.0}),
    "library, alibi": lambda dtype: (lib.alibi_attention, [*_heads(dtype), _SLOPES], {}),
}


@pytest.mark.quick(name=["full", "causal", "alibi", "soft cap", "library, window"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, np.float32) for name in ATTENTIONS),
        *((name, dtype) for name in ("full", "causal", "alibi") for dtype in (np.float16, ml_dtypes.bfloat16)),
    ],
)
def test_attention_of_all_kinds(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it comes, and as a GPU prepares it; between the passes that look at masks."""
    made, given, static = ATTENTIONS[name](dtype)
    before = made.with_schedule(Schedule(block=(16, 16))).lower(*given, **static)
    module, function = modules(before)
    expected = run_with(module, function, given, given[0])
    for is_prepared in (False, True):
        module, function = modules(before)
        if is_prepared:
            legalize(function, contract=True)
        clip_ranges(function)
        assert rescale_lazily(function) == 1
        split_ranges(function)
        text.verify(module)
        with answers(monkeypatch, is_true) as said:
            found = run_with(module, function, given, given[0])
        assert said
        assert name != "full" or sum(said) < 0.6 * len(said)
        close(found, expected, {4: 3e-6, 2: 2e-2 if dtype is ml_dtypes.bfloat16 else 2e-3}[found.itemsize])


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_the_attention_of_the_specification(dropout: float) -> None:
    """With dropout, weights are made in two steps, and the maximum of an iteration is needed for them."""
    given = _heads(ml_dtypes.bfloat16)
    cache = specified.KVCache(given[1], given[2])
    attention = specified.flash_attention.with_schedule(Schedule(block=(16, 16)))
    module, function = modules(attention.lower(given[0], cache, dropout=dropout, causal=True))
    expected = run_with(module, function, given, given[0])
    assert rescale_lazily(function) == 1
    text.verify(module)
    close(run_with(module, function, given, given[0]), expected, 2e-2)


@pytest.mark.parametrize(("made", "maxima"), [(lib.logsumexp, 1), (column_maxima, 1), (two_maxima, 2)])
def test_other_kernels(made: Any, maxima: int) -> None:
    module, function = modules(made.with_schedule(Schedule(block=(16, 16))).lower(_X))
    expected = run_with(module, function, [_X], _X[:, 0])
    assert rescale_lazily(function) == maxima
    text.verify(module)
    close(run_with(module, function, [_X], _X[:, 0]), expected, 1e-5)


def test_sigmoids_have_no_maximum() -> None:
    for made in (stdlib.sigmoid_attention, lib.sigmoid_attention):
        module, function = modules(made.lower(*_heads(np.float32), 0.1))
        assert rescale_lazily(function) == 0
        assert count(function, tile.AnyOp) == 0
        assert text.write(module)


def test_the_pass() -> None:
    module = text.read(PROGRAM)
    LazyRescale(slack=4.0).apply(text.new_context(), module)
    written = text.write(module)
    assert "tile.any %rises {tile.by_rows}" in written
    # 4 ln 2, in units of scores that are halved.
    assert "arith.constant 5.54517746" in written
    assert text.write(text.read(written)) == written
