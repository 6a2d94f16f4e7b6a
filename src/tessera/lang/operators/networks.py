"""Layers and losses: residual sums, dropout by key, losses, pooling, convolutions as slices and products."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import product as all_pairs
from typing import Any, Literal

from tessera.dtypes.types import i64
from tessera.errors import EffectError, ShapeError
from tessera.lang.operator import operator, operator_called
from tessera.lang.operators.linear_algebra import matmul_operands, rounded_matmul
from tessera.lang.operators.manipulation import pad
from tessera.lang.operators.operands import expanded, floats, folded, known, narrow, one_axis, refusal, wide
from tessera.lang.operators.statistics import averaged, exponentials
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown, stories
from tessera.shapes.expr import Size, element_count, format_shape

Reduction = Literal["mean", "sum", "none"]


def dropout(x: Array, p: float, /, *, key: Array | None = None) -> Any:
    """Dropout: each element is 0 with probability `p`, and divided by 1 - p otherwise. `key` decides which ones."""
    if not isinstance(p, int | float) or not 0 <= p < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be wrong)
        raise ShapeError(f"dropout: a probability from 0 up to 1 was expected, got {p}", hint="p=1 leaves nothing")
    if not p:
        return x
    if key is None:
        raise EffectError(
            f"dropout of {p} needs a random key: operators are pure, and draw nothing by themselves",
            hint="give key=ts.random.key(seed), and another one for each use: ts.random.split",
        )
    from tessera.lang.draws import uniform

    given: Any = x
    return _kept(given, uniform(key, given.shape), p)


@operator
def _kept(x: Array, draws: Array, p: float) -> Traced:
    (made,) = floats("dropout", x)
    kept = elementwise("ge", draws, p)
    scaled = elementwise("mul", wide(made), 1.0 / (1.0 - p))
    return narrow(elementwise("select", kept, scaled, 0.0), made.dtype)


def residual(x: Array, y: Array, /, *, dropout: float = 0.0, key: Array | None = None) -> Any:
    """x + y, with `dropout` on y, which takes a random `key`."""
    return _sum(x, _dropout(y, dropout, key=key))


_dropout = dropout


@operator
def _sum(x: Array, y: Array) -> Traced:
    return elementwise("add", x, y)


def reduced(name: str, losses: Traced, reduction: str, count: Traced | float | None = None) -> Traced:
    """Losses as they are, added up, or their mean: their sum by `count` where it is given."""
    axes = tuple(range(losses.ndim))
    if reduction == "none":
        return losses
    if reduction == "sum":
        return primitives.reduce("sum", losses, axes)
    if reduction != "mean":
        raise ShapeError(f"{name}: reduction is mean, sum or none, got {reduction!r}", hint="choose one of them")
    if count is None:
        return folded(averaged(losses, axes), axes, False)
    return elementwise("div", primitives.reduce("sum", losses, axes), count)


@operator
def mse_loss(x: Array, target: Array, /, *, reduction: Reduction = "mean") -> Traced:
    """The mean of squared differences (x - target)²; their sum, or each of them, by `reduction`."""
    a, b = floats("mse_loss", x, target)
    apart = elementwise("sub", wide(a), wide(b))
    return narrow(reduced("mse_loss", ew("mul", apart, apart), reduction), a.dtype)


def checked_labels(name: str, x: Traced, labels: Any, axis: int, ignore_index: int) -> Traced:
    """Numbers of classes, one for each row of `x` along the axis of classes, as i64."""
    class_axis = one_axis(x, axis, name)
    named = tensor(labels)
    wanted = (*x.sizes[:class_axis], *x.sizes[class_axis + 1 :])
    if not named.dtype.is_integer:
        raise refusal(name, "labels that are numbers of classes", [named], "cast them: ts.astype(y, ts.i64)")
    if named.sizes != wanted:
        raise ShapeError(
            f"{name}: expected labels of shape {format_shape(wanted)}, one for each row of logits, "
            f"got {format_shape(named.sizes)}",
            shapes=shown(x, named),
            story=stories([x, named]),
            hint=f"axis {axis} of the logits has the classes; labels have all other axes, and hold the class",
        )
    return primitives.cast(primitives.looked_at(named, x.sizes[class_axis], "the classes", ignored=ignore_index), i64)


@operator
def cross_entropy(
    logits: Array,
    labels: Array,
    /,
    *,
    axis: int = -1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
) -> Traced:
    """The cross entropy -log softmax(logits)[label] along `axis`, in f32 or wider.

    Labels that equal `ignore_index` do not count. `label_smoothing` gives that share of each label's weight to all
    classes alike. `reduction` is "mean", "sum" or "none".
    """
    (made,) = floats("cross_entropy", logits)
    class_axis = one_axis(made, axis, "cross_entropy")
    named = checked_labels("cross_entropy", made, labels, axis, ignore_index)
    values = wide(made)
    apart, powers, _ = exponentials(values, (class_axis,))
    total = ew("log", primitives.reduce("sum", powers, (class_axis,), keepdims=True))
    spread = expanded(named, [class_axis])
    hit = elementwise("eq", primitives.iota(values.sizes, class_axis), spread)
    own = primitives.reduce("sum", elementwise("select", hit, apart, 0.0), (class_axis,), keepdims=True)
    losses = ew("sub", total, own)
    if label_smoothing:
        evenly = ew("sub", total, averaged(apart, (class_axis,)))
        losses = ew("add", elementwise("mul", losses, 1 - label_smoothing), elementwise("mul", evenly, label_smoothing))
    counts = elementwise("ne", spread, ignore_index)
    losses = folded(elementwise("select", counts, losses, 0.0), [class_axis], False)
    used = primitives.cast(counts, values.dtype)
    count = primitives.reduce("sum", used, tuple(range(used.ndim))) if reduction == "mean" else None
    return reduced("cross_entropy", losses, reduction, count)


# Windows: the axes after [batch, channels]


def per_axis(value: int | tuple[int, ...], count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One number for each of `count` axes, from `least` on; one alone is that of all."""
    given = (value,) * count if isinstance(value, int) else tuple(value)
    if len(given) != count or any(one < least for one in given):
        raise ShapeError(
            f"{name} is one number from {least} on, or one for each of {count} axes, got {value}",
            hint="check its length" if len(given) != count else f"give at least {least}",
        )
    return given


