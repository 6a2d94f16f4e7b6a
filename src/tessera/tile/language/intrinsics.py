"""`tessera.tile`: what a kernel may do with tiles. Each function goes to the tracer at work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tessera.dtypes.philox import Stream
from tessera.dtypes.types import DType, bool_, f32, f64, i64, saturate, u64
from tessera.errors import CompileError, DtypeError, ShapeError
from tessera.ir.common import elementwise
from tessera.ir.tile.hints import WORDS, Hints
from tessera.shapes.expr import Dim
from tessera.tile.language.context import Context, current_context
from tessera.tile.language.control import BlockIndex, Range
from tessera.tile.language.current_tracer import tracer
from tessera.tile.language.misuse import check_box, check_combined, check_elements, check_pad, check_tile, check_view
from tessera.tile.language.packing import pack, unpack
from tessera.tile.language.pages import load_pages, page
from tessera.tile.language.places import box_places, given_indices, places_along, places_of_each
from tessera.tile.language.rearrange import (
    argmax,
    argmin,
    argsort,
    concat,
    cumsum,
    flip,
    reshape,
    scan,
    slice,  # noqa: A004  (as others call it)
    sort,
    take,
    topk,
)
from tessera.tile.language.values import AxisBounds, Pages, Places, Scalar, Tile, View, as_tuple, shown

__all__ = [
    "INF",
    "abs",
    "argmax",
    "argmin",
    "argsort",
    "assert_",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "breakpoint",
    "broadcast",
    "cast",
    "cdiv",
    "ceil",
    "col_index",
    "concat",
    "context",
    "cos",
    "cumsum",
    "debug_print",
    "dot",
    "dropout",
    "dropout_in_kernel",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "flip",
    "floor",
    "from_sort_key",
    "full",
    "gather",
    "iota",
    "isfinite",
    "isinf",
    "isnan",
    "item",
    "load",
    "log",
    "log1p",
    "log2",
    "mask_causal",
    "max",
    "maximum",
    "min",
    "minimum",
    "mma",
    "ones",
    "pack",
    "page",
    "prod",
    "program_id",
    "range",
    "range_n",
    "reciprocal",
    "reshape",
    "round",
    "row_index",
    "rsqrt",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "sigmoid",
    "sin",
    "slice",
    "softmax_accumulate",
    "softmax_online",
    "sort",
    "sort_key",
    "sqrt",
    "store",
    "sum",
    "take",
    "tan",
    "tanh",
    "topk",
    "transpose",
    "trunc",
    "unpack",
    "where",
    "zeros",
]

INF = math.inf


def context() -> Context:
    """This program instance's block sizes and rows: `T.m`, `T.n`, `T.k`, `T.d`, `T.vector`."""
    return current_context(tracer())


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, Scalar | Tile):
            value.__index__()  # raises, and says what is static
        raise CompileError(f"{what} must be an integer known now, got {value!r}", hint="use T.m, T.n, T.d or a number")
    if value < 1:
        raise ShapeError(f"{what} must be positive, got {value}", hint="check the block sizes")
    return value


def _hint(name: str, hint: int | None) -> int | None:
    """A hint that is a number from 1 on."""
    return None if hint is None else _whole(hint, name)


def _vector(hint: int | None) -> int | None:
    """The hint of a load or store, or that of the schedule."""
    chosen = tracer().schedule.vector if hint is None else _whole(hint, "vector")
    if chosen is not None and chosen & (chosen - 1):
        raise ShapeError(f"vector is a power of two, got {chosen}", hint="give 1, 2, 4, 8 or 16")
    return chosen


def _memory(word: str | None) -> str | None:
    if word is not None and word not in WORDS["memory"]:
        known = " or ".join(f'"{one}"' for one in WORDS["memory"])
        raise CompileError(f"memory of tile.load is {known}, got {word!r}", hint="leave it out: the compiler chooses")
    return word


def _shape(shape: object) -> tuple[int, ...]:
    return tuple(_whole(size, "a tile's size") for size in as_tuple(shape))


