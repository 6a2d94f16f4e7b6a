"""The variables of a kernel while it is traced: tiles, scalars and views, with Python's operators.

Nothing here knows the IR: every operation goes to the tracer at work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, cast

from tessera import knobs
from tessera.dtypes.types import DType
from tessera.errors import CompileError, DtypeError, ShapeError
from tessera.shapes.annotations import Tile as TileAnnotation
from tessera.shapes.expr import Size

Number: TypeAlias = bool | int | float


class Operations(Protocol):
    """The operations that values ask for; `tracer.Tracer` has these and those of intrinsics."""

    def combine(self, name: str, left: object, right: object) -> Tile | Scalar: ...

    def apply(self, name: str, value: object) -> Tile | Scalar: ...

    def cast(self, value: Tile, dtype: DType) -> Tile: ...

    def transpose(self, value: Tile, permutation: Sequence[int]) -> Tile: ...

    def expand(self, value: Tile, axis: int) -> Tile: ...

    def size(self, view: View, axis: int) -> int | Scalar: ...

    def cut(self, value: Tile, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Tile: ...

    def part(self, view: View, indices: Mapping[int, object]) -> View: ...


CURRENT: ContextVar[Operations | None] = ContextVar("tracer", default=None)


def operations() -> Operations:
    """The operations of the tracer at work; an operation outside a kernel is an error."""
    found = CURRENT.get()
    if found is None:
        raise CompileError(
            "this is a tile operation, and no kernel is being traced",
            hint="call it inside a function decorated with @kernel",
        )
    return found


def is_tracing() -> bool:
    """Whether a kernel is being traced here."""
    return CURRENT.get() is not None


@contextmanager
def tracing(work: Operations) -> Generator[None]:
    """Tile operations meanwhile go to this tracer."""
    token = CURRENT.set(work)
    try:
        with knobs.deciding_too():
            yield
    finally:
        CURRENT.reset(token)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple or list as a tuple; anything else alone in one."""
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else (value,)


def shown(value: object) -> str:
    """A value as an error tells it, in one line."""
    first, _, rest = repr(value).partition("\n")
    return f"{first} …" if rest else first


def is_dynamic(value: object) -> bool:
    """Whether a value is known only when the kernel runs."""
    return isinstance(value, Scalar | Tile)


def _operator(name: str) -> Callable[[Any, Any], Any]:
    """Python's operator `value ∘ other`."""
    return lambda self, other: operations().combine(name, self, other)


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """Python's operator `other ∘ value`, where `other` is a number."""
    return lambda self, other: operations().combine(name, other, self)


def _of_one(name: str) -> Callable[[Any], Any]:
    """Python's operator with a single operand."""
    return lambda self: operations().apply(name, self)