def _windows(x: Traced, size: tuple[int, ...], stride: tuple[int, ...]) -> list[Traced]:
    """For each index in a window, the elements that all windows have there."""
    counts: list[Size] = []
    for axis, (width, step) in enumerate(zip(size, stride, strict=True), 2):
        extent = x.sizes[axis] if step == 1 else known(x, axis, "windows")
        if isinstance(extent, int) and extent < width:
            raise ShapeError(
                f"a window of {width} does not fit axis {axis} of size {extent}",
                shapes=shown(x),
                story=x.history.lines(),
                hint="use a smaller window, or padding",
            )
        counts.append((extent - width) // step + 1)
    found: list[Traced] = []
    for starts in all_pairs(*(range(width) for width in size)):
        stops = [first + (count - 1) * step + 1 for first, count, step in zip(starts, counts, stride, strict=True)]
        found.append(primitives.slice_(x, [None, None, *starts], [None, None, *stops], [1, 1, *stride]))
    return found


def _pooling(
    name: str, filler: float, join: str, finish: Callable[[Traced, int], Traced], said: str
) -> Callable[..., Traced]:
    """An operator on windows, whose elements are joined two by two; at the edges there is `filler`."""

    def function(
        x: Array,
        size: int | tuple[int, ...],
        /,
        *,
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
    ) -> Traced:
        (made,) = floats(name, x)
        rank = made.ndim - 2
        if rank < 1:
            raise ShapeError(f"{name}: expected [batch, channels, …]", shapes=shown(made), hint="add the missing axes")
        window = per_axis(size, rank, "the window")
        steps = per_axis(size if stride is None else stride, rank, "stride")
        edges = per_axis(padding, rank, "padding", 0)
        values = pad(wide(made), ((0, 0), (0, 0), *((edge, edge) for edge in edges)), value=filler)
        parts = _windows(tensor(values), window, steps)
        found = functools.reduce(functools.partial(ew, join), parts)
        return narrow(finish(found, len(parts)), made.dtype)

    return operator_called(name, said, function)


max_pool = _pooling(
    "max_pool",
    -math.inf,
    "max",
    lambda found, _: found,
    "The largest element of each window over the axes after [batch, channels].",
)
avg_pool = _pooling(
    "avg_pool",
    0.0,
    "add",
    lambda found, count: elementwise("mul", found, 1.0 / count),
    "The mean of each window over the axes after [batch, channels]; padding counts as zeros.",
)


def spots_of(
    x: Traced, size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], name: str
) -> tuple[tuple[int, ...], Traced]:
    """The number of windows along each axis, and the elements' indices, by index in a window and by window."""
    extents = [known(x, axis, name) for axis in range(2, x.ndim)]
    counts = tuple(
        (extent - gap * (width - 1) - 1) // step + 1
        for extent, width, step, gap in zip(extents, size, stride, dilation, strict=True)
    )
    if any(count < 1 for count in counts):
        raise ShapeError(
            f"{name}: a window of {size}, {dilation} apart, does not fit {extents}",
            shapes=shown(x),
            story=x.history.lines(),
            hint="use a smaller window, or padding",
        )
    grid = (math.prod(size), math.prod(counts))
    spots = primitives.constant(0, grid, i64)
    tap, window = primitives.iota(grid, 0), primitives.iota(grid, 1)
    taps, windows, pitch = grid[0], grid[1], math.prod(extents)
    for extent, width, count, step, gap in zip(extents, size, counts, stride, dilation, strict=True):
        taps, windows, pitch = taps // width, windows // count, pitch // extent
        inside = elementwise("rem", elementwise("floordiv", tap, taps), width)
        start = elementwise("rem", elementwise("floordiv", window, windows), count)
        at = ew("add", elementwise("mul", inside, gap), elementwise("mul", start, step))
        spots = ew("add", spots, elementwise("mul", at, pitch))
    return counts, spots


