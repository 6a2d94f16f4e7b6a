"""Shadow memory: which access first read, wrote and updated each element of the arguments, and which are initialized.

Program instances run one after the other, so the first access of each kind is enough: if it belongs to the one that
runs now, no earlier one has made one; if not, it is a witness. Arguments that share memory share their shadow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tessera.errors import EffectError, RaceError
from tessera.interpreters.core.views import Array, ArrayView
from tessera.interpreters.sanitizers.access_trace import Access, AccessKind

# Atomics may meet each other, and reads may; nothing else may.
_CONFLICTS: Mapping[AccessKind, tuple[AccessKind, ...]] = MappingProxyType(
    {"read": ("write", "atomic"), "write": ("write", "atomic", "read"), "atomic": ("write", "read")}
)
_VERBS: Mapping[AccessKind, str] = MappingProxyType(
    {"read": "reads", "write": "writes", "atomic": "updates atomically"}
)
_NEVER = -1


@dataclass(frozen=True)
class Argument:
    """A view argument: its name, its memory, and where its first element lies in the shadow."""

    name: str
    view: ArrayView
    region: _Region
    first_cell: int
    cells: int
    """Cells per element."""

    def cells_of(self, offsets: Array) -> Array:
        """The cells of elements, one row each."""
        return (self.first_cell + offsets * self.cells)[:, np.newaxis] + np.arange(self.cells)

    def element(self, offset: int) -> str:
        """An element in words, by its index where it has one."""
        return f"{self.name}{self.view.index_of(offset) or f' at element {offset} of its memory'}"


class _Region:
    """Memory that some arguments share, cut into cells that no element straddles."""

    def __init__(self, cells: int) -> None:
        self.first: dict[AccessKind, Array] = {kind: np.full(cells, _NEVER, np.int64) for kind in _CONFLICTS}
        self.blank = np.zeros(cells, np.bool_)


class Shadow:
    """The shadow of all arguments of a kernel; those at the indices `blank` are uninitialized at first."""

    def __init__(self, names: Sequence[str], values: Sequence[Any], blank: AbstractSet[int]) -> None:
        self._accesses: list[Access] = []
        self._program: tuple[int, ...] | None = None
        self._program_starts = 0
        self.arguments: dict[int, Argument] = {}
        self._blank = blank
        views = {index: value for index, value in enumerate(values) if isinstance(value, ArrayView)}
        for group in _sharing(views):
            self._add(group, names)
        # Inputs last: what one shares with an output does hold something.
        for index in sorted(self.arguments, key=lambda index: index not in blank):
            argument = self.arguments[index]
            argument.region.blank[argument.cells_of(argument.view.elements.ravel())] = index in blank

    def _add(self, group: Mapping[int, ArrayView], names: Sequence[str]) -> None:
        spans = {index: _bytes(view) for index, view in group.items()}
        start, stop = min(low for low, _ in spans.values()), max(high for _, high in spans.values())
        # The finest unit in which every element of the group starts and ends.
        unit = math.gcd(
            *(view.argument.itemsize for view in group.values()), *(low - start for low, _ in spans.values())
        )
        region = _Region((stop - start) // unit)
        for index, view in group.items():
            first = (view.argument.ctypes.data - start) // unit
            self.arguments[index] = Argument(names[index], view, region, first, view.argument.itemsize // unit)

    def record(self, access: Access, *, races: bool, uninitialised: bool, apart: bool = False) -> None:
        """Checks an access against all earlier ones, and remembers it. `apart`: it may not touch an element twice."""
        if access.program != self._program:
            self._program, self._program_starts = access.program, len(self._accesses)
        argument = self.arguments[access.argument]
        cells = argument.cells_of(access.offsets)
        if uninitialised and access.kind != "write":
            self._check_written(access, argument, cells)
        if races:
            self._check_races(access, argument, cells)
            if apart:
                self._check_apart(access, argument)
        if access.kind != "read":
            argument.region.blank[cells] = False
        first = argument.region.first[access.kind]
        first[cells] = np.where(first[cells] == _NEVER, len(self._accesses), first[cells])
        self._accesses.append(access)

    def check_filled(self, kernel: str, grid: Sequence[int]) -> None:
        """Refuses outputs that have elements which were never written."""
        for index in sorted(self._blank & self.arguments.keys()):
            argument = self.arguments[index]
            offsets = argument.view.elements
            empty = argument.region.blank[argument.cells_of(offsets.ravel())].any(axis=1)
            if count := int(empty.sum()):
                first = argument.element(int(offsets.ravel()[empty.argmax()]))
                raise EffectError(
                    f"no program instance of {kernel} has written {first}; {count} of the {empty.size} elements of "
                    f"{argument.name} hold nothing",
                    shapes=[f"{argument.name} {list(argument.view.sizes)}", f"grid {list(grid)}"],
                    hint="check the grid and the offsets of stores; an array that is filled in part only is an input, "
                    "without Out",
                )

    @staticmethod
    def _check_written(access: Access, argument: Argument, cells: Array) -> None:
        blank = argument.region.blank[cells].any(axis=1)
        if blank.any():
            element = argument.element(int(access.offsets[blank.argmax()]))
            raise EffectError(
                f"program instance {list(access.program)} {_VERBS[access.kind]} {element}, which nothing has written",
                span=access.span,
                hint=f"store to {argument.name} first, or make it an input: outputs hold nothing at first",
            )

    def _check_races(self, access: Access, argument: Argument, cells: Array) -> None:
        for kind in _CONFLICTS[access.kind]:
            first = argument.region.first[kind][cells]
            foreign = (first != _NEVER) & (first < self._program_starts)
            if foreign.any():
                element, cell = (int(at) for at in np.argwhere(foreign)[0])
                earlier = self._accesses[int(first[element, cell])]
                raise self._race(earlier, access, int(cells[element, cell]))

    @staticmethod
    def _check_apart(access: Access, argument: Argument) -> None:
        """Refuses a store that writes one element twice: which value stays there is not defined."""
        order = np.argsort(access.offsets, kind="stable")
        again = np.flatnonzero(np.diff(access.offsets[order]) == 0)
        if not again.size:
            return
        first, second = (int(order[again[0] + step]) for step in (0, 1))
        element = argument.element(int(access.offsets[first]))
        where = "" if access.span is None else f" at {access.span}"
        raise RaceError(
            f"program instance {list(access.program)} writes {element} twice in one store, and which value stays is "
            "not defined",
            span=access.span,
            story=[f"value {number} of those that it writes goes to {element}{where}" for number in (first, second)],
            hint="write each element once, with a mask that leaves out the others, or add to it: tile.scatter_add",
        )

    def _race(self, earlier: Access, later: Access, cell: int) -> RaceError:
        def element(access: Access) -> str:
            argument = self.arguments[access.argument]
            return argument.element((cell - argument.first_cell) // argument.cells)

        def witness(access: Access) -> str:
            where = "" if access.span is None else f" at {access.span}"
            return f"program instance {list(access.program)} {_VERBS[access.kind]} {element(access)}{where}"

        target = "it" if earlier.argument == later.argument else element(later)
        return RaceError(
            f"program instances {list(earlier.program)} and {list(later.program)} race: "
            f"the first {_VERBS[earlier.kind]} {element(earlier)}, the second {_VERBS[later.kind]} {target}",
            span=later.span,
            story=[witness(earlier), witness(later)],
            hint="give each program instance its own elements (check offsets and tile.program_id), or add "
            "to them: tile.atomic_add, tile.scatter_add",
        )


def _bytes(view: ArrayView) -> tuple[int, int]:
    """The addresses from the first byte of an argument to the end of its last."""
    (low, high), item = view.reach, view.argument.itemsize
    start = view.argument.ctypes.data
    return start + low * item, start + (high + 1) * item


def _sharing(views: Mapping[int, ArrayView]) -> list[dict[int, ArrayView]]:
    """The arguments, grouped by overlapping memory."""
    groups: list[dict[int, ArrayView]] = []
    end = 0
    for index, view in sorted(views.items(), key=lambda item: _bytes(item[1])):
        low, high = _bytes(view)
        if groups and low < end:
            groups[-1][index] = view
        else:
            groups.append({index: view})
        end = max(end, high)
    return groups
