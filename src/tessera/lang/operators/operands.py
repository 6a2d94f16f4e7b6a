"""Operands of operators before ops are written: tensors of numbers, wide arithmetic, axes and counts."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tessera.dtypes.promotion import as_float, compute_type
from tessera.dtypes.types import DType, i32
from tessera.errors import DtypeError, ShapeError, caller_span
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor, typed
from tessera.lang.tracing.shape_rules import TraceAgain
from tessera.lang.tracing.values import Traced, shown, stories
from tessera.runtime.tensor.operators import nearest
from tessera.shapes import rules
from tessera.shapes.expr import element_count, format_shape

Axis: TypeAlias = int | tuple[int, ...] | None


def tensors(name: str, *xs: Any) -> list[Traced]:
    """Operands promoted to one type, not broadcast; numbers take the type of the tensors beside them."""
    made = typed(name, xs)
    return [tensor(x) for x in made] if builtins.all(x.weak for x in made) else made


def floats(name: str, *xs: Any) -> list[Traced]:
    """Operands promoted to one float type."""
    made = tensors(name, *xs)
    if not made[0].dtype.is_float:
        raise refusal(name, "a float tensor", made, "cast it first: ts.astype(x, ts.f32)")
    return made


def as_floats(name: str, *xs: Any) -> list[Traced]:
    """The same of functions that take integers and bools, too, in f32."""
    made = tensors(name, *xs)
    return floats(name, *(x if x.dtype.bits < 8 and x.dtype.is_integer else _in_float(x) for x in made))


def _in_float(x: Traced) -> Traced:
    """`x` in the type in which functions of floats take it."""
    return primitives.cast(x, as_float(x.dtype))


def refusal(name: str, expected: str, given: Sequence[Traced], hint: str) -> DtypeError:
    """An error about the element types of operands."""
    return DtypeError(
        f"{name} expects {expected}, got {', '.join(str(x.dtype) for x in given)}",
        shapes=shown(*given),
        story=stories(given),
        hint=hint,
    )


def wide(x: Traced) -> Traced:
    """`x` in the type that arithmetic on it is done in: f32 for narrower floats."""
    return primitives.cast(x, compute_type(x.dtype))


def computed(name: str, *xs: Any, by: Callable[..., Traced]) -> Traced:
    """`by` on float operands, computed in their compute type and rounded once into their own."""
    given = as_floats(name, *xs)
    return narrow(by(*(wide(x) for x in given)), given[0].dtype)


def narrow(x: Traced, dtype: DType) -> Traced:
    """A result rounded once into its type."""
    return primitives.cast(x, nearest(dtype))


def axes_of(x: Traced, axis: Axis, where: str) -> tuple[int, ...]:
    """Axes counted from the front; None means all."""
    if axis is None:
        return tuple(range(x.ndim))
    given = tuple(axis) if isinstance(axis, tuple | list | range) else (axis,)
    found = tuple(rules.normalize_axis(one, x.ndim, where=where) for one in given)
    if len(set(found)) != len(found):
        raise ShapeError(f"{where}: {list(given)} names an axis twice", shapes=shown(x), hint="name each axis once")
    return found


def one_axis(x: Traced, axis: int, where: str) -> int:
    return rules.normalize_axis(axis, x.ndim, where=where)


def counted(x: Traced, axes: Iterable[int], dtype: DType, *, less: float = 0) -> Traced | float:
    """How many elements are folded over `axes`, less some, 0 at least; with symbolic sizes it is computed with those.

    A sum of ones over the same axes of the same shape lies in the loop that folds `x` anyway.
    """
    over = tuple(axes)
    sizes = [x.sizes[axis] for axis in over]
    if builtins.all(isinstance(size, int) for size in sizes):
        return builtins.max(float(element_count(sizes)) - less, 0.0)  # pyright: ignore[reportArgumentType]  (numbers)
    ones = primitives.reduce("sum", primitives.constant(1, x.sizes, i32), over, keepdims=True)
    made = primitives.cast(ones, dtype)
    return made if not less else elementwise("max", elementwise("sub", made, less), 0.0)


def folded(x: Traced, axes: Sequence[int], keepdims: bool) -> Traced:
    """A value reduced with `keepdims`, without those axes where they are not wanted."""
    if keepdims:
        return x
    return primitives.reshape(x, [size for axis, size in enumerate(x.sizes) if axis not in axes])


def require_elements(x: Traced, axes: Sequence[int], where: str) -> None:
    """Refuses to fold no elements where there is no answer; of a symbolic size, the trace depends on there being some.

    Without numbers at hand it is not asked: there may be elements.
    """
    for axis in axes:
        extent = x.sizes[axis]
        sizes = x.trace.sizes
        if not isinstance(extent, int) and (sizes.numbers is None or not extent.symbols <= sizes.numbers.keys()):
            continue
        if extent == 0 if isinstance(extent, int) else sizes.ask(extent, "==", 0):
            raise ShapeError(
                f"{where}: axis {axis} has no elements, and {where} of nothing has no value",
                shapes=[f"{format_shape(x.sizes)} of {x.dtype}"],
                story=x.history.lines(),
                hint="give at least one element",
            )


def replaced(sizes: Sequence[Any], axis: int, *new: Any) -> tuple[Any, ...]:
    """Sizes, or bounds of slices, with others instead of one."""
    return (*sizes[:axis], *new, *sizes[axis + 1 :])


def expanded(x: Traced, axes: Sequence[int]) -> Traced:
    """`x` with axes of size 1 put in; they count in the result."""
    return primitives.reshape(x, rules.expand_dims(x.sizes, tuple(axes)))


def moved_last(rank: int, axis: int) -> list[int]:
    """The permutation that brings one axis to the end."""
    return [*(at for at in range(rank) if at != axis), axis]


def moved_from_last(rank: int, axis: int) -> list[int]:
    """The permutation that moves the last axis to another position."""
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return order


def known(x: Traced, axis: int, where: str) -> int:
    """A size that must be a number. A symbolic one is traced again as that of the call at hand."""
    size = x.sizes[axis]
    if isinstance(size, int):
        return size
    numbers = x.trace.sizes.numbers
    if numbers is None or not size.symbols <= numbers.keys():
        raise ShapeError(
            f"{where}: axis {axis} must have a known size, and has {size}",
            shapes=shown(x),
            story=x.history.lines(),
            hint="give it a number in the annotation",
        )
    raise TraceAgain(dict.fromkeys(size.symbols), f"{where} needs the size of axis {axis} as a number", caller_span())