def _convolved(
    name: str, rank: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Traced:
    made, filters, to = matmul_operands(name, x, weight, None)
    if made.ndim != rank + 2 or filters.ndim != rank + 2:
        raise ShapeError(
            f"{name}: expected x as [batch, channels, …] and weight as [filters, channels / groups, …]",
            shapes=shown(made, filters),
            hint=f"both have {rank + 2} axes",
        )
    outputs, depth = known(filters, 0, name), known(filters, 1, name)
    window = per_axis(tuple(known(filters, axis, name) for axis in range(2, rank + 2)), rank, f"{name}: the window")
    channels = known(made, 1, name)
    if groups < 1 or channels != depth * groups or outputs % groups:
        raise ShapeError(
            f"{name}: {channels} channels in {groups} groups do not fit filters of {depth} channels",
            shapes=shown(made, filters),
            hint="channels = groups · weight.shape[1], and groups divides the filters",
        )
    steps, gaps = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    edges = per_axis(padding, rank, "padding", 0)
    held = tensor(pad(made, ((0, 0), (0, 0), *((edge, edge) for edge in edges))))
    windows, spots = spots_of(held, window, steps, gaps, name)
    taps, count = (spots.sizes[at] for at in (0, 1))
    flat = primitives.reshape(held, (held.sizes[0], channels, element_count(held.sizes[2:])))
    laid = primitives.reshape(primitives.gather(flat, spots, 2), (made.sizes[0], groups, depth * taps, count))
    rows = primitives.reshape(filters, (groups, outputs // groups, depth * taps))
    found = primitives.reshape(rounded_matmul(rows, laid, to), (made.sizes[0], outputs, *windows))
    if bias is None:
        return found
    return elementwise("add", found, primitives.reshape(tensor(bias), (-1, *(1,) * rank)))


def _convolution(name: str, rank: int, said: str) -> Callable[..., Traced]:
    def function(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        /,
        *,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> Traced:
        return _convolved(name, rank, x, weight, bias, stride, padding, dilation, groups)

    return operator_called(name, said, function)


conv1d = _convolution(
    "conv1d", 1, "Convolves x, [batch, channels, length]; weight is [filters, channels / groups, filter width]."
)
conv2d = _convolution(
    "conv2d",
    2,
    "Convolves x, [batch, channels, height, width]; weight is [filters, channels / groups, filter height, width].",
)
conv3d = _convolution(
    "conv3d",
    3,
    "Convolves x, [batch, channels, depth, height, width]; weight is [filters, channels / groups, …] of the same axes.",
)
