"""Adaptive pooling: windows that divide an axis into a number of parts, as equal as they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tessera.errors import ShapeError
from tessera.lang.operator import operator_called
from tessera.lang.operators.operands import expanded, floats, known, narrow, replaced, wide
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown


def _parts(x: Traced, axis: int, count: int, kind: str, filler: float) -> Traced:
    """Elements in `count` windows along an axis, folded: from ⌊i · size / count⌋ to below ⌈(i + 1) · size / count⌉."""
    size = known(x, axis, "adaptive pooling")
    if size % count == 0:
        apart = primitives.reshape(x, replaced(x.sizes, axis, count, size // count))
        found = primitives.reduce(kind, apart, [axis + 1])
        return elementwise("div", found, float(size // count)) if kind == "sum" else found
    # The windows differ by at most two elements: shorter ones have taps that do not count.
    most = max(-(-(at + 1) * size // count) - at * size // count for at in range(count))
    window, tap = primitives.iota((count,), 0), primitives.iota((count, most), 1)
    first = elementwise("floordiv", elementwise("mul", window, size), count)
    after = elementwise("floordiv", elementwise("add", elementwise("mul", window, size), size + count - 1), count)
    width = ew("sub", after, first)
    spot = elementwise("min", elementwise("add", expanded(first, [1]), tap), size - 1)
    taken = primitives.gather(x, spot, axis)
    behind = [1] * (x.ndim - axis - 1)
    inside = primitives.reshape(elementwise("lt", tap, expanded(width, [1])), (count, most, *behind))
    found = primitives.reduce(kind, elementwise("select", inside, taken, filler), [axis + 1])
    if kind != "sum":
        return found
    return elementwise("div", found, primitives.reshape(primitives.cast(width, x.dtype), (count, *behind)))


def _adaptive(name: str, kind: str, filler: float, said: str) -> Callable[..., Traced]:
    def function(x: Array, size: int | tuple[int | None, ...], /) -> Traced:
        (made,) = floats(name, x)
        rank = made.ndim - 2
        if rank < 1:
            raise ShapeError(f"{name}: expected [batch, channels, …]", shapes=shown(made), hint="add the missing axes")
        return narrow(pooled(name, wide(made), size, kind, filler), made.dtype)

    return operator_called(name, said, function)


def pooled(name: str, x: Traced, size: int | Sequence[int | None], kind: str, filler: float) -> Traced:
    """Sizes for the axes after [batch, channels]; None keeps one as it is."""
    rank = x.ndim - 2
    given = (size,) * rank if isinstance(size, int) else tuple(size)
    if len(given) != rank or any(one is not None and one < 1 for one in given):
        raise ShapeError(
            f"{name}: expected a size from 1 on, or one for each of {rank} axes, got {size}",
            shapes=shown(x),
            hint="None keeps an axis as it is",
        )
    for axis, one in enumerate(given, 2):
        if one is not None and (known(x, axis, name) == 0):
            raise ShapeError(f"{name}: axis {axis} has no elements", shapes=shown(x), hint="give at least one element")
        x = x if one is None else _parts(x, axis, one, kind, filler)
    return x


_SAID = """

`size` is one number, or one for each axis, of which None keeps its axis. As in torch, for one axis after
[batch, channels] and more: window i goes from ⌊i · n / size⌋ to below ⌈(i + 1) · n / size⌉ of n elements."""

adaptive_avg_pool = _adaptive(
    "adaptive_avg_pool", "sum", 0.0, f"The mean of each of `size` windows that an axis is divided into.{_SAID}"
)
adaptive_max_pool = _adaptive(
    "adaptive_max_pool",
    "max",
    float("-inf"),
    f"The largest element of each of `size` windows that an axis is divided into.{_SAID}",
)
