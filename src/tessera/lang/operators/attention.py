"""Attention as plain algebra: products, a scale, masks by position, a safe softmax; the compiler finds one kernel."""

from __future__ import annotations

import math
from typing import Any

from tessera.dtypes.promotion import compute_type
from tessera.dtypes.types import bool_, f32, i32, i64
from tessera.errors import DtypeError, ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators import networks
from tessera.lang.operators.linear_algebra import matmul_operands
from tessera.lang.operators.manipulation import swap_axes
from tessera.lang.operators.operands import expanded, floats, folded, known, narrow, wide
from tessera.lang.operators.statistics import exponentials
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import Size, size


@operator
def scaled_dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    /,
    *,
    mask: Array | None = None,
    bias: Array | None = None,
    causal: bool = False,
    offset: Array | None = None,
    window: int | None = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    key_lengths: Array | None = None,
    dropout: float = 0.0,
    key: Array | None = None,
    return_lse: bool = False,
    is_causal: bool = False,
) -> Any:
    """Attention: softmax(q kᵀ · scale) v over [batch, heads, length, width]; 0 for a query that sees no key.

    k and v may have fewer heads than q (grouped queries): each serves an equal group of them.
    causal: a query sees keys up to its own index. The last query is at the last key, or the first one at key `offset`.
    is_causal: torch's argument: the first query is at the first key.
    window: of these, a query sees the last `window` alone.
    mask: True where a query sees a key; bias: added to the scores; soft_cap: scores become cap · tanh(score / cap).
    key_lengths: in batch b, only the first key_lengths[b] keys count.
    scale: 1/√width unless given. dropout: on the weights; it takes a random `key`.
    return_lse: the result comes with log Σ e^score of every query, in f32.
    """
    if is_causal:
        causal, offset = True, 0 if offset is None else offset
    queries, keys, values = (_four_axes(name, x) for name, x in (("q", q), ("k", k), ("v", v)))
    floats("attention", queries, keys, values)
    group = _group(queries, keys, values)
    keys, values = _shared(keys, group), _shared(values, group)
    work = compute_type(queries.dtype)
    a, b, _ = matmul_operands("attention", queries, keys, None)
    scores = primitives.matmul(a, swap_axes(b), to=work)
    width = queries.sizes[-1]
    factor = (
        scale
        if scale is not None
        else 1.0 / math.sqrt(width if isinstance(width, int) else known(queries, 3, "attention"))
    )
    if factor != 1.0:
        scores = elementwise("mul", scores, factor)
    if soft_cap is not None:
        scores = elementwise("mul", ew("tanh", elementwise("mul", scores, 1.0 / soft_cap)), soft_cap)
    if bias is not None:
        scores = elementwise("add", scores, wide(tensor(bias)))
    seen = _seen(scores, mask, causal, offset, window, key_lengths)
    if seen is not None:
        scores = elementwise("select", seen, scores, -math.inf)
    last = scores.ndim - 1
    _, powers, highest = exponentials(scores, (last,))
    total = primitives.reduce("sum", powers, (last,), keepdims=True)
    held = elementwise("select", elementwise("eq", total, 0.0), 1.0, total)
    shares = elementwise("div", powers, held)
    if dropout:
        shares = networks.dropout(shares, dropout, key=key)
    weights = narrow(shares, values.dtype)
    found = primitives.matmul(weights, values, to=queries.dtype)
    if not return_lse:
        return found
    least = elementwise("select", elementwise("eq", total, 0.0), -math.inf, ew("add", ew("log", held), highest))
    return found, primitives.cast(folded(least, [last], False), f32)


@operator
def flash_attention(
    q: Array,
    k: Array | tuple[Array, Array],
    v: Array | None = None,
    /,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    key: Array | None = None,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    offset: Array | None = None,
    key_lengths: Array | None = None,
    return_lse: bool = False,
    is_causal: bool = False,
) -> Any:
    """`scaled_dot_product_attention`, which also takes keys and values as a pair, as a cache holds them."""
    if v is None:
        if not isinstance(k, tuple | list) or len(k) != 2:
            raise ShapeError("flash_attention: expected keys and values", hint="give k and v, or a pair of them")
        k, v = k
    return scaled_dot_product_attention(
        q,
        k,  # pyright: ignore[reportArgumentType]  (a pair was taken apart above)
        v,
        mask=mask,
        bias=bias,
        causal=causal,
        offset=offset,
        window=window,
        scale=scale,
        soft_cap=soft_cap,
        key_lengths=key_lengths,
        dropout=dropout,
        key=key,
        return_lse=return_lse,
        is_causal=is_causal,
    )