def load(
    view: View,
    block: BlockIndex | Scalar | int | None = None,
    *,
    rows: int | None = None,
    cols: int | None = None,
    at: object = None,
    shape: object = None,
    pad: float = 0,
    memory: str | None = None,
    vector: int | None = None,
    prefetch: int | None = None,
) -> Tile:
    """A tile of an array: this program instance's rows, the rows of `block`, or the part of `shape` at `at`.

    Positions outside the array give `pad`. The others are hints for GPUs: `memory` is "smem" or "registers", `vector`
    how many neighbours a thread has, `prefetch` how many iterations a copy runs ahead of its loop.
    """
    check_view(view, "load")
    check_pad(pad)
    hints = Hints(_memory(memory), _vector(vector), _hint("prefetch", prefetch))
    if at is not None or shape is not None:
        if at is None or shape is None or block is not None:
            raise ShapeError(
                "tile.load takes `at` and `shape` together, without a block", hint="give both: at=(i, 0), shape=(4, 8)"
            )
        if any(isinstance(one, Pages) for one in as_tuple(at)):
            return load_pages(view, as_tuple(at), _shape(shape), pad, hints)
        return tracer().load(view, as_tuple(at), _shape(shape), pad, hints)
    work = current_context(tracer())
    matrix, start = work.rows_at(view, block)
    height = _whole(work.rows_of(block) if rows is None else rows, "rows")
    if matrix.rank == 1:
        return tracer().load(matrix, [start], (height,), pad, hints)
    width = _whole(cols, "cols") if cols is not None else work.width_of(view, "tile.load")
    return tracer().load(matrix, [start, 0], (height, width), pad, hints)


def item(view: View, *at: Any) -> Scalar:
    """One element of an array as a scalar: a place, the end of a loop, a condition or a factor that memory decides.

    An integer is a position, like a program's id; a float narrower than f32 is an f32. Outside of the array it is 0.
    """
    check_view(view, "item")
    return tracer().item(view, at)


def store(
    view: View,
    value: Tile,
    block: BlockIndex | Scalar | int | None = None,
    *,
    at: object = None,
    mask: Tile | None = None,
    vector: int | None = None,
) -> None:
    """Writes a tile to this program instance's rows, to those of `block`, or at `at`; parts outside are left out.

    With a mask, elements where it is false are left as they are. `vector` is a hint: how many neighbours a thread has.
    """
    check_view(view, "store")
    check_tile(value, "store")
    hints = Hints(vector=_vector(vector))
    if at is None:
        view, start = current_context(tracer()).rows_at(view, block)
        at = [start] if view.rank == 1 else [start, 0]
    elif block is not None:
        raise ShapeError(
            f"tile.store takes a block or `at`, and got {shown(block)} as well",
            hint="give one of the two; a mask is given by name: mask=",
        )
    check_box(f"storing {value}", view, value, as_tuple(at))
    if mask is None:
        tracer().store(view, value, as_tuple(at), hints)
        return
    if vector is not None:
        raise CompileError("a store under a mask has no vector", hint="leave it out: elements are stored one by one")
    tracer().write(view, box_places(tracer(), view, as_tuple(at), value.shape, mask), value)


def gather(
    view: View,
    indices: Any,
    axis: int = 0,
    *,
    at: object = None,
    shape: object = None,
    mask: Tile | None = None,
    pad: float = 0,
) -> Tile:
    """The elements of an array at a tile of indices along one axis, or at a tile of indices for each axis.

    `tile.gather(x, rows, shape=(64,))` gives row `rows[j]`, its first 64 columns, as row j. Of the other axes `shape`
    has the extents, and `at` says where they begin. `tile.gather(x, (i, j))` gives the element at i, j for each pair.
    What the mask leaves out is `pad`, as is what lies outside of the array.
    """
    check_view(view, "gather")
    check_pad(pad)
    return tracer().read(view, _places(view, indices, axis, at, shape, mask), pad)


def _places(view: View, indices: Any, axis: int, at: object, shape: object, mask: Tile | None) -> Places:
    if (each := given_indices(indices)) is not None:
        if at is not None or shape is not None:
            raise ShapeError(
                "a tile of indices for each axis says all of them: at and shape say nothing more", hint="leave them out"
            )
        return places_of_each(tracer(), view, each, mask)
    extents = _shape(shape) if shape is not None else ()
    return places_along(tracer(), view, indices, axis, at, extents, mask)


