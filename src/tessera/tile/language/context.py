"""The work of a program instance: its block sizes, its rows of the driving argument, and its index along leading axes.

The driving argument is the kernel's first array. A program instance owns `T.m` rows of it, at one point of its leading
axes; the grid is (blocks of rows, points of the leading axes). `T.d` is the width of its rows under any schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tessera.errors import CompileError, ResourceError, ShapeError
from tessera.shapes.expr import Size, ceil_div, element_count, size
from tessera.tile.language.control import BlockIndex
from tessera.tile.language.values import Scalar, View

if TYPE_CHECKING:
    from tessera.tile.language.tracer import Tracer


class Context:
    """The value of `tile.context()`: `row_start` is the instance's first row, `batch` its number among leading axes.

    `asks_points` says whether program instances work at points of leading axes.
    """

    def __init__(self, work: Tracer) -> None:
        if work.driver is None:
            raise CompileError("the kernel has no array argument to take its blocks from", hint="use tile.program_id")
        self._work = work
        self._driver = work.driver
        self._parts: dict[Any, View] = {}
        self._points: dict[int, list[Any]] = {}
        self._is_checked = work.given is None or len(work.given) < 2
        self.asks_points = False
        work.grid = self.grid()
        with work.at_the_top():
            self.row_start: Scalar = work.program_id(0) * self.m
            self.batch: Any = work.program_id(1) if self._driver.rank > 2 else 0

    def __getattr__(self, name: str) -> Any:
        raise CompileError(
            f"the context has no {name!r}", hint="it has m, n, k, d, vector, row_start, batch and matrix(x)"
        )

    @property
    def m(self) -> int:
        return self._work.schedule.sizes.m

    @property
    def n(self) -> int:
        return self._work.schedule.sizes.n

    @property
    def k(self) -> int:
        return self._work.schedule.sizes.k

    @property
    def d(self) -> int:
        return self.width_of(self._driver, "T.d")

    def width_of(self, view: View, why: str) -> int:
        """The width of an array's rows as a number; the driving argument's must fit the schedule."""
        width = self._work.static_size(view, view.rank - 1, why)
        if view.whole is self._driver:
            self._work.row_width = width
            if not self._work.schedule.serves(width):
                raise ResourceError(
                    f"rows of {self._driver.name} are {width} wide, and under d={self._work.schedule.d} a program "
                    f"instance holds rows of at most {self._work.schedule.d}",
                    hint=f"give the schedule d={width} or more, or leave d out: a program instance works on whole rows",
                )
        return width

    @property
    def vector(self) -> int:
        return self._work.schedule.vector or 1

    def grid(self) -> list[Size]:
        shape = self._work.argument_of(self._driver).shape
        blocks = size(ceil_div(shape[max(0, len(shape) - 2)], self.m))
        return [blocks, self.points] if len(shape) > 2 else [blocks]

    @property
    def points(self) -> Size:
        """How many points the leading axes of the driving argument have."""
        return element_count(self._work.argument_of(self._driver).shape[:-2])

    def rows_of(self, block: Any) -> int:
        return block.rows if isinstance(block, BlockIndex) else self.m

    def rows_at(self, view: View, block: Any) -> tuple[View, Any]:
        """The matrix of an array that this program instance works on, and the first row of a block in it."""
        start = self.row_start if block is None else block.start if isinstance(block, BlockIndex) else block
        return self.matrix(view), start

    def matrix(self, view: View) -> View:
        """The matrix of an array that this program instance works on: the array at its point of the leading axes."""
        if view.rank <= 2:
            return view
        if view.whole is not view:
            return self._work.part(view, dict(enumerate(self._indices(view))))
        if view.ssa not in self._parts:
            with self._work.at_the_top():
                self._parts[view.ssa] = self._work.part(view, dict(enumerate(self._indices(view))))
        return self._parts[view.ssa]

    def indices_for(self, leading: int) -> list[Any]:
        """This program instance's index along each leading axis of the driving argument, worked out once."""
        self._check_grid()
        if leading not in self._points:
            with self._work.at_the_top():
                extents = [self._work.size(self._driver, axis) for axis in range(leading)]
                self._points[leading] = self._split(self.batch, extents)
        return self._points[leading]

    def _indices(self, view: View) -> list[Any]:
        """This program instance's index along each leading axis; groups of them share one with fewer entries.

        Arrays with as many leading axes as the driving one are matched axis by axis, others as if all were one axis.
        """
        self._check_grid()
        driving = [self._work.size(self._driver, axis) for axis in range(self._driver.rank - 2)]
        own = [self._work.size(view, axis) for axis in range(view.rank - 2)]
        if len(own) == len(driving):
            indices = self.indices_for(len(driving))
            pairs = zip(indices, driving, own, strict=True)
            return [self._group(view, *each, axis) for axis, each in enumerate(pairs)]
        return self._split(self._group(view, self.batch, _product(driving), _product(own)), own)

    def _check_grid(self) -> None:
        """Checks that a given grid has no more instances than there are points: others would work outside of arrays."""
        self.asks_points = True
        if self._is_checked or self._work.given is None:
            return
        self._is_checked = True
        count = self._work.given[1]
        # The text is part of kernels that check it when they run: another one would be other code.
        message = f"{self._driver.name} has fewer points of its leading axes than the {count} programs of grid axis 1"
        with self._work.at_the_top():
            points = _product([self._work.size(self._driver, axis) for axis in range(self._driver.rank - 2)])
            if not isinstance(points, int):
                self._work.check(points >= count, message)
            elif points < count:
                raise ShapeError(message, hint=f"give a grid of at most {points} program instances along axis 1")

    def _group(self, view: View, index: Any, total: Any, own: Any, axis: int | None = None) -> Any:
        """The index of a group among `own`, for one of `total`; along an axis of both arrays, if they have it alike."""
        if own is total or (isinstance(own, int) and isinstance(total, int) and own == total):
            return index
        message = f"the leading sizes of {self._driver.name} are multiples of those of {view.name}"
        if isinstance(own, int) and isinstance(total, int):
            if own == 0 or total % own:
                raise CompileError(f"{total} and {own}: {message}", hint="repeat or slice the smaller array")
            return index // (total // own)
        if axis is not None and view.whole is view and self._work.is_alike(view, axis):
            return index
        self._work.check((total % own) == 0, message)
        return index // (total // own)

    @staticmethod
    def _split(number: Any, extents: Sequence[Any]) -> list[Any]:
        """The indices of the `number`th point of a box."""
        indices: list[Any] = []
        for extent in reversed(extents[1:]):
            indices.insert(0, number % extent)
            number = number // extent
        return [number, *indices] if extents else []


def _product(sizes: Sequence[Any]) -> Any:
    total: Any = 1
    for one in sizes:
        total = one if isinstance(total, int) and total == 1 else total * one
    return total


def current_context(work: Tracer) -> Context:
    """The context of the kernel being traced, made on first use."""
    if work.context is None:
        work.context = Context(work)
    return work.context
