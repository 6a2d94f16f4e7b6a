"""Shapes of `tile.dot`: the last two axes multiply, and those in front number independent products."""

from __future__ import annotations

from tessera.errors import ShapeError
from tessera.shapes import rules
from tessera.shapes.expr import format_shape
from tessera.tile.language.values import AxisBounds, Tile, Undefined


def check_dot(a: Tile, b: Tile) -> None:
    """Refuses operands that are no tiles of rows and columns, or whose inner sizes differ."""
    for value in (a, b):
        if isinstance(value, Undefined):
            value.refuse()
        if not isinstance(value, Tile) or value.ndim < 2:  # pyright: ignore[reportUnnecessaryIsInstance]  # users pass anything
            raise ShapeError(
                f"dot takes tiles of two axes or more, got {value!r}", hint="load 2-D tiles, or insert axes"
            )
    if a.shape[-1] != b.shape[-2]:
        exchange = "transpose the right tile" if b.ndim == 2 else "exchange the last two axes of the right tile"
        raise ShapeError(
            f"dot: {a.shape[-1]} columns of the left tile do not meet {b.shape[-2]} rows of the right one",
            shapes=_shapes(a, b),
            hint=exchange if a.shape[-1] == b.shape[-1] else "load blocks of equal depth",
        )


def batch_of(a: Tile, b: Tile) -> tuple[int, ...]:
    """The leading axes of a product: equal ones, or those of the operand that has them, or more than one, there."""
    left, right = a.shape[:-2], b.shape[:-2]
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other and 1 not in (one, other):
            raise ShapeError(
                f"dot: {one} products of the left tile and {other} of the right one do not go together",
                shapes=_shapes(a, b),
                hint="leading axes have equal sizes, or size 1, or one tile has none",
            )
    return tuple(int(size) for size in rules.broadcast(left, right, where="dot"))  # pyright: ignore[reportArgumentType]  # tiles have constant sizes


def wrong_sum(a: Tile, b: Tile, start: Tile) -> ShapeError:
    """The error that a sum has not the shape of the product."""
    product = format_shape((*a.shape[:-1], b.shape[-1]))
    return ShapeError(
        f"dot: the sum has shape {format_shape(start.shape)}, the product {product}",
        shapes=[*_shapes(a, b), f"sum {format_shape(start.shape)}"],
        hint="give a sum of the product's shape, or none: then it starts with zeros",
    )


def bounds_of_dot(a: Tile, b: Tile, start: Tile) -> dict[int, AxisBounds]:
    """Where a product lies: its rows as those of the left operand, its columns as the right one's, the rest as both."""
    column, row = a.ndim - 1, a.ndim - 2
    found = {axis: bounds for axis, bounds in a.axis_bounds.items() if axis != column}
    right = ((axis, bounds) for axis, bounds in b.axis_bounds.items() if axis != row)
    for axis, bounds in (*right, *start.axis_bounds.items()):
        found[axis] = found[axis].beside(bounds) if axis in found else bounds
    return found


def _shapes(a: Tile, b: Tile) -> list[str]:
    return [f"left {format_shape(a.shape)}", f"right {format_shape(b.shape)}"]
