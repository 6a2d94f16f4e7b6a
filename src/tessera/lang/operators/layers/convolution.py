"""Transposed convolutions: the gradients of convolutions, as layers of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as all_combinations

from tessera.errors import ShapeError
from tessera.lang.operator import operator_called
from tessera.lang.operators.linear_algebra import matmul_operands
from tessera.lang.operators.manipulation import pad
from tessera.lang.operators.networks import conv1d, conv2d, conv3d, per_axis
from tessera.lang.operators.operands import expanded, known
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced, shown

_CONVOLUTIONS = {1: conv1d, 2: conv2d, 3: conv3d}


@dataclass(frozen=True)
class _Phase:
    """The elements of the result along one axis that have one remainder by the stride: a convolution of stride 1.

    Element stride · m + remainder is the sum over taps t of x[m - first - gap · t] · weight[tap + step · t].
    """

    tap: int
    """The first of its taps in the window."""
    step: int
    """From one of its taps to the next."""
    count: int
    """The number of its taps; without any, the elements are 0."""
    first: int
    """How far before element m the first tap reads."""
    gap: int
    """How far before that each further tap reads."""

    @staticmethod
    def of(remainder: int, width: int, stride: int, dilation: int) -> _Phase:
        common = math.gcd(stride, dilation)
        taps = [tap for tap in range(width) if (tap * dilation - remainder) % stride == 0]
        if not taps:
            return _Phase(0, 1, 0, 0, 1)
        first = (taps[0] * dilation - remainder) // stride
        return _Phase(taps[0], stride // common, len(taps), first, dilation // common)

    def ends(self, extent: int, count: int) -> tuple[int, int]:
        """How many zeros go before and after an axis, so that there are `count` windows; below 0, what is cut off."""
        return self.first + self.gap * (self.count - 1), count - extent - self.first


def _fitted(x: Traced, ends: list[tuple[int, int]]) -> Traced:
    """x with zeros before and after each axis behind [batch, channels], or cut at the end."""
    widths: list[tuple[int, int]] = [(0, 0), (0, 0)]
    stops: list[int | None] = [None, None]
    for axis, (before, after) in enumerate(ends, 2):
        kept = known(x, axis, "conv_transpose") + min(after, 0)
        stops.append(max(kept, 0) if after < 0 else None)
        # What is cut may reach beyond the first element, into the zeros before it.
        widths.append((before + min(kept, 0), max(after, 0)))
    if any(stop is not None for stop in stops):
        x = primitives.slice_(x, [None] * x.ndim, stops)
    return tensor(pad(x, tuple(widths)))


def _weights_of(filters: Traced, phases: tuple[_Phase, ...]) -> Traced:
    """The taps of a phase, the last one first."""
    open_ends: list[None] = [None, None]
    starts = [*open_ends, *(phase.tap for phase in phases)]
    steps = [1, 1, *(phase.step for phase in phases)]
    taken = primitives.slice_(filters, starts, [None] * filters.ndim, steps)
    ends = [None] * filters.ndim
    return primitives.slice_(taken, ends, ends, [1, 1, *(-1,) * len(phases)])


def _transposed(
    name: str,
    rank: int,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: int | tuple[int, ...],
    padding: int | tuple[int, ...],
    output_padding: int | tuple[int, ...],
    dilation: int | tuple[int, ...],
    groups: int,
) -> Traced:
    made, filters, to = matmul_operands(name, x, weight, None)
    if made.ndim != rank + 2 or filters.ndim != rank + 2:
        raise ShapeError(
            f"{name}: expected x as [batch, channels, …] and weight as [channels, filters / groups, …]",
            shapes=shown(made, filters),
            hint=f"both have {rank + 2} axes",
        )
    channels, inputs, outputs = known(made, 1, name), known(filters, 0, name), known(filters, 1, name)
    if groups < 1 or channels != inputs or channels % groups:
        raise ShapeError(
            f"{name}: {channels} channels in {groups} groups do not fit a weight of {inputs} channels",
            shapes=shown(made, filters),
            hint="channels = weight.shape[0], and groups divides them",
        )
    window = per_axis(tuple(known(filters, axis, name) for axis in range(2, rank + 2)), rank, f"{name}: the window")
    steps, gaps = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    edges, more = per_axis(padding, rank, "padding", 0), per_axis(output_padding, rank, "output_padding", 0)
    if any(extra and extra >= max(step, gap) for extra, step, gap in zip(more, steps, gaps, strict=True)):
        raise ShapeError(
            f"{name}: output_padding {output_padding} is not below the stride {stride} or the dilation {dilation}",
            shapes=shown(made, filters),
            hint="it says which of the sizes is meant that a convolution of this stride makes equal",
        )
    extents = [known(made, axis, name) for axis in range(2, rank + 2)]
    sizes = [
        (extent - 1) * step - 2 * edge + gap * (width - 1) + extra + 1
        for extent, width, step, gap, edge, extra in zip(extents, window, steps, gaps, edges, more, strict=True)
    ]
    if any(size < 1 for size in sizes) or 0 in extents:
        raise ShapeError(
            f"{name}: of {extents} elements, and padding {padding}, no element is left",
            shapes=shown(made, filters),
            story=made.history.lines(),
            hint="padding cuts off what it would have added before a convolution: give less of it",
        )
    laid = _by_filters(filters, groups, inputs // groups, outputs, window)
    # The first `edge` elements are left out; before that, each phase has equally many.
    counts = [-(-(size + edge) // step) for size, edge, step in zip(sizes, edges, steps, strict=True)]
    phases = [
        [_Phase.of(remainder, width, step, gap) for remainder in range(step)]
        for width, step, gap in zip(window, steps, gaps, strict=True)
    ]
    parts: list[Traced] = []
    for combination in all_combinations(*phases):
        if not all(phase.count for phase in combination):
            parts.append(primitives.constant(0, (made.sizes[0], outputs * groups, *counts), to))
            continue
        ends = [phase.ends(extent, count) for phase, extent, count in zip(combination, extents, counts, strict=True)]
        gaps_here = tuple(phase.gap for phase in combination)
        found = _CONVOLUTIONS[rank](
            _fitted(made, ends), _weights_of(laid, combination), groups=groups, dilation=gaps_here
        )
        parts.append(tensor(found))
    joined = _interleaved(parts, steps, counts)
    firsts = [None, None, *edges]
    lasts = [None, None, *(edge + size for edge, size in zip(edges, sizes, strict=True))]
    found = primitives.slice_(joined, firsts, lasts)
    if bias is None:
        return found
    return elementwise("add", found, primitives.reshape(tensor(bias), (-1, *(1,) * rank)))


def _by_filters(filters: Traced, groups: int, inputs: int, outputs: int, window: tuple[int, ...]) -> Traced:
    """Weights [channels, filters / groups, …] as those of a convolution are: [filters, channels / groups, …]."""
    apart = primitives.reshape(filters, (groups, inputs, outputs, *window))
    order = [0, 2, 1, *range(3, apart.ndim)]
    return primitives.reshape(primitives.transpose(apart, order), (groups * outputs, inputs, *window))


def _interleaved(parts: list[Traced], steps: tuple[int, ...], counts: list[int]) -> Traced:
    """Parts by their remainders along each axis as one tensor, with their elements in order."""
    if len(parts) == 1:
        return parts[0]
    lead, rank = parts[0].sizes[:2], len(steps)
    stacked = primitives.concatenate([expanded(part, [0]) for part in parts], 0)
    apart = primitives.reshape(stacked, (*steps, *lead, *counts))
    order = [rank, rank + 1, *(at for axis in range(rank) for at in (rank + 2 + axis, axis))]
    sizes = [count * step for count, step in zip(counts, steps, strict=True)]
    return primitives.reshape(primitives.transpose(apart, order), (*lead, *sizes))


def _transposed_convolution(name: str, rank: int, shape: str) -> Callable[..., Traced]:
    def function(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        /,
        *,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> Traced:
        return _transposed(name, rank, x, weight, bias, stride, padding, output_padding, dilation, groups)

    said = (
        f"The transposed convolution of x, [batch, channels, {shape}].\n\n"
        f"weight is [channels, filters / groups, {shape}]. As in torch, it is the gradient of a\n"
        "convolution with these options by its input: `padding` is what such a convolution adds, and is cut off here,\n"
        "`output_padding` is added at the end of the result."
    )
    return operator_called(name, said, function)


conv_transpose1d = _transposed_convolution("conv_transpose1d", 1, "length")
conv_transpose2d = _transposed_convolution("conv_transpose2d", 2, "height, width")
conv_transpose3d = _transposed_convolution("conv_transpose3d", 3, "depth, height, width")