def _scatter(name: str, kind: str | None, what: str) -> Callable[..., None]:
    def scatter(
        view: View, indices: Any, value: Tile, axis: int = 0, *, at: object = None, mask: Tile | None = None
    ) -> None:
        check_view(view, name)
        check_tile(value, name)
        check_elements(view, value)
        if kind is not None:
            check_combined(name, value)
        shape = None
        if given_indices(indices) is None and isinstance(indices, Tile):
            if value.ndim != indices.ndim + view.rank - 1:
                raise ShapeError(
                    f"tile.{name} of {value} at {list(indices.shape)} indices along one axis of {view}",
                    hint="the tile has an element for each index and for each place along the other axes",
                )
            axis_ = axis % view.rank if isinstance(axis, int) else 0
            shape = (*value.shape[:axis_], *value.shape[axis_ + indices.ndim :])
        places = _places(view, indices, axis, at, shape, mask)
        if places.indices[0].shape != value.shape:
            raise ShapeError(
                f"tile.{name}: the tile is {list(value.shape)}, the places are {list(places.indices[0].shape)}",
                hint="give an element for each place",
            )
        if kind is None:
            tracer().write(view, places, value)
        else:
            tracer().atomic_at(kind, view, places, value)

    scatter.__name__ = scatter.__qualname__ = name
    scatter.__doc__ = (
        f"{what} at a tile of indices along one axis, or at a tile of indices for each axis.\n\n"
        "The places are those of `tile.gather`. What lies outside of the array, or is not in the mask, is left out."
    )
    return scatter


scatter = _scatter("scatter", None, "Writes a tile, each element once,")
scatter_add = _scatter("scatter_add", "sum", "Adds a tile into memory")
scatter_max = _scatter("scatter_max", "max", "Keeps the larger of a tile and memory")
scatter_min = _scatter("scatter_min", "min", "Keeps the smaller of a tile and memory")


def _atomic(name: str, kind: str, what: str) -> Callable[..., None]:
    def combine(view: View, value: Tile, *, at: object) -> None:
        check_view(view, name)
        check_tile(value, name)
        tracer().atomic(kind, view, value, as_tuple(at))

    combine.__name__ = combine.__qualname__ = name
    combine.__doc__ = f"{what}, each element in one indivisible step."
    return combine


atomic_add = _atomic("atomic_add", "sum", "Adds a tile into memory")
atomic_max = _atomic("atomic_max", "max", "Keeps the larger of a tile and memory")
atomic_min = _atomic("atomic_min", "min", "Keeps the smaller of a tile and memory")


def zeros(shape: Any, dtype: DType = f32) -> Tile:
    """A tile of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: DType = f32) -> Tile:
    """A tile of ones."""
    return full(shape, 1, dtype)


def full(shape: Any, value: Any, dtype: DType = f32) -> Tile:
    """A tile with one value everywhere."""
    if isinstance(value, float) and not dtype.is_float:
        raise DtypeError(f"tile.full of {value} as {dtype}", hint="use an integer, or a float type")
    made = tracer().convert(value, dtype) if isinstance(value, Scalar) else value
    return tracer().full(_shape(shape), made, dtype.base)


def program_id(axis: int) -> Scalar:
    """The coordinate of this program instance along an axis of the grid."""
    if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < 3:
        raise CompileError(f"program_id takes axis 0, 1 or 2, got {axis!r}", hint="the grid has at most three axes")
    return tracer().program_id(axis)


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up, of numbers, sizes and positions: how many blocks of b hold a."""
    for one in (a, b):
        if not isinstance(one, Dim | Scalar) and (isinstance(one, bool) or not isinstance(one, int)):
            raise DtypeError(
                f"cdiv divides whole numbers, sizes and positions, got {one!r}",
                hint="write cdiv(x.shape[0], 64); elements of tiles are divided by (a + (b - 1)) // b",
            )
    if isinstance(b, int) and b < 1:
        raise CompileError(f"cdiv by {b}", hint="divide by a positive number")
    return (a + (b - 1)) // b


def range(*bounds: Any, prefetch: int | None = None, unordered: bool = False) -> Range:  # noqa: A001  (the spec's name)
    """A loop of the kernel: `range(stop)`, `range(start, stop)` or `range(start, stop, step)`.

    `prefetch` is a hint for its loads, as that of tile.load is for one.
    """
    if not 1 <= len(bounds) <= 3:
        raise CompileError(f"tile.range takes one to three bounds, got {len(bounds)}", hint="give start, stop and step")
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if isinstance(step, int) and step < 1:
        raise CompileError(f"tile.range goes upward, got step {step}", hint="use a positive step")
    return Range(start, stop, step, unordered=unordered, prefetch=_hint("prefetch", prefetch))


