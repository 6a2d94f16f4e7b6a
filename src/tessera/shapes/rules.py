"""Shape rules: what shape an operation gives, on known and symbolic sizes alike.

A rule takes shapes as sequences of `int | Dim` and returns a tuple of the same; shapes of plain ints give
plain ints and never touch the algebra. `where` names the operation in messages; an error tells `histories` as
its story.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index

from tessera.errors import RangeError, ShapeError
from tessera.shapes.bounds import Interval, at_least
from tessera.shapes.expr import Dim, Shape, Size, ceil_div, dim, element_count, exact_quotient, format_shape, size
from tessera.shapes.history import ShapeHistory, tell

Histories = Sequence[ShapeHistory]


def _refuse(where: str, message: str, shapes: Sequence[str], hint: str, histories: Histories = ()) -> ShapeError:
    return ShapeError(f"{where}: {message}", shapes=shapes, story=tell(histories), hint=hint)


def _axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def _unequal(left: Size, right: Size) -> str:
    if isinstance(left, int) and isinstance(right, int):
        return f"{left} and {right} differ"
    return f"{left} and {right} are not known to be equal"


def broadcast(*shapes: Sequence[Size], where: str = "broadcast", histories: Histories = ()) -> Shape:
    """NumPy's rule: aligned at the last axis, equal sizes or 1. A symbol goes only with itself or 1."""
    if not shapes:
        return ()
    result = tuple(shapes[0])
    for other in shapes[1:]:
        if result == other:
            continue
        wide, narrow = (result, other) if len(result) >= len(other) else (other, result)
        sizes = list(wide)
        for axis, right in enumerate(narrow, len(wide) - len(narrow)):
            left = sizes[axis]
            if right in (left, 1):
                continue
            if left != 1:
                raise _no_broadcast(shapes, axis - len(wide), where, histories)
            sizes[axis] = right
        result = tuple(sizes)
    return result


def _no_broadcast(shapes: Sequence[Sequence[Size]], axis: int, where: str, histories: Histories) -> ShapeError:
    sizes = list(dict.fromkeys(shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1))
    known = all(isinstance(item, int) for item in sizes)
    return _refuse(
        where,
        f"shapes do not broadcast: at axis {axis}, {_unequal(sizes[0], sizes[1])}",
        [format_shape(shape) for shape in shapes],
        "sizes must be equal or 1, counted from the last axis"
        if known
        else "use one name for sizes that are always equal, and 1 for an axis that is repeated",
        histories,
    )


def matmul(a: Sequence[Size], b: Sequence[Size], *, where: str = "matmul", histories: Histories = ()) -> Shape:
    """[..., M, K] times [..., K, N] is [..., M, N]; the leading axes broadcast."""
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise _no_matmul(a, b, where, histories)
    if len(a) == len(b) == 2:
        return a[0], b[1]
    return (*broadcast(a[:-2], b[:-2], where=where, histories=histories), a[-2], b[-1])


def _no_matmul(a: Sequence[Size], b: Sequence[Size], where: str, histories: Histories) -> ShapeError:
    shapes = [f"left {format_shape(a)}", f"right {format_shape(b)}"]
    for side, shape in (("left", a), ("right", b)):
        if len(shape) < 2:
            message = f"expected at least 2 axes, the {side} operand has {len(shape)}"
            return _refuse(where, message, shapes, "give a vector its second axis with expand_dims", histories)
    return _refuse(
        where,
        f"the columns of the left operand must match the rows of the right one: {_unequal(a[-1], b[-2])}",
        shapes,
        "transpose the right operand: its last axis fits"
        if a[-1] == b[-1]
        else "the last axis of the left and the second to last axis of the right are summed over",
        histories,
    )


def normalize_axis(axis: int, rank: int, *, where: str = "axis") -> int:
    """`axis` counted from the front; negative axes count from the back."""
    try:
        number = index(axis)
    except TypeError:
        raise ShapeError(f"{where}: expected an integer for an axis, got {axis!r}", hint="name one axis") from None
    if -rank <= number < rank:
        return number % rank
    hint = f"use an axis from {-rank} to {rank - 1}" if rank else "a shape without axes has none to name"
    raise RangeError(f"{where}: axis {axis} is out of range for {_axes(rank)}", hint=hint)


def _normalize_axes(axes: Sequence[int], rank: int, where: str) -> list[int]:
    normal = [normalize_axis(axis, rank, where=where) for axis in axes]
    if len(set(normal)) != len(normal):
        raise ShapeError(f"{where}: {list(axes)} names an axis twice", hint="name each axis once")
    return normal


