"""Images and rows of other sizes: interpolation, channels for pixels, windows as columns and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from tessera.dtypes.types import i64
from tessera.errors import ShapeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.layers.pooling import pooled
from tessera.lang.operators.manipulation import pad
from tessera.lang.operators.networks import per_axis, spots_of
from tessera.lang.operators.operands import divided, floats, known, narrow, refusal, require_elements, wide
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.sizes import plain_size
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import Size, dim, element_count

_Several: TypeAlias = "int | tuple[int, ...]"
Mode: TypeAlias = Literal["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"]

_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", *_RANKS, "area")


class _Line(NamedTuple):
    """Where elements of a resized axis come from: of element i it is place top(i) / bottom, in whole numbers."""

    top: Traced
    bottom: int | Traced
    size: int | Traced
    """The size of the axis that they come from."""

    def floor(self) -> Traced:
        return elementwise("floordiv", self.top, self.bottom)

    def part(self, whole: Traced, x: Traced) -> Traced:
        """How far each place lies behind a whole one, in the type of `x`."""
        rest = elementwise("sub", self.top, elementwise("mul", whole, self.bottom))
        bottom = primitives.cast(self.bottom, x.dtype) if isinstance(self.bottom, Traced) else float(self.bottom)
        return elementwise("div", primitives.cast(rest, x.dtype), bottom)

    def held(self, place: Traced) -> Traced:
        """Places beyond the ends are those at the ends."""
        last = self.size - 1 if isinstance(self.size, int) else elementwise("sub", self.size, 1)
        return elementwise("min", elementwise("max", place, 0), last)


def _value(size: Size) -> int | Traced:
    """A size to compute with: a number, or the value of a symbolic one."""
    return size if isinstance(size, int) else primitives.size_value(size)


def _less_one(value: int | Traced) -> int | Traced:
    return value - 1 if isinstance(value, int) else elementwise("sub", value, 1)


def _times(value: int | Traced, factor: int) -> int | Traced:
    return value * factor if isinstance(value, int) else elementwise("mul", value, factor)


def _line(x: Traced, axis: int, size: Size, scale: Fraction | None, kind: str) -> _Line:
    """The places of `size` elements along an axis.

    "corners": the ends lie on the ends. "centres": elements are intervals, whose middles have places. "starts": their
    starts have.
    """
    index, extent = primitives.iota((size,), 0), _value(x.sizes[axis])
    if kind == "corners":
        bottom = max(size - 1, 1) if isinstance(size, int) else elementwise("max", _less_one(_value(size)), 1)
        return _Line(elementwise("mul", index, _less_one(extent)), bottom, extent)
    # One element here is as wide as `wide` / `count` of those that it comes from.
    wide_, count = (extent, _value(size)) if scale is None else (scale.denominator, scale.numerator)
    if kind == "starts":
        return _Line(elementwise("mul", index, wide_), count, extent)
    middle = elementwise("mul", elementwise("add", elementwise("mul", index, 2), 1), wide_)
    return _Line(elementwise("sub", middle, count), _times(count, 2), extent)


def _along(x: Traced, values: Traced, axis: int) -> Traced:
    """Numbers of elements along an axis, broadcast against x."""
    return primitives.reshape(values, [values.sizes[0] if at == axis else 1 for at in range(x.ndim)])


def _nearest(x: Traced, axis: int, line: _Line) -> Traced:
    return primitives.gather(x, line.held(line.floor()), axis)


def _linear(x: Traced, axis: int, line: _Line) -> Traced:
    line = line._replace(top=elementwise("max", line.top, 0))
    whole = line.floor()
    first = primitives.gather(x, line.held(whole), axis)
    second = primitives.gather(x, line.held(elementwise("add", whole, 1)), axis)
    part = _along(first, line.part(whole, x), axis)
    rest = elementwise("sub", 1.0, part)
    return ew("add", elementwise("mul", first, rest), elementwise("mul", second, part))


_BEND = -0.75
"""The parameter of Keys' cubic convolution, as torch has it."""


def _cubic(x: Traced, axis: int, line: _Line) -> Traced:
    whole = line.floor()
    part = line.part(whole, x)

    def near(t: Traced) -> Traced:
        """The weight of an element up to 1 away."""
        inner = elementwise("sub", elementwise("mul", t, _BEND + 2), _BEND + 3)
        return elementwise("add", ew("mul", inner, ew("mul", t, t)), 1.0)

    def far(t: Traced) -> Traced:
        """The weight of an element from 1 to 2 away."""
        inner = elementwise("sub", elementwise("mul", t, _BEND), 5 * _BEND)
        inner = elementwise("add", ew("mul", inner, t), 8 * _BEND)
        return elementwise("sub", ew("mul", inner, t), 4 * _BEND)

    rest = elementwise("sub", 1.0, part)
    weights = [far(elementwise("add", part, 1.0)), near(part), near(rest), far(elementwise("add", rest, 1.0))]
    total: Traced | None = None
    for away, weight in zip((-1, 0, 1, 2), weights, strict=True):
        taken = primitives.gather(x, line.held(elementwise("add", whole, away)), axis)
        term = elementwise("mul", taken, _along(taken, weight, axis))
        total = term if total is None else ew("add", total, term)
    assert total is not None
    return total