def _four_axes(name: str, x: Any) -> Traced:
    made = tensor(x)
    if made.ndim != 4:
        raise ShapeError(
            f"attention: expected {name} as [batch, heads, length, width], got {made.ndim} axes",
            shapes=shown(made),
            story=made.history.lines(),
            hint="split_qkv gives this shape; use expand_dims for a missing batch",
        )
    return made


def _group(q: Traced, k: Traced, v: Traced) -> int:
    """How many heads of q one head of k and v serves."""
    if k.sizes[1] != v.sizes[1] or k.sizes[2] != v.sizes[2] or q.sizes[3] != k.sizes[3]:
        raise ShapeError(
            "attention: k and v have one number of heads and one length, q and k one width",
            shapes=[f"{name} {text}" for name, text in zip("qkv", shown(q, k, v), strict=True)],
            story=(*q.history.lines(), *k.history.lines(), *v.history.lines()),
            hint="check the axes: [batch, heads, length, width]",
        )
    if q.sizes[1] == k.sizes[1]:
        return 1
    heads, shared = known(q, 1, "attention"), known(k, 1, "attention")
    if heads % shared:
        raise ShapeError(
            f"attention: {heads} heads of q do not split into groups for {shared} heads of k and v",
            shapes=shown(q, k, v),
            hint="the heads of q are a multiple of those of k and v",
        )
    return heads // shared


def _shared(x: Traced, group: int) -> Traced:
    """Each head as often as queries share it; nothing is copied where the program reads it."""
    if group == 1:
        return x
    batch, heads, length, width = x.sizes
    laid = primitives.broadcast_to(expanded(x, [2]), (batch, heads, group, length, width))
    return primitives.reshape(laid, (batch, heads * group, length, width))


def _seen(scores: Traced, mask: Any, causal: bool, offset: Any, window: int | None, key_lengths: Any) -> Traced | None:
    """Which keys each query looks at; None where it is all of them."""
    parts: list[Traced] = []
    # In 64 bits no sum of positions wraps, so the compiler may take masks apart.
    rows, columns = (primitives.iota(scores.sizes, axis, i64) for axis in (2, 3))
    if causal or window is not None:
        position = _positions(rows, scores, offset)
        if causal:
            parts.append(elementwise("ge", position, columns))
        if window is not None:
            parts.append(elementwise("lt", elementwise("sub", position, columns), window))
    if key_lengths is not None:
        lengths = primitives.cast(tensor(key_lengths), i64)
        parts.append(elementwise("lt", columns, primitives.reshape(lengths, (-1, 1, 1, 1))))
    if mask is not None:
        made = tensor(mask)
        if made.dtype.base is not bool_:
            raise DtypeError(
                f"attention: a mask is bool, got {made.dtype}",
                shapes=shown(made),
                story=made.history.lines(),
                hint="compare it, or give it as bias= to add it to the scores",
            )
        parts.append(made)
    found: Traced | None = None
    for part in parts:
        found = part if found is None else elementwise("and", found, part)
    return found


def _positions(rows: Traced, scores: Traced, offset: Any) -> Traced:
    """The index of each query among the keys."""
    if offset is not None:
        if isinstance(offset, int):
            return elementwise("add", rows, offset) if offset else rows
        return elementwise("add", rows, primitives.cast(offset, i64))
    apart = size(scores.sizes[3] - scores.sizes[2])
    if isinstance(apart, int):
        return elementwise("add", rows, apart) if apart else rows
    return elementwise("add", rows, primitives.size_value(apart, i64))