class _Operators:
    """Python's operators: each is an operation of the tracer at work."""

    __slots__ = ()

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _operator("rem"), _reflected("rem")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __and__, __rand__ = _operator("and"), _reflected("and")
    __or__, __ror__ = _operator("or"), _reflected("or")
    __xor__, __rxor__ = _operator("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _operator("shl"), _reflected("shl")
    __rshift__, __rrshift__ = _operator("shr"), _reflected("shr")
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")
    __eq__, __ne__ = _operator("eq"), _operator("ne")
    # Comparing gives a value, so these are not usable as dictionary keys by equality.
    __hash__ = object.__hash__
    __neg__, __abs__, __invert__ = _of_one("neg"), _of_one("abs"), _of_one("not")

    def __bool__(self) -> bool:
        raise CompileError(
            f"{self} is known only when the kernel runs, and Python asks for its truth now",
            hint="use tile.where for tiles, & and | for conditions, or an if statement on a scalar condition",
        )

    def __index__(self) -> int:
        raise CompileError(
            f"{self} is known only when the kernel runs, and a static integer is needed here",
            hint="block sizes, shapes and axes are static: use T.m, T.n, T.d or a keyword-only parameter; "
            "a loop to a number of the program is tile.range",
        )

    def __iter__(self) -> Any:
        raise CompileError(f"{self} cannot be iterated over", hint="loops run over tile.range or tile.range_n")


class Scalar(_Operators):
    """One number that is known when the kernel runs. `dtype` is None for positions and sizes (`index`)."""

    __slots__ = ("dtype", "ssa")

    def __init__(self, ssa: Any, dtype: DType | None) -> None:
        self.ssa = ssa
        self.dtype = dtype

    def __repr__(self) -> str:
        return "a position" if self.dtype is None else f"a scalar of {self.dtype}"

    def __float__(self) -> float:
        raise CompileError(
            f"{self} is known only when the kernel runs; float() needs a number now",
            hint="convert it with tile.cast(x, f32)",
        )

    __int__ = _Operators.__index__


@dataclass(frozen=True)
class BlockIndex(_Operators):
    """The variable of a `tile.range_n` loop: a block of rows, from `start` on."""

    start: Scalar
    rows: int

    def __repr__(self) -> str:
        return f"a block of {self.rows} rows"


class AxisBound(NamedTuple):
    """The end of an array along an axis of a tile: the tile begins at `start`, the array ends at `limit`.

    A start of None means that it is not the same each time around a loop or in both branches of an if. `size` is the
    limit as the signature has it: arrays whose sizes are one symbol end together.
    """

    start: int | Scalar | None
    limit: int | Scalar
    size: Size

    def same(self, other: AxisBound) -> bool:
        ends_alike = self.size == other.size or _same(self.limit, other.limit)
        return ends_alike and self.begins_with(other)

    def begins_with(self, other: AxisBound) -> bool:
        return _same(self.start, other.start)


class AxisBounds(NamedTuple):
    """The bounds, along an axis of a tile, of all arrays that its elements were made of.

    An element is inside where it lies inside of all of them. `ragged` says that the tile may reach
    beyond the end of some, and that what lies there has not been masked.
    """

    bounds: tuple[AxisBound, ...]
    ragged: bool

    @property
    def first(self) -> AxisBound:
        return self.bounds[0]

    @property
    def is_known(self) -> bool:
        return all(bound.start is not None for bound in self.bounds)

    def same(self, other: AxisBounds | None) -> bool:
        return other is not None and self.has(other) and other.has(self)

    def has(self, other: AxisBounds) -> bool:
        """Whether all bounds of another are among these."""
        return all(any(one.same(bound) for one in self.bounds) for bound in other.bounds)

    def lost(self) -> AxisBounds:
        """The same in an unknown position."""
        return self._replace(bounds=tuple(bound._replace(start=None) for bound in self.bounds))

    def beside(self, other: AxisBounds) -> AxisBounds:
        """Where a tile lies whose elements are made of two: beyond an array is what is beyond one of them.

        What was masked, or never reaches beyond its array, bounds nothing any more.
        """
        if self.ragged is not other.ragged:
            return self if self.ragged else other
        added = tuple(bound for bound in other.bounds if not any(one.same(bound) for one in self.bounds))
        return self._replace(bounds=self.bounds + added)


def _same(a: int | Scalar | None, b: int | Scalar | None) -> bool:
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return isinstance(a, Scalar) and isinstance(b, Scalar) and a.ssa is b.ssa
    return a == b


class Tile(_Operators, TileAnnotation):
    """A block of elements: constant sizes, one type.

    `denominator` marks the row sums of a softmax; the weights of one know in `weighed` the scores, row maxima and row
    sums they came with. `axis_bounds` has, per axis that runs along an
    axis of some array, the bounds of that array.
    """

    __slots__ = ("axis_bounds", "denominator", "dtype", "shape", "ssa", "weighed")

    def __init__(
        self,
        ssa: Any,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        denominator: bool = False,
        axis_bounds: Mapping[int, AxisBounds] | None = None,
    ) -> None:
        self.ssa = ssa
        self.shape = shape
        self.dtype = dtype
        self.denominator = denominator
        self.axis_bounds = dict(axis_bounds or {})
        self.weighed: tuple[Tile, Tile, Tile] | None = None

    def __repr__(self) -> str:
        return f"a tile of {list(self.shape)} {self.dtype}"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tile:  # noqa: N802  (as NumPy has it)
        if self.ndim != 2:
            raise ShapeError(
                f".T is for tiles of two axes, this one has {self.ndim}",
                shapes=[str(list(self.shape))],
                hint="tile.transpose(x) exchanges the last two axes, tile.transpose(x, 2, 0, 1) orders all of them",
            )
        return operations().transpose(self, (1, 0))

    def _cut(self, parts: Sequence[slice]) -> Tile:
        """The part that slices of the first axes say."""
        if all(_is_all(part) for part in parts):
            return self
        try:
            ranges = [range(*part.indices(size)) for part, size in zip(parts, self.shape, strict=False)]
        except TypeError as error:
            raise ShapeError(f"{self} is cut by {parts}", hint="parts are between numbers known now") from error
        ranges += [range(size) for size in self.shape[len(parts) :]]
        if not all(ranges):
            raise ShapeError(
                f"{self} is cut into nothing along axis {next(axis for axis, one in enumerate(ranges) if not one)}",
                shapes=[str(list(self.shape))],
                hint="a tile has elements along every axis",
            )
        return operations().cut(self, [one[0] for one in ranges], list(map(len, ranges)), [one.step for one in ranges])

    def to(self, dtype: DType) -> Tile:
        return operations().cast(self, dtype)

    def __getitem__(self, key: Any) -> Tile:
        """`x[:, None]` inserts axes, `x[2:6, ::2]` is a part: both are known while the program is made."""
        parts = as_tuple(key)
        if any(part is not None and not isinstance(part, slice) for part in parts):
            raise ShapeError(
                f"{self} is indexed by {key!r}; only None and slices of numbers are possible",
                shapes=[str(list(self.shape))],
                hint="tile.take gives the elements at a tile of indices; tile.sum or tile.max fold an axis away",
            )
        if sum(part is not None for part in parts) > self.ndim:
            raise ShapeError(
                f"{len([part for part in parts if part is not None])} axes are indexed, the tile has {self.ndim}",
                shapes=[str(list(self.shape))],
            )
        result = self._cut([part for part in parts if part is not None])
        for axis, part in enumerate(parts):
            if part is None:
                result = operations().expand(result, axis)
        return Tile(
            result.ssa, result.shape, result.dtype, denominator=self.denominator, axis_bounds=result.axis_bounds
        )


def _is_all(part: Any) -> bool:
    """Whether a slice is `:`; one of scalars compares as scalars do."""
    return part.start is None and part.stop is None and part.step is None


@dataclass
class Places:
    """Computed places: an i64 tile for each axis of a view, and which of them are meant, where not all are.

    `axis_bounds` are those of a tile that has an element for each place.
    """

    indices: list[Tile]
    mask: Tile | None = None
    axis_bounds: dict[int, AxisBounds] = field(default_factory=dict[int, AxisBounds])


class View:
    """Memory given to a kernel: an argument, or the part of one (`whole`) at some indices.

    `axes` are those of the whole that its own are.
    """

    __slots__ = ("axes", "dtype", "name", "rank", "ssa", "whole")

    def __init__(self, ssa: Any, name: str, axes: Sequence[int], dtype: DType, whole: View | None = None) -> None:
        self.ssa = ssa
        self.name = name
        self.axes = tuple(axes)
        self.rank = len(self.axes)
        self.dtype = dtype
        self.whole = self if whole is None else whole

    def __repr__(self) -> str:
        return f"{self.name}, an array of rank {self.rank} and {self.dtype}"

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: integers where the signature says so, scalars otherwise."""
        return tuple(operations().size(self, axis) for axis in range(self.rank))

    def __getitem__(self, key: Any) -> View:
        """The part at some indices: `x[h]` is a view without the first axis, `x[:, h]` without the second."""
        parts = as_tuple(key)
        whole = [isinstance(part, slice) and _is_all(part) for part in parts]
        if len(parts) > self.rank or any(
            not all_of_it and isinstance(part, slice | Tile | None | EllipsisType)
            for part, all_of_it in zip(parts, whole, strict=True)
        ):
            raise ShapeError(
                f"{self}, is indexed by {shown(key)}; a view takes an integer or : for each axis",
                hint="x[h] drops the first axis, x[:, h] the second; tile.load takes the block you need from the rest, "
                "and tile.gather the elements at a tile of places",
            )
        return operations().part(self, {axis: part for axis, part in enumerate(parts) if not whole[axis]})

    def __bool__(self) -> bool:
        raise CompileError(
            f"{self}, has no truth value",
            hint="load a tile from it and reduce that; tile.item(x, i) is one element as a condition",
        )

    def refuse(self, *_: object) -> Any:
        """Raises: memory is used as if it were what lies in it."""
        raise DtypeError(
            f"{self}, is memory, not a value",
            hint="load a tile from it first: tile.load(...); tile.item(x, i) is one element as a number",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = refuse
    __neg__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = refuse
    __float__ = __int__ = __index__ = __iter__ = refuse
    # Comparing is refused, so these are told apart by identity.
    __hash__ = object.__hash__

    def __len__(self) -> int:
        raise CompileError(f"{self}, has no length that Python knows", hint="use x.shape[0]")

    def __setitem__(self, key: object, value: object) -> None:
        raise CompileError(
            f"{self}, is assigned to at {shown(key)}",
            hint="tile.store(x, value, at=(i, 0)) writes a tile at offsets, tile.scatter at a tile of indices",
        )


Position = int | Scalar


@dataclass(frozen=True, repr=False)
class Pages:
    """A place along the pages of an array: rows from `start` on, in the pages that a row of a table lists."""

    table: View
    row: tuple[object, ...]
    """Where the row is in the table."""
    start: Position
    length: Position | None
    """How many rows there are; None where pages are listed for all rows that are loaded."""

    def __repr__(self) -> str:
        return f"pages of {self.table.name}"


class Undefined:
    """A variable that has no value here: assigned only in a branch or a loop body."""

    __slots__ = ("name", "where")

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    def _refuse(self, *_: object) -> Any:
        self.refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __and__ = __or__ = __xor__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __neg__ = __bool__ = __call__ = __iter__ = __float__ = _refuse

    def __getattr__(self, name: str) -> Any:
        return self._refuse()

    def refuse(self) -> NoReturn:
        """Raises: the variable is used."""
        raise CompileError(
            f"{self.name} has no value here: it is assigned only {self.where}",
            hint=f"assign {self.name} before the {'loop' if 'loop' in self.where else 'if'}",
        )