def _unfit(x: Traced, what: str, given: object) -> ShapeError:
    return ShapeError(
        f"interpolate: expected {what} above 0, or one for each of {x.ndim - 2} axes, got {given}",
        shapes=shown(x),
        hint="the axes are those after [batch, channels]",
    )


def _sizes_of(x: Traced, given: Size | tuple[Size, ...]) -> list[Size]:
    """The sizes asked for, of the axes after [batch, channels]."""
    several = list(given) if isinstance(given, tuple | list) else [given] * (x.ndim - 2)
    sizes = [plain_size(one) for one in several]
    if len(sizes) != x.ndim - 2 or any(isinstance(one, int) and one < 1 for one in sizes):
        raise _unfit(x, "a size", given)
    return sizes


def _scales_of(x: Traced, given: float | tuple[float, ...]) -> list[Fraction]:
    """The factors asked for, as fractions: 1/3 is meant by what is next to it."""
    several = list(given) if isinstance(given, tuple | list) else [given] * (x.ndim - 2)
    if len(several) != x.ndim - 2 or not all(0 < one < math.inf for one in several):
        raise _unfit(x, "a factor", given)
    return [Fraction(one).limit_denominator(1 << 16) for one in several]


def _scaled_sizes(x: Traced, scales: Sequence[Fraction]) -> list[Size]:
    sizes: list[Size] = []
    for axis, scale in enumerate(scales, 2):
        sizes.append(plain_size(dim(x.sizes[axis]) * scale.numerator // scale.denominator))
        if sizes[-1] == 0:
            raise ShapeError(
                f"interpolate: axis {axis} times {float(scale)} has no elements", shapes=shown(x), hint="scale by more"
            )
    return sizes


@operator
def interpolate(
    x: Array,
    /,
    size: Size | tuple[Size, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: Mode = "nearest",
    align_corners: bool = False,
) -> Traced:
    """x, [batch, channels, …], with other sizes of the axes after channels: `size`, or theirs times `scale_factor`.

    As in torch: "nearest" takes the element at ⌊i · old / new⌋, "nearest-exact" the one under the middle of element i,
    "linear", "bilinear" and "trilinear" weigh neighbours by their distance, "bicubic" four of them along each axis by
    cubic polynomials, "area" is `adaptive_avg_pool`. With `align_corners` the first and the last elements stay where
    they are. Places are computed in whole numbers, so that they are exact; torch rounds them in f32.
    """
    if mode not in _MODES:
        raise TesseraError(
            f"interpolate: mode is one of {', '.join(_MODES)}, got {mode!r}", hint="images usually take bilinear"
        )
    made = tensor(x)
    rank = made.ndim - 2
    if rank < 1 or _RANKS.get(mode, rank) != rank:
        raise ShapeError(
            f"interpolate: {mode} is for {_RANKS.get(mode, 'one and more')} axes after [batch, channels], "
            f"got {max(rank, 0)}",
            shapes=shown(made),
            hint="linear is for one axis, bilinear and bicubic for two, trilinear for three",
        )
    nearest = mode.startswith("nearest")
    if align_corners and mode not in _RANKS:
        raise TesseraError(f"interpolate: align_corners is not for {mode}", hint="leave it out")
    if not nearest:
        floats("interpolate", made)
    scales: Sequence[Fraction | None] = [None] * rank
    if size is not None and scale_factor is None:
        sizes = _sizes_of(made, size)
    elif scale_factor is not None and size is None:
        factors = _scales_of(made, scale_factor)
        sizes, scales = _scaled_sizes(made, factors), factors
    else:
        raise TesseraError("interpolate: expected either size= or scale_factor=", hint="give size=(height, width)")
    require_elements(made, range(2, made.ndim), "interpolate")
    values = made if nearest else wide(made)
    if mode == "area":
        numbers = [one if isinstance(one, int) else values.trace.sizes.number(one) for one in sizes]
        return narrow(pooled("interpolate", values, numbers, "sum", 0.0), made.dtype)
    kind = "corners" if align_corners else "starts" if mode == "nearest" else "centres"
    way = _nearest if nearest else _cubic if mode == "bicubic" else _linear
    for axis, (one, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if one == values.sizes[axis] and scale in (None, 1):
            continue
        line = _line(values, axis, one, scale, kind)
        if mode == "nearest-exact":  # the interval that the middle lies in: half an element on
            half = line.bottom // 2 if isinstance(line.bottom, int) else elementwise("shr", line.bottom, 1)
            line = line._replace(top=elementwise("add", line.top, half))
        values = way(values, axis, line)
    return values if nearest else narrow(values, made.dtype)


# Channels for pixels


def _image(name: str, x: Array) -> Traced:
    made = tensor(x)
    if made.ndim < 3:
        raise ShapeError(
            f"{name}: expected [channels, height, width], with any axes before",
            shapes=shown(made),
            hint="add the missing axes",
        )
    return made


def _check_factor(name: str, factor: int) -> None:
    if factor < 1:
        raise TesseraError(f"{name}: expected a factor from 1 on, got {factor}", hint="2 doubles height and width")


@operator
def pixel_shuffle(x: Array, factor: int, /) -> Traced:
    """[…, channels · factor², height, width] as […, channels, height · factor, width · factor]. As in torch."""
    _check_factor("pixel_shuffle", factor)
    made = _image("pixel_shuffle", x)
    rank = made.ndim
    *lead, _, height, width = made.sizes
    channels = divided(made, rank - 3, factor * factor, "pixel_shuffle")
    apart = primitives.reshape(made, (*lead, channels, factor, factor, height, width))
    at = rank - 3
    laid = primitives.transpose(apart, [*range(at), at, at + 3, at + 1, at + 4, at + 2])
    return primitives.reshape(laid, (*lead, channels, height * factor, width * factor))


@operator
def pixel_unshuffle(x: Array, factor: int, /) -> Traced:
    """[…, channels, height · factor, width · factor] as […, channels · factor², height, width]. As in torch."""
    _check_factor("pixel_unshuffle", factor)
    made = _image("pixel_unshuffle", x)
    rank = made.ndim
    *lead, channels, _, _ = made.sizes
    height, width = (divided(made, axis, factor, "pixel_unshuffle") for axis in (rank - 2, rank - 1))
    apart = primitives.reshape(made, (*lead, channels, height, factor, width, factor))
    at = rank - 3
    laid = primitives.transpose(apart, [*range(at), at, at + 2, at + 4, at + 1, at + 3])
    return primitives.reshape(laid, (*lead, channels * factor * factor, height, width))


# Windows as columns


@operator
def unfold(
    x: Array,
    window: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Traced:
    """Windows of x, [batch, channels, …], as columns: [batch, channels · elements of a window, windows].

    As in torch.nn.functional.unfold, for any number of axes after channels.
    """
    made = tensor(x)
    rank = made.ndim - 2
    if rank < 1:
        raise ShapeError("unfold: expected [batch, channels, …]", shapes=shown(made), hint="add the missing axes")
    size, steps, gaps, edges = _windows("unfold", rank, window, stride, dilation, padding)
    held = tensor(pad(made, ((0, 0), (0, 0), *((edge, edge) for edge in edges))))
    _, spots = spots_of(held, size, steps, gaps, "unfold")
    flat = primitives.reshape(held, (*held.sizes[:2], element_count(held.sizes[2:])))
    taken = primitives.gather(flat, spots, 2)
    return primitives.reshape(taken, (made.sizes[0], made.sizes[1] * spots.sizes[0], spots.sizes[1]))


def _windows(
    name: str, rank: int, window: _Several, stride: _Several, dilation: _Several, padding: _Several
) -> list[tuple[int, ...]]:
    return [
        per_axis(window, rank, f"{name}: the window"),
        per_axis(stride, rank, "stride"),
        per_axis(dilation, rank, "dilation"),
        per_axis(padding, rank, "padding", 0),
    ]


@operator
def fold(
    x: Array,
    size: tuple[int, ...],
    window: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Traced:
    """Columns as `unfold` makes them, added up where windows overlap: [batch, channels, *size]. As in torch."""
    made = tensor(x)
    rank = len(size)
    shape, steps, gaps, edges = _windows("fold", rank, window, stride, dilation, padding)
    if made.ndim != 3 or rank < 1:
        raise ShapeError(
            "fold: expected [batch, channels · elements of a window, windows]",
            shapes=shown(made),
            hint="as unfold gives",
        )
    if not (made.dtype.is_float or made.dtype.is_integer):
        raise refusal("fold", "numbers", [made], "cast them first")
    channels = divided(made, 1, math.prod(shape), "fold")
    padded = [one + 2 * edge for one, edge in zip(size, edges, strict=True)]
    values = wide(made) if made.dtype.is_float else made
    start = primitives.constant(0, (made.sizes[0], channels, *padded), values.dtype)
    counts, spots = spots_of(start, shape, steps, gaps, "fold")
    if known(made, 2, "fold") != math.prod(counts):
        raise ShapeError(
            f"fold: {made.sizes[2]} columns, and {math.prod(counts)} windows in {tuple(size)}",
            shapes=shown(made),
            hint="give the size, stride, padding and dilation of the tensor that was unfolded",
        )
    taps, windows = spots.sizes
    flat = primitives.reshape(start, (made.sizes[0], channels, math.prod(padded)))
    columns = primitives.reshape(values, (made.sizes[0], channels, taps * windows))
    where = primitives.cast(primitives.reshape(spots, (taps * windows,)), i64)
    summed = primitives.reshape(primitives.scatter("add", flat, [where], columns, [2]), start.sizes)
    cut = primitives.slice_(
        summed, [None, None, *edges], [None, None, *(edge + one for edge, one in zip(edges, size, strict=True))]
    )
    return narrow(cut, made.dtype) if made.dtype.is_float else cut
