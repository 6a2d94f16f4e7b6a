"""The grid of a kernel: given as sizes, worked out of sizes by a function, or inferred."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

from tessera.dtypes.types import DType
from tessera.errors import CompileError, ShapeError, SourceSpan, TesseraError
from tessera.shapes.expr import Dim, Shape, Size, dim, size
from tessera.tile.calls.attributes import Attributes
from tessera.tile.identity.static_keys import exact
from tessera.tile.language.context import current_context
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.values import Scalar, View

if TYPE_CHECKING:
    from tessera.ir.tile.grid_of_stores import Unclear
    from tessera.tile.language.tracer import Tracer

_NOTHING_TO_FILL = "no parameter is annotated Out, so that stores do not tell how far the grid goes"

BLOCKS = "block"
"""The parameter of a grid's function that has the block sizes."""


class ArrayShape(NamedTuple):
    """An array as a grid's function sees it; sizes are symbols, or numbers where annotations fix them."""

    shape: Shape
    dtype: DType

    @property
    def ndim(self) -> int:
        return len(self.shape)


class GridOfStores:
    """In place of a grid of so many numbers: the sizes that stores ask for, so that one program serves many grids.

    It is right for the calls in which it comes to the numbers that were given.
    """

    __slots__ = ("axes",)

    def __init__(self, axes: int) -> None:
        self.axes = axes

    def identity_parts(self) -> tuple[int]:
        """What it is in the keys of programs on the disk."""
        return (self.axes,)


GRID_OF_STORES = {axes: GridOfStores(axes) for axes in (1, 2, 3)}


class GridFunction:
    """A function of a kernel's parameters that works out its grid; equal to others of the same code.

    It `takes_blocks` where it asks for the block sizes, so that the grid follows them.
    """

    __slots__ = ("function", "key", "names", "span", "takes_blocks")

    def __init__(self, function: Callable[..., object], names: Sequence[str], *, takes_blocks: bool) -> None:
        self.function = function
        self.names = tuple(names)
        self.takes_blocks = takes_blocks
        self.span: SourceSpan | None = None
        self.key: object = exact(function)
        if isinstance(function, FunctionType):
            code, named = function.__code__, function.__kwdefaults__ or {}
            self.span = SourceSpan(code.co_filename, code.co_firstlineno)
            self.key = code, exact(function.__defaults__), exact(tuple(named.items()))

    @staticmethod
    def of(kernel: str, function: object, signature: inspect.Signature) -> GridFunction:
        """A function that was checked to ask for no more than there is."""
        if not callable(function):
            raise ShapeError(
                f"{kernel}.grid takes a function that gives the grid, got {function!r}",
                hint=f"write {kernel}.grid(lambda x: (tile.cdiv(x.shape[0], 64),)); {kernel}[4, 2] gives sizes",
            )
        names = [name for name, one in inspect.signature(function).parameters.items() if one.default is one.empty]
        for name in names:
            if name not in signature.parameters and name != BLOCKS:
                known = ", ".join(signature.parameters)
                raise ShapeError(
                    f"the grid of {kernel} asks for {name}, which is no parameter of the kernel",
                    hint=f"it may ask for {known}, and for {BLOCKS}, the block sizes",
                )
        return GridFunction(function, names, takes_blocks=BLOCKS in names and BLOCKS not in signature.parameters)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(GridFunction, takes_blocks=self.takes_blocks), (self.function, self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridFunction) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def count(self, arguments: Mapping[str, object], block: tuple[int, ...]) -> int | None:
        """The number of program instances of a call with a block; None where the function does not take numbers."""
        blocks = Schedule(block=block).sizes
        try:
            found: object = self.function(**{name: arguments.get(name, blocks) for name in self.names})
        except Exception:
            return None
        sizes: list[object] = [*found] if isinstance(found, tuple | list) else [found]
        return prod(one for one in sizes if type(one) is int) if all(type(one) is int for one in sizes) else None

    def worked_out(self, work: Tracer, arguments: Mapping[str, object]) -> list[Size]:
        """The grid for traced arguments, as expressions over their sizes."""
        blocks = work.schedule.sizes
        try:
            given = {name: self._seen(work, name, arguments.get(name, blocks)) for name in self.names}
            found: object = self.function(**given)
            grid: list[object] = [*found] if isinstance(found, tuple | list) else [found]
            return [size(dim(one).substitute(work.constants)) for one in self._sizes(work, grid)]
        except TesseraError as error:
            raise error.at(self.span) from None
        except Exception as error:
            raise CompileError(
                f"the grid of {work.name}: {type(error).__name__}: {error}",
                span=self.span,
                hint="sizes are symbols there, so that one program serves all: +, -, *, //, % and tile.cdiv work",
            ) from error

    def _seen(self, work: Tracer, name: str, value: object) -> object:
        """An argument as the function sees it."""
        if isinstance(value, View):
            return ArrayShape(tuple(work.symbolic_size(value, axis) for axis in range(value.rank)), value.dtype)
        if isinstance(value, Scalar):
            raise CompileError(
                f"the grid of {work.name} asks for {name}, a number that each call gives anew",
                hint="make it keyword-only, so that it is part of the program; or take the size of an array",
            )
        if isinstance(value, Attributes):
            return _Attributes(lambda attribute: self._seen(work, f"{name}.{attribute}", getattr(value, attribute)))
        return value

    def _sizes(self, work: Tracer, grid: Sequence[object]) -> list[Size]:
        sizes = [one for one in grid if isinstance(one, Dim) or (type(one) is int and one >= 0)]
        if not 1 <= len(grid) <= 3 or len(sizes) < len(grid):
            raise ShapeError(
                f"the grid of {work.name} is {tuple(grid)!r}, and a grid is one to three sizes",
                hint="give whole numbers from 0 on, and what +, -, *, //, % and tile.cdiv make of sizes",
            )
        return sizes