def reduce(shape: Sequence[Size], axes: Sequence[int], keepdims: bool = False, *, where: str = "reduce") -> Shape:
    """`shape` with `axes` removed, or kept with size 1."""
    gone = _normalize_axes(axes, len(shape), where)
    if keepdims:
        return tuple([1 if axis in gone else item for axis, item in enumerate(shape)])
    return tuple([item for axis, item in enumerate(shape) if axis not in gone])


def transpose(shape: Sequence[Size], permutation: Sequence[int], *, where: str = "transpose") -> Shape:
    """Axis i of the result is axis permutation[i] of `shape`."""
    order = _normalize_axes(permutation, len(shape), where)
    if len(order) != len(shape):
        message = f"expected a permutation of {_axes(len(shape))}, got {list(permutation)}"
        raise _refuse(where, message, [format_shape(shape)], "name each axis once")
    return tuple([shape[axis] for axis in order])


def expand_dims(shape: Sequence[Size], axis: int | Sequence[int], *, where: str = "expand_dims") -> Shape:
    """`shape` with axes of size 1 put in; `axis` counts in the result."""
    axes = (axis,) if isinstance(axis, int) else axis
    rank = len(shape) + len(axes)
    new = _normalize_axes(axes, rank, where)
    rest = iter(shape)
    return tuple([1 if at in new else next(rest) for at in range(rank)])


def squeeze(shape: Sequence[Size], axis: int | Sequence[int], *, where: str = "squeeze") -> Shape:
    """`shape` without `axis`, whose size must be 1."""
    gone = _normalize_axes((axis,) if isinstance(axis, int) else axis, len(shape), where)
    for at in gone:
        if shape[at] != 1:
            doubt = "" if isinstance(shape[at], int) else ", which is not known to be 1"
            message = f"axis {at} has size {shape[at]}{doubt}"
            raise _refuse(where, message, [format_shape(shape)], "only axes of size 1 can be dropped")
    return tuple([item for at, item in enumerate(shape) if at not in gone])


def reshape(
    shape: Sequence[Size], target: Sequence[Size], *, where: str = "reshape", histories: Histories = ()
) -> Shape:
    """`target`, with a single -1 replaced by what is left over; the number of elements must stay the same."""
    if -1 not in target:
        if element_count(shape) == element_count(target) and not _has_negative(target):
            return tuple(target)
    elif not _has_negative(rest := [item for item in target if item != -1]) and len(rest) == len(target) - 1:
        left = _split(element_count(shape), element_count(rest))
        if left is not None:
            return tuple([left if item == -1 else item for item in target])
    raise _no_reshape(shape, target, where, histories)


def _split(total: Size, known: Size) -> Size | None:
    if isinstance(total, int) and isinstance(known, int):
        return total // known if known and total % known == 0 else None
    left = exact_quotient(total, known)
    return None if left is None else size(left)


def _has_negative(sizes: Sequence[Size]) -> bool:
    for item in sizes:  # noqa: SIM110  (no generator: this is on the eager path)
        if isinstance(item, int) and item < 0:
            return True
    return False


def _no_reshape(shape: Sequence[Size], target: Sequence[Size], where: str, histories: Histories) -> ShapeError:
    rest = [item for item in target if item != -1]
    holes = len(target) - len(rest)
    total, known = element_count(shape), element_count(rest)
    concrete = isinstance(total, int) and isinstance(known, int)
    if holes > 1 or _has_negative(rest):
        message, hint = f"{format_shape(target)} is not a shape", "sizes are at least 0, and one may be -1"
    elif not holes:
        message = f"the number of elements changes: {_unequal(total, known)}"
        hint = "the product of the sizes must stay the same; -1 stands for the size that makes it fit"
    elif concrete:
        message = f"{total} elements do not split into groups of {known}"
        hint = "the sizes beside -1 must divide the number of elements"
    else:
        message = f"{total} elements are not known to split into groups of {known}"
        hint = f"declare an axis of the input as a product, such as '{known}*n', so that the division is exact"
    shapes = [f"from {format_shape(shape)}", f"to {format_shape(target)}"]
    return _refuse(where, message, shapes, hint, histories)


