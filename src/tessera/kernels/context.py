"""Where a program stands: its block sizes, its rows of the driving argument, and its place among leading axes.

The driving argument is the kernel's first array. A program owns `T.m` rows of it, at one point of its leading axes; the
grid is (blocks of rows, points of the leading axes). `T.d` is the width of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.errors import CompileError
from tessera.kernels.control import BlockIndex
from tessera.kernels.values import Scalar, View
from tessera.shapes.expr import Size, ceil_div, dim, element_count, size

if TYPE_CHECKING:
    from tessera.kernels.tracer import Tracer

_DEFAULT_BLOCK = 64


class Context:
    """What `tile.context()` gives."""

    def __init__(self, work: Tracer) -> None:
        if work.driver is None:
            raise CompileError("the kernel has no array argument to take its blocks from", hint="use tile.program_id")
        self._work = work
        self._driver = work.driver
        if work.block is not work.entry:
            raise CompileError(
                "tile.context() is first used inside a loop or branch",
                hint="call tile.context() at the top of the kernel",
            )
        work.grid = self.grid()
        self.row_start: Scalar = work.program_id(0) * self.m
        self.batch: Any = work.program_id(1) if self._driver.rank > 2 else 0

    @property
    def m(self) -> int:
        return self._work.schedule.m or _DEFAULT_BLOCK

    @property
    def n(self) -> int:
        return self._work.schedule.n or self.m

    @property
    def k(self) -> int:
        return self._work.schedule.k or self.n

    @property
    def d(self) -> int:
        return self._work.static_size(self._driver, self._driver.rank - 1, "T.d")

    @property
    def vector(self) -> int:
        return self._work.schedule.vector or 1

    def grid(self) -> list[Size]:
        argument = self._work.argument_of(self._driver)
        assert argument is not None
        rows = argument.shape[max(0, len(argument.shape) - 2)]
        blocks = size(ceil_div(rows, self.m))
        leading = argument.shape[:-2]
        return [blocks, element_count(leading)] if leading else [blocks]

    def rows_of(self, block: Any) -> int:
        return block.rows if isinstance(block, BlockIndex) else self.m

    def place(self, view: View, block: Any) -> tuple[View, Any]:
        """The matrix of an array that this program works on, and the first row of a block in it."""
        start = self.row_start if block is None else block.start if isinstance(block, BlockIndex) else block
        leading = view.rank - 2
        if leading <= 0:
            return view, start
        return self._work.part(view, self._indices(view, leading)), start

    def indices_for(self, leading: int) -> list[Any]:
        """This program's index along each leading axis of the driving argument."""
        return self._split(self._driver, leading)

    def _split(self, view: View, leading: int) -> list[Any]:
        if leading <= 1:
            return [self.batch] * leading
        indices: list[Any] = []
        rest: Any = self.batch
        for axis in reversed(range(leading)):
            extent = self._work.size(view, axis)
            indices.insert(0, rest % extent if axis else rest)
            rest = rest // extent
        return indices

    def _indices(self, view: View, leading: int) -> list[Any]:
        """This program's index along each leading axis; arrays with fewer of them are shared by groups."""
        own = [self._work.size(view, axis) for axis in range(leading)]
        if leading == 1:
            driving = self._work.argument_of(self._driver)
            argument = self._work.argument_of(view)
            assert driving is not None
            same = argument is not None and dim(element_count(driving.shape[:-2])) == dim(argument.shape[0])
            if same or view is self._driver:
                return [self.batch]
            total = self._total(driving.shape[:-2])
            return [self.batch // (total // own[0])]
        return self._split(view, leading)

    def _total(self, leading: tuple[Size, ...]) -> Any:
        total: Any = 1
        for axis in range(len(leading)):
            total = self._work.size(self._driver, axis) * total
        return total


def current_context(work: Tracer) -> Context:
    """The context of the kernel being traced, made on first use."""
    if work.context is None:
        work.context = Context(work)
    return work.context
