"""Tiles whose elements change places: taken, reshaped, cut, joined, reversed, scanned and sorted.

All of these are made of one operation, `take`, and of elementwise work: places are numbers like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tessera.dtypes.types import Kind, i32, i64
from tessera.errors import DtypeError, ShapeError
from tessera.shapes import rules
from tessera.tile.language.current_tracer import tracer
from tessera.tile.language.places import index_tile
from tessera.tile.language.values import Tile, Undefined, as_tuple

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "concat",
    "cumsum",
    "flip",
    "reshape",
    "scan",
    "slice",
    "sort",
    "take",
    "topk",
]


def checked_tile(value: object, what: str) -> Tile:
    if isinstance(value, Undefined):
        value.refuse()
    if not isinstance(value, Tile):
        raise DtypeError(f"tile.{what} takes a tile, got {value!r}", hint="make one with tile.load or tile.full")
    return value


def axis_of(x: Tile, axis: object, what: str) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ShapeError(f"tile.{what} goes along one axis, and {axis!r} is none", hint="give its number")
    return rules.normalize_axis(axis, x.ndim, where=what)


def _count(value: object, what: str, most: int, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ShapeError(f"{what} must be an integer known now, got {value!r}", hint="give a number")
    if not least <= value <= most:
        raise ShapeError(f"{what} is {value}, and {least} to {most} are possible", hint="check the sizes")
    return value


def _positions(shape: Sequence[int], axis: int) -> Tile:
    """The position along an axis, everywhere in a tile."""
    return tracer().iota(tuple(shape), axis, 0, i64)


def _taken(x: Tile, shape: Sequence[int], at: Callable[[int], Tile]) -> Tile:
    """The elements of `x` at the places that `at` gives for each of its axes, tiles of `shape`."""
    work = tracer()
    return work.take(x, [work.broadcast(at(axis), tuple(shape)) for axis in range(x.ndim)])


def _moved(x: Tile, axis: int, at: Tile, shape: Sequence[int] | None = None) -> Tile:
    """The elements of `x` at other places along one axis."""
    shape = x.shape if shape is None else tuple(shape)
    return _taken(x, shape, lambda one: at if one == axis else _positions(shape, one))


def take(x: Tile, indices: object, axis: int | None = None) -> Tile:
    """The elements at a tile of indices: along one axis, as NumPy's `take_along_axis`, or with a tile for each axis.

    Along an axis the indices have the sizes of the result; along the others it has those of `x`. 0 where an index
    lies outside.
    """
    checked_tile(x, "take")
    work = tracer()
    if axis is None:
        each = as_tuple(indices)
        if len(each) != x.ndim:
            raise ShapeError(
                f"{len(each)} tiles of indices for {x}", hint=f"give {x.ndim}, one for each axis, or axis="
            )
        return work.take(x, work.align([index_tile(work, one) for one in each], "indices"))
    along, index = axis_of(x, axis, "take"), index_tile(work, indices)
    if index.ndim != x.ndim or any(
        size not in (1, other)
        for one, (size, other) in enumerate(zip(index.shape, x.shape, strict=True))
        if one != along
    ):
        raise ShapeError(
            f"indices of {list(index.shape)} along axis {along} of {x}",
            hint="along all other axes they have the sizes of the tile, or 1",
        )
    shape = tuple(size if one != along else index.shape[along] for one, size in enumerate(x.shape))
    return _moved(x, along, index, shape)


def reshape(x: Tile, shape: object) -> Tile:
    """The same elements, row by row, in another shape; one size may be -1."""
    checked_tile(x, "reshape")
    given = [_count(size, "a tile's size", 1 << 31, -1) for size in as_tuple(shape)]
    total, known = prod(x.shape), prod(size for size in given if size != -1)
    if given.count(-1) == 1 and known and total % known == 0:
        given[given.index(-1)] = total // known
    if prod(given) != total or any(size < 1 for size in given):
        raise ShapeError(
            f"{x} as {list(as_tuple(shape))}: it has {total} elements", hint="the product of all sizes stays as it is"
        )
    made = tuple(given)
    if made == x.shape:
        return x
    work = tracer()
    flat = _positions(made, 0)
    for axis, size in enumerate(made[1:], 1):
        flat = work.combine("add", work.combine("mul", flat, size), _positions(made, axis))
    places: list[Tile] = []
    for size in reversed(x.shape):
        places.insert(0, work.combine("rem", flat, size) if len(places) < x.ndim - 1 else flat)
        flat = work.combine("floordiv", flat, size)
    return work.take(x, places)


def slice(x: Tile, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> Tile:  # noqa: A001  (as others call it)
    """A part of a tile, also as `x[2:6, ::2]`: so many elements along each axis, from a start on."""
    checked_tile(x, "slice")
    steps = [1] * x.ndim if steps is None else list(steps)
    if not len(starts) == len(sizes) == len(steps) == x.ndim:
        raise ShapeError(f"{len(starts)} starts and {len(sizes)} sizes for {x}", hint=f"give {x.ndim} of each")
    for start, size, step, extent in zip(starts, sizes, steps, x.shape, strict=True):
        _count(start, "the start of a slice", extent - 1, 0)
        _count(size, "the size of a slice", extent)
        last = start + (size - 1) * step
        if step == 0 or not 0 <= last < extent:
            raise ShapeError(
                f"a slice from {start} on, of {size} elements with step {step}, leaves an axis of {extent}",
                hint="a part lies inside of its tile",
            )
    return tracer().cut(x, starts, sizes, steps)


def flip(x: Tile, axis: int = -1) -> Tile:
    """The elements along an axis in the opposite order."""
    along = axis_of(checked_tile(x, "flip"), axis, "flip")
    last = x.shape[along] - 1
    return _moved(x, along, tracer().combine("sub", last, _positions(x.shape, along)))


def concat(tiles: Sequence[Tile], axis: int = -1) -> Tile:
    """Tiles one behind the other along an axis; all else about them is equal."""
    parts = [checked_tile(one, "concat") for one in as_tuple(tiles)]
    if not parts:
        raise ShapeError("tile.concat of no tiles", hint="give at least one")
    first, work = parts[0], tracer()
    along = axis_of(first, axis, "concat")
    for one in parts[1:]:
        alike = one.ndim == first.ndim and all(
            size == other
            for number, (size, other) in enumerate(zip(one.shape, first.shape, strict=True))
            if number != along
        )
        if not alike or one.dtype.base is not first.dtype.base:
            raise ShapeError(
                f"tile.concat of {first} and {one} along axis {along}",
                hint="other axes have equal sizes, and elements one type: cast one of the two",
            )
    total = sum(one.shape[along] for one in parts)
    shape = tuple(total if number == along else size for number, size in enumerate(first.shape))
    position, end = _positions(shape, along), 0
    found: Tile | None = None
    for one in parts:
        part = _moved(one, along, work.combine("sub", position, end) if end else position, shape)
        found = part if found is None else work.where(work.combine("lt", position, end), found, part)
        end += one.shape[along]
    assert found is not None
    return found


def scan(x: Any, combine: Callable[[Any, Any], Any] | str, axis: int = -1, *, reverse: bool = False) -> Any:
    """Running results along an axis: element i is that of elements 0 to i, or i to the last with `reverse`.

    `combine` is any associative function of two tiles; of tuples of tiles where `x` is one. The order of its
    operands is that of elements, however they are grouped, and the grouping is always the same. Reductions that have a
    name, "sum", "prod", "max" and "min", are faster.
    """
    if isinstance(combine, str):
        return _named_scan(checked_tile(x, "scan"), combine, axis, reverse=reverse)
    several = isinstance(x, tuple)
    state: tuple[Tile, ...] = tuple(checked_tile(one, "scan") for one in as_tuple(x))
    along, work = axis_of(state[0], axis, "scan"), tracer()
    if any(one.shape != state[0].shape for one in state):
        raise ShapeError("tile.scan of tiles of different shapes", hint="broadcast them first")
    shape, extent, step = state[0].shape, state[0].shape[along], 1
    position = _positions(shape, along)
    while step < extent:
        if reverse:
            beyond = work.combine("ge", position, extent - step)
            at = work.combine("min", work.combine("add", position, step), extent - 1)
        else:
            beyond = work.combine("lt", position, step)
            at = work.combine("max", work.combine("sub", position, step), 0)
        others = tuple(_moved(one, along, at) for one in state)
        pair = (state, others) if reverse else (others, state)
        made = as_tuple(combine(*pair) if several else combine(pair[0][0], pair[1][0]))
        if len(made) != len(state) or any(
            not isinstance(new, Tile) or new.shape != old.shape for new, old in zip(made, state, strict=False)
        ):
            raise ShapeError(
                f"the function of tile.scan gives {made!r}", hint="it gives what it takes: tiles of the same shapes"
            )
        state = tuple(work.where(beyond, old, work.cast(new, old.dtype)) for old, new in zip(state, made, strict=True))
        step *= 2
    return state if several else state[0]


def cumsum(x: Tile, axis: int = -1, *, reverse: bool = False) -> Tile:
    """Running sums along an axis."""
    return _named_scan(checked_tile(x, "cumsum"), "sum", axis, reverse=reverse)


def _named_scan(x: Tile, kind: str, axis: int, *, reverse: bool) -> Tile:
    along = axis_of(x, axis, "scan")
    if not reverse:
        return tracer().scanned(kind, x, along)
    return flip(tracer().scanned(kind, flip(x, along), along), along)


def _is_greater(a: Tile, b: Tile) -> Tile:
    """Whether one element comes behind another; NaN behind all others."""
    work = tracer()
    greater = work.combine("gt", a, b)
    if not a.dtype.is_float:
        return greater
    unordered = work.combine("and", work.apply("isnan", a), work.apply("not", work.apply("isnan", b)))
    return work.combine("or", greater, unordered)


def _sorted(x: Tile, axis: int, *, descending: bool, order: bool) -> tuple[Tile, Tile | None]:
    """A bitonic network over an axis; with `order`, equal elements stay in order, and their indices come along."""
    work, extent = tracer(), x.shape[axis]
    whole = 1 << (extent - 1).bit_length()
    shape = tuple(whole if one == axis else size for one, size in enumerate(x.shape))
    position = _positions(shape, axis)
    values = x if whole == extent else _moved(x, axis, position, shape)
    ranks = position if order or whole != extent else None

    def behind(a: Tile, rank_a: Tile | None, b: Tile, rank_b: Tile | None) -> Tile:
        found = _is_greater(b, a) if descending else _is_greater(a, b)
        if rank_a is None or rank_b is None:
            return found
        reverse = _is_greater(a, b) if descending else _is_greater(b, a)
        same = work.apply("not", work.combine("or", found, reverse))
        found = work.combine("or", found, work.combine("and", same, work.combine("gt", rank_a, rank_b)))
        if whole == extent:
            return found
        # What only fills the axis up comes last.
        fills_a, fills_b = (work.combine("ge", rank, extent) for rank in (rank_a, rank_b))
        return work.where(work.combine("xor", fills_a, fills_b), fills_a, found)

    run = 2
    while run <= whole:
        reach = run // 2
        while reach:
            at = work.combine("xor", position, reach)
            other, rank = _moved(values, axis, at), None if ranks is None else _moved(ranks, axis, at)
            up = work.combine("eq", work.combine("and", position, run), 0)
            first = work.combine("eq", work.combine("and", position, reach), 0)
            swaps = work.where(
                work.combine("eq", up, first), behind(values, ranks, other, rank), behind(other, rank, values, ranks)
            )
            values = work.where(swaps, other, values)
            ranks = None if ranks is None or rank is None else work.where(swaps, rank, ranks)
            reach //= 2
        run *= 2
    return values, ranks


def _cut(x: Tile, axis: int, count: int) -> Tile:
    return slice(x, [0] * x.ndim, [count if one == axis else size for one, size in enumerate(x.shape)])


def _inverted(key: Tile, *, when: bool) -> Tile:
    return tracer().apply("not", key) if when else key


def _whole(x: Tile) -> Tile:
    """Whole numbers that sort as elements do, and tell them apart: -0 comes before 0."""
    work = tracer()
    if not x.dtype.is_float:
        return x
    key = work.apply("sort_key", x)
    below = work.combine("lt", work.combine("copysign", work.full(x.shape, 1.0, x.dtype), x), 0)
    lowered = work.combine("and", work.combine("eq", x, 0), below)
    return work.where(lowered, -1, key)


def sort(x: Tile, axis: int = -1, *, descending: bool = False) -> Tile:
    """The elements along an axis in ascending order, NaN last; with `descending` the other way round, NaN first.

    Of zeros, -0 comes first.
    """
    along, work = axis_of(checked_tile(x, "sort"), axis, "sort"), tracer()
    if x.dtype.bits < 8:
        return _cut(_sorted(x, along, descending=descending, order=False)[0], along, x.shape[along])
    found = _inverted(work.sorted(_inverted(_whole(x), when=descending), along), when=descending)
    return work.cast(work.apply("from_sort_key", found), x.dtype) if x.dtype.is_float else found


def _packed(x: Tile, axis: int, *, descending: bool) -> tuple[Tile, int] | None:
    """Keys of elements with their places in the lowest bits, and how many those are; None where they have no room."""
    work, dtype = tracer(), x.dtype
    if not 8 <= dtype.bits <= 32:
        return None
    key = work.apply("sort_key", x) if dtype.is_float else work.cast(x, i64)
    short = dtype.bits <= 16 and dtype.name != "f16" and x.shape[axis] <= 1 << 16
    bits, carrier = (16, i32) if short else (32, i64)
    if short and dtype.is_float:
        key = work.combine("shr", key, 16)
    elif dtype.kind is Kind.UINT:
        # As many numbers below 0 as above: keys are signed.
        key = work.combine("sub", key, 1 << (bits - 1))
    place = work.cast(_positions(x.shape, axis), carrier)
    high = work.combine("shl", _inverted(work.cast(key, carrier), when=descending), bits)
    return work.combine("or", high, place), bits


def _order(x: Tile, axis: int, *, descending: bool) -> Tile:
    """The places of elements in order, those of equal ones in order, too."""
    work, packed = tracer(), _packed(x, axis, descending=descending)
    if packed is None:
        ranks = _sorted(x, axis, descending=descending, order=True)[1]
        assert ranks is not None
        return ranks
    keys, bits = packed
    return work.cast(work.combine("and", work.sorted(keys, axis), (1 << bits) - 1), i64)


def argsort(x: Tile, axis: int = -1, *, descending: bool = False) -> Tile:
    """The indices that sort an axis; equal elements stay in order."""
    along = axis_of(checked_tile(x, "argsort"), axis, "argsort")
    return _cut(_order(x, along, descending=descending), along, x.shape[along])


def topk(x: Tile, k: int, axis: int = -1, *, largest: bool = True) -> tuple[Tile, Tile]:
    """The k largest (or smallest) elements along an axis, in order, and their indices; of equal ones the first."""
    along = axis_of(checked_tile(x, "topk"), axis, "topk")
    count = _count(k, "the k of tile.topk", x.shape[along])
    places = _cut(_order(x, along, descending=largest), along, count)
    return take(x, places, along), places


def _extreme(name: str, kind: str, what: str) -> Callable[..., Tile]:
    def find(x: Tile, axis: int = -1, *, keepdims: bool = False) -> Tile:
        work, along = tracer(), axis_of(checked_tile(x, name), axis, name)
        best = work.expand(work.reduce(kind, x, along), along)
        found = work.combine("eq", x, best)
        if x.dtype.is_float:  # the first NaN, where there is one
            nothing = work.combine("and", work.apply("isnan", x), work.apply("isnan", best))
            found = work.combine("or", found, nothing)
        position = work.where(found, _positions(x.shape, along), x.shape[along])
        least = work.reduce("min", position, along)
        return work.expand(least, along) if keepdims else least

    find.__name__ = find.__qualname__ = name
    find.__doc__ = (
        f"The index of the {what} element along an axis, the first of equal ones; that of a NaN, if there is one."
    )
    return find


argmax, argmin = _extreme("argmax", "max", "largest"), _extreme("argmin", "min", "smallest")