@operator
def split_qkv(qkv: Array, /, *, heads: int, kv_heads: int | None = None) -> tuple[Traced, Traced, Traced]:
    """Splits [batch, length, (heads + 2 · kv_heads) · width] into q, k and v of [batch, heads, length, width]."""
    made = tensor(qkv)
    shared = heads if kv_heads is None else kv_heads
    count = heads + 2 * shared
    columns = known(made, made.ndim - 1, "split_qkv") if made.ndim == 3 else 0
    if made.ndim != 3 or heads < 1 or shared < 1 or columns % count:
        raise ShapeError(
            f"split_qkv: expected [batch, length, {count} · width] for {heads} heads of q and {shared} of k and v",
            shapes=shown(made),
            story=made.history.lines(),
            hint="heads= and kv_heads= must divide the last axis",
        )
    width = columns // count
    found: list[Traced] = []
    start = 0
    for part in (heads, shared, shared):
        stop = start + part * width
        cut = primitives.slice_(made, [None, None, start], [None, None, stop])
        apart = primitives.reshape(cut, (made.sizes[0], made.sizes[1], part, width))
        found.append(primitives.transpose(apart, [0, 2, 1, 3]))
        start = stop
    return found[0], found[1], found[2]


@operator
def merge_heads(x: Array, /) -> Traced:
    """[batch, heads, length, width] as [batch, length, heads · width]: the reverse of `split_qkv`."""
    made = _four_axes("x", x)
    batch, heads, length, width = made.sizes
    return primitives.reshape(primitives.transpose(made, [0, 2, 1, 3]), (batch, length, heads * width))


@operator
def rope(
    x: Array,
    positions: Array | None = None,
    /,
    *,
    base: float = 10000.0,
    interleaved: bool = False,
    offset: Array | None = None,
) -> Traced:
    """Rotary position embedding: pairs along the last axis are rotated by angles that grow with the position.

    Pair i of width/2 is rotated by position · base^(-2i/width). A pair is elements i and i + width/2, or two neighbours
    if `interleaved`. The position is the index along the axis before the last, counted from `offset`, unless
    `positions` gives it, [length] or [batch, length].
    """
    (made,) = floats("rope", x)
    width = known(made, made.ndim - 1, "rope") if made.ndim >= 2 else 1
    if made.ndim < 2 or width % 2:
        raise ShapeError(
            "rope: expected [..., length, width] with an even width", shapes=shown(made), hint="split the heads first"
        )
    values, half = wide(made), width // 2
    length: Size = made.sizes[-2]
    if positions is None:
        positions = primitives.iota((length, half), 0, i32)
        if offset is not None:
            positions = elementwise(
                "add", positions, offset if isinstance(offset, int) else primitives.cast(offset, i32)
            )
    else:
        given = tensor(positions)
        positions = expanded(given, [given.ndim])
        if given.ndim == 2:
            positions = primitives.reshape(positions, (given.sizes[0], *(1,) * (made.ndim - 3), given.sizes[1], 1))
    rate = math.log(base) * -2.0 / width
    frequency = primitives.ew(
        "exp", elementwise("mul", primitives.cast(primitives.iota((1, half), 1, i32), values.dtype), rate)
    )
    angle = elementwise("mul", primitives.cast(positions, values.dtype), frequency)
    cosine, sine = ew("cos", angle), ew("sin", angle)
    first, second = _pairs(values, half, interleaved)
    rotated = [
        elementwise("sub", elementwise("mul", first, cosine), elementwise("mul", second, sine)),
        elementwise("add", elementwise("mul", second, cosine), elementwise("mul", first, sine)),
    ]
    if interleaved:
        rank = made.ndim
        joined = primitives.concatenate([expanded(one, [rank]) for one in rotated], rank)
        return narrow(primitives.reshape(joined, made.sizes), made.dtype)
    return narrow(primitives.concatenate(rotated, made.ndim - 1), made.dtype)


def _pairs(x: Traced, half: int, interleaved: bool) -> tuple[Traced, Traced]:
    if interleaved:
        apart = primitives.reshape(x, (*x.sizes[:-1], half, 2))
        ends: list[Any] = [None] * apart.ndim
        parts = [primitives.slice_(apart, [*ends[:-1], at], [*ends[:-1], at + 1]) for at in (0, 1)]
        return primitives.reshape(parts[0], (*x.sizes[:-1], half)), primitives.reshape(parts[1], (*x.sizes[:-1], half))
    ends = [None] * x.ndim
    return (primitives.slice_(x, ends, [*ends[:-1], half]), primitives.slice_(x, [*ends[:-1], half], ends))