class _Attributes:
    """An object among the arguments, whose arrays are seen as arrays are."""

    def __init__(self, read: Callable[[str], object]) -> None:
        self._read = read

    def __getattr__(self, name: str) -> object:
        return self._read(name)


def grid_of(
    work: Tracer, given: tuple[int, ...] | GridFunction | GridOfStores | None, arguments: Mapping[str, object]
) -> Sequence[Size]:
    """The grid as it was given, is worked out or is inferred; it has all axes that the kernel uses."""
    used = max(work.axes, default=0) + 1
    unclear: dict[int, Unclear] = {}
    if isinstance(given, GridFunction):
        grid = given.worked_out(work, arguments)
        _check_leading(work, grid, given.span)
    elif isinstance(given, tuple):
        grid = list[Size](given)
    else:
        grid = work.grid
        if len(grid) < used:
            grid, unclear = _inferred(work, used, any_array=given is not None)
        if given is not None and len(grid) >= used:
            grid = [*grid, *[1] * (given.axes - len(grid))]
    if len(grid) < used:
        whence = (
            "none is given: the one inferred"
            if given is None or isinstance(given, GridOfStores)
            else "the one worked out"
            if isinstance(given, GridFunction)
            else "the one given"
        )
        had = f"{whence}, {_listed(grid)}, has {len(grid)}"
        spans = {axis: span for axis, span in sorted(work.axes.items()) if axis >= len(grid) and span is not None}
        raise ShapeError(
            f"{work.name} uses {_axes(used)} of a grid, and {had if grid else 'none is given, nor can be inferred'}",
            story=[f"tile.program_id({axis}) at {span}{_why(unclear.get(axis))}" for axis, span in spans.items()],
            hint=f"{'' if grid else 'use tile.context(), or '}say how many program instances there are along each "
            f"axis: {work.name}[{', '.join('ijk'[:used])}](...), or {work.name}.grid(lambda ...)",
        )
    return grid


def _inferred(work: Tracer, used: int, *, any_array: bool) -> tuple[list[Size], dict[int, Unclear]]:
    """The grid that stores ask for; what they leave open is the context's, or 1 along axes that nothing uses.

    Arrays that are not annotated Out may be filled in part: their stores count only where the grid is compared.
    """
    from tessera.ir.tile.grid_of_stores import Unclear, grid_of_stores

    outputs = {one.ssa: one.shape for one in work.arguments if any_array or one.filled}
    axes = sorted(work.axes)
    asked = grid_of_stores(work.entry, outputs, axes) if outputs else dict.fromkeys(axes, Unclear(_NOTHING_TO_FILL))
    grid: list[Size] = []
    for axis in range(used):
        found = asked.get(axis, 1)
        if axis < len(work.grid) and (isinstance(found, Unclear) or (axis == 1 and _asks_points(work))):
            found = work.grid[axis]
        if isinstance(found, Unclear):
            return work.grid, {axis: found}
        grid.append(found)
    return grid, {}


def _why(unclear: Unclear | None) -> str:
    from tessera.ir.common.locations import span_of

    if unclear is None:
        return ""
    span = None if unclear.op is None else span_of(unclear.op.location)
    return f": {unclear.reason}{'' if span is None else f', at {span}'}"


def _check_leading(work: Tracer, grid: Sequence[Size], span: SourceSpan | None) -> None:
    """Checks that each program instance along axis 1 has a point of the leading axes, where the kernel asks for it."""
    if not _asks_points(work) or len(grid) < 2 or work.driver is None:
        return
    points = size(dim(current_context(work).points).substitute(work.constants))
    if grid[1] != points:
        raise ShapeError(
            f"the grid of {work.name} has {grid[1]} program instances along axis 1, and {work.driver.name} has "
            f"{points} points of its leading axes",
            span=span,
            hint="tile.context(), and loads and stores without `at`, take one program instance for each of these",
        )


def _asks_points(work: Tracer) -> bool:
    """Whether program instances along axis 1 work at points of the driving argument's leading axes."""
    return work.context is not None and current_context(work).asks_points


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def _listed(grid: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, grid))}]"