def range_n(shape: Any, n: int, *, prefetch: int | None = None) -> Range:
    """A loop over blocks of `n` rows of an array with this shape; the variable goes into tile.load."""
    rows = as_tuple(shape)[-2:][0]
    return Range(0, rows, _whole(n, "the block of tile.range_n"), block=n, prefetch=_hint("prefetch", prefetch))


def row_index(block: BlockIndex | None = None) -> Tile:
    """The positions of this program instance's rows, as a column."""
    work = current_context(tracer())
    rows, start = (work.m, work.row_start) if block is None else (block.rows, block.start)
    return tracer().iota((rows, 1), 0, start, i64)


def col_index(block: BlockIndex | int | None = None) -> Tile:
    """The positions of a block's rows (or of the first columns), as a row."""
    if isinstance(block, BlockIndex):
        return tracer().iota((1, block.rows), 1, block.start, i64)
    width = current_context(tracer()).d if block is None else _whole(block, "col_index")
    return tracer().iota((1, width), 1, 0, i64)


def iota(shape: Any, axis: int = 0, base: Any = 0, dtype: DType = i64) -> Tile:
    """`base` plus the position along an axis."""
    return tracer().iota(_shape(shape), axis, base, dtype)


def transpose(x: Tile, *permutation: int) -> Tile:
    """The axes in another order; the last two exchanged unless an order is given."""
    check_tile(x, "transpose")
    if not permutation:
        if x.ndim < 2:
            raise ShapeError(f"tile.transpose of {x}", hint="insert an axis first: x[:, None]")
        permutation = (*tuple(np.arange(x.ndim - 2).tolist()), x.ndim - 1, x.ndim - 2)
    return tracer().transpose(x, permutation)


def broadcast(x: Tile, shape: Any) -> Tile:
    """Axes of size 1 repeated, and new leading axes."""
    check_tile(x, "broadcast")
    target = _shape(shape)
    from tessera.shapes import rules

    if tuple(rules.broadcast(x.shape, target, where="broadcast")) != target:
        raise ShapeError(f"{x} does not broadcast to {list(target)}", hint="only axes of size 1 grow")
    return tracer().broadcast(x, target)


def dot(a: Tile, b: Tile, c: Tile | None = None, *, out: DType | None = None) -> Tile:
    """a·b, or c + a·b, summed in the accumulator type of the operands.

    The last two axes multiply. Axes in front number independent products: [B, M, K] and [B, K, N] give [B, M, N].
    Where one tile has none of them, or size 1, it goes with all of the other's.
    """
    return tracer().dot(a, b, c, out)


mma = dot


def cast(x: Any, dtype: DType) -> Any:
    """Another element type; the type's policy says how to round."""
    return tracer().cast(x, dtype)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    return tracer().where(condition, a, b)


_CHOICES = frozenset({"max", "min"})


_FOLDS = {"sum": "sum", "prod": "product", "max": "largest element", "min": "smallest element"}


def _reduction(kind: str) -> Callable[..., Tile]:
    def reduce(x: Tile, axis: int = -1, *, keepdims: bool = False) -> Tile:
        check_tile(x, kind)
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise ShapeError(
                f"tile.{kind} folds one axis, and {axis!r} is none",
                hint=f"give its number; of two tiles, tile.{kind}imum is taken"
                if kind in _CHOICES
                else "give a number",
            )
        reduced = tracer().reduce(kind, x, axis)
        return tracer().expand(reduced, axis % x.ndim) if keepdims else reduced

    reduce.__name__ = reduce.__qualname__ = kind
    reduce.__doc__ = (
        f"The {_FOLDS[kind]} along one axis, the last unless another is named; `keepdims` keeps it with size 1."
    )
    return reduce


sum, prod, max, min = (_reduction(kind) for kind in ("sum", "prod", "max", "min"))  # noqa: A001  (the spec's names)