def concatenate(
    shapes: Sequence[Sequence[Size]], axis: int, *, where: str = "concatenate", histories: Histories = ()
) -> Shape:
    """Sizes along `axis` add up; all others must be equal."""
    if not shapes:
        raise ShapeError(f"{where}: expected at least one array", hint="give one or more arrays")
    first = shapes[0]
    joined_axis = normalize_axis(axis, len(first), where=where)
    for number, other in enumerate(shapes[1:], 1):
        message = None
        if len(other) != len(first):
            message = f"input 0 has {_axes(len(first))}, input {number} has {len(other)}"
        for at, (left, right) in enumerate(zip(first, other, strict=False)):
            if message is None and at != joined_axis and left != right:
                message = f"inputs 0 and {number} must agree at axis {at}: {_unequal(left, right)}"
        if message is not None:
            hint = f"only axis {joined_axis}, the one joined, may differ"
            raise _refuse(where, message, [format_shape(shape) for shape in shapes], hint, histories)
    joined: Size = 0
    for shape in shapes:
        joined = joined + shape[joined_axis]
    return (*first[:joined_axis], size(joined), *first[joined_axis + 1 :])


def gather(
    shape: Sequence[Size], indices_shape: Sequence[Size], axes: int | Sequence[int], *, where: str = "gather"
) -> Shape:
    """Taking along an axis, or several in order at once: the axes of the indices stand where the first of them was."""
    along = [normalize_axis(axis, len(shape), where=where) for axis in ([axes] if isinstance(axes, int) else axes)]
    if not along or along != sorted(set(along)):
        message = f"axes to take along are some, in order, got {along}"
        raise _refuse(where, message, [format_shape(shape)], "name each axis once, the first one first")
    rest = [item for axis, item in enumerate(shape) if axis not in along]
    return (*rest[: along[0]], *indices_shape, *rest[along[0] :])


def pad(shape: Sequence[Size], low: Sequence[Size], high: Sequence[Size], *, where: str = "pad") -> Shape:
    """`shape` grown by `low` before and `high` after each axis."""
    _expect_per_axis(shape, {"low": low, "high": high}, where)
    if _has_negative(low) or _has_negative(high):
        message = f"amounts must be at least 0, got low {format_shape(low)}, high {format_shape(high)}"
        raise _refuse(where, message, [format_shape(shape)], "to crop, take a slice")
    return tuple([size(item + before + after) for item, before, after in zip(shape, low, high, strict=True)])


def slice_shape(
    shape: Sequence[Size],
    starts: Sequence[Size | None],
    stops: Sequence[Size | None],
    steps: Sequence[int | None],
    *,
    where: str = "slice",
    known: Mapping[str, Interval] | None = None,
) -> Shape:
    """Python's slices, one per axis; None means what it means there.

    On a symbolic axis the bounds must provably lie inside it, from sizes being at least 0 and from `known`
    (intervals of symbols): `1:` of "S + 1" is S, while `1:` of "S" is refused, because S may be 0.
    """
    _expect_per_axis(shape, {"starts": starts, "stops": stops, "steps": steps}, where)
    result: list[Size] = []
    for axis, (item, start, stop, step) in enumerate(zip(shape, starts, stops, steps, strict=True)):
        stride = 1 if step is None else step
        if stride == 0:
            raise _refuse(where, f"axis {axis} has step 0", [format_shape(shape)], "use a step other than 0")
        length = _slice_length(item, start, stop, stride, known)
        if length is None:
            text = ":".join("" if part is None else str(part) for part in (start, stop, step))
            raise _refuse(
                where,
                f"axis {axis}: {text} is not known to lie inside size {item}",
                [format_shape(shape)],
                "make it provable: an axis declared as 'S + 1' is known to have at least one element"
                if stride > 0
                else "a negative step needs a known size, or no bounds at all",
            )
        result.append(length)
    return tuple(result)


def _expect_per_axis(shape: Sequence[Size], arguments: Mapping[str, Sequence[Size | None]], where: str) -> None:
    for name, items in arguments.items():
        if len(items) != len(shape):
            message = f"expected one entry of {name} per axis, got {len(items)} for {_axes(len(shape))}"
            raise _refuse(where, message, [format_shape(shape)], "give one entry per axis")


def _slice_length(
    item: Size, start: Size | None, stop: Size | None, step: int, known: Mapping[str, Interval] | None
) -> Size | None:
    """The number of elements taken, or None where it cannot be decided."""
    if not (isinstance(item, Dim) or isinstance(start, Dim) or isinstance(stop, Dim)):
        return len(range(*slice(start, stop, step).indices(item)))
    if step < 0:
        return size(ceil_div(item, -step)) if start is None and stop is None else None

    ends: list[Size] = []
    for bound, default in ((start, 0), (stop, item)):
        end = default if bound is None else bound
        if at_least(-end, 1, known):
            end = item + end
        if not (at_least(end, 0, known) and at_least(item - end, 0, known)):
            return None
        ends.append(end)
    length = dim(ends[1]) - ends[0]
    if at_least(-length, 0, known):
        return 0
    return size(ceil_div(length, step)) if at_least(length, 0, known) else None