_MEANINGS = {
    "exp": "e to the power of x",
    "exp2": "2 to the power of x",
    "expm1": "e to the power of x, less 1, without cancellation near 0",
    "log": "The natural logarithm",
    "log2": "The logarithm to base 2",
    "log1p": "The natural logarithm of 1 + x, without cancellation near 0",
    "sqrt": "The square root",
    "rsqrt": "1 / √x",
    "reciprocal": "1 / x",
    "sin": "The sine, of radians",
    "cos": "The cosine, of radians",
    "tan": "The tangent, of radians",
    "tanh": "The hyperbolic tangent",
    "erf": "The error function",
    "sigmoid": "1 / (1 + e^-x), without overflow",
    "floor": "x rounded down to a whole number",
    "ceil": "x rounded up to a whole number",
    "round": "x rounded to the nearest whole number, of two the even one",
    "trunc": "x rounded towards 0",
    "abs": "The absolute value",
    "isnan": "Whether x is NaN",
    "isinf": "Whether x is infinite",
    "isfinite": "Whether x is neither infinite nor NaN",
    "from_sort_key": "The float that has a key of sort_key; −1 is -0",
    "sort_key": "A whole number that sorts as the float does, NaN last and zeros alike",
}


def _unary(name: str) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        if isinstance(x, int | float):
            return float(elementwise.apply(name, [np.asarray(float(x))], [f64]))
        return tracer().apply(name, x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{_MEANINGS[name]}: of each element of a tile, of a scalar, or of a Python number."
    return apply


exp, exp2, expm1, log, log2, log1p = (_unary(n) for n in ("exp", "exp2", "expm1", "log", "log2", "log1p"))
sqrt, rsqrt, reciprocal = (_unary(n) for n in ("sqrt", "rsqrt", "reciprocal"))
sin, cos, tanh, erf, sigmoid = (_unary(n) for n in ("sin", "cos", "tanh", "erf", "sigmoid"))
floor, ceil, round, trunc, abs = (_unary(n) for n in ("floor", "ceil", "round", "trunc", "abs"))  # noqa: A001  (the table's names)
tan = _unary("tan")
isnan, isinf, isfinite = (_unary(n) for n in ("isnan", "isinf", "isfinite"))
sort_key, from_sort_key = (_unary(n) for n in ("sort_key", "from_sort_key"))


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, elementwise."""
    return tracer().combine("max", a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, elementwise."""
    return tracer().combine("min", a, b)


def mask_causal(scores: Tile, rows: Tile, cols: Tile) -> Tile:
    """Scores of later columns become −∞. As a statement, `tile.mask_causal(S, …)` rebinds S."""
    check_tile(scores, "mask_causal")
    return where(rows >= cols, scores, -INF)


def softmax_online(scores: Tile) -> tuple[Tile, Tile, Tile]:
    """exp(S − m), the row maxima m, and the row sums, of one block; columns beyond an array count as −∞.

    Those are the columns beyond any of the arrays that the scores were made of: keys, a bias, a mask.
    """
    check_tile(scores, "softmax_online")
    if scores.ndim != 2 or not scores.dtype.is_float:
        raise ShapeError(f"softmax_online takes scores of two axes, got {scores}", hint="rows by columns, float")
    inside = tracer().masked(scores, 1, -INF)
    top = tracer().reduce("top", inside, 1)
    # Where everything is −∞ the exponent is taken from 0, so that the row is 0 and not NaN.
    safe = where(top == -INF, 0.0, top)
    weights = exp(inside - safe[:, None])
    total = sum(weights, 1)
    found = Tile(weights.ssa, weights.shape, weights.dtype, axis_bounds=inside.axis_bounds)
    found.weighed = inside, top, total
    return found, top, total


def softmax_accumulate(
    acc: Tile,
    m: Tile,
    l: Tile,  # noqa: E741  (the spec's name)
    p: Tile,
    v: Tile,
    m_c: Tile,
    l_c: Tile,
) -> tuple[Tile, Tile, Tile]:
    """Adds one block's weighted values to the running sum, maximum and denominator."""
    top = maximum(m, m_c)
    # While both are −∞ their difference would be NaN, chosen or not, and checks would rightly say so.
    safe = where(top == -INF, 0.0, top)
    # Where the maximum stays, nothing is rescaled, and a block of −∞ adds nothing.
    old = where(m_c <= m, 1.0, exp(m - safe))
    if p.weighed is not None and p.weighed[1] is m_c and p.weighed[2] is l_c:
        # Weights as they came can be had from the scores and the new maximum at once.
        p = exp(p.weighed[0] - safe[:, None])
        total = dot(_weights(p, v), v, acc * old[:, None])
        sums = l * old + sum(p, 1)
        return total, top, Tile(sums.ssa, sums.shape, sums.dtype, denominator=True, axis_bounds=sums.axis_bounds)
    new = where(m_c == -INF, 0.0, exp(m_c - safe))
    total = dot(_weights(p * new[:, None], v), v, acc * old[:, None])
    sums = l * old + l_c * new
    return total, top, Tile(sums.ssa, sums.shape, sums.dtype, denominator=True, axis_bounds=sums.axis_bounds)


def _weights(p: Tile, v: Tile) -> Tile:
    """Weights as factors of values. None is above 1, so that nothing overflows; with 8 bits it takes long to ask."""
    narrow = v.dtype.is_float and v.dtype.bits <= 8 and not v.dtype.policy.saturate
    return cast(p, v.dtype @ saturate if narrow else v.dtype)


def dropout(x: Tile, *, p: float, key: int = 0) -> Tile:
    """Zero with probability `p`, else divided by 1 − p; decided by the key and the element's position alone."""
    check_tile(x, "dropout")
    if not 0.0 <= p < 1.0:
        raise CompileError(f"dropout needs a probability from 0 to below 1, got {p}", hint="use 0.1, for example")
    bits = _random_words(_positions(x), key)
    threshold = full((1, 1), int(p * 2**32), u64)
    return where(bits >= threshold, x * (1.0 / (1.0 - p)), 0.0)


dropout_in_kernel = dropout


def _positions(x: Tile) -> Tile:
    """The number of each element in the whole array of scores: (batch · rows + row) · columns + column."""
    if x.ndim != 2 or not {0, 1} <= x.axis_bounds.keys():
        raise CompileError(
            f"dropout of {x}: its position in the whole is not known",
            hint="apply it to scores: a tile made by a dot of loaded tiles, and elementwise work on it",
        )
    work = current_context(tracer())
    rows, columns = x.axis_bounds[0], x.axis_bounds[1]
    if not rows.is_known or not columns.is_known:
        raise CompileError(
            f"dropout of {x}: it was carried by a loop or chosen by an if, and where it lies is not known",
            hint="apply it in the iteration that makes the scores",
        )
    width = _end(columns)
    first = (work.batch * _end(rows) + rows.first.start) * width + columns.first.start
    down = tracer().iota((x.shape[0], 1), 0, 0, i64) * width
    across = tracer().iota((1, x.shape[1]), 1, 0, i64)
    return cast(down + across + first, u64)


def _end(bounds: AxisBounds) -> Any:
    """Where the array ends that a tile is a part of: the shortest of those that begin with the tile's first one.

    So a mask or bias in a longer buffer, first operand or last, changes no position.
    """
    end: Any = bounds.first.limit
    for bound in bounds.bounds[1:]:
        if bound.begins_with(bounds.first):
            both_known = isinstance(end, int) and isinstance(bound.limit, int)
            end = sorted((end, bound.limit))[0] if both_known else minimum(end, bound.limit)
    return end


def _random_words(positions: Tile, key: int) -> Tile:
    """Word 0 of Philox 4x32-10 at (position low, position high, dropout stream, 0)."""

    def constant(value: int) -> Tile:
        return full((1, 1), value, u64)

    low, half = constant(0xFFFFFFFF), constant(32)
    c0, c1, c2, c3 = positions & low, positions >> half, constant(int(Stream.DROPOUT)), constant(0)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in (0,) * 10:
        left, right = c0 * constant(0xD2511F53), c2 * constant(0xCD9E8D57)
        c0, c1 = (right >> half) ^ c1 ^ constant(k0), right & low
        c2, c3 = (left >> half) ^ c3 ^ constant(k1), left & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0


def assert_(condition: Any, message: str) -> None:
    """Fails with a message where the condition does not hold everywhere."""
    if isinstance(condition, bool):
        condition = tracer().convert(condition, bool_)
    tracer().check(condition, message)


def breakpoint(*values: Any) -> None:  # noqa: A001  (as in Python, but when the kernel runs)
    """Stops in the Python debugger when the interpreter gets here, with these values as arrays in `tiles`."""
    tracer().show("breakpoint", values, stop=True)


def debug_print(label: str, *values: Any) -> None:
    """Prints a label and values, for people."""
    tracer().show(label, values)
